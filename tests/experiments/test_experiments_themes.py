"""Measures of readability, against plain NumPy on a few planted documents, and the command that prints them."""

import contextlib
import csv
import gzip
import itertools
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from test_experiments_paper import call

sys.path.insert(0, str(Path(__file__).parents[2] / "experiments"))

import themes
from documents import Part, read_parts
from results import Summary, read_runs
from rows import Row, examples

# tomotopy's types lack a module, of which Python warns when they are first imported.
pytestmark = pytest.mark.filterwarnings("ignore:builtin type .* has no __module__ attribute:DeprecationWarning")

N_TOPICS, N_OF_TOPIC, N_TRAIN, N_TEST = 3, 12, 120, 80


def write_hotels(path, n_docs=N_TRAIN + N_TEST):
    """Texts of words of three subjects, the third of which is rare; stars follow the first, one aspect the second.

    Each subject's words are as frequent as their numbers are low. Returns the proportions.
    """
    rng = np.random.default_rng(0)
    theta = rng.dirichlet([2.0, 2.0, 0.2], n_docs)
    of_word = 1 / np.arange(1, N_OF_TOPIC + 1)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        for number, shares in enumerate(theta):
            subjects = rng.choice(N_TOPICS, 60, p=shares)
            words = rng.choice(N_OF_TOPIC, 60, p=of_word / of_word.sum())
            stars = int(np.clip(round(1 + 5 * shares[0]), 1, 5))
            line = {"text": " ".join(f"{'abc'[s]}{w}" for s, w in zip(subjects, words, strict=True)), "stars": stars}
            line |= dict.fromkeys(themes.ASPECTS, stars) | {"rooms": round(1 + 4 * shares[1])}
            line |= {"location": int(rng.integers(1, 6)), "liked": stars > 2}
            line["split"] = "train" if number < N_TRAIN else "test"
            file.write(json.dumps(line) + "\n")
    return theta


@pytest.fixture(scope="module")
def hotels(tmp_path_factory):
    path = tmp_path_factory.mktemp("hotels") / "hotels.jsonl.gz"
    return path, write_hotels(path)


def planted(path, theta, target="stars"):
    """A row of the file, its data, and planted topics as an estimator that knows the proportions."""
    row = Row("hotels", path, target, {"stars": "r2", "liked": "roc_auc", None: "npmi"}[target])
    train, test, vectorizer = read_parts(path, "text", row.n_words)
    names = vectorizer.get_feature_names_out()
    components = np.array([[1 / (1 + int(name[1:])) if name[0] == topic else 1e-4 for name in names] for topic in "abc"])
    components /= components.sum(axis=1, keepdims=True)
    known = {N_TRAIN: theta[:N_TRAIN], N_TEST: theta[N_TRAIN:]}
    topics = SimpleNamespace(components_=components, transform=lambda X: known[X.shape[0]])
    return row, examples(row, 0), topics, train, test, names


def shown_words(components, theta, names):
    """Ten words with the largest p(w|t)^0.5 ln(p(w|t) / p(w))."""
    shares = theta.mean(axis=0)
    mean = shares @ components
    return names[np.argsort(-np.sqrt(components) * np.log(components / mean), axis=1)[:, :10]]


def plain_npmi(occurs):
    """Of all pairs of columns of booleans, by the definition."""
    n, size = occurs.shape
    found = np.ones((size, size))
    for i, j in itertools.product(range(size), repeat=2):
        both, apart = (occurs[:, i] & occurs[:, j]).sum() / n, occurs[:, i].sum() * occurs[:, j].sum() / n**2
        found[i, j] = np.log((both + 1e-12) / apart) / -np.log(both + 1e-12)
    return found


def test_measures_of_planted_topics_are_those_of_plain_numpy(hotels):
    path, theta = hotels
    row, data, topics, train, test, names = planted(path, theta)
    found, kept = themes.measured(topics, row, data)
    np.testing.assert_array_equal(kept, theta[N_TRAIN:])
    assert list(found) == ["npmi", "c_v", "diversity", "used", "n_effective", "linear", "aspects"]

    tests, shares = theta[N_TRAIN:], theta[N_TRAIN:].mean(axis=0)
    words = shown_words(topics.components_, tests, names)
    texts = [set(line["text"].split()) for line in test.lines]
    occurs = [np.array([[word in text for word in topic] for text in texts]) for topic in words]
    tables = [plain_npmi(each) for each in occurs]
    assert found["npmi"] == pytest.approx(np.mean([table[np.triu_indices(10, 1)].mean() for table in tables]))
    # Texts are shorter than a window, so that each is one.
    cosines = [table @ table.sum(0) / np.linalg.norm(table, axis=1) / np.linalg.norm(table.sum(0)) for table in tables]
    assert found["c_v"] == pytest.approx(np.mean(cosines))
    assert found["diversity"] == len(set(words.ravel())) / 30 == 1
    assert found["used"] == np.mean(shares > 0.1) == pytest.approx(2 / 3)
    assert found["n_effective"] == pytest.approx(np.exp(-np.sum(shares * np.log(shares))))

    stars, test_stars = (np.array(part.values("stars"), float) for part in (train, test))
    centre = theta[:N_TRAIN].mean(axis=0)
    centred = theta[:N_TRAIN] - centre
    slopes = np.linalg.solve(centred.T @ centred + 1e-3 * np.eye(3), centred.T @ (stars - stars.mean()))
    left = test_stars - stars.mean() - (tests - centre) @ slopes
    assert found["linear"] == pytest.approx(1 - (left**2).sum() / ((test_stars - test_stars.mean()) ** 2).sum(), abs=1e-6)
    assert found["linear"] > 0.8

    of_aspects = []
    for aspect in themes.ASPECTS:
        rating, known = np.array(test.values(aspect), float), np.array(train.values(aspect), float)
        for level in range(1, 6):
            rating[test_stars == level] -= known[stars == level].mean()
        if np.ptp(rating) == 0:
            of_aspects.append(0.0)
            continue
        by_topic = [abs(np.corrcoef(column[::2], rating[::2])[0, 1]) for column in tests.T]
        of_aspects.append(abs(np.corrcoef(tests[1::2, np.argmax(by_topic)], rating[1::2])[0, 1]))
    assert found["aspects"] == pytest.approx(np.mean(of_aspects))
    assert of_aspects[themes.ASPECTS.index("rooms")] > 0.3


def test_proportions_alone_predict_classes(hotels):
    row, data, topics, *_ = planted(*hotels, "liked")
    assert themes.measured(topics, row, data)[0]["linear"] > 0.9
    # Proportions that say nothing predict nothing.
    silent = np.random.default_rng(0).dirichlet(np.ones(3), 200)
    row, data, topics, *_ = planted(hotels[0], silent, "liked")
    assert 0.3 < themes.measured(topics, row, data)[0]["linear"] < 0.7


def test_topics_without_a_target_have_nothing_to_predict(hotels):
    row, data, topics, *_ = planted(*hotels, None)
    found, _ = themes.measured(topics, row, data)
    assert list(found) == ["npmi", "c_v", "diversity", "used", "n_effective", "npmi by probability", "aspects"]
    # The topics are apart, so the most probable words are the most relevant ones.
    assert found["npmi by probability"] == pytest.approx(found["npmi"])


def test_shares():
    assert themes.of_shares(np.array([2.0, 2.0, 0.0, 0.0])) == {"used": 0.5, "n_effective": pytest.approx(2)}
    found = themes.of_shares(np.array([0.9, 0.08, 0.02]))
    assert found["used"] == pytest.approx(1 / 3)
    assert found["n_effective"] == pytest.approx(0.9**-0.9 * 0.08**-0.08 * 0.02**-0.02)


def test_stability_is_that_of_the_best_permutation():
    rng = np.random.default_rng(0)
    first = rng.dirichlet(np.full(4, 0.3), 50)
    seeds = [first, first[:, [2, 0, 3, 1]] + 0.1 * rng.random((50, 4)), rng.dirichlet(np.full(4, 0.3), 50)]

    def best(a, b):
        return max(
            np.mean([np.corrcoef(a[:, column], b[:, order[column]])[0, 1] for column in range(4)])
            for order in itertools.permutations(range(4))
        )

    pairs = {(i, j): best(seeds[i], seeds[j]) for i, j in itertools.combinations(range(3), 2)}
    assert themes.stability(seeds) == pytest.approx(
        [np.mean([value for pair, value in pairs.items() if seed in pair]) for seed in range(3)]
    )
    assert pairs[0, 1] > 0.9 > 0.4 > pairs[0, 2]
    assert themes.matched(first, first[:, ::-1]) == pytest.approx(1)


def test_a_constant_column_correlates_with_nothing():
    first = np.array([[0.5, 0.1], [0.5, 0.2], [0.5, 0.9]])
    np.testing.assert_allclose(themes.correlations(first, first), [[0, 0], [0, 1]])


def test_aspects_are_measured_where_every_line_has_them():
    line = dict.fromkeys(["stars", *themes.ASPECTS], 3)
    assert themes.has_aspects(Part(None, [line, line]))
    assert not themes.has_aspects(Part(None, [line, line | {"sleep": None}]))
    assert not themes.has_aspects(Part(None, [{"stars": 3}]))


def test_intervals_are_students():
    assert Summary(0.5, 0.2, 3).half_width == pytest.approx(4.3027 * 0.2 / np.sqrt(3), rel=1e-4)
    assert np.isnan(Summary(0.5, n_runs=1).half_width)


def test_the_interval_of_stability_is_the_jackknifes():
    import quality

    rng = np.random.default_rng(0)
    pairs = {pair: rng.random() for pair in itertools.combinations(range(5), 2)}
    of_seeds = [np.mean([value for pair, value in pairs.items() if seed in pair]) for seed in range(5)]
    run = {"row": "r", "fingerprint": "", "system": "s", "n_topics": None, "alpha": None, "n_layers": None}
    run |= {"measure": "stability", "seconds": 1.0, "cpu_seconds": 1.0, "n_docs": 1, "n_jobs": 1}
    runs = [quality.Run(**run, repeat=seed, score=score) for seed, score in enumerate(of_seeds)]
    found = quality.stability_of(runs)
    without = [np.mean([value for pair, value in pairs.items() if seed not in pair]) for seed in range(5)]
    error = np.sqrt(4 / 5 * np.sum((np.array(without) - np.mean(without)) ** 2))
    assert found.mean == pytest.approx(np.mean(list(pairs.values())))
    assert found.deviation / np.sqrt(5) == pytest.approx(error)
    assert np.isnan(quality.stability_of(runs[:2]).half_width)


def tables(output):
    """First cell of the header -> its lines, by their first cell and the column's name."""
    found = {}
    for text in output.split("\n\n"):
        lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
        if len(lines) > 2:
            header, _, *rest = lines
            found[header[0]] = {line[0]: dict(zip(header[1:], line[1:], strict=True)) for line in rest}
    return found


OURS = ["mirrorlda", "mirrorlda-one-matrix", "bp-lda"]
FAST = ["--systems", *OURS, "linear-tfidf", "--jobs", "1"]


@pytest.mark.slow
def test_quality_shows_readability_beside_prediction(tmp_path):
    write_hotels(tmp_path / "hotels.jsonl.gz")
    arguments = ["--file", "hotels.jsonl.gz", "--target", "stars", "--topics", "3", "--seeds", "2", "--out", "runs.csv", *FAST]
    with contextlib.chdir(tmp_path):
        output = call("quality", *arguments, "--unsupervised", "--pages", "pages")
        assert output.returncode == 0, output.stderr
        again = call("quality", *arguments, "--unsupervised", "--pages", "pages")
    assert (again.stdout, again.stderr.count("repeat")) == (output.stdout, 0)

    runs = read_runs(tmp_path / "runs.csv")
    assert {run.n_topics for run in runs if run.system != "linear-tfidf"} == {3}
    counted = {(run.system, run.row, run.measure): sum(r.key[:-1] == run.key[:-1] for r in runs) for run in runs}
    expected = {"r2", *themes.MEASURES} - {"npmi by probability"}
    assert {measure for system, row, measure in counted if (system, row) == ("mirrorlda", "hotels-stars")} == expected
    shown = tables(output.stdout)
    assert set(shown) == {"row", "hotels-stars", "hotels-topics"}
    assert list(shown["hotels-topics"]) == ["mirrorlda TopicModel"]
    lines = shown["hotels-stars"]
    assert list(lines) == ["mirrorlda", "mirrorlda, readability=0", "linear, tf-idf", "TopicModel, then linear"]
    ours = lines["mirrorlda"]
    assert float(ours["R2"].split()[0]) > 0.6
    # The subjects' words are together, and the seeds find the same topics.
    assert float(ours["NPMI"].split()[0]) > 0.05
    assert float(ours["stability"]) > 0.7
    assert ours["R2"].count("±") == ours["NPMI"].count("±") == 1
    assert (ours["seeds"], ours["documents"]) == ("2", str(N_TRAIN))
    assert lines["linear, tf-idf"]["NPMI"] == ""

    page = (tmp_path / "pages" / "themes.md").read_text()
    assert page.startswith("![hotels-stars](themes.svg)\n")
    assert {name: found for name, found in shown.items() if name != "row"} == tables(page)
    assert "`python experiments/quality.py --file hotels.jsonl.gz --target stars" in page.splitlines()[-1]
    assert "<svg" in (tmp_path / "pages" / "themes.svg").read_text()
    with (tmp_path / "pages" / "themes.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == len(runs)


@pytest.mark.slow
def test_quality_of_other_libraries_topics(tmp_path):
    write_hotels(tmp_path / "hotels.jsonl.gz")
    arguments = ["--file", "hotels.jsonl.gz", "--target", "stars", "--topics", "3", "--seeds", "1", "--out", "runs.csv"]
    systems = ["lda", "slda", "topica-lda", "topica-slda", "scholar"]
    with contextlib.chdir(tmp_path):
        output = call("quality", *arguments, "--documents", "150", "--unsupervised", "--jobs", "1", "--systems", *systems)
    assert output.returncode == 0, output.stderr
    runs = read_runs(tmp_path / "runs.csv")
    assert [run.error for run in runs if run.error] == []
    found = {(run.row, run.system) for run in runs if run.measure == "npmi"}
    supervised = {("hotels-stars-150-documents", system) for system in ("lda", "slda", "topica-slda", "scholar")}
    assert found == supervised | {("hotels-topics-150-documents", system) for system in ("lda", "topica-lda")}
    scores = {run.system: run.score for run in runs if run.measure == "r2"}
    assert min(scores[system] for system in ("lda", "slda", "topica-slda")) > 0.5
    # A variational autoencoder learns little from 95 documents.
    assert scores["scholar"] > -1


def test_what_takes_minutes_trains_on_few_documents(tmp_path, monkeypatch):
    import quality

    write_hotels(tmp_path / "hotels.jsonl.gz")
    monkeypatch.setattr(quality, "MOST_DOCUMENTS", 50)
    row = Row("hotels", tmp_path / "hotels.jsonl.gz", "stars", "r2")
    slow, whole = (quality.load(quality.Job(row, system, 0)) for system in ("scholar", "mirrorlda"))
    assert (slow.X.shape[0], len(slow.y), whole.X.shape[0]) == (50, 50, N_TRAIN)
    assert slow.X_test.shape == whole.X_test.shape
    rows = {(tuple(x.toarray().ravel()), y) for x, y in zip(whole.X, whole.y, strict=True)}
    assert {(tuple(x.toarray().ravel()), y) for x, y in zip(slow.X, slow.y, strict=True)} <= rows
