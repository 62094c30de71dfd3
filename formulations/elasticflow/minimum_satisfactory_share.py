"""Exact models of :class:`instances.elasticflow.minimum_satisfactory_share.MinimumSatisfactoryShare`.

Two, with the same optimum wherever both apply.  Slot by slot, for any curve:

    min   sum_{i,t,g} g * chosen[i, t, g]
    s.t.  sum_g chosen[i, t, g] <= 1                          for each job i and slot t < D_i
          sum_{t,g} T_i(g) * chosen[i, t, g] >= M_i           for each job i
          sum_{i,g} g * chosen[i, t, g] <= G                  for each slot t
          sum_{t,g} g * chosen[i, t, g] >= alone_i            for each job i
          chosen[i, t, g] in {0, 1},

where alone_i are the GPU-slots of job i with the cluster to itself: every plan obeys those rows,
and they lift the relaxation.

By interval between deadlines, for concave curves, whose steps s have width w_is and gain
Delta_is for each GPU:

    min   sum_{i,k,s} gpu_slots[i, k, s]
    s.t.  sum_{k,s} Delta_is * gpu_slots[i, k, s] >= M_i      for each job i
          sum_{i,s} gpu_slots[i, k, s] <= G * length_k        for each interval k
          0 <= gpu_slots[i, k, s] <= w_is * length_k, whole.

The size of the second does not depend on the horizon.
"""

from __future__ import annotations

import pyomo.environ as pyo

from formulations.elasticflow.flow import why_infeasible
from formulations.elasticflow.greedy import least_gpu_slots, one_pass
from formulations.elasticflow.sharing import (
    add_gpu_time,
    add_shares_alone,
    add_work,
    aggregated,
    read,
    time_indexed,
    write_gpus,
)
from formulations.engine.protocol import Formulation
from instances.elasticflow.minimum_satisfactory_share import MinimumSatisfactoryShare
from instances.elasticflow.sharing import SlotPlan

__all__ = [
    "FORMULATION",
    "build",
    "build_aggregated",
    "build_time_indexed",
    "read",
    "write",
]


def build(instance: MinimumSatisfactoryShare) -> pyo.ConcreteModel:
    """Pyomo model of an instance: aggregated when all curves are concave, else time-indexed."""
    return build_aggregated(instance) if instance.concave else build_time_indexed(instance)


def build_time_indexed(instance: MinimumSatisfactoryShare) -> pyo.ConcreteModel:
    """Return the model slot by slot, for any curve.

    Sets JOBS, SLOTS, RUNS (job and slot), CHOICES (job, slot, GPUs); variables ``chosen[i, t, g]``
    (binary); constraints ``one_count[i, t]``, ``work[i]``, ``alone[i]`` and ``capacity[t]``;
    objective ``gpu_time``.
    """
    model = pyo.ConcreteModel(name=instance.problem)
    terms = time_indexed(model, instance)
    add_work(model, instance, terms)
    add_shares_alone(model, instance, terms)
    add_gpu_time(model, terms)
    return model


def build_aggregated(instance: MinimumSatisfactoryShare) -> pyo.ConcreteModel:
    """Return the model by interval, for concave curves.

    Sets JOBS, INTERVALS, STEPS (job, interval, step of the curve); parameter ``length[k]``;
    variables ``gpu_slots[i, k, s]`` (integer); constraints ``work[i]`` and ``capacity[k]``;
    objective ``gpu_time``.

    Raises
    ------
    ValueError
        When a curve is not concave.
    """
    model = pyo.ConcreteModel(name=instance.problem)
    terms = aggregated(model, instance)
    add_work(model, instance, terms)
    add_gpu_time(model, terms)
    return model


def write(model: pyo.ConcreteModel, plan: SlotPlan) -> None:
    """Set the variables to ``plan``, as a point to start the search from."""
    write_gpus(model, plan.gpus)


FORMULATION = Formulation(
    build=build,
    read=read,
    write=write,
    explain=why_infeasible,
    explain_first=False,
    trivial=one_pass,
    trivial_bound=least_gpu_slots,
)
