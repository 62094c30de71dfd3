"""Fast methods for :class:`instances.gavel.finish_time_fairness.FinishTimeFairness`."""

from __future__ import annotations

import numpy as np

from heuristics.gavel import same_mix
from heuristics.gavel.levels import EPSILON, ROUGHLY, Levels, checked
from heuristics.gavel.sharing import equal_share, heterogeneity_agnostic, isolated, matched_packing, random_packing
from instances.gavel.finish_time_fairness import FinishTimeFairness
from instances.gavel.sharing import Allocation
from instances.schema import FloatArray

__all__ = [
    "ROUNDS",
    "equal_share",
    "heterogeneity_agnostic",
    "interior_point",
    "isolated",
    "matched_packing",
    "random_packing",
    "same_ratio",
]

ROUNDS = 8
"""Ratios that are tried at most."""


def same_ratio(instance: FinishTimeFairness) -> Allocation:
    """All jobs in the same mix of worker types, for as long as makes their rho equal.

    That is the policy's program with one type of the mix's speeds, as a scheduler has it that takes all
    workers for alike: the heterogeneity-agnostic baseline.

    With rho given, job m must receive ``steps_m / (rho * D_m - elapsed_m)`` steps/s, where D_m is its
    finish time in isolation; the least rho that fits is found by bisection to full precision.  Jobs that
    have finished, or run nowhere alone, get no time; nor do those whose D_m is 0 or infinite as a float.

    Guarantee: the least greatest rho of all plans in which every job runs alone in its mix; none
    known against others.  Complexity: O(n * k) for each of about 60 halvings.

    References
    ----------
    Gavel (OSDI'20), section 7.3 (the heterogeneity-agnostic finish-time fairness).
    """
    alone = same_mix.times(instance)
    served = (alone > 0) & (instance.isolated_times > 0) & np.isfinite(instance.isolated_times)
    isolated = np.where(served, instance.isolated_times, 1.0)

    def fractions(rho: float) -> FloatArray:
        left = rho * isolated - instance.elapsed
        needed: FloatArray = np.divide(alone, left, out=np.where(served, np.inf, 0.0), where=served & (left > 0))
        return needed

    def fits(rho: float) -> bool:
        needed = fractions(rho)
        return bool(np.isfinite(needed).all()) and same_mix.load(instance, needed) <= 1

    if not served.any():
        return same_mix.allocation(instance, np.zeros(instance.num_jobs))
    # At a lower rho some job would have to be done by now.
    low = float((instance.elapsed / isolated)[served].max())
    high = float(instance.finish_time_ratios(instance.isolated_share())[served].max())
    while not fits(high):
        low, high = high, max(2 * high, np.finfo(float).tiny)
    while low < (middle := low / 2 + high / 2) < high:
        low, high = (low, middle) if fits(middle) else (middle, high)
    return same_mix.allocation(instance, fractions(high))


def interior_point(instance: FinishTimeFairness, *, epsilon: float = EPSILON) -> Allocation:
    """Find the least rho by Newton's method on prices (:mod:`heuristics.gavel.levels`).

    At a ratio rho job m demands ``steps_m / (rho * D_m - elapsed_m)`` steps/s, as in :func:`same_ratio`, whose ratio is
    tried first.  The prices of throughputs that belong to the greatest multiple of these that some allocation gives
    limit all allocations; the least ratio at which what is demanded is within that limit is tried next.

    Guarantee: never worse than :func:`same_ratio`.  Complexity: that of
    :func:`heuristics.gavel.max_min_fairness.interior_point`, at most ``ROUNDS`` times.

    Raises
    ------
    ValueError
        When ``epsilon`` is not at least 1e-5 and less than 0.1.
    """
    checked(epsilon)
    plan = same_ratio(instance)
    weighed = np.zeros(instance.num_jobs, bool)
    weighed[instance.weighed] = True
    if not weighed.any():
        return plan
    isolated = np.where(weighed, instance.isolated_times, 1.0)

    def demand(ratio: float) -> FloatArray:
        left = ratio * isolated - instance.elapsed
        asked: FloatArray = np.divide(
            instance.steps, left, out=np.where(weighed, np.inf, 0.0), where=weighed & (left > 0)
        )
        return asked

    least = float((instance.elapsed / isolated)[weighed].max())
    ratio = most = float(instance.finish_time_ratios(plan)[weighed].max())
    levels = Levels(instance)
    for one in range(ROUNDS):
        got = levels.attain(demand(ratio), epsilon if one else ROUGHLY * epsilon)
        plan = min(plan, got.allocation, key=instance.objective)
        low, high = least, most
        while low < (middle := low / 2 + high / 2) < high:
            asked = demand(middle)
            within = bool(np.isfinite(asked).all()) and float(asked @ got.prices) <= got.limit
            low, high = (low, middle) if within else (middle, high)
        moved, ratio, least = high > ratio, high, low
        reached = float(instance.finish_time_ratios(plan)[weighed].max())
        if reached <= ratio * (1 + epsilon) or (one > 1 and not moved):
            break
    return plan
