"""What "auto" makes of rates and dropout."""

import numpy as np
import pytest
import scipy.sparse as sp

from mirrorlda import TopicClassifier, TopicRegressor
from mirrorlda.data.documents import as_documents
from mirrorlda.method.responses import Sigmoid, Softmax, SquaredError
from mirrorlda.training.schedule import schedule_of
from mirrorlda.training.sources import Examples


def examples(n_distinct, y, weights=None):
    """Documents of so many distinct words each."""
    rng = np.random.default_rng(0)
    rows = [np.isin(np.arange(400), rng.choice(400, size=n, replace=False)) for n in n_distinct]
    y = np.asarray(y)
    return Examples(as_documents(sp.csr_array(np.array(rows, float))), y, np.ones(len(y)) if weights is None else weights)


@pytest.mark.parametrize(("n_distinct", "dropout"), [(1, 0.025), (16, 0.1), (100, 0.25), (256, 0.4), (400, 0.5)])
def test_long_documents_lose_more_words(n_distinct, dropout):
    some = examples([n_distinct] * 4, np.zeros((4, 1)))
    assert schedule_of(TopicRegressor(), some, 4, SquaredError()).word_dropout == pytest.approx(dropout)
    assert schedule_of(TopicRegressor(word_dropout=0.3), some, 4, SquaredError()).word_dropout == 0.3


def test_documents_count_with_their_weights():
    some = examples([100, 16], np.zeros((2, 1)), np.array([0.0, 2.0]))
    assert schedule_of(TopicRegressor(), some, 2, SquaredError()).word_dropout == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("estimator", "response", "y", "is_newton"),
    [
        (TopicRegressor, SquaredError(), np.zeros((4, 1)), False),
        (TopicRegressor, SquaredError(), np.zeros((4, 2)), True),
        (TopicClassifier, Softmax(), np.array([0, 1, 0, 1]), False),
        (TopicClassifier, Softmax(), np.array([0, 1, 2, 1]), True),
        (TopicClassifier, Sigmoid(), np.ones((4, 1)), False),
        (TopicClassifier, Sigmoid(), np.array([[0, 1]] * 4), True),
    ],
)
def test_several_outputs_take_newton_steps(estimator, response, y, is_newton):
    some = examples([10] * 4, y)
    schedule = schedule_of(estimator(), some, 4, response)
    assert (schedule.coef_damping is not None) == is_newton
    asked = schedule_of(estimator(coef_learning_rate=0.7), some, 4, response)
    assert asked.coef_damping is None
    assert asked.coef_learning_rate == pytest.approx(0.7 / response.curvature(some.y, some.weights))
