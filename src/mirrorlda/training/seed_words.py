"""Seed words, as users name them, to the guide that learning follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mirrorlda.training.mirror_descent import Guide


def guide_of(
    seed_words: Any, names: np.ndarray | None, topic_of: Callable[[Any], int], n_words: int, n_topics: int
) -> Guide | None:
    """The guide of a dict, whose keys `topic_of` turns into topics, or of a list for the first topics; None without words."""
    if seed_words is None:
        return None
    is_dict = isinstance(seed_words, Mapping)
    if not is_dict and (isinstance(seed_words, str) or not isinstance(seed_words, Sequence)):
        raise ValueError(f"seed_words must be a dict or a list of lists of words, got {seed_words!r}")
    pairs = list(seed_words.items() if is_dict else enumerate(seed_words))
    words = [[_column(word, names, n_words) for word in seeds] for _, seeds in pairs]
    rows = np.unique(np.concatenate([np.array(seeds, np.int32) for seeds in words] or [np.zeros(0, np.int32)]))
    towards = np.zeros((len(rows), n_topics))
    for (key, _), seeds in zip(pairs, words, strict=True):
        if seeds:
            topic = topic_of(key) if is_dict else topic_number(key, n_topics)
            towards[np.searchsorted(rows, seeds), topic] = 1 / len(set(seeds))
    # Classes may share a topic.
    sums = towards.sum(axis=0)
    return Guide(rows, towards / np.where(sums > 0, sums, 1)) if len(rows) else None


def topic_number(key: Any, n_topics: int) -> int:
    """A key that is the number of a topic."""
    if not (isinstance(key, int | np.integer) and 0 <= key < n_topics):
        raise ValueError(f"seed_words names the topic {key!r}, expected a number from 0 to {n_topics - 1}")
    return int(key)


def _column(word: Any, names: np.ndarray | None, n_words: int) -> int:
    if isinstance(word, str):
        if names is None:
            raise ValueError(
                f"seed_words has the name {word!r}, but X has no names: give the numbers of columns, or a data frame"
            )
        found = np.flatnonzero(names == word)
        if not len(found):
            raise ValueError(f"seed_words has the name {word!r}, which is not a column of X")
        return int(found[0])
    if not (isinstance(word, int | np.integer) and 0 <= word < n_words):
        raise ValueError(f"seed_words has the word {word!r}, expected a column from 0 to {n_words - 1}")
    return int(word)
