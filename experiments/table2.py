"""Two classes, a large vocabulary, several seeds: logistic regression, networks, BP-sLDA (the paper's table 2).

    python experiments/table2.py DATA_DIR [--quick]

Documents are those of the file's own training and test part; what varies is the start of training.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import command
import systems
from command import Size
from comparison import DISCRIMINATIVE, curve_of, jobs, measure, panel, table_of
from rows import Data, Row, examples
from running import Experiment, Job
from systems import SYSTEMS

FULL = Size(n_docs=None, topics=(5, 10, 20, 50, 100, 200), repeats=5)
QUICK = Size(n_docs=4_000, topics=(5, 20), repeats=1)


def rows(data: Path) -> list[Row]:
    return [Row("imdb-sentiment-all-words", data / "imdb.jsonl.gz", "sentiment", "roc_auc", n_words=None)]


def load(job: Job) -> Data:
    return examples(job.row, job.repeat)


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = command.parsed(command.parser(__doc__, FULL, DISCRIMINATIVE), FULL, QUICK, arguments)
    measured = command.sized(rows(chosen.data or Path()), chosen)
    curves = [curve_of(system) for system in chosen.systems]
    todo = [
        job for job in jobs(measured, curves, chosen.topics, chosen.repeats) if job.repeat == 0 or SYSTEMS[job.system].is_random
    ]
    runs = command.run("table2", Experiment(load, systems.make, measure), todo, chosen)
    shown = [(runs, row, curves, chosen.topics) for row in measured]
    return command.write("table2", chosen, [panel(*what) for what in shown], [table_of(*what) for what in shown], runs)


if __name__ == "__main__":
    raise SystemExit(main())
