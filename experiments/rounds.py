"""Rounds on a cluster against one machine: held-out R2 of hotel reviews after as many epochs, for several lengths of a round.

python experiments/rounds.py DATA_DIR [--seeds 5]

The cluster is this machine's unless --cluster has the address of another: what is learned does not depend on the number of
workers. A larger batch has more shards.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from mirrorlda.distributed import Cluster

from mirrorlda import TopicRegressor, prepare

SYNC_EVERY = (1, 10, 100)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path, metavar="DATA_DIR", help="where tripadvisor_79k.jsonl.gz is")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--topics", type=int, default=20)
    parser.add_argument("--batch-sizes", nargs="+", type=int, default=[1000, 4000, 16_000], metavar="N")
    parser.add_argument("--cluster", default="local", metavar="ADDRESS", help="local, auto or the address of a Ray cluster")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, Cluster(options.cluster) as cluster:
        file = options.data / "tripadvisor_79k.jsonl.gz"
        corpus = prepare(file, Path(folder) / "corpus", text="text", target="stars", split="split", max_words=5000)
        train, test = corpus.select(split="train"), corpus.select(split="test")
        for batch_size in options.batch_sizes:
            models = [TopicRegressor(options.topics, batch_size=batch_size, random_state=seed) for seed in range(options.seeds)]
            alone = [model.fit(train).score(test) for model in models]
            _tell(f"batches of {batch_size}, one machine", alone, alone)
            for sync_every in SYNC_EVERY:
                cluster.sync_every = sync_every
                scores = [model.fit(train, cluster=cluster).score(test) for model in models]
                _tell(f"batches of {batch_size}, sync_every={sync_every}", scores, alone)


def _tell(name: str, scores: list[float], alone: list[float]) -> None:
    spread = f" ({np.std(scores, ddof=1):.4f})" if len(scores) > 1 else ""
    difference = np.mean(scores) - np.mean(alone)
    print(f"{name}: {np.mean(scores):.4f}{spread}, {difference:+.4f}", flush=True)


if __name__ == "__main__":
    main()
