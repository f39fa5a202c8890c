"""Words of files that hold counts: how many there are, and which."""

from __future__ import annotations

import os
import re
from functools import cached_property
from typing import Literal

from mirrorlda.data.messages import Message
from mirrorlda.data.readers.endings import COUNT_FORMATS
from mirrorlda.data.readers.formats import svmlight
from mirrorlda.data.readers.formats.triples import Width, mtx_sizes, uci_sizes
from mirrorlda.data.readers.rows import BadFileError, Tally
from mirrorlda.data.readers.streams import Files, Lines, Source
from mirrorlda.data.text import MOST_WORDS


class CountedWords:
    """The words that the columns of `counts` stand for, found when they are first asked for. Files of text have none."""

    def __init__(
        self,
        sources: list[Source],
        format: str,
        file: Files | None,
        n_words: int | None,
        zero_based: bool | Literal["auto"],
        label: str | None,
        skip: bool,
    ) -> None:
        self.sources, self.format, self.file = sources, format, file
        self.given_n_words, self.zero_based = n_words, zero_based
        # What labels must be says which rows of svmlight are bad ones, and indices of bad rows that are skipped do not count.
        self.label, self.skip = label, skip
        self.width = Width(n_words)

    @cached_property
    def words(self) -> list[str] | None:
        """The words, in the order of the columns; None if there is no file of them."""
        if self.format not in COUNT_FORMATS:
            return None
        beside = words_file(self.sources[0].path) if self.sources[0].path else None
        file = beside if self.file is None else self.file
        if file is None:
            return None
        words = read_words(file)
        self.width.agree(Source(file).name, len(words))
        return words

    @property
    def n_words(self) -> int | None:
        """How many there are; None for streams before they are read."""
        if self.width.n_words is None and self.format in COUNT_FORMATS and all(source.can_reopen for source in self.sources):
            if self.format == "svmlight":
                _ = self.ranges
            for source in self.sources if self.format != "svmlight" else ():
                with Lines(source, Tally(skip=False)) as lines:
                    sizes = uci_sizes(lines) if self.format == "uci" else mtx_sizes(lines)
                    self.width.agree(source.name, sizes.n_words)
        return self.width.n_words

    @cached_property
    def ranges(self) -> tuple[svmlight.Range, svmlight.Range]:
        """The indices that svmlight files may have, and those that they have: as given, or as a first pass finds them."""
        _ = self.words
        n_words = self.width.n_words
        low = 1 if self.zero_based is False else 0
        if n_words is not None and self.zero_based != "auto":
            allowed = svmlight.Range(low, low + n_words)
        else:
            for source in self.sources:
                if not source.can_reopen:
                    reason = Message("a stream can be read once only: give <n_words> and <zero_based>")
                    raise BadFileError(source.name, reason)
            allowed = svmlight.Range(low, MOST_WORDS)
            found = svmlight.measured(self.sources, allowed, self.label, self.skip)
            if self.zero_based == "auto":
                low = 1 if found.low > 0 else 0
            n_words = max(0, found.high - low) if n_words is None else n_words
            if self.width.n_words is not None:
                allowed = svmlight.Range(low, low + n_words)
        self.width.n_words = n_words
        return allowed, svmlight.Range(low, low + n_words)

    def where_labels_are(self, label: str | None) -> CountedWords:
        """The same words, where labels must be of this kind: other indices may be left then."""
        words = self.words
        if not self.skip or label == self.label:
            return self
        n_words = self.given_n_words if words is None else len(words)
        other = CountedWords(self.sources, self.format, self.file, n_words, self.zero_based, label, self.skip)
        other.words = words
        return other

    def without_words(self) -> CountedWords:
        """Their number alone, for processes that read one file each."""
        _ = self.ranges if self.format == "svmlight" else self.n_words
        other = CountedWords([], self.format, None, self.width.n_words, self.zero_based, self.label, self.skip)
        other.words = None
        if self.format == "svmlight":
            other.ranges = self.ranges
        return other


def words_file(path: str) -> str | None:
    """The file of words beside one of counts: vocab.kos.txt for docword.kos.txt.gz, vocab.reviews.txt for reviews.mtx."""
    folder, name = os.path.split(path)
    stem = re.sub(r"(\.(mtx|txt|svm|svmlight|libsvm))?(\.(gz|zst))?$", "", name.removeprefix("docword."))
    candidates = [os.path.join(folder, f"vocab.{stem}.txt{ending}") for ending in ("", ".gz", ".zst")]
    return next((candidate for candidate in candidates if os.path.isfile(candidate)), None)


def read_words(file: Files) -> list[str]:
    """Words of a file, one a line."""
    words: list[str] = []
    with Lines(Source(file), Tally(skip=False)) as lines:
        while line := lines.read():
            fault = lines.fault(line)
            if fault:
                lines.tally.bad(lines.name, lines.number, *fault)
            words.append(line.decode().rstrip("\r\n"))
    return words
