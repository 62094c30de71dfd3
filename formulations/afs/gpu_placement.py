"""Exact model of :class:`instances.afs.gpu_placement.GpuPlacement`.

A job of share r needs ``span = ceil(r / 2^g)`` machines and holds a block of ``min(r, 2^g)`` GPUs on
each, so that the machines are all there is to choose:

    max   sum_j keeps[j]  +  sum_{j,m} min(previous[j, m], block[j]) * hosts[j, m] / (1 + all GPUs)
    s.t.  sum_m hosts[j, m] = span[j]                              machines_of[j]
          sum_j block[j] * hosts[j, m] <= 2^g                      capacity[m]
          keeps[j] <= sum_{m: previous[j, m] > 0} hosts[j, m]      keeps_gpu[j]
          hosts[j, m] in {0, 1},  0 <= keeps[j] <= 1.

The weights make the order lexicographic: no more than all GPUs can be kept.  A job that spans
machines fills each of them, so that Proposition 1's rule, at most one such job per machine, follows
from ``capacity``.
"""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo

from formulations.engine.linear import weighted_sum
from formulations.engine.protocol import Formulation
from formulations.engine.sets import RangeSet, Set
from instances.afs.gpu_placement import GpuPlacement, GpuPlacementPlan
from instances.base import total

__all__ = ["FORMULATION", "alone", "build", "explain", "largest_first", "read", "write"]


def build(instance: GpuPlacement) -> pyo.ConcreteModel:
    """Pyomo model of a placement instance.

    Sets JOBS (those with a share) and MACHINES; variables ``hosts[j, m]`` (binary) and ``keeps[j]``;
    constraints ``machines_of[j]``, ``capacity[m]`` and ``keeps_gpu[j]``; objective ``kept``.
    """
    model = pyo.ConcreteModel(name=instance.problem)
    model.JOBS = Set(initialize=np.flatnonzero(instance.regulated).tolist())
    model.MACHINES = RangeSet(0, instance.num_machines - 1)
    model.hosts = pyo.Var(model.JOBS * model.MACHINES, domain=pyo.Binary)
    model.keeps = pyo.Var(model.JOBS, bounds=(0, 1))

    def machines_of(model: pyo.ConcreteModel, j: int) -> object:
        return pyo.quicksum(model.hosts[j, m] for m in model.MACHINES) == int(instance.spans[j])

    def capacity(model: pyo.ConcreteModel, m: int) -> object:
        blocks = [instance.blocks[j] for j in model.JOBS]
        return weighted_sum(blocks, [model.hosts[j, m] for j in model.JOBS]) <= instance.gpus_per_machine

    def keeps_gpu(model: pyo.ConcreteModel, j: int) -> object:
        old = np.flatnonzero(instance.previous[j]).tolist()
        return model.keeps[j] <= pyo.quicksum(model.hosts[j, m] for m in old)

    model.machines_of = pyo.Constraint(model.JOBS, rule=machines_of)
    model.capacity = pyo.Constraint(model.MACHINES, rule=capacity)
    model.keeps_gpu = pyo.Constraint(model.JOBS, rule=keeps_gpu)
    gpus = np.minimum(instance.previous, instance.blocks[:, None]) / (1 + instance.num_gpus)
    kept_gpus = weighted_sum([gpus[pair] for pair in model.hosts], model.hosts.values())
    model.kept = pyo.Objective(expr=pyo.quicksum(model.keeps.values()) + kept_gpus, sense=pyo.maximize)
    return model


def read(model: pyo.ConcreteModel) -> GpuPlacementPlan:
    """Return the plan in the values of ``hosts``."""
    instance = model.instance
    gpus = np.zeros((instance.num_jobs, instance.num_machines), np.int64)
    for (j, m), variable in model.hosts.items():
        if variable.value > 0.5:
            gpus[j, m] = instance.blocks[j]
    return GpuPlacementPlan(gpus=gpus)


def write(model: pyo.ConcreteModel, plan: GpuPlacementPlan) -> None:
    """Set the variables to ``plan``, as a point to start the search from."""
    instance = model.instance
    kept = instance.kept(plan)
    for (j, m), variable in model.hosts.items():
        variable.set_value(int(plan.gpus[j, m] > 0))
    for j, variable in model.keeps.items():
        variable.set_value(int(kept[j] > 0))


def explain(instance: GpuPlacement) -> str | None:
    """Say that the jobs have more GPUs than there are; Proposition 1 is why nothing else can be in the way."""
    given = total(instance.regulated)
    return f"the jobs have {given} GPUs of {instance.num_gpus}" if given > instance.num_gpus else None


def largest_first(instance: GpuPlacement) -> GpuPlacementPlan:
    """Place jobs as Proposition 1 does, from the largest share down, each where it keeps most."""
    free = np.full(instance.num_machines, instance.gpus_per_machine)
    gpus = np.zeros((instance.num_jobs, instance.num_machines), np.int64)
    kept = np.minimum(instance.previous, instance.blocks[:, None])
    for job in np.argsort(-instance.regulated, kind="stable").tolist():
        block, fits = int(instance.blocks[job]), np.flatnonzero(free >= instance.blocks[job])
        chosen = fits[np.argsort(-kept[job, fits], kind="stable")[: int(instance.spans[job])]]
        gpus[job, chosen] = block
        free[chosen] -= block
    return GpuPlacementPlan(gpus=gpus)


def alone(instance: GpuPlacement) -> float:
    """Bound the value: no job keeps more than on the machines that it would choose if there were no others."""
    kept = np.sort(np.minimum(instance.previous, instance.blocks[:, None]), axis=1)[:, ::-1]
    most = np.where(np.arange(kept.shape[1]) < instance.spans[:, None], kept, 0).sum(axis=1)
    return int((most > 0).sum()) + int(most.sum()) / (1 + instance.num_gpus)


FORMULATION = Formulation(
    build=build, read=read, write=write, explain=explain, trivial=largest_first, trivial_bound=alone
)
