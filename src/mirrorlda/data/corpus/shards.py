"""One shard of a corpus on disk: blocks of documents and columns beside them, each with a checksum, memory-mapped.

A shard holds at most `SHARD_BLOCKS` blocks of `BLOCK_DOCS` documents. A block is what is read and checked at once;
core/corpus/shard.hpp has its bytes. After the blocks come columns, arrays of one kind of value, each at a multiple of 8 bytes.
Where they begin, how long they are and their checksums are in the corpus's own description.
"""

from __future__ import annotations

import mmap
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mirrorlda import _core
from mirrorlda.data.documents import LARGEST_COUNT, Documents
from mirrorlda.data.files.atomic import sync

BLOCK_DOCS = 256
SHARD_BLOCKS = 256
SHARD_DOCS = BLOCK_DOCS * SHARD_BLOCKS

# In place of the number of a document's labels, where it has no target.
NO_LABELS = np.uint32(2**32 - 1)

_BLOCK = np.dtype([("offset", "<u8"), ("n_entries", "<u4"), ("n_large", "<u4"), ("count_bytes", "<u4"), ("checksum", "<u4")])
_LARGE = np.dtype([("place", "<u4"), ("count", "<f8")])
# Types of the columns that a shard may have, by name.
COLUMNS = {
    "blocks": _BLOCK,
    "sizes": np.dtype("<u4"),
    "numbers": np.dtype("<f8"),
    "codes": np.dtype("<i4"),
    "code_sizes": np.dtype("<u4"),
    "ids": np.dtype("u1"),
    "id_sizes": np.dtype("<u4"),
    "split": np.dtype("u1"),
}


class CorpusError(ValueError):
    """A corpus on disk is damaged, incomplete or not a corpus."""


def word_bytes(n_words: int) -> int:
    """Bytes that a word's number takes."""
    return 2 if n_words <= 2**16 else 3 if n_words <= 2**24 else 4


def mapped(path: Path, n_bytes: int) -> mmap.mmap | bytes:
    """The bytes of a file, of which there must be so many."""
    if not path.is_file():
        raise CorpusError(f"{path} is missing")
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        if size != n_bytes:
            raise CorpusError(f"{path}: the file has {size} bytes where {n_bytes} were written")
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""


@dataclass(frozen=True)
class WrittenShard:
    """A shard on the disk: its description, and how often and in how many of its documents each word occurs."""

    description: dict[str, Any]
    frequencies: np.ndarray
    document_frequencies: np.ndarray


class ShardWriter:
    """Writes one shard: blocks as documents come, the columns beside them at the end."""

    def __init__(self, path: Path, n_words: int) -> None:
        self._file = open(path, "wb")  # noqa: SIM115
        self._n_words = n_words
        self._offset = 0
        self._blocks: list[tuple[int, ...]] = []
        self._sizes: list[np.ndarray] = []
        self._columns: dict[str, list[np.ndarray]] = {}
        self._frequencies, self._document_frequencies = np.zeros(n_words), np.zeros(n_words, np.int64)
        self._waiting = Documents(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32), n_words)
        self._n_docs = self._n_entries = 0

    @property
    def room(self) -> int:
        """Documents that it can still take."""
        return SHARD_DOCS - self._n_docs

    def add(self, documents: Documents, columns: dict[str, np.ndarray]) -> None:
        """Documents, no more than there is room for, and what stands beside them as it will be in the file."""
        np.add.at(self._frequencies, documents.indices, documents.counts)
        np.add.at(self._document_frequencies, documents.indices, 1)
        for name, values in columns.items():
            self._columns.setdefault(name, []).append(values)
        self._n_docs += documents.n_docs
        self._n_entries += len(documents.indices)
        self._waiting = _joined(self._waiting, documents)
        self._write_blocks(self._waiting.n_docs // BLOCK_DOCS * BLOCK_DOCS)

    def _write_blocks(self, n_docs: int) -> None:
        """So many documents of those that wait, in blocks, of which only the shard's last may have fewer than all others."""
        waiting = self._waiting
        for first in range(0, n_docs, BLOCK_DOCS):
            block = waiting.take(np.arange(first, min(first + BLOCK_DOCS, n_docs)))
            entries, count_bytes, large = _encoded_counts(block.counts)
            data = _encoded_words(block.indices, word_bytes(self._n_words)) + entries + large.tobytes()
            self._blocks.append((self._offset, len(block.indices), len(large), count_bytes, zlib.crc32(data)))
            self._sizes.append(np.diff(block.indptr).astype("<u4"))
            self._file.write(data)
            self._offset += len(data)
        self._waiting = waiting.take(np.arange(n_docs, waiting.n_docs))

    def finish(self) -> WrittenShard:
        """Write what waits and the columns; all is on the disk then."""
        self._write_blocks(self._waiting.n_docs)
        columns = {"blocks": np.array(self._blocks, _BLOCK), "sizes": np.concatenate(self._sizes)}
        columns |= {name: np.concatenate(parts) for name, parts in self._columns.items()}
        described = {}
        for name, values in columns.items():
            self._file.write(bytes(-self._offset % 8))
            self._offset += -self._offset % 8
            data = np.ascontiguousarray(values, COLUMNS[name]).tobytes()
            described[name] = [self._offset, len(data), zlib.crc32(data)]
            self._file.write(data)
            self._offset += len(data)
        sync(self._file)
        self.close()
        description = {"n_docs": self._n_docs, "n_entries": self._n_entries, "bytes": self._offset, "columns": described}
        return WrittenShard(description, self._frequencies, self._document_frequencies)

    def close(self) -> None:
        self._file.close()


def shard_name(number: int) -> str:
    """The file of a shard."""
    return f"{number:05d}.shard"


def _joined(a: Documents, b: Documents) -> Documents:
    indptr = np.concatenate([a.indptr, b.indptr[1:] + len(a.indices)])
    return Documents(indptr, np.concatenate([a.indices, b.indices]), np.concatenate([a.counts, b.counts]), a.n_words)


def _encoded_words(words: np.ndarray, n_bytes: int) -> bytes:
    if n_bytes == 2:
        return words.astype("<u2").tobytes()
    wide = words.astype("<u4")
    return wide.tobytes() if n_bytes == 4 else wide.view("u1").reshape(-1, 4)[:, :3].tobytes()


def _encoded_counts(counts: np.ndarray) -> tuple[bytes, int, np.ndarray]:
    """Counts in as few bytes as hold them, how many each takes, and those that did not fit."""
    nothing = np.empty(0, _LARGE)
    if not (counts == np.floor(counts)).all():
        fits = counts.dtype == np.float32 or (counts.astype(np.float32) == counts).all()
        return counts.astype("<f4" if fits else "<f8").tobytes(), 4 if fits else 8, nothing
    beyond_one, beyond_two = int((counts >= 255).sum()), int((counts >= 65535).sum())
    sizes = {1: len(counts) + _LARGE.itemsize * beyond_one, 2: 2 * len(counts) + _LARGE.itemsize * beyond_two, 8: 8 * len(counts)}
    n_bytes = min(sizes, key=sizes.__getitem__)
    if n_bytes == 8:
        return counts.astype("<f8").tobytes(), 8, nothing
    marker = 255 if n_bytes == 1 else 65535
    places = np.flatnonzero(counts >= marker)
    large = np.empty(len(places), _LARGE)
    large["place"], large["count"] = places, counts[places]
    return np.minimum(counts, marker).astype(f"<u{n_bytes}").tobytes(), n_bytes, large


class Shard:
    """A shard that is read. What is asked for is checked when it is touched first."""

    def __init__(self, path: Path, description: dict[str, Any], n_words: int) -> None:
        self._path, self._n_words, self._word_bytes = path, n_words, word_bytes(n_words)
        self.n_docs: int = description["n_docs"]
        self._columns_at: dict[str, list[int]] = description["columns"]
        self._n_bytes: int = description["bytes"]
        self._columns: dict[str, np.ndarray] = {}
        self._is_checked = np.zeros(-(-self.n_docs // BLOCK_DOCS), bool)

    @cached_property
    def _map(self) -> mmap.mmap | bytes:
        return mapped(self._path, self._n_bytes)

    @cached_property
    def _bytes(self) -> np.ndarray:
        return np.frombuffer(self._map, np.uint8)

    def map(self) -> None:
        """Map the file; what is mapped stays when the file is removed."""
        _ = self._bytes

    @cached_property
    def _table(self) -> np.ndarray:
        """The blocks' places, as the core reads them."""
        if len(self.column("sizes")) != self.n_docs or len(self.column("blocks")) != len(self._is_checked):
            raise CorpusError(f"{self._path}: its columns do not have the {self.n_docs} documents that the corpus says")
        return self.column("blocks").view(np.uint8)

    def column(self, name: str) -> np.ndarray:
        """A column, mapped; its checksum was checked."""
        if name not in self._columns:
            begin, length, checksum = self._columns_at[name]
            data = self._bytes[begin : begin + length]
            if len(data) != length or begin % 8 or length % COLUMNS[name].itemsize:
                raise CorpusError(f"{self._path}: the column {name!r} does not lie within the file")
            if zlib.crc32(data.data) != checksum:
                raise CorpusError(
                    f"{self._path}: the column {name!r} (bytes {begin} to {begin + length}) does not have its checksum"
                )
            self._columns[name] = data.view(COLUMNS[name])
        return self._columns[name]

    def columns(self, first: int, last: int) -> dict[str, np.ndarray]:
        """What stands beside the documents from `first` on, before `last`, as it is in the file."""
        found = {}
        for name in self._columns_at:
            if name in ("blocks", "sizes"):
                continue
            values = self.column(name)
            if (own := f"{name[:-1]}_sizes") in self._columns_at:
                sizes = self.column(own)
                ends = np.concatenate([[0], np.cumsum(np.where(sizes == NO_LABELS, 0, sizes), dtype=np.int64)])
                found[name] = values[ends[first] : ends[last]]
            else:
                width = len(values) // self.n_docs
                found[name] = values[first * width : last * width]
        return found

    def will_read(self, numbers: np.ndarray) -> None:
        """Ask the system for the blocks of these documents: a disk answers many requests in the time of a few."""
        if not isinstance(self._map, mmap.mmap) or not hasattr(mmap, "MADV_WILLNEED"):
            return
        blocks = self.column("blocks")
        for number in dict.fromkeys((numbers // BLOCK_DOCS).tolist()):
            begin, end = self._range(blocks[number])
            first = begin // mmap.PAGESIZE * mmap.PAGESIZE
            if end <= len(self._bytes):
                self._map.madvise(mmap.MADV_WILLNEED, first, end - first)

    def _range(self, block: np.void) -> tuple[int, int]:
        """The bytes of a block, as the table says."""
        begin = int(block["offset"])
        entry_bytes = self._word_bytes + int(block["count_bytes"])
        return begin, begin + int(block["n_entries"]) * entry_bytes + int(block["n_large"]) * _LARGE.itemsize

    def read(
        self, numbers: np.ndarray, to: np.ndarray, indices: np.ndarray, counts: np.ndarray, *, logarithmic: bool = False
    ) -> None:
        """Entries of the documents with these numbers, ascending, to `indices` and `counts` from `to` on.

        With `logarithmic`, counts are as `Documents.logarithmic` makes them.
        """
        blocks = numbers // BLOCK_DOCS
        for block in np.unique(blocks[~self._is_checked[blocks]]).tolist():
            self._check(block)
        _core.read_documents(
            self._bytes,
            self._table,
            self.column("sizes"),
            BLOCK_DOCS,
            self._word_bytes,
            numbers,
            to,
            logarithmic,
            indices,
            counts,
        )

    def _check(self, number: int) -> None:
        sizes = self.column("sizes")[number * BLOCK_DOCS : (number + 1) * BLOCK_DOCS]
        try:
            sound = _core.is_sound(self._bytes, self._table, sizes, number, self._word_bytes, self._n_words, LARGEST_COUNT)
        except ValueError as error:
            raise CorpusError(f"{self._path}: block {number}: {error}") from None
        block = self.column("blocks")[number]
        begin, end = self._range(block)
        if zlib.crc32(self._bytes[begin:end].data) != block["checksum"]:
            raise CorpusError(f"{self._path}: block {number} (bytes {begin} to {end}) does not have its checksum")
        if not sound:
            raise CorpusError(f"{self._path}: block {number} (bytes {begin} to {end}) does not hold documents")
        self._is_checked[number] = True
