"""Themes: the core's decoder against the oracle, central differences and JAX, and what training makes of it."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracle_jax import jax_theta

from mirrorlda.data.documents import as_documents
from mirrorlda.method import themes
from mirrorlda.method.gradients import gradients
from mirrorlda.method.inference import check_layers, infer, new_engine
from mirrorlda.method.responses import SquaredError
from mirrorlda.method.themes import Decoder, normalised

LENGTHS = [4, 30, 0, 12, 1, 70]
ALPHA, N_LAYERS = 1.05, 5


def problem(make_problem, n_topics, dtype=np.float64):
    """Topics, documents, their proportions, weights, and what themes have counted."""
    rng = np.random.default_rng(n_topics)
    phi, X = make_problem(n_topics, LENGTHS, dtype=dtype)
    theta = rng.dirichlet(np.full(n_topics, 0.4), len(LENGTHS)).astype(dtype)
    counts = (rng.gamma(0.5, size=phi.shape) * rng.uniform(1, 9, n_topics)).astype(dtype)
    return phi, X, theta, rng.uniform(0, 2, len(LENGTHS)), counts


def decoder_of(X, counts, **weights):
    weights = {"weight": 0.3, "use_weights": np.full(counts.shape[1], 0.02)} | weights
    documents = as_documents(X, counts.dtype)
    return Decoder(counts, counts.sum(axis=0, dtype=float), documents=documents, batch=np.arange(X.shape[0]), **weights)


@pytest.mark.parametrize("n_topics", [1, 3, 20, 65])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_themes_say_of_documents_is_the_oracles(make_problem, n_topics, dtype):
    _, X, theta, weights, counts = problem(make_problem, n_topics, dtype)
    read, tolerance = normalised(counts, counts.sum(axis=0, dtype=float)), 1e-10 if dtype == np.float64 else 2e-4
    assert_allclose(read.sum(axis=0), 1, rtol=1e-5)
    decoder = decoder_of(X, counts, weight=1.0, use_weights=np.zeros(n_topics))
    found = decoder.decoded(new_engine(theta.dtype), theta, weights, 0, 1)
    assert_array_equal(found.rows, np.unique(X.indices))
    expected = np.zeros(counts.shape)
    for d in range(len(LENGTHS)):
        P, x, _ = oracle.document(read, X, d, ALPHA)
        _, grad_theta, parts = oracle.decoded(theta[d].astype(float), P, x)
        assert_allclose(found.grad_theta[d], grad_theta, rtol=tolerance, atol=tolerance)
        np.add.at(expected, X.indices[X.indptr[d] : X.indptr[d + 1]], weights[d] * parts)
    before, has = counts.copy(), {}
    for n_threads in (1, 3):
        counts[:] = before
        totals = themes.count(found, counts, decoder.totals, 2.0, n_threads)
        has[n_threads] = (counts - before) / 2
        assert_allclose(totals, 2 * has[n_threads].sum(axis=0), rtol=1e-3)
    assert_array_equal(has[1], has[3])
    assert_allclose(has[1], expected, rtol=10 * tolerance, atol=10 * tolerance)
    assert_allclose(has[1].sum(), weights @ np.asarray(X.sum(axis=1)).ravel(), rtol=1e-4)


def test_losses_are_the_oracles_and_their_gradients_central_differences(make_problem):
    _, X, theta, _, counts = problem(make_problem, 4)
    read, documents, everything = normalised(counts, counts.sum(axis=0)), as_documents(X, float), np.arange(len(LENGTHS))

    def losses(theta):
        arrays = documents.indptr, documents.indices, documents.counts
        return new_engine(np.dtype(float)).decode(read, None, *arrays, everything, theta, None, None, 1)[:2]

    found, gradient = losses(theta)
    for d in range(len(LENGTHS)):
        P, x, _ = oracle.document(read, X, d, ALPHA)
        assert_allclose(found[d], oracle.decoded(theta[d], P, x)[0], rtol=1e-12)
    for topic in range(4):
        moved = [losses(theta + h * np.eye(4)[topic])[0] for h in (1e-6, -1e-6)]
        assert_allclose((moved[0] - moved[1]) / 2e-6, gradient[:, topic], rtol=1e-5, atol=1e-7)


def test_the_oracle_by_its_own_central_differences(make_problem):
    """Counts of themes are -theme times the gradient with respect to the theme."""
    phi, X, theta, _, _ = problem(make_problem, 3)
    P, x, _ = oracle.document(phi, X, 1, ALPHA)
    _, _, parts = oracle.decoded(theta[1], P, x)
    for place in np.ndindex(P.shape):
        ends = []
        for h in (1e-7, -1e-7):
            moved = P.copy()
            moved[place] += h
            ends.append(oracle.decoded(theta[1], moved, x)[0])
        assert_allclose(-P[place] * (ends[0] - ends[1]) / 2e-7, parts[place], rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_and_parts_of_a_batch_change_no_bits(make_problem, dtype):
    _, X, theta, weights, counts = problem(make_problem, 20, dtype)
    X, theta, weights = X[np.tile(np.arange(6), 50)], np.tile(theta, (50, 1)), np.tile(weights, 50)
    whole, engine = decoder_of(X, counts), new_engine(theta.dtype)

    def decoded(part, n_threads=1):
        found = replace(whole, batch=part).decoded(engine, theta[part], weights[part], 75, n_threads)
        return replace(found, grad_themes=found.grad_themes.copy())

    one, four = (decoded(np.arange(300), n_threads) for n_threads in (1, 4))
    halves = [decoded(part) for part in np.split(np.arange(300), 2)]
    others = [four] if dtype == np.float64 else [four, themes.merged(*halves)]
    for other in others:
        for name in ("grad_theta", "rows", "grad_themes"):
            assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def test_the_trace_of_inference_stays_while_themes_tell(make_problem):
    phi, X, _, weights, counts = problem(make_problem, 6)
    result = both(phi, X, weights, None)
    again = both(phi, X, weights, decoder_of(X, counts, weight=0.0, use_weights=np.zeros(6)))
    assert_array_equal(result.grad_phi, again.grad_phi)


def both(phi, X, weights, decoder):
    """Gradients of predicted numbers and themes, with the recorded steps of inference."""
    documents, everything = as_documents(X, phi.dtype), np.arange(X.shape[0])
    steps = infer(phi, X, alpha=ALPHA, n_layers=N_LAYERS).step_sizes
    layers = check_layers(ALPHA, N_LAYERS, steps, 0.0, phi, X.shape[0])
    U = np.random.default_rng(1).standard_normal((2, phi.shape[1])).astype(phi.dtype)
    y = np.random.default_rng(2).standard_normal((X.shape[0], 2)).astype(phi.dtype)
    rows = documents.words_of(everything)
    engine = new_engine(phi.dtype)
    found = gradients(engine, phi, U, documents, everything, y, weights, SquaredError(), layers, rows=rows, decoder=decoder)
    return replace(found, grad_phi=found.grad_phi.copy())


def test_gradients_with_themes_are_those_of_jax(make_problem):
    """Of the losses, the themes' likelihood and the use of the themes, the last to first order in the shares."""
    phi, X, _, weights, counts = problem(make_problem, 6)
    decoder = decoder_of(X, counts)
    found = both(phi, X, weights, decoder)
    read = normalised(counts, decoder.totals)
    asked_for = np.minimum(decoder.totals.mean() / decoder.totals, 10)
    steps = infer(phi, X, alpha=ALPHA, n_layers=N_LAYERS).step_sizes
    U, y = np.random.default_rng(1).standard_normal((2, 6)), np.random.default_rng(2).standard_normal((X.shape[0], 2))

    def loss(phi):
        total = 0.0
        for d in range(X.shape[0]):
            row = slice(X.indptr[d], X.indptr[d + 1])
            words, x = X.indices[row], jnp.asarray(X.data[row].astype(float))
            theta = jax_theta(phi[words], x, jnp.full(6, ALPHA), steps[d])
            error = U @ theta - y[d]
            told = -(x * jnp.log(read[words] @ theta)).sum()
            total += weights[d] * ((error**2).sum() / 2 + 0.3 * told - 0.02 * (asked_for @ theta))
        return total

    expected = np.asarray(jax.grad(loss)(jnp.asarray(phi)))
    assert_allclose(found.grad_phi, expected[found.rows], rtol=1e-8, atol=1e-9)
    assert np.abs(found.grad_phi - both(phi, X, weights, None).grad_phi).max() > 0.01 * np.abs(found.grad_phi).max()
