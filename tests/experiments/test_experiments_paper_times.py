"""Documents drawn like real ones, and the command that times training on them, with a hundred documents."""

import csv
import gzip
import json
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from mirrorlda.datasets import make_topics
from test_experiments_paper import run_here

from mirrorlda import Corpus, TopicRegressor

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
sys.path.insert(0, str(EXPERIMENTS))

import generated  # noqa: E402


@pytest.fixture(scope="module")
def planted():
    """Documents of many lengths in which a sixth of the words repeats another, with a target that topics explain in part."""
    rng = np.random.default_rng(0)
    data = make_topics(1500, 300, 5, doc_length=1, alpha=0.3, n_outputs=1, gamma=30.0, random_state=0)
    X = np.zeros((1500, 300), np.float32)
    for theta, length, row in zip(data.theta, rng.integers(5, 120, 1500), X, strict=True):
        words = rng.choice(300, length, p=theta @ data.components)
        words = np.where(rng.random(length) < 1 / 6, rng.choice(words, length), words)
        np.add.at(row, words, 1)
    return sp.csr_matrix(X), np.ravel(data.y)


@pytest.fixture(scope="module")
def source(planted):
    return generated.learn(*planted, n_topics=8)


def test_places_have_the_shares_of_probabilities():
    found = generated.places(np.array([[0.5, 0.0, 0.25, 0.25], [0.1, 0.2, 0.3, 0.4]]), 10)
    shares = [np.bincount(row, minlength=4) / 1024 for row in found]
    np.testing.assert_allclose(shares, [[0.5, 0, 0.25, 0.25], [0.1, 0.2, 0.3, 0.4]], atol=1 / 1024)


def test_drawn_documents_have_the_statistics_of_real_ones(planted, source):
    X, y = planted
    drawn, targets = generated.draw(source, 3000, np.random.default_rng(1))
    real, found = generated.statistics(X), generated.statistics(drawn)
    assert found == pytest.approx(real, rel=0.1)
    assert targets.mean() == pytest.approx(y.mean(), abs=0.15 * y.std())
    assert targets.std() == pytest.approx(y.std(), rel=0.1)


def test_words_occur_together_as_in_real_documents(planted, source):
    def together(X):
        """Correlations of the 40 most frequent words' presence over documents."""
        is_there = (X[:, frequent] > 0).toarray().astype(float)
        return np.corrcoef(is_there.T)[np.triu_indices(40, 1)]

    X, _ = planted
    frequent = np.argsort(-np.asarray(X.sum(axis=0)).ravel())[:40]
    drawn, _ = generated.draw(source, 3000, np.random.default_rng(1))
    assert np.corrcoef(together(X), together(sp.csr_matrix(drawn)))[0, 1] > 0.8


def test_as_much_of_the_target_can_be_learned(planted, source):
    X, y = planted
    drawn, targets = generated.draw(source, 2000, np.random.default_rng(1))
    scores = [
        TopicRegressor(5, random_state=0, n_jobs=1).fit(X[:1000], y[:1000]).score(X[1000:], y[1000:])
        for X, y in ((X, y), (drawn, targets))
    ]
    assert scores[1] == pytest.approx(scores[0], abs=0.15)
    assert scores[0] > 0.4


def test_a_corpus_does_not_depend_on_processes(tmp_path, source, monkeypatch):
    monkeypatch.setattr(generated, "PART", 300)
    generated.save(tmp_path / "source", source)
    one, two = (Corpus(generated.corpus_of(tmp_path / "source", tmp_path / f"{n}.corpus", 1000, n_processes=n)) for n in (1, 2))
    assert (one.n_docs, one.n_words) == (1000, 300)
    assert one.fingerprint == two.fingerprint
    other = Corpus(generated.corpus_of(tmp_path / "source", tmp_path / "other.corpus", 1000, seed=1))
    assert other.fingerprint != one.fingerprint
    # Parts differ from each other.
    assert (one.matrix(np.arange(300)) != one.matrix(np.arange(300, 600))).nnz


def test_a_disk_is_not_filled(tmp_path, source):
    generated.save(tmp_path / "source", source)
    with pytest.raises(SystemExit, match="GB are free"):
        generated.corpus_of(tmp_path / "source", tmp_path / "huge.corpus", 10**12)
    assert not (tmp_path / "huge.corpus").exists()


def timed(system, n_docs, seconds, memory=0.1):
    """The runs of one training, with 20 topics."""
    from results import Run

    names = {
        "row": f"reviews-{n_docs}",
        "fingerprint": "",
        "system": system,
        "n_topics": 20,
        "alpha": None,
        "n_layers": None,
        "repeat": 0,
    }
    times = {"seconds": seconds, "cpu_seconds": seconds, "n_docs": n_docs, "n_jobs": 1}
    return [Run(**names, measure=name, score=score, **times) for name, score in (("r2", 0.5), ("GB", memory))]


def test_times_are_extrapolated_from_the_most_that_was_measured():
    from timing import estimate

    runs = timed("bp-slda", 1_000, 2.0) + timed("bp-slda", 10_000, 15.0) + timed("bp-slda/epoch", 100_000, 12.0)
    assert str(estimate(runs, "bp-slda", 20, 10_000)) == "15"
    # 13 seconds more for 9,000 documents more.
    assert str(estimate(runs, "bp-slda", 20, 19_000)) == "~28 (10,000)"
    assert str(estimate(runs[:2], "bp-slda", 20, 19_000, n_sizes=1)) == "~38 (1,000)"
    assert estimate(runs[:2], "bp-slda", 20, 19_000) is None, "one number of documents says nothing of a line"
    assert str(estimate(runs[:2], "bp-slda", 20, 1_000)) == "2"
    # Times that do not rise say nothing of a line.
    assert str(estimate(runs[:2] + timed("bp-slda", 10_000, 1.0), "bp-slda", 20, 20_000)) == "~2 (10,000)"
    # Ten epochs.
    assert str(estimate(runs, "bp-slda", 20, 100_000)) == "~120 (one epoch)"
    assert str(estimate(runs, "bp-slda", 20, 1_000_000)) == "~1,200 (100,000, one epoch)"
    assert str(estimate(runs + timed("bp-slda", 100_000, 110.0), "bp-slda", 20, 100_000)) == "110"
    assert estimate(runs, "bp-slda", 5, 10_000) is None
    # Forty epochs, and a linear model after them.
    *_, last = runs = timed("bp-lda/epoch", 100_000, 12.0)
    runs.append(replace(last, measure="share after the epochs", score=0.5))
    assert str(estimate(runs, "bp-lda", 20, 100_000)) == "~246 (one epoch)"


def test_what_is_expected_to_exceed_the_limit_or_memory_is_not_trained():
    from rows import Row
    from running import Job
    from timing import within

    def allowed(system, limit, memory=0.1, before=timed):
        job = Job(Row("reviews-10000", Path(), "stars", "r2", n_docs=10_000), system, 0, 20)
        found = within(before(system, 1_000, 2.0, memory), job, limit)
        return None if found is None else found.system

    # Of one number of documents a known part of the time does not grow with them: a second is tried where the first was quick.
    assert allowed("medlda", 2) == "medlda"
    assert allowed("medlda", 1.9) is None
    # Two that are nearly the same are as one.
    near = partial(allowed, before=lambda *last: timed(last[0], 900, 1.9) + timed(*last))
    assert near("medlda", 2) == "medlda"
    allowed = partial(allowed, before=lambda *last: timed(last[0], 100, 0.2) + timed(*last))

    assert allowed("medlda", 20) == "medlda"
    assert allowed("medlda", 19) is None
    assert allowed("medlda", 20, memory=1e6) is None
    assert allowed("bp-lda", 20, memory=1e6) is None
    assert allowed("bp-slda", 20, memory=1e6) == "bp-slda"
    assert allowed("bp-slda", 19) == allowed("bp-slda", 2) == "bp-slda/epoch"
    assert allowed("bp-slda", 1.9) is None


def test_what_failed_is_said_to_have_failed(tmp_path):
    from results import append_runs
    from rows import Row
    from running import Job, failed
    from timing import Drawn, estimate

    documents = Drawn(Row("reviews", tmp_path / "reviews.jsonl", "stars", "r2"), tmp_path, 1)
    append_runs(tmp_path / "runs.csv", [failed(Job(documents.sized(1_000), "medlda", 0, 20), "MemoryError: ")])
    assert str(estimate(documents.runs(tmp_path / "runs.csv"), "medlda", 20, 1_000)) == "failed"


def test_documents_drawn_after_others_are_others(tmp_path):
    from rows import Row
    from timing import Drawn

    rows = []
    for name, size in (("a", 10), ("b", 20)):
        path = tmp_path / name / "reviews.jsonl"
        path.parent.mkdir()
        path.write_bytes(bytes(size))
        rows.append(Drawn(Row("reviews-stars", path, "stars", "r2"), tmp_path / "generated", 1).sized(1_000))
    assert rows[0].path != rows[1].path
    assert rows[0].fingerprint != rows[1].fingerprint


def test_one_training_is_timed(tmp_path):
    from baselines.search import LabelledSearch
    from rows import Row
    from running import Job
    from systems import SYSTEMS
    from timing import make

    for system in SYSTEMS:
        model = make(Job(Row("reviews", tmp_path, "stars", "r2"), system, 0, 4), 1)
        parts = [model.topics, model.linear] if system == "bp-lda" else [model, *dict(getattr(model, "steps", [])).values()]
        assert not any(isinstance(part, LabelledSearch) for part in parts)


def figure5(directory, *arguments):
    systems = ["bp-slda", "bp-lda", "linear-tfidf"]
    return run_here(directory, "figure5", "--topics", "3", *arguments, "--systems", *systems, "--processes", "1")


@pytest.mark.slow
def test_figure5_times_systems_and_says_what_is_extrapolated(tmp_path):
    rng = np.random.default_rng(0)
    with gzip.open(tmp_path / "tripadvisor_79k.jsonl.gz", "wt", encoding="utf-8") as file:
        for _ in range(150):
            stars = int(rng.integers(1, 6))
            words = [f"{'good' if n < 3 * stars else 'bad'}{rng.integers(9)}" for n in range(18)]
            file.write(json.dumps({"text": " ".join(words), "stars": stars}) + "\n")
    first = figure5(tmp_path, "--documents", "600")
    assert first.returncode == 0, first.stderr
    lines = {line.split("|")[1].strip(): line for line in first.stdout.splitlines() if line.startswith("|")}
    assert {f"600 documents: training, s {clock}" for clock in ("of the processor", "by the clock")} <= set(lines)
    assert lines["BP-sLDA, defaults of mirrorlda"].count("~") == 0
    with (tmp_path / "out" / "figure5.csv").open(newline="") as file:
        runs = list(csv.DictReader(file))
    assert {(run["system"], run["n_docs"]) for run in runs} == {(name, "600") for name in ("bp-slda", "bp-lda", "linear-tfidf")}
    assert all(float(run["score"]) > 0.3 for run in runs if run["measure"] == "r2")

    # Six thousand documents are expected to take longer than the limit, and six hundred alone say little of them.
    second = figure5(tmp_path, "--documents", "600", "6000", "--limit", "0.0001")
    assert second.returncode == 0, second.stderr
    table = second.stdout[second.stdout.index("| 6,000 documents: training, s of the processor") :]
    line = next(line for line in table.splitlines() if line.startswith("| linear, tf-idf"))
    assert [cell.strip() for cell in line.split("|")[2:-1]] == ["", "0 of 1"]
    assert (tmp_path / "out" / "figure5.csv").read_text().count("\n") == 1 + len(runs)
    assert (tmp_path / "out" / "figure5.svg").exists()
