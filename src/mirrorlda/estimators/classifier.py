"""Topics that predict classes and labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self, cast

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d

from mirrorlda.data.corpus.corpus import Corpus
from mirrorlda.estimators.given_targets import check_target, class_weigher, classes_of, encode_classes, without_minus_one
from mirrorlda.estimators.inputs import checked_examples, unchanged_on_failure
from mirrorlda.estimators.parameters import COMMON_PARAMETERS, SUPERVISED_PARAMETERS, documented
from mirrorlda.estimators.supervised import SupervisedTopicEstimator
from mirrorlda.method.responses import Response, Sigmoid, Softmax
from mirrorlda.method.targets.classes import Classes, Labels
from mirrorlda.method.targets.record import Targets, array_of, without_missing
from mirrorlda.training.sources import Encoding, Examples, Source


def _has_probabilities(classifier: TopicClassifier) -> bool:
    """A response of the user's own need not have them."""
    targets = getattr(classifier, "targets_", None)
    return classifier.response is None if targets is None else targets.link != "other"


@documented(common=COMMON_PARAMETERS, supervised=SUPERVISED_PARAMETERS)
@dataclass(eq=False, repr=False, kw_only=True)
class TopicClassifier(ClassifierMixin, SupervisedTopicEstimator):  # type: ignore[misc]
    """Topics that predict classes (BP-sLDA with a softmax response), or any number of labels (with a sigmoid for each).

    Parameters
    ----------
    {supervised}
    gamma : float, default=1.0
        Factor of the scores before the softmax.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in scikit-learn.
    response : Response, default=None
        A response of your own in place of the softmax (see `mirrorlda.responses`); y holds class numbers.
    {common}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes; for several labels a document, their numbers.
    components_ : ndarray of shape (n_topics, n_words)
        Topics as rows, as people read them: themes, each a distribution over words.
    encoder_components_ : ndarray of shape (n_topics, n_words)
        Topics that proportions are inferred with; `components_` itself where `readability` is 0.
    coef_ : ndarray of shape (n_classes, n_topics)
        How much each topic speaks for each class.
    word_weights_ : ndarray of shape (n_words,)
        How much each word counts.
    alpha_ : ndarray of shape (n_topics,)
        The prior's parameter, as given or estimated.
    topic_shares_ : ndarray of shape (n_topics,)
        Mean topic proportions of (at most 20,000) training documents.
    topic_effects_ : ndarray of shape (3, n_values, n_topics)
        What is lost of the predictions of (at most 1,000) training documents when a topic's part of their words goes: mean, and
        quantiles of 10 % and 90 %. In the order and unit of `mirrorlda.topics.effects`.
    history_ : dict of lists
        Loss and accuracy (for several labels, the explained fraction of the log loss; of the last 65,536 documents) of each
        epoch, on documents with words left out.

    Examples
    --------
    >>> from mirrorlda import TopicClassifier
    >>> from mirrorlda.datasets import make_topics
    >>> data = make_topics(n_docs=600, n_words=60, n_topics=3, n_classes=2, random_state=0)
    >>> model = TopicClassifier(random_state=0).fit(data.X, data.y)
    >>> model.predict(data.X[:3]).shape, model.predict_proba(data.X[:3]).shape
    ((3,), (3, 2))
    """

    class_weight: Any = None
    response: Response | None = None
    targets_: Classes | Labels = field(init=False)

    @property
    def classes_(self) -> np.ndarray:
        """The classes; for several labels a document, their numbers or names."""
        check_is_fitted(self, "targets_")
        return self.targets_.known

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go on learning from a part of a stream.

        `classes` names all classes that will come; without it they are those of the first part. See the guide for the rates.
        """
        if self.class_weight == "balanced":
            raise ValueError("class_weight='balanced' needs all documents: use fit, or give partial_fit a dict of weights")
        with unchanged_on_failure(self):
            first = not hasattr(self, "components_")
            given = self._examples(X, y, sample_weight, reset=first, may_miss=False)
            if given.labelled is not None:
                raise ValueError(f"y[{np.argmin(given.labelled)}] is missing: partial_fit needs a label for every document")
            wanted = None if classes is None else np.unique(classes)
            targets = self._encoded(given, wanted) if first else self.targets_
            if not first:
                self._check_kind(given)
                if wanted is not None and not np.array_equal(wanted, self.classes_):
                    raise ValueError(f"classes are {wanted.tolist()}, but the model has {self.classes_.tolist()}")
            # A class that is not known is named before its weight is looked up.
            targets.encode(given.y, given.dtype)
            self._learn_stream(given.encoded(Encoding(targets, self._weigher(targets, given))), targets)
        return self

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> np.ndarray:
        """Log odds of the second class for two classes, otherwise a score for each class or label."""
        scores, response = self._scores(X), self.targets_.response
        scores = getattr(response, "gamma", 1.0) * scores
        is_binary = isinstance(self.targets_, Classes) and len(self.classes_) == 2
        return scores[:, 1] - scores[:, 0] if is_binary else scores

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class or label, shape (n_docs, n_classes)."""
        scores = self._scores(X)
        probabilities = self.targets_.probabilities(scores)
        assert probabilities is not None
        return probabilities

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of `predict_proba`."""
        scores, response = self._scores(X), cast(Softmax | Sigmoid, self.targets_.response)
        return response.log_probabilities(scores)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each document; of several labels, 1 where one is more probable than not."""
        scores = self._scores(X)
        return self.targets_.predict(scores)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy of the predictions, as scikit-learn has it; of a `Corpus`, for its documents that have a target."""
        return float(super().score(*self._with_targets(X, y, sample_weight)))

    def _examples(self, X: Any, y: Any, sample_weight: Any, *, reset: bool, may_miss: bool = True) -> Examples:
        """Documents with their labels as given, (n_docs,), or (n_docs, n_labels) of 0 and 1."""
        y, labelled = without_missing(None if y is None else array_of(y))
        if labelled is None and may_miss:
            y, labelled = without_minus_one(y)
        is_wide = y is not None and y.ndim == 2 and y.shape[1] > 1
        checks = {"multi_output": True} if is_wide else {}
        given = checked_examples(self, X, y, sample_weight, labelled, reset=reset, **checks)
        check_classification_targets(given.y)
        if is_wide and type_of_target(given.y) == "multilabel-indicator":
            return Examples(given.documents, Sigmoid().checked(given.y).astype(np.int8), given.weights, given.labelled)
        return Examples(given.documents, column_or_1d(given.y, warn=True), given.weights, given.labelled)

    def _targets_of(self, given: Source, corpus: Corpus | None) -> Targets:
        if corpus is not None:
            check_target("TopicClassifier", corpus, numbers=False)
        targets = self._encoded(given, None, None if corpus is None else np.array(corpus.labels))
        if self.warm_start and hasattr(self, "components_") and not np.array_equal(targets.known, self.classes_):
            raise ValueError(
                f"warm_start needs the classes of the last fit, {self.classes_.tolist()}; got {targets.known.tolist()}"
            )
        return targets

    def _encoded(self, given: Source, classes: np.ndarray | None, labels: np.ndarray | None = None) -> Classes | Labels:
        """`classes` are all that will come, where the caller says so; `labels` are what the columns of y are called."""
        y = next(given.labelled_targets())[0]
        if y.ndim == 1:
            return encode_classes(classes_of(given) if classes is None else classes, self.response, self.gamma, several=False)
        for part, _ in given.labelled_targets():
            Sigmoid().checked(part)
        known = np.arange(y.shape[1]) if labels is None else labels
        return encode_classes(known if classes is None else classes, self.response, self.gamma, several=True)

    def _check_kind(self, given: Examples) -> None:
        if (given.y.ndim == 2) != isinstance(self.targets_, Labels):
            fitted = "several labels" if isinstance(self.targets_, Labels) else "one class"
            raise ValueError(f"y has shape {given.y.shape}, but the model was fitted with {fitted} a document")

    def _weigher(self, targets: Targets, given: Source) -> Callable[[np.ndarray], np.ndarray] | None:
        return class_weigher(self.class_weight, targets, given)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        # As for naive Bayes: scikit-learn's check of the score uses a few real-valued features, not word counts.
        tags.classifier_tags.poor_score = True
        return tags
