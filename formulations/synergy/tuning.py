"""Exact model of :class:`instances.synergy.tuning.Tuning`: configurations and places in one MILP.

Jobs that are alike (equal GPUs, configurations and fair throughput) are interchangeable, so they
are counted, not named.  For each class t of n_t jobs of g_t GPUs, each configuration c that gives
the class its fair throughput and that the server cap allows, and each server i,

    chosen[t, c]     jobs of the class that take the configuration (whole number),
    placed[t, c, i]  what server i carries of them (whole number): GPUs where the jobs may be
                     spread over servers, so that a job is u_t = g_t of them; else jobs, u_t = 1:

    max   sum_{t,c} W[t, c] * chosen[t, c]
    s.t.  one_config[t]:     sum_c chosen[t, c]  ==  n_t
          all_placed[t, c]:  sum_i placed[t, c, i]  ==  u_t * chosen[t, c]
          server_gpus[i]:    sum_{t,c} g_t / u_t * placed[t, c, i]        <=  G
          server_cpus[i]:    sum_{t,c} cpus[t, c] / u_t * placed[t, c, i]   <=  C
          server_memory[i]:  sum_{t,c} memory[t, c] / u_t * placed[t, c, i]  <=  M.

That a job's CPUs and memory follow its GPUs proportionally makes its GPUs alike, so the GPUs of a
class and configuration need no job to belong to: any g_t of them make one.  Configurations that
another one dominates are left out.  Summed over the servers, the limits are those of the paper's
first stage, so the relaxation is never weaker than Theorem 4.1's bound.

With a ``split_penalty`` p, the jobs of a class that one server can hold are counted apart where they
are on one server alone,

    alone[t, c, i]   jobs of the class and configuration that server i carries whole (whole number),

which count in the limits of server i with all that they take; all_placed[t, c] is then for
chosen[t, c] - sum_i alone[t, c, i] jobs, each of which is worth 1 - p of W[t, c].
"""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo

from formulations.engine.linear import refuse_large, weighted_sum
from formulations.engine.protocol import Formulation
from formulations.engine.sets import RangeSet, Set
from formulations.synergy.allocation import at_most, each_at_best, why_infeasible
from formulations.synergy.classes import equal_rows
from instances.base import total
from instances.schema import IntArray
from instances.synergy.sensitivity import CPU, MEMORY, THROUGHPUT
from instances.synergy.tuning import Tuning, TuningPlan

__all__ = ["FORMULATION", "as_jobs", "build", "explain", "read", "write"]


def build(instance: Tuning) -> pyo.ConcreteModel:
    """Pyomo model of a tuning instance.

    Sets CLASSES, SERVERS and CONFIGS (pairs of class and configuration); ``model.jobs[t]`` lists
    the jobs of a class and ``model.unit[t]`` is its u_t; variables ``chosen[t, c]`` and
    ``placed[t, c, i]``; constraints ``one_config[t]``, ``all_placed[t, c]``, ``server_gpus[i]``,
    ``server_cpus[i]`` and ``server_memory[i]``; objective ``throughput``.  With a ``split_penalty``
    also the variables ``alone[t, c, i]``.
    """
    model = pyo.ConcreteModel(name=instance.problem)
    model.jobs = equal_rows(
        [
            (gpus, table.tobytes(), fair)
            for gpus, table, fair in zip(
                instance.gpu_demands.tolist(), instance.configs, instance.fair_throughputs.tolist(), strict=True
            )
        ]
    )
    first = [jobs[0] for jobs in model.jobs]
    counts = [len(jobs) for jobs in model.jobs]
    gpus = instance.gpu_demands[first].tolist()
    model.gpu_demands = gpus
    model.unit = gpus if instance.allow_split else [1] * len(gpus)
    usable = [instance.usable_configs[job] for job in first]
    # Where no configuration may be chosen, those that may not keep the class's row from being empty.
    kept = [
        [c for c in instance.undominated[job].tolist() if enough[c] or not enough.any()]
        for job, enough in zip(first, usable, strict=True)
    ]
    placed = sum(map(len, kept)) * instance.num_servers
    refuse_large(instance, placed, "variables, num_servers for each kind of job and configuration")
    model.CLASSES = RangeSet(0, len(first) - 1)
    model.SERVERS = RangeSet(0, instance.num_servers - 1)
    model.CONFIGS = Set(initialize=[(t, c) for t, configs in enumerate(kept) for c in configs], dimen=2)
    model.chosen = pyo.Var(
        model.CONFIGS, domain=pyo.Integers, bounds=lambda _, t, c: (0, counts[t] if usable[t][c] else 0)
    )

    def most(model: pyo.ConcreteModel, t: int, c: int, i: int) -> tuple[int, int]:
        return (0, min(counts[t] * model.unit[t], instance.server_gpus * model.unit[t] // gpus[t]))

    model.placed = pyo.Var(model.CONFIGS * model.SERVERS, domain=pyo.Integers, bounds=most)

    penalised = [bool(instance.penalised[job] and instance.allow_split) for job in first]
    model.ALONE = Set(initialize=[pair for pair in model.CONFIGS if penalised[pair[0]]], dimen=2)
    model.alone = pyo.Var(
        model.ALONE * model.SERVERS,
        domain=pyo.Integers,
        bounds=lambda _, t, c, i: (0, min(counts[t], instance.server_gpus // gpus[t]) if usable[t][c] else 0),
    )

    def split(t: int, c: int) -> object:
        """Jobs that ``placed`` has, of a class and configuration."""
        if (t, c) not in model.ALONE:
            return model.chosen[t, c]
        return model.chosen[t, c] - pyo.quicksum(model.alone[t, c, i] for i in model.SERVERS)

    def one_config(model: pyo.ConcreteModel, t: int) -> object:
        return pyo.quicksum(model.chosen[t, c] for c in kept[t]) == counts[t]

    def all_placed(model: pyo.ConcreteModel, t: int, c: int) -> object:
        return pyo.quicksum(model.placed[t, c, i] for i in model.SERVERS) == model.unit[t] * split(t, c)

    model.one_config = pyo.Constraint(model.CLASSES, rule=one_config)
    model.all_placed = pyo.Constraint(model.CONFIGS, rule=all_placed)
    pairs = [*model.CONFIGS, *model.ALONE]
    entries = [instance.configs[first[t]][c] for t, c in pairs]
    units = np.array([*(model.unit[t] for t, _ in model.CONFIGS), *(1 for _ in model.ALONE)])
    on_server = [
        [*(model.placed[t, c, i] for t, c in model.CONFIGS), *(model.alone[t, c, i] for t, c in model.ALONE)]
        for i in model.SERVERS
    ]

    def limit(amounts: list[float], capacity: float) -> pyo.Constraint:
        per_unit = (np.array(amounts) / units).tolist()
        return pyo.Constraint(model.SERVERS, rule=lambda _, i: at_most(per_unit, on_server[i], capacity))

    model.server_gpus = limit([gpus[t] for t, _ in pairs], instance.server_gpus)
    model.server_cpus = limit([entry[CPU] for entry in entries], instance.server_cpus)
    model.server_memory = limit([entry[MEMORY] for entry in entries], instance.server_memory)
    worth = {(t, c): float(instance.configs[first[t]][c, THROUGHPUT]) for t, c in model.CONFIGS}
    kept_by_split = [1 - instance.split_penalty if penalised[t] else 1.0 for t, _ in model.CONFIGS]
    weights = [*(w * part for w, part in zip(worth.values(), kept_by_split, strict=True))]
    weights += [instance.split_penalty * worth[t, c] for t, c, _ in model.alone]
    variables = [*model.chosen.values(), *model.alone.values()]
    model.throughput = pyo.Objective(expr=weighted_sum(weights, variables), sense=pyo.maximize)
    return model


def read(model: pyo.ConcreteModel) -> TuningPlan:
    """Return the plan in the values of ``chosen`` and ``placed``; jobs stay on one server where that is possible."""
    num_jobs = sum(map(len, model.jobs))
    choices = np.full(num_jobs, -1)
    gpus = np.zeros((num_jobs, len(model.SERVERS)), np.int64)
    waiting = [iter(jobs) for jobs in model.jobs]
    for t, c in model.CONFIGS:
        on_server = np.array([round(pyo.value(model.placed[t, c, i])) for i in model.SERVERS])
        if (t, c) in model.ALONE:
            whole = [round(pyo.value(model.alone[t, c, i])) for i in model.SERVERS]
            on_server += model.unit[t] * np.array(whole, np.int64)
        rows = as_jobs(on_server, model.unit[t]) * (model.gpu_demands[t] // model.unit[t])
        for row, job in zip(rows, waiting[t], strict=False):
            choices[job], gpus[job] = c, row
    return TuningPlan(choices=choices, gpus=gpus)


def as_jobs(on_server: IntArray, unit: int) -> IntArray:
    """Units of each job on each server, one row for each job: whole jobs first, then the rest end to end."""
    whole = on_server // unit
    rows = np.zeros((-(-on_server.sum() // unit), len(on_server)), np.int64)
    rows[np.arange(whole.sum()), np.repeat(np.arange(len(on_server)), whole)] = unit
    rest = np.repeat(np.arange(len(on_server)), on_server % unit)
    split = int(whole.sum()) + np.arange(len(rest)) // unit
    np.add.at(rows, (split, rest), 1)
    return rows


def write(model: pyo.ConcreteModel, plan: TuningPlan) -> None:
    """Set the variables to ``plan``, as a point to start the search from."""
    for variable in [*model.chosen.values(), *model.placed.values(), *model.alone.values()]:
        variable.set_value(0)
    for t, jobs in enumerate(model.jobs):
        for job in jobs:
            c = int(plan.choices[job])
            if (t, c) not in model.CONFIGS:
                continue
            model.chosen[t, c].set_value(model.chosen[t, c].value + 1)
            homes = np.flatnonzero(plan.gpus[job]).tolist()
            if (t, c) in model.ALONE and len(homes) == 1:
                model.alone[t, c, homes[0]].set_value(model.alone[t, c, homes[0]].value + 1)
                continue
            for i in homes:
                units = int(plan.gpus[job, i]) * model.unit[t] // model.gpu_demands[t]
                model.placed[t, c, i].set_value(model.placed[t, c, i].value + units)


def explain(instance: Tuning) -> str | None:
    """Return the first reason in the data for which no plan exists."""
    wanted = int(total(instance.gpu_demands))
    if wanted > instance.num_gpus:
        return f"the jobs want {wanted} GPUs, the cluster has {instance.num_gpus}"
    larger = np.flatnonzero(instance.gpu_demands > instance.server_gpus)
    if larger.size and not instance.allow_split:
        job = larger[0]
        gpus = instance.gpu_demands[job]
        return f"job {job} wants {gpus} GPUs and may not be split, a server has {instance.server_gpus}"
    return why_infeasible(instance)


FORMULATION = Formulation(build=build, read=read, write=write, explain=explain, trivial_bound=each_at_best)
