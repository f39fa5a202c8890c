"""Classes as numbers and as responses, for baselines that know of documents without a label."""

from __future__ import annotations

from typing import Any

import numpy as np

from baselines.search import labelled


def class_numbers(y: Any, *, only_two: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """The classes in order, and the place among them of each document's; NaN where y is None or NaN."""
    y, known = np.asarray(y), labelled(y)
    # From a list the labels have their own type, where with None among them they are objects.
    classes, places = np.unique(np.array(y[known].tolist()), return_inverse=True)
    if len(classes) < 2 or (only_two and len(classes) > 2):
        raise ValueError(f"y must have two classes{'' if only_two else ' or more'}, found {len(classes)}")
    numbers = np.full(len(y), np.nan)
    numbers[known] = places
    return classes, numbers


def signs(numbers: np.ndarray, n_classes: int) -> np.ndarray:
    """Responses of 1 for a document's class and -1 for each other one, of the second class alone if there are two."""
    first = 1 if n_classes == 2 else 0
    responses = np.where(numbers[:, None] == np.arange(first, n_classes), 1.0, -1.0)
    responses[np.isnan(numbers)] = np.nan
    return responses
