"""Many documents, a part at a time: how large parts are, and the next one read while the last is in use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

# Documents that are looked at together where all of them are looked at.
PART_DOCS = 65_536
# Documents that are read at a time where something is computed for all of them.
READ_DOCS = 16_384

T = TypeVar("T")


def chunks(n_docs: int, size: int) -> Iterator[np.ndarray]:
    """Document numbers in runs."""
    return (np.arange(first, min(first + size, n_docs)) for first in range(0, n_docs, size))


def ahead(items: Iterable[T]) -> Iterator[T]:
    """The same items, each made on another thread while the one before it is in use."""
    iterator, end = iter(items), object()
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, iterator, end)
        while (item := coming.result()) is not end:
            coming = pool.submit(next, iterator, end)
            yield item  # type: ignore[misc]
