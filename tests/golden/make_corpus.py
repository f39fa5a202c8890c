"""Write a small corpus in the present format, with what it holds, to tests/golden/corpus<version>/.

Run once for each version of the format; what is there is never written again: corpora that users have do not change either.
"""

import json
from pathlib import Path

import numpy as np

from mirrorlda import CorpusWriter, Target, TextDefinition, Vocabulary
from mirrorlda.data.corpus.manifest import VERSION

WORDS = ["na\u00efve", "room", "clean room", "2nd"]
DEFINITION = TextDefinition(bigrams=True, stop_words=("the",))


def content():
    """Counts of every width, labels, ids and splits of 300 documents."""
    rng = np.random.default_rng(0)
    X = rng.poisson(0.5, (300, len(WORDS))).astype(float)
    X[7, 1], X[260, 2], X[280, 3] = 300, 70_000, 0.5
    labels = [None if i % 10 == 3 else [name for name in "ab" if rng.random() < 0.5] for i in range(300)]
    return X, labels, [f"d{i}" for i in range(300)], [None if i % 7 == 0 else ("train", "test")[i % 2] for i in range(300)]


def main(folder=Path(__file__).parent):
    directory = folder / f"corpus{VERSION}"
    directory.mkdir()
    X, labels, ids, split = content()
    vocabulary = Vocabulary(WORDS, DEFINITION)
    with CorpusWriter(directory / "corpus", len(WORDS), vocabulary=vocabulary, target=Target("labels", ("tags",))) as writer:
        writer.add(X, labels, ids=ids, split=split)
    expected = {"X": X.tolist(), "labels": labels, "ids": ids, "split": split}
    (directory / "expected.json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    main()
