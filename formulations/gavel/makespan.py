"""Exact model of :class:`instances.gavel.makespan.Makespan`: one linear program in the reciprocal.

The makespan is at most t exactly when every job makes ``steps_m / t`` steps/s.  In units of the
isolated makespan ``t_iso = max_m steps_m / throughput(m, X_isolated)``, with ``rate = t_iso / t``
(a job that runs in pairs only counts in t_iso as if it had 1/n of its best pair's time):

    max   rate
    s.t.  completion[m]:  sum_{r, j} (t_iso / steps_m) * throughput[m, r, j] * X[r, j]  >=  rate
                                                           for each job m that has steps left
          job_time[m], pool_capacity[p]  of :mod:`formulations.gavel.sharing`.

Where a job runs nowhere, or none has steps left, :func:`solve` needs no program.

The greatest rate R gives the least makespan t_iso / R, and an upper bound on the rate gives a lower
bound on the makespan.  The rate is at least 1, because the isolated share is a plan, so tolerances
of the solver are relative ones on the makespan.  With many pairs, :func:`solve` generates their
columns (:mod:`formulations.gavel.pricing`).
"""

from __future__ import annotations

import math

import numpy as np
import pyomo.environ as pyo

from formulations.engine.options import Options
from formulations.engine.protocol import Formulation
from formulations.engine.solution import Solution
from formulations.gavel.pricing import SIMPLEX_ROWS, solve_program
from formulations.gavel.sharing import SharingProgram, at_once, isolated_share, jobs_that, read_allocation
from instances.gavel.makespan import Makespan
from instances.gavel.sharing import Allocation

__all__ = ["FORMULATION", "bound", "build", "read", "solve"]


def build(instance: Makespan) -> pyo.ConcreteModel:
    """Pyomo model of a makespan instance.

    Sets JOBS, ACTIVE (with steps left), ROWS (jobs alone, then pairs), TYPES, POOLS; variables ``X[r, j]`` and
    ``rate``; constraints ``job_time[m]``, ``pool_capacity[p]`` and ``completion[m]``; objective
    ``greatest_rate``.
    """
    return _program(instance).model()


def read(model: pyo.ConcreteModel) -> Allocation:
    """The plan in the values of ``X``."""
    return read_allocation(model)


def bound(instance: Makespan, value: float) -> float:
    """The makespan, s, that is impossible to beat when the rate is at most ``value``."""
    if not instance.active.any():
        return 0.0
    return _isolated_makespan(instance) / value if value > 0 else math.inf


def solve(instance: Makespan, options: Options) -> Solution:
    """Solve the program by HiGHS, with many pairs by generating columns, with many jobs and no pairs by prices."""
    if instance.endless.any():
        return at_once(instance, instance.isolated_share(), math.inf, f"{jobs_that(instance.endless)} can run nowhere")
    if not instance.active.any():
        return at_once(instance, instance.isolated_share(), 0.0, "no job has steps left")
    # No job is faster than with all of its time in its best place.
    fastest = instance.greatest_throughputs[instance.active] / instance.steps[instance.active]
    reach = _isolated_makespan(instance) * float(fastest.min())
    return solve_program(_program(instance), options, interior_rows=SIMPLEX_ROWS // 2, reach=reach, bound=bound)


def _program(instance: Makespan) -> SharingProgram:
    program = SharingProgram(instance)
    # With no job that has steps left, nothing else limits the rate.
    program.variable("rate", lower=0, upper=np.inf if instance.active.any() else 1.0)
    program.subset("ACTIVE", np.flatnonzero(instance.active))
    steps = np.where(instance.active, instance.steps, 1.0)
    program.throughput_rows("completion", _isolated_makespan(instance) / steps, over="ACTIVE", less="rate")
    program.maximize("greatest_rate", variable="rate")
    return program


def _isolated_makespan(instance: Makespan) -> float:
    """The unit of time, s: positive and finite."""
    slowest = np.where(
        instance.isolated_throughputs > 0,
        instance.isolated_throughputs,
        instance.greatest_throughputs / instance.num_jobs,
    )
    times = np.divide(instance.steps, slowest, out=np.zeros(instance.num_jobs), where=slowest > 0)
    return float(times.max()) or 1.0


FORMULATION = Formulation(build=build, read=read, bound=bound, solve=solve, trivial=isolated_share)
