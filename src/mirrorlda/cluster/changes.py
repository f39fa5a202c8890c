"""What was learned elsewhere, from the same state: as a change that travels, is merged with others, and is taken over."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from mirrorlda import _core
from mirrorlda.training.mirror_descent import WEIGHT_RANGE, DivergedError, State, move_frame

# What a change has for each of its rows.
_BY_ROW = ("rows", "log_phi", "log_words", "theme_counts")


@dataclass(frozen=True)
class Change:
    """What steps that were taken elsewhere, from the same state, made of it: sums over these places, each with its weight.

    A row that no step touched follows phi <- M (phi + shift), where M is the same for the whole column. Other rows are off that
    by the factor exp(log_phi). All is a mean in the dual space, where mirror descent adds: of ln phi, of U, of the words' ln w.

    Attributes
    ----------
    weight : float
    n_shards : int
    rows : ndarray of int32, shape (n_rows,)
    log_phi : ndarray of uint16, shape (n_rows, n_topics)
        The upper halves of float32, rounded: eight bits of precision, and all of the range.
    log_words : ndarray of float32 and shape (n_rows,), or None
    shift, squares : ndarray, shape (n_topics,)
    U : ndarray, shape (n_outputs, n_topics)
    word_squares : float
    moments : ndarray
        The moments of the state after the steps, times the weight.
    theme_counts : ndarray of uint16, shape (n_rows, n_topics), or None
        What was counted for the themes, halved as log_phi is. It has no weight: all places together see each document once.
    """

    weight: float
    n_shards: int
    rows: np.ndarray
    log_phi: np.ndarray
    log_words: np.ndarray | None
    shift: np.ndarray
    U: np.ndarray
    squares: np.ndarray
    word_squares: float
    moments: np.ndarray
    theme_counts: np.ndarray | None = None


def merged(left: Change, right: Change) -> Change:
    """Of two neighbouring subtrees of shards."""
    rows, log_phi = _core.add_rows(left.rows, left.log_phi, right.rows, right.log_phi)
    log_words = None
    if left.log_words is not None and right.log_words is not None:
        _, of_words = _core.add_rows(left.rows, left.log_words[:, None], right.rows, right.log_words[:, None])
        log_words = of_words[:, 0]
    theme_counts = None
    if left.theme_counts is not None and right.theme_counts is not None:
        _, theme_counts = _core.add_rows(left.rows, left.theme_counts, right.rows, right.theme_counts)
    return Change(
        weight=left.weight + right.weight,
        n_shards=left.n_shards + right.n_shards,
        rows=rows,
        log_phi=log_phi,
        log_words=log_words,
        shift=left.shift + right.shift,
        U=left.U + right.U,
        squares=left.squares + right.squares,
        word_squares=left.word_squares + right.word_squares,
        moments=left.moments + right.moments,
        theme_counts=theme_counts,
    )


def split(change: Change, n_words: int, n_blocks: int) -> list[Change]:
    """By blocks of rows; what is not of rows is in all of them."""
    cuts = np.searchsorted(change.rows, np.linspace(0, n_words, n_blocks + 1).astype(np.int64))
    parts = [slice(first, last) for first, last in pairwise(cuts.tolist())]
    by_row = {name: getattr(change, name) for name in _BY_ROW}

    def part(at: slice) -> dict[str, Any]:
        return {name: None if array is None else array[at] for name, array in by_row.items()}

    return [replace(change, **part(at)) for at in parts]


def in_a_row(parts: Sequence[Change]) -> Change:
    """What `split` has split."""
    by_row = {name: [getattr(part, name) for part in parts] for name in _BY_ROW}
    joined: dict[str, Any] = {name: None if arrays[0] is None else np.concatenate(arrays) for name, arrays in by_row.items()}
    return replace(parts[0], **joined)


def adopt(state: State, change: Change, n_steps: int, average: float, n_threads: int) -> None:
    """Take over the mean of what was learned elsewhere in `n_steps` steps, with the weight `average` in the running averages."""
    state.n_steps += n_steps
    if not change.weight:
        return
    rows, dtype = change.rows, state.phi.dtype
    n_words = len(state.phi)
    if average and state.average_phi is None:
        state.average_phi = np.zeros(state.phi.shape, dtype)
    M, B, A, E = state.frame
    shift = change.shift / change.weight
    # A mirror step of the shifted rows, or several: the exponent of one is clipped.
    log_phi = lengthened(change.log_phi).astype(dtype, copy=False)
    largest = max(float(log_phi.max(initial=0)), -float(log_phi.min(initial=0))) / change.weight
    if not (np.isfinite(largest) and np.isfinite(change.U).all()):
        raise DivergedError(f"what was learned is not finite after {state.n_steps} steps: lower the learning rates")
    n_parts = max(1, math.ceil(largest))
    shifted, rate = np.stack([M, B + shift / M, A, E]), np.full(len(M), -1 / (change.weight * n_parts), dtype)
    gained = np.zeros(len(M))
    for _ in range(n_parts):
        gained += _core.mirror_rows(state.phi, state.average_phi, shifted, rows, log_phi, rate, n_threads)
    move_frame(state, 1 + gained + n_words * shift, shift, average, n_threads)

    if state.word_weights is not None and change.log_words is not None:
        old = state.word_weights[rows]
        new = np.clip(old * np.exp(change.log_words.astype(np.float64) / change.weight), *WEIGHT_RANGE)
        state.word_lag[rows] += state.average_weight * (new - old)
        state.word_weights[rows] = new
    if state.theme_counts is not None and change.theme_counts is not None:
        theme_counts = lengthened(change.theme_counts)
        state.theme_counts[rows] += theme_counts
        state.theme_totals = state.theme_totals + theme_counts.sum(axis=0, dtype=np.float64)
    # One machine sees the gradient of the whole batch: a mean of those of the shards, which are mostly noise.
    state.squares += change.squares / change.weight / change.n_shards
    state.word_squares += change.word_squares / change.weight / change.n_shards
    state.moments = change.moments / change.weight
    state.U += (change.U / change.weight).astype(dtype)
    state.average_U += average * state.U
    state.average_weight += average


def halved(numbers: np.ndarray) -> np.ndarray:
    """The upper halves of numbers of float32, rounded."""
    bits = np.ascontiguousarray(numbers, np.float32).view(np.uint32)
    upper: np.ndarray = ((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)
    return upper


def lengthened(halves: np.ndarray) -> np.ndarray:
    """The numbers of which these are the upper halves."""
    bits: np.ndarray = halves.astype(np.uint32)
    bits <<= np.uint32(16)
    return bits.view(np.float32)
