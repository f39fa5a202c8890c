"""From files to a corpus, and from files to predictions."""

import csv
import gzip
import io
import json
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mirrorlda.readers import BadFileError, BadRowError
from mirrorlda.responses import SquaredError
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.pipeline import make_pipeline

from mirrorlda import (
    Corpus,
    CorpusWriter,
    TextDefinition,
    TextVectorizer,
    TopicClassifier,
    TopicModel,
    TopicRegressor,
    Vocabulary,
    predict_files,
    prepare,
)

GOOD, BAD = ["clean", "quiet", "friendly", "sunny"], ["dirty", "noisy", "rude", "dark"]
N_DOCS = 240


@pytest.fixture(scope="module")
def reviews():
    """Rows with a text, stars, verdict, tags, id and split."""
    rng = np.random.default_rng(0)
    rows = []
    for number in range(N_DOCS):
        good = int(rng.integers(0, 7))
        words = [*rng.choice(GOOD, good), *rng.choice(BAD, 6 - good), "room", "Hôtel"]
        rows.append(
            {
                "id": f"r{number}",
                "review": " ".join(rng.permutation(words)) + ('\n, "and"' if number % 9 == 0 else ""),
                "stars": None if number % 11 == 5 else 1 + good / 2,
                "verdict": "good" if good > 3 else "bad",
                "tags": [name for name, there in (("happy", good > 2), ("angry", good < 4)) if there],
                "split": "test" if number % 4 == 0 else "train",
            }
        )
    return rows


@pytest.fixture
def jsonl(tmp_path, reviews):
    path = tmp_path / "reviews.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in reviews)
    return path


@pytest.fixture
def table(tmp_path, reviews):
    path = tmp_path / "reviews.csv"
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [name for name in reviews[0] if name != "tags"], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(reviews)
    return path


def test_a_corpus_holds_what_the_files_hold(jsonl, tmp_path, reviews):
    corpus = prepare(jsonl, tmp_path / "c", text="review", target="stars", id="id", split="split", n_threads=2)
    assert corpus.n_docs == N_DOCS
    assert corpus.target.kind == "numbers"
    assert corpus.ids([3, 7]) == ["r3", "r7"]
    assert corpus.splits == ("test", "train")
    assert corpus.select(split="test").n_docs == N_DOCS // 4
    y, labelled = corpus.targets(np.arange(N_DOCS))
    assert [value if there else None for value, there in zip(y, labelled, strict=True)] == [row["stars"] for row in reviews]
    texts = [row["review"] for row in reviews]
    assert (corpus.matrix() != corpus.vocabulary.count(texts)).nnz == 0


def test_the_vocabulary_is_that_of_the_training_documents(jsonl, tmp_path, reviews):
    corpus = prepare(jsonl, tmp_path / "c", text="review", split="split", min_docs=2, max_words=9)
    expected = TextVectorizer(9, min_docs=2).fit([row["review"] for row in reviews if row["split"] == "train"])
    assert corpus.vocabulary == expected.vocabulary_
    everything = prepare(jsonl, tmp_path / "c", text="review", min_docs=2, max_words=9)
    assert everything.vocabulary == TextVectorizer(9, min_docs=2).fit([row["review"] for row in reviews]).vocabulary_


def test_splits_without_a_training_part_leave_all_words(tmp_path):
    (tmp_path / "a.csv").write_text("text,part\none two,a\nthree,b\n")
    assert sorted(prepare(tmp_path / "a.csv", tmp_path / "c", text="text", split="part").vocabulary.words) == [
        "one",
        "three",
        "two",
    ]


def test_a_fraction_of_the_documents_is_for_tests(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("text\n" + "".join(f"{name}{number} room\n" for number in range(1000)))

    def parts(**options):
        corpus = prepare(tmp_path / "*.csv", tmp_path / "c", text="text", **{"test_fraction": 0.2, **options})
        assert sorted(corpus.splits) == ["test", "train"]
        return corpus, corpus.select(split="test"), corpus.select(split="train")

    corpus, test, train = parts()
    assert abs(test.n_docs - 400) < 4 * np.sqrt(2000 * 0.2 * 0.8)
    assert test.n_docs + train.n_docs == 2000
    # Each document but one word is its own: a word is known if its document is of the training part.
    assert len(corpus.vocabulary) == train.n_docs + 1
    assert (test.matrix().sum(axis=1) == 1).all()
    assert (train.matrix().sum(axis=1) == 2).all()
    # The files are not drawn alike, nor neighbours together.
    drawn = np.array([f"{name}{number}" not in corpus.vocabulary for name in "ab" for number in range(1000)])
    assert abs((drawn[:1000] & drawn[1000:]).sum() - 40) < 4 * np.sqrt(40)
    assert abs((drawn[1:] & drawn[:-1]).sum() - 80) < 4 * np.sqrt(80)
    assert parts(batch_rows=7, n_threads=2)[0].fingerprint == corpus.fingerprint
    assert parts(seed=1)[0].vocabulary != corpus.vocabulary
    assert abs(parts(test_fraction=0.5)[1].n_docs - 1000) < 4 * np.sqrt(500)


def test_the_test_documents_do_not_depend_on_rows_that_are_skipped(tmp_path):
    rows = [f"w{number},{number}\n" for number in range(300)]
    (tmp_path / "b.csv").write_text("text,y\n" + "".join(rows))

    def words(target_kind=None):
        options = {"target": "y", "target_kind": target_kind, "bad_rows": "skip", "test_fraction": 0.3}
        return prepare([tmp_path / "a.csv", tmp_path / "b.csv"], tmp_path / "c", text="text", **options).vocabulary.words

    (tmp_path / "a.csv").write_text("text,y\nx,1\n")
    whole = set(words("numbers"))
    # A file of which nothing is left, and a row.
    (tmp_path / "a.csv").write_text("text,y\nx\n")
    (tmp_path / "b.csv").write_text("text,y\n" + "".join(["no,x\n" if number == 3 else row for number, row in enumerate(rows)]))
    with pytest.warns(UserWarning, match="2 bad rows skipped"):
        assert set(words("numbers")) == whole - {"w3", "x"}


def test_splits_are_said_or_drawn(table, tmp_path):
    for options, message in (
        ({"split": "split", "test_fraction": 0.2}, "both say which documents are for tests"),
        ({"test_fraction": 1.0}, "test_fraction must be at least 0 and less than 1, got 1.0"),
        ({"test_fraction": -0.1}, "test_fraction must be"),
        ({"test_fraction": 0.1, "seed": -1}, "seed must be a whole number"),
    ):
        with pytest.raises(ValueError, match=message):
            prepare(table, tmp_path / "c", text="review", **options)
    assert prepare(table, tmp_path / "c", text="review").splits == ()


@pytest.mark.parametrize(
    ("column", "kind"), [("stars", "numbers"), ("verdict", "classes"), ("tags", "labels"), ("split", "classes")]
)
def test_the_kind_of_the_target_is_found(jsonl, table, tmp_path, column, kind):
    assert prepare(jsonl, tmp_path / "c", text="review", target=column).target.kind == kind
    if column != "tags":
        assert prepare(table, tmp_path / "c", text="review", target=column).target.kind == kind


def test_a_column_that_is_mostly_numbers_is_asked_about(tmp_path):
    (tmp_path / "a.csv").write_text("text,y\none,1\ntwo,2\nthree,NA\nfour,4\n")
    with pytest.raises(
        ValueError, match=r"3 numbers and 1 other values, the first 'NA' in .*a\.csv:4: say target_kind='numbers'"
    ):
        prepare(tmp_path / "a.csv", tmp_path / "c", text="text", target="y")
    with pytest.warns(UserWarning, match="1 bad rows skipped"):
        corpus = prepare(tmp_path / "a.csv", tmp_path / "c", text="text", target="y", target_kind="numbers", bad_rows="skip")
    assert repr(corpus) == "<Corpus of 3 documents, 3 words, numbers 'y'>"
    assert prepare(tmp_path / "a.csv", tmp_path / "c", text="text", target="y", target_kind="classes").target.kind == "classes"


def test_a_table_does_not_take_the_place_of_its_input(table, corpus):
    model = TopicRegressor(2, n_epochs=1, random_state=0).fit(corpus("stars"))
    before = table.read_bytes()
    for files in (table, str(table), [table.parent / "*.csv"]):
        with pytest.raises(ValueError, match=r"reviews\.csv is among the files that are read"):
            predict_files(model, files, table, text="review")
    assert table.read_bytes() == before


def test_numbers_may_be_classes(table, tmp_path):
    corpus = prepare(table, tmp_path / "c", text="review", target="stars", target_kind="classes")
    assert set(corpus.target.values) == {"1.0", "1.5", "2.0", "2.5", "3.0", "3.5", "4.0"}


def test_labels_of_one_field(tmp_path):
    (tmp_path / "a.csv").write_text("text,tags\none,b; a\ntwo,\nthree,;\nfour,a\n")
    for kind in (None, "auto", "labels"):
        options = {"text": "text", "target": "tags", "target_kind": kind, "label_separator": ";"}
        corpus = prepare(tmp_path / "a.csv", tmp_path / "c", **options)
        assert (corpus.target.kind, corpus.labels) == ("labels", ["a", "b"])
        y, labelled = corpus.targets(np.arange(4))
        assert labelled.tolist() == [True, False, True, True]
        assert y[labelled].tolist() == [[1, 1], [0, 0], [1, 0]]
    with pytest.raises(ValueError, match="there must be a target"):
        prepare(tmp_path / "a.csv", tmp_path / "c", text="text", label_separator=";")
    with pytest.raises(ValueError, match="no column is asked for as 'labels'"):
        prepare(tmp_path / "a.csv", tmp_path / "c", text="text", target="tags", target_kind="classes", label_separator=";")


TWO_VALUES = [
    ("csv", ["0", "1", "", "0"], ("0", "1")),
    ("csv", ["+1", "-1"], ("+1", "-1")),
    ("csv", ["0", "1", "2"], "numbers"),
    ("csv", ["1", "1"], "numbers"),
    # Three ways to write two numbers, two to write one.
    ("csv", ["0", "1", "1.0"], "numbers"),
    ("csv", ["1", "1.0"], "numbers"),
    ("csv", ["no", "yes"], ("no", "yes")),
    ("jsonl", [3, 1, None, 3], (3, 1)),
    ("jsonl", [0.5, 1.5], (0.5, 1.5)),
    ("jsonl", [0, 1.5], "numbers"),
    ("jsonl", ["0", "1"], ("0", "1")),
    ("jsonl", [True, False], (True, False)),
    ("jsonl", [["a"], ["a", "b"]], "labels"),
    ("svm", [1, -1], (1.0, -1.0)),
]


@pytest.mark.parametrize(("format", "values", "found"), TWO_VALUES)
def test_two_numbers_may_be_two_classes(tmp_path, format, values, found):
    path = tmp_path / f"a.{format}"
    if format == "csv":
        path.write_text("text,y\n" + "".join(f"room,{value}\n" for value in values))
    elif format == "svm":
        path.write_text("".join(f"{value} 1:1\n" for value in values))
    else:
        path.write_text("".join(json.dumps({"text": "room", "y": value}) + "\n" for value in values))
    options = {"target": "label"} if format == "svm" else {"text": "text", "target": "y"}
    target = prepare(path, tmp_path / "c", target_kind="auto", **options).target
    if isinstance(found, str):
        assert target.kind == found
    else:
        assert (target.kind, target.values) == ("classes", found)


def test_two_numbers_are_numbers_unless_asked_and_in_several_columns(tmp_path):
    (tmp_path / "a.csv").write_text("text,u,v\none,0,1\ntwo,1,0\n")
    assert (
        prepare(tmp_path / "a.csv", tmp_path / "c", text="text", target=["u", "v"], target_kind="auto").target.kind == "numbers"
    )
    assert prepare(tmp_path / "a.csv", tmp_path / "c", text="text", target="u").target.kind == "numbers"
    assert prepare(tmp_path / "a.csv", tmp_path / "c", text="text", target_kind="auto").target is None


def test_several_columns_are_numbers(tmp_path):
    (tmp_path / "a.csv").write_text("text,u,v\none,1,2\ntwo,,\nthree,3,4.5\n")
    corpus = prepare(tmp_path / "a.csv", tmp_path / "c", text="text", target=["u", "v"])
    y, labelled = corpus.targets(np.arange(3))
    assert y[labelled].tolist() == [[1, 2], [3, 4.5]]
    assert corpus.target.names == ("u", "v")
    (tmp_path / "a.csv").write_text("text,u,v\none,1,2\ntwo,7,\n")
    with pytest.raises(BadRowError, match=r"a\.csv:3: found no value of 'v', expected all of \['u', 'v'\] or none"):
        prepare(tmp_path / "a.csv", tmp_path / "c", text="text", target=["u", "v"])


def test_a_vocabulary_and_a_definition_may_be_given(table, tmp_path, reviews):
    definition = TextDefinition(lowercase=False, stop_words=("room",))
    corpus = prepare(table, tmp_path / "c", text="review", definition=definition)
    assert "Hôtel" in corpus.vocabulary
    assert "room" not in corpus.vocabulary
    own = Vocabulary(["noisy", "quiet"])
    assert prepare(table, tmp_path / "c", text="review", vocabulary=own).vocabulary == own
    for options in ({"definition": definition}, {"max_words": 10}, {"min_docs": 2}):
        with pytest.raises(ValueError, match="a vocabulary that is given leaves no choice"):
            prepare(table, tmp_path / "c", text="review", vocabulary=own, **options)


def test_files_of_counts_need_no_text(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:2 4:1\n0 2:3\n")
    corpus = prepare(tmp_path / "a.svm", tmp_path / "c", target="label")
    assert corpus.matrix().toarray().tolist() == [[2, 0, 0, 1], [0, 3, 0, 0]]
    assert corpus.vocabulary is None
    (tmp_path / "docword.x.txt").write_text("2\n3\n3\n1 1 2\n1 3 1\n2 2 5\n")
    (tmp_path / "vocab.x.txt").write_text("red\ngreen\nblue\n")
    corpus = prepare(tmp_path / "docword.x.txt", tmp_path / "c")
    assert corpus.vocabulary.words == ["red", "green", "blue"]
    assert corpus.matrix().toarray().tolist() == [[2, 0, 1], [0, 5, 0]]


def test_words_of_counts_keep_their_case(tmp_path):
    (tmp_path / "docword.x.txt").write_text("1\n2\n1\n1 1 2\n")
    (tmp_path / "vocab.x.txt").write_text("The\nroom\n")
    corpus = prepare(tmp_path / "docword.x.txt", tmp_path / "c")
    assert corpus.vocabulary.count(["The room"]).toarray().tolist() == [[1, 1]]
    with pytest.raises(ValueError, match="files of counts leave no choice"):
        prepare(tmp_path / "docword.x.txt", tmp_path / "c", max_words=1)


def test_an_open_file_is_read_twice_from_where_it_stood(jsonl, tmp_path):
    with gzip.open(jsonl) as file:
        content = io.BytesIO(file.read())
    corpus = prepare(content, tmp_path / "c", text="review", target="stars", format="jsonl")
    assert corpus.n_docs == N_DOCS
    assert corpus.n_entries > 0


def test_every_document_has_an_id(tmp_path):
    (tmp_path / "a.csv").write_text("text,id\none,1\ntwo,\n")
    with pytest.raises(BadRowError, match=r"a\.csv:3: found no value of 'id'"):
        prepare(tmp_path / "a.csv", tmp_path / "c", text="text", id="id")


def test_words_of_skipped_rows_are_not_in_the_vocabulary(tmp_path):
    (tmp_path / "a.csv").write_text("text,y\none,1\nsecret,x\nthree,3\n")
    with pytest.warns(UserWarning, match="1 bad rows skipped"):
        corpus = prepare(tmp_path / "a.csv", tmp_path / "c", text="text", target="y", target_kind="numbers", bad_rows="skip")
    assert sorted(corpus.vocabulary.words) == ["one", "three"]


def test_what_cannot_be_prepared_says_why_and_leaves_nothing(table, tmp_path):
    for options, message in (
        ({"target": "stars", "id": "stars"}, "must be different columns"),
        ({"target_kind": "numbers"}, "there must be a target"),
        ({"target": "stars", "target_kind": "float"}, "target_kind must be one of"),
        ({"target": ["stars", "verdict"], "target_kind": "classes"}, "can only be numbers"),
        ({"target": "star"}, "no column 'star'.*did you mean 'stars'"),
        ({"target": "verdict", "target_kind": "numbers"}, r"reviews\.csv:3:.*found the text '(good|bad)'"),
        ({"min_docs": 1000}, "no word is left for the vocabulary"),
        ({"text": None, "target": "stars"}, "name the column of the text"),
    ):
        with pytest.raises(ValueError, match=message):
            prepare(table, tmp_path / "c", **{"text": "review", **options})
        assert not (tmp_path / "c").exists()
    (tmp_path / "a.csv").write_text("text,y\none,\ntwo,\n")
    with pytest.raises(ValueError, match="the column 'y' has no values"):
        prepare(tmp_path / "a.csv", tmp_path / "c", text="text", target="y")


def test_bad_rows_are_skipped_when_asked_and_told_of(tmp_path):
    (tmp_path / "a.csv").write_text("text,y\none,1\ntwo\nthree,3\n")
    with pytest.raises(BadRowError, match=r"a\.csv:3"):
        prepare(tmp_path / "a.csv", tmp_path / "c", text="text", target="y")
    with pytest.warns(UserWarning, match="1 bad rows skipped, 2 read"):
        assert prepare(tmp_path / "a.csv", tmp_path / "c", text="text", target="y", bad_rows="skip").n_docs == 2


@pytest.mark.parametrize("mark", ["NA", "nan", "n/a", "inf"])
def test_numbers_and_marks_of_missing_ones_are_no_classes(tmp_path, mark):
    (tmp_path / "x.csv").write_text(f"text,y\na,3\nb,{mark}\nc,{mark}\n")
    with pytest.raises(ValueError, match=rf"1 numbers and 2 other values, the first '{mark}'"):
        prepare(tmp_path / "x.csv", tmp_path / "c", text="text", target="y")


def test_progress_is_shown_when_asked(table, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    prepare(table, tmp_path / "c", text="review", verbose=1)
    shown = capsys.readouterr().err
    assert "looking for words" in shown
    assert "writing documents" in shown


# Predictions


@pytest.fixture
def corpus(jsonl, tmp_path):
    def make(target=None):
        return prepare(jsonl, tmp_path / "c", text="review", target=target)

    return make


def read_csv(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_numbers_predicted_from_files_are_those_of_predict(jsonl, corpus, tmp_path, reviews):
    model = TopicRegressor(3, random_state=0).fit(corpus("stars"))
    n_docs = predict_files(model, jsonl, tmp_path / "out.csv", text="review", columns=["id", "stars"], topics=True)
    assert n_docs == N_DOCS
    rows = read_csv(tmp_path / "out.csv")
    assert list(rows[0]) == ["id", "stars", "prediction", "topic_0", "topic_1", "topic_2"]
    assert [row["id"] for row in rows] == [row["id"] for row in reviews]
    texts = [row["review"] for row in reviews]
    assert_allclose([float(row["prediction"]) for row in rows], model.predict_text(texts), rtol=1e-6)
    assert_allclose([float(row["topic_1"]) for row in rows], model.transform_text(texts)[:, 1], rtol=1e-5)


def test_classes_and_their_probabilities(table, corpus, tmp_path, reviews):
    model = TopicClassifier(3, random_state=0).fit(corpus("verdict"))
    predict_files(model, table, tmp_path / "out.parquet", text="review")
    out = pq.read_table(tmp_path / "out.parquet").to_pydict()
    X = model.vocabulary_.count([row["review"] for row in reviews])
    assert list(out) == ["prediction", "probability_bad", "probability_good"]
    assert out["prediction"] == model.predict(X).tolist()
    assert_allclose(out["probability_good"], model.predict_proba(X)[:, 1], rtol=1e-6)


def test_labels(jsonl, corpus, tmp_path):
    model = TopicClassifier(3, random_state=0).fit(corpus("tags"))
    predict_files(model, jsonl, tmp_path / "out.jsonl", text="review")
    first = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])
    assert list(first) == ["prediction_angry", "prediction_happy", "probability_angry", "probability_happy"]


def test_a_corpus_and_a_model_without_targets(corpus, tmp_path):
    written = corpus()
    model = TopicModel(3, n_epochs=2, random_state=0).fit(written)
    out = io.BytesIO()
    assert predict_files(model, written, out, output_format="csv") == N_DOCS
    rows = list(csv.DictReader(io.StringIO(out.getvalue().decode())))
    assert list(rows[0]) == ["id", "topic_0", "topic_1", "topic_2"]
    assert_allclose([float(row["topic_2"]) for row in rows], model.transform(written)[:, 2], rtol=1e-5)


@pytest.mark.parametrize("vectorizer", [CountVectorizer, TextVectorizer])
def test_a_pipeline_brings_its_own_words(vectorizer, table, tmp_path, reviews):
    texts = [row["review"] for row in reviews]
    pipeline = make_pipeline(vectorizer(), TopicClassifier(3, random_state=0)).fit(texts, [row["verdict"] for row in reviews])
    predict_files(pipeline, table, tmp_path / "out.csv", text="review")
    assert [row["prediction"] for row in read_csv(tmp_path / "out.csv")] == pipeline.predict(texts).tolist()


def test_all_steps_of_a_pipeline_count_for_a_corpus_too(corpus, tmp_path, reviews):
    written = corpus("verdict")
    names = written.vocabulary.words
    pipeline = make_pipeline(CountVectorizer(vocabulary=names), TfidfTransformer(), TopicClassifier(3, random_state=0))
    pipeline.fit([row["review"] for row in reviews], [row["verdict"] for row in reviews])
    predict_files(pipeline, written, tmp_path / "out.csv")
    expected = pipeline[1:].predict_proba(written.matrix())[:, 1]
    assert_allclose([float(row["probability_good"]) for row in read_csv(tmp_path / "out.csv")], expected, rtol=1e-5)


def test_words_of_svmlight_are_numbered_as_one_says(tmp_path):
    X = np.random.default_rng(0).poisson(1, (100, 4))
    model = TopicRegressor(2, n_epochs=2, random_state=0).fit(X, X[:, 0] - X[:, 3])
    (tmp_path / "a.svm").write_text(
        "".join(f"0 {' '.join(f'{w + 1}:{n}' for w, n in enumerate(row) if n and w < 3)}\n" for row in X)
    )
    with pytest.raises(ValueError, match="numbered from 0"):
        predict_files(model, tmp_path / "a.svm", tmp_path / "out.csv")
    predict_files(model, tmp_path / "a.svm", tmp_path / "out.csv", zero_based=False)
    expected = model.predict(np.where(np.arange(4) < 3, X, 0).astype(np.float32))
    assert_allclose([float(row["prediction"]) for row in read_csv(tmp_path / "out.csv")], expected, rtol=1e-5)


def test_batches_do_not_show(jsonl, corpus, tmp_path):
    model = TopicRegressor(3, random_state=0).fit(corpus("stars"))
    for rows in (7, 1000):
        predict_files(model, jsonl, tmp_path / f"{rows}.csv", text="review", batch_rows=rows, topics=True)
    assert (tmp_path / "7.csv").read_bytes() == (tmp_path / "1000.csv").read_bytes()


def test_what_cannot_be_predicted_says_why_and_leaves_nothing(jsonl, corpus, tmp_path):
    model = TopicRegressor(3, n_epochs=1, random_state=0).fit(corpus("stars"))
    (tmp_path / "bad.csv").write_text("review\nfine\n\xff,x\n", encoding="latin-1")
    for error, options, message in (
        (BadRowError, {"files": tmp_path / "bad.csv"}, r"bad\.csv:3"),
        (ValueError, {"files": corpus("stars")}, "a corpus has counts and ids"),
        (ValueError, {"model": CountVectorizer()}, "one of mirrorlda's estimators or end with one, got CountVectorizer"),
        (ValueError, {"output": tmp_path / "out.docx"}, "out.docx"),
    ):
        settings = {"model": model, "files": jsonl, "output": tmp_path / "out.csv", "text": "review", **options}
        with pytest.raises(error, match=message):
            predict_files(**settings)
        assert not list(tmp_path.glob("*out*"))
    without = TopicRegressor(3, n_epochs=1).fit(corpus("stars").matrix(), np.arange(N_DOCS))
    with pytest.raises(ValueError, match="has no vocabulary_"):
        predict_files(without, jsonl, tmp_path / "out.csv", text="review")


@pytest.fixture(scope="module")
def stars():
    """A model that knows a few words."""
    X = np.random.default_rng(0).poisson(1, (100, 3))
    pipeline = make_pipeline(
        CountVectorizer(vocabulary=["clean", "dirty", "room"]), TopicRegressor(2, n_epochs=1, random_state=0)
    )
    return pipeline.fit([" ".join(np.repeat(["clean", "dirty", "room"], row)) for row in X], X[:, 0] - X[:, 1])


class Pipe(io.BytesIO):
    """A stream that cannot seek."""

    def seekable(self):
        return False


def test_the_users_table_with_predictions_added_csv(stars, tmp_path):
    data = 'id,text,note\n1,clean room,\n2,"dirty, ""bad""\nroom",x\n'
    expected = [["1", "clean room", ""], ["2", 'dirty, "bad"\nroom', "x"]]
    (tmp_path / "a.csv").write_text(data)
    predict_files(stars, tmp_path / "a.csv", tmp_path / "out.csv", text="text", columns="all")
    rows = read_csv(tmp_path / "out.csv")
    assert list(rows[0]) == ["id", "text", "note", "prediction"]
    assert [list(row.values())[:3] for row in rows] == expected
    assert_allclose([float(row["prediction"]) for row in rows], stars.predict([row[1] for row in expected]), rtol=1e-6)
    out = io.BytesIO()
    predict_files(stars, Pipe(data.encode()), out, text="text", columns="all", format="csv", output_format="csv")
    assert out.getvalue() == (tmp_path / "out.csv").read_bytes()
    predict_files(stars, tmp_path / "a.csv", tmp_path / "out.parquet", text="text", columns="all")
    found = pq.read_table(tmp_path / "out.parquet").to_pydict()
    assert found["note"] == [None, "x"]
    assert found["text"] == [row[1] for row in expected]
    assert_allclose(found["prediction"], stars.predict(found["text"]), rtol=1e-6)


def test_the_users_table_with_predictions_added_json_lines(stars, tmp_path):
    rows = [
        {"text": "clean room", "who": {"name": "é", "tags": [1, "x", None]}, "mixed": 1},
        {"mixed": "one", "text": "dirty", "more": [{"a": 1.0}, {"b": 2}]},
        {"text": "room", "mixed": None},
    ]
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    expected = [{name: row.get(name) for name in ("text", "who", "mixed", "more")} for row in rows]
    for files in (io.BytesIO(data), Pipe(data)):
        out = io.BytesIO()
        options = {"text": "text", "columns": "all", "format": "jsonl", "output_format": "jsonl"}
        assert predict_files(stars, files, out, **options) == 3
        found = [json.loads(line) for line in out.getvalue().decode().splitlines()]
        assert [list(row) for row in found] == [["text", "who", "mixed", "more", "prediction"]] * 3
        predictions = [row.pop("prediction") for row in found]
        assert found == expected
        assert_allclose(predictions, stars.predict([row["text"] for row in rows]), rtol=1e-6)


@pytest.mark.parametrize("batch_rows", [2, 8192])
def test_the_users_table_with_predictions_added_parquet(stars, tmp_path, batch_rows):
    given = pa.table(
        {
            "when": pa.array([1, None, 3], pa.timestamp("ns", "UTC")),
            "text": ["clean", "dirty room", ""],
            "price": pa.array([Decimal("1.20"), Decimal("2.00"), Decimal("99999.99")]),
            "weight": pa.array([0.1, None, 0.3], pa.float32()),
            "parts": [None, None, [{"a": 1, "b": None}]],
            "kind": pa.array(["x", "y", "x"]).dictionary_encode(),
        }
    )
    pq.write_table(given, tmp_path / "a.parquet")
    predict_files(stars, tmp_path / "a.parquet", tmp_path / "out.parquet", text="text", columns="all", batch_rows=batch_rows)
    found = pq.read_table(tmp_path / "out.parquet")
    assert found.column_names == [*given.column_names, "prediction"]
    assert found.select(given.column_names).equals(given)
    predict_files(stars, tmp_path / "a.parquet", tmp_path / "out.csv", text="text", columns="all", batch_rows=batch_rows)
    rows = read_csv(tmp_path / "out.csv")
    assert rows[2]["when"] == "1970-01-01T00:00:00.000000003+00:00"
    assert [row["weight"] for row in rows] == ["0.1", "", "0.3"]
    assert json.loads(rows[2]["parts"]) == [{"a": 1, "b": None}]


def test_named_columns_are_written_as_they_are(stars, tmp_path):
    given = pa.table(
        {
            "text": ["clean", "dirty room", ""],
            "date": pa.array([1, None, 3], pa.date32()),
            "when": pa.array([1, None, 3], pa.timestamp("ns", "UTC")),
            "price": pa.array([Decimal("1.20"), Decimal("2.00"), Decimal("99999.99")]),
            "parts": [None, None, [{"a": 1, "b": None}]],
            "small": pa.array([1, 2, None], pa.int8()),
        }
    )
    pq.write_table(given, tmp_path / "a.parquet")
    pq.write_table(given.slice(0, 0), tmp_path / "none.parquet")
    names = ["parts", "date", "small", "when", "price"]
    for file, expected in (("a", given), ("none", given.slice(0, 0))):
        predict_files(stars, tmp_path / f"{file}.parquet", tmp_path / "out.parquet", text="text", columns=names)
        found = pq.read_table(tmp_path / "out.parquet")
        assert found.column_names == [*names, "prediction"]
        assert found.select(names).equals(expected.select(names))
    with pytest.raises(ValueError, match=r"no column 'dat'; .* did you mean 'date'"):
        predict_files(stars, tmp_path / "a.parquet", tmp_path / "out.parquet", text="text", columns=["dat"])

    rows = [{"text": "clean", "who": {"name": "a"}, "rest": 1}, {"text": "dirty", "who": [[None, 1.5]], "rest": 2}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    predict_files(stars, tmp_path / "a.jsonl", tmp_path / "out.jsonl", text="text", columns=["who"])
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["who"] for row in written] == [row["who"] for row in rows]
    assert list(written[0]) == ["who", "prediction"]


@pytest.mark.parametrize("kind", [pd.DataFrame, pa.table])
def test_a_table_in_memory_is_not_taken_for_names_of_files(kind, tmp_path):
    table = kind({"text": ["clean"], "stars": [1.0]})
    with pytest.raises(TypeError, match=r"got a (DataFrame|Table): write it to a file, or count its texts with TextVectorizer"):
        prepare(table, tmp_path / "c", text="text", target="stars")


def test_a_target_is_not_taken_as_it_is(tmp_path):
    pq.write_table(pa.table({"text": ["clean"], "date": pa.array([1], pa.date32())}), tmp_path / "a.parquet")
    with pytest.raises(BadFileError, match=r"the column 'date' holds date32\[day\], expected text, numbers"):
        prepare(tmp_path / "a.parquet", tmp_path / "c", text="text", target="date")


def test_all_columns_do_not_take_a_predictions_name(stars, tmp_path):
    (tmp_path / "a.csv").write_text("text,prediction\nclean,3\n")
    with pytest.raises(ValueError, match=r"the columns \['prediction'\] are those of the predictions"):
        predict_files(stars, tmp_path / "a.csv", tmp_path / "out.csv", text="text", columns="all")


RNG = np.random.default_rng(0)
X = RNG.poisson(1, (60, 3))
MODELS = {
    "gaussian": (TopicRegressor(2, n_epochs=1), X[:, 0] / 2),
    "poisson": (TopicRegressor(2, n_epochs=1, response="poisson"), X[:, 0]),
    "ordinal": (TopicRegressor(2, n_epochs=1, response="ordinal"), X[:, 0] > 1),
    "targets": (TopicRegressor(2, n_epochs=1), X[:, :2]),
    "two": (TopicClassifier(2, n_epochs=1), np.where(X[:, 0] > 1, "a", "b")),
    "objects": (TopicClassifier(2, n_epochs=1), np.where(X[:, 0] > 1, "a", "b").astype(object)),
    "three": (TopicClassifier(3, n_epochs=1), np.minimum(X[:, 0], 2)),
    "labels": (TopicClassifier(2, n_epochs=1), (X[:, :2] > 1).astype(int)),
    "own": (TopicRegressor(2, n_epochs=1, response=SquaredError()), X[:, 0] / 2),
    "topics": (TopicModel(2, n_epochs=1), None),
}


@pytest.mark.parametrize("name", MODELS)
def test_input_without_rows_gives_a_table_without_rows(name, tmp_path):
    estimator, y = MODELS[name]
    vectorizer = CountVectorizer(vocabulary=["a", "b", "c"])
    model = make_pipeline(vectorizer, clone(estimator).set_params(random_state=0)).fit(
        [" ".join(np.repeat(["a", "b", "c"], row)) + " a" for row in X], y
    )
    (tmp_path / "none.csv").write_text("id,text\n")
    (tmp_path / "one.csv").write_text("id,text\n1,a\n")
    for ending in ("csv", "parquet", "jsonl"):
        for n_docs, file in enumerate(("none", "one")):
            options = {"text": "text", "columns": "all", "topics": True}
            assert predict_files(model, tmp_path / f"{file}.csv", tmp_path / f"{file}-out.{ending}", **options) == n_docs
    assert (tmp_path / "none-out.csv").read_text() == (tmp_path / "one-out.csv").read_text().partition("\n")[0] + "\n"
    assert (tmp_path / "none-out.jsonl").read_text() == ""
    none, one = (pq.read_schema(tmp_path / f"{file}-out.parquet") for file in ("none", "one"))
    assert none.equals(one)


def test_a_stream_and_a_corpus_without_documents(stars, tmp_path):
    out = io.BytesIO()
    options = {"text": "text", "columns": "all", "format": "jsonl", "output_format": "csv"}
    assert predict_files(stars, Pipe(b""), out, **options) == 0
    assert out.getvalue() == b'"prediction"\n'
    (tmp_path / "a.csv").write_text("text,id\n")
    out = io.BytesIO()
    assert predict_files(stars, tmp_path / "a.csv", out, text="text", columns=["id"], output_format="csv") == 0
    assert out.getvalue() == b'"id","prediction"\n'
    with CorpusWriter(tmp_path / "c", 3, vocabulary=Vocabulary(["clean", "dirty", "room"])) as writer:
        writer.add(np.zeros((0, 3)))
    out = io.BytesIO()
    assert predict_files(stars[-1], Corpus(tmp_path / "c"), out, output_format="csv") == 0
    assert out.getvalue() == b'"id","prediction"\n'


def test_a_column_of_a_predictions_name_is_refused(tmp_path, corpus):
    (tmp_path / "a.csv").write_text("review,prediction\nclean room,3\n")
    model = TopicRegressor(3, n_epochs=1, random_state=0).fit(corpus("stars"))
    with pytest.raises(ValueError, match=r"the columns \['prediction'\] are those of the predictions"):
        predict_files(model, tmp_path / "a.csv", tmp_path / "out.csv", text="review", columns=["prediction"])
    (tmp_path / "a.csv").write_text("review,topic_0\nclean room,3\n")
    with pytest.raises(ValueError, match=r"the columns \['topic_0'\] are those of the predictions"):
        predict_files(model, tmp_path / "a.csv", tmp_path / "out.csv", text="review", columns=["topic_0"], topics=True)
    other = prepare(tmp_path / "a.csv", tmp_path / "other", text="review")
    with pytest.raises(ValueError, match="words, but the model was fitted with"):
        predict_files(model, other, tmp_path / "out.csv")


def test_the_corpus_opens_again(jsonl, corpus, tmp_path):
    written = corpus("stars")
    again = Corpus(tmp_path / "c")
    assert again.fingerprint == written.fingerprint
    assert_array_equal(again.frequencies, written.frequencies)
