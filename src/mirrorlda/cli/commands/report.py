"""`mirrorlda report`: one page about a model."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from mirrorlda.cli.data import (
    LEARNED,
    as_trained,
    check_apart,
    column_names,
    columns,
    corpus_of,
    is_corpus,
    jobs_option,
    learned_from,
    model_argument,
    named,
    quiet_option,
    reading_options,
    taken,
)
from mirrorlda.cli.sections import Sectioned
from mirrorlda.cli.terminal import say, warn

if TYPE_CHECKING:
    from mirrorlda.method.fitted_model import FittedModel

_MODEL_FILES = ("model.mirrorlda", "about.json", "config.toml")
# Documents among which those are looked for that show a topic best.
_SHOWN_DOCS = 20_000
# Options of training as a page names them; the other names are plain enough.
_TITLES = {
    "text": "column of the text",
    "target": "column of the target",
    "split": "column of the split",
    "test": "files held out",
    "test-fraction": "fraction held out",
}


@click.command(cls=Sectioned)
@model_argument
@click.option("--output", "-o", required=True, metavar="FILE", help="The page, an HTML file; - is standard output.")
@click.option(
    "--data", multiple=True, metavar="FILE", help="Measure the model on these documents, not on those that training held out."
)
@click.option(
    "--documents", is_flag=True, help="Show the documents of --data that show each topic best. They become part of the page."
)
@click.option("--text", metavar="NAME", help="Column of the text in --data; that of the training files by default.")
@click.option(
    "--target", multiple=True, metavar="NAME", help="Column of the target in --data; that of the training files by default."
)
@click.option("--split", metavar="NAME", help="Column of --data that says which documents count: those of the part test.")
@click.option("--title", metavar="TEXT", help="Of the page.")
@click.option(
    "--max-words", metavar="N", type=click.IntRange(1), help="Words that the page knows, the most frequent; as many as 4 MB hold."
)
@reading_options
@jobs_option
@quiet_option
def command(model: str, output: str, **options: Any) -> None:
    """Write a page that shows what a model learned, how good it is, and lets people try it.

    It is one file that needs no network. No document is in it unless you say --documents.

    \b
    mirrorlda report model/ -o report.html
    mirrorlda report model/ --data new.csv --documents --title "Hotel reviews, 2026" -o report.html
    mirrorlda report model/ -o - | gzip > report.html.gz
    """
    from mirrorlda.evaluation import evaluate
    from mirrorlda.method.fitted_model import model_of
    from mirrorlda.report import report
    from mirrorlda.saving import model_folder

    if options["documents"] and not options["data"]:
        raise click.UsageError("which documents? --documents shows those of --data")
    if output != "-":
        check_apart(output, model, *options["data"], *(os.path.join(model, name) for name in _MODEL_FILES))
    loaded, about = model_folder.read(model)
    read = model_of(loaded)
    shown: dict[str, Any] = {
        "evaluation": None if about is None else about.evaluation,
        "title": options["title"] or _title(model, about),
        "configuration": None if about is None else _configuration(about, read),
        "max_words": options["max_words"],
    }
    if options["data"]:
        targets = _targets(about, read, options)
        if targets or not options["documents"] or not read.is_supervised:
            with corpus_of(loaded, about, options["data"], options) as (estimator, corpus):
                shown["evaluation"] = evaluate(estimator, corpus)
            if learned_from(about, options["data"]) and not options["split"]:
                warn(LEARNED)
                shown["evaluation"] = replace(shown["evaluation"], notes=[*shown["evaluation"].notes, LEARNED])
        if options["documents"]:
            shown["documents"], shown["truths"] = _documents(about, read, targets, options)
    report(loaded, sys.stdout.buffer if output == "-" else output, **shown)
    if output != "-":
        say(f"{output}: {os.path.getsize(output) / 1e6:.1f} MB", options["quiet"])


def _title(model: str, about: Any) -> str:
    name = os.path.basename(os.path.normpath(model)).removesuffix(".mirrorlda")
    if about is None:
        return name
    files = about.configuration.get("files") or [name]
    stem = os.path.basename(os.path.normpath(files[0])).partition(".")[0] or name
    return f"{stem}: {', '.join(about.targets)}" if about.targets else stem


def _configuration(about: Any, model: FittedModel) -> dict[str, Any]:
    """What a page says of how the model was made: names of files, but not where they are; parameters it has from the model."""
    from mirrorlda.cli.commands.train import command as train
    from mirrorlda.cli.parameters import PARAMETERS

    parameters = {parameter.flag.lstrip("-") for parameter in PARAMETERS} | set(model.parameters())
    defaults = {max(parameter.opts, key=len).lstrip("-"): parameter.default for parameter in train.params}
    shown: dict[str, Any] = {"n_docs": about.n_docs, "seconds": about.seconds, "task": about.task}
    others: dict[str, Any] = {}
    is_split = "split" in about.configuration or "test" in about.configuration
    for name, value in about.configuration.items():
        if name in parameters or name in shown or (name == "test-fraction" and is_split):
            continue
        if name in ("files", "test", "words", "stop-words"):
            paths = value if isinstance(value, list) else [value]
            value = [os.path.basename(os.path.normpath(path)) for path in paths]
        is_default = value is False or value == defaults.get(name)
        (others if is_default else shown)[_TITLES.get(name, name)] = value
    return {**shown, "others": others}


def _targets(about: Any, model: FittedModel, options: dict[str, Any]) -> list[str]:
    """Columns of the target; none where documents are only to be shown and their files have no such column."""
    from mirrorlda.data.readers.rows import no_column

    is_named = options["target"] or (about is not None and about.targets)
    if not model.is_supervised or (options["documents"] and not is_named):
        return []
    targets = columns(about, options, model)[1]
    if options["target"] or not options["documents"] or is_corpus(options["data"]):
        return targets
    there = column_names(options["data"], taken(dict(options)))
    missing = [name for name in targets if name not in there]
    if not there or not missing:
        return targets
    measured = "measures are those of training" if about.evaluation is not None else "nothing is measured"
    say(f"{options['data'][0]}: {no_column(missing[0], there)}; {measured}", options["quiet"])
    return []


def _documents(
    about: Any, model: FittedModel, targets: list[str], options: dict[str, Any]
) -> tuple[list[str], list[str | None] | None]:
    """The first texts of the data, and what their targets are."""
    from mirrorlda.data.readers import read

    if is_corpus(options["data"]):
        raise click.UsageError("a corpus holds no texts to show: give --data the files that it was made of")
    reading = as_trained(about, model, options["data"], options)
    is_labels = len(targets) == 1 and model.targets.task == "multilabel"
    kinds = dict.fromkeys(targets, "labels" if is_labels else "any")
    if not is_labels:
        reading.pop("label_separator", None)
    text = options["text"] or (about.text if about is not None else None)
    texts: list[str] = []
    truths: list[str | None] = []
    for rows in read(named(options["data"]), text=text, columns=kinds, **reading):
        texts += rows.texts or []
        values = zip(*(rows.columns[name] for name in targets), strict=True) if targets else [()] * len(rows)
        truths += [", ".join(map(_value, row)) if row and None not in row else None for row in values]
        if len(texts) >= _SHOWN_DOCS:
            break
    return texts[:_SHOWN_DOCS], truths[:_SHOWN_DOCS] if targets else None


def _value(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else f"{value:g}" if isinstance(value, float) else str(value)
