"""What every policy has without a search: a plan, and bounds of two relaxations.

A job that runs for a part t_m <= 1 of the time has a throughput of at most g_m t_m, with g_m the greatest that it has
anywhere, and takes s_m t_m of the W workers, with s_m its scale factor, or half of that where it may be in pairs.  So
no plan is worth more than

    max   sum_m w_m g_m t_m      s.t.  sum_m s_m t_m <= W,  0 <= t <= 1:  a knapsack of parts, solved by Dantzig's rule;
    max   min_m c_m g_m t_m      over the same times: all levels are equal, unless a job runs all the time.

References
----------
Dantzig, "Discrete-variable extremum problems" (1957).
"""

from __future__ import annotations

import numpy as np

from instances.gavel.round_assignment import RoundAssignment
from instances.gavel.sharing import Allocation, Sharing
from instances.schema import FloatArray

__all__ = ["isolated_share", "level_at_most", "worth_at_most"]


def isolated_share(instance: Sharing) -> Allocation:
    """Return the plan that every policy has at hand: feasible where only the shared constraints are asked for."""
    return instance.isolated_share()


def worth_at_most(instance: Sharing | RoundAssignment, most: FloatArray) -> float:
    """Return what no sum of the jobs' worths exceeds, where each is worth (n,) ``most`` if it runs all the time."""
    workers = _workers_each(instance)
    order = np.argsort(-most / workers)
    taken = np.cumsum(workers[order])
    parts = np.clip(1 - (taken - instance.num_workers.sum()) / workers[order], 0, 1)
    return float((most[order] * parts).sum())


def level_at_most(instance: Sharing, most: FloatArray) -> float:
    """Return what the least level of no plan exceeds, where each job's is (n,) ``most`` if it runs all the time."""
    least = float(most.min(initial=np.inf))
    if least <= 0 or not np.isfinite(least):
        return least
    return min(least, float(instance.num_workers.sum() / (_workers_each(instance) / most).sum()))


def _workers_each(instance: Sharing | RoundAssignment) -> FloatArray:
    """(n,) float: workers that each job takes at least while it runs; those of a pair are shared by two."""
    paired = np.zeros(instance.num_jobs, bool)
    paired[instance.pairs.ravel()] = True
    workers: FloatArray = np.where(paired, instance.scale_factors / 2, instance.scale_factors)
    return workers
