"""The learning step against the oracle: lazy rows equal dense ones; the core's functions equal their NumPy lines."""

from dataclasses import dataclass, replace

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from mirrorlda import _core
from mirrorlda.data.files import tensors
from mirrorlda.method.gradients import Gradients
from mirrorlda.training import mirror_descent

N_WORDS, N_OUTPUTS, N_STEPS = 300, 3, 70
# Of numbers in float64 as large as what the prior adds to a row between two flushes, at most 1 / N_WORDS.
ROUNDING = 64 * np.finfo(np.float64).eps / N_WORDS


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
            mirror_descent.Rates(phi=0.3 * (1 - step / N_STEPS), U=0.1, prior=2e-4, average=average),
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
    mirror_descent.learn(state, gradients, weight, rates, n_threads)


def count_flushes(monkeypatch):
    """A list that has an entry for each flush from here on."""
    flushes, flush = [], mirror_descent.flush
    monkeypatch.setattr(mirror_descent, "flush", lambda state, n_threads: (flushes.append(0), flush(state, n_threads))[1])
    return flushes


@pytest.mark.parametrize("n_topics", [1, 2, 5, 16, 33])
@pytest.mark.parametrize(("shift", "n_flushes"), [(1.0, (0, 0)), (0.01, (2, 60)), (0.0, (N_STEPS, N_STEPS))])
def test_lazy_rows_equal_dense_ones(monkeypatch, n_topics, shift, n_flushes):
    monkeypatch.setattr(mirror_descent, "_LARGEST_SHIFT", shift)
    flushes = count_flushes(monkeypatch)
    rng = np.random.default_rng(0)
    phi, U = random_phi(rng, N_WORDS, n_topics), rng.standard_normal((N_OUTPUTS, n_topics))
    state, dense, total = mirror_descent.begin(phi, U), Dense(phi, U), 0.0
    for gradients, weight, rates in steps(rng, n_topics):
        lazy_step(state, gradients, weight, rates)
        dense.learn(gradients, weight, rates)
        total += rates.average
    assert n_flushes[0] <= len(flushes) <= n_flushes[1]
    averages = mirror_descent.parameters(state, 1)
    expected_phi, expected_U = dense.averages()
    assert_allclose(averages.phi, expected_phi, rtol=2e-12, atol=ROUNDING)
    assert_allclose(averages.U, expected_U / total, rtol=1e-12)
    assert_allclose(state.phi, dense.phi, rtol=2e-12, atol=ROUNDING)
    assert_allclose(state.U, dense.U, rtol=1e-12)
    assert_allclose(state.phi.sum(axis=0), 1, rtol=1e-14)
    assert dense.n_floored > 0, "the floor was not tested"


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 9),
    st.lists(st.tuples(st.integers(0, 30), st.sampled_from([0.0, 0.5, 3.0])), min_size=1, max_size=40),
    st.sampled_from([0.0, 1e-4, 1e-2]),
    st.sampled_from([1.01, 2.0, 256.0]),
    st.sampled_from([0.003, 0.1, 1.0]),
)
def test_lazy_rows_equal_dense_ones_whatever_is_touched_and_flushed(seed, n_topics, plan, prior, drift, shift):
    """Steps with any number of rows, none included, and any weights of the average, which ends with what came in between."""
    rng = np.random.default_rng(seed)
    n_words = 30
    phi, U = random_phi(rng, n_words, n_topics), rng.standard_normal((N_OUTPUTS, n_topics))
    state, dense = mirror_descent.begin(phi, U), Dense(phi, U)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mirror_descent, "_LARGEST_DRIFT", drift)
        patch.setattr(mirror_descent, "_LARGEST_SHIFT", shift)
        first = random_gradients(rng, n_words, n_topics, n_words), 5.0, mirror_descent.Rates(0.1, 0.1, prior, 1.0)
        steps = [
            (random_gradients(rng, n_words, n_topics, n_rows), 5.0, mirror_descent.Rates(0.3, 0.1, prior, average))
            for n_rows, average in plan
        ]
        for gradients, weight, rates in [first, *steps]:
            lazy_step(state, gradients, weight, rates)
            dense.learn(gradients, weight, rates)
        found = mirror_descent.parameters(state, 1)
    # Both errors grow with the number of steps.
    assert_allclose(found.phi, dense.averages()[0], rtol=1e-10, atol=1e-13)
    assert_allclose(state.phi, dense.phi, rtol=1e-10, atol=1e-13)


def test_in_float32_entries_far_below_the_prior_keep_their_size():
    """The prior adds some of a row's mean, then half of the rows are pushed down: far below the mean they are still known."""
    rng = np.random.default_rng(3)
    phi, U = random_phi(rng, N_WORDS, 9), np.zeros((0, 9))
    double, single = mirror_descent.begin(phi, U), mirror_descent.begin(phi.astype(np.float32), U.astype(np.float32))
    for step in range(30):
        gradients = replace(random_gradients(rng, N_WORDS, 9, 150), grad_U=U)
        if step >= 20:
            push = np.where(gradients.rows % 2, 1e3, 0.0)[:, None] * rng.uniform(1, 2, (150, 9))
            gradients = replace(gradients, grad_phi=push)
        rates = mirror_descent.Rates(0.5, 0.0, 0.3 / N_WORDS if step < 20 else 0.0, 1.0)
        lazy_step(double, gradients, 9.0, rates)
        lazy_step(single, replace(gradients, grad_phi=gradients.grad_phi.astype(np.float32)), 9.0, rates)
    M, B, _, _ = single.frame
    assert (N_WORDS * M * B).max() > 0.1, "the prior adds too little to show"
    wide, narrow = mirror_descent.parameters(double, 1).phi, mirror_descent.parameters(single, 1).phi
    assert_allclose(narrow, wide, rtol=1e-3)
    assert_allclose(single.phi, double.phi, rtol=1e-3, atol=1e-6 / N_WORDS)
    assert (double.phi < 0.01 / N_WORDS).any(), "nothing is small"


def test_float32_follows_float64():
    rng = np.random.default_rng(0)
    phi, U = random_phi(rng, N_WORDS, 9), rng.standard_normal((N_OUTPUTS, 9))
    double, single = mirror_descent.begin(phi, U), mirror_descent.begin(phi.astype(np.float32), U.astype(np.float32))
    for gradients, weight, rates in steps(rng, 9):
        lazy_step(double, gradients, weight, rates)
        narrow = replace(gradients, grad_phi=gradients.grad_phi.astype(np.float32), grad_U=gradients.grad_U.astype(np.float32))
        lazy_step(single, narrow, weight, rates)
    wide, narrow = mirror_descent.parameters(double, 1), mirror_descent.parameters(single, 1)
    for name in ("phi", "U"):
        assert getattr(narrow, name).dtype == np.float32
        assert_allclose(getattr(narrow, name), getattr(wide, name), rtol=1e-4, atol=1e-6)


def test_without_averages_the_latest_parameters_are_returned_as_copies():
    rng = np.random.default_rng(0)
    phi, U = random_phi(rng, N_WORDS, 4), rng.standard_normal((N_OUTPUTS, 4))
    state, dense = mirror_descent.begin(phi, U), Dense(phi, U)
    gradients, rates = random_gradients(rng, N_WORDS, 4, 20), mirror_descent.Rates(0.1, 0.1, 1e-4, 0.0)
    lazy_step(state, gradients, 8.0, rates)
    dense.learn(gradients, 8.0, rates)
    latest = mirror_descent.parameters(state, 1)
    assert_allclose(latest.phi, dense.phi, rtol=1e-12)
    assert_allclose(latest.U, dense.U, rtol=1e-12)
    assert not np.shares_memory(latest.phi, state.phi)
    assert not np.shares_memory(latest.U, state.U)


def test_begin_and_copy_share_nothing():
    phi, U = np.full((4, 2), 0.25), np.ones((1, 2))
    state = mirror_descent.begin(phi, U)
    twin = mirror_descent.copy(state)
    gradients = as_gradients(np.arange(4, dtype=np.int32), np.eye(4, 2), U)
    lazy_step(state, gradients, 1.0, mirror_descent.Rates(0.1, 0.1, 1.0, 1.0))
    assert_array_equal(phi, 0.25)
    assert_array_equal(U, 1)
    assert_array_equal(twin.phi, phi)
    assert (twin.n_steps, twin.average_phi) == (0, None)
    assert_array_equal(twin.frame, [[1, 1], [0, 0], [0, 0], [0, 0]])


def test_rows_never_touched_follow_the_affine_map():
    """phi <- (phi + c) / C: ratios of the untouched rows' distances stay."""
    rng = np.random.default_rng(1)
    phi, U = random_phi(rng, N_WORDS, 3), np.zeros((0, 3))
    state = mirror_descent.begin(phi, U)
    for _ in range(10):
        gradients = replace(random_gradients(rng, 50, 3, 20), grad_U=U)
        lazy_step(state, gradients, 10.0, mirror_descent.Rates(0.2, 0.0, 1e-3, 0.0))
    assert_array_equal(state.phi[50:], phi[50:])
    after = mirror_descent.parameters(state, 1).phi
    slope = (after[51] - after[50]) / (phi[51] - phi[50])
    assert_allclose(after[50:], after[50] + slope * (phi[50:] - phi[50]), rtol=1e-9)
    assert (np.abs(slope - 1) > 1e-6).all()


@pytest.mark.parametrize("prior", [0.0, 1e-3])
def test_a_column_without_gradient_does_not_move(prior):
    """It has no root mean square to divide by, so its rate, and with it the prior's share, is zero."""
    rng = np.random.default_rng(2)
    phi = random_phi(rng, N_WORDS, 5)
    state = mirror_descent.begin(phi, np.zeros((N_OUTPUTS, 5)))
    for gradients, weight, rates in steps(rng, 5):
        gradients.grad_phi[:, 2] = 0
        lazy_step(state, gradients, weight, replace(rates, prior=prior))
    for result in (mirror_descent.parameters(state, 1).phi, state.phi):
        assert_allclose(result[:, 2], phi[:, 2], rtol=1e-12, atol=1e-9 * oracle.FLOOR)
        assert np.abs(result[:, 1] - phi[:, 1]).max() > 1e-3


def test_the_first_step_is_the_learning_rate_in_units_of_the_root_mean_square():
    phi = np.full((4, 1), 0.25)
    state = mirror_descent.begin(phi, np.zeros((0, 1)))
    gradients = as_gradients(np.arange(4, dtype=np.int32), np.array([[1.0], [-1], [1], [-1]]), state.U)
    lazy_step(state, gradients, 7.0, mirror_descent.Rates(phi=0.1, U=0.0, prior=0.0, average=0.0))
    expected = np.exp([-0.1, 0.1, -0.1, 0.1])
    assert_allclose(mirror_descent.parameters(state, 1).phi[:, 0], expected / expected.sum(), rtol=1e-14)


@pytest.mark.parametrize("where", ["loss", "grad_phi", "grad_U"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_gradient_that_is_not_finite_stops_learning_before_anything_changes(where, value):
    rng = np.random.default_rng(3)
    state = mirror_descent.begin(random_phi(rng, N_WORDS, 3), np.ones((N_OUTPUTS, 3)))
    good, rates = random_gradients(rng, N_WORDS, 3, 10), mirror_descent.Rates(0.1, 0.1, 1e-4, 1.0)
    lazy_step(state, good, 4.0, rates)
    bad = {"loss": value, "grad_phi": good.grad_phi.copy(), "grad_U": good.grad_U.copy()}
    if where != "loss":
        bad = {**bad, "loss": 1.0}
        bad[where][1, 2] = value
    before = mirror_descent.copy(state)
    with pytest.raises(mirror_descent.DivergedError, match="not finite after 1 steps: lower the learning rate"):
        mirror_descent.learn(state, replace(good, **bad), 4.0, rates, 1)
    for name, value_before in vars(before).items():
        assert_array_equal(getattr(state, name), value_before, err_msg=name)


def test_long_runs_stay_on_the_simplex_when_normalisers_drift(monkeypatch):
    """Clipped steps grow a column by up to e each, so the products of normalisers would leave the range of double."""
    flushes = count_flushes(monkeypatch)
    rng = np.random.default_rng(4)
    state = mirror_descent.begin(random_phi(rng, 20, 2), np.zeros((0, 2)))
    for _ in range(400):
        gradients = as_gradients(np.arange(20, dtype=np.int32), -rng.uniform(1, 2, (20, 2)), state.U)
        lazy_step(state, gradients, 1.0, mirror_descent.Rates(50.0, 0.0, 1e-4, 1.0))
    assert flushes
    for result in (mirror_descent.parameters(state, 1).phi, state.phi):
        assert np.isfinite(result).all()
        assert_allclose(result.sum(axis=0), 1, rtol=1e-12)


@pytest.mark.parametrize("n_threads", [2, 3, 5])
def test_the_same_bits_for_any_number_of_threads(dtype, n_threads):
    runs = []
    for threads in (1, n_threads):
        rng = np.random.default_rng(5)
        state = mirror_descent.begin(random_phi(rng, 3000, 7, dtype), np.ones((N_OUTPUTS, 7), dtype))
        for step in range(6):
            gradients = random_gradients(rng, 3000, 7, 1500, dtype)
            lazy_step(state, gradients, 9.0, mirror_descent.Rates(0.1, 0.1, 1e-4, float(step > 2)), threads)
        averages = mirror_descent.parameters(state, threads)
        runs.append((averages.phi, averages.U, state.phi))
    for one, other in zip(*runs, strict=True):
        assert_array_equal(one, other)


# Newton steps


def of_documents(rng, n_docs, n_topics, n_outputs):
    """Proportions, targets, weights."""
    return rng.dirichlet(np.full(n_topics, 0.3), n_docs), rng.standard_normal((n_docs, n_outputs)), rng.uniform(0.5, 2, n_docs)


def with_moments(rng, state, theta, y, weights):
    """Gradients of half the squared error, Phi's made up."""
    n_topics = theta.shape[1]
    grad_U = ((theta @ state.U.T - y) * weights[:, None]).T @ theta
    return replace(random_gradients(rng, N_WORDS, n_topics, 5), grad_U=grad_U, moments=(theta * weights[:, None]).T @ theta)


def test_an_undamped_step_of_full_length_ends_at_the_least_squares():
    rng = np.random.default_rng(0)
    theta, y, weights = of_documents(rng, 300, 6, 3)
    state = mirror_descent.begin(random_phi(rng, N_WORDS, 6), rng.standard_normal((3, 6)))
    rates = mirror_descent.Rates(phi=0.1, U=1.0, prior=0.0, average=0.0, damping=0.0)
    lazy_step(state, with_moments(rng, state, theta, y, weights), weights.sum(), rates)
    root = np.sqrt(weights)[:, None]
    expected = np.linalg.lstsq(root * theta, root * y, rcond=None)[0]
    assert_allclose(state.U, expected.T, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_damped_steps_are_those_of_plain_numpy(n_threads):
    rng = np.random.default_rng(1)
    state = mirror_descent.begin(random_phi(rng, N_WORDS, 5), rng.standard_normal((2, 5)))
    expected, remembered = state.U.copy(), np.zeros((5, 5))
    for step in range(6):
        theta, y, weights = of_documents(rng, 40 + step, 5, 2)
        rates = mirror_descent.Rates(phi=0.1, U=0.3 / (1 + step), prior=0.0, average=0.0, damping=2.0)
        gradient = ((theta @ expected.T - y) * weights[:, None]).T @ theta / weights.sum()
        remembered = 0.9 * remembered + np.einsum("d,dk,dl->kl", weights, theta, theta)
        mean = remembered / remembered.sum()
        expected = expected - rates.U * gradient @ np.linalg.inv(mean + 2 * np.diag(np.full(5, np.diag(mean).mean())))
        lazy_step(state, with_moments(rng, state, theta, y, weights), weights.sum(), rates, n_threads)
    assert_allclose(state.U, expected, rtol=1e-12)


def test_documents_without_weight_bend_nothing():
    rng = np.random.default_rng(2)
    theta, y, weights = of_documents(rng, 10, 3, 1)
    state = mirror_descent.begin(random_phi(rng, N_WORDS, 3), np.ones((1, 3)))
    rates = mirror_descent.Rates(phi=0.1, U=1.0, prior=0.0, average=0.0, damping=2.0)
    lazy_step(state, with_moments(rng, state, theta, y, 0 * weights), 1.0, rates)
    assert_array_equal(state.U, 1)


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
            mirror_descent.Rates(0.1, 0.1, 0, average, 0.5),
        )


def test_words_weights_follow_their_definition():
    """w <- clip(w exp(clip(-rate g / rms))) for the words of a batch; the running average as if every word were visited."""
    rng = np.random.default_rng(6)
    w, squares, average, total = rng.uniform(0.2, 2.5, N_WORDS), 0.0, np.zeros(N_WORDS), 0.0
    state = mirror_descent.begin(random_phi(rng, N_WORDS, 3), np.zeros((N_OUTPUTS, 3)), w)
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
    assert_allclose(mirror_descent.parameters(state, 1).word_weights, average / total, rtol=1e-10)
    assert np.abs(average / total - w).max() > 1e-3, "the average is the latest, so nothing was tested"


def test_words_weights_without_averages_are_the_latest():
    rng = np.random.default_rng(6)
    state = mirror_descent.begin(random_phi(rng, N_WORDS, 3), np.zeros((N_OUTPUTS, 3)), np.ones(N_WORDS))
    for gradients, weight, rates in word_steps(rng, average_from=N_STEPS):
        lazy_step(state, gradients, weight, rates)
    result = mirror_descent.parameters(state, 1).word_weights
    assert_array_equal(result, state.word_weights)
    assert not np.shares_memory(result, state.word_weights)


def test_words_weights_stay_within_their_bounds():
    state = mirror_descent.begin(np.full((4, 1), 0.25), np.zeros((0, 1)), np.ones(4))
    rows, push = np.arange(3, dtype=np.int32), np.array([1.0, -1.0, 0.0])
    gradients = replace(as_gradients(rows, np.zeros((3, 1)), state.U), grad_word_weights=push)
    for _ in range(100):
        lazy_step(state, gradients, 1.0, mirror_descent.Rates(0.1, 0.0, 0.0, 1.0, words=1.0))
    assert_allclose(state.word_weights, [0.1, 3.0, 1.0, 1.0])
    average = mirror_descent.parameters(state, 1).word_weights
    assert 0.1 < average[0] < 1 < average[1] < 3
    assert_array_equal(average[2:], 1)


def test_without_gradients_words_weights_stay():
    rng = np.random.default_rng(7)
    w = rng.uniform(0.2, 2.5, N_WORDS)
    state = mirror_descent.begin(random_phi(rng, N_WORDS, 3), np.zeros((N_OUTPUTS, 3)), w)
    for gradients, weight, rates in steps(rng, 3):
        lazy_step(state, gradients, weight, rates)
    assert_allclose(mirror_descent.parameters(state, 1).word_weights, w, rtol=1e-14)
    assert mirror_descent.parameters(mirror_descent.begin(state.phi, state.U), 1).word_weights is None


# Seed words


@pytest.mark.parametrize("shift", [1.0, 0.01], ids=["no flush", "some flushes"])
def test_guided_steps_equal_dense_ones(monkeypatch, shift):
    """phi <- (phi exp(-rate g) + fraction towards + c) / C, all rows at once."""
    monkeypatch.setattr(mirror_descent, "_LARGEST_SHIFT", shift)
    rng = np.random.default_rng(8)
    n_topics = 4
    phi, U = random_phi(rng, N_WORDS, n_topics), rng.standard_normal((N_OUTPUTS, n_topics))
    rows, towards = np.array([3, 50, 51, 299], np.int32), np.zeros((4, n_topics))
    towards[:2, 1], towards[1:, 3] = [0.5, 0.5], [0.25, 0.25, 0.5]
    everywhere = np.zeros_like(phi)
    everywhere[rows] = towards
    state = mirror_descent.begin(phi, U, guide=mirror_descent.Guide(rows, towards))
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
    assert_allclose(mirror_descent.parameters(state, 1).phi, average / average.sum(axis=0), rtol=2e-12, atol=ROUNDING)
    assert_allclose(state.phi, phi, rtol=2e-12, atol=ROUNDING)
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
        assert result.dtype == (np.float64 if function is _core.outer else dtype)
        assert_allclose(result, exact(*wide), rtol=0, atol=4 * np.sqrt(n_docs + 1) * np.finfo(dtype).eps * terms.max())


def random_frame(rng, n_words, n_topics):
    """M, B, A and E after some steps."""
    M, B, A, E = np.ones(n_topics), np.zeros(n_topics), np.zeros(n_topics), np.zeros(n_topics)
    for t in range(9):
        C, c = rng.uniform(0.8, 1.3, n_topics), rng.uniform(0, 0.02 / n_words, n_topics)
        M, B = M / C, B + c / M
        A, E = A + t % 3 * M, E + t % 3 * M * B
    return np.stack([M, B, A, E])


@pytest.mark.parametrize("averaged", [True, False])
def test_mirror_rows(dtype, sizes, averaged):
    n_rows, n_topics, _ = sizes
    rng = np.random.default_rng(0)
    n_words = 2 * n_rows + 1
    frame = random_frame(rng, n_words, n_topics)
    M, B, A, _ = frame
    z = (random_phi(rng, n_words, n_topics) / M - B).astype(dtype)
    average = rng.random((n_words, n_topics)).astype(dtype) if averaged else None
    gradients = random_gradients(rng, n_words, n_topics, n_rows, dtype)
    z[gradients.rows[0], 0], gradients.grad_phi[0, 0] = -B[0], 5.0
    rate = rng.uniform(0, 0.1, n_topics).astype(dtype)
    rows, phi = gradients.rows, M * (z[gradients.rows].astype(float) + B)
    new = np.maximum(np.maximum(phi, 0) * np.exp(np.clip(-rate.astype(float) * gradients.grad_phi, -1, 1)), oracle.FLOOR)
    results = []
    for n_threads in (1, 2, 3):
        next_z, next_average = z.copy(), None if average is None else average.copy()
        change = _core.mirror_rows(next_z, next_average, frame, rows, gradients.grad_phi, rate, n_threads)
        results.append([next_z, change] + ([] if average is None else [next_average]))
    for other in results[1:]:
        for found, first in zip(other, results[0], strict=True):
            assert_array_equal(found, first)
    eps = 16 * np.finfo(dtype).eps
    assert_allclose(M * (next_z[rows].astype(float) + B), new, rtol=eps, atol=eps * (M * B).max())
    assert_array_equal(np.delete(next_z, rows, axis=0), np.delete(z, rows, axis=0))
    assert_allclose(change, (new - phi).sum(axis=0), rtol=eps, atol=eps * (phi + new + M * B).sum(axis=0).max())
    if averaged:
        assert_allclose(next_average[rows], average[rows] + (z[rows] - (new / M - B)) * A, rtol=eps, atol=eps)
        assert_array_equal(np.delete(next_average, rows, axis=0), np.delete(average, rows, axis=0))


def test_rows_in_a_plain_frame_are_exact(dtype):
    """M = 1 and B = 0: what is at the floor stays there to the bit."""
    frame, z = np.array([[1.0], [0], [0], [0]]), np.array([[oracle.FLOOR], [0.5]], dtype)
    _core.mirror_rows(z, None, frame, np.arange(2, dtype=np.int32), np.array([[5.0], [0.0]], dtype), np.ones(1, dtype), 1)
    assert_array_equal(z, np.array([[oracle.FLOOR], [0.5]], dtype))


@pytest.mark.parametrize("averaged", [True, False])
def test_settle(dtype, sizes, averaged):
    n_words, n_topics, _ = sizes[0] * 13, *sizes[1:]
    rng = np.random.default_rng(0)
    frame = random_frame(rng, n_words, n_topics)
    M, B, A, E = frame
    z = (random_phi(rng, n_words, n_topics) / M - B).astype(dtype)
    average = rng.random((n_words, n_topics)).astype(dtype) if averaged else None
    z[0, 0] = -2 * B[0]
    results = []
    for n_threads in (1, 2, 3):
        phi, sums_of = z.copy(), None if average is None else average.copy()
        sums = _core.settle(phi, sums_of, frame, n_threads)
        results.append([phi, sums] + ([] if average is None else [sums_of]))
    for other in results[1:]:
        for found, first in zip(other, results[0], strict=True):
            assert_array_equal(found, first)
    eps = 16 * np.finfo(dtype).eps
    assert phi[0, 0] == 0
    assert_allclose(phi, np.maximum(M * (z.astype(float) + B), 0), rtol=eps, atol=eps * (M * B).max())
    assert_allclose(sums[0], phi.sum(axis=0, dtype=float), rtol=8 * eps)
    if averaged:
        assert_allclose(sums_of, np.maximum(average + z.astype(float) * A + E, 0), rtol=eps, atol=eps * E.max())
        assert_allclose(sums[1], sums_of.sum(axis=0, dtype=float), rtol=8 * eps)
    else:
        assert_array_equal(sums[1], 0)


@pytest.mark.parametrize("n_before", [0, 1, 40])
@pytest.mark.parametrize("has_all", [False, True])
def test_a_state_from_its_arrays_learns_on_with_the_same_bits(tmp_path, n_before, has_all, dtype):
    rng = np.random.default_rng(0)
    phi = random_phi(rng, N_WORDS, 5, dtype)
    guide = mirror_descent.Guide(np.array([3, 250], np.int32), np.array([[0.5, 0, 1, 0, 0], [0.5, 0, 0, 0, 0]]))
    extras = (np.ones(N_WORDS), guide) if has_all else ()
    state = mirror_descent.begin(phi, np.ones((N_OUTPUTS, 5), dtype), *extras)
    run = []
    for step in range(n_before + 30):
        gradients = random_gradients(rng, N_WORDS, 5, 25, dtype)
        if has_all:
            gradients = replace(gradients, grad_word_weights=rng.standard_normal(25))
        run.append((gradients, 9.0, mirror_descent.Rates(0.3, 0.1, 2e-4, step / 5 if step > 20 else 0.0, words=0.1, guide=0.01)))

    def go_on(state, run):
        for gradients, weight, rates in run:
            mirror_descent.learn(state, gradients, weight, rates, 1)
        return mirror_descent.parameters(state, 1)

    for gradients, weight, rates in run[:n_before]:
        mirror_descent.learn(state, gradients, weight, rates, 1)
    tensors.write(tmp_path / "state", *mirror_descent.as_arrays(state), kind="state")
    again = mirror_descent.from_arrays(*tensors.read(tmp_path / "state", "state"))
    expected, found = go_on(state, run[n_before:]), go_on(again, run[n_before:])
    assert_array_equal(found.phi, expected.phi)
    assert_array_equal(found.U, expected.U)
    if has_all:
        assert_array_equal(found.word_weights, expected.word_weights)


@pytest.mark.parametrize(
    ("arrays", "meta"),
    [
        ({"phi": np.ones(3)}, {}),
        ({"phi": np.full((4, 2), np.nan)}, {}),
        ({"phi": np.zeros((4, 2))}, {}),
        ({"U": np.ones((1, 3))}, {}),
        ({"U": np.ones((1, 2), np.float32)}, {}),
        ({"phi": np.full((4, 2), 1e9)}, {}),
        ({"phi": np.full((4, 2), -0.25)}, {}),
        ({"frame": np.zeros((4, 2))}, {}),
        ({"frame": np.array([[1, 1], [-1e-3, 0], [0, 0], [0, 0]])}, {}),
        ({"frame": np.array([[1, 1], [0, 1.0], [0, 0], [0, 0]])}, {}),
        ({"frame": np.array([[1, 1e9], [0, 0], [0, 0], [0, 0]])}, {}),
        ({"frame": np.array([[1, 1], [0, 0], [0, 1e31], [0, 0]])}, {}),
        ({"frame": np.array([[1, 1], [0, 0], [0, 0], [-1.0, 0]])}, {}),
        ({"frame": np.ones((1, 4, 2))}, {}),
        ({"average_phi": np.full((4, 2), -1.0)}, {"average_weight": 1.0}),
        ({"average_phi": np.full((4, 2), 1e31)}, {"average_weight": 1.0}),
        ({"squares": np.array([1.0, -1])}, {}),
        ({"average_phi": np.ones((4, 2))}, {}),
        ({"word_weights": np.ones(4)}, {}),
        ({"guide_rows": np.array([1], np.int32)}, {}),
        ({"guide_rows": np.array([4], np.int32), "guide_towards": np.ones((1, 2))}, {}),
        ({"more": np.ones(1)}, {}),
        ({"moments": np.ones((2, 3))}, {}),
        ({"moments": np.array([[1.0, 0.9], [0.2, 1.0]])}, {}),
        ({"moments": np.array([[1.0, 2.0], [2.0, 1.0]])}, {}),
        ({"moments": np.full((2, 2), -1.0)}, {}),
        ({"moments": np.full((2, 2), 1e31)}, {}),
        ({}, {"n_steps": "1"}),
        ({}, {"average_weight": 10**400}),
        ({}, {"word_squares": True}),
    ],
)
def test_arrays_that_are_no_state_are_refused(arrays, meta):
    good_arrays, good_meta = mirror_descent.as_arrays(mirror_descent.begin(np.full((4, 2), 0.25), np.ones((1, 2))))
    mirror_descent.from_arrays(good_arrays, good_meta)
    mirror_descent.from_arrays(good_arrays | {"moments": np.array([[2.0, 1.0], [1.0, 2.0]])}, good_meta)
    with pytest.raises(ValueError, match="state"):
        mirror_descent.from_arrays(good_arrays | arrays, good_meta | meta)
