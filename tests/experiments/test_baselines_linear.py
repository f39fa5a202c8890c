"""Linear models with a penalty that is chosen, the experiments' baseline."""

import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import roc_auc_score

sys.path.insert(0, str(Path(__file__).parents[2] / "experiments"))

from baselines import linear

N_DOCS, N_TRAIN, N_WORDS = 900, 600, 30


def counts():
    """Of words that are not equally frequent."""
    rng = np.random.default_rng(0)
    return sp.csr_matrix(rng.poisson(rng.gamma(2.0, 0.5, N_WORDS), (N_DOCS, N_WORDS)), dtype=np.float32)


def proportions():
    return np.random.default_rng(0).dirichlet(np.full(N_WORDS, 0.3), N_DOCS)


def tfidf(sublinear):
    return TfidfTransformer(sublinear_tf=sublinear).fit_transform(counts())


# What the model sees, what it makes features of, and what the targets are linear in.
PLANTED = [
    pytest.param(counts(), linear.COUNTS, counts(), id="counts"),
    pytest.param(counts(), linear.TFIDF, tfidf(False), id="tfidf"),
    pytest.param(counts(), linear.TFIDF, tfidf(True), id="sublinear"),
    pytest.param(proportions(), linear.PROPORTIONS, proportions(), id="proportions"),
]


def linear_in(features):
    """Coefficients and targets of mean 0 and variance 1."""
    coef = np.random.default_rng(1).standard_normal(N_WORDS)
    y = features @ coef
    return coef / y.std(), (y - y.mean()) / y.std()


def noise():
    return np.random.default_rng(2).standard_normal(N_DOCS)


def classes(scores):
    return np.where(np.random.default_rng(3).random(N_DOCS) < expit(scores), "yes", "no")


def split(X, y):
    return (X[:N_TRAIN], y[:N_TRAIN]), (X[N_TRAIN:], y[N_TRAIN:])


def strength(search, name):
    """Place of the chosen penalty among those that were tried with the chosen features, from 0 for the weakest to 1."""
    chosen = search.best_params_
    tried = next(grid[name] for grid in search.param_grid if str(grid["features"][0]) == str(chosen["features"]))
    weaker = tried > chosen[name] if name == "linear__C" else tried < chosen[name]
    return weaker.sum() / (len(tried) - 1)


def cosine(search, coef):
    """Of the coefficients of what goes into the features, and those that were planted."""
    model = search.best_estimator_
    found = np.ravel(model["linear"].coef_) / getattr(model["features"], "scale_", 1.0)
    return found @ coef / np.linalg.norm(found) / np.linalg.norm(coef)


@pytest.mark.parametrize(("X", "features", "seen"), PLANTED)
def test_numbers_without_noise(X, features, seen):
    coef, y = linear_in(seen)
    train, test = split(X, y)
    search = linear.tuned_ridge(features, "r2").fit(*train)
    assert search.score(*test) > 0.99
    assert cosine(search, coef) > 0.99
    assert strength(search, "linear__alpha") == 0


@pytest.mark.parametrize(("X", "features", "seen"), PLANTED)
def test_classes_without_noise(X, features, seen):
    coef, y = linear_in(seen)
    train, test = split(X, y > 0)
    search = linear.tuned_logistic(features, "neg_log_loss").fit(*train)
    assert np.mean(search.predict(test[0]) == test[1]) > 0.94
    assert cosine(search, coef) > 0.95
    assert strength(search, "linear__C") <= 1 / 6


@pytest.mark.parametrize("sublinear", [False, True])
def test_the_features_that_the_targets_are_linear_in(sublinear):
    _, y = linear_in(tfidf(sublinear))
    for search in (
        linear.tuned_ridge(linear.TFIDF, "r2").fit(counts(), y),
        linear.tuned_logistic(linear.TFIDF, "roc_auc").fit(counts(), y > 0),
    ):
        assert search.best_estimator_["features"].sublinear_tf == sublinear


@pytest.mark.parametrize(("X", "features"), [case.values[:2] for case in PLANTED if case.id != "sublinear"])
def test_pure_noise_has_a_strong_penalty(X, features):
    numbers = linear.tuned_ridge(features, "r2").fit(X, noise())
    assert strength(numbers, "linear__alpha") >= 5 / 6
    # An area under the curve does not tell how large the coefficients are; a log-loss does.
    names = linear.tuned_logistic(features, "neg_log_loss").fit(X, classes(np.zeros(N_DOCS)))
    assert strength(names, "linear__C") >= 5 / 6


@pytest.mark.parametrize(
    ("tuned", "measure", "name"),
    [(linear.tuned_ridge, "r2", "linear__alpha"), (linear.tuned_logistic, "neg_log_loss", "linear__C")],
)
def test_some_noise_has_a_penalty_between(tuned, measure, name):
    _, y = linear_in(tfidf(False))
    train, test = split(counts(), y + 2 * noise() if measure == "r2" else classes(2 * y))
    search = tuned(linear.TFIDF, measure).fit(*train)
    assert 0 < strength(search, name) < 1
    (transformer, penalties), *_ = linear.TFIDF
    ends = [tuned([(transformer, penalties[[end]])], measure).fit(*train).score(*test) for end in (0, -1)]
    assert search.score(*test) > max(ends)


@pytest.mark.parametrize(("X", "features", "seen"), PLANTED)
def test_the_area_under_the_curve_is_that_of_the_planted_scores(X, features, seen):
    _, y = linear_in(seen)
    train, test = split(X, classes(2 * y))
    search = linear.tuned_logistic(features, "roc_auc").fit(*train)
    assert search.score(*test) > roc_auc_score(test[1], y[N_TRAIN:]) - 0.03


def test_documents_without_a_label_are_left_out():
    X = counts()
    _, y = linear_in(X)
    names = classes(2 * y).astype(object)
    unknown = np.arange(N_DOCS) % 3 == 0
    expected = linear.tuned_ridge(linear.COUNTS, "r2").fit(X[~unknown], y[~unknown])
    found = linear.tuned_ridge(linear.COUNTS, "r2").fit(X, np.where(unknown, np.nan, y))
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))
    expected = linear.tuned_logistic(linear.COUNTS, "roc_auc").fit(X[~unknown], names[~unknown].astype(str))
    found = linear.tuned_logistic(linear.COUNTS, "roc_auc").fit(X, np.where(unknown, None, names))
    np.testing.assert_array_equal(found.predict_proba(X), expected.predict_proba(X))
    assert set(found.predict(X)) == {"no", "yes"}
