"""Training on a cluster: what one machine gives, for any number of workers, whatever dies on the way."""

import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings

import numpy as np
import pytest
from click.testing import CliRunner
from mirrorlda.datasets import make_topics
from soak import IS_SOAK

from mirrorlda import Corpus, CorpusError, CorpusWriter, Target, TopicClassifier, TopicModel, TopicRegressor
from mirrorlda.training import loop
from mirrorlda.training.interrupt import InterruptedWarning

pytest.importorskip("ray")
if not sys.platform.startswith("linux"):
    pytest.skip("finds Ray's processes in /proc", allow_module_level=True)

from mirrorlda.distributed import Cluster, ClusterError, cluster, training
from ray_cluster import MACHINE, workers

import mirrorlda
from mirrorlda.cli import main

pytestmark = pytest.mark.xdist_group("ray")

N_KILLS = 20 if IS_SOAK else 2
N_KILLED_DRIVERS = 20 if IS_SOAK else 1
N_WORDS = 120


@pytest.fixture(scope="module")
def two(machines):
    """The machines, to which this process is connected: workers stay for the next test."""
    with Cluster(machines.address):
        yield machines


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("distributed")


@pytest.fixture(scope="module")
def data():
    return make_topics(n_docs=12_000, n_words=N_WORDS, n_topics=4, n_outputs=1, random_state=0)


def write(path, data, kind, y):
    names = ("y",)
    with CorpusWriter(path, N_WORDS, target=Target(kind, names)) as writer:
        writer.add(data.X, y)
    return Corpus(path)


@pytest.fixture(scope="module")
def corpora(folder, data):
    level = np.digitize(data.y, np.quantile(data.y, [0.3, 0.6]))
    labels = [[name for name, low in (("a", -0.5), ("b", 0.0), ("c", 0.5)) if value > low] for value in data.y]
    missing = np.where(np.arange(12_000) % 3 == 0, data.y, np.nan)
    return {
        "numbers": write(folder / "numbers", data, "numbers", data.y),
        "classes": write(folder / "classes", data, "classes", level.astype(str)),
        "labels": write(folder / "labels", data, "labels", labels),
        "missing": write(folder / "missing", data, "numbers", missing),
    }


def attributes(model):
    """Everything that a fit leaves, as something to compare."""
    values = {name: value for name, value in vars(model).items() if name.endswith("_") and name != "vocabulary_"}
    return {name: value.tobytes() if isinstance(value, np.ndarray) else value for name, value in values.items()}


SETTINGS = {
    "numbers": (TopicRegressor, "numbers", {}),
    "batches that grow": (TopicRegressor, "numbers", {"batch_size": (1000, 4000)}),
    "alpha": (TopicRegressor, "numbers", {"alpha": "auto"}),
    "best": (TopicRegressor, "numbers", {"early_stopping": True}),
    "seeds": (TopicRegressor, "numbers", {"seed_words": {1: [3, 4]}, "word_dropout": 0.2}),
    "a large prior": (TopicRegressor, "numbers", {"beta": 3.0}),
    "ordinal": (TopicRegressor, "missing", {"n_epochs": 2}),
    "classes": (TopicClassifier, "classes", {"class_weight": "balanced"}),
    "labels": (TopicClassifier, "labels", {}),
    "words": (TopicModel, "numbers", {"alpha": "auto", "n_epochs": 4}),
}


def new_model(name):
    estimator, corpus, options = SETTINGS[name]
    return estimator(**{"n_topics": 4, "n_epochs": 3, "batch_size": 2000, "random_state": 0, **options}), corpus


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.slow
def test_gradients_summed_on_workers_give_what_one_machine_gives(name, two, corpora):
    model, corpus = new_model(name)
    alone = attributes(model.fit(corpora[corpus]))
    with Cluster(two.address, sync_every=1) as there:
        assert attributes(new_model(name)[0].fit(corpora[corpus], cluster=there)) == alone


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_the_number_of_workers_does_not_change_a_bit(name, two, corpora):
    results = []
    for n_workers in (1, 2, 3, 4) if name == "numbers" else (1, 4):
        model, corpus = new_model(name)
        with Cluster(two.address, n_workers=n_workers, sync_every=2) as there:
            results.append(attributes(model.fit(corpora[corpus], cluster=there)))
    assert all(result == results[0] for result in results[1:])


def test_threads_of_a_worker_do_not_change_a_bit(two, corpora):
    results = []
    for n_jobs in (1, 2):
        with Cluster(two.address, sync_every=2) as there:
            model = TopicRegressor(4, n_epochs=2, batch_size=2000, random_state=0, n_jobs=n_jobs)
            results.append(attributes(model.fit(corpora["numbers"], cluster=there)))
    assert results[0] == results[1]


@pytest.mark.slow
def test_rounds_learn_as_well_as_one_machine(two, corpora):
    scores = []
    for sync_every in (None, 1, 3, 10):
        model = TopicRegressor(4, batch_size=2000, random_state=0)
        if sync_every is None:
            model.fit(corpora["numbers"])
        else:
            with Cluster(two.address, sync_every=sync_every) as there:
                model.fit(corpora["numbers"], cluster=there)
        scores.append(model.score(corpora["numbers"]))
    assert scores[1] == scores[0]
    np.testing.assert_allclose(scores, scores[0], atol=0.02)


def test_what_is_told_of_few_documents_does_not_depend_on_workers(two, corpora, monkeypatch):
    """The history of a corpus of which only the last documents are scored; and theta of few, for alpha."""
    monkeypatch.setattr(loop, "SCORED_DOCS", 1000)
    results = []
    for n_workers in (1, 2, 4):
        model, corpus = new_model("alpha")
        with Cluster(two.address, n_workers=n_workers, sync_every=2) as there:
            results.append(attributes(model.fit(corpora[corpus], cluster=there)))
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("class_weight", [{"0": 0.0, "1": 2.0}, {"2": 3.0}])
@pytest.mark.parametrize("sync_every", [1, 2])
def test_classes_without_weight(class_weight, sync_every, two, corpora):
    """A part of a batch may have none of the classes that are named, or only such that weigh nothing."""
    model = TopicClassifier(4, n_epochs=2, batch_size=2000, class_weight=class_weight, random_state=0)
    with Cluster(two.address, sync_every=sync_every) as there:
        model.fit(corpora["classes"], cluster=there)
    if sync_every == 1:
        alone = TopicClassifier(4, n_epochs=2, batch_size=2000, class_weight=class_weight, random_state=0)
        assert attributes(model) == attributes(alone.fit(corpora["classes"]))


def test_changes_in_pieces_give_the_same_bits(two, corpora, monkeypatch):
    results = []
    for n_bytes in (training._PIECE_BYTES, 2 * N_WORDS * 4 // 3):
        monkeypatch.setattr(training, "_PIECE_BYTES", n_bytes)
        with Cluster(two.address, sync_every=2) as there:
            results.append(attributes(new_model("numbers")[0].fit(corpora["numbers"], cluster=there)))
    assert results[0] == results[1]


# What dies, and goes on.


class Misfortune(threading.Thread):
    """Strikes at random moments while a fit goes on, twice at most: a worker that is never left alone gets nothing done."""

    def __init__(self, strike, seed):
        super().__init__(daemon=True)
        self._strike, self._rng, self._ended = strike, np.random.default_rng(seed), threading.Event()
        self.n_struck = 0

    def run(self):
        while self.n_struck < 2 and not self._ended.wait(self._rng.exponential(0.5)):
            self.n_struck += bool(self._strike(self._rng))

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self.join()


def long_model():
    return TopicRegressor(4, n_epochs=30, batch_size=2000, random_state=0)


@pytest.fixture(scope="module")
def undisturbed(two, corpora):
    with Cluster(two.address, sync_every=2) as there:
        return attributes(long_model().fit(corpora["numbers"], cluster=there))


def struck_fit(two, corpora, strike, seed):
    with Cluster(two.address, sync_every=2) as there, Misfortune(strike, seed) as misfortune:
        fitted = attributes(long_model().fit(corpora["numbers"], cluster=there))
    return fitted, misfortune.n_struck


def kill_a_worker(rng):
    found = workers()
    if not found:
        return False
    try:
        os.kill(int(rng.choice(found)), signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
def test_killed_workers_do_not_change_a_bit(two, corpora, undisturbed):
    n_kills = seed = 0
    while n_kills < N_KILLS:
        fitted, n_struck = struck_fit(two, corpora, kill_a_worker, seed)
        assert fitted == undisturbed
        n_kills, seed = n_kills + n_struck, seed + 1


@pytest.mark.slow
def test_a_worker_that_is_slow_does_not_change_a_bit(two, corpora, undisturbed):
    def halt_a_worker(rng):
        if not (found := workers()):
            return False
        pid = int(rng.choice(found))
        try:
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.5)
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            return False
        return True

    fitted, n_struck = struck_fit(two, corpora, halt_a_worker, 0)
    assert fitted == undisturbed
    assert n_struck


@pytest.mark.slow
def test_killed_machines_do_not_change_a_bit(two, corpora, undisturbed):
    """The others go on; for the next time, one takes its place."""

    def kill_a_machine(rng):
        if not two.worker_nodes:
            return False
        two.remove_node(two.worker_nodes.copy().pop(), allow_graceful=False)
        return True

    n_kills = seed = 0
    while n_kills < N_KILLS:
        fitted, n_struck = struck_fit(two, corpora, kill_a_machine, seed)
        assert fitted == undisturbed
        n_kills, seed = n_kills + n_struck, seed + 1
        if n_struck:
            two.add_node(**MACHINE | {"num_cpus": 2})
            two.wait_for_nodes()


DRIVER = """
    import sys
    from mirrorlda import Checkpoint, Corpus, TopicRegressor
    from mirrorlda.distributed import Cluster

    address, corpus, checkpoint = sys.argv[1:]
    with Cluster(address, sync_every=2) as there:
        print("ready", flush=True)
        model = TopicRegressor(4, n_epochs=30, batch_size=2000, random_state=0)
        model.fit(Corpus(corpus), cluster=there, checkpoint=Checkpoint(checkpoint, minutes=0))
    print(model.components_.tobytes().hex())
"""


@pytest.mark.slow
def test_a_killed_driver_goes_on_from_its_checkpoint(two, corpora, undisturbed, tmp_path):
    command = [sys.executable, "-c", textwrap.dedent(DRIVER), two.address, str(corpora["numbers"].path), str(tmp_path / "fit")]
    rng = np.random.default_rng(0)
    for _ in range(N_KILLED_DRIVERS):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "ready\n"
        try:
            process.wait(0.5 + rng.exponential(0.5))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.communicate()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    assert bytes.fromhex(done.stdout.splitlines()[-1]) == undisturbed["components_"]


@pytest.mark.slow
@pytest.mark.parametrize("begins", ["alone", "cluster"])
def test_one_machine_and_a_cluster_go_on_with_the_checkpoints_of_each_other(begins, two, corpora, tmp_path, monkeypatch):
    """With summed gradients to the same bits; after rounds, to a model of its own."""

    class Enough(BaseException):
        pass

    def fit(where, **options):
        return new_model("numbers")[0].fit(corpora["numbers"], cluster=where, **options)

    whole = attributes(fit(None))
    with Cluster(two.address, sync_every=1) as there:
        first, second = (None, there) if begins == "alone" else (there, None)
        end_epoch = mirrorlda.training.loop._end_epoch

        def ends(run, *arguments, **options):
            if run.epoch == 1:
                raise Enough
            end_epoch(run, *arguments, **options)

        monkeypatch.setattr(mirrorlda.training.loop, "_end_epoch", ends)
        with pytest.raises(Enough):
            fit(first, checkpoint=tmp_path / "fit")
        monkeypatch.undo()
        assert attributes(fit(second, checkpoint=tmp_path / "fit")) == whole


def test_ctrl_c_ends_after_the_round(two, corpora):
    timer = threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    try:
        with Cluster(two.address, sync_every=2) as there, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            timer.start()
            model = TopicRegressor(4, n_epochs=10_000, batch_size=2000, random_state=0).fit(corpora["numbers"], cluster=there)
    finally:
        signal.signal(signal.SIGINT, before)
    assert any(issubclass(warning.category, InterruptedWarning) for warning in caught)
    assert np.isfinite(model.components_).all()


def test_the_command_trains_on_a_cluster(two, folder, data):
    """From files, with summed gradients: the model is that of one machine."""
    names = np.array([f"word{number}" for number in range(N_WORDS)])
    rows = data.X[:1500].tocsr().astype(int)
    for number in range(2):
        lines = ["text,score"]
        for i in range(number, 1500, 2):
            row = rows[[i]]
            lines.append(" ".join(np.repeat(names[row.indices], row.data)) + f",{data.y[i]:.4f}")
        (folder / f"part-{number}.csv").write_text("\n".join(lines) + "\n")
    said = ["train", str(folder / "part-*.csv"), "--text", "text", "--target", "score", "--topics", "4", "--epochs", "2"]
    said += ["--seed", "0", "--no-baselines", "--quiet", "--batch-size", "600"]
    for name, more in (("alone", []), ("ray", ["--ray", two.address, "--sync-every", "1"])):
        done = CliRunner().invoke(main, [*said, "-o", str(folder / name), *more])
        assert done.exit_code == 0, done.output
    alone, ray = (mirrorlda.load(folder / name) for name in ("alone", "ray"))
    assert attributes(alone) == attributes(ray)


# What cannot work says why.


def test_a_corrupt_shard_is_named_and_the_cluster_goes_on(two, folder, data, corpora):
    corpus = write(folder / "corrupt", data, "numbers", data.y)
    (shard,) = corpus.path.rglob("*.shard")
    content = bytearray(shard.read_bytes())
    content[2000] ^= 1
    shard.write_bytes(content)
    model = new_model("numbers")[0]
    with Cluster(two.address, sync_every=2) as there:
        source = Corpus(corpus.path)
        with pytest.raises(CorpusError, match=rf"{shard}: block 0"):
            model.fit(source, cluster=there)
        assert not hasattr(model, "components_")
        model.fit(corpora["numbers"], cluster=there)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("localhost:1", r"no Ray cluster at 'localhost:1'.*Connection refused.*host:port"),
        ("localhost:many", r"no Ray cluster at 'localhost:many'.*host:port"),
    ],
)
def test_what_cannot_be_reached(address, expected, tmp_path):
    """In a process that belongs to no cluster."""
    command = [sys.executable, "-c", f"from mirrorlda.distributed import Cluster; Cluster({address!r})"]
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"} | {"RAY_TMPDIR": str(tmp_path)}
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, env=environment, timeout=60)
    assert done.returncode == 1
    assert re.search(expected, done.stderr.splitlines()[-1])


def test_no_cluster_is_running(monkeypatch):
    """As Ray says it where there is none; here is one."""

    def init(**_):
        raise ConnectionError("Could not find any running Ray instance.\nMore of it.")

    monkeypatch.setattr(cluster.ray, "is_initialized", lambda: False)
    monkeypatch.setattr(cluster.ray, "init", init)
    with pytest.raises(ClusterError, match=r"'auto': Could not find any running Ray instance. Start one with `ray start --head`"):
        Cluster("auto")


def test_another_cluster_than_the_one_of_this_process(two):
    with pytest.raises(
        ClusterError, match=rf"connected to the cluster at {two.address}: ray.shutdown\(\) first, to use 'host:1'"
    ):
        Cluster("host:1")


def test_standard_input_is_not_there_for_other_machines(two, tmp_path):
    said = ["train", "-", "--format", "csv", "--text", "a", "--target", "b", "-o", str(tmp_path / "model"), "--ray", two.address]
    done = CliRunner().invoke(main, said, input="a,b\n")
    assert done.exit_code == 2
    assert "do not have the standard input of this one" in done.output
    assert not (tmp_path / "model").exists()


def test_versions_that_differ(two, corpora, monkeypatch):
    monkeypatch.setattr(mirrorlda, "__version__", "0.0.1")
    with (
        Cluster(two.address) as there,
        pytest.raises(ClusterError, match=r"machine .* has mirrorlda \d.*, the driver 0\.0\.1: all machines need the same"),
    ):
        new_model("numbers")[0].fit(corpora["numbers"], cluster=there)


def test_a_path_that_a_machine_does_not_see(two, folder, data):
    corpus = write(folder / "moved", data, "numbers", data.y)
    corpus.path.rename(folder / "elsewhere")
    with Cluster(two.address) as there, pytest.raises(ClusterError, match=rf"machine .*: .*{corpus.path}"):
        new_model("numbers")[0].fit(corpus, cluster=there)


def test_what_a_fit_on_a_cluster_takes(data, corpora):
    model = TopicRegressor(4)
    with pytest.raises(TypeError, match=r"must be a mirrorlda\.distributed\.Cluster, got 'auto'"):
        model.fit(corpora["numbers"], cluster="auto")


def test_a_matrix_is_refused(two, data):
    with Cluster(two.address) as there, pytest.raises(ValueError, match="expected X to be a Corpus, got csr_"):
        TopicRegressor(4).fit(data.X, data.y, cluster=there)


@pytest.mark.parametrize("options", [{"n_workers": 0}, {"sync_every": 0}, {"sync_every": 2.5}, {"n_workers": True}])
def test_numbers_that_are_none(options):
    with pytest.raises(ValueError, match=r"must be a whole number of at least 1"):
        Cluster("local", **options)


def test_workers_without_work_are_told_of(two, corpora):
    model = TopicRegressor(4, n_epochs=1, batch_size=128, random_state=0)
    with Cluster(two.address) as there, pytest.warns(UserWarning, match="work for 1 workers, the cluster has 4"):
        model.fit(corpora["numbers"], cluster=there)


def test_more_threads_than_a_machine_has(two, corpora):
    with Cluster(two.address) as there, pytest.raises(ClusterError, match="no machine of the cluster has 3 processors"):
        TopicRegressor(4, n_jobs=3).fit(corpora["numbers"], cluster=there)
