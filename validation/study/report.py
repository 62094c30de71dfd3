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

import pandas as pd

from instances.base import Instance, InstanceError, PlanError
from instances.files import load, write_whole
from validation import catalogue
from validation.drawing import plans_side_by_side
from validation.formatting import duration, gap_range, number, number_range, percent
from validation.sources import read_files, repairs, told
from validation.study.cases import EXACT
from validation.study.page import CSS, Markup, escape, figure, link, provenance_section, table
from validation.study.plots import looks, problem_pictures
from validation.study.results import Study, collect, has_zeros, read_kept
from validation.study.store import Warn

__all__ = ["finish"]

WORST = 2
"""Instances listed for each heuristic."""
LARGEST_DRAWN = 40
"""Size up to which an instance is drawn: beyond, a picture says little."""
MOST_DRAWN = 12
"""Problems of which the worst instance is drawn, the first: a page is to be sent around."""
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
    plans = _Plans(study, [row for problem in problems[:MOST_DRAWN] for row in worst.get(problem, [])])
    summary = study.summary()
    sections = [
        # Rows of a single problem are not copied.
        _problem(
            study,
            problem,
            study.rows[study.rows["problem"] == problem] if len(problems) > 1 else study.rows,
            summary,
            worst.get(problem, []),
            plans,
        )
        for problem in problems
    ]
    contents = "".join(
        f"<li>{link(f'#{quote(problem)}', problem)} {escape(_title(problem))}</li>" for problem in problems
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Optimality gaps: {escape(", ".join(problems))}</title><style>{CSS}</style></head><body>
<h1>Optimality gaps</h1>
{_verdict(study)}
<ul class="contents">{contents}</ul>
<details><summary>How to read the numbers</summary>{_READING}</details>
{_disagreements(study)}
{"".join(sections)}
{_failures(study)}
{_sources(study)}
{provenance_section(study.metadata, ("results.parquet", "metadata.json"))}
</body></html>
"""


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
    said = (
        f"{len(exact)} instances, {proven} of them solved to proven optimality{none}; "
        f"{len(rows) - len(exact)} runs of heuristics, {meta['failed']} runs failed."
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


def _problem(
    study: Study,
    problem: str,
    rows: pd.DataFrame,
    summary: pd.DataFrame,
    worst: list[dict[str, Any]],
    plans: _Plans,
) -> str:
    pictures = "".join(figure(f"{title} of {problem}", reading, svg) for title, reading, svg in problem_pictures(rows))
    legend = "".join(
        f'<span><b style="background:{look["color"]}"></b>{escape(name)}</span>' for name, look in looks(rows).items()
    )
    sense = "smaller values are better" if rows["sense"].iloc[0] == "min" else "greater values are better"
    entry = catalogue.CATALOGUE.get(problem)
    source = f"{entry.source}; " if entry else ""
    return (
        f'<section id="{escape(problem)}"><h2>{escape(problem)}</h2>'
        f"<p>{escape(_title(problem))} ({escape(source)}{sense}).</p>"
        f'{_summary_table(summary, problem)}<div class="legend">{legend}</div><div class="pictures">{pictures}</div>'
        f"{_relaxation(rows)}{_worst(study, worst, plans)}</section>"
    )


def _title(problem: str) -> str:
    entry = catalogue.CATALOGUE.get(problem)
    return entry.title if entry else ""


def _summary_table(summary: pd.DataFrame, problem: str) -> str:
    if summary.empty:
        return "<p>No heuristic was run.</p>"
    lines = []
    mine = summary[summary["problem"] == problem]
    records: list[dict[str, Any]] = mine.to_dict("records")  # type: ignore[assignment]
    without, zeros = bool(mine["without_plan"].any()), has_zeros(mine)
    for row in records:
        gaps = [gap_range(row[f"gap_{kind}_low"], row[f"gap_{kind}_high"]) for kind in ("mean", "p95", "worst")]
        if zeros:
            gaps += [
                number_range(row[f"difference_{kind}_low"], row[f"difference_{kind}_high"])
                for kind in ("mean", "worst")
            ]
        lines.append(
            [
                row["source"],
                str(row["size"]),
                row["heuristic"],
                str(row["instances"]),
                str(row["proven"]),
                *([str(row["without_plan"])] if without else []),
                str(row["feasible"]),
                *gaps,
                duration(row["median_seconds"]),
                duration(row["exact_median_seconds"]),
            ]
        )
    entry = catalogue.CATALOGUE.get(problem)
    header = [
        "instances from",
        entry.size if entry else "size",
        "heuristic",
        "instances",
        "proven",
        *(["without a plan"] if without else []),
        "feasible",
        "gap, mean",
        "95th percentile",
        "worst",
        *(["difference, mean", "worst"] if zeros else []),
        "median time",
        "exact",
    ]
    return table(header, lines, text_columns=(0, 2))


def _relaxation(rows: pd.DataFrame) -> str:
    """How far heuristics are from the paper's own bound, and how much of that the optimum is too."""
    known = rows[
        (rows["status"] == "feasible") & rows["exact_relaxation"].notna() & (rows["exact_status"] == "optimal")
    ]
    if known.empty:
        return ""
    scale = known["exact_relaxation"].abs()
    known = known.assign(
        distance=(known["exact_relaxation"] - known["value"]).abs() / scale,
        slack=(known["exact_relaxation"] - known["exact_value"]).abs() / scale,
    )
    lines = []
    for (source, size, name), group in known.groupby(["source", "size", "algorithm"], sort=False):
        distance, slack = float(group["distance"].mean()), float(group["slack"].mean())
        share = percent(slack / distance) if distance > 0 else "–"
        lines.append([str(source), str(size), str(name), str(len(group)), percent(distance), percent(slack), share])
    header = ["instances from", "size", "heuristic", "instances", "to the bound", "optimum to the bound", "of it slack"]
    return (
        "<h3>Against the paper's bound</h3><p>The paper measures its heuristic against a relaxation. Part of that "
        "distance is the relaxation's own slack, which no plan can make up for. Feasible plans on instances solved to "
        "optimality; distances are means, relative to the bound.</p>" + table(header, lines, text_columns=(0, 2))
    )


def _worst_of(rows: pd.DataFrame) -> dict[str, list[dict[str, Any]]]:
    """By problem, the rows of the instances on which each heuristic does worst."""
    bad = rows.loc[rows["gap_high"] > 0, ["problem", "algorithm", "gap_high", "size"]]
    bad = bad.sort_values(["gap_high", "size"], ascending=[False, True])
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows.loc[bad.groupby(["problem", "algorithm"], sort=False).head(WORST).index].to_dict("records"):
        found.setdefault(row["problem"], []).append({str(name): value for name, value in row.items()})
    return found


def _worst(study: Study, records: list[dict[str, Any]], plans: _Plans) -> str:
    if not records:
        return "<p>No feasible plan was worse than the optimum.</p>"
    seed = study.metadata["asked"]["seed"]
    lines = []
    for row in records:
        exact = number(row["exact_value"])
        if row["exact_status"] != "optimal":
            exact = f"between {number(row['exact_bound'])} and {number(row['best_value'])}"
        lines.append(
            [
                row["algorithm"],
                str(row["size"]),
                gap_range(row["gap_low"], row["gap_high"]),
                number(row["value"]),
                exact,
                _instance(row),
                _command(row, seed),
            ]
        )
    header = ["heuristic", "size", "gap", "value", "optimum", "instance", "to see it again, in the study's directory"]
    shown = table(header, lines, text_columns=(0, 5, 6))
    return f"<h3>Worst instances</h3>{shown}{_picture_of_the_worst(study, records, plans)}"


class _Plans:
    """The plans that the log keeps of some rows, and of the exact side on their instances."""

    def __init__(self, study: Study, rows: Sequence[Mapping[str, Any]]) -> None:
        wanted = study.rows[study.rows["instance"].isin({row["instance"] for row in rows})]
        exact = wanted[wanted["algorithm"] == EXACT]
        self.exact_keys = dict(zip(exact["instance"], exact["key"], strict=True))
        keys = [*(row["key"] for row in rows), *self.exact_keys.values()]
        self.plans = read_kept(study.directory, "plan", keys) if keys else {}

    def of(self, row: Mapping[str, Any]) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
        """The plan of a row, and the exact side's."""
        return self.plans.get(row["key"]), self.plans.get(self.exact_keys.get(row["instance"], ""))


def _picture_of_the_worst(study: Study, bad: list[dict[str, Any]], plans: _Plans) -> str:
    """The worst instance whose plans the log keeps: the data, the heuristic's plan, and the best one found."""
    for row in bad:
        plan, best = plans.of(row)
        if plan is None or best is None or int(row["size"]) > LARGEST_DRAWN:
            continue
        found = "optimal" if row["exact_status"] == "optimal" else "best found"
        caption = f"{row['algorithm']} where it does worst, beside the {found} plan ({row['file']})"
        try:
            instance = _stored(study, row)
            drawn = {row["algorithm"]: plan, found: best}
            read = {name: instance.plan_type.from_dict(plan) for name, plan in drawn.items()}
            picture = plans_side_by_side(instance, read)
        except (InstanceError, PlanError, OSError) as error:
            return f"<p>Not drawn: {escape(caption)}: {escape(error)}</p>"
        return figure(caption, caption, picture)
    return ""


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
    return (
        '<section class="bad"><h2>Oracle disagreements</h2>'
        + table(header, lines, text_columns=(0, 1, 3, 4))
        + "</section>"
    )


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
    return (
        "<section><h2>Runs without a feasible plan</h2>"
        + table(header, lines, text_columns=(0, 1, 2, 4, 5))
        + "</section>"
    )


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
        "<h3>Changed or filled in for an instance</h3>"
        + table(["problem", "what", "instances", "jobs"], repaired, text_columns=(0, 1))
        if repaired
        else ""
    )
    return f"<section><h2>Real data</h2>{rest}{table(header, read, text_columns=(0, 1, 2, 3, 4, 6))}{second}</section>"


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
