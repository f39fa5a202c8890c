"""JSON lines: every fault with its place."""

import pytest
from reading import TEXT, fault, joined, read_bytes

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
