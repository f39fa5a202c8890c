"""Runs that have finished: a CSV file of them, what they come to, and tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t


@dataclass(frozen=True)
class Run:
    """One measure of one system, trained once on one row's data; where training failed the score is NaN."""

    row: str
    # Of the row's documents and fields.
    fingerprint: str
    system: str
    # A number of topics, a prior and a number of layers where the experiment sets them.
    n_topics: int | None
    alpha: float | None
    n_layers: int | None
    # Number of the fold, or the seed.
    repeat: int
    measure: str
    score: float
    # Of training, the choice of settings included.
    seconds: float
    cpu_seconds: float
    n_docs: int
    n_jobs: int
    chosen: str = ""
    error: str = ""
    # When it ended: a file may be of several days.
    day: str = ""

    @property
    def key(self) -> tuple[Any, ...]:
        """What is not run again: all that the experiment sets."""
        return self.row, self.fingerprint, self.system, self.n_topics, self.alpha, self.n_layers, self.repeat


NAMES = [field.name for field in fields(Run)]


def _parsed(line: dict[str, str]) -> Run:
    numbers = {"n_topics": int, "alpha": float, "n_layers": int, "repeat": int, "score": float}
    numbers |= {"seconds": float, "cpu_seconds": float, "n_docs": int, "n_jobs": int}
    values = {name: None if text == "" else numbers[name](text) if name in numbers else text for name, text in line.items()}
    return Run(**values | {"chosen": line["chosen"], "error": line["error"]})


def _whole_jobs(path: Path) -> tuple[list[list[str]], bool]:
    """The cells of a file, the names of the columns first, and whether a kill cut it short.

    The job of the last whole line then is left out, since some of its lines may be missing: it is run again.
    """
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    lines = list(csv.reader(io.StringIO(text, newline="")))
    is_whole = text.endswith("\n") and text.count('"') % 2 == 0
    if is_whole or not lines:
        return lines, not is_whole
    lines.pop()
    last = [line[: NAMES.index("measure")] for line in lines[-1:]]
    return [line for number, line in enumerate(lines) if number == 0 or line[: NAMES.index("measure")] not in last], True


def read_runs(path: Path) -> list[Run]:
    """The runs of a file, the last one of each measure where some were repeated."""
    header, *lines = _whole_jobs(path)[0] or [NAMES]
    if header != NAMES:
        raise ValueError(f"{path}: found the columns {header}, expected {NAMES}")
    runs = [_parsed(dict(zip(NAMES, line, strict=True))) for line in lines]
    return list({(*run.key, run.measure): run for run in runs}.values())


def append_runs(path: Path, runs: Iterable[Run]) -> None:
    """All lines in one write; what a kill left of an earlier one is taken away."""
    path.parent.mkdir(parents=True, exist_ok=True)
    kept, is_cut = _whole_jobs(path)
    lines = io.StringIO(newline="")
    writer = csv.writer(lines, lineterminator="\n")
    if is_cut:
        writer.writerows(kept or [NAMES])
    writer.writerows(asdict(run).values() for run in runs)
    with path.open("w" if is_cut else "a", encoding="utf-8", newline="") as file:
        file.write(lines.getvalue())


@dataclass(frozen=True)
class Summary:
    """Mean and standard deviation of some runs' scores; NaN where there are none, or one for the deviation."""

    mean: float
    deviation: float = np.nan
    n_runs: int = 1
    seconds: float = np.nan
    cpu_seconds: float = np.nan

    @property
    def half_width(self) -> float:
        """Of the 95 % confidence interval of the mean, by Student's t; NaN for one run."""
        return float(t.ppf(0.975, self.n_runs - 1) * self.deviation / np.sqrt(self.n_runs)) if self.n_runs > 1 else np.nan

    def __str__(self) -> str:
        if not self.n_runs:
            return ""
        return f"{self.mean:.4f}" + (f" ({self.deviation:.4f})" if self.n_runs > 1 else "")


def summary(runs: Iterable[Run]) -> Summary:
    """Of the runs that did not fail."""
    runs = [run for run in runs if not run.error]
    if not runs:
        return Summary(np.nan, n_runs=0)
    score, seconds, cpu_seconds = np.mean([(run.score, run.seconds, run.cpu_seconds) for run in runs], axis=0).tolist()
    deviation = float(np.std([run.score for run in runs], ddof=1)) if len(runs) > 1 else np.nan
    return Summary(score, deviation, len(runs), seconds, cpu_seconds)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table with aligned columns."""
    lines = [header, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines = [lines[0], ["-" * width for width in widths], *lines[1:]]
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    )
