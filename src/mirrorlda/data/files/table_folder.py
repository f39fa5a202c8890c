"""A table in a folder of Parquet files: each is written by another process, and all have the same types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mirrorlda.data.files.atomic import replaced
from mirrorlda.data.files.column_types import family_of, is_unknown, settled
from mirrorlda.data.files.tables import COMPRESSION, Columns, TableWriter

_NAME = re.compile(r"part-\d{5,}\.parquet")


@dataclass(frozen=True)
class Part:
    """A file of the table, the rows that it has, and the types of its columns as far as its values tell them."""

    path: Path
    n_rows: int
    types: dict[str, Any]


def is_table(folder: Path) -> bool:
    """Whether a folder holds the parts of a table and nothing else."""
    return all(_NAME.fullmatch(found.name) for found in folder.iterdir())


def tidy(folder: Path) -> None:
    """Remove what processes that died have left beside the parts."""
    for found in folder.iterdir():
        if not _NAME.fullmatch(found.name):
            found.unlink()


def write_part(folder: Path, number: int, batches: Iterable[Columns]) -> Part:
    """Write one part of a table; one that is there already is replaced.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from mirrorlda.data.files.table_folder import write_part
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> write_part(folder, 0, [{"id": ["a", "b"], "stars": [4.5, 1.0]}]).types
    {'id': DataType(string), 'stars': DataType(double)}
    """
    path = folder / f"part-{number:05d}.parquet"
    with TableWriter(path) as writer:
        for columns in batches:
            writer.write(columns)
    return Part(path, writer.n_rows, writer.types)


def common_types(parts: Sequence[Part]) -> dict[str, Any]:
    """The type of each column: that of the first part that has values of it, and text where none has."""
    types: dict[str, Any] = {}
    for part in parts:
        for name, found in part.types.items():
            known = types.setdefault(name, found)
            if is_unknown(known) and not is_unknown(found):
                types[name] = found
    return {name: settled(found) for name, found in types.items()}


def as_others(part: Part, types: dict[str, Any]) -> None:
    """Write a part anew with the types of all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for name, found in part.types.items():
        if not is_unknown(found) and family_of(found) != family_of(types[name]):
            raise ValueError(f"the column {name!r} holds {found} in {part.path.name}, expected {types[name]} as in parts before")
    schema = pa.schema(types)
    try:
        with (
            pq.ParquetFile(part.path) as file,
            replaced(part.path) as stream,
            pq.ParquetWriter(stream, schema, compression=COMPRESSION) as writer,
        ):
            for batch in file.iter_batches():
                arrays = [_cast(batch.column(name), found) for name, found in types.items()]
                writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
    except pa.ArrowException as error:
        raise ValueError(f"{part.path.name}: {error}; expected the types of parts before") from None


def _cast(array: Any, wanted: Any) -> Any:
    """Values as those of another type; where all are missing, whatever their own."""
    import pyarrow as pa

    return pa.nulls(len(array), wanted) if array.null_count == len(array) else array.cast(wanted)


def is_as_others(part: Part, types: dict[str, Any]) -> bool:
    """Whether a part was written with the types of all."""
    return {name: settled(found) for name, found in part.types.items()} == types
