"""tomotopy's LDA and supervised LDA, the experiments' baselines."""

import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from mirrorlda.datasets import make_topics
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import roc_auc_score

sys.path.insert(0, str(Path(__file__).parents[2] / "experiments"))

from baselines import linear
from baselines.tomotopy_models import SupervisedLDAClassifier, SupervisedLDARegressor, TomotopyLDA, word_lists

# tomotopy's types lack a module, of which Python warns when they are first imported.
pytestmark = pytest.mark.filterwarnings("ignore:builtin type .* has no __module__ attribute:DeprecationWarning")

N_TRAIN = 400


def planted(**response):
    return make_topics(n_docs=600, n_words=100, n_topics=5, random_state=0, **response)


def matched(found, expected):
    """The number of the fitted topic for each planted one, and the cosines of the two."""
    found, expected = (topics / np.linalg.norm(topics, axis=1, keepdims=True) for topics in (found, expected))
    cosines = expected @ found.T
    rows, columns = linear_sum_assignment(-cosines)
    return columns, cosines[rows, columns]


def with_empty(X, row):
    return sp.vstack([X[:row], sp.csr_matrix((1, X.shape[1])), X[row:]], "csr")


@pytest.fixture(scope="module")
def data():
    return planted(n_outputs=1)


@pytest.fixture(scope="module")
def classes():
    return planted(n_classes=2, gamma=10)


def test_words_are_repeated_as_often_as_they_occur():
    X = sp.csr_matrix([[0, 2, 0, 1], [0, 0, 0, 0], [3, 0, 0, 0]])
    assert word_lists(X) == [["1", "1", "3"], [], ["0", "0", "0"]]


@pytest.mark.parametrize("alpha", [None, 0.1])
def test_the_planted_topics_and_proportions(data, alpha):
    model = TomotopyLDA(5, alpha=alpha)
    trained = model.fit_transform(data.X[:N_TRAIN])
    topics, cosines = matched(model.components_, data.components)
    assert cosines.min() > 0.99
    for found, theta in [(trained, data.theta[:N_TRAIN]), (model.transform(data.X[N_TRAIN:]), data.theta[N_TRAIN:])]:
        np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-5)
        assert min(np.corrcoef(found[:, topic], planted)[0, 1] for topic, planted in zip(topics, theta.T, strict=True)) > 0.98
        assert np.abs(found[:, topics] - theta).mean() < 0.03
    assert model.topic_shares_[topics] == pytest.approx(data.theta[:N_TRAIN].mean(axis=0), abs=0.02)
    # A prior that is given stays; one that is not is learned.
    assert model.model_.alpha == pytest.approx(np.full(5, 0.1), rel=0.5 if alpha is None else 1e-6)
    assert (np.ptp(model.model_.alpha) > 0) == (alpha is None)


def test_words_of_no_training_document_are_part_of_the_topics(data):
    # The last ten columns are empty, and one between the others.
    X = sp.hstack(
        [data.X[:N_TRAIN, :50], sp.csr_matrix((N_TRAIN, 1)), data.X[:N_TRAIN, 50:], sp.csr_matrix((N_TRAIN, 10))], "csr"
    )
    model = TomotopyLDA(5).fit(X)
    seen = np.asarray(X.sum(axis=0)).ravel() > 0
    np.testing.assert_allclose(model.components_.sum(axis=1), 1)
    assert model.components_.min() > 0
    # None has less than a word that a topic was never drawn for.
    assert (model.components_[:, ~seen] <= model.components_[:, seen].min(axis=1, keepdims=True) * 1.001).all()
    assert matched(np.delete(model.components_, 50, axis=1)[:, :100], data.components)[1].min() > 0.99
    prior = model.model_.alpha / model.model_.alpha.sum()
    np.testing.assert_allclose(model.transform(sp.csr_matrix(3 * np.eye(1, 111, 105)))[0], prior, rtol=1e-6)


def test_documents_without_words_have_the_mean_of_the_prior(data):
    X = data.X[:N_TRAIN]
    alone, beside = TomotopyLDA(5), TomotopyLDA(5)
    expected, found = alone.fit_transform(X), beside.fit_transform(with_empty(X, 7))
    prior = beside.model_.alpha / beside.model_.alpha.sum()
    np.testing.assert_array_equal(beside.components_, alone.components_)
    np.testing.assert_array_equal(np.delete(found, 7, axis=0), expected)
    np.testing.assert_array_equal(found[7], prior)
    np.testing.assert_array_equal(beside.transform(with_empty(X[:3], 1))[1], prior)


def test_the_seed_decides(data):
    first, second, other = (TomotopyLDA(5, random_state=seed).fit(data.X[:N_TRAIN]) for seed in (1, 1, 2))
    assert np.array_equal(first.components_, second.components_)
    assert not np.array_equal(first.components_, other.components_)


def test_numbers_from_the_proportions(data):
    y = data.y[:N_TRAIN].copy()
    y[::3] = np.nan
    model = linear.on_proportions(TomotopyLDA(5), linear.tuned_ridge, "r2", 1).fit(data.X[:N_TRAIN], y)
    assert model.score(data.X[N_TRAIN:], data.y[N_TRAIN:]) > 0.95


def test_classes_from_the_proportions(classes):
    y = np.array(["no", "yes"], object)[classes.y]
    y[:N_TRAIN:3] = None
    model = linear.on_proportions(TomotopyLDA(5), linear.tuned_logistic, "roc_auc", 1).fit(classes.X[:N_TRAIN], y[:N_TRAIN])
    best = roc_auc_score(classes.y[N_TRAIN:], classes.theta[N_TRAIN:] @ (classes.coef[1] - classes.coef[0]))
    assert model.score(classes.X[N_TRAIN:], y[N_TRAIN:].tolist()) > best - 0.02


def test_numbers_of_supervised_topics(data):
    y = data.y[:N_TRAIN] * 10 + 50
    # Every seventh document has no response, and the first of them no words either.
    y[::7] = np.nan
    X = with_empty(data.X[1:N_TRAIN], 0)
    model = SupervisedLDARegressor(5).fit(X, y)
    assert model.score(data.X[N_TRAIN:], data.y[N_TRAIN:] * 10 + 50) > 0.95
    assert model.predict(X[:1]) == pytest.approx(np.nanmean(y))
    topics, cosines = matched(model.components_, data.components)
    assert cosines.min() > 0.95
    theta = model.transform(data.X[N_TRAIN:])
    np.testing.assert_allclose(theta.sum(axis=1), 1, rtol=1e-5)
    assert np.abs(theta[:, topics] - data.theta[N_TRAIN:]).mean() < 0.05


def test_classes_of_supervised_topics(classes):
    names = np.array(["no", "yes"], object)[classes.y]
    names[:N_TRAIN:7] = None
    model = SupervisedLDAClassifier(5).fit(classes.X[:N_TRAIN], names[:N_TRAIN])
    X, y = with_empty(classes.X[N_TRAIN:], 0), classes.y[N_TRAIN:]
    chances = model.predict_proba(X)
    best = roc_auc_score(y, classes.theta[N_TRAIN:] @ (classes.coef[1] - classes.coef[0]))
    assert roc_auc_score(y, chances[1:, 1]) > best - 0.02
    assert chances.sum(axis=1) == pytest.approx(1)
    known = [name for name in names[:N_TRAIN] if name is not None]
    assert chances[0, 1] == pytest.approx(known.count("yes") / len(known))
    assert np.mean(model.predict(X)[1:] == names[N_TRAIN:]) > 0.9
    with pytest.raises(ValueError, match="two classes, found 3"):
        SupervisedLDAClassifier(5).fit(classes.X, np.arange(600) % 3)
