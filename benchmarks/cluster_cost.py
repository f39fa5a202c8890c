"""What training on a cluster takes, in time and traffic: a model, computed from constants that cluster.py has measured.

python benchmarks/cluster_cost.py [--documents 100000000] [--machines 16] [--cores 16] [--words 50000] [--topics 20 100] ...

A round of `sync_every` batches takes: the documents, divided by what all busy cores do; the change of the topics, two bytes for
each of a word, up a binary tree of machines and down again over the network; and the work of the processor on it, level by level.
Nothing overlaps in this model.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mirrorlda.cluster.rounds import n_shards

CONSTANTS = Path(__file__).parent / "cluster_constants.json"


@dataclass(frozen=True)
class Cost:
    """Of one epoch."""

    workers: int
    n_rounds: int
    megabytes: float
    compute: float
    exchange: float

    @property
    def seconds(self) -> float:
        return self.compute + self.exchange

    @property
    def busy(self) -> float:
        return self.compute / self.seconds


def cost(constants: dict[str, float], options: argparse.Namespace, batch_size: int, n_topics: int) -> Cost:
    n_shards_ = n_shards(batch_size)
    workers = min(options.machines * options.cores, n_shards_)
    # Documents of a core take time in proportion to the topics, beyond what they take with none.
    seconds_of_document = constants["document"] + constants["document_topic"] * n_topics
    n_rounds = math.ceil(options.documents / (batch_size * options.sync_every))
    compute = options.documents * seconds_of_document / workers
    change = options.words * (2 * n_topics + 8)
    levels = math.ceil(math.log2(options.machines)) if options.machines > 1 else 0
    network = 2 * levels * change / (options.gigabits * 1e9 / 8)
    # Every shard of a worker makes a change, these are merged, then two at every level of the tree over workers; the driver takes
    # the result over, then all workers do at once.
    shards_of_worker = math.ceil(n_shards_ / workers)
    n_merges = shards_of_worker - 1 + math.ceil(math.log2(workers))
    work = shards_of_worker * constants["made_byte"] + n_merges * constants["merged_byte"] + 2 * constants["adopted_byte"]
    processor = constants["round"] + change * work
    return Cost(workers, n_rounds, change / 1e6, compute, n_rounds * (network + processor))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--documents", type=float, default=1e8)
    parser.add_argument("--machines", type=int, default=16)
    parser.add_argument("--cores", type=int, default=16, help="of each machine")
    parser.add_argument("--words", type=int, default=50_000, help="of the vocabulary, all of which occur in a round")
    parser.add_argument("--topics", type=int, nargs="+", default=[20, 100])
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[32_000, 128_000])
    parser.add_argument("--sync-every", type=int, default=100)
    parser.add_argument("--gigabits", type=float, default=10.0, help="of the network, a second")
    parser.add_argument("--epochs", type=int, default=10)
    options = parser.parse_args(arguments)
    constants = json.loads(CONSTANTS.read_text())
    heads = ["topics", "batch", "busy cores", "rounds an epoch", "traffic a round and machine", "an epoch"]
    heads += [f"{options.epochs} epochs", "of it documents"]
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    for n_topics in options.topics:
        for batch_size in options.batch_sizes:
            found = cost(constants, options, batch_size, n_topics)
            print(
                f"| {n_topics} | {batch_size:,} | {found.workers} | {found.n_rounds} | {found.megabytes:.1f} MB each way "
                f"| {found.seconds:.0f} s | {options.epochs * found.seconds / 60:.0f} min | {100 * found.busy:.0f} % |"
            )


if __name__ == "__main__":
    main()
