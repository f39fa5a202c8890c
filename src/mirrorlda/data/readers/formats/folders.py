"""A folder with a sub-folder a class: one text file a document."""

from __future__ import annotations

import os
from collections.abc import Iterator

from mirrorlda.data.messages import Message
from mirrorlda.data.readers.request import Request
from mirrorlda.data.readers.rows import LONGEST_ROW, BadFileError, Batch, Rows, Tally, column_numbers
from mirrorlda.data.readers.streams import Lines, Source, whole

COLUMNS = ("folder", "path")


def rows(source: Source, request: Request, tally: Tally) -> Iterator[Rows]:
    """Documents in the order of their paths; hidden files and folders are left out.

    Columns: `folder`, the name of the sub-folder (missing for files that are in none), and `path`, relative to the folder.
    """
    if request.text not in (None, "text"):
        reason = Message("<text> is {!r}, expected None or 'text': the text is what each file holds", request.text)
        raise BadFileError(source.name, reason)
    column_numbers(source.name, list(request.columns), list(COLUMNS))
    batch = Batch(source.name, request, tally)
    assert source.path is not None
    for number, path in enumerate(_files(source.path), 1):
        inner = os.path.relpath(path, source.path)
        text = _text(path, os.path.join(source.name, inner), tally)
        if text is None:
            continue
        relative = inner.replace(os.sep, "/")
        folder, inside, _ = relative.partition("/")
        values = {"folder": folder if inside else None, "path": relative}
        batch.add(number, len(text), text, [values[name] for name in request.columns])
        if batch.is_full:
            yield batch.take()
    if batch.lines:
        yield batch.take()


def _files(folder: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        found = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries if not entry.name.startswith("."))
    for name, is_folder in found:
        path = os.path.join(folder, name)
        if is_folder:
            yield from _files(path)
        else:
            yield path


def _text(path: str, name: str, tally: Tally) -> str | None:
    """What a file holds; None if it is no text, of which `tally` hears by the file's name."""
    if not os.path.isfile(path):
        tally.bad(name, 1, None, "found what is not a regular file, expected a text file")
        return None
    with Lines(Source(path), tally) as lines:
        data = whole(name, tally, lambda: lines.stream.read(LONGEST_ROW + 1))
        try:
            if len(data) <= LONGEST_ROW and b"\0" not in data:
                return data.decode("utf-8-sig")
        except UnicodeDecodeError:
            pass
        column, reason = lines.fault(data) or (None, "found what is not text")
        # The place of a fault counts characters of the whole file.
        before = data.decode(errors="replace")[: (column or 1) - 1]
        place = None if column is None else len(before) - before.rfind("\n")
        tally.bad(name, before.count("\n") + 1, place, reason)
        return None
