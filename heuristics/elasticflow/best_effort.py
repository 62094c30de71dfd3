"""Fast methods for :class:`instances.elasticflow.best_effort.BestEffort`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from heuristics.elasticflow.filling import fill_jobs, needs
from instances.elasticflow.best_effort import BestEffort
from instances.elasticflow.sharing import SlotPlan
from instances.schema import FloatArray, IntArray

__all__ = ["minimum_shares_first", "shortest_first"]


def minimum_shares_first(instance: BestEffort) -> SlotPlan | None:
    """Minimum satisfactory shares of the jobs with deadlines, then idle GPUs one by one to best-effort jobs.

    Jobs with deadlines get their shares by Algorithm 1.  In each slot, what they leave goes one GPU at a
    time to the unfinished best-effort job whose throughput that GPU raises most, in proportion to what it
    does on one GPU.  Ties go to the job with the least left to do, in slots on one GPU, then to the
    lowest.

    The paper puts best-effort jobs into the queue of Algorithm 2 with infinite deadlines; what its marginal
    return is without a last slot it leaves open, and the rule above is this library's reading.

    Guarantee: none known.  None when Algorithm 1 finds no shares, or a best-effort job is not done in the
    slots that are planned for it.  Complexity: O(n log n + n (G + h) + h n G).

    References
    ----------
    ElasticFlow (ASPLOS'23), section 4.4 (jobs without deadlines), with Algorithms 1 and 2.
    """

    def give(free: int, left: FloatArray) -> IntArray:
        held = np.zeros(instance.num_jobs, np.int64)
        gains = np.diff(instance.throughputs, axis=1)
        alone = instance.throughputs[:, 1]
        with np.errstate(divide="ignore", invalid="ignore"):
            slots = np.where(alone > 0, left / alone, np.inf)
            relative = np.where(alone[:, None] > 0, gains / alone[:, None], np.where(gains > 0, np.inf, 0.0))
        for _ in range(free):
            gain = np.where(left > 0, relative[np.arange(len(held)), np.minimum(held, instance.num_gpus - 1)], 0.0)
            gain[held == instance.num_gpus] = 0.0
            # The last key is the first to sort by.
            job = int(np.lexsort((slots, -gain))[0])
            if gain[job] <= 0:
                break
            held[job] += 1
        return held

    return _after_shares(instance, give)


def shortest_first(instance: BestEffort) -> SlotPlan | None:
    """Let, in each slot, the best-effort job with the least left take every GPU that makes it faster (ours).

    The least left is counted in slots at the job's fastest.  Guarantee and None as
    :func:`minimum_shares_first`.  Complexity: O(n log n + n (G + h) + h n log n).
    """
    best = instance.best_throughputs

    def give(free: int, left: FloatArray) -> IntArray:
        held = np.zeros(instance.num_jobs, np.int64)
        with np.errstate(divide="ignore", invalid="ignore"):
            slots = np.where(best[:, -1] > 0, left / best[:, -1], np.inf)
        for job in np.argsort(slots, kind="stable"):
            if left[job] > 0:
                held[job] = np.searchsorted(best[job], best[job, free])
                free -= int(held[job])
        return held

    return _after_shares(instance, give)


Give = Callable[[int, FloatArray], IntArray]
"""From the idle GPUs of a slot and the iterations that best-effort jobs have left to their GPUs in it."""


def _after_shares(instance: BestEffort, give: Give) -> SlotPlan | None:
    """Shares by Algorithm 1, then what ``give`` hands out, slot by slot."""
    gpus = fill_jobs(instance, np.flatnonzero(~instance.best_effort))
    if gpus is None:
        return None
    left = np.where(instance.best_effort, needs(instance), 0.0)
    for slot in range(instance.horizon):
        left[instance.deadlines <= slot] = 0.0
        held = give(instance.num_gpus - int(gpus[:, slot].sum()), left)
        gpus[:, slot] += held
        left = np.maximum(0.0, left - instance.throughputs[np.arange(instance.num_jobs), held])
    done = instance.work(gpus) >= needs(instance)
    return SlotPlan(gpus=gpus) if done.all() else None
