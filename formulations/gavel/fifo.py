"""Exact model of :class:`instances.gavel.fifo.Fifo`: one linear program.

    max   sum_{r, j} sum_{m in r} ((n - m) / throughput(m, fastest type)) * throughput[m, r, j] * X[r, j]
    s.t.  job_time[m], pool_capacity[p]  of :mod:`formulations.gavel.sharing`.

With many pairs, :func:`solve` generates their columns (:mod:`formulations.gavel.pricing`).
"""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo

from formulations.engine.options import Options
from formulations.engine.protocol import Formulation
from formulations.engine.solution import Solution
from formulations.gavel.pricing import SIMPLEX_ROWS, UNTIED_JOBS, solve_program
from formulations.gavel.sharing import SharingProgram, isolated_share, read_allocation
from instances.gavel.fifo import Fifo
from instances.gavel.sharing import Allocation

__all__ = ["FORMULATION", "build", "read", "solve"]


def build(instance: Fifo) -> pyo.ConcreteModel:
    """Pyomo model of a FIFO instance.

    Sets JOBS, ROWS (jobs alone, then pairs), TYPES, POOLS; variables ``X[r, j]``; constraints
    ``job_time[m]`` and ``pool_capacity[p]``; objective ``early_jobs_first``.
    """
    return _program(instance).model()


def read(model: pyo.ConcreteModel) -> Allocation:
    """The plan in the values of ``X``."""
    return read_allocation(model)


def solve(instance: Fifo, options: Options) -> Solution:
    """Solve the program by HiGHS, with many pairs by generating columns, with many jobs and no pairs by prices."""
    return solve_program(_program(instance), options, interior_rows=SIMPLEX_ROWS, priced_jobs=UNTIED_JOBS)


def _program(instance: Fifo) -> SharingProgram:
    program = SharingProgram(instance)
    worth = np.repeat(instance.worths[:, None], instance.num_types, axis=1)
    program.maximize("early_jobs_first", worth=worth)
    return program


FORMULATION = Formulation(build=build, read=read, solve=solve, trivial=isolated_share)
