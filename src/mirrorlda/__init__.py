"""Topics that predict: supervised topic models learned end to end by mirror-descent back-propagation."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import mirrorlda.cluster as distributed  # noqa: F401
    from mirrorlda.data import datasets as datasets
    from mirrorlda.data import readers as readers
    from mirrorlda.data import text as text
    from mirrorlda.data.corpus.corpus import Corpus
    from mirrorlda.data.corpus.manifest import Target
    from mirrorlda.data.corpus.prepare import prepare
    from mirrorlda.data.corpus.shards import CorpusError
    from mirrorlda.data.corpus.writer import CorpusWriter
    from mirrorlda.data.files import tables as tables
    from mirrorlda.data.files.tensors import FileFormatError
    from mirrorlda.data.text import TextDefinition, Vocabulary
    from mirrorlda.estimators import TopicClassifier, TopicModel, TopicRegressor
    from mirrorlda.estimators.predict_files import predict_files
    from mirrorlda.estimators.vectorizer import TextVectorizer
    from mirrorlda.evaluation import metrics as metrics
    from mirrorlda.inspect import explain as explain
    from mirrorlda.inspect import topics as topics
    from mirrorlda.method import responses as responses
    from mirrorlda.method.gradients import Gradients, value_and_grad
    from mirrorlda.method.inference import Trace, infer
    from mirrorlda.saving.save_load import load, save
    from mirrorlda.training.checkpoints import Checkpoint
    from mirrorlda.training.mirror_descent import DivergedError

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
    "Checkpoint": "training.checkpoints",
    "Corpus": "data.corpus.corpus",
    "CorpusError": "data.corpus.shards",
    "CorpusWriter": "data.corpus.writer",
    "DivergedError": "training.mirror_descent",
    "FileFormatError": "data.files.tensors",
    "Gradients": "method.gradients",
    "Target": "data.corpus.manifest",
    "TextDefinition": "data.text",
    "TextVectorizer": "estimators.vectorizer",
    "TopicClassifier": "estimators",
    "TopicModel": "estimators",
    "TopicRegressor": "estimators",
    "Trace": "method.inference",
    "Vocabulary": "data.text",
    "infer": "method.inference",
    "load": "saving.save_load",
    "predict_files": "estimators.predict_files",
    "prepare": "data.corpus.prepare",
    "save": "saving.save_load",
    "value_and_grad": "method.gradients",
}

# The short names by which users import modules, whatever package these are in.
_MODULES = {
    "datasets": "data.datasets",
    "distributed": "cluster",
    "explain": "inspect.explain",
    "metrics": "evaluation.metrics",
    "readers": "data.readers",
    "responses": "method.responses",
    "tables": "data.files.tables",
    "text": "data.text",
    "topics": "inspect.topics",
}


class _ShortNames(MetaPathFinder, Loader):
    """`import mirrorlda.topics` gives the module `mirrorlda.inspect.topics` itself, not a second copy of it."""

    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        package, _, name = fullname.partition(".")
        return spec_from_loader(fullname, self) if package == __name__ and name.partition(".")[0] in _MODULES else None

    def exec_module(self, module: ModuleType) -> None:
        first, dot, rest = module.__name__.partition(".")[2].partition(".")
        sys.modules[module.__name__] = import_module(f"{__name__}.{_MODULES[first]}{dot}{rest}")


sys.meta_path.insert(0, _ShortNames())


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
