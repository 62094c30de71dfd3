"""The plots of a study: each draws the rows of one problem into given axes, and says in words what stands where."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol
from xml.sax.saxutils import escape

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from validation import catalogue
from validation.catalogue import EXACT
from validation.formatting import duration, percent, printable
from validation.pages.drawing import as_svg, label, own_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "COLOURS",
    "INK",
    "KINDS",
    "MARKERS",
    "Value",
    "drawn",
    "looks",
    "plot_gaps",
    "plot_profile",
    "plot_sizes",
    "plot_times",
    "problem_pictures",
    "steps",
    "thinned",
]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#6F4E00")
"""Okabe and Ito's palette and a brown, which the colour-blind can tell apart; the exact side has that of the words."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""Marks of the algorithms, in the order of their colours."""
DASHES: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (8, 2)), (0, (1, 3)), (0, (6, 2, 1, 2, 1, 2)), (0, (3, 6)))
"""Lines of the values of a swept parameter, of which a heuristic has a curve each."""

MOST_POINTS = 200
"""Of a curve: steps of half a per cent of its instances, where it has more."""
MOST_TOLD = 30
"""Values of a curve that a page tells in words."""
SQUASHED = 5
"""A gap axis is logarithmic where the worst gap is more than so many times what the other curves come to."""
MOST_INSIDE = 6
"""Curves up to which there is room for their names between them."""
COLUMN = 4.0
"""Inches below which a figure is a column of a paper, where names of more than two curves stand above the axes."""
_MOST_TICKS = 12

INK = "#010203"
"""Stands for the colour of the words, which a page chooses: light or dark."""

STYLE: dict[Any, Any] = {
    "axes.edgecolor": INK,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.facecolor": "none",
    "font.size": 9.5,
    "grid.alpha": 0.15,
    "grid.color": INK,
    "legend.facecolor": "none",
    "legend.labelcolor": INK,
    # Words that stay words are searched, read out, and take less room than their outlines.
    "svg.fonttype": "none",
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


class Value(NamedTuple):
    """A place in a plot, in the units of its axes, and what stands there."""

    x: float
    y: float
    words: str


class Plot(Protocol):
    """A kind of plot."""

    def __call__(
        self, axes: Axes, rows: pd.DataFrame, *, by: Sequence[str] = (), legend: bool = True
    ) -> list[Value]: ...


# --- the kinds -----------------------------------------------------------------------------------


def plot_gaps(axes: Axes, rows: pd.DataFrame, *, by: Sequence[str] = (), legend: bool = True) -> list[Value]:
    """Draw the distribution of gaps: the share of instances on which a heuristic's gap is at most x.

    Where optimality was not proven, the greatest gap that the bound allows counts.  Instances without a
    feasible plan count too, as what is never reached.

    Parameters
    ----------
    axes : matplotlib Axes
    rows : DataFrame
        Rows of one problem, as :attr:`Study.rows` has them.
    by : sequence of str, optional
        Columns of swept parameters: each of their values has a curve of its own.
    legend : bool, optional
        Whether the axes name the curves.

    Returns
    -------
    list of Value
        What stands where, in words.
    """
    told, worst = [], {}
    curves = list(_curves(rows[rows["algorithm"] != EXACT], by))
    for one in curves:
        found = 100 * one.rows["gap_high"].to_numpy(float)
        gaps, share = steps(found[np.isfinite(found)], len(one.rows))
        axes.step(
            np.concatenate([[0], gaps, [1e9]]),
            np.concatenate([[0], share, share[-1:] if len(share) else [0]]),
            where="post",
            color=one.look["color"],
            linestyle=one.dashes,
            linewidth=1.8,
            label=one.name,
        )
        if len(gaps):
            worst[one.name] = float(gaps[-1])
        for gap, part in thinned(gaps, share):
            told.append(
                Value(
                    gap,
                    part,
                    f"{one.name}: a gap of at most {percent(gap / 100)} on {percent(part / 100)} of the instances",
                )
            )
    largest = max(worst.values(), default=0.0) or 1.0
    axes.set_xlim(-0.02 * largest, 1.05 * largest)
    linear = _linear_to(list(worst.values()))
    if linear is not None:
        _logarithmic(axes, "x", linear, largest)
        axes.set_xlim(-0.1 * linear, 1.3 * largest)
    axes.set_ylim(0, 104)
    axes.set_xlabel(f"gap x, %{_said(linear)}")
    axes.set_ylabel("share of instances with gap ≤ x, %")
    _named(axes, curves if legend else [], loc="lower right")
    return told


def plot_sizes(
    axes: Axes, rows: pd.DataFrame, *, by: Sequence[str] = (), legend: bool = True, along: str = "size"
) -> list[Value]:
    """Draw gaps against size: the mean (line) up to the worst (thin bar).

    Where optimality was not proven, the greatest gap that the bound allows counts.  Nothing is drawn where a
    gap is infinite, as one to an optimum of 0 is.

    Parameters
    ----------
    axes, rows, by, legend
        As for :func:`plot_gaps`.
    along : str, optional
        Column of the horizontal axis: "size", or a swept parameter.

    Returns
    -------
    list of Value
        What stands where, in words.
    """
    name = _size_of(rows) if along == "size" else along
    heuristics = rows[rows["algorithm"] != EXACT]
    places = sorted(heuristics[along].dropna().unique())
    curves = list(_curves(heuristics, [other for other in by if other != along]))
    told, worsts = [], []
    for position, one in enumerate(curves):
        grouped = one.rows.groupby(along)["gap_high"]
        # The mean of the others would be a better heuristic's.
        mean, worst = 100 * grouped.mean(), 100 * grouped.max()
        mean, worst = mean[np.isfinite(mean)], worst[np.isfinite(mean)]
        # Side by side, so that the bars of different heuristics do not hide each other.
        at = np.array([places.index(place) for place in mean.index]) + 0.5 * ((position + 0.5) / len(curves) - 0.5)
        axes.errorbar(
            at,
            mean,
            yerr=[np.zeros(len(mean)), worst - mean],
            linewidth=1.4,
            linestyle=one.dashes,
            elinewidth=0.8,
            capsize=2,
            markersize=4.5,
            label=one.name,
            **one.look,
        )
        worsts += [float(worst.max())] * bool(len(worst))
        for x, place, of_mean, of_worst in zip(at, mean.index, mean, worst, strict=True):
            said = f"{one.name}, {name} {place}: mean gap {percent(of_mean / 100)}, worst {percent(of_worst / 100)}"
            told.append(Value(float(x), float(of_mean), said))
    axes.set_xticks(_every(range(len(places))), [label(str(place)) for place in _every(places)])
    linear = _linear_to(worsts)
    if linear is not None:
        _logarithmic(axes, "y", linear, max(worsts))
    axes.set_ylim(bottom=0)
    axes.set_xlabel(label(name))
    axes.set_ylabel(f"gap, mean up to worst, %{_said(linear)}")
    _named(axes, curves if legend else [])
    return told


def plot_times(axes: Axes, rows: pd.DataFrame, *, by: Sequence[str] = (), legend: bool = True) -> list[Value]:
    """Draw the median time of each side against size; the exact side has the colour of the words.

    Parameters
    ----------
    axes, rows, by, legend
        As for :func:`plot_gaps`.

    Returns
    -------
    list of Value
        What stands where, in words.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    told, name = [], _size_of(rows)
    curves = list(_curves(rows[rows["status"] != "failed"], by))
    for one in curves:
        median = one.rows.groupby("size")["seconds"].median()
        axes.plot(
            median.index,
            median,
            linewidth=1.4,
            linestyle=one.dashes,
            markersize=4.5,
            label=one.name,
            **one.look,
        )
        for size, time in median.items():
            told.append(Value(float(size), time, f"{one.name}, {name} {size}: median time {duration(time)}"))  # type: ignore[arg-type]
    axes.set_xscale("log")
    axes.set_yscale("log")
    sizes = _every(sorted(rows["size"].unique()))
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: duration(y)))
    least, greatest = axes.get_ylim()
    if greatest < 100 * least:  # There may be a single power of ten among the ticks, or none.
        axes.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
        axes.yaxis.set_minor_formatter(FuncFormatter(lambda y, _: duration(y)))
    axes.set_xlabel(label(name))
    axes.set_ylabel("median time")
    _named(axes, curves if legend else [])
    return told


def plot_profile(axes: Axes, rows: pd.DataFrame, *, by: Sequence[str] = (), legend: bool = True) -> list[Value]:
    """Draw the share of instances that each side answers within a time.

    An answer is a proven optimum (exact) or a feasible plan (heuristics).

    Parameters
    ----------
    axes, rows, by, legend
        As for :func:`plot_gaps`.

    Returns
    -------
    list of Value
        What stands where, in words.
    """
    from matplotlib.ticker import FuncFormatter

    told = []
    curves = list(_curves(rows, by))
    for one in curves:
        exact = one.algorithm == EXACT
        answered = one.rows[one.rows["status"] == ("optimal" if exact else "feasible")]
        seconds, share = steps(answered["seconds"].to_numpy(float), len(one.rows))
        if not len(seconds):
            continue
        axes.step(
            seconds,
            share,
            where="post",
            color=one.look["color"],
            linestyle=one.dashes,
            linewidth=1.8,
            label=one.name,
        )
        what = "proven optimal" if exact else "answered"
        for time, part in thinned(seconds, share):
            told.append(
                Value(time, part, f"{one.name}: {percent(part / 100)} of the instances {what} within {duration(time)}")
            )
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: duration(x)))
    axes.set_ylim(0, 104)
    axes.set_xlabel("time t")
    axes.set_ylabel("share of instances answered within t, %")
    _named(axes, curves if legend else [], loc="lower right")
    return told


KINDS: Mapping[str, Plot] = {"gaps": plot_gaps, "sizes": plot_sizes, "times": plot_times, "profile": plot_profile}
"""Kinds of plots of a study, by name."""


UNPROVEN = "Where optimality was not proven, the greatest gap that the bound allows is drawn."
READINGS = {
    "gaps": (
        "Distribution of gaps",
        f"Higher is better; a curve ends below 100% where plans were infeasible or missing. {UNPROVEN}",
    ),
    "sizes": (
        "Gap against {}",
        f"Mean gap (line) up to the worst (thin bar). {UNPROVEN} Nothing is drawn where a gap is infinite, as one to "
        "an optimum of 0 is.",
    ),
    "times": ("Time against size", "Median time of each side."),
    "profile": ("Time profile", "An answer is a proven optimum (exact) or a feasible plan (heuristics)."),
}
"""Title and one sentence on how to read it of each kind; what stands along the axis of "sizes" has its place."""


def problem_pictures(rows: pd.DataFrame, by: Sequence[str] = ()) -> list[tuple[str, str, str]]:
    """Pictures of one problem's rows: title, one sentence on how to read it, SVG.

    Parameters
    ----------
    rows : DataFrame
    by : sequence of str, optional
        Columns of swept parameters.
    """
    # Words are not drawn, and would be copied with each selection of rows.
    rows = rows[["problem", "algorithm", "size", "status", "seconds", "gap_high", *by]]
    kinds = [("gaps", "size"), ("sizes", "size"), *(("sizes", name) for name in by), ("times", ""), ("profile", "")]
    pictures: list[tuple[str, str, Plot]] = [
        (
            READINGS[kind][0].format(along),
            READINGS[kind][1],
            partial(plot_sizes, along=along) if kind == "sizes" else KINDS[kind],
        )
        for kind, along in kinds
    ]
    return [(title, reading, drawn(partial(draw, rows=rows, by=by))) for title, reading, draw in pictures]


def drawn(draw: Callable[[Axes], Sequence[Value]]) -> str:
    """Draw a plot for a page, as SVG: in the colours of its words, and with a place to point at for each value."""
    with own_style(STYLE, salt="study"):
        from matplotlib.figure import Figure

        figure = Figure(figsize=(5.6, 3.5), layout="constrained")
        axes = figure.add_subplot()
        told = draw(axes)
        svg = as_svg(figure).replace(INK, "currentColor")
        # The axes have found their place only now.
        places = axes.transData.transform(np.array([value[:2] for value in told]).reshape(-1, 2)).tolist()
        height = figure.bbox.height
    points = 72 / figure.dpi
    circles = "".join(
        f'<circle cx="{points * x:.1f}" cy="{points * (height - y):.1f}" r="6">'
        f"<title>{escape(printable(words))}</title></circle>"
        for (x, y), (_, _, words) in zip(places, told, strict=True)
        if np.isfinite((x, y)).all()
    )
    return svg.replace("</svg>", f'<g class="values" fill="none" pointer-events="all">{circles}</g>\n</svg>')


# --- what they share -----------------------------------------------------------------------------


def looks(algorithms: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Colour and marker of each algorithm or decision maker, the same in all pictures; always of the exact side."""
    names = [name for name in dict.fromkeys(algorithms) if name != EXACT]
    found = {
        # Where colours come again they have other markers.
        name: {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[(i + i // len(COLOURS)) % len(MARKERS)]}
        for i, name in enumerate(names)
    }
    return {EXACT: {"color": INK, "marker": "."}, **found}


@dataclass(frozen=True)
class _Curve:
    """Rows that are drawn together."""

    algorithm: str
    swept: str
    look: Mapping[str, Any]
    dashes: Any
    rows: pd.DataFrame

    @property
    def name(self) -> str:
        """The algorithm, and the values of what is swept."""
        return f"{self.algorithm}, {self.swept}" if self.swept else self.algorithm


def _curves(rows: pd.DataFrame, by: Sequence[str]) -> Iterator[_Curve]:
    """Yield the rows of each algorithm, apart for each value of what is swept."""
    look_of = looks(rows["algorithm"])
    turns = {name: (number - 1) // len(COLOURS) for number, name in enumerate(look_of) if name != EXACT}
    dashes: dict[Any, Any] = {}
    key: Any
    for key, group in rows.groupby(["algorithm", *by], sort=False, dropna=False):
        name, *values = key
        said = [f"{parameter}={value}" for parameter, value in zip(by, values, strict=True) if not pd.isna(value)]
        swept = ", ".join(said)
        line = dashes.setdefault(swept, DASHES[len(dashes) % len(DASHES)])
        # Where colours come again and no sweep has the line styles, they tell the curves without markers apart.
        line = line if by else DASHES[turns.get(name, 0) % len(DASHES)]
        yield _Curve(str(name), swept, look_of[str(name)], line, group)


def _size_of(rows: pd.DataFrame) -> str:
    """Name the unit of the problem's sizes, such as num_jobs."""
    entry = catalogue.CATALOGUE.get(rows["problem"].iloc[0])
    return entry.size if entry else "size"


def steps(values: NDArray[Any], of: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Values in order, and the share of ``of`` in per cent that is at most there."""
    values = np.sort(values)
    number = np.arange(1, len(values) + 1)
    if len(values) > MOST_POINTS:
        kept = np.linspace(0, len(values) - 1, MOST_POINTS).round().astype(int)
        values, number = values[kept], number[kept]
    return values, 100 * number / of


def thinned(values: NDArray[Any], share: NDArray[Any]) -> list[tuple[float, float]]:
    """Choose the steps that are told in words: the last of those at one value, and no more than a few."""
    kept = np.flatnonzero(np.diff(values, append=np.inf) > 0)
    if len(kept) > MOST_TOLD:
        kept = kept[np.linspace(0, len(kept) - 1, MOST_TOLD).round().astype(int)]
    return list(zip(values[kept].tolist(), share[kept].tolist(), strict=True))


def _linear_to(worst: Sequence[float]) -> float | None:
    """Up to where an axis of gaps is linear, in per cent; None where it is so throughout.

    It is not where one curve would squash the others: its worst gap is more than five times the median
    of theirs.  Curves without any gap stay where they are in either case, and do not count.
    """
    *others, largest = sorted(gap for gap in worst if gap > 0) or [0.0]
    if not others or largest <= SQUASHED * float(np.median(others)):
        return None
    middle = float(np.median(others))
    power = 10.0 ** np.floor(np.log10(middle))
    return float(power * next(step for step in (1, 2, 5, 10) if step * power >= middle * (1 - 1e-9)))


def _logarithmic(axes: Axes, which: Literal["x", "y"], linear: float, largest: float) -> None:
    from matplotlib.ticker import FuncFormatter, NullLocator

    axis, scale = (axes.xaxis, axes.set_xscale) if which == "x" else (axes.yaxis, axes.set_yscale)
    scale("symlog", linthresh=linear)
    power = 10.0 ** np.floor(np.log10(linear))
    beyond = [step * power * 10.0**decade for decade in range(7) for step in (1, 2, 5)]
    beyond = [tick for tick in beyond if linear < tick <= 1.01 * largest]
    axis.set_ticks([0, linear / 2, linear, *beyond[:: 1 + len(beyond) // 6]])
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))


def _said(linear: float | None) -> str:
    return "" if linear is None else f"\n(linear up to {linear:g}, then logarithmic)"


def _named(axes: Axes, curves: Sequence[_Curve], loc: Literal["best", "lower right"] = "best") -> None:
    """Name what is drawn: a colour is a heuristic, a line style a value of what is swept."""
    from matplotlib.lines import Line2D

    # By hand: Matplotlib's own list leaves out names that begin with an underscore.
    artists: list[Any] = [*axes.get_lines(), *axes.containers]
    drawn = {one.get_label(): one for one in artists}
    shown: dict[str, Any] = {}
    for one in curves:
        if one.name in drawn:
            shown.setdefault(one.algorithm, drawn[one.name])
    for one in curves:
        if one.swept:
            shown.setdefault(one.swept, Line2D([], [], color="#7F7F7F", linestyle=one.dashes))
    names = [label(name) for name in shown]
    figure = axes.get_figure(root=True)
    if len(shown) > 2 and figure is not None and figure.get_figwidth() < COLUMN:
        place: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.4, 1.0), "ncols": 2}
        axes.legend(shown.values(), names, fontsize=6.7, frameon=False, columnspacing=1.0, **place)
    elif len(shown) > MOST_INSIDE:
        axes.legend(shown.values(), names, fontsize="x-small", frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    elif shown:
        axes.legend(shown.values(), names, fontsize="small", framealpha=0.7, loc=loc)


def _every(sizes: Sequence[Any]) -> Sequence[Any]:
    """Choose as many of them as there is room for the words of."""
    return sizes[:: -(-len(sizes) // _MOST_TICKS) or 1]
