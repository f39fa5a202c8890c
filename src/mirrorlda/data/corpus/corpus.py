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
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from mirrorlda.data.corpus.manifest import Target, canonical
from mirrorlda.data.corpus.selection import Selection, by_shard
from mirrorlda.data.corpus.shards import NO_LABELS, CorpusError
from mirrorlda.data.corpus.stored import StoredCorpus
from mirrorlda.data.documents import Documents
from mirrorlda.data.text import Vocabulary


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
        self.selection = Selection(StoredCorpus(path))

    @classmethod
    def of(cls, selection: Selection) -> Corpus:
        """The corpus that has the documents of a selection."""
        corpus = cls.__new__(cls)
        corpus.selection = selection
        return corpus

    @property
    def _stored(self) -> StoredCorpus:
        return self.selection.stored

    @property
    def path(self) -> Path | str:
        return self._stored.path

    @property
    def n_words(self) -> int:
        return int(self._stored.description["n_words"])

    @property
    def target(self) -> Target | None:
        return self._stored.target

    @property
    def splits(self) -> tuple[str, ...]:
        return self._stored.splits

    @property
    def has_ids(self) -> bool:
        return bool(self._stored.description["has_ids"])

    @cached_property
    def n_docs(self) -> int:
        return self.selection.n_docs

    @cached_property
    def n_entries(self) -> int:
        return self.selection.n_entries

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_docs, self.n_words

    @cached_property
    def fingerprint(self) -> str:
        described = {name: value for name, value in self._stored.description.items() if name != "generation"}
        digest = blake2b(canonical(described).encode(), digest_size=16)
        for name, value in self.selection.conditions:
            digest.update(name.encode() + (value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode()))
        return digest.hexdigest()

    @property
    def vocabulary(self) -> Vocabulary | None:
        """The words, with the definition of the text that they were found in; None where words have only numbers."""
        return self._stored.vocabulary

    @cached_property
    def frequencies(self) -> np.ndarray:
        """How often each word occurs in the whole corpus, (n_words,)."""
        return self._stored.word_column("frequencies")

    @cached_property
    def document_frequencies(self) -> np.ndarray:
        """In how many documents of the whole corpus each word occurs, (n_words,)."""
        return self._stored.word_column("document_frequencies")

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
        selection = self.selection
        if split is not None:
            if split not in self.splits:
                raise ValueError(f"the corpus has no split {split!r}; its splits are {list(self.splits)}")
            selection = selection.where("split", self.splits.index(split))
        if labelled is not None:
            selection = selection.where("labelled", bool(labelled))
        return self if selection is self.selection else Corpus.of(selection)

    def without(self, numbers: np.ndarray) -> Corpus:
        """All but the documents with these numbers."""
        return Corpus.of(self.selection.where("without", self.selection.places(np.unique(_numbers(numbers)))))

    def shard(self, number: int, n_shards: int) -> Corpus:
        """One of `n_shards` parts of about the same size, that have no document in common.

        Each takes every n-th run of 256 documents, or of as many as a file has where there are many files: a sorted corpus has
        parts that are alike. Its places are in memory, 8 bytes a document: few documents of it can be read at a time.
        """
        return Corpus.of(self.selection.shard(number, n_shards))

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process opens the corpus itself."""
        return _reopened, (self.path, self._stored.description["generation"], self.selection.conditions)

    # Documents and what stands beside them.

    def take(self, numbers: np.ndarray, dtype: type = np.float32, *, logarithmic: bool = False) -> Documents:
        """The documents with these numbers, in memory, in this order; with `logarithmic`, log2(1 + count) in place of counts."""
        numbers = _numbers(numbers)
        order = np.argsort(numbers)
        places = self.selection.places(numbers[order])
        sizes = np.empty(len(numbers), np.int64)
        sizes[order] = self.selection.sizes(places)
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        indices, counts = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], dtype)
        for shard, those, here in by_shard(places):
            self._stored.shard(shard).read(here, indptr[order[those]], indices, counts, logarithmic=logarithmic)
        return Documents(indptr, indices, counts, self.n_words)

    def will_take(self, numbers: np.ndarray) -> None:
        """Ask the system to have the documents with these numbers in memory soon; returns at once."""
        places = self.selection.places(np.sort(_numbers(numbers)))
        for shard, _, here in by_shard(places):
            self._stored.shard(shard).will_read(here)

    def targets(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Targets of the documents with these numbers, and which have one; the others hold a placeholder.

        Numbers are (n,) or (n, n_targets), classes (n,), labels (n, n_labels) of 0 and 1, in the order of `labels`.
        """
        if self.target is None:
            raise ValueError(f"{self.path} holds no targets")
        numbers = _numbers(numbers)
        order = np.argsort(numbers)
        places = self.selection.places(numbers[order])
        y, labelled = self._empty_targets(len(numbers))
        for shard, those, here in by_shard(places):
            to = order[those]
            labelled[to] = self._stored.labelled(shard, here)
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
        places = self.selection.places(numbers[order])
        ids = [""] * len(numbers)
        for number, those, here in by_shard(places):
            shard = self._stored.shard(number)
            ends = np.cumsum(shard.column("id_sizes"), dtype=np.int64)
            text = shard.column("ids")
            for place, to in zip(here, order[those], strict=True):
                begin = ends[place] - shard.column("id_sizes")[place]
                ids[to] = text[begin : ends[place]].tobytes().decode(errors="surrogatepass")
        return ids

    def columns(self, shard: int, first: int, last: int) -> dict[str, np.ndarray]:
        """What stands beside some documents of one shard of the whole corpus, as it is in the file."""
        return self._stored.shard(shard).columns(first, last)

    def matrix(self, numbers: np.ndarray | None = None) -> sp.csr_array:
        """The documents with these numbers, or all, in memory, as scikit-learn takes them."""
        documents = self.take(np.arange(self.n_docs) if numbers is None else numbers)
        return sp.csr_array((documents.counts, documents.indices, documents.indptr), shape=(documents.n_docs, self.n_words))

    def verify(self) -> None:
        """Read everything, and raise `CorpusError` where a file is not as it was written."""
        self._stored.verify()

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
            y[to] = self._stored.shard(shard).column("numbers").reshape(-1, len(self.target.names))[here]
        elif self.target.kind == "classes":
            y[to] = self._stored.shard(shard).column("codes")[here]
        else:
            sizes = self._stored.shard(shard).column("code_sizes")
            sizes = np.where(sizes == NO_LABELS, 0, sizes).astype(np.int64)
            begin = np.cumsum(sizes) - sizes
            wanted = sizes[here]
            rows = np.repeat(to, wanted)
            entries = np.repeat(begin[here] - (np.cumsum(wanted) - wanted), wanted) + np.arange(wanted.sum())
            y[rows, self._stored.shard(shard).column("codes")[entries]] = 1


def _reopened(path: Path | str, generation: str, conditions: tuple[tuple[str, Any], ...]) -> Corpus:
    selection = Selection(StoredCorpus(path))
    if selection.stored.description["generation"] != generation:
        raise CorpusError(f"{path} holds another corpus than the one that was meant: it was written anew")
    for name, value in conditions:
        selection = selection.shard(*value) if name == "shard" else selection.where(name, value)
    return Corpus.of(selection)


def _numbers(numbers: Any) -> np.ndarray:
    """Document numbers; a mask would be taken for zeros and ones."""
    array = np.asarray(numbers)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ValueError(f"documents are asked for by their numbers, got {array.dtype} of shape {array.shape}")
    return array.astype(np.int64, copy=False)
