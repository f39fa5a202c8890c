"""Training time against the number of topics, by the number of documents (the paper's figure 5).

    python experiments/figure5.py DATA_DIR [--quick] [--documents 79000 7900000] [--limit 300]

Documents are drawn with the statistics of real ones (generated.py). Systems are trained one after another, each on one core, with
settings that are given: first on few documents, then on ten times as many, as long as --limit and memory are expected to suffice.
What was not measured is extrapolated, and marked so. mirrorlda reads documents from disk, the others have them in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

import command
from command import Size
from comparison import Curve, curve_of
from paper_settings import N_EPOCHS
from plots import Line, Panel
from results import Run, Summary, table
from rows import Row
from running import Job
from systems import SYSTEMS
from timing import ONE_EPOCH, Drawn, estimate, reads_disk, sizes_up_to, train

FULL = Size(n_docs=(79_000, 7_900_000), topics=(5, 10, 20, 50, 100, 200), repeats=1)
QUICK = Size(n_docs=(1_000, 10_000), topics=(5, 20), repeats=1)
# Seconds that a run may be expected to take.
LIMIT, QUICK_LIMIT = 300.0, 1.0
# Documents a second of the public C# implementation on TripAdvisor, by the number of topics: under mono, one thread, ten layers,
# batches of 1,000. Quoted: measured by others, at another time.
QUOTED = {5: 3_100, 20: 1_000, 50: 510, 100: 210}
CLOCKS = {"cpu_seconds": "training, s of the processor", "seconds": "training, s by the clock"}
QUOTED_LABEL = f"public C# implementation, {N_EPOCHS} epochs, quoted"


def rows(data: Path) -> list[Row]:
    return [Row("tripadvisor-stars", data / "tripadvisor_79k.jsonl.gz", "stars", "r2")]


def quoted(n_topics: int, n_docs: int) -> float | None:
    speed = QUOTED.get(n_topics)
    return None if speed is None else N_EPOCHS * n_docs / speed


def panel(runs: Sequence[Run], curves: Sequence[Curve], topics: Sequence[int], n_docs: int) -> Panel:
    lines = []
    for curve in curves:
        found = {size: estimate(runs, curve.system, size, n_docs) for size in curve.sizes(topics)}
        shown = {size: each for size, each in found.items() if each is not None and not each.error}
        hollow = [size for size, each in shown.items() if each.measured_on and size is not None]
        x = None if None in shown else list(shown)
        points = [Summary(each.seconds) for each in shown.values()]
        is_guessed = x is None and any(each.measured_on for each in shown.values())
        label = curve.label + (", extrapolated" if is_guessed else "")
        lines += [Line(label, points, x, reads_disk(curve.system), hollow)] if shown else []
    known = {size: seconds for size in topics if (seconds := quoted(size, n_docs)) is not None}
    points = [Summary(seconds) for seconds in known.values()]
    lines += [Line(QUOTED_LABEL, points, list(known), hollow=list(known))] if known else []
    title = f"{n_docs:,} documents (hollow: extrapolated or quoted)"
    return Panel(title, "topics", "training on one core, s of the processor", lines, y_is_logarithmic=True)


def table_of(runs: Sequence[Run], curves: Sequence[Curve], topics: Sequence[int], n_docs: int, clock: str) -> str:
    lines = []
    for curve in curves:
        cells = [estimate(runs, curve.system, size, n_docs, clock) for size in curve.sizes(topics)]
        texts = ["" if cell is None else str(cell) for cell in cells]
        is_measured = [cell is not None and not (cell.measured_on or cell.error) for cell in cells]
        told = "all" if all(is_measured) else f"{sum(is_measured)} of {len(cells)}"
        lines.append([curve.label, *texts, *[""] * (len(topics) - len(texts)), told])
    seconds = [quoted(size, n_docs) for size in topics]
    if any(seconds):
        lines.append([QUOTED_LABEL, *("" if each is None else f"{each:,.0f}" for each in seconds), "none"])
    return table([f"{n_docs:,} documents: {CLOCKS[clock]}", *(f"{size} topics" for size in topics), "measured"], lines)


def r2_table(runs: Sequence[Run], curves: Sequence[Curve], topics: Sequence[int]) -> str:
    """That all have learned something: R2 after the run with the most documents."""
    lines = []
    for curve in curves:
        cells = []
        for size in curve.sizes(topics):
            what = curve.system, size, "r2"
            found = [run for run in runs if (run.system, run.n_topics, run.measure) == what and not run.error]
            best = max(found, key=lambda run: run.n_docs, default=None)
            cells.append("" if best is None else f"{best.score:.3f} ({best.n_docs:,})")
        lines.append([curve.label, *cells, *[""] * (len(topics) - len(cells))])
    header = ["R2 for drawn documents (trained on so many)", *(f"{size} topics" for size in topics)]
    return table(header, lines)


def notes(runs: Sequence[Run], limits: dict[int, float]) -> str:
    told = ", ".join(f"{limit:g} s (up to {n_docs:,} documents)" for n_docs, limit in limits.items())
    ratios = [run.seconds / run.cpu_seconds for run in runs if not run.error and run.cpu_seconds > 1]
    lines = [
        "Documents are drawn with the statistics of real ones. Seconds of `fit` on one core, once, with settings that are given; "
        "compilation excluded; of the processor, which decides what is trained and drawn, and by the clock. Targets are what a "
        "TopicRegressor of 5 topics predicts, and noise: R2 shows that a system has learned something, not which is best.",
        f"~ was not measured: training was expected to take more than {told}, or more memory than there is, or there was no time "
        "to begin it. It is extrapolated from the number of documents in brackets, along the line through it and the one before, "
        "or in proportion from one epoch where it says so: what comes before the epochs then counts as often as they do. "
        "Nothing is extrapolated from one number of documents alone.",
        f"The C# implementation's times are quoted, not measured in this run: {N_EPOCHS} epochs at the documents a second that "
        "others measured (mono, one thread, ten layers, batches of 1,000).",
    ]
    if ratios:
        lines.append(
            f"By the clock runs of more than a second took {np.median(ratios):.2f} times the processor's time (median; "
            f"at most {max(ratios):.2f})."
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = command.parser(__doc__, FULL, list(SYSTEMS))
    parser.add_argument(
        "--limit",
        type=float,
        nargs="+",
        metavar="SECONDS",
        help="train nothing that is expected to take longer, but for the second of the numbers of documents where the first took "
        f"no longer; one number, {LIMIT:g} by default, or one for each of --documents",
    )
    parser.add_argument(
        "--corpora", type=Path, help="folder of the documents drawn, `generated` in that of the results by default"
    )
    chosen = command.parsed(parser, FULL, QUICK, arguments)
    sizes, n_drawing = sorted(chosen.documents), chosen.processes
    given = chosen.limit or [QUICK_LIMIT if chosen.quick else LIMIT]
    if len(given) not in (1, len(sizes)):
        parser.error(f"--limit: found {len(given)} numbers, expected one, or one for each of {len(sizes)} numbers of documents")
    limits = dict(zip(sizes, given if len(given) > 1 else given * len(sizes), strict=True))
    # Of the real documents all are wanted, and runs are timed one by one.
    chosen.documents, chosen.processes = None, 1
    (row,) = command.sized(rows(chosen.data or Path()), chosen)
    if row.measure != "r2":
        raise SystemExit(f"{row.path}: found classes in {row.target!r}, expected numbers")
    documents = Drawn(row, (chosen.corpora or chosen.out / "generated") / row.name, n_drawing)
    curves = [curve_of(system) for system in chosen.systems]
    path = chosen.out / "figure5.csv"
    # All systems with few documents, then with more: what is there when time is out can be compared.
    jobs = [
        (Job(row, curve.system, 0, n_topics), n_docs)
        for n_docs in sizes
        for n_topics in [None, *chosen.topics]
        for curve in curves
        if n_topics in curve.sizes(chosen.topics)
    ]
    train(jobs, documents, path, limits, chosen.minutes)
    names = {documents.sized(size).name for n_docs in sizes for size in sizes_up_to(n_docs)}
    wanted = {(job.system, job.n_topics) for job, _ in jobs}

    def what(each: Run) -> tuple[str, int | None, int]:
        return each.system.removesuffix(ONE_EPOCH), each.n_topics, each.n_docs

    runs = [each for each in documents.runs(path) if each.row in names and what(each)[:2] in wanted]
    trained = {what(each) for each in runs if not each.error}
    runs = [each for each in runs if not each.error or what(each) not in trained]
    tables = [table_of(runs, curves, chosen.topics, n_docs, clock) for clock in CLOCKS for n_docs in sizes]
    shown = [panel(runs, curves, chosen.topics, n_docs) for n_docs in sizes]
    return command.write("figure5", chosen, shown, [*tables, notes(runs, limits), r2_table(runs, curves, chosen.topics)], runs)


if __name__ == "__main__":
    raise SystemExit(main())
