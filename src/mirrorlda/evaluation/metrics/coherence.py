"""Coherence: whether the top words of a topic belong together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from mirrorlda.data.documents import as_documents
from mirrorlda.data.text import TextDefinition
from mirrorlda.evaluation.metrics.top_words import columns_of, first_words, names_of
from mirrorlda.evaluation.metrics.windows import count_windows

# That of Roeder et al. and of gensim.
_EPSILON = 1e-12


def npmi_coherence(topics: Any, X: Any, names: Any = None, *, n_words: int = 10, epsilon: float = _EPSILON) -> np.ndarray:
    """Coherence of each topic: the mean normalised pointwise mutual information (NPMI) of the pairs of its top words.

    With P(a) the share of the documents that word a is in, and P(a, b) that of the documents that have both words, it is
    ``ln((P(a, b) + epsilon) / (P(a) P(b))) / -ln(P(a, b) + epsilon)``: 1 for words always together, 0 for independent ones.

    Parameters
    ----------
    topics : array of shape (n_topics, n_words), or sequence of sequences
        Floating-point numbers are weights of all words, as in `components_`: the top words are those with the largest.
        Integers and strings are the top words themselves, best first: columns of X, or their names.
    X : sparse matrix, sparse array or array of shape (n_docs, n_words)
        Counts of the documents in which words are together or not: those of training, or others.
    names : sequence of strings, optional
        What the columns of X are called; by default their numbers, as in `mirrorlda.topics.relevant_words`.
    n_words : int
        Top words of each topic, at least 2.
    epsilon : float
        The default is gensim's. Words never together are above -1 with it, rare ones the most: -0.5 if each is in one
        document of a thousand. With 0 they are -1.

    Returns
    -------
    ndarray of shape (n_topics,)

    Notes
    -----
    The values are those of gensim's ``CoherenceModel(coherence="c_npmi", window_size=...)`` if its window holds the longest
    document. Two kinds of pairs, for which NPMI is not defined, differ: a pair with a word that is in no document is 0 (in
    gensim infinite), two words that are both in every document are 1 (in gensim -1).

    Examples
    --------
    >>> from mirrorlda.metrics import npmi_coherence
    >>> X = [[1, 1, 0, 0], [2, 1, 0, 1], [0, 0, 3, 0], [0, 0, 1, 1]]
    >>> npmi_coherence([["cat", "dog"], ["cat", "sun"], ["cat", "the"]], X, ["cat", "dog", "sun", "the"], n_words=2).round(2)
    array([ 1.  , -0.95,  0.  ])
    >>> components = [[0.4, 0.4, 0.1, 0.1], [0.4, 0.1, 0.4, 0.1]]
    >>> npmi_coherence(components, X, n_words=2, epsilon=0)
    array([ 1., -1.])
    """
    if n_words < 2:
        raise ValueError(f"n_words must be at least 2, for coherence is one of pairs, got {n_words}")
    if not 0 <= epsilon < 1:
        raise ValueError(f"epsilon must be at least 0 and below 1, got {epsilon}")
    documents = as_documents(X)
    if not documents.counts.any():
        raise ValueError(f"X must have a count above zero, got none in shape ({documents.n_docs}, {documents.n_words})")
    top_words = columns_of(first_words(topics, n_words, documents.n_words), names, documents.n_words)

    occurs = (documents.counts > 0).astype(np.int64), documents.indices, documents.indptr
    by_word = sp.csr_array(occurs, shape=(documents.n_docs, documents.n_words)).tocsc()
    first, second = np.triu_indices(n_words, 1)
    coherence = np.empty(len(top_words))
    for topic, words in enumerate(top_words):
        among = by_word[:, words]
        coherence[topic] = _npmi((among.T @ among).toarray() / documents.n_docs, epsilon)[first, second].mean()
    return coherence


def cv_coherence(
    topics: Any,
    texts: Iterable[str | Sequence[str]],
    names: Any = None,
    *,
    n_words: int = 10,
    window_size: int = 110,
    definition: TextDefinition = TextDefinition(),
) -> np.ndarray:
    """Coherence C_V of each topic (Röder et al., 2015): whether its top words have the same neighbours among them.

    Each top word has a vector: its NPMI with every top word of the topic, itself among them, where words are together if they are
    in the same window of `window_size` tokens. C_V is the mean cosine of these vectors with their sum.

    Parameters
    ----------
    topics : array of shape (n_topics, n_words), or sequence of sequences
        As for `npmi_coherence`: weights of all words, or the top words themselves, by number or by name.
    texts : iterable of strings, or of sequences of strings
        Texts, or the tokens of each, in order and with those that are no top words: they take up room in windows.
    names : sequence of strings, optional
        What the words are called; needed if topics are weights or numbers.
    n_words : int
        Top words of each topic, at least 2.
    window_size : int
        Tokens of a window.
    definition : TextDefinition
        How a text that is one string becomes tokens.

    Returns
    -------
    ndarray of shape (n_topics,)
        At most 1, below 0 hardly ever: the vectors have the word itself.

    Notes
    -----
    The values are those of gensim's ``CoherenceModel(coherence="c_v", topn=n_words)`` with a dictionary of the texts. A text no
    longer than a window is one window, an empty one too. A word that is in no text is left out of its topic; a topic with
    fewer than two words left is 0 (in gensim 1 with one word, and an error with none).

    As in gensim, a word that is several times in a window counts as gone once the first of these has left the window, until it
    comes anew. Windows counted to the letter give other values where words repeat: on film reviews 0.01 apart, at most 0.04.

    Examples
    --------
    >>> from mirrorlda.metrics import cv_coherence
    >>> texts = ["The cat and the dog.", "A dog, a cat", "the sun", "Sun and moon", "cat, sun, sea"]
    >>> cv_coherence([["cat", "dog"], ["dog", "moon"], ["sun", "sea"]], texts, n_words=2).round(2)
    array([0.96, 0.05, 0.89])
    """
    if n_words < 2:
        raise ValueError(f"n_words must be at least 2, for coherence is one of several words, got {n_words}")
    if window_size < 1:
        raise ValueError(f"window_size must be at least 1, got {window_size}")
    if isinstance(texts, str):
        raise ValueError("texts must be an iterable of texts, got one string")
    words = names_of(first_words(topics, n_words, None if names is None else len(names)), names)
    counts, n_windows = count_windows(words, _tokens(texts, definition), window_size)
    if not counts.any():
        raise ValueError(f"texts have none of the words of the topics, the first of which is {words[0][0]!r}")
    return np.array([_mean_cosine(joint / n_windows) for joint in counts])


def _tokens(texts: Iterable[str | Sequence[str]], definition: TextDefinition) -> Iterator[Sequence[str]]:
    for number, text in enumerate(texts):
        if not isinstance(text, str | Sequence | np.ndarray):
            raise ValueError(f"text {number} must be a string or a sequence of tokens, got {text!r}")
        yield definition.words(text) if isinstance(text, str) else text


def _mean_cosine(joint: np.ndarray) -> float:
    """Mean cosine of the rows of NPMI with their sum, of the words that occur."""
    occurs = np.flatnonzero(joint.diagonal())
    if len(occurs) < 2:
        return 0.0
    npmi = _npmi(joint[np.ix_(occurs, occurs)], _EPSILON)
    total = npmi.sum(axis=0)
    norms = np.linalg.norm(npmi, axis=1) * np.linalg.norm(total)
    return float(np.divide(npmi @ total, norms, out=np.zeros(len(npmi)), where=norms > 0).mean())


def _npmi(joint: np.ndarray, epsilon: float) -> np.ndarray:
    """NPMI of words a and b from the shares ``joint[a, b]`` of the documents that have both, and ``joint[a, a]`` that have a."""
    p = joint.diagonal()
    with np.errstate(divide="ignore", invalid="ignore"):
        npmi = np.log((joint + epsilon) / np.outer(p, p)) / -np.log(joint + epsilon)
    if epsilon == 0:
        npmi[joint == 0] = -1
    npmi[joint == 1] = 1
    npmi[np.outer(p, p) == 0] = 0
    return npmi
