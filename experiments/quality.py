"""How good: held-out scores with default settings beside tuned baselines, mean and deviation over seeds, training times.

    python experiments/quality.py DATA_DIR [--rows imdb-rating ...] [--systems mirrorlda linear-tfidf ...]
    python experiments/quality.py --file reviews.jsonl.gz --text text --target stars

DATA_DIR holds imdb.jsonl.gz and the others, one JSON object a line with a text, its labels and its split; rows whose files
are not there are left out. All systems see the same word counts. What they choose, they choose on the training part.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import scipy.sparse as sp
from mirrorlda.metrics import npmi_coherence
from mirrorlda.topics import relevant_words
from sklearn.metrics import get_scorer

from baselines import linear, network, tomotopy_models
from mirrorlda import TopicClassifier, TopicModel, TopicRegressor
from results import Run, read_runs, summary, table
from rows import Data, Row, examples, known_rows, row_of_file
from running import Experiment, Job, run_all

N_TOPICS, N_TOP_WORDS = 50, 10
SYSTEMS = ["mirrorlda", "linear-tfidf", "linear-counts", "network", "lda", "slda"]
DETERMINISTIC = ["linear-tfidf", "linear-counts"]
# Training may take ten times as long as this system does, choice of its penalty included, or a minute.
YARDSTICK, TIMES, AT_LEAST = "linear-tfidf", 10, 60.0


def estimators(measure: str, seed: int, n_jobs: int) -> dict[str, Any]:
    """An estimator of each system that has one for the measure."""
    common = {"random_state": seed, "n_jobs": n_jobs}
    lda = tomotopy_models.TomotopyLDA(N_TOPICS, **common)
    if measure == "npmi":
        return {"mirrorlda": TopicModel(N_TOPICS, **common), "lda": lda}
    if measure == "r2":
        return {
            "mirrorlda": TopicRegressor(**common),
            "linear-tfidf": linear.tuned_ridge(linear.TFIDF, measure, n_jobs),
            "linear-counts": linear.tuned_ridge(linear.COUNTS, measure, n_jobs),
            "network": network.tuned_regressor(measure, seed, n_jobs),
            "lda": linear.on_proportions(lda, linear.tuned_ridge, measure, n_jobs),
            "slda": tomotopy_models.SupervisedLDARegressor(**common),
        }
    classifiers = {
        "mirrorlda": TopicClassifier(**common),
        "linear-tfidf": linear.tuned_logistic(linear.TFIDF, measure, n_jobs),
        "linear-counts": linear.tuned_logistic(linear.COUNTS, measure, n_jobs),
        "network": network.tuned_classifier(measure, seed, n_jobs),
        "lda": linear.on_proportions(lda, linear.tuned_logistic, measure, n_jobs),
    }
    if measure == "roc_auc":
        classifiers["slda"] = tomotopy_models.SupervisedLDAClassifier(**common)
    return classifiers


def topic_scores(model: Any, X: sp.csr_matrix) -> dict[str, float]:
    """Mean NPMI of the topics' most probable and of their most relevant words in the documents X."""
    words = relevant_words(model.components_, model.topic_shares_, n_words=N_TOP_WORDS)
    return {
        "npmi by probability": float(npmi_coherence(model.components_, X, n_words=N_TOP_WORDS).mean()),
        "npmi by relevance": float(npmi_coherence(words, X, n_words=N_TOP_WORDS).mean()),
    }


def load(job: Job) -> Data:
    return examples(job.row, job.repeat)


def make(job: Job, n_jobs: int) -> Any:
    return estimators(job.row.measure, job.repeat, n_jobs)[job.system]


def measure(job: Job, model: Any, data: Data) -> dict[str, float]:
    """Scores on the test part."""
    if job.row.measure == "npmi":
        return topic_scores(model, data.X_test)
    return {job.row.measure: float(get_scorer(job.row.measure)(model, data.X_test, data.y_test))}


def wanted(rows: list[Row], systems: list[str], n_seeds: int) -> list[Job]:
    """Rows, systems and seeds to run; what is deterministic runs once unless labels are drawn."""
    return [
        Job(row, system, seed)
        for row in rows
        for system in systems
        if system in estimators(row.measure, 0, 1)
        for seed in range(1 if system in DETERMINISTIC and row.n_labelled is None else n_seeds)
    ]


def verdict(row: Row, mean: float) -> str:
    if row.must is None or mean < row.must:
        return "" if row.must is None else "MISSED"
    return "must" if row.stretch is None or mean < row.stretch else "stretch"


def table_of_row(row: Row, runs: list[Run]) -> Iterator[list[str]]:
    """A line for each system and score of a row; must and stretch are what mirrorlda has to reach."""
    measures = dict.fromkeys(run.measure for run in runs)
    found = {
        (system, measure): summary(run for run in runs if (run.system, run.measure) == (system, measure))
        for system in SYSTEMS
        for measure in measures
    }
    yardstick = found.get((YARDSTICK, row.measure))
    limit = max(AT_LEAST, TIMES * yardstick.seconds) if yardstick is not None and yardstick.n_runs else AT_LEAST
    for (system, measure), reached in found.items():
        if not reached.n_runs:
            continue
        deviation = f"{reached.deviation:.4f}" if reached.n_runs > 1 else ""
        in_time = f"{'within' if reached.seconds <= limit else 'OVER'} {limit:.0f} s"
        goals = ["", "", ""]
        if system == "mirrorlda":
            goals = [*("" if goal is None else f"{goal:.3f}" for goal in (row.must, row.stretch)), verdict(row, reached.mean)]
        training = [f"{reached.seconds:.1f} s", in_time if system == "mirrorlda" else ""]
        yield [row.name, measure, system, f"{reached.mean:.4f}", deviation, str(reached.n_runs), *goals, *training]


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="How good: held-out scores beside tuned baselines.")
    parser.add_argument("data", type=Path, nargs="?", metavar="DATA_DIR", help="where imdb.jsonl.gz and the others are")
    own = parser.add_argument_group(
        "a file of your own", "JSON objects, one a line; a field split says train or test, or else a fifth is held out"
    )
    own.add_argument("--file", type=Path, help=".jsonl or .jsonl.gz")
    own.add_argument("--text", default="text", help="field of the text")
    own.add_argument("--target", help="field to predict: numbers, or classes if they are strings or two")
    own.add_argument("--words", type=int, default=5_000, help="size of the vocabulary")
    parser.add_argument("--rows", nargs="+", choices=[row.name for row in known_rows(Path())], help="these rows of DATA_DIR only")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=SYSTEMS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=-1, help="threads or processes of each system, -1 for all cores")
    parser.add_argument("--out", type=Path, default=Path("quality.csv"), help="finished runs, one a line")
    parser.add_argument("--resume", action=argparse.BooleanOptionalAction, default=True, help="skip runs that are in OUT")
    chosen = parser.parse_args(arguments)
    if (chosen.file is None) != (chosen.target is None):
        parser.error("--file and --target go together")
    if chosen.data is None and chosen.file is None:
        parser.error("nothing to measure: give DATA_DIR or --file and --target")
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
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(arguments)
    rows = rows_to_run(chosen)
    jobs = wanted(rows, chosen.systems, chosen.seeds)
    run_all(Experiment(load, make, measure), jobs, chosen.out, n_jobs=chosen.jobs, resume=chosen.resume)
    runs = read_runs(chosen.out)
    header = ["row", "measure", "system", "mean", "deviation", "runs", "must", "stretch", "verdict", "training", "time limit"]
    print(table(header, [line for row in rows for line in table_of_row(row, [run for run in runs if run.row == row.name])]))


if __name__ == "__main__":
    main()
