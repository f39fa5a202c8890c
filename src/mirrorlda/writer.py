"""Writing a corpus on disk."""

from __future__ import annotations

import operator
import os
import secrets
import shutil
import zlib
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np

from mirrorlda.description import NO_LABELS, WORD_COLUMNS, Target, is_corpus, is_described, is_generation, write_description
from mirrorlda.documents import Documents, as_documents
from mirrorlda.durable import sync_directory
from mirrorlda.shards import BLOCK_DOCS, SHARD_DOCS, ShardWriter
from mirrorlda.text import Vocabulary

# Where a document belongs to no split.
_NO_SPLIT = 255


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
        check_place(path)
        self.path = Path(path)
        self._n_words, self._vocabulary, self._target = n_words, vocabulary, target
        self._was_there = self.path.exists()
        self._is_open = False
        self._generation = secrets.token_hex(8)
        self._files = self.path / self._generation
        self._values: dict[Any, int] = {}
        self._splits: dict[str, int] = {}
        self._has_ids: bool | None = None
        self._has_split: bool | None = None
        self._described: list[dict[str, Any]] = []
        self._frequencies, self._document_frequencies = np.zeros(n_words), np.zeros(n_words, np.int64)
        self._waiting = as_documents(np.zeros((0, n_words), np.float32))
        self._columns: dict[str, list[np.ndarray]] = {}
        self._shard: ShardWriter | None = None
        self._n_docs = 0

    def __enter__(self) -> Self:
        self._files.mkdir(parents=True)
        self._is_open = True
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._is_open = False
        try:
            if kind is None:
                self._commit()
        finally:
            if self._shard is not None:
                self._file.close()
            if not is_described(self.path, self._generation):
                shutil.rmtree(self._files, ignore_errors=True)
                if not self._was_there and not any(self.path.iterdir()):
                    self.path.rmdir()

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
            last = min(documents.n_docs, first + SHARD_DOCS - self._n_docs % SHARD_DOCS)
            self._add(documents.take(np.arange(first, last)), {name: values[first:last] for name, values in columns.items()})
            first = last

    def _add(self, documents: Documents, columns: dict[str, Any]) -> None:
        """No more documents than this shard has room for."""
        np.add.at(self._frequencies, documents.indices, documents.counts)
        np.add.at(self._document_frequencies, documents.indices, 1)
        for name, values in columns.items():
            self._columns.setdefault(name, []).append(values)
        self._n_docs += documents.n_docs
        self._waiting = _joined(self._waiting, documents)
        self._write_blocks(self._n_docs % SHARD_DOCS == 0)

    def _write_blocks(self, ends_shard: bool) -> None:
        """Whole blocks of what waits; all of it at the end of a shard."""
        waiting = self._waiting
        n_whole = waiting.n_docs if ends_shard else waiting.n_docs // BLOCK_DOCS * BLOCK_DOCS
        if n_whole and self._shard is None:
            self._file = open(self._files / f"{len(self._described):05d}.shard", "wb")  # noqa: SIM115
            self._shard = ShardWriter(self._file, self._n_words)
        for first in range(0, n_whole, BLOCK_DOCS):
            assert self._shard is not None
            self._shard.add(waiting.take(np.arange(first, min(first + BLOCK_DOCS, n_whole))))
        self._waiting = waiting.take(np.arange(n_whole, waiting.n_docs))
        if ends_shard and self._shard is not None:
            self._described.append(
                self._shard.close(_flat({name: np.concatenate(parts) for name, parts in self._columns.items()}))
            )
            self._columns = {}
            _close(self._file)
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
            codes = [_NO_SPLIT if name is None else self._splits.setdefault(str(name), len(self._splits)) for name in split]
            if len(self._splits) >= _NO_SPLIT:
                raise ValueError(f"a corpus has fewer than {_NO_SPLIT} splits, found {len(self._splits)}")
            columns["split"] = np.array(codes, np.uint8)
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
            return {"codes": np.array([-1 if _is_missing(v) else self._code(v) for v in y], np.int32)}
        if strings := [value for value in y if isinstance(value, str)]:
            raise ValueError(f"labels of a document must be a list, got the string {strings[0]!r}")
        return {"codes": _ragged([None if _is_missing(v) else np.array(sorted({self._code(i) for i in v}), np.int32) for v in y])}

    def _code(self, value: Any) -> int:
        value = value.item() if isinstance(value, np.generic) else value
        if not isinstance(value, str | int | float | bool):
            raise ValueError(f"a class must be a string, a number or a boolean, got {value!r}")
        if isinstance(value, str) and "\0" in value:
            raise ValueError(f"a class cannot have the character NUL, got {value!r}")
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise ValueError(f"a class that is a whole number must have at most 64 bits, got {value}")
        if self._values and type(value) is not type(next(iter(self._values))):
            first = next(iter(self._values))
            raise ValueError(
                f"classes must be of one type; {first!r} is {type(first).__name__}, {value!r} {type(value).__name__}"
            )
        return self._values.setdefault(value, len(self._values))

    def _commit(self) -> None:
        if self._n_docs % SHARD_DOCS:
            self._write_blocks(True)
        words = self._write_words()
        target = None if self._target is None else asdict(replace(self._target, values=tuple(self._values)))
        sync_directory(self._files)
        description = {
            "generation": self._generation,
            "n_docs": self._n_docs,
            "n_words": self._n_words,
            "n_entries": sum(shard["n_entries"] for shard in self._described),
            "has_words": self._vocabulary is not None,
            "text": None if self._vocabulary is None else asdict(self._vocabulary.definition),
            "target": target,
            "splits": list(self._splits),
            "has_ids": bool(self._has_ids),
            "words": words,
            "shards": self._described,
        }
        write_description(self.path, description)
        for other in self.path.iterdir():
            if other.name != self._generation and is_generation(other.name):
                shutil.rmtree(other, ignore_errors=True)

    def _write_words(self) -> dict[str, Any]:
        values = {"frequencies": self._frequencies, "document_frequencies": self._document_frequencies}
        if self._vocabulary is not None:
            values["letters"], values["offsets"] = self._vocabulary.arrays()
        columns = {name: np.ascontiguousarray(array, WORD_COLUMNS[name]).tobytes() for name, array in values.items()}
        described, offset = {}, 0
        file = open(self._files / "words", "wb")  # noqa: SIM115
        for name, data in columns.items():
            described[name] = [offset, len(data), zlib.crc32(data)]
            file.write(data + bytes(-len(data) % 8))
            offset += len(data) + -len(data) % 8
        _close(file)
        return {"bytes": offset, "columns": described}


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


def _joined(a: Documents, b: Documents) -> Documents:
    indptr = np.concatenate([a.indptr, b.indptr[1:] + len(a.indices)])
    return Documents(indptr, np.concatenate([a.indices, b.indices]), np.concatenate([a.counts, b.counts]), a.n_words)


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value)


def _close(file: IO[bytes]) -> None:
    """What was written is on the disk."""
    file.flush()
    os.fsync(file.fileno())
    file.close()
