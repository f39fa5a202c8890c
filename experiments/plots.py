"""Line charts with deviations, and points with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from results import Summary


@dataclass(frozen=True)
class Line:
    """Summaries over x; of one without x, a horizontal line."""

    label: str
    summaries: Sequence[Summary]
    x: Sequence[float] | None = None
    # Drawn thicker than the others.
    is_ours: bool = False
    # Places of x whose markers are hollow: they were not measured.
    hollow: Sequence[float] = ()


@dataclass(frozen=True)
class Point:
    """Two measures of one system, with the half widths of their intervals, NaN for none."""

    label: str
    x: Summary
    y: Summary
    is_ours: bool = False


@dataclass(frozen=True)
class Panel:
    """One chart."""

    title: str
    x_label: str
    y_label: str
    lines: list[Line] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    y_is_logarithmic: bool = False


# Told apart by people who see colours differently (Okabe and Ito), and by markers.
COLOURS = [
    *("#d55e00", "#e69f00", "#0072b2", "#56b4e9", "#009e73", "#cc79a7", "#7f7f7f", "#b8a100", "#8c564b"),
    *("#000000", "#6a3d9a", "#33a02c", "#b2182b"),
]
MARKERS = "osD^vP*Xph<>"
DASHES = ["--", ":", "-.", (0, (5, 1)), (0, (3, 1, 1, 1))]


def zoomed(panel: Panel, depth: float) -> Panel:
    """The lines that nowhere are more than so far below the best point."""
    best = max(found.mean for line in panel.lines for found in line.summaries)
    kept = [line for line in panel.lines if min(found.mean for found in line.summaries) > best - depth]
    return replace(panel, title=f"{panel.title} (zoom in)", lines=kept)


def draw(path: Path, panels: Sequence[Panel], n_columns: int | None = None) -> None:
    """Panels side by side, or in rows of `n_columns`, the same system in the same colour in all of them, with one legend.

    Panels have lines, over a logarithmic x, or points.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    # The same picture gives the same file.
    with mpl.rc_context({"svg.hashsalt": "mirrorlda", "svg.fonttype": "path", "font.size": 9}):
        n_columns = min(n_columns or len(panels), len(panels))
        n_rows = -(-len(panels) // n_columns)
        figure = Figure(figsize=(5.2 * n_columns, 4.2 * n_rows), layout="constrained")
        axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
        for unused in axes[len(panels) :]:
            unused.set_axis_off()
        labels = list(dict.fromkeys(line.label for panel in panels for line in [*panel.lines, *panel.points]))
        styles = {
            label: (COLOURS[n % len(COLOURS)], MARKERS[n % len(MARKERS)], DASHES[n % len(DASHES)])
            for n, label in enumerate(labels)
        }
        handles = {}
        for axis, panel in zip(axes[: len(panels)], panels, strict=True):
            ticks: set[float] = set()
            for line in panel.lines:
                colour, marker, dash = styles[line.label]
                if line.x is None:
                    handles[line.label] = axis.axhline(line.summaries[0].mean, color=colour, linestyle=dash, linewidth=1.2)
                    continue
                ticks.update(line.x)
                means = [found.mean for found in line.summaries]
                deviations = [found.deviation if found.n_runs > 1 else 0.0 for found in line.summaries]
                handles[line.label] = axis.errorbar(
                    line.x,
                    means,
                    deviations,
                    color=colour,
                    marker=marker,
                    markersize=4,
                    capsize=2,
                    linewidth=2.4 if line.is_ours else 1.2,
                )
                hollow = [(x, mean) for x, mean in zip(line.x, means, strict=True) if x in line.hollow]
                if hollow:
                    axis.plot(*zip(*hollow, strict=True), marker, color=colour, markersize=4, markerfacecolor="white", zorder=3)
            for point in panel.points:
                colour, marker, _ = styles[point.label]
                widths = [0.0 if np.isnan(each.half_width) else each.half_width for each in (point.x, point.y)]
                handles[point.label] = axis.errorbar(
                    point.x.mean,
                    point.y.mean,
                    xerr=widths[0],
                    yerr=widths[1],
                    color=colour,
                    marker=marker,
                    markersize=9 if point.is_ours else 6,
                    linewidth=1.2,
                    linestyle="",
                )
            axis.set(title=panel.title, xlabel=panel.x_label, ylabel=panel.y_label)
            if panel.y_is_logarithmic:
                axis.set_yscale("log")
            if panel.lines:
                axis.set_xscale("log")
                axis.set_xticks(sorted(ticks), [f"{tick:g}" for tick in sorted(ticks)])
                axis.set_xticks([], minor=True)
            axis.grid(alpha=0.3)
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4, frameon=False, fontsize=8)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})
