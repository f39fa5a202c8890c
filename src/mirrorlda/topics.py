"""Reading a model's topics: their most relevant words, and a table of them for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def relevant_words(
    components: Any, shares: Any, names: Any = None, *, n_words: int = 10, relevance: float = 0.5
) -> list[list[str]]:
    """Most relevant words of each topic, the most relevant first.

    The relevance of a word w to a topic t is ``p(w|t)**relevance * ln(p(w|t) / p(w))``, with p(w) the mean of all topics,
    weighted by their shares of the corpus. The most probable words of a supervised topic are stop words, those with the
    largest lift are rare; in between are those that people read a topic by.

    Parameters
    ----------
    components : array of shape (n_topics, n_words)
        Topics as rows, as in `components_`.
    shares : array of shape (n_topics,)
        How much of the corpus each topic has, as in `topic_shares_`.
    names : sequence of n_words strings or Vocabulary, optional
        What the words are called; by default their numbers.
    n_words : int
        Words of each topic, fewer where there are fewer.
    relevance : float
        Between 0 (lift alone) and 1 (the words' parts of the divergence of the topic from the corpus).

    Returns
    -------
    list of lists of str

    Examples
    --------
    >>> from mirrorlda.topics import relevant_words
    >>> components = [[0.6, 0.3, 0.1], [0.6, 0.1, 0.3]]
    >>> relevant_words(components, [0.5, 0.5], ["the", "good", "bad"], n_words=2)
    [['good', 'the'], ['bad', 'the']]
    """
    components, shares = np.asarray(components, np.float64), np.asarray(shares, np.float64)
    if components.ndim != 2:
        raise ValueError(f"components must have shape (n_topics, n_words), got {components.shape}")
    n_topics, size = components.shape
    if shares.shape != (n_topics,):
        raise ValueError(f"shares must have shape ({n_topics},), one for each topic of components, got {shares.shape}")
    if not ((shares >= 0).all() and 0 < shares.sum() < np.inf):
        raise ValueError("shares must be non-negative and finite, and not all zero")
    names = getattr(names, "words", names)
    if names is not None and len(names) != size:
        raise ValueError(f"names has {len(names)} entries, but components has {size} words")
    if n_words < 1:
        raise ValueError(f"n_words must be at least 1, got {n_words}")
    if not 0 <= relevance <= 1:
        raise ValueError(f"relevance must be between 0 and 1, got {relevance}")

    p = np.maximum(components, np.finfo(np.float64).tiny)
    relevances = p**relevance * np.log(p / (shares @ p / shares.sum()))
    best = np.argsort(-relevances, axis=1, kind="stable")[:, :n_words]
    return [[str(word if names is None else names[word]) for word in row] for row in best]


def describe(model: Any, names: Any = None, *, n_words: int = 8, relevance: float = 0.5) -> str:
    """A table of a fitted model's topics, a line each, ordered by what they stand for.

    A regressor's topics come with `coef_`, largest first. With two classes the weight is that for the second class against
    the first, ``coef_[1] - coef_[0]``. With more, it is that for the class the topic speaks for most, over the mean of
    all classes. Topics of a `TopicModel` have no weight and are ordered by their share.

    Parameters
    ----------
    model : TopicModel, TopicClassifier or TopicRegressor
    names, n_words, relevance
        As for `relevant_words`; names are by default those of the corpus or data frame that the model was fitted to.

    Returns
    -------
    str

    Examples
    --------
    >>> from mirrorlda import TopicRegressor
    >>> from mirrorlda.datasets import make_topics
    >>> from mirrorlda.topics import describe
    >>> data = make_topics(n_docs=600, n_words=60, n_topics=3, n_outputs=1, random_state=0)
    >>> model = TopicRegressor(n_topics=3, random_state=0).fit(data.X, data.y)
    >>> table = describe(model, n_words=4)
    >>> table.splitlines()[0].split()
    ['topic', 'share', 'weight', 'words']
    >>> len(table.splitlines())
    4
    """
    if not hasattr(model, "topic_shares_"):
        raise ValueError(f"model must be a fitted TopicModel, TopicClassifier or TopicRegressor, got {type(model).__name__}")
    if names is None:
        names = model.vocabulary_.words if hasattr(model, "vocabulary_") else getattr(model, "feature_names_in_", None)
    shares = model.topic_shares_
    words = relevant_words(model.components_, shares, names, n_words=n_words, relevance=relevance)
    n_topics = len(words)
    # Labels stand side by side, as outputs do; classes against each other.
    classes = None if getattr(model, "_is_multilabel", False) else getattr(model, "classes_", None)
    outputs = getattr(model, "classes_", getattr(model, "target_names_", None)) if classes is None else None
    order, weights = _weights(getattr(model, "coef_", None), classes, shares, outputs)

    columns = [("topic", [str(topic) for topic in range(n_topics)])]
    columns.append(("share", [f"{share:.1%}" for share in shares]))
    columns += weights
    widths = [max(len(cell) for cell in (title, *cells)) for title, cells in columns]
    lines = [[title for title, _ in columns] + ["words"]]
    lines += [[cells[topic] for _, cells in columns] + [" ".join(words[topic])] for topic in order]
    return "\n".join(
        "  ".join([cell.rjust(width) for cell, width in zip(line, widths, strict=False)] + line[-1:]) for line in lines
    )


def _weights(coef: Any, classes: Any, shares: np.ndarray, outputs: Any = None) -> tuple[np.ndarray, list[tuple[str, list[str]]]]:
    """The order of the topics, and titled columns with their weights."""
    if coef is None:
        return np.argsort(-shares, kind="stable"), []
    coef = np.asarray(coef, np.float64)
    if classes is None:
        titles = [f"output {number}" for number in range(len(coef))]
        if len(coef) == 1:
            titles = ["weight"]
        elif outputs is not None and len(outputs) == len(coef) and np.asarray(outputs).dtype.kind in "US":
            titles = [f"for {name}" for name in outputs]
        return np.argsort(-coef[0], kind="stable"), [
            (title, _signed(weights)) for title, weights in zip(titles, coef, strict=True)
        ]
    if len(classes) == 2:
        weights = coef[1] - coef[0]
        return np.argsort(-weights, kind="stable"), [(f"for {classes[1]}", _signed(weights))]
    # The softmax does not see what is common to all classes.
    relative = coef - coef.mean(axis=0)
    number, weights = relative.argmax(axis=0), relative.max(axis=0)
    return np.lexsort((-weights, number)), [("for", [str(classes[c]) for c in number]), ("weight", _signed(weights))]


def _signed(weights: Sequence[float] | np.ndarray) -> list[str]:
    """Three digits of the largest; the same number of decimals for all."""
    largest = np.abs(weights).max(initial=0)
    decimals = max(0, 2 - int(np.floor(np.log10(largest)))) if largest > 0 else 2
    return [f"{weight:+.{decimals}f}" for weight in weights]
