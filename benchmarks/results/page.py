"""What pages of results share: where they were measured, gaps of many instances, tables as CSV, pictures.

The pages themselves are the templates beside this module.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import PAPERS, by_paper
from benchmarks.results.kept import Asked, Kept
from validation.pages.drawing import as_svg, own_style
from validation.pages.render import render

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["TEMPLATES", "Page", "Part", "gaps_drawn", "made", "panels", "stamp", "summarized"]

TEMPLATES = Path(__file__).resolve().parent
NEAR = 0.01
"""Gap up to which a plan counts as close to the optimum."""


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


Rows = Sequence[Mapping[str, Any]]


def made(
    name: str, kept: Iterable[Kept], rows: Rows = (), draw: Callable[[str, str], str] | None = None, **shown: Any
) -> Page:
    """Make a page of its template.

    Parameters
    ----------
    name : str
        Of the part.
    kept : iterable of Kept
        What was measured.
    rows : sequence of mapping, optional
        The page's table, which becomes a CSV beside it.
    draw : callable, optional
        From the name of a paper that the rows are about, and of a file, to that paper's picture.
    **shown
        What else the template shows.
    """
    files = {f"{name}.csv": _as_csv(rows)} if rows else {}
    problems: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows if draw else ():
        problems.setdefault(row["problem"], []).append(row)
    papers = by_paper(problems)
    files |= {file: draw(paper, file) for paper in papers for file in [f"{name}-{paper}.svg"] if draw}
    text = render(
        TEMPLATES / f"{name}.md.j2",
        stamp=stamp(kept, f"python -m benchmarks.results --only {name}"),
        papers=papers,
        PAPERS=PAPERS,
        **shown,
    )
    return Page(text, files)


def stamp(measured: Iterable[Kept], command: str) -> str:
    """Return where and when a page was measured, how busy the machine was, and by which command."""
    all_ = [one.where for one in measured]
    first, loads = all_[0], [load for one in all_ for load in one["load"]]
    dates = sorted({str(one["started"])[:10] for one in all_})
    return render(
        TEMPLATES / "stamp.md.j2",
        command=command,
        dates=dict.fromkeys((dates[0], dates[-1])),
        commits=dict.fromkeys(_short(one["commit"]) for one in all_),
        loads=dict.fromkeys((f"{min(loads):g}", f"{max(loads):g}")),
        busy=max(loads) > first["machine"]["cores"] + 1,
        **{one: first[one] for one in ("machine", "versions")},
    )


def _short(commit: str | None) -> str:
    """Return a commit as people name it, with the mark of one whose files were changed."""
    name, *changed = (commit or "unknown").split(" ", 1)
    return " ".join([name[:12], *changed])


def _as_csv(rows: Rows) -> str:
    """Return rows as CSV, with all digits; the columns are those of the first."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: "" if value is None else value for name, value in row.items()} for row in rows)
    return out.getvalue()


# --- gaps of many instances ---------------------------------------------------------------------


def summarized(answers: Sequence[Mapping[str, Any]], by: Sequence[str]) -> list[dict[str, Any]]:
    """Return one row for each group of answers of heuristics.

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


def gaps_drawn(answers: Rows, paper: str, title: str) -> str:
    """Draw the gaps of a paper's heuristics, where the optimum is proven: median, middle half, worst, and ∞."""
    lines: dict[str, dict[str, list[float]]] = {}
    for one in answers:
        if one["problem"].startswith(f"{paper}.") and one["proven"] and one["status"] == "feasible":
            mine = lines.setdefault(one["problem"], {}).setdefault(one["heuristic"], [])
            mine.append(100 * _endless(one["gap_high"]))

    def draw(axes: Axes, at: int, name: str, values: Sequence[float]) -> None:
        gaps = np.array(values)
        if np.isinf(gaps).any():
            axes.text(1.01, at, "∞", transform=axes.get_yaxis_transform(), va="center")
        gaps = gaps[np.isfinite(gaps)]
        if len(gaps):
            first, median, third = np.quantile(gaps, [0.25, 0.5, 0.75])
            axes.plot([gaps.min(), gaps.max()], [at, at], color="#888888", linewidth=0.8)
            axes.plot([first, third], [at, at], color="#0072B2", linewidth=4, solid_capstyle="butt")
            axes.plot(median, at, "o", color="black", markersize=3.5, clip_on=False)

    def finish(axes: Axes) -> None:
        axes.set_xlim(left=0)
        axes.set_xticks([0, 1, 10, 100, 1000], ["0", "1", "10", "100", "1000"])

    label = "gap, %: median (dot), middle half (bar), least to worst (line; ∞ where some are infinite)"
    return panels(title, lines, label, draw, finish, {"value": "symlog", "linthresh": 1, "linscale": 0.5})


def panels(
    title: str,
    lines: Mapping[str, Mapping[str, Sequence[float]]],
    label: str,
    draw: Callable[[Axes, int, str, Sequence[float]], None],
    finish: Callable[[Axes], None],
    scale: Mapping[str, Any],
) -> str:
    """Draw a panel for each problem, with a line for each of its algorithms.

    Parameters
    ----------
    title : str
        Of the picture; makes its text its own.
    lines : mapping
        By problem and algorithm, numbers.
    label : str
        Of the axis below.
    draw : callable
        Draws the numbers of an algorithm at a height.
    finish : callable
        Sets what of the axis goes by all of them.
    scale : mapping
        Of the axis.
    """
    from matplotlib.figure import Figure

    heights = [len(algorithms) + 1.3 for algorithms in lines.values()]
    with own_style({"font.size": 8, "axes.spines.top": False, "axes.spines.right": False}, salt=title):
        figure = Figure(figsize=(7.2, 0.5 + 0.19 * sum(heights)), layout="constrained")
        rows = figure.subplots(len(lines), 1, squeeze=False, sharex=True, height_ratios=heights)[:, 0]
        for axes, (problem, algorithms) in zip(rows, lines.items(), strict=True):
            axes.set_xscale(**scale)
            for at, (name, numbers) in enumerate(algorithms.items()):
                draw(axes, at, name, numbers)
            axes.set_yticks(range(len(algorithms)), list(algorithms))
            axes.set_ylim(len(algorithms) - 0.4, -0.6)
            finish(axes)
            axes.set_title(problem, loc="left", fontsize=8, fontweight="bold")
            axes.grid(axis="x", alpha=0.3)
        rows[-1].set_xlabel(label)
        return as_svg(figure)
