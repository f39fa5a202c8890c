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


def as_gradients(rows, grad_phi, grad_U, grad_word_weights=None):
    """Learning reads nothing else of a batch but its loss."""
    n_outputs, n_topics = grad_U.shape
    nothing = np.zeros((0, n_outputs)), np.zeros(0), np.zeros((0, n_topics))
    return Gradients(1.0, rows, grad_phi, grad_U, None, *nothing, grad_word_weights)


def random_gradients(rng, n_words, n_topics, n_rows, dtype=np.float64):
    """Row-sparse, heavy-tailed: some exponents are clipped."""
    rows = np.sort(rng.choice(n_words, n_rows, replace=False)).astype(np.int32)
    grad_phi = (rng.standard_t(2, size=(n_rows, n_topics)) * 50).astype(dtype)
    grad_U = rng.standard_normal((N_OUTPUTS, n_topics)).astype(dtype)
    return as_gradients(rows, grad_phi, grad_U)


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
    averages = learning.parameters(state, 1)
    expected_phi, expected_U = dense.averages()
    assert_allclose(averages.phi, expected_phi, rtol=2e-12)
    assert_allclose(averages.U, expected_U / total, rtol=1e-12)
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
    wide, narrow = learning.parameters(double, 1), learning.parameters(single, 1)
    for name in ("phi", "U"):
        assert getattr(narrow, name).dtype == np.float32
        assert_allclose(getattr(narrow, name), getattr(wide, name), rtol=1e-4, atol=1e-6)


def test_without_averages_the_latest_parameters_are_returned_as_copies():
    rng = np.random.default_rng(0)
    phi, U = random_phi(rng, N_WORDS, 4), rng.standard_normal((N_OUTPUTS, 4))
    state, dense = learning.begin(phi, U), Dense(phi, U)
    gradients, rates = random_gradients(rng, N_WORDS, 4, 20), learning.Rates(0.1, 0.1, 1e-4, 0.0)
    lazy_step(state, gradients, 8.0, rates)
    dense.learn(gradients, 8.0, rates)
    latest = learning.parameters(state, 1)
    assert_allclose(latest.phi, dense.phi, rtol=1e-12)
    assert_allclose(latest.U, dense.U, rtol=1e-12)
    assert not np.shares_memory(latest.phi, state.phi)
    assert not np.shares_memory(latest.U, state.U)


def test_begin_and_copy_share_nothing():
    phi, U = np.full((4, 2), 0.25), np.ones((1, 2))
    state = learning.begin(phi, U)
    twin = learning.copy(state)
    gradients = as_gradients(np.arange(4, dtype=np.int32), np.eye(4, 2), U)
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
    after = learning.parameters(state, 1).phi
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
    for result in (learning.parameters(state, 1).phi, state.phi):
        assert_allclose(result[:, 2], phi[:, 2], rtol=1e-12, atol=1e-9 * oracle.FLOOR)
        assert np.abs(result[:, 1] - phi[:, 1]).max() > 1e-3


def test_the_first_step_is_the_learning_rate_in_units_of_the_root_mean_square():
    phi = np.full((4, 1), 0.25)
    state = learning.begin(phi, np.zeros((0, 1)))
    gradients = as_gradients(np.arange(4, dtype=np.int32), np.array([[1.0], [-1], [1], [-1]]), state.U)
    lazy_step(state, gradients, 7.0, learning.Rates(phi=0.1, U=0.0, prior=0.0, average=0.0))
    expected = np.exp([-0.1, 0.1, -0.1, 0.1])
    assert_allclose(learning.parameters(state, 1).phi[:, 0], expected / expected.sum(), rtol=1e-14)


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
        gradients = as_gradients(np.arange(20, dtype=np.int32), -rng.uniform(1, 2, (20, 2)), state.U)
        lazy_step(state, gradients, 1.0, learning.Rates(50.0, 0.0, 1e-4, 1.0))
    assert flushes
    for result in (learning.parameters(state, 1).phi, state.phi):
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
        averages = learning.parameters(state, threads)
        runs.append((averages.phi, averages.U, state.phi))
    for one, other in zip(*runs, strict=True):
        assert_array_equal(one, other)


# Words' weights


def word_steps(rng, n_rows=20, average_from=N_STEPS // 3):
    """Gradients of the words' weights, some beyond the clip, with averages that begin in the middle and grow."""
    for step in range(N_STEPS):
        gradients = random_gradients(rng, N_WORDS, 3, n_rows)
        grad_word_weights = rng.standard_t(2, n_rows)
        average = 0.0 if step < average_from else 1.0 + step / 7
        yield (
            replace(gradients, grad_word_weights=grad_word_weights),
            rng.uniform(5, 20),
            learning.Rates(0.1, 0.1, 0, average, 0.5),
        )


def test_words_weights_follow_their_definition():
    """w <- clip(w exp(clip(-rate g / rms))) for the words of a batch; the running average as if every word were visited."""
    rng = np.random.default_rng(6)
    w, squares, average, total = rng.uniform(0.2, 2.5, N_WORDS), 0.0, np.zeros(N_WORDS), 0.0
    state = learning.begin(random_phi(rng, N_WORDS, 3), np.zeros((N_OUTPUTS, 3)), w)
    n_clipped = 0
    for n_steps, (gradients, weight, rates) in enumerate(word_steps(rng), start=1):
        lazy_step(state, gradients, weight, rates)
        g = np.zeros(N_WORDS)
        g[gradients.rows] = gradients.grad_word_weights / weight
        squares += (g**2).mean()
        exponent = -rates.words * g / np.sqrt(squares / n_steps)
        n_clipped += (np.abs(exponent) > 0.1).sum()
        w = np.clip(w * np.exp(np.clip(exponent, -0.1, 0.1)), 0.1, 3.0)
        average, total = average + rates.average * w, total + rates.average
    assert n_clipped > 0, "the clip was not tested"
    assert_allclose(state.word_weights, w, rtol=1e-12)
    assert_allclose(learning.parameters(state, 1).word_weights, average / total, rtol=1e-10)
    assert np.abs(average / total - w).max() > 1e-3, "the average is the latest, so nothing was tested"


def test_words_weights_without_averages_are_the_latest():
    rng = np.random.default_rng(6)
    state = learning.begin(random_phi(rng, N_WORDS, 3), np.zeros((N_OUTPUTS, 3)), np.ones(N_WORDS))
    for gradients, weight, rates in word_steps(rng, average_from=N_STEPS):
        lazy_step(state, gradients, weight, rates)
    result = learning.parameters(state, 1).word_weights
    assert_array_equal(result, state.word_weights)
    assert not np.shares_memory(result, state.word_weights)


def test_words_weights_stay_within_their_bounds():
    state = learning.begin(np.full((4, 1), 0.25), np.zeros((0, 1)), np.ones(4))
    rows, push = np.arange(3, dtype=np.int32), np.array([1.0, -1.0, 0.0])
    gradients = replace(as_gradients(rows, np.zeros((3, 1)), state.U), grad_word_weights=push)
    for _ in range(100):
        lazy_step(state, gradients, 1.0, learning.Rates(0.1, 0.0, 0.0, 1.0, words=1.0))
    assert_allclose(state.word_weights, [0.1, 3.0, 1.0, 1.0])
    average = learning.parameters(state, 1).word_weights
    assert 0.1 < average[0] < 1 < average[1] < 3
    assert_array_equal(average[2:], 1)


def test_without_gradients_words_weights_stay():
    rng = np.random.default_rng(7)
    w = rng.uniform(0.2, 2.5, N_WORDS)
    state = learning.begin(random_phi(rng, N_WORDS, 3), np.zeros((N_OUTPUTS, 3)), w)
    for gradients, weight, rates in steps(rng, 3):
        lazy_step(state, gradients, weight, rates)
    assert_allclose(learning.parameters(state, 1).word_weights, w, rtol=1e-14)
    assert learning.parameters(learning.begin(state.phi, state.U), 1).word_weights is None


# Seed words


@pytest.mark.parametrize("history", [2048, 7], ids=["one flush", "a flush every 7 steps"])
def test_guided_steps_equal_dense_ones(monkeypatch, history):
    """phi <- (phi exp(-rate g) + fraction towards + c) / C, all rows at once."""
    monkeypatch.setattr(learning, "_HISTORY", history)
    rng = np.random.default_rng(8)
    n_topics = 4
    phi, U = random_phi(rng, N_WORDS, n_topics), rng.standard_normal((N_OUTPUTS, n_topics))
    rows, towards = np.array([3, 50, 51, 299], np.int32), np.zeros((4, n_topics))
    towards[:2, 1], towards[1:, 3] = [0.5, 0.5], [0.25, 0.25, 0.5]
    everywhere = np.zeros_like(phi)
    everywhere[rows] = towards
    state = learning.begin(phi, U, guide=learning.Guide(rows, towards))
    squares, average = 0.0, np.zeros_like(phi)
    for step, (gradients, weight, rates) in enumerate(steps(rng, n_topics), start=1):
        rates = replace(rates, guide=0.1 * (1 - step / N_STEPS))
        lazy_step(state, gradients, weight, rates)
        grad = np.zeros_like(phi)
        grad[gradients.rows] = gradients.grad_phi / weight
        squares = squares + (grad**2).sum(axis=0)
        rate = rates.phi / np.sqrt(squares / (step * N_WORDS))
        moved = phi * np.exp(np.clip(-rate * grad, -1, 1))
        moved[gradients.rows] = np.maximum(moved[gradients.rows], oracle.FLOOR)
        moved += np.minimum(rate * rates.prior, 1 / N_WORDS) + rates.guide * everywhere
        phi = moved / moved.sum(axis=0)
        average += rates.average * phi
    assert_allclose(learning.parameters(state, 1).phi, average / average.sum(axis=0), rtol=2e-12)
    assert_allclose(state.phi, phi, rtol=2e-12)
    assert phi[3, 1] > 0.05 > phi[3, 0], "the guide does not show"


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
