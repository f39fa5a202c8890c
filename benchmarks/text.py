"""Text to counts beside CountVectorizer: python benchmarks/text.py reviews.jsonl.gz ... [--equal].

Each file has one JSON object a line, with the field `text`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import time
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from mirrorlda.estimators.vectorizer import TextVectorizer

MAX_WORDS = 5000
REPEATS = 3


@dataclass(frozen=True)
class Times:
    """Seconds from texts to counts of one file: ours on two threads, CountVectorizer's as it is, and with our definition."""

    name: str
    megabytes: float
    ours: float
    count_vectorizer: float
    same_definition: float


def read_texts(path: Path) -> list[str]:
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line in lines]


class _Separators(dict[int, str]):
    """For str.translate: what is not a letter, mark or number is a space."""

    def __missing__(self, c: int) -> str:
        self[c] = chr(c) if unicodedata.category(chr(c))[0] in "LMN" else " "
        return self[c]


_SEPARATORS = _Separators()


def same_definition(**options: Any) -> CountVectorizer:
    """CountVectorizer with the words of docs/text.md."""
    return CountVectorizer(
        preprocessor=lambda text: unicodedata.normalize("NFC", text).lower().translate(_SEPARATORS),
        tokenizer=re.compile("[^ ]+").findall,
        token_pattern=None,
        **options,
    )


def seconds(run: Callable[[], object]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def text_to_counts(paths: Sequence[Path]) -> list[Times]:
    """Times of `fit_transform` with the 5,000 most frequent words: of each the shortest of as many runs, taken in turn."""
    makers = (
        lambda: TextVectorizer(MAX_WORDS, bigrams=False, n_jobs=2),
        lambda: CountVectorizer(max_features=MAX_WORDS),
        lambda: same_definition(max_features=MAX_WORDS),
    )
    times = []
    for path in paths:
        texts = read_texts(path)
        megabytes = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts) / 1e6
        rounds = [[seconds(lambda: make().fit_transform(texts)) for make in makers] for _ in range(REPEATS)]  # noqa: B023 (called here)
        times.append(Times(path.name, megabytes, *np.min(rounds, axis=0)))
    return times


def n_differences(path: Path, **options: Any) -> tuple[int, int, int]:
    """Distinct words, words that only one of the two has, and entries of the common words whose counts differ."""
    texts = read_texts(path)
    ours = TextVectorizer(None, bigrams=options.get("ngram_range") == (1, 2), min_phrase_docs=1, n_jobs=2)
    theirs = same_definition(**options)
    X, Y = ours.fit_transform(texts), theirs.fit_transform(texts)
    common = [word for word in ours.vocabulary_ if word in theirs.vocabulary_]
    X = X[:, [ours.vocabulary_[word] for word in common]]
    Y = Y[:, [theirs.vocabulary_[word] for word in common]]
    n_single = len(ours.vocabulary_) + len(theirs.vocabulary_) - 2 * len(common)
    return len(ours.vocabulary_), n_single, int(np.count_nonzero((X - Y.astype(np.float32)).data))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--equal", action="store_true", help="compare the counts of all words instead of the times")
    chosen = parser.parse_args(arguments)
    if chosen.equal:
        for path in chosen.files:
            for options in ({}, {"ngram_range": (1, 2)}):
                n_words, n_single, n_counts = n_differences(path, **options)
                print(
                    f"{path.name} {options or ''}: {n_words:,} words, {n_single} of one side only, {n_counts} counts differ",
                    flush=True,
                )
        return
    print(f"{'file':28}{'MB':>6}{'ours, s':>10}{'CountVectorizer':>17}{'ratio':>7}{'same definition':>17}{'ratio':>7}")
    for t in text_to_counts(chosen.files):
        print(
            f"{t.name:28}{t.megabytes:6.0f}{t.ours:10.2f}{t.count_vectorizer:17.2f}{t.count_vectorizer / t.ours:7.1f}"
            f"{t.same_definition:17.2f}{t.same_definition / t.ours:7.1f}"
        )


if __name__ == "__main__":
    main()
