"""What the report of a study shows."""

from __future__ import annotations

import gc
import json
import os
import shlex
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd

from instances.base import Instance, InstanceError, PlanError
from instances.files import load, write_whole
from validation import catalogue
from validation.catalogue import EXACT
from validation.errors import StudyError
from validation.formatting import duration, gap_range, number, number_range, percent
from validation.kernel.store import Warn
from validation.kinds.study.pairs import shown_pairs
from validation.kinds.study.results import Study, collect, has_zeros, read_kept
from validation.pages.drawing import plans_side_by_side
from validation.pages.plots import problem_pictures
from validation.pages.render import Cell, Table, render
from validation.sources import read_files, repairs, told

__all__ = ["filled_in", "finish"]

WORST = 2
"""Instances listed for each heuristic."""
LARGEST_DRAWN = 40
"""Size up to which an instance is drawn: beyond, a picture says little."""
MOST_DRAWN = 24
"""Pictures of worst instances, one for each heuristic of a problem: more would take longer than all the rest."""
MOST_PAIRED = 10_000
"""Pairs of plans that are compared: beyond, it would take longer than all the rest."""
MOST_SOURCES = 1000
"""Instances of real data whose files are asked where they are from."""


def finish(directory: str | os.PathLike[str], warn: Warn = warnings.warn) -> Study:
    """As :func:`collect`, and write the report."""
    study = collect(directory, warn)
    # While pictures are drawn the collector has to look through what they are made of, and not through all else.
    gc.freeze()
    try:
        write_whole(study.report, _page(study))
    finally:
        gc.unfreeze()
    return study


def _page(study: Study) -> str:
    rows = study.rows
    problems = list(dict.fromkeys(rows["problem"]))
    worst = _worst_of(rows)
    drawings = _Drawings(study, [row for rows in worst.values() for row in rows])
    summary = study.summary()
    exact = rows[rows["algorithm"] == EXACT]
    return render(
        "study.html.j2",
        disagreements=_disagreements(study),
        failed=len(study.failures),
        failures=_failures(rows),
        glance=_glance(rows, worst, study.swept),
        instances=len(exact),
        meta=study.metadata,
        problems=[
            # Rows of a single problem are not copied.
            _problem(
                study,
                problem,
                rows[rows["problem"] == problem] if len(problems) > 1 else rows,
                summary,
                worst,
                drawings,
            )
            for problem in problems
        ],
        proven=int((exact["status"] == "optimal").sum()),
        runs=len(rows) - len(exact),
        sources=_sources(study),
        stopped=len(study.stopped),
        verified=study.verified,
        without_plan=int((exact["status"] == "infeasible").sum()),
    )


def _glance(rows: pd.DataFrame, worst: Mapping[str, Sequence[Mapping[str, Any]]], swept: Sequence[str]) -> Table:
    """Make a line for each heuristic of a problem, over all sizes."""
    lines: list[dict[str, Any]] = []
    # By numbers: groups of rows would be copies of them.
    group = rows.groupby(["problem", *swept, "algorithm"], sort=False, dropna=False).ngroup().to_numpy()
    feasible, proven = rows["status"].eq("feasible").to_numpy(bool), rows["exact_status"].eq("optimal").to_numpy(bool)
    least, most = rows["gap_low"].to_numpy(float), rows["gap_high"].to_numpy(float)
    for number_of, first in enumerate(np.unique(group, return_index=True)[1].tolist()):
        problem, *values, name = (_word(rows[one].iloc[first]) for one in ("problem", *swept, "algorithm"))
        if name == EXACT:
            continue
        mine = group == number_of
        judged = mine & feasible & ~np.isnan(most)
        low, high, count = least[judged], most[judged], int(mine.sum())
        optimal = float((high == 0).sum() / count)
        to_worst = _link_to_worst([*values, name], worst.get(problem, ()), swept)
        lines.append(
            {
                "problem": Cell(problem, link=f"#{quote(problem)}"),
                **dict(zip(swept, values, strict=True)),
                "heuristic": name,
                "instances": count,
                "optimum proven": (mine & proven).sum(),
                "feasible plans": (mine & feasible).sum(),
                "optimal plans": Cell(percent(optimal), optimal),
                "mean gap": _gap(low.mean(), high.mean()) if len(high) else "–",
                "worst gap": _gap(low.max(), high.max())._replace(link=to_worst) if len(high) else "–",
            }
        )
    return Table.of(
        "Each heuristic at a glance", lines, tuple(lines[0]) if lines else (), text=("problem", *swept, "heuristic")
    )


def _word(value: Any) -> str:
    """Write a value in a table; nothing where a sweep is not about its row."""
    return "" if pd.isna(value) else str(value)


def _gap(low: float, high: float) -> Cell:
    return Cell(gap_range(low, high), high)


def _link_to_worst(line: Sequence[str], worst: Sequence[Mapping[str, Any]], swept: Sequence[str]) -> str:
    """Link to the heuristic's worst instance, if that is in this line of a sweep."""
    for at, name in enumerate(dict.fromkeys(row["algorithm"] for row in worst)):
        row = next(row for row in worst if row["algorithm"] == name)
        if [*(_word(row[one]) for one in swept), name] == [*line]:
            return f"#{quote(_mark(row['problem'], at))}"
    return ""


def _mark(problem: str, number: int) -> str:
    """Name of the place of a heuristic's worst instance; names of heuristics are anybody's."""
    return f"{problem}-worst-{number + 1}"


def _problem(
    study: Study,
    problem: str,
    rows: pd.DataFrame,
    summary: pd.DataFrame,
    worst: Mapping[str, list[dict[str, Any]]],
    drawings: _Drawings,
) -> dict[str, Any]:
    """Collect what the section of a problem shows."""
    swept = [name for name in study.swept if rows[name].notna().any()]
    bad = worst.get(problem, [])
    entry = catalogue.CATALOGUE.get(problem)
    return {
        "name": problem,
        "entry": entry,
        "sense": rows["sense"].iloc[0],
        "summary": None if summary.empty else _summary(summary[summary["problem"] == problem], problem, swept),
        "pictures": problem_pictures(rows, swept),
        "beside": _beside(study, problem, rows),
        "bound": _relaxation(rows, problem, swept),
        "worst": _worst(study, problem, bad, swept),
        "drawn": [
            {"mark": _mark(problem, at), **of[0], "drawn": drawings.of(of)}
            for at, of in enumerate(
                [row for row in bad if row["algorithm"] == name]
                for name in dict.fromkeys(row["algorithm"] for row in bad)
            )
        ],
    }


def _sweep_columns(swept: Sequence[str]) -> dict[str, Any]:
    return {name: lambda row, name=name: _word(row[name]) for name in swept}


def _summary(summary: pd.DataFrame, problem: str, swept: Sequence[str]) -> Table:
    entry = catalogue.CATALOGUE.get(problem)
    columns: dict[str, Any] = {
        "instances from": "source",
        **_sweep_columns(swept),
        entry.size if entry else "size": "size",
        "heuristic": "heuristic",
        "instances": "instances",
        "proven": "proven",
        **({"without a plan": "without_plan"} if summary["without_plan"].any() else {}),
        "feasible": "feasible",
    }
    for title, kind in (("mean", "mean"), ("95th percentile", "p95"), ("worst", "worst")):
        columns[f"gap, {title}"] = lambda row, kind=kind: _gap(row[f"gap_{kind}_low"], row[f"gap_{kind}_high"])
    for kind in ("mean", "worst") if has_zeros(summary) else ():
        columns[f"difference, {kind}"] = lambda row, low=f"difference_{kind}_low", high=f"difference_{kind}_high": Cell(
            number_range(row[low], row[high]), row[high]
        )
    for title, name in (("median time", "median_seconds"), ("median time, exact", "exact_median_seconds")):
        columns[title] = lambda row, name=name: Cell(duration(row[name]), row[name])
    text = ("instances from", "heuristic")
    return Table.of(f"Gaps and times of {problem}", summary.to_dict("records"), columns, text)


def _beside(study: Study, problem: str, rows: pd.DataFrame) -> dict[str, Any] | None:
    """Compare the heuristics two by two; None where there are not two."""
    runs = rows[rows["algorithm"] != EXACT].groupby("algorithm")["instance"].nunique()
    if len(runs) < 2:
        return None
    if (len(runs) - 1) * int(runs.sum()) / 2 > MOST_PAIRED:
        return {"table": None}
    try:
        found = study.compare(problem=problem)
    except StudyError:  # No two were run on the same instance.
        return None
    sorted_by = {"B less A": "difference_high", "gap A": "gap_a_mean_high", "gap B": "gap_b_mean_high"}
    sorted_by |= {"B over A": "ratio"}

    def column(name: str) -> Callable[[Mapping[Any, Any]], Any]:
        def shown(row: Mapping[Any, Any]) -> Any:
            words = shown_pairs(row)[name]
            return Cell(words, row[sorted_by[name]]) if name in sorted_by else words

        return shown

    columns = {str(name): column(str(name)) for name in found.overview() if name != "problem"}
    lines = found.table.to_dict("records")
    return {"table": Table.of(f"Heuristics of {problem}, two by two", lines, columns, ("A", "B", "so"))}


def _relaxation(rows: pd.DataFrame, problem: str, swept: Sequence[str]) -> Table | None:
    """Say how far heuristics are from the paper's own bound, and how much of that the optimum is too."""
    known = rows[
        (rows["status"] == "feasible") & rows["exact_relaxation"].notna() & (rows["exact_status"] == "optimal")
    ]
    if known.empty:
        return None
    scale = known["exact_relaxation"].abs()
    # No parameter that is swept has such a name.
    known = known.assign(
        **{
            "to the bound": (known["exact_relaxation"] - known["value"]).abs() / scale,
            "optimum to the bound": (known["exact_relaxation"] - known["exact_value"]).abs() / scale,
        }
    )
    names = ["source", *swept, "size", "algorithm"]
    header = [
        "instances from",
        *swept,
        "size",
        "heuristic",
        "instances",
        "to the bound",
        "optimum to the bound",
        "of it slack",
    ]
    lines = []
    for key, group in known.groupby(names, sort=False, dropna=False):
        distance, slack = float(group["to the bound"].mean()), float(group["optimum to the bound"].mean())
        share = slack / distance if distance > 0 else float("nan")
        shares = [Cell(percent(one), one) for one in (distance, slack, share)]
        lines.append(dict(zip(header, [*map(_word, key), len(group), *shares], strict=True)))
    return Table.of(f"Distances to the bound of {problem}", lines, header, ("instances from", "heuristic"))


def _worst_of(rows: pd.DataFrame) -> dict[str, list[dict[str, Any]]]:
    """Return, by problem, the rows of the instances on which each heuristic does worst."""
    bad = rows.loc[rows["gap_high"] > 0, ["problem", "algorithm", "gap_high", "size"]]
    bad = bad.sort_values(["gap_high", "size"], ascending=[False, True])
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows.loc[bad.groupby(["problem", "algorithm"], sort=False).head(WORST).index].to_dict("records"):
        found.setdefault(row["problem"], []).append({str(name): value for name, value in row.items()})
    return found


def _worst(study: Study, problem: str, records: list[dict[str, Any]], swept: Sequence[str]) -> Table:
    seed, again = study.metadata["asked"]["seed"], "to see it again, in the study's directory"
    columns: dict[str, Any] = {
        "heuristic": "algorithm",
        **_sweep_columns(swept),
        "size": "size",
        "gap": lambda row: _gap(row["gap_low"], row["gap_high"]),
        "value": lambda row: number(row["value"]),
        "optimum": _optimum,
        "instance": _instance,
        again: lambda row: Cell(_command(row, seed), code=True),
    }
    return Table.of(f"Worst instances of {problem}", records, columns, ("heuristic", "instance", again))


def _optimum(row: Mapping[Any, Any]) -> str:
    """Write the optimum of a row, or where it lies."""
    if row["exact_status"] == "optimal":
        return number(row["exact_value"])
    known = not np.isnan(row["exact_bound"])
    said = f"between {number(row['exact_bound'])} and " if known else "no bound, best found "
    return said + number(row["best_value"])


class _Drawings:
    """Pictures of worst instances: the heuristic's plan beside the exact side's, both as the log keeps them."""

    def __init__(self, study: Study, rows: Sequence[Mapping[str, Any]]) -> None:
        self.study, self.left = study, MOST_DRAWN
        rows = [row for row in rows if int(row["size"]) <= LARGEST_DRAWN]
        wanted = study.rows[study.rows["instance"].isin({row["instance"] for row in rows})]
        exact = wanted[wanted["algorithm"] == EXACT]
        self.exact_keys = dict(zip(exact["instance"], exact["key"], strict=True))
        keys = [*(row["key"] for row in rows), *self.exact_keys.values()]
        self.plans = read_kept(study.directory, "plan", keys) if keys else {}

    def of(self, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Draw the first of a heuristic's worst instances that can be drawn, or say why there is none."""
        for row in rows:
            plan = self.plans.get(row["key"])
            best = self.plans.get(self.exact_keys.get(row["instance"], ""))
            if plan is None or best is None:
                continue
            if not self.left:
                return {"why": f"a report has {MOST_DRAWN} such pictures at most."}
            self.left -= 1
            return self._drawn(row, plan, best)
        if all(int(row["size"]) > LARGEST_DRAWN for row in rows):
            return {"why": f"of an instance of more than size {LARGEST_DRAWN} a picture says little."}
        return {"why": "the log keeps no plans of both sides there."}

    def _drawn(self, row: dict[str, Any], plan: dict[str, Any], best: dict[str, Any]) -> dict[str, Any]:
        found = "optimal" if row["exact_status"] == "optimal" else "exact side's"
        name = row["algorithm"]
        title = f"The plan of {name} beside the {found} one, on the same instance"
        try:
            instance = _stored(self.study, row)
            read = {one: instance.plan_type.from_dict(of) for one, of in ((name, plan), (found, best))}
            svg = plans_side_by_side(instance, read, data=False)
        except (InstanceError, PlanError, OSError) as error:
            return {"why": f"{title}: {error}"}
        return {
            "why": "",
            "title": title,
            "svg": svg,
            "gap": gap_range(row["gap_low"], row["gap_high"]),
            "name": f"Plans of {name} and {found}",
            "file": row["file"],
        }


def _stored(study: Study, row: dict[str, Any]) -> Instance[Any]:
    """Read the instance of a row from its file."""
    instance = load(study.directory / row["file"])
    if instance.digest != row["instance"]:
        raise InstanceError(f"{row['file']}: another instance than the study's: its command writes it anew")
    return instance


def _command(row: Mapping[Any, Any], seed: int) -> str:
    """Write the command that runs the heuristic again; nothing for a function that the command line cannot name."""
    entry = catalogue.CATALOGUE.get(row["problem"])
    if ":" not in row["algorithm"] and (entry is None or row["algorithm"] not in entry.heuristics):
        return ""
    return shlex.join(["optgap", "solve", row["file"], "--heuristic", row["algorithm"], "--seed", str(seed)])


def _disagreements(study: Study) -> Table:
    rows = study.disagreements
    contradicted = rows["verification"].eq("contradicted").any()
    seconds = read_kept(study.directory, "second", rows["key"]) if contradicted else {}

    def against(row: Mapping[Any, Any]) -> str:
        second = seconds.get(row["key"]) if row["verification"] == "contradicted" else None
        if second:
            return f"{second.get('way')}: {second.get('message')}"
        return f"{row['exact_status']}, bound {number(row['exact_bound'])}"

    columns: dict[str, Any] = {
        "problem": "problem",
        "algorithm": "algorithm",
        "value": lambda row: number(row["value"]),
        "against": against,
        "instance": _instance,
    }
    text = ("problem", "algorithm", "against", "instance")
    return Table.of("Oracle disagreements", rows.to_dict("records"), columns, text)


def _failures(rows: pd.DataFrame) -> Table:
    rightly = (rows["status"] == "declined") & (rows["exact_status"] == "infeasible")
    bad = rows[rows["status"].isin(["failed", "infeasible", "declined"]) & (rows["algorithm"] != EXACT) & ~rightly]
    bad = pd.concat([bad, rows[(rows["algorithm"] == EXACT) & (rows["status"] == "failed")]])
    of = ["problem", "algorithm", "status"]
    columns: dict[str, Any] = {
        **{name: name for name in of},
        "runs": "runs",
        "reason of the first": lambda row: str(row["reason"]),
        "instance": _instance,
    }
    firsts = bad.assign(runs=bad.groupby(of, sort=False)["key"].transform("size")).drop_duplicates(of)
    text = (*of, "reason of the first", "instance")
    return Table.of("Runs without a feasible plan", firsts.to_dict("records"), columns, text)


def filled_in(study: Study) -> dict[str, int]:
    """Return what was filled in or changed of the real data, and for how many jobs, as the report tells in full."""
    rows = study.rows[study.rows["source"] == "trace"].drop_duplicates("instance")
    found: Counter[str] = Counter()
    for row in rows.head(MOST_SOURCES).to_dict("records"):
        found.update(repairs(_origin(study, row)))
    return dict(found)


def _sources(study: Study) -> dict[str, Any]:
    """List the files of real data that instances are drawn from, how they were read, and what was repaired."""
    rows = study.rows
    real = rows[rows["source"].isin(["trace", "file"])].drop_duplicates("instance")
    files: dict[str, tuple[str, Mapping[str, Any], int]] = {}
    changed: dict[tuple[str, str], list[int]] = {}
    for row in real.head(MOST_SOURCES).to_dict("records"):
        origin = _origin(study, row)
        for what, reading in read_files(origin):
            # The same file may be read in several ways.
            key = json.dumps([what, reading], sort_keys=True)
            files[key] = (what, reading, files[key][2] + 1 if key in files else 1)
        for what, count in repairs(origin).items():
            changed.setdefault((row["problem"], what), []).append(count)
    columns: dict[str, Any] = {
        "file of": lambda row: row["what"],
        "name": "source",
        "SHA-256": lambda row: str(row.get("sha256", ""))[:12],
        "reader": lambda row: row.get("reader", ""),
        "options": lambda row: json.dumps(row.get("options") or {}),
        "rows": lambda row: row.get("rows", ""),
        "of these": lambda row: "; ".join(told(row)) or "all rows as they are",
        "instances": "times",
    }
    read = [{**reading, "what": what, "times": times} for what, reading, times in files.values()]
    repaired = [
        {"problem": problem, "what": what, "instances": len(of), "jobs": sum(of)}
        for (problem, what), of in changed.items()
    ]
    text = ("file of", "name", "SHA-256", "reader", "options", "of these")
    return {
        "files": Table.of("Files of real data", read, columns, text),
        "repairs": Table.of("Repairs", repaired, ("problem", "what", "instances", "jobs"), ("problem", "what")),
        "instances": len(real),
        "most": MOST_SOURCES,
    }


def _origin(study: Study, row: Mapping[Any, Any]) -> Mapping[str, Any] | None:
    """Say where the stored instance of a row is from; None where its file does not tell."""
    try:
        stored = json.loads((study.directory / row["file"]).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    origin = stored.get("origin") if isinstance(stored, dict) else None
    return origin if isinstance(origin, dict) else None


def _instance(row: Mapping[Any, Any]) -> Cell:
    return Cell(row["instance"][:12], link=quote(row["file"]))
