"""MAP inference against the oracle: the layers, the line search's decisions, and the edges of the input."""

import itertools

import numpy as np
import oracle
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from mirrorlda import infer

RULES = ["l1", "kl"]
CONSTANT = 0.002
N_LAYERS = 10


def oracle_traces(phi, X, alpha, step_sizes):
    """The oracle's traces with one row of step sizes, or one rule, for each document."""
    traces = []
    for d in range(X.shape[0]):
        steps = step_sizes if isinstance(step_sizes, str) else step_sizes[d]
        traces.append(oracle.infer(*oracle.document(phi, X, d, alpha), N_LAYERS, steps))
    return traces


def assert_each_layer_agrees(trace, phi, X, alpha):
    """Each layer from the one before it: the layers together amplify rounding without bound where alpha < 1.

    theta' = theta exp(T g) / C is off, relatively, by the rounding of the terms of T g, and f by that of its terms:
    measured, up to 125 and 20 units of rounding.
    """
    eps = np.finfo(phi.dtype).eps
    for d in range(X.shape[0]):
        P, x, alpha_d = oracle.document(phi, X, d, alpha)
        thetas = trace.thetas[d].astype(np.float64)
        for theta, f in zip(thetas, trace.objective[d], strict=True):
            terms = x @ np.abs(np.log(P @ theta)) + np.abs(alpha_d - 1) @ np.abs(np.log(theta))
            assert_allclose(f, oracle.objective(theta, P, x, alpha_d), rtol=0, atol=50 * eps * (1 + terms))
        for theta, theta_new, T in zip(thetas, thetas[1:], trace.step_sizes[d].astype(np.float64), strict=False):
            if T == 0:
                assert_array_equal(theta_new, theta)
                continue
            g = oracle.negative_gradient(theta, P, x, alpha_d)
            raw = oracle.mirror_step(theta, g, T)
            terms = T * (g + 2 * np.maximum(1 - alpha_d, 0) / theta)
            rtol = 250 * eps * (1 + np.abs(terms[raw > oracle.FLOOR / 2]).max())
            assert_allclose(theta_new, np.maximum(raw, oracle.FLOOR), rtol=rtol)


@pytest.mark.pairwise
@pytest.mark.parametrize("step_size", [*RULES, CONSTANT])
def test_layers_agree_with_the_oracle(make_problem, dtype, n_topics, step_size, alpha):
    phi, X = make_problem(n_topics, dtype=dtype)
    trace = infer(phi, X, alpha=alpha, n_layers=N_LAYERS, step_size=step_size)
    assert_each_layer_agrees(trace, phi, X, alpha)
    if dtype is np.float64:
        expected = oracle_traces(phi, X, alpha, trace.step_sizes)
        assert_allclose(trace.thetas, [t.thetas for t in expected], rtol=1e-9)
        assert_allclose(trace.objective, [t.objective for t in expected], rtol=1e-9, atol=1e-9)


@pytest.mark.pairwise
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("n_topics", [1, 2, 8, 33, 100])
@pytest.mark.parametrize("dtype", [np.float64])
def test_line_search_decides_as_the_oracle(make_problem, n_topics, rule, alpha):
    phi, X = make_problem(n_topics)
    trace = infer(phi, X, alpha=alpha, n_layers=N_LAYERS, step_size=rule)
    expected = oracle_traces(phi, X, alpha, rule)
    same_step = np.isclose(trace.step_sizes, [t.step_sizes for t in expected], rtol=1e-12, atol=0)
    same_trials = trace.n_trials == [t.n_trials for t in expected]
    # A comparison within rounding of equality may fall either way, and then the later layers of that document
    # differ (for the empty one with alpha = 1, f and g are zero and all is rounding): one document in fourteen may.
    assert np.mean(same_step & same_trials) > 0.9


def assert_each_step_passes_its_rule(trace, phi, X, alpha, rule):
    for d in range(X.shape[0]):
        P, x, alpha_d = oracle.document(phi, X, d, alpha)
        T_tried = oracle.initial_step(x, alpha_d)
        T_first = T_tried / oracle.ETA
        for layer in range(N_LAYERS):
            theta = trace.thetas[d, layer].astype(np.float64)
            T, n_trials = float(trace.step_sizes[d, layer]), int(trace.n_trials[d, layer])
            if layer and n_trials == 1 and T != 0:
                # Doubled unless the change before it was too small to tell.
                before = trace.thetas[d, layer - 1].astype(np.float64)
                told = oracle.telling(before, T_tried, rule, P, x, alpha_d) if trace.step_sizes[d, layer - 1] else np.inf
                # Without words and with alpha = 1 all is rounding.
                if oracle.objective(before, P, x, alpha_d) != 0:
                    # Of small changes float32 leaves few digits, or none.
                    factor = 3 if phi.dtype == np.float64 else 1000
                    assert abs(told) * factor > 1 if 1.5 * T_tried < T else told < factor
                T_first = T
            T_tried = T if T != 0 else T_first * oracle.ETA ** (oracle.MAX_STEPS - 1)
            n_halvings = round(np.log2(T_first / T_tried))
            assert_allclose(T_tried, T_first * oracle.ETA**n_halvings, rtol=1e-6)
            assert min(n_halvings, 1) <= n_trials - 1 <= n_halvings < oracle.MAX_STEPS
            tolerance = rule_tolerance(theta, T_tried, P, x, alpha_d, phi.dtype)
            if T == 0:
                assert not oracle.excess(theta, T_tried, rule, P, x, alpha_d) < -tolerance
                continue
            assert oracle.excess(theta, T, rule, P, x, alpha_d) <= tolerance
            if n_trials > 1:
                tolerance = rule_tolerance(theta, T_first, P, x, alpha_d, phi.dtype)
                assert not oracle.excess(theta, T_first, rule, P, x, alpha_d) < -tolerance
            T_first = T_tried / oracle.ETA


def rule_tolerance(theta, T, P, x, alpha, dtype):
    """Three slacks and the rounding of the rule's terms: f, g.theta and, in the KL rule, KL(theta' || theta) / T."""
    f, g = oracle.objective(theta, P, x, alpha), oracle.negative_gradient(theta, P, x, alpha)
    terms = abs(f) + np.abs(g) @ theta + 1 / T
    return 3 * oracle.SLACK * abs(f) + 30 * np.finfo(dtype).eps * terms


@pytest.mark.pairwise
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("n_topics", [2, 7, 64])
def test_each_step_passes_its_rule_and_is_shorter_only_after_a_failure(make_problem, dtype, n_topics, rule, alpha):
    phi, X = make_problem(n_topics, dtype=dtype)
    trace = infer(phi, X, alpha=alpha, n_layers=N_LAYERS, step_size=rule)
    assert_each_step_passes_its_rule(trace, phi, X, alpha, rule)


@pytest.mark.pairwise
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("n_topics", [2, 8, 33])
@pytest.mark.parametrize("tol", [1e-3, 0.05])
def test_layers_end_where_the_last_two_gain_little(make_problem, dtype, n_topics, rule, tol, alpha):
    phi, X = make_problem(n_topics, dtype=dtype)
    n_layers = 40
    trace = infer(phi, X, alpha=alpha, n_layers=n_layers, step_size=rule, tol=tol)
    n_taken = (trace.n_trials > 0).sum(axis=1)
    assert np.median(n_taken) < n_layers
    for d in range(X.shape[0]):
        P, x, alpha_d = oracle.document(phi, X, d, alpha)
        end, thetas = n_taken[d], trace.thetas[d].astype(np.float64)
        assert (trace.n_trials[d, :end] > 0).all()
        assert_array_equal(thetas[end:], np.broadcast_to(thetas[end], thetas[end:].shape))
        assert_array_equal(trace.objective[d, end:], trace.objective[d, end])
        assert_array_equal(trace.step_sizes[d, end:], 0)
        gains = np.array([oracle.gain(*pair, P, x, alpha_d) for pair in itertools.pairwise(thetas)])
        falls = -np.diff(trace.objective[d])
        # Near the end, where it counts, the bound is the fall itself; both are off by the rounding of their terms.
        terms = x.sum() + x @ np.abs(np.log(P @ thetas.T)).max(axis=1) + np.abs(alpha_d - 1) @ np.abs(np.log(thetas)).max(axis=0)
        rounding = 100 * np.finfo(dtype).eps * (1 + terms)
        if end < n_layers:
            assert_allclose(falls[end - 1], gains[end - 1], rtol=0.2, atol=rounding)
        for layer in range(min(end, n_layers - 1)):
            short = tol * gains[: layer + 1].sum() - gains[max(layer - 1, 0) : layer + 1].sum()
            assert short >= -rounding if layer + 1 == end else short <= rounding
    if dtype is np.float64:
        expected = [oracle.infer(*oracle.document(phi, X, d, alpha), n_layers, rule, tol) for d in range(X.shape[0])]
        assert np.mean(n_taken == [np.sum(t.n_trials > 0) for t in expected]) > 0.9


@pytest.mark.parametrize("rule", RULES)
def test_layers_that_are_taken_do_not_depend_on_the_tolerance(make_problem, dtype, rule):
    phi, X = make_problem(12, dtype=dtype)
    whole, ended = (infer(phi, X, n_layers=30, step_size=rule, tol=tol) for tol in (0.0, 0.02))
    taken = ended.n_trials > 0
    assert 0.1 < taken.mean() < 0.9
    for name in ("step_sizes", "n_trials"):
        assert_array_equal(getattr(ended, name)[taken], getattr(whole, name)[taken])
    assert_array_equal(ended.thetas[:, 1:][taken], whole.thetas[:, 1:][taken])
    assert_array_equal(ended.objective[:, 1:][taken], whole.objective[:, 1:][taken])
    # As many layers as a document takes, or more: the same proportions.
    n_taken = taken.sum(axis=1).max()
    assert n_taken < 30
    assert_array_equal(infer(phi, X, n_layers=int(n_taken), step_size=rule, tol=0.02).theta, ended.theta)


@pytest.mark.parametrize("tol", [-1e-9, 1.0, np.nan, "small", None])
def test_a_tolerance_out_of_range_is_refused(make_problem, tol):
    phi, X = make_problem(3, [5])
    with pytest.raises(ValueError, match=r"tol must be a number of at least 0 and below 1, got"):
        infer(phi, X, tol=tol)


@pytest.mark.parametrize("step_size", [*RULES, CONSTANT])
def test_replaying_the_recorded_steps_repeats_the_layers(make_problem, step_size, dtype):
    phi, X = make_problem(12, dtype=dtype)
    trace = infer(phi, X, n_layers=N_LAYERS, step_size=step_size, tol=0.05)
    replayed = infer(phi, X, n_layers=N_LAYERS, step_size=trace.step_sizes)
    assert_allclose(replayed.thetas, trace.thetas, rtol=1000 * np.finfo(dtype).eps)
    assert_array_equal(replayed.step_sizes, trace.step_sizes)
    # Steps that are given are taken, whatever they gain.
    assert step_size != CONSTANT or (trace.step_sizes == CONSTANT).all()
    again = infer(phi, X, n_layers=N_LAYERS, step_size=trace.step_sizes, tol=0.9)
    assert_array_equal(again.thetas, replayed.thetas)


def test_a_replayed_zero_is_the_identity(make_problem):
    phi, X = make_problem(6, [5, 0, 40])
    step_sizes = np.full((3, 4), 0.01)
    step_sizes[:, 2] = 0
    thetas = infer(phi, X, n_layers=4, step_size=step_sizes).thetas
    assert_array_equal(thetas[:, 3], thetas[:, 2])
    without = infer(phi, X, n_layers=3, step_size=np.full((3, 3), 0.01)).thetas
    assert_array_equal(thetas[:, [0, 1, 2, 4]], without)


@pytest.mark.parametrize("n_layers", [1, 3])
def test_shapes_and_types(make_problem, n_layers, dtype):
    phi, X = make_problem(5, [3, 0, 17], dtype=dtype)
    trace = infer(phi, X, n_layers=n_layers)
    assert trace.thetas.shape == (3, n_layers + 1, 5)
    assert trace.thetas.dtype == trace.theta.dtype == dtype
    assert_array_equal(trace.theta, trace.thetas[:, -1])
    assert_array_equal(trace.thetas[:, 0], np.full((3, 5), dtype(0.2)))
    assert trace.step_sizes.shape == trace.n_trials.shape == (3, n_layers)
    assert np.issubdtype(trace.n_trials.dtype, np.integer)
    assert trace.objective.shape == (3, n_layers + 1)
    assert trace.objective.dtype == np.float64


def test_a_constant_step_is_recorded(make_problem):
    phi, X = make_problem(5, [3, 0, 17])
    assert_array_equal(infer(phi, X, n_layers=4, step_size=0.25).step_sizes, np.full((3, 4), 0.25))


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csr_array, sp.csr_array.toarray], ids=["matrix", "array", "dense"])
@pytest.mark.parametrize("count_type", [np.int32, np.int64, np.float32, np.float64])
def test_every_form_of_the_documents_gives_the_same_bits(make_problem, form, count_type):
    phi, X = make_problem(5, [3, 0, 17, 80])
    X.data = np.ceil(X.data)
    theta = infer(phi, X).theta
    assert_array_equal(infer(phi, form(X.astype(count_type))).theta, theta)


def test_64_bit_csr_indices(make_problem):
    phi, X = make_problem(5, [3, 0, 17, 80])
    theta = infer(phi, X).theta
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    assert_array_equal(infer(phi, X).theta, theta)


@pytest.mark.parametrize("step_size", [*RULES, CONSTANT])
def test_an_empty_document_moves_to_the_mode_of_the_prior(make_problem, step_size):
    phi, X = make_problem(3, [0, 4])
    alpha = np.array([1.5, 2.0, 3.5])
    theta = infer(phi, X, alpha=alpha, n_layers=2000, step_size=step_size).theta
    assert_allclose(theta[0], (alpha - 1) / (alpha - 1).sum(), atol=1e-4)
    assert_allclose(infer(phi, X, alpha=1.0, step_size=step_size).theta[0], 1 / 3, rtol=1e-12)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("n_topics", [9])
@pytest.mark.parametrize("dtype", [np.float64])
def test_explicit_zeros_change_nothing(make_problem, n_topics, rule, alpha):
    phi, X = make_problem(n_topics, [1, 10, 30, 60])
    X.data[::3] = 0
    trace = infer(phi, X, alpha=alpha, step_size=rule)
    without = X.copy()
    without.eliminate_zeros()
    expected = infer(phi, without, alpha=alpha, step_size=trace.step_sizes)
    assert_allclose(trace.thetas, expected.thetas, rtol=1e-9)


@pytest.mark.pairwise
@pytest.mark.parametrize("scale", [1e-6, 1e3, 1e6])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("n_topics", [9])
def test_tiny_and_large_counts(make_problem, dtype, n_topics, rule, alpha, scale):
    phi, X = make_problem(n_topics, [0, 1, 8, 30, 100], dtype=dtype)
    X.data *= dtype(scale)
    trace = infer(phi, X, alpha=alpha, n_layers=N_LAYERS, step_size=rule)
    assert_each_layer_agrees(trace, phi, X, alpha)
    assert_each_step_passes_its_rule(trace, phi, X, alpha, rule)
    assert np.isfinite(trace.objective).all()


@pytest.mark.parametrize("step_size", [1.0, 1e3, 1e6])
@pytest.mark.parametrize("n_topics", [9])
def test_a_huge_constant_step_stays_on_the_simplex(make_problem, dtype, n_topics, step_size, alpha):
    phi, X = make_problem(n_topics, dtype=dtype)
    trace = infer(phi, X, alpha=alpha, step_size=step_size)
    assert np.isfinite(trace.objective).all()
    assert trace.thetas.min() >= dtype(oracle.FLOOR)
    assert_allclose(trace.thetas.sum(axis=-1), 1, rtol=1e-5)


@pytest.mark.parametrize("rule", RULES)
def test_a_word_that_no_topic_has_leaves_no_nan(make_problem, dtype, rule):
    phi, X = make_problem(4, [5, 20, 1], dtype=dtype)
    phi[X.indices[X.indptr[1:3]]] = 0
    phi /= phi.sum(axis=0)
    trace = infer(phi, X, step_size=rule)
    assert not np.isnan(trace.objective).any()
    assert_allclose(trace.thetas.sum(axis=-1), 1, rtol=1e-5)
    assert np.isfinite(trace.step_sizes).all()
