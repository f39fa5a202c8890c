"""The estimators as scikit-learn's users meet them."""

import logging
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from mirrorlda.datasets import make_topics
from mirrorlda.responses import Response, Softmax
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from mirrorlda import TopicClassifier, TopicModel, TopicRegressor, infer
from mirrorlda.training import loop
from mirrorlda.training.interrupt import interruptible

ESTIMATORS = [TopicModel, TopicClassifier, TopicRegressor]
N_DOCS, N_WORDS = 300, 60


def not_passed(estimator):
    """scikit-learn's checks that cannot pass, and why."""
    reasons = {}
    if isinstance(estimator, TopicClassifier):
        negative = "its data are negative although the estimator's tags say positive_only"
        reasons |= {"check_decision_proba_consistency": negative, "check_class_weight_classifiers": negative}
    if estimator.word_dropout:
        repeated = "a document that is repeated loses other words each time; without word dropout the check passes"
        reasons |= {f"check_sample_weight_equivalence_on_{kind}_data": repeated for kind in ("dense", "sparse")}
    return reasons


CHECKED = [TopicModel(), *(estimator(**p) for estimator in ESTIMATORS[1:] for p in ({}, {"word_dropout": 0.0}))]


@parametrize_with_checks(CHECKED, expected_failed_checks=not_passed)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def planted():
    return make_topics(N_DOCS, N_WORDS, 3, n_outputs=1, random_state=0)


@pytest.fixture
def X(planted):
    return planted.X.copy()


@pytest.fixture
def targets(planted):
    """What each estimator is fitted to."""
    return {TopicModel: None, TopicClassifier: np.where(planted.y > 0, "up", "down"), TopicRegressor: planted.y.copy()}


@pytest.fixture(params=ESTIMATORS)
def estimator(request):
    return request.param


@pytest.fixture
def y(estimator, targets):
    return targets[estimator]


def small(estimator, **parameters):
    return estimator(**({"n_topics": 3, "n_epochs": 5, "random_state": 0} | parameters))


def output(model, X):
    """What a user asks the model for."""
    if isinstance(model, TopicClassifier):
        return model.predict_proba(X)
    return model.predict(X) if isinstance(model, TopicRegressor) else model.transform(X)


# Attributes


def test_attributes(estimator, X, y):
    model = small(estimator, n_topics=4).fit(X, y)
    assert model.n_features_in_ == N_WORDS
    assert model.components_.shape == (4, N_WORDS)
    assert_allclose(model.components_.sum(axis=1), 1, rtol=1e-6)
    assert model.components_.min() > 0
    assert set(model.history_) == {"loss", "score"}
    assert {len(values) for values in model.history_.values()} == {5}
    theta = model.transform(X)
    assert theta.shape == (N_DOCS, 4)
    assert_allclose(theta.sum(axis=1), 1, rtol=1e-5)
    assert_allclose(model.topic_shares_, theta.mean(axis=0), rtol=1e-5)
    prefix = estimator.__name__.lower()
    assert_array_equal(model.get_feature_names_out(), [f"{prefix}{k}" for k in range(4)])
    if estimator is not TopicModel:
        assert model.coef_.shape == (2 if estimator is TopicClassifier else 1, 4)


def test_fit_transform_is_fit_then_transform(estimator, X, y):
    model = small(estimator)
    assert_array_equal(model.fit_transform(X, y), small(estimator).fit(X, y).transform(X))


def test_unfitted_estimators_say_so(estimator, X, y):
    model = small(estimator)
    for method in ("transform", "predict", "predict_proba", "score"):
        if hasattr(model, method):
            with pytest.raises(NotFittedError, match="not fitted"):
                getattr(model, method)(X, *([y] if method == "score" else []))


def test_the_score_of_topics_is_the_mean_log_likelihood_of_a_word(X):
    model = small(TopicModel, count_scale="linear").fit(X)
    p = model.transform(X).astype(float) @ model.components_.astype(float)
    expected = (X.toarray() * np.log(p)).sum() / X.sum()
    assert_allclose(model.score(X), expected, rtol=1e-5)
    weights = np.arange(N_DOCS) % 2
    assert_allclose(model.score(X, sample_weight=weights), model.score(X[1::2]), rtol=1e-6)


# Labels


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["up", "down", "flat"]),
        np.array([-3, 7, 40]),
        np.array(["a", "b", "c"], dtype=object),
        np.array([0.0, 1.0, 2.0]),
        [True, False],
        ("x", "y"),
        pd.Series(["p", "q"]),
    ],
    ids=["str", "int", "object", "float", "bool", "two", "series"],
)
def test_labels_of_any_type(X, planted, labels):
    labels = np.asarray(labels)
    y = labels[np.digitize(planted.y, np.quantile(planted.y, np.arange(1, len(labels)) / len(labels)))]
    model = small(TopicClassifier, n_epochs=20).fit(X, y)
    assert_array_equal(model.classes_, np.unique(labels))
    assert model.predict(X).dtype == model.classes_.dtype
    assert set(model.predict(X)) <= set(labels.tolist())
    assert model.score(X, y) > 1.5 / len(labels)
    assert model.coef_.shape == (len(labels), 3)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_probabilities_and_decisions(n_classes, X):
    y = np.arange(N_DOCS) % n_classes
    model = small(TopicClassifier, gamma=2.0).fit(X, y)
    p, decisions = model.predict_proba(X), model.decision_function(X)
    assert p.shape == (N_DOCS, n_classes)
    assert p.min() > 0
    assert_allclose(p.sum(axis=1), 1, rtol=1e-5)
    assert_allclose(np.log(p), model.predict_log_proba(X), rtol=1e-4, atol=1e-5)
    assert_array_equal(model.predict(X), model.classes_[p.argmax(axis=1)])
    if n_classes == 2:
        assert decisions.shape == (N_DOCS,)
        assert_allclose(decisions, np.log(p[:, 1] / p[:, 0]), atol=1e-5)
    else:
        assert decisions.shape == (N_DOCS, n_classes)
        assert_allclose(decisions - decisions[:, :1], np.log(p / p[:, :1]), atol=1e-5)


def test_one_class_is_refused(X):
    with pytest.raises(ValueError, match="at least two classes, got one class"):
        TopicClassifier().fit(X, np.zeros(N_DOCS, int))
    y = np.arange(N_DOCS) % 2
    with pytest.raises(ValueError, match="at least two classes, got one class"):
        TopicClassifier().fit(X, y, sample_weight=y)


def test_a_label_that_was_never_seen_is_refused_by_name(X, targets):
    y = targets[TopicClassifier]
    model = small(TopicClassifier).partial_fit(X, y)
    with pytest.raises(ValueError, match=r"y\[1\] is .*sideways.*not one of the classes .*down.*up"):
        model.partial_fit(X[:2], ["up", "sideways"])
    with pytest.raises(ValueError, match=r"y\[0\] is .*3.*not one of the classes"):
        model.partial_fit(X[:1], [3])
    with pytest.raises(ValueError, match=r"classes are .*but the model has"):
        model.partial_fit(X[:2], ["up", "down"], classes=["up", "down", "sideways"])
    model.partial_fit(X[:2], ["up", "down"], classes=["down", "up"])


def test_classes_of_a_stream_may_be_named_before_they_come(X):
    model = small(TopicClassifier).partial_fit(X[:50], np.zeros(50, int), classes=[0, 1, 2])
    model.partial_fit(X[50:100], np.full(50, 2))
    assert_array_equal(model.classes_, [0, 1, 2])
    assert model.predict_proba(X).shape == (N_DOCS, 3)


# Input that is refused


def with_value(X, value):
    X = X.toarray().astype(float)
    X[3, 5] = value
    return X


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix, sp.csc_array, pd.DataFrame])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (-1, r"Negative values in data: X\[3, 5\] is -1"),
        (np.nan, "X contains NaN"),
        (np.inf, "X contains infinity"),
        (1e13, r"X\[3, 5\] is 1e\+?13|X\[3, 5\] is 10000000000000"),
    ],
)
def test_bad_counts_are_refused(estimator, X, y, kind, value, message):
    with pytest.raises(ValueError, match=message):
        small(estimator).fit(kind(with_value(X, value)), y)
    model = small(estimator, n_epochs=1).fit(X.toarray(), y)
    with pytest.raises(ValueError, match=message):
        model.transform(kind(with_value(X, value)))


def test_wrong_shapes_are_refused(estimator, X, y):
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        small(estimator).fit(X.toarray()[0], None if y is None else y[:1])
    model = small(estimator, n_epochs=1).fit(X, y)
    with pytest.raises(ValueError, match=f"X has 7 features, but {estimator.__name__} is expecting {N_WORDS}"):
        model.transform(X[:, :7])
    with pytest.raises(ValueError, match=r"sample_weight.*\(3,\)"):
        small(estimator).fit(X, y, sample_weight=np.ones(3))
    with pytest.raises(ValueError, match="Negative values"):
        small(estimator).fit(X, y, sample_weight=-np.ones(N_DOCS))
    with pytest.raises(ValueError, match="zero"):
        small(estimator).fit(X, y, sample_weight=np.zeros(N_DOCS))
    for extreme in (1e308, 1e-308):
        with pytest.raises(ValueError, match=r"largest sample_weight is 1e.*308, expected it between 1e-12 and 1e\+12"):
            small(estimator).fit(X, y, sample_weight=np.full(N_DOCS, extreme))
    if y is not None:
        with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[300, 5\]"):
            small(estimator).fit(X, y[:5])


def test_bad_targets_are_refused(X, planted):
    y = planted.y.copy()
    y[4] = np.inf
    with pytest.raises(ValueError, match="y contains infinity"):
        small(TopicRegressor).fit(X, y)
    with pytest.raises(ValueError, match="continuous"):
        small(TopicClassifier).fit(X, planted.y)
    with pytest.raises(ValueError, match="y has 1 outputs, but the model has 2"):
        small(TopicRegressor).partial_fit(X, np.c_[planted.y, planted.y]).partial_fit(X, planted.y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_topics": 0}, "n_topics must be a whole number of at least 1, got 0"),
        ({"n_topics": 2.0}, "n_topics must be a whole number"),
        ({"n_epochs": 0}, "n_epochs must be a whole number of at least 1, got 0"),
        ({"n_epochs": "many"}, "n_epochs must be a whole number of at least 1, got 'many'"),
        ({"n_layers": 0}, "n_layers must be .*at least 1, got 0"),
        ({"alpha": 0.0}, "alpha must be positive"),
        ({"alpha": [1.0, 2.0]}, r"alpha must be a number or have shape \(3,\), got shape \(2,\)"),
        ({"alpha": np.nan}, r"alpha must be positive and at most 1e\+12"),
        ({"beta": 0.9}, "beta must be at least 1, got 0.9"),
        ({"beta": np.inf}, "beta must be at least 1"),
        ({"step_size": "newton"}, "step_size must be 'l1', 'kl'.* got 'newton'"),
        ({"step_size": -1.0}, "step_size must be non-negative"),
        ({"step_size": [0.1, 0.1]}, "step_size of an estimator must be"),
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1, got 0"),
        ({"batch_size": (10, 20, 30)}, "a pair of them"),
        ({"batch_size": 2.5}, "batch_size must be a whole number"),
        ({"learning_rate": -0.1}, "learning_rate must be .*a finite number of at least 0, got -0.1"),
        ({"learning_rate": np.nan}, "learning_rate must be .*a finite number"),
        ({"learning_rate_decay": "cosine"}, "learning_rate_decay must be 'linear' or 'constant', got 'cosine'"),
        ({"average_from": -1}, "average_from must be"),
        ({"validation_fraction": 1.0}, "validation_fraction must be between 0 and 1, got 1.0"),
        ({"n_iter_no_change": 0}, "n_iter_no_change must be a whole number"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
    ids=str,
)
def test_bad_parameters_are_refused(estimator, X, y, parameters, message):
    with pytest.raises(ValueError, match=message):
        small(estimator, **parameters).fit(X, y)


@pytest.mark.parametrize("gamma", [0.0, -1.0, np.nan, np.inf])
@pytest.mark.parametrize("supervised", [TopicRegressor, TopicClassifier])
def test_bad_gammas_are_refused(supervised, X, targets, gamma):
    with pytest.raises(ValueError, match="gamma must be positive and finite, got"):
        small(supervised, gamma=gamma).fit(X, targets[supervised])


def test_layers_are_counted_in_whole_numbers(estimator, X, y):
    with pytest.raises(ValueError, match=r"n_layers must be .*, got 2.5"):
        small(estimator, n_layers=2.5).fit(X, y)


# Regression


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-9), (np.float32, 1e-3)])
@pytest.mark.parametrize(("a", "b"), [(3.0, 0.0), (1e-3, 5.0), (1e5, -2e5), (1, 1e4)])
def test_predictions_are_equivariant_to_the_targets_scale(X, planted, dtype, rtol, a, b):
    """For a > 0: with a < 0 the targets are reflected, but the random start of the coefficients is not."""
    X, y = X.astype(dtype), planted.y
    model, scaled = small(TopicRegressor).fit(X, y), small(TopicRegressor).fit(X, a * y + b)
    expected, std = model.predict(X, return_std=True)
    prediction, scaled_std = scaled.predict(X, return_std=True)
    assert_allclose(prediction, a * expected + b, rtol=0, atol=rtol * a * np.std(y) + 2 * np.finfo(dtype).eps * abs(b))
    assert_allclose(scaled_std, a * std, rtol=rtol)
    assert_allclose(scaled.components_, model.components_, rtol=rtol)


def test_one_column_of_targets_is_one_output_of_two_dimensions(X, planted):
    flat, column = small(TopicRegressor).fit(X, planted.y), small(TopicRegressor).fit(X, planted.y[:, None])
    assert flat.predict(X).shape == (N_DOCS,)
    assert column.predict(X).shape == (N_DOCS, 1)
    assert_array_equal(column.predict(X)[:, 0], flat.predict(X))


def test_several_outputs(X, planted):
    Y = planted.theta @ np.array([[1.0, 0, 200], [0, 50, 0], [0, 0, 0]]) + [0, 1000, 0]
    model = small(TopicRegressor, n_epochs=40).fit(X, Y)
    prediction, std = model.predict(X, return_std=True)
    assert prediction.shape == std.shape == Y.shape
    assert model.coef_.shape == (3, 3)
    assert model.noise_std_.shape == (3,)
    assert model.score(X, Y) > 0.6


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_spread_is_that_of_the_residuals(X, planted, dtype):
    X, weights = X.astype(dtype), np.random.default_rng(0).integers(0, 3, N_DOCS)
    model = small(TopicRegressor, n_epochs=20).fit(X, planted.y, sample_weight=weights)
    prediction, std = model.predict(X, return_std=True)
    assert prediction.dtype == std.dtype == dtype
    assert prediction.shape == std.shape == (N_DOCS,)
    expected = np.sqrt(np.average((planted.y - prediction) ** 2, weights=weights))
    assert_allclose(std, expected, rtol=1e-5)
    assert expected < 0.8 * planted.y.std()


def test_a_constant_target_is_predicted(X):
    model = small(TopicRegressor, n_epochs=100).fit(X, np.full(N_DOCS, 7.0))
    assert_allclose(model.predict(X), 7, rtol=0.01)


def test_a_small_constant_target_is_predicted_in_its_own_units(X):
    assert_allclose(small(TopicRegressor).fit(X, np.full(N_DOCS, 1e-6)).predict(X), 1e-6, rtol=0.1)


# Weights


def test_a_zero_weight_is_a_removed_row(estimator, X, y):
    weights = np.random.default_rng(0).integers(0, 3, N_DOCS).astype(float)
    kept = np.flatnonzero(weights)
    weighted = small(estimator).fit(X, y, sample_weight=weights)
    removed = small(estimator).fit(X[kept], None if y is None else y[kept], sample_weight=weights[kept])
    assert_array_equal(weighted.components_, removed.components_)
    assert_array_equal(output(weighted, X), output(removed, X))
    assert weighted.history_ == removed.history_


def test_a_class_of_zero_weight_is_no_class(X):
    y = np.arange(N_DOCS) % 3
    model = small(TopicClassifier).fit(X, y, sample_weight=(y < 2).astype(float))
    assert_array_equal(model.classes_, [0, 1])


def without_dropout(estimator):
    """Words are left out of documents, so of one of weight two and of two documents not the same ones."""
    return {} if estimator is TopicModel else {"word_dropout": 0.0}


def test_weights_are_repeats_where_all_fits_one_batch(estimator, X, y):
    X, weights = X.astype(np.float64), np.random.default_rng(0).integers(1, 4, N_DOCS)
    repeated = np.repeat(np.arange(N_DOCS), weights)
    fit = {"batch_size": 1000, "n_epochs": 8, **without_dropout(estimator)}
    model = small(estimator, **fit).fit(X, y, sample_weight=weights)
    other = small(estimator, **fit).fit(X[repeated], None if y is None else y[repeated])
    assert_allclose(model.components_, other.components_, rtol=1e-8)
    assert_allclose(output(model, X), output(other, X), rtol=1e-8)
    assert_allclose(model.history_["loss"], other.history_["loss"], rtol=1e-8)
    assert_allclose(model.history_["score"], other.history_["score"], rtol=1e-8)


def test_weights_matter(estimator, X, y):
    weights = np.random.default_rng(0).uniform(0.1, 3, N_DOCS)
    model, weighted = small(estimator).fit(X, y), small(estimator).fit(X, y, sample_weight=weights)
    assert np.abs(model.components_ - weighted.components_).max() > 1e-4


# Going on


def test_warm_start_goes_on(estimator, X, y):
    model = small(estimator, warm_start=True, learning_rate_decay="constant").fit(X, y)
    first = model.history_
    model.fit(X, y)
    assert model.history_["loss"][0] < first["loss"][0]
    assert model.history_["loss"][-1] < first["loss"][-1]
    cold = small(estimator, learning_rate_decay="constant").fit(X, y).fit(X, y)
    assert cold.history_ == first


def test_warm_start_refuses_other_shapes(estimator, X, y):
    model = small(estimator, warm_start=True, n_epochs=1).fit(X, y)
    with pytest.raises(ValueError, match=r"words, topics and outputs must be its own, \(60, 3\).*got \(60, 4\)"):
        model.set_params(n_topics=4).fit(X, y)
    with pytest.raises(ValueError, match=r"its own, \(60, 3\).*got \(20, 3\)"):
        model.set_params(n_topics=3).fit(X[:, :20], y)
    assert model.transform(X).shape == (N_DOCS, 3)


def test_parts_of_a_stream_reach_a_decent_score(X, planted):
    model = small(TopicRegressor, batch_size=50)
    for _ in range(40):
        for part in np.array_split(np.arange(N_DOCS), 3):
            model.partial_fit(X[part], planted.y[part])
    assert model.score(X, planted.y) > 0.8
    assert len(model.history_["loss"]) == 120
    assert np.mean(model.history_["loss"][-9:]) < np.mean(model.history_["loss"][:9])


def test_partial_fit_goes_on_after_fit(estimator, X, y):
    model = small(estimator, n_epochs=30, average_from=1).fit(X, y)
    before, losses = model.components_.copy(), list(model.history_["loss"])
    model.partial_fit(X, y)
    assert model.history_["loss"][:-1] == losses
    assert model.history_["loss"][-1] < losses[0] - 0.5 * (losses[0] - losses[-1])
    assert 0 < np.abs(model.components_ - before).max() < 0.05


def test_fit_after_partial_fit_begins_anew(estimator, X, y):
    model = small(estimator).partial_fit(X, y).fit(X, y)
    fresh = small(estimator).fit(X, y)
    assert_array_equal(model.components_, fresh.components_)
    assert model.history_ == fresh.history_


def test_parts_of_another_precision(estimator, X, y):
    """The first part decides the precision of the parameters."""
    for first, second in ((np.float32, np.float64), (np.float64, np.float32)):
        model = small(estimator).partial_fit(X.astype(first), y).partial_fit(X.astype(second), y)
        assert model.components_.dtype == first
        assert model.transform(X.astype(second)).dtype == second


def test_parts_do_not_share_state_with_the_model_before(X):
    model = small(TopicModel).partial_fit(X)
    before = model.components_
    values = before.copy()
    model.partial_fit(X)
    assert_array_equal(before, values)


# In the company of scikit-learn


def test_a_pipeline_on_strings():
    rng = np.random.default_rng(0)
    good, bad, filler = ["great", "lovely", "superb"], ["awful", "dull", "boring"], ["film", "plot", "the", "a"]
    y = rng.integers(0, 2, 200)
    texts = [" ".join([*rng.choice(filler, 6), *rng.choice(good if label else bad, 3)]) for label in y]
    pipeline = make_pipeline(CountVectorizer(), TopicClassifier(n_topics=2, random_state=0))
    assert cross_val_score(pipeline, texts, np.where(y, "good", "bad"), cv=3).mean() > 0.95
    pipeline.fit(texts, y)
    assert_array_equal(pipeline.predict(["a great and superb film", "boring, awful", ""])[:2], [1, 0])


def test_grid_search_and_cross_validation(estimator, X, y):
    search = GridSearchCV(small(estimator, n_epochs=2), {"n_topics": [2, 3], "alpha": [0.5, 1.1]}, cv=2, error_score="raise")
    search.fit(X, y)
    assert search.best_params_["n_topics"] in (2, 3)
    scores = cross_val_score(small(estimator, n_epochs=2), X, y, cv=3, error_score="raise")
    assert np.isfinite(scores).all()


def test_clone_and_parameters(estimator, X, y):
    model = small(estimator, alpha=np.array([0.5, 1, 2]), batch_size=(10, 20), step_size="kl").fit(X, y)
    copy = clone(model)
    assert not hasattr(copy, "components_")
    assert {name: str(value) for name, value in copy.get_params().items()} == {n: str(v) for n, v in model.get_params().items()}
    assert_array_equal(copy.fit(X, y).components_, model.components_)


@pytest.mark.parametrize("partial", [False, True])
def test_a_pickled_model_predicts_the_same_and_goes_on(estimator, X, y, partial):
    model = small(estimator)
    (model.partial_fit if partial else model.fit)(X, y)
    restored = pickle.loads(pickle.dumps(model))
    assert_array_equal(output(restored, X), output(model, X))
    assert_array_equal(restored.partial_fit(X, y).components_, model.partial_fit(X, y).components_)


def test_output_as_a_data_frame(estimator, X, y):
    model = small(estimator).set_output(transform="pandas").fit(X, y)
    frame = model.transform(X)
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == list(model.get_feature_names_out())
    assert_array_equal(frame, small(estimator).fit(X, y).transform(X))


def test_a_data_frame_of_counts(estimator, X, y):
    frame = pd.DataFrame(X.toarray().astype(int), columns=[f"word {i}" for i in range(N_WORDS)])
    model = small(estimator).fit(frame, y)
    assert_array_equal(model.feature_names_in_, frame.columns)
    assert model.components_.dtype == np.float32
    assert_array_equal(output(model, frame), output(small(estimator).fit(X, y), X))


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.coo_array, np.asarray])
@pytest.mark.parametrize(
    ("given", "computed"),
    [(np.float32, np.float32), (np.float64, np.float64), (np.int64, np.float32), (np.int32, np.float32), (np.uint16, np.float32)],
)
def test_every_kind_of_matrix_in_every_precision(estimator, X, y, kind, given, computed):
    dense = X.toarray().astype(given)
    model = small(estimator, n_epochs=2).fit(kind(dense), y)
    assert model.components_.dtype == computed
    theta = model.transform(kind(dense))
    assert theta.dtype == computed
    assert output(model, kind(dense)).dtype == computed
    expected = small(estimator, n_epochs=2).fit(X.astype(computed), y)
    assert_array_equal(theta, expected.transform(X.astype(computed)))


def test_float32_agrees_with_float64(estimator, X, y):
    single, double = (small(estimator).fit(X.astype(dtype), y) for dtype in (np.float32, np.float64))
    assert_allclose(single.components_, double.components_, rtol=0.02, atol=1e-5)


# Settings


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_topics": 1},
        {"alpha": [0.5, 1.0, 1.5]},
        {"alpha": 0.1},
        {"alpha": 0.5, "step_size": "kl"},
        {"step_size": 0.01},
        {"n_layers": 1},
        {"beta": 1.0},
        {"beta": 50.0},
        {"batch_size": (20, 100)},
        {"batch_size": [20, 100]},
        {"batch_size": 1, "n_epochs": 1},
        {"average_from": 0},
        {"average_from": 1, "learning_rate_decay": "constant"},
        {"early_stopping": True, "validation_fraction": 0.3, "n_iter_no_change": 1},
        {"random_state": np.random.RandomState(3)},
        {"n_jobs": -1},
    ],
    ids=lambda parameters: "-".join(parameters),
)
def test_settings_give_topics_on_the_simplex(estimator, X, y, parameters):
    model = small(estimator, **parameters).fit(X, y)
    assert_allclose(model.components_.sum(axis=1), 1, rtol=1e-5)
    assert np.isfinite(output(model, X)).all()
    assert np.isfinite(model.history_["loss"]).all()


def test_small_alphas_make_sparse_proportions(X):
    shares = [(small(TopicModel, alpha=alpha).fit(X).transform(X) < 1e-3).mean() for alpha in (0.5, 3.0)]
    assert shares[0] > shares[1] + 0.2


def test_a_large_beta_smooths_topics(X):
    entropies = []
    for beta in (1.0, 1000.0):
        p = small(TopicModel, beta=beta, learning_rate=0.1, n_epochs=50).fit(X).components_
        entropies.append(-(p * np.log(p)).sum(axis=1).mean())
    assert entropies[1] > entropies[0] + 0.2


def test_early_stopping_holds_out_documents_and_stops(estimator, X, y):
    model = small(estimator, n_epochs=60, early_stopping=True, validation_fraction=0.3, n_iter_no_change=2, learning_rate=0.5)
    model.fit(X, y)
    assert set(model.history_) == {"loss", "score", "validation_loss", "validation_score"}
    scores = model.history_["validation_score"]
    assert len(scores) == min(60, int(np.argmax(scores)) + 3)


def test_the_same_random_state_gives_the_same_model(estimator, X, y):
    model, again, other = (small(estimator, random_state=seed).fit(X, y) for seed in (5, 5, 6))
    assert_array_equal(model.components_, again.components_)
    assert np.abs(model.components_ - other.components_).max() > 1e-5


# Empty documents


def test_some_documents_are_empty(estimator, X, y):
    X = sp.vstack([X[:250], sp.csr_matrix((50, N_WORDS), dtype=X.dtype)]).tocsr()
    model = small(estimator).fit(X, y)
    assert np.isfinite(model.components_).all()
    theta = model.transform(X)
    assert_array_equal(theta[250:], np.float32(1) / 3)
    assert np.isfinite(output(model, X)).all()
    assert output(model, sp.csr_matrix((1, N_WORDS), dtype=np.float32)).shape[0] == 1


@pytest.mark.parametrize("batch_size", [1, 37])
def test_a_batch_of_empty_documents(estimator, X, y, batch_size):
    X = sp.vstack([X[:250], sp.csr_matrix((50, N_WORDS), dtype=X.dtype)]).tocsr()
    model = small(estimator, batch_size=batch_size, n_epochs=2).fit(X, y)
    assert np.isfinite(output(model, X)).all()


def test_a_part_of_empty_documents(estimator, X, y):
    model = small(estimator).partial_fit(X, y)
    empty = sp.csr_matrix((2, N_WORDS), dtype=np.float32)
    model.partial_fit(empty, None if y is None else np.unique(y)[:2])
    assert np.isfinite(output(model, X)).all()


def test_all_documents_are_empty(estimator, y):
    X = sp.csr_matrix((N_DOCS, N_WORDS), dtype=np.float32)
    model = small(estimator).fit(X, y)
    assert_allclose(model.transform(X), 1 / 3, rtol=1e-6)
    assert np.isfinite(output(model, X)).all()
    assert np.isfinite([*model.history_["loss"], *model.history_["score"]]).all()


def test_a_score_without_words_is_refused(X):
    with pytest.raises(ValueError, match="X holds no words"):
        small(TopicModel).fit(X).score(np.zeros((2, N_WORDS)))


# Interrupts


def snapshot(model):
    return {name: pickle.dumps(value) for name, value in vars(model).items()}


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("before", ["unfitted", "fitted", "partially fitted"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interrupt_leaves_the_state_before(monkeypatch, estimator, X, y, method, before, error):
    model = small(estimator, batch_size=40)
    if before != "unfitted":
        (model.fit if before == "fitted" else model.partial_fit)(X[:, :50], y)
    state = snapshot(model)
    calls = []

    def interrupted(*arguments, **options):
        calls.append(arguments)
        if len(calls) == 3:
            raise error
        return training_step(*arguments, **options)

    training_step = loop.step
    for module in ("mirrorlda.training.loop", "mirrorlda.estimators.fitting"):
        monkeypatch.setattr(f"{module}.step", interrupted)
    words = 50 if method == "partial_fit" and before != "unfitted" else N_WORDS
    with pytest.raises(error):
        getattr(model, method)(X[:, :words], y)
    assert len(calls) == 3
    assert snapshot(model) == state


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
@pytest.mark.parametrize("warning", ["default", "error"])
def test_ctrl_c_keeps_what_was_learned(warning):
    """A real signal in the middle of a fit that would take minutes; where warnings are errors, the model is as before."""
    program = f"""
        import os, signal, warnings
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
        from mirrorlda import TopicRegressor
        from mirrorlda.datasets import make_topics
        from mirrorlda.training import loop
        data = make_topics(2000, 200, 5, n_outputs=1, random_state=0)
        model = TopicRegressor(5, n_epochs=100_000, random_state=0, n_jobs=2)
        take, taken = loop.step, []
        def step(*arguments, **options):
            taken.append(None)
            if len(taken) == 100:
                os.kill(os.getpid(), signal.SIGINT)
            return take(*arguments, **options)
        loop.step = step
        warnings.simplefilter("{warning}")
        try:
            model.fit(data.X, data.y)
        except UserWarning as stopped:
            print(stopped.args[0][:7], hasattr(model, "components_"))
        else:
            print(model.score(data.X, data.y) > 0.5, len(model.history_["loss"]) > 1)
        print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
        print(model.set_params(n_epochs=1).fit(data.X, data.y).components_.shape)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60, check=False
    )
    expected = "Ctrl-C: False" if warning == "error" else "True True"
    assert done.stdout == f"{expected}\nTrue\n(5, 200)\n", done.stderr
    assert ("InterruptedWarning: Ctrl-C: training ended after" in done.stderr) == (warning == "default")


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
def test_a_second_ctrl_c_ends_at_once():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with interruptible() as pressed:
            assert not pressed()
            os.kill(os.getpid(), signal.SIGINT)
            assert pressed()
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_handler_of_the_users_own_stays_and_other_threads_have_none():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interruptible() as pressed:
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
            assert not pressed()
    finally:
        signal.signal(signal.SIGINT, before)
    answers = []

    def elsewhere():
        with interruptible() as pressed:
            answers.append(pressed())

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert answers == [False]


# Messages


def test_messages_go_through_the_logger(estimator, X, y, caplog, capfd):
    with caplog.at_level(logging.INFO, logger="mirrorlda"):
        small(estimator, n_epochs=3).fit(X, y)
    messages = [record.getMessage() for record in caplog.records if record.name == "mirrorlda"]
    assert [message.split(":")[0] for message in messages] == ["epoch 1 of 3", "epoch 2 of 3", "epoch 3 of 3"]
    assert all("loss" in message and "score" in message for message in messages)
    assert capfd.readouterr() == ("", "")


def test_a_bar_for_those_who_want_it(estimator, X, y, capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    small(estimator, verbose=1, n_epochs=3).fit(X, y)
    out, err = capsys.readouterr()
    assert out == ""
    assert "epoch 3/3" in err
    assert "100%" in err
    assert "score" in err


def test_a_line_an_epoch_where_nobody_can_watch_a_bar(estimator, X, y, capsys):
    small(estimator, verbose=1, n_epochs=3).fit(X, y)
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.split(":")[0] for line in err.splitlines()] == ["epoch 1/3", "epoch 2/3", "epoch 3/3"]
    assert "docs/s" in err


def test_a_bar_ends_where_early_stopping_does(X, targets, capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    model = small(TopicRegressor, verbose=1, n_epochs=200, early_stopping=True, n_iter_no_change=1, learning_rate=0.5)
    model.fit(X, targets[TopicRegressor])
    assert len(model.history_["loss"]) < 200
    assert "100%" in capsys.readouterr().err


# Responses of one's own


class Poisson(Response):
    def loss(self, scores, y):
        mean = np.exp(scores)
        return (mean - y * scores).sum(axis=1), mean - y

    def predict(self, scores):
        return np.exp(scores)

    def score(self, scores, losses, y, weights):
        return -np.average(losses, weights=weights)


def test_a_regressor_learns_with_a_response_of_ones_own():
    data = make_topics(n_docs=600, n_words=60, n_topics=3, n_outputs=1, gamma=1e4, random_state=0)
    rate = np.exp(data.y)
    counts = np.random.default_rng(0).poisson(rate)
    model = TopicRegressor(3, response=Poisson(), random_state=0).fit(data.X, counts)
    assert (model.predict(data.X) > 0).all()
    assert np.corrcoef(model.predict(data.X), rate)[0, 1] > 0.9
    assert_allclose(model.predict(data.X), np.exp(model.transform(data.X) @ model.coef_[0]), rtol=1e-4)
    assert model.history_["score"][-1] > model.history_["score"][0]
    assert clone(model).get_params()["response"] is not None


class FixedClass(Response):
    """Predicts the last class, whatever the scores."""

    def n_outputs(self, y):
        return 2

    def loss(self, scores, y):
        return (scores**2).sum(axis=1), 2 * scores

    def predict(self, scores):
        return np.full(len(scores), scores.shape[1] - 1)

    def score(self, scores, losses, y, weights):
        return 0.0


def test_a_classifier_predicts_with_a_response_of_ones_own(X):
    labels = np.array(["a", "b"])[np.arange(X.shape[0]) % 2]
    model = TopicClassifier(3, n_epochs=2, response=FixedClass(), random_state=0).fit(X, labels)
    assert set(model.predict(X)) == {"b"}


@pytest.mark.parametrize("factor", [-1.0, -2.5])
def test_predictions_of_mirrored_targets_are_mirrored(X, factor):
    y = np.random.default_rng(0).gamma(1.0, size=X.shape[0])
    one, other = (TopicRegressor(3, n_epochs=5, random_state=0).fit(X.astype(np.float64), t) for t in (y, factor * y + 1))
    X = X.astype(np.float64)
    assert_allclose(other.predict(X), factor * one.predict(X) + 1, rtol=1e-6)


def test_warm_start_needs_the_same_classes(X):
    numbers = np.arange(X.shape[0]) % 2
    model = TopicClassifier(3, n_epochs=2, warm_start=True, random_state=0).fit(X, numbers)
    with pytest.raises(ValueError, match=r"classes of the last fit, \[0, 1\]; got \[5, 6\]"):
        model.fit(X, numbers + 5)


@pytest.mark.parametrize("offset", [1e7, 1e9])
def test_targets_far_from_zero_keep_their_differences(offset):
    data = make_topics(n_docs=600, n_words=60, n_topics=3, n_outputs=1, random_state=0)
    near = TopicRegressor(3, random_state=0).fit(data.X, data.y)
    far = TopicRegressor(3, random_state=0).fit(data.X.astype(np.float64), 1e6 * data.y + offset)
    assert_allclose(far.score(data.X.astype(np.float64), 1e6 * data.y + offset), near.score(data.X, data.y), atol=0.02)


def test_a_stream_may_begin_with_a_constant(X):
    y = np.random.default_rng(0).standard_normal(X.shape[0])
    model = TopicRegressor(3, random_state=0).partial_fit(X[:5], np.full(5, 2.0))
    assert_allclose(model.predict(X[:5]), 2, atol=1)
    for _ in range(3):
        model.partial_fit(X, y)
    assert np.ptp(model.predict(X)) > 0
    assert model.noise_std_[0] > 0.1


@pytest.mark.parametrize("alpha", [1e39, 1e308, np.inf])
def test_an_alpha_beyond_all_bounds_is_refused(estimator, X, y, alpha):
    with pytest.raises(ValueError, match="alpha must be positive and at most"):
        estimator(3, alpha=alpha).fit(X, y)


def test_parameters_that_overflow_are_refused(X):
    y = np.random.default_rng(0).standard_normal(X.shape[0])
    with pytest.raises(ArithmeticError, match="not finite"):
        TopicRegressor(3, n_epochs=1, batch_size=1000, coef_learning_rate=1e42).fit(X, y)


def test_balanced_two_valued_targets_are_equivariant(X):
    X, y = X.astype(np.float64), np.arange(X.shape[0]) % 2.0
    one, other = (TopicRegressor(3, n_epochs=5, random_state=0).fit(X, t) for t in (y, y / 3 + 0.1))
    assert_allclose(other.predict(X), one.predict(X) / 3 + 0.1, rtol=1e-6)


class OneLoss(Poisson):
    """Forgets that every document has a loss of its own."""

    def loss(self, scores, y):
        losses, gradient = super().loss(scores, y)
        return losses.sum(), gradient


@pytest.mark.parametrize(
    ("response", "message"),
    [
        ("gamma", "response must be one of .* or an object that inherits from Response, got 'gamma'"),
        (Poisson, "an object that inherits from Response, got <class"),
        (object(), "an object that inherits from Response, got <object"),
        (OneLoss(), "one for each document"),
    ],
    ids=["name", "class", "no response", "one loss"],
)
def test_responses_that_cannot_work_are_refused(X, response, message):
    with pytest.raises(ValueError, match=message):
        TopicRegressor(3, response=response).fit(X, np.arange(X.shape[0]))


@pytest.mark.parametrize("response", ["softmax", FixedClass, object()], ids=["name", "class", "no response"])
def test_responses_that_cannot_classify_are_refused(X, response):
    with pytest.raises(ValueError, match="response must"):
        TopicClassifier(3, response=response).fit(X, np.arange(X.shape[0]) % 2)


# What only predictions need


SUPERVISED = [TopicClassifier, TopicRegressor]


@pytest.mark.parametrize("supervised", SUPERVISED)
def test_words_have_weights(supervised, X, targets):
    model = small(supervised).fit(X, targets[supervised])
    assert model.word_weights_.shape == (N_WORDS,)
    assert model.word_weights_.dtype == model.components_.dtype
    assert model.word_weights_.min() >= 0.1
    assert model.word_weights_.max() <= 3
    assert model.word_weights_.std() > 1e-3
    assert_array_equal(model.alpha_, np.full(3, 1 + 2 / 23, np.float32))
    plain = clone(model).set_params(word_learning_rate=0.0).fit(X, targets[supervised])
    assert not hasattr(plain, "word_weights_")
    assert not hasattr(small(TopicModel).fit(X), "word_weights_")


@pytest.mark.parametrize("supervised", SUPERVISED)
@pytest.mark.parametrize("count_scale", ["log", "linear"])
@pytest.mark.parametrize("word_learning_rate", [0.0, 0.1])
def test_a_document_is_inferred_from_its_scaled_and_weighted_counts(supervised, X, targets, count_scale, word_learning_rate):
    X = X.astype(np.float64)
    model = small(supervised, count_scale=count_scale, word_learning_rate=word_learning_rate, n_layers=7)
    model.fit(X, targets[supervised])
    counts = X.toarray() if count_scale == "linear" else np.log2(1 + X.toarray())
    counts = counts * getattr(model, "word_weights_", 1.0)
    expected = infer(model.encoder_components_.T, counts, alpha=model.alpha_, n_layers=7, tol=model.tol).theta
    assert_allclose(model.transform(X), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("supervised", SUPERVISED)
def test_a_fit_without_words_weights_forgets_those_before(supervised, X, targets):
    y = targets[supervised]
    model = small(supervised).fit(X, y).set_params(word_learning_rate=0.0).fit(X, y)
    assert_array_equal(output(model, X), output(small(supervised, word_learning_rate=0.0).fit(X, y), X))


@pytest.mark.parametrize("supervised", SUPERVISED)
def test_words_weights_go_on(supervised, X, targets):
    """Warm starts and streams begin with the weights of the fit before."""
    y = targets[supervised]
    for method, options in (("fit", {"warm_start": True}), ("partial_fit", {})):
        model = small(supervised, word_learning_rate=0.2, **options).fit(X, y)
        before = model.word_weights_.copy()
        getattr(model.set_params(word_learning_rate=1e-6, batch_size=1000), method)(X, y)
        assert_allclose(model.word_weights_, before, rtol=1e-3)
        assert before.std() > 0.01


@pytest.mark.parametrize("supervised", SUPERVISED)
def test_dropout_is_the_random_states(supervised, X, targets):
    """And has no part in predictions."""
    y = targets[supervised]
    model, again, without = (small(supervised, word_dropout=fraction).fit(X, y) for fraction in (0.5, 0.5, 0.0))
    assert_array_equal(model.components_, again.components_)
    assert np.abs(model.components_ - without.components_).max() > 1e-4
    assert_array_equal(model.transform(X), model.transform(X))


@pytest.mark.parametrize("supervised", SUPERVISED)
def test_themes_say_what_documents_are_made_of(supervised, X, targets):
    """Better than the topics that predict; without readability there are no others."""
    model, without = (small(supervised, readability=r, n_epochs=20).fit(X, targets[supervised]) for r in (1.0, 0.0))
    theta = model.transform(X).astype(float)
    told, predicting = (
        (X.toarray() * np.log(theta @ components.astype(float))).sum() / X.sum()
        for components in (model.components_, model.encoder_components_)
    )
    assert told > predicting + 0.05
    assert_allclose(model.components_.sum(axis=1), 1, rtol=1e-5)
    assert without.components_ is without.encoder_components_
    assert np.abs(without.components_ - model.encoder_components_).max() > 1e-4


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"word_dropout": 1.0}, "word_dropout must be 'auto' or a fraction of at least 0 and below 1, got 1.0"),
        ({"word_dropout": -0.1}, "word_dropout must be 'auto' or a fraction"),
        ({"word_dropout": "some"}, "word_dropout must be 'auto' or a fraction"),
        ({"word_learning_rate": -1.0}, "word_learning_rate must be a finite number of at least 0, got -1.0"),
        ({"readability": np.inf}, "readability must be a finite number of at least 0, got inf"),
        ({"count_scale": "sqrt"}, "count_scale must be 'log' or 'linear', got 'sqrt'"),
        ({"n_layers": "many"}, "n_layers must be .* got 'many'"),
        ({"tol": 1.0}, "tol must be a number of at least 0 and below 1, got 1.0"),
        ({"learning_rate": "fast"}, "learning_rate must be 'auto' or a finite number of at least 0, got 'fast'"),
        ({"n_topics": "many"}, "n_topics must be .* got 'many'"),
    ],
    ids=str,
)
@pytest.mark.parametrize("supervised", SUPERVISED)
def test_bad_parameters_of_predictions_are_refused(supervised, X, targets, parameters, message):
    with pytest.raises(ValueError, match=message):
        small(supervised, **parameters).fit(X, targets[supervised])


def test_automatic_numbers_of_topics(X, planted):
    one = {"n_epochs": 1, "readability": 0}
    assert len(TopicRegressor(**one).fit(X, planted.y).components_) == 20
    assert len(TopicClassifier(**one).fit(X, planted.y > 0).components_) == 20
    assert len(TopicClassifier(n_epochs=1).fit(X, np.arange(N_DOCS) % 30).components_) == 30
    labels = np.arange(N_DOCS)[:, None] % np.arange(2, 27) == 0
    assert len(TopicClassifier(n_epochs=1).fit(X, labels.astype(int)).components_) == 25
    assert len(TopicRegressor(**one, response="ordinal").fit(X, np.arange(N_DOCS) % 30).components_) == 20
    # With themes as many as the documents support; more: test_first_themes.
    assert 3 <= len(TopicRegressor(n_epochs=1).fit(X, planted.y).components_) < 20


@pytest.mark.parametrize(
    ("estimator", "response", "n_layers"),
    [(TopicRegressor, "gaussian", 5), (TopicRegressor, "ordinal", 4), (TopicClassifier, None, 4)],
)
def test_automatic_numbers_of_layers(X, planted, estimator, response, n_layers):
    y = np.digitize(planted.y, [0, 1, 2])
    auto, given, other = (small(estimator, response=response, n_layers=n).fit(X, y) for n in ("auto", n_layers, n_layers + 1))
    assert_array_equal(auto.components_, given.components_)
    assert np.abs(auto.components_ - other.components_).max() > 1e-5


@pytest.mark.parametrize(
    ("n_topics", "alpha", "n_layers"),
    [(1, 1.05, 5), (50, 1.05, 5), (51, 1.05, 6), (100, 1.0, 6), (200, 1.05, 7), (201, 1.05, 8), (200, 0.9, 5)],
)
def test_many_topics_take_more_layers(X, planted, n_topics, alpha, n_layers):
    model = TopicRegressor(n_topics, alpha=alpha, n_epochs=1, random_state=0).fit(X, planted.y)
    alike = TopicRegressor(n_topics, alpha=alpha, n_epochs=1, n_layers=n_layers, random_state=0).fit(X, planted.y)
    assert_array_equal(model.components_, alike.components_)


@pytest.mark.parametrize(("n_words", "learning_rate"), [(N_WORDS, 0.01), (10_000, 0.01), (40_000, 0.005)])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_automatic_learning_rates(X, planted, n_words, learning_rate, method):
    wide = sp.csr_array((X.data, X.indices, X.indptr), shape=(N_DOCS, n_words))
    options = {"n_epochs": 2, "random_state": 0}
    auto = getattr(TopicRegressor(3, **options), method)(wide, planted.y)
    given = getattr(TopicRegressor(3, learning_rate=learning_rate, **options), method)(wide, planted.y)
    assert_array_equal(auto.components_, given.components_)


def test_words_that_never_occur_do_not_lengthen_the_steps(X, planted):
    """Beyond 10,000; up to there a step is longer with more words."""

    def moved(n_words):
        wide = sp.csr_array((X.data, X.indices, X.indptr), shape=(N_DOCS, n_words))
        settings = {"learning_rate_decay": "constant", "average_from": 1, "beta": 1.0, "readability": 0}
        model = TopicRegressor(3, n_epochs=1, random_state=0, **settings)
        still = clone(model).set_params(learning_rate=0.0)
        topics = [each.fit(wide, planted.y).encoder_components_[:, : X.shape[1]] for each in (model, still)]
        after, before = (each / each.sum(axis=1, keepdims=True) for each in topics)
        return float(np.abs(np.log(after / before)).mean())

    assert moved(10_000) > 3 * moved(N_WORDS)
    assert moved(90_000) == pytest.approx(moved(10_000), rel=0.15)


def test_an_estimate_of_alpha_does_not_change_the_number_of_layers(X, planted):
    auto, given = (
        TopicRegressor(100, alpha="auto", n_epochs=3, n_layers=n_layers, random_state=0).fit(X, planted.y)
        for n_layers in ("auto", 6)
    )
    assert_array_equal(auto.transform(X), given.transform(X))


@pytest.mark.parametrize("supervised", SUPERVISED)
@pytest.mark.parametrize("alpha", [1.05, "auto"])
def test_a_failed_fit_leaves_words_weights_and_alpha(monkeypatch, supervised, X, targets, alpha):
    y = targets[supervised]
    model = small(supervised, alpha=alpha).fit(X, y)
    state = snapshot(model)
    model.set_params(random_state=1)
    monkeypatch.setattr(supervised, "_summarise", lambda *arguments, **options: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model.fit(X, y)
    assert snapshot(model.set_params(random_state=0)) == state
    assert {"word_weights_", "alpha_"} <= set(state)


@pytest.mark.parametrize("method", ["predict", "transform"])
def test_a_number_in_place_of_documents_is_refused(method, planted):
    model = small(TopicRegressor).fit(planted.X, np.ravel(planted.y))
    with pytest.raises(ValueError, match="Expected 2D array, got scalar array"):
        getattr(model, method)(np.array(3.0))


def test_a_response_that_is_given_has_the_probabilities_of_its_kind(planted):
    classes = (np.ravel(planted.y) > 0).astype(int)
    given = small(TopicClassifier, response=Softmax(2.0, 2)).fit(planted.X, classes)
    expected = small(TopicClassifier, gamma=2.0).fit(planted.X, classes)
    assert_allclose(given.predict_proba(planted.X), expected.predict_proba(planted.X), rtol=1e-5)
    columns = given.fitted_model().columns(given.transform(planted.X))
    assert list(columns) == ["prediction", "probability_0", "probability_1"]
