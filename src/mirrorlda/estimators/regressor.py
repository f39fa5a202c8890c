"""Topics that predict numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if

from mirrorlda.data.corpus.corpus import Corpus
from mirrorlda.data.documents import Documents
from mirrorlda.data.parts import PART_DOCS, chunks
from mirrorlda.estimators.base import check_cluster, unchanged_on_failure
from mirrorlda.estimators.docstrings import COMMON_PARAMETERS, SUPERVISED_PARAMETERS, documented
from mirrorlda.estimators.supervised import SupervisedTopicEstimator
from mirrorlda.method.responses import Ordinal, Poisson, Response, SquaredError
from mirrorlda.method.targets import without_missing
from mirrorlda.training.sources import Examples, StoredExamples

# Beyond it, and closer to each other than its inverse, targets leave the range of float32.
_LARGEST_TARGET = 1e30
_NAMES = ("gaussian", "ordinal", "poisson")

# Targets (n, n_targets) and weights of all documents that have a target, some at a time; it can be called more than once.
Parts = Callable[[], Iterator[tuple[np.ndarray, np.ndarray]]]


def _is_ordinal(regressor: TopicRegressor) -> bool:
    return isinstance(regressor.response, str) and regressor.response == "ordinal"


@documented(common=COMMON_PARAMETERS, supervised=SUPERVISED_PARAMETERS)
class TopicRegressor(RegressorMixin, SupervisedTopicEstimator):  # type: ignore[misc]
    """Topics that predict numbers (BP-sLDA): any numbers, ordered categories or counts.

    Parameters
    ----------
    {supervised}
    gamma : float, default=1.0
        Inverse variance of the Gaussian response, in units of the standardised targets.
    response : {"gaussian", "ordinal", "poisson"} or Response, default="gaussian"
        "ordinal" for a few ordered levels such as stars, with `predict_proba`; "poisson" for counts; or a response of your own
        (see `mirrorlda.responses`), which takes the targets as they are.
    {common}

    Attributes
    ----------
    components_ : ndarray of shape (n_topics, n_words)
        Topics as rows, each a distribution over words.
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

    levels_: np.ndarray
    target_names_: list[str]
    noise_std_: np.ndarray
    _fitted_with: Any
    _n_targets: int
    _one_dimensional: bool
    _mean: np.ndarray
    _scale: np.ndarray

    def __init__(
        self,
        n_topics: int | str = "auto",
        *,
        alpha: Any = None,
        beta: float = 1.0001,
        gamma: float = 1.0,
        n_layers: int | str = "auto",
        step_size: str | float = "l1",
        tol: float = 0.02,
        n_epochs: int = 10,
        batch_size: int | tuple[int, int] | str = "auto",
        learning_rate: float | str = "auto",
        coef_learning_rate: float = 0.5,
        word_learning_rate: float = 0.03,
        word_dropout: float = 0.25,
        count_scale: str = "log",
        generative_weight: float = 0.0,
        response: str | Response = "gaussian",
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
        self.gamma = gamma
        self.n_layers = n_layers
        self.step_size = step_size
        self.tol = tol
        self.n_epochs = n_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.coef_learning_rate = coef_learning_rate
        self.word_learning_rate = word_learning_rate
        self.word_dropout = word_dropout
        self.count_scale = count_scale
        self.generative_weight = generative_weight
        self.response = response
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
        """Learn topics and coefficients from counts X (n_docs, n_words) and targets y (n_docs,) or (n_docs, n_outputs).

        X may be a `Corpus`, which holds its targets. Documents whose y is NaN or None are learned from as well: they take the
        model's own prediction for a target. `checkpoint` is a `Checkpoint` or a path for one. Ctrl-C ends training after the
        batch, with a warning and a model that is what was learned so far.

        `validation`, a `Corpus` or a pair of counts and targets, is judged after every epoch (at most 65,536 documents) and not
        learned from: `history_` has its loss and score. Documents with a target that no training document has are left out.
        `cluster`, a `mirrorlda.distributed.Cluster`, trains on a corpus with all its machines.
        """
        check_cluster(cluster, X)
        with unchanged_on_failure(self):
            if isinstance(X, Corpus):
                source: Examples | StoredExamples = self._stored(X, y, sample_weight)
            else:
                documents, y, weights, labelled = self._targets(X, y, sample_weight, reset=True)
                self._set_scale(_parts(y[labelled], weights[labelled]), y.shape[1])
                source = self._examples(documents, y, weights, labelled)
            self._fit_labelled(source, self._response(), checkpoint, validation, cluster)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Go on learning from a part of a stream; what comes first fixes the targets' scale. See the guide for its rates."""
        with unchanged_on_failure(self):
            first = not hasattr(self, "components_")
            documents, y, weights, labelled = self._targets(X, y, sample_weight, reset=first)
            if not labelled.all():
                raise ValueError(f"y[{np.argmin(labelled)}] is missing: partial_fit needs a target for every document")
            if first:
                self._set_scale(_parts(y, weights), y.shape[1])
                # What comes later may vary where the first part does not.
                self._scale = _divisor(self._scale)
            elif self.response != self._fitted_with:
                raise ValueError(f"partial_fit goes on with the response {self._fitted_with!r}, got {self.response!r}")
            elif y.shape[1] != self._n_targets:
                raise ValueError(f"y has {y.shape[1]} outputs, but the model has {self._n_targets}")
            self._partial_fit(self._examples(documents, y, weights), self._response())
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predicted targets; with `return_std` also their standard deviation, the same `noise_std_` for all documents."""
        predicted = self._predicted(self._scores(X))
        std = np.broadcast_to(self.noise_std_.astype(predicted.dtype), predicted.shape)
        if self._one_dimensional:
            predicted, std = predicted[:, 0], std[:, 0]
        return (predicted, std.copy()) if return_std else predicted

    @available_if(_is_ordinal)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each of `levels_`, shape (n_docs, n_levels)."""
        scores = self._scores(X)
        response = self._response()
        assert isinstance(response, Ordinal)
        return response.probabilities(scores)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R2 of the predictions, as scikit-learn has it; of a `Corpus`, for its documents that have a target."""
        return float(super().score(*self._with_targets(X, y, sample_weight)))

    def _columns(self, theta: np.ndarray) -> dict[str, np.ndarray]:
        scores = self._scores_of(theta)
        predicted = self._predicted(scores)
        names = [""] if self._one_dimensional else [f"_{name}" for name in getattr(self, "target_names_", range(self._n_targets))]
        columns = {f"prediction{name}": predicted[:, output] for output, name in enumerate(names)}
        if self._has_levels():
            response = self._response()
            assert isinstance(response, Ordinal)
            probabilities = zip(_level_names(self.levels_), response.probabilities(scores).T, strict=True)
            columns |= {f"probability_{level}": p for level, p in probabilities}
        return columns

    def _aligned(self, y: np.ndarray, corpus: Corpus) -> np.ndarray:
        """Targets of a corpus, which must be those of the model."""
        assert corpus.target is not None
        if corpus.target.kind != "numbers":
            raise ValueError(f"TopicRegressor needs numbers as targets, but {corpus!r} holds {corpus.target.kind} as targets")
        names = list(corpus.target.names)
        if len(names) != self._n_targets or (len(names) > 1 and getattr(self, "target_names_", names) != names):
            fitted = getattr(self, "target_names_", f"{self._n_targets} columns")
            raise ValueError(f"the targets of the corpus are {names}, those of the model {fitted}")
        return y

    def _targets(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool
    ) -> tuple[Documents, np.ndarray, np.ndarray, np.ndarray]:
        if reset:
            self.__dict__.pop("target_names_", None)
        y, labelled = without_missing(y)
        documents, y, weights, labelled = self._inputs(
            X, y, sample_weight, labelled, reset=reset, multi_output=True, y_numeric=True
        )
        if reset:
            self._one_dimensional = y.ndim == 1
        y = np.asarray(y, np.float64).reshape(len(y), -1)
        return documents, y, weights, labelled

    def _stored(self, corpus: Corpus, y: Any, sample_weight: Any) -> StoredExamples:
        self._open(corpus, y, sample_weight)
        if corpus.target is None or corpus.target.kind != "numbers":
            held = "no targets" if corpus.target is None else f"{corpus.target.kind} as targets"
            raise ValueError(f"TopicRegressor needs numbers as targets, but {corpus!r} holds {held}")
        known, n_targets = corpus.select(labelled=True), len(corpus.target.names)
        if not known.n_docs:
            raise ValueError(f"no document of {corpus!r} has a target")
        self._one_dimensional = n_targets == 1
        self.target_names_ = list(corpus.target.names)

        def parts() -> Iterator[tuple[np.ndarray, np.ndarray]]:
            for numbers in chunks(known.n_docs, PART_DOCS):
                yield known.targets(numbers)[0].reshape(len(numbers), -1), np.ones(len(numbers))

        self._set_scale(parts, n_targets)
        return StoredExamples(corpus, self._encoded, Fraction(corpus.n_docs), self._is_logarithmic())

    def _encoded(self, documents: Documents, y: np.ndarray | None, labelled: np.ndarray | None) -> Examples:
        """Examples of documents of a corpus with their targets as stored."""
        assert y is not None
        assert labelled is not None
        y = y.reshape(len(y), -1)
        y[~labelled] = self.levels_[0] if self._has_levels() else self._mean
        return self._examples(documents, y, np.ones(len(y)), labelled)

    def _set_scale(self, parts: Parts, n_targets: int) -> None:
        """The response, and the mean and scale by which its targets are standardised."""
        self._check_gamma()
        largest = max(float(np.abs(y).max()) for y, _ in parts())
        if not largest <= _LARGEST_TARGET:
            raise ValueError(f"targets y must be at most {_LARGEST_TARGET:g} in size, found {largest:g}")
        self._n_targets, self._fitted_with = n_targets, self.response
        self.__dict__.pop("levels_", None)
        self._mean, self._scale = np.zeros(n_targets), np.ones(n_targets)
        if not isinstance(self.response, str):
            if isinstance(self.response, type) or not hasattr(self.response, "curvature"):
                raise ValueError(
                    f"response must be one of {_NAMES} or an object that inherits from Response, got {self.response!r}"
                )
            self._fitted_response: Response = self.response
        elif self.response == "gaussian":
            self._mean, self._scale = _mean_and_scale(parts)
            self._fitted_response = SquaredError(self.gamma)
        elif self.response == "poisson":
            self._fitted_response = Poisson()
        elif self.response == "ordinal":
            if n_targets != 1:
                raise ValueError(f"an ordinal response has one target, but y has {n_targets}")
            self.levels_ = np.unique(np.concatenate([np.unique(y) for y, _ in parts()]))
            if not 2 <= len(self.levels_) <= 100:
                raise ValueError(f"an ordinal response needs 2 to 100 levels, but y has {len(self.levels_)}: use 'gaussian'")
            self._fitted_response = Ordinal(len(self.levels_), self.gamma)
        else:
            raise ValueError(f"response must be one of {_NAMES} or an object that inherits from Response, got {self.response!r}")

    def _examples(self, documents: Documents, y: np.ndarray, weights: np.ndarray, labelled: np.ndarray | None = None) -> Examples:
        """Targets as the response takes them."""
        response = self._response()
        labelled = None if labelled is None or labelled.all() else labelled
        if isinstance(response, Ordinal) and self._has_levels():
            numbers = np.minimum(np.searchsorted(self.levels_, y), len(self.levels_) - 1)
            if (wrong := self.levels_[numbers] != y).any():
                place = int(np.argmax(wrong))
                raise ValueError(f"y[{place}] is {y[place, 0]:g}, which is not one of the levels {self.levels_.tolist()}")
            return Examples(documents, response.checked(numbers), weights, labelled)
        if self._is_gaussian():
            y = ((y - self._mean) / _divisor(self._scale)).astype(documents.counts.dtype)
        return Examples(documents, response.checked(y), weights, labelled)

    def _possible(self, y: np.ndarray) -> np.ndarray:
        if not self._has_levels():
            return super()._possible(y)
        return np.isin(y.reshape(len(y)), self.levels_)

    def _as_examples(self, documents: Documents, y: np.ndarray) -> Examples:
        y = np.asarray(y, np.float64).reshape(len(y), -1)
        if y.shape[1] != self._n_targets:
            raise ValueError(f"validation has {y.shape[1]} outputs, but the model has {self._n_targets}")
        return self._examples(documents, y, np.ones(len(y)))

    def _predicted(self, scores: np.ndarray) -> np.ndarray:
        """Predictions in units of y."""
        response = self._response()
        if isinstance(response, Ordinal) and self._has_levels():
            expected: np.ndarray = response.probabilities(scores) @ self.levels_[:, None].astype(scores.dtype)
            return expected
        # In double: targets far from zero leave few digits of float32 for their differences.
        predicted = response.predict(scores)
        scaled: np.ndarray = (predicted.astype(np.float64) * self._scale + self._mean).astype(scores.dtype)
        return scaled

    def _set_spread(self, theta: np.ndarray, examples: Examples, kept: float) -> None:
        y = self.levels_[examples.y] if self._has_levels() else examples.y.astype(np.float64) * self._scale + self._mean
        squares = (y - self._predicted(self._scores_of(theta))) ** 2
        variance = np.average(squares, axis=0, weights=examples.weights)
        self.noise_std_ = np.sqrt(variance if kept == 0 else kept * self.noise_std_**2 + (1 - kept) * variance)

    def _fitted_U(self) -> np.ndarray:
        if not self._is_gaussian():
            return self.coef_
        U: np.ndarray = (self.coef_ - self._mean[:, None]) / _divisor(self._scale)[:, None]
        return U

    def _set_parameters(self, phi: np.ndarray, U: np.ndarray) -> None:
        # theta sums to one, so the targets' mean goes into the coefficients.
        self.components_ = phi.T
        self.coef_ = U.astype(np.float64) * self._scale[:, None] + self._mean[:, None] if self._is_gaussian() else U

    def _has_levels(self) -> bool:
        return hasattr(self, "levels_")

    def _is_gaussian(self) -> bool:
        return isinstance(self._fitted_with, str) and self._fitted_with == "gaussian"

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        # As for naive Bayes: scikit-learn's check of the score uses a few real-valued features, not word counts.
        tags.regressor_tags.poor_score = True
        return tags


def _parts(y: np.ndarray, weights: np.ndarray) -> Parts:
    return lambda: ((y[numbers], weights[numbers]) for numbers in chunks(len(y), PART_DOCS))


def _mean_and_scale(parts: Parts) -> tuple[np.ndarray, np.ndarray]:
    """Of each output."""
    total = sum(weights.sum() for _, weights in parts())
    mean: np.ndarray = sum((y * weights[:, None]).sum(axis=0) for y, weights in parts()) / total
    size = np.max([np.abs(y - mean).max(axis=0) for y, _ in parts()], axis=0)
    # Rounding of the mean of a constant target is no spread.
    size[size <= 1e-12 * np.abs(mean)] = 0
    if (small := (size > 0) & (size < 1 / _LARGEST_TARGET)).any():
        raise ValueError(
            f"targets y differ from their mean by at most {size[small][0]:g}, too little to be told apart: rescale them"
        )
    squares, sign = np.zeros(len(mean)), np.zeros(len(mean))
    for y, weights in parts():
        relative = (y - mean) / _divisor(size)
        squares += (relative**2 * weights[:, None]).sum(axis=0)
        # The sign, that of the first target clearly off the mean, makes fits of y and -y mirror images, the random start
        # of U included.
        first = relative[np.argmax(np.abs(relative) > 0.5, axis=0), np.arange(len(mean))]
        sign = np.where((sign == 0) & (np.abs(first) > 0.5), np.sign(first), sign)
    return mean, np.where(sign < 0, -1, 1) * size * np.sqrt(squares / total)


def _level_names(levels: np.ndarray) -> list[str]:
    """Levels in few digits, or in all where few do not tell them apart."""
    short = [f"{level:g}" for level in levels]
    return short if len(set(short)) == len(short) else [repr(float(level)) for level in levels]


def _divisor(scale: np.ndarray) -> np.ndarray:
    """A constant target has the scale 0, and is divided by 1."""
    return np.where(scale == 0, 1.0, scale)
