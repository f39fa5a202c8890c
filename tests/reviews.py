"""Generated reviews, and documents of few subjects, for the experiments' commands."""

import gzip
import json

import numpy as np


def write_reviews(path, n_docs, *, with_split):
    """Texts with more of the words good0 to good4 the more stars they have, and groups with a word of their own."""
    rng = np.random.default_rng(0)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        for number in range(n_docs):
            stars, group = int(rng.integers(1, 6)), "abc"[number % 3]
            words = [f"{'good' if n < 3 * stars else 'bad'}{rng.integers(5)}" for n in range(18)]
            words += [f"word{group}"] * 3 + [f"noise{rng.integers(9)}"] * 2
            line = {"text": " ".join(words), "rating": stars, "stars": stars, "group": group, "liked": stars > 2}
            line["sentiment"] = "pos" if stars > 2 else "neg"
            file.write(json.dumps(line | ({"split": "train" if number % 3 else "test"} if with_split else {})) + "\n")


def write_subjects(path, n_docs):
    """Texts of twenty words of one of five subjects, which have twelve words each, and of five words that all have."""
    rng = np.random.default_rng(0)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        for number in range(n_docs):
            words = [f"{'abcde'[number % 5]}{word}" for word in rng.integers(12, size=20)]
            words += [f"noise{word}" for word in rng.integers(20, size=5)]
            file.write(json.dumps({"text": " ".join(words)}) + "\n")
