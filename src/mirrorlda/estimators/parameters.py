"""The parameters of the estimators: what they are, what their docstrings say, and what training and inference make of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from textwrap import fill
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
from sklearn.utils import check_random_state

from mirrorlda.method.inference import Layers, check_layers, check_whole
from mirrorlda.method.responses import OF_NUMBERS, Ordinal, Response
from mirrorlda.method.start import start

# Each doubling of the topics beyond so many takes one more layer.
_FEW_TOPICS = 50
# alpha=None: the prior weighs as much as a word of a document with so many topics, and as two with very many.
_WORD_OF_TOPICS = 20


C = TypeVar("C", bound=type)


@dataclass(eq=False, repr=False, kw_only=True)
class Settings:
    """The parameters that all estimators have."""

    n_topics: int | str = field(default="auto", kw_only=False)
    alpha: Any = None
    beta: float = 1.0001
    n_layers: int | str = "auto"
    step_size: str | float = "l1"
    n_epochs: int = 10
    batch_size: int | tuple[int, int] | str = "auto"
    learning_rate: float | str = "auto"
    count_scale: str = "log"
    seed_words: Any = None
    learning_rate_decay: str = "linear"
    average_from: float = 0.5
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 3
    warm_start: bool = False
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0

    # Where learning starts; a subclass may start elsewhere.
    start = staticmethod(start)
    # learning_rate="auto", up to 10,000 words; None: the estimator has none.
    auto_learning_rate: ClassVar[float | None] = None
    # batch_size="auto": a batch is this part of the documents, and has at most so many.
    auto_batch = (8, 1000)
    # What an estimator that predicts nothing goes without.
    tol = 0.0
    coef_learning_rate = cast("float | str", 0.0)
    word_learning_rate = 0.0
    word_dropout = cast("float | str", 0.0)
    readability = 0.0


@dataclass(eq=False, repr=False, kw_only=True)
class PredictionSettings(Settings):
    """Those of estimators that predict, beside what all have."""

    gamma: float = 1.0
    tol: float = 0.02
    coef_learning_rate: float | str = "auto"
    word_learning_rate: float = 0.03
    word_dropout: float | str = "auto"
    readability: float = 1.0

    auto_learning_rate = 0.01


# What the docstrings of several estimators say.

COMMON_PARAMETERS = """beta : float, default=1.0001
        Dirichlet parameter of the topics, at least 1; above 1 it smooths them.
    step_size : {"l1", "kl"} or float, default="l1"
        Rule of the line search in each layer, or a constant step.
    batch_size : int, (int, int) or "auto", default="auto"
        Documents a step; a pair grows from the first to the last epoch. "auto" takes an eighth of the documents, but
        at least 128 and at most 1,000 (`TopicModel`: 256); beyond a million documents this grows with them, to 32 times as many.
    count_scale : {"log", "linear"}, default="log"
        "log" takes log2(1 + count) in place of counts.
    seed_words : dict, list of lists or None, default=None
        Words that guide topics: their prior all through training. A dict from topic numbers (from class labels, for a
        classifier) to lists of words, or a list of such lists for the first topics. Words are column numbers of X, or names
        where X is a data frame or a corpus made from text.
    learning_rate_decay : {"linear", "constant"}, default="linear"
        "linear" falls to zero at the end of training.
    average_from : float, default=0.5
        Fraction of the steps after which the running averages begin that `fit` returns; 1 for no averages.
    early_stopping : bool, default=False
        Hold out `validation_fraction` of the documents, stop after `n_iter_no_change` epochs without a better score on
        them, and return the best model.
    validation_fraction : float, default=0.1
        At most 65,536 documents are held out.
    n_iter_no_change : int, default=3
    warm_start : bool, default=False
        Start from the last fit.
    random_state : int, RandomState instance or None, default=None
    n_jobs : int, default=None
        Threads, as in scikit-learn: -1 for all cores. The result does not depend on it.
    verbose : int, default=0
        Above 0, a progress bar."""

SUPERVISED_PARAMETERS = """n_topics : int or "auto", default="auto"
        Number of topics. "auto" is 20, or one for each class, label or target where there are more; of themes whose words say
        the same one is left, but not with `seed_words`, without `readability`, or in `partial_fit`.
    alpha : float, array of shape (n_topics,), "auto" or None, default=None
        Dirichlet parameter of the topic proportions; below 1 they become sparse. None is 1 + 2 / (n_topics + 20), which is 1.05
        for 20 topics; "auto" estimates one for each topic, with that for their mean.
    n_layers : int or "auto", default="auto"
        Mirror-descent layers that infer the topic proportions; "auto" is 5 for numbers and 4 for classes, and
        one more for each doubling of the topics beyond 50, unless alpha is below 1 on average.
    tol : float, default=0.02
        A document takes no further layer once the last two lowered the objective by no more than this part of what all its
        layers so far lowered it by. It matters for 7 layers and more; 0 takes all of them, as does a constant `step_size`.
    n_epochs : int, default=10
        Passes over the documents.
    learning_rate : float or "auto", default="auto"
        Of the topics, relative to the root mean square of each topic's gradients. "auto" is 0.01, times
        sqrt(10,000 / n_words) beyond 10,000 words.
    coef_learning_rate : float or "auto", default="auto"
        Of the coefficients. A number is the rate of plain gradient steps, as in the paper, relative to the curvature of the
        loss. "auto" is 1 if there is one number, one label or two classes to predict; otherwise coefficients take 0.3 of a damped
        Newton step.
    word_learning_rate : float, default=0.03
        Of the words' weights, relative to the root mean square of their gradients; with 0 every word counts as it is.
    word_dropout : float or "auto", default="auto"
        Fraction of each document's words that a training step leaves out, others each time. "auto" leaves more out of long
        documents: with n distinct words and phrases in the mean document it is sqrt(n) / 40, which is 0.25 for 100, at most 0.5.
    readability : float, default=1.0
        How much prediction to give up for themes that people can read. 1 costs some 0.004 of R2 on reviews, and nothing on
        classes; 0 costs nothing: people read the topics that predict best, one matrix for both, as in the paper's BP-sLDA."""


_INDENTED: Any = {"width": 120, "initial_indent": 8 * " ", "subsequent_indent": 8 * " "}
_NAMED = [f'"{name}"' for name in OF_NUMBERS]
_SUITED = "; ".join(f"{name} is for {kind.suits}" for name, kind in zip(_NAMED, OF_NUMBERS.values(), strict=True))
NUMBER_RESPONSES = f"""response : {{{", ".join(_NAMED)}}} or Response, default="gaussian"
{fill(f"{_SUITED}; or a response of your own (see `mirrorlda.responses`), which takes the targets as they are.", **_INDENTED)}"""


def documented(**shared: str) -> Callable[[C], C]:
    """Puts parameters that several classes share into a class's docstring, where their names stand in braces."""

    def insert(cls: C) -> C:
        if cls.__doc__ is not None:  # python -OO has none
            for name, text in shared.items():
                cls.__doc__ = cls.__doc__.replace("{" + name + "}", text)
        return cls

    return insert


# What is made of the parameters.


def generator(settings: Settings) -> np.random.Generator:
    return np.random.default_rng(check_random_state(settings.random_state).randint(2**31, size=4))


def is_logarithmic(settings: Settings) -> bool:
    if settings.count_scale not in ("log", "linear"):
        raise ValueError(f"count_scale must be 'log' or 'linear', got {settings.count_scale!r}")
    return settings.count_scale == "log"


def estimates_alpha(settings: Settings) -> bool:
    return isinstance(settings.alpha, str) and settings.alpha == "auto"


def first_alpha(settings: Settings, n_topics: int) -> Any:
    """The prior's parameter as training starts: as it is given, or one that follows the number of topics."""
    return 1 + 2 / (n_topics + _WORD_OF_TOPICS) if settings.alpha is None or estimates_alpha(settings) else settings.alpha


def layers_of(settings: Settings, n_topics: int, dtype: Any, response: Response, alpha: Any) -> Layers:
    """How documents are inferred, with this alpha."""
    if isinstance(alpha, str):
        raise ValueError(f"alpha must be None, 'auto', a number or one for each topic, got {alpha!r}")
    if not isinstance(settings.step_size, str) and np.ndim(settings.step_size):
        raise ValueError("step_size of an estimator must be 'l1', 'kl' or a number")
    is_auto = isinstance(settings.n_layers, str) and settings.n_layers == "auto"
    n_layers: Any = response.n_layers if is_auto else settings.n_layers
    layers = check_layers(alpha, n_layers, settings.step_size, settings.tol, np.empty((0, n_topics), dtype), 0)
    return replace(layers, n_layers=layers.n_layers + _more_layers(layers.alpha)) if is_auto else layers


def n_topics_of(settings: Settings, response: Response, n_outputs: int) -> int:
    """As many as asked for; at most, with "auto": 20, or one for each class, label or target where there are more."""
    if isinstance(settings.n_topics, str) and settings.n_topics == "auto":
        # The outputs of levels say much the same.
        return 20 if isinstance(response, Ordinal) else max(20, n_outputs)
    check_whole("n_topics", settings.n_topics)
    return int(settings.n_topics)


def _more_layers(alpha: np.ndarray) -> int:
    """Theta starts at 1 / n_topics: more topics are further from the corners of the simplex, where a sparse prior drives them."""
    return max(0, int(np.ceil(np.log2(len(alpha) / _FEW_TOPICS)))) if alpha.mean() >= 1 else 0
