"""Measures: by hand, by their properties, and against gensim and scikit-learn."""

import numpy as np
import pytest
import scipy.sparse as sp
from gensim.corpora import Dictionary
from gensim.models import CoherenceModel
from hypothesis import given
from hypothesis import strategies as st
from mirrorlda.datasets import make_topics
from mirrorlda.metrics import auc, cv_coherence, npmi_coherence, predictive_r2, sparsity, topic_diversity
from mirrorlda.text import TextDefinition, Vocabulary
from mirrorlda.topics import relevant_words
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import r2_score, roc_auc_score

NAMES = ["cat", "dog", "sun", "the", "none", "all"]
# cat and dog are always together, neither ever with sun; the is independent of these; none is nowhere, all is everywhere.
X = np.array([[1, 1, 0, 0, 0, 1], [2, 1, 0, 1, 0, 9], [0, 0, 3, 0, 0, 1], [0, 0, 1, 1, 0, 2]])
COMPONENTS = np.array([[0.3, 0.2, 0.1, 0.1, 0.1, 0.2], [0.1, 0.1, 0.4, 0.2, 0.1, 0.1]])


def random_problem(seed, n_docs=80, n_words=40, n_topics=6, length=8):
    """Counts with words from frequent to rare, some documents without any; ranked words of topics, all of which occur."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(2.0 / (1 + np.arange(n_words)), (n_docs, n_words))
    X[rng.integers(n_docs, size=5)] = 0
    present = np.flatnonzero(X.any(axis=0) & (X == 0).any(axis=0))
    return X, np.array([rng.choice(present, length, replace=False) for _ in range(n_topics)])


def pair(*words, epsilon=1e-12):
    return npmi_coherence([words], X, NAMES, n_words=2, epsilon=epsilon)[0]


# Coherence


@pytest.mark.parametrize("epsilon", [0, 1e-12])
def test_words_always_together(epsilon):
    assert pair("cat", "dog", epsilon=epsilon) == pytest.approx(1, abs=1e-11)


def test_words_never_together():
    assert pair("cat", "sun", epsilon=0) == -1
    assert pair("cat", "sun") == pytest.approx(np.log(1e-12 / 0.25) / -np.log(1e-12))


@pytest.mark.parametrize("words", [("cat", "the"), ("all", "the")])
@pytest.mark.parametrize("epsilon", [0, 1e-12])
def test_independent_words(words, epsilon):
    assert pair(*words, epsilon=epsilon) == pytest.approx(0, abs=1e-11)


@pytest.mark.parametrize("epsilon", [0, 1e-12])
def test_words_for_which_npmi_is_not_defined(epsilon):
    assert pair("cat", "none", epsilon=epsilon) == 0
    assert npmi_coherence([[0, 1]], np.ones((3, 2)), n_words=2, epsilon=epsilon) == 1


def test_a_pair_by_hand():
    """In 2 and 3 documents of 5, in 1 together: ln((1/5) / (6/25)) / ln 5."""
    counts = [[1, 0], [1, 2], [0, 1], [0, 4], [0, 0]]
    assert npmi_coherence([[0, 1]], counts, n_words=2) == pytest.approx(np.log(5 / 6) / np.log(5))


def test_a_topic_is_the_mean_of_its_pairs():
    words = ["cat", "dog", "sun", "the"]
    pairs = [pair(a, b) for i, a in enumerate(words) for b in words[:i]]
    assert npmi_coherence([words], X, NAMES, n_words=4) == pytest.approx(np.mean(pairs))


def test_a_word_occurs_where_its_count_is_above_zero():
    """Not where a zero is stored: in 1 and 2 documents of 4, in 1 together, ln((1/4) / (2/16)) / ln 4."""
    stored = sp.csr_array((np.array([0.0, 2, 0.5, 3, 0]), np.array([0, 1, 0, 1, 0]), np.array([0, 2, 4, 5, 5])), shape=(4, 2))
    assert npmi_coherence([[0, 1]], stored, n_words=2) == pytest.approx(0.5)


@pytest.mark.parametrize("kind", [np.asarray, np.ndarray.tolist, sp.csr_array, sp.csr_matrix, sp.csc_array])
def test_every_kind_of_matrix_is_read(kind):
    counts, topics = random_problem(0)
    assert_array_equal(npmi_coherence(topics, kind(counts), n_words=5), npmi_coherence(topics, counts, n_words=5))


def test_topics_are_given_as_weights_numbers_or_names():
    by_number = [[0, 1, 5], [2, 3, 0]]
    expected = npmi_coherence(by_number, X, n_words=3)
    names = np.array(NAMES, object)
    for topics in (
        COMPONENTS,
        COMPONENTS.astype(np.float32),
        np.array(by_number, np.uint16),
        [NAMES[:2] + NAMES[5:], ["sun", "the", "cat", "dog"]],
        names[by_number],
        tuple(names[row] for row in by_number),
    ):
        assert_array_equal(npmi_coherence(topics, X, NAMES, n_words=3), expected)
    assert_array_equal(npmi_coherence(np.array(by_number).astype(str), X, n_words=3), expected)


def test_one_row_of_weights_may_be_integers():
    coherence = npmi_coherence([[0.5, 0.5, 0.0], [0, 1, 2]], X[:, :3], n_words=2)
    assert_array_equal(coherence, [pair("cat", "dog"), pair("sun", "dog")])


def test_words_by_relevance():
    """Those that relevant_words returns, with names and without."""
    data = make_topics(n_docs=200, n_words=50, n_topics=3, random_state=0)
    shares = data.theta.mean(axis=0)
    names = [f"word {number}" for number in range(50)]
    by_name = npmi_coherence(relevant_words(data.components, shares, names), data.X, names)
    assert_array_equal(npmi_coherence(relevant_words(data.components, shares), data.X), by_name)


def test_planted_topics_are_more_coherent_than_mixed_ones():
    data = make_topics(n_docs=500, n_words=200, n_topics=5, random_state=0)
    rng = np.random.default_rng(0)
    mixed = rng.permuted(data.components, axis=1)
    assert npmi_coherence(data.components, data.X).min() > npmi_coherence(mixed, data.X).max()


@given(st.integers(0, 2**32 - 1))
def test_the_order_of_documents_topics_and_top_words_does_not_matter(seed):
    counts, topics = random_problem(seed)
    rng = np.random.default_rng(seed)
    expected = npmi_coherence(topics, counts, n_words=8)
    assert ((expected >= -1) & (expected <= 1 + 1e-9)).all()
    order = rng.permutation(len(topics))
    assert_array_equal(npmi_coherence(topics[order], rng.permutation(counts), n_words=8), expected[order])
    assert_allclose(npmi_coherence(rng.permuted(topics, axis=1), counts, n_words=8), expected, rtol=1e-12, atol=1e-12)
    columns = rng.permutation(counts.shape[1])
    assert_array_equal(npmi_coherence(np.argsort(columns)[topics], counts[:, columns], n_words=8), expected)


@pytest.mark.parametrize("seed", range(5))
def test_coherence_agrees_with_gensim(seed):
    """Words that are rare, frequent and never together; documents without words."""
    counts, topics = random_problem(seed)
    texts = [[str(word) for word, count in enumerate(row) for _ in range(count)] for row in counts]
    model = CoherenceModel(
        topics=topics.astype(str).tolist(),
        texts=texts,
        dictionary=Dictionary(texts),
        coherence="c_npmi",
        window_size=max(map(len, texts)),
        processes=1,
    )
    assert any(not (counts[:, a] & counts[:, b]).any() for a, b in topics[:, :2])
    assert_allclose(npmi_coherence(topics, counts, n_words=8), model.get_coherence_per_topic(), rtol=1e-12, atol=1e-12)


# Coherence in windows


def random_texts(seed, n_docs=300, n_words=300, n_topics=6, length=10):
    """Tokens, frequent and rare, many of them repeated; from none to more than a window of 110; topics of the frequent ones."""
    rng = np.random.default_rng(seed)
    names = np.array([f"w{number}" for number in range(n_words)])
    texts = []
    for n_tokens in rng.choice([0, 1, 7, 109, 110, 111, 150, 400], n_docs):
        shares = rng.gamma(0.3, size=n_words) / (1 + np.arange(n_words))
        texts.append(rng.choice(names, n_tokens, p=shares / shares.sum()).tolist())
    return texts, [rng.choice(names[:100], length, replace=False).tolist() for _ in range(n_topics)]


def gensim_cv(topics, texts, window_size=110):
    model = CoherenceModel(
        topics=topics,
        texts=texts,
        dictionary=Dictionary(texts),
        coherence="c_v",
        window_size=window_size,
        topn=len(topics[0]),
        processes=1,
    )
    return model.get_coherence_per_topic()


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "window_size"), [(0, 110), (1, 110), (2, 10), (3, 2), (4, 1), (5, 1000)])
def test_cv_agrees_with_gensim(seed, window_size):
    """Words repeated, rare, never together, and in no text; texts that are empty, shorter than a window, and longer."""
    texts, topics = random_texts(seed)
    topics[0][4] = "nowhere"
    expected = gensim_cv(topics, texts, window_size)
    assert np.isfinite(expected).all()
    assert_allclose(cv_coherence(topics, texts, window_size=window_size), expected, rtol=1e-10, atol=1e-10)


def test_cv_of_a_word_in_every_window_agrees_with_gensim():
    texts = [["all", "each", "cat", "dog"], ["each", "sun", "all"], ["all", "cat", "each"]]
    topics = [["all", "each", "cat"], ["dog", "sun", "all"]]
    assert_allclose(cv_coherence(topics, texts, n_words=3), gensim_cv(topics, texts), rtol=1e-10)


def test_cv_of_texts_that_repeat_no_word_is_that_of_windows_counted_one_by_one():
    rng = np.random.default_rng(0)
    names = [f"w{number}" for number in range(40)]
    texts = [rng.permutation(names)[: rng.integers(41)].tolist() for _ in range(100)]
    topics = [names[:5], names[20:25]]
    windows = [set(text[begin : begin + 6]) for text in texts for begin in range(max(len(text) - 6, 0) + 1)]
    for topic, value in zip(topics, cv_coherence(topics, texts, n_words=5, window_size=6), strict=True):
        inside = np.array([[word in window for word in topic] for window in windows], float)
        joint = inside.T @ inside / len(windows)
        npmi = np.log((joint + 1e-12) / np.outer(joint.diagonal(), joint.diagonal())) / -np.log(joint + 1e-12)
        total = npmi.sum(axis=0)
        cosines = [row @ total / np.sqrt(row @ row * (total @ total)) for row in npmi]
        assert value == pytest.approx(np.mean(cosines), abs=1e-12)


def test_cv_of_batches_is_that_of_all(monkeypatch):
    texts, topics = random_texts(0)
    expected = cv_coherence(topics, texts)
    monkeypatch.setattr("mirrorlda.metrics.windows._BATCH", 7)
    assert_array_equal(cv_coherence(topics, iter(texts)), expected)


def test_cv_reads_texts_and_tokens_weights_numbers_and_names():
    tokens, topics = random_texts(0)
    expected = cv_coherence(topics, tokens)
    texts = [", ".join(text).upper() for text in tokens]
    names = Vocabulary([f"w{number}" for number in range(300)]).words
    numbers = [[names.index(word) for word in topic] for topic in topics]
    weights = np.zeros((len(topics), 300))
    for row, words in zip(weights, numbers, strict=True):
        row[words] = np.arange(10, 0, -1)
    for given_topics, given_texts in [(topics, texts), (numbers, texts), (weights, tokens), (np.array(topics), np.array(texts))]:
        assert_array_equal(cv_coherence(given_topics, given_texts, names), expected)


def test_cv_reads_texts_as_defined():
    texts = ["The cat and the dog", "cat dog sun", "Sun of the dog"]
    definition = TextDefinition(lowercase=False, stop_words=("the", "of"))
    expected = cv_coherence([["cat", "Sun"]], [definition.words(text) for text in texts], n_words=2, window_size=2)
    assert_array_equal(cv_coherence([["cat", "Sun"]], texts, n_words=2, window_size=2, definition=definition), expected)
    assert cv_coherence([["cat", "Sun"]], texts, n_words=2, window_size=2) == [0.0]


def test_cv_of_fewer_than_two_words_that_occur_is_0():
    coherence = cv_coherence([["cat", "none"], ["no", "none"], ["cat", "dog"]], [["cat", "dog"], []], n_words=2)
    assert_allclose(coherence, [0, 0, 1], atol=1e-12)


def test_planted_topics_have_more_cv_than_mixed_ones():
    data = make_topics(n_docs=300, n_words=200, n_topics=5, random_state=0)
    names = [f"w{number}" for number in range(200)]
    rng = np.random.default_rng(0)
    counts = sp.csr_array(data.X).toarray().astype(int)
    texts = [rng.permutation(np.repeat(names, row)).tolist() for row in counts]
    mixed = rng.permuted(data.components, axis=1)
    assert cv_coherence(data.components, texts, names).min() > cv_coherence(mixed, texts, names).max()


# Diversity


def test_diversity_by_hand():
    assert topic_diversity([["cat", "dog", "sun"], ["cat", "sun", "the"]], n_words=2) == 0.75
    assert topic_diversity([["cat", "dog", "sun"], ["cat", "sun", "the"]], n_words=3) == pytest.approx(4 / 6)
    assert topic_diversity([[1, 2], [3, 4], [5, 1]], n_words=1) == 1
    assert topic_diversity(COMPONENTS, n_words=2) == 1
    assert topic_diversity(COMPONENTS, n_words=3) == pytest.approx(5 / 6)


@given(st.integers(1, 8), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_diversity_is_between_that_of_equal_and_that_of_distinct_topics(n_topics, n_words, seed):
    rng = np.random.default_rng(seed)
    topics = np.array([rng.choice(20, n_words, replace=False) for _ in range(n_topics)])
    diversity = topic_diversity(topics, n_words=n_words)
    assert 1 / n_topics <= diversity <= 1
    assert topic_diversity(rng.permuted(rng.permutation(topics), axis=1), n_words=n_words) == diversity
    assert topic_diversity(topics[[0] * n_topics], n_words=n_words) == pytest.approx(1 / n_topics)
    assert topic_diversity(topics + 20 * np.arange(n_topics)[:, None], n_words=n_words) == 1


def test_the_defaults_are_those_of_the_literature():
    """10 words for coherence, 25 for diversity."""
    components = np.eye(2, 60)[:, ::-1] + np.linspace(1, 0, 60)
    assert_array_equal(topic_diversity(components), topic_diversity(components, n_words=25))
    counts = np.random.default_rng(0).poisson(0.5, (30, 60))
    assert_array_equal(npmi_coherence(components, counts), npmi_coherence(components, counts, n_words=10))


# Sparsity


def test_sparsity_by_hand():
    theta = [[0.9, 0.1, 0.0, 0.0], [0.1, 0.2, 0.3, 0.4], [0.0, 0.0, 0.0, 1.0], [0.25, 0.25, 0.25, 0.25]]
    assert sparsity(theta) == pytest.approx((1 + 3 + 1 + 4) / 16)
    assert sparsity(theta, 0.5) == pytest.approx((1 + 2 + 1 + 2) / 16)
    assert sparsity(theta, mass=1) == pytest.approx((2 + 4 + 1 + 4) / 16)


def test_sparsity_reaches_the_mass_in_spite_of_rounding():
    theta = [[0.3, 0.3, 0.3, 0.1]]
    assert np.cumsum(theta)[2] < 0.9
    assert sparsity(theta) == sparsity(np.float32(theta)) == 0.75
    assert sparsity(np.full((1, 10), 0.1, np.float32)) == 0.9
    assert sparsity(np.full((1, 10), 0.1), mass=1) == 1


@given(st.integers(1, 8), st.floats(0.01, 1), st.integers(0, 2**32 - 1))
def test_sparsity_is_that_of_topics_taken_one_by_one(n_topics, mass, seed):
    theta = np.random.default_rng(seed).dirichlet(np.full(n_topics, 0.5), 20)
    n_dominant = []
    for row in theta:
        taken, rest = [], sorted(row)
        while sum(taken) < mass - 1e-6:
            taken.append(rest.pop())
        n_dominant.append(len(taken))
    assert sparsity(theta, mass) == pytest.approx(np.mean(n_dominant) / n_topics)


@pytest.mark.parametrize(
    ("theta", "mass", "message"),
    [
        ([[0.5, 0.5]], 0, "mass must be above 0 and at most 1, got 0"),
        ([[0.5, 0.5]], 1.1, "mass must be above 0 and at most 1, got 1.1"),
        ([[0.5, 0.5]], np.nan, "mass must be above 0 and at most 1, got nan"),
        ([0.5, 0.5], 0.9, r"theta must have shape \(n_docs, n_topics\), neither of them 0, got \(2,\)"),
        (np.zeros((0, 3)), 0.9, r"got \(0, 3\)"),
        ([[0.5, 0.5], [1.5, -0.5]], 0.9, r"theta\[1, 1\] is -0.5, expected a proportion"),
        ([[0.5, np.nan]], 0.9, r"theta\[0, 1\] is nan"),
        ([[0.5, 0.5], [0.5, 0.4]], 0.9, "the proportions of document 1 add up to 0.9, expected 1"),
        ([[0.0, np.inf]], 0.9, "the proportions of document 0 add up to inf, expected 1"),
    ],
)
def test_errors_of_sparsity_name_what_is_wrong(theta, mass, message):
    with pytest.raises(ValueError, match=message):
        sparsity(theta, mass)


# Predictive R2


def test_predictive_r2_by_hand():
    """1 - (0 + 1 + 1 + 0) / (4 + 0 + 0 + 4) with the mean 3 of y."""
    assert predictive_r2([1, 3, 3, 5], [1, 2, 4, 5]) == pytest.approx(0.75)
    assert predictive_r2([1, 3, 3, 5], [3, 3, 3, 3]) == 0
    assert predictive_r2([1, 3, 3, 5], [1, 3, 3, 5]) == 1
    assert predictive_r2([[1, 0], [3, 2]], [[1, 1], [3, 1]]) == pytest.approx((1 + 0) / 2)


@given(st.integers(2, 30), st.integers(1, 4), st.floats(-1e3, 1e3), st.integers(0, 2**32 - 1))
def test_predictive_r2_agrees_with_scikit_learn(n_docs, n_outputs, offset, seed):
    rng = np.random.default_rng(seed)
    y, predicted = rng.normal(offset, 2, (2, n_docs, n_outputs))
    assert predictive_r2(y, predicted) == pytest.approx(r2_score(y, predicted), rel=1e-9)
    assert predictive_r2(y[:, 0], predicted[:, :1]) == pytest.approx(r2_score(y[:, 0], predicted[:, 0]), rel=1e-9)


@pytest.mark.parametrize("predicted", [[0.1, 0.1, 0.1], [1, 2, 3]])
def test_predictive_r2_of_a_constant_is_not_defined(predicted):
    assert np.isnan(predictive_r2([0.1, 0.1, 0.1], predicted))
    assert np.isnan(predictive_r2([[0.1, 1], [0.1, 2], [0.1, 3]], np.ones((3, 2))))
    assert np.isnan(predictive_r2([1], [1]))


@pytest.mark.parametrize(
    ("y", "predicted", "message"),
    [
        ([1, 2, 3], [1, 2], r"predicted must have the shape of y, got \(2,\) for \(3,\)"),
        ([[1, 2]], [1, 2], r"predicted must have the shape of y, got \(2,\) for \(1, 2\)"),
        ([], [], r"y must be of shape .*, got \(0,\)"),
        ([1.0, np.nan], [1, 2], "y has nan for document 1, output 0"),
        ([1, 2], [[1], [np.inf]], "predicted has inf for document 1, output 0"),
        (1, 1, r"y must be of shape .*, got \(\)"),
    ],
)
def test_errors_of_predictive_r2_name_what_is_wrong(y, predicted, message):
    with pytest.raises(ValueError, match=message):
        predictive_r2(y, predicted)


# Area under the curve


def test_auc_by_hand():
    """Of four pairs, three are in order; or two and a tie."""
    assert auc([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9]) == 0.75
    assert auc([0, 1, 0, 1], [0.1, 0.6, 0.6, 0.9]) == 0.875
    assert auc([0, 1], [-np.inf, np.inf]) == 1
    assert auc([0, 1], [2, 1]) == 0


@given(st.integers(2, 60), st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_auc_is_that_of_all_pairs_and_of_scikit_learn(n_docs, n_scores, seed):
    """With many ties where scores are few."""
    rng = np.random.default_rng(seed)
    y, scores = rng.permutation(np.arange(n_docs) < rng.integers(1, n_docs)), rng.integers(n_scores, size=n_docs) / 7
    differences = scores[y][:, None] - scores[~y]
    assert auc(y, scores) == pytest.approx((np.sign(differences).mean() + 1) / 2, abs=1e-12)
    assert auc(y, scores) == pytest.approx(roc_auc_score(y, scores), abs=1e-12)
    assert auc(y, -scores) == pytest.approx(1 - auc(y, scores), abs=1e-12)
    assert auc(y, np.exp(scores)) == auc(y, scores)


@pytest.mark.parametrize("classes", [(False, True), (-1, 1), (3, 7.5), ("bad", "good"), ("10", "9")], ids=str)
@pytest.mark.parametrize("kind", [list, np.array, lambda y: np.array(y, object)], ids=["list", "array", "objects"])
def test_auc_is_that_of_the_second_class_in_sorted_order(classes, kind):
    y, scores = [classes[number] for number in (1, 0, 0, 1, 0)], [0.9, 0.2, 0.6, 0.5, 0.1]
    assert auc(kind(y), scores) == pytest.approx(5 / 6)


def test_auc_of_one_class_is_not_defined():
    assert np.isnan(auc(["a", "a"], [1, 2]))
    assert np.isnan(auc([1], [0.5]))


@pytest.mark.parametrize(
    ("y", "scores", "message"),
    [
        ([0, 1, 1], [0.1, 0.2], r"scores must have the shape of y, one for each document, got \(2,\) for \(3,\)"),
        ([0, 1], [[0.1, 0.9], [0.8, 0.2]], r"one for each document, got \(2, 2\) for \(2,\)"),
        ([], [], r"y must be of shape \(n_docs,\), with a class at least, got \(0,\)"),
        ([[0, 1], [1, 0]], [1, 2], r"y must be of shape \(n_docs,\), .*got \(2, 2\)"),
        ([0, 1, 2, 7], [1, 2, 3, 4], "y has 4 classes, 0, 1, 2 among them: expected two"),
        (["a", "b", None], [1, 2, 3], "y has None for document 2: expected a class"),
        (["a", np.nan, "b"], [1, 2, 3], "y has nan for document 1: expected a class"),
        ([0, 1, np.nan], [1, 2, 3], "y has nan for document 2: expected a class"),
        ([0, 1, 1], [1, np.nan, 3], "scores has nan for document 1: expected a number"),
    ],
)
def test_errors_of_auc_name_what_is_wrong(y, scores, message):
    with pytest.raises(ValueError, match=message):
        auc(y, scores)


# Errors


@pytest.mark.parametrize(
    ("topics", "texts", "options", "message"),
    [
        ([["cat"]], [["cat"]], {"n_words": 1}, "n_words must be at least 2.*got 1"),
        ([["cat", "dog"]], [["cat"]], {"window_size": 0}, "window_size must be at least 1, got 0"),
        ([["cat", "dog"]], "cat dog", {}, "texts must be an iterable of texts, got one string"),
        ([["cat", "dog"]], [["cat"], None], {}, "text 1 must be a string or a sequence of tokens, got None"),
        ([["cat", "dog"]], [["Cat"], []], {}, "texts have none of the words of the topics, the first of which is 'cat'"),
        ([["cat", "dog"]], [], {}, "texts have none of the words"),
        ([[0, 1]], [["cat"]], {}, "names must be given, for topics has weights or numbers"),
        (COMPONENTS, [["cat"]], {}, "names must be given, for topics has weights or numbers"),
        ([[0, 6]], [["cat"]], {"names": NAMES}, "topic 0 has the word 6, but words are numbered 0 to 5"),
        (COMPONENTS, [["cat"]], {"names": NAMES[:2]}, "topic 0 has weights for 6 words, expected 2"),
        ([[0, 1]], [["cat"]], {"names": ["cat", "cat"]}, "names must differ, got 'cat' for words 0 and 1"),
    ],
)
def test_errors_of_cv_name_what_is_wrong(topics, texts, options, message):
    with pytest.raises(ValueError, match=message):
        cv_coherence(topics, texts, **({"n_words": 2} | options))


@pytest.mark.parametrize(
    ("topics", "options", "message"),
    [
        ([[0, 1], [6, 2]], {}, "topic 1 has the word 6, but words are numbered 0 to 5"),
        ([[0, 1], [2, -1]], {}, "topic 1 has the word -1"),
        ([["cat", "dog"], ["sun", "moon"]], {"names": NAMES}, "topic 1 has the word 'moon', which is not among the names"),
        ([["cat", "dog"]], {}, "topic 0 has the word 'cat', which is not among the names"),
        ([["cat", "dog"]], {"names": NAMES[:2]}, "names has 2 entries, but X has 6 words"),
        ([["cat", "dog"]], {"names": ["cat", "dog", *NAMES[:4]]}, "names must differ, got 'cat' for words 0 and 2"),
        (COMPONENTS[:, :4], {}, "topic 0 has weights for 4 words, expected 6"),
        (COMPONENTS, {"n_words": 7}, "topic 0 has 6 words, fewer than n_words, which is 7"),
        ([[0, 1, 2], [0, 1]], {"n_words": 3}, "topic 1 has 2 words, fewer than n_words, which is 3"),
        ([[0, 1], [2]], {}, "topic 1 has 1 words, fewer than n_words, which is 2"),
        ([[0], [2]], {"n_words": 1}, "n_words must be at least 2.*got 1"),
        ([[0, 1]], {"epsilon": -1e-9}, "epsilon must be at least 0 and below 1, got -1e-09"),
        ([[0, 1]], {"epsilon": np.nan}, "epsilon must be at least 0 and below 1, got nan"),
    ],
)
def test_errors_of_coherence_name_what_is_wrong(topics, options, message):
    with pytest.raises(ValueError, match=message):
        npmi_coherence(topics, X, **({"n_words": 2} | options))


@pytest.mark.parametrize(
    ("topics", "message"),
    [
        ([], "topics must have at least one topic"),
        ([0, 1], "topic 0 must be a sequence of weights or of words, got 0"),
        (["cat dog", "sun the"], "topic 0 must be a sequence of weights or of words, got 'cat dog'"),
        (COMPONENTS[0], "topic 0 must be a sequence"),
        ([[True, False]], "topics must hold weights.*got bool"),
        ([[0, 1], ["cat", "dog"]], "topics must hold weights.*got <U3, int64"),
        ([["cat", "dog", "sun"], ["sun", "sun", "cat"]], "topic 1 has the word sun more than once among its first 2"),
        ([[0.5, 0.5], [0.3, 0.3, 0.4]], "topic 1 has weights for 3 words, expected 2"),
        ([[0.5, 0.5], [0.3, np.nan]], "topic 1 has the weight nan for word 1"),
    ],
)
def test_errors_of_topics_name_what_is_wrong(topics, message):
    with pytest.raises(ValueError, match=message):
        topic_diversity(topics, n_words=2)


def test_diversity_needs_a_word():
    with pytest.raises(ValueError, match="n_words must be at least 1, got 0"):
        topic_diversity(COMPONENTS, n_words=0)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        (np.zeros((0, 6)), r"X must have a count above zero, got none in shape \(0, 6\)"),
        (np.zeros((3, 6)), r"X must have a count above zero, got none in shape \(3, 6\)"),
        (X[0], r"X must have two dimensions \(n_docs, n_words\), got shape \(6,\)"),
        (-X, r"X\[0, 0\] is -1"),
    ],
)
def test_errors_of_the_counts_name_what_is_wrong(counts, message):
    with pytest.raises(ValueError, match=message):
        npmi_coherence([[0, 1]], counts, n_words=2)
