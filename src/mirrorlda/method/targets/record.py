"""What the targets of a fit are, as a value: what the response sees, what users get back, columns and names.

`estimators.given_targets` finds the record of users' targets: `Numbers` or `Levels`, `Classes` or `Labels`; a model without
targets has `NoTargets`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from mirrorlda.data.corpus.corpus import Corpus
from mirrorlda.method.responses import Response, Words, link_of

_MOST_NAMES = 20


def array_of(y: Any) -> np.ndarray:
    """Targets as a dense array."""
    array = np.asarray(y.toarray() if hasattr(y, "toarray") else y)
    # NumPy would make the string "nan" of a NaN among strings in a list.
    return np.array(y, object) if array.dtype.kind in "US" and isinstance(y, list | tuple) else array


def without_missing(y: Any) -> tuple[Any, np.ndarray | None]:
    """y with a placeholder wherever None or NaN stands, and which documents have a target; None where all have one."""
    array = np.asarray(y) if y is not None and not hasattr(y, "toarray") else None
    if array is None or array.ndim == 0 or array.dtype.kind not in "fO":
        return y, None
    if array.dtype.kind == "f":
        missing = np.isnan(array)
    else:
        missing = np.array([v is None or type(v).__name__ == "NAType" or v != v for v in array.ravel()], bool).reshape(
            array.shape
        )
    wide = missing.reshape(len(array), -1)
    absent = wide.any(axis=1)
    if (partly := absent & ~wide.all(axis=1)).any():
        raise ValueError(f"y[{np.argmax(partly)}] has some targets but not all: give all of a document, or none")
    if not absent.any():
        return y, None
    if absent.all():
        raise ValueError(f"y has no targets: all {len(absent)} are None or NaN")
    filled = array.copy()
    filled[absent] = filled[np.argmin(absent)]
    if filled.dtype.kind == "O" and len({type(v) for v in filled.ravel()}) == 1:
        filled = np.array(filled.tolist())
    return filled, ~absent


@dataclass(frozen=True)
class Output:
    """One number that a model says of a document, as a function of the scores U theta: what an explanation is of.

    Attributes
    ----------
    name : str
        The target, class or label.
    unit : {"prediction", "log odds", "score"}
        In the unit of y; logarithm of p / (1 - p); what a classifier with a response of its user's own has.
    of_scores : function from scores (n_docs, n_outputs) to values (n_docs,)
    slopes : function from the scores (n_outputs,) of one document to the gradient of its value
    """

    name: str
    unit: str
    of_scores: Callable[[np.ndarray], np.ndarray]
    slopes: Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class Targets:
    """What all kinds have in common.

    Attributes
    ----------
    response : Response
    task : {"regression", "classification", "multilabel", "topics"}
    mean, scale : ndarray
        Of standardised numbers: those of y.
    levels : ndarray
        Of ordered categories.
    """

    response: Response
    task = "topics"
    mean: np.ndarray = field(default_factory=lambda: np.zeros(0), kw_only=True)
    scale: np.ndarray = field(default_factory=lambda: np.zeros(0), kw_only=True)
    levels: np.ndarray = field(default_factory=lambda: np.zeros(0), kw_only=True)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(_same(getattr(self, field.name), getattr(other, field.name)) for field in fields(self))

    __hash__ = None  # type: ignore[assignment]

    @property
    def corpus_kind(self) -> str | None:
        """What kind of target a corpus holds them as: "numbers", "classes" or "labels"."""
        return None

    @property
    def names(self) -> list[str]:
        """What is predicted: targets, classes or labels."""
        return []

    @property
    def link(self) -> str:
        """How scores become predictions, as a page can compute it; "other" where it cannot."""
        return link_of(self.response)

    def coefficients(self, U: np.ndarray) -> np.ndarray:
        """U as users read it."""
        return U

    def U_of(self, coefficients: np.ndarray) -> np.ndarray:
        """The U that `coefficients` was given."""
        return coefficients

    @property
    def placeholder(self) -> Any:
        """What stands for the target of a document that has none."""
        raise NotImplementedError

    def aligned(self, y: np.ndarray, corpus: Corpus) -> np.ndarray:
        """Targets of a corpus in the terms of the model; a ValueError where they are others."""
        return y

    def shaped(self, y: np.ndarray) -> np.ndarray:
        """Targets in the shape of those of the fit; a ValueError where they have another."""
        return y

    def possible(self, y: np.ndarray) -> np.ndarray:
        """Which targets are among those that the model knows."""
        return np.ones(len(y), bool)

    def encode(self, y: np.ndarray, dtype: Any) -> np.ndarray:
        """Targets as the response takes them; numbers that are standardised have this type."""
        raise NotImplementedError

    def predict(self, scores: np.ndarray) -> np.ndarray:
        """What users get back: classes (n_docs,), labels (n_docs, n_labels) or numbers (n_docs, n_targets)."""
        raise NotImplementedError

    def columns(self, scores: np.ndarray) -> dict[str, np.ndarray]:
        """Predictions as columns of a table."""
        return {}

    def probabilities(self, scores: np.ndarray) -> np.ndarray | None:
        """Of each class, label or level; None where the response has none."""
        response: Any = self.response
        return None if self.link not in ("softmax", "sigmoid", "ordinal") else response.probabilities(scores)

    def values(self, scores: np.ndarray) -> tuple[list[str], np.ndarray]:
        """Names (n_values), and what topics have an effect on, (n_docs, n_values).

        Numbers as they are predicted; of two classes log odds of the second, of more the logarithm of each one's probability over
        the mean of all; of labels log odds of each.
        """
        return [], np.zeros((len(scores), 0))

    def output(self, name: Any, scores: np.ndarray) -> Output:
        """The output of that name; without one, that which the scores (n_outputs,) of a document suggest."""
        raise NotImplementedError

    def topic_of(self, key: Any, U: np.ndarray) -> int | None:
        """The topic that speaks most, at this U, for the class or label that `key` names; None where keys are not of these."""
        return None


@dataclass(frozen=True, eq=False)
class NoTargets(Targets):
    """Documents alone: BP-LDA."""

    response: Response = field(default_factory=Words)

    def encode(self, y: np.ndarray, dtype: Any) -> np.ndarray:
        return y

    def predict(self, scores: np.ndarray) -> np.ndarray:
        return scores


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    return bool(a == b)


def chosen(name: Any, names: list[str], default: int) -> int:
    if name is None:
        return default
    if str(name) not in names:
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        raise ValueError(f"the model has no output {name!r}; its outputs are {', '.join(names[:_MOST_NAMES])}{more}")
    return names.index(str(name))
