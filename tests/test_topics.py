"""Topics as people read them."""

from types import SimpleNamespace

import numpy as np
import pytest

from mirrorlda import TopicClassifier, TopicModel, TopicRegressor
from mirrorlda.datasets import make_topics
from mirrorlda.topics import describe, relevant_words

NAMES = ["the", "good", "bad", "plot"]
SHARES = np.array([0.4, 0.4, 0.2])
COMPONENTS = np.array([[0.7, 0.2, 0.02, 0.08], [0.7, 0.02, 0.2, 0.08], [0.6, 0.1, 0.1, 0.2]])


def model_with(**fitted):
    return SimpleNamespace(components_=COMPONENTS, **({"topic_shares_": SHARES} | fitted))


def rows(table):
    return [line.split() for line in table.splitlines()]


@pytest.mark.parametrize("relevance", [0, 0.25, 0.5, 1])
def test_relevance_weighs_lift_by_probability(relevance):
    rng = np.random.default_rng(0)
    components, shares = rng.dirichlet(np.ones(30), 4), rng.dirichlet(np.ones(4))
    expected = components**relevance * np.log(components / (shares @ components))
    words = relevant_words(components, 7 * shares, n_words=30, relevance=relevance)
    assert words == [[str(word) for word in np.argsort(-row)] for row in expected]


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
        ["topic", "share", "weight", "words"],
        ["2", "20.0%", "+4.0", "plot"],
        ["0", "40.0%", "+1.5", "good"],
        ["1", "40.0%", "-12.2", "bad"],
    ]


def test_several_outputs_have_a_column_each():
    table = describe(model_with(coef_=np.array([[1.0, 2, 3], [0.1, 0.2, 0.3]])), n_words=1)
    assert table.splitlines()[0].split("  ")[2:4] == ["output 0", "output 1"]
    assert rows(table)[1][:4] == ["2", "20.0%", "+3.00", "+0.300"]


def test_two_classes_have_one_weight_for_the_second():
    coef = np.array([[1.0, 2.0, 0.0], [2.0, 0.0, 0.5]])
    table = rows(describe(model_with(coef_=coef, classes_=np.array(["no", "yes"])), NAMES, n_words=1, relevance=0))
    assert table == [
        ["topic", "share", "for", "yes", "words"],
        ["0", "40.0%", "+1.00", "good"],
        ["2", "20.0%", "+0.50", "plot"],
        ["1", "40.0%", "-2.00", "bad"],
    ]


def test_with_more_classes_each_topic_names_the_one_it_speaks_for():
    coef = np.array([[0.0, 3.0, 9.0], [0.0, 0.0, 9.0], [3.0, 0.0, 12.0]])
    table = rows(describe(model_with(coef_=coef, classes_=np.array(["a", "b", "c"])), NAMES, n_words=1, relevance=0))
    assert table == [
        ["topic", "share", "for", "weight", "words"],
        ["1", "40.0%", "a", "+2.00", "bad"],
        ["0", "40.0%", "c", "+2.00", "good"],
        ["2", "20.0%", "c", "+2.00", "plot"],
    ]


def test_topics_without_weights_are_ordered_by_share():
    table = rows(describe(model_with(topic_shares_=np.array([0.1, 0.6, 0.3])), NAMES, n_words=1, relevance=0))
    assert table == [
        ["topic", "share", "words"],
        ["1", "60.0%", "bad"],
        ["2", "30.0%", "plot"],
        ["0", "10.0%", "good"],
    ]


def test_columns_are_aligned():
    table = describe(model_with(coef_=np.array([[100.0, -1, 1]])), NAMES, n_words=1, relevance=0)
    lines = table.splitlines()
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


def test_a_model_that_is_not_fitted_is_refused():
    with pytest.raises(ValueError, match=r"must be a fitted TopicModel.*got TopicRegressor"):
        describe(TopicRegressor())
