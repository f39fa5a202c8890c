"""The order in which an epoch visits documents: a shuffle that reads a corpus in runs.

Documents are taken in blocks of 256 neighbours. An epoch draws a new order of the blocks, takes the next 256 of them at a time (a
window: 65,536 documents, fewer where documents are long), shuffles the documents of the window, and cuts batches from them. What
is guaranteed: every document comes once; every order of the documents of a window is as likely as any other; the blocks of a
window are a random sample of the corpus. A corpus of one window or less is shuffled completely. The documents of a batch come
from up to 256 places of the corpus: if it is sorted by class, the share p of a class in a window varies by sqrt(p (1 - p) / 256),
3 percent at most.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mirrorlda.data.corpus.shards import BLOCK_DOCS

_WINDOW_DOCS = 65_536
# Distinct words of documents that a window is meant to hold: 64 MB of them.
_WINDOW_ENTRIES = 8_000_000


def window_blocks(n_docs: int, n_entries: int) -> int:
    """Blocks of a window, for documents with so many entries in all."""
    entries_of_block = max(1, n_entries * BLOCK_DOCS // max(1, n_docs))
    return max(1, min(_WINDOW_DOCS // BLOCK_DOCS, _WINDOW_ENTRIES // entries_of_block))


def windows(n_docs: int, n_entries: int, batch_size: int, seed: int, first_batch: int = 0) -> Iterator[np.ndarray]:
    """Document numbers of an epoch in their order, whole batches at a time; the batches before `first_batch` are passed over.

    Examples
    --------
    >>> from mirrorlda.training.epoch_order import windows
    >>> sorted(number for window in windows(5, 20, 2, seed=0) for number in window.tolist())
    [0, 1, 2, 3, 4]
    """
    blocks = np.random.default_rng((seed, 0)).permutation(-(-n_docs // BLOCK_DOCS))
    size = window_blocks(n_docs, n_entries)
    waiting = np.empty(0, np.int64)
    to_pass = first_batch * batch_size
    for number, first in enumerate(range(0, len(blocks), size)):
        drawn = blocks[first : first + size, None] * BLOCK_DOCS + np.arange(BLOCK_DOCS)
        shuffled = np.random.default_rng((seed, 1, number)).permutation(drawn[drawn < n_docs])
        waiting = np.concatenate([waiting, shuffled])
        n_whole = len(waiting) if first + size >= len(blocks) else len(waiting) // batch_size * batch_size
        if to_pass < n_whole:
            yield waiting[to_pass:n_whole]
        to_pass = max(0, to_pass - n_whole)
        waiting = waiting[n_whole:]
