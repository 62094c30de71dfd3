"""Which heuristic to use, for every problem: gaps against times, ``python -m benchmarks fronts``.

Every heuristic of the catalogue and the exact solve within limits are asked about the collection's instances, about
instances drawn at three sizes up to the papers' clusters, and, where there are public data, about instances drawn from
them.  With ``--docs docs`` the pages of the problems say what was found: their first line which heuristic to use, and
a section by a table and a picture.
"""

from __future__ import annotations

import importlib
import math
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import formulations
from benchmarks import chosen
from benchmarks.growth import COLOURS, MEMORY, stated
from benchmarks.never_behind import ENDED, LIMITS
from benchmarks.results.collection import SECONDS, SEED, gap
from benchmarks.results.kept import Asked, Kept
from benchmarks.results.page import TEMPLATES, stamp, summarized
from benchmarks.results.real import SOURCES
from benchmarks.sizes import drawn, three
from benchmarks.tables import Row, Setup, benchmark, timed
from instances.base import Instance
from instances.files import write_whole
from validation.catalogue import CATALOGUE, Entry
from validation.formatting import duration, gap_range
from validation.kernel.asking import call, stream
from validation.kernel.isolation import Apart
from validation.kernel.judging import Asked as Answered
from validation.kernel.judging import Status, judge
from validation.kinds.collection import load
from validation.pages.drawing import as_svg, own_style
from validation.pages.render import render

__all__ = ["COUNTED", "Front", "answers", "fronts", "paged", "run"]

COLLECTION = "collection"
COUNT = 3
"""Instances of each size."""
COUNTED = (
    "afs.gpu_placement",
    "afs.network_packing",
    "aryl.placement",
    "aryl.reclaim",
    "elasticflow.admission",
    "elasticflow.placement",
    "synergy.placement",
)
"""Problems whose values count jobs, servers or GPUs, where one more of a few is far: optima are what counts."""
MEAN, WORST, OPTIMAL = 0.01, 0.05, 0.9
"""The goal on the collection: greatest mean gap and worst gap; least share of optima, of what is counted."""
SHARE, FAST = 0.01, 0.1
"""The goal of times: greatest share of the exact solve's at the middle size, and seconds at the papers' size."""

Sample: TypeAlias = tuple[str, list[Instance[Any]], Sequence[Mapping[str, Any] | None]]
"""Its name, its instances, and of each what the collection knows."""


def run(instance: Instance[Any], heuristic: str, limit: float) -> dict[str, Any]:
    """Ask one algorithm about one instance.

    Parameters
    ----------
    instance : Instance
    heuristic : str
        Name in the catalogue; empty for the exact solve.
    limit : float
        Of the exact solve, s.

    Returns
    -------
    dict
        "status"; "value" of a plan and "bound", None where there is none or no number for it; "seconds" of processor
        time.
    """
    if not heuristic:
        solution, took = timed(formulations.solve, replace(instance), time_limit=limit)
        status, value, bound = str(solution.status), solution.objective, solution.bound
    else:
        known = CATALOGUE[instance.problem].heuristics[heuristic]
        for module in known.imports:
            importlib.import_module(module)
        plan, took = timed(call, replace(instance), known, stream(SEED, instance))
        verdict = judge(instance, Answered(plan))
        status, value, bound = str(verdict.status), verdict.value, math.nan
    return {"status": status, "value": _finite(value), "bound": _finite(bound), "seconds": took}


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _samples(
    entry: Entry, setup: Setup
) -> Iterator[tuple[str, list[Instance[Any]], Sequence[Mapping[str, Any] | None]]]:
    """Yield what is asked about: the sizes, the collection, real data."""
    count = setup.instances(COUNT, 1)
    for settings in setup.few(three(entry.problem)[: setup.most]):
        name = ", ".join(f"{name}={value}" for name, value in settings.items())
        yield name, [drawn(entry.problem, settings, seed) for seed in range(count)], [None] * count
    if setup.quick:
        return
    collection = load()
    records = [one for one in collection.records.values() if one["problem"] == entry.problem]
    yield COLLECTION, [collection.instance(one["name"]) for one in records], records
    for source in SOURCES if entry.from_trace else ():
        throughputs, trace = setup.file(source.throughputs), setup.file(source.trace)
        if entry.problem.startswith(f"{source.paper}.") and throughputs and trace and entry.from_trace:
            files = {"throughputs": str(throughputs), "trace": str(trace), **source.options}
            for size in source.sizes:
                made = [entry.from_trace(seed, **{entry.size: size}, **files) for seed in range(count)]
                yield f"{source.name}, {entry.size}={size}", made, [None] * count


def answers(problem: str, setup: Setup) -> list[dict[str, Any]]:
    """Return what every algorithm makes of every instance: its status, the interval of its gap, and its time.

    Raises
    ------
    AssertionError
        When a plan beats a bound: a judge, a bound or a proof is wrong.
    """
    entry, found = CATALOGUE[problem], []
    limits = [limit for limit in LIMITS if limit <= setup.seconds(LIMITS[-1])] or [setup.seconds(LIMITS[-1])]
    with Apart(run, memory=MEMORY) as apart:

        def told(instance: Instance[Any], heuristic: str, limit: float) -> dict[str, Any]:
            reply = apart.ask(instance, heuristic, limit, seconds=SECONDS if heuristic else 4 * limit + 120)
            answer = reply.content or {}
            if "status" in answer:
                return answer
            return {"status": str(Status.FAILED), "value": None, "bound": None, "seconds": reply.seconds}

        for sample, instances, records in _samples(entry, setup):
            for number, (instance, record) in enumerate(zip(instances, records, strict=True)):
                if not number:
                    told(instance, "", limits[0])  # What is imported at the first solve.
                by: dict[str, dict[str, Any]] = {}
                # The collection's optima are known, and need no long solve.
                for limit in limits if record is None else limits[:1]:
                    last = next(reversed(by.values()), None)
                    by[exact(limit)] = last if last and last["status"] in ENDED else told(instance, "", limit)
                if next(reversed(by.values()))["status"] == "infeasible":
                    continue
                by |= {heuristic: told(instance, heuristic, 0.0) for heuristic in entry.heuristics}
                known = record or _record(instance, by)
                for algorithm, answer in by.items():
                    one = {"sample": sample, "instance": number, "algorithm": algorithm, "seconds": answer["seconds"]}
                    one |= {"status": answer["status"], "proven": known["class"] != "open"}
                    if answer["status"] in ("optimal", "feasible"):
                        value = worst_of(instance) if answer["value"] is None else answer["value"]
                        low, high = gap(known, value)
                        one |= {"status": "feasible", "gap_low": _finite(low), "gap_high": _finite(high)}
                    found.append(one)
    return found


def exact(limit: float) -> str:
    """Return the name of the exact solve within a limit."""
    return f"exact, {limit:g} s"


def worst_of(instance: Instance[Any]) -> float:
    """Return the value of a plan for which there is no number."""
    return math.inf if instance.sense == "min" else -math.inf


def _record(instance: Instance[Any], by: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return what the answers prove of an instance, as records of the collection have it."""
    pick = min if instance.sense == "min" else max
    values = [one["value"] for one in by.values() if one["value"] is not None]
    bounds = [one["bound"] for one in by.values() if one["bound"] is not None]
    proven = [one["value"] for one in by.values() if one["status"] == "optimal"]
    return {
        "name": instance.digest,
        "sense": instance.sense,
        "class": "closed" if proven else "open",
        "best": {"value": proven[0] if proven else pick(values) if values else None},
        # The best bound is the greatest of a minimum.
        "bound": {"value": (max if instance.sense == "min" else min)(bounds) if bounds else None},
    }


class Front:
    """The algorithms of a problem by gap and time, in each sample, and which heuristic to use.

    Parameters
    ----------
    problem : str
    found : sequence of mapping
        What :func:`answers` returns.
    """

    def __init__(self, problem: str, found: Sequence[Mapping[str, Any]]) -> None:
        self.entry = CATALOGUE[problem]
        self.found = found
        self.samples: list[str] = sorted(
            dict.fromkeys(one["sample"] for one in found), key=lambda one: one != COLLECTION
        )
        self.drawn: list[str] = [one for one in self.samples if one.partition("=")[0] == self.entry.size]
        self.algorithms: list[str] = list(dict.fromkeys(one["algorithm"] for one in found))
        self.rows: dict[tuple[str, str], dict[str, Any]] = {}
        for row in summarized(found, ("sample", "algorithm")):
            times = [one["seconds"] for one in found if (one["sample"], one["algorithm"]) == (*_key(row),)]
            self.rows[_key(row)] = row | {"seconds": statistics.median(times), "longest": max(times)}

    @property
    def exact(self) -> str:
        """The exact solve with the greatest limit."""
        return next(name for name in reversed(self.algorithms) if name not in self.entry.heuristics)

    def close(self, heuristic: str) -> bool:
        """Whether a heuristic has plans of all the collection's instances, and they are as close as the goal is."""
        row = self.rows[COLLECTION, heuristic]
        if row["plan"] < row["instances"]:
            return False
        if self.entry.problem in COUNTED:
            return bool(row["optimal"] >= OPTIMAL * row["instances"])
        return bool(row["mean_high"] <= MEAN and row["worst_high"] <= WORST)

    @property
    def middle(self) -> str:
        """The middle of three sizes; the last where there are fewer."""
        return self.drawn[:2][-1]

    def speedup(self, heuristic: str) -> float:
        """How many times as long the exact solve takes at the middle size, at the median."""
        took = [self.rows[self.middle, algorithm]["seconds"] for algorithm in (self.exact, heuristic)]
        return float(took[0] / max(took[1], 1e-9))

    @property
    def fastest(self) -> str:
        """The heuristic that takes least at the middle size, at the median."""
        return min(self.entry.heuristics, key=lambda one: self.rows[self.middle, one]["seconds"])

    def fast(self, heuristic: str) -> bool:
        """Whether it takes so few seconds at the largest size."""
        return bool(self.rows[self.drawn[-1], heuristic]["longest"] <= FAST)

    @property
    def use(self) -> str:
        """The heuristic to use: fast and close, else close, else with most plans and then the closest."""

        def key(heuristic: str) -> tuple[Any, ...]:
            row, close, seconds = (
                self.rows[COLLECTION, heuristic],
                self.close(heuristic),
                self.rows[self.drawn[-1], heuristic]["seconds"],
            )
            optimal = row["optimal"] if self.entry.problem in COUNTED else 0
            near = (0.0, 0.0, 0.0) if close else (-row["plan"], -optimal, row["mean_high"])
            return not (close and self.fast(heuristic)), not close, near, seconds

        return min(self.entry.heuristics, key=key)

    def cell(self, sample: str, algorithm: str) -> str:
        """Mean and worst gap and median time, and of how many there is a plan where there is not of all."""
        row = self.rows.get((sample, algorithm))
        if row is None:
            return ""
        took = duration(row["seconds"])
        if not row["plan"]:
            return f"no plan; {took}"
        few = f"; {row['plan']} of {row['instances']}" if row["plan"] < row["instances"] else ""
        return f"{_mean(row)}, {gap_range(row['worst_low'], row['worst_high'])}; {took}{few}"


def _key(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["sample"], row["algorithm"]


def _mean(row: Mapping[str, Any]) -> str:
    """Return the mean of the finite gaps."""
    if row["plan"] and row["infinite"] == row["plan"]:
        return "∞"
    return gap_range(row["mean_low"], row["mean_high"])


@benchmark(
    "fronts", "problem", "instances", "algorithm", "plans", "optimal", "mean gap", "worst gap", "time", "longest"
)
def fronts(setup: Setup) -> Iterator[Row]:
    """Mean and worst gap of every algorithm against its time, at three sizes, on the collection and on real data."""
    for problem in chosen(CATALOGUE, setup.problems):
        kept = _kept(problem, setup)
        front = Front(problem, kept.content)
        for (sample, algorithm), row in front.rows.items():
            plans = f"{row['plan']} of {row['instances']}"
            times = duration(row["seconds"]), duration(row["longest"])
            worst = gap_range(row["worst_low"], row["worst_high"])
            yield f"`{problem}`", sample, f"`{algorithm}`", plans, row["optimal"], _mean(row), worst, *times
        if setup.docs is not None and COLLECTION in front.samples:
            _write(front, kept, setup)


def _kept(problem: str, setup: Setup) -> Kept:
    """Return what is measured, or what was and is kept."""
    asked = Asked(setup.kept) if setup.kept else None
    if asked is None:
        return Kept(answers(problem, setup), {})
    options = {name: getattr(setup, name) for name in ("quick", "limit", "count", "most")}
    return asked.once(f"fronts/{problem}", partial(answers, problem, setup), **options, data=setup.data is not None)


def _write(front: Front, kept: Kept, setup: Setup) -> None:
    """Write a problem's page and picture."""
    assert setup.docs is not None
    path = front.entry.problem.replace(".", "/")
    page, picture = setup.docs / "problems" / f"{path}.md", setup.docs / "fronts" / f"{path}.svg"
    picture.parent.mkdir(parents=True, exist_ok=True)
    write_whole(picture, _picture(front))
    write_whole(page, paged(page.read_text(encoding="utf-8"), front, kept, setup))


def paged(page: str, front: Front, kept: Kept, setup: Setup) -> str:
    """Return a problem's page with its first line and its section anew."""
    goal = {name: globals()[name] for name in ("COLLECTION", "COUNTED", "FAST", "MEAN", "OPTIMAL", "SHARE", "WORST")}
    given = {name: getattr(setup, name) for name in ("limit", "count", "most")}
    options = [f"--{name} {value:g}" for name, value in given.items() if value is not None]
    words = [
        "python",
        "-m",
        "benchmarks",
        "fronts",
        "--docs",
        "docs",
        *options,
        *(["--data DATA"] if setup.data else []),
    ]
    text = render(TEMPLATES / "fronts.md.j2", front=front, stamp=stamp([kept], " ".join(words)), stated=stated, **goal)
    line, section = text.split("\n## ", 1)
    page = re.sub(r"\A(# .*\n\n)(?:\*\*Use .*\n(?:.+\n)*\n)?", lambda head: f"{head[1]}{line.strip()}\n\n", page)
    page = re.sub(r"^## The front\n.*?(?=^## )", "", page, flags=re.MULTILINE | re.DOTALL)
    return page.replace("## As printed / as built\n", f"## {section.strip()}\n\n## As printed / as built\n", 1)


def _picture(front: Front) -> str:
    """Draw a panel for each sample: mean gap, up, over time, across."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    problem, heuristics = front.entry.problem, list(front.entry.heuristics)
    with own_style({"font.size": 8, "svg.fonttype": "none"}, salt=problem):
        columns = min(4, len(front.samples))
        figure = Figure(figsize=(2.6 * columns, 2.9 * -(-len(front.samples) // columns) + 0.5), layout="constrained")
        panels = figure.subplots(-(-len(front.samples) // columns), columns, squeeze=False, sharey=True).flat
        for axes in panels:
            axes.set_visible(False)
        for axes, sample in zip(figure.axes, front.samples, strict=False):
            axes.set_visible(True)
            for algorithm in front.algorithms:
                row = front.rows.get((sample, algorithm))
                if row is None or not row["plan"] or not math.isfinite(row["mean_high"]):
                    continue
                at = heuristics.index(algorithm) if algorithm in heuristics else -1
                colour = "black" if at < 0 else COLOURS[at % len(COLOURS)]
                marker = "*" if at < 0 else "osD^v"[at // len(COLOURS)]
                whole = row["plan"] == row["instances"]
                axes.plot([row["seconds"]] * 2, [100 * row[f"mean_{end}"] for end in ("low", "high")], color=colour)
                axes.plot(
                    row["seconds"], 100 * row["mean_high"], marker, color=colour, label=algorithm, clip_on=False,
                    markerfacecolor=colour if whole else "none", markersize=8 if at < 0 else 4.5,
                )  # fmt: skip
            axes.set(xscale="log", title=sample.replace(", ", ",\n"), xlabel="processor time")
            axes.set_yscale("symlog", linthresh=1, linscale=0.5)
            axes.set_ylim(bottom=0)
            axes.set_yticks([0, 1, 10, 100, 1000], ["0", "1", "10", "100", "1000"])
            low, high = axes.get_xlim()
            # There may be no power of ten within a decade.
            near = LogLocator(subs=(1.0, 2.0, 5.0)) if high > 4 * low else MaxNLocator(3)
            axes.xaxis.set_major_locator(LogLocator() if high > 20 * low else near)
            axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: duration(x)))
            axes.xaxis.set_minor_formatter(NullFormatter())
            axes.grid(alpha=0.3)
            axes.title.set_fontsize(8)
        figure.axes[0].set_ylabel("mean gap, %")
        marks = {
            name: line for axes in figure.axes for line, name in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        figure.legend(marks.values(), marks, loc="outside right upper", frameon=False, fontsize=7)
        return as_svg(figure)
