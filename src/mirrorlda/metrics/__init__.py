"""Measures of topics: whether the top words of a topic belong together, and whether topics differ."""

from mirrorlda.metrics.coherence import npmi_coherence
from mirrorlda.metrics.diversity import topic_diversity

__all__ = ["npmi_coherence", "topic_diversity"]
