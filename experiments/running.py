"""Training and measuring: what is to be run, in as many processes as there are cores, each on a core of its own."""

from __future__ import annotations

import datetime
import multiprocessing
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits
from tqdm import tqdm

from results import Run, append_runs, read_runs
from rows import Data, Row


@dataclass(frozen=True)
class Job:
    """A system to train once, with what the experiment sets; `repeat` is the number of the fold, or the seed."""

    row: Row
    system: str
    repeat: int
    n_topics: int | None = None
    alpha: float | None = None
    n_layers: int | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        return self.row.name, self.row.fingerprint, self.system, self.n_topics, self.alpha, self.n_layers, self.repeat

    def __str__(self) -> str:
        numbers = [(self.n_topics, "topics"), (self.alpha, "alpha"), (self.n_layers, "layers"), (self.repeat, "repeat")]
        return ", ".join([self.row.name, self.system, *(f"{name} {number}" for number, name in numbers if number is not None)])


# Makes the estimator of a job; n_jobs is its number of threads.
Maker = Callable[[Job, int], Any]
# The data of a job.
Loader = Callable[[Job], Data]
# Scores of a fitted estimator.
Measurer = Callable[[Job, Any, Data], dict[str, float]]


@dataclass(frozen=True)
class Experiment:
    """How jobs are run: functions of a module, so that other processes find them."""

    load: Loader
    make: Maker
    measure: Measurer


def _names(job: Job) -> dict[str, Any]:
    """What a run takes from its job."""
    names = {"row": job.row.name, "fingerprint": job.row.fingerprint, "system": job.system, "repeat": job.repeat}
    names["day"] = f"{datetime.date.today():%Y-%m-%d}"
    return names | {"n_topics": job.n_topics, "alpha": job.alpha, "n_layers": job.n_layers}


def failed(job: Job, error: str, n_jobs: int = 1) -> Run:
    nan = float("nan")
    times = {"seconds": nan, "cpu_seconds": nan}
    return Run(**_names(job), **times, measure=job.row.measure, score=nan, n_docs=job.row.n_docs or 0, n_jobs=n_jobs, error=error)


def run(experiment: Experiment, job: Job, n_jobs: int) -> list[Run]:
    """Train and measure; a system that fails has a run that says so, and the others go on."""
    try:
        data = experiment.load(job)
        start, cpu_start = time.perf_counter(), time.process_time()
        with threadpool_limits(None if n_jobs < 0 else n_jobs):
            model = experiment.make(job, n_jobs).fit(data.X, data.y)
            seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
            scores = experiment.measure(job, model, data)
    # Whatever it is: days of other runs must not end with it, and the page says it.
    except Exception as error:
        traceback.print_exc()
        return [failed(job, f"{type(error).__name__}: {error}", n_jobs)]
    chosen = str(getattr(model, "best_params_", ""))
    times = {"seconds": round(seconds, 3), "cpu_seconds": round(cpu_seconds, 3)}
    names = _names(job) | times | {"n_docs": data.X.shape[0], "n_jobs": n_jobs, "chosen": chosen}
    return [Run(**names, measure=name, score=score) for name, score in scores.items()]


def _end_with_parent() -> None:
    """A process whose parent was killed would wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _take_core(cores: Any) -> None:
    """Of the cores that are free; all libraries of this process keep to it."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    core = cores.get()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})


def processes(number: int) -> ProcessPoolExecutor:
    """So many, each on a core of its own as long as there are enough."""
    spawn = multiprocessing.get_context("spawn")
    free = spawn.SimpleQueue()
    available = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
    for core in range(number):
        free.put(available[core % len(available)])
    return ProcessPoolExecutor(number, spawn, _take_core, (free,))


def _one_by_one(experiment: Experiment, jobs: list[Job], n_jobs: int, until: float) -> Iterator[tuple[Job, list[Run]]]:
    for job in jobs:
        if time.monotonic() > until:
            return
        yield job, run(experiment, job, n_jobs)


def _side_by_side(experiment: Experiment, jobs: list[Job], n_processes: int, until: float) -> Iterator[tuple[Job, list[Run]]]:
    """Jobs in the order in which they end; none begins after the time `until`."""
    pool, waiting = processes(n_processes), list(reversed(jobs))
    going: dict[Future[list[Run]], Job] = {}
    while going or (waiting and time.monotonic() <= until):
        is_broken = False
        while waiting and len(going) < n_processes and time.monotonic() <= until and not is_broken:
            try:
                going[pool.submit(run, experiment, waiting[-1], 1)] = waiting[-1]
                waiting.pop()
            except BrokenProcessPool:
                is_broken = True
        ended = wait(going, return_when=FIRST_COMPLETED).done
        if is_broken or any(isinstance(future.exception(), BrokenProcessPool) for future in ended):
            # One of them took its process, and with it those that had not ended: which, they show alone.
            for future, job in going.items():
                is_lost = not future.done() or isinstance(future.exception(), BrokenProcessPool)
                yield job, _alone(experiment, job) if is_lost else future.result()
            pool, going = processes(n_processes), {}
            continue
        for future in ended:
            yield going.pop(future), future.result()
    pool.shutdown()


def _alone(experiment: Experiment, job: Job) -> list[Run]:
    with processes(1) as pool:
        try:
            return pool.submit(run, experiment, job, 1).result()
        except BrokenProcessPool:
            return [failed(job, "its process died")]


def run_all(
    experiment: Experiment,
    jobs: list[Job],
    path: Path,
    *,
    n_processes: int | None = None,
    n_jobs: int = 1,
    minutes: float | None = None,
    resume: bool = True,
) -> list[Run]:
    """Run what the file has not, append it, and return all runs of the jobs that the file has.

    Jobs run side by side in processes of one core, or in this one, one by one with `n_jobs` threads. None begins after so many
    `minutes`.
    """
    done = {run.key for run in read_runs(path) if not run.error} if resume else set()
    todo = list({job.key: job for job in jobs if job.key not in done}.values())
    until = time.monotonic() + 60 * minutes if minutes is not None else float("inf")
    if n_processes is not None:
        finished = _side_by_side(experiment, todo, n_processes, until)
    else:
        finished = _one_by_one(experiment, todo, n_jobs, until)
    n_finished = 0
    with tqdm(total=len(todo), desc=path.stem, unit="run", disable=None) as bar:
        for n_finished, (job, runs) in enumerate(finished, 1):  # noqa: B007
            append_runs(path, runs)
            scores = ", ".join(run.error or f"{run.measure} {run.score:.4f}" for run in runs)
            bar.write(f"{job}: {scores} in {runs[0].seconds:.1f} s", file=sys.stderr)
            bar.update()
    if n_finished < len(todo):
        print(f"{len(todo) - n_finished} of {len(todo)} runs did not begin within {minutes} minutes", file=sys.stderr)
    wanted = {job.key for job in jobs}
    return [run for run in read_runs(path) if run.key in wanted]
