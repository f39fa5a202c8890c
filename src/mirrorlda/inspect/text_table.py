"""A table as lines of text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence


def in_lines(rows: Iterable[Sequence[str]]) -> list[str]:
    """The words of each row as one line, with commas between them if any row has a phrase.

    Examples
    --------
    >>> from mirrorlda.inspect.text_table import in_lines
    >>> in_lines([["clean", "quiet"], ["noisy"]]), in_lines([["clean", "front desk"], ["noisy", "loud"]])
    (['clean quiet', 'noisy'], ['clean, front desk', 'noisy, loud'])
    """
    rows = [list(row) for row in rows]
    between = ", " if any(" " in word for row in rows for word in row) else " "
    return [between.join(row) for row in rows]


def text_table(columns: Sequence[tuple[str, Sequence[str]]], left: Collection[str] = ("word", "words")) -> list[str]:
    """Lines of a table, from titles and cells of its columns; those named in `left` are words, the others numbers."""
    padded = []
    for title, cells in columns:
        width = max(map(len, (title, *cells)))
        pad = str.ljust if title in left else str.rjust
        padded.append([pad(cell, width) for cell in (title, *cells)])
    return ["  ".join(line).rstrip() for line in zip(*padded, strict=True)]
