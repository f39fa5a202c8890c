"""How good a fitted model is on documents that it has not seen, with intervals, as a value that goes to and from JSON."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from mirrorlda.data.parts import READ_DOCS, chunks
from mirrorlda.evaluation.bootstrap import Measure, measured, plain
from mirrorlda.evaluation.curves import curves_of
from mirrorlda.evaluation.measures import Outcome, WordLikelihood
from mirrorlda.evaluation.true_targets import Truth, outcome_of, truth_of
from mirrorlda.inspect.text_table import text_table
from mirrorlda.method.fitted_model import FittedModel, model_of

TASKS = ("regression", "classification", "multilabel", "topics")
_MOST_ITEMS = 1_000_000
# The name of a linear model among the baselines begins so.
LINEAR = "tf-idf"


@dataclass(frozen=True)
class Evaluation:
    """Measures of a model on some documents.

    Attributes
    ----------
    task : {"regression", "classification", "multilabel", "topics"}
    n_docs : int
        Documents measured.
    outputs : list of str
        Targets, classes or labels of the model.
    main : str
        The measure that matters first.
    measures : dict of Measure
        A measure that these documents give no value (R2 of a constant target, say) is not there.
    baselines : dict of dicts of Measure
        What simpler methods reach: see `mirrorlda.evaluation.with_baselines`.
    curves : dict
        What there is to draw, as plain lists.
    n_left_out : int
        Documents that have no target.
    notes : list of str
        What a reader of the measures has to know.
    leads : dict of Measure
        By how much the main measure is better than that of each baseline, with an interval from paired resamples.

    Examples
    --------
    >>> from mirrorlda import TopicRegressor
    >>> from mirrorlda.datasets import make_topics
    >>> from mirrorlda.evaluation import Evaluation, evaluate
    >>> data = make_topics(n_docs=600, n_words=60, n_topics=3, n_outputs=1, random_state=0)
    >>> model = TopicRegressor(random_state=0).fit(data.X[:400], data.y[:400])
    >>> evaluation = evaluate(model, data.X[400:], data.y[400:])
    >>> Evaluation.from_json(evaluation.as_json()) == evaluation
    True
    """

    task: str
    n_docs: int
    outputs: list[str]
    main: str
    measures: dict[str, Measure]
    baselines: dict[str, dict[str, Measure]] = field(default_factory=dict)
    curves: dict[str, Any] = field(default_factory=dict)
    n_left_out: int = 0
    notes: list[str] = field(default_factory=list)
    leads: dict[str, Measure] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Plain values, none of them NaN or infinite, and the verdict, which follows from them."""
        return {**asdict(self), "verdict": self.verdict}

    @classmethod
    def from_json(cls, value: Any) -> Evaluation:
        """The evaluation that `as_json` was called on; a ValueError says what is wrong with any other value."""
        names = {"task", "n_docs", "outputs", "main", "measures", "baselines", "leads", "curves", "n_left_out", "notes"}
        if isinstance(value, dict):
            # Files of earlier versions have neither leads nor a verdict, which follows from the rest.
            value = {"leads": {}, **value}
            _check(_is_string(value.pop("verdict", "")), "verdict", "a string")
        _check(isinstance(value, dict) and set(value) == names, "an evaluation", f"the names {sorted(names)}")
        _check(isinstance(value["task"], str) and value["task"] in TASKS, "task", f"one of {TASKS}")
        for name in ("n_docs", "n_left_out"):
            _check(_is_count(value[name]), name, "a whole number of at least 0")
        for name in ("outputs", "notes"):
            _check(_is_list(value[name], _is_string), name, "strings")
        measures = _measures(value["measures"], "measures")
        _check(_is_string(value["main"]) and value["main"] in measures, "main", "the name of a measure")
        _check(_is_dict(value["baselines"]), "baselines", "measures by name")
        baselines = {name: _measures(found, f"baseline {name[:40]!r}") for name, found in value["baselines"].items()}
        leads = _measures(value["leads"], "leads")
        _check(set(leads) <= set(baselines), "leads", "names of baselines")
        _check_curves(value["curves"], value["task"])
        return cls(**{**value, "measures": measures, "baselines": baselines, "leads": leads})

    @property
    def verdict(self) -> str:
        """A sentence that says whether the model is better than the linear one; empty if there is no linear model."""
        name = next((name for name in reversed(self.leads) if name.startswith(LINEAR)), None)
        if name is None:
            return ""
        lead = self.leads[name]
        value, low, high = plain([abs(lead.value), *sorted([abs(lead.low), abs(lead.high)])])
        if lead.low > 0:
            return f"Better than {name} by {value} of {self.main} ({low} to {high})."
        if lead.high < 0:
            return f"Worse than {name} by {value} of {self.main} ({low} to {high}); readability=0 may predict better."
        value, low, high = (f"{number:+.4f}" for number in (lead.value, lead.low, lead.high))
        return f"Level with {name}: the difference of {self.main} is {value} ({low} to {high})."

    def __str__(self) -> str:
        """A line for each measure: its value and interval, beside it the values of the baselines."""
        cells, others = [], self.baselines.values()
        for name, measure in self.measures.items():
            values = [other[name].value for other in others if name in other]
            value, low, high, *rest = plain([measure.value, measure.low, measure.high, *values])
            remaining = iter(rest)
            cells.append([name, value, f"{low} to {high}", *(next(remaining) if name in other else "" for other in others)])
        titles = ["", "value", "95 % interval", *self.baselines]
        columns = list(zip(titles, zip(*cells, strict=True), strict=True))
        verdict = [self.verdict] if self.verdict else []
        return "\n".join([f"{self.task}, {self.n_docs:,} documents", *text_table(columns, left=("",)), *verdict, *self.notes])


def evaluate(model: Any, X: Any, y: Any = None, *, n_bootstrap: int = 1000, random_state: Any = 0) -> Evaluation:
    """Measure a fitted model on documents that it was not fitted to.

    Parameters
    ----------
    model : fitted estimator, or a Pipeline that ends with one
    X : counts of shape (n_docs, n_words), a `Corpus`, or a list of texts
        Texts need a pipeline, or a model with a `vocabulary_`.
    y : array-like, optional
        Targets; documents whose y is None or NaN are left out and counted. A corpus holds its own. A `TopicModel` needs none.
    n_bootstrap : int
        Resamples of the documents that the intervals come from. Above 10,000 documents, random groups of them are drawn.
    random_state : int, Generator or None
        For the resamples and the documents that are drawn.

    Returns
    -------
    Evaluation
        Regression: "R2", "RMSE", "MAE", of several targets their means and "R2 <name>" of each. Classification: "AUC" (macro,
        one against the rest), "accuracy", "F1" (of the second of two classes, else macro), "log loss", "calibration error" (ten
        bins of equal counts; of the second of two classes, else of the predicted class). Several labels: "F1" (micro), "F1
        macro", "AUC" (macro), "accuracy" (all labels of a document right), "log loss" and "calibration error" (over documents
        and labels). Topics: "log-likelihood per word" and "perplexity".

    Notes
    -----
    Macro means are over classes and labels that the documents have. A response of your own gives no probabilities, and there
    are only the measures that need none. Classes that the model does not know count as wrong; a note says how many.

    Examples
    --------
    >>> from mirrorlda import TopicClassifier
    >>> from mirrorlda.datasets import make_topics
    >>> from mirrorlda.evaluation import evaluate
    >>> data = make_topics(n_docs=600, n_words=60, n_topics=3, n_classes=2, random_state=0)
    >>> model = TopicClassifier(random_state=0).fit(data.X[:400], data.y[:400])
    >>> evaluation = evaluate(model, data.X[400:], data.y[400:])
    >>> evaluation.main, list(evaluation.measures)
    ('AUC', ['AUC', 'accuracy', 'F1', 'log loss', 'calibration error'])
    >>> auc = evaluation.measures["AUC"]
    >>> 0.8 < auc.low < auc.value < auc.high
    True
    """
    read = model_of(model)
    X, n_left_out = read.counted(X), 0
    if read.is_supervised:
        truth = truth_of(read, X, y)
        outcome = own_outcome(read, truth)
        n_left_out, notes = truth.n_left_out, truth.notes
    else:
        theta = read.proportions(X)
        outcome = word_likelihood(read, X, lambda numbers, rows, words: _probability(read, theta[numbers], rows, words))
        notes = ["the topic proportions of a document are inferred from the words that are measured"]
    measures = measured(outcome, n_bootstrap, random_state)
    return Evaluation(
        task=outcome.task,
        n_docs=outcome.n_docs,
        outputs=read.targets.names,
        main=outcome.main if outcome.main in measures else next(iter(measures)),
        measures=measures,
        curves=curves_of(outcome, random_state),
        n_left_out=n_left_out,
        notes=notes,
    )


def own_outcome(model: FittedModel, truth: Truth) -> Outcome:
    """What the model predicts, beside what is true."""
    return outcome_of(model, truth, model.proportions(truth.X))


def word_likelihood(
    model: FittedModel, X: Any, probability: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
) -> Outcome:
    """Likelihood of each document's words, which count as the model's `count_scale` says.

    `probability` is that of words (n,), which stand in rows (n,) of the documents with some numbers.
    """
    found = model.collection(X)
    log_likelihoods, lengths = [], []
    for numbers in chunks(found.n_docs, READ_DOCS):
        documents = found.documents(numbers)
        rows = np.repeat(np.arange(len(numbers)), np.diff(documents.indptr))
        p = np.maximum(probability(numbers, rows, documents.indices), np.finfo(np.float64).tiny)
        log_likelihoods.append(np.bincount(rows, documents.counts * np.log(p), len(numbers)))
        lengths.append(documents.totals())
    if not sum(part.sum() for part in lengths):
        raise ValueError("X holds no words, so there is no likelihood of a word")
    return WordLikelihood(np.concatenate(log_likelihoods), np.concatenate(lengths))


def _probability(model: FittedModel, theta: np.ndarray, rows: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Of each word, given the topic proportions of its document."""
    phi = np.ascontiguousarray(model.components.T)
    p = np.empty(len(words))
    for some in chunks(len(words), 1 << 18):
        p[some] = np.einsum("ik,ik->i", phi[words[some]], theta[rows[some]])
    return p


# Values from files: each must be what `as_json` writes.

_CURVES: dict[str, set[str]] = {
    "regression": {"scatter", "residuals"},
    "classification": {"confusion", "roc", "calibration"},
    "multilabel": {"roc", "calibration", "labels"},
    "topics": set(),
}
# Of each entry of a curve: lists of finite numbers, lists of counts, by name.
_LISTS = {
    "scatter": (("truth", "predicted"), ()),
    "residuals": (("edges",), ("counts",)),
    "roc": (("fpr", "tpr"), ()),
    "calibration": (("predicted", "observed"), ("counts",)),
}


def _check(holds: bool, what: str, expected: str) -> None:
    if not holds:
        raise ValueError(f"{what} of an evaluation is not what was expected: {expected}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _is_share(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= 1


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**53


def _is_string(value: Any) -> bool:
    return isinstance(value, str)


def _is_list(value: Any, holds: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and len(value) <= _MOST_ITEMS and all(map(holds, value))


def _is_dict(value: Any) -> bool:
    return isinstance(value, dict) and len(value) <= _MOST_ITEMS and all(map(_is_string, value))


def _measures(value: Any, what: str) -> dict[str, Measure]:
    _check(_is_dict(value), what, "measures by name")
    for name, found in value.items():
        _check(
            isinstance(found, dict)
            and set(found) == {"value", "low", "high"}
            and all(map(_is_number, found.values()))
            and found["low"] <= found["value"] <= found["high"],
            f"{name[:40]!r} in {what}",
            "a finite value between low and high",
        )
    return {name: Measure(**{end: float(number) for end, number in found.items()}) for name, found in value.items()}


def _check_curves(curves: Any, task: str) -> None:
    _check(_is_dict(curves) and set(curves) <= _CURVES[task], "curves", f"some of {sorted(_CURVES[task])}")
    for kind, (numbers, counts) in _LISTS.items():
        for entry in _entries(curves.get(kind, []), kind, {"name", *numbers, *counts} | ({"auc"} if kind == "roc" else set())):
            holds = all(_is_list(entry[name], _is_number if kind in ("scatter", "residuals") else _is_share) for name in numbers)
            holds = holds and all(_is_list(entry[name], _is_count) for name in counts) and _is_share(entry.get("auc", 0))
            _check(holds, kind, "lists of numbers, counts and shares")
            lengths = {len(entry[name]) for name in (*numbers, *counts)}
            if kind == "residuals":
                lengths = {len(entry["edges"]) - 1, len(entry["counts"])}
            _check(len(lengths) == 1, kind, "lists of the same length")
    for entry in _entries(curves.get("labels", []), "labels", {"name", "n_docs", "precision", "recall", "F1"}):
        holds = all(entry[name] is None or _is_share(entry[name]) for name in ("precision", "recall", "F1"))
        _check(holds and _is_count(entry["n_docs"]), "labels", "a count, and shares or null")
    if "confusion" in curves:
        confusion = curves["confusion"]
        _check(isinstance(confusion, dict) and set(confusion) == {"labels", "counts"}, "confusion", "labels and counts")
        _check(_is_list(confusion["labels"], _is_string), "confusion", "labels that are strings")
        n = len(confusion["labels"])
        rows = confusion["counts"]
        square = _is_list(rows, lambda row: _is_list(row, _is_count) and len(row) == n) and len(rows) == n
        _check(square, "confusion", f"{n} rows of {n} counts")


def _entries(value: Any, kind: str, names: set[str]) -> list[dict[str, Any]]:
    _check(_is_list(value, lambda entry: isinstance(entry, dict) and set(entry) == names), kind, f"a list of {sorted(names)}")
    _check(all(_is_string(entry["name"]) for entry in value), kind, "names that are strings")
    entries: list[dict[str, Any]] = value
    return entries
