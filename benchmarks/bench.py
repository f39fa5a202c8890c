"""How fast: one run, one table, every system measured in turn and the best of the repeats taken.

    python benchmarks/bench.py [--quick] [--documents 20000] [--topics 5 20 50 100 200] [--repeats 5]

Shares and ratios compare times of this run only. All systems see the same corpus and all BLAS libraries have one thread.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import scipy.sparse as sp
import tomotopy
from mirrorlda.responses import SquaredError
from sklearn.decomposition import LatentDirichletAllocation
from threadpoolctl import threadpool_limits

from mirrorlda import TopicRegressor, _core
from mirrorlda.data.documents import as_documents
from mirrorlda.method import inference
from mirrorlda.method.start import start as starting_point
from mirrorlda.training import loop, mirror_descent
from mirrorlda.training.sources import Examples

N_WORDS, N_PLANTED = 5_000, 20
N_LAYERS, ALPHA, BATCH_SIZE = 10, 1.001, 1_000
SGEMM_SIZE = 2_000
# Documents that the peers learn from, and those that their inference is timed on: they are slower, and their rate does not depend
# on the number.
PEER_TRAINING_DOCS, PEER_DOCS = 2_000, 500
TRANSFORM_TOPICS = 20
IMPORTS_PER_REPEAT = 2

# must and stretch, by number of topics where they depend on it.
SGEMM_SHARE = {5: (12.0, 20.0), 20: (22.0, 35.0), 50: (35.0, 50.0), 100: (30.0, 45.0), 200: (28.0, 40.0)}
TWO_THREADS = {20: (1.8, 1.95), 100: (1.8, 1.95)}
OUTSIDE_SHARE = {20: (15.0, 8.0), 50: (15.0, 8.0), 100: (15.0, 8.0)}
TOMOTOPY, SKLEARN = (100.0, 200.0), (30.0, 60.0)
IMPORT_SECONDS = (0.15, 0.05)


@dataclass(frozen=True, order=True)
class Timing:
    """Seconds of one measurement; for an epoch also those outside the two kernels, and the CPU-seconds of all threads."""

    seconds: float
    outside: float = 0.0
    cpu: float = 0.0


Measure = Callable[[], Timing]


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A Markdown table with aligned columns."""
    lines = [header, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in [lines[0], ["-" * width for width in widths], *lines[1:]]:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |")


def row(what: str, value: float, targets: tuple[float, float], form: str, detail: str) -> list[str]:
    """A measured value beside its targets, with the verdict; it must be high where `stretch` is above `must`."""
    must, stretch = targets
    sign = 1 if stretch > must else -1
    verdict = "stretch" if sign * (value - stretch) >= 0 else "must" if sign * (value - must) >= 0 else "MISSED"
    return [what, *(form.format(number) for number in (value, must, stretch)), verdict, detail]


# The corpus.


def draw_columns(probabilities: np.ndarray, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """For each entry of `rows`, a column drawn with the probabilities in that row."""
    n_columns = probabilities.shape[1]
    # Row r's distribution function runs from r to r + 1: one sorted array for all of them.
    bounds = (probabilities.cumsum(axis=1) + np.arange(len(probabilities))[:, None]).ravel()
    columns = np.searchsorted(bounds, rows + rng.random(len(rows))) - rows * n_columns
    drawn: np.ndarray = np.clip(columns, 0, n_columns - 1)
    return drawn


def draw_corpus(n_docs: int, rng: np.random.Generator) -> tuple[sp.csr_array, np.ndarray]:
    """Counts and standardised targets from planted topics over Zipf's word frequencies, documents of log-normal length.

    `datasets.make_topics` draws dense rows, 800 MB at this size, and knows no frequent words.
    """
    zipf = 1 / np.arange(1, N_WORDS + 1)
    topics = rng.dirichlet(500 * zipf / zipf.sum(), N_PLANTED)
    theta = rng.dirichlet(np.full(N_PLANTED, 0.2), n_docs)
    lengths = np.maximum(10, rng.lognormal(np.log(180), 0.5, n_docs).astype(int))
    documents = np.repeat(np.arange(n_docs), lengths)
    words = draw_columns(topics, draw_columns(theta, documents, rng), rng)
    X = sp.coo_array((np.ones(len(words), np.float32), (documents, words)), shape=(n_docs, N_WORDS)).tocsr()
    y = theta @ rng.standard_normal(N_PLANTED) + 0.1 * rng.standard_normal(n_docs)
    return X, ((y - y.mean()) / y.std()).astype(np.float32)[:, None]


# Training.


class TimedEngine:
    """An engine that counts the seconds spent in its two kernels."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine
        self.seconds = 0.0

    def _timed(self, kernel: Callable[..., Any], *arguments: Any) -> Any:
        start = time.perf_counter()
        result = kernel(*arguments)
        self.seconds += time.perf_counter() - start
        return result

    def forward(self, *arguments: Any) -> Any:
        return self._timed(self.engine.forward, *arguments)

    def reverse(self, *arguments: Any) -> Any:
        return self._timed(self.engine.reverse, *arguments)


def epoch(state: mirror_descent.State, examples: loop.Examples, n_threads: int) -> tuple[Timing, mirror_descent.Parameters]:
    """One epoch of training from `state`, which stays: its time, and the parameters after it."""
    schedule = loop.Schedule(
        n_epochs=1,
        batch_sizes=(BATCH_SIZE, BATCH_SIZE),
        learning_rate=0.02,
        coef_learning_rate=0.5,
        decay="linear",
        average_from=0.5,
        beta=1.0001,
    )
    layers = inference.check_layers(ALPHA, N_LAYERS, "l1", 0.0, state.phi, examples.documents.n_docs)
    state, rng = mirror_descent.copy(state), np.random.default_rng(0)
    engine = TimedEngine(inference.new_engine(state.phi.dtype))
    with mock.patch.object(loop, "new_engine", return_value=engine):
        began, cpu_began = time.perf_counter(), time.process_time()
        run = loop.Run(state, layers, rng)
        parameters, _ = loop.train(run, examples, SquaredError(), schedule, n_threads=n_threads)
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu_began
    return Timing(seconds, seconds - engine.seconds, cpu), parameters


def trained_state(examples: loop.Examples, n_topics: int) -> mirror_descent.State:
    """The state after one epoch: before it all topics are alike, and the line search has less to reject."""
    rng = np.random.default_rng(0)
    starts = starting_point(examples.documents, examples.y, examples.weights, SquaredError(), n_topics, rng)
    begun = mirror_descent.begin(starts.phi.astype(np.float32), starts.U.astype(np.float32))
    _, parameters = epoch(begun, examples, n_threads=inference.n_threads_of(-1))
    return mirror_descent.begin(parameters.phi, parameters.U)


def epoch_flops(n_entries: int, n_topics: int) -> float:
    """The work of an epoch as it is counted, whatever the number of rejected trials."""
    return n_entries * n_topics * (2 * (1 + 2 * N_LAYERS + 9) + 8 * N_LAYERS)


def epoch_measure(state: mirror_descent.State, examples: loop.Examples, n_threads: int) -> Measure:
    return lambda: epoch(state, examples, n_threads)[0]


def training_measures(examples: loop.Examples, topics: Sequence[int]) -> dict[str, Measure]:
    measures: dict[str, Measure] = {}
    for n_topics in topics:
        progress(f"first epoch with {n_topics} topics")
        state = trained_state(examples, n_topics)
        measures[f"epoch {n_topics}"] = epoch_measure(state, examples, n_threads=1)
        if n_topics in TWO_THREADS:
            measures[f"epoch {n_topics} two threads"] = epoch_measure(state, examples, n_threads=2)
    return measures


# What it is compared with.


def sgemm_measure(rng: np.random.Generator) -> Measure:
    a, b = rng.random((2, SGEMM_SIZE, SGEMM_SIZE), np.float32)
    out = np.empty_like(a)

    def multiply() -> Timing:
        start = time.perf_counter()
        np.matmul(a, b, out=out)
        return Timing(time.perf_counter() - start)

    return multiply


def cpu_timed(call: Callable[[], Any]) -> Measure:
    """CPU-seconds, of all threads of the process."""

    def measure() -> Timing:
        start = time.process_time()
        call()
        return Timing(time.process_time() - start)

    return measure


def inference_measures(X: sp.csr_array, y: np.ndarray) -> dict[str, Measure]:
    """Topic proportions of documents by three packages, each with a model of 20 topics trained for a short time."""
    progress("models of tomotopy and scikit-learn")
    ours = TopicRegressor(TRANSFORM_TOPICS, n_epochs=1, random_state=0, n_jobs=1).fit(X, y[:, 0])
    sklearns = LatentDirichletAllocation(TRANSFORM_TOPICS, learning_method="online", max_iter=1, random_state=0)
    sklearns.fit(X[:PEER_TRAINING_DOCS])
    return {
        "transform": cpu_timed(lambda: ours.transform(X)),
        "tomotopy": tomotopy_measure(X),
        "scikit-learn": cpu_timed(lambda: sklearns.transform(X[:PEER_DOCS])),
    }


def tomotopy_measure(X: sp.csr_array) -> Measure:
    names = np.array([f"w{word}" for word in range(N_WORDS)])
    n_docs = min(PEER_TRAINING_DOCS, X.shape[0])
    texts = [np.repeat(names[X[[d]].indices], X[[d]].data.astype(int)).tolist() for d in range(n_docs)]
    model = tomotopy.LDAModel(k=TRANSFORM_TOPICS, seed=0)
    for text in texts:
        model.add_doc(text)
    model.train(50, workers=1)
    # Inference changes its documents: each repeat makes new ones, outside the time.
    return lambda: cpu_timed(partial(model.infer, [model.make_doc(text) for text in texts[:PEER_DOCS]], workers=1))()


def import_measure(statement: str) -> Measure:
    """Time of an import statement in new processes; fails if it imports scikit-learn."""
    code = (
        f"import sys, time; start = time.perf_counter(); {statement}; print(time.perf_counter() - start)\n"
        "assert 'sklearn' not in sys.modules, 'scikit-learn was imported'"
    )

    def measure() -> Timing:
        run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        return Timing(float(run.stdout))

    return lambda: min(measure() for _ in range(IMPORTS_PER_REPEAT))


# The run.


def progress(text: str) -> None:
    """One line on the terminal that the next overwrites."""
    print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def best_of(measures: dict[str, Measure], n_repeats: int) -> dict[str, Timing]:
    """The fastest of `n_repeats` rounds, each of which measures everything in turn."""
    best: dict[str, Timing] = {}
    for repeat in range(n_repeats):
        for name, measure in measures.items():
            progress(f"repeat {repeat + 1} of {n_repeats}: {name}")
            timing = measure()
            best[name] = min(best.get(name, timing), timing)
    progress("")
    return best


def training_rows(best: dict[str, Timing], topics: Sequence[int], X: sp.csr_array) -> Iterator[list[str]]:
    n_docs = X.shape[0]
    sgemm = 2 * SGEMM_SIZE**3 / best["sgemm"].seconds
    for n in topics:
        seconds = best[f"epoch {n}"].seconds
        flops = epoch_flops(X.nnz, n) / seconds
        detail = f"{n_docs / seconds:,.0f} documents/s, {flops / 1e9:.1f} of {sgemm / 1e9:.1f} GFLOP/s"
        yield row(f"epoch, one thread, {n} topics, share of sgemm", 100 * flops / sgemm, SGEMM_SHARE[n], "{:.1f} %", detail)
    for n in sorted(TWO_THREADS.keys() & set(topics)):
        one, two = best[f"epoch {n}"], best[f"epoch {n} two threads"]
        # Fewer than two busy cores mean waiting, for each other or for other processes; more CPU-seconds mean more work.
        busy, work = two.cpu / two.seconds, two.cpu / one.cpu
        detail = f"{n_docs / two.seconds:,.0f} documents/s, {busy:.2f} cores busy, {work:.2f} x the CPU-seconds"
        yield row(f"two threads against one, {n} topics", one.seconds / two.seconds, TWO_THREADS[n], "{:.2f} x", detail)
    for n in sorted(OUTSIDE_SHARE.keys() & set(topics)):
        timing = best[f"epoch {n}"]
        share = 100 * timing.outside / timing.seconds
        detail = f"{1e6 * timing.outside / -(-n_docs // BATCH_SIZE):,.0f} us a batch"
        yield row(f"outside the two kernels, {n} topics, share of an epoch", share, OUTSIDE_SHARE[n], "{:.1f} %", detail)


def other_rows(best: dict[str, Timing], n_docs: int) -> Iterator[list[str]]:
    ours = n_docs / best["transform"].seconds
    for peer, targets in (("tomotopy", TOMOTOPY), ("scikit-learn", SKLEARN)):
        theirs = min(PEER_DOCS, n_docs) / best[peer].seconds
        detail = f"{ours:,.0f} against {theirs:,.0f} documents per CPU-second"
        yield row(f"transform, one thread, {TRANSFORM_TOPICS} topics, against {peer}", ours / theirs, targets, "{:.0f} x", detail)
    whole, numpy_and_scipy = best["import mirrorlda"].seconds, best["import peers"].seconds
    detail = f"{whole:.3f} s in all, scikit-learn not imported"
    yield row("import mirrorlda, over NumPy and SciPy", whole - numpy_and_scipy, IMPORT_SECONDS, "{:.3f} s", detail)


def processor() -> str:
    """The processor's name, which `platform` does not know on Linux."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.processor())


def print_setting(X: sp.csr_array) -> None:
    print(f"{processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}, load {os.getloadavg()[0]:.1f}")
    packages = ("mirrorlda", "numpy", "scipy", "scikit-learn", "tomotopy")
    print(", ".join([f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in packages)]))
    print(f"instruction set {_core.instruction_set()}, {N_LAYERS} layers, alpha {ALPHA}, regression, batches of {BATCH_SIZE:,}")
    n_docs = X.shape[0]
    print(f"{n_docs:,} documents, {N_WORDS:,} words; {X.sum() / n_docs:.1f} a document, {X.nnz / n_docs:.1f} of them distinct")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="How fast: one run, one table.")
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--topics", type=int, nargs="+", choices=SGEMM_SHARE)
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--quick", action="store_true", help="20 and 100 topics, two repeats, unless given")
    options = parser.parse_args(arguments)
    topics = options.topics or ([20, 100] if options.quick else list(SGEMM_SHARE))
    n_repeats = options.repeats or (2 if options.quick else 5)

    rng = np.random.default_rng(0)
    X, y = draw_corpus(options.documents, rng)
    print_setting(X)
    print(f"best of {n_repeats} interleaved repeats\n", flush=True)
    with threadpool_limits(1):
        measures = {
            "sgemm": sgemm_measure(rng),
            **training_measures(Examples(as_documents(X), y, np.ones(len(y))), topics),
            **inference_measures(X, y),
            "import peers": import_measure("import numpy, scipy.sparse"),
            "import mirrorlda": import_measure("import mirrorlda"),
        }
        best = best_of(measures, n_repeats)
    rows = [*training_rows(best, topics, X), *other_rows(best, len(y))]
    print_table(["what", "measured", "must", "stretch", "verdict", "detail"], rows)


if __name__ == "__main__":
    main()
