"""Measures over folds: against scikit-learn's, for every kind of documents and targets, with targets missing."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from mirrorlda.datasets import make_topics
from mirrorlda.metrics import CrossValidation, auc, cross_validate, predictive_r2
from mirrorlda.metrics.folds import folds
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.metrics import mean_absolute_error
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

from mirrorlda import Corpus, CorpusWriter, TextVectorizer, TopicClassifier, TopicRegressor

DATA = make_topics(n_docs=203, n_words=40, n_topics=4, n_outputs=2, random_state=0)
X, Y = DATA.X, DATA.y
NUMBERS = Y[:, 0]
TWO = np.array(["bad", "good"])[np.digitize(NUMBERS, [np.median(NUMBERS)])]
THREE = np.digitize(NUMBERS, np.quantile(NUMBERS, [0.3, 0.6]))
TEXTS = [" ".join(f"word{word}" for word in np.repeat(np.arange(40), row)) for row in X.toarray().astype(int)]


class Remembering(RegressorMixin, BaseEstimator):
    """Predicts the mean, and keeps what it was fitted to and asked for."""

    fitted_to, asked_for = [], []

    def fit(self, X, y):
        self.mean_ = np.mean(y)
        self.fitted_to.append((np.array(X), np.array(y)))
        return self

    def predict(self, X):
        self.asked_for.append(np.array(X))
        return np.full(len(X), self.mean_)


# Against scikit-learn


@pytest.mark.parametrize("n_folds", [2, 5])
@pytest.mark.parametrize("seed", [0, 7])
@pytest.mark.parametrize(
    ("estimator", "y", "kind", "scoring"),
    [
        (Ridge(), NUMBERS, KFold, "r2"),
        (Ridge(), Y, KFold, "r2"),
        (RidgeClassifier(), TWO, StratifiedKFold, "roc_auc"),
        (MultinomialNB(), TWO, StratifiedKFold, "roc_auc"),
        (MultinomialNB(), THREE, StratifiedKFold, "accuracy"),
        (TopicClassifier(4, n_epochs=2, random_state=0), TWO, StratifiedKFold, "roc_auc"),
        (TopicRegressor(4, n_epochs=2, random_state=0), Y, KFold, "r2"),
    ],
    ids=["numbers", "several numbers", "decision function", "probabilities", "three classes", "topics of classes", "of numbers"],
)
def test_scores_are_those_of_scikit_learn(estimator, y, kind, scoring, n_folds, seed):
    expected = cross_val_score(estimator, X, y, cv=kind(n_folds, shuffle=True, random_state=seed), scoring=scoring)
    result = cross_validate(estimator, X, y, n_folds=n_folds, random_state=seed)
    assert_allclose(result.scores, expected, rtol=1e-9)
    assert result.scores.shape == (n_folds,)
    assert result.mean == pytest.approx(np.mean(expected))
    assert result.deviation == pytest.approx(np.std(expected, ddof=1))


def test_a_measure_is_of_targets_and_predictions():
    scoring, cv = "neg_mean_absolute_error", KFold(5, shuffle=True, random_state=0)
    result = cross_validate(Ridge(), X, NUMBERS, measure=mean_absolute_error)
    assert_allclose(result.scores, -cross_val_score(Ridge(), X, NUMBERS, cv=cv, scoring=scoring))
    accuracies = cross_validate(MultinomialNB(), X, TWO, measure=lambda y, predicted: (y == predicted).mean())
    cv = StratifiedKFold(5, shuffle=True, random_state=0)
    assert_allclose(accuracies.scores, cross_val_score(MultinomialNB(), X, TWO, cv=cv, scoring="accuracy"))


def test_several_labels_need_a_measure():
    labels = (DATA.y > np.median(DATA.y, axis=0)).astype(int)
    model = TopicClassifier(4, n_epochs=2, random_state=0)
    for y in (labels, sp.csr_array(labels)):
        with pytest.raises(
            ValueError, match=r"y has shape \(203, 2\): of several labels a document there is no measure by default"
        ):
            cross_validate(model, X, y)
    assert 0.5 < cross_validate(model, X, labels, measure=lambda y, predicted: (y == predicted).mean()).mean <= 1


# Documents


@pytest.mark.parametrize(
    "kind",
    [
        sp.csr_matrix,
        sp.csr_array,
        sp.csc_array,
        sp.coo_array,
        sp.coo_matrix,
        lambda X: X.toarray().tolist(),
        sp.csr_matrix.toarray,
    ],
    ids=["csr_matrix", "csr_array", "csc_array", "coo_array", "coo_matrix", "lists", "dense"],
)
def test_every_kind_of_matrix_is_read(kind):
    expected = cross_validate(MultinomialNB(), X, TWO).scores
    assert_allclose(cross_validate(MultinomialNB(), kind(X), TWO.tolist()).scores, expected, rtol=1e-9)


@pytest.mark.parametrize("kind", [list, tuple, np.array, pd.Series])
def test_texts_in_a_pipeline(kind):
    expected = cross_validate(MultinomialNB(), X, TWO).scores
    # Words that no document of the fold's training part has are in no column of its own.
    found = cross_validate(make_pipeline(CountVectorizer(), MultinomialNB()), kind(TEXTS), pd.Series(TWO)).scores
    assert_allclose(found, expected, atol=1e-3)


def test_texts_to_topics():
    pipeline = make_pipeline(TextVectorizer(), TopicRegressor(4, random_state=0))
    result = cross_validate(pipeline, TEXTS, NUMBERS, n_folds=3)
    assert result.mean > 0.5


def test_each_document_is_predicted_once_by_a_model_that_was_fitted_to_the_others():
    Remembering.fitted_to.clear()
    Remembering.asked_for.clear()
    numbers = np.arange(23.0)
    estimator = Remembering()
    cross_validate(estimator, numbers[:, None], numbers, n_folds=4)
    assert not hasattr(estimator, "mean_")
    assert len(Remembering.fitted_to) == 4
    assert_array_equal(np.sort(np.concatenate(Remembering.asked_for)[:, 0]), numbers)
    for (learned, y), asked in zip(Remembering.fitted_to, Remembering.asked_for, strict=True):
        assert_array_equal(learned[:, 0], y)
        assert_array_equal(np.sort(np.concatenate([learned, asked])[:, 0]), numbers)


# Missing targets


@pytest.mark.parametrize(
    ("estimator", "y", "missing"),
    [
        (Ridge(), NUMBERS.tolist(), np.nan),
        (Ridge(), NUMBERS.tolist(), None),
        (Ridge(), Y.tolist(), [np.nan, np.nan]),
        (MultinomialNB(), TWO.tolist(), None),
        (MultinomialNB(), TWO.tolist(), np.nan),
        (MultinomialNB(), THREE.tolist(), None),
        (TopicClassifier(4, n_epochs=2, random_state=0), THREE.tolist(), None),
    ],
    ids=["NaN", "None", "several numbers", "None among names", "NaN among names", "None among classes", "topics"],
)
@pytest.mark.parametrize("is_text", [False, True])
def test_documents_without_a_target_are_left_out(estimator, y, missing, is_text):
    y = [missing if number % 7 == 3 else value for number, value in enumerate(y)]
    kept = [number for number in range(len(y)) if number % 7 != 3]
    documents, kept_documents = (TEXTS, [TEXTS[number] for number in kept]) if is_text else (X, X[kept])
    estimator = make_pipeline(CountVectorizer(), estimator) if is_text else estimator
    expected = cross_validate(estimator, kept_documents, np.array([y[number] for number in kept]))
    assert_array_equal(cross_validate(estimator, documents, y).scores, expected.scores)


@given(st.integers(2, 6), st.booleans(), st.integers(0, 2**32 - 1))
def test_folds_are_of_all_documents_with_a_target(n_folds, is_stratified, seed):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat([0.0, 1.0, np.nan], [12, 18, rng.integers(9)]))
    pairs = folds(y, n_folds, is_stratified=is_stratified, random_state=seed)
    assert len(pairs) == n_folds
    known = np.flatnonzero(y == y)
    assert_array_equal(np.sort(np.concatenate([test for _, test in pairs])), known)
    for train, test in pairs:
        assert_array_equal(np.sort(np.concatenate([train, test])), known)
        if is_stratified:
            assert abs(y[test].sum() - 18 / n_folds) < 1


# What comes back


def test_a_result_is_written_as_in_the_paper():
    result = CrossValidation(np.array([0.734, 0.735, 0.7345]))
    assert str(result) == f"{result}" == "0.7345 (0.0005)"
    with pytest.raises(AttributeError):
        result.scores = np.zeros(2)


def test_a_fold_of_equal_targets_has_no_r2():
    y = np.zeros(20)
    y[0] = 1
    result = cross_validate(Ridge(), X[:20], y, n_folds=4)
    assert np.isnan(result.scores).sum() == 3
    assert np.isnan(result.mean)
    assert str(result) == "nan (nan)"


def test_measures_stay_light():
    """scikit-learn is imported when folds are asked for."""
    program = "import sys, mirrorlda.metrics; print(sorted({'sklearn', 'pandas', 'joblib'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# Errors


@pytest.mark.parametrize(
    ("estimator", "y", "options", "message"),
    [
        (Ridge(), NUMBERS[:-1], {}, "X has 203 documents, but y has 202"),
        (Ridge(), None, {}, "y must hold a target for each document, got None"),
        (Ridge(), [None] * 203, {}, "y has no targets: all 203 are None or NaN"),
        (Ridge(), np.where(np.eye(203, 2), np.nan, Y), {}, r"y\[0\] has some targets but not all"),
        (Ridge(), NUMBERS, {"measure": "r2"}, "measure must be a function of y and of what is predicted, got 'r2'"),
        (Ridge(), NUMBERS, {"n_folds": 1}, "n_folds must be at least 2 and at most the 203 documents with a target, got 1"),
        (Ridge(), [1.0, 2.0, 3.0] + [None] * 200, {}, "at most the 3 documents with a target, got 5"),
        (Ridge(), NUMBERS, {"n_folds": 2.0}, "n_folds must be a whole number of at least 1, got 2.0"),
    ],
)
def test_errors_name_what_is_wrong(estimator, y, options, message):
    with pytest.raises(ValueError, match=message):
        cross_validate(estimator, X, y, **options)


def test_a_corpus_on_disk_has_no_folds(tmp_path):
    with CorpusWriter(tmp_path / "corpus", 40) as writer:
        writer.add(X)
    with pytest.raises(ValueError, match=r"X must be documents in memory, such as matrix\(\) of a corpus, got <Corpus of 203"):
        cross_validate(Ridge(), Corpus(tmp_path / "corpus"), NUMBERS)
    assert cross_validate(MultinomialNB(), Corpus(tmp_path / "corpus").matrix(), TWO).mean > 0.8


def test_measures_of_the_package_fit():
    """As functions of targets and predictions, the defaults and their explicit use agree."""
    assert_array_equal(cross_validate(Ridge(), X, Y, measure=predictive_r2).scores, cross_validate(Ridge(), X, Y).scores)
    hard = cross_validate(RidgeClassifier(), X, TWO, measure=lambda y, predicted: auc(y, predicted == "good"))
    assert hard.mean < cross_validate(RidgeClassifier(), X, TWO).mean
