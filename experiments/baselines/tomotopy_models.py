"""tomotopy's LDA and supervised LDA as scikit-learn estimators.

tomotopy refuses or aborts on documents without words: they are left out of training, and predicted by the mean.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from baselines.classes import class_numbers

# Training ends when this many iterations of Gibbs sampling have added less than this to the log-likelihood of a word.
ITERATIONS, GAIN, MOST_ITERATIONS = 50, 0.005, 1000


def word_lists(X: Any) -> list[list[str]]:
    """The documents as tomotopy takes them; a word is called by its column."""
    names = np.array([str(column) for column in range(X.shape[1])])
    counts = X.data.astype(int)
    bounds = zip(X.indptr[:-1], X.indptr[1:], strict=True)
    return [np.repeat(names[X.indices[start:end]], counts[start:end]).tolist() for start, end in bounds]


def train_until_still(model: Any, n_jobs: int) -> None:
    """Gibbs sampling until the likelihood of a word stands still."""
    # For tomotopy 0 is all cores.
    workers = max(n_jobs, 0)
    last = -np.inf
    while model.global_step < MOST_ITERATIONS:
        model.train(ITERATIONS, workers=workers)
        if model.ll_per_word - last < GAIN:
            break
        last = model.ll_per_word


def inferred(model: Any, X: Any, n_jobs: int) -> tuple[np.ndarray, list[Any]]:
    """The rows of X that have words, and tomotopy's documents of them with their topics inferred."""
    texts = word_lists(X)
    rows = np.array([row for row, text in enumerate(texts) if text], int)
    documents = [model.make_doc(texts[row]) for row in rows]
    if documents:
        model.infer(documents, workers=max(n_jobs, 0))
    return rows, documents


def word_distributions(model: Any, n_words: int) -> np.ndarray:
    """The topics over all words; one that occurs in no document has what the prior of the topics gives it."""
    columns = [int(word) for word in model.used_vocabs]
    unseen = model.eta / (np.asarray(model.get_count_by_topics()) + model.eta * len(columns))
    components = np.tile(unseen[:, None], (1, n_words))
    components[:, columns] = [model.get_topic_word_dist(topic) for topic in range(model.k)]
    return components / components.sum(axis=1, keepdims=True)


def proportions(model: Any, n_docs: int, rows: np.ndarray, documents: Any) -> np.ndarray:
    """Those of `documents` in their rows; without words the prior's mean."""
    alpha = np.broadcast_to(model.alpha, model.k)
    theta = np.tile(alpha / alpha.sum(), (n_docs, 1))
    for row, document in zip(rows, documents, strict=True):
        theta[row] = document.get_topic_dist()
    return theta


class TomotopyLDA(TransformerMixin, BaseEstimator):
    """Unsupervised topics; `transform` gives topic proportions. Without `alpha` an asymmetric prior is learned."""

    def __init__(self, n_topics: int = 50, *, alpha: float | None = None, random_state: int = 0, n_jobs: int = 1) -> None:
        self.n_topics = n_topics
        self.alpha = alpha
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> Self:
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Proportions of the training documents as training left them."""
        # Here, and in _SupervisedLDA: the other systems do without it.
        import tomotopy

        prior = {} if self.alpha is None else {"alpha": self.alpha}
        self.model_ = tomotopy.LDAModel(k=self.n_topics, seed=self.random_state, **prior)
        if self.alpha is not None:
            self.model_.optim_interval = 0
        texts = word_lists(X)
        for text in texts:
            if text:
                self.model_.add_doc(text)
        train_until_still(self.model_, self.n_jobs)
        self.components_ = word_distributions(self.model_, X.shape[1])
        rows = np.array([row for row, text in enumerate(texts) if text], int)
        theta = proportions(self.model_, len(texts), rows, self.model_.docs)
        self.topic_shares_ = theta.mean(axis=0)
        return theta

    def transform(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return proportions(self.model_, X.shape[0], *inferred(self.model_, X, self.n_jobs))


class _SupervisedLDA(TransformerMixin, BaseEstimator):
    """One response; documents whose response is NaN have none. `transform` gives topic proportions."""

    def __init__(self, n_topics: int = 20, *, random_state: int = 0, n_jobs: int = 1) -> None:
        self.n_topics = n_topics
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit(self, X: Any, y: np.ndarray, kind: str) -> None:
        import tomotopy

        self.model_ = tomotopy.SLDAModel(k=self.n_topics, vars=kind, seed=self.random_state)
        for text, response in zip(word_lists(X), y, strict=True):
            if text:
                self.model_.add_doc(text, y=[float(response)])
        train_until_still(self.model_, self.n_jobs)
        self.components_ = word_distributions(self.model_, X.shape[1])
        self.mean_ = np.nanmean(y)

    def transform(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return proportions(self.model_, X.shape[0], *inferred(self.model_, X, self.n_jobs))

    def _estimates(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        estimates = np.full(X.shape[0], self.mean_)
        rows, documents = inferred(self.model_, X, self.n_jobs)
        if documents:
            estimates[rows] = np.ravel(self.model_.estimate(documents))
        return estimates


class SupervisedLDARegressor(RegressorMixin, _SupervisedLDA):
    """tomotopy's sLDA with a Gaussian response, standardised."""

    def fit(self, X: Any, y: Any) -> Self:
        y = np.asarray(y, np.float64)
        self.centre_, self.scale_ = np.nanmean(y), np.nanstd(y)
        self._fit(X, (y - self.centre_) / self.scale_, "l")
        return self

    def predict(self, X: Any) -> np.ndarray:
        return self._estimates(X) * self.scale_ + self.centre_


class SupervisedLDAClassifier(ClassifierMixin, _SupervisedLDA):
    """tomotopy's sLDA with a binary response."""

    def fit(self, X: Any, y: Any) -> Self:
        self.classes_, numbers = class_numbers(y, only_two=True)
        self._fit(X, numbers, "b")
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        second = self._estimates(X)
        return np.column_stack([1 - second, second])

    def predict(self, X: Any) -> np.ndarray:
        return self.classes_[self.predict_proba(X).argmax(axis=1)]
