"""Progressive filling, and what else the heuristics of ElasticFlow share.

Jobs are served one after another; each takes GPUs from what the ones before have left,
``free[t]`` in slot t.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from instances.elasticflow.sharing import DeadlineJobs
from instances.schema import FloatArray, IntArray

__all__ = ["ROUNDING", "fill_job", "fill_jobs", "needs", "power_of_two_below", "run_by_deadline"]

ROUNDING = 1e-12
"""Work counts as done when less than this part of it is missing, for the rounding of sums."""


def needs(instance: DeadlineJobs[Any]) -> FloatArray:
    """(n,) float: iterations with which each job's work counts as done."""
    return instance.iterations * (1 - ROUNDING)


def fill_job(curve: FloatArray, need: float, free: IntArray, *, powers_of_two: bool = False) -> IntArray | None:
    """Algorithm 1's ``ProgressiveFilling`` for one job.

    The job is tried at j = 1, 2, ... GPUs.  At level j it takes min(j, free GPUs) in each slot,
    from its last slot backwards, until its iterations are done; the first level at which they can
    be done is kept.

    Parameters
    ----------
    curve : (G+1,) float
        Iterations in one slot on 0 to G GPUs.
    need : float
        Iterations to do.
    free : (d,) int
        Free GPUs in each slot that the job may use, up to its deadline.
    powers_of_two : bool
        Whether the job can only run on a power of two: levels are 1, 2, 4, ..., and min() is
        rounded down to one.

    Returns
    -------
    (d,) int or None
        GPUs in each slot; None when no level is enough.

    Notes
    -----
    Complexity: O(G + d), by counting the slots with each number of free GPUs.
    """
    gpus = np.zeros(len(free), np.int64)
    if need <= 0:
        return gpus
    if powers_of_two:
        free = power_of_two_below(free)
    slots = np.bincount(free, minlength=len(curve))
    # At level j the slots with fewer free GPUs give what they have, the others give j.
    full = np.cumsum(slots[::-1])[::-1]
    done = np.cumsum(slots * curve) - slots * curve + full * curve
    levels = 2 ** np.arange(len(curve).bit_length()) if powers_of_two else np.arange(1, len(curve))
    levels = levels[levels < len(curve)]
    enough = levels[done[levels] >= need]
    if not len(enough):
        return None
    gpus[:] = np.minimum(enough[0], free)
    so_far = np.cumsum(curve[gpus[::-1]])
    unused = len(gpus) - 1 - int(np.searchsorted(so_far, need))
    gpus[: max(0, unused)] = 0
    return gpus


def power_of_two_below(counts: IntArray) -> IntArray:
    """The greatest power of two up to each count; 0 for 0."""
    exponents = np.frexp(np.maximum(counts, 1))[1] - 1
    return np.where(counts > 0, 2 ** exponents.astype(np.int64), 0)


def fill_jobs(instance: DeadlineJobs[Any], jobs: IntArray, *, powers_of_two: bool = False) -> IntArray | None:
    """Algorithm 1: the jobs in order of deadline, each filled into what the ones before have left.

    Returns
    -------
    (n, h) int or None
        GPUs in each slot, 0 for the jobs that are not in ``jobs``; None when one cannot finish.
    """
    gpus = np.zeros((instance.num_jobs, instance.horizon), np.int64)
    free = np.full(instance.horizon, instance.num_gpus)
    need = needs(instance)
    for job in jobs[np.argsort(instance.deadlines[jobs], kind="stable")]:
        deadline = instance.deadlines[job]
        filled = fill_job(instance.throughputs[job], need[job], free[:deadline], powers_of_two=powers_of_two)
        if filled is None:
            return None
        gpus[job, :deadline] = filled
        free[:deadline] -= filled
    return gpus


def run_by_deadline(instance: DeadlineJobs[Any], jobs: IntArray) -> IntArray:
    """In each slot the jobs take, in order of deadline, as many GPUs as make them faster.

    A job runs from slot 0 until its iterations are done or its deadline has come.

    Returns
    -------
    (n, h) int
        GPUs in each slot, 0 for the jobs that are not in ``jobs``; jobs may miss their deadlines.
    """
    gpus = np.zeros((instance.num_jobs, instance.horizon), np.int64)
    free = np.full(instance.horizon, instance.num_gpus)
    need = needs(instance)
    for job in jobs[np.argsort(instance.deadlines[jobs], kind="stable")]:
        deadline = instance.deadlines[job]
        best = instance.best_throughputs[job]
        # The fewest GPUs with the best throughput that each number of free GPUs allows.
        fastest = np.searchsorted(best, best)
        taken = fastest[free[:deadline]]
        before = np.cumsum(best[taken]) - best[taken]
        taken[before >= need[job]] = 0
        gpus[job, :deadline] = taken
        free[:deadline] -= taken
    return gpus
