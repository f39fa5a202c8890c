"""Users' files in: rows of text or counts, a batch at a time, with columns chosen by name."""

from __future__ import annotations

import copy
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from mirrorlda.data.messages import Message
from mirrorlda.data.readers import delimited, folders, jsonlines, parquet, svmlight
from mirrorlda.data.readers.rows import BadFileError, BadRowError, Request, Rows, Skipped, Tally
from mirrorlda.data.readers.streams import Files, Lines, Source, expand
from mirrorlda.data.readers.triples import Triples, mtx_sizes, uci_sizes
from mirrorlda.data.readers.values import KINDS
from mirrorlda.data.readers.vocabularies import MOST_WORDS, Width, read_words, words_file

__all__ = ["BadFileError", "BadRowError", "Reading", "Rows", "Skipped", "read"]

COUNT_FORMATS = ("svmlight", "uci", "mtx")
TABLE_FORMATS = ("csv", "tsv", "jsonl", "parquet")
FORMATS = (*TABLE_FORMATS, "folder", *COUNT_FORMATS)
OWN_COLUMNS = {"folder": folders.COLUMNS, "svmlight": ("label",)}
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


def read(
    files: Files | Iterable[Files],
    *,
    text: str | None = None,
    columns: Sequence[str] | Mapping[str, str] | Literal["all"] = (),
    format: str | None = None,
    bad_rows: Literal["error", "skip"] = "error",
    batch_rows: int = 8192,
    batch_bytes: int = 1 << 24,
    delimiter: str | None = None,
    quote: str | None = '"',
    label_separator: str | None = None,
    words: Files | None = None,
    n_words: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
) -> Reading:
    r"""Read documents from files of any size.

    Parameters
    ----------
    files : name, pattern, binary file object, or several of them
        A name may be that of a folder with a sub-folder a class, or a URL that fsspec knows. "-" is standard input. gzip and zstd
        are told by their content.
    text : str, optional
        The column of the text, in CSV, TSV, JSON lines and Parquet.
    columns : sequence of str, dict from str to {"any", "number", "class", "labels", "as it is"}, or "all"
        Other columns wanted, and what they must hold: a finite number, one class (text, number or boolean), a list of classes,
        or "any" of these. "as it is" takes whatever the file has, dates, decimals and nested values too. "all" are all columns of
        the files, that of the text too, as they are; of JSON lines, the keys of the first batch.
        Svmlight has the column "label"; a folder has "folder" and "path".
    format : {"csv", "tsv", "jsonl", "parquet", "svmlight", "uci", "mtx", "folder"}, optional
        By default told from the names of the files.
    bad_rows : {"error", "skip"}
        With "skip" a bad row is left out, counted in `skipped`, and a warning at the end of the pass says how many there were.
    batch_rows, batch_bytes : int
        A batch ends when it has so many rows, or about so many bytes.
    delimiter, quote : str, optional
        Of CSV and TSV; `quote=None` if quotes are characters like any other.
    label_separator : str, optional
        Of CSV and TSV: what is between the labels of a column that is asked for as "labels". Spaces around labels, and empty
        ones, are dropped; an empty field is a missing value, separators alone are an empty list.
    words : name or binary file object, optional
        Words of a file of counts, one a line. By default the file "vocab.<name>.txt" beside it, if there is one.
    n_words : int, optional
        Number of words of svmlight files. By default a pass over them finds it.
    zero_based : bool or "auto"
        Whether 0 is the first index of svmlight files; "auto": if 0 occurs in them.

    Returns
    -------
    Reading
        Iterate over it for batches, as often as you like.

    Examples
    --------
    >>> import io
    >>> from mirrorlda.readers import read
    >>> file = io.BytesIO(b'{"text": "Clean room.", "stars": 4}\n{"text": "Noisy.", "stars": null}\n')
    >>> for rows in read(file, text="text", columns={"stars": "number"}, format="jsonl"):
    ...     print(rows.texts, rows.columns["stars"])
    ['Clean room.', 'Noisy.'] [4.0, None]
    """
    sources = expand(files)
    format = format or _format_of(sources)
    everything = isinstance(columns, str) and columns == "all" and format in TABLE_FORMATS
    if isinstance(columns, str):
        columns = [columns] if columns != "all" else OWN_COLUMNS.get(format, ())
    kinds = dict(columns) if isinstance(columns, Mapping) else dict.fromkeys(columns, "any")
    _check(format, text, kinds, bad_rows, batch_rows, batch_bytes, delimiter, quote, everything)
    _check_separator(format, kinds, label_separator)
    delimiter = delimiter or ("\t" if format == "tsv" else ",")
    request = Request(text, kinds, batch_rows, batch_bytes, delimiter, quote, label_separator, everything)
    if format == "folder":
        request = replace(request, text="text" if text is None else text)
    return Reading(sources, format, request, bad_rows == "skip", words, n_words, zero_based)


class Reading:
    r"""Files being read: iterate over it for batches of rows.

    Attributes
    ----------
    format : str
    skipped : Skipped
        Bad rows left out by the pass that is under way, or by the last one.

    Examples
    --------
    >>> import io
    >>> from mirrorlda.readers import read
    >>> reading = read(io.BytesIO(b"1 1:2 3:1\n0 2:1\n"), columns=["label"], format="svmlight")
    >>> [rows.counts.toarray().tolist() for rows in reading], reading.n_words
    ([[[2.0, 0.0, 1.0], [0.0, 1.0, 0.0]]], 3)
    """

    def __init__(
        self,
        sources: list[Source],
        format: str,
        request: Request,
        skip: bool,
        words: Files | None,
        n_words: int | None,
        zero_based: bool | Literal["auto"],
    ) -> None:
        self.sources = sources
        self.format = format
        self.request = request
        self.skip = skip
        self.skipped = Skipped()
        self._words_file = words
        self._words: list[str] | None = None
        self._given_n_words = n_words
        self._width = Width(n_words)
        self._zero_based = zero_based
        self._ranges: tuple[svmlight.Range, svmlight.Range] | None = None
        # Of a part: the number of its first file among all, and the columns of the files before where all are asked for.
        self._first = 0
        self._columns: list[str] = []
        self._is_part = False

    def asking(self, columns: Mapping[str, str]) -> Reading:
        r"""The same files, from where they began, with other columns or other kinds of them.

        Words and their number are found once for both. A stream that cannot seek is still read once only.

        Parameters
        ----------
        columns : dict from str to {"any", "number", "class", "labels", "as it is"}

        Returns
        -------
        Reading

        Examples
        --------
        >>> import io
        >>> from mirrorlda.readers import read
        >>> reading = read(io.BytesIO(b"text,stars\nGood.,4\nBad.,1\n"), text="text", columns={"stars": "any"}, format="csv")
        >>> [rows.columns["stars"] for rows in reading], [rows.columns["stars"] for rows in reading.asking({"stars": "number"})]
        ([['4', '1']], [[4.0, 1.0]])
        """
        kinds = dict(columns)
        _check_columns(self.format, self.request.text, kinds, everything=False)
        if "labels" in kinds.values():
            _check_separator(self.format, kinds, self.request.label_separator)
        words = self.words
        other = copy.copy(self)
        other.request = replace(self.request, columns=kinds, everything=False)
        other.skipped = Skipped()
        if self.skip and kinds.get("label") != self.request.columns.get("label"):
            # Other rows are bad ones, so that other indices may be there.
            other._width = Width(self._given_n_words if words is None else len(words))
            other._ranges = None
        return other

    @property
    def words(self) -> list[str] | None:
        """The words of files of counts, in the order of the columns; None if there is no file of them."""
        if self._words is None and self.format in COUNT_FORMATS:
            beside = words_file(self.sources[0].path) if self.sources[0].path else None
            file = beside if self._words_file is None else self._words_file
            if file is not None:
                self._words = read_words(file)
                self._width.agree(Source(file).name, len(self._words))
        return self._words

    @property
    def n_words(self) -> int | None:
        """The number of columns of `counts`; None for files of text, and for streams before they are read."""
        if self._width.n_words is None and self.format in COUNT_FORMATS and all(source.can_reopen for source in self.sources):
            if self.format == "svmlight":
                self._measure()
            for source in self.sources if self.format != "svmlight" else ():
                with Lines(source, Tally(skip=False)) as lines:
                    sizes = uci_sizes(lines) if self.format == "uci" else mtx_sizes(lines)
                    self._width.agree(source.name, sizes.n_words)
        return self._width.n_words

    @property
    def column_names(self) -> list[str]:
        """The columns that are known before anything is read."""
        return self._columns or list(self.request.columns)

    def parts(self) -> list[Reading]:
        """One reading for each file, for another process each.

        Together they give the same rows, through `rows`, and the tallies of their passes, merged, are for `end`.
        """
        for source in self.sources:
            if source.path is None:
                raise ValueError(f"{source.name}: several processes read files by their names, got a stream: save it to a file")
        _ = self._measure() if self.format == "svmlight" else self.n_words
        whole = copy.copy(self)
        whole._words_file, whole._words, whole._is_part = None, None, True
        if self.request.everything:
            whole._columns = list(next((rows.columns for rows in self.rows(Tally(self.skip))), ()))
        parts = [copy.copy(whole) for _ in self.sources]
        for number, (part, source) in enumerate(zip(parts, self.sources, strict=True)):
            part.sources, part._first = [source.anywhere()], number
        return parts

    def __iter__(self) -> Iterator[Rows]:
        tally = Tally(self.skip)
        self.skipped = tally.skipped
        yield from self.rows(tally)
        self.end(tally)

    def end(self, tally: Tally) -> None:
        """After a pass over all files: a column that is nowhere is an error, bad rows are a warning."""
        if self.format == "jsonl":
            jsonlines.Jsonlines(self.request).end(self.sources[-1].name, tally)
        if tally.skipped.count:
            told = Message("{} bad rows skipped, {} read; the first:", tally.skipped.count, tally.n_rows)
            for reason in tally.skipped.reasons:
                told = Message("{}\n  {}", told, reason)
            warnings.warn(told, stacklevel=3)

    def rows(self, tally: Tally) -> Iterator[Rows]:
        """A pass that `tally` hears of."""
        names = self._columns
        rows_of = jsonlines.Jsonlines(self.request, names).rows if self.format == "jsonl" else self._rows_of()
        for number, source in enumerate(self.sources, self._first):
            for rows in rows_of(source, tally):
                names = names or list(rows.columns)
                if set(rows.columns) != set(names):
                    found = f"found the columns {list(rows.columns)}, expected those of the files before, {names}"
                    raise BadFileError(source.name, Message("{}: name the <columns> wanted", found))
                yield replace(rows, columns={name: rows.columns[name] for name in names}, file_number=number)

    def _rows_of(self) -> Callable[[Source, Tally], Iterator[Rows]]:
        """What reads one file."""
        request = self.request
        if self.format == "svmlight":
            allowed, found = self._measure()
            return lambda source, tally: svmlight.rows(source, request, tally, allowed, found)
        if self.format in ("uci", "mtx"):
            if not self._is_part:
                _ = self.words
            return lambda source, tally: Triples(source, request, tally, self._width).rows(self.format == "uci")
        rows = {"parquet": parquet.rows, "folder": folders.rows}.get(self.format, delimited.rows)
        return lambda source, tally: rows(source, request, tally)

    def _measure(self) -> tuple[svmlight.Range, svmlight.Range]:
        """The indices that svmlight files may have, and those that they have: as given, or as a first pass finds them."""
        if self._ranges is None:
            _ = self.words
            n_words = self._width.n_words
            low = 1 if self._zero_based is False else 0
            if n_words is not None and self._zero_based != "auto":
                allowed = svmlight.Range(low, low + n_words)
            else:
                for source in self.sources:
                    if not source.can_reopen:
                        reason = Message("a stream can be read once only: give <n_words> and <zero_based>")
                        raise BadFileError(source.name, reason)
                allowed = svmlight.Range(low, MOST_WORDS)
                found = svmlight.measured(self.sources, allowed, self.request.columns.get("label"), self.skip)
                if self._zero_based == "auto":
                    low = 1 if found.low > 0 else 0
                n_words = max(0, found.high - low) if n_words is None else n_words
                if self._width.n_words is not None:
                    allowed = svmlight.Range(low, low + n_words)
            self._width.n_words = n_words
            self._ranges = allowed, svmlight.Range(low, low + n_words)
        return self._ranges


def _format_of(sources: list[Source]) -> str:
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


def _check(
    format: str,
    text: str | None,
    columns: dict[str, str],
    bad_rows: str,
    batch_rows: int,
    batch_bytes: int,
    delimiter: str | None,
    quote: str | None,
    everything: bool,
) -> None:
    if format not in FORMATS:
        raise ValueError(Message("<format> must be one of {}, got {!r}", list(FORMATS), format))
    if bad_rows not in ("error", "skip"):
        raise ValueError(Message("<bad_rows> must be 'error' or 'skip', got {!r}", bad_rows))
    if batch_rows < 1 or batch_bytes < 1:
        raise ValueError(f"batch_rows and batch_bytes must be at least 1, got {batch_rows} and {batch_bytes}")
    for name, character in ((Message("<delimiter>"), delimiter), ("quote", quote)):
        if character is not None and (len(character) != 1 or character in "\r\n\0"):
            raise ValueError(Message("{} must be one character, got {!r}", name, character))
    if format in COUNT_FORMATS and text is not None:
        raise ValueError(Message("the format {!r} holds counts, so that <text> must be None, got {!r}", format, text))
    _check_columns(format, text, columns, everything)


def _check_separator(format: str, columns: dict[str, str], separator: str | None) -> None:
    """That CSV says how labels are separated, where they are asked for, and nothing else does."""
    labels = [name for name, kind in columns.items() if kind == "labels"]
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


def _check_columns(format: str, text: str | None, columns: dict[str, str], everything: bool) -> None:
    for name, kind in columns.items():
        if kind not in KINDS:
            raise ValueError(f"the column {name!r} must be one of {list(KINDS)}, got {kind!r}")
        if kind == "labels" and format == "folder":
            raise ValueError(f"the column {name!r} of a folder is one class, not labels")
    if format in TABLE_FORMATS and text is None and not columns and not everything:
        raise ValueError(Message("neither <text> nor <columns> are given, expected the name of one column at least"))
    if text is not None and text in columns:
        raise ValueError(Message("the column {!r} is asked for as <text> and among <columns>, expected one of them", text))
