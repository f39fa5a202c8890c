"""Themes: topics that people read, and what of a document's words belongs to each.

The paper's equation 2 has two sets of topics, Phi for p(y | x) and Phi~ for p(x), each with proportions of its own. Here they
share theta: it is inferred under Phi, and Phi~, the themes, says what a document with these proportions talks about.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mirrorlda import _core
from mirrorlda.data.documents import Documents

# A theme that is used less than a tenth of the mean of all is asked for no more than one that is used so much.
_MOST_ASKED = 10.0
# The part of a theme that is spread over all words: no word is impossible.
_EVERYWHERE = 1e-3


@dataclass(frozen=True)
class Decoded:
    """What themes say of documents whose proportions are given.

    Attributes
    ----------
    grad_theta : ndarray, shape (n_docs, n_topics)
        Gradients of what the themes add to the loss of each document.
    rows : ndarray of int32, shape (n_rows,)
        Words that occur in the documents.
    grad_themes : ndarray, shape (n_rows, n_topics)
        Gradient of -ln p(x | theta, themes) of all documents, with their weights; times minus the themes it is what each theme
        has of the words' occurrences. A view into the engine.
    """

    grad_theta: np.ndarray
    rows: np.ndarray
    grad_themes: np.ndarray


def are_two(components: np.ndarray, encoder_components: np.ndarray) -> bool:
    """Whether people read other topics than those that infer. A copy of a model may have its one matrix twice."""
    return components is not encoder_components and not np.array_equal(components, encoder_components)


def merged(left: Decoded | None, right: Decoded | None) -> Decoded | None:
    """Of two neighbouring parts of a batch: what is of documents in a row, and sums; None where there are no themes."""
    if left is None or right is None:
        return None
    rows, grad_themes = _core.add_rows(left.rows, left.grad_themes, right.rows, right.grad_themes)
    return Decoded(np.concatenate([left.grad_theta, right.grad_theta]), rows, grad_themes)


@dataclass(frozen=True)
class Decoder:
    """Themes as the occurrences that they have of each word, (n_words, n_topics), the sums of these, and documents to tell of.

    What they add to the loss is -`weight` ln p(x | theta, themes), and -`use_weights` times the mean over themes of ln s, where s
    is a theme's share of all words: it keeps all of them in use. `batch` are the numbers of the documents that are meant.
    """

    counts: np.ndarray
    totals: np.ndarray
    weight: float
    use_weights: np.ndarray
    documents: Documents
    batch: np.ndarray

    def decoded(
        self,
        engine: _core.Engine32 | _core.Engine64,
        theta: np.ndarray,
        weights: np.ndarray,
        block_docs: int,
        n_threads: int,
    ) -> Decoded:
        """Of the documents, which have these proportions and weights; sums go by blocks of `block_docs` documents."""
        documents, batch = self.documents, self.batch
        frame, rows = _frame(self.counts, self.totals), documents.words_of(batch, n_threads)
        _, grad_theta, gradient = engine.decode(
            self.counts,
            frame,
            documents.indptr,
            documents.indices,
            documents.counts,
            batch,
            theta,
            weights.astype(theta.dtype),
            rows,
            n_threads,
            block_docs,
        )
        assert gradient is not None
        asked_for = np.minimum(self.totals.mean() / self.totals, _MOST_ASKED)
        grad_theta = grad_theta * theta.dtype.type(self.weight) - (self.use_weights * asked_for).astype(theta.dtype)
        return Decoded(grad_theta, rows, gradient)


def count(decoded: Decoded, counts: np.ndarray, totals: np.ndarray, factor: float, n_threads: int) -> np.ndarray:
    """Add what themes, with these counts so far, have of the occurrences of the words of documents, times a factor.

    Returns the sums over words of what was added.
    """
    return _core.count_rows(counts, decoded.rows, decoded.grad_themes, _frame(counts, totals), factor, n_threads)


def normalised(counts: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """Themes (n_words, n_topics), each a distribution, that have so many occurrences of each word."""
    scale, shift = _frame(counts, totals)
    themes: np.ndarray = counts * scale
    themes += shift
    themes /= themes.sum(axis=0, dtype=np.float64).astype(themes.dtype)
    return themes


def _frame(counts: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """The two vectors over topics, (2, n_topics), with which rows of `counts` are read as probabilities."""
    scale = (1 - _EVERYWHERE) / totals
    shift = np.full_like(scale, _EVERYWHERE / len(counts))
    return np.stack([scale, shift]).astype(counts.dtype)
