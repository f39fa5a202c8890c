"""The first of two passes over files: it counts words, for the vocabulary, and sees what kind of values a target has."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from mirrorlda.data.corpus.splits import TRAINING, Splits
from mirrorlda.data.messages import Message
from mirrorlda.data.progress import counted
from mirrorlda.data.readers import Reading, Rows
from mirrorlda.data.readers.rows import Tally
from mirrorlda.data.readers.values import NUMBER
from mirrorlda.data.text import TextDefinition, Vocabulary, WordCounts

# What other programs write where a number is missing: no classes.
_MISSING_MARKS = {"na", "n/a", "nan", "null", "none", "inf", "-inf", "-", "?"}
_WHAT = "looking for words"


def chosen(reading: Reading, look: Look, choose: Choice, cluster: Any, verbose: int) -> tuple[str | None, Vocabulary | None]:
    """The kind of target and the vocabulary that a pass over all files finds; on a cluster, a task for each file."""
    if cluster is None:
        return choose(look(counted(reading, _WHAT, verbose), reading.format))
    tally, founds = Tally(reading.skip), []
    # What was counted stays on the cluster until it is one.
    results = cluster.map_kept(_look_at, reading.parts(), look, n_threads=look.n_threads)
    for told, found in counted(results, _WHAT, verbose, size=lambda result: int(result[0].n_rows)):
        tally.merge(told)
        founds.append(found)
    reading.end(tally)
    (found,) = cluster.reduce(_merged, founds)
    kind, vocabulary = cluster.get(cluster.submit(_chosen, found, choose))
    return kind, vocabulary


def _look_at(part: Reading, look: Look) -> tuple[Tally, _Found]:
    tally = Tally(part.skip)
    found = look(part.rows(tally), part.format)
    return tally, found


def _merged(found: _Found, later: _Found) -> _Found:
    found.merge(later)
    return found


def _chosen(found: _Found, choose: Choice) -> tuple[str | None, Vocabulary | None]:
    return choose(found)


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

    def merge(self, later: _Seen) -> None:
        """Go on with the values of files that come next."""
        self.n_values += later.n_values
        self.n_lists += later.n_lists
        self.n_numbers += later.n_numbers
        self.numbers |= later.numbers
        self.other = self.other or later.other
        self.n_missing_marks += later.n_missing_marks

    def kind(self, name: str, two_are_classes: bool) -> str:
        """The kind of target that the values of this column are."""
        if not self.n_values:
            raise ValueError(f"the column {name!r} has no values: no document has a target")
        n_others = self.n_values - self.n_numbers
        if n_others and (n_others < self.n_numbers or (self.n_numbers and n_others == self.n_missing_marks)):
            raise ValueError(
                Message(
                    "the column {!r} has {} numbers and {} other values, the first {}: say <target_kind='numbers'> "
                    "(with <bad_rows='skip'> to leave the others out) or <target_kind='classes'>",
                    *(name, self.n_numbers, n_others, self.other),
                )
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


@dataclass(frozen=True)
class _Found:
    """What the first pass found: words of the split "train", words of all other documents, values of the target."""

    words: tuple[WordCounts, ...]
    seen: _Seen

    def merge(self, later: _Found) -> None:
        """Go on with what was found in files that come next."""
        for counts, others in zip(self.words, later.words, strict=True):
            counts.merge(others)
        self.seen.merge(later.seen)


@dataclass(frozen=True)
class Look:
    """The first pass over some files: count words, and see the values of the target."""

    definition: TextDefinition | None
    target: str | None
    splits: Splits
    n_threads: int

    def __call__(self, batches: Iterable[Rows], format: str) -> _Found:
        words = () if self.definition is None else tuple(WordCounts(self.definition, n_threads=self.n_threads) for _ in range(2))
        seen = _Seen(format in ("csv", "tsv"))
        for rows in batches:
            if words and rows.texts is not None:
                is_training = [name == TRAINING for name in self.splits(rows) or [None] * len(rows)]
                for counts, which in zip(words, (True, False), strict=True):
                    counts.add([text for text, training in zip(rows.texts, is_training, strict=True) if training is which])
            if self.target is not None:
                seen.add(rows, self.target)
        return _Found(words, seen)


@dataclass(frozen=True)
class Choice:
    """What follows from the first pass over all files: the kind of target, where it was looked for, and the vocabulary."""

    target: str | None
    two_are_classes: bool
    max_words: int | None
    min_docs: int
    max_docs_fraction: float
    min_phrase_docs: int

    def __call__(self, found: _Found) -> tuple[str | None, Vocabulary | None]:
        kind = None if self.target is None else found.seen.kind(self.target, self.two_are_classes)
        if not found.words:
            return kind, None
        words = found.words[0 if found.words[0].n_docs else 1]
        return kind, words.vocabulary(self.max_words, self.min_docs, self.max_docs_fraction, self.min_phrase_docs)


def _is_number(value: Any, is_text: bool) -> bool:
    """CSV has only text: there, what looks like a number is one."""
    if isinstance(value, str):
        return is_text and NUMBER.fullmatch(value.strip()) is not None
    return isinstance(value, int | float) and not isinstance(value, bool)
