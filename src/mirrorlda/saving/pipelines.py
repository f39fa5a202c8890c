"""scikit-learn's pipelines of a vectorizer and one of the estimators, as arrays and JSON, and back, checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.pipeline import Pipeline

from mirrorlda.data.files.json_values import as_json, from_json, strings_as_arrays, strings_from_arrays
from mirrorlda.estimators.vectorizer import TextVectorizer
from mirrorlda.method.responses import Response
from mirrorlda.saving import estimator_state, regexes
from mirrorlda.saving.bounds import check_parameter, is_whole
from mirrorlda.saving.estimator_state import ROUTING, Arrays, part, prefixed

_MOST_STEPS = 8
_LARGEST_IDF = 1e6
_ENCODINGS = ("utf-8", "utf8", "ascii", "latin-1", "latin1", "iso-8859-1", "cp1252", "utf-16", "utf-32")
_DTYPES = {name: np.dtype(name).type for name in ("int8", "int16", "int32", "int64", "float32", "float64", "uint8", "uint16")}
_DTYPES |= {name: np.dtype(name).type for name in ("uint32", "uint64", "bool")}
_CALLABLES = ("preprocessor", "tokenizer", "analyzer")


def as_arrays(pipeline: Pipeline) -> tuple[Arrays, dict[str, Any]]:
    """All of a pipeline. A ValueError names the step, and what in it cannot be stored."""
    if pipeline.memory is not None or getattr(pipeline, "transform_input", None) is not None:
        raise ValueError("the memory and transform_input of a Pipeline cannot be stored: set them to None")
    unknown = set(vars(pipeline)) - {"steps", "memory", "verbose", "transform_input"}
    if unknown or type(pipeline) is not Pipeline:
        raise ValueError(f"a {type(pipeline).__name__} with {', '.join(sorted(unknown)) or 'its own class'} cannot be stored")
    arrays: Arrays = {}
    steps = []
    for number, (name, step) in enumerate(pipeline.steps):
        try:
            own, content = _step_as_arrays(step, is_last=number == len(pipeline.steps) - 1)
        except ValueError as error:
            raise ValueError(f"step {name!r} of the pipeline: {error}") from None
        arrays |= prefixed(f"step{number}", own)
        steps.append({"name": name, "type": type(step).__name__, "content": content})
    _check_steps(pipeline)
    return arrays, {"steps": steps, "verbose": bool(pipeline.verbose)}


def from_arrays(arrays: Arrays, meta: Any, response: Response | None) -> Pipeline:
    """The pipeline that `as_arrays` was given."""
    if set(meta) != {"steps", "verbose"} or type(meta["verbose"]) is not bool or not isinstance(meta["steps"], list):
        raise ValueError("found no steps of a pipeline")
    if not 1 <= len(meta["steps"]) <= _MOST_STEPS:
        raise ValueError(f"found a pipeline of {len(meta['steps'])} steps, expected 1 to {_MOST_STEPS}")
    steps = []
    for number, entry in enumerate(meta["steps"]):
        if not isinstance(entry, dict) or set(entry) != {"name", "type", "content"} or not isinstance(entry["name"], str):
            raise ValueError("found a step of the pipeline that is none")
        own = part(arrays, f"step{number}")
        if number == len(meta["steps"]) - 1:
            step: Any = estimator_state.from_arrays(own, entry["content"], response)
        elif isinstance(entry["type"], str) and entry["type"] in _STEPS:
            step = _STEPS[entry["type"]][2](own, entry["content"])
        else:
            raise ValueError(f"found a step of the type {str(entry['type'])[:40]!r}, expected one of {', '.join(_STEPS)}")
        if type(step).__name__ != entry["type"]:
            raise ValueError("found a step that is not of the type that it should be")
        steps.append((entry["name"], step))
    if {name.partition(".")[0] for name in arrays} - {f"step{number}" for number in range(len(steps))}:
        raise ValueError("found arrays that belong to no step of the pipeline")
    pipeline = Pipeline(steps, verbose=meta["verbose"])
    _check_steps(pipeline)
    return pipeline


def _step_as_arrays(step: Any, *, is_last: bool) -> tuple[Arrays, Any]:
    if is_last:
        return estimator_state.as_arrays(step)
    name = type(step).__name__
    if name not in _STEPS or type(step) is not _STEPS[name][0]:
        raise ValueError(f"a {type(step).__module__}.{name} cannot be stored, expected one of {', '.join(_STEPS)}")
    arrays, content = _STEPS[name][1](step)
    return arrays, content


def _check_steps(pipeline: Pipeline) -> None:
    """Names are apart, and all steps that are fitted are so to the same words."""
    names = [name for name, _ in pipeline.steps]
    if len(set(names)) != len(names) or any("__" in name for name in names) or set(names) & set(pipeline.get_params(deep=False)):
        raise ValueError(f"found the names {str(names)[:80]} of steps, expected different ones, without '__'")
    found = [vars(step) for _, step in pipeline.steps]
    widths = {len(own["vocabulary_"]) for own in found if "vocabulary_" in own}
    widths |= {own["n_features_in_"] for own in found if "n_features_in_" in own}
    if len(widths) > 1:
        raise ValueError(f"the steps of the pipeline have different numbers of words: {sorted(widths)}")


# CountVectorizer.


def _vectorizer_as_arrays(vectorizer: CountVectorizer) -> tuple[Arrays, dict[str, Any]]:
    parameters = vectorizer.get_params(deep=False)
    # The last two say nothing of what it does.
    unknown = set(vars(vectorizer)) - set(parameters) - {"vocabulary_", "fixed_vocabulary_", "stop_words_", "_stop_words_id"}
    if unknown:
        raise ValueError(f"the attributes {', '.join(sorted(unknown))} cannot be stored")
    for name in _CALLABLES:
        if callable(parameters[name]):
            raise ValueError(f"{name} is a function, which a file cannot hold without executing what it reads: use None")
    dtype = np.dtype(parameters.pop("dtype")).name
    given = parameters.pop("vocabulary")
    _check_vectorizer(parameters)
    if dtype not in _DTYPES:
        raise ValueError(f"dtype is {dtype}, expected one of {', '.join(_DTYPES)}")
    arrays: Arrays = {}
    meta = {"dtype": dtype, "parameters": {name: as_json(value) for name, value in parameters.items()}}
    if isinstance(given, Mapping):
        arrays |= prefixed("given", strings_as_arrays(list(given)))
        arrays["given.columns"] = np.array(list(given.values()), np.int64)
    elif given is not None:
        arrays |= prefixed("given", strings_as_arrays(sorted(given) if isinstance(given, set | frozenset) else list(given)))
    if hasattr(vectorizer, "vocabulary_"):
        arrays |= prefixed("words", strings_as_arrays(_in_order(vectorizer.vocabulary_)))
        meta["is_fixed"] = bool(vectorizer.fixed_vocabulary_)
    return arrays, meta


def _vectorizer_from_arrays(arrays: Arrays, meta: Any) -> CountVectorizer:
    if not isinstance(meta, dict) or not {"dtype", "parameters"} <= set(meta) <= {"dtype", "parameters", "is_fixed"}:
        raise ValueError("found no CountVectorizer where one was expected")
    known = set(CountVectorizer().get_params(deep=False)) - {"dtype", "vocabulary"}
    if not isinstance(meta["parameters"], dict) or not set(meta["parameters"]) <= known:
        raise ValueError("found parameters that a CountVectorizer does not have")
    if not isinstance(meta["dtype"], str) or meta["dtype"] not in _DTYPES:
        raise ValueError(f"found no dtype of a CountVectorizer, expected one of {', '.join(_DTYPES)}")
    parameters = {name: from_json(value) for name, value in meta["parameters"].items()}
    _check_vectorizer(parameters)
    vectorizer = CountVectorizer(**parameters, dtype=_DTYPES[meta["dtype"]])
    if {name.partition(".")[0] for name in arrays} - {"given", "words"}:
        raise ValueError("found arrays that a CountVectorizer does not have")
    if given := part(arrays, "given"):
        columns = given.pop("columns", None)
        words = strings_from_arrays(given)
        vectorizer.vocabulary = words if columns is None else _numbered(words, columns)
    if fitted_words := part(arrays, "words"):
        found = strings_from_arrays(fitted_words)
        if type(meta.get("is_fixed")) is not bool or not found:
            raise ValueError("found no words of a CountVectorizer, or not whether they were given")
        vectorizer.vocabulary_ = _numbered(found, np.arange(len(found)))
        vectorizer.fixed_vocabulary_ = meta["is_fixed"]
    return vectorizer


def _in_order(columns: Mapping[Any, Any]) -> list[str]:
    """The words of a vocabulary by their columns, which are 0 to n - 1."""
    words: list[Any] = [None] * len(columns)
    for word, column in columns.items():
        if not isinstance(word, str) or not 0 <= column < len(words) or words[column] is not None:
            raise ValueError(
                f"the vocabulary has {str(word)[:40]!r} at column {column}, expected each of 0 to {len(words) - 1} once"
            )
        words[column] = word
    return words


def _numbered(words: list[str], columns: np.ndarray) -> dict[str, int]:
    if columns.dtype != np.int64 or columns.shape != (len(words),) or len(set(words)) != len(words):
        raise ValueError("the vocabulary has a word twice, or not a column for each")
    vocabulary = dict(zip(words, columns.tolist(), strict=True))
    _in_order(vocabulary)
    return vocabulary


_EXPECTED: dict[str, tuple[Callable[[Any], bool], str]] = {
    "input": (lambda v: v == "content", "'content'"),
    "encoding": (lambda v: isinstance(v, str) and v.lower() in _ENCODINGS, f"one of {', '.join(_ENCODINGS)}"),
    "decode_error": (lambda v: v in ("strict", "ignore", "replace"), "'strict', 'ignore' or 'replace'"),
    "strip_accents": (lambda v: v in (None, "ascii", "unicode"), "None, 'ascii' or 'unicode'"),
    "lowercase": (lambda v: isinstance(v, bool | np.bool_), "a boolean"),
    "binary": (lambda v: isinstance(v, bool | np.bool_), "a boolean"),
    "preprocessor": (lambda v: v is None, "None"),
    "tokenizer": (lambda v: v is None, "None"),
    "analyzer": (lambda v: v in ("word", "char", "char_wb"), "'word', 'char' or 'char_wb'"),
    "stop_words": (
        lambda v: v is None or v == "english" or (isinstance(v, list) and all(isinstance(word, str) for word in v)),
        "None, 'english' or a list of words",
    ),
    "token_pattern": (lambda v: v is None or (isinstance(v, str) and regexes.is_bounded(v)), regexes.RULE),
    "ngram_range": (
        lambda v: isinstance(v, tuple | list) and len(v) == 2 and all(is_whole(n, 1, 32) for n in v) and v[0] <= v[1],
        "a pair of whole numbers from 1 to 32",
    ),
    "max_df": (lambda v: isinstance(v, Real) and 0 <= float(v) < 2**62, "a number of documents or a fraction"),
    "min_df": (lambda v: isinstance(v, Real) and 0 <= float(v) < 2**62, "a number of documents or a fraction"),
    "max_features": (lambda v: v is None or is_whole(v, 1, 2**62), "None or a number of words"),
}


def _check_vectorizer(parameters: Mapping[str, Any]) -> None:
    for name, value in parameters.items():
        holds, expected = _EXPECTED[name]
        if not holds(value):
            raise ValueError(f"{name} is {str(value)[:60]!r}, expected {expected}")
    if parameters.get("analyzer") == "word" and parameters.get("token_pattern", "") is None:
        raise ValueError("token_pattern is None, expected a pattern that finds words")


# TextVectorizer.


def _text_as_arrays(vectorizer: TextVectorizer) -> tuple[Arrays, dict[str, Any]]:
    parameters = vectorizer.get_params(deep=False)
    if unknown := set(vars(vectorizer)) - set(parameters) - {"vocabulary_", ROUTING}:
        raise ValueError(f"the attributes {', '.join(sorted(unknown))} cannot be stored")
    _check_text(parameters)
    meta: dict[str, Any] = {"parameters": {name: as_json(value) for name, value in parameters.items()}}
    if not hasattr(vectorizer, "vocabulary_"):
        return {}, meta
    arrays, meta["text"] = estimator_state.vocabulary_as_arrays(vectorizer.vocabulary_)
    return arrays, meta


def _text_from_arrays(arrays: Arrays, meta: Any) -> TextVectorizer:
    if not isinstance(meta, dict) or not {"parameters"} <= set(meta) <= {"parameters", "text"}:
        raise ValueError("found no TextVectorizer where one was expected")
    known = set(TextVectorizer().get_params(deep=False))
    if not isinstance(meta["parameters"], dict) or not set(meta["parameters"]) <= known:
        raise ValueError("found parameters that a TextVectorizer does not have")
    parameters = {name: from_json(value) for name, value in meta["parameters"].items()}
    _check_text(parameters)
    vectorizer = TextVectorizer(**parameters)
    if "text" in meta:
        vectorizer.vocabulary_ = estimator_state.vocabulary_from_arrays(arrays, meta["text"])
    elif arrays:
        raise ValueError("found arrays of a TextVectorizer that is not fitted")
    return vectorizer


def _check_text(parameters: Mapping[str, Any]) -> None:
    """`fit` checks the rest."""
    if "n_jobs" in parameters:
        check_parameter("n_jobs", parameters["n_jobs"])
    stop_words = parameters.get("stop_words")
    are_words = isinstance(stop_words, list | tuple | set | frozenset) and all(isinstance(word, str) for word in stop_words)
    if not (stop_words is None or stop_words == "english" or are_words):
        raise ValueError(f"stop_words is {str(stop_words)[:60]!r}, expected None, 'english' or a list or set of words")


# TfidfTransformer.


def _tfidf_as_arrays(transformer: TfidfTransformer) -> tuple[Arrays, dict[str, Any]]:
    parameters = transformer.get_params(deep=False)
    _check_tfidf(parameters)
    if unknown := set(vars(transformer)) - set(parameters) - {"idf_", "n_features_in_", ROUTING}:
        raise ValueError(f"the attributes {', '.join(sorted(unknown))} cannot be stored")
    meta = {"parameters": parameters}
    if hasattr(transformer, "n_features_in_"):
        meta["n_features_in_"] = transformer.n_features_in_
    return {"idf": transformer.idf_} if "idf_" in vars(transformer) else {}, meta


def _tfidf_from_arrays(arrays: Arrays, meta: Any) -> TfidfTransformer:
    if not isinstance(meta, dict) or not {"parameters"} <= set(meta) <= {"parameters", "n_features_in_"}:
        raise ValueError("found no TfidfTransformer where one was expected")
    if not isinstance(meta["parameters"], dict) or set(meta["parameters"]) != set(TfidfTransformer().get_params()):
        raise ValueError("found parameters that a TfidfTransformer does not have")
    _check_tfidf(meta["parameters"])
    transformer = TfidfTransformer(**meta["parameters"])
    if "n_features_in_" in meta:
        if type(meta["n_features_in_"]) is not int or ("idf" in arrays) != transformer.use_idf or set(arrays) - {"idf"}:
            raise ValueError("found no weights of a TfidfTransformer where these were expected")
        transformer.n_features_in_ = meta["n_features_in_"]
    elif arrays:
        raise ValueError("found arrays of a TfidfTransformer that is not fitted")
    if "idf" in arrays:
        idf = arrays["idf"]
        if idf.shape != (meta["n_features_in_"],) or idf.dtype not in (np.float32, np.float64):
            raise ValueError(f"found weights of shape {idf.shape}, expected one for each word")
        if not ((idf >= 0) & (idf <= _LARGEST_IDF)).all():
            raise ValueError(f"found weights of words that are not from 0 to {_LARGEST_IDF:g}")
        transformer.idf_ = idf
    return transformer


def _check_tfidf(parameters: Mapping[str, Any]) -> None:
    for name, value in parameters.items():
        if not (value in ("l1", "l2", None) if name == "norm" else isinstance(value, bool)):
            raise ValueError(f"{name} is {str(value)[:60]!r}, expected {'l1, l2 or None' if name == 'norm' else 'a boolean'}")


_STEPS: dict[str, tuple[type[Any], Callable[[Any], tuple[Arrays, Any]], Callable[[Arrays, Any], Any]]] = {
    "CountVectorizer": (CountVectorizer, _vectorizer_as_arrays, _vectorizer_from_arrays),
    "TextVectorizer": (TextVectorizer, _text_as_arrays, _text_from_arrays),
    "TfidfTransformer": (TfidfTransformer, _tfidf_as_arrays, _tfidf_from_arrays),
}
