"""Telling people how long work goes: a bar for the eye, the `mirrorlda` logger for programs."""

from __future__ import annotations

import logging
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from mirrorlda.training import Progress

B = TypeVar("B")

# Measures of an epoch that people look at while they wait, and what they are called there.
_SHOWN = {"loss": "loss", "score": "score", "validation_score": "held-out"}

logger = logging.getLogger("mirrorlda")


def tell(message: str, verbose: int) -> None:
    """A line for the log, and with `verbose` for people."""
    logger.info("%s", message)
    if verbose:
        print(message, file=sys.stderr)


@contextmanager
def reporter(total_docs: int, verbose: int, round: tuple[int, int] = (1, 1)) -> Iterator[Callable[[Progress], None]]:
    """A function for `train` to call; with `verbose` it drives a progress bar, also in notebooks.

    Where nobody can watch a bar, it is a line an epoch. `round` is the number of this training among several, and theirs.
    """
    if not verbose:
        yield lambda progress: _log(progress, round)
        return
    from tqdm.auto import tqdm

    begin = time.monotonic()
    with tqdm(total=total_docs, unit=" docs", unit_scale=True, dynamic_ncols=True, disable=not _is_watched(tqdm)) as bar:
        n_docs, last = 0, {"loss": math.nan}

        def report(progress: Progress) -> None:
            nonlocal n_docs
            _log(progress, round)
            n_docs += progress.n_docs
            if progress.epoch_ended:
                last.update({_SHOWN[name]: value for name, value in progress.measures.items() if name in _SHOWN})
                if "held-out" in last:
                    last.pop("score", None)
            elif math.isnan(last["loss"]):
                last["loss"] = progress.loss
            else:
                last["loss"] += 0.1 * (progress.loss - last["loss"])
            shown = {name: f"{value:.4g}" for name, value in last.items()}
            epoch = _epoch(progress, round, "/")
            if not bar.disable:
                bar.set_description(epoch, refresh=False)
                bar.set_postfix(shown, refresh=False)
                bar.update(progress.n_docs)
            elif progress.epoch_ended:
                measures = ", ".join(f"{name} {value}" for name, value in shown.items())
                rate = n_docs / max(1e-9, time.monotonic() - begin)
                print(f"{epoch}: {measures}, {rate:,.0f} docs/s", file=sys.stderr)

        yield report
        # Early stopping leaves the bar short of its total.
        bar.total = bar.n
        bar.refresh()


def counted(batches: Iterable[B], what: str, verbose: int, size: Callable[[B], int] = len) -> Iterator[B]:  # type: ignore[assignment]
    """The same batches of documents, whose `size` is their number; with `verbose`, a bar says how many have gone by."""
    if not verbose:
        yield from batches
        return
    from tqdm.auto import tqdm

    with tqdm(desc=what, unit=" docs", unit_scale=True, dynamic_ncols=True, disable=not _is_watched(tqdm)) as bar:
        for batch in batches:
            yield batch
            bar.update(size(batch))


def _is_watched(bar: Any) -> bool:
    """Whether bars go to a notebook or a terminal."""
    return sys.stderr.isatty() or any("notebook" in base.__module__ for base in bar.__mro__)


def _epoch(progress: Progress, round: tuple[int, int], of: str) -> str:
    number, n_rounds = round
    named = f"round {number}{of}{n_rounds}, " if n_rounds > 1 else ""
    return f"{named}epoch {progress.epoch + 1}{of}{progress.n_epochs}"


def _log(progress: Progress, round: tuple[int, int]) -> None:
    if progress.epoch_ended:
        measures = ", ".join(f"{name} {value:.5g}" for name, value in progress.measures.items())
        logger.info("%s: %s", _epoch(progress, round, " of "), measures)
