"""The steps of training on a cluster: each worker has the state, and what it needs to follow when that moves.

The driver learns, and keeps a log of how: a copy of the state, and what it took over since. A worker that has followed the log so
far reads only the end of it; a new one, on a new machine or in place of one that died, reads all of it. So what a task computes
depends on its arguments alone, and Ray may repeat it anywhere.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
import ray

from mirrorlda import _core
from mirrorlda.cluster import changes, rounds
from mirrorlda.cluster.changes import Change
from mirrorlda.cluster.rounds import Fit, Part, Place, Round
from mirrorlda.cluster.versions import ClusterError, check_versions, versions
from mirrorlda.method import gradients
from mirrorlda.method.gradients import Gradients
from mirrorlda.method.responses import Response
from mirrorlda.training import mirror_descent
from mirrorlda.training.epoch_order import windows
from mirrorlda.training.loop import SCORED_DOCS, Run, Seen, drawn
from mirrorlda.training.mirror_descent import Rates, State
from mirrorlda.training.schedule import Schedule
from mirrorlda.training.sources import Source, StoredExamples

if TYPE_CHECKING:
    from mirrorlda.cluster.cluster import Cluster

# Bytes of a change that are merged in one piece: a larger one is merged by rows, in several places at once.
_PIECE_BYTES = 32 * 2**20
# Between two looks at which machines there are.
LOOK_SECONDS = 1.0


@dataclass(frozen=True)
class Step:
    """One step, on the gradient of the whole batch."""

    gradients: Gradients
    weight: float
    rates: Rates

    def take(self, state: State, average: float, n_threads: int) -> None:
        mirror_descent.learn(state, self.gradients, self.weight, replace(self.rates, average=average), n_threads)


@dataclass(frozen=True)
class Adoption:
    """What the shards learned in a round."""

    change: Change
    n_steps: int

    def take(self, state: State, average: float, n_threads: int) -> None:
        changes.adopt(state, self.change, self.n_steps, average, n_threads)


@dataclass(frozen=True)
class View:
    """What a worker needs to have the state: a copy, as it was after `n_base` events, and references to those after `n_first`."""

    id: str
    fit: Any
    base: Any
    n_base: int
    n_first: int
    events: tuple[Any, ...]

    @property
    def n_events(self) -> int:
        return self.n_first + len(self.events)


class Log:
    """The driver's side of it. Once the events are larger than the state, a copy of that takes their place, but for the last."""

    def __init__(self, cluster: Cluster, fit: Fit, state: State) -> None:
        self._cluster, self._id, self._fit = cluster, uuid4().hex, cluster.put((fit, versions()))
        self._n_first = 0
        self._events: list[Any] = []
        self._begin(state)

    def _begin(self, state: State) -> None:
        """A copy of the state, for who does not follow from the last event."""
        self._base, self._n_base = self._cluster.put(_without_averages(state)), self._n_first + len(self._events)
        self._bytes, self._base_bytes, self._n_flushes = 0, state.phi.nbytes, state.n_flushes

    def add(self, event: Step | Adoption, n_bytes: int, state: State) -> None:
        """Note an event, after which `state` is as it is."""
        self._events.append(self._cluster.put(event))
        self._bytes += n_bytes
        self._n_flushes = state.n_flushes
        if self._bytes > self._base_bytes:
            self._forget(len(self._events) - 1)
            self._begin(state)

    def _forget(self, n_events: int) -> None:
        self._n_first += n_events
        del self._events[:n_events]

    def view(self, state: State) -> View:
        """Of this state: that of the last event, or the same with its rows written anew, as reading the parameters leaves it."""
        if state.n_flushes != self._n_flushes:
            # As if it were an event that nobody can follow.
            self._forget(len(self._events))
            self._n_first += 1
            self._begin(state)
        return View(self._id, self._fit, self._base, self._n_base, self._n_first, tuple(self._events))


def _without_averages(state: State) -> State:
    """All that gradients depend on; the running averages are the driver's."""
    frame = np.concatenate([state.frame[:2], np.zeros_like(state.frame[2:])])
    return replace(
        state,
        frame=frame,
        average_phi=None,
        average_U=np.zeros_like(state.average_U),
        average_weight=0.0,
        word_lag=np.zeros_like(state.word_lag),
    )


# The worker's side.


@dataclass
class _Kept:
    """What a process keeps from one task to the next."""

    id: str
    place: Place
    state: State | None = None
    n_events: int = 0


_kept: list[_Kept] = []


def _following(view: View) -> _Kept:
    """The state of this process, moved to where the view is."""
    if not _kept or _kept[0].id != view.id:
        fit, of_driver = ray.get(view.fit)
        check_versions(of_driver)
        _kept[:] = [_Kept(view.id, Place(fit))]
    kept = _kept[0]
    state, n_events = kept.state, kept.n_events
    # Whatever ends a task in the middle leaves no state that is half moved.
    kept.state = None
    if state is None or not view.n_first <= n_events <= view.n_events:
        state, n_events = mirror_descent.copy(ray.get(view.base)), view.n_base
    kept.state = _moved(state, view.events[n_events - view.n_first :], kept.place.fit.n_threads)
    kept.n_events = view.n_events
    return kept


def learn_apart(view: View, round: Round, first: int, n_shards: int, n_pieces: int) -> Any:
    """What each of some neighbouring shards tells, and what they learned, in pieces."""
    kept = _following(view)
    told = []

    def leaf(shard: int) -> Change | None:
        state, kept.state = _following(view).state, None
        assert state is not None
        n_flushes = state.n_flushes
        change, seen = rounds.learned_apart(state, kept.place, round, shard, lambda: _again(view))
        kept.state = state if state.n_flushes == n_flushes else None
        if seen is not None:
            told.append(seen)
        return change

    change = rounds.along_tree(leaf, first, n_shards, changes.merged)
    n_words = kept.place.fit.source.corpus.n_words
    pieces = [None] * n_pieces if change is None else changes.split(change, n_words, n_pieces)
    return told, *pieces


def _again(view: View) -> State:
    """The state of the view, made anew."""
    return _moved(mirror_descent.copy(ray.get(view.base)), view.events[view.n_base - view.n_first :], 1)


def _moved(state: State, events: Iterable[Any], n_threads: int) -> State:
    for event in events:
        ray.get(event).take(state, 0.0, n_threads)
    return state


def gradients_of_part(view: View, part: Part) -> tuple[Seen, Gradients]:
    kept = _following(view)
    assert kept.state is not None
    gradients, seen = rounds.part_gradients(kept.state, kept.place, part)
    return seen, gradients


def merge_changes(left: Change | None, right: Change | None) -> Change | None:
    return rounds.merged_parts(left, right, changes.merged)


def merge_gradients(left: Gradients | None, right: Gradients | None) -> Gradients | None:
    return rounds.merged_parts(left, right, gradients.merged)


# The driver's side.


class ClusterSteps:
    """Takes the steps of `training.train` on a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._log: Log | None = None
        self._slots: list[str] = []
        self._looked_at = -np.inf

    def __call__(self, run: Run, source: Source, response: Response, schedule: Schedule, n_threads: int) -> Iterator[Seen]:
        assert isinstance(source, StoredExamples)
        self._fit = Fit(source, response, schedule, n_threads)
        if self._log is None:
            self._cluster.check(_can_open(source))
            self._log = Log(self._cluster, self._fit, run.state)
            self._tell_of_idle(schedule.batch_size(schedule.n_epochs - 1), n_threads)
        n_batches, is_exact = self._fit.n_batches(run.epoch), self._cluster.sync_every == 1
        while run.batch < n_batches:
            if is_exact or run.state.n_steps == 0:
                # Without a step before, there are no rates that a round could go by.
                yield from self._together(run, n_batches if is_exact else run.batch + 1)
            else:
                yield self._apart(run, min(self._cluster.sync_every, n_batches - run.batch))

    def _together(self, run: Run, end: int) -> Iterator[Seen]:
        """Steps up to the batch `end`, each on the gradient of the whole batch."""
        fit = self._fit
        size = fit.schedule.batch_size(run.epoch)
        for window in windows(fit.source.n_docs, fit.source.corpus.n_entries, size, run.order, run.batch):
            for begin in range(0, len(window), size):
                if run.batch >= end:
                    return
                yield self._step(run, window[begin : begin + size])

    def _step(self, run: Run, batch: np.ndarray) -> Seen:
        fit, cluster = self._fit, self._cluster
        rates, seed = fit.rates(run.n_steps), drawn(run.state, fit.schedule, run.rng)
        block_docs = _core.block_docs(len(batch))
        span = _power_of_two(-(-len(batch) // block_docs))
        n_docs = block_docs * span // min(span, self._n_groups(span))
        parts = [
            Part(batch[first : first + n_docs], first, block_docs, run.n_steps, seed, run.layers)
            for first in range(0, len(batch), n_docs)
        ]
        view = self._view(run.state)
        tasks = [self._submit(gradients_of_part, i, len(parts), 2, view, part) for i, part in enumerate(parts)]
        (gradients,) = self._reduced([[task[1] for task in tasks]], merge_gradients)
        told = cluster.get([task[0] for task in tasks])
        event = Step(gradients, fit.mean_weight * len(batch), replace(rates, average=0.0))
        event.take(run.state, rates.average, fit.n_threads)
        self._note(event, gradients.grad_phi.nbytes + gradients.grad_U.nbytes, run.state)
        return rounds.joined(told, 1)

    def _apart(self, run: Run, n_batches: int) -> Seen:
        """A round of so many batches."""
        fit, cluster = self._fit, self._cluster
        size = fit.schedule.batch_size(run.epoch)
        n_left, n_shards = fit.source.n_docs - (run.batch + n_batches) * size, rounds.n_shards(size)
        # Only the latest documents of an epoch are scored, and used.
        n_scored, n_used = (
            -(-wanted // n_shards) if n_left < wanted else 0
            for wanted in (SCORED_DOCS, 0 if run.usage is None else run.usage.wanted)
        )
        seed = int(run.rng.integers(2**63))
        round = Round(run.epoch, run.batch, n_batches, run.n_steps, run.order, seed, run.layers, n_scored, n_used)
        n_groups = self._n_groups(n_shards)
        n_pieces = -(-2 * run.state.phi.size // _PIECE_BYTES)
        view, each = self._view(run.state), n_shards // n_groups
        tasks = [
            self._submit(learn_apart, group, n_groups, 1 + n_pieces, view, round, group * each, each, n_pieces)
            for group in range(n_groups)
        ]
        pieces = self._reduced([[task[1 + i] for task in tasks] for i in range(n_pieces)], merge_changes)
        # In the order of the shards, whoever computed them.
        told = [seen for of_group in cluster.get([task[0] for task in tasks]) for seen in of_group]
        if not told:
            return rounds.joined(told, n_batches)
        change = changes.in_a_row(pieces)
        event = Adoption(change, n_batches)
        average = sum(fit.rates(run.n_steps + i).average for i in range(n_batches))
        event.take(run.state, average, fit.n_threads)
        n_bytes = change.log_phi.nbytes + change.U.nbytes + (0 if change.theme_counts is None else change.theme_counts.nbytes)
        self._note(event, n_bytes, run.state)
        return rounds.joined(told, n_batches)

    def _reduced(self, references: list[list[Any]], merge: Callable[[Any, Any], Any]) -> list[Any]:
        """Each list merged along the tree; the last two of it here, where the result is needed."""
        left = [self._cluster.reduce(merge, of_one, leave=2) for of_one in references]
        found = [self._cluster.get(of_one) for of_one in left]
        return [of_one[0] if len(of_one) == 1 else merge(*of_one) for of_one in found]

    def _submit(self, function: Callable[..., Any], number: int, n_tasks: int, n_returns: int, *arguments: Any) -> Any:
        """The same task of every round goes to the same machine, which has read its documents before."""
        slots = self._slots
        node = slots[number * len(slots) // n_tasks]
        return self._cluster.submit(function, *arguments, n_threads=self._fit.n_threads, node=node, n_returns=n_returns)

    def _n_groups(self, most: int) -> int:
        """Tasks of a round: one for each worker, or where these cannot share evenly as many as there can be."""
        if time.monotonic() - self._looked_at > LOOK_SECONDS:
            self._looked_at = time.monotonic()
            try:
                self._slots = self._cluster.slots(self._fit.n_threads)
            except ClusterError:
                # All machines may be gone for a while: Ray waits for others.
                if not self._slots:
                    raise
        n_workers = len(self._slots)
        return min(most, n_workers if n_workers == _power_of_two(n_workers) else most)

    def _view(self, state: State) -> View:
        assert self._log is not None
        return self._log.view(state)

    def _note(self, event: Step | Adoption, n_bytes: int, state: State) -> None:
        assert self._log is not None
        self._log.add(event, n_bytes, state)

    def _tell_of_idle(self, batch_size: int, n_threads: int) -> None:
        most = rounds.n_shards(batch_size) if self._cluster.sync_every > 1 else -(-batch_size // _core.block_docs(batch_size))
        if (n_workers := self._cluster.n_workers(n_threads)) > most:
            warnings.warn(
                f"batches of {batch_size} documents are work for {most} workers, the cluster has {n_workers}: "
                "a larger batch_size gives work to more",
                stacklevel=2,
            )


def _power_of_two(n: int) -> int:
    """The smallest that is at least n."""
    return 1 << (n - 1).bit_length()


def _can_open(source: StoredExamples) -> Callable[[], Any]:
    corpus = source.corpus
    opening, arguments = corpus.__reduce__()[:2]
    return lambda: opening(*arguments)
