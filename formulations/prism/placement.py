"""Exact model of :class:`instances.prism.placement.PrismPlacement`.

The least of the greatest ratio is one over the most memory c that every model can be granted for each unit of its
weight, beside its own size:

    max   cache
    s.t.  one_gpu[j]:    sum_g hosts[j, g]  =  1
          cache_of[g]:   sum_j sizes[j] * hosts[j, g]  +  weights[j] * granted[j, g]  <=  memory[g]
          memory[g]:     sum_j sizes[j] * hosts[j, g]  <=  memory[g]              (a GB less where all are whole)
          grants[j, g]:  granted[j, g]  >=  cache - most * (1 - hosts[j, g])
          moves:         sum of sizes[j] * hosts[j, g] over g that are not current[j]  <=  move_limit
          hosts[j, g] in {0, 1},  0 <= cache <= most,  0 <= granted[j, g].

granted[j, g] is the product of cache and hosts[j, g], which nothing but ``grants`` keeps from 0, and ``most`` is one
over a bound on every plan's value.  Its methods are those of :mod:`formulations.methods.fillings`.
"""

from __future__ import annotations

import math

import numpy as np
import pyomo.environ as pyo

from formulations.engine.linear import weighted_sum
from formulations.engine.protocol import Formulation
from formulations.engine.sets import RangeSet, Set
from instances.base import widened
from instances.prism.placement import PrismPlacement, PrismPlacementPlan
from instances.schema import FloatArray

__all__ = ["FORMULATION", "bound", "build", "explain", "in_model", "least_level", "read", "spread", "write"]

MARGIN = 1e-9
"""Part of the greatest cache by which a solver's bound may be short of what a plan has."""
ROUNDING = 1e-12
"""Part of a level that its sums may owe to rounding."""
HALVINGS = 50
"""Of the interval between a level that is too low and one that is not known to be."""


def build(instance: PrismPlacement) -> pyo.ConcreteModel:
    """Pyomo model of an instance.

    Sets JOBS (the models), LOADED (those with a weight) and GPUS; variables ``hosts[j, g]`` (binary), ``granted[j, g]``
    and ``cache``; constraints ``one_gpu[j]``, ``cache_of[g]``, ``memory[g]``, ``grants[j, g]`` and ``moves``; objective
    ``cache_for_weight``.
    """
    most = _most(instance)
    model = pyo.ConcreteModel(name=instance.problem)
    model.JOBS = RangeSet(0, instance.num_jobs - 1)
    model.LOADED = Set(initialize=np.flatnonzero(instance.weights).tolist())
    model.GPUS = RangeSet(0, instance.num_gpus - 1)
    model.hosts = pyo.Var(model.JOBS * model.GPUS, domain=pyo.Binary)
    model.granted = pyo.Var(model.LOADED * model.GPUS, bounds=(0, most))
    model.cache = pyo.Var(bounds=(0, most))
    sizes = instance.sizes.tolist()

    def one_gpu(model: pyo.ConcreteModel, j: int) -> object:
        return pyo.quicksum(model.hosts[j, g] for g in model.GPUS) == 1

    def cache_of(model: pyo.ConcreteModel, g: int) -> object:
        amounts = [*sizes, *(float(instance.weights[j]) for j in model.LOADED)]
        variables = [model.hosts[j, g] for j in model.JOBS] + [model.granted[j, g] for j in model.LOADED]
        return weighted_sum(amounts, variables) <= float(instance.memory[g])

    def memory(model: pyo.ConcreteModel, g: int) -> object:
        return weighted_sum(sizes, [model.hosts[j, g] for j in model.JOBS]) <= _fills(instance, g)

    def grants(model: pyo.ConcreteModel, j: int, g: int) -> object:
        return model.granted[j, g] >= model.cache - most * (1 - model.hosts[j, g])

    model.one_gpu = pyo.Constraint(model.JOBS, rule=one_gpu)
    model.cache_of = pyo.Constraint(model.GPUS, rule=cache_of)
    model.memory = pyo.Constraint(model.GPUS, rule=memory)
    model.grants = pyo.Constraint(model.LOADED * model.GPUS, rule=grants)
    if math.isfinite(instance.move_limit):
        away = [(j, g) for j in model.JOBS for g in model.GPUS if -1 < instance.current[j] != g]
        moved = weighted_sum([sizes[j] for j, _ in away], [model.hosts[pair] for pair in away])
        if away:
            model.moves = pyo.Constraint(expr=moved <= widened(instance.sizes, instance.move_limit))
    model.cache_for_weight = pyo.Objective(expr=model.cache, sense=pyo.maximize)
    return model


def _most(instance: PrismPlacement) -> float:
    """Return the most memory that each unit of weight can have, GB s²; 1 where there is no weight."""
    level = least_level(instance)
    return 1 / level if level > 0 else 1.0


def _fills(instance: PrismPlacement, gpu: int) -> float:
    """Return what sizes on a GPU may come to: less than its memory, by a GB at least where all of them are whole."""
    memory = float(instance.memory[gpu])
    whole = not np.any(instance.sizes % 1) and memory % 1 == 0
    return memory - 1 if whole else widened(instance.sizes, memory)


def read(model: pyo.ConcreteModel) -> PrismPlacementPlan:
    """Return the plan in the values of ``hosts``."""
    gpus = np.full(model.instance.num_jobs, -1)
    for (job, gpu), variable in model.hosts.items():
        if variable.value > 0.5:
            gpus[job] = gpu
    return PrismPlacementPlan(gpus=gpus)


def write(model: pyo.ConcreteModel, plan: PrismPlacementPlan) -> None:
    """Set the variables to ``plan``, as a point to start the search from."""
    instance = model.instance
    cache = min(in_model(instance, instance.objective(plan)), model.cache.ub)
    model.cache.set_value(cache)
    for (job, gpu), variable in model.hosts.items():
        variable.set_value(int(plan.gpus[job] == gpu))
    for (job, gpu), variable in model.granted.items():
        variable.set_value(cache if plan.gpus[job] == gpu else 0.0)


def bound(instance: PrismPlacement, value: float) -> float:
    """Return the pressure that no plan is below when none grants more than ``value`` for each unit of weight."""
    if not instance.weights.any():
        return 0.0
    return 1 / (max(value, 0.0) + MARGIN * _most(instance))


def in_model(instance: PrismPlacement, value: float) -> float:
    """Return what a plan of the value ``value`` grants for each unit of weight."""
    return 1 / value if value > 0 else _most(instance)


def explain(instance: PrismPlacement) -> str | None:
    """Say that a model is larger than every GPU, or that all are as large as all memory."""
    job = int(instance.sizes.argmax())
    if instance.sizes[job] >= instance.memory.max():
        return f"model {job} takes {instance.sizes[job]:g} GB, and no GPU has more than {instance.memory.max():g} GB"
    left = math.fsum([*instance.memory.tolist(), *(-instance.sizes).tolist()])
    if left <= 0:
        return f"the models leave nothing of {math.fsum(instance.memory.tolist()):g} GB"
    return None


def spread(instance: PrismPlacement) -> PrismPlacementPlan:
    """Leave models where they are while moves are limited, and put the others where the pressure is least then.

    The greatest first, by size and by weight relative to what there is of both.
    """
    gpus = np.full(instance.num_jobs, -1)
    if math.isfinite(instance.move_limit):
        gpus = instance.current.copy()
    free, weight = instance.memory.copy(), np.zeros(instance.num_gpus)
    for job in np.flatnonzero(gpus >= 0).tolist():
        free[gpus[job]] -= instance.sizes[job]
        weight[gpus[job]] += instance.weights[job]
    loads = instance.weights + least_level(instance) * instance.sizes
    for job in np.lexsort((-instance.sizes, -loads)).tolist():
        left = free - instance.sizes[job]
        if gpus[job] >= 0 or not (left > 0).any():
            continue
        after = np.divide(weight + instance.weights[job], left, out=np.full(len(left), np.inf), where=left > 0)
        gpu = int(after.argmin()) if np.isfinite(after).any() else int(left.argmax())
        gpus[job], free[gpu], weight[gpu] = gpu, left[gpu], weight[gpu] + instance.weights[job]
    return PrismPlacementPlan(gpus=gpus)


def least_level(instance: PrismPlacement) -> float:
    """Return a pressure that no plan is below: of all models on all memory, of one alone, of large ones apart.

    At a level L a GPU holds models whose loads, weight + L * size, come to L * memory at most.  Loads of more than half
    of that on the largest GPU share none, and leave little to smaller ones.  A level at which so many GPUs are needed
    as there are not is below all plans (Martello and Toth's second bound of bin packing); halving finds a great one.
    """
    memory, largest = instance.memory, float(instance.memory.max())
    left = math.fsum([*memory.tolist(), *(-instance.sizes).tolist()])
    total = math.fsum(instance.weights.tolist())
    alone = largest - instance.sizes
    if total <= 0 or left <= 0 or (alone <= 0).any():
        return 0.0
    level = max(total / left, float((instance.weights / alone).max()))
    low, high = level, 4 * level
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if high - low <= ROUNDING * high:
            break
        low, high = (middle, high) if _too_low(instance, middle) else (low, middle)
    return low * (1 - ROUNDING)


def _too_low(instance: PrismPlacement, level: float) -> bool:
    """Return whether loads at a level need more GPUs than there are, each as large as the largest."""
    room = level * float(instance.memory.max()) * (1 + ROUNDING)
    loads = np.sort(instance.weights + level * instance.sizes)[::-1]
    if loads[0] > room:
        return True
    needed = _apart(loads, room)
    return bool((needed > instance.num_gpus).any())


def _apart(loads: FloatArray, room: float) -> FloatArray:
    """Return how many GPUs are needed at the least where loads below each threshold up to half a GPU are left out."""
    sums = np.concatenate([[0.0], np.cumsum(loads)])
    half = int(np.searchsorted(-loads, -room / 2, side="left"))
    thresholds = np.append(loads[half:], room / 2)
    # Loads above room - threshold have a GPU for themselves, those down to half share with small ones only.
    wide = np.searchsorted(-loads, -(room - thresholds), side="left")
    wide = np.minimum(wide, half)
    kept = np.searchsorted(-loads, -thresholds, side="right")
    kept = np.maximum(kept, half)
    spare = (half - wide) * room - (sums[half] - sums[wide])
    small = sums[kept] - sums[half]
    needed: FloatArray = half + np.maximum(0.0, np.ceil((small - spare) / room - ROUNDING * len(loads)))
    return needed


FORMULATION = Formulation(
    build=build,
    read=read,
    write=write,
    bound=bound,
    in_model=in_model,
    explain=explain,
    trivial=spread,
    trivial_bound=least_level,
)
