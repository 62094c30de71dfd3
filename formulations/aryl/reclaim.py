"""Exact model of :class:`instances.aryl.reclaim.Reclaim`: minimum k-union as a MILP.

    min   sum_j preempted[j]
    s.t.  preempted[j] >= returned[i]          for each job j and server i that hosts it
          sum_i returned[i] == demand
          returned[i] in {0, 1},  0 <= preempted[j] <= 1.

One row per pair of job and host (disaggregated) gives a far tighter relaxation than one row per
job would, and makes ``preempted`` whole by itself.  HiGHS is not asked to search this model, unless in a session or as
the second way: it sees too few servers at a time, and :mod:`formulations.aryl.branching` does it by parts.
"""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo

from formulations.aryl.branching import search
from formulations.engine.linear import weighted_sum
from formulations.engine.options import Options
from formulations.engine.protocol import Formulation
from formulations.engine.solution import Solution
from formulations.engine.solving import solve_one_model
from instances.aryl.reclaim import Reclaim, ReclaimPlan

__all__ = ["FORMULATION", "build", "first_servers", "read", "solve", "too_many", "write"]


def build(instance: Reclaim) -> pyo.ConcreteModel:
    """Pyomo model of a reclaim instance.

    Sets JOBS, SERVERS, HOSTS (pairs of job and server); variables ``returned[i]`` (binary) and
    ``preempted[j]``; constraints ``preemption[j, i]`` and ``demand``; objective
    ``preempted_jobs``.
    """
    model = pyo.ConcreteModel(name=instance.problem)
    model.JOBS = pyo.RangeSet(0, instance.num_jobs - 1)
    model.SERVERS = pyo.RangeSet(0, instance.num_servers - 1)
    pairs = np.argwhere(instance.hosts)
    model.HOSTS = pyo.Set(initialize=[(int(j), int(i)) for j, i in pairs], dimen=2)
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
    """The plan in the values of ``returned``."""
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
    """The plan that returns the first servers."""
    return ReclaimPlan(servers=np.arange(min(instance.demand, instance.num_servers)))


def solve(instance: Reclaim, options: Options) -> Solution:
    """Search by parts; where too many servers are demanded, the model says so."""
    return solve_one_model(instance, options) if too_many(instance) else search(instance, options)


def too_many(instance: Reclaim) -> str | None:
    """That more servers are demanded than there are."""
    if instance.demand <= instance.num_servers:
        return None
    return f"demand is {instance.demand} servers, there are {instance.num_servers}"


FORMULATION = Formulation(build=build, read=read, write=write, solve=solve, explain=too_many, trivial=first_servers)
