"""What classifier and regressor share: scores, predictions of texts, and documents without a target."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mirrorlda.data.corpus.corpus import Corpus
from mirrorlda.data.documents import Documents
from mirrorlda.estimators.estimator import TopicEstimator
from mirrorlda.estimators.parameters import PredictionSettings
from mirrorlda.method.targets.record import Targets, without_missing
from mirrorlda.training.sources import MOST_HELD_OUT, Encoding, Examples, StoredExamples


class SupervisedTopicEstimator(PredictionSettings, TopicEstimator):
    """A response on top of the topics."""

    has_targets = True

    def predict(self, X: Any) -> Any:
        raise NotImplementedError

    def predict_text(self, texts: Iterable[str]) -> np.ndarray:
        """What `predict` says of texts, whose words are counted as those of the training texts were.

        The model needs a `vocabulary_`: one that was fitted on a corpus made from text has it. What other methods say of texts:
        give them ``model.vocabulary_.count(texts)``.
        """
        predicted: np.ndarray = self.predict(self._counted(texts))
        return predicted

    def _scores(self, X: Any) -> np.ndarray:
        """U theta, shape (n_docs, n_outputs)."""
        fitted = self.fitted_model()
        return fitted.scores(fitted.proportions(X))

    def _with_targets(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        """What scikit-learn scores: of a corpus the documents that have a target, and their targets in the terms of the model."""
        if not isinstance(X, Corpus):
            return X, y, sample_weight
        check_is_fitted(self)
        if y is not None or sample_weight is not None:
            raise ValueError("a corpus holds its targets: score takes neither y nor sample_weight with it")
        known = X.select(labelled=True)
        if not known.n_docs:
            raise ValueError(f"no document of {X!r} has a target")
        return known, self.targets_.aligned(known.targets(np.arange(known.n_docs))[0], known), None

    def _judged_on_disk(self, stored: StoredExamples, targets: Targets) -> Examples:
        known = stored.without_unlabelled()
        if not known.n_docs:
            raise ValueError(f"no document of {stored.corpus!r} has a target")
        numbers = np.unique(np.linspace(0, known.n_docs - 1, min(known.n_docs, MOST_HELD_OUT)).astype(np.int64))
        examples = known.take(numbers)
        return _encoded(targets, examples.documents, targets.aligned(examples.y, known.corpus))

    def _judged_in_memory(self, documents: Documents, y: Any, targets: Targets) -> Examples:
        y, labelled = without_missing(y)
        y = np.asarray(y.toarray() if hasattr(y, "toarray") else y)
        if len(y) != documents.n_docs:
            raise ValueError(f"validation has {documents.n_docs} documents, but {len(y)} targets")
        numbers = (np.arange(len(y)) if labelled is None else np.flatnonzero(labelled))[:MOST_HELD_OUT]
        return _encoded(targets, documents.take(numbers), y[numbers])


def _encoded(targets: Targets, documents: Documents, y: np.ndarray) -> Examples:
    """Documents for validation; those with a target that the model cannot have are left out."""
    try:
        y = targets.shaped(y)
        numbers = np.flatnonzero(targets.possible(y))
        encoded = Encoding(targets)(Examples(documents.take(numbers), y[numbers], np.ones(len(numbers))))
    except ValueError as error:
        raise ValueError(f"validation: {error}") from None
    if not len(numbers):
        raise ValueError("no document for validation has a target that the training documents have")
    return encoded
