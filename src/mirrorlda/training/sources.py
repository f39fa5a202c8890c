"""What is trained on: documents with targets and weights, in memory or on disk, one interface for both."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from typing import Any, Protocol, Self

import numpy as np

from mirrorlda.data.corpus.corpus import Corpus
from mirrorlda.data.corpus.shards import BLOCK_DOCS
from mirrorlda.data.documents import Documents
from mirrorlda.data.parts import PART_DOCS, ahead, chunks
from mirrorlda.method.targets.record import Targets
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
    def dtype(self) -> np.dtype[Any]:
        """Of the counts."""

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

    def encoded(self, encode: Encoding) -> Self:
        """With targets as the response takes them."""

    def labelled_targets(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """All targets, as they are, and their weights, some at a time."""

    def without_unlabelled(self) -> Self:
        """Only documents that have a target."""

    def completed(self, targets: Callable[[Documents], np.ndarray]) -> Self:
        """Documents without a target take the one that `targets` says."""


@dataclass(frozen=True)
class Encoding:
    """From targets as users have them to those that the response takes; `weigh` gives documents weights by their targets."""

    targets: Targets
    weigh: Callable[[np.ndarray], np.ndarray] | None = None

    def __call__(self, examples: Examples) -> Examples:
        weights, labelled = examples.weights, examples.labelled
        if self.weigh is not None:
            weights, known = weights.copy(), slice(None) if labelled is None else labelled
            weights[known] *= self.weigh(examples.y[known])
        y = self.targets.encode(examples.y, examples.documents.counts.dtype)
        return Examples(examples.documents, y, weights, labelled)

    def stored(self, examples: Examples) -> Examples:
        """Examples of a corpus. It stores nothing for a missing target, so a placeholder is put in."""
        if examples.labelled is not None:
            examples.y[~examples.labelled] = self.targets.placeholder
        return self(examples)


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
    def dtype(self) -> np.dtype[Any]:
        dtype: np.dtype[Any] = self.documents.counts.dtype
        return dtype

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

    def as_type(self, dtype: Any) -> Examples:
        """With counts of this type."""
        counts = self.documents.counts.astype(dtype, copy=False)
        return replace(self, documents=replace(self.documents, counts=counts))

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

    def encoded(self, encode: Encoding) -> Examples:
        return encode(self)

    def labelled_targets(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        known = self.without_unlabelled()
        for numbers in chunks(known.n_docs, PART_DOCS):
            yield known.y[numbers], known.weights[numbers]

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
    """Documents of a corpus on disk, their counts as they are or `logarithmic`, with or without the targets that it holds.

    `encode` makes of some of them what the response takes; the `total` of their weights is exact.
    """

    corpus: Corpus
    logarithmic: bool
    has_targets: bool
    total: Fraction
    encode: Encoding | None = None
    targets: Callable[[Documents], np.ndarray] | None = None

    @classmethod
    def of(cls, corpus: Corpus, *, logarithmic: bool, has_targets: bool) -> StoredExamples:
        return cls(corpus, logarithmic, has_targets, Fraction(corpus.n_docs))

    @property
    def n_docs(self) -> int:
        return self.corpus.n_docs

    @property
    def total_weight(self) -> float:
        return rounded(self.total)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float32)

    @property
    def fingerprint(self) -> str:
        return self.corpus.fingerprint

    def take(self, numbers: np.ndarray) -> Examples:
        documents = self.corpus.take(numbers, logarithmic=self.logarithmic)
        if not self.has_targets:
            return Examples(documents, documents.totals(), np.ones(len(numbers)))
        y, labelled = self.corpus.targets(numbers)
        examples = Examples(documents, y, np.ones(len(numbers)), None if labelled.all() else labelled)
        if self.encode is not None:
            examples = self.encode.stored(examples)
        return examples if self.targets is None else examples.completed(self.targets)

    def encoded(self, encode: Encoding) -> StoredExamples:
        total = self.total
        if encode.weigh is not None:
            weights = (exact_sum(encode.weigh(y)) for y, _ in self.labelled_targets())
            total = sum(weights, Fraction(0)) + (self.n_docs - self.corpus.select(labelled=True).n_docs)
        return replace(self, encode=encode, total=total)

    def labelled_targets(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        known = self.corpus.select(labelled=True)
        for numbers in chunks(known.n_docs, PART_DOCS):
            yield known.targets(numbers)[0], np.ones(len(numbers))

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
        if not self.has_targets:
            return self
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
