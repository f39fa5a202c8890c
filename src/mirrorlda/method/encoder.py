"""From documents to their topic proportions: what inference needs of a model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mirrorlda.data.documents import Documents
from mirrorlda.data.parts import chunks
from mirrorlda.method.inference import Layers, check_phi, forward, new_engine

# Documents that are inferred between two chances to interrupt.
_INFERRED_DOCS = 4096


@dataclass(frozen=True)
class Encoder:
    """Topics, the words' weights and the layers of inference.

    Attributes
    ----------
    components : ndarray of shape (n_topics, n_words)
        Topics as rows.
    word_weights : ndarray of shape (n_words,), or None
    layers : Layers
    n_threads : int
    """

    components: np.ndarray
    word_weights: np.ndarray | None
    layers: Layers
    n_threads: int

    def phi(self, dtype: Any) -> np.ndarray:
        """Topics as columns, as inference takes them."""
        return check_phi(np.asarray(self.components, dtype).T)

    def weighted(self, documents: Documents) -> Documents:
        """The documents with their words' weights."""
        return documents if self.word_weights is None else documents.weighted(self.word_weights)

    def layers_in(self, dtype: Any) -> Layers:
        """The layers in one precision."""
        return replace(self.layers, alpha=self.layers.alpha.astype(dtype, copy=False))

    def theta(self, documents: Documents) -> np.ndarray:
        """Topic proportions (n_docs, n_topics), in the precision of the counts."""
        return self.theta_of([documents], documents.n_docs)

    def theta_of(self, parts: Iterable[Documents], n_docs: int) -> np.ndarray:
        """Those of the documents of all parts, of which there are `n_docs`."""
        theta, done = np.empty((0, len(self.components)), np.float32), 0
        for part in parts:
            if not done:
                phi = self.phi(part.counts.dtype)
                layers, engine = self.layers_in(phi.dtype), new_engine(phi.dtype)
                theta = np.empty((n_docs, phi.shape[1]), phi.dtype)
            documents = self.weighted(part)
            for batch in chunks(part.n_docs, _INFERRED_DOCS):
                theta[done + batch] = forward(engine, phi, documents, batch, layers, keep=False, n_threads=self.n_threads)
            done += part.n_docs
        return theta
