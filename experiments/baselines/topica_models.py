"""topica's supervised LDA, Scholar and LDA as scikit-learn estimators, each with its own defaults.

Documents without a label are left out by the supervised ones, and documents without words by all of them.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from baselines.classes import class_numbers
from baselines.search import labelled
from baselines.tomotopy_models import word_lists

# Scholar predicts classes only: numbers are predicted if they have at most so many values.
MOST_LEVELS = 20


class _Topica(TransformerMixin, BaseEstimator):
    """Topics; `transform` gives topic proportions."""

    def __init__(self, n_topics: int = 20, *, random_state: int = 0, n_jobs: int = 1) -> None:
        self.n_topics = n_topics
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _threads(self) -> int:
        # For topica 0 is all cores.
        return max(self.n_jobs, 0)

    def _keep(self, model: Any, n_words: int) -> None:
        """The topics over all words; one that is in no training document has no probability."""
        self.model_ = model
        self.components_ = np.zeros((self.n_topics, n_words))
        self.components_[:, [int(word) for word in model.vocabulary]] = model.topic_word

    def transform(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return np.asarray(self._proportions(word_lists(X)))

    def _proportions(self, texts: list[list[str]]) -> Any:
        return self.model_.transform(texts, seed=self.random_state)


def _examples(X: Any, y: Any) -> tuple[list[list[str]], np.ndarray]:
    """Words and labels of the documents that have both."""
    texts, y = word_lists(X), np.asarray(y)
    kept = [number for number in np.flatnonzero(labelled(y)) if texts[number]]
    return [texts[number] for number in kept], np.array(y[kept].tolist())


class TopicaLDA(_Topica):
    """LDA by Gibbs sampling."""

    def fit(self, X: Any, y: Any = None) -> Self:
        # Here, and in the others: the other systems do without it.
        import topica

        model = topica.LDA(self.n_topics, seed=self.random_state, num_threads=max(self._threads(), 1))
        model.fit([text for text in word_lists(X) if text], progress=False, keep_theta_draws=False)
        self._keep(model, X.shape[1])
        return self


class _SupervisedLDA(_Topica):
    """Variational EM with a Gaussian response."""

    def _fit(self, texts: list[list[str]], y: np.ndarray, n_words: int) -> None:
        import topica

        model = topica.SupervisedLDA(self.n_topics, seed=self.random_state)
        model.fit(texts, y.astype(float).tolist(), progress=False, keep_theta_draws=False, num_threads=self._threads())
        self._keep(model, n_words)

    def _estimates(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return np.asarray(self.model_.predict(word_lists(X)))


class TopicaSLDARegressor(RegressorMixin, _SupervisedLDA):
    """Numbers, standardised."""

    def fit(self, X: Any, y: Any) -> Self:
        texts, known = _examples(X, np.asarray(y, np.float64))
        self.centre_, self.scale_ = known.mean(), known.std()
        self._fit(texts, (known - self.centre_) / self.scale_, X.shape[1])
        return self

    def predict(self, X: Any) -> np.ndarray:
        return self._estimates(X) * self.scale_ + self.centre_


class TopicaSLDAClassifier(ClassifierMixin, _SupervisedLDA):
    """Two classes as the numbers 0 and 1: topica has no other response."""

    def fit(self, X: Any, y: Any) -> Self:
        self.classes_ = class_numbers(y, only_two=True)[0]
        texts, known = _examples(X, y)
        self._fit(texts, known == self.classes_[1], X.shape[1])
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        return self._estimates(X) - 0.5

    def predict(self, X: Any) -> np.ndarray:
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


class _Scholar(_Topica):
    """Scholar (Card, Tan and Smith, 2018): a variational autoencoder with a classifier of its proportions."""

    def _fit(self, texts: list[list[str]], numbers: np.ndarray, n_words: int) -> None:
        import topica

        model = topica.Scholar(self.n_topics, seed=self.random_state)
        # topica sorts labels as strings.
        model.fit(texts, labels=[f"{number:06d}" for number in numbers], progress=False)
        self._keep(model, n_words)

    def _proportions(self, texts: list[list[str]]) -> Any:
        return self.model_.transform(texts)

    def _chances(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return np.asarray(self.model_.predict_proba(word_lists(X)), np.float64)


class ScholarRegressor(RegressorMixin, _Scholar):
    """The mean of the numbers that occur, by their probabilities."""

    def fit(self, X: Any, y: Any) -> Self:
        texts, known = _examples(X, np.asarray(y, np.float64))
        self.levels_, numbers = np.unique(known, return_inverse=True)
        if len(self.levels_) > MOST_LEVELS:
            raise ValueError(f"Scholar predicts classes: found {len(self.levels_)} numbers, expected at most {MOST_LEVELS}")
        self._fit(texts, numbers, X.shape[1])
        return self

    def predict(self, X: Any) -> np.ndarray:
        return self._chances(X) @ self.levels_


class ScholarClassifier(ClassifierMixin, _Scholar):
    def fit(self, X: Any, y: Any) -> Self:
        texts, known = _examples(X, y)
        self.classes_, numbers = np.unique(known, return_inverse=True)
        self._fit(texts, numbers, X.shape[1])
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        return self._chances(X)

    def predict(self, X: Any) -> np.ndarray:
        return self.classes_[self.predict_proba(X).argmax(axis=1)]
