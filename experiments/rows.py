"""Rows of tables: what is predicted from which documents, and how it is measured."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from mirrorlda.metrics.folds import folds
from sklearn.model_selection import train_test_split

from baselines.search import labelled
from documents import numbered_lines, read_more, read_parts, read_whole

N_FOLDS = 5
# Of the numbers that are predicted: their squares have a sum.
_LARGEST = 1e100


@dataclass(frozen=True)
class Row:
    """What to predict, and the measure by scikit-learn's name; without a target topics are measured."""

    name: str
    path: Path
    target: str | None
    measure: str
    # All words if None.
    n_words: int | None = 5_000
    must: float | None = None
    stretch: float | None = None
    # Only so many documents of the training part keep their label, other ones for each seed.
    n_labelled: int | None = None
    # A file of more documents without labels.
    unlabelled: Path | None = None
    text: str = "text"
    # A random choice of so many documents.
    n_docs: int | None = None
    # Fingerprint of the row after whose documents these were drawn.
    drawn_after: str = ""

    @property
    def fingerprint(self) -> str:
        """Another one for another file, other fields or other words."""
        n_bytes = [path.stat().st_size for path in (self.path, self.unlabelled) if path is not None and path.is_file()]
        what = n_bytes, self.text, self.target, self.n_words, self.n_docs, self.n_labelled
        if self.drawn_after:
            return f"{zlib.crc32(repr((self.drawn_after, what)).encode()):08x}"
        return f"{zlib.crc32(repr(what).encode()):08x}"

    def is_there(self) -> bool:
        return self.path.exists() and (self.unlabelled is None or self.unlabelled.exists())


def known_rows(data: Path) -> list[Row]:
    """Rows of the same file stand together: one file is in memory at a time."""
    names = "imdb", "imdb_unlabelled", "tripadvisor_79k", "tripadvisor_aspects", "20newsgroups"
    imdb, more, hotels, aspects, news = (data / f"{name}.jsonl.gz" for name in names)
    return [
        Row("imdb-rating", imdb, "rating", "r2", must=0.617, stretch=0.665),
        Row("imdb-sentiment", imdb, "sentiment", "roc_auc", must=0.957, stretch=0.962),
        Row("imdb-sentiment-1000", imdb, "sentiment", "roc_auc", must=0.916, stretch=0.936, n_labelled=1_000, unlabelled=more),
        Row("tripadvisor-stars", hotels, "stars", "r2", must=0.664, stretch=0.715),
        Row("tripadvisor-stars-2000", hotels, "stars", "r2", must=0.565, stretch=0.62, n_labelled=2_000),
        Row("aspects-stars", aspects, "stars", "r2"),
        Row("20newsgroups-group", news, "group", "accuracy", n_words=10_000, must=0.833, stretch=0.85),
        Row("20newsgroups-topics", news, None, "npmi", n_words=10_000),
    ]


class Data(NamedTuple):
    """Counts and targets of the training part, and those of the labelled documents of the test part."""

    X: sp.csr_matrix
    y: np.ndarray | None
    X_test: sp.csr_matrix
    y_test: np.ndarray | None


def row_of_file(path: Path, text: str, target: str, n_words: int | None) -> Row:
    """A row of the user's own: more than two numbers are predicted as numbers, all else as classes."""
    kind, values = "", set()
    for number, line in numbered_lines(path, text):
        value = line.get(target)
        if value is None:
            continue
        found = "classes" if isinstance(value, bool | str) else "numbers"
        if found == "numbers" and not (isinstance(value, int | float) and -_LARGEST <= value <= _LARGEST):
            raise ValueError(f"{path}, line {number}, field {target!r}: found {value!r}, expected a number, a class or null")
        if kind not in ("", found):
            raise ValueError(f"{path}, line {number}, field {target!r}: found {value!r}, expected {kind} as in the lines before")
        kind = found
        values.add(value)
    if len(values) < 2:
        raise ValueError(f"{path}: found {len(values)} values of {target!r}, expected two or more")
    measure = "roc_auc" if len(values) == 2 else "r2" if kind == "numbers" else "accuracy"
    return Row(f"{path.name.split('.')[0]}-{target}", path, target, measure, n_words, text=text)


def targets(values: list[Any], measure: str) -> np.ndarray:
    """As estimators take them: numbers with NaN, or labels with None, where a document has none."""
    if measure == "r2":
        return np.array(values, np.float64)
    return np.array(values, object if None in values else None)


def examples(row: Row, seed: int) -> Data:
    """The parts that the file names; the vocabulary is that of the training part."""
    train, test, vectorizer = read_parts(row.path, row.text, row.n_words, row.n_docs)
    if row.target is None:
        return Data(train.X, None, test.X, None)
    X, values = train.X, train.values(row.target)
    if row.n_labelled is not None:
        classes = None if row.measure == "r2" else values
        kept, _ = train_test_split(range(len(values)), train_size=row.n_labelled, stratify=classes, random_state=seed)
        kept = set(kept)
        values = [value if number in kept else None for number, value in enumerate(values)]
    if row.unlabelled is not None:
        more = read_more(row.unlabelled, row.text, vectorizer)
        X, values = sp.vstack([X, more], "csr"), values + [None] * more.shape[0]
    y_test = targets(test.values(row.target), row.measure)
    known = labelled(y_test)
    return Data(X, targets(values, row.measure), test.X[known], np.array(y_test[known].tolist()))


def fold(row: Row, number: int) -> Data:
    """The fold of that number for the test part, the others to train on, of the labelled documents of the whole file.

    Words are counted once, over those most frequent in all documents; which these are says nothing of the targets.
    """
    if not 0 <= number < N_FOLDS:
        raise ValueError(f"fold {number}: expected one of the {N_FOLDS} from 0 on")
    whole = read_whole(row.path, row.text, row.n_words, row.n_docs)
    if row.target is None:
        train, test = folds(np.zeros(whole.X.shape[0]), N_FOLDS)[number]
        return Data(whole.X[train], None, whole.X[test], None)
    y = targets(whole.values(row.target), row.measure)
    train, test = folds(y, N_FOLDS, is_stratified=row.measure != "r2")[number]
    # From a list the labels have their own type, where with None among them they are objects.
    return Data(whole.X[train], np.array(y[train].tolist()), whole.X[test], np.array(y[test].tolist()))
