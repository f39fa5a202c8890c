"""Files in, files out: predictions and topic proportions of any number of documents, a batch at a time."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from mirrorlda.corpus import Corpus
from mirrorlda.examples import ahead, chunks
from mirrorlda.fitting import TopicEstimator
from mirrorlda.progress import counted
from mirrorlda.readers import Reading, read
from mirrorlda.tables import Columns, write_table

_BATCH_DOCS = 8192


def predict_files(
    model: Any,
    files: Any,
    output: str | os.PathLike[str] | IO[bytes],
    *,
    text: str | None = None,
    columns: Sequence[str] | Mapping[str, str] = (),
    topics: bool = False,
    output_format: str | None = None,
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
    columns : sequence of str, or dict
        Columns of the files that are written to the table as they are. Of a corpus, the ids are.
    topics : bool
        Whether topic proportions are written too; those of a `TopicModel` are in any case.
    output_format : {"csv", "tsv", "jsonl", "parquet"}, optional
        In place of the ending.
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
    estimator, steps = _parts(model)
    check_is_fitted(estimator)
    _check_apart(files, output)
    if isinstance(files, Corpus):
        if columns or text is not None or options:
            raise ValueError("a corpus has counts and ids: text, columns and options are for files")
        estimator._check_corpus(files)
        batches = _corpus_batches(files)
    else:
        batches = _file_batches(_reading(files, text, columns, options, estimator), steps)

    def tables() -> Iterator[Columns]:
        for batch in counted(ahead(batches), "predicting", verbose):
            theta = estimator._inferred(steps.scaled(batch.X))
            predicted = estimator._columns(theta)
            if topics or not predicted:
                predicted |= {f"topic_{k}": theta[:, k] for k in range(theta.shape[1])}
            if clash := sorted(set(batch.kept) & set(predicted)):
                raise ValueError(f"the columns {clash} are those of the predictions: leave them out of columns")
            yield {**batch.kept, **predicted}

    return write_table(output, tables(), format=output_format)


@dataclass(frozen=True)
class _Batch:
    """Counts of some documents, and columns that go to the table as they are."""

    kept: dict[str, Any]
    X: Any

    def __len__(self) -> int:
        return int(self.X.shape[0])


@dataclass(frozen=True)
class _Steps:
    """What comes before the estimator: texts to counts, and the steps of a pipeline that come after that."""

    counted: Callable[[list[str]], Any]
    scaled: Callable[[Any], Any]


def _parts(model: Any) -> tuple[TopicEstimator, _Steps]:
    estimator = model[-1] if isinstance(model, Pipeline) else model
    if not isinstance(estimator, TopicEstimator):
        raise ValueError(f"the model must be one of mirrorlda's estimators or end with one, got {type(estimator).__name__}")
    if not isinstance(model, Pipeline):
        return estimator, _Steps(estimator._counted, lambda X: X)
    return estimator, _Steps(model[0].transform, model[1:-1].transform if len(model) > 2 else lambda X: X)


def _check_apart(files: Any, output: Any) -> None:
    """That no file of the input is the output, whose place it would take."""
    if not isinstance(output, str | os.PathLike) or not os.path.exists(output):
        return
    named = [files] if isinstance(files, str | os.PathLike) else files if isinstance(files, list | tuple) else []
    for name in named:
        for found in glob.glob(os.fspath(name), recursive=True) if isinstance(name, str | os.PathLike) else []:
            if os.path.samefile(found, output):
                raise ValueError(f"{os.fspath(output)} is among the files that are read: write the table to another place")


def _reading(files: Any, text: str | None, columns: Any, options: dict[str, Any], estimator: TopicEstimator) -> Reading:
    if read(files, text=text, columns=columns, **options).format == "svmlight":
        # The numbers of words must mean what they did when the model was fitted, not what this file happens to have.
        if "zero_based" not in options:
            raise ValueError("say whether the words of these svmlight files are numbered from 0: zero_based=True or False")
        options = {"n_words": estimator.n_features_in_, **options}
    reading = read(files, text=text, columns=columns, **options)
    if text is None and reading.format in ("csv", "tsv", "jsonl", "parquet"):
        raise ValueError("name the column of the text: text=...")
    return reading


def _file_batches(batches: Reading, steps: _Steps) -> Iterator[_Batch]:
    for rows in batches:
        if len(rows):
            yield _Batch(dict(rows.columns), rows.counts if rows.texts is None else steps.counted(rows.texts))


def _corpus_batches(corpus: Corpus) -> Iterator[_Batch]:
    for numbers in chunks(corpus.n_docs, _BATCH_DOCS):
        yield _Batch({"id": corpus.ids(numbers)}, corpus.matrix(numbers))
