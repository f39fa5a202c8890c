"""Which documents of a stored corpus a part of it has, and where they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from mirrorlda.data.corpus.shards import BLOCK_DOCS, SHARD_BLOCKS, SHARD_DOCS
from mirrorlda.data.corpus.stored import StoredCorpus

# A shard of training takes whole files of a corpus that has so many of them for each shard.
_FILES_OF_SHARD = 8


@dataclass(frozen=True, eq=False)
class Selection:
    """Some documents of a stored corpus, by their places in it. Without conditions, these are all of them."""

    stored: StoredCorpus
    # What all its documents have in common: a split, that they have a target or none, that they are not in some places of the
    # whole, that they are in one of several shards.
    conditions: tuple[tuple[str, Any], ...] = ()
    # How many documents of the part are before each block; None where all are.
    starts: np.ndarray | None = None
    # The places of the part's documents, where they are listed.
    listed: np.ndarray | None = None

    @property
    def n_docs(self) -> int:
        if self.listed is not None:
            return len(self.listed)
        return int(self.starts[-1]) if self.starts is not None else int(self.stored.description["n_docs"])

    @property
    def n_entries(self) -> int:
        if self.listed is not None:
            return int(self.sizes(self.listed).sum(dtype=np.int64))
        if self.starts is None:
            return int(self.stored.description["n_entries"])
        kept = ((self.stored.shard(i), self.meets_conditions(i)) for i in range(len(self.stored.description["shards"])))
        return sum(int(shard.column("sizes")[which].sum(dtype=np.int64)) for shard, which in kept)

    def where(self, name: str, value: Any) -> Selection:
        """Those of the documents that meet one more condition."""
        part = replace(self, conditions=(*self.conditions, (name, value)))
        if self.listed is not None:
            kept = [part.meets_conditions(shard)[here] for shard, _, here in by_shard(self.listed)]
            return replace(part, listed=self.listed[np.concatenate([np.zeros(0, bool), *kept])])
        counts = [
            np.add.reduceat(part.meets_conditions(i).astype(np.int64), np.arange(0, shard["n_docs"], BLOCK_DOCS))
            for i, shard in enumerate(self.stored.description["shards"])
        ]
        starts = np.concatenate([[0], np.cumsum(np.concatenate([np.zeros(0, np.int64), *counts]))]).astype(np.int64)
        return replace(part, starts=starts)

    def shard(self, number: int, n_shards: int) -> Selection:
        """As `Corpus.shard` says."""
        if not 0 <= number < n_shards:
            raise ValueError(f"there are the shards 0 to {n_shards - 1}, got {number}")
        run = SHARD_DOCS if self.n_docs >= _FILES_OF_SHARD * n_shards * SHARD_DOCS else BLOCK_DOCS
        numbers = np.arange(number * run, self.n_docs, n_shards * run)[:, None] + np.arange(run)
        listed = self.places(numbers[numbers < self.n_docs])
        return replace(self, conditions=(*self.conditions, ("shard", (number, n_shards))), listed=listed)

    def meets_conditions(self, shard: int) -> np.ndarray:
        """Which documents of a file the part has, as far as conditions say it of one document."""
        mask = np.ones(self.stored.description["shards"][shard]["n_docs"], bool)
        for name, value in self.conditions:
            if name == "split":
                mask &= self.stored.shard(shard).column("split") == value
            elif name == "labelled":
                mask &= self.stored.labelled(shard) == value
            elif name == "without":
                first, last = np.searchsorted(value, (shard * SHARD_DOCS, (shard + 1) * SHARD_DOCS))
                mask[value[first:last] - shard * SHARD_DOCS] = False
        return mask

    def places(self, numbers: np.ndarray) -> np.ndarray:
        """Places in the whole corpus of this part's documents with these numbers, ascending."""
        if len(numbers) and not 0 <= numbers[0] <= numbers[-1] < self.n_docs:
            raise IndexError(f"the corpus has the documents 0 to {self.n_docs - 1}, got {numbers[0]} to {numbers[-1]}")
        if self.listed is not None:
            listed: np.ndarray = self.listed[numbers]
            return listed
        if self.starts is None:
            return numbers
        places = np.empty(len(numbers), np.int64)
        blocks = np.searchsorted(self.starts, numbers, side="right") - 1
        for first, last in _runs(blocks // SHARD_BLOCKS):
            shard = int(blocks[first]) // SHARD_BLOCKS
            kept = np.flatnonzero(self.meets_conditions(shard))
            places[first:last] = kept[numbers[first:last] - self.starts[shard * SHARD_BLOCKS]] + shard * SHARD_DOCS
        return places

    def sizes(self, places: np.ndarray) -> np.ndarray:
        """Distinct words of the documents at these places, which ascend."""
        sizes = np.empty(len(places), np.int64)
        for shard, those, here in by_shard(places):
            sizes[those] = self.stored.shard(shard).column("sizes")[here]
        return sizes


def by_shard(places: np.ndarray) -> Iterator[tuple[int, slice, np.ndarray]]:
    """For each file that ascending places are in: its number, which of the places are in it, and where in it they are."""
    for first, last in _runs(places // SHARD_DOCS):
        shard = int(places[first]) // SHARD_DOCS
        yield shard, slice(first, last), places[first:last] - shard * SHARD_DOCS


def _runs(values: np.ndarray) -> list[tuple[int, int]]:
    """Where equal neighbours of ascending values begin and end."""
    edges = [0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)]
    return [(first, last) for first, last in pairwise(edges) if last > first]
