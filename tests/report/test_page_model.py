"""The page's own model, in a browser, beside the package: what both say of a text, and what the page holds."""

import base64
import copy
import io
import json
import sys
import unicodedata
from importlib import resources

import numpy as np
import pytest
from click.testing import CliRunner
from mirrorlda.datasets import make_topics
from mirrorlda.explain import explain
from mirrorlda.responses import Ordinal, Poisson, Response, SquaredError
from mirrorlda.text import TextDefinition, Vocabulary
from mirrorlda.topics import describe, effects, relevant_words, typical_documents
from page_data import decoded_phi, decoded_themes
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.feature_selection import SelectKBest, chi2
from sklearn.pipeline import make_pipeline

from mirrorlda import TopicClassifier, TopicModel, TopicRegressor, _core, value_and_grad
from mirrorlda.cli import main
from mirrorlda.estimators.vectorizer import TextVectorizer
from mirrorlda.method.effects import left_out
from mirrorlda.method.fitted_model import estimator_of, model_of
from mirrorlda.report import as_script, report
from mirrorlda.report.content import content

UNICODE_WORDS = [
    "Café",
    "Cafe\N{COMBINING ACUTE ACCENT}",
    "STRASSE",
    "Straße",
    "İstanbul",
    "ﬁn",
    "ΛΌΓΟΣ",
    "ΣΊΣΥΦΟΣ",
    "漢字",
    "\N{MATHEMATICAL SCRIPT CAPITAL A}bc",
    "नमस्ते",
    "각",
]


class Huber(Response):
    def loss(self, scores, y):
        error = scores - y
        bounded = np.clip(error, -1, 1)
        return (bounded * (error - bounded / 2)).sum(axis=1), bounded

    def predict(self, scores):
        return scores

    def score(self, scores, losses, y, weights):
        return -np.average(losses, weights=weights)


@pytest.fixture(scope="module")
def documents():
    """Texts with planted topics, their words also in letters of other scripts, and two numbers for each."""
    data = make_topics(n_docs=300, n_words=120, n_topics=4, n_outputs=2, random_state=0)
    rng = np.random.default_rng(0)
    texts = []
    for row in data.X.toarray().astype(int):
        words = [f"W{word}" for word in np.repeat(np.arange(len(row)), row)] + list(rng.choice(UNICODE_WORDS, 3))
        texts.append(" ".join(rng.permutation(words)))
    return texts, data.y


TEXTS = [
    "",
    "nothing that is known, 12345!",
    "w1",
    "W1 w1 W1, w2; w3 w4 w5 w6 w7",
    "Cafe\N{COMBINING ACUTE ACCENT} CAFÉ café İSTANBUL i\N{COMBINING DOT ABOVE}stanbul straße ΛΌΓΟΣ λόγος 漢字 🎬",
    "\N{MATHEMATICAL SCRIPT CAPITAL A}bc w3 W9",
    "≠ =\N{COMBINING LONG SOLIDUS OVERLAY} ﬁn fin w20 नमस्ते",
    "\N{HANGUL CHOSEONG KIYEOK}\N{HANGUL JUNGSEONG A}\N{HANGUL JONGSEONG KIYEOK} 각",
]


def texts_to_read(documents):
    return [*TEXTS, *documents[0][:12], " ".join(documents[0]), " ".join(documents[0][:40]), "w1 w2 " * 5000]


CASES = {
    "gaussian": (TopicRegressor(4), "number", {}),
    "gaussian, several": (TopicRegressor(6, alpha=np.linspace(0.6, 1.8, 6)), "numbers", {}),
    "poisson": (TopicRegressor(4, response="poisson", step_size="kl", alpha=0.7), "counts", {}),
    "ordinal": (TopicRegressor(5, response="ordinal", gamma=1.3), "levels", {}),
    "ordinal, own levels": (TopicRegressor(4, response=Ordinal(5), n_layers=7), "level numbers", {}),
    "squared error": (TopicRegressor(4, response=SquaredError(2.0), step_size="kl"), "number", {}),
    "poisson, beyond its bound": (TopicRegressor(4, response=Poisson()), "counts", {}),
    "two classes": (TopicClassifier(5, gamma=0.8), "two classes", {"bigrams": True, "stop_words": ["w3", "W7 w8", "Λόγος"]}),
    "five classes": (TopicClassifier(7, count_scale="linear", step_size=0.02, alpha=1.0), "five classes", {}),
    "five classes, below 1": (TopicClassifier(7, alpha=0.3, count_scale="linear", n_layers=12), "five classes", {}),
    "labels": (TopicClassifier(5, gamma=1.7, step_size="kl"), "labels", {"lowercase": False}),
    "topics": (TopicModel(6, n_epochs=4), None, {"bigrams": True}),
    "own response": (TopicRegressor(4, response=Huber()), "number", {}),
    "no themes": (TopicRegressor(4, readability=0), "number", {}),
    "no word weights": (TopicRegressor(3, word_learning_rate=0, step_size=0.0), "number", {}),
    "one topic": (TopicRegressor(1), "number", {}),
    "many layers": (TopicClassifier(20, alpha=1.5, n_layers=30, step_size="kl"), "two classes", {}),
    "all layers": (TopicRegressor(20, n_layers=30, tol=0), "number", {}),
}


def targets(kind, y):
    level = np.clip(np.floor(2 * y[:, 0] + 2), 0, 4)
    return {
        None: None,
        "number": 100 - 7 * y[:, 0],
        "numbers": y * [3, -2] + [0, 50],
        "counts": np.round(np.exp(y[:, 0])),
        "levels": np.array([1, 2, 3.5, 4, 7])[level.astype(int)],
        "level numbers": level,
        "two classes": np.where(y[:, 0] > 0, "good", "bad"),
        "five classes": level.astype(int),
        "labels": (y > 0).astype(int),
    }[kind]


@pytest.fixture(scope="module")
def fitted(documents):
    """fitted(case) -> a pipeline of a vectorizer and the case's model, fitted."""
    made = {}

    def fitted(case):
        if case not in made:
            estimator, kind, text = CASES[case]
            texts, y = documents
            model = make_pipeline(TextVectorizer(**text), copy.deepcopy(estimator).set_params(random_state=0))
            made[case] = model.fit(texts, targets(kind, y))
            if case == "poisson, beyond its bound":
                made[case][-1].coef_ = np.float64([[31, 29, 30.5, 28]])
        return made[case]

    return fitted


@pytest.fixture
def page_of(open_page, tmp_path):
    """page_of(data) -> a page with the data and a `model` decoded from it."""
    script = resources.files("mirrorlda.report").joinpath("model.js").read_text(encoding="utf-8")

    def page_of(data):
        path = tmp_path / "page.html"
        path.write_text(
            f'<!doctype html><meta charset="utf-8"><script type="application/json" id="data">{as_script(data)}</script>'
            f"<script>{script}\nconst data = JSON.parse(document.getElementById('data').textContent);\n"
            "const model = mirrorlda.decode(data);</script>",
            encoding="utf-8",
        )
        return open_page(path)

    return page_of


def analysed(page, texts, outputs):
    """Results for each output and text, through JSON, tokens as the sum of their effects: large values take playwright long."""
    function = """([texts, outputs]) => JSON.stringify(outputs.map(output => texts.map(text => {
        const analysis = model.analyse(text, output);
        analysis.leaveOut.forEach(fillIn => fillIn());
        const {tokens, leaveOut, ...result} = analysis;
        return {...result, tokens: tokens.reduce((sum, token) => sum + token.effect, 0)};
    })))"""
    return json.loads(page.evaluate(function, [texts, outputs]))


def rounded(data, model):
    """The page's estimator, rounded as it is there, and its vocabulary; the last word has the rest of each topic."""
    encoded, estimator = data["model"], copy.deepcopy(estimator_of(model))
    columns = {word: column for column, word in enumerate(model_of(model).names)}
    chosen = [columns[word] for word in encoded["words"]]
    phi = decoded_phi(data)
    np.testing.assert_allclose(phi, np.maximum(estimator.encoder_components_[:, chosen].T, 1e-12), rtol=3e-4)
    estimator.components_ = with_rest(decoded_themes(data))
    estimator.encoder_components_ = estimator.components_ if encoded["themes"] is None else with_rest(phi)
    estimator.n_features_in_ = len(phi) + 1
    if encoded["word_weights"] is not None:
        estimator.word_weights_ = np.array([*encoded["word_weights"], 1.0])
    if hasattr(estimator, "coef_"):
        estimator.coef_ = estimator.coef_.astype(np.float64)
    estimator.vocabulary_ = Vocabulary([*encoded["words"], "all other words"], TextDefinition(**encoded["definition"]))
    return estimator, estimator.vocabulary_


def with_rest(words):
    """Topics as rows, with one more word that has what their words leave."""
    return np.vstack([words, np.maximum(1 - words.sum(axis=0), 0)]).T


def explained_value(estimator, scores, outputs):
    """The number or log odds that is explained, one output for each document."""
    rows = np.arange(len(scores))
    if not isinstance(estimator, TopicClassifier):
        return estimator.targets_.predict(scores)[rows, outputs]
    if estimator.targets_.task == "multilabel":
        return estimator.gamma * scores[rows, outputs]
    p = np.exp(estimator.targets_.response.log_probabilities(scores))
    return np.log(p[rows, outputs]) - np.log(np.where(np.arange(p.shape[1]) == outputs[:, None], 0, p).sum(axis=1))


class Explained(Response):
    """The explained value as a loss, so that the core's reverse pass gives its gradients; y holds the outputs."""

    def __init__(self, estimator):
        self.estimator = estimator

    def loss(self, scores, y):
        outputs, step = y[:, 0].astype(int), 1e-5
        slopes = np.empty_like(scores)
        for column in range(scores.shape[1]):
            shift = step * np.eye(scores.shape[1])[column]
            above, below = (explained_value(self.estimator, scores + sign * shift, outputs) for sign in (1, -1))
            slopes[:, column] = (above - below) / (2 * step)
        return explained_value(self.estimator, scores, outputs), slopes

    def predict(self, scores):
        return scores

    def score(self, scores, losses, y, weights):
        return 0.0


def expected_effects(estimator, X, output):
    """Effects of words on the explained value (n_docs, n_words), and what leaving out each topic does to it."""
    model = estimator.fitted_model()
    documents, layers = model.encoder.weighted(model.documents(X)), model.encoder.layers
    seen = X.copy()
    seen.data = documents.counts
    U = np.float64(model.U)
    y = np.full((X.shape[0], len(U)), np.float64(output))
    options = {"alpha": layers.alpha, "n_layers": layers.n_layers, "step_size": layers.step_size, "tol": layers.tol}
    gradients = value_and_grad(estimator.encoder_components_.T, U, seen, y, Explained(estimator), **options)
    words = seen.copy()
    words.data = words.data * gradients.grad_counts

    def values(theta):
        return explained_value(estimator, model.scores(theta), np.full(len(theta), output))[:, None]

    return words.toarray(), left_out(model.encoder, model.components, values, model.documents(X), gradients.theta)


def close(actual, expected, tolerance=1e-9):
    scale = max(1.0, float(np.abs(expected).max(initial=0)))
    np.testing.assert_allclose(np.float64(actual), expected, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize(
    ("case", "max_words"),
    [*((case, 10_000) for case in CASES), *((case, 60) for case in ("gaussian, several", "two classes", "topics", "labels"))],
)
def test_the_page_computes_what_the_package_computes(case, max_words, fitted, documents, page_of):
    model = fitted(case)
    data = content(model, max_words=max_words)
    estimator, vocabulary = rounded(data, model)
    texts, page = texts_to_read(documents), page_of(data)
    found, *explained = analysed(page, texts, [None, *range(len(data["outputs"]))])

    X = vocabulary.count(texts).astype(np.float64)
    theta = estimator.transform(X)
    close([result["theta"] for result in found], theta)
    counts = [{vocabulary.word(word): X[d, word] for word in X[d].nonzero()[0]} for d in range(len(texts))]
    assert [{word["word"]: word["count"] for word in result["words"]} for result in found] == counts
    if case == "topics":
        assert all(result["scores"] == [] and result["value"] is result["values"] is None for result in found)
        return
    scores = estimator.fitted_model().scores(theta)
    close([result["scores"] for result in found], scores)
    if case == "own response":
        assert all(result["value"] is result["probabilities"] is result["words"][0]["effect"] is None for result in found[2:])
        return
    if isinstance(estimator, TopicClassifier):
        assert all(result["values"] is None for result in found)
        close([result["probabilities"] for result in found], estimator.predict_proba(X))
    else:
        close([result["values"] for result in found], estimator.targets_.predict(scores))
    if case == "ordinal":
        close([result["probabilities"] for result in found], estimator.predict_proba(X))

    outputs = [result["output"] for result in found]
    if len(data["outputs"]) == 1 or case in ("two classes", "many layers"):
        assert set(outputs) == {len(data["outputs"]) - 1}
    elif isinstance(estimator, TopicClassifier):
        assert outputs == scores.argmax(axis=1).tolist()
    else:
        assert set(outputs) == {0}
    # Where alpha is below 1, what is left of a document when its one topic goes is inferred from next to nothing.
    tolerance = 1e-3 if case == "five classes, below 1" else 1e-7
    for output, results in enumerate(explained):
        chosen = np.full(len(texts), output)
        close([result["value"] for result in results], explained_value(estimator, scores, chosen))
        words, topics = expected_effects(estimator, X, output)
        for d, result in enumerate(results):
            effects = {word["word"]: word["effect"] for word in result["words"]}
            close([effects.get(word, 0.0) for word in vocabulary.words], words[d], 1e-6)
            assert [topic["topic"] for topic in result["topics"]] == list(range(theta.shape[1]))
            close([topic["share"] for topic in result["topics"]], theta[d])
            close([topic["effect"] for topic in result["topics"]], topics.effects[d, 0], tolerance)
            close(result["empty"], topics.empty[0])
            close(result["overlap"], topics.overlap[d, 0], tolerance)
            close(result["tokens"], sum(effects.values()))


@pytest.mark.parametrize("case", ["gaussian, several", "poisson", "five classes, below 1", "many layers"])
@pytest.mark.slow
def test_the_page_takes_the_steps_that_the_core_takes(case, fitted, documents, page_of):
    """Many texts, short and long, whose steps are accepted or rejected for all reasons that there are."""
    model = fitted(case)
    data = content(model)
    estimator, vocabulary = rounded(data, model)
    rng = np.random.default_rng(0)
    words = vocabulary.words[:-1]
    texts = [" ".join(rng.choice(words, rng.integers(1, 6)).repeat(rng.integers(1, 60))) for _ in range(1500)] + documents[0]
    found = page_of(data).evaluate("texts => JSON.stringify(texts.map(text => model.analyse(text).theta))", texts)
    close(json.loads(found), estimator.transform(vocabulary.count(texts).astype(np.float64)))


@pytest.mark.parametrize("case", ["gaussian", "ordinal", "two classes", "five classes, below 1", "labels", "no themes"])
def test_the_page_explains_as_the_package_explains(case, fitted, documents, page_of):
    model = fitted(case)
    data = content(model)
    estimator, _ = rounded(data, model)
    texts = documents[0][:6]
    for text, found in zip(texts, analysed(page_of(data), texts, [None])[0], strict=True):
        expected = explain(estimator, text, leave_one_out=False)
        assert data["outputs"][found["output"]] == expected.output
        close([found["value"], found["empty"]], np.array([expected.value, expected.empty]))
        # Shares have six digits in the page.
        close(found["average"], expected.average, 1e-5)
        close(found["overlap"], expected.overlap, 1e-7)
        close([found["topics"][topic.topic]["effect"] for topic in expected.topics], [t.effect for t in expected.topics], 1e-7)
        close(sum(topic["effect"] for topic in found["topics"]) + found["overlap"], found["value"] - found["empty"])
        topics = {word.word: (word.topic, word.effect) for word in expected.words}
        assert {word["word"]: word["topic"] for word in found["words"]} == {word: topic for word, (topic, _) in topics.items()}
        close([topics[word["word"]][1] for word in found["words"]], [word["effect"] for word in found["words"]], 1e-7)


def random_texts(n, seed):
    """Texts of all of Unicode that both this Python and the core know, rich in what normalisation and lower case change."""
    rng = np.random.default_rng(seed)
    known = [
        c
        for c in map(chr, range(sys.maxunicode + 1))
        if unicodedata.category(c) not in ("Cn", "Cs", "Co") and _core.is_assigned(ord(c))
    ]
    marks = [c for c in known if unicodedata.combining(c)]
    changed = [c for c in known if c != unicodedata.normalize("NFC", c) or c != c.lower()]
    jamo = [chr(c) for c in (*range(0x1100, 0x1113), *range(0x1161, 0x1176), *range(0x11A8, 0x11C3))]
    pools = [known, marks, changed, jamo, list("ΣσςΑα'.:İI\u0307=\u0338 "), list("abcXYZ019 .,-_")]

    def character():
        pool = pools[rng.integers(len(pools))]
        return pool[rng.integers(len(pool))]

    return ["".join(character() for _ in range(rng.integers(1, 30))) for _ in range(n)]


@pytest.mark.parametrize("lowercase", [True, False])
def test_the_page_reads_the_words_that_the_core_reads(lowercase, fitted, page_of):
    texts = random_texts(1500, 0)
    function = """([texts, lowercase]) => JSON.stringify(texts.map(text => mirrorlda.wordsOf(text, lowercase).map(
        ({word, begin, end}) => [word, begin, end, text.slice(begin, end)])))"""
    found = json.loads(page_of(content(fitted("gaussian"))).evaluate(function, [texts, lowercase]))
    definition = TextDefinition(lowercase)
    assert [[word for word, *_ in words] for words in found] == [definition.words(text) for text in texts]

    def same(word):
        # Which sigma it is depends on what stands beside the word.
        return word.replace("\N{GREEK SMALL LETTER FINAL SIGMA}", "\N{GREEK SMALL LETTER SIGMA}")

    for words in found:
        assert all(same(word) in map(same, definition.words(piece)) for word, _, _, piece in words)
        places = [place for _, begin, end, _ in words for place in (begin, end)]
        assert places == sorted(places)


def test_tokens_are_places_of_the_text_as_typed(fitted, page_of):
    text = "Oh, CAFE\N{COMBINING ACUTE ACCENT}! 🎬 W1, unknown İSTANBUL w1 漢字."
    result = page_of(content(fitted("gaussian"))).evaluate("text => model.analyse(text)", text)
    units = text.encode("utf-16-le")
    pieces = [units[2 * token["begin"] : 2 * token["end"]].decode("utf-16-le") for token in result["tokens"]]
    assert pieces == ["CAFE\N{COMBINING ACUTE ACCENT}", "W1", "İSTANBUL", "w1", "漢字"]
    assert (result["nWords"], result["nKnown"]) == (7, 5)
    assert result["tokens"][1]["effect"] == result["tokens"][3]["effect"] != 0


def test_a_bigram_is_shared_by_its_words(documents, page_of):
    texts = ["not good at all", "not bad", "good", "bad", "not good", "bad bad"] * 20
    y = [0.0, 1.0, 1.0, 0.0, 0.0, 0.0] * 20
    model = make_pipeline(TextVectorizer(bigrams=True), TopicRegressor(2, random_state=0)).fit(texts, y)
    data = content(model)
    kept = [number for number, word in enumerate(data["model"]["words"]) if word == "not good"]
    phi = np.frombuffer(base64.b64decode(data["model"]["phi"]), "<u2").reshape(-1, 2)[kept]
    one = {"words": ["not good"], "phi": base64.b64encode(phi.tobytes()).decode(), "themes": None, "word_weights": [1.0]}
    data["model"] |= one
    result = page_of(data).evaluate("text => model.analyse(text)", "Not, good. Good not")
    assert [(token["begin"], token["end"]) for token in result["tokens"]] == [(0, 3), (5, 9)]
    assert result["nKnown"] == 0
    assert [word["word"] for word in result["words"]] == ["not good"]
    assert all(token["effect"] == result["words"][0]["effect"] / 2 for token in result["tokens"])


@pytest.mark.parametrize("relevance", [0, 0.3, 0.5, 0.8, 1])
def test_relevant_words_are_those_of_the_package(relevance, fitted, page_of):
    model = fitted("five classes")
    data = content(model)
    estimator, vocabulary = rounded(data, model)
    function = "([relevance, n]) => [...Array(model.nTopics).keys()].map(topic => model.relevantWords(topic, relevance, n))"
    found = page_of(data).evaluate(function, [relevance, 7])
    expected = relevant_words(
        estimator.components_[:, :-1], estimator.topic_shares_, vocabulary.words[:-1], n_words=7, relevance=relevance
    )
    assert [[word["word"] for word in words] for words in found] == expected
    probability = estimator.components_[2, vocabulary[expected[2][0]]]
    assert found[2][0]["probability"] == pytest.approx(probability)
    shares = estimator.topic_shares_ / estimator.topic_shares_.sum()
    frequency = (shares @ estimator.components_)[vocabulary[expected[2][0]]]
    assert found[2][0]["lift"] == pytest.approx(probability / frequency, rel=1e-4)


@pytest.mark.slow
def test_what_the_page_cannot_do_it_says(documents, fitted, page_of):
    page = page_of(content(fitted("two classes")))
    with pytest.raises(Exception, match="output must be a number from 0 to 1, got 2"):
        page.evaluate("model.analyse('w1', 2)")
    X = model_of(fitted("gaussian")).count(documents[0])
    nameless = content(TopicRegressor(3, random_state=0).fit(X, documents[1][:, 0]))
    assert nameless["model"]["definition"] is None
    with pytest.raises(Exception, match="this model cannot read text"):
        page_of(nameless).evaluate("model.analyse('w1')")


# What the page holds.


@pytest.mark.parametrize("case", ["gaussian", "five classes", "labels"])
def test_themes_are_as_near_as_is_said(case, fitted):
    model = fitted(case)
    data = content(model)
    names = {word: column for column, word in enumerate(model_of(model).names)}
    themes = model[-1].components_[:, [names[word] for word in data["model"]["words"]]].T
    themes = np.maximum(themes.astype(np.float64), 1e-12)
    off = np.abs(decoded_themes(data) / themes - 1)
    assert off[themes >= themes.max(axis=1, keepdims=True) / 8].max() < 0.031
    assert 0 < off.max() < 0.12
    assert len(base64.b64decode(data["model"]["themes"]["depth"])) == themes.size


def test_themes_of_any_size_are_as_near_as_is_said(fitted):
    model = copy.deepcopy(fitted("gaussian"))
    rng = np.random.default_rng(0)
    themes = np.exp(rng.uniform(-40, 0, model[-1].components_.shape))
    model[-1].components_ = themes / themes.sum(axis=1, keepdims=True)
    data = content(model)
    names = {word: column for column, word in enumerate(model_of(model).names)}
    themes = np.maximum(model[-1].components_[:, [names[word] for word in data["model"]["words"]]].T, 1e-12)
    off = np.abs(decoded_themes(data) / themes - 1)
    assert off[themes >= themes.max(axis=1, keepdims=True) / 8].max() < 0.031
    assert 0.05 < off.max() < 0.12


@pytest.mark.parametrize("case", ["topics", "no themes"])
def test_topics_that_infer_are_read_where_there_are_no_others(case, fitted, page_of):
    data = content(fitted(case))
    assert data["model"]["themes"] is None
    assert page_of(data).evaluate("model.themes === model.phi")


def test_words_are_as_many_as_keep_the_page_small(monkeypatch):
    data = make_topics(n_docs=60, n_words=6000, n_topics=2, n_outputs=1, random_state=0)
    monkeypatch.setattr(sys.modules["mirrorlda.report.content"], "_BYTES_OF_TOPICS", 1_200_000)
    for n_topics, readability, n_words in ((50, 1.0, 6000), (50, 0.0, 6000), (60, 1.0, 5000), (60, 0.0, 6000)):
        model = TopicRegressor(n_topics, n_epochs=1, readability=readability, random_state=0).fit(data.X, data.y)
        assert len(content(model)["model"]["words"]) == n_words


def test_the_most_frequent_words_are_kept(fitted):
    model = fitted("gaussian")
    estimator = model[-1]
    frequencies = estimator.topic_shares_ @ estimator.components_
    names = model[0].get_feature_names_out()
    assert content(model, max_words=9)["model"]["words"] == names[np.argsort(-frequencies)[:9]].tolist()
    assert sorted(content(model)["model"]["words"]) == sorted(names)
    with pytest.raises(ValueError, match="max_words must be at least 1, got 0"):
        content(model, max_words=0)


def test_models_without_names_have_numbers_for_words(documents, fitted):
    texts, y = documents
    X = model_of(fitted("gaussian")).count(texts)
    page = content(TopicRegressor(3, random_state=0).fit(X, y))
    assert sorted(page["model"]["words"]) == sorted(map(str, range(X.shape[1])))
    assert page["outputs"] == page["topics"]["effect_names"] == ["output 0", "output 1"]


@pytest.mark.parametrize("steps", [[TextVectorizer(), TfidfTransformer()], [CountVectorizer()]])
def test_text_is_read_only_where_the_page_counts_words_as_the_model_does(steps, documents):
    model = make_pipeline(*steps, TopicRegressor(3, random_state=0)).fit(documents[0], documents[1][:, 0])
    page = content(model, documents=documents[0][:5])
    assert page["model"]["definition"] is None
    assert "w1" in page["model"]["words"]
    assert len(page["documents"]) == 3


def test_words_are_those_that_a_step_before_the_model_has_chosen(documents):
    steps = CountVectorizer(), SelectKBest(chi2, k=20), TopicClassifier(3, random_state=0, n_epochs=2)
    model = make_pipeline(*steps).fit(documents[0], targets("two classes", documents[1]))
    assert sorted(content(model)["model"]["words"]) == sorted(model[:-1].get_feature_names_out())


@pytest.mark.parametrize("case", ["gaussian, several", "two classes", "five classes", "labels", "topics", "own response"])
def test_topics_have_the_order_of_describe_and_places_in_the_plane(case, fitted):
    model = fitted(case)
    page = content(model)
    lines = describe(model[-1]).splitlines()[1:]
    assert page["topics"]["order"] == [int(line.split()[0]) for line in lines]
    places = np.array(page["topics"]["map"])
    assert places.shape == (page["model"]["n_topics"], 2)
    assert np.abs(places).max() == 1


@pytest.mark.parametrize("case", ["gaussian", "gaussian, several", "two classes", "five classes", "labels", "topics"])
def test_topics_have_their_effects_ranges_and_words(case, fitted):
    model = fitted(case)[-1]
    page = content(fitted(case))["topics"]
    names, values = effects(model)
    n_topics = model.n_topics
    assert page["effect_names"] == names
    np.testing.assert_allclose(np.reshape(page["effects"], (-1, n_topics)), values, rtol=1e-5)
    if case == "topics":
        assert page["ranges"] is None
        assert page["raising"] == page["lowering"] == [[]] * n_topics
        return
    np.testing.assert_allclose(page["ranges"], model.topic_effects_[1:], rtol=1e-5)
    lines = describe(fitted(case), n_words=10).splitlines()[1:]
    for topic, line in zip(page["order"], lines, strict=True):
        said = " ".join([*page["raising"][topic], *page["lowering"][topic]])
        # Where one of them is a phrase there are commas.
        assert " ".join(line.replace(",", "").split()).endswith(said)


def test_a_model_of_an_earlier_version_has_effects_without_ranges(fitted):
    model = copy.deepcopy(fitted("gaussian"))
    del model[-1].topic_effects_
    page = content(model)["topics"]
    assert page["ranges"] is None
    assert len(page["effects"][0]) == 4


def test_topics_that_are_alike_are_near_each_other(fitted):
    model = copy.deepcopy(fitted("topics"))
    components = model[-1].components_.copy()
    components[3] = 0.99 * components[1] + 0.01 * components[0]
    model[-1].components_ = components
    places = np.array(content(model)["topics"]["map"])
    distances = np.linalg.norm(places[:, None] - places, axis=2) + 9 * np.eye(len(places))
    assert distances[1].argmin() == 3
    assert distances[3].argmin() == 1


@pytest.mark.parametrize("case", ["gaussian", "ordinal"])
def test_documents_are_those_that_show_a_topic_best(case, documents, fitted):
    texts, y = documents
    model = fitted(case)
    truths = targets("number", y)
    page = content(model, documents=texts, truths=truths)
    theta, predicted = model[-1].transform(model[0].transform(texts)), model.predict(texts)
    numbers = typical_documents(model, texts)
    for topic, shown in enumerate(page["documents"]):
        best = numbers[topic]
        assert [document["share"] for document in shown] == pytest.approx(theta[best, topic].tolist(), rel=1e-5)
        assert [document["prediction"] for document in shown] == [f"{predicted[d]:.4g}" for d in best]
        assert [document["truth"] for document in shown] == [f"{truths[d]:.4g}" for d in best]
    assert content(model)["documents"] is None
    with pytest.raises(ValueError, match="truths has 1 entries, but there are 300 documents"):
        content(model, documents=texts, truths=[1])


def test_long_documents_are_cut_between_words(fitted):
    text = "W1 café " * 200
    shown = content(fitted("topics"), documents=[text, "W2", " W3\n"])["documents"][0]
    long = next(document["text"] for document in shown if len(document["text"]) > 10)
    assert len(long) <= 602
    assert long.endswith((" W1 …", " café …"))
    assert {document["text"] for document in shown} == {long, "W2", "W3"}
    assert all(document["truth"] is None and document["prediction"] is None for document in shown)


@pytest.mark.parametrize(
    ("case", "truth", "said"),
    [
        ("two classes", "good", "good"),
        ("labels", [1, 0], "0"),
        ("labels", [0, 0], "no label"),
        ("labels", ["a", "b"], "a, b"),
        ("gaussian, several", [1, 2.5], "output 0 1, output 1 2.5"),
        ("gaussian", float("nan"), None),
        ("gaussian", None, None),
    ],
)
def test_truths_in_words(case, truth, said, fitted):
    [[document], *_] = content(fitted(case), documents=["w1 w2"], truths=[truth])["documents"]
    assert document["truth"] == said


def test_predictions_in_words(documents, fitted):
    [shown, *_] = content(fitted("two classes"), documents=documents[0])["documents"]
    model = fitted("two classes")
    names = model[-1].classes_.tolist()
    p = model.predict_proba([shown[0]["text"]])[0]
    assert shown[0]["prediction"] == f"{names[p.argmax()]} ({p.max():.0%})"


def test_the_page_holds_any_names_and_no_nan(documents, page_of):
    texts = [text + " </script><!-- & \u2028" for text in documents[0]]
    names = np.array(["</script><script>alert(1)</script>", "\u2028\u2029&amp;<!--", "\ud800"], object)
    y = names[np.digitize(documents[1][:, 0], [-0.5, 0.5])]
    model = make_pipeline(TextVectorizer(), TopicClassifier(3, random_state=0, n_epochs=2)).fit(texts, y)
    model[-1].history_["score"][0] = float("nan")
    data = content(
        model, documents=texts, truths=y, title="<b>{{data}}", configuration={"n_docs": 300, "rate": np.float32(np.inf)}
    )
    assert data["history"]["score"][0] is None
    assert data["n_docs"] == 300
    assert data["configuration"] == {"rate": "inf", "n_epochs": 2, "random_state": 0}
    json.dumps(data, allow_nan=False)
    found = page_of(data).evaluate("JSON.stringify(data)")
    assert json.loads(found) == data


def test_settings_are_said_once_and_in_words(documents):
    texts, y = documents
    seeds = {0: [1, 2], 2: [3]}
    estimator = TopicRegressor(3, random_state=0, n_epochs=2, n_jobs=1, alpha=np.array([1.0, 1.5, 2.0]), seed_words=seeds)
    model = make_pipeline(TextVectorizer(), estimator).fit(texts, y[:, 0])
    given = {"n_docs": 300, "seconds": 2.5, "files": ["a.csv", "b.csv"], "beta": 1.0001, "less": {"early": False}}
    page = content(model, configuration=given)
    assert (page["n_docs"], page["seconds"]) == (300, 2.5)
    assert page["configuration"] == {
        "files": "a.csv, b.csv",
        "beta": 1.0001,
        "alpha": "1.0, 1.5, 2.0",
        "n_epochs": 2,
        "random_state": 0,
        "seed_words": "0: 1, 2; 2: 3",
    }
    others = page["other_settings"]
    assert others["early"] is False
    assert others["response"] == "gaussian"
    assert not others.keys() & (page["configuration"].keys() | {"n_topics", "n_jobs", "n_docs"})
    assert content(model)["seconds"] is None


def test_a_page_can_go_to_an_open_file(fitted, tmp_path):
    file = io.BytesIO()
    report(fitted("gaussian"), file)
    report(fitted("gaussian"), tmp_path / "page.html")
    assert file.getvalue() == (tmp_path / "page.html").read_bytes()


# The command.


@pytest.fixture(scope="module")
def trained(documents, tmp_path_factory):
    """A folder with models of stars, of tags and of topics alone, and the files that they were trained on."""
    folder = tmp_path_factory.mktemp("report")
    texts, y = documents
    rows = [f"{text},{5 * number:.0f},{'good;' if number > 0 else ''}any" for text, number in zip(texts, y[:, 0], strict=True)]
    (folder / "reviews.csv").write_text("\n".join(["review,stars,tags", *rows]), encoding="utf-8")
    (folder / "new.csv").write_text("\n".join(["review", *texts[:50]]), encoding="utf-8")
    for name, options in {
        "stars": ["--target", "stars", "--task", "regression"],
        "tags": ["--target", "tags", "--label-separator", ";", "--task", "multilabel"],
        "topics": ["--task", "topics"],
    }.items():
        run(
            "train", folder / "reviews.csv", "--text", "review", "--topics", 3, "--epochs", 2, *options, "-q", "-o", folder / name
        )
    return folder


def run(*arguments):
    result = CliRunner().invoke(main, list(map(str, arguments)))
    assert result.exit_code == 0, (result.output, result.exception)
    return result


def held(page):
    """The data of a page."""
    _, _, rest = page.partition('<script type="application/json" id="data">')
    return json.loads(rest.partition("</script>")[0])


@pytest.mark.slow
def test_standard_output_has_the_page_alone(trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("report", trained / "stars", "--data", trained / "reviews.csv", "-o", "-")
    assert result.stdout.startswith("<!doctype html>")
    assert result.stdout.rstrip().endswith("</html>")
    assert held(result.stdout)["evaluation"]["n_docs"] == 300
    assert list(tmp_path.iterdir()) == []


def test_documents_need_no_target(trained):
    result = run("report", trained / "stars", "--data", trained / "new.csv", "--documents", "-o", "-")
    data, plain = held(result.stdout), held(run("report", trained / "stars", "-o", "-").stdout)
    assert "new.csv: no column 'stars'; there are 'review'; measures are those of training" in result.stderr
    assert data["evaluation"] is not None
    assert data["evaluation"] == plain["evaluation"]
    assert all(document["truth"] is None and document["prediction"] for shown in data["documents"] for document in shown)
    # Asked for, or without documents to show, a target has to be there.
    for options in (["--documents", "--target", "stars"], []):
        asked = ["report", trained / "stars", "--data", trained / "new.csv", *options, "-o", "-"]
        failed = CliRunner().invoke(main, list(map(str, asked)))
        assert failed.exit_code == 1
        assert "no column 'stars'" in failed.stderr


@pytest.mark.slow
def test_documents_of_files_with_targets_are_measured_and_shown(trained):
    files = ["--data", trained / "reviews.csv", "--documents"]
    data = held(run("report", trained / "tags", *files, "--label-separator", ";", "-o", "-").stdout)
    assert data["evaluation"]["n_docs"] == 300
    assert {document["truth"] for shown in data["documents"] for document in shown} <= {"good, any", "any"}
    data = held(run("report", trained / "topics", *files, "-o", "-").stdout)
    assert data["evaluation"]["n_docs"] == 300
    assert all(document["truth"] is None for shown in data["documents"] for document in shown)


@pytest.mark.slow
def test_the_page_of_a_folder_says_how_its_model_was_made(trained):
    data = held(run("report", trained / "tags", "-o", "-").stdout)
    assert data["n_docs"] + data["evaluation"]["n_docs"] == 300
    assert data["seconds"] > 0
    assert data["configuration"] == {
        "task": "multilabel",
        "files": "reviews.csv",
        "column of the text": "review",
        "column of the target": "tags",
        "label-separator": ";",
        "n_epochs": 2,
        "random_state": 0,
    }
    assert data["other_settings"]["fraction held out"] == 0.1
    assert "epochs" not in data["other_settings"]


def test_the_pieces_of_the_page_are_put_in_their_places_once(fitted, monkeypatch, tmp_path, open_page):
    pieces = {
        "page.html": '<!doctype html><meta charset="utf-8"><title>{{title}}</title><style>{{style}}</style>'
        '<script type="application/json" id="data">{{data}}</script><script>{{script}}</script>',
        "page.css": "body { color: rgb(1, 2, 3) }",
        "model.js": "const order = ['model'];",
        "page.js": "order.push('page', JSON.parse(document.getElementById('data').textContent).title);",
    }
    monkeypatch.setattr("mirrorlda.report._read", lambda name: pieces.get(name, f"order.push('{name.removesuffix('.js')}');"))
    path, title = tmp_path / "page.html", "{{data}} & </title><b>{{script}}"
    report(fitted("gaussian"), path, title=title)
    page = open_page(path)
    assert page.title() == title
    assert page.evaluate("[...order, getComputedStyle(document.body).color]") == [
        *("model", "charts", "pieces", "try", "topics", "quality", "page"),
        title,
        "rgb(1, 2, 3)",
    ]
