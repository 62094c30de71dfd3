"""Fast methods for :class:`instances.gavel.cost.Cost`."""

from __future__ import annotations

import numpy as np

from heuristics.gavel.greedy import most_worth_first, throughputs_together
from heuristics.gavel.sharing import equal_share, heterogeneity_agnostic, isolated, matched_packing, random_packing
from instances.gavel.cost import Cost
from instances.gavel.sharing import Allocation

__all__ = [
    "best_bargain",
    "equal_share",
    "fastest_first",
    "heterogeneity_agnostic",
    "isolated",
    "matched_packing",
    "random_packing",
]


def fastest_first(instance: Cost) -> Allocation:
    """Take the most throughput whatever it costs: rows and types in decreasing order of steps/s per worker.

    SLOs are not looked at, so the plan may miss them.  The baseline is the policy of the most total
    throughput, which :mod:`formulations.gavel.total_throughput` solves; this is the greedy method for it.

    Guarantee: none on the ratio.  Complexity: O((n + q) * k * log((n + q) * k)).

    References
    ----------
    Gavel (OSDI'20), section 7.3 (the baseline of the cost policies).
    """
    return most_worth_first(instance, throughputs_together(instance))


def best_bargain(instance: Cost) -> Allocation:
    """Only the row and type with the most steps per dollar, all the time; ties go to the lowest.

    Where no row makes a step, nothing runs.

    SLOs are not looked at, so the plan may miss them.

    Guarantee: optimal if no job has an SLO, because a ratio of sums is at most the largest of the
    ratios of its terms.  Complexity: O((n + q) * k).
    """
    bargains = np.where(instance.fits, throughputs_together(instance) / instance.prices, 0.0)
    x = np.zeros_like(bargains)
    if bargains.max(initial=0.0) > 0:
        x.ravel()[bargains.argmax()] = 1.0
    return Allocation(time_fractions=x)
