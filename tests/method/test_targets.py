"""Kinds of targets: several labels a document, ordered levels, counts; weights of classes."""

import numpy as np
import pytest
import scipy.sparse as sp
from mirrorlda.datasets import make_topics
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import d2_tweedie_score, f1_score, recall_score, roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.utils import get_tags

from mirrorlda import TopicClassifier, TopicRegressor

N_DOCS, N_TRAINED = 600, 400


@pytest.fixture(scope="module")
def planted():
    return make_topics(N_DOCS, 80, 4, n_outputs=1, random_state=0)


@pytest.fixture(scope="module")
def X(planted):
    return planted.X


def small(estimator, **parameters):
    return estimator(**({"n_topics": 4, "n_epochs": 3, "random_state": 0} | parameters))


# Several labels


@pytest.fixture(scope="module")
def labels(planted):
    """A document has those topics as labels that are a quarter of it; few have none, many more than one."""
    return (planted.theta > 0.25).astype(int)


def test_labels_are_predicted(X, labels):
    """Measured: areas of 0.997 and more, F1 of 0.95."""
    model = TopicClassifier(random_state=0).fit(X[:N_TRAINED], labels[:N_TRAINED])
    held_out, truth = X[N_TRAINED:], labels[N_TRAINED:]
    assert (roc_auc_score(truth, model.predict_proba(held_out), average=None) > 0.95).all()
    assert f1_score(truth, model.predict(held_out), average="macro") > 0.85
    # Subset accuracy, as all of scikit-learn's classifiers of several labels have it.
    assert_allclose(model.score(held_out, truth), (model.predict(held_out) == truth).all(axis=1).mean())
    assert model.score(held_out, truth) > 0.6


def test_shapes_and_values_of_labels(X, labels):
    model = small(TopicClassifier, gamma=2.0).fit(X, labels[:, :3])
    assert_array_equal(model.classes_, [0, 1, 2])
    assert model.coef_.shape == (3, 4)
    p, decisions, predicted = model.predict_proba(X), model.decision_function(X), model.predict(X)
    assert p.shape == decisions.shape == predicted.shape == (N_DOCS, 3)
    assert_allclose(p, 1 / (1 + np.exp(-decisions)), rtol=1e-5)
    assert_allclose(model.predict_log_proba(X), np.log(p), rtol=1e-3, atol=1e-6)
    assert_array_equal(predicted, (p > 0.5).astype(int))
    assert predicted.dtype.kind == "i"
    assert np.ptp(p.sum(axis=1)) > 0.1, "labels exclude each other"


@pytest.mark.parametrize(
    "kind", [sp.csr_matrix, sp.csc_array, np.ndarray.tolist, lambda y: y.astype(bool), lambda y: y.astype(float)]
)
def test_labels_of_every_kind(X, labels, kind):
    model, expected = (small(TopicClassifier).fit(X, y) for y in (kind(labels), labels))
    assert_array_equal(model.predict_proba(X), expected.predict_proba(X))
    assert_array_equal(model.predict(X), expected.predict(X))


def test_two_labels_are_not_two_classes(X, labels):
    model = small(TopicClassifier).fit(X, labels[:, :2])
    assert model.decision_function(X).shape == model.predict(X).shape == (N_DOCS, 2)


def test_a_label_that_all_have_and_one_that_none_has(X, labels):
    y = np.c_[labels[:, 0], np.ones(N_DOCS, int), np.zeros(N_DOCS, int)]
    model = small(TopicClassifier).fit(X, y)
    assert_array_equal(model.predict(X)[:, 1:], np.tile([1, 0], (N_DOCS, 1)))


def test_a_stream_of_labels(X, labels):
    model = small(TopicClassifier, n_topics=8)
    for _ in range(10):
        for part in np.array_split(np.arange(N_TRAINED), 2):
            model.partial_fit(X[part], labels[part])
    assert roc_auc_score(labels[N_TRAINED:], model.predict_proba(X[N_TRAINED:])) > 0.95
    with pytest.raises(ValueError, match="y has 3 labels, but the model has 4"):
        model.partial_fit(X, labels[:, :3])
    with pytest.raises(ValueError, match="the model was fitted with several labels a document"):
        model.partial_fit(X, labels[:, 0])
    with pytest.raises(ValueError, match="the model was fitted with one class a document"):
        small(TopicClassifier).fit(X, labels[:, 0]).partial_fit(X, labels)
    assert model.predict(X).shape == (N_DOCS, 4)


def test_numbers_of_several_classes_are_not_labels(X):
    with pytest.raises(ValueError, match=r"1d array, got an array of shape \(600, 2\)"):
        small(TopicClassifier).fit(X, np.arange(2 * N_DOCS).reshape(N_DOCS, 2) % 3)


def test_the_conventions_of_scikit_learn(X, labels):
    assert get_tags(TopicClassifier()).classifier_tags.multi_label
    predicted = cross_val_predict(small(TopicClassifier), X, labels, cv=3, method="predict_proba")
    assert predicted.shape == labels.shape
    model = clone(small(TopicClassifier).fit(X, labels)).fit(X, labels[:, 0])
    assert model.predict(X).shape == (N_DOCS,)


# Levels


@pytest.fixture(scope="module")
def levels(planted):
    """Four levels with uneven steps, as many documents of each."""
    return np.array([1, 2, 4, 8])[np.digitize(planted.y, np.quantile(planted.y, [0.25, 0.5, 0.75]))]


@pytest.fixture(scope="module")
def ordinal(X, levels):
    return TopicRegressor(response="ordinal", random_state=0).fit(X[:N_TRAINED].astype(np.float64), levels[:N_TRAINED])


def test_probabilities_of_levels(ordinal, X, levels):
    X = X.astype(np.float64)
    p = ordinal.predict_proba(X)
    assert_array_equal(ordinal.levels_, [1, 2, 4, 8])
    assert ordinal.coef_.shape == (3, len(ordinal.components_))
    assert p.shape == (N_DOCS, 4)
    assert p.min() >= 0
    assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    assert_allclose(ordinal.predict(X), p @ ordinal.levels_, rtol=1e-12)
    residuals = (levels - ordinal.predict(X))[:N_TRAINED]
    assert_allclose(ordinal.noise_std_, [np.sqrt(np.mean(residuals**2))], rtol=1e-9)


def test_levels_are_learned_in_as_few_steps_as_numbers():
    """Eighty steps: with coefficients as slow as those of numbers, levels stay 0.03 behind here, and 0.1 on real reviews."""
    data = make_topics(n_docs=1500, n_words=300, n_topics=6, n_outputs=1, random_state=0)
    y = np.digitize(data.y.ravel(), np.quantile(data.y, [0.2, 0.4, 0.6, 0.8]))

    def held_out(response):
        models = [TopicRegressor(10, response=response, random_state=seed).fit(data.X[:1000], y[:1000]) for seed in range(2)]
        return np.mean([model.score(data.X[1000:], y[1000:]) for model in models])

    assert held_out("gaussian") - 0.022 < held_out("ordinal")


def test_tables_have_the_probability_of_each_level(ordinal, X, levels):
    columns = ordinal.fitted_model().columns(ordinal.transform(X))
    assert list(columns) == ["prediction", "probability_1", "probability_2", "probability_4", "probability_8"]
    assert_allclose(columns["prediction"], ordinal.predict(X), rtol=1e-12)
    assert_allclose(np.stack(list(columns.values())[1:], axis=1), ordinal.predict_proba(X), rtol=1e-12)
    near = small(TopicRegressor, response="ordinal").fit(X, np.where(levels > 2, 1e6 + 0.25, 1e6 + 0.5))
    assert list(near.fitted_model().columns(near.transform(X)))[1:] == ["probability_1000000.25", "probability_1000000.5"]


def test_columns_match_levels_and_levels_are_predicted(ordinal, X, levels):
    X, truth = X[N_TRAINED:].astype(np.float64), levels[N_TRAINED:]
    p = ordinal.predict_proba(X)
    assert np.mean(ordinal.levels_[p.argmax(axis=1)] == truth) > 0.45
    for column, level in enumerate(ordinal.levels_):
        assert p[truth == level, column].mean() > 1.2 * p[truth != level, column].mean()
    assert ordinal.score(X, truth) > 0.6


def test_levels_may_be_of_any_size(X, levels):
    """Only their order matters to what is learned."""
    one, other = (small(TopicRegressor, response="ordinal").fit(X, y) for y in (levels, np.log2(levels) - 10))
    assert_array_equal(one.components_, other.components_)
    assert_array_equal(one.predict_proba(X), other.predict_proba(X))
    assert_allclose(other.levels_, [-10, -9, -8, -7])


def test_levels_that_cannot_be(X, levels):
    model = small(TopicRegressor, response="ordinal").partial_fit(X, levels)
    with pytest.raises(ValueError, match=r"y\[1\] is 3, which is not one of the levels \[1.0, 2.0, 4.0, 8.0\]"):
        model.partial_fit(X[:3], [1, 3, 2])
    model.partial_fit(X[:3], [1, 1, 2])
    with pytest.raises(ValueError, match=r"(?i)could not convert string|numeric"):
        small(TopicRegressor, response="ordinal").fit(X, np.array(["low", "high"])[levels % 2])
    with pytest.raises(ValueError, match="needs 2 to 100 levels, but y has 600: use 'gaussian'"):
        small(TopicRegressor, response="ordinal").fit(X, np.arange(N_DOCS))
    with pytest.raises(ValueError, match="needs 2 to 100 levels, but y has 1"):
        small(TopicRegressor, response="ordinal").fit(X, np.ones(N_DOCS))
    with pytest.raises(ValueError, match="one target, but y has 2"):
        small(TopicRegressor, response="ordinal").fit(X, np.c_[levels, levels])


def test_only_levels_have_probabilities():
    assert hasattr(TopicRegressor(response="ordinal"), "predict_proba")
    assert not hasattr(TopicRegressor(), "predict_proba")


# Counts


@pytest.fixture(scope="module")
def means(planted):
    return np.exp(planted.theta @ [0.0, 1.0, 2.0, 3.0])


def test_counts_are_predicted(X, means):
    counts = np.random.default_rng(0).poisson(means)
    model = TopicRegressor(response="poisson", random_state=0).fit(X[:N_TRAINED], counts[:N_TRAINED])
    predicted, truth = model.predict(X[N_TRAINED:]), counts[N_TRAINED:]
    assert predicted.min() > 0
    attainable = d2_tweedie_score(truth, means[N_TRAINED:], power=1)
    assert d2_tweedie_score(truth, predicted, power=1) > attainable - 0.1
    assert_allclose(np.log(model.predict(X)), model.transform(X) @ model.coef_[0], rtol=1e-3, atol=1e-4)
    assert model.history_["score"][-1] > model.history_["score"][0]


def test_several_counts(X, means):
    counts = np.random.default_rng(0).poisson(np.c_[means, means[::-1]])
    model = small(TopicRegressor, response="poisson").fit(X, counts)
    assert model.predict(X).shape == (N_DOCS, 2)


def test_negative_counts_are_refused_with_their_place(X, means):
    counts = np.random.default_rng(0).poisson(means)
    counts[7] = -2
    with pytest.raises(ValueError, match=r"y\[7, 0\] is -2.0, expected a count from 0"):
        small(TopicRegressor, response="poisson").fit(X, counts)


# Weights of classes


@pytest.fixture(scope="module")
def rare(planted):
    """One in 12 documents, those with the largest of noisy targets."""
    y = planted.y + np.random.default_rng(0).normal(0, 2 * planted.y.std(), N_DOCS)
    return (y > np.quantile(y, 11 / 12)).astype(int)


@pytest.mark.parametrize("class_weight", ["balanced", {0: 1, 1: 15}], ids=str)
def test_class_weights_find_more_of_a_rare_class(X, rare, class_weight):
    recalls = []
    for weight in (None, class_weight):
        model = TopicClassifier(class_weight=weight, random_state=0).fit(X[:N_TRAINED], rare[:N_TRAINED])
        recalls.append(recall_score(rare[N_TRAINED:], model.predict(X[N_TRAINED:])))
    assert recalls[1] > recalls[0] + 0.2


def test_class_weights_are_sample_weights(X, rare):
    names = np.array(["often", "rare"])[rare]
    model = small(TopicClassifier, class_weight={"often": 0.5, "rare": 4.0}).fit(X, names)
    expected = small(TopicClassifier).fit(X, names, sample_weight=np.where(rare, 4.0, 0.5))
    assert_array_equal(model.components_, expected.components_)
    assert_array_equal(model.predict_proba(X), expected.predict_proba(X))
    both = small(TopicClassifier, class_weight={"often": 0.5, "rare": 2.0})
    both.fit(X, names, sample_weight=np.where(rare, 2.0, 1.0))
    assert_array_equal(both.components_, expected.components_)


def test_class_weights_of_documents_without_a_label_are_one(X, rare):
    y = np.where(np.arange(N_DOCS) % 3 == 0, np.nan, rare)
    model = small(TopicClassifier, class_weight="balanced").fit(X, y)
    counts = np.array([np.sum(y == 0), np.sum(y == 1)])
    weights = np.where(np.isnan(y), 1.0, (counts.sum() / 2 / counts)[rare])
    assert_allclose(model.components_, small(TopicClassifier).fit(X, y, sample_weight=weights).components_, rtol=1e-5)


@pytest.mark.parametrize(
    ("class_weight", "message"), [({0: 1, 7: 2}, r"classes, \[1\], are not in class_weight"), ("even", "balanced")], ids=str
)
def test_class_weights_that_cannot_be(X, rare, class_weight, message):
    with pytest.raises(ValueError, match=message):
        small(TopicClassifier, class_weight=class_weight).fit(X, rare)


# Mistakes


def test_labels_are_zero_or_one(X):
    tags = np.random.default_rng(0).integers(1, 3, (X.shape[0], 2))
    with pytest.raises(ValueError, match=r"y\[.*\] is 2, expected 0 or 1"):
        TopicClassifier(3, n_epochs=1).fit(X, tags)


def test_going_on_needs_the_same_response(X):
    y = np.random.default_rng(0).integers(0, 3, X.shape[0]).astype(float)
    model = TopicRegressor(3, n_epochs=1, warm_start=True, response="ordinal").fit(X, y)
    with pytest.raises(ValueError, match=r"response must be that of the last fit, Ordinal.*got SquaredError"):
        model.set_params(response="gaussian").fit(X, y)
    with pytest.raises(ValueError, match="goes on with the response 'ordinal', got 'gaussian'"):
        model.partial_fit(X, y)
    fresh = model.set_params(warm_start=False).fit(X, y)
    assert not hasattr(fresh, "levels_")


def test_class_weights_are_checked(X):
    y = np.arange(X.shape[0]) % 3
    for wrong in ({0: -1.0}, {0: 0, 1: 0, 2: 0}, {0: np.inf}, {0: 2e12}, {0: 0, 1: 5e-13, 2: 0}):
        with pytest.raises(ValueError, match="class_weight must be finite"):
            TopicClassifier(3, n_epochs=1, class_weight=wrong).fit(X, y)
    stream = TopicClassifier(3, class_weight={0: 0.0}, batch_size=10, random_state=0)
    stream.partial_fit(X[np.argsort(y)], np.sort(y), classes=[0, 1, 2])
    assert np.isfinite(stream.coef_).all()
    with pytest.raises(ValueError, match="needs all documents"):
        TopicClassifier(3, class_weight="balanced").partial_fit(X, y)


def test_classes_may_share_a_guided_topic(X):
    y = np.arange(X.shape[0]) % 3
    model = TopicClassifier(2, seed_words={0: [1], 1: [2], 2: [3]}, n_epochs=2, random_state=0).fit(X, y)
    assert np.isfinite(model.components_).all()
