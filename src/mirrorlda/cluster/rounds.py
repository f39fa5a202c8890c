"""Rounds: shards of a corpus learn apart from the same state, and what they learned becomes one change of it.

A shard takes the ordinary steps, on its own documents. The rates of the columns are those of the state at the start of the round.
What was learned is averaged where mirror descent adds, in the dual space, along a fixed binary tree over shard numbers: how many
processes compute the shards decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from mirrorlda import _core
from mirrorlda.cluster.changes import Change, halved
from mirrorlda.method.gradients import Gradients
from mirrorlda.method.inference import Layers, new_engine
from mirrorlda.method.responses import Response
from mirrorlda.training import mirror_descent
from mirrorlda.training.epoch_order import windows
from mirrorlda.training.loop import Seen, gradients_of, seen, step
from mirrorlda.training.mirror_descent import Rates, State
from mirrorlda.training.schedule import Schedule
from mirrorlda.training.sources import Examples, StoredExamples

# A shard has at least so many documents of a batch, and there are at most so many shards: a step on 125 documents takes half as
# long again for each of them.
_SHARD_BATCH = 500
_MOST_SHARDS = 1024
# Documents of shards that a process keeps open, some bytes for each.
_MOST_OPEN_DOCS = 2**24

# What can be told of every document: what a score is computed from, and what an estimate of alpha is.
_SCORED = ("scores", "losses", "y", "weights")
_USED = ("theta", "lengths")

T = TypeVar("T")


def merged_parts(left: T | None, right: T | None, merge: Callable[[T, T], T]) -> T | None:
    """Of two subtrees, of which one or both may be empty."""
    return right if left is None else left if right is None else merge(left, right)


def n_shards(batch_size: int) -> int:
    """Shards among which batches of this size are divided: a power of two."""
    wanted = max(1, min(_MOST_SHARDS, batch_size // _SHARD_BATCH))
    return 1 << (wanted.bit_length() - 1)


@dataclass(frozen=True)
class Fit:
    """What all rounds of a fit have in common."""

    source: StoredExamples
    response: Response
    schedule: Schedule
    n_threads: int

    def rates(self, step: int) -> Rates:
        return self.schedule.rates(step, self._n_steps, self.source.total_weight)

    @cached_property
    def _n_steps(self) -> int:
        return self.schedule.n_steps(self.source.n_docs)

    @property
    def mean_weight(self) -> float:
        return self.source.total_weight / self.source.n_docs

    def n_batches(self, epoch: int) -> int:
        return -(-self.source.n_docs // self.schedule.batch_size(epoch))


@dataclass(frozen=True)
class Round:
    """Some batches of an epoch, of the number `step` and those after it.

    Of so many of its last documents a shard tells what a score, and what an estimate of alpha, is computed from.
    """

    epoch: int
    batch: int
    n_batches: int
    step: int
    order: int
    seed: int
    layers: Layers
    n_scored: int
    n_used: int


@dataclass(frozen=True)
class Part:
    """Documents of one batch, from its place `first` on, whose gradients are wanted: whole blocks of `block_docs` documents."""

    numbers: np.ndarray
    first: int
    block_docs: int
    step: int
    seed: int
    layers: Layers


@dataclass
class _Open:
    """A shard, and the order of its documents in an epoch."""

    documents: StoredExamples
    number: int
    drawn: int | None = None
    order: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))

    def draw(self, order: int) -> np.ndarray:
        if self.drawn != order:
            runs = windows(self.documents.n_docs, self.documents.corpus.n_entries, 1, order ^ self.number)
            self.drawn, self.order = order, np.concatenate([np.empty(0, np.int64), *runs])
        return self.order


class Place:
    """Where shards learn: a process with the engine, and the shards that it has opened."""

    def __init__(self, fit: Fit) -> None:
        self.fit = fit
        self.engine = new_engine(np.dtype(np.float32))
        # The last one is the latest.
        self._open: dict[tuple[int, int], _Open] = {}

    def documents(self, round: Round, shard: int) -> tuple[Examples, list[np.ndarray]] | None:
        """The documents of a shard in a round, in memory, and its batches of them; None if it has none in it."""
        size = self.fit.schedule.batch_size(round.epoch)
        part = self._opened(shard, n_shards(size))
        n_docs = part.documents.n_docs
        batches = range(round.batch, round.batch + round.n_batches + 1)
        edges = [n_docs * batch // self.fit.n_batches(round.epoch) for batch in batches]
        if edges[0] == edges[-1]:
            return None
        examples = part.documents.take(part.draw(round.order)[edges[0] : edges[-1]])
        return examples, [np.arange(first, last) - edges[0] for first, last in pairwise(edges)]

    def _opened(self, shard: int, n_shards: int) -> _Open:
        key = shard, n_shards
        found = self._open.pop(key, None) or _Open(self.fit.source.shard(*key), shard)
        # Shards of smaller batches, earlier in the fit, are not asked for again; of many, those that others have by now.
        room = _MOST_OPEN_DOCS - found.documents.n_docs
        for other, there in reversed(list(self._open.items())):
            room -= there.documents.n_docs
            if other[1] != n_shards or room < 0:
                del self._open[other]
        self._open[key] = found
        return found


def part_gradients(state: State, place: Place, part: Part) -> tuple[Gradients, Seen]:
    """Gradients of a part of a batch, to be added up along the tree of its blocks."""
    fit = place.fit
    examples, everything = fit.source.take(part.numbers), np.arange(len(part.numbers))
    found = gradients_of(
        state,
        place.engine,
        examples,
        everything,
        fit.response,
        part.layers,
        fit.schedule,
        fit.rates(part.step),
        part.seed,
        fit.n_threads,
        part.first,
        part.block_docs,
    )
    nothing = np.empty((len(found.losses), 0))
    told = seen(found, examples, everything)
    decoded = (
        None
        if found.decoded is None
        else replace(found.decoded, grad_theta=nothing, grad_themes=found.decoded.grad_themes.copy())
    )
    return replace(found, grad_phi=found.grad_phi.copy(), scores=nothing, theta=nothing, decoded=decoded), told


def learned_apart(
    state: State, place: Place, round: Round, shard: int, rebuilt: Callable[[], State]
) -> tuple[Change | None, Seen | None]:
    """What one shard learns in a round, nothing if it has no documents in it.

    The state is as before afterwards, unless all of its rows were written anew on the way; `rebuilt` makes it again.
    """
    fit = place.fit
    found = place.documents(round, shard)
    if found is None:
        return None, None
    examples, batches = found
    rows = examples.documents.words_of(np.arange(examples.n_docs), fit.n_threads)
    if state.guide is not None:
        rows = np.union1d(rows, state.guide.rows)
    before = Before(state, rows)
    engine, rng = place.engine, np.random.default_rng((round.seed, shard))
    frozen = mirror_descent.spread(state)
    told = []
    for number, batch in enumerate(batches):
        if not len(batch):
            continue
        rates = replace(fit.rates(round.step + number), average=0.0)
        weight = fit.mean_weight * len(batch)
        gradients = step(
            state, engine, examples, batch, fit.response, round.layers, fit.schedule, rates, weight, rng, fit.n_threads, frozen
        )
        told.append(seen(gradients, examples, batch))
    # The weight of a shard with its part of all documents is about one.
    size = fit.schedule.batch_size(round.epoch)
    expected = fit.mean_weight * size * round.n_batches / n_shards(size)
    change = before.change(state, sum(part.weight for part in told) / expected, rebuilt)
    last = dict.fromkeys(_SCORED, round.n_scored) | dict.fromkeys(_USED, round.n_used)
    all_told = joined(told, round.n_batches)
    return change, replace(all_told, **{name: getattr(all_told, name)[max(0, all_told.n_docs - n) :] for name, n in last.items()})


def joined(told: Sequence[Seen], n_steps: int) -> Seen:
    """What is told of several parts of `n_steps` steps as one."""
    if not told:
        nothing = {name: np.empty(0) for name in (*_SCORED, *_USED)}
        return Seen(n_steps=n_steps, n_docs=0, loss=0.0, weight=0.0, **nothing)
    arrays = {name: np.concatenate([getattr(part, name) for part in told]) for name in (*_SCORED, *_USED)}
    n_docs, loss, weight = (sum(getattr(part, name) for part in told) for name in ("n_docs", "loss", "weight"))
    if len(arrays["losses"]) == n_docs:
        # As of one batch, whatever its parts were.
        loss, weight = float(arrays["losses"] @ arrays["weights"]), float(arrays["weights"].sum())
    return Seen(n_steps=n_steps, n_docs=n_docs, loss=loss, weight=weight, **arrays)


class Before:
    """A state before the steps of a shard, as far as these can change it."""

    def __init__(self, state: State, rows: np.ndarray) -> None:
        self._rows, self._phi, self._U = rows, state.phi[rows], state.U.copy()
        self._words = None if state.word_weights is None else state.word_weights[rows]
        self._theme_counts = None if state.theme_counts is None else state.theme_counts[rows]
        self._theme_totals = state.theme_totals
        self._frame, self._n_flushes = state.frame, state.n_flushes
        self._counts = (state.squares.copy(), state.word_squares, state.n_steps)
        self._moments = state.moments

    def change(self, state: State, weight: float, rebuilt: Callable[[], State]) -> Change:
        """What the steps made of the state, which is then as it was."""
        if state.n_flushes != self._n_flushes:
            return self._change_of_all(state, weight, rebuilt())
        M, B = self._frame[:2]
        shift, floor = (values.astype(state.phi.dtype) for values in (state.frame[1], _core.FLOOR / M))
        log_phi = _core.log_changes(state.phi, self._rows, self._phi, shift, floor, weight)
        words = None if state.word_weights is None else state.word_weights[self._rows] / self._words
        counts = None if state.theme_counts is None else state.theme_counts[self._rows] - self._theme_counts
        change = self._made(state, weight, self._rows, log_phi, words, counts, M * (state.frame[1] - B))
        self.restore(state)
        return change

    def _change_of_all(self, state: State, weight: float, old: State) -> Change:
        """All rows were written anew in between: each of them counts as touched."""
        before, now = ((s.frame[0] * (s.phi + s.frame[1])).astype(s.phi.dtype) for s in (old, state))
        n_words, n_topics = now.shape
        rows, floor = np.arange(n_words, dtype=np.int32), np.full(n_topics, _core.FLOOR, now.dtype)
        log_phi = _core.log_changes(now, rows, before, np.zeros_like(floor), floor, weight)
        words = None if state.word_weights is None else state.word_weights / old.word_weights
        counts = None if state.theme_counts is None else state.theme_counts - old.theme_counts
        return self._made(state, weight, rows, log_phi, words, counts, np.zeros(n_topics))

    def _made(self, state: State, weight: float, rows: Any, log_phi: Any, words: Any, counts: Any, shift: Any) -> Change:
        squares, word_squares, _ = self._counts
        return Change(
            weight=weight,
            n_shards=1,
            rows=rows,
            log_phi=log_phi,
            log_words=None if words is None else (weight * np.log(words)).astype(np.float32),
            shift=weight * shift,
            U=weight * (state.U.astype(np.float64) - self._U),
            squares=weight * (state.squares - squares),
            word_squares=weight * (state.word_squares - word_squares),
            moments=weight * state.moments,
            theme_counts=None if counts is None else halved(counts),
        )

    def restore(self, state: State) -> None:
        state.phi[self._rows] = self._phi
        if state.word_weights is not None:
            state.word_weights[self._rows] = self._words
        if state.theme_counts is not None:
            state.theme_counts[self._rows] = self._theme_counts
        state.theme_totals = self._theme_totals
        state.U, state.frame, state.moments = self._U, self._frame, self._moments
        state.squares, state.word_squares, state.n_steps = self._counts


def along_tree(leaf: Callable[[int], T | None], first: int, n_leaves: int, merge: Callable[[T, T], T]) -> T | None:
    """Leaves `first` to `first + n_leaves`, a power of two of them, merged as neighbours, then neighbours of these."""
    if n_leaves == 1:
        return leaf(first)
    half = n_leaves // 2
    left, right = along_tree(leaf, first, half, merge), along_tree(leaf, first + half, half, merge)
    return merged_parts(left, right, merge)
