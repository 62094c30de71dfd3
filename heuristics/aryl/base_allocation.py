"""Fast methods for :class:`instances.aryl.base_allocation.BaseAllocation`.

All decide anew whenever a job completes: they look through the waiting jobs in an order, and start
those that fit.  None is returned where a job needs more GPUs than there are.
"""

from __future__ import annotations

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
    return _started(instance, instance.running_times * instance.gpu_demands)


def fifo(instance: BaseAllocation) -> BaseAllocationPlan | None:
    """First in, first out, the paper's Baseline: jobs start in their order, and none overtakes one that waits.

    Guarantee: none known.  Complexity: O(n^2).

    References
    ----------
    Aryl (EuroSys'23 as Lyra), section 7.1.
    """
    return _started(instance, np.arange(instance.num_jobs, dtype=float), overtake=False)


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
