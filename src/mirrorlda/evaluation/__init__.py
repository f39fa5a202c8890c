"""How good a model is: measures with intervals on documents that it has not seen, beside those of simpler models."""

from mirrorlda.evaluation.baselines import with_baselines
from mirrorlda.evaluation.bootstrap import Measure
from mirrorlda.evaluation.measuring import TASKS, Evaluation, evaluate

__all__ = ["TASKS", "Evaluation", "Measure", "evaluate", "with_baselines"]
