"""Fast methods for :class:`instances.gavel.cost.Cost`."""

from __future__ import annotations

import numpy as np

from heuristics.gavel.greedy import throughputs_together
from heuristics.gavel.sharing import equal_share, heterogeneity_agnostic, isolated, matched_packing, random_packing
from instances.gavel.cost import Cost
from instances.gavel.sharing import Allocation

__all__ = ["best_bargain", "equal_share", "heterogeneity_agnostic", "isolated", "matched_packing", "random_packing"]


def best_bargain(instance: Cost) -> Allocation:
    """Only the row and type with the most steps per dollar, all the time; ties go to the lowest.

    SLOs are not looked at, so the plan may miss them.

    Guarantee: optimal if no job has an SLO, because a ratio of sums is at most the largest of the
    ratios of its terms.  Complexity: O((n + q) * k).
    """
    prices = np.outer(instance.row_scale_factors, instance.costs)
    bargains = np.where(instance.fits, throughputs_together(instance) / prices, 0.0)
    x = np.zeros_like(bargains)
    x.ravel()[bargains.argmax()] = 1.0
    return Allocation(time_fractions=x)
