"""scikit-learn estimators: where the users' words (components_, coef_) and the paper's symbols (Phi, U) meet."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d

from mirrorlda import _core
from mirrorlda.corpus import Documents
from mirrorlda.fitting import TopicEstimator, documented, unchanged_on_failure
from mirrorlda.responses import Response, Softmax, SquaredError, Words
from mirrorlda.training import Examples, Schedule, evaluate

# Beyond it, and closer to each other than its inverse, targets leave the range of float32.
_LARGEST_TARGET = 1e30


@documented
class TopicModel(TopicEstimator):
    """Unsupervised topics (BP-LDA): mirror descent on the documents' own likelihood.

    Parameters
    ----------
    {common}

    Attributes
    ----------
    components_ : ndarray of shape (n_topics, n_words)
        Topics as rows, each a distribution over words.
    topic_shares_ : ndarray of shape (n_topics,)
        Mean topic proportions of (at most 20,000) training documents.
    history_ : dict of lists
        Loss and score of each epoch.

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
        alpha: Any = 1.001,
        beta: float = 1.0001,
        n_layers: int = 10,
        step_size: str | float = "l1",
        n_epochs: int | str = "auto",
        batch_size: int | tuple[int, int] | str = "auto",
        learning_rate: float = 0.2,
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
        self.learning_rate_decay = learning_rate_decay
        self.average_from = average_from
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn topics from counts X of shape (n_docs, n_words); y is ignored."""
        with unchanged_on_failure(self):
            documents, _, weights = self._inputs(X, None, sample_weight, reset=True)
            self._fit(documents, documents.totals(), weights, n_outputs=0)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Go on learning from a part of a stream; see the guide for its rates."""
        with unchanged_on_failure(self):
            documents, _, weights = self._inputs(X, None, sample_weight, reset=not hasattr(self, "components_"))
            self._partial_fit(documents, documents.totals(), weights, n_outputs=0)
        return self

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean log-likelihood of a word, given the topics and its document's inferred proportions."""
        check_is_fitted(self)
        documents = self._documents(X)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        totals = documents.totals()
        if not (totals * weights).any():
            raise ValueError("X holds no words, so there is no likelihood of a word")
        phi = self._phi(documents.counts.dtype)
        U = np.zeros((0, phi.shape[1]), phi.dtype)
        examples = Examples(documents, totals, weights)
        return evaluate(phi, U, examples, Words(), self._layers(phi), effective_n_jobs(self.n_jobs))[1]

    def _response(self) -> Response:
        return Words()

    def _initial_U(self, n_outputs: int, rng: np.random.Generator) -> np.ndarray:
        return np.zeros((0, self.n_topics))

    def _fitted_U(self) -> np.ndarray:
        return np.zeros((0, len(self.components_)))

    def _set_parameters(self, phi: np.ndarray, U: np.ndarray) -> None:
        self.components_ = phi.T

    def _curvature(self, n_outputs: int) -> float:
        return 1.0


class _SupervisedTopicEstimator(TopicEstimator):
    """A response on top of the topics."""

    gamma: float
    response: Response | None

    def __init__(
        self,
        n_topics: int = 20,
        *,
        alpha: Any = 1.001,
        beta: float = 1.0001,
        gamma: float = 1.0,
        n_layers: int = 10,
        step_size: str | float = "l1",
        n_epochs: int | str = "auto",
        batch_size: int | tuple[int, int] | str = "auto",
        learning_rate: float = 0.02,
        coef_learning_rate: float = 0.5,
        response: Response | None = None,
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
        self.n_epochs = n_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.coef_learning_rate = coef_learning_rate
        self.response = response
        self.learning_rate_decay = learning_rate_decay
        self.average_from = average_from
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _schedule(self, n_docs: int, n_outputs: int) -> Schedule:
        if not (np.isfinite(self.gamma) and self.gamma > 0):
            raise ValueError(f"gamma must be positive and finite, got {self.gamma!r}")
        if isinstance(self.response, str | type):
            raise ValueError(f"response must be an object like mirrorlda.responses.Response, got {self.response!r}")
        return super()._schedule(n_docs, n_outputs)

    def _scores(self, X: Any) -> np.ndarray:
        """U theta, shape (n_docs, n_outputs)."""
        check_is_fitted(self)
        return self._scores_of(self._theta(self._documents(X)))

    def _scores_of(self, theta: np.ndarray) -> np.ndarray:
        return _core.scores(theta, np.ascontiguousarray(self._fitted_U(), theta.dtype), effective_n_jobs(self.n_jobs))


@documented
class TopicRegressor(RegressorMixin, _SupervisedTopicEstimator):  # type: ignore[misc]
    """Topics that predict numbers (BP-sLDA with a Gaussian response).

    Parameters
    ----------
    {common}
    gamma : float, default=1.0
        Inverse variance of the response, in units of the standardised targets.
    coef_learning_rate : float, default=0.5
        Learning rate of the coefficients, relative to the curvature of the loss.
    response : Response, default=None
        A response of your own in place of the Gaussian one (see `mirrorlda.responses`); targets are then taken as they are.

    Attributes
    ----------
    components_ : ndarray of shape (n_topics, n_words)
        Topics as rows, each a distribution over words.
    coef_ : ndarray of shape (n_outputs, n_topics)
        What each topic predicts; a prediction is their mean under the topic proportions.
    noise_std_ : ndarray of shape (n_outputs,)
        Standard deviation of the residuals of (at most 20,000) training documents, smaller than that of new ones.
    topic_shares_ : ndarray of shape (n_topics,)
        Mean topic proportions of (at most 20,000) training documents.
    history_ : dict of lists
        Loss (of standardised targets) and R2 of each epoch.

    Examples
    --------
    >>> from mirrorlda import TopicRegressor
    >>> from mirrorlda.datasets import make_topics
    >>> data = make_topics(n_docs=600, n_words=60, n_topics=3, n_outputs=1, random_state=0)
    >>> model = TopicRegressor(n_topics=3, random_state=0).fit(data.X, data.y)
    >>> model.score(data.X, data.y) > 0.6
    True
    """

    noise_std_: np.ndarray
    _one_dimensional: bool
    _mean: np.ndarray
    _scale: np.ndarray

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn topics and coefficients from counts X (n_docs, n_words) and targets y (n_docs,) or (n_docs, n_outputs)."""
        with unchanged_on_failure(self):
            documents, y, weights = self._targets(X, y, sample_weight, reset=True)
            self._mean, self._scale = self._mean_and_scale(y, weights)
            self._fit(documents, self._standardised(y, documents), weights, y.shape[1])
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Go on learning from a part of a stream; what comes first fixes the targets' scale. See the guide for its rates."""
        with unchanged_on_failure(self):
            first = not hasattr(self, "components_")
            documents, y, weights = self._targets(X, y, sample_weight, reset=first)
            if first:
                self._mean, scale = self._mean_and_scale(y, weights)
                # What comes later may vary where the first part does not.
                self._scale = _divisor(scale)
            elif y.shape[1] != len(self._mean):
                raise ValueError(f"y has {y.shape[1]} outputs, but the model has {len(self._mean)}")
            self._partial_fit(documents, self._standardised(y, documents), weights, y.shape[1])
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predicted targets; with `return_std` also their standard deviation, the same `noise_std_` for all documents."""
        predicted = self._in_units_of_y(self._response().predict(self._scores(X)))
        std = np.broadcast_to(self.noise_std_.astype(predicted.dtype), predicted.shape)
        if self._one_dimensional:
            predicted, std = predicted[:, 0], std[:, 0]
        return (predicted, std.copy()) if return_std else predicted

    def _targets(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> tuple[Documents, np.ndarray, np.ndarray]:
        documents, y, weights = self._inputs(X, y, sample_weight, reset=reset, multi_output=True, y_numeric=True)
        if reset:
            self._one_dimensional = y.ndim == 1
        y = np.asarray(y, np.float64).reshape(len(y), -1)
        if not np.abs(y).max() <= _LARGEST_TARGET:
            raise ValueError(f"targets y must be at most {_LARGEST_TARGET:g} in size, found {np.abs(y).max():g}")
        return documents, y, weights

    def _standardised(self, y: np.ndarray, documents: Documents) -> np.ndarray:
        standardised: np.ndarray = ((y - self._mean) / _divisor(self._scale)).astype(documents.counts.dtype)
        return standardised

    def _in_units_of_y(self, predicted: np.ndarray) -> np.ndarray:
        # In double: targets far from zero leave few digits of float32 for their differences.
        scaled: np.ndarray = (predicted.astype(np.float64) * self._scale + self._mean).astype(predicted.dtype)
        return scaled

    def _set_spread(self, theta: np.ndarray, examples: Examples, kept: float) -> None:
        predicted = self._response().predict(self._scores_of(theta))
        squares = (examples.y.astype(np.float64) - predicted) ** 2
        variance = np.average(squares, axis=0, weights=examples.weights) * self._scale**2
        self.noise_std_ = np.sqrt(variance if kept == 0 else kept * self.noise_std_**2 + (1 - kept) * variance)

    def _mean_and_scale(self, y: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of each output; a response of the user's own has its own scale."""
        if self.response is not None:
            return np.zeros(y.shape[1]), np.ones(y.shape[1])
        mean = np.average(y, axis=0, weights=weights)
        size = np.abs(y - mean).max(axis=0)
        # Rounding of the mean of a constant target is no spread.
        size[size <= 1e-12 * np.abs(mean)] = 0
        if (small := (size > 0) & (size < 1 / _LARGEST_TARGET)).any():
            raise ValueError(
                f"targets y differ from their mean by at most {size[small][0]:g}, too little to be told apart: rescale them"
            )
        relative = (y - mean) / _divisor(size)
        scale = size * np.sqrt(np.average(relative**2, axis=0, weights=weights))
        # The sign, that of the first target clearly off the mean, makes fits of y and -y mirror images, the random start
        # of U included.
        first = np.argmax(np.abs(relative) > 0.5, axis=0)
        return mean, np.where(relative[first, np.arange(y.shape[1])] < 0, -scale, scale)

    def _response(self) -> Response:
        return SquaredError(self.gamma) if self.response is None else self.response

    def _initial_U(self, n_outputs: int, rng: np.random.Generator) -> np.ndarray:
        return 0.1 * rng.standard_normal((n_outputs, self.n_topics))

    def _fitted_U(self) -> np.ndarray:
        U: np.ndarray = (self.coef_ - self._mean[:, None]) / _divisor(self._scale)[:, None]
        return U

    def _set_parameters(self, phi: np.ndarray, U: np.ndarray) -> None:
        # theta sums to one, so the targets' mean goes into the coefficients.
        self.components_ = phi.T
        self.coef_ = U.astype(np.float64) * self._scale[:, None] + self._mean[:, None]

    def _curvature(self, n_outputs: int) -> float:
        return self.gamma if self.response is None else 1.0

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        # As for naive Bayes: scikit-learn's check of the score uses a few real-valued features, not word counts.
        tags.regressor_tags.poor_score = True
        return tags


def _divisor(scale: np.ndarray) -> np.ndarray:
    """A constant target has the scale 0, and is divided by 1."""
    return np.where(scale == 0, 1.0, scale)


def _has_softmax(classifier: TopicClassifier) -> bool:
    """A response of the user's own need not have probabilities."""
    return classifier.response is None


@documented
class TopicClassifier(ClassifierMixin, _SupervisedTopicEstimator):  # type: ignore[misc]
    """Topics that predict classes (BP-sLDA with a softmax response).

    Parameters
    ----------
    {common}
    gamma : float, default=1.0
        Factor of the scores before the softmax.
    coef_learning_rate : float, default=0.5
        Learning rate of the coefficients, relative to the curvature of the loss.
    response : Response, default=None
        A response of your own in place of the softmax (see `mirrorlda.responses`); y holds class numbers.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    components_ : ndarray of shape (n_topics, n_words)
        Topics as rows, each a distribution over words.
    coef_ : ndarray of shape (n_classes, n_topics)
        How much each topic speaks for each class.
    topic_shares_ : ndarray of shape (n_topics,)
        Mean topic proportions of (at most 20,000) training documents.
    history_ : dict of lists
        Loss and accuracy of each epoch.

    Examples
    --------
    >>> from mirrorlda import TopicClassifier
    >>> from mirrorlda.datasets import make_topics
    >>> data = make_topics(n_docs=600, n_words=60, n_topics=3, n_classes=2, random_state=0)
    >>> model = TopicClassifier(n_topics=3, random_state=0).fit(data.X, data.y)
    >>> model.predict(data.X[:3]).shape, model.predict_proba(data.X[:3]).shape
    ((3,), (3, 2))
    """

    classes_: np.ndarray

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn topics and coefficients from counts X (n_docs, n_words) and labels y (n_docs,) of any type."""
        with unchanged_on_failure(self):
            documents, y, weights = self._inputs(X, y, sample_weight, reset=True)
            check_classification_targets(y)
            classes = np.unique(column_or_1d(y, warn=True))
            if self.warm_start and hasattr(self, "classes_") and not np.array_equal(classes, self.classes_):
                raise ValueError(
                    f"warm_start needs the classes of the last fit, {self.classes_.tolist()}; got {classes.tolist()}"
                )
            self._set_classes(classes)
            self._fit(documents, self._class_numbers(y), weights, len(classes))
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go on learning from a part of a stream.

        `classes` names all classes that will come; without it they are those of the first part. See the guide for the rates.
        """
        with unchanged_on_failure(self):
            first = not hasattr(self, "components_")
            documents, y, weights = self._inputs(X, y, sample_weight, reset=first)
            check_classification_targets(y)
            if first:
                self._set_classes(np.unique(y if classes is None else classes))
            elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
                raise ValueError(f"classes are {np.unique(classes).tolist()}, but the model has {self.classes_.tolist()}")
            self._partial_fit(documents, self._class_numbers(y), weights, len(self.classes_))
        return self

    @available_if(_has_softmax)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> np.ndarray:
        """Log odds of the second class for two classes, otherwise a score for each class."""
        scores = self.gamma * self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    @available_if(_has_softmax)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class, shape (n_docs, n_classes)."""
        probabilities: np.ndarray = np.exp(self.predict_log_proba(X))
        return probabilities

    @available_if(_has_softmax)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of `predict_proba`."""
        return Softmax(self.gamma).log_probabilities(self._scores(X))

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each document."""
        numbers = self._response().predict(self._scores(X))
        labels: np.ndarray = self.classes_[numbers]
        return labels

    def _set_classes(self, classes: np.ndarray) -> None:
        if len(classes) < 2:
            raise ValueError(f"y must have at least two classes, got one class: {classes.tolist()}")
        self.classes_ = classes

    def _class_numbers(self, y: np.ndarray) -> np.ndarray:
        y = column_or_1d(y)
        numbers = np.minimum(np.searchsorted(self.classes_, y), len(self.classes_) - 1)
        unknown = np.flatnonzero(self.classes_[numbers] != y)
        if len(unknown):
            label = y[unknown[:1]].tolist()[0]
            raise ValueError(f"y[{unknown[0]}] is {label!r}, which is not one of the classes {self.classes_.tolist()}")
        return numbers

    def _response(self) -> Response:
        return Softmax(self.gamma) if self.response is None else self.response

    def _initial_U(self, n_outputs: int, rng: np.random.Generator) -> np.ndarray:
        return rng.standard_normal((n_outputs, self.n_topics))

    def _fitted_U(self) -> np.ndarray:
        return self.coef_

    def _set_parameters(self, phi: np.ndarray, U: np.ndarray) -> None:
        self.components_ = phi.T
        self.coef_ = U

    def _curvature(self, n_outputs: int) -> float:
        # Of -ln softmax at equal probabilities.
        return self.gamma**2 * (1 - 1 / n_outputs) / n_outputs if self.response is None else 1.0

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # As for naive Bayes: scikit-learn's check of the score uses a few real-valued features, not word counts.
        tags.classifier_tags.poor_score = True
        return tags
