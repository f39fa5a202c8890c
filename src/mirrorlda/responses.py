"""What stands on top of theta: the loss of predicted scores, and its gradient.

The scores of a document are U theta. A response is any object with the attributes of `Response`; a new one takes a few
lines, and everything below it (inference, back-propagation, learning) stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np


class Response(Protocol):
    """What learning asks of a response.

    Attributes
    ----------
    word_weight : float
        Weight of the documents' own likelihood, -ln p(x | theta, Phi), in the loss: 1 for BP-LDA, 0 for BP-sLDA.

    Examples
    --------
    Counts as targets, with a Poisson distribution; ``TopicRegressor(response=Poisson())`` learns with it:

    >>> import numpy as np
    >>> class Poisson:
    ...     word_weight = 0.0
    ...     def loss(self, scores, y):
    ...         mean = np.exp(scores)
    ...         return (mean - y * scores).sum(axis=1), mean - y
    ...     def predict(self, scores):
    ...         return np.exp(scores)
    ...     def score(self, scores, losses, y, weights):
    ...         return -np.average(losses, weights=weights)
    >>> loss, grad_scores = Poisson().loss(np.zeros((1, 1)), np.array([[3.0]]))
    >>> loss, grad_scores
    (array([1.]), array([[-2.]]))
    """

    word_weight: float

    def loss(self, scores: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Loss of each document (n_docs,) and its gradient with respect to the scores (n_docs, n_outputs)."""
        ...

    def predict(self, scores: np.ndarray) -> np.ndarray:
        """The targets that the scores stand for, in the form of y."""
        ...

    def score(self, scores: np.ndarray, losses: np.ndarray, y: np.ndarray, weights: np.ndarray) -> float:
        """One number for the history and for early stopping, higher is better."""
        ...


@dataclass(frozen=True)
class SquaredError:
    """Gaussian regression: y ~ N(U theta, 1 / gamma), any number of outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from mirrorlda.responses import SquaredError
    >>> SquaredError(gamma=2.0).loss(np.array([[1.0]]), np.array([[4.0]]))
    (array([9.]), array([[-6.]]))
    """

    gamma: float = 1.0
    word_weight = 0.0

    def loss(self, scores: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        error = scores - y
        return 0.5 * self.gamma * (error * error).sum(axis=1), self.gamma * error

    def predict(self, scores: np.ndarray) -> np.ndarray:
        return scores

    def score(self, scores: np.ndarray, losses: np.ndarray, y: np.ndarray, weights: np.ndarray) -> float:
        """R2, averaged over outputs; 0 for a target that is constant."""
        w = weights[:, None] / weights.sum()
        residual = (w * (y - scores) ** 2).sum(axis=0)
        spread = (w * (y - (w * y).sum(axis=0)) ** 2).sum(axis=0)
        return float(np.mean(1 - np.divide(residual, spread, out=np.ones_like(residual), where=spread > 0)))


@dataclass(frozen=True)
class Softmax:
    """Classification: y ~ Multinomial(softmax(gamma U theta)); y holds class numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from mirrorlda.responses import Softmax
    >>> loss, grad_scores = Softmax().loss(np.array([[0.0, 0.0]]), np.array([1]))
    >>> loss.round(3), grad_scores
    (array([0.693]), array([[ 0.5, -0.5]]))
    """

    gamma: float = 1.0
    word_weight = 0.0

    def log_probabilities(self, scores: np.ndarray) -> np.ndarray:
        """ln softmax(gamma scores), class by class."""
        shifted = self.gamma * (scores - scores.max(axis=1, keepdims=True))
        log_p: np.ndarray = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        return log_p

    def loss(self, scores: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        log_p = self.log_probabilities(scores)
        gradient = np.exp(log_p)
        gradient[np.arange(len(y)), y] -= 1
        return -log_p[np.arange(len(y)), y], self.gamma * gradient

    def predict(self, scores: np.ndarray) -> np.ndarray:
        numbers: np.ndarray = scores.argmax(axis=1)
        return numbers

    def score(self, scores: np.ndarray, losses: np.ndarray, y: np.ndarray, weights: np.ndarray) -> float:
        """Accuracy."""
        return float(np.average(self.predict(scores) == y, weights=weights))


@dataclass(frozen=True)
class Words:
    """BP-LDA: no outputs; the loss is the documents' own, -ln p(x | theta, Phi) with theta held; y holds their lengths.

    Examples
    --------
    >>> from mirrorlda.responses import Words
    >>> Words().word_weight
    1.0
    """

    word_weight = 1.0

    def loss(self, scores: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(len(scores)), scores

    def predict(self, scores: np.ndarray) -> np.ndarray:
        return scores

    def score(self, scores: np.ndarray, losses: np.ndarray, y: np.ndarray, weights: np.ndarray) -> float:
        """Mean log-likelihood of a word."""
        return float(-(weights * losses).sum() / max((weights * y).sum(), np.finfo(np.float64).tiny))
