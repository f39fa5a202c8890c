"""Systems side by side, by the number of topics: what is to be run, how it is measured, tables and charts of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from mirrorlda.metrics import auc, predictive_r2
from mirrorlda.metrics.folds import scores_of

from plots import Line, Panel
from results import Run, Summary, summary, table
from rows import N_FOLDS, Data, Row, fold
from running import Job
from systems import SYSTEMS

MEASURES = {
    "r2": "predictive R2",
    "roc_auc": "AUC",
    "accuracy": "accuracy",
    "sparsity": "share of the topics that make up 90 %",
    "log-likelihood": "log-likelihood per word",
}


def load(job: Job) -> Data:
    """`repeat` is the number of the fold."""
    return fold(job.row, job.repeat)


def measure(job: Job, model: Any, data: Data) -> dict[str, float]:
    """Predictive R2, the area under the curve of the second class or, with more than two, accuracy."""
    if job.row.measure == "r2":
        return {"r2": predictive_r2(data.y_test, model.predict(data.X_test))}
    if job.row.measure == "accuracy":
        return {"accuracy": float(np.mean(model.predict(data.X_test) == data.y_test))}
    return {"roc_auc": auc(data.y_test, scores_of(model, data.X_test))}


# What the paper's tables compare BP-sLDA with.
DISCRIMINATIVE = ["bp-slda", "bp-slda-paper", "network", "deep-network", "linear-counts", "linear-tfidf"]


class Curve(NamedTuple):
    """A system, its name in tables and charts, and a prior where the experiment sets one."""

    system: str
    label: str
    alpha: float | None = None
    # Whether its scores depend on the number of topics.
    has_topics: bool = True

    def sizes(self, topics: Sequence[int]) -> Sequence[int | None]:
        return topics if self.has_topics else [None]

    def of(self, runs: Sequence[Run], row: Row, n_topics: int | None, measure: str | None = None) -> list[Run]:
        """Those of this system, of the row's own measure or another."""
        what = row.name, self.system, self.alpha, n_topics, measure or row.measure
        return [run for run in runs if (run.row, run.system, run.alpha, run.n_topics, run.measure) == what]

    def score(self, runs: Sequence[Run], row: Row, n_topics: int | None, measure: str | None = None) -> Summary:
        return summary(self.of(runs, row, n_topics, measure))


def curve_of(system: str, alpha: float | None = None) -> Curve:
    """Of a system that the paper compares."""
    label, has_topics = SYSTEMS[system].label, SYSTEMS[system].has_topics
    return Curve(system, label + ("" if alpha is None else f", alpha {alpha:g}"), alpha, has_topics)


def jobs(rows: Sequence[Row], curves: Sequence[Curve], topics: Sequence[int], repeats: int) -> list[Job]:
    """All systems on one fold, then on the next: what is there when time is out can be compared."""
    return [
        Job(row, curve.system, repeat, n_topics, curve.alpha)
        for repeat in range(repeats)
        for row in rows
        for n_topics in [None, *topics]
        for curve in curves
        if n_topics in curve.sizes(topics)
    ]


def panel(
    runs: Sequence[Run], row: Row, curves: Sequence[Curve], topics: Sequence[int], measure: str | None = None, title: str = ""
) -> Panel:
    """Scores over topics; what does not depend on them is a horizontal line."""
    lines = []
    for curve in curves:
        scores = {n_topics: curve.score(runs, row, n_topics, measure) for n_topics in curve.sizes(topics)}
        scores = {n_topics: score for n_topics, score in scores.items() if score.n_runs}
        x = None if None in scores else list(scores)
        lines += [Line(curve.label, list(scores.values()), x, curve.system.startswith("bp-"))] if scores else []
    return Panel(title or row.name, "topics", MEASURES[measure or row.measure], lines)


def table_of(runs: Sequence[Run], row: Row, curves: Sequence[Curve], topics: Sequence[int], measure: str | None = None) -> str:
    """Mean and deviation by system and number of topics."""
    header = [
        f"{row.name}: {MEASURES[measure or row.measure]}",
        *(f"{n_topics} topics" for n_topics in topics),
        "runs",
        "training, seconds of CPU",
    ]
    lines = []
    for curve in curves:
        scores = [curve.score(runs, row, n_topics, measure) for n_topics in curve.sizes(topics)]
        cells = [str(score) for score in scores] + [""] * (len(topics) - len(scores))
        n_runs = sorted({score.n_runs for score in scores})
        seconds = [f"{score.cpu_seconds:.3g}" for score in scores if score.n_runs]
        lines.append([curve.label, *cells, "-".join(dict.fromkeys(map(str, [n_runs[0], n_runs[-1]]))), " / ".join(seconds)])
    return table(header, lines)


def by_fold(runs: Iterable[Run]) -> dict[int, float]:
    """Scores of the runs that did not fail."""
    return {run.repeat: run.score for run in runs if not run.error}


def lead(ours: dict[int, float], theirs: dict[int, float]) -> Summary:
    """Mean of the differences in folds that both have, with the standard error in place of the deviation.

    Training parts overlap, so that folds differ less than new documents would: the error is that of Nadeau and Bengio (2003),
    which for five folds is 1.5 times that of independent differences.
    """
    differences = np.array([ours[number] - theirs[number] for number in ours.keys() & theirs.keys()])
    if len(differences) < 2:
        return Summary(np.nan, n_runs=0)
    error = np.sqrt((1 / len(differences) + 1 / (N_FOLDS - 1)) * differences.var(ddof=1))
    return Summary(float(differences.mean()), float(error), len(differences))


def lead_cell(lead: Summary) -> str:
    return f"{lead.mean:+.4f} ({lead.deviation:.4f})" if lead.n_runs else ""


def leads_of(runs: Sequence[Run], row: Row, curves: Sequence[Curve], topics: Sequence[int]) -> str:
    """By how much the first system with topics is ahead of the others, fold by fold, with standard errors.

    Empty where there is no such system, or one fold.
    """
    first = next((curve for curve in curves if curve.has_topics), curves[0])
    others = [curve for curve in curves if curve != first]
    lines = []
    for other in others:
        found = []
        for n_topics in topics:
            theirs = other.of(runs, row, n_topics if other.has_topics else None)
            found.append(lead(by_fold(first.of(runs, row, n_topics)), by_fold(theirs)))
        if any(each.n_runs for each in found):
            lines.append([other.label, *map(lead_cell, found)])
    header = f"{row.name}: lead of {first.label} (standard error)"
    return table([header, *(f"{n_topics} topics" for n_topics in topics)], lines) if lines and first.has_topics else ""
