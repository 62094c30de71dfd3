"""``python -m benchmarks.growth``: how times grow with the size, for the page docs/growth.md and its pictures.

Every heuristic over three decades of its problem's size, every exact model over two, in steps of the square root of
ten from the smallest size of the catalogue, generators at their defaults.  A series ends early where its next run
would take longer than the limit.  Times are processor times, with one solver thread, of the median of up to three
instances; each is a new copy of its instance, that nothing has been worked out of before.

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
from instances.base import Instance
from instances.files import write_whole
from validation.catalogue import CATALOGUE, Entry
from validation.formatting import duration
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
ENOUGH = 0.2
"""Seconds of runs after which no further one is made."""
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6D31", "#7F7F7F")
BESIDE: dict[str, Callable[[int], dict[str, Any]]] = {
    # With as many GPUs for any number of jobs there would soon be no plan.
    "elasticflow.allocation": lambda size: {"num_gpus": 4 * size, "tightness": 0.15},
    "elasticflow.best_effort": lambda size: {"num_gpus": 2 * size, "tightness": 0.15},
    "elasticflow.minimum_satisfactory_share": lambda size: {"num_gpus": 4 * size, "tightness": 0.15},
    # AlloX and matchings take jobs of one worker.
    "gavel.makespan": lambda size: {"multi_worker": False},
    "gavel.round_assignment": lambda size: {"wide": 0.0},
}
DOCS = Path(__file__).parents[1] / "docs"
TEMPLATE = Path(__file__).resolve().with_suffix(".md.j2")

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


def sizes(entry: Entry, exact: bool) -> list[int]:
    """Return the sizes of a series: the smallest of the catalogue and up, two to a decade."""
    return [round(entry.sizes[0] * 10 ** (step / 2)) for step in range(2 * DECADES[exact] + 1)]


def beside(problem: str, size: int) -> dict[str, Any]:
    """Return what is drawn otherwise than by default, beside the size."""
    return BESIDE[problem](size) if problem in BESIDE else {}


@lru_cache(maxsize=3)
def _drawn(problem: str, size: int, seed: int) -> Instance[Any]:
    entry = CATALOGUE[problem]
    return entry.generate(seed, **{entry.size: size}, **beside(problem, size))


def _seconds(call: Callable[[Any], Any], instance: Instance[Any]) -> tuple[Any, float]:
    """Return what a call makes of a copy of an instance that remembers nothing, and its processor time, s."""
    copied = replace(instance)
    gc.collect()
    began = time.process_time()
    result = call(copied)
    return result, time.process_time() - began


def run(problem: str, algorithm: str, size: int, limit: float, *, enough: float = ENOUGH) -> dict[str, Any]:
    """Measure the processor time of an algorithm at one size, s, and whether it proved what it had to.

    Parameters
    ----------
    problem, algorithm : str
    size : int
    limit : float
        Of each proof, s.
    enough : float
        Seconds of runs after which no further instance, of three, is tried.

    Returns
    -------
    dict
        "seconds": the median; None where there was no plan; "open": of how many instances the exact model was not
        proven; "numbers": the dimensions of the first instance and its whole numbers.
    """
    entry = CATALOGUE[problem]

    def call(instance: Instance[Any]) -> Any:
        if algorithm == EXACT:
            return formulations.solve(instance, time_limit=limit)
        heuristic = entry.heuristics[algorithm]
        return heuristic.function(instance, **({"rng": np.random.default_rng(0)} if heuristic.random else {}))

    times: list[list[float]] = []
    unproven = 0
    for seed in range(3):
        instance = _drawn(problem, size, seed)
        if not seed:
            numbers = {**instance.dims, **_whole_numbers(instance)}
            if size < 100:
                call(replace(instance))  # What is imported at the first call.
        result, took = _seconds(call, instance)
        unproven += algorithm == EXACT and result.status not in ("optimal", "infeasible")
        if result is None:
            continue
        times.append([took])
        while sum(times[-1]) < ENOUGH / 10 and len(times[-1]) < 5:
            times[-1].append(_seconds(call, instance)[1])
        if sum(map(sum, times)) > enough:
            break
    # What says no is over soon.
    median = statistics.median(map(statistics.median, times)) if times else None
    return {"seconds": median, "open": unproven, "numbers": numbers}


def _whole_numbers(instance: Instance[Any]) -> dict[str, int]:
    named = ("num_servers", "num_gpus", "capacity", "demand", "num_pairs", "num_slots")
    found = {name: getattr(instance, name, None) for name in named}
    return {name: int(value) for name, value in found.items() if isinstance(value, int | np.integer)}


def measured(problem: str, limit: float, most: int | None = None) -> dict[str, Any]:
    """Measure the series of all algorithms of a problem.

    Parameters
    ----------
    problem : str
    limit : float
        Seconds that a run may be expected to take.
    most : int, optional
        Sizes of a series, where not all are asked for.

    Returns
    -------
    dict
        Algorithm to "points", pairs of size and seconds, and "end", why there are no more.
    """
    entry = CATALOGUE[problem]
    series: dict[str, Any] = {name: {"points": [], "end": ""} for name in (EXACT, *entry.heuristics)}
    numbers: dict[str, dict[str, int]] = {}
    with Apart(run, memory=MEMORY) as apart:
        for size in sizes(entry, exact=False)[:most]:
            for name, one in series.items():
                if one["end"] or size > sizes(entry, exact=name == EXACT)[-1]:
                    continue
                if _expected(one["points"], size) > limit:
                    one["end"] = f"{size:,} would take longer than {limit:g} s"
                    continue
                answer = apart.ask(problem, name, size, limit, seconds=20 * limit + 120)
                told = answer.content or {"error": answer.reason}
                if "error" in told:
                    one["end"] = f"{size:,}: {told['error']}"
                    continue
                numbers[str(size)] = told["numbers"]
                if told["open"]:
                    one["end"] = f"{size:,} not proven in {limit:g} s"
                elif told["seconds"] is None:
                    one["end"] = f"{size:,}: it gives no plan"
                else:
                    one["points"].append([size, told["seconds"]])
    return {"series": series, "numbers": numbers}


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


def stated(entry: Entry, algorithm: str) -> str:
    """Return what the docstring says of the complexity, in one line."""
    if algorithm == EXACT:
        return ""
    said = " ".join((inspect.getdoc(entry.heuristics[algorithm].function) or "").split())
    found = re.search(r"[Cc]omplexity: (.*?)\.( [A-Z]|$)", said)
    return re.sub(r":\w+:`~?\.?(?:\w+\.)*(\w+)`", r"`\1`", found[1]) if found else ""


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
        else:
            told.append(f"{name} = {values.pop():,}")
    return ", ".join(told)


def page(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Make the page in Markdown."""
    where = [found["where"] for found in results.values()]
    last = max(where, key=lambda one: str(one["started"]))
    return render(
        TEMPLATE,
        where={**last, "limit": max(one["limit"] for one in where)},
        papers=dict(sorted(by_paper(results).items())),
        **{one.__name__: one for one in (beside, exponent, grown, stated)},
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
    limit: Annotated[float, typer.Option(min=0.01, help="No run that is expected to take longer, s.")] = 3.0,
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
        found = measured(problem, limit, most)
        write_whole(file, json.dumps({**found, "where": {**provenance(1), "limit": limit}}, indent=1))
        print(f"{problem}: {duration(time.perf_counter() - began)}", flush=True)
    kept = {file.name.removesuffix(".json"): file for file in sorted(folder.glob("*.json"))}
    results = {one: json.loads(kept[one].read_text(encoding="utf-8")) for one in CATALOGUE if one in kept}
    (docs / "growth").mkdir(parents=True, exist_ok=True)
    for paper, own in by_paper(results).items():
        _picture(paper, own, docs / "growth" / f"{paper}.png")
    write_whole(docs / "growth.md", page(results))


if __name__ == "__main__":
    app(prog_name="python -m benchmarks.growth")
