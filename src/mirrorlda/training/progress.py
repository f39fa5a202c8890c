"""A fit that tells how far it has come: documents, epoch, loss and score."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mirrorlda.data.progress import is_watched, logger
from mirrorlda.training.loop import Progress

# Measures of an epoch that people look at while they wait, and what they are called there.
_SHOWN = {"loss": "loss", "score": "score", "validation_score": "held-out"}


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
    with tqdm(total=total_docs, unit=" docs", unit_scale=True, dynamic_ncols=True, disable=not is_watched(tqdm)) as bar:
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


def _epoch(progress: Progress, round: tuple[int, int], of: str) -> str:
    number, n_rounds = round
    named = f"round {number}{of}{n_rounds}, " if n_rounds > 1 else ""
    return f"{named}epoch {progress.epoch + 1}{of}{progress.n_epochs}"


def _log(progress: Progress, round: tuple[int, int]) -> None:
    if progress.epoch_ended:
        measures = ", ".join(f"{name} {value:.5g}" for name, value in progress.measures.items())
        logger.info("%s: %s", _epoch(progress, round, " of "), measures)
