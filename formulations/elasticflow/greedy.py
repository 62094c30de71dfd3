"""Plans that are had in one pass over the jobs: what searches start from, and end with where they find no better.

The jobs come in some order, and each takes what it needs of the GPUs that those before it have left: the least level
with which it is done by its deadline, where in each slot it holds that level or what is left.  Of a curve that falls
somewhere, the best number of GPUs up to a level counts.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from instances.base import ROUNDING, TOLERANCE
from instances.elasticflow.allocation import ElasticFlowAllocation
from instances.elasticflow.sharing import DeadlineJobs, SlotPlan
from instances.schema import BoolArray, FloatArray, IntArray

__all__ = ["least_gpu_slots", "one_pass", "served", "served_most", "with_slot_0_filled"]

Jobs = DeadlineJobs[Any]

MOST_RETRIES = 50
"""Jobs that are tried once more."""


Way = Literal["even", "early", "fast"]
"""How a job runs: on the least level as far into time as it must and on one GPU less from then on, so that it needs
fewest GPU-slots; on the least level until it is done; or on all that speeds it up."""


def served(instance: Jobs, order: IntArray, way: Way = "even") -> tuple[IntArray, BoolArray]:
    """Jobs served in an order.

    Parameters
    ----------
    instance : DeadlineJobs
    order : (n,) int
    way : "even", "early" or "fast"
        See :data:`Way`.

    Returns
    -------
    gpus : (n, h) int
        Of the jobs that are served; none of the others'.
    done : (n,) bool
        Which these are.
    """
    gpus = np.zeros((instance.num_jobs, instance.horizon), np.int64)
    done = instance.iterations <= 0
    free = np.full(instance.horizon, instance.num_gpus)
    for job in order.tolist():
        if not done[job]:
            held = _held(instance, job, free[: instance.deadlines[job]], way)
            if held is not None:
                gpus[job, : len(held)] = held
                free[: len(held)] -= held
                done[job] = True
    return gpus, done


def _held(instance: Jobs, job: int, free: IntArray, way: Way) -> IntArray | None:
    """GPUs of a job until its deadline, of those that are free; None where they do not do."""
    curve, most, need = instance.throughputs[job], instance.best_throughputs[job], instance.iterations[job]
    # The fewest GPUs that do as much as up to so many.
    fewest = np.maximum.accumulate(np.where(np.diff(most, prepend=-1.0) > 0, np.arange(len(most)), 0))
    low, high = 0, instance.num_gpus
    if curve[fewest[free]].sum() < need:
        return None
    while way != "fast" and high - low > 1:
        level = (low + high) // 2
        low, high = (low, level) if curve[fewest[np.minimum(level, free)]].sum() >= need else (level, high)
    held: IntArray = fewest[np.minimum(high, free)]
    if way == "even":
        less = fewest[np.minimum(high - 1, free)]
        made = curve[less].sum() + np.cumsum(curve[held] - curve[less])
        last = int(np.searchsorted(made, need))
        held = np.where(np.arange(len(held)) <= last, held, less)
    return _no_longer_than(held, curve, need)


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


def least_gpu_slots(instance: Jobs) -> float:
    """GPU-slots that no plan of all jobs is without: those of each job at its best rate for one, rounded up."""
    counts = np.arange(1, instance.num_gpus + 1)
    best = (instance.throughputs[:, 1:] / counts).max(axis=1, initial=0.0)
    # A hair less than all, so that rounding never asks for one GPU-slot too many.
    needs = instance.iterations * (1 - 3 * TOLERANCE)
    slots = np.ceil(np.divide(needs, best, out=np.zeros(len(best)), where=best > 0) * (1 - ROUNDING))
    return float(slots.sum())


def served_most(instance: Jobs) -> tuple[IntArray, BoolArray]:
    """Of a few orders and both ways, what serves most jobs; of these, what takes fewest GPUs."""
    counts = np.arange(instance.num_gpus + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        slots = np.ceil(instance.iterations[:, None] / instance.throughputs)
        alone = np.where(slots <= instance.deadlines[:, None], slots * counts, np.inf)
    alone[:, 0] = np.inf
    orders = [
        np.argsort(instance.deadlines, kind="stable"),
        np.argsort(alone.min(axis=1), kind="stable"),
        np.arange(instance.num_jobs),
    ]
    ways: tuple[Way, ...] = ("even", "early", "fast")
    found = [served(instance, order, way) for order in orders for way in ways]
    gpus, done = max(found, key=lambda one: (int(one[1].sum()), -int(one[0].sum())))
    # Those that found no room may find some when all are served anew in order of their deadlines.
    by_deadline, by_need = orders[0], orders[1]
    for job in by_need[~done[by_need] & np.isfinite(alone[by_need].min(axis=1))][:MOST_RETRIES].tolist():
        wanted = done.copy()
        wanted[job] = True
        again, served_now = served(instance, by_deadline[wanted[by_deadline]])
        if served_now[wanted].all():
            gpus, done = again, served_now
    return gpus, done


def with_slot_0_filled(instance: ElasticFlowAllocation, gpus: IntArray) -> IntArray:
    """Shares, and the GPUs that they leave idle in slot 0, one by one where this takes fewest GPU-slots in all.

    A job that is faster in slot 0 is done earlier, and its last GPUs are left to nobody.
    """
    gpus = gpus.copy()
    more = {job: _one_more(instance, gpus[job], job) for job in range(instance.num_jobs)}
    for _ in range(instance.num_gpus - int(gpus[:, :1].sum())):
        gaining = {job: row for job, row in more.items() if row is not None}
        if not gaining:
            break
        job = min(gaining, key=lambda one: int(gaining[one].sum() - gpus[one].sum()))
        gpus[job] = gaining[job]
        more[job] = _one_more(instance, gpus[job], job)
    return gpus


def _one_more(instance: ElasticFlowAllocation, held: IntArray, job: int) -> IntArray | None:
    """A job's GPUs with one more in slot 0; None where it is no faster with it."""
    if held[0] >= instance.num_gpus or not instance.gains[job, held[0]]:
        return None
    row = held.copy()
    row[0] += 1
    return _no_longer_than(row, instance.throughputs[job], float(instance.iterations[job]), first=1)


def one_pass(instance: Jobs) -> SlotPlan:
    """The plan of one pass over the jobs; where it does not serve them all, it is none."""
    return SlotPlan(gpus=served_most(instance)[0])
