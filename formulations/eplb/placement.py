"""Exact model of :class:`instances.eplb.placement.EplbPlacement`, a MILP.

What a replica carries depends on how many its expert has, so those are chosen first:

    min   unit * sum_v greatest[v] / (vectors)  +  move_price * sum_{i,g} moved[i, g]
    s.t.  one_count[i]:    sum_c has[i, c]  ==  1
          all_placed[i, c]:  sum_g placed[i, c, g]  ==  c * has[i, c]
          slots[g]:        sum_{i,c} placed[i, c, g]  ==  slots
          gpu_load[v, g]:  sum_{i,c} loads[v, i] / c / unit * placed[i, c, g]  <=  greatest[v]
          identical_gpus[g]:  the same sum of g, by the first loads  >=  that of g + 1
          one_node[q]:     sum_n on[q, n]  ==  1
          with_group[i, c, n]:  sum_{g of n} placed[i, c, g]  <=  c * on[group of i, n]
          new[i, g]:       sum_c placed[i, c, g] - current[i, g]  <=  moved[i, g]
          moves:           sum_{i,g} moved[i, g]  <=  move_limit
          has[i, c], on[q, n] in {0, 1},   placed[i, c, g] whole, from 0 to c, or to 1 with one_per_gpu

over the counts c that leave every other expert a replica.  The ``unit`` of loads is 1, but for loads so large or so
small that a solver's tolerances would not suit them.  Where the worst of several vectors of loads counts, there is
one ``greatest`` for all of them.  Groups and nodes are there where there are several nodes, and moves where they cost
something or are limited.  The rows of identical GPUs only remove copies of the same plan, on each node by itself, and
are left out where GPUs differ by what they hold; deactivate ``identical_gpus`` before adding constraints that tell
GPUs apart.
"""

from __future__ import annotations

import heapq
import math

import numpy as np
import pyomo.environ as pyo

from formulations.engine.linear import weighted_sum
from formulations.engine.protocol import Formulation
from formulations.engine.scaling import unit
from formulations.engine.sets import RangeSet, Set
from instances.eplb.placement import EplbPlacement, EplbPlacementPlan
from instances.schema import FloatArray, IntArray

__all__ = ["FORMULATION", "build", "counts", "dealt", "least_load", "read", "write"]


def build(instance: EplbPlacement) -> pyo.ConcreteModel:
    """Pyomo model of an instance.

    Sets EXPERTS, GPUS, COUNTS (from 1 on), VECTORS (of loads), LEVELS (one, or one for each vector) and NEXT (GPUs but
    the last of each node); variables ``has[i, c]`` (binary), ``placed[i, c, g]`` (whole) and ``greatest[v]``;
    constraints ``one_count[i]``, ``all_placed[i, c]``, ``slots[g]``, ``gpu_load[v, g]`` and ``identical_gpus[g]``;
    objective ``greatest_load``.  With several nodes also sets GROUPS and NODES, ``on[q, n]`` (binary), ``one_node[q]``
    and ``with_group[i, c, n]``.  Where moves count also ``moved[i, g]`` and ``new[i, g]``, and ``moves`` where they are
    limited.
    """
    model = pyo.ConcreteModel(name=instance.problem)
    model.EXPERTS = RangeSet(0, instance.num_experts - 1)
    model.GPUS = RangeSet(0, instance.num_gpus - 1)
    model.COUNTS = RangeSet(1, instance.most_replicas)
    model.VECTORS = RangeSet(0, len(instance.vectors) - 1)
    model.LEVELS = RangeSet(0, len(instance.vectors) - 1 if instance.aggregate == "mean" else 0)
    last = range(instance.gpus_per_node - 1, instance.num_gpus, instance.gpus_per_node)
    alike = [] if instance.counts_moves else [gpu for gpu in range(instance.num_gpus) if gpu not in last]
    model.NEXT = Set(initialize=alike)
    model.has = pyo.Var(model.EXPERTS * model.COUNTS, domain=pyo.Binary)

    def room(_: pyo.ConcreteModel, expert: int, count: int, gpu: int) -> tuple[int, int]:
        return 0, 1 if instance.one_per_gpu else min(count, instance.slots)

    model.placed = pyo.Var(model.EXPERTS * model.COUNTS * model.GPUS, domain=pyo.NonNegativeIntegers, bounds=room)
    model.greatest = pyo.Var(model.LEVELS, domain=pyo.NonNegativeReals)

    def one_count(model: pyo.ConcreteModel, expert: int) -> object:
        return pyo.quicksum(model.has[expert, count] for count in model.COUNTS) == 1

    def all_placed(model: pyo.ConcreteModel, expert: int, count: int) -> object:
        placed = pyo.quicksum(model.placed[expert, count, gpu] for gpu in model.GPUS)
        return placed == count * model.has[expert, count]

    model.one_count = pyo.Constraint(model.EXPERTS, rule=one_count)
    model.all_placed = pyo.Constraint(model.EXPERTS * model.COUNTS, rule=all_placed)
    pieces = list(model.EXPERTS * model.COUNTS)
    on = [[model.placed[expert, count, gpu] for expert, count in pieces] for gpu in model.GPUS]
    load, size = {}, unit(instance.vectors)
    for vector in model.VECTORS:
        shares = [float(instance.vectors[vector, expert]) / size / count for expert, count in pieces]
        load.update({(vector, gpu): weighted_sum(shares, on[gpu]) for gpu in model.GPUS})

    def gpu_load(model: pyo.ConcreteModel, vector: int, gpu: int) -> object:
        return load[vector, gpu] <= model.greatest[min(vector, model.LEVELS.last())]

    model.slots = pyo.Constraint(model.GPUS, rule=lambda _, gpu: pyo.quicksum(on[gpu]) == instance.slots)
    model.gpu_load = pyo.Constraint(model.VECTORS * model.GPUS, rule=gpu_load)
    model.identical_gpus = pyo.Constraint(model.NEXT, rule=lambda _, gpu: load[0, gpu] >= load[0, gpu + 1])
    value = size * pyo.quicksum(model.greatest[level] for level in model.LEVELS) / len(model.LEVELS)
    if instance.num_nodes > 1:
        _add_nodes(model, instance)
    if instance.counts_moves:
        _add_moves(model, instance)
        value += instance.move_price * pyo.quicksum(model.moved.values())
    model.greatest_load = pyo.Objective(expr=value)
    return model


def _add_nodes(model: pyo.ConcreteModel, instance: EplbPlacement) -> None:
    """Keep the replicas of a group's experts on one node."""
    model.GROUPS = RangeSet(0, instance.num_groups - 1)
    model.NODES = RangeSet(0, instance.num_nodes - 1)
    model.on = pyo.Var(model.GROUPS * model.NODES, domain=pyo.Binary)

    def one_node(model: pyo.ConcreteModel, group: int) -> object:
        return pyo.quicksum(model.on[group, node] for node in model.NODES) == 1

    def with_group(model: pyo.ConcreteModel, expert: int, count: int, node: int) -> object:
        first = node * instance.gpus_per_node
        there = pyo.quicksum(model.placed[expert, count, first + gpu] for gpu in range(instance.gpus_per_node))
        return there <= count * model.on[int(instance.groups[expert]), node]

    model.one_node = pyo.Constraint(model.GROUPS, rule=one_node)
    model.with_group = pyo.Constraint(model.EXPERTS * model.COUNTS * model.NODES, rule=with_group)


def _add_moves(model: pyo.ConcreteModel, instance: EplbPlacement) -> None:
    """Count replicas that are where there is none now."""
    model.moved = pyo.Var(model.EXPERTS * model.GPUS, domain=pyo.NonNegativeReals)

    def new(model: pyo.ConcreteModel, expert: int, gpu: int) -> object:
        placed = pyo.quicksum(model.placed[expert, count, gpu] for count in model.COUNTS)
        return placed - int(instance.current[expert, gpu]) <= model.moved[expert, gpu]

    model.new = pyo.Constraint(model.EXPERTS * model.GPUS, rule=new)
    if math.isfinite(instance.move_limit):
        model.moves = pyo.Constraint(expr=pyo.quicksum(model.moved.values()) <= math.floor(instance.move_limit))


def read(model: pyo.ConcreteModel) -> EplbPlacementPlan:
    """Return the plan in the values of ``placed``."""
    replicas = np.zeros((len(model.EXPERTS), len(model.GPUS)), np.int64)
    for (expert, _, gpu), variable in model.placed.items():
        replicas[expert, gpu] += round(pyo.value(variable))
    return EplbPlacementPlan(replicas=replicas)


def write(model: pyo.ConcreteModel, plan: EplbPlacementPlan) -> None:
    """Set the variables to ``plan``, as a point to start the search from; GPUs are exchanged so that loads fall."""
    instance: EplbPlacement = model.instance
    loads = np.array([instance.gpu_loads(plan, vector) for vector in range(len(instance.vectors))])
    loads /= unit(instance.vectors)
    order = np.arange(instance.num_gpus)
    if not instance.counts_moves:
        order = np.lexsort((-loads[0], order // instance.gpus_per_node))
    replicas = plan.replicas[:, order]
    chosen = replicas.sum(axis=1).tolist()
    for (expert, count), variable in model.has.items():
        variable.set_value(int(count == chosen[expert]))
    for (expert, count, gpu), variable in model.placed.items():
        there = int(replicas[expert, gpu]) if count == chosen[expert] else 0
        variable.set_value(there, skip_validation=True)
    for level, variable in model.greatest.items():
        variable.set_value(float(loads[level].max() if len(model.LEVELS) > 1 else loads.max()))
    if instance.num_nodes > 1:
        nodes = np.arange(instance.num_gpus) // instance.gpus_per_node
        for (group, node), variable in model.on.items():
            variable.set_value(int(replicas[instance.groups == group][:, nodes == node].any()))
    if instance.counts_moves:
        for (expert, gpu), variable in model.moved.items():
            variable.set_value(max(0, int(replicas[expert, gpu] - instance.current[expert, gpu])))


def counts(loads: FloatArray, replicas: int, most: int) -> IntArray:
    """(e,) int: replicas of the experts by which the greatest load for each is least: each goes where that is greatest.

    No expert has more than ``most``.
    """
    found = np.ones(len(loads), np.int64)
    waiting = [(-load, expert) for expert, load in enumerate(loads.tolist())]
    heapq.heapify(waiting)
    for _ in range(replicas - len(loads)):
        while found[waiting[0][1]] >= most:
            heapq.heappop(waiting)
        expert = waiting[0][1]
        found[expert] += 1
        heapq.heapreplace(waiting, (-float(loads[expert]) / int(found[expert]), expert))
    return found


def dealt(instance: EplbPlacement) -> EplbPlacementPlan:
    """Return the plan that deals the replicas out to the GPUs in turn, those that carry most first, node by node.

    Where each GPU can hold every expert, it does, and carries the mean load; where moves count, all stay.
    """
    if instance.counts_moves:
        return EplbPlacementPlan(replicas=instance.current)
    if instance.slots == instance.num_experts and instance.num_nodes == 1:
        return EplbPlacementPlan(replicas=np.ones((instance.num_experts, instance.num_gpus), np.int64))
    replicas = np.zeros((instance.num_experts, instance.num_gpus), np.int64)
    gpus, held = instance.gpus_per_node, instance.gpus_per_node * instance.slots
    for node, groups in enumerate(np.array_split(np.arange(instance.num_groups), instance.num_nodes)):
        experts = np.flatnonzero(np.isin(instance.groups, groups) | (instance.num_nodes == 1))
        loads = instance.vectors[:, experts].sum(axis=0) / len(instance.vectors)
        of = counts(loads, held, gpus if instance.one_per_gpu else held)
        order = np.argsort(-loads / of, kind="stable")
        pieces = np.repeat(experts[order], of[order])
        np.add.at(replicas, (pieces, node * gpus + np.arange(len(pieces)) % gpus), 1)
    return EplbPlacementPlan(replicas=replicas)


def least_load(instance: EplbPlacement) -> float:
    """Return what no plan is worth less than: the mean load, or the greatest for a replica where that is least.

    By each vector of loads, of which the worst or the mean counts.
    """
    least = []
    for loads in instance.vectors:
        of = counts(loads, instance.num_replicas, instance.most_replicas)
        least.append(max(math.fsum(loads.tolist()) / instance.num_gpus, float((loads / of).max())))
    return instance.aggregated(least)


FORMULATION = Formulation(build=build, read=read, write=write, trivial=dealt, trivial_bound=least_load)
