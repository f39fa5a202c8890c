"""Documents that are judged after every epoch and not learned from."""

import numpy as np
import pandas as pd
import pytest
from mirrorlda.datasets import make_topics

from mirrorlda import Corpus, CorpusWriter, Target, TopicClassifier, TopicModel, TopicRegressor

N_TRAIN = 240


@pytest.fixture(scope="module")
def data():
    return make_topics(n_docs=300, n_words=50, n_topics=3, n_outputs=1, random_state=0)


def targets_of(kind, y):
    y = np.asarray(y).ravel()
    if kind == "classes":
        return np.array(["low", "middle", "high"])[np.digitize(y, np.quantile(y, [0.3, 0.6]))]
    if kind == "labels":
        return np.column_stack([y > np.median(y), y > np.quantile(y, 0.8)]).astype(int)
    return np.digitize(y, np.quantile(y, [0.3, 0.6])) + 1.0 if kind in ("ordinal", "poisson") else y


MODELS = {
    "topics": TopicModel(3, n_epochs=3, random_state=0),
    "gaussian": TopicRegressor(3, n_epochs=3, random_state=0),
    "poisson": TopicRegressor(3, n_epochs=3, response="poisson", random_state=0),
    "ordinal": TopicRegressor(3, n_epochs=3, response="ordinal", random_state=0),
    "classes": TopicClassifier(3, n_epochs=3, random_state=0),
    "labels": TopicClassifier(3, n_epochs=3, random_state=0),
}


def fitted(kind, X, y, **options):
    return MODELS[kind].__class__(**MODELS[kind].get_params()).fit(X, y, **options)


@pytest.mark.parametrize("kind", MODELS)
def test_it_is_judged_after_every_epoch_and_changes_nothing(kind, data):
    y = targets_of(kind, data.y)
    validation = (data.X[N_TRAIN:], y[N_TRAIN:])
    model = fitted(kind, data.X[:N_TRAIN], y[:N_TRAIN], validation=validation)
    plain = fitted(kind, data.X[:N_TRAIN], y[:N_TRAIN])
    assert np.array_equal(model.components_, plain.components_)
    assert len(model.history_["validation_score"]) == len(model.history_["validation_loss"]) == 3
    assert "validation_score" not in plain.history_
    if kind == "classes":
        # The last epoch's is that of the parameters at its end: averages, as the model has them.
        assert model.history_["validation_score"][-1] == pytest.approx(model.score(*validation))


@pytest.mark.parametrize("kind", ["topics", "gaussian", "classes", "labels"])
def test_a_corpus_is_judged_as_a_matrix_is(kind, data, tmp_path):
    y = targets_of(kind, data.y)
    stored = {"gaussian": Target("numbers", ("y",)), "classes": Target("classes", ("y",)), "topics": None}
    target = stored.get(kind, Target("labels", ("y",)))
    given = None if target is None else [[str(i) for i in np.flatnonzero(row)] for row in y] if kind == "labels" else y.tolist()
    with CorpusWriter(tmp_path / "c", data.X.shape[1], target=target) as writer:
        split = ["train"] * N_TRAIN + ["test"] * (300 - N_TRAIN)
        writer.add(data.X.astype(np.float32), given, split=split)
    corpus = Corpus(tmp_path / "c")
    train, test = corpus.select(split="train"), corpus.select(split="test")
    from_disk = fitted(kind, train, None, validation=test)
    X = data.X.astype(np.float32)
    in_memory = fitted(kind, X[:N_TRAIN], y[:N_TRAIN], validation=(X[N_TRAIN:], y[N_TRAIN:]))
    np.testing.assert_allclose(from_disk.history_["validation_score"], in_memory.history_["validation_score"], rtol=1e-6)


def test_classes_that_training_lacks_are_left_out(data):
    y = targets_of("classes", data.y)
    strange = y.astype(object)
    strange[N_TRAIN] = "unheard of"
    model = fitted("classes", data.X[:N_TRAIN], y[:N_TRAIN], validation=(data.X[N_TRAIN:], strange[N_TRAIN:]))
    others = fitted("classes", data.X[:N_TRAIN], y[:N_TRAIN], validation=(data.X[N_TRAIN + 1 :], y[N_TRAIN + 1 :]))
    assert model.history_["validation_score"] == others.history_["validation_score"]
    with pytest.raises(ValueError, match="no document for validation has a target that the training documents have"):
        fitted("classes", data.X[:N_TRAIN], y[:N_TRAIN], validation=(data.X[:2], np.array(["a", "b"])))


@pytest.mark.parametrize("column", [lambda y: y[:, None], lambda y: pd.DataFrame({"class": y})], ids=["column", "data frame"])
def test_a_column_of_classes_is_judged_as_a_row_of_them(data, column):
    y = targets_of("classes", data.y)
    model = fitted("classes", data.X[:N_TRAIN], y[:N_TRAIN], validation=(data.X[N_TRAIN:], column(y[N_TRAIN:])))
    expected = fitted("classes", data.X[:N_TRAIN], y[:N_TRAIN], validation=(data.X[N_TRAIN:], y[N_TRAIN:]))
    assert model.history_ == expected.history_
    with pytest.raises(
        ValueError, match=r"validation: y has shape \(\d+, 2\), but the model was fitted with one class a document"
    ):
        fitted("classes", data.X[:N_TRAIN], y[:N_TRAIN], validation=(data.X[N_TRAIN:], np.stack([y[N_TRAIN:]] * 2, axis=1)))


def test_early_stopping_judges_by_it(data):
    y = targets_of("gaussian", data.y)
    model = TopicRegressor(3, n_epochs=60, early_stopping=True, n_iter_no_change=2, learning_rate=0.5, random_state=0)
    model.fit(data.X[:N_TRAIN], y[:N_TRAIN], validation=(data.X[N_TRAIN:], y[N_TRAIN:]))
    scores = model.history_["validation_score"]
    assert len(scores) < 60
    assert model.score(data.X[N_TRAIN:], y[N_TRAIN:]) == pytest.approx(max(scores), abs=1e-5)


@pytest.mark.parametrize(
    ("validation", "message"),
    [
        ("file.csv", "validation must be a Corpus or a pair of counts and targets, got str"),
        ((np.ones((3, 50)), np.ones(2)), "validation has 3 documents, but 2 targets"),
        ((np.ones((3, 50)), np.ones((3, 2))), "validation: y has 2 outputs, but the model has 1"),
        ((np.ones((3, 7)), np.ones(3)), "7 features"),
    ],
)
def test_errors_name_what_is_wrong(validation, message, data):
    with pytest.raises(ValueError, match=message):
        fitted("gaussian", data.X, targets_of("gaussian", data.y), validation=validation)
