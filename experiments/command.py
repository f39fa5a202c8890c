"""What the commands of the paper's experiments have in common: options, sizes, and files that they write."""

from __future__ import annotations

import argparse
import datetime
import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from plots import Panel, draw
from results import Run
from rows import N_FOLDS, Row, row_of_file
from running import Experiment, Job, run_all

# What the results depend on.
LIBRARIES = ["mirrorlda", "numpy", "scipy", "scikit-learn", "tomotopy", "topica", "numba", "jax", "optax"]


@dataclass(frozen=True)
class Size:
    """How much of an experiment is run: documents of each row (None for all), numbers of topics, folds of the five or seeds.

    An experiment that is run with several numbers of documents has a tuple of them.
    """

    n_docs: int | tuple[int, ...] | None
    topics: tuple[int, ...]
    repeats: int


def parser(description: str, full: Size, systems: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Options that all commands have; with several systems, a choice of them."""
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument(
        "data", type=Path, nargs="?", metavar="DATA_DIR", help="where tripadvisor_79k.jsonl.gz and imdb.jsonl.gz are"
    )
    own = parser.add_argument_group("a file of your own in place of DATA_DIR", "JSON objects, one a line")
    own.add_argument("--file", type=Path, help=".jsonl or .jsonl.gz")
    own.add_argument("--text", default="text", help="field of the text")
    own.add_argument("--target", help="field to predict: numbers, or one of two classes")
    parser.add_argument("--quick", action="store_true", help="few documents, topics and repetitions: minutes, for a first look")
    if isinstance(full.n_docs, tuple):
        sizes = " ".join(map(str, full.n_docs))
        parser.add_argument("--documents", type=int, nargs="+", help=f"so many of them; {sizes} by default")
    else:
        parser.add_argument("--documents", type=int, help=f"a random choice of so many; {full.n_docs or 'all'} by default")
    parser.add_argument("--topics", type=int, nargs="+", help=f"{' '.join(map(str, full.topics))} by default")
    parser.add_argument("--repeats", type=int, help=f"how many of the {N_FOLDS} folds, or seeds; {full.repeats} by default")
    if systems:
        parser.add_argument(
            "--systems", nargs="+", choices=systems, default=list(systems), metavar="SYSTEM", help=", ".join(systems)
        )
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="runs side by side, each on one core")
    parser.add_argument("--minutes", type=float, help="begin no run after so long; the same command goes on later")
    parser.add_argument(
        "--out", type=Path, help="folder of the results, paper-results by default; runs that it has are not repeated"
    )
    return parser


def parsed(
    parser: argparse.ArgumentParser, full: Size, quick: Size, arguments: Sequence[str] | None = None
) -> argparse.Namespace:
    """What the user chose; sizes that are not given are those of `full`, or with --quick of `quick`."""
    chosen = parser.parse_args(arguments)
    if (chosen.file is None) != (chosen.target is None):
        parser.error("--file and --target go together")
    if (chosen.data is None) == (chosen.file is None):
        parser.error("give DATA_DIR, or --file and --target")
    documents = chosen.documents if isinstance(chosen.documents, list) else [chosen.documents]
    if any(
        number is not None and number < 1 for number in [*documents, *(chosen.topics or []), chosen.repeats, chosen.processes]
    ):
        parser.error("--documents, --topics, --repeats and --processes are 1 or more")
    if chosen.repeats is not None and chosen.repeats > full.repeats:
        parser.error(f"--repeats: found {chosen.repeats}, expected at most {full.repeats}")
    for name in ("topics", "systems", "settings"):
        if getattr(chosen, name, None):
            setattr(chosen, name, list(dict.fromkeys(getattr(chosen, name))))
    chosen.given = given(parser, chosen)
    size = quick if chosen.quick else full
    chosen.documents = size.n_docs if chosen.documents is None else chosen.documents
    chosen.topics = list(size.topics) if chosen.topics is None else chosen.topics
    chosen.repeats = size.repeats if chosen.repeats is None else chosen.repeats
    chosen.out = chosen.out or Path("paper-results-quick" if chosen.quick else "paper-results")
    return chosen


def given(parser: argparse.ArgumentParser, chosen: argparse.Namespace) -> dict[str, str]:
    """The options that differ from their defaults, but for the file, as the user wrote them."""
    differing = {
        name: value for name, value in vars(chosen).items() if value != parser.get_default(name) and name not in ("data", "file")
    }
    return {
        name: " ".join(map(str, value)) if isinstance(value, list) else "" if value is True else str(value)
        for name, value in differing.items()
    }


def _own(rows: Sequence[Row], chosen: argparse.Namespace) -> list[Row]:
    """The user's file in place of the rows, with their vocabularies: those of rows with the same measure, if there are any."""
    try:
        own = row_of_file(chosen.file, chosen.text, chosen.target, None)
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error
    if own.measure not in ("r2", "roc_auc"):
        raise SystemExit(f"{own.path}: found more than two classes in {own.target!r}, expected numbers or two classes")
    alike = [row for row in rows if row.measure == own.measure] or rows
    sizes = dict.fromkeys(row.n_words for row in alike)
    return [replace(own, n_words=n_words, name=own.name + ("-all-words" if n_words is None else "")) for n_words in sizes]


def sized(rows: Sequence[Row], chosen: argparse.Namespace) -> list[Row]:
    """The rows, or the user's own, with as many documents as were asked for."""
    if chosen.file is not None:
        rows = _own(rows, chosen)
    missing = sorted({str(row.path) for row in rows if not row.is_there()})
    if missing:
        raise SystemExit(f"not found: {', '.join(missing)}; experiments/README.md says what is in them")
    if chosen.documents is None:
        return list(rows)
    return [replace(row, name=f"{row.name}-{chosen.documents}", n_docs=chosen.documents) for row in rows]


def run(name: str, experiment: Experiment, jobs: list[Job], chosen: argparse.Namespace) -> list[Run]:
    """Runs of the jobs, in NAME.csv of the folder of the results."""
    return run_all(experiment, jobs, chosen.out / f"{name}.csv", n_processes=chosen.processes, minutes=chosen.minutes)


def _processor() -> str:
    """Its name, where the system tells."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def setting(name: str, chosen: argparse.Namespace, runs: Sequence[Run], cores: str) -> Iterator[str]:
    """The command, the machine, what each run has of it, the versions and the days."""
    # Where the files are, and how long the command ran the last time, is nobody's business.
    hidden = {"out", "pages", "minutes", "corpora", "processes"}
    given = " ".join(f"--{option} {value}".strip() for option, value in chosen.given.items() if option not in hidden)
    yield (
        f"`python experiments/{name}.py {'DATA_DIR' if chosen.file is None else f'--file {chosen.file.name}'} {given}".rstrip()
        + "`"
    )
    yield f"{_processor()}, {cores}"
    yield f"Python {platform.python_version()}, " + ", ".join(f"{library} {version(library)}" for library in LIBRARIES)
    days = sorted({datetime.date.fromisoformat(run.day) for run in runs if run.day}) or [datetime.date.today()]
    yield " to ".join(dict.fromkeys(f"{day:%d %B %Y}" for day in (days[0], days[-1])))


def write(name: str, chosen: argparse.Namespace, panels: Sequence[Panel], tables: Sequence[str], runs: Sequence[Run]) -> int:
    """The plot, if any, in NAME.svg; in NAME.md the plot, the tables, what failed and how it was made. Text is printed too.

    Returns the command's exit status: 1 where a run failed.
    """
    picture = ""
    if panels:
        draw(chosen.out / f"{name}.svg", panels)
        picture = f"![{'; '.join(panel.title for panel in panels)}]({name}.svg)\n\n"
    parts = list(filter(None, tables))
    failed = sorted({f"- {run.row}, {run.system}, {run.n_topics} topics: {run.error}" for run in runs if run.error})
    if failed:
        parts.append("Failed:\n\n" + "\n".join(failed))
    cores = f"{chosen.processes} runs side by side, each on one core"
    parts.append("; ".join(setting(name, chosen, runs, cores)) + ".")
    text = "\n\n".join(parts)
    (chosen.out / f"{name}.md").write_text(f"{picture}{text}\n", encoding="utf-8")
    print(text)
    return int(bool(failed))
