"""Fast methods for :class:`instances.gavel.shortest_job_first.ShortestJobFirst`."""

from __future__ import annotations

import numpy as np

from heuristics.gavel.greedy import fastest_free_types, most_worth_first
from heuristics.gavel.sharing import equal_share, heterogeneity_agnostic, isolated, matched_packing, random_packing
from instances.gavel.sharing import Allocation
from instances.gavel.shortest_job_first import ShortestJobFirst

__all__ = [
    "equal_share",
    "heterogeneity_agnostic",
    "isolated",
    "matched_packing",
    "random_packing",
    "shortest_first",
    "shortest_first_in_pairs",
]


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


def shortest_first_in_pairs(instance: ShortestJobFirst) -> Allocation:
    """Jobs alone and pairs by the least time left of a job in them, each where that is least, as large as still fits.

    Some jobs run faster beside another than alone, and :func:`shortest_first` does not look at pairs.  Ties go to the
    lowest row, jobs before pairs, then to the lowest type.

    Guarantee: optimal: the first entry has its job's whole time, and no job finishes sooner than at its greatest
    throughput.  Complexity: O((n + q) * k * log((n + q) * k)).

    References
    ----------
    Gavel (OSDI'20), section 4.2, for the policy; the order of entries is the library's own.
    """
    throughputs = np.concatenate([instance.throughputs[:, :, None].repeat(2, axis=2), instance.pair_throughputs])
    jobs = np.concatenate([np.arange(instance.num_jobs)[:, None].repeat(2, axis=1), instance.pairs])
    runs = (throughputs > 0) & instance.active[jobs][:, None, :] & instance.fits[:, :, None]
    steps = np.broadcast_to(instance.steps[jobs][:, None, :], throughputs.shape)
    times = np.divide(steps, throughputs, out=np.full(throughputs.shape, np.inf), where=runs).min(axis=2)
    least = times.min(initial=np.inf)
    sooner = np.divide(least, times, out=np.ones_like(times), where=times > least) * np.isfinite(times)
    return most_worth_first(instance, sooner * instance.row_scale_factors[:, None])
