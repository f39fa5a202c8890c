"""Training times: a system is trained on few documents, then on ten times as many, as long as it is fast enough.

All of it in one process on one core, one run after another.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline

import comparison
import generated
import systems
from baselines.search import LabelledSearch
from documents import read_whole
from mirrorlda import Corpus
from results import Run, append_runs, read_runs
from rows import Data, Row, targets
from running import Experiment, Job, failed, processes, run

# Documents: the fewest to train on, times as many at each step, those to warm up with, those to test.
FEWEST, STEP, N_WARM, N_TEST = 500, 10, 200, 1_000
# Share of the machine's memory that a run may be expected to take.
MEMORY = 0.8
# Ends the name of a system that is trained for one epoch.
ONE_EPOCH = "/epoch"


# Where Linux tells how much memory a process has, and is told to forget how much it had at most.
STATUS, FORGET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_before: float


def reads_disk(system: str) -> bool:
    return system.startswith("bp-")


def resident(what: str) -> float:
    """Memory of this process in GB, at present or at most; NaN where the system does not tell."""
    if not STATUS.exists():
        return float("nan")
    words = STATUS.read_text(encoding="utf-8").split()
    return int(words[words.index(f"{what}:") + 1]) * 1024 / 1e9


def load(job: Job) -> Data:
    """The corpus itself for systems that read it, otherwise its counts and targets in memory."""
    global _before
    # From here on the most memory is counted anew.
    if FORGET.exists():
        FORGET.write_text("5")
    _before = resident("VmRSS")
    corpus, test = Corpus(job.row.path), Corpus(job.row.path.with_name("test.corpus"))
    held_out = test.matrix(), test.targets(np.arange(test.n_docs))[0]
    if reads_disk(job.system):
        return Data(corpus, None, *held_out)
    return Data(sp.csr_matrix(corpus.matrix()), corpus.targets(np.arange(corpus.n_docs))[0], *held_out)


class ThenLinear:
    """Topics of a corpus on disk, then a linear model of the proportions in memory."""

    def __init__(self, topics: Any, linear: Any) -> None:
        self.topics, self.linear = topics, linear

    def fit(self, X: Corpus, y: None = None) -> ThenLinear:
        start = time.process_time()
        self.topics.fit(X)
        learned = time.process_time()
        self.linear.fit(self.topics.transform(X), X.targets(np.arange(X.n_docs))[0])
        end = time.process_time()
        # Of the time, what comes after the epochs.
        self.share_after_ = (end - learned) / (end - start)
        return self

    def predict(self, X: Any) -> np.ndarray:
        return self.linear.predict(self.topics.transform(X))


def n_epochs(system: str) -> int | None:
    """Those of a system that can be trained for one, which is a known share of its work."""
    if not reads_disk(system):
        return None
    model = systems.make(Job(Row("", Path(), None, "r2"), system, 0, 1), 1)
    return int(model.get_params()["topics__n_epochs" if system == "bp-lda" else "n_epochs"])


def untuned(model: Any) -> Any:
    """The same without a choice of settings: what is timed is one training."""
    if isinstance(model, Pipeline):
        return Pipeline([(name, untuned(step)) for name, step in model.steps])
    return model.untuned() if isinstance(model, LabelledSearch) else model


def make(job: Job, n_jobs: int) -> Any:
    """Of a system whose name ends so, one epoch."""
    system = job.system.removesuffix(ONE_EPOCH)
    model = untuned(systems.make(replace(job, system=system), n_jobs))
    topics = model.named_steps["topics"] if system == "bp-lda" else model
    if system != job.system:
        topics.set_params(n_epochs=1)
    return ThenLinear(topics, model.named_steps["linear"]) if system == "bp-lda" else model


def measure(job: Job, model: Any, data: Data) -> dict[str, float]:
    """R2 for documents held out, the most memory that documents and training took, the share of the time after the epochs."""
    taken = {"GB": resident("VmHWM") - _before}
    after = {"share after the epochs": model.share_after_} if isinstance(model, ThenLinear) else {}
    return comparison.measure(job, model, data) | taken | after


EXPERIMENT = Experiment(load, make, measure)


def warm_up(job: Job) -> None:
    """Compilers run before the time is taken; whatever fails here will fail there."""
    data = load(job)
    with contextlib.suppress(Exception):
        make(job, 1).fit(data.X[:N_WARM], data.y[:N_WARM])


@dataclass(frozen=True)
class Drawn:
    """Corpora of drawn documents in a folder, written when they are needed."""

    row: Row
    folder: Path
    n_processes: int

    def sized(self, n_docs: int) -> Row:
        path, name = self._folder / f"{n_docs}.corpus", f"{self.row.name}-{n_docs}"
        return replace(self.row, name=name, path=path, n_docs=n_docs, drawn_after=self.row.fingerprint)

    @property
    def _folder(self) -> Path:
        """Documents drawn after others are not mistaken for these."""
        return self.folder / self.row.fingerprint

    def _source(self) -> Path:
        path = self._folder / "source"
        if not (path / "source.npz").exists():
            say(f"learning what the documents of {self.row.path} are like")
            whole = read_whole(self.row.path, self.row.text, self.row.n_words, None)
            y = targets(whole.values(self.row.target), self.row.measure)
            known = np.flatnonzero(~np.isnan(y))
            generated.save(path, generated.learn(whole.X[known], y[known]))
        return path

    def write(self, n_docs: int) -> None:
        """Unless they are there, as are those to test."""
        path, test = self.sized(n_docs).path, self._folder / "test.corpus"
        if (path / "corpus.json").exists() and (test / "corpus.json").exists():
            return
        source = self._source()
        generated.corpus_of(source, test, N_TEST, seed=1)
        start = time.perf_counter()
        generated.corpus_of(source, path, n_docs, n_processes=self.n_processes)
        say(f"{n_docs:,} documents drawn and written in {time.perf_counter() - start:.0f} s")

    def runs(self, path: Path) -> list[Run]:
        """Those of a file that are of these documents."""
        found = read_runs(path)
        rows = {(row.name, row.fingerprint) for row in (self.sized(n_docs) for n_docs in {run.n_docs for run in found})}
        return [run for run in found if (run.row, run.fingerprint) in rows]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def sizes_up_to(n_docs: int) -> list[int]:
    """The number itself and what goes before it, each ten times the one before."""
    found = [n_docs]
    while found[0] // STEP >= FEWEST:
        found.insert(0, found[0] // STEP)
    return found


def memory() -> float:
    """Of the machine, in GB."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9


@dataclass(frozen=True)
class Estimate:
    """Seconds of training; what they were measured on if that is not the whole work."""

    seconds: float
    measured_on: str = ""
    error: str = ""

    def __str__(self) -> str:
        if self.error:
            return "failed"
        number = f"{self.seconds:,.0f}" if self.seconds >= 100 else f"{self.seconds:.3g}"
        return f"~{number} ({self.measured_on})" if self.measured_on else number


def estimate(
    runs: Sequence[Run], system: str, n_topics: int | None, n_docs: int, clock: str = "cpu_seconds", *, n_sizes: int = 2
) -> Estimate | None:
    """From the runs with the most documents up to so many; of two with as many, from the one with all epochs.

    None where all epochs were run with fewer than `n_sizes` numbers of documents, none of them the one that is asked for: one
    number does not tell what part of the time grows with them.
    """
    found: dict[tuple[int, bool], Run] = {}
    for each in runs:
        if each.system.removesuffix(ONE_EPOCH) == system and each.n_topics == n_topics and each.n_docs <= n_docs:
            found[each.n_docs, each.system == system] = each
    failed = [run for run in found.values() if run.error and run.n_docs == n_docs]
    found = {key: run for key, run in found.items() if not run.error}
    if failed and (n_docs, True) not in found:
        return Estimate(float("nan"), error=failed[0].error)
    if not found:
        return None
    measured, is_whole = max(found)
    parts = [] if measured == n_docs else [f"{measured:,}"]
    best = found[measured, is_whole]
    if is_whole:
        seconds = {size: getattr(found[size, whole], clock) for size, whole in found if whole}
        is_known = measured == n_docs or len(seconds) >= n_sizes
        return Estimate(_along_line(seconds, n_docs), *parts) if is_known else None
    after = sum(each.score for each in runs if each.key == best.key and each.measure == "share after the epochs")
    epochs = after + (1 - after) * (n_epochs(system) or 1)
    return Estimate(getattr(best, clock) * epochs * n_docs / measured, ", ".join([*parts, "one epoch"]))


def _along_line(seconds: dict[int, float], n_docs: int) -> float:
    """For so many documents, from the two largest numbers of them: what does not grow with them is counted once.

    In proportion where there is one number, or where times do not rise.
    """
    most = max(seconds)
    rest = sorted(size for size in seconds if size < most and seconds[size] < seconds[most])
    if not rest:
        return seconds[most] * n_docs / most
    slope = (seconds[most] - seconds[rest[-1]]) / (most - rest[-1])
    return seconds[most] + slope * (n_docs - most)


def within(runs: Sequence[Run], job: Job, limit: float) -> Job | None:
    """The job, or the same for one epoch, if what fewer documents took lets expect that the limit and memory suffice.

    One number of documents does not tell what part of the time grows with them: the second is trained on where the first was
    within the limit, whatever it lets expect.
    """
    n_docs = job.row.n_docs or 0
    if n_docs // STEP < FEWEST:
        return job
    below = [run for run in runs if run.n_topics == job.n_topics and run.n_docs < n_docs]
    expected = estimate(below, job.system, job.n_topics, n_docs, n_sizes=1)
    if expected is None or expected.error:
        return None
    own = [each for each in below if each.system.removesuffix(ONE_EPOCH) == job.system]
    taken = {each.n_docs: each.score for each in own if each.measure == "GB"}
    # What BP-sLDA takes does not grow with the documents; of BP-LDA the proportions of all are kept for the linear model.
    if not job.system.startswith("bp-slda") and taken and taken[max(taken)] * n_docs / max(taken) > MEMORY * memory():
        return None
    sizes = {each.n_docs for each in own}
    if expected.seconds <= limit * (STEP if max(sizes) < STEP * min(sizes) else 1):
        return job
    epochs = n_epochs(job.system)
    return replace(job, system=job.system + ONE_EPOCH) if epochs is not None and expected.seconds <= limit * epochs else None


def climb(
    pool: ProcessPoolExecutor, job: Job, documents: Drawn, n_docs: int, path: Path, limits: dict[int, float]
) -> Iterator[tuple[Job, list[Run]]]:
    """Train on more and more documents up to `n_docs`, in the pool's one process; runs that the file has are not repeated."""
    fewest, is_warm = sizes_up_to(n_docs)[0], reads_disk(job.system)
    for size in sizes_up_to(n_docs):
        runs = documents.runs(path)
        limit = next(limits[most] for most in sorted(limits) if most >= size)
        todo = within(runs, replace(job, row=documents.sized(size)), limit)
        if todo is None:
            return
        if any(each.key == todo.key and not each.error for each in runs):
            continue
        documents.write(size)
        documents.write(fewest)
        try:
            if not is_warm:
                pool.submit(warm_up, replace(job, row=documents.sized(fewest))).result()
                is_warm = True
            runs = pool.submit(run, EXPERIMENT, todo, 1).result()
        except BrokenProcessPool:
            yield todo, [failed(todo, "its process died")]
            raise
        yield todo, runs


def train(jobs: Sequence[tuple[Job, int]], documents: Drawn, path: Path, limits: dict[int, float], minutes: float | None) -> None:
    """All jobs, each up to its number of documents; none begins after so many minutes.

    `limits` are the most seconds that a run may be expected to take, by the number of documents up to which they hold.
    """
    begin, pool = time.monotonic(), processes(1)
    for number, (job, n_docs) in enumerate(jobs, 1):
        if minutes is not None and time.monotonic() - begin > 60 * minutes:
            say(f"{len(jobs) - number + 1} of {len(jobs)} did not begin within {minutes} minutes")
            break
        try:
            for done, runs in climb(pool, job, documents, n_docs, path, limits):
                append_runs(path, runs)
                scores = ", ".join(run.error or f"{run.measure} {run.score:.3f}" for run in runs)
                times = f"{runs[0].seconds:.1f} s ({runs[0].cpu_seconds:.1f} s of the processor)"
                say(f"{number} of {len(jobs)}, {(time.monotonic() - begin) / 60:.1f} min: {done}: {times}, {scores}")
        except BrokenProcessPool:
            pool = processes(1)
    pool.shutdown()
