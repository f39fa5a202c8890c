"""Targets as users give them: which are numbers, levels, classes or labels (`method.targets`), and the weights of classes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets

from mirrorlda.data.corpus.corpus import Corpus
from mirrorlda.method.responses import OF_NUMBERS, Ordinal, Response, Sigmoid, Softmax, check_gamma
from mirrorlda.method.targets.classes import Classes, Labels
from mirrorlda.method.targets.numbers import Levels, Numbers, divisor
from mirrorlda.method.targets.record import Targets
from mirrorlda.training.sources import Source

# Sums of larger weights, and of their squares, leave the range of float32.
LARGEST_WEIGHT = 1e12
# Beyond it, and closer to each other than its inverse, targets leave the range of float32.
_LARGEST_TARGET = 1e30
# A target with more values than this is not taken for a class.
_MOST_CLASSES = 100_000


def encode_numbers(given: Source, response: Any, gamma: float, *, names: list[str] | None) -> Numbers:
    """What numbers are under a response, one of `OF_NUMBERS` by name or one of the user's own."""
    check_gamma(gamma)
    largest = max(float(np.abs(y).max()) for y, _ in given.labelled_targets())
    if not largest <= _LARGEST_TARGET:
        raise ValueError(f"targets y must be at most {_LARGEST_TARGET:g} in size, found {largest:g}")
    first = next(given.labelled_targets())[0]
    is_flat, n_targets = first.ndim == 1, _columns(first).shape[1]
    mean, scale = np.zeros(n_targets), np.ones(n_targets)
    if not isinstance(response, str):
        if isinstance(response, type) or not hasattr(response, "curvature"):
            raise ValueError(_no_response(response))
        return Numbers(response, is_flat, response, names, mean=mean, scale=scale)
    if response not in OF_NUMBERS:
        raise ValueError(_no_response(response))
    kind = OF_NUMBERS[response]
    if kind is Ordinal:
        if n_targets != 1:
            raise ValueError(f"an ordinal response has one target, but y has {n_targets}")
        levels = np.unique(np.concatenate([np.unique(y) for y, _ in given.labelled_targets()]))
        if not 2 <= len(levels) <= 100:
            raise ValueError(f"an ordinal response needs 2 to 100 levels, but y has {len(levels)}: use 'gaussian'")
        return Levels(Ordinal(len(levels), gamma), is_flat, response, names, mean=mean, scale=scale, levels=levels)
    if kind.standardises:
        mean, scale = _mean_and_scale(given)
    built: Response = kind(gamma=gamma) if "gamma" in {field.name for field in fields(kind)} else kind()
    return Numbers(built, is_flat, response, names, mean=mean, scale=scale)


def encode_classes(classes: np.ndarray, response: Any, gamma: float, *, several: bool) -> Classes | Labels:
    """What classes are, or, with `several` a document, labels."""
    check_gamma(gamma)
    if isinstance(response, str | type):
        raise ValueError(f"response must be an object like mirrorlda.responses.Response, got {response!r}")
    if response is not None and not hasattr(response, "curvature"):
        raise ValueError(f"response must inherit from mirrorlda.responses.Response, got {response!r}")
    if several:
        return Labels(Sigmoid(gamma) if response is None else response, classes)
    if len(classes) < 2:
        raise ValueError(f"y must have at least two classes, got one class: {classes.tolist()}")
    return Classes(Softmax(gamma, len(classes)) if response is None else response, classes)


def classes_of(given: Source) -> np.ndarray:
    """The classes among targets, which must not be too many."""
    classes: np.ndarray = np.array([])
    for number, (y, _) in enumerate(given.labelled_targets()):
        classes = np.unique(y) if number == 0 else np.unique(np.concatenate([classes, np.unique(y)]))
        if len(classes) > _MOST_CLASSES:
            raise ValueError(f"the target has more than {_MOST_CLASSES} values: is it a class?")
    # Each of them more than once: of values that are all different, scikit-learn warns.
    check_classification_targets(np.repeat(classes, 3))
    return classes


def class_weigher(class_weight: Any, targets: Targets, given: Source) -> Callable[[np.ndarray], np.ndarray] | None:
    """Weights of documents by their classes or labels, as scikit-learn has them."""
    if class_weight is None:
        return None
    named = _balanced(targets, given) if isinstance(class_weight, str) and class_weight == "balanced" else class_weight
    if isinstance(named, dict) and isinstance(targets, Classes):
        # All classes at once: a few documents may have none of those that are named.
        named = dict(zip(targets.known.tolist(), _weights_of(named, targets.known).tolist(), strict=True))
    weigh = _Weigher(named)
    largest = 0.0
    for y, weights in given.labelled_targets():
        factors = weigh(y)
        if not (np.isfinite(factors).all() and (factors >= 0).all()):
            largest = np.inf
            break
        largest = max(largest, float((factors * weights).max()))
    if not 1 / LARGEST_WEIGHT <= largest <= LARGEST_WEIGHT:
        between = f"between {1 / LARGEST_WEIGHT:g} and {LARGEST_WEIGHT:g}"
        expected = f"class_weight must be finite, not negative, and the largest weight of a document {between}"
        raise ValueError(f"{expected}; got {class_weight!r}")
    return weigh


def without_minus_one(y: Any) -> tuple[Any, np.ndarray | None]:
    """scikit-learn's convention for documents without a label, where it cannot be one of two classes."""
    array = np.asarray(y)
    if array.ndim != 1 or array.dtype.kind != "i" or len(np.unique(array[array != -1])) < 2 or not (array == -1).any():
        return y, None
    labelled = array != -1
    warnings.warn(
        f"y is -1 for {(~labelled).sum()} documents, which are taken as unlabelled; name the class otherwise if it is one",
        stacklevel=4,
    )
    return np.where(labelled, array, array[np.argmax(labelled)]), labelled


def check_target(estimator: str, corpus: Corpus, *, numbers: bool) -> None:
    """That a corpus holds targets that the estimator can learn."""
    target = corpus.target
    if target is None or (numbers and target.kind != "numbers"):
        wanted = "numbers as targets" if numbers else "targets"
        held = ("no targets" if numbers else "none") if target is None else f"{target.kind} as targets"
        raise ValueError(f"{estimator} needs {wanted}, but {corpus!r} holds {held}")
    if not corpus.select(labelled=True).n_docs:
        raise ValueError(f"no document of {corpus!r} has a target")


@dataclass(frozen=True)
class _Weigher:
    class_weight: Any

    def __call__(self, y: np.ndarray) -> np.ndarray:
        return _weights_of(self.class_weight, y)


def _weights_of(class_weight: Any, y: np.ndarray) -> np.ndarray:
    """As scikit-learn has them, but for classes that are numbers in quotes."""
    if not (isinstance(class_weight, dict) and y.ndim == 1):
        weights: np.ndarray = compute_sample_weight(class_weight, y)
        return weights
    classes, codes = np.unique(y, return_inverse=True)
    unweighted = [name for name in classes.tolist() if name not in class_weight]
    if unweighted and len(classes) - len(unweighted) != len(class_weight):
        raise ValueError(f"The classes, {unweighted}, are not in class_weight")
    of_each: np.ndarray = np.array([class_weight.get(name, 1.0) for name in classes.tolist()])[codes]
    return of_each


def _balanced(targets: Targets, given: Source) -> Any:
    """Weights by which all classes, or both values of every label, weigh the same."""
    n_docs = sum(len(y) for y, _ in given.labelled_targets())
    if isinstance(targets, Labels):
        ones = sum(np.asarray(y, np.int64).sum(axis=0) for y, _ in given.labelled_targets())
        return [
            {value: n_docs / (2 * n if 0 < n < n_docs else n or 1) for value, n in ((0, n_docs - k), (1, k))}
            for k in np.asarray(ones).tolist()
        ]
    assert isinstance(targets, Classes)
    n_each = np.zeros(len(targets.known), np.int64)
    for y, _ in given.labelled_targets():
        n_each += np.bincount(np.searchsorted(targets.known, y), minlength=len(n_each))
    return dict(zip(targets.known.tolist(), (n_docs / (len(n_each) * n_each)).tolist(), strict=True))


def _mean_and_scale(given: Source) -> tuple[np.ndarray, np.ndarray]:
    """The mean of each output, and the scale by which its targets are divided."""

    def parts() -> Any:
        return ((_columns(y), weights) for y, weights in given.labelled_targets())

    total = sum(weights.sum() for _, weights in parts())
    mean: np.ndarray = sum((y * weights[:, None]).sum(axis=0) for y, weights in parts()) / total
    size = np.max([np.abs(y - mean).max(axis=0) for y, _ in parts()], axis=0)
    # Rounding of the mean of a constant target is no spread.
    size[size <= 1e-12 * np.abs(mean)] = 0
    if (small := (size > 0) & (size < 1 / _LARGEST_TARGET)).any():
        raise ValueError(
            f"targets y differ from their mean by at most {size[small][0]:g}, too little to be told apart: rescale them"
        )
    squares, sign = np.zeros(len(mean)), np.zeros(len(mean))
    for y, weights in parts():
        relative = (y - mean) / divisor(size)
        squares += (relative**2 * weights[:, None]).sum(axis=0)
        # The sign, that of the first target clearly off the mean, makes fits of y and -y mirror images, the random start
        # of U included.
        first = relative[np.argmax(np.abs(relative) > 0.5, axis=0), np.arange(len(mean))]
        sign = np.where((sign == 0) & (np.abs(first) > 0.5), np.sign(first), sign)
    return mean, np.where(sign < 0, -1, 1) * size * np.sqrt(squares / total)


def _columns(y: np.ndarray) -> np.ndarray:
    return y.reshape(len(y), -1)


def _no_response(response: Any) -> str:
    return f"response must be one of {tuple(OF_NUMBERS)} or an object that inherits from Response, got {response!r}"
