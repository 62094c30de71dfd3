"""Exact model of :class:`instances.afs.two_job.AfsTwoJob`: one choice of two.

    min   sum_j average_jct[j] * receives[j]
    s.t.  sum_j receives[j] = 1,   receives[j] in {0, 1}

with ``average_jct[j]`` the average completion time if job j receives the GPU, evaluated by the
instance.  A choice with which a job never completes is left out (``completes``).  It is stated as a
model so that it can be solved and extended like every other problem.
"""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo

from formulations.engine.linear import weighted_sum
from formulations.engine.protocol import Formulation
from formulations.engine.sets import RangeSet
from instances.afs.two_job import AfsTwoJob, AfsTwoJobPlan

__all__ = ["FORMULATION", "build", "explain", "read", "write"]


def build(instance: AfsTwoJob) -> pyo.ConcreteModel:
    """Pyomo model of a two-job instance.

    Set JOBS; variables ``receives[j]`` (binary); constraints ``one_receiver`` and ``completes[j]``;
    objective ``average_jct``, s.
    """
    model = pyo.ConcreteModel(name=instance.problem)
    model.JOBS = RangeSet(0, 1)
    model.receives = pyo.Var(model.JOBS, domain=pyo.Binary)
    model.one_receiver = pyo.Constraint(expr=pyo.quicksum(model.receives.values()) == 1)
    jcts = np.array([instance.objective(AfsTwoJobPlan(receiver=job)) for job in model.JOBS])
    endless = np.flatnonzero(np.isinf(jcts)).tolist()
    model.completes = pyo.Constraint(endless, rule=lambda model, job: model.receives[job] == 0)
    costs = np.where(np.isinf(jcts), 0.0, jcts)
    model.average_jct = pyo.Objective(expr=weighted_sum(costs, model.receives.values()), sense=pyo.minimize)
    return model


def read(model: pyo.ConcreteModel) -> AfsTwoJobPlan:
    """Return the plan in the values of ``receives``."""
    return AfsTwoJobPlan(receiver=int(model.receives[1].value > 0.5))


def write(model: pyo.ConcreteModel, plan: AfsTwoJobPlan) -> None:
    """Set the variables to ``plan``, as a point to start the search from."""
    for job, variable in model.receives.items():
        variable.set_value(int(job == plan.receiver))


def explain(instance: AfsTwoJob) -> str | None:
    """Say which job never completes, whoever receives the GPU."""
    ends = np.array([instance.completions(AfsTwoJobPlan(receiver=job)) for job in (0, 1)])
    never = np.flatnonzero(np.isinf(ends).all(axis=0)).tolist()
    return f"job {never[0]} runs neither with the free GPU nor without it" if never else None


def one_that_completes(instance: AfsTwoJob) -> AfsTwoJobPlan:
    """Return the plan that gives the GPU to job 0, or to job 1 where job 0 leaves it without one for good."""
    plan = AfsTwoJobPlan(receiver=0)
    return AfsTwoJobPlan(receiver=1) if instance.violations(plan) else plan


def both_receive(instance: AfsTwoJob) -> float:
    """Return the average completion time, s, if either job had the free GPU, and what it has alone if that is more."""
    rates = np.maximum(instance.throughputs[:, 1], instance.left_alone)
    return float(np.divide(instance.work, rates, out=np.zeros(2), where=instance.work > 0).mean())


FORMULATION = Formulation(
    build=build, read=read, write=write, explain=explain, trivial=one_that_completes, trivial_bound=both_receive
)
