"""What classifier and regressor share: their parameters, and documents without a target."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.validation import check_is_fitted

from mirrorlda import _core
from mirrorlda.fitting import TopicEstimator
from mirrorlda.responses import Response
from mirrorlda.training import Examples

# Documents without a target get the model's own, so often; one round is enough for ratings, classes gain until the third.
_N_ROUNDS = 3
_ROUND_EPOCHS = 4

SUPERVISED_PARAMETERS = """n_topics : int or "auto", default="auto"
        Number of topics; more of them than the data support stay almost empty. "auto" is 20, or one for each class where
        there are more.
    alpha : float, array of shape (n_topics,) or "auto", default=1.05
        Dirichlet parameter of the topic proportions; below 1 they become sparse. "auto" estimates one for each topic, with a
        mean of 1.05.
    n_layers : int or "auto", default="auto"
        Mirror-descent layers that infer the topic proportions; "auto" is 5 for numbers and 4 for classes.
    n_epochs : int, default=10
        Passes over the documents.
    learning_rate : float, default=0.01
        Of the topics, relative to the root mean square of each topic's gradients.
    coef_learning_rate : float, default=0.5
        Of the coefficients, relative to the curvature of the loss.
    word_learning_rate : float, default=0.03
        Of the words' weights, relative to the root mean square of their gradients; with 0 every word counts as it is.
    word_dropout : float, default=0.25
        Fraction of each document's words that a training step leaves out, others each time.
    generative_weight : float, default=0.0
        Weight of the documents' own likelihood, in nats a word of the mean document, beside the loss of the predictions."""


class SupervisedTopicEstimator(TopicEstimator):
    """A response on top of the topics."""

    gamma: float
    response: Any
    _fitted_response: Response

    def _response(self) -> Response:
        return self._fitted_response

    def _check_gamma(self) -> None:
        if not (np.isfinite(self.gamma) and self.gamma > 0):
            raise ValueError(f"gamma must be positive and finite, got {self.gamma!r}")

    def _fit_labelled(self, examples: Examples, labelled: np.ndarray, response: Response) -> None:
        """Train on all documents; those without a target take the model's own prediction for one, and training is repeated."""
        if labelled.all():
            self._fit(examples, response)
            return
        known, unknown = np.flatnonzero(labelled), np.flatnonzero(~labelled)
        self._fit(examples.take(known), response)
        without_target = examples.documents.take(unknown)
        share = len(known) / len(labelled)
        n_epochs = min(self._n_epochs(), max(_ROUND_EPOCHS, int(np.ceil(share * self._n_epochs()))))
        for _ in range(_N_ROUNDS):
            y = examples.y.copy()
            y[unknown] = response.targets(self._scores_of(self._theta(without_target)))
            self._fit(replace(examples, y=y), response, n_epochs=n_epochs)
        self._summarise(examples.take(known), seen_weight=0.0)

    def _scores(self, X: Any) -> np.ndarray:
        """U theta, shape (n_docs, n_outputs)."""
        check_is_fitted(self)
        return self._scores_of(self._theta(self._documents(X)))

    def _scores_of(self, theta: np.ndarray) -> np.ndarray:
        return _core.scores(theta, np.ascontiguousarray(self._fitted_U(), theta.dtype), effective_n_jobs(self.n_jobs))


def without_missing(y: Any) -> tuple[Any, np.ndarray | None]:
    """y with a placeholder wherever None or NaN stands, and which documents have a target; None where all have one."""
    array = np.asarray(y) if y is not None and not hasattr(y, "toarray") else None
    if array is None or array.ndim == 0 or array.dtype.kind not in "fO":
        return y, None
    if array.dtype.kind == "f":
        missing = np.isnan(array)
    else:
        missing = np.array([v is None or type(v).__name__ == "NAType" or v != v for v in array.ravel()], bool).reshape(
            array.shape
        )
    wide = missing.reshape(len(array), -1)
    absent = wide.any(axis=1)
    if (partly := absent & ~wide.all(axis=1)).any():
        raise ValueError(f"y[{np.argmax(partly)}] has some targets but not all: give all of a document, or none")
    if not absent.any():
        return y, None
    if absent.all():
        raise ValueError(f"y has no targets: all {len(absent)} are None or NaN")
    filled = array.copy()
    filled[absent] = filled[np.argmin(absent)]
    if filled.dtype.kind == "O" and len({type(v) for v in filled.ravel()}) == 1:
        filled = np.array(filled.tolist())
    return filled, ~absent
