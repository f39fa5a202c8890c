"""The user's files: options that several verbs have, and what training has said of the files."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mirrorlda.cli.sections import option as section_option
from mirrorlda.data.files.urls import is_url, matching

if TYPE_CHECKING:
    from mirrorlda.data.corpus.corpus import Corpus
    from mirrorlda.method.fitted_model import FittedModel

F = TypeVar("F", bound=Callable[..., Any])

# The readers' own, which are imported only once there is something to read.
FORMATS = ("csv", "tsv", "jsonl", "parquet", "svmlight", "uci", "mtx", "folder")
_READING = ("format", "delimiter", "bad_rows", "words", "n_words", "zero_based", "label_separator")
LEARNED = "The model was trained on this file: only documents that it has not seen say how good it is."
TABLES = ("csv", "tsv", "jsonl", "parquet")

files_argument = click.argument("files", nargs=-1, required=True, metavar="FILE...")
model_argument = click.argument("model", metavar="MODEL", type=click.Path(exists=True))


def threads(_: click.Context, __: click.Parameter, value: int | None) -> int | None:
    if value == 0:
        raise click.BadParameter("0 threads do no work: -1 is all cores")
    return value


jobs_option = click.option("--jobs", metavar="N", type=int, default=-1, callback=threads, help="Threads; all cores by default.")
ray_option = click.option(
    "--ray",
    metavar="ADDRESS",
    help="Work on a Ray cluster: host:port of its head, auto for the one that this machine is part of, local to start one here. "
    "--jobs are the threads of each task then, one by default.",
)
quiet_option = click.option("--quiet", "-q", is_flag=True, help="No progress.")


def reading_options(command: F) -> F:
    """How files are read."""
    option = section_option("How files are read")
    for added in reversed(
        [
            option("--format", type=click.Choice(FORMATS), help="Of the files, where their names do not tell it."),
            option("--delimiter", metavar="CHARACTER", help="Of CSV files; a comma by default."),
            option("--label-separator", metavar="TEXT", help="Between several labels in one column of a CSV file."),
            option("--bad-rows", type=click.Choice(["error", "skip"]), help="Stop at a bad row (default), or go on without."),
            option("--words", metavar="FILE", type=click.Path(exists=True), help="Words of files of counts, one a line."),
            option("--n-words", metavar="N", type=click.IntRange(1), help="Number of words of svmlight files."),
            option("--zero-based/--one-based", default=None, help="Whether svmlight files number words from 0."),
        ]
    ):
        command = added(command)
    return command


@contextmanager
def cluster_at(address: str | None, files: tuple[str, ...], **options: Any) -> Iterator[Any]:
    """The cluster that `--ray` names, to read these files; None where it does not."""
    if address is None:
        yield None
        return
    if "-" in files:
        raise click.UsageError("with --ray files are read by other machines, which do not have the standard input of this one")
    try:
        from mirrorlda.cluster import Cluster, ClusterError
    except ImportError as error:
        raise ValueError(str(error)) from None
    try:
        with Cluster(address, **options) as cluster:
            yield cluster
    except ClusterError as error:
        raise ValueError(str(error)) from error


def n_threads_there(jobs: int | None, cluster: Any) -> int:
    """Threads for `--jobs`; a cluster has as many tasks as processors, so that one thread each keeps all of them busy."""
    from mirrorlda.method.inference import n_threads_of

    return n_threads_of(-1 if jobs is None else jobs) if cluster is None else max(1, jobs or 1)


def taken(options: dict[str, Any]) -> dict[str, Any]:
    """Those of the options that `mirrorlda.readers.read` takes, out of a verb's; the others stay."""
    return {name: value for name in _READING if (value := options.pop(name, None)) is not None}


def as_trained(about: Any, model: FittedModel, files: tuple[str, ...], options: dict[str, Any]) -> dict[str, Any]:
    """Options for reading files with a model: as given, otherwise as training was told, where the format has them."""
    from mirrorlda.data.readers import read

    reading = taken(dict(options))
    told = {} if about is None else about.configuration
    format = read(named(files), columns="all", **{k: v for k, v in reading.items() if k != "label_separator"}).format
    names = {"csv": ("delimiter", "label_separator"), "tsv": ("label_separator",), "svmlight": ("zero_based",)}.get(format, ())
    for name in names:
        if name not in reading and (value := told.get(_FLAGS.get(name, name))) is not None:
            reading[name] = value
    if reading.get("label_separator") is not None and model.targets.task != "multilabel":
        del reading["label_separator"]
    if format == "svmlight":
        if "zero_based" not in reading:
            raise click.UsageError(
                "say whether the words of these svmlight files are numbered from 0: --zero-based or --one-based"
            )
        reading.setdefault("n_words", model.n_words)
    return {"format": format, **reading}


# What options are called in the configuration of a model.
_FLAGS = {"label_separator": "label-separator", "zero_based": "zero-based"}


def is_corpus(files: tuple[str, ...]) -> bool:
    """Whether what was given is a corpus that `prepare` wrote."""
    if len(files) == 1 and is_url(files[0]):
        return bool(matching(f"{files[0].rstrip('/')}/corpus.json"))
    return len(files) == 1 and os.path.isfile(os.path.join(files[0], "corpus.json"))


def named(files: tuple[str, ...]) -> str | list[str]:
    return files[0] if len(files) == 1 else list(files)


def readable_twice(files: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    """The same files; standard input, which can be read once only, is kept in a folder: words are chosen before counting."""
    if "-" not in files:
        return files
    kept = folder / "standard-input"
    with open(kept, "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return tuple(str(kept) if name == "-" else name for name in files)


def column_names(files: tuple[str, ...], reading: dict[str, Any]) -> list[str]:
    """The columns of the first file, where that can be told without using it up; otherwise none."""
    from mirrorlda.data.readers import read

    if "-" in files:
        return []
    wanted = {name: value for name, value in reading.items() if name != "label_separator"}
    try:
        return list(next(iter(read(named(files), columns="all", batch_rows=1, **wanted))).columns)
    except (ValueError, OSError, StopIteration):
        return []


def check_apart(output: str, *others: str) -> None:
    """That what is written does not take the place of what is read."""
    for other in others:
        if os.path.realpath(output) == os.path.realpath(other):
            raise click.UsageError(f"{output} is among what is read: write to another place")


@contextmanager
def corpus_of(model: Any, about: Any, files: tuple[str, ...], options: dict[str, Any]) -> Iterator[tuple[Any, Corpus]]:
    """A fitted estimator, and documents with their targets as a corpus, made for the occasion with the model's own words."""
    from mirrorlda.data.corpus.corpus import Corpus
    from mirrorlda.data.corpus.prepare import prepare
    from mirrorlda.method.fitted_model import estimator_of, model_of
    from mirrorlda.method.inference import n_threads_of

    estimator = estimator_of(model).set_params(n_jobs=options["jobs"])
    read = model_of(model)
    if is_corpus(files):
        yield estimator, judged(Corpus(files[0]))
        return
    text, targets = columns(about, options, read)
    reading = as_trained(about, read, files, options)
    if reading["format"] in TABLES and text is None:
        raise click.UsageError("name the column of the text: --text")
    if read.scale is not None:
        raise ValueError(
            "a pipeline with steps between vectorizer and model is measured in Python: mirrorlda.evaluation.evaluate"
        )
    if text is not None and read.vocabulary is None:
        raise ValueError("the model was fitted to counts and does not know how text becomes words: measure it in Python")
    with TemporaryDirectory(prefix="mirrorlda-") as folder:
        corpus = prepare(
            named(files),
            Path(folder) / "corpus",
            text=text if reading["format"] in (*TABLES, "folder") else None,
            target=targets or None,
            target_kind=_target_kind(read, targets),
            split=options.get("split"),
            vocabulary=read.vocabulary,
            n_threads=n_threads_of(options["jobs"]),
            verbose=not options["quiet"],
            **reading,
        )
        yield estimator, judged(corpus)


def learned_from(about: Any, files: tuple[str, ...]) -> bool:
    """Whether a model was trained on one of these files."""
    places = {os.path.realpath(file) for file in ([] if about is None else about.configuration.get("files", []))}
    return any(os.path.realpath(file) in places for file in files)


def columns(about: Any, options: dict[str, Any], model: FittedModel) -> tuple[str | None, list[str]]:
    """Columns of the text and of the target: as asked for, otherwise those of the training files."""
    text = options["text"] or (about.text if about is not None else None)
    targets = list(options["target"] or (about.targets if about is not None else ()))
    if not model.is_supervised:
        return text, []
    if not targets:
        raise click.UsageError("which column is the target? The model does not know it: --target")
    return text, targets


def held_out_part(splits: tuple[str, ...]) -> str | None:
    """Of the parts of a corpus, the one that a model is measured on: "test", or the first that is not for learning."""
    others = [name for name in splits if name != "train"]
    return "test" if "test" in others else others[0] if others else None


def judged(corpus: Corpus) -> Corpus:
    """What a corpus has to measure a model on: the part that is held out, where it has parts."""
    if not corpus.splits:
        return corpus
    part = held_out_part(corpus.splits)
    if part is None or ("test" not in corpus.splits and "train" not in corpus.splits):
        raise ValueError(f"which documents are held out? The parts are {list(corpus.splits)}, expected 'train' and 'test'")
    return corpus.select(split=part)


def _target_kind(model: FittedModel, targets: list[str]) -> str | None:
    """What the columns of the target must hold for a model."""
    if not targets:
        return None
    return "numbers" if len(targets) > 1 else model.targets.corpus_kind
