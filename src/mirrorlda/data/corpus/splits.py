"""Which part of a corpus a document of a file is of: as a column says, or drawn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mirrorlda.data.messages import Message
from mirrorlda.data.readers import Rows

# The split whose words make the vocabulary, where the files name splits; and the other, where they are drawn.
TRAINING, TEST = "train", "test"
Splits = Callable[[Rows], list[str | None] | None]


def splits_of(column: str | None, test_fraction: float, seed: int) -> Splits:
    """The split of each row: as a column says, drawn, or none."""
    if not 0 <= test_fraction < 1:
        raise ValueError(Message("<test_fraction> must be at least 0 and less than 1, got {!r}", test_fraction))
    if not 0 <= seed < 2**64:
        raise ValueError(Message("<seed> must be a whole number of at least 0 and at most 64 bits, got {!r}", seed))
    if column is not None:
        if test_fraction:
            raise ValueError(
                Message(
                    "<split={!r}> and <test_fraction={}> both say which documents are for tests: give one", column, test_fraction
                )
            )
        return lambda rows: [None if value is None else str(value) for value in rows.columns[column]]
    if not test_fraction:
        return lambda rows: None
    return lambda rows: [TEST if drawn < test_fraction else TRAINING for drawn in _drawn(seed, rows)]


def _drawn(seed: int, rows: Rows) -> list[float]:
    """A number from 0 to 1 for each row, from its place alone: the mixing of SplitMix64, of seed, file and line in turn."""
    state = np.zeros(len(rows), np.uint64)
    for part in (np.uint64(seed), np.uint64(rows.file_number), rows.lines.astype(np.uint64)):
        state = (state ^ part) + np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state = state ^ (state >> np.uint64(31))
    drawn: list[float] = ((state >> np.uint64(11)) / 2**53).tolist()
    return drawn
