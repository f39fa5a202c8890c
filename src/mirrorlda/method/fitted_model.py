"""A fitted model, read only: all that is asked of one after training, whatever it predicts.

Estimators make it (`fitted_model()`); tables, explanations, measures, pages and predictions of files read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from mirrorlda import _core
from mirrorlda.data.corpus.corpus import Corpus
from mirrorlda.data.documents import Documents
from mirrorlda.data.parts import READ_DOCS, ahead, chunks
from mirrorlda.data.text import Vocabulary
from mirrorlda.method.effects import LeftOut, left_out
from mirrorlda.method.encoder import Encoder
from mirrorlda.method.targets.record import Output, Targets

# Of central differences of values in double.
_STEP = 1e-5


class Collection(Protocol):
    """Documents as a model takes them, in memory or on disk."""

    @property
    def n_docs(self) -> int: ...

    def matrix(self, numbers: np.ndarray | None = None) -> Any:
        """Counts of the documents with these numbers, or of all, before the steps of a pipeline."""

    def documents(self, numbers: np.ndarray) -> Documents:
        """The same as inference sees them."""

    def parts(self) -> Iterator[Documents]:
        """All of them in their order, as inference sees them."""


@dataclass(frozen=True)
class FittedModel:
    """Topics, coefficients and all that is known of words and targets.

    Attributes
    ----------
    kind : str
        The estimator's class.
    parameters : function that gives a dict
        Those of the estimator.
    encoder : Encoder
        From documents to topic proportions; its layers are in double.
    components : ndarray of shape (n_topics, n_words)
        Topics as people read them: the themes, or the encoder's own topics where these are all there are.
    U : ndarray of shape (n_outputs, n_topics)
        Scores are U theta.
    targets : Targets
        What is predicted, and how scores become predictions.
    shares : ndarray of float64, shape (n_topics,)
        How much of the training documents each topic has.
    history : dict of lists
    is_logarithmic : bool
        Whether logarithms of counts are taken.
    vocabulary : Vocabulary, or None
        Where words are counted by this package: that of a model fitted on a corpus, or of a `TextVectorizer`.
    known_words : function that gives the names of the words, or None
    count : function from texts to counts
    check : function from counts to documents, as inference sees them
    scale : function from counts to what the estimator takes, or None
        The steps of a pipeline between its vectorizer and its estimator.
    summary : ndarray of shape (3, n_values, n_topics), or None
        Mean, and quantiles of 10 % and 90 %, of the topics' effects on training documents.
    """

    kind: str
    parameters: Callable[[], Mapping[str, Any]]
    encoder: Encoder
    components: np.ndarray
    U: np.ndarray
    targets: Targets
    shares: np.ndarray
    history: Mapping[str, list[float]]
    is_logarithmic: bool
    vocabulary: Vocabulary | None
    known_words: Callable[[], Any]
    count: Callable[[Iterable[str]], Any]
    check: Callable[[Any], Documents]
    scale: Callable[[Any], Any] | None = None
    summary: np.ndarray | None = None

    @property
    def n_topics(self) -> int:
        return len(self.components)

    @property
    def n_words(self) -> int:
        return int(self.components.shape[1])

    @property
    def is_supervised(self) -> bool:
        return self.targets.task != "topics"

    @cached_property
    def names(self) -> list[str] | None:
        """What the words are called: as in the corpus or data frame of the fit, or by the steps before it in a pipeline."""
        names = self.known_words()
        return None if names is None else [str(name) for name in names]

    # Documents in.

    def collection(self, X: Any) -> Collection:
        """Documents of a corpus, or of counts."""
        if isinstance(X, Corpus):
            self.check_words(X)
            return _OnDisk(X, self)
        return _InMemory(X, self)

    def counted(self, X: Any) -> Any:
        """Counts of texts; counts and a corpus as they are."""
        return self.count(X) if _are_texts(X) else X

    def documents(self, counts: Any) -> Documents:
        """Counts as inference sees them."""
        return self.check(counts if self.scale is None else self.scale(counts))

    def check_words(self, corpus: Corpus) -> None:
        """That the words of a corpus are those of the model."""
        check_words(corpus, self.n_words, self.vocabulary)

    # Theta, scores and predictions out.

    def proportions(self, X: Any) -> np.ndarray:
        """Theta (n_docs, n_topics) of a corpus, or of counts."""
        if not isinstance(X, Corpus):
            return self.encoder.theta(self.documents(X))
        found = self.collection(X)
        return self.encoder.theta_of(found.parts(), found.n_docs)

    def scores(self, theta: np.ndarray) -> np.ndarray:
        """U theta, shape (n_docs, n_outputs)."""
        return scores_of(theta, self.U, self.encoder.n_threads)

    def columns(self, theta: np.ndarray) -> dict[str, np.ndarray]:
        """Predictions as columns of a table."""
        return self.targets.columns(self.scores(theta)) if self.is_supervised else {}

    # What topics stand for.

    def values(self, theta: np.ndarray) -> np.ndarray:
        """What topics have effects on, (n_docs, n_values), of documents with these proportions."""
        return self.targets.values(self.scores(theta))[1]

    def left_out(self, documents: Documents, theta: np.ndarray) -> LeftOut:
        """What leaving out each topic's part of the words does to documents that have these proportions."""
        return left_out(self.encoder, self.components, self.values, documents, theta)

    def effects(self) -> tuple[list[str], np.ndarray]:
        """Names (n_values), and what each topic does to the prediction of the mean document (n_values, n_topics).

        Files of earlier versions do not say: of these, how far a document of one topic alone is from the average document.
        """
        average = self.shares / self.shares.sum()
        names, values = self.targets.values(self.scores(np.vstack([np.eye(self.n_topics), average])))
        if self.summary is not None:
            return names, self.summary[0]
        return names, (values[:-1] - values[-1:]).T

    def effect_ranges(self) -> np.ndarray | None:
        """Quantiles of 10 % and 90 % of the topics' effects over documents, (2, n_values, n_topics), where they are known."""
        return None if self.summary is None else self.summary[1:]

    def word_effects(self) -> np.ndarray:
        """What one more of each word does to the values of the average document, (n_values, n_words): to first order."""
        phi, average = np.asarray(self.encoder.components, np.float64), self.shares / self.shares.sum()
        mixed = average @ phi
        weights = self.encoder.word_weights
        effects = []
        for gradient in self._gradients(average):
            centred = average * (gradient - gradient @ average)
            effect = (centred @ phi) / mixed
            effects.append(effect if weights is None else effect * weights)
        return np.array(effects).reshape(len(effects), self.n_words)

    def _gradients(self, theta: np.ndarray) -> np.ndarray:
        """Of the values of one document with respect to its proportions, (n_values, n_topics), by central differences."""
        ends = [self.values(theta + step * np.eye(self.n_topics)) for step in (_STEP, -_STEP)]
        gradients: np.ndarray = ((ends[0] - ends[1]) / (2 * _STEP)).T
        return gradients

    def order(self) -> list[int]:
        """Topics by what they stand for."""
        names, values = self.effects()
        if not names:
            order = np.argsort(-self.shares, kind="stable")
        elif len(names) == 1 or self.targets.task == "regression":
            order = np.argsort(-values[0], kind="stable")
        else:
            order = np.lexsort((-values.max(axis=0), values.argmax(axis=0)))
        return [int(topic) for topic in order]

    def output(self, name: Any, theta: np.ndarray) -> Output:
        """The output of that name; without one, that which a document with these topic proportions suggests."""
        return self.targets.output(name, np.asarray(self.U, np.float64) @ theta)


def estimator_of(model: Any) -> Any:
    """An estimator itself, or the one that a pipeline ends with."""
    return model[-1] if hasattr(model, "steps") else model


def model_of(model: Any) -> FittedModel:
    """What there is to read of a fitted estimator of this package, or of a pipeline that ends with one."""
    estimator = estimator_of(model)
    if not hasattr(estimator, "fitted_model"):
        raise ValueError(f"the model must be one of mirrorlda's estimators or end with one, got {type(estimator).__name__}")
    fitted: FittedModel = estimator.fitted_model()
    if estimator is model or len(model.steps) == 1:
        return fitted
    vectorizer, between = model[0], model[1:-1]
    own = getattr(vectorizer, "vocabulary_", None)
    if not (hasattr(vectorizer, "__sklearn_tags__") and vectorizer.__sklearn_tags__().input_tags.string):
        # The pipeline takes counts, and all of its steps scale them.
        between = model[:-1]
    return replace(
        fitted,
        vocabulary=own if isinstance(own, Vocabulary) else None,
        known_words=lambda: model[:-1].get_feature_names_out() if hasattr(vectorizer, "get_feature_names_out") else None,
        count=getattr(vectorizer, "transform", fitted.count),
        scale=between.transform if len(between) else None,
    )


def scores_of(theta: np.ndarray, U: np.ndarray, n_threads: int) -> np.ndarray:
    """U theta for each row of theta, in its precision."""
    return _core.scores(theta, np.ascontiguousarray(U, theta.dtype), n_threads)


def check_words(corpus: Corpus, n_words: int, vocabulary: Vocabulary | None) -> None:
    """That the words of a corpus are those of a model."""
    if corpus.n_words != n_words:
        raise ValueError(f"the corpus has {corpus.n_words} words, but the model was fitted with {n_words}")
    if None not in (vocabulary, corpus.vocabulary) and corpus.vocabulary != vocabulary:
        raise ValueError("the corpus was made with another vocabulary than that of the model: prepare it with the model's")


def _are_texts(X: Any) -> bool:
    if isinstance(X, list | tuple):
        return bool(X) and isinstance(X[0], str)
    return not hasattr(X, "tocsr") and getattr(X, "ndim", 2) == 1


@dataclass(frozen=True)
class _OnDisk:
    corpus: Corpus
    model: FittedModel

    @property
    def n_docs(self) -> int:
        return self.corpus.n_docs

    def matrix(self, numbers: np.ndarray | None = None) -> Any:
        return self.corpus.matrix(numbers)

    def documents(self, numbers: np.ndarray) -> Documents:
        if self.model.scale is not None:
            return self.model.documents(self.corpus.matrix(numbers))
        return self.corpus.take(numbers, logarithmic=self.model.is_logarithmic)

    def parts(self) -> Iterator[Documents]:
        yield from ahead(self.documents(numbers) for numbers in chunks(self.n_docs, READ_DOCS))


@dataclass(frozen=True)
class _InMemory:
    X: Any
    model: FittedModel

    @cached_property
    def _all(self) -> Documents:
        return self.model.documents(self.X)

    @property
    def n_docs(self) -> int:
        if hasattr(self.X, "shape"):
            return int(self.X.shape[0])
        return len(self.X) if hasattr(self.X, "__len__") else self._all.n_docs

    def matrix(self, numbers: np.ndarray | None = None) -> Any:
        if numbers is None:
            return self.X
        rows = getattr(self.X, "iloc", self.X)
        return rows[numbers] if hasattr(self.X, "shape") else np.asarray(self.X)[numbers]

    def documents(self, numbers: np.ndarray) -> Documents:
        return self._all.take(numbers)

    def parts(self) -> Iterator[Documents]:
        yield self._all
