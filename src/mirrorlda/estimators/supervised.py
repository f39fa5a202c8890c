"""What classifier and regressor share: their parameters, and documents without a target."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.validation import check_is_fitted

from mirrorlda import _core
from mirrorlda.data.corpus.corpus import Corpus
from mirrorlda.data.documents import Documents
from mirrorlda.data.progress import tell
from mirrorlda.estimators.base import TopicEstimator
from mirrorlda.method.responses import Response
from mirrorlda.method.targets import without_missing
from mirrorlda.training.sources import MOST_HELD_OUT, Examples, Source

# Documents without a target get the model's own, so often; one round is enough for ratings, classes gain until the third.
_N_ROUNDS = 3
_ROUND_EPOCHS = 4


class SupervisedTopicEstimator(TopicEstimator):
    """A response on top of the topics."""

    gamma: float
    response: Any
    _fitted_response: Response
    _auto_learning_rate = 0.01

    def predict_text(self, texts: Iterable[str]) -> np.ndarray:
        """What `predict` says of texts, whose words are counted as those of the training texts were.

        The model needs a `vocabulary_`: one that was fitted on a corpus made from text has it. What other methods say of texts:
        give them ``model.vocabulary_.count(texts)``.
        """
        predicted: np.ndarray = self.predict(self._counted(texts))
        return predicted

    def predict(self, X: Any) -> Any:
        raise NotImplementedError

    def _response(self) -> Response:
        return self._fitted_response

    def _check_gamma(self) -> None:
        if not (np.isfinite(self.gamma) and self.gamma > 0):
            raise ValueError(f"gamma must be positive and finite, got {self.gamma!r}")

    def _with_targets(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        """What a score is of; a corpus holds its targets, and only documents that have one count."""
        if not isinstance(X, Corpus):
            return X, y, sample_weight
        check_is_fitted(self)
        if y is not None or sample_weight is not None:
            raise ValueError("a corpus holds its targets: score takes neither y nor sample_weight with it")
        known = X.select(labelled=True)
        if not known.n_docs:
            raise ValueError(f"no document of {X!r} has a target")
        return known, self._aligned(known.targets(np.arange(known.n_docs))[0], known), None

    def _aligned(self, y: np.ndarray, corpus: Corpus) -> np.ndarray:
        """Targets of a corpus as `predict` would give them."""
        raise NotImplementedError

    def _fit_labelled(self, source: Source, response: Response, checkpoint: Any, validation: Any, cluster: Any) -> None:
        """Train on all documents; those without a target take the model's own prediction for one, and training is repeated."""
        known = source.without_unlabelled()
        judged = self._judged(validation)
        keeper, rng = self._keeper(checkpoint, source, judged), self._generator()
        before = keeper.before
        n_stages = 1 if known.n_docs == source.n_docs else 1 + _N_ROUNDS
        if n_stages > 1:
            counted = f"{source.n_docs - known.n_docs:,} of {source.n_docs:,} documents have no target"
            tell(f"{counted}: the first of {n_stages} rounds learns from the others", self.verbose)
        if not keeper.stage:
            before, ended = self._fit(known, response, rng, keeper, n_stages=n_stages, judged=judged, cluster=cluster)
            if n_stages == 1 or not ended:
                return
        share = known.n_docs / source.n_docs
        n_epochs = min(self._n_epochs(), max(_ROUND_EPOCHS, int(np.ceil(share * self._n_epochs()))))
        for stage in range(max(1, keeper.stage), _N_ROUNDS + 1):
            assert before is not None
            if stage == keeper.stage:
                self._keep(before, response)
            completed = source.completed(copy(self)._own_targets)
            before, ended = self._fit(
                completed,
                response,
                rng,
                keeper,
                n_epochs=n_epochs,
                stage=stage,
                n_stages=n_stages,
                before=before,
                judged=judged,
                cluster=cluster,
            )
            if not ended:
                break
        self._summarise(known, seen_weight=0.0)

    def _judged_corpus(self, corpus: Corpus) -> Examples:
        known = corpus.select(labelled=True)
        if not known.n_docs:
            raise ValueError(f"no document of {corpus!r} has a target")
        numbers = np.unique(np.linspace(0, known.n_docs - 1, min(known.n_docs, MOST_HELD_OUT)).astype(np.int64))
        documents = known.take(numbers, logarithmic=self._is_logarithmic())
        return self._judged_documents(documents, self._aligned(known.targets(numbers)[0], known))

    def _judged_pair(self, X: Any, y: Any) -> Examples:
        y, labelled = without_missing(y)
        documents, y = self._documents(X), np.asarray(y.toarray() if hasattr(y, "toarray") else y)
        if len(y) != documents.n_docs:
            raise ValueError(f"validation has {documents.n_docs} documents, but {len(y)} targets")
        numbers = np.arange(len(y)) if labelled is None else np.flatnonzero(labelled)
        return self._judged_documents(documents.take(numbers[:MOST_HELD_OUT]), y[numbers[:MOST_HELD_OUT]])

    def _judged_documents(self, documents: Documents, y: np.ndarray) -> Examples:
        """Documents with targets as they are given; those with a target that the model cannot have are left out."""
        possible = self._possible(y)
        if not possible.any():
            raise ValueError("no document for validation has a target that the training documents have")
        numbers = np.flatnonzero(possible)
        return self._as_examples(documents.take(numbers), y[numbers])

    def _possible(self, y: np.ndarray) -> np.ndarray:
        """Which targets are among those that the model knows."""
        return np.ones(len(y), bool)

    def _as_examples(self, documents: Documents, y: np.ndarray) -> Examples:
        """Documents, all with a target, as the response takes them."""
        raise NotImplementedError

    def _own_targets(self, documents: Documents) -> np.ndarray:
        """What the model predicts, as its response takes targets."""
        return self._fitted_response.targets(self._scores_of(self._theta(documents)))

    def _scores(self, X: Any) -> np.ndarray:
        """U theta, shape (n_docs, n_outputs)."""
        return self._scores_of(self._inferred(X))

    def _scores_of(self, theta: np.ndarray) -> np.ndarray:
        return _core.scores(theta, np.ascontiguousarray(self._fitted_U(), theta.dtype), effective_n_jobs(self.n_jobs))
