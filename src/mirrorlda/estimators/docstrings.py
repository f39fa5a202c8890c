"""What the docstrings of the estimators have in common."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import fill
from typing import Any, TypeVar

from mirrorlda.method.responses import OF_NUMBERS

C = TypeVar("C", bound=type)

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
        Number of topics; more of them than the data support stay almost empty. "auto" is 20, or one for each class,
        label or target where there are more.
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
    coef_learning_rate : float, default=0.5
        Of the coefficients, relative to the curvature of the loss.
    word_learning_rate : float, default=0.03
        Of the words' weights, relative to the root mean square of their gradients; with 0 every word counts as it is.
    word_dropout : float, default=0.25
        Fraction of each document's words that a training step leaves out, others each time.
    generative_weight : float, default=0.0
        Weight of the documents' own likelihood, in nats a word of the mean document, beside the loss of the predictions."""


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
