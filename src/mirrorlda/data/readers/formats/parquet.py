"""Parquet by Arrow, a batch of a row group at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mirrorlda.data.readers.request import Request
from mirrorlda.data.readers.rows import BadFileError, Batch, Rows, Tally, column_numbers
from mirrorlda.data.readers.streams import Source
from mirrorlda.data.readers.values import AS_IT_IS, CHECKS, UnfitError, as_text


class ArrowColumn(Sequence[Any]):
    """A column as it is: Python's values where they are looked at, Arrow's array for what takes one."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, place: Any) -> Any:
        return ArrowColumn(self.array[place]) if isinstance(place, slice) else self.array[place].as_py()

    def __arrow_array__(self, type: Any = None) -> Any:
        return self.array if type is None else self.array.cast(type)


def rows(source: Source, request: Request, tally: Tally) -> Iterator[Rows]:
    """Rows of a Parquet file; its lines are row numbers."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    damaged = (pa.ArrowException, OSError, UnicodeDecodeError, OverflowError)
    batch = Batch(source.name, request, tally)
    with source.open_seekable(tally) as stream:
        try:
            file = pq.ParquetFile(stream, buffer_size=1 << 20, pre_buffer=False, page_checksum_verification=True)
            request = request.of(file.schema_arrow.names)
            asked = _asked(source.name, file.schema_arrow, request)
            names = list(dict.fromkeys([*asked, *request.columns]))
            batches = file.iter_batches(_batch_rows(file.metadata, request), columns=names, use_threads=False)
        except damaged as error:
            raise _damaged(source.name, tally, error) from None
        number = 0
        n_before = tally.n_rows
        while True:
            try:
                table = next(batches, None)
            except damaged as error:
                raise _damaged(source.name, tally, error) from None
            if table is None:
                break
            if request.is_partly_as_it_is:
                yield _as_they_are(source.name, table, asked, number, request, tally)
                number += len(table)
                continue
            for row in _checked(source.name, table, asked, number, request, tally):
                batch.add(*row)
                if batch.is_full:
                    yield batch.take()
            number += len(table)
    if batch.lines:
        yield batch.take()
    # A file without rows has columns.
    if request.is_partly_as_it_is and tally.n_rows == n_before:
        yield _as_they_are(source.name, file.schema_arrow.empty_table(), asked, number, request, tally)


def _damaged(name: str, tally: Tally, error: Exception) -> Exception:
    if isinstance(error, OSError) and error.errno is not None:
        return error
    return BadFileError(name, f"not Parquet, cut short or damaged, after {tally.n_rows} rows: {error}")


def _batch_rows(metadata: Any, request: Request) -> int:
    """As many rows as are asked for, fewer where rows are long."""
    size = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
    mean = max(1, size // max(1, metadata.num_rows))
    return int(min(request.batch_rows, max(1, request.batch_bytes // mean)))


def _asked(file: str, schema: Any, request: Request) -> dict[str, Callable[[Any], Any]]:
    """The check of each column that was asked for, if its type is one that can pass."""
    columns = {name: kind for name, kind in request.columns.items() if kind != AS_IT_IS}
    checks: dict[str, Callable[[Any], Any]] = {} if request.text is None else {request.text: as_text}
    checks.update({name: CHECKS[kind] for name, kind in columns.items()})
    kinds = dict(columns) if request.text is None else {request.text: "text", **columns}
    numbers = column_numbers(file, list(checks), schema.names)
    column_numbers(file, schema.names if request.everything else list(request.columns), schema.names)
    for number, (name, kind) in zip(numbers, kinds.items(), strict=True):
        found = schema.field(number).type
        if not _is_fit(found, kind):
            expected = {"any": "text, numbers, booleans or lists of them", "class": "text, numbers or booleans"}.get(kind, kind)
            raise BadFileError(file, f"the column {name!r} holds {found}, expected {expected}")
    return checks


def _is_fit(found: Any, kind: str) -> bool:
    import pyarrow.types as pt

    if pt.is_dictionary(found):
        return _is_fit(found.value_type, kind)
    if pt.is_null(found):
        return True
    is_list = pt.is_list(found) or pt.is_large_list(found) or pt.is_fixed_size_list(found)
    if is_list:
        return kind in ("any", "labels") and _is_fit(found.value_type, "class")
    is_text = bool(pt.is_string(found) or pt.is_large_string(found) or pt.is_string_view(found))
    is_number = bool(pt.is_integer(found) or pt.is_floating(found))
    return {"text": is_text, "number": is_number, "labels": False}.get(kind, is_text or is_number or bool(pt.is_boolean(found)))


def _as_they_are(
    file: str, table: Any, asked: dict[str, Callable[[Any], Any]], before: int, request: Request, tally: Tally
) -> Rows:
    """Rows that pass their checks, with Arrow's arrays where a column has none."""
    import pyarrow as pa

    numbers, texts = np.arange(before + 1, before + 1 + len(table)), None
    columns: dict[str, Sequence[Any]] = {}
    try:
        if asked:
            found = list(_checked(file, table, asked, before, request, tally))
            numbers = np.array([row[0] for row in found], np.int64)
            texts = None if request.text is None else [str(row[2]) for row in found]
            values = [[row[3][number] for row in found] for number in range(len(asked) - (texts is not None))]
            columns = dict(zip([name for name in asked if name != request.text], values, strict=True))
            if len(numbers) < len(table):
                table = table.take(numbers - before - 1)
        table.validate(full=True)
    except pa.ArrowInvalid as error:
        raise BadFileError(file, f"in rows {before + 1} to {before + len(table)}: {error}") from None
    tally.n_rows += len(numbers)
    return Rows(
        file,
        numbers,
        texts,
        None,
        {name: columns[name] if name in columns else ArrowColumn(table.column(name)) for name in request.columns},
    )


def _checked(
    file: str, table: Any, asked: dict[str, Callable[[Any], Any]], before: int, request: Request, tally: Tally
) -> Iterator[tuple[int, int, str | None, list[Any]]]:
    columns = [_values(table.column(name)) for name in asked]
    names = list(asked)
    checks = list(asked.values())
    size = table.nbytes // max(1, len(table))
    for number, values in enumerate(zip(*columns, strict=True), before + 1):
        row: list[Any] = []
        for name, check, value in zip(names, checks, values, strict=True):
            try:
                if isinstance(value, UnfitError):
                    raise value
                row.append(check(value))
            except UnfitError as error:
                tally.bad(file, number, None, f"in column {name!r}: {error}")
                break
        else:
            text = None if request.text is None else row.pop(0)
            yield number, size, text, row


def _values(column: Any) -> list[Any]:
    """Python's values; in place of one that is not UTF-8, its error."""
    try:
        return list(column.to_pylist())
    except UnicodeDecodeError:
        return [_value(scalar) for scalar in column]


def _value(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except UnicodeDecodeError as error:
        return UnfitError(f"found text that is not UTF-8 at byte {error.start} of it: {error.reason}")
