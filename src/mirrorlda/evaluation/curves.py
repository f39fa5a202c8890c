"""What an evaluation draws: plain lists of numbers, few enough for a page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from mirrorlda.evaluation.measures import N_BINS, ClassOutcome, LabelOutcome, NumberOutcome, Outcome, auc_of, bins_of

_MOST_POINTS = 200
_MOST_CURVES = 20
_MOST_SHOWN = 1000
_MOST_CLASSES = 50
_N_RESIDUAL_BINS = 40
OTHERS = "other classes"


def curves_of(outcome: Outcome, random_state: Any = 0) -> dict[str, Any]:
    """Scatter and residuals of numbers; confusion, ROC and calibration of classes; ROC, calibration and a table of labels."""
    if isinstance(outcome, NumberOutcome):
        return _of_numbers(outcome, np.random.default_rng(random_state))
    if isinstance(outcome, ClassOutcome):
        return {"confusion": _confusion(outcome)} | _of_classes(outcome)
    if isinstance(outcome, LabelOutcome):
        return _of_labels(outcome) | {"labels": _label_table(outcome)}
    return {}


def _of_numbers(outcome: NumberOutcome, rng: np.random.Generator) -> dict[str, Any]:
    n = outcome.n_docs
    shown = np.arange(n) if n <= _MOST_SHOWN else np.sort(rng.choice(n, _MOST_SHOWN, replace=False))
    scatter, residuals = [], []
    for name, truth, predicted in zip(outcome.names, outcome.truth.T, outcome.predicted.T, strict=True):
        scatter.append({"name": name, "truth": _plain(truth[shown]), "predicted": _plain(predicted[shown])})
        counts, edges = np.histogram(truth - predicted, _N_RESIDUAL_BINS)
        residuals.append({"name": name, "edges": _plain(edges), "counts": counts.tolist()})
    return {"scatter": scatter, "residuals": residuals}


def _confusion(outcome: ClassOutcome) -> dict[str, Any]:
    """Rows are the truth; of many classes the most frequent ones, in their order, and the others together."""
    n, truth, predicted, labels = len(outcome.names), outcome.truth, outcome.predicted, list(outcome.names)
    if n > _MOST_CLASSES:
        kept = _most_frequent(np.bincount(truth, minlength=n), _MOST_CLASSES - 1)
        places = np.full(n, len(kept))
        places[kept] = np.arange(len(kept))
        truth, predicted, labels = places[truth], places[predicted], [labels[c] for c in kept] + [OTHERS]
    counts = np.bincount(truth * len(labels) + predicted, minlength=len(labels) ** 2)
    return {"labels": labels, "counts": counts.reshape(len(labels), -1).tolist()}


def _of_classes(outcome: ClassOutcome) -> dict[str, Any]:
    if outcome.probabilities is None or not outcome.is_known.any():
        return {}
    known = outcome.is_known
    p, truth = outcome.probabilities[known], outcome.truth[known]
    frequent = _most_frequent(np.bincount(truth, minlength=outcome.n_known), _MOST_CURVES)
    shown = [1] if outcome.n_known == 2 else frequent.tolist()
    name = outcome.names[1] if outcome.n_known == 2 else "predicted class"
    return {
        "roc": _rocs((outcome.names[c], truth == c, p[:, c]) for c in shown),
        "calibration": [_calibration(name, *outcome.confidence())],
    }


def _of_labels(outcome: LabelOutcome) -> dict[str, Any]:
    if outcome.probabilities is None:
        return {}
    truth, p = outcome.truth[:, : outcome.n_known] != 0, outcome.probabilities
    shown = _most_frequent(truth.sum(axis=0), _MOST_CURVES).tolist()
    return {
        "roc": _rocs((outcome.names[c], truth[:, c], p[:, c]) for c in shown),
        "calibration": [_calibration(outcome.names[c], p[:, c], truth[:, c]) for c in shown],
    }


def _label_table(outcome: LabelOutcome) -> list[dict[str, Any]]:
    """Precision without a prediction, recall without a document and F1 without either are null."""
    truth, predicted = outcome.truth != 0, outcome.predicted != 0
    columns = (truth & predicted).sum(axis=0), truth.sum(axis=0), predicted.sum(axis=0)
    return [
        {
            "name": name,
            "n_docs": true,
            "precision": right / claimed if claimed else None,
            "recall": right / true if true else None,
            "F1": 2 * right / (true + claimed) if true + claimed else None,
        }
        for name, right, true, claimed in zip(outcome.names, *(column.tolist() for column in columns), strict=True)
    ]


def _rocs(curves: Iterable[tuple[str, np.ndarray, np.ndarray]]) -> list[dict[str, Any]]:
    """Those of classes that some documents are of, and some are not."""
    from sklearn.metrics import roc_curve

    found = []
    for name, positive, scores in curves:
        if positive.any() and not positive.all():
            fpr, tpr, _ = roc_curve(positive, scores)
            if len(fpr) > _MOST_POINTS:
                places = np.searchsorted(fpr + tpr, np.linspace(0, 2, _MOST_POINTS)).clip(0, len(fpr) - 1)
                places[-1] = len(fpr) - 1
                fpr, tpr = fpr[np.unique(places)], tpr[np.unique(places)]
            found.append({"name": name, "fpr": _plain(fpr), "tpr": _plain(tpr), "auc": auc_of(positive, scores)[0]})
    return found


def _calibration(name: str, p: np.ndarray, came_true: np.ndarray) -> dict[str, Any]:
    """Mean probability and how often it came true, bin by bin."""
    bins = bins_of(p)
    counts = np.bincount(bins, minlength=N_BINS)
    filled = counts > 0
    means = [np.bincount(bins, values, N_BINS)[filled] / counts[filled] for values in (p, came_true)]
    return {"name": name, "predicted": _plain(means[0]), "observed": _plain(means[1]), "counts": counts[filled].tolist()}


def _most_frequent(counts: np.ndarray, most: int) -> np.ndarray:
    """Numbers of the classes with the largest counts, ascending."""
    return np.sort(np.argsort(-counts, kind="stable")[:most])


def _plain(values: np.ndarray) -> list[float]:
    """Six digits of each."""
    return [float(f"{value:.6g}") for value in values.tolist()]
