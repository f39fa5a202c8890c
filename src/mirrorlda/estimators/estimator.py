"""What all estimators do: fit, infer topics, and hand out what they learned as a value."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from mirrorlda.data.corpus.corpus import Corpus
from mirrorlda.data.documents import Documents
from mirrorlda.data.text import Vocabulary
from mirrorlda.estimators.fitting import Fitting, Stream, learned_from_stream
from mirrorlda.estimators.inputs import check_cluster, checked_documents, stored_examples, unchanged_on_failure
from mirrorlda.estimators.parameters import Settings, is_logarithmic, layers_of
from mirrorlda.inspect.notebook import model_page
from mirrorlda.method.encoder import Encoder
from mirrorlda.method.fitted_model import FittedModel, check_words
from mirrorlda.method.targets.record import Targets
from mirrorlda.method.themes import are_two
from mirrorlda.training.checkpoints import Fitted, Keeper
from mirrorlda.training.interrupt import InterruptedWarning, interruptible
from mirrorlda.training.mirror_descent import Parameters
from mirrorlda.training.sources import Encoding, Examples, Source, StoredExamples, sample
from mirrorlda.training.unlabelled import Learned

# The most documents that decide `topic_shares_` and `noise_std_`.
_SUMMARY_DOCS = 20_000
# The most documents that decide `topic_effects_`, and of each part of a stream; fewer where they are inferred without many
# topics, or have many effects.
_EFFECT_DOCS, _STREAM_DOCS, _FEWEST_DOCS = 1_000, 200, 5
_LEFT_OUT, _EFFECTS = 100_000, 4_000_000


class TopicEstimator(Settings, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators."""

    components_: np.ndarray
    encoder_components_: np.ndarray
    coef_: np.ndarray
    alpha_: np.ndarray
    word_weights_: np.ndarray
    topic_shares_: np.ndarray
    topic_effects_: np.ndarray
    noise_std_: np.ndarray
    history_: dict[str, list[float]]
    n_features_in_: int
    vocabulary_: Vocabulary
    data_fingerprint_: str
    targets_: Targets
    stream_: Stream

    # Whether it learns from targets: one that predicts does.
    has_targets = False

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        checkpoint: Any = None,
        validation: Any = None,
        cluster: Any = None,
    ) -> Self:
        """Learn topics, and what they predict, from counts X of shape (n_docs, n_words) and their targets y.

        X may be a `Corpus`, which holds its targets. A `TopicRegressor` takes numbers, (n_docs,) or (n_docs, n_outputs).
        A `TopicClassifier` takes classes of any type, (n_docs,), or several labels a document, (n_docs, n_labels) of 0 and 1. A
        `TopicModel` takes no notice of y.

        A document whose y is None or NaN has no target. It is learned from as well: it takes the model's own prediction for one.
        For a classifier whose classes are whole numbers, -1 means the same if there are at least two other classes.

        `checkpoint` is a `Checkpoint` or a path for one. Ctrl-C ends training after the batch, with a warning and a model that is
        what was learned so far. `validation`, a `Corpus` or a pair of counts and targets, is judged after every epoch (at most
        65,536 documents) and not learned from: `history_` has its loss and score. A classifier leaves out documents of classes
        that no training document has. `cluster`, a `mirrorlda.distributed.Cluster`, trains on a corpus with all its machines.
        """
        check_cluster(cluster, X)
        with unchanged_on_failure(self):
            given: Source
            if isinstance(X, Corpus):
                given = stored_examples(self, X, y if self.has_targets else None, sample_weight, has_targets=self.has_targets)
                targets = self._targets_of(given, X)
            else:
                given = self._examples(X, y, sample_weight, reset=True)
                targets = self._targets_of(given, None)
            source = given.encoded(Encoding(targets, self._weigher(targets, given)))
            judged = None if validation is None else self._judged(validation, targets)
            with interruptible() as interrupted:
                keeper, last = self._keeper(checkpoint, source, judged), self._last(targets) if self.warm_start else None
                fitting = Fitting(self, targets, self._word_names(), last, judged, keeper, cluster, interrupted)
                learned = fitting.learned(source)
                self._keep(learned.fitted, targets)
                self._summarise(learned.source, seen_weight=0.0)
            self.history_ = learned.history
            self.__dict__.pop("stream_", None)
            if not learned.ended:
                _warn_of_interrupt(learned)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Topic proportions of documents, shape (n_docs, n_topics)."""
        return self.fitted_model().proportions(X)

    def transform_text(self, texts: Iterable[str]) -> np.ndarray:
        """Topic proportions of texts, whose words are counted as those of the training texts were.

        The model needs a `vocabulary_`: one that was fitted on a corpus made from text has it.
        """
        proportions: np.ndarray = self.transform(self._counted(texts))
        return proportions

    def fitted_model(self) -> FittedModel:
        """All that there is to read of what was learned, whatever it predicts: what tables, pages and measures are made from."""
        check_is_fitted(self)
        n_topics, response = len(self.components_), self.targets_.response
        layers, weights = layers_of(self, n_topics, np.float64, response, self.alpha_), getattr(self, "word_weights_", None)
        return FittedModel(
            kind=type(self).__name__,
            parameters=lambda: self.get_params(deep=False),
            encoder=Encoder(self.encoder_components_, weights, layers, effective_n_jobs(self.n_jobs)),
            components=self.components_,
            U=self.targets_.U_of(self.coef_) if self.has_targets else np.zeros((0, n_topics)),
            targets=self.targets_,
            shares=np.asarray(getattr(self, "topic_shares_", np.zeros(n_topics)), np.float64),
            history=getattr(self, "history_", {}),
            is_logarithmic=is_logarithmic(self),
            vocabulary=getattr(self, "vocabulary_", None),
            known_words=self._known_words,
            count=self._counted,
            check=lambda X: checked_documents(self, X),
            summary=getattr(self, "topic_effects_", None),
        )

    # What a subclass says of its targets.

    def _examples(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Examples:
        """Documents in memory with their targets as they are given."""
        raise NotImplementedError

    def _targets_of(self, given: Source, corpus: Corpus | None) -> Targets:
        """What the targets of a fit are; those of a corpus have names."""
        raise NotImplementedError

    def _weigher(self, targets: Targets, given: Source) -> Callable[[np.ndarray], np.ndarray] | None:
        """Weights of documents by their targets."""
        return None

    def _judged_in_memory(self, documents: Documents, y: Any, targets: Targets) -> Examples:
        """Documents for validation, with their targets as the response takes them."""
        raise NotImplementedError

    def _judged_on_disk(self, stored: StoredExamples, targets: Targets) -> Examples:
        """The same for a corpus."""
        raise NotImplementedError

    def _set_spread(self, theta: np.ndarray, examples: Examples, kept: float) -> None:
        """Called with inferred training documents, for the response's own spread; `kept` is the part of the earlier one."""

    # Words.

    def _known_words(self) -> Any:
        return self.vocabulary_.words if hasattr(self, "vocabulary_") else getattr(self, "feature_names_in_", None)

    def _word_names(self) -> np.ndarray | None:
        """For seed words; a vocabulary is large, and is not listed for nothing."""
        return None if self.seed_words is None or (names := self._known_words()) is None else np.array(names)

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

    # Around a fit.

    def _judged(self, validation: Any, targets: Targets) -> Examples:
        """Documents of a fit's `validation`, a corpus or counts and targets."""
        if isinstance(validation, Corpus):
            check_words(validation, self.n_features_in_, getattr(self, "vocabulary_", None))
            stored = StoredExamples.of(validation, logarithmic=is_logarithmic(self), has_targets=self.has_targets)
            return self._judged_on_disk(stored, targets)
        if not (isinstance(validation, tuple | list) and len(validation) == 2):
            raise ValueError(f"validation must be a Corpus or a pair of counts and targets, got {type(validation).__name__}")
        X, y = validation
        return self._judged_in_memory(checked_documents(self, X), y, targets)

    def _keeper(self, checkpoint: Any, source: Source, judged: Examples | None) -> Keeper:
        """What saves a fit of `source`, and knows it again by all that it depends on."""
        self.data_fingerprint_ = source.fingerprint
        before = self.encoder_components_ if self.warm_start and hasattr(self, "components_") else None
        described = {name: value for name, value in self.get_params(deep=False).items() if name not in ("n_jobs", "verbose")}
        others = () if judged is None else (judged.fingerprint,)
        return Keeper(checkpoint, type(self).__name__, self.data_fingerprint_, self.n_features_in_, before, described, *others)

    def _last(self, targets: Targets) -> Fitted | None:
        """What the last fit learned, if there was one, to go on from it."""
        if not hasattr(self, "components_"):
            return None
        if self.targets_.response != targets.response:
            raise ValueError(
                f"to go on, the response must be that of the last fit, {self.targets_.response}; got {targets.response}"
            )
        U = targets.U_of(self.coef_) if self.has_targets else np.zeros((0, len(self.components_)))
        themes = self.components_.T if are_two(self.components_, self.encoder_components_) else None
        parameters = Parameters(self.encoder_components_.T, U, getattr(self, "word_weights_", None), themes)
        return Fitted(parameters, self.alpha_)

    def _keep(self, fitted: Fitted, targets: Targets) -> None:
        self.targets_, self.alpha_ = targets, fitted.alpha
        phi, themes = fitted.parameters.phi, fitted.parameters.themes
        self.encoder_components_ = phi.T
        self.components_ = self.encoder_components_ if themes is None else themes.T
        if self.has_targets:
            self.coef_ = targets.coefficients(fitted.parameters.U)
        self.__dict__.pop("word_weights_", None)
        if fitted.parameters.word_weights is not None:
            self.word_weights_ = fitted.parameters.word_weights

    def _learn_stream(self, examples: Examples, targets: Targets) -> None:
        """Go on with documents of a stream, whose targets are as the response takes them."""
        before = getattr(self, "stream_", None)
        last = None if before is not None else self._last(targets)
        stream, fitted, measures = learned_from_stream(self, examples, targets, self._word_names(), before, last)
        self._keep(fitted, targets)
        self._summarise(examples, seen_weight=0.0 if before is None else before.total_weight)
        self.__dict__.pop("data_fingerprint_", None)
        history = getattr(self, "history_", {})
        self.history_ = {**history, **{name: [*history.get(name, []), value] for name, value in measures.items()}}
        self.stream_ = stream

    def _summarise(self, source: Source, seen_weight: float) -> None:
        """Set `topic_shares_`, and what else is said of the model as a whole, from (at most _SUMMARY_DOCS of) these documents.

        In a stream it is a mean with that of the documents seen before.
        """
        some = sample(source, _SUMMARY_DOCS)
        model = self.fitted_model()
        theta = model.encoder.theta(some.documents)
        kept = seen_weight / (seen_weight + source.total_weight)
        shares = np.average(theta.astype(np.float64), axis=0, weights=some.weights)
        self.topic_shares_ = shares if kept == 0 else kept * self.topic_shares_ + (1 - kept) * shares
        self._set_spread(theta, some, kept)
        if self.has_targets:
            effects = _effects(model, some, theta, _STREAM_DOCS if seen_weight else _EFFECT_DOCS)
            before = getattr(self, "topic_effects_", None)
            self.topic_effects_ = effects if kept == 0 or before is None else kept * before + (1 - kept) * effects

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


def _effects(model: FittedModel, examples: Examples, theta: np.ndarray, most: int) -> np.ndarray:
    """Mean of the topics' effects, and their quantiles of 10 % and 90 %, (3, n_values, n_topics), from some of the examples.

    They are drawn evenly by their weights: one of weight 2 counts as two.
    """
    n_values = model.values(theta[:1]).shape[1]
    n_docs = min(most, max(_FEWEST_DOCS, min(_LEFT_OUT // model.n_topics, _EFFECTS // (n_values * model.n_topics))))
    ends = np.cumsum(examples.weights)
    some = np.searchsorted(ends, ends[-1] * (np.arange(n_docs) + 0.5) / n_docs)
    if n_docs >= examples.n_docs and (examples.weights == examples.weights[0]).all():
        some = np.arange(examples.n_docs)
    some = np.minimum(some, examples.n_docs - 1)
    effects = model.left_out(examples.documents.take(some), theta[some]).effects.astype(np.float64)
    return np.stack([effects.mean(axis=0), *np.quantile(effects, (0.1, 0.9), axis=0)])


def _warn_of_interrupt(learned: Learned) -> None:
    warnings.warn(
        f"Ctrl-C: training ended after {learned.n_steps} of {learned.n_planned} steps; the model is what was learned so far",
        InterruptedWarning,
        stacklevel=3,
    )
