"""Topics that predict: supervised topic models learned end to end by mirror-descent back-propagation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mirrorlda.inference import Trace, infer
from mirrorlda.learning import DivergedError
from mirrorlda.objective import Gradients, value_and_grad

if TYPE_CHECKING:
    from mirrorlda.estimators import TopicClassifier, TopicModel, TopicRegressor

__version__ = "0.1.0"
__all__ = ["DivergedError", "Gradients", "TopicClassifier", "TopicModel", "TopicRegressor", "Trace", "infer", "value_and_grad"]

_ESTIMATORS = {"TopicClassifier", "TopicModel", "TopicRegressor"}


def __getattr__(name: str) -> Any:
    # scikit-learn is imported only when an estimator is asked for.
    if name in _ESTIMATORS:
        from mirrorlda import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
