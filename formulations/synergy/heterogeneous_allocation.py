"""Exact model of :class:`instances.synergy.heterogeneous_allocation.HeterogeneousAllocation`.

Synergy's program (22)-(26), with a limit on the GPUs of each machine type:

    max   sum_{j,c} W[j, c] * chosen[j, c]
    s.t.  cpus[i]:    sum_{j,c of type i} cpus[j, c]   * chosen[j, c]  <=  C_i
          memory[i]:  sum_{j,c of type i} memory[j, c] * chosen[j, c]  <=  M_i
          gpus[i]:    sum_{j,c of type i} gpu_demands[j] * chosen[j, c]  <=  G_i
          one_config[j]:       sum_c chosen[j, c]  ==  1
          fair_throughput[j]:  sum_c W[j, c] * chosen[j, c]  >=  W_fair[j]
          chosen[j, c] in {0, 1}.

A configuration belongs to a machine type, so choosing one chooses the type.  Configurations that
another one of the same type dominates are left out.
"""

from __future__ import annotations

import pyomo.environ as pyo

from formulations.engine.protocol import Formulation
from formulations.synergy.allocation import at_most, choices_model, read_choices
from instances.synergy.allocation import SynergyAllocationPlan
from instances.synergy.heterogeneous_allocation import HeterogeneousAllocation
from instances.synergy.sensitivity import CPU, MEMORY

__all__ = ["FORMULATION", "build", "read"]


def build(instance: HeterogeneousAllocation) -> pyo.ConcreteModel:
    """Pyomo model of a heterogeneous allocation instance.

    Sets JOBS, CONFIGS (pairs of job and configuration) and TYPES; variables ``chosen[j, c]``
    (binary); constraints ``cpus[i]``, ``memory[i]``, ``gpus[i]``, ``one_config[j]`` and
    ``fair_throughput[j]``; objective ``throughput``.
    """
    model = choices_model(instance, pyo.Binary)
    model.TYPES = pyo.RangeSet(0, instance.num_types - 1)
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
    """The plan in the values of ``chosen``."""
    return SynergyAllocationPlan(choices=read_choices(model))


FORMULATION = Formulation(build=build, read=read)
