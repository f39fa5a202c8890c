"""Targets as users give them: arrays, and documents that have none."""

from __future__ import annotations

from typing import Any

import numpy as np


def array_of(y: Any) -> np.ndarray:
    """Targets as a dense array."""
    array = np.asarray(y.toarray() if hasattr(y, "toarray") else y)
    # NumPy would make the string "nan" of a NaN among strings in a list.
    return np.array(y, object) if array.dtype.kind in "US" and isinstance(y, list | tuple) else array


def without_missing(y: Any) -> tuple[Any, np.ndarray | None]:
    """y with a placeholder wherever None or NaN stands, and which documents have a target; None where all have one."""
    array = np.asarray(y) if y is not None and not hasattr(y, "toarray") else None
    if array is None or array.ndim == 0 or array.dtype.kind not in "fO":
        return y, None
    if array.dtype.kind == "f":
        missing = np.isnan(array)
    else:
        missing = np.array([v is None or type(v).__name__ == "NAType" or v != v for v in array.ravel()], bool).reshape(
            array.shape
        )
    wide = missing.reshape(len(array), -1)
    absent = wide.any(axis=1)
    if (partly := absent & ~wide.all(axis=1)).any():
        raise ValueError(f"y[{np.argmax(partly)}] has some targets but not all: give all of a document, or none")
    if not absent.any():
        return y, None
    if absent.all():
        raise ValueError(f"y has no targets: all {len(absent)} are None or NaN")
    filled = array.copy()
    filled[absent] = filled[np.argmin(absent)]
    if filled.dtype.kind == "O" and len({type(v) for v in filled.ravel()}) == 1:
        filled = np.array(filled.tolist())
    return filled, ~absent
