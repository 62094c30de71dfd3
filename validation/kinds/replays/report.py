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
from validation.kinds.replays.results import CONTRADICTED, DEADLINES, OPTIMUM, SHOWN, Replays, collect
from validation.pages.render import Cell, Table, counted, render
from validation.pages.replay_plots import trace_pictures
from validation.replay.online import is_program

__all__ = ["findings", "finish", "of_programs", "remarks", "sentences"]


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
        comparisons=len(tables["differences"]),
        findings=[
            Table.of(title, lines, tuple(lines[0]), ("decision maker", "so"))
            for title, lines in findings(study, tables["differences"], tables["averages"], tables["beside"])
        ],
        level=f"{LEVEL:.0%}",
        meta=study.metadata,
        problem=problem,
        reference=study.reference,
        remarks=remarks(study),
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
    """Say what the study found, in a short sentence for each trace and decision maker, and what is wrong with it."""
    found = [
        f"{_trace_named(row['trace'])}, {row['policy']}: {row['measure']} beside {study.reference} "
        f"{_beside(row)}: {_said(row)}."
        for row in _main(differences).to_dict("records")
    ]
    return found + of_programs(study) + remarks(study)


def remarks(study: Replays) -> list[str]:
    """Say what must be known before any number is read: defects, and whose decisions were another's."""
    found = [
        f"{_trace_named(str(trace))}: a replay is better than what is proven to be possible: a defect."
        for trace, rows in study.beside_offline().groupby("trace", sort=False)
        if (rows["kind"] == CONTRADICTED).any()
    ]
    ended = study.rows[study.rows["status"] == ENDED]
    if len(ended):
        stepped_in = ended.groupby(["trace", "policy"], sort=False)["instead"].sum().reset_index()
        found += [
            f"{_trace_named(row['trace'])}, {row['policy']}: {row['instead']:,.0f} of its decisions were another's, "
            "because it had no plan."
            for row in stepped_in[stepped_in["instead"] > 0].to_dict("records")
        ]
    return found


def of_programs(study: Replays) -> list[str]:
    """Say how far programs that decide online are from what hindsight could do, which is their score."""
    beside = study.beside_offline()
    return [
        f"{_trace_named(row['trace'])}, {row['policy']}: {measure} beside the {row['kind']} {_away(row)}."
        for measure, metric in _MAIN.items()
        for row in beside[beside["metric"] == metric].to_dict("records")
        if is_program(row["policy"])
    ]


def findings(
    study: Replays, differences: pd.DataFrame, averages: pd.DataFrame, beside: pd.DataFrame
) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return what each trace and measure comes to: a title, and a line for each decision maker.

    The measures are the average completion time, and the deadlines met where there are some.
    """
    found = []
    for trace in dict.fromkeys(averages["trace"]):
        for measure, metric in _MAIN.items():
            means = averages[(averages["trace"] == trace) & (averages["metric"] == metric)]
            told = differences[(differences["trace"] == trace) & (differences["measure"] == measure)]
            if means.empty or (metric == DEADLINES and told.empty):
                continue
            of = {row["policy"]: row for row in told.to_dict("records")}
            shown = SHOWN[metric][1]
            lines = [
                _finding(row["policy"], shown(row["mean"]), measure, study.reference, of.get(row["policy"]))
                for row in means.to_dict("records")
            ]
            bound = beside[(beside["trace"] == trace) & (beside["metric"] == metric)].head(1).to_dict("records")
            for row in bound:
                sign = "" if row["kind"] == OPTIMUM else "≤ " if metric == DEADLINES else "≥ "
                said = "a defect: a replay is better" if row["kind"] == CONTRADICTED else "no schedule is better"
                lines.append(_finding(row["kind"], sign + shown(row["bound"]), measure, study.reference, None, said))
            found.append((f"{_trace_named(trace)}: {measure}", lines))
    return found


_MAIN = {"average completion time": "average_jct", "deadlines met": DEADLINES}
"""Measures that a study of replays is about, and their metrics."""


def _main(differences: pd.DataFrame) -> pd.DataFrame:
    return differences[differences["measure"].isin(list(_MAIN)) & differences["value"].notna()]


def _finding(
    who: str, mean: str, measure: str, reference: str, row: Mapping[Any, Any] | None, said: str = ""
) -> dict[str, Any]:
    """Make a line of the table of findings."""
    known = row is not None and not np.isnan(row["value"])
    return {
        "decision maker": who,
        measure: mean,
        f"beside {reference}": _beside(row) if row is not None and known else "–",
        "ties alone make": _ties(row) if row is not None and known else "–",
        "so": _said(row) if row is not None and known else said or ("the reference" if who == reference else "–"),
    }


def _ties(row: Mapping[Any, Any]) -> str:
    return "not measured" if np.isnan(row["spread"]) else percent(row["spread"])


def _beside(row: Mapping[Any, Any]) -> str:
    """Write a difference with its interval, which may be so wide that its ends say nothing."""
    ends = ", very wide" if _is_wide(row) else _interval(row, _signed)
    return _signed(row["value"]) + ends


def _is_wide(row: Mapping[Any, Any]) -> bool:
    """Return whether an interval holds 0, and is wider than the whole that it is a part of."""
    return bool(row["low"] <= 0 <= row["high"] and row["high"] - row["low"] > WIDE)


def _said(row: Mapping[Any, Any]) -> str:
    """Write the verdict on a difference in a word or two."""
    if row["verdict"] != "effect":
        return _VERDICTS[row["verdict"]]
    more, less = _WAYS.get(row["measure"], ("longer", "shorter"))
    return more if row["value"] > 0 else less


WIDE = 1.0
"""Width of an interval around 0 whose ends say nothing: as much as all of the reference's."""

_VERDICTS = {
    "none": "no difference",
    "luck": "not told apart: ties make as much",
    "open": "not told apart",
    "one run": "one run: nothing follows",
    "few": "too few runs to tell",
    "effect": "an effect",
}
_WAYS = {"deadlines met": ("more", "fewer")}


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
        if not of_seconds(row) and _is_wide(row):
            return "very wide"
        return "–" if np.isnan(row["low"]) else f"{shown(row['low'])} to {shown(row['high'])}"

    def spread(row: Mapping[Any, Any]) -> Cell:
        shown = span if of_seconds(row) else percent
        return Cell("not measured" if np.isnan(row["spread"]) else shown(row["spread"]), row["spread"])

    columns: dict[str, Any] = {
        "decision maker": "policy",
        "what": lambda row: row["measure"].removesuffix(", s") + (", difference" if of_seconds(row) else ""),
        "difference": value,
        "interval": interval,
        "spread over tie-breaks": spread,
        "so it is": _said,
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
    def slope(row: Mapping[Any, Any]) -> Cell:
        return Cell(_signed(row["slope"] / 100) if row["verdict"] == "effect" else "–", row["slope"])

    def interval(row: Mapping[Any, Any]) -> str:
        if np.isnan(row["low"]):
            return "–"
        # In completion time for 1 % of gap.
        low, high = row["low"] / 100, row["high"] / 100
        return "very wide" if high - low > WIDE / 10 else f"{_signed(low)} to {_signed(high)}"

    columns: dict[str, Any] = {
        "decision maker": "policy",
        "mean gap": lambda row: Cell(percent(row["gap"]), row["gap"]),
        f"completion time beside {EXACT}": lambda row: Cell(_signed(row["cost"]), row["cost"]),
        "1% of gap goes with": slope,
        "interval": interval,
        "so": lambda row: row["reason"] or _COSTS[row["verdict"]],
        "runs": "runs",
    }
    some = costs.to_dict("records") if costs["runs"].any() else []
    return Table.of("What the gap cost", some, columns, ("decision maker", "so"))


_COSTS = {**_VERDICTS, "open": "not told apart from nothing", "effect": "a gap goes with time"}


def _failures(rows: pd.DataFrame) -> Table:
    columns = {name: name for name in ("trace", "window", "seed")}
    columns |= {"decision maker": "policy", "tie-break": "tie", "reason": "reason"}
    bad = rows[rows["status"] == "failed"].to_dict("records")
    return Table.of("Replays without a result", bad, columns, ("trace", "decision maker", "reason"))
