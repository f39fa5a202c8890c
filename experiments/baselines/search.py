"""Choice of hyper-parameters on the labelled documents."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from joblib import parallel_config
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, ParameterGrid
from threadpoolctl import threadpool_limits


def labelled(y: Any) -> np.ndarray:
    """Which documents have a label: those whose y is neither None nor NaN."""
    # NaN is the only value that differs from itself.
    return np.array([label is not None and label == label for label in np.asarray(y)], bool)


class LabelledSearch(GridSearchCV):
    """A grid search that leaves out the documents without a label: it has no use for them."""

    def fit(self, X: Any, y: Any) -> Self:
        kept = np.flatnonzero(labelled(y))
        # From a list the labels have their own type, where with None among them they are objects.
        known = np.array(np.asarray(y)[kept].tolist())
        # Processes take seconds to start, which would count as training time; the solvers let threads run side by side, each
        # with one of its own for BLAS and OpenMP.
        with parallel_config("threading"), threadpool_limits(1):
            fitted: Self = super().fit(X[kept], known)
        return fitted

    def untuned(self) -> Any:
        """The estimator with settings from the middle of the (first) grid, to be trained once."""
        grid = ParameterGrid(self.param_grid).param_grid[0]
        return clone(self.estimator).set_params(**{name: values[len(values) // 2] for name, values in grid.items()})
