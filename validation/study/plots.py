"""The pictures of a study's report."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from validation.drawing import own_style
from validation.formatting import duration
from validation.study.cases import EXACT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["COLOURS", "MARKERS", "drawn", "looks", "problem_pictures", "steps"]

# Okabe and Ito's palette, which the colour-blind can tell apart; black is for the exact side.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6D31", "#7F7F7F")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

MOST_POINTS = 200
"""Of a curve: steps of half a per cent of its instances, where it has more."""
_MOST_TICKS = 12

STYLE: dict[Any, Any] = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "font.size": 9.5,
    "grid.alpha": 0.3,
}


def problem_pictures(rows: pd.DataFrame) -> list[tuple[str, str, str]]:
    """Pictures of one problem's rows: title, one sentence on how to read it, SVG."""
    look = looks(rows)
    # Words are not drawn, and would be copied with each selection of rows.
    rows = rows[["algorithm", "size", "status", "seconds", "gap_high"]]
    pictures = (
        (
            "Distribution of gaps",
            "Share of all instances on which a heuristic is at most this far from the optimum. Higher is better; a "
            "curve ends below 100% where plans were infeasible or missing.",
            _gap_distribution,
        ),
        (
            "Gap against size",
            "Mean gap (line) up to the worst (thin bar). Where optimality was not proven, the greatest gap that the "
            "bound allows is drawn. Nothing is drawn at sizes where a gap is infinite, as one to an optimum of 0 is.",
            _gap_by_size,
        ),
        ("Time against size", "Median time of each side; the exact side is black.", _time_by_size),
        (
            "Time profile",
            "Share of instances answered within a time: proven optimal (exact) or a feasible plan (heuristics).",
            _time_profile,
        ),
    )
    return [(title, reading, drawn(title, partial(draw, rows=rows, look_of=look))) for title, reading, draw in pictures]


def drawn(title: str, draw: Callable[[Axes], None]) -> str:
    """A picture under its title, as SVG."""
    with own_style(STYLE, salt="study"):
        from matplotlib.figure import Figure

        figure = Figure(figsize=(5.6, 3.5), layout="constrained")
        axes = figure.add_subplot()
        draw(axes)
        axes.set_title(title)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def looks(rows: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Colour, marker and label of each algorithm, the same in all pictures of a problem."""
    names = [name for name in dict.fromkeys(rows["algorithm"]) if name != EXACT]
    found = {
        name: {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)]} for i, name in enumerate(names)
    }
    return {EXACT: {"color": "black", "marker": "."}, **found}


def steps(values: NDArray[Any], of: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Values in order, and the share of ``of`` in per cent that is at most there."""
    values = np.sort(values)
    number = np.arange(1, len(values) + 1)
    if len(values) > MOST_POINTS:
        kept = np.linspace(0, len(values) - 1, MOST_POINTS).round().astype(int)
        values, number = values[kept], number[kept]
    return values, 100 * number / of


def _every(sizes: Sequence[Any]) -> Sequence[Any]:
    """As many of them as there is room for the words of."""
    return sizes[:: -(-len(sizes) // _MOST_TICKS)]


def _gap_distribution(axes: Axes, rows: pd.DataFrame, look_of: Mapping[str, Mapping[str, Any]]) -> None:
    from matplotlib.ticker import FuncFormatter

    largest = 0.0
    for name, group in rows[rows["algorithm"] != EXACT].groupby("algorithm", sort=False):
        gaps = 100 * group["gap_high"].to_numpy(float)
        gaps, share = steps(gaps[np.isfinite(gaps)], len(group))
        if len(gaps):
            largest = max(largest, gaps[-1])
        axes.step(
            np.concatenate([[0], gaps, [1e9]]),
            np.concatenate([[0], share, share[-1:] if len(share) else [0]]),
            where="post",
            color=look_of[str(name)]["color"],
            linewidth=1.8,
        )
    scale = largest or 1.0
    axes.set_xlim(-0.02 * scale, 1.05 * scale)
    if largest > 50:
        axes.set_xscale("symlog", linthresh=1)
        axes.set_xlim(-0.1, 1.3 * largest)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.set_ylim(0, 104)
    axes.set_xlabel("gap, %")
    axes.set_ylabel("instances, %")


def _gap_by_size(axes: Axes, rows: pd.DataFrame, look_of: Mapping[str, Mapping[str, Any]]) -> None:
    heuristics = rows[rows["algorithm"] != EXACT]
    sizes = sorted(heuristics["size"].unique())
    names = list(dict.fromkeys(heuristics["algorithm"]))
    for position, name in enumerate(names):
        by_size = heuristics[heuristics["algorithm"] == name].groupby("size")["gap_high"]
        mean, worst = 100 * by_size.mean(), 100 * by_size.max()
        # The mean of the others would be a better heuristic's.
        mean, worst = mean[np.isfinite(mean)], worst[np.isfinite(mean)]
        # Side by side, so that the bars of different heuristics do not hide each other.
        at = np.array([sizes.index(size) for size in mean.index]) + 0.5 * ((position + 0.5) / len(names) - 0.5)
        axes.errorbar(
            at,
            mean,
            yerr=[np.zeros(len(mean)), worst - mean],
            linewidth=1.4,
            elinewidth=0.8,
            capsize=2,
            markersize=4.5,
            **look_of[name],
        )
    axes.set_xticks(_every(range(len(sizes))), [str(size) for size in _every(sizes)])
    axes.set_ylim(bottom=0)
    axes.set_xlabel("size")
    axes.set_ylabel("gap, %")


def _time_by_size(axes: Axes, rows: pd.DataFrame, look_of: Mapping[str, Mapping[str, Any]]) -> None:
    from matplotlib.ticker import FuncFormatter, NullLocator

    for name, group in rows[rows["status"] != "failed"].groupby("algorithm", sort=False):
        median = group.groupby("size")["seconds"].median()
        axes.plot(median.index, median, linewidth=1.4, markersize=4.5, **look_of[str(name)])
    axes.set_xscale("log")
    axes.set_yscale("log")
    sizes = _every(sorted(rows["size"].unique()))
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: duration(y)))
    least, greatest = axes.get_ylim()
    if greatest < 10 * least:  # There may be no power of ten among the ticks.
        axes.yaxis.set_minor_formatter(FuncFormatter(lambda y, _: duration(y)))
    axes.set_xlabel("size")
    axes.set_ylabel("median time")


def _time_profile(axes: Axes, rows: pd.DataFrame, look_of: Mapping[str, Mapping[str, Any]]) -> None:
    from matplotlib.ticker import FuncFormatter

    for name, group in rows.groupby("algorithm", sort=False):
        answered = group[group["status"].isin(["optimal"] if name == EXACT else ["feasible"])]
        seconds, share = steps(answered["seconds"].to_numpy(float), len(group))
        if not len(seconds):
            continue
        look = look_of[str(name)]
        axes.step(seconds, share, where="post", color=look["color"], linewidth=1.8)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: duration(x)))
    axes.set_ylim(0, 104)
    axes.set_xlabel("time")
    axes.set_ylabel("instances, %")
