"""Exact model of :class:`instances.gavel.max_min_fairness.MaxMinFairness`: one linear program.

    max   level
    s.t.  fairness[m]:  sum_{r, j} (scale_factor_m / (w_m * throughput(m, X_equal)))
                            * throughput[m, r, j] * X[r, j]  >=  level     for each job m
          job_time[m], pool_capacity[p]  of :mod:`formulations.gavel.sharing`.

Weights are measured in a power of two, 1 unless they are extreme, so that the levels are of ordinary size.
With many pairs, :func:`solve` generates their columns (:mod:`formulations.gavel.pricing`).
"""

from __future__ import annotations

import pyomo.environ as pyo

from formulations.engine.options import Options
from formulations.engine.protocol import Formulation
from formulations.engine.scaling import unit
from formulations.engine.solution import Solution
from formulations.gavel.pricing import PRICED_JOBS, solve_program
from formulations.gavel.sharing import SharingProgram, at_once, isolated_share, jobs_that, read_allocation
from instances.gavel.max_min_fairness import MaxMinFairness
from instances.gavel.sharing import Allocation

__all__ = ["FORMULATION", "bound", "build", "read", "solve"]


def build(instance: MaxMinFairness) -> pyo.ConcreteModel:
    """Pyomo model of a max-min fairness instance.

    Sets JOBS, ROWS (jobs alone, then pairs), TYPES, POOLS; variables ``X[r, j]`` and ``level``;
    constraints ``job_time[m]``, ``pool_capacity[p]`` and ``fairness[m]``; objective
    ``least_level``.
    """
    return _program(instance).model()


def read(model: pyo.ConcreteModel) -> Allocation:
    """The plan in the values of ``X``."""
    return read_allocation(model)


def bound(instance: MaxMinFairness, value: float) -> float:
    """The least level that is impossible to beat when no plan's level in the model exceeds ``value``."""
    return value / unit(instance.weights)


def solve(instance: MaxMinFairness, options: Options) -> Solution:
    """Solve the program by HiGHS, with many pairs by generating columns, with many jobs and no pairs by prices."""
    without = instance.level_per_throughput <= 0
    if without.any():
        why = f"an equal share gives {jobs_that(without)} nothing, so the least level is 0"
        return at_once(instance, instance.isolated_share(), 0.0, why)
    # No job is above its ceiling, where it has all of its time in its best place.
    ceilings = instance.level_per_throughput * instance.greatest_throughputs / instance.weights
    reach = float(ceilings.min()) * unit(instance.weights)
    return solve_program(_program(instance), options, priced_jobs=PRICED_JOBS // 2, reach=reach, bound=bound)


def _program(instance: MaxMinFairness) -> SharingProgram:
    program = SharingProgram(instance)
    program.variable("level", lower=0)
    weights = instance.weights / unit(instance.weights)
    program.throughput_rows("fairness", instance.level_per_throughput / weights, less="level")
    program.maximize("least_level", variable="level")
    return program


FORMULATION = Formulation(build=build, read=read, bound=bound, solve=solve, trivial=isolated_share)
