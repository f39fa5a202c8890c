"""Prediction against the number of topics, all systems, five folds (the paper's figure 3).

python experiments/figure3.py DATA_DIR [--quick]
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import command
import systems
from command import Size
from comparison import curve_of, jobs, leads_of, load, measure, panel, table_of
from plots import zoomed
from rows import N_FOLDS, Row
from running import Experiment
from systems import SYSTEMS

FULL = Size(n_docs=None, topics=(5, 10, 20, 50, 100, 200), repeats=N_FOLDS)
QUICK = Size(n_docs=1_000, topics=(5, 20), repeats=1)
# Of the paper's third panel: systems always this close to the best AUC.
ZOOM = 0.05


def rows(data: Path) -> list[Row]:
    return [
        Row("tripadvisor-stars", data / "tripadvisor_79k.jsonl.gz", "stars", "r2", n_words=5_000),
        Row("imdb-sentiment", data / "imdb.jsonl.gz", "sentiment", "roc_auc", n_words=1_000),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = command.parsed(command.parser(__doc__, FULL, list(SYSTEMS)), FULL, QUICK, arguments)
    measured = command.sized(rows(chosen.data or Path()), chosen)
    curves = [curve_of(system) for system in chosen.systems]
    runs = command.run(
        "figure3", Experiment(load, systems.make, measure), jobs(measured, curves, chosen.topics, chosen.repeats), chosen
    )
    shown = [(runs, row, curves, chosen.topics) for row in measured]
    panels = [panel(*what) for what in shown]
    zooms = [zoomed(each, ZOOM) for row, each in zip(measured, panels, strict=True) if row.measure == "roc_auc" and each.lines]
    tables = [part(*what) for what in shown for part in (table_of, leads_of)]
    return command.write("figure3", chosen, [*panels, *zooms], tables, runs)


if __name__ == "__main__":
    raise SystemExit(main())
