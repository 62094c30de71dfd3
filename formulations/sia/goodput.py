"""Exact model of :class:`instances.sia.goodput.Goodput`.

Sia's program, a multiple-choice knapsack with a row for each GPU type:

    min   sum_{j,c} costs[j, c] * chosen[j, c]  +  waiting_cost * sum_j (1 - sum_c chosen[j, c])
    s.t.  one_config[j]:  sum_c chosen[j, c]  <=  1
          gpus[t]:        sum_{j,c of type t} config_gpus[c] * chosen[j, c]  <=  num_gpus[t]
          chosen[j, c] in {0, 1}

over the configurations on which a job can run, which fit their type, and which cost less than waiting.
"""

from __future__ import annotations

import math

import numpy as np
import pyomo.environ as pyo

from formulations.engine.linear import weighted_sum
from formulations.engine.protocol import Formulation
from formulations.engine.sets import RangeSet, Set
from instances.sia.goodput import Goodput, GoodputPlan

__all__ = ["FORMULATION", "all_wait", "alone", "build", "read", "write"]


def build(instance: Goodput) -> pyo.ConcreteModel:
    """Pyomo model of an instance.

    Sets JOBS, TYPES and CHOICES (pairs of job and configuration); variables ``chosen[j, c]`` (binary); constraints
    ``one_config[j]`` and ``gpus[t]``; objective ``cost``.
    """
    model = pyo.ConcreteModel(name=instance.problem)
    model.JOBS = RangeSet(0, instance.num_jobs - 1)
    model.TYPES = RangeSet(0, instance.num_types - 1)
    choices = np.argwhere((instance.costs < instance.waiting_cost) & instance.fits).tolist()
    model.CHOICES = Set(initialize=list(map(tuple, choices)), dimen=2)
    model.chosen = pyo.Var(model.CHOICES, domain=pyo.Binary)
    of_job: list[list[pyo.Var]] = [[] for _ in model.JOBS]
    of_type: list[list[tuple[int, pyo.Var]]] = [[] for _ in model.TYPES]
    for (job, config), variable in model.chosen.items():
        of_job[job].append(variable)
        of_type[instance.config_types[config]].append((int(instance.config_gpus[config]), variable))

    def one_config(_: pyo.ConcreteModel, job: int) -> object:
        return pyo.quicksum(of_job[job]) <= 1 if of_job[job] else pyo.Constraint.Skip

    def gpus(_: pyo.ConcreteModel, kind: int) -> object:
        if not of_type[kind]:
            return pyo.Constraint.Skip
        sizes, variables = zip(*of_type[kind], strict=True)
        return weighted_sum(sizes, variables) <= int(instance.num_gpus[kind])

    model.one_config = pyo.Constraint(model.JOBS, rule=one_config)
    model.gpus = pyo.Constraint(model.TYPES, rule=gpus)
    gains = [float(instance.costs[pair] - instance.waiting_cost) for pair in model.chosen]
    waiting = instance.waiting_cost * instance.num_jobs
    model.cost = pyo.Objective(expr=waiting + weighted_sum(gains, model.chosen.values()))
    return model


def read(model: pyo.ConcreteModel) -> GoodputPlan:
    """Return the plan in the values of ``chosen``."""
    configs = np.full(len(model.JOBS), -1)
    for (job, config), variable in model.chosen.items():
        if pyo.value(variable) > 0.5:
            configs[job] = config
    return GoodputPlan(configs=configs)


def write(model: pyo.ConcreteModel, plan: GoodputPlan) -> None:
    """Set the variables to ``plan``, as a point to start the search from."""
    for (job, config), variable in model.chosen.items():
        variable.set_value(int(plan.configs[job] == config))


def all_wait(instance: Goodput) -> GoodputPlan:
    """Return the plan by which every job waits."""
    return GoodputPlan(configs=np.full(instance.num_jobs, -1))


def alone(instance: Goodput) -> float:
    """Return what the jobs cost at the least if each had all GPUs for itself."""
    best = np.where(instance.fits, instance.costs, np.inf).min(axis=1, initial=instance.waiting_cost)
    return math.fsum(best.tolist())


FORMULATION = Formulation(build=build, read=read, write=write, trivial=all_wait, trivial_bound=alone)
