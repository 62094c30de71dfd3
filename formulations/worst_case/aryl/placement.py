"""Worst case of best fit decreasing on :class:`instances.aryl.placement.ArylPlacement` with one kind of servers.

All servers have C GPUs, and nobody prefers others.  The other plan fills m servers to the last GPU, y[p] of them by
pattern p, a way to write C as a sum of sizes: workers of one GPU may be added wherever room is left, as best fit comes
to them last and does not open fewer servers for them.

Best fit comes to the workers of size g together.  It goes through the opened servers from the fullest one that fits a
worker, with f = g, ..., C - 1 GPUs free, to closed ones (f = C), and puts floor(f / g) workers on each until none are
left; only the last server may get fewer, j.  With N[g, f] the servers with f GPUs free before,

    sum_f floor(f / g) filled[g, f] + sum_{f,j} j last[g, f, j]  ==  sum_p (workers of size g in p) y[p]
    filled[g, f] + sum_j last[g, f, j] <= N[g, f]                          for f < C
    filled[g, f] == N[g, f]    where a server with more free GPUs gets a worker (``reached``)

and N[g - 1, .] follows.  The order of servers with equally many free GPUs means nothing, so ties are the heuristic's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
import pyomo.environ as pyo

from formulations.worst_case.proving import InstanceClass, WorstCaseModel
from instances.arguments import Count, checked
from instances.aryl.placement import ArylPlacement
from instances.schema import Scalar

__all__ = ["WORST_CASES", "best_fit_decreasing", "read"]

Gpus = Annotated[int, Scalar(int, minimum=1, maximum=24)]
"""GPUs of a server; there is a variable for each of its patterns, 1,575 of 24 GPUs."""


@checked
def best_fit_decreasing(*, num_servers: Count, server_gpus: Gpus = 8) -> InstanceClass:
    """Workers of whole GPUs that fill ``num_servers`` servers of ``server_gpus`` each."""
    words = (
        f"any number of workers of 1 to {server_gpus} GPUs each, no elastic jobs, on more training servers of "
        f"{server_gpus} GPUs than are opened, of which the optimum opens {num_servers}"
    )
    return InstanceClass(words, (_model(m, server_gpus) for m in [num_servers]))


def _model(num_servers: int, gpus: int) -> pyo.ConcreteModel:
    model = pyo.ConcreteModel(name=f"worst case of best fit decreasing, {num_servers} servers of {gpus} GPUs")
    model.server_gpus = gpus
    # Of the servers that any fit opens all but one are more than half full.
    most = 2 * num_servers
    patterns = list(_sums(gpus, gpus))
    model.patterns = patterns
    model.PATTERNS = pyo.RangeSet(0, len(patterns) - 1)
    sizes = range(1, gpus + 1)
    model.STEPS = pyo.Set(initialize=[(g, f) for g in sizes for f in range(g, gpus + 1)], dimen=2)
    lasts = [(g, f, j) for g, f in model.STEPS for j in range(1, f // g)]
    model.LASTS = pyo.Set(initialize=lasts, dimen=3)
    model.FREE = pyo.Set(initialize=[(g, f) for g in sizes for f in range(1, gpus)], dimen=2)
    model.filled_by = pyo.Var(model.PATTERNS, domain=pyo.NonNegativeIntegers, bounds=(0, num_servers))
    model.filled = pyo.Var(model.STEPS, domain=pyo.NonNegativeIntegers, bounds=(0, most))
    model.last = pyo.Var(model.LASTS, domain=pyo.Binary)
    model.reached = pyo.Var(model.STEPS, domain=pyo.Binary)
    model.free = pyo.Var(model.FREE, bounds=(0, most))
    of_step = {step: [model.last[(*step, j)] for j in range(1, step[1] // step[0])] for step in model.STEPS}
    used = {step: model.filled[step] + sum(of_step[step]) for step in model.STEPS}

    workers = {g: pyo.quicksum(p.count(g) * model.filled_by[row] for row, p in enumerate(patterns)) for g in sizes}

    def all_placed(model: pyo.ConcreteModel, g: int) -> Any:
        full = pyo.quicksum((f // g) * model.filled[g, f] for f in range(g, gpus + 1))
        return full + pyo.quicksum(key[2] * model.last[key] for key in lasts if key[0] == g) == workers[g]

    def one_last(model: pyo.ConcreteModel, g: int) -> Any:
        terms = [last for f in range(g, gpus + 1) for last in of_step[g, f]]
        return sum(terms) <= 1 if terms else pyo.Constraint.Skip

    def next_free(model: pyo.ConcreteModel, g: int, f: int) -> Any:
        if g == gpus:
            return model.free[g, f] == 0
        before = g + 1
        left = model.free[before, f] - (used[before, f] if f >= before else 0)
        left += sum(model.filled[before, k] for k in range(before, gpus + 1) if k % before == f)
        left += sum(model.last[key] for key in lasts if key[0] == before and key[1] - key[2] * before == f)
        return model.free[g, f] == left

    model.fill_the_optimum = pyo.Constraint(expr=pyo.quicksum(model.filled_by.values()) == num_servers)
    model.all_placed = pyo.Constraint(sizes, rule=all_placed)
    model.one_last = pyo.Constraint(sizes, rule=one_last)
    model.next_free = pyo.Constraint(model.FREE, rule=next_free)
    opened = [step for step in model.STEPS if step[1] < gpus]
    model.OPENED = pyo.Set(initialize=opened, dimen=2)
    model.are_there = pyo.Constraint(model.OPENED, rule=lambda m, g, f: used[g, f] <= m.free[g, f])
    model.is_reached = pyo.Constraint(model.STEPS, rule=lambda m, g, f: used[g, f] <= most * m.reached[g, f])
    model.in_order = pyo.Constraint(model.OPENED, rule=lambda m, g, f: m.reached[g, f + 1] <= m.reached[g, f])
    model.fullest_first = pyo.Constraint(
        model.OPENED, rule=lambda m, g, f: m.filled[g, f] >= m.free[g, f] - most * (1 - m.reached[g, f + 1])
    )
    model.last_ends = pyo.Constraint(
        model.OPENED,
        rule=lambda m, g, f: sum(of_step[g, f]) <= 1 - m.reached[g, f + 1] if of_step[g, f] else pyo.Constraint.Skip,
    )
    model.heuristic_value = pyo.Expression(expr=pyo.quicksum(used[g, gpus] for g in sizes))
    model.witness_value = pyo.Expression(expr=pyo.quicksum(model.filled_by.values()))
    return model


def _sums(number: int, largest: int) -> Iterator[tuple[int, ...]]:
    """Return the ways to write a number as a sum of falling numbers up to the largest."""
    if number == 0:
        yield ()
    for first in range(min(number, largest), 0, -1):
        for rest in _sums(number - first, first):
            yield (first, *rest)


def read(model: pyo.ConcreteModel) -> ArylPlacement:
    """Return the workers in the values of ``filled_by``, a job for each size, and as many servers as best fit opens."""
    sizes = [size for row in model.PATTERNS for size in model.patterns[row] * round(model.filled_by[row].value)]
    gpus, workers = np.unique(sizes, return_counts=True)
    servers = round(pyo.value(model.heuristic_value))
    return ArylPlacement(
        gpus_per_worker=gpus[::-1],
        num_workers=workers[::-1],
        elastic=np.zeros(len(gpus), bool),
        server_gpus=np.full(servers, model.server_gpus),
        server_groups=np.full(servers, "training"),
    )


WORST_CASES = {"best_fit_decreasing": WorstCaseModel(best_fit_decreasing, read, size="num_servers", least=1)}
