"""Gradients against the oracle, central differences and JAX, always with the recorded step sizes replayed."""

from dataclasses import replace

import numpy as np
import oracle
import pytest
from mirrorlda.responses import Softmax, SquaredError, Words
from numpy.testing import assert_allclose, assert_array_equal

from mirrorlda import infer, value_and_grad
from mirrorlda.data.documents import as_documents
from mirrorlda.method.gradients import gradients
from mirrorlda.method.inference import check_layers, new_engine

RESPONSES = ["squared_error", "softmax", "words"]
GAMMA = 1.7
N_LAYERS = 10

# Relative to the largest entry. In float32 theta of the last layer carries a relative error of up to about 1e-4
# (the rounding of exponents T g of up to a thousand), and the reverse pass multiplies ten layers of such factors.
RTOL = {np.float64: 1e-9, np.float32: 3e-3}


def make_response(name, X, n_topics, n_outputs=3, dtype=np.float64):
    """The package's response, U and y for the documents of X."""
    rng = np.random.default_rng(1)
    U = rng.normal(size=(n_outputs, n_topics)).astype(dtype)
    n_docs = X.shape[0]
    if name == "squared_error":
        return SquaredError(gamma=GAMMA), U, rng.normal(size=(n_docs, n_outputs))
    if name == "softmax":
        return Softmax(gamma=GAMMA), U, rng.integers(n_outputs, size=n_docs)
    return Words(), None, None


def dense_grad_phi(gradient, n_words):
    dense = np.zeros((n_words, gradient.grad_phi.shape[1]))
    assert np.unique(gradient.rows).size == gradient.rows.size
    dense[gradient.rows] = gradient.grad_phi
    return dense


def assert_close_to_largest(actual, expected, rtol):
    expected = np.asarray(expected)
    assert_allclose(actual, expected, rtol=0, atol=rtol * np.abs(expected).max(initial=0) + 1e-300)


def assert_gradients_agree(gradient, expected, rtol):
    """expected is an oracle.Gradient."""
    assert_allclose(gradient.loss, expected.loss, rtol=rtol)
    assert_close_to_largest(dense_grad_phi(gradient, len(expected.grad_phi)), expected.grad_phi, rtol)
    assert_close_to_largest(gradient.grad_counts, expected.grad_counts, rtol)
    if expected.grad_U is None:
        assert gradient.grad_U.shape == (0, gradient.grad_phi.shape[1])
    else:
        assert_close_to_largest(gradient.grad_U, expected.grad_U, rtol)


def check_against_oracle(phi, X, name, alpha, step_size, n_outputs=3, sample_weight=None):
    dtype = phi.dtype.type
    response, U, y = make_response(name, X, phi.shape[1], n_outputs, dtype)
    steps = infer(phi, X, alpha=alpha, n_layers=N_LAYERS, step_size=step_size).step_sizes
    options = {"alpha": alpha, "n_layers": N_LAYERS, "step_size": steps, "sample_weight": sample_weight}
    gradient = value_and_grad(phi, U, X, y, response, **options)
    expected = oracle.value_and_grad(phi, U, X, y, getattr(oracle, name), gamma=GAMMA, **options)
    assert_gradients_agree(gradient, expected, RTOL[dtype])


@pytest.mark.pairwise
def test_gradients_agree_with_the_oracle(make_problem, dtype, n_topics, alpha):
    phi, X = make_problem(n_topics, dtype=dtype)
    check_against_oracle(phi, X, "squared_error", alpha, "l1")


@pytest.mark.pairwise
@pytest.mark.parametrize("step_size", ["l1", "kl", 0.002])
@pytest.mark.parametrize("name", RESPONSES)
@pytest.mark.parametrize("n_outputs", [1, 2, 7])
@pytest.mark.parametrize("n_topics", [9])
@pytest.mark.parametrize("dtype", [np.float64])
def test_responses_and_weights_agree_with_the_oracle(make_problem, n_topics, n_outputs, name, step_size, alpha):
    phi, X = make_problem(n_topics)
    sample_weight = np.linspace(0, 3, X.shape[0])
    check_against_oracle(phi, X, name, alpha, step_size, n_outputs, sample_weight)


@pytest.mark.parametrize("name", RESPONSES)
@pytest.mark.parametrize("n_topics", [3, 20])
@pytest.mark.parametrize("dtype", [np.float32])
@pytest.mark.parametrize("alpha", [1.001], indirect=True)
def test_float32_responses_agree_with_the_oracle(make_problem, dtype, n_topics, name, alpha):
    phi, X = make_problem(n_topics, dtype=dtype)
    check_against_oracle(phi, X, name, alpha, "l1")


@pytest.mark.pairwise
@pytest.mark.parametrize("scale", [1e-6, 1e6])
@pytest.mark.parametrize("name", RESPONSES)
@pytest.mark.parametrize("n_topics", [9])
def test_gradients_are_finite_for_tiny_and_large_counts(make_problem, dtype, n_topics, name, alpha, scale):
    phi, X = make_problem(n_topics, [0, 1, 8, 30, 100], dtype=dtype)
    X.data *= dtype(scale)
    response, U, y = make_response(name, X, n_topics, dtype=dtype)
    gradient = value_and_grad(phi, U, X, y, response, alpha=alpha)
    assert np.isfinite(gradient.loss)
    assert np.isfinite(gradient.grad_phi).all()
    assert np.isfinite(gradient.grad_counts).all()


@pytest.mark.parametrize("step_size", ["l1", "kl", 0.01])
@pytest.mark.parametrize("name", RESPONSES)
@pytest.mark.parametrize("tol", [0.0, 0.05])
def test_replaying_the_recorded_steps_gives_the_same_gradients(make_problem, name, step_size, tol):
    phi, X = make_problem(9)
    response, U, y = make_response(name, X, 9)
    options = {"n_layers": 20}
    steps = infer(phi, X, step_size=step_size, tol=tol, **options).step_sizes
    assert (steps[:, -1] == 0).any() or not tol or step_size == 0.01
    gradient = value_and_grad(phi, U, X, y, response, step_size=step_size, tol=tol, **options)
    replayed = value_and_grad(phi, U, X, y, response, step_size=steps, **options)
    assert_allclose(gradient.loss, replayed.loss, rtol=1e-11)
    assert_close_to_largest(gradient.grad_phi, replayed.grad_phi, 1e-11)
    assert_close_to_largest(gradient.grad_counts, replayed.grad_counts, 1e-11)


# Central differences


def loss_of(thetas, U, y, name):
    return sum(getattr(oracle, name)(theta, U, y[d], GAMMA)[0] for d, theta in enumerate(thetas))


@pytest.mark.parametrize("alpha", [0.9, 1.001, 1.5, "vector"], indirect=True)
@pytest.mark.parametrize("rule", ["l1", "kl"])
@pytest.mark.parametrize("name", ["squared_error", "softmax"])
@pytest.mark.parametrize("n_topics", [5])
@pytest.mark.parametrize("dtype", [np.float64])
def test_central_differences_through_infer(make_problem, n_topics, name, rule, alpha):
    n_words, h = 60, 1e-5
    phi, X = make_problem(n_topics, [0, 1, 9, 40], n_words=n_words)
    response, U, y = make_response(name, X, n_topics)
    options = {"alpha": alpha, "n_layers": 5}
    options["step_size"] = infer(phi, X, **options, step_size=rule).step_sizes
    gradient = value_and_grad(phi, U, X, y, response, **options)

    rng = np.random.default_rng(2)
    for _ in range(5):
        z = rng.normal(size=phi.shape)
        along_phi = phi * (z - (phi * z).sum(axis=0))  # columns stay on the simplex
        along_x = X.data * rng.normal(size=X.nnz)

        def loss(t, along_phi=along_phi):
            return loss_of(infer(phi + t * along_phi, X, **options).theta, U, y, name)

        def loss_x(t, along_x=along_x):
            moved = X.copy()
            moved.data = X.data + t * along_x
            return loss_of(infer(phi, moved, **options).theta, U, y, name)

        slope = np.vdot(dense_grad_phi(gradient, n_words), along_phi)
        assert_allclose((loss(h) - loss(-h)) / (2 * h), slope, rtol=1e-5, atol=1e-7)
        slope = gradient.grad_counts @ along_x
        assert_allclose((loss_x(h) - loss_x(-h)) / (2 * h), slope, rtol=1e-5, atol=1e-7)


def batch_gradients(phi, U, X, y, response, sample_weight=None, **options):
    """As training calls it, on all documents of X, with five layers whose recorded steps are held."""
    documents, everything = as_documents(X, phi.dtype), np.arange(X.shape[0])
    layers = check_layers(1.001, 5, infer(phi, X, n_layers=5).step_sizes, 0.0, phi, X.shape[0])
    weights = np.ones(X.shape[0]) if sample_weight is None else sample_weight
    rows = documents.words_of(everything)
    result = gradients(new_engine(phi.dtype), phi, U, documents, everything, y, weights, response, layers, rows=rows, **options)
    return replace(result, grad_phi=result.grad_phi.copy())


@pytest.mark.parametrize("name", ["squared_error", "softmax"])
def test_central_differences_of_the_words_weights(make_problem, name):
    """With respect to their logarithms."""
    n_words, h = 60, 1e-5
    phi, X = make_problem(5, [0, 1, 9, 40, 9], n_words=n_words)
    response, U, y = make_response(name, X, 5)
    sample_weight = np.array([1.0, 2, 0.5, 1, 0])
    steps = infer(phi, X, n_layers=5).step_sizes
    result = batch_gradients(phi, U, X, y, response, sample_weight, want_word_weights=True)
    assert_array_equal(result.rows, np.unique(X.indices))
    for place, word in enumerate(result.rows):
        ends = []
        for t in (h, -h):
            moved = X.copy()
            moved.data = X.data * np.where(X.indices == word, np.exp(t), 1.0)
            thetas = infer(phi, moved, n_layers=5, step_size=steps).theta
            ends.append(sum(w * getattr(oracle, name)(thetas[d], U, y[d], GAMMA)[0] for d, w in enumerate(sample_weight)))
        assert_allclose((ends[0] - ends[1]) / (2 * h), result.grad_word_weights[place], rtol=1e-5, atol=1e-8)
    assert np.abs(result.grad_word_weights).max() > 1e-3


@pytest.mark.parametrize("alpha", [0.9, 1.001, 1.5, "vector"], indirect=True)
@pytest.mark.parametrize("name", RESPONSES)
@pytest.mark.parametrize("n_topics", [4])
@pytest.mark.parametrize("dtype", [np.float64])
def test_the_oracle_by_its_own_central_differences(make_problem, n_topics, name, alpha):
    """Every entry of P, x and U of one document; the words' response holds theta, so only its explicit term counts."""
    h = 1e-6
    phi, X = make_problem(n_topics, [12], n_words=12)
    _, U, y = make_response(name, X, n_topics)
    P, x, alpha_d = oracle.document(phi, X, 0, alpha)
    trace = oracle.infer(P, x, alpha_d, 6, "l1")

    def loss(P, x, U):
        if name == "words":
            return oracle.words(trace.thetas[-1], P, x)[0]
        theta = oracle.infer(P, x, alpha_d, 6, trace.step_sizes).thetas[-1]
        return getattr(oracle, name)(theta, U, y[0], GAMMA)[0]

    steps = trace.step_sizes[None]
    expected = oracle.value_and_grad(phi, U, X, y, getattr(oracle, name), alpha=alpha, n_layers=6, step_size=steps, gamma=GAMMA)
    arguments = {"grad_phi": P, "grad_counts": x, "grad_U": U}
    for slot, (field, value) in enumerate(arguments.items()):
        if value is None:
            continue
        differences = np.zeros_like(value)
        for index in np.ndindex(value.shape):
            ends = []
            for step in (h * P.max(), -h * P.max()) if slot == 0 else (h, -h):
                moved = [P, x, U]
                moved[slot] = value.copy()
                moved[slot][index] += step
                ends.append(loss(*moved) / (2 * abs(step)))
            differences[index] = ends[0] - ends[1]
        assert_close_to_largest(getattr(expected, field), differences, 1e-6)


# Sums over documents


@pytest.mark.parametrize("name", RESPONSES)
def test_a_document_twice_is_a_document_of_weight_two(make_problem, name):
    phi, X = make_problem(5, [4, 30, 0, 12])
    response, U, y = make_response(name, X, 5)
    twice = np.array([0, 1, 1, 2, 3, 3])
    y_twice = None if y is None else y[twice]
    repeated = value_and_grad(phi, U, X[twice], y_twice, response)
    weighted = value_and_grad(phi, U, X, y, response, sample_weight=np.array([1.0, 2.0, 1.0, 2.0]))
    assert_allclose(repeated.loss, weighted.loss, rtol=1e-12)
    assert_close_to_largest(dense_grad_phi(repeated, 600), dense_grad_phi(weighted, 600), 1e-12)
    if U is not None:
        assert_close_to_largest(repeated.grad_U, weighted.grad_U, 1e-12)


@pytest.mark.parametrize("name", RESPONSES)
def test_weight_zero_is_a_removed_document(make_problem, name):
    phi, X = make_problem(5, [4, 30, 0, 12])
    response, U, y = make_response(name, X, 5)
    kept = np.array([0, 2, 3])
    y_kept = None if y is None else y[kept]
    removed = value_and_grad(phi, U, X[kept], y_kept, response)
    weighted = value_and_grad(phi, U, X, y, response, sample_weight=np.array([1.0, 0.0, 1.0, 1.0]))
    assert_allclose(weighted.loss, removed.loss, rtol=1e-12)
    assert_close_to_largest(dense_grad_phi(weighted, 600), dense_grad_phi(removed, 600), 1e-12)
    assert_array_equal(weighted.grad_counts[4:34], np.zeros(30))
    assert_close_to_largest(np.delete(weighted.grad_counts, np.s_[4:34]), removed.grad_counts, 1e-12)


@pytest.mark.parametrize("name", RESPONSES)
def test_explicit_zeros_have_a_gradient_of_their_count_only(make_problem, name):
    phi, X = make_problem(5, [4, 30, 0, 12])
    X.data[::3] = 0
    response, U, y = make_response(name, X, 5)
    steps = infer(phi, X, n_layers=N_LAYERS).step_sizes
    check_against_oracle(phi, X, name, 1.001, "l1")
    without = X.copy()
    without.eliminate_zeros()
    gradient = value_and_grad(phi, U, X, y, response, n_layers=N_LAYERS, step_size=steps)
    expected = value_and_grad(phi, U, without, y, response, n_layers=N_LAYERS, step_size=steps)
    assert_close_to_largest(dense_grad_phi(gradient, 600), dense_grad_phi(expected, 600), 1e-9)
    assert_close_to_largest(gradient.grad_counts[X.data > 0], expected.grad_counts, 1e-9)


def test_rows_are_the_words_that_occur(make_problem):
    phi, X = make_problem(5, [4, 30, 0, 12])
    response, U, y = make_response("squared_error", X, 5)
    gradient = value_and_grad(phi, U, X, y, response)
    assert_array_equal(np.sort(gradient.rows), np.unique(X.indices))
    assert gradient.grad_phi.shape == (gradient.rows.size, 5)
    assert gradient.grad_counts.shape == (X.nnz,)


def test_an_identity_layer_passes_the_gradient_unchanged(make_problem):
    phi, X = make_problem(5, [4, 30, 0, 12])
    response, U, y = make_response("squared_error", X, 5)
    steps = np.full((4, 5), 0.02)
    steps[:, [1, 3]] = 0
    gradient = value_and_grad(phi, U, X, y, response, n_layers=5, step_size=steps)
    expected = value_and_grad(phi, U, X, y, response, n_layers=3, step_size=np.full((4, 3), 0.02))
    assert_close_to_largest(gradient.grad_phi, expected.grad_phi, 1e-12)
    assert_close_to_largest(gradient.grad_counts, expected.grad_counts, 1e-12)


def test_softmax_of_extreme_scores_is_finite(make_problem):
    phi, X = make_problem(5, [4, 30, 0, 12])
    _, U, y = make_response("softmax", X, 5)
    gradient = value_and_grad(phi, 1e4 * U, X, y, Softmax(gamma=10.0))
    assert np.isfinite(gradient.loss)
    assert np.isfinite(gradient.grad_phi).all()
    assert np.isfinite(gradient.grad_U).all()


@pytest.mark.parametrize("rule", ["l1", "kl"])
@pytest.mark.parametrize("prior", [0.5, 1.001, 1.5])
def test_layers_after_theta_stands_still_do_not_change_the_gradient(make_problem, dtype, rule, prior):
    """There any step passes the rule. Steps that grew would leave theta where it is, and take the gradient beyond all bounds."""
    phi, X = make_problem(7, dtype=dtype)
    response, U, y = make_response("squared_error", X, 7, dtype=dtype)
    found = [value_and_grad(phi, U, X, y, response, alpha=prior, n_layers=n, step_size=rule) for n in (60, 300)]
    assert all(np.isfinite(gradient.grad_phi).all() for gradient in found)
    few, many = (dense_grad_phi(gradient, len(phi)) for gradient in found)
    assert np.abs(many).max() < 3 * np.abs(few).max()
