"""How good: held-out scores beside tuned baselines, and whether people can read the topics.

    python experiments/quality.py DATA_DIR [--rows imdb-rating ...] [--systems mirrorlda linear-tfidf ...]
    python experiments/quality.py --file reviews.jsonl.gz --text text --target stars

DATA_DIR holds imdb.jsonl.gz and the others, one JSON object a line with a text, its labels and its split; rows whose files
are not there are left out. All systems see the same word counts. What they choose, they choose on the training part.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import get_scorer

import command
import themes
from baselines import linear, network, tomotopy_models, topica_models
from mirrorlda import TopicClassifier, TopicModel, TopicRegressor
from plots import Panel, Point, draw
from results import Run, Summary, append_runs, read_runs, summary, table
from rows import Data, Row, examples, known_rows, row_of_file
from running import Experiment, Job, run_all

N_TOPICS = 50
SYSTEMS = {
    "mirrorlda": "mirrorlda",
    "mirrorlda-one-matrix": "mirrorlda, readability=0",
    "linear-tfidf": "linear, tf-idf",
    "linear-counts": "linear, counts",
    "network": "network",
    "bp-lda": "TopicModel, then linear",
    "lda": "tomotopy LDA, then linear",
    "slda": "tomotopy sLDA",
    "topica-lda": "topica LDA",
    "topica-slda": "topica sLDA",
    "scholar": "topica Scholar",
}
# The same systems where there is nothing to predict.
UNSUPERVISED = {"mirrorlda": "mirrorlda TopicModel", "lda": "tomotopy LDA", "topica-lda": "topica LDA"}
DETERMINISTIC = ["linear-tfidf", "linear-counts"]
WITHOUT_TOPICS = [*DETERMINISTIC, "network"]
# They take minutes for a few thousand documents: one seed, and a random choice of so many documents to train on.
SLOW, MOST_DOCUMENTS = ["topica-lda", "topica-slda", "scholar"], 4_000
# Training may take ten times as long as this system does, choice of its penalty included, or a minute.
YARDSTICK, TIMES, AT_LEAST = "linear-tfidf", 10, 60.0
SCORES = {"r2": "R2", "roc_auc": "AUC", "accuracy": "accuracy"}


def estimators(measure: str, seed: int, n_jobs: int, n_topics: int | None = None) -> dict[str, Any]:
    """An estimator of each system that has one for the measure; topics as many as each system has by default, or `n_topics`."""
    common = {"random_state": seed, "n_jobs": n_jobs}
    sized = common if n_topics is None else common | {"n_topics": n_topics}
    lda = tomotopy_models.TomotopyLDA(n_topics or N_TOPICS, **common)
    bp_lda = TopicModel(n_topics or N_TOPICS, **common)
    if measure == "npmi":
        return {"mirrorlda": bp_lda, "lda": lda, "topica-lda": topica_models.TopicaLDA(n_topics or N_TOPICS, **common)}
    if measure == "r2":
        return {
            "mirrorlda": TopicRegressor(**sized),
            "mirrorlda-one-matrix": TopicRegressor(readability=0, **sized),
            "linear-tfidf": linear.tuned_ridge(linear.TFIDF, measure, n_jobs),
            "linear-counts": linear.tuned_ridge(linear.COUNTS, measure, n_jobs),
            "network": network.tuned_regressor(measure, seed, n_jobs),
            "bp-lda": linear.on_proportions(bp_lda, linear.tuned_ridge, measure, n_jobs),
            "lda": linear.on_proportions(lda, linear.tuned_ridge, measure, n_jobs),
            "slda": tomotopy_models.SupervisedLDARegressor(**sized),
            "topica-slda": topica_models.TopicaSLDARegressor(**sized),
            "scholar": topica_models.ScholarRegressor(**sized),
        }
    classifiers = {
        "mirrorlda": TopicClassifier(**sized),
        "mirrorlda-one-matrix": TopicClassifier(readability=0, **sized),
        "linear-tfidf": linear.tuned_logistic(linear.TFIDF, measure, n_jobs),
        "linear-counts": linear.tuned_logistic(linear.COUNTS, measure, n_jobs),
        "network": network.tuned_classifier(measure, seed, n_jobs),
        "bp-lda": linear.on_proportions(bp_lda, linear.tuned_logistic, measure, n_jobs),
        "lda": linear.on_proportions(lda, linear.tuned_logistic, measure, n_jobs),
        "scholar": topica_models.ScholarClassifier(**sized),
    }
    if measure == "roc_auc":
        classifiers["slda"] = tomotopy_models.SupervisedLDAClassifier(**sized)
        classifiers["topica-slda"] = topica_models.TopicaSLDAClassifier(**sized)
    return classifiers


def load(job: Job) -> Data:
    data = examples(job.row, job.repeat)
    if job.system not in SLOW or data.X.shape[0] <= MOST_DOCUMENTS:
        return data
    some = np.sort(np.random.default_rng(0).permutation(data.X.shape[0])[:MOST_DOCUMENTS])
    return data._replace(X=data.X[some], y=None if data.y is None else data.y[some])


def make(job: Job, n_jobs: int) -> Any:
    return estimators(job.row.measure, job.repeat, n_jobs, job.n_topics)[job.system]


def measure(job: Job, model: Any, data: Data, *, folder: Path) -> dict[str, float]:
    """Scores on the test part, and measures of the topics, whose proportions are kept in the folder."""
    predicts = job.row.target is not None
    scores = {job.row.measure: float(get_scorer(job.row.measure)(model, data.X_test, data.y_test))} if predicts else {}
    if job.system in WITHOUT_TOPICS:
        return scores
    # Topics that know nothing of the targets are the first step of a pipeline.
    topics = model[0] if predicts and job.system in ("bp-lda", "lda") else model
    found, theta = themes.measured(topics, job.row, data)
    folder.mkdir(parents=True, exist_ok=True)
    np.save(themes.proportions_file(folder, job), theta.astype(np.float32))
    return scores | found


def add_stability(path: Path, jobs: Sequence[Job], folder: Path) -> None:
    """A line for each seed whose topics can be compared with those of another one."""
    runs = {run.key: run for run in read_runs(path) if not run.error}
    groups: dict[tuple[Any, ...], list[Job]] = {}
    for job in jobs:
        if job.key in runs and themes.proportions_file(folder, job).exists():
            groups.setdefault(job.key[:-1], []).append(job)
    for group in groups.values():
        if len(group) > 1:
            scores = themes.stability([np.load(themes.proportions_file(folder, job)) for job in group])
            found = zip(group, scores, strict=True)
            append_runs(path, [replace(runs[job.key], measure=themes.STABILITY, score=score) for job, score in found])


def wanted(rows: list[Row], systems: list[str], n_seeds: int, n_topics: int | None = None) -> list[Job]:
    """All rows and systems with one seed, then with the next; some have only one.

    What is slow runs once, and so does what is deterministic unless labels are drawn.
    """
    return [
        Job(row, system, seed, None if system in WITHOUT_TOPICS else n_topics)
        for seed in range(n_seeds)
        for row in rows
        for system in systems
        if system in estimators(row.measure, 0, 1)
        if seed == 0 or not (system in SLOW or (system in DETERMINISTIC and row.n_labelled is None))
    ]


def verdict(row: Row, mean: float) -> str:
    if row.must is None or mean < row.must:
        return "" if row.must is None else "MISSED"
    return "must" if row.stretch is None or mean < row.stretch else "stretch"


def table_of_row(row: Row, runs: list[Run]) -> Iterator[list[str]]:
    """A line for each system's score; must and stretch are what mirrorlda has to reach."""
    found = {system: summary(of(runs, system, row.measure)) for system in SYSTEMS}
    yardstick = found[YARDSTICK]
    limit = max(AT_LEAST, TIMES * yardstick.seconds) if yardstick.n_runs else AT_LEAST
    for system, reached in found.items():
        if not reached.n_runs:
            continue
        interval = f"± {reached.half_width:.4f}" if reached.n_runs > 1 else ""
        in_time = f"{'within' if reached.seconds <= limit else 'OVER'} {limit:.0f} s"
        goals = ["", "", ""]
        if system == "mirrorlda":
            goals = [*("" if goal is None else f"{goal:.3f}" for goal in (row.must, row.stretch)), verdict(row, reached.mean)]
        training = [f"{reached.seconds:.1f} s", in_time if system == "mirrorlda" else ""]
        yield [row.name, row.measure, system, f"{reached.mean:.4f}", interval, str(reached.n_runs), *goals, *training]


def of(runs: Sequence[Run], system: str, measure: str) -> list[Run]:
    return [run for run in runs if (run.system, run.measure) == (system, measure)]


def stability_of(runs: Sequence[Run]) -> Summary:
    """Pairs that share a seed depend on each other: the interval is that of the jackknife, which leaves out one seed each time.

    Two seeds are one pair, and have none.
    """
    found = summary(runs)
    n = found.n_runs
    return replace(found, deviation=2 * (n - 1) / (n - 2) * found.deviation if n > 2 else np.nan)


def summary_of(runs: Sequence[Run], system: str, measure: str) -> Summary:
    return (stability_of if measure == themes.STABILITY else summary)(of(runs, system, measure))


def with_interval(found: Summary, digits: int) -> str:
    """Mean and half the width of its 95 % interval."""
    if not found.n_runs:
        return ""
    return f"{found.mean:.{digits}f}" + ("" if np.isnan(found.half_width) else f" ± {found.half_width:.{digits}f}")


def table_of_themes(row: Row, runs: list[Run]) -> str:
    """Prediction and the measures of topics, a line for each system; empty if none has topics."""
    there = {run.measure for run in runs}
    columns = {name: label for name, label in (SCORES | themes.MEASURES).items() if name in there}
    if not set(columns) & set(themes.MEASURES):
        return ""
    lines = []
    for system, label in (UNSUPERVISED if row.target is None else SYSTEMS).items():
        whole = summary(of(runs, system, row.measure))
        if whole.n_runs:
            cells = [with_interval(summary_of(runs, system, name), 1 if name == "n_effective" else 3) for name in columns]
            n_docs = max(run.n_docs for run in of(runs, system, row.measure))
            lines.append([label, *cells, str(whole.n_runs), f"{n_docs:,}", f"{whole.seconds:.1f} s"])
    return table([row.name, *columns.values(), "seeds", "documents", "training"], lines)


def panel(row: Row, runs: list[Run]) -> Panel:
    """Prediction against coherence, a point for each system with topics."""
    found = {name: (summary_of(runs, name, "npmi"), summary_of(runs, name, row.measure)) for name in SYSTEMS}
    points = [Point(SYSTEMS[name], *both, name == "mirrorlda") for name, both in found.items() if both[0].n_runs]
    return Panel(row.name, "NPMI of ten words", SCORES[row.measure], points=points)


def write_pages(folder: Path, rows: Sequence[Row], runs: Sequence[Run], chosen: argparse.Namespace) -> None:
    """themes.md, themes.svg and the runs in themes.csv."""
    folder.mkdir(parents=True, exist_ok=True)
    by_row = [(row, [run for run in runs if run.row == row.name]) for row in rows]
    panels = [panel(row, found) for row, found in by_row if row.target is not None]
    panels = [each for each in panels if each.points]
    parts = []
    if panels:
        draw(folder / "themes.svg", panels, n_columns=2)
        parts.append(f"![{'; '.join(each.title for each in panels)}](themes.svg)")
    parts += filter(None, (table_of_themes(row, found) for row, found in by_row))
    failed = sorted({f"- {run.row}, {run.system}: {run.error}" for run in runs if run.error})
    if failed:
        parts.append("Failed:\n\n" + "\n".join(failed))
    cores = "all cores for each run" if chosen.jobs < 0 else f"{chosen.jobs} cores for each run"
    parts.append("; ".join(command.setting("quality", chosen, runs, cores)) + ".")
    (folder / "themes.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    (folder / "themes.csv").unlink(missing_ok=True)
    append_runs(folder / "themes.csv", runs)


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("data", type=Path, nargs="?", metavar="DATA_DIR", help="where imdb.jsonl.gz and the others are")
    own = parser.add_argument_group(
        "a file of your own", "JSON objects, one a line; a field split says train or test, or else a fifth is held out"
    )
    own.add_argument("--file", type=Path, help=".jsonl or .jsonl.gz")
    own.add_argument("--text", default="text", help="field of the text")
    own.add_argument("--target", help="field to predict: numbers, or classes if they are strings or two")
    own.add_argument("--words", type=int, default=5_000, help="size of the vocabulary")
    parser.add_argument("--rows", nargs="+", choices=[row.name for row in known_rows(Path())], help="these rows of DATA_DIR only")
    parser.add_argument("--unsupervised", action="store_true", help="also topics of the same files without a target")
    parser.add_argument("--systems", nargs="+", choices=list(SYSTEMS), default=list(SYSTEMS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--topics", type=int, help="as many for every system; by default as many as each has by default")
    parser.add_argument("--documents", type=int, help="a random choice of so many of each row, both parts together")
    parser.add_argument("--jobs", type=int, default=-1, help="threads or processes of each system, -1 for all cores")
    parser.add_argument("--minutes", type=float, help="begin no run after so long; the same command goes on later")
    parser.add_argument("--out", type=Path, default=Path("quality.csv"), help="finished runs, one a line")
    parser.add_argument("--pages", type=Path, metavar="FOLDER", help="write themes.md, themes.csv and themes.svg to it")
    parser.add_argument("--resume", action=argparse.BooleanOptionalAction, default=True, help="skip runs that are in OUT")
    chosen = parser.parse_args(arguments)
    if (chosen.file is None) != (chosen.target is None):
        parser.error("--file and --target go together")
    if chosen.data is None and chosen.file is None:
        parser.error("nothing to measure: give DATA_DIR or --file and --target")
    for name in ("seeds", "topics", "documents"):
        if getattr(chosen, name) is not None and getattr(chosen, name) < 1:
            parser.error(f"--{name} is 1 or more")
    chosen.given = command.given(parser, chosen)
    return chosen


def rows_to_run(chosen: argparse.Namespace) -> list[Row]:
    rows = [] if chosen.data is None else known_rows(chosen.data)
    if chosen.rows is not None:
        rows = [row for row in rows if row.name in chosen.rows]
    for row in rows:
        if not row.is_there():
            print(f"{row.name} left out: its files are not all in {chosen.data}", file=sys.stderr)
    rows = [row for row in rows if row.is_there()]
    if chosen.file is not None:
        try:
            rows.append(row_of_file(chosen.file, chosen.text, chosen.target, chosen.words))
        except (OSError, ValueError) as error:
            raise SystemExit(str(error)) from error
    if chosen.unsupervised:
        files = dict.fromkeys((row.path, row.text, row.n_words) for row in rows if row.target is not None)
        alone = [Row(f"{path.name.split('.')[0]}-topics", path, None, "npmi", n, text=text) for path, text, n in files]
        # A row of the same file and name may be there already.
        rows += [row for row in alone if row.name not in {known.name for known in rows}]
    if chosen.documents is not None:
        # What mirrorlda has to reach is meant for all documents.
        some = {"n_docs": chosen.documents, "must": None, "stretch": None}
        rows = [replace(row, name=f"{row.name}-{chosen.documents}-documents", **some) for row in rows]
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(arguments)
    rows = rows_to_run(chosen)
    jobs = wanted(rows, chosen.systems, chosen.seeds, chosen.topics)
    folder = chosen.out.with_name(f"{chosen.out.stem}-proportions")
    experiment = Experiment(load, make, partial(measure, folder=folder))
    run_all(experiment, jobs, chosen.out, n_jobs=chosen.jobs, minutes=chosen.minutes, resume=chosen.resume)
    add_stability(chosen.out, jobs, folder)
    fingerprints = {(row.name, row.fingerprint) for row in rows}
    runs = [run for run in read_runs(chosen.out) if (run.row, run.fingerprint) in fingerprints]
    runs = [run for run in runs if run.n_topics == (None if run.system in WITHOUT_TOPICS else chosen.topics)]
    header = ["row", "measure", "system", "mean", "95 %", "runs", "must", "stretch", "verdict", "training", "time limit"]
    of_rows = [(row, [run for run in runs if run.row == row.name]) for row in rows]
    print(table(header, [line for row, found in of_rows for line in table_of_row(row, found)]))
    for row, found in of_rows:
        if text := table_of_themes(row, found):
            print(f"\n{text}")
    if chosen.pages is not None:
        write_pages(chosen.pages, rows, runs, chosen)


if __name__ == "__main__":
    main()
