"""The learning step against the oracle: lazy rows equal dense ones; the core's functions equal their NumPy lines."""

from dataclasses import dataclass, replace

import numpy as np
import oracle
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mirrorlda import _core, learning
from mirrorlda.objective import Gradients

N_WORDS, N_OUTPUTS, N_STEPS = 300, 3, 70


def random_phi(rng, n_words, n_topics, dtype=np.float64):
    """Some entries at the floor, some rows tiny, so that the floor acts and the prior shows."""
    phi = rng.gamma(0.2, size=(n_words, n_topics))
    phi[: n_words // 10] *= 1e-11
    phi = np.maximum(phi / phi.sum(axis=0), oracle.FLOOR)
    return (phi / phi.sum(axis=0)).astype(dtype)


def random_gradients(rng, n_words, n_topics, n_rows, dtype=np.float64):
    """Row-sparse, heavy-tailed: some exponents are clipped."""
    rows = np.sort(rng.choice(n_words, n_rows, replace=False)).astype(np.int32)
    grad_phi = (rng.standard_t(2, size=(n_rows, n_topics)) * 50).astype(dtype)
    grad_U = rng.standard_normal((N_OUTPUTS, n_topics)).astype(dtype)
    return Gradients(1.0, rows, grad_phi, grad_U, None, np.zeros((0, N_OUTPUTS)), np.zeros(0))


def steps(rng, n_topics, n_rows=25):
    """Gradients, batch weights and rates of a run whose averages begin in the middle with growing weights."""
    for step in range(N_STEPS):
        average = 0.0 if step < N_STEPS // 3 else 1.0 + step / 7
        yield (
            random_gradients(rng, N_WORDS, n_topics, n_rows),
            rng.uniform(5, 20),
            learning.Rates(phi=0.3 * (1 - step / N_STEPS), U=0.1, prior=2e-4, average=average),
        )


@dataclass
class Dense:
    """The same steps on all rows, each with the oracle's definition."""

    phi: np.ndarray
    U: np.ndarray
    squares: float = 0.0
    n_steps: int = 0
    average_phi: float = 0.0
    average_U: float = 0.0
    n_floored: int = 0

    def learn(self, gradients, weight, rates):
        grad = np.zeros_like(self.phi)
        grad[gradients.rows] = gradients.grad_phi / weight
        touched = np.isin(np.arange(len(self.phi)), gradients.rows)
        self.n_steps += 1
        self.squares = self.squares + (grad**2).sum(axis=0)
        rate = rates.phi / np.sqrt(self.squares / (self.n_steps * len(self.phi)))
        c = np.minimum(rate * rates.prior, 1 / len(self.phi))
        raised = self.phi * np.exp(np.clip(-rate * grad, -1, 1)) < oracle.FLOOR
        self.n_floored += int((raised & touched[:, None]).sum())
        self.phi = oracle.learning_step(self.phi, grad, rate, c, touched)
        self.U = self.U - rates.U * gradients.grad_U / weight
        self.average_phi = self.average_phi + rates.average * self.phi
        self.average_U = self.average_U + rates.average * self.U

    def averages(self):
        return self.average_phi / self.average_phi.sum(axis=0), self.average_U


def lazy_step(state, gradients, weight, rates, n_threads=1):
    learning.catch_up(state, gradients.rows, n_threads)
    learning.learn(state, gradients, weight, rates, n_threads)


@pytest.mark.parametrize("n_topics", [1, 2, 5, 16, 33])
@pytest.mark.parametrize("history", [2048, 7, 1], ids=["one flush", "a flush every 7 steps", "a flush every step"])
def test_lazy_rows_equal_dense_ones(monkeypatch, n_topics, history):
    monkeypatch.setattr(learning, "_HISTORY", history)
    rng = np.random.default_rng(0)
    phi, U = random_phi(rng, N_WORDS, n_topics), rng.standard_normal((N_OUTPUTS, n_topics))
    state, dense, total = learning.begin(phi, U), Dense(phi, U), 0.0
    for gradients, weight, rates in steps(rng, n_topics):
        lazy_step(state, gradients, weight, rates)
        dense.learn(gradients, weight, rates)
        total += rates.average
        assert state.n_records < history
    average_phi, average_U = learning.parameters(state, 1)
    expected_phi, expected_U = dense.averages()
    assert_allclose(average_phi, expected_phi, rtol=2e-12)
    assert_allclose(average_U, expected_U / total, rtol=1e-12)
    assert_allclose(state.phi, dense.phi, rtol=2e-12)
    assert_allclose(state.U, dense.U, rtol=1e-12)
    assert_allclose(state.phi.sum(axis=0), 1, rtol=1e-14)
    assert dense.n_floored > 0, "the floor was not tested"


def test_float32_follows_float64():
    rng = np.random.default_rng(0)
    phi, U = random_phi(rng, N_WORDS, 9), rng.standard_normal((N_OUTPUTS, 9))
    double, single = learning.begin(phi, U), learning.begin(phi.astype(np.float32), U.astype(np.float32))
    for gradients, weight, rates in steps(rng, 9):
        lazy_step(double, gradients, weight, rates)
        narrow = replace(gradients, grad_phi=gradients.grad_phi.astype(np.float32), grad_U=gradients.grad_U.astype(np.float32))
        lazy_step(single, narrow, weight, rates)
    for wide, narrow in zip(learning.parameters(double, 1), learning.parameters(single, 1), strict=True):
        assert narrow.dtype == np.float32
        assert_allclose(narrow, wide, rtol=1e-4, atol=1e-6)


def test_without_averages_the_latest_parameters_are_returned_as_copies():
    rng = np.random.default_rng(0)
    phi, U = random_phi(rng, N_WORDS, 4), rng.standard_normal((N_OUTPUTS, 4))
    state, dense = learning.begin(phi, U), Dense(phi, U)
    gradients, rates = random_gradients(rng, N_WORDS, 4, 20), learning.Rates(0.1, 0.1, 1e-4, 0.0)
    lazy_step(state, gradients, 8.0, rates)
    dense.learn(gradients, 8.0, rates)
    latest_phi, latest_U = learning.parameters(state, 1)
    assert_allclose(latest_phi, dense.phi, rtol=1e-12)
    assert_allclose(latest_U, dense.U, rtol=1e-12)
    assert not np.shares_memory(latest_phi, state.phi)
    assert not np.shares_memory(latest_U, state.U)


def test_begin_and_copy_share_nothing():
    phi, U = np.full((4, 2), 0.25), np.ones((1, 2))
    state = learning.begin(phi, U)
    twin = learning.copy(state)
    gradients = Gradients(1.0, np.arange(4, dtype=np.int32), np.eye(4, 2), U, None, U, U)
    lazy_step(state, gradients, 1.0, learning.Rates(0.1, 0.1, 1.0, 1.0))
    assert_array_equal(phi, 0.25)
    assert_array_equal(U, 1)
    assert_array_equal(twin.phi, phi)
    assert (twin.n_steps, twin.n_records, twin.average_phi) == (0, 0, None)


def test_rows_never_touched_follow_the_affine_map():
    """phi <- (phi + c) / C: ratios of the untouched rows' distances stay."""
    rng = np.random.default_rng(1)
    phi, U = random_phi(rng, N_WORDS, 3), np.zeros((0, 3))
    state = learning.begin(phi, U)
    for _ in range(10):
        gradients = replace(random_gradients(rng, 50, 3, 20), grad_U=U)
        lazy_step(state, gradients, 10.0, learning.Rates(0.2, 0.0, 1e-3, 0.0))
    assert_array_equal(state.phi[50:], phi[50:])
    after, _ = learning.parameters(state, 1)
    slope = (after[51] - after[50]) / (phi[51] - phi[50])
    assert_allclose(after[50:], after[50] + slope * (phi[50:] - phi[50]), rtol=1e-9)
    assert (np.abs(slope - 1) > 1e-6).all()


@pytest.mark.parametrize("prior", [0.0, 1e-3])
def test_a_column_without_gradient_does_not_move(prior):
    """It has no root mean square to divide by, so its rate, and with it the prior's share, is zero."""
    rng = np.random.default_rng(2)
    phi = random_phi(rng, N_WORDS, 5)
    state = learning.begin(phi, np.zeros((N_OUTPUTS, 5)))
    for gradients, weight, rates in steps(rng, 5):
        gradients.grad_phi[:, 2] = 0
        lazy_step(state, gradients, weight, replace(rates, prior=prior))
    for result in (learning.parameters(state, 1)[0], state.phi):
        assert_allclose(result[:, 2], phi[:, 2], rtol=1e-12, atol=1e-9 * oracle.FLOOR)
        assert np.abs(result[:, 1] - phi[:, 1]).max() > 1e-3


def test_the_first_step_is_the_learning_rate_in_units_of_the_root_mean_square():
    phi = np.full((4, 1), 0.25)
    state = learning.begin(phi, np.zeros((0, 1)))
    gradients = Gradients(0.0, np.arange(4, dtype=np.int32), np.array([[1.0], [-1], [1], [-1]]), state.U, None, state.U, state.U)
    lazy_step(state, gradients, 7.0, learning.Rates(phi=0.1, U=0.0, prior=0.0, average=0.0))
    expected = np.exp([-0.1, 0.1, -0.1, 0.1])
    assert_allclose(learning.parameters(state, 1)[0][:, 0], expected / expected.sum(), rtol=1e-14)


@pytest.mark.parametrize("where", ["loss", "grad_phi", "grad_U"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_gradient_that_is_not_finite_stops_learning_before_anything_changes(where, value):
    rng = np.random.default_rng(3)
    state = learning.begin(random_phi(rng, N_WORDS, 3), np.ones((N_OUTPUTS, 3)))
    good, rates = random_gradients(rng, N_WORDS, 3, 10), learning.Rates(0.1, 0.1, 1e-4, 1.0)
    lazy_step(state, good, 4.0, rates)
    bad = {"loss": value, "grad_phi": good.grad_phi.copy(), "grad_U": good.grad_U.copy()}
    if where != "loss":
        bad = {**bad, "loss": 1.0}
        bad[where][1, 2] = value
    before = learning.copy(state)
    with pytest.raises(learning.DivergedError, match="not finite after 1 steps: lower the learning rate"):
        learning.learn(state, replace(good, **bad), 4.0, rates, 1)
    for name, value_before in vars(before).items():
        assert_array_equal(getattr(state, name), value_before, err_msg=name)


def test_long_runs_stay_on_the_simplex_when_normalisers_drift(monkeypatch):
    """Clipped steps grow a column by up to e each, so the products of normalisers would leave the range of double."""
    flushes = []
    flush = learning.flush
    monkeypatch.setattr(learning, "flush", lambda state, n_threads: (flushes.append(state.n_records), flush(state, n_threads)))
    rng = np.random.default_rng(4)
    state = learning.begin(random_phi(rng, 20, 2), np.zeros((0, 2)))
    for _ in range(400):
        gradients = Gradients(
            0.0, np.arange(20, dtype=np.int32), -rng.uniform(1, 2, (20, 2)), state.U, None, np.zeros(0), np.zeros(0)
        )
        lazy_step(state, gradients, 1.0, learning.Rates(50.0, 0.0, 1e-4, 1.0))
    assert flushes
    for result in (learning.parameters(state, 1)[0], state.phi):
        assert np.isfinite(result).all()
        assert_allclose(result.sum(axis=0), 1, rtol=1e-12)


@pytest.mark.parametrize("n_threads", [2, 3, 5])
def test_the_same_bits_for_any_number_of_threads(dtype, n_threads):
    runs = []
    for threads in (1, n_threads):
        rng = np.random.default_rng(5)
        state = learning.begin(random_phi(rng, 3000, 7, dtype), np.ones((N_OUTPUTS, 7), dtype))
        for step in range(6):
            gradients = random_gradients(rng, 3000, 7, 1500, dtype)
            lazy_step(state, gradients, 9.0, learning.Rates(0.1, 0.1, 1e-4, float(step > 2)), threads)
        runs.append((*learning.parameters(state, threads), state.phi))
    for one, other in zip(*runs, strict=True):
        assert_array_equal(one, other)


# The core's functions, each against the line that its header calls equivalent


@pytest.fixture(params=[(1, 1, 1), (3, 7, 2), (255, 9, 1), (257, 16, 5), (700, 33, 3)], ids=str)
def sizes(request):
    return request.param


def same_for_all_threads(function, *arguments):
    """The result with one thread, after comparing it with others'."""
    results = [function(*arguments, n_threads) for n_threads in (1, 2, 3)]
    for other in results[1:]:
        assert_array_equal(other, results[0])
    return results[0]


def test_column_squares(dtype, sizes):
    n_rows, n_topics, _ = sizes
    gradient = np.random.default_rng(0).standard_normal((n_rows, n_topics)).astype(dtype)
    result = same_for_all_threads(_core.column_squares, gradient)
    assert result.dtype == np.float64
    assert_allclose(result, (gradient.astype(float) ** 2).sum(axis=0), rtol=16 * np.finfo(dtype).eps)
    padded = np.full((n_rows, n_topics + 5), np.nan, dtype)
    padded[:, :n_topics] = gradient
    assert_array_equal(_core.column_squares(padded[:, :n_topics], 1), result)


def test_scores_and_their_reverse(dtype, sizes):
    n_docs, n_topics, n_outputs = sizes
    rng = np.random.default_rng(0)
    theta = rng.dirichlet(np.ones(n_topics), n_docs).astype(dtype)
    U, grad_scores = (rng.standard_normal((n, m)).astype(dtype) for n, m in ((n_outputs, n_topics), (n_docs, n_outputs)))
    for function, a, b, exact in (
        (_core.scores, theta, U, lambda theta, U: theta @ U.T),
        (_core.back_scores, grad_scores, U, lambda grad_scores, U: grad_scores @ U),
        (_core.outer, grad_scores, theta, lambda grad_scores, theta: grad_scores.T @ theta),
    ):
        result = same_for_all_threads(function, a, b)
        wide = a.astype(float), b.astype(float)
        terms = exact(*map(np.abs, wide))
        assert result.dtype == dtype
        assert_allclose(result, exact(*wide), rtol=0, atol=4 * np.sqrt(n_docs + 1) * np.finfo(dtype).eps * terms.max())


def test_mirror_rows(dtype, sizes):
    n_rows, n_topics, _ = sizes
    rng = np.random.default_rng(0)
    n_words = 2 * n_rows + 1
    phi, gradients = random_phi(rng, n_words, n_topics, dtype), random_gradients(rng, n_words, n_topics, n_rows, dtype)
    phi[gradients.rows[0], 0] = oracle.FLOOR
    gradients.grad_phi[0, 0] = 5.0
    rate = rng.uniform(0, 0.1, n_topics).astype(dtype)
    expected = phi.astype(float)
    exponents = np.clip(-rate.astype(float) * gradients.grad_phi, -1, 1)
    expected[gradients.rows] = np.maximum(expected[gradients.rows] * np.exp(exponents), oracle.FLOOR)
    results = []
    for n_threads in (1, 2, 3):
        next_phi = phi.copy()
        before, after = _core.mirror_rows(next_phi, gradients.rows, gradients.grad_phi, rate, n_threads)
        results.append(np.concatenate([next_phi.ravel(), before, after]))
    assert_array_equal(results[1], results[0])
    assert_array_equal(results[2], results[0])
    assert_allclose(next_phi, expected, rtol=8 * np.finfo(dtype).eps)
    assert next_phi[gradients.rows[0], 0] == dtype(oracle.FLOOR)
    assert_allclose(before, phi[gradients.rows].astype(float).sum(axis=0), rtol=16 * np.finfo(dtype).eps)
    assert_allclose(after, next_phi[gradients.rows].astype(float).sum(axis=0), rtol=16 * np.finfo(dtype).eps)


@pytest.mark.parametrize("averaged", [True, False])
def test_catch_up(dtype, sizes, averaged):
    n_words, n_topics, _ = sizes
    rng = np.random.default_rng(0)
    n_steps = 9
    history = np.empty((n_steps + 3, 4, n_topics))
    history[0] = np.array([1, 0, 0, 0])[:, None]
    for t in range(1, n_steps + 3):
        (M, B, A, E), C, c, w = history[t - 1], rng.uniform(0.8, 1.3, n_topics), rng.uniform(0, 1e-3, n_topics), t % 3
        history[t] = M / C, B + c / M, A + w * M / C, E + w * (M / C) * (B + c / M)
    phi, last = random_phi(rng, n_words, n_topics, dtype), rng.integers(0, n_steps + 1, n_words).astype(np.int32)
    average = rng.random((n_words, n_topics)).astype(dtype) if averaged else None
    rows = rng.permutation(n_words)[: n_words // 2 + 1].astype(np.int32)

    expected, expected_average = phi.astype(float), None if average is None else average.astype(float)
    for row in rows:
        (M_s, B_s, A_s, E_s), (M_t, B_t, A_t, E_t) = history[last[row]], history[n_steps]
        if averaged:
            expected_average[row] += expected[row] / M_s * (A_t - A_s) + (E_t - E_s) - B_s * (A_t - A_s)
        expected[row] = M_t * (expected[row] / M_s + (B_t - B_s))
    for n_threads in (1, 2, 3):
        phi_now, average_now, last_now = phi.copy(), None if average is None else average.copy(), last.copy()
        _core.catch_up(phi_now, average_now, last_now, history, n_steps, rows, n_threads)
        results = [phi_now] if average is None else [phi_now, average_now]
        if n_threads == 1:
            first = results
        for one, other in zip(first, results, strict=True):
            assert_array_equal(other, one)
    assert_allclose(phi_now, expected, rtol=16 * np.finfo(dtype).eps)
    if averaged:
        assert_allclose(average_now, expected_average, rtol=16 * np.finfo(dtype).eps)
    assert_array_equal(last_now[rows], n_steps)
    assert_array_equal(np.delete(last_now, rows), np.delete(last, rows))
