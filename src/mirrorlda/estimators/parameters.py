"""The parameters of an estimator as they are given, and what training and inference make of them: checks, and what "auto" is."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from mirrorlda.method.inference import Layers, check_layers, check_whole
from mirrorlda.method.responses import Ordinal, Response
from mirrorlda.training.loop import Schedule
from mirrorlda.training.sources import Examples

# An automatic batch has at most so many times the documents that it has for a corpus of a million.
_LARGEST_BATCH = 32
# Each doubling of the topics beyond so many takes one more layer.
_FEW_TOPICS = 50
# Rates are relative to the root mean square over all words, which rare ones make small: beyond so many words an automatic rate
# falls, so that the steps on the others stay as long.
_FEW_WORDS = 10_000
# alpha=None: the prior weighs as much as a word of a document with so many topics, and as two with very many.
_WORD_OF_TOPICS = 20
# Fraction by which the first steps move a guided topic towards its seed words.
_GUIDE = 0.02


class Settings:
    """Parameters that the estimators share; `TopicEstimator` is what is done with them."""

    n_topics: int | str
    alpha: Any
    beta: float
    n_layers: int | str
    step_size: str | float
    n_epochs: int | str
    batch_size: int | tuple[int, int] | str
    learning_rate: float | str
    learning_rate_decay: str
    average_from: float
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int
    warm_start: bool
    random_state: Any
    n_jobs: int | None
    verbose: int
    seed_words: Any
    coef_learning_rate: float = 0.0
    count_scale: str
    # learning_rate="auto", up to _FEW_WORDS words; None: the estimator has none.
    _auto_learning_rate: float | None = None
    # batch_size="auto": a batch is this part of the documents, and has at most so many.
    _auto_batch: tuple[int, int] = (8, 1000)
    # What only predictions need; an estimator without them leaves them at this.
    tol: float = 0.0
    word_dropout: float = 0.0
    word_learning_rate: float = 0.0
    generative_weight: float = 0.0

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31, size=4))

    def _is_logarithmic(self) -> bool:
        if self.count_scale not in ("log", "linear"):
            raise ValueError(f"count_scale must be 'log' or 'linear', got {self.count_scale!r}")
        return self.count_scale == "log"

    def _estimates_alpha(self) -> bool:
        return isinstance(self.alpha, str) and self.alpha == "auto"

    def _first_alpha(self, n_topics: int) -> Any:
        """Of the prior, as training starts: as it is given, or one that follows the number of topics."""
        return 1 + 2 / (n_topics + _WORD_OF_TOPICS) if self.alpha is None or self._estimates_alpha() else self.alpha

    def _layers(self, phi: np.ndarray, response: Response, alpha: Any) -> Layers:
        if isinstance(alpha, str):
            raise ValueError(f"alpha must be None, 'auto', a number or one for each topic, got {alpha!r}")
        if not isinstance(self.step_size, str) and np.ndim(self.step_size):
            raise ValueError("step_size of an estimator must be 'l1', 'kl' or a number")
        is_auto = isinstance(self.n_layers, str) and self.n_layers == "auto"
        n_layers: Any = response.n_layers if is_auto else self.n_layers
        layers = check_layers(alpha, n_layers, self.step_size, self.tol, phi, 0)
        return replace(layers, n_layers=layers.n_layers + _more_layers(layers.alpha)) if is_auto else layers

    def _schedule(self, examples: Examples, n_docs: int, response: Response, n_epochs: int | None = None) -> Schedule:
        """For `n_docs` documents, of which `examples` are some."""
        check_whole("n_iter_no_change", self.n_iter_no_change)
        learning_rate = self._learning_rate(examples.documents.n_words)
        for name in ("coef_learning_rate", "word_learning_rate", "average_from", "generative_weight"):
            self._check_amount(name)
        if not (isinstance(self.word_dropout, Real) and 0 <= float(self.word_dropout) < 1):
            raise ValueError(f"word_dropout must be a fraction of at least 0 and below 1, got {self.word_dropout!r}")
        if not 1 <= self.beta < np.inf:
            raise ValueError(f"beta must be at least 1, got {self.beta!r}: below 1 the prior of the topics has no bound")
        if self.learning_rate_decay not in ("linear", "constant"):
            raise ValueError(f"learning_rate_decay must be 'linear' or 'constant', got {self.learning_rate_decay!r}")
        if not 0 < self.validation_fraction < 1:
            raise ValueError(f"validation_fraction must be between 0 and 1, got {self.validation_fraction!r}")
        batch_sizes = self._batch_sizes(n_docs)
        words_per_document = max(1.0, float(np.average(examples.lengths, weights=examples.weights)))
        return Schedule(
            n_epochs=self._n_epochs() if n_epochs is None else n_epochs,
            batch_sizes=batch_sizes,
            learning_rate=learning_rate,
            coef_learning_rate=self.coef_learning_rate * response.coef_rate / response.curvature(examples.y, examples.weights),
            decay=self.learning_rate_decay,
            average_from=self.average_from,
            beta=self.beta,
            word_learning_rate=self.word_learning_rate,
            word_dropout=self.word_dropout,
            word_weight=response.word_weight + self.generative_weight / words_per_document,
            guide=_GUIDE,
        )

    def _learning_rate(self, n_words: int) -> float:
        """Of the topics, with a vocabulary of so many words."""
        automatic = self._auto_learning_rate
        if automatic is not None and isinstance(self.learning_rate, str) and self.learning_rate == "auto":
            return automatic * float(np.sqrt(min(1.0, _FEW_WORDS / n_words)))
        return self._check_amount("learning_rate", otherwise="" if automatic is None else "'auto' or ")

    def _check_amount(self, name: str, otherwise: str = "") -> float:
        """A parameter that is a number; `otherwise` says what else it may be."""
        if not (isinstance(value := getattr(self, name), Real) and 0 <= float(value) < np.inf):
            raise ValueError(f"{name} must be {otherwise}a finite number of at least 0, got {value!r}")
        return float(value)

    # Measured on 500 to 63,000 reviews: ten epochs on large batches beat more steps on small ones.

    def _batch_sizes(self, n_docs: int) -> tuple[int, int]:
        if self.batch_size == "auto":
            part, most = self._auto_batch
            # From a million documents on there are more steps than learning needs: batches grow, and more workers can share them.
            most = round(most * min(_LARGEST_BATCH, max(1.0, n_docs / 1e6)))
            automatic = min(most, max(128, n_docs // part))
            return automatic, automatic
        sizes: Any = self.batch_size if isinstance(self.batch_size, tuple | list) else (self.batch_size, self.batch_size)
        if len(sizes) != 2:
            raise ValueError(f"batch_size must be 'auto', a whole number or a pair of them, got {self.batch_size!r}")
        for size in sizes:
            check_whole("batch_size", size)
        return int(sizes[0]), int(sizes[1])

    def _n_epochs(self) -> int:
        check_whole("n_epochs", self.n_epochs)
        return int(self.n_epochs)

    def _n_topics(self, response: Response, y: np.ndarray) -> int:
        """As many as asked for; "auto" is 20, or one for each class, label or target where there are more."""
        if isinstance(self.n_topics, str) and self.n_topics == "auto":
            # The outputs of levels say much the same.
            return 20 if isinstance(response, Ordinal) else max(20, response.n_outputs(y))
        check_whole("n_topics", self.n_topics)
        return int(self.n_topics)


def _more_layers(alpha: np.ndarray) -> int:
    """Theta starts at 1 / n_topics: more topics are further from the corners of the simplex, where a sparse prior drives them."""
    return max(0, int(np.ceil(np.log2(len(alpha) / _FEW_TOPICS)))) if alpha.mean() >= 1 else 0
