"""Plans that are had by serving the jobs one after the other: what searches start from, and end with at worst.

The jobs come in some order, and each takes what it needs of the GPUs that those before it have left: the least level
with which it is done by its deadline, where in each slot it holds that level or what is left.  Of a curve that falls
somewhere, the best number of GPUs up to a level counts.

Where not all can be served, jobs are also admitted one by one (``_Admitted``), each if it can be served together
with those admitted before, all of them anew in order of their deadlines.
"""

from __future__ import annotations

import heapq
import math
import time
from bisect import bisect_left
from itertools import product
from typing import Any, Literal

import numpy as np

from formulations.elasticflow.sharing import shares_alone
from formulations.engine import clock
from instances.base import ROUNDING, TOLERANCE
from instances.elasticflow.allocation import ElasticFlowAllocation
from instances.elasticflow.sharing import DeadlineJobs, SlotPlan
from instances.schema import BoolArray, FloatArray, IntArray

__all__ = [
    "could_be_served",
    "least_gpu_slots",
    "least_gpu_slots_filled",
    "one_pass",
    "one_pass_filled",
    "served",
    "served_most",
]

Jobs = DeadlineJobs[Any]

MOST_SECONDS = 5.0
"""For admitting jobs one by one in an order."""
PART = 0.75
"""Of the time that is left for the solve, after which no further order is tried."""

MOST_SUMS = 20_000_000
"""Up to which the GPUs of slot 0 are shared out by dynamic programming: jobs times all GPUs, squared."""

Way = Literal["late", "even"]
"""Way in which a job runs: on one GPU less than the least level and on the level when it must, or first on the level
and then on one GPU less.  Either takes fewest GPU-slots; late ones leave more to jobs that are due earlier."""

WAYS: tuple[Way, ...] = ("late", "even")


class _Curves:
    """Ways to serve jobs; what is the same for all passes is made once."""

    def __init__(self, instance: Jobs) -> None:
        self.instance = instance
        self.best = instance.best_throughputs
        # The fewest GPUs that do as much as up to so many.
        faster = np.diff(self.best, axis=1, prepend=-1.0) > 0
        self.fewest = np.maximum.accumulate(np.where(faster, np.arange(instance.num_gpus + 1), 0), axis=1)
        # A hair less than all, for the rounding of sums; the judge lets a hundred times as much be missed.
        self.needs = instance.iterations * (1 - TOLERANCE / 100)
        self.deadlines: list[int] = instance.deadlines.tolist()

    def held(self, job: int, free: IntArray, way: Way, need: float | None = None) -> IntArray | None:
        """GPUs of a job in slots of which so many GPUs are free; None where they do not do."""
        best, fewest = self.best[job], self.fewest[job]
        need = float(self.needs[job]) if need is None else need
        slots = np.bincount(free, minlength=len(best))
        done = np.cumsum(slots * best) + best * (len(free) - np.cumsum(slots))
        level = int(done.searchsorted(need)) if need > 0 else 0
        if level == len(best):
            return None
        held: IntArray = fewest[np.minimum(level, free)]
        if level:
            less = fewest[np.minimum(level - 1, free)]
            raised = np.flatnonzero(free >= level)
            gains = np.arange(1, len(raised)) * (best[level] - best[level - 1])
            count = int((done[level - 1] + gains).searchsorted(need)) + 1
            some = raised[:count] if way == "even" else raised[-count:]
            less[some] = held[some]
            held = less
        return _no_longer_than(held, self.instance.throughputs[job], need)


def _no_longer_than(held: IntArray, curve: FloatArray, need: float, first: int = 0) -> IntArray:
    """GPUs of a job up to the slot in which it is done, where it may need fewer; those before ``first`` stay."""
    made = np.cumsum(curve[held])
    last = int(np.searchsorted(made, need))
    if last < len(held):
        held[max(last + 1, first) :] = 0
        if last >= first:
            enough = np.flatnonzero(curve[: held[last] + 1] >= need - (made[last - 1] if last else 0.0))
            held[last] = enough[0] if enough.size else held[last]
    return held


def served(instance: Jobs, order: IntArray, way: Way = "late") -> tuple[IntArray, BoolArray]:
    """Jobs served in an order.

    Parameters
    ----------
    instance : DeadlineJobs
    order : (n,) int
    way : "late" or "even"
        See :data:`Way`.

    Returns
    -------
    gpus : (n, h) int
        Of the jobs that are served; none of the others'.
    done : (n,) bool
        Which these are.
    """
    return _served(_Curves(instance), order, way)


def _served(curves: _Curves, order: IntArray, way: Way) -> tuple[IntArray, BoolArray]:
    instance = curves.instance
    gpus = np.zeros((instance.num_jobs, instance.horizon), np.int64)
    done = instance.iterations <= 0
    free = np.full(instance.horizon, instance.num_gpus)
    for job in order.tolist():
        if not done[job]:
            held = curves.held(job, free[: curves.deadlines[job]], way)
            if held is not None:
                gpus[job, : len(held)] = held
                free[: len(held)] -= held
                done[job] = True
    return gpus, done


class _Admitted:
    """Jobs that are served together in order of their deadlines, each late, and what each of them finds free."""

    def __init__(self, curves: _Curves) -> None:
        self.curves = curves
        self.jobs: list[tuple[int, int]] = []
        self.rows: list[IntArray] = []
        self.free = [np.full(curves.instance.horizon, curves.instance.num_gpus)]

    def admit(self, job: int) -> None:
        """Take a job in if it can be served with the others, those that are due after it anew."""
        this = (self.curves.deadlines[job], job)
        place = bisect_left(self.jobs, this)
        rows, left = [], [self.free[place]]
        for deadline, one in [this, *self.jobs[place:]]:
            held = self.curves.held(one, left[-1][:deadline], "late")
            if held is None:
                return
            rows.append(held)
            left.append(left[-1].copy())
            left[-1][:deadline] -= held
        self.jobs.insert(place, this)
        self.rows[place:] = rows
        self.free[place:] = left

    def plan(self) -> tuple[IntArray, BoolArray]:
        instance = self.curves.instance
        gpus = np.zeros((instance.num_jobs, instance.horizon), np.int64)
        done = instance.iterations <= 0
        for (deadline, job), held in zip(self.jobs, self.rows, strict=True):
            gpus[job, :deadline] = held
            done[job] = True
        return gpus, done


def least_gpu_slots(instance: Jobs) -> float:
    """GPU-slots that no plan of all jobs is without.

    Of concave curves those of each job with the cluster to itself; of others those at its best rate for one, rounded
    up, because what a job takes alone is a search of its own there.
    """
    if instance.concave:
        return float(shares_alone(instance).sum())
    counts = np.arange(1, instance.num_gpus + 1)
    best = (instance.throughputs[:, 1:] / counts).max(axis=1, initial=0.0)
    # A hair less than all, so that rounding never asks for one GPU-slot too many.
    needs = instance.iterations * (1 - 3 * TOLERANCE)
    slots = np.ceil(np.divide(needs, best, out=np.zeros(len(best)), where=best > 0) * (1 - ROUNDING))
    return float(slots.sum())


def _alone(instance: Jobs) -> FloatArray:
    """(n,) float: GPU-slots that each job takes on one number of GPUs alone; infinite where none does."""
    with np.errstate(divide="ignore", invalid="ignore"):
        slots = np.ceil(instance.iterations[:, None] / instance.throughputs)
        alone = np.where(slots <= instance.deadlines[:, None], slots * np.arange(instance.num_gpus + 1), np.inf)
    alone[:, 0] = np.inf
    least: FloatArray = alone.min(axis=1)
    return least


def _passes(curves: _Curves) -> list[tuple[IntArray, BoolArray]]:
    """Serve the jobs by deadline, by need and as they are numbered, either way, as far as there is time."""
    instance = curves.instance
    by_deadline = np.argsort(instance.deadlines, kind="stable")
    orders = [by_deadline, np.argsort(_alone(instance), kind="stable"), np.arange(instance.num_jobs)]
    found: list[tuple[IntArray, BoolArray]] = []
    ends = time.perf_counter() + PART * clock.left()
    for way, order in product(WAYS, orders):
        if found and time.perf_counter() > ends:
            break
        found.append(_served(curves, order, way))
    return found


def _rank(found: tuple[IntArray, BoolArray]) -> tuple[int, int]:
    """Rank a plan by how many are served, and then by how few GPU-slots that takes."""
    gpus, done = found
    return int(done.sum()), -int(gpus.sum())


def served_most(instance: Jobs, arrivals: IntArray) -> tuple[IntArray, BoolArray]:
    """Return the plan that serves most jobs, of passes in a few orders and of admitting the jobs one by one.

    Parameters
    ----------
    instance : DeadlineJobs
    arrivals : (n,) int
        The order in which the jobs come.
    """
    curves = _Curves(instance)
    best = max(_passes(curves), key=_rank)
    possible = could_be_served(instance)
    by_need = np.argsort(_alone(instance), kind="stable")
    # Those that a pass serves first.
    again = by_need[np.argsort(~best[1][by_need], kind="stable")]
    for order in (again, arrivals):
        if best[1][possible].all():
            break
        ends = time.perf_counter() + min(MOST_SECONDS, PART * clock.left())
        admitted = _Admitted(curves)
        for job in order[possible[order] & (instance.iterations[order] > 0)].tolist():
            if time.perf_counter() > ends:
                break
            admitted.admit(job)
        best = max(best, admitted.plan(), key=_rank)
    return best


def could_be_served(instance: Jobs) -> BoolArray:
    """(n,) bool: whether all GPUs in all slots until its deadline would do for each job; no plan serves the others."""
    needs = instance.iterations * (1 - 3 * TOLERANCE)
    possible: BoolArray = instance.best_throughputs[:, -1] * instance.deadlines >= needs
    return possible


def one_pass(instance: Jobs) -> SlotPlan:
    """Return the plan of one pass over the jobs that takes fewest GPU-slots; where none serves them all, it is none."""
    return SlotPlan(gpus=max(_passes(_Curves(instance)), key=_rank)[0])


def _least_with(instance: ElasticFlowAllocation) -> FloatArray:
    """(n, G+1) float: GPU-slots that each job is not without if it holds so many GPUs in slot 0; infinite if it fails.

    In the slots after, it has the cluster to itself.  Of a concave curve an even spread takes fewest; of any other,
    each GPU-slot is counted at the job's best rate.
    """
    counts = np.arange(instance.num_gpus + 1)
    least = np.full((instance.num_jobs, len(counts)), np.inf)
    for job, (best, deadline) in enumerate(zip(instance.best_throughputs, instance.deadlines.tolist(), strict=True)):
        # A hair less than all, so that rounding never asks for one GPU-slot too many.
        rest = np.maximum(float(instance.iterations[job]) * (1 - 3 * TOLERANCE) - best, 0.0)
        level = np.searchsorted(best * (deadline - 1), rest)
        able = np.flatnonzero(level < len(counts))
        level, rest = level[able], rest[able]
        below = np.maximum(level - 1, 0)
        if instance.concave:
            gain = np.where(level > 0, best[level] - best[below], 1.0)
            more = below * (deadline - 1) + np.ceil((rest - best[below] * (deadline - 1)) / gain)
        else:
            more = np.ceil(rest / max(float((best[1:] / counts[1:]).max()), np.finfo(float).tiny) * (1 - ROUNDING))
        least[job, able] = able + np.where(level > 0, more, 0.0)
    return least


def _slot_0(instance: ElasticFlowAllocation) -> tuple[float, IntArray] | None:
    """GPU-slots that no plan is without by what jobs hold in slot 0, and (n,) int of that; None where there are none.

    Either slot 0 is full, or each job has so many GPUs there that one more is of no use.  Full, its GPUs are shared out
    by dynamic programming over the jobs.
    """
    n, most = instance.num_jobs, instance.num_gpus
    if n * (most + 1) ** 2 > MOST_SUMS:
        return None
    least = _least_with(instance)
    idle = np.where(np.hstack([instance.gains, np.zeros((n, 1), bool)]), np.inf, least)
    counts = np.arange(most + 1)
    before = counts[:, None] - counts
    total, taken = np.where(counts > 0, np.inf, 0.0), np.zeros((n, most + 1), np.int64)
    for job in range(n):
        sums = np.where(before >= 0, total[before], np.inf) + least[job]
        taken[job] = sums.argmin(axis=1)
        total = sums[counts, taken[job]]
    if idle.min(axis=1).sum() < total[most]:
        return float(idle.min(axis=1).sum()), idle.argmin(axis=1)
    if not np.isfinite(total[most]):
        return None
    now, left = np.zeros(n, np.int64), most
    for job in range(n)[::-1]:
        now[job] = taken[job, left]
        left -= int(now[job])
    return float(total[most]), now


def least_gpu_slots_filled(instance: ElasticFlowAllocation) -> float:
    """GPU-slots that no plan of all jobs is without where no GPU may idle in slot 0 that would speed up a job."""
    found = _slot_0(instance)
    return max(least_gpu_slots(instance), -math.inf if found is None else found[0])


def _after_slot_0(instance: ElasticFlowAllocation, curves: _Curves) -> list[IntArray]:
    """Return plans in which jobs hold in slot 0 what takes fewest GPU-slots alone, and are then served by deadline."""
    found = _slot_0(instance)
    if found is None:
        return []
    plans = []
    for way in WAYS:
        gpus = np.zeros((instance.num_jobs, instance.horizon), np.int64)
        gpus[:, 0] = found[1]
        free = np.full(instance.horizon, instance.num_gpus) - gpus.sum(axis=0)
        for job in np.argsort(instance.deadlines, kind="stable").tolist():
            end = curves.deadlines[job]
            need = float(curves.needs[job] - instance.throughputs[job, gpus[job, 0]])
            held = curves.held(job, free[1:end], way, max(need, 0.0))
            if held is None:
                break
            gpus[job, 1:end] = held
            free[1:end] -= held
        else:
            plans.append(gpus)
    return [gpus for gpus in plans if not instance.violations(SlotPlan(gpus=gpus))]


def one_pass_filled(instance: ElasticFlowAllocation) -> SlotPlan:
    """Return the plan of one pass over the jobs, with slot 0 filled; where none serves them all, it is none.

    Of two passes what takes fewer GPU-slots in the end: the first, and the one that takes fewest before; or of those
    that begin with what jobs hold in slot 0.
    """
    curves = _Curves(instance)
    found = [gpus for gpus, done in _passes(curves) if done.all()]
    some = {gpus.tobytes(): gpus for gpus in (*found[:1], *sorted(found, key=np.sum)[:1])}
    filled = [_with_slot_0_filled(instance, curves, gpus) for gpus in some.values()]
    filled += _after_slot_0(instance, curves)
    nothing = np.zeros((instance.num_jobs, instance.horizon), np.int64)
    return SlotPlan(gpus=min(filled, key=np.sum, default=nothing))


def _with_slot_0_filled(instance: ElasticFlowAllocation, curves: _Curves, gpus: IntArray) -> IntArray:
    """Return a plan, and the GPUs that it leaves idle in slot 0, one by one where this takes fewest GPU-slots in all.

    A job that is faster in slot 0 needs less afterwards, for which it is served anew.
    """
    gpus = gpus.copy()
    free = instance.num_gpus - gpus.sum(axis=0)
    rows: dict[int, IntArray] = {}
    queue: list[tuple[int, int]] = []

    def enter(job: int) -> bool:
        """Put a job into the queue, if it is faster with one more GPU; whether it is the first there."""
        row = _one_more(instance, curves, job, gpus[job], free)
        if row is None:
            return False
        rows[job] = row
        heapq.heappush(queue, (int(row.sum() - gpus[job].sum()), job))
        return queue[0][1] == job

    for job in range(instance.num_jobs if free[:1].sum() else 0):
        enter(job)
    while queue and free[0] > 0:
        _, job = heapq.heappop(queue)
        # What others have taken since may have made it dearer.
        if enter(job):
            heapq.heappop(queue)
            free += gpus[job] - rows[job]
            gpus[job] = rows[job]
            enter(job)
    return gpus


def _one_more(
    instance: ElasticFlowAllocation, curves: _Curves, job: int, held: IntArray, free: IntArray
) -> IntArray | None:
    """Return a job's GPUs with one more in slot 0; None where it is no faster with it."""
    if held[0] >= instance.num_gpus or not instance.gains[job, held[0]]:
        return None
    row = held.copy()
    row[0] += 1
    curve, need, end = instance.throughputs[job], float(curves.needs[job]), curves.deadlines[job]
    found = [_no_longer_than(row, curve, need, first=1)]
    for way in ("late", "even"):
        rest = curves.held(job, free[1:end] + held[1:end], way, need - float(curve[row[0]]))
        if rest is not None:
            found.append(np.concatenate([row[:1], rest, np.zeros(len(held) - end, np.int64)]))
    return min(found, key=np.sum)
