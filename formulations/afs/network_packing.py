"""Exact model of :class:`instances.afs.network_packing.NetworkPacking`: one regulated share per job.

    min   sum_{i,v} |v - s_i| * takes[i, v]
    s.t.  sum_v takes[i, v] = 1                              one_share[i], for each job i
          sum_{i,v} v * takes[i, v] = sum_i s_i              total
          sum_{i,v} v * takes[i, v] <= all GPUs              gpus
          takes[i, v] in {0, 1}

over pairs of a job and a regulated share v with

    s_i - 2^g < v,   and   v <= 2^g  or  v < s_i + 2^g,   and, with the guarantee,   v >= x_i.

No other share is needed.  For let r be optimal.  Apart from multiples of 2^g (0 is one), its shares
are powers of two below 2^g whose sum is a multiple of 2^g, so that they can be put in groups of sum
2^g each.  Some job has less than it wanted and another more, unless the distance is 0.

1.  Let r_i > 2^g and r_i >= s_i + 2^g, and r_j < s_j.  Take 2^g from job i, which brings it nearer by
    2^g.  If r_j is a multiple of 2^g, give it 2^g, and otherwise double all shares of its group.
    This takes j, or all of its group, farther off by less than 2^g, so r was not optimal.
2.  Let r_i <= s_i - 2^g be a multiple of 2^g, and r_j > s_j.  Give job i 2^g.  If r_j is a multiple of
    2^g, take 2^g from it, and otherwise all shares from its group.  Again r was not optimal.
3.  Let r_i <= s_i - 2^g be a power of two.  Give job i 2^g and the rest of its group nothing, which is
    as good.  Repeating this ends, because job i is no longer such a job, and no other becomes one.

With the guarantee no share is below its floor, x_i > s_i - 2^g, and 1. keeps it so.
"""

from __future__ import annotations

import math

import numpy as np
import pyomo.environ as pyo

from formulations.engine.linear import POINT_TOLERANCE, weighted_sum
from formulations.engine.protocol import Formulation
from formulations.engine.sets import RangeSet, Set
from instances.afs.network_packing import NetworkPacking, NetworkPackingPlan
from instances.base import total
from instances.schema import IntArray

__all__ = ["FORMULATION", "build", "even", "explain", "grown", "nearest", "read", "write"]


def build(instance: NetworkPacking) -> pyo.ConcreteModel:
    """Pyomo model of a network packing instance.

    Sets JOBS and CANDIDATES (pairs of job and regulated share); variables ``takes[i, v]`` (binary);
    constraints ``one_share[i]``, ``total`` and, where more is wanted than there is, ``gpus``; objective ``distance``.
    """
    model = pyo.ConcreteModel(name=instance.problem)
    model.JOBS = RangeSet(0, instance.num_jobs - 1)
    values = [_useful(instance, i).tolist() for i in model.JOBS]
    model.CANDIDATES = Set(initialize=[(i, v) for i in model.JOBS for v in values[i]], dimen=2)
    model.takes = pyo.Var(model.CANDIDATES, domain=pyo.Binary)

    def one_share(model: pyo.ConcreteModel, i: int) -> object:
        return pyo.quicksum(model.takes[i, v] for v in values[i]) == 1

    model.one_share = pyo.Constraint(model.JOBS, rule=one_share)
    taken = list(model.takes.values())
    given, wanted = weighted_sum([v for _, v in model.takes], taken), total(instance.shares)
    model.total = pyo.Constraint(expr=given == wanted)
    if wanted > instance.num_gpus:
        model.gpus = pyo.Constraint(expr=given <= instance.num_gpus)
    distances = [abs(v - int(instance.shares[i])) for i, v in model.takes]
    model.distance = pyo.Objective(expr=weighted_sum(distances, taken), sense=pyo.minimize)
    return model


def _useful(instance: NetworkPacking, i: int) -> IntArray:
    """Regulated shares that job i may have; the module's docstring says why no others are needed."""
    v, share, machine = instance.candidates, instance.shares[i], instance.gpus_per_machine
    near = (v > share - machine) & ((v <= machine) | (v < share + machine))
    if share > instance.num_gpus:
        # More than there is: nothing is near, and no choice will do.
        near |= v == v[-1]
    return np.asarray(v[near & (v >= instance.floors[i])] if instance.floor_guarantee else v[near])


def read(model: pyo.ConcreteModel) -> NetworkPackingPlan:
    """Return the plan in the values of ``takes``."""
    regulated = np.zeros(len(model.JOBS), np.int64)
    for (i, v), variable in model.takes.items():
        if variable.value > 0.5:
            regulated[i] = v
    return NetworkPackingPlan(regulated=regulated)


def write(model: pyo.ConcreteModel, plan: NetworkPackingPlan) -> None:
    """Set the variables to ``plan``, as a point to start the search from."""
    for (i, v), variable in model.takes.items():
        variable.set_value(int(plan.regulated[i] == v))


def explain(instance: NetworkPacking) -> str | None:
    """Say that more GPUs are wanted than there are."""
    wanted = total(instance.shares)
    return f"{wanted} GPUs are wanted of {instance.num_gpus}" if wanted > instance.num_gpus else None


def grown(instance: NetworkPacking) -> NetworkPackingPlan:
    """Grow shares from their floors, as Proposition 2 does, each time the one that adds the least to the distance."""
    regulated, machine = instance.floors.copy(), instance.gpus_per_machine
    left = total(instance.shares) - int(regulated.sum())
    while left > 0:
        steps = np.minimum(regulated, machine)
        able = np.flatnonzero((steps > 0) & (steps <= left))
        if not able.size:
            # More is wanted than there is.
            break
        step, beyond = steps[able], (regulated - instance.shares)[able]
        added = np.abs(beyond + step) - np.abs(beyond)
        # Of several the largest step, of those the first.
        best = int(np.lexsort((-step, added))[0])
        regulated[able[best]] += step[best]
        left -= int(step[best])
    return NetworkPackingPlan(regulated=regulated)


def nearest(instance: NetworkPacking) -> float:
    """Bound the distance: no share is nearer to the one wanted than the nearest regulated share; and it is even."""
    values = instance.candidates
    above = values[np.minimum(np.searchsorted(values, instance.shares), len(values) - 1)]
    near = np.minimum(np.abs(above - instance.shares), instance.shares - instance.floors)
    return even(instance, float(near.sum()))


def even(instance: NetworkPacking, value: float) -> float:
    """Raise a bound to the next even number: what some jobs have more, others have less, since the sums are equal."""
    return 2.0 * math.ceil(value / 2 - POINT_TOLERANCE) if math.isfinite(value) else value


FORMULATION = Formulation(
    build=build, read=read, write=write, bound=even, explain=explain, trivial=grown, trivial_bound=nearest
)
