"""Exact model of :class:`instances.aryl.two_job.ArylTwoJob`: the best of all whole splits.

The average completion time is neither convex nor concave in the split, so each split is valued
by itself (:meth:`ArylTwoJob.objective`) and a model of one row chooses among them:

    min   sum_x average_jct[x] * chosen[x]
    s.t.  sum_x chosen[x] == 1,   chosen[x] in {0, 1},

over the numbers x of GPUs that job 0 can start with.
"""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo

from formulations.engine.linear import weighted_sum
from formulations.engine.protocol import Formulation
from formulations.engine.sets import Set
from instances.aryl.two_job import ArylTwoJob, ArylTwoJobPlan
from instances.base import total

__all__ = ["FORMULATION", "build", "minima_do_not_fit", "read", "write"]


def build(instance: ArylTwoJob) -> pyo.ConcreteModel:
    """Pyomo model of a two-job instance.

    Set SPLITS; variables ``chosen[x]`` (binary); constraint ``one_split``; objective
    ``average_jct``.
    """
    model = pyo.ConcreteModel(name=instance.problem)
    model.SPLITS = Set(initialize=list(instance.splits))
    model.chosen = pyo.Var(model.SPLITS, domain=pyo.Binary)
    # Without a split, where the minima do not fit together, the row has no entries, and no solution.
    model.one_split = pyo.Constraint(expr=weighted_sum([1] * len(instance.splits), model.chosen.values()) == 1)
    averages = [instance.objective(instance.split(gpus)) for gpus in instance.splits]
    model.average_jct = pyo.Objective(expr=weighted_sum(averages, model.chosen.values()), sense=pyo.minimize)
    return model


def read(model: pyo.ConcreteModel) -> ArylTwoJobPlan:
    """Return the plan of the chosen split."""
    instance: ArylTwoJob = model.instance
    return instance.split(max(model.SPLITS, key=lambda gpus: pyo.value(model.chosen[gpus])))


def write(model: pyo.ConcreteModel, plan: ArylTwoJobPlan) -> None:
    """Set the variables to ``plan``, as a point to start the search from."""
    for gpus in model.SPLITS:
        model.chosen[gpus].set_value(int(plan.gpus[0] == gpus))


def minima_do_not_fit(instance: ArylTwoJob) -> str | None:
    """Say that the jobs' minima are more than all GPUs."""
    if instance.splits:
        return None
    least = total(instance.min_gpus)
    return f"min_gpus are {least} together, there are {instance.num_gpus} GPUs"


def first_split(instance: ArylTwoJob) -> ArylTwoJobPlan:
    """Return the plan with the fewest GPUs for job 0."""
    return instance.split(instance.splits[0])


def both_at_most(instance: ArylTwoJob) -> float:
    """Return the average completion time, s, if either job had as many GPUs as it can use."""
    return float((instance.workloads / np.minimum(instance.max_gpus, instance.num_gpus)).mean())


FORMULATION = Formulation(
    build=build,
    read=read,
    write=write,
    explain=minima_do_not_fit,
    trivial=first_split,
    trivial_bound=both_at_most,
)
