"""topica's models as scikit-learn estimators, on planted topics."""

import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from mirrorlda.datasets import make_topics
from sklearn.metrics import roc_auc_score

sys.path.insert(0, str(Path(__file__).parents[2] / "experiments"))

import themes
from baselines.topica_models import (
    ScholarClassifier,
    ScholarRegressor,
    TopicaLDA,
    TopicaSLDAClassifier,
    TopicaSLDARegressor,
)

N_TRAIN = 400


@pytest.fixture(scope="module")
def data():
    return make_topics(n_docs=600, n_words=100, n_topics=5, n_outputs=1, random_state=0)


@pytest.fixture(scope="module")
def classes():
    return make_topics(n_docs=600, n_words=100, n_topics=5, n_classes=2, gamma=10, random_state=0)


def without_words(X, row):
    return sp.vstack([X[:row], sp.csr_matrix((1, X.shape[1])), X[row + 1 :]], "csr")


def test_lda_finds_the_planted_topics(data):
    # The last column occurs in no document, and the second document has no words.
    X = sp.hstack([without_words(data.X, 1), sp.csr_matrix((600, 1))], "csr")
    model = TopicaLDA(5).fit(X[:N_TRAIN])
    assert model.components_.sum(axis=1) == pytest.approx(1)
    assert (model.components_[:, -1] == 0).all()
    assert themes.matched(model.components_[:, :-1].T, data.components.T) > 0.98
    theta = model.transform(X[N_TRAIN:])
    assert theta.sum(axis=1) == pytest.approx(1)
    assert themes.matched(theta, data.theta[N_TRAIN:]) > 0.98
    assert np.isfinite(model.transform(X[1:2])).all()


def test_numbers_of_supervised_topics(data):
    y = data.y * 10 + 50
    known = np.where(np.arange(600) % 7, y, np.nan)
    model = TopicaSLDARegressor(5).fit(without_words(data.X[:N_TRAIN], 1), known[:N_TRAIN])
    assert model.score(data.X[N_TRAIN:], y[N_TRAIN:]) > 0.9
    assert themes.matched(model.transform(data.X[N_TRAIN:]), data.theta[N_TRAIN:]) > 0.9


def test_classes_of_supervised_topics(classes):
    names = np.array(["no", "yes"], object)[classes.y]
    names[:N_TRAIN:7] = None
    model = TopicaSLDAClassifier(5).fit(classes.X[:N_TRAIN], names[:N_TRAIN])
    best = roc_auc_score(classes.y[N_TRAIN:], classes.theta[N_TRAIN:] @ (classes.coef[1] - classes.coef[0]))
    assert roc_auc_score(names[N_TRAIN:] == "yes", model.decision_function(classes.X[N_TRAIN:])) > best - 0.02
    assert np.mean(model.predict(classes.X[N_TRAIN:]) == names[N_TRAIN:]) > 0.85


def test_scholar_predicts_classes(classes):
    names = np.array(["no", "yes"], object)[classes.y]
    names[:N_TRAIN:7] = None
    model = ScholarClassifier(5).fit(without_words(classes.X[:N_TRAIN], 1), names[:N_TRAIN])
    chances = model.predict_proba(classes.X[N_TRAIN:])
    assert chances.sum(axis=1) == pytest.approx(1)
    assert roc_auc_score(names[N_TRAIN:] == "yes", chances[:, 1]) > 0.9
    assert np.mean(model.predict(classes.X[N_TRAIN:]) == names[N_TRAIN:]) > 0.7
    assert model.transform(classes.X[N_TRAIN:]).sum(axis=1) == pytest.approx(1)


def test_scholar_predicts_the_mean_of_few_numbers(classes):
    # Sorted as strings, 10 would come before 9.
    y = np.where(classes.y == 1, 10.0, 9.0)
    y[0] = np.nan
    model = ScholarRegressor(5).fit(classes.X[:N_TRAIN], y[:N_TRAIN])
    found = model.predict(classes.X[N_TRAIN:])
    assert found.min() >= 9
    assert found.max() <= 10
    assert roc_auc_score(y[N_TRAIN:], found) > 0.9
    with pytest.raises(ValueError, match="found 400 numbers, expected at most 20"):
        ScholarRegressor(5).fit(classes.X[:N_TRAIN], np.arange(N_TRAIN))
