"""Svmlight: the forms that it has, the first index, and every fault with its place."""

import pytest
from mirrorlda.readers import BadFileError, read
from reading import Pipe, fault, read_bytes

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
