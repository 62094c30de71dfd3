"""Exact model of :class:`instances.aryl.reclaim.Reclaim`: minimum k-union as a MILP.

    min   sum_j preempted[j]
    s.t.  preempted[j] >= returned[i]          for each job j and server i that hosts it
          sum_i returned[i] == demand
          returned[i] in {0, 1},  0 <= preempted[j] <= 1.

One row per pair of job and host (disaggregated) gives a far tighter relaxation than one row per
job would, and makes ``preempted`` whole by itself.  HiGHS sees too few servers at a time to search it
soon; :mod:`formulations.methods.branching` divides the plans into parts instead.
"""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo

from formulations.engine.linear import weighted_sum
from formulations.engine.protocol import Formulation
from formulations.engine.sets import RangeSet, Set
from instances.aryl.reclaim import Reclaim, ReclaimPlan

__all__ = ["FORMULATION", "build", "first_servers", "read", "too_many", "write"]


def build(instance: Reclaim) -> pyo.ConcreteModel:
    """Pyomo model of a reclaim instance.

    Sets JOBS, SERVERS, HOSTS (pairs of job and server); variables ``returned[i]`` (binary) and
    ``preempted[j]``; constraints ``preemption[j, i]`` and ``demand``; objective
    ``preempted_jobs``.
    """
    model = pyo.ConcreteModel(name=instance.problem)
    model.JOBS = RangeSet(0, instance.num_jobs - 1)
    model.SERVERS = RangeSet(0, instance.num_servers - 1)
    pairs = np.argwhere(instance.hosts)
    model.HOSTS = Set(initialize=[(int(j), int(i)) for j, i in pairs], dimen=2)
    model.returned = pyo.Var(model.SERVERS, domain=pyo.Binary)
    model.preempted = pyo.Var(model.JOBS, bounds=(0, 1))

    def preemption(model: pyo.ConcreteModel, job: int, server: int) -> object:
        return model.preempted[job] >= model.returned[server]

    model.preemption = pyo.Constraint(model.HOSTS, rule=preemption)
    returned = weighted_sum([1] * instance.num_servers, model.returned.values())
    model.demand = pyo.Constraint(expr=returned == instance.demand)
    model.preempted_jobs = pyo.Objective(expr=pyo.quicksum(model.preempted.values()), sense=pyo.minimize)
    return model


def read(model: pyo.ConcreteModel) -> ReclaimPlan:
    """Return the plan in the values of ``returned``."""
    servers = [server for server in model.SERVERS if pyo.value(model.returned[server]) > 0.5]
    return ReclaimPlan(servers=np.array(servers, np.int64))


def write(model: pyo.ConcreteModel, plan: ReclaimPlan) -> None:
    """Set the variables to ``plan``, as a point to start the search from."""
    chosen = set(plan.servers.tolist())
    for server in model.SERVERS:
        model.returned[server].set_value(int(server in chosen))
    for job in model.JOBS:
        model.preempted[job].set_value(0.0)
    for job, server in model.HOSTS:
        if server in chosen:
            model.preempted[job].set_value(1.0)


def first_servers(instance: Reclaim) -> ReclaimPlan:
    """Return the plan that returns the first servers."""
    return ReclaimPlan(servers=np.arange(min(instance.demand, instance.num_servers)))


def too_many(instance: Reclaim) -> str | None:
    """Say that more servers are demanded than there are."""
    if instance.demand <= instance.num_servers:
        return None
    return f"demand is {instance.demand} servers, there are {instance.num_servers}"


FORMULATION = Formulation(build=build, read=read, write=write, explain=too_many, trivial=first_servers)
