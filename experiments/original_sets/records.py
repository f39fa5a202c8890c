"""What the formats share: the pass over files that leaves out broken records, ratings, and text of unknown encoding."""

from __future__ import annotations

import html
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from mirrorlda.readers.rows import Tally
from mirrorlda.readers.streams import Lines, Source

Review = dict[str, Any]
T = TypeVar("T")

# A tag has a letter behind its bracket: "I <3 it" has none.
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")


class BrokenRecordError(ValueError):
    """What is wrong with a record; the place is known where it is caught."""


def read(
    files: Iterable[Path],
    records: Callable[[Lines, Tally], Iterator[tuple[int, T]]],
    maker: Callable[[Path], Callable[[T], Review]],
    tally: Tally | None,
) -> Iterator[Review]:
    """Reviews made of the records of all files, each of which begins at a line."""
    is_own = tally is None
    tally = Tally(skip=True) if tally is None else tally
    for file in files:
        make = maker(file)
        with Lines(Source(file), tally) as lines:
            for line, record in records(lines, tally):
                try:
                    review = make(record)
                except BrokenRecordError as error:
                    tally.bad(lines.name, line, None, str(error))
                    continue
                tally.n_rows += 1
                yield review
    if is_own and tally.skipped.count:
        first = "\n".join(tally.skipped.reasons)
        warnings.warn(f"{tally.skipped.count} broken records left out, the first of them:\n{first}", stacklevel=2)


def needed(fields: dict[bytes, bytes], name: bytes) -> bytes:
    if name not in fields:
        raise BrokenRecordError(f"found a review without {name.decode()}, expected one with it")
    return fields[name]


def twice(names: list[bytes]) -> str:
    return next(name for name in names if names.count(name) > 1).decode()


def rating_of(value: bytes | str) -> float:
    try:
        rating = float(value)
    except ValueError:
        rating = 0.0
    if not 1 <= rating <= 5:
        raise BrokenRecordError(f"found {shown(value)} as the rating, expected a number from 1 to 5")
    return rating


def identifier(value: bytes | None) -> str | None:
    return (value and decoded(value.strip())) or None


def joined(title: bytes | None, text: bytes) -> str:
    return "\n".join(filter(None, (plain(title or b""), plain(text))))


def plain(value: bytes) -> str:
    """Text without tags and entities: "br" and "quot" would be among the most frequent words."""
    text = decoded(value.strip())
    if "<" in text:
        text = _TAG.sub(" ", text)
    return html.unescape(text) if "&" in text else text


def decoded(value: bytes) -> str:
    """UTF-8, or else what Latin-1 is in practice: Windows' code page, whose few unused bytes are no letters."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("cp1252", "replace")


def shown(value: bytes | str) -> str:
    text = (decoded(value) if isinstance(value, bytes) else value).strip()
    return repr(text if len(text) <= 60 else text[:57] + "...")
