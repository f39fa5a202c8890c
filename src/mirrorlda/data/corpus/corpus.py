"""A corpus on disk: written once, in shards, then read by any number of processes without taking their memory.

    reviews.corpus/
      corpus.json          what there is: shards, columns, checksums; replaced in one step when all else is written
      5f0c.../             one writer's files
        words              vocabulary and word frequencies
        00000.shard ...    documents, targets, ids, split (shards.py)

A writer that dies leaves corpus.json, and what it names, as they were.
"""

from __future__ import annotations

import os
import zlib
from functools import cached_property
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from mirrorlda.data.corpus.manifest import WORD_COLUMNS, Target, canonical, read_description
from mirrorlda.data.corpus.shards import BLOCK_DOCS, NO_LABELS, SHARD_BLOCKS, SHARD_DOCS, CorpusError, Shard, mapped, shard_name
from mirrorlda.data.documents import Documents
from mirrorlda.data.files.urls import cache_directory, fetched, is_url
from mirrorlda.data.text import TextDefinition, Vocabulary

# A shard of training takes whole files of a corpus that has so many of them for each shard.
_FILES_OF_SHARD = 8


class Corpus:
    """An open corpus on disk, or a part of it. `fit` and `predict` of all estimators take it in place of a matrix.

    Parameters
    ----------
    path : path of a directory that `prepare` or `CorpusWriter` has written
        Or the URL of a copy of it (s3://, gs:// and whatever else fsspec knows), of which each file is kept on this machine once
        it was asked for: in the directory that MIRRORLDA_CACHE names, by default ~/.cache/mirrorlda.

    Attributes
    ----------
    n_docs, n_words, n_entries : int
        Documents, words of the vocabulary, distinct words of the documents added up.
    target : Target or None
    splits : tuple of str
        Names that `select(split=...)` takes.
    has_ids : bool
    fingerprint : str
        Differs wherever documents, targets or words differ.

    Examples
    --------
    >>> import tempfile
    >>> from mirrorlda import Corpus, CorpusWriter, Target, TopicRegressor
    >>> from mirrorlda.datasets import make_topics
    >>> data = make_topics(n_docs=600, n_words=60, n_topics=3, n_outputs=1, random_state=0)
    >>> path = tempfile.mkdtemp() + "/planted.corpus"
    >>> with CorpusWriter(path, n_words=60, target=Target("numbers", ("score",))) as writer:
    ...     writer.add(data.X, data.y, split=["test" if i % 5 == 0 else "train" for i in range(600)])
    >>> corpus = Corpus(path)
    >>> corpus
    <Corpus of 600 documents, 60 words, numbers 'score'>
    >>> model = TopicRegressor(random_state=0).fit(corpus.select(split="train"))
    >>> model.predict(corpus.select(split="test")).shape
    (120,)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        # A path that is relative means another file once the directory has changed.
        self.path: Path | str = str(path).rstrip("/") if is_url(path) else Path(path).absolute()
        self._about = read_description(self.path)
        try:
            self._map()
        except CorpusError:
            # It may have been replaced between two looks.
            if (about := read_description(self.path)) == self._about:
                raise
            self._about = about
            self._map()
        self._checked: set[int] = set()
        self.n_words: int = self._about["n_words"]
        self.splits = tuple(self._about["splits"])
        self.has_ids: bool = self._about["has_ids"]
        target = self._about["target"]
        self.target = None if target is None else Target(target["kind"], tuple(target["names"]), tuple(target["values"]))
        # What makes this a part: of one split, with or without a target, without some places of the whole.
        self._conditions: tuple[tuple[str, Any], ...] = ()
        # Documents of this part before each block; None where all are.
        self._starts: np.ndarray | None = None
        # Places of its documents, where they are listed.
        self._listed: np.ndarray | None = None

    def _map(self) -> None:
        """Map all files: a corpus that is open stays what it is when another takes its place. Those behind a URL come later."""
        generation = self._about["generation"]
        self._files: Path = self.path / generation if isinstance(self.path, Path) else cache_directory() / generation
        self._shards = [
            Shard(self._files / shard_name(number), shard, self._about["n_words"])
            for number, shard in enumerate(self._about["shards"])
        ]
        if isinstance(self.path, Path):
            for shard in self._shards:
                shard.map()
            _ = self._words

    @cached_property
    def _words(self) -> np.ndarray:
        n_bytes = self._about["words"]["bytes"]
        self._fetch("words", n_bytes)
        return np.frombuffer(mapped(self._files / "words", n_bytes), np.uint8)

    def _fetch(self, name: str, n_bytes: int) -> None:
        """Have one of the files on this machine."""
        if isinstance(self.path, str):
            generation = self._about["generation"]
            try:
                fetched(f"{self.path}/{generation}/{name}", f"{generation}/{name}", n_bytes)
            except FileNotFoundError:
                raise CorpusError(f"{self.path}/{generation}/{name} is missing") from None

    @cached_property
    def n_docs(self) -> int:
        if self._listed is not None:
            return len(self._listed)
        return int(self._starts[-1]) if self._starts is not None else int(self._about["n_docs"])

    @cached_property
    def n_entries(self) -> int:
        if self._listed is not None:
            return int(self._sizes(self._listed).sum(dtype=np.int64))
        if self._starts is None:
            return int(self._about["n_entries"])
        return sum(int(self._shard(i).column("sizes")[self._kept(i)].sum(dtype=np.int64)) for i in range(len(self._shards)))

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_docs, self.n_words

    @cached_property
    def fingerprint(self) -> str:
        described = {name: value for name, value in self._about.items() if name != "generation"}
        digest = blake2b(canonical(described).encode(), digest_size=16)
        for name, value in self._conditions:
            digest.update(name.encode() + (value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode()))
        return digest.hexdigest()

    @cached_property
    def vocabulary(self) -> Vocabulary | None:
        """The words, with the definition of the text that they were found in; None where words have only numbers."""
        if not self._about["has_words"]:
            return None
        letters, offsets = self._word_column("letters"), self._word_column("offsets")
        try:
            vocabulary = Vocabulary.from_arrays(letters, offsets, TextDefinition.from_json(self._about["text"]))
        except ValueError as error:
            raise CorpusError(f"{self._files / 'words'}: {error}") from None
        return vocabulary

    @cached_property
    def frequencies(self) -> np.ndarray:
        """How often each word occurs in the whole corpus, (n_words,)."""
        return self._word_column("frequencies")

    @cached_property
    def document_frequencies(self) -> np.ndarray:
        """In how many documents of the whole corpus each word occurs, (n_words,)."""
        return self._word_column("document_frequencies")

    def __len__(self) -> int:
        return self.n_docs

    def __repr__(self) -> str:
        parts = [f"{self.n_docs:,} documents", f"{self.n_words:,} words"]
        if self.target is not None:
            parts.append(f"{self.target.kind} " + ", ".join(map(repr, self.target.names)))
        return f"<Corpus of {', '.join(parts)}>"

    # Parts of a corpus.

    def select(self, *, split: str | None = None, labelled: bool | None = None) -> Corpus:
        """The documents of one split, or those with (or without) a target; reads nothing but that column."""
        part = self
        if split is not None:
            if split not in self.splits:
                raise ValueError(f"the corpus has no split {split!r}; its splits are {list(self.splits)}")
            part = part._part("split", self.splits.index(split))
        if labelled is not None:
            part = part._part("labelled", bool(labelled))
        return part

    def without(self, numbers: np.ndarray) -> Corpus:
        """All but the documents with these numbers."""
        return self._part("without", self._places(np.unique(_numbers(numbers))))

    def shard(self, number: int, n_shards: int) -> Corpus:
        """One of `n_shards` parts of about the same size, that have no document in common.

        Each takes every n-th run of 256 documents, or of as many as a file has where there are many files: a sorted corpus has
        parts that are alike. Its places are in memory, 8 bytes a document: few documents of it can be read at a time.
        """
        if not 0 <= number < n_shards:
            raise ValueError(f"there are the shards 0 to {n_shards - 1}, got {number}")
        run = SHARD_DOCS if self.n_docs >= _FILES_OF_SHARD * n_shards * SHARD_DOCS else BLOCK_DOCS
        part = self._copy("shard", (number, n_shards))
        numbers = np.arange(number * run, self.n_docs, n_shards * run)[:, None] + np.arange(run)
        part._listed = self._places(numbers[numbers < self.n_docs])
        return part

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process opens the corpus itself."""
        return _reopened, (self.path, self._about["generation"], self._conditions)

    def _part(self, name: str, value: Any) -> Corpus:
        part = self._copy(name, value)
        if self._listed is not None:
            places = self._listed
            kept = [part._kept(int(places[i]) // SHARD_DOCS)[places[i:j] % SHARD_DOCS] for i, j in _runs(places // SHARD_DOCS)]
            part._listed = places[np.concatenate([np.zeros(0, bool), *kept])]
            return part
        counts = [
            np.add.reduceat(part._kept(i).astype(np.int64), np.arange(0, shard["n_docs"], BLOCK_DOCS))
            for i, shard in enumerate(self._about["shards"])
        ]
        part._starts = np.concatenate([[0], np.cumsum(np.concatenate([np.zeros(0, np.int64), *counts]))]).astype(np.int64)
        return part

    def _copy(self, name: str, value: Any) -> Corpus:
        part = object.__new__(Corpus)
        of_the_whole = ("n_docs", "n_entries", "fingerprint")
        part.__dict__.update({name: value for name, value in vars(self).items() if name not in of_the_whole})
        part._conditions = (*self._conditions, (name, value))
        return part

    def _sizes(self, places: np.ndarray) -> np.ndarray:
        """Distinct words of the documents at these places, which ascend."""
        sizes = np.empty(len(places), np.int64)
        for first, last in _runs(places // SHARD_DOCS):
            shard = int(places[first]) // SHARD_DOCS
            sizes[first:last] = self._shard(shard).column("sizes")[places[first:last] - shard * SHARD_DOCS]
        return sizes

    def _kept(self, shard: int) -> np.ndarray:
        mask = np.ones(self._about["shards"][shard]["n_docs"], bool)
        for name, value in self._conditions:
            if name == "split":
                mask &= self._shard(shard).column("split") == value
            elif name == "labelled":
                mask &= self._labelled(shard) == value
            elif name == "without":
                first, last = np.searchsorted(value, (shard * SHARD_DOCS, (shard + 1) * SHARD_DOCS))
                mask[value[first:last] - shard * SHARD_DOCS] = False
        return mask

    def _places(self, numbers: np.ndarray) -> np.ndarray:
        """Places in the whole corpus of this part's documents with these numbers, ascending."""
        if len(numbers) and not 0 <= numbers[0] <= numbers[-1] < self.n_docs:
            raise IndexError(f"the corpus has the documents 0 to {self.n_docs - 1}, got {numbers[0]} to {numbers[-1]}")
        if self._listed is not None:
            listed: np.ndarray = self._listed[numbers]
            return listed
        if self._starts is None:
            return numbers
        places = np.empty(len(numbers), np.int64)
        blocks = np.searchsorted(self._starts, numbers, side="right") - 1
        for first, last in _runs(blocks // SHARD_BLOCKS):
            shard = int(blocks[first]) // SHARD_BLOCKS
            kept = np.flatnonzero(self._kept(shard))
            places[first:last] = kept[numbers[first:last] - self._starts[shard * SHARD_BLOCKS]] + shard * SHARD_DOCS
        return places

    # Documents and what stands beside them.

    def take(self, numbers: np.ndarray, dtype: type = np.float32, *, logarithmic: bool = False) -> Documents:
        """The documents with these numbers, in memory, in this order; with `logarithmic`, log2(1 + count) in place of counts."""
        numbers = _numbers(numbers)
        order = np.argsort(numbers)
        places = self._places(numbers[order])
        sizes = np.empty(len(numbers), np.int64)
        runs = _runs(places // SHARD_DOCS)
        sizes[order] = self._sizes(places)
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        indices, counts = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], dtype)
        for first, last in runs:
            shard = int(places[first]) // SHARD_DOCS
            here = places[first:last] - shard * SHARD_DOCS
            self._shard(shard).read(here, indptr[order[first:last]], indices, counts, logarithmic=logarithmic)
        return Documents(indptr, indices, counts, self.n_words)

    def will_take(self, numbers: np.ndarray) -> None:
        """Ask the system to have the documents with these numbers in memory soon; returns at once."""
        places = self._places(np.sort(_numbers(numbers)))
        for first, last in _runs(places // SHARD_DOCS):
            shard = int(places[first]) // SHARD_DOCS
            self._shard(shard).will_read(places[first:last] - shard * SHARD_DOCS)

    def targets(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Targets of the documents with these numbers, and which have one; the others hold a placeholder.

        Numbers are (n,) or (n, n_targets), classes (n,), labels (n, n_labels) of 0 and 1, in the order of `labels`.
        """
        if self.target is None:
            raise ValueError(f"{self.path} holds no targets")
        numbers = _numbers(numbers)
        order = np.argsort(numbers)
        places = self._places(numbers[order])
        y, labelled = self._empty_targets(len(numbers))
        for first, last in _runs(places // SHARD_DOCS):
            shard = int(places[first]) // SHARD_DOCS
            here, to = places[first:last] - shard * SHARD_DOCS, order[first:last]
            labelled[to] = self._labelled(shard, here)
            self._read_targets(shard, here, to, y)
        if self.target.kind == "classes":
            return self._values[np.maximum(y, 0)], labelled
        if self.target.kind == "numbers":
            y[~labelled] = 0
            return y[:, 0] if len(self.target.names) == 1 else y, labelled
        return y[:, np.argsort(self._values)], labelled

    def ids(self, numbers: np.ndarray) -> list[str]:
        """Ids of the documents with these numbers; where the corpus has none, their numbers."""
        if not self.has_ids:
            return [str(number) for number in numbers]
        numbers = _numbers(numbers)
        order = np.argsort(numbers)
        places = self._places(numbers[order])
        ids = [""] * len(numbers)
        for first, last in _runs(places // SHARD_DOCS):
            number = int(places[first]) // SHARD_DOCS
            shard = self._shard(number)
            ends = np.cumsum(shard.column("id_sizes"), dtype=np.int64)
            text = shard.column("ids")
            for place, to in zip(places[first:last] - number * SHARD_DOCS, order[first:last], strict=True):
                begin = ends[place] - shard.column("id_sizes")[place]
                ids[to] = text[begin : ends[place]].tobytes().decode(errors="surrogatepass")
        return ids

    def columns(self, shard: int, first: int, last: int) -> dict[str, np.ndarray]:
        """What stands beside some documents of one shard of the whole corpus, as it is in the file."""
        return self._shard(shard).columns(first, last)

    def matrix(self, numbers: np.ndarray | None = None) -> sp.csr_array:
        """The documents with these numbers, or all, in memory, as scikit-learn takes them."""
        documents = self.take(np.arange(self.n_docs) if numbers is None else numbers)
        return sp.csr_array((documents.counts, documents.indices, documents.indptr), shape=(documents.n_docs, self.n_words))

    def verify(self) -> None:
        """Read everything, and raise `CorpusError` where a file is not as it was written."""
        for i, about in enumerate(self._about["shards"]):
            shard = self._shard(i)
            for name in about["columns"]:
                shard.column(name)
            n_entries = int(shard.column("sizes").sum(dtype=np.int64))
            room = np.empty(n_entries, np.int32), np.empty(n_entries, np.float32)
            ends = np.cumsum(shard.column("sizes"), dtype=np.int64)
            shard.read(np.arange(shard.n_docs), ends - shard.column("sizes"), *room)
        for name in self._about["words"]["columns"]:
            self._word_column(name)

    @property
    def labels(self) -> list[Any]:
        """What the columns of `targets` are: names of numbers, or the labels in their order."""
        if self.target is None:
            return []
        labels: list[Any] = np.sort(self._values).tolist() if self.target.kind == "labels" else list(self.target.names)
        return labels

    @cached_property
    def _values(self) -> np.ndarray:
        assert self.target is not None
        # Where no document has a target, the placeholder must come from somewhere.
        return np.array(list(self.target.values) or ([""] if self.target.kind == "classes" else []))

    def _empty_targets(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        assert self.target is not None
        labelled = np.empty(n, bool)
        if self.target.kind == "numbers":
            return np.empty((n, len(self.target.names))), labelled
        if self.target.kind == "classes":
            return np.zeros(n, np.int64), labelled
        return np.zeros((n, len(self.target.values)), np.int8), labelled

    def _read_targets(self, shard: int, here: np.ndarray, to: np.ndarray, y: np.ndarray) -> None:
        assert self.target is not None
        if self.target.kind == "numbers":
            y[to] = self._shard(shard).column("numbers").reshape(-1, len(self.target.names))[here]
        elif self.target.kind == "classes":
            y[to] = self._shard(shard).column("codes")[here]
        else:
            sizes = self._shard(shard).column("code_sizes")
            sizes = np.where(sizes == NO_LABELS, 0, sizes).astype(np.int64)
            begin = np.cumsum(sizes) - sizes
            wanted = sizes[here]
            rows = np.repeat(to, wanted)
            entries = np.repeat(begin[here] - (np.cumsum(wanted) - wanted), wanted) + np.arange(wanted.sum())
            y[rows, self._shard(shard).column("codes")[entries]] = 1

    def _labelled(self, shard: int, here: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Which documents of a shard, or of some places in it, have a target."""
        if self.target is None:
            return np.zeros(self._about["shards"][shard]["n_docs"], bool)[here]
        columns = self._shard(shard)
        if self.target.kind == "numbers":
            numbers = columns.column("numbers").reshape(-1, len(self.target.names))[here]
            return np.asarray(~np.isnan(numbers).any(axis=1))
        name, missing = ("codes", -1) if self.target.kind == "classes" else ("code_sizes", NO_LABELS)
        labelled: np.ndarray = columns.column(name)[here] != missing
        return labelled

    def _shard(self, number: int) -> Shard:
        if number not in self._checked:
            self._fetch(shard_name(number), self._about["shards"][number]["bytes"])
            self._check_columns(self._shards[number])
            self._checked.add(number)
        return self._shards[number]

    def _check_columns(self, shard: Shard) -> None:
        """That columns have as many values as documents need, and codes stand for something."""
        wanted = {"split": shard.n_docs} if self.splits else {}
        if self.has_ids:
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

    def _word_column(self, name: str) -> np.ndarray:
        begin, length, checksum = self._about["words"]["columns"][name]
        path = self._files / "words"
        data = self._words[begin : begin + length]
        if len(data) != length or zlib.crc32(data.data) != checksum:
            raise CorpusError(f"{path}: {name!r} (bytes {begin} to {begin + length}) does not have its checksum")
        dtype = WORD_COLUMNS[name]
        n_values = self.n_words + (name == "offsets")
        if name != "letters" and (length != dtype.itemsize * n_values or begin % 8):
            raise CorpusError(f"{path}: {name!r} has {length} bytes where {n_values} values were expected")
        return np.asarray(data.view(dtype))


def _reopened(path: Path | str, generation: str, conditions: tuple[tuple[str, Any], ...]) -> Corpus:
    corpus = Corpus(path)
    if corpus._about["generation"] != generation:
        raise CorpusError(f"{path} holds another corpus than the one that was meant: it was written anew")
    for name, value in conditions:
        corpus = corpus.shard(*value) if name == "shard" else corpus._part(name, value)
    return corpus


def _numbers(numbers: Any) -> np.ndarray:
    """Document numbers; a mask would be taken for zeros and ones."""
    array = np.asarray(numbers)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ValueError(f"documents are asked for by their numbers, got {array.dtype} of shape {array.shape}")
    return array.astype(np.int64, copy=False)


def _runs(values: np.ndarray) -> list[tuple[int, int]]:
    """Where equal neighbours of ascending values begin and end."""
    edges = [0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)]
    return [(first, last) for first, last in pairwise(edges) if last > first]
