"""Processor times of every heuristic and every exact model at the sizes of the catalogue."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks import PAPERS
from benchmarks.growth import EXACT, MEMORY, beside, run
from benchmarks.results.kept import Asked
from benchmarks.results.page import Page, as_csv, by_paper, heading, prose, stamp, table
from validation.catalogue import CATALOGUE
from validation.formatting import duration
from validation.kernel.isolation import Apart
from validation.pages.drawing import as_svg, own_style

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["make", "measured"]

SECONDS = 5.0
"""For each proof."""


def make(asked: Asked) -> Page:
    """Measure the times, and make the page."""
    problems = [one for one in CATALOGUE if asked.problems is None or one in asked.problems]
    kept = {
        problem: asked.once(f"times/{problem}", partial(measured, problem), seconds=SECONDS) for problem in problems
    }
    rows = [row for one in kept.values() for row in one.content]
    parts = [
        "# Times\n",
        stamp(kept.values(), "times"),
        prose(
            "Processor times of one core: the median of three generated instances, drawn with the seeds 0, 1 and 2 "
            "and the generators' defaults but for what is said at the problem. The exact model's time is that of "
            "`formulations.solve` as a whole: building, solving and checking. Where it did not prove all three optima "
            f"within {SECONDS:g} s each, by the clock, the table says how many it left open and gives no time. How "
            "times grow beyond these sizes: [growth.md](../growth.md). The numbers, with all digits: "
            "[times.csv](times.csv)."
        ),
    ]
    files = {"times.csv": as_csv(rows)}
    for paper, mine in by_paper(rows):
        picture = f"times-{paper}.svg"
        files[picture] = _drawn([row for row in mine if row["seconds"] is not None and not row["open"]], picture)
        parts += [f"## {PAPERS[paper]}\n", f"![Times of the algorithms of {paper}]({picture})\n"]
        for problem in dict.fromkeys(row["problem"] for row in mine):
            entry, own = CATALOGUE[problem], [row for row in mine if row["problem"] == problem]
            others = ", ".join(f"`{name}`" for name in beside(problem, 1))
            parts += [heading(problem), f"`{entry.size}`{f', with {others} set' if others else ''}:\n"]
            shown = {(row["algorithm"], row["size"]): _cell(row) for row in own}
            parts.append(
                table(
                    ("algorithm", *map(str, entry.sizes)),
                    (
                        (name if name == EXACT else f"`{name}`", *(shown[name, size] for size in entry.sizes))
                        for name in (EXACT, *entry.heuristics)
                    ),
                )
            )
    return Page("\n".join(parts), files)


def measured(problem: str) -> list[dict[str, Any]]:
    """For each algorithm and size: the median time, and how many optima the exact model left open."""
    entry = CATALOGUE[problem]
    rows = []
    with Apart(partial(run, enough=math.inf), memory=MEMORY) as apart:
        for size in entry.sizes:
            for algorithm in (EXACT, *entry.heuristics):
                answer = apart.ask(problem, algorithm, size, SECONDS, seconds=20 * SECONDS + 120)
                told = answer.content
                if told is None or "error" in told:
                    raise RuntimeError(f"{problem}, {algorithm}, {size}: {(told or {}).get('error', answer.reason)}")
                rows.append(
                    {"problem": problem, "algorithm": algorithm, "size": size}
                    | {"seconds": told["seconds"], "open": told["open"]}
                )
    return rows


def _cell(row: Mapping[str, Any]) -> str:
    if row["open"]:
        return f"{row['open']} of 3 open"
    return "no plan" if row["seconds"] is None else duration(row["seconds"])


def _drawn(rows: Sequence[Mapping[str, Any]], title: str) -> str:
    """A line for each problem: its algorithms' times from the smallest size to the largest."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter

    names = list(dict.fromkeys((row["problem"], row["algorithm"]) for row in rows))
    problems = list(dict.fromkeys(problem for problem, _ in names))
    heights = [sum(one == problem for one, _ in names) + 1.3 for problem in problems]
    with own_style({"font.size": 8, "axes.spines.top": False, "axes.spines.right": False}, salt=title):
        figure = Figure(figsize=(7.2, 0.5 + 0.19 * sum(heights)), layout="constrained")
        panels = figure.subplots(len(problems), 1, squeeze=False, sharex=True, height_ratios=heights)[:, 0]
        for axes, problem in zip(panels, problems, strict=True):
            algorithms = [name for one, name in names if one == problem]
            axes.set_xscale("log")
            for at, name in enumerate(algorithms):
                mine = [row for row in rows if (row["problem"], row["algorithm"]) == (problem, name)]
                seconds = [row["seconds"] for row in mine]
                colour = "black" if name == EXACT else "#0072B2"
                axes.plot([min(seconds), max(seconds)], [at, at], color=colour, linewidth=1)
                axes.scatter(seconds, [at] * len(seconds), s=[8 + 12 * n for n in range(len(seconds))], color=colour)
            axes.set_yticks(range(len(algorithms)), algorithms)
            axes.set_ylim(len(algorithms) - 0.4, -0.6)
            axes.set_title(problem, loc="left", fontsize=8, fontweight="bold")
            axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: duration(x)))
            axes.grid(axis="x", alpha=0.3)
        panels[-1].set_xlabel("processor time; a dot for each size, the largest for the largest size")
        return as_svg(figure)
