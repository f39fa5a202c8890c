"""The one training loop, for all models: batches, schedules, history, stopping."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from mirrorlda import _core, learning
from mirrorlda.corpus import Documents
from mirrorlda.inference import Layers, forward, new_engine
from mirrorlda.objective import Gradients, gradients, word_losses
from mirrorlda.prior import TopicUsage
from mirrorlda.responses import Response

# Epochs after which topics are no longer too alike for an estimate of alpha.
_ALIKE = 3


@dataclass(frozen=True)
class Examples:
    """Documents with their targets and weights."""

    documents: Documents
    y: np.ndarray
    weights: np.ndarray

    @cached_property
    def lengths(self) -> np.ndarray:
        """Sum of the counts of each document."""
        return self.documents.totals()

    def take(self, numbers: np.ndarray) -> Examples:
        return Examples(self.documents.take(numbers), self.y[numbers], self.weights[numbers])

    def split(self, fraction: float, rng: np.random.Generator) -> tuple[Examples, Examples]:
        """A random fraction is held out: the others, and those."""
        n_docs = self.documents.n_docs
        n_held_out = max(1, round(fraction * n_docs))
        if n_held_out >= n_docs:
            raise ValueError(f"{n_docs} documents are too few to hold out {n_held_out} of them")
        order = rng.permutation(n_docs)
        return self.take(np.sort(order[n_held_out:])), self.take(np.sort(order[:n_held_out]))


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to learn.

    The learning rates fall linearly to zero over the whole run ("linear") or stay ("constant"). Running averages begin
    after the fraction `average_from` of all steps; from 1 on there are none. The batch size grows geometrically from
    the first to the last epoch. In every step a fraction `word_dropout` of the documents' words is left out.
    """

    n_epochs: int
    batch_sizes: tuple[int, int]
    learning_rate: float
    coef_learning_rate: float
    decay: str
    average_from: float
    beta: float
    word_learning_rate: float = 0.0
    word_dropout: float = 0.0
    word_weight: float | None = None
    guide: float = 0.0

    def batch_size(self, epoch: int) -> int:
        first, last = self.batch_sizes
        growth: float = (last / first) ** (epoch / max(1, self.n_epochs - 1))
        return round(first * growth)

    def n_steps(self, n_docs: int) -> int:
        return sum(-(-n_docs // self.batch_size(epoch)) for epoch in range(self.n_epochs))

    def rates(self, step: int, n_steps: int, total_weight: float) -> learning.Rates:
        """Rates of step number `step` of `n_steps`."""
        done = step / n_steps
        factor = 1 - done if self.decay == "linear" else 1.0
        return self._rates(factor, total_weight, average=1.0 if done >= self.average_from else 0.0)

    def stream_rates(self, step: int, total_weight: float) -> learning.Rates:
        """Rates for a stream of unknown length: falling as 1 / sqrt(1 + step / 100), averages weighted by the step."""
        factor = float(1 / np.sqrt(1 + step / 100))
        return self._rates(factor, total_weight, average=0.0 if self.average_from >= 1 else step + 1.0)

    def _rates(self, factor: float, total_weight: float, average: float) -> learning.Rates:
        return learning.Rates(
            phi=self.learning_rate * factor,
            U=self.coef_learning_rate * factor,
            prior=(self.beta - 1) / total_weight,
            average=average,
            words=self.word_learning_rate * factor,
            guide=self.guide * factor,
        )


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
    state: learning.State,
    engine: _core.Engine32 | _core.Engine64,
    examples: Examples,
    batch: np.ndarray,
    response: Response,
    layers: Layers,
    schedule: Schedule,
    rates: learning.Rates,
    weight: float,
    rng: np.random.Generator,
    n_threads: int,
) -> Gradients:
    """One step on the documents in `batch`, with gradients divided by `weight`; returns them, as they were before it."""
    documents, numbers = _seen(state, examples.documents, batch, schedule, rng, n_threads)
    rows = documents.words_of(numbers, n_threads)
    learning.catch_up(state, rows, n_threads)
    result = gradients(
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
        word_weight=schedule.word_weight,
        want_word_weights=state.word_weights is not None and rates.words > 0,
        n_threads=n_threads,
    )
    learning.learn(state, result, weight, rates, n_threads)
    return result


def _seen(
    state: learning.State,
    documents: Documents,
    batch: np.ndarray,
    schedule: Schedule,
    rng: np.random.Generator,
    n_threads: int,
) -> tuple[Documents, np.ndarray]:
    """The documents of a batch as this step sees them, and their numbers: thinned, and with their words' weights."""
    if state.word_weights is None and not schedule.word_dropout:
        return documents, batch
    seed = int(rng.integers(2**63))
    documents = documents.thinned(batch, state.word_weights, schedule.word_dropout, seed, n_threads)
    return documents, np.arange(documents.n_docs)


def train(
    state: learning.State,
    examples: Examples,
    response: Response,
    layers: Layers,
    schedule: Schedule,
    rng: np.random.Generator,
    *,
    validation: Examples | None = None,
    patience: int | None = None,
    n_threads: int = 1,
    estimate_alpha: bool = False,
    report: Callable[[Progress], None] = lambda progress: None,
) -> tuple[learning.Parameters, Layers, dict[str, list[float]]]:
    """Train from `state`; returns the parameters, the layers and the history.

    With `validation`, loss and score on it are part of the history. With `patience` as well, training stops after that
    many epochs without a better validation score, and the best parameters are returned. With `estimate_alpha`, the layers'
    alpha is estimated anew after each epoch but the first ones and the last.
    """
    engine = new_engine(state.phi.dtype)
    n_docs, total = examples.documents.n_docs, float(examples.weights.sum())
    n_steps, done = schedule.n_steps(n_docs), 0
    history: dict[str, list[float]] = {}
    best, best_score, best_epoch = None, -np.inf, 0
    usage = TopicUsage(n_docs) if estimate_alpha else None
    for epoch in range(schedule.n_epochs):
        order = rng.permutation(n_docs)
        size = schedule.batch_size(epoch)
        scores = np.empty((n_docs, len(state.U)))
        losses = np.empty(n_docs)
        for first in range(0, n_docs, size):
            batch = order[first : first + size]
            rates = schedule.rates(done, n_steps, total)
            weight = total / n_docs * len(batch)
            seen = step(state, engine, examples, batch, response, layers, schedule, rates, weight, rng, n_threads)
            scores[batch], losses[batch] = seen.scores, seen.losses
            if usage is not None:
                usage.add(seen.theta, examples.lengths[batch], layers.alpha, rng)
            done += 1
            report(Progress(epoch, schedule.n_epochs, len(batch), float(losses[batch].mean()), False))
        measures = {
            "loss": float(np.average(losses, weights=examples.weights)),
            "score": score(response, scores, losses, examples, schedule.word_weight),
        }
        if validation is not None:
            now = learning.parameters(state, n_threads)
            measures["validation_loss"], measures["validation_score"] = evaluate(
                now, validation, response, layers, n_threads, word_weight=schedule.word_weight
            )
            if patience is not None and measures["validation_score"] > best_score:
                best, best_score, best_epoch = (now, layers), measures["validation_score"], epoch
        for name, value in measures.items():
            history.setdefault(name, []).append(value)
        report(Progress(epoch, schedule.n_epochs, 0, measures["loss"], True, measures))
        if patience is not None and epoch - best_epoch >= patience:
            break
        if usage is not None and min(_ALIKE, schedule.n_epochs // 2) <= epoch + 1 < schedule.n_epochs:
            # The few layers of a prediction leave theta short of the maximum, which looks like a larger alpha each time.
            layers = replace(layers, alpha=usage.alpha(layers.alpha, keep_total=not response.word_weight))
    parameters, layers = best if best is not None else (learning.parameters(state, n_threads), layers)
    return parameters, layers, history


def evaluate(
    parameters: learning.Parameters,
    examples: Examples,
    response: Response,
    layers: Layers,
    n_threads: int,
    *,
    word_weight: float | None = None,
) -> tuple[float, float]:
    """Mean loss and score."""
    phi, U, documents = parameters.phi, parameters.U, examples.documents
    if parameters.word_weights is not None:
        documents = documents.weighted(parameters.word_weights)
    engine = new_engine(phi.dtype)
    word_weight = response.word_weight if word_weight is None else word_weight
    has_words = bool(word_weight)
    scores, losses = [], []
    for batch in chunks(documents.n_docs):
        theta = forward(engine, phi, documents, batch, layers, keep=has_words, objective=has_words, n_threads=n_threads)
        scores.append(_core.scores(theta, U, n_threads))
        loss = response.loss(scores[-1], examples.y[batch])[0].astype(np.float64)
        if has_words:
            loss += word_weight * word_losses(engine, theta, layers)
        losses.append(loss)
    all_losses = np.concatenate(losses)
    reached = score(response, np.concatenate(scores), all_losses, examples, word_weight)
    return float(np.average(all_losses, weights=examples.weights)), reached


def score(response: Response, scores: np.ndarray, losses: np.ndarray, examples: Examples, word_weight: float | None) -> float:
    """The response's own, of its own losses: a generative weight adds the words' to them."""
    if word_weight is not None and word_weight != response.word_weight:
        losses = response.loss(scores, examples.y)[0].astype(np.float64)
    return response.score(scores, losses, examples.y, examples.weights)


def chunks(n_docs: int, size: int = 4096) -> list[np.ndarray]:
    """Document numbers in runs small enough for an interrupt between two of them to be prompt."""
    return [np.arange(first, min(first + size, n_docs)) for first in range(0, n_docs, size)]
