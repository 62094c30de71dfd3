"""Worst cases of greedy choices on :class:`instances.aryl.reclaim.Reclaim`.

Servers are numbered in the order in which the heuristic returns them, 0 to d - 1; of equal costs it takes the lowest
number, so that any instance and any way to break its ties is one of these.  Jobs differ by the set T of the servers
that host them alone, and ``jobs[T]`` of them are there.  Then all that is said of an instance is linear in these
numbers:

    server_fraction        sum over T without 0..k-1 that hold k of jobs[T] / |T|
                              <= the same sum for server i         for k < d and i > k
    smallest_count_first   sum over T that hold k of jobs[T]
                              <= the same sum for server i         for k < d <= i
    smallest_count_updated sum over T without 0..k-1 that hold k of jobs[T]
                              <= the same sum for server i         for k < d and i > k
    no better swap         sum over T that hold one of 0..d-1 of jobs[T]
                              <= the same with server i in place of k       for k < d <= i.

``local_search`` starts from the servers of Algorithm 1, by servers and by GPUs, and of ``smallest_count_updated``, and
ends where no swap is better.  Of each job with one GPU on each of its servers the first two are the same; where the
third returns these servers in this order, too, and no swap is better, they are what it ends with.

The servers of the other plan are as many of the first d as there may be, each choice a part of its own, and the first
of the others, between which the rows make no difference.  All rows are homogeneous: with any number of jobs allowed
the greatest ratio is that of a linear program.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Annotated, Any

import numpy as np
import pyomo.environ as pyo

from formulations.worst_case.pieces import whole_multiples
from formulations.worst_case.proving import InstanceClass, WorstCaseModel
from instances.arguments import Count, checked
from instances.aryl.reclaim import Reclaim
from instances.base import InstanceError
from instances.schema import Scalar

__all__ = ["WORST_CASES", "local_search", "read", "server_fraction", "smallest_count_first"]

MOST_SERVERS = 12
"""There is a variable for each set of servers."""

Servers = Annotated[int, Scalar(int, minimum=1, maximum=MOST_SERVERS)]
AtLeast2 = Annotated[int, Scalar(int, minimum=2)]
"""Of a single server all swaps are looked at, and Algorithm 1 takes another start."""

COUNT, UPDATED, FRACTION = "count", "updated", "fraction"
"""Costs of servers: jobs on them, those of the jobs that still run, and parts of these."""


@checked
def server_fraction(*, num_servers: Servers, demand: Count = 2, num_jobs: Count | None = None) -> InstanceClass:
    """Jobs on any servers, 1 to ``num_jobs`` of them, or any number."""
    # Of a single server, Algorithm 1 takes the one with the fewest jobs.
    return _instances(num_servers, demand, num_jobs, COUNT if demand == 1 else FRACTION)


@checked
def smallest_count_first(*, num_servers: Servers, demand: Count = 2, num_jobs: Count | None = None) -> InstanceClass:
    """Jobs on any servers, 1 to ``num_jobs`` of them, or any number."""
    return _instances(num_servers, demand, num_jobs, COUNT)


@checked
def local_search(*, num_servers: Servers, demand: AtLeast2 = 2, num_jobs: Count | None = None) -> InstanceClass:
    """Jobs on any servers, of which all starts of the search return the same ones, which no swap makes better."""
    found = _instances(num_servers, demand, num_jobs, FRACTION, UPDATED, swapped=True)
    words = f"{found.words}, on which all starts return the same servers in the same order, and no swap is better"
    return replace(found, words=words)


def _instances(
    num_servers: int, demand: int, num_jobs: int | None, *costs: str, swapped: bool = False
) -> InstanceClass:
    if demand > num_servers:
        raise InstanceError(f"demand: got {demand}, must be at most the servers, {num_servers}")
    jobs = "any number of jobs" if num_jobs is None else f"1 to {num_jobs} jobs"
    words = f"{num_servers} servers, {demand} to return, {jobs}, each with base workers on any of the servers"
    parts = _parts(num_servers, demand, num_jobs, costs, swapped=swapped)
    return InstanceClass(words, parts, scalable=num_jobs is None)


def _parts(
    num_servers: int, demand: int, num_jobs: int | None, costs: tuple[str, ...], *, swapped: bool
) -> Iterator[pyo.ConcreteModel]:
    """Make a model for each choice of servers of the first ``demand`` that the other plan returns as well."""
    for common in range(max(0, 2 * demand - num_servers), demand + 1):
        for shared in combinations(range(demand), common):
            witness = [*shared, *range(demand, 2 * demand - common)]
            yield _model(num_servers, demand, num_jobs, witness, costs, swapped=swapped)


def _model(
    num_servers: int, demand: int, num_jobs: int | None, witness: list[int], costs: tuple[str, ...], *, swapped: bool
) -> Any:
    model = pyo.ConcreteModel(name=f"worst case where {witness} are returned")
    model.num_servers, model.num_preempting = num_servers, demand
    servers = range(num_servers)
    sets = [tuple(i for i in servers if mask >> i & 1) for mask in range(1, 2**num_servers)]
    model.SETS = pyo.RangeSet(0, len(sets) - 1)
    model.hosts = sets
    whole = pyo.NonNegativeReals if num_jobs is None else pyo.NonNegativeIntegers
    model.jobs = pyo.Var(model.SETS, domain=whole, bounds=(0, num_jobs))
    if num_jobs is not None:
        model.num_jobs = pyo.Constraint(expr=(1, pyo.quicksum(model.jobs.values()), num_jobs))
    # Costs are measured so that all are whole.
    unit = math.lcm(*range(1, num_servers + 1))

    def cheapest(model: pyo.ConcreteModel, cost: str, chosen: int, other: int) -> Any:
        gone = set() if cost == COUNT else set(range(chosen))
        terms = [
            (unit // len(hosts) if cost == FRACTION else 1) * ((chosen in hosts) - (other in hosts)) * model.jobs[row]
            for row, hosts in enumerate(sets)
            if (chosen in hosts) != (other in hosts) and gone.isdisjoint(hosts)
        ]
        return pyo.quicksum(terms) <= 0 if terms else pyo.Constraint.Skip

    choices = [
        (cost, k, i)
        for cost in costs
        for k in range(demand)
        for i in range(demand if cost == COUNT else k + 1, num_servers)
    ]
    model.cheapest = pyo.Constraint(choices, rule=cheapest)

    def preempted(returned: set[int]) -> Any:
        return pyo.quicksum(model.jobs[row] for row, hosts in enumerate(sets) if not returned.isdisjoint(hosts))

    first = set(range(demand))
    model.heuristic_value = pyo.Expression(expr=preempted(first))
    if swapped:
        swaps = [(k, i) for k in first for i in range(demand, num_servers)]
        model.no_better_swap = pyo.Constraint(
            swaps, rule=lambda m, k, i: m.heuristic_value <= preempted(first - {k} | {i})
        )
    model.witness_value = pyo.Expression(expr=preempted(set(witness)))
    if num_jobs is None:
        model.unit = pyo.Constraint(expr=model.witness_value == 1)
    return model


def read(model: pyo.ConcreteModel) -> Reclaim:
    """Return the jobs in the values of ``jobs``, so many times that they are whole, with a GPU on each server."""
    counts = whole_multiples(model.jobs[row].value for row in model.SETS)
    rows = [hosts for count, hosts in zip(counts, model.hosts, strict=True) for _ in range(count)]
    hosts = np.zeros((len(rows), model.num_servers), bool)
    for job, servers in enumerate(rows):
        hosts[job, list(servers)] = True
    return Reclaim(hosts=hosts, gpus=hosts.astype(np.int64), demand=model.num_preempting)


WORST_CASES = {
    "local_search": WorstCaseModel(local_search, read, size="num_servers", least=1),
    "server_fraction": WorstCaseModel(server_fraction, read, size="num_servers", least=1),
    "smallest_count_first": WorstCaseModel(smallest_count_first, read, size="num_servers", least=1),
}
