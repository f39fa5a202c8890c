"""Documents of a JSON-lines file: the training and the test part, counted over the training part's most frequent words."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer

HELD_OUT = 0.2


@dataclass(frozen=True)
class Part:
    """Counts, and the lines that they were counted from."""

    X: sp.csr_matrix
    lines: list[dict[str, Any]]

    def values(self, field: str) -> list[Any]:
        """Of each line; None where it has none."""
        return [line.get(field) for line in self.lines]


def numbered_lines(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a file with the numbers of their lines; gzip where the name ends so. Empty lines are passed over."""
    number = 0
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, _document(json.loads(line.decode()), text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}, line {number}, column {error.colno}: {error.msg}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}, line {number}: found bytes that are not UTF-8") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path}, after line {number}: {error}") from error
    except ValueError as error:
        raise ValueError(f"{path}, line {number}: {error}") from error


def _document(found: Any, text: str) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise ValueError(f"found {json.dumps(found):.40}, expected a JSON object")
    if not isinstance(found.get(text), str):
        what = f"{json.dumps(found[text]):.40}" if text in found else "nothing"
        raise ValueError(f"found {what} in the field {text!r}, expected text")
    return found


@lru_cache(maxsize=1)
def read_lines(path: Path, text: str) -> list[dict[str, Any]]:
    """The objects of a file, each of which has a text."""
    return [line for _, line in numbered_lines(path, text)]


def some(lines: list[dict[str, Any]], n_docs: int | None) -> list[dict[str, Any]]:
    """A random choice of `n_docs` of the lines that is always the same, or all of them."""
    if n_docs is None or n_docs >= len(lines):
        return lines
    return [lines[number] for number in np.sort(np.random.default_rng(0).permutation(len(lines))[:n_docs])]


def counting(n_words: int | None) -> CountVectorizer:
    """Counts of the most frequent words, or of all; stop words stay."""
    return CountVectorizer(max_features=n_words, token_pattern=r"(?u)\b\w+\b", dtype=np.float32)


@lru_cache(maxsize=1)
def read_parts(path: Path, text: str, n_words: int | None, n_docs: int | None = None) -> tuple[Part, Part, CountVectorizer]:
    """Training part, test part and what counts their words; of all documents, or of `some` of them.

    Lines say in `split` whether they are of the part "train" or "test". If none does, a random fifth is held out, always the
    same.
    """
    lines = some(read_lines(path, text), n_docs)
    splits = np.array([line.get("split", "") for line in lines])
    if not any(splits):
        splits = np.where(np.random.default_rng(0).random(len(lines)) < HELD_OUT, "test", "train")
    train, test = ([line for line, part in zip(lines, splits, strict=True) if part == name] for name in ("train", "test"))
    if not (train and test):
        raise ValueError(f"{path}: found {len(train)} lines to train on and {len(test)} to test, expected both")
    vectorizer = counting(n_words)
    X_train = vectorizer.fit_transform(line[text] for line in train)
    return Part(X_train, train), Part(vectorizer.transform(line[text] for line in test), test), vectorizer


@lru_cache(maxsize=2)
def read_whole(path: Path, text: str, n_words: int | None, n_docs: int | None) -> Part:
    """All documents, or `some` of them, whatever part they are of."""
    lines = some(read_lines(path, text), n_docs)
    return Part(counting(n_words).fit_transform(line[text] for line in lines), lines)


@lru_cache(maxsize=1)
def read_more(path: Path, text: str, vectorizer: CountVectorizer) -> sp.csr_matrix:
    """Counts of all documents of another file over the same words."""
    return vectorizer.transform(line[text] for line in read_lines(path, text))
