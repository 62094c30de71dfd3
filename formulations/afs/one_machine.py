"""One machine that does all work in order of size: bounds of schedules that share one resource.

Jobs of a schedule are worth some seconds each of a machine, in such a way that all of them together do no more than
the machine does.  Preemptive shortest-remaining-time-first, the best on it, then bounds the sum of the ends.  So do
the mean times at which jobs are worked on, of which the smallest job first has the least sum, plus half of what each
job takes at the least [1]_: a job that does its work no faster than in ``a`` s has at most a part x / a of it left x
s before its end, so that it ends no sooner than its mean busy time and a / 2.

References
----------
.. [1] W. L. Eastman, S. Even, I. M. Isaacs, "Bounds for the optimal scheduling of n jobs on m processors", Management
   Science 11(2), 1964; with releases A. S. Schulz, M. Skutella, "Scheduling unrelated machines by randomized rounding",
   SIAM Journal on Discrete Mathematics 15(4), 2002.
"""

from __future__ import annotations

import heapq
import math

from instances.schema import FloatArray

__all__ = ["mean_busy_times", "shortest_remaining_first", "sum_of_ends"]


def sum_of_ends(releases: FloatArray, sizes: FloatArray, alone: FloatArray) -> float:
    """Return the bound on the sum of the ends: the better of both, or of each job alone, s.

    Parameters
    ----------
    releases : (n,) float
        Ascending, s.
    sizes : (n,) float
        What the machine needs for each job, s.
    alone : (n,) float
        What each job needs at the least, s.
    """
    halves = mean_busy_times(releases, sizes) + float(alone.sum()) / 2
    return max(float((releases + alone).sum()), shortest_remaining_first(releases, sizes), halves)


def shortest_remaining_first(releases: FloatArray, sizes: FloatArray) -> float:
    """Return the sum of the ends on one machine, the least of all schedules on it, s."""
    waiting: list[float] = []
    total, now = 0.0, -math.inf
    arrivals = [*releases.tolist(), math.inf]
    for number, size in enumerate(sizes.tolist()):
        now = arrivals[number]
        heapq.heappush(waiting, size)
        room = arrivals[number + 1] - now
        while waiting and waiting[0] <= room:
            size = heapq.heappop(waiting)
            room -= size
            now += size
            total += now
        if waiting:
            heapq.heapreplace(waiting, waiting[0] - room)
    return total


def mean_busy_times(releases: FloatArray, sizes: FloatArray) -> float:
    """Return the least sum of the mean times at which one machine works on each job, s: the smallest job first."""
    waiting: list[tuple[float, int]] = []
    left = sizes.tolist()
    total = 0.0
    arrivals = [*releases.tolist(), math.inf]
    for number, size in enumerate(sizes.tolist()):
        now = arrivals[number]
        if size == 0:
            total += now
        else:
            heapq.heappush(waiting, (size, number))
        while waiting and now < arrivals[number + 1]:
            whole, job = waiting[0]
            passed = min(left[job], arrivals[number + 1] - now)
            total += passed / whole * (now + passed / 2)
            now += passed
            left[job] -= passed
            if left[job] > 0:
                break
            heapq.heappop(waiting)
    return total
