"""A table as lines of text."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def text_table(columns: Sequence[tuple[str, Sequence[str]]], left: Collection[str] = ("word", "words")) -> list[str]:
    """Lines of a table, from titles and cells of its columns; those named in `left` are words, the others numbers."""
    padded = []
    for title, cells in columns:
        width = max(map(len, (title, *cells)))
        pad = str.ljust if title in left else str.rjust
        padded.append([pad(cell, width) for cell in (title, *cells)])
    return ["  ".join(line).rstrip() for line in zip(*padded, strict=True)]
