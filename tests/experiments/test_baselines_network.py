"""Networks on tf-idf, the experiments' baseline."""

import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression, Ridge

sys.path.insert(0, str(Path(__file__).parents[2] / "experiments"))

from baselines import network
from baselines.network import NetworkClassifier, NetworkRegressor

# Few documents want larger steps than thousands do.
QUICK = {"learning_rate": 0.03, "input_dropout": 0.0, "max_epochs": 40, "random_state": 0}


def documents(n_docs=600, n_words=30, seed=0):
    """Counts; about half of the documents have each of the first two words."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.2, (n_docs, n_words))
    X[:, :2] = rng.integers(2, size=(n_docs, 2))
    return sp.csr_array(X.astype(np.float32))


def exactly_one(X):
    return (X[:, [0, 1]].toarray() > 0).sum(axis=1) == 1


def same_weights(a, b):
    return all(
        np.array_equal(x, y)
        for x, y in zip(network.jax.tree.leaves(a._weights), network.jax.tree.leaves(b._weights), strict=True)
    )


@pytest.mark.slow
def test_classes_that_are_not_linear_in_the_words():
    X, new = documents(), documents(seed=1)
    y, y_new = exactly_one(X), exactly_one(new)
    assert LogisticRegression().fit(X, y).score(new, y_new) < 0.65
    assert NetworkClassifier(**QUICK).fit(X, y).score(new, y_new) > 0.95


@pytest.mark.slow
def test_numbers_that_are_not_linear_in_the_words():
    X, new = documents(), documents(seed=1)
    y, y_new = 100 + 50 * exactly_one(X), 100 + 50 * exactly_one(new)
    assert Ridge().fit(X, y).score(new, y_new) < 0.1
    assert NetworkRegressor(**QUICK).fit(X, y).score(new, y_new) > 0.9


def test_several_classes():
    X, new = documents(), documents(seed=1)
    names = np.array(["none", "first", "second", "both"])
    y, y_new = (names[(D[:, [0, 1]] @ np.array([1, 2])).astype(int)] for D in (X, new))
    model = NetworkClassifier(**QUICK).fit(X, y)
    chances = model.predict_proba(new)
    assert list(model.classes_) == sorted(names)
    assert chances.shape == (new.shape[0], 4)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert np.array_equal(model.classes_[chances.argmax(axis=1)], model.predict(new))
    assert np.array_equal(model.decision_function(new).argmax(axis=1), chances.argmax(axis=1))
    assert model.score(new, y_new) > 0.95


def test_two_classes_have_one_decision():
    X = documents()
    model = NetworkClassifier(**QUICK).fit(X, exactly_one(X))
    decisions = model.decision_function(X)
    np.testing.assert_allclose(1 / (1 + np.exp(-decisions)), model.predict_proba(X)[:, 1], rtol=1e-4)
    assert np.array_equal(decisions > 0, model.predict(X))


def test_the_gradient_is_that_of_the_mean_loss():
    rng = np.random.default_rng(0)
    X, y = documents(20, 6), rng.integers(3, size=20).astype(np.int32)
    weights = network._first_weights([6, 4, 5, 3], rng)
    model = NetworkClassifier((4, 5), input_dropout=0.0)
    gradient = model._gradient(weights, X, y, network._cross_entropy, rng, network.jax.random.key(0))

    def loss(weights):
        hidden = X.toarray()
        for W, b in zip([weights.words, *weights.upper[:-1]], weights.biases[:-1], strict=True):
            hidden = network.jax.nn.relu(hidden @ W + b)
        return network._cross_entropy(hidden @ weights.upper[-1] + weights.biases[-1], y).mean()

    expected = network.jax.grad(loss)(weights)
    for found, by_autodiff in zip(network.jax.tree.leaves(gradient), network.jax.tree.leaves(expected), strict=True):
        assert np.abs(by_autodiff).max() > 0
        np.testing.assert_allclose(found, by_autodiff, rtol=1e-4, atol=1e-6)


def test_the_penalty_takes_its_share_off_the_weights_but_not_off_biases():
    weights = network._first_weights([6, 4, 1], np.random.default_rng(0))._replace(biases=[np.ones(4), np.ones(1)])
    before = network.jax.tree.map(np.array, weights)
    state = network._optimizer(0.1, 0.5).init(weights)
    after, _ = network._step(weights, state, network.jax.tree.map(np.zeros_like, before), 0.1, 0.5)
    np.testing.assert_allclose(after.words, 0.95 * before.words, rtol=1e-6)
    np.testing.assert_allclose(after.upper[0], 0.95 * before.upper[0], rtol=1e-6)
    np.testing.assert_allclose(after.biases[0], 1)


@pytest.mark.parametrize("kind", ["dropout", "input_dropout"])
def test_dropout_is_for_training_only(kind):
    X = documents()
    y = exactly_one(X)
    without, dropped = (NetworkClassifier(**{**QUICK, "max_epochs": 3, kind: share}).fit(X, y) for share in (0.0, 0.5))
    assert not same_weights(without, dropped)
    assert np.array_equal(dropped.decision_function(X), dropped.decision_function(X))


def test_dropped_units_leave_the_mean_as_it_is():
    products, key = np.ones((2000, 50), np.float32), network.jax.random.key(0)
    outputs = network._outputs([np.ones((50, 1), np.float32)], [np.zeros(50), np.zeros(1)], products, 0.4, key)
    # Of 50 units 30 are kept, and each counts 1 / 0.6.
    assert np.mean(outputs) == pytest.approx(50, abs=0.5)
    assert np.std(outputs) == pytest.approx(np.sqrt(50 * 0.4 / 0.6), rel=0.1)


def test_dropped_words_leave_the_mean_as_it_is():
    X = network._without_words(sp.csr_array(np.ones((100, 100), np.float32)), 0.3, np.random.default_rng(0))
    np.testing.assert_allclose(np.unique(X.data), [0, 1 / 0.7], rtol=1e-6)
    assert X.mean() == pytest.approx(1, abs=0.03)


def test_the_best_epoch_is_kept():
    rng = np.random.default_rng(0)
    # Noise: what is learned of it makes the held-out loss rise.
    X, y = documents(400, 100), rng.standard_normal(400)
    options = {**QUICK, "penalty": 0.0, "max_epochs": 30, "patience": 4}
    model = NetworkRegressor(**options).fit(X, y)
    losses = model.held_out_losses_
    assert model.best_epoch_ == np.argmin(losses)
    assert len(losses) == model.best_epoch_ + 4 + 1 < 30
    assert losses[-1] > losses[model.best_epoch_]
    held_out = np.random.default_rng(0)
    held_out.integers(2**31)
    rows = held_out.permutation(400)[:40]
    standardised = (y - y.mean()) / y.std()
    error = np.mean(((model.predict(X) - y.mean()) / y.std() - standardised)[rows] ** 2)
    assert error == pytest.approx(losses[model.best_epoch_], rel=1e-4)


def test_the_loss_falls_on_what_can_be_learned():
    X = documents()
    losses = NetworkRegressor(**QUICK).fit(X, exactly_one(X)).held_out_losses_
    assert losses[0] > 0.9
    assert min(losses) < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("missing", [None, np.nan])
def test_documents_without_a_class_are_left_out(missing):
    X = documents()
    names = np.where(exactly_one(X), "one", "other").astype(object)
    known = np.arange(X.shape[0]) % 3 > 0
    y = np.where(known, names, missing)
    options = {**QUICK, "max_epochs": 2}
    model = NetworkClassifier(**options).fit(X, y)
    assert list(model.classes_) == ["one", "other"]
    assert same_weights(model, NetworkClassifier(**options).fit(X[np.flatnonzero(known)], names[known]))


def test_documents_without_a_number_are_left_out():
    X = documents()
    known = np.arange(X.shape[0]) % 3 > 0
    y = np.where(known, exactly_one(X), np.nan)
    options = {**QUICK, "max_epochs": 2}
    model = NetworkRegressor(**options).fit(X, y)
    assert same_weights(model, NetworkRegressor(**options).fit(X[np.flatnonzero(known)], y[known]))


def test_documents_without_words():
    X = documents().tolil()
    X[::5] = 0
    X = sp.csr_array(X)
    y = exactly_one(X)
    model = NetworkClassifier(**QUICK).fit(X, y)
    assert model.score(X, y) > 0.95
    empty = model.predict_proba(sp.csr_array((3, X.shape[1])))
    assert np.array_equal(empty[0], empty[1])
    assert empty[0, 0] > 0.8
    assert model.predict(X[:0]).shape == (0,)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bits():
    X = documents()
    options = {**QUICK, "hidden": (20, 10), "dropout": 0.3, "input_dropout": 0.3, "max_epochs": 3}
    first, second, other = (NetworkClassifier(**{**options, "random_state": seed}).fit(X, exactly_one(X)) for seed in (0, 0, 1))
    assert same_weights(first, second)
    assert not same_weights(first, other)
    assert np.array_equal(first.decision_function(X), second.decision_function(X))


def test_predictions_do_not_depend_on_the_other_documents():
    X = documents(network.BLOCK + 7)
    model = NetworkRegressor(**{**QUICK, "max_epochs": 1}).fit(X, exactly_one(X))
    last = X.shape[0] - 3
    np.testing.assert_allclose(model.predict(X)[last:], model.predict(X[last:]), rtol=1e-5)


def test_large_vocabulary():
    X = documents(400, 40)
    # A word of 40 is one of 300,000; a dense matrix would take half a gigabyte.
    X = sp.csr_array((X.data, X.indices * 7_500, X.indptr), shape=(400, 300_000))
    y = X[:, [0]].toarray()[:, 0]
    assert NetworkRegressor((5,), **{**QUICK, "max_epochs": 6, "batch_size": 60}).fit(X, y).score(X, y) > 0.5


def test_too_few_labels():
    X = documents(10)
    with pytest.raises(ValueError, match="y has 1 labels, expected two or more"):
        NetworkRegressor().fit(X, [1.0] + [np.nan] * 9)
    with pytest.raises(ValueError, match="y must have two classes or more, found 1"):
        NetworkClassifier().fit(X, ["a"] * 10)
    assert NetworkClassifier(max_epochs=1).fit(X[:2], ["a", "b"]).predict_proba(X).shape == (10, 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "hidden"),
    [
        (lambda: network.same_size_regressor(7, "r2", 0), (7,)),
        (lambda: network.deep_regressor("r2", 0), (200, 200)),
        (lambda: network.same_size_classifier(7, "roc_auc", 0), (7,)),
        (lambda: network.deep_classifier("accuracy", 0), (200, 200)),
    ],
)
def test_what_experiments_compare_with(make, hidden):
    X = documents(200)
    y = np.where(np.arange(200) % 4 > 0, X[:, [0]].toarray()[:, 0], np.nan)
    search = make().set_params(estimator__network__max_epochs=2)
    assert np.isfinite(search.fit(X, y).score(X, exactly_one(X)))
    fitted = search.best_estimator_["network"]
    assert (fitted.hidden, fitted.dropout) == (hidden, 0.5 if len(hidden) > 1 else 0.0)
    assert tuple(len(b) for b in fitted._weights.biases[:-1]) == hidden


def test_the_tuned_network_chooses_its_size():
    X = documents(300)
    search = network.tuned_regressor("r2", 0).set_params(estimator__network__max_epochs=2).fit(X, exactly_one(X))
    assert search.best_params_["network__hidden"] in network.SIZES
    assert len(search.cv_results_["params"]) == 4
