"""JSON lines by the standard library's parser: its errors have a column, which Arrow's have not."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from mirrorlda.data.messages import Message, message_of
from mirrorlda.data.readers.request import Request
from mirrorlda.data.readers.rows import LONGEST_ROW, BadFileError, Batch, Rows, Tally, no_column
from mirrorlda.data.readers.streams import Lines, Source
from mirrorlda.data.readers.values import AS_IT_IS, CHECKS, UnfitError, as_text, shown


class Jsonlines:
    """A pass over files of JSON lines. `columns` are the keys of rows where everything is asked for, if they are known."""

    def __init__(self, request: Request, columns: Iterable[str] = ()) -> None:
        self.request = request
        self.asked = [*([] if request.text is None else [request.text]), *request.columns]
        # Where everything is asked for: the keys of the first batch.
        self.columns: dict[str, None] = dict.fromkeys(columns)

    def rows(self, source: Source, tally: Tally) -> Iterator[Rows]:
        request = self.request
        # Rows as they are wait for their columns as one column.
        batch = Batch(source.name, replace(request, columns={"row": AS_IT_IS}) if request.everything else request, tally)
        checks = [(name, CHECKS[kind]) for name, kind in request.columns.items()]
        with Lines(source, tally) as lines:
            while line := lines.read():
                if line.isspace():
                    continue
                row = _parsed(line, lines, tally)
                if row is None:
                    continue
                if len(tally.seen) < len(self.asked):
                    self._note(row, tally)
                try:
                    text = None if request.text is None else as_text(row.get(request.text))
                    values = [self._whole(row)] if request.everything else [check(row.get(name)) for name, check in checks]
                    if b"\\u" in line:
                        _check_encodable([text, *values])
                except UnfitError:
                    self._bad(row, line, lines, tally)
                    continue
                batch.add(lines.number, len(line), text, values)
                if batch.is_full:
                    yield self._spread(batch.take())
        if batch.lines:
            yield self._spread(batch.take())

    def _whole(self, row: dict[str, Any]) -> dict[str, Any]:
        """A row all of whose keys are known, or become known with its batch."""
        CHECKS[AS_IT_IS](row)
        if self.columns and not row.keys() <= self.columns.keys():
            new = next(name for name in row if name not in self.columns)
            known = ", ".join(map(repr, self.columns))
            found = f"found the key {new!r}, expected those of the first batch of rows, {known}"
            raise UnfitError(Message("{}: name the <columns> wanted", found))
        return row

    def _spread(self, rows: Rows) -> Rows:
        if not self.request.everything:
            return rows
        found = rows.columns["row"]
        self.columns = self.columns or {name: None for row in found for name in row}
        return replace(rows, columns={name: [row.get(name) for row in found] for name in self.columns})

    def _note(self, row: dict[str, Any], tally: Tally) -> None:
        tally.seen |= row.keys() & set(self.asked)
        if len(tally.keys) < 1000:
            tally.keys.update(dict.fromkeys(list(row)[:1000]))

    def end(self, file: str, tally: Tally) -> None:
        """After the last file: a column that no row had was misnamed. Files without rows show nothing."""
        for name in self.asked:
            if tally.keys and name not in tally.seen:
                raise BadFileError(file, f"{no_column(name, list(tally.keys))} (in no row)")

    def _bad(self, row: dict[str, Any], line: bytes, lines: Lines, tally: Tally) -> None:
        """Report the first of the columns asked for that is not as it should be."""
        try:
            if self.request.everything:
                self._whole(row)
                _check_encodable(list(row))
        except UnfitError as error:
            tally.bad(lines.name, lines.number, None, message_of(error))
            return
        for name in dict.fromkeys([*self.asked, *(row if self.request.everything else ())]):
            check = as_text if name == self.request.text else CHECKS[self.request.columns.get(name, AS_IT_IS)]
            try:
                check(row.get(name))
                _check_encodable([row.get(name)])
            except UnfitError as error:
                there = "" if name in row else f" ({no_column(name, list(row))})"
                tally.bad(lines.name, lines.number, _column(line.decode(), name), f"in {name!r}: {error}{there}")
                return


def _refuse(constant: str) -> Any:
    raise UnfitError(f"found {constant}, which JSON does not have")


DECODER = json.JSONDecoder(parse_constant=_refuse)


def _parsed(line: bytes, lines: Lines, tally: Tally) -> dict[str, Any] | None:
    """The object on a line; None if there is none, of which `tally` hears."""
    column: int | None = 1
    try:
        if len(line) > LONGEST_ROW:
            raise UnfitError
        value = DECODER.decode(line.decode())
    except json.JSONDecodeError as error:
        column, reason = min(error.pos, len(error.doc.rstrip("\r\n"))) + 1, f"found what is not JSON: {error.msg}"
        if b"\0" in line:
            column, reason = lines.fault(line) or (column, reason)
    except (UnfitError, UnicodeDecodeError) as error:
        column, reason = lines.fault(line) or (1, str(error))
    except RecursionError:
        reason = "found JSON nested too deeply, expected an object of plain values"
    except ValueError:
        reason = "found a number of too many digits, expected one that a double can hold"
    else:
        if isinstance(value, dict):
            return value
        reason = f"found {shown(value)}, expected an object on each line"
    tally.bad(lines.name, lines.number, column, reason)
    return None


def _check_encodable(values: list[Any]) -> None:
    for value in values:
        if isinstance(value, list):
            _check_encodable(value)
        elif isinstance(value, dict):
            _check_encodable([*value, *value.values()])
        elif isinstance(value, str):
            try:
                value.encode()
            except UnicodeEncodeError as error:
                raise UnfitError(f"found half of a surrogate pair, {value[error.start]!r}, expected Unicode text") from None


def _column(line: str, name: str) -> int:
    """Column of the value with this name (the last, as for the parser); of the object if there is none."""
    position = line.index("{") + 1
    place = line.index("{") + 1
    while True:
        position = _past_space(line, position)
        if line[position] == "}":
            return place
        key, position = DECODER.raw_decode(line, position)
        position = _past_space(line, _past_space(line, position) + 1)
        if key == name:
            place = position + 1
        _, position = DECODER.raw_decode(line, position)
        position = _past_space(line, position)
        position += line[position] == ","


def _past_space(line: str, position: int) -> int:
    while line[position] in " \t\n\r":
        position += 1
    return position
