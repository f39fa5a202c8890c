"""CSV and TSV by the standard library's parser: its rows keep their lines, which Arrow's do not."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from mirrorlda.data.messages import Message
from mirrorlda.data.readers.request import Request
from mirrorlda.data.readers.rows import LONGEST_ROW, BadFileError, Batch, Rows, Tally, column_numbers
from mirrorlda.data.readers.streams import Lines, Source
from mirrorlda.data.readers.values import PARSERS, UnfitError, parse_labels

if TYPE_CHECKING:
    import _csv

BLOCK = 1 << 20
DELIMITERS = ",;\t|"
# A first line with a longer name is probably a row with a text.
LONGEST_NAME = 60
Fault = tuple[int | None, str]


class _TooLongError(Exception):
    pass


class _Record:
    """One record: where it starts, its lines, and what is wrong with them. As an iterator, the lines that the parser asks for."""

    def __init__(self, lines: Lines) -> None:
        self.source = lines
        self.ahead: list[tuple[str, Fault | None]] = []
        self.next_number = 1
        self.begin()

    def begin(self) -> None:
        """A new record: forget the lines of the one before."""
        self.start = self.next_number
        self.lines: list[str] = []
        self.faults: list[Fault | None] = []
        self.size = 0
        self.fault: tuple[int, int | None, str] | None = None

    def __iter__(self) -> _Record:
        return self

    def __next__(self) -> str:
        line, fault = self.ahead.pop() if self.ahead else self._read()
        if fault and not self.fault:
            self.fault = self.next_number, *fault
        self.next_number += 1
        self.lines.append(line)
        self.faults.append(fault)
        self.size += len(line)
        if self.size > LONGEST_ROW:
            raise _TooLongError
        return line

    def _read(self) -> tuple[str, Fault | None]:
        data = self.source.read()
        if not data:
            raise StopIteration
        return self._decoded(data, self.source.offset)

    def _decoded(self, data: bytes, offset: int) -> tuple[str, Fault | None]:
        # A record with a fault goes on to where it would end without: only that tells where the next begins.
        return data.decode(errors="replace"), self.source.fault(data, offset)

    def read_block(self) -> bytes:
        """Lines at once."""
        block = self.source.read_block(BLOCK)
        self.source.pass_block(block.count(b"\n") + (not block.endswith(b"\n")))
        return block

    def give_back_block(self, block: bytes, n_read: int) -> None:
        """The lines of the last block are read again one by one, but for the first `n_read` of them."""
        lines = list(io.BytesIO(block))
        offset = self.source.offset + sum(map(len, lines[:n_read]))
        found = []
        for line in lines[n_read:]:
            found.append(self._decoded(line, offset))
            offset += len(line)
        self.ahead.extend(reversed(found))

    def give_back(self, number: int) -> None:
        """The lines of the record after the one with this number are read again."""
        kept = number + 1 - self.start
        self.ahead.extend(reversed(list(zip(self.lines[kept:], self.faults[kept:], strict=True))))
        self.next_number = number + 1

    @property
    def text(self) -> str:
        return "".join(self.lines)

    def place(self, position: int) -> tuple[int, int]:
        """Line and column of a character of the record."""
        return self.start + self.text.count("\n", 0, position), position - self.text.rfind("\n", 0, position)


class _BlockRecord(_Record):
    """A record of a block that was parsed at once: its lines are looked up only if they are wanted."""

    def __init__(self, block: bytes, first_number: int) -> None:
        self.block = block
        self.first_number = first_number
        self.next_number = first_number

    @cached_property
    def block_lines(self) -> list[bytes]:
        return list(io.BytesIO(self.block))

    @property
    def text(self) -> str:
        return b"".join(self.block_lines[self.start - self.first_number : self.next_number - self.first_number]).decode()


def rows(source: Source, request: Request, tally: Tally) -> Iterator[Rows]:
    """Rows of a CSV or TSV file with a line of names."""
    # For the whole process; it is never lowered, so that another reader's fields stay readable.
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_ROW))
    with Lines(source, tally) as lines:
        record = _Record(lines)
        names = _names(source.name, record, request)
        request = request.of(names)
        asked = [request.text] if request.text is not None else []
        numbers = column_numbers(
            source.name, [*asked, *request.columns], names, lambda name: _question(name, names, request.delimiter)
        )
        text_number = numbers[0] if asked else None
        parsers = (
            PARSERS
            if request.label_separator is None
            else PARSERS | {"labels": partial(parse_labels, separator=request.label_separator)}
        )
        wanted = list(zip(numbers[len(asked) :], [parsers[kind] for kind in request.columns.values()], strict=True))
        batch = Batch(source.name, request, tally)
        n_before = tally.n_rows
        for place, fields in _records(record, request, tally):
            if len(fields) != len(names):
                _bad_width(source.name, place, request, tally, fields, names)
                continue
            try:
                values = [parse(fields[number]) for number, parse in wanted]
            except UnfitError:
                _bad_value(source.name, place, request, tally, fields, names, wanted)
                continue
            text = None if text_number is None else fields[text_number]
            batch.add(place.start, sum(map(len, fields)), text, values)
            if batch.is_full:
                yield batch.take()
        # A file without rows has columns.
        if batch.lines or (request.everything and tally.n_rows == n_before):
            yield batch.take()


def _reader(record: Iterable[str], request: Request) -> _csv.Reader:
    if request.quote is None:
        return csv.reader(record, delimiter=request.delimiter, quoting=csv.QUOTE_NONE, strict=True)
    return csv.reader(record, delimiter=request.delimiter, quotechar=request.quote, strict=True)


def _names(file: str, record: _Record, request: Request) -> list[str]:
    try:
        names = next(_reader(record, request))
    except StopIteration:
        raise BadFileError(file, "the file is empty, expected a line with the names of the columns") from None
    except (csv.Error, _TooLongError):
        line, column, reason, _ = _syntax(record, request)
        raise BadFileError(file, f"line {line}, column {column}, in the names of the columns: {reason}") from None
    if record.fault:
        line, column_or_none, reason = record.fault
        raise BadFileError(file, f"line {line}, column {column_or_none}, in the names of the columns: {reason}")
    return names


def _question(asked: str, names: list[str], delimiter: str) -> str:
    """What may be amiss with a first line that does not name a column."""
    line = delimiter.join(names)
    other = max((character for character in DELIMITERS if character != delimiter), key=line.count)
    parts = [part.strip(' "') for part in line.split(other)]
    is_text = max(map(len, names), default=0) > LONGEST_NAME
    if line.count(other) > line.count(delimiter) and (asked in parts or not is_text):
        return Message("; is the delimiter {!r}? (<delimiter=>)", other)
    return "; has the file a line with the names of its columns?" if is_text else ""


def _records(record: _Record, request: Request, tally: Tally) -> Iterator[tuple[_Record, list[str]]]:
    """Well-formed records; of the others, `tally` hears."""
    parsed = _reader(record, request)
    while block := record.read_block():
        yield from _records_at_once(block, record, request)
        while record.ahead:
            fields = _next_record(parsed, record, request, tally)
            if fields:
                yield record, fields


def _records_at_once(block: bytes, record: _Record, request: Request) -> Iterator[tuple[_Record, list[str]]]:
    """The records of a block up to the first that is not well-formed, or not at its end yet: its lines are given back."""
    found = _BlockRecord(block, record.next_number)
    parsed = _reader(map(bytes.decode, io.BytesIO(block)), request)
    n_read = 0
    if b"\0" in block or len(block) > LONGEST_ROW:
        record.give_back_block(block, n_read)
        return
    try:
        for fields in parsed:
            n_read = parsed.line_num
            found.start, found.next_number = found.next_number, found.first_number + n_read
            if fields:
                yield found, fields
    except (csv.Error, UnicodeDecodeError):
        record.give_back_block(block, n_read)
    record.next_number = found.next_number


def _next_record(parsed: Iterator[list[str]], record: _Record, request: Request, tally: Tally) -> list[str]:
    """One record, line by line; nothing if it is not well-formed."""
    record.begin()
    try:
        fields = next(parsed)
    except StopIteration:
        return []
    except (csv.Error, _TooLongError):
        line, column, reason, is_unclosed = _syntax(record, request)
        tally.bad(record.source.name, line, column, reason)
        # A quote that is never closed would take all rows up to the end of the file with it. No second one can open in the
        # lines given back, as all their quotes are doubled: each line is read twice at most.
        if is_unclosed:
            record.give_back(line)
        return []
    if record.fault:
        tally.bad(record.source.name, *record.fault)
        return []
    return fields


def _syntax(record: _Record, request: Request) -> tuple[int, int, str, bool]:
    """Line, column and reason of what the parser refused, and whether it is a quote that is never closed."""
    starts, fault = _walk(record.text, request.delimiter, request.quote)
    if record.size > LONGEST_ROW and (fault is None or not fault[2]):
        fault = 0, f"found a row of more than {LONGEST_ROW} bytes, expected at most so many", False
    if fault is None:
        fault = starts[-1], "found a row that cannot be parsed", False
    return *record.place(fault[0]), fault[1], fault[2]


def _bad_width(file: str, record: _Record, request: Request, tally: Tally, fields: list[str], names: list[str]) -> None:
    starts, _ = _walk(record.text, request.delimiter, request.quote)
    # Too many: the first that has no name. Too few: the last that there is.
    line, column = record.place(starts[min(len(names), len(starts) - 1)])
    several = " (is a quote or a delimiter amiss?)" if "\n" in record.text.rstrip("\r\n") else ""
    tally.bad(file, line, column, f"found {len(fields)} fields, expected {len(names)}{several}")


def _bad_value(
    file: str,
    record: _Record,
    request: Request,
    tally: Tally,
    fields: list[str],
    names: list[str],
    wanted: list[tuple[int, Callable[[str], Any]]],
) -> None:
    for number, parse in wanted:
        try:
            parse(fields[number])
        except UnfitError as error:
            starts, _ = _walk(record.text, request.delimiter, request.quote)
            tally.bad(file, *record.place(starts[number]), f"in column {names[number]!r}: {error}")
            return


def _walk(text: str, delimiter: str, quote: str | None) -> tuple[list[int], tuple[int, str, bool] | None]:
    """Where the fields of a record start, as the standard library's strict parser has it, and the first fault, if any."""
    end_of_field = re.compile(rf"[\r\n{re.escape(delimiter)}]")
    starts = [0]
    position = 0
    while True:
        if quote is not None and text.startswith(quote, position):
            opened = position
            position = _closing(text, quote, position + 1)
            if position < 0:
                return starts, (opened, "found a quote that is never closed", True)
            if position < len(text) and not end_of_field.match(text, position):
                n_lines = text.count("\n", opened, position)
                closing = f"a closing quote (opened {n_lines} lines before)" if n_lines else "a closing quote"
                expected = f"expected {delimiter!r} or the end of the row"
                return starts, (position, f"found {text[position]!r} after {closing}, {expected}", False)
        found_end = end_of_field.search(text, position)
        if found_end is None:
            return starts, None
        position = found_end.end()
        if found_end[0] == delimiter:
            starts.append(position)
        elif text[found_end.start() :].lstrip("\r\n"):
            return starts, (found_end.start(), "found a line end of one carriage return, expected a line feed as well", False)
        else:
            return starts, None


def _closing(text: str, quote: str, position: int) -> int:
    """Past the quote that closes a field, doubled ones left out; -1 if none does."""
    while True:
        position = text.find(quote, position)
        if position < 0 or not text.startswith(quote, position + 1):
            return position + 1 if position >= 0 else -1
        position += 2
