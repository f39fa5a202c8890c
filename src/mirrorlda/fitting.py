"""What the three estimators share: parameters, fitting, inference, and what happens to the state when a fit fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from numbers import Real
from typing import Any, TypeVar

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from mirrorlda import learning
from mirrorlda.corpus import Documents, as_documents
from mirrorlda.inference import Layers, check_layers, check_phi, check_whole, forward, new_engine
from mirrorlda.progress import reporter
from mirrorlda.responses import Response
from mirrorlda.seeds import guide_of, topic_number
from mirrorlda.start import start
from mirrorlda.training import Examples, Schedule, chunks, score, step, train

C = TypeVar("C", bound=type)

_SUMMARY_DOCS = 20_000
# Where the estimate of alpha starts.
_FIRST_ALPHA = 1.05

# Fraction by which the first steps move a guided topic towards its seed words, and the part that these are at the start.
_GUIDE, _GUIDED_START = 0.02, 0.5

_COMMON_PARAMETERS = """beta : float, default=1.0001
        Dirichlet parameter of the topics, at least 1; above 1 it smooths them.
    step_size : {"l1", "kl"} or float, default="l1"
        Rule of the line search in each layer, or a constant step.
    batch_size : int, (int, int) or "auto", default="auto"
        Documents a step; a pair grows from the first to the last epoch. "auto" takes an eighth of the documents, but
        at least 128 and at most 1,000 (`TopicModel`: 256).
    count_scale : {"log", "linear"}, default="log"
        "log" takes log2(1 + count) in place of counts.
    seed_words : dict, list of lists or None, default=None
        Words that guide topics: their prior all through training. A dict from topic numbers (from class labels, for a
        classifier) to lists of words, or a list of such lists for the first topics. Words are column numbers of X, or names
        where X is a data frame.
    learning_rate_decay : {"linear", "constant"}, default="linear"
        "linear" falls to zero at the end of training.
    average_from : float, default=0.5
        Fraction of the steps after which the running averages begin that `fit` returns; 1 for no averages.
    early_stopping : bool, default=False
        Hold out `validation_fraction` of the documents, stop after `n_iter_no_change` epochs without a better score on
        them, and return the best model.
    validation_fraction : float, default=0.1
    n_iter_no_change : int, default=3
    warm_start : bool, default=False
        Start from the last fit.
    random_state : int, RandomState instance or None, default=None
    n_jobs : int, default=None
        Threads, as in scikit-learn: -1 for all cores. The result does not depend on it.
    verbose : int, default=0
        Above 0, a progress bar."""


def documented(**shared: str) -> Callable[[C], C]:
    """Puts the common parameters, and those `shared` by some classes, into a class's docstring."""

    def insert(cls: C) -> C:
        if cls.__doc__ is not None:  # python -OO has none
            for name, text in {"common": _COMMON_PARAMETERS, **shared}.items():
                cls.__doc__ = cls.__doc__.replace("{" + name + "}", text)
        return cls

    return insert


def _accepted(X: Any) -> dict[str, Any]:
    """How scikit-learn checks counts: float32 and float64 stay, integers become float32. `as_documents` checks their signs."""
    dtypes: Any = getattr(X, "dtypes", getattr(X, "dtype", None))
    integers = all(getattr(dtype, "kind", "f") in "iub" for dtype in np.atleast_1d(dtypes))
    return {"accept_sparse": "csr", "dtype": np.float32 if integers else [np.float64, np.float32]}


@contextmanager
def unchanged_on_failure(estimator: BaseEstimator) -> Iterator[None]:
    """Whatever ends the block early, an error or Ctrl-C, leaves the estimator as it was before."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        estimator.__dict__ = before
        raise


class TopicEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators; `components_` is Phi transposed."""

    components_: np.ndarray
    coef_: np.ndarray
    alpha_: np.ndarray
    word_weights_: np.ndarray
    topic_shares_: np.ndarray
    history_: dict[str, list[float]]
    n_features_in_: int
    _state: learning.State
    _rng: np.random.Generator
    _learned_response: Response
    _total_weight: float

    n_topics: int | str
    alpha: Any
    beta: float
    n_layers: int | str
    step_size: str | float
    n_epochs: int | str
    batch_size: int | tuple[int, int] | str
    learning_rate: float
    learning_rate_decay: str
    average_from: float
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int
    warm_start: bool
    random_state: Any
    n_jobs: int | None
    verbose: int
    seed_words: Any
    coef_learning_rate: float = 0.0
    count_scale: str
    # batch_size="auto": a batch is this part of the documents, and has at most so many.
    _auto_batch: tuple[int, int] = (8, 1000)
    # What only predictions need; an estimator without them leaves them at this.
    word_dropout: float = 0.0
    word_learning_rate: float = 0.0
    generative_weight: float = 0.0

    def transform(self, X: Any) -> np.ndarray:
        """Topic proportions of documents, shape (n_docs, n_topics)."""
        check_is_fitted(self)
        return self._theta(self._documents(X))

    # What a subclass says of its targets.

    def _fitted_U(self) -> np.ndarray:
        raise NotImplementedError

    def _set_parameters(self, phi: np.ndarray, U: np.ndarray) -> None:
        raise NotImplementedError

    def _set_spread(self, theta: np.ndarray, examples: Examples, kept: float) -> None:
        """Called with inferred training documents, for the response's own spread; `kept` is the part of the earlier one."""

    def _guided_topic(self, key: Any, U: np.ndarray) -> int:
        """The topic that a key of `seed_words` names, for coefficients that start at U."""
        return topic_number(key, U.shape[1])

    # Documents in, theta out.

    def _documents(self, X: Any) -> Documents:
        return self._scaled(as_documents(validate_data(self, X, **_accepted(X), reset=False)))

    def _scaled(self, documents: Documents) -> Documents:
        if self.count_scale not in ("log", "linear"):
            raise ValueError(f"count_scale must be 'log' or 'linear', got {self.count_scale!r}")
        return documents.logarithmic() if self.count_scale == "log" else documents

    def _phi(self, dtype: np.dtype[Any]) -> np.ndarray:
        return check_phi(np.asarray(self.components_, dtype).T)

    def _layers(self, phi: np.ndarray, response: Response, alpha: Any) -> Layers:
        if isinstance(alpha, str):
            raise ValueError(f"alpha must be 'auto', a number or one for each topic, got {alpha!r}")
        if not isinstance(self.step_size, str) and np.ndim(self.step_size):
            raise ValueError("step_size of an estimator must be 'l1', 'kl' or a number")
        n_layers: Any = response.n_layers if isinstance(self.n_layers, str) and self.n_layers == "auto" else self.n_layers
        return check_layers(alpha, n_layers, self.step_size, phi, 0)

    def _response(self) -> Response:
        """The response, once a fit has said what it needs to know of y."""
        raise NotImplementedError

    def _estimates_alpha(self) -> bool:
        return isinstance(self.alpha, str) and self.alpha == "auto"

    def _inputs(
        self, X: Any, y: Any, sample_weight: Any, labelled: np.ndarray | None = None, *, reset: bool, **y_checks: Any
    ) -> tuple[Documents, Any, np.ndarray, np.ndarray]:
        """Checked documents, targets and weights of a fit, and which have a target; documents without weight are left out."""
        if y is None and not y_checks:
            X = validate_data(self, X, **_accepted(X), reset=reset)
        else:
            X, y = validate_data(self, X, y, **_accepted(X), reset=reset, **y_checks)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        labelled = np.ones(len(weights), bool) if labelled is None else labelled
        if not weights.any():
            raise ValueError("sample_weight is zero for all documents")
        if not weights[labelled].any():
            raise ValueError("sample_weight is zero for all documents that have a target")
        if not weights.all():
            kept = np.flatnonzero(weights)
            X, y, weights, labelled = X[kept], y if y is None else y[kept], weights[kept], labelled[kept]
        if y is not None and not labelled.all():
            # A placeholder must be a target of these documents.
            y = y.copy()
            y[~labelled] = y[np.argmax(labelled)]
        return self._scaled(as_documents(X)), y, weights, labelled

    def _theta(self, documents: Documents) -> np.ndarray:
        phi = self._phi(documents.counts.dtype)
        layers, n_threads = self._layers(phi, self._response(), self.alpha_), effective_n_jobs(self.n_jobs)
        engine = new_engine(phi.dtype)
        documents = documents.weighted(self.word_weights_) if hasattr(self, "word_weights_") else documents
        theta = np.empty((documents.n_docs, phi.shape[1]), phi.dtype)
        for batch in chunks(documents.n_docs):
            theta[batch] = forward(engine, phi, documents, batch, layers, keep=False, n_threads=n_threads)
        return theta

    # Training.

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31, size=4))

    def _schedule(self, examples: Examples, response: Response, n_epochs: int | None = None) -> Schedule:
        check_whole("n_iter_no_change", self.n_iter_no_change)
        for name in ("learning_rate", "coef_learning_rate", "word_learning_rate", "average_from", "generative_weight"):
            if not (isinstance(value := getattr(self, name), Real) and 0 <= float(value) < np.inf):
                raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}")
        if not (isinstance(self.word_dropout, Real) and 0 <= float(self.word_dropout) < 1):
            raise ValueError(f"word_dropout must be a fraction of at least 0 and below 1, got {self.word_dropout!r}")
        if not 1 <= self.beta < np.inf:
            raise ValueError(f"beta must be at least 1, got {self.beta!r}: below 1 the prior of the topics has no bound")
        if self.learning_rate_decay not in ("linear", "constant"):
            raise ValueError(f"learning_rate_decay must be 'linear' or 'constant', got {self.learning_rate_decay!r}")
        if not 0 < self.validation_fraction < 1:
            raise ValueError(f"validation_fraction must be between 0 and 1, got {self.validation_fraction!r}")
        batch_sizes = self._batch_sizes(examples.documents.n_docs)
        words_per_document = max(1.0, float(np.average(examples.lengths, weights=examples.weights)))
        return Schedule(
            n_epochs=self._n_epochs() if n_epochs is None else n_epochs,
            batch_sizes=batch_sizes,
            learning_rate=self.learning_rate,
            coef_learning_rate=self.coef_learning_rate / response.curvature(examples.y, examples.weights),
            decay=self.learning_rate_decay,
            average_from=self.average_from,
            beta=self.beta,
            word_learning_rate=self.word_learning_rate,
            word_dropout=self.word_dropout,
            word_weight=response.word_weight + self.generative_weight / words_per_document,
            guide=_GUIDE,
        )

    # Measured on 500 to 63,000 reviews: ten epochs on large batches beat more steps on small ones.

    def _batch_sizes(self, n_docs: int) -> tuple[int, int]:
        if self.batch_size == "auto":
            part, most = self._auto_batch
            automatic = min(most, max(128, n_docs // part))
            return automatic, automatic
        sizes: Any = self.batch_size if isinstance(self.batch_size, tuple | list) else (self.batch_size, self.batch_size)
        if len(sizes) != 2:
            raise ValueError(f"batch_size must be 'auto', a whole number or a pair of them, got {self.batch_size!r}")
        for size in sizes:
            check_whole("batch_size", size)
        return int(sizes[0]), int(sizes[1])

    def _n_epochs(self) -> int:
        check_whole("n_epochs", self.n_epochs)
        return int(self.n_epochs)

    def _n_topics(self, response: Response, y: np.ndarray) -> int:
        """As many as asked for; "auto" is 20, or one for each class where there are more."""
        if isinstance(self.n_topics, str) and self.n_topics == "auto":
            return 20 if response.two_sided else max(20, response.n_outputs(y))
        check_whole("n_topics", self.n_topics)
        return int(self.n_topics)

    def _start(self, examples: Examples, response: Response, rng: np.random.Generator, *, go_on: bool) -> learning.State:
        """The state before the first step: fresh, or, to `go_on`, that of the last fit."""
        n_topics = self._n_topics(response, examples.y)
        phi, U = start(examples.documents, examples.y, examples.weights, response, n_topics, rng)
        names = getattr(self, "feature_names_in_", None)
        guide = guide_of(self.seed_words, names, lambda key: self._guided_topic(key, U), len(phi), n_topics)
        if guide is not None:
            has_seeds = guide.towards.any(axis=0)
            phi[:, has_seeds] *= 1 - _GUIDED_START
            phi[guide.rows] += _GUIDED_START * guide.towards
        word_weights = np.ones(len(phi)) if self.word_learning_rate else None
        if go_on:
            if self._learned_response != response:
                raise ValueError(f"to go on, the response must be that of the last fit, {self._learned_response}; got {response}")
            last_phi, last_U = self.components_.T, self._fitted_U()
            if last_phi.shape != phi.shape or last_U.shape != U.shape:
                raise ValueError(
                    f"to go on from the last fit, words, topics and outputs must be its own, "
                    f"{last_phi.shape} and {last_U.shape}; got {phi.shape} and {U.shape}"
                )
            phi, U = last_phi, last_U
            word_weights = getattr(self, "word_weights_", word_weights)
        dtype = examples.documents.counts.dtype
        return learning.begin(check_phi(phi.astype(dtype)), np.ascontiguousarray(U, dtype), word_weights, guide)

    def _fit(self, examples: Examples, response: Response, *, n_epochs: int | None = None) -> None:
        """Train on all documents with a weight; sets the fitted attributes only when training has ended."""
        rng = self._generator()
        schedule = self._schedule(examples, response, n_epochs)
        state = self._start(examples, response, rng, go_on=self.warm_start and hasattr(self, "components_"))
        layers = self._layers(state.phi, response, _FIRST_ALPHA if self._estimates_alpha() else self.alpha)
        validation = None
        if self.early_stopping:
            examples, validation = examples.split(self.validation_fraction, rng)
        with reporter(schedule.n_epochs * examples.documents.n_docs, self.verbose) as report:
            parameters, layers, history = train(
                state,
                examples,
                response,
                layers,
                schedule,
                rng,
                validation=validation,
                patience=self.n_iter_no_change if self.early_stopping else None,
                n_threads=effective_n_jobs(self.n_jobs),
                estimate_alpha=self._estimates_alpha(),
                report=report,
            )
        self._keep(parameters, layers, response)
        self._summarise(examples, seen_weight=0.0)
        self.history_ = history
        for name in ("_state", "_rng", "_total_weight"):
            self.__dict__.pop(name, None)

    def _keep(self, parameters: learning.Parameters, layers: Layers, response: Response) -> None:
        self._learned_response = response
        self._set_parameters(parameters.phi, parameters.U)
        self.alpha_ = layers.alpha
        self.__dict__.pop("word_weights_", None)
        if parameters.word_weights is not None:
            self.word_weights_ = parameters.word_weights

    def _partial_fit(self, examples: Examples, response: Response) -> None:
        """Steps on the documents in their order, with the rates for a stream of unknown length."""
        if self._estimates_alpha():
            raise ValueError("alpha='auto' needs all documents: use fit, or give partial_fit a number")
        n_threads = effective_n_jobs(self.n_jobs)
        if hasattr(self, "_state"):
            counts = examples.documents.counts.astype(self._state.phi.dtype, copy=False)
            examples = replace(examples, documents=replace(examples.documents, counts=counts))
            state, rng = learning.copy(self._state), deepcopy(self._rng)
        else:
            rng = self._generator()
            state = self._start(examples, response, rng, go_on=hasattr(self, "components_"))
        schedule = self._schedule(examples, response)
        total_weight = getattr(self, "_total_weight", 0.0)
        layers, engine = self._layers(state.phi, response, self.alpha), new_engine(state.phi.dtype)
        size, n_docs = schedule.batch_size(0), examples.documents.n_docs
        losses = np.empty(n_docs)
        scores = np.empty((n_docs, len(state.U)))
        for first in range(0, n_docs, size):
            batch = np.arange(first, min(first + size, n_docs))
            batch_weight = float(examples.weights[batch].sum())
            total_weight += batch_weight
            if not batch_weight:
                scores[batch], losses[batch] = 0, 0
                continue
            rates = schedule.stream_rates(state.n_steps, total_weight)
            seen = step(state, engine, examples, batch, response, layers, schedule, rates, batch_weight, rng, n_threads)
            scores[batch], losses[batch] = seen.scores, seen.losses
        history = {name: list(values) for name, values in getattr(self, "history_", {}).items()}
        history.setdefault("loss", []).append(float(np.average(losses, weights=examples.weights)))
        history.setdefault("score", []).append(score(response, scores, losses, examples, schedule.word_weight))
        self._keep(learning.parameters(state, n_threads), layers, response)
        self._summarise(examples, seen_weight=getattr(self, "_total_weight", 0.0))
        learning.rest(state)
        self._state, self._rng, self._total_weight, self.history_ = state, rng, total_weight, history

    def _summarise(self, examples: Examples, seen_weight: float) -> None:
        """What is said of the model as a whole, from (at most _SUMMARY_DOCS of) these documents.

        In a stream it is a mean with that of the documents seen before.
        """
        n_docs = examples.documents.n_docs
        sample = examples.take(np.arange(0, n_docs, -(-n_docs // _SUMMARY_DOCS)))
        theta = self._theta(sample.documents)
        kept = seen_weight / (seen_weight + float(examples.weights.sum()))
        shares = np.average(theta.astype(np.float64), axis=0, weights=sample.weights)
        self.topic_shares_ = shares if kept == 0 else kept * self.topic_shares_ + (1 - kept) * shares
        self._set_spread(theta, sample, kept)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
