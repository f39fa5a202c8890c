"""Which formats there are, and which one files have by the endings of their names."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from mirrorlda.data.messages import Message

if TYPE_CHECKING:
    from mirrorlda.data.readers.streams import Source

COUNT_FORMATS = ("svmlight", "uci", "mtx")
TABLE_FORMATS = ("csv", "tsv", "jsonl", "parquet")
FORMATS = (*TABLE_FORMATS, "folder", *COUNT_FORMATS)
ENDINGS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".mtx": "mtx",
}
# Files that people have, and what they can do with them.
_SHEET = "Excel files are not read: save the sheet as CSV"
_PAPER = "only plain text is read: save the texts as a column of a CSV file, or as text files in a folder"
UNREAD = dict.fromkeys((".xlsx", ".xls"), _SHEET) | dict.fromkeys((".docx", ".doc", ".pdf"), _PAPER)


def format_of(sources: list[Source]) -> str:
    """The format of all files."""
    formats = {_format_of_one(source) for source in sources}
    if len(formats) > 1:
        raise ValueError(f"the files have the formats {sorted(formats)}, expected one: read them apart")
    return formats.pop()


def _format_of_one(source: Source) -> str:
    if source.is_folder:
        return "folder"
    name = re.sub(r"\.(gz|zst)$", "", os.path.basename(source.name).lower())
    if re.fullmatch(r"docword\..*\.txt", name):
        return "uci"
    if (ending := os.path.splitext(name)[1]) in ENDINGS:
        return ENDINGS[ending]
    if ending in UNREAD:
        raise ValueError(f"{source.name}: {UNREAD[ending]}")
    raise ValueError(Message("{}: the name does not tell the format; give <format=>, one of {}", source.name, list(FORMATS)))
