"""Files being read: passes over them that give batches of rows, whatever their format."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from mirrorlda.data.messages import Message
from mirrorlda.data.readers.formats import delimited, folders, jsonlines, parquet, svmlight
from mirrorlda.data.readers.formats.triples import Triples
from mirrorlda.data.readers.request import Request, check_columns, check_label_separator
from mirrorlda.data.readers.rows import BadFileError, Rows, Skipped, Tally
from mirrorlda.data.readers.streams import Source
from mirrorlda.data.readers.vocabularies import CountedWords


class Reading:
    r"""Files being read: iterate over it for batches of rows.

    Attributes
    ----------
    format : str
    column_names : list of str
        The columns that are known before anything is read.
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
        counted: CountedWords,
        first_number: int = 0,
        column_names: Sequence[str] = (),
    ) -> None:
        self.sources = sources
        self.format = format
        self.request = request
        self.skip = skip
        self.skipped = Skipped()
        self._counted = counted
        # A part has the number of its file among all.
        self._first_number = first_number
        # Where all columns are asked for, a part has those of the first file.
        self.column_names = list(column_names or request.columns)

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
        request = replace(self.request, columns=dict(columns), everything=False)
        check_columns(request, self.format)
        if "labels" in columns.values():
            check_label_separator(request, self.format)
        return Reading(self.sources, self.format, request, self.skip, self._counted.where_labels_are(columns.get("label")))

    @property
    def words(self) -> list[str] | None:
        """The words of files of counts, in the order of the columns; None if there is no file of them."""
        return self._counted.words

    @property
    def n_words(self) -> int | None:
        """The number of columns of `counts`; None for files of text, and for streams before they are read."""
        return self._counted.n_words

    def parts(self) -> list[Reading]:
        """One reading for each file, for another process each.

        Together they give the same rows, through `rows`, and the tallies of their passes, merged, are for `end`.
        """
        for source in self.sources:
            if source.path is None:
                raise ValueError(f"{source.name}: several processes read files by their names, got a stream: save it to a file")
        counted, names = self._counted.without_words(), self.column_names
        if self.request.everything:
            names = list(next((rows.columns for rows in self.rows(Tally(self.skip))), ()))
        return [
            Reading([source.anywhere()], self.format, self.request, self.skip, counted, number, names)
            for number, source in enumerate(self.sources)
        ]

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
        names = self.column_names if self.request.everything else []
        rows_of = jsonlines.Jsonlines(self.request, names).rows if self.format == "jsonl" else self._rows_of()
        for number, source in enumerate(self.sources, self._first_number):
            for rows in rows_of(source, tally):
                names = names or list(rows.columns)
                if set(rows.columns) != set(names):
                    found = f"found the columns {list(rows.columns)}, expected those of the files before, {names}"
                    raise BadFileError(source.name, Message("{}: name the <columns> wanted", found))
                yield replace(rows, columns={name: rows.columns[name] for name in names}, file_number=number)

    def _rows_of(self) -> Callable[[Source, Tally], Iterator[Rows]]:
        """What reads one file."""
        request, counted = self.request, self._counted
        if self.format == "svmlight":
            allowed, found = counted.ranges
            return lambda source, tally: svmlight.rows(source, request, tally, allowed, found)
        if self.format in ("uci", "mtx"):
            # A number of words that files do not have is an error before they are read.
            _ = counted.words
            return lambda source, tally: Triples(source, request, tally, counted.width).rows(self.format == "uci")
        rows = {"parquet": parquet.rows, "folder": folders.rows}.get(self.format, delimited.rows)
        return lambda source, tally: rows(source, request, tally)
