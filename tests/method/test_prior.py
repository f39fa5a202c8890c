"""The prior of the topic proportions, estimated: known parameters come back, and estimators use what was found."""

import numpy as np
import pytest
from mirrorlda.datasets import make_topics
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import gammaln

from mirrorlda import TopicClassifier, TopicModel, TopicRegressor, infer
from mirrorlda.method.prior import TopicUsage, estimate_concentration

N_DOCS = 300


def samples(concentration, n_docs, length=200, seed=0):
    rng = np.random.default_rng(seed)
    return np.array([rng.multinomial(length, theta) for theta in rng.dirichlet(concentration, n_docs)]).astype(float)


@pytest.mark.parametrize("first", [1e-3, 0.05, 1.0])
@pytest.mark.parametrize("concentration", [[0.2, 0.6], [0.05, 0.1, 0.9], [0.3] * 6], ids=str)
def test_known_concentrations_come_back(concentration, first):
    found = estimate_concentration(samples(concentration, 4000), np.full(len(concentration), first), n_steps=400)
    assert_allclose(found, concentration, rtol=0.1)


def test_each_step_explains_the_counts_better():
    """Minka's fixed point never lowers the likelihood of the Dirichlet-multinomial distribution."""
    counts = samples([0.1, 0.4, 0.8], 300)

    def log_likelihood(a):
        of_topics = (gammaln(counts + a) - gammaln(a)).sum()
        return of_topics + (gammaln(a.sum()) - gammaln(counts.sum(axis=1) + a.sum())).sum()

    a, values = np.full(3, 0.02), []
    for _ in range(30):
        values.append(log_likelihood(a))
        a = estimate_concentration(counts, a, n_steps=1)
    assert (np.diff(values) > -1e-9 * np.abs(values[:-1])).all()
    assert values[-1] > values[0] + 1


def test_a_topic_that_nothing_uses_gets_the_least_and_none_more_than_ten():
    counts = np.c_[samples([50.0, 50.0], 200), np.zeros(200)]
    assert_array_equal(estimate_concentration(counts, np.full(3, 0.5), n_steps=2000), [10, 10, 1e-3])
    assert_array_equal(estimate_concentration(np.zeros((9, 2)), np.array([0.3, 0.4])), [0.3, 0.4])


def test_usage_keeps_the_latest_documents():
    usage, thetas, rng = TopicUsage(100), np.array([[0.9, 0.1], [0.1, 0.9]]), np.random.default_rng(0)
    first = np.array([1.1, 1.1], np.float32)
    for theta in (thetas[0], thetas[1]):
        for _ in range(10):
            usage.add(np.tile(theta, (10, 1)), np.full(10, 50.0), first, rng)
    alpha = usage.alpha(first)
    assert alpha.dtype == np.float32
    assert alpha[1] - 1 > 3 * (alpha[0] - 1)


@pytest.mark.parametrize("inferred_with", [1.0, 1.2])
def test_usage_is_not_confirmed_by_the_prior(inferred_with):
    """theta at the maximum of the posterior; the counts of the documents, not the prior's, decide."""
    rng, extra = np.random.default_rng(0), inferred_with - 1
    counts = samples([0.1, 0.3, 0.6], 5000)
    theta = (counts + extra) / (counts + extra).sum(axis=1, keepdims=True)
    usage, alpha = TopicUsage(5000), np.full(3, inferred_with)
    usage.add(theta, counts.sum(axis=1), alpha, rng)
    for _ in range(10):
        alpha = usage.alpha(alpha)
    assert_allclose(alpha - 1, [0.1, 0.3, 0.6], rtol=0.15)


# In the estimators


@pytest.fixture(scope="module")
def planted():
    return make_topics(N_DOCS, 60, 3, n_outputs=1, random_state=0)


@pytest.fixture(params=[TopicModel, TopicClassifier, TopicRegressor])
def estimator(request):
    return request.param


@pytest.fixture
def y(estimator, planted):
    return {TopicModel: None, TopicClassifier: planted.y > 0, TopicRegressor: planted.y}[estimator]


def infer_plainly(model, X, n_layers):
    """What `transform` does, in its own words."""
    X = np.log2(1 + X.toarray())
    if not isinstance(model, TopicModel):
        X = X * model.word_weights_
    return infer(
        getattr(model, "encoder_components_", model.components_).T, X, alpha=model.alpha_, n_layers=n_layers, tol=model.tol
    ).theta


@pytest.mark.parametrize("early_stopping", [False, True])
def test_an_estimated_alpha_is_kept_and_used(estimator, planted, y, early_stopping):
    X = planted.X.astype(np.float64)
    options = {"early_stopping": True, "n_iter_no_change": 6, "n_epochs": 12} if early_stopping else {}
    model = estimator(6, alpha="auto", n_layers=5, random_state=0, **options).fit(X, y)
    assert model.alpha_.shape == (6,)
    assert (model.alpha_ > 1).all()
    # The best epoch may be one before the first estimate.
    assert early_stopping or np.ptp(model.alpha_) > 1e-3
    assert_allclose(model.transform(X), infer_plainly(model, X, 5), rtol=1e-6, atol=1e-9)
    fixed = estimator(6, n_layers=5, random_state=0, **options).fit(X, y)
    assert_array_equal(fixed.alpha_, 1.02 if estimator is TopicModel else 1 + 2 / 26)
    assert early_stopping or np.abs(fixed.transform(X) - model.transform(X)).max() > 1e-3
    if early_stopping:
        scores = model.history_["validation_score"]
        assert len(scores) == min(12, int(np.argmax(scores)) + 7)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize(("n_topics", "alpha"), [(1, 1 + 2 / 21), (5, 1.08), (20, 1.05), (180, 1.01)])
def test_a_prior_that_is_not_given_follows_the_number_of_topics(estimator, planted, y, n_topics, alpha, method):
    model = estimator(n_topics, alpha=None, random_state=0)
    if method == "fit":
        model.set_params(n_epochs=1)
    getattr(model, method)(planted.X.astype(np.float64), y)
    assert_allclose(model.alpha_, np.full(n_topics, alpha), rtol=1e-15)


@pytest.mark.parametrize("n_topics", [6, 40])
def test_with_targets_an_estimate_keeps_the_mean_that_the_prior_has_without(planted, n_topics):
    X = planted.X.astype(np.float64)
    model = TopicRegressor(n_topics, alpha="auto", random_state=0).fit(X, planted.theta[:, 0])
    assert np.ptp(model.alpha_) > 1e-3
    assert_allclose(model.alpha_.mean(), 1 + 2 / (n_topics + 20), rtol=1e-9)


def test_documents_of_few_topics_have_a_smaller_alpha():
    """Each document has one topic, or all of them."""
    alphas = []
    for concentration in (0.02, 2.0):
        data = make_topics(400, 60, 4, alpha=concentration, random_state=0)
        alphas.append(TopicModel(4, alpha="auto", n_epochs=20, random_state=0).fit(data.X).alpha_.mean() - 1)
    assert alphas[0] < 0.5 * alphas[1]


def test_a_stream_cannot_estimate_alpha(estimator, planted, y):
    model = estimator(3, alpha="auto")
    with pytest.raises(ValueError, match="alpha='auto' needs all documents: use fit, or give partial_fit a number"):
        model.partial_fit(planted.X, y)
    assert not hasattr(model, "components_")


def test_another_word_for_alpha_is_refused(estimator, planted, y):
    with pytest.raises(ValueError, match="alpha must be None, 'auto', a number or one for each topic, got 'automatic'"):
        estimator(3, alpha="automatic").fit(planted.X, y)
