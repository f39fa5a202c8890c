"""A fit, from its documents to what was learned: where it starts, and what training needs to know."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from mirrorlda.data.documents import Documents
from mirrorlda.data.parts import chunks
from mirrorlda.estimators.parameters import (
    Settings,
    estimates_alpha,
    first_alpha,
    generator,
    layers_of,
    n_topics_of,
)
from mirrorlda.method.encoder import Encoder
from mirrorlda.method.fitted_model import scores_of
from mirrorlda.method.inference import check_phi, new_engine
from mirrorlda.method.prior import TopicUsage
from mirrorlda.method.targets.record import Targets
from mirrorlda.training import mirror_descent
from mirrorlda.training.checkpoints import Fitted, Keeper
from mirrorlda.training.loop import Run, alone, score, step, train
from mirrorlda.training.mirror_descent import Parameters
from mirrorlda.training.progress import reporter
from mirrorlda.training.schedule import n_epochs_of, schedule_of
from mirrorlda.training.seed_words import guide_of, topic_number
from mirrorlda.training.sources import Examples, Source, sample
from mirrorlda.training.unlabelled import Learned, Stage, train_in_stages

# The most documents that decide how learning starts and how fast it goes.
_START_DOCS = 100_000
# The part of a guided topic that its seed words are at the start.
_GUIDED_START = 0.5


@dataclass(frozen=True)
class Fitting:
    """What all trainings of a fit have in common; there are several where documents have no target.

    Attributes
    ----------
    settings : Settings
    targets : Targets
    words : ndarray of str, or None
        What the words are called, for seed words.
    last : Fitted, or None
        What to go on from.
    judged : Examples, or None
        Documents for validation.
    keeper : Keeper
    cluster : Cluster, or None
        Who takes the steps, in place of this machine.
    interrupted : function that says whether training is to end
    """

    settings: Settings
    targets: Targets
    words: np.ndarray | None
    last: Fitted | None
    judged: Examples | None
    keeper: Keeper
    cluster: Any
    interrupted: Callable[[], bool]

    def learned(self, source: Source) -> Learned:
        """Train on all documents."""
        rng, n_epochs = generator(self.settings), n_epochs_of(self.settings)

        def train(some: Source, stage: Stage) -> Learned:
            return self._trained(some, stage, rng)

        return train_in_stages(source, n_epochs, self.keeper, train, self._own_targets, self.settings.verbose)

    def _trained(self, source: Source, stage: Stage, rng: np.random.Generator) -> Learned:
        settings, response = self.settings, self.targets.response
        some = sample(source, _START_DOCS)
        schedule = schedule_of(settings, some, source.n_docs, response, stage.n_epochs)
        n_topics, dtype = n_topics_of(settings, response, some.y), some.documents.counts.dtype
        layers = layers_of(settings, n_topics, dtype, response, first_alpha(settings, n_topics))
        run = self.keeper.run(stage.number, layers)
        if run is None:
            before = stage.before
            last = self.last if before is None else self._as_fitted(before) if settings.warm_start else None
            state = start_state(settings, some, self.targets, self.words, rng, n_docs=source.n_docs, last=last)
            run = Run(state, layers, rng, held_out=int(rng.integers(2**63)))
            run.usage = TopicUsage(source.n_docs) if estimates_alpha(settings) else None
        # What comes after this stage goes on with the numbers that come after it.
        rng.bit_generator.state = run.rng.bit_generator.state
        run.rng = rng
        judged = self.judged
        if judged is not None:
            judged = judged.as_type(dtype)
        elif settings.early_stopping:
            source, judged = source.hold_out(settings.validation_fraction, run.held_out)
        with reporter(schedule.n_epochs * source.n_docs, settings.verbose, (stage.number + 1, stage.n_stages)) as report:
            parameters, layers = train(
                run,
                source,
                response,
                schedule,
                steps=alone if self.cluster is None else self.cluster.steps(),
                validation=judged,
                patience=settings.n_iter_no_change if settings.early_stopping else None,
                n_threads=effective_n_jobs(settings.n_jobs),
                report=report,
                save=lambda ended: self.keeper.save(
                    run, stage=stage.number, before=stage.before, now=ended or self.interrupted()
                ),
                interrupted=self.interrupted,
            )
        ended, history = not self.interrupted(), run.history
        if not ended and run.tally.latest:
            unfinished = run.tally.measures(response, schedule.word_weight)
            history = {**history, **{name: [*history.get(name, []), value] for name, value in unfinished.items()}}
        return Learned(Fitted(parameters, layers.alpha), source, history, run.n_steps, schedule.n_steps(source.n_docs), ended)

    def _as_fitted(self, before: Fitted) -> Fitted:
        """What was learned, with the U that is computed from the coefficients which users see: the same to the last bit."""
        phi, U, word_weights = before.parameters.phi, before.parameters.U, before.parameters.word_weights
        return Fitted(Parameters(phi, self.targets.U_of(self.targets.coefficients(U)), word_weights), before.alpha)

    def _own_targets(self, before: Fitted) -> Callable[[Documents], np.ndarray]:
        """What the model, as it is, predicts, as its response takes targets."""
        response, n_threads = self.targets.response, effective_n_jobs(self.settings.n_jobs)
        parameters = self._as_fitted(before).parameters
        layers = layers_of(self.settings, parameters.phi.shape[1], np.float64, response, before.alpha)
        encoder = Encoder(parameters.phi.T, parameters.word_weights, layers, n_threads)
        return lambda documents: response.targets(scores_of(encoder.theta(documents), parameters.U, n_threads))


@dataclass(frozen=True)
class Stream:
    """Where learning from a stream is: what `partial_fit` leaves for the next one."""

    state: mirror_descent.State
    rng: np.random.Generator
    total_weight: float


def start_state(
    settings: Settings,
    examples: Examples,
    targets: Targets,
    words: np.ndarray | None,
    rng: np.random.Generator,
    *,
    n_docs: int | None,
    last: Fitted | None,
) -> mirror_descent.State:
    """The state before the first step: fresh, or that of the `last` fit.

    The examples are some of `n_docs`; in a stream that is not known, nor how rare a word is.
    """
    response, n_topics = targets.response, n_topics_of(settings, targets.response, examples.y)
    phi, U, trusted = settings.start(examples.documents, examples.y, examples.weights, response, n_topics, rng, n_docs)

    def topic_of(key: Any) -> int:
        topic = targets.topic_of(key, U)
        return topic_number(key, n_topics) if topic is None else topic

    guide = guide_of(settings.seed_words, words, topic_of, len(phi), n_topics)
    if guide is not None:
        has_seeds = guide.towards.any(axis=0)
        phi[:, has_seeds] *= 1 - _GUIDED_START
        phi[guide.rows] += _GUIDED_START * guide.towards
    word_weights = (np.ones(len(phi)) if n_docs is None else trusted) if settings.word_learning_rate else None
    if last is not None:
        last_phi, last_U = last.parameters.phi, last.parameters.U
        if last_phi.shape != phi.shape or last_U.shape != U.shape:
            raise ValueError(
                f"to go on from the last fit, words, topics and outputs must be its own, "
                f"{last_phi.shape} and {last_U.shape}; got {phi.shape} and {U.shape}"
            )
        phi, U = last_phi, last_U
        word_weights = word_weights if last.parameters.word_weights is None else last.parameters.word_weights
    dtype = examples.documents.counts.dtype
    return mirror_descent.begin(check_phi(phi.astype(dtype, copy=False)), np.ascontiguousarray(U, dtype), word_weights, guide)


def learned_from_stream(
    settings: Settings,
    examples: Examples,
    targets: Targets,
    words: np.ndarray | None,
    before: Stream | None,
    last: Fitted | None,
) -> tuple[Stream, Fitted, dict[str, float]]:
    """Steps on the documents in their order, with the rates for a stream of unknown length; loss and score of them too."""
    if estimates_alpha(settings):
        raise ValueError("alpha='auto' needs all documents: use fit, or give partial_fit a number")
    response, n_threads, total_weight = targets.response, effective_n_jobs(settings.n_jobs), 0.0
    if before is not None:
        state, rng, total_weight = mirror_descent.copy(before.state), deepcopy(before.rng), before.total_weight
        examples = examples.as_type(state.phi.dtype)
    else:
        rng = generator(settings)
        state = start_state(settings, examples, targets, words, rng, n_docs=None, last=last)
    schedule = schedule_of(settings, examples, examples.n_docs, response)
    n_topics = state.phi.shape[1]
    layers = layers_of(settings, n_topics, state.phi.dtype, response, first_alpha(settings, n_topics))
    engine, n_docs = new_engine(state.phi.dtype), examples.n_docs
    losses, scores = np.zeros(n_docs), np.zeros((n_docs, len(state.U)))
    for batch in chunks(n_docs, schedule.batch_size(0)):
        batch_weight = float(examples.weights[batch].sum())
        total_weight += batch_weight
        if not batch_weight:
            continue
        rates = schedule.stream_rates(state.n_steps, total_weight)
        seen = step(state, engine, examples, batch, response, layers, schedule, rates, batch_weight, rng, n_threads)
        scores[batch], losses[batch] = seen.scores, seen.losses
    measures = {
        "loss": float(np.average(losses, weights=examples.weights)),
        "score": score(response, scores, losses, examples.y, examples.weights, schedule.word_weight),
    }
    return Stream(state, rng, total_weight), Fitted(mirror_descent.parameters(state, n_threads), layers.alpha), measures
