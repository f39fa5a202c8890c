"""`mirrorlda prepare`: large files to a corpus on disk."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from mirrorlda.cli.data import (
    cluster_at,
    files_argument,
    is_corpus,
    jobs_option,
    n_threads_there,
    named,
    quiet_option,
    ray_option,
    readable_twice,
    reading_options,
    taken,
)
from mirrorlda.cli.sections import Sectioned
from mirrorlda.cli.terminal import as_json, print_json
from mirrorlda.cli.words import text_options, words_taken


@click.command(cls=Sectioned)
@files_argument
@click.option("--output", "-o", required=True, metavar="FOLDER", help="The corpus, a folder.")
@click.option("--text", metavar="NAME", help="Column of the text.")
@click.option("--target", multiple=True, metavar="NAME", help="Column of the target; repeatable.")
@click.option(
    "--target-kind", type=click.Choice(["numbers", "classes", "labels"]), help="What the target holds; told by default."
)
@click.option("--id", "id", metavar="NAME", help="Column of the documents' ids.")
@click.option("--split", metavar="NAME", help='Column that says which part a document is of; "train" makes the vocabulary.')
@click.option(
    "--test-fraction",
    metavar="NUMBER",
    type=click.FloatRange(0, 1),
    default=0.0,
    help="Put so many into the part test, by chance.",
)
@click.option("--seed", metavar="N", type=int, default=0, help="Of that chance.")
@text_options
@reading_options
@click.option("--force", is_flag=True, help="Replace a corpus that is there.")
@jobs_option
@ray_option
@quiet_option
@as_json
def command(files: tuple[str, ...], output: str, as_json: bool, **options: Any) -> None:
    """Write files of text or counts as a corpus: read once, train many times, from disk.

    \b
    mirrorlda prepare reviews.csv --text review --target stars -o reviews.corpus
    mirrorlda prepare 'part-*.jsonl.gz' --text body --target tags -o tickets.corpus
    mirrorlda prepare docword.kos.txt.gz -o kos.corpus
    mirrorlda train reviews.corpus -o model/
    """
    from mirrorlda.data.corpus.prepare import prepare

    if is_corpus((output,)) and not options["force"]:
        raise click.UsageError(f"{output} holds a corpus: --force replaces it")
    reading, words = taken(options), words_taken(options)
    with TemporaryDirectory(prefix="mirrorlda-") as folder, cluster_at(options["ray"], files) as cluster:
        corpus = prepare(
            named(readable_twice(files, Path(folder))),
            output,
            text=options["text"],
            target=list(options["target"]) or None,
            target_kind=options["target_kind"],
            id=options["id"],
            split=options["split"],
            test_fraction=options["test_fraction"],
            seed=options["seed"],
            n_threads=n_threads_there(options["jobs"], cluster),
            cluster=cluster,
            verbose=not options["quiet"],
            **words,
            **reading,
        )
    target = corpus.target
    if as_json:
        about = None if target is None else {"kind": target.kind, "names": list(target.names), "values": list(target.values)}
        print_json({"path": output, "n_docs": corpus.n_docs, "n_words": corpus.n_words, "target": about, "splits": corpus.splits})
        return
    click.echo(f"{output}: {corpus.n_docs:,} documents, {corpus.n_words:,} words")
    if target is not None:
        values = f" ({len(target.values):,} of them)" if target.values else ""
        click.echo(f"target: {', '.join(target.names)}, {target.kind}{values}")
