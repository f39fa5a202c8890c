"""Writing a corpus on disk."""

from __future__ import annotations

import operator
import os
import secrets
import shutil
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from mirrorlda.data.corpus.manifest import WORD_COLUMNS, Target, is_corpus, is_described, is_generation, write_description
from mirrorlda.data.corpus.shards import NO_LABELS, ShardWriter, WrittenShard, shard_name
from mirrorlda.data.documents import as_documents
from mirrorlda.data.files.atomic import sync, sync_directory
from mirrorlda.data.text import Vocabulary

# Where a document belongs to no split.
NO_SPLIT = 255


class Generation:
    """Files of one writer beside the corpus that is at `path`: they become that corpus with `commit`, and are gone without it.

    Use it in a `with` statement.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        check_place(path)
        self.path = Path(path).absolute()
        self.name = secrets.token_hex(8)
        self.files = self.path / self.name
        self._was_there = self.path.exists()

    def __enter__(self) -> Self:
        self.files.mkdir(parents=True)
        return self

    def __exit__(self, *_: object) -> None:
        if not is_described(self.path, self.name):
            shutil.rmtree(self.files, ignore_errors=True)
            if not self._was_there and not any(self.path.iterdir()):
                self.path.rmdir()

    def commit(
        self, shards: Shards, vocabulary: Vocabulary | None, target: Target | None, splits: Iterable[str], has_ids: bool
    ) -> None:
        """Describe what was written, and remove what other writers have left."""
        words = self._write_words(shards, vocabulary)
        sync_directory(self.files)
        description = {
            "generation": self.name,
            "n_docs": sum(shard["n_docs"] for shard in shards.described),
            "n_words": len(shards.frequencies),
            "n_entries": sum(shard["n_entries"] for shard in shards.described),
            "has_words": vocabulary is not None,
            "text": None if vocabulary is None else asdict(vocabulary.definition),
            "target": None if target is None else asdict(target),
            "splits": list(splits),
            "has_ids": has_ids,
            "words": words,
            "shards": shards.described,
        }
        write_description(self.path, description)
        for other in self.path.iterdir():
            if other.name != self.name and is_generation(other.name):
                shutil.rmtree(other, ignore_errors=True)

    def _write_words(self, shards: Shards, vocabulary: Vocabulary | None) -> dict[str, Any]:
        values = {"frequencies": shards.frequencies, "document_frequencies": shards.document_frequencies}
        if vocabulary is not None:
            values["letters"], values["offsets"] = vocabulary.arrays()
        columns = {name: np.ascontiguousarray(array, WORD_COLUMNS[name]).tobytes() for name, array in values.items()}
        described, offset = {}, 0
        with open(self.files / "words", "wb") as file:
            for name, data in columns.items():
                described[name] = [offset, len(data), zlib.crc32(data)]
                file.write(data + bytes(-len(data) % 8))
                offset += len(data) + -len(data) % 8
            sync(file)
        return {"bytes": offset, "columns": described}


class Shards:
    """Shards so far, in their order: descriptions, and word frequencies, which are sums over the shards."""

    def __init__(self, n_words: int) -> None:
        self.described: list[dict[str, Any]] = []
        self.frequencies, self.document_frequencies = np.zeros(n_words), np.zeros(n_words, np.int64)

    def add(self, shard: WrittenShard) -> None:
        self.described.append(shard.description)
        self.frequencies += shard.frequencies
        self.document_frequencies += shard.document_frequencies


class CorpusWriter:
    """Writes a corpus, documents in the order in which they come; a `with` block that ends well makes it the one at `path`.

    Parameters
    ----------
    path : path of the directory, which is made; a corpus that is there already stays until the new one is complete
    n_words : int
    vocabulary : Vocabulary, optional
        The words, so that a model fitted on the corpus can predict from text.
    target : Target, optional
        What the targets are; `values` are found.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from mirrorlda import Corpus, CorpusWriter
    >>> path = tempfile.mkdtemp() + "/two.corpus"
    >>> with CorpusWriter(path, n_words=3) as writer:
    ...     writer.add(np.array([[2, 0, 1], [0, 1, 0]]))
    >>> Corpus(path).matrix().toarray()
    array([[2., 0., 1.],
           [0., 1., 0.]], dtype=float32)
    """

    def __init__(
        self, path: str | os.PathLike[str], n_words: int, *, vocabulary: Vocabulary | None = None, target: Target | None = None
    ) -> None:
        if vocabulary is not None and len(vocabulary) != n_words:
            raise ValueError(f"the vocabulary has {len(vocabulary)} words where n_words is {n_words}")
        n_words = operator.index(n_words)
        if not 1 <= n_words < 2**31:
            raise ValueError(f"n_words must be at least 1 and below 2**31, got {n_words}")
        self.path = Path(path)
        self._n_words, self._vocabulary, self._target = n_words, vocabulary, target
        self._generation = Generation(path)
        self._is_open = False
        self._values = Values()
        self._splits: dict[str, int] = {}
        self._has_ids: bool | None = None
        self._has_split: bool | None = None
        self._shards = Shards(n_words)
        self._shard: ShardWriter | None = None

    def __enter__(self) -> Self:
        self._generation.__enter__()
        self._is_open = True
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._is_open = False
        try:
            if kind is None:
                self._finish_shard()
                target = None if self._target is None else replace(self._target, values=tuple(self._values))
                self._generation.commit(self._shards, self._vocabulary, target, self._splits, bool(self._has_ids))
        finally:
            if self._shard is not None:
                self._shard.close()
            self._generation.__exit__()

    def add(self, X: Any, y: Any = None, *, ids: Sequence[str] | None = None, split: Sequence[str | None] | None = None) -> None:
        """Documents, as a matrix of counts, with their targets (None or NaN: missing), ids and names of splits."""
        if not self._is_open:
            raise ValueError("a corpus is written within its `with` block")
        documents = as_documents(X)
        if documents.n_words != self._n_words:
            raise ValueError(f"X has {documents.n_words} words where the corpus has {self._n_words}")
        columns = self._new_columns(documents.n_docs, y, ids, split)
        first = 0
        while first < documents.n_docs:
            if self._shard is None:
                self._shard = ShardWriter(self._generation.files / shard_name(len(self._shards.described)), self._n_words)
            last = min(documents.n_docs, first + self._shard.room)
            part = {name: values[first:last] for name, values in columns.items()}
            self._shard.add(documents.take(np.arange(first, last)), _flat(part))
            if not self._shard.room:
                self._finish_shard()
            first = last

    def _finish_shard(self) -> None:
        if self._shard is not None:
            self._shards.add(self._shard.finish())
            self._shard = None

    def _new_columns(self, n_docs: int, y: Any, ids: Any, split: Any) -> dict[str, Any]:
        columns: dict[str, Any] = {}
        for name, values in (("y", y), ("ids", ids), ("split", split)):
            if values is not None and len(values) != n_docs:
                raise ValueError(f"there are {n_docs} documents, but {len(values)} values of {name}")
        if (y is None) != (self._target is None):
            raise ValueError("y must be given if and only if the corpus was begun with a target")
        for name, given, known in (("ids", ids, self._has_ids), ("split", split, self._has_split)):
            if known is not None and known != (given is not None):
                raise ValueError(f"{name} must be given for all documents or for none")
        self._has_ids, self._has_split = ids is not None, split is not None
        if ids is not None:
            columns["ids"] = _ragged([np.frombuffer(str(i).encode(errors="surrogatepass"), np.uint8) for i in ids])
        if split is not None:
            columns["split"] = split_codes(split, self._splits)
        if self._target is not None:
            columns |= self._target_columns(self._target, y)
        return columns

    def _target_columns(self, target: Target, y: Any) -> dict[str, Any]:
        if target.kind == "numbers":
            numbers = _numbers(y)
            if numbers.shape[1] != len(target.names):
                raise ValueError(f"y has {numbers.shape[1]} numbers a document, but the target has the names {target.names}")
            if np.isinf(numbers).any():
                raise ValueError(f"y[{np.argmax(np.isinf(numbers).any(axis=1))}] is infinite")
            partly = np.isnan(numbers).any(axis=1) & ~np.isnan(numbers).all(axis=1)
            if partly.any():
                raise ValueError(f"y[{np.argmax(partly)}] has some targets but not all: give all of a document, or none")
            return {"numbers": numbers}
        if target.kind == "classes":
            return {"codes": np.array([-1 if _is_missing(v) else self._values.code(v) for v in y], np.int32)}
        if strings := [value for value in y if isinstance(value, str)]:
            raise ValueError(f"labels of a document must be a list, got the string {strings[0]!r}")
        return {
            "codes": _ragged(
                [None if _is_missing(v) else np.array(sorted({self._values.code(i) for i in v}), np.int32) for v in y]
            )
        }


class Values:
    """Classes or labels, numbered in the order in which they come; all are of one type."""

    def __init__(self) -> None:
        self._codes: dict[Any, int] = {}

    def __iter__(self) -> Iterator[Any]:
        return iter(self._codes)

    def code(self, value: Any) -> int:
        value = value.item() if isinstance(value, np.generic) else value
        if not isinstance(value, str | int | float | bool):
            raise ValueError(f"a class must be a string, a number or a boolean, got {value!r}")
        if isinstance(value, str) and "\0" in value:
            raise ValueError(f"a class cannot have the character NUL, got {value!r}")
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise ValueError(f"a class that is a whole number must have at most 64 bits, got {value}")
        if self._codes and type(value) is not type(first := next(iter(self._codes))):
            raise ValueError(
                f"classes must be of one type; {first!r} is {type(first).__name__}, {value!r} {type(value).__name__}"
            )
        return self._codes.setdefault(value, len(self._codes))


def split_codes(names: Iterable[str | None], known: dict[str, int]) -> np.ndarray:
    """Numbers of the splits with these names, among those that are known; new ones become known."""
    codes = [NO_SPLIT if name is None else known.setdefault(str(name), len(known)) for name in names]
    if len(known) >= NO_SPLIT:
        raise ValueError(f"a corpus has fewer than {NO_SPLIT} splits, found {len(known)}")
    return np.array(codes, np.uint8)


def check_place(path: str | os.PathLike[str]) -> None:
    """That a corpus can be written there: where nothing is, or a corpus, or what a dead writer left of one."""
    place = Path(path)
    if place.exists() and not place.is_dir():
        raise FileExistsError(f"{place} is a file; a corpus is a directory")
    if not place.exists() or is_corpus(place):
        return
    if others := sorted(found.name for found in place.iterdir() if not is_generation(found.name)):
        raise FileExistsError(f"{place} is a directory with other files in it ({others[0]}), not a corpus")


def _numbers(y: Any) -> np.ndarray:
    """Numbers of each document, NaN where there are none."""
    array = np.asarray(y)
    if array.dtype.kind not in "fiub":
        try:
            array = np.array([[np.nan if v is None else float(v) for v in np.atleast_1d(row)] for row in y], np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"targets must be numbers: {error}") from None
    return array.astype(np.float64).reshape(len(array), -1)


def _ragged(values: list[Any]) -> np.ndarray:
    array = np.empty(len(values), object)
    array[:] = values
    return array


def _flat(columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Columns of values of any length as two: all of them in a row, and their lengths."""
    flat = {}
    for name, values in columns.items():
        if values.dtype != object:
            flat[name] = values
            continue
        flat[name] = np.concatenate([np.zeros(0, np.uint8 if name == "ids" else np.int32), *(v for v in values if v is not None)])
        flat[f"{name[:-1]}_sizes"] = np.array([NO_LABELS if v is None else len(v) for v in values], np.uint32)
    return flat


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value)
