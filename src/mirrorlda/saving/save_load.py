"""Models in files: `save` and `load`, for the estimators and for pipelines of a vectorizer and one of them."""

from __future__ import annotations

import os
from typing import Any

from sklearn.pipeline import Pipeline

import mirrorlda
from mirrorlda.data.files import tensors
from mirrorlda.data.files.atomic import AnyPath
from mirrorlda.method.responses import Response
from mirrorlda.saving import estimator_state, pipelines

_KIND = "model"


def save(model: Any, path: AnyPath) -> None:
    """Write a model to one file, which `load` gives back to the bit.

    Parameters
    ----------
    model : TopicModel, TopicRegressor, TopicClassifier or Pipeline
        Fitted or not. A pipeline may have a `CountVectorizer` or `TextVectorizer`, then a `TfidfTransformer`, and has one of the
        estimators as its last step.
    path : path of the file
        It is replaced as a whole when all is on the disk, or not at all.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> from mirrorlda import TopicClassifier
    >>> from mirrorlda.datasets import make_topics
    >>> from mirrorlda.saving.save_load import load, save
    >>> data = make_topics(n_docs=300, n_words=60, n_topics=3, n_classes=2, random_state=0)
    >>> model = TopicClassifier(n_topics=3, random_state=0).fit(data.X, data.y)
    >>> path = mkdtemp() + "/reviews.mirrorlda"
    >>> save(model, path)
    >>> bool((load(path).predict_proba(data.X) == model.predict_proba(data.X)).all())
    True
    """
    arrays, meta = pipelines.as_arrays(model) if isinstance(model, Pipeline) else estimator_state.as_arrays(model)
    tensors.write(path, arrays, {"package": mirrorlda.__version__, **meta}, _KIND)


def load(path: AnyPath, *, response: Response | None = None) -> Any:
    """The model that `save` wrote. Nothing in the file is executed, and everything in it is checked.

    Parameters
    ----------
    path : path of the file
        Or of the folder that the command `mirrorlda train` made, which has it as "model.mirrorlda".
    response : Response, optional
        For a model that was fitted with a response of the user's own, of which the file has only the name: that response.

    Raises
    ------
    FileFormatError
        If the file is cut short, altered, no model, or of a version that is too new.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> from mirrorlda import TopicModel
    >>> from mirrorlda.saving.save_load import load, save
    >>> path = mkdtemp() + "/topics.mirrorlda"
    >>> save(TopicModel(n_topics=7), path)
    >>> load(path)
    TopicModel(n_topics=7)
    """
    if os.path.isdir(path):
        folder, path = os.fsdecode(path), os.path.join(os.fsdecode(path), "model.mirrorlda")
        if not os.path.exists(path):
            raise FileNotFoundError(f"{folder} holds no model: there is no model.mirrorlda in it")
    arrays, meta = tensors.read(path, _KIND)
    with tensors.explained(path):
        if not isinstance(meta.pop("package", None), str):
            raise ValueError("found no version of the package")
        estimator = meta
        if "steps" in meta:
            model: Any = pipelines.from_arrays(arrays, meta, response)
            estimator = meta["steps"][-1]["content"]
        else:
            model = estimator_state.from_arrays(arrays, meta, response)
    if response is not None and not estimator_state.own_responses(estimator):
        raise ValueError(f"{os.fsdecode(path)} has no response of a user's own: leave out response={response!r}")
    return model
