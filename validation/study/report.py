"""The HTML report of a study: one file, with its pictures inside."""

from __future__ import annotations

import gc
import json
import os
import shlex
import warnings
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd

from instances.base import Instance, InstanceError, PlanError
from instances.files import load, write_whole
from validation import catalogue
from validation.drawing import plans_side_by_side
from validation.formatting import duration, gap_range, number, number_range, percent
from validation.sources import read_files, repairs, told
from validation.study.cases import EXACT
from validation.study.page import (
    Cell,
    Markup,
    document,
    escape,
    figure,
    link,
    picture,
    provenance_section,
    scrolled,
    section,
    table,
)
from validation.study.plots import problem_pictures
from validation.study.results import Study, collect, has_zeros, read_kept
from validation.study.store import Warn

__all__ = ["finish"]

WORST = 2
"""Instances listed for each heuristic."""
LARGEST_DRAWN = 40
"""Size up to which an instance is drawn: beyond, a picture says little."""
MOST_DRAWN = 24
"""Pictures of worst instances, one for each heuristic of a problem: more would take longer than all the rest."""
MOST_SOURCES = 1000
"""Instances of real data whose files are asked where they are from."""


def finish(directory: str | os.PathLike[str], warn: Warn = warnings.warn) -> Study:
    """Write table, metadata and report of a study, finished or not, from its log.

    Parameters
    ----------
    directory : path
    warn : callable, optional
        Told of each line of the log that is damaged, and passed over.

    Raises
    ------
    StudyError
        When the directory holds no study.
    """
    study = collect(directory, warn)
    # While pictures are drawn the collector has to look through what they are made of, and not through all else.
    gc.freeze()
    try:
        write_whole(study.report, _page(study))
    finally:
        gc.unfreeze()
    return study


def _page(study: Study) -> str:
    problems = list(dict.fromkeys(study.rows["problem"]))
    worst = _worst_of(study.rows)
    drawings = _Drawings(study, [row for rows in worst.values() for row in rows])
    summary = study.summary()
    sections = [
        # Rows of a single problem are not copied.
        _problem(
            study,
            problem,
            study.rows[study.rows["problem"] == problem] if len(problems) > 1 else study.rows,
            summary,
            worst.get(problem, []),
            drawings,
        )
        for problem in problems
    ]
    contents = "".join(f"<li>{link(f'#{quote(one)}', one)} {escape(_title(one))}</li>" for one in problems)
    body = f"""<h1>Optimality gaps</h1>
{_verdict(study)}
<nav aria-label="Problems"><ul>{contents}</ul></nav>
<details><summary>How to read the numbers</summary>{_READING}</details>
{_glance(study.rows, worst, study.swept)}
{_disagreements(study)}
{"".join(sections)}
{_failures(study)}
{_sources(study)}
{provenance_section(study.metadata, ("results.parquet", "metadata.json"))}"""
    return document(f"Optimality gaps: {', '.join(problems)}", body)


_READING = """
<p>The <b>gap</b> of a feasible plan of value <i>v</i> is |<i>v</i> − <i>v</i>*| / |<i>v</i>*|, where <i>v</i>* is the
proven optimum of the instance. Every value is recomputed from the plan and the instance's data, never taken from a
solver. <b>Proven</b> counts the instances whose optimum the exact side proved within the time limit. On the others
<i>v</i>* lies between the proven bound and the best feasible value known, so the gap is an interval, shown as
“a to b”. Instances that the exact side proved to have no plan at all are counted apart, <b>without a plan</b>, and a
heuristic that declines there is right. To an optimum of 0 every gap is infinite: where there is one, the
<b>difference</b> |<i>v</i> − <i>v</i>*|, in the measure of the values, stands beside the gap.
Means, percentiles and worst cases are over the feasible plans only: read them beside the number of
<b>feasible</b> plans. The 95th percentile is an observed gap that at least 95% of the instances do not exceed.</p>
<p>A feasible plan that beats a proven bound is an <b>oracle disagreement</b>: a model, a bound or a judge is wrong, and
no number of that problem should be used before it is explained.</p>"""


def _verdict(study: Study) -> str:
    rows, meta = study.rows, study.metadata
    exact = rows[rows["algorithm"] == EXACT]
    proven, without = (int((exact["status"] == status).sum()) for status in ("optimal", "infeasible"))
    none = f", {without} proven to have no plan" if without else ""
    stopped = f", {len(study.stopped)} exact solves were stopped at a limit" if len(study.stopped) else ""
    said = (
        f"{len(exact)} instances, {proven} of them solved to proven optimality{none}; "
        f"{len(rows) - len(exact)} runs of heuristics, {len(study.failures)} runs failed{stopped}."
    )
    if meta["shard"]:
        said += (
            f" <b>Shard {escape(meta['shard'])}:</b> {meta['cells_ended']} of the study's {meta['cells']} runs are "
            "here, and gaps are as far as these tell."
        )
    elif not meta["finished"]:
        said += f" <b>Unfinished:</b> {meta['cells_ended']} of {meta['cells']} runs have ended."
    if meta["damaged_lines"]:
        said += f" <b>Damaged:</b> {meta['damaged_lines']} lines of the log, which are no rows, were passed over."
    if study.verified:
        said += f" What the exact side proved, found once more by a second way: {study.verified}."
    wrong = meta["disagreements"]
    if wrong:
        return f'<p class="bad">{wrong} oracle disagreement{"s" * (wrong > 1)}: see below.</p><p>{said}</p>'
    return f'<p class="good">No oracle disagreement: no heuristic beats a proven bound.</p><p>{said}</p>'


def _glance(rows: pd.DataFrame, worst: Mapping[str, Sequence[Mapping[str, Any]]], swept: Sequence[str]) -> str:
    """A line for each heuristic of a problem, over all sizes."""
    lines: list[list[str | Cell]] = []
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
        some = len(high) > 0
        optimal = float((high == 0).sum() / count)
        lines.append(
            [
                link(f"#{quote(problem)}", problem),
                *values,
                name,
                str(count),
                str((mine & proven).sum()),
                str((mine & feasible).sum()),
                Cell(percent(optimal), optimal),
                _gap(low.mean(), high.mean()) if some else "–",
                _to_the_worst(_gap(low.max(), high.max()), [*values, name], worst.get(problem, ()), swept)
                if some
                else "–",
            ]
        )
    if not lines:
        return ""
    header = ["problem", *swept, "heuristic", "instances", "optimum proven", "feasible plans", "optimal plans"]
    shown = table(
        [*header, "mean gap", "worst gap"],
        lines,
        name="Each heuristic at a glance",
        text_columns=(0, *range(1, len(swept) + 2)),
    )
    said = (
        "<p>Over all sizes; gaps are those of the feasible plans. Optimal are plans whose gap is proven to be 0. A "
        "worst gap leads to its instance.</p>"
    )
    return section("At a glance", said + shown, id="glance")


def _word(value: Any) -> str:
    """A value in a table; nothing where a sweep is not about its row."""
    return "" if pd.isna(value) else str(value)


def _gap(low: float, high: float) -> Cell:
    return Cell(gap_range(low, high), high)


def _to_the_worst(gap: Cell, line: Sequence[str], worst: Sequence[Mapping[str, Any]], swept: Sequence[str]) -> Cell:
    """A gap that leads to the heuristic's worst instance, if that is in this line of a sweep."""
    for at, name in enumerate(dict.fromkeys(row["algorithm"] for row in worst)):
        row = next(row for row in worst if row["algorithm"] == name)
        if [*(_word(row[one]) for one in swept), name] == [*line]:
            return Cell(link(f"#{quote(_mark(row['problem'], at))}", gap.words), gap.key)
    return gap


def _mark(problem: str, number: int) -> str:
    """Name of the place of a heuristic's worst instance; names of heuristics are anybody's."""
    return f"{problem}-worst-{number + 1}"


def _problem(
    study: Study,
    problem: str,
    rows: pd.DataFrame,
    summary: pd.DataFrame,
    worst: list[dict[str, Any]],
    drawings: _Drawings,
) -> str:
    swept = [name for name in study.swept if rows[name].notna().any()]
    pictures = "".join(
        figure(f"{title} of {problem}", reading, svg) for title, reading, svg in problem_pictures(rows, swept)
    )
    sense = "smaller values are better" if rows["sense"].iloc[0] == "min" else "greater values are better"
    entry = catalogue.CATALOGUE.get(problem)
    source = f"{entry.source}; " if entry else ""
    return section(
        problem,
        f"<p>{escape(_title(problem))} ({escape(source)}{sense}).</p>"
        + _summary_table(summary, problem, swept)
        + section("Plots", f'<div class="pictures">{pictures}</div>', id=f"{problem}-plots", level=3)
        + _relaxation(rows, problem, swept)
        + _worst(study, problem, worst, drawings, swept),
        id=problem,
    )


def _title(problem: str) -> str:
    entry = catalogue.CATALOGUE.get(problem)
    return entry.title if entry else ""


def _summary_table(summary: pd.DataFrame, problem: str, swept: Sequence[str]) -> str:
    if summary.empty:
        return "<p>No heuristic was run.</p>"
    lines: list[list[str | Cell]] = []
    mine = summary[summary["problem"] == problem]
    records: list[dict[str, Any]] = mine.to_dict("records")  # type: ignore[assignment]
    without, zeros = bool(mine["without_plan"].any()), has_zeros(mine)
    for row in records:
        gaps = [_gap(row[f"gap_{kind}_low"], row[f"gap_{kind}_high"]) for kind in ("mean", "p95", "worst")]
        if zeros:
            for kind in ("mean", "worst"):
                low, high = row[f"difference_{kind}_low"], row[f"difference_{kind}_high"]
                gaps.append(Cell(number_range(low, high), high))
        lines.append(
            [
                row["source"],
                *(_word(row[name]) for name in swept),
                str(row["size"]),
                row["heuristic"],
                str(row["instances"]),
                str(row["proven"]),
                *([str(row["without_plan"])] if without else []),
                str(row["feasible"]),
                *gaps,
                *(Cell(duration(row[name]), row[name]) for name in ("median_seconds", "exact_median_seconds")),
            ]
        )
    entry = catalogue.CATALOGUE.get(problem)
    header = [
        "instances from",
        *swept,
        entry.size if entry else "size",
        "heuristic",
        "instances",
        "proven",
        *(["without a plan"] if without else []),
        "feasible",
        "gap, mean",
        "gap, 95th percentile",
        "gap, worst",
        *(["difference, mean", "difference, worst"] if zeros else []),
        "median time",
        "median time, exact",
    ]
    return table(header, lines, name=f"Gaps and times of {problem}", text_columns=(0, 2 + len(swept)))


def _relaxation(rows: pd.DataFrame, problem: str, swept: Sequence[str]) -> str:
    """How far heuristics are from the paper's own bound, and how much of that the optimum is too."""
    known = rows[
        (rows["status"] == "feasible") & rows["exact_relaxation"].notna() & (rows["exact_status"] == "optimal")
    ]
    if known.empty:
        return ""
    scale = known["exact_relaxation"].abs()
    # No parameter that is swept has such a name.
    known = known.assign(
        **{
            "to the bound": (known["exact_relaxation"] - known["value"]).abs() / scale,
            "optimum to the bound": (known["exact_relaxation"] - known["exact_value"]).abs() / scale,
        }
    )
    lines: list[list[str | Cell]] = []
    names = ["source", *swept, "size", "algorithm"]
    for key, group in known.groupby(names, sort=False, dropna=False):
        distance, slack = float(group["to the bound"].mean()), float(group["optimum to the bound"].mean())
        share = slack / distance if distance > 0 else float("nan")
        shares = [Cell(percent(one), one) for one in (distance, slack, share)]
        lines.append([*map(_word, key), str(len(group)), *shares])
    header = ["instances from", *swept, "size", "heuristic", "instances"]
    header += ["to the bound", "optimum to the bound", "of it slack"]
    said = (
        "<p>The paper measures its heuristic against a relaxation. Part of that distance is the relaxation's own "
        "slack, which no plan can make up for. Feasible plans on instances solved to optimality; distances are means, "
        "relative to the bound.</p>"
    )
    shown = table(header, lines, name=f"Distances to the bound of {problem}", text_columns=(0, 2 + len(swept)))
    return section("Against the paper's bound", said + shown, id=f"{problem}-bound", level=3)


def _worst_of(rows: pd.DataFrame) -> dict[str, list[dict[str, Any]]]:
    """By problem, the rows of the instances on which each heuristic does worst."""
    bad = rows.loc[rows["gap_high"] > 0, ["problem", "algorithm", "gap_high", "size"]]
    bad = bad.sort_values(["gap_high", "size"], ascending=[False, True])
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows.loc[bad.groupby(["problem", "algorithm"], sort=False).head(WORST).index].to_dict("records"):
        found.setdefault(row["problem"], []).append({str(name): value for name, value in row.items()})
    return found


def _worst(study: Study, problem: str, records: list[dict[str, Any]], drawings: _Drawings, swept: Sequence[str]) -> str:
    title, mark = "Worst instances", f"{problem}-worst"
    if not records:
        return section(title, "<p>No feasible plan was worse than the optimum.</p>", id=mark, level=3)
    seed = study.metadata["asked"]["seed"]
    lines = []
    for row in records:
        exact = number(row["exact_value"])
        if row["exact_status"] != "optimal":
            known = not np.isnan(row["exact_bound"])
            exact = f"between {number(row['exact_bound'])} and " if known else "no bound, best found "
            exact += number(row["best_value"])
        lines.append(
            [
                row["algorithm"],
                *(_word(row[name]) for name in swept),
                str(row["size"]),
                _gap(row["gap_low"], row["gap_high"]),
                number(row["value"]),
                exact,
                _instance(row),
                _command(row, seed),
            ]
        )
    header = ["heuristic", *swept, "size", "gap", "value", "optimum", "instance"]
    header += ["to see it again, in the study's directory"]
    last = len(header) - 1
    shown = table(header, lines, name=f"Worst instances of {problem}", text_columns=(0, last - 1, last))
    by_heuristic: dict[str, list[dict[str, Any]]] = {}
    for row in records:
        by_heuristic.setdefault(row["algorithm"], []).append(row)
    pictures = "".join(
        f"<details><summary>{escape(name)}: a gap of {gap_range(rows[0]['gap_low'], rows[0]['gap_high'])} on an "
        f"instance of size {rows[0]['size']}</summary>"
        f'<div id="{escape(_mark(problem, at))}">{drawings.of(rows)}</div></details>\n'
        for at, (name, rows) in enumerate(by_heuristic.items())
    )
    return section(title, shown + pictures, id=mark, level=3)


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

    def of(self, rows: Sequence[dict[str, Any]]) -> str:
        """The first of a heuristic's worst instances that can be drawn, or why there is none."""
        for row in rows:
            plan = self.plans.get(row["key"])
            best = self.plans.get(self.exact_keys.get(row["instance"], ""))
            if plan is None or best is None:
                continue
            if not self.left:
                return f"<p>Not drawn: a report has {MOST_DRAWN} such pictures at most.</p>"
            self.left -= 1
            return self._drawn(row, plan, best)
        if all(int(row["size"]) > LARGEST_DRAWN for row in rows):
            return f"<p>Not drawn: of an instance of more than size {LARGEST_DRAWN} a picture says little.</p>"
        return "<p>Not drawn: the log keeps no plans of both sides there.</p>"

    def _drawn(self, row: dict[str, Any], plan: dict[str, Any], best: dict[str, Any]) -> str:
        found = "optimal" if row["exact_status"] == "optimal" else "exact side's"
        name, gap = row["algorithm"], gap_range(row["gap_low"], row["gap_high"])
        title = f"The plan of {name} beside the {found} one, on the same instance"
        reading = f"A gap of {gap}, on {row['file']}."
        try:
            instance = _stored(self.study, row)
            read = {one: instance.plan_type.from_dict(of) for one, of in ((name, plan), (found, best))}
            svg = plans_side_by_side(instance, read, data=False)
        except (InstanceError, PlanError, OSError) as error:
            return f"<p>Not drawn: {escape(title)}: {escape(error)}</p>"
        plans = scrolled(f"Plans of {name} and {found}", picture(title, svg), "wide plans")
        return f"<figure>{plans}<figcaption><b>{escape(title)}.</b> {escape(reading)}</figcaption></figure>"


def _stored(study: Study, row: dict[str, Any]) -> Instance[Any]:
    """The instance of a row, from its file."""
    instance = load(study.directory / row["file"])
    if instance.digest != row["instance"]:
        raise InstanceError(f"{row['file']}: another instance than the study's: its command writes it anew")
    return instance


def _command(row: dict[str, Any], seed: int) -> Markup:
    """What runs the heuristic again; nothing for a function that the command line cannot name."""
    entry = catalogue.CATALOGUE.get(row["problem"])
    if ":" not in row["algorithm"] and (entry is None or row["algorithm"] not in entry.heuristics):
        return Markup()
    command = ["optgap", "solve", row["file"], "--heuristic", row["algorithm"], "--seed", str(seed)]
    return Markup(f"<code>{escape(shlex.join(command))}</code>")


def _disagreements(study: Study) -> str:
    rows = study.disagreements
    if rows.empty:
        return ""
    contradicted = rows["verification"].eq("contradicted").any()
    seconds = read_kept(study.directory, "second", rows["key"]) if contradicted else {}

    def against(row: Mapping[Any, Any]) -> str:
        second = seconds.get(row["key"]) if row["verification"] == "contradicted" else None
        if second:
            return f"{second.get('way')}: {second.get('message')}"
        return f"{row['exact_status']}, bound {number(row['exact_bound'])}"

    lines = [
        [row["problem"], row["algorithm"], number(row["value"]), against(row), _instance(row)]
        for row in rows.to_dict("records")
    ]
    header = ["problem", "algorithm", "value", "against", "instance"]
    shown = table(header, lines, name="Oracle disagreements", text_columns=(0, 1, 3, 4))
    return section("Oracle disagreements", shown, id="disagreements")


def _failures(study: Study) -> str:
    rows = study.rows
    rightly = (rows["status"] == "declined") & (rows["exact_status"] == "infeasible")
    bad = rows[rows["status"].isin(["failed", "infeasible", "declined"]) & (rows["algorithm"] != EXACT) & ~rightly]
    bad = pd.concat([bad, rows[(rows["algorithm"] == EXACT) & (rows["status"] == "failed")]])
    if bad.empty:
        return ""
    lines = []
    for (problem, algorithm, status), group in bad.groupby(["problem", "algorithm", "status"], sort=False):
        first = group.iloc[0]
        lines.append(
            [
                str(problem),
                str(algorithm),
                str(status),
                str(len(group)),
                str(first["reason"]),
                _instance(first),
            ]
        )
    header = ["problem", "algorithm", "status", "runs", "reason of the first", "instance"]
    shown = table(header, lines, name="Runs without a feasible plan", text_columns=(0, 1, 2, 4, 5))
    return section("Runs without a feasible plan", shown, id="failures")


def _sources(study: Study) -> str:
    """The files of real data that instances are drawn from, how they were read, and what was repaired."""
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
    if not files:
        return ""
    read = [
        [
            what,
            str(reading["source"]),
            str(reading.get("sha256", ""))[:12],
            str(reading.get("reader", "")),
            json.dumps(reading.get("options") or {}),
            str(reading.get("rows", "")),
            "; ".join(told(reading)) or "all rows as they are",
            str(times),
        ]
        for what, reading, times in files.values()
    ]
    repaired = [[problem, what, str(len(of)), str(sum(of))] for (problem, what), of in changed.items()]
    rest = f"<p>Of the first {MOST_SOURCES} instances of {len(real):,}.</p>" if len(real) > MOST_SOURCES else ""
    header = ["file of", "name", "SHA-256", "reader", "options", "rows", "of these", "instances"]
    second = (
        section(
            "Changed or filled in for an instance",
            table(["problem", "what", "instances", "jobs"], repaired, name="Repairs", text_columns=(0, 1)),
            id="repairs",
            level=3,
        )
        if repaired
        else ""
    )
    first = table(header, read, name="Files of real data", text_columns=(0, 1, 2, 3, 4, 6))
    return section("Real data", rest + first + second, id="sources")


def _origin(study: Study, row: Mapping[Any, Any]) -> Mapping[str, Any] | None:
    """Where the stored instance of a row is from; None where its file does not tell."""
    try:
        stored = json.loads((study.directory / row["file"]).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    origin = stored.get("origin") if isinstance(stored, dict) else None
    return origin if isinstance(origin, dict) else None


def _instance(row: Mapping[Any, Any] | pd.Series[Any]) -> Markup:
    return link(quote(row["file"]), row["instance"][:12])
