"""Worst cases of Algorithm 1 on :class:`instances.elasticflow.minimum_satisfactory_share.MinimumSatisfactoryShare`.

Jobs have concave curves that do not fall, and are numbered by their deadlines.  Algorithm 1 serves a job in steps:
level 1 in its slots from the last one backwards, then level 2, and so on, wherever a GPU is free; it stops at the step
with which the work is done.  Let x be what the job holds then, x' what it held one step before, and y what the other
plan gives it. There is work that the job ends with x for and that y does as well, if and only if its curve T has

    sum_t T(x'(t))  <  sum_t T(y(t)),        T strictly rising at the last step.

A concave curve is a sum of curves min(., k), so some k has sum_t min(x'(t), k) < sum_t min(y(t), k), and with it the
curve W min(., k) + (.) will do where W counts all GPU-slots and one more.  So nothing but whole numbers is to be
chosen: deadlines, steps, k, and y, of which the GPUs beyond k are of no use:

    y(t) <= k,     sum_t y(t)  >=  sum_t min(x(t), k) + 1     if a step was above level k
                   sum_t y(t)  >=  sum_t x(t)                 if none was.

``progressive_filling`` is the set that Algorithm 1 serves with the most GPU time beside that of the other plan.
:func:`turned_away` are sets of which it serves all but the last job, which its free GPUs f cannot do though y does:
``sum_t y(t) >= sum_t min(f(t), k) + 1``; the difference is how much work is missing, in GPU-slots of that job.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo

from formulations.worst_case.proving import InstanceClass, WorstCaseModel
from instances.arguments import Count, checked
from instances.elasticflow.minimum_satisfactory_share import MinimumSatisfactoryShare

__all__ = ["WORST_CASES", "progressive_filling", "read", "turned_away"]


@checked
def progressive_filling(*, num_slots: Count, num_jobs: Count = 3, num_gpus: Count = 2) -> InstanceClass:
    """Jobs on concave curves that Algorithm 1 serves, all with some work."""
    words = (
        f"{num_jobs} jobs with work, deadlines of 1 to {num_slots} slots, {num_gpus} GPUs, throughputs real, concave "
        "and not falling; Algorithm 1 finds a plan"
    )
    return InstanceClass(words, (_served(num_jobs, slots, num_gpus) for slots in [num_slots]))


def turned_away(*, num_jobs: int, num_slots: int, num_gpus: int, later: bool = False) -> pyo.ConcreteModel:
    """Return the most work, ``missing``, GPU-slots, that the last of feasible jobs lacks when Algorithm 1 comes to it.

    Where that is 0, Algorithm 1 finds a plan for all feasible sets of so many jobs on concave curves that do not
    fall, up to this deadline, on so many GPUs.  :func:`read` has the jobs.  Of equal deadlines the lower number goes
    first, as in the heuristic; where the last job's is ``later`` than all others, it is last however ties are broken.
    """
    model = _jobs(num_jobs, num_slots, num_gpus)
    last = num_jobs - 1
    model.is_last = pyo.Constraint(expr=model.in_time[last, num_slots - 1] == 1)
    model.gets_nothing = pyo.Constraint(expr=pyo.quicksum(model.has[last, t, v] for t, v in model.PLACES) == 0)
    if later:
        others = list(model.JOBS)[:-1]
        model.is_later = pyo.Constraint(others, rule=lambda m, i: m.in_time[i, num_slots - 1] == 0)
    model.missing = pyo.Var(domain=pyo.Integers, bounds=(0, num_slots * num_gpus))

    def is_missing(model: pyo.ConcreteModel, k: int) -> Any:
        fits = pyo.quicksum(model.free[last, t, v] for t, v in model.PLACES if v <= k)
        return model.missing <= _given(model, last) - fits + num_slots * num_gpus * (1 - model.parallel[last, k])

    model.is_missing = pyo.Constraint(model.LEVELS, rule=is_missing)
    model.most_missing = pyo.Objective(expr=model.missing, sense=pyo.maximize)
    return model


def _served(num_jobs: int, num_slots: int, num_gpus: int) -> pyo.ConcreteModel:
    model = _jobs(num_jobs, num_slots, num_gpus)
    last = num_jobs - 1
    model.last_is_served = pyo.Constraint(model.LEVELS, rule=lambda m, k: _does_the_work(m, last, k))
    model.last_steps = pyo.Constraint(expr=pyo.quicksum(model.has[last, t, v] for t, v in model.PLACES) >= 1)
    model.heuristic_value = pyo.Expression(expr=pyo.quicksum(model.has.values()))
    model.witness_value = pyo.Expression(expr=pyo.quicksum(model.witness.values()))
    return model


def _jobs(num_jobs: int, num_slots: int, num_gpus: int) -> pyo.ConcreteModel:
    """Jobs by deadline, all but the last served by Algorithm 1, and another plan for all of them."""
    model = pyo.ConcreteModel(name=f"Algorithm 1 on {num_jobs} jobs, {num_slots} slots, {num_gpus} GPUs")
    model.num_gpus = num_gpus
    model.JOBS = pyo.RangeSet(0, num_jobs - 1)
    model.SLOTS = pyo.RangeSet(0, num_slots - 1)
    model.LEVELS = pyo.RangeSet(1, num_gpus)
    model.PLACES = model.SLOTS * model.LEVELS
    # In the order of Algorithm 1's steps: by level, slots from the last one backwards.
    steps = [(t, level) for level in model.LEVELS for t in reversed(model.SLOTS)]
    model.in_time = pyo.Var(model.JOBS, model.SLOTS, domain=pyo.Binary)
    model.free = pyo.Var(model.JOBS, model.PLACES, domain=pyo.Binary)
    model.reached = pyo.Var(model.JOBS, model.PLACES, domain=pyo.Binary)
    model.has = pyo.Var(model.JOBS, model.PLACES, domain=pyo.Binary)
    model.witness = pyo.Var(model.JOBS, model.SLOTS, domain=pyo.Integers, bounds=(0, num_gpus))
    model.parallel = pyo.Var(model.JOBS, model.LEVELS, domain=pyo.Binary)
    model.above = pyo.Var(model.JOBS, model.LEVELS, domain=pyo.Binary)

    model.some_time = pyo.Constraint(model.JOBS, rule=lambda m, i: m.in_time[i, 0] == 1)
    model.until_deadline = pyo.Constraint(
        model.JOBS, list(model.SLOTS)[1:], rule=lambda m, i, t: m.in_time[i, t] <= m.in_time[i, t - 1]
    )
    earlier = list(model.JOBS)[1:]
    model.by_deadline = pyo.Constraint(
        earlier, model.SLOTS, rule=lambda m, i, t: m.in_time[i - 1, t] <= m.in_time[i, t]
    )

    def left(model: pyo.ConcreteModel, job: int, t: int) -> Any:
        taken = pyo.quicksum(model.has[other, t, level] for other in range(job) for level in model.LEVELS)
        return pyo.quicksum(model.free[job, t, level] for level in model.LEVELS) == num_gpus - taken

    model.left = pyo.Constraint(model.JOBS, model.SLOTS, rule=left)
    above_first = [(t, level) for t, level in model.PLACES if level > 1]
    model.free_in_order = pyo.Constraint(
        model.JOBS, above_first, rule=lambda m, i, t, v: m.free[i, t, v] <= m.free[i, t, v - 1]
    )
    model.steps_in_order = pyo.Constraint(
        model.JOBS,
        range(1, len(steps)),
        rule=lambda m, i, row: m.reached[(i, *steps[row])] <= m.reached[(i, *steps[row - 1])],
    )

    def steps_up(model: pyo.ConcreteModel, row: int, job: int, t: int, level: int) -> Any:
        causes = [model.reached[job, t, level], model.free[job, t, level], model.in_time[job, t]]
        made = model.has[job, t, level]
        return made >= sum(causes) - 2 if row == 3 else made <= causes[row]

    model.steps_up = pyo.Constraint(range(4), model.JOBS, model.PLACES, rule=steps_up)

    model.one_curve = pyo.Constraint(
        model.JOBS, rule=lambda m, i: pyo.quicksum(m.parallel[i, k] for k in m.LEVELS) == 1
    )
    model.of_use = pyo.Constraint(
        model.JOBS,
        model.SLOTS,
        rule=lambda m, i, t: m.witness[i, t] <= pyo.quicksum(k * m.parallel[i, k] for k in m.LEVELS),
    )
    model.witness_in_time = pyo.Constraint(
        model.JOBS, model.SLOTS, rule=lambda m, i, t: m.witness[i, t] <= num_gpus * m.in_time[i, t]
    )
    model.witness_fits = pyo.Constraint(
        model.SLOTS, rule=lambda m, t: pyo.quicksum(m.witness[i, t] for i in m.JOBS) <= num_gpus
    )
    beyond = [(t, level, k) for t, level in model.PLACES for k in model.LEVELS if level > k]
    model.is_above = pyo.Constraint(model.JOBS, beyond, rule=lambda m, i, t, v, k: m.above[i, k] >= m.has[i, t, v])
    served = list(model.JOBS)[:-1]
    model.has_work = pyo.Constraint(served, rule=lambda m, i: pyo.quicksum(m.has[i, t, v] for t, v in m.PLACES) >= 1)
    model.does_the_work = pyo.Constraint(served, model.LEVELS, rule=_does_the_work)
    return model


def _given(model: pyo.ConcreteModel, job: int) -> Any:
    return pyo.quicksum(model.witness[job, t] for t in model.SLOTS)


def _does_the_work(model: pyo.ConcreteModel, job: int, k: int) -> Any:
    """State that the other plan does more than Algorithm 1 has done before its last step, on min(., k)."""
    places = len(model.PLACES)
    done = pyo.quicksum(model.has[job, t, level] for t, level in model.PLACES if level <= k)
    return _given(model, job) >= done + model.above[job, k] - places * (1 - model.parallel[job, k])


def read(model: pyo.ConcreteModel) -> MinimumSatisfactoryShare:
    """Return the jobs in a model's values, with curves and iterations in whole numbers."""
    gpus = np.arange(model.num_gpus + 1)
    deadlines, curves, iterations = [], [], []
    for job in model.JOBS:
        k = next(k for k in model.LEVELS if model.parallel[job, k].value > 0.5)
        curve = np.minimum(gpus, k)
        held = np.zeros(len(model.SLOTS), np.int64)
        steps = [(level, -t) for t, level in model.PLACES if model.has[job, t, level].value > 0.5]
        for level, t in steps:
            held[-t] = max(held[-t], level)
        if steps:
            level, t = max(steps)
            held[-t] -= 1
            if level > k:
                curve = (len(model.PLACES) + 1) * curve + gpus
            iterations.append(curve[held].sum() + 1)
        else:
            iterations.append(sum(round(model.witness[job, t].value) for t in model.SLOTS))
        curves.append(curve)
        deadlines.append(sum(round(model.in_time[job, t].value) for t in model.SLOTS))
    return MinimumSatisfactoryShare(
        num_gpus=model.num_gpus,
        iterations=np.array(iterations, float),
        deadlines=np.array(deadlines),
        throughputs=np.array(curves, float),
    )


WORST_CASES = {"progressive_filling": WorstCaseModel(progressive_filling, read, size="num_slots", least=1)}
