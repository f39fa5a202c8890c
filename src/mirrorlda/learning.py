"""One learning step: stochastic mirror descent on Phi with a rate for each column, steps on U and on the words' weights.

The step on a column is phi <- (phi exp(clip(-rate g)) + c) / C with c = rate (beta - 1) / D: to first order the paper's
step with its prior, but affine where g = 0. So rows without a data gradient are not visited: `history` keeps, for every
step since the last flush, what such a row needs to follow later (core/learn.hpp has the equations), and one definition
serves dense and lazily updated rows alike.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field

import numpy as np

from mirrorlda import _core
from mirrorlda.objective import Gradients

# Steps that are remembered before all rows are brought up to date.
_HISTORY = 2048
# The products of normalisers are kept within this factor of 1 between two flushes.
_DRIFT = 1e50
# A word counts for a tenth to three times as much as it says, and changes by at most a tenth in one step: without bounds a few
# words of 20 newsgroups take all the weight.
_WEIGHT_RANGE = (0.1, 3.0)
_WEIGHT_CLIP = 0.1


class DivergedError(ArithmeticError):
    """The loss or a gradient is no longer finite."""


@dataclass(frozen=True)
class Rates:
    """What one step is taken with.

    Attributes
    ----------
    phi, U, words : float
        Learning rates; those of Phi and of the words' weights are divided by the root mean square of (each column's) gradients.
    prior : float
        (beta - 1) / D.
    average : float
        Weight of the new parameters in the running averages; 0 leaves them out.
    guide : float
        Fraction by which a guided topic moves towards its seed words.
    """

    phi: float
    U: float
    prior: float
    average: float
    words: float = 0.0
    guide: float = 0.0


@dataclass(frozen=True)
class Guide:
    """Seed words: `rows` of Phi, and for each topic a distribution over them, zero for topics without any."""

    rows: np.ndarray
    towards: np.ndarray


@dataclass(frozen=True)
class Parameters:
    """What training learns."""

    phi: np.ndarray
    U: np.ndarray
    word_weights: np.ndarray | None


@dataclass
class State:
    """Parameters under training. Rows of `phi` are valid as of their own step `last`, until `catch_up` or `flush`."""

    phi: np.ndarray
    U: np.ndarray
    last: np.ndarray
    history: np.ndarray
    n_records: int
    squares: np.ndarray
    n_steps: int
    average_phi: np.ndarray | None
    average_U: np.ndarray
    average_weight: float
    word_weights: np.ndarray | None = None
    word_squares: float = 0.0
    # The running average of the words' weights is word_weights - word_lag / average_weight: words that stay need no visit.
    word_lag: np.ndarray = field(default_factory=lambda: np.zeros(0))
    guide: Guide | None = None


def begin(phi: np.ndarray, U: np.ndarray, word_weights: np.ndarray | None = None, guide: Guide | None = None) -> State:
    """The state before the first step; the parameters are copied. Without `word_weights` every word counts as it is."""
    n_words, n_topics = phi.shape
    history = np.zeros((_HISTORY + 1, 4, n_topics))
    history[0, 0] = 1
    return State(
        phi=phi.copy(),
        U=U.copy(),
        last=np.zeros(n_words, np.int32),
        history=history,
        n_records=0,
        squares=np.zeros(n_topics),
        n_steps=0,
        average_phi=None,
        average_U=np.zeros(U.shape),
        average_weight=0.0,
        word_weights=None if word_weights is None else word_weights.astype(np.float64),
        word_lag=np.zeros(0 if word_weights is None else n_words),
        guide=guide,
    )


def copy(state: State) -> State:
    """A copy that shares nothing with `state`."""
    fresh = deepcopy(state)
    fresh.history = np.zeros((_HISTORY + 1, *state.history.shape[1:]))
    fresh.history[: len(state.history)] = state.history
    return fresh


def rest(state: State) -> None:
    """Give back the memory that only further steps need; `copy` makes room for them again."""
    flush(state, 1)
    state.history = state.history[:1].copy()


def catch_up(state: State, rows: np.ndarray, n_threads: int) -> None:
    """Bring `rows` of Phi, and of its average, up to the last step."""
    _core.catch_up(state.phi, state.average_phi, state.last, state.history, state.n_records, rows, n_threads)


def learn(state: State, gradients: Gradients, weight: float, rates: Rates, n_threads: int) -> None:
    """One step on the mean gradient, that is on `gradients` divided by `weight`, the batch's share of all weights."""
    n_words = len(state.phi)
    squares = _core.column_squares(gradients.grad_phi, n_threads) / weight**2
    grad_U = gradients.grad_U / weight
    if not (np.isfinite(gradients.loss) and np.isfinite(squares).all() and np.isfinite(grad_U).all()):
        raise DivergedError(
            f"the loss or its gradient is not finite after {state.n_steps} steps: "
            "lower the learning rate, or scale the counts down"
        )
    if rates.average and state.average_phi is None:
        state.average_phi = np.zeros_like(state.phi)

    state.n_steps += 1
    state.squares += squares
    spread = np.sqrt(state.squares / (state.n_steps * n_words))
    rate = np.divide(rates.phi, spread, out=np.zeros_like(spread), where=spread > 0)
    c = np.minimum(rate * rates.prior, 1 / n_words)
    dtype = state.phi.dtype
    # A rate beyond the range of float32 belongs to gradients so small that the clip decides alone.
    rate_of_sum = np.minimum(rate / weight, np.finfo(dtype).max).astype(dtype)
    before, after = _core.mirror_rows(state.phi, gradients.rows, gradients.grad_phi, rate_of_sum, n_threads)
    if state.guide is not None:
        after = after + _guided(state, state.guide, rates.guide, n_threads)
    _remember(state, 1 + (after - before) + n_words * c, c, rates.average, n_threads)

    if state.word_weights is not None and gradients.grad_word_weights is not None:
        _weigh(state, state.word_weights, gradients.rows, gradients.grad_word_weights / weight, rates)
    with np.errstate(over="ignore", invalid="ignore"):
        state.U -= (rates.U * grad_U).astype(dtype)
        state.average_U += rates.average * state.U
    state.average_weight += rates.average


def _weigh(state: State, word_weights: np.ndarray, rows: np.ndarray, grad_log_weights: np.ndarray, rates: Rates) -> None:
    """w <- w exp(-rate g) for the words of the batch, g the gradient with respect to ln w."""
    state.word_squares += float((grad_log_weights**2).sum()) / len(state.phi)
    spread = np.sqrt(state.word_squares / state.n_steps)
    rate = rates.words / spread if spread > 0 else 0.0
    old = word_weights[rows]
    new = np.clip(old * np.exp(np.clip(-rate * grad_log_weights, -_WEIGHT_CLIP, _WEIGHT_CLIP)), *_WEIGHT_RANGE)
    word_weights[rows] = new
    state.word_lag[rows] += state.average_weight * (new - old)


def _guided(state: State, guide: Guide, fraction: float, n_threads: int) -> np.ndarray:
    """Add `fraction` of each guided topic's seed words to it, before it is brought back to the sum of one; what was added."""
    catch_up(state, guide.rows, n_threads)
    added = fraction * guide.towards
    state.phi[guide.rows] += added.astype(state.phi.dtype)
    total: np.ndarray = added.sum(axis=0)
    return total


def _remember(state: State, normaliser: np.ndarray, c: np.ndarray, weight: float, n_threads: int) -> None:
    M, B, A, E = state.history[state.n_records]
    new_M, new_B = M / normaliser, B + c / M
    state.n_records += 1
    state.history[state.n_records] = new_M, new_B, A + weight * new_M, E + weight * new_M * new_B
    if state.n_records == _HISTORY or new_M.max() > _DRIFT or new_M.min() < 1 / _DRIFT:
        flush(state, n_threads)


def flush(state: State, n_threads: int) -> None:
    """Bring all rows up to date and the columns' sums back to exactly one."""
    catch_up(state, np.arange(len(state.phi), dtype=np.int32), n_threads)
    state.phi /= state.phi.sum(axis=0, dtype=np.float64).astype(state.phi.dtype)
    state.last[:] = 0
    state.n_records = 0


def parameters(state: State, n_threads: int) -> Parameters:
    """For use: the running averages once they have begun, otherwise the latest. Copies."""
    flush(state, n_threads)
    phi, U = state.phi.copy(), state.U.copy()
    word_weights = None if state.word_weights is None else state.word_weights.copy()
    if state.average_phi is not None:
        phi = state.average_phi / state.average_phi.sum(axis=0, dtype=np.float64).astype(phi.dtype)
        U = (state.average_U / state.average_weight).astype(U.dtype)
        if word_weights is not None:
            word_weights -= state.word_lag / state.average_weight
    if not (np.isfinite(phi).all() and np.isfinite(U).all()):
        raise DivergedError(f"the parameters are not finite after {state.n_steps} steps: lower the learning rates")
    return Parameters(phi, U, None if word_weights is None else word_weights.astype(phi.dtype))
