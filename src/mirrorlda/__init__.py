"""Topics that predict: supervised topic models learned end to end by mirror-descent back-propagation."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mirrorlda.checkpoints import Checkpoint
    from mirrorlda.corpus import Corpus
    from mirrorlda.description import Target
    from mirrorlda.estimators import TopicClassifier, TopicModel, TopicRegressor
    from mirrorlda.files import load, save
    from mirrorlda.inference import Trace, infer
    from mirrorlda.learning import DivergedError
    from mirrorlda.objective import Gradients, value_and_grad
    from mirrorlda.prediction import predict_files
    from mirrorlda.preparation import prepare
    from mirrorlda.shards import CorpusError
    from mirrorlda.tensors import FileFormatError
    from mirrorlda.text import TextDefinition, Vocabulary
    from mirrorlda.vectorizer import TextVectorizer
    from mirrorlda.writer import CorpusWriter

__version__ = "0.1.0"
__all__ = [
    "Checkpoint",
    "Corpus",
    "CorpusError",
    "CorpusWriter",
    "DivergedError",
    "FileFormatError",
    "Gradients",
    "Target",
    "TextDefinition",
    "TextVectorizer",
    "TopicClassifier",
    "TopicModel",
    "TopicRegressor",
    "Trace",
    "Vocabulary",
    "infer",
    "load",
    "predict_files",
    "prepare",
    "save",
    "value_and_grad",
]

# Imported when they are asked for: the command line answers at once, and scikit-learn takes longer than all the rest.
_LATER = {
    "Checkpoint": "checkpoints",
    "Corpus": "corpus",
    "CorpusError": "shards",
    "CorpusWriter": "writer",
    "DivergedError": "learning",
    "FileFormatError": "tensors",
    "Gradients": "objective",
    "Target": "description",
    "TextDefinition": "text",
    "TextVectorizer": "vectorizer",
    "TopicClassifier": "estimators",
    "TopicModel": "estimators",
    "TopicRegressor": "estimators",
    "Trace": "inference",
    "Vocabulary": "text",
    "infer": "inference",
    "load": "files",
    "predict_files": "prediction",
    "prepare": "preparation",
    "save": "files",
    "value_and_grad": "objective",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(f"mirrorlda.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
