"""What an explanation is of: one number that a model says of a document, and its gradient with respect to theta."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from mirrorlda.estimators.supervised import SupervisedTopicEstimator
from mirrorlda.inspect.topics import effects
from mirrorlda.method.responses import Ordinal, Poisson, SquaredError

# Of central differences: the cube root of the rounding, where the errors of rounding and of the third derivative meet.
_STEP = float(np.cbrt(np.finfo(np.float64).eps))
_MOST_NAMES = 20


@dataclass(frozen=True)
class Output:
    """One number of a model, as a function of the scores U theta.

    Attributes
    ----------
    name : str
        The target, class or label.
    unit : {"prediction", "log odds", "score"}
        In the unit of y; logarithm of p / (1 - p); what a classifier with a response of its user's own has.
    U : ndarray of float64, shape (n_outputs, n_topics)
    of_scores : function from scores (n_docs, n_outputs) to values (n_docs,)
    slopes : function from the scores (n_outputs,) of one document to the gradient of its value
    """

    name: str
    unit: str
    U: np.ndarray
    of_scores: Callable[[np.ndarray], np.ndarray]
    slopes: Callable[[np.ndarray], np.ndarray]

    def value(self, theta: np.ndarray) -> np.ndarray:
        """Values (n_docs,) of documents with these topic proportions."""
        return self.of_scores(theta @ self.U.T)

    def gradient(self, theta: np.ndarray) -> np.ndarray:
        """Gradient (n_topics,) of one document's value."""
        gradient: np.ndarray = self.slopes(self.U @ theta) @ self.U
        return gradient


def output_of(estimator: SupervisedTopicEstimator, name: Any, theta: np.ndarray) -> Output:
    """The output of that name; without one, the first target, the predicted class, of two the second, or the likeliest label."""
    U = np.asarray(estimator._fitted_U(), np.float64)
    scores = U @ theta
    if not hasattr(estimator, "classes_"):
        names = effects(estimator)[0]
        number = _chosen(name, names, 0)
        return Output(
            names[number],
            "prediction",
            U,
            lambda scores: estimator._predicted(scores)[:, number].astype(np.float64),
            lambda scores: _prediction_slopes(estimator, scores, number),
        )
    names = [str(c) for c in estimator.classes_]
    if len(names) != len(U):
        names = [f"score {number}" for number in range(len(U))]
    are_classes = len(names) == len(estimator.classes_) and not estimator._is_multilabel
    number = _chosen(name, names, 1 if are_classes and len(names) == 2 else int(scores.argmax()))
    one = np.eye(len(U))[number]
    if estimator.response is not None:
        # How such scores become probabilities is not known: classes are compared with the mean of the others.
        weights = one - (1 - one) / (len(U) - 1) if are_classes else one
        return Output(names[number], "score", U, lambda scores: scores @ weights, lambda scores: weights)
    gamma = float(estimator.gamma)
    if not are_classes:
        return Output(names[number], "log odds", U, lambda scores: gamma * scores[:, number], lambda scores: gamma * one)
    return Output(
        names[number],
        "log odds",
        U,
        lambda scores: _log_odds(gamma * scores, number),
        lambda scores: gamma * (one - _others(gamma * scores, number)),
    )


def _chosen(name: Any, names: list[str], default: int) -> int:
    if name is None:
        return default
    if str(name) not in names:
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        raise ValueError(f"the model has no output {name!r}; its outputs are {', '.join(names[:_MOST_NAMES])}{more}")
    return names.index(str(name))


def _log_odds(scores: np.ndarray, number: int) -> np.ndarray:
    """ln(p / (1 - p)) of one class under the softmax: its score over the logarithm of the sum of the others' exponentials."""
    others = np.delete(scores, number, axis=1)
    largest = others.max(axis=1)
    log_odds: np.ndarray = scores[:, number] - largest - np.log(np.exp(others - largest[:, None]).sum(axis=1))
    return log_odds


def _others(scores: np.ndarray, number: int) -> np.ndarray:
    """Probabilities of the classes given that it is not this one."""
    others = np.where(np.arange(len(scores)) == number, -np.inf, scores)
    exponentials = np.exp(others - others.max())
    p: np.ndarray = exponentials / exponentials.sum()
    return p


def _prediction_slopes(estimator: Any, scores: np.ndarray, number: int) -> np.ndarray:
    """Gradient of a predicted number with respect to the scores (n_outputs,) of one document."""
    response = estimator._response()
    slopes = np.zeros(len(scores))
    if type(response) is SquaredError:
        slopes[number] = estimator._scale[number]
        return slopes
    if type(response) is Poisson:
        bounded, mean = response._bounded(scores)
        slopes[number] = mean[number] if bounded[number] == scores[number] else 0.0
        return slopes
    if type(response) is Ordinal:
        levels = estimator.levels_ if hasattr(estimator, "levels_") else np.arange(response.n_levels)
        # The expected level is the first plus all steps that are climbed, each times the probability that it is reached.
        steps = np.diff(levels.astype(np.float64))
        reached = 1 - np.cumsum(response.probabilities(scores[None])[0])[:-1]
        slopes[:] = response.gamma * expit(-response.gamma * scores) * np.cumsum((steps * reached)[::-1])[::-1]
        return slopes
    sizes = _STEP * np.maximum(1, np.abs(scores))
    around = np.concatenate([scores + np.diag(sizes), scores - np.diag(sizes)])
    above, below = np.split(estimator._predicted(around)[:, number], 2)
    slopes[:] = (above - below) / (2 * sizes)
    return slopes
