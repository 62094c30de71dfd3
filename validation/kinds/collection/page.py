"""The computed part of docs/collection.md: what the collection holds, what is open, and how far heuristics are off."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from validation.formatting import number, percent
from validation.kernel.gaps import gap_to
from validation.kinds.collection.store import CLASSES, Collection
from validation.pages.render import render

__all__ = ["MARK", "tables"]

MARK = "<!-- What follows is written by `make pages` from collection/. -->\n"
"""Where the computed part of the page begins."""

HOW = {
    "prices": "prices",
    "certificate": "certificate",
    "enumeration": "search",
    "argument": "argument",
    "two": "two solvers",
    "one": "one solver",
}
"""What proves the bounds of closed instances, and what the tables call it."""


def tables(collection: Collection) -> str:
    """Return what the collection holds, as Markdown."""
    records = list(collection.records.values())
    return render(
        "collection.md.j2",
        by_problem=_by_problem(records),
        heuristics=_heuristics(records),
        open=_open(records),
        records=len(records),
        version=collection.version,
    )


def how(record: Mapping[str, Any]) -> str:
    """Return what the bound of a closed record rests on, a key of ``HOW``."""
    proof = record["bound"]["proof"]
    if proof["kind"] != "runs":
        return str(proof["kind"])
    solvers = {run["solver"] for run in proof["runs"] if run["status"] == "optimal"} - {"none"}
    return "two" if len(solvers) > 1 else "one"


def _by_problem(records: Sequence[Mapping[str, Any]]) -> Iterator[Sequence[object]]:
    """Yield a row for each problem, and one for all."""
    yield "problem", "instances", "real", *CLASSES, *HOW.values()
    problems = sorted({record["problem"] for record in records})
    of_each = [(f"`{problem}`", [one for one in records if one["problem"] == problem]) for problem in problems]
    for name, mine in [*of_each, ("all", records)]:
        closed = [how(record) for record in mine if record["class"] != "open"]
        yield (
            name,
            len(mine),
            sum(bool(record["origin"].get("files")) for record in mine),
            *(sum(record["class"] == kind for record in mine) for kind in CLASSES),
            *(closed.count(one) for one in HOW),
        )


def _open(records: Sequence[Mapping[str, Any]]) -> Iterator[Sequence[object]]:
    """Yield a row for each instance that is not closed."""
    yield "instance", "best", "found by", "bound", "gap"
    for record in records:
        if record["class"] == "open":
            value, bound = record["best"]["value"], record["bound"]["value"]
            gap = math.inf if bound is None else gap_to(bound, value)
            yield (
                f"`{record['name']}`",
                number(value),
                record["best"]["found_by"],
                "none" if bound is None else number(bound),
                percent(gap),
            )


def _heuristics(records: Sequence[Mapping[str, Any]]) -> Iterator[Sequence[object]]:
    """Yield a row for each heuristic of each problem."""
    yield "problem", "heuristic", "closed", "with a plan", "optimal", "mean gap", "worst", "∞"
    for problem in sorted({record["problem"] for record in records}):
        mine = [record for record in records if record["problem"] == problem and record["class"] != "open"]
        for name in dict.fromkeys(name for record in mine for name in record["heuristics"]):
            asked = [(record, record["heuristics"][name]) for record in mine if name in record["heuristics"]]
            # Of a feasible plan that never ends there is no value, and the gap is infinite as well.
            found = [one for _, one in asked if one["status"] == "feasible"]
            gaps = [one["gap"] for one in found if one["gap"] is not None]
            mean = percent(sum(gaps) / len(gaps)) if gaps else "–"
            yield (
                f"`{problem}`",
                f"`{name}`",
                len(asked),
                len(found),
                gaps.count(0.0),
                mean,
                percent(max(gaps)) if gaps else "–",
                len(found) - len(gaps),
            )
