"""What the three estimators share: documents in, theta out, fitting, and what happens to the state when a fit fails."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from mirrorlda.data.corpus.corpus import Corpus
from mirrorlda.data.documents import Documents, as_documents
from mirrorlda.data.parts import READ_DOCS, ahead, chunks
from mirrorlda.data.text import Vocabulary
from mirrorlda.estimators.parameters import Settings
from mirrorlda.inspect.notebook import model_page
from mirrorlda.method.inference import check_phi, forward, new_engine
from mirrorlda.method.prior import TopicUsage
from mirrorlda.method.responses import Response
from mirrorlda.method.start import start
from mirrorlda.training import mirror_descent
from mirrorlda.training.checkpoints import Fitted, Keeper
from mirrorlda.training.interrupt import InterruptedWarning, interruptible
from mirrorlda.training.loop import Run, alone, score, step, train
from mirrorlda.training.progress import reporter
from mirrorlda.training.seed_words import guide_of, topic_number
from mirrorlda.training.sources import Examples, Source, sample

_SUMMARY_DOCS = 20_000
# Documents that decide how learning starts and how fast it goes.
_START_DOCS = 100_000
# Documents that are inferred between two chances to interrupt.
_INFERRED_DOCS = 4096
# Sums of larger weights, and of their squares, leave the range of float32.
LARGEST_WEIGHT = 1e12

# The part of a guided topic that its seed words are at the start.
_GUIDED_START = 0.5


def _accepted(X: Any) -> dict[str, Any]:
    """How scikit-learn checks counts: float32 and float64 stay, integers become float32. `as_documents` checks their signs."""
    if isinstance(X, str | os.PathLike):
        raise TypeError(
            f"X is a path, {os.fspath(X)!r}: open it with mirrorlda.Corpus, or make a corpus of the file with prepare"
        )
    is_row = isinstance(X, list | tuple) or (len(getattr(X, "shape", ())) == 1 and not hasattr(X, "tocsr"))
    if is_row and any(isinstance(value, str) for value in X[:10]):
        raise ValueError(
            "X holds text: count its words with TextVectorizer, or use predict_text where the model has a vocabulary_"
        )
    dtypes: Any = getattr(X, "dtypes", getattr(X, "dtype", None))
    integers = all(getattr(dtype, "kind", "f") in "iub" for dtype in np.atleast_1d(dtypes))
    return {"accept_sparse": "csr", "dtype": np.float32 if integers else [np.float64, np.float32]}


def check_cluster(cluster: Any, X: Any) -> None:
    """That a cluster, if there is one, is one, and that its workers can read the documents themselves."""
    if cluster is None:
        return
    if not hasattr(cluster, "steps"):
        raise TypeError(f"cluster must be a mirrorlda.cluster.Cluster, got {cluster!r}")
    if not isinstance(X, Corpus):
        raise ValueError(f"the workers of a cluster read documents themselves: expected X to be a Corpus, got {type(X).__name__}")


@contextmanager
def unchanged_on_failure(estimator: BaseEstimator) -> Iterator[None]:
    """Whatever ends the block early, an error or Ctrl-C, leaves the estimator as it was before."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        estimator.__dict__ = before
        raise


class TopicEstimator(Settings, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators; `components_` is Phi transposed."""

    components_: np.ndarray
    coef_: np.ndarray
    alpha_: np.ndarray
    word_weights_: np.ndarray
    topic_shares_: np.ndarray
    history_: dict[str, list[float]]
    n_features_in_: int
    vocabulary_: Vocabulary
    data_fingerprint_: str
    _state: mirror_descent.State
    _rng: np.random.Generator
    _learned_response: Response
    _total_weight: float

    def transform(self, X: Any) -> np.ndarray:
        """Topic proportions of documents, shape (n_docs, n_topics)."""
        return self._inferred(X)

    def transform_text(self, texts: Iterable[str]) -> np.ndarray:
        """Topic proportions of texts, whose words are counted as those of the training texts were.

        The model needs a `vocabulary_`: one that was fitted on a corpus made from text has it.
        """
        proportions: np.ndarray = self.transform(self._counted(texts))
        return proportions

    # What a subclass says of its targets.

    def _fitted_U(self) -> np.ndarray:
        raise NotImplementedError

    def _set_parameters(self, phi: np.ndarray, U: np.ndarray) -> None:
        raise NotImplementedError

    def _set_spread(self, theta: np.ndarray, examples: Examples, kept: float) -> None:
        """Called with inferred training documents, for the response's own spread; `kept` is the part of the earlier one."""

    def _columns(self, theta: np.ndarray) -> dict[str, np.ndarray]:
        """Predictions as columns of a table, for these topic proportions."""
        raise NotImplementedError

    def _guided_topic(self, key: Any, U: np.ndarray) -> int:
        """The topic that a key of `seed_words` names, for coefficients that start at U."""
        return topic_number(key, U.shape[1])

    # Documents in, theta out.

    def _counted(self, texts: Iterable[str]) -> Any:
        """Counts of the words that `vocabulary_` has."""
        check_is_fitted(self)
        if not hasattr(self, "vocabulary_"):
            raise ValueError(
                f"this {type(self).__name__} has no vocabulary_ to count words of texts with: fit it on a corpus that was made "
                "from text, or fit a Pipeline of a vectorizer and this estimator"
            )
        if isinstance(texts, str | bytes):
            raise ValueError(f"expected a list of texts, got one text: {texts[:40]!r}")
        return self.vocabulary_.count(texts, n_threads=effective_n_jobs(self.n_jobs))

    def _documents(self, X: Any) -> Documents:
        return self._scaled(as_documents(validate_data(self, X, **_accepted(X), reset=False)))

    def _open(self, corpus: Corpus, y: Any, sample_weight: Any) -> None:
        """Take note of the corpus that a fit is to learn from."""
        if y is not None or sample_weight is not None:
            raise ValueError("a corpus holds its targets: fit takes neither y nor sample_weight with it")
        if not corpus.n_docs:
            raise ValueError(f"{corpus!r} has no documents")
        self.n_features_in_ = corpus.n_words
        for name in ("feature_names_in_", "vocabulary_"):
            self.__dict__.pop(name, None)
        if corpus.vocabulary is not None:
            self.vocabulary_ = corpus.vocabulary

    def _check_corpus(self, corpus: Corpus) -> None:
        """That its words are those of the model."""
        if corpus.n_words != self.n_features_in_:
            raise ValueError(f"the corpus has {corpus.n_words} words, but the model was fitted with {self.n_features_in_}")
        if hasattr(self, "vocabulary_") and corpus.vocabulary is not None and corpus.vocabulary != self.vocabulary_:
            raise ValueError("the corpus was made with another vocabulary than that of the model: prepare it with the model's")

    def _scaled(self, documents: Documents) -> Documents:
        return documents.logarithmic() if self._is_logarithmic() else documents

    def _phi(self, dtype: np.dtype[Any]) -> np.ndarray:
        return check_phi(np.asarray(self.components_, dtype).T)

    def _response(self) -> Response:
        """The response, once a fit has said what it needs to know of y."""
        raise NotImplementedError

    def _inputs(
        self, X: Any, y: Any, sample_weight: Any, labelled: np.ndarray | None = None, *, reset: bool, **y_checks: Any
    ) -> tuple[Documents, Any, np.ndarray, np.ndarray]:
        """Checked documents, targets and weights of a fit, and which have a target; documents without weight are left out."""
        if isinstance(X, Corpus):
            raise ValueError("partial_fit takes a matrix: give it corpus.matrix(numbers), or the whole corpus to fit")
        if reset:
            self.__dict__.pop("vocabulary_", None)
        if y is None and not y_checks:
            X = validate_data(self, X, **_accepted(X), reset=reset)
        else:
            X, y = validate_data(self, X, y, **_accepted(X), reset=reset, **y_checks)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        labelled = np.ones(len(weights), bool) if labelled is None else labelled
        if not weights.any():
            raise ValueError("sample_weight is zero for all documents")
        if not 1 / LARGEST_WEIGHT <= weights.max() <= LARGEST_WEIGHT:
            expected = f"expected it between {1 / LARGEST_WEIGHT:g} and {LARGEST_WEIGHT:g}"
            raise ValueError(f"the largest sample_weight is {weights.max():g}, {expected}")
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

    def _inferred(self, X: Any) -> np.ndarray:
        """Theta of a matrix or a corpus."""
        check_is_fitted(self)
        if not isinstance(X, Corpus):
            return self._theta(self._documents(X))
        self._check_corpus(X)
        parts = (X.take(numbers, logarithmic=self._is_logarithmic()) for numbers in chunks(X.n_docs, READ_DOCS))
        return self._theta_of(parts, X.n_docs, np.float32)

    def _theta(self, documents: Documents) -> np.ndarray:
        return self._theta_of([documents], documents.n_docs, documents.counts.dtype)

    def _theta_of(self, parts: Iterable[Documents], n_docs: int, dtype: Any) -> np.ndarray:
        phi = self._phi(np.dtype(dtype))
        layers, n_threads = self._layers(phi, self._response(), self.alpha_), effective_n_jobs(self.n_jobs)
        engine = new_engine(phi.dtype)
        theta = np.empty((n_docs, phi.shape[1]), phi.dtype)
        done = 0
        for part in ahead(parts) if not isinstance(parts, list) else parts:
            documents = part.weighted(self.word_weights_) if hasattr(self, "word_weights_") else part
            for batch in chunks(part.n_docs, _INFERRED_DOCS):
                theta[done + batch] = forward(engine, phi, documents, batch, layers, keep=False, n_threads=n_threads)
            done += part.n_docs
        return theta

    # Training.

    def _start(
        self, examples: Examples, response: Response, rng: np.random.Generator, *, n_docs: int | None, go_on: bool
    ) -> mirror_descent.State:
        """The state before the first step: fresh, or, to `go_on`, that of the last fit.

        The examples are some of `n_docs`; in a stream that is not known, nor how rare a word is.
        """
        n_topics = self._n_topics(response, examples.y)
        phi, U, trusted = start(examples.documents, examples.y, examples.weights, response, n_topics, rng, n_docs)
        names = getattr(self, "feature_names_in_", None)
        if self.seed_words is not None and hasattr(self, "vocabulary_"):
            names = np.array(self.vocabulary_.words)
        guide = guide_of(self.seed_words, names, lambda key: self._guided_topic(key, U), len(phi), n_topics)
        if guide is not None:
            has_seeds = guide.towards.any(axis=0)
            phi[:, has_seeds] *= 1 - _GUIDED_START
            phi[guide.rows] += _GUIDED_START * guide.towards
        word_weights = (np.ones(len(phi)) if n_docs is None else trusted) if self.word_learning_rate else None
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
        return mirror_descent.begin(check_phi(phi.astype(dtype, copy=False)), np.ascontiguousarray(U, dtype), word_weights, guide)

    def _fit(
        self,
        source: Source,
        response: Response,
        rng: np.random.Generator,
        keeper: Keeper,
        *,
        n_epochs: int | None = None,
        stage: int = 0,
        n_stages: int = 1,
        before: Fitted | None = None,
        judged: Examples | None = None,
        cluster: Any = None,
    ) -> tuple[Fitted, bool]:
        """Train on all documents with a weight; sets the fitted attributes only when training has ended.

        A fit may have `n_stages`, of which `before` was the last. `judged` are documents for validation. A `cluster` takes the
        steps, if there is one. Returns what was learned, and whether training went to its end: Ctrl-C stops it.
        """
        some = sample(source, _START_DOCS)
        schedule = self._schedule(some, source.n_docs, response, n_epochs)
        n_topics = self._n_topics(response, some.y)
        layers = self._layers(np.ones((1, n_topics), some.documents.counts.dtype), response, self._first_alpha(n_topics))
        run = keeper.run(stage, layers)
        if run is None:
            state = self._start(some, response, rng, n_docs=source.n_docs, go_on=self.warm_start and hasattr(self, "components_"))
            run = Run(state, layers, rng, held_out=int(rng.integers(2**63)))
            run.usage = TopicUsage(source.n_docs) if self._estimates_alpha() else None
        # What comes after this stage goes on with the numbers that come after it.
        rng.bit_generator.state = run.rng.bit_generator.state
        run.rng = rng
        if judged is not None:
            counts = judged.documents.counts.astype(some.documents.counts.dtype, copy=False)
            judged = replace(judged, documents=replace(judged.documents, counts=counts))
        elif self.early_stopping:
            source, judged = source.hold_out(self.validation_fraction, run.held_out)
        total_docs, round = schedule.n_epochs * source.n_docs, (stage + 1, n_stages)
        with reporter(total_docs, self.verbose, round) as report, interruptible() as interrupted:
            parameters, layers = train(
                run,
                source,
                response,
                schedule,
                steps=alone if cluster is None else cluster.steps(),
                validation=judged,
                patience=self.n_iter_no_change if self.early_stopping else None,
                n_threads=effective_n_jobs(self.n_jobs),
                report=report,
                save=lambda epoch_ended: keeper.save(run, stage=stage, before=before, now=epoch_ended or interrupted()),
                interrupted=interrupted,
            )
            ended = not interrupted()
            fitted = Fitted(parameters, layers.alpha)
            self._keep(fitted, response)
            self._summarise(source, seen_weight=0.0)
        self.history_ = run.history
        for name in ("_state", "_rng", "_total_weight"):
            self.__dict__.pop(name, None)
        if not ended:
            if run.tally.latest:
                unfinished = run.tally.measures(response, schedule.word_weight)
                self.history_ = {**run.history, **{name: [*run.history.get(name, []), v] for name, v in unfinished.items()}}
            warnings.warn(
                f"Ctrl-C: training ended after {run.n_steps} of {schedule.n_steps(source.n_docs)} steps; "
                "the model is what was learned so far",
                InterruptedWarning,
                stacklevel=5,
            )
        return fitted, ended

    def _judged(self, validation: Any) -> Examples | None:
        """Documents of a fit's `validation`, a corpus or counts and targets, as the response takes them."""
        if validation is None:
            return None
        if isinstance(validation, Corpus):
            self._check_corpus(validation)
            return self._judged_corpus(validation)
        if not (isinstance(validation, tuple | list) and len(validation) == 2):
            raise ValueError(f"validation must be a Corpus or a pair of counts and targets, got {type(validation).__name__}")
        return self._judged_pair(*validation)

    def _judged_corpus(self, corpus: Corpus) -> Examples:
        raise NotImplementedError

    def _judged_pair(self, X: Any, y: Any) -> Examples:
        raise NotImplementedError

    def _keeper(self, checkpoint: Any, source: Source, judged: Examples | None) -> Keeper:
        """What saves a fit of `source`, and knows it again by all that it depends on."""
        self.data_fingerprint_ = source.fingerprint
        before = self.components_ if self.warm_start and hasattr(self, "components_") else None
        described = {name: value for name, value in self.get_params(deep=False).items() if name not in ("n_jobs", "verbose")}
        others = () if judged is None else (judged.fingerprint,)
        return Keeper(checkpoint, type(self).__name__, self.data_fingerprint_, self.n_features_in_, before, described, *others)

    def _keep(self, fitted: Fitted, response: Response) -> None:
        self._learned_response = response
        self._set_parameters(fitted.parameters.phi, fitted.parameters.U)
        self.alpha_ = fitted.alpha
        self.__dict__.pop("word_weights_", None)
        if fitted.parameters.word_weights is not None:
            self.word_weights_ = fitted.parameters.word_weights

    def _partial_fit(self, examples: Examples, response: Response) -> None:
        """Steps on the documents in their order, with the rates for a stream of unknown length."""
        if self._estimates_alpha():
            raise ValueError("alpha='auto' needs all documents: use fit, or give partial_fit a number")
        n_threads = effective_n_jobs(self.n_jobs)
        if hasattr(self, "_state"):
            counts = examples.documents.counts.astype(self._state.phi.dtype, copy=False)
            examples = replace(examples, documents=replace(examples.documents, counts=counts))
            state, rng = mirror_descent.copy(self._state), deepcopy(self._rng)
        else:
            rng = self._generator()
            state = self._start(examples, response, rng, n_docs=None, go_on=hasattr(self, "components_"))
        schedule = self._schedule(examples, examples.n_docs, response)
        total_weight = getattr(self, "_total_weight", 0.0)
        layers = self._layers(state.phi, response, self._first_alpha(state.phi.shape[1]))
        engine = new_engine(state.phi.dtype)
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
        history.setdefault("score", []).append(
            score(response, scores, losses, examples.y, examples.weights, schedule.word_weight)
        )
        self._keep(Fitted(mirror_descent.parameters(state, n_threads), layers.alpha), response)
        self._summarise(examples, seen_weight=getattr(self, "_total_weight", 0.0))
        self.__dict__.pop("data_fingerprint_", None)
        self._state, self._rng, self._total_weight, self.history_ = state, rng, total_weight, history

    def _summarise(self, source: Source, seen_weight: float) -> None:
        """What is said of the model as a whole, from (at most _SUMMARY_DOCS of) these documents.

        In a stream it is a mean with that of the documents seen before.
        """
        some = sample(source, _SUMMARY_DOCS)
        theta = self._theta(some.documents)
        kept = seen_weight / (seen_weight + source.total_weight)
        shares = np.average(theta.astype(np.float64), axis=0, weights=some.weights)
        self.topic_shares_ = shares if kept == 0 else kept * self.topic_shares_ + (1 - kept) * shares
        self._set_spread(theta, some, kept)

    # scikit-learn's page is a diagram, which says nothing of what was learned.

    def _repr_html_inner(self) -> str:
        page: str = model_page(self) if hasattr(self, "topic_shares_") else super()._repr_html_inner()
        return page

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(**kwargs)
        return {**bundle, "text/html": self._repr_html_inner()} if "text/html" in bundle else bundle

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
