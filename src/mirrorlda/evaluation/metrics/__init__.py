"""Measures: whether topics are coherent and differ, documents have few and are probable, and predictions are right."""

from mirrorlda.evaluation.metrics.coherence import cv_coherence, npmi_coherence
from mirrorlda.evaluation.metrics.diversity import topic_diversity
from mirrorlda.evaluation.metrics.folds import CrossValidation, cross_validate
from mirrorlda.evaluation.metrics.likelihood import log_likelihood
from mirrorlda.evaluation.metrics.prediction import auc, predictive_r2
from mirrorlda.evaluation.metrics.proportions import sparsity

__all__ = [
    "CrossValidation",
    "auc",
    "cross_validate",
    "cv_coherence",
    "log_likelihood",
    "npmi_coherence",
    "predictive_r2",
    "sparsity",
    "topic_diversity",
]
