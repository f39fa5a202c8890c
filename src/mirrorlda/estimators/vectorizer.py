"""Text to counts as a step of a scikit-learn pipeline."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Set
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mirrorlda.data.text import ENGLISH_STOP_WORDS, MAX_WORDS, MIN_PHRASE_DOCS, TextDefinition, Vocabulary, WordCounts


class TextVectorizer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Texts to word counts: NFC, lower case, runs of letters, marks and numbers (docs/text.md), on several threads.

    Given the same definition as its tokenizer, scikit-learn's `CountVectorizer` counts the same. Columns are in the order of
    falling frequency in the texts of `fit`; equally frequent words are in the order of their code points.

    Parameters
    ----------
    max_words : int or None, default=100_000
        The size of the vocabulary: the most frequent words stay. None keeps all.
    min_docs : int, default=1
        Only words of at least as many texts.
    max_docs_fraction : float, default=1.0
        Only words of at most this fraction of the texts.
    lowercase : bool, default=True
    stop_words : "english", or list or set of str, default=None
        Words that are left out, before bigrams are formed. Each is read as text itself: "Don't" leaves out "don" and "t".
    bigrams : bool, default=True
        Whether phrases count: two neighbouring words, joined by a space, are a word too.
    min_phrase_docs : int, default=10
        Only phrases that at least as many texts have.
    n_jobs : int, default=None
        Threads, as in scikit-learn. No result depends on it.

    Attributes
    ----------
    vocabulary_ : Vocabulary

    Examples
    --------
    >>> from mirrorlda.estimators.vectorizer import TextVectorizer
    >>> vectorizer = TextVectorizer(stop_words="english", bigrams=False)
    >>> vectorizer.fit_transform(["The room was clean.", "A noisy room, a very noisy one!"]).toarray()
    array([[0., 1., 1., 0., 0.],
           [2., 1., 0., 1., 1.]], dtype=float32)
    >>> vectorizer.get_feature_names_out()
    array(['noisy', 'room', 'clean', 'one', 'very'], dtype=object)
    """

    def __init__(
        self,
        max_words: int | None = MAX_WORDS,
        *,
        min_docs: int = 1,
        max_docs_fraction: float = 1.0,
        lowercase: bool = True,
        stop_words: str | Collection[str] | None = None,
        bigrams: bool = True,
        min_phrase_docs: int = MIN_PHRASE_DOCS,
        n_jobs: int | None = None,
    ) -> None:
        self.max_words = max_words
        self.min_docs = min_docs
        self.max_docs_fraction = max_docs_fraction
        self.lowercase = lowercase
        self.stop_words = stop_words
        self.bigrams = bigrams
        self.min_phrase_docs = min_phrase_docs
        self.n_jobs = n_jobs

    def fit(self, texts: Iterable[str], y: Any = None) -> TextVectorizer:
        """Choose the vocabulary. `y` is not used."""
        self._count(texts, keep_documents=False)
        return self

    def fit_transform(self, texts: Iterable[str], y: Any = None) -> sp.csr_array:
        """Equal to `fit(texts).transform(texts)`, but reads the texts once; `y` is not used."""
        return self._count(texts, keep_documents=True).counts(self.vocabulary_)

    def transform(self, texts: Iterable[str]) -> sp.csr_array:
        """Counts of the vocabulary's words.

        Parameters
        ----------
        texts : iterable of str

        Returns
        -------
        csr_array of float32, shape (n_docs, n_words)
        """
        check_is_fitted(self)
        return self.vocabulary_.count(texts, effective_n_jobs(self.n_jobs))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The words in the order of their columns. `input_features` is not used."""
        check_is_fitted(self)
        return np.array(self.vocabulary_.words, dtype=object)

    def _count(self, texts: Iterable[str], keep_documents: bool) -> WordCounts:
        if self.max_words is not None:
            _check("max_words", self.max_words, Integral)
        _check("min_docs", self.min_docs, Integral)
        _check("min_phrase_docs", self.min_phrase_docs, Integral)
        _check("max_docs_fraction", self.max_docs_fraction, Real)
        definition = TextDefinition(bool(self.lowercase), bool(self.bigrams), _stop_words(self.stop_words))
        counts = WordCounts(definition, n_threads=effective_n_jobs(self.n_jobs), keep_documents=keep_documents)
        counts.add(texts)
        chosen = self.max_words, self.min_docs, self.max_docs_fraction, self.min_phrase_docs
        self.vocabulary_: Vocabulary = counts.vocabulary(*chosen)
        return counts

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags


def _check(name: str, value: Any, kind: type) -> None:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"{name} must be {'an integer' if kind is Integral else 'a number'}, got {value!r}")


def _stop_words(stop_words: str | Collection[str] | None) -> tuple[str, ...]:
    if stop_words is None:
        return ()
    if not isinstance(stop_words, str):
        # The order of a set changes from one process to the next.
        return tuple(sorted(stop_words) if isinstance(stop_words, Set) else stop_words)
    if stop_words != "english":
        raise ValueError(f'stop_words must be None, "english" or a list or set of words, got {stop_words!r}')
    return ENGLISH_STOP_WORDS
