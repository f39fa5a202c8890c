"""Targets that are classes, one a document, or labels, any number of them a document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mirrorlda.data.corpus.corpus import Corpus
from mirrorlda.method.responses import Sigmoid
from mirrorlda.method.targets.record import Output, Targets, chosen


@dataclass(frozen=True, eq=False)
class Classes(Targets):
    """One class a document; `known` are all of them, in ascending order."""

    known: np.ndarray
    task = "classification"

    @property
    def corpus_kind(self) -> str:
        return "numbers" if self.known.dtype.kind == "f" else "classes"

    @property
    def names(self) -> list[str]:
        return [str(name) for name in self.known.tolist()]

    @property
    def link(self) -> str:
        return "softmax" if super().link == "softmax" else "other"

    @property
    def placeholder(self) -> Any:
        return self.known[0]

    def aligned(self, y: np.ndarray, corpus: Corpus) -> np.ndarray:
        _check_dimension(self, y, corpus, several=False)
        if (y.dtype.kind in "US") == (self.known.dtype.kind in "USO"):
            return y
        # CSV has "1" and "True" where JSON lines and Parquet have 1 and true.
        places = {_written(label): place for place, label in enumerate(self.known.tolist())}
        numbers, which = np.unique(y, return_inverse=True)
        if unknown := [value for value in numbers.tolist() if _written(value) not in places]:
            raise ValueError(
                f"the classes of the model are {self.known[:20].tolist()}, those of the corpus {numbers[:20].tolist()}: "
                f"{unknown[0]!r} is not one of the model's"
            )
        return self.known[[places[_written(value)] for value in numbers.tolist()]][which]

    def shaped(self, y: np.ndarray) -> np.ndarray:
        y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
        if y.ndim != 1:
            raise ValueError(f"y has shape {y.shape}, but the model was fitted with one class a document")
        return y

    def possible(self, y: np.ndarray) -> np.ndarray:
        return np.isin(y, self.known)

    def encode(self, y: np.ndarray, dtype: Any) -> np.ndarray:
        numbers = np.minimum(np.searchsorted(self.known, y), len(self.known) - 1)
        unknown = np.flatnonzero(self.known[numbers] != y)
        if len(unknown):
            label = y[unknown[:1]].tolist()[0]
            raise ValueError(f"y[{unknown[0]}] is {label!r}, which is not one of the classes {self.known.tolist()}")
        return numbers

    def topic_of(self, key: Any, U: np.ndarray) -> int | None:
        return _topic_of(key, self.known, U)

    def predict(self, scores: np.ndarray) -> np.ndarray:
        classes: np.ndarray = self.known[self.response.predict(scores)]
        return classes

    def columns(self, scores: np.ndarray) -> dict[str, np.ndarray]:
        return {"prediction": self.predict(scores)} | _probability_columns(self, scores)

    def values(self, scores: np.ndarray) -> tuple[list[str], np.ndarray]:
        names, values = self.names, _gamma(self) * np.asarray(scores, np.float64)
        if values.shape[1] != len(names):
            return _score_names(values.shape[1]), values
        if len(names) == 2:
            return names[1:], values[:, 1:] - values[:, :1]
        return names, values - values.mean(axis=1, keepdims=True)

    def output(self, name: Any, scores: np.ndarray) -> Output:
        if len(scores) != len(self.known):
            return _score_output(name, _score_names(len(scores)), scores)
        number = chosen(name, self.names, 1 if len(scores) == 2 else int(scores.argmax()))
        one = np.eye(len(scores))[number]
        if self.link == "other":
            # How such scores become probabilities is not known: classes are compared with the mean of the others.
            weights = one - (1 - one) / (len(scores) - 1)
            return Output(self.names[number], "score", lambda scores: scores @ weights, lambda scores: weights)
        gamma = _gamma(self)

        def slopes(scores: np.ndarray) -> np.ndarray:
            gradient: np.ndarray = gamma * (one - _others(gamma * scores, number))
            return gradient

        return Output(self.names[number], "log odds", lambda scores: _log_odds(gamma * scores, number), slopes)


@dataclass(frozen=True, eq=False)
class Labels(Targets):
    """Any number of labels a document, each there or not; `known` are all of them."""

    known: np.ndarray
    task = "multilabel"
    corpus_kind = "labels"

    @property
    def names(self) -> list[str]:
        return [str(name) for name in self.known.tolist()]

    @property
    def link(self) -> str:
        return "sigmoid" if super().link == "sigmoid" else "other"

    @property
    def placeholder(self) -> Any:
        return 0

    def aligned(self, y: np.ndarray, corpus: Corpus) -> np.ndarray:
        _check_dimension(self, y, corpus, several=True)
        places = {label: place for place, label in enumerate(self.known.tolist())}
        if unknown := [label for label in corpus.labels if label not in places]:
            raise ValueError(f"the corpus has the label {unknown[0]!r}, which is not one of {self.known.tolist()[:20]}")
        aligned = np.zeros((len(y), len(places)), y.dtype)
        aligned[:, [places[label] for label in corpus.labels]] = y
        return aligned

    def encode(self, y: np.ndarray, dtype: Any) -> np.ndarray:
        y = Sigmoid().checked(y).astype(np.int8, copy=False)
        if y.shape[1] != len(self.known):
            raise ValueError(f"y has {y.shape[1]} labels, but the model has {len(self.known)}")
        return y

    def topic_of(self, key: Any, U: np.ndarray) -> int | None:
        return _topic_of(key, self.known, U)

    def predict(self, scores: np.ndarray) -> np.ndarray:
        return self.response.predict(scores)

    def columns(self, scores: np.ndarray) -> dict[str, np.ndarray]:
        predicted = self.predict(scores)
        columns = {f"prediction_{name}": predicted[:, number] for number, name in enumerate(self.known)}
        return columns | _probability_columns(self, scores)

    def values(self, scores: np.ndarray) -> tuple[list[str], np.ndarray]:
        n_scores = scores.shape[1]
        names = self.names if n_scores == len(self.known) else _score_names(n_scores)
        return names, _gamma(self) * np.asarray(scores, np.float64)

    def output(self, name: Any, scores: np.ndarray) -> Output:
        if len(scores) != len(self.known) or self.link == "other":
            return _score_output(name, self.names if len(scores) == len(self.known) else _score_names(len(scores)), scores)
        number, gamma = chosen(name, self.names, int(scores.argmax())), _gamma(self)
        one = gamma * np.eye(len(scores))[number]
        return Output(self.names[number], "log odds", lambda scores: gamma * scores[:, number], lambda scores: one)


def _gamma(targets: Targets) -> float:
    return float(getattr(targets.response, "gamma", 1.0)) if targets.link != "other" else 1.0


def _score_names(n_scores: int) -> list[str]:
    return [f"score {number}" for number in range(n_scores)]


def _probability_columns(targets: Classes | Labels, scores: np.ndarray) -> dict[str, np.ndarray]:
    probabilities = targets.probabilities(scores)
    return {} if probabilities is None else {f"probability_{c}": p for c, p in zip(targets.known, probabilities.T, strict=True)}


def _check_dimension(targets: Targets, y: np.ndarray, corpus: Corpus, *, several: bool) -> None:
    assert corpus.target is not None
    if several != (y.ndim == 2):
        fitted = "several labels" if several else "one class"
        raise ValueError(f"the model was fitted with {fitted} a document, but {corpus!r} holds {corpus.target.kind}")


def _score_output(name: Any, names: list[str], scores: np.ndarray) -> Output:
    number = chosen(name, names, int(scores.argmax()))
    one = np.eye(len(scores))[number]
    return Output(names[number], "score", lambda scores: scores @ one, lambda scores: one)


def _topic_of(key: Any, known: np.ndarray, U: np.ndarray) -> int:
    found = np.flatnonzero(known == key)
    if not len(found):
        raise ValueError(f"seed_words names the class {key!r}, which is not one of {known.tolist()}")
    return int(np.argmax(U[found[0]]))


def _written(value: Any) -> str:
    """A class as a text file has it."""
    if isinstance(value, float):
        return f"{value:g}"
    return str(value).lower() if isinstance(value, bool) else str(value).strip().lower()


def _log_odds(scores: np.ndarray, number: int) -> np.ndarray:
    """ln(p / (1 - p)) of one class under the softmax: its score over the logarithm of the sum of the others' exponentials."""
    others = np.delete(scores, number, axis=1)
    largest = others.max(axis=1)
    log_odds: np.ndarray = scores[:, number] - largest - np.log(np.exp(others - largest[:, None]).sum(axis=1))
    return log_odds


def _others(scores: np.ndarray, number: int) -> np.ndarray:
    """Probabilities of the classes given that it is not this one."""
    others = np.where(np.arange(len(scores)) == number, -np.inf, scores)
    exponentials = np.exp(others - others.max())
    p: np.ndarray = exponentials / exponentials.sum()
    return p
