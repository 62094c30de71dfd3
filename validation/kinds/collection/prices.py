"""Prices that prove the collection's bounds, for the reference, which takes nothing else on trust.

What a file of prices holds, by problem; the inequalities that make bounds of them are in the reference's modules
(``instances/reference/gavel.py`` and ``elasticflow.py``).  All prices are at least 0 but where it says otherwise.

====================================================  =================================================================
problem                                               prices
====================================================  =================================================================
gavel.total_throughput, gavel.fifo                    ``pools`` (p,) of a worker; ``jobs`` (n,) of a job's time, null
                                                      where there are no pairs
gavel.max_min_fairness, gavel.hierarchical_fairness,  those and ``levels`` (n,): of a job's level, of its steps/s over
gavel.makespan, gavel.finish_time_fairness            its steps, and of its steps/s
gavel.hierarchical_fairness                           those, and for each height at which jobs stop ``later_pools``
                                                      (l, p), ``later_jobs`` (l, n) and ``later_levels`` (l, n), of
                                                      normalised throughput
gavel.throughput_per_dollar, gavel.cost               those of the first line and ``slos`` (n,): of a job's steps/s
                                                      where it has an SLO; ``jobs`` of the latter always
elasticflow.minimum_satisfactory_share,               ``slots`` (h,) of a GPU in each slot
elasticflow.admission, elasticflow.best_effort
elasticflow.allocation                                ``full`` and ``idle`` (h,) of a GPU in each slot, for the plans in
                                                      which no GPU is idle in slot 0, where the price may be negative,
                                                      and for the others
====================================================  =================================================================

The bounds of Gavel's policies meet the optimum but for rounding.  Those of ElasticFlow's problems are the best of a
Lagrangian relaxation, in which slots' GPUs have prices, each job's whole numbers are kept and values are whole; they
need not meet the optimum.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

import formulations
from formulations.gavel.priced import times_per_step
from formulations.gavel.sharing import SharingProgram
from instances.base import Instance
from instances.elasticflow.sharing import DeadlineJobs
from instances.gavel.cost import Cost
from instances.gavel.fifo import Fifo
from instances.gavel.finish_time_fairness import FinishTimeFairness
from instances.gavel.hierarchical_fairness import HierarchicalAllocation, HierarchicalFairness
from instances.gavel.makespan import Makespan
from instances.gavel.max_min_fairness import MaxMinFairness
from instances.gavel.sharing import Sharing
from instances.gavel.shortest_job_first import ShortestJobFirst
from instances.gavel.throughput_per_dollar import ThroughputPerDollar
from instances.gavel.total_throughput import TotalThroughput
from instances.schema import FloatArray, IntArray
from validation.kinds.collection.slots import slot_prices

__all__ = ["prices"]

TRACE = 1e-13
"""Prices of less than this part of the greatest one of their kind are rounding."""

TIE = 1e-9
"""Levels so close to where they stop, in parts of what a job has at best, are there."""

Bound = Callable[[dict[str, Any]], Fraction]


def prices(instance: Instance[Any], bound: Bound) -> dict[str, Any] | None:
    """Prices that prove as good a bound as is known to be provable so; None for a problem without prices.

    Parameters
    ----------
    instance : Instance
        With at least one job, and a feasible plan.
    bound : callable
        What prices prove, as the checker says it; among several the best are taken.
    """
    if isinstance(instance, DeadlineJobs):
        return slot_prices(instance, bound)
    if isinstance(instance, ShortestJobFirst) or not isinstance(instance, Sharing):
        return None
    return _of_policy(instance)


def _of_policy(instance: Sharing) -> dict[str, Any]:
    """Prices of the rows of the policy's linear program, or of that of its optimum."""
    program = SharingProgram(instance)
    n = instance.num_jobs
    levels = np.full(n, np.nan)
    unit = 1.0
    if isinstance(instance, (Cost, ThroughputPerDollar)):
        model = formulations.build(instance)
    else:
        if isinstance(instance, Fifo):
            program.maximize("worth", (instance.worths[:, None] * program.throughputs).sum())
        elif isinstance(instance, TotalThroughput):
            program.maximize("worth", program.throughputs.sum())
        else:
            levels = _levels(instance)
            if (levels > 0).any():
                unit = float(np.median(levels[levels > 0]))
            least = program.variable("least", lower=0, upper=np.inf if np.isfinite(levels).any() else 0.0)
            counted = program.subset("COUNTED", np.flatnonzero(np.isfinite(levels)))
            program.constraint("level", levels[counted] / unit * program.throughput[counted] >= least)
            program.maximize("greatest", least)
        model = program.model()
    duals = formulations.solve(model).duals
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
    return found | _later(instance) if isinstance(instance, HierarchicalFairness) else found


def _later(instance: HierarchicalFairness) -> dict[str, Any]:
    """Prices of what holds the jobs that stop at a height: one limit for all of them, at the levels by then."""
    solution = formulations.solve(instance)
    assert isinstance(solution.plan, HierarchicalAllocation)
    had = np.maximum(0.0, instance.normalized_throughputs(solution.plan))
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
    duals = formulations.solve(program.model()).duals
    worth = np.where(instance.ceilings > 0, (counts + np.maximum(0.0, -duals["keeps"])) / scales, 0.0)
    return _cleaned(duals["pool_capacity"]), _cleaned(duals["job_time"]), _cleaned(worth)


def _levels(instance: Sharing) -> FloatArray:
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
    value = formulations.solve(instance).objective
    assert value is not None
    jobs = instance.weighed
    levels[jobs] = (value * instance.isolated_times[jobs] - instance.elapsed[jobs]) / instance.steps[jobs]
    return levels


def _cleaned(found: FloatArray) -> list[float]:
    least = TRACE * float(np.abs(found).max(initial=0.0))
    return np.where(found > least, found, 0.0).tolist()  # type: ignore[no-any-return]
