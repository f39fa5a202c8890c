"""Folds of the rows that experiments measure: which documents they hold, and with which targets."""

import gzip
import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "experiments"))

from rows import N_FOLDS, Row, fold, row_of_file

N_DOCS = 97
# Of each ten documents; the last two have no target.
NUMBERS = [1, 2, 3, 4, 5, 6, 7, 8, None, ...]
NAMES = ["one", "one", "two", "two", "two", "two", "two", "three", None, ...]
COUNTS = {"one": 1, "two": 2, "three": 3}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Documents that say what they are: "b" as often as their place says, from one on, "c" and "d" as often as their targets.

    A target is null, or its field is not there.
    """
    path = tmp_path_factory.mktemp("rows") / "documents.jsonl"
    lines = []
    for place in range(N_DOCS):
        targets = {"number": NUMBERS[place % 10], "name": NAMES[place % 10]}
        targets = {field: value for field, value in targets.items() if value is not ...}
        words = ["b"] * (place + 1) + ["c"] * (targets.get("number") or 0) + ["d"] * COUNTS.get(targets.get("name"), 0)
        lines.append(json.dumps({"text": " ".join(words), "split": "train"} | targets))
    path.write_text("\n".join(lines))
    return path


def row_of(path, target, **options):
    return Row("row", path, target, {"number": "r2", "name": "accuracy", None: "npmi"}[target], **options)


def places(X):
    return (X[:, [0]].toarray().ravel() - 1).astype(int).tolist()


def targets_in(X, target):
    return X[:, [1 if target == "number" else 2]].toarray().ravel().tolist()


LABELLED = [place for place in range(N_DOCS) if place % 10 < 8]
# Without a target all documents are of use.
KNOWN = {"number": LABELLED, "name": LABELLED, None: list(range(N_DOCS))}


@pytest.mark.parametrize("target", KNOWN)
def test_each_document_is_held_out_once(path, target):
    held_out = []
    for number in range(N_FOLDS):
        data = fold(row_of(path, target), number)
        train, test = places(data.X), places(data.X_test)
        assert sorted(train + test) == KNOWN[target]
        assert abs(len(test) - len(KNOWN[target]) / N_FOLDS) < 3
        held_out += test
    assert N_FOLDS == 5
    assert sorted(held_out) == KNOWN[target]


@pytest.mark.parametrize("number", range(N_FOLDS))
def test_documents_and_targets_belong_together(path, number):
    numbers = fold(row_of(path, "number"), number)
    for X, y in [(numbers.X, numbers.y), (numbers.X_test, numbers.y_test)]:
        assert y.dtype == np.float64
        assert y.tolist() == targets_in(X, "number") == [NUMBERS[place % 10] for place in places(X)]
    names = fold(row_of(path, "name"), number)
    for X, y in [(names.X, names.y), (names.X_test, names.y_test)]:
        # As text, not as objects: none of them is missing.
        assert y.dtype.kind == "U"
        assert [COUNTS[name] for name in y] == targets_in(X, "name")
    topics = fold(row_of(path, None), number)
    assert topics.y is None
    assert topics.y_test is None


def test_each_fold_has_its_share_of_each_class(path):
    in_all = Counter(NAMES[place % 10] for place in LABELLED)
    for number in range(N_FOLDS):
        held_out = Counter(fold(row_of(path, "name"), number).y_test.tolist())
        assert all(abs(held_out[name] - count / N_FOLDS) <= 1 for name, count in in_all.items())


def test_folds_are_random_but_always_the_same(path):
    first, again = (fold(row_of(path, "number"), 2) for _ in range(2))
    assert (first.X != again.X).nnz == 0
    assert first.y_test.tolist() == again.y_test.tolist()
    held_out = places(first.X_test)
    # Neighbours in the file are not all of one fold.
    assert max(held_out) - min(held_out) > N_DOCS / 2


def test_of_some_documents_and_some_words(path):
    some = [fold(row_of(path, "number", n_docs=50), number) for number in range(N_FOLDS)]
    held_out = [place for data in some for place in places(data.X_test)]
    assert len(held_out) == len(set(held_out))
    assert 30 < len(held_out) <= 50
    assert set(held_out) < set(LABELLED)
    # "b" is the most frequent word, then "c".
    assert fold(row_of(path, "number"), 0).X.shape[1] == 3
    two = fold(row_of(path, "number", n_words=2), 0)
    assert two.X.shape[1] == two.X_test.shape[1] == 2
    assert targets_in(two.X, "number") == two.y.tolist()


GOOD = {"text": "a b", "y": 1}


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ({"y": 1}, "found nothing in the field 'text', expected text"),
        ({"text": None, "y": 1}, "found null in the field 'text', expected text"),
        ([1, 2], r"found \[1, 2\], expected a JSON object"),
        ("{", "column 2: Expecting property name"),
        ({"text": "a", "y": 10**400}, "field 'y': found 1000"),
        ({"text": "a", "y": [3]}, r"field 'y': found \[3\], expected a number, a class or null"),
        ({"text": "a", "y": float("inf")}, "field 'y': found inf, expected a number"),
        ({"text": "a", "y": float("nan")}, "field 'y': found nan, expected a number"),
        ({"text": "a", "y": "three"}, "field 'y': found 'three', expected numbers as in the lines before"),
    ],
)
def test_a_line_that_is_wrong_is_named(tmp_path, line, told):
    path = tmp_path / "own.jsonl"
    lines = [json.dumps(GOOD), "", json.dumps(GOOD | {"y": 2}), line if line == "{" else json.dumps(line)]
    path.write_text("\n".join(lines))
    with pytest.raises(ValueError, match=f"own.jsonl, line 4.*{told}"):
        row_of_file(path, "text", "y", None)


def test_empty_lines_and_missing_targets_are_passed_over(tmp_path):
    path = tmp_path / "own.jsonl"
    lines = [json.dumps(GOOD | {"y": number}) for number in range(6)]
    path.write_text("\n\n".join([*lines, json.dumps({"text": "c"}), json.dumps({"text": "c", "y": None})]) + "\n\n")
    row = row_of_file(path, "text", "y", None)
    assert (row.name, row.measure) == ("own-y", "r2")
    assert sorted(y for number in range(N_FOLDS) for y in fold(row, number).y_test.tolist()) == list(range(6))


def test_a_file_that_is_cut_short_is_named(tmp_path):
    path = tmp_path / "own.jsonl.gz"
    path.write_bytes(gzip.compress((json.dumps(GOOD) + "\n").encode() * 1000)[:-4])
    with pytest.raises(ValueError, match=r"own.jsonl.gz, after line 1000: Compressed file ended"):
        row_of_file(path, "text", "y", None)


@pytest.mark.parametrize(
    "broken", [b"plain text", gzip.compress(b"{}" * 99, mtime=0)[:20] + b"!!!!!!!!"], ids=["plain", "broken"]
)
def test_a_file_that_is_not_gzip_is_named(tmp_path, broken):
    path = tmp_path / "own.jsonl.gz"
    path.write_bytes(broken)
    with pytest.raises(ValueError, match=r"own.jsonl.gz, after line 0: "):
        row_of_file(path, "text", "y", None)


def test_bytes_that_are_not_text_are_named_by_line(tmp_path):
    path = tmp_path / "own.jsonl"
    good = (json.dumps(GOOD) + "\n").encode()
    path.write_bytes(good * 900 + '{"text": "\xe9"}\n'.encode("latin-1") + good * 900)
    with pytest.raises(ValueError, match=r"own.jsonl, line 901: found bytes that are not UTF-8"):
        row_of_file(path, "text", "y", None)


@pytest.mark.parametrize("number", [-1, N_FOLDS])
def test_a_fold_that_is_not_there(path, number):
    with pytest.raises(ValueError, match=f"fold {number}"):
        fold(row_of(path, "number"), number)
