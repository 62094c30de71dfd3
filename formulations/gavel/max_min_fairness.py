"""Exact model of :class:`instances.gavel.max_min_fairness.MaxMinFairness`: one linear program.

    max   level
    s.t.  fairness[m]:  sum_{r, j} (scale_factor_m / (w_m * throughput(m, X_equal)))
                            * throughput[m, r, j] * X[r, j]  >=  level     for each job m
          job_time[m], pool_capacity[p]  of :mod:`formulations.gavel.sharing`.

Weights are measured in a power of two, 1 unless they are extreme, so that the levels are of ordinary size.
Its methods are those of :mod:`formulations.methods.policies`.
"""

from __future__ import annotations

import pyomo.environ as pyo

from formulations.engine.protocol import Formulation
from formulations.engine.scaling import unit
from formulations.gavel.at_hand import isolated_share, level_at_most
from formulations.gavel.sharing import SharingProgram, read
from instances.gavel.max_min_fairness import MaxMinFairness
from instances.renamed import moved_names

__all__ = ["FORMULATION", "bound", "build", "in_model", "program", "read"]


def build(instance: MaxMinFairness) -> pyo.ConcreteModel:
    """Pyomo model of a max-min fairness instance.

    Sets JOBS, ROWS (jobs alone, then pairs), TYPES, POOLS; variables ``X[r, j]`` and ``level``;
    constraints ``job_time[m]``, ``pool_capacity[p]`` and ``fairness[m]``; objective
    ``least_level``.
    """
    return program(instance).model()


def program(instance: MaxMinFairness) -> SharingProgram:
    """State the program of the greatest least level."""
    policy = SharingProgram(instance)
    weights = instance.weights / unit(instance.weights)
    level = policy.variable("level", lower=0)
    policy.maximize("least_level", level)
    policy.constraint("fairness", instance.level_per_throughput / weights * policy.throughput >= level)
    return policy


def bound(instance: MaxMinFairness, value: float) -> float:
    """Return the least level that no plan beats when no plan's level in the model exceeds ``value``."""
    return value / unit(instance.weights)


def in_model(instance: MaxMinFairness, value: float) -> float:
    """Return the model's objective of a plan whose least level is ``value``."""
    return value * unit(instance.weights)


def at_most(instance: MaxMinFairness) -> float:
    """Return a least level that no plan exceeds."""
    return level_at_most(instance, instance.level_per_throughput / instance.weights * instance.greatest_throughputs)


FORMULATION = Formulation(
    build=build, read=read, bound=bound, in_model=in_model, trivial=isolated_share, trivial_bound=at_most
)
__getattr__ = moved_names(__name__, "formulations.methods.policies", "solve")
