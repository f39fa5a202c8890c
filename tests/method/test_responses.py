"""Responses on their own: gradients, extreme scores, what y may be, scores, and planted targets that are recovered."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mirrorlda.datasets import make_topics
from mirrorlda.responses import Ordinal, Poisson, Quantile, Response, Sigmoid, Softmax, SquaredError
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import d2_log_loss_score, d2_tweedie_score, r2_score

from mirrorlda import TopicRegressor, infer, value_and_grad
from mirrorlda.data.documents import as_documents
from mirrorlda.method.inference import check_layers
from mirrorlda.method.start import start
from mirrorlda.training import mirror_descent
from mirrorlda.training.loop import Run, evaluate, train
from mirrorlda.training.schedule import Schedule
from mirrorlda.training.sources import Examples

jax.config.update("jax_enable_x64", True)

GAMMA = 1.7
N_LEVELS = 4
WIDTH = 0.3


def jax_sigmoid(scores, y):
    p = jax.nn.sigmoid(GAMMA * scores)
    return -(y * jnp.log(p) + (1 - y) * jnp.log(1 - p)).sum(axis=1)


def jax_ordinal(scores, y):
    go_on = jax.nn.sigmoid(GAMMA * scores)
    reached = jnp.concatenate([jnp.ones((len(scores), 1)), jnp.cumprod(go_on, axis=1)], axis=1)
    p = reached - jnp.concatenate([reached[:, 1:], jnp.zeros((len(scores), 1))], axis=1)
    return -jnp.log(jnp.take_along_axis(p, y, axis=1))[:, 0]


def jax_poisson(scores, y):
    log_density = y * scores - jnp.exp(scores) - jax.scipy.special.gammaln(y + 1)
    saturated = y * jnp.log(jnp.where(y > 0, y, 1)) - y - jax.scipy.special.gammaln(y + 1)
    return (saturated - log_density).sum(axis=1)


def jax_pinball(scores, y):
    error = y - scores
    size = jnp.where(jnp.abs(error) < WIDTH, error**2 / (2 * WIDTH), jnp.abs(error) - WIDTH / 2)
    return (jnp.where(error > 0, 0.8, 0.2) * size).sum(axis=1)


DEFINITIONS = {
    Sigmoid(GAMMA): (jax_sigmoid, 3, lambda rng, n: rng.integers(2, size=(n, 3))),
    Ordinal(N_LEVELS, GAMMA): (jax_ordinal, N_LEVELS - 1, lambda rng, n: np.arange(n)[:, None] % N_LEVELS),
    Quantile(0.8, WIDTH): (jax_pinball, 2, lambda rng, n: 2 * rng.standard_normal((n, 2))),
    Poisson(): (jax_poisson, 2, lambda rng, n: rng.poisson(1.5, size=(n, 2))),
}
RESPONSES = list(DEFINITIONS)


def make_case(response, n_docs, seed=0):
    """The definition in JAX, scores and y."""
    definition, n_outputs, draw = DEFINITIONS[response]
    rng = np.random.default_rng(seed)
    return definition, 2 * rng.standard_normal((n_docs, n_outputs)), draw(rng, n_docs)


def name(response):
    return type(response).__name__


by_response = pytest.mark.parametrize("response", RESPONSES, ids=name)


# Losses and gradients


@by_response
def test_losses_and_gradients_agree_with_jax(response):
    definition, scores, y = make_case(response, 40)
    losses, grad_scores = response.loss(scores, y)
    assert_allclose(losses, definition(scores, y), rtol=1e-9)
    assert_allclose(grad_scores, jax.grad(lambda s: definition(s, y).sum())(scores), rtol=1e-9, atol=1e-12)


@by_response
def test_gradients_agree_with_central_differences(response):
    _, scores, y = make_case(response, 40)
    grad_scores = response.loss(scores, y)[1]
    for output in range(scores.shape[1]):
        change = np.zeros_like(scores)
        change[:, output] = 1e-5
        slope = (response.loss(scores + change, y)[0] - response.loss(scores - change, y)[0]) / 2e-5
        assert_allclose(grad_scores[:, output], slope, rtol=1e-6, atol=1e-8)


@by_response
def test_gradients_through_the_layers_agree_with_central_differences(make_problem, response):
    phi, X = make_problem(5, [0, 1, 9, 20, 30], n_words=40)
    _, scores, y = make_case(response, X.shape[0])
    rng = np.random.default_rng(1)
    U = rng.standard_normal((scores.shape[1], 5))
    steps = infer(phi, X).step_sizes
    gradient = value_and_grad(phi, U, X, y, response, step_size=steps)
    for which, direction in ((0, phi * rng.standard_normal(phi.shape)), (1, rng.standard_normal(U.shape))):
        losses = []
        for sign in (1, -1):
            parameters = [phi, U]
            parameters[which] = parameters[which] + sign * 1e-6 * direction
            losses.append(response.loss(infer(parameters[0], X, step_size=steps).theta @ parameters[1].T, y)[0].sum())
        slope = (gradient.grad_phi * direction[gradient.rows]).sum() if which == 0 else (gradient.grad_U * direction).sum()
        assert_allclose(slope, (losses[0] - losses[1]) / 2e-6, rtol=1e-5)


@by_response
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [40.0, 1e4, 3e38])
def test_extreme_scores_are_finite(response, dtype, size):
    _, scores, y = make_case(response, 20)
    extreme = np.where(scores > 0, size, -size).astype(dtype)
    with np.errstate(all="raise", under="ignore"):
        losses, grad_scores = response.loss(extreme, y)
        predicted = response.predict(extreme)
        score = response.score(extreme, losses, y, np.ones(20))
        if hasattr(response, "probabilities"):
            assert_array_equal(np.isfinite(response.probabilities(extreme)), True)
    for values in (losses, grad_scores.astype(dtype), predicted, score):
        assert np.isfinite(values).all()
    assert losses.max() > 10


@by_response
def test_the_loss_is_convex_up_to_extreme_scores(response):
    _, scores, y = make_case(response, 1)
    ladder = np.linspace(-80, 80, 321)
    slopes = [response.loss(np.full_like(scores, s), y)[1][0] for s in ladder]
    assert (np.diff(slopes, axis=0) >= -1e-12).all()


def test_beyond_its_bound_the_poisson_mean_stays_and_the_loss_has_the_slope_of_its_gradient():
    scores, y = np.array([[29.0], [31.0], [90.0]]), np.full((3, 1), 5.0)
    assert_allclose(Poisson().predict(scores)[:, 0], [np.exp(29), 1e13, 1e13])
    slope = (Poisson().loss(scores + 1e-3, y)[0] - Poisson().loss(scores - 1e-3, y)[0]) / 2e-3
    assert_allclose(Poisson().loss(scores, y)[1][:, 0], slope, rtol=1e-5)


# Predictions


def test_labels_are_predicted_where_they_are_more_probable_than_not():
    scores = np.array([[-1e-3, 1e-3, 0.0], [5.0, -5.0, 800.0]])
    response = Sigmoid(GAMMA)
    assert_array_equal(response.predict(scores), response.probabilities(scores) > 0.5)
    assert_allclose(response.probabilities(scores)[1], [1 / (1 + np.exp(-5 * GAMMA)), 1 / (1 + np.exp(5 * GAMMA)), 1])


def test_probabilities_of_ordered_categories_are_those_of_the_loss():
    response = Ordinal(N_LEVELS, GAMMA)
    _, scores, _ = make_case(response, 30)
    p = response.probabilities(scores)
    assert_allclose(p.sum(axis=1), 1)
    for level in range(N_LEVELS):
        assert_allclose(-np.log(p[:, level]), response.loss(scores, np.full((30, 1), level))[0])
    assert_allclose(response.predict(scores)[:, 0], p @ np.arange(N_LEVELS))


def test_two_ordered_categories_are_one_label():
    _, scores, y = make_case(Sigmoid(GAMMA), 30)
    scores, y = scores[:, :1], y[:, :1]
    for one, other in zip(Ordinal(2, GAMMA).loss(scores, y), Sigmoid(GAMMA).loss(scores, y), strict=True):
        assert_allclose(one, other)


# What learning starts from


@by_response
def test_the_start_is_the_best_constant(response):
    _, _, y = make_case(response, 60)
    weights = np.random.default_rng(2).uniform(0.5, 2, 60)
    start = response.start(y, weights)
    assert start.shape == (response.n_outputs(y),)
    grad_scores = response.loss(np.tile(start, (60, 1)), y)[1]
    assert_allclose(weights @ grad_scores, 0, atol=1e-9)


@pytest.mark.parametrize("response", [SquaredError(GAMMA), Softmax(GAMMA), *RESPONSES], ids=name)
def test_the_curvature_is_the_second_derivative_at_the_start(response):
    """The mean over outputs; of counts the largest."""
    rng = np.random.default_rng(3)
    if isinstance(response, SquaredError):
        y = rng.standard_normal((200, 2))
    elif isinstance(response, Softmax):
        y = np.arange(200) % 5
    else:
        y = make_case(response, 200)[2]
    weights = rng.uniform(0.5, 2, 200)
    start = np.tile(response.start(y, weights), (200, 1))
    second = []
    for output in range(response.n_outputs(y)):
        change = 1e-5 * (np.arange(start.shape[1]) == output)
        slopes = [response.loss(start + sign * change, y)[1][:, output] for sign in (1, -1)]
        second.append(np.average(slopes[0] - slopes[1], weights=weights) / 2e-5)
    expected = max(second) if isinstance(response, Poisson) else np.mean(second)
    assert_allclose(response.curvature(y, weights), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("response", "y"),
    [(Sigmoid(), np.zeros((9, 2))), (Ordinal(4), np.ones((9, 1))), (Poisson(), np.zeros((9, 1))), (Quantile(), np.ones((9, 1)))],
    ids=["labels", "categories", "counts", "median"],
)
def test_targets_that_are_all_the_same_have_a_finite_start(response, y):
    weights = np.ones(9)
    start = response.start(y, weights)
    assert np.isfinite(start).all()
    assert response.curvature(y, weights) >= 0.02
    losses = response.loss(np.tile(start, (9, 1)), y)[0]
    assert_allclose(response.score(None, losses, y, weights), 0, atol=1e-12)


# The score of the history


def test_the_score_of_one_label_is_that_of_scikit_learn():
    _, scores, y = make_case(Sigmoid(GAMMA), 50)
    weights = np.random.default_rng(4).uniform(0.5, 2, 50)
    scores, y, response = scores[:, :1], y[:, :1], Sigmoid(GAMMA)
    expected = d2_log_loss_score(y[:, 0], response.probabilities(scores)[:, 0], sample_weight=weights)
    assert_allclose(response.score(scores, response.loss(scores, y)[0], y, weights), expected, rtol=1e-9)


def test_the_score_of_categories_is_that_of_scikit_learn():
    response = Ordinal(N_LEVELS)
    _, scores, y = make_case(Ordinal(N_LEVELS, GAMMA), 50)
    weights = np.random.default_rng(4).uniform(0.5, 2, 50)
    expected = d2_log_loss_score(y[:, 0], response.probabilities(scores), sample_weight=weights)
    assert_allclose(response.score(scores, response.loss(scores, y)[0], y, weights), expected, rtol=1e-9)


def test_the_score_of_counts_is_that_of_scikit_learn():
    _, scores, y = make_case(Poisson(), 50)
    weights = np.random.default_rng(4).uniform(0.5, 2, 50)
    scores, y = scores[:, :1], y[:, :1]
    expected = d2_tweedie_score(y[:, 0], np.exp(scores[:, 0]), power=1, sample_weight=weights)
    assert_allclose(Poisson().score(scores, Poisson().loss(scores, y)[0], y, weights), expected, rtol=1e-9)


# What y may be


@pytest.mark.parametrize(
    ("response", "y", "message"),
    [
        (SquaredError(), [1.0, np.nan], r"y\[1\] is nan, expected a finite number"),
        (Softmax(), [0, 1, -1], r"y\[2\] is -1, expected a class number"),
        (Softmax(n_classes=2), [0, 1, 2], r"y\[2\] is 2, expected a class number from 0 to 1"),
        (Softmax(), ["a", "b"], "y has the type <U1, expected numbers"),
        (Sigmoid(), [[0, 1], [1, 2]], r"y\[1, 1\] is 2, expected 0 or 1"),
        (Sigmoid(), [[0, 1], [np.nan, 0]], r"y\[1, 0\] is nan, expected 0 or 1"),
        (Ordinal(5), [0, 4, 2, -1], r"y\[3\] is -1, expected a category number from 0 to 4"),
        (Ordinal(5), [[0], [5]], r"y\[1, 0\] is 5, expected a category number from 0 to 4"),
        (Ordinal(5), [0, 2.5], r"y\[1\] is 2\.5, expected a category number from 0 to 4"),
        (Poisson(), [0, 1, 7, -1], r"y\[3\] is -1, expected a count from 0 to 1e\+13"),
        (Poisson(), [[0.0, np.inf]], r"y\[0, 1\] is inf, expected a count"),
    ],
)
def test_errors_name_the_place(response, y, message):
    with pytest.raises(ValueError, match=message):
        response.checked(y)
    n_docs = len(y)
    with pytest.raises(ValueError, match=message):
        value_and_grad(np.full((2, 2), 0.5), np.zeros((2, 2)), np.ones((n_docs, 2)), y, response)


@pytest.mark.parametrize(
    ("response", "y", "n_outputs", "expected"),
    [
        (SquaredError(), [1.5, 2.0], 1, [[1.5], [2.0]]),
        (Softmax(), [2.0, 0.0], 3, [2, 0]),
        (Softmax(n_classes=7), [2, 0], 7, [2, 0]),
        (Sigmoid(), [True, False], 1, [[1], [0]]),
        (Sigmoid(), [[0, 1, 1]], 3, [[0, 1, 1]]),
        (Ordinal(5), [3, 0], 4, [[3], [0]]),
        (Poisson(), [[3, 0]], 2, [[3, 0]]),
    ],
)
def test_y_is_brought_into_the_form_of_the_loss(response, y, n_outputs, expected):
    checked = response.checked(y)
    assert_array_equal(checked, expected)
    assert response.n_outputs(checked) == n_outputs
    losses, grad_scores = response.loss(np.zeros((len(y), n_outputs)), checked)
    assert losses.shape == (len(y),)
    assert grad_scores.shape == (len(y), n_outputs)


def test_categories_must_be_two_or_more():
    with pytest.raises(ValueError, match="n_levels must be a whole number of at least 2, got 1"):
        Ordinal(1)


def test_a_response_of_ones_own_inherits_what_estimators_ask():
    class Absolute(Response):
        def loss(self, scores, y):
            return np.abs(scores - y).sum(axis=1), np.sign(scores - y)

        def predict(self, scores):
            return scores

        def score(self, scores, losses, y, weights):
            return -losses.mean()

    response, y = Absolute(), np.array([[1.0, 2.0]])
    assert (response.word_weight, response.spread, response.n_outputs(y), response.curvature(y, np.ones(1))) == (0, 1, 2, 1)
    assert (response.two_sided, response.n_layers) == (True, 5)
    assert_array_equal(response.targets(y), y)
    assert_array_equal(response.start(y, np.ones(1)), [0, 0])


def test_a_response_without_a_loss_is_refused():
    class Nothing(Response):
        pass

    with pytest.raises(TypeError, match=r"abstract methods .*loss.*predict.*score"):
        Nothing()


# Planted targets


N_DOCS, N_TRAINED = 1500, 1000


def planted(n_outputs, seed=0):
    """Documents, and outputs of mean 0 with hardly any noise."""
    data = make_topics(N_DOCS, 100, 4, n_outputs=n_outputs, gamma=1e6, random_state=seed)
    y = data.y.reshape(N_DOCS, n_outputs)
    return data.X, (y - y.mean(axis=0)) / y.std(axis=0), np.random.default_rng(seed)


def test_labels_are_recovered():
    X, eta, rng = planted(3)
    y = (rng.random(eta.shape) < 1 / (1 + np.exp(-4 * eta))).astype(int)
    model = TopicRegressor(4, response=Sigmoid(), coef_learning_rate=2.0, random_state=0).fit(X[:N_TRAINED], y[:N_TRAINED])
    predicted, held_out = model.predict(X[N_TRAINED:]), y[N_TRAINED:]
    assert_array_equal(np.unique(predicted), [0, 1])
    frequent = np.maximum(held_out.mean(axis=0), 1 - held_out.mean(axis=0))
    assert ((predicted == held_out).mean(axis=0) > frequent + 0.15).all()
    assert model.history_["score"][-1] > 0.5


@pytest.mark.parametrize("level", [0.0, 2.0])
def test_counts_are_recovered(level):
    X, eta, rng = planted(1)
    rate = np.exp(level + eta[:, 0])
    counts = rng.poisson(rate)
    model = TopicRegressor(4, response=Poisson(), random_state=0).fit(X[:N_TRAINED], counts[:N_TRAINED])
    predicted, held_out = model.predict(X[N_TRAINED:]), counts[N_TRAINED:]
    attainable = d2_tweedie_score(held_out, rate[N_TRAINED:], power=1)
    assert d2_tweedie_score(held_out, predicted, power=1) > 0.85 * attainable > 0.4


def fit_and_evaluate(response, X, y, n_epochs):
    """Learning asked of nothing but the response; the score on held-out documents and their scores U theta."""
    y, rng = response.checked(y), np.random.default_rng(0)
    weights = np.ones(N_DOCS)
    documents = as_documents(X.astype(np.float64))
    examples = Examples(documents, y, weights)
    trained, held_out = examples.take(np.arange(N_TRAINED)), examples.take(np.arange(N_TRAINED, N_DOCS))
    phi, U, _ = start(trained.documents, trained.y, trained.weights, response, 4, rng)
    schedule = Schedule(
        n_epochs=n_epochs,
        batch_sizes=(128, 128),
        learning_rate=0.02,
        coef_learning_rate=0.5 / response.curvature(trained.y, trained.weights),
        decay="linear",
        average_from=0.5,
        beta=1.0001,
    )
    layers = check_layers(1.001, 10, "l1", 0.0, phi, 0)
    learned, _ = train(Run(mirror_descent.begin(phi, U), layers, rng), trained, response, schedule)
    theta = infer(learned.phi, X[N_TRAINED:].astype(np.float64)).theta
    return evaluate(learned, held_out, response, layers, 1)[1], theta @ learned.U.T


def test_ordered_categories_are_recovered():
    """The planted categories are cuts of one number: no sequential model, so that its form is put to the test too."""
    X, eta, rng = planted(1)
    noisy = eta[:, 0] + 0.3 * rng.logistic(size=N_DOCS)
    y = np.searchsorted([-1.0, -0.2, 0.3, 1.2], noisy)
    response = Ordinal(5)
    score, scores = fit_and_evaluate(response, X, y, n_epochs=25)
    held_out, p = y[N_TRAINED:], response.probabilities(scores)
    assert score > 0.28
    assert r2_score(held_out, response.predict(scores)[:, 0]) > 0.62
    assert np.mean(p.argmax(axis=1) == held_out) > np.bincount(held_out).max() / len(held_out) + 0.2


def test_large_counts_are_learned_from_the_start_and_curvature_of_their_response():
    X, eta, rng = planted(1)
    counts = rng.poisson(np.exp(6 + eta[:, 0]))
    score, _ = fit_and_evaluate(Poisson(), X, counts, n_epochs=25)
    assert score > 0.9


def test_outliers_hardly_move_the_median():
    data = make_topics(n_docs=N_DOCS, n_words=60, n_topics=3, n_outputs=1, random_state=0)
    outliers = np.random.default_rng(0).random(N_DOCS) < 0.1
    y = np.where(outliers, data.y.ravel() + 20 * data.y.std(), data.y.ravel())
    trained = slice(N_TRAINED)
    models = {
        name: TopicRegressor(6, response=name, random_state=0).fit(data.X[trained], y[trained])
        for name in ("gaussian", "quantile")
    }
    errors = {name: np.abs(model.predict(data.X) - data.y.ravel())[N_TRAINED:].mean() for name, model in models.items()}
    assert errors["quantile"] < 0.3 * errors["gaussian"]
    assert errors["quantile"] < 0.5 * np.abs(data.y - np.median(data.y))[N_TRAINED:].mean()


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
def test_as_many_targets_are_below_their_quantile_as_it_says(quantile):
    data = make_topics(n_docs=N_DOCS, n_words=60, n_topics=3, n_outputs=1, random_state=0)
    y = data.y.ravel() / data.y.std()
    model = TopicRegressor(6, response=Quantile(quantile), random_state=0).fit(data.X, y)
    assert np.mean(y < model.predict(data.X)) == pytest.approx(quantile, abs=0.06)
