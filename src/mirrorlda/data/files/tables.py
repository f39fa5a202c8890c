"""Tables out: columns written a batch at a time as CSV, TSV, JSON lines or Parquet."""

from __future__ import annotations

import base64
import json
import math
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from datetime import date, time, timedelta
from decimal import Decimal
from types import TracebackType
from typing import IO, Any
from uuid import UUID

import numpy as np

from mirrorlda.data.files.atomic import AnyPath, replaced
from mirrorlda.data.files.column_types import check_keys, is_bytes, is_null, is_unknown, settled

FORMATS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
CODECS = {".gz": "gzip", ".zst": "zstd"}
Columns = Mapping[str, Sequence[Any] | np.ndarray]
# Inside Parquet.
COMPRESSION = "zstd"
# What waits for the type of a column.
MOST_HELD_ROWS = 1_000_000
MOST_HELD_BYTES = 1 << 26
# Of a column of a table, beside its values.
TABLE_BYTES = 1 << 10


def write_table(path: AnyPath | IO[bytes], batches: Iterable[Columns], *, format: str | None = None) -> int:
    """Write batches of columns as one table.

    Parameters
    ----------
    path, format
        As for `TableWriter`.
    batches : iterable of dicts from str to sequences of the same length
        All with the same columns.

    Returns
    -------
    int
        Number of rows.

    Examples
    --------
    >>> import os, pathlib, tempfile
    >>> from mirrorlda.tables import write_table
    >>> path = os.path.join(tempfile.mkdtemp(), "predictions.csv")
    >>> write_table(path, [{"id": ["a", "b"], "stars": [4.5, None]}, {"id": ["c"], "stars": [1.0]}])
    3
    >>> print(pathlib.Path(path).read_text(), end="")
    "id","stars"
    "a",4.5
    "b",
    "c",1
    """
    with TableWriter(path, format=format) as writer:
        for columns in batches:
            writer.write(columns)
    return writer.n_rows


class TableWriter:
    r"""A table that is being written; it appears under its name when it is complete.

    Use it in a `with` statement: at its end the table gets its name, at an error it is removed, and what was there before stays.

    Parameters
    ----------
    path : name or binary file object
        The ending tells the format: .csv, .tsv, .jsonl, .ndjson, .parquet; all but the last also with .gz or .zst after it.
        "-" is standard output.
    format : {"csv", "tsv", "jsonl", "parquet"}, optional
        In place of the ending; needed for "-" and file objects, which cannot be Parquet.

    Attributes
    ----------
    n_rows : int
        Rows so far.
    types : dict from str to Arrow's types
        Of the columns, once a table in Parquet is complete; that of one without values is the null type, or a list of it.

    Notes
    -----
    CSV and TSV put text in quotes; a missing value is empty, and lists and dicts are written as JSON. JSON lines take any values,
    of several types in a column too; so do CSV and TSV, and write such a column as text. Dates and times are text as in ISO 8601
    there, decimals their digits, bytes base64. NaN counts as missing; in JSON lines so do infinities.

    The first batch settles the columns, also if it has no rows, and in Parquet the first value of a column its
    type. Rows before it wait for it in memory: at most a million, or 64 MB of them. After these, and where there is no value at
    all, a column is one of text.

    Examples
    --------
    >>> import io
    >>> from mirrorlda.tables import TableWriter
    >>> file = io.BytesIO()
    >>> with TableWriter(file, format="jsonl") as writer:
    ...     writer.write({"id": [7], "topics": [["food", "staff"]]})
    >>> file.getvalue()
    b'{"id": 7, "topics": ["food", "staff"]}\n'
    """

    def __init__(self, path: AnyPath | IO[bytes], *, format: str | None = None) -> None:
        self.n_rows = 0
        self.path: str | None = None
        self._names: list[str] | None = None
        # Of Parquet: the writer, the columns' types as far as they are known, tables that wait for the rest of them.
        self._parquet: Any = None
        self._types: dict[str, Any] = {}
        self.types: dict[str, Any] = {}
        self._held: list[Any] = []
        self._n_held_bytes = 0
        self._texts: set[str] = set()
        self._stream: IO[bytes] | None = None
        self._codec: str | None = None
        if not isinstance(path, str | bytes | os.PathLike):
            self.name, self._stream = str(getattr(path, "name", "stream")), path
        elif (name := os.fsdecode(path)) == "-":
            self.name, self._stream = "standard output", sys.stdout.buffer
        else:
            self.path = self.name = name
            self.format, self._codec = _format_of(name, format)
            return
        if format not in ("csv", "tsv", "jsonl"):
            raise ValueError(f"{self.name}: format must be 'csv', 'tsv' or 'jsonl' for a stream, got {format!r}")
        self.format = format

    def __enter__(self) -> TableWriter:
        import pyarrow as pa

        with ExitStack() as opened:
            if self.path is not None:
                file = opened.enter_context(replaced(self.path))
                self._stream = file
                if self._codec:
                    # Closing what compresses closes what it writes to.
                    twin = opened.enter_context(open(os.dup(file.fileno()), "wb"))
                    self._stream = opened.enter_context(pa.CompressedOutputStream(pa.PythonFile(twin, mode="w"), self._codec))
            self._opened = opened.pop_all()
        return self

    def write(self, columns: Columns) -> None:
        """Append rows.

        Parameters
        ----------
        columns : dict from str to sequences of the same length
        """
        import pyarrow as pa

        self._check(columns)
        if self.format == "jsonl":
            self._write_json(columns)
        else:
            table = pa.table({name: self._array(name, values) for name, values in columns.items()})
            if self.format == "parquet":
                self._write_parquet(table)
            else:
                self._write_csv(table)
        self._names = list(columns)
        self.n_rows += max(map(len, columns.values()), default=0)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is not None:
            self._opened.__exit__(kind, error, trace)
            return
        with self._opened:
            self._finish()

    def _finish(self) -> None:
        """Write what is kept for the end."""
        assert self._stream is not None
        if self.path is None:
            self._stream.flush()
        elif self.format == "parquet" and self._parquet is None:
            self._open_parquet()

    def _check(self, columns: Columns) -> None:
        if self._stream is None:
            raise ValueError(f"{self.name} is not open: use TableWriter in a with statement")
        lengths = {name: len(values) for name, values in columns.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"{self.name}: the columns have the lengths {lengths}, expected one length")
        if self._names is not None and list(columns) != self._names:
            raise ValueError(f"{self.name}: found the columns {list(columns)} after row {self.n_rows}, expected {self._names}")

    def _array(self, name: str, values: Sequence[Any] | np.ndarray) -> Any:
        import pyarrow as pa

        if isinstance(values, np.ndarray) and values.ndim != 1:
            raise ValueError(f"{self.name}: the column {name!r} has the shape {values.shape}, expected one dimension")
        expected = self._types.get(name)
        if expected is not None and is_unknown(expected):
            expected = None
        is_csv = self.format in ("csv", "tsv")
        if name in self._texts or (
            is_csv and isinstance(values, list | tuple) and any(isinstance(value, list | dict) for value in values)
        ):
            values = self._as_texts(name, values)
        try:
            array = pa.array(values, type=expected, from_pandas=True)
            if expected is not None and isinstance(values, list | tuple) and pa.types.is_nested(expected):
                check_keys(pa.array(values, from_pandas=True).type, expected)
            return array
        except (pa.ArrowException, UnicodeEncodeError, OverflowError) as error:
            if is_csv and isinstance(values, list | tuple) and not isinstance(error, UnicodeEncodeError):
                return pa.array(self._as_texts(name, values), pa.string())
            wanted = "one type: text, numbers, booleans or lists" if expected is None else f"{expected} as in rows before"
            raise self._unfit(name, f"{error}; expected {wanted}") from None

    def _as_texts(self, name: str, values: Sequence[Any] | np.ndarray) -> list[str | None]:
        try:
            return [_text(value) for value in (values.tolist() if isinstance(values, np.ndarray) else values)]
        except ValueError as error:
            raise self._unfit(name, str(error)) from None

    def _unfit(self, name: str, reason: str) -> ValueError:
        return ValueError(f"{self.name}: the column {name!r} after row {self.n_rows}: {reason}")

    def _write_parquet(self, table: Any) -> None:
        if self._parquet is not None:
            self._parquet.write_table(table)
            return
        self._held.append(table)
        for field in table.schema:
            known = self._types.get(field.name)
            if known is None or (is_unknown(known) and not is_null(field.type)):
                self._types[field.name] = field.type
        is_waiting = any(map(is_unknown, self._types.values()))
        self._n_held_bytes += table.nbytes + TABLE_BYTES * table.num_columns
        # All rows so far are held: those before this table, and its own.
        if not is_waiting or self.n_rows + len(table) >= MOST_HELD_ROWS or self._n_held_bytes >= MOST_HELD_BYTES:
            self._open_parquet()

    def _open_parquet(self) -> None:
        """Settle the types, and write what has waited for them."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.types = dict(self._types)
        self._texts = {name for name, type in self._types.items() if is_null(type)}
        self._types = {name: settled(type) for name, type in self._types.items()}
        schema = pa.schema(self._types)
        try:
            self._parquet = self._opened.enter_context(pq.ParquetWriter(self._stream, schema, compression=COMPRESSION))
            for table in self._held:
                self._parquet.write_table(table.cast(schema))
        except pa.ArrowException as error:
            raise ValueError(f"{self.name}: {error}; expected one type for each column") from None
        self._held = []

    def _write_csv(self, table: Any) -> None:
        import pyarrow as pa
        from pyarrow import csv

        for number, field in enumerate(table.schema):
            if pa.types.is_nested(field.type) or pa.types.is_temporal(field.type) or is_bytes(field.type):
                texts = self._as_texts(field.name, self._python(field.name, table.column(number)))
                table = table.set_column(number, field.name, pa.array(texts, pa.string()))
        options = csv.WriteOptions(include_header=self._names is None, delimiter="\t" if self.format == "tsv" else ",")
        buffer = pa.BufferOutputStream()
        csv.write_csv(table, buffer, options)
        assert self._stream is not None
        self._stream.write(buffer.getvalue())

    def _write_json(self, columns: Columns) -> None:
        names = [json.dumps(name, ensure_ascii=False) for name in columns]
        texts = [self._json_column(name, values) for name, values in columns.items()]
        lines = ["{" + ", ".join(map("{}: {}".format, names, row)) + "}\n" for row in zip(*texts, strict=True)]
        assert self._stream is not None
        self._stream.write("".join(lines).encode())

    def _json_column(self, name: str, values: Sequence[Any] | np.ndarray) -> list[str]:
        """Each value of a column as JSON; floats of arrays with as few digits as tell them apart in their own precision."""
        import pyarrow as pa

        if not isinstance(values, list | tuple):
            column = self._array(name, values)
            if pa.types.is_floating(column.type):
                texts = column.cast(pa.string()).to_pylist()
                return ["null" if text is None or text.lstrip("-") in ("nan", "inf") else text for text in texts]
            values = self._python(name, column)
        try:
            texts = [_json(value) for value in values]
            "".join(texts).encode()
        except ValueError as error:
            raise self._unfit(name, str(error)) from None
        return texts

    def _python(self, name: str, column: Any) -> list[Any]:
        try:
            return list(column.to_pylist())
        except ValueError as error:
            # Nanoseconds, which Python's own times do not have.
            raise self._unfit(name, str(error)) from None


def _text(value: Any) -> str | None:
    """A value of a column that is one of text."""
    plain = _plain(value)
    return plain if plain is None or isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def _json(value: Any) -> str:
    return json.dumps(_plain(value), ensure_ascii=False)


def _plain(value: Any) -> Any:
    """A value that JSON has; NaN and infinities are missing ones."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return {key if isinstance(key, str) else str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, date | time):
        # Nothing but a missing time differs from itself.
        return value.isoformat() if value == value else None
    if isinstance(value, Decimal | timedelta | UUID):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise ValueError(f"found a {type(value).__qualname__}, expected text, numbers, booleans, dates, lists or dicts")


def _format_of(path: str, format: str | None) -> tuple[str, str | None]:
    stem, ending = os.path.splitext(path)
    codec = CODECS.get(ending)
    if codec is not None:
        ending = os.path.splitext(stem)[1]
    found = format or FORMATS.get(ending.lower())
    if found is None or found not in FORMATS.values():
        raise ValueError(f"{path}: found {found or ending!r} as the format, expected one of {sorted(set(FORMATS.values()))}")
    if found == "parquet" and codec is not None:
        raise ValueError(f"{path}: Parquet is compressed inside, expected a name that ends with .parquet")
    return found, codec
