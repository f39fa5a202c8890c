"""Measures over folds: each document is predicted once, by a model that was fitted to the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mirrorlda.data.corpus.corpus import Corpus
from mirrorlda.evaluation.metrics.prediction import auc, predictive_r2
from mirrorlda.method.inference import check_whole
from mirrorlda.method.targets.record import array_of, without_missing


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """What `cross_validate` returns: a score for each fold.

    Attributes
    ----------
    scores : ndarray of shape (n_folds,)
    mean : float
        Of the scores; NaN if one of them is.
    deviation : float
        Standard deviation of the scores from fold to fold, that of a sample (divided by ``n_folds - 1``).

    Examples
    --------
    >>> import numpy as np
    >>> from mirrorlda.metrics import CrossValidation
    >>> result = CrossValidation(np.array([0.73, 0.75, 0.77]))
    >>> print(result)
    0.7500 (0.0200)
    """

    scores: np.ndarray

    @property
    def mean(self) -> float:
        return float(self.scores.mean())

    @property
    def deviation(self) -> float:
        return float(self.scores.std(ddof=1))

    def __str__(self) -> str:
        return f"{self.mean:.4f} ({self.deviation:.4f})"


def cross_validate(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    n_folds: int = 5,
    measure: Callable[[Any, Any], float] | None = None,
    random_state: int | np.random.RandomState | None = 0,
) -> CrossValidation:
    """Measure of predictions for held-out documents, in folds: the paper's tables are means and deviations of five.

    Documents are shuffled and cut into folds; with a classifier each fold has about the same shares of the classes. For each fold
    a new copy of the estimator is fitted to the documents of the others. Documents without a target (None or NaN) are left out.

    Parameters
    ----------
    estimator : estimator with `fit` and `predict`, or a Pipeline that ends with one
        Any of scikit-learn's kind. It is not changed.
    X : sparse matrix, array, data frame or list of texts
        What the estimator takes, a row or entry for each document.
    y : array of shape (n_docs,) or (n_docs, n_outputs)
        Targets.
    n_folds : int
        At least 2.
    measure : callable, optional
        ``measure(y, predicted)`` of the documents of a fold. By default, of a classifier, `auc` with two classes, where
        `predicted` is ``decision_function(X)`` or ``predict_proba(X)[:, 1]``, and accuracy with more; otherwise `predictive_r2`.
    random_state : int, RandomState or None
        Of the folds; estimators have their own.

    Returns
    -------
    CrossValidation

    Notes
    -----
    The folds are those of scikit-learn's ``KFold(n_folds, shuffle=True, random_state=random_state)``, for classes of its
    ``StratifiedKFold``. Folds share most of the documents that are learned from, so the deviation says how far scores differ from
    fold to fold, not how far the mean could be off.

    Examples
    --------
    >>> from mirrorlda import TopicRegressor
    >>> from mirrorlda.datasets import make_topics
    >>> from mirrorlda.metrics import cross_validate
    >>> data = make_topics(n_docs=1000, n_words=100, n_topics=4, n_outputs=1, random_state=0)
    >>> result = cross_validate(TopicRegressor(n_topics=3, random_state=0), data.X, data.y)
    >>> result.scores.shape, round(result.mean, 2)
    ((5,), 0.87)
    """
    from sklearn.base import clone, is_classifier
    from sklearn.utils import _safe_indexing, indexable

    if isinstance(X, Corpus):
        raise ValueError(f"X must be documents in memory, such as matrix() of a corpus, got {X!r}")
    (X,) = indexable(X)
    targets, _ = without_missing(array_of(y))
    if not targets.ndim:
        raise ValueError(f"y must hold a target for each document, got {y!r}")
    n_docs = X.shape[0] if hasattr(X, "shape") else len(X)
    if n_docs != len(targets):
        raise ValueError(f"X has {n_docs} documents, but y has {len(targets)}")
    if measure is not None and not callable(measure):
        raise ValueError(f"measure must be a function of y and of what is predicted, got {measure!r}")
    has_classes = is_classifier(estimator) and targets.ndim == 1
    if is_classifier(estimator) and not has_classes and measure is None:
        raise ValueError(f"y has shape {targets.shape}: of several labels a document there is no measure by default, give one")
    by_scores = measure is None and has_classes and len(np.unique(targets)) == 2
    of_predictions = measure or (_accuracy if has_classes else predictive_r2)

    scores = []
    for train, test in folds(y, n_folds, is_stratified=has_classes, random_state=random_state):
        model = clone(estimator).fit(_safe_indexing(X, train), targets[train])
        X_test, y_test = _safe_indexing(X, test), targets[test]
        scores.append(auc(y_test, scores_of(model, X_test)) if by_scores else of_predictions(y_test, model.predict(X_test)))
    return CrossValidation(np.array(scores, np.float64))


def folds(
    y: Any, n_folds: int, *, is_stratified: bool = False, random_state: int | np.random.RandomState | None = 0
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Numbers of the documents to learn from and of those to measure, for each fold: all that have a target, shuffled."""
    from sklearn.model_selection import KFold, StratifiedKFold

    targets, labelled = without_missing(array_of(y))
    known = np.arange(len(targets)) if labelled is None else np.flatnonzero(labelled)
    check_whole("n_folds", n_folds)
    if not 2 <= n_folds <= len(known):
        raise ValueError(f"n_folds must be at least 2 and at most the {len(known)} documents with a target, got {n_folds}")
    kind = StratifiedKFold if is_stratified else KFold
    classes = np.unique(targets[known], return_inverse=True)[1] if is_stratified else None
    pairs = kind(n_folds, shuffle=True, random_state=random_state).split(known, classes)
    return [(known[train], known[test]) for train, test in pairs]


def scores_of(model: Any, X: Any) -> Any:
    """Numbers that are the higher, the more a classifier of two classes leans to the second."""
    if hasattr(model, "decision_function"):
        return model.decision_function(X)
    return model.predict_proba(X)[:, 1]


def _accuracy(y: np.ndarray, predicted: Any) -> float:
    return float(np.mean(np.asarray(predicted) == y))
