"""Topics that predict numbers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if

from mirrorlda.data.corpus.corpus import Corpus
from mirrorlda.estimators.given_targets import check_target, encode_numbers
from mirrorlda.estimators.inputs import checked_examples, unchanged_on_failure
from mirrorlda.estimators.parameters import COMMON_PARAMETERS, NUMBER_RESPONSES, SUPERVISED_PARAMETERS, documented
from mirrorlda.estimators.supervised import SupervisedTopicEstimator
from mirrorlda.method.responses import Response
from mirrorlda.method.targets.numbers import Levels, Numbers, divisor
from mirrorlda.method.targets.record import without_missing
from mirrorlda.training.sources import Encoding, Examples, Source


def _is_ordinal(regressor: TopicRegressor) -> bool:
    return isinstance(regressor.response, str) and regressor.response == "ordinal"


@documented(common=COMMON_PARAMETERS, supervised=SUPERVISED_PARAMETERS, responses=NUMBER_RESPONSES)
@dataclass(eq=False, repr=False, kw_only=True)
class TopicRegressor(RegressorMixin, SupervisedTopicEstimator):  # type: ignore[misc]
    """Topics that predict numbers (BP-sLDA): any numbers, ordered categories or counts.

    Parameters
    ----------
    {supervised}
    gamma : float, default=1.0
        Inverse variance of the Gaussian response, in units of the standardised targets.
    {responses}
    {common}

    Attributes
    ----------
    components_ : ndarray of shape (n_topics, n_words)
        Topics as rows, as people read them: themes, each a distribution over words.
    encoder_components_ : ndarray of shape (n_topics, n_words)
        Topics that proportions are inferred with; `components_` itself where `readability` is 0.
    coef_ : ndarray of shape (n_outputs, n_topics)
        What each topic predicts; a Gaussian prediction is their mean under the topic proportions. Of an ordinal response, the
        log odds of going beyond each level but the last; of a Poisson response, the logarithm of the mean.
    word_weights_ : ndarray of shape (n_words,)
        How much each word counts.
    alpha_ : ndarray of shape (n_topics,)
        The prior's parameter, as given or estimated.
    levels_ : ndarray of shape (n_levels,)
        The levels of an ordinal response.
    target_names_ : list of str
        After a fit on a corpus, the names of its targets.
    noise_std_ : ndarray of shape (n_outputs,)
        Standard deviation of the residuals of (at most 20,000) training documents, smaller than that of new ones.
    topic_shares_ : ndarray of shape (n_topics,)
        Mean topic proportions of (at most 20,000) training documents.
    topic_effects_ : ndarray of shape (3, n_values, n_topics)
        What is lost of the predictions of (at most 1,000) training documents when a topic's part of their words goes: mean, and
        quantiles of 10 % and 90 %. In the order and unit of `mirrorlda.topics.effects`.
    history_ : dict of lists
        Loss (of standardised targets) and R2 (of the last 65,536 documents) of each epoch, on documents with words left out.

    Examples
    --------
    >>> from mirrorlda import TopicRegressor
    >>> from mirrorlda.datasets import make_topics
    >>> data = make_topics(n_docs=600, n_words=60, n_topics=3, n_outputs=1, random_state=0)
    >>> model = TopicRegressor(random_state=0).fit(data.X, data.y)
    >>> model.score(data.X, data.y) > 0.6
    True
    """

    response: str | Response = "gaussian"
    targets_: Numbers = field(init=False)

    @property
    def levels_(self) -> np.ndarray:
        """The levels of an ordinal response."""
        if not isinstance(getattr(self, "targets_", None), Levels):
            raise AttributeError(f"this {type(self).__name__} has no levels_: it is not fitted, or its response is not ordinal")
        return self.targets_.levels

    @property
    def target_names_(self) -> list[str]:
        """After a fit on a corpus, the names of its targets."""
        names = getattr(getattr(self, "targets_", None), "target_names", None)
        if names is None:
            raise AttributeError(f"this {type(self).__name__} has no target_names_: it was not fitted on a corpus")
        return list(names)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Go on learning from a part of a stream; what comes first fixes the targets' scale. See the guide for its rates."""
        with unchanged_on_failure(self):
            first = not hasattr(self, "components_")
            given = self._examples(X, y, sample_weight, reset=first)
            if given.labelled is not None:
                raise ValueError(f"y[{np.argmin(given.labelled)}] is missing: partial_fit needs a target for every document")
            if first:
                targets = self._targets_of(given, None)
                # What comes later may vary where the first part does not.
                targets = replace(targets, scale=divisor(targets.scale))
            else:
                targets, asked = self.targets_, self.response
                if asked != targets.asked_for:
                    raise ValueError(f"partial_fit goes on with the response {targets.asked_for!r}, got {asked!r}")
            self._learn_stream(given.encoded(Encoding(targets)), targets)
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predicted targets; with `return_std` also their standard deviation, the same `noise_std_` for all documents."""
        scores = self._scores(X)
        predicted = self.targets_.predict(scores)
        std = np.broadcast_to(self.noise_std_.astype(predicted.dtype), predicted.shape)
        if self.targets_.is_flat:
            predicted, std = predicted[:, 0], std[:, 0]
        return (predicted, std.copy()) if return_std else predicted

    @available_if(_is_ordinal)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each of `levels_`, shape (n_docs, n_levels)."""
        scores = self._scores(X)
        probabilities = self.targets_.probabilities(scores)
        assert probabilities is not None
        return probabilities

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R2 of the predictions, as scikit-learn has it; of a `Corpus`, for its documents that have a target."""
        return float(super().score(*self._with_targets(X, y, sample_weight)))

    def _examples(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Examples:
        """Documents with their targets in double, (n_docs,) or (n_docs, n_targets)."""
        y, labelled = without_missing(y)
        given = checked_examples(self, X, y, sample_weight, labelled, reset=reset, multi_output=True, y_numeric=True)
        return replace(given, y=np.asarray(given.y, np.float64))

    def _targets_of(self, given: Source, corpus: Corpus | None) -> Numbers:
        if corpus is not None:
            check_target("TopicRegressor", corpus, numbers=True)
        return encode_numbers(given, self.response, self.gamma, names=None if corpus is None else corpus.labels)

    def _set_spread(self, theta: np.ndarray, examples: Examples, kept: float) -> None:
        squares = (self.targets_.decode(examples.y) - self.targets_.predict(self.fitted_model().scores(theta))) ** 2
        variance = np.average(squares, axis=0, weights=examples.weights)
        self.noise_std_ = np.sqrt(variance if kept == 0 else kept * self.noise_std_**2 + (1 - kept) * variance)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        # As for naive Bayes: scikit-learn's check of the score uses a few real-valued features, not word counts.
        tags.regressor_tags.poor_score = True
        return tags
