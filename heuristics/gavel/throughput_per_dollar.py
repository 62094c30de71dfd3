"""Fast methods for :class:`instances.gavel.throughput_per_dollar.ThroughputPerDollar`."""

from __future__ import annotations

from heuristics.gavel.greedy import most_worth_first, throughputs_together
from heuristics.gavel.prices import priced, throughputs_needed
from heuristics.gavel.sharing import equal_share, heterogeneity_agnostic, isolated, matched_packing, random_packing
from instances.gavel.sharing import Allocation
from instances.gavel.throughput_per_dollar import ThroughputPerDollar

__all__ = [
    "best_bargain_first",
    "equal_share",
    "heterogeneity_agnostic",
    "isolated",
    "matched_packing",
    "priced_types",
    "random_packing",
]


def best_bargain_first(instance: ThroughputPerDollar) -> Allocation:
    """Rows and types in decreasing order of steps/s per dollar and worker, each for as long as still fits (ours).

    SLOs are not looked at, so the plan may miss them.

    Guarantee: half of the optimum without SLOs if there are no pairs and all scale factors are 1 (the
    program is then a bipartite b-matching); none known otherwise.
    Complexity: O((n + q) * k * log((n + q) * k)).

    References
    ----------
    Avis, "A survey of heuristics for the weighted matching problem" (1983), on greedy matching.
    """
    return most_worth_first(instance, throughputs_together(instance) / instance.costs)


def priced_types(instance: ThroughputPerDollar) -> Allocation:
    """Jobs and pairs where they are worth most after the prices of workers: the best mean of such plans (ours).

    Every job with an SLO runs as long, and as fast, as that takes in each of the plans.

    Guarantee: never worse than :func:`isolated`, where that meets all SLOs; without pairs, and unless 60 steps are too
    few, it meets them wherever that is possible and is within 0.1% of the optimum.
    Complexity: O(n * k**2 + q * k**2 * log(q * k)) per step.

    References
    ----------
    Dantzig and Wolfe, "Decomposition principle for linear programs" (1960), as in :mod:`heuristics.gavel.prices`.
    """
    worth = throughputs_together(instance) / instance.costs
    return priced(instance, worth, needed=throughputs_needed(instance))
