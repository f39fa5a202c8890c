"""From users' files to a corpus on disk: one pass for the vocabulary, one for the documents."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mirrorlda.corpus import Corpus
from mirrorlda.description import Target
from mirrorlda.progress import counted
from mirrorlda.readers import BadFileError, BadRowError, Reading, Rows, read
from mirrorlda.readers.values import NUMBER
from mirrorlda.text import TextDefinition, Vocabulary, WordCounts
from mirrorlda.writer import CorpusWriter, check_place

# What a target column must hold, for each kind of target.
_COLUMN_KINDS = {"numbers": "number", "classes": "class", "labels": "labels"}
# The split whose words make the vocabulary, where the files name splits.
_TRAINING = "train"


def prepare(
    files: Any,
    path: str | os.PathLike[str],
    *,
    text: str | None = None,
    target: str | Sequence[str] | None = None,
    target_kind: str | None = None,
    id: str | None = None,
    split: str | None = None,
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
    target_kind : {"numbers", "classes", "labels"}, optional
        By default "numbers" if all values are, "labels" if they are lists, and "classes" otherwise.
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
        For `mirrorlda.readers.read`: format, bad_rows, delimiter, ...

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
    _check(targets, target_kind, [name for name in (id, split) if name is not None])
    check_place(path)
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
        found = _look(batches, words, [] if target_kind else targets, split, reading.format in ("csv", "tsv"))
        target_kind = target_kind or found
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
                    split=None if split is None else [None if v is None else str(v) for v in rows.columns[split]],
                )
    return Corpus(path)


def _check(targets: list[str], kind: str | None, others: list[str]) -> None:
    if len(set(targets + others)) < len(targets + others):
        raise ValueError(f"target, id and split must be different columns, got {targets + others}")
    if kind is not None and (kind not in _COLUMN_KINDS or not targets):
        raise ValueError(f"target_kind must be one of {list(_COLUMN_KINDS)}, and there must be a target; got {kind!r}")
    if len(targets) > 1 and kind not in (None, "numbers"):
        raise ValueError(f"the {len(targets)} target columns {targets} can only be numbers, got target_kind={kind!r}")


def _look(batches: Iterable[Rows], words: list[WordCounts], targets: list[str], split: str | None, is_text: bool) -> str:
    """The first pass: count words, and see what kind of target there is."""
    n_numbers, n_lists, n_values, other = 0, 0, 0, ""
    for rows in batches:
        if words and rows.texts is not None:
            is_training = [False] * len(rows) if split is None else [name == _TRAINING for name in rows.columns[split]]
            for counts, which in zip(words, (True, False), strict=True):
                counts.add([text for text, training in zip(rows.texts, is_training, strict=True) if training is which])
        for name in targets[:1]:
            for line, value in zip(rows.lines, rows.columns[name], strict=True):
                if value is None:
                    continue
                n_values += 1
                n_lists += isinstance(value, list)
                is_number = _is_number(value, is_text)
                n_numbers += is_number
                if not is_number and not other:
                    other = f"{value!r} in {rows.file}:{line}"
    if targets and not n_values:
        raise ValueError(f"the column {targets[0]!r} has no values: no document has a target")
    if n_values / 2 < n_numbers < n_values:
        raise ValueError(
            f"the column {targets[0]!r} has {n_numbers} numbers and {n_values - n_numbers} other values, the first {other}: "
            "say target_kind='numbers' (with bad_rows='skip' to leave the others out) or target_kind='classes'"
        )
    return "labels" if n_lists == n_values else "numbers" if n_numbers == n_values else "classes"


def _is_number(value: Any, is_text: bool) -> bool:
    """CSV has only text: there, what looks like a number is one."""
    if isinstance(value, str):
        return is_text and NUMBER.fullmatch(value.strip()) is not None
    return isinstance(value, int | float) and not isinstance(value, bool)


def _n_words(reading: Reading, vocabulary: Vocabulary | None) -> int:
    n_words = reading.n_words if vocabulary is None else len(vocabulary)
    if n_words is None and reading.format in ("csv", "tsv", "jsonl", "parquet"):
        raise ValueError("name the column of the text: text=...")
    if n_words is None:
        raise ValueError("how many words a stream of counts has is not known before it is read: give n_words, or name a file")
    return n_words


def _counts(rows: Rows, vocabulary: Vocabulary | None, n_threads: int) -> Any:
    if rows.texts is None:
        return rows.counts
    assert vocabulary is not None
    return vocabulary.count(rows.texts, n_threads)


def _targets(rows: Rows, target: Target) -> list[Any]:
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
