"""The one training loop, for all models: batches, schedules, history, stopping."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from mirrorlda import _core
from mirrorlda.data.documents import Documents
from mirrorlda.method.gradients import Gradients, gradients, word_losses
from mirrorlda.method.inference import Layers, forward, new_engine
from mirrorlda.method.prior import TopicUsage
from mirrorlda.method.responses import Response
from mirrorlda.method.themes import Decoder
from mirrorlda.training import mirror_descent
from mirrorlda.training.schedule import Schedule
from mirrorlda.training.sources import Examples, Source

# How much more it weighs that a theme is used if the user asked for it.
_GUIDED_USE = 4.0
# Epochs after which topics are no longer too alike for an estimate of alpha.
_ALIKE = 3
# Documents that the score of an epoch is of: the latest.
SCORED_DOCS = 65_536
# Documents at a time where nothing is learned: few enough for an interrupt between two of them to be prompt.
_JUDGED_DOCS = 4096


@dataclass
class Progress:
    """What is told after each batch and each epoch."""

    epoch: int
    n_epochs: int
    n_docs: int
    loss: float
    epoch_ended: bool
    measures: dict[str, float] = field(default_factory=dict)


def step(
    state: mirror_descent.State,
    engine: _core.Engine32 | _core.Engine64,
    examples: Examples,
    batch: np.ndarray,
    response: Response,
    layers: Layers,
    schedule: Schedule,
    rates: mirror_descent.Rates,
    weight: float,
    rng: np.random.Generator,
    n_threads: int,
    frozen: mirror_descent.Spread | None = None,
) -> Gradients:
    """One step on the documents in `batch`, with gradients divided by `weight`; returns them, as they were before it."""
    seed = drawn(state, schedule, rng)
    result = gradients_of(state, engine, examples, batch, response, layers, schedule, rates, seed, n_threads)
    mirror_descent.learn(state, result, weight, rates, n_threads, frozen)
    return result


def drawn(state: mirror_descent.State, schedule: Schedule, rng: np.random.Generator) -> int:
    """The seed of one step, where it needs one."""
    return int(rng.integers(2**63)) if state.word_weights is not None or schedule.word_dropout else 0


def gradients_of(
    state: mirror_descent.State,
    engine: _core.Engine32 | _core.Engine64,
    examples: Examples,
    batch: np.ndarray,
    response: Response,
    layers: Layers,
    schedule: Schedule,
    rates: mirror_descent.Rates,
    seed: int,
    n_threads: int,
    first: int = 0,
    block_docs: int = 0,
) -> Gradients:
    """Gradients of the documents in `batch`, or in its part from the place `first` on, with blocks of `block_docs` documents."""
    documents, numbers = examples.documents, batch
    if state.word_weights is not None or schedule.word_dropout:
        # As this step sees them: thinned, and with their words' weights.
        documents = documents.thinned(batch, state.word_weights, schedule.word_dropout, seed, n_threads, first)
        numbers = np.arange(documents.n_docs)
    rows = documents.words_of(numbers, n_threads)
    return gradients(
        engine,
        state.phi,
        state.U,
        documents,
        numbers,
        examples.y[batch],
        examples.weights[batch],
        response,
        layers,
        rows=rows,
        decoder=decoder_of(state, examples.documents, batch, schedule),
        want_word_weights=state.word_weights is not None and rates.words > 0,
        want_moments=bool(len(state.U)) and rates.damping is not None,
        frame=mirror_descent.scale_and_shift(state),
        block_docs=block_docs,
        n_threads=n_threads,
    )


def decoder_of(state: mirror_descent.State, documents: Documents, batch: np.ndarray, schedule: Schedule) -> Decoder | None:
    """What tells of documents, as they are before they are thinned and weighted; None where there are no themes."""
    if state.theme_counts is None:
        return None
    use_weights = np.full(len(state.theme_totals), schedule.use_weight)
    if state.guide is not None:
        use_weights[state.guide.towards.any(axis=0)] *= _GUIDED_USE
    return Decoder(state.theme_counts, state.theme_totals, schedule.theme_weight, use_weights, documents, batch)


@dataclass(frozen=True)
class Seen:
    """Documents of one or more steps, as they were before: how many, their loss and weight in all, and of each what is told.

    That is scores, losses, targets, weights, proportions and lengths: of all documents, or of none.
    """

    n_steps: int
    n_docs: int
    loss: float
    weight: float
    scores: np.ndarray
    losses: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    theta: np.ndarray
    lengths: np.ndarray


@dataclass
class Tally:
    """The loss of an epoch so far, and what its score is computed from: the latest documents."""

    loss: float = 0.0
    weight: float = 0.0
    latest: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = field(default_factory=list)

    def add(self, seen: Seen) -> None:
        self.loss += seen.loss
        self.weight += seen.weight
        if len(seen.losses):
            self.latest.append((seen.scores, seen.losses, seen.y, seen.weights))
        while sum(len(part[1]) for part in self.latest[1:]) >= SCORED_DOCS:
            del self.latest[0]

    def measures(self, response: Response) -> dict[str, float]:
        scores, losses, y, weights = (np.concatenate(column) for column in zip(*self.latest, strict=True))
        return {"loss": self.loss / self.weight, "score": response.score(scores, losses, y, weights)}


@dataclass
class Best:
    """The parameters with the best validation score so far."""

    parameters: mirror_descent.Parameters
    alpha: np.ndarray
    score: float
    epoch: int


@dataclass
class Run:
    """A training run between two batches: all that the rest of it depends on, beside documents and settings.

    `epoch` and `batch` are the next ones; `order` is the seed of the epoch's shuffle, `held_out` that of the choice of documents
    for validation.
    """

    state: mirror_descent.State
    layers: Layers
    rng: np.random.Generator
    held_out: int = 0
    epoch: int = 0
    batch: int = 0
    n_steps: int = 0
    order: int = 0
    tally: Tally = field(default_factory=Tally)
    history: dict[str, list[float]] = field(default_factory=dict)
    best: Best | None = None
    usage: TopicUsage | None = None


class Steps(Protocol):
    """Who takes the steps: this process alone, or others."""

    def __call__(self, run: Run, source: Source, response: Response, schedule: Schedule, n_threads: int) -> Iterator[Seen]:
        """The steps of the epoch that `run` is in, from its batch on; the run's state and generator move on with each."""


def alone(run: Run, source: Source, response: Response, schedule: Schedule, n_threads: int) -> Iterator[Seen]:
    """The steps of an epoch on this machine, one batch at a time."""
    engine = new_engine(run.state.phi.dtype)
    n_docs, total = source.n_docs, source.total_weight
    n_steps = schedule.n_steps(n_docs)
    for examples, batch in source.batches(schedule.batch_size(run.epoch), run.order, run.batch):
        rates = schedule.rates(run.n_steps, n_steps, total)
        weight = total / n_docs * len(batch)
        found = step(run.state, engine, examples, batch, response, run.layers, schedule, rates, weight, run.rng, n_threads)
        yield seen(found, examples, batch)


def seen(found: Gradients, examples: Examples, batch: np.ndarray) -> Seen:
    """What one step says of its documents."""
    y, weights, lengths = examples.y[batch], examples.weights[batch], examples.lengths[batch]
    loss, weight = float(found.losses @ weights), float(weights.sum())
    return Seen(1, len(batch), loss, weight, found.scores, found.losses, y, weights, found.theta, lengths)


def train(
    run: Run,
    source: Source,
    response: Response,
    schedule: Schedule,
    *,
    steps: Steps = alone,
    validation: Examples | None = None,
    patience: int | None = None,
    n_threads: int = 1,
    report: Callable[[Progress], None] = lambda progress: None,
    save: Callable[[bool], None] = lambda epoch_ended: None,
    interrupted: Callable[[], bool] = lambda: False,
) -> tuple[mirror_descent.Parameters, Layers]:
    """Train from where `run` is, which moves on; returns the parameters and the layers.

    `steps` takes the steps; all else is the same on one machine and on many. With `validation`, loss and score on it are part of
    the history. With `patience` as well, training stops after that many epochs without a better validation score, and the best
    parameters are returned. If the run has a `usage`, the layers' alpha is estimated anew after each epoch but the first ones and
    the last. `save` is called after every batch (False) and every epoch (True), when all that happened is in `run`. Once
    `interrupted` says so, training ends after the batch.
    """
    while run.epoch < schedule.n_epochs and not _is_exhausted(run, patience) and not interrupted():
        if run.batch == 0:
            run.order = int(run.rng.integers(2**63))
        for told in steps(run, source, response, schedule, n_threads):
            run.tally.add(told)
            if run.usage is not None and len(told.theta):
                run.usage.add(told.theta, told.lengths, run.layers.alpha, run.rng)
            run.n_steps += told.n_steps
            run.batch += told.n_steps
            report(Progress(run.epoch, schedule.n_epochs, told.n_docs, told.loss / max(told.weight, 1e-300), False))
            save(False)
            if interrupted():
                break
        if run.batch * schedule.batch_size(run.epoch) < source.n_docs:
            break
        _end_epoch(run, response, schedule, validation, n_threads, report, keep_best=patience is not None)
        save(True)
    if run.best is not None:
        return run.best.parameters, replace(run.layers, alpha=run.best.alpha)
    return mirror_descent.parameters(run.state, n_threads), run.layers


def _is_exhausted(run: Run, patience: int | None) -> bool:
    return patience is not None and run.best is not None and run.epoch - 1 - run.best.epoch >= patience


def _end_epoch(
    run: Run,
    response: Response,
    schedule: Schedule,
    validation: Examples | None,
    n_threads: int,
    report: Callable[[Progress], None],
    *,
    keep_best: bool,
) -> None:
    """Measures, the best parameters so far, a new estimate of alpha."""
    measures = run.tally.measures(response)
    if validation is not None:
        # Of a copy where nothing is kept: reading the parameters rounds the state, and a look must not change what is learned.
        now = mirror_descent.parameters(run.state if keep_best else mirror_descent.copy(run.state), n_threads)
        measures["validation_loss"], measures["validation_score"] = evaluate(now, validation, response, run.layers, n_threads)
        if keep_best and (run.best is None or measures["validation_score"] > run.best.score):
            run.best = Best(now, run.layers.alpha, measures["validation_score"], run.epoch)
    for name, value in measures.items():
        run.history.setdefault(name, []).append(value)
    report(Progress(run.epoch, schedule.n_epochs, 0, measures["loss"], True, measures))
    run.epoch, run.batch, run.tally = run.epoch + 1, 0, Tally()
    if run.usage is not None and min(_ALIKE, schedule.n_epochs // 2) <= run.epoch < schedule.n_epochs:
        # The few layers of a prediction leave theta short of the maximum, which looks like a larger alpha each time.
        run.layers = replace(run.layers, alpha=run.usage.alpha(run.layers.alpha, keep_total=not response.word_weight))


def evaluate(
    parameters: mirror_descent.Parameters,
    source: Source,
    response: Response,
    layers: Layers,
    n_threads: int,
) -> tuple[float, float]:
    """Mean loss and score."""
    phi, U, word_weights = parameters.phi, parameters.U, parameters.word_weights
    engine = new_engine(phi.dtype)
    has_words = bool(response.word_weight)
    scores, losses, targets, weights = [], [], [], []
    for examples, numbers in source.parts(_JUDGED_DOCS):
        documents, batch = examples.documents, numbers
        if word_weights is not None:
            documents = documents.take(numbers).weighted(word_weights)
            batch = np.arange(len(numbers))
        theta = forward(engine, phi, documents, batch, layers, keep=has_words, objective=has_words, n_threads=n_threads)
        scores.append(_core.scores(theta, U, n_threads))
        loss = response.loss(scores[-1], examples.y[numbers])[0].astype(np.float64)
        if has_words:
            loss += response.word_weight * word_losses(engine, theta, layers)
        losses.append(loss)
        targets.append(examples.y[numbers])
        weights.append(examples.weights[numbers])
    all_losses, all_weights = np.concatenate(losses), np.concatenate(weights)
    reached = response.score(np.concatenate(scores), all_losses, np.concatenate(targets), all_weights)
    return float(np.average(all_losses, weights=all_weights)), reached
