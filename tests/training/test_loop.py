"""The training loop: schedules, examples, history, stopping, reports."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from mirrorlda.datasets import make_topics
from mirrorlda.responses import Softmax, SquaredError, Words
from numpy.testing import assert_allclose, assert_array_equal

from mirrorlda import infer
from mirrorlda.data.documents import as_documents
from mirrorlda.data.parts import chunks
from mirrorlda.method.inference import check_layers, new_engine
from mirrorlda.method.prior import TopicUsage
from mirrorlda.method.start import start
from mirrorlda.training import mirror_descent
from mirrorlda.training.loop import Run, evaluate, step, train
from mirrorlda.training.schedule import Schedule
from mirrorlda.training.sources import Examples


def schedule(**changes):
    values = {
        "n_epochs": 4,
        "batch_sizes": (50, 50),
        "learning_rate": 0.05,
        "coef_learning_rate": 0.3,
        "decay": "linear",
        "average_from": 0.5,
        "beta": 1.01,
    }
    return Schedule(**(values | changes))


@pytest.fixture(scope="module")
def planted():
    return make_topics(n_docs=230, n_words=60, n_topics=3, n_outputs=2, random_state=0)


@pytest.fixture
def examples(planted):
    X = planted.X.astype(np.float64)
    weights = np.random.default_rng(0).uniform(0.5, 2, X.shape[0])
    return Examples(as_documents(X), planted.y, weights)


def begin(examples, rng, response):
    """Three topics, and five layers for them."""
    phi, U, _ = start(examples.documents, examples.y, examples.weights, response, 3, rng)
    return mirror_descent.begin(phi, U), check_layers(1.001, 5, "l1", 0.0, phi, 0)


def run(examples, plan, seed=0, response=None, **options):
    """Train from the seed's own start; returns the parameters and the history."""
    rng, response = np.random.default_rng(seed), response or SquaredError()
    state, layers = begin(examples, rng, response)
    progress = Run(state, layers, rng)
    parameters, layers_after = train(progress, examples, response, plan, **options)
    history = progress.history
    assert layers_after.alpha is layers.alpha
    return parameters, history


# Schedule


def test_batch_sizes_grow_geometrically():
    plan = schedule(n_epochs=5, batch_sizes=(16, 256))
    assert [plan.batch_size(epoch) for epoch in range(5)] == [16, 32, 64, 128, 256]
    assert plan.n_steps(256) == 16 + 8 + 4 + 2 + 1
    assert plan.n_steps(257) == 17 + 9 + 5 + 3 + 2


@pytest.mark.parametrize("n_epochs", [1, 2, 7])
def test_a_constant_batch_size_stays(n_epochs):
    plan = schedule(n_epochs=n_epochs, batch_sizes=(30, 30))
    assert {plan.batch_size(epoch) for epoch in range(n_epochs)} == {30}
    assert plan.n_steps(61) == 3 * n_epochs


def test_linear_decay_falls_evenly_towards_zero_at_the_end():
    plan = schedule(decay="linear")
    rates = [plan.rates(step, 100, 1.0) for step in range(101)]
    assert_allclose([r.phi for r in rates], 0.05 * np.linspace(1, 0, 101), atol=1e-15)
    assert_allclose([r.U for r in rates], 0.3 * np.linspace(1, 0, 101), atol=1e-15)
    assert rates[100].phi == rates[100].U == 0


def test_constant_rates_stay():
    plan = schedule(decay="constant")
    assert {(r.phi, r.U) for r in (plan.rates(step, 100, 1.0) for step in range(100))} == {(0.05, 0.3)}


@pytest.mark.parametrize(("average_from", "n_averaged"), [(0, 100), (0.5, 50), (0.75, 25), (1, 0), (2, 0)])
def test_averages_begin_after_their_fraction_of_the_steps(average_from, n_averaged):
    plan = schedule(average_from=average_from)
    averages = [plan.rates(step, 100, 1.0).average for step in range(100)]
    assert averages == [0.0] * (100 - n_averaged) + [1.0] * n_averaged


def test_the_prior_is_shared_among_all_documents():
    assert_allclose(schedule(beta=1.5).rates(3, 10, 200.0).prior, 0.5 / 200)
    assert_allclose(schedule(beta=1.5).stream_rates(3, 200.0).prior, 0.5 / 200)


def test_the_rates_of_a_stream_fall_as_a_square_root_and_its_averages_grow():
    plan = schedule()
    rates = [plan.stream_rates(step, 1.0) for step in (0, 300, 9900)]
    assert_allclose([r.phi for r in rates], [0.05, 0.025, 0.005])
    assert_allclose([r.U for r in rates], [0.3, 0.15, 0.03])
    assert [r.average for r in rates] == [1, 301, 9901]
    assert schedule(average_from=1).stream_rates(5, 1.0).average == 0


# Examples


def test_take_takes_documents_targets_and_weights(examples, planted):
    numbers = np.array([5, 0, 5])
    taken = examples.take(numbers)
    assert_array_equal(taken.documents.totals(), np.asarray(planted.X.sum(axis=1)).ravel()[numbers])
    assert_array_equal(taken.y, examples.y[numbers])
    assert_array_equal(taken.weights, examples.weights[numbers])


@pytest.mark.parametrize(("fraction", "n_held_out"), [(0.1, 23), (0.5, 115), (0.001, 1), (0.99, 228)])
def test_split_holds_out_a_fraction_and_loses_nothing(examples, fraction, n_held_out):
    numbered = Examples(examples.documents, np.arange(230), examples.weights)
    kept, held_out = numbered.hold_out(fraction, 0)
    assert len(held_out.y) == held_out.documents.n_docs == n_held_out
    assert_array_equal(np.sort(np.concatenate([kept.y, held_out.y])), np.arange(230))
    _, other = numbered.hold_out(fraction, 1)
    assert not np.array_equal(held_out.y, other.y)


def test_one_document_cannot_be_split(examples):
    with pytest.raises(ValueError, match="1 documents are too few to hold out 1"):
        examples.take(np.array([0])).hold_out(0.1, 0)


def test_chunks_cover_all_documents_once():
    assert [len(chunk) for chunk in chunks(10, size=4)] == [4, 4, 2]
    assert_array_equal(np.concatenate(list(chunks(10, size=4))), np.arange(10))
    assert list(chunks(0, size=4)) == []


# train


@pytest.mark.parametrize(
    ("response", "y"),
    [(SquaredError(gamma=2.0), None), (Softmax(), "classes"), (Words(), "totals")],
    ids=["squared_error", "softmax", "words"],
)
def test_training_lowers_the_loss_and_keeps_a_history(examples, response, y):
    if y is not None:
        targets = (examples.y[:, 0] > 0).astype(int) if y == "classes" else examples.documents.totals()
        examples = Examples(examples.documents, targets, examples.weights)
    training, validation = examples.hold_out(0.2, 0)
    parameters, history = run(training, schedule(n_epochs=12), response=response, validation=validation)
    assert set(history) == {"loss", "score", "validation_loss", "validation_score"}
    assert {len(values) for values in history.values()} == {12}
    assert all(type(value) is float for values in history.values() for value in values)
    assert history["loss"][-1] < history["loss"][0]
    assert history["score"][-1] > history["score"][0]
    assert history["validation_loss"][-1] < history["validation_loss"][0]
    assert_allclose(parameters.phi.sum(axis=0), 1, rtol=1e-12)
    assert parameters.U.shape == (0 if isinstance(response, Words) else 2, 3)
    layers = check_layers(1.001, 5, "l1", 0.0, parameters.phi, 0)
    last = history["validation_loss"][-1], history["validation_score"][-1]
    assert evaluate(parameters, validation, response, layers, 1) == last


def test_without_validation_the_history_has_loss_and_score(examples):
    assert set(run(examples, schedule())[1]) == {"loss", "score"}


def test_the_first_loss_is_that_of_the_start(examples):
    """One batch an epoch: the loss is the weighted mean before the step."""
    state, layers = begin(examples, np.random.default_rng(0), SquaredError())
    expected = evaluate(mirror_descent.parameters(state, 1), examples, SquaredError(), layers, 1)
    _, history = run(examples, schedule(n_epochs=1, batch_sizes=(230, 230)))
    assert_allclose((history["loss"][0], history["score"][0]), expected, rtol=1e-12)


def test_early_stopping_returns_the_best_parameters(examples):
    """Coefficients that overshoot make validation scores bad and erratic."""
    training, validation = examples.hold_out(0.3, 0)
    plan = schedule(n_epochs=30, decay="constant", learning_rate=0.5, coef_learning_rate=8.0, average_from=1)
    parameters, history = run(training, plan, validation=validation, patience=3)
    scores = history["validation_score"]
    best = int(np.argmax(scores))
    assert len(scores) == best + 1 + 3 < 30
    assert scores[-1] < scores[best] - 0.01, "the later epochs are not worse, so nothing was tested"
    layers = check_layers(1.001, 5, "l1", 0.0, parameters.phi, 0)
    assert evaluate(parameters, validation, SquaredError(), layers, 1) == (history["validation_loss"][best], scores[best])


def test_validation_does_not_change_training(examples):
    parameters, history = run(examples, schedule())
    other, other_history = run(examples, schedule(), validation=examples)
    assert_array_equal(other.phi, parameters.phi)
    assert_array_equal(other.U, parameters.U)
    assert_array_equal(other_history["loss"], history["loss"])


def test_patience_that_does_not_run_out_trains_to_the_end(examples):
    _, history = run(examples, schedule(), validation=examples, patience=100)
    assert len(history["loss"]) == 4


def test_reports_tell_of_every_batch_and_epoch(examples):
    told = []
    plan = schedule(n_epochs=3, batch_sizes=(50, 100))
    _, history = run(examples, plan, validation=examples, report=told.append)
    batches, ends = [p for p in told if not p.epoch_ended], [p for p in told if p.epoch_ended]
    assert len(batches) == plan.n_steps(230)
    assert [sum(p.n_docs for p in batches if p.epoch == epoch) for epoch in range(3)] == [230] * 3
    assert [p.epoch for p in ends] == [0, 1, 2]
    assert {p.n_epochs for p in told} == {3}
    assert sum(p.n_docs for p in ends) == 0
    assert [p.measures for p in ends] == [{name: values[epoch] for name, values in history.items()} for epoch in range(3)]
    assert all(a.epoch <= b.epoch for a, b in pairwise(told))
    assert all(np.isfinite(p.loss) for p in told)


def test_the_same_seed_gives_the_same_bits_and_another_seed_others(examples):
    (one, history), (again, history_again), (other, _) = (run(examples, schedule(), seed) for seed in (0, 0, 1))
    assert_array_equal(one.phi, again.phi)
    assert_array_equal(one.U, again.U)
    assert history == history_again
    assert np.abs(one.phi - other.phi).max() > 1e-4


def test_weights_of_all_documents_times_a_factor_change_only_the_prior(examples):
    plan = schedule(beta=1.0)
    parameters, _ = run(examples, plan)
    other, _ = run(Examples(examples.documents, examples.y, 8 * examples.weights), plan)
    assert_allclose(other.phi, parameters.phi, rtol=1e-9)
    assert_allclose(other.U, parameters.U, rtol=1e-9)


def test_a_loss_that_is_not_finite_stops_training(examples):
    class Exploding(SquaredError):
        def loss(self, scores, y):
            losses, gradient = super().loss(scores, y)
            return losses * np.nan, gradient

    with pytest.raises(mirror_descent.DivergedError, match="not finite after 0 steps"):
        run(examples, schedule(), response=Exploding())


# Words left out, words' weights, the documents' own likelihood


def with_words(examples, **changes):
    """A run with dropout and learned word weights; returns the parameters and the history."""
    rng, response = np.random.default_rng(0), SquaredError()
    phi, U, _ = start(examples.documents, examples.y, examples.weights, response, 3, rng)
    state, layers = mirror_descent.begin(phi, U, np.ones(60)), check_layers(1.001, 5, "l1", 0.0, phi, 0)
    plan = schedule(**({"word_dropout": 0.25, "word_learning_rate": 0.1} | changes))
    progress = Run(state, layers, rng)
    parameters, _ = train(progress, examples, response, plan, validation=examples, n_threads=2)
    history = progress.history
    return parameters, history


def test_words_weights_and_dropout_learn_the_same_bits_again(examples):
    (one, history), (again, history_again) = (with_words(examples) for _ in range(2))
    for name in ("phi", "U", "word_weights"):
        assert_array_equal(getattr(one, name), getattr(again, name))
    assert history == history_again
    assert history["loss"][-1] < history["loss"][0]


def test_words_weights_change_only_where_they_are_learned(examples):
    parameters, _ = with_words(examples)
    assert parameters.word_weights.min() >= 0.1
    assert parameters.word_weights.max() <= 3
    assert parameters.word_weights.std() > 0.01
    assert_array_equal(with_words(examples, word_learning_rate=0.0)[0].word_weights, 1)


def test_dropout_is_for_training_only(examples):
    """The validation score is that of whole documents with their words' weights."""
    parameters, history = with_words(examples)
    layers = check_layers(1.001, 5, "l1", 0.0, parameters.phi, 0)
    weighted = Examples(examples.documents.weighted(parameters.word_weights), examples.y, examples.weights)
    plain = mirror_descent.Parameters(parameters.phi, parameters.U, None)
    expected = evaluate(plain, weighted, SquaredError(), layers, 1)
    assert evaluate(parameters, examples, SquaredError(), layers, 1) == expected
    assert (history["validation_loss"][-1], history["validation_score"][-1]) == expected
    assert evaluate(plain, examples, SquaredError(), layers, 1) != expected


def test_a_step_sees_documents_thinned_and_weighted(examples):
    """One step at rates of zero on one batch: its scores are those of the thinned documents."""
    state, layers = begin(examples, np.random.default_rng(0), SquaredError())
    state = mirror_descent.begin(state.phi, state.U, np.linspace(0.5, 2, 60))
    batch, engine = np.array([3, 0, 200]), new_engine(state.phi.dtype)
    plan, rates = schedule(word_dropout=0.5), mirror_descent.Rates(0.0, 0.0, 0.0, 0.0)
    seen = step(state, engine, examples, batch, SquaredError(), layers, plan, rates, 3.0, np.random.default_rng(5), n_threads=1)
    seed = int(np.random.default_rng(5).integers(2**63))
    thinned = examples.documents.thinned(batch, state.word_weights, 0.5, seed)
    X = sp.csr_array((thinned.counts, thinned.indices, thinned.indptr), shape=(3, 60))
    assert_allclose(seen.theta, infer(state.phi, X, alpha=1.001, n_layers=5).theta, rtol=1e-12)
    assert_allclose(seen.scores, seen.theta @ state.U.T, rtol=1e-12)


def test_alpha_is_estimated_after_each_epoch_and_returned(examples):
    rng = np.random.default_rng(0)
    state, layers = begin(examples, rng, SquaredError())
    run = Run(state, layers, rng, usage=TopicUsage(examples.n_docs))
    _, after = train(run, examples, SquaredError(), schedule())
    assert after.alpha.shape == (3,)
    assert (after.alpha > 1).all()
    assert np.ptp(after.alpha) > 1e-3
    assert_array_equal(layers.alpha, 1.001)
    assert (after.n_layers, after.step_size) == (layers.n_layers, layers.step_size)
