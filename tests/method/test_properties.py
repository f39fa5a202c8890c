"""What holds for any topics and documents: the simplex, symmetry, descent, the same bits for any number of threads."""

from typing import NamedTuple

import numpy as np
import oracle
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from mirrorlda.responses import Softmax, SquaredError, Words
from numpy.testing import assert_allclose, assert_array_equal

from mirrorlda import infer, value_and_grad

N_WORDS = 40

# Relative error allowed between two orders of the same sums, over a few layers of moderate steps.
RTOL = {np.float64: 1e-9, np.float32: 1e-3}


class Problem(NamedTuple):
    phi: np.ndarray
    X: sp.csr_array
    options: dict
    rng: np.random.Generator


@st.composite
def problems(draw, alphas=(0.5, 1.0, 1.001, 1.5)):
    """phi, X with documents of 0 to 30 distinct words and whole or real counts, and the options of infer."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed"))
    n_topics = draw(st.integers(1, 20), label="n_topics")
    sizes = draw(st.lists(st.integers(0, 30), min_size=1, max_size=6), label="sizes")
    dtype = draw(st.sampled_from([np.float32, np.float64]), label="dtype")
    whole = draw(st.booleans(), label="whole counts")
    options = {
        "alpha": draw(st.sampled_from(alphas), label="alpha"),
        "n_layers": draw(st.integers(1, 6), label="n_layers"),
        "step_size": draw(st.sampled_from(["l1", "kl"]), label="step_size"),
    }
    phi = rng.gamma(0.5, size=(N_WORDS, n_topics)) + 1e-3
    words = [np.sort(rng.choice(N_WORDS, size, replace=False)) for size in sizes]
    counts = rng.gamma(1.0, 2.0, size=sum(sizes))
    counts = np.ceil(counts) if whole else counts
    csr = counts.astype(dtype), np.concatenate(words), np.cumsum([0, *sizes])
    X = sp.csr_array(csr, shape=(len(sizes), N_WORDS))
    return Problem((phi / phi.sum(axis=0)).astype(dtype), X, options, rng)


def replaying(options, trace):
    return {**options, "step_size": trace.step_sizes}


def assert_thetas_close(actual, expected):
    tolerance = RTOL[expected.dtype.type]
    assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


@given(problems(alphas=(0.1, 0.5, 1.0, 1.001, 1.5, 30.0)))
def test_theta_is_on_the_simplex(problem):
    phi, X, options, _ = problem
    thetas = infer(phi, X, **options).thetas
    assert thetas.min() >= phi.dtype.type(oracle.FLOOR)
    assert_allclose(thetas.sum(axis=-1), 1, rtol=40 * np.finfo(phi.dtype).eps + phi.shape[1] * oracle.FLOOR)


# From uniform theta, alpha < 1 amplifies rounding until one topic wins, so the next three keep to alpha >= 1.


@given(problems(alphas=(1.0, 1.001, 1.5)))
def test_permuted_topics_permute_theta(problem):
    phi, X, options, rng = problem
    order = rng.permutation(phi.shape[1])
    trace = infer(phi, X, **options)
    permuted = infer(phi[:, order], X, **replaying(options, trace))
    assert_thetas_close(permuted.thetas, trace.thetas[:, :, order])


@given(problems(alphas=(1.0, 1.001, 1.5)))
def test_permuted_words_change_nothing(problem):
    phi, X, options, rng = problem
    order = rng.permutation(N_WORDS)
    trace = infer(phi, X, **options)
    permuted = infer(phi[order], X[:, order], **replaying(options, trace))
    assert_thetas_close(permuted.thetas, trace.thetas)


@given(problems(alphas=(1.0, 1.001, 1.5)))
def test_a_repeated_word_is_its_count(problem):
    """CSR rows with repeated and unordered indices mean their sums, and are left as they were."""
    phi, X, options, rng = problem
    trace = infer(phi, X, **options)
    part = X.data * phi.dtype.type(0.25)
    data, indices, indptr = np.empty(2 * X.nnz, X.dtype), np.empty(2 * X.nnz, X.indices.dtype), 2 * X.indptr
    for start, end in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        order = rng.permutation(2 * (end - start))
        data[2 * start : 2 * end] = np.concatenate([part[start:end], X.data[start:end] - part[start:end]])[order]
        indices[2 * start : 2 * end] = np.tile(X.indices[start:end], 2)[order]
    repeated = sp.csr_array((data.copy(), indices.copy(), indptr), shape=X.shape)
    assert_thetas_close(infer(phi, repeated, **replaying(options, trace)).thetas, trace.thetas)
    assert_array_equal(repeated.data, data)
    assert_array_equal(repeated.indices, indices)


@given(problems())
def test_permuted_documents_permute_everything(problem):
    phi, X, options, rng = problem
    order = rng.permutation(X.shape[0])
    trace, permuted = infer(phi, X, **options), infer(phi, X[order], **options)
    assert_array_equal(permuted.thetas, trace.thetas[order])
    assert_array_equal(permuted.step_sizes, trace.step_sizes[order])
    assert_array_equal(permuted.n_trials, trace.n_trials[order])
    assert_array_equal(permuted.objective, trace.objective[order])


@given(problems())
def test_one_document_is_inferred_alone_as_among_others(problem):
    phi, X, options, _ = problem
    together = infer(phi, X, **options).thetas
    alone = [infer(phi, X[[d]], **options).thetas[0] for d in range(X.shape[0])]
    assert_array_equal(alone, together)


@given(problems(alphas=(0.1, 0.5, 1.0, 1.001, 1.5, 30.0)))
def test_the_objective_does_not_rise_along_the_layers(problem):
    phi, X, options, _ = problem
    objective = infer(phi, X, **options).objective
    # The bound of either rule is at most f plus the slack. What rounding and the floor add: theta' in float32
    # moves f by its relative error times g.theta = N + sum(alpha - 1).
    scale = np.abs(objective[:, :-1]) + X.sum(axis=1)[:, None] + phi.shape[1] * abs(options["alpha"] - 1)
    slack = 2 * oracle.SLACK * np.abs(objective[:, :-1]) + 20 * np.finfo(phi.dtype).eps * scale
    assert (np.diff(objective, axis=1) <= slack).all()


@given(problems())
def test_the_same_bits_for_any_number_of_threads(problem):
    phi, X, options, _ = problem
    one = infer(phi, X, **options, n_jobs=1)
    for n_jobs in (2, 3):
        other = infer(phi, X, **options, n_jobs=n_jobs)
        assert_array_equal(other.thetas, one.thetas)
        assert_array_equal(other.step_sizes, one.step_sizes)
        assert_array_equal(other.objective, one.objective)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("response", [SquaredError(), Softmax(gamma=2.0), Words()], ids=["squared_error", "softmax", "words"])
def test_the_same_gradient_bits_for_any_number_of_threads(make_problem, response, dtype):
    """Enough documents for many blocks, so that the order in which blocks are added shows."""
    rng = np.random.default_rng(3)
    n_docs, n_topics = 1500, 5
    phi, X = make_problem(n_topics, rng.integers(0, 20, size=n_docs), n_words=100, dtype=dtype)
    U, y = rng.normal(size=(3, n_topics)).astype(dtype), rng.normal(size=(n_docs, 3))
    if isinstance(response, Softmax):
        y = rng.integers(3, size=n_docs)
    elif isinstance(response, Words):
        U, y = None, None
    one = value_and_grad(phi, U, X, y, response, n_jobs=1)
    for n_jobs in (2, 3, None):
        other = value_and_grad(phi, U, X, y, response, n_jobs=n_jobs)
        assert other.loss == one.loss
        assert_array_equal(other.rows, one.rows)
        assert_array_equal(other.grad_phi, one.grad_phi)
        assert_array_equal(other.grad_counts, one.grad_counts)
        assert U is None or np.array_equal(other.grad_U, one.grad_U)
