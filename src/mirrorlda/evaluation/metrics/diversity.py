"""Whether topics differ."""

from __future__ import annotations

from typing import Any

import numpy as np

from mirrorlda.evaluation.metrics.top_words import first_words


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
    words = first_words(topics, n_words)
    return float(np.unique(words).size / words.size)
