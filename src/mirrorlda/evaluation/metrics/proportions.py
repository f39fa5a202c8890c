"""How few topics a document has."""

from __future__ import annotations

from typing import Any

import numpy as np

# Sums of proportions are as exact as float32.
_ROUNDING = 1e-6
_OFF_ONE = 1e-3


def sparsity(theta: Any, mass: float = 0.9) -> float:
    """Share of the topics that are dominant in a document, mean of the documents: the smaller, the sparser (Chen et al., 2015).

    The dominant topics of a document are the fewest whose proportions add up to `mass`.

    Parameters
    ----------
    theta : array of shape (n_docs, n_topics)
        Topic proportions, as `transform` returns them: each row adds up to one.
    mass : float
        Above 0, at most 1. Reached within 1e-6 is reached.

    Returns
    -------
    float
        Between ``1 / n_topics`` and 1.

    Notes
    -----
    All rows count. A document without words has the proportions of the prior, equal ones as a rule, and is not sparse; leave it
    out with ``theta[X.sum(axis=1) > 0]``.

    Examples
    --------
    >>> from mirrorlda.metrics import sparsity
    >>> sparsity([[0.9, 0.1, 0.0, 0.0], [0.4, 0.3, 0.2, 0.1]])
    0.5
    >>> sparsity([[0.9, 0.1, 0.0, 0.0], [0.4, 0.3, 0.2, 0.1]], mass=0.5)
    0.375
    """
    if not 0 < mass <= 1:
        raise ValueError(f"mass must be above 0 and at most 1, got {mass}")
    proportions = np.asarray(theta, np.float64)
    if proportions.ndim != 2 or not proportions.size:
        raise ValueError(f"theta must have shape (n_docs, n_topics), neither of them 0, got {proportions.shape}")
    wrong = np.argwhere(~(proportions >= 0))
    if len(wrong):
        document, topic = wrong[0]
        raise ValueError(f"theta[{document}, {topic}] is {proportions[document, topic]}, expected a proportion, at least 0")
    # From the largest on; the last sum is that of the row.
    sums = np.cumsum(-np.sort(-proportions, axis=1), axis=1)
    off = np.flatnonzero(~(np.abs(sums[:, -1] - 1) <= _OFF_ONE))
    if len(off):
        raise ValueError(f"the proportions of document {off[0]} add up to {sums[off[0], -1]:g}, expected 1")
    n_dominant = 1 + (sums < mass * sums[:, -1:] - _ROUNDING).sum(axis=1)
    return float(n_dominant.mean() / proportions.shape[1])
