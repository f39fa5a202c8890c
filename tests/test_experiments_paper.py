"""The paper's experiments, each on a hundred generated documents."""

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from reviews import write_reviews

EXPERIMENTS = Path(__file__).parents[1] / "experiments"
TINY = ["--documents", "100", "--topics", "3", "4", "--repeats", "2", "--processes", "1"]


def run(directory, name, *arguments):
    command = [sys.executable, EXPERIMENTS / f"{name}.py", directory, *arguments, "--out", directory / "out"]
    return subprocess.run(command, capture_output=True, text=True)


def scores(directory, name):
    """Row, system, topics, prior, layers and measure -> scores; none may have failed."""
    with (directory / "out" / f"{name}.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert not [line["error"] for line in lines if line["error"]]
    found = {}
    for line in lines:
        key = tuple(line[field] for field in ("row", "system", "n_topics", "alpha", "n_layers", "measure"))
        found.setdefault(key, []).append(float(line["score"]))
    return found


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    directory = tmp_path_factory.mktemp("data")
    write_reviews(directory / "tripadvisor_79k.jsonl.gz", 150, with_split=True)
    write_reviews(directory / "imdb.jsonl.gz", 150, with_split=True)
    return directory


def test_figure3_has_all_systems_and_resumes(data):
    first = run(data, "figure3", *TINY)
    assert first.returncode == 0, first.stderr
    found = scores(data, "figure3")
    systems = {system for _, system, *_ in found}
    assert len(systems) == 13
    with_topics = {system for _, system, n_topics, *_ in found if n_topics}
    assert systems - with_topics == {"deep-network", "linear-counts", "linear-tfidf"}
    assert len(found) == 2 * (2 * len(with_topics) + 3)
    assert all(len(folds) == 2 for folds in found.values())
    # Stars are planted in the counts of ten words.
    for row, measure, least in [("tripadvisor-stars-100", "r2", 0.65), ("imdb-sentiment-100", "roc_auc", 0.95)]:
        for system in ("bp-slda", "bp-slda-paper", "linear-counts"):
            sizes = ["3", "4"] if system in with_topics else [""]
            assert all(np.mean(found[row, system, n_topics, "", "", measure]) > least for n_topics in sizes), system
    page = (data / "out" / "figure3.md").read_text()
    assert "python experiments/figure3.py DATA_DIR --documents 100 --topics 3 4 --repeats 2" in page
    assert str(data) not in page
    assert (data / "out" / "figure3.svg").read_text().startswith("<?xml")

    again = run(data, "figure3", *TINY)
    assert "repeat" not in again.stderr
    assert again.stdout == first.stdout


def test_figure3_on_ones_own_file(data):
    write_reviews(data / "shops.jsonl.gz", 100, with_split=False)
    arguments = [
        "--file",
        data / "shops.jsonl.gz",
        "--target",
        "liked",
        "--systems",
        "bp-slda",
        "--topics",
        "3",
        "--repeats",
        "1",
    ]
    command = [sys.executable, EXPERIMENTS / "figure3.py", *arguments, "--processes", "1", "--out", data / "own"]
    output = subprocess.run(command, capture_output=True, text=True)
    assert output.returncode == 0, output.stderr
    assert "shops-liked" in output.stdout


def test_a_file_that_is_not_there_is_named(tmp_path):
    output = run(tmp_path, "table2", *TINY)
    assert output.returncode != 0
    assert "imdb.jsonl.gz" in output.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--documents", "-5"], "--documents, --topics, --repeats and --processes are 1 or more"),
        (["--topics", "0"], "--documents, --topics, --repeats and --processes are 1 or more"),
        (["--repeats", "9"], "--repeats: found 9, expected at most 5"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(data, arguments, told):
    output = run(data, "figure3", *arguments)
    assert output.returncode == 2
    assert told in output.stderr


def test_table1_has_three_priors_and_two_vocabularies(data):
    output = run(data, "table1", *TINY, "--systems", "bp-slda", "linear-tfidf")
    assert output.returncode == 0, output.stderr
    found = scores(data, "table1")
    assert {alpha for _, system, _, alpha, *_ in found if system == "bp-slda"} == {"1.001", "0.5", "0.1"}
    assert len({row for row, *_ in found}) == 4


def test_table2_repeats_what_is_random(data):
    output = run(data, "table2", *TINY, "--systems", "bp-slda", "network", "linear-tfidf")
    assert output.returncode == 0, output.stderr
    found = scores(data, "table2")
    assert {system: {len(repeats) for key, repeats in found.items() if key[1] == system} for _, system, *_ in found} == {
        "bp-slda": {2},
        "network": {2},
        "linear-tfidf": {1},
    }


def test_figure4_has_layers_sparsity_and_likelihood(data):
    output = run(data, "figure4", *TINY)
    assert output.returncode == 0, output.stderr
    found = scores(data, "figure4")
    measures = {measure for *_, measure in found}
    assert measures == {"r2", "sparsity", "log-likelihood"}
    assert {n_layers for *_, n_layers, _ in found if n_layers} == {"1", "2", "3", "5", "10", "20", "40"}
    assert all(0 < value <= 1 for key, values in found.items() for value in values if key[-1] == "sparsity")
    # 33 words are drawn: no model of them is worse than all alike by much, nor better than knowing the document's stars.
    assert all(-3.5 < value < -2 for key, values in found.items() for value in values if key[-1] == "log-likelihood")
