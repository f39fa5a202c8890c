"""Documents without a target: which they are, what is learned from them, what is refused."""

import logging
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from mirrorlda.datasets import make_topics
from numpy.testing import assert_allclose, assert_array_equal

from mirrorlda import TopicClassifier, TopicRegressor
from mirrorlda.training import loop

N_DOCS, N_HELD_OUT = 800, 400
SUPERVISED = [TopicRegressor, TopicClassifier]


@pytest.fixture(scope="module")
def planted():
    """Short documents of many words, so that few of the words occur in the documents with a target."""
    return make_topics(N_DOCS + N_HELD_OUT, 2000, 3, doc_length=30, beta=0.3, n_outputs=1, random_state=0)


@pytest.fixture(scope="module")
def labelled():
    """Every 20th document has a target."""
    return np.arange(N_DOCS) % 20 == 3


@pytest.fixture(params=SUPERVISED)
def supervised(request):
    return request.param


def targets(estimator, planted):
    return planted.y if estimator is TopicRegressor else (planted.y > np.median(planted.y)).astype(float)


def small(estimator, **parameters):
    return estimator(**({"n_topics": 3, "n_epochs": 3, "random_state": 0} | parameters))


def test_documents_without_a_target_help(supervised, planted, labelled):
    """Measured, R2: 0.57 from 40 documents, 0.75 with 760 others without a target; accuracy 0.778 and 0.788."""
    X, y = planted.X[:N_DOCS], targets(supervised, planted)
    held_out = planted.X[N_DOCS:], y[N_DOCS:]
    few = supervised(random_state=0).fit(X[labelled], y[:N_DOCS][labelled]).score(*held_out)
    more = supervised(random_state=0).fit(X, np.where(labelled, y[:N_DOCS], np.nan)).score(*held_out)
    assert more > few + (0.1 if supervised is TopicRegressor else 0.005)


@pytest.fixture(scope="module")
def corpus():
    return make_topics(120, 40, 3, n_outputs=1, random_state=0)


MISSING = np.arange(120) % 3 == 1


@pytest.mark.parametrize(
    "absent",
    [
        lambda y: np.where(MISSING, np.nan, y),
        lambda y: np.where(MISSING, None, y),
        lambda y: np.where(MISSING, None, y).tolist(),
        lambda y: pd.Series(np.where(MISSING, np.nan, y)),
        lambda y: pd.Series(y).mask(MISSING).convert_dtypes(),
        lambda y: np.where(MISSING, np.nan, y).astype(np.float32),
    ],
    ids=["NaN", "None", "list", "series", "nullable series", "float32"],
)
def test_missing_numbers(corpus, absent):
    y = corpus.y.astype(np.float32).astype(np.float64)
    model, expected = (small(TopicRegressor).fit(corpus.X, t) for t in (absent(y), np.where(MISSING, np.nan, y)))
    assert_array_equal(model.components_, expected.components_)
    assert_allclose(model.predict(corpus.X), expected.predict(corpus.X), rtol=1e-5)
    full = small(TopicRegressor).fit(corpus.X, y)
    assert np.abs(model.components_ - full.components_).max() > 1e-4


NAMES = np.array(["down", "up"])


@pytest.mark.parametrize(
    "absent",
    [
        lambda names: np.where(MISSING, None, names.astype(object)),
        lambda names: np.where(MISSING, None, names.astype(object)).tolist(),
        lambda names: np.where(MISSING, np.nan, names.astype(object)),
        lambda names: pd.Series(names, dtype="string").mask(MISSING),
        lambda names: pd.Series(names).mask(MISSING),
        lambda names: pd.Series(names, dtype="category").mask(MISSING),
    ],
    ids=["None", "list", "NaN", "string series", "series", "categories"],
)
def test_missing_names(corpus, absent):
    numbers = (corpus.y > 0).astype(int)
    model = small(TopicClassifier).fit(corpus.X, absent(NAMES[numbers]))
    expected = small(TopicClassifier).fit(corpus.X, np.where(MISSING, np.nan, numbers))
    assert_array_equal(model.classes_, NAMES)
    assert set(model.predict(corpus.X)) <= set(NAMES)
    assert_array_equal(expected.classes_, [0, 1])
    assert_array_equal(model.components_, expected.components_)
    assert_array_equal(model.predict_proba(corpus.X), expected.predict_proba(corpus.X))


def test_minus_one_is_missing_with_a_warning(corpus):
    numbers = np.digitize(corpus.y, np.quantile(corpus.y, [0.3, 0.6]))
    with pytest.warns(UserWarning, match="y is -1 for 40 documents, which are taken as unlabelled") as warned:
        model = small(TopicClassifier).fit(corpus.X, np.where(MISSING, -1, numbers))
    assert warned[0].filename == __file__
    assert_array_equal(model.classes_, [0, 1, 2])
    expected = small(TopicClassifier).fit(corpus.X, np.where(MISSING, np.nan, numbers))
    assert_array_equal(model.components_, expected.components_)


@pytest.mark.parametrize("other", [1, 0])
def test_minus_one_and_another_number_are_two_classes(corpus, other):
    """Without a warning, which would be an error here."""
    model = small(TopicClassifier).fit(corpus.X, np.where(corpus.y > 0, other, -1))
    assert_array_equal(model.classes_, [-1, other])


def test_minus_one_is_a_class_of_a_stream(corpus):
    model = small(TopicClassifier).partial_fit(corpus.X, np.arange(120) % 3 - 1)
    assert_array_equal(model.classes_, [-1, 0, 1])


def test_missing_rows_of_labels(corpus):
    Y = np.c_[corpus.y > 0, corpus.y > 1].astype(float)
    Y[MISSING] = np.nan
    model = small(TopicClassifier).fit(corpus.X, Y)
    assert model.predict(corpus.X).shape == (120, 2)
    without = small(TopicClassifier).fit(corpus.X[~MISSING], Y[~MISSING])
    assert np.abs(model.components_ - without.components_).max() > 1e-4


# The spread


def test_the_spread_is_that_of_documents_with_a_target(corpus):
    X, weights = corpus.X.astype(np.float64), np.random.default_rng(0).uniform(0.5, 2, 120)
    model = small(TopicRegressor).fit(X, np.where(MISSING, np.nan, corpus.y), sample_weight=weights)
    known = ~MISSING
    expected = np.sqrt(np.average((corpus.y - model.predict(X))[known] ** 2, weights=weights[known]))
    assert_allclose(model.noise_std_, expected, rtol=1e-9)
    assert_allclose(model.topic_shares_, np.average(model.transform(X)[known], axis=0, weights=weights[known]), rtol=1e-9)


def test_the_scale_is_that_of_documents_with_a_target(corpus):
    """Placeholders of missing targets have no part in mean and deviation."""
    y = np.where(MISSING, np.nan, corpus.y)
    y[0] = 50.0
    X = corpus.X.astype(np.float64)
    one, other = (small(TopicRegressor).fit(X, t) for t in (y, 10 * y + 3))
    assert_allclose(other.predict(X), 10 * one.predict(X) + 3, rtol=1e-6)
    assert_allclose(one.targets_.mean, np.nanmean(y))


# What is refused


@pytest.mark.parametrize("nothing", [np.nan, None], ids=str)
def test_no_targets_at_all_are_refused(supervised, corpus, nothing):
    with pytest.raises(ValueError, match="y has no targets: all 120 are None or NaN"):
        small(supervised).fit(corpus.X, [nothing] * 120)


def test_a_stream_needs_every_target(supervised, corpus):
    y = (corpus.y > 0).astype(float)
    model = small(supervised).partial_fit(corpus.X, y)
    before = pickle.dumps(vars(model))
    y[7] = np.nan
    for learner in (model, small(supervised)):
        with pytest.raises(ValueError, match=r"y\[7\] is missing: partial_fit needs a"):
            learner.partial_fit(corpus.X, y)
    assert pickle.dumps(vars(model)) == before


def test_weights_must_leave_a_target(supervised, corpus):
    y = np.where(MISSING, np.nan, corpus.y > 0)
    with pytest.raises(ValueError, match="sample_weight is zero for all documents that have a target"):
        small(supervised).fit(corpus.X, y, sample_weight=MISSING.astype(float))


def test_a_zero_weight_is_a_removed_row_beside_missing_ones(supervised, corpus):
    y, kept = np.where(MISSING, np.nan, corpus.y > 0), np.arange(120) % 4 > 0
    weighted = small(supervised).fit(corpus.X, y, sample_weight=kept.astype(float))
    removed = small(supervised).fit(corpus.X[kept], y[kept])
    assert_array_equal(weighted.components_, removed.components_)


# The same bits, and the state after a failure


def test_the_number_of_threads_does_not_matter(supervised, planted, labelled):
    X, y = planted.X[:N_DOCS], np.where(labelled, targets(supervised, planted)[:N_DOCS], np.nan)
    models = [small(supervised, n_jobs=n_jobs, batch_size=300).fit(X, y) for n_jobs in (1, 2, 3)]
    for other in models[1:]:
        for name in ("components_", "coef_", "word_weights_", "topic_shares_"):
            assert_array_equal(getattr(other, name), getattr(models[0], name), err_msg=name)
        assert other.history_ == models[0].history_


@pytest.mark.parametrize("n_steps", [1, 5, 14])
@pytest.mark.parametrize("fitted", [False, True])
def test_an_interrupt_in_any_round_leaves_the_state_before(monkeypatch, supervised, corpus, n_steps, fitted):
    """Three epochs of one step with a target, then three rounds of three epochs of two."""
    y, model = np.where(MISSING, np.nan, corpus.y > 0), small(supervised, batch_size=80)
    if fitted:
        model.fit(corpus.X, y)
    before = {name: pickle.dumps(value) for name, value in vars(model).items()}
    training_step, calls = loop.step, []

    def interrupted(*arguments, **options):
        calls.append(arguments)
        if len(calls) == n_steps:
            raise KeyboardInterrupt
        return training_step(*arguments, **options)

    monkeypatch.setattr(loop, "step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(sp.csr_matrix(corpus.X), y)
    assert {name: pickle.dumps(value) for name, value in vars(model).items()} == before


def test_rounds_are_named(supervised, corpus, caplog, capsys, monkeypatch):
    y = np.where(MISSING, np.nan, corpus.y > 0)
    said = "40 of 120 documents have no target: the first of 4 rounds learns from the others"
    with caplog.at_level(logging.INFO, logger="mirrorlda"):
        small(supervised).fit(corpus.X, y)
    messages = [record.getMessage().split(": loss")[0] for record in caplog.records if record.name == "mirrorlda"]
    rounds = [f"round {number} of 4, epoch {epoch} of 3" for number in range(1, 5) for epoch in range(1, 4)]
    assert messages == [said, *rounds]
    assert capsys.readouterr().err == ""
    small(supervised, verbose=1).fit(corpus.X, y)
    first, *lines = capsys.readouterr().err.splitlines()
    assert first == said
    assert [line.split(":")[0] for line in lines if line] == [name.replace(" of ", "/") for name in rounds]
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    small(supervised, verbose=1).fit(corpus.X, y)
    assert "round 4/4, epoch 3/3" in capsys.readouterr().err


def test_one_round_has_no_name(supervised, corpus, capsys):
    small(supervised, verbose=1).fit(corpus.X, corpus.y > 0)
    assert [line.split(":")[0] for line in capsys.readouterr().err.splitlines()] == ["epoch 1/3", "epoch 2/3", "epoch 3/3"]


# What is easily mistaken for a target


def test_nan_in_a_list_of_strings_is_no_class(planted):
    labels = list(np.where(planted.y > 0, "high", "low"))
    labels[5] = float("nan")
    assert TopicClassifier(3, n_epochs=1, random_state=0).fit(planted.X, labels).classes_.tolist() == ["high", "low"]


def test_a_document_has_all_its_targets_or_none(planted):
    y = np.column_stack([planted.y, -planted.y])
    y[7, 1] = np.nan
    with pytest.raises(ValueError, match=r"y\[7\] has some targets but not all"):
        TopicRegressor(3, n_epochs=1).fit(planted.X, y)


def test_a_document_without_weight_is_no_placeholder(planted):
    labels = np.where(planted.y > 0, "high", "low").astype(object)
    labels[0], labels[1] = "rare", None
    weights = np.ones(len(labels))
    weights[0] = 0
    model = TopicClassifier(3, n_epochs=1, random_state=0).fit(planted.X, labels, sample_weight=weights)
    assert model.classes_.tolist() == ["high", "low"]


def test_few_missing_targets_do_not_shorten_training(planted):
    y = planted.y.copy()
    y[0] = np.nan
    assert len(TopicRegressor(3, n_epochs=9, random_state=0).fit(planted.X, y).history_["loss"]) == 9
