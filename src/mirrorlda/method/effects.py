"""What the themes of a document do to its prediction: what changes when the words of one of them go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mirrorlda.data.documents import Documents
from mirrorlda.method.encoder import Encoder

# Entries of documents that lack the words of one theme each, inferred at a time.
_ENTRIES = 2**22


@dataclass(frozen=True)
class LeftOut:
    """Values of documents, and what leaving out each theme does to them.

    Attributes
    ----------
    values : ndarray of shape (n_docs, n_values)
    empty : ndarray of shape (n_values,)
        Of a document without words.
    effects : ndarray of shape (n_docs, n_values, n_topics)
        The value less that of the document with each count reduced by the part of it that is the theme's.
    """

    values: np.ndarray
    empty: np.ndarray
    effects: np.ndarray

    @property
    def overlap(self) -> np.ndarray:
        """What the themes do together and none alone, (n_docs, n_values): with it the effects add up to values - empty."""
        overlap: np.ndarray = self.values - self.empty - self.effects.sum(axis=2)
        return overlap


def left_out(
    encoder: Encoder,
    components: np.ndarray,
    values_of: Callable[[np.ndarray], np.ndarray],
    documents: Documents,
    theta: np.ndarray,
) -> LeftOut:
    """Leave-out effects of the themes in `components` (n_topics, n_words) on what `values_of` says of proportions."""
    dtype, n_docs = documents.counts.dtype, documents.n_docs
    themes = np.ascontiguousarray(np.asarray(components, dtype).T)
    values, effects = values_of(theta), []
    nothing = Documents(np.zeros(2, np.int64), documents.indices[:0], documents.counts[:0], documents.n_words)
    for numbers in _parts(documents.indptr, max(1, _ENTRIES // len(components))):
        part = documents.take(numbers)
        without = encoder.theta(_without_each(part, parts_of(part, themes, theta[numbers])))
        changed = values_of(without).reshape(len(components), len(numbers), -1)
        effects.append(values[numbers][:, :, None] - changed.transpose(1, 2, 0))
    found = np.concatenate(effects) if n_docs else np.zeros((0, values.shape[1], len(components)), values.dtype)
    return LeftOut(values, values_of(encoder.theta(nothing))[0], found)


def parts_of(documents: Documents, themes: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Which part of each entry of the documents is each theme's, (n_entries, n_topics), given their proportions."""
    parts: np.ndarray = themes[documents.indices]
    parts *= np.repeat(theta.astype(parts.dtype, copy=False), np.diff(documents.indptr), axis=0)
    parts /= np.maximum(parts.sum(axis=1, keepdims=True), np.finfo(parts.dtype).tiny)
    return parts


def _without_each(documents: Documents, parts: np.ndarray) -> Documents:
    """The documents without their first theme, then all of them without their second, ..."""
    n_topics, n_entries = parts.shape[1], len(documents.indices)
    indptr = (documents.indptr[:-1] + n_entries * np.arange(n_topics)[:, None]).ravel()
    counts = documents.counts * (1 - parts.T)
    return Documents(
        np.append(indptr, n_topics * n_entries),
        np.tile(documents.indices, n_topics),
        np.ascontiguousarray(np.maximum(counts, 0).ravel()),
        documents.n_words,
    )


def _parts(indptr: np.ndarray, n_entries: int) -> list[np.ndarray]:
    """Numbers of documents that follow each other, with about so many entries."""
    part = indptr[:-1] // n_entries
    return np.split(np.arange(len(part)), np.flatnonzero(np.diff(part)) + 1) if len(part) else []
