"""Documents without a target: they take the model's own prediction for one, and training is repeated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mirrorlda.data.documents import Documents
from mirrorlda.data.progress import tell
from mirrorlda.training.checkpoints import Fitted, Keeper
from mirrorlda.training.sources import Source

# Rounds with predicted targets. One is enough for ratings; classes gain until the third.
_N_ROUNDS = 3
_ROUND_EPOCHS = 4


@dataclass(frozen=True)
class Learned:
    """What one training leaves, and how it went.

    Attributes
    ----------
    fitted : Fitted
    source : Source
        The documents that topic shares and residuals are computed from.
    history : dict of lists
    n_steps, n_planned : int
        Steps that were taken, and that were to be taken.
    ended : bool
        False if training was interrupted.
    """

    fitted: Fitted
    source: Source
    history: dict[str, list[float]]
    n_steps: int
    n_planned: int
    ended: bool


@dataclass(frozen=True)
class Stage:
    """One training of a fit: its number, how many there are, and what the one before it learned.

    Where `n_epochs` is None, it is as long as a fit without such documents.
    """

    number: int
    n_stages: int
    before: Fitted | None = None
    n_epochs: int | None = None


def train_in_stages(
    source: Source,
    n_epochs: int,
    keeper: Keeper,
    train: Callable[[Source, Stage], Learned],
    own_targets: Callable[[Fitted], Callable[[Documents], np.ndarray]],
    verbose: int,
) -> Learned:
    """Train on the documents that have a target, then, if there are others, several times on all of them.

    `own_targets` says what a model predicts, as its response takes targets. Training goes on from where the `keeper` is.
    """
    known = source.without_unlabelled()
    if known.n_docs == source.n_docs:
        return train(known, Stage(0, 1))
    n_stages = 1 + _N_ROUNDS
    counted = f"{source.n_docs - known.n_docs:,} of {source.n_docs:,} documents have no target"
    tell(f"{counted}: the first of {n_stages} rounds learns from the others", verbose)
    fewer = min(n_epochs, max(_ROUND_EPOCHS, int(np.ceil(known.n_docs / source.n_docs * n_epochs))))
    before, learned = keeper.before, None
    for number in range(keeper.stage, n_stages):
        if before is None:
            learned = train(known, Stage(number, n_stages))
        else:
            learned = train(source.completed(own_targets(before)), Stage(number, n_stages, before, fewer))
        if not learned.ended:
            # What an interrupted first stage learned is described by the documents that it learned from.
            return learned if before is None else replace(learned, source=known)
        before = learned.fitted
    if learned is None:
        raise ValueError(f"the checkpoint is of training number {keeper.stage + 1}, but there are {n_stages}")
    return replace(learned, source=known)
