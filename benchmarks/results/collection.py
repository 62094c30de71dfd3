"""Every heuristic on every instance of the collection, against the optima and bounds that the collection has."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from typing import Any

from benchmarks.results.kept import Asked
from benchmarks.results.page import Page, gaps_drawn, made, summarized
from instances.base import agree
from validation.catalogue import CATALOGUE
from validation.kernel.gaps import beats, gap_interval
from validation.kernel.workers import Task, run_tasks
from validation.kinds.collection import Collection, load
from validation.kinds.study.cells import judged

__all__ = ["answer", "answers", "make"]

SECONDS = 20.0
"""For each answer of a heuristic: the limit with which the records were made."""
SEED = 0
"""Of random heuristics: that of the records."""


def make(asked: Asked) -> Page:
    """Measure the heuristics on the collection, and make the page."""
    collection = load()
    records = list(collection.records.values())
    options = {"collection": collection.version, "seconds": SECONDS, "seed": SEED}
    measured = [
        asked.once(f"collection/{problem}", partial(answers, collection, problem, asked.jobs), **options)
        for problem in dict.fromkeys(record["problem"] for record in records)
        if asked.problems is None or problem in asked.problems
    ]
    found = [one for kept in measured for one in kept.content]
    return made(
        "collection",
        measured,
        summarized(found, ("problem", "heuristic")),
        partial(gaps_drawn, found),
        names=["heuristic"],
        version=collection.version,
        seconds=SECONDS,
        answers=len(found),
        # Whether the heuristics still make the values that the records hold.
        others=[one for one in found if not one["as_recorded"]],
        # What closes each instance, or that nothing does.
        rests=["open" if one["class"] == "open" else one["bound"]["proof"]["kind"] for one in records],
    )


def answers(collection: Collection, problem: str, jobs: int) -> list[dict[str, Any]]:
    """Return what every heuristic of a problem makes of every instance, in the collection's order."""
    names = [name for name, record in collection.records.items() if record["problem"] == problem]
    heuristics = list(CATALOGUE[problem].heuristics)
    # Each answer is asked for in a process of its own, which the worker ends in time.
    tasks = [Task((name, one), 2 * SECONDS, asks=True) for name in names for one in heuristics]
    with closing(run_tasks(partial(answer, collection), tasks, jobs=jobs)) as outcomes:
        found = {outcome.task.arguments: outcome for outcome in outcomes}
    for told in found.values():
        if told.reason:
            raise RuntimeError(f"{' '.join(told.task.arguments)}: {told.reason}")
    return [found[task.arguments].result for task in tasks]


def answer(collection: Collection, name: str, heuristic: str) -> dict[str, Any]:
    """Return what a heuristic makes of an instance: how its answer was judged, and its gap.

    Raises
    ------
    AssertionError
        When its plan beats a bound: a judge, a bound or a proof is wrong.
    """
    record, instance = collection.record(name), collection.instance(name)
    row = judged(instance, CATALOGUE[instance.problem].heuristics[heuristic], SEED, seconds=SECONDS, memory=None)
    found = {"problem": instance.problem, "instance": name, "heuristic": heuristic, "status": row["status"]}
    if row["status"] != "feasible":
        return found | {"proven": record["class"] != "open", "as_recorded": _as_recorded(record, heuristic, None)}
    low, high = gap(record, row["value"])
    return found | {
        "proven": record["class"] != "open",
        "gap_low": low if math.isfinite(low) else None,
        "gap_high": high if math.isfinite(high) else None,
        "as_recorded": _as_recorded(record, heuristic, row["value"]),
    }


def gap(record: Mapping[str, Any], value: float) -> tuple[float, float]:
    """Least and greatest gap of a value, by what a record knows of its instance."""
    sense, best, bound = record["sense"], record["best"]["value"], record["bound"]["value"]
    if bound is None:
        bound = -math.inf if sense == "min" else math.inf
    if beats(sense, value, bound):
        raise AssertionError(f"{record['name']}: a plan is worth {value!r}, beyond the bound {bound!r}")
    if record["class"] != "open":
        return gap_interval(value, best, best)
    return gap_interval(value, min(best, value) if sense == "min" else max(best, value), bound)


def _as_recorded(record: Mapping[str, Any], heuristic: str, value: float | None) -> bool:
    """Whether the record has the same value, as far as a number can be written; None stands for none."""
    known = record["heuristics"].get(heuristic, {"value": None})["value"]
    if value is None or not math.isfinite(value) or known is None:
        return known is None and (value is None or not math.isfinite(value))
    return agree(value, known)
