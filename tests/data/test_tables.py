"""Tables out: what was written comes back, and nothing half-written appears."""

import csv
import gzip
import io
import json
import stat
import tracemalloc
from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mirrorlda.readers import read
from mirrorlda.tables import TableWriter, write_table

from mirrorlda import tables

TEXTS = ["a", None, "", 'quo"te', "two\nlines, comma\ttab\r", "\U0001f600 é", " x "]
NUMBERS = [1.5, None, -0.0, 1e-300, 1e300, 0.1, 3.0]
ENDINGS = ["csv", "csv.gz", "csv.zst", "tsv", "tsv.gz", "tsv.zst", "jsonl", "jsonl.gz", "jsonl.zst", "ndjson", "parquet"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_tables_come_back(tmp_path, ending):
    path = tmp_path / f"table.{ending}"
    batches = [{"text": TEXTS[:3], "number": NUMBERS[:3]}, {"text": [], "number": []}, {"text": TEXTS[3:], "number": NUMBERS[3:]}]
    assert write_table(path, batches) == 7
    [rows] = read(path, columns={"text": "any", "number": "number"})
    # CSV and TSV tell an empty text from a missing one by its quotes, which readers of CSV do not look at.
    texts = [text or None for text in TEXTS] if ending[1] == "s" and ending[0] in "ct" else TEXTS
    assert rows.columns == {"text": texts, "number": NUMBERS}
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_python_reads_what_was_written(tmp_path):
    lists = [["a", "b"], None, [], ["c"], ["d"], ["e"], ['"']]
    columns = {"t,1": TEXTS, "n": np.arange(7), "l": lists, "b": [True, None] * 3 + [False]}
    write_table(tmp_path / "table.csv", [columns])
    with open(tmp_path / "table.csv", newline="") as file:
        found = list(csv.DictReader(file))
    assert [row["t,1"] for row in found] == [text or "" for text in TEXTS]
    assert [row["l"] and json.loads(row["l"]) for row in found] == [value if value is not None else "" for value in columns["l"]]
    write_table(tmp_path / "table.jsonl.gz", [columns])
    with gzip.open(tmp_path / "table.jsonl.gz", "rt") as file:
        found = [json.loads(line) for line in file]
    assert {name: [row[name] for row in found] for name in columns} == {**columns, "n": list(range(7))}


def test_floats_have_the_digits_of_their_precision(tmp_path):
    values = np.array([0.1, 1 / 3, np.nan, 1e-8], np.float32)
    write_table(tmp_path / "table.csv", [{"p": values}])
    assert (tmp_path / "table.csv").read_text() == '"p"\n0.1\n0.33333334\n\n1e-8\n'
    write_table(tmp_path / "table.jsonl", [{"p": values}, {"p": np.array([np.inf], np.float32)}])
    lines = (tmp_path / "table.jsonl").read_text().splitlines()
    assert lines == ['{"p": 0.1}', '{"p": 0.33333334}', '{"p": null}', '{"p": 1e-8}', '{"p": null}']


text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")) | st.none()


@given(table=st.lists(st.tuples(text, st.none() | st.floats(allow_nan=False, allow_infinity=False)), min_size=1))
def test_any_text_comes_back_from_json_lines(table):
    file = io.BytesIO()
    columns = {"text": [text for text, _ in table], "number": [number for _, number in table]}
    write_table(file, [columns], format="jsonl")
    assert [json.loads(line) for line in file.getvalue().splitlines()] == [{"text": t, "number": n} for t, n in table]


@pytest.mark.parametrize("ending", ["csv", "jsonl.gz", "csv.zst", "parquet"])
def test_an_error_leaves_what_was_there(tmp_path, ending):
    path = tmp_path / f"table.{ending}"
    path.write_text("before")

    def batches():
        yield {"a": [1]}
        assert path.read_text() == "before"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_table(path, batches())
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]
    write_table(path, [{"a": [1]}])
    assert next(iter(read(path, columns=["a"]))).columns["a"] in ([1], ["1"])


def test_a_disk_that_is_full_leaves_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_table(tmp_path / "table.csv", [{"a": [1]}])
    assert list(tmp_path.iterdir()) == []


def test_a_table_has_the_permissions_of_any_file(tmp_path):
    write_table(tmp_path / "table.csv", [{"a": [1]}])
    (tmp_path / "other").touch()
    assert stat.S_IMODE((tmp_path / "table.csv").stat().st_mode) == stat.S_IMODE((tmp_path / "other").stat().st_mode)


@pytest.mark.parametrize("ending", ["csv", "jsonl.gz", "csv.zst", "parquet"])
def test_a_table_replaces_what_a_link_leads_to_and_keeps_its_permissions(tmp_path, ending):
    path, link = tmp_path / "there", tmp_path / f"table.{ending}"
    path.touch()
    path.chmod(0o600)
    link.symlink_to(path)
    write_table(link, [{"a": ["x"]}])
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert next(iter(read(link, columns=["a"]))).columns["a"] == ["x"]


def test_what_cannot_be_written_to_is_known_before_the_first_batch(tmp_path):
    def batches():
        raise AssertionError("a batch was made")
        yield

    (tmp_path / "table.csv").mkdir()
    with pytest.raises(IsADirectoryError, match=r"table\.csv"):
        write_table(tmp_path / "table.csv", batches())


def test_a_table_without_batches(tmp_path):
    for ending in ("csv", "jsonl.gz", "parquet"):
        assert write_table(tmp_path / f"table.{ending}", []) == 0
    assert (tmp_path / "table.csv").read_bytes() == b""
    assert pq.read_table(tmp_path / "table.parquet").num_columns == 0


def test_streams(monkeypatch):
    file = io.BytesIO()
    write_table(file, [{"a": ["x"]}, {"a": ["y"]}], format="tsv")
    assert file.getvalue() == b'"a"\n"x"\n"y"\n'
    output = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr("sys.stdout", output)
    write_table("-", [{"a": [1]}], format="jsonl")
    assert output.buffer.getvalue() == b'{"a": 1}\n'


def test_parquet_types_stay_those_of_the_first_batch(tmp_path):
    path = tmp_path / "table.parquet"
    write_table(path, [{"a": [1.5], "l": [["x"]]}, {"a": [None], "l": [None]}, {"a": [2], "l": [[]]}])
    assert pq.read_table(path).to_pydict() == {"a": [1.5, None, 2.0], "l": [["x"], None, []]}
    with pytest.raises(ValueError, match=r"table.parquet: the column 'a' after row 1: .*; expected int64 as in rows before"):
        write_table(path, [{"a": [1]}, {"a": ["x"]}])
    assert pq.read_table(path).num_rows == 3


def test_parquet_types_are_those_of_the_first_values(tmp_path):
    path = tmp_path / "table.parquet"
    batches = [
        {"n": [None, None], "f": np.ones(2, np.float32), "l": [None, []], "t": ["x", None]},
        {"n": [], "f": [], "l": [], "t": []},
        {"n": [None], "f": [None], "l": [["a"]], "t": [None]},
        {"n": [2.5], "f": [0.5], "l": [None], "t": ["y"]},
        {"n": [None], "f": [1.0], "l": [[]], "t": [None]},
    ]
    assert write_table(path, batches) == 5
    found = pq.read_table(path)
    assert found.schema.types == [pa.float64(), pa.float32(), pa.list_(pa.string()), pa.string()]
    assert found.to_pydict() == {
        "n": [None, None, None, 2.5, None],
        "f": [1.0, 1.0, None, 0.5, 1.0],
        "l": [None, [], ["a"], None, []],
        "t": ["x", None, None, "y", None],
    }
    with pytest.raises(ValueError, match=r"table.parquet: .*; expected one type for each column"):
        write_table(path, [{"a": [[]]}, {"a": [1]}])


def test_columns_without_any_value_are_text(tmp_path):
    path = tmp_path / "table.parquet"
    write_table(path, [{"a": [None], "l": [[]]}, {"a": [None], "l": [None]}])
    found = pq.read_table(path)
    assert found.schema.types == [pa.string(), pa.list_(pa.string())]
    assert found.to_pydict() == {"a": [None, None], "l": [[], None]}


@pytest.mark.parametrize("bound", ["MOST_HELD_ROWS", "MOST_HELD_BYTES"])
def test_a_column_whose_values_come_too_late_is_text(tmp_path, monkeypatch, bound):
    monkeypatch.setattr(tables, bound, 4)
    path = tmp_path / "table.parquet"
    missing = {"n": [None] * 4, "id": ["a"] * 4}
    written = []

    class Recorded(pq.ParquetWriter):
        def write_table(self, table, *arguments, **options):
            written.append(len(table))
            super().write_table(table, *arguments, **options)

    monkeypatch.setattr(pq, "ParquetWriter", Recorded)

    def batches():
        yield missing
        # Written, not waiting.
        assert written == [4]
        yield {"n": np.array([1.5, np.nan, 2.0]), "id": ["b"] * 3}
        yield {"n": [True, None, "x"], "id": ["c"] * 3}

    with TableWriter(path) as writer:
        for batch in batches():
            writer.write(batch)
    assert pq.read_table(path).to_pydict()["n"] == [None] * 4 + ["1.5", None, "2.0", "true", None, "x"]


def test_a_batch_without_rows_settles_the_columns(tmp_path):
    columns = {"id": [], "p": np.zeros(0, np.float32)}
    for ending in ("csv", "tsv", "jsonl", "parquet"):
        assert write_table(tmp_path / f"table.{ending}", [columns]) == 0
    assert (tmp_path / "table.csv").read_text() == '"id","p"\n'
    assert (tmp_path / "table.tsv").read_text() == '"id"\t"p"\n'
    assert (tmp_path / "table.jsonl").read_text() == ""
    assert pq.read_table(tmp_path / "table.parquet").schema.names == ["id", "p"]


VALUES = [1, "x", None, True, 1.0, 2**70, [1, "x", {"k": [None]}], {"k": {"é": 1.5}}, {}]


def test_json_lines_take_any_json_value(tmp_path):
    path = tmp_path / "table.jsonl"
    assert write_table(path, [{"v": VALUES[:4]}, {"v": VALUES[4:]}]) == len(VALUES)
    found = [json.loads(line)["v"] for line in path.read_text().splitlines()]
    assert found == VALUES
    assert [type(value) for value in found] == [type(value) for value in VALUES]


def test_csv_writes_values_of_several_types_as_text(tmp_path):
    path = tmp_path / "table.csv"
    assert write_table(path, [{"id": range(6), "v": VALUES[:6]}, {"id": range(3), "v": VALUES[6:]}]) == len(VALUES)
    with open(path, newline="") as file:
        found = [row["v"] for row in csv.DictReader(file)]
    assert found[:6] == ["1", "x", "", "true", "1.0", str(2**70)]
    assert [json.loads(value) for value in found[6:]] == VALUES[6:]


TIMES = {
    "t": [datetime(2024, 2, 29, 12, 30, 0, 5), None],
    "d": [date(2024, 2, 29), None],
    "n": [Decimal("1.20"), Decimal("100.00")],
    "b": [b"\xff\0", None],
}
WRITTEN = {"t": ["2024-02-29T12:30:00.000005", None], "d": ["2024-02-29", None], "n": ["1.20", "100.00"], "b": ["/wA=", None]}


def test_dates_decimals_and_bytes(tmp_path):
    for ending in ("csv", "jsonl", "parquet"):
        write_table(tmp_path / f"table.{ending}", [TIMES])
    with open(tmp_path / "table.csv", newline="") as file:
        found = list(csv.DictReader(file))
    assert {name: [row[name] or None for row in found] for name in TIMES} == WRITTEN
    found = [json.loads(line) for line in (tmp_path / "table.jsonl").read_text().splitlines()]
    assert {name: [row[name] for row in found] for name in TIMES} == WRITTEN
    assert pq.read_table(tmp_path / "table.parquet").to_pydict() == TIMES


def test_parquet_does_not_lose_keys(tmp_path):
    path = tmp_path / "table.parquet"
    write_table(path, [{"a": [{"x": 1}, {"y": ["z"]}]}, {"a": [{"y": []}, None]}])
    assert pq.read_table(path).to_pydict()["a"] == [{"x": 1, "y": None}, {"x": None, "y": ["z"]}, {"x": None, "y": []}, None]
    for late in ({"x": 1, "new": 2}, {"deep": [{"b": 1}]}):
        with pytest.raises(ValueError, match=r"the column 'a' after row 1: found the key '(new|deep.b)'"):
            write_table(path, [{"a": [{"x": 1, "deep": [{"a": 1}]}]}, {"a": [late]}])
    with pytest.raises(ValueError, match=r"table\.parquet: .*no child field"):
        write_table(path, [{"a": [{}]}])
    assert pq.read_table(path).num_rows == 4


WRONG = [
    ([{"a": [1], "b": [1, 2]}], r"the columns have the lengths \{'a': 1, 'b': 2\}, expected one length"),
    ([{"a": [1]}, {"b": [1]}], r"found the columns \['b'\] after row 1, expected \['a'\]"),
    ([{"a": [object()]}], "the column 'a' after row 0: .*expected (one type|text, numbers)"),
    ([{"a": ["\ud800"]}], "the column 'a' after row 0: .*surrogates not allowed"),
    ([{"a": np.zeros((2, 2))}], r"the column 'a' has the shape \(2, 2\), expected one dimension"),
]


@pytest.mark.parametrize(("batches", "message"), WRONG)
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_wrong_columns(tmp_path, ending, batches, message):
    with pytest.raises(ValueError, match=message):
        write_table(tmp_path / f"table.{ending}", batches)
    assert list(tmp_path.iterdir()) == []


def test_wrong_names(tmp_path):
    with pytest.raises(ValueError, match=r"table.xml: found '.xml' as the format, expected one of \['csv', 'jsonl'"):
        TableWriter("table.xml")
    with pytest.raises(ValueError, match="Parquet is compressed inside"):
        TableWriter("table.parquet.gz")
    with pytest.raises(ValueError, match="format must be 'csv', 'tsv' or 'jsonl' for a stream, got 'parquet'"):
        TableWriter(io.BytesIO(), format="parquet")
    with pytest.raises(ValueError, match=r"table.csv is not open"):
        TableWriter("table.csv").write({"a": [1]})
    with pytest.raises(FileNotFoundError):
        write_table(tmp_path / "missing" / "table.csv", [])


@pytest.mark.parametrize("ending", ["csv.gz", "jsonl", "parquet"])
def test_memory_does_not_grow_with_the_table(tmp_path, ending):
    def peak(n_batches):
        tracemalloc.start()
        before = pa.total_allocated_bytes()
        batch = {"text": ["x" * 100] * 1000, "p": np.zeros(1000)}
        write_table(tmp_path / f"table.{ending}", (batch for _ in range(n_batches)))
        assert pa.total_allocated_bytes() - before < 1 << 20
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    assert peak(40) < 1.5 * peak(10) + 100_000
