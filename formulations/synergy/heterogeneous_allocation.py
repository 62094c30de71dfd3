"""Exact model of :class:`instances.synergy.heterogeneous_allocation.HeterogeneousAllocation`.

Synergy's program (22)-(26), with a limit on the GPUs of each machine type:

    max   sum_{j,c} W[j, c] * chosen[j, c]
    s.t.  cpus[i]:    sum_{j,c of type i} cpus[j, c]   * chosen[j, c]  <=  C_i
          memory[i]:  sum_{j,c of type i} memory[j, c] * chosen[j, c]  <=  M_i
          gpus[i]:    sum_{j,c of type i} gpu_demands[j] * chosen[j, c]  <=  G_i
          one_config[j]:       sum_c chosen[j, c]  ==  1
          fair_throughput[j]:  sum_c W[j, c] * chosen[j, c]  >=  W_fair[j]
          chosen[j, c] in {0, 1},  0 where the server cap (section 6) does not allow the configuration.

A configuration belongs to a machine type, so choosing one chooses the type.  Configurations that
another one of the same type dominates are left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyomo.environ as pyo

from formulations.engine import solving
from formulations.engine.protocol import Formulation
from formulations.engine.sets import RangeSet
from formulations.synergy.allocation import at_most, choices_model, each_at_best, no_configuration, read_choices
from instances.base import total
from instances.schema import IntArray
from instances.synergy.allocation import SynergyAllocationPlan
from instances.synergy.heterogeneous_allocation import HeterogeneousAllocation
from instances.synergy.queue import runnable
from instances.synergy.sensitivity import CPU, MEMORY

__all__ = ["FORMULATION", "build", "explain", "improve_utilization", "read"]


def build(instance: HeterogeneousAllocation) -> pyo.ConcreteModel:
    """Pyomo model of a heterogeneous allocation instance.

    Sets JOBS, CONFIGS (pairs of job and configuration) and TYPES; variables ``chosen[j, c]``
    (binary); constraints ``cpus[i]``, ``memory[i]``, ``gpus[i]``, ``one_config[j]`` and
    ``fair_throughput[j]``; objective ``throughput``.
    """
    model = choices_model(instance, pyo.Binary)
    model.TYPES = RangeSet(0, instance.num_types - 1)
    of_type: list[list[tuple[int, int]]] = [[] for _ in model.TYPES]
    for job, config in model.CONFIGS:
        of_type[instance.config_types[job][config]].append((job, config))
    cpus, memory, gpus = instance.capacity.T.tolist()

    def limit(amounts: list[float], kind: int, capacity: float) -> object:
        if not amounts:
            return pyo.Constraint.Feasible
        return at_most(amounts, [model.chosen[pair] for pair in of_type[kind]], capacity)

    model.cpus = pyo.Constraint(
        model.TYPES, rule=lambda _, i: limit([instance.configs[j][c, CPU] for j, c in of_type[i]], i, cpus[i])
    )
    model.memory = pyo.Constraint(
        model.TYPES, rule=lambda _, i: limit([instance.configs[j][c, MEMORY] for j, c in of_type[i]], i, memory[i])
    )
    model.gpus = pyo.Constraint(
        model.TYPES, rule=lambda _, i: limit([instance.gpu_demands[j] for j, _ in of_type[i]], i, gpus[i])
    )
    return model


def read(model: pyo.ConcreteModel) -> SynergyAllocationPlan:
    """Return the plan in the values of ``chosen``."""
    return SynergyAllocationPlan(choices=read_choices(model))


def improve_utilization(
    instance: HeterogeneousAllocation, *, order: Sequence[int] | None = None
) -> SynergyAllocationPlan:
    """Use what is left: the program again and again, for the next jobs of the queue and the GPUs not yet assigned.

    The first set are the runnable jobs of the queue (:func:`instances.synergy.queue.runnable`).  As a job runs on
    one type, the program may have no solution for all of them; then the last of the set waits, and so on.  What
    the program gives is kept, and the program is solved for the next set and the GPUs that are unassigned, until
    no job waits or no GPU is free.  A job for which there is no solution on its own is passed over.

    Which jobs of a set wait is not printed: (25) as it stands asks for all of them.

    Parameters
    ----------
    instance : HeterogeneousAllocation
        All jobs of the queue; they may want more GPUs than there are.
    order : sequence of n int, optional
        The queue; by default the jobs' own order.

    Returns
    -------
    SynergyAllocationPlan
        With choice -1 for jobs that wait; ``instance.restricted_to`` the others is a feasible round.

    References
    ----------
    Synergy (OSDI'22), appendix A.2.3, "Improving utilization".
    """
    choices = np.full(instance.num_jobs, -1, np.int64)
    waiting = list(range(instance.num_jobs) if order is None else order)
    while waiting:
        placed = np.flatnonzero(choices >= 0)
        idle = instance.num_gpus - int(instance.gpu_demands[placed].sum())
        wave = [waiting[i] for i in runnable(instance.gpu_demands[waiting], idle, range(len(waiting))).tolist()]
        if not wave:
            break
        found = None
        while wave:
            found = _with_kept(instance, choices, [*placed.tolist(), *wave])
            if found is not None or len(wave) == 1:
                break
            wave.pop()
        if found is not None:
            choices = found
        waiting = [job for job in waiting if job not in wave]
    return SynergyAllocationPlan(choices=choices)


def _with_kept(instance: HeterogeneousAllocation, choices: IntArray, jobs: list[int]) -> IntArray | None:
    """(n,) int: the best choices of some jobs, those with one keeping it; None where there are none."""
    part = instance.restricted_to(jobs)
    model = solving.build(part)
    for (position, config), variable in model.chosen.items():
        if choices[jobs[position]] >= 0:
            variable.fix(int(config == choices[jobs[position]]))
    plan = solving.solve(model).plan
    if not isinstance(plan, SynergyAllocationPlan) or part.violations(plan):
        return None
    found = choices.copy()
    found[jobs] = plan.choices
    return found


def explain(instance: HeterogeneousAllocation) -> str | None:
    """Return the first reason in the data for which no plan exists."""
    wanted = int(total(instance.gpu_demands))
    if wanted > instance.num_gpus:
        return f"the jobs want {wanted} GPUs, all types together have {instance.num_gpus}"
    for job, (gpus, types, usable) in enumerate(
        zip(instance.gpu_demands.tolist(), instance.config_types, instance.usable_configs, strict=True)
    ):
        if usable.any() and (most := max(instance.capacity[types[usable], 2])) < gpus:
            return f"job {job} wants {gpus} GPUs of one type, those it can run on have at most {most:g}"
    return no_configuration(instance)


FORMULATION = Formulation(build=build, read=read, explain=explain, trivial_bound=each_at_best)
