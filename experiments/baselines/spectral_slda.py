"""Supervised LDA by the method of moments: the two-stage Spectral-sLDA of Wang and Zhu (NIPS 2014).

The moments of LDA are those of Anandkumar et al. (NIPS 2012). With topics mu_i, Dirichlet parameters alpha_i that sum to
alpha0, and the mean response eta'theta:

    M2 = sum_i   alpha_i / (alpha0 (alpha0 + 1))                            mu_i mu_i'
    M3 = sum_i 2 alpha_i / (alpha0 (alpha0 + 1) (alpha0 + 2))               mu_i (x) mu_i (x) mu_i
    My = sum_i 2 alpha_i / (alpha0 (alpha0 + 1) (alpha0 + 2)) eta_i         mu_i mu_i'

W whitens M2. The eigenpairs lambda_i, v_i of M3(W, W, W) give alpha_i and mu_i, and v_i' W' My W v_i gives eta_i.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, eigsh
from scipy.special import psi
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from baselines.classes import class_numbers

# Numbers that a batch may hold in memory at once.
BATCH = 4_000_000
# Of the tensor power method, for each topic: how many vectors take how many steps, the best of those before them, and the change
# of a vector in a step that is the last one. Near an eigenvector the number of right digits doubles in a step.
ROUNDS, LAST_CHANGE = [(40, 5), (4, 10), (1, 60)], 1e-10
# Sampling noise makes probabilities negative. A topic gives every word at least this share of the word's frequency.
LEAST_SHARE = 0.01
# Fold-in ends when the mean proportion moves by less than this in a step.
TOLERANCE, MOST_UPDATES = 1e-4, 100


def ordered(lengths: np.ndarray, n_words: int) -> np.ndarray:
    """The number of ordered choices of n_words words in documents of these lengths."""
    return np.prod([lengths - used for used in range(n_words)], axis=0)


def outer_sum(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Equivalent to np.einsum("ni,nj,nk->ijk", A, A, B)."""
    k = A.shape[1]
    total = np.empty((k, k, k))
    for i in range(k):
        total[i, i:] = (A[:, i:] * A[:, i, None]).T @ B
        total[i:, i] = total[i, i:]
    return total


def cubes(A: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Equivalent to np.einsum("n,ni,nj,nk->ijk", weights, A, A, A), in batches."""
    n, k = A.shape
    total = np.zeros((k, k, k))
    size = max(1, BATCH // k)
    for start in range(0, n, size):
        batch, weighted = A[start : start + size], weights[start : start + size]
        for i in range(k):
            total[i, i:, i:] += batch[:, i:].T @ (batch[:, i:] * (weighted * batch[:, i])[:, None])
    for i in range(k):
        total[i:, i, i:] = total[i:, i:, i] = total[i, i:, i:]
    return total


def in_all_places(T: np.ndarray) -> np.ndarray:
    """The sum of T (k, k, k), symmetric in its first two axes, with its last axis in each of the three places."""
    return T + T.transpose(0, 2, 1) + T.transpose(2, 0, 1)


def pairs(X: Any, W: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The sum over documents of weight times W'(x1 x2')W over all ordered pairs of two of the document's words."""
    P = X @ W
    return P.T @ (weights[:, None] * P) - W.T @ ((X.T @ weights)[:, None] * W)


def triples(X: Any, W: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The sum over documents of weight times W'x1 (x) W'x2 (x) W'x3 over all ordered triples of three of the document's words."""
    P = X @ W
    # Of all n^3 triples, those that use a word twice go; those that use one three times went three times, and come back twice.
    repeated = in_all_places(outer_sum(W, X.T @ (weights[:, None] * P)))
    return cubes(P, weights) - repeated + 2 * cubes(W, X.T @ weights)


def mean_word(X: Any) -> np.ndarray:
    """E[x1] (n_words,)."""
    return X.T @ (1 / X.sum(axis=1)) / X.shape[0]


def whitening(X: Any, n_topics: int, alpha0: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """W and B (n_words, n_topics) with W' M2 W = B' W = I, and M2 nearly B B'."""
    n_docs, n_words = X.shape
    weights = 1 / (n_docs * ordered(X.sum(axis=1), 2))
    diagonal, m1 = X.T @ weights, mean_word(X)

    def times_m2(Q: np.ndarray) -> np.ndarray:
        Q = Q.reshape(n_words, -1)
        return X.T @ (weights[:, None] * (X @ Q)) - diagonal[:, None] * Q - alpha0 / (alpha0 + 1) * np.outer(m1, m1 @ Q)

    # Lanczos needs room for more vectors than are wanted.
    if 2 * n_topics + 1 < n_words:
        M2 = LinearOperator((n_words, n_words), times_m2, matmat=times_m2, dtype=np.float64)
        values, U = eigsh(M2, n_topics, which="LA", v0=rng.standard_normal(n_words))
    else:
        values, U = (part[..., -n_topics:] for part in np.linalg.eigh(times_m2(np.eye(n_words))))
    n_positive = int((values > 0).sum())
    if n_positive < n_topics:
        raise ValueError(
            f"n_topics={n_topics}, but the second moment of X has {n_positive} positive eigenvalues: take fewer topics"
        )
    roots = np.sqrt(values)
    return U / roots, U * roots


def third_moment(X: Any, W: np.ndarray, alpha0: float) -> np.ndarray:
    """M3(W, W, W)."""
    n_docs, lengths = X.shape[0], X.sum(axis=1)
    m1 = mean_word(X) @ W
    second = pairs(X, W, 1 / (n_docs * ordered(lengths, 2)))
    third = triples(X, W, 1 / (n_docs * ordered(lengths, 3)))
    once = in_all_places(second[:, :, None] * m1)
    cube = m1[:, None, None] * m1[:, None] * m1
    return third - alpha0 / (alpha0 + 2) * once + 2 * alpha0**2 / ((alpha0 + 1) * (alpha0 + 2)) * cube


def response_moment(X: Any, y: np.ndarray, W: np.ndarray, alpha0: float) -> np.ndarray:
    """W' My W."""
    n_docs, lengths = X.shape[0], X.sum(axis=1)
    weights = 1 / (n_docs * ordered(lengths, 2))
    m1, mean = mean_word(X) @ W, y.mean()
    with_y = np.outer(m1, (X.T @ (y / lengths) / n_docs) @ W)
    once = mean * pairs(X, W, weights) + with_y + with_y.T
    both = 2 * alpha0**2 / ((alpha0 + 1) * (alpha0 + 2)) * mean * np.outer(m1, m1)
    return pairs(X, W, y * weights) - alpha0 / (alpha0 + 2) * once + both


def eigenpairs(T: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues (k,) and eigenvectors (k, k), in rows, of a symmetric tensor: power method, with deflation."""
    k = len(T)
    # T is symmetric: its first two axes as pairs i <= j, of which those with i < j count twice.
    i, j = np.triu_indices(k)
    packed = T[i, j] * np.where(i == j, 1, 2)[:, None]
    values, vectors = np.empty(k), np.empty((k, k))
    for topic in range(k):
        found, of_found = vectors[:topic], values[:topic]

        def contracted(U: np.ndarray) -> np.ndarray:
            return (U[:, i] * U[:, j]) @ packed - ((U @ found.T) ** 2 * of_found) @ found  # noqa: B023

        U = rng.standard_normal((ROUNDS[0][0], k))
        U /= np.linalg.norm(U, axis=1, keepdims=True)
        image = contracted(U)
        for n_kept, n_steps in ROUNDS:
            best = (image * U).sum(axis=1).argsort()[-n_kept:]
            U, image = U[best], image[best]
            for _ in range(n_steps):
                last, U = U, image / np.linalg.norm(image, axis=1, keepdims=True)
                image = contracted(U)
                if np.abs(U - last).max() < LAST_CHANGE:
                    break
        values[topic], vectors[topic] = (image * U).sum(), U[0]
    return values, vectors


def proportions(X: Any, components: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Means of the variational posterior of theta (n_docs, n_topics), with the topics and alpha given."""
    theta = np.empty((X.shape[0], len(alpha)))
    # Documents in batches of about as many entries as memory is allowed for.
    size = max(1, BATCH // len(alpha) * X.shape[0] // max(X.nnz, 1))
    for start in range(0, X.shape[0], size):
        theta[start : start + size] = _batch_proportions(X[start : start + size], components.T, alpha)
    return theta


def _batch_proportions(X: Any, phi: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    at_entries = phi[X.indices]
    gamma = alpha + X.sum(axis=1)[:, None] / len(alpha)
    theta = gamma / gamma.sum(axis=1, keepdims=True)
    for _ in range(MOST_UPDATES):
        weights = np.exp(psi(gamma) - psi(gamma.sum(axis=1, keepdims=True)))
        # A word that no training document has is in no topic, and says nothing.
        likelihood = np.maximum(np.einsum("nk,nk->n", weights[rows], at_entries), np.finfo(float).tiny)
        gamma = alpha + weights * (sp.csr_array((X.data / likelihood, X.indices, X.indptr), shape=X.shape) @ phi)
        last, theta = theta, gamma / gamma.sum(axis=1, keepdims=True)
        if np.abs(theta - last).mean() < TOLERANCE:
            break
    return theta


class SpectralTopics(TransformerMixin, BaseEstimator):
    """Topics and coefficients by moments; documents whose response is NaN have none, and serve the topics.

    Documents of fewer than three words take no part in training. Where the second moment has fewer positive eigenvalues than
    n_topics, `fit` refuses and says how many there are. Beyond the topics that the documents carry, eigenvectors are those of
    noise, and so are their topics. On 5,000 reviews with 5,000 words 200 topics take a minute, 20 topics a second.

    Parameters
    ----------
    n_topics : int
    alpha0 : float
        The sum of the Dirichlet parameters, which the method takes as known.
    random_state : int

    Attributes
    ----------
    components_ : array (n_topics, n_words)
    alpha_ : array (n_topics,)
        Dirichlet parameters; their sum is near alpha0 where alpha0 and n_topics fit the documents, and none is above alpha0.
    coef_ : array (n_topics,)
    """

    def __init__(self, n_topics: int = 20, *, alpha0: float = 1.0, random_state: int = 0) -> None:
        self.n_topics = n_topics
        self.alpha0 = alpha0
        self.random_state = random_state

    def _fit(self, X: Any, y: np.ndarray) -> Self:
        X, alpha0 = sp.csr_array(X, dtype=np.float64), self.alpha0
        if y.shape != (X.shape[0],):
            raise ValueError(f"y must have one response for each of the {X.shape[0]} documents of X, found the shape {y.shape}")
        if not alpha0 > 0:
            raise ValueError(f"alpha0 must be above 0, found {alpha0}")
        is_long = X.sum(axis=1) >= 3
        X, y = X[is_long], y[is_long]
        known = ~np.isnan(y)
        if not known.any():
            raise ValueError("X has no document of three or more words with a response: at least one is needed")
        rng = np.random.default_rng(self.random_state)
        W, B = whitening(X, self.n_topics, alpha0, rng)
        values, vectors = eigenpairs(third_moment(X, W, alpha0), rng)
        self.alpha_ = np.minimum(4 * alpha0 * (alpha0 + 1) / ((alpha0 + 2) * values) ** 2, alpha0)
        # mu_i is (alpha0 + 2) / 2 lambda_i B v_i: its sum is 1 without noise, and gives the sign where noise has turned it.
        topics = vectors @ B.T
        topics /= topics.sum(axis=1, keepdims=True)
        frequencies = mean_word(X)
        # Words of no training document are as rare as the rarest.
        topics = np.maximum(topics, LEAST_SHARE * np.maximum(frequencies, frequencies[frequencies > 0].min()))
        self.components_ = topics / topics.sum(axis=1, keepdims=True)
        # Without noise a constant added to y is added to each eta_i. Centred responses keep its noise out.
        centre = y[known].mean()
        My = response_moment(X[known], y[known] - centre, W, alpha0)
        self.coef_ = centre + (alpha0 + 2) / 2 * np.einsum("ki,ij,kj->k", vectors, My, vectors)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Topic proportions (n_docs, n_topics)."""
        check_is_fitted(self)
        return proportions(sp.csr_array(X, dtype=np.float64), self.components_, self.alpha_)


class SpectralSLDA(RegressorMixin, SpectralTopics):
    """Spectral-sLDA with one Gaussian response.

    Examples
    --------
    >>> from mirrorlda.datasets import make_topics
    >>> data = make_topics(2000, 60, 3, alpha=0.3, n_outputs=1, random_state=0)
    >>> model = SpectralSLDA(3, alpha0=0.9).fit(data.X, data.y)
    >>> model.components_.shape, model.coef_.shape, bool(model.score(data.X, data.y) > 0.8)
    ((3, 60), (3,), True)
    """

    def fit(self, X: Any, y: Any) -> Self:
        return self._fit(X, np.asarray(y, np.float64))

    def predict(self, X: Any) -> np.ndarray:
        return self.transform(X) @ self.coef_


class SpectralSLDAClassifier(ClassifierMixin, SpectralTopics):
    """Two classes by a Gaussian response of -1 and 1; documents whose y is None or NaN have none.

    Examples
    --------
    >>> from mirrorlda.datasets import make_topics
    >>> data = make_topics(2000, 60, 3, alpha=0.3, n_classes=2, gamma=10, random_state=0)
    >>> model = SpectralSLDAClassifier(3, alpha0=0.9).fit(data.X, data.y)
    >>> model.classes_.tolist(), bool(model.score(data.X, data.y) > 0.8)
    ([0, 1], True)
    """

    def fit(self, X: Any, y: Any) -> Self:
        self.classes_, numbers = class_numbers(y, only_two=True)
        return self._fit(X, 2 * numbers - 1)

    def decision_function(self, X: Any) -> np.ndarray:
        return self.transform(X) @ self.coef_

    def predict(self, X: Any) -> np.ndarray:
        return self.classes_[(self.decision_function(X) > 0).astype(int)]
