"""The HTML report on replays: one file, with its pictures inside."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from instances.files import write_whole
from validation import catalogue
from validation.formatting import gap_range, percent
from validation.replay.options import POISSON
from validation.replay.paired import LEVEL
from validation.replay.plots import trace_pictures
from validation.replay.records import ENDED, OFFLINE, TABLES
from validation.replay.results import CONTRADICTED, DEADLINES, EXACT, SHOWN, Replays, collect, span
from validation.study.page import Cell, document, escape, figure, provenance_section, section, table
from validation.study.store import Warn

__all__ = ["finish", "sentences"]


def finish(directory: str | os.PathLike[str], warn: Warn = warnings.warn) -> Replays:
    """Write tables, metadata and report of a study of replays, finished or not, from its log.

    Parameters
    ----------
    directory : path
    warn : callable, optional
        Told of damage, which is passed over.

    Raises
    ------
    StudyError
        When the directory holds no such study.
    """
    study = collect(directory, warn)
    write_whole(study.report, _page(study))
    return study


def _page(study: Replays) -> str:
    asked = study.metadata["asked"]
    problem = str(asked["problem"])
    ended = study.rows[study.rows["status"] == ENDED]
    averages, differences, gaps = study.averages(), study.differences(), study.gaps()
    points, costs, beside = study.gap_points(), study.cost_of_gaps(), study.beside_offline()
    sections = ""
    for number, trace in enumerate(dict.fromkeys(ended["trace"]), 1):
        of_trace = {
            "jobs": ("What became of the jobs", _averages(averages, trace)),
            "hindsight": ("Beside what hindsight could do", _offline(beside, trace)),
            "differences": (f"Beside {study.reference}, job by job", _differences(differences, trace)),
            "gaps": ("Gaps of single decisions", _gaps(gaps, trace)),
        }
        sections += section(
            _trace_named(trace),
            f"{_described(study, trace, ended)}"
            f'<div class="pictures">{_pictures(study, trace, differences, points, costs)}</div>'
            + "".join(
                section(title, content, id=f"trace-{number}-{name}", level=3)
                for name, (title, content) in of_trace.items()
            ),
            id=f"trace-{number}",
        )
    entry = catalogue.CATALOGUE.get(problem)
    title = f" ({entry.title})" if entry else ""
    told = "".join(f"<li>{escape(one)}</li>" for one in sentences(study, differences, gaps, costs))
    files = [*(f"{name}.parquet" for name in ("results", *TABLES, OFFLINE)), "metadata.json"]
    body = f"""<h1>What deciding otherwise comes to: {escape(problem)}</h1>
<p>Each trace was run through a cluster once for every decision maker. Whenever jobs arrive, end or a round is over,
the jobs that are there make an instance of {escape(problem)}{escape(title)}, and the decision maker's plan for it holds
until the next one.</p>
{_state(study)}
<ul>{told}</ul>
<details><summary>How to read the numbers</summary>{_READING}</details>
{sections}
{_costs(costs)}
{_failures(study)}
{provenance_section(study.metadata, files)}"""
    return document(f"Replays: {problem}", body)


_READING = f"""
<p>The <b>completion time</b> (JCT) of a job is from its arrival to its end. Decision makers are compared on <b>the
same jobs</b>, in the same window of the same trace, under the same seed; jobs that one of the two did not complete
are left out and counted. <b>Intervals</b> hold {LEVEL:.0%} of what the bootstrap gives: windows are drawn again with
replacement, and seeds within each, never jobs, which wait for each other and are no independent evidence. With a
single run there is none, and with few windows they are too narrow.</p>
<p>Optima are degenerate: of several that are equally good one is taken, and another order of the same jobs may give
another. The <b>spread over tie-breaks</b> is what that alone makes of the number. A difference that is no greater is
<b>luck</b>; one that is greater, and whose interval does not hold 0, is an <b>effect</b>; between the two it is
<b>open</b>.</p>
<p>The <b>gap</b> of a decision is how far its value is from the proven optimum of the same instance, the one that the
decision maker had before it, in the problem's own measure. It is known of a sample of the decisions, whose optimum
was found after the replay, without influence on it. <b>What the gap cost</b> is the slope of a line through the
origin: the average completion time beside the exact decision maker's, against the mean gap, run by run. It is an
association, and may be negative: what is optimal for a decision need not be so for the trace.</p>
<p>An <b>offline optimum</b> is the best of all schedules of the same jobs, whoever decides, by one who knows all
arrivals; an <b>offline bound</b> is a number that none of these schedules beats and that may not be attained. Either is
proven: by prices or two runs of the solver, by one run, or by an argument without one.</p>
<p><b>Decided by another</b> are decisions for which a decision maker had no plan, and the setting's default stepped in:
where there are many, its numbers are the other's.</p>
<p><b>Fairness</b> is Jain's index of the jobs' slowdowns, 1 where all are alike; <b>ρ</b> is a job's completion time
over that on an equal share of the cluster.</p>"""


def sentences(study: Replays, differences: pd.DataFrame, gaps: pd.DataFrame, costs: pd.DataFrame) -> list[str]:
    """What the study found, in a sentence or three for each trace and decision maker."""
    found = []
    average = differences[differences["measure"] == "average completion time"]
    of_problem = gaps.set_index(["trace", "policy"]).to_dict("index") if len(gaps) else {}
    cost = costs.set_index("policy").to_dict("index") if len(costs) else {}
    due = differences[differences["measure"] == "deadlines met"]
    deadlines = due.set_index(["trace", "policy"]).to_dict("index") if len(due) else {}
    found += _hindsight(study)
    ended = study.rows[study.rows["status"] == ENDED]
    stepped_in = ended.groupby(["trace", "policy"])["instead"].sum().to_dict() if len(ended) else {}
    for row in average.to_dict("records"):
        if np.isnan(row["value"]):
            continue
        said = f"{_trace_named(row['trace'])}, {row['policy']}: {_longer(row['value'], study.reference)}"
        said += f" ({_evidence(row)})."
        met = deadlines.get((row["trace"], row["policy"]))
        if met is not None:
            said += f" It meets {_fewer(met['value'])} of the deadlines ({_evidence(met)})."
        instead = stepped_in.get((row["trace"], row["policy"]), 0)
        if instead:
            said += f" {instead:,.0f} of its decisions were another's, because it had no plan."
        gap = of_problem.get((row["trace"], row["policy"]))
        if gap is not None and not np.isnan(gap["mean"]):
            said += f" Its decisions are {percent(gap['mean'])} from their optima on average."
        slope = cost.get(row["policy"], {}).get("slope", np.nan)
        if not np.isnan(slope):
            interval = _interval(cost[row["policy"]], lambda value: _signed(value / 100))
            said += f" 1% of gap goes with {_signed(slope / 100)} of completion time{interval}."
        found.append(said)
    return found


def _hindsight(study: Replays) -> list[str]:
    """What hindsight could do, in a sentence for each trace."""
    found = []
    beside = study.beside_offline()
    for trace, rows in beside.groupby("trace", sort=False):
        metric = DEADLINES if DEADLINES in set(rows["metric"]) else "average_jct"
        rows = rows[rows["metric"] == metric]
        if rows.empty:
            continue
        first = rows.iloc[0]
        name, shown = SHOWN[metric]
        if first["kind"] == CONTRADICTED:
            found.append(
                f"{_trace_named(str(trace))}: a replay is better than what is proven to be possible: a defect."
            )
            continue
        away = ", ".join(f"{row['policy']} {_away(row)}" for row in rows.to_dict("records"))
        what = "more" if metric == DEADLINES else "less"
        found.append(
            f"{_trace_named(str(trace))}: no schedule of these jobs has {what} than {shown(first['bound'])} of {name} "
            f"({first['kind']}, {first['proof']}): {away}."
        )
    return found


def _away(row: Mapping[Any, Any]) -> str:
    """How far a decision maker is from what hindsight could do."""
    return percent(max(0.0, row["excess"])) + (" fewer" if row["metric"] == DEADLINES else " above")


def _offline(beside: pd.DataFrame, trace: str) -> str:
    rows = beside[beside["trace"] == trace]
    if rows.empty:
        return "<p>There is no bound on all schedules of these jobs.</p>"
    policies = [*dict.fromkeys(rows["policy"])]
    lines = []
    for metric, of_metric in rows.groupby("metric", sort=False):
        name, shown = SHOWN[str(metric)]
        told = of_metric.set_index("policy").to_dict("index")
        first = of_metric.iloc[0]
        away = [_away({"metric": metric, **told[policy]}) if policy in told else "–" for policy in policies]
        lines.append([name, first["kind"], shown(first["bound"]), first["proof"], *away])
    header = ["what", "kind", "no schedule beats", "proof", *policies]
    return table(header, lines, name=f"Beside what hindsight could do, {trace}", text_columns=(0, 1, 3))


def _longer(value: float, reference: str) -> str:
    if value == 0:
        return f"jobs take as long as under {reference}, on average"
    return f"jobs take {percent(abs(value))} {'longer' if value > 0 else 'less'} than under {reference}, on average"


def _fewer(share: float) -> str:
    return "as many" if share == 0 else f"{percent(abs(share))} {'more' if share > 0 else 'fewer'}"


def _evidence(row: Mapping[Any, Any]) -> str:
    said = [] if np.isnan(row["low"]) else [f"interval {_signed(row['low'])} to {_signed(row['high'])}"]
    if not np.isnan(row["spread"]):
        said.append(f"tie-breaks alone make {percent(row['spread'])}")
    return "; ".join([*said, _VERDICTS[row["verdict"]]])


_VERDICTS = {
    "none": "no difference",
    "luck": "no more than luck",
    "open": "open: the interval holds 0",
    "one run": "one run, of which nothing general follows",
    "effect": "an effect",
}


def _signed(value: float) -> str:
    """A difference in per cent, with its sign."""
    if np.isnan(value):
        return "–"
    sign = "+" if value > 0 else "−" if value < 0 else ""
    return f"{sign}{100 * abs(value):.2g}%" if 0 < abs(value) < 1e-4 else f"{sign}{percent(abs(value))}"


def _interval(row: Mapping[Any, Any], shown: Callable[[float], str]) -> str:
    """The interval of a number, in brackets; nothing where it has none, or no width."""
    if np.isnan(row["low"]) or row["low"] == row["high"]:
        return ""
    return f" ({shown(row['low'])} to {shown(row['high'])})"


def _trace_named(trace: str) -> str:
    return "Jobs drawn at random" if trace == POISSON else trace


def _state(study: Replays) -> str:
    meta = study.metadata
    said = f"{meta['cells_ended']} of {meta['cells']} replays have ended"
    failed = f", {meta['failed']} of them without a result: see below" if meta["failed"] else ""
    kept = f"; {meta['kept']:,} of the instances that were decided are kept" if meta["kept"] else ""
    if meta["finished"] and not meta["failed"]:
        return f'<p class="good">All {meta["cells"]} replays ran to their end{kept}.</p>'
    return f'<p class="bad">{said}{failed}{kept}.</p>'


def _described(study: Replays, trace: str, ended: pd.DataFrame) -> str:
    rows = ended[ended["trace"] == trace]
    asked = study.metadata["asked"]
    capacity = study.usage.loc[study.usage["trace"] == trace, "capacity"]
    facts = [
        f"{rows['jobs'].mean():,.0f} jobs a replay" if len(rows) else "",
        _read(asked, trace),
        f"{capacity.max():,.0f} GPUs" if len(capacity) else "",
        _counted(rows["window"].nunique(), "window"),
        _counted(rows["seed"].nunique(), "seed"),
        _counted(rows["tie"].nunique(), "tie-break"),
        f"rounds of {span(asked['round_length'])}" if asked["round_length"] else "",
        f"a restart costs {span(asked['restart'])}" if asked["restart"] else "",
        f"a migration costs {span(asked['migration'])}" if asked["migration"] else "",
    ]
    return f"<p>{escape(', '.join(one for one in facts if one))}.</p>"


def _read(asked: Mapping[str, Any], trace: str) -> str:
    """How many of the trace's jobs that is, and of how many rows they were read."""
    read = asked["read"].get(trace)
    if not read:
        return ""
    used = read["jobs"] if asked["length"] is None else asked["windows"] * asked["length"]
    skipped = f" ({read['skipped']:,} of its {read['rows']:,} rows were skipped)" if read["skipped"] else ""
    return f"the first {used:,} of the trace's {read['jobs']:,} jobs{skipped}"


def _counted(times: int, what: str) -> str:
    return f"{times} {what}{'s' * (times != 1)}"


def _pictures(study: Replays, trace: str, differences: pd.DataFrame, points: pd.DataFrame, costs: pd.DataFrame) -> str:
    return "".join(
        figure(f"{title}, {trace}", reading, svg)
        for title, reading, svg in trace_pictures(study, trace, differences, points, costs)
    )


def _averages(averages: pd.DataFrame, trace: str) -> str:
    rows = averages[averages["trace"] == trace]
    policies = [*dict.fromkeys(rows["policy"])]
    told = rows.set_index(["metric", "policy"]).to_dict("index")
    lines = []
    for metric, (name, shown) in SHOWN.items():
        cells = [told.get((metric, policy)) for policy in policies]
        if any(cells):
            lines.append([name, *("–" if one is None else shown(one["mean"]) + _interval(one, shown) for one in cells)])
    header = ["mean over runs", *policies]
    return table(header, lines, name=f"What became of the jobs, {trace}", text_columns=(0,))


def _differences(differences: pd.DataFrame, trace: str) -> str:
    rows = differences[differences["trace"] == trace]
    if rows.empty:
        return "<p>There is nothing to compare.</p>"
    lines = []
    for row in rows.to_dict("records"):
        seconds = row["measure"].endswith(", s")
        shown = _signed_span if seconds else _signed
        interval = "–" if np.isnan(row["low"]) else f"{shown(row['low'])} to {shown(row['high'])}"
        spread = "not measured" if np.isnan(row["spread"]) else (span if seconds else percent)(row["spread"])
        lines.append(
            [
                row["policy"],
                row["measure"].removesuffix(", s") + (", difference" if seconds else ""),
                Cell(shown(row["value"]), row["value"]),
                interval,
                Cell(spread, row["spread"]),
                _VERDICTS[row["verdict"]],
                f"{row['jobs']:,}",
                str(row["left_out"]),
                str(row["runs"]),
            ]
        )
    header = ["decision maker", "what", "difference", f"{LEVEL:.0%} interval", "spread over tie-breaks", "so it is"]
    header += ["jobs", "left out", "runs"]
    return table(header, lines, name=f"Beside the reference, {trace}", text_columns=(0, 1, 5))


def _signed_span(value: float) -> str:
    return span(value) if value == 0 or np.isnan(value) else f"{'+' if value > 0 else '−'}{span(abs(value))}"


def _gaps(gaps: pd.DataFrame, trace: str) -> str:
    rows = gaps[gaps["trace"] == trace]
    if not rows["asked"].any():
        return "<p>Of no decision is the optimum known: <code>--gaps</code> says of how many it is looked for.</p>"
    lines = [
        [
            row["policy"],
            *(Cell(f"{row[name]:,}", row[name]) for name in ("decisions", "asked", "proven")),
            Cell(percent(row["mean"]) + _interval(row, percent), row["mean"]),
            *(Cell(percent(row[name]), row[name]) for name in ("median", "p95", "worst", "optimal")),
            Cell(gap_range(row["least"], row["most"]), row["most"]),
        ]
        for row in rows.to_dict("records")
    ]
    header = ["decision maker", "decisions", "optimum looked for", "proven", "mean gap", "median", "95th percentile"]
    header += ["worst", "without a gap", "mean of all looked for"]
    return table(header, lines, name=f"Gaps of single decisions, {trace}", text_columns=(0,))


def _costs(costs: pd.DataFrame) -> str:
    if not costs["runs"].any():
        why = f"there are runs under {EXACT} and proven gaps of another decision maker's decisions"
        return section("What the gap cost", f"<p>It is known where {why}.</p>", id="costs")
    lines = [
        [
            row["policy"],
            Cell(percent(row["gap"]), row["gap"]),
            Cell(_signed(row["cost"]), row["cost"]),
            Cell(_signed(row["slope"] / 100), row["slope"]),
            "–" if np.isnan(row["low"]) else f"{_signed(row['low'] / 100)} to {_signed(row['high'] / 100)}",
            str(row["runs"]),
            row["reason"],
        ]
        for row in costs.to_dict("records")
    ]
    header = [
        "decision maker",
        "mean gap",
        f"completion time beside {EXACT}",
        "1% of gap goes with",
        "interval",
        "runs",
    ]
    said = (
        "<p>By how many per cent the average completion time differs for each per cent of gap: the slope of a line "
        "through the origin, over the runs of all traces.</p>"
    )
    shown = table([*header, "remark"], lines, name="What the gap cost", text_columns=(0, 6))
    return section("What the gap cost", said + shown, id="costs")


def _failures(study: Replays) -> str:
    bad = study.rows[study.rows["status"] == "failed"]
    if bad.empty:
        return ""
    lines = [
        [*(str(row[name]) for name in ("trace", "window", "seed", "policy", "tie")), row["reason"]]
        for row in bad.to_dict("records")
    ]
    header = ["trace", "window", "seed", "decision maker", "tie-break", "reason"]
    shown = table(header, lines, name="Replays without a result", text_columns=(0, 3, 5))
    return section("Replays without a result", shown, id="failures")
