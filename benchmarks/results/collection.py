"""Every heuristic on every instance of the collection, against the optima and bounds that the collection has."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any

from benchmarks import PAPERS
from benchmarks.results.kept import Asked
from benchmarks.results.page import GAPS, Page, as_csv, by_paper, gaps_drawn, gaps_shown, prose, stamp, summarized
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
    problems = dict.fromkeys(record["problem"] for record in collection.records.values())
    options = {"collection": collection.version, "seconds": SECONDS, "seed": SEED}
    measured = [
        asked.once(f"collection/{problem}", partial(answers, collection, problem, asked.jobs), **options)
        for problem in problems
        if asked.problems is None or problem in asked.problems
    ]
    found = [one for kept in measured for one in kept.content]
    rows = summarized(found, ("problem", "heuristic"))
    # What closes each instance, or that nothing does.
    rests = [
        "open" if record["class"] == "open" else record["bound"]["proof"]["kind"]
        for record in collection.records.values()
    ]
    parts = [
        "# Gaps on the collection\n",
        stamp(measured, "collection"),
        prose(
            "Every heuristic is asked about every instance of [the collection](../collection.md) (version "
            f"{collection.version}), with {SECONDS:g} s for each answer, and its plan is judged by the instance. "
            f"Optima and bounds are the collection's: {len(rests) - rests.count('open'):,} of its {len(rests):,} "
            f"instances are closed, that is, their optima are proven, {rests.count('runs')} of them by solvers' word "
            f"and the others by proofs that its checker does again. {GAPS}"
        ),
        prose(f"The numbers of the table, with all digits: [collection.csv](collection.csv). {_beside_records(found)}"),
    ]
    files = {"collection.csv": as_csv(rows)}
    for paper, mine in by_paper(rows):
        picture = f"collection-{paper}.svg"
        files[picture] = gaps_drawn([one for one in found if one["problem"].startswith(f"{paper}.")], picture)
        parts += [
            f"## {PAPERS[paper]}\n",
            f"![Gaps of the heuristics of {paper} on the closed instances]({picture})\n",
            *gaps_shown(mine, ("heuristic",)),
        ]
    return Page("\n".join(parts), files)


def _beside_records(found: Sequence[Mapping[str, Any]]) -> str:
    """Whether the heuristics still make the values that the records hold."""
    other = [one for one in found if not one["as_recorded"]]
    if not other:
        return f"All {len(found):,} answers are worth what the collection's records hold."
    names = ", ".join(f"`{name}`" for name in sorted({one["heuristic"] for one in other}))
    return f"{len(other):,} of {len(found):,} answers are worth something else than the records hold, of {names}."


def answers(collection: Collection, problem: str, jobs: int) -> list[dict[str, Any]]:
    """What every heuristic of a problem makes of every instance, in the collection's order."""
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
    """What a heuristic makes of an instance: how its answer was judged, and its gap.

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
