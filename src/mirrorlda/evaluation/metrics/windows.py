"""How many sliding windows over texts have words, alone and together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

_BATCH = 4096


@dataclass(frozen=True)
class _Occurrences:
    """Where the words asked for are in a batch of texts, sorted by word, then text, then position."""

    words: np.ndarray
    texts: np.ndarray
    positions: np.ndarray
    lengths: np.ndarray  # Of the texts.


def count_windows(topics: Sequence[Sequence[str]], texts: Iterable[Sequence[str]], size: int) -> tuple[np.ndarray, int]:
    """Windows that have words a and b of a topic, ``counts[topic, a, b]``, with those of word a on the diagonal; and all windows.

    Windows are `size` tokens, one from every token on while they fit; a text no longer than that, or empty, is one window. As in
    gensim, a word is in a window if the sliding says so: it comes when it is the last token, and goes when it was the first, be
    it elsewhere in the window or not.
    """
    numbers: dict[str, int] = {}
    members = np.array([[numbers.setdefault(word, len(numbers)) for word in topic] for topic in topics])
    counts = np.zeros((*members.shape, members.shape[1]))
    n_windows = 0
    for found in _batches(numbers, texts):
        windows_of = np.maximum(found.lengths - size, 0) + 1
        words, begins, ends = _runs(found, windows_of, size)
        first = np.searchsorted(words, np.arange(len(numbers) + 1))
        for topic, row in enumerate(members):
            runs = [slice(first[word], first[word + 1]) for word in row]
            counts[topic] += _together([begins[run] for run in runs], [ends[run] for run in runs])
        n_windows += int(windows_of.sum())
    return counts, n_windows


def _batches(numbers: dict[str, int], texts: Iterable[Sequence[str]]) -> Iterator[_Occurrences]:
    remaining = iter(texts)
    while batch := list(islice(remaining, _BATCH)):
        lengths = np.array([len(text) for text in batch], np.int64)
        found = np.array([numbers.get(token, -1) for text in batch for token in text], np.int64)
        tokens = np.flatnonzero(found >= 0)
        tokens = tokens[np.argsort(found[tokens], kind="stable")]
        begins = np.cumsum(lengths) - lengths
        # An empty text begins where the next one does: the last of them has the token.
        in_text = np.searchsorted(begins, tokens, side="right") - 1
        yield _Occurrences(found[tokens], in_text, tokens - begins[in_text], lengths)


def _runs(found: _Occurrences, windows_of: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Words, and runs of windows, numbered through the texts, that they are in: begins and ends, sorted and apart for each."""
    comes = np.maximum(found.positions - size + 1, 0)
    # The occurrence that is the first to leave, of those in the window in which this one comes.
    width = int(found.lengths.max(initial=0)) + 1
    place = (found.words * len(found.lengths) + found.texts) * width
    leaving = np.searchsorted(place + found.positions, place + comes)
    before = (np.cumsum(windows_of) - windows_of)[found.texts]
    begins = before + comes
    ends = before + np.minimum(found.positions[leaving] + 1, windows_of[found.texts])
    follows = found.words[1:] == found.words[:-1]
    begins[1:] = np.where(follows, np.maximum(begins[1:], ends[:-1]), begins[1:])
    some = begins < ends
    return found.words[some], begins[some], ends[some]


def _together(begins: list[np.ndarray], ends: list[np.ndarray]) -> np.ndarray:
    """Windows that two words are both in, from the runs of each word."""
    sizes = [len(run) for run in begins]
    places = np.concatenate([*begins, *ends])
    words = np.tile(np.repeat(np.arange(len(sizes)), sizes), 2)
    steps = np.repeat([1, -1], len(places) // 2)
    # Between neighbouring places the same words are in every window.
    distinct, where = np.unique(places, return_inverse=True)
    present = np.zeros((len(distinct), len(sizes)), np.int8)
    np.add.at(present, (where, words), steps.astype(np.int8))
    inside = present.cumsum(axis=0, dtype=np.int8)[:-1].astype(np.float64)
    return inside.T @ (inside * np.diff(distinct)[:, None])
