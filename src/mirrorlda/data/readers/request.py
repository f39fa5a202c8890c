"""What is wanted of files, and whether their format has it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from mirrorlda.data.messages import Message
from mirrorlda.data.readers.endings import COUNT_FORMATS, TABLE_FORMATS
from mirrorlda.data.readers.values import AS_IT_IS, KINDS


@dataclass(frozen=True)
class Request:
    """What is wanted of each row, and how much at a time."""

    text: str | None
    columns: dict[str, str]
    batch_rows: int
    batch_bytes: int
    delimiter: str
    quote: str | None
    label_separator: str | None = None
    # Whether all columns of a file are wanted, whatever they are.
    everything: bool = False

    def of(self, names: Iterable[str]) -> Request:
        """The request of a file that has the columns with these names."""
        return replace(self, columns=dict.fromkeys(names, AS_IT_IS)) if self.everything else self

    @property
    def is_partly_as_it_is(self) -> bool:
        """Whether a column may hold what no kind of value is."""
        return self.everything or AS_IT_IS in self.columns.values()


def check(request: Request, format: str) -> None:
    """That files of a format have what is wanted of them."""
    if request.batch_rows < 1 or request.batch_bytes < 1:
        raise ValueError(f"batch_rows and batch_bytes must be at least 1, got {request.batch_rows} and {request.batch_bytes}")
    for name, character in ((Message("<delimiter>"), request.delimiter), ("quote", request.quote)):
        if character is not None and (len(character) != 1 or character in "\r\n\0"):
            raise ValueError(Message("{} must be one character, got {!r}", name, character))
    if format in COUNT_FORMATS and request.text is not None:
        raise ValueError(Message("the format {!r} holds counts, so that <text> must be None, got {!r}", format, request.text))
    check_columns(request, format)
    check_label_separator(request, format)


def check_label_separator(request: Request, format: str) -> None:
    """That CSV says how labels are separated, where they are asked for, and nothing else does."""
    separator = request.label_separator
    labels = [name for name, kind in request.columns.items() if kind == "labels"]
    if separator is None:
        if labels and format in ("csv", "tsv"):
            found = f"the column {labels[0]!r} cannot hold lists in the format {format!r}"
            raise ValueError(Message("{}: give <label_separator>", found))
        return
    if format not in ("csv", "tsv"):
        found = f"the format {format!r} has no labels that are one text"
        raise ValueError(Message("<label_separator> is for CSV and TSV; {}", found))
    if not separator or any(character in separator for character in "\r\n\0"):
        raise ValueError(Message("<label_separator> must be text of one line, such as ';', got {!r}", separator))
    if not labels:
        raise ValueError(Message("<label_separator={!r}> is given, but no column is asked for as 'labels'", separator))


def check_columns(request: Request, format: str) -> None:
    """That the columns hold what those of a format can, and that something is asked for."""
    text, columns = request.text, request.columns
    for name, kind in columns.items():
        if kind not in KINDS:
            raise ValueError(f"the column {name!r} must be one of {list(KINDS)}, got {kind!r}")
        if kind == "labels" and format == "folder":
            raise ValueError(f"the column {name!r} of a folder is one class, not labels")
    if format in TABLE_FORMATS and text is None and not columns and not request.everything:
        raise ValueError(Message("neither <text> nor <columns> are given, expected the name of one column at least"))
    if text is not None and text in columns:
        raise ValueError(Message("the column {!r} is asked for as <text> and among <columns>, expected one of them", text))
