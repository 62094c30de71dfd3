"""Fast methods for :class:`instances.aryl.base_allocation.BaseAllocation`.

All decide anew whenever a job completes: they look through the waiting jobs in an order, and start
those that fit.  None is returned where a job needs more GPUs than there are.
"""

from __future__ import annotations

import math

import numpy as np

from instances.aryl.base_allocation import BaseAllocation, BaseAllocationPlan
from instances.schema import FloatArray

__all__ = ["fifo", "shortest_job_first", "smallest_job_first"]


def shortest_job_first(instance: BaseAllocation) -> BaseAllocationPlan | None:
    """Phase one of Algorithm 2: the waiting job of the least running time is started if it fits.

    One whose demand exceeds the GPUs that are left is passed over, and the next is tried.  Elastic
    jobs are sorted by the time that they take on their base demand (line 5).  Ties go to the lowest
    job, which the paper leaves open.

    Guarantee: optimal where all jobs need equally many GPUs; none known otherwise.  It leaves no GPUs
    idle that a waiting job could use.
    Complexity: O(n^2).

    References
    ----------
    Aryl (EuroSys'23 as Lyra), section 5.2; Appendix D, Algorithm 2, lines 1 to 9 and 24.
    """
    return _started(instance, instance.running_times)


def smallest_job_first(instance: BaseAllocation) -> BaseAllocationPlan | None:
    """As :func:`shortest_job_first`, but by GPU-seconds.

    Guarantee: as of :func:`shortest_job_first`.  Complexity: O(n^2).

    References
    ----------
    Aryl (EuroSys'23 as Lyra), section 5.1, which names it beside the shortest job first.
    """
    return _started(instance, _gpu_seconds(instance))


def fifo(instance: BaseAllocation) -> BaseAllocationPlan | None:
    """First in, first out, the paper's Baseline: jobs start in their order, and none overtakes one that waits.

    Guarantee: none known.  Complexity: O(n^2).

    References
    ----------
    Aryl (EuroSys'23 as Lyra), section 7.1.
    """
    return _started(instance, np.arange(instance.num_jobs, dtype=float), overtake=False)


def local_search(instance: BaseAllocation, *, budget: int = 10_000) -> BaseAllocationPlan | None:
    """Move one job after the other to where in the order it lessens the average completion time most readily.

    Jobs begin in an order, each as early as those before it leave it room, even before some of them (the serial
    scheme of schedule generation).  The first order is the best of seven: the starts of :func:`shortest_job_first` and
    of :func:`smallest_job_first`, and by running time times a power of the demand.  Then each job in turn is tried at
    all places of the order and stays at the first that is better, until none is or ``budget`` is used up.

    Guarantee: never worse than :func:`shortest_job_first` and :func:`smallest_job_first`: in the order of a plan's
    starts no job begins later than in the plan; none known relative to the optimum.
    Complexity: O(n) for each job that is put into a schedule, some 7 n + ``budget`` times.

    Parameters
    ----------
    instance : BaseAllocation
    budget : int
        Jobs that are put into schedules after the first ones, each time anew.

    References
    ----------
    Kolisch, Serial and parallel resource-constrained project scheduling methods revisited (European Journal of
    Operational Research 90, 1996), for the scheme; moves of single jobs are the field's common neighbourhood.
    """
    if instance.too_large.size:
        return None
    left = np.flatnonzero(instance.running_times > 0)
    times = instance.running_times[left]

    def completed(order: list[int]) -> float:
        starts = instance.starts_in_order(order)
        return math.fsum(starts[job] for job in order)

    greedy = [_started(instance, keys) for keys in (instance.running_times, _gpu_seconds(instance))]
    keys = [plan.starts[left] for plan in greedy if plan is not None]
    keys += [times * instance.gpu_demands[left] ** power for power in (0.0, 0.25, 0.5, 0.75, 1.0)]
    orders = [left[np.argsort(key, kind="stable")].tolist() for key in keys]
    least, _, order = min((completed(order), number, order) for number, order in enumerate(orders))
    moved = True
    while moved:
        moved = False
        for job in order.copy():
            rest = [other for other in order if other != job]
            for place in range(len(order)):
                if budget < len(order):
                    return instance.in_order(order)
                budget -= len(order)
                tried = [*rest[:place], job, *rest[place:]]
                total = completed(tried)
                if total < least:
                    order, least, moved = tried, total, True
                    break
    return instance.in_order(order)


def _gpu_seconds(instance: BaseAllocation) -> FloatArray:
    return instance.running_times * instance.gpu_demands


def _started(instance: BaseAllocation, keys: FloatArray, *, overtake: bool = True) -> BaseAllocationPlan | None:
    """Jobs with work left by key, at time 0 and at every completion, each if it fits."""
    if instance.too_large.size:
        return None
    waiting = [job for job in np.argsort(keys, kind="stable").tolist() if instance.running_times[job] > 0]
    starts, ends = np.zeros(instance.num_jobs), np.zeros(instance.num_jobs)
    running: list[int] = []
    now, left = 0.0, instance.capacity
    while waiting:
        for job in waiting.copy():
            if instance.gpu_demands[job] <= left:
                waiting.remove(job)
                running.append(job)
                starts[job], ends[job] = now, now + instance.running_times[job]
                left -= int(instance.gpu_demands[job])
            elif not overtake:
                break
        now = float(min(ends[running]))
        left += sum(int(instance.gpu_demands[job]) for job in running if ends[job] <= now)
        running = [job for job in running if ends[job] > now]
    return BaseAllocationPlan(starts=starts)
