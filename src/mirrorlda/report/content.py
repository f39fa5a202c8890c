"""What a page about a model holds, as plain values: the model itself, rounded, its topics, and documents that show them."""

from __future__ import annotations

import base64
import inspect
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import mirrorlda
from mirrorlda.inspect.topics import best_documents, lengths_of, topic_table
from mirrorlda.method.fitted_model import FittedModel, estimator_of, model_of
from mirrorlda.method.inference import FLOOR
from mirrorlda.method.responses import Ordinal, link_of
from mirrorlda.method.targets.classes import Classes, Labels
from mirrorlda.method.targets.numbers import Numbers
from mirrorlda.method.themes import are_two
from mirrorlda.report.topic_map import places_of

# Bytes that the topics may take of a page, and words that it has in any case.
_BYTES_OF_TOPICS, _LEAST_WORDS = 3_000_000, 5000
# Numbers of 16 bits, for inference, and of 8, for reading.
_STEPS, _READ_STEPS = 65535, 255
# Of those that raise the prediction, and of those that lower it, in each topic.
_MOVING_WORDS = 5
_SHOWN_DOCUMENTS = 3
_SHOWN_LETTERS = 600
_SHOWN_LABELS = 5
_SHOWN_SETTING = 200
# Parameters that say nothing of the model, or what the page says anyway.
_UNTOLD = ("n_jobs", "verbose", "n_topics")


def _words_that_fit(model: FittedModel) -> int:
    """How many words keep the page below some 4 MB.

    Each word has 16 bits a topic for inference, and 8 more for reading where the themes are not the same; as text a third more.
    """
    n_bytes = 3 if are_two(model.components, model.encoder.components) else 2
    return max(_LEAST_WORDS, int(_BYTES_OF_TOPICS * 0.75 / n_bytes / model.n_topics))


def content(
    model: Any,
    *,
    evaluation: Any = None,
    documents: Iterable[str] | None = None,
    truths: Any = None,
    title: str | None = None,
    configuration: Mapping[str, Any] | None = None,
    max_words: int | None = None,
) -> dict[str, Any]:
    """The data of the page, values that JSON has: no NaN, no NumPy.

    Parameters
    ----------
    model, evaluation, documents, truths, title, configuration, max_words
        As for `report`.

    Returns
    -------
    dict

    Examples
    --------
    >>> from mirrorlda import TopicRegressor
    >>> from mirrorlda.datasets import make_topics
    >>> from mirrorlda.report.content import content
    >>> data = make_topics(n_docs=600, n_words=60, n_topics=3, n_outputs=1, random_state=0)
    >>> page = content(TopicRegressor(n_topics=3, random_state=0).fit(data.X, data.y), max_words=50)
    >>> page["task"], page["outputs"], page["n_words"], len(page["model"]["words"])
    ('regression', ['prediction'], 60, 50)
    """
    read = model_of(model)
    max_words = _words_that_fit(read) if max_words is None else max_words
    if max_words < 1:
        raise ValueError(f"max_words must be at least 1, got {max_words}")
    shares = read.shares / read.shares.sum()
    frequencies = shares @ np.asarray(read.components, np.float64)
    chosen = np.argsort(-frequencies, kind="stable")[:max_words]
    settings, other_settings = _settings(model, configuration or {})
    n_docs, seconds = settings.pop("n_docs", None), settings.pop("seconds", None)
    return {
        "version": mirrorlda.__version__,
        "title": title or f"{read.kind} of {len(shares)} topics",
        "task": read.targets.task,
        "outputs": _outputs(read),
        "configuration": {str(name): _setting(value) for name, value in settings.items()},
        "other_settings": {str(name): _setting(value) for name, value in other_settings.items()},
        "n_words": len(frequencies),
        "n_docs": None if n_docs is None else int(n_docs),
        "seconds": None if seconds is None else _number(seconds),
        "model": _model(read, chosen),
        "topics": _topics(read, shares, chosen),
        "history": {name: _rounded(values) for name, values in read.history.items()},
        "evaluation": None if evaluation is None else evaluation.as_json(),
        "documents": None if documents is None else _documents(read, list(documents), truths),
    }


def _topics(model: FittedModel, shares: np.ndarray, chosen: np.ndarray) -> dict[str, Any]:
    """What is said of the topics, each in its own place, and their order."""
    table = topic_table(model, n_words=2 * _MOVING_WORDS)
    own = np.argsort(table.topics)
    return {
        "shares": _rounded(shares),
        "effect_names": table.effect_names,
        "effects": [_rounded(row) for row in table.effects[:, own]],
        # Quantiles of 10 % and 90 %.
        "ranges": None if table.ranges is None else [[_rounded(row) for row in end] for end in table.ranges[:, :, own]],
        "raising": [table.raising[place] for place in own],
        "lowering": [table.lowering[place] for place in own],
        "order": table.topics,
        "map": places_of(np.asarray(model.components, np.float64), chosen),
    }


def _outputs(model: FittedModel) -> list[str]:
    """Classes or labels, or the numbers that are predicted: a response of the user's own may have more or fewer than y."""
    return model.effects()[0] if isinstance(model.targets, Numbers) else model.targets.names


def _model(model: FittedModel, chosen: np.ndarray) -> dict[str, Any]:
    definition, names, targets, layers = None, model.names, model.targets, model.encoder.layers
    if model.vocabulary is not None and model.scale is None:
        text = model.vocabulary.definition
        definition = {"lowercase": text.lowercase, "bigrams": text.bigrams, "stop_words": list(text.stop_words)}
    levels, response = targets.levels, targets.response
    if isinstance(response, Ordinal) and not len(levels):
        levels = np.arange(response.n_levels)
    low, phi = _encoded(np.asarray(model.encoder.components)[:, chosen].T)
    weights = model.encoder.word_weights
    return {
        "words": [str(word) for word in chosen.tolist()] if names is None else [names[word] for word in chosen.tolist()],
        "definition": definition,
        "n_topics": model.n_topics,
        "n_layers": layers.n_layers,
        "step_size": layers.step_size if isinstance(layers.step_size, str) else float(layers.step_size),
        "tol": layers.tol,
        "alpha": layers.alpha.tolist(),
        "phi": phi,
        "phi_low": low,
        "themes": _encoded_themes(np.asarray(model.components)[:, chosen].T)
        if are_two(model.components, model.encoder.components)
        else None,
        "word_weights": None if weights is None else _rounded(weights[chosen]),
        "count_scale": "log" if model.is_logarithmic else "linear",
        "U": np.asarray(model.U, np.float64).tolist(),
        "response": {
            "kind": targets.link if targets.link != "other" and _fits(model) else "other",
            "score": response.score_name if link_of(response) != "other" else None,
            "gamma": float(getattr(response, "gamma", 1.0)),
            "mean": targets.mean.tolist(),
            "scale": targets.scale.tolist(),
            "levels": np.asarray(levels, np.float64).tolist(),
        },
    }


def _fits(model: FittedModel) -> bool:
    """Whether classes or labels have a score each, as the page takes it."""
    return not isinstance(model.targets, Classes | Labels) or len(model.U) == len(model.targets.known)


def _encoded(phi: np.ndarray) -> tuple[float, str]:
    """The logarithm of the smallest entry, and 16 bits for each of the logarithms between it and 0."""
    logarithms = np.log(np.clip(phi.astype(np.float64), FLOOR, 1.0))
    low = float(logarithms.min())
    numbers = np.rint(_STEPS * (1 - logarithms / low)) if low < 0 else np.zeros_like(logarithms)
    return low, base64.b64encode(numbers.astype("<u2").tobytes()).decode("ascii")


def _encoded_themes(themes: np.ndarray) -> dict[str, Any]:
    """Of each word its largest entry, as `_encoded` has it, and 8 bits for how far each entry is below that.

    An entry is the largest times exp(-deepest u^2) with u = 0, 1/255, ..., 1. The square makes steps small where a word is
    frequent: at exp(-d) times the largest, half a step is sqrt(deepest d) / 255 of the entry. The deepest that there can be is
    ln(1 / FLOOR) = 27.6, so an entry is off by at most 3 % down to an eighth of the largest, and by 12 % at worst.
    """
    themes = np.clip(themes.astype(np.float64), FLOOR, 1.0)
    largest = themes.max(axis=1, keepdims=True)
    depths = np.log(largest / themes)
    deepest = float(depths.max())
    numbers = np.rint(_READ_STEPS * np.sqrt(depths / deepest)) if deepest > 0 else depths
    low, encoded = _encoded(largest)
    depth = base64.b64encode(numbers.astype(np.uint8).tobytes()).decode("ascii")
    return {"largest": encoded, "low": low, "depth": depth, "deepest": deepest}


def _documents(model: FittedModel, texts: list[str], truths: Any) -> list[list[dict[str, Any]]]:
    """For each topic the documents that show it best."""
    truths = None if truths is None else list(truths)
    if truths is not None and len(truths) != len(texts):
        raise ValueError(f"truths has {len(truths)} entries, but there are {len(texts)} documents")
    theta, best = np.zeros((0, model.n_topics)), np.zeros((model.n_topics, 0), np.int64)
    if texts:
        counts = model.count(texts)
        theta = model.proportions(counts)
        best = best_documents(theta, lengths_of(counts), _SHOWN_DOCUMENTS)
    shown = np.unique(best)
    columns = model.columns(theta[shown]) if len(shown) else {}
    predictions = {int(number): _prediction(model, columns, row) for row, number in enumerate(shown)}
    return [
        [
            {
                "text": _shortened(texts[number]),
                "share": _number(theta[number, topic]),
                "truth": None if truths is None else _truth(model, truths[number]),
                "prediction": predictions[number],
            }
            for number in numbers.tolist()
        ]
        for topic, numbers in enumerate(best)
    ]


def _prediction(model: FittedModel, columns: Mapping[str, np.ndarray], row: int) -> str | None:
    """A few words for the prediction of one document."""
    if not columns:
        return None
    if isinstance(model.targets, Numbers):
        return _numbers(_outputs(model), [column[row] for name, column in columns.items() if name.startswith("prediction")])
    if isinstance(model.targets, Labels):
        return _labels([name for name in _outputs(model) if columns[f"prediction_{name}"][row]])
    predicted = columns["prediction"][row]
    probability = columns.get(f"probability_{predicted}")
    return str(predicted) if probability is None else f"{predicted} ({probability[row]:.0%})"


def _truth(model: FittedModel, truth: Any) -> str | None:
    if truth is None or (isinstance(truth, float | np.floating) and not np.isfinite(truth)):
        return None
    if isinstance(model.targets, Labels) and not isinstance(truth, str):
        names, row = _outputs(model), list(truth)
        is_indicator = len(row) == len(names) and not any(isinstance(value, str) for value in row)
        return _labels([name for name, value in zip(names, row, strict=True) if value] if is_indicator else list(map(str, row)))
    if isinstance(model.targets, Numbers) and not isinstance(truth, str):
        return _numbers(_outputs(model), np.atleast_1d(np.asarray(truth, np.float64)).tolist())
    return str(truth)


def _numbers(names: Sequence[str], values: Sequence[float]) -> str:
    if len(values) == 1 or len(values) != len(names):
        return ", ".join(f"{value:.4g}" for value in values)
    return ", ".join(f"{name} {value:.4g}" for name, value in zip(names, values, strict=True))


def _labels(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN_LABELS} more" if len(names) > _SHOWN_LABELS else ""
    return ", ".join(names[:_SHOWN_LABELS]) + more if names else "no label"


def _shortened(text: str) -> str:
    """The beginning of a text, up to the end of a word."""
    text = " ".join(text[: 2 * _SHOWN_LETTERS].split()) if len(text) > _SHOWN_LETTERS else text.strip()
    if len(text) <= _SHOWN_LETTERS:
        return text
    beginning = text[: _SHOWN_LETTERS + 1]
    return (beginning.rpartition(" ")[0] or beginning[:-1]).rstrip() + " …"


def _settings(model: Any, configuration: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What tells this model from another: the configuration, and parameters that are not at their defaults; then the others."""
    shown = {name: value for name, value in configuration.items() if not isinstance(value, Mapping)}
    others = {name: value for group in configuration.values() if isinstance(group, Mapping) for name, value in group.items()}
    estimator = estimator_of(model)
    defaults = {name: parameter.default for name, parameter in inspect.signature(type(estimator)).parameters.items()}
    for name, value in estimator.get_params(deep=False).items():
        if name in _UNTOLD or name in shown:
            continue
        is_default = not isinstance(value, np.ndarray) and value == defaults[name]
        (others if is_default else shown)[name] = value
    return shown, others


def _setting(value: Any) -> bool | int | float | str | None:
    """A scalar that JSON has, or words for what it has not."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    words = _in_words(value.tolist() if isinstance(value, np.ndarray) else value)
    return words if len(words) <= _SHOWN_SETTING else words[: _SHOWN_SETTING - 1] + "…"


def _in_words(value: Any) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {_in_words(part)}" for name, part in value.items())
    return ", ".join(map(_in_words, value)) if isinstance(value, list | tuple) else str(value)


def _rounded(values: Any) -> list[float | None]:
    return [_number(value) for value in np.asarray(values, np.float64).tolist()]


def _number(value: float) -> float | None:
    """Six digits; JSON has neither NaN nor infinities."""
    return float(f"{value:.6g}") if math.isfinite(value) else None
