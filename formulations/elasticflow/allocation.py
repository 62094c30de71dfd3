"""Exact models of :class:`instances.elasticflow.allocation.ElasticFlowAllocation`: (4)-(7) as a MILP.

The two models of :mod:`formulations.elasticflow.minimum_satisfactory_share` with (7) as an
implication.  ``slot_0_full`` is 1 when slot 0 has no idle GPU:

    sum_i x_i(0) >= G * slot_0_full,

and where it is 0, one more GPU must speed up no job.  Slot by slot, with H_i the numbers of GPUs,
0 among them, from which job i would gain:

    sum_{g in H_i} (x_i(0) = g) <= slot_0_full                    for each job i.

By interval, slot 0 is an interval of its own, and a job with a concave curve gains from one more
GPU as long as it holds fewer than P_i, the fewest on which it is fastest:

    sum_s gpu_slots[i, 0, s] >= P_i * (1 - slot_0_full)           for each job i.

More than P_i GPUs are never needed there: if slot 0 is full with some, they can go to jobs that
gain from them, until it is full again or no job gains.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pyomo.environ as pyo

from formulations.elasticflow.flow import why_infeasible
from formulations.elasticflow.greedy import least_gpu_slots_filled, one_pass_filled
from formulations.elasticflow.sharing import (
    add_gpu_time,
    add_shares_alone,
    add_work,
    aggregated,
    read,
    time_indexed,
    write_gpus,
)
from formulations.engine.linear import weighted_sum
from formulations.engine.protocol import Formulation
from instances.elasticflow.allocation import ElasticFlowAllocation
from instances.elasticflow.sharing import SlotPlan

__all__ = [
    "FORMULATION",
    "build",
    "build_aggregated",
    "build_time_indexed",
    "read",
    "write",
]


def build(instance: ElasticFlowAllocation) -> pyo.ConcreteModel:
    """Pyomo model of an instance: aggregated when all curves are concave, else time-indexed."""
    return build_aggregated(instance) if instance.concave else build_time_indexed(instance)


def build_time_indexed(instance: ElasticFlowAllocation) -> pyo.ConcreteModel:
    """Return the model slot by slot, for any curve.

    Sets JOBS, SLOTS, RUNS (job and slot), CHOICES (job, slot, GPUs); variables ``chosen[i, t, g]``
    and ``slot_0_full`` (binary); constraints ``one_count[i, t]``, ``work[i]``, ``alone[i]``,
    ``capacity[t]``, ``full`` and ``no_useful_idle_gpu[i]``; objective ``gpu_time``.
    """
    model = pyo.ConcreteModel(name=instance.problem)
    terms = time_indexed(model, instance, every_count_now=True)
    add_work(model, instance, terms)
    add_shares_alone(model, instance, terms)
    add_gpu_time(model, terms)
    now = [(gpus, variable) for (_, slot, gpus), variable in model.chosen.items() if slot == 0]
    _add_full(model, instance, [gpus for gpus, _ in now], [variable for _, variable in now])

    def no_useful_idle_gpu(model: pyo.ConcreteModel, job: int) -> object:
        some = [model.chosen[job, 0, gpus] for gpus in range(1, instance.num_gpus + 1)]
        # Holding 0 GPUs is holding no other number.
        holds = [1 - pyo.quicksum(some), *some]
        gains = np.flatnonzero(instance.gains[job]).tolist()
        return pyo.quicksum(holds[gpus] for gpus in gains) <= model.slot_0_full

    model.no_useful_idle_gpu = pyo.Constraint(model.JOBS, rule=no_useful_idle_gpu)
    return model


def build_aggregated(instance: ElasticFlowAllocation) -> pyo.ConcreteModel:
    """Return the model by interval, for concave curves; interval 0 is slot 0.

    Sets JOBS, INTERVALS, STEPS (job, interval, step of the curve); parameter ``length[k]``;
    variables ``gpu_slots[i, k, s]`` (integer) and ``slot_0_full`` (binary); constraints
    ``work[i]``, ``capacity[k]``, ``full`` and ``no_useful_idle_gpu[i]``; objective ``gpu_time``.

    Raises
    ------
    ValueError
        When a curve is not concave.
    """
    model = pyo.ConcreteModel(name=instance.problem)
    terms = aggregated(model, instance, slot_0_alone=True)
    add_work(model, instance, terms)
    add_gpu_time(model, terms)
    now: dict[int, list[Any]] = defaultdict(list)
    for (job, interval, _), variable in model.gpu_slots.items():
        if interval == 0:
            now[job].append(variable)
    variables = [variable for held in now.values() for variable in held]
    _add_full(model, instance, [1] * len(variables), variables)

    def no_useful_idle_gpu(model: pyo.ConcreteModel, job: int) -> object:
        fastest = [*instance.gains[job].tolist(), False].index(False)
        return pyo.quicksum(now[job]) >= fastest * (1 - model.slot_0_full)

    model.no_useful_idle_gpu = pyo.Constraint(model.JOBS, rule=no_useful_idle_gpu)
    return model


def _add_full(model: pyo.ConcreteModel, instance: ElasticFlowAllocation, gpus: list[int], variables: list[Any]) -> None:
    model.num_gpus = pyo.Param(initialize=instance.num_gpus)
    model.slot_0_full = pyo.Var(domain=pyo.Binary)
    model.full = pyo.Constraint(expr=weighted_sum(gpus, variables) >= instance.num_gpus * model.slot_0_full)


def write(model: pyo.ConcreteModel, plan: SlotPlan) -> None:
    """Set the variables to ``plan``, as a point to start the search from."""
    write_gpus(model, plan.gpus)
    model.slot_0_full.set_value(int(plan.gpus[:, 0].sum() == model.num_gpus.value))


FORMULATION = Formulation(
    build=build,
    read=read,
    write=write,
    explain=why_infeasible,
    explain_first=False,
    trivial=one_pass_filled,
    trivial_bound=least_gpu_slots_filled,
)
