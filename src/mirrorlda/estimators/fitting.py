"""A fit, from its documents to what was learned: where it starts, and what training needs to know."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import count
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from threadpoolctl import threadpool_limits

from mirrorlda.data.documents import Documents
from mirrorlda.data.parts import chunks
from mirrorlda.data.progress import tell
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
from mirrorlda.training.first_themes import distinct, first_themes, most_alike
from mirrorlda.training.loop import Run, alone, step, train
from mirrorlda.training.mirror_descent import Guide
from mirrorlda.training.progress import reporter
from mirrorlda.training.schedule import Schedule, n_epochs_of, schedule_of
from mirrorlda.training.seed_words import guide_of, topic_number
from mirrorlda.training.sources import Examples, Source, sample
from mirrorlda.training.unlabelled import Learned, Stage, train_in_stages

# The most documents that decide how learning starts and how fast it goes.
_START_DOCS = 100_000
# The start is computed with one thread of BLAS: with more of them products have other bits.

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

        @cache
        def themes(n_outputs: int) -> Themes:
            # What all documents are about, those without a target too: all trainings start from the same themes.
            some = partial(sample, source, _START_DOCS)
            return themes_of(self.settings, some, self.targets, self.words, n_outputs, self.last)

        def train(some: Source, stage: Stage) -> Learned:
            return self._trained(some, stage, rng, themes)

        return train_in_stages(source, n_epochs, self.keeper, train, self._own_targets, self.settings.verbose)

    def _trained(self, source: Source, stage: Stage, rng: np.random.Generator, themes: Callable[[int], Themes]) -> Learned:
        settings, response = self.settings, self.targets.response
        some = sample(source, _START_DOCS)
        schedule = schedule_of(settings, some, source.n_docs, response, stage.n_epochs)
        with threadpool_limits(1, "blas"):
            found, dtype = themes(response.n_outputs(some.y)), some.documents.counts.dtype
        n_topics = found.n_topics
        layers = layers_of(settings, n_topics, dtype, response, first_alpha(settings, n_topics))
        run = self.keeper.run(stage.number, layers)
        if run is None:
            before = stage.before
            last = self.last if before is None else self._as_fitted(before) if settings.warm_start else None
            with threadpool_limits(1, "blas"):
                state = start_state(
                    settings, some, self.targets, self.words, schedule, found, rng, n_docs=source.n_docs, last=last
                )
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
            unfinished = run.tally.measures(response)
            history = {**history, **{name: [*history.get(name, []), value] for name, value in unfinished.items()}}
        return Learned(Fitted(parameters, layers.alpha), source, history, run.n_steps, schedule.n_steps(source.n_docs), ended)

    def _as_fitted(self, before: Fitted) -> Fitted:
        """What was learned, with the U that is computed from the coefficients which users see: the same to the last bit."""
        U = before.parameters.U
        return Fitted(replace(before.parameters, U=self.targets.U_of(self.targets.coefficients(U))), before.alpha)

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


@dataclass(frozen=True)
class Themes:
    """What a training starts from, beside its targets: themes, and how users guide them.

    Attributes
    ----------
    n_topics : int
    first : ndarray of shape (n_words, n_topics), or None
        Without it the topics that predict are those that people read.
    guide : Guide, or None
    outputs : dict
        The class or label, by its number, that a guided theme is to stand for.
    """

    n_topics: int
    first: np.ndarray | None
    guide: Guide | None
    outputs: Mapping[int, int]


def themes_of(
    settings: Settings,
    some: Callable[[], Examples],
    targets: Targets,
    words: np.ndarray | None,
    n_outputs: int,
    last: Fitted | None,
    *,
    are_all: bool = True,
) -> Themes:
    """Themes that `some` documents have, with or without a target. As many as they support, where that is left to them."""
    # An alpha for each topic says how many there are.
    is_auto = isinstance(settings.n_topics, str) and np.ndim(settings.alpha) == 0
    n_topics = n_topics_of(settings, targets.response, n_outputs)
    if is_auto and last is not None:
        is_auto, n_topics = False, last.parameters.phi.shape[1]
    if not settings.readability:
        return Themes(n_topics, None, None, {})
    examples, every_output, outputs, numbers = some(), np.eye(n_outputs), dict[int, int](), count()

    def theme_of(key: Any) -> int:
        # The topic that speaks most for a class where each speaks for one: the class's number. It has the next theme, or
        # that which speaks for it already.
        output = targets.topic_of(key, every_output)
        if output is None:
            return topic_number(key, n_topics)
        spoken_for = None if last is None else targets.topic_of(key, last.parameters.U)
        theme = next(numbers) % n_topics if spoken_for is None else spoken_for
        outputs.setdefault(theme, output)
        return theme

    n_words = examples.documents.n_words
    guide = guide_of(settings.seed_words, words, theme_of, n_words, n_topics)
    if last is not None and last.parameters.themes is not None and last.parameters.themes.shape == (n_words, n_topics):
        return Themes(n_topics, last.parameters.themes, guide, outputs)
    n_threads = effective_n_jobs(settings.n_jobs)
    first = first_themes(examples.documents, examples.weights, n_topics, guide, n_threads)
    if last is not None and last.parameters.phi.shape == first.shape:
        first = first[:, most_alike(last.parameters.phi, first)]
    if is_auto and are_all and guide is None:
        # A user who names words for topic 7 means the seventh.
        first = distinct(first, n_outputs)
        if first.shape[1] < n_topics:
            tell(f"{first.shape[1]} topics: the documents do not tell {n_topics} apart", settings.verbose)
            n_topics = first.shape[1]
    return Themes(n_topics, first, guide, outputs)


def start_state(
    settings: Settings,
    examples: Examples,
    targets: Targets,
    words: np.ndarray | None,
    schedule: Schedule,
    themes: Themes,
    rng: np.random.Generator,
    *,
    n_docs: int | None,
    last: Fitted | None,
) -> mirror_descent.State:
    """The state before the first step: fresh, or that of the `last` fit.

    The examples are some of `n_docs`; in a stream that is not known, nor how rare a word is.
    """
    response, n_topics = targets.response, themes.n_topics
    documents, first, guide = examples.documents, themes.first, themes.guide
    n_threads = effective_n_jobs(settings.n_jobs)
    phi, U, trusted = settings.start(
        documents, examples.y, examples.weights, response, n_topics, rng, n_docs, first, themes.outputs, n_threads
    )
    if first is None:
        guide = _guided_topics(settings, targets, words, phi, U)
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
    dtype = documents.counts.dtype
    theme_counts = None
    if first is not None:
        # What the themes have counted before the first step is as much as of a batch, with its weights.
        of_batch = min(schedule.batch_size(0), examples.n_docs) * float(examples.weights.mean())
        of_batch *= max(1.0, float(np.average(examples.lengths, weights=examples.weights)))
        theme_counts = first.astype(dtype, copy=False) * dtype.type(of_batch / n_topics)
    phi = check_phi(phi.astype(dtype, copy=False))
    return mirror_descent.begin(phi, np.ascontiguousarray(U, dtype), word_weights, guide, theme_counts)


def _guided_topics(
    settings: Settings, targets: Targets, words: np.ndarray | None, phi: np.ndarray, U: np.ndarray
) -> Guide | None:
    """The guide of topics without themes, which start with their seed words."""

    def topic_of(key: Any) -> int:
        topic = targets.topic_of(key, U)
        return topic_number(key, phi.shape[1]) if topic is None else topic

    n_words, n_topics = phi.shape
    guide = guide_of(settings.seed_words, words, topic_of, n_words, n_topics)
    if guide is not None:
        has_seeds = guide.towards.any(axis=0)
        phi[:, has_seeds] *= 1 - _GUIDED_START
        phi[guide.rows] += _GUIDED_START * guide.towards
    return guide


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
    schedule = schedule_of(settings, examples, examples.n_docs, response)
    if before is not None:
        state, rng, total_weight = mirror_descent.copy(before.state), deepcopy(before.rng), before.total_weight
        examples = examples.as_type(state.phi.dtype)
    else:
        rng = generator(settings)
        with threadpool_limits(1, "blas"):
            themes = themes_of(settings, lambda: examples, targets, words, response.n_outputs(examples.y), last, are_all=False)
            state = start_state(settings, examples, targets, words, schedule, themes, rng, n_docs=None, last=last)
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
        "score": response.score(scores, losses, examples.y, examples.weights),
    }
    return Stream(state, rng, total_weight), Fitted(mirror_descent.parameters(state, n_threads), layers.alpha), measures
