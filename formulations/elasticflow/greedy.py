"""Plans that are had in one pass over the jobs: what searches start from, and end with where they find no better.

The jobs come in some order, and each takes what it needs of the GPUs that those before it have left: the least level
with which it is done by its deadline, where in each slot it holds that level or what is left.  Of a curve that falls
somewhere, the best number of GPUs up to a level counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from instances.base import ROUNDING, TOLERANCE
from instances.elasticflow.sharing import DeadlineJobs
from instances.schema import BoolArray, IntArray

__all__ = ["least_gpu_slots", "served", "served_most"]

Jobs = DeadlineJobs[Any]


def served(instance: Jobs, order: IntArray, *, fast: bool = False) -> tuple[IntArray, BoolArray]:
    """Jobs served in an order.

    Parameters
    ----------
    instance : DeadlineJobs
    order : (n,) int
    fast : bool
        Whether each job takes all that speeds it up, so that it is done early, rather than the least level.

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
            held = _held(instance, job, free[: instance.deadlines[job]], fast)
            if held is not None:
                gpus[job, : len(held)] = held
                free[: len(held)] -= held
                done[job] = True
    return gpus, done


def _held(instance: Jobs, job: int, free: IntArray, fast: bool) -> IntArray | None:
    """GPUs of a job until its deadline, of those that are free; None where they do not do."""
    curve, most, need = instance.throughputs[job], instance.best_throughputs[job], instance.iterations[job]
    # The fewest GPUs that do as much as up to so many.
    fewest = np.maximum.accumulate(np.where(np.diff(most, prepend=-1.0) > 0, np.arange(len(most)), 0))
    low, high = 0, instance.num_gpus
    if curve[fewest[free]].sum() < need:
        return None
    while not fast and high - low > 1:
        level = (low + high) // 2
        low, high = (low, level) if curve[fewest[np.minimum(level, free)]].sum() >= need else (level, high)
    held: IntArray = fewest[np.minimum(high, free)]
    made = np.cumsum(curve[held])
    last = min(int(np.searchsorted(made, need)), len(held) - 1)
    held[last + 1 :] = 0
    # In the last slot, what is left to do may need fewer.
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
    found = [served(instance, order, fast=fast) for order in orders for fast in (False, True)]
    return max(found, key=lambda one: (int(one[1].sum()), -int(one[0].sum())))
