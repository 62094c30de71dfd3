"""Exact model of :class:`instances.gavel.total_throughput.TotalThroughput`: one linear program.

    max   sum_{r, j} sum_{m in r} throughput[m, r, j] * X[r, j]
    s.t.  job_time[m], pool_capacity[p]  of :mod:`formulations.gavel.sharing`.

Its methods are those of :mod:`formulations.methods.policies`.
"""

from __future__ import annotations

import pyomo.environ as pyo

from formulations.engine.protocol import Formulation
from formulations.gavel.at_hand import isolated_share, worth_at_most
from formulations.gavel.sharing import SharingProgram, read
from instances.gavel.total_throughput import TotalThroughput
from instances.renamed import moved_names

__all__ = ["FORMULATION", "build", "program", "read"]


def build(instance: TotalThroughput) -> pyo.ConcreteModel:
    """Pyomo model of a total throughput instance.

    Sets JOBS, ROWS (jobs alone, then pairs), TYPES, POOLS; variables ``X[r, j]``; constraints
    ``job_time[m]`` and ``pool_capacity[p]``; objective ``total_throughput``.
    """
    return program(instance).model()


def program(instance: TotalThroughput) -> SharingProgram:
    """Steps/s of all jobs together."""
    policy = SharingProgram(instance)
    policy.maximize("total_throughput", policy.throughput.sum())
    return policy


def at_most(instance: TotalThroughput) -> float:
    """Return a total throughput, steps/s, that no plan exceeds."""
    return worth_at_most(instance, instance.greatest_throughputs)


FORMULATION = Formulation(build=build, read=read, trivial=isolated_share, trivial_bound=at_most)
__getattr__ = moved_names(__name__, "formulations.methods.policies", "solve")
