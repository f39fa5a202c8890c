"""The bindings refuse arrays that do not agree, and the smallest batches pass through the engine."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mirrorlda import _core

L1, KL, GIVEN = 0, 1, 2
NO_ROWS, ALL_ROWS = np.zeros(0, np.int32), np.arange(4, dtype=np.int32)


def engine_of(dtype):
    return _core.Engine64() if dtype == np.float64 else _core.Engine32()


def arguments(dtype=np.float64, **changes):
    """A good call of Engine.forward: three documents, the second empty, four words, two topics."""
    values = {
        "phi": np.array([[0.4, 0.1], [0.3, 0.2], [0.2, 0.3], [0.1, 0.4]], dtype),
        "indptr": np.array([0, 2, 2, 4]),
        "indices": np.array([0, 1, 2, 3], np.int32),
        "counts": np.array([2, 1, 3, 1], dtype),
        "documents": np.arange(3),
        "alpha": np.full(2, 1.5, dtype),
        "n_layers": 4,
        "rule": L1,
        "tol": 0.0,
        "steps": None,
        "frame": None,
        "keep": True,
        "objective": True,
        "n_threads": 1,
    }
    return values | changes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indices": np.zeros(3, np.int32)}, "not ascending"),
        ({"frame": np.ones((2, 3))}, "frame must be"),
        ({"frame": np.ones((1, 2))}, "frame must be"),
        ({"indptr": np.zeros(0, np.int64)}, "out of range"),
        ({"indices": np.array([0, 1, 9, 1], np.int32)}, "a word is out of range"),
        ({"counts": np.ones(5)}, "differ in length"),
        ({"rule": 7}, "rule is unknown"),
        ({"tol": -1e-9}, "tol"),
        ({"tol": 1.0}, "tol"),
        ({"tol": np.nan}, "tol"),
        ({"documents": np.array([0, 3])}, "out of range"),
        ({"documents": np.array([-1])}, "out of range"),
        ({"indptr": np.array([0, 3, 2, 4])}, "not ascending"),
        ({"indptr": np.array([0, 2, 2, 9])}, "not ascending"),
        ({"indptr": np.array([-1, 2, 2, 4])}, "not ascending"),
        ({"alpha": np.ones(3)}, "alpha"),
        ({"phi": np.ones((4, 0)), "alpha": np.ones(0)}, "n_topics"),
        ({"n_layers": -1}, "n_layers"),
        ({"n_threads": 0}, "n_threads"),
        ({"rule": GIVEN}, "steps"),
        ({"steps": np.ones((3, 4))}, "steps"),
        ({"rule": GIVEN, "steps": np.ones((3, 3))}, "steps"),
        ({"rule": GIVEN, "steps": np.ones((2, 4))}, "steps"),
    ],
)
def test_forward_refuses_what_does_not_agree(changes, message):
    with pytest.raises(ValueError, match=message):
        _core.Engine64().forward(**arguments(**changes))


@pytest.mark.parametrize(
    "changes",
    [{"phi": np.ones(4)}, {"indptr": np.zeros((2, 2), np.int64)}, {"phi": "phi"}, {"counts": None}, {"steps": np.ones(4)}],
)
def test_forward_refuses_other_types_and_dimensions(changes):
    with pytest.raises(TypeError):
        _core.Engine64().forward(**arguments(**changes))


def test_reverse_and_trace_need_a_kept_forward_pass(dtype):
    engine = engine_of(dtype)
    for prepare in (lambda: None, lambda: engine.forward(**arguments(dtype, keep=False))):
        prepare()
        with pytest.raises(ValueError, match="comes first"):
            engine.reverse(None, None, ALL_ROWS, False, 1)
        with pytest.raises(ValueError, match="comes first"):
            engine.trace()
        with pytest.raises(ValueError, match="comes first"):
            engine.objective()


def test_a_forward_pass_that_fails_leaves_no_trace(dtype):
    """Nor does one that was refused let reverse read arrays that are gone."""
    engine = engine_of(dtype)
    engine.forward(**arguments(dtype))
    with pytest.raises(ValueError, match="alpha"):
        engine.forward(**arguments(dtype, alpha=np.ones(3, dtype)))
    gradient, _ = engine.reverse(None, np.ones(3, dtype), ALL_ROWS, False, 1)
    assert (gradient != 0).all()


@pytest.mark.parametrize(
    ("grad_theta", "word_weights"),
    [(np.ones((2, 2)), None), (np.ones((3, 3)), None), (None, np.ones(2)), (np.ones((3, 2)), np.ones(4))],
)
def test_reverse_refuses_what_does_not_agree(grad_theta, word_weights):
    engine = _core.Engine64()
    engine.forward(**arguments())
    with pytest.raises(ValueError, match="must be"):
        engine.reverse(grad_theta, word_weights, ALL_ROWS, True, 1)


def test_reverse_reads_arrays_that_the_caller_has_dropped(dtype):
    kept, dropped = engine_of(dtype), engine_of(dtype)
    values = arguments(dtype)
    kept.forward(**values)
    dropped.forward(**arguments(dtype))
    garbage = [np.full(64, np.nan, dtype) for _ in range(100)]
    weights = np.ones(3, dtype)
    for one, other in zip(
        kept.reverse(None, weights, ALL_ROWS, True, 1), dropped.reverse(None, weights, ALL_ROWS, True, 1), strict=True
    ):
        assert_array_equal(one, other)
    assert len(garbage) == 100


def test_the_gradient_outlives_the_name_of_its_engine():
    engine = _core.Engine64()
    engine.forward(**arguments())
    gradient, _ = engine.reverse(None, np.ones(3), ALL_ROWS, False, 1)
    before = gradient.copy()
    del engine
    assert_array_equal(gradient, before)


@pytest.mark.parametrize("rule", [L1, KL, GIVEN])
def test_no_documents(dtype, rule):
    engine = engine_of(dtype)
    steps = np.ones((0, 4)) if rule == GIVEN else None
    theta = engine.forward(**arguments(dtype, documents=np.zeros(0, np.int64), rule=rule, steps=steps))
    assert theta.shape == (0, 2)
    assert [a.shape for a in engine.trace()] == [(0, 5, 2), (0, 4), (0, 5), (0, 4)]
    gradient, grad_counts = engine.reverse(np.zeros((0, 2), dtype), np.zeros(0, dtype), NO_ROWS, True, 2)
    assert (gradient.shape, grad_counts.shape) == ((0, 2), (0,))


@pytest.mark.parametrize("rule", [L1, KL])
def test_documents_without_words(dtype, rule):
    engine = engine_of(dtype)
    empty = {"indptr": np.zeros(4, np.int64), "indices": np.zeros(0, np.int32), "counts": np.zeros(0, dtype)}
    theta = engine.forward(**arguments(dtype, rule=rule, **empty))
    assert_allclose(theta, 0.5)
    gradient, grad_counts = engine.reverse(np.ones((3, 2), dtype), np.ones(3, dtype), NO_ROWS, True, 2)
    assert (gradient.shape, grad_counts.shape) == ((0, 2), (0,))


def test_one_layer(dtype):
    n_layers = 1
    engine = engine_of(dtype)
    theta = engine.forward(**arguments(dtype, n_layers=n_layers))
    assert_allclose(theta.sum(axis=1), 1, rtol=1e-6)
    assert n_layers or (theta == 0.5).all()
    gradient, _ = engine.reverse(np.array([[1, -1]] * 3, dtype), None, ALL_ROWS, True, 1)
    assert gradient.shape == (4, 2)
    assert np.isfinite(gradient).all()
    assert gradient.any() == bool(n_layers)


def test_an_engine_serves_batches_of_any_size_in_any_order(dtype):
    rng = np.random.default_rng(0)
    used = engine_of(dtype)
    for n_docs, n_words, n_topics, n_layers in [(40, 30, 9, 3), (2, 500, 3, 7), (100, 4, 33, 1), (1, 1, 1, 2), (40, 30, 9, 3)]:
        phi = rng.dirichlet(np.ones(n_words), n_topics).T.astype(dtype, order="C")
        sizes = rng.integers(0, n_words + 1, n_docs)
        indices = np.concatenate([rng.permutation(n_words)[:size] for size in sizes]).astype(np.int32)
        values = arguments(
            dtype,
            phi=phi,
            indptr=np.concatenate([[0], np.cumsum(sizes)]),
            indices=indices,
            counts=rng.random(len(indices)).astype(dtype),
            documents=rng.permutation(n_docs),
            alpha=np.full(n_topics, 1.1, dtype),
            n_layers=n_layers,
        )
        grad_theta, weights = rng.standard_normal((n_docs, n_topics)).astype(dtype), np.ones(n_docs, dtype)
        fresh = engine_of(dtype)
        assert_array_equal(used.forward(**values), fresh.forward(**values))
        rows = np.unique(indices)
        both = (engine.reverse(grad_theta, weights, rows, True, n) for engine, n in ((used, 2), (fresh, 1)))
        for one, other in zip(*both, strict=True):
            assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("rows", "message"), [([0, 1, 2], "distinct words"), ([], "distinct words"), ([0, 1, 2, 4], "range"), ([-1], "range")]
)
def test_reverse_refuses_rows_that_are_not_the_words(rows, message):
    engine = _core.Engine64()
    engine.forward(**arguments())
    with pytest.raises(ValueError, match=message):
        engine.reverse(None, np.ones(3), np.array(rows, np.int32), False, 1)


def test_distinct_words():
    indptr, indices = np.array([0, 3, 3, 5]), np.array([70, 0, 64, 63, 0], np.int32)
    for documents, expected in (([0, 1, 2], [0, 63, 64, 70]), ([1], []), ([2], [0, 63]), ([], [])):
        words = _core.distinct_words(indptr, indices, np.array(documents, np.int64), 71, 2)
        assert words.dtype == np.int32
        assert_array_equal(words, expected)


def test_phi_in_a_frame_gives_what_phi_itself_gives(dtype):
    """Powers of two: reading a row in its frame does not round. Below the floor the floor is read."""
    phi = np.array([[0.5, 0.25], [0.25, 0.5], [0.25, 0.25], [1e-12, 0]], dtype)
    frame = np.array([[0.5, 2], [-0.5, 0.125]], dtype)
    passes = []
    for plain in (True, False):
        engine, z = _core.Engine32() if dtype == np.float32 else _core.Engine64(), phi if plain else (phi - frame[1]) / frame[0]
        theta = engine.forward(**arguments(dtype, phi=z, frame=None if plain else frame))
        grad_phi, _ = engine.reverse(np.ones((3, 2), dtype) * [[1, 2]], None, np.arange(4, dtype=np.int32), False, 1)
        passes.append((theta, *engine.trace(), grad_phi))
    for one, other in zip(*passes, strict=True):
        assert_allclose(other, one, rtol=1e-5 if dtype == np.float32 else 1e-10)


PHI, FRAME, ROWS = np.full((4, 2), 0.25), np.array([[1.0, 1], [0, 0], [0, 0], [0, 0]]), np.arange(2, dtype=np.int32)


@pytest.mark.parametrize(
    "changes",
    [
        {"gradient": np.ones((3, 2))},
        {"gradient": np.ones((2, 3))},
        {"gradient": np.ones((2, 4))[:, ::2]},
        {"gradient": np.asfortranarray(np.ones((2, 2)))},
        {"rate": np.ones(3)},
        {"average": np.zeros((3, 2))},
        {"average": np.zeros((2, 4))},
        {"frame": np.ones((3, 2))},
        {"frame": np.ones((4, 3))},
    ],
)
def test_mirror_rows_refuses_what_does_not_agree(changes):
    values = {"z": PHI.copy(), "average": None, "frame": FRAME, "rows": ROWS}
    values |= {"gradient": np.ones((2, 2)), "rate": np.ones(2), "n_threads": 1}
    _core.mirror_rows(**values)
    with pytest.raises(ValueError, match="shapes do not agree"):
        _core.mirror_rows(**(values | changes))


@pytest.mark.parametrize("changes", [{"average": np.zeros((3, 2))}, {"frame": np.ones((3, 2))}, {"frame": np.ones((4, 3))}])
def test_settle_refuses_what_does_not_agree(changes):
    values = {"z": PHI.copy(), "average": None, "frame": FRAME, "n_threads": 1}
    _core.settle(**values)
    with pytest.raises(ValueError, match="shapes do not agree"):
        _core.settle(**(values | changes))


def test_products_refuse_what_does_not_agree():
    with pytest.raises(ValueError, match="differ in their topics"):
        _core.scores(np.ones((3, 2)), np.ones((1, 3)), 1)
    with pytest.raises(ValueError, match="differ in their outputs"):
        _core.back_scores(np.ones((3, 2)), np.ones((1, 3)), 1)
    with pytest.raises(ValueError, match="differ in their documents"):
        _core.outer(np.ones((3, 2)), np.ones((1, 3)), 1)
    with pytest.raises(ValueError, match="contiguous"):
        _core.column_squares(np.ones((3, 4))[:, ::2], 1)


@pytest.mark.parametrize("size", [1, 2, 7, 64, 130])
@pytest.mark.parametrize("n_rows", [0, 1, 9])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_rows_are_solved_as_by_numpy(size, n_rows, n_threads):
    rng = np.random.default_rng(size)
    root, rows = rng.standard_normal((size, size)), rng.standard_normal((n_rows, size))
    matrix = root @ root.T + np.eye(size)
    before = matrix.copy(), rows.copy()
    solved = _core.solve_rows(matrix, rows, n_threads)
    np.testing.assert_allclose(solved, np.linalg.solve(matrix, rows.T).T, rtol=1e-8, atol=1e-10)
    assert_array_equal(solved, _core.solve_rows(matrix, rows, 1))
    for now, then in zip((matrix, rows), before, strict=True):
        assert_array_equal(now, then)


@pytest.mark.parametrize("matrix", [np.zeros((2, 2)), -np.eye(2), np.array([[1.0, 2], [2, 1]]), np.full((2, 2), np.nan)])
def test_a_matrix_that_is_not_positive_definite_is_refused(matrix):
    with pytest.raises(ValueError, match="not positive definite"):
        _core.solve_rows(matrix, np.ones((1, 2)), 1)


def test_a_matrix_must_fit_the_rows():
    for matrix, rows in ((np.eye(3), np.ones((1, 2))), (np.ones((2, 3)), np.ones((1, 3)))):
        with pytest.raises(ValueError, match="solve_rows: shapes do not agree"):
            _core.solve_rows(matrix, rows, 1)


def test_a_gradient_without_rows(dtype):
    gradient, phi = np.zeros((0, 2), dtype), np.full((4, 2), 0.25, dtype)
    assert_array_equal(_core.column_squares(gradient, 1), [0, 0])
    change = _core.mirror_rows(phi, None, FRAME, np.zeros(0, np.int32), gradient, np.ones(2, dtype), 1)
    assert_array_equal(change, [0, 0])
    assert_array_equal(phi, 0.25)


def test_arrays_that_are_written_are_never_copied_first():
    """A silent conversion would lose the update."""
    wrong = np.full((4, 2), 0.25, np.float16)
    with pytest.raises(TypeError):
        _core.mirror_rows(wrong, None, FRAME, ROWS, np.ones((2, 2)), np.ones(2), 1)
    with pytest.raises(TypeError):
        _core.settle(np.asfortranarray(PHI), None, FRAME, 1)
    with pytest.raises(TypeError):
        _core.settle(PHI.copy(), PHI.astype(np.float32), FRAME, 1)


@pytest.mark.parametrize("rows", [[0, 1, 2], [0, 1, 2, 3, 3], [0, 1, 2, 0]])
def test_reverse_refuses_rows_that_are_not_the_words_of_the_batch(rows):
    engine = _core.Engine64()
    engine.forward(**arguments())
    with pytest.raises(ValueError, match="rows must be the distinct words"):
        engine.reverse(None, np.ones(3), np.array(rows, np.int32), False, 1)


def test_reverse_refuses_rows_that_do_not_occur():
    engine = _core.Engine64()
    engine.forward(**arguments(documents=np.array([0])))
    with pytest.raises(ValueError, match="rows must be the distinct words"):
        engine.reverse(None, np.ones(1), np.array([0, 1, 2], np.int32), False, 1)


def test_a_used_engine_refuses_wrong_rows_too():
    engine = _core.Engine64()
    engine.forward(**arguments())
    engine.reverse(None, np.ones(3), np.arange(4, dtype=np.int32), False, 1)
    with pytest.raises(ValueError, match="rows must be the distinct words"):
        engine.reverse(None, np.ones(3), np.arange(2, dtype=np.int32), False, 1)
    gradient, _ = engine.reverse(None, np.ones(3), np.arange(4, dtype=np.int32), False, 1)
    assert np.isfinite(gradient).all()
