"""The top words of topics, read from what users have: weights of all words, or ranked words by number or by name."""

from __future__ import annotations

from typing import Any

import numpy as np


def first_words(topics: Any, n_words: int, n_columns: int | None = None) -> np.ndarray:
    """The first n_words words of each topic, by number or name as given; weights must be those of n_columns words."""
    rows = [_row(topic, number) for number, topic in enumerate(topics)]
    if not rows:
        raise ValueError("topics must have at least one topic, got none")
    kinds = {row.dtype.kind for row in rows}
    if not (kinds <= set("fiu") or kinds == {"U"}):
        raise ValueError(
            "topics must hold weights (floating-point numbers), or words by number (integers) or by name (strings), "
            f"got {', '.join(sorted({str(row.dtype) for row in rows}))}"
        )
    weighted = "f" in kinds
    if weighted:
        _check_weights(rows, len(rows[0]) if n_columns is None else n_columns)
    for number, row in enumerate(rows):
        if len(row) < n_words:
            raise ValueError(f"topic {number} has {len(row)} words, fewer than n_words, which is {n_words}")
    if weighted:
        return np.array([np.argsort(-row.astype(np.float64), kind="stable")[:n_words] for row in rows])
    words = np.array([row[:n_words] for row in rows])
    for number, row in enumerate(words):
        distinct, times = np.unique(row, return_counts=True)
        if times.max() > 1:
            raise ValueError(f"topic {number} has the word {distinct[times.argmax()]} more than once among its first {n_words}")
    return words


def _row(topic: Any, number: int) -> np.ndarray:
    row = np.asarray(topic)
    if row.ndim != 1:
        raise ValueError(f"topic {number} must be a sequence of weights or of words, got {topic!r}")
    # Names are often objects, as are those of scikit-learn's vectorizers.
    return np.array(row.tolist()) if row.dtype == object else row


def _check_weights(rows: list[np.ndarray], n_columns: int) -> None:
    for number, row in enumerate(rows):
        if len(row) != n_columns:
            raise ValueError(f"topic {number} has weights for {len(row)} words, expected {n_columns}")
        if np.isnan(row).any():
            raise ValueError(f"topic {number} has the weight nan for word {np.isnan(row).argmax()}")


def columns_of(words: np.ndarray, names: Any, n_columns: int) -> np.ndarray:
    """Columns of X of words given by number or name."""
    if names is not None and len(names) != n_columns:
        raise ValueError(f"names has {len(names)} entries, but X has {n_columns} words")
    if words.dtype.kind == "U":
        return _columns_by_name(words, range(n_columns) if names is None else names)
    _check_numbers(words, n_columns)
    return words


def names_of(words: np.ndarray, names: Any) -> list[list[str]]:
    """Names of words given by number or name."""
    if words.dtype.kind == "U":
        return words.tolist()  # type: ignore[no-any-return]
    if names is None:
        raise ValueError("names must be given, for topics has weights or numbers of words, and texts have their names")
    _check_numbers(words, len(names))
    called = list(_numbered(names))
    return [[called[word] for word in row] for row in words.tolist()]


def _check_numbers(words: np.ndarray, n_columns: int) -> None:
    outside = np.argwhere((words < 0) | (words >= n_columns))
    if len(outside):
        topic, rank = outside[0]
        raise ValueError(f"topic {topic} has the word {words[topic, rank]}, but words are numbered 0 to {n_columns - 1}")


def _columns_by_name(words: np.ndarray, names: Any) -> np.ndarray:
    columns = _numbered(names)
    for topic, row in enumerate(words.tolist()):
        for word in row:
            if word not in columns:
                raise ValueError(f"topic {topic} has the word {word!r}, which is not among the names of the words of X")
    return np.array([[columns[word] for word in row] for row in words.tolist()])


def _numbered(names: Any) -> dict[str, int]:
    columns: dict[str, int] = {}
    for column, name in enumerate(map(str, names)):
        if columns.setdefault(name, column) != column:
            raise ValueError(f"names must differ, got {name!r} for words {columns[name]} and {column}")
    return columns
