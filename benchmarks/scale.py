"""More documents than memory holds, more words than a cache holds: how fast, beside the same work in memory.

    python benchmarks/scale.py [--docs 8000000] [--directory build/scale] [--only disk sizes words vocabulary] [--texts FILE ...]

Documents are generated: 100 distinct words each, drawn from a Zipf distribution, with a target that some words move. The corpus
stays in the directory for the next run. Every measurement runs in a process of its own; figures are ratios within one run.
With --texts, text to counts is measured on these files too.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from mirrorlda.text import WordCounts

from mirrorlda import Corpus, CorpusWriter, TopicRegressor
from mirrorlda.data.corpus.manifest import Target
from mirrorlda.training import loop

N_DISTINCT = 100
PART = 65_536
# Shares of the corpus that the time is measured for: each a split of its own.
SHARES = {"sixteenth": 1 / 16, "eighth": 1 / 8, "quarter": 1 / 4, "half": 1 / 2}
LIMIT = 10**9
FEW_WORDS = 5_000
MEASUREMENTS = ["disk", "sizes", "words", "vocabulary"]


def generate(n_docs: int, n_words: int, seed: int) -> tuple[sp.csr_array, np.ndarray]:
    """Documents of exactly `N_DISTINCT` distinct words each, word number w with a probability of about 1 / (1 + w)."""
    rng = np.random.default_rng((seed, n_words))
    drawn = np.exp(rng.random((n_docs, 160 if n_words >= 100_000 else 220), np.float32) * np.float32(np.log(n_words + 1))) - 1
    words = np.sort(np.minimum(drawn, n_words - 1).astype(np.int32), axis=1)
    is_new = np.ones(words.shape, bool)
    is_new[:, 1:] = words[:, 1:] != words[:, :-1]
    keys = np.where(is_new, rng.random(words.shape, np.float32), np.float32(2))
    kept = np.argpartition(keys, N_DISTINCT - 1, axis=1)[:, :N_DISTINCT]
    assert np.take_along_axis(keys, kept, axis=1).max() < 2, "a document has fewer distinct words"
    indices = np.sort(np.take_along_axis(words, kept, axis=1), axis=1).ravel()
    counts = np.minimum(rng.geometric(0.7, len(indices)), 40).astype(np.float32)
    X = sp.csr_array((counts, indices, np.arange(0, len(indices) + 1, N_DISTINCT)), shape=(n_docs, n_words))
    effects = np.random.default_rng(n_words).standard_normal(n_words)
    y = X @ effects
    return X, y / 12 + 0.5 * rng.standard_normal(n_docs)


def corpus_of(directory: Path, n_docs: int, n_words: int) -> Path:
    """A generated corpus, which is written unless it is there."""
    path = directory / f"zipf-{n_docs}-{n_words}.corpus"
    if (path / "corpus.json").exists() and Corpus(path).n_docs == n_docs:
        return path
    print(f"writing {n_docs:,} documents to {path}", file=sys.stderr, flush=True)
    ends = np.cumsum([round(share * n_docs) for share in SHARES.values()])
    names = [*SHARES, "rest"]
    sizes = [min(PART, n_docs - first) for first in range(0, n_docs, PART)]
    with ProcessPoolExecutor(2) as pool, CorpusWriter(path, n_words, target=Target("numbers", ("y",))) as writer:
        done = 0
        waiting = [pool.submit(generate, size, n_words, seed) for seed, size in enumerate(sizes[:3])]
        for number, size in enumerate(sizes):
            X, y = waiting.pop(0).result()
            if number + 3 < len(sizes):
                waiting.append(pool.submit(generate, sizes[number + 3], n_words, number + 3))
            split = [names[i] for i in np.searchsorted(ends, np.arange(done, done + size), side="right")]
            writer.add(X, y, split=split)
            done += size
    return path


def forget(path: Path) -> None:
    """Take the files out of the system's memory, so that they are read from the disk, and count for who reads them."""
    for file in path.rglob("*.shard"):
        descriptor = os.open(file, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


@contextmanager
def train_replaced(by: Callable[..., Any]) -> Iterator[None]:
    """The training loop of the package is another function, in every module that calls it."""
    train = loop.train
    callers = [
        module for name, module in sys.modules.items() if name.startswith("mirrorlda.") and vars(module).get("train") is train
    ]
    for module in callers:
        module.train = by
    try:
        yield
    finally:
        for module in callers:
            module.train = train


def timed_fit(X: object, y: object, **parameters: object) -> dict[str, float]:
    """Seconds of training alone, and what the process took of memory that is its own."""
    train, seconds = loop.train, []

    def timed(*arguments: object, **options: object) -> object:
        begin, cpu = time.perf_counter(), time.process_time()
        result = train(*arguments, **options)
        seconds.append((time.perf_counter() - begin, time.process_time() - cpu))
        return result

    model = TopicRegressor(random_state=0, n_jobs=2, **parameters)
    with train_replaced(timed):
        model.fit(X) if y is None else model.fit(X, y)
    status = Path("/proc/self/status").read_text().split()
    return {
        "seconds": seconds[0][0],
        "cpu": seconds[0][1],
        "loss": model.history_["loss"][-1],
        "own MB": int(status[status.index("RssAnon:") + 1]) / 1000,
        "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000,
    }


def disk(path: str, split: str, limit: int, n_topics: int, n_epochs: int = 1) -> dict[str, float]:
    """Epochs from disk; with a limit, the process's own memory may not exceed it."""
    if limit:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        forget(Path(path))
    corpus = Corpus(path)
    part = corpus.select(split=split) if split else corpus
    return {**timed_fit(part, None, n_topics=n_topics, n_epochs=n_epochs), "docs": n_epochs * part.n_docs}


def memory(path: str, split: str, n_topics: int, n_epochs: int) -> dict[str, float]:
    """The same from memory."""
    part = Corpus(path).select(split=split)
    X, y = part.matrix(), part.targets(np.arange(part.n_docs))[0]
    return {**timed_fit(X, y, n_topics=n_topics, n_epochs=n_epochs), "docs": n_epochs * part.n_docs}


def words(n_docs: int, n_words: int, n_topics: int) -> dict[str, float]:
    """An epoch with a vocabulary of this size, from memory."""
    parts = [generate(min(PART, n_docs - first), n_words, first) for first in range(0, n_docs, PART)]
    X, y = sp.vstack([part[0] for part in parts]).tocsr(), np.concatenate([part[1] for part in parts])
    return {**timed_fit(X, y, n_topics=n_topics, n_epochs=1), "docs": n_docs}


def vocabulary(n_words: int) -> dict[str, float]:
    """A vocabulary pass over so many distinct words, each in two texts, all of which are taken."""
    counts = WordCounts(n_threads=2)
    begin = time.perf_counter()
    for _ in range(2):
        for first in range(0, n_words, 100_000):
            last = min(first + 100_000, n_words)
            counts.add(" ".join(f"word{w:x}" for w in range(text, min(text + 100, last))) for text in range(first, last, 100))
    found = counts.vocabulary()
    assert len(found) == n_words
    return {"seconds": time.perf_counter() - begin, "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000}


def apart(function: str, *arguments: object, group: Path | None = None) -> dict[str, float]:
    """A measurement in a process of its own, in a control group if one is given."""
    command = [sys.executable, __file__, "--child", json.dumps([function, *arguments])]

    def enter() -> None:
        if group is not None:
            (group / "cgroup.procs").write_text(str(os.getpid()))

    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, preexec_fn=enter)
    return json.loads(done.stdout)


def memory_group(n_bytes: int) -> Path | None:
    """A control group whose memory, mapped pages included, has this limit; None where the system does not allow one."""
    for root, name in ((Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"), (Path("/sys/fs/cgroup"), "memory.max")):
        group = root / "mirrorlda-scale"
        try:
            group.mkdir(exist_ok=True)
            (group / name).write_text(str(n_bytes))
            return group
        except OSError:
            continue
    return None


def rate(measured: dict[str, float]) -> float:
    return measured["docs"] / measured["seconds"]


def compare_with_memory(path: str) -> None:
    """Training from disk with little memory beside the same from memory."""
    # Machines slow down under a load that lasts: all runs see as many documents, in more epochs where there are fewer.
    before = apart("memory", path, "eighth", 20, 8)
    whole = apart("disk", path, "", LIMIT, 20)
    after = apart("memory", path, "eighth", 20, 8)
    in_memory = (rate(before) + rate(after)) / 2
    print(
        f"in memory: {rate(before):,.0f} and {rate(after):,.0f} documents a second ({before['docs'] // 8:,} documents, 8 epochs)"
    )
    print(
        f"from disk, at most {LIMIT / 1e9:g} GB of memory of its own: {rate(whole):,.0f} documents a second, "
        f"{100 * rate(whole) / in_memory:.1f} % of the rate in memory; {whole['own MB']:.0f} MB its own at the end"
    )
    cpu = [1e6 * measured["cpu"] / measured["docs"] for measured in (before, after, whole)]
    print(f"processor time a document, in memory {cpu[0]:.1f} and {cpu[1]:.1f} us, from disk {cpu[2]:.1f} us")
    if (group := memory_group(LIMIT)) is not None:
        tight = apart("disk", path, "", LIMIT, 20, group=group)
        group.rmdir()
        print(
            f"from disk, at most {LIMIT / 1e9:g} GB with the system's copies of the files: {rate(tight):,.0f} documents a second"
        )


def compare_sizes(path: str, n_docs: int) -> None:
    """Seconds of an epoch by the number of documents."""
    seconds = {}
    for name, share in {**SHARES, "": 1.0}.items():
        n_epochs = round(1 / share)
        seconds[round(share * n_docs)] = apart("disk", path, name, 0, 20, n_epochs)["seconds"] / n_epochs
    slope = np.polyfit(np.log(list(seconds)), np.log(list(seconds.values())), 1)[0]
    for size, taken in seconds.items():
        print(f"  {size:>9,} documents: {taken:6.1f} s an epoch, {size / taken:,.0f} a second")
    print(f"slope of the log-log line: {slope:.3f}")


def compare_words(n_docs: int, n_words: int) -> None:
    """An epoch with many words beside one with few."""
    few, many = [], []
    for _ in range(2):
        few.append(apart("words", n_docs, FEW_WORDS, 100)["seconds"])
        many.append(apart("words", n_docs, n_words, 100)["seconds"])
    print(
        f"{n_words:,} words instead of {FEW_WORDS:,}, 100 topics, {n_docs:,} documents: "
        f"{min(many) / min(few):.2f} times the seconds ({min(many):.1f} and {min(few):.1f})"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--docs", type=int, default=8_000_000, help="of the corpus")
    parser.add_argument("--directory", type=Path, default=Path("build/scale"))
    parser.add_argument("--only", nargs="+", choices=MEASUREMENTS, default=MEASUREMENTS)
    parser.add_argument("--words", type=int, default=701_000, help="how many words are compared with few")
    parser.add_argument("--words-docs", type=int, default=8 * PART, help="documents that they are compared on")
    parser.add_argument("--vocabulary", type=int, default=10_000_000, help="distinct words of a vocabulary pass")
    parser.add_argument("--texts", nargs="*", default=[], metavar="FILE", help="JSON lines with the field text")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        name, *its_arguments = json.loads(options.child)
        print(json.dumps(globals()[name](*its_arguments)))
        return
    if {"disk", "sizes"} & set(options.only):
        options.directory.mkdir(parents=True, exist_ok=True)
        path = str(corpus_of(options.directory, options.docs, FEW_WORDS))
        size = sum(file.stat().st_size for file in Path(path).rglob("*") if file.is_file())
        per_word = size / options.docs / N_DISTINCT
        print(f"corpus: {options.docs:,} documents, {size / 1e9:.2f} GB, {per_word:.2f} bytes a distinct word")
    if "disk" in options.only:
        compare_with_memory(path)
    if "sizes" in options.only:
        compare_sizes(path, options.docs)
    if "words" in options.only:
        compare_words(options.words_docs, options.words)
    if "vocabulary" in options.only:
        found = apart("vocabulary", options.vocabulary)
        print(
            f"vocabulary pass over {options.vocabulary:,} distinct words: {found['peak MB']:.0f} MB at most, "
            f"{found['seconds']:.0f} s"
        )
    if options.texts:
        sys.stdout.flush()
        subprocess.run([sys.executable, Path(__file__).with_name("text.py"), *options.texts], check=True)


if __name__ == "__main__":
    main()
