"""Exact model of :class:`instances.shockwave.window.Window`.

Shockwave's program, with the interpolated logarithm below its lines, and each limit as a number of rounds:

    max   sum_j weights[j] * utility[j] / (n R)  -  remaining_penalty * longest
    s.t.  gpus[r]:             sum_j scale_factors[j] * runs[j, r]  <=  num_gpus
          rounds[j]:           planned[j]  <=  round_duration * sum_r runs[j, r]
          logarithm[j, b]:     utility[j]  <=  at_0[b] + slope[b] * progress[j]
          left[j]:             longest  >=  times_left[j] - planned[j]
          finish_limit[j]:     sum_r runs[j, r]  >=  least_rounds[j]
          runs[j, r] in {0, 1},  0 <= planned[j] <= epoch_durations[j] * (epochs[j] - epochs_done[j]),  longest >= 0

with progress[j] = (epochs_done[j] + planned[j] / epoch_durations[j]) / epochs[j] written out.
A concave function that is maximised needs no binary variables, and lies on one of its lines.
"""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo

from formulations.engine.linear import refuse_large, weighted_sum
from formulations.engine.protocol import Formulation
from formulations.engine.sets import RangeSet
from instances.shockwave.packing import packed
from instances.shockwave.window import Window, WindowPlan

LARGE = 100_000
"""GPUs up to which it is worked out what jobs can add up to."""

__all__ = ["FORMULATION", "build", "explain", "fullest_round", "limits_alone", "read", "unlimited", "write"]


def build(instance: Window) -> pyo.ConcreteModel:
    """Pyomo model of an instance.

    Sets JOBS, ROUNDS and LINES; variables ``runs[j, r]`` (binary), ``planned[j]`` (s), ``utility[j]`` and ``longest``
    (s); constraints ``gpus[r]``, ``rounds[j]``, ``logarithm[j, b]``, ``left[j]`` and ``finish_limit[j]``; objective
    ``welfare``.
    """
    n, num_rounds = instance.num_jobs, instance.num_rounds
    refuse_large(instance, n * num_rounds, "variables, one for each job and each of num_rounds")
    model = pyo.ConcreteModel(name=instance.problem)
    model.JOBS = RangeSet(0, n - 1)
    model.ROUNDS = RangeSet(0, num_rounds - 1)
    model.LINES = RangeSet(0, len(instance.points) - 2)
    durations, epochs, done = (
        array.tolist() for array in (instance.epoch_durations, instance.epochs, instance.epochs_done)
    )
    most = instance.planned(np.full(n, num_rounds)).tolist()
    at_0, slope = (array.tolist() for array in instance.segments)
    model.runs = pyo.Var(model.JOBS * model.ROUNDS, domain=pyo.Binary)
    model.planned = pyo.Var(model.JOBS, bounds=lambda _, j: (0, most[j]))
    model.utility = pyo.Var(model.JOBS, bounds=(float(instance.logs[0]), float(instance.logs[-1])))
    model.longest = pyo.Var(domain=pyo.NonNegativeReals)

    def gpus(_: pyo.ConcreteModel, r: int) -> object:
        return weighted_sum(instance.scale_factors, [model.runs[j, r] for j in model.JOBS]) <= instance.num_gpus

    def rounds(_: pyo.ConcreteModel, j: int) -> object:
        given = weighted_sum([instance.round_duration] * num_rounds, [model.runs[j, r] for r in model.ROUNDS])
        return model.planned[j] - given <= 0

    def logarithm(_: pyo.ConcreteModel, j: int, b: int) -> object:
        rise = slope[b] / (durations[j] * epochs[j])
        return model.utility[j] - rise * model.planned[j] <= at_0[b] + slope[b] * done[j] / epochs[j]

    def left(_: pyo.ConcreteModel, j: int) -> object:
        return model.longest + model.planned[j] >= float(instance.times_left[j])

    def finish_limit(_: pyo.ConcreteModel, j: int) -> object:
        least = int(instance.least_rounds[j])
        return pyo.quicksum(model.runs[j, r] for r in model.ROUNDS) >= least if least else pyo.Constraint.Skip

    model.gpus = pyo.Constraint(model.ROUNDS, rule=gpus)
    model.rounds = pyo.Constraint(model.JOBS, rule=rounds)
    model.logarithm = pyo.Constraint(model.JOBS * model.LINES, rule=logarithm)
    model.left = pyo.Constraint(model.JOBS, rule=left)
    model.finish_limit = pyo.Constraint(model.JOBS, rule=finish_limit)
    shares = instance.weights / (n * num_rounds)
    model.welfare = pyo.Objective(
        expr=weighted_sum(shares, model.utility.values()) - instance.remaining_penalty * model.longest,
        sense=pyo.maximize,
    )
    return model


def read(model: pyo.ConcreteModel) -> WindowPlan:
    """Return the plan in the values of ``runs``."""
    runs = [[pyo.value(model.runs[j, r]) > 0.5 for r in model.ROUNDS] for j in model.JOBS]
    return WindowPlan(runs=np.array(runs, bool).reshape(len(model.JOBS), len(model.ROUNDS)))


def write(model: pyo.ConcreteModel, plan: WindowPlan) -> None:
    """Set the variables to ``plan``, as a point to start the search from."""
    for (j, r), variable in model.runs.items():
        variable.set_value(int(plan.runs[j, r]))
    instance = model.instance
    rounds, jobs = instance.rounds_of(plan), np.arange(instance.num_jobs)
    planned = instance.planned(rounds)
    progress = (instance.epochs_done + planned / instance.epoch_durations) / instance.epochs
    utility = np.min([at_0 + slope * progress for at_0, slope in zip(*instance.segments, strict=True)], axis=0)
    for j in model.JOBS:
        model.planned[j].set_value(float(planned[j]))
        model.utility[j].set_value(min(float(utility[j]), model.utility[j].ub))
    model.longest.set_value(float(instance.times_after[jobs, rounds].max(initial=0.0)))


def limits_alone(instance: Window) -> WindowPlan:
    """Return the plan by which jobs run as often as their limits need; not at all where none are found."""
    needed = instance.least_rounds
    runs = None
    if (needed <= instance.most_rounds).all():
        runs = packed(needed, instance.scale_factors, instance.num_gpus, instance.num_rounds)
    return WindowPlan(runs=np.zeros((instance.num_jobs, instance.num_rounds), bool) if runs is None else runs)


def unlimited(instance: Window) -> float:
    """Return the value if each job could run in every round in which it fits alone."""
    return instance.value_of(instance.most_rounds)


def fullest_round(instance: Window) -> int:
    """Return the most GPUs that jobs can hold in a round: what some of them add up to; of very many GPUs, a bound."""
    scales: list[int] = instance.scale_factors[instance.scale_factors <= instance.num_gpus].tolist()
    if sum(scales) <= instance.num_gpus or instance.num_gpus > LARGE:
        return min(sum(scales), instance.num_gpus)
    sums = 1
    for scale in scales:
        sums |= sums << scale & (2 << instance.num_gpus) - 1
        if sums >> instance.num_gpus:
            return instance.num_gpus
    return sums.bit_length() - 1


def explain(instance: Window) -> str | None:
    """Say which limit no plan keeps, or that all together need more GPU-rounds than there are."""
    late = np.flatnonzero(instance.least_rounds > instance.most_rounds)
    if late.size:
        return f"job {late[0]} finishes after its limit even if it runs in every round in which it can"
    wanted = sum((instance.scale_factors.astype(object) * instance.least_rounds).tolist())
    there = fullest_round(instance) * instance.num_rounds
    if wanted > there:
        return f"to finish within their limits, jobs need {wanted:,} GPU-rounds, and there are {there:,}"
    return None


FORMULATION = Formulation(
    build=build, read=read, write=write, trivial=limits_alone, trivial_bound=unlimited, explain=explain
)
