"""How near predicted numbers are to the true ones."""

from __future__ import annotations

from typing import Any

import numpy as np


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
