"""Parts that the models of ElasticFlow share: GPUs slot by slot for any curve, by interval for concave ones.

Slot by slot (:func:`time_indexed`).  ``chosen[i, t, g]`` is 1 when job i holds g GPUs in slot t.

By interval (:func:`aggregated`).  Between two deadlines the same jobs may run, and a job with a
concave curve gets most out of its GPU-slots when they are spread evenly: each slot has the floor
or the ceiling of their mean.  So only their number matters.  A concave curve is a staircase, whose
step s is a stretch of ``width`` GPUs that add the same throughput each, the steepest first;
``gpu_slots[i, k, s]`` whole GPU-slots of job i in interval k are on step s.  The plan comes from
wrapping the ceilings around the interval (:func:`spread_evenly`), so that no slot needs more than
G GPUs.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyomo.environ as pyo

from formulations.engine import clock
from formulations.engine.linear import Rows, refuse_large, weighted_sum
from formulations.engine.sets import RangeSet, Set
from instances.base import TOLERANCE
from instances.elasticflow.sharing import RATE_TOLERANCE, DeadlineJobs, SlotPlan
from instances.schema import FloatArray, IntArray

__all__ = [
    "Terms",
    "add_gpu_time",
    "add_shares_alone",
    "add_work",
    "aggregated",
    "read",
    "read_gpus",
    "shares_alone",
    "spread_evenly",
    "time_indexed",
    "work_units",
    "write_gpus",
]

Jobs = DeadlineJobs[Any]

MOST_STEPS = 1_000_000_000
"""Steps up to which the least GPU-slots of a job alone are found by trying all numbers of them."""


@dataclass
class Terms:
    """Variables, with what one unit of each takes (GPU-slots) and does (work, in :func:`work_units`)."""

    variables: list[Any] = field(default_factory=list)
    gpus: list[float] = field(default_factory=list)
    work: list[float] = field(default_factory=list)

    def add(self, variable: Any, gpus: float, work: float) -> None:
        """Add a variable, with the GPUs and the work that one unit of it is."""
        self.variables.append(variable)
        self.gpus.append(gpus)
        self.work.append(work)


def work_units(instance: Jobs) -> FloatArray:
    """(n,) float: the most iterations of each job in a slot, or all it has to do where that is less; never 0.

    Rows in these units are alike in size, so that the solver's tolerances mean the same in each.
    """
    most = instance.best_throughputs[:, -1]
    units = np.where(instance.iterations > 0, np.minimum(most, instance.iterations), most)
    return np.where(units > 0, units, 1.0)


def _capped(instance: Jobs, job: int, work: FloatArray) -> FloatArray:
    """Work of one unit of each variable of a job, in its units; what is more than the job has to do counts as that.

    With whole numbers of units that changes no row, and it leaves nothing large beside a small need.
    """
    unit = work_units(instance)[job]
    capped: FloatArray = np.minimum(work / unit, max(1.0, float(instance.iterations[job] / unit)))
    return capped


def time_indexed(
    model: pyo.ConcreteModel, instance: Jobs, *, every_count_now: bool = False, admitting: bool = False
) -> list[Terms]:
    """Add GPUs slot by slot, for any curve; returns the terms of each job.

    Sets JOBS, SLOTS, RUNS, CHOICES; variables ``chosen[i, t, g]`` (binary); constraints
    ``one_count[i, t]`` and ``capacity[t]``; ``model.slot_by_slot`` is true.  Numbers of GPUs on which
    a job is no faster than on fewer are left out; ``every_count_now`` keeps them in slot 0.  With
    ``admitting`` there are variables ``admitted[i]`` (binary), and a job has a number of GPUs only if
    it is admitted.
    """
    model.slot_by_slot = True
    every = list(range(1, instance.num_gpus + 1))
    useful = [_useful_counts(curve) or [1] for curve in instance.best_throughputs]
    choices = sum(deadline * len(some) for deadline, some in zip(instance.deadlines.tolist(), useful, strict=True))
    refuse_large(instance, choices, "choices, deadlines times the numbers of GPUs on which a job is faster")
    counts = {
        (job, slot): every if every_count_now and slot == 0 else useful[job]
        for job, deadline in enumerate(instance.deadlines.tolist())
        for slot in clock.ticking(range(deadline))
    }
    model.JOBS = RangeSet(0, instance.num_jobs - 1)
    model.SLOTS = RangeSet(0, instance.horizon - 1)
    model.RUNS = Set(initialize=list(counts), dimen=2)
    model.CHOICES = Set(
        initialize=clock.ticking((*run, gpus) for run, some in counts.items() for gpus in some), dimen=3
    )
    model.chosen = pyo.Var(model.CHOICES, domain=pyo.Binary)
    if admitting:
        model.admitted = pyo.Var(model.JOBS, domain=pyo.Binary)

    def one_count(model: pyo.ConcreteModel, job: int, slot: int) -> object:
        if slot == 0:
            clock.check()
        most = model.admitted[job] if admitting else 1
        return pyo.quicksum(model.chosen[job, slot, gpus] for gpus in counts[job, slot]) <= most

    model.one_count = pyo.Constraint(model.RUNS, rule=one_count)
    work = [_capped(instance, job, curve).tolist() for job, curve in enumerate(instance.throughputs)]
    of_job: list[Terms] = [Terms() for _ in model.JOBS]
    of_slot: dict[int, Terms] = defaultdict(Terms)
    for (job, slot, gpus), variable in clock.ticking(model.chosen.items()):
        of_job[job].add(variable, gpus, work[job][gpus])
        of_slot[slot].add(variable, gpus, 0)
    _add_capacity(model, model.SLOTS, of_slot, [instance.num_gpus] * instance.horizon)
    return of_job


def _useful_counts(curve: FloatArray) -> list[int]:
    """Numbers of GPUs on which a job does more than on fewer, from its best throughputs."""
    counts: list[int] = (np.flatnonzero(np.diff(curve) > 0) + 1).tolist()
    return counts


def aggregated(
    model: pyo.ConcreteModel, instance: Jobs, *, slot_0_alone: bool = False, admitting: bool = False
) -> list[Terms]:
    """Add GPU-slots by interval, for concave curves; returns the terms of each job.

    Sets JOBS, INTERVALS, STEPS; parameter ``length[k]`` (slots of interval k); variables
    ``gpu_slots[i, k, s]`` (integer); constraints ``capacity[k]``; ``model.slot_by_slot`` is false.
    Intervals end at the deadlines, and with ``slot_0_alone`` after slot 0 too.  With ``admitting``
    there are variables ``admitted[i]`` (binary), and constraints ``only_admitted[i, k, s]``: a job has
    as much of each step as it is admitted, at most.

    Raises
    ------
    ValueError
        When a curve is not concave: then an even spread is not always best.
    """
    if not instance.concave:
        raise ValueError(f"{instance.problem}: throughputs are not concave, use the time-indexed model")
    model.slot_by_slot = False
    ends = np.unique(np.append(instance.deadlines, 1) if slot_0_alone else instance.deadlines)
    lengths = np.diff(ends, prepend=0).tolist()
    stairs = [_staircase(curve) for curve in instance.best_throughputs]
    work = [_capped(instance, job, np.array([gain for _, gain in steps])) for job, steps in enumerate(stairs)]
    model.JOBS = RangeSet(0, instance.num_jobs - 1)
    model.INTERVALS = RangeSet(0, len(lengths) - 1)
    model.length = pyo.Param(model.INTERVALS, initialize=dict(enumerate(lengths)))
    steps = [
        (job, interval, step)
        for job, last in enumerate(np.searchsorted(ends, instance.deadlines).tolist())
        for interval in clock.ticking(range(last + 1))
        for step in range(len(stairs[job]))
    ]
    model.STEPS = Set(initialize=steps, dimen=3)
    bounds = {(job, interval, step): (0, lengths[interval] * stairs[job][step][0]) for job, interval, step in steps}
    model.gpu_slots = pyo.Var(model.STEPS, domain=pyo.Integers, bounds=lambda _, *index: bounds[index])
    if admitting:
        model.admitted = pyo.Var(model.JOBS, domain=pyo.Binary)
        _add_only_admitted(model, [(job, bounds[job, interval, step][1]) for job, interval, step in steps])
    of_job: list[Terms] = [Terms() for _ in model.JOBS]
    of_interval: dict[int, Terms] = defaultdict(Terms)
    for (job, interval, step), variable in clock.ticking(model.gpu_slots.items()):
        of_job[job].add(variable, 1, float(work[job][step]))
        of_interval[interval].add(variable, 1, 0)
    _add_capacity(model, model.INTERVALS, of_interval, [instance.num_gpus * length for length in lengths])
    return of_job


def _add_capacity(model: pyo.ConcreteModel, periods: pyo.Set, terms: dict[int, Terms], limits: list[int]) -> None:
    def capacity(_: pyo.ConcreteModel, period: int) -> object:
        return weighted_sum(terms[period].gpus, terms[period].variables) <= limits[period]

    model.capacity = pyo.Constraint(periods, rule=capacity)


def _add_only_admitted(model: pyo.ConcreteModel, steps: list[tuple[int, int]]) -> None:
    """``only_admitted[i, k, s]``: gpu_slots[i, k, s] <= the most that it can be * admitted[i]."""
    count = len(steps)
    columns = np.column_stack([np.arange(count), [count + job for job, _ in steps]])
    values = np.column_stack([np.ones(count), [-most for _, most in steps]])
    model.only_admitted = Rows(
        model.STEPS,
        (np.arange(0, 2 * count + 1, 2), columns.ravel(), values.ravel()),
        [*model.gpu_slots.values(), *model.admitted.values()],
        upper=0,
    )


def _staircase(curve: FloatArray) -> list[tuple[int, float]]:
    """Return the steps of a concave curve, ``(width, gain per GPU)``, as far as it rises.

    A curve that does not rise has one step without gain, so that every job has a variable.
    """
    gains, least = np.diff(curve), RATE_TOLERANCE * curve[-1]
    gains = gains[gains > least]
    if not len(gains):
        return [(1, 0.0)]
    drops = np.flatnonzero(np.diff(gains) < -least) + 1
    return [(len(step), float(step.mean())) for step in np.split(gains, drops)]


def add_work(model: pyo.ConcreteModel, instance: Jobs, terms: list[Terms], *, admitted: pyo.Var | None = None) -> None:
    """``work[i]``: job i, if it is admitted where that is a question, does its iterations by its deadline."""
    # A little less, because the judge lets work be missed by its tolerance.
    needs = (instance.iterations * (1 - 3 * TOLERANCE) / work_units(instance)).tolist()
    enough = (instance.iterations * (1 - TOLERANCE) / work_units(instance)).tolist()
    work = []
    for job, held in enumerate(terms):
        # A unit that does all the work, as the judge sees it, does no more; in parts of the work, the solver's
        # tolerance means the same however little it is.
        part = needs[job] if 0 < needs[job] < 1 else 1.0
        work.append([(needs[job] if part < 1 and done >= enough[job] else done) / part for done in held.work])
        needs[job] /= part
    model.work = _at_least(model, needs, work, terms, admitted)


def add_shares_alone(
    model: pyo.ConcreteModel, instance: Jobs, terms: list[Terms], *, admitted: pyo.Var | None = None
) -> None:
    """``alone[i]``: job i, if admitted, takes as many GPU-slots as it would with the cluster to itself.

    Every plan obeys these rows.  They are what rounding up to whole GPUs costs each job, which the
    relaxation does not see, and no search through like slots has to find it out.
    """
    shares = shares_alone(instance).tolist()
    model.alone = _at_least(model, shares, [held.gpus for held in terms], terms, admitted)


def _at_least(
    model: pyo.ConcreteModel,
    amounts: list[float],
    coefficients: list[list[float]],
    terms: list[Terms],
    admitted: pyo.Var | None,
) -> pyo.Constraint:
    """One row for each job: its terms come to its amount, or to nothing if it is not admitted."""

    def rule(_: pyo.ConcreteModel, job: int) -> object:
        needed = amounts[job] if admitted is None else amounts[job] * admitted[job]
        return weighted_sum(coefficients[job], terms[job].variables) >= needed

    return pyo.Constraint(model.JOBS, rule=rule)


def shares_alone(instance: Jobs) -> IntArray:
    """(n,) int: GPU-slots that each job needs with the cluster to itself.

    A job that does not finish even at its fastest in all its slots gets the GPU-slots of that.
    """
    # A hair less than all, so that rounding never asks for one GPU-slot too many.
    needs = (instance.iterations * (1 - 3 * TOLERANCE)).tolist()
    share = _share_of_concave if instance.concave else _share_of_any
    jobs = zip(instance.best_throughputs, instance.deadlines.tolist(), needs, strict=True)
    return np.array([share(curve, deadline, need) for curve, deadline, need in jobs], np.int64)


def _share_of_concave(curve: FloatArray, deadline: int, need: float) -> int:
    """Least GPU-slots on a concave curve, where an even spread is best."""
    gpus = int(np.searchsorted(curve * deadline, need))
    if gpus == len(curve):
        return int(curve.argmax()) * deadline
    if gpus == 0:
        return 0
    lack = need - curve[gpus - 1] * deadline
    return (gpus - 1) * deadline + math.ceil(float(lack / (curve[gpus] - curve[gpus - 1])))


def _share_of_any(curve: FloatArray, deadline: int, need: float) -> int:
    """Least GPU-slots on any curve: the most work with each number of them, slot after slot.

    Where these are too many, what they would come to at the job's best rate for a GPU-slot, which is less.
    """
    counts = _useful_counts(curve)
    enough = [gpus * math.ceil(need / curve[gpus]) for gpus in counts if curve[gpus] * deadline >= need]
    if not enough:
        return max(counts, default=0) * deadline
    limit = min(enough)
    # A slot in which the job runs takes a GPU-slot at least.
    slots = min(deadline, limit)
    if slots * limit * len(counts) > MOST_STEPS:
        return math.ceil(need / max(float(curve[gpus]) / gpus for gpus in counts))
    most = np.zeros(limit + 1)
    for _ in clock.ticking(range(slots), every=1):
        before = most.copy()
        for gpus in counts:
            if gpus <= limit:
                np.maximum(most[gpus:], before[: limit + 1 - gpus] + curve[gpus], out=most[gpus:])
    return int(np.searchsorted(most, need))


def add_gpu_time(model: pyo.ConcreteModel, terms: list[Terms]) -> None:
    """Objective ``gpu_time``: the GPU-slots of all jobs, (4)."""
    gpus = [g for held in terms for g in held.gpus]
    variables = [v for held in terms for v in held.variables]
    model.gpu_time = pyo.Objective(expr=weighted_sum(gpus, variables), sense=pyo.minimize)


def read(model: pyo.ConcreteModel) -> SlotPlan:
    """Return the plan, slot by slot, in the values of ``chosen`` or ``gpu_slots``."""
    return SlotPlan(gpus=read_gpus(model))


def read_gpus(model: pyo.ConcreteModel) -> IntArray:
    """(n, h) int: GPUs of each job in each slot, from the values of ``chosen`` or ``gpu_slots``."""
    return _read_chosen(model) if model.slot_by_slot else _read_gpu_slots(model)


def _read_chosen(model: pyo.ConcreteModel) -> IntArray:
    gpus = np.zeros((len(model.JOBS), len(model.SLOTS)), np.int64)
    for (job, slot, count), variable in model.chosen.items():
        if variable.value > 0.5:
            gpus[job, slot] = count
    return gpus


def _read_gpu_slots(model: pyo.ConcreteModel) -> IntArray:
    gpu_slots = np.zeros((len(model.JOBS), len(model.INTERVALS)), np.int64)
    for (job, interval, _), variable in model.gpu_slots.items():
        gpu_slots[job, interval] += round(variable.value)
    return np.hstack([spread_evenly(gpu_slots[:, k], model.length[k]) for k in model.INTERVALS])


def spread_evenly(gpu_slots: IntArray, length: int) -> IntArray:
    """GPUs of each job in each of ``length`` slots: evenly, and the remainders wrapped around.

    A job's GPUs in two slots differ by at most one, and so do the GPUs of all jobs together: in no
    slot are they more than their mean over the interval, rounded up.

    Parameters
    ----------
    gpu_slots : (n,) int
        GPU-slots of each job.
    length : int
        Slots to spread them over.

    Returns
    -------
    (n, length) int
    """
    even, rest = np.divmod(gpu_slots, length)
    first = np.cumsum(rest) - rest
    spread: IntArray = even[:, None] + ((np.arange(length) - first[:, None]) % length < rest[:, None])
    return spread


def write_gpus(model: pyo.ConcreteModel, gpus: IntArray) -> None:
    """Set ``chosen`` or ``gpu_slots`` to a plan, as a point to start the search from."""
    if model.slot_by_slot:
        _write_chosen(model, gpus)
    else:
        _write_gpu_slots(model, gpus)


def _write_chosen(model: pyo.ConcreteModel, gpus: IntArray) -> None:
    held = {}
    for (job, slot, count), variable in model.chosen.items():
        variable.set_value(0)
        # Numbers ascend; the last one within the plan's does as much, on no more GPUs.
        if count <= gpus[job, slot]:
            held[job, slot] = variable
    for variable in held.values():
        variable.set_value(1)


def _write_gpu_slots(model: pyo.ConcreteModel, gpus: IntArray) -> None:
    first = np.cumsum([0, *(model.length[k] for k in model.INTERVALS)])[:-1]
    left = np.add.reduceat(gpus, first, axis=1)
    for (job, interval, _), variable in model.gpu_slots.items():
        taken = min(int(left[job, interval]), variable.ub)
        variable.set_value(taken)
        left[job, interval] -= taken
