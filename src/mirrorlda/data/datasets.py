"""Planted corpora: the paper's generative process, with the answer at hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp


@dataclass(frozen=True)
class PlantedCorpus:
    """A corpus and what it was made from.

    Attributes
    ----------
    X : csr_matrix of shape (n_docs, n_words)
        Word counts.
    y : ndarray or None
        Targets (n_docs,) or (n_docs, n_outputs), or class numbers (n_docs,); None without a response.
    theta : ndarray of shape (n_docs, n_topics)
    components : ndarray of shape (n_topics, n_words)
    coef : ndarray of shape (n_outputs, n_topics), or None
    """

    X: sp.csr_matrix
    y: np.ndarray | None
    theta: np.ndarray
    components: np.ndarray
    coef: np.ndarray | None


def make_topics(
    n_docs: int = 1000,
    n_words: int = 500,
    n_topics: int = 10,
    *,
    doc_length: float = 100,
    alpha: float = 0.1,
    beta: float = 0.05,
    n_outputs: int | None = None,
    n_classes: int | None = None,
    gamma: float = 100.0,
    random_state: int | np.random.Generator | None = None,
) -> PlantedCorpus:
    """Draw a corpus from the supervised topic model of section 2 of the paper.

    Parameters
    ----------
    n_docs, n_words, n_topics : int
    doc_length : float
        Mean number of words of a document (Poisson).
    alpha, beta : float
        Dirichlet parameters of the documents' topic proportions and of the topics.
    n_outputs, n_classes : int, optional
        Gaussian targets with precision `gamma`, or classes drawn from softmax(gamma U theta); at most one of the two.
    gamma : float
    random_state : int, Generator or None

    Examples
    --------
    >>> from mirrorlda.datasets import make_topics
    >>> data = make_topics(n_docs=50, n_words=20, n_topics=4, n_classes=3, random_state=0)
    >>> data.X.shape, data.y.shape, data.coef.shape
    ((50, 20), (50,), (3, 4))
    """
    if n_outputs is not None and n_classes is not None:
        raise ValueError("n_outputs and n_classes exclude each other: one response at a time")
    rng = np.random.default_rng(random_state)
    components = rng.dirichlet(np.full(n_words, beta), n_topics)
    theta = rng.dirichlet(np.full(n_topics, alpha), n_docs)
    lengths = rng.poisson(doc_length, n_docs)
    rows = [
        rng.multinomial(length, _on_simplex(np.einsum("k,kv->v", proportions, components)))
        for length, proportions in zip(lengths, theta, strict=True)
    ]
    X = sp.csr_matrix(np.array(rows).reshape(n_docs, n_words), dtype=np.float32)
    y, coef = _respond(theta, n_outputs, n_classes, gamma, rng)
    return PlantedCorpus(X, y, theta, components, coef)


def _on_simplex(p: np.ndarray) -> Any:
    return p / p.sum()


def _respond(
    theta: np.ndarray, n_outputs: int | None, n_classes: int | None, gamma: float, rng: np.random.Generator
) -> tuple[np.ndarray | None, np.ndarray | None]:
    if n_classes is not None:
        coef = rng.standard_normal((n_classes, theta.shape[1]))
        # Adding Gumbel noise to the scores and taking the largest draws from their softmax.
        return (gamma * theta @ coef.T + rng.gumbel(size=(len(theta), n_classes))).argmax(axis=1), coef
    if n_outputs is not None:
        coef = rng.standard_normal((n_outputs, theta.shape[1]))
        y = theta @ coef.T + rng.standard_normal((len(theta), n_outputs)) / np.sqrt(gamma)
        return (y[:, 0] if n_outputs == 1 else y), coef
    return None, None
