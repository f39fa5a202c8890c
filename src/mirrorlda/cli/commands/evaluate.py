"""`mirrorlda evaluate`: how good a model is on a file."""

from __future__ import annotations

from typing import Any

import click

from mirrorlda.cli.data import (
    LEARNED,
    corpus_of,
    files_argument,
    jobs_option,
    learned_from,
    model_argument,
    quiet_option,
    reading_options,
)
from mirrorlda.cli.sections import Sectioned
from mirrorlda.cli.terminal import as_json, console, print_json, show, table, warn

_INTERVAL = "95 % interval"
# Columns that measures, intervals and two simpler models take.
_ROOM_FOR_ALL = 76


@click.command(cls=Sectioned)
@model_argument
@files_argument
@click.option("--text", metavar="NAME", help="Column of the text; that of the training files by default.")
@click.option("--target", multiple=True, metavar="NAME", help="Column of the target; that of the training files by default.")
@click.option(
    "--split", metavar="NAME", help="Column that says which documents count: those of the part test, where there is one."
)
@reading_options
@click.option(
    "--n-bootstrap", metavar="N", type=click.IntRange(1), default=1000, show_default=True, help="Resamples behind the intervals."
)
@click.option("--seed", metavar="N", type=click.IntRange(0), default=0, help="Of the resamples.")
@jobs_option
@quiet_option
@as_json
def command(model: str, files: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Measure a model on documents with a target: R2, RMSE, MAE; or AUC, accuracy, F1, log loss, calibration.

    Each measure comes with the interval that holds it in 95 of 100 resamples of the documents.

    \b
    mirrorlda evaluate model/ new.csv
    mirrorlda evaluate model/ new.jsonl --text body --target folder --json
    """
    from mirrorlda.evaluation import evaluate
    from mirrorlda.saving import model_folder

    loaded, about = model_folder.read(model)
    if about is not None and learned_from(about, files):
        options["split"] = options["split"] or about.configuration.get("split")
        if not options["split"]:
            warn(LEARNED)
    with corpus_of(loaded, about, files, options) as (estimator, corpus):
        evaluation = evaluate(estimator, corpus, n_bootstrap=options["n_bootstrap"], random_state=options["seed"])
    if as_json:
        print_json({key: value for key, value in evaluation.as_json().items() if key != "curves"})
    else:
        show(*shown(evaluation, "documents"))


def shown(evaluation: Any, documents: str = "held-out documents") -> list[Any]:
    """What was measured, and a table: measures with intervals, simpler models beside them; two tables where there is no room."""
    from rich.text import Text

    def number(value: float) -> str:
        return f"{value:,.4f}" if abs(value) < 1000 else f"{value:,.1f}"

    def bold(name: str, cells: list[str]) -> list[Text]:
        return [Text(cell, style="bold" if name == evaluation.main and place < 2 else "") for place, cell in enumerate(cells)]

    others, columns = evaluation.baselines, ["measure", "mirrorlda"]
    own = {name: [name, number(measure.value)] for name, measure in evaluation.measures.items()}
    intervals = {name: [f"{number(measure.low)} to {number(measure.high)}"] for name, measure in evaluation.measures.items()}
    beside = {name: [number(other[name].value) if name in other else "" for other in others.values()] for name in own}
    left_out = f", {evaluation.n_left_out:,} without a target left out" if evaluation.n_left_out else ""
    parts: list[Any] = [Text(f"{evaluation.n_docs:,} {documents}{left_out}")]
    if others and console().width < _ROOM_FOR_ALL:
        parts.append(table([*columns, _INTERVAL], [bold(name, own[name] + intervals[name]) for name in own], left=columns[:1]))
        parts.append(table([*columns, *others], [bold(name, own[name] + beside[name]) for name in own], left=columns[:1]))
    else:
        rows = [bold(name, own[name] + intervals[name] + beside[name]) for name in own]
        parts.append(table([*columns, _INTERVAL, *others], rows, left=columns[:1]))
    return [*parts, *([evaluation.verdict] if evaluation.verdict else []), *evaluation.notes]
