"""Exact model of :class:`instances.gavel.cost.Cost`: a linear-fractional program as one linear program.

By the transformation of Charnes and Cooper, scale the plan until it spends a fixed budget B:
Y = t * X with t = B / spending(X).  A ratio of sums does not change when both are scaled, so the plan
of the greatest ratio is the one that makes the most of B:

    max   sum_{r, j} sum_{m in r} throughput[m, r, j] * Y[r, j]                           (B times the ratio)
    s.t.  budget:            sum_{r, j} price[r, j] * Y[r, j]                       =   B
          job_time[m]:       sum of Y[r, j] over the rows r that contain job m    <=  t
          pool_capacity[p]:  sum of scale_factor_r * Y[r, j] over types j of p    <=  num_workers[p] * t
          slo[m]:            sum_{r, j} (slo_m / steps_m) * throughput[m, r, j] * Y[r, j]  >=  t
                                                                    for each job m with an SLO
          Y >= 0, t >= 1, and Y[r, j] = 0 where row r is wider than the pool of type j.

The price of a row is costs_j * scale_factor_r, or costs_j where one worker of each row is paid.  B is ten
times what all workers cost together.  No plan spends more than a tenth of it, so t >= 1 cuts
nothing off, every point stands for a plan, X = Y / t, and an error of the solver in Y is smaller in X.

If X is such a plan, so is Y / t' for any smaller t' that still covers the time of every job and the
load of every pool: the ratio is the same and every job is faster.  :func:`read` takes the smallest
t': of all plans with the optimal mix, the one that uses the cluster most.

SLOs that cannot be met together make the program infeasible; ``formulations.explain`` then names a
conflict: the rows ``slo[m]`` of jobs that cannot all be in time, and the limits that they share.  (It
is the slack in t that keeps the budget out of it.)
Its methods are those of :mod:`formulations.methods.argument` and :mod:`~formulations.methods.policies`.

References
----------
Charnes and Cooper, "Programming with linear fractional functionals" (1962).
"""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo

from formulations.engine.linear import LinearProgram
from formulations.engine.protocol import Formulation
from formulations.gavel.at_hand import isolated_share
from formulations.gavel.priced import explain, times_per_step
from formulations.gavel.sharing import SharingProgram, incidence, read
from instances.base import TOLERANCE
from instances.gavel.cost import Cost
from instances.renamed import moved_names
from instances.schema import FloatArray

__all__ = ["FORMULATION", "bound", "build", "in_model", "program", "read", "slack"]


def build(instance: Cost) -> pyo.ConcreteModel:
    """Pyomo model of a cost instance.

    Sets JOBS, SLO_JOBS, ROWS (jobs alone, then pairs), TYPES, POOLS; variables ``Y[r, j]`` and
    ``t``; constraints ``job_time[m]``, ``pool_capacity[p]``, ``budget`` and ``slo[m]``; objective
    ``scaled_throughput``.
    """
    return program(instance).model()


def program(instance: Cost) -> SharingProgram:
    """Steps/s for a fixed budget, with all SLOs met; Y = t * X."""
    budget = _budget(instance)
    policy = SharingProgram(instance, largest=budget / float(instance.prices.min()))
    jobs = policy.subset("SLO_JOBS", instance.slo_jobs)
    policy.maximize("scaled_throughput", policy.throughput.sum())
    # Where no job fits anywhere, nothing can be spent.
    spending = (instance.prices * policy.time_fractions).sum()
    policy.constraint("budget", spending == (budget if instance.fits.any() else 0.0))
    policy.constraint("slo", times_per_step(instance)[jobs] * policy.throughput[jobs] >= policy.within)
    return policy


def bound(instance: Cost, value: float) -> float:
    """Return the ratio that no plan beats when none makes more than ``value`` of the budget."""
    return value / _budget(instance) if instance.fits.any() else value


def in_model(instance: Cost, value: float) -> float:
    """Return what a plan of the ratio ``value`` makes of the budget."""
    return value * _budget(instance) if instance.fits.any() else value


def _budget(instance: Cost) -> float:
    """Ten times what all workers cost together, each at the dearest type of its pool, $/h."""
    dearest = np.zeros(len(instance.num_workers))
    np.maximum.at(dearest, instance.pools, instance.costs)
    return 10 * float(dearest @ instance.num_workers)


def slack(instance: Cost, program: LinearProgram, duals: FloatArray) -> float:
    """Return what the judge's tolerance may be worth, in the program's objective.

    With prices y of the limits and u of the SLOs, sum(y * limits) <= sum(u) by the column of t.  A plan
    that misses all limits by a part e thus makes, beyond the bound on its ratio, at most 2 e times what
    its shares take of the limits at the prices y, and no more than the limits are worth; relative to what
    it spends, that is at most the one of its columns for which it is most, or the limits' worth over the
    least that the SLOs cost.
    """
    if not instance.slo_jobs.size:
        return 0.0
    limits = np.arange(program.num_rows) < instance.num_jobs + len(instance.num_workers)
    worth = np.where(limits, np.maximum(duals, 0.0), 0.0)
    prices = instance.prices.ravel()
    usable = instance.fits.ravel()
    taken = program.column_products(worth)[: len(usable)]
    most = np.concatenate([np.ones(instance.num_jobs), instance.num_workers])
    beyond = min(
        float((taken[usable] / prices[usable]).max()),
        float(worth[: len(most)] @ most) / _least_spending(instance, prices),
    )
    return 3 * TOLERANCE * _budget(instance) * beyond


def _least_spending(instance: Cost, prices: FloatArray) -> float:
    """Return the least that a plan meeting the SLOs spends, $/h: each job at the cheapest, half the price of a pair."""
    entries = incidence(instance)
    usable = instance.fits.ravel()[entries.column] & (entries.throughput > 0)
    job, column = entries.job[usable], entries.column[usable]
    shared = np.where(column < instance.num_jobs * instance.num_types, 1.0, 2.0)
    cheapest = np.full(instance.num_jobs, np.inf)
    np.minimum.at(cheapest, job, prices[column] / (shared * entries.throughput[usable]))
    jobs = instance.slo_jobs
    return float((instance.steps / instance.slos)[jobs] @ cheapest[jobs])


def best_entry(instance: Cost) -> float:
    """Return the greatest ratio of a row on a type, steps/s per $/h, which no ratio of sums over them exceeds."""
    throughputs = np.concatenate([instance.throughputs, instance.pair_throughputs.sum(axis=2)])
    return float((throughputs / instance.prices).max(where=instance.fits, initial=0.0))


FORMULATION = Formulation(
    build=build,
    read=read,
    bound=bound,
    in_model=in_model,
    slack=slack,
    explain=explain,
    trivial=isolated_share,
    trivial_bound=best_entry,
)
__getattr__ = moved_names(__name__, "formulations.methods.policies", "solve")
