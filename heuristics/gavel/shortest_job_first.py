"""Fast methods for :class:`instances.gavel.shortest_job_first.ShortestJobFirst`."""

from __future__ import annotations

import numpy as np

from heuristics.gavel.greedy import fastest_free_types
from heuristics.gavel.sharing import equal_share, heterogeneity_agnostic, isolated, matched_packing, random_packing
from instances.gavel.sharing import Allocation
from instances.gavel.shortest_job_first import ShortestJobFirst

__all__ = ["equal_share", "heterogeneity_agnostic", "isolated", "matched_packing", "random_packing", "shortest_first"]


def shortest_first(instance: ShortestJobFirst) -> Allocation:
    """Jobs by their time left on their fastest type, each on the fastest type that is free for it.

    Jobs that find too few free workers are passed over, so the cluster is kept busy, although the
    objective asks only for the first.  Finished jobs get no time.  Ties go to the lowest job and type.

    Guarantee: optimal unless a job runs faster in a pair than alone.  Complexity: O(n * (k + log n)).

    References
    ----------
    Gavel (OSDI'20), section 4.2 (the policy).
    """
    fastest = instance.fastest_throughputs
    times = np.divide(instance.steps, fastest, out=np.full(instance.num_jobs, np.inf), where=fastest > 0)
    order = [job for job in np.argsort(times, kind="stable").tolist() if instance.active[job]]
    return fastest_free_types(instance, order, blocking=False)
