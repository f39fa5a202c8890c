"""What simpler methods reach on the same documents: the mean or the frequencies, and tf-idf with a linear model."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed

from mirrorlda.data.parts import READ_DOCS, chunks
from mirrorlda.evaluation.bootstrap import Measure, lead, measured
from mirrorlda.evaluation.measures import NumberOutcome, Outcome
from mirrorlda.evaluation.measuring import Evaluation, own_outcome, word_likelihood
from mirrorlda.evaluation.true_targets import Truth, beside, truth_of
from mirrorlda.method.fitted_model import FittedModel, model_of
from mirrorlda.method.inference import check_whole

# Documents times classes or labels: what the linear model learns from, and what the strength of its penalty is chosen on.
_MOST_WORK, _TUNING_WORK = 2_000_000, 40_000
_FEWEST_DOCS = 5000
_MOST_OUTPUTS = 1000
_TUNING_LABELS = 10
# From the strongest penalty to the weakest; the search ends at the first that is no better than the one before.
_RIDGE = (30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03)
_LOGISTIC = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)

# Numbers or probabilities (n_docs, n_outputs) of documents.
Predict = Callable[[Any], np.ndarray]


def with_baselines(
    evaluation: Evaluation,
    model: Any,
    X_train: Any,
    y_train: Any,
    X_test: Any,
    y_test: Any,
    *,
    max_docs: int = 100_000,
    n_jobs: int | None = None,
) -> Evaluation:
    """The evaluation, with what simpler methods reach that learn from the training documents and are measured in the same way.

    They are the mean, the most frequent class or the label frequencies of the training documents; and ridge or logistic
    regression on tf-idf (sublinear), with the penalty that is best, by the main measure, on a tenth of the training documents
    (of at most 40,000, fewer with several classes or labels), then fitted to all. For topics it is the frequencies of the words.
    The linear model learns from fewer documents where documents times classes or labels are more than 2 million, and is left
    out with more than 1,000 of them.

    Parameters
    ----------
    evaluation : Evaluation
        Of `model` on the test documents.
    model : fitted estimator, or a Pipeline that ends with one
    X_train, y_train : as for `mirrorlda.evaluation.evaluate`
        What the model was fitted to.
    X_test, y_test : as for `mirrorlda.evaluation.evaluate`
        What the evaluation is of.
    max_docs : int
        Of more training documents, the baselines learn from a random choice of so many; their name says so.
    n_jobs : int, optional
        Processes for labels, which have a logistic regression each.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> from mirrorlda import TopicRegressor
    >>> from mirrorlda.evaluation.baselines import with_baselines
    >>> from mirrorlda.datasets import make_topics
    >>> from mirrorlda.evaluation import evaluate
    >>> data = make_topics(n_docs=600, n_words=60, n_topics=3, n_outputs=1, random_state=0)
    >>> train, test = (data.X[:400], data.y[:400]), (data.X[400:], data.y[400:])
    >>> model = TopicRegressor(random_state=0).fit(*train)
    >>> evaluation = with_baselines(evaluate(model, *test), model, *train, *test)
    >>> list(evaluation.baselines)
    ['mean', 'tf-idf, ridge regression']
    """
    check_whole("max_docs", max_docs)
    read = model_of(model)
    test = read.counted(X_test)
    outcomes = _outcomes(evaluation, read, read.counted(X_train), y_train, test, y_test, max_docs, n_jobs)
    baselines, leads, own = dict[str, dict[str, Measure]](), dict[str, Measure](), None
    for name, outcome in outcomes:
        baselines[name] = _measured(evaluation, outcome)
        if read.is_supervised:
            own = own or own_outcome(read, truth_of(read, test, y_test))
            found = lead(own, outcome, evaluation.main)
            leads |= {} if found is None else {name: found}
    return replace(evaluation, baselines=baselines, leads=leads)


def _measured(evaluation: Evaluation, outcome: Outcome) -> dict[str, Measure]:
    if outcome.n_docs != evaluation.n_docs:
        raise ValueError(f"the evaluation is of {evaluation.n_docs} documents, but X_test has {outcome.n_docs} with a target")
    return {name: measure for name, measure in measured(outcome).items() if name in evaluation.measures}


def _outcomes(
    evaluation: Evaluation,
    model: FittedModel,
    X_train: Any,
    y_train: Any,
    X_test: Any,
    y_test: Any,
    max_docs: int,
    n_jobs: int | None,
) -> Iterator[tuple[str, Outcome]]:
    if not model.is_supervised:
        some, capped = _some(model.collection(X_train).n_docs, max_docs)
        yield "word frequencies" + capped, _of_word_frequencies(model, X_train, some, X_test)
        return
    train, test = truth_of(model, X_train, y_train), truth_of(model, X_test, y_test)
    some, capped = _some(len(train.y), max_docs)
    if evaluation.task == "classification":
        # What the model does not know, it has not learned from either.
        some = some[train.y[some] < train.n_known]
    y = train.y[:, : train.n_known] if train.y.ndim == 2 else train.y
    simplest = {"regression": "mean", "classification": "most frequent class", "multilabel": "label frequencies"}[evaluation.task]
    shares = _shares(evaluation, y[some], train.n_known)
    yield simplest + capped, _outcome(evaluation, test, np.tile(shares, (len(test.y), 1)))
    if evaluation.task != "regression" and train.n_known > _MOST_OUTPUTS:
        return
    fewer, _ = _some(len(some), max(_FEWEST_DOCS, _MOST_WORK // train.n_known))
    if len(fewer) < len(some):
        some, capped = some[fewer], f" ({len(fewer):,} documents)"
    predict = _tuned(evaluation, _matrix(model.collection(train.X).matrix(some)), y[some], shares, n_jobs)
    found = model.collection(test.X)
    predicted = np.concatenate([predict(found.matrix(numbers)) for numbers in chunks(len(test.y), READ_DOCS)])
    linear = "ridge" if evaluation.task == "regression" else "logistic"
    yield f"tf-idf, {linear} regression{capped}", _outcome(evaluation, test, predicted)


def _some(n_docs: int, max_docs: int) -> tuple[np.ndarray, str]:
    """Numbers of at most max_docs documents, and what says so where they are not all."""
    if n_docs <= max_docs:
        return np.arange(n_docs), ""
    return np.sort(np.random.default_rng(0).choice(n_docs, max_docs, replace=False)), f" ({max_docs:,} documents)"


def _shares(evaluation: Evaluation, y: np.ndarray, n_known: int) -> np.ndarray:
    """Means of numbers, shares of classes or labels."""
    if evaluation.task == "classification":
        return np.bincount(y, minlength=n_known) / len(y)
    return np.asarray(y.mean(axis=0), np.float64)


def _outcome(evaluation: Evaluation, truth: Truth, predicted: np.ndarray) -> Outcome:
    """Of predicted numbers or probabilities."""
    if evaluation.task == "regression":
        return NumberOutcome(truth.names, truth.y, predicted)
    return beside(truth, predicted.argmax(axis=1) if truth.y.ndim == 1 else (predicted > 0.5).astype(np.int8), predicted)


def _tuned(evaluation: Evaluation, counts: sp.csr_array, y: np.ndarray, shares: np.ndarray, n_jobs: int | None) -> Predict:
    """Fitted to all, with the penalty that is best on some that were held out."""
    order = np.random.default_rng(0).permutation(len(y))[: max(_FEWEST_DOCS, _TUNING_WORK // len(shares))]
    judge, learn = np.split(order, [max(1, len(order) // 10)])
    if len(learn) < 2:
        return lambda X: np.tile(shares, (X.shape[0], 1))
    some = np.arange(len(shares))
    if evaluation.task == "multilabel" and len(shares) > _TUNING_LABELS:
        # Frequent and rare ones alike.
        some = np.argsort(shares, kind="stable")[np.linspace(0, len(shares) - 1, _TUNING_LABELS).astype(int)]
    y_some = y[:, some] if evaluation.task == "multilabel" else y
    held_out = Truth(None, y_some[judge], [str(number) for number in some], len(some))
    tfidf, X = _tfidf(counts[learn])
    X_judge = tfidf.transform(counts[judge])
    strengths = _RIDGE if evaluation.task == "regression" else _LOGISTIC
    best, best_score = strengths[0], -np.inf
    for strength in strengths:
        predict = _linear(evaluation, X, y_some[learn], shares[some], strength, n_jobs)
        score = _score(evaluation, _outcome(evaluation, held_out, predict(X_judge)))
        if score <= best_score:
            break
        best, best_score = strength, score
    tfidf, X = _tfidf(counts)
    predict = _linear(evaluation, X, y, shares, best, n_jobs)
    return lambda X: predict(tfidf.transform(_matrix(X)))


def _score(evaluation: Evaluation, outcome: Outcome) -> float:
    """The main measure, or accuracy or the error where it has no value; higher is better."""
    values = outcome.measures(np.asarray(outcome.columns().sum(axis=1)).reshape(-1, 1))
    for name, sign in ((evaluation.main, -1 if evaluation.main == "RMSE" else 1), ("RMSE", -1), ("accuracy", 1)):
        if name in values and np.isfinite(values[name][0]):
            return float(sign * values[name][0])
    return -np.inf


def _tfidf(counts: sp.csr_array) -> tuple[Any, Any]:
    from sklearn.feature_extraction.text import TfidfTransformer

    tfidf = TfidfTransformer(sublinear_tf=True)
    return tfidf, tfidf.fit_transform(counts)


def _linear(evaluation: Evaluation, X: Any, y: np.ndarray, shares: np.ndarray, strength: float, n_jobs: int | None) -> Predict:
    """Numbers or probabilities by a linear model."""
    from sklearn.linear_model import Ridge

    if evaluation.task == "regression":
        # lsqr, with 25,000 reviews of 20,000 words: 0.2 s, and as good as with any other solver.
        ridge = Ridge(alpha=strength, solver="lsqr", tol=1e-3).fit(X, y)
        return lambda X: np.asarray(ridge.predict(X), np.float64).reshape(X.shape[0], -1)
    if evaluation.task == "classification":
        fitted = _logistic(X, y, strength)
        return lambda X: _of_all_classes(fitted, X, shares)
    models = Parallel(n_jobs=n_jobs)(delayed(_logistic)(X, label, strength) for label in y.T)

    def predict(X: Any) -> np.ndarray:
        columns = [
            np.full(X.shape[0], share) if fitted is None else fitted.predict_proba(X)[:, 1]
            for fitted, share in zip(models, shares, strict=True)
        ]
        return np.column_stack(columns).astype(np.float64)

    return predict


def _logistic(X: Any, y: np.ndarray, strength: float) -> Any:
    """None where there is but one class."""
    from sklearn.linear_model import LogisticRegression

    if (y == y[0]).all():
        return None
    with warnings.catch_warnings():
        # A solver that stops short of its tolerance leaves a baseline all the same.
        warnings.simplefilter("ignore")
        # 20 newsgroups: 1.7 s, lbfgs as close to the minimum 3.4 s. Neither is near it with a tolerance of 1e-3.
        return LogisticRegression(C=strength, solver="newton-cg", tol=1e-4, max_iter=50).fit(X, y)


def _of_all_classes(fitted: Any, X: Any, shares: np.ndarray) -> np.ndarray:
    """Probabilities, 0 for classes that the documents it was fitted to do not have."""
    if fitted is None:
        return np.tile(shares, (X.shape[0], 1))
    p = np.zeros((X.shape[0], len(shares)))
    p[:, fitted.classes_] = fitted.predict_proba(X)
    return p


def _matrix(counts: Any) -> sp.csr_array:
    return sp.csr_array(counts if sp.issparse(counts) else np.asarray(counts), dtype=np.float32)


def _of_word_frequencies(model: FittedModel, X_train: Any, some: np.ndarray, X_test: Any) -> Outcome:
    """Every document has the words of the training documents in their frequencies, each counted once more than it occurs."""
    found, frequencies = model.collection(X_train), np.ones(model.n_words)
    for numbers in chunks(len(some), READ_DOCS):
        documents = found.documents(some[numbers])
        frequencies += np.bincount(documents.indices, documents.counts, len(frequencies))
    return word_likelihood(model, X_test, lambda numbers, rows, words: (frequencies / frequencies.sum())[words])
