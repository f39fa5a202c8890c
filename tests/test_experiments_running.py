"""Runs of the experiments: side by side, resumed, and what fails."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from mirrorlda.datasets import make_topics

sys.path.insert(0, str(Path(__file__).parents[1] / "experiments"))

import paper_settings
import results
from rows import Data, Row
from running import Experiment, Job, run_all

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
        patch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]))
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


def test_a_file_with_other_columns_is_refused(path, tmp_path):
    other = tmp_path / "runs.csv"
    other.write_text(path.read_text().replace("fingerprint,", "", 1))
    with pytest.raises(ValueError, match=r"runs\.csv: found the columns .* expected"):
        results.read_runs(other)


def test_summaries():
    assert str(results.Summary(0.5, 0.01, 3)) == "0.5000 (0.0100)"
    assert str(results.Summary(0.5)) == "0.5000"
    assert str(results.summary([])) == ""


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
    learned = estimator(4, random_state=0, **paper_settings.SETTINGS).fit(data.X, data.y)
    assert learned.score(data.X, data.y) > model.score(data.X, data.y) + 0.2


def test_all_experiments_are_run_with_what_was_asked_for(monkeypatch, tmp_path):
    import paper

    called = {}
    for experiment in paper.EXPERIMENTS:
        monkeypatch.setattr(experiment, "main", lambda arguments, name=experiment.__name__: called.update({name: arguments}))
    monkeypatch.setattr(sys, "argv", ["paper.py", "data", "--quick", "--out", str(tmp_path)])
    paper.main()
    asked = ["data", "--quick", "--out", str(tmp_path)]
    assert set(called) == {"figure3", "table1", "table2", "figure4", "figure5"}
    assert all(arguments == asked for arguments in called.values())
