"""UCI bag-of-words and Matrix Market: headers, entries, and every fault with its place."""

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from mirrorlda.readers import BadFileError, read
from reading import COUNTS, damage, fault, read_bytes

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
