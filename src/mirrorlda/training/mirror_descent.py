"""One learning step: stochastic mirror descent on Phi with a rate for each column, steps on U and on the words' weights.

The step on a column is phi <- (phi exp(clip(-rate g)) + c) / C with c = rate (beta - 1) / D: to first order the paper's
step with its prior, but affine where g = 0. So Phi is kept in coordinates z, Phi = M (z + B), that such a step leaves alone: it
moves M and B, two vectors for all rows, and rows without a data gradient are not visited.
core/method/learning_step.hpp has the equations, those of the running average included.

U takes plain gradient steps or damped Newton steps, whose curvature comes from the proportions of the documents.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mirrorlda import _core
from mirrorlda.method import themes
from mirrorlda.method.gradients import Gradients
from mirrorlda.method.themes import Decoded, normalised

# Between two flushes M stays within this factor of 1, and M B below this multiple of a row's mean: in float32 a row is then off
# by at most some 1e-7 of the mean of all rows, its average by some 1e-5 of its largest value.
_LARGEST_DRIFT = 256.0
_LARGEST_SHIFT = 1.0
# A word counts for a tenth to three times as much as it says, and changes by at most a tenth in one step: without bounds a few
# words of 20 newsgroups take all the weight.
WEIGHT_RANGE = (0.1, 3.0)
_WEIGHT_CLIP = 0.1
# Of what a guided theme has of a batch, this fraction is added to its seed words.
_SEEDED = 0.05
# For the themes step t counts (1 + t / 16)^3 times as much as the first: of many steps, the last quarter makes two thirds.
_EARLY_STEPS, _GROWTH = 16, 3
# Each step multiplies by this what earlier batches say about the curvature of the loss.
_REMEMBERED = 0.9
# In a state that is read rows are at most so large, the sums of running averages so, and other sums so.
_LARGEST_ROW = 1e6
_LARGEST_SUM = 1e30
_LARGEST_AMOUNT = 1e300


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
    damping : float, or None
        None for plain gradient steps on U. Otherwise U takes Newton steps: the curvature is the mean of theta theta', plus the
        mean of its diagonal times the damping on the diagonal.
    """

    phi: float
    U: float
    prior: float
    average: float
    words: float = 0.0
    guide: float = 0.0
    damping: float | None = None


@dataclass(frozen=True)
class Spread:
    """Root mean squares that learning rates are divided by: of the gradients of each topic, and of the words' weights."""

    topics: np.ndarray
    words: float


@dataclass(frozen=True)
class Guide:
    """Seed words: `rows` of Phi, and for each topic a distribution over them, zero for topics without any.

    They guide themes where there are any, otherwise the topics themselves.
    """

    rows: np.ndarray
    towards: np.ndarray


@dataclass(frozen=True)
class Parameters:
    """What training learns."""

    phi: np.ndarray
    U: np.ndarray
    word_weights: np.ndarray | None
    themes: np.ndarray | None = None


@dataclass
class State:
    """Parameters under training.

    `frame` (4, n_topics) has the M, B, A and E of core/method/learning_step.hpp: Phi is M (phi + B), its running sum
    average_phi + phi A + E. After `flush` they are `phi` and `average_phi`.
    """

    phi: np.ndarray
    U: np.ndarray
    frame: np.ndarray
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
    # What each theme has of the occurrences of each word, later ones with more weight, and the sums over words.
    theme_counts: np.ndarray | None = None
    theme_totals: np.ndarray = field(default_factory=lambda: np.zeros(0))
    # Sum of theta theta' over the documents of all steps, earlier ones with less weight. Theta sums to one, so the sum of all
    # entries is the weight of the documents.
    moments: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    # How often all rows were written anew.
    n_flushes: int = 0


def begin(
    phi: np.ndarray,
    U: np.ndarray,
    word_weights: np.ndarray | None = None,
    guide: Guide | None = None,
    theme_counts: np.ndarray | None = None,
) -> State:
    """The state before the first step; the parameters are copied. Without `word_weights` every word counts as it is.

    `theme_counts` are what the themes have of a batch, at the start; without them there are no themes but the topics.
    """
    n_words, n_topics = phi.shape
    if theme_counts is not None:
        # As if it had been seen in so many steps before the first.
        theme_counts = np.ascontiguousarray(theme_counts) * phi.dtype.type(_EARLY_STEPS / (1 + _GROWTH))
    return State(
        phi=phi.copy(),
        U=U.copy(),
        frame=_unit_frame(n_topics),
        squares=np.zeros(n_topics),
        n_steps=0,
        average_phi=None,
        average_U=np.zeros(U.shape),
        average_weight=0.0,
        word_weights=None if word_weights is None else np.clip(word_weights.astype(np.float64), *WEIGHT_RANGE),
        word_lag=np.zeros(0 if word_weights is None else n_words),
        guide=guide,
        theme_counts=theme_counts,
        theme_totals=np.zeros(0) if theme_counts is None else theme_counts.sum(axis=0, dtype=np.float64),
    )


def copy(state: State) -> State:
    """A copy that shares nothing with `state`."""
    return deepcopy(state)


def scale_and_shift(state: State) -> np.ndarray:
    """The two vectors over topics, (2, n_topics), with which the rows of `state.phi` are read: scale * row + shift."""
    M, B, _, _ = state.frame
    return np.stack([M, M * B]).astype(state.phi.dtype)


def spread(state: State) -> Spread:
    """Over all steps so far."""
    n_steps, n_words = max(1, state.n_steps), len(state.phi)
    return Spread(np.sqrt(state.squares / (n_steps * n_words)), float(np.sqrt(state.word_squares / n_steps)))


def learn(state: State, gradients: Gradients, weight: float, rates: Rates, n_threads: int, frozen: Spread | None = None) -> None:
    """One step on the mean gradient, that is on `gradients` divided by `weight`, the batch's share of all weights.

    Rates are divided by the spread of all gradients, these included, or by the one that is `frozen`.
    """
    n_words = len(state.phi)
    squares = _core.column_squares(gradients.grad_phi, n_threads) / weight**2
    grad_U = gradients.grad_U / weight
    of_documents: list[Any] = [gradients.loss, squares, grad_U, 0.0 if gradients.moments is None else gradients.moments]
    if not all(np.isfinite(numbers).all() for numbers in of_documents):
        raise DivergedError(
            f"the loss or its gradient is not finite after {state.n_steps} steps: "
            "lower the learning rate, or scale the counts down"
        )
    if rates.average and state.average_phi is None:
        state.average_phi = np.zeros(state.phi.shape, state.phi.dtype)

    state.n_steps += 1
    state.squares += squares
    grad_words = None if gradients.grad_word_weights is None else gradients.grad_word_weights / weight
    if grad_words is not None:
        state.word_squares += float((grad_words**2).sum()) / n_words
    divisor = frozen or spread(state)
    rate = np.divide(rates.phi, divisor.topics, out=np.zeros_like(divisor.topics), where=divisor.topics > 0)
    c = np.minimum(rate * rates.prior, 1 / n_words)
    dtype = state.phi.dtype
    # A rate beyond the range of float32 belongs to gradients so small that the clip decides alone.
    rate_of_sum = np.minimum(rate / weight, np.finfo(dtype).max).astype(dtype)
    change = _core.mirror_rows(
        state.phi, state.average_phi, state.frame, gradients.rows, gradients.grad_phi, rate_of_sum, n_threads
    )
    if state.guide is not None and state.theme_counts is None:
        change = change + _guided(state, state.guide, rates.guide)
    move_frame(state, 1 + change + n_words * c, c, rates.average, n_threads)

    if state.word_weights is not None and grad_words is not None:
        # w <- w exp(-rate g) for the words of the batch, g the gradient with respect to ln w.
        word_rate = rates.words / divisor.words if divisor.words > 0 else 0.0
        bounds = (_WEIGHT_CLIP, *WEIGHT_RANGE)
        lag, averaged = state.word_lag, state.average_weight
        _core.weigh_rows(state.word_weights, lag, gradients.rows, grad_words, word_rate, *bounds, averaged, n_threads)
    if state.theme_counts is not None and gradients.decoded is not None:
        _count(state, state.theme_counts, gradients.decoded, n_threads)
    with np.errstate(over="ignore", invalid="ignore"):
        state.U -= (rates.U * _step_of_U(state, grad_U, gradients.moments, rates.damping, n_threads)).astype(dtype)
        state.average_U += rates.average * state.U
    state.average_weight += rates.average


def _step_of_U(state: State, grad_U: np.ndarray, moments: np.ndarray | None, damping: float | None, n_threads: int) -> np.ndarray:
    if damping is None or moments is None:
        return grad_U
    state.moments = _REMEMBERED * state.moments + moments if state.moments.size else moments
    weight = state.moments.sum()
    if not weight:
        return grad_U
    curvature = state.moments / weight
    curvature[np.diag_indices_from(curvature)] += damping * np.trace(curvature) / len(curvature)
    return _core.solve_rows(curvature, grad_U, n_threads)


def _count(state: State, theme_counts: np.ndarray, decoded: Decoded, n_threads: int) -> None:
    """Online EM: what the themes have of a batch is added to what they have, and counts the more the later it comes.

    A falling weight of what came before would be the same but for a factor of all, and visit all rows.
    """
    factor = (1 + state.n_steps / _EARLY_STEPS) ** _GROWTH
    totals = themes.count(decoded, theme_counts, state.theme_totals, factor, n_threads)
    if state.guide is not None:
        theme_counts[state.guide.rows] += (_SEEDED * totals * state.guide.towards).astype(theme_counts.dtype)
        totals *= 1 + _SEEDED * state.guide.towards.sum(axis=0)
    state.theme_totals = state.theme_totals + totals


def _guided(state: State, guide: Guide, fraction: float) -> np.ndarray:
    """Add `fraction` of each guided topic's seed words to it, before it is brought back to the sum of one; what was added."""
    M, _, A, _ = state.frame
    added = fraction * guide.towards
    state.phi[guide.rows] += (added / M).astype(state.phi.dtype)
    if state.average_phi is not None:
        state.average_phi[guide.rows] -= (added / M * A).astype(state.phi.dtype)
    total: np.ndarray = added.sum(axis=0)
    return total


def _unit_frame(n_topics: int) -> np.ndarray:
    frame = np.zeros((4, n_topics))
    frame[0] = 1
    return frame


def move_frame(state: State, normaliser: np.ndarray, c: np.ndarray, weight: float, n_threads: int) -> None:
    """The part of a step that all rows take: phi <- (phi + c) / normaliser, with this weight in the running averages."""
    M, B, A, E = state.frame
    new_M, new_B = M / normaliser, B + c / M
    state.frame = np.stack([new_M, new_B, A + weight * new_M, E + weight * new_M * new_B])
    if not _is_near(new_M, new_B, len(state.phi)):
        flush(state, n_threads)


def _is_near(M: np.ndarray, B: np.ndarray, n_words: int) -> bool:
    """Whether the rows can be read in this frame without loss."""
    is_scaled = (M <= _LARGEST_DRIFT).all() and (M >= 1 / _LARGEST_DRIFT).all()
    return bool(is_scaled and (B >= 0).all() and (n_words * M * B <= _LARGEST_SHIFT).all())


def flush(state: State, n_threads: int) -> np.ndarray:
    """Write all rows as of the last step, the columns' sums back at exactly one; returns the sums of `average_phi`."""
    sums, average_sums = _core.settle(state.phi, state.average_phi, state.frame, n_threads)
    state.phi /= sums.astype(state.phi.dtype)
    state.frame = _unit_frame(state.phi.shape[1])
    state.n_flushes += 1
    total: np.ndarray = average_sums
    return total


def parameters(state: State, n_threads: int) -> Parameters:
    """For use: the running averages once they have begun, otherwise the latest. Copies."""
    sums = flush(state, n_threads)
    phi, U, word_weights = state.phi, state.U.copy(), None if state.word_weights is None else state.word_weights.copy()
    if state.average_phi is None:
        phi = phi.copy()
    else:
        phi = state.average_phi / sums.astype(phi.dtype)
        U = (state.average_U / state.average_weight).astype(U.dtype)
        if word_weights is not None:
            word_weights -= state.word_lag / state.average_weight
    # Phi is not negative, and a maximum shows NaN: no second array is needed to look for either.
    if not (np.isfinite(phi.max()) and np.isfinite(U).all()):
        raise DivergedError(f"the parameters are not finite after {state.n_steps} steps: lower the learning rates")
    read = None if state.theme_counts is None else normalised(state.theme_counts, state.theme_totals)
    return Parameters(phi, U, None if word_weights is None else word_weights.astype(phi.dtype), read)


def as_arrays(state: State) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The whole state as arrays and plain values, for a file. Only reads it: nothing is flushed, nothing copied."""
    arrays = {
        "phi": state.phi,
        "U": state.U,
        "frame": state.frame,
        "squares": state.squares,
        "average_U": state.average_U,
        "word_lag": state.word_lag,
        "moments": state.moments,
    }
    if state.average_phi is not None:
        arrays["average_phi"] = state.average_phi
    if state.word_weights is not None:
        arrays["word_weights"] = state.word_weights
    if state.guide is not None:
        arrays["guide_rows"], arrays["guide_towards"] = state.guide.rows, state.guide.towards
    if state.theme_counts is not None:
        arrays["theme_counts"], arrays["theme_totals"] = state.theme_counts, state.theme_totals
    amounts = {"average_weight": float(state.average_weight), "word_squares": float(state.word_squares)}
    return arrays, {"n_steps": int(state.n_steps), "n_flushes": int(state.n_flushes), **amounts}


def from_arrays(arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> State:
    """The state that `as_arrays` was given, checked: learning goes on with the same bits. It takes the arrays, not copies."""
    n_words, n_topics = _checked_phi(arrays).shape
    n_outputs, dtype = len(arrays["U"]) if "U" in arrays and arrays["U"].ndim else 0, arrays["phi"].dtype
    n_steps = _whole(meta, "n_steps", 2**62)
    has_words, n_rows = "word_weights" in arrays, len(arrays["guide_rows"]) if "guide_rows" in arrays else 0
    expected: dict[str, tuple[Any, tuple[int, ...]]] = {
        "phi": (dtype, (n_words, n_topics)),
        "U": (dtype, (n_outputs, n_topics)),
        "frame": (np.float64, (4, n_topics)),
        "squares": (np.float64, (n_topics,)),
        "average_U": (np.float64, (n_outputs, n_topics)),
        "word_lag": (np.float64, (n_words if has_words else 0,)),
        "average_phi": (dtype, (n_words, n_topics)),
        "word_weights": (np.float64, (n_words,)),
        "guide_rows": (np.int32, (n_rows,)),
        "guide_towards": (np.float64, (n_rows, n_topics)),
        "theme_counts": (dtype, (n_words, n_topics)),
        "theme_totals": (np.float64, (n_topics,)),
        "moments": (np.float64, (n_topics, n_topics) if arrays.get("moments", np.zeros(0)).size else (0, 0)),
    }
    pairs = (("guide_rows", "guide_towards"), ("theme_counts", "theme_totals"))
    # Files of earlier states have no moments.
    optional = {"average_phi", "word_weights", "moments"}.union(*pairs)
    is_paired = all((first in arrays) == (second in arrays) for first, second in pairs)
    if not (set(expected) - optional <= set(arrays) <= set(expected) and is_paired):
        raise ValueError(f"the state has the arrays {', '.join(sorted(arrays))}, expected {', '.join(expected)}")
    for name, array in arrays.items():
        if array.dtype != expected[name][0] or array.shape != expected[name][1]:
            raise ValueError(
                f"{name} of the state is {array.dtype} of shape {array.shape}, "
                f"expected {np.dtype(expected[name][0])} of shape {expected[name][1]}"
            )
        if not np.isfinite(array).all():
            raise ValueError(f"{name} of the state has numbers that are not finite")
    _check_ranges(arrays)
    average_weight, word_squares = _amount(meta, "average_weight"), _amount(meta, "word_squares")
    if "average_phi" in arrays and not average_weight:
        raise ValueError("the state has running averages of no weight")
    return State(
        phi=arrays["phi"],
        U=arrays["U"],
        frame=arrays["frame"],
        squares=arrays["squares"],
        n_steps=n_steps,
        # Files of earlier states do not say.
        n_flushes=_whole({"n_flushes": 0, **meta}, "n_flushes", 2**62),
        average_phi=arrays.get("average_phi"),
        average_U=arrays["average_U"],
        average_weight=average_weight,
        word_weights=arrays.get("word_weights"),
        word_squares=word_squares,
        word_lag=arrays["word_lag"],
        guide=Guide(arrays["guide_rows"], arrays["guide_towards"]) if "guide_rows" in arrays else None,
        theme_counts=arrays.get("theme_counts"),
        theme_totals=arrays.get("theme_totals", np.zeros(0)),
        moments=arrays.get("moments", np.zeros((0, 0))),
    )


def _checked_phi(arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    phi = arrays.get("phi")
    if phi is None or phi.ndim != 2 or not phi.size or phi.dtype not in (np.float32, np.float64):
        found = "none" if phi is None else f"{phi.dtype} of shape {phi.shape}"
        raise ValueError(f"phi of the state is {found}, expected float32 or float64 of shape (n_words, n_topics)")
    return phi


def _check_ranges(arrays: Mapping[str, np.ndarray]) -> None:
    """What a step divides by, takes roots of or counts rows with."""
    n_words = len(arrays["phi"])
    M, B, A, E = arrays["frame"]
    mean = _mean(arrays["phi"])
    facts = {
        "frame": _is_near(M, B, n_words) and all(((part >= 0) & (part <= _LARGEST_SUM)).all() for part in (A, E)),
        "phi": (np.abs(arrays["phi"]) <= _LARGEST_ROW).all() and (mean + B > 0).all(),
        "average_phi": "average_phi" not in arrays
        or ((np.abs(arrays["average_phi"]) <= _LARGEST_SUM).all() and (_mean(arrays["average_phi"]) + mean * A + E > 0).all()),
        "squares": (arrays["squares"] >= 0).all(),
        "word_weights": "word_weights" not in arrays or (arrays["word_weights"] > 0).all(),
        "guide_rows": "guide_rows" not in arrays
        or bool(
            ((arrays["guide_rows"] >= 0) & (arrays["guide_rows"] < n_words)).all() and (np.diff(arrays["guide_rows"]) > 0).all()
        ),
        "moments": not arrays.get("moments", np.zeros(0)).size or _are_moments(arrays["moments"]),
        "guide_towards": "guide_towards" not in arrays or (arrays["guide_towards"] >= 0).all(),
        "theme_counts": "theme_counts" not in arrays
        or ((arrays["theme_counts"] >= 0).all() and (arrays["theme_counts"] <= _LARGEST_SUM).all()),
        "theme_totals": "theme_totals" not in arrays
        or ((arrays["theme_totals"] > 0).all() and (arrays["theme_totals"] <= _LARGEST_SUM * n_words).all()),
    }
    for name, holds in facts.items():
        if not holds:
            raise ValueError(f"{name} of the state has numbers out of their range")


def _are_moments(moments: np.ndarray) -> bool:
    """Whether it can be a sum of theta theta', but for rounding."""
    largest, is_symmetric = moments.max(), np.allclose(moments, moments.T, rtol=1e-5, atol=0)
    if not ((moments >= 0).all() and 0 < largest <= _LARGEST_SUM and is_symmetric):
        return False
    return bool(np.linalg.eigvalsh(moments)[0] >= -1e-5 * largest)


def _mean(rows: np.ndarray) -> np.ndarray:
    mean: np.ndarray = rows.mean(axis=0, dtype=np.float64)
    return mean


def _whole(meta: Mapping[str, Any], name: str, largest: int) -> int:
    value = meta.get(name)
    if type(value) is not int or not 0 <= value <= largest:
        raise ValueError(f"{name} of the state is not a whole number from 0 to {largest}")
    return value


def _amount(meta: Mapping[str, Any], name: str) -> float:
    value = meta.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= _LARGEST_AMOUNT:
        raise ValueError(f"{name} of the state is not a number from 0 to {_LARGEST_AMOUNT:g}")
    return float(value)
