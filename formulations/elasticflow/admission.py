"""Exact model of :class:`instances.elasticflow.admission.Admission`: which jobs to admit, as a MILP.

    max   sum_i admitted[i]
    s.t.  what job i does in time >= M_i * admitted[i]        for each job i
          GPU-slots taken <= those there are                  for each slot or interval
          admitted[i] in {0, 1},

with the GPUs slot by slot for any curves, or by interval between deadlines for concave ones; both
are those of :mod:`formulations.elasticflow.sharing`.  Every plan obeys some rows more, and the
relaxation without them does not:

          GPU-slots job i takes >= alone_i * admitted[i]         for each job i,
          sum_g chosen[i, t, g] <= admitted[i]                   slot by slot, or
          gpu_slots[i, k, s] <= w_is * length_k * admitted[i]    by interval,

where alone_i are the job's GPU-slots with the cluster to itself.  What is admitted by half gets half
of each step of its curve at most, and not the steepest alone.
"""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo

from formulations.elasticflow.greedy import could_be_served, served_most
from formulations.elasticflow.sharing import (
    Terms,
    add_shares_alone,
    add_work,
    aggregated,
    read_gpus,
    time_indexed,
    write_gpus,
)
from formulations.engine.protocol import Formulation
from instances.elasticflow.admission import Admission, AdmissionPlan

__all__ = ["FORMULATION", "build", "build_aggregated", "build_time_indexed", "first_come", "most", "read", "write"]


def build(instance: Admission) -> pyo.ConcreteModel:
    """Pyomo model of an instance: aggregated when all curves are concave, else time-indexed."""
    return build_aggregated(instance) if instance.concave else build_time_indexed(instance)


def build_time_indexed(instance: Admission) -> pyo.ConcreteModel:
    """Return the model slot by slot, for any curve.

    Sets JOBS, SLOTS, RUNS (job and slot), CHOICES (job, slot, GPUs); variables ``admitted[i]`` and
    ``chosen[i, t, g]`` (binary); constraints ``one_count[i, t]``, ``work[i]``, ``alone[i]`` and
    ``capacity[t]``; objective ``jobs_admitted``.
    """
    model = pyo.ConcreteModel(name=instance.problem)
    _admit(model, instance, time_indexed(model, instance, admitting=True))
    return model


def build_aggregated(instance: Admission) -> pyo.ConcreteModel:
    """Return the model by interval, for concave curves.

    Sets JOBS, INTERVALS, STEPS (job, interval, step of the curve); parameter ``length[k]``;
    variables ``admitted[i]`` (binary) and ``gpu_slots[i, k, s]`` (integer); constraints
    ``only_admitted[i, k, s]``, ``work[i]``, ``alone[i]`` and ``capacity[k]``; objective ``jobs_admitted``.

    Raises
    ------
    ValueError
        When a curve is not concave.
    """
    model = pyo.ConcreteModel(name=instance.problem)
    _admit(model, instance, aggregated(model, instance, admitting=True))
    return model


def _admit(model: pyo.ConcreteModel, instance: Admission, terms: list[Terms]) -> None:
    add_work(model, instance, terms, admitted=model.admitted)
    add_shares_alone(model, instance, terms, admitted=model.admitted)
    model.jobs_admitted = pyo.Objective(expr=pyo.quicksum(model.admitted.values()), sense=pyo.maximize)


def read(model: pyo.ConcreteModel) -> AdmissionPlan:
    """Return the plan in the values of ``admitted`` and of ``chosen`` or ``gpu_slots``."""
    admitted = np.array([model.admitted[job].value > 0.5 for job in model.JOBS])
    return AdmissionPlan(admitted=admitted, gpus=read_gpus(model))


def write(model: pyo.ConcreteModel, plan: AdmissionPlan) -> None:
    """Set the variables to ``plan``, as a point to start the search from."""
    for job, admitted in enumerate(plan.admitted.tolist()):
        model.admitted[job].set_value(int(admitted))
    write_gpus(model, plan.gpus)


def first_come(instance: Admission) -> AdmissionPlan:
    """Return the plan that admits what is served in one pass over the jobs, or one by one."""
    gpus, admitted = served_most(instance, instance.arrival_order)
    return AdmissionPlan(admitted=admitted, gpus=gpus)


def most(instance: Admission) -> float:
    """No plan admits more jobs than could be done with the cluster to themselves."""
    return float(could_be_served(instance).sum())


FORMULATION = Formulation(build=build, read=read, write=write, trivial=first_come, trivial_bound=most)
