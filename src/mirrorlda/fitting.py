"""What the three estimators share: parameters, fitting, inference, and what happens to the state when a fit fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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
from mirrorlda.training import Examples, Schedule, chunks, initial_phi, step, train

C = TypeVar("C", bound=type)

_SUMMARY_DOCS = 20_000

_COMMON_PARAMETERS = """n_topics : int, default=20
        Number of topics; more of them than the data support stay almost empty.
    alpha : float or array of shape (n_topics,), default=1.001
        Dirichlet parameter of the topic proportions; below 1 they become sparse.
    beta : float, default=1.0001
        Dirichlet parameter of the topics, at least 1; above 1 it smooths them.
    n_layers : int, default=10
        Mirror-descent layers that infer the topic proportions.
    step_size : {"l1", "kl"} or float, default="l1"
        Rule of the line search in each layer, or a constant step.
    n_epochs : int or "auto", default="auto"
        Passes over the documents. "auto" makes 10, or as many more as 200 steps need.
    batch_size : int, (int, int) or "auto", default="auto"
        Documents a step; a pair grows from the first to the last epoch. "auto" takes an eighth of the documents, but
        at least 128 and at most 1,000.
    learning_rate : float, default=0.02 (TopicModel: 0.2)
        Of the topics, relative to the root mean square of each topic's gradients.
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


def documented(cls: C) -> C:
    """Puts the common parameters into a class's docstring."""
    if cls.__doc__ is not None:  # python -OO has none
        cls.__doc__ = cls.__doc__.replace("{common}", _COMMON_PARAMETERS)
    return cls


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
    topic_shares_: np.ndarray
    history_: dict[str, list[float]]
    n_features_in_: int
    _state: learning.State
    _total_weight: float

    n_topics: int
    alpha: Any
    beta: float
    n_layers: int
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
    coef_learning_rate: float = 0.0

    def transform(self, X: Any) -> np.ndarray:
        """Topic proportions of documents, shape (n_docs, n_topics)."""
        check_is_fitted(self)
        return self._theta(self._documents(X))

    # What a subclass says of its targets.

    def _response(self) -> Response:
        raise NotImplementedError

    def _initial_U(self, n_outputs: int, rng: np.random.Generator) -> np.ndarray:
        raise NotImplementedError

    def _fitted_U(self) -> np.ndarray:
        raise NotImplementedError

    def _set_parameters(self, phi: np.ndarray, U: np.ndarray) -> None:
        raise NotImplementedError

    def _curvature(self, n_outputs: int) -> float:
        """Second derivative of the loss with respect to a score, which the coefficients' learning rate is divided by."""
        raise NotImplementedError

    def _set_spread(self, theta: np.ndarray, examples: Examples, kept: float) -> None:
        """Called with inferred training documents, for the response's own spread; `kept` is the part of the earlier one."""

    # Documents in, theta out.

    def _documents(self, X: Any) -> Documents:
        return as_documents(validate_data(self, X, **_accepted(X), reset=False))

    def _phi(self, dtype: np.dtype[Any]) -> np.ndarray:
        return check_phi(np.asarray(self.components_, dtype).T)

    def _layers(self, phi: np.ndarray) -> Layers:
        if not isinstance(self.step_size, str) and np.ndim(self.step_size):
            raise ValueError("step_size of an estimator must be 'l1', 'kl' or a number")
        return check_layers(self.alpha, self.n_layers, self.step_size, phi, 0)

    def _inputs(self, X: Any, y: Any, sample_weight: Any, *, reset: bool, **y_checks: Any) -> tuple[Documents, Any, np.ndarray]:
        """Checked documents, targets and weights of a fit; documents without weight are left out."""
        if y is None and not y_checks:
            X = validate_data(self, X, **_accepted(X), reset=reset)
        else:
            X, y = validate_data(self, X, y, **_accepted(X), reset=reset, **y_checks)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not weights.any():
            raise ValueError("sample_weight is zero for all documents")
        if not weights.all():
            kept = np.flatnonzero(weights)
            X, y, weights = X[kept], y if y is None else y[kept], weights[kept]
        return as_documents(X), y, weights

    def _theta(self, documents: Documents) -> np.ndarray:
        phi = self._phi(documents.counts.dtype)
        layers, engine, n_threads = self._layers(phi), new_engine(phi.dtype), effective_n_jobs(self.n_jobs)
        theta = np.empty((documents.n_docs, phi.shape[1]), phi.dtype)
        for batch in chunks(documents.n_docs):
            theta[batch] = forward(engine, phi, documents, batch, layers, keep=False, n_threads=n_threads)
        return theta

    # Training.

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31, size=4))

    def _schedule(self, n_docs: int, n_outputs: int) -> Schedule:
        check_whole("n_topics", self.n_topics)
        check_whole("n_iter_no_change", self.n_iter_no_change)
        for name in ("learning_rate", "coef_learning_rate", "average_from"):
            if not (isinstance(value := getattr(self, name), Real) and 0 <= float(value) < np.inf):
                raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}")
        if not 1 <= self.beta < np.inf:
            raise ValueError(f"beta must be at least 1, got {self.beta!r}: below 1 the prior of the topics has no bound")
        if self.learning_rate_decay not in ("linear", "constant"):
            raise ValueError(f"learning_rate_decay must be 'linear' or 'constant', got {self.learning_rate_decay!r}")
        if not 0 < self.validation_fraction < 1:
            raise ValueError(f"validation_fraction must be between 0 and 1, got {self.validation_fraction!r}")
        batch_sizes = self._batch_sizes(n_docs)
        return Schedule(
            n_epochs=self._n_epochs(n_docs, batch_sizes[0]),
            batch_sizes=batch_sizes,
            learning_rate=self.learning_rate,
            coef_learning_rate=self.coef_learning_rate / self._curvature(n_outputs),
            decay=self.learning_rate_decay,
            average_from=self.average_from,
            beta=self.beta,
        )

    # The two "auto" rules, measured on 500 to 63,000 reviews: about 200 steps on large batches beat more steps on small ones.

    def _batch_sizes(self, n_docs: int) -> tuple[int, int]:
        if self.batch_size == "auto":
            automatic = min(1000, max(128, n_docs // 8))
            return automatic, automatic
        sizes: Any = self.batch_size if isinstance(self.batch_size, tuple | list) else (self.batch_size, self.batch_size)
        if len(sizes) != 2:
            raise ValueError(f"batch_size must be 'auto', a whole number or a pair of them, got {self.batch_size!r}")
        for size in sizes:
            check_whole("batch_size", size)
        return int(sizes[0]), int(sizes[1])

    def _n_epochs(self, n_docs: int, batch_size: int) -> int:
        if isinstance(self.n_epochs, str) and self.n_epochs == "auto":
            steps_per_epoch = -(-n_docs // batch_size)
            return max(10, -(-200 // steps_per_epoch))
        check_whole("n_epochs", self.n_epochs)
        return int(self.n_epochs)

    def _start(self, examples: Examples, n_outputs: int, rng: np.random.Generator, *, go_on: bool) -> learning.State:
        """The state before the first step: random, or, to `go_on`, that of the last fit."""
        phi = initial_phi(examples, self.n_topics, rng)
        U = self._initial_U(n_outputs, rng)
        if go_on:
            last_phi, last_U = self.components_.T, self._fitted_U()
            if last_phi.shape != phi.shape or last_U.shape != U.shape:
                raise ValueError(
                    f"to go on from the last fit, words, topics and outputs must be its own, "
                    f"{last_phi.shape} and {last_U.shape}; got {phi.shape} and {U.shape}"
                )
            phi, U = last_phi, last_U
        dtype = examples.documents.counts.dtype
        return learning.begin(check_phi(phi.astype(dtype)), np.ascontiguousarray(U, dtype))

    def _fit(self, documents: Documents, y: np.ndarray, weights: np.ndarray, n_outputs: int) -> None:
        """Train on all documents with a weight; sets the fitted attributes only when training has ended."""
        examples = Examples(documents, y, weights)
        rng = self._generator()
        schedule = self._schedule(examples.documents.n_docs, n_outputs)
        state = self._start(examples, n_outputs, rng, go_on=self.warm_start and hasattr(self, "components_"))
        layers = self._layers(state.phi)
        validation = None
        if self.early_stopping:
            examples, validation = examples.split(self.validation_fraction, rng)
        with reporter(schedule.n_epochs * examples.documents.n_docs, self.verbose) as report:
            phi, U, history = train(
                state,
                examples,
                self._response(),
                layers,
                schedule,
                rng,
                validation=validation,
                patience=self.n_iter_no_change if self.early_stopping else None,
                n_threads=effective_n_jobs(self.n_jobs),
                report=report,
            )
        self._set_parameters(phi, U)
        self._summarise(examples, seen_weight=0.0)
        self.history_ = history
        self.__dict__.pop("_state", None)

    def _partial_fit(self, documents: Documents, y: np.ndarray, weights: np.ndarray, n_outputs: int) -> None:
        """Steps on the documents in their order, with the rates for a stream of unknown length."""
        if hasattr(self, "_state"):
            documents = replace(documents, counts=documents.counts.astype(self._state.phi.dtype, copy=False))
        examples = Examples(documents, y, weights)
        schedule = self._schedule(examples.documents.n_docs, n_outputs)
        n_threads = effective_n_jobs(self.n_jobs)
        if hasattr(self, "_state"):
            state = learning.copy(self._state)
        else:
            state = self._start(examples, n_outputs, self._generator(), go_on=hasattr(self, "components_"))
        total_weight = getattr(self, "_total_weight", 0.0)
        layers, engine = self._layers(state.phi), new_engine(state.phi.dtype)
        size, n_docs = schedule.batch_size(0), examples.documents.n_docs
        losses = np.empty(n_docs)
        scores = np.empty((n_docs, n_outputs))
        for first in range(0, n_docs, size):
            batch = np.arange(first, min(first + size, n_docs))
            batch_weight = float(examples.weights[batch].sum())
            total_weight += batch_weight
            rates = schedule.stream_rates(state.n_steps, total_weight)
            scores[batch], losses[batch] = step(
                state, engine, examples, batch, self._response(), layers, rates, batch_weight, n_threads
            )
        history = {name: list(values) for name, values in getattr(self, "history_", {}).items()}
        history.setdefault("loss", []).append(float(np.average(losses, weights=examples.weights)))
        history.setdefault("score", []).append(self._response().score(scores, losses, examples.y, examples.weights))
        self._set_parameters(*learning.parameters(state, n_threads))
        self._summarise(examples, seen_weight=getattr(self, "_total_weight", 0.0))
        learning.rest(state)
        self._state, self._total_weight, self.history_ = state, total_weight, history

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
