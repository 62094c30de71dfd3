"""``python -m benchmarks.growth``: how times grow with the size, for the page docs/growth.md and its pictures.

Every heuristic over three decades of its problem's size, every exact model over two, in steps of the square root of
ten from the smallest size of the catalogue, generators at their defaults.  A series ends early where its next run
would take longer than the limit.  Times are processor times, with one solver thread, of the median of up to three
instances; each is a new copy of its instance, that nothing has been worked out of before.  Proofs have a limit of
their own, and what is left open within it at the size of a paper's cluster is measured, too.

What has been measured is kept, a file for each problem, so that a run that was stopped is taken up where it was.
"""

from __future__ import annotations

import gc
import inspect
import json
import math
import re
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import formulations
from benchmarks import PAPERS, by_paper, chosen
from benchmarks.sizes import beside, drawn, on_cluster
from formulations import Solution
from instances.base import Instance
from instances.files import write_whole
from validation.catalogue import CATALOGUE, Entry
from validation.formatting import duration
from validation.kernel.asking import alike, call
from validation.kernel.isolation import Apart
from validation.kernel.provenance import provenance
from validation.pages.drawing import own_style
from validation.pages.render import render

__all__ = ["app", "exponent", "grown", "main", "measured", "page", "sizes"]

EXACT = "exact model"
DECADES = {True: 2, False: 3}
"""Of size, for exact models and for heuristics."""
MEMORY = 6 * 10**9
"""Bytes that a process may take."""
INSTANCES = 3
"""Of each size, where they are not over soon."""
ENOUGH = 0.2
"""Seconds of a heuristic's runs after which no further one is made."""
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6D31", "#7F7F7F")
DOCS = Path(__file__).parents[1] / "docs"
TEMPLATE = Path(__file__).resolve().with_suffix(".md.j2")

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


def sizes(entry: Entry, exact: bool) -> list[int]:
    """Return the sizes of a series: the smallest of the catalogue and up, two to a decade."""
    return [round(entry.sizes[0] * 10 ** (step / 2)) for step in range(2 * DECADES[exact] + 1)]


@lru_cache(maxsize=3)
def _drawn(problem: str, size: int, seed: int) -> Instance[Any]:
    return drawn(problem, {CATALOGUE[problem].size: size, **beside(problem, size)}, seed)


def _seconds(function: Callable[[Any], Any], instance: Instance[Any]) -> tuple[Any, float]:
    """Return what a function makes of a copy of an instance that remembers nothing, and its processor time, s."""
    copied = replace(instance)
    gc.collect()
    began = time.process_time()
    result = function(copied)
    return result, time.process_time() - began


def run(problem: str, heuristic: str, size: int, *, enough: float = ENOUGH) -> dict[str, Any]:
    """Measure the processor time of a heuristic at one size, s.

    Parameters
    ----------
    problem, heuristic : str
    size : int
    enough : float
        Seconds of runs after which no further instance, of three, is tried.

    Returns
    -------
    dict
        "seconds": the median; None where there was no plan; "numbers": the dimensions of the first instance and its
        whole numbers.
    """
    asked = CATALOGUE[problem].heuristics[heuristic]

    def plan(instance: Instance[Any]) -> Any:
        return call(instance, asked, alike())

    times: list[list[float]] = []
    for seed in range(INSTANCES):
        instance = _drawn(problem, size, seed)
        if not seed:
            numbers = _numbers(instance)
            if size < 100:
                plan(replace(instance))  # What is imported at the first call.
        result, took = _seconds(plan, instance)
        if result is None:
            continue
        times.append([took])
        while sum(times[-1]) < ENOUGH / 10 and len(times[-1]) < 5:
            times[-1].append(_seconds(plan, instance)[1])
        if sum(map(sum, times)) > enough:
            break
    # What says no is over soon.
    median = statistics.median(map(statistics.median, times)) if times else None
    return {"seconds": median, "numbers": numbers}


def prove(problem: str, settings: dict[str, Any], limit: float, most: int = INSTANCES) -> dict[str, Any]:
    """Solve three instances, or as many until so many are left open.

    Parameters
    ----------
    problem : str
    settings : dict
        What is drawn otherwise than by default.
    limit : float
        Of each solve, s.
    most : int

    Returns
    -------
    dict
        "seconds": the median of the processor times; "proven" and "of": of how many instances how many were proven;
        "gap": the median of what lies between plan and bound, relative to the plan's value, None without a plan;
        "numbers": the dimensions of the first instance and its whole numbers.
    """
    solved: list[tuple[Solution, float]] = []
    left = 0
    for seed in range(INSTANCES):
        instance = drawn(problem, settings, seed)
        if not seed:
            numbers = _numbers(instance)
            formulations.solve(replace(instance), time_limit=min(limit, ENOUGH))  # What is imported at the first call.
        solved.append(_seconds(lambda one: formulations.solve(one, time_limit=limit), instance))
        left += solved[-1][0].status not in ("optimal", "infeasible")
        if left == most:
            break
    gap = statistics.median(0.0 if one.status == "infeasible" else one.gap for one, _ in solved)
    return {
        "seconds": statistics.median(took for _, took in solved),
        "proven": len(solved) - left,
        "of": len(solved),
        "gap": gap if math.isfinite(gap) else None,
        "numbers": numbers,
    }


def _numbers(instance: Instance[Any]) -> dict[str, int]:
    return {**instance.dims, **_whole_numbers(instance)}


def _whole_numbers(instance: Instance[Any]) -> dict[str, int]:
    named = ("num_servers", "num_gpus", "capacity", "demand", "num_pairs", "num_slots")
    found = {name: getattr(instance, name, None) for name in named}
    return {name: int(value) for name, value in found.items() if isinstance(value, int | np.integer)}


def measured(problem: str, limit: float, proof: float, most: int | None = None) -> dict[str, Any]:
    """Measure the series of all algorithms of a problem.

    Parameters
    ----------
    problem : str
    limit : float
        Seconds that a heuristic may be expected to take.
    proof : float
        Limit of each solve, s.
    most : int, optional
        Sizes of a series, where not all are asked for.

    Returns
    -------
    dict
        "series": of each algorithm "points", pairs of size and seconds, and "end", why there are no more; "numbers":
        by the size; "cluster": what :func:`prove` says at the papers' sizes, with its "settings".
    """
    entry = CATALOGUE[problem]
    series: dict[str, Any] = {name: {"points": [], "end": ""} for name in (EXACT, *entry.heuristics)}
    numbers: dict[str, dict[str, int]] = {}
    with Apart(run, memory=MEMORY) as apart, Apart(prove, memory=MEMORY) as proving:

        def proved(settings: dict[str, Any], patience: int) -> dict[str, Any]:
            answer = proving.ask(problem, settings, proof, patience, seconds=4 * INSTANCES * proof + 120)
            return answer.content or {"error": answer.reason}

        for size in sizes(entry, exact=False)[:most]:
            for name, one in series.items():
                if one["end"] or size > sizes(entry, exact=name == EXACT)[-1]:
                    continue
                if name != EXACT and _expected(one["points"], size) > limit:
                    one["end"] = f"{size:,} would take longer than {limit:g} s"
                    continue
                if name == EXACT:
                    # Of three, two decide.
                    told = proved({entry.size: size, **beside(problem, size)}, INSTANCES // 2 + 1)
                else:
                    answer = apart.ask(problem, name, size, seconds=20 * limit + 120)
                    told = answer.content or {"error": answer.reason}
                if "error" in told:
                    one["end"] = f"{size:,}: {told['error']}"
                    continue
                numbers[str(size)] = told["numbers"]
                if name == EXACT and 2 * told["proven"] < told["of"]:
                    one["end"] = f"{size:,} not proven in {proof:g} s"
                elif told["seconds"] is None:
                    one["end"] = f"{size:,}: it gives no plan"
                else:
                    one["points"].append([size, told["seconds"]])
        cluster = on_cluster(problem) if most is None else {entry.size: entry.sizes[0]}
        told = proved(cluster, INSTANCES)
    return {"series": series, "numbers": numbers, "cluster": {"settings": cluster, **told}}


def _expected(points: list[list[float]], size: int) -> float:
    """Return the seconds that a run of this size is expected to take, by the growth of the last two."""
    if not points:
        return 0.0
    (last, seconds), before = points[-1], points[-2:-1]
    power = math.log(seconds / before[0][1], last / before[0][0]) if before and seconds > 0.1 else 1.0
    return float(seconds * (size / last) ** max(1.0, power))


def exponent(points: list[list[float]]) -> float:
    """Return the slope of log seconds over log size, over the last decade of sizes; nan for one size."""
    last = [point for point in points if point[0] >= 0.09 * points[-1][0]] if points else []
    if len(last) < 2:
        return math.nan
    logarithms = np.log(np.maximum(np.array(last, float), 1e-9))
    return float(np.polyfit(logarithms[:, 0], logarithms[:, 1], 1)[0])


def stated(entry: Entry, algorithm: str, what: str = "complexity") -> str:
    """Return what the docstring says of the complexity, or of something else, in one line."""
    if algorithm == EXACT:
        return ""
    said = " ".join((inspect.getdoc(entry.heuristics[algorithm].function) or "").split())
    found = re.search(rf"{what}: (.*?)\.( [A-Z]|$)", said, re.IGNORECASE)
    return re.sub(r":\w+:`~?\.?(?:\w+\.)*(\w+)`", r"`\1`", found[1]).replace("``", "`") if found else ""


def grown(numbers: Mapping[str, Mapping[str, int]]) -> str:
    """Return the dimensions and whole numbers of the instances that grow with the size, and how."""
    if len(numbers) < 2:
        return ""
    at = sorted(map(int, numbers))
    told = []
    for name in numbers[str(at[0])]:
        found: list[list[float]] = [[size, numbers[str(size)].get(name, 0)] for size in at]
        values = {value for _, value in found}
        if len(values) > 1:
            power = exponent([point for point in found if point[1] > 0])
            told.append(f"{name} to {found[-1][1]:,} (power {power:.1f})")
        elif any(values):
            told.append(f"{name} = {values.pop():,}")
    return ", ".join(told)


def left(cluster: Mapping[str, Any], limit: float) -> str:
    """Return what is left between plan and bound at the size of a cluster, with its settings."""
    settings = ", ".join(f"`{name}={value}`" for name, value in cluster["settings"].items())
    if "error" in cluster:
        return f"{settings}: {cluster['error']}"
    if cluster["proven"] == cluster["of"]:
        return f"{settings}: proven in {duration(cluster['seconds'])}"
    gap = "no plan" if cluster["gap"] is None else f"{cluster['gap']:.2%}"
    return f"{settings}: {gap} after {limit:g} s, {cluster['proven']} of {cluster['of']} proven"


def page(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Make the page in Markdown."""
    where = [found["where"] for found in results.values()]
    last = max(where, key=lambda one: str(one["started"]))
    return render(
        TEMPLATE,
        where={**last, **{name: max(one[name] for one in where) for name in ("limit", "proof")}},
        papers=dict(sorted(by_paper(results).items())),
        **{one.__name__: one for one in (beside, exponent, grown, left, stated)},
        CATALOGUE=CATALOGUE,
        EXACT=EXACT,
        PAPERS=PAPERS,
    )


def _picture(paper: str, results: Mapping[str, Mapping[str, Any]], file: Path) -> None:
    """Draw small multiples, one for each problem of a paper, seconds over size."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = min(3, len(results))
    rows = -(-len(results) // columns)
    with own_style({"font.size": 8, "axes.grid": True, "grid.alpha": 0.3}, salt=paper):
        figure = Figure(figsize=(4.6 * columns, 3.6 * rows), layout="constrained")
        FigureCanvasAgg(figure)
        for number, (problem, found) in enumerate(results.items()):
            axes = figure.add_subplot(rows, columns, number + 1)
            for index, (name, one) in enumerate(found["series"].items()):
                if not one["points"]:
                    continue
                at, seconds = np.array(one["points"], float).T
                line = "-" if index <= len(COLOURS) else "--"
                colour = "black" if name == EXACT else COLOURS[(index - 1) % len(COLOURS)]
                axes.loglog(at, seconds, line, color=colour, marker="o", markersize=2.5, linewidth=1, label=name)
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_formatter("{x:g}")
                axis.set_minor_formatter("")
            axes.set_title(problem, loc="left", fontweight="bold")
            axes.set_xlabel(CATALOGUE[problem].size)
            axes.set_ylabel("s")
            axes.legend(fontsize=5.5, frameon=False)
        figure.savefig(file, dpi=90)


@app.command()
def main(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Problems, or papers: aryl.reclaim, gavel. All else."),
    ] = None,
    limit: Annotated[
        float, typer.Option(min=0.01, help="No heuristic's run that is expected to take longer, s.")
    ] = 3.0,
    proof: Annotated[float, typer.Option(min=0.01, help="Limit of a solve, s.")] = 60.0,
    most: Annotated[int | None, typer.Option(min=1, help="Sizes of a series at most; all else.")] = None,
    folder: Annotated[Path, typer.Option(help="Where measurements are kept.")] = Path("growth"),
    docs: Annotated[Path, typer.Option(help="Where growth.md and the folder of its pictures are written.")] = DOCS,
    again: Annotated[bool, typer.Option(help="Measure anew what has been measured.")] = False,
) -> None:
    """Measure how times grow with the size, and write docs/growth.md."""
    asked = chosen(CATALOGUE, names)
    if not asked:
        raise typer.BadParameter(f"got {', '.join(names or [])}, must be problems or papers")
    folder.mkdir(parents=True, exist_ok=True)
    for problem in asked:
        file = folder / f"{problem}.json"
        if file.exists() and not again:
            continue
        began = time.perf_counter()
        found = measured(problem, limit, proof, most)
        where = {**provenance(1), "limit": limit, "proof": proof}
        write_whole(file, json.dumps({**found, "where": where}, indent=1))
        print(f"{problem}: {duration(time.perf_counter() - began)}", flush=True)
    kept = {file.name.removesuffix(".json"): file for file in sorted(folder.glob("*.json"))}
    results = {one: json.loads(kept[one].read_text(encoding="utf-8")) for one in CATALOGUE if one in kept}
    (docs / "growth").mkdir(parents=True, exist_ok=True)
    for paper, own in by_paper(results).items():
        _picture(paper, own, docs / "growth" / f"{paper}.png")
    write_whole(docs / "growth.md", page(results))


if __name__ == "__main__":
    app(prog_name="python -m benchmarks.growth")
