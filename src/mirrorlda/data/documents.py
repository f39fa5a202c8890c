"""Documents in memory: one checked record of word counts, whatever the user's matrix was."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from mirrorlda import _core

# Above it, x / (Phi theta)^2 can leave the range of float32.
LARGEST_COUNT = 1e12


@dataclass(frozen=True)
class Documents:
    """Word counts of documents, one CSR matrix whose arrays the core reads as they are.

    Attributes
    ----------
    indptr : ndarray of int64, shape (n_docs + 1,)
    indices : ndarray of int32, shape (nnz,)
        Distinct words of each document.
    counts : ndarray of float32 or float64, shape (nnz,)
    n_words : int
    """

    indptr: np.ndarray
    indices: np.ndarray
    counts: np.ndarray
    n_words: int

    @property
    def n_docs(self) -> int:
        return len(self.indptr) - 1

    def take(self, numbers: np.ndarray) -> Documents:
        """The documents with these numbers."""
        sizes = np.diff(self.indptr)[numbers]
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        entries = np.repeat(self.indptr[numbers] - indptr[:-1], sizes) + np.arange(indptr[-1])
        return Documents(indptr, self.indices[entries], self.counts[entries], self.n_words)

    def logarithmic(self) -> Documents:
        """log2(1 + count) in place of each count: what is said twice is not worth twice as much."""
        return replace(self, counts=_core.logarithmic(self.counts))

    def weighted(self, word_weights: np.ndarray) -> Documents:
        """Each count times the weight of its word."""
        return replace(self, counts=self.counts * word_weights.astype(self.counts.dtype, copy=False)[self.indices])

    def thinned(
        self,
        numbers: np.ndarray,
        word_weights: np.ndarray | None,
        fraction: float,
        seed: int,
        n_threads: int = 1,
        first: int = 0,
    ) -> Documents:
        """The documents with these numbers, without a random fraction of their entries, the others times their words' weights.

        What stays grows by 1 / (1 - fraction), so that a document's total stays what it is on average. The numbers are those of a
        batch from its place `first` on.
        """
        arrays = _core.thinned(self.indptr, self.indices, self.counts, numbers, word_weights, fraction, seed, n_threads, first)
        return Documents(*arrays, self.n_words)

    def words_of(self, numbers: np.ndarray, n_threads: int = 1) -> np.ndarray:
        """Distinct words of the documents with these numbers, ascending."""
        return _core.distinct_words(self.indptr, self.indices, numbers, self.n_words, n_threads)

    def totals(self) -> np.ndarray:
        """Sum of the counts of each document, in double."""
        totals = np.zeros(self.n_docs)
        has_words = np.diff(self.indptr) > 0
        if has_words.any():
            totals[has_words] = np.add.reduceat(self.counts, self.indptr[:-1][has_words], dtype=np.float64)
        return totals


def as_documents(X: Any, dtype: np.dtype[Any] | type | None = None) -> Documents:
    """Check a matrix of counts and return it as `Documents`.

    Parameters
    ----------
    X : sparse matrix, sparse array or array of shape (n_docs, n_words)
        Non-negative, finite counts or weights; duplicate entries are added up.
    dtype : float32 or float64, optional
        By default float64 stays, and everything else becomes float32.

    Examples
    --------
    >>> import numpy as np
    >>> from mirrorlda.data.documents import as_documents
    >>> documents = as_documents(np.array([[2, 0, 1], [0, 0, 0]]))
    >>> documents.n_docs, documents.n_words, documents.counts
    (2, 3, array([2., 1.], dtype=float32))
    """
    if not sp.issparse(X):
        X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions (n_docs, n_words), got shape {X.shape}")
    if X.dtype.kind not in "fiub":
        raise ValueError(f"X must hold numbers, got dtype {X.dtype}")
    if dtype is None:
        dtype = np.float64 if X.dtype == np.float64 else np.float32
    # SciPy has no sparse matrices of half or extended precision.
    csr = sp.csr_array(X.astype(dtype) if X.dtype in (np.float16, np.longdouble) else X)
    csr.check_format(full_check=True)
    if not csr.has_canonical_format:
        if csr is X or np.shares_memory(csr.data, X.data):
            csr = csr.copy()
        csr.sum_duplicates()
    if csr.shape[1] >= 2**31:
        raise ValueError(f"X has {csr.shape[1]} words; at most {2**31 - 1} are supported")
    _check_counts(csr)
    return Documents(
        np.ascontiguousarray(csr.indptr, np.int64),
        np.ascontiguousarray(csr.indices, np.int32),
        np.ascontiguousarray(csr.data, dtype),
        csr.shape[1],
    )


def _check_counts(csr: sp.csr_array) -> None:
    if csr.nnz == 0:
        return
    low, high = csr.data.min(), csr.data.max()
    if low >= 0 and high <= LARGEST_COUNT:
        return
    position = int(np.flatnonzero(~((csr.data >= 0) & (csr.data <= LARGEST_COUNT)))[0])
    row = int(np.searchsorted(csr.indptr, position, side="right")) - 1
    value = csr.data[position]
    what = "Negative values in data" if value < 0 else "Values out of range"
    raise ValueError(
        f"{what}: X[{row}, {csr.indices[position]}] is {value}; counts must be non-negative, finite and at most {LARGEST_COUNT:g}"
    )
