"""What parameters and learned values may be: shapes that agree with each other, numbers in the range that predictions need.

An estimator from a file cannot fill the memory or predict what is not finite, and the work of its predictions is bounded: at most
10,000 layers. What a pattern for texts may cost is said in `regexes`.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np

from mirrorlda.estimators.fitting import Stream
from mirrorlda.method.inference import check_phi
from mirrorlda.method.responses import OF_NUMBERS, Ordinal, Sigmoid, Softmax, Words, link_of
from mirrorlda.method.targets.classes import Classes, Labels
from mirrorlda.method.targets.numbers import Levels, Numbers

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
_EXPECTED |= dict.fromkeys(("beta", "readability", "average_from"), (_is_number, "a finite number"))
_EXPECTED |= dict.fromkeys(("word_learning_rate", "validation_fraction"), (_is_number, "a finite number"))
_EXPECTED |= dict.fromkeys(
    ("learning_rate", "coef_learning_rate", "word_dropout"),
    (lambda v: v == "auto" if isinstance(v, str) else _is_number(v), "a finite number or 'auto'"),
)


def check_parameter(name: str, value: Any) -> None:
    """A ValueError for a parameter of the estimators that is not of its type, or beyond what predictions can bear."""
    if name == "response":
        return
    holds, expected = _EXPECTED[name]
    if not holds(value):
        raise ValueError(f"{name} is {str(value)[:60]}, expected {expected}")


def check_fitted(model: Any) -> None:
    """Shapes agree with each other, and numbers are in the range that predictions need."""
    check_phi(model.components_.T)
    n_topics, n_words = model.components_.shape
    _check_array(model, "encoder_components_", (n_topics, n_words), least=0, most=2)
    check_phi(model.encoder_components_.T)
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
    targets = model.targets_
    if isinstance(targets, Numbers):
        _check_numbers(model, targets)
    elif isinstance(targets, Classes | Labels):
        _check_classes(model, targets)
    elif targets.response != Words():
        raise ValueError("the response of a TopicModel is not Words")
    fitted = model.fitted_model()
    if hasattr(model, "topic_effects_"):
        n_values = fitted.values(np.full((1, n_topics), 1 / n_topics)).shape[1]
        _check_array(model, "topic_effects_", (3, n_values, n_topics), least=-_LARGEST, most=_LARGEST, dtypes=(np.float64,))
    if hasattr(model, "stream_"):
        _check_stream(model, model.stream_)


def _check_numbers(model: Any, targets: Numbers) -> None:
    response, asked_for, n_targets = targets.response, targets.asked_for, targets.n_targets
    if targets.target_names is not None and len(targets.target_names) != n_targets:
        raise ValueError(f"there are {len(targets.target_names)} names of targets, expected {n_targets}")
    if targets.is_flat and n_targets != 1:
        raise ValueError(f"targets of one dimension have {n_targets} columns")
    for name in ("mean", "scale"):
        _check_array(targets, name, (n_targets,), least=-_LARGEST, most=_LARGEST, dtypes=(np.float64,))
    if isinstance(asked_for, str) and (asked_for not in OF_NUMBERS or type(response) is not OF_NUMBERS[asked_for]):
        raise ValueError(f"the response is a {type(response).__name__}, which does not go with {asked_for[:40]!r}")
    if not isinstance(asked_for, str) and (asked_for is None or asked_for != response):
        raise ValueError("the response is not the one that the model was fitted with")
    n_outputs: int | None = n_targets if link_of(response) in ("identity", "poisson", "sigmoid") else None
    _check_coefficients(model, response, response.n_levels - 1 if isinstance(response, Ordinal) else n_outputs)
    if isinstance(targets, Levels) != (isinstance(asked_for, str) and isinstance(response, Ordinal)):
        raise ValueError("levels are there without an ordinal response, or are missing with one")
    if isinstance(targets, Levels):
        assert isinstance(response, Ordinal)
        _check_array(targets, "levels", (response.n_levels,), least=-_LARGEST, most=_LARGEST, dtypes=(np.float64,))
        if not (np.diff(targets.levels) > 0).all() or n_targets != 1:
            raise ValueError("the levels are not ascending, or there is more than one target")
    scale = np.abs(targets.scale)
    if not ((scale == 0) | (scale >= 1 / _LARGEST)).all() or not (np.abs(targets.U_of(model.coef_)) <= _LARGEST).all():
        raise ValueError("the targets' scale is too small")
    _check_array(model, "noise_std_", (n_targets,), least=0, most=_LARGEST)


def _check_classes(model: Any, targets: Classes | Labels) -> None:
    response, known, are_labels = targets.response, targets.known, isinstance(targets, Labels)
    if known.dtype.kind == "f" and not np.isfinite(known).all():
        raise ValueError("classes are not finite")
    # Labels may be names in any order.
    if len(known) < (1 if are_labels else 2) or not (are_labels or all(known[:-1] < known[1:])):
        raise ValueError("classes are too few, or not ascending")
    is_ours = link_of(response) != "other"
    if is_ours and type(response) is not (Sigmoid if are_labels else Softmax):
        raise ValueError(f"the response {type(response).__name__} does not go with the classes")
    if isinstance(response, Softmax) and response.n_classes not in (None, len(known)):
        raise ValueError(f"the response has {response.n_classes} classes, expected {len(known)}")
    _check_coefficients(model, response, len(known) if is_ours else None)


def _check_coefficients(model: Any, response: Any, n_outputs: int | None) -> None:
    n_topics = len(model.components_)
    n_rows = len(model.coef_) if n_outputs is None and model.coef_.ndim else n_outputs
    _check_array(model, "coef_", (n_rows, n_topics), least=-_LARGEST, most=_LARGEST)
    largest = max(1.0, float(np.abs(model.coef_).max(initial=0)))
    # Of numbers gamma is a precision: no score is multiplied by it.
    gammas = () if link_of(response) in ("identity", "poisson") else (model.gamma, getattr(response, "gamma", 1.0))
    if any(_is_number(gamma) and not float(gamma) * largest <= _LARGEST for gamma in gammas):
        raise ValueError(f"gamma times the coefficients is beyond {_LARGEST:g}")


def _check_stream(model: Any, stream: Stream) -> None:
    """The state of `partial_fit`."""
    if not _is_number(stream.total_weight, 1e300) or stream.total_weight < 0:
        raise ValueError("the state of partial_fit is not complete")
    n_outputs = len(model.coef_) if model.has_targets else 0
    n_topics, n_words = model.components_.shape
    if stream.state.phi.shape != (n_words, n_topics) or stream.state.U.shape != (n_outputs, n_topics):
        raise ValueError("the state of partial_fit has other words, topics or outputs than the model")


def _check_array(
    owner: Any,
    name: str,
    shape: tuple[int | None, ...],
    *,
    above: float = -np.inf,
    least: float = -np.inf,
    most: float,
    dtypes: tuple[Any, ...] = (np.float32, np.float64),
) -> None:
    array = getattr(owner, name)
    if array.shape != shape or array.dtype not in dtypes:
        raise ValueError(f"{name} is {array.dtype} of shape {array.shape}, expected {np.dtype(dtypes[-1])} of shape {shape}")
    if not ((array > above) & (array >= least) & (array <= most)).all():
        raise ValueError(f"{name} has numbers that are not finite or out of range")
