"""Themes before the first step, and what training keeps of them."""

import numpy as np
import pytest
import scipy.sparse as sp
from mirrorlda.datasets import make_topics
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from mirrorlda import TopicClassifier, TopicRegressor
from mirrorlda.data.documents import as_documents
from mirrorlda.training import mirror_descent
from mirrorlda.training.first_themes import distinct, first_themes
from mirrorlda.training.mirror_descent import Guide


@pytest.fixture(scope="module")
def planted():
    return make_topics(n_docs=1500, n_words=120, n_topics=4, n_outputs=1, random_state=0)


def found_in(X, n_topics=4, weights=None, guide=None, n_threads=1, dtype=np.float64):
    documents = as_documents(X, dtype)
    return first_themes(documents, np.ones(documents.n_docs) if weights is None else weights, n_topics, guide, n_threads)


def closeness(themes, components):
    """Cosines of matched topics."""
    a, b = themes.T / np.linalg.norm(themes.T, axis=1)[:, None], components / np.linalg.norm(components, axis=1)[:, None]
    rows, columns = linear_sum_assignment(-(a @ b.T))
    return (a @ b.T)[rows, columns]


def test_planted_topics_are_found(planted):
    themes = found_in(planted.X)
    assert_allclose(themes.sum(axis=0), 1, rtol=1e-6)
    assert themes.min() > 0
    assert closeness(themes, planted.components).min() > 0.9


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_they_are_the_same_for_any_number_of_threads(planted, dtype):
    assert_array_equal(found_in(planted.X, 7, dtype=dtype), found_in(planted.X, 7, n_threads=3, dtype=dtype))


def test_weights_are_repeats():
    data = make_topics(n_docs=150, n_words=50, n_topics=3, random_state=1)
    weights = np.random.default_rng(0).integers(0, 4, 150)
    repeated = sp.csr_array(data.X)[np.repeat(np.arange(150), weights)]
    assert_allclose(found_in(data.X, 3, weights.astype(float)), found_in(repeated, 3), rtol=1e-6)


@pytest.mark.parametrize(
    "X",
    [
        np.ones((1, 1)),
        np.ones((5, 1)),
        np.ones((1, 5)),
        np.ones((30, 6)),
        np.eye(4),
        np.vstack([np.zeros((20, 3)), [[1, 0, 0]]]),
        1e6 * np.eye(3),
    ],
    ids=str,
)
@pytest.mark.parametrize("n_topics", [1, 3, 20])
def test_few_documents_and_words_have_themes_too(X, n_topics):
    themes = found_in(sp.csr_array(X), n_topics, dtype=np.float32)
    assert themes.shape == (X.shape[1], n_topics)
    assert np.isfinite(themes).all()
    assert themes.min() >= 0
    assert_allclose(themes.sum(axis=0), 1, rtol=1e-5)


def test_documents_without_words_have_themes_that_are_alike():
    assert_allclose(found_in(sp.csr_array((4, 3))), 1 / 3)
    model = TopicRegressor(2, random_state=0).fit(sp.csr_array((4, 3)), [1.0, 2, 3, 4])
    assert_allclose(model.components_.sum(axis=1), 1, rtol=1e-5)


def test_a_stream_that_begins_without_words_has_themes_in_the_end(planted):
    model = TopicRegressor(4, random_state=0).partial_fit(0 * planted.X[:5], planted.y[:5])
    for part in np.array_split(np.arange(1500), 15):
        model.partial_fit(planted.X[part], planted.y[part])
    assert np.abs(model.components_ - model.encoder_components_).max() > 1e-3
    assert np.ptp(model.components_, axis=0).max() > 1e-3


def test_threads_of_blas_change_no_bits(planted):
    fits = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads, "blas"):
            fits.append(TopicRegressor(60, n_epochs=2, random_state=0).fit(planted.X, planted.y))
    assert_array_equal(fits[0].components_, fits[1].components_)
    assert_array_equal(fits[0].encoder_components_, fits[1].encoder_components_)


def test_the_scale_of_weights_does_not_matter_to_themes(planted):
    fits = [
        TopicRegressor(4, random_state=0, word_dropout=0).fit(planted.X, planted.y, sample_weight=np.full(1500, scale))
        for scale in (1.0, 1e-4)
    ]
    assert_allclose(fits[0].components_, fits[1].components_, rtol=0.2, atol=6e-3)


def test_going_on_with_themes_from_topics_alone_keeps_what_topics_are(planted):
    classes = np.argmax(planted.theta, axis=1)
    model = TopicClassifier(4, readability=0, random_state=0).fit(planted.X, classes)
    topics = model.components_.copy()
    model.set_params(readability=1.0, warm_start=True).fit(planted.X, classes)
    alike = np.corrcoef(model.components_, topics)[:4, 4:]
    assert alike.argmax(axis=1).tolist() == [0, 1, 2, 3]


def test_seeds_of_a_class_go_to_its_topic_when_learning_goes_on(planted):
    classes = np.array(list("abcd"))[np.argmax(planted.theta, axis=1)]
    model = TopicClassifier(4, random_state=0).fit(planted.X, classes)
    for name in "abcd":
        again = clone(model).set_params(warm_start=True, seed_words={name: [0, 1]})
        again.__dict__.update({key: value for key, value in vars(model).items() if key.endswith("_")})
        again.fit(planted.X, classes)
        topic = int(np.argmax(model.coef_[list("abcd").index(name)]))
        gained = again.components_[:, [0, 1]].sum(axis=1) - model.components_[:, [0, 1]].sum(axis=1)
        assert int(gained.argmax()) == topic


def test_more_classes_with_seeds_than_topics_share_them(planted):
    classes = np.arange(1500) % 6
    model = TopicClassifier(3, n_epochs=1, seed_words={c: [c] for c in range(6)}, random_state=0).fit(planted.X, classes)
    assert np.isfinite(model.components_).all()


def test_an_alpha_for_each_topic_says_how_many_there_are(planted):
    assert len(TopicRegressor(alpha=np.full(20, 1.1), n_epochs=1, random_state=0).fit(planted.X, planted.y).components_) == 20


def test_a_guided_theme_is_its_seeds_and_what_goes_with_them(planted):
    top = np.argsort(-planted.components[2])
    rows = np.sort(top[:2]).astype(np.int32)
    towards = np.zeros((2, 5))
    towards[:, 3] = 0.5
    themes = found_in(planted.X, 5, guide=Guide(rows, towards))
    assert set(rows.tolist()) <= set(np.argsort(-themes[:, 3])[:5].tolist())
    assert np.corrcoef(themes[:, 3], planted.components[2])[0, 1] > 0.8


@pytest.mark.parametrize("n_topics", [2, 4, 8])
def test_duplicates_become_one(n_topics):
    data = make_topics(n_docs=1500, n_words=200, n_topics=n_topics, random_state=2)
    themes = found_in(data.X, 20)
    left = distinct(themes, 1)
    assert n_topics <= left.shape[1] <= n_topics + 4
    assert_allclose(left.sum(axis=0), 1, rtol=1e-6)
    assert distinct(themes, 15).shape[1] == 15
    assert_array_equal(distinct(themes[:, :2], 1), themes[:, :2])


def test_as_many_topics_as_the_documents_support(planted, capsys):
    model = TopicRegressor(random_state=0, verbose=1).fit(planted.X, planted.y)
    assert 4 <= len(model.components_) < 10
    assert f"{len(model.components_)} topics: the documents do not tell 20 apart" in capsys.readouterr().err
    assert model.transform(planted.X[:3]).shape == (3, len(model.components_))
    assert len(TopicRegressor(20, random_state=0).fit(planted.X, planted.y).components_) == 20
    # Seeds of topic 7 are of the seventh.
    assert len(TopicRegressor(seed_words={7: [1, 2]}, random_state=0).fit(planted.X, planted.y).components_) == 20
    classes = np.arange(planted.X.shape[0]) % 12
    assert len(TopicClassifier(random_state=0).fit(planted.X, classes).components_) >= 12


def test_steps_add_to_the_rows_of_their_words_and_to_no_other(planted):
    """And the sums that are kept are those of the columns."""
    X = planted.X.copy().tolil()
    X[:, 100:] = 0
    few = TopicRegressor(4, random_state=0, n_epochs=3).partial_fit(X.tocsr(), planted.y)
    state = few.stream_.state
    assert_allclose(state.theme_totals, state.theme_counts.sum(axis=0, dtype=float), rtol=1e-4)
    before = state.theme_counts.copy()
    few.partial_fit(X.tocsr(), planted.y)
    assert_array_equal(few.stream_.state.theme_counts[100:], before[100:])
    occurs = np.asarray(planted.X.sum(axis=0)).ravel()[:100] > 0
    assert (few.stream_.state.theme_counts[:100][occurs] > before[:100][occurs]).any(axis=1).all()


def test_readability_changes_how_much_is_given_up(planted):
    models = [TopicRegressor(4, readability=r, random_state=0).fit(planted.X, planted.y) for r in (0.0, 1.0, 30.0)]
    told = []
    for model in models[1:]:
        theta = model.transform(planted.X).astype(float)
        told.append((planted.X.toarray() * np.log(theta @ model.components_.astype(float))).sum() / planted.X.sum())
    assert told[1] > told[0]
    assert np.abs(models[2].encoder_components_ - models[1].encoder_components_).max() > 1e-3


def test_a_state_with_themes_survives_a_file(planted):
    state = TopicRegressor(4, random_state=0).partial_fit(planted.X, planted.y).stream_.state
    arrays, meta = mirror_descent.as_arrays(state)
    again = mirror_descent.from_arrays(arrays, meta)
    assert_array_equal(again.theme_counts, state.theme_counts)
    for name, wrong in (
        ("theme_counts", -state.theme_counts),
        ("theme_totals", 0 * state.theme_totals),
        ("theme_totals", state.theme_totals[:2]),
        ("theme_counts", np.full_like(state.theme_counts, np.nan)),
    ):
        with pytest.raises(ValueError, match=f"{name} of the state"):
            mirror_descent.from_arrays({**arrays, name: wrong}, meta)
    with pytest.raises(ValueError, match="the state has the arrays"):
        mirror_descent.from_arrays({name: array for name, array in arrays.items() if name != "theme_totals"}, meta)
