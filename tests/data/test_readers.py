"""Files in: every format plain and compressed, from files and streams, whole and damaged."""

import gzip
import io
import json
import re
import tracemalloc
import warnings
from datetime import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from mirrorlda.readers import BadFileError, read, rows, streams
from mirrorlda.readers.formats import delimited
from mirrorlda.tables import write_table
from reading import (
    COMPRESSIONS,
    COUNTS,
    MTX,
    SVMLIGHT,
    TEXT,
    UCI,
    Pipe,
    csv_bytes,
    damage,
    fault,
    joined,
    jsonl_bytes,
    parquet_bytes,
    read_bytes,
)

TEXT_ROWS = [
    {"id": "a", "text": 'Clean, "quiet".\nTwice.', "stars": 4.0},
    {"id": "b", "text": "", "stars": None},
    {"id": "c", "text": "Schön \u2028 \U0001f600\r", "stars": -1.5},
]
TEXT_FILES = {
    "csv": csv_bytes(TEXT_ROWS),
    "tsv": csv_bytes(TEXT_ROWS, "\t"),
    "jsonl": jsonl_bytes(TEXT_ROWS),
    "parquet": parquet_bytes(TEXT_ROWS),
}
COUNT_FILES = {"data.svm": SVMLIGHT, "docword.data.txt": UCI, "data.mtx": MTX}


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
