"""Spectral-sLDA of the experiments: its moments word by word, and what it recovers of planted topics."""

import sys
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from mirrorlda.datasets import make_topics
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.metrics import r2_score, roc_auc_score

sys.path.insert(0, str(Path(__file__).parents[2] / "experiments"))

from baselines import spectral_slda as spectral

N_TRAIN = 6000


@pytest.fixture(scope="module")
def data():
    return make_topics(N_TRAIN + 500, 100, 4, doc_length=60, alpha=0.3, n_outputs=1, random_state=3)


@pytest.fixture(scope="module")
def model(data):
    return spectral.SpectralSLDA(4, alpha0=1.2).fit(data.X[:N_TRAIN], data.y[:N_TRAIN])


def matched(model, data):
    """The number of the fitted topic for each planted one, and the cosines of the two."""
    fitted, planted = (topics / np.linalg.norm(topics, axis=1, keepdims=True) for topics in (model.components_, data.components))
    cosines = planted @ fitted.T
    rows, columns = linear_sum_assignment(-cosines)
    return columns, cosines[rows, columns]


def few_documents():
    rng = np.random.default_rng(0)
    X = rng.poisson(0.9, (7, 5)) + np.eye(7, 5) + np.eye(7, 5, 1) + np.eye(7, 5, -2)
    return X + 3 * (X.sum(axis=1, keepdims=True) < 3), rng.standard_normal(7), rng.standard_normal((5, 3))


def mean_over_choices(x, n_chosen):
    """Mean of the outer products of the indicators of n_chosen of a document's words, over all ordered choices."""
    tokens = np.repeat(np.arange(len(x)), x.astype(int))
    total = np.zeros((len(x),) * n_chosen)
    choices = list(permutations(tokens, n_chosen))
    for chosen in choices:
        total[chosen] += 1
    return total / len(choices)


def test_third_moment_over_all_triples():
    X, _, W = few_documents()
    a = 0.7
    one, two, three = (np.mean([mean_over_choices(x, n) for x in X], axis=0) for n in (1, 2, 3))
    mixed = sum(np.einsum(f"ij,k->{order}", two, one) for order in ("ijk", "ikj", "kij"))
    expected = three - a / (a + 2) * mixed + 2 * a**2 / ((a + 1) * (a + 2)) * np.einsum("i,j,k->ijk", one, one, one)
    found = spectral.third_moment(sp.csr_array(X), W, a)
    np.testing.assert_allclose(found, np.einsum("abc,ai,bj,ck->ijk", expected, W, W, W), atol=1e-12)


def test_batches_add_up(monkeypatch):
    X, _, W = few_documents()
    whole = spectral.third_moment(sp.csr_array(X), W, 0.7)
    monkeypatch.setattr(spectral, "BATCH", 20)
    np.testing.assert_allclose(spectral.third_moment(sp.csr_array(X), W, 0.7), whole, atol=1e-12)


def test_response_moment_over_all_pairs():
    X, y, W = few_documents()
    a = 0.7
    one, two = (np.mean([mean_over_choices(x, n) for x in X], axis=0) for n in (1, 2))
    y_one, y_two = (np.mean([r * mean_over_choices(x, n) for r, x in zip(y, X, strict=True)], axis=0) for n in (1, 2))
    mixed = y.mean() * two + np.outer(one, y_one) + np.outer(y_one, one)
    expected = y_two - a / (a + 2) * mixed + 2 * a**2 / ((a + 1) * (a + 2)) * y.mean() * np.outer(one, one)
    np.testing.assert_allclose(spectral.response_moment(sp.csr_array(X), y, W, a), W.T @ expected @ W, atol=1e-12)


def test_whitening_of_second_moment(data):
    X, a = sp.csr_array(data.X[:500], dtype=float), 1.2
    dense, lengths = X.toarray(), X.sum(axis=1)
    frequencies = (dense / lengths[:, None]).mean(axis=0)
    M2 = np.mean([(np.outer(x, x) - np.diag(x)) / (n * (n - 1)) for x, n in zip(dense, lengths, strict=True)], axis=0)
    M2 -= a / (a + 1) * np.outer(frequencies, frequencies)
    W, B = spectral.whitening(X, 4, a, np.random.default_rng(0))
    np.testing.assert_allclose(W.T @ M2 @ W, np.eye(4), atol=1e-8)
    np.testing.assert_allclose(B.T @ W, np.eye(4), atol=1e-8)
    np.testing.assert_allclose(np.linalg.eigvalsh(B @ B.T)[-4:], np.linalg.eigvalsh(M2)[-4:], rtol=1e-6)


def test_eigenpairs_of_orthogonal_tensor():
    V = np.linalg.qr(np.random.default_rng(0).standard_normal((6, 6)))[0]
    planted = np.array([1.0, 3, 2, 2, 5, 4])
    T = np.einsum("n,ni,nj,nk->ijk", planted, V, V, V)
    values, vectors = spectral.eigenpairs(T, np.random.default_rng(1))
    np.testing.assert_allclose(np.sort(values), np.sort(planted))
    np.testing.assert_allclose(np.abs(vectors @ V.T).max(axis=1), 1)
    np.testing.assert_allclose(np.einsum("n,ni,nj,nk->ijk", values, vectors, vectors, vectors), T, atol=1e-10)


def test_topics_recovered(model, data):
    assert matched(model, data)[1].min() > 0.99
    np.testing.assert_allclose(model.components_.sum(axis=1), 1)
    assert model.components_.min() >= 0


def test_alpha_recovered(model):
    np.testing.assert_allclose(model.alpha_, 0.3, rtol=0.1)
    assert model.alpha_.sum() == pytest.approx(1.2, rel=0.03)


def test_coefficients_recovered(model, data):
    topics, _ = matched(model, data)
    error = model.coef_[topics] - data.coef[0]
    assert np.abs(error).max() < 0.05 * np.ptp(data.coef)


def test_proportions_and_predictions(model, data):
    X, y, theta = data.X[N_TRAIN:], data.y[N_TRAIN:], data.theta[N_TRAIN:]
    found = model.transform(X)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert np.abs(found[:, matched(model, data)[0]] - theta).mean() < 0.05
    assert r2_score(y, model.predict(X)) > 0.9


def test_proportions_in_batches(model, data, monkeypatch):
    X = data.X[:50]
    whole = model.transform(X)
    monkeypatch.setattr(spectral, "BATCH", 1000)
    np.testing.assert_allclose(model.transform(X), whole, atol=5e-3)


def test_classes_recovered():
    # With this seed no planted sign is in doubt, and a quarter of the documents are of the rarer class.
    data = make_topics(N_TRAIN + 500, 100, 4, doc_length=60, alpha=0.3, n_classes=2, gamma=10, random_state=0)
    names = np.array(["no", "yes"], object)[data.y]
    names[:300] = None
    model = spectral.SpectralSLDAClassifier(4, alpha0=1.2).fit(data.X[:N_TRAIN], names[:N_TRAIN])
    planted, topics = data.coef[1] - data.coef[0], matched(model, data)[0]
    assert (np.sign(model.coef_[topics]) == np.sign(planted)).all()
    X, y = data.X[N_TRAIN:], data.y[N_TRAIN:]
    best = roc_auc_score(y, data.theta[N_TRAIN:] @ planted)
    assert roc_auc_score(y, model.decision_function(X)) > best - 0.02
    assert set(model.predict(X)) == {"no", "yes"}
    with pytest.raises(ValueError, match="two classes, found 3"):
        clone(model).fit(X, np.arange(500) % 3)


def test_more_topics_than_planted_stay_finite(data):
    model = spectral.SpectralSLDA(30).fit(data.X[:1000], data.y[:1000])
    assert np.isfinite(model.predict(data.X[N_TRAIN:])).all()
    np.testing.assert_allclose(model.components_.sum(axis=1), 1)


def test_document_without_words_has_prior_mean(model, data):
    empty = sp.csr_array((1, data.X.shape[1]))
    np.testing.assert_allclose(model.transform(empty)[0], model.alpha_ / model.alpha_.sum())


def test_same_seed_same_model(data):
    X, y = data.X[:1000], data.y[:1000]
    first, second = (spectral.SpectralSLDA(4, alpha0=1.2, random_state=5).fit(X, y) for _ in range(2))
    for name in ("components_", "alpha_", "coef_"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


def test_documents_without_response_serve_the_topics(model, data):
    y = data.y[:N_TRAIN].copy()
    y[::2] = np.nan
    half = clone(model).fit(data.X[:N_TRAIN], y)
    np.testing.assert_array_equal(half.components_, model.components_)
    assert not np.array_equal(half.coef_, model.coef_)
    assert r2_score(data.y[N_TRAIN:], half.predict(data.X[N_TRAIN:])) > 0.8


def test_constant_in_response_goes_to_coefficients(model, data):
    moved = clone(model).fit(data.X[:N_TRAIN], data.y[:N_TRAIN] + 100)
    np.testing.assert_allclose(moved.coef_, model.coef_ + 100)


def test_short_documents_take_no_part(model, data):
    short = sp.csr_array(np.eye(2, data.X.shape[1]) * [[2], [0]])
    X, y = sp.vstack([short, data.X[:N_TRAIN]]), np.append([1e6, 1e6], data.y[:N_TRAIN])
    np.testing.assert_allclose(clone(model).fit(X, y).coef_, model.coef_)


def test_refused(data):
    X, y = data.X[:100], data.y[:100]
    with pytest.raises(ValueError, match=r"n_topics=100, but the second moment of X has .* positive"):
        spectral.SpectralSLDA(100).fit(X, y)
    with pytest.raises(ValueError, match=r"each of the 100 documents of X, found the shape \(99,\)"):
        spectral.SpectralSLDA(3).fit(X, y[1:])
    with pytest.raises(ValueError, match="alpha0 must be above 0, found 0"):
        spectral.SpectralSLDA(3, alpha0=0).fit(X, y)
    with pytest.raises(ValueError, match="no document of three or more words with a response"):
        spectral.SpectralSLDA(3).fit(X, np.full(100, np.nan))
