"""Targets that are numbers: any numbers, or the few levels of an ordered scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mirrorlda.data.corpus.corpus import Corpus
from mirrorlda.method.responses import Ordinal
from mirrorlda.method.targets.record import Output, Targets, chosen

# Links under which a score, or all of them, become a number.
_OF_NUMBERS = ("identity", "poisson", "ordinal")


@dataclass(frozen=True, eq=False)
class Numbers(Targets):
    """Numbers, as they are or standardised.

    Attributes
    ----------
    is_flat : bool
        Whether y has one dimension.
    asked_for : str or Response
        The name that chose the response, or the user's own.
    target_names : list of str, or None
        Of a corpus.
    """

    is_flat: bool
    asked_for: Any
    target_names: list[str] | None = None
    task = "regression"
    corpus_kind = "numbers"

    @property
    def n_targets(self) -> int:
        return len(self.mean)

    @property
    def link(self) -> str:
        return link if (link := super().link) in _OF_NUMBERS else "other"

    @property
    def is_standardised(self) -> bool:
        return isinstance(self.asked_for, str) and self.response.standardises

    @property
    def names(self) -> list[str]:
        return self._output_names(self.n_targets)

    def coefficients(self, U: np.ndarray) -> np.ndarray:
        # theta sums to one, so the targets' mean goes into the coefficients.
        return U.astype(np.float64) * self.scale[:, None] + self.mean[:, None] if self.is_standardised else U

    def U_of(self, coefficients: np.ndarray) -> np.ndarray:
        if not self.is_standardised:
            return coefficients
        U: np.ndarray = (coefficients - self.mean[:, None]) / divisor(self.scale)[:, None]
        return U

    @property
    def placeholder(self) -> Any:
        return self.mean

    def aligned(self, y: np.ndarray, corpus: Corpus) -> np.ndarray:
        assert corpus.target is not None
        if corpus.target.kind != "numbers":
            raise ValueError(f"TopicRegressor needs numbers as targets, but {corpus!r} holds {corpus.target.kind} as targets")
        names, known = list(corpus.target.names), self.target_names
        if len(names) != self.n_targets or (len(names) > 1 and known not in (None, names)):
            fitted = f"{self.n_targets} columns" if known is None else known
            raise ValueError(f"the targets of the corpus are {names}, those of the model {fitted}")
        return y

    def encode(self, y: np.ndarray, dtype: Any) -> np.ndarray:
        y = np.asarray(y, np.float64).reshape(len(y), -1)
        if y.shape[1] != self.n_targets:
            raise ValueError(f"y has {y.shape[1]} outputs, but the model has {self.n_targets}")
        if self.is_standardised:
            y = ((y - self.mean) / divisor(self.scale)).astype(dtype)
        return self.response.checked(y)

    def decode(self, y: np.ndarray) -> np.ndarray:
        """The y that `encode` was given."""
        given: np.ndarray = y.astype(np.float64) * self.scale + self.mean
        return given

    def predict(self, scores: np.ndarray) -> np.ndarray:
        # In double: targets far from zero leave few digits of float32 for their differences.
        predicted = self.response.predict(scores)
        scaled: np.ndarray = (predicted.astype(np.float64) * self.scale + self.mean).astype(scores.dtype)
        return scaled

    def columns(self, scores: np.ndarray) -> dict[str, np.ndarray]:
        names: Any = self.target_names or range(self.n_targets)
        endings = [""] if self.is_flat else [f"_{name}" for name in names]
        predicted = self.predict(scores)
        return {f"prediction{ending}": predicted[:, output] for output, ending in enumerate(endings)}

    def values(self, scores: np.ndarray) -> tuple[list[str], np.ndarray]:
        predicted = self.predict(np.asarray(scores, np.float64))
        return self._output_names(predicted.shape[1]), predicted

    def output(self, name: Any, scores: np.ndarray) -> Output:
        names = self._output_names(self.predict(scores[None]).shape[1])
        number = chosen(name, names, 0)

        def of_scores(scores: np.ndarray) -> np.ndarray:
            return self.predict(scores)[:, number].astype(np.float64)

        return Output(names[number], "prediction", of_scores, lambda scores: self._slopes(scores, number))

    def _slopes(self, scores: np.ndarray, number: int) -> np.ndarray:
        scale = self.scale[number] if number < len(self.scale) else 1.0
        slopes: np.ndarray = scale * self.response.slopes(scores, number)
        return slopes

    def _output_names(self, n_outputs: int) -> list[str]:
        """A response of the user's own may predict more or fewer numbers than a document has."""
        if self.target_names is not None:
            return list(self.target_names)
        return ["prediction"] if n_outputs == 1 else [f"output {number}" for number in range(n_outputs)]


@dataclass(frozen=True, eq=False)
class Levels(Numbers):
    """A few ordered numbers, such as stars; `levels` are all of them."""

    @property
    def placeholder(self) -> Any:
        return self.levels[0]

    def possible(self, y: np.ndarray) -> np.ndarray:
        return np.isin(y.reshape(len(y)), self.levels)

    def encode(self, y: np.ndarray, dtype: Any) -> np.ndarray:
        y = np.asarray(y, np.float64).reshape(len(y), -1)
        if y.shape[1] != 1:
            raise ValueError(f"y has {y.shape[1]} outputs, but the model has 1")
        numbers = np.minimum(np.searchsorted(self.levels, y), len(self.levels) - 1)
        if (wrong := self.levels[numbers] != y).any():
            place = int(np.argmax(wrong))
            raise ValueError(f"y[{place}] is {y[place, 0]:g}, which is not one of the levels {self.levels.tolist()}")
        return self.response.checked(numbers)

    def decode(self, y: np.ndarray) -> np.ndarray:
        given: np.ndarray = self.levels[y]
        return given

    def predict(self, scores: np.ndarray) -> np.ndarray:
        assert isinstance(self.response, Ordinal)
        expected: np.ndarray = self.response.probabilities(scores) @ self.levels[:, None].astype(scores.dtype)
        return expected

    def columns(self, scores: np.ndarray) -> dict[str, np.ndarray]:
        probabilities = self.probabilities(scores)
        assert probabilities is not None
        named = zip(self._level_names(), probabilities.T, strict=True)
        return super().columns(scores) | {f"probability_{level}": p for level, p in named}

    def _slopes(self, scores: np.ndarray, number: int) -> np.ndarray:
        assert isinstance(self.response, Ordinal)
        return self.response.level_slopes(scores, self.levels)

    def _level_names(self) -> list[str]:
        """Levels in few digits, or in all where few do not tell them apart."""
        short = [f"{level:g}" for level in self.levels]
        return short if len(set(short)) == len(short) else [repr(float(level)) for level in self.levels]


def divisor(scale: np.ndarray) -> np.ndarray:
    """A constant target has the scale 0, and is divided by 1."""
    return np.where(scale == 0, 1.0, scale)
