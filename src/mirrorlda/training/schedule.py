"""How long and how fast to learn: batches, rates, and what "auto" makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Protocol

import numpy as np

from mirrorlda.method.inference import check_whole
from mirrorlda.method.responses import Response
from mirrorlda.training import mirror_descent
from mirrorlda.training.sources import Examples

# Beyond a million documents an automatic batch grows, to at most 32 times its size.
_LARGEST_BATCH = 32
# Rates are relative to the root mean square over all words, which rare ones make small: beyond so many words an automatic rate
# falls, so that the steps on the others stay as long.
_FEW_WORDS = 10_000
# For coef_learning_rate="auto": the rate of plain steps, the part of a Newton step, and the damping of that.
_PLAIN, _NEWTON, _DAMPING = 1.0, 0.3, 3.0
# For word_dropout="auto": documents of 1,600 distinct words would lose all of them, and no document loses more than half.
_ALL_DROPPED, _MOST_DROPPED = 1600, 0.5
# Fraction by which the first steps move a guided topic towards its seed words.
_GUIDE = 0.02


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to learn.

    The learning rates fall linearly to zero over the whole run ("linear") or stay ("constant"). Running averages begin
    after the fraction `average_from` of all steps; from 1 on there are none. The batch size grows geometrically from
    the first to the last epoch. In every step a fraction `word_dropout` of the documents' words is left out.
    """

    n_epochs: int
    batch_sizes: tuple[int, int]
    learning_rate: float
    coef_learning_rate: float
    decay: str
    average_from: float
    beta: float
    word_learning_rate: float = 0.0
    word_dropout: float = 0.0
    guide: float = 0.0
    theme_weight: float = 0.0
    use_weight: float = 0.0
    coef_damping: float | None = None

    def batch_size(self, epoch: int) -> int:
        first, last = self.batch_sizes
        growth: float = (last / first) ** (epoch / max(1, self.n_epochs - 1))
        return round(first * growth)

    def n_steps(self, n_docs: int) -> int:
        return sum(-(-n_docs // self.batch_size(epoch)) for epoch in range(self.n_epochs))

    def rates(self, step: int, n_steps: int, total_weight: float) -> mirror_descent.Rates:
        """Rates of step number `step` of `n_steps`."""
        done = step / n_steps
        factor = 1 - done if self.decay == "linear" else 1.0
        return self._rates(factor, total_weight, average=1.0 if done >= self.average_from else 0.0)

    def stream_rates(self, step: int, total_weight: float) -> mirror_descent.Rates:
        """Rates for a stream of unknown length: falling as 1 / sqrt(1 + step / 100), averages weighted by the step."""
        factor = float(1 / np.sqrt(1 + step / 100))
        return self._rates(factor, total_weight, average=0.0 if self.average_from >= 1 else step + 1.0)

    def _rates(self, factor: float, total_weight: float, average: float) -> mirror_descent.Rates:
        return mirror_descent.Rates(
            phi=self.learning_rate * factor,
            U=self.coef_learning_rate * factor,
            prior=(self.beta - 1) / total_weight,
            average=average,
            words=self.word_learning_rate * factor,
            guide=self.guide * factor,
            damping=self.coef_damping,
        )


class LearningSettings(Protocol):
    """The parameters of an estimator that a schedule is made from."""

    beta: float
    n_epochs: int
    batch_size: int | tuple[int, int] | str
    learning_rate: float | str
    learning_rate_decay: str
    average_from: float
    validation_fraction: float
    n_iter_no_change: int
    coef_learning_rate: float | str
    word_learning_rate: float
    word_dropout: float | str
    readability: float
    # learning_rate="auto", up to _FEW_WORDS words; None: there is no such choice.
    auto_learning_rate: ClassVar[Any]
    # batch_size="auto": a batch is this part of the documents, and has at most so many.
    auto_batch: tuple[int, int]


def schedule_of(
    settings: LearningSettings, examples: Examples, n_docs: int, response: Response, n_epochs: int | None = None
) -> Schedule:
    """How `n_docs` documents, of which `examples` are some, are learned from."""
    check_whole("n_iter_no_change", settings.n_iter_no_change)
    learning_rate = _learning_rate(settings, examples.documents.n_words)
    for name in ("word_learning_rate", "average_from", "readability"):
        _check_amount(settings, name)
    if not 1 <= settings.beta < np.inf:
        raise ValueError(f"beta must be at least 1, got {settings.beta!r}: below 1 the prior of the topics has no bound")
    if settings.learning_rate_decay not in ("linear", "constant"):
        raise ValueError(f"learning_rate_decay must be 'linear' or 'constant', got {settings.learning_rate_decay!r}")
    if not 0 < settings.validation_fraction < 1:
        raise ValueError(f"validation_fraction must be between 0 and 1, got {settings.validation_fraction!r}")
    words_per_document = max(1.0, float(np.average(examples.lengths, weights=examples.weights)))
    coef_rate, coef_damping = _coef_learning_rate(settings, response, response.n_outputs(examples.y))
    return Schedule(
        batch_sizes=_batch_sizes(settings, n_docs),
        n_epochs=n_epochs_of(settings) if n_epochs is None else n_epochs,
        learning_rate=learning_rate,
        coef_learning_rate=coef_rate / response.curvature(examples.y, examples.weights),
        decay=settings.learning_rate_decay,
        average_from=settings.average_from,
        beta=settings.beta,
        word_learning_rate=settings.word_learning_rate,
        word_dropout=_word_dropout(settings, examples),
        guide=_GUIDE,
        theme_weight=settings.readability * response.theme_weight / words_per_document,
        use_weight=settings.readability * response.use_weight,
        coef_damping=coef_damping,
    )


def n_epochs_of(settings: LearningSettings) -> int:
    check_whole("n_epochs", settings.n_epochs)
    return int(settings.n_epochs)


def _learning_rate(settings: LearningSettings, n_words: int) -> float:
    """The rate of the topics, for a vocabulary of `n_words` words."""
    automatic: float | None = settings.auto_learning_rate
    if automatic is not None and isinstance(settings.learning_rate, str) and settings.learning_rate == "auto":
        return of_many_words(automatic, n_words)
    return _check_amount(settings, "learning_rate", otherwise="" if automatic is None else "'auto' or ")


def _coef_learning_rate(settings: LearningSettings, response: Response, n_outputs: int) -> tuple[float, float | None]:
    """The rate of the coefficients, and the damping where they take Newton steps.

    Where topics differ in one direction only, they lie along it from the start and their coefficients match: Newton steps would
    cost 0.002 of R2 on reviews, and probabilities would be too extreme. The start knows less about several outputs: there Newton
    steps gain 0.05 of R2 on six ratings of hotels.
    """
    if isinstance(settings.coef_learning_rate, str) and settings.coef_learning_rate == "auto":
        return (_PLAIN, None) if response.has_one_direction(n_outputs) else (_NEWTON, _DAMPING)
    return _check_amount(settings, "coef_learning_rate", otherwise="'auto' or "), None


def _word_dropout(settings: LearningSettings, examples: Examples) -> float:
    """The fraction of each document's words that a step leaves out.

    Long documents repeat themselves and can lose more: measured on documents of 20 to 280 distinct words and phrases, 0.1 is best
    for the shortest and 0.4 or more for the longest.
    """
    wanted = settings.word_dropout
    if isinstance(wanted, str) and wanted == "auto":
        distinct = float(np.average(np.diff(examples.documents.indptr), weights=examples.weights))
        return min(_MOST_DROPPED, float(np.sqrt(distinct / _ALL_DROPPED)))
    if not (isinstance(wanted, Real) and 0 <= float(wanted) < 1):
        raise ValueError(f"word_dropout must be 'auto' or a fraction of at least 0 and below 1, got {wanted!r}")
    return float(wanted)


def of_many_words(rate: float, n_words: int) -> float:
    """A rate of the topics that suits few words, for a vocabulary of so many."""
    return rate * float(np.sqrt(min(1.0, _FEW_WORDS / n_words)))


def _check_amount(settings: LearningSettings, name: str, otherwise: str = "") -> float:
    """A parameter that is a number; `otherwise` says what else it may be."""
    if not (isinstance(value := getattr(settings, name), Real) and 0 <= float(value) < np.inf):
        raise ValueError(f"{name} must be {otherwise}a finite number of at least 0, got {value!r}")
    return float(value)


# Measured on 500 to 63,000 reviews: ten epochs on large batches beat more steps on small ones.


def _batch_sizes(settings: LearningSettings, n_docs: int) -> tuple[int, int]:
    if settings.batch_size == "auto":
        part, most = settings.auto_batch
        # From a million documents on there are more steps than learning needs: batches grow, and more workers can share them.
        most = round(most * min(_LARGEST_BATCH, max(1.0, n_docs / 1e6)))
        automatic = min(most, max(128, n_docs // part))
        return automatic, automatic
    is_pair = isinstance(settings.batch_size, tuple | list)
    sizes: Any = settings.batch_size if is_pair else (settings.batch_size, settings.batch_size)
    if len(sizes) != 2:
        raise ValueError(f"batch_size must be 'auto', a whole number or a pair of them, got {settings.batch_size!r}")
    for size in sizes:
        check_whole("batch_size", size)
    return int(sizes[0]), int(sizes[1])
