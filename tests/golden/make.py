"""Write one model of each kind in the present format, with what it predicts, to tests/golden/version<number>/.

Run once for each version of the format; what is there is never written again: files that users have do not change either.
"""

import json
from pathlib import Path

import numpy as np
from mirrorlda.datasets import make_topics
from mirrorlda.text import TextDefinition, WordCounts
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.pipeline import Pipeline, make_pipeline

from mirrorlda import TopicClassifier, TopicModel, TopicRegressor
from mirrorlda.data.files import tensors
from mirrorlda.estimators.vectorizer import TextVectorizer
from mirrorlda.saving import save_load

DATA = make_topics(n_docs=80, n_words=25, n_topics=3, n_classes=3, random_state=0)
X, Y = DATA.X, DATA.y
NAMES = np.array(["poor", "fair", "very good"])
TEXTS = ["A good film", "a bad film", "Good, good actors!", "Bad, awful actors", "Il caf\u00e9 na\u00efve", ""] * 5
LABELS = ["up", "down", "up", "down", "up", "down"] * 5
PARAMETERS = {"n_topics": 3, "random_state": 0}


def models():
    yield "topics", TopicModel(**PARAMETERS, n_epochs=3).fit(X)
    yield (
        "numbers",
        TopicRegressor(**PARAMETERS, alpha=[1.1, 1.05, 1.2], batch_size=(20, 40)).fit(X, np.stack([Y, 5.0 - Y], axis=1)),
    )
    yield "levels", TopicRegressor(**PARAMETERS, response="ordinal").fit(X, Y + 1)
    yield "counts", TopicRegressor(**PARAMETERS, response="poisson").fit(X, Y)
    yield "classes", TopicClassifier(**PARAMETERS, class_weight={"poor": 2, "fair": 1, "very good": 1}).fit(X, NAMES[Y])
    yield "objects", TopicClassifier(**PARAMETERS, seed_words={"poor": [1, 2]}).fit(X, NAMES.astype(object)[Y])
    yield "labels", TopicClassifier(**PARAMETERS, gamma=2.0).fit(X, np.eye(3, dtype=int)[Y])
    yield "stream", TopicRegressor(**PARAMETERS, seed_words=[[1, 2], [3]]).partial_fit(X[:40], Y[:40]).partial_fit(X[40:], Y[40:])
    state = TopicClassifier(3, random_state=np.random.RandomState(3), n_jobs=2, step_size="kl", count_scale="linear")
    yield "random_state", state.fit(X.astype(np.float64), Y)
    yield "unfitted", TopicClassifier(7, alpha="auto")
    words = WordCounts(TextDefinition(bigrams=True, stop_words=("a",)))
    words.add(TEXTS)
    text = TopicClassifier(**PARAMETERS).fit(words.vocabulary().count(TEXTS), LABELS)
    text.vocabulary_ = words.vocabulary()
    text.data_fingerprint_ = "none"
    yield "text", text
    yield (
        "count_vectorizer",
        make_pipeline(CountVectorizer(stop_words=["a"], ngram_range=(1, 2)), TopicClassifier(**PARAMETERS)).fit(TEXTS, LABELS),
    )
    yield (
        "text_vectorizer",
        make_pipeline(TextVectorizer(max_words=6), TfidfTransformer(), TopicClassifier(**PARAMETERS)).fit(TEXTS, LABELS),
    )


def predictions(model, counts, texts):
    """What each method says of the counts, or of the texts where the model reads them."""
    documents = texts if isinstance(model, Pipeline) else np.array(counts, np.float32)
    if hasattr(model, "vocabulary_"):
        documents = model.vocabulary_.count(texts)
    methods = ("transform", "predict", "predict_proba")
    return {method: getattr(model, method)(documents).tolist() for method in methods if hasattr(model, method)}


def main(folder=Path(__file__).parent):
    directory = folder / f"version{tensors.VERSION}"
    directory.mkdir()
    documents = {"counts": X[:6].toarray().tolist(), "texts": TEXTS[:6]}
    expected = {}
    for name, model in models():
        save_load.save(model, directory / f"{name}.mirrorlda")
        expected[name] = predictions(model, **documents) if name != "unfitted" else {}
    (directory / "expected.json").write_text(json.dumps({"documents": documents, "predictions": expected}) + "\n")


if __name__ == "__main__":
    main()
