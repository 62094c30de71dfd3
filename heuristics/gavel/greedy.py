"""Greedy allocations of whole workers and of whole shares, for several of Gavel's policies."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from instances.gavel.sharing import Allocation, Sharing
from instances.schema import FloatArray

__all__ = ["fastest_free_types", "free_types", "most_worth_first", "throughputs_together"]


def fastest_free_types(instance: Sharing, order: Iterable[int], *, blocking: bool) -> Allocation:
    """Jobs in the given order, each all the time on its fastest type with enough free workers (:func:`free_types`)."""
    return free_types(instance, order, instance.throughputs, blocking=blocking)


def free_types(instance: Sharing, order: Iterable[int], worth: FloatArray, *, blocking: bool) -> Allocation:
    """Jobs in the given order, each all the time on the type of greatest worth for it with enough free workers.

    Parameters
    ----------
    instance : Sharing
    order : iterable of int
        Jobs.
    worth : (n, k) float
        At least 0; a type of worth 0 is none for a job.
    blocking : bool
        Whether a job that no type has enough free workers for ends the allocation; else the jobs behind it go on.
        They always do behind a job that finds workers, but only such as are worth nothing for it.

    Notes
    -----
    Ties go to the lowest type.  Complexity: O(n * k).
    """
    free = instance.num_workers.copy()
    x = np.zeros((instance.num_jobs + instance.num_pairs, instance.num_types))
    for job in order:
        room = free[instance.pools] >= instance.scale_factors[job]
        left = np.where(room, worth[job], 0.0)
        kind = int(left.argmax())
        if left[kind] > 0:
            x[job, kind] = 1.0
            free[instance.pools[kind]] -= instance.scale_factors[job]
        elif blocking and not room.any():
            break
    return Allocation(time_fractions=x)


def most_worth_first(instance: Sharing, worth: FloatArray) -> Allocation:
    """Entries X[r, j] in decreasing order of worth per worker, each as large as still fits.

    Parameters
    ----------
    instance : Sharing
    worth : (n+q, k) float
        What a row is worth when it runs on a type all the time, at least 0.

    Notes
    -----
    Ties go to the lowest row, then the lowest type.  Complexity: O((n + q) * k * log((n + q) * k)).
    """
    n, k = instance.num_jobs, instance.num_types
    density = np.where(instance.fits, worth / instance.row_scale_factors[:, None], 0.0).ravel()
    order = np.flatnonzero(density > 0)
    order = order[np.argsort(-density[order], kind="stable")]
    time, free = [1.0] * n, instance.num_workers.astype(float).tolist()
    jobs = [(job, job) for job in range(n)] + [(one, other) for one, other in instance.pairs.tolist()]
    pools, widths = instance.pools.tolist(), instance.row_scale_factors.tolist()
    x = np.zeros((n + instance.num_pairs, k))
    for entry in order.tolist():
        row, kind = divmod(entry, k)
        one, other = jobs[row]
        pool, workers = pools[kind], widths[row]
        share = min(time[one], time[other], free[pool] / workers)
        if share > 0:
            x[row, kind] = share
            time[one] -= share
            if other != one:
                time[other] -= share
            free[pool] = max(0.0, free[pool] - share * workers)
    return Allocation(time_fractions=x)


def throughputs_together(instance: Sharing) -> FloatArray:
    """(n+q, k) float: steps/s of all jobs of a row together."""
    return np.concatenate([instance.throughputs, instance.pair_throughputs.sum(axis=2)])
