"""What users may rely on: the same bits whatever the threads, predictions without side effects, no NaN, bounded memory."""

import copy
import os
import re
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from mirrorlda.datasets import make_topics
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

import mirrorlda
from mirrorlda import TopicClassifier, TopicModel, TopicRegressor, _core
from mirrorlda.training.mirror_descent import DivergedError

ESTIMATORS = [TopicModel, TopicClassifier, TopicRegressor]


@pytest.fixture(scope="module")
def planted():
    return make_topics(1500, 700, 5, n_outputs=1, doc_length=40, random_state=0)


@pytest.fixture(params=ESTIMATORS)
def estimator(request):
    return request.param


@pytest.fixture
def y(estimator, planted):
    return {TopicModel: None, TopicClassifier: (planted.y > 0).astype(int), TopicRegressor: planted.y}[estimator]


def fitted(estimator, X, y, **parameters):
    return estimator(**({"n_topics": 5, "n_epochs": 3, "batch_size": 400, "random_state": 0} | parameters)).fit(X, y)


def results(model, X):
    """Everything that a fit decides."""
    arrays = [model.components_, model.alpha_, model.topic_shares_, model.transform(X), np.array(list(model.history_.values()))]
    if hasattr(model, "coef_"):
        arrays += [model.coef_, model.word_weights_, model.predict(X)]
    return arrays


def assert_same(one, other):
    for a, b in zip(one, other, strict=True):
        assert_array_equal(a, b)


def python(program, **environment):
    """Run a program in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **environment},
    )


# The same bits


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_number_of_threads_does_not_matter(estimator, planted, y, dtype):
    X = planted.X.astype(dtype)
    one = results(fitted(estimator, X, y, n_jobs=1), X)
    for n_jobs in (2, 3, None, -1):
        assert_same(results(fitted(estimator, X, y, n_jobs=n_jobs), X), one)


def test_the_number_of_threads_does_not_matter_to_a_stream(estimator, planted, y):
    models = [estimator(n_topics=5, batch_size=200, random_state=0, n_jobs=n_jobs) for n_jobs in (1, 3)]
    for part in np.array_split(np.arange(1500), 3):
        for model in models:
            model.partial_fit(planted.X[part], None if y is None else y[part])
    assert_same(*(results(model, planted.X) for model in models))


def test_neither_threads_nor_time_matter_with_all_defaults(estimator, planted, y):
    """Words left out, words' weights and the start are the random state's; a part of a stream goes on where the last ended."""
    runs = []
    for n_jobs in (1, 1, 2, 3):
        model = estimator(random_state=0, n_jobs=n_jobs).fit(planted.X, y)
        fit = results(model, planted.X)
        model.partial_fit(planted.X[:300], None if y is None else y[:300])
        model.partial_fit(planted.X[300:], None if y is None else y[300:])
        runs.append([*fit, *results(model, planted.X)])
    for other in runs[1:]:
        assert_same(other, runs[0])


def test_the_threads_of_blas_do_not_matter(estimator, planted, y):
    runs = []
    for limit in (1, 2):
        with threadpool_limits(limits=limit):
            runs.append(results(fitted(estimator, planted.X, y), planted.X))
    assert_same(*runs)


def test_runs_do_not_disturb_each_other(estimator, planted, y):
    """Fits in concurrent threads, each with threads of its own."""
    alone = results(fitted(estimator, planted.X, y), planted.X)
    with ThreadPoolExecutor(4) as threads:
        runs = threads.map(lambda n_jobs: results(fitted(estimator, planted.X, y, n_jobs=n_jobs), planted.X), [1, 2, 3, 2])
        for run in runs:
            assert_same(run, alone)


def test_concurrent_predictions_of_one_model_agree(estimator, planted, y):
    model = fitted(estimator, planted.X, y, n_jobs=2)
    expected = model.transform(planted.X)
    with ThreadPoolExecutor(4) as threads:
        for theta in threads.map(lambda _: model.transform(planted.X), range(12)):
            assert_array_equal(theta, expected)


# Predictions


METHODS = ["transform", "predict", "predict_proba", "predict_log_proba", "decision_function", "score", "get_feature_names_out"]


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array, np.asarray])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_nothing_is_changed_by_a_prediction_nor_the_input_by_a_fit(estimator, planted, y, kind, dtype):
    X = kind(planted.X.toarray().astype(dtype))
    untouched, targets = copy.deepcopy(X), copy.deepcopy(y)
    arrays = [X] if kind is np.asarray else [X.data, X.indices, X.indptr]
    for array in arrays:
        array.flags.writeable = False
    model = fitted(estimator, X, y, n_epochs=1)
    before = copy.deepcopy(vars(model))
    for method in METHODS:
        if hasattr(model, method):
            getattr(model, method)(*{"score": (X, y), "get_feature_names_out": ()}.get(method, (X,)))
    assert vars(model).keys() == before.keys()
    for name, value in before.items():
        assert_array_equal(vars(model)[name], value, err_msg=name)
    assert_array_equal(y, targets)
    assert (untouched != X).sum() == 0


def test_a_batch_equals_its_documents_one_by_one(estimator, planted, y):
    X = planted.X[:60]
    model = fitted(estimator, planted.X, y)
    for method in ("transform", "predict", "predict_proba", "decision_function"):
        if hasattr(model, method):
            together = getattr(model, method)(X)
            alone = [getattr(model, method)(X[[d]])[0] for d in range(60)]
            assert_array_equal(alone, together)


def test_predictions_do_not_depend_on_how_documents_are_chunked(planted):
    model = fitted(TopicModel, planted.X, None, n_epochs=1)
    many = sp.vstack([planted.X] * 6).tocsr()
    assert_array_equal(model.transform(many), np.tile(model.transform(planted.X), (6, 1)))


# Processes


PROGRAM = """
    from mirrorlda import TopicRegressor
    from mirrorlda.datasets import make_topics
    data = make_topics(600, 100, 3, n_outputs=1, random_state=0)
    def fit(n_jobs):
        model = TopicRegressor(3, n_epochs=2, batch_size=200, random_state=0, n_jobs=n_jobs)
        return model.fit(data.X, data.y).predict(data.X).tobytes()
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_has_threads_of_its_own():
    done = python(
        textwrap.dedent(PROGRAM)
        + textwrap.dedent("""
            import multiprocessing
            before = fit(3)
            with multiprocessing.get_context("fork").Pool(2) as pool:
                inside = pool.map(fit, [3, 2, 1, 3])
            print(all(run == before for run in inside), fit(2) == before)
        """),
        PYTHONWARNINGS="ignore",
    )
    assert done.stdout == "True True\n", done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_instruction_sets_agree(tmp_path, dtype):
    program = f"""
        import numpy as np
        from mirrorlda import _core, infer
        from mirrorlda.datasets import make_topics
        data = make_topics(200, 300, 13, random_state=0)
        phi = ((data.components.T + 1e-4) / (1 + 300e-4)).astype("{dtype}")
        np.save("{tmp_path}/" + _core.instruction_set(), infer(phi, data.X, step_size=1e-3).theta)
    """
    names = _core.instruction_sets()
    assert "scalar" in names
    assert _core.instruction_set() in names
    for name in names:
        done = python(program, MIRRORLDA_ISA=name)
        assert done.returncode == 0, done.stderr
    thetas = [np.load(tmp_path / f"{name}.npy") for name in names]
    for one, other in pairwise(thetas):
        assert_allclose(one, other, rtol={"float32": 1e-3, "float64": 1e-11}[dtype], atol=1e-7 if dtype == "float32" else 1e-15)


def test_an_unknown_instruction_set_is_refused_by_name():
    done = python("from mirrorlda import infer; infer([[1.0]], [[1]])", MIRRORLDA_ISA="mmx")
    assert done.returncode != 0
    assert "MIRRORLDA_ISA is 'mmx'; this machine and this build run:" in done.stderr
    assert "scalar" in done.stderr.splitlines()[-1]


def test_importing_the_package_is_light():
    done = python("import sys, mirrorlda; print(sorted({'sklearn', 'pandas', 'tqdm', 'joblib'} & set(sys.modules)))")
    assert done.stdout == "[]\n", done.stderr


def test_every_public_name_is_there():
    assert dir(mirrorlda) == sorted(mirrorlda.__all__)
    assert all(callable(getattr(mirrorlda, name)) for name in mirrorlda.__all__)
    with pytest.raises(AttributeError, match="no attribute 'TopicPainter'"):
        _ = mirrorlda.TopicPainter


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_does_not_grow():
    """After a warm-up, neither predictions nor parts of a stream add to the process's memory."""
    done = python("""
        import os
        from mirrorlda import TopicClassifier
        from mirrorlda.datasets import make_topics
        data = make_topics(400, 2000, 5, n_classes=2, random_state=0)
        model = TopicClassifier(20, n_epochs=1, random_state=0, n_jobs=2).fit(data.X, data.y)
        def resident():
            with open("/proc/self/statm") as statm:
                return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
        def rounds(n):
            for _ in range(n):
                model.predict_proba(data.X)
                model.partial_fit(data.X[:100], data.y[:100])
            return resident()
        before = rounds(60)
        print(rounds(240) - before)
    """)
    assert float(done.stdout) < 8, done.stderr


# Never NaN


@st.composite
def extremes(draw):
    """Few documents whose counts span all that is allowed, with empty ones, repeated ones, and words that never occur."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed"))
    n_docs, n_words = draw(st.integers(2, 12), label="n_docs"), draw(st.integers(1, 30), label="n_words")
    low, high = draw(st.sampled_from([(-30, -20), (-3, 3), (6, 12), (-30, 12), (12, 12)]), label="decades of counts")
    X = 10.0 ** rng.uniform(low, high, (n_docs, n_words))
    X *= rng.random(X.shape) < draw(st.sampled_from([0.1, 0.6, 1.0]), label="share of words")
    X[0, 0] = max(X[0, 0], 1e-30)
    X[rng.integers(n_docs)] = X[0]
    options = {
        "n_topics": draw(st.integers(1, 6), label="n_topics"),
        "alpha": draw(st.sampled_from([1e-3, 0.5, 1.0, 1.001, 100.0]), label="alpha"),
        "beta": draw(st.sampled_from([1.0, 1.0001, 1e6]), label="beta"),
        "n_layers": draw(st.integers(1, 12), label="n_layers"),
        "step_size": draw(st.sampled_from(["l1", "kl", 1e-3, 10.0]), label="step_size"),
        "learning_rate": draw(st.sampled_from([0.0, 0.02, 1.0, 1e6]), label="learning_rate"),
        "batch_size": draw(st.sampled_from([1, 3, 100]), label="batch_size"),
        "n_epochs": draw(st.sampled_from([1, 3]), label="n_epochs"),
    }
    tol = draw(st.sampled_from([0.0, 0.01, 0.9]), label="tol")
    return X.astype(draw(st.sampled_from([np.float32, np.float64]), label="dtype")), options, tol, rng


@pytest.mark.slow
@settings(max_examples=60)
@given(extremes())
def test_parameters_are_finite_or_learning_says_that_it_diverged(extreme):
    X, options, tol, rng = extreme
    classes = np.arange(len(X)) % 2
    numbers = rng.normal(size=len(X))
    for estimator in (TopicModel(), TopicClassifier(tol=tol), TopicRegressor(tol=tol)):
        y = {TopicModel: None, TopicClassifier: classes, TopicRegressor: numbers}[type(estimator)]
        try:
            model = estimator.set_params(**options, random_state=0).fit(X, y)
        except DivergedError:
            continue
        assert np.isfinite(model.components_).all()
        assert_allclose(model.components_.sum(axis=1, dtype=float), 1, rtol=1e-4)
        theta = model.transform(X)
        assert np.isfinite(theta).all()
        assert_allclose(theta.sum(axis=1, dtype=float), 1, rtol=1e-4)
        assert y is None or np.isfinite(model.coef_).all()


@pytest.mark.parametrize("scale", [1e300, 1e-300, 1e40])
def test_targets_of_any_size_are_learned_or_refused(planted, scale):
    """In float32, as counts are."""
    try:
        model = fitted(TopicRegressor, planted.X, planted.y * scale)
    except ValueError as error:
        if not re.search(r"\by\b", str(error)):
            raise
        return
    expected = fitted(TopicRegressor, planted.X, planted.y).predict(planted.X[:9])
    assert_allclose(model.predict(planted.X[:9]), scale * expected, rtol=1e-3)


def test_a_run_that_diverges_ends_in_one_error(planted):
    model = TopicRegressor(3, n_epochs=60, coef_learning_rate=1e4, learning_rate_decay="constant", random_state=0)
    with pytest.raises(DivergedError, match="lower the learning rate"):
        model.fit(planted.X, planted.y)
    assert not hasattr(model, "components_")
