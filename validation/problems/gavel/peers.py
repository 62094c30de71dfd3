"""The approximations that solve programs, with the library's own solver to solve them.

They take what solves as an argument, because heuristics know no solver (:mod:`heuristics.gavel.pop`,
:mod:`heuristics.gavel.binning`).  Solver and Pyomo are imported when one is called.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from heuristics.gavel.binning import Entries
from heuristics.gavel.pop import pop
from instances.base import agree
from instances.gavel.hierarchical_fairness import HierarchicalFairness
from instances.gavel.max_min_fairness import MaxMinFairness
from instances.gavel.sharing import Allocation, Sharing
from instances.schema import FloatArray, declarations
from validation.catalogue import Heuristic
from validation.kinds.promises import Holds
from validation.testing.transform import take

__all__ = ["MOST_WORTH", "SOLVER", "maximize", "pop_2", "pop_4", "pop_8", "pops", "poured"]

SOLVER = ("formulations",)
"""Packages that these heuristics import when they are called."""


def pop_2(instance: Sharing, *, rng: np.random.Generator | int = 0) -> Allocation | None:
    """Return the plan of POP with two parts (:func:`heuristics.gavel.pop.pop`), each solved exactly."""
    return pop(instance, _exact, parts=2, rng=rng)


def pop_4(instance: Sharing, *, rng: np.random.Generator | int = 0) -> Allocation | None:
    """Return the plan of POP with four parts (:func:`heuristics.gavel.pop.pop`), each solved exactly."""
    return pop(instance, _exact, parts=4, rng=rng)


def pop_8(instance: Sharing, *, rng: np.random.Generator | int = 0) -> Allocation | None:
    """Return the plan of POP with eight parts (:func:`heuristics.gavel.pop.pop`), each solved exactly."""
    return pop(instance, _exact, parts=8, rng=rng)


def pops(*, declines: bool = False) -> tuple[Heuristic, ...]:
    """Return POP as heuristics of a policy whose joined value is the same whichever optimum the parts return.

    That is so of all policies of one program but ``gavel.fifo``, where the queue of a part is not that of the
    whole, and ``gavel.cost``, where a part's optimum has any size.

    Parameters
    ----------
    declines : bool
        Whether a part may have no plan though the whole has one.
    """
    return tuple(
        Heuristic(one, declines=declines, imports=SOLVER, promises=(_in_parts(parts),))
        for one, parts in ((pop_2, 2), (pop_4, 4), (pop_8, 8))
    )


def _in_parts(parts: int) -> Holds:
    """Return the promise that jobs are dealt to parts, each with its workers, and each part has its optimum."""

    def test(instance: Sharing, plan: Any, rng: np.random.Generator) -> bool:
        import formulations

        n, most = instance.num_jobs, [instance.num_jobs, parts]
        for there in instance.num_workers.tolist():
            widths = [width for width in instance.scale_factors.tolist() if width <= there]
            most += [there // max(widths)] if widths else []
        dealt = [np.sort(jobs) for jobs in np.array_split(rng.permutation(n), min(most))] if n else []
        num_workers, turn = np.zeros((len(dealt), len(instance.num_workers)), np.int64), 0
        for pool, there in enumerate(instance.num_workers.tolist() if n else []):
            num_workers[:, pool] = there // len(dealt)
            for _ in range(there % len(dealt)):
                num_workers[turn % len(dealt), pool] += 1
                turn += 1
        seen = np.zeros(len(plan.time_fractions), bool)
        for jobs, workers in zip(dealt, num_workers, strict=True):
            part = replace(take(instance, "n", jobs), num_workers=workers)
            if isinstance(part, MaxMinFairness):
                own, whole = part.level_per_throughput, instance.level_per_throughput[jobs]
                part = replace(
                    part, weights=part.weights * [a / b if a > 0 else 1.0 for a, b in zip(own, whole, strict=True)]
                )
            rows = [*jobs, *(n + np.flatnonzero(np.isin(instance.pairs, jobs).all(axis=1)))]
            seen[rows] = True
            own_plan = Allocation(time_fractions=plan.time_fractions[rows])
            if isinstance(part, HierarchicalFairness):
                own_plan = part.plan(own_plan)
            best = formulations.solve(part).objective
            if part.violations(own_plan) or best is None or not agree(part.objective(own_plan), best):
                return False
        return not plan.time_fractions[~seen].any()

    return Holds(f"each of {parts} parts, or fewer, has its jobs, its workers and its optimum", test, stream=True)


def poured(passes: int) -> Holds:
    """Return the promise that parts of jobs, one for each type, rise together until their pool or the job is full.

    In a first pass the parts are alike; then they are what the job's steps were made of in the pass before.
    """

    def test(instance: Any, plan: Allocation) -> bool:
        n = instance.num_jobs
        split = (instance.fits[:n] & (instance.throughputs > 0)).astype(float)
        split /= np.maximum(split.sum(axis=1, keepdims=True), 1)
        for _ in range(passes):
            times = _risen(instance, split / instance.scale_factors[:, None])
            steps = instance.throughputs * times
            whole = steps.sum(axis=1, keepdims=True)
            fallen = np.maximum(np.divide(steps, whole, out=split.copy(), where=whole > 0), 1e-12)
            split = np.where(split > 0, fallen, 0.0)
        return bool(
            np.allclose(plan.time_fractions[:n], times, rtol=1e-5, atol=1e-6) and not plan.time_fractions[n:].any()
        )

    return Holds("the parts of jobs rise together until their pool is full, or the job runs all the time", test)


def _risen(instance: Any, pace: FloatArray) -> FloatArray:
    """(n, k) times of jobs that rise by weight, or in order, at this pace for a unit of water, from event to event."""
    times, left = np.zeros_like(pace), instance.num_workers.astype(float)
    rising, opened = pace.any(axis=1), left > 0
    entities = getattr(instance, "entities", np.zeros(len(pace), int))
    for _ in range(len(pace) + len(left) + 1):
        open_pace = np.where(opened[instance.pools], pace, 0.0)
        rising &= open_pace.any(axis=1)
        water = np.zeros(len(pace))
        for entity in set(entities[rising].tolist()):
            jobs = np.flatnonzero(rising & (entities == entity))
            water[jobs] = instance.weights[jobs] / instance.weights[jobs].sum()
            if hasattr(instance, "entities"):
                if instance.entity_policies[entity] == "fifo":
                    water[jobs] = [1.0, *[0.0] * (len(jobs) - 1)]
                water[jobs] *= instance.entity_weights[entity]
        speed = open_pace * water[:, None]
        if not speed.any():
            break
        taken = np.zeros_like(left)
        np.add.at(taken, instance.pools, instance.scale_factors @ speed)
        of_jobs, of_pools = (
            np.divide(room, rate, out=np.full(len(rate), np.inf), where=rate > 0)
            for room, rate in ((1 - times.sum(axis=1), speed.sum(axis=1)), (left, taken))
        )
        step = max(0.0, min(of_jobs.min(), of_pools.min()))
        times += step * speed
        left -= step * taken
        rising &= times.sum(axis=1) < 1 - 1e-12
        opened &= left > 1e-10 * instance.num_workers
    return times


def _worth_most(instance: Any, plan: Allocation) -> bool:
    """Return whether no allocation is worth more, where each bin of heights is worth less than the one below it.

    Bins end at the least height of the isolated share, and at twice as much again and again, up to the greatest.
    """
    if not instance.num_jobs:
        return True
    if isinstance(instance, MaxMinFairness):
        instance = HierarchicalFairness(**{name: getattr(instance, name) for name in declarations(MaxMinFairness)})
    weights = instance.rates(instance.ceilings <= 0)
    entries = np.argwhere(instance.fits)
    columns = []
    for row, kind in entries:
        alone = np.zeros((instance.num_jobs + instance.num_pairs, instance.num_types))
        alone[row, kind] = 1.0
        one = Allocation(time_fractions=alone)
        columns.append(np.concatenate([*instance.loads(one), instance.normalized_throughputs(one)]))
    raised, waits = np.flatnonzero(weights > 0), np.flatnonzero((weights <= 0) & (instance.ceilings > 0))
    scale = np.where(weights > 0, weights, instance.entity_weights[instance.entities])
    isolated = instance.normalized_throughputs(instance.isolated_share()) / scale
    starts = isolated[raised][isolated[raised] > 0]
    if not starts.size or not entries.size:
        return True
    unit = float(starts.min())
    most = min(float((instance.ceilings / scale)[raised].max()) / unit, 1e15)
    ends = 2.0 ** np.arange(max(1, int(np.ceil(np.log2(most)))) + 1)
    worth = 1e-8 ** (np.arange(len(ends)) / (len(ends) - 1))
    widths = np.append(np.diff(ends[:-1], prepend=0.0), np.inf)
    n, p, b = instance.num_jobs, len(instance.num_workers), len(ends)
    limits = np.concatenate([np.ones(n), instance.num_workers, np.zeros(n)])
    matrix = np.zeros((len(limits), len(columns) + b * len(raised) + len(waits)))
    matrix[:, : len(columns)] = np.array(columns).T
    matrix[n + p :] *= -1 / (scale[:, None] * unit)
    for place, job in enumerate(raised):
        matrix[n + p + job, len(columns) + b * place : len(columns) + b * (place + 1)] = 1.0
    for place, job in enumerate(waits):
        matrix[n + p + job, len(columns) + b * len(raised) + place] = 1.0
    cost = np.concatenate([np.zeros(len(columns)), np.tile(worth, len(raised)), np.full(len(waits), worth[-1])])
    upper = np.concatenate([np.ones(len(columns)), np.tile(widths, len(raised)), np.full(len(waits), np.inf)])
    rows, at = np.nonzero(matrix)
    greatest = float(cost @ maximize(cost, upper, (rows, at, matrix[rows, at]), limits))
    heights = instance.normalized_throughputs(plan) / scale / unit
    filled = np.clip(heights[raised, None] - np.append(0.0, ends[:-1]), 0.0, widths)
    return bool((filled @ worth).sum() + heights[waits].sum() * worth[-1] >= greatest * (1 - 1e-6))


MOST_WORTH = Holds("no allocation is worth more by bins of heights", _worth_most)


def _exact(part: Sharing) -> Allocation | None:
    import formulations

    plan = formulations.solve(part).plan
    assert plan is None or isinstance(plan, Allocation)
    return plan


def maximize(cost: FloatArray, upper: FloatArray, entries: Entries, limits: FloatArray) -> Any:
    """Return the point of a linear program that HiGHS finds (:data:`heuristics.gavel.binning.Maximize`)."""
    from formulations import LinearProgram, Session, SolverError
    from formulations.engine.linear import csr

    indptr, index, value = csr(*entries, len(limits))
    whole = np.zeros(len(cost), bool)
    below = np.full(len(limits), -np.inf)
    program = LinearProgram("max", 0.0, cost, np.zeros_like(cost), upper, whole, indptr, index, value, below, limits)
    result = Session().run(program)
    if result.x is None:
        raise SolverError(f"a linear program was not solved: {result.message}")
    return result.x
