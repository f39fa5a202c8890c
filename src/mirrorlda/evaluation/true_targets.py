"""The documents and targets that a fitted model is judged by, in the model's own terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from mirrorlda.data.corpus.corpus import Corpus
from mirrorlda.evaluation.measures import ClassOutcome, LabelOutcome, NumberOutcome, Outcome
from mirrorlda.method.fitted_model import FittedModel
from mirrorlda.method.targets.classes import Classes, Labels
from mirrorlda.method.targets.numbers import Numbers
from mirrorlda.method.targets.record import array_of, without_missing


@dataclass(frozen=True)
class Truth:
    """Documents that have a target, and their targets.

    Attributes
    ----------
    X : Corpus, texts or counts
    y : ndarray
        Numbers (n_docs, n_targets) in double, class numbers (n_docs,), or labels (n_docs, n_labels) of 0 and 1.
    names : list of str
        Of targets, classes or labels; from `n_known` on, those that the model does not know.
    n_known : int
    n_left_out : int
        Documents without a target.
    notes : list of str
    """

    X: Any
    y: np.ndarray
    names: list[str]
    n_known: int
    n_left_out: int = 0
    notes: list[str] = field(default_factory=list)


def truth_of(model: FittedModel, X: Any, y: Any) -> Truth:
    """Documents of X that have a target, with it: that of y, or that of a corpus."""
    labels: Sequence[Any] | None = None
    if isinstance(X, Corpus):
        if y is not None:
            raise ValueError("a corpus holds its targets: give it without y")
        n_docs, X = X.n_docs, X.select(labelled=True)
        if not X.n_docs:
            raise ValueError(f"there is nothing to measure: no document of {X!r} has a target")
        values = X.targets(np.arange(X.n_docs))[0]
        if isinstance(model.targets, Labels) and values.ndim == 2:
            labels = X.labels
        else:
            values = model.targets.aligned(values, X)
        n_left_out = n_docs - X.n_docs
    else:
        X, values, n_left_out = _without_missing(model, X, y)
    notes = [f"{_documents(n_left_out)} without a target left out"] if n_left_out else []
    if isinstance(model.targets, Numbers):
        names = model.targets.names
        return Truth(X, _numbers(values, model.targets.n_targets), names, len(names), n_left_out, notes)
    if isinstance(model.targets, Labels):
        coded = _labels(model.targets, values, labels)
    else:
        assert isinstance(model.targets, Classes)
        coded = _classes(model.targets, values)
    return Truth(X, *coded[:-1], n_left_out, notes + coded[-1])


def outcome_of(model: FittedModel, truth: Truth, theta: np.ndarray) -> Outcome:
    """What the model predicts for documents with these topic proportions, beside what is true."""
    scores, targets = model.scores(theta).astype(np.float64), model.targets
    if isinstance(targets, Numbers):
        predicted = np.asarray(targets.predict(scores), np.float64).reshape(len(scores), -1)
        if predicted.shape != truth.y.shape:
            raise ValueError(
                f"the response predicts {predicted.shape[1]} numbers for a document that has {truth.y.shape[1]}: there is no "
                "measure of the two"
            )
        return NumberOutcome(truth.names, truth.y, predicted)
    return beside(truth, targets.response.predict(scores), targets.probabilities(scores))


def beside(truth: Truth, predicted: np.ndarray, probabilities: np.ndarray | None) -> Outcome:
    """Predicted class numbers, or labels of the model, beside what is true."""
    if truth.y.ndim == 1:
        return ClassOutcome(truth.names, truth.n_known, truth.y, predicted, probabilities)
    unknown = np.zeros((len(truth.y), len(truth.names) - truth.n_known), np.int8)
    return LabelOutcome(truth.names, truth.n_known, truth.y, np.hstack([predicted, unknown]), probabilities)


def _without_missing(model: FittedModel, X: Any, y: Any) -> tuple[Any, np.ndarray, int]:
    """Documents and targets without those that have none: None, NaN, or -1 where it is no class of the model."""
    if y is None:
        raise ValueError("y is missing: there is nothing to compare the predictions with")
    n_docs = model.collection(X).n_docs
    if not n_docs:
        raise ValueError("there is nothing to measure: X has no documents")
    values, has_target = without_missing(array_of(y))
    if len(values) != n_docs:
        raise ValueError(f"X has {n_docs} documents, but y has {len(values)}")
    has_target = np.ones(n_docs, bool) if has_target is None else has_target
    known = getattr(model.targets, "known", None)
    if known is not None and values.ndim == 1 and values.dtype.kind == "i" and -1 not in known:
        has_target &= values != -1
        if not has_target.any():
            raise ValueError(f"y has no targets: all {n_docs} are -1")
    if has_target.all():
        return X, values, 0
    kept = np.flatnonzero(has_target)
    return _safe_indexing(X, kept), values[kept], n_docs - len(kept)


def _numbers(values: np.ndarray, n_targets: int) -> np.ndarray:
    if values.dtype.kind not in "fiub" and not all(isinstance(value, Real) for value in values.ravel()):
        raise ValueError(f"y must hold numbers, got {values.dtype}: {values.ravel()[:3].tolist()}")
    numbers = values.astype(np.float64).reshape(len(values), -1)
    if numbers.shape[1] != n_targets:
        raise ValueError(f"y has {numbers.shape[1]} targets a document, but the model has {n_targets}")
    if not np.isfinite(numbers).all():
        row, column = np.argwhere(~np.isfinite(numbers))[0]
        raise ValueError(f"y[{row}] is {numbers[row, column]}, expected a finite number")
    return numbers


def _classes(targets: Classes, values: np.ndarray) -> tuple[np.ndarray, list[str], int, list[str]]:
    """Class numbers, names and notes; classes that the model does not know come after its own."""
    values = targets.shaped(values)
    names, places = targets.names, {label: place for place, label in enumerate(targets.known.tolist())}
    n_known = len(names)
    present = values.tolist()
    numbers = np.array([places.setdefault(value, len(places)) for value in present], np.int64)
    if len(places) == n_known:
        return numbers, names, n_known, []
    unknown = list(places)[n_known:]
    if (numbers >= n_known).all():
        raise ValueError(f"y has the classes {_listed(unknown)}, none of which the model knows: it knows {_listed(list(places))}")
    count = int((numbers >= n_known).sum())
    note = (
        f"{_documents(count)} of classes that the model does not know ({_listed(unknown)}): they count as wrong in accuracy and "
        f"F1, and are left out of the other measures"
    )
    return numbers, names + [str(name) for name in unknown], n_known, [note]


def _labels(targets: Labels, values: np.ndarray, labels: Sequence[Any] | None) -> tuple[np.ndarray, list[str], int, list[str]]:
    """0 and 1 for each label of the model, then for those that it does not know; `labels` are what the columns stand for."""
    names = targets.names
    if values.ndim != 2 or (labels is None and values.shape[1] != len(names)):
        raise ValueError(f"y has shape {values.shape}, expected (n_docs, {len(names)}), the labels of the model")
    if not ((values == 0) | (values == 1)).all():
        row, column = np.argwhere((values != 0) & (values != 1))[0]
        raise ValueError(f"y[{row}, {column}] is {values[row, column]}, expected 0 or 1")
    if labels is None:
        return values.astype(np.int8), names, len(names), []
    places = {label: place for place, label in enumerate(targets.known.tolist())}
    n_known = len(places)
    columns = [places.setdefault(label, len(places)) for label in labels]
    unknown = list(places)[n_known:]
    if unknown and len(unknown) == len(labels):
        raise ValueError(
            f"the corpus has the labels {_listed(unknown)}, none of which the model knows: it knows {_listed(names)}"
        )
    aligned = np.zeros((len(values), len(places)), np.int8)
    aligned[:, columns] = values
    used: np.ndarray = aligned[:, n_known:].max(axis=0, initial=0) > 0
    aligned = np.hstack([aligned[:, :n_known], aligned[:, n_known:][:, used]])
    unknown = [label for place, label in enumerate(unknown) if used[place]]
    note = (
        f"labels that the model does not know ({_listed(unknown)}) count as not predicted in F1 and accuracy, and are left out "
        f"of the other measures"
    )
    return aligned, names + [str(name) for name in unknown], n_known, [note] if unknown else []


def _listed(names: list[Any]) -> str:
    return ", ".join(map(repr, names[:5])) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _documents(n: int) -> str:
    return f"{n:,} document{'' if n == 1 else 's'}"
