"""Topics of documents that have no targets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from mirrorlda.data.corpus.corpus import Corpus
from mirrorlda.data.documents import Documents
from mirrorlda.estimators.estimator import TopicEstimator
from mirrorlda.estimators.inputs import checked_documents, checked_examples, unchanged_on_failure
from mirrorlda.estimators.parameters import COMMON_PARAMETERS, documented
from mirrorlda.method.fitted_model import FittedModel
from mirrorlda.method.targets.record import NoTargets, Targets
from mirrorlda.training.loop import evaluate
from mirrorlda.training.mirror_descent import Parameters
from mirrorlda.training.sources import MOST_HELD_OUT, Examples, Source, StoredExamples, sample


@documented(common=COMMON_PARAMETERS)
@dataclass(eq=False, repr=False, kw_only=True)
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
    encoder_components_ : ndarray of shape (n_topics, n_words)
        The same.
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

    n_topics: int = field(default=20, kw_only=False)
    alpha: Any = 1.02
    n_layers: int = 10
    n_epochs: int = 40
    learning_rate: float = 0.5

    auto_batch = (32, 256)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Go on learning from a part of a stream; see the guide for its rates."""
        with unchanged_on_failure(self):
            examples = self._examples(X, None, sample_weight, reset=not hasattr(self, "components_"))
            self._learn_stream(examples, NoTargets())
        return self

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean log-likelihood of a word, given the topics and its document's inferred proportions.

        Words count as `count_scale` says.
        """
        model = self.fitted_model()
        source = self._scored(model, X, sample_weight)
        encoder, response = model.encoder, model.targets.response
        phi = encoder.phi(source.dtype)
        parameters = Parameters(phi, np.zeros((0, model.n_topics), phi.dtype), None)
        return evaluate(parameters, source, response, encoder.layers_in(phi.dtype), encoder.n_threads)[1]

    def _scored(self, model: FittedModel, X: Any, sample_weight: Any) -> Source:
        if isinstance(X, Corpus):
            if sample_weight is not None:
                raise ValueError("the documents of a corpus have equal weights: score takes no sample_weight with it")
            model.check_words(X)
            source: Source = StoredExamples.of(X, logarithmic=model.is_logarithmic, has_targets=False)
            has_words = X.n_entries > 0
        else:
            documents = checked_documents(self, X)
            weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            source = Examples(documents, documents.totals(), weights)
            has_words = bool((source.y * weights).any())
        if not has_words:
            raise ValueError("X holds no words, so there is no likelihood of a word")
        return source

    def _examples(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Examples:
        return checked_examples(self, X, None, sample_weight, reset=reset)

    def _targets_of(self, given: Source, corpus: Corpus | None) -> Targets:
        return NoTargets()

    def _judged_in_memory(self, documents: Documents, y: Any, targets: Targets) -> Examples:
        return sample(Examples(documents, documents.totals(), np.ones(documents.n_docs)), MOST_HELD_OUT)

    def _judged_on_disk(self, stored: StoredExamples, targets: Targets) -> Examples:
        return sample(stored, MOST_HELD_OUT)
