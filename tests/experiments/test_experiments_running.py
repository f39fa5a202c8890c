"""Runs of the experiments: side by side, resumed, and what fails."""

import os
import sys
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from mirrorlda.datasets import make_topics

from mirrorlda import TopicRegressor

sys.path.insert(0, str(Path(__file__).parents[2] / "experiments"))

import paper_settings
import results
import running
from rows import Data, Row
from running import Experiment, Job, failed, run_all

# Processes of one test import this module: what takes long to import is left to the tests that need it.
pytestmark = pytest.mark.xdist_group("experiments")
ROW = Row("row", Path("nowhere"), "y", "r2")


class Model:
    """Predicts, fails or takes its process, by its number."""

    def __init__(self, number):
        self.number = number

    def fit(self, X, y):
        if self.number == 1:
            raise TypeError("found\nno number")
        if self.number == 2:
            os._exit(3)
        return self


def load(job):
    if job.n_topics == 3:
        raise KeyError("text")
    return Data(np.ones((4, 2)), np.ones(4), None, None)


def make(job, n_jobs):
    return Model(job.n_topics)


def measure(job, model, data):
    return {"r2": float(model.number), "other": 0.5}


EXPERIMENT = Experiment(load, make, measure)
JOBS = [Job(ROW, "system", 0, number) for number in range(6)]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "runs.csv"
    with pytest.MonkeyPatch.context() as patch:
        # Where other processes find this module.
        patch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]))
        run_all(EXPERIMENT, JOBS, path, n_processes=2)
    return path


def test_what_fails_says_so_and_the_others_go_on(path):
    runs = {(run.n_topics, run.measure): run for run in results.read_runs(path)}
    assert {number: runs[number, "r2"].error for number in range(6)} == {
        0: "",
        1: "TypeError: found\nno number",
        2: "its process died",
        3: "KeyError: 'text'",
        4: "",
        5: "",
    }
    assert [runs[number, "r2"].score for number in (0, 4, 5)] == [0, 4, 5]
    assert runs[5, "other"].score == 0.5
    assert results.summary(runs.values()).n_runs == 6


def test_only_what_failed_is_run_again(path, capsys):
    capsys.readouterr()
    run_all(EXPERIMENT, [job for job in JOBS if job.n_topics != 2], path)
    told = capsys.readouterr().err
    assert told.count("repeat 0") == 2
    # Documents that others have counted are other documents.
    other = Job(Row("row", Path("nowhere"), "y", "r2", text="title"), "system", 0, 0)
    run_all(EXPERIMENT, [other], path)
    assert capsys.readouterr().err.count("repeat 0") == 1


@pytest.mark.parametrize("n_processes", [None, 2])
def test_nothing_begins_after_so_many_minutes(tmp_path, capsys, n_processes):
    assert run_all(EXPERIMENT, JOBS, tmp_path / "runs.csv", n_processes=n_processes, minutes=-1) == []
    assert "6 of 6 runs did not begin" in capsys.readouterr().err


def test_a_job_whose_line_is_cut_short_is_run_again(path, tmp_path):
    cut, runs = tmp_path / "runs.csv", results.read_runs(path)
    results.append_runs(cut, runs)
    cut.write_text(cut.read_text()[:-5])
    last = [run for run in runs if run.key == runs[-1].key]
    assert len(last) == 2
    assert repr(results.read_runs(cut)) == repr(runs[:-2])
    results.append_runs(cut, last)
    assert repr(results.read_runs(cut)) == repr(runs)


@pytest.mark.parametrize("end", [-5, -1])
def test_only_the_last_job_of_a_file_that_was_cut_is_lost(path, tmp_path, end):
    """Systems of experiments/settings.py have commas in their names, and errors have quotes and new lines."""
    cut, (run, *_) = tmp_path / "runs.csv", results.read_runs(path)
    runs = [replace(run, system=f"paper,n_layers={n},alpha=null", repeat=fold) for n in (3, 4) for fold in range(4)]
    runs.insert(2, replace(run, error='TypeError: "a"\nb', repeat=7))
    results.append_runs(cut, runs)
    results.append_runs(cut, [replace(run, repeat=8, error="ValueError:\nfound nothing")])
    assert len(results.read_runs(cut)) == len(runs) + 1
    cut.write_text(cut.read_text()[:end])
    assert repr(results.read_runs(cut)) == repr(runs[:-1])
    results.append_runs(cut, runs[-1:])
    assert repr(results.read_runs(cut)) == repr(runs)


def test_a_file_that_ends_inside_an_error_is_known_to_be_cut(path, tmp_path):
    cut, (run, *_) = tmp_path / "runs.csv", results.read_runs(path)
    results.append_runs(cut, [run, replace(run, repeat=7), replace(run, error="TypeError:\nfound nothing", repeat=8)])
    text = cut.read_text()
    cut.write_text(text[: text.index("TypeError:\n") + len("TypeError:\n")])
    assert [run.repeat for run in results.read_runs(cut)] == [0]


def test_of_a_broken_pool_only_what_was_lost_is_run_again(monkeypatch, tmp_path):
    """Two runs end, the third takes its process, and the pool tells so when the next is submitted."""
    alone = []
    pools = []

    class Pool:
        def __init__(self, number):
            self.jobs = []
            pools.append(self)

        def submit(self, function, experiment, job, n_jobs):
            if len(pools) == 1 and len(self.jobs) == 2:
                raise BrokenProcessPool
            future = Future()
            self.jobs.append(job)
            if job.n_topics != 1 or len(pools) > 1:
                future.set_result([replace(failed(job, ""), score=0.5)])
            return future

        def shutdown(self):
            pass

    def run_alone(experiment, job):
        alone.append(job.n_topics)
        return [replace(failed(job, ""), score=0.25)]

    monkeypatch.setattr(running, "processes", Pool)
    monkeypatch.setattr(running, "_alone", run_alone)
    monkeypatch.setattr(running, "wait", lambda going, return_when: SimpleNamespace(done=[each for each in going if each.done()]))
    found = dict(running._side_by_side(EXPERIMENT, [Job(ROW, "system", 0, number) for number in range(3)], 3, float("inf")))
    assert {job.n_topics: runs[0].score for job, runs in found.items()} == {0: 0.5, 1: 0.25, 2: 0.5}
    assert alone == [1]


@pytest.mark.parametrize("left", ["", "row,fing"])
def test_a_file_that_a_kill_left_without_columns_gets_them(path, tmp_path, left):
    cut, runs = tmp_path / "runs.csv", results.read_runs(path)
    cut.write_text(left)
    assert results.read_runs(cut) == []
    results.append_runs(cut, runs)
    assert repr(results.read_runs(cut)) == repr(runs)


def test_a_file_with_other_columns_is_refused(path, tmp_path):
    other = tmp_path / "runs.csv"
    other.write_text(path.read_text().replace("fingerprint,", "", 1))
    with pytest.raises(ValueError, match=r"runs\.csv: found the columns .* expected"):
        results.read_runs(other)


def test_summaries():
    assert str(results.Summary(0.5, 0.01, 3)) == "0.5000 (0.0100)"
    assert str(results.Summary(0.5)) == "0.5000"
    assert str(results.summary([])) == ""


def test_leads_are_differences_fold_by_fold():
    from comparison import lead

    ours, theirs = {0: 0.5, 1: 0.7, 2: 0.6, 3: 0.9, 4: 0.8}, {4: 0.5, 3: 0.7, 2: 0.5, 1: 0.5, 0: 0.4}
    found = lead(ours, theirs)
    differences = [0.1, 0.2, 0.1, 0.2, 0.3]
    assert found.mean == pytest.approx(0.18)
    assert found.deviation == pytest.approx(1.5 * np.std(differences, ddof=1) / np.sqrt(5))
    assert lead(ours, {0: 0.4, 1: 0.5, 9: 0.5}).mean == pytest.approx(0.15), "folds that both have"
    assert lead(ours, {0: 0.4}).n_runs == 0


def test_leads_stand_beside_what_they_are_ahead_of():
    from comparison import curve_of, leads_of

    def runs(system, n_topics, scores):
        job = Job(ROW, system, 0, n_topics)
        return [replace(failed(job, ""), repeat=number, score=score) for number, score in enumerate(scores)]

    found = runs("bp-slda", 5, [0.5, 0.7]) + runs("network", 5, [0.4, 0.4]) + runs("linear-tfidf", None, [0.6, 0.6])
    curves = [curve_of(system) for system in ("bp-slda", "network", "linear-tfidf", "slda")]
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in leads_of(found, ROW, curves, [5, 10]).splitlines()]
    error = np.sqrt((1 / 2 + 1 / 4) * 0.02)
    assert lines[0] == ["row: lead of BP-sLDA, defaults of mirrorlda (standard error)", "5 topics", "10 topics"]
    assert lines[2:] == [
        ["network of the same size", f"+0.2000 ({error:.4f})", ""],
        ["linear, tf-idf", f"+0.0000 ({error:.4f})", ""],
    ]
    assert leads_of(found[:1], ROW, curves, [5]) == ""


def test_changes_beyond_ten_layers_are_differences_fold_by_fold():
    import figure4

    def runs(n_layers, scores):
        job = Job(ROW, "bp-slda", 0, 5, n_layers=n_layers)
        return [replace(failed(job, ""), repeat=number, score=score) for number, score in enumerate(scores)]

    found = runs(5, [0.9, 0.9]) + runs(10, [0.5, 0.6]) + runs(20, [0.4, 0.4]) + runs(40, [0.55, 0.65])
    *_, line = figure4.change_table(found, ROW, [5]).splitlines()
    cells = [cell.strip() for cell in line.split("|")[1:-1]]
    error = np.sqrt((1 / 2 + 1 / 4) * 0.005)
    assert cells == ["BP-sLDA, defaults of mirrorlda, 5 topics", f"-0.1500 ({error:.4f})", "+0.0500 (0.0000)"]
    assert figure4.change_table(found[::2], ROW, [5]) == ""


@pytest.mark.parametrize("estimator", [paper_settings.PaperRegressor, paper_settings.PaperClassifier])
def test_the_papers_settings_are_in_force(estimator):
    """Before the first step topics are noise around the uniform distribution, whatever the targets say."""
    kind = {"n_classes": 2} if estimator is paper_settings.PaperClassifier else {"n_outputs": 1}
    data = make_topics(200, 50, 3, random_state=0, **kind)
    still = {"learning_rate": 1e-12, "coef_learning_rate": 1e-12, "n_epochs": 1}
    model = estimator(4, random_state=0, **paper_settings.SETTINGS | still).fit(data.X, data.y)
    assert 0.5 / 50 < model.components_.min() < model.components_.max() < 1.5 / 50
    assert (model.alpha, model.n_layers, model.count_scale) == (1.001, 10, "linear")
    assert not hasattr(model, "word_weights_")
    assert model.components_ is model.encoder_components_
    # They may be changed one by one: words may weigh differently, too.
    weighed = estimator(4, random_state=0, **paper_settings.SETTINGS | {"word_learning_rate": 0.03}).fit(data.X, data.y)
    assert np.ptp(weighed.word_weights_) > 0.1
    learned = estimator(4, random_state=0, **paper_settings.SETTINGS).fit(data.X, data.y)
    assert learned.score(data.X, data.y) > model.score(data.X, data.y) + 0.2


@pytest.mark.parametrize("system", ["bp-slda", "bp-slda-paper"])
@pytest.mark.parametrize("measure", ["r2", "roc_auc"])
def test_priors_and_layers_reach_the_model(system, measure):
    import systems

    row = Row("row", Path("nowhere"), "y", measure)
    given = systems.make(Job(row, system, 3, 7, alpha=0.5, n_layers=2), 1).get_params()
    assert {"n_topics": 7, "alpha": 0.5, "n_layers": 2, "random_state": 3}.items() <= given.items()
    own = systems.make(Job(row, system, 3, 7), 1).get_params()
    expected = {"alpha": 1.001, "n_layers": 10} if system == "bp-slda-paper" else {"alpha": None, "n_layers": "auto"}
    assert expected.items() <= own.items()


def test_settings_are_read_from_their_names():
    import settings

    assert settings.parsed("defaults") == {"start": "targets"}
    changed = settings.parsed("n_layers=10,learning_rate=0.005,count_scale=linear")
    assert changed == {"start": "targets", "n_layers": 10, "learning_rate": 0.005, "count_scale": "linear"}
    theirs = {"start": "noise"} | paper_settings.SETTINGS
    assert settings.parsed("paper") == theirs
    assert settings.parsed("paper,alpha=null,start=targets") == theirs | {"alpha": None, "start": "targets"}
    made = settings.make(Job(ROW, "start=noise,alpha=0.5", 0, 4), 1)
    assert isinstance(made, paper_settings.PaperRegressor)
    assert (made.n_topics, made.alpha, made.n_layers) == (4, 0.5, "auto")


def test_what_the_paper_and_mirrorlda_choose_differently_is_all_there():
    """All changes together are the other ones' settings, but for a rate that is the same up to 10,000 words."""
    import settings

    left = {"learning_rate": 0.01}
    theirs = settings.parsed(",".join(["defaults", *(choice for _, choice in settings.CHOICES)]))
    assert theirs | left == settings.parsed("paper")
    ours = settings.parsed(",".join(["paper", *(choice for choice, _ in settings.CHOICES)]))
    del ours["start"]
    defaults = TopicRegressor().get_params()
    assert {name: value for name, value in ours.items() if value != defaults[name]} == left


@pytest.mark.parametrize("setting", ["n_layer=3", "n_layers", "paper n_layers=3", "start=here", "n_topics=3", "random_state=1"])
def test_settings_that_are_none_are_named(setting):
    import settings

    with pytest.raises(ValueError, match=r"found .* in the setting .* expected"):
        settings.parsed(setting)


def test_all_experiments_are_run_with_what_was_asked_for(monkeypatch, tmp_path):
    import paper

    called = {}

    def main(arguments, name):
        called[name] = arguments
        return int(name == "table1")

    for experiment in paper.EXPERIMENTS:
        monkeypatch.setattr(experiment, "main", partial(main, name=experiment.__name__))
    monkeypatch.setattr(sys, "argv", ["paper.py", "data", "--quick", "--out", str(tmp_path)])
    assert paper.main() == 1, "what failed in one of them is told at the end of all"
    asked = ["data", "--quick", "--out", str(tmp_path)]
    assert set(called) == {"figure3", "table1", "table2", "figure4", "figure5"}
    assert all(arguments == asked for arguments in called.values())
