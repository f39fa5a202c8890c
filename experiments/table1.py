"""All documents, by the number of topics and the prior: linear models, networks, BP-sLDA (the paper's table 1).

python experiments/table1.py DATA_DIR [--quick]
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import command
import systems
from command import Size
from comparison import DISCRIMINATIVE, curve_of, jobs, leads_of, load, measure, panel, table_of
from rows import N_FOLDS, Row
from running import Experiment

FULL = Size(n_docs=None, topics=(5, 10, 20, 50, 100, 200), repeats=N_FOLDS)
QUICK = Size(n_docs=4_000, topics=(5, 20), repeats=1)
# Of the paper; mirrorlda's own prior is another.
ALPHAS = (1.001, 0.5, 0.1)
PRIORS = {"bp-slda": (None, *ALPHAS), "bp-slda-paper": ALPHAS}


def rows(data: Path) -> list[Row]:
    hotels, films = data / "tripadvisor_79k.jsonl.gz", data / "imdb.jsonl.gz"
    return [
        Row("tripadvisor-stars", hotels, "stars", "r2"),
        Row("imdb-rating", films, "rating", "r2"),
        Row("tripadvisor-stars-all-words", hotels, "stars", "r2", n_words=None),
        Row("imdb-rating-all-words", films, "rating", "r2", n_words=None),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = command.parsed(command.parser(__doc__, FULL, DISCRIMINATIVE), FULL, QUICK, arguments)
    measured = command.sized(rows(chosen.data or Path()), chosen)
    curves = [curve_of(name, alpha) for name in chosen.systems for alpha in PRIORS.get(name, (None,))]
    runs = command.run(
        "table1", Experiment(load, systems.make, measure), jobs(measured, curves, chosen.topics, chosen.repeats), chosen
    )
    shown = [(runs, row, curves, chosen.topics) for row in measured]
    tables = [part(*what) for what in shown for part in (table_of, leads_of)]
    return command.write("table1", chosen, [panel(*what) for what in shown], tables, runs)


if __name__ == "__main__":
    raise SystemExit(main())
