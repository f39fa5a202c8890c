"""Checkpoints: a fit that is killed and goes on ends with the same bits as one that was not."""

import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import scipy.sparse as sp
from mirrorlda.datasets import make_topics
from mirrorlda.responses import SquaredError
from soak import IS_SOAK

from mirrorlda import Checkpoint, FileFormatError, TopicClassifier, TopicModel, TopicRegressor
from mirrorlda.data.files import tensors
from mirrorlda.training import loop

N_KILLS = 50 if IS_SOAK else 3


@pytest.fixture(scope="module")
def data():
    return make_topics(600, 60, 3, n_outputs=1, random_state=0)


class Killed(BaseException):
    """As SIGKILL, but in this process."""


def fitted_attributes(model):
    """Everything that a fit leaves, as something to compare."""
    values = {name: value for name, value in vars(model).items() if name.endswith("_")}
    return {name: value.tobytes() if isinstance(value, np.ndarray) else value for name, value in values.items()}


SETTINGS = {
    "numbers": (TopicRegressor, {}),
    "some missing": (TopicRegressor, {"n_epochs": 2}),
    "alpha": (TopicRegressor, {"alpha": "auto", "average_from": 0.2}),
    "best": (TopicRegressor, {"early_stopping": True, "n_iter_no_change": 2, "coef_learning_rate": 3.0}),
    "seeds": (TopicRegressor, {"seed_words": {1: [3, 4]}}),
    "random": (TopicRegressor, {"random_state": None}),
    "classes": (TopicClassifier, {"class_weight": "balanced"}),
    "words": (TopicModel, {"alpha": "auto", "word_learning_rate": None}),
}


def new_model(name):
    estimator, options = SETTINGS[name]
    settings = {"n_topics": 3, "n_epochs": 4, "batch_size": 100, "random_state": 0, **options}
    return estimator(**{key: value for key, value in settings.items() if value is not None or key == "random_state"})


def target(name, data):
    if name == "classes":
        return data.y > 0
    return np.where(np.arange(600) % 2 == 0, data.y, np.nan) if name == "some missing" else data.y


@pytest.mark.parametrize("name", SETTINGS)
def test_a_fit_that_is_killed_again_and_again_ends_the_same(name, data, tmp_path, monkeypatch):
    y = target(name, data)
    step, n_steps = loop.step, []

    def counted(*arguments, **options):
        n_steps.append(1)
        return step(*arguments, **options)

    def killed(*arguments, **options):
        if len(done) == last:
            raise Killed
        done.append(1)
        return step(*arguments, **options)

    monkeypatch.setattr(loop, "step", counted)
    first = Checkpoint(tmp_path / "first", minutes=0)
    if name == "random":
        monkeypatch.setattr(loop, "step", killed)
        done, last = [], 1
        with pytest.raises(Killed):
            new_model(name).fit(data.X, y, checkpoint=first)
        (tmp_path / "run").write_bytes((tmp_path / "first").read_bytes())
        done, last = [], -1
    whole = new_model(name).fit(data.X, y, checkpoint=first)

    monkeypatch.setattr(loop, "step", killed)
    rng = np.random.default_rng(0)
    checkpoint = Checkpoint(tmp_path / "run", minutes=0)
    total = 0
    while True:
        done, last = [], int(rng.integers(1, 9))
        model = new_model(name)
        try:
            model.fit(data.X, y, checkpoint=checkpoint)
        except Killed:
            assert not [attribute for attribute in vars(model) if attribute.endswith("_")]
            total += len(done)
            continue
        break
    if n_steps:
        assert total + len(done) == len(n_steps), "every step was taken once"
    assert fitted_attributes(model) == fitted_attributes(whole)
    if hasattr(whole, "predict"):
        assert whole.predict(data.X).tobytes() == model.predict(data.X).tobytes()


def test_saving_changes_nothing(data, tmp_path):
    """Neither after every batch nor at the end of the epochs only."""
    plain = new_model("numbers").fit(data.X, data.y)
    often = new_model("numbers").fit(data.X, data.y, checkpoint=Checkpoint(tmp_path / "often", minutes=0))
    seldom = new_model("numbers").fit(data.X, data.y, checkpoint=tmp_path / "seldom")
    assert fitted_attributes(plain) == fitted_attributes(often) == fitted_attributes(seldom)


def test_a_fit_that_has_ended_returns_at_once(data, tmp_path, monkeypatch):
    whole = new_model("some missing").fit(data.X, target("some missing", data), checkpoint=tmp_path / "run")

    def refuse(*arguments, **options):
        raise AssertionError("a step was taken")

    monkeypatch.setattr(loop, "step", refuse)
    again = new_model("some missing").fit(data.X, target("some missing", data), checkpoint=tmp_path / "run")
    assert fitted_attributes(again) == fitted_attributes(whole)


def killed_after(n_steps, monkeypatch):
    """The next fit dies after so many steps."""
    step, done = loop.step, []

    def killed(*arguments, **options):
        if len(done) == n_steps:
            monkeypatch.setattr(loop, "step", step)
            raise Killed
        done.append(1)
        return step(*arguments, **options)

    monkeypatch.setattr(loop, "step", killed)


def test_the_number_of_threads_may_change(data, tmp_path, monkeypatch):
    whole = new_model("numbers").fit(data.X, data.y)
    killed_after(9, monkeypatch)
    with pytest.raises(Killed):
        new_model("numbers").fit(data.X, data.y, checkpoint=Checkpoint(tmp_path / "run", minutes=0))
    again = new_model("numbers").set_params(n_jobs=2, verbose=1).fit(data.X, data.y, checkpoint=tmp_path / "run")
    assert fitted_attributes(again) == fitted_attributes(whole)


def test_a_random_state_is_known_by_its_state(data, tmp_path, monkeypatch):
    whole = new_model("numbers").set_params(random_state=np.random.RandomState(3)).fit(data.X, data.y)
    killed_after(9, monkeypatch)
    with pytest.raises(Killed):
        new_model("numbers").set_params(random_state=np.random.RandomState(3)).fit(
            data.X, data.y, checkpoint=Checkpoint(tmp_path / "run", minutes=0)
        )
    with pytest.raises(FileFormatError, match="other parameters"):
        new_model("numbers").set_params(random_state=np.random.RandomState(4)).fit(data.X, data.y, checkpoint=tmp_path / "run")
    again = new_model("numbers").set_params(random_state=np.random.RandomState(3))
    assert fitted_attributes(again.fit(data.X, data.y, checkpoint=tmp_path / "run")) == fitted_attributes(whole)


def test_a_response_is_known_by_what_it_holds(data, tmp_path):
    class Own(SquaredError):
        __repr__ = object.__repr__

    new_model("numbers").set_params(response=Own(1.0)).fit(data.X, data.y, checkpoint=tmp_path / "run")
    new_model("numbers").set_params(response=Own(1.0)).fit(data.X, data.y, checkpoint=tmp_path / "run")
    with pytest.raises(FileFormatError, match="other parameters"):
        new_model("numbers").set_params(response=Own(2.0)).fit(data.X, data.y, checkpoint=tmp_path / "run")


def test_a_warm_start_is_known_by_what_it_starts_from(data, tmp_path):
    model = new_model("numbers").set_params(warm_start=True).fit(data.X, data.y, checkpoint=tmp_path / "run")
    with pytest.raises(FileFormatError, match="other parameters"):
        model.fit(data.X, data.y, checkpoint=tmp_path / "run")


def test_a_checkpoint_that_cannot_be_written_is_told_of_before_training(data, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "step", None)
    with pytest.raises(FileNotFoundError, match=r"the checkpoint cannot be written: .*missing is no directory"):
        new_model("numbers").fit(data.X, data.y, checkpoint=tmp_path / "missing" / "run")


def test_a_full_disk_does_not_end_training(data, tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tensors, "write", full)
    with pytest.warns(UserWarning, match=r"run: the checkpoint could not be written \(.*No space left"):
        model = new_model("numbers").fit(data.X, data.y, checkpoint=tmp_path / "run")
    assert fitted_attributes(model) == fitted_attributes(new_model("numbers").fit(data.X, data.y))


@pytest.mark.parametrize("what", ["documents", "targets", "parameter", "words", "estimator"])
def test_another_fit_is_refused(data, tmp_path, what):
    checkpoint = Checkpoint(tmp_path / "run")
    new_model("numbers").fit(data.X, data.y, checkpoint=checkpoint)
    X, y, model = sp.csr_array(data.X), data.y.copy(), new_model("numbers")
    if what == "documents":
        X.data = X.data + (np.arange(X.nnz) == 0)
    elif what == "targets":
        y[3] += 1
    elif what == "parameter":
        model.set_params(learning_rate=0.02)
    elif what == "words":
        X = sp.csr_array((X.data, X.indices, X.indptr), shape=(600, 80))
    else:
        model, y = new_model("classes"), y > 0
    with pytest.raises(FileFormatError, match="run: the checkpoint is of a fit with other parameters or other documents"):
        model.fit(X, y, checkpoint=checkpoint)


def test_other_weights_are_another_fit(data, tmp_path):
    new_model("words").fit(data.X, checkpoint=tmp_path / "run")
    with pytest.raises(FileFormatError, match="other parameters"):
        new_model("words").fit(data.X, sample_weight=np.arange(1, 601), checkpoint=tmp_path / "run")


def test_damaged_checkpoints_are_refused(data, tmp_path):
    path = tmp_path / "run"
    new_model("best").fit(data.X, data.y, checkpoint=path)
    content = path.read_bytes()
    for length in (0, 10, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(FileFormatError, match="run: "):
            new_model("best").fit(data.X, data.y, checkpoint=path)


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays, meta: meta.update(stage=-1),
        lambda arrays, meta: meta.pop("rng"),
        lambda arrays, meta: meta.update(epoch="3"),
        lambda arrays, meta: meta.update(tally={"sizes": [5], "loss": 0, "weight": 0}),
        lambda arrays, meta: meta.update(best={"score": "high", "epoch": 1}),
        lambda arrays, meta: arrays.pop("best.U"),
        lambda arrays, meta: arrays.pop("state.phi"),
        lambda arrays, meta: arrays.update(alpha=np.array([1.0, -1, 1], np.float32)),
        lambda arrays, meta: meta["state"].update(n_steps=-1),
    ],
)
def test_forged_checkpoints_are_refused(data, tmp_path, change):
    path = tmp_path / "run"
    new_model("best").fit(data.X, data.y, checkpoint=path)
    arrays, meta = tensors.read(path, "checkpoint")
    change(arrays, meta)
    tensors.write(path, arrays, meta, "checkpoint")
    with pytest.raises(FileFormatError, match="run: "):
        new_model("best").fit(data.X, data.y, checkpoint=path)


def test_minutes_must_be_some():
    with pytest.raises(ValueError, match="minutes must be at least 0"):
        Checkpoint("run", minutes=-1)


# Real signals

FITS = """
    import hashlib, signal, sys
    signal.signal(signal.SIGINT, signal.default_int_handler)
    import numpy as np
    from mirrorlda import Checkpoint, TopicRegressor
    from mirrorlda.datasets import make_topics
    data = make_topics(3000, 300, 5, n_outputs=1, random_state=0)
    y = np.where(np.arange(3000) % 3 == 0, data.y, np.nan)
    model = TopicRegressor(8, n_epochs=8, batch_size=150, alpha="auto", random_state=0, n_jobs=2)
    print("ready", flush=True)
    model.fit(data.X, y, checkpoint=Checkpoint(sys.argv[1], minutes=float(sys.argv[2])))
    found = b"".join(a.tobytes() for a in (model.components_, model.coef_, model.word_weights_, model.alpha_))
    print(hashlib.sha256(found + repr(model.history_).encode()).hexdigest())
"""


def start(path, minutes):
    command = [sys.executable, "-c", textwrap.dedent(FITS), str(path), str(minutes)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What a fit says that nothing disturbs."""
    return start(tmp_path_factory.mktemp("whole") / "run", 10).communicate()[0]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGKILL")
def test_sigkill_at_any_moment_does_not_change_the_result(whole, tmp_path):
    """Killed at random moments, a fit that is begun again until it ends has the bits of one that never was."""
    rng = np.random.default_rng(0)
    n_kills, runs = 0, 0
    while n_kills < N_KILLS:
        process = start(tmp_path / f"run {runs}", rng.choice([0, 0.0005]))
        try:
            process.wait(rng.exponential(0.15))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        output, _ = process.communicate()
        n_kills += process.returncode == -signal.SIGKILL
        if process.returncode == 0:
            assert output == whole
            runs += 1
    output, errors = start(tmp_path / f"run {runs}", 0).communicate()
    assert output == whole, errors


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
def test_ctrl_c_keeps_a_model_and_the_checkpoint(whole, tmp_path):
    process = start(tmp_path / "run", 10)
    while not (tmp_path / "run").exists():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "Ctrl-C: training ended after" in errors
    assert len(output) == 65
    assert output != whole
    _, saved = tensors.read(tmp_path / "run", "checkpoint")
    assert f"after {saved['n_steps']} of" in errors, "what was done is saved, not only the last epoch"
    again, _ = start(tmp_path / "run", 10).communicate()
    assert again == whole
