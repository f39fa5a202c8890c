"""Measures: whether top words belong together, topics differ, documents have few of them, and predictions are right."""

from mirrorlda.metrics.coherence import cv_coherence, npmi_coherence
from mirrorlda.metrics.diversity import topic_diversity
from mirrorlda.metrics.prediction import predictive_r2
from mirrorlda.metrics.proportions import sparsity

__all__ = ["cv_coherence", "npmi_coherence", "predictive_r2", "sparsity", "topic_diversity"]
