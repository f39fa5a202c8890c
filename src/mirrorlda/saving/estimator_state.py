"""An estimator, with all that it was given and has learned, as arrays and JSON, and back.

An attribute that is not in the tables here is an error: nothing is left out but requests of scikit-learn's metadata routing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, fields
from typing import Any

import numpy as np

from mirrorlda.data.files.generators import generator_as_json, generator_from_json
from mirrorlda.data.files.json_values import (
    as_json,
    from_json,
    labels_as_arrays,
    labels_from_arrays,
    strings_as_arrays,
    strings_from_arrays,
)
from mirrorlda.data.text import TextDefinition, Vocabulary
from mirrorlda.estimators.classifier import TopicClassifier
from mirrorlda.estimators.estimator import TopicEstimator
from mirrorlda.estimators.fitting import Stream
from mirrorlda.estimators.regressor import TopicRegressor
from mirrorlda.estimators.topic_model import TopicModel
from mirrorlda.method.responses import BUILT_IN, Response
from mirrorlda.method.targets.classes import Classes, Labels
from mirrorlda.method.targets.numbers import Levels, Numbers
from mirrorlda.method.targets.record import NoTargets, Targets
from mirrorlda.method.themes import are_two
from mirrorlda.saving.bounds import check_fitted, check_parameter, is_whole
from mirrorlda.training import mirror_descent

Arrays = dict[str, np.ndarray]

ESTIMATORS: dict[str, type[TopicEstimator]] = {cls.__name__: cls for cls in (TopicModel, TopicRegressor, TopicClassifier)}

# What a fit leaves, always or sometimes, by the names that files have for it.
_ALWAYS = {
    "TopicModel": {
        "components_",
        "encoder_components_",
        "alpha_",
        "topic_shares_",
        "history_",
        "n_features_in_",
        "_learned_response",
    },
}
_ALWAYS["TopicRegressor"] = _ALWAYS["TopicModel"] | {
    *("coef_", "noise_std_", "_fitted_response", "_fitted_with", "_n_targets", "_one_dimensional", "_mean", "_scale"),
}
_ALWAYS["TopicClassifier"] = _ALWAYS["TopicModel"] | {"coef_", "classes_", "_is_multilabel", "_fitted_response"}
# What partial_fit leaves for the next one.
_STREAM = {"_state", "_rng", "_total_weight"}
_SOMETIMES = {
    *(
        "topic_effects_",
        "target_names_",
        "word_weights_",
        "levels_",
        "feature_names_in_",
        "data_fingerprint_",
        "vocabulary_",
    ),
    *_STREAM,
}
# Set by scikit-learn's set_output, before or after a fit.
_OUTPUT = "_sklearn_output_config"
# Set by scikit-learn's set_fit_request and the like: what a program passes on to a model, which is no part of the model.
ROUTING = "_metadata_request"

_ARRAYS = ("alpha_", "topic_shares_", "topic_effects_", "coef_", "noise_std_", "_mean", "_scale", "word_weights_", "levels_")
_VALUES = (
    "target_names_",
    "n_features_in_",
    "_n_targets",
    "_one_dimensional",
    "_is_multilabel",
    "data_fingerprint_",
    "_total_weight",
)
# Parameters that older files lack, with the value that repeats what was done then, and those that only they have.
_BEFORE = {"tol": 0.0, "readability": 0.0}
_NO_LONGER = {"generative_weight"}
_RESPONSES = ("_fitted_response", "_learned_response", "_fitted_with")


def as_arrays(model: TopicEstimator) -> tuple[Arrays, dict[str, Any]]:
    """All of an estimator, fitted or not. A ValueError names what cannot be stored."""
    kind = type(model).__name__
    if ESTIMATORS.get(kind) is not type(model):
        raise ValueError(f"a {type(model).__module__}.{kind} cannot be stored, expected one of {', '.join(ESTIMATORS)}")
    parameters = model.get_params(deep=False)
    meta: dict[str, Any] = {"estimator": kind, "parameters": {}}
    for name, value in parameters.items():
        check_parameter(name, value)
        meta["parameters"][name] = _response_as_json(value) if name == "response" else _named(name, as_json, value)
    attributes = _by_names_of_files({name: value for name, value in vars(model).items() if name not in parameters})
    found = set(attributes) - {_OUTPUT, ROUTING}
    if _OUTPUT in vars(model):
        meta["output"] = as_json(vars(model)[_OUTPUT])
    if not found:
        return {}, meta
    if unknown := found - _ALWAYS[kind] - _SOMETIMES:
        raise ValueError(f"the {kind} has the attributes {', '.join(sorted(unknown))}, which a file has no place for")
    if missing := _ALWAYS[kind] - found:
        raise ValueError(f"the {kind} lacks the attributes {', '.join(sorted(missing))} of a fit")
    check_fitted(model)
    arrays, meta["fitted"] = _fitted_as_arrays(attributes)
    if len(names := own_responses(meta)) > 1:
        raise ValueError(f"the {kind} has several responses of one's own, {', '.join(sorted(names))}: fit it with the last one")
    return arrays, meta


def from_arrays(arrays: Arrays, meta: Any, response: Response | None = None) -> TopicEstimator:
    """The estimator that `as_arrays` was given; `response` is the one of the user's own that it had."""
    if not isinstance(meta, dict) or not {"estimator", "parameters"} <= set(meta) <= {
        "estimator",
        "parameters",
        "fitted",
        "output",
    }:
        raise ValueError("found no estimator with its parameters where one was expected")
    kind = meta["estimator"]
    if not isinstance(kind, str) or kind not in ESTIMATORS:
        raise ValueError(f"found a {str(kind)[:40]!r}, expected one of {', '.join(ESTIMATORS)}")
    model = ESTIMATORS[kind]()
    known = model.get_params(deep=False)
    if not isinstance(meta["parameters"], dict) or not set(meta["parameters"]) <= set(known) | _NO_LONGER:
        raise ValueError(f"found parameters that a {kind} does not have")
    parameters = {name: value for name, value in meta["parameters"].items() if name not in _NO_LONGER}
    since = {name: value for name, value in _BEFORE.items() if name in known}
    for name, value in (since | parameters).items():
        decoded = _response_from_json(value, response) if name == "response" else _named(name, from_json, value)
        check_parameter(name, decoded)
        setattr(model, name, decoded)
    if "output" in meta:
        setattr(model, _OUTPUT, _output(from_json(meta["output"])))
    if "fitted" in meta:
        attributes = _fitted_from_arrays(arrays, meta["fitted"], response)
        if not _ALWAYS[kind] <= set(attributes) <= _ALWAYS[kind] | _SOMETIMES:
            raise ValueError(f"the fitted attributes are not those of a {kind}")
        model.__dict__.update(_by_names_of_estimators(kind, attributes))
        check_fitted(model)
    elif arrays:
        raise ValueError(f"found arrays for a {kind} that is not fitted")
    return model


def part(arrays: Mapping[str, np.ndarray], prefix: str) -> Arrays:
    """The arrays whose names begin with `prefix` and a dot, without it."""
    return {name[len(prefix) + 1 :]: array for name, array in arrays.items() if name.startswith(prefix + ".")}


def prefixed(prefix: str, arrays: Mapping[str, np.ndarray]) -> Arrays:
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def own_responses(meta: Mapping[str, Any]) -> set[str]:
    """The classes of the user's own responses that an estimator's JSON names; at most one where it came from a file."""
    fitted = meta.get("fitted", {})
    named = [meta["parameters"].get("response"), *(fitted.get(name) for name in _RESPONSES)]
    return {value["own"] for value in named if isinstance(value, dict) and "own" in value}


def vocabulary_as_arrays(vocabulary: Vocabulary) -> tuple[Arrays, dict[str, Any]]:
    letters, offsets = vocabulary.arrays()
    return {"letters": letters, "offsets": offsets}, asdict(vocabulary.definition)


def vocabulary_from_arrays(arrays: Arrays, meta: Any) -> Vocabulary:
    kinds = {name: (array.dtype, array.ndim) for name, array in arrays.items()}
    if kinds != {"letters": (np.dtype(np.uint8), 1), "offsets": (np.dtype(np.int64), 1)}:
        raise ValueError("found no letters and offsets of a vocabulary where these were expected")
    return Vocabulary.from_arrays(arrays["letters"], arrays["offsets"], TextDefinition.from_json(meta))


# Fitted attributes, one way and the other.


def _by_names_of_files(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Targets and stream in the parts that files have had from their first version on."""
    found = dict(attributes)
    if "targets_" in found:
        found |= _parts_of_targets(found.pop("targets_"))
    if "stream_" in found:
        stream: Stream = found.pop("stream_")
        found |= {"_state": stream.state, "_rng": stream.rng, "_total_weight": stream.total_weight}
    return found


def _parts_of_targets(targets: Targets) -> dict[str, Any]:
    parts: dict[str, Any] = {"_learned_response": targets.response}
    if isinstance(targets, NoTargets):
        return parts
    parts["_fitted_response"] = targets.response
    if isinstance(targets, Classes | Labels):
        return parts | {"classes_": targets.known, "_is_multilabel": isinstance(targets, Labels)}
    assert isinstance(targets, Numbers)
    parts |= {"_fitted_with": targets.asked_for, "_n_targets": targets.n_targets, "_one_dimensional": targets.is_flat}
    parts |= {"_mean": targets.mean, "_scale": targets.scale}
    if isinstance(targets, Levels):
        parts["levels_"] = targets.levels
    return parts if targets.target_names is None else parts | {"target_names_": targets.target_names}


def _by_names_of_estimators(kind: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(attributes)
    found["targets_"] = _targets_from(kind, found)
    present = _STREAM & set(found)
    if present:
        if present != _STREAM:
            raise ValueError("the state of partial_fit is not complete")
        found["stream_"] = Stream(found.pop("_state"), found.pop("_rng"), found.pop("_total_weight"))
    return found


def _targets_from(kind: str, found: dict[str, Any]) -> Targets:
    """The targets, whose parts are taken out of what was `found`."""
    learned, response = found.pop("_learned_response"), found.pop("_fitted_response", None)
    if kind != "TopicRegressor" and (unknown := {"target_names_", "levels_"} & set(found)):
        raise ValueError(f"a {kind} has no {' and no '.join(sorted(unknown))}")
    if kind == "TopicModel":
        return NoTargets(learned)
    if isinstance(learned, str) or response is None or learned != response:
        raise ValueError("the response that was learned with is not the one that was fitted")
    if kind == "TopicClassifier":
        is_multilabel = found.pop("_is_multilabel")
        if type(is_multilabel) is not bool:
            raise ValueError("whether there are several labels a document is not said")
        return (Labels if is_multilabel else Classes)(response, found.pop("classes_"))
    n_targets, is_flat = found.pop("_n_targets"), found.pop("_one_dimensional")
    names, mean, scale = found.pop("target_names_", None), found.pop("_mean"), found.pop("_scale")
    if not is_whole(n_targets, 1, 2**31) or type(is_flat) is not bool or mean.shape != (n_targets,):
        raise ValueError("the number or the dimension of the targets is not what the rest of the file says")
    if names is not None and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise ValueError("target_names_ is not a list of strings")
    asked_for = found.pop("_fitted_with")
    if "levels_" in found:
        return Levels(response, is_flat, asked_for, names, mean=mean, scale=scale, levels=found.pop("levels_"))
    return Numbers(response, is_flat, asked_for, names, mean=mean, scale=scale)


def _fitted_as_arrays(attributes: Mapping[str, Any]) -> tuple[Arrays, dict[str, Any]]:
    # Phi, not its transpose: the memory that predictions read. Where people read the same topics, that is all there is.
    arrays: Arrays = {"phi": np.asarray(attributes["encoder_components_"]).T}
    if are_two(attributes["components_"], attributes["encoder_components_"]):
        arrays["themes"] = np.asarray(attributes["components_"]).T
    arrays |= {name: np.asarray(attributes[name]) for name in _ARRAYS if name in attributes}
    meta = {name: _named(name, as_json, attributes[name]) for name in _VALUES if name in attributes}
    meta |= {name: _response_as_json(attributes[name]) for name in _RESPONSES if name in attributes}
    meta["history"] = list(attributes["history_"])
    arrays |= prefixed("history", {name: np.array(values, np.float64) for name, values in attributes["history_"].items()})
    if "classes_" in attributes:
        labels, meta["classes"] = labels_as_arrays(attributes["classes_"])
        arrays |= prefixed("classes", labels)
    if "feature_names_in_" in attributes:
        arrays |= prefixed("names", strings_as_arrays(attributes["feature_names_in_"].tolist()))
    if "vocabulary_" in attributes:
        words, meta["text"] = vocabulary_as_arrays(attributes["vocabulary_"])
        arrays |= prefixed("vocabulary", words)
    if "_state" in attributes:
        state, meta["state"] = mirror_descent.as_arrays(attributes["_state"])
        arrays |= prefixed("state", state)
        meta["rng"] = generator_as_json(attributes["_rng"])
    return arrays, meta


def _fitted_from_arrays(arrays: Arrays, meta: Any, response: Response | None) -> dict[str, Any]:
    said = {"classes": "classes", "vocabulary": "text", "state": "state"}
    groups = {"history", "names", *(group for group, name in said.items() if isinstance(meta, dict) and name in meta)}
    unknown = {name for name in arrays if name not in ("phi", "themes", *_ARRAYS) and name.partition(".")[0] not in groups}
    places = {*_VALUES, *_RESPONSES, "history", "classes", "text", "state", "rng"}
    if unknown or not isinstance(meta, dict) or not set(meta) <= places:
        raise ValueError("the fitted attributes have names that are not known")
    for name in ("phi", "themes") if "themes" in arrays else ("phi",):
        if name not in arrays or arrays[name].ndim != 2 or arrays[name].dtype not in (np.float32, np.float64):
            raise ValueError(f"found no {name}, expected float32 or float64 of shape (n_words, n_topics)")
    phi, themes = arrays["phi"], arrays.get("themes", arrays["phi"])
    if themes.shape != phi.shape or themes.dtype != phi.dtype or not np.isfinite(themes).all():
        raise ValueError(f"themes is {themes.dtype} of shape {themes.shape}, expected finite {phi.dtype} of shape {phi.shape}")
    encoder = phi.T
    attributes: dict[str, Any] = {
        "encoder_components_": encoder,
        "components_": arrays["themes"].T if "themes" in arrays else encoder,
    }
    attributes |= {name: arrays[name] for name in _ARRAYS if name in arrays}
    attributes |= {name: from_json(meta[name]) for name in _VALUES if name in meta}
    attributes |= {name: _response_from_json(meta[name], response) for name in _RESPONSES if name in meta}
    attributes["history_"] = _history(part(arrays, "history"), meta.get("history"))
    if "classes" in meta:
        attributes["classes_"] = labels_from_arrays(part(arrays, "classes"), meta["classes"])
    if names := part(arrays, "names"):
        attributes["feature_names_in_"] = np.array(strings_from_arrays(names), object)
    if "text" in meta:
        attributes["vocabulary_"] = vocabulary_from_arrays(part(arrays, "vocabulary"), meta["text"])
    if "state" in meta:
        if not isinstance(meta["state"], dict):
            raise ValueError("found no state of training where one was expected")
        attributes["_state"] = mirror_descent.from_arrays(part(arrays, "state"), meta["state"])
        attributes["_rng"] = generator_from_json(meta.get("rng"))
    return attributes


def _history(arrays: Arrays, names: Any) -> dict[str, list[float]]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or sorted(names) != sorted(arrays):
        raise ValueError("the history has not the names that it should have")
    if any(array.dtype != np.float64 or array.ndim != 1 for array in arrays.values()):
        raise ValueError("the history has numbers that are not float64 of shape (n_epochs,)")
    return {name: arrays[name].tolist() for name in names}


def _response_as_json(value: Any) -> Any:
    """A name, one of ours with its fields, or, of the user's own, the class's name alone."""
    if value is None or isinstance(value, str):
        return value
    name = type(value).__name__
    if BUILT_IN.get(name) is type(value):
        return {"response": name, "fields": {field: as_json(item) for field, item in asdict(value).items()}}
    return {"own": type(value).__qualname__}


def _response_from_json(value: Any, own: Response | None) -> Any:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dict) and set(value) == {"own"} and isinstance(value["own"], str):
        if own is None:
            raise ValueError(
                f"the model has a response of its user's own, {value['own'][:80]!r}: load(path, response=...) needs it"
            )
        if type(own).__qualname__ != value["own"]:
            raise ValueError(f"the response is a {type(own).__qualname__!r}, but the model was saved with {value['own'][:80]!r}")
        return own
    if not isinstance(value, dict) or set(value) != {"response", "fields"} or value["response"] not in tuple(BUILT_IN):
        raise ValueError("found no response that is known")
    cls, given = BUILT_IN[value["response"]], value["fields"]
    if not isinstance(given, dict) or not set(given) <= {field.name for field in fields(cls)}:
        raise ValueError(f"found fields that {cls.__name__} does not have")
    found = {name: from_json(item) for name, item in given.items()}
    if missing := {field.name for field in fields(cls) if field.default is MISSING} - set(found):
        raise ValueError(f"{', '.join(sorted(missing))} of the response is missing")
    return cls(**found)


def _output(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(
        key == "transform" and item in ("default", "pandas", "polars") for key, item in value.items()
    ):
        raise ValueError("found no choice of output where one was expected")
    return value


def _named(name: str, function: Callable[[Any], Any], value: Any) -> Any:
    try:
        return function(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
