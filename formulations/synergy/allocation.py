"""Exact model of :class:`instances.synergy.allocation.SynergyAllocation`: Synergy's program (1)-(5).

    max   sum_{j,c} W[j, c] * chosen[j, c]                                            (1)
    s.t.  cpus:     sum_{j,c} cpus[j, c]   * chosen[j, c]  <=  C                      (2)
          memory:   sum_{j,c} memory[j, c] * chosen[j, c]  <=  M                      (3)
          one_config[j]:       sum_c chosen[j, c]  ==  1                              (4)
          fair_throughput[j]:  sum_c W[j, c] * chosen[j, c]  >=  W_fair[j]            (5)
          chosen[j, c] in {0, 1},  0 where the server cap (section 6) does not allow the configuration.

Configurations that another one dominates are left out; this changes neither the optimum nor the
value of the relaxation.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyomo.environ as pyo

from formulations.engine.linear import weighted_sum
from formulations.engine.protocol import Formulation
from formulations.engine.sets import RangeSet, Set
from instances.base import widened
from instances.schema import IntArray
from instances.synergy.allocation import SynergyAllocation, SynergyAllocationPlan
from instances.synergy.heterogeneous_allocation import HeterogeneousAllocation
from instances.synergy.sensitivity import CPU, MEMORY, THROUGHPUT
from instances.synergy.tuning import Tuning

__all__ = [
    "FORMULATION",
    "at_most",
    "build",
    "choices_model",
    "each_at_best",
    "no_configuration",
    "proportional",
    "read",
    "read_choices",
    "relaxation",
    "why_infeasible",
]


def build(instance: SynergyAllocation) -> pyo.ConcreteModel:
    """Pyomo model of an allocation instance.

    Sets JOBS and CONFIGS (pairs of job and configuration); variables ``chosen[j, c]`` (binary);
    constraints ``cpus``, ``memory``, ``one_config[j]`` and ``fair_throughput[j]``; objective
    ``throughput``.
    """
    model = choices_model(instance, pyo.Binary)
    variables = list(model.chosen.values())
    entries = [instance.configs[job][config] for job, config in model.CONFIGS]
    cpus, memory = instance.capacity
    model.cpus = pyo.Constraint(expr=at_most([e[CPU] for e in entries], variables, cpus))
    model.memory = pyo.Constraint(expr=at_most([e[MEMORY] for e in entries], variables, memory))
    return model


def relaxation(instance: SynergyAllocation) -> pyo.ConcreteModel:
    """Return the linear relaxation of :func:`build`: Theorem 4.1's bound on any assignment to servers.

    The same model with ``chosen`` continuous; solve it with :func:`formulations.solve`, whose
    ``bound`` is the theorem's.
    """
    model = build(instance)
    for variable in model.chosen.values():
        variable.domain = pyo.NonNegativeReals
    return model


def at_most(amounts: list[float], variables: list[Any], capacity: float) -> Any:
    """Return the row ``amounts @ variables <= capacity``, as wide as the judge's tolerance makes it."""
    return weighted_sum(amounts, variables) <= widened(amounts, capacity)


def choices_model(instance: SynergyAllocation | HeterogeneousAllocation, domain: Any) -> pyo.ConcreteModel:
    """Make configurations, (1), (4) and (5), for a model that adds its own capacities."""
    model = pyo.ConcreteModel(name=instance.problem)
    model.JOBS = RangeSet(0, instance.num_jobs - 1)
    kept = [rows.tolist() for rows in instance.undominated]
    model.CONFIGS = Set(initialize=[(job, c) for job, rows in enumerate(kept) for c in rows], dimen=2)
    allowed = instance.allowed_configs
    model.chosen = pyo.Var(model.CONFIGS, domain=domain, bounds=lambda _, job, c: (0, 1 if allowed[job][c] else 0))

    def one_config(model: pyo.ConcreteModel, job: int) -> object:
        return pyo.quicksum(model.chosen[job, c] for c in kept[job]) == 1

    def fair_throughput(model: pyo.ConcreteModel, job: int) -> object:
        table, rows = instance.configs[job], kept[job]
        # A configuration that is fair but for rounding counts as fair here too.
        fair = min([instance.fair_throughputs[job], *table[instance.fair_configs[job], THROUGHPUT]])
        worth = [table[c, THROUGHPUT] for c in rows]
        return weighted_sum(worth, [model.chosen[job, c] for c in rows]) >= float(fair)

    model.one_config = pyo.Constraint(model.JOBS, rule=one_config)
    model.fair_throughput = pyo.Constraint(model.JOBS, rule=fair_throughput)
    worth = [instance.configs[job][c, THROUGHPUT] for job, rows in enumerate(kept) for c in rows]
    model.throughput = pyo.Objective(expr=weighted_sum(worth, model.chosen.values()), sense=pyo.maximize)
    return model


def read(model: pyo.ConcreteModel) -> SynergyAllocationPlan:
    """Return the plan in the values of ``chosen``."""
    return SynergyAllocationPlan(choices=read_choices(model))


def read_choices(model: pyo.ConcreteModel) -> IntArray:
    """(n,) int: the configuration of each job with the greatest value of ``chosen``."""
    choices = np.zeros(len(model.JOBS), np.int64)
    most = np.full(len(model.JOBS), -np.inf)
    for (job, config), variable in model.chosen.items():
        value = pyo.value(variable)
        if value > most[job]:
            choices[job], most[job] = config, value
    return choices


def proportional(instance: SynergyAllocation) -> SynergyAllocationPlan:
    """Return the plan that gives every job the best of its GPU-proportional share."""
    return SynergyAllocationPlan(choices=instance.proportional_choices)


def why_infeasible(instance: SynergyAllocation | Tuning) -> str | None:
    """Return the first reason in the data why there is no plan: a job on its own, or the cluster's CPUs or memory."""
    capacity = {
        "CPU cores": instance.num_servers * instance.server_cpus,
        "GB": instance.num_servers * instance.server_memory,
    }
    unusable = no_configuration(instance)
    if unusable:
        return unusable
    for column, (unit, there) in enumerate(capacity.items()):
        least = [
            float(table[usable, column].min())
            for table, usable in zip(instance.configs, instance.usable_configs, strict=True)
        ]
        if sum(least) > widened(least, there):
            return (
                f"with their fair throughputs the jobs need at least {sum(least):g} {unit}, the cluster has {there:g}"
            )
    return None


def no_configuration(instance: SynergyAllocation | Tuning | HeterogeneousAllocation) -> str | None:
    """Say which job has no configuration that it may take, and why; None when all have one."""
    jobs = zip(instance.fair_configs, instance.usable_configs, instance.fair_throughputs.tolist(), strict=True)
    for job, (fair, usable, throughput) in enumerate(jobs):
        if not usable.any():
            where = " within one server's CPU cores and memory" if fair.any() else ""
            return f"job {job} has no configuration{where} that gives it its fair throughput of {throughput:g}"
    return None


def each_at_best(instance: SynergyAllocation | Tuning | HeterogeneousAllocation) -> float:
    """Return the throughput of all jobs if each had the fastest of the configurations that it may take."""
    tables = zip(instance.configs, instance.usable_configs, strict=True)
    return math.fsum(table[:, THROUGHPUT].max(where=usable, initial=0.0) for table, usable in tables)


FORMULATION = Formulation(
    build=build, read=read, trivial=proportional, trivial_bound=each_at_best, explain=why_infeasible
)
