"""Users' files in: rows of text or counts, a batch at a time, with columns chosen by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from mirrorlda.data.messages import Message
from mirrorlda.data.readers.endings import FORMATS, TABLE_FORMATS, format_of
from mirrorlda.data.readers.formats import folders
from mirrorlda.data.readers.reading import Reading
from mirrorlda.data.readers.request import Request, check
from mirrorlda.data.readers.rows import BadFileError, BadRowError, Rows, Skipped
from mirrorlda.data.readers.streams import Files, expand
from mirrorlda.data.readers.vocabularies import CountedWords

__all__ = ["FORMATS", "TABLE_FORMATS", "BadFileError", "BadRowError", "Reading", "Rows", "Skipped", "read"]

# The columns of formats in which users name none themselves.
OWN_COLUMNS = {"folder": folders.COLUMNS, "svmlight": ("label",)}


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
    format = format or format_of(sources)
    if format not in FORMATS:
        raise ValueError(Message("<format> must be one of {}, got {!r}", list(FORMATS), format))
    if bad_rows not in ("error", "skip"):
        raise ValueError(Message("<bad_rows> must be 'error' or 'skip', got {!r}", bad_rows))
    skip = bad_rows == "skip"
    everything = isinstance(columns, str) and columns == "all" and format in TABLE_FORMATS
    if isinstance(columns, str):
        columns = [columns] if columns != "all" else OWN_COLUMNS.get(format, ())
    kinds = dict(columns) if isinstance(columns, Mapping) else dict.fromkeys(columns, "any")
    if delimiter is None:
        delimiter = "\t" if format == "tsv" else ","
    request = Request(text, kinds, batch_rows, batch_bytes, delimiter, quote, label_separator, everything)
    check(request, format)
    if format == "folder" and text is None:
        request = replace(request, text="text")
    counted = CountedWords(sources, format, words, n_words, zero_based, kinds.get("label"), skip)
    return Reading(sources, format, request, skip, counted)
