"""`mirrorlda predict`: predictions beside the columns of the user's own file."""

from __future__ import annotations

from typing import Any

import click

from mirrorlda.cli.data import (
    TABLES,
    as_trained,
    cluster_at,
    files_argument,
    is_corpus,
    jobs_option,
    model_argument,
    n_threads_there,
    named,
    quiet_option,
    ray_option,
    reading_options,
)
from mirrorlda.cli.sections import Sectioned
from mirrorlda.cli.terminal import say

_STREAMED = ("csv", "tsv", "jsonl")


@click.command(cls=Sectioned)
@model_argument
@files_argument
@click.option(
    "--output", "-o", default="-", metavar="FILE", help="CSV, TSV, JSON lines or Parquet, by its ending; - is standard output."
)
@click.option("--output-format", type=click.Choice([*_STREAMED, "parquet"]), help="In place of the ending.")
@click.option("--text", metavar="NAME", help="Column of the text; that of the training files by default.")
@click.option("--columns", metavar="NAME,...", help="Columns to keep; all by default.")
@click.option("--topics", is_flag=True, help="Topic proportions too.")
@reading_options
@jobs_option
@ray_option
@quiet_option
def command(model: str, files: tuple[str, ...], output: str, **options: Any) -> None:
    """Add predictions to a file: its own columns, then the prediction, probabilities, topic proportions if asked for.

    Files of any size go through; the output gets its name when it is complete. With --ray it is a folder of Parquet files.

    \b
    mirrorlda predict model/ new.csv -o predictions.csv
    mirrorlda predict model/ 'new-*.jsonl.gz' --columns id --topics -o predictions.parquet
    mirrorlda predict model/ 'new-*.parquet' --ray auto -o predictions.parquet
    cat new.jsonl | mirrorlda predict model/ - --format jsonl | head
    """
    from mirrorlda.data.corpus.corpus import Corpus
    from mirrorlda.estimators.predict_files import predict_files
    from mirrorlda.method.fitted_model import estimator_of, model_of
    from mirrorlda.saving import model_folder

    if options["ray"] and output == "-":
        raise click.UsageError("with --ray the output is a folder of Parquet files: --output")
    loaded, about = model_folder.read(model)
    wanted, chosen = options["output_format"], {}
    source: Any
    if is_corpus(files):
        source, found = Corpus(files[0]), "csv"
    else:
        source, reading = named(files), as_trained(about, model_of(loaded), files, options)
        reading.pop("label_separator", None)
        found = reading["format"]
        chosen = {"columns": _kept(options["columns"], found), **reading}
        if found in TABLES:
            chosen["text"] = options["text"] or (about.text if about is not None else None)
            if chosen["text"] is None:
                raise click.UsageError("name the column of the text: --text")
    if output == "-" and wanted is None:
        wanted = found if found in _STREAMED else "csv"
    is_watched = output != "-" and not options["quiet"]
    with cluster_at(options["ray"], files) as cluster:
        estimator_of(loaded).set_params(n_jobs=n_threads_there(options["jobs"], cluster))
        chosen |= {"topics": options["topics"], "output_format": wanted, "cluster": cluster, "verbose": is_watched}
        n_docs = predict_files(loaded, source, output, **chosen)
    if output != "-":
        say(f"{n_docs:,} predictions in {output}", options["quiet"])


def _kept(named: str | None, format: str) -> Any:
    """Columns that stand before the predictions: those that were named, or all that there are."""
    if named is not None:
        return [name.strip() for name in named.split(",") if name.strip()]
    return () if format in ("uci", "mtx") else "all"
