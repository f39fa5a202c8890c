"""Supervised LDA by variational EM, after Blei and McAuliffe (2007), as scikit-learn estimators.

q(z_n) = phi_n, q(theta) = Dirichlet(gamma), zbar are the shares of topics among a document's N words, and the response depends on
x = U zbar (the paper's eta is a row of U). The tokens of one word in a document share one phi, and phi of all documents is kept
with its logarithm: 16 bytes for each topic of each distinct word of a document. Documents without words are left out of training,
and predicted by the mean.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import digamma, expit, gammaln, log_expit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.cluster import kmeans_plusplus
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from baselines.classes import class_numbers, signs
from baselines.variational_updates import update

# Pseudo-count of each word in each topic: a Dirichlet prior of 1 + SMOOTHING, whose log-density is part of the bound.
SMOOTHING = 0.01
# Precision of a Gaussian prior on the classifier's coefficients, which classes that can be told apart would take to infinity.
RIDGE = 0.01
# Smallest variance of a response whose variance in training is 1.
SMALLEST_VARIANCE = 1e-6
# Words of documents whose weighted phi is in memory at once: it stays in the cache.
TOKENS = 4_096
# Updates of phi and gamma in an E step; documents of a block, whose phi stays in the cache.
E_STEPS, BLOCK = 2, 128
# Prediction ends when an update moves topic shares by less than this.
PREDICT_TOLERANCE, MOST_UPDATES = 1e-5, 200


class _Words(NamedTuple):
    """Distinct words of some documents; `sums @ phi` is the expected number of words by topic."""

    columns: np.ndarray
    counts: np.ndarray
    lengths: np.ndarray
    bounds: np.ndarray
    sums: Any

    @classmethod
    def of(cls, X: Any) -> _Words:
        counts = X.data.astype(np.float64)
        sums = sp.csr_matrix((counts, np.arange(X.nnz), X.indptr), (X.shape[0], X.nnz))
        return cls(X.indices, counts, np.asarray(sums.sum(axis=1)).ravel(), X.indptr, sums)

    def spread(self, values: np.ndarray) -> np.ndarray:
        """A value of each document for each of its words."""
        return np.repeat(values, np.diff(self.bounds), axis=0)


class _Quadratic(NamedTuple):
    """The responses' part of the bound as linear . x - precision . x**2 / 2, for U (n_outputs, n_topics)."""

    U: np.ndarray
    linear: np.ndarray
    precision: np.ndarray

    def rows(self, chosen: slice) -> _Quadratic:
        return self._replace(linear=self.linear[chosen], precision=self.precision[chosen])

    def curvature(self) -> np.ndarray:
        """max over topics k, l of sum_o precision_o (U_ok - U_ol)**2, by document."""
        if len(self.U) == 1:
            return self.precision[:, 0] * np.ptp(self.U) ** 2
        gaps = (self.U[:, :, None] - self.U[:, None, :]) ** 2
        return (self.precision @ gaps.reshape(len(self.U), -1)).max(axis=1)


def _no_response(n_docs: int, n_topics: int) -> _Quadratic:
    return _Quadratic(np.zeros((0, n_topics)), np.zeros((n_docs, 0)), np.zeros((n_docs, 0)))


def _update(
    words: _Words,
    phi: np.ndarray,
    log_phi: np.ndarray,
    log_topics: np.ndarray,
    gamma: np.ndarray,
    alpha: float,
    response: _Quadratic,
) -> np.ndarray:
    """New phi of all words at once, in place, and the gamma that belongs to it. The bound does not fall.

    The paper updates word by word, with phi_{-n} for the others. Here the quadratic term is linearised at the old phi, which is
    wrong by at most curvature / (4 N) sum_n KL(phi_n, old phi_n) (Pinsker). With that as a penalty the maximum is a geometric
    mean of what the gradient asks for and the old phi: `damping`. The fixed points are those of the paper.
    """
    U, lengths = response.U, words.lengths[:, None]
    by_document, damping = digamma(gamma), np.zeros(len(gamma))
    if len(U):
        mean = (gamma - alpha) / lengths
        by_document += (response.linear - response.precision * (mean @ U.T)) @ U / lengths
        by_document -= response.precision @ U**2 / (2 * lengths**2)
        damping = response.curvature() / (4 * words.lengths)
    own = response.precision / lengths**2
    sums = np.empty_like(gamma)
    update(words.bounds, words.columns, words.counts, phi, log_phi, log_topics, by_document, U, own, damping, sums)
    return alpha + sums


def _topic_bound(
    words: _Words,
    phi: np.ndarray,
    log_phi: np.ndarray,
    by_word: np.ndarray,
    log_topics: np.ndarray,
    gamma: np.ndarray,
    alpha: float,
) -> float:
    """The bound without the response; E[log theta] cancels for the gamma that belongs to phi.

    `by_word` is the expected number of tokens of each word by topic.
    """
    n_topics = gamma.shape[1]
    of_words = np.vdot(by_word, log_topics) - words.counts @ np.einsum("nk,nk->n", phi, log_phi)
    of_prior = len(gamma) * (gammaln(n_topics * alpha) - n_topics * gammaln(alpha))
    return float(of_words + of_prior + gammaln(gamma).sum() - gammaln(gamma.sum(axis=1)).sum())


def _second_moments(words: _Words, phi: np.ndarray, mean: np.ndarray, U: np.ndarray) -> np.ndarray:
    """E[x**2] = (U mean)**2 + sum_n Var(U z_n) / N**2, by document and output."""
    squares, means = np.split(phi @ np.vstack([U**2, U]).T, 2, axis=1)
    variances = squares - means**2
    return (mean @ U.T) ** 2 + words.sums @ variances / words.lengths[:, None] ** 2


def _best_U(
    words: _Words, phi: np.ndarray, mean: np.ndarray, linear: np.ndarray, precision: np.ndarray, ridge: float
) -> np.ndarray:
    """The U of the largest bound: for each output (sum_d precision_d E[zbar zbar^T] + ridge) U = sum_d linear_d E[zbar]."""
    rows = []
    for b, weights in zip(linear.T, precision.T, strict=True):
        token = words.counts * words.spread(weights / words.lengths**2)
        moment = mean.T @ (weights[:, None] * mean) + np.diag(token @ phi) + ridge * np.eye(phi.shape[1])
        for start in range(0, len(phi), TOKENS):
            part = slice(start, start + TOKENS)
            weighted = np.sqrt(token[part])[:, None] * phi[part]
            moment -= weighted.T @ weighted
        rows.append(np.linalg.lstsq(moment, mean.T @ b, rcond=1e-12)[0])
    return np.array(rows)


def _first_topics(X: Any, n_topics: int, rng: np.random.RandomState) -> np.ndarray:
    """Documents far from each other, as k-means++ draws them, mixed with the frequencies of all words."""
    rows = sp.csr_matrix(X / X.sum(axis=1).reshape(-1, 1))
    _, seeds = kmeans_plusplus(rows.sqrt(), n_topics, random_state=rng)
    frequencies = np.asarray(X.sum(axis=0)).ravel() + 1
    return 0.5 * rows[seeds].toarray() + 0.5 * frequencies / frequencies.sum()


class _VariationalSLDA(BaseEstimator):
    """EM; how the response enters is left to `_first_response` and `_response_step`."""

    def __init__(
        self, n_topics: int = 20, *, alpha: float = 0.1, n_iter: int = 50, tol: float = 1e-5, random_state: int | None = None
    ) -> None:
        self.n_topics = n_topics
        self.alpha = alpha
        self.n_iter = n_iter
        self.tol = tol
        self.random_state = random_state

    def _fit(self, X: Any, y: np.ndarray) -> None:
        """EM until the bound's gain is below `tol` of its size; rows of y that are NaN have no response."""
        X = _counts(X)
        filled = np.diff(X.indptr) > 0
        if filled.sum() < self.n_topics:
            raise ValueError(f"X has {filled.sum()} documents with words, expected at least n_topics={self.n_topics}")
        X, y = X[filled], y[filled]
        words = _Words.of(X)
        words_of_type = sp.csr_matrix((words.counts, (words.columns, np.arange(X.nnz))), (X.shape[1], X.nnz))
        log_topics = np.log(_first_topics(X, self.n_topics, check_random_state(self.random_state))).T.copy()
        gamma = np.full((len(y), self.n_topics), self.alpha) + words.lengths[:, None] / self.n_topics
        phi = np.full((X.nnz, self.n_topics), 1 / self.n_topics)
        log_phi = np.log(phi)
        response = self._first_response(y)
        self.bounds_: list[float] = []
        for _ in range(self.n_iter):
            for start in range(0, len(y), BLOCK):
                block = slice(start, start + BLOCK)
                tokens = slice(X.indptr[start], X.indptr[min(start + BLOCK, len(y))])
                part, quadratic = _Words.of(X[block]), response.rows(block)
                for _ in range(E_STEPS):
                    gamma[block] = _update(part, phi[tokens], log_phi[tokens], log_topics, gamma[block], self.alpha, quadratic)
            mean = (gamma - self.alpha) / words.lengths[:, None]
            by_word = words_of_type @ phi
            log_topics = np.log((by_word + SMOOTHING) / (by_word + SMOOTHING).sum(axis=0))
            response, of_response = self._response_step(words, phi, mean, y, response)
            bound = _topic_bound(words, phi, log_phi, by_word, log_topics, gamma, self.alpha) + of_response
            bound += SMOOTHING * log_topics.sum()
            self.bounds_.append(bound)
            if len(self.bounds_) > 1 and bound - self.bounds_[-2] < self.tol * abs(bound):
                break
        self.log_topics_ = log_topics
        self.components_ = np.exp(log_topics.T)
        self.U_ = response.U

    def transform(self, X: Any) -> np.ndarray:
        """E[zbar] by the E step without a response; NaN for documents without words."""
        check_is_fitted(self)
        X = _counts(X)
        shares = np.full((X.shape[0], self.n_topics), np.nan)
        filled = np.flatnonzero(np.diff(X.indptr))
        for start in range(0, len(filled), BLOCK):
            rows = filled[start : start + BLOCK]
            shares[rows] = self._infer(_Words.of(X[rows]))
        return shares

    def _infer(self, words: _Words) -> np.ndarray:
        lengths = words.lengths[:, None]
        gamma = np.full((len(lengths), self.n_topics), self.alpha) + lengths / self.n_topics
        phi, log_phi = np.empty((2, len(words.columns), self.n_topics))
        response = _no_response(len(lengths), self.n_topics)
        for _ in range(MOST_UPDATES):
            last = gamma
            gamma = _update(words, phi, log_phi, self.log_topics_, gamma, self.alpha, response)
            if (np.abs(gamma - last) / lengths).max() < PREDICT_TOLERANCE:
                break
        return (gamma - self.alpha) / lengths


def _counts(X: Any) -> Any:
    X = sp.csr_matrix(X, dtype=np.float64, copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    return X


class VariationalSLDA(RegressorMixin, _VariationalSLDA):
    """A Gaussian response, standardised; U and its variance have closed forms. Documents whose y is NaN have no response.

    Examples
    --------
    >>> from mirrorlda.datasets import make_topics
    >>> data = make_topics(n_docs=300, n_words=50, n_topics=3, n_outputs=1, random_state=0)
    >>> bool(VariationalSLDA(n_topics=3, random_state=0).fit(data.X, data.y).score(data.X, data.y) > 0.9)
    True
    """

    def fit(self, X: Any, y: Any) -> Self:
        y = np.asarray(y, np.float64)
        self.mean_, scale = np.nanmean(y), np.nanstd(y) or 1.0
        self._fit(X, (y - self.mean_) / scale)
        # Shares sum to one: the coefficients take up the mean.
        self.coef_ = self.U_[0] * scale + self.mean_
        self.variance_ = self._variance * scale**2
        return self

    def predict(self, X: Any) -> np.ndarray:
        shares = self.transform(X)
        return np.where(np.isnan(shares[:, 0]), self.mean_, shares @ self.coef_)

    def _first_response(self, y: np.ndarray) -> _Quadratic:
        return self._quadratic(np.zeros((1, self.n_topics)), y, 1.0)

    def _quadratic(self, U: np.ndarray, y: np.ndarray, variance: float) -> _Quadratic:
        return _Quadratic(U, np.nan_to_num(y)[:, None] / variance, ~np.isnan(y)[:, None] / variance)

    def _response_step(
        self, words: _Words, phi: np.ndarray, mean: np.ndarray, y: np.ndarray, response: _Quadratic
    ) -> tuple[_Quadratic, float]:
        known = ~np.isnan(y)
        U = _best_U(words, phi, mean, np.nan_to_num(y)[:, None], known[:, None].astype(float), 0.0)
        squares = y**2 - 2 * y * (mean @ U[0]) + _second_moments(words, phi, mean, U)[:, 0]
        self._variance = max(squares[known].mean(), SMALLEST_VARIANCE)
        bound = -0.5 * (known.sum() * np.log(2 * np.pi * self._variance) + squares[known].sum() / self._variance)
        return self._quadratic(U, y, self._variance), bound


class VariationalSLDAClassifier(ClassifierMixin, _VariationalSLDA):
    """Two classes: a logistic response with the bound of Jaakkola and Jordan; more: one for each class against the others.

    Wang, Blei and Fei-Fei (2009) have one softmax response; with binary ones each step has a closed form. Documents whose y is
    None or NaN have no response.

    Examples
    --------
    >>> from mirrorlda.datasets import make_topics
    >>> data = make_topics(n_docs=300, n_words=50, n_topics=3, n_classes=3, gamma=10, random_state=1)
    >>> bool(VariationalSLDAClassifier(n_topics=3, random_state=0).fit(data.X, data.y).score(data.X, data.y) > 0.8)
    True
    """

    def fit(self, X: Any, y: Any) -> Self:
        self.classes_, numbers = class_numbers(y)
        _, members = np.unique(numbers[~np.isnan(numbers)], return_counts=True)
        self.shares_ = members / members.sum()
        self._fit(X, signs(numbers, len(self.classes_)))
        self.coef_ = self.U_
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        shares = self.transform(X)
        p = expit(shares @ self.coef_.T)
        p = np.column_stack([1 - p, p]) if len(self.classes_) == 2 else p / p.sum(axis=1, keepdims=True)
        return np.where(np.isnan(shares[:, :1]), self.shares_, p)

    def predict(self, X: Any) -> np.ndarray:
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def _first_response(self, y: np.ndarray) -> _Quadratic:
        return _Quadratic(np.zeros((y.shape[1], self.n_topics)), np.nan_to_num(y) / 2, ~np.isnan(y) / 4)

    def _response_step(
        self, words: _Words, phi: np.ndarray, mean: np.ndarray, y: np.ndarray, response: _Quadratic
    ) -> tuple[_Quadratic, float]:
        """log sigma(y x) >= log sigma(xi) + (y x - xi) / 2 - lambda(xi) (x**2 - xi**2), with the best xi**2 = E[x**2]."""
        known, linear = ~np.isnan(y), np.nan_to_num(y) / 2
        # The bound bends more than the logistic function: one step of U goes only part of the way.
        U = response.U
        for _ in range(3):
            xi = np.sqrt(_second_moments(words, phi, mean, U))
            U = _best_U(words, phi, mean, linear, known * _twice_lambda(xi), RIDGE)
        xi = np.sqrt(_second_moments(words, phi, mean, U))
        bound = (known * (log_expit(xi) - xi / 2)).sum() + (linear * (mean @ U.T)).sum() - RIDGE / 2 * (U**2).sum()
        return _Quadratic(U, linear, known * _twice_lambda(xi)), bound


def _twice_lambda(xi: np.ndarray) -> np.ndarray:
    """tanh(xi / 2) / (2 xi), which is 1/4 at 0."""
    safe = np.maximum(xi, 1e-6)
    return np.tanh(safe / 2) / (2 * safe)
