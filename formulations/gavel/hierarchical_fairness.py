"""Exact model of :class:`instances.gavel.hierarchical_fairness.HierarchicalFairness` : one program for each step.

With v_m(X) = scale_factor_m * throughput(m, X) / throughput(m, X_equal), levels l_m so far and
current weights rate_m, one step of the definition is a linear program,

    max   rise
    s.t.  rises[m]:  v_m(X) / rate_m  -  rise  >=  l_m / rate_m       for each job m that rises
          keeps[m]:  v_m(X)  >=  l_m                                  for each other job m
          job_time[m], pool_capacity[p]  of :mod:`formulations.gavel.sharing`,

and a job m is frozen when its level cannot rise with all others kept: the same program, with
rate 1 for m and 0 for the others, has the optimum 0.  :func:`build` makes this program;
:mod:`formulations.methods.water_filling` does all steps.
"""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo

from formulations.engine.protocol import Formulation
from formulations.gavel.sharing import SharingProgram
from formulations.gavel.sharing import read as read_allocation
from instances.gavel.hierarchical_fairness import HierarchicalAllocation, HierarchicalFairness
from instances.renamed import moved_names
from instances.schema import FloatArray

__all__ = ["FORMULATION", "build", "read"]


def build(
    instance: HierarchicalFairness, levels: FloatArray | None = None, rates: FloatArray | None = None
) -> pyo.ConcreteModel:
    """Pyomo model of one step: how far levels can rise at their rates.

    Sets JOBS, ROWS (jobs alone, then pairs), TYPES, POOLS, RISING, KEPT (jobs with a rate, and the
    others); variables ``X[r, j]`` and ``rise``; constraints ``job_time[m]``, ``pool_capacity[p]``,
    ``rises[m]`` and ``keeps[m]``; objective ``highest_rise``.

    Parameters
    ----------
    instance : HierarchicalFairness
    levels : (n,) float, optional
        Levels so far; 0 by default, for the first step.
    rates : (n,) float, optional
        Current weights; by default those of the first step.
    """
    n = instance.num_jobs
    levels = np.zeros(n) if levels is None else np.asarray(levels, float)
    rates = instance.rates(np.zeros(n, bool)) if rates is None else np.asarray(rates, float)
    policy = SharingProgram(instance)
    rising = policy.subset("RISING", np.flatnonzero(rates > 0))
    kept = policy.subset("KEPT", np.flatnonzero(rates <= 0))
    rise = policy.variable("rise")
    policy.maximize("highest_rise", rise)
    level = instance.level_per_throughput
    if rising.members.size:
        risen, rate = level[rising], rates[rising]
        policy.constraint("rises", risen / rate * policy.throughput[rising] >= levels[rising] / rate + rise)
    if kept.members.size:
        policy.constraint("keeps", level[kept] * policy.throughput[kept] >= levels[kept])
    return policy.model()


def read(model: pyo.ConcreteModel) -> HierarchicalAllocation:
    """Read the plan from the values of ``X``."""
    instance: HierarchicalFairness = model.instance
    return instance.plan(read_allocation(model))


FORMULATION = Formulation(build=build, read=read, any_solver=True)
__getattr__ = moved_names(
    __name__,
    "formulations.methods.water_filling",
    *("Level", "Limit", "WaterFilling", "printed_water_filling", "solve", "solve_step_by_step", "water_filling"),
)
