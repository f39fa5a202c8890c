"""From users' files to a corpus on disk: one pass for the vocabulary, one for the documents."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from mirrorlda.data.corpus.assembly import assemble
from mirrorlda.data.corpus.corpus import Corpus
from mirrorlda.data.corpus.first_pass import Choice, Look, chosen
from mirrorlda.data.corpus.manifest import Target
from mirrorlda.data.corpus.splits import Splits, splits_of
from mirrorlda.data.corpus.writer import CorpusWriter, Generation, check_place
from mirrorlda.data.files.atomic import check_directory
from mirrorlda.data.messages import Message, message_of
from mirrorlda.data.progress import counted
from mirrorlda.data.readers import TABLE_FORMATS, BadFileError, BadRowError, Reading, Rows, read
from mirrorlda.data.readers.rows import Tally
from mirrorlda.data.text import MAX_WORDS, MIN_PHRASE_DOCS, USUAL, TextDefinition, Vocabulary

# What a target column must hold, for each kind of target.
_COLUMN_KINDS = {"numbers": "number", "classes": "class", "labels": "labels"}
_WHAT = "writing documents"


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
    max_words: int | None = MAX_WORDS,
    min_docs: int = 1,
    max_docs_fraction: float = 1.0,
    min_phrase_docs: int = MIN_PHRASE_DOCS,
    definition: TextDefinition | None = None,
    n_threads: int = 1,
    cluster: Any = None,
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
    max_words, min_docs, max_docs_fraction, min_phrase_docs
        As for `mirrorlda.text.WordCounts.vocabulary`; by default the 100,000 most frequent words, of phrases those of 10
        documents and more. `max_words=None` takes all.
    definition : TextDefinition, optional
        How text becomes words; by default single words and phrases of two, ``TextDefinition(bigrams=True)``.
    n_threads : int
        The result does not depend on it. On a cluster, the threads of each task.
    cluster : mirrorlda.distributed.Cluster, optional
        Prepare on its machines, a task for each file; they must find the files and `path` under the same names. The corpus is the
        same, to the bit.
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
    splits = splits_of(split, test_fraction, seed)
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
    choice = max_words, min_docs, max_docs_fraction, min_phrase_docs
    chooses = (*choice, definition) != (MAX_WORDS, 1, 1.0, MIN_PHRASE_DOCS, None)
    wants_words = vocabulary is None and reading.request.text is not None
    if chooses and not wants_words:
        held = "files of counts leave" if vocabulary is None else "a vocabulary that is given leaves"
        names = Message("<max_words>, <min_docs>, <max_docs_fraction>, <min_phrase_docs> and <definition>")
        raise ValueError(Message("{} choose words of text: {} no choice", names, held))
    if wants_words or (targets and target_kind is None):
        looked_at = None if target_kind or not targets else targets[0]
        look = Look(definition or USUAL if wants_words else None, looked_at, splits, n_threads)
        choose = Choice(looked_at, two_are_classes, *choice)
        kind, words = chosen(reading, look, choose, cluster, verbose)
        target_kind, vocabulary = target_kind or kind, words if vocabulary is None else vocabulary
        reading = reading.asking(columns(target_kind))
    if vocabulary is None and reading.words is not None:
        vocabulary = Vocabulary(reading.words, TextDefinition(lowercase=all(word == word.lower() for word in reading.words)))
    about = Target(target_kind or "numbers", tuple(targets)) if targets else None
    write = _Write(_n_words(reading, vocabulary), vocabulary, about, id, splits, n_threads)
    if cluster is None:
        with CorpusWriter(path, write.n_words, vocabulary=vocabulary, target=about) as writer:
            write(counted(reading, _WHAT, verbose), writer)
    else:
        _write_on(cluster, reading, path, write, verbose)
    return Corpus(path)


def _write_on(cluster: Any, reading: Reading, path: Any, write: _Write, verbose: int) -> None:
    """The second pass: a task writes each file as a corpus of its own, then a task each shard of the one that they make."""
    tally = Tally(reading.skip)
    with Generation(path) as generation:
        cluster.check(partial(check_directory, generation.files))
        parts = [(part, generation.files / f"part-{number:05d}") for number, part in enumerate(reading.parts())]
        results = cluster.map(_write_part, parts, write, n_threads=write.n_threads)
        for told in counted(results, _WHAT, verbose, size=lambda told: int(told.n_rows)):
            tally.merge(told)
        reading.end(tally)
        written = {part.sources[0].name: path for part, path in parts}
        assemble(generation, written, write.n_words, write.vocabulary, write.target, cluster, verbose)


def _write_part(item: tuple[Reading, Path], write: _Write) -> Tally:
    part, path = item
    tally = Tally(part.skip)
    # Where another task has failed, it is gone.
    check_directory(path.parent)
    with CorpusWriter(path, write.n_words, target=write.target) as writer:
        write(part.rows(tally), writer)
    return tally


@dataclass(frozen=True)
class _Write:
    """The second pass over some files: their documents, for a corpus."""

    n_words: int
    vocabulary: Vocabulary | None
    target: Target | None
    id: str | None
    splits: Splits
    n_threads: int

    def __call__(self, batches: Iterable[Rows], writer: CorpusWriter) -> None:
        for rows in batches:
            with _placed(rows):
                writer.add(
                    _counts(rows, self.vocabulary, self.n_threads),
                    None if self.target is None else _targets(rows, self.target),
                    ids=None if self.id is None else _ids(rows, self.id),
                    split=self.splits(rows),
                )


def _check(targets: list[str], kind: str | None, others: list[str]) -> None:
    if len(set(targets + others)) < len(targets + others):
        raise ValueError(Message("<target>, <id> and <split> must be different columns, got {}", targets + others))
    if kind not in (None, "auto") and (kind not in _COLUMN_KINDS or not targets):
        kinds = [*_COLUMN_KINDS, "auto"]
        raise ValueError(Message("<target_kind> must be one of {}, and there must be a <target>; got {!r}", kinds, kind))
    if len(targets) > 1 and kind not in (None, "auto", "numbers"):
        columns = f"the {len(targets)} target columns {targets}"
        raise ValueError(Message("{} can only be numbers, got <target_kind={!r}>", columns, kind))


def _n_words(reading: Reading, vocabulary: Vocabulary | None) -> int:
    n_words = reading.n_words if vocabulary is None else len(vocabulary)
    if n_words is None and reading.format in TABLE_FORMATS:
        raise ValueError(Message("name the column of the text: <text=...>"))
    if n_words is None:
        unknown = "how many words a stream of counts has is not known before it is read"
        raise ValueError(Message("{}: give <n_words>, or name a file", unknown))
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
        raise BadFileError(f"{rows.file}, rows up to line {last}", message_of(error)) from error
