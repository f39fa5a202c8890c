"""What users fit: scikit-learn estimators around the method and its training."""

from mirrorlda.estimators.classifier import TopicClassifier
from mirrorlda.estimators.regressor import TopicRegressor
from mirrorlda.estimators.topic_model import TopicModel

__all__ = ["TopicClassifier", "TopicModel", "TopicRegressor"]
