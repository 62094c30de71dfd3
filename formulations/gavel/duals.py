"""Prices by which the reference proves what plans of Gavel's policies are worth, from linear programs of their own.

What is made of them stands in :mod:`instances.reference.gavel`, which takes nothing else on trust.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from formulations.engine.solving import build, solve
from formulations.gavel.priced import times_per_step
from formulations.gavel.sharing import SharingProgram
from instances.base import Plan
from instances.gavel.cost import Cost
from instances.gavel.fifo import Fifo
from instances.gavel.finish_time_fairness import FinishTimeFairness
from instances.gavel.hierarchical_fairness import HierarchicalAllocation, HierarchicalFairness
from instances.gavel.makespan import Makespan
from instances.gavel.max_min_fairness import MaxMinFairness
from instances.gavel.sharing import Allocation, Sharing
from instances.gavel.throughput_per_dollar import ThroughputPerDollar
from instances.gavel.total_throughput import TotalThroughput
from instances.schema import FloatArray, IntArray

__all__ = ["policy_prices"]

TRACE = 1e-13
"""Prices of less than this part of the greatest one of their kind are rounding."""

TIE = 1e-9
"""Levels so close to where they stop, in parts of what a job has at best, are there."""


def policy_prices(instance: Sharing, plan: Plan | None = None) -> dict[str, Any]:
    """Find prices of the rows of the policy's linear program, or of that of its optimum.

    Parameters
    ----------
    instance : Sharing
        Of a policy that is a linear program, or several; with at least one job, and a feasible plan.
    plan : Plan, optional
        An optimal plan, where one is known.

    Returns
    -------
    dict
        As the reference (:mod:`instances.reference.gavel`) reads them.  They need not be right: wrong ones prove less.
    """
    program = SharingProgram(instance)
    n = instance.num_jobs
    levels = np.full(n, np.nan)
    unit = 1.0
    if isinstance(instance, (Cost, ThroughputPerDollar)):
        model = build(instance)
    else:
        if isinstance(instance, Fifo):
            program.maximize("worth", (instance.worths[:, None] * program.throughputs).sum())
        elif isinstance(instance, TotalThroughput):
            program.maximize("worth", program.throughputs.sum())
        else:
            levels = _levels(instance, plan)
            if (levels > 0).any():
                unit = float(np.median(levels[levels > 0]))
            least = program.variable("least", lower=0, upper=np.inf if np.isfinite(levels).any() else 0.0)
            counted = program.subset("COUNTED", np.flatnonzero(np.isfinite(levels)))
            program.constraint("level", levels[counted] / unit * program.throughput[counted] >= least)
            program.maximize("greatest", least)
        model = program.model()
    duals = solve(model).duals
    pools, jobs = duals["pool_capacity"], duals["job_time"]
    found: dict[str, Any] = {}
    if isinstance(instance, (Cost, ThroughputPerDollar)):
        worth = np.zeros(n)
        worth[instance.slo_jobs] = -duals["slo"] * times_per_step(instance)[instance.slo_jobs]
        found["slos"] = _cleaned(worth)
    if "level" in duals:
        worth = np.zeros(n)
        worth[np.isfinite(levels)] = -duals["level"]
        if isinstance(instance, FinishTimeFairness):
            worth *= np.nan_to_num(levels) / unit
        else:
            pools, jobs = pools * unit, jobs * unit
        found["levels"] = _cleaned(worth)
    found["pools"] = _cleaned(pools)
    found["jobs"] = _cleaned(jobs) if instance.num_pairs or isinstance(instance, Cost) else None
    return found | _later(instance, plan) if isinstance(instance, HierarchicalFairness) else found


def _later(instance: HierarchicalFairness, plan: Plan | None) -> dict[str, Any]:
    """Prices of what holds the jobs that stop at a height: one limit for all of them, at the levels by then."""
    best = plan or solve(instance).plan
    assert isinstance(best, HierarchicalAllocation)
    had = np.maximum(0.0, instance.normalized_throughputs(best))
    scales = np.where(instance.ceilings > 0, instance.ceilings, 1.0)
    levels, frozen = np.zeros(instance.num_jobs), np.zeros(instance.num_jobs, bool)
    held = []
    while not frozen.all():
        rates = instance.rates(frozen)
        rising = np.flatnonzero(rates > 0)
        heights = np.maximum(0.0, had - levels)[rising] / rates[rising]
        levels = np.where(rates > 0, np.minimum(levels + heights.min() * rates, had), levels)
        stopped = rising[had[rising] - levels[rising] <= TIE * scales[rising]]
        levels[stopped] = had[stopped]
        frozen[stopped] = True
        if (instance.ceilings[stopped] > 0).any():
            held.append(_held(instance, levels / scales, scales, stopped))
    return {
        "later_pools": [pools for pools, _, _ in held],
        "later_jobs": [jobs for _, jobs, _ in held] if instance.num_pairs else None,
        "later_levels": [worth for _, _, worth in held],
    }


def _held(
    instance: HierarchicalFairness, levels: FloatArray, scales: FloatArray, stopped: IntArray
) -> tuple[list[float], list[float], list[float]]:
    """Prices of pools, of jobs and of normalised throughput, by which no job that has stopped has more."""
    program = SharingProgram(instance)
    parts = instance.level_per_throughput / scales
    counts = np.isin(np.arange(instance.num_jobs), stopped).astype(float)
    program.constraint("keeps", parts * program.throughput >= levels)
    program.maximize("stopped", (counts * parts * program.throughput).sum())
    duals = solve(program.model()).duals
    worth = np.where(instance.ceilings > 0, (counts + np.maximum(0.0, -duals["keeps"])) / scales, 0.0)
    return _cleaned(duals["pool_capacity"]), _cleaned(duals["job_time"]), _cleaned(worth)


def _levels(instance: Sharing, plan: Plan | None) -> FloatArray:
    """(n,) float: what one step/s adds to what is to be greatest for the job where it is least; NaN where it is not."""
    levels = np.full(instance.num_jobs, np.nan)
    if isinstance(instance, MaxMinFairness):
        return instance.level_per_throughput / instance.weights
    if isinstance(instance, HierarchicalFairness):
        rates = instance.rates(np.zeros(instance.num_jobs, bool))
        np.divide(instance.level_per_throughput, rates, out=levels, where=rates > 0)
        return levels
    if isinstance(instance, Makespan):
        np.divide(1.0, instance.steps, out=levels, where=instance.active)
        return levels
    assert isinstance(instance, FinishTimeFairness)
    best = plan or solve(instance).plan
    assert isinstance(best, Allocation)
    value = instance.objective(best)
    jobs = instance.weighed
    levels[jobs] = (value * instance.isolated_times[jobs] - instance.elapsed[jobs]) / instance.steps[jobs]
    return levels


def _cleaned(found: FloatArray) -> list[float]:
    least = TRACE * float(np.abs(found).max(initial=0.0))
    return np.where(found > least, found, 0.0).tolist()  # type: ignore[no-any-return]
