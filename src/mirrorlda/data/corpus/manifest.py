"""What a corpus on disk says of itself: corpus.json, checked so far that all of it can be relied on."""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mirrorlda.data.corpus.shards import COLUMNS, SHARD_DOCS, CorpusError
from mirrorlda.data.files import urls
from mirrorlda.data.files.atomic import replaced

DESCRIPTION = "corpus.json"
FORMAT, VERSION = "mirrorlda corpus", 1
# What the file of words holds: UTF-8 of all words and where each begins, how often each occurs, and in how many documents.
WORD_COLUMNS: dict[str, np.dtype[Any]] = {
    "letters": np.dtype("u1"),
    "offsets": np.dtype("<i8"),
    "frequencies": np.dtype("<f8"),
    "document_frequencies": np.dtype("<i8"),
}
_GENERATION = re.compile(r"[0-9a-f]{16}")
_KINDS = ("numbers", "classes", "labels")


@dataclass(frozen=True)
class Target:
    """What the targets of a corpus are.

    Attributes
    ----------
    kind : {"numbers", "classes", "labels"}
        One or several numbers a document, one class, or any number of labels.
    names : tuple of str
        Of the numbers' columns; of the one column of classes or labels.
    values : tuple
        The classes or labels, in the order in which they were first seen.
    """

    kind: str
    names: tuple[str, ...]
    values: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise ValueError(f"the kind of a target must be one of {_KINDS}, got {self.kind!r}")
        if isinstance(self.names, str) or not self.names or not all(isinstance(name, str) for name in self.names):
            raise ValueError(f"names of a target must be a tuple of strings, got {self.names!r}")
        if self.kind != "numbers" and len(self.names) > 1:
            raise ValueError(f"{self.kind} are in one column, got the names {self.names!r}")


def canonical(description: Any) -> str:
    """JSON of which a checksum can be taken."""
    return json.dumps(description, sort_keys=True, separators=(",", ":"))


def is_generation(name: str) -> bool:
    """Whether a writer names its files' directory so."""
    return _GENERATION.fullmatch(name) is not None


def read_description(path: Path | str) -> dict[str, Any]:
    """What corpus.json says, in a directory or behind a URL, checked so far that all of it can be relied on."""
    file = f"{path}/{DESCRIPTION}"
    if isinstance(path, Path) and not path.is_dir():
        raise CorpusError(f"{path} is not a corpus: there is no such directory")
    try:
        content = (path / DESCRIPTION).read_bytes() if isinstance(path, Path) else urls.read(file)
    except FileNotFoundError:
        raise CorpusError(f"{path} is not a corpus: it has no file {DESCRIPTION}") from None
    return _checked(file, content)


def _checked(file: str, written: bytes) -> dict[str, Any]:
    try:
        content = json.loads(written)
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"{file} is not JSON: {error}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise CorpusError(f"{file} does not describe a corpus: its 'format' is not {FORMAT!r}")
    if content.get("version") != VERSION:
        raise CorpusError(f"{file} has the version {content.get('version')!r}; this release of mirrorlda reads version {VERSION}")
    about = content.get("corpus")
    if content.get("checksum") != zlib.crc32(canonical(about).encode()):
        raise CorpusError(f"{file} does not have its checksum")
    if not _is_description(about):
        raise CorpusError(f"{file} does not describe a corpus: a value is missing or of the wrong kind")
    assert isinstance(about, dict)
    return about


def write_description(path: Path, about: dict[str, Any]) -> None:
    """In one step: until then the corpus at `path` is what it was."""
    assert _is_description(json.loads(canonical(about))), "a description that could not be read back"
    content = {"format": FORMAT, "version": VERSION, "checksum": zlib.crc32(canonical(about).encode()), "corpus": about}
    with replaced(path / DESCRIPTION) as file:
        file.write(json.dumps(content).encode())


def is_corpus(path: Path) -> bool:
    """Whether there is a corpus, of any version."""
    try:
        content = json.loads((path / DESCRIPTION).read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and content.get("format") == FORMAT


def is_described(path: Path, generation: str) -> bool:
    """Whether the corpus at `path` is the one with this generation's files."""
    try:
        return bool(read_description(path)["generation"] == generation)
    except CorpusError:
        return False


def _is_description(about: Any) -> bool:
    """Whether all that is relied on later is there, and of its kind."""
    whole = ("n_docs", "n_words", "n_entries")
    return (
        isinstance(about, dict)
        and isinstance(about.get("generation"), str)
        and is_generation(about["generation"])
        and all(_is_whole(about.get(name)) for name in whole)
        and 1 <= about["n_words"] < 2**31
        and all(isinstance(about.get(name), bool) for name in ("has_words", "has_ids"))
        and _are_strings(about.get("splits"))
        and (about.get("text") is None or isinstance(about["text"], dict))
        and _is_target(about.get("target"))
        and _is_table(about.get("words"), set(WORD_COLUMNS))
        and {"frequencies", "document_frequencies"} <= set(about["words"]["columns"])
        and (not about["has_words"] or (set(WORD_COLUMNS) == set(about["words"]["columns"]) and about["text"] is not None))
        and isinstance(about.get("shards"), list)
        and all(_is_table(shard, set(COLUMNS)) and {"blocks", "sizes"} <= set(shard["columns"]) for shard in about["shards"])
        and all(_is_whole(shard.get("n_docs")) and _is_whole(shard.get("n_entries")) for shard in about["shards"])
        and all(shard["n_docs"] == SHARD_DOCS for shard in about["shards"][:-1])
        and all(1 <= shard["n_docs"] <= SHARD_DOCS for shard in about["shards"][-1:])
        and sum(shard["n_docs"] for shard in about["shards"]) == about["n_docs"]
        and sum(shard["n_entries"] for shard in about["shards"]) == about["n_entries"]
        and all(_needed_columns(about) <= set(shard["columns"]) for shard in about["shards"])
    )


def _needed_columns(about: dict[str, Any]) -> set[str]:
    kind = about["target"]["kind"] if about["target"] else ""
    columns = {"numbers": {"numbers"}, "classes": {"codes"}, "labels": {"codes", "code_sizes"}}.get(kind, set())
    return columns | ({"split"} if about["splits"] else set()) | ({"ids", "id_sizes"} if about["has_ids"] else set())


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**62


def _are_strings(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def _is_target(target: Any) -> bool:
    return target is None or (
        isinstance(target, dict)
        and set(target) == {"kind", "names", "values"}
        and target["kind"] in _KINDS
        and _are_strings(target["names"])
        and len(target["names"]) >= 1
        and isinstance(target["values"], list)
        and len({type(value) for value in target["values"]} - {str, int, float, bool}) == 0
        and len({type(value) for value in target["values"]}) <= 1
    )


def _is_table(table: Any, names: set[str]) -> bool:
    """Whether it says where in a file some of these columns are."""
    return (
        isinstance(table, dict)
        and _is_whole(table.get("bytes"))
        and isinstance(table.get("columns"), dict)
        and set(table["columns"]) <= names
        and all(isinstance(c, list) and len(c) == 3 and all(map(_is_whole, c)) for c in table["columns"].values())
        and all(begin + length <= table["bytes"] for begin, length, _ in table["columns"].values())
    )
