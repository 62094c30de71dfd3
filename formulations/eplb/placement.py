"""Exact model of :class:`instances.eplb.placement.EplbPlacement`, a MILP.

What a replica carries depends on how many its expert has, so those are chosen first:

    min   greatest
    s.t.  one_count[i]:    sum_c has[i, c]  ==  1
          all_placed[i, c]:  sum_g placed[i, c, g]  ==  c * has[i, c]
          slots[g]:        sum_{i,c} placed[i, c, g]  ==  slots
          gpu_load[g]:     sum_{i,c} loads[i] / c * placed[i, c, g]  <=  greatest
          identical_gpus[g]:  the same sum of g  >=  that of g + 1
          has[i, c] in {0, 1},   placed[i, c, g] whole, from 0 to c, or to 1 with one_per_gpu

over the counts c that leave every other expert a replica.  The rows of identical GPUs only remove copies of the same
plan; deactivate ``identical_gpus`` before adding constraints that tell GPUs apart.
"""

from __future__ import annotations

import heapq

import numpy as np
import pyomo.environ as pyo

from formulations.engine.linear import weighted_sum
from formulations.engine.protocol import Formulation
from formulations.engine.sets import RangeSet, Set
from instances.eplb.placement import EplbPlacement, EplbPlacementPlan
from instances.schema import IntArray

__all__ = ["FORMULATION", "build", "counts", "dealt", "least_load", "read", "write"]


def build(instance: EplbPlacement) -> pyo.ConcreteModel:
    """Pyomo model of an instance.

    Sets EXPERTS, GPUS, COUNTS (from 1 on) and NEXT (GPUs but the last); variables ``has[i, c]`` (binary),
    ``placed[i, c, g]`` (whole) and ``greatest``; constraints ``one_count[i]``, ``all_placed[i, c]``, ``slots[g]``,
    ``gpu_load[g]`` and ``identical_gpus[g]``; objective ``greatest_load``.
    """
    model = pyo.ConcreteModel(name=instance.problem)
    model.EXPERTS = RangeSet(0, instance.num_experts - 1)
    model.GPUS = RangeSet(0, instance.num_gpus - 1)
    model.COUNTS = RangeSet(1, instance.most_replicas)
    model.NEXT = Set(initialize=range(instance.num_gpus - 1))
    model.has = pyo.Var(model.EXPERTS * model.COUNTS, domain=pyo.Binary)

    def room(_: pyo.ConcreteModel, expert: int, count: int, gpu: int) -> tuple[int, int]:
        return 0, 1 if instance.one_per_gpu else min(count, instance.slots)

    model.placed = pyo.Var(model.EXPERTS * model.COUNTS * model.GPUS, domain=pyo.NonNegativeIntegers, bounds=room)
    model.greatest = pyo.Var(domain=pyo.NonNegativeReals)

    def one_count(model: pyo.ConcreteModel, expert: int) -> object:
        return pyo.quicksum(model.has[expert, count] for count in model.COUNTS) == 1

    def all_placed(model: pyo.ConcreteModel, expert: int, count: int) -> object:
        placed = pyo.quicksum(model.placed[expert, count, gpu] for gpu in model.GPUS)
        return placed == count * model.has[expert, count]

    model.one_count = pyo.Constraint(model.EXPERTS, rule=one_count)
    model.all_placed = pyo.Constraint(model.EXPERTS * model.COUNTS, rule=all_placed)
    pieces = list(model.EXPERTS * model.COUNTS)
    shares = [float(instance.loads[expert]) / count for expert, count in pieces]
    on = [[model.placed[expert, count, gpu] for expert, count in pieces] for gpu in model.GPUS]
    load = [weighted_sum(shares, variables) for variables in on]
    model.slots = pyo.Constraint(model.GPUS, rule=lambda _, gpu: pyo.quicksum(on[gpu]) == instance.slots)
    model.gpu_load = pyo.Constraint(model.GPUS, rule=lambda model, gpu: load[gpu] <= model.greatest)
    model.identical_gpus = pyo.Constraint(model.NEXT, rule=lambda _, gpu: load[gpu] >= load[gpu + 1])
    model.greatest_load = pyo.Objective(expr=model.greatest)
    return model


def read(model: pyo.ConcreteModel) -> EplbPlacementPlan:
    """Return the plan in the values of ``placed``."""
    replicas = np.zeros((len(model.EXPERTS), len(model.GPUS)), np.int64)
    for (expert, _, gpu), variable in model.placed.items():
        replicas[expert, gpu] += round(pyo.value(variable))
    return EplbPlacementPlan(replicas=replicas)


def write(model: pyo.ConcreteModel, plan: EplbPlacementPlan) -> None:
    """Set the variables to ``plan``, as a point to start the search from; GPUs are exchanged so that loads fall."""
    instance: EplbPlacement = model.instance
    loads = instance.gpu_loads(plan)
    order = np.argsort(-loads, kind="stable").tolist()
    chosen = plan.replicas.sum(axis=1).tolist()
    for (expert, count), variable in model.has.items():
        variable.set_value(int(count == chosen[expert]))
    for (expert, count, gpu), variable in model.placed.items():
        there = int(plan.replicas[expert, order[gpu]]) if count == chosen[expert] else 0
        variable.set_value(there, skip_validation=True)
    model.greatest.set_value(float(loads.max()))


def counts(instance: EplbPlacement) -> IntArray:
    """(e,) int: replicas by which the greatest load for each replica is least: each goes where that is greatest.

    With ``one_per_gpu`` an expert has no more than there are GPUs.
    """
    found = np.ones(instance.num_experts, np.int64)
    most = instance.most_replicas
    waiting = [(-load, expert) for expert, load in enumerate(instance.loads.tolist())]
    heapq.heapify(waiting)
    for _ in range(instance.num_replicas - instance.num_experts):
        while found[waiting[0][1]] >= most:
            heapq.heappop(waiting)
        expert = waiting[0][1]
        found[expert] += 1
        heapq.heapreplace(waiting, (-float(instance.loads[expert]) / int(found[expert]), expert))
    return found


def dealt(instance: EplbPlacement) -> EplbPlacementPlan:
    """Return the plan that deals the replicas out to the GPUs in turn, those that carry most first.

    Where each GPU can hold every expert, it does, and carries the mean load.
    """
    if instance.slots == instance.num_experts:
        return EplbPlacementPlan(replicas=np.ones((instance.num_experts, instance.num_gpus), np.int64))
    of = counts(instance)
    order = np.argsort(-instance.loads / of, kind="stable")
    pieces = np.repeat(order, of[order])
    replicas = np.zeros((instance.num_experts, instance.num_gpus), np.int64)
    np.add.at(replicas, (pieces, np.arange(len(pieces)) % instance.num_gpus), 1)
    return EplbPlacementPlan(replicas=replicas)


def least_load(instance: EplbPlacement) -> float:
    """Return a load that some GPU has in every plan: the mean, or the greatest for a replica where that is least."""
    return max(instance.mean_load, float((instance.loads / counts(instance)).max()))


FORMULATION = Formulation(build=build, read=read, write=write, trivial=dealt, trivial_bound=least_load)
