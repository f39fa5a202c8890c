"""Topics that predict classes and labels."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d

from mirrorlda.data.corpus.corpus import Corpus
from mirrorlda.data.documents import Documents
from mirrorlda.data.parts import PART_DOCS, chunks
from mirrorlda.estimators.base import LARGEST_WEIGHT, check_cluster, unchanged_on_failure
from mirrorlda.estimators.docstrings import COMMON_PARAMETERS, SUPERVISED_PARAMETERS, documented
from mirrorlda.estimators.supervised import SupervisedTopicEstimator
from mirrorlda.method.responses import Response, Sigmoid, Softmax
from mirrorlda.method.targets import array_of, without_missing
from mirrorlda.training.sources import Examples, StoredExamples, exact_sum

# More values of a target than this are no classes.
_MOST_CLASSES = 100_000


def _has_probabilities(classifier: TopicClassifier) -> bool:
    """A response of the user's own need not have them."""
    return classifier.response is None


@documented(common=COMMON_PARAMETERS, supervised=SUPERVISED_PARAMETERS)
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
        Topics as rows, each a distribution over words.
    coef_ : ndarray of shape (n_classes, n_topics)
        How much each topic speaks for each class.
    word_weights_ : ndarray of shape (n_words,)
        How much each word counts.
    alpha_ : ndarray of shape (n_topics,)
        The prior's parameter, as given or estimated.
    topic_shares_ : ndarray of shape (n_topics,)
        Mean topic proportions of (at most 20,000) training documents.
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

    classes_: np.ndarray
    _is_multilabel: bool

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
        class_weight: Any = None,
        response: Response | None = None,
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
        self.class_weight = class_weight
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
        """Learn topics and coefficients from counts X (n_docs, n_words) and labels y.

        X may be a `Corpus`, which holds its targets. y is (n_docs,) of any type, or (n_docs, n_labels) of 0 and 1 for several
        labels a document. Documents whose y is None or NaN, or -1 among at least two other whole numbers, are learned from as
        well: they take the model's own prediction. `checkpoint` is a `Checkpoint` or a path for one. Ctrl-C ends training after
        the batch, with a warning and a model that is what was learned so far.

        `validation`, a `Corpus` or a pair of counts and targets, is judged after every epoch (at most 65,536 documents) and not
        learned from: `history_` has its loss and score. Documents with a target that no training document has are left out.
        `cluster`, a `mirrorlda.distributed.Cluster`, trains on a corpus with all its machines.
        """
        check_cluster(cluster, X)
        with unchanged_on_failure(self):
            if isinstance(X, Corpus):
                classes = self._stored_classes(X, y, sample_weight)
            else:
                examples, labelled, classes = self._labels(X, y, sample_weight, reset=True)
            if self.warm_start and hasattr(self, "classes_") and not np.array_equal(classes, self.classes_):
                raise ValueError(
                    f"warm_start needs the classes of the last fit, {self.classes_.tolist()}; got {classes.tolist()}"
                )
            self._set_classes(classes)
            source = self._stored(X) if isinstance(X, Corpus) else self._numbered(examples, labelled, self.class_weight)
            self._fit_labelled(source, self._response(), checkpoint, validation, cluster)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go on learning from a part of a stream.

        `classes` names all classes that will come; without it they are those of the first part. See the guide for the rates.
        """
        if self.class_weight == "balanced":
            raise ValueError("class_weight='balanced' needs all documents: use fit, or give partial_fit a dict of weights")
        with unchanged_on_failure(self):
            first = not hasattr(self, "components_")
            examples, labelled, present = self._labels(X, y, sample_weight, reset=first, may_miss=False)
            if not labelled.all():
                raise ValueError(f"y[{np.argmin(labelled)}] is missing: partial_fit needs a label for every document")
            if first:
                self._set_classes(present if classes is None else np.unique(classes))
            elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
                raise ValueError(f"classes are {np.unique(classes).tolist()}, but the model has {self.classes_.tolist()}")
            self._partial_fit(self._numbered(examples, labelled, self.class_weight), self._response())
        return self

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> np.ndarray:
        """Log odds of the second class for two classes, otherwise a score for each class or label."""
        scores = self.gamma * self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 and not self._is_multilabel else scores

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class or label, shape (n_docs, n_classes)."""
        return self._probabilities(self._scores(X))

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of `predict_proba`."""
        scores = self._scores(X)
        if self._is_multilabel:
            logarithms: np.ndarray = -np.logaddexp(0, -self.gamma * scores)
            return logarithms
        return Softmax(self.gamma).log_probabilities(scores)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each document; of several labels, 1 where one is more probable than not."""
        return self._predicted(self._scores(X))

    def _probabilities(self, scores: np.ndarray) -> np.ndarray:
        response = self._response()
        if isinstance(response, Sigmoid):
            return response.probabilities(scores)
        probabilities: np.ndarray = np.exp(Softmax(self.gamma).log_probabilities(scores))
        return probabilities

    def _predicted(self, scores: np.ndarray) -> np.ndarray:
        predicted = self._response().predict(scores)
        labels: np.ndarray = predicted if self._is_multilabel else self.classes_[predicted]
        return labels

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy of the predictions, as scikit-learn has it; of a `Corpus`, for its documents that have a target."""
        return float(super().score(*self._with_targets(X, y, sample_weight)))

    def _columns(self, theta: np.ndarray) -> dict[str, np.ndarray]:
        scores = self._scores_of(theta)
        predicted = self._predicted(scores)
        columns = (
            {f"prediction_{c}": predicted[:, i] for i, c in enumerate(self.classes_)}
            if self._is_multilabel
            else {"prediction": predicted}
        )
        if self.response is None:
            columns |= {f"probability_{c}": p for c, p in zip(self.classes_, self._probabilities(scores).T, strict=True)}
        return columns

    def _aligned(self, y: np.ndarray, corpus: Corpus) -> np.ndarray:
        """Targets of a corpus in the order of the model's labels; classes as they are."""
        assert corpus.target is not None
        if self._is_multilabel != (y.ndim == 2):
            fitted = "several labels" if self._is_multilabel else "one class"
            raise ValueError(f"the model was fitted with {fitted} a document, but {corpus!r} holds {corpus.target.kind}")
        if not self._is_multilabel:
            if (y.dtype.kind in "US") == (self.classes_.dtype.kind in "USO"):
                return y
            # CSV has "1" and "True" where JSON lines and Parquet have 1 and true.
            places = {_written(label): place for place, label in enumerate(self.classes_.tolist())}
            numbers, which = np.unique(y, return_inverse=True)
            if unknown := [value for value in numbers.tolist() if _written(value) not in places]:
                raise ValueError(
                    f"the classes of the model are {self.classes_[:20].tolist()}, those of the corpus {numbers[:20].tolist()}: "
                    f"{unknown[0]!r} is not one of the model's"
                )
            return self.classes_[[places[_written(value)] for value in numbers.tolist()]][which]
        places = {label: place for place, label in enumerate(self.classes_.tolist())}
        if unknown := [label for label in corpus.labels if label not in places]:
            raise ValueError(f"the corpus has the label {unknown[0]!r}, which is not one of {self.classes_.tolist()[:20]}")
        aligned = np.zeros((len(y), len(places)), y.dtype)
        aligned[:, [places[label] for label in corpus.labels]] = y
        return aligned

    def _labels(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool, may_miss: bool = True
    ) -> tuple[Examples, np.ndarray, np.ndarray]:
        """Documents with their labels as given, which of them have one, and the classes among those."""
        if y is not None:
            y = array_of(y)
        y, labelled = without_missing(y)
        if labelled is None and may_miss:
            y, labelled = _without_minus_one(y)
        is_wide = y is not None and y.ndim == 2 and y.shape[1] > 1
        checks = {"multi_output": True} if is_wide else {}
        documents, y, weights, labelled = self._inputs(X, y, sample_weight, labelled, reset=reset, **checks)
        check_classification_targets(y)
        is_multilabel = is_wide and type_of_target(y) == "multilabel-indicator"
        if not reset and is_multilabel != self._is_multilabel:
            fitted = "several labels" if self._is_multilabel else "one class"
            raise ValueError(f"y has shape {y.shape}, but the model was fitted with {fitted} a document")
        self._is_multilabel = is_multilabel
        if is_multilabel:
            return Examples(documents, Sigmoid().checked(y).astype(np.int8), weights), labelled, np.arange(y.shape[1])
        y = column_or_1d(y, warn=True)
        return Examples(documents, y, weights), labelled, np.unique(y[labelled])

    def _set_classes(self, classes: np.ndarray) -> None:
        self._check_gamma()
        if isinstance(self.response, str | type):
            raise ValueError(f"response must be an object like mirrorlda.method.responses.Response, got {self.response!r}")
        if self.response is not None and not hasattr(self.response, "curvature"):
            raise ValueError(f"response must inherit from mirrorlda.method.responses.Response, got {self.response!r}")
        if len(classes) < 2 and not self._is_multilabel:
            raise ValueError(f"y must have at least two classes, got one class: {classes.tolist()}")
        self.classes_ = classes
        own = Sigmoid(self.gamma) if self._is_multilabel else Softmax(self.gamma, len(classes))
        self._fitted_response = own if self.response is None else self.response

    def _stored_classes(self, corpus: Corpus, y: Any, sample_weight: Any) -> np.ndarray:
        """The classes among the targets of a corpus, or its labels."""
        self._open(corpus, y, sample_weight)
        if corpus.target is None:
            raise ValueError(f"TopicClassifier needs targets, but {corpus!r} holds none")
        known = corpus.select(labelled=True)
        if not known.n_docs:
            raise ValueError(f"no document of {corpus!r} has a target")
        self._is_multilabel = corpus.target.kind == "labels" or len(corpus.target.names) > 1
        if self._is_multilabel:
            for part in _stored_targets(known):
                Sigmoid().checked(part)
            return np.array(corpus.labels)
        classes: np.ndarray = np.array([])
        for number, part in enumerate(_stored_targets(known)):
            classes = np.unique(part) if number == 0 else np.unique(np.concatenate([classes, np.unique(part)]))
            if len(classes) > _MOST_CLASSES:
                raise ValueError(f"the target {corpus.target.names[0]!r} has more than {_MOST_CLASSES} values: is it a class?")
        # Each of them more than once: of values that are all different, scikit-learn warns.
        check_classification_targets(np.repeat(classes, 3))
        return classes

    def _stored(self, corpus: Corpus) -> StoredExamples:
        known, class_weight = corpus.select(labelled=True), self.class_weight
        if isinstance(class_weight, str) and class_weight == "balanced":
            class_weight = self._balanced(known)
        if isinstance(class_weight, dict) and not self._is_multilabel:
            # All classes at once: a few documents may have none of those that are named.
            weights = _weights_of(class_weight, self.classes_)
            class_weight = dict(zip(self.classes_.tolist(), weights.tolist(), strict=True))
        labelled = Fraction(known.n_docs)
        if class_weight is not None:
            labelled, largest = Fraction(0), 0.0
            for y in _stored_targets(known):
                weights = _weights_of(class_weight, y)
                self._check_weights(weights)
                largest = max(largest, float(weights.max()))
                labelled += exact_sum(weights)
            self._check_weights(weights, largest)
        total = labelled + (corpus.n_docs - known.n_docs)
        return StoredExamples(corpus, partial(self._encoded, class_weight), total, self._is_logarithmic())

    def _balanced(self, known: Corpus) -> Any:
        """Weights by which all classes, or both values of every label, weigh the same."""
        if self._is_multilabel:
            ones = sum(y.sum(axis=0) for y in _stored_targets(known))
            return [
                {
                    value: known.n_docs / (2 * n if 0 < n < known.n_docs else n or 1)
                    for value, n in ((0, known.n_docs - k), (1, k))
                }
                for k in ones.tolist()
            ]
        n_each = np.zeros(len(self.classes_), np.int64)
        for y in _stored_targets(known):
            n_each += np.bincount(np.searchsorted(self.classes_, y), minlength=len(n_each))
        return dict(zip(self.classes_.tolist(), (known.n_docs / (len(n_each) * n_each)).tolist(), strict=True))

    def _encoded(self, class_weight: Any, documents: Documents, y: np.ndarray | None, labelled: np.ndarray | None) -> Examples:
        """Examples of documents of a corpus with their targets as stored."""
        assert y is not None
        assert labelled is not None
        if self._is_multilabel:
            y = y.astype(np.int8, copy=False)
        else:
            y[~labelled] = self.classes_[0]
        return self._numbered(Examples(documents, y, np.ones(len(y))), labelled, class_weight, whole=False)

    def _check_weights(self, weights: np.ndarray, largest: float = 1.0) -> None:
        """Of documents; `largest` is that of all documents, where it is known."""
        if not (np.isfinite(weights).all() and (weights >= 0).all() and 1 / LARGEST_WEIGHT <= largest <= LARGEST_WEIGHT):
            between = f"between {1 / LARGEST_WEIGHT:g} and {LARGEST_WEIGHT:g}"
            raise ValueError(
                f"class_weight must be finite, not negative, and the largest weight of a document {between}; "
                f"got {self.class_weight!r}"
            )

    def _numbered(self, examples: Examples, labelled: np.ndarray, class_weight: Any, *, whole: bool = True) -> Examples:
        """Class numbers in place of labels, and the classes' weights in those of the documents.

        Documents that are not the `whole` of a fit may all have the weight zero.
        """
        y, weights = examples.y, examples.weights
        known = None if labelled.all() else labelled
        if class_weight is not None and labelled.any():
            weights = weights.copy()
            weights[labelled] *= _weights_of(class_weight, y[labelled])
            self._check_weights(weights, float(weights[labelled].max()) if whole else 1.0)
        if self._is_multilabel:
            if y.shape[1] != len(self.classes_):
                raise ValueError(f"y has {y.shape[1]} labels, but the model has {len(self.classes_)}")
            return Examples(examples.documents, y, weights, known)
        numbers = np.minimum(np.searchsorted(self.classes_, y), len(self.classes_) - 1)
        unknown = np.flatnonzero(self.classes_[numbers] != y)
        if len(unknown):
            label = y[unknown[:1]].tolist()[0]
            raise ValueError(f"y[{unknown[0]}] is {label!r}, which is not one of the classes {self.classes_.tolist()}")
        return Examples(examples.documents, numbers, weights, known)

    def _possible(self, y: np.ndarray) -> np.ndarray:
        return np.ones(len(y), bool) if self._is_multilabel else np.isin(y, self.classes_)

    def _as_examples(self, documents: Documents, y: np.ndarray) -> Examples:
        y = Sigmoid().checked(y).astype(np.int8) if self._is_multilabel else column_or_1d(y)
        return self._numbered(Examples(documents, y, np.ones(len(y))), np.ones(len(y), bool), None)

    def _guided_topic(self, key: Any, U: np.ndarray) -> int:
        """Of a class, the topic that speaks for it most at the start."""
        found = np.flatnonzero(self.classes_ == key)
        if not len(found):
            raise ValueError(f"seed_words names the class {key!r}, which is not one of {self.classes_.tolist()}")
        return int(np.argmax(U[found[0]]))

    def _fitted_U(self) -> np.ndarray:
        return self.coef_

    def _set_parameters(self, phi: np.ndarray, U: np.ndarray) -> None:
        self.components_ = phi.T
        self.coef_ = U

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        # As for naive Bayes: scikit-learn's check of the score uses a few real-valued features, not word counts.
        tags.classifier_tags.poor_score = True
        return tags


def _stored_targets(known: Corpus) -> Iterator[np.ndarray]:
    """All targets of documents that have one, some at a time."""
    return (known.targets(numbers)[0] for numbers in chunks(known.n_docs, PART_DOCS))


def _written(value: Any) -> str:
    """A class as a text file has it."""
    return (
        f"{value:g}"
        if isinstance(value, float)
        else str(value).lower()
        if isinstance(value, bool)
        else str(value).strip().lower()
    )


def _without_minus_one(y: Any) -> tuple[Any, np.ndarray | None]:
    """scikit-learn's convention for documents without a label, where it cannot be one of two classes."""
    array = np.asarray(y)
    if array.ndim != 1 or array.dtype.kind != "i" or len(np.unique(array[array != -1])) < 2 or not (array == -1).any():
        return y, None
    labelled = array != -1
    warnings.warn(
        f"y is -1 for {(~labelled).sum()} documents, which are taken as unlabelled; name the class otherwise if it is one",
        stacklevel=4,
    )
    return np.where(labelled, array, array[np.argmax(labelled)]), labelled


def _weights_of(class_weight: Any, y: np.ndarray) -> np.ndarray:
    """Weights of documents by their classes, as scikit-learn has them, but for classes that are numbers in quotes."""
    if not (isinstance(class_weight, dict) and y.ndim == 1):
        weights: np.ndarray = compute_sample_weight(class_weight, y)
        return weights
    classes, codes = np.unique(y, return_inverse=True)
    unweighted = [name for name in classes.tolist() if name not in class_weight]
    if unweighted and len(classes) - len(unweighted) != len(class_weight):
        raise ValueError(f"The classes, {unweighted}, are not in class_weight")
    of_each: np.ndarray = np.array([class_weight.get(name, 1.0) for name in classes.tolist()])[codes]
    return of_each
