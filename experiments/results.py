"""Runs that have finished: a JSON-lines file of them, and their table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Run:
    """One system trained once on one row's data."""

    row: str
    system: str
    seed: int
    scores: dict[str, float]
    seconds: float
    cpu_seconds: float
    n_jobs: int
    chosen: str

    @property
    def key(self) -> tuple[str, str, int]:
        return self.row, self.system, self.seed


def read_runs(path: Path) -> dict[tuple[str, str, int], Run]:
    """The last run of each row, system and seed."""
    if not path.exists():
        return {}
    runs = [Run(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    return {run.key: run for run in runs}


def append_run(path: Path, run: Run) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(run)) + "\n")


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A Markdown table with aligned columns."""
    lines = [header, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in [lines[0], ["-" * width for width in widths], *lines[1:]]:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |")
