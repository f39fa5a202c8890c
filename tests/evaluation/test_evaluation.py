"""Measures against scikit-learn's, intervals against simulation, and evaluations as data."""

import json
import math
from copy import deepcopy

import numpy as np
import pytest
from mirrorlda.datasets import make_topics
from mirrorlda.responses import Response
from sklearn import metrics
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.pipeline import make_pipeline

from mirrorlda import CorpusWriter, Target, TopicClassifier, TopicModel, TopicRegressor
from mirrorlda.data.corpus.corpus import Corpus
from mirrorlda.evaluation import Evaluation, Measure, evaluate
from mirrorlda.evaluation.bootstrap import measured
from mirrorlda.evaluation.curves import curves_of
from mirrorlda.evaluation.measures import ClassOutcome, LabelOutcome, NumberOutcome, WordLikelihood

GOOD = ["clean quiet room", "quiet lovely hotel", "lovely clean pool"]
BAD = ["noisy dirty room", "rude noisy staff", "dirty pool rude"]


def values_of(outcome, **options):
    return {name: measure.value for name, measure in measured(outcome, **options).items()}


def probabilities(rng, n, n_classes):
    return rng.dirichlet(np.full(n_classes, 0.7), n)


def classes(n=500, n_classes=4, seed=0, names=None):
    rng = np.random.default_rng(seed)
    p = probabilities(rng, n, n_classes)
    truth = np.array([rng.choice(n_classes, p=0.6 * row + 0.4 / n_classes) for row in p])
    return ClassOutcome(names or [f"class {c}" for c in range(n_classes)], n_classes, truth, p.argmax(axis=1), p)


def labels(n=400, n_labels=5, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random((n, n_labels)) ** np.arange(1, n_labels + 1)
    truth = (rng.random((n, n_labels)) < p).astype(int)
    return LabelOutcome([f"label {c}" for c in range(n_labels)], n_labels, truth, (p > 0.5).astype(int), p)


def plain_calibration_error(p, came_true):
    """Ten bins of equal counts, for probabilities that all differ."""
    parts = np.array_split(np.argsort(p), 10)
    return sum(abs(p[part].mean() - came_true[part].mean()) * len(part) for part in parts) / len(p)


def fitted(estimator, y_options, n_docs=300, **options):
    data = make_topics(n_docs=n_docs, n_words=40, n_topics=3, gamma=5, random_state=1, **y_options)
    return estimator(n_topics=3, n_epochs=2, random_state=0, **options).fit(data.X, data.y), data


# Values.


@pytest.mark.parametrize("n_targets", [1, 3])
def test_measures_of_numbers_are_those_of_scikit_learn(n_targets):
    rng = np.random.default_rng(0)
    truth = 1e6 + rng.normal(size=(200, n_targets))
    predicted = truth + 0.5 * rng.normal(size=truth.shape)
    names = [f"t{number}" for number in range(n_targets)]
    values = values_of(NumberOutcome(names, truth, predicted), n_bootstrap=10)
    assert values["R2"] == pytest.approx(metrics.r2_score(truth, predicted))
    assert values["RMSE"] == pytest.approx(metrics.root_mean_squared_error(truth, predicted))
    assert values["MAE"] == pytest.approx(metrics.mean_absolute_error(truth, predicted))
    for number, name in enumerate(names if n_targets > 1 else []):
        assert values[f"R2 {name}"] == pytest.approx(metrics.r2_score(truth[:, number], predicted[:, number]))
    assert len(values) == (3 if n_targets == 1 else 6)


def test_measures_of_two_classes_are_those_of_scikit_learn():
    outcome = classes(n_classes=2)
    p, truth = outcome.probabilities[:, 1].round(2), outcome.truth
    tied = ClassOutcome(outcome.names, 2, truth, (p > 0.5).astype(int), np.column_stack([1 - p, p]))
    values = values_of(tied, n_bootstrap=10)
    assert values["AUC"] == pytest.approx(metrics.roc_auc_score(truth, p))
    assert values["accuracy"] == pytest.approx(metrics.accuracy_score(truth, p > 0.5))
    assert values["F1"] == pytest.approx(metrics.f1_score(truth, p > 0.5))
    assert values["log loss"] == pytest.approx(metrics.log_loss(truth, p))
    assert values_of(outcome)["calibration error"] == pytest.approx(
        plain_calibration_error(outcome.probabilities[:, 1], truth == 1)
    )


def test_measures_of_more_classes_are_those_of_scikit_learn():
    outcome = classes()
    p, truth = outcome.probabilities, outcome.truth
    values = values_of(outcome, n_bootstrap=10)
    assert values["AUC"] == pytest.approx(metrics.roc_auc_score(truth, p, multi_class="ovr"))
    assert values["accuracy"] == pytest.approx(metrics.accuracy_score(truth, outcome.predicted))
    assert values["F1"] == pytest.approx(metrics.f1_score(truth, outcome.predicted, average="macro"))
    assert values["log loss"] == pytest.approx(metrics.log_loss(truth, p))
    assert values["calibration error"] == pytest.approx(plain_calibration_error(p.max(axis=1), truth == outcome.predicted))


def test_measures_of_labels_are_those_of_scikit_learn():
    outcome = labels()
    truth, predicted, p = outcome.truth, outcome.predicted, outcome.probabilities
    values = values_of(outcome, n_bootstrap=10)
    assert values["F1"] == pytest.approx(metrics.f1_score(truth, predicted, average="micro"))
    assert values["F1 macro"] == pytest.approx(metrics.f1_score(truth, predicted, average="macro"))
    assert values["AUC"] == pytest.approx(metrics.roc_auc_score(truth, p))
    assert values["accuracy"] == pytest.approx(metrics.accuracy_score(truth, predicted))
    assert values["log loss"] == pytest.approx(np.mean([metrics.log_loss(t, q) for t, q in zip(truth.T, p.T, strict=True)]))
    assert values["calibration error"] == pytest.approx(plain_calibration_error(p.ravel(), truth.ravel()))


def test_classes_that_do_not_occur_are_not_in_a_macro_mean():
    outcome = classes(n_classes=3)
    kept = outcome.truth != 2
    p = outcome.probabilities[kept]
    predicted = np.minimum(outcome.predicted[kept], 1)
    values = values_of(ClassOutcome(outcome.names, 3, outcome.truth[kept], predicted, p))
    assert values["F1"] == pytest.approx(metrics.f1_score(outcome.truth[kept], predicted, average="macro"))
    areas = [metrics.roc_auc_score(outcome.truth[kept] == c, p[:, c]) for c in (0, 1)]
    assert values["AUC"] == pytest.approx(np.mean(areas))


def test_calibration_of_planted_probabilities():
    rng = np.random.default_rng(0)
    p = rng.random(40_000)

    def of(chance):
        truth = (rng.random(len(p)) < chance).astype(int)
        return measured(ClassOutcome(["no", "yes"], 2, truth, (p > 0.5).astype(int), np.column_stack([1 - p, p])))[
            "calibration error"
        ]

    right, wrong = of(p), of(p**2)
    assert right.low == 0
    assert right.value < 0.012
    # The mean of p - p ** 2 is 1 / 6.
    assert wrong.low < 1 / 6 < wrong.high
    assert wrong.high - wrong.low < 0.02


def test_constant_probabilities_are_one_bin():
    truth = np.repeat([0, 1], [60, 40])
    p = np.full((100, 2), [0.6, 0.4])
    assert values_of(ClassOutcome(["a", "b"], 2, truth, np.zeros(100, int), p))["calibration error"] == pytest.approx(
        0, abs=1e-12
    )


def test_likelihood_is_that_of_the_model():
    model, data = fitted(TopicModel, {})
    found = evaluate(model, data.X).measures
    assert found["log-likelihood per word"].value == pytest.approx(model.score(data.X), rel=1e-5)
    assert found["perplexity"].value == pytest.approx(math.exp(-model.score(data.X)), rel=1e-4)


# Intervals.


def test_intervals_cover_the_truth_as_often_as_they_say():
    """200 samples of 200 documents: the standard deviation of a rate of 95 % is 1.5 %."""
    rng = np.random.default_rng(0)
    covered = {"RMSE": 0, "MAE": 0, "R2": 0, "AUC": 0, "accuracy": 0, "log loss": 0, "calibration error": 0}
    # y = prediction + noise of standard deviation 1; scores of the two classes are a standard deviation apart, and log odds.
    truth_of = {"RMSE": 1, "MAE": math.sqrt(2 / math.pi), "R2": 0.5, "AUC": 0.5 * (1 + math.erf(0.5)), "accuracy": 0.6914625}
    score, kind = rng.normal(size=1_000_000), rng.random(1_000_000) < 0.5
    truth_of["log loss"] = float(np.logaddexp(0, -np.where(kind, 1, -1) * (score + kind - 0.5)).mean())
    truth_of["calibration error"] = 0
    for seed in range(200):
        predicted = rng.normal(size=(200, 1))
        found = measured(NumberOutcome(["y"], predicted + rng.normal(size=(200, 1)), predicted), 300, seed)
        kind = (rng.random(200) < 0.5).astype(int)
        p = 1 / (1 + np.exp(-(rng.normal(size=200) + kind - 0.5)))
        found |= measured(ClassOutcome(["a", "b"], 2, kind, (p > 0.5).astype(int), np.column_stack([1 - p, p])), 300, seed)
        for name in covered:
            covered[name] += found[name].low <= truth_of[name] <= found[name].high
    assert all(0.9 <= count / 200 <= 0.98 for count in covered.values()), covered


def test_groups_of_documents_give_the_same_intervals(monkeypatch):
    outcome = classes(n=6000)
    each = measured(outcome, 2000)
    monkeypatch.setattr("mirrorlda.evaluation.bootstrap._MOST_GROUPS", 1500)
    for name, grouped in measured(outcome, 2000).items():
        assert grouped.value == each[name].value
        assert grouped.high - grouped.low == pytest.approx(each[name].high - each[name].low, rel=0.12)


def test_intervals_shrink_with_the_root_of_the_documents():
    few, many = (measured(classes(n=n, n_classes=2))["AUC"] for n in (1000, 16_000))
    assert (few.high - few.low) / (many.high - many.low) == pytest.approx(4, rel=0.25)


def test_the_same_seed_gives_the_same_intervals():
    outcome = labels()
    assert measured(outcome, 50, 3) == measured(outcome, 50, 3)
    assert measured(outcome, 50, 3) != measured(outcome, 50, 4)


@pytest.mark.parametrize("wrong", [0, 2.5, True])
def test_the_number_of_resamples_is_checked(wrong):
    with pytest.raises(ValueError, match="n_bootstrap must be a whole number of at least 1"):
        measured(labels(), wrong)


# Models, documents and targets.

ESTIMATORS = {
    "gaussian": (TopicRegressor, {"n_outputs": 1}, {}),
    "several": (TopicRegressor, {"n_outputs": 2}, {}),
    "two": (TopicClassifier, {"n_classes": 2}, {}),
    "more": (TopicClassifier, {"n_classes": 3}, {}),
    "topics": (TopicModel, {}, {}),
}


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_every_estimator_is_evaluated(kind):
    estimator, y_options, options = ESTIMATORS[kind]
    model, data = fitted(estimator, y_options, **options)
    evaluation = evaluate(model, data.X, data.y, n_bootstrap=20)
    assert evaluation.n_docs == 300
    scored = {"two": "accuracy", "more": "accuracy", "topics": "log-likelihood per word"}.get(kind, "R2")
    assert evaluation.measures[scored].value == pytest.approx(model.score(data.X, data.y), rel=1e-4)
    main = {"two": "AUC", "more": "accuracy", "topics": "log-likelihood per word"}.get(kind, "R2")
    assert evaluation.main == main
    assert all(measure.low <= measure.value <= measure.high for measure in evaluation.measures.values())
    outputs = {"gaussian": ["prediction"], "several": ["output 0", "output 1"], "two": ["0", "1"], "more": ["0", "1", "2"]}
    assert evaluation.outputs == outputs.get(kind, [])
    assert Evaluation.from_json(json.loads(json.dumps(evaluation.as_json(), allow_nan=False))) == evaluation


@pytest.mark.parametrize("response", ["poisson", "ordinal"])
def test_other_responses_are_measured_in_the_unit_of_the_target(response):
    data = make_topics(n_docs=300, n_words=40, n_topics=3, n_outputs=1, random_state=0)
    stars = np.digitize(data.y, np.quantile(data.y, [0.3, 0.6])) + 1.0
    model = TopicRegressor(n_topics=3, response=response, random_state=0).fit(data.X, stars)
    found = evaluate(model, data.X, stars)
    assert found.task == "regression"
    assert found.measures["R2"].value == pytest.approx(metrics.r2_score(stars, model.predict(data.X)), rel=1e-4)


class Hinge(Response):
    """A response of a user's own: no probabilities."""

    def loss(self, scores, y):
        sign = 2.0 * (np.arange(scores.shape[1]) == y[:, None]) - 1
        wrong = np.maximum(0, 1 - sign * scores)
        return wrong.sum(axis=1), -sign * (wrong > 0)

    def predict(self, scores):
        return scores.argmax(axis=1)

    def score(self, scores, losses, y, weights):
        return -float(np.average(losses, weights=weights))

    def checked(self, y):
        return y


def test_a_response_without_probabilities_has_the_measures_that_need_none():
    model, data = fitted(TopicClassifier, {"n_classes": 2}, response=Hinge())
    evaluation = evaluate(model, data.X, data.y)
    assert list(evaluation.measures) == ["accuracy", "F1"]
    assert evaluation.main == "accuracy"
    assert list(evaluation.curves) == ["confusion"]
    assert evaluation.measures["accuracy"].value == pytest.approx(model.score(data.X, data.y))


def test_labels_of_a_model():
    data = make_topics(n_docs=300, n_words=40, n_topics=3, random_state=0)
    y = (data.theta > 0.3).astype(int)
    model = TopicClassifier(n_topics=3, n_epochs=2, random_state=0).fit(data.X, y)
    evaluation = evaluate(model, data.X, y)
    assert (evaluation.task, evaluation.main) == ("multilabel", "F1")
    assert evaluation.measures["accuracy"].value == pytest.approx(model.score(data.X, y))
    assert [entry["n_docs"] for entry in evaluation.curves["labels"]] == y.sum(axis=0).tolist()
    with pytest.raises(ValueError, match=r"y has shape \(300, 2\), expected \(n_docs, 3\)"):
        evaluate(model, data.X, y[:, :2])
    with pytest.raises(ValueError, match=r"y\[0, 0\] is 2, expected 0 or 1"):
        evaluate(model, data.X, y + 2)


@pytest.mark.parametrize("between", [[], [TfidfTransformer()]])
def test_texts_of_a_pipeline(between):
    texts, verdicts = (GOOD + BAD) * 10, (["good"] * 3 + ["bad"] * 3) * 10
    model = make_pipeline(CountVectorizer(), *between, TopicClassifier(n_topics=2, random_state=0)).fit(texts, verdicts)
    evaluation = evaluate(model, texts, verdicts)
    assert evaluation.measures["accuracy"].value == pytest.approx(model.score(texts, verdicts))
    assert evaluation.outputs == ["bad", "good"]
    assert evaluate(model, np.array(texts), np.array(verdicts)) == evaluation
    assert evaluate(model, model[0].transform(texts), verdicts) == evaluation


def test_a_pipeline_that_takes_counts():
    data = make_topics(n_docs=200, n_words=40, n_topics=3, n_outputs=1, random_state=0)
    model = make_pipeline(TfidfTransformer(), TopicRegressor(n_topics=3, random_state=0)).fit(data.X, data.y)
    found = evaluate(model, data.X, data.y).measures["R2"].value
    assert found == pytest.approx(model.score(data.X, data.y), rel=1e-4)


@pytest.mark.parametrize("missing", [None, math.nan])
def test_documents_without_a_target_are_left_out_and_counted(missing):
    model, data = fitted(TopicRegressor, {"n_outputs": 1})
    y = data.y.tolist()
    y[3] = y[7] = missing
    evaluation = evaluate(model, data.X, y)
    kept = np.delete(np.arange(300), [3, 7])
    assert (evaluation.n_docs, evaluation.n_left_out) == (298, 2)
    assert evaluation.notes == ["2 documents without a target left out"]
    assert evaluation.measures["R2"].value == pytest.approx(model.score(data.X[kept], data.y[kept]), rel=1e-4)


def test_whole_numbers_among_others_are_numbers():
    model, data = fitted(TopicRegressor, {"n_outputs": 1})
    y = data.y.tolist()
    y[0], y[1] = None, 2
    assert evaluate(model, data.X, y).n_docs == 299


def test_a_missing_class_is_none_or_minus_one():
    data = make_topics(n_docs=300, n_words=40, n_topics=3, n_classes=2, gamma=5, random_state=1)
    words = np.array(["no", "yes"])[data.y]
    model = TopicClassifier(n_topics=3, n_epochs=2, random_state=0).fit(data.X, words)
    assert evaluate(model, data.X, [None, *words[1:].tolist()]).n_left_out == 1
    numbered = TopicClassifier(n_topics=3, n_epochs=2, random_state=0).fit(data.X, data.y)
    assert evaluate(numbered, data.X, np.r_[[-1, -1], data.y[2:]]).n_left_out == 2


def corpus_of(path, data, y, target):
    with CorpusWriter(path, n_words=40, target=target) as writer:
        writer.add(data.X, y)
    return Corpus(path)


def test_a_corpus_holds_its_targets(tmp_path):
    data = make_topics(n_docs=300, n_words=40, n_topics=3, n_outputs=1, random_state=0)
    y = np.where(np.arange(300) % 10 == 0, np.nan, data.y)
    corpus = corpus_of(tmp_path / "c", data, y, Target("numbers", ("stars",)))
    model = TopicRegressor(n_topics=3, n_epochs=2, random_state=0).fit(corpus)
    evaluation = evaluate(model, corpus)
    assert (evaluation.n_docs, evaluation.n_left_out, evaluation.outputs) == (270, 30, ["stars"])
    assert evaluation.measures["R2"].value == pytest.approx(model.score(corpus), rel=1e-4)
    topics = TopicModel(n_topics=3, n_epochs=2, random_state=0).fit(corpus)
    found = evaluate(topics, corpus)
    assert found.n_docs == 300
    assert found.measures["log-likelihood per word"].value == pytest.approx(topics.score(corpus), rel=1e-5)
    with pytest.raises(ValueError, match="a corpus holds its targets"):
        evaluate(model, corpus, y)


def test_classes_that_the_model_does_not_know_count_as_wrong():
    data = make_topics(n_docs=300, n_words=40, n_topics=3, n_classes=3, gamma=5, random_state=1)
    names = np.array(["a", "b", "c"])[data.y]
    kept = names != "c"
    model = TopicClassifier(n_topics=3, n_epochs=2, random_state=0).fit(data.X[kept], names[kept])
    evaluation = evaluate(model, data.X, names)
    predicted = model.predict(data.X)
    assert evaluation.n_docs == 300
    assert evaluation.measures["accuracy"].value == pytest.approx(metrics.accuracy_score(names, predicted))
    assert evaluation.measures["F1"].value == pytest.approx(metrics.f1_score(names == "b", predicted == "b"))
    p = model.predict_proba(data.X[kept])[:, 1]
    assert evaluation.measures["AUC"].value == pytest.approx(metrics.roc_auc_score(names[kept] == "b", p), abs=1e-6)
    assert evaluation.curves["confusion"]["labels"] == ["a", "b", "c"]
    assert sum(evaluation.curves["confusion"]["counts"][2]) == (~kept).sum()
    assert f"{(~kept).sum()} documents of classes that the model does not know ('c')" in evaluation.notes[0]
    with pytest.raises(ValueError, match=r"y has the classes 'x', none of which the model knows: it knows 'a', 'b'"):
        evaluate(model, data.X, ["x"] * 300)


def test_labels_that_the_model_does_not_know_count_as_missed(tmp_path):
    data = make_topics(n_docs=300, n_words=40, n_topics=3, random_state=0)
    tags = [[name for name, share in zip("zxy", theta, strict=True) if share > 0.3] for theta in data.theta]
    few = [[tag for tag in found if tag != "x"] for found in tags]
    known = corpus_of(tmp_path / "few", data, few, Target("labels", ("tags",)))
    model = TopicClassifier(n_topics=3, n_epochs=2, random_state=0).fit(known)
    corpus = corpus_of(tmp_path / "all", data, tags, Target("labels", ("tags",)))
    evaluation = evaluate(model, corpus)
    truth = np.array([[name in found for name in ("y", "z", "x")] for found in tags])
    predicted = np.column_stack([model.predict(data.X), np.zeros(300)])
    assert evaluation.outputs == ["y", "z"]
    assert evaluation.measures["F1"].value == pytest.approx(metrics.f1_score(truth, predicted, average="micro"))
    assert [entry["name"] for entry in evaluation.curves["labels"]] == ["y", "z", "x"]
    assert "('x') count as not predicted" in evaluation.notes[0]
    assert evaluate(model, known).notes == []


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "y is missing"),
        ([1.0, 2.0], "X has 300 documents, but y has 2"),
        (np.zeros((300, 2)), "y has 2 targets a document, but the model has 1"),
        ([math.inf] * 300, r"y\[0\] is inf, expected a finite number"),
        ([math.nan] * 300, "y has no targets: all 300 are None or NaN"),
        (["a"] * 300, "y must hold numbers"),
    ],
)
def test_errors_name_what_is_wrong_with_y(y, message):
    model, data = fitted(TopicRegressor, {"n_outputs": 1})
    with pytest.raises(ValueError, match=message):
        evaluate(model, data.X, y)


# Data that leave some measures without a value.


def degenerate():
    one = np.array([[0.3, 0.7]])
    yield "one document", NumberOutcome(["y"], np.ones((1, 1)), np.zeros((1, 1))), {"RMSE", "MAE"}
    yield "constant target", NumberOutcome(["y"], np.full((50, 1), 0.1), np.zeros((50, 1))), {"RMSE", "MAE"}
    some = {"accuracy", "F1", "log loss", "calibration error"}
    yield "one class", ClassOutcome(["a", "b"], 2, np.ones(9, int), np.ones(9, int), one.repeat(9, axis=0)), some
    yield "the first class", ClassOutcome(["a", "b"], 2, np.zeros(9, int), np.zeros(9, int), one.repeat(9, axis=0)), some - {"F1"}
    yield "one document of a class", ClassOutcome(["a", "b"], 2, np.ones(1, int), np.zeros(1, int), one), some
    yield "certain and wrong", ClassOutcome(["a", "b"], 2, np.ones(2, int), np.zeros(2, int), np.eye(2)[[0, 0]]), some
    none = np.zeros((4, 2), int)
    yield "no labels", LabelOutcome(["a", "b"], 2, none, none, none + 0.1), {"accuracy", "log loss", "calibration error"}
    yield "an empty document", WordLikelihood(np.array([-3.0, 0]), np.array([2.0, 0])), {"log-likelihood per word", "perplexity"}


@pytest.mark.parametrize(("outcome", "names"), [pytest.param(*rest, id=name) for name, *rest in degenerate()])
def test_measures_without_a_value_are_not_there(outcome, names):
    found = measured(outcome, 50)
    assert set(found) == names
    main = next(iter(found))
    evaluation = Evaluation(outcome.task, outcome.n_docs, [], main, found, curves=curves_of(outcome))
    assert Evaluation.from_json(json.loads(json.dumps(evaluation.as_json(), allow_nan=False))) == evaluation
    assert str(evaluation)


def test_no_documents_and_no_words_are_errors():
    model, data = fitted(TopicRegressor, {"n_outputs": 1})
    with pytest.raises(ValueError, match="there is nothing to measure: X has no documents"):
        evaluate(model, data.X[:0], data.y[:0])
    topics, data = fitted(TopicModel, {})
    with pytest.raises(ValueError, match="X holds no words"):
        evaluate(topics, data.X * 0)


# Curves.


def test_curves_of_numbers():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(3000, 1))
    curves = curves_of(NumberOutcome(["y"], truth, truth * 0))
    [scatter], [residuals] = curves["scatter"], curves["residuals"]
    assert len(scatter["truth"]) == len(scatter["predicted"]) == 1000
    assert set(scatter["truth"]) <= {float(f"{value:.6g}") for value in truth[:, 0]}
    assert sum(residuals["counts"]) == 3000
    assert residuals["edges"] == pytest.approx(np.linspace(truth.min(), truth.max(), 41).tolist(), rel=1e-4, abs=1e-4)


def test_curves_of_classes():
    outcome = classes(n=3000, n_classes=2)
    curves = curves_of(outcome)
    expected = metrics.confusion_matrix(outcome.truth, outcome.predicted)
    assert curves["confusion"] == {"labels": ["class 0", "class 1"], "counts": expected.tolist()}
    [roc], [calibration] = curves["roc"], curves["calibration"]
    assert roc["name"] == calibration["name"] == "class 1"
    assert 100 < len(roc["fpr"]) <= 200
    assert (roc["fpr"][0], roc["tpr"][0], roc["fpr"][-1], roc["tpr"][-1]) == (0, 0, 1, 1)
    assert metrics.auc(roc["fpr"], roc["tpr"]) == pytest.approx(roc["auc"], abs=0.002)
    assert calibration["counts"] == [300] * 10
    gaps = np.abs(np.subtract(calibration["predicted"], calibration["observed"]))
    assert gaps.mean() == pytest.approx(values_of(outcome)["calibration error"], abs=1e-4)


def test_many_classes_are_drawn_in_part():
    outcome = classes(n=4000, n_classes=60)
    curves = curves_of(outcome)
    assert len(curves["confusion"]["labels"]) == 50
    assert curves["confusion"]["labels"][-1] == "other classes"
    assert sum(map(sum, curves["confusion"]["counts"])) == 4000
    assert len(curves["roc"]) == 20
    frequent = np.argsort(-np.bincount(outcome.truth), kind="stable")[:20]
    assert {roc["name"] for roc in curves["roc"]} == {f"class {c}" for c in frequent}


# Evaluations as data.


def an_evaluation(kind="two"):
    outcome = {
        "two": classes(n_classes=2),
        "labels": labels(),
        "numbers": NumberOutcome(["y"], np.eye(4)[:, :1], np.ones((4, 1))),
    }[kind]
    found = measured(outcome, 20)
    return Evaluation(
        outcome.task, outcome.n_docs, ["a"], outcome.main, found, {"mean": found}, curves_of(outcome), 3, ["a note"]
    )


@pytest.mark.parametrize("kind", ["two", "labels", "numbers"])
def test_evaluations_come_back_from_json(kind):
    evaluation = an_evaluation(kind)
    assert Evaluation.from_json(json.loads(json.dumps(evaluation.as_json(), allow_nan=False))) == evaluation


def places(value, path=()):
    """Where anything stands in a JSON value; of long lists, the first places."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for name, item in items:
        yield from places(item, (*path, name))


@pytest.mark.parametrize("kind", ["two", "labels", "numbers"])
@pytest.mark.parametrize("wrong", [math.nan, math.inf, -1e400, [[]], {"x": None}, 10**400], ids=str)
def test_altered_evaluations_are_refused(kind, wrong):
    whole = an_evaluation(kind).as_json()
    for path in places(whole):
        altered = deepcopy(whole)
        within = altered
        for name in path[:-1]:
            within = within[name]
        if path:
            within[path[-1]] = wrong
        else:
            altered = wrong
        with pytest.raises(ValueError, match="of an evaluation is not what was expected"):
            Evaluation.from_json(altered)


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        (("task",), "topics"),
        (("task",), "other"),
        (("n_docs",), -1),
        (("n_docs",), 1.5),
        (("n_docs",), True),
        (("main",), "R2"),
        (("measures", "AUC", "low"), 0.999),
        (("measures", "AUC"), {"value": 0.5, "low": 0.4}),
        (("notes", 0), 5),
        (("curves", "roc", 0, "fpr"), [0.0]),
        (("curves", "roc", 0, "auc"), 1.5),
        (("curves", "calibration", 0, "counts", 0), 0.5),
        (("curves", "confusion", "counts"), [[1, 2]]),
        (("curves", "confusion", "labels", 0), None),
        (("curves", "other"), []),
        (("unknown",), 1),
    ],
)
def test_values_that_do_not_fit_are_refused(path, wrong):
    altered = an_evaluation().as_json()
    within = altered
    for name in path[:-1]:
        within = within[name]
    within[path[-1]] = wrong
    with pytest.raises(ValueError, match="of an evaluation is not what was expected"):
        Evaluation.from_json(altered)


def test_a_table_has_a_line_for_each_measure():
    mean = {"R2": Measure(-0.01, -0.02, 0.0)}
    evaluation = Evaluation(
        "regression",
        1200,
        ["y"],
        "R2",
        {"R2": Measure(0.5, 0.4, 0.61), "RMSE": Measure(12.5, 11.0, 13.0)},
        {"mean": mean},
        notes=["a note"],
    )
    assert str(evaluation).splitlines() == [
        "regression, 1,200 documents",
        "       value     95 % interval     mean",
        "R2    0.5000  0.4000 to 0.6100  -0.0100",
        "RMSE   12.50    11.00 to 13.00",
        "a note",
    ]
