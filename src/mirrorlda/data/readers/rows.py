"""What readers give: batches of rows, and errors with a place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import numpy as np
import scipy.sparse as sp

from mirrorlda.data.messages import Message, message_of
from mirrorlda.data.readers.request import Request

# A row longer than this is an error: it bounds the memory that a file without line ends, or with an unclosed quote, can take.
LONGEST_ROW = 1 << 26
N_REASONS = 5
# Of the name of a column, as errors show it.
SHOWN_NAME = 30


class BadFileError(ValueError):
    """A file that cannot be read on, whatever is done about single bad rows.

    Attributes
    ----------
    file, reason : str

    Examples
    --------
    >>> from mirrorlda.readers import BadFileError
    >>> raise BadFileError("a.csv", "the file is empty, expected a line with the names of the columns")
    Traceback (most recent call last):
    mirrorlda.data.readers.rows.BadFileError: a.csv: the file is empty, expected a line with the names of the columns
    """

    def __init__(self, file: str, reason: str) -> None:
        super().__init__(Message("{}: {}", file, reason))
        self.file = file
        self.reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        return BadFileError, (self.file, self.reason)


class BadRowError(BadFileError):
    """A row that is not what its format or the columns that were asked for demand.

    Attributes
    ----------
    file, reason : str
    line : int
        Counted from 1; the row's number where a format has no lines.
    column : int or None
        Character of the line, counted from 1.

    Examples
    --------
    >>> from mirrorlda.readers import BadRowError
    >>> raise BadRowError("a.csv", 12, 5, "found 'four' as 'stars', expected a finite number")
    Traceback (most recent call last):
    mirrorlda.data.readers.rows.BadRowError: a.csv:12:5: found 'four' as 'stars', expected a finite number
    """

    def __init__(self, file: str, line: int, column: int | None, reason: str) -> None:
        super().__init__(f"{file}:{line}" if column is None else f"{file}:{line}:{column}", reason)
        self.file = file
        self.line = line
        self.column = column

    def __reduce__(self) -> tuple[Any, ...]:
        return BadRowError, (self.file, self.line, self.column, self.reason)


@dataclass(frozen=True)
class Rows:
    r"""Some rows of one file, in order.

    Attributes
    ----------
    file : str
    lines : ndarray of int64, shape (n_rows,)
        Line at which each row starts, counted from 1; the number of the row or document in formats that have no line for each.
    texts : list of str, or None
        None where no text was asked for, and in formats that hold counts.
    counts : csr_array of float32, shape (n_rows, n_words), or None
    columns : dict of lists
        The columns that were asked for; None stands for a missing value. Columns of Parquet that are asked for as they are are
        sequences that keep Arrow's arrays.
    file_number : int
        Of the file among those that are read, from 0.

    Examples
    --------
    >>> import io
    >>> from mirrorlda.readers import read
    >>> [rows] = read(io.BytesIO(b"text,stars\nGood.,4\nBad.,\n"), text="text", columns={"stars": "number"}, format="csv")
    >>> rows.texts, rows.columns, rows.lines
    (['Good.', 'Bad.'], {'stars': [4.0, None]}, array([2, 3]))
    """

    file: str
    lines: np.ndarray
    texts: list[str] | None
    counts: sp.csr_array | None
    columns: Mapping[str, Sequence[Any]]
    file_number: int = 0

    def __len__(self) -> int:
        return len(self.lines)


@dataclass
class Skipped:
    """Bad rows that a pass left out.

    Attributes
    ----------
    count : int
    reasons : list of str
        The first few, each with file, line and column.

    Examples
    --------
    >>> from mirrorlda.readers import Skipped
    >>> Skipped()
    Skipped(count=0, reasons=[])
    """

    count: int = 0
    reasons: list[str] = field(default_factory=list)


@dataclass
class Tally:
    """One pass: rows so far, and what happens to bad ones."""

    skip: bool
    n_rows: int = 0
    skipped: Skipped = field(default_factory=Skipped)
    # Of JSON lines: columns that were asked for and that some row had, and keys that there were.
    seen: set[str] = field(default_factory=set)
    keys: dict[str, None] = field(default_factory=dict)

    def bad(self, file: str, line: int, column: int | None, reason: str) -> None:
        """Raise, or count the row as skipped."""
        error = BadRowError(file, line, column, reason)
        if not self.skip:
            raise error
        self.skipped.count += 1
        if len(self.skipped.reasons) < N_REASONS:
            self.skipped.reasons.append(message_of(error))

    def merge(self, later: Tally) -> None:
        """Go on with what a pass over the files that come next has seen."""
        self.n_rows += later.n_rows
        self.skipped.count += later.skipped.count
        self.skipped.reasons = (self.skipped.reasons + later.skipped.reasons)[:N_REASONS]
        self.seen |= later.seen
        self.keys.update(later.keys)


class Batch:
    """Rows of text that become one `Rows`."""

    def __init__(self, file: str, request: Request, tally: Tally) -> None:
        self.file = file
        self.request = request
        self.tally = tally
        self._begin()

    def _begin(self) -> None:
        self.lines: list[int] = []
        self.texts: list[str] = []
        self.columns: list[list[Any]] = [[] for _ in self.request.columns]
        self.size = 0

    def add(self, line: int, size: int, text: str | None, values: Sequence[Any]) -> None:
        self.lines.append(line)
        self.size += size
        if text is not None:
            self.texts.append(text)
        for column, value in zip(self.columns, values, strict=True):
            column.append(value)
        self.tally.n_rows += 1

    @property
    def is_full(self) -> bool:
        return self.size >= self.request.batch_bytes or len(self.lines) >= self.request.batch_rows

    def take(self) -> Rows:
        """The rows so far; the batch is empty then."""
        texts = None if self.request.text is None else self.texts
        rows = Rows(
            self.file,
            np.array(self.lines, np.int64),
            texts,
            None,
            dict(zip(self.request.columns, self.columns, strict=True)),
        )
        self._begin()
        return rows


def no_column(name: str, names: Sequence[str]) -> str:
    """Why a name that was asked for is an error: the names that there are, and the nearest."""
    lowered = {other.lower(): other for other in names}
    near = get_close_matches(name.lower(), list(lowered), n=1)
    hint = f"; did you mean {lowered[near[0]]!r}?" if near else ""
    there = ", ".join(map(_short, names[:50])) + (f" and {len(names) - 50} others" if len(names) > 50 else "")
    return f"no column {name!r}; there are {there or 'none'}{hint}"


def _short(name: str) -> str:
    return repr(name if len(name) <= SHOWN_NAME else name[: SHOWN_NAME - 3] + "...")


def column_numbers(
    file: str, asked: Sequence[str], names: Sequence[str], question: Callable[[str], str] = lambda name: ""
) -> list[int]:
    """Where the columns that were asked for are among those of a file; `question` says what may be amiss if one is not."""
    for name in asked:
        if name not in names:
            raise BadFileError(file, Message("{}{}", no_column(name, names), question(name)))
        if names.count(name) > 1:
            places = [number for number, other in enumerate(names, 1) if other == name]
            raise BadFileError(file, f"the columns {places} are all named {name!r}, expected one")
    return [names.index(name) for name in asked]
