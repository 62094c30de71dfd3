"""Exact model of :class:`instances.gavel.round_assignment.RoundAssignment`: a multiple-choice knapsack.

    max   sum_{r, j} priority[r, j] * chosen[r, j]
    s.t.  once[m]:          sum of chosen[r, j] over the rows r that contain job m       <= 1
          pool_workers[p]:  sum of scale_factor[r] * chosen[r, j] over the types of p    <= num_workers[p]
          chosen[r, j] in {0, 1}.

Only eligible entries of positive priority on pools that are wide enough are chosen from: the others may
not run, or add nothing, and leaving them out of a plan breaks no rule.  A plan that is read has, as
Algorithm 1 does, what may run on the workers that the model leaves idle (:meth:`RoundAssignment.filled`).
"""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo

from formulations.engine.linear import weighted_sum
from formulations.engine.protocol import Formulation
from formulations.engine.sets import RangeSet, Set
from formulations.gavel.at_hand import worth_at_most
from instances.gavel.round_assignment import RoundAssignment, RoundAssignmentPlan

__all__ = ["FORMULATION", "build", "by_priority", "halves", "read", "write"]


def build(instance: RoundAssignment) -> pyo.ConcreteModel:
    """Pyomo model of a round.

    Sets JOBS, POOLS, TYPES and CHOICES (pairs of row and type); variables ``chosen[r, j]``
    (binary); constraints ``once[m]`` and ``pool_workers[p]``; objective ``total_priority``.
    """
    model = pyo.ConcreteModel(name=instance.problem)
    model.JOBS = RangeSet(0, instance.num_jobs - 1)
    model.TYPES = RangeSet(0, instance.num_types - 1)
    model.POOLS = RangeSet(0, len(instance.num_workers) - 1)
    choices = [(int(r), int(j)) for r, j in np.argwhere(instance.urgent)]
    model.CHOICES = Set(initialize=choices, dimen=2)
    model.chosen = pyo.Var(model.CHOICES, domain=pyo.Binary)
    of_job: dict[int, list[tuple[int, int]]] = {job: [] for job in model.JOBS}
    of_pool: dict[int, list[tuple[int, int]]] = {pool: [] for pool in model.POOLS}
    for row, kind in choices:
        for job in instance.members[row]:
            of_job[job].append((row, kind))
        of_pool[int(instance.pools[kind])].append((row, kind))

    def once(model: pyo.ConcreteModel, job: int) -> object:
        if not of_job[job]:
            return pyo.Constraint.Skip
        return pyo.quicksum(model.chosen[choice] for choice in of_job[job]) <= 1

    def pool_workers(model: pyo.ConcreteModel, pool: int) -> object:
        if not of_pool[pool]:
            return pyo.Constraint.Skip
        workers = [int(instance.row_scale_factors[row]) for row, _ in of_pool[pool]]
        used = weighted_sum(workers, [model.chosen[choice] for choice in of_pool[pool]])
        return used <= int(instance.num_workers[pool])

    model.once = pyo.Constraint(model.JOBS, rule=once)
    model.pool_workers = pyo.Constraint(model.POOLS, rule=pool_workers)
    priorities = [float(instance.priorities[choice]) for choice in choices]
    model.total_priority = pyo.Objective(expr=weighted_sum(priorities, list(model.chosen.values())), sense=pyo.maximize)
    model.instance = instance
    return model


def read(model: pyo.ConcreteModel) -> RoundAssignmentPlan:
    """Read the plan from the values of ``chosen``; what may run besides, on idle workers, runs."""
    chosen = np.zeros(model.instance.priorities.shape, bool)
    for choice, variable in model.chosen.items():
        if variable.value is None:
            raise ValueError(f"variable {variable.name!r} has no value")
        chosen[choice] = variable.value > 0.5
    filled: RoundAssignmentPlan = model.instance.filled(RoundAssignmentPlan(chosen=chosen), urgent=False)
    return filled


def write(model: pyo.ConcreteModel, plan: RoundAssignmentPlan) -> None:
    """Set the variables to ``plan``, as a point to start the search from."""
    for choice, variable in model.chosen.items():
        variable.set_value(int(plan.chosen[choice]))


def by_priority(instance: RoundAssignment) -> RoundAssignmentPlan:
    """Return the plan of Algorithm 1."""
    return instance.filled()


def halves(instance: RoundAssignment) -> float:
    """Return a total priority that no round exceeds: either job of a pair has half of it, on half of the workers."""
    most = np.where(instance.urgent, instance.priorities, 0.0).max(axis=1)
    each = most[: instance.num_jobs].copy()
    np.maximum.at(each, instance.pairs, most[instance.num_jobs :, None] / 2)
    return worth_at_most(instance, each)


FORMULATION = Formulation(build=build, read=read, write=write, trivial=by_priority, trivial_bound=halves)
