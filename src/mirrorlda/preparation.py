"""From users' files to a corpus on disk: one pass for the vocabulary, one for the documents."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mirrorlda.corpus import Corpus
from mirrorlda.description import Target
from mirrorlda.progress import counted
from mirrorlda.readers import TABLE_FORMATS, BadFileError, BadRowError, Reading, Rows, read
from mirrorlda.readers.values import NUMBER
from mirrorlda.text import TextDefinition, Vocabulary, WordCounts
from mirrorlda.writer import CorpusWriter, check_place

# What a target column must hold, for each kind of target.
_COLUMN_KINDS = {"numbers": "number", "classes": "class", "labels": "labels"}
# What other programs write where a number is missing: no classes.
_MISSING_MARKS = {"na", "n/a", "nan", "null", "none", "inf", "-inf", "-", "?"}
# The split whose words make the vocabulary, where the files name splits; and the other, where they are drawn.
_TRAINING, _TEST = "train", "test"
Splits = Callable[[Rows], list[str | None] | None]


def prepare(
    files: Any,
    path: str | os.PathLike[str],
    *,
    text: str | None = None,
    target: str | Sequence[str] | None = None,
    target_kind: str | None = None,
    id: str | None = None,
    split: str | None = None,
    test_fraction: float = 0.0,
    seed: int = 0,
    vocabulary: Vocabulary | None = None,
    max_words: int | None = None,
    min_docs: int = 1,
    max_docs_fraction: float = 1.0,
    definition: TextDefinition | None = None,
    n_threads: int = 1,
    verbose: int = 0,
    **options: Any,
) -> Corpus:
    r"""Write a corpus from files of text or counts, of any size, in any of the formats that `read` knows.

    Parameters
    ----------
    files : name, pattern, or several of them
    path : path of the directory to write
    text, id, split : str, optional
        Names of the columns of the text, of the documents' ids and of their split. If one split is named "train", the
        vocabulary is made of its documents.
    target : str or several, optional
        Names of the columns of the target. Several columns hold numbers.
    target_kind : {"numbers", "classes", "labels", "auto"}, optional
        By default "numbers" if all values are, "labels" if they are lists, and "classes" otherwise. "auto" is the same, but for
        numbers of one column that have two values, such as 0 and 1: these are two classes. With a `label_separator`, "labels".
    test_fraction : float
        In place of a column of the split: about this fraction of the documents is "test", the others are "train". Which they are
        depends on `seed` and on the document's file and line alone.
    seed : int
        Of the choice of test documents.
    vocabulary : Vocabulary, optional
        That of a model or of another corpus; otherwise it is made with the next parameters.
    max_words, min_docs, max_docs_fraction
        As for `mirrorlda.text.WordCounts.vocabulary`; by default all words are taken.
    definition : TextDefinition, optional
        How text becomes words.
    n_threads : int
        The result does not depend on it.
    verbose : int
        Above 0, a progress bar.
    **options
        For `mirrorlda.readers.read`: format, bad_rows, delimiter, label_separator, ...

    Returns
    -------
    Corpus

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from mirrorlda import prepare
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "reviews.csv").write_text("review,stars\nClean room.,5\nNoisy room!,2\n")
    >>> corpus = prepare(folder / "reviews.csv", folder / "reviews.corpus", text="review", target="stars")
    >>> corpus, corpus.vocabulary.words
    (<Corpus of 2 documents, 3 words, numbers 'stars'>, ['room', 'clean', 'noisy'])
    """
    targets = [target] if isinstance(target, str) else list(target or ())
    if target_kind in (None, "auto") and options.get("label_separator") is not None:
        target_kind = "labels"
    _check(targets, target_kind, [name for name in (id, split) if name is not None])
    splits = _splits(split, test_fraction, seed)
    check_place(path)
    two_are_classes = target_kind == "auto"
    if two_are_classes:
        target_kind = None
    if len(targets) > 1:
        target_kind = "numbers"

    def columns(kind: str | None) -> dict[str, str]:
        wanted = "any" if kind is None else _COLUMN_KINDS[kind]
        return dict.fromkeys(targets, wanted) | {name: "class" for name in (id, split) if name is not None}

    reading = read(files, text=text, columns=columns(target_kind), **options)
    chooses = (max_words, min_docs, max_docs_fraction, definition) != (None, 1, 1.0, None)
    wants_words = vocabulary is None and reading.request.text is not None
    if chooses and not wants_words:
        held = "files of counts leave" if vocabulary is None else "a vocabulary that is given leaves"
        raise ValueError(f"max_words, min_docs, max_docs_fraction and definition choose words of text: {held} no choice")
    if wants_words or (targets and target_kind is None):
        # Words of the split "train", and of all other documents.
        words = [WordCounts(definition or TextDefinition(), n_threads=n_threads) for _ in range(2)] if wants_words else []
        batches = counted(reading, "looking for words", verbose)
        seen = _Seen(reading.format in ("csv", "tsv"))
        _look(batches, words, None if target_kind or not targets else targets[0], splits, seen)
        if targets and target_kind is None:
            target_kind = seen.kind(targets[0], two_are_classes)
        if wants_words:
            vocabulary = words[0 if words[0].n_docs else 1].vocabulary(max_words, min_docs, max_docs_fraction)
        reading = reading.asking(columns(target_kind))
    if vocabulary is None and reading.words is not None:
        vocabulary = Vocabulary(reading.words, TextDefinition(lowercase=all(word == word.lower() for word in reading.words)))
    about = Target(target_kind or "numbers", tuple(targets)) if targets else None
    with CorpusWriter(path, _n_words(reading, vocabulary), vocabulary=vocabulary, target=about) as writer:
        for rows in counted(reading, "writing documents", verbose):
            with _placed(rows):
                writer.add(
                    _counts(rows, vocabulary, n_threads),
                    None if about is None else _targets(rows, about),
                    ids=None if id is None else _ids(rows, id),
                    split=splits(rows),
                )
    return Corpus(path)


def _check(targets: list[str], kind: str | None, others: list[str]) -> None:
    if len(set(targets + others)) < len(targets + others):
        raise ValueError(f"target, id and split must be different columns, got {targets + others}")
    if kind not in (None, "auto") and (kind not in _COLUMN_KINDS or not targets):
        raise ValueError(f"target_kind must be one of {[*_COLUMN_KINDS, 'auto']}, and there must be a target; got {kind!r}")
    if len(targets) > 1 and kind not in (None, "auto", "numbers"):
        raise ValueError(f"the {len(targets)} target columns {targets} can only be numbers, got target_kind={kind!r}")


def _splits(column: str | None, test_fraction: float, seed: int) -> Splits:
    """The split of each row: as a column says, drawn, or none."""
    if not 0 <= test_fraction < 1:
        raise ValueError(f"test_fraction must be at least 0 and less than 1, got {test_fraction!r}")
    if not 0 <= seed < 2**64:
        raise ValueError(f"seed must be a whole number of at least 0 and at most 64 bits, got {seed!r}")
    if column is not None:
        if test_fraction:
            raise ValueError(
                f"split={column!r} and test_fraction={test_fraction} both say which documents are for tests: give one"
            )
        return lambda rows: [None if value is None else str(value) for value in rows.columns[column]]
    if not test_fraction:
        return lambda rows: None
    return lambda rows: [_TEST if drawn < test_fraction else _TRAINING for drawn in _drawn(seed, rows)]


def _drawn(seed: int, rows: Rows) -> list[float]:
    """A number from 0 to 1 for each row, from its place alone: the mixing of SplitMix64, of seed, file and line in turn."""
    state = np.zeros(len(rows), np.uint64)
    for part in (np.uint64(seed), np.uint64(rows.file_number), rows.lines.astype(np.uint64)):
        state = (state ^ part) + np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state = state ^ (state >> np.uint64(31))
    drawn: list[float] = ((state >> np.uint64(11)) / 2**53).tolist()
    return drawn


@dataclass
class _Seen:
    """Values of a target's column so far; in CSV all of them are text."""

    is_text: bool
    n_values: int = 0
    n_lists: int = 0
    n_numbers: int = 0
    # The first few numbers as they are written, with their types, and the first value that is none.
    numbers: set[tuple[type, Any]] = field(default_factory=set)
    other: str = ""
    n_missing_marks: int = 0

    def add(self, rows: Rows, name: str) -> None:
        for line, value in zip(rows.lines, rows.columns[name], strict=True):
            if value is None:
                continue
            self.n_values += 1
            self.n_lists += isinstance(value, list)
            if _is_number(value, self.is_text):
                self.n_numbers += 1
                if len(self.numbers) <= 2:
                    self.numbers.add((type(value), value))
                continue
            self.n_missing_marks += isinstance(value, str) and value.strip().lower() in _MISSING_MARKS
            if not self.other:
                self.other = f"{value!r} in {rows.file}:{line}"

    def kind(self, name: str, two_are_classes: bool) -> str:
        """The kind of target that the values of this column are."""
        if not self.n_values:
            raise ValueError(f"the column {name!r} has no values: no document has a target")
        n_others = self.n_values - self.n_numbers
        if n_others and (n_others < self.n_numbers or (self.n_numbers and n_others == self.n_missing_marks)):
            raise ValueError(
                f"the column {name!r} has {self.n_numbers} numbers and {n_others} other values, "
                f"the first {self.other}: say target_kind='numbers' (with bad_rows='skip' to leave the others out) "
                "or target_kind='classes'"
            )
        if self.n_lists == self.n_values:
            return "labels"
        if self.n_numbers < self.n_values or (two_are_classes and self._has_two_classes):
            return "classes"
        return "numbers"

    @property
    def _has_two_classes(self) -> bool:
        """Two numbers, each written in one way: '1' and '1.0' would be two classes that are one."""
        types, values = {type for type, _ in self.numbers}, {float(value) for _, value in self.numbers}
        return len(self.numbers) == len(values) == 2 and len(types) == 1


def _look(batches: Iterable[Rows], words: list[WordCounts], target: str | None, splits: Splits, seen: _Seen) -> None:
    """The first pass: count words, and see the values of the target."""
    for rows in batches:
        if words and rows.texts is not None:
            is_training = [name == _TRAINING for name in splits(rows) or [None] * len(rows)]
            for counts, which in zip(words, (True, False), strict=True):
                counts.add([text for text, training in zip(rows.texts, is_training, strict=True) if training is which])
        if target is not None:
            seen.add(rows, target)


def _is_number(value: Any, is_text: bool) -> bool:
    """CSV has only text: there, what looks like a number is one."""
    if isinstance(value, str):
        return is_text and NUMBER.fullmatch(value.strip()) is not None
    return isinstance(value, int | float) and not isinstance(value, bool)


def _n_words(reading: Reading, vocabulary: Vocabulary | None) -> int:
    n_words = reading.n_words if vocabulary is None else len(vocabulary)
    if n_words is None and reading.format in TABLE_FORMATS:
        raise ValueError("name the column of the text: text=...")
    if n_words is None:
        raise ValueError("how many words a stream of counts has is not known before it is read: give n_words, or name a file")
    return n_words


def _counts(rows: Rows, vocabulary: Vocabulary | None, n_threads: int) -> Any:
    if rows.texts is None:
        return rows.counts
    assert vocabulary is not None
    return vocabulary.count(rows.texts, n_threads)


def _targets(rows: Rows, target: Target) -> Sequence[Any]:
    """One value a document; of several columns a list of them, all there or none."""
    columns = [rows.columns[name] for name in target.names]
    if len(columns) == 1:
        return columns[0]
    values = [list(row) for row in zip(*columns, strict=True)]
    for line, row in zip(rows.lines, values, strict=True):
        if 0 < sum(value is None for value in row) < len(row):
            missing = target.names[row.index(None)]
            raise BadRowError(
                rows.file, int(line), None, f"found no value of {missing!r}, expected all of {list(target.names)} or none"
            )
    return values


def _ids(rows: Rows, name: str) -> list[str]:
    ids = rows.columns[name]
    if None in ids:
        line = int(rows.lines[ids.index(None)])
        raise BadRowError(rows.file, line, None, f"found no value of {name!r}, expected an id for every document")
    return [str(value) for value in ids]


@contextmanager
def _placed(rows: Rows) -> Iterator[None]:
    """What the writer finds amiss comes from these rows."""
    try:
        yield
    except BadFileError:
        raise
    except ValueError as error:
        last = int(rows.lines[-1]) if len(rows) else 0
        raise BadFileError(f"{rows.file}, rows up to line {last}", str(error)) from error
