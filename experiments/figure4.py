"""Number of layers, sparsity of the proportions, likelihood of held-out words (the paper's figure 4).

    python experiments/figure4.py DATA_DIR [--quick]

(a) Predictive R2 of BP-sLDA against the number of layers. (b) The share of the topics that make up 90 % of a held-out document,
for three priors. Both with mirrorlda's defaults and with the paper's settings. (c) Per-word log-likelihood of held-out documents
under BP-LDA and Gibbs-LDA, by the left-to-right estimator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from mirrorlda.metrics import log_likelihood, sparsity

import command
import systems
from baselines.tomotopy_models import TomotopyLDA
from command import Size
from comparison import MEASURES, Curve, by_fold, curve_of, jobs, lead, lead_cell, load, measure, panel, table_of
from mirrorlda import TopicModel
from plots import Line, Panel
from results import Run, Summary, summary, table
from rows import N_FOLDS, Data, Row
from running import Experiment, Job
from systems import SYSTEMS

FULL = Size(n_docs=None, topics=(5, 10, 20, 50, 100, 200), repeats=N_FOLDS)
QUICK = Size(n_docs=4_000, topics=(5, 20, 50), repeats=1)
LAYERS = (1, 2, 3, 5, 10, 20, 40)
# Layers beyond which R2 should no longer change.
ENOUGH = 10
LAYERED_TOPICS = (5, 20, 100)
PRIORS = [curve_of(system, alpha) for system in ("bp-slda", "bp-slda-paper") for alpha in (1.001, 0.5, 0.1)]
LAYERED = ["bp-slda", "bp-slda-paper"]
# Topics alone, without the linear model that elsewhere follows them.
GENERATIVE = [
    Curve("bp-lda", "BP-LDA, alpha 1.001", 1.001),
    Curve("gibbs-lda", "Gibbs-LDA, alpha 0.5", 0.5),
    Curve("gibbs-lda", "Gibbs-LDA, alpha 0.1", 0.1),
]
# Held-out documents whose likelihood is estimated: its time grows with the square of their length.
N_ESTIMATED = 500
PARTS = ["a", "b", "c"]


def rows(data: Path) -> list[Row]:
    return [Row("tripadvisor-stars", data / "tripadvisor_79k.jsonl.gz", "stars", "r2")]


def make(job: Job, n_jobs: int) -> Any:
    """Of part (c) topics alone, of counts as they are: theirs is the likelihood that is measured."""
    if job.row.measure != "log-likelihood":
        return systems.make(job, n_jobs)
    if job.system == "bp-lda":
        return TopicModel(job.n_topics, alpha=job.alpha, count_scale="linear", random_state=job.repeat, n_jobs=n_jobs)
    return TomotopyLDA(job.n_topics, alpha=job.alpha, random_state=job.repeat, n_jobs=n_jobs)


def measured(job: Job, model: Any, data: Data) -> dict[str, float]:
    if job.row.measure == "log-likelihood":
        some = np.sort(np.random.default_rng(job.repeat).permutation(data.X_test.shape[0])[:N_ESTIMATED])
        X = data.X_test[some]
        estimates = log_likelihood(model.components_, job.alpha, X, random_state=job.repeat, n_jobs=1)
        return {"log-likelihood": float(estimates.sum() / X.sum())}
    scores = measure(job, model, data)
    return scores if job.alpha is None else scores | {"sparsity": sparsity(model.transform(data.X_test))}


def layer_jobs(row: Row, topics: Sequence[int], repeats: int) -> list[Job]:
    return [
        Job(row, system, repeat, n_topics, n_layers=n_layers)
        for repeat in range(repeats)
        for system in LAYERED
        for n_topics in topics
        for n_layers in LAYERS
    ]


def layer_runs(runs: Sequence[Run], row: Row, system: str, n_topics: int) -> dict[int, list[Run]]:
    """By number of layers."""
    own = [run for run in runs if (run.row, run.system, run.n_topics) == (row.name, system, n_topics)]
    return {n_layers: [run for run in own if run.n_layers == n_layers] for n_layers in LAYERS}


def layer_scores(runs: Sequence[Run], row: Row, system: str, n_topics: int) -> dict[int, Summary]:
    """By number of layers."""
    found = {n_layers: summary(own) for n_layers, own in layer_runs(runs, row, system, n_topics).items()}
    return {n_layers: score for n_layers, score in found.items() if score.n_runs}


def layer_panel(runs: Sequence[Run], row: Row, topics: Sequence[int]) -> Panel:
    lines = []
    for system in LAYERED:
        for n_topics in topics:
            found = layer_scores(runs, row, system, n_topics)
            label = f"{SYSTEMS[system].label}, {n_topics} topics"
            lines += [Line(label, list(found.values()), list(found), system == "bp-slda")] if found else []
    return Panel(f"(a) {row.name}", "layers", MEASURES[row.measure], lines)


def layer_table(runs: Sequence[Run], row: Row, topics: Sequence[int]) -> str:
    lines = []
    for system in LAYERED:
        for n_topics in topics:
            found = layer_scores(runs, row, system, n_topics)
            n_runs = sorted({score.n_runs for score in found.values()}) or [0]
            cells = [str(found[n_layers]) if n_layers in found else "" for n_layers in LAYERS]
            label = f"{SYSTEMS[system].label}, {n_topics} topics"
            lines.append([label, *cells, "-".join(dict.fromkeys(map(str, [n_runs[0], n_runs[-1]])))])
    header = [f"(a) {row.name}: {MEASURES[row.measure]}", *(f"{n_layers} layers" for n_layers in LAYERS), "runs"]
    return table(header, lines)


def change_table(runs: Sequence[Run], row: Row, topics: Sequence[int]) -> str:
    """By how much the measure changes beyond `ENOUGH` layers, fold by fold, with standard errors; empty for one fold."""
    more = [n_layers for n_layers in LAYERS if n_layers > ENOUGH]
    lines = []
    for system in LAYERED:
        for n_topics in topics:
            scores = {n_layers: by_fold(own) for n_layers, own in layer_runs(runs, row, system, n_topics).items()}
            found = [lead(scores[n_layers], scores[ENOUGH]) for n_layers in more]
            if all(each.n_runs for each in found):
                lines.append([f"{SYSTEMS[system].label}, {n_topics} topics", *map(lead_cell, found)])
    header = f"(a) {row.name}: change of {MEASURES[row.measure]} from {ENOUGH} layers (standard error)"
    return table([header, *(f"{n_layers} layers" for n_layers in more)], lines) if lines else ""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = command.parser(__doc__, FULL, ["bp-slda", "bp-slda-paper", "bp-lda", "gibbs-lda"])
    parser.add_argument(
        "--parts",
        nargs="+",
        choices=PARTS,
        default=PARTS,
        help="of the figure; (a) has 5, 20 and 100 topics, up to the most of --topics",
    )
    chosen = command.parsed(parser, FULL, QUICK, arguments)
    (row,) = command.sized(rows(chosen.data or Path()), chosen)
    words = replace(row, name=f"{row.name}-words", target=None, measure="log-likelihood")
    layered = [n_topics for n_topics in LAYERED_TOPICS if n_topics <= max(chosen.topics)] or chosen.topics
    todo = {
        "a": layer_jobs(row, layered, chosen.repeats),
        "b": jobs([row], PRIORS, chosen.topics, chosen.repeats),
        "c": jobs([words], GENERATIVE, chosen.topics, chosen.repeats),
    }
    # One fold of all parts, then the next.
    wanted = sorted(
        (job for part in chosen.parts for job in todo[part] if job.system in chosen.systems), key=lambda job: job.repeat
    )
    runs = command.run("figure4", Experiment(load, make, measured), wanted, chosen)
    by_prior, by_topics = (runs, row, PRIORS, chosen.topics), (runs, words, GENERATIVE, chosen.topics)
    panels = {
        "a": layer_panel(runs, row, layered),
        "b": panel(*by_prior, "sparsity", f"(b) {row.name}"),
        "c": panel(*by_topics, title=f"(c) {row.name}"),
    }
    tables = {
        "a": [layer_table(runs, row, layered), change_table(runs, row, layered)],
        "b": [table_of(*by_prior, "sparsity"), table_of(*by_prior)],
        "c": [table_of(*by_topics)],
    }
    shown = [panels[part] for part in chosen.parts], [each for part in chosen.parts for each in tables[part]]
    return command.write("figure4", chosen, *shown, runs)


if __name__ == "__main__":
    raise SystemExit(main())
