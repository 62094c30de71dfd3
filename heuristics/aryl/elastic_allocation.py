"""Fast methods for :class:`instances.aryl.elastic_allocation.ElasticAllocation`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from instances.arithmetic import product
from instances.aryl.elastic_allocation import ElasticAllocation, ElasticAllocationPlan
from instances.schema import LARGEST, FloatArray, IntArray

__all__ = ["afs", "base_charged_again", "dynamic_program", "gandiva", "lp_bound", "marginal_greedy"]


def dynamic_program(instance: ElasticAllocation) -> ElasticAllocationPlan:
    """Solve the multiple-choice knapsack by the pseudo-polynomial dynamic program (exact).

    ``best[c]`` is the greatest reduction that the jobs so far reach with at most c GPUs; each job
    tries every number of extra workers.  Ties go to fewer workers.

    Guarantee: optimal.  Complexity: O(capacity * sum_j max_extra[j]) time, O(n * capacity) space.

    References
    ----------
    Aryl (EuroSys'23 as Lyra), section 5.2, which names dynamic programming as its solver; Algorithm 2,
    lines 10 to 21, but for line 17.
    """
    return _knapsack(instance, np.zeros(instance.num_jobs, np.int64))


def base_charged_again(instance: ElasticAllocation) -> ElasticAllocationPlan:
    """Phase two with the weights of line 17: a job that grows is charged its base workers once more.

    The same dynamic program, in which w extra workers take ``(w + min_workers) * gpus_per_worker`` of
    the capacity, though base workers hold their GPUs already.  Some GPUs stay idle for it.

    Guarantee: feasible, and never better than :func:`dynamic_program`.
    Complexity: O(capacity * sum_j max_extra[j]) time, O(n * capacity) space.

    References
    ----------
    Aryl (EuroSys'23 as Lyra), Appendix D, Algorithm 2, lines 10 to 21 as printed.
    """
    return _knapsack(instance, instance.min_workers)


def _knapsack(instance: ElasticAllocation, charged: IntArray) -> ElasticAllocationPlan:
    """Return the best allocation where jobs that grow are charged so many workers besides the extra ones."""
    useful = int(product(instance.max_extra + charged, instance.gpus_per_worker))
    capacity = min(instance.capacity, useful)
    most = LARGEST // max(1, instance.num_jobs)
    if capacity > most:
        raise instance.refuse("capacity", f"got {capacity:,} useful GPUs, the dynamic program takes at most {most:,}")
    best = np.zeros(capacity + 1)
    choices = np.zeros((instance.num_jobs, capacity + 1), np.int32)
    for job, table in enumerate(instance.reductions):
        gpus, base = int(instance.gpus_per_worker[job]), int(charged[job])
        improved = best.copy()
        for extra in range(1, min(len(table) - 1, capacity // gpus - base) + 1):
            shift = (extra + base) * gpus
            candidate = best[: capacity + 1 - shift] + table[extra]
            better = candidate > improved[shift:]
            improved[shift:][better] = candidate[better]
            choices[job, shift:][better] = extra
        best = improved
    extra_workers = np.zeros(instance.num_jobs, np.int64)
    left = capacity
    for job in reversed(range(instance.num_jobs)):
        extra = int(choices[job, left])
        extra_workers[job] = extra
        left -= (extra + int(charged[job])) * int(instance.gpus_per_worker[job]) if extra else 0
    return ElasticAllocationPlan(extra_workers=extra_workers)


def afs(instance: ElasticAllocation) -> ElasticAllocationPlan:
    """Share as the paper's AFS does: one worker at a time to the job that gains the most throughput for each GPU of it.

    A job's throughput is what its running time says, relative to that on its base workers, because
    iterations of different jobs do not compare; the paper does not say.  Ties go to the lowest job.
    A job whose next worker does not fit, or gains nothing, is done.

    Guarantee: none known.  Complexity: O(n) for each worker.

    References
    ----------
    Aryl (EuroSys'23 as Lyra), section 7.1: AFS made to keep base demands and to go by workers.  It is
    not the AFS-L of :mod:`heuristics.afs.elastic_sharing`.
    """
    speeds = [
        np.divide(times[0], times, out=np.ones(len(times)), where=times > 0)
        for times in map(instance.times, range(instance.num_jobs))
    ]
    extra_workers = np.zeros(instance.num_jobs, np.int64)
    left = instance.capacity
    while True:
        best, grown = 0.0, -1
        for job, speed in enumerate(speeds):
            extra, gpus = int(extra_workers[job]), int(instance.gpus_per_worker[job])
            if extra < instance.max_extra[job] and gpus <= left:
                # Twelve digits, so that equal gains tie whatever rounding they went through.
                gain = float(f"{(speed[extra + 1] - speed[extra]) / gpus:.12g}")
                if gain > best:
                    best, grown = gain, job
        if grown < 0:
            return ElasticAllocationPlan(extra_workers=extra_workers)
        extra_workers[grown] += 1
        left -= int(instance.gpus_per_worker[grown])


def gandiva(instance: ElasticAllocation) -> ElasticAllocationPlan:
    """Share as the paper's Gandiva does: jobs grow one after the other as far as there is room, whatever it gains.

    Lowest job first, since the paper names no order.  Gandiva grows a job on the servers that hold it,
    while no job is pending; an instance has no servers, so all that is left is open to all.

    Guarantee: none known.  Complexity: O(n).

    References
    ----------
    Aryl (EuroSys'23 as Lyra), sections 2.3 and 7.1.
    """
    extra_workers = np.zeros(instance.num_jobs, np.int64)
    left = instance.capacity
    for job, gpus in enumerate(instance.gpus_per_worker.tolist()):
        extra_workers[job] = min(int(instance.max_extra[job]), left // gpus)
        left -= int(extra_workers[job]) * gpus
    return ElasticAllocationPlan(extra_workers=extra_workers)


@dataclass(frozen=True)
class _Steps:
    """Steps along the upper hulls of all jobs' reductions, steepest first."""

    job: list[int]
    extra: list[int]
    gpus: list[int]
    gain: list[float]


def marginal_greedy(instance: ElasticAllocation) -> ElasticAllocationPlan:
    """Give GPUs where they save the most time per GPU.

    Each job's reductions are replaced by their upper concave hull, whose steps are taken in order
    of gain per GPU (ties go to the lowest job).  A step that does not fit ends its job; the
    others go on.

    Guarantee: at least :func:`lp_bound` minus the largest gain of a single step of the hulls.  Where jobs
    scale linearly and no worker needs more than G <= capacity GPUs, at least (capacity - G + 1) / capacity
    of the optimum, and no more on some (docs/worst-cases.md).
    Complexity: O(C log C) for C choices in all.

    References
    ----------
    Kellerer, Pferschy, Pisinger, "Knapsack Problems" (2004), section 11.2 (greedy for the
    multiple-choice knapsack).
    """
    steps = _steps(instance)
    extra_workers = np.zeros(instance.num_jobs, np.int64)
    ended = np.zeros(instance.num_jobs, bool)
    left = instance.capacity
    for job, extra, gpus in zip(steps.job, steps.extra, steps.gpus, strict=True):
        if ended[job]:
            continue
        if gpus > left:
            ended[job] = True
            continue
        extra_workers[job] = extra
        left -= gpus
    return ElasticAllocationPlan(extra_workers=extra_workers)


def lp_bound(instance: ElasticAllocation) -> float:
    """Value of the linear relaxation, s: no allocation reduces running times by more.

    The steps of :func:`marginal_greedy` are taken until one does not fit; of that one, the
    fraction that fits.
    """
    steps = _steps(instance)
    left, bound = instance.capacity, 0.0
    for gpus, gain in zip(steps.gpus, steps.gain, strict=True):
        taken = min(1.0, left / gpus)
        bound += taken * gain
        left -= gpus
        if left <= 0:
            break
    return bound


def _steps(instance: ElasticAllocation) -> _Steps:
    found = []
    for job, table in enumerate(instance.reductions):
        corners = _upper_hull(table)
        for start, end in pairwise(corners):
            gpus = (end - start) * int(instance.gpus_per_worker[job])
            gain = float(table[end] - table[start])
            # Twelve digits, so that equal gains tie whatever rounding they went through.
            found.append((float(f"{-gain / gpus:.12g}"), job, end, gpus, gain))
    found.sort()
    return _Steps([f[1] for f in found], [f[2] for f in found], [f[3] for f in found], [f[4] for f in found])


def _upper_hull(table: FloatArray) -> list[int]:
    """Corners of the increasing part of the upper concave hull of ``(w, table[w])``, from 0."""
    corners = [0]
    for extra in range(1, len(table)):
        if table[extra] <= table[corners[-1]]:
            continue
        while len(corners) > 1:
            before, last = corners[-2], corners[-1]
            if (table[last] - table[before]) * (extra - before) > (table[extra] - table[before]) * (last - before):
                break
            corners.pop()
        corners.append(extra)
    return corners
