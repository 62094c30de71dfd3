"""Exact model of :class:`instances.gavel.throughput_per_dollar.ThroughputPerDollar`: one linear program.

    max   sum_{r, j} sum_{m in r} (throughput[m, r, j] / costs_j) * X[r, j]
    s.t.  slo[m]:  sum_{r, j} (slo_m / steps_m) * throughput[m, r, j] * X[r, j]  >=  1
                                                                    for each job m with an SLO
          job_time[m], pool_capacity[p]  of :mod:`formulations.gavel.sharing`.

SLOs that cannot be met together make it infeasible; ``formulations.explain`` then names a conflict:
the rows ``slo[m]`` of jobs that cannot all be in time, and the limits that they share.  Its methods are those of
:mod:`formulations.methods.policies`.
"""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo

from formulations.engine.linear import LinearProgram
from formulations.engine.protocol import Formulation
from formulations.gavel.at_hand import isolated_share, worth_at_most
from formulations.gavel.priced import explain, times_per_step
from formulations.gavel.sharing import SharingProgram, read
from instances.base import TOLERANCE
from instances.gavel.throughput_per_dollar import ThroughputPerDollar
from instances.renamed import moved_names
from instances.schema import FloatArray

__all__ = ["FORMULATION", "build", "program", "read", "slack"]


def build(instance: ThroughputPerDollar) -> pyo.ConcreteModel:
    """Pyomo model of a throughput per dollar instance.

    Sets JOBS, SLO_JOBS, ROWS (jobs alone, then pairs), TYPES, POOLS; variables ``X[r, j]``;
    constraints ``job_time[m]``, ``pool_capacity[p]`` and ``slo[m]``; objective
    ``throughput_per_dollar``.
    """
    return program(instance).model()


def program(instance: ThroughputPerDollar) -> SharingProgram:
    """Steps/s for the dollar, each type by its own cost, with all SLOs met."""
    policy = SharingProgram(instance)
    jobs = policy.subset("SLO_JOBS", instance.slo_jobs)
    policy.maximize("throughput_per_dollar", (policy.throughputs * (1 / instance.costs)).sum())
    policy.constraint("slo", times_per_step(instance)[jobs] * policy.throughput[jobs] >= 1)
    return policy


def slack(instance: ThroughputPerDollar, program: LinearProgram, duals: FloatArray) -> float:
    """Return what the judge's tolerance may be worth: that part of each limit, at its price."""
    limits = np.where(np.isfinite(program.row_upper), program.row_upper, program.row_lower)
    return 2 * TOLERANCE * float(np.abs(limits) @ np.abs(duals))


def at_most(instance: ThroughputPerDollar) -> float:
    """Return an objective that no plan exceeds: each job in the row and on the type where it gets most for a dollar."""
    return worth_at_most(instance, instance.greatest(1 / instance.costs))


FORMULATION = Formulation(
    build=build, read=read, slack=slack, explain=explain, trivial=isolated_share, trivial_bound=at_most
)
__getattr__ = moved_names(__name__, "formulations.methods.policies", "solve")
