"""How good a model is: measures with intervals on documents that it has not seen, beside those of simpler models."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mirrorlda.evaluation.baselines import with_baselines
    from mirrorlda.evaluation.bootstrap import Measure
    from mirrorlda.evaluation.measuring import TASKS, Evaluation, evaluate

__all__ = ["TASKS", "Evaluation", "Measure", "evaluate", "with_baselines"]

# Imported when they are asked for: `mirrorlda.metrics` stays light.
_LATER = {
    "TASKS": "measuring",
    "Evaluation": "measuring",
    "Measure": "bootstrap",
    "evaluate": "measuring",
    "with_baselines": "baselines",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
