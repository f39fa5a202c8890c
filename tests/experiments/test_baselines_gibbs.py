"""MedLDA and supervised LDA by Gibbs sampling, which the experiments compare with."""

import importlib.util
import itertools
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from mirrorlda.datasets import make_topics
from scipy.special import expit, gammaln

sys.path.insert(0, str(Path(__file__).parents[2] / "experiments"))

from baselines import gibbs_topics
from baselines.gibbs_medlda import GibbsMedLDAClassifier, GibbsMedLDARegressor, inverse_gaussian
from baselines.gibbs_slda import GibbsSLDAClassifier, GibbsSLDARegressor, polya_gamma, polya_gamma_mean
from baselines.hybrid_slda import HybridSLDAClassifier, HybridSLDARegressor, drawn_topics
from baselines.spectral_slda import SpectralSLDA, SpectralSLDAClassifier

compiled = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed")
CLASSIFIERS = [GibbsMedLDAClassifier, GibbsSLDAClassifier]
REGRESSORS = [GibbsMedLDARegressor, GibbsSLDARegressor]
N_DRAWS = 40_000


def planted(**response):
    return make_topics(n_docs=900, n_words=200, n_topics=4, doc_length=50, random_state=3, **response)


def few_sweeps(estimator, **options):
    return estimator(n_topics=4, **({"n_sweeps": 5, "n_samples": 2} | options))


def within(draws, expected, n_errors=5):
    """The mean of each column is as near as its standard error lets it be."""
    return (np.abs(draws.mean(axis=0) - expected) < n_errors * draws.std(axis=0) / np.sqrt(len(draws)) + 1e-12).all()


def test_moments_of_the_inverse_gaussian():
    mean = np.array([0.01, 0.5, 3.0])
    draws = inverse_gaussian(np.tile(mean, (N_DRAWS, 1)), np.random.default_rng(0))
    assert within(draws, mean)
    assert within((draws - mean) ** 2, mean**3)


def test_large_means_of_the_inverse_gaussian_stay_positive():
    mean = np.array([1e3, 1e6, 1e9])
    draws = inverse_gaussian(np.tile(mean, (N_DRAWS, 1)), np.random.default_rng(0))
    assert (draws > 0).all()
    assert within(1 / draws, 1 / mean + 1)


@pytest.mark.parametrize("shape", [1, 2.5])
def test_moments_of_polya_gamma(shape):
    z = np.array([-2.0, 0.5, 3.0, 20.0])
    draws = polya_gamma(shape, np.tile(z, (N_DRAWS, 1)), np.random.default_rng(0))
    assert polya_gamma_mean(z) == pytest.approx(np.tanh(z / 2) / (2 * z))
    assert within(draws, shape * np.tanh(z / 2) / (2 * z))
    assert draws.var(axis=0) == pytest.approx(shape * (np.sinh(z) - z) / (4 * z**3 * np.cosh(z / 2) ** 2), rel=0.04)
    assert (draws > 0).all()
    assert polya_gamma_mean(np.zeros(1)) == pytest.approx(1 / 4)


@pytest.mark.parametrize(
    ("model", "y", "slope"),
    [
        (GibbsMedLDAClassifier(cost=3, margin=2), [-1, 1], lambda y, f: np.where(y * f < 2, 6 * y, 0)),
        (GibbsMedLDARegressor(cost=3, epsilon=0.4), [-1, 1], lambda y, f: np.where(np.abs(y - f) > 0.4, 6 * np.sign(y - f), 0)),
        (GibbsSLDAClassifier(cost=3), [-1, 1], lambda y, f: 3 * y * expit(-y * f)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_augmented_slope_is_that_of_the_loss(model, y, slope):
    """Fisher's identity: a - b f is the slope of log p(y | f), on average over the augmentation given f."""
    Y, F = (grid.ravel() for grid in np.meshgrid(y, [-3.0, -1.2, -0.5, 0.3, 0.9, 4.0]))
    many = np.tile(Y, (N_DRAWS, 1)), np.tile(F, (N_DRAWS, 1))
    a, b = model._augment(*many, np.ones(many[0].shape, bool), np.random.default_rng(0))
    assert within(a - b * F, slope(Y, F))


def test_the_variance_has_the_posterior_of_a_likelihood_to_the_power_of_the_cost():
    Y, F, rng = np.array([[0.4], [-1.0], [2.0]]), np.array([[0.1], [0.5], [1.0]]), np.random.default_rng(0)
    model, known = GibbsSLDARegressor(cost=3), np.array([[True], [True], [False]])
    precisions = np.array([model._augment(Y, F, known, rng)[1][0, 0] for _ in range(N_DRAWS)])
    # A gamma distribution, with half of the weighted number of documents for its shape.
    assert within(precisions[:, None] / 3, (3 * 2 + 1) / (3 * (0.09 + 2.25) + 0.1))


def test_the_gaussian_response_learns_its_variance_from_known_responses():
    rng = np.random.default_rng(0)
    Y = rng.normal(0, [0.3, 2.0], (20_000, 2))
    known = rng.random(Y.shape) < 0.5
    Y[~known] = 50
    a, b = GibbsSLDARegressor()._augment(Y, np.zeros_like(Y), known, rng)
    assert 1 / b[0] == pytest.approx([0.09, 4.0], rel=0.05)
    assert a == pytest.approx(b * Y)


@pytest.mark.slow
@compiled
def test_the_sampler_visits_topics_as_often_as_their_posterior_says():
    words, bounds = np.array([0, 1, 0, 1], np.int32), np.array([0, 3, 3, 4])
    a, b = np.array([[1.5, -0.5], [9.0, 9.0], [0.0, 2.0]]), np.array([[2.0, 0.5], [9.0, 9.0], [0.0, 1.0]])
    eta, alpha, beta = np.array([[1.0, -0.7], [0.4, 1.3]]), 0.5, 0.3

    def tables(z):
        doc_topics, word_topics = np.zeros((3, 32), np.float32), np.zeros((2, 32), np.float32)
        np.add.at(doc_topics, ([0, 0, 0, 2], z), 1)
        np.add.at(word_topics, (words, z), 1)
        return doc_topics, word_topics, word_topics[:, :2].sum(axis=0, dtype=np.float64)

    def log_posterior(z):
        doc_topics, word_topics, totals = tables(z)
        doc_topics, word_topics = doc_topics[:, :2], word_topics[:, :2]
        F = doc_topics / np.array([[3], [1], [1]]) @ eta.T
        counted = gammaln(doc_topics + alpha).sum() + gammaln(word_topics + beta).sum() - gammaln(totals + 2 * beta).sum()
        return counted + (a * F - b * F**2 / 2).sum()

    states = list(itertools.product([0, 1], repeat=4))
    expected = np.exp([log_posterior(np.array(z)) for z in states])
    expected /= expected.sum()
    sweep = gibbs_topics._sampler().sweep
    topics, rng = np.zeros(4, np.int32), np.random.default_rng(0)
    counts, visits = tables(topics), np.zeros(16)
    for _ in range(20_000):
        sweep(words, bounds, topics, *counts, alpha, beta, a, b, eta, rng)
        visits[topics @ [8, 4, 2, 1]] += 1
    assert visits / visits.sum() == pytest.approx(expected, abs=0.012)
    assert all((kept == made).all() for kept, made in zip(counts, tables(topics), strict=True))


@pytest.mark.slow
@compiled
@pytest.mark.parametrize("n_topics", [3, 45])
@pytest.mark.parametrize("scale", [0.0, 1.0, 300.0])
def test_the_draw_of_one_word_has_the_conditional_distribution(n_topics, scale):
    """A document of one word: each sweep is a draw given the same other counts."""
    rng, width = np.random.default_rng(n_topics), -(-n_topics // 32) * 32
    doc_topics, word_topics = np.zeros((1, width), np.float32), np.zeros((6, width), np.float32)
    doc_topics[0, :n_topics], word_topics[:, :n_topics] = rng.poisson(2, n_topics), rng.poisson(3, (6, n_topics))
    eta, b, alpha, beta = rng.standard_normal((2, n_topics)), scale * np.array([[0.7, 0.2]]), 0.1, 0.01
    # The likeliest f are those of the last topic, apart from the others by 0.2 and 0.4.
    a = b * (eta @ doc_topics[0, :n_topics] + eta[:, -1] + [0.2, 0.4])
    totals = word_topics[:, :n_topics].sum(axis=0, dtype=np.float64)

    F = eta @ doc_topics[0, :n_topics] + eta.T
    expected = (doc_topics[0] + alpha)[:n_topics] * (word_topics[4, :n_topics] + beta) / (totals + 6 * beta)
    exponents = (a * F - b * F**2 / 2).sum(axis=1)
    expected *= np.exp(exponents - exponents.max())
    expected /= expected.sum()

    words, bounds, topics = np.array([4], np.int32), np.array([0, 1]), np.array([1], np.int32)
    counts = doc_topics, word_topics, totals
    for table in (doc_topics[0], word_topics[4], totals):
        table[1] += 1
    drawn = np.zeros(n_topics)
    for _ in range(20_000):
        gibbs_topics._sampler().sweep(words, bounds, topics, *counts, alpha, beta, a, b, eta, rng)
        drawn[topics[0]] += 1
    errors = np.sqrt(20_000 * expected * (1 - expected)) + 1
    assert (np.abs(drawn - 20_000 * expected) < 5 * errors).all()


@compiled
def test_shares_of_a_document_of_two_words():
    phi, alpha, rng = np.zeros((2, 64), np.float32), 0.3, np.random.default_rng(0)
    phi[:, :40] = rng.dirichlet(np.full(40, 0.2), 2)
    # Topics i and j of the two words have the joint weight of a Polya urn.
    joint = np.multiply.outer(phi[0, :40], phi[1, :40]) * (alpha + np.eye(40))
    expected = (joint.sum(axis=0) + joint.sum(axis=1)) / (2 * joint.sum())
    n_docs = 3000
    bounds = np.arange(n_docs + 1) * 2
    shares = gibbs_topics._sampler().infer(np.tile(np.array([0, 1], np.int32), n_docs), bounds, phi, 40, alpha, 20, 30, rng)
    assert within(shares, expected)
    assert shares.sum(axis=1) == pytest.approx(1)


@compiled
def test_the_exponential_function():
    x = np.linspace(-100, 0, 5001).astype(np.float32)
    found = np.array([gibbs_topics._sampler().exp_below_zero(each) for each in x])
    np.testing.assert_allclose(found, np.exp(np.maximum(x, -87.0, dtype=np.float64)), rtol=1e-5)


@compiled
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_classes_are_predicted_almost_as_by_the_planted_model(classifier, n_classes):
    data = planted(n_classes=n_classes, gamma=10)
    names = np.array(["a", "b", "c"])[data.y]
    model = classifier(n_topics=4, n_sweeps=50).fit(data.X[:600], names[:600])
    best = np.mean((data.theta @ data.coef.T).argmax(axis=1)[600:] == data.y[600:])
    assert best - 0.04 < model.score(data.X[600:], names[600:])
    assert model.decision_function(data.X).shape == ((900,) if n_classes == 2 else (900, 3))


@compiled
@pytest.mark.parametrize("regressor", REGRESSORS)
def test_numbers_are_predicted_almost_as_by_the_planted_model(regressor):
    data = planted(n_outputs=2)
    y = data.y * [1, 100] + [5, 0]
    model = regressor(n_topics=4, n_sweeps=50).fit(data.X[:600], y[:600])
    assert model.score(data.X[600:], y[600:]) > 0.9
    assert few_sweeps(regressor).fit(data.X[:600], y[:600, 0]).predict(data.X).shape == (900,)


def test_first_topics_have_the_shares_that_the_word_gives_them():
    components, shares = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]), np.array([0.25, 0.75])
    words = np.repeat(np.arange(3, dtype=np.int32), N_DRAWS)
    drawn = drawn_topics(words, components, shares, np.random.default_rng(0)).reshape(3, N_DRAWS)
    assert within(drawn.T, 0.75 * components[1] / (shares @ components))


@compiled
@pytest.mark.parametrize(
    ("hybrid", "spectral", "response"),
    [
        (HybridSLDARegressor, SpectralSLDA, {"n_outputs": 1}),
        (HybridSLDAClassifier, SpectralSLDAClassifier, {"n_classes": 2, "gamma": 10}),
    ],
)
def test_the_spectral_start_is_refined(hybrid, spectral, response):
    data = planted(**response)
    start, model = (each.fit(data.X[:600], data.y[:600]) for each in (spectral(4), hybrid(4, n_sweeps=15, n_samples=5)))
    assert model.score(data.X[600:], data.y[600:]) >= start.score(data.X[600:], data.y[600:]) - 0.005
    found, expected = (topics / np.linalg.norm(topics, axis=1, keepdims=True) for topics in (model.components_, data.components))
    assert (found @ expected.T).max(axis=0).min() > 0.95


@compiled
def test_the_spectral_start_is_for_one_response():
    data = planted(n_outputs=2)
    with pytest.raises(ValueError, match=r"one response or two classes, .* found 2"):
        HybridSLDARegressor(4).fit(data.X, data.y)


def subject_and_mood():
    """Documents of 20 words of one of two subjects and 10 of one of two moods, and which mood."""
    rng = np.random.default_rng(0)
    subject, mood = rng.integers(2, size=(2, 600))
    draws = [rng.multinomial(length, np.full(10, 0.1), 600) for length in (20, 10)]
    blocks = [words * (kind == part)[:, None] for words, kind in zip(draws, (subject, mood), strict=True) for part in (0, 1)]
    return sp.csr_matrix(np.hstack(blocks)), mood


@compiled
@pytest.mark.parametrize("estimator", CLASSIFIERS + REGRESSORS)
def test_the_response_shapes_the_topics(estimator):
    """With two topics, those of the words alone are the subjects, which say nothing of the mood."""
    X, mood = subject_and_mood()
    reached = [estimator(n_topics=2, cost=cost).fit(X[:400], mood[:400]).score(X[400:], mood[400:]) for cost in (1e-6, 50)]
    assert reached[0] < 0.6
    assert reached[1] > 0.95


@compiled
@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_documents_without_words_or_label(classifier):
    data = planted(n_classes=2, gamma=10)
    y = data.y.astype(float)
    X = sp.vstack([data.X, sp.csr_matrix((90, 200))]).tocsr()
    padded = np.concatenate([y, np.full(90, 1.0)])
    model, without = (few_sweeps(classifier).fit(*part) for part in ((X, padded), (data.X, y)))
    assert (model.coef_ == without.coef_).all()
    expected = model.topic_shares_ @ model.coef_[0]
    assert model.decision_function(X)[900:] == pytest.approx(np.full(90, expected))
    y[300:600] = np.nan
    partly = classifier(n_topics=4, n_sweeps=50).fit(data.X[:600], y[:600])
    assert list(partly.classes_) == [0, 1]
    assert partly.score(data.X[600:], y[600:]) > 0.8


@compiled
@pytest.mark.parametrize("regressor", REGRESSORS)
def test_numbers_that_are_missing(regressor):
    data = planted(n_outputs=1)
    y = np.where(np.arange(900) < 300, data.y, np.nan)
    model = regressor(n_topics=4, n_sweeps=50).fit(data.X[:600], y[:600])
    assert model.score(data.X[600:], data.y[600:]) > 0.9


@compiled
@pytest.mark.parametrize("estimator", CLASSIFIERS + REGRESSORS)
def test_the_seed_decides(estimator):
    data = planted(n_classes=2)
    first, again, other = (few_sweeps(estimator, random_state=seed).fit(data.X, data.y) for seed in (1, 1, 2))
    assert (first.coef_ == again.coef_).all()
    assert (first.predict(data.X) == again.predict(data.X)).all()
    assert (first.coef_ != other.coef_).any()


@compiled
def test_what_cannot_be_fitted_is_refused():
    data = planted(n_classes=2)
    with pytest.raises(ValueError, match="X must hold counts"):
        few_sweeps(GibbsMedLDAClassifier).fit(data.X * 0.5, data.y)
    with pytest.raises(ValueError, match="two classes or more, found 1"):
        few_sweeps(GibbsMedLDAClassifier).fit(data.X, np.zeros(900))
    with pytest.raises(ValueError, match="n_samples must be from 1 to n_sweeps, which is 5, found 6"):
        few_sweeps(GibbsMedLDAClassifier, n_samples=6).fit(data.X, data.y)
    with pytest.raises(ValueError, match="two different numbers"):
        few_sweeps(GibbsSLDARegressor).fit(data.X, np.ones(900))
    with pytest.raises(ValueError, match="a document with words, found none"):
        few_sweeps(GibbsMedLDAClassifier).fit(data.X * 0, data.y)


def test_without_numba_the_error_says_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "baselines.gibbs_sampler", raising=False)
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(ImportError, match="pip install numba"):
        gibbs_topics._sampler.__wrapped__()


@pytest.mark.parametrize("n_topics", [1, 8, 9, 20, 31, 32, 33])
def test_no_draw_is_beyond_the_last_topic(n_topics):
    sampler = gibbs_topics._sampler()
    weights = np.zeros(-(-n_topics // sampler.WIDTH) * sampler.WIDTH, np.float32)
    for seed in range(50):
        weights[:n_topics] = np.random.default_rng(seed).random(n_topics) ** 4
        # Above one, as where the sum was rounded up.
        for uniform in (0.0, 1 - 2**-53, 1.0, 1.001):
            assert 0 <= sampler.chosen(weights, n_topics, uniform) < n_topics
