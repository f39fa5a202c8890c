"""Arrow's types of the columns of a table: which are not known yet, and which go together."""

from __future__ import annotations

from typing import Any


def is_null(type: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_null(type))


def is_unknown(type: Any) -> bool:
    """Whether values of this type were all missing, or all empty lists."""
    import pyarrow as pa

    return is_null(type) or (bool(pa.types.is_list(type)) and is_unknown(type.value_type))


def settled(type: Any) -> Any:
    """The type of a column of which no more values come: text where it is unknown."""
    import pyarrow as pa

    if not is_unknown(type):
        return type
    return pa.string() if is_null(type) else pa.list_(settled(type.value_type))


def is_bytes(type: Any) -> bool:
    import pyarrow.types as pt

    return bool(pt.is_binary(type) or pt.is_large_binary(type) or pt.is_fixed_size_binary(type) or pt.is_binary_view(type))


def check_keys(found: Any, expected: Any, place: str = "") -> None:
    """That dicts have no keys but those of rows before: Arrow would leave them out."""
    import pyarrow as pa

    if pa.types.is_list(found) and pa.types.is_list(expected):
        check_keys(found.value_type, expected.value_type, place)
    if pa.types.is_struct(found) and pa.types.is_struct(expected):
        known = {field.name: field.type for field in expected}
        for field in found:
            if field.name not in known:
                raise pa.ArrowInvalid(f"found the key {place + field.name!r}")
            check_keys(field.type, known[field.name], f"{place}{field.name}.")


def family_of(type: Any) -> str:
    """What values are, whatever they take: numbers of one kind can be those of another, text is never a number."""
    import pyarrow.types as pt

    if pt.is_integer(type) or pt.is_floating(type):
        return "number"
    if pt.is_string(type) or pt.is_large_string(type) or pt.is_string_view(type):
        return "text"
    return str(type)
