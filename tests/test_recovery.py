"""Planted corpora are recovered: topics, coefficients, labels.

A response identifies topics only as far as it depends on them: with one output, documents of single topics have the
planted predictions, but the learned topics are mixtures; with more outputs than topics, they are the planted ones.
Thresholds are what a planted model attains on the held-out documents, less the margin measured over several seeds. Every
measure is taken on topics at their start as well, which must fail it.
"""

from typing import NamedTuple

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import r2_score

from mirrorlda import TopicClassifier, TopicModel, TopicRegressor, infer
from mirrorlda.datasets import make_topics

N_DOCS, N_TRAINED = 3000, 2000
SEEDS = [0, 1, 2]


class Match(NamedTuple):
    order: np.ndarray  # the planted topic of each learned one
    cosines: np.ndarray


def match(components, planted):
    unit = [topics / np.linalg.norm(topics, axis=1, keepdims=True) for topics in (components.astype(float), planted)]
    cosines = unit[0] @ unit[1].T
    rows, order = linear_sum_assignment(-cosines)
    return Match(order, cosines[rows, order])


def theta_error(theta, planted):
    """Mean total variation distance."""
    return np.abs(theta - planted).sum(axis=1).mean() / 2


def planted_theta(data):
    """What inference finds with the planted topics, on the documents that are held out."""
    return infer(data.components.T, data.X[N_TRAINED:].astype(float)).theta


def untrained(estimator, data):
    """The start: one epoch at rates of zero."""
    rates = {name: 0.0 for name in estimator.get_params() if name in ("learning_rate", "coef_learning_rate")}
    return estimator.set_params(n_epochs=1, **rates).fit(data.X[:N_TRAINED], data.y if data.y is None else data.y[:N_TRAINED])


@pytest.mark.parametrize("seed", SEEDS)
def test_topics_are_found_without_a_response(seed):
    """Measured: mean cosines of 0.997 and more, at the start 0.36."""
    data = make_topics(2000, 500, 10, random_state=seed)
    model = TopicModel(10, learning_rate=0.1, random_state=seed).fit(data.X)
    order, cosines = match(model.components_, data.components)
    assert cosines.mean() > 0.98
    assert cosines.min() > 0.9
    assert theta_error(model.transform(data.X), data.theta[:, order]) < 0.08
    assert match(untrained(TopicModel(10, random_state=seed), data).components_, data.components).cosines.mean() < 0.5


@pytest.mark.parametrize("seed", SEEDS)
def test_one_output_is_predicted_as_well_as_the_planted_model_would(seed):
    """Measured: R2 short of the planted model's by 0.028 to 0.043; at the start R2 is below 0.1."""
    data = make_topics(N_DOCS, 300, 5, n_outputs=1, random_state=seed)
    held_out = data.X[N_TRAINED:], data.y[N_TRAINED:]
    model = TopicRegressor(5, random_state=seed).fit(data.X[:N_TRAINED], data.y[:N_TRAINED])
    attainable = r2_score(held_out[1], planted_theta(data) @ data.coef[0])
    assert model.score(*held_out) > attainable - 0.06
    of_one_topic = model.predict(100 * data.components)
    assert np.corrcoef(of_one_topic, data.coef[0])[0, 1] > 0.99
    assert np.abs(of_one_topic - data.coef[0]).max() < 0.12 * np.ptp(data.coef)
    assert untrained(model, data).score(*held_out) < 0.3


@pytest.mark.parametrize("seed", SEEDS)
def test_many_outputs_identify_topics_and_coefficients(seed):
    """Measured: coefficients correlate by 0.999 and more."""
    data = make_topics(N_DOCS, 200, 3, n_outputs=8, random_state=seed)
    model = TopicRegressor(3, random_state=seed).fit(data.X[:N_TRAINED], data.y[:N_TRAINED])
    order, cosines = match(model.components_, data.components)
    assert np.corrcoef(model.coef_.ravel(), data.coef[:, order].ravel())[0, 1] > 0.99
    assert theta_error(model.transform(data.X[N_TRAINED:]), data.theta[N_TRAINED:, order]) < 0.12
    attainable = r2_score(data.y[N_TRAINED:], planted_theta(data) @ data.coef.T)
    assert model.score(data.X[N_TRAINED:], data.y[N_TRAINED:]) > attainable - 0.04
    start = match(untrained(model, data).components_, data.components)
    assert start.cosines.mean() < cosines.mean() - 0.1
    assert theta_error(model.transform(data.X[N_TRAINED:]), data.theta[N_TRAINED:, start.order]) > 0.3


@pytest.mark.parametrize("seed", SEEDS)
def test_labels_are_predicted_as_well_as_the_planted_model_would(seed):
    """Measured: accuracy short of the planted model's by 0.003 to 0.025."""
    data = make_topics(N_DOCS, 300, 5, n_classes=3, gamma=10, random_state=seed)
    held_out = data.X[N_TRAINED:], data.y[N_TRAINED:]
    model = TopicClassifier(5, random_state=seed).fit(data.X[:N_TRAINED], data.y[:N_TRAINED])
    attainable = np.mean((planted_theta(data) @ data.coef.T).argmax(axis=1) == held_out[1])
    assert model.score(*held_out) > attainable - 0.05
    np.testing.assert_array_equal(model.predict(100 * data.components), data.coef.argmax(axis=0))
    log_loss = -np.mean(model.predict_log_proba(held_out[0])[np.arange(len(held_out[1])), held_out[1]])
    assert log_loss < 0.35
    assert untrained(model, data).score(*held_out) < attainable - 0.15
