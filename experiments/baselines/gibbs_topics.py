"""Supervised topics by collapsed Gibbs sampling: what max-margin and logistic models share.

The response of a document depends on f = eta zbar, where zbar are the shares of topics among its words. Data augmentation makes
its likelihood exp(a f - b f^2 / 2), with a and b that depend on the loss alone: see `gibbs_medlda` and `gibbs_slda`.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from baselines.classes import class_numbers, signs

# Sweeps over a new document: the first are left out, the mean over the others is kept.
BURN_IN, KEPT = 20, 30
# Larger whole numbers are not all float32.
MOST_COUNTED = 2**24


@cache
def _sampler() -> Any:
    # Here: the other systems do without numba, which takes a second to import.
    try:
        return import_module("baselines.gibbs_sampler")
    except ImportError as error:
        raise ImportError("numba was not found, which the Gibbs samplers are compiled by: pip install numba") from error


def _tokens(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """The column of each word, document after document, and where the documents begin and end."""
    counts = X.data.astype(np.int64)
    if (counts != X.data).any() or (counts < 0).any():
        raise ValueError("X must hold counts of words: found a number that is negative or not whole")
    words = np.repeat(X.indices.astype(np.int32), counts)
    return words, np.concatenate([[0], counts.cumsum()])[X.indptr]


def _table(rows: np.ndarray, topics: np.ndarray, n_rows: int, width: int) -> np.ndarray:
    """How many of the words of each row have each topic."""
    counts = np.bincount(rows.astype(np.int64) * width + topics, minlength=n_rows * width)
    return counts.reshape(n_rows, width).astype(np.float32)


class GibbsTopics(BaseEstimator):
    """One or more responses that share their topics; a response that is NaN is unknown.

    Kinds of response define `_augment(Y, F, known, rng)`: a and b for the responses Y (n_docs, n_outputs), given F = eta zbar.
    They are not used where `known` is false.
    """

    def __init__(
        self, n_topics: int, alpha: float, beta: float, prior_variance: float, n_sweeps: int, n_samples: int, random_state: int
    ) -> None:
        self.n_topics = n_topics
        self.alpha = alpha
        self.beta = beta
        self.prior_variance = prior_variance
        self.n_sweeps = n_sweeps
        self.n_samples = n_samples
        self.random_state = random_state

    def _fit(self, X: Any, Y: np.ndarray) -> None:
        if not 1 <= self.n_samples <= self.n_sweeps:
            raise ValueError(f"n_samples must be from 1 to n_sweeps, which is {self.n_sweeps}, found {self.n_samples}")
        sampler, rng = _sampler(), np.random.default_rng(self.random_state)
        # Documents without words say nothing of topics, and nothing of what these predict.
        with_words = np.asarray(X.sum(axis=1)).ravel() > 0
        if not with_words.any():
            raise ValueError("X must have a document with words, found none")
        X, Y = X[with_words], Y[with_words]
        (words, bounds), width = _tokens(X), self._width()
        lengths = np.diff(bounds)
        # All of a word's occurrences may come to have one topic.
        if (most := np.bincount(words).max()) > MOST_COUNTED:
            raise ValueError(f"X must have each word at most {MOST_COUNTED} times, found {most} times")
        topics, eta = self._start(X, Y, words, rng)
        doc_topics = _table(np.repeat(np.arange(X.shape[0]), lengths), topics, X.shape[0], width)
        word_topics = _table(words, topics, X.shape[1], width)
        totals = np.bincount(topics, minlength=self.n_topics).astype(np.float64)

        # Numbers of another type would be compiled for anew.
        prior, known = (float(self.alpha), float(self.beta)), ~np.isnan(Y)
        a, b, zbar = self._response(doc_topics, lengths, Y, known, eta, rng)
        self.components_ = np.zeros((self.n_topics, X.shape[1]))
        self.coef_ = np.zeros_like(eta)
        self.topic_shares_ = np.zeros(self.n_topics)
        for number in range(self.n_sweeps):
            sampler.sweep(words, bounds, topics, doc_topics, word_topics, totals, *prior, a, b, eta, rng)
            a, b, zbar = self._response(doc_topics, lengths, Y, known, eta, rng)
            eta, means = self._draw_eta(zbar, a, b, rng)
            if number >= self.n_sweeps - self.n_samples:
                phi = (word_topics[:, : self.n_topics] + self.beta) / (totals + self.beta * X.shape[1])
                self.components_ += phi.T / self.n_samples
                self.coef_ += means / self.n_samples
                self.topic_shares_ += zbar.mean(axis=0) / self.n_samples

    def _width(self) -> int:
        """Topics of a row of the tables of counts."""
        width: int = _sampler().WIDTH
        return -(-self.n_topics // width) * width

    def _start(self, X: Any, Y: np.ndarray, words: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """First topics of the words, and first eta."""
        return rng.integers(self.n_topics, size=len(words), dtype=np.int32), np.zeros((Y.shape[1], self.n_topics))

    def _response(
        self,
        doc_topics: np.ndarray,
        lengths: np.ndarray,
        Y: np.ndarray,
        known: np.ndarray,
        eta: np.ndarray,
        rng: np.random.Generator,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """a and b, zero where the response is not known, and zbar."""
        zbar = doc_topics[:, : self.n_topics] / lengths[:, None]
        a, b = self._augment(np.where(known, Y, 0), zbar @ eta.T, known, rng)
        return np.where(known, a, 0), np.where(known, b, 0), zbar

    def _draw_eta(
        self, zbar: np.ndarray, a: np.ndarray, b: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """A draw from the Gaussian of eta given all else, and its mean."""
        drawn, means = np.empty((2, a.shape[1], self.n_topics))
        for c in range(a.shape[1]):
            scaled = zbar * np.sqrt(b[:, c, None])
            precision = np.eye(self.n_topics) / self.prior_variance + scaled.T @ scaled
            root = np.linalg.cholesky(precision)
            means[c] = np.linalg.solve(precision, zbar.T @ a[:, c])
            drawn[c] = means[c] + np.linalg.solve(root.T, rng.standard_normal(self.n_topics))
        return drawn, means

    def transform(self, X: Any) -> np.ndarray:
        """Mean shares of the topics; a document without words has those of the training documents."""
        check_is_fitted(self)
        words, bounds = _tokens(X)
        phi = np.zeros((X.shape[1], self._width()), np.float32)
        phi[:, : self.n_topics] = self.components_.T
        rng = np.random.default_rng(self.random_state)
        shares = _sampler().infer(words, bounds, phi, self.n_topics, float(self.alpha), BURN_IN, KEPT, rng)
        shares[np.diff(bounds) == 0] = self.topic_shares_
        return np.asarray(shares)

    def _estimates(self, X: Any) -> np.ndarray:
        return self.transform(X) @ self.coef_.T


class GibbsClassifier(ClassifierMixin, GibbsTopics):
    """Two classes by one response of -1 and 1, more by one for each class against the others."""

    def fit(self, X: Any, y: Any) -> Self:
        self.classes_, numbers = class_numbers(y)
        self._fit(X, signs(numbers, len(self.classes_)))
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        estimates = self._estimates(X)
        return estimates[:, 0] if len(self.classes_) == 2 else estimates

    def predict(self, X: Any) -> np.ndarray:
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]


class GibbsRegressor(RegressorMixin, GibbsTopics):
    """Numbers, standardised; y is (n_docs,) or (n_docs, n_outputs)."""

    def fit(self, X: Any, y: Any) -> Self:
        y = np.asarray(y, np.float64)
        self.centre_, self.scale_ = np.nanmean(y, axis=0), np.nanstd(y, axis=0)
        if (self.scale_ == 0).any():
            raise ValueError("y must have two different numbers or more, found one")
        self._fit(X, ((y - self.centre_) / self.scale_).reshape(len(y), -1))
        return self

    def predict(self, X: Any) -> np.ndarray:
        estimates = self._estimates(X)
        return (estimates if np.ndim(self.centre_) else estimates[:, 0]) * self.scale_ + self.centre_
