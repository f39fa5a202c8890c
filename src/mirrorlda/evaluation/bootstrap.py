"""Measures with 95 % bootstrap intervals over documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mirrorlda.evaluation.measures import CALIBRATION, LOWER_IS_BETTER, Outcome
from mirrorlda.method.inference import check_whole

# Above so many documents, random groups of them are drawn: intervals are as wide, to one part in a hundred.
_MOST_GROUPS = 10_000
# Resamples at a time.
_CHUNK = 100
_TAILS = (0.025, 0.975)


@dataclass(frozen=True)
class Measure:
    """A measure and its 95 % bootstrap interval over documents.

    Examples
    --------
    >>> from mirrorlda.evaluation import Measure
    >>> print(Measure(0.8125, 0.79, 0.83))
    0.8125 [0.7900, 0.8300]
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        low, value, high = plain([self.low, self.value, self.high])
        return f"{value} [{low}, {high}]"


def plain(values: list[float]) -> list[str]:
    """Numbers with four digits of the largest, and the same number of decimals."""
    largest = max(abs(value) for value in values)
    decimals = 4 if largest < 1 else max(0, 3 - int(np.floor(np.log10(largest))))
    return [f"{value:.{decimals}f}" for value in values]


def measured(outcome: Outcome, n_bootstrap: int = 1000, random_state: Any = 0) -> dict[str, Measure]:
    """All measures of an outcome that have a value.

    The ends of an interval are percentiles of the measure of `n_bootstrap` resamples; where a resample has no value, it is left
    out. Noise makes a calibration error larger, and that of a resample larger still: its interval is the mirror image of the
    percentiles at the value, and begins at 0 where noise alone reaches that value.
    """
    check_whole("n_bootstrap", n_bootstrap)
    columns = outcome.columns()
    whole = np.asarray(columns.sum(axis=1), np.float64).reshape(-1, 1)
    values, gaps = outcome.measures(whole), outcome.gaps(whole)
    samples: list[dict[str, np.ndarray]] = []
    noise: list[np.ndarray] = []
    for sums in _resampled(columns, n_bootstrap, np.random.default_rng(random_state)):
        samples.append(outcome.measures(sums))
        if gaps is not None:
            noise.append(abs(outcome.gaps(sums) - gaps).sum(axis=0))
    found = {}
    for name, value in values.items():
        if np.isfinite(value[0]):
            resampled = np.concatenate([sample[name] for sample in samples])
            found[name] = _measure(float(value[0]), resampled, np.concatenate(noise) if name == CALIBRATION else None)
    return found


def lead(ours: Outcome, theirs: Outcome, name: str, n_bootstrap: int = 1000, random_state: Any = 0) -> Measure | None:
    """By how much a measure is better for our predictions than for theirs; None if it has no value for one of them.

    Each resample draws the same documents for both, so that what is hard for both cancels.
    """
    both = [outcome.columns() for outcome in (ours, theirs)]

    def difference(sums: Sequence[np.ndarray]) -> np.ndarray:
        found = [outcome.measures(part).get(name) for outcome, part in zip((ours, theirs), sums, strict=True)]
        if found[0] is None or found[1] is None:
            return np.array([np.nan])
        values: np.ndarray = found[1] - found[0] if name in LOWER_IS_BETTER else found[0] - found[1]
        return values

    value = float(difference([np.asarray(columns.sum(axis=1), np.float64).reshape(-1, 1) for columns in both])[0])
    if not np.isfinite(value):
        return None
    drawn = zip(*(_resampled(columns, n_bootstrap, np.random.default_rng(random_state)) for columns in both), strict=True)
    return _measure(value, np.concatenate([difference(sums) for sums in drawn]), None)


def _resampled(columns: sp.csr_array, n_resamples: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Sums (n_sums, n) of documents drawn with replacement."""
    n = columns.shape[1]
    if n > _MOST_GROUPS:
        groups = rng.permutation(n) % _MOST_GROUPS
        columns = columns @ sp.csr_array((np.ones(n), (np.arange(n), groups)), shape=(n, _MOST_GROUPS))
        n = _MOST_GROUPS
    for first in range(0, n_resamples, _CHUNK):
        size = min(_CHUNK, n_resamples - first)
        drawn = rng.integers(n, size=(n, size)) * size + np.arange(size)
        yield columns @ np.bincount(drawn.ravel(), minlength=n * size).reshape(n, size).astype(np.float64)


def _measure(value: float, resampled: np.ndarray, noise: np.ndarray | None) -> Measure:
    resampled = resampled[np.isfinite(resampled)]
    if not len(resampled):
        return Measure(value, value, value)
    low, high = np.quantile(resampled, _TAILS).tolist()
    if noise is not None:
        low, high = max(0.0, 2 * value - high), 2 * value - low
        if value <= np.nanquantile(noise, _TAILS[1]):
            low = 0.0
    return Measure(value, min(low, value), max(high, value))
