"""Training on a Ray cluster of one machine: how much two workers do more than one, what a round costs, and what it sends.

    python benchmarks/cluster.py [--docs 1000000] [--directory build/scale] [--only speed overhead traffic] [--sync-every 100]

Documents are those of scale.py. Every worker is a node of its own with one processor. What is measured is the time between two
rounds, from the third of a fit on; figures are ratios within one run.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
from cluster_cost import CONSTANTS
from mirrorlda.distributed import Cluster, training
from ray.cluster_utils import Cluster as Nodes
from scale import corpus_of

from mirrorlda import Corpus, TopicRegressor
from mirrorlda.cluster import changes, rounds
from mirrorlda.training import mirror_descent

STORE_BYTES = 600 * 2**20
# Rounds that the CPU of a round is computed from: batches of each, and how many rounds; long ones and short ones.
LENGTHS = ((50, 10), (2, 200))
MEASUREMENTS = ["speed", "overhead", "traffic"]


@contextmanager
def nodes(n: int, store_bytes: int = STORE_BYTES) -> Iterator[str]:
    """So many nodes of one processor each; the address of their head."""
    options = {"num_cpus": 1, "object_store_memory": store_bytes}
    started = Nodes(initialize_head=True, head_node_args={**options, "include_dashboard": False})
    for _ in range(n - 1):
        started.add_node(**options)
    started.wait_for_nodes()
    try:
        yield started.address
    finally:
        started.shutdown()


def descendants(pid: int) -> list[int]:
    """Processes that this one started, and theirs."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += [int(child), *descendants(int(child))] if Path(f"/proc/{child}/task").exists() else []
    return found


def cpu_seconds() -> float:
    """Of this process and all that it started, Ray's own among them."""
    total = 0.0
    for pid in [os.getpid(), *descendants(os.getpid())]:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


class Watched:
    """A cluster whose rounds are timed, from the third on: the first start processes, and take a step together."""

    def __init__(self, cluster: Cluster, n_rounds: int) -> None:
        self._cluster, self._n_rounds = cluster, n_rounds
        self._number = self.n_docs = self.counted = 0
        self._begin = self._cpu = self.seconds = self.cpu = 0.0

    def steps(self) -> Any:
        inner = self._cluster.steps()

        def steps(*arguments: Any) -> Iterator[Any]:
            for seen in inner(*arguments):
                self._number += 1
                if self._number <= 2:
                    # A look at all processes takes time itself: there is one here, and one at the end.
                    self._cpu, self._begin = cpu_seconds(), time.perf_counter()
                else:
                    self.n_docs += seen.n_docs
                    self.counted += 1
                    self.seconds = time.perf_counter() - self._begin
                yield seen
                if self._number == self._n_rounds:
                    self.cpu = cpu_seconds() - self._cpu
                    raise KeyboardInterrupt

        return steps


def watched_fit(corpus: Corpus, address: str, n_topics: int, n_rounds: int, **options: Any) -> Watched:
    with Cluster(address, **options) as cluster:
        watched = Watched(cluster, n_rounds)
        with suppress(KeyboardInterrupt):
            TopicRegressor(n_topics, n_epochs=1, random_state=0).fit(corpus, cluster=watched)
        return watched


def speed(corpus: Corpus, sync_every: int) -> None:
    """One worker and two in turn, round by round of one fit: what else the machine does slows both."""
    seconds: dict[int, list[float]] = {1: [], 2: []}
    every_round = mock.patch.object(training, "LOOK_SECONDS", -1.0)
    with every_round, nodes(2) as address, Cluster(address, sync_every=sync_every) as cluster, timed_shards() as of_shards:
        inner, number = cluster.steps(), 0

        def steps(*arguments: Any) -> Iterator[Any]:
            nonlocal number
            begin = time.perf_counter()
            for seen in inner(*arguments):
                n_workers = 1 + number % 2
                # The first rounds start processes, and open files.
                if number > 6 and seen.n_docs > 0.99 * 1000 * cluster.sync_every:
                    seconds[n_workers].append((time.perf_counter() - begin) / seen.n_docs)
                number += 1
                cluster.most_workers = 1 + number % 2
                yield seen
                begin = time.perf_counter()

        cluster.most_workers = 1
        watched = SimpleNamespace(steps=lambda: steps)
        TopicRegressor(20, n_epochs=8, batch_size=1000, random_state=0).fit(corpus, cluster=watched)
        of_rounds = of_shards()
    for n_workers, found in seconds.items():
        print(
            f"  {n_workers} worker{'s' * (n_workers > 1)}: {1 / np.median(found):,.0f} documents a second ({len(found)} rounds)"
        )
    ratios = [one / two for one, two in zip(*seconds.values(), strict=False)]
    ratio, quarters = np.median(ratios), np.quantile(ratios, [0.25, 0.75])
    print(
        f"two workers: {ratio:.2f} times the documents of one, in half of the pairs of rounds {quarters[0]:.2f} to "
        f"{quarters[1]:.2f}; must be 1.7"
    )
    # One worker takes a shard after the other, of two the slower is waited for.
    together = {1: sum, 2: max}
    alone = [np.median([together[n](times) for n, times in of_rounds if n == n_workers]) for n_workers in (1, 2)]
    print(f"  the shards alone, without what is sent and received: {alone[0] / alone[1]:.2f} times", flush=True)


@contextmanager
def timed_shards() -> Iterator[Callable[[], list[tuple[int, list[float]]]]]:
    """What workers take for the shards of a round, without what they send and receive: how many work at once, and seconds."""
    original = training.learn_apart
    with tempfile.NamedTemporaryFile() as log:
        path = log.name

        def learn_apart(view: Any, round: Any, first: int, n_shards: int, n_pieces: int) -> Any:
            learned_apart = rounds.learned_apart

            def timed(*arguments: Any) -> Any:
                begin = time.perf_counter()
                found = learned_apart(*arguments)
                with Path(path).open("a") as times:
                    times.write(f"{round.step} {2 // n_shards} {time.perf_counter() - begin}\n")
                return found

            rounds.learned_apart = timed
            try:
                return original(view, round, first, n_shards, n_pieces)
            finally:
                rounds.learned_apart = learned_apart

        def found() -> list[tuple[int, list[float]]]:
            of_rounds: dict[str, tuple[int, list[float]]] = {}
            for line in Path(path).read_text().splitlines():
                step, n_workers, seconds = line.split()
                of_rounds.setdefault(step, (int(n_workers), []))[1].append(float(seconds))
            return list(of_rounds.values())

        training.learn_apart = learn_apart
        try:
            yield found
        finally:
            training.learn_apart = original


def overhead(
    corpus: Corpus, n_topics: int, repeats: int = 3, lengths: Sequence[tuple[int, int]] = LENGTHS
) -> tuple[float, float]:
    """CPU of a round and of a document, from the same batches in more and in fewer rounds."""
    rounds, documents = [], []
    with nodes(2) as address:
        for _ in range(repeats):
            found = []
            for sync_every, n_rounds in lengths:
                watched = watched_fit(corpus, address, n_topics, n_rounds, sync_every=sync_every)
                found.append((watched.cpu / watched.n_docs, watched.n_docs / watched.counted))
            (long, long_docs), (short, short_docs) = found
            rounds.append((short - long) / (1 / short_docs - 1 / long_docs))
            documents.append(long - rounds[-1] / long_docs)
    round, document = float(np.median(rounds)), float(np.median(documents))
    runs = ", ".join(f"{1000 * each:.0f}" for each in rounds)
    limit = ", must be below 60" if n_topics == 100 else ""
    print(f"a round at {corpus.n_words:,} x {n_topics}: {1000 * round:.0f} ms of CPU in all processes (runs: {runs}){limit}")
    print(f"  a document: {1e6 * document:.1f} us of CPU", flush=True)
    return round, document


def constants(corpus: Corpus) -> dict[str, float]:
    """What cluster_cost.py computes with, in seconds."""
    (_, document_20), (_, document_100) = overhead(corpus, 20), overhead(corpus, 100)
    of_topic = (document_100 - document_20) / 80
    return {
        "document": document_20 - 20 * of_topic,
        "document_topic": of_topic,
        "round": empty_round(),
        **change_bytes(corpus.n_words, 100),
    }


def empty_round(n_rounds: int = 200) -> float:
    """Two tasks that do nothing, begun and waited for."""

    def nothing(number: int) -> int:
        return number

    with nodes(2) as address, Cluster(address) as cluster:
        slots, begin = cluster.slots(), 0.0
        for number in range(n_rounds + 20):
            if number == 20:
                begin = time.perf_counter()
            cluster.get([cluster.submit(nothing, number, node=slot) for slot in slots])
        return (time.perf_counter() - begin) / n_rounds


def change_bytes(n_words: int, n_topics: int) -> dict[str, float]:
    """Of each byte of a change: to make it, to merge two, to take one over."""
    rng = np.random.default_rng(0)
    phi = np.ascontiguousarray(rng.dirichlet(np.ones(n_words), n_topics).T, np.float32)
    state = mirror_descent.begin(phi, np.zeros((1, n_topics), np.float32), np.ones(n_words))
    before = rounds.Before(state, np.arange(n_words, dtype=np.int32))
    change = before.change(state, 1.0, lambda: state)
    calls = {
        "made_byte": lambda: before.change(state, 1.0, lambda: state),
        "merged_byte": lambda: changes.merged(change, change),
        "adopted_byte": lambda: changes.adopt(state, change, 1, 0.0, 1),
    }
    return {name: timed(call) / change.log_phi.nbytes for name, call in calls.items()}


def timed(call: Callable[[], Any], repeats: int = 30) -> float:
    """The median of some calls."""
    found = []
    for _ in range(repeats):
        begin = time.perf_counter()
        call()
        found.append(time.perf_counter() - begin)
    return float(np.median(found))


def traffic(corpus: Corpus, n_topics: int, **options: Any) -> None:
    """Bytes of what tasks return and of what the log sends, in rounds of the default length."""
    sent: list[int] = []
    add = training.Log.add

    def counted(log: Any, event: Any, n_bytes: int, state: Any) -> None:
        sent.append(len(pickle.dumps(event)))
        add(log, event, n_bytes, state)

    training.Log.add = counted  # type: ignore[method-assign]
    try:
        with nodes(1, 3 * 4 * corpus.n_words * n_topics + STORE_BYTES) as address:
            watched_fit(corpus, address, n_topics, 5, **options)
    finally:
        training.Log.add = add  # type: ignore[method-assign]
    whole = 4 * corpus.n_words * n_topics
    print(
        f"a round at {corpus.n_words:,} x {n_topics}: {np.mean(sent[1:]) / 1e6:.2f} MB to each machine, at most that from each; "
        f"Phi has {whole / 1e6:.1f} MB"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--docs", type=int, default=1_000_000)
    parser.add_argument("--directory", type=Path, default=Path("build/scale"))
    parser.add_argument("--write", action="store_true", help=f"keep the constants, in {CONSTANTS.name}")
    parser.add_argument("--only", nargs="+", choices=MEASUREMENTS, default=MEASUREMENTS)
    parser.add_argument("--sync-every", type=int, default=100, help="batches of a round, where the speed is measured")
    options = parser.parse_args(arguments)
    options.directory.mkdir(parents=True, exist_ok=True)
    corpus = Corpus(corpus_of(options.directory, options.docs, 5000))
    if "speed" in options.only:
        speed(corpus, options.sync_every)
    if "overhead" in options.only:
        found = constants(corpus)
        if options.write:
            CONSTANTS.write_text(json.dumps(found, indent=1) + "\n")
    if "traffic" in options.only:
        traffic(corpus, 100)
        traffic(Corpus(corpus_of(options.directory, 200_000, 701_000)), 200)


if __name__ == "__main__":
    main()
