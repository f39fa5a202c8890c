"""Rounds: what shards learn apart, against plain NumPy and against steps on the whole batch. No cluster is needed for that."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import reduce

import numpy as np
import pytest
from mirrorlda.datasets import make_topics
from mirrorlda.responses import SquaredError
from numpy.testing import assert_allclose, assert_array_equal

from mirrorlda import Corpus, CorpusWriter, Target, _core
from mirrorlda.cluster import changes, rounds
from mirrorlda.cluster.changes import Change
from mirrorlda.cluster.rounds import Fit, Place, Round
from mirrorlda.estimators.given_targets import encode_numbers
from mirrorlda.method.gradients import merged as merged_gradients
from mirrorlda.method.inference import check_layers
from mirrorlda.training import mirror_descent
from mirrorlda.training.loop import gradients_of
from mirrorlda.training.mirror_descent import Guide, State
from mirrorlda.training.schedule import Schedule
from mirrorlda.training.sources import Encoding, StoredExamples

N_WORDS, N_TOPICS = 80, 3
NO_MOMENTS = np.zeros((0, 0))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    data = make_topics(n_docs=12_000, n_words=N_WORDS, n_topics=N_TOPICS, n_outputs=1, random_state=0)
    path = tmp_path_factory.mktemp("rounds") / "planted.corpus"
    with CorpusWriter(path, N_WORDS, target=Target("numbers", ("score",))) as writer:
        writer.add(data.X, data.y)
    return Corpus(path)


def schedule(**changes):
    settings = {
        "n_epochs": 2,
        "batch_sizes": (4000, 4000),
        "learning_rate": 0.1,
        "coef_learning_rate": 0.2,
        "coef_damping": 2.0,
        "decay": "linear",
        "average_from": 0.5,
        "beta": 1.01,
        "word_learning_rate": 0.05,
        "guide": 0.02,
    }
    return Schedule(**(settings | changes))


def place_of(corpus, **changes):
    given = StoredExamples.of(corpus, logarithmic=True, has_targets=True)
    source = given.encoded(Encoding(encode_numbers(given, "gaussian", 1.0, names=corpus.labels)))
    return Place(Fit(source, SquaredError(), schedule(**changes), 1))


def state_of(guide=None, *, n_words=N_WORDS, with_themes=False):
    rng = np.random.default_rng(0)
    phi = np.ascontiguousarray(rng.dirichlet(np.ones(n_words), N_TOPICS).T, np.float32)
    counts = rng.gamma(0.5, 9, phi.shape).astype(np.float32) if with_themes else None
    state = mirror_descent.begin(phi, rng.standard_normal((1, N_TOPICS)).astype(np.float32), np.ones(n_words), guide, counts)
    state.squares, state.word_squares, state.n_steps = np.full(N_TOPICS, 50.0), 1e-3, 4
    # A frame as after some steps without a flush.
    state.frame[:2] = [[1.25, 0.8, 1.0], [1e-4, 0, 2e-4]]
    M, B = state.frame[:2]
    state.phi = (phi / M - B).astype(np.float32)
    return state


def topics_of(state: State) -> np.ndarray:
    M, B = state.frame[:2].astype(np.float64)
    return M * (state.phi + B)


def a_round(place, **changes):
    layers = check_layers(1.05, 4, "l1", 0.0, np.ones((1, N_TOPICS), np.float32), 0)
    about = {
        "epoch": 0,
        "batch": 1,
        "n_batches": 2,
        "step": 1,
        "order": 7,
        "seed": 11,
        "layers": layers,
        "n_scored": 10**6,
        "n_used": 10**6,
    }
    return Round(**(about | changes))


def never() -> State:
    raise AssertionError("the state was made again without need")


def stepped(corpus, shard, **changes):
    """The state that the steps of a shard end in, in a place of its own."""
    place, state = place_of(corpus, **changes), state_of()
    ended = {}
    restore = rounds.Before.restore

    def keep(before, state):
        ended["phi"], ended["U"], ended["words"] = topics_of(state), state.U.copy(), state.word_weights.copy()
        restore(before, state)

    rounds.Before.restore = keep
    try:
        change, told = rounds.learned_apart(state, place, a_round(place), shard, never)
    finally:
        rounds.Before.restore = restore
    return ended, change, told


def test_a_round_is_the_mean_in_the_dual_space(corpus):
    """Against plain NumPy: the weighted mean of ln Phi over shards, brought back to columns that add up to one."""
    found = [stepped(corpus, shard) for shard in range(8)]
    weights = np.array([change.weight for _, change, _ in found])
    assert_allclose(weights, 1, rtol=0.2)
    weights /= weights.sum()
    log_phi = sum(w * np.log(ended["phi"]) for w, (ended, _, _) in zip(weights, found, strict=True))
    expected = np.exp(log_phi) / np.exp(log_phi).sum(axis=0)
    words = np.exp(sum(w * np.log(ended["words"]) for w, (ended, _, _) in zip(weights, found, strict=True)))
    U = sum(w * ended["U"].astype(float) for w, (ended, _, _) in zip(weights, found, strict=True))

    state = state_of()
    before = topics_of(state)
    changes.adopt(state, reduce(changes.merged, (change for _, change, _ in found)), 2, 0.0, 1)
    # Eight bits of the changes, which are a tenth and more.
    assert np.abs(np.log(expected / before)).max() > 0.05
    assert_allclose(topics_of(state), expected, rtol=1e-2)
    assert_allclose(topics_of(state).sum(axis=0), 1, rtol=1e-5)
    assert_allclose(state.word_weights, words, rtol=1e-5)
    assert_allclose(state.U, U, rtol=1e-5)
    assert state.n_steps == 6
    assert sum(told.n_docs for _, _, told in found) == sum(len(told.losses) for _, _, told in found) == pytest.approx(8000, abs=8)


def test_one_step_apart_is_a_step_on_the_mean_gradient(corpus):
    """From one Phi, with the same rates and equal weights, averaging in the dual space is mirror descent on the mean gradient."""
    place = place_of(corpus, beta=1.0, word_learning_rate=0.0, learning_rate=0.005, coef_damping=None)
    about = a_round(place, n_batches=1)
    apart, together = state_of(), state_of()
    frozen = mirror_descent.spread(together)
    parts = [place.documents(about, shard) for shard in range(8)]
    learned = [rounds.learned_apart(apart, place, about, shard, never)[0] for shard in range(8)]
    changes.adopt(apart, reduce(changes.merged, learned), 1, 0.0, 1)
    whole = []
    for examples, (batch,) in parts:
        found = gradients_of(
            together, place.engine, examples, batch, SquaredError(), about.layers, place.fit.schedule, place.fit.rates(1), 0, 1
        )
        whole.append(replace(found, grad_phi=found.grad_phi.copy(), grad_counts=None))
    n_docs = sum(len(batch) for _, (batch,) in parts)
    mirror_descent.learn(together, reduce(merged_gradients, whole), float(n_docs), place.fit.rates(1), 1, frozen)
    assert_allclose(topics_of(apart), topics_of(together), rtol=5e-3)
    assert_allclose(apart.U, together.U, rtol=1e-4)


def test_a_shard_leaves_the_state_as_it_was(corpus):
    place = place_of(corpus, word_dropout=0.25)
    guide = Guide(np.array([2, 5], np.int32), np.array([[0.5, 0, 0], [0.5, 0, 0]]))
    state = state_of(guide, with_themes=True)
    before = mirror_descent.copy(state)
    first, _ = rounds.learned_apart(state, place, a_round(place), 3, never)
    for name in ("phi", "U", "frame", "squares", "word_weights", "word_lag", "theme_counts", "theme_totals", "moments"):
        assert_array_equal(getattr(state, name), getattr(before, name), err_msg=name)
    assert (state.n_steps, state.word_squares, state.n_flushes) == (before.n_steps, before.word_squares, before.n_flushes)
    again, _ = rounds.learned_apart(state, place_of(corpus, word_dropout=0.25), a_round(place), 3, never)
    assert {2, 5} <= set(first.rows.tolist())
    for name in ("weight", "rows", "log_phi", "log_words", "theme_counts", "shift", "U", "squares", "word_squares", "moments"):
        assert_array_equal(getattr(first, name), getattr(again, name), err_msg=name)


def test_rows_that_were_all_written_anew_in_a_round(corpus, monkeypatch):
    """A flush on the way changes every row: the change is then that of all rows, and the same within rounding."""
    place = place_of(corpus, beta=1.5)
    lazy, _ = rounds.learned_apart(state_of(), place, a_round(place), 2, never)
    monkeypatch.setattr(mirror_descent, "_LARGEST_SHIFT", 0.0)
    state = state_of()
    flushed, _ = rounds.learned_apart(state, place, a_round(place), 2, state_of)
    assert state.n_flushes == 2
    assert_array_equal(flushed.rows, np.arange(N_WORDS))
    assert_array_equal(flushed.shift, 0)
    monkeypatch.undo()
    ends = []
    for change in (lazy, flushed):
        end = state_of()
        changes.adopt(end, change, 2, 0.0, 1)
        ends.append(topics_of(end))
    assert_allclose(*ends, rtol=1e-2)


def test_the_tree_does_not_know_who_computes_it(corpus):
    place, state = place_of(corpus), state_of()
    about = a_round(place)

    def leaf(shard):
        return rounds.learned_apart(state, place, about, shard, never)[0]

    whole = rounds.along_tree(leaf, 0, 8, changes.merged)
    halves = [rounds.along_tree(leaf, first, 4, changes.merged) for first in (0, 4)]
    pieces = [changes.merged(*pair) for pair in zip(*(changes.split(half, N_WORDS, 3) for half in halves), strict=True)]
    for other in (changes.merged(*halves), changes.in_a_row(pieces)):
        for name in (
            "weight",
            "rows",
            "log_phi",
            "log_words",
            "theme_counts",
            "shift",
            "U",
            "squares",
            "word_squares",
            "moments",
        ):
            assert_array_equal(getattr(whole, name), getattr(other, name), err_msg=name)


def test_an_empty_subtree_is_nothing():
    leaves = {1: "b", 4: "e"}
    assert rounds.along_tree(leaves.get, 0, 8, lambda a, b: a + b) == "be"
    assert rounds.along_tree(leaves.get, 2, 2, lambda a, b: a + b) is None


def test_running_averages_follow_what_is_adopted(corpus):
    """Of the merged Phi, with the weight of the round's steps."""
    state, seen = state_of(), []
    place = place_of(corpus)
    for batch, average in ((0, 0.0), (1, 2.0), (2, 1.0)):
        about = a_round(place, batch=batch, n_batches=1)
        learned = [rounds.learned_apart(worker(state), place, about, shard, never)[0] for shard in range(8)]
        change = reduce(changes.merged, learned)
        changes.adopt(state, change, 1, average, 1)
        seen.append((average, topics_of(state), state.U.copy(), state.word_weights.copy()))
    found = mirror_descent.parameters(state, 1)
    for name, column in (("phi", 1), ("U", 2), ("word_weights", 3)):
        expected = sum(s[0] * s[column].astype(float) for s in seen) / 3
        assert_allclose(getattr(found, name), expected, rtol=2e-5, err_msg=name)


def worker(state):
    """As a worker has it: without averages."""
    frame = state.frame.copy()
    frame[2:] = 0
    lag = np.zeros_like(state.word_lag)
    return replace(mirror_descent.copy(state), frame=frame, average_phi=None, average_weight=0.0, word_lag=lag)


@pytest.mark.parametrize(("batch_size", "expected"), [(1, 1), (500, 1), (999, 1), (1000, 2), (16_000, 32), (10**6, 1024)])
def test_how_many_shards(batch_size, expected):
    assert rounds.n_shards(batch_size) == expected


def test_shards_are_a_partition(corpus):
    part = corpus.without(np.arange(0, 12_000, 7))
    sizes = [part.shard(number, 8).n_docs for number in range(8)]
    assert sum(sizes) == part.n_docs
    places = np.concatenate([part.shard(number, 8).selection.places(np.arange(n)) for number, n in enumerate(sizes)])
    assert_array_equal(np.sort(places), part.selection.places(np.arange(part.n_docs)))
    again = pickle.loads(pickle.dumps(part.shard(3, 8)))
    assert again.fingerprint == part.shard(3, 8).fingerprint != part.shard(2, 8).fingerprint
    assert_array_equal(again.matrix().toarray(), part.matrix(np.flatnonzero(np.arange(part.n_docs) // 256 % 8 == 3)).toarray())
    assert again.n_entries == again.matrix().nnz
    assert again.without(np.array([0, 5])).n_docs == again.n_docs - 2
    with pytest.raises(ValueError, match="shards 0 to 7, got 8"):
        part.shard(8, 8)


@pytest.mark.parametrize("n_docs", [1, 100, 128, 129, 1000, 1024, 9000])
@pytest.mark.parametrize("n_groups", [1, 2, 4])
def test_gradients_of_parts_are_those_of_the_batch(corpus, n_docs, n_groups):
    """Parts that are subtrees of the batch's blocks, merged along the tree, to the bit; thinned, with words' weights."""
    place, state = place_of(corpus, word_dropout=0.3, theme_weight=0.01, use_weight=0.01), state_of(with_themes=True)
    numbers = np.random.default_rng(1).integers(0, corpus.n_docs, n_docs)
    layers = a_round(place).layers
    rates = place.fit.rates(3)
    examples = place.fit.source.take(numbers)
    whole = gradients_of(
        state, place.engine, examples, np.arange(n_docs), SquaredError(), layers, place.fit.schedule, rates, 5, 1
    )
    decoded = replace(whole.decoded, grad_themes=whole.decoded.grad_themes.copy())
    whole = replace(whole, grad_phi=whole.grad_phi.copy(), decoded=decoded)
    block_docs = _core.block_docs(n_docs)
    span = 1
    while span * block_docs < n_docs:
        span *= 2
    size = block_docs * span // min(span, n_groups)
    parts = [
        rounds.part_gradients(state, place, rounds.Part(numbers[first : first + size], first, block_docs, 3, 5, layers))
        for first in range(0, n_docs, size)
    ]
    found = [part for part, _ in parts]
    while len(found) > 1:
        found = [merged_gradients(*found[i : i + 2]) if i + 1 < len(found) else found[i] for i in range(0, len(found), 2)]
    for name in ("rows", "grad_phi", "grad_U", "grad_word_weights", "losses"):
        assert_array_equal(getattr(found[0], name), getattr(whole, name), err_msg=name)
    for name in ("rows", "grad_themes"):
        assert_array_equal(getattr(found[0].decoded, name), getattr(whole.decoded, name), err_msg=name)
    assert_array_equal(np.concatenate([told.scores for _, told in parts]), whole.scores)


def test_a_change_is_small(corpus):
    """Two bytes for each topic of a row, and rows that occur alone."""
    place = place_of(corpus)
    change, _ = rounds.learned_apart(state_of(), place, a_round(place), 0, never)
    assert isinstance(change, Change)
    assert change.log_phi.dtype == np.uint16
    assert change.log_phi.nbytes == 2 * N_TOPICS * len(change.rows)


def halves_of(values):
    """Upper halves of float32 that hold these numbers, which have few bits."""
    found = (np.asarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)
    assert_array_equal(changes.lengthened(found), values)
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_topics", [1, 3, 8, 21])
def test_changes_of_rows_are_the_nearest_short_numbers(n_topics, dtype):
    rng = np.random.default_rng(n_topics)
    z, before = (rng.uniform(0, 0.01, (20, n_topics)).astype(dtype) for _ in range(2))
    z[3], before[5] = 0, -1.0
    rows = np.array([0, 3, 5, 19], np.int32)
    shift, floor = rng.uniform(0, 1e-3, n_topics).astype(dtype), np.full(n_topics, 1e-4, dtype)
    exact = -2.5 * np.log(np.maximum(before[rows] + shift, floor) / np.maximum(z[rows] + shift, floor), dtype=np.float64)
    found = _core.log_changes(z, rows, before[rows], shift, floor, 2.5)
    values, error = changes.lengthened(found), 1e-6 + 1e-6 * np.abs(exact)
    assert_allclose(values, exact, rtol=2**-8, atol=1e-6)
    # No number with eight bits is nearer.
    for step in (-1, 1):
        other = changes.lengthened((found.astype(np.int64) + step).clip(0, 2**16 - 1).astype(np.uint16))
        assert (np.abs(values - exact) <= np.abs(other - exact) + error)[np.isfinite(other)].all()


def test_a_tie_goes_to_the_even_of_two_short_numbers():
    ties = np.array([[1 + 2**-8, 1 + 3 * 2**-8]])
    rows = np.zeros(1, np.int32)
    _, sums = _core.add_rows(rows, halves_of([[1.0, 1 + 2**-7]]), rows, halves_of([[2**-8, 2**-8]]))
    assert_array_equal(changes.lengthened(sums), [[1.0, 1 + 2**-6]])
    assert (np.abs(changes.lengthened(sums) - ties) == 2**-8).all()


def test_rows_of_two_are_added_where_both_have_them():
    rng = np.random.default_rng(0)
    rows = [np.sort(rng.choice(50, n, replace=False)).astype(np.int32) for n in (30, 20)]
    values = [rng.integers(-8, 8, (len(of_one), 5)).astype(np.float32) for of_one in rows]
    expected = np.zeros((50, 5))
    for of_one, value in zip(rows, values, strict=True):
        expected[of_one] += value
    union = np.union1d(*rows)
    for found, sums in (
        _core.add_rows(rows[0], values[0], rows[1], values[1]),
        _core.add_rows(rows[0], halves_of(values[0]), rows[1], halves_of(values[1])),
    ):
        assert_array_equal(found, union)
        assert_array_equal(changes.lengthened(sums) if sums.dtype == np.uint16 else sums, expected[union])


def test_what_rows_cannot_be():
    rows, values, nothing = np.array([3, 1], np.int32), np.zeros((2, 4), np.float32), np.zeros(4, np.float32)
    with pytest.raises(ValueError, match="ascending"):
        _core.add_rows(rows, values, rows, values)
    with pytest.raises(ValueError, match="shapes"):
        _core.add_rows(rows[:1], values, rows[:1], values)
    with pytest.raises(ValueError, match="out of range"):
        _core.log_changes(values, rows, values, nothing, nothing, 1.0)
    with pytest.raises(ValueError, match="shapes"):
        _core.log_changes(values, rows, values[:1], nothing, nothing, 1.0)


@pytest.mark.parametrize("weights", [(1.0, 1.0), (1e-3, 1e-3), (3.0, 1.0)])
def test_squares_are_those_of_the_mean_gradient(weights):
    """Shards of independent noise: the mean of two has half of it, whatever their documents weigh."""
    state, rows = state_of(), np.zeros(0, np.int32)
    squares = state.squares.copy(), state.word_squares
    nothing = np.zeros((0, N_TOPICS), np.uint16), None, np.zeros(N_TOPICS), np.zeros((1, N_TOPICS))
    parts = [Change(weight, 1, rows, *nothing, weight * np.full(N_TOPICS, 8.0), weight * 4.0, NO_MOMENTS) for weight in weights]
    changes.adopt(state, changes.merged(*parts), 1, 0.0, 1)
    assert_allclose(state.squares - squares[0], 4.0)
    assert_allclose(state.word_squares - squares[1], 2.0)


def test_the_curvature_is_the_mean_of_the_shards():
    state, nothing = state_of(), np.zeros(N_TOPICS)
    moments = [np.full((N_TOPICS, N_TOPICS), 2.0), np.full((N_TOPICS, N_TOPICS), 4.0)]
    rows, log_phi = np.zeros(0, np.int32), np.zeros((0, N_TOPICS), np.uint16)
    parts = [
        Change(weight, 1, rows, log_phi, None, nothing, np.zeros((1, N_TOPICS)), nothing, 0.0, weight * of_shard)
        for weight, of_shard in zip((1.0, 3.0), moments, strict=True)
    ]
    changes.adopt(state, changes.merged(*parts), 1, 0.0, 1)
    assert_allclose(state.moments, 3.5)


def test_a_change_larger_than_the_clip_of_one_step():
    """Many steps may move a row by more than a factor of e."""
    state = state_of()
    before = topics_of(state)
    log_phi = np.array([[3.0, -2.5, 0.0], [0.5, 0.0, 4.0]], np.float32)
    change = Change(
        weight=2.0,
        n_shards=2,
        rows=np.array([3, 9], np.int32),
        log_phi=halves_of(2 * log_phi),
        log_words=None,
        shift=np.zeros(N_TOPICS),
        U=np.zeros((1, N_TOPICS)),
        squares=np.zeros(N_TOPICS),
        word_squares=0.0,
        moments=NO_MOMENTS,
    )
    changes.adopt(state, change, 1, 0.0, 1)
    expected = before.copy()
    expected[[3, 9]] *= np.exp(log_phi)
    assert_allclose(topics_of(state), expected / expected.sum(axis=0), rtol=1e-5)


def test_every_document_comes_once_in_an_epoch(corpus):
    """Also where shards are smaller than the number of batches: what is short of documents has empty batches."""
    few = corpus.without(np.arange(700, 12_000))
    place = place_of(few, batch_sizes=(1000, 1000))
    place.fit = replace(place.fit, schedule=schedule(batch_sizes=(1000, 1000)))
    about = a_round(place, batch=0, n_batches=1)
    found = [place.documents(about, shard) for shard in range(2)]
    assert sum(examples.n_docs for examples, _ in found) == 700
    many = place_of(corpus)
    rows = [many.documents(a_round(many, batch=batch, n_batches=1), 0)[0].n_docs for batch in range(3)]
    assert sum(rows) == corpus.shard(0, 8).n_docs
    assert max(rows) - min(rows) <= 1


def test_shards_that_are_closed_meanwhile_are_the_same(corpus, monkeypatch):
    """A process keeps few of many open, and none of other batches."""

    def learned(place):
        found = [rounds.learned_apart(state_of(), place, a_round(place), shard, never)[0] for shard in (0, 1, 2, 0, 1, 2)]
        return [change.log_phi.tobytes() for change in found]

    place = place_of(corpus)
    all_open = learned(place)
    assert len(place._open) == 3
    monkeypatch.setattr(rounds, "_MOST_OPEN_DOCS", 2 * corpus.shard(0, 8).n_docs)
    place = place_of(corpus)
    assert learned(place) == all_open
    assert [shard for shard, _ in place._open] == [1, 2]
    monkeypatch.undo()
    place.fit = replace(place.fit, schedule=schedule(batch_sizes=(1000, 1000)))
    place.documents(a_round(place), 0)
    assert list(place._open) == [(0, 2)]


def test_a_round_without_weight_changes_nothing():
    state = state_of()
    before = mirror_descent.copy(state)
    nothing = np.zeros(N_TOPICS)
    rows = np.zeros(0, np.int32)
    change = Change(
        0.0, 1, rows, np.zeros((0, N_TOPICS), np.uint16), None, nothing, np.zeros((1, N_TOPICS)), nothing, 0.0, NO_MOMENTS
    )
    changes.adopt(state, change, 3, 1.0, 1)
    assert_array_equal(state.phi, before.phi)
    assert state.n_steps == before.n_steps + 3


def test_what_is_not_finite_is_told():
    rows = np.arange(1, dtype=np.int32)
    log_phi = halves_of(np.full((1, N_TOPICS), np.inf))
    nothing = np.zeros(N_TOPICS)
    change = Change(1.0, 1, rows, log_phi, None, nothing, np.zeros((1, N_TOPICS)), nothing, 0.0, NO_MOMENTS)
    with pytest.raises(mirror_descent.DivergedError, match="not finite after 5 steps"):
        changes.adopt(state_of(), change, 1, 0.0, 1)
