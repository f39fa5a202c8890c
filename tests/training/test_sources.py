"""Training, inference and scores from a corpus on disk: the same bits as from memory."""

import threading
import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from mirrorlda.datasets import make_topics
from mirrorlda.topics import describe
from numpy.testing import assert_array_equal

from mirrorlda import (
    Corpus,
    CorpusError,
    CorpusWriter,
    TopicClassifier,
    TopicModel,
    TopicRegressor,
    Vocabulary,
    load,
    predict_files,
    prepare,
    save,
)
from mirrorlda.data.corpus.manifest import Target
from mirrorlda.data.documents import as_documents
from mirrorlda.data.parts import ahead
from mirrorlda.training.sources import Examples, exact_sum, rounded, sample

N_DOCS, N_WORDS = 700, 80


@pytest.fixture(autouse=True)
def small_windows(monkeypatch):
    """Shards of one block and windows of less than all: every path of large corpora is taken by small ones."""
    for name in ("shards", "selection", "manifest"):
        monkeypatch.setattr(f"mirrorlda.data.corpus.{name}.SHARD_DOCS", 256)
    monkeypatch.setattr("mirrorlda.data.corpus.selection.SHARD_BLOCKS", 1)
    monkeypatch.setattr("mirrorlda.training.epoch_order._WINDOW_DOCS", 512)
    monkeypatch.setattr("mirrorlda.training.sources.PART_DOCS", 100)
    monkeypatch.setattr("mirrorlda.training.loop.SCORED_DOCS", 200)
    monkeypatch.setattr("mirrorlda.method.fitted_model.READ_DOCS", 90)
    monkeypatch.setattr("mirrorlda.estimators.estimator._SUMMARY_DOCS", 300)


@pytest.fixture(scope="module")
def data():
    return make_topics(N_DOCS, N_WORDS, 3, n_outputs=2, random_state=0)


def targets(kind, data):
    """y as `fit` takes it, and as the writer does, with its description."""
    signs = (data.y > 0).astype(int)
    y = {
        "number": data.y[:, 0],
        "numbers": data.y,
        "missing": np.where(np.arange(N_DOCS) % 3 == 0, data.y[:, 0], np.nan),
        "ratings": np.digitize(data.y[:, 0], [-1, 0, 1]) + 1.0,
        "classes": np.array(["low", "middle", "high"])[signs.sum(axis=1)],
        "missing classes": np.where(np.arange(N_DOCS) % 3 == 0, np.array(["no", "yes"], object)[signs[:, 0]], None),
        "labels": signs,
    }[kind]
    if kind == "labels":
        return y, [[name for name, there in zip("ab", row, strict=True) if there] for row in signs], Target("labels", ("l",))
    if y.dtype.kind in "UO":
        return y, list(y), Target("classes", ("c",))
    return y, y, Target("numbers", ("u", "v")[: 1 if y.ndim == 1 else 2])


@pytest.fixture
def stored(tmp_path, data):
    def write(kind, split=None):
        y, written, target = targets(kind, data)
        with CorpusWriter(tmp_path / "c", N_WORDS, target=target) as writer:
            writer.add(data.X, written, split=split)
        return y, Corpus(tmp_path / "c")

    return write


FITS = [
    (TopicRegressor, "number", {}),
    (TopicRegressor, "numbers", {"alpha": "auto"}),
    (TopicRegressor, "missing", {}),
    (TopicRegressor, "number", {"early_stopping": True, "validation_fraction": 0.2, "n_epochs": 6, "n_iter_no_change": 1}),
    (TopicRegressor, "ratings", {"response": "ordinal"}),
    (TopicRegressor, "ratings", {"response": "poisson"}),
    (TopicRegressor, "number", {"readability": 0.0, "count_scale": "linear", "word_learning_rate": 0.0}),
    (TopicClassifier, "classes", {}),
    (TopicClassifier, "classes", {"class_weight": "balanced"}),
    (TopicClassifier, "classes", {"class_weight": {"low": 2, "middle": 1, "high": 0.5}}),
    (TopicClassifier, "classes", {"class_weight": "balanced", "early_stopping": True, "n_epochs": 6, "n_iter_no_change": 1}),
    (TopicClassifier, "missing classes", {}),
    (TopicClassifier, "missing classes", {"class_weight": {"no": 0.1, "yes": 1 / 3}}),
    (TopicClassifier, "labels", {}),
    (TopicClassifier, "labels", {"class_weight": "balanced"}),
    (TopicClassifier, "ratings", {}),
    (TopicModel, "number", {}),
    (TopicModel, "classes", {"alpha": "auto"}),
]


@pytest.mark.parametrize(("estimator", "kind", "options"), FITS)
def test_a_fit_from_disk_is_that_from_memory_to_the_bit(estimator, kind, options, stored, data):
    y, corpus = stored(kind)
    settings = {"n_topics": 3, "n_epochs": 3, "batch_size": 60, "random_state": 0, **options}
    in_memory = estimator(**settings)
    in_memory.fit(data.X.astype(np.float32), *([] if estimator is TopicModel else [y]))
    from_disk = estimator(**settings, n_jobs=2).fit(corpus)
    for name, value in vars(in_memory).items():
        other = vars(from_disk)[name]
        if isinstance(value, np.ndarray) and name != "classes_":
            assert_array_equal(other, value, err_msg=name)
    assert from_disk.history_ == in_memory.history_
    assert_array_equal(from_disk.transform(corpus), in_memory.transform(data.X.astype(np.float32)))
    if estimator is not TopicModel:
        assert_array_equal(from_disk.predict(corpus), in_memory.predict(data.X.astype(np.float32)))
    if kind == "labels":
        assert from_disk.classes_.tolist() == ["a", "b"]


@given(
    st.lists(st.floats(0, 1e6) | st.sampled_from([0.1, 1 / 3, 1e300, 5e-324]), min_size=1, max_size=60).flatmap(
        lambda weights: st.tuples(st.just(weights), st.integers(0, len(weights)))
    )
)
def test_weights_add_up_to_the_same_bits_in_parts(drawn):
    weights, end = np.array(drawn[0]), drawn[1]
    documents = as_documents(sp.csr_array((len(weights), 1), dtype=np.float32))
    total = exact_sum(weights[:end]) + exact_sum(weights[end:])
    assert rounded(total) == Examples(documents, np.zeros(len(weights)), weights).total_weight
    assert rounded(total - exact_sum(weights[:end])) == Examples(documents, np.zeros(len(weights)), weights[end:]).total_weight


@pytest.mark.parametrize("heavy", [np.inf, 1e308, 2e12, 5e-13, -1.0])
def test_class_weights_of_a_corpus_are_checked(stored, data, heavy):
    y, corpus = stored("classes")
    model = TopicClassifier(class_weight={"low": heavy, "middle": heavy, "high": heavy}, n_epochs=1)
    for arguments in [(corpus,), (data.X, y)]:
        with pytest.raises(ValueError, match="class_weight must be finite"):
            model.fit(*arguments)


@pytest.mark.parametrize(
    ("estimator", "kind"), [(TopicRegressor, "number"), (TopicClassifier, "classes"), (TopicModel, "number")]
)
def test_a_part_of_a_corpus_is_like_rows_of_a_matrix(estimator, kind, stored, data):
    is_test = np.arange(N_DOCS) % 4 == 1
    y, corpus = stored(kind, np.where(is_test, "test", "train").tolist())
    X = sp.csr_array(data.X.astype(np.float32))
    settings = {"n_topics": 3, "n_epochs": 3, "batch_size": 60, "random_state": 0}
    in_memory = estimator(**settings).fit(X[~is_test], y[~is_test])
    from_disk = estimator(**settings).fit(corpus.select(split="train"))
    assert_array_equal(from_disk.components_, in_memory.components_)
    assert from_disk.score(corpus.select(split="test")) == in_memory.score(X[is_test], y[is_test])


def test_scores_are_of_documents_that_have_a_target(stored, data):
    y, corpus = stored("missing")
    model = TopicRegressor(3, n_epochs=2, random_state=0).fit(corpus)
    known = ~np.isnan(y)
    assert model.score(corpus) == model.score(data.X[known].astype(np.float32), y[known])


def test_labels_are_compared_by_their_names(tmp_path, data):
    signs = data.y > 0

    def written(name, labels, columns=(0, 1)):
        y = [[label for label, column in zip(labels, columns, strict=True) if row[column]] for row in signs]
        with CorpusWriter(tmp_path / name, N_WORDS, target=Target("labels", ("l",))) as writer:
            writer.add(data.X, y)
        return Corpus(tmp_path / name)

    model = TopicClassifier(3, n_epochs=3, random_state=0).fit(written("ab", "ab"))
    assert model.score(written("ba", "ba", (1, 0))) == model.score(Corpus(tmp_path / "ab"))
    assert {line.split()[2] for line in describe(model).splitlines()[1:]} <= {"a", "b"}
    only = model.score(written("b", "b", (1,)))
    expected = (model.predict(data.X.astype(np.float32)) == np.stack([np.zeros(N_DOCS), signs[:, 1]], axis=1)).all(axis=1)
    assert only == expected.mean()
    with pytest.raises(ValueError, match=r"the label 'x', which is not one of \['a', 'b'\]"):
        model.score(written("xb", "xb"))


def test_numbers_are_compared_by_their_names(tmp_path, data):
    for name, names in (("uv", ("u", "v")), ("vu", ("v", "u")), ("u", ("u",))):
        with CorpusWriter(tmp_path / name, N_WORDS, target=Target("numbers", names)) as writer:
            writer.add(data.X, data.y[:, : len(names)])
    model = TopicRegressor(3, n_epochs=3, random_state=0).fit(Corpus(tmp_path / "uv"))
    assert model.target_names_ == ["u", "v"]
    save(model, tmp_path / "model")
    assert load(tmp_path / "model").target_names_ == ["u", "v"]
    assert load(tmp_path / "model").data_fingerprint_ == Corpus(tmp_path / "uv").fingerprint
    for name in ("vu", "u"):
        with pytest.raises(ValueError, match=r"targets of the corpus are .*, those of the model \['u', 'v'\]"):
            model.score(Corpus(tmp_path / name))


def test_scores_of_another_kind_of_target_are_refused(stored):
    numbers = TopicRegressor(3, n_epochs=1, random_state=0).fit(stored("number")[1])
    with pytest.raises(ValueError, match="holds classes as targets"):
        numbers.score(stored("classes")[1])
    classes = TopicClassifier(3, n_epochs=1, random_state=0).fit(stored("classes")[1])
    with pytest.raises(ValueError, match=r"one class a document, but .* holds labels"):
        classes.score(stored("labels")[1])
    with pytest.raises(ValueError, match="the classes of the model are"):
        classes.score(stored("ratings")[1])


def test_paths_and_texts_are_not_taken_for_counts(tmp_path, data):
    with pytest.raises(TypeError, match=r"X is a path, .*: open it with mirrorlda\.Corpus"):
        TopicRegressor().fit(tmp_path / "c", data.y)
    model = TopicRegressor(3, n_epochs=1, random_state=0).fit(data.X, data.y)
    texts = ["nice hotel", "dirty room"]
    kinds = [texts, np.array(texts), np.array([None, *texts], object), pd.Series(texts), pd.Series(texts, dtype="string")]
    for wrong in [*kinds, pd.Series(texts, dtype="category")]:
        with pytest.raises(ValueError, match="X holds text: count its words"):
            model.predict(wrong)
    for wrong in (np.ones(3), pd.Series([1.0, 2.0]), sp.coo_array(np.ones(3))):
        with pytest.raises((ValueError, TypeError), match=r"Expected (2D|a 2-dimensional)|[Dd]imension|1-?[dD]"):
            model.predict(wrong)


def test_what_a_corpus_has_no_place_for_is_refused(stored, data):
    _, corpus = stored("number")
    with pytest.raises(ValueError, match="score takes no sample_weight"):
        TopicModel(3, n_epochs=1, random_state=0).fit(corpus).score(corpus, sample_weight=np.ones(N_DOCS))
    for estimator in (TopicRegressor, TopicModel):
        with pytest.raises(ValueError, match="partial_fit takes a matrix"):
            estimator(3).partial_fit(corpus, data.y[:, 0])


@pytest.mark.parametrize(
    ("estimator", "kind", "message"),
    [
        (TopicRegressor, "classes", "needs numbers as targets, but .* holds classes as targets"),
        (TopicRegressor, "labels", "holds labels as targets"),
    ],
)
def test_targets_of_the_wrong_kind_are_refused(estimator, kind, message, stored):
    with pytest.raises(ValueError, match=message):
        estimator().fit(stored(kind)[1])


def test_what_a_fit_on_a_corpus_refuses(tmp_path, data, stored):
    with CorpusWriter(tmp_path / "none", N_WORDS) as writer:
        writer.add(data.X)
    for estimator in (TopicRegressor, TopicClassifier):
        with pytest.raises(ValueError, match=r"holds no(ne| targets)"):
            estimator().fit(Corpus(tmp_path / "none"))
        with pytest.raises(ValueError, match="a corpus holds its targets"):
            estimator().fit(Corpus(tmp_path / "none"), data.y)
    with CorpusWriter(tmp_path / "missing", N_WORDS, target=Target("numbers", ("y",))) as writer:
        writer.add(data.X, [None] * N_DOCS)
    with pytest.raises(ValueError, match=r"no document of .* has a target"):
        TopicRegressor().fit(Corpus(tmp_path / "missing"))
    with CorpusWriter(tmp_path / "empty", N_WORDS) as writer:
        pass
    with pytest.raises(ValueError, match="has no documents"):
        TopicModel().fit(Corpus(tmp_path / "empty"))
    model = TopicRegressor(3, n_epochs=1, random_state=0).fit(stored("number")[1])
    with CorpusWriter(tmp_path / "other", N_WORDS + 1) as writer:
        writer.add(np.ones((3, N_WORDS + 1)))
    with pytest.raises(ValueError, match=f"has {N_WORDS + 1} words, but the model was fitted with {N_WORDS}"):
        model.predict(Corpus(tmp_path / "other"))


def test_a_corpus_with_other_words_is_refused(tmp_path, data):
    for name in ("a", "b"):
        with CorpusWriter(tmp_path / name, N_WORDS, vocabulary=Vocabulary([f"{name}{i}" for i in range(N_WORDS)])) as writer:
            writer.add(data.X)
    model = TopicModel(3, n_epochs=1, random_state=0).fit(Corpus(tmp_path / "a"))
    assert model.vocabulary_["a7"] == 7
    assert describe(model, model.vocabulary_) == describe(model)
    assert set(describe(model, n_words=5).split()[-5:]) <= {f"a{i}" for i in range(N_WORDS)}
    with pytest.raises(ValueError, match="another vocabulary than that of the model"):
        model.transform(Corpus(tmp_path / "b"))
    assert not hasattr(model.fit(data.X), "vocabulary_")


def test_seed_words_may_be_words_of_the_corpus(tmp_path, data):
    with CorpusWriter(tmp_path / "c", N_WORDS, vocabulary=Vocabulary([f"w{i}" for i in range(N_WORDS)])) as writer:
        writer.add(data.X)
    by_name = TopicModel(3, n_epochs=1, random_state=0, seed_words={1: ["w5", "w7"]}).fit(Corpus(tmp_path / "c"))
    by_number = TopicModel(3, n_epochs=1, random_state=0, seed_words={1: [5, 7]}).fit(Corpus(tmp_path / "c"))
    assert_array_equal(by_name.components_, by_number.components_)


def test_damage_that_an_epoch_comes_upon_is_an_error_and_leaves_the_model(stored, data):
    _, corpus = stored("number")
    model = TopicRegressor(3, n_epochs=2, random_state=0).fit(data.X, data.y[:, 0])
    before = dict(vars(model))
    file = sorted(corpus.path.glob("*/*.shard"))[2]
    content = bytearray(file.read_bytes())
    content[100] ^= 1
    file.write_bytes(content)
    with pytest.raises(CorpusError, match=r"00002\.shard: block 0 .* does not have its checksum"):
        model.fit(Corpus(corpus.path))
    assert vars(model) == before


# Reading ahead


def test_items_are_made_one_ahead_on_another_thread():
    made, threads = [], set()

    def items():
        for i in range(5):
            made.append(i)
            threads.add(threading.get_ident())
            yield i

    assert [(item, threading.get_ident() in threads) for item in ahead(items())] == [(i, False) for i in range(5)]
    assert made == list(range(5))


def test_an_error_ahead_arrives_where_the_items_are_used():
    def items():
        yield 1
        raise RuntimeError("gone")

    made = ahead(items())
    assert next(made) == 1
    with pytest.raises(RuntimeError, match="gone"):
        next(made)


def test_leaving_early_ends_the_thread():
    before = threading.active_count()
    for item in ahead(iter(range(1000))):
        if item == 3:
            break
    else:
        pytest.fail("nothing was left")
    del item
    assert threading.active_count() <= before + 1


def test_a_sample_is_evenly_spread_over_the_documents():
    seen = []

    class Numbers:
        n_docs = 1_000_000

        def take(self, numbers):
            seen.append(numbers)

    sample(Numbers(), 10_000)
    [numbers] = seen
    assert len(numbers) == 39 * 256
    assert numbers[0] == 0
    assert numbers[-1] > 999_000
    assert len(np.unique(numbers // 256)) == 39


# Memory


def peak(function, *arguments):
    """Bytes that Python and NumPy hold at most, beyond those before."""
    tracemalloc.start()
    try:
        function(*arguments)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [TopicRegressor, TopicModel])
def test_memory_of_a_fit_does_not_grow_with_the_documents(tmp_path, monkeypatch, estimator):
    monkeypatch.setattr("mirrorlda.estimators.fitting._START_DOCS", 512)
    monkeypatch.setattr("mirrorlda.training.sources.MOST_HELD_OUT", 100)
    sizes = []
    for name, n_docs in (("few", 4_000), ("many", 16_000)):
        data = make_topics(n_docs, N_WORDS, 3, n_outputs=1, random_state=0)
        sizes.append(data.X.data.nbytes + data.X.indices.nbytes)
        with CorpusWriter(tmp_path / name, N_WORDS, target=Target("numbers", ("y",))) as writer:
            writer.add(data.X, data.y)
    model = estimator(3, n_epochs=1, batch_size=100, random_state=0, early_stopping=True)
    model.fit(Corpus(tmp_path / "few"))
    few, many = (peak(model.fit, Corpus(tmp_path / name)) for name in ("few", "many"))
    # Some bytes of each of the documents, and what Python happens to hold.
    assert many - few < 0.2 * (sizes[1] - sizes[0])


def test_memory_of_predictions_to_a_file_does_not_grow_with_the_documents(tmp_path):
    texts = ["clean quiet room", "noisy dirty room", "a sunny place", "rude staff"]
    for name, n_docs in (("few", 4_000), ("many", 16_000)):
        (tmp_path / f"{name}.csv").write_text("text,y\n" + "".join(f"{texts[i % 4]},{i % 4}\n" for i in range(n_docs)))
    corpus = prepare(tmp_path / "few.csv", tmp_path / "c", text="text", target="y")
    model = TopicRegressor(2, n_epochs=1, random_state=0).fit(corpus)
    settings = {"text": "text", "topics": True, "batch_rows": 500}
    predict_files(model, tmp_path / "few.csv", tmp_path / "out.csv", **settings)
    few, many = (
        peak(lambda name=name: predict_files(model, tmp_path / f"{name}.csv", tmp_path / "out.csv", **settings))
        for name in ("few", "many")
    )
    assert many < 1.2 * few + 50_000
