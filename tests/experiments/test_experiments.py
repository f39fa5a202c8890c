"""The experiments' commands on a few dozen generated documents."""

import contextlib
import csv
import subprocess
import sys
from pathlib import Path

import pytest
from reviews import write_reviews, write_subjects
from test_experiments_paper import call

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


def quality(directory, *arguments):
    """As a user does."""
    command = [sys.executable, EXPERIMENTS / "quality.py", *arguments, "--jobs", "1", "--out", "runs.csv"]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True)


def quality_here(directory, *arguments):
    """The same in this process, which has imported all that takes long."""
    with contextlib.chdir(directory):
        return call("quality", *arguments, "--jobs", "1", "--out", "runs.csv")


def table(output):
    """Row and system -> the other cells of a line, by the column's name, of the first table."""
    first = output.split("\n\n")[0]
    header, _, *lines = ([cell.strip() for cell in line.strip("|").split("|")] for line in first.splitlines())
    cells = [dict(zip(header, line, strict=True)) for line in lines]
    return {(line["row"], line["system"]): line for line in cells}


@pytest.fixture
def data(tmp_path):
    write_reviews(tmp_path / "imdb.jsonl.gz", 120, with_split=True)
    write_reviews(tmp_path / "20newsgroups.jsonl.gz", 120, with_split=False)
    return tmp_path


SYSTEMS = ["--systems", "mirrorlda", "linear-tfidf", "--seeds", "2"]


@pytest.mark.slow
def test_quality_measures_rows_and_resumes(data):
    arguments = [data, "--rows", "imdb-rating", "20newsgroups-group", *SYSTEMS]
    first = quality_here(data, *arguments)
    assert first.returncode == 0, first.stderr
    lines = table(first.stdout)
    assert {key: (line["measure"], line["runs"]) for key, line in lines.items()} == {
        ("imdb-rating", "mirrorlda"): ("r2", "2"),
        ("imdb-rating", "linear-tfidf"): ("r2", "1"),
        ("20newsgroups-group", "mirrorlda"): ("accuracy", "2"),
        ("20newsgroups-group", "linear-tfidf"): ("accuracy", "1"),
    }
    assert all(0.8 < float(line["mean"]) <= 1 for line in lines.values())
    assert lines["imdb-rating", "mirrorlda"]["time limit"] == "within 60 s"
    assert lines["imdb-rating", "mirrorlda"]["verdict"] == "stretch"

    runs = (data / "runs.csv").read_text().splitlines()
    # Two rows and two seeds of mirrorlda with its score and seven measures of topics, and of the linear model its score.
    assert len(runs) == 1 + 2 * (2 * (1 + 7) + 1)
    # Interrupted before its last run, after which stability is measured anew.
    last = [line for line in runs if line.startswith("20newsgroups-group,") and ",mirrorlda,,,,1," in line]
    (data / "runs.csv").write_text("\n".join(line for line in runs if line not in last) + "\n")
    second = quality(data, *arguments)
    assert second.stderr.count("repeat") == 1
    assert {key: line["mean"] for key, line in table(second.stdout).items()} == {key: line["mean"] for key, line in lines.items()}


@pytest.mark.slow
def test_quality_of_topics(tmp_path):
    write_subjects(tmp_path / "20newsgroups.jsonl.gz", 300)
    output = quality_here(tmp_path, tmp_path, "--rows", "20newsgroups-topics", "--systems", "mirrorlda", "--seeds", "1")
    assert output.returncode == 0, output.stderr
    with (tmp_path / "runs.csv").open(newline="") as file:
        scores = {line["measure"]: float(line["score"]) for line in csv.DictReader(file)}
    assert list(scores) == ["npmi", "c_v", "diversity", "used", "n_effective", "npmi by probability"]
    # Words at random have -0.3, the most frequent ones -0.2, and the five subjects 0.8, for which fifty topics are too many.
    assert min(scores["npmi"], scores["npmi by probability"]) > 0.1


@pytest.mark.slow
@pytest.mark.parametrize(("target", "measure"), [("liked", "roc_auc"), ("stars", "r2")])
def test_quality_of_ones_own_file(tmp_path, target, measure):
    write_reviews(tmp_path / "shops.jsonl.gz", 120, with_split=False)
    arguments = ["--file", "shops.jsonl.gz", "--target", target, "--words", "20", "--seeds", "1"]
    output = quality_here(tmp_path, *arguments, "--systems", "linear-tfidf", "lda", "slda")
    assert output.returncode == 0, output.stderr
    lines = table(output.stdout)
    assert {key: line["measure"] for key, line in lines.items()} == {
        (f"shops-{target}", system): measure for system in ("linear-tfidf", "lda", "slda")
    }
    assert all(float(line["mean"]) > 0.8 for line in lines.values())


@pytest.mark.slow
def test_quality_says_what_a_file_lacks(data):
    output = quality_here(data, "--file", "imdb.jsonl.gz", "--target", "colour")
    assert output.returncode != 0
    assert "found 0 values of 'colour', expected two or more" in output.stderr
