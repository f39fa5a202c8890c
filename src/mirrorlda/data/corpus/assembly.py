"""One corpus from several that were written apart: its shards are cut anew, each by a task, as if one writer had seen all."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mirrorlda.data.corpus.corpus import Corpus
from mirrorlda.data.corpus.manifest import Target, read_description
from mirrorlda.data.corpus.shards import NO_LABELS, SHARD_DOCS, ShardWriter, WrittenShard, shard_name
from mirrorlda.data.corpus.writer import NO_SPLIT, Generation, Shards, Values, split_codes
from mirrorlda.data.parts import READ_DOCS
from mirrorlda.data.progress import counted
from mirrorlda.data.readers import BadFileError
from mirrorlda.data.text import Vocabulary


@dataclass(frozen=True)
class _Piece:
    """Documents of one shard of a part, from `first` on, before `last`, and what the part's codes are in the whole."""

    path: Path
    shard: int
    first: int
    last: int
    codes: np.ndarray
    splits: np.ndarray


def assemble(
    generation: Generation,
    parts: dict[str, Path],
    n_words: int,
    vocabulary: Vocabulary | None,
    target: Target | None,
    cluster: Any,
    verbose: int,
) -> None:
    """Make one corpus of others, in their order; they are removed.

    Parameters
    ----------
    generation : Generation
        Of the corpus to write.
    parts : dict from str to Path
        The corpora, by the names of the files that they come from.
    n_words, vocabulary, target
        Of all of them; the values of `target` are found.
    cluster : mirrorlda.distributed.Cluster
    verbose : int
    """
    values, splits, has_ids = Values(), dict[str, int](), False
    pieces: list[_Piece] = []
    for name, path in parts.items():
        about = read_description(path)
        has_ids |= about["has_ids"]
        try:
            codes = np.array([values.code(value) for value in (about["target"] or {"values": ()})["values"]], np.int32)
            own = split_codes(about["splits"], splits)
        except ValueError as error:
            raise BadFileError(name, str(error)) from None
        pieces += [_Piece(path, number, 0, shard["n_docs"], codes, own) for number, shard in enumerate(about["shards"])]
    shards = Shards(n_words)
    results = cluster.map(_write_shard, enumerate(_cut(pieces)), generation.files, n_words)
    for shard in counted(results, "joining documents", verbose, size=lambda shard: int(shard.description["n_docs"])):
        shards.add(shard)
    generation.commit(shards, vocabulary, None if target is None else replace(target, values=tuple(values)), splits, has_ids)
    # Where a machine still has a file open, a network file system may keep it: the corpus is complete without.
    for path in parts.values():
        shutil.rmtree(path, ignore_errors=True)
    for attempt in generation.files.glob("attempt-*"):
        attempt.unlink(missing_ok=True)


def _cut(pieces: Iterable[_Piece]) -> Iterator[list[_Piece]]:
    """The pieces of each shard of the whole, all of which are full but the last."""
    shard: list[_Piece] = []
    room = SHARD_DOCS
    for piece in pieces:
        first = piece.first
        while first < piece.last:
            last = min(piece.last, first + room)
            shard.append(replace(piece, first=first, last=last))
            room -= last - first
            first = last
            if not room:
                yield shard
                shard, room = [], SHARD_DOCS
    if shard:
        yield shard


def _write_shard(item: tuple[int, Sequence[_Piece]], files: Path, n_words: int) -> WrittenShard:
    """Write one shard; it gets its name when it is complete, so that an attempt that was given up does not touch it later."""
    number, pieces = item
    attempt = files / f"attempt-{number}-{secrets.token_hex(8)}"
    with closing(ShardWriter(attempt, n_words)) as writer:
        for piece in pieces:
            part = Corpus(piece.path)
            for first in range(piece.first, piece.last, READ_DOCS):
                last = min(piece.last, first + READ_DOCS)
                places = piece.shard * SHARD_DOCS + np.arange(first, last)
                # Counts are stored in as few bytes as hold them: doubles lose nothing.
                writer.add(part.take(places, np.float64), _recoded(part.columns(piece.shard, first, last), piece))
        shard = writer.finish()
    attempt.replace(files / shard_name(number))
    return shard


def _recoded(columns: dict[str, np.ndarray], piece: _Piece) -> dict[str, np.ndarray]:
    """Columns with the codes of the whole; labels of a document ascend."""
    if "split" in columns:
        known = np.full(NO_SPLIT + 1, NO_SPLIT, np.uint8)
        known[: len(piece.splits)] = piece.splits
        columns["split"] = known[columns["split"]]
    if "codes" in columns:
        # A missing class is -1, the last.
        columns["codes"] = np.append(piece.codes, np.int32(-1))[columns["codes"]]
    if "code_sizes" in columns:
        sizes = np.where(columns["code_sizes"] == NO_LABELS, 0, columns["code_sizes"])
        columns["codes"] = columns["codes"][np.lexsort((columns["codes"], np.repeat(np.arange(len(sizes)), sizes)))]
    return columns
