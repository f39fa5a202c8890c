"""What is trained on: documents with targets and weights, in memory or on disk, one interface for both."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from typing import Protocol, Self

import numpy as np

from mirrorlda.data.corpus.corpus import Corpus
from mirrorlda.data.corpus.shards import BLOCK_DOCS
from mirrorlda.data.documents import Documents
from mirrorlda.data.parts import PART_DOCS, ahead, chunks
from mirrorlda.training.epoch_order import windows

# At most so many are held out, and judged after every epoch.
MOST_HELD_OUT = 65_536


class Source(Protocol):
    """Documents to learn from. What is handed out is in memory: examples, and the numbers of those that are meant."""

    @property
    def n_docs(self) -> int: ...

    @property
    def total_weight(self) -> float: ...

    @property
    def fingerprint(self) -> str:
        """Differs where documents or targets differ."""

    def take(self, numbers: np.ndarray) -> Examples: ...

    def batches(self, size: int, seed: int, first: int) -> Iterator[tuple[Examples, np.ndarray]]:
        """An epoch in the order of `epoch_order.windows`, without the batches before the `first`."""

    def parts(self, size: int) -> Iterator[tuple[Examples, np.ndarray]]:
        """All documents in their order."""

    def hold_out(self, fraction: float, seed: int) -> tuple[Self, Examples]:
        """The others, and a random fraction of the documents."""

    def without_unlabelled(self) -> Self:
        """Only documents that have a target."""

    def completed(self, targets: Callable[[Documents], np.ndarray]) -> Self:
        """Documents without a target take the one that `targets` says."""


@dataclass(frozen=True)
class Examples:
    """Documents in memory with their targets and weights, and which of them have a target (None: all)."""

    documents: Documents
    y: np.ndarray
    weights: np.ndarray
    labelled: np.ndarray | None = None

    @property
    def n_docs(self) -> int:
        return self.documents.n_docs

    @cached_property
    def total_weight(self) -> float:
        """Rounded once, as that of `StoredExamples` is."""
        return math.fsum(self.weights)

    @property
    def fingerprint(self) -> str:
        digest, documents = sha256(), self.documents
        for array in (documents.indptr, documents.indices, documents.counts, self.y, self.weights, self.labelled):
            if array is not None:
                digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    @cached_property
    def lengths(self) -> np.ndarray:
        """Sum of the counts of each document."""
        return self.documents.totals()

    def take(self, numbers: np.ndarray) -> Examples:
        labelled = None if self.labelled is None else self.labelled[numbers]
        return Examples(self.documents.take(numbers), self.y[numbers], self.weights[numbers], labelled)

    def batches(self, size: int, seed: int, first: int = 0) -> Iterator[tuple[Examples, np.ndarray]]:
        for numbers in windows(self.n_docs, len(self.documents.indices), size, seed, first):
            for begin in range(0, len(numbers), size):
                yield self, numbers[begin : begin + size]

    def parts(self, size: int = PART_DOCS) -> Iterator[tuple[Examples, np.ndarray]]:
        for numbers in chunks(self.n_docs, size):
            yield self, numbers

    def hold_out(self, fraction: float, seed: int) -> tuple[Examples, Examples]:
        numbers = _held_out(self.n_docs, fraction, seed)
        return self.take(np.delete(np.arange(self.n_docs), numbers)), self.take(numbers)

    def without_unlabelled(self) -> Examples:
        return self if self.labelled is None else replace(self.take(np.flatnonzero(self.labelled)), labelled=None)

    def completed(self, targets: Callable[[Documents], np.ndarray]) -> Examples:
        if self.labelled is None:
            return self
        unknown = np.flatnonzero(~self.labelled)
        y = self.y.copy()
        y[unknown] = targets(self.documents.take(unknown))
        return replace(self, y=y, labelled=None)


@dataclass(frozen=True)
class StoredExamples:
    """Documents of a corpus on disk, their counts as they are or `logarithmic`.

    `encode` makes examples of some of them: targets as the response takes them, and weights, whose `total` is exact.
    """

    corpus: Corpus
    encode: Callable[[Documents, np.ndarray | None, np.ndarray | None], Examples]
    total: Fraction
    logarithmic: bool
    targets: Callable[[Documents], np.ndarray] | None = None

    @property
    def n_docs(self) -> int:
        return self.corpus.n_docs

    @property
    def total_weight(self) -> float:
        return rounded(self.total)

    @property
    def fingerprint(self) -> str:
        return self.corpus.fingerprint

    def take(self, numbers: np.ndarray) -> Examples:
        y, labelled = (None, None) if self.corpus.target is None else self.corpus.targets(numbers)
        examples = self.encode(self.corpus.take(numbers, logarithmic=self.logarithmic), y, labelled)
        return examples if self.targets is None else examples.completed(self.targets)

    def batches(self, size: int, seed: int, first: int = 0) -> Iterator[tuple[Examples, np.ndarray]]:
        order = windows(self.n_docs, self.corpus.n_entries, size, seed, first)
        for window in ahead(self._taken(order)):
            for begin in range(0, window.n_docs, size):
                yield window, np.arange(begin, min(begin + size, window.n_docs))

    def _taken(self, order: Iterable[np.ndarray]) -> Iterator[Examples]:
        """Examples in this order; what comes next is on its way from the disk while the one before is read."""
        waiting: np.ndarray | None = None
        for numbers in order:
            self.corpus.will_take(numbers)
            if waiting is not None:
                yield self.take(waiting)
            waiting = numbers
        if waiting is not None:
            yield self.take(waiting)

    def parts(self, size: int = PART_DOCS) -> Iterator[tuple[Examples, np.ndarray]]:
        for part in ahead(self._taken(chunks(self.n_docs, size))):
            yield part, np.arange(part.n_docs)

    def shard(self, number: int, n_shards: int) -> StoredExamples:
        """One of so many parts; its weight is not that of the whole."""
        return replace(self, corpus=self.corpus.shard(number, n_shards), total=Fraction(0))

    def hold_out(self, fraction: float, seed: int) -> tuple[StoredExamples, Examples]:
        numbers = _held_out(self.n_docs, fraction, seed)
        held_out = self.take(numbers)
        total = self.total - exact_sum(held_out.weights)
        return replace(self, corpus=self.corpus.without(numbers), total=total), held_out

    def without_unlabelled(self) -> StoredExamples:
        labelled = self.corpus.select(labelled=True)
        # What has no target weighs 1.
        total = self.total - (self.n_docs - labelled.n_docs)
        return replace(self, corpus=labelled, total=total)

    def completed(self, targets: Callable[[Documents], np.ndarray]) -> StoredExamples:
        return replace(self, targets=targets)


def exact_sum(weights: np.ndarray) -> Fraction:
    """Their sum without rounding, so that it does not matter in which parts they are added; they are finite."""
    values, counts = np.unique(weights, return_counts=True)
    return sum((Fraction(value) * count for value, count in zip(values.tolist(), counts.tolist(), strict=True)), Fraction(0))


def rounded(total: Fraction) -> float:
    try:
        return float(total)
    except OverflowError:
        return math.inf


def sample(source: Source, size: int) -> Examples:
    """About `size` documents in runs of a block, evenly spaced; all of them where there are no more."""
    n_docs = source.n_docs
    if n_docs <= size:
        return source if isinstance(source, Examples) else source.take(np.arange(n_docs))
    blocks = np.unique(np.linspace(0, n_docs // BLOCK_DOCS - 1, size // BLOCK_DOCS).astype(np.int64))
    return source.take((blocks[:, None] * BLOCK_DOCS + np.arange(BLOCK_DOCS)).ravel())


def _held_out(n_docs: int, fraction: float, seed: int) -> np.ndarray:
    n_held_out = min(MOST_HELD_OUT, max(1, round(fraction * n_docs)))
    if n_held_out >= n_docs:
        raise ValueError(f"{n_docs} documents are too few to hold out {n_held_out} of them")
    return np.sort(np.random.default_rng(seed).choice(n_docs, n_held_out, replace=False, shuffle=False))
