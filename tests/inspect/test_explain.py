"""Explanations: effects against central differences, the oracle and JAX; leave-one-out; texts cut into pieces; errors."""

import json
import unicodedata

import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from mirrorlda.datasets import make_topics
from mirrorlda.explain import _tokens, explain
from mirrorlda.responses import Response
from mirrorlda.text import TextDefinition
from mirrorlda.topics import effects
from numpy.testing import assert_allclose, assert_array_equal
from oracle_jax import jax_theta
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.feature_selection import SelectKBest, chi2
from sklearn.pipeline import make_pipeline

from mirrorlda import TextVectorizer, TopicClassifier, TopicModel, TopicRegressor, infer, prepare
from mirrorlda.method.fitted_model import model_of

GAMMA = 1.7
KINDS = ["gaussian", "two targets", "poisson", "ordinal", "two classes", "classes", "labels", "own", "own numbers", "own classes"]
ROW = 5


class Huber(Response):
    """A response of the user's own."""

    def loss(self, scores, y):
        bounded = np.clip(scores - y, -1, 1)
        return (bounded * (scores - y - bounded / 2)).sum(axis=1), bounded

    def predict(self, scores):
        return scores

    def score(self, scores, losses, y, weights):
        return -np.average(losses, weights=weights)


class Exponential(Huber):
    """One whose prediction is not linear, as far as it can be known."""

    def predict(self, scores):
        return np.exp(scores / 3)


class Hinge(Response):
    """Class numbers, without probabilities."""

    def loss(self, scores, y):
        sign = np.where(np.arange(scores.shape[1]) == y[:, None], -1.0, 1.0)
        wrong = np.maximum(0, 1 + sign * scores)
        return (wrong**2).sum(axis=1) / 2, sign * wrong

    def predict(self, scores):
        return scores.argmax(axis=1)

    def score(self, scores, losses, y, weights):
        return -np.average(losses, weights=weights)

    def checked(self, y):
        return np.asarray(y)

    def n_outputs(self, y):
        return 3


def make_model(kind, **options):
    data = make_topics(n_docs=250, n_words=40, n_topics=4, n_outputs=2, random_state=0)
    y = data.y
    third = np.digitize(y[:, 0], np.quantile(y[:, 0], [0.3, 0.6]))
    options = {"n_topics": 4, "n_epochs": 3, "n_layers": 6, "gamma": GAMMA, "random_state": 0, **options}
    models = {
        "gaussian": lambda: (TopicRegressor(**options), 100 + 3 * y[:, 0]),
        "two targets": lambda: (TopicRegressor(**options), y),
        "poisson": lambda: (TopicRegressor(response="poisson", **options), np.exp(y[:, 0] / 2).round()),
        "ordinal": lambda: (TopicRegressor(response="ordinal", **options), np.array([1.0, 2.5, 7.0])[third]),
        "two classes": lambda: (TopicClassifier(**options), np.where(y[:, 0] > 0, "yes", "no")),
        "classes": lambda: (TopicClassifier(**options), np.array(["a", "b", "c"])[third]),
        "labels": lambda: (TopicClassifier(**options), (y > 0).astype(int)),
        "own": lambda: (TopicRegressor(response=Huber(), **options), y[:, 0]),
        "own numbers": lambda: (TopicRegressor(response=Exponential(), **options), y[:, 0]),
        "own classes": lambda: (TopicClassifier(response=Hinge(), **options), third),
    }
    model, targets = models[kind]()
    return model.fit(data.X, targets), data.X


def value_of(kind, model, output, theta, np):
    """The value of one theta, in plain formulas; `np` is NumPy or JAX's."""
    if not hasattr(model, "classes_"):
        scores = np.asarray(model.coef_, "float64") @ theta
        if kind == "poisson":
            return np.exp(scores[output])
        if kind == "own numbers":
            return np.exp(scores[output] / 3)
        if kind == "ordinal":
            beyond = np.cumprod(1 / (1 + np.exp(-GAMMA * scores)))
            return model.levels_[0] + (np.diff(np.asarray(model.levels_)) * beyond).sum()
        return scores[output]
    scores = (1.0 if kind == "own classes" else GAMMA) * np.asarray(model.coef_, "float64") @ theta
    if kind == "labels":
        return scores[output]
    if kind == "own classes":
        return scores[output] - (scores.sum() - scores[output]) / 2
    p = np.exp(scores) / np.exp(scores).sum()
    return np.log(p[output] / (1 - p[output]))


def seen_by(model, row):
    """Phi of a document's words, the counts that inference sees, alpha and the step sizes that it chooses, in double."""
    words = np.flatnonzero(row)
    x = row[words].astype(np.float64)
    x = np.log2(1 + x) if model.count_scale == "log" else x
    x = x * model.word_weights_[words] if hasattr(model, "word_weights_") else x
    phi = model.encoder_components_.T.astype(np.float64)
    dense = np.zeros((1, len(phi)))
    dense[0, words] = x
    alpha = model.alpha_.astype(np.float64)
    steps = infer(phi, dense, alpha=alpha, n_layers=6, tol=model.tol).step_sizes[0]
    return words, np.maximum(phi[words], oracle.FLOOR), x, alpha, steps


def chosen_number(explanation, model):
    names = [str(c) for c in model.classes_] if hasattr(model, "classes_") else effects(model)[0]
    return names.index(explanation.output)


def by_number(explanation):
    return np.array([word.effect for word in sorted(explanation.words, key=lambda word: int(word.word))])


@pytest.fixture(params=[("log", 0.03), ("linear", 0.03), ("log", 0.0)], ids=["log", "linear", "unweighted"])
def scaling(request):
    count_scale, word_learning_rate = request.param
    return {"count_scale": count_scale, "word_learning_rate": word_learning_rate}


@pytest.mark.parametrize("kind", KINDS)
def test_effects_are_those_of_oracle_central_differences_and_jax(kind, scaling):
    model, X = make_model(kind, **scaling)
    row = X[[ROW]].toarray()[0]
    words, P, x, alpha, steps = seen_by(model, row)
    found = explain(model, row)
    number = chosen_number(found, model)
    assert sorted(int(word.word) for word in found.words) == words.tolist()
    assert {int(word.word): word.count for word in found.words} == dict(zip(words.tolist(), row[words].tolist(), strict=True))

    def value(x):
        return value_of(kind, model, number, oracle.infer(P, x, alpha, 6, steps).thetas[-1], np)

    searched = oracle.infer(P, x, alpha, 6, "l1", model.tol).thetas[-1]
    assert_allclose(found.theta, searched, rtol=1e-9)
    assert_allclose(found.value, value(x), rtol=1e-9)
    largest = np.abs(by_number(found)).max()
    assert largest > 1e-3

    nudge = 1e-5 * np.diag(x)
    differences = np.array([(value(x + step) - value(x - step)) / 2e-5 for step in nudge])
    assert_allclose(by_number(found), differences, rtol=0, atol=1e-7 * largest + 1e-10 * abs(found.value) / 1e-5)

    def gradient_of_theta(theta):
        return np.asarray(jax.grad(lambda theta: value_of(kind, model, number, theta, jnp))(theta))

    h = gradient_of_theta(found.theta)
    trace = oracle.infer(P, x, alpha, 6, steps)
    assert_allclose(by_number(found), oracle.reverse(trace, P, x, alpha, h)[1] * x, rtol=0, atol=1e-8 * largest)

    by_jax = jax.grad(lambda x: value_of(kind, model, number, jax_theta(P, x, alpha, steps), jnp))(x)
    assert_allclose(by_number(found), by_jax * x, rtol=0, atol=1e-8 * largest)

    themes = model.components_.T[words].astype(np.float64)
    parts = themes * found.theta / (themes @ found.theta)[:, None]
    for topic in found.topics:
        left = x * (1 - parts[:, topic.topic])
        without = value_of(kind, model, number, oracle.infer(P, left, alpha, 6, "l1", model.tol).thetas[-1], np)
        assert_allclose(topic.effect, found.value - without, rtol=1e-6, atol=1e-8)
    assert [word.topic for word in sorted(found.words, key=lambda word: int(word.word))] == parts.argmax(axis=1).tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_effects_and_overlap_of_topics_add_up(kind):
    model, X = make_model(kind)
    found = explain(model, X[[ROW]])
    assert_allclose(sum(topic.effect for topic in found.topics) + found.overlap, found.value - found.empty, atol=1e-9)
    assert [topic.share for topic in found.topics] == [found.theta[topic.topic] for topic in found.topics]


@pytest.mark.parametrize("kind", KINDS)
def test_values_are_what_the_model_says(kind):
    model, X = make_model(kind)
    found = explain(model, X[[ROW]])
    number = chosen_number(found, model)
    nothing = np.zeros((1, 40))
    if hasattr(model, "classes_") and kind != "own classes":
        says = lambda X: np.atleast_2d(model.predict_proba(X))[0]  # noqa: E731
        log_odds = [np.log(p[number] / (1 - p[number])) for p in (says(X[[ROW]]), says(nothing))]
        assert_allclose([found.value, found.empty], log_odds, rtol=1e-3, atol=1e-5)
        assert found.unit == "log odds"
    elif not hasattr(model, "classes_"):
        says = [np.ravel(model.predict(X))[number] for X in (X[[ROW]], nothing)]
        assert_allclose([found.value, found.empty], says, rtol=1e-4)
        assert found.unit == "prediction"
    else:
        assert found.unit == "score"
    assert set(found.prediction) == set(model_of(model).columns(found.theta[None]))
    assert all(type(value) in (float, int, str) for value in found.prediction.values())
    assert_allclose(found.theta, model.transform(X[[ROW]])[0], rtol=1e-3, atol=1e-5)


def test_left_out_is_the_difference_to_the_document_without_the_word():
    model, X = make_model("classes")
    row = X[[ROW]].toarray()[0].astype(np.float64)
    found = explain(model, row)
    for word in found.words:
        without = row.copy()
        without[int(word.word)] = 0
        assert_allclose(word.left_out, found.value - explain(model, without, output=found.output).value, atol=1e-12)


def test_many_words_are_left_out_in_parts(monkeypatch):
    model, X = make_model("gaussian")
    whole = explain(model, X[[ROW]])
    monkeypatch.setattr("mirrorlda.explain._ENTRIES", 30)
    assert [word.left_out for word in explain(model, X[[ROW]]).words] == [word.left_out for word in whole.words]
    assert {word.left_out for word in explain(model, X[[ROW]], leave_one_out=False).words} == {None}


def test_largest_effects_come_first():
    model, X = make_model("two classes")
    found = explain(model, X[[ROW]])
    for ordered in (found.words, found.topics):
        sizes = [abs(entry.effect) for entry in ordered]
        assert sizes == sorted(sizes, reverse=True)
    assert {word.topic for word in found.words} <= set(range(4))
    for word in found.words:
        assert word.topic == (model.components_[:, int(word.word)].astype(np.float64) * found.theta).argmax()


def test_outputs_are_chosen_by_name_and_by_default():
    model, X = make_model("two classes")
    assert explain(model, X[[0]]).output == explain(model, X[[1]]).output == "yes"
    assert explain(model, X[[0]], output="no").value == pytest.approx(-explain(model, X[[0]]).value)
    model, X = make_model("classes")
    predicted = [explain(model, X[[row]], leave_one_out=False).output for row in range(20)]
    assert predicted == model.predict(X[:20]).tolist()
    model, X = make_model("labels")
    likeliest = [explain(model, X[[row]], leave_one_out=False).output for row in range(20)]
    assert likeliest == [str(label) for label in model.predict_proba(X[:20]).argmax(axis=1)]
    assert explain(model, X[[0]], output=0).output == "0"
    model, X = make_model("two targets")
    assert explain(model, X[[0]]).output == "output 0"
    assert explain(model, X[[0]], output="output 1").value == pytest.approx(model.predict(X[[0]])[0, 1], rel=1e-4)


@pytest.mark.parametrize(
    "form", [np.asarray, list, sp.csr_array, sp.csr_matrix, sp.coo_array, "row", "frame", "series", "integers"]
)
def test_a_row_may_come_in_any_form(form):
    data = make_topics(n_docs=100, n_words=30, n_topics=3, n_outputs=1, random_state=0)
    counts = data.X.toarray()
    frame = pd.DataFrame(counts, columns=[f"word {number}" for number in range(30)])
    X = frame if form in ("frame", "series") else counts
    model = TopicRegressor(3, n_epochs=2, random_state=0).fit(X, data.y)
    forms = {"row": counts[:1], "frame": frame[:1], "series": frame.iloc[0], "integers": counts[0].astype(int)}
    found = explain(model, forms[form] if isinstance(form, str) else form(counts[0]))
    assert found.value == pytest.approx(model.predict(X[:1])[0], rel=1e-4)
    assert found.words[0].word.startswith("word ") == (form in ("frame", "series"))
    assert found.tokens is None


def test_stored_zeros_are_no_words():
    model, X = make_model("gaussian")
    row = X[[ROW]].toarray()
    stored = sp.csr_array((row[0], np.arange(40), [0, 40]), shape=(1, 40))
    assert stored.nnz == 40
    assert explain(model, stored).as_json() == explain(model, row).as_json()


def test_a_document_without_words():
    model, _ = make_model("gaussian")
    found = explain(model, np.zeros(40))
    assert found.words == ()
    assert found.value == found.empty
    assert "more words" not in str(found)


TEXTS = [
    "A clean, quiet room. Very quiet!",
    "The room was dirty and noisy",
    "Quiet and very clean",
    "noisy noisy street, dirty",
] * 25
STARS = [5.0, 1.0, 5.0, 1.0] * 25


@pytest.fixture(scope="module", params=[False, True], ids=["words", "bigrams"])
def pipeline(request):
    vectorizer = TextVectorizer(stop_words=["the", "A", "was"], bigrams=request.param, min_docs=26)
    return make_pipeline(vectorizer, TopicRegressor(3, random_state=0)).fit(TEXTS * 2, STARS * 2)


def test_pieces_join_to_the_text_and_their_effects_to_those_of_the_words(pipeline):
    text = "The QUIET, quiet cafe\u0301 was very clean -- not noisy, dirty, dirty"
    found = explain(pipeline, text)
    assert "".join(token.text for token in found.tokens) == unicodedata.normalize("NFC", text)
    assert found.value == pytest.approx(pipeline.predict([text])[0], rel=1e-4)
    assert sum(token.effect or 0 for token in found.tokens) == pytest.approx(sum(word.effect for word in found.words))
    unknown = [token.text for token in found.tokens if token.effect is None]
    assert unknown == ["The", " ", ", ", " ", "caf\u00e9", " ", "was", " ", " ", " -- ", "not", " ", ", ", ", "]
    if "quiet room" not in pipeline[0].vocabulary_:
        effect = {word.word: word.effect / word.count for word in found.words}
        assert [token.effect for token in found.tokens if token.text == "dirty"] == pytest.approx([effect["dirty"]] * 2)


def test_the_words_of_a_bigram_have_half_of_its_effect_each():
    definition = TextDefinition(bigrams=True, stop_words=("of",))
    tokens = _tokens(
        "Waste of time, of TIME",
        definition,
        {"waste time": 1.0, "time time": 0.5, "time": 4.0},
        {"waste time", "time time", "time"},
    )
    assert [(token.text, token.effect) for token in tokens if token.effect is not None] == [
        ("Waste", 0.5),
        ("time", 0.5 + 0.25 + 2.0),
        ("TIME", 0.25 + 2.0),
    ]


def test_a_word_of_the_vocabulary_that_counts_for_nothing_has_the_effect_zero():
    tokens = _tokens("clean rooms", TextDefinition(), {"clean": 1.0}, {"clean", "rooms"})
    assert [token.effect for token in tokens] == [1.0, None, 0.0]


@pytest.mark.parametrize("lowercase", [True, False])
@given(text=st.text())
def test_any_text_is_cut_into_its_words(lowercase, text):
    definition = TextDefinition(lowercase)
    words = definition.words(text)
    tokens = _tokens(text, definition, dict.fromkeys(words, 1.0), set(words))
    assert "".join(token.text for token in tokens) == unicodedata.normalize("NFC", text)
    found = [token for token in tokens if token.effect is not None]
    assert len(found) == len(words)
    assert sum(token.effect for token in found) == pytest.approx(len(set(words)))


def test_lower_case_makes_no_words_and_ends_none():
    """Else the words of a text in lower case would not be those of its pieces."""
    everything = [chr(point) for point in range(0x110000) if not 0xD800 <= point < 0xE000]
    assert [
        c for c in everything if c.lower() != c and bool(TextDefinition(False).words(c)) != bool(TextDefinition().words(c))
    ] == []
    assert [token.text for token in _tokens("\u0391\u03a3'\u0391 \ud800x", TextDefinition(), {}, set())] == [
        "\u0391\u03a3",
        "'",
        "\u0391",
        " \ud800",
        "x",
    ]


def test_a_model_fitted_on_a_corpus_takes_text(tmp_path):
    pd.DataFrame({"review": TEXTS, "stars": STARS}).to_csv(tmp_path / "reviews.csv", index=False)
    corpus = prepare(tmp_path / "reviews.csv", tmp_path / "corpus", text="review", target={"stars": "numbers"})
    model = TopicRegressor(3, random_state=0).fit(corpus)
    found = explain(model, "a quiet room")
    assert found.output == "stars"
    assert [token.text for token in found.tokens] == ["a", " ", "quiet", " ", "room"]
    assert explain(model, model.vocabulary_.count(["a quiet room"])).value == found.value
    with pytest.raises(ValueError, match=r"got a corpus: give corpus.matrix\(\[number\]\)"):
        explain(model, corpus)


def test_steps_of_a_pipeline_come_before_the_counts():
    texts = TEXTS[:4] * 10
    scaled = make_pipeline(TextVectorizer(), TfidfTransformer(), TopicRegressor(3, random_state=0)).fit(texts, STARS[:40])
    found = explain(scaled, texts[0])
    assert found.value == pytest.approx(scaled.predict(texts[:1])[0], rel=1e-4)
    taken = dict(zip(scaled[0].get_feature_names_out(), scaled[:-1].transform(texts[:1]).toarray()[0], strict=True))
    assert {word.word: word.count for word in found.words} == pytest.approx({word: taken[word] for word in taken if taken[word]})
    assert found.as_json() == {**explain(scaled, scaled[0].transform(texts[:1])).as_json(), "tokens": found.as_json()["tokens"]}

    chosen = make_pipeline(TextVectorizer(), SelectKBest(chi2, k=2), TopicClassifier(3, random_state=0)).fit(texts, [1, 0] * 20)
    names = chosen[:-1].get_feature_names_out().tolist()
    found = explain(chosen, texts[0])
    assert {word.word for word in found.words} <= set(names)
    assert {token.text.lower() for token in found.tokens if token.effect is not None} == {word.word for word in found.words}


def test_words_that_others_count_have_names_but_no_pieces():
    model = make_pipeline(CountVectorizer(), TopicRegressor(3, random_state=0)).fit(TEXTS, STARS)
    found = explain(model, TEXTS[0])
    assert found.tokens is None
    assert {word.word for word in found.words} == {"clean", "quiet", "room", "very"}


def test_json_holds_plain_values(pipeline):
    found = explain(pipeline, TEXTS[0])
    value = json.loads(json.dumps(found.as_json(), allow_nan=False))
    assert value == found.as_json()
    assert value["words"][0] == {name: getattr(found.words[0], name) for name in ("word", "count", "effect", "left_out", "topic")}
    assert [token["text"] for token in value["tokens"]] == [token.text for token in found.tokens]


def test_the_table_names_words_and_topics():
    model, X = make_model("two classes")
    found = explain(model, X[[ROW]])
    lines = str(found).splitlines()
    assert lines[0] == f"yes: log odds {found.value:.4g}"
    head = lines[3].split("  ")
    assert [title.strip() for title in head if title.strip()] == ["word", "count", "effect", "left out", "topic"]
    assert lines[4].split()[0] == found.words[0].word
    assert [line.split() for line in lines if line.lstrip().startswith("topic ")] == [["topic", "share", "effect", "words"]]
    assert "left out" not in str(explain(model, X[[ROW]], leave_one_out=False))
    assert repr(found) == f"<Explanation of 'yes': log odds {found.value:.4g}, {len(found.words)} words>"


def test_nothing_of_the_model_changes():
    model, X = make_model("two classes")
    before = {name: np.copy(value) for name, value in vars(model).items() if isinstance(value, np.ndarray)}
    row = X[[ROW]]
    copied = row.copy()
    explain(model, row)
    for name, value in before.items():
        assert_array_equal(getattr(model, name), value)
    assert (row != copied).nnz == 0


@pytest.mark.parametrize(
    ("document", "options", "message"),
    [
        ("a text", {}, "this TopicClassifier has no vocabulary_ to count words of texts with"),
        (["a text"], {}, "one text or one row of counts, got 1 texts in a list"),
        (np.ones((2, 40)), {}, r"one row of counts, got an array of shape \(2, 40\)"),
        (np.ones((1, 2, 40)), {}, r"got an array of shape \(1, 2, 40\)"),
        (3.0, {}, r"got an array of shape \(\)"),
        (np.ones(39), {}, "X has 39 features, but TopicClassifier is expecting 40"),
        (-np.ones(40), {}, r"Negative values in data: X\[0, 0\] is -1"),
        (np.full(40, np.nan), {}, "is nan; counts must be non-negative, finite"),
        (np.ones(40), {"output": "d"}, "the model has no output 'd'; its outputs are a, b, c"),
    ],
)
def test_errors_say_what_was_found_and_expected(document, options, message):
    model, _ = make_model("classes")
    with pytest.raises(ValueError, match=message):
        explain(model, document, **options)


def test_a_model_without_predictions_has_nothing_to_explain():
    X = make_topics(n_docs=50, n_words=20, n_topics=2, random_state=0).X
    with pytest.raises(ValueError, match="a TopicModel predicts nothing that could be explained"):
        explain(TopicModel(2, n_epochs=2, random_state=0).fit(X), X[[0]])
