"""Supervised LDA by variational EM, the experiments' baseline."""

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from mirrorlda.datasets import make_topics
from scipy.optimize import linear_sum_assignment
from scipy.special import digamma, gammaln, log_expit, logsumexp, softmax
from scipy.stats import dirichlet, norm

sys.path.insert(0, str(Path(__file__).parents[2] / "experiments"))

from baselines import variational_slda
from baselines.variational_slda import VariationalSLDA, VariationalSLDAClassifier

N_TRAIN = 400


def planted(**response):
    return make_topics(n_docs=600, n_words=100, n_topics=5, random_state=0, **response)


def fitted(estimator, data, **options):
    return estimator(**{"n_topics": 5, "random_state": 0, **options}).fit(data.X[:N_TRAIN], data.y[:N_TRAIN])


def matched_cosines(found, expected):
    found, expected = (topics / np.linalg.norm(topics, axis=1, keepdims=True) for topics in (found, expected))
    cosines = found @ expected.T
    return cosines[linear_sum_assignment(-cosines)]


@pytest.mark.slow
def test_numbers_of_the_planted_model():
    data = planted(n_outputs=1)
    model = fitted(VariationalSLDA, data)
    assert matched_cosines(model.components_, data.components).min() > 0.99
    assert np.sort(model.coef_) == pytest.approx(np.sort(data.coef[0]), abs=0.1)
    # The noise has the variance 1/100; that of zbar around theta comes on top.
    assert 0.008 < model.variance_ < 0.02
    X, y = data.X[N_TRAIN:], data.y[N_TRAIN:]
    score = model.score(X, y)
    # theta is not known from a hundred words, with the planted topics and coefficients neither.
    model.log_topics_, model.coef_ = np.log(data.components.T + 1e-12), data.coef[0]
    planted_score = model.score(X, y)
    assert score > planted_score - 0.005
    assert planted_score > 0.95


@pytest.mark.parametrize("n_classes", [2, 4])
def test_classes_of_the_planted_model(n_classes):
    data = planted(n_classes=n_classes, gamma=10)
    model = fitted(VariationalSLDAClassifier, data)
    assert matched_cosines(model.components_, data.components).min() > 0.99
    best = (data.theta[N_TRAIN:] @ data.coef.T).argmax(axis=1)
    y = data.y[N_TRAIN:]
    assert model.score(data.X[N_TRAIN:], y) > np.mean(best == y) - 0.03
    assert model.predict_proba(data.X[N_TRAIN:]).sum(axis=1) == pytest.approx(1)


@pytest.mark.parametrize("doc_length", [3, 60])
@pytest.mark.parametrize("n_classes", [None, 2, 4])
def test_the_bound_never_falls(n_classes, doc_length):
    response = {"n_classes": n_classes, "gamma": 100} if n_classes else {"n_outputs": 1, "gamma": 1e6}
    data = make_topics(n_docs=200, n_words=50, n_topics=4, doc_length=doc_length, random_state=1, **response)
    estimator = VariationalSLDAClassifier if n_classes else VariationalSLDA
    bounds = estimator(n_topics=6, n_iter=40, tol=-1, random_state=0).fit(data.X, data.y).bounds_
    assert len(bounds) == 40
    assert np.diff(bounds).min() > -1e-9 * abs(bounds[-1])


# With the small variance updates of all words at once would swing to and fro without damping.
@pytest.mark.parametrize("variance", [0.05, 0.002])
def test_the_updates_end_where_those_of_the_paper_do(variance):
    rng = np.random.default_rng(0)
    n_topics, alpha, y = 4, 0.3, 0.5
    counts = np.array([[3.0, 0, 1, 2, 0, 1]])
    words = variational_slda._Words.of(sp.csr_matrix(counts))
    log_topics = np.log(rng.dirichlet(np.ones(n_topics), 6))
    eta = rng.standard_normal(n_topics)
    response = variational_slda._Quadratic(eta[None], np.array([[y / variance]]), np.array([[1 / variance]]))
    phi, log_phi = np.full((4, n_topics), 1 / n_topics), np.full((4, n_topics), -np.log(n_topics))
    gamma = np.full((1, n_topics), alpha + 7 / n_topics)
    for _ in range(2000):
        gamma = variational_slda._update(words, phi, log_phi, log_topics, gamma, alpha, response)

    tokens = np.repeat(words.columns, words.counts.astype(int))
    assert log_phi == pytest.approx(np.log(phi))
    phi = np.repeat(phi, words.counts.astype(int), axis=0)
    assert gamma[0] == pytest.approx(alpha + phi.sum(axis=0))
    N = len(tokens)
    for n, word in enumerate(tokens):
        others = np.delete(phi, n, axis=0).sum(axis=0)
        of_response = y / (N * variance) * eta - (2 * (eta @ others) * eta + eta**2) / (2 * N**2 * variance)
        assert phi[n] == pytest.approx(softmax(digamma(gamma[0]) + log_topics[word] + of_response), abs=1e-8)


def test_the_last_step_is_the_closed_form_of_the_paper():
    rng = np.random.default_rng(0)
    X = sp.csr_matrix(rng.poisson(0.7, (30, 8)) + np.eye(30, 8))
    words = variational_slda._Words.of(X)
    phi, y = rng.dirichlet(np.ones(3), X.nnz), rng.standard_normal(30)
    mean = words.sums @ phi / words.lengths[:, None]
    model = VariationalSLDA(n_topics=3)
    response, _ = model._response_step(words, phi, mean, y, model._first_response(y))

    moments = np.zeros((3, 3))
    for start, end in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        tokens = np.repeat(phi[start:end], X.data[start:end].astype(int), axis=0)
        pairs = sum(np.outer(a, b) for i, a in enumerate(tokens) for j, b in enumerate(tokens) if i != j)
        moments += (pairs + np.diag(tokens.sum(axis=0))) / len(tokens) ** 2
    eta = np.linalg.solve(moments, mean.T @ y)
    assert response.U[0] == pytest.approx(eta)
    assert model._variance == pytest.approx((y @ y - y @ mean @ eta) / 30)


def test_bounds_are_below_what_they_bound():
    rng = np.random.default_rng(0)
    n_topics, alpha = 3, 0.5
    words = variational_slda._Words.of(sp.csr_matrix([[1.0, 1, 1, 1]]))
    topics = rng.dirichlet(np.ones(n_topics), 4)
    phi, log_phi = np.empty((2, 4, n_topics))
    gamma = np.full((1, n_topics), alpha + 4 / n_topics)
    no_response = variational_slda._no_response(1, n_topics)
    for _ in range(100):
        gamma = variational_slda._update(words, phi, log_phi, np.log(topics), gamma, alpha, no_response)
    mean = (gamma - alpha) / 4
    assignments = list(itertools.product(range(n_topics), repeat=4))
    shares = np.array([np.bincount(z, minlength=n_topics) for z in assignments]) / 4

    q = np.array([phi[np.arange(4), z].prod() for z in assignments])
    log_words = np.array([np.log(topics[np.arange(4), z]).sum() for z in assignments])
    log_theta = digamma(gamma[0]) - digamma(gamma.sum())
    of_theta = gammaln(n_topics * alpha) - n_topics * gammaln(alpha) + (alpha - 1) * log_theta.sum()
    expected = q @ (log_words + 4 * shares @ log_theta - np.log(q)) + of_theta + dirichlet.entropy(gamma[0])
    # p(z) is that of a Polya urn.
    urn = gammaln(n_topics * alpha) - gammaln(n_topics * alpha + 4) + (gammaln(alpha + 4 * shares) - gammaln(alpha)).sum(axis=1)
    bound = variational_slda._topic_bound(words, phi, log_phi, phi, np.log(topics), gamma, alpha)
    assert bound == pytest.approx(expected)
    assert bound < logsumexp(urn + log_words)

    for y in (-1.0, 1.0):
        model = VariationalSLDAClassifier(n_topics=n_topics)
        signs = np.array([[y]])
        response, bound = model._response_step(words, phi, mean, signs, model._first_response(signs))
        exact = q @ log_expit(y * shares @ response.U[0]) - variational_slda.RIDGE / 2 * (response.U**2).sum()
        assert exact - 0.01 < bound < exact

    model = VariationalSLDA(n_topics=n_topics)
    targets = np.array([0.7])
    response, bound = model._response_step(words, phi, mean, targets, model._first_response(targets))
    assert bound == pytest.approx(q @ norm.logpdf(0.7, shares @ response.U[0], np.sqrt(model._variance)))


def test_documents_without_words_are_left_out_and_have_the_mean():
    data = planted(n_outputs=1)
    X, y = data.X[:N_TRAIN], data.y[:N_TRAIN]
    empty = sp.csr_matrix((2, X.shape[1]))
    alone = VariationalSLDA(n_topics=5, random_state=0).fit(X, y)
    beside = VariationalSLDA(n_topics=5, random_state=0).fit(sp.vstack([empty, X]), np.append([np.nan] * 2, y))
    assert beside.components_ == pytest.approx(alone.components_)
    assert beside.predict(empty) == pytest.approx(y.mean())

    classes = (y > 0).astype(int)
    classifier = VariationalSLDAClassifier(n_topics=5, n_iter=3, random_state=0).fit(X, classes)
    assert classifier.predict_proba(empty)[1] == pytest.approx(np.bincount(classes) / N_TRAIN)


def test_documents_without_a_label_lend_their_words():
    data = planted(n_classes=2, gamma=10)
    y = np.array(["no", "yes"], object)[data.y]
    y[100:] = None
    model = VariationalSLDAClassifier(n_topics=5, random_state=0).fit(data.X, y)
    assert list(model.classes_) == ["no", "yes"]
    assert matched_cosines(model.components_, data.components).min() > 0.99
    assert np.mean(model.predict(data.X[N_TRAIN:]) == np.array(["no", "yes"])[data.y[N_TRAIN:]]) > 0.9


def test_the_seed_decides():
    data = planted(n_outputs=1)
    first, second, other = (fitted(VariationalSLDA, data, n_iter=3, random_state=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.components_, second.components_)
    assert np.array_equal(first.predict(data.X), second.predict(data.X))
    assert not np.array_equal(first.components_, other.components_)


def test_refusals():
    data = planted(n_outputs=1)
    with pytest.raises(ValueError, match="3 documents with words, expected at least n_topics=5"):
        VariationalSLDA(n_topics=5).fit(data.X[:3], data.y[:3])
    with pytest.raises(ValueError, match="two classes or more, found 1"):
        VariationalSLDAClassifier(n_topics=5).fit(data.X, np.zeros(600))
