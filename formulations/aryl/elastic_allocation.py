"""Exact model of :class:`instances.aryl.elastic_allocation.ElasticAllocation`.

A multiple-choice knapsack as a MILP:

    max   sum_{j,w} reduction[j][w] * chosen[j, w]
    s.t.  sum_w chosen[j, w] <= 1                                     for each job j
          sum_{j,w} w * gpus_per_worker[j] * chosen[j, w] <= capacity
          chosen[j, w] in {0, 1},   w = 1, ..., max_extra[j].
"""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo

from formulations.engine.linear import refuse_large, weighted_sum
from formulations.engine.protocol import Formulation
from formulations.engine.sets import RangeSet, Set
from instances.aryl.elastic_allocation import ElasticAllocation, ElasticAllocationPlan
from instances.base import total

__all__ = ["FORMULATION", "base_demands", "build", "read", "write"]


def build(instance: ElasticAllocation) -> pyo.ConcreteModel:
    """Pyomo model of an elastic allocation instance.

    Sets JOBS and CHOICES (pairs of job and extra workers); variables ``chosen[j, w]`` (binary);
    constraints ``one_choice[j]`` and ``capacity``; objective ``running_time_reduction``.
    """
    refuse_large(instance, int(total(instance.max_extra)), "choices, max_workers - min_workers of each job")
    model = pyo.ConcreteModel(name=instance.problem)
    model.JOBS = RangeSet(0, instance.num_jobs - 1)
    choices = [(job, extra) for job, most in enumerate(instance.max_extra.tolist()) for extra in range(1, most + 1)]
    model.CHOICES = Set(initialize=choices, dimen=2)
    model.chosen = pyo.Var(model.CHOICES, domain=pyo.Binary)

    def one_choice(model: pyo.ConcreteModel, job: int) -> object:
        most = int(instance.max_extra[job])
        if not most:
            return pyo.Constraint.Skip
        return pyo.quicksum(model.chosen[job, extra] for extra in range(1, most + 1)) <= 1

    model.one_choice = pyo.Constraint(model.JOBS, rule=one_choice)
    gpus = [extra * int(instance.gpus_per_worker[job]) for job, extra in choices]
    variables = list(model.chosen.values())
    # Without any choice to make the row would be empty, which some solvers refuse.
    fits = weighted_sum(gpus, variables) <= instance.capacity
    model.capacity = pyo.Constraint(expr=fits if choices else pyo.Constraint.Skip)
    reductions = [float(instance.reductions[job][extra]) for job, extra in choices]
    model.running_time_reduction = pyo.Objective(expr=weighted_sum(reductions, variables), sense=pyo.maximize)
    return model


def read(model: pyo.ConcreteModel) -> ElasticAllocationPlan:
    """Return the plan in the values of ``chosen``."""
    extra_workers = np.zeros(len(model.JOBS), np.int64)
    for (job, extra), variable in model.chosen.items():
        if pyo.value(variable) > 0.5:
            extra_workers[job] = extra
    return ElasticAllocationPlan(extra_workers=extra_workers)


def write(model: pyo.ConcreteModel, plan: ElasticAllocationPlan) -> None:
    """Set the variables to ``plan``, as a point to start the search from."""
    for (job, extra), variable in model.chosen.items():
        variable.set_value(int(plan.extra_workers[job] == extra))


def base_demands(instance: ElasticAllocation) -> ElasticAllocationPlan:
    """Return the plan that adds no worker."""
    return ElasticAllocationPlan(extra_workers=np.zeros(instance.num_jobs, np.int64))


FORMULATION = Formulation(build=build, read=read, write=write, trivial=base_demands)
