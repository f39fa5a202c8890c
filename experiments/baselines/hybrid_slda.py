"""Supervised LDA by Gibbs sampling from the spectral solution: the hybrid of Wang and Zhu (NIPS 2014)."""

from __future__ import annotations

from typing import Any

import numpy as np

from baselines.gibbs_slda import GibbsSLDAClassifier, GibbsSLDARegressor
from baselines.gibbs_topics import GibbsTopics
from baselines.spectral_slda import SpectralSLDA


def drawn_topics(words: np.ndarray, components: np.ndarray, shares: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A topic of each word, drawn from p(k | w) ~ shares_k components_kw."""
    weights = (components * shares[:, None]).T
    upto = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)
    # One increasing row for all words: that of word w has the numbers from w to w + 1.
    n_words, n_topics = upto.shape
    places = np.searchsorted((upto + np.arange(n_words)[:, None]).ravel(), words + rng.random(len(words)), side="right")
    return np.clip(places - words.astype(np.int64) * n_topics, 0, n_topics - 1).astype(np.int32)


class _SpectralStart(GibbsTopics):
    """The first topics of words and the first eta are those of `SpectralSLDA`, with its alpha0."""

    def _start(self, X: Any, Y: np.ndarray, words: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        if Y.shape[1] != 1:
            raise ValueError(f"y must be one response or two classes, which the spectral start is made for, found {Y.shape[1]}")
        spectral = SpectralSLDA(self.n_topics, random_state=self.random_state).fit(X, Y[:, 0])
        # A word that no topic has, as no long document has it, may have any.
        components = spectral.components_ + np.finfo(float).tiny
        return drawn_topics(words, components, spectral.alpha_ / spectral.alpha_.sum(), rng), spectral.coef_[None]


class HybridSLDARegressor(_SpectralStart, GibbsSLDARegressor):
    """`GibbsSLDARegressor` with a spectral start and one output.

    Examples
    --------
    >>> from mirrorlda.datasets import make_topics
    >>> data = make_topics(1000, 60, 3, alpha=0.3, n_outputs=1, random_state=0)
    >>> bool(HybridSLDARegressor(3, n_sweeps=30).fit(data.X, data.y).score(data.X, data.y) > 0.8)
    True
    """


class HybridSLDAClassifier(_SpectralStart, GibbsSLDAClassifier):
    """`GibbsSLDAClassifier` with a spectral start, for two classes.

    Examples
    --------
    >>> from mirrorlda.datasets import make_topics
    >>> data = make_topics(1000, 60, 3, alpha=0.3, n_classes=2, gamma=10, random_state=0)
    >>> bool(HybridSLDAClassifier(3, n_sweeps=30).fit(data.X, data.y).score(data.X, data.y) > 0.8)
    True
    """
