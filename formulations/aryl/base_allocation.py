"""Exact model of :class:`instances.aryl.base_allocation.BaseAllocation`: GPUs flow from job to job.

    min   (1/n) * sum_j (starts[j] + running_times[j])
    s.t.  first[j] + sum_i passed[i, j] == gpu_demands[j]                      for each job j
          sum_j first[j] <= capacity
          sum_j passed[i, j] <= gpu_demands[i]                                 for each job i
          passed[i, j] <= min(gpu_demands[i], gpu_demands[j]) * after[i, j]
          starts[j] >= starts[i] + running_times[i] - horizon * (1 - after[i, j])
          after[i, j] + after[j, i] <= 1,   after[i, j] in {0, 1}.

A job's GPUs come from the cluster (``first``) or from jobs that have ended (``passed``).  ``horizon``
is the sum of all running times.  Times are in ``time_unit`` s, so that what solvers tolerate is little
beside them.  Finished jobs are left out.  The relaxation is weak: proofs are for a handful of jobs.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush

import numpy as np
import pyomo.environ as pyo

from formulations.engine.linear import weighted_sum
from formulations.engine.protocol import Formulation
from formulations.engine.sets import Set
from instances.aryl.base_allocation import BaseAllocation, BaseAllocationPlan

__all__ = ["FORMULATION", "bound", "build", "in_model", "in_turn", "mean_busy", "read", "too_large", "write"]


def build(instance: BaseAllocation) -> pyo.ConcreteModel:
    """Pyomo model of a base allocation instance.

    Parameter ``time_unit``; sets JOBS (those with work left) and PAIRS; variables ``starts[j]``, ``first[j]``,
    ``passed[i, j]`` and ``after[i, j]`` (binary); constraints ``demands[j]``, ``capacity``, ``given[i]``,
    ``from_ended[i, j]``, ``order[i, j]`` and ``one_way[i, j]``; objective ``average_jct``.
    """
    unit = _time_unit(instance)
    gpus, times = instance.gpu_demands.tolist(), (instance.running_times / unit).tolist()
    horizon = sum(times)
    model = pyo.ConcreteModel(name=instance.problem)
    model.time_unit = pyo.Param(initialize=unit)
    model.JOBS = Set(initialize=np.flatnonzero(instance.running_times > 0).tolist())
    model.PAIRS = Set(initialize=[(i, j) for i in model.JOBS for j in model.JOBS if i != j], dimen=2)
    model.starts = pyo.Var(model.JOBS, bounds=lambda model, j: (0, horizon - times[j]))
    model.first = pyo.Var(model.JOBS, bounds=lambda model, j: (0, gpus[j]))
    model.passed = pyo.Var(model.PAIRS, bounds=lambda model, i, j: (0, min(gpus[i], gpus[j])))
    model.after = pyo.Var(model.PAIRS, domain=pyo.Binary)

    def demands(model: pyo.ConcreteModel, j: int) -> object:
        return model.first[j] + pyo.quicksum(model.passed[i, j] for i in model.JOBS if i != j) == gpus[j]

    def given(model: pyo.ConcreteModel, i: int) -> object:
        given = [model.passed[i, j] for j in model.JOBS if i != j]
        return weighted_sum([1] * len(given), given) <= gpus[i]

    def from_ended(model: pyo.ConcreteModel, i: int, j: int) -> object:
        return model.passed[i, j] <= min(gpus[i], gpus[j]) * model.after[i, j]

    def order(model: pyo.ConcreteModel, i: int, j: int) -> object:
        return model.starts[j] >= model.starts[i] + times[i] - horizon * (1 - model.after[i, j])

    def one_way(model: pyo.ConcreteModel, i: int, j: int) -> object:
        return model.after[i, j] + model.after[j, i] <= 1 if i < j else pyo.Constraint.Skip

    model.demands = pyo.Constraint(model.JOBS, rule=demands)
    first = weighted_sum([1] * len(model.JOBS), model.first.values())
    model.capacity = pyo.Constraint(expr=first <= instance.capacity)
    model.given = pyo.Constraint(model.JOBS, rule=given)
    model.from_ended = pyo.Constraint(model.PAIRS, rule=from_ended)
    model.order = pyo.Constraint(model.PAIRS, rule=order)
    model.one_way = pyo.Constraint(model.PAIRS, rule=one_way)
    completions = pyo.quicksum(model.starts[j] + times[j] for j in model.JOBS)
    model.average_jct = pyo.Objective(expr=completions / instance.num_jobs, sense=pyo.minimize)
    return model


def read(model: pyo.ConcreteModel) -> BaseAllocationPlan:
    """Return the plan in which jobs begin in the order of ``after``, and of ``starts``, each as early as it can.

    Of jobs that are shorter than what a solver tolerates, the times alone do not tell which was first.
    """
    instance: BaseAllocation = model.instance
    starts = {job: pyo.value(model.starts[job]) for job in model.JOBS}
    before = {j: {i for i in model.JOBS if i != j and pyo.value(model.after[i, j]) > 0.5} for j in model.JOBS}
    order: list[int] = []
    while before:
        free = [job for job, others in before.items() if others.isdisjoint(before)]
        order.append(min(free or before, key=lambda job: starts[job]))
        del before[order[-1]]
    return instance.in_order(order)


def write(model: pyo.ConcreteModel, plan: BaseAllocationPlan) -> None:
    """Set the variables to ``plan``, as a point to start the search from."""
    instance: BaseAllocation = model.instance
    ends = plan.starts + instance.running_times
    idle, spare = instance.capacity, dict.fromkeys(model.JOBS, 0)
    for variable in model.passed.values():
        variable.set_value(0)
    for i, j in model.PAIRS:
        model.after[i, j].set_value(int(ends[i] <= plan.starts[j]))
    for job in sorted(model.JOBS, key=lambda job: plan.starts[job]):
        model.starts[job].set_value(float(plan.starts[job]) / model.time_unit.value, skip_validation=True)
        needed = int(instance.gpu_demands[job])
        for i in model.JOBS:
            taken = min(needed, spare[i]) if ends[i] <= plan.starts[job] else 0
            if taken:
                model.passed[i, job].set_value(taken)
                spare[i] -= taken
                needed -= taken
        model.first[job].set_value(min(needed, idle))
        idle -= min(needed, idle)
        spare[job] = int(instance.gpu_demands[job])


def _time_unit(instance: BaseAllocation) -> float:
    """Return a power of two, s, about a thousandth of the longest running time; dividing by it changes no digit."""
    return float(2.0 ** (np.ceil(np.log2(instance.running_times.max(initial=0.0) or 1.0)) - 10))


def bound(instance: BaseAllocation, value: float) -> float:
    """Return a bound on the average completion time, s, from one in time units."""
    return value * _time_unit(instance)


def in_model(instance: BaseAllocation, value: float) -> float:
    """Return an average completion time, s, in time units."""
    return value / _time_unit(instance)


def in_turn(instance: BaseAllocation) -> BaseAllocationPlan:
    """Return the best plan of three lists: by running time, by GPU-seconds, and as they stand (nobody overtakes)."""
    area = instance.gpu_demands * instance.running_times
    if instance.too_large.size:
        return BaseAllocationPlan(starts=np.zeros(instance.num_jobs))
    plans = [
        _from_list(instance, np.argsort(instance.running_times, kind="stable").tolist(), overtake=True),
        _from_list(instance, np.argsort(area, kind="stable").tolist(), overtake=True),
        _from_list(instance, list(range(instance.num_jobs)), overtake=False),
    ]
    return min(plans, key=instance.objective)


def _from_list(instance: BaseAllocation, order: list[int], *, overtake: bool) -> BaseAllocationPlan:
    """Start jobs from a list, at time 0 and at every completion: the first that fits, or the first if it does."""
    gpus, times = instance.gpu_demands.tolist(), instance.running_times.tolist()
    order = [job for job in order if times[job] > 0]
    # Of jobs with equal demands the first in the list fits first.
    lists: dict[int, deque[int]] = {}
    place = {job: number for number, job in enumerate(order)}
    for job in order:
        lists.setdefault(gpus[job] if overtake else 0, deque()).append(job)
    starts = np.zeros(instance.num_jobs)
    running: list[tuple[float, int]] = []
    now, idle = 0.0, instance.capacity
    while lists:
        fitting = [jobs for jobs in lists.values() if gpus[jobs[0]] <= idle]
        if fitting:
            first = min(fitting, key=lambda jobs: place[jobs[0]])
            job = first.popleft()
            lists = {demand: jobs for demand, jobs in lists.items() if jobs}
            starts[job] = now
            idle -= gpus[job]
            heappush(running, (now + times[job], gpus[job]))
        else:
            now = running[0][0]
            while running and running[0][0] <= now:
                idle += heappop(running)[1]
    return BaseAllocationPlan(starts=starts)


def mean_busy(instance: BaseAllocation) -> float:
    """Return a bound on the average completion time, s, of what jobs take alone and of the GPU-seconds before theirs.

    In the middle of its time, M_j, a job has half of its GPU-seconds a_j behind it.  No more than all GPUs are in use,
    so sum_{j in B} a_j M_j >= (sum_{j in B} a_j)^2 / (2 capacity) for any jobs B; under these limits, sum_j M_j is
    least where jobs with less to do come first.  They complete T_j / 2 later.
    """
    area = np.sort(instance.gpu_demands * instance.running_times)
    middles = float((np.cumsum(area) - area / 2).sum()) / max(1, instance.capacity)
    alone = float(instance.running_times.sum())
    return max(alone, middles + alone / 2) / instance.num_jobs


def too_large(instance: BaseAllocation) -> str | None:
    """Say that a job needs more GPUs than there are."""
    if not instance.too_large.size:
        return None
    job = instance.too_large[0]
    return f"job {job} needs {instance.gpu_demands[job]} GPUs, there are {instance.capacity}"


FORMULATION = Formulation(
    build=build,
    read=read,
    write=write,
    bound=bound,
    in_model=in_model,
    explain=too_large,
    trivial=in_turn,
    trivial_bound=mean_busy,
)
