"""Words of files that hold counts: how many there are, and which."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from mirrorlda.data.readers.rows import BadFileError, Tally
from mirrorlda.data.readers.streams import Files, Lines, Source

MOST_WORDS = 2**31 - 1


@dataclass
class Width:
    """Number of words, the same for all files."""

    n_words: int | None = None

    def agree(self, file: str, n_words: int) -> None:
        if self.n_words is None:
            self.n_words = n_words
        elif self.n_words != n_words:
            raise BadFileError(file, f"found {n_words} words, expected {self.n_words} as in the other files or as given")


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
