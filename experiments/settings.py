"""Held-out scores as settings of mirrorlda change: what its choices are worth, one by one.

    python experiments/settings.py DATA_DIR [--quick]
    python experiments/settings.py DATA_DIR --settings defaults n_layers=10 n_layers=10,learning_rate=0.005 --topics 20 100

A setting is NAME=VALUE, and a comma joins several; what is not named is the default of TopicRegressor and TopicClassifier or,
after "paper,", one of the paper's settings. start=noise is the paper's start, start=targets that of mirrorlda. Without
--settings: each choice of the paper in place of mirrorlda's, and each of mirrorlda's in place of the paper's.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import command
import paper_settings
from command import Size
from comparison import Curve, jobs, leads_of, load, measure, table_of
from mirrorlda import TopicClassifier, TopicRegressor
from rows import N_FOLDS, Row
from running import Experiment, Job

FULL = Size(n_docs=10_000, topics=(20,), repeats=N_FOLDS)
QUICK = Size(n_docs=2_000, topics=(20,), repeats=1)
DEFAULTS, PAPER, START = "defaults", "paper", "start"
# The first of each pair are mirrorlda's, the second the paper's.
CHOICES = [
    ("count_scale=log", "count_scale=linear"),
    ("word_learning_rate=0.03", "word_learning_rate=0"),
    ("word_dropout=auto", "word_dropout=0"),
    ("start=targets", "start=noise"),
    ("alpha=null", "alpha=1.001"),
    ("n_layers=auto", "n_layers=10"),
    ("tol=0.02", "tol=0"),
    ("coef_learning_rate=auto", "coef_learning_rate=0.5"),
    ("learning_rate_decay=linear", "learning_rate_decay=constant"),
    ("n_epochs=10", "n_epochs=20"),
    ("batch_size=auto", "batch_size=256"),
    ("readability=1.0", "readability=0.0"),
]
CHANGES = [DEFAULTS, *(theirs for _, theirs in CHOICES), PAPER, *(f"{PAPER},{ours}" for ours, _ in CHOICES)]
# For numbers, and for classes.
STARTS = {
    "targets": (TopicRegressor, TopicClassifier),
    "noise": (paper_settings.PaperRegressor, paper_settings.PaperClassifier),
}


def rows(data: Path) -> list[Row]:
    hotels, films = data / "tripadvisor_79k.jsonl.gz", data / "imdb.jsonl.gz"
    targets = [("tripadvisor-stars", hotels, "stars", "r2"), ("imdb-rating", films, "rating", "r2")]
    targets.append(("imdb-sentiment", films, "sentiment", "roc_auc"))
    targets.append(("20newsgroups-group", data / "20newsgroups.jsonl.gz", "group", "accuracy"))
    vocabularies = [("", 5_000), ("-all-words", None)]
    return [Row(name + end, *what, n_words=n_words) for end, n_words in vocabularies for name, *what in targets]


def _value(text: str) -> Any:
    """A number, true, false or null as in JSON; all else is text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def parsed(setting: str) -> dict[str, Any]:
    """Parameters by name, the start among them."""
    first, *others = setting.split(",")
    settings: dict[str, Any] = {START: "targets"}
    if first == PAPER:
        settings = {START: "noise"} | paper_settings.SETTINGS
    elif first != DEFAULTS:
        others.insert(0, first)
    known = {START, *TopicRegressor().get_params()} - {"n_topics", "random_state", "n_jobs"}
    for each in others:
        name, is_given, text = each.partition("=")
        if not is_given or name not in known:
            raise ValueError(f"found {each!r} in the setting {setting!r}, expected NAME=VALUE with one of {sorted(known)}")
        settings[name] = _value(text)
    if settings[START] not in STARTS:
        raise ValueError(f"found {START}={settings[START]} in the setting {setting!r}, expected one of {sorted(STARTS)}")
    return settings


def make(job: Job, n_jobs: int) -> Any:
    settings = parsed(job.system)
    regressor, classifier = STARTS[settings.pop(START)]
    estimator = regressor if job.row.measure == "r2" else classifier
    return estimator(job.n_topics, random_state=job.repeat, n_jobs=n_jobs, **settings)


def main(arguments: Sequence[str] | None = None) -> int:
    names = [row.name for row in rows(Path())]
    parser = command.parser(__doc__, FULL)
    parser.add_argument("--settings", nargs="+", default=CHANGES, help="each a line of the table")
    parser.add_argument("--rows", nargs="+", choices=names, default=names[:3], metavar="ROW", help=", ".join(names))
    chosen = command.parsed(parser, FULL, QUICK, arguments)
    try:
        for setting in chosen.settings:
            parsed(setting)
    except ValueError as error:
        parser.error(str(error))
    measured = command.sized([row for row in rows(chosen.data or Path()) if row.name in chosen.rows], chosen)
    curves = [Curve(setting, setting) for setting in chosen.settings]
    runs = command.run("settings", Experiment(load, make, measure), jobs(measured, curves, chosen.topics, chosen.repeats), chosen)
    # What is changed in the paper's settings is compared with them.
    theirs = [curve for curve in curves if curve.system.split(",")[0] == PAPER]
    ours = [curve for curve in curves if curve not in theirs]
    tables = []
    for row in measured:
        tables.append(table_of(runs, row, curves, chosen.topics))
        tables += [leads_of(runs, row, group, chosen.topics) for group in (ours, theirs) if group]
    return command.write("settings", chosen, [], tables, runs)


if __name__ == "__main__":
    raise SystemExit(main())
