"""What certificates cost: ``python -m benchmarks certificates``.

Closed instances of the collection that one mixed-integer program states are solved, certified and checked in this
process, and processor times are compared.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import formulations
from benchmarks import chosen
from benchmarks.tables import Row, Setup, benchmark, timed
from instances.base import Instance
from instances.reference.vipr import check
from validation.catalogue import CATALOGUE
from validation.kinds.collection import load

__all__ = ["Certified", "certificates", "certified"]

COUNT = 5
"""Instances of each problem: the first of each in the collection, in the order of names, that are closed."""
LIMIT = 20.0
"""Of each certificate, s by the clock."""


@dataclass(frozen=True)
class Certified:
    """Processor times of one instance, s; of its certificate and the check None where it has none in time."""

    solved: float
    certified: float | None
    checked: float | None


@benchmark(
    "certificates", "problem", "instances", "certified", "solve, s", "certify / solve", "worst", "check / certify"
)
def certificates(setup: Setup) -> Iterator[Row]:
    """Time to certify an optimum over the time to solve it, and to check the certificate over the time to make it."""
    collection = load()
    every: list[Certified] = []
    for problem in chosen(CATALOGUE, setup.problems):
        # A first word to see that there is one mixed-integer program.
        mine = sorted(
            name
            for name, record in collection.records.items()
            if record["problem"] == problem and record["class"] != "open"
        )
        if not mine or not _is_mixed_integer(collection.instance(mine[0])):
            continue
        found = [
            certified(collection.instance(name), setup.seconds(LIMIT)) for name in mine[: setup.instances(COUNT, 1)]
        ]
        every += found
        yield f"`{problem}`", *_cells(found)
    yield "all", *_cells(every)


def _is_mixed_integer(instance: Instance[Any]) -> bool:
    if formulations.formulation(instance.problem).any_solver:
        return False
    model = formulations.build(instance)
    return formulations.translate(model).is_mip


def certified(instance: Instance[Any], limit: float) -> Certified:
    """Solve an instance, certify that, and check the certificate."""
    solution, solved = timed(formulations.solve, replace(instance))
    answer, spent = timed(formulations.certify, replace(instance), solution, time_limit=limit)
    if not answer.vipr:
        return Certified(solved, None, None)
    _, checked = timed(check, answer.vipr.splitlines())
    return Certified(solved, spent, checked)


def _cells(found: Sequence[Certified]) -> Row:
    """Return the cells of some instances; what has no certificate in time counts as the longest."""
    times = sorted(one.certified / one.solved if one.certified is not None else float("inf") for one in found)
    checks = [one.checked / one.certified for one in found if one.checked is not None and one.certified]
    return (
        len(found),
        sum(one.certified is not None for one in found),
        f"{statistics.median(one.solved for one in found):.3f}",
        f"{statistics.median(times):.2f}",
        f"{times[-1]:.1f}",
        f"{statistics.median(checks):.2f}" if checks else "",
    )
