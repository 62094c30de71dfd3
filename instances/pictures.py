"""Pieces that the problems' pictures are made of: each draws into given Matplotlib axes.

Matplotlib is imported by whoever makes the axes (``instance.plot()``), never with this module, so
that the data of a problem needs NumPy alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from instances.schema import Array, Ragged, declarations

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis


__all__ = [
    "COLOURS",
    "FADED",
    "HATCHED",
    "MOST_WRITTEN",
    "OUTLINE",
    "Look",
    "colour",
    "completions",
    "curves",
    "from_zero",
    "headline",
    "jobs",
    "legend",
    "matrix",
    "number_axis",
    "outline",
    "over_time",
    "servers",
    "side_by_side",
    "stacked",
    "table",
    "time_fractions",
    "whole_numbers",
]

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C6D31", "#7F7F7F")
"""Okabe and Ito's palette, which the colour-blind can tell apart, and two more."""
OUTLINE = "#57606a"
"""Colour of what there is, such as the GPUs of a server."""
Look = Mapping[str, Any]
"""Properties of a Matplotlib patch."""
HATCHED: Look = {"facecolor": "white", "edgecolor": OUTLINE, "hatch": "////"}
"""The look in a legend of what :func:`stacked` hatches."""
FADED: Look = {"facecolor": OUTLINE, "alpha": 0.35}
"""The look in a legend of what :func:`stacked` fades."""
MOST_WRITTEN = 200
"""Entries up to which a matrix shows its numbers, if there is room for its rows and columns."""
MOST_NUMBERED = 24
"""Jobs, servers, ... up to which an axis has a tick for each."""
MOST_CROWDED = 40
"""Columns, and parts of a column, up to which each has a border."""
MOST_IN_LEGEND = 12
"""Jobs up to which a legend names them."""
_SMALL = 8


def colour(number: int) -> str:
    """Return the colour of a job, the same in every picture; 24 can be told apart."""
    base, turn = COLOURS[number % len(COLOURS)], number // len(COLOURS) % 3
    # Every second turn of the palette is lighter, every third darker.
    towards, part = ((0, 0.0), (255, 0.5), (0, 0.4))[turn]
    return "#" + "".join(f"{round(c + part * (towards - c)):02x}" for c in bytes.fromhex(base[1:]))


def headline(instance: Any, plan: Any) -> str:
    """Title of a picture: the problem, and the plan's value or the first rule that it breaks."""
    if plan is None:
        return str(instance.problem)
    broken = instance.violations(plan)
    if broken:
        more = f" and {len(broken) - 1} more" if len(broken) > 1 else ""
        return f"{instance.problem}\ninfeasible: {broken[0]}{more}"
    value = instance.objective(plan)
    return f"{instance.problem}\n{instance.measure}: {'∞' if math.isinf(value) else f'{value:.6g}'}"


def jobs(numbers: Iterable[int]) -> str:
    """Jobs in words, such as "job 3", "jobs 0, 2 and 5", or "12 jobs" where there are too many to name."""
    named = [str(int(number)) for number in numbers]
    if len(named) == 1:
        return f"job {named[0]}"
    return f"jobs {', '.join(named[:-1])} and {named[-1]}" if len(named) <= 6 else f"{len(named)} jobs"


def number_axis(axis: Axis, count: int, names: Sequence[str] | None = None) -> None:
    """Ticks for jobs, servers, ... 0 to ``count - 1``: each with its number or name if they are few."""
    if count <= MOST_NUMBERED:
        axis.set_ticks(range(count), labels=list(map(str, range(count))) if names is None else list(names))
    else:
        whole_numbers(axis)


def whole_numbers(*axes: Axis) -> None:
    """Ticks at whole numbers only, where parts of a slot or of a GPU mean nothing."""
    from matplotlib.ticker import MaxNLocator

    for axis in axes:
        axis.set_major_locator(MaxNLocator(integer=True))


def from_zero(axes: Axes, *, x: bool = False, y: bool = False) -> None:
    """Let an axis begin at 0; where it ends follows from all that is drawn, on axes that share it too."""
    axes.update_datalim([(0, 0)], updatex=x, updatey=y)
    for artist in (*axes.lines, *axes.patches):
        if x:
            artist.sticky_edges.x.append(0)
        if y:
            artist.sticky_edges.y.append(0)
    axes.autoscale_view()


def legend(axes: Axes, names: Sequence[str], marks: Mapping[str, Look] | None = None) -> None:
    """Write beside the axes which colour is which job, if they are at most 12, and what marks mean.

    Parameters
    ----------
    axes : matplotlib Axes
    names : sequence of str
        Names of the jobs; the first has the first colour.
    marks : mapping, optional
        Meaning to look, such as ``{"preempted": HATCHED}``.
    """
    from matplotlib.patches import Patch

    named = names if len(names) <= MOST_IN_LEGEND else ()
    handles = [Patch(facecolor=colour(number), label=name) for number, name in enumerate(named)]
    handles += [Patch(label=meaning, **look) for meaning, look in (marks or {}).items()]
    if handles:
        axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=_SMALL)


def matrix(
    axes: Axes,
    values: ArrayLike,
    *,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    scale: ArrayLike | None = None,
) -> None:
    """Draw numbers as a table, darker where greater.

    Parameters
    ----------
    axes : matplotlib Axes
    values : (r, c) float or str
    rows, columns : sequence of str, optional
        What they stand for; their numbers by default.
    scale : (c,) or (r, 1) float, optional
        What counts as dark in each column or row; the greatest entry of all by default.
    """
    array = np.atleast_2d(np.asarray(values))
    words = array.dtype.kind in "UO"
    shown: NDArray[Any] = np.zeros(array.shape) if words else array.astype(float)
    finite = np.where(np.isfinite(shown), np.abs(shown), 0.0)
    dark = np.full(array.shape[1], finite.max(initial=0.0)) if scale is None else np.asarray(scale, float)
    if array.size:
        light = finite / np.where(dark > 0, dark, 1.0)
        axes.imshow(light, cmap="Blues", vmin=0, vmax=1.6, aspect="auto", interpolation="nearest")
    if array.size <= MOST_WRITTEN and len(array) <= MOST_NUMBERED:
        for (i, j), entry in np.ndenumerate(array):
            text = str(entry) if words else "∞" if np.isposinf(shown[i, j]) else f"{shown[i, j]:.4g}"
            axes.text(j, i, text, ha="center", va="center", fontsize=_SMALL if array.shape[1] <= 8 else 6)
    for axis, names, count in ((axes.xaxis, columns, array.shape[1]), (axes.yaxis, rows, array.shape[0])):
        number_axis(axis, count, names)
    axes.tick_params(length=0)


def stacked(
    axes: Axes,
    heights: ArrayLike,
    *,
    at: ArrayLike | None = None,
    width: ArrayLike = 0.8,
    base: ArrayLike = 0.0,
    colours: Sequence[str] | None = None,
    edges: Sequence[str] | None = None,
    hatched: ArrayLike | None = None,
    faded: ArrayLike | None = None,
    texts: Sequence[str] | None = None,
) -> None:
    """Draw columns, each the stack of what belongs to it; negative amounts hang below.

    Parameters
    ----------
    axes : matplotlib Axes
    heights : (n, c) float
        What each of n jobs has in each of c columns.
    at, width, base : (c,) float, optional
        Middle, width and foot of each column; 0 to c - 1, 0.8 and 0 by default.
    colours, edges : sequence of n str, optional
        Colour of each job and of its border and hatching; its own and white by default.
    hatched, faded : (n, c) bool, optional
        What to mark.
    texts : sequence of n str, optional
        What to write where there is room; the job's number by default.
    """
    amounts = np.asarray(heights, float)
    middles, widths, foot = (
        np.broadcast_to(np.asarray(given, float), amounts.shape[1])
        for given in (np.arange(amounts.shape[1]) if at is None else at, width, base)
    )
    marked = np.zeros(amounts.shape, bool) if hatched is None else np.asarray(hatched, bool)
    pale = np.zeros(amounts.shape, bool) if faded is None else np.asarray(faded, bool)
    top, low = foot.copy(), foot.copy()
    # Borders would hide parts that are thinner than they.
    crowded = amounts.shape[1] > MOST_CROWDED or (amounts != 0).sum(axis=0).max(initial=0) > MOST_CROWDED
    places: list[tuple[int, int, float]] = []
    for row, amount in enumerate(amounts):
        columns = np.flatnonzero(amount)
        if not columns.size:
            continue
        start = np.where(amount > 0, top, low)
        drawn = axes.bar(
            middles[columns],
            amount[columns],
            width=widths[columns],
            bottom=start[columns],
            color=colour(row) if colours is None else colours[row],
            edgecolor="white" if edges is None else edges[row],
            linewidth=0.0 if crowded else 0.6,
        )
        for bar, column in zip(drawn, columns.tolist(), strict=True):
            if marked[row, column]:
                bar.set_hatch("////")
            if pale[row, column]:
                bar.set_alpha(FADED["alpha"])
            places.append((row, column, float(start[column] + amount[column] / 2)))
        top += np.maximum(amount, 0)
        low += np.minimum(amount, 0)
    _write_in(axes, amounts, middles, widths, places, texts, colours, pale)


def _write_in(
    axes: Axes,
    amounts: NDArray[Any],
    middles: NDArray[Any],
    widths: NDArray[Any],
    places: Sequence[tuple[int, int, float]],
    texts: Sequence[str] | None,
    colours: Sequence[str] | None,
    pale: NDArray[np.bool_],
) -> None:
    """Write each job's text into those of its parts that are large enough for it."""
    room = axes.dataLim
    for row, column, middle in places:
        text = str(row) if texts is None else texts[row]
        wide = widths[column] >= (0.016 * len(text) + 0.005) * room.width
        if wide and abs(amounts[row, column]) >= 0.04 * room.height:
            face = colour(row) if colours is None else colours[row]
            red, green, blue = bytes.fromhex(face[1:])
            dark = 0.299 * red + 0.587 * green + 0.114 * blue < 140 and not pale[row, column]
            axes.text(
                middles[column],
                middle,
                text,
                ha="center",
                va="center",
                fontsize=7,
                color="white" if dark else "black",
                clip_on=True,
                # Hatching would make the text hard to read.
                bbox={"facecolor": "white" if pale[row, column] else face, "edgecolor": "none", "pad": 0.6},
            )


def servers(
    axes: Axes,
    held: ArrayLike,
    *,
    capacity: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    **looks: Any,
) -> None:
    """Draw a column for each server, filled with what the jobs on it hold, its capacity outlined.

    Parameters
    ----------
    axes : matplotlib Axes
    held : (n, s) float
        What each job holds of each server, such as GPUs.
    capacity : (s,) float, optional
    names : sequence of s str, optional
        Names of the servers; their numbers by default.
    **looks
        Looks of the parts, as for :func:`stacked`.
    """
    amounts = np.asarray(held, float)
    count = amounts.shape[1]
    if capacity is not None:
        outline(axes, np.arange(count), np.broadcast_to(np.asarray(capacity, float), count))
    stacked(axes, amounts, **looks)
    number_axis(axes.xaxis, count, names)
    axes.set_xlim(-0.6, count - 0.4)


def outline(axes: Axes, at: ArrayLike, capacity: ArrayLike) -> None:
    """Draw empty columns as high as what there is, over what :func:`stacked` draws."""
    many = np.size(at) > MOST_CROWDED
    axes.bar(at, capacity, width=0.8, fill=False, edgecolor=OUTLINE, linewidth=0.4 if many else 1.1, zorder=3)


def time_fractions(
    axes: Axes,
    fractions: ArrayLike,
    *,
    scale_factors: ArrayLike,
    pairs: ArrayLike,
    pools: ArrayLike,
    num_workers: ArrayLike,
    texts: Sequence[str] | None = None,
    colours: Sequence[str] | None = None,
) -> None:
    """Draw a column for each worker type, in which jobs and pairs stand with the workers that they keep busy.

    That is the fraction of time of each times its workers.  What the type's pool has is outlined.
    Types of one pool stand one above the other, since they share its workers.

    Parameters
    ----------
    axes : matplotlib Axes
    fractions : (n+q, k) float
        Time of each job, then of each pair, on each type.
    scale_factors : (n+q,) int
        Workers that each holds at once.
    pairs : (q, 2) int
        Jobs of each pair; a pair has the colours of both.
    pools : (k,) int
        Pool of each type.
    num_workers : (p,) int
        Workers of each pool.
    texts : sequence of n+q str, optional
        What to write into the parts; jobs and their time by default.
    colours : sequence of n str, optional
        Colours of the jobs; each its own by default.
    """
    of_type, partners = np.asarray(pools), np.asarray(pairs, int).reshape(-1, 2)
    x = np.asarray(fractions, float).reshape(-1, len(of_type))
    busy = x * np.asarray(scale_factors)[:, None]
    alone = len(x) - len(partners)
    mine = [colour(job) for job in range(alone)] if colours is None else list(colours)
    members = [(job, job) for job in range(alone)] + [(int(a), int(b)) for a, b in partners]
    names = [str(a) if a == b else f"{a}+{b}" for a, b in members]
    outline(axes, np.arange(len(of_type)), np.asarray(num_workers)[of_type])
    foot = np.zeros(len(np.asarray(num_workers)))
    for kind, pool in enumerate(of_type.tolist()):
        stacked(
            axes,
            busy[:, [kind]],
            at=[kind],
            base=foot[[pool]],
            colours=[mine[a] for a, _ in members],
            edges=["white" if a == b else mine[b] for a, b in members],
            hatched=[[a != b] for a, b in members],
            texts=texts
            or [f"{name}: {100 * time:.3g}%" for name, time in zip(names, x[:, kind].tolist(), strict=True)],
        )
        foot[pool] += busy[:, kind].sum()
    shared = len(set(of_type.tolist())) < len(of_type)
    names = [f"{kind}\npool {pool}" if shared else str(kind) for kind, pool in enumerate(of_type.tolist())]
    number_axis(axes.xaxis, len(of_type), names)
    axes.set_xlim(-0.6, len(of_type) - 0.4)
    axes.set_xlabel("worker type")
    axes.set_ylabel("workers kept busy")


def over_time(axes: Axes, times: ArrayLike, shares: ArrayLike, *, capacity: float | None = None) -> None:
    """Draw what each job holds over time, stacked, one colour a job.

    Parameters
    ----------
    axes : matplotlib Axes
    times : (t+1,) float
        Ends of the spans of time.
    shares : (t, n) float
        What each job holds in each span, such as GPUs.
    capacity : float, optional
        What there is of it, drawn as a line.
    """
    ends, held = np.asarray(times, float), np.asarray(shares, float)
    # Spans in which nothing changes are drawn as one.
    changes = np.append(True, (np.diff(held, axis=0) != 0).any(axis=1))
    ends, held = np.append(ends[:-1][changes], ends[-1]), held[changes]
    if capacity is not None:
        axes.axhline(capacity, color=OUTLINE, linewidth=1.0, linestyle="--")
        axes.update_datalim([(ends[0], 0), (ends[-1], 1.05 * capacity)])
    stacked(axes, held.T, at=(ends[:-1] + ends[1:]) / 2, width=np.diff(ends))
    from_zero(axes, x=True, y=bool((held >= 0).all()))


def completions(axes: Axes, times: ArrayLike) -> None:
    """Draw a dotted line at each job's moment, in its colour; none where that is infinite."""
    for job, moment in enumerate(np.asarray(times, float).tolist()):
        if math.isfinite(moment):
            # On white and on other jobs' colours alike.
            axes.axvline(moment, color="white", linewidth=2.6)
            axes.axvline(moment, color=colour(job), linestyle=":", linewidth=1.8)


def curves(axes: Axes, xs: Sequence[ArrayLike], ys: Iterable[ArrayLike], *, linestyle: str = "-") -> None:
    """Draw a curve for each job, thinner where there are many."""
    few = len(xs) <= MOST_IN_LEGEND
    for job, (x, y) in enumerate(zip(xs, ys, strict=True)):
        axes.plot(
            x,
            y,
            color=colour(job),
            linestyle=linestyle,
            linewidth=1.6 if few else 1.1,
            marker="o" if few and np.size(x) <= MOST_NUMBERED else "",
            markersize=3,
        )


def side_by_side(axes: Axes, values: Mapping[str, ArrayLike]) -> None:
    """Draw bars for each job, one for each of several quantities, which a legend names.

    Parameters
    ----------
    axes : matplotlib Axes
    values : mapping
        Name of a quantity to its (n,) values; none is drawn where one is not finite.
    """
    count = max(len(np.asarray(value)) for value in values.values())
    width = 0.84 / len(values)
    for position, value in enumerate(values.values()):
        known = np.asarray(value, float)
        left = np.arange(count) + width * (position - (len(values) - 1) / 2)
        axes.bar(left, np.where(np.isfinite(known), known, 0.0), width=width, color=colour(position))
    legend(axes, list(values))
    number_axis(axes.xaxis, count)
    axes.set_xlim(-0.6, count - 0.4)
    axes.set_xlabel("job")


def table(axes: Axes, instance: Any, plan: Any) -> None:
    """Draw the fields that have a row for each job, the plan's behind the instance's, as one table."""
    columns: list[NDArray[Any]] = []
    names: list[str] = []
    for record, mark in ((instance, ""), (plan, "plan: ")):
        for name, declared in {} if record is None else declarations(type(record)).items():
            value = getattr(record, name)
            by_job = isinstance(declared, Array) and declared.shape.split()[0] == instance.rows
            if value is None or not by_job or isinstance(declared, Ragged) or value.dtype.kind == "U":
                continue
            flat = value.reshape(len(value), math.prod(value.shape[1:])).astype(float)
            columns += list(flat.T)
            names += [mark + name + (f" {i}" if flat.shape[1] > 1 else "") for i in range(flat.shape[1])]
    if columns:
        values = np.stack(columns, axis=1)
        finite = np.where(np.isfinite(values), np.abs(values), 0.0)
        matrix(axes, values, columns=names, scale=finite.max(axis=0, initial=0.0))
        axes.tick_params(axis="x", labelrotation=30)
        axes.set_xlabel("field")
        axes.set_ylabel("job")
    else:
        axes.axis("off")
