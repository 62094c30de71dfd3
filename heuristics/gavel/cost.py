"""Fast methods for :class:`instances.gavel.cost.Cost`."""

from __future__ import annotations

import numpy as np

from heuristics.gavel.greedy import most_worth_first, throughputs_together
from heuristics.gavel.prices import priced, throughputs_needed
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
    "priced_types",
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


def priced_types(instance: Cost) -> Allocation:
    """Jobs and pairs where they are worth most after costs and prices of workers: the best mean of such plans (ours).

    Every job with an SLO runs as long, and as fast, as that takes; others run where they make more steps per dollar
    than all do together.  Without SLOs the plan is :func:`best_bargain`'s.

    Guarantee: never worse than :func:`isolated`, where that meets all SLOs; optimal if no job has one.  Without pairs,
    and unless 60 steps are too few, it meets them wherever that is possible.
    Complexity: O(n * k**2 + q * k**2 * log(q * k)) per step.

    References
    ----------
    Dantzig and Wolfe, "Decomposition principle for linear programs" (1960), and Dinkelbach, "On nonlinear fractional
    programming" (1967), as in :mod:`heuristics.gavel.prices`.
    """
    if not instance.slo_jobs.size:
        return best_bargain(instance)
    needed = throughputs_needed(instance)
    return priced(instance, throughputs_together(instance), needed=needed, costs=instance.prices)
