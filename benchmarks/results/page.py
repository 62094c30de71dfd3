"""The pieces that pages of results are made of: where they ran, tables, gaps of many instances, pictures."""

from __future__ import annotations

import csv
import io
import math
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.results.kept import Asked, Kept
from validation.formatting import gap_range
from validation.pages.drawing import as_svg, own_style
from validation.pages.render import table_lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "Page",
    "Part",
    "as_csv",
    "by_paper",
    "gaps_drawn",
    "gaps_shown",
    "heading",
    "prose",
    "stamp",
    "summarized",
    "table",
]

NEAR = 0.01
"""Gap up to which a plan counts as close to the optimum."""
GAPS = (
    "Gaps are relative to the optimum. Where it is not proven it lies between the best value known and the bound, and "
    "the gap is an interval. *instances*: those asked about; *plan*: with a feasible one; *proven*: of these, with a "
    "proven optimum; *optimal*: plans that are proven to be; *within 1%*: the share of the instances on which the "
    "plan is that close or closer. *∞*: plans whose gap has no finite bound, because the optimum is 0 or no bound is "
    "known; the mean is that of the others, the worst is that of all. Two ends that look alike differ in a digit that "
    "is not shown."
)
"""What the columns of a table of gaps mean."""


@dataclass(frozen=True)
class Page:
    """A page of results.

    Attributes
    ----------
    text : str
        Markdown.
    files : dict
        What stands beside it: the names of files, with what they hold.
    """

    text: str
    files: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Part:
    """Something that is measured, and its page.

    Attributes
    ----------
    name : str
        Of the page's file.
    title : str
    what : str
        What it holds, in a line.
    make : callable
        Measures, and returns the page; None where the data are absent.
    """

    name: str
    title: str
    what: str
    make: Callable[[Asked], Page | None]


def stamp(measured: Iterable[Kept], name: str) -> str:
    """Where and when a page was measured, how busy the machine was, and by which command."""
    all_ = [one.where for one in measured]
    first, loads = all_[0], [load for one in all_ for load in one["load"]]
    machine, versions = first["machine"], first["versions"]
    dates = sorted({str(one["started"])[:10] for one in all_})
    commits = ", ".join(dict.fromkeys(_short(one["commit"]) for one in all_))
    busy = f"load average {min(loads):g} to {max(loads):g}" if len(set(loads)) > 1 else f"load average {loads[0]:g}"
    if max(loads) > machine["cores"] + 1:
        busy += ", that is, beside other programs"
    return prose(
        f"Measured {' to '.join(dict.fromkeys((dates[0], dates[-1])))} by `python -m benchmarks.results --only {name}` "
        f"at commit {commits}, on {machine['processor'] or machine['system']} ({machine['cores']} cores, {busy}), with "
        f"version {versions['scheduling-formulations']}, HiGHS {versions['highspy']}, Pyomo {versions['pyomo']}, NumPy "
        f"{versions['numpy']} and Python {versions['python']}."
    )


def _short(commit: str | None) -> str:
    """A commit as people name it, with the mark of one whose files were changed."""
    name, *changed = (commit or "unknown").split(" ", 1)
    return " ".join([name[:12], *changed])


def prose(text: str) -> str:
    """A paragraph, in lines as the other pages have them."""
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False) + "\n"


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown."""
    return "\n".join(table_lines(columns, rows)) + "\n"


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as CSV, with all digits; the columns are those of the first."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: "" if value is None else value for name, value in row.items()} for row in rows)
    return out.getvalue()


def by_paper(rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """Rows that name their problem, paper after paper."""
    for paper in dict.fromkeys(row["problem"].partition(".")[0] for row in rows):
        yield paper, [row for row in rows if row["problem"].startswith(f"{paper}.")]


def heading(problem: str) -> str:
    """The heading of a problem's section, which leads to its page."""
    return f"### [{problem}](../problems/{problem.replace('.', '/')}.md)\n"


# --- gaps of many instances ---------------------------------------------------------------------


def summarized(answers: Sequence[Mapping[str, Any]], by: Sequence[str]) -> list[dict[str, Any]]:
    """One row for each group of answers of heuristics.

    Parameters
    ----------
    answers : sequence of mapping
        ``status``, ``proven`` (whether the optimum of the instance is) and, of feasible ones, ``gap_low`` and
        ``gap_high``, where None stands for a gap that has no end.
    by : sequence of str
        Entries that tell the groups.

    Returns
    -------
    list of dict
        Those entries, ``instances``, ``plan``, ``proven``, ``optimal``, ``infinite``, and the low and high ends of
        ``mean``, ``worst`` and ``within`` (a share of the instances); NaN where there is no plan.
    """
    rows = []
    for key in dict.fromkeys(tuple(answer[name] for name in by) for answer in answers):
        mine = [answer for answer in answers if tuple(answer[name] for name in by) == key]
        found = [answer for answer in mine if answer["status"] == "feasible"]
        low, high = (np.array([_endless(one[f"gap_{end}"]) for one in found], float) for end in ("low", "high"))
        finite = np.isfinite(high)
        row: dict[str, Any] = dict(zip(by, key, strict=True))
        row["instances"], row["plan"] = len(mine), len(found)
        row["proven"] = sum(bool(one["proven"]) for one in found)
        row["optimal"] = int((high == 0).sum())
        row["infinite"] = int((~finite).sum())
        for end, gaps in (("low", low), ("high", high)):
            row[f"mean_{end}"] = float(gaps[finite].mean()) if finite.any() else math.nan
            row[f"worst_{end}"] = float(gaps.max()) if len(gaps) else math.nan
        # A gap is small for certain when its greatest is.
        row["within_low"], row["within_high"] = (float((gaps <= NEAR).sum()) / len(mine) for gaps in (high, low))
        rows.append(row)
    return rows


def _endless(gap: float | None) -> float:
    return math.inf if gap is None else gap


def gaps_shown(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Iterator[str]:
    """Summarized gaps, a section and a table for each problem; ``names`` are the entries that tell its rows."""
    for problem in dict.fromkeys(row["problem"] for row in rows):
        yield heading(problem)
        yield _gaps([row for row in rows if row["problem"] == problem], names)


def _gaps(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    columns = [*names, "instances", "plan", "proven", "optimal", "within 1%", "mean gap", "worst gap", "∞"]
    return table(
        columns,
        (
            (
                *(f"`{row[name]}`" if isinstance(row[name], str) else row[name] for name in names),
                *(row[name] for name in ("instances", "plan", "proven", "optimal")),
                _share(row["within_low"], row["within_high"]),
                gap_range(row["mean_low"], row["mean_high"]),
                gap_range(row["worst_low"], row["worst_high"]),
                row["infinite"],
            )
            for row in rows
        ),
    )


def _share(low: float, high: float) -> str:
    return f"{low:.0%}" if low == high else f"{low:.0%} to {high:.0%}"


def gaps_drawn(answers: Sequence[Mapping[str, Any]], title: str) -> str:
    """Gaps of the heuristics of several problems, where the optimum is proven: median, middle half, worst, and ∞."""
    from matplotlib.figure import Figure

    proven = [one for one in answers if one["proven"] and one["status"] == "feasible"]
    problems = list(dict.fromkeys(one["problem"] for one in proven))
    lines = [[one["heuristic"] for one in proven if one["problem"] == problem] for problem in problems]
    heights = [len(set(names)) + 1.3 for names in lines]
    with own_style({"font.size": 8, "axes.spines.top": False, "axes.spines.right": False}, salt=title):
        figure = Figure(figsize=(7.2, 0.5 + 0.19 * sum(heights)), layout="constrained")
        panels = figure.subplots(len(problems), 1, squeeze=False, sharex=True, height_ratios=heights)[:, 0]
        for axes, problem in zip(panels, problems, strict=True):
            _problem_drawn(axes, [one for one in proven if one["problem"] == problem])
            axes.set_title(problem, loc="left", fontsize=8, fontweight="bold")
        panels[-1].set_xlabel(
            "gap, %: median (dot), middle half (bar), least to worst (line; ∞ where some are infinite)"
        )
        return as_svg(figure)


def _problem_drawn(axes: Axes, answers: Sequence[Mapping[str, Any]]) -> None:
    names = list(dict.fromkeys(one["heuristic"] for one in answers))
    axes.set_xscale("symlog", linthresh=1, linscale=0.5)
    for at, name in enumerate(names):
        gaps = 100 * np.array([_endless(one["gap_high"]) for one in answers if one["heuristic"] == name])
        if np.isinf(gaps).any():
            axes.text(1.01, at, "∞", transform=axes.get_yaxis_transform(), va="center")
        gaps = gaps[np.isfinite(gaps)]
        if len(gaps):
            first, median, third = np.quantile(gaps, [0.25, 0.5, 0.75])
            axes.plot([gaps.min(), gaps.max()], [at, at], color="#888888", linewidth=0.8)
            axes.plot([first, third], [at, at], color="#0072B2", linewidth=4, solid_capstyle="butt")
            axes.plot(median, at, "o", color="black", markersize=3.5, clip_on=False)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.set_xticks([0, 1, 10, 100, 1000], ["0", "1", "10", "100", "1000"])
    axes.grid(axis="x", alpha=0.3)
