"""The files of a corpus: mapped when it is opened, fetched when they are asked for if they are behind a URL, checked once."""

from __future__ import annotations

import os
import zlib
from functools import cached_property
from pathlib import Path

import numpy as np

from mirrorlda.data.corpus.manifest import WORD_COLUMNS, Target, read_description
from mirrorlda.data.corpus.shards import NO_LABELS, CorpusError, Shard, mapped, shard_name
from mirrorlda.data.files.urls import cache_directory, fetched, is_url
from mirrorlda.data.text import TextDefinition, Vocabulary


class StoredCorpus:
    """A corpus as its files have it, all of it.

    Attributes
    ----------
    path : Path, or str for a URL
    description : dict
        What corpus.json says.
    target, splits
        As for `Corpus`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        # A path that is relative means another file once the directory has changed.
        self.path: Path | str = str(path).rstrip("/") if is_url(path) else Path(path).absolute()
        self.description = read_description(self.path)
        try:
            self._map()
        except CorpusError:
            # It may have been replaced between two looks.
            if (description := read_description(self.path)) == self.description:
                raise
            self.description = description
            self._map()
        self._checked: set[int] = set()
        self.splits = tuple(self.description["splits"])
        target = self.description["target"]
        self.target = None if target is None else Target(target["kind"], tuple(target["names"]), tuple(target["values"]))

    def _map(self) -> None:
        """Map all files: a corpus that is open stays what it is when another takes its place. Those behind a URL come later."""
        generation = self.description["generation"]
        self._files: Path = self.path / generation if isinstance(self.path, Path) else cache_directory() / generation
        self._shards = [
            Shard(self._files / shard_name(number), shard, self.description["n_words"])
            for number, shard in enumerate(self.description["shards"])
        ]
        if isinstance(self.path, Path):
            for shard in self._shards:
                shard.map()
            _ = self._words

    @cached_property
    def _words(self) -> np.ndarray:
        n_bytes = self.description["words"]["bytes"]
        self._fetch("words", n_bytes)
        return np.frombuffer(mapped(self._files / "words", n_bytes), np.uint8)

    def _fetch(self, name: str, n_bytes: int) -> None:
        """Have one of the files on this machine."""
        if isinstance(self.path, str):
            generation = self.description["generation"]
            try:
                fetched(f"{self.path}/{generation}/{name}", f"{generation}/{name}", n_bytes)
            except FileNotFoundError:
                raise CorpusError(f"{self.path}/{generation}/{name} is missing") from None

    @cached_property
    def vocabulary(self) -> Vocabulary | None:
        """The words, with the definition of the text that they were found in; None where words have only numbers."""
        if not self.description["has_words"]:
            return None
        letters, offsets = self.word_column("letters"), self.word_column("offsets")
        try:
            vocabulary = Vocabulary.from_arrays(letters, offsets, TextDefinition.from_json(self.description["text"]))
        except ValueError as error:
            raise CorpusError(f"{self._files / 'words'}: {error}") from None
        return vocabulary

    def shard(self, number: int) -> Shard:
        """One of the files of documents."""
        if number not in self._checked:
            self._fetch(shard_name(number), self.description["shards"][number]["bytes"])
            self._check_columns(self._shards[number])
            self._checked.add(number)
        return self._shards[number]

    def _check_columns(self, shard: Shard) -> None:
        """That columns have as many values as documents need, and codes stand for something."""
        wanted = {"split": shard.n_docs} if self.splits else {}
        if self.description["has_ids"]:
            wanted["id_sizes"] = shard.n_docs
            wanted["ids"] = int(shard.column("id_sizes").sum(dtype=np.int64))
        if self.target is not None and self.target.kind == "numbers":
            wanted["numbers"] = shard.n_docs * len(self.target.names)
        elif self.target is not None:
            wanted["codes"] = shard.n_docs
            if self.target.kind == "labels":
                sizes = shard.column("code_sizes")
                wanted["code_sizes"], wanted["codes"] = shard.n_docs, int(sizes[sizes != NO_LABELS].sum(dtype=np.int64))
            codes = shard.column("codes")
            if len(codes) and not -1 <= codes.min() <= codes.max() < len(self.target.values):
                raise CorpusError(f"{self._files}: a target's code is not one of the {len(self.target.values)} values")
        for name, length in wanted.items():
            if len(shard.column(name)) != length:
                raise CorpusError(
                    f"{self._files}: column {name!r} has {len(shard.column(name))} values where {length} were expected"
                )

    def labelled(self, shard: int, here: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Which documents of a shard, or of some places in it, have a target."""
        if self.target is None:
            return np.zeros(self.description["shards"][shard]["n_docs"], bool)[here]
        columns = self.shard(shard)
        if self.target.kind == "numbers":
            numbers = columns.column("numbers").reshape(-1, len(self.target.names))[here]
            return np.asarray(~np.isnan(numbers).any(axis=1))
        name, missing = ("codes", -1) if self.target.kind == "classes" else ("code_sizes", NO_LABELS)
        labelled: np.ndarray = columns.column(name)[here] != missing
        return labelled

    def word_column(self, name: str) -> np.ndarray:
        """What is stored of each word."""
        begin, length, checksum = self.description["words"]["columns"][name]
        path = self._files / "words"
        data = self._words[begin : begin + length]
        if len(data) != length or zlib.crc32(data.data) != checksum:
            raise CorpusError(f"{path}: {name!r} (bytes {begin} to {begin + length}) does not have its checksum")
        dtype = WORD_COLUMNS[name]
        n_values = self.description["n_words"] + (name == "offsets")
        if name != "letters" and (length != dtype.itemsize * n_values or begin % 8):
            raise CorpusError(f"{path}: {name!r} has {length} bytes where {n_values} values were expected")
        return np.asarray(data.view(dtype))

    def verify(self) -> None:
        """Read everything, and raise `CorpusError` where a file is not as it was written."""
        for i, about in enumerate(self.description["shards"]):
            shard = self.shard(i)
            for name in about["columns"]:
                shard.column(name)
            n_entries = int(shard.column("sizes").sum(dtype=np.int64))
            room = np.empty(n_entries, np.int32), np.empty(n_entries, np.float32)
            ends = np.cumsum(shard.column("sizes"), dtype=np.int64)
            shard.read(np.arange(shard.n_docs), ends - shard.column("sizes"), *room)
        for name in self.description["words"]["columns"]:
            self.word_column(name)
