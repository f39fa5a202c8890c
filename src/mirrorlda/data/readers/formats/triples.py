"""Files of entries, one a line: document, word, count. UCI bag-of-words and Matrix Market, parsed by Arrow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from mirrorlda.data.documents import LARGEST_COUNT
from mirrorlda.data.readers.request import Request
from mirrorlda.data.readers.rows import BadFileError, Rows, Tally
from mirrorlda.data.readers.streams import Lines, Source
from mirrorlda.data.readers.values import NUMBER, UnfitError
from mirrorlda.data.text import MOST_WORDS

BLOCK = 1 << 20
# Of an entry that waits for the rest of its batch, copies made on the way included.
ENTRY_BYTES = 64
TOKEN = re.compile(rb"\S+")
# What to do about entries in another order; SciPy writes entries in the order in which an array keeps them.
UCI_REMEDY = "sort its lines by their first number"
MTX_REMEDY = "write it anew with scipy.io.mmwrite(name, scipy.sparse.csr_array(scipy.io.mmread(name)))"
MATRIX = ("matrix", "coordinate", "real|integer|pattern", "general")


@dataclass
class Width:
    """Number of words, the same for all files."""

    n_words: int | None = None

    def agree(self, file: str, n_words: int) -> None:
        if self.n_words is None:
            self.n_words = n_words
        elif self.n_words != n_words:
            raise BadFileError(file, f"found {n_words} words, expected {self.n_words} as in the other files or as given")


@dataclass(frozen=True)
class Sizes:
    """What a file says of itself before its entries."""

    n_docs: int
    n_words: int
    n_entries: int
    has_counts: bool = True


def uci_sizes(lines: Lines) -> Sizes:
    """The first three lines of a UCI file: documents, words, entries."""
    found = [_header_line(lines, f"the number of {what}") for what in ("documents", "words", "entries")]
    return _checked(lines, [_size(lines, line, 1)[0] for line in found])


def mtx_sizes(lines: Lines) -> Sizes:
    """The banner of a Matrix Market file and, after comments, its line of sizes."""
    banner = _header_line(lines, "%%MatrixMarket").lower().split()
    if not banner or banner[0] != b"%%matrixmarket":
        raise BadFileError(lines.name, "the first line does not begin with %%MatrixMarket")
    kinds = [word.decode(errors="replace") for word in banner[1:]]
    if len(kinds) != 4 or not all(kind in expected.split("|") for kind, expected in zip(kinds, MATRIX, strict=True)):
        raise BadFileError(lines.name, f"line 1: found {' '.join(kinds)!r}, expected {' '.join(MATRIX)!r}")
    line = _header_line(lines, "sizes")
    while line.startswith(b"%") or line.isspace():
        line = _header_line(lines, "sizes")
    return _checked(lines, _size(lines, line, 3), has_counts=kinds[2] != "pattern")


def _header_line(lines: Lines, expected: str) -> bytes:
    line = lines.read()
    if not line:
        raise BadFileError(lines.name, f"the file ends before line {lines.number + 1}, expected {expected}")
    return line


def _size(lines: Lines, line: bytes, n_numbers: int) -> list[int]:
    tokens = line.split()
    if len(tokens) != n_numbers or not all(token.isdigit() and len(token) <= 18 for token in tokens):
        found = line[:60].decode(errors="replace").strip()
        what = "a whole number" if n_numbers == 1 else f"{n_numbers} whole numbers: documents, words, entries"
        raise BadFileError(lines.name, f"line {lines.number}: found {found!r}, expected {what}")
    return [int(token) for token in tokens]


def _checked(lines: Lines, numbers: list[int], has_counts: bool = True) -> Sizes:
    """Sizes that a file can have. Documents without entries cost time and no bytes: far more of them than entries are refused."""
    n_docs, n_words, n_entries = numbers
    sizes = f"{n_docs} documents, {n_words} words, {n_entries} entries"
    if n_words > MOST_WORDS or n_docs > MOST_WORDS:
        raise BadFileError(lines.name, f"line {lines.number}: found {sizes}, expected at most {MOST_WORDS} documents and words")
    if n_entries > n_docs * n_words:
        raise BadFileError(lines.name, f"line {lines.number}: found {sizes}, which is more entries than documents times words")
    if n_docs > 1_000_000 and n_docs > 100 * n_entries:
        raise BadFileError(lines.name, f"line {lines.number}: found {sizes}, which leaves nearly all documents empty")
    return Sizes(n_docs, n_words, n_entries, has_counts)


@dataclass
class _Entries:
    """Entries of documents, in the order of the documents."""

    docs: np.ndarray
    words: np.ndarray
    counts: np.ndarray
    lines: np.ndarray

    def __getitem__(self, part: slice | np.ndarray) -> _Entries:
        return _Entries(self.docs[part], self.words[part], self.counts[part], self.lines[part])

    @staticmethod
    def joined(parts: list[_Entries]) -> _Entries:
        names = ("docs", "words", "counts", "lines")
        return _Entries(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


@dataclass
class Triples:
    """A pass over one file of entries."""

    source: Source
    request: Request
    tally: Tally
    width: Width
    sizes: Sizes = field(init=False)
    remedy: str = field(init=False)

    def rows(self, is_uci: bool) -> Iterator[Rows]:
        """Documents in order, those without entries too; their lines are document numbers."""
        with Lines(self.source, self.tally) as lines:
            self.sizes = uci_sizes(lines) if is_uci else mtx_sizes(lines)
            self.remedy = UCI_REMEDY if is_uci else MTX_REMEDY
            self.width.agree(self.source.name, self.sizes.n_words)
            self.bad_docs: set[int] = set()
            self.last_doc = 0
            self.n_entries = 0
            waiting: list[_Entries] = []
            n_waiting = 0
            first = 1
            while block := lines.read_block_of_short_lines(BLOCK):
                entries = self._parsed(block, lines)
                if not len(entries.docs):
                    continue
                waiting.append(entries)
                n_waiting += len(entries.docs)
                if self.last_doc > first and (
                    n_waiting * ENTRY_BYTES >= self.request.batch_bytes or self.last_doc - first >= self.request.batch_rows
                ):
                    merged = _Entries.joined(waiting)
                    complete = int(np.searchsorted(merged.docs, self.last_doc))
                    yield from self._documents(first, self.last_doc - 1, merged[:complete])
                    first = self.last_doc
                    waiting = [merged[complete:]]
                    n_waiting = len(waiting[0].docs)
                elif self.last_doc == first and n_waiting > self.sizes.n_words:
                    raise BadFileError(self.source.name, f"document {first} has more entries than the file has words")
            if self.n_entries != self.sizes.n_entries:
                raise BadFileError(
                    self.source.name, f"found {self.n_entries} entries, expected {self.sizes.n_entries} as its header says"
                )
            empty = _Entries(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64))
            yield from self._documents(first, self.sizes.n_docs, _Entries.joined([empty, *waiting]))

    def _parsed(self, block: bytes, lines: Lines) -> _Entries:
        """The entries of some lines; line by line if anything about them is unusual."""
        first_line = lines.number
        n_lines = block.count(b"\n") + (not block.endswith(b"\n"))
        entries = self._parsed_at_once(block, first_line, n_lines)
        if entries is None:
            entries = self._parsed_line_by_line(block, first_line)
        else:
            self.n_entries += n_lines
        lines.pass_block(n_lines)
        if self.n_entries > self.sizes.n_entries:
            raise BadFileError(self.source.name, f"found more entries than the {self.sizes.n_entries} that its header says")
        if len(entries.docs):
            self.last_doc = int(entries.docs[-1])
        return entries

    def _parsed_at_once(self, block: bytes, first_line: int, n_lines: int) -> _Entries | None:
        import pyarrow as pa
        from pyarrow import csv

        # Arrow takes 0x10 for a number.
        if b"x" in block or b"X" in block:
            return None
        types = {"doc": pa.int64(), "word": pa.int64()} | ({"count": pa.float64()} if self.sizes.has_counts else {})
        try:
            table = csv.read_csv(
                pa.BufferReader(block),
                csv.ReadOptions(use_threads=False, column_names=list(types), block_size=len(block) + 1),
                csv.ParseOptions(delimiter=" ", quote_char=False),
                csv.ConvertOptions(column_types=types, null_values=[]),
            )
        except pa.ArrowInvalid:
            return None
        docs, words = (table.column(name).to_numpy() for name in ("doc", "word"))
        counts = table.column("count").to_numpy() if self.sizes.has_counts else np.ones(len(docs))
        is_fit = (
            len(docs) == n_lines
            and docs[0] >= max(1, self.last_doc)
            and docs[-1] <= self.sizes.n_docs
            and (np.diff(docs) >= 0).all()
            and words.min() >= 1
            and words.max() <= self.sizes.n_words
            and ((counts >= 0) & (counts <= LARGEST_COUNT)).all()
        )
        return _Entries(docs, words, counts, np.arange(first_line, first_line + n_lines)) if is_fit else None

    def _parsed_line_by_line(self, block: bytes, first_line: int) -> _Entries:
        found: list[tuple[int, int, float, int]] = []
        last_doc = self.last_doc
        for number, line in enumerate(block.splitlines() if b"\r" not in block else block.split(b"\n"), first_line):
            tokens = list(TOKEN.finditer(line))
            if not tokens:
                continue
            self.n_entries += 1
            doc: int | None = None
            column = 1
            try:
                if len(tokens) != 2 + self.sizes.has_counts:
                    column = (tokens[2 + self.sizes.has_counts] if len(tokens) > 3 else tokens[-1]).start() + 1
                    raise UnfitError(f"found {len(tokens)} fields, expected {2 + self.sizes.has_counts}")
                column = tokens[0].start() + 1
                doc = _index(tokens[0][0], "document", self.sizes.n_docs)
                column = tokens[1].start() + 1
                word = _index(tokens[1][0], "word", self.sizes.n_words)
                count = 1.0
                if self.sizes.has_counts:
                    column = tokens[2].start() + 1
                    count = as_count(tokens[2][0])
            except UnfitError as error:
                if doc is None or doc not in self.bad_docs:
                    self.tally.bad(self.source.name, number, column, str(error))
                if doc is None:
                    continue
                self.bad_docs.add(doc)
                word, count = 1, 0.0
            if doc < last_doc:
                found_order = f"line {number}: found document {doc} after {last_doc}"
                expected = f"expected entries in the order of documents: {self.remedy}"
                raise BadFileError(self.source.name, f"{found_order}, {expected}")
            last_doc = doc
            found.append((doc, word, count, number))
        docs, words, counts, numbers = (np.array(column) for column in zip(*found, strict=True)) if found else [np.zeros(0)] * 4
        return _Entries(docs.astype(np.int64), words.astype(np.int64), counts.astype(float), numbers.astype(np.int64))

    def _documents(self, first: int, last: int, entries: _Entries) -> Iterator[Rows]:
        """The documents of a range, some at a time."""
        if (np.diff(entries.docs * 1.0) == 0).any() and (np.diff(entries.words)[np.diff(entries.docs) == 0] <= 0).any():
            entries = entries[np.lexsort((entries.words, entries.docs))]
            self._check_once(entries)
        entries = entries[entries.counts.astype(np.float32) > 0]
        for start in range(first, last + 1, self.request.batch_rows):
            numbers = np.arange(start, min(start + self.request.batch_rows, last + 1))
            if self.bad_docs:
                numbers = numbers[~np.isin(numbers, list(self.bad_docs))]
            left, right = np.searchsorted(entries.docs, numbers), np.searchsorted(entries.docs, numbers, "right")
            indptr = np.concatenate([[0], np.cumsum(right - left)])
            part = np.repeat(left - indptr[:-1], right - left) + np.arange(indptr[-1])
            arrays = entries.counts[part].astype(np.float32), (entries.words[part] - 1).astype(np.int32), indptr
            self.tally.n_rows += len(numbers)
            if len(numbers):
                yield Rows(self.source.name, numbers, None, sp.csr_array(arrays, shape=(len(numbers), self.sizes.n_words)), {})
        self.bad_docs = {doc for doc in self.bad_docs if doc > last}

    def _check_once(self, entries: _Entries) -> None:
        """A word that a document has twice makes the document a bad one."""
        again = np.flatnonzero((np.diff(entries.docs) == 0) & (np.diff(entries.words) == 0)) + 1
        for position in again.tolist():
            doc, line = int(entries.docs[position]), int(max(entries.lines[position - 1 : position + 1]))
            if doc not in self.bad_docs:
                self.bad_docs.add(doc)
                reason = f"found the word {entries.words[position]} a second time in document {doc}, expected each once"
                self.tally.bad(self.source.name, line, 1, reason)


def _index(token: bytes, what: str, largest: int) -> int:
    if token.isdigit() and len(token) <= 18 and 1 <= int(token) <= largest:
        return int(token)
    raise UnfitError(f"found {what} {token[:40].decode(errors='replace')!r}, expected a whole number from 1 to {largest}")


def as_count(token: bytes) -> float:
    """A count, or a weight in place of one."""
    text = token.decode(errors="replace")
    if NUMBER.fullmatch(text) and 0 <= float(text) <= LARGEST_COUNT:
        return float(text)
    raise UnfitError(f"found the count {text[:40]!r}, expected a number from 0 to {LARGEST_COUNT:g}")
