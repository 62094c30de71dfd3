"""Exact model of :class:`instances.gavel.throughput_per_dollar.ThroughputPerDollar`: one linear program.

    max   sum_{r, j} sum_{m in r} (throughput[m, r, j] / costs_j) * X[r, j]
    s.t.  slo[m]:  sum_{r, j} (slo_m / steps_m) * throughput[m, r, j] * X[r, j]  >=  1
                                                                    for each job m with an SLO
          job_time[m], pool_capacity[p]  of :mod:`formulations.gavel.sharing`.

SLOs that cannot be met together make it infeasible; ``formulations.explain`` then names a conflict:
the rows ``slo[m]`` of jobs that cannot all be in time, and the limits that they share.  With many
pairs, :func:`solve` generates their columns (:mod:`formulations.gavel.pricing`).
"""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo

from formulations.engine.linear import LinearProgram
from formulations.engine.options import Options
from formulations.engine.protocol import Formulation
from formulations.engine.solution import Solution
from formulations.gavel.priced import explain, times_per_step, with_stricter_slos
from formulations.gavel.pricing import SIMPLEX_ROWS, UNTIED_JOBS, solve_program
from formulations.gavel.sharing import SharingProgram, isolated_share, read_allocation
from instances.base import TOLERANCE
from instances.gavel.sharing import Allocation
from instances.gavel.throughput_per_dollar import ThroughputPerDollar
from instances.schema import FloatArray

__all__ = ["FORMULATION", "build", "read", "slack", "solve"]


def build(instance: ThroughputPerDollar) -> pyo.ConcreteModel:
    """Pyomo model of a throughput per dollar instance.

    Sets JOBS, SLO_JOBS, ROWS (jobs alone, then pairs), TYPES, POOLS; variables ``X[r, j]``;
    constraints ``job_time[m]``, ``pool_capacity[p]`` and ``slo[m]``; objective
    ``throughput_per_dollar``.
    """
    return _program(instance).model()


def read(model: pyo.ConcreteModel) -> Allocation:
    """The plan in the values of ``X``."""
    return read_allocation(model)


def solve(instance: ThroughputPerDollar, options: Options) -> Solution:
    """Solve the program by HiGHS, with many pairs by generating columns, with many jobs and no pairs by prices."""
    return solve_program(
        _program(instance),
        options,
        interior_rows=SIMPLEX_ROWS,
        priced_jobs=UNTIED_JOBS,
        slack=slack,
        stricter=lambda: _program(with_stricter_slos(instance)),
    )


def slack(instance: ThroughputPerDollar, program: LinearProgram, duals: FloatArray) -> float:
    """What the judge's tolerance may be worth: that part of each limit, at its price."""
    limits = np.where(np.isfinite(program.row_upper), program.row_upper, program.row_lower)
    return 2 * TOLERANCE * float(np.abs(limits) @ np.abs(duals))


def _program(instance: ThroughputPerDollar) -> SharingProgram:
    program = SharingProgram(instance)
    program.subset("SLO_JOBS", instance.slo_jobs)
    program.throughput_rows("slo", times_per_step(instance), over="SLO_JOBS", lower=1)
    program.maximize("throughput_per_dollar", worth=np.tile(1 / instance.costs, (instance.num_jobs, 1)))
    return program


FORMULATION = Formulation(build=build, read=read, slack=slack, solve=solve, explain=explain, trivial=isolated_share)
