"""Telling people how long work goes: a bar for the eye, the `mirrorlda` logger for programs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from typing import TypeVar

from mirrorlda.training import Progress

B = TypeVar("B", bound=Sized)

logger = logging.getLogger("mirrorlda")


@contextmanager
def reporter(total_docs: int, verbose: int) -> Iterator[Callable[[Progress], None]]:
    """A function for `train` to call; with `verbose` it drives a progress bar, also in notebooks."""
    if not verbose:
        yield _log
        return
    from tqdm.auto import tqdm

    with tqdm(total=total_docs, unit=" docs", unit_scale=True, dynamic_ncols=True) as bar:

        def report(progress: Progress) -> None:
            _log(progress)
            bar.set_description(f"epoch {progress.epoch + 1}/{progress.n_epochs}", refresh=False)
            if progress.epoch_ended:
                bar.set_postfix({name: f"{value:.4f}" for name, value in progress.measures.items()}, refresh=False)
            bar.update(progress.n_docs)

        yield report
        # Early stopping leaves the bar short of its total.
        bar.total = bar.n
        bar.refresh()


def counted(batches: Iterable[B], what: str, verbose: int) -> Iterator[B]:
    """The same batches of documents; with `verbose`, a bar says how many have gone by."""
    if not verbose:
        yield from batches
        return
    from tqdm.auto import tqdm

    with tqdm(desc=what, unit=" docs", unit_scale=True, dynamic_ncols=True) as bar:
        for batch in batches:
            yield batch
            bar.update(len(batch))


def _log(progress: Progress) -> None:
    if progress.epoch_ended:
        measures = ", ".join(f"{name} {value:.5g}" for name, value in progress.measures.items())
        logger.info("epoch %d of %d: %s", progress.epoch + 1, progress.n_epochs, measures)
