"""Python values as JSON and as arrays, and back: the parameters and labels that users give, with nothing executed.

JSON has no tuples, no keys but strings and no NumPy, so each of these is an object with one name that says what it is:
{"tuple": [...]}, {"set": [...]}, {"frozenset": [...]}, {"dict": [[key, value], ...]}, {"float": "inf"},
{"scalar": ["float32", [0.5]]}, {"array": ["float64", [2], [0.5, 1.5]]}, {"RandomState": [...]}.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

_DEEPEST = 16
_DTYPES = {name: np.dtype(name) for name in ("bool", "int8", "int16", "int32", "int64", "float16", "float32", "float64")}
_DTYPES |= {name: np.dtype(name) for name in ("uint8", "uint16", "uint32", "uint64")}
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_TWISTER_WORDS = 624
# Memory of an array of strings of one width: at most so much, or so many times the strings' own bytes.
_WIDE, _WIDER = 1 << 22, 16


def as_json(value: Any, depth: int = 0) -> Any:
    """A value that `from_json` gives back: None, booleans, numbers, strings, lists, tuples, sets, dicts, NumPy's, RandomState.

    Examples
    --------
    >>> from mirrorlda.data.files.json_values import as_json, from_json
    >>> as_json({0: ("a", 1.5)})
    {'dict': [[0, {'tuple': ['a', 1.5]}]]}
    >>> from_json(as_json({0: ("a", 1.5)}))
    {0: ('a', 1.5)}
    """
    if depth > _DEEPEST:
        raise ValueError(f"a value is nested more than {_DEEPEST} deep")
    if value is None or isinstance(value, bool) or type(value) is str:
        return value
    if type(value) is int:
        if abs(value) >= 2**63:
            raise ValueError("a whole number has more than 64 bits")
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, np.generic):
        return as_json(value.item()) if isinstance(value, np.str_) else {"scalar": _numbers(value)[::2]}
    if isinstance(value, np.ndarray):
        return {"array": _numbers(value)}
    if isinstance(value, Mapping):
        return {"dict": [[as_json(key, depth + 1), as_json(item, depth + 1)] for key, item in value.items()]}
    if isinstance(value, tuple):
        return {"tuple": [as_json(item, depth + 1) for item in value]}
    if isinstance(value, list):
        return [as_json(item, depth + 1) for item in value]
    if isinstance(value, set | frozenset):
        # In one order, whatever the order of the hashes is.
        items = sorted((as_json(item, depth + 1) for item in value), key=json.dumps)
        return {"set" if isinstance(value, set) else "frozenset": items}
    if isinstance(value, np.random.RandomState):
        return {"RandomState": _random_state(value)}
    raise ValueError(f"a {type(value).__module__}.{type(value).__qualname__} cannot be stored")


def from_json(value: Any, depth: int = 0) -> Any:
    """The value that `as_json` was given."""
    if depth > _DEEPEST:
        raise ValueError(f"a value is nested more than {_DEEPEST} deep")
    if value is None or isinstance(value, bool | str | float):
        return value
    if isinstance(value, int):
        if abs(value) >= 2**63:
            raise ValueError("a whole number has more than 64 bits")
        return value
    if isinstance(value, list):
        return [from_json(item, depth + 1) for item in value]
    if not isinstance(value, dict) or len(value) != 1:
        raise ValueError("a value is of no known type")
    [(name, content)] = value.items()
    if name == "float" and isinstance(content, str) and content in _NOT_FINITE:
        return _NOT_FINITE[content]
    if name in _READERS and isinstance(content, list):
        return _READERS[name](content, depth + 1)
    raise ValueError(f"a value is of no known type: {name[:20]!r}")


def strings_as_arrays(strings: Sequence[str]) -> dict[str, np.ndarray]:
    """Strings as two arrays: their UTF-8, one after another, and where each begins, with the end.

    Examples
    --------
    >>> from mirrorlda.data.files.json_values import strings_as_arrays, strings_from_arrays
    >>> strings_as_arrays(["a", "bc"])["begins"]
    array([0, 1, 3])
    >>> strings_from_arrays(strings_as_arrays(["a", "bc"]))
    ['a', 'bc']
    """
    if not all(isinstance(string, str) for string in strings):
        raise ValueError("strings were expected, and something else is among them")
    encoded = [string.encode("utf-8", "surrogatepass") for string in strings]
    begins = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(part) for part in encoded], out=begins[1:])
    return {"bytes": np.frombuffer(b"".join(encoded), np.uint8), "begins": begins}


def strings_from_arrays(arrays: Mapping[str, np.ndarray]) -> list[str]:
    """The strings that `strings_as_arrays` was given."""
    raw, begins = arrays.get("bytes"), arrays.get("begins")
    if raw is None or begins is None or raw.dtype != np.uint8 or begins.dtype != np.int64 or raw.ndim != 1 or begins.ndim != 1:
        raise ValueError("found no bytes and begins of strings where these were expected")
    if not len(begins) or begins[0] != 0 or begins[-1] != len(raw) or (begins[1:] < begins[:-1]).any():
        raise ValueError("the strings do not begin one after another")
    text, places = raw.tobytes(), begins.tolist()
    return [text[begin:end].decode("utf-8", "surrogatepass") for begin, end in pairwise(places)]


def labels_as_arrays(labels: np.ndarray) -> tuple[dict[str, np.ndarray], Any]:
    """Labels of classes, or names, (n,): arrays, and the kind of labels they are."""
    if labels.ndim == 1 and labels.dtype.name in _DTYPES:
        return {"numbers": labels}, "numbers"
    if labels.ndim == 1 and labels.dtype.kind == "U":
        strings = labels.tolist()
        _check_width(strings, width := labels.dtype.itemsize // 4)
        return strings_as_arrays(strings), width
    if labels.ndim == 1 and labels.dtype.kind == "O" and all(type(label) is str for label in labels):
        return strings_as_arrays(labels.tolist()), "objects"
    raise ValueError(f"labels of the type {labels.dtype} cannot be stored, expected numbers, booleans or strings")


def labels_from_arrays(arrays: Mapping[str, np.ndarray], kind: Any) -> np.ndarray:
    """The labels that `labels_as_arrays` was given."""
    if kind == "numbers":
        if set(arrays) != {"numbers"} or arrays["numbers"].ndim != 1:
            raise ValueError("found no numbers of labels where these were expected")
        return arrays["numbers"]
    strings = strings_from_arrays(arrays)
    if kind == "objects":
        labels = np.empty(len(strings), object)
        labels[:] = strings
        return labels
    if type(kind) is not int or not 0 < kind < 2**31:
        raise ValueError("labels are of no known kind")
    _check_width(strings, kind)
    return np.array(strings, f"U{kind}")


def _check_width(strings: list[str], width: int) -> None:
    if max(map(len, strings), default=0) > width:
        raise ValueError(f"a label is longer than {width} letters")
    if 4 * width * len(strings) > _WIDE + _WIDER * sum(map(len, strings)):
        raise ValueError(f"labels of {width} letters take much more memory than they hold: use an array of objects")


def _numbers(array: Any) -> list[Any]:
    array = np.asarray(array)
    name = array.dtype.name
    if array.dtype.kind == "U" or (array.dtype.kind == "O" and all(type(item) is str for item in array.ravel())):
        name = "object" if array.dtype.kind == "O" else "str"
    elif name not in _DTYPES:
        raise ValueError(f"an array of {array.dtype} cannot be stored")
    return [name, list(array.shape), [as_json(item) for item in array.ravel().tolist()]]


def _array(content: list[Any], depth: int) -> np.ndarray:
    if len(content) != 3 or not isinstance(content[1], list) or not isinstance(content[2], list) or len(content[1]) > 8:
        raise ValueError("an array is not a dtype, a shape and values")
    name, shape, values = content
    if not all(type(n) is int and 0 <= n < 2**31 for n in shape) or math.prod(shape) != len(values):
        raise ValueError(f"an array has {len(values)} values, expected as many as its shape says")
    if math.prod(n or 1 for n in shape) >= 2**58:
        raise ValueError("the shape of an array is too large")
    items = [from_json(value, depth) for value in values]
    if name in ("str", "object"):
        if not all(isinstance(item, str) for item in items):
            raise ValueError("an array of strings holds something else")
        longest = max(map(len, items), default=0)
        if name == "str":
            _check_width(items, longest)
        return np.array(items, object if name == "object" else f"U{max(longest, 1)}").reshape(shape)
    if not isinstance(name, str) or name not in _DTYPES:
        raise ValueError("an array is of no known dtype")
    return np.array([_fitting(item, _DTYPES[name]) for item in items], _DTYPES[name]).reshape(shape)


def _scalar(content: list[Any], depth: int) -> Any:
    if len(content) != 2 or not isinstance(content[0], str) or content[0] not in _DTYPES or not isinstance(content[1], list):
        raise ValueError("a scalar is not a dtype and a value")
    return _array([content[0], [], content[1]], depth)[()]


def _fitting(item: Any, dtype: np.dtype[Any]) -> Any:
    """A number that is one of this dtype already."""
    if dtype.kind == "b" and isinstance(item, bool):
        return item
    if dtype.kind in "iu" and type(item) is int and np.iinfo(dtype).min <= item <= np.iinfo(dtype).max:
        return item
    if dtype.kind == "f" and isinstance(item, float) and not (math.isfinite(item) and abs(item) > np.finfo(dtype).max):
        return item
    raise ValueError(f"an array of {dtype} holds something else")


def _tuple(content: list[Any], depth: int) -> tuple[Any, ...]:
    return tuple(from_json(item, depth) for item in content)


def _set(content: list[Any], depth: int) -> set[Any]:
    items = [from_json(item, depth) for item in content]
    if not all(map(_is_key, items)) or len(found := set(items)) != len(items):
        raise ValueError("a set holds something twice, or something that cannot be in one")
    return found


def _frozenset(content: list[Any], depth: int) -> frozenset[Any]:
    return frozenset(_set(content, depth))


def _dict(content: list[Any], depth: int) -> dict[Any, Any]:
    found = {}
    for pair in content:
        if not isinstance(pair, list) or len(pair) != 2:
            raise ValueError("a dict holds something that is no pair")
        key = from_json(pair[0], depth)
        if not _is_key(key):
            raise ValueError("a dict has a key that is none")
        found[key] = from_json(pair[1], depth)
    if len(found) != len(content):
        raise ValueError("a dict has a key twice")
    return found


def _is_key(key: Any) -> bool:
    return (
        all(map(_is_key, key))
        if isinstance(key, tuple)
        else key is None or isinstance(key, bool | int | float | str | np.generic)
    )


def _random_state(value: np.random.RandomState) -> list[Any]:
    state: Any = value.get_state(legacy=True)
    name, words, position, has_gauss, gauss = state
    if name != "MT19937":
        raise ValueError(f"a RandomState of {name} cannot be stored, expected MT19937")
    return [words.tolist(), int(position), int(has_gauss), float(gauss)]


def _twister(content: list[Any], depth: int) -> np.random.RandomState:
    if len(content) != 4 or not isinstance(content[0], list) or len(content[0]) != _TWISTER_WORDS:
        raise ValueError("a RandomState is not 624 words, a position and a number")
    words, position, has_gauss, gauss = content
    # A position beyond the words would be read from other memory.
    if not (type(position) is int and 0 <= position <= _TWISTER_WORDS and has_gauss in (0, 1) and isinstance(gauss, float)):
        raise ValueError("a RandomState is at no position of its words")
    keys = np.array([_fitting(word, _DTYPES["uint32"]) for word in words], np.uint32)
    state = np.random.RandomState(0)
    state.set_state(("MT19937", keys, position, int(has_gauss), gauss))
    return state


_READERS: dict[str, Callable[[list[Any], int], Any]] = {
    "tuple": _tuple,
    "set": _set,
    "frozenset": _frozenset,
    "dict": _dict,
    "array": _array,
    "scalar": _scalar,
    "RandomState": _twister,
}
