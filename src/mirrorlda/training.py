"""The one training loop, for all models: batches, schedules, history, stopping."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from mirrorlda import _core, learning
from mirrorlda.corpus import Documents
from mirrorlda.inference import Layers, forward, new_engine
from mirrorlda.objective import gradients, word_losses
from mirrorlda.responses import Response


@dataclass(frozen=True)
class Examples:
    """Documents with their targets and weights."""

    documents: Documents
    y: np.ndarray
    weights: np.ndarray

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
    the first to the last epoch.
    """

    n_epochs: int
    batch_sizes: tuple[int, int]
    learning_rate: float
    coef_learning_rate: float
    decay: str
    average_from: float
    beta: float

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
        return learning.Rates(
            phi=self.learning_rate * factor,
            U=self.coef_learning_rate * factor,
            prior=(self.beta - 1) / total_weight,
            average=1.0 if done >= self.average_from else 0.0,
        )

    def stream_rates(self, step: int, total_weight: float) -> learning.Rates:
        """Rates for a stream of unknown length: falling as 1 / sqrt(1 + step / 100), averages weighted by the step."""
        factor = 1 / np.sqrt(1 + step / 100)
        return learning.Rates(
            phi=self.learning_rate * factor,
            U=self.coef_learning_rate * factor,
            prior=(self.beta - 1) / total_weight,
            average=0.0 if self.average_from >= 1 else step + 1.0,
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
    rates: learning.Rates,
    weight: float,
    n_threads: int,
) -> tuple[np.ndarray, np.ndarray]:
    """One step on the documents in `batch`, with gradients divided by `weight`; returns their scores and losses before it."""
    documents = examples.documents
    y, weights = examples.y[batch], examples.weights[batch]
    rows = documents.words_of(batch, n_threads)
    learning.catch_up(state, rows, n_threads)
    result = gradients(engine, state.phi, state.U, documents, batch, y, weights, response, layers, rows=rows, n_threads=n_threads)
    learning.learn(state, result, weight, rates, n_threads)
    return result.scores, result.losses


def initial_phi(examples: Examples, n_topics: int, rng: np.random.Generator) -> np.ndarray:
    """Topics near the square root of the corpus frequencies, (n_words, n_topics), with uniform noise of up to their own size.

    Measured, R2 on IMDB ratings after ten epochs: from uniform topics 0.61, from frequencies 0.56 (they overfit), from
    their square roots 0.66.
    """
    documents = examples.documents
    weights = np.repeat(examples.weights, np.diff(documents.indptr)) * documents.counts
    frequencies = np.bincount(documents.indices, weights, documents.n_words)
    if not frequencies.any():
        frequencies[:] = 1
    base = np.sqrt(frequencies + 1e-3 * frequencies.mean())
    noisy = base[:, None] * (1 + rng.random((len(frequencies), n_topics)))
    phi: np.ndarray = noisy / noisy.sum(axis=0)
    return phi


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
    report: Callable[[Progress], None] = lambda progress: None,
) -> tuple[np.ndarray, np.ndarray, dict[str, list[float]]]:
    """Train from `state`; returns Phi, U and the history.

    With `validation`, loss and score on it are part of the history. With `patience` as well, training stops after that
    many epochs without a better validation score, and the best parameters are returned.
    """
    engine = new_engine(state.phi.dtype)
    n_docs, total = examples.documents.n_docs, float(examples.weights.sum())
    n_steps, done = schedule.n_steps(n_docs), 0
    history: dict[str, list[float]] = {}
    best, best_score, best_epoch = None, -np.inf, 0
    for epoch in range(schedule.n_epochs):
        order = rng.permutation(n_docs)
        size = schedule.batch_size(epoch)
        scores = np.empty((n_docs, len(state.U)))
        losses = np.empty(n_docs)
        for first in range(0, n_docs, size):
            batch = order[first : first + size]
            rates = schedule.rates(done, n_steps, total)
            weight = total / n_docs * len(batch)
            scores[batch], losses[batch] = step(state, engine, examples, batch, response, layers, rates, weight, n_threads)
            done += 1
            report(Progress(epoch, schedule.n_epochs, len(batch), float(losses[batch].mean()), False))
        measures = {
            "loss": float(np.average(losses, weights=examples.weights)),
            "score": response.score(scores, losses, examples.y, examples.weights),
        }
        if validation is not None:
            phi, U = learning.parameters(state, n_threads)
            measures["validation_loss"], measures["validation_score"] = evaluate(phi, U, validation, response, layers, n_threads)
            if patience is not None and measures["validation_score"] > best_score:
                best, best_score, best_epoch = (phi, U), measures["validation_score"], epoch
        for name, value in measures.items():
            history.setdefault(name, []).append(value)
        report(Progress(epoch, schedule.n_epochs, 0, measures["loss"], True, measures))
        if patience is not None and epoch - best_epoch >= patience:
            break
    phi, U = best if best is not None else learning.parameters(state, n_threads)
    return phi, U, history


def evaluate(
    phi: np.ndarray, U: np.ndarray, examples: Examples, response: Response, layers: Layers, n_threads: int
) -> tuple[float, float]:
    """Mean loss and score."""
    engine = new_engine(phi.dtype)
    has_words = bool(response.word_weight)
    scores, losses = [], []
    for batch in chunks(examples.documents.n_docs):
        theta = forward(engine, phi, examples.documents, batch, layers, keep=has_words, objective=has_words, n_threads=n_threads)
        scores.append(_core.scores(theta, U, n_threads))
        loss = response.loss(scores[-1], examples.y[batch])[0].astype(np.float64)
        if has_words:
            loss += response.word_weight * word_losses(engine, theta, layers)
        losses.append(loss)
    all_losses = np.concatenate(losses)
    score = response.score(np.concatenate(scores), all_losses, examples.y, examples.weights)
    return float(np.average(all_losses, weights=examples.weights)), score


def chunks(n_docs: int, size: int = 4096) -> list[np.ndarray]:
    """Document numbers in runs small enough for an interrupt between two of them to be prompt."""
    return [np.arange(first, min(first + size, n_docs)) for first in range(0, n_docs, size)]
