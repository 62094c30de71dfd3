"""What the report on replays shows, and what a study of replays found, in sentences."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from instances.files import write_whole
from validation import catalogue
from validation.catalogue import EXACT
from validation.formatting import gap_range, percent, span
from validation.kernel.store import Warn
from validation.kinds.replays.options import POISSON
from validation.kinds.replays.paired import LEVEL
from validation.kinds.replays.records import ENDED, OFFLINE, TABLES
from validation.kinds.replays.results import CONTRADICTED, DEADLINES, SHOWN, Replays, collect
from validation.pages.render import Cell, Table, counted, render
from validation.pages.replay_plots import trace_pictures

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
    problem = str(study.metadata["asked"]["problem"])
    ended = study.rows[study.rows["status"] == ENDED]
    tables = {
        "averages": study.averages(),
        "differences": study.differences(),
        "gaps": study.gaps(),
        "beside": study.beside_offline(),
        "points": study.gap_points(),
        "jobs": study.jobs,
        "usage": study.usage,
        "ended": ended,
    }
    costs = study.cost_of_gaps()
    return render(
        "replays.html.j2",
        costs=_costs(costs),
        entry=catalogue.CATALOGUE.get(problem),
        exact=EXACT,
        failures=_failures(study.rows),
        files=[*(f"{name}.parquet" for name in ("results", *TABLES, OFFLINE)), "metadata.json"],
        level=f"{LEVEL:.0%}",
        meta=study.metadata,
        problem=problem,
        reference=study.reference,
        sentences=sentences(study, tables["differences"], tables["gaps"], costs),
        traces=[
            _trace(study, trace, {name: table[table["trace"] == trace] for name, table in tables.items()}, costs)
            for trace in dict.fromkeys(ended["trace"])
        ],
    )


def _trace(study: Replays, trace: str, of: Mapping[str, pd.DataFrame], costs: pd.DataFrame) -> dict[str, Any]:
    """Collect what the section of a trace shows, of its rows of all tables."""
    return {
        "name": trace,
        "title": _trace_named(trace),
        "facts": _described(study.metadata["asked"], trace, of["ended"], of["usage"]["capacity"]),
        "pictures": trace_pictures(
            of["jobs"], of["usage"], of["differences"], of["points"], costs, study.policies, study.reference
        ),
        "averages": _averages(of["averages"], trace),
        "offline": _offline(of["beside"], trace),
        "differences": _differences(of["differences"], trace),
        "gaps": _gaps(of["gaps"], trace),
    }


def sentences(study: Replays, differences: pd.DataFrame, gaps: pd.DataFrame, costs: pd.DataFrame) -> list[str]:
    """Say what the study found, in a sentence or three for each trace and decision maker."""
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
    """Say what hindsight could do, in a sentence for each trace."""
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
    """Say how far a decision maker is from what hindsight could do."""
    return percent(max(0.0, row["excess"])) + (" fewer" if row["metric"] == DEADLINES else " above")


def _offline(rows: pd.DataFrame, trace: str) -> Table:
    policies = [*dict.fromkeys(rows["policy"])]
    header = ["what", "kind", "no schedule beats", "proof"]
    lines = []
    for metric, of_metric in rows.groupby("metric", sort=False):
        name, shown = SHOWN[str(metric)]
        told = of_metric.set_index("policy").to_dict("index")
        first = of_metric.iloc[0]
        away = [_away({"metric": metric, **told[policy]}) if policy in told else "–" for policy in policies]
        lines.append([name, first["kind"], shown(first["bound"]), first["proof"], *away])
    name = f"Beside what hindsight could do, {trace}"
    return Table.of(name, lines, [*header, *policies], ("what", "kind", "proof"))


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
    """Write a difference in per cent, with its sign."""
    if np.isnan(value):
        return "–"
    sign = "+" if value > 0 else "−" if value < 0 else ""
    return f"{sign}{100 * abs(value):.2g}%" if 0 < abs(value) < 1e-4 else f"{sign}{percent(abs(value))}"


def _interval(row: Mapping[Any, Any], shown: Callable[[float], str]) -> str:
    """Write the interval of a number, in brackets; nothing where it has none, or no width."""
    if np.isnan(row["low"]) or row["low"] == row["high"]:
        return ""
    return f" ({shown(row['low'])} to {shown(row['high'])})"


def _trace_named(trace: str) -> str:
    return "Jobs drawn at random" if trace == POISSON else trace


def _described(asked: Mapping[str, Any], trace: str, rows: pd.DataFrame, capacity: pd.Series[float]) -> list[str]:
    facts = [
        f"{rows['jobs'].mean():,.0f} jobs a replay" if len(rows) else "",
        _read(asked, trace),
        f"{capacity.max():,.0f} GPUs" if len(capacity) else "",
        *(
            counted(rows[of].nunique(), what)
            for of, what in (("window", "window"), ("seed", "seed"), ("tie", "tie-break"))
        ),
        f"rounds of {span(asked['round_length'])}" if asked["round_length"] else "",
        f"a restart costs {span(asked['restart'])}" if asked["restart"] else "",
        f"a migration costs {span(asked['migration'])}" if asked["migration"] else "",
    ]
    return [one for one in facts if one]


def _read(asked: Mapping[str, Any], trace: str) -> str:
    """Say how many of the trace's jobs that is, and of how many rows they were read."""
    read = asked["read"].get(trace)
    if not read:
        return ""
    used = read["jobs"] if asked["length"] is None else asked["windows"] * asked["length"]
    skipped = f" ({read['skipped']:,} of its {read['rows']:,} rows were skipped)" if read["skipped"] else ""
    return f"the first {used:,} of the trace's {read['jobs']:,} jobs{skipped}"


def _averages(rows: pd.DataFrame, trace: str) -> Table:
    policies = [*dict.fromkeys(rows["policy"])]
    told = rows.set_index(["metric", "policy"]).to_dict("index")
    lines = []
    for metric, (name, shown) in SHOWN.items():
        cells = [told.get((metric, policy)) for policy in policies]
        if any(cells):
            lines.append([name, *("–" if one is None else shown(one["mean"]) + _interval(one, shown) for one in cells)])
    header = ["mean over runs", *policies]
    return Table.of(f"What became of the jobs, {trace}", lines, header, header[:1])


def _differences(rows: pd.DataFrame, trace: str) -> Table:
    def of_seconds(row: Mapping[Any, Any]) -> bool:
        return bool(row["measure"].endswith(", s"))

    def value(row: Mapping[Any, Any]) -> Cell:
        return Cell((_signed_span if of_seconds(row) else _signed)(row["value"]), row["value"])

    def interval(row: Mapping[Any, Any]) -> str:
        shown = _signed_span if of_seconds(row) else _signed
        return "–" if np.isnan(row["low"]) else f"{shown(row['low'])} to {shown(row['high'])}"

    def spread(row: Mapping[Any, Any]) -> Cell:
        shown = span if of_seconds(row) else percent
        return Cell("not measured" if np.isnan(row["spread"]) else shown(row["spread"]), row["spread"])

    columns: dict[str, Any] = {
        "decision maker": "policy",
        "what": lambda row: row["measure"].removesuffix(", s") + (", difference" if of_seconds(row) else ""),
        "difference": value,
        f"{LEVEL:.0%} interval": interval,
        "spread over tie-breaks": spread,
        "so it is": lambda row: _VERDICTS[row["verdict"]],
        "jobs": lambda row: f"{row['jobs']:,}",
        "left out": "left_out",
        "runs": "runs",
    }
    text = ("decision maker", "what", "so it is")
    return Table.of(f"Beside the reference, {trace}", rows.to_dict("records"), columns, text)


def _signed_span(value: float) -> str:
    return span(value) if value == 0 or np.isnan(value) else f"{'+' if value > 0 else '−'}{span(abs(value))}"


def _gaps(rows: pd.DataFrame, trace: str) -> Table:
    def count(name: str) -> Callable[[Mapping[Any, Any]], Cell]:
        return lambda row: Cell(f"{row[name]:,}", row[name])

    def share(name: str) -> Callable[[Mapping[Any, Any]], Cell]:
        return lambda row: Cell(percent(row[name]), row[name])

    columns: dict[str, Any] = {
        "decision maker": "policy",
        "decisions": count("decisions"),
        "optimum looked for": count("asked"),
        "proven": count("proven"),
        "mean gap": lambda row: Cell(percent(row["mean"]) + _interval(row, percent), row["mean"]),
        "median": share("median"),
        "95th percentile": share("p95"),
        "worst": share("worst"),
        "without a gap": share("optimal"),
        "mean of all looked for": lambda row: Cell(gap_range(row["least"], row["most"]), row["most"]),
    }
    some = rows.to_dict("records") if rows["asked"].any() else []
    return Table.of(f"Gaps of single decisions, {trace}", some, columns, ("decision maker",))


def _costs(costs: pd.DataFrame) -> Table:
    def interval(row: Mapping[Any, Any]) -> str:
        return "–" if np.isnan(row["low"]) else f"{_signed(row['low'] / 100)} to {_signed(row['high'] / 100)}"

    columns: dict[str, Any] = {
        "decision maker": "policy",
        "mean gap": lambda row: Cell(percent(row["gap"]), row["gap"]),
        f"completion time beside {EXACT}": lambda row: Cell(_signed(row["cost"]), row["cost"]),
        "1% of gap goes with": lambda row: Cell(_signed(row["slope"] / 100), row["slope"]),
        "interval": interval,
        "runs": "runs",
        "remark": "reason",
    }
    some = costs.to_dict("records") if costs["runs"].any() else []
    return Table.of("What the gap cost", some, columns, ("decision maker", "remark"))


def _failures(rows: pd.DataFrame) -> Table:
    columns = {name: name for name in ("trace", "window", "seed")}
    columns |= {"decision maker": "policy", "tie-break": "tie", "reason": "reason"}
    bad = rows[rows["status"] == "failed"].to_dict("records")
    return Table.of("Replays without a result", bad, columns, ("trace", "decision maker", "reason"))
