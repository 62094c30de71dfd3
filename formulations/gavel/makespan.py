"""Exact model of :class:`instances.gavel.makespan.Makespan`: one linear program in the reciprocal.

The makespan is at most t exactly when every job makes ``steps_m / t`` steps/s.  In units of the
isolated makespan ``t_iso = max_m steps_m / throughput(m, X_isolated)``, with ``rate = t_iso / t``
(a job that runs in pairs only counts in t_iso as if it had 1/n of its best pair's time):

    max   rate
    s.t.  completion[m]:  sum_{r, j} (t_iso / steps_m) * throughput[m, r, j] * X[r, j]  >=  rate
                                                           for each job m that has steps left
          job_time[m], pool_capacity[p]  of :mod:`formulations.gavel.sharing`.

Where a job runs nowhere, or none has steps left, no program is needed.

The greatest rate R gives the least makespan t_iso / R, and an upper bound on the rate gives a lower
bound on the makespan.  The rate is at least 1, because the isolated share is a plan, so tolerances
of the solver are relative ones on the makespan.  Its methods are those of :mod:`formulations.methods.policies`.
"""

from __future__ import annotations

import math

import numpy as np
import pyomo.environ as pyo

from formulations.engine.protocol import Formulation
from formulations.gavel.at_hand import isolated_share, level_at_most
from formulations.gavel.sharing import SharingProgram, read
from instances.gavel.makespan import Makespan
from instances.renamed import moved_names

__all__ = ["FORMULATION", "bound", "build", "in_model", "isolated_makespan", "program", "read"]


def build(instance: Makespan) -> pyo.ConcreteModel:
    """Pyomo model of a makespan instance.

    Sets JOBS, ACTIVE (with steps left), ROWS (jobs alone, then pairs), TYPES, POOLS; variables ``X[r, j]`` and
    ``rate``; constraints ``job_time[m]``, ``pool_capacity[p]`` and ``completion[m]``; objective
    ``greatest_rate``.
    """
    return program(instance).model()


def program(instance: Makespan) -> SharingProgram:
    """State the program of the greatest rate at which all jobs complete."""
    policy = SharingProgram(instance)
    jobs = policy.subset("ACTIVE", np.flatnonzero(instance.active))
    # With no job that has steps left, nothing else limits the rate.
    rate = policy.variable("rate", lower=0, upper=np.inf if instance.active.any() else 1.0)
    policy.maximize("greatest_rate", rate)
    steps = instance.steps[jobs]
    policy.constraint("completion", isolated_makespan(instance) / steps * policy.throughput[jobs] >= rate)
    return policy


def bound(instance: Makespan, value: float) -> float:
    """Return the makespan, s, that no plan beats when the rate is at most ``value``."""
    if not instance.active.any():
        return 0.0
    return isolated_makespan(instance) / value if value > 0 else math.inf


def in_model(instance: Makespan, value: float) -> float:
    """Return the rate at which the makespan is ``value``, s; where that is 0 no job limits it, and it is 1."""
    return isolated_makespan(instance) / value if value > 0 else 1.0


def isolated_makespan(instance: Makespan) -> float:
    """Return the unit of time, s: positive and finite."""
    slowest = np.where(
        instance.isolated_throughputs > 0,
        instance.isolated_throughputs,
        instance.greatest_throughputs / instance.num_jobs,
    )
    times = np.divide(instance.steps, slowest, out=np.zeros(instance.num_jobs), where=slowest > 0)
    return float(times.max()) or 1.0


def at_least(instance: Makespan) -> float:
    """Return a makespan, s, that no plan is below."""
    if not instance.active.any():
        return 0.0
    speeds = np.divide(
        instance.greatest_throughputs, instance.steps, out=np.full(instance.num_jobs, np.inf), where=instance.active
    )
    rate = level_at_most(instance, speeds)
    return 1 / rate if rate > 0 else math.inf


FORMULATION = Formulation(
    build=build, read=read, bound=bound, in_model=in_model, trivial=isolated_share, trivial_bound=at_least
)
__getattr__ = moved_names(__name__, "formulations.methods.policies", "solve")
