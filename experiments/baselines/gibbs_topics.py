"""Supervised topics by collapsed Gibbs sampling: what max-margin and logistic models share.

The response of a document depends on f = eta zbar, where zbar are the shares of topics among its words. Data augmentation makes
its likelihood exp(a f - b f^2 / 2), with a and b that depend on the loss alone: see `gibbs_medlda` and `gibbs_slda`.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from baselines.search import labelled

# Sweeps over a new document: the first are left out, the mean over the others is kept.
BURN_IN, KEPT = 20, 30


def _sweep(words, bounds, topics, doc_topics, word_topics, totals, alpha, beta, a, b, eta, rng):  # type: ignore[no-untyped-def]
    """Draw the topic of each word given those of all others; changes `topics` and the three tables of counts.

    p(k) ~ (doc_topics + alpha) (word_topics + beta) / (totals + n_words beta) exp(sum_c a_c f_c - b_c f_c^2 / 2), where the
    counts are of the other words and f_c has this one in topic k.
    """
    n_topics, n_outputs = len(totals), len(eta)
    pull, summed = np.empty(n_topics), np.empty(n_topics)
    alone, between = np.empty(n_topics), np.empty((n_topics, n_topics))
    smooth = beta * len(word_topics)
    for d in range(len(bounds) - 1):
        if bounds[d] == bounds[d + 1]:
            continue
        counts, share = doc_topics[d], 1.0 / (bounds[d + 1] - bounds[d])
        # The exponent of topic k is alone[k] - between[k] @ counts of the other words, up to a constant.
        responds = False
        alone[:] = 0
        between[:] = 0
        for c in range(n_outputs):
            if b[d, c] == 0:
                continue
            responds = True
            for k in range(n_topics):
                step = share * eta[c, k]
                alone[k] += a[d, c] * step - b[d, c] * step * step / 2
                for j in range(n_topics):
                    between[k, j] += b[d, c] * step * share * eta[c, j]
        for k in range(n_topics):
            pull[k] = alone[k]
            for j in range(n_topics):
                pull[k] -= between[k, j] * counts[j]
        for n in range(bounds[d], bounds[d + 1]):
            word, old = words[n], topics[n]
            counts[old] -= 1
            word_topics[word, old] -= 1
            totals[old] -= 1
            largest = -np.inf
            if responds:
                for k in range(n_topics):
                    # `between` is symmetric, and its rows are contiguous.
                    pull[k] += between[old, k]
                    largest = max(largest, pull[k])
            total = 0.0
            for k in range(n_topics):
                weight = (counts[k] + alpha) * (word_topics[word, k] + beta) / (totals[k] + smooth)
                if responds:
                    weight *= np.exp(pull[k] - largest)
                total += weight
                summed[k] = total
            drawn = rng.random() * total
            new = 0
            while new < n_topics - 1 and summed[new] <= drawn:
                new += 1
            topics[n] = new
            counts[new] += 1
            word_topics[word, new] += 1
            totals[new] += 1
            if responds:
                for k in range(n_topics):
                    pull[k] -= between[new, k]


def _infer(words, bounds, phi, alpha, burn_in, kept, rng):  # type: ignore[no-untyped-def]
    """Mean shares of topics among the words of each document, where the topics `phi` (n_words, n_topics) are known."""
    n_topics = phi.shape[1]
    shares = np.zeros((len(bounds) - 1, n_topics))
    counts, summed = np.empty(n_topics), np.empty(n_topics)
    for d in range(len(bounds) - 1):
        length = bounds[d + 1] - bounds[d]
        topics = np.empty(length, np.int32)
        counts[:] = 0
        for sweep in range(burn_in + kept + 1):
            for n in range(length):
                # The first sweep deals with the words one by one, as they come.
                if sweep > 0:
                    counts[topics[n]] -= 1
                total = 0.0
                for k in range(n_topics):
                    total += (counts[k] + alpha) * phi[words[bounds[d] + n], k]
                    summed[k] = total
                drawn = rng.random() * total
                new = 0
                while new < n_topics - 1 and summed[new] <= drawn:
                    new += 1
                topics[n] = new
                counts[new] += 1
            if sweep > burn_in and length > 0:
                shares[d] += counts / (length * kept)
    return shares


@cache
def _compiled() -> tuple[Any, Any]:
    # Here: the other systems do without it.
    try:
        from numba import njit
    except ImportError as error:
        raise ImportError("numba was not found, which the Gibbs samplers are compiled by: pip install numba") from error
    return njit(_sweep, cache=True), njit(_infer, cache=True)


def _tokens(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """The column of each word, document after document, and where the documents begin and end."""
    counts = X.data.astype(np.int64)
    if (counts != X.data).any() or (counts < 0).any():
        raise ValueError("X must hold counts of words: found a number that is negative or not whole")
    words = np.repeat(X.indices.astype(np.int64), counts)
    return words, np.concatenate([[0], counts.cumsum()])[X.indptr]


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
        sweep, _ = _compiled()
        rng = np.random.default_rng(self.random_state)
        # Documents without words say nothing of topics, and nothing of what these predict.
        with_words = np.asarray(X.sum(axis=1)).ravel() > 0
        if not with_words.any():
            raise ValueError("X must have a document with words, found none")
        X, Y = X[with_words], Y[with_words]
        words, bounds = _tokens(X)
        lengths = np.diff(bounds)
        topics = rng.integers(self.n_topics, size=len(words))
        doc_topics = np.zeros((X.shape[0], self.n_topics), np.int64)
        word_topics = np.zeros((X.shape[1], self.n_topics), np.int64)
        np.add.at(doc_topics, (np.repeat(np.arange(X.shape[0]), lengths), topics), 1)
        np.add.at(word_topics, (words, topics), 1)
        totals = word_topics.sum(axis=0)

        known = ~np.isnan(Y)
        a = b = np.zeros(Y.shape)
        eta = np.zeros((Y.shape[1], self.n_topics))
        self.components_ = np.zeros((self.n_topics, X.shape[1]))
        self.coef_ = np.zeros_like(eta)
        self.topic_shares_ = np.zeros(self.n_topics)
        for number in range(self.n_sweeps):
            sweep(words, bounds, topics, doc_topics, word_topics, totals, self.alpha, self.beta, a, b, eta, rng)
            zbar = doc_topics / lengths[:, None]
            a, b = self._augment(np.where(known, Y, 0), zbar @ eta.T, known, rng)
            a, b = np.where(known, a, 0), np.where(known, b, 0)
            eta, means = self._draw_eta(zbar, a, b, rng)
            if number >= self.n_sweeps - self.n_samples:
                phi = (word_topics + self.beta) / (totals + self.beta * X.shape[1])
                self.components_ += phi.T / self.n_samples
                self.coef_ += means / self.n_samples
                self.topic_shares_ += zbar.mean(axis=0) / self.n_samples

    def _draw_eta(
        self, zbar: np.ndarray, a: np.ndarray, b: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """A draw from the Gaussian of eta given all else, and its mean."""
        drawn, means = np.empty((2, a.shape[1], self.n_topics))
        for c in range(a.shape[1]):
            precision = np.eye(self.n_topics) / self.prior_variance + (zbar * b[:, c, None]).T @ zbar
            root = np.linalg.cholesky(precision)
            means[c] = np.linalg.solve(precision, zbar.T @ a[:, c])
            drawn[c] = means[c] + np.linalg.solve(root.T, rng.standard_normal(self.n_topics))
        return drawn, means

    def transform(self, X: Any) -> np.ndarray:
        """Mean shares of the topics; a document without words has those of the training documents."""
        check_is_fitted(self)
        _, infer = _compiled()
        words, bounds = _tokens(X)
        phi = np.ascontiguousarray(self.components_.T)
        shares = infer(words, bounds, phi, self.alpha, BURN_IN, KEPT, np.random.default_rng(self.random_state))
        shares[np.diff(bounds) == 0] = self.topic_shares_
        return shares

    def _estimates(self, X: Any) -> np.ndarray:
        return self.transform(X) @ self.coef_.T


class GibbsClassifier(ClassifierMixin, GibbsTopics):
    """Two classes by one response of -1 and 1, more by one for each class against the others."""

    def fit(self, X: Any, y: Any) -> Self:
        y, known = np.asarray(y), labelled(y)
        self.classes_, numbers = np.unique(np.array(y[known].tolist()), return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y must have two classes or more, found {len(self.classes_)}")
        signs = np.where(numbers[:, None] == np.arange(len(self.classes_)), 1.0, -1.0)
        Y = np.full((len(y), len(self.classes_)), np.nan)
        Y[known] = signs
        self._fit(X, Y[:, 1:] if len(self.classes_) == 2 else Y)
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
