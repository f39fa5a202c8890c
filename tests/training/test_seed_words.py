"""Seed words: guided topics keep them, whatever names the topics and the words; what is refused."""

import numpy as np
import pandas as pd
import pytest
from mirrorlda.datasets import make_topics
from numpy.testing import assert_allclose, assert_array_equal

from mirrorlda import TopicClassifier, TopicModel, TopicRegressor

N_DOCS, N_WORDS = 400, 60
ESTIMATORS = [TopicModel, TopicClassifier, TopicRegressor]


@pytest.fixture(scope="module")
def planted():
    return make_topics(N_DOCS, N_WORDS, 4, n_classes=3, gamma=10, random_state=0)


@pytest.fixture(params=ESTIMATORS)
def estimator(request):
    return request.param


@pytest.fixture
def y(estimator, planted):
    return {TopicModel: None, TopicClassifier: planted.y, TopicRegressor: planted.y.astype(float)}[estimator]


def seeds_of(planted, topic):
    """Two of a planted topic's most probable words."""
    return np.argsort(-planted.components[topic])[:2].tolist()


def top_words(model, topic, n_top=5):
    return set(np.argsort(-model.components_[topic])[:n_top].tolist())


def test_guided_topics_hold_their_seed_words(planted):
    """And with them the planted topics, in the order that was asked for."""
    order = [2, 0, 3, 1]
    seed_words = {k: seeds_of(planted, topic) for k, topic in enumerate(order)}
    model = TopicModel(4, count_scale="linear", seed_words=seed_words, random_state=0).fit(planted.X)
    for k, topic in enumerate(order):
        assert set(seed_words[k]) <= top_words(model, k)
        assert np.corrcoef(model.components_[k], planted.components[topic])[0, 1] > 0.95
    plain = TopicModel(4, count_scale="linear", random_state=0).fit(planted.X)
    assert not all(set(seed_words[k]) <= top_words(plain, k) for k in range(4)), "the order would have come by chance"


def test_a_list_guides_the_first_topics(estimator, planted, y):
    words = [seeds_of(planted, 2), [], seeds_of(planted, 1)]
    model = estimator(6, n_epochs=5, seed_words=words, random_state=0).fit(planted.X, y)
    assert set(words[0]) <= top_words(model, 0)
    assert set(words[2]) <= top_words(model, 2)
    if estimator is not TopicClassifier:
        numbered = estimator(6, n_epochs=5, seed_words={0: words[0], 2: words[2]}, random_state=0).fit(planted.X, y)
        assert_array_equal(model.components_, numbered.components_)


def test_classes_guide_the_topics_that_speak_for_them(planted):
    names = np.array(["cat", "dog", "owl"])
    # Pairs of words that go together, in documents of any class: which class they go to is the guide's doing.
    seed_words = {"dog": [0, 1], "owl": [2, 3]}
    X = planted.X.copy().tolil()
    X[:, :4] = np.repeat(3 * np.random.default_rng(0).poisson(0.3, (N_DOCS, 2)), 2, axis=1)
    model = TopicClassifier(6, seed_words=seed_words, random_state=0).fit(X.tocsr(), names[planted.y])
    for name, words in seed_words.items():
        label = names.tolist().index(name)
        guided = int(model.components_[:, words].sum(axis=1).argmax())
        assert model.components_[guided, words].min() > 2 * np.median(model.components_[:, words])
        assert np.argmax(model.coef_[:, guided]) == label


def test_a_class_that_has_no_topic_of_its_own_is_guided_too(planted):
    """With fewer topics than classes, by the topic that speaks for it most."""
    model = TopicClassifier(2, n_epochs=3, seed_words={2: [0, 1]}, random_state=0).fit(planted.X, planted.y)
    lift = model.components_[:, [0, 1]].mean(axis=1)
    guided = int(lift[1] > lift[0])
    assert lift[guided] > 2 * lift[1 - guided]
    assert model.coef_[2, guided] > model.coef_[2, 1 - guided]


def test_seed_words_stay_where_the_documents_pull_them_away(planted):
    """One word of each of two topics; measured, without the guide's steps: 0.00 of the first."""
    words = [seeds_of(planted, 0)[0], seeds_of(planted, 1)[0]]
    model = TopicModel(4, n_epochs=30, seed_words=[words], random_state=0).fit(planted.X)
    assert model.components_[0, words].min() > 0.01


def test_names_of_columns_are_their_numbers(estimator, planted, y):
    frame = pd.DataFrame(planted.X.toarray(), columns=[f"word {v}" for v in range(N_WORDS)])
    key = 1
    by_name = estimator(4, n_epochs=2, seed_words={key: ["word 7", "word 9"]}, random_state=0).fit(frame, y)
    by_number = estimator(4, n_epochs=2, seed_words={key: [9, np.int64(7)]}, random_state=0).fit(planted.X, y)
    assert_array_equal(by_name.components_, by_number.components_)


@pytest.mark.parametrize("nothing", [{}, [], {0: []}, [[], []]], ids=str)
def test_no_seed_words_change_nothing(estimator, planted, y, nothing):
    model = estimator(4, n_epochs=2, seed_words=nothing, random_state=0).fit(planted.X, y)
    assert_array_equal(model.components_, estimator(4, n_epochs=2, random_state=0).fit(planted.X, y).components_)


def test_topics_without_seed_words_are_distributions_too(estimator, planted, y):
    model = estimator(5, n_epochs=3, seed_words=[[0, 0, 1]], random_state=0).fit(planted.X, y)
    assert_allclose(model.components_.sum(axis=1), 1, rtol=1e-5)
    assert model.components_.min() > 0
    assert np.isfinite(model.transform(planted.X)).all()


def test_a_stream_is_guided(estimator, planted, y):
    # Of two topics: neither has both by itself.
    seeds = [seeds_of(planted, 3)[0], seeds_of(planted, 1)[0]]
    model, plain = (estimator(4, seed_words=words, random_state=0) for words in ([seeds], None))
    for part in np.array_split(np.arange(N_DOCS), 4):
        for learner in (model, plain):
            learner.partial_fit(planted.X[part], None if y is None else y[part])
    assert model.components_[0, seeds].min() > 1.5 * plain.components_[:, seeds].min(axis=1).max()


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_the_number_of_threads_does_not_matter(estimator, planted, y, n_jobs):
    one, other = (estimator(4, n_epochs=2, seed_words=[[3, 5]], random_state=0, n_jobs=n).fit(planted.X, y) for n in (1, n_jobs))
    assert_array_equal(one.components_, other.components_)


@pytest.mark.parametrize(
    ("seed_words", "message"),
    [
        ([[0, 60]], "seed_words has the word 60, expected a column from 0 to 59"),
        ([[-1]], "seed_words has the word -1, expected a column"),
        ([[1.5]], "seed_words has the word 1.5, expected a column"),
        ([["good"]], "seed_words has the name 'good', but X has no names"),
        ([[0], [1], [2], [3], [4]], "seed_words names the topic 4, expected a number from 0 to 3"),
        ("good", "seed_words must be a dict or a list of lists of words, got 'good'"),
        (3, "seed_words must be a dict or a list of lists of words, got 3"),
    ],
    ids=str,
)
def test_seed_words_that_cannot_be(estimator, planted, y, seed_words, message):
    with pytest.raises(ValueError, match=message):
        estimator(4, seed_words=seed_words).fit(planted.X, y)


def test_names_that_are_no_columns_are_refused(estimator, planted, y):
    frame = pd.DataFrame(planted.X.toarray(), columns=[f"word {v}" for v in range(N_WORDS)])
    with pytest.raises(ValueError, match="seed_words has the name 'good', which is not a column of X"):
        estimator(4, seed_words=[["good"]]).fit(frame, y)


@pytest.mark.parametrize("key", [4, -1, "first", None], ids=str)
def test_topics_that_are_not_there_are_refused(planted, key):
    with pytest.raises(ValueError, match=f"seed_words names the topic {key!r}, expected a number from 0 to 3"):
        TopicModel(4, seed_words={key: [0]}).fit(planted.X)
    with pytest.raises(ValueError, match=rf"seed_words names the class {key!r}, which is not one of \[0, 1, 2\]"):
        TopicClassifier(4, seed_words={key: [0]}).fit(planted.X, planted.y)
