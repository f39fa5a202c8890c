"""Where learning starts: what words say of the targets, and what topics make of it."""

from statistics import NormalDist

import numpy as np
import pytest
from mirrorlda.datasets import make_topics
from mirrorlda.responses import Ordinal, Poisson, Sigmoid, Softmax, SquaredError, Words
from numpy.testing import assert_allclose, assert_array_equal

from mirrorlda.data.documents import as_documents
from mirrorlda.method.start import directions, distances, leanings, start, trust, word_frequencies

N_DOCS, N_WORDS = 40, 12
RESPONSES = {
    "squared error": (SquaredError(), lambda rng: rng.normal(3, 2, (N_DOCS, 2))),
    "softmax": (Softmax(), lambda rng: rng.permutation(np.arange(N_DOCS) % 3)),
    "sigmoid": (Sigmoid(), lambda rng: rng.integers(0, 2, (N_DOCS, 4))),
    "ordinal": (Ordinal(4), lambda rng: rng.integers(0, 4, (N_DOCS, 1))),
    "poisson": (Poisson(), lambda rng: rng.poisson(3.0, (N_DOCS, 2))),
    "words": (Words(), lambda rng: np.ones(N_DOCS)),
}


@pytest.fixture(params=RESPONSES)
def problem(request):
    """Documents with a word that never occurs, their y and weights, and the response."""
    rng = np.random.default_rng(0)
    X = rng.poisson(0.7, (N_DOCS, N_WORDS)) * rng.random((N_DOCS, N_WORDS))
    X[:, 5], X[7] = 0, 0
    response, make_y = RESPONSES[request.param]
    return as_documents(X), make_y(rng), rng.uniform(0.5, 2, N_DOCS), response


def dense(documents):
    X = np.zeros((documents.n_docs, documents.n_words))
    for d in range(documents.n_docs):
        entries = slice(documents.indptr[d], documents.indptr[d + 1])
        X[d, documents.indices[entries]] = documents.counts[entries]
    return X


def test_word_frequencies_are_weighted_sums_with_a_little_for_words_that_never_occur(problem):
    documents, _, weights, _ = problem
    sums = weights @ dense(documents)
    frequencies = word_frequencies(documents, weights)
    assert_allclose(frequencies, sums + 1e-3 * sums.mean(), rtol=1e-12)
    assert sums[5] == 0 < frequencies[5]


@pytest.mark.parametrize("problem", [name for name in RESPONSES if name != "words"], indirect=True)
def test_leanings_equal_a_plain_loop(problem):
    """Mean of minus the loss's gradient at the constant start over a word's documents, in units of its deviation."""
    documents, y, weights, response = problem
    X, frequencies = dense(documents), word_frequencies(documents, weights)
    result = leanings(distances(documents, y, weights, response), frequencies)
    constant = response.start(y, weights)
    pull = np.array([-response.loss(constant[None], y[d : d + 1])[1][0] for d in range(N_DOCS)])
    for output in range(len(constant)):
        mean = sum(weights * pull[:, output]) / sum(weights)
        spread = np.sqrt(sum(weights * (pull[:, output] - mean) ** 2) / sum(weights))
        for word in range(N_WORDS):
            above = sum(weights[d] * X[d, word] * (pull[d, output] - mean) / spread for d in range(N_DOCS))
            expected = above / (frequencies[word] + 0.1 * frequencies.mean())
            assert abs(expected) < 3
            assert_allclose(result[word, output], expected, rtol=1e-9, atol=1e-12)
    assert_array_equal(result[5], 0)
    assert np.abs(result).max() > 0.1


def test_a_word_of_high_targets_leans_up_and_one_of_low_targets_down():
    y = np.linspace(-1, 1, 30)[:, None]
    X = np.ones((30, 4))
    X[:, 1], X[:, 2], X[:, 3] = y[:, 0] > 0.3, y[:, 0] < -0.3, 0
    documents, weights = as_documents(X), np.ones(30)
    lean = leanings(distances(documents, y, weights, SquaredError()), word_frequencies(documents, weights))[:, 0]
    assert lean[1] > 0.5
    assert lean[2] < -0.5
    assert_allclose(lean[[0, 3]], 0, atol=1e-12)


def test_leanings_are_bounded():
    """One document of a thousand has a huge target and a frequent word of its own."""
    X = np.ones((1000, 2))
    X[:, 1], X[3, 1] = 0, 1e4
    y = np.zeros((1000, 1))
    y[3] = 100
    documents, weights = as_documents(X), np.ones(1000)
    assert leanings(distances(documents, y, weights, SquaredError()), word_frequencies(documents, weights))[1, 0] == 3


# Trust


def planted_words(n_docs, n_words, said, rng):
    """Words that are each in 3 to 300 documents, and a target of which words say more or less."""
    X = np.zeros((n_docs, n_words))
    leaning = said * rng.standard_normal(n_words)
    for word in range(n_words):
        X[rng.choice(n_docs, rng.integers(3, 300), replace=False), word] = 1
    y = X @ leaning + 0.3 * rng.standard_normal(n_docs)
    return as_documents(X), y[:, None], np.ones(n_docs)


def trusted(documents, y, weights, n_docs=None, response=None):
    response = response or SquaredError()
    distance = distances(documents, y, weights, response)
    return trust(documents, distance, weights, n_docs or documents.n_docs, two_sided=response.two_sided)


def test_rare_words_are_trusted_less_where_words_say_little():
    documents, _, weights = planted_words(2000, 200, 1.0, np.random.default_rng(0))
    noise = np.random.default_rng(1).standard_normal((2000, 1))
    n = np.bincount(documents.indices)
    result = trusted(documents, noise, weights)
    assert_allclose(result / result[0], n / (n + 100) * (n[0] + 100) / n[0])
    assert_allclose((n * result).sum() / n.sum(), 1)


def test_rare_words_are_trusted_where_they_say_much():
    rng = np.random.default_rng(0)
    X = np.zeros((2000, 100))
    labels = np.arange(2000) % 20
    for word in range(100):
        X[rng.choice(np.flatnonzero(labels == word % 20), rng.integers(5, 80), replace=False), word] = 1
    assert_allclose(trusted(as_documents(X), labels, np.ones(2000), response=Softmax()), 1, atol=0.05)


def test_a_sample_of_the_documents_shows_a_part_of_the_words_occurrences():
    documents, y, weights = planted_words(2000, 200, 0.01, np.random.default_rng(0))
    assert np.ptp(trusted(documents, y, weights, n_docs=20_000)) < np.ptp(trusted(documents, y, weights))


def test_weights_count_as_repeated_documents():
    documents, y, _ = planted_words(500, 50, 0.1, np.random.default_rng(0))
    twice = np.repeat(np.arange(500), 2)
    repeated = trusted(documents.take(twice), y[twice], np.ones(1000))
    assert_allclose(trusted(documents, y, np.full(500, 2.0)), repeated)


def test_words_that_never_occur_and_no_words_at_all():
    X = np.zeros((6, 3))
    X[:, 1] = 1
    y = np.arange(6.0)[:, None]
    assert trusted(as_documents(X), y, np.ones(6))[0] == 0
    assert_array_equal(trusted(as_documents(np.zeros((6, 3))), y, np.ones(6)), 1)


# Directions


def leaning(n_outputs):
    rng = np.random.default_rng(0)
    return rng.standard_normal((N_WORDS, n_outputs)), rng.uniform(1, 9, N_WORDS)


def strengths(n):
    """Of the topics of one direction of a scale."""
    return [NormalDist().inv_cdf(0.5 + (j + 0.5) / (2 * n)) for j in range(n)]


def test_topics_stand_for_classes_in_turn_equally_strong():
    towards = directions(*leaning(3), 7, Softmax())
    assert_array_equal(np.argmax(towards, axis=0), [0, 1, 2, 0, 1, 2, 0])
    assert (np.count_nonzero(towards, axis=0) == 1).all()
    assert_allclose(towards.sum(axis=0), strengths(1)[0])


def test_two_classes_are_a_scale():
    towards = directions(*leaning(2), 5, Softmax())
    assert_allclose(towards[0, [0, 2, 4]], strengths(3))
    assert_allclose(towards[1, [1, 3]], strengths(2))


def test_one_label_is_a_scale():
    towards = directions(*leaning(1), 4, Sigmoid())
    assert_allclose(towards[0], np.outer(strengths(2), [1, -1]).ravel())


def test_labels_have_topics_on_both_sides_equally_strong():
    towards = directions(*leaning(2), 8, Sigmoid())
    assert_array_equal(np.sign(towards), np.tile([[1, 0, -1, 0], [0, 1, 0, -1]], 2))
    assert_allclose(np.abs(towards).sum(axis=0), strengths(1)[0])


def test_topics_of_numbers_are_on_both_sides():
    towards = directions(*leaning(2), 8, SquaredError())
    assert_array_equal(np.sign(towards[:, :4]), [[1, 0, -1, 0], [0, 1, 0, -1]])
    assert_allclose(towards.sum(axis=1), 0, atol=1e-15)
    assert (np.abs(towards[:, 4:]).sum(axis=0) > np.abs(towards[:, :4]).sum(axis=0)).all()


@pytest.mark.parametrize("response", [Softmax(), SquaredError()])
def test_as_many_topics_as_outputs_have_one_each(response):
    towards = directions(*leaning(4), 4, response)
    assert_allclose(towards, np.eye(4) * towards[0, 0])
    assert towards[0, 0] > 0


def test_fewer_topics_than_outputs_stand_for_the_axes_along_which_words_lean():
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.standard_normal((5, 2)))[0]
    along = rng.standard_normal((400, 2)) * [3, 1]
    towards = directions(along @ axes.T, np.ones(400), 3, SquaredError())
    assert towards.shape == (5, 3)
    assert_allclose(towards[:, 0], -towards[:, 1])
    cosines = np.abs(axes.T @ towards[:, [0, 2]]) / np.linalg.norm(towards[:, [0, 2]], axis=0)
    assert_allclose(cosines, np.eye(2), atol=0.2)


# The start


@pytest.mark.parametrize("n_topics", [1, 2, 3, 20])
def test_topics_are_distributions_that_differ(problem, n_topics):
    documents, y, weights, response = problem
    phi, U, _ = start(documents, y, weights, response, n_topics, np.random.default_rng(0))
    assert phi.shape == (N_WORDS, n_topics)
    assert U.shape == (response.n_outputs(y), n_topics)
    assert np.isfinite(U).all()
    assert phi.min() > 0
    assert_allclose(phi.sum(axis=0), 1, rtol=1e-12)
    apart = np.abs(phi[:, :, None] - phi[:, None]).max(axis=0) + np.eye(n_topics)
    assert apart.min() > 1e-3


def test_topics_tilt_towards_what_their_coefficients_say():
    """The topics that speak for a class have more of the class's words than the others have."""
    data = make_topics(400, 60, 3, n_classes=3, gamma=20, random_state=0)
    documents, weights = as_documents(data.X), np.ones(400)
    phi, U, _ = start(documents, data.y, weights, Softmax(), 6, np.random.default_rng(0))
    lean = leanings(distances(documents, data.y, weights, Softmax()), word_frequencies(documents, weights))
    for label in range(3):
        for_it = np.argsort(U[label])[-2:]
        assert set(np.argsort(lean[:, label] @ phi)[-2:]) == set(for_it)


def test_the_start_is_the_seeds(problem):
    documents, y, weights, response = problem
    (phi, U, _), (phi_again, U_again, _), (other, _, _) = (
        start(documents, y, weights, response, 4, np.random.default_rng(seed)) for seed in (0, 0, 1)
    )
    assert_array_equal(phi, phi_again)
    assert_array_equal(U, U_again)
    assert np.abs(phi - other).max() > 1e-4


@pytest.mark.parametrize(
    ("response", "y"),
    [
        (SquaredError(), np.full((N_DOCS, 1), 7.0)),
        (Softmax(n_classes=3), np.ones(N_DOCS, int)),
        (Sigmoid(), np.tile([0, 1], (N_DOCS, 1))),
        (Ordinal(4), np.full((N_DOCS, 1), 3)),
        (Poisson(), np.zeros((N_DOCS, 1))),
    ],
    ids=["number", "class", "labels", "level", "count"],
)
@pytest.mark.parametrize("words", ["some", "none", "one document"])
def test_targets_that_say_nothing(response, y, words):
    """A constant, one class of a stream's first part, no words at all."""
    X = np.random.default_rng(0).poisson(0.5, (N_DOCS, N_WORDS)) * float(words != "none")
    n_docs = 1 if words == "one document" else N_DOCS
    documents, weights = as_documents(X[:n_docs]), np.ones(n_docs)
    phi, U, word_weights = start(documents, y[:n_docs], weights, response, 5, np.random.default_rng(0))
    assert np.isfinite(word_weights).all()
    lean = leanings(distances(documents, y[:n_docs], weights, response), word_frequencies(documents, weights))
    assert_array_equal(lean, 0)
    assert np.isfinite(U).all()
    assert phi.min() > 0
    assert_allclose(phi.sum(axis=0), 1, rtol=1e-12)
    assert np.abs(phi[:, 0] - phi[:, 1]).max() > 1e-3
