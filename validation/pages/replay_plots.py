"""The pictures of a report on replays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from validation.catalogue import EXACT
from validation.formatting import percent, span
from validation.pages.drawing import label
from validation.pages.plots import INK, Value, drawn, looks, steps, thinned

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["trace_pictures"]

_TICKS = (1, 10, 60, 600, 3600, 6 * 3600, 86400, 7 * 86400, 30 * 86400, 365 * 86400)
"""Times that an axis names, s."""

MOST_STEPS = 2000
"""Of a curve over time: beyond, it is the mean over so many intervals."""


def trace_pictures(
    jobs: pd.DataFrame,
    usage: pd.DataFrame,
    differences: pd.DataFrame,
    points: pd.DataFrame,
    costs: pd.DataFrame,
    policies: Sequence[str],
    reference: str,
) -> list[tuple[str, str, str]]:
    """Pictures of the replays of one trace: title, one sentence on how to read it, SVG.

    Parameters
    ----------
    jobs, usage, differences, points : DataFrame
        Rows of the trace, as the attributes and methods of ``Replays`` give them.
    costs : DataFrame
        Of all traces.
    policies : sequence of str
        All decision makers.
    reference : str
        The one that the others are compared with.
    """
    look = {name: one for name, one in looks(policies).items() if name in policies}
    effects = differences[differences["measure"] == "average completion time"].dropna(subset=["value"])
    points = points.dropna(subset=["gap", "cost"])
    found = []
    if len(effects):
        found.append(
            (
                f"Average completion time beside {reference}",
                f"Right of the line: longer than under {reference}. Points are means over the runs, bars their "
                "intervals; the grey band is what tie-breaks alone make.",
                partial(_effects, effects=effects, look_of=look),
            )
        )
    found.append(
        (
            "Completion times",
            "Share of all jobs, of all runs, that are complete within a time of their arrival. Left is better; a curve "
            "ends below 100% where jobs were turned away.",
            partial(_completion_times, jobs=jobs, look_of=look),
        )
    )
    if len(usage):
        found.append(
            (
                "GPUs in use",
                "In the first window with the first seed; dashed is what the cluster has.",
                partial(_gpus, usage=usage, look_of=look),
            )
        )
    if len(points):
        slope = costs.iloc[0]["slope"] if len(costs) else np.nan
        found.append(
            (
                "Gap against cost",
                "Each point is a run: how far single decisions are from their optima, on average, and how much longer "
                "jobs take than under exact decisions. The line is the regression through the origin, over all traces.",
                partial(_cost, points=points, slope=slope, look_of=look),
            )
        )
    return [(title, reading, drawn(draw)) for title, reading, draw in found]


def _effects(axes: Axes, effects: pd.DataFrame, look_of: Mapping[str, Mapping[str, Any]]) -> list[Value]:
    told = []
    rows = effects.iloc[::-1].to_dict("records")
    for at, row in enumerate(rows):
        look = look_of[row["policy"]]
        value = 100 * row["value"]
        if not np.isnan(row["spread"]):
            axes.barh(at, 200 * row["spread"], left=-100 * row["spread"], height=0.55, color=INK, alpha=0.15, zorder=1)
        error = None
        if not np.isnan(row["low"]):
            error = [[value - 100 * row["low"]], [100 * row["high"] - value]]
        axes.errorbar(value, at, xerr=error, fmt=look["marker"], color=look["color"], capsize=3, zorder=3)
        told.append(Value(value, at, f"{row['policy']}: {value:+.3g}%"))
    axes.axvline(0, color=INK, linewidth=0.9, zorder=2)
    axes.set_yticks(range(len(rows)), [label(row["policy"]) for row in rows])
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.margins(x=0.12)
    axes.set_xlabel("difference, %")
    return told


def _completion_times(axes: Axes, jobs: pd.DataFrame, look_of: Mapping[str, Mapping[str, Any]]) -> list[Value]:
    from matplotlib.ticker import FuncFormatter, NullLocator

    told = []
    ended = jobs["ended"] - jobs["arrival"]
    for policy, look in look_of.items():
        of_policy = ended[jobs["policy"] == policy]
        times, share = steps(of_policy.dropna().to_numpy(float), max(1, len(of_policy)))
        # Drawn on top, the reference would hide who does as well.
        behind = 2 if policy == EXACT else 3
        axes.step(times, share, where="post", color=look["color"], linewidth=1.8, zorder=behind, label=label(policy))
        for time, part in thinned(times, share):
            told.append(Value(time, part, f"{policy}: {percent(part / 100)} of the jobs complete within {span(time)}"))
    positive = ended[ended > 0]
    if len(positive):
        least, most = positive.min() / 1.1, positive.max() * 1.1
        axes.set_xscale("log")
        axes.set_xlim(least, most)
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xticks([tick for tick in _TICKS if least <= tick <= most])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: span(x)))
    axes.set_ylim(0, 104)
    axes.set_xlabel("completion time t")
    axes.set_ylabel("share of jobs complete within t, %")
    axes.legend(fontsize="small", framealpha=0.7, loc="lower right")
    return told


def _gpus(axes: Axes, usage: pd.DataFrame, look_of: Mapping[str, Mapping[str, Any]]) -> list[Value]:
    told = []
    first = usage.iloc[0]
    of_run = usage[(usage["window"] == first["window"]) & (usage["seed"] == first["seed"])]
    of_run = of_run[of_run["tie"] == of_run["tie"].min()]
    begin, end = float(of_run["time"].min()), float(of_run["time"].max())
    size, unit = (
        (86400.0, "days") if end - begin > 2 * 86400 else (3600.0, "hours") if end - begin > 7200 else (60.0, "minutes")
    )
    for policy, look in look_of.items():
        rows = of_run[of_run["policy"] == policy]
        if rows.empty:
            continue
        times, gpus = _thinned(rows["time"].to_numpy(float), rows["gpus"].to_numpy(float))
        at = (times - begin) / size
        axes.step(at, gpus, where="post", color=look["color"], linewidth=1.1, alpha=0.85, label=label(policy))
        for time, number in thinned(at, gpus):
            told.append(Value(time, number, f"{policy}: {number:.3g} GPUs in use from {time:.3g} {unit} on"))
    capacity = of_run.loc[of_run["policy"] == of_run["policy"].iloc[0]]
    axes.step(
        (capacity["time"] - begin) / size,
        capacity["capacity"],
        where="post",
        color=INK,
        alpha=0.6,
        linestyle="--",
        linewidth=1,
    )
    axes.set_ylim(bottom=0)
    axes.set_xlabel(f"time since the first job, {unit}")
    axes.set_ylabel("GPUs in use")
    axes.legend(fontsize="small", framealpha=0.7)
    return told


def _thinned(times: Any, values: Any) -> tuple[Any, Any]:
    """Return a step function, or its means over intervals where it has too many steps."""
    if len(times) <= MOST_STEPS:
        return times, values
    area = np.concatenate([[0.0], np.cumsum(np.diff(times) * values[:-1])])
    ends = np.linspace(times[0], times[-1], MOST_STEPS + 1)
    return ends, np.append(np.diff(np.interp(ends, times, area)) / np.diff(ends), values[-1])


def _cost(axes: Axes, points: pd.DataFrame, slope: float, look_of: Mapping[str, Mapping[str, Any]]) -> list[Value]:
    told = []
    for policy, rows in points.groupby("policy", sort=False):
        look = look_of[str(policy)]
        axes.plot(
            100 * rows["gap"],
            100 * rows["cost"],
            linestyle="",
            markersize=5,
            alpha=0.8,
            label=label(str(policy)),
            **look,
        )
        for gap, cost in zip((100 * rows["gap"]).tolist(), (100 * rows["cost"]).tolist(), strict=True):
            told.append(Value(gap, cost, f"{policy}: mean gap {gap:.3g}%, completion time {cost:+.3g}%"))
    axes.axhline(0, color=INK, linewidth=0.8)
    most = 100 * float(points["gap"].max())
    if np.isfinite(slope) and most > 0:
        axes.plot([0, most], [0, slope * most], color=INK, alpha=0.6, linewidth=1.2)
    axes.set_xlim(left=min(0.0, -0.02 * most))
    axes.set_xlabel("mean gap of a decision, %")
    axes.set_ylabel("completion time beside exact, %")
    axes.legend(fontsize="small", framealpha=0.7)
    return told
