"""CSV and TSV: quotes, delimiters, labels of one field, and every fault with its place."""

import io

import pytest
from mirrorlda.readers import read
from mirrorlda.readers.formats import delimited
from reading import TEXT, damage, fault, joined, read_bytes

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
