"""`mirrorlda train`: from files to a model, an honest measure of it, and its topics."""

from __future__ import annotations

import shutil
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from mirrorlda.cli.data import (
    TABLES,
    cluster_at,
    column_names,
    files_argument,
    is_corpus,
    n_threads_there,
    named,
    quiet_option,
    ray_option,
    reading_options,
    taken,
)
from mirrorlda.cli.parameters import Configured, as_toml, effective, estimator, hyperparameters, unfinished
from mirrorlda.cli.sources import TARGET_KINDS, Parts, known, parts_of, task_of
from mirrorlda.cli.terminal import as_json, print_json, say, show, warn
from mirrorlda.cli.words import text_options

if TYPE_CHECKING:
    from mirrorlda.data.corpus.corpus import Corpus
    from mirrorlda.evaluation import Evaluation
    from mirrorlda.saving.model_folder import About

# Fewer held-out documents say little.
_FEW_DOCS = 50
# Topics with less than this part of an even share are counted, not shown.
_SMALL_SHARE = 0.3
# What may be said anew when training goes on, and what a corpus has settled already.
_FREE = {"output", "resume", "n_jobs", "ray", "quiet", "as_json", "baselines"}
_SETTLED = {
    "split",
    "test_fraction",
    "max_words",
    "min_docs",
    "max_docs_fraction",
    "bigrams",
    "min_phrase_docs",
    "stop_words",
    "keep_case",
}


@click.command(cls=Configured)
@files_argument
@click.option("--output", "-o", required=True, metavar="FOLDER", help="Where the model goes, a folder.")
@click.option("--text", metavar="NAME", help="Column of the text.")
@click.option(
    "--target", multiple=True, metavar="NAME", help="Column of the target; repeatable: several labels, or several numbers."
)
@click.option(
    "--task",
    type=click.Choice([*TARGET_KINDS, "topics"]),
    default="auto",
    help="auto: classification if the target is text, booleans or two values, regression for other numbers, "
    "multilabel for lists or several columns of 0 and 1; topics: what the texts are about, without a target.",
)
@click.option(
    "--test-fraction",
    metavar="NUMBER",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.1,
    show_default=True,
    help="Held out, and measured on.",
)
@click.option(
    "--split", metavar="NAME", help='Column that says which documents are for learning ("train") and which are held out ("test").'
)
@click.option("--test", multiple=True, metavar="FILE", help="File of documents that are held out; repeatable.")
@hyperparameters
@text_options
@reading_options
@click.option("--baselines/--no-baselines", default=True, help="Measure simple models beside this one.")
@click.option("--config", metavar="FILE", help="TOML file of options; those given here come first.")
@click.option("--resume", is_flag=True, help="Go on with a training that was interrupted.")
@click.option("--force", is_flag=True, help="Replace a model, or an interrupted training, that is there.")
@ray_option
@click.option(
    "--sync-every",
    metavar="N",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    help="On a cluster: batches between two exchanges of what was learned; 1 gives the result of one machine.",
)
@quiet_option
@as_json
@click.pass_context
def command(ctx: click.Context, /, files: tuple[str, ...], output: str, as_json: bool, **options: Any) -> None:
    """Learn a model from texts with a target, measure it on documents held out, and keep it in a folder.

    By default the vocabulary has the 100,000 most frequent words and phrases. A word must be in two documents, a phrase in ten.

    \b
    mirrorlda train reviews.csv --text review --target stars -o model/
    mirrorlda train reviews.csv --text review --target stars --split part --topics 50 -o model/
    mirrorlda train mail.jsonl.gz --text body --target folder --test new.jsonl -o model/
    mirrorlda train papers.parquet --text abstract --task topics --topics 100 -o model/
    mirrorlda train reviews.corpus -o model/           # what `mirrorlda prepare` wrote
    mirrorlda train --config model/config.toml -o again/
    mirrorlda train --resume -o model/                 # after an interruption

    Python: mirrorlda.load("model/").
    """
    quiet, configuration, work = options["quiet"], effective(ctx), unfinished(output)
    _check(ctx, files, output, options)
    with (
        cluster_at(options["ray"], files, sync_every=options["sync_every"]) as cluster,
        _working(work, output, options) as resumed,
    ):
        if not resumed:
            (work / "config.toml").write_text(as_toml(configuration), encoding="utf-8")
        with _tidied(work, output):
            parts = parts_of(files, work, options, cluster)
            task, why = task_of(parts.train, options["task"])
            model = estimator(task, options)
        say(f"{task}: {why}", quiet)
        _tell(parts, quiet)
        # What decides when training stops cannot say how good the model is.
        watched = None if options["early_stopping"] else parts.test
        seconds, interrupted = _fit(model, parts.train, watched, work / "checkpoint", cluster, quiet)

        about = _about(model, task, parts, seconds, not interrupted, options, configuration)
        _keep(output, model, about, configuration)
        if parts.test is not None:
            about = _measured(output, model, parts, about, configuration, options["baselines"] and not interrupted, quiet)
        if as_json:
            from mirrorlda.cli.commands.topics import listed

            measured = None if about.evaluation is None else about.evaluation.as_json()
            found = {"model": output, "task": task, "n_docs": about.n_docs, "seconds": seconds, "finished": about.finished}
            print_json({**found, "evaluation": measured, "topics": listed(model, 10, 0.5)})
        else:
            _show(output, model, about.evaluation)
        if interrupted:
            say(f"interrupted: what was learned so far is in {output}; mirrorlda train --resume -o {output} goes on")
            ctx.exit(130)
    shutil.rmtree(work)


def _check(ctx: click.Context, files: tuple[str, ...], output: str, options: dict[str, Any]) -> None:
    """What can be wrong with a call, before anything is written."""

    def given(names: set[str]) -> list[str]:
        said = [p for p in ctx.command.params if ctx.get_parameter_source(str(p.name)) is ParameterSource.COMMANDLINE]
        return [max(p.opts, key=len) for p in said if p.name in names]

    if not output:
        raise click.UsageError("--output is empty, expected the name of a folder")
    if Path(output).is_file():
        raise click.UsageError(f"{output} is a file, expected the name of a folder")
    if options["resume"]:
        if others := given({str(p.name) for p in ctx.command.params} - _FREE):
            raise click.UsageError(f"--resume goes on with the options of the training: leave out {', '.join(others)}")
        return
    if (Path(output) / "model.mirrorlda").exists() and not options["force"]:
        raise click.UsageError(f"{output} holds a model: --force replaces it, another --output keeps it")
    if options["split"] and options["test"]:
        raise click.UsageError("--split and --test both say what is held out: give one of them")
    if is_corpus(files):
        if settled := given(_SETTLED | (set() if options["test"] else {"text", "target"})):
            raise click.UsageError(
                f"{files[0]} is a corpus, for which this was settled when it was prepared: {', '.join(settled)}"
            )
        return
    from mirrorlda.data.readers import read

    reading = taken(dict(options))
    format = read(named(files), columns="all", **{k: v for k, v in reading.items() if k != "label_separator"}).format
    there = f"; there are {', '.join(map(repr, found[:20]))}" if (found := column_names(files, reading)) else ""
    if format in TABLES and options["text"] is None:
        raise click.UsageError(f"name the column of the text: --text{there}")
    if options["task"] != "topics" and not options["target"]:
        raise click.UsageError(f"name the column of the target: --target{there}; or learn topics alone: --task topics")
    if format == "svmlight" and options["zero_based"] is None:
        raise click.UsageError("say whether the words of these svmlight files are numbered from 0: --zero-based or --one-based")


@contextmanager
def _working(work: Path, output: str, options: dict[str, Any]) -> Iterator[bool]:
    """A place for what training needs on the way, which one process has at a time; says whether training is resumed."""
    # A training that got no further than its configuration has nothing to go on from.
    is_interrupted = is_corpus((str(work / "corpus"),)) or (work / "checkpoint").exists()
    if is_interrupted and not (options["resume"] or options["force"]):
        raise click.UsageError(f"{output} holds a training that was interrupted: --resume goes on, --force begins anew")
    work.mkdir(parents=True, exist_ok=True)
    with open(work / "lock", "w") as lock:
        with suppress(ImportError):
            import fcntl

            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ValueError(f"another training is writing to {output}") from None
        if not options["resume"]:
            for name in ("corpus", "test"):
                shutil.rmtree(work / name, ignore_errors=True)
            (work / "checkpoint").unlink(missing_ok=True)
        yield bool(options["resume"])


@contextmanager
def _tidied(work: Path, output: str) -> Iterator[None]:
    """An error before training began leaves nothing behind; an interrupt leaves what `--resume` goes on from."""
    try:
        yield
    except KeyboardInterrupt:
        say(f"mirrorlda train --resume -o {output} begins again")
        raise
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        with suppress(OSError):
            Path(output).rmdir()
        raise


def _tell(parts: Parts, quiet: bool) -> None:
    """How much there is to learn from, and where that is little."""
    held_out = f", {parts.test.n_docs:,} held out" if parts.test is not None else ""
    say(f"{parts.train.n_docs:,} documents to learn from{held_out}; {parts.train.n_words:,} words", quiet)
    if n_unlabelled := parts.train.n_docs - known(parts.train).n_docs:
        say(f"{n_unlabelled:,} of them have no target: further rounds learn from them with the model's own predictions", quiet)
    if parts.test is not None and (n_judged := known(parts.test).n_docs) < _FEW_DOCS:
        warn(f"{n_judged} held-out documents are too few to tell how good the model is")


def _fit(model: Any, train: Corpus, watched: Corpus | None, checkpoint: Path, cluster: Any, quiet: bool) -> tuple[float, bool]:
    """Train; returns the seconds that it took, and whether it was interrupted."""
    from mirrorlda.training.interrupt import InterruptedWarning

    begin = time.perf_counter()
    caught: list[warnings.WarningMessage] = []
    n_jobs = model.n_jobs
    model.set_params(verbose=0 if quiet else 1, n_jobs=n_threads_there(n_jobs, cluster))
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            judged = watched if watched is None or known(watched).n_docs else None
            model.fit(train, checkpoint=checkpoint, validation=judged, cluster=cluster)
    finally:
        for warning in caught:
            warnings.showwarning(warning.message, warning.category, warning.filename, warning.lineno)
    model.set_params(verbose=0, n_jobs=n_jobs)
    return time.perf_counter() - begin, any(issubclass(warning.category, InterruptedWarning) for warning in caught)


def _about(
    model: Any, task: str, parts: Parts, seconds: float, finished: bool, options: dict[str, Any], configuration: dict[str, Any]
) -> About:
    from mirrorlda.saving.model_folder import About

    target = parts.train.target if task != "topics" else None
    plain = {
        name: value for name, value in model.get_params().items() if value is None or isinstance(value, bool | int | float | str)
    }
    names = () if target is None else tuple(target.names)
    return About(task, options["text"], names, parts.train.n_docs, seconds, finished, None, {**configuration, **plain})


def _keep(output: str, model: Any, about: About, configuration: dict[str, Any]) -> None:
    from mirrorlda.saving import model_folder

    model_folder.write(output, model, about, as_toml(configuration))


def _measured(
    output: str, model: Any, parts: Parts, about: About, configuration: dict[str, Any], has_baselines: bool, quiet: bool
) -> About:
    """What is known of the model, with measures on held-out documents; what goes wrong there does not cost the model."""
    from mirrorlda.saving import model_folder

    say("measuring", quiet)
    try:
        about = replace(about, evaluation=_evaluation(model, parts, has_baselines and about.task != "topics"))
    except (ValueError, MemoryError) as error:
        warn(f"the model could not be measured: {error}")
    except KeyboardInterrupt:
        say(f"interrupted: the model is in {output}, but it has not been measured")
        raise
    say("", quiet)
    model_folder.describe(output, about, as_toml(configuration))
    return about


def _evaluation(model: Any, parts: Parts, has_baselines: bool) -> Evaluation:
    """The measures of a model on held-out documents, simple models beside it."""
    from mirrorlda.evaluation import evaluate, with_baselines

    assert parts.test is not None
    evaluation = evaluate(model, parts.test)
    if has_baselines:
        evaluation = with_baselines(evaluation, model, parts.train, None, parts.test, None, n_jobs=-1)
    return evaluation


def _show(output: str, model: Any, evaluation: Any) -> None:
    from mirrorlda.cli.commands.evaluate import shown
    from mirrorlda.cli.commands.topics import as_table

    least = _SMALL_SHARE / len(model.topic_shares_)
    n_small = int((model.topic_shares_ < least).sum())
    others = [f"{n_small} topics have less than {least:.1%} each: mirrorlda topics {output}"] if n_small else []
    end = f"The model is in {output}. Next: mirrorlda report {output} -o report.html"
    show(*([] if evaluation is None else shown(evaluation)), as_table(model, 6, 0.5, least_share=least), *others, end)
