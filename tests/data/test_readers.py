"""Files in: every format plain and compressed, and every fault with its place."""

import csv
import gzip
import io
import json
import os
import re
import tracemalloc
import warnings
from datetime import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from mirrorlda.readers import BadFileError, BadRowError, read, rows, streams
from mirrorlda.readers.formats import delimited
from mirrorlda.tables import write_table

COMPRESSIONS = {
    "": bytes,
    ".gz": gzip.compress,
    ".zst": lambda data: pa.Codec("zstd").compress(data, asbytes=True),
}
COUNTS = np.array([[2, 0, 1, 0], [0, 0, 0, 0], [0, 0.5, 0, 3]], np.float32)
SVMLIGHT = b"1 1:2 3:1\n-1\n2.5 2:0.5 4:3\n"
UCI = b"3\n4\n4\n1 1 2\n1 3 1\n3 2 0.5\n3 4 3\n"
MTX = b"%%MatrixMarket matrix coordinate real general\n% a comment\n3 4 4\n1 1 2\n1 3 1\n3 2 0.5\n3 4 3\n"
TEXT_ROWS = [
    {"id": "a", "text": 'Clean, "quiet".\nTwice.', "stars": 4.0},
    {"id": "b", "text": "", "stars": None},
    {"id": "c", "text": "Schön \u2028 \U0001f600\r", "stars": -1.5},
]


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


TEXT_FILES = {
    "csv": csv_bytes(TEXT_ROWS),
    "tsv": csv_bytes(TEXT_ROWS, "\t"),
    "jsonl": jsonl_bytes(TEXT_ROWS),
    "parquet": parquet_bytes(TEXT_ROWS),
}
COUNT_FILES = {"data.svm": SVMLIGHT, "docword.data.txt": UCI, "data.mtx": MTX}


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


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("format", TEXT_FILES)
def test_text_formats_come_back(tmp_path, format, compression):
    path = tmp_path / f"data.{format}{compression}"
    path.write_bytes(COMPRESSIONS[compression](TEXT_FILES[format]))
    reading = read(path, text="text", columns={"stars": "number", "id": "class"})
    for _ in range(2):
        texts, columns, lines = joined(reading)
        assert texts == [row["text"] for row in TEXT_ROWS]
        assert columns == {name: [row[name] for row in TEXT_ROWS] for name in ("stars", "id")}
        assert lines == {"csv": [2, 4, 5], "tsv": [2, 4, 5]}.get(format, [1, 2, 3])
    assert reading.n_words is None
    assert reading.words is None


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("name", COUNT_FILES)
def test_count_formats_come_back(tmp_path, name, compression):
    path = tmp_path / (name + compression)
    path.write_bytes(COMPRESSIONS[compression](COUNT_FILES[name]))
    (tmp_path / "vocab.data.txt").write_text("be\nsea\nto\nwe\n")
    reading = read(path, columns=["label"] if name.endswith("svm") else ())
    assert reading.n_words == 4
    assert reading.words == ["be", "sea", "to", "we"]
    for _ in range(2):
        [batch] = reading
        assert batch.counts.dtype == np.float32
        np.testing.assert_array_equal(batch.counts.toarray(), COUNTS)
        assert batch.counts.has_canonical_format
        assert batch.lines.tolist() == [1, 2, 3]
        assert batch.texts is None
        assert batch.columns == ({"label": [1.0, -1.0, 2.5]} if name.endswith("svm") else {})


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_folder_of_classes(tmp_path, compression):
    for name, text in [("neg/b.txt", "Bad."), ("pos/deep/c.txt", "Good."), ("neg/a.txt", "Sad.\n"), ("top.txt", "None.")]:
        path = tmp_path / (name + compression)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(COMPRESSIONS[compression](text.encode()))
    (tmp_path / ".hidden").write_bytes(b"\xff")
    texts, columns, lines = joined(read(tmp_path, columns=("folder", "path")))
    assert texts == ["Sad.\n", "Bad.", "Good.", "None."]
    assert columns["folder"] == ["neg", "neg", "pos", None]
    assert columns["path"] == [name + compression for name in ("neg/a.txt", "neg/b.txt", "pos/deep/c.txt", "top.txt")]
    assert lines == [1, 2, 3, 4]


def test_folder_faults(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "1.txt").write_bytes(b"one\ntw\xffo")
    (tmp_path / "a" / "2.txt").write_bytes(b"fine")
    os.mkfifo(tmp_path / "a" / "3.txt")
    with pytest.raises(BadRowError, match=r"1.txt:2:3: found 0xff \(byte 6 of the file\), which is not UTF-8"):
        list(read(tmp_path))
    reading = read(tmp_path, bad_rows="skip")
    with pytest.warns(UserWarning, match="2 bad rows skipped, 1 read"):
        assert joined(reading)[0] == ["fine"]
    assert reading.skipped.reasons[1].endswith("3.txt:1: found what is not a regular file, expected a text file")
    with pytest.raises(BadFileError, match="no column 'class'; there are 'folder', 'path'"):
        list(read(tmp_path, columns=["class"]))


def test_several_files_and_patterns(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("b.csv", "a.csv", "c[1].csv"):
        (tmp_path / name).write_text(f"text\n{name}\n")
    assert joined(read(["b.csv", "*.csv", tmp_path / "a.csv"], text="text"))[0] == ["b.csv", "a.csv", "c[1].csv"]
    assert joined(read("c[1].csv", text="text"))[0] == ["c[1].csv"]
    assert [batch.file for batch in read("*.csv", text="text")] == ["a.csv", "b.csv", "c[1].csv"]
    with pytest.raises(FileNotFoundError, match=r"no file matches the pattern: 'x\*.csv'"):
        read(["a.csv", "x*.csv"], text="text")
    with pytest.raises(FileNotFoundError, match="no such file"):
        read("d.csv", text="text")
    (tmp_path / "a.jsonl").write_text("")
    with pytest.raises(ValueError, match=r"the formats \['csv', 'jsonl'\], expected one"):
        read("a.*", text="text")
    with pytest.raises(ValueError, match="files is empty"):
        read([], text="text")


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


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("format", TEXT_FILES)
def test_streams_are_read_once(format, compression):
    pipe = Pipe(COMPRESSIONS[compression](TEXT_FILES[format]))
    reading = read(pipe, text="text", format=format)
    assert joined(reading)[0] == [row["text"] for row in TEXT_ROWS]
    assert not pipe.closed
    with pytest.raises(BadFileError, match="a stream can be read once only"):
        list(reading)


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("format", TEXT_FILES)
def test_other_columns_are_asked_for_of_the_same_sources(format, compression):
    stream = io.BytesIO(b"before" + COMPRESSIONS[compression](TEXT_FILES[format]))
    stream.seek(6)
    first = read(stream, text="text", columns={"stars": "any"}, format=format, batch_rows=2)
    second = first.asking({"stars": "number"})
    third = second.asking({})
    texts = [row["text"] for row in TEXT_ROWS]
    stars = [None if row["stars"] is None else float(row["stars"]) for row in TEXT_ROWS]
    for _ in range(2):
        assert joined(first)[0] == texts
        assert joined(second)[:2] == (texts, {"stars": stars})
        assert joined(third)[:2] == (texts, {})
    assert first.request.columns == {"stars": "any"}
    with pytest.raises(ValueError, match=r"'stars' must be one of .*, got 'date'"):
        first.asking({"stars": "date"})


def test_a_stream_is_read_once_also_with_other_columns():
    reading = read(Pipe(b"text,stars\na,1\n"), text="text", columns={"stars": "any"}, format="csv")
    other = reading.asking({"stars": "number"})
    assert joined(reading)[1] == {"stars": ["1"]}
    with pytest.raises(BadFileError, match="a stream can be read once only"):
        list(other)


def test_words_are_found_once_for_all_columns():
    words = io.BytesIO(b"a\nb\nc\n")
    first = read(io.BytesIO(b"1 1:2\n0 2:1\n"), columns={"label": "any"}, format="svmlight", words=words)
    second = first.asking({"label": "class"})
    assert first.words == second.words == ["a", "b", "c"]
    assert [rows.counts.shape for rows in [*first, *second]] == [(2, 3)] * 2
    first = read(Pipe(b"1 3 1\n1 1 1\n"), format="svmlight", n_words=3, zero_based=False, bad_rows="skip")
    assert first.asking({"label": "number"}).n_words == 3


def test_rows_that_other_columns_make_bad_are_skipped():
    data = b"1 1:2\n1,2 5:1\n"
    one = read_bytes(data, "svmlight", columns={"label": "number"}, bad_rows="skip")
    several = one.asking({"label": "labels"})
    with pytest.warns(UserWarning, match="1 bad rows skipped"):
        assert [rows.counts.shape for rows in one] == [(1, 1)]
    for reading in (several, one.asking({"label": "labels"})):
        assert [rows.counts.shape for rows in reading] == [(2, 5)]
        assert reading.skipped.count == 0
    assert one.skipped.count == 1


def test_files_of_other_programs(tmp_path):
    for name, advice in {"a.xlsx": "Excel files are not read: save the sheet as CSV", "a.PDF": "only plain text is read"}.items():
        (tmp_path / name).write_bytes(b"PK")
        with pytest.raises(ValueError, match=f"{name}: {advice}"):
            read(tmp_path / name, text="text")


def test_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"text\na\n")))
    assert joined(read("-", text="text", format="csv"))[0] == ["a"]
    with pytest.raises(ValueError, match="standard input: the name does not tell the format"):
        read("-", text="text")
    with pytest.raises(TypeError, match="expected one of bytes"):
        list(read(io.StringIO("text\na\n"), text="text", format="csv"))


EVERYTHING = {
    "csv": (b"id,text,stars\n1,Good.,\n2,,x\n", {"id": ["1", "2"], "text": ["Good.", None], "stars": [None, "x"]}),
    "tsv": (b"id\ttext\n1\tGood.\n2\t\n", {"id": ["1", "2"], "text": ["Good.", None]}),
    "jsonl": (
        b'{"text": "Good.", "id": 1}\n{"who": {"name": ["\\u00e9", null, 1.5]}, "text": "", "id": "b"}\n',
        {"text": ["Good.", ""], "id": [1, "b"], "who": [None, {"name": ["é", None, 1.5]}]},
    ),
    "parquet": (
        parquet_bytes(pa.table({"text": ["Good.", ""], "t": [datetime(2024, 1, 2), None], "l": [[{"a": Decimal("1.5")}], None]})),
        {"text": ["Good.", ""], "t": [datetime(2024, 1, 2), None], "l": [[{"a": Decimal("1.5")}], None]},
    ),
}


@pytest.mark.parametrize("source", [io.BytesIO, Pipe])
@pytest.mark.parametrize("format", EVERYTHING)
def test_all_columns_as_they_are(format, source):
    data, columns = EVERYTHING[format]
    [batch] = read(source(data), text="text", columns="all", format=format)
    assert {name: list(values) for name, values in batch.columns.items()} == columns
    assert list(batch.columns) == list(columns)
    assert batch.texts == ["Good.", ""]
    [batch] = read(source(data), columns="all", format=format)
    assert (batch.texts, list(batch.columns)) == (None, list(columns))


def test_some_columns_as_they_are_beside_others():
    table = pa.table({"id": [1, 2, 3], "text": ["a", None, "c"], "t": [datetime(2024, 1, 2), None, None], "n": [1.5, 2, None]})
    columns = {"n": "number", "t": "as it is"}
    expected = {"n": [1.5, None], "t": [datetime(2024, 1, 2), None]}
    with pytest.warns(UserWarning, match="1 bad rows skipped"):
        [batch] = read_bytes(parquet_bytes(table), "parquet", text="text", columns=columns, bad_rows="skip")
    assert {name: list(values) for name, values in batch.columns.items()} == expected
    assert list(batch.columns) == ["n", "t"]
    assert (batch.texts, batch.lines.tolist()) == (["a", "c"], [1, 3])
    [batch] = read_bytes(parquet_bytes(table), "parquet", columns=columns)
    assert (batch.texts, list(batch.columns["n"])) == (None, [1.5, 2.0, None])


def test_all_columns_of_other_formats(tmp_path):
    (tmp_path / "pos").mkdir()
    (tmp_path / "pos" / "a.txt").write_text("Good.")
    [batch] = read(tmp_path, columns="all")
    assert batch.columns == {"folder": ["pos"], "path": ["pos/a.txt"]}
    assert next(iter(read_bytes(SVMLIGHT, "svmlight", columns="all"))).columns == {"label": [1.0, -1.0, 2.5]}
    assert next(iter(read_bytes(UCI, "uci", columns="all"))).columns == {}
    # A column of that name is one like any other.
    assert next(iter(read_bytes(b"all,b\n1,2\n", "csv", columns=["all"]))).columns == {"all": ["1"]}


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_all_columns_of_a_file_without_rows(format):
    data = {
        "csv": b"id,text\n",
        "parquet": parquet_bytes(pa.table({"id": pa.array([], pa.int8()), "text": pa.array([], pa.string())})),
    }
    [batch] = read_bytes(data[format], format, text="text", columns="all")
    assert len(batch) == 0
    assert {name: list(values) for name, values in batch.columns.items()} == {"id": [], "text": []}


def test_faults_of_all_columns(tmp_path):
    late = b'{"text": "a"}\n{"text": "b"}\n{"text": "c", "new": 1}\n'
    options = {"text": "text", "columns": "all"}
    assert fault(late, "jsonl", batch_rows=2, **options) == (
        3,
        None,
        "found the key 'new', expected those of the first batch of rows, 'text': name the columns wanted",
    )
    deep = b'{"text": "a", "x": ' + b"[" * 200 + b"]" * 200 + b"}\n"
    assert "nested more than 100 deep" in fault(deep, "jsonl", **options)[2]
    for half in (
        b'{"text": "a", "\\ud800": 1}\n',
        b'{"text": "a", "x": {"\\ud800": 1}}\n',
        b'{"text": "a", "x": [["\\ud800"]]}\n',
    ):
        assert "half of a surrogate pair" in fault(half, "jsonl", **options)[2]
    assert "'text': found the number 1, expected text" in fault(b'{"text": 1}\n', "jsonl", **options)[2]
    missing = parquet_bytes(pa.table({"text": ["a", None, "c"], "n": [1, 2, 3]}))
    assert fault(missing, "parquet", **options) == (2, None, "in column 'text': found nothing, expected text")
    with pytest.warns(UserWarning, match="1 bad rows skipped, 2 read"):
        [batch] = read_bytes(missing, "parquet", bad_rows="skip", **options)
    assert (batch.lines.tolist(), list(batch.columns["n"])) == ([1, 3], [1, 3])
    not_text = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(np.array([0, 1], np.int32)), pa.py_buffer(b"\xff")])
    assert "Invalid UTF8" in damage(parquet_bytes(pa.table({"text": ["a"], "x": not_text})), "parquet", **options)
    assert "are all named 'a'" in damage(b"text,a,a\nx,1,2\n", "csv", **options)
    (tmp_path / "a.csv").write_text("text,id\nx,1\n")
    (tmp_path / "b.csv").write_text("id,text\n2,y\n")
    assert [list(rows.columns) for rows in read(tmp_path / "*.csv", **options)] == [["text", "id"]] * 2
    (tmp_path / "c.csv").write_text("id,text,more\n2,y,3\n")
    with pytest.raises(
        BadFileError, match=r"c\.csv: found the columns \['id', 'text', 'more'\], expected those of the files before"
    ):
        list(read(tmp_path / "*.csv", **options))


@pytest.mark.parametrize("format", TEXT_FILES)
def test_unknown_columns(format):
    for columns in ({"text": "Text"}, {"text": "text", "columns": ["Text"]}):
        with pytest.raises(BadFileError, match=r"no column 'Text'; there are 'id', 'text', 'stars'; did you mean 'text'\?"):
            list(read_bytes(TEXT_FILES[format], format, **columns))


REVIEW = "A long review; of a hotel, that is; of a room in it; that was clean and quiet and had a view"


@pytest.mark.parametrize(
    ("header", "options", "expected"),
    [
        (b"id;text;more", {}, "no column 'text'; there are 'id;text;more'; is the delimiter ';'? (delimiter=)"),
        (b'"id"\t"text"', {"quote": None}, "is the delimiter '\\t'? (delimiter=)"),
        (b"id|more", {}, "is the delimiter '|'? (delimiter=)"),
        (b"id,more", {"delimiter": ";"}, "is the delimiter ','? (delimiter=)"),
        (b";".join([b"text", *[b"a column of many"] * 9]), {}, "...'; is the delimiter ';'? (delimiter=)"),
        (b"id;x,more", {}, "no column 'text'; there are 'id;x', 'more'"),
        (
            f'7,"{REVIEW}",5'.encode(),
            {},
            "there are '7', 'A long review; of a hotel, ...', '5'; has the file a line with the names of its columns?",
        ),
        (b"", {}, "there are none"),
    ],
)
def test_what_may_be_amiss_with_a_first_line(header, options, expected):
    assert damage(header + b"\n", "csv", text="text", **options).endswith(expected)


def test_targets_of_all_kinds():
    table = [
        {"n": 3, "c": "x", "l": ["a", "b"], "m": None},
        {"n": None, "c": None, "l": [], "m": None},
        {"n": 4.5, "c": "y", "l": None, "m": 2},
    ]
    kinds = {"n": "number", "c": "class", "l": "labels", "m": "any"}
    expected = {name: [row[name] for row in table] for name in kinds}
    for format, data in (("jsonl", jsonl_bytes(table)), ("parquet", parquet_bytes(table))):
        texts, columns, _ = joined(read_bytes(data, format, columns=kinds))
        assert texts == []
        assert columns == expected
        assert joined(read_bytes(data, format, columns=["l"]))[1] == {"l": expected["l"]}
    # A key that some rows do not have is a missing value.
    assert joined(read_bytes(b'{"t": "a"}\n{"t": "b", "y": 1}\n', "jsonl", text="t", columns=["y"]))[1] == {"y": [None, 1]}
    with pytest.raises(ValueError, match="'l' cannot hold lists in the format 'csv'"):
        read_bytes(b"", "csv", columns={"l": "labels"})


def test_labels_of_one_field():
    data = b'text,tags\nx,a; b ;;c\ny,\nz,;\nu,"a;\n"\nv,  \n'
    [batch] = read_bytes(data, "csv", text="text", columns={"tags": "labels"}, label_separator=";")
    assert batch.columns["tags"] == [["a", "b", "c"], None, [], ["a"], None]
    [batch] = read_bytes(b"tags\tn\na | b\t1\n", "tsv", columns={"tags": "labels", "n": "any"}, label_separator=" | ")
    assert batch.columns == {"tags": [["a", "b"]], "n": ["1"]}
    reading = read_bytes(b"tags\na b\n", "csv", columns={"tags": "labels"}, label_separator="; ")
    assert [rows.columns for rows in reading.asking({"tags": "any"})] == [{"tags": ["a b"]}]
    [batch] = read_bytes(b"tags\na  b\n", "csv", columns={"tags": "labels"}, label_separator=" ")
    assert batch.columns["tags"] == [["a", "b"]]
    reading = read_bytes(b"tags\na\n", "csv", columns=["tags"])
    with pytest.raises(ValueError, match="give label_separator"):
        reading.asking({"tags": "labels"})
    for options, message in (
        ({"columns": {"tags": "labels"}, "label_separator": ""}, "label_separator must be text of one line"),
        ({"columns": {"tags": "labels"}, "label_separator": "\n"}, "label_separator must be text of one line"),
        ({"columns": ["tags"], "label_separator": ";"}, "no column is asked for as 'labels'"),
        ({"columns": {"tags": "labels"}, "label_separator": ";", "format": "jsonl"}, "label_separator is for CSV and TSV"),
    ):
        with pytest.raises(ValueError, match=message):
            read(io.BytesIO(data), **{"format": "csv", **options})


def test_columns_of_parquet_types():
    table = pa.table(
        {
            "text": pa.array(["a", "b"]).dictionary_encode(),
            "large": pa.array(["a", None], pa.large_string()),
            "float": pa.array([1.5, float("nan")], pa.float32()),
            "yes": [True, None],
            "when": pa.array([0, 1], pa.timestamp("s")),
        }
    )
    data = parquet_bytes(table)
    texts, columns, lines = joined(read_bytes(data, "parquet", text="text", columns=["large", "float", "yes"]))
    assert (texts, lines) == (["a", "b"], [1, 2])
    assert columns == {"large": ["a", None], "float": [1.5, None], "yes": [True, None]}
    assert "the column 'when' holds timestamp[ms]" in damage(data, "parquet", columns=["when"])
    assert "the column 'float' holds float, expected text" in damage(data, "parquet", text="float")
    assert "the column 'large' holds large_string, expected number" in damage(data, "parquet", columns={"large": "number"})
    assert fault(data, "parquet", text="large") == (2, None, "in column 'large': found nothing, expected text")


def test_batches_are_bounded():
    table = [{"text": "x" * 1000, "stars": 1}] * 50
    for format, data in (("csv", csv_bytes(table)), ("jsonl", jsonl_bytes(table)), ("parquet", parquet_bytes(table))):
        assert [len(batch) for batch in read_bytes(data, format, text="text", batch_rows=20)] == [20, 20, 10]
        sizes = [len(batch) for batch in read_bytes(data, format, text="text", columns=["stars"], batch_bytes=5000)]
        assert sum(sizes) == 50
        assert max(sizes) <= (5 if format != "parquet" else 50)
    for name, data in (("svmlight", SVMLIGHT), ("uci", UCI), ("mtx", MTX)):
        batches = list(read_bytes(data, name, batch_rows=1))
        np.testing.assert_array_equal(sp.vstack([batch.counts for batch in batches]).toarray(), COUNTS)
        assert [batch.lines.tolist() for batch in batches] == [[1], [2], [3]]


def write_rows(path, format, n):
    text = "word " * 100
    with open(path, "wb") as file:
        if format == "csv":
            file.write(b"text\n")
            file.writelines(f'"{text}"\n'.encode() for _ in range(n))
        elif format == "jsonl":
            file.writelines(json.dumps({"text": text}).encode() + b"\n" for _ in range(n))
        elif format == "parquet":
            pq.write_table(pa.table({"text": [text + str(number) for number in range(n)]}), file, use_dictionary=False)
        elif format == "svmlight":
            file.writelines(b"1 " + b" ".join(b"%d:1" % word for word in range(1, 60)) + b"\n" for _ in range(n))
        else:
            file.write(b"%d\n50\n%d\n" % (n, 50 * n))
            file.writelines(b"".join(b"%d %d 1\n" % (doc, word) for word in range(1, 51)) for doc in range(1, n + 1))


@pytest.mark.parametrize("format", ["csv", "jsonl", "svmlight", "uci", "parquet"])
def test_memory_does_not_grow_with_the_file(format, tmp_path):
    peaks = []
    for n in (4000, 12_000):
        write_rows(tmp_path / "data", format, n)
        text = "text" if format in ("csv", "jsonl", "parquet") else None
        reading = read(tmp_path / "data", format=format, text=text, batch_rows=500, batch_bytes=1 << 19)
        tracemalloc.start()
        assert sum(len(batch) for batch in reading) == n
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0]
    assert peaks[1] < 32 << 20


CSV_FAULTS = [
    (b"text,stars\na,1\nb\nc,2\n", 3, 1, "found 1 fields, expected 2"),
    (b"text,stars\na,1\nb,2,3\n", 3, 5, "found 3 fields, expected 2"),
    (b'text,stars\n"a\nb",x\n', 3, 4, "in column 'stars': found the text 'x', expected a finite number"),
    (b"text,stars\na,nan\n", 2, 3, "in column 'stars': found the text 'nan', expected a finite number"),
    (b"text,stars\na,1e999\n", 2, 3, "in column 'stars': found the text '1e999', expected a finite number"),
    (b"text,stars\na,1_0\n", 2, 3, "in column 'stars': found the text '1_0', expected a finite number"),
    (b'text,stars\na,1\n"b,2\nc,3\n', 3, 1, "found a quote that is never closed"),
    (b'text,stars\na,1\n"b"x,2\nc,3\n', 3, 4, "found 'x' after a closing quote, expected ',' or the end of the row"),
    (b"text,stars\na,1\rb,2\nc,3\n", 2, 4, "found a line end of one carriage return, expected a line feed as well"),
    (b"text,stars\n\xc3\xa9\xff,1\n", 2, 2, "found 0xff (byte 13 of the file), which is not UTF-8: invalid start byte; save the"),
    (b'text,stars\n"a\n\xc3\xa9\xe9",1\nb,2\n', 3, 2, "found 0xe9 (byte 16 of the file), which is not UTF-8"),
    (b"text,stars\na\0,1\n", 2, 2, "found a NUL byte (byte 12 of the file), expected text"),
]


@pytest.mark.parametrize(("data", "line", "column", "reason"), CSV_FAULTS)
def test_csv_faults(data, line, column, reason):
    found = fault(data, "csv", **TEXT)
    assert found[:2] == (line, column)
    assert found[2].startswith(reason)


def test_rows_after_a_fault_are_read():
    data = b'text,stars\n"a\n\xff",1\nb,1\n"c,2\nlost,3\ne,"4"x\nf,5,6\ng,7\n"h,8\ni,9\n'
    reading = read_bytes(data, "csv", bad_rows="skip", **TEXT)
    with pytest.warns(UserWarning, match="4 bad rows skipped, 3 read"):
        assert joined(reading) == (["b", "g", "i"], {"stars": [1.0, 7.0, 9.0]}, [4, 9, 11])
    assert [reason.split(": ")[0] for reason in reading.skipped.reasons] == [
        "stream:3:1",
        "stream:7:4",
        "stream:8:5",
        "stream:10:1",
    ]
    assert "after a closing quote (opened 2 lines before)" in reading.skipped.reasons[1]


def test_lines_after_an_unclosed_quote_keep_their_faults():
    reading = read_bytes(b'text,stars\n"a,1\nb\xff,2\nc,3\n', "csv", bad_rows="skip", **TEXT)
    with pytest.warns(UserWarning, match="2 bad rows skipped, 1 read"):
        assert joined(reading)[0] == ["c"]
    assert "stream:3:2: found 0xff (byte 17 of the file)" in reading.skipped.reasons[1]


def test_unclosed_quotes_take_linear_time():
    """Each line closes a quote and opens another, whether the line before did or not."""
    reading = read_bytes(b'text,stars\n"a\n' + b'x","y\n' * 30_000, "csv", bad_rows="skip", **TEXT)
    with pytest.warns(UserWarning, match="bad rows skipped, 0 read"):
        assert list(reading) == []


def test_faults_are_found_at_any_place_of_a_block(monkeypatch):
    """Rows read line by line and rows read a block at a time are the same rows."""
    lines = [b'%d,"text\n%d"\n' % (number, number) for number in range(200)]
    for number in (3, 50, 51, 120):
        lines[number] = b'%d,"bad\n"%d\n' % (number, number)
    data = b"stars,text\n" + b"".join(lines)
    found = []
    for size in (1, 64, 1000, 1 << 20):
        monkeypatch.setattr(delimited, "BLOCK", size)
        reading = read_bytes(data, "csv", bad_rows="skip", **TEXT)
        with pytest.warns(UserWarning, match="4 bad rows skipped, 196 read"):
            found.append((joined(reading), reading.skipped.reasons))
    assert all(other == found[0] for other in found)
    assert found[0][0][2] == [2 + 2 * number for number in range(200) if number not in (3, 50, 51, 120)]


def test_csv_headers():
    assert joined(read_bytes(b"\xef\xbb\xbftext,stars\r\na,1\r\n\r\nb,\r\n", "csv", **TEXT)) == (
        ["a", "b"],
        {"stars": [1.0, None]},
        [2, 4],
    )
    assert joined(read_bytes(b"text,stars", "csv", **TEXT)) == ([], {"stars": []}, [])
    assert damage(b"", "csv", **TEXT) == "the file is empty, expected a line with the names of the columns"
    assert damage(b"text,text,stars\n", "csv", **TEXT) == "the columns [1, 2] are all named 'text', expected one"
    assert joined(read_bytes(b"text,x,x,stars\na,,,1\n", "csv", **TEXT))[0] == ["a"]
    assert "UTF-16" in damage("text,stars\n".encode("utf-16"), "csv", **TEXT)
    assert damage("text,stars\n".encode("utf-16"), "csv", **TEXT).endswith("iconv -f utf-16 -t utf-8")
    assert damage("naïve,stars\n".encode("cp1252"), "csv", **TEXT).endswith("as UTF-8, for example: iconv -f cp1252 -t utf-8")
    assert damage(b'text,"sta"rs\n', "csv", **TEXT).startswith(
        "line 1, column 11, in the names of the columns: found 'r' after a"
    )
    assert damage(b"text,\xff\n", "csv", **TEXT).startswith("line 1, column 6, in the names of the columns: found 0xff")


def test_quotes_and_delimiters():
    assert joined(read_bytes(b'text;stars\n"a;b";1\n', "csv", delimiter=";", **TEXT))[0] == ["a;b"]
    assert joined(read_bytes(b'text\tstars\n"a\t1\n5" b\t2\n', "tsv", quote=None, **TEXT))[0] == ['"a', '5" b']
    assert joined(read_bytes(b'text\tstars\n5" b\t2\n', "tsv", **TEXT))[0] == ['5" b']


def test_long_fields(monkeypatch):
    long = b"x" * 1_000_000
    assert joined(read_bytes(b"text\n" + long + b"\n", "csv", text="text"))[0] == [long.decode()]
    for module in (delimited, streams):
        monkeypatch.setattr(module, "LONGEST_ROW", 1000)
    monkeypatch.setattr("mirrorlda.readers.formats.jsonlines.LONGEST_ROW", 1000)
    monkeypatch.setattr(delimited, "BLOCK", 500)
    short = b"".join(b"%d,y\n" % number for number in range(500))
    reading = read_bytes(b"stars,text\n1,a\n2," + b"x" * 1500 + b'\n3,"c\n' + short, "csv", bad_rows="skip", **TEXT)
    with pytest.warns(UserWarning, match="2 bad rows skipped, 501 read"):
        assert joined(reading)[0] == ["a", *["y"] * 500]
    assert "stream:3:1: found a row of more than 1000 bytes" in reading.skipped.reasons[0]
    assert "stream:4:3: found a quote that is never closed" in reading.skipped.reasons[1]
    line, _, reason = fault(b'{"text": "a"}\n{"text": "' + b"x" * 1500 + b'"}\n{"text": "b"}\n', "jsonl", text="text")
    assert (line, reason) == (2, "found a row of more than 1000 bytes, expected at most so many")


JSON_FAULTS = [
    (b'{"text": "a", "stars": 1}\n{"text": "b", "stars": }\n', 2, 24, "found what is not JSON: Expecting value"),
    (b'{"text": "a"', 1, 13, "found what is not JSON: Expecting ',' delimiter"),
    (b"[1, 2]\n", 1, 1, "found a list [1, 2], expected an object on each line"),
    (b"3\n", 1, 1, "found the number 3, expected an object on each line"),
    (b'{"stars": 1, "text": 5}\n', 1, 22, "in 'text': found the number 5, expected text"),
    (b'{"text": null, "stars": 1}\n', 1, 10, "in 'text': found nothing, expected text"),
    (
        b'{"txt": "a", "stars": 1}\n',
        1,
        1,
        "in 'text': found nothing, expected text (no column 'text'; there are 'txt', 'stars'; did you",
    ),
    (b'{"text": "a", "stars": "4"}\n', 1, 24, "in 'stars': found the text '4', expected a finite number"),
    (b'{"text": "a", "stars": true}\n', 1, 24, "in 'stars': found a boolean True, expected a finite number"),
    (b'{"text": "a", "stars": [1]}\n', 1, 24, "in 'stars': found a list [1], expected a finite number"),
    (b'{"text": "a", "stars": {}}\n', 1, 24, "in 'stars': found an object, expected a finite number"),
    (b'{"text": "a", "stars": NaN}\n', 1, 1, "found NaN, which JSON does not have"),
    (b'{"text": "a", "stars": 1e999}\n', 1, 24, "in 'stars': found the number inf, expected a finite number"),
    (
        b'{"text": "a", "stars": ' + b"9" * 400 + b"}\n",
        1,
        24,
        "in 'stars': found the number too large to show, expected a finite",
    ),
    (b'{"text": "a", "stars": ' + b"9" * 9999 + b"}\n", 1, 1, "found a number of too many digits"),
    (b'{"text": "a", "x": ' + b"[" * 100_000 + b"\n", 1, 1, "found JSON nested too deeply"),
    (b'{"text": "\\ud800", "stars": 1}\n', 1, 10, "in 'text': found half of a surrogate pair, '\\ud800', expected Unicode text"),
    (b'{"text": "\xc3\xa9\xff"}\n', 1, 12, "found 0xff (byte 12 of the file), which is not UTF-8: invalid start byte"),
    (b'{"text": "a\0"}\n', 1, 12, "found a NUL byte (byte 11 of the file), expected text"),
]


@pytest.mark.parametrize(("data", "line", "column", "reason"), JSON_FAULTS)
def test_json_faults(data, line, column, reason):
    found = fault(data + b'\n{"text": "fine", "stars": 2}\n', "jsonl", **TEXT)
    assert found[:2] == (line, column)
    assert found[2].startswith(reason)


def test_json_lines_may_be_blank_and_begin_with_a_mark():
    data = b'\xef\xbb\xbf{"text": "a"}\r\n\r\n  \n{"text": "b", "text": "c"}'
    assert joined(read_bytes(data, "jsonl", text="text")) == (["a", "c"], {}, [1, 4])
    assert list(read_bytes(b"", "jsonl", text="text")) == []


@pytest.mark.parametrize("format", ["csv", "jsonl", "svmlight", "uci", "mtx", "parquet"])
@pytest.mark.parametrize("compression", [".gz", ".zst"])
def test_compressed_data_cut_short(format, compression):
    rng = np.random.default_rng(0)
    names = [str(number) for number in rng.integers(10**9, size=5000)]
    if format in ("csv", "jsonl", "parquet"):
        make = {"csv": csv_bytes, "jsonl": jsonl_bytes, "parquet": parquet_bytes}[format]
        data, options = make([{"text": name} for name in names]), {"text": "text"}
    else:
        header = {"svmlight": "", "uci": "5000\n9\n5000\n", "mtx": "%%MatrixMarket matrix coordinate real general\n5000 9 5000\n"}
        entry = "{1} 1:{1}\n" if format == "svmlight" else "{0} 1 {1}\n"
        data = (header[format] + "".join(entry.format(*pair) for pair in enumerate(names, 1))).encode()
        options = {}
    packed = COMPRESSIONS[compression](data)
    assert sum(len(batch) for batch in read_bytes(packed, format, **options)) == 5000
    for length in (len(packed) // 2, len(packed) - 4):
        reason = damage(packed[:length], format, **options)
        assert reason.startswith("compressed data cut short or damaged after ")
        assert reason.endswith("Truncated compressed stream")
    if compression == ".gz":
        altered = bytearray(packed)
        altered[-6] ^= 1
        assert "incorrect data check" in damage(bytes(altered), format, **options)


def test_rows_before_the_cut_are_counted():
    numbers = np.random.default_rng(0).integers(10**9, size=20_000)
    packed = gzip.compress(jsonl_bytes([{"text": str(number)} for number in numbers]))
    reason = damage(packed[:-1000], "jsonl", text="text")
    assert 10_000 < int(re.search("after (.*) rows", reason)[1]) < 20_000


def test_damaged_parquet():
    data = parquet_bytes([{"text": f"text {number}", "stars": number} for number in range(1000)])
    for cut in (0, 3, 100, len(data) // 2, len(data) - 1):
        assert damage(data[:cut], "parquet", text="text").startswith("not Parquet, cut short or damaged, after 0 rows")
    binary = pa.array([b"a", b"\xff\xfe", b"c"]).view(pa.string())
    data = parquet_bytes(pa.table({"text": binary}))
    assert fault(data, "parquet", text="text")[0::2] == (
        2,
        "in column 'text': found text that is not UTF-8 at byte 0 of it: invalid start byte",
    )


SVMLIGHT_FAULTS = [
    (b"1 2:1 1:1\n", 1, 7, "found the index 1 after 2, expected indices that ascend"),
    (b"1 1:1\n1 2:1 2:1\n", 2, 7, "found the index 2 after 2, expected indices that ascend"),
    (b"1 -1:1\n", 1, 3, "found '-1:1', expected index:count with an index from 0 to"),
    (b"1 1.5:1\n", 1, 3, "found '1.5:1', expected index:count"),
    (b"1 1e1:1\n", 1, 3, "found '1e1:1', expected index:count"),
    (b"1 1\n", 1, 3, "found '1', expected index:count"),
    (b"1 1:1:1\n", 1, 3, "found the count '1:1', expected a number from 0 to 1e+12"),
    (b"1 1:-2\n", 1, 3, "found the count '-2', expected a number from 0 to 1e+12"),
    (b"1 1:nan\n", 1, 3, "found the count 'nan'"),
    (b"1 1:inf\n", 1, 3, "found the count 'inf'"),
    (b"1 1:1e13\n", 1, 3, "found the count '1e13'"),
    (b"1 1:0x10\n", 1, 3, "found the count '0x10'"),
    (b"1 1:\n", 1, 3, "found the count ''"),
    (b"1 99999999999999999999:1\n", 1, 3, "found '99999999999999999999:1', expected index:count"),
    (b"1 3000000000:1\n", 1, 3, "found the index 3000000000, expected one from 0 to"),
    (b"good 1:1\n", 1, 1, "found the label 'good', expected a finite number"),
    (b"nan 1:1\n", 1, 1, "found the label 'nan', expected a finite number"),
    (b"1:1\n", 1, 1, "found 0 labels, expected one"),
    (b"1,2 1:1\n", 1, 1, "found 2 labels, expected one"),
    (b"1 1:\xff\n", 1, 3, "found the count"),
    (b"1 1:\0\n", 1, 3, "found the count"),
]


@pytest.mark.parametrize(("data", "line", "column", "reason"), SVMLIGHT_FAULTS)
def test_svmlight_faults(data, line, column, reason):
    found = fault(data + b"2 1:1\n", "svmlight", columns={"label": "number"})
    assert found[:2] == (line, column)
    assert found[2].startswith(reason)


def test_svmlight_forms():
    data = b"# a comment\n+1 qid:3 1:2  3:1 # doc\r\n\n-1\t2:1e0 \n"
    [batch] = read_bytes(data, "svmlight", columns=["label"])
    assert batch.counts.toarray().tolist() == [[2, 0, 1], [0, 1, 0]]
    assert (batch.columns, batch.lines.tolist()) == ({"label": [1.0, -1.0]}, [2, 4])
    [batch] = read_bytes(b"1,3 1:2\n2:1\n2 1:1\n", "svmlight", columns={"label": "labels"})
    assert batch.columns == {"label": [[1.0, 3.0], [], [2.0]]}


def test_svmlight_first_index():
    data = b"1 1:2 3:1\n"
    assert next(iter(read_bytes(data, "svmlight"))).counts.toarray().tolist() == [[2, 0, 1]]
    assert next(iter(read_bytes(data, "svmlight", zero_based=True))).counts.toarray().tolist() == [[0, 2, 0, 1]]
    assert next(iter(read_bytes(b"1 0:1\n" + data, "svmlight"))).counts.shape == (2, 4)
    assert next(iter(read_bytes(data, "svmlight", n_words=5))).counts.shape == (1, 5)
    assert fault(data + b"1 1:1\n", "svmlight", n_words=2)[:2] == (1, 7)
    assert fault(b"1 0:1\n" + data, "svmlight", zero_based=False)[:2] == (1, 3)
    [batch] = read_bytes(b"1\n2\n", "svmlight")
    assert batch.counts.shape[0] == 2
    with pytest.raises(BadFileError, match="read once only: give n_words and zero_based"):
        list(read(Pipe(data), format="svmlight", n_words=3))
    reading = read(Pipe(data), format="svmlight", n_words=3, zero_based=False)
    assert next(iter(reading)).counts.toarray().tolist() == [[2, 0, 1]]


ENTRY_FAULTS = [
    (b"1 1 2\n1 x 1\n3 2 1\n3 4 3\n", 2, 3, "found word 'x', expected a whole number from 1 to 4"),
    (b"1 1 2\n1 5 1\n3 2 1\n3 4 3\n", 2, 3, "found word '5', expected a whole number from 1 to 4"),
    (b"1 1 2\n1 0 1\n3 2 1\n3 4 3\n", 2, 3, "found word '0', expected a whole number from 1 to 4"),
    (b"1 1 2\n1 -1 1\n3 2 1\n3 4 3\n", 2, 3, "found word '-1', expected a whole number from 1 to 4"),
    (b"1 1 2\n1 3 1\n3 2 1\n4 4 3\n", 4, 1, "found document '4', expected a whole number from 1 to 3"),
    (b"1 1 2\n1 3 -1\n3 2 1\n3 4 3\n", 2, 5, "found the count '-1', expected a number from 0 to 1e+12"),
    (b"1 1 2\n1 3 nan\n3 2 1\n3 4 3\n", 2, 5, "found the count 'nan'"),
    (b"1 1 2\n1 3 inf\n3 2 1\n3 4 3\n", 2, 5, "found the count 'inf'"),
    (b"1 1 2\n1 3\n3 2 1\n3 4 3\n", 2, 3, "found 2 fields, expected 3"),
    (b"1 1 2\n1 3 1 7\n3 2 1\n3 4 3\n", 2, 7, "found 4 fields, expected 3"),
    (b"1 1 2\n1 1 1\n3 2 1\n3 4 3\n", 2, 1, "found the word 1 a second time in document 1, expected each once"),
    (b"1 1 2\n1 3 1\n3 \xff 1\n3 4 3\n", 3, 3, "found word"),
    (b"1 1 2\n1 3 1\n3 0x2 1\n3 4 3\n", 3, 3, "found word '0x2'"),
]


@pytest.mark.parametrize("format", ["uci", "mtx"])
@pytest.mark.parametrize(("entries", "line", "column", "reason"), ENTRY_FAULTS)
def test_entry_faults(format, entries, line, column, reason):
    header = b"3\n4\n4\n" if format == "uci" else b"%%MatrixMarket matrix coordinate real general\n%\n3 4 4\n"
    found = fault(header + entries, format)
    assert found[:2] == (line + 3, column)
    assert found[2].startswith(reason)


def test_a_document_with_a_bad_entry_is_skipped_whole():
    data = b"3\n4\n5\n1 1 2\n2 3 x\n2 2 1\n2 9 1\n3 4 3\n"
    reading = read_bytes(data, "uci", bad_rows="skip")
    with pytest.warns(UserWarning, match="1 bad rows skipped, 2 read"):
        [batch] = reading
    assert batch.lines.tolist() == [1, 3]
    assert batch.counts.toarray().tolist() == [[2, 0, 0, 0], [0, 0, 0, 3]]


def test_entries_in_other_forms():
    expected = COUNTS.tolist()
    unsorted = b"3\n4\n4\n1 3 1\n1 1 2\n\n3   4\t3\n 3 2 .5"
    assert next(iter(read_bytes(unsorted, "uci"))).counts.toarray().tolist() == expected
    assert next(iter(read_bytes(unsorted.replace(b"\n", b"\r\n"), "uci"))).counts.toarray().tolist() == expected
    pattern = b"%%MatrixMarket MATRIX coordinate pattern general\n2 2 2\n1 2\n2 1\n"
    assert next(iter(read_bytes(pattern, "mtx"))).counts.toarray().tolist() == [[0, 1], [1, 0]]
    zeros = b"1\n2\n2\n1 1 0\n1 2 1e-60\n"
    assert next(iter(read_bytes(zeros, "uci"))).counts.nnz == 0


UCI_DAMAGE = [
    (b"", "the file ends before line 1, expected the number of documents"),
    (b"3\n4\n", "the file ends before line 3, expected the number of entries"),
    (b"3\nx\n4\n", "line 3: found 'x', expected a whole number"),
    (b"3\n4\n5\n1 1 2\n1 3 1\n3 2 1\n3 4 3\n", "found 4 entries, expected 5 as its header says"),
    (b"3\n4\n3\n1 1 2\n1 3 1\n3 2 1\n3 4 3\n", "found more entries than the 3 that its header says"),
    (b"3\n4\n2\n3 1 2\n1 3 1\n", "line 5: found document 1 after 3, expected entries in the order of documents: sort its lines"),
    (b"3\n4\n1000000000000000\n1 1 2\n", "which is more entries than documents times words"),
    (b"1000000000000000\n4\n1\n1 1 2\n", "expected at most 2147483647 documents and words"),
    (b"2000000000\n4\n1\n1 1 2\n", "which leaves nearly all documents empty"),
    (b"2000000000\n2000000000\n1000000000000000\n1 1 2\n", "found 1 entries, expected 1000000000000000 as its header says"),
    (b"9" * 5000 + b"\n4\n1\n", "expected a whole number"),
]


@pytest.mark.parametrize(("data", "reason"), UCI_DAMAGE)
def test_uci_headers_that_cannot_be(data, reason):
    assert reason in damage(data, "uci")


MTX_DAMAGE = [
    (b"", "the file ends before line 1, expected %%MatrixMarket"),
    (b"3 4 4\n", "the first line does not begin with %%MatrixMarket"),
    (
        b"%%MatrixMarket matrix array real general\n",
        "found 'matrix array real general', expected 'matrix coordinate real|integer|pattern general'",
    ),
    (b"%%MatrixMarket matrix coordinate complex general\n", "found 'matrix coordinate complex general'"),
    (b"%%MatrixMarket matrix coordinate real symmetric\n", "found 'matrix coordinate real symmetric'"),
    (b"%%MatrixMarket matrix coordinate\n", "found 'matrix coordinate'"),
    (b"%%MatrixMarket matrix coordinate real general\n% x\n", "the file ends before line 3, expected sizes"),
    (
        b"%%MatrixMarket matrix coordinate real general\n3 4\n",
        "line 2: found '3 4', expected 3 whole numbers: documents, words, entries",
    ),
    (b"%%MatrixMarket matrix coordinate real general\n3 4 -1\n", "line 2: found '3 4 -1', expected 3 whole numbers"),
    (b"%%MatrixMarket matrix coordinate real general\n3 4 2\n1 1 1\n", "found 1 entries, expected 2 as its header says"),
]


@pytest.mark.parametrize(("data", "reason"), MTX_DAMAGE)
def test_mtx_headers_that_cannot_be(data, reason):
    assert reason in damage(data, "mtx")


def test_a_matrix_in_the_order_of_words_is_refused_with_a_remedy_that_works(tmp_path):
    X = sp.csr_array(np.array([[1.0, 2, 0], [0, 3, 4], [5, 0, 6]]))
    name = tmp_path / "data.mtx"
    scipy.io.mmwrite(name, X.tocsc())
    with pytest.raises(BadFileError, match=r"found document 1 after 3, .*: write it anew with") as caught:
        list(read(name))
    remedy = caught.value.reason.partition("write it anew with ")[2]
    exec(remedy, {"scipy": scipy, "name": name})
    [rows] = read(name)
    assert rows.counts.toarray().tolist() == X.toarray().tolist()


def test_words_must_agree(tmp_path):
    (tmp_path / "docword.a.txt").write_bytes(UCI)
    (tmp_path / "docword.b.txt").write_bytes(b"1\n5\n0\n")
    (tmp_path / "words.txt").write_text("one\ntwo\n")
    with pytest.raises(BadFileError, match=r"docword.b.txt: found 5 words, expected 4"):
        list(read(tmp_path / "docword.*.txt"))
    with pytest.raises(BadFileError, match=r"docword.a.txt: found 4 words, expected 2"):
        list(read(tmp_path / "docword.a.txt", words=tmp_path / "words.txt"))
    assert read(tmp_path / "docword.a.txt").words is None


WRONG_CALLS = [
    ({"format": "xml"}, "format must be one of"),
    ({"bad_rows": "ignore"}, "bad_rows must be 'error' or 'skip'"),
    ({"batch_rows": 0}, "batch_rows and batch_bytes must be at least 1"),
    ({"columns": {"a": "float"}}, r"the column 'a' must be one of \['any', 'number'"),
    ({"text": None}, "neither text nor columns are given"),
    ({"columns": ["t"]}, "asked for as text and among columns"),
    ({"delimiter": ",,"}, "delimiter must be one character"),
    ({"format": "uci"}, "holds counts, so that text must be None"),
]


@pytest.mark.parametrize(("options", "message"), WRONG_CALLS)
def test_wrong_calls(options, message):
    with pytest.raises(ValueError, match=message):
        read(io.BytesIO(b"t\na\n"), **{"text": "t", "format": "csv", **options})


unicode = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
stars = st.none() | st.floats(allow_nan=False, allow_infinity=False)


@settings(deadline=None, max_examples=150)
@given(table=st.lists(st.tuples(unicode, stars), min_size=1), batch_rows=st.integers(1, 4), delimiter=st.sampled_from(",\t;"))
def test_what_python_writes_comes_back(table, batch_rows, delimiter):
    records = [{"text": text, "stars": number} for text, number in table]
    files = {"csv": csv_bytes(records, delimiter), "jsonl": jsonl_bytes(records)}
    for format, data in files.items():
        texts, columns, _ = joined(read_bytes(data, format, batch_rows=batch_rows, delimiter=delimiter, **TEXT))
        assert texts == [text for text, _ in table]
        assert columns["stars"] == [number for _, number in table]


MUTATED = {
    "csv": (TEXT_FILES["csv"], TEXT),
    "jsonl": (TEXT_FILES["jsonl"], TEXT),
    "parquet": (TEXT_FILES["parquet"], TEXT),
    "svmlight": (SVMLIGHT, {"columns": ["label"]}),
    "uci": (UCI, {}),
    "mtx": (MTX, {}),
}


def mutant(data, rng):
    altered = bytearray(data)
    for _ in range(rng.integers(1, 4) if altered else 0):
        place = int(rng.integers(len(altered) + 1))
        kind = rng.integers(4)
        if kind == 0:
            altered[place : place + 1] = rng.bytes(1)
        elif kind == 1:
            altered[place:place] = bytes(rng.choice(list(b'0919-".:,\n\r \0{}[e\xff'), size=rng.integers(1, 6)).astype(np.uint8))
        elif kind == 2:
            del altered[place : place + int(rng.integers(1, 9))]
        else:
            del altered[place:]
    return bytes(altered)


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("format", MUTATED)
def test_mutated_files_give_rows_or_documented_errors(format, compression):
    data, options = MUTATED[format]
    packed = COMPRESSIONS[compression](data)
    rng = np.random.default_rng([len(data), len(packed)])
    n_errors = 0
    for number in range(24):
        altered = mutant(packed, rng)
        columns = {"columns": "all"} if number % 3 == 0 else {}
        reading = read_bytes(altered, format, bad_rows="skip" if number % 2 else "error", batch_rows=2, **options | columns)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for batch in reading:
                    assert isinstance(batch, rows.Rows)
                    write_table(io.BytesIO(), [batch.columns], format="jsonl")
                    if batch.counts is not None:
                        assert np.isfinite(batch.counts.data).all()
                        batch.counts.check_format()
        except BadFileError:
            n_errors += 1
    assert n_errors > 0
