"""Exact model of :class:`instances.elasticflow.placement.ElasticFlowPlacement`: which running jobs move, as a MILP.

Jobs of one size are alike when they are placed anew.  So a job either stays, or it is one of those
that take the blocks of its size given to jobs that are placed anew:

    min   (running jobs that cannot stay) + sum_i (1 - stays[i])
    s.t.  sum_{i of size s} stays[i] + sum_b taken[s, b] = (number of jobs of size s)     for each size s
          sum_{i: GPU u in its block} stays[i] + sum_s taken[s, u div s] <= 1             for each unit u
          stays[i], taken[s, b] in {0, 1},

where stays[i] is there for the running jobs whose previous offset suits their size, block b of size
s is GPUs s * b to s * b + s - 1, and a unit is an aligned group of GPUs of the smallest size.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pyomo.environ as pyo

from formulations.engine.linear import refuse_large
from formulations.engine.protocol import Formulation
from formulations.engine.sets import RangeSet, Set
from instances.base import total
from instances.elasticflow.placement import ElasticFlowPlacement, ElasticFlowPlacementPlan

__all__ = ["FORMULATION", "build", "largest_first", "read", "unfit", "why_infeasible", "write"]


def build(instance: ElasticFlowPlacement) -> pyo.ConcreteModel:
    """Pyomo model of a placement instance.

    Sets JOBS, STAYERS (jobs that can stay), SIZES, BLOCKS (size and block), UNITS; variables ``stays[i]`` and
    ``taken[s, b]`` (binary); constraints ``all_placed[s]`` and ``disjoint[u]``; objective
    ``jobs_moved``.
    """
    sizes = instance.sizes.tolist()
    smallest = min(sizes)
    blocks_and_units = sum(instance.num_gpus // size for size in {*sizes}) + instance.num_gpus // smallest
    refuse_large(instance, blocks_and_units, "blocks and units: num_gpus over each of sizes")
    model = pyo.ConcreteModel(name=instance.problem)
    model.JOBS = RangeSet(0, instance.num_jobs - 1)
    model.STAYERS = Set(initialize=np.flatnonzero(instance.can_stay).tolist())
    model.SIZES = Set(initialize=sorted(set(sizes)))
    model.BLOCKS = Set(
        # A size above the cluster's has one block, which nobody can take.
        initialize=[(size, block) for size in model.SIZES for block in range(max(1, instance.num_gpus // size))],
        dimen=2,
    )
    model.UNITS = RangeSet(0, instance.num_gpus // smallest - 1)
    model.stays = pyo.Var(model.STAYERS, domain=pyo.Binary)
    model.taken = pyo.Var(
        model.BLOCKS, domain=pyo.Binary, bounds=lambda _, size, block: (0, int(size * (block + 1) <= instance.num_gpus))
    )
    of_size: dict[int, list[Any]] = defaultdict(list)
    of_unit: dict[int, list[Any]] = defaultdict(list)
    blocks = [(int(instance.previous_offsets[job]), sizes[job], model.stays[job]) for job in model.STAYERS]
    blocks += [(size * block, size, taken) for (size, block), taken in model.taken.items()]
    for offset, size, variable in blocks:
        of_size[size].append(variable)
        for unit in range(offset // smallest, min(offset + size, instance.num_gpus) // smallest):
            of_unit[unit].append(variable)

    def all_placed(_: pyo.ConcreteModel, size: int) -> object:
        return pyo.quicksum(of_size[size]) == sizes.count(size)

    def disjoint(_: pyo.ConcreteModel, unit: int) -> object:
        return pyo.quicksum(of_unit[unit]) <= 1 if of_unit[unit] else pyo.Constraint.Skip

    model.all_placed = pyo.Constraint(model.SIZES, rule=all_placed)
    model.disjoint = pyo.Constraint(model.UNITS, rule=disjoint)
    model.jobs_moved = pyo.Objective(
        expr=int(instance.running.sum()) - pyo.quicksum(model.stays.values()), sense=pyo.minimize
    )
    model.sizes = pyo.Param(model.JOBS, initialize=dict(enumerate(sizes)))
    model.previous = pyo.Param(
        model.STAYERS, initialize={job: int(instance.previous_offsets[job]) for job in model.STAYERS}
    )
    return model


def read(model: pyo.ConcreteModel) -> ElasticFlowPlacementPlan:
    """Return the plan in the values of ``stays`` and ``taken``; the jobs placed anew take blocks in order."""
    taken: dict[int, list[int]] = defaultdict(list)
    for (size, block), variable in model.taken.items():
        if variable.value > 0.5:
            taken[size].append(size * block)
    offsets = [
        model.previous[job] if job in model.stays and model.stays[job].value > 0.5 else taken[size].pop(0)
        for job, size in model.sizes.items()
    ]
    return ElasticFlowPlacementPlan(offsets=np.array(offsets))


def write(model: pyo.ConcreteModel, plan: ElasticFlowPlacementPlan) -> None:
    """Set the variables to ``plan``, as a point to start the search from."""
    offsets = plan.offsets.tolist()
    for job in model.STAYERS:
        model.stays[job].set_value(int(offsets[job] == model.previous[job]))
    anew = {
        (size, offsets[job] // size)
        for job, size in model.sizes.items()
        if job not in model.stays or offsets[job] != model.previous[job]
    }
    for index, variable in model.taken.items():
        variable.set_value(int(index in anew))


def why_infeasible(instance: ElasticFlowPlacement) -> str | None:
    """Say that the jobs need more GPUs than there are, the one reason why they have no placement."""
    needed = int(total(instance.sizes))
    return f"the jobs need {needed} GPUs, there are {instance.num_gpus}" if needed > instance.num_gpus else None


def largest_first(instance: ElasticFlowPlacement) -> ElasticFlowPlacementPlan:
    """Place jobs around those that run where that works, else from the largest size down, each in place if it can be.

    From the largest size down all free blocks of a size are as good for what comes after, so that the first way finds
    a plan that moves no job which can stay whenever there is one.
    """
    plan = _from_the_largest(instance, around=True)
    return _from_the_largest(instance, around=False) if instance.violations(plan) else plan


def _from_the_largest(instance: ElasticFlowPlacement, around: bool) -> ElasticFlowPlacementPlan:
    """Place jobs from the largest size down, in free blocks in which few jobs run; or around all that can stay."""
    sizes, previous = instance.sizes, np.where(instance.can_stay, instance.previous_offsets, 0).astype(np.int64)
    offsets = previous.copy()
    free = np.ones(instance.num_gpus, bool)
    if around:
        for job in np.flatnonzero(instance.can_stay).tolist():
            free[previous[job] : previous[job] + sizes[job]] = False
    for size in np.unique(sizes)[::-1].tolist():
        count = instance.num_gpus // size
        open_blocks = np.asarray(free[: count * size].reshape(count, size).all(axis=1))
        jobs = np.flatnonzero(sizes == size)
        stayers = jobs[instance.can_stay[jobs]]
        if not around:
            stayers = stayers[open_blocks[previous[stayers] // size]]
            stayers = stayers[np.unique(previous[stayers], return_index=True)[1]]
        open_blocks[previous[stayers] // size] = False
        smaller = instance.can_stay & (sizes < size) & (previous < count * size)
        blocks = np.flatnonzero(open_blocks)
        crowd = np.bincount(previous[smaller] // size, minlength=max(count, 1))[blocks]
        anew = np.setdiff1d(jobs, stayers)
        blocks = blocks[np.argsort(crowd, kind="stable")[: len(anew)]]
        offsets[anew[: len(blocks)]] = size * blocks
        for offset in (offsets[stayers].tolist() if not around else []) + (size * blocks).tolist():
            free[offset : offset + size] = False
    return ElasticFlowPlacementPlan(offsets=offsets)


def unfit(instance: ElasticFlowPlacement) -> float:
    """Bound the jobs moved: those whose offset does not suit their size cannot stay."""
    return float((instance.running & ~instance.can_stay).sum())


FORMULATION = Formulation(
    build=build, read=read, write=write, explain=why_infeasible, trivial=largest_first, trivial_bound=unfit
)
