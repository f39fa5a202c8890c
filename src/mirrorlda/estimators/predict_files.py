"""Files in, files out: predictions and topic proportions of any number of documents, a batch at a time."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from mirrorlda.data.corpus.corpus import Corpus
from mirrorlda.data.files.atomic import check_directory, replaced_directory
from mirrorlda.data.files.table_folder import Part, as_others, common_types, is_as_others, is_table, tidy, write_part
from mirrorlda.data.files.tables import FORMATS, Columns, write_table
from mirrorlda.data.messages import Message
from mirrorlda.data.parts import PART_DOCS, ahead, chunks
from mirrorlda.data.progress import counted
from mirrorlda.data.readers import TABLE_FORMATS, Reading, Rows, read
from mirrorlda.data.readers.rows import Tally
from mirrorlda.data.readers.values import AS_IT_IS
from mirrorlda.method.fitted_model import FittedModel, estimator_of, model_of

_BATCH_DOCS = 8192


def predict_files(
    model: Any,
    files: Any,
    output: str | os.PathLike[str] | IO[bytes],
    *,
    text: str | None = None,
    columns: Sequence[str] | Mapping[str, str] | Literal["all"] = (),
    topics: bool = False,
    output_format: str | None = None,
    cluster: Any = None,
    verbose: int = 0,
    **options: Any,
) -> int:
    r"""Predict for every document of some files, or of a corpus, and write a table; memory does not grow with their number.

    Parameters
    ----------
    model : fitted estimator or Pipeline
        An estimator needs its `vocabulary_` for text; a pipeline has its own vectorizer.
    files : as for `mirrorlda.readers.read`, or a `Corpus`
    output : name or binary file object
        CSV, TSV, JSON lines or Parquet, by its ending. It gets its name when it is complete.
    text : str, optional
        The column of the text.
    columns : sequence of str, dict, or "all"
        Columns of the files that are written to the table as they are, before the predictions; all of them, that of the text too,
        with "all". Of a corpus, the ids are.
    topics : bool
        Whether topic proportions are written too; those of a `TopicModel` are in any case.
    output_format : {"csv", "tsv", "jsonl", "parquet"}, optional
        In place of the ending.
    cluster : mirrorlda.distributed.Cluster, optional
        Predict on its machines, which must find files and output under the same names. The output is a folder then, of Parquet
        files in the order of the documents: one for each file that is read, or for 65,536 documents of a corpus.
    verbose : int
        Above 0, a progress bar.
    **options
        For `mirrorlda.readers.read`: format, bad_rows, ...

    Returns
    -------
    int
        Number of documents.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from mirrorlda import TopicClassifier, predict_files, prepare
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> lines = ["review,verdict", *["Clean quiet room.,good", "Noisy dirty room!,bad"] * 50]
    >>> _ = (folder / "reviews.csv").write_text("\n".join(lines) + "\n")
    >>> corpus = prepare(folder / "reviews.csv", folder / "reviews.corpus", text="review", target="verdict")
    >>> model = TopicClassifier(n_topics=2, random_state=0).fit(corpus)
    >>> predict_files(model, folder / "reviews.csv", folder / "out.csv", text="review", columns=["verdict"])
    100
    >>> (folder / "out.csv").read_text().splitlines()[0]
    '"verdict","prediction","probability_bad","probability_good"'
    """
    read_model = model_of(model)
    _check_apart(files, output)
    if isinstance(files, Corpus):
        if columns or text is not None or options:
            raise ValueError("a corpus has counts and ids: text, columns and options are for files")
        read_model.check_words(files)
        documents: Corpus | Reading = files
    else:
        documents = _reading(files, text, columns, options, read_model.n_words)
    if cluster is not None:
        return _predict_parts(cluster, model, documents, output, topics, output_format, verbose)
    if isinstance(documents, Corpus):
        batches = _corpus_batches(documents, 0, documents.n_docs)
    else:
        batches = _file_batches(documents, documents, read_model)
    return write_table(output, _tables(counted(ahead(batches), "predicting", verbose), read_model, topics), format=output_format)


def _tables(batches: Iterable[_Batch], model: FittedModel, topics: bool) -> Iterator[Columns]:
    """Rows of the table, a batch at a time."""
    for batch in batches:
        theta = model.proportions(batch.X) if len(batch) else model.components.T[:0]
        predicted = model.columns(theta)
        if topics or not predicted:
            predicted |= {f"topic_{k}": theta[:, k] for k in range(theta.shape[1])}
        if clash := sorted(set(batch.kept) & set(predicted)):
            raise ValueError(Message("the columns {} are those of the predictions: leave them out of <columns>", clash))
        yield {**batch.kept, **predicted}


def _predict_parts(
    cluster: Any, model: Any, documents: Corpus | Reading, output: Any, topics: bool, format: str | None, verbose: int
) -> int:
    """The table as a folder, each part of it written by a task."""
    named = output if isinstance(output, str | os.PathLike) else "-"
    if os.fspath(named) == "-" or (format or FORMATS.get(Path(named).suffix.lower(), "parquet")) != "parquet":
        raise ValueError(f"a cluster writes a folder of Parquet files, expected its name, such as out.parquet, got {output!r}")
    n_threads = max(1, estimator_of(model).n_jobs or 1)
    shared: Corpus | None = None
    items: Sequence[Any]
    if isinstance(documents, Corpus):
        shared, items = documents, [(int(part[0]), int(part[-1]) + 1) for part in chunks(documents.n_docs, PART_DOCS)] or [(0, 0)]
    else:
        items = documents.parts()
    tally, written = Tally(skip=True), []
    with replaced_directory(named, is_table) as folder:
        cluster.check(partial(check_directory, folder))
        results = cluster.map(_predict_part, enumerate(items), model, shared, topics, folder, n_threads, n_threads=n_threads)
        for part, told in counted(results, "predicting", verbose, size=lambda result: result[0].n_rows):
            tally.merge(told)
            written.append(part)
        if isinstance(documents, Reading):
            documents.end(tally)
        types = common_types(written)
        for _ in cluster.map(as_others, (part for part in written if not is_as_others(part, types)), types):
            pass
        tidy(folder)
    return sum(part.n_rows for part in written)


def _predict_part(
    item: tuple[int, Any], model: Any, corpus: Corpus | None, topics: bool, folder: Path, n_threads: int
) -> tuple[Part, Tally]:
    """One part: a file, or some documents of a corpus; returns what was written, and what was read."""
    number, documents = item
    estimator_of(model).set_params(n_jobs=n_threads)
    read_model, tally = model_of(model), Tally(skip=True)
    if corpus is not None:
        batches = _corpus_batches(corpus, *documents)
    else:
        tally = Tally(documents.skip)
        batches = _file_batches(documents, documents.rows(tally), read_model)
    return write_part(folder, number, _tables(ahead(batches), read_model, topics)), tally


@dataclass(frozen=True)
class _Batch:
    """Counts of some documents, and columns that go to the table as they are."""

    kept: dict[str, Any]
    X: Any

    def __len__(self) -> int:
        return int(self.X.shape[0])


def _check_apart(files: Any, output: Any) -> None:
    """That no file of the input is the output, whose place it would take."""
    if not isinstance(output, str | os.PathLike) or not os.path.exists(output):
        return
    named = [files] if isinstance(files, str | os.PathLike) else files if isinstance(files, list | tuple) else []
    for name in named:
        for found in glob.glob(os.fspath(name), recursive=True) if isinstance(name, str | os.PathLike) else []:
            # A folder of an earlier table would be replaced with all that is in it.
            is_within = Path(found).resolve().is_relative_to(Path(output).resolve())
            if is_within or os.path.samefile(found, output):
                raise ValueError(f"{os.fspath(output)} is among the files that are read: write the table to another place")


def _reading(files: Any, text: str | None, columns: Any, options: dict[str, Any], n_words: int) -> Reading:
    if not isinstance(columns, Mapping | str):
        columns = dict.fromkeys(columns, AS_IT_IS)
    if read(files, text=text, columns=columns, **options).format == "svmlight":
        # The numbers of words must mean what they did when the model was fitted, not what this file happens to have.
        if "zero_based" not in options:
            raise ValueError("say whether the words of these svmlight files are numbered from 0: zero_based=True or False")
        options = {"n_words": n_words, **options}
    reading = read(files, text=text, columns=columns, **options)
    if text is None and reading.format in TABLE_FORMATS:
        raise ValueError("name the column of the text: text=...")
    return reading


def _file_batches(reading: Reading, batches: Iterable[Rows], model: FittedModel) -> Iterator[_Batch]:
    """Batches of rows; one without rows if there are none, for the names of its columns."""
    n_rows = 0
    kept: dict[str, Any] = {name: [] for name in reading.column_names}
    for rows in batches:
        n_rows += len(rows)
        kept = dict(rows.columns)
        if len(rows):
            yield _Batch(kept, rows.counts if rows.texts is None else model.count(rows.texts))
    if not n_rows:
        yield _Batch(kept, np.zeros((0, 0)))


def _corpus_batches(corpus: Corpus, first: int, last: int) -> Iterator[_Batch]:
    """Batches of the documents from `first` on, before `last`; one without any if there are none."""
    for numbers in chunks(last - first, _BATCH_DOCS) if last > first else [np.zeros(0, np.int64)]:
        yield _Batch({"id": corpus.ids(numbers + first)}, corpus.matrix(numbers + first))
