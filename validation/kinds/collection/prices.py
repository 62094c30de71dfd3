"""Prices that prove the collection's bounds, for the reference, which takes nothing else on trust.

What a file of prices holds, by problem; the inequalities that make bounds of them are in the reference's modules
(``instances/reference/gavel.py``, ``elasticflow.py``, ``sia.py`` and ``prism.py``).  All prices are at least 0 but
where it says otherwise.

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
elasticflow.best_effort                               also ``job`` and ``end``, and prices ``sooner`` and ``later``: of
                                                      the plans in which it is done by the end of so many slots, and
                                                      of the others
aryl.reclaim                                          ``of`` and ``shares`` (p,) int of each job on each of its
                                                      servers, ``of`` one; also ``server``, and prices ``returned`` and
                                                      ``kept``: of the plans that return it, and of the others
sia.goodput                                           ``types`` (t,) of a GPU of each type
prism.placement                                       ``level``, which no plan is below; ``models`` (n,) of each model,
                                                      which may be negative, and ``moved`` of a GB that is moved
elasticflow.allocation                                ``full`` and ``idle`` (h,) of a GPU in each slot, for the plans in
                                                      which no GPU is idle in slot 0, where the price may be negative,
                                                      and for the others
====================================================  =================================================================

The bounds of Gavel's policies meet the optimum but for rounding.  Those of ElasticFlow's problems are the best of a
Lagrangian relaxation, in which slots' GPUs have prices, each job's whole numbers are kept and values are whole; they
need not meet the optimum, nor need that of ``sia.goodput``.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from formulations.gavel.duals import policy_prices
from formulations.methods import branching
from formulations.methods.fillings import filling_prices
from formulations.methods.types_core import type_prices
from instances.aryl.reclaim import Reclaim, ReclaimPlan
from instances.base import Instance, Plan
from instances.elasticflow.sharing import DeadlineJobs
from instances.gavel.sharing import Sharing
from instances.gavel.shortest_job_first import ShortestJobFirst
from instances.prism.placement import PrismPlacement, PrismPlacementPlan
from instances.sia.goodput import Goodput
from validation.kinds.collection.slots import slot_prices

__all__ = ["prices"]

Bound = Callable[[dict[str, Any]], Fraction]

NEARLY = 1e-9
"""Part of the best value by which a bound may be below it."""


def prices(instance: Instance[Any], bound: Bound, plan: Plan | None = None) -> dict[str, Any] | None:
    """Prices that prove as good a bound as is known to be provable so; None for a problem without prices.

    Parameters
    ----------
    instance : Instance
        With at least one job, and a feasible plan.
    bound : callable
        What prices prove, as the checker says it; among several the best are taken.
    plan : Plan, optional
        The best plan known.
    """
    if isinstance(instance, DeadlineJobs):
        return slot_prices(instance, bound, plan)
    if isinstance(instance, Reclaim):
        return branching.prices(instance, plan) if isinstance(plan, ReclaimPlan) else None
    if isinstance(instance, Goodput):
        return {"types": type_prices(instance)[0].tolist()}
    if isinstance(instance, PrismPlacement):
        return _filling_prices(instance, bound, plan)
    if isinstance(instance, ShortestJobFirst) or not isinstance(instance, Sharing):
        return None
    return policy_prices(instance)


def _filling_prices(instance: PrismPlacement, bound: Bound, plan: Plan | None) -> dict[str, Any] | None:
    """Return prices of models by which no plan is better than the best one known; None where there are none."""
    if not isinstance(plan, PrismPlacementPlan) or not instance.objective(plan):
        return None
    level = instance.objective(plan) * (1 - NEARLY)
    models, moved = filling_prices(instance, level)
    found = {"level": level, "models": models.tolist(), "moved": moved}
    return found if bound(found) else None
