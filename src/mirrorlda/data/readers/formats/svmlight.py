"""Svmlight files: label, then index:count pairs. NumPy checks the shape of a block, Arrow parses its numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mirrorlda.data.documents import LARGEST_COUNT
from mirrorlda.data.readers.formats.triples import as_count
from mirrorlda.data.readers.request import Request
from mirrorlda.data.readers.rows import Rows, Tally, column_numbers
from mirrorlda.data.readers.streams import Lines, Source
from mirrorlda.data.readers.values import NUMBER, UnfitError
from mirrorlda.data.text import MOST_WORDS

BLOCK = 1 << 20
TOKEN = re.compile(rb"\S+")
SPACE, COLON, LINE_END = b" :\n"
TO_LINES = bytes.maketrans(b" :", b"\n\n")


@dataclass(frozen=True)
class Range:
    """Indices that may occur, or do: from `low` on, below `high`."""

    low: int = 0
    high: int = MOST_WORDS


@dataclass
class _Part:
    """Rows as they stand in the file."""

    lines: np.ndarray
    labels: list[list[float]]
    indptr: np.ndarray
    indices: np.ndarray
    counts: np.ndarray


def measured(sources: list[Source], allowed: Range, kind: str | None, skip: bool) -> Range:
    """A pass over the files: the smallest index, and one more than the largest."""
    low, high = MOST_WORDS, 0
    tally = Tally(skip)
    for source in sources:
        for part in _parts(source, allowed, kind, tally, BLOCK):
            if len(part.indices):
                low, high = min(low, int(part.indices.min())), max(high, int(part.indices.max()) + 1)
    return Range(low, high) if high else Range(0, 0)


def rows(source: Source, request: Request, tally: Tally, allowed: Range, found: Range) -> Iterator[Rows]:
    """Rows with their counts, one column for each index from `found.low` to `found.high` - 1; the label is the column `label`."""
    column_numbers(source.name, list(request.columns), ["label"])
    kind = request.columns.get("label")
    for part in _parts(source, allowed, kind, tally, min(BLOCK, request.batch_bytes)):
        arrays = part.counts.astype(np.float32), (part.indices - found.low).astype(np.int32), part.indptr
        counts = sp.csr_array(arrays, shape=(len(part.lines), found.high - found.low))
        # What is zero as float32 is no word of the document.
        counts.eliminate_zeros()
        for start in range(0, len(part.lines), request.batch_rows):
            chosen = slice(start, start + request.batch_rows)
            columns: dict[str, list[Any]] = {} if kind is None else {"label": _labels(part.labels[chosen], kind)}
            yield Rows(source.name, part.lines[chosen], None, counts[chosen], columns)


def _labels(labels: list[list[float]], kind: str) -> list[Any]:
    return labels if kind == "labels" else [row[0] if len(row) == 1 else row for row in labels]


def _parts(source: Source, allowed: Range, kind: str | None, tally: Tally, size: int) -> Iterator[_Part]:
    """Some rows at a time; line by line where anything about them is unusual."""
    with Lines(source, tally) as lines:
        while block := lines.read_block_of_short_lines(size):
            part = _parsed_at_once(block, lines.number, allowed)
            if part is None:
                part = _parsed_line_by_line(block, lines, allowed, kind, tally)
            lines.pass_block(block.count(b"\n"))
            tally.n_rows += len(part.lines)
            if len(part.lines):
                yield part


def _parsed_at_once(block: bytes, first_line: int, allowed: Range) -> _Part | None:
    """The rows of lines that are all `label index:count index:count ...`, with one space between; None for any others."""
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n")
    block = block.replace(b" \n", b"\n").replace(b"\n+", b"\n").removeprefix(b"+").removesuffix(b"\n") + b"\n"
    characters = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero((characters == SPACE) | (characters == COLON) | (characters == LINE_END))
    kinds = characters[ends]
    before = np.concatenate([[LINE_END], kinds[:-1]])
    # A label ends with a space or the line, an index with a colon, a count with a space or the line.
    if not np.where(before == SPACE, kinds == COLON, kinds != COLON).all():
        return None
    lengths = np.diff(ends, prepend=-1) - 1
    numbers = _numbers(block)
    if numbers is None or len(numbers) != len(ends) or not lengths.all():
        return None
    indices, counts, labels = numbers[kinds == COLON], numbers[before == COLON], numbers[before == LINE_END]
    indptr = np.concatenate([[0], np.cumsum(kinds == COLON)[kinds == LINE_END]])
    return _checked(labels, indptr, indices, counts, lengths[kinds == COLON], first_line, allowed)


def _numbers(block: bytes) -> np.ndarray | None:
    import pyarrow as pa
    from pyarrow import csv

    # Arrow ignores the rest of a line after a carriage return, and takes 0x10 for a number.
    if any(unusual in block for unusual in (b"\r", b"x", b"X", b'"', b"\0")):
        return None
    try:
        table = csv.read_csv(
            pa.BufferReader(block.translate(TO_LINES)),
            csv.ReadOptions(use_threads=False, column_names=["number"], block_size=len(block) + 1),
            csv.ParseOptions(delimiter=" ", quote_char=False),
            csv.ConvertOptions(column_types={"number": pa.float64()}, null_values=[]),
        )
    except pa.ArrowInvalid:
        return None
    numbers: np.ndarray = table.column("number").to_numpy()
    return numbers


def _checked(
    labels: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    counts: np.ndarray,
    lengths: np.ndarray,
    first_line: int,
    allowed: Range,
) -> _Part | None:
    """The rows, if labels and counts are finite and indices are digits only, ascend in a row and are in the range allowed."""
    if not (np.isfinite(labels).all() and ((counts >= 0) & (counts <= LARGEST_COUNT)).all()):
        return None
    if len(indices) and not (indices.min() >= allowed.low and indices.max() < allowed.high):
        return None
    whole = indices.astype(np.int64)
    begins_row = np.zeros(len(indices) + 1, bool)
    begins_row[indptr] = True
    ascends = (np.diff(whole) > 0) | begins_row[1:-1]
    has_digits_only = lengths == np.searchsorted(10 ** np.arange(1, 11), whole, "right") + 1
    if not (ascends.all() and has_digits_only.all() and (whole == indices).all()):
        return None
    lines = np.arange(first_line, first_line + len(labels))
    return _Part(lines, [[label] for label in labels.tolist()], indptr, whole, counts)


def _parsed_line_by_line(block: bytes, lines: Lines, allowed: Range, kind: str | None, tally: Tally) -> _Part:
    numbers: list[int] = []
    labels: list[list[float]] = []
    indptr = [0]
    indices: list[int] = []
    counts: list[float] = []
    for number, line in enumerate(block.removesuffix(b"\n").split(b"\n"), lines.number):
        tokens = list(TOKEN.finditer(line.partition(b"#")[0]))
        if not tokens:
            continue
        token = tokens[0]
        try:
            has_label = b":" not in token[0]
            row_labels = _row_labels(token[0] if has_label else b"", kind)
            previous = -1
            for token in tokens[has_label:]:
                if token[0].startswith(b"qid:"):
                    continue
                previous, count = _pair(token[0], previous, allowed)
                indices.append(previous)
                counts.append(count)
        except UnfitError as error:
            del indices[indptr[-1] :], counts[indptr[-1] :]
            tally.bad(lines.name, number, token.start() + 1, str(error))
            continue
        numbers.append(number)
        labels.append(row_labels)
        indptr.append(len(indices))
    return _Part(np.array(numbers, np.int64), labels, np.array(indptr), np.array(indices, np.int64), np.array(counts, float))


def _row_labels(token: bytes, kind: str | None) -> list[float]:
    """Labels of a row; none, or several, only where a list of them is asked for, or none is."""
    text = token.decode(errors="replace")
    names = text.split(",") if text else []
    for name in names:
        if not (NUMBER.fullmatch(name) and math.isfinite(float(name))):
            raise UnfitError(f"found the label {name[:40]!r}, expected a finite number")
    if len(names) != 1 and kind in ("number", "class"):
        raise UnfitError(f"found {len(names)} labels, expected one")
    return [float(name) for name in names]


def _pair(token: bytes, previous: int, allowed: Range) -> tuple[int, float]:
    left, colon, right = token.partition(b":")
    if not (colon and left.isdigit() and len(left) <= 18):
        found = token[:40].decode(errors="replace")
        raise UnfitError(f"found {found!r}, expected index:count with an index from {allowed.low} to {allowed.high - 1}")
    index = int(left)
    if index <= previous:
        raise UnfitError(f"found the index {index} after {previous}, expected indices that ascend")
    if not allowed.low <= index < allowed.high:
        raise UnfitError(f"found the index {index}, expected one from {allowed.low} to {allowed.high - 1}")
    return index, as_count(right)
