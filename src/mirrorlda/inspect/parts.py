"""A fitted model as those who read it need it: the estimator, its words, and how texts become what it takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from mirrorlda.data.text import Vocabulary
from mirrorlda.estimators.base import TopicEstimator
from mirrorlda.inspect.topics import names_of


@dataclass(frozen=True)
class Parts:
    """An estimator, alone or at the end of a pipeline.

    Attributes
    ----------
    estimator : TopicModel, TopicClassifier or TopicRegressor
    names : list of str, or None
        What the estimator's columns are called.
    vocabulary : Vocabulary, or None
        Where words are counted by this package: that of a model fitted on a corpus, or of a `TextVectorizer`.
    counted : function from texts to counts
    scaled : function from counts to what the estimator takes
        The steps of a pipeline between its vectorizer and its estimator.
    is_scaled : bool
        Whether there are such steps.
    """

    estimator: TopicEstimator
    names: list[str] | None
    vocabulary: Vocabulary | None
    counted: Callable[[list[str]], Any]
    scaled: Callable[[Any], Any]
    is_scaled: bool


def parts_of(model: Any) -> Parts:
    """The parts of a fitted estimator of this package, or of a pipeline that ends with one."""
    estimator = model[-1] if isinstance(model, Pipeline) else model
    if not isinstance(estimator, TopicEstimator):
        raise ValueError(f"the model must be one of mirrorlda's estimators or end with one, got {type(estimator).__name__}")
    check_is_fitted(estimator)
    if not isinstance(model, Pipeline):
        vocabulary = getattr(estimator, "vocabulary_", None)
        return Parts(estimator, names_of(estimator), vocabulary, estimator._counted, lambda counts: counts, False)
    vectorizer, between = model[0], model[1:-1]
    own = getattr(vectorizer, "vocabulary_", None)
    return Parts(
        estimator,
        names_of(model),
        own if isinstance(own, Vocabulary) else None,
        vectorizer.transform,
        between.transform if len(between) else lambda counts: counts,
        bool(len(between)),
    )
