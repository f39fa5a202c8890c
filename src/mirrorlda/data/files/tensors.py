"""One file of arrays and JSON: safetensors, with a kind, a format version and a checksum.

The file is what the safetensors library reads: the length of the header (8 bytes), the header (JSON: where each array lies, and
metadata), the arrays' bytes. Here it is written array by array, without a second copy in memory, and read with plain reads that
check every number before it is used: a memory map would end the interpreter when a file shrinks under it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np

from mirrorlda.data.files.atomic import AnyPath, replaced

VERSION = 2

_FORMAT = "mirrorlda"
_DTYPES = {
    "BOOL": np.dtype(np.bool_),
    "U8": np.dtype(np.uint8),
    "I8": np.dtype(np.int8),
    "U16": np.dtype("<u2"),
    "I16": np.dtype("<i2"),
    "U32": np.dtype("<u4"),
    "I32": np.dtype("<i4"),
    "U64": np.dtype("<u8"),
    "I64": np.dtype("<i8"),
    "F16": np.dtype("<f2"),
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
}
_NAME_OF_DTYPE = {dtype: name for name, dtype in _DTYPES.items()}
# Names are words joined by dots: nothing that could be a path.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)*", re.ASCII)
_LONGEST_NAME = 128
# The array that carries the JSON.
_JSON = "json"
# Parsed JSON takes up to 30 times its text: what may be large is an array, and these are bounds for the rest.
_LARGEST_HEADER = 1 << 20
_LARGEST_JSON = 16 << 20
_MOST_DIMENSIONS = 8
_CHUNK = 1 << 20
_BLANK = "0" * 64


class FileFormatError(ValueError):
    """A file is not what it should be: cut short, altered, of another kind, or of a version that is too new.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from mirrorlda.data.files.tensors import FileFormatError, read
    >>> path = Path(mkdtemp()) / "model.mirrorlda"
    >>> _ = path.write_text("not a model")
    >>> try:
    ...     read(path, "model")
    ... except FileFormatError as error:
    ...     print(str(error).replace(str(path), path.name))
    model.mirrorlda: found a file of 11 bytes that is not one of mirrorlda's, or was cut short
    """


def write(path: AnyPath, arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any], kind: str) -> None:
    """Write arrays and JSON to one file, which is there in full, on the disk, when this returns; until then the old one is.

    Parameters
    ----------
    path : path of the file
    arrays : dict of ndarrays
        Numbers or booleans of at most 64 bits. Names are letters, digits and underscores, in parts that dots separate.
    meta : dict
        Plain values that JSON has, at most 16 MiB of them. Tuples come back as lists.
    kind : str
        What the file holds; `read` asks for it.

    Examples
    --------
    >>> import numpy as np
    >>> from tempfile import mkdtemp
    >>> from mirrorlda.data.files import tensors
    >>> path = mkdtemp() + "/weights.safetensors"
    >>> tensors.write(path, {"w": np.arange(3.0)}, {"unit": "words"}, kind="example")
    >>> tensors.read(path, kind="example")
    ({'w': array([0., 1., 2.])}, {'unit': 'words'})
    """
    text = json.dumps(dict(meta), allow_nan=False, separators=(",", ":")).encode("ascii")
    if len(text) > _LARGEST_JSON:
        raise ValueError(f"the JSON takes {len(text)} bytes, expected at most {_LARGEST_JSON}: large values belong in arrays")
    contents = {_JSON: np.frombuffer(text, np.uint8)}
    for name, array in arrays.items():
        if not _is_name(name) or name == _JSON:
            raise ValueError(f"an array cannot be named {name!r}")
        contents[name] = _little_endian(name, np.asarray(array))
    # As the safetensors library does, so that every array is aligned to its items.
    contents = dict(sorted(contents.items(), key=lambda item: (-item[1].itemsize, item[0])))
    blank = _header(contents, kind, _BLANK)
    digest = hashlib.sha256(blank)
    for array in contents.values():
        for chunk in _chunks(array):
            digest.update(chunk)
    with replaced(path) as file:
        file.write(_header(contents, kind, digest.hexdigest()))
        for array in contents.values():
            for chunk in _chunks(array):
                file.write(chunk)


def read(path: AnyPath, kind: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the JSON of a file that `write` wrote; nothing in it is executed.

    Raises
    ------
    FileFormatError
        If the file is not of this kind and of a known version, or any byte of it is not what was written. The values of the
        arrays are the caller's to check.
    OSError
        If there is no such file or it cannot be read.

    Examples
    --------
    >>> import numpy as np
    >>> from tempfile import mkdtemp
    >>> from mirrorlda.data.files import tensors
    >>> path = mkdtemp() + "/weights.safetensors"
    >>> tensors.write(path, {"w": np.arange(3.0)}, {}, kind="example")
    >>> try:
    ...     tensors.read(path, kind="model")
    ... except tensors.FileFormatError as error:
    ...     print(str(error).replace(path, "weights.safetensors"))
    weights.safetensors: found the kind 'example', expected 'model'
    """
    with explained(path):
        # Opening a pipe would wait for its other end.
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ValueError("found a directory or a device, expected a file")
        with open(path, "rb") as file:
            return _read(file, os.fstat(file.fileno()).st_size, kind)


@contextmanager
def explained(path: AnyPath) -> Iterator[None]:
    """Errors about values become a `FileFormatError` that names the file."""
    try:
        yield
    except FileFormatError:
        raise
    except ValueError as error:
        raise FileFormatError(f"{os.fsdecode(path)}: {error}") from error


def _header(contents: Mapping[str, np.ndarray], kind: str, checksum: str) -> bytes:
    """The header with its length before it and spaces after it, so that the arrays begin at a multiple of eight bytes."""
    metadata = {"format": _FORMAT, "kind": kind, "version": str(VERSION), "checksum": checksum}
    header: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for name, array in contents.items():
        begin, end = end, end + array.nbytes
        header[name] = {"dtype": _NAME_OF_DTYPE[array.dtype], "shape": list(array.shape), "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode("ascii")
    text += b" " * (-len(text) % 8)
    if len(text) > _LARGEST_HEADER:
        raise ValueError(
            f"the header takes {len(text)} bytes, expected at most {_LARGEST_HEADER}: fewer arrays, or shorter names"
        )
    return len(text).to_bytes(8, "little") + text


def _read(file: BinaryIO, size: int, kind: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    length = int.from_bytes(file.read(8), "little")
    largest = min(_LARGEST_HEADER, size - 8)
    if not 2 <= length <= largest:
        raise ValueError(f"found a file of {size} bytes that is not one of mirrorlda's, or was cut short")
    text = file.read(length)
    header = _parsed(text, "the header")
    checksum = _check_metadata(header.pop("__metadata__", None), kind)
    places = _places(header, size - 8 - length)
    # The checksum is that of the file with zeros in its own place.
    blank = text.replace(checksum.encode("ascii"), _BLANK.encode("ascii"), 1)
    digest = hashlib.sha256(length.to_bytes(8, "little") + blank)
    arrays = {}
    for name, (dtype, shape) in places.items():
        arrays[name] = array = np.empty(shape, dtype)
        for chunk in _chunks(array):
            if file.readinto(chunk) != len(chunk):  # type: ignore[attr-defined]
                raise ValueError(f"found the end of the file inside {name!r}")
            digest.update(chunk)
    if digest.hexdigest() != checksum:
        raise ValueError(f"the checksum is {digest.hexdigest()}, expected {checksum}: the file was altered or damaged")
    meta = _parsed(arrays.pop(_JSON).tobytes(), "the JSON")
    for array in arrays.values():
        if array.dtype.kind == "b" and (array.view(np.uint8) > 1).any():
            raise ValueError("found a boolean that is neither 0 nor 1")
    return {name: array.astype(array.dtype.newbyteorder("="), copy=False) for name, array in arrays.items()}, meta


def _check_metadata(metadata: Any, kind: str) -> str:
    """The checksum of a header that is of this kind and a known version."""
    if not isinstance(metadata, dict) or metadata.get("format") != _FORMAT:
        raise ValueError("found no mark of mirrorlda in the header, expected a file that mirrorlda wrote")
    version = metadata.get("version")
    if not (isinstance(version, str) and re.fullmatch("[1-9][0-9]{0,8}", version, re.ASCII)):
        raise ValueError(f"found the format version {_short(version)}, expected a whole number")
    if int(version) > VERSION:
        raise ValueError(f"found the format version {version}, expected at most {VERSION}: it takes a newer mirrorlda")
    if metadata.get("kind") != kind:
        raise ValueError(f"found the kind {_short(metadata.get('kind'))}, expected {kind!r}")
    checksum = metadata.get("checksum")
    if not (isinstance(checksum, str) and re.fullmatch("[0-9a-f]{64}", checksum, re.ASCII)):
        raise ValueError(f"found the checksum {_short(checksum)}, expected 64 hexadecimal digits")
    if set(metadata) != {"format", "kind", "version", "checksum"}:
        raise ValueError(f"found {_short(sorted(metadata))} in the header's metadata, expected format, kind, version, checksum")
    return checksum


def _places(header: dict[str, Any], n_bytes: int) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
    """Dtype and shape of each array, in the order of their bytes, which follow each other and fill the file."""
    places, end = {}, 0
    for name, entry in header.items():
        if not _is_name(name):
            raise ValueError(f"found an array named {_short(name)}, expected letters, digits, underscores and dots")
        if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
            raise ValueError(f"found {_short(entry)} for {name!r}, expected dtype, shape and data_offsets")
        dtype = _DTYPES.get(entry["dtype"]) if isinstance(entry["dtype"], str) else None
        if dtype is None:
            raise ValueError(f"found the dtype {_short(entry['dtype'])} for {name!r}, expected one of {', '.join(_DTYPES)}")
        shape, offsets = entry["shape"], entry["data_offsets"]
        if not _are_sizes(shape) or len(shape) > _MOST_DIMENSIONS or math.prod(n or 1 for n in shape) * dtype.itemsize >= 2**62:
            raise ValueError(f"found the shape {_short(shape)} for {name!r}, expected at most {_MOST_DIMENSIONS} sizes")
        expected = [end, end + math.prod(shape) * dtype.itemsize]
        if not _are_sizes(offsets) or offsets != expected:
            raise ValueError(f"found {name!r} at {_short(offsets)}, expected {expected} for {entry['dtype']} of shape {shape}")
        end = expected[1]
        if end > n_bytes:
            raise ValueError(f"found {n_bytes} bytes of arrays, expected at least {end}: the file was cut short")
        places[name] = dtype, tuple(shape)
    if end != n_bytes:
        raise ValueError(f"found {n_bytes} bytes of arrays, expected {end}")
    if _JSON not in places or places[_JSON][0] != np.uint8 or not len(places[_JSON][1]) == 1 or n_bytes == 0:
        raise ValueError(f"found no JSON, expected an array of bytes named {_JSON!r}")
    if places[_JSON][1][0] > _LARGEST_JSON:
        raise ValueError(f"found JSON of {places[_JSON][1][0]} bytes, expected at most {_LARGEST_JSON}")
    return places


def _parsed(text: bytes, what: str) -> dict[str, Any]:
    """A JSON object without repeated names and without numbers that are not finite."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError("a name occurs twice")
        return found

    def finite(digits: str) -> float:
        number = float(digits)
        if not math.isfinite(number):
            raise ValueError(f"the number {_short(digits)} is not finite")
        return number

    try:
        value = json.loads(text.decode("utf-8"), object_pairs_hook=once, parse_float=finite, parse_constant=finite)
    except RecursionError:
        raise ValueError(f"{what} is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"{what} cannot be parsed: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{what} holds {_short(value)}, expected names and values in braces")
    return value


def _is_name(name: str) -> bool:
    return len(name) <= _LONGEST_NAME and _NAME.fullmatch(name) is not None


def _are_sizes(value: Any) -> bool:
    return isinstance(value, list) and all(type(n) is int and 0 <= n < 2**62 for n in value)


def _short(value: Any) -> str:
    """What was found, of bounded length; a number may have more digits than Python writes out."""
    if type(value) is int and abs(value) >= 2**64:
        return "a number of more than 64 bits"
    if isinstance(value, dict | list):
        return f"a {'dict' if isinstance(value, dict) else 'list'} of {len(value)}"
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _little_endian(name: str, array: np.ndarray) -> np.ndarray:
    dtype = array.dtype.newbyteorder("<")
    if dtype not in _NAME_OF_DTYPE:
        raise ValueError(f"the array {name!r} has the dtype {array.dtype}, expected one of {', '.join(_DTYPES)}")
    # Not np.ascontiguousarray, which gives a single number a dimension.
    return np.asarray(array, dtype, order="C")


def _chunks(array: np.ndarray) -> Iterator[memoryview]:
    """The bytes of a contiguous array, in pieces that stay in the cache between hashing and copying."""
    if array.size:
        raw = array.reshape(-1).view(np.uint8).data
        for first in range(0, len(raw), _CHUNK):
            yield raw[first : first + _CHUNK]
