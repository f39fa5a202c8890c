"""What parameters and learned values may be: shapes that agree with each other, numbers in the range that predictions need.

An estimator from a file cannot fill the memory or predict what is not finite, and the work of its predictions is bounded: at most
10,000 layers. What a pattern for texts may cost is said in `patterns`.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np

from mirrorlda.estimators.classifier import TopicClassifier
from mirrorlda.estimators.regressor import TopicRegressor
from mirrorlda.method.inference import check_phi
from mirrorlda.method.responses import Ordinal, Poisson, Sigmoid, Softmax, SquaredError, Words

RESPONSES: dict[str, type[Any]] = {cls.__name__: cls for cls in (SquaredError, Softmax, Sigmoid, Ordinal, Poisson, Words)}
# What partial_fit leaves for the next one.
STREAM = {"_state", "_rng", "_total_weight"}

# Scores and predictions of at most this size, and gamma times it, stay in the range of float32.
_LARGEST = 1e35
_LARGEST_WEIGHT = 100.0
_MOST_LAYERS = 10_000
_MOST_THREADS = 1 << 15


def is_whole(value: Any, least: int, most: int) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and least <= int(value) <= most


def _is_number(value: Any, most: float = np.inf) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and abs(float(value)) <= most and np.isfinite(float(value))


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool | np.bool_) or _is_number(value)


def _is_alpha(value: Any) -> bool:
    if isinstance(value, list | tuple | np.ndarray):
        return len(np.shape(value)) == 1 and np.asarray(value).dtype.kind in "fiu"
    return value is None or _is_number(value) or value == "auto"


def _is_batch_size(value: Any) -> bool:
    sizes = value if isinstance(value, list | tuple) else [value]
    return all(is_whole(size, 1, 2**62) for size in sizes) or (isinstance(value, str) and value == "auto")


def _is_count(value: Any) -> bool:
    return is_whole(value, 1, 2**31) or (isinstance(value, str) and value == "auto")


_EXPECTED: dict[str, tuple[Callable[[Any], bool], str]] = {
    "n_topics": (_is_count, "a whole number of at least 1 or 'auto'"),
    "n_layers": (lambda v: _is_count(v) and (v == "auto" or v <= _MOST_LAYERS), f"'auto' or at most {_MOST_LAYERS}"),
    "n_epochs": (lambda v: is_whole(v, 1, 2**31), "a whole number of at least 1"),
    "n_iter_no_change": (lambda v: is_whole(v, 1, 2**31), "a whole number of at least 1"),
    "alpha": (_is_alpha, "None, a number, one for each topic or 'auto'"),
    "step_size": (
        lambda v: v in ("l1", "kl") if isinstance(v, str) else _is_number(v, _LARGEST) and v >= 0,
        "'l1', 'kl' or a number",
    ),
    "tol": (lambda v: _is_number(v) and 0 <= v < 1, "a number of at least 0 and below 1"),
    "gamma": (lambda v: _is_number(v, _LARGEST) and v > 0, f"a positive number of at most {_LARGEST:g}"),
    "count_scale": (lambda v: isinstance(v, str) and v in ("log", "linear"), "'log' or 'linear'"),
    "learning_rate": (lambda v: v == "auto" if isinstance(v, str) else _is_number(v), "a finite number or 'auto'"),
    "learning_rate_decay": (lambda v: isinstance(v, str), "'linear' or 'constant'"),
    "batch_size": (_is_batch_size, "a whole number, a pair of them or 'auto'"),
    "n_jobs": (lambda v: v is None or (is_whole(v, -_MOST_THREADS, _MOST_THREADS) and v != 0), "None or a number of threads"),
    "verbose": (_is_flag, "a finite number"),
    "early_stopping": (_is_flag, "a boolean"),
    "warm_start": (_is_flag, "a boolean"),
    "random_state": (
        lambda v: v is None or isinstance(v, np.random.RandomState) or is_whole(v, 0, 2**32 - 1),
        "None, a whole number or a RandomState",
    ),
    "seed_words": (lambda v: v is None or isinstance(v, dict | list | tuple), "None, a dict or a list"),
    "class_weight": (lambda v: v is None or isinstance(v, dict | list | str), "None, a dict or 'balanced'"),
}
_EXPECTED |= dict.fromkeys(("beta", "generative_weight", "word_dropout", "average_from"), (_is_number, "a finite number"))
_EXPECTED |= dict.fromkeys(("coef_learning_rate", "word_learning_rate", "validation_fraction"), (_is_number, "a finite number"))


def check_parameter(name: str, value: Any) -> None:
    """A ValueError for a parameter of the estimators that is not of its type, or beyond what predictions can bear."""
    if name == "response":
        return
    holds, expected = _EXPECTED[name]
    if not holds(value):
        raise ValueError(f"{name} is {str(value)[:60]}, expected {expected}")


def check_fitted(model: Any) -> None:
    """Shapes agree with each other, and numbers are in the range that predictions need."""
    phi = check_phi(model.components_.T)
    n_topics, n_words = model.components_.shape
    _check_array(model, "alpha_", (n_topics,), above=0, most=_LARGEST)
    _check_array(model, "topic_shares_", (n_topics,), least=0, most=2)
    if hasattr(model, "word_weights_"):
        _check_array(model, "word_weights_", (n_words,), above=0, most=_LARGEST_WEIGHT)
    if model.n_features_in_ != n_words or isinstance(model.n_features_in_, bool):
        raise ValueError(f"n_features_in_ is {str(model.n_features_in_)[:20]}, expected {n_words}, the words of phi")
    if hasattr(model, "feature_names_in_") and len(model.feature_names_in_) != n_words:
        raise ValueError(f"there are {len(model.feature_names_in_)} names of words, expected {n_words}")
    if hasattr(model, "vocabulary_") and len(model.vocabulary_) != n_words:
        raise ValueError(f"the vocabulary has {len(model.vocabulary_)} words, expected {n_words}")
    if not isinstance(getattr(model, "data_fingerprint_", ""), str):
        raise ValueError("the data's fingerprint is not a string")
    if hasattr(model, "target_names_"):
        names = model.target_names_
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError("target_names_ is not a list of strings")
        if len(names) != getattr(model, "_n_targets", 0):
            raise ValueError(f"there are {len(names)} names of targets, expected those of the model")
    if isinstance(model, TopicRegressor):
        _check_regressor(model)
    elif isinstance(model, TopicClassifier):
        _check_classifier(model)
    elif model._learned_response != Words():
        raise ValueError("the response of a TopicModel is not Words")
    model._layers(phi, model._response(), model.alpha_)
    _check_stream(model)


def _check_regressor(model: TopicRegressor) -> None:
    response, fitted_with, n_targets = model._fitted_response, model._fitted_with, model._n_targets
    if not is_whole(n_targets, 1, 2**31) or type(model._one_dimensional) is not bool:
        raise ValueError("the targets' number or dimension is none")
    if model._one_dimensional and n_targets != 1:
        raise ValueError(f"targets of one dimension have {n_targets} columns")
    for name in ("_mean", "_scale"):
        _check_array(model, name, (n_targets,), least=-_LARGEST, most=_LARGEST, dtypes=(np.float64,))
    names = {"gaussian": SquaredError, "ordinal": Ordinal, "poisson": Poisson}
    if isinstance(fitted_with, str) and (fitted_with not in names or type(response) is not names[fitted_with]):
        raise ValueError(f"the response is a {type(response).__name__}, which does not go with {fitted_with[:40]!r}")
    if not isinstance(fitted_with, str) and (fitted_with is None or fitted_with != response):
        raise ValueError("the response is not the one that the model was fitted with")
    n_outputs: int | None = n_targets
    if isinstance(response, Ordinal):
        n_outputs = response.n_levels - 1
    elif type(response) not in (SquaredError, Poisson, Sigmoid):
        n_outputs = None
    _check_coefficients(model, response, n_outputs)
    has_levels = fitted_with == "ordinal" if isinstance(fitted_with, str) else False
    if hasattr(model, "levels_") != has_levels:
        raise ValueError("levels are there without an ordinal response, or are missing with one")
    if has_levels:
        assert isinstance(response, Ordinal)
        _check_array(model, "levels_", (response.n_levels,), least=-_LARGEST, most=_LARGEST, dtypes=(np.float64,))
        if not (np.diff(model.levels_) > 0).all() or n_targets != 1:
            raise ValueError("the levels are not ascending, or there is more than one target")
    scale = np.abs(model._scale)
    if not ((scale == 0) | (scale >= 1 / _LARGEST)).all() or not (np.abs(model._fitted_U()) <= _LARGEST).all():
        raise ValueError("the targets' scale is too small")
    _check_array(model, "noise_std_", (n_targets,), least=0, most=_LARGEST)


def _check_classifier(model: TopicClassifier) -> None:
    response, classes = model._fitted_response, model.classes_
    if type(model._is_multilabel) is not bool:
        raise ValueError("whether there are several labels a document is not said")
    if classes.dtype.kind == "f" and not np.isfinite(classes).all():
        raise ValueError("classes are not finite")
    # Labels may be names in any order.
    if len(classes) < (1 if model._is_multilabel else 2) or not (model._is_multilabel or all(classes[:-1] < classes[1:])):
        raise ValueError("classes are too few, or not ascending")
    n_outputs = len(classes) if type(response) in (Softmax, Sigmoid) else None
    if type(response) in RESPONSES.values() and type(response) is not (Sigmoid if model._is_multilabel else Softmax):
        raise ValueError(f"the response {type(response).__name__} does not go with the classes")
    if isinstance(response, Softmax) and response.n_classes not in (None, len(classes)):
        raise ValueError(f"the response has {response.n_classes} classes, expected {len(classes)}")
    _check_coefficients(model, response, n_outputs)


def _check_coefficients(model: Any, response: Any, n_outputs: int | None) -> None:
    n_topics = len(model.components_)
    n_rows = len(model.coef_) if n_outputs is None and model.coef_.ndim else n_outputs
    _check_array(model, "coef_", (n_rows, n_topics), least=-_LARGEST, most=_LARGEST)
    largest = max(1.0, float(np.abs(model.coef_).max(initial=0)))
    gammas = () if type(response) in (SquaredError, Poisson) else (model.gamma, getattr(response, "gamma", 1.0))
    if any(_is_number(gamma) and not float(gamma) * largest <= _LARGEST for gamma in gammas):
        raise ValueError(f"gamma times the coefficients is beyond {_LARGEST:g}")
    learned = model._learned_response
    if learned is None or isinstance(learned, str) or type(learned) is not type(response):
        raise ValueError("the response that was learned with is not the one that was fitted")


def _check_stream(model: Any) -> None:
    """The state of `partial_fit`."""
    present = {name for name in STREAM if hasattr(model, name)}
    if not present:
        return
    if present != STREAM or not _is_number(model._total_weight, 1e300) or model._total_weight < 0:
        raise ValueError("the state of partial_fit is not complete")
    n_topics, n_words = model.components_.shape
    n_outputs = len(model._fitted_U())
    if model._state.phi.shape != (n_words, n_topics) or model._state.U.shape != (n_outputs, n_topics):
        raise ValueError("the state of partial_fit has other words, topics or outputs than the model")


def _check_array(
    model: Any,
    name: str,
    shape: tuple[int | None, ...],
    *,
    above: float = -np.inf,
    least: float = -np.inf,
    most: float,
    dtypes: tuple[Any, ...] = (np.float32, np.float64),
) -> None:
    array = getattr(model, name)
    if array.shape != shape or array.dtype not in dtypes:
        raise ValueError(f"{name} is {array.dtype} of shape {array.shape}, expected {np.dtype(dtypes[-1])} of shape {shape}")
    if not ((array > above) & (array >= least) & (array <= most)).all():
        raise ValueError(f"{name} has numbers that are not finite or out of range")
