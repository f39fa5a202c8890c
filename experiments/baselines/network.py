"""A network with one hidden layer on tf-idf, with its size and penalty chosen on a tenth of the training part."""

from __future__ import annotations

from typing import Any, Self

from sklearn.compose import TransformedTargetRegressor
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import ShuffleSplit
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from baselines.search import LabelledSearch

# Four settings and one held-out tenth in place of folds: a fit takes tens of seconds.
SIZES = [(20,), (100,)]
PENALTIES = [0.01, 0.1]
# With fewer documents than this, batches of 200 make so few steps an epoch that early stopping comes too early.
FEW_DOCS = 10_000


class _Batches:
    """The size of batches follows from the number of documents."""

    def fit(self, X: Any, y: Any) -> Self:
        self.batch_size = 32 if X.shape[0] < FEW_DOCS else 200
        return super().fit(X, y)


class Regressor(_Batches, MLPRegressor):
    """scikit-learn's network for numbers."""


class Classifier(_Batches, MLPClassifier):
    """scikit-learn's network for classes."""


def _search(network: Any, prefix: str, measure: str, seed: int, n_jobs: int | None) -> LabelledSearch:
    pipeline = Pipeline([("features", TfidfTransformer(sublinear_tf=True)), ("network", network)])
    grid = {f"{prefix}__hidden_layer_sizes": SIZES, f"{prefix}__alpha": PENALTIES}
    held_out = ShuffleSplit(1, test_size=0.1, random_state=seed)
    return LabelledSearch(pipeline, grid, scoring=measure, cv=held_out, n_jobs=n_jobs)


def tuned_regressor(measure: str, seed: int, n_jobs: int | None = None) -> LabelledSearch:
    """The best network for numbers, which are standardised; early stopping on another tenth."""
    network = Regressor(early_stopping=True, n_iter_no_change=3, max_iter=50, random_state=seed)
    standardised = TransformedTargetRegressor(network, transformer=StandardScaler())
    return _search(standardised, "network__regressor", measure, seed, n_jobs)


def tuned_classifier(measure: str, seed: int, n_jobs: int | None = None) -> LabelledSearch:
    """The best network for classes; early stopping on another tenth."""
    network = Classifier(early_stopping=True, n_iter_no_change=3, max_iter=50, random_state=seed)
    return _search(network, "network", measure, seed, n_jobs)
