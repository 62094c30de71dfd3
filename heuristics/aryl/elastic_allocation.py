"""Fast methods for :class:`instances.aryl.elastic_allocation.ElasticAllocation`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from instances.aryl.elastic_allocation import ElasticAllocation, ElasticAllocationPlan
from instances.schema import FloatArray

__all__ = ["dynamic_program", "lp_bound", "marginal_greedy"]


def dynamic_program(instance: ElasticAllocation) -> ElasticAllocationPlan:
    """The pseudo-polynomial dynamic program for the multiple-choice knapsack (exact).

    ``best[c]`` is the greatest reduction that the jobs so far reach with at most c GPUs; each job
    tries every number of extra workers.  Ties go to fewer workers.

    Guarantee: optimal.  Complexity: O(capacity * sum_j max_extra[j]) time, O(n * capacity) space.

    References
    ----------
    Aryl (EuroSys'23 as Lyra), section 5.2, which names dynamic programming as its solver.
    """
    useful = int(instance.max_extra @ instance.gpus_per_worker)
    capacity = min(instance.capacity, useful)
    best = np.zeros(capacity + 1)
    choices = np.zeros((instance.num_jobs, capacity + 1), np.int32)
    for job, table in enumerate(instance.reductions):
        gpus = int(instance.gpus_per_worker[job])
        improved = best.copy()
        for extra in range(1, min(len(table) - 1, capacity // gpus) + 1):
            shift = extra * gpus
            candidate = best[: capacity + 1 - shift] + table[extra]
            better = candidate > improved[shift:]
            improved[shift:][better] = candidate[better]
            choices[job, shift:][better] = extra
        best = improved
    extra_workers = np.zeros(instance.num_jobs, np.int64)
    left = capacity
    for job in reversed(range(instance.num_jobs)):
        extra_workers[job] = choices[job, left]
        left -= int(extra_workers[job]) * int(instance.gpus_per_worker[job])
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

    Guarantee: at least :func:`lp_bound` minus the largest gain of a single step of the hulls.
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
