"""Simpler methods that an evaluation has beside the model, measured as it is."""

from dataclasses import replace

import numpy as np
import pytest
from mirrorlda.datasets import make_topics
from sklearn import metrics
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline

from mirrorlda import Corpus, CorpusWriter, Target, TopicClassifier, TopicModel, TopicRegressor
from mirrorlda.evaluation import Evaluation, evaluate
from mirrorlda.evaluation.baselines import with_baselines
from mirrorlda.evaluation.bootstrap import Measure, lead, measured
from mirrorlda.evaluation.measures import NumberOutcome


def planted(**response):
    data = make_topics(n_docs=500, n_words=60, n_topics=3, gamma=5, random_state=1, **response)
    return data.X[:300], None if data.y is None else data.y[:300], data.X[300:], None if data.y is None else data.y[300:]


def beside_baselines(model, X_train, y_train, X_test, y_test, **options):
    return with_baselines(evaluate(model, X_test, y_test), model, X_train, y_train, X_test, y_test, **options)


def fitted(estimator, X, y, **options):
    return estimator(n_topics=3, n_epochs=2, random_state=0, **options).fit(X, y)


def tf_idf(X_train, X_test):
    tfidf = TfidfTransformer(sublinear_tf=True).fit(X_train)
    return tfidf.transform(X_train), tfidf.transform(X_test)


def test_numbers():
    data = planted(n_outputs=2)
    X_train, y_train, X_test, y_test = data
    found = beside_baselines(fitted(TopicRegressor, X_train, y_train), *data)
    assert list(found.baselines) == ["mean", "tf-idf, ridge regression"]
    assert all(list(baseline) == list(found.measures) for baseline in found.baselines.values())
    mean = np.tile(y_train.mean(axis=0), (len(y_test), 1))
    assert found.baselines["mean"]["R2"].value == pytest.approx(metrics.r2_score(y_test, mean))
    A, B = tf_idf(X_train, X_test)
    reached = [
        metrics.r2_score(y_test, Ridge(alpha=alpha).fit(A, y_train).predict(B)) for alpha in (30, 10, 3, 1, 0.3, 0.1, 0.03)
    ]
    value = found.baselines["tf-idf, ridge regression"]["R2"].value
    assert min(abs(value - np.array(reached))) < 1e-3
    assert value > max(reached) - 0.03


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes(n_classes):
    data = planted(n_classes=n_classes)
    X_train, y_train, X_test, y_test = data
    found = beside_baselines(fitted(TopicClassifier, X_train, y_train), *data)
    assert list(found.baselines) == ["most frequent class", "tf-idf, logistic regression"]
    simplest, linear = found.baselines.values()
    shares = np.bincount(y_train) / len(y_train)
    assert simplest["accuracy"].value == pytest.approx(np.mean(y_test == shares.argmax()))
    assert simplest["AUC"].value == 0.5
    assert simplest["log loss"].value == pytest.approx(-np.log(shares[y_test]).mean())
    A, B = tf_idf(X_train, X_test)
    losses = [
        metrics.log_loss(y_test, LogisticRegression(C=C, tol=1e-6, max_iter=1000).fit(A, y_train).predict_proba(B))
        for C in (0.3, 1, 3, 10, 30, 100, 300)
    ]
    assert min(abs(linear["log loss"].value - np.array(losses))) < 1e-3
    assert linear["AUC"].value > 0.75


def test_labels():
    data = make_topics(n_docs=500, n_words=60, n_topics=3, random_state=1)
    y = np.column_stack([data.theta > 0.3, np.zeros(500), np.ones(500)]).astype(int)
    split = data.X[:300], y[:300], data.X[300:], y[300:]
    found = beside_baselines(fitted(TopicClassifier, *split[:2]), *split)
    assert list(found.baselines) == ["label frequencies", "tf-idf, logistic regression"]
    simplest, linear = found.baselines.values()
    predicted = np.tile(y[:300].mean(axis=0) > 0.5, (200, 1))
    assert simplest["F1"].value == pytest.approx(metrics.f1_score(y[300:], predicted, average="micro"))
    assert linear["F1"].value > 0.9
    assert Evaluation.from_json(found.as_json()) == found


def test_topics_have_the_frequencies_of_words():
    data = planted()
    found = beside_baselines(fitted(TopicModel, data[0], None, count_scale="linear"), *data)
    frequencies = 1 + np.asarray(data[0].sum(axis=0)).ravel()
    expected = (data[2] @ np.log(frequencies / frequencies.sum())).sum() / data[2].sum()
    assert found.baselines["word frequencies"]["log-likelihood per word"].value == pytest.approx(expected, rel=1e-5)


def test_a_model_without_probabilities_is_compared_by_what_it_has():
    data = planted(n_classes=2)
    evaluation = evaluate(fitted(TopicClassifier, *data[:2]), *data[2:])
    kept = {name: evaluation.measures[name] for name in ("accuracy", "F1")}
    less = Evaluation(evaluation.task, evaluation.n_docs, evaluation.outputs, "accuracy", kept)
    found = with_baselines(less, fitted(TopicClassifier, *data[:2]), *data)
    assert [list(baseline) for baseline in found.baselines.values()] == [["accuracy", "F1"]] * 2


def test_more_documents_than_wanted_are_drawn_from():
    data = planted(n_outputs=1)
    found = beside_baselines(fitted(TopicRegressor, *data[:2]), *data, max_docs=100)
    assert list(found.baselines) == ["mean (100 documents)", "tf-idf, ridge regression (100 documents)"]


def test_texts_and_a_corpus_are_counted(tmp_path):
    texts = ["clean quiet room", "quiet lovely hotel", "noisy dirty room", "rude noisy staff"] * 20
    verdicts = ["good", "good", "bad", "bad"] * 20
    model = make_pipeline(CountVectorizer(), TopicClassifier(n_topics=2, random_state=0)).fit(texts, verdicts)
    found = beside_baselines(model, texts, verdicts, texts, verdicts)
    assert found.baselines["tf-idf, logistic regression"]["accuracy"].value == 1
    counts = model[0].transform(texts)
    with CorpusWriter(tmp_path / "c", n_words=counts.shape[1], target=Target("classes", ("verdict",))) as writer:
        writer.add(counts, verdicts)
    corpus = Corpus(tmp_path / "c")
    assert beside_baselines(model, corpus, None, corpus, None).baselines == found.baselines


@pytest.mark.parametrize("n_docs", [2, 3, 12])
def test_few_documents_are_enough(n_docs):
    data = planted(n_classes=2)
    y = np.arange(n_docs) % 2
    model = fitted(TopicClassifier, data[0][:n_docs], y)
    found = beside_baselines(model, data[0][:n_docs], y, data[2], data[3])
    assert len(found.baselines) == 2


def test_the_evaluation_must_be_of_the_test_documents():
    data = planted(n_outputs=1)
    model = fitted(TopicRegressor, *data[:2])
    with pytest.raises(ValueError, match="the evaluation is of 200 documents, but X_test has 199 with a target"):
        with_baselines(evaluate(model, *data[2:]), model, *data[:2], data[2][1:], data[3][1:])


def test_the_same_data_give_the_same_baselines():
    data = planted(n_classes=3)
    model = fitted(TopicClassifier, *data[:2])
    assert beside_baselines(model, *data) == beside_baselines(model, *data)


# Leads and the verdict

RIDGE = "tf-idf, ridge regression"


def outcome_of_numbers(truth, predicted):
    return NumberOutcome(["y"], truth[:, None], predicted[:, None])


def test_a_lead_is_the_difference_on_documents_that_are_drawn_together():
    """Against resampling by hand; errors that both share make the difference surer than the measures are."""
    rng = np.random.default_rng(0)
    truth, shared = rng.standard_normal(400), rng.standard_normal(400)
    ours, theirs = truth + 0.5 * shared + 0.05 * rng.standard_normal(400), truth + 0.55 * shared
    found = lead(outcome_of_numbers(truth, ours), outcome_of_numbers(truth, theirs), "R2")
    assert found.value == pytest.approx(metrics.r2_score(truth, ours) - metrics.r2_score(truth, theirs))
    drawn = [rng.integers(400, size=400) for _ in range(2000)]
    differences = [metrics.r2_score(truth[d], ours[d]) - metrics.r2_score(truth[d], theirs[d]) for d in drawn]
    np.testing.assert_allclose([found.low, found.high], np.quantile(differences, [0.025, 0.975]), atol=0.004)
    (alone,) = (measured(outcome_of_numbers(truth, ours))[name] for name in ["R2"])
    assert found.high - found.low < 0.8 * (alone.high - alone.low)


def test_where_less_is_better_a_lead_is_less():
    truth = np.random.default_rng(0).standard_normal(50)
    near, far = outcome_of_numbers(truth, truth + 0.1), outcome_of_numbers(truth, truth + 0.5)
    assert lead(near, far, "RMSE").value == pytest.approx(0.4)
    assert lead(far, near, "RMSE").value == pytest.approx(-0.4)
    assert lead(near, far, "AUC") is None


def test_there_is_a_lead_over_each_baseline():
    data = planted(n_outputs=1)
    found = beside_baselines(fitted(TopicRegressor, *data[:2]), *data)
    assert list(found.leads) == ["mean", RIDGE]
    for name, of_main in found.leads.items():
        assert of_main.value == pytest.approx(found.measures["R2"].value - found.baselines[name]["R2"].value)
        assert of_main.low < of_main.value < of_main.high


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ((0.024, 0.018, 0.03), f"Better than {RIDGE} by 0.0240 of R2 (0.0180 to 0.0300)."),
        ((-0.02, -0.03, -0.01), f"Worse than {RIDGE} by 0.0200 of R2 (0.0100 to 0.0300); readability=0 may predict better."),
        ((0.002, -0.001, 0.005), f"Level with {RIDGE}: the difference of R2 is +0.0020 (-0.0010 to +0.0050)."),
    ],
)
def test_the_verdict(ends, said):
    data = planted(n_outputs=1)
    evaluation = beside_baselines(fitted(TopicRegressor, *data[:2]), *data)
    found = replace(evaluation, leads={"mean": Measure(0.5, 0.4, 0.6), RIDGE: Measure(*ends)})
    assert found.verdict == said
    assert said in str(found)
    assert replace(found, leads={}).verdict == ""


def test_an_evaluation_of_an_earlier_version_has_no_leads():
    data = planted(n_outputs=1)
    values = beside_baselines(fitted(TopicRegressor, *data[:2]), *data).as_json()
    del values["leads"]
    assert Evaluation.from_json(values).leads == {}
    with pytest.raises(ValueError, match="leads of an evaluation is not what was expected: names of baselines"):
        Evaluation.from_json({**values, "leads": {"another": {"value": 0.0, "low": 0.0, "high": 0.0}}})
