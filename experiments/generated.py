"""Documents like those of a file, as many as are wanted.

Each has the length and the topic proportions of a document of the file that is drawn at random. Its words are drawn from the
topics that BP-LDA finds there; some repeat another word of the same document, so that it has as many distinct words as real ones
have. Its target is what BP-sLDA, trained on the file, predicts, plus noise: as much of its variance is explained as BP-sLDA
explains in the file.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from mirrorlda.metrics import predictive_r2
from tqdm import tqdm

import mirrorlda
from mirrorlda import Corpus, CorpusWriter, Target, TopicModel, TopicRegressor

# Topics that the words come from, epochs that they are learned in, and topics that the targets come from.
N_TOPICS, N_EPOCHS, N_PREDICTING = 50, 10, 5
PART = 65_536
# Documents that are drawn at once: their numbers times those of words fit 32 bits, and all of it fits a cache.
BLOCK = 2_048
# Distributions are tables of equally probable places: of topics in a document, and of words in a topic.
TOPIC_BITS, WORD_BITS, REPEAT_BITS, PLACE_BITS = 8, 17, 15, 24
# Of a distinct word of a document on disk; measured 3.
BYTES = 4
# Documents that are drawn to see what they are like.
N_TRIED = 8_192


@dataclass(frozen=True)
class Source:
    """What documents are drawn from."""

    # Of each real document, its length and the topics at 2**TOPIC_BITS places.
    lengths: np.ndarray
    topics: np.ndarray
    # Of each topic, the words at 2**WORD_BITS places.
    words: np.ndarray
    # What predicts the target, and the share of its variance that this explains.
    model: TopicRegressor
    explained: float
    # Mean and deviation of the target.
    mean: float
    deviation: float
    # Probability that a word repeats another one of its document.
    repeats: float = 0.0
    # Mean and deviation of predictions for documents that were drawn.
    predicted_mean: float = 0.0
    predicted_deviation: float = 1.0

    @property
    def n_words(self) -> int:
        return self.model.n_features_in_


def places(probabilities: np.ndarray, n_bits: int) -> np.ndarray:
    """Columns of a row in 2**n_bits places, each as often as its share of the row says; (n_rows, 2**n_bits)."""
    n_rows, n_columns = probabilities.shape
    summed = np.cumsum(probabilities, axis=1, dtype=np.float64)
    ends = np.floor(summed / summed[:, -1:] * 2**n_bits + 0.5).astype(np.int64)
    kind = np.uint8 if n_columns <= 2**8 else np.uint16 if n_columns <= 2**16 else np.int32
    columns = np.tile(np.arange(n_columns, dtype=kind), n_rows)
    return np.repeat(columns, np.diff(ends, axis=1, prepend=0).ravel()).reshape(n_rows, 2**n_bits)


def _bits(drawn: np.ndarray, first: int, n_bits: int) -> np.ndarray:
    return ((drawn >> np.uint64(first)) & np.uint64(2**n_bits - 1)).astype(np.int64)


def _block(source: Source, n_docs: int, rng: np.random.Generator) -> sp.csr_array:
    chosen = rng.integers(len(source.lengths), size=n_docs)
    lengths = source.lengths[chosen].astype(np.int64)
    documents = np.repeat(np.arange(n_docs, dtype=np.int32), lengths)
    starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
    drawn = rng.integers(2**64, size=len(documents), dtype=np.uint64)
    topics = source.topics[chosen[documents], _bits(drawn, 0, TOPIC_BITS)]
    words = source.words[topics, _bits(drawn, TOPIC_BITS, WORD_BITS)].astype(np.int32)
    repeats = _bits(drawn, TOPIC_BITS + WORD_BITS, REPEAT_BITS) < source.repeats * 2**REPEAT_BITS
    place = _bits(drawn, TOPIC_BITS + WORD_BITS + REPEAT_BITS, PLACE_BITS)[repeats]
    words[repeats] = words[starts[repeats] + ((place * lengths[documents[repeats]]) >> PLACE_BITS)]
    kind = np.int32 if n_docs * source.n_words < 2**31 else np.int64
    keys = np.sort(documents.astype(kind) * source.n_words + words)
    firsts = np.flatnonzero(np.diff(keys, prepend=-1))
    counts = np.diff(firsts, append=len(keys)).astype(np.float32)
    rows, indices = np.divmod(keys[firsts], source.n_words)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n_docs))])
    return sp.csr_array((counts, indices.astype(np.int32), indptr), shape=(n_docs, source.n_words))


def draw(source: Source, n_docs: int, rng: np.random.Generator) -> tuple[sp.csr_array, np.ndarray]:
    """Counts and targets of so many documents."""
    sizes = [min(BLOCK, n_docs - first) for first in range(0, n_docs, BLOCK)]
    X = sp.vstack([_block(source, size, rng) for size in sizes], "csr")
    predicted = (source.model.predict(X) - source.predicted_mean) / source.predicted_deviation
    noise = rng.standard_normal(n_docs)
    return X, source.mean + source.deviation * (np.sqrt(source.explained) * predicted + np.sqrt(1 - source.explained) * noise)


def _repeating(source: Source, distinct: float, seed: int) -> Source:
    """With as many words repeated as make this share of the words of a document distinct."""
    low, high = 0.0, 1.0
    for _ in range(8):
        tried = replace(source, repeats=(low + high) / 2)
        X = _block(tried, N_TRIED, np.random.default_rng(seed))
        low, high = (tried.repeats, high) if X.nnz / X.sum() > distinct else (low, tried.repeats)
    return replace(source, repeats=low)


def learn(X: Any, y: np.ndarray, *, n_topics: int = N_TOPICS, seed: int = 0) -> Source:
    """What documents like those with the counts X and the targets y are drawn from."""
    rng = np.random.default_rng(seed)
    topics = TopicModel(n_topics, n_epochs=N_EPOCHS, count_scale="linear", random_state=seed, n_jobs=1).fit(X)
    held_out = rng.random(len(y)) < 0.2
    # Themes would give other targets, and so other documents than those of the figure.
    model = TopicRegressor(N_PREDICTING, readability=0, random_state=seed, n_jobs=1).fit(X[~held_out], y[~held_out])
    source = Source(
        lengths=np.asarray(X.sum(axis=1)).ravel().astype(np.int32),
        topics=places(topics.transform(X), TOPIC_BITS),
        words=places(topics.components_, WORD_BITS),
        model=model,
        explained=float(np.clip(predictive_r2(y[held_out], model.predict(X[held_out])), 0, 1)),
        mean=float(y.mean()),
        deviation=float(y.std()),
    )
    source = _repeating(source, X.nnz / X.sum(), seed)
    predicted = model.predict(_block(source, N_TRIED, rng))
    return replace(source, predicted_mean=float(predicted.mean()), predicted_deviation=float(predicted.std()))


def save(path: Path, source: Source) -> None:
    """Into a folder."""
    path.mkdir(parents=True, exist_ok=True)
    mirrorlda.save(source.model, path / "predicting.model")
    # Last, in one step: where it is, all is.
    np.savez(path / "unfinished.npz", **{name: value for name, value in vars(source).items() if name != "model"})
    (path / "unfinished.npz").replace(path / "source.npz")


def load(path: Path) -> Source:
    model = mirrorlda.load(path / "predicting.model")
    with np.load(path / "source.npz", allow_pickle=False) as arrays:
        found = {field.name: arrays[field.name] for field in fields(Source) if field.name != "model"}
    return Source(
        model=model.set_params(n_jobs=1), **{name: value if value.ndim else float(value) for name, value in found.items()}
    )


_source: Source


def _begin(path: Path) -> None:
    """In each process that draws."""
    global _source
    _source = load(path)


def _part(seed: int, number: int, size: int) -> tuple[sp.csr_array, np.ndarray]:
    return draw(_source, size, np.random.default_rng((seed, number)))


def _parts(path: Path, n_docs: int, seed: int, n_processes: int) -> Iterator[tuple[sp.csr_array, np.ndarray]]:
    """Parts in their order, drawn side by side and a few ahead."""
    tasks = [(seed, number, min(PART, n_docs - first)) for number, first in enumerate(range(0, n_docs, PART))]
    with ProcessPoolExecutor(n_processes, initializer=_begin, initargs=(path,)) as pool:
        waiting = [pool.submit(_part, *task) for task in tasks[: n_processes + 1]]
        for task in [*tasks[n_processes + 1 :], *[None] * len(waiting)]:
            yield waiting.pop(0).result()
            if task is not None:
                waiting.append(pool.submit(_part, *task))


def corpus_of(source: Path, path: Path, n_docs: int, *, seed: int = 0, n_processes: int = 1) -> Path:
    """A corpus at `path` of documents that are drawn from a source that was saved; it is written unless it is there."""
    if (path / "corpus.json").exists() and Corpus(path).n_docs == n_docs:
        return path
    about = load(source)
    path.parent.mkdir(parents=True, exist_ok=True)
    # A document has no more distinct words than words.
    needed, free = int(BYTES * n_docs * about.lengths.mean()), shutil.disk_usage(path.parent).free
    if needed > free:
        raise SystemExit(f"{path}: {n_docs:,} documents may take {needed / 1e9:.1f} GB, of which {free / 1e9:.1f} GB are free")
    with CorpusWriter(path, about.n_words, target=Target("numbers", ("y",))) as writer:
        for X, y in tqdm(_parts(source, n_docs, seed, n_processes), f"{n_docs:,} documents", -(-n_docs // PART), disable=None):
            writer.add(X, y)
    return path


def statistics(X: Any) -> dict[str, float]:
    """What generated documents have to share with real ones."""
    lengths, distinct = np.asarray(X.sum(axis=1)).ravel(), np.diff(X.indptr)
    frequencies = np.sort(np.asarray(X.sum(axis=0)).ravel())[::-1]
    frequencies = frequencies[frequencies > 0] / frequencies.sum()
    # The most frequent words, and the rare ones, are not on the line.
    ranks = np.arange(10, max(12, len(frequencies) // 2))[: len(frequencies) - 10]
    in_documents = np.sort(np.bincount(X.indices, minlength=X.shape[1]))[::-1] / X.shape[0]
    return {
        "words a document": float(lengths.mean()),
        "deviation of it": float(lengths.std()),
        "distinct words a document": float(distinct.mean()),
        "deviation of these": float(distinct.std()),
        "slope of Zipf's law": float(np.polyfit(np.log(ranks + 1), np.log(frequencies[ranks]), 1)[0]),
        "share of the 10 most frequent words": float(frequencies[:10].sum()),
        "share of the 100 most frequent words": float(frequencies[:100].sum()),
        "share of documents with the 100th word": float(in_documents[min(99, len(in_documents) - 1)]),
    }
