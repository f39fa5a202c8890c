"""Files of each format in memory, what reading them gives, and the faults that it finds."""

import csv
import gzip
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mirrorlda.readers import BadFileError, BadRowError, read

COMPRESSIONS = {
    "": bytes,
    ".gz": gzip.compress,
    ".zst": lambda data: pa.Codec("zstd").compress(data, asbytes=True),
}
# The same three documents in each format of counts.
COUNTS = np.array([[2, 0, 1, 0], [0, 0, 0, 0], [0, 0.5, 0, 3]], np.float32)
SVMLIGHT = b"1 1:2 3:1\n-1\n2.5 2:0.5 4:3\n"
UCI = b"3\n4\n4\n1 1 2\n1 3 1\n3 2 0.5\n3 4 3\n"
MTX = b"%%MatrixMarket matrix coordinate real general\n% a comment\n3 4 4\n1 1 2\n1 3 1\n3 2 0.5\n3 4 3\n"


def csv_bytes(table, delimiter=","):
    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter=delimiter)
    writer.writerow(table[0])
    writer.writerows(row.values() for row in table)
    return file.getvalue().encode()


def jsonl_bytes(table):
    return "".join(json.dumps(row) + "\n" for row in table).encode()


def parquet_bytes(table, **options):
    file = io.BytesIO()
    pq.write_table(table if isinstance(table, pa.Table) else pa.Table.from_pylist(table), file, **options)
    return file.getvalue()


def joined(reading):
    """All batches as lists: texts, columns, lines."""
    batches = list(reading)
    texts = [text for batch in batches for text in batch.texts or []]
    columns = {name: [value for batch in batches for value in batch.columns[name]] for name in reading.request.columns}
    return texts, columns, [line for batch in batches for line in batch.lines.tolist()]


def read_bytes(data, format, **options):
    return read(io.BytesIO(data), format=format, **options)


def fault(data, format, **options):
    """Line, column and reason of the one fault of a file, which must be the same when it is skipped."""
    with pytest.raises(BadRowError) as caught:
        list(read_bytes(data, format, **options))
    reading = read_bytes(data, format, bad_rows="skip", **options)
    with pytest.warns(UserWarning, match="1 bad rows skipped"):
        list(reading)
    assert reading.skipped.count == 1
    assert reading.skipped.reasons == [str(caught.value)]
    return caught.value.line, caught.value.column, caught.value.reason


def damage(data, format, **options):
    """Reason of an error that no skipping of rows avoids."""
    for bad_rows in ("error", "skip"):
        with pytest.raises(BadFileError) as caught:
            list(read_bytes(data, format, bad_rows=bad_rows, **options))
        assert not isinstance(caught.value, BadRowError)
    return caught.value.reason


TEXT = {"text": "text", "columns": {"stars": "number"}}


class Pipe(io.RawIOBase):
    """A stream that cannot seek and gives a byte or two at a time."""

    def __init__(self, data):
        self.data = data

    def readable(self):
        return True

    def readinto(self, buffer):
        part, self.data = self.data[:2], self.data[2:]
        buffer[: len(part)] = part
        return len(part)
