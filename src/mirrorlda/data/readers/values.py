"""Values of columns: each kind that can be asked for, checked; None stands for a missing value."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

# Whatever a file has, dates and nested values too; "any" is what a target may be.
AS_IT_IS = "as it is"
KINDS = ("any", "number", "class", "labels", AS_IT_IS)
DEEPEST = 100
# float() takes more than files should: underscores and digits of other scripts.
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


class UnfitError(ValueError):
    """A value that is not of the kind asked for: what was found, what was expected."""


def shown(value: Any) -> str:
    """A value as errors show it: short, and with its type where that is what is wrong."""
    names = {dict: "an object", list: "a list", bool: "a boolean", int: "the number", float: "the number", str: "the text"}
    if value is None:
        return "nothing"
    name = names.get(type(value), type(value).__name__)
    if isinstance(value, dict):
        return name
    # A number of many thousand digits cannot be printed.
    text = "too large to show" if isinstance(value, int) and value.bit_length() > 200 else repr(value)
    return f"{name} {text if len(text) <= 60 else text[:57] + '...'}"


def as_text(value: Any) -> str:
    if type(value) is not str:
        raise UnfitError(f"found {shown(value)}, expected text")
    return value


def as_number(value: Any) -> float | None:
    if value is None or value != value:
        return None
    if type(value) is float and math.isfinite(value):
        return value
    if type(value) is int and value.bit_length() <= 1023:
        return float(value)
    raise UnfitError(f"found {shown(value)}, expected a finite number")


def as_class(value: Any) -> Any:
    if value is None or value != value:
        return None
    if type(value) in (str, int, bool) or (type(value) is float and math.isfinite(value)):
        return value
    raise UnfitError(f"found {shown(value)}, expected one class: text, a finite number or a boolean")


def as_labels(value: Any) -> list[Any] | None:
    if value is None:
        return None
    if type(value) is not list:
        raise UnfitError(f"found {shown(value)}, expected a list of labels")
    labels = [as_class(label) for label in value]
    if None in labels:
        raise UnfitError(f"found {shown(value)}, expected a list of labels without missing ones")
    return labels


def as_any(value: Any) -> Any:
    return as_labels(value) if type(value) is list else as_class(value)


def as_it_is(value: Any, depth: int = 0) -> Any:
    if depth > DEEPEST:
        raise UnfitError(f"found a value that is nested more than {DEEPEST} deep, expected less")
    for part in value.values() if type(value) is dict else value if type(value) is list else ():
        if type(part) in (list, dict):
            as_it_is(part, depth + 1)
    return value


def parse_number(value: str) -> float | None:
    """A number of a text format; nothing is a missing one."""
    stripped = value.strip()
    if not stripped:
        return None
    if NUMBER.fullmatch(stripped) and math.isfinite(number := float(stripped)):
        return number
    raise UnfitError(f"found {shown(value)}, expected a finite number")


def parse_any(value: str) -> str | None:
    return value or None


def parse_labels(value: str, separator: str) -> list[str] | None:
    """Labels of a text format; separators alone are a document that has none, nothing at all one of which none is known."""
    if not value.strip():
        return None
    return [label for part in value.split(separator) if (label := part.strip())]


CHECKS: dict[str, Callable[[Any], Any]] = {
    "any": as_any,
    "number": as_number,
    "class": as_class,
    "labels": as_labels,
    AS_IT_IS: as_it_is,
}
PARSERS: dict[str, Callable[[str], Any]] = {"any": parse_any, "number": parse_number, "class": parse_any, AS_IT_IS: parse_any}
