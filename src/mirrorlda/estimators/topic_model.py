"""scikit-learn estimators: where the users' words (components_, coef_) and the paper's symbols (Phi, U) meet."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from mirrorlda.data.corpus.corpus import Corpus
from mirrorlda.data.documents import Documents
from mirrorlda.estimators.base import TopicEstimator, check_cluster, unchanged_on_failure
from mirrorlda.estimators.classifier import TopicClassifier
from mirrorlda.estimators.docstrings import COMMON_PARAMETERS, documented
from mirrorlda.estimators.regressor import TopicRegressor
from mirrorlda.method.responses import Response, Words
from mirrorlda.training.loop import evaluate
from mirrorlda.training.mirror_descent import Parameters
from mirrorlda.training.sources import MOST_HELD_OUT, Examples, StoredExamples, sample

__all__ = ["TopicClassifier", "TopicModel", "TopicRegressor"]


@documented(common=COMMON_PARAMETERS)
class TopicModel(TopicEstimator):
    """Unsupervised topics (BP-LDA): mirror descent on the documents' own likelihood.

    Parameters
    ----------
    n_topics : int, default=20
        Number of topics.
    alpha : float, array of shape (n_topics,), "auto" or None, default=1.02
        Dirichlet parameter of the topic proportions; below 1 they become sparse. "auto" estimates one for each topic, from
        1 + 2 / (n_topics + 20) on, which is what None keeps.
    n_layers : int, default=10
        Mirror-descent layers that infer the topic proportions.
    n_epochs : int, default=40
        Passes over the documents.
    learning_rate : float, default=0.5
        Of the topics, relative to the root mean square of each topic's gradients.
    {common}

    Attributes
    ----------
    components_ : ndarray of shape (n_topics, n_words)
        Topics as rows, each a distribution over words.
    alpha_ : ndarray of shape (n_topics,)
        The prior's parameter, as given or estimated.
    topic_shares_ : ndarray of shape (n_topics,)
        Mean topic proportions of (at most 20,000) training documents.
    history_ : dict of lists
        Loss, and score of the last 65,536 documents, of each epoch.

    Examples
    --------
    >>> from mirrorlda import TopicModel
    >>> from mirrorlda.datasets import make_topics
    >>> X = make_topics(n_docs=300, n_words=60, n_topics=3, random_state=0).X
    >>> model = TopicModel(n_topics=3, random_state=0).fit(X)
    >>> model.transform(X).shape
    (300, 3)
    """

    def __init__(
        self,
        n_topics: int = 20,
        *,
        alpha: Any = 1.02,
        beta: float = 1.0001,
        n_layers: int = 10,
        step_size: str | float = "l1",
        n_epochs: int = 40,
        batch_size: int | tuple[int, int] | str = "auto",
        learning_rate: float = 0.5,
        count_scale: str = "log",
        seed_words: Any = None,
        learning_rate_decay: str = "linear",
        average_from: float = 0.5,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 3,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_topics = n_topics
        self.alpha = alpha
        self.beta = beta
        self.n_layers = n_layers
        self.step_size = step_size
        self.n_epochs = n_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.count_scale = count_scale
        self.seed_words = seed_words
        self.learning_rate_decay = learning_rate_decay
        self.average_from = average_from
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    _auto_batch = (32, 256)

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
        """Learn topics from counts X of shape (n_docs, n_words), or from a `Corpus`; y is ignored.

        `checkpoint` is a `Checkpoint` or a path for one. Ctrl-C ends training after the batch, with a warning and a model that is
        what was learned so far. `validation`, a `Corpus` or a pair of counts and targets, is judged after
        every epoch (at most 65,536 documents) and not learned from: `history_` has its loss and score. `cluster`, a
        `mirrorlda.distributed.Cluster`, trains on a corpus with all its machines.
        """
        check_cluster(cluster, X)
        with unchanged_on_failure(self):
            if isinstance(X, Corpus):
                self._open(X, None, sample_weight)
                source: Examples | StoredExamples = self._stored(X)
            else:
                documents, _, weights, _ = self._inputs(X, None, sample_weight, reset=True)
                source = Examples(documents, documents.totals(), weights)
            judged = self._judged(validation)
            keeper = self._keeper(checkpoint, source, judged)
            self._fit(source, Words(), self._generator(), keeper, judged=judged, cluster=cluster)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Go on learning from a part of a stream; see the guide for its rates."""
        with unchanged_on_failure(self):
            documents, _, weights, _ = self._inputs(X, None, sample_weight, reset=not hasattr(self, "components_"))
            self._partial_fit(Examples(documents, documents.totals(), weights), Words())
        return self

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean log-likelihood of a word, given the topics and its document's inferred proportions.

        Words count as `count_scale` says.
        """
        check_is_fitted(self)
        if isinstance(X, Corpus):
            if sample_weight is not None:
                raise ValueError("the documents of a corpus have equal weights: score takes no sample_weight with it")
            self._check_corpus(X)
            source: Examples | StoredExamples = self._stored(X)
            has_words, dtype = X.n_entries > 0, np.dtype(np.float32)
        else:
            documents = self._documents(X)
            weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            source = Examples(documents, documents.totals(), weights)
            has_words, dtype = bool((source.y * weights).any()), documents.counts.dtype
        if not has_words:
            raise ValueError("X holds no words, so there is no likelihood of a word")
        phi = self._phi(dtype)
        parameters = Parameters(phi, np.zeros((0, phi.shape[1]), phi.dtype), None)
        layers = self._layers(phi, Words(), self.alpha_)
        return evaluate(parameters, source, Words(), layers, effective_n_jobs(self.n_jobs))[1]

    def _stored(self, corpus: Corpus) -> StoredExamples:
        return StoredExamples(corpus, self._encoded, Fraction(corpus.n_docs), self._is_logarithmic())

    def _judged_corpus(self, corpus: Corpus) -> Examples:
        return sample(self._stored(corpus), MOST_HELD_OUT)

    def _judged_pair(self, X: Any, y: Any) -> Examples:
        documents = self._documents(X)
        return sample(Examples(documents, documents.totals(), np.ones(documents.n_docs)), MOST_HELD_OUT)

    def _encoded(self, documents: Documents, y: np.ndarray | None, labelled: np.ndarray | None) -> Examples:
        return Examples(documents, documents.totals(), np.ones(documents.n_docs))

    def _columns(self, theta: np.ndarray) -> dict[str, np.ndarray]:
        return {}

    def _response(self) -> Response:
        return Words()

    def _fitted_U(self) -> np.ndarray:
        return np.zeros((0, len(self.components_)))

    def _set_parameters(self, phi: np.ndarray, U: np.ndarray) -> None:
        self.components_ = phi.T
