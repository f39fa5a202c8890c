"""Telling people how far work has come: a bar for the eye, the `mirrorlda` logger for programs."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

B = TypeVar("B")

logger = logging.getLogger("mirrorlda")


def tell(message: str, verbose: int) -> None:
    """A line for the log, and with `verbose` for people."""
    logger.info("%s", message)
    if verbose:
        print(message, file=sys.stderr)


def counted(batches: Iterable[B], what: str, verbose: int, size: Callable[[B], int] = len) -> Iterator[B]:  # type: ignore[assignment]
    """The same batches of documents, whose `size` is their number; with `verbose`, a bar says how many have gone by."""
    if not verbose:
        yield from batches
        return
    from tqdm.auto import tqdm

    with tqdm(desc=what, unit=" docs", unit_scale=True, dynamic_ncols=True, disable=not is_watched(tqdm)) as bar:
        for batch in batches:
            yield batch
            bar.update(size(batch))


def is_watched(bar: Any) -> bool:
    """Whether bars go to a notebook or a terminal."""
    return sys.stderr.isatty() or any("notebook" in base.__module__ for base in bar.__mro__)
