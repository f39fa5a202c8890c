"""Generated reviews for the experiments' commands."""

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
