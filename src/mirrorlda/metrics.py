"""Measures of topics: whether the top words of a topic belong together, and whether topics differ."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mirrorlda.documents import as_documents


def npmi_coherence(topics: Any, X: Any, names: Any = None, *, n_words: int = 10, epsilon: float = 1e-12) -> np.ndarray:
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
    top_words = _columns(_top_words(topics, n_words, documents.n_words), names, documents.n_words)

    occurs = (documents.counts > 0).astype(np.int64), documents.indices, documents.indptr
    by_word = sp.csr_array(occurs, shape=(documents.n_docs, documents.n_words)).tocsc()
    first, second = np.triu_indices(n_words, 1)
    coherence = np.empty(len(top_words))
    for topic, words in enumerate(top_words):
        among = by_word[:, words]
        coherence[topic] = _npmi((among.T @ among).toarray() / documents.n_docs, epsilon)[first, second].mean()
    return coherence


def topic_diversity(topics: Any, *, n_words: int = 25) -> float:
    """Share of distinct words among the top words of all topics: 1 if no two topics have one in common (Dieng et al., 2020).

    Parameters
    ----------
    topics : array of shape (n_topics, n_words), or sequence of sequences
        As for `npmi_coherence`: weights of the words, or the top words themselves.
    n_words : int
        Top words of each topic.

    Returns
    -------
    float
        Between ``1 / n_topics`` and 1.

    Examples
    --------
    >>> from mirrorlda.metrics import topic_diversity
    >>> topic_diversity([["cat", "dog"], ["cat", "sun"]], n_words=2)
    0.75
    """
    if n_words < 1:
        raise ValueError(f"n_words must be at least 1, got {n_words}")
    words = _top_words(topics, n_words)
    return float(np.unique(words).size / words.size)


def _top_words(topics: Any, n_words: int, n_columns: int | None = None) -> np.ndarray:
    """The first n_words words of each topic, by number or name as given; weights must be those of n_columns words."""
    rows = [_row(topic, number) for number, topic in enumerate(topics)]
    if not rows:
        raise ValueError("topics must have at least one topic, got none")
    kinds = {row.dtype.kind for row in rows}
    if not (kinds <= set("fiu") or kinds == {"U"}):
        raise ValueError(
            "topics must hold weights (floating-point numbers), or words by number (integers) or by name (strings), "
            f"got {', '.join(sorted({str(row.dtype) for row in rows}))}"
        )
    weighted = "f" in kinds
    if weighted:
        _check_weights(rows, len(rows[0]) if n_columns is None else n_columns)
    for number, row in enumerate(rows):
        if len(row) < n_words:
            raise ValueError(f"topic {number} has {len(row)} words, fewer than n_words, which is {n_words}")
    if weighted:
        return np.array([np.argsort(-row.astype(np.float64), kind="stable")[:n_words] for row in rows])
    words = np.array([row[:n_words] for row in rows])
    for number, row in enumerate(words):
        distinct, times = np.unique(row, return_counts=True)
        if times.max() > 1:
            raise ValueError(f"topic {number} has the word {distinct[times.argmax()]} more than once among its first {n_words}")
    return words


def _row(topic: Any, number: int) -> np.ndarray:
    row = np.asarray(topic)
    if row.ndim != 1:
        raise ValueError(f"topic {number} must be a sequence of weights or of words, got {topic!r}")
    # Names are often objects, as are those of scikit-learn's vectorizers.
    return np.array(row.tolist()) if row.dtype == object else row


def _check_weights(rows: list[np.ndarray], n_columns: int) -> None:
    for number, row in enumerate(rows):
        if len(row) != n_columns:
            raise ValueError(f"topic {number} has weights for {len(row)} words, expected {n_columns}")
        if np.isnan(row).any():
            raise ValueError(f"topic {number} has the weight nan for word {np.isnan(row).argmax()}")


def _columns(words: np.ndarray, names: Any, n_columns: int) -> np.ndarray:
    """Columns of X of words given by number or name."""
    if names is not None and len(names) != n_columns:
        raise ValueError(f"names has {len(names)} entries, but X has {n_columns} words")
    if words.dtype.kind == "U":
        return _columns_by_name(words, range(n_columns) if names is None else names)
    outside = np.argwhere((words < 0) | (words >= n_columns))
    if len(outside):
        topic, rank = outside[0]
        raise ValueError(f"topic {topic} has the word {words[topic, rank]}, but the words of X are numbered 0 to {n_columns - 1}")
    return words


def _columns_by_name(words: np.ndarray, names: Any) -> np.ndarray:
    columns: dict[str, int] = {}
    for column, name in enumerate(map(str, names)):
        if columns.setdefault(name, column) != column:
            raise ValueError(f"names must differ, got {name!r} for words {columns[name]} and {column}")
    for topic, row in enumerate(words.tolist()):
        for word in row:
            if word not in columns:
                raise ValueError(f"topic {topic} has the word {word!r}, which is not among the names of the words of X")
    return np.array([[columns[word] for word in row] for row in words.tolist()])


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
