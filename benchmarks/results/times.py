"""Processor times of every heuristic and every exact model at the sizes of the catalogue."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks.growth import EXACT, MEMORY, prove, run
from benchmarks.results.kept import Asked
from benchmarks.results.page import Page, made, panels
from benchmarks.sizes import beside
from validation.catalogue import CATALOGUE
from validation.formatting import duration
from validation.kernel.isolation import Apart

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

__all__ = ["make", "measured"]

SECONDS = 5.0
"""For each proof."""


def make(asked: Asked) -> Page:
    """Measure the times, and make the page."""
    kept = [
        asked.once(f"times/{problem}", partial(measured, problem), seconds=SECONDS)
        for problem in CATALOGUE
        if asked.problems is None or problem in asked.problems
    ]
    rows = [row for one in kept for row in one.content]
    shown = {"CATALOGUE": CATALOGUE, "EXACT": EXACT, "beside": beside, "cell": _cell, "seconds": SECONDS}
    return made("times", kept, rows, partial(_drawn, rows), **shown)


def measured(problem: str) -> list[dict[str, Any]]:
    """For each algorithm and size: the median time, and how many optima the exact model left open."""
    entry = CATALOGUE[problem]
    rows = []
    with Apart(partial(run, enough=math.inf), memory=MEMORY) as apart, Apart(prove, memory=MEMORY) as proving:
        for size in entry.sizes:
            for algorithm in (EXACT, *entry.heuristics):
                if algorithm == EXACT:
                    settings = {entry.size: size, **beside(problem, size)}
                    answer = proving.ask(problem, settings, SECONDS, seconds=20 * SECONDS + 120)
                else:
                    answer = apart.ask(problem, algorithm, size, seconds=20 * SECONDS + 120)
                told = answer.content
                if told is None or "error" in told:
                    raise RuntimeError(f"{problem}, {algorithm}, {size}: {(told or {}).get('error', answer.reason)}")
                rows.append(
                    {"problem": problem, "algorithm": algorithm, "size": size}
                    | {"seconds": told["seconds"], "open": told.get("of", 0) - told.get("proven", 0)}
                )
    return rows


def _cell(row: Mapping[str, Any]) -> str:
    if row["open"]:
        return f"{row['open']} of 3 open"
    return "no plan" if row["seconds"] is None else duration(row["seconds"])


def _drawn(rows: Sequence[Mapping[str, Any]], paper: str, title: str) -> str:
    """Draw a line for each algorithm of a paper: its times from the smallest size to the largest."""
    from matplotlib.ticker import FuncFormatter

    lines: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        if row["problem"].startswith(f"{paper}.") and row["seconds"] is not None and not row["open"]:
            lines.setdefault(row["problem"], {}).setdefault(row["algorithm"], []).append(row["seconds"])

    def draw(axes: Axes, at: int, name: str, seconds: Sequence[float]) -> None:
        colour = "black" if name == EXACT else "#0072B2"
        axes.plot([min(seconds), max(seconds)], [at, at], color=colour, linewidth=1)
        axes.scatter(seconds, [at] * len(seconds), s=[8 + 12 * n for n in range(len(seconds))], color=colour)

    def finish(axes: Axes) -> None:
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: duration(x)))

    label = "processor time; a dot for each size, the largest for the largest size"
    return panels(title, lines, label, draw, finish, {"value": "log"})
