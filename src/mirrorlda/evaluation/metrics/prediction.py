"""How right predictions are: numbers, and the order of scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from mirrorlda.method.targets.record import array_of, without_missing


def predictive_r2(y: Any, predicted: Any) -> float:
    """Predictive R2 of documents that the model was not fitted to: 1 if all is right, 0 for the mean of `y`, below 0 for worse.

    It is ``1 - sum((y - predicted)**2) / sum((y - mean(y))**2)``, with the mean of the documents measured, not of those fitted
    to (Chen et al., 2015, section 5).

    Parameters
    ----------
    y : array of shape (n_docs,) or (n_docs, n_outputs)
        True numbers.
    predicted : array of as many
        What the model predicts for the same documents.

    Returns
    -------
    float
        Of several outputs the mean. Where an output is the same number in all documents it is not defined, and NaN.

    Notes
    -----
    It equals scikit-learn's ``r2_score(y, predicted)``, which has 0 or 1 in place of NaN.

    Examples
    --------
    >>> from mirrorlda.metrics import predictive_r2
    >>> predictive_r2([1, 2, 3], [1, 2, 4])
    0.5
    >>> predictive_r2([1, 2, 3], [2, 2, 2])
    0.0
    """
    truth, guess = _outputs("y", y), _outputs("predicted", predicted)
    if truth.shape != guess.shape:
        raise ValueError(f"predicted must have the shape of y, got {np.shape(predicted)} for {np.shape(y)}")
    errors = ((truth - guess) ** 2).sum(axis=0)
    spread = ((truth - truth.mean(axis=0)) ** 2).sum(axis=0)
    # Rounding of the mean would give constant numbers some spread.
    spread[(truth == truth[0]).all(axis=0)] = np.nan
    return float((1 - errors / spread).mean())


def auc(y: Any, scores: Any) -> float:
    """Area under the ROC curve of two classes: 1 if the scores tell them apart, 0.5 for guesses, below for worse.

    It is the share of the pairs of a document of the first class and one of the second in which the latter has the higher score.
    Equal scores count half.

    Parameters
    ----------
    y : array of shape (n_docs,)
        True classes, of two kinds; the second in sorted order is the one that high scores stand for.
    scores : array of shape (n_docs,)
        Numbers that are the higher, the more the model leans to the second class: ``decision_function(X)`` or
        ``predict_proba(X)[:, 1]``. Only their order matters.

    Returns
    -------
    float
        Where all documents are of one class it is not defined, and NaN.

    Notes
    -----
    It equals scikit-learn's ``roc_auc_score(y, scores)``.

    Examples
    --------
    >>> from mirrorlda.metrics import auc
    >>> auc(["bad", "good", "bad", "good"], [0.1, 0.4, 0.6, 0.9])
    0.75
    >>> auc([0, 1, 1], [0.5, 0.5, 0.5])
    0.5
    """
    classes, numbers = array_of(y), np.asarray(scores, np.float64)
    if classes.ndim != 1 or not classes.size:
        raise ValueError(f"y must be of shape (n_docs,), with a class at least, got {classes.shape}")
    if numbers.shape != classes.shape:
        raise ValueError(f"scores must have the shape of y, one for each document, got {numbers.shape} for {classes.shape}")
    _, labelled = without_missing(classes)
    if labelled is not None:
        document = int(np.argmin(labelled))
        raise ValueError(f"y has {classes[document]} for document {document}: expected a class")
    if np.isnan(numbers).any():
        raise ValueError(f"scores has nan for document {np.isnan(numbers).argmax()}: expected a number")
    kinds = np.unique(classes)
    if len(kinds) > 2:
        raise ValueError(f"y has {len(kinds)} classes, {', '.join(map(repr, kinds[:3].tolist()))} among them: expected two")
    if len(kinds) < 2:
        return float("nan")
    is_second = classes == kinds[1]
    return float(share_below(numbers[is_second], numbers[~is_second]).mean())


def share_below(values: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Of each value, the share of the others that are below it; equal ones count half."""
    ascending = np.sort(others)
    both: Any = np.searchsorted(ascending, values, "left") + np.searchsorted(ascending, values, "right")
    share: np.ndarray = both / (2 * len(ascending))
    return share


def _outputs(name: str, values: Any) -> np.ndarray:
    """Numbers of shape (n_docs, n_outputs)."""
    numbers = np.asarray(values, np.float64)
    if numbers.ndim not in (1, 2) or not numbers.size:
        raise ValueError(f"{name} must be of shape (n_docs,) or (n_docs, n_outputs), with a number at least, got {numbers.shape}")
    numbers = numbers.reshape(len(numbers), -1)
    wrong = np.argwhere(~np.isfinite(numbers))
    if len(wrong):
        document, output = wrong[0]
        raise ValueError(f"{name} has {numbers[document, output]} for document {document}, output {output}: expected numbers")
    return numbers
