"""Topics as people read them."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from mirrorlda.datasets import make_topics
from mirrorlda.topics import describe, effects, relevant_words, to_pyldavis, typical_documents
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer
from sklearn.feature_selection import SelectKBest, chi2
from sklearn.pipeline import make_pipeline

from mirrorlda import TextVectorizer, TopicClassifier, TopicModel, TopicRegressor, prepare
from mirrorlda.inspect.topics import topic_table
from mirrorlda.method.fitted_model import model_of
from mirrorlda.method.responses import Sigmoid, Softmax, SquaredError
from mirrorlda.method.targets.classes import Classes, Labels
from mirrorlda.method.targets.numbers import Numbers
from mirrorlda.method.targets.record import NoTargets

NAMES = ["the", "good", "bad", "plot"]
SHARES = np.array([0.4, 0.4, 0.2])
COMPONENTS = np.array([[0.7, 0.2, 0.02, 0.08], [0.7, 0.02, 0.2, 0.08], [0.6, 0.1, 0.1, 0.2]])


def model_with(coef_=None, classes_=None, target_names_=None, *, are_labels=False, **fitted):
    """A fitted model of three topics; predictions are its scores."""
    if coef_ is None:
        model, targets = TopicModel(), NoTargets()
    elif classes_ is None:
        unscaled = {"mean": np.zeros(len(coef_)), "scale": np.ones(len(coef_))}
        model, targets = TopicRegressor(), Numbers(SquaredError(), len(coef_) == 1, "gaussian", target_names_, **unscaled)
    else:
        model, targets = TopicClassifier(), Labels(Sigmoid(), classes_) if are_labels else Classes(Softmax(), classes_)
    always = {
        "components_": COMPONENTS,
        "encoder_components_": COMPONENTS,
        "alpha_": np.ones(3),
        "topic_shares_": SHARES,
        "targets_": targets,
    }
    for name, value in (always | ({} if coef_ is None else {"coef_": coef_}) | fitted).items():
        setattr(model, name, value)
    return model


def rows(table):
    return [line.split() for line in table.splitlines()]


@pytest.mark.parametrize("relevance", [0, 0.25, 0.5])
def test_relevance_weighs_lift_by_probability(relevance):
    rng = np.random.default_rng(0)
    components, shares = rng.dirichlet(np.ones(30), 4), rng.dirichlet(np.ones(4))
    expected = components**relevance * np.log(components / (shares @ components))
    words = relevant_words(components, 7 * shares, n_words=30, relevance=relevance)
    assert words == [[str(word) for word in np.argsort(-row)] for row in expected]


def test_relevance_ends_at_probability():
    components = np.random.default_rng(0).dirichlet(np.ones(30), 4)
    words = relevant_words(components, np.ones(4), n_words=30, relevance=1)
    assert words == [[str(word) for word in np.argsort(-row)] for row in components]


def test_stop_words_are_not_what_topics_are_read_by():
    assert [words[0] for words in relevant_words(COMPONENTS, SHARES, NAMES)] == ["good", "bad", "plot"]


def test_a_word_with_probability_zero_comes_last():
    assert relevant_words([[0.5, 0.5, 0.0]], [1], ["a", "b", "c"]) == [["a", "b", "c"]]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((COMPONENTS[0], SHARES), {}, r"components must have shape \(n_topics, n_words\), got \(4,\)"),
        ((COMPONENTS, SHARES[:2]), {}, r"shares must have shape \(3,\).*got \(2,\)"),
        ((COMPONENTS, -SHARES), {}, "shares must be non-negative"),
        ((COMPONENTS, SHARES * np.nan), {}, "shares must be non-negative"),
        ((COMPONENTS, SHARES * 0), {}, "not all zero"),
        ((COMPONENTS, SHARES, ["the"]), {}, "names has 1 entries, but components has 4 words"),
        ((COMPONENTS, SHARES), {"n_words": 0}, "n_words must be at least 1, got 0"),
        ((COMPONENTS, SHARES), {"relevance": 1.5}, "relevance must be between 0 and 1, got 1.5"),
    ],
)
def test_errors_name_what_is_wrong(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        relevant_words(*arguments, **options)


def test_a_regressors_topics_are_ordered_by_what_they_predict():
    table = rows(describe(model_with(coef_=np.array([[1.5, -12.25, 4.0]])), NAMES, n_words=1, relevance=0))
    assert table == [
        ["topic", "share", "effect", "words", "raise", "lower"],
        ["2", "20.0%", "+7.50", "plot", "plot"],
        ["0", "40.0%", "+5.00", "good", "good", "the"],
        ["1", "40.0%", "-8.75", "bad", "bad"],
    ]


def test_several_targets_have_a_column_each_and_the_first_orders():
    coef = np.array([[1.0, 2, 3.5], [0.3, 0.2, 0.0]])
    table = describe(model_with(coef_=coef), n_words=1)
    assert table.splitlines()[0].split("  ")[2:4] == ["effect on output 0", "effect on output 1"]
    assert rows(table)[1][:4] == ["2", "20.0%", "+1.60", "-0.200"]
    named = describe(model_with(coef_=coef, target_names_=["room", "staff"]))
    assert named.splitlines()[0].split("  ")[2:4] == ["effect on room", "effect on staff"]


@pytest.mark.parametrize("response", ["poisson", "ordinal"])
def test_topics_are_ordered_by_their_effect_where_it_is_not_linear(response):
    data = make_topics(n_docs=300, n_words=40, n_topics=6, n_outputs=1, random_state=0)
    levels = np.digitize(data.y, np.quantile(data.y, [0.2, 0.4, 0.6, 0.8])).ravel() + 1.0
    model = TopicRegressor(n_topics=6, response=response, random_state=0).fit(data.X, levels)
    if response == "ordinal":
        # By the first score alone, topic 0 would be the last.
        model.coef_ = np.array([[-1.0, 0, 1, 2, 3, 4], *[[9.0, 0, 0, 0, 0, 0]] * 3], model.coef_.dtype)
    order = model_of(model).order()
    _, values = effects(model)
    assert (np.diff(values[0][order]) <= 0).all()
    assert [int(line.split()[0]) for line in describe(model).splitlines()[1:]] == order


def test_two_classes_have_one_effect_for_the_second():
    coef = np.array([[1.0, 2.0, 0.0], [2.0, 0.0, 0.5]])
    table = rows(describe(model_with(coef_=coef, classes_=np.array(["no", "yes"])), NAMES, n_words=1, relevance=0))
    assert table == [
        ["topic", "share", "for", "yes", "words", "raise", "lower"],
        ["0", "40.0%", "+1.30", "good", "good"],
        ["2", "20.0%", "+0.80", "plot", "plot"],
        ["1", "40.0%", "-1.70", "bad", "bad"],
    ]


@pytest.mark.parametrize("are_labels", [False, True])
def test_topics_are_grouped_by_the_class_or_label_that_they_speak_for(are_labels):
    coef = np.array([[0.0, 3.0, 3.0], [0.0, 0.0, 0.0], [6.0, 0.0, 0.0]])
    model = model_with(coef_=coef, classes_=np.array(["a", "b", "c"]), are_labels=are_labels)
    table = rows(describe(model, NAMES, n_words=1, relevance=0))
    assert table[0] == ["topic", "share", "for", "effect", "words", "raise", "lower"]
    effect = ["+1.20", "+1.20", "+3.60"] if are_labels else ["+1.60", "+1.60", "+3.00"]
    assert [[line[0], *line[2:4]] for line in table[1:]] == [["1", "a", effect[0]], ["2", "a", effect[1]], ["0", "c", effect[2]]]


def test_of_topics_for_one_class_the_strongest_comes_first():
    coef = np.array([[0.0, 1.0, 6.0], [0.0, 0.0, 0.0], [6.0, 0.0, 0.0]])
    model = model_with(coef_=coef, classes_=np.array(["a", "b", "c"]))
    assert model_of(model).order() == [2, 1, 0]


def test_topics_without_effects_are_ordered_by_share():
    table = rows(describe(model_with(topic_shares_=np.array([0.1, 0.6, 0.3])), NAMES, n_words=1, relevance=0))
    assert table == [
        ["topic", "share", "words"],
        ["1", "60.0%", "bad"],
        ["2", "30.0%", "plot"],
        ["0", "10.0%", "good"],
    ]


def test_columns_are_aligned():
    table = describe(model_with(coef_=np.array([[100.0, -1, 1]])), NAMES, n_words=1, relevance=0)
    lines = [line.rpartition("  ")[0] for line in table.splitlines()]
    assert len({line.index(words) for line, words in zip(lines, ["words", "good", "plot", "bad"], strict=True)}) == 1


@pytest.mark.parametrize(
    ("estimator", "response"), [(TopicModel, {}), (TopicRegressor, {"n_outputs": 1}), (TopicClassifier, {"n_classes": 3})]
)
def test_every_estimator_is_described(estimator, response):
    data = make_topics(n_docs=200, n_words=40, n_topics=3, random_state=0, **response)
    model = estimator(n_topics=3, n_epochs=2, random_state=0).fit(data.X, data.y)
    assert len(describe(model).splitlines()) == 4


def test_columns_of_a_data_frame_name_the_words():
    model = model_with(feature_names_in_=np.array(NAMES))
    assert rows(describe(model, n_words=1, relevance=0))[1][-1] == "good"


def test_a_pipeline_names_the_words():
    texts = ["clean quiet room", "dirty noisy room", "", "quiet street"] * 5
    last = TopicModel(2, n_epochs=2, random_state=0)
    for steps in ([TextVectorizer()], [CountVectorizer(), TfidfTransformer()], [CountVectorizer(), SelectKBest(chi2, k=3)]):
        pipeline = make_pipeline(*steps, last).fit(texts, ["a", "b", "c", "d"] * 5)
        assert describe(pipeline) == describe(pipeline[-1], pipeline[:-1].get_feature_names_out())
        assert "noisy" in describe(pipeline)
    assert describe(pipeline, ["x", "y", "z"]).splitlines()[1].split()[-1] in "xyz"
    table = pd.DataFrame(documents_with_and_without_words()).add_prefix("column")
    assert "column" in describe(make_pipeline(last).fit(table))
    hashed = make_pipeline(HashingVectorizer(n_features=8, norm=None, alternate_sign=False), last).fit(texts)
    assert set(describe(hashed).splitlines()[1].split()[2:]) <= set("01234567")


def test_a_model_that_is_not_fitted_is_refused():
    for model in (TopicRegressor(), make_pipeline(TextVectorizer(), TopicRegressor())):
        with pytest.raises(ValueError, match=r"must be a fitted TopicModel.*got TopicRegressor"):
            describe(model)


def left_out(model, X, value):
    """Means and quantiles over documents, one document and topic at a time."""
    theta, themes = model.transform(X), model.components_.T
    effects = np.zeros((X.shape[0], len(model.components_)))
    for d in range(X.shape[0]):
        row = X[[d]].toarray().astype(float)
        seen = np.log2(1 + row[0])
        for topic in range(effects.shape[1]):
            part = themes[:, topic] * theta[d, topic] / (themes @ theta[d])
            without = 2 ** (seen * (1 - part)) - 1
            effects[d, topic] = value(row)[0] - value(without[None])[0]
    return effects.mean(axis=0), *np.quantile(effects, (0.1, 0.9), axis=0)


def test_effects_of_numbers_are_what_is_lost_without_the_topics_part_of_the_words():
    data = make_topics(n_docs=40, n_words=40, n_topics=3, n_outputs=1, random_state=0)
    model = TopicRegressor(n_topics=3, n_epochs=2, random_state=0).fit(data.X.astype(float), data.y)
    names, values = effects(model)
    assert names == ["prediction"]
    mean, low, high = left_out(model, data.X.astype(float), lambda row: np.ravel(model.predict(row)))
    np.testing.assert_allclose(values[0], mean, atol=1e-6)
    np.testing.assert_allclose(model.topic_effects_[1:, 0], [low, high], atol=1e-6)
    assert np.abs(mean).max() > 1e-3
    table = describe(model, n_words=2)
    assert "10 % to 90 %" in table.splitlines()[0]
    assert f"{high.max():+.3f}"[:4] in table


def test_words_of_a_topic_that_raise_and_lower_the_prediction():
    """Derivatives of the average document's value, from scratch, of words that are the topic's."""
    data = make_topics(n_docs=300, n_words=40, n_topics=3, n_outputs=1, random_state=0)
    read = model_of(TopicRegressor(n_topics=3, random_state=0).fit(data.X, data.y))
    average, phi = read.shares / read.shares.sum(), read.encoder.components.astype(float)
    expected = []
    for word in range(40):
        # One step of EM from the average document with a little of the word.
        parts = average * phi[:, word] / (average @ phi[:, word])
        theta = average + 1e-4 * read.encoder.word_weights[word] * (parts - average)
        expected.append((read.values(theta[None]) - read.values(average[None]))[0, 0] / 1e-4)
    np.testing.assert_allclose(read.word_effects()[0], expected, rtol=1e-3, atol=1e-6)
    found = topic_table(read, n_words=8)
    for place, topic in enumerate(found.topics):
        lift = read.components[topic] / (average @ read.components)
        for words, sign in ((found.raising[place], 1), (found.lowering[place], -1)):
            assert all(sign * expected[int(word)] > 0 and lift[int(word)] > 1 for word in words)
            strength = [sign * expected[int(word)] * read.components[topic, int(word)] * lift[int(word)] for word in words]
            assert strength == sorted(strength, reverse=True)


@pytest.mark.parametrize("response", ["poisson", "ordinal"])
def test_effects_are_in_the_unit_of_the_target(response):
    data = make_topics(n_docs=300, n_words=40, n_topics=3, n_outputs=1, random_state=0)
    levels = np.digitize(data.y, np.quantile(data.y, [0.3, 0.6])).ravel() + 1.0
    model = TopicRegressor(n_topics=3, response=response, random_state=0).fit(data.X, levels)
    _, values = effects(model)
    assert values.max() > 0 > values.min()
    assert np.ptp(values) < 4


def test_effects_of_classes_are_log_odds():
    data = make_topics(n_docs=40, n_words=40, n_topics=3, n_classes=2, random_state=0)
    X = data.X.astype(float)
    model = TopicClassifier(n_topics=3, n_epochs=2, gamma=2.0, random_state=0).fit(X, np.array(["no", "yes"])[data.y])
    names, values = effects(model)
    assert names == ["yes"]

    def log_odds(row):
        p = model.predict_proba(row)
        return np.log(p[:, 1] / p[:, 0])

    np.testing.assert_allclose(values[0], left_out(model, X, log_odds)[0], atol=1e-5)


def test_effects_of_several_classes_have_a_row_each():
    data = make_topics(n_docs=300, n_words=40, n_topics=3, random_state=0)
    classes = np.arange(300) % 3
    names, values = effects(TopicClassifier(n_topics=3, n_epochs=2, random_state=0).fit(data.X, classes))
    assert names == ["0", "1", "2"]
    np.testing.assert_allclose(values.sum(axis=0), 0, atol=1e-5)


def test_topics_without_a_target_have_no_effect():
    data = make_topics(n_docs=100, n_words=40, n_topics=3, random_state=0)
    names, values = effects(TopicModel(n_topics=3, n_epochs=2, random_state=0).fit(data.X))
    assert names == []
    assert values.shape == (0, 3)


def documents_with_and_without_words():
    X = make_topics(n_docs=80, n_words=30, n_topics=4, random_state=0).X.toarray()
    X[3] = 0
    return X


def test_pyldavis_takes_what_it_is_given():
    pyldavis = pytest.importorskip("pyLDAvis")
    X = documents_with_and_without_words()
    model = TopicModel(4, n_epochs=3, random_state=0).fit(X)
    prepared = pyldavis.prepare(**to_pyldavis(model, X), n_jobs=1)
    # The sizes of the topics, in the order of the model: the words that each has.
    words = X.sum(axis=1) @ model.transform(X)
    np.testing.assert_allclose(prepared.topic_coordinates["Freq"], 100 * words / words.sum(), rtol=1e-4)
    assert prepared.topic_order == [1, 2, 3, 4]
    assert "NaN" not in prepared.to_json()


def test_what_pyldavis_is_given():
    X = documents_with_and_without_words()
    names = [f"word {number}" for number in range(30)]
    for form in (X, sp.csr_array(X), pd.DataFrame(X, columns=names)):
        model = TopicModel(4, n_epochs=2, random_state=0).fit(form)
        given = to_pyldavis(model, form)
        for rows in ("topic_term_dists", "doc_topic_dists"):
            np.testing.assert_allclose(given[rows].sum(axis=1), 1, rtol=1e-12)
        np.testing.assert_array_equal(given["doc_lengths"], X.sum(axis=1))
        np.testing.assert_array_equal(given["term_frequency"], X.sum(axis=0))
        assert given["vocab"] == (names if form is not X and not sp.issparse(form) else [str(number) for number in range(30)])
    assert to_pyldavis(model, pd.DataFrame(X, columns=names), ["a"] * 30)["vocab"] == ["a"] * 30
    with pytest.raises(ValueError, match="names has 2 entries, but X has 30 words"):
        to_pyldavis(model, pd.DataFrame(X, columns=names), ["a", "b"])
    with pytest.raises(ValueError, match="X holds no words"):
        to_pyldavis(model, pd.DataFrame(0 * X, columns=names))


def test_pyldavis_is_given_corpora_and_pipelines(tmp_path, monkeypatch):
    texts = ["clean quiet room", "dirty noisy room", "", "quiet street"] * 5
    pipeline = make_pipeline(TextVectorizer(), TopicModel(2, n_epochs=2, random_state=0)).fit(texts)
    given = to_pyldavis(pipeline, texts)
    assert given["vocab"] == pipeline[0].vocabulary_.words
    assert given["doc_lengths"].tolist() == [3, 3, 0, 2] * 5

    pd.DataFrame({"text": texts}).to_csv(tmp_path / "texts.csv", index=False)
    corpus = prepare(tmp_path / "texts.csv", tmp_path / "corpus", text="text")
    monkeypatch.setattr("mirrorlda.topics._READ_DOCS", 3)
    stored = to_pyldavis(TopicModel(2, n_epochs=2, random_state=0).fit(corpus), corpus)
    assert stored["vocab"] == given["vocab"]
    np.testing.assert_array_equal(stored["doc_lengths"], given["doc_lengths"])
    np.testing.assert_array_equal(stored["term_frequency"], given["term_frequency"])


def test_typical_documents_have_much_of_a_topic_and_words_enough():
    X = documents_with_and_without_words()
    X[5], X[6] = X[4], 10 * X[4]
    model = TopicModel(4, n_epochs=3, random_state=0).fit(X)
    theta, lengths = model.transform(X).astype(float), X.sum(axis=1)
    found = typical_documents(model, X, n_docs=5)
    assert found.shape == (4, 5)
    for topic, numbers in enumerate(found):
        shown = theta[:, topic] * lengths / (lengths + 20)
        np.testing.assert_allclose(shown[numbers], np.sort(shown)[::-1][:5])
        assert 3 not in numbers
    assert typical_documents(model, X[:2]).shape == (4, 2)
    with pytest.raises(ValueError, match="n_docs must be a whole number of at least 1, got 0"):
        typical_documents(model, X, n_docs=0)


def test_equally_relevant_words_come_in_their_order():
    assert relevant_words(np.full((2, 6), 1 / 6), [1, 1], n_words=3) == [["0", "1", "2"]] * 2


# Phrases


def test_of_a_phrase_and_its_words_the_most_relevant_is_shown():
    names = ["front desk", "desk", "the front", "rude", "the", "front"]
    topics = np.array([[0.3, 0.2, 0.1, 0.1, 0.2, 0.1], [0.01, 0.3, 0.02, 0.2, 0.27, 0.2]])
    assert relevant_words(topics, [0.5, 0.5], names, n_words=3)[0] == ["front desk", "the", "rude"]
    assert relevant_words(topics, [0.5, 0.5], names, n_words=2)[1] == ["rude", "front"]


def test_names_with_a_space_are_phrases_only_where_their_words_are_names():
    topics, names = np.array([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]]), ["word 1", "word 2", "word 3"]
    assert [sorted(words) for words in relevant_words(topics, [1, 1], names)] == [names] * 2


def test_words_without_phrases_are_all_shown():
    topics = np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])
    assert [sorted(words) for words in relevant_words(topics, [1, 1], ["a", "b", "c"])] == [["a", "b", "c"]] * 2
