"""How good: held-out scores with default settings on real data, official splits, mean and deviation over seeds.

    python benchmarks/quality.py DATA_DIR [--seeds 5] [--only imdb ...]

DATA_DIR holds imdb.jsonl.gz and the others, one JSON object a line with a text, its labels and its split.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from bench import print_table, progress
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import roc_auc_score

from mirrorlda import TopicClassifier, TopicRegressor


def auc(model: TopicClassifier, X: sp.csr_matrix, y: np.ndarray) -> float:
    return float(roc_auc_score(y, model.decision_function(X)))


def own_score(model: Any, X: sp.csr_matrix, y: np.ndarray) -> float:
    """R2 of a regression, accuracy of a classification."""
    return float(model.score(X, y))


@dataclass(frozen=True)
class Task:
    """One row of the table: what to predict, how to measure it, and what must be reached."""

    file: str
    label: str
    n_words: int
    estimator: Callable[..., Any]
    measure: str
    score: Callable[[Any, sp.csr_matrix, np.ndarray], float]
    must: float | None


TASKS = [
    Task("tripadvisor_79k", "stars", 5_000, TopicRegressor, "R2", own_score, 0.695),
    Task("imdb", "rating", 5_000, TopicRegressor, "R2", own_score, 0.63),
    Task("imdb", "sentiment", 5_000, TopicClassifier, "AUC", auc, 0.945),
    Task("20newsgroups", "group", 10_000, TopicClassifier, "accuracy", own_score, None),
]


@dataclass(frozen=True)
class Part:
    """The training or the test part of a file: counts, and the lines' other fields."""

    X: sp.csr_matrix
    lines: list[dict[str, Any]]

    def labels(self, name: str) -> np.ndarray:
        return np.array([line[name] for line in self.lines])


def read_parts(path: Path, n_words: int) -> tuple[Part, Part]:
    """Training and test part, counted over the most frequent words of the training part; stop words stay."""
    progress(f"reading {path}")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    train, test = ([line for line in lines if line["split"] == split] for split in ("train", "test"))
    vectorizer = CountVectorizer(max_features=n_words, token_pattern=r"(?u)\b\w+\b", dtype=np.float32)
    vectorizer.fit(line["text"] for line in train)
    train_part, test_part = (Part(vectorizer.transform(line["text"] for line in part), part) for part in (train, test))
    return train_part, test_part


def run(task: Task, train: Part, test: Part, n_seeds: int) -> list[str]:
    """A row of the table."""
    y_train, y_test = train.labels(task.label), test.labels(task.label)
    scores, seconds = [], []
    for seed in range(n_seeds):
        progress(f"{task.file} {task.label}: seed {seed + 1} of {n_seeds}")
        start = time.perf_counter()
        model = task.estimator(random_state=seed, n_jobs=-1).fit(train.X, y_train)
        seconds.append(time.perf_counter() - start)
        scores.append(task.score(model, test.X, y_test))
    mean = np.mean(scores)
    deviation = f"{np.std(scores, ddof=1):.4f}" if n_seeds > 1 else ""
    must, verdict = ("", "") if task.must is None else (f"{task.must:.3f}", "must" if mean >= task.must else "MISSED")
    what = f"{task.file} {task.label}, {task.n_words:,} words"
    return [what, task.measure, f"{mean:.4f}", deviation, must, verdict, f"{np.mean(seconds):.1f} s"]


def run_all(data: Path, tasks: list[Task], n_seeds: int) -> Iterator[list[str]]:
    parts: dict[tuple[str, int], tuple[Part, Part]] = {}
    for task in tasks:
        key = task.file, task.n_words
        if key not in parts:
            # One file at a time in memory: tasks of the same file stand together.
            parts = {key: read_parts(data / f"{task.file}.jsonl.gz", task.n_words)}
        yield run(task, *parts[key], n_seeds)
    progress("")


def main() -> None:
    parser = argparse.ArgumentParser(description="How good: held-out scores with default settings.")
    parser.add_argument("data", type=Path, metavar="DATA_DIR")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=sorted({task.file for task in TASKS}), help="these files only")
    options = parser.parse_args()
    tasks = [task for task in TASKS if options.only is None or task.file in options.only]
    rows = list(run_all(options.data, tasks, options.seeds))
    print_table(["what", "measure", f"mean of {options.seeds}", "deviation", "must", "verdict", "training"], rows)


if __name__ == "__main__":
    main()
