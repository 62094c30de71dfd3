"""Fast methods for :class:`instances.gavel.total_throughput.TotalThroughput`."""

from __future__ import annotations

from heuristics.gavel.greedy import most_worth_first, throughputs_together
from heuristics.gavel.prices import priced
from heuristics.gavel.sharing import equal_share, heterogeneity_agnostic, isolated, matched_packing, random_packing
from instances.gavel.sharing import Allocation
from instances.gavel.total_throughput import TotalThroughput

__all__ = [
    "equal_share",
    "fastest_first",
    "heterogeneity_agnostic",
    "isolated",
    "matched_packing",
    "priced_types",
    "random_packing",
]


def fastest_first(instance: TotalThroughput) -> Allocation:
    """Rows and types in decreasing order of steps/s per worker, each for as long as still fits (ours).

    Guarantee: half of the optimum if there are no pairs and all scale factors are 1 (the program is
    then a bipartite b-matching); none known otherwise.
    Complexity: O((n + q) * k * log((n + q) * k)).

    References
    ----------
    Avis, "A survey of heuristics for the weighted matching problem" (1983), on greedy matching.
    """
    return most_worth_first(instance, throughputs_together(instance))


def priced_types(instance: TotalThroughput) -> Allocation:
    """Jobs and pairs where they are worth most after the prices of workers: the best mean of such plans (ours).

    Guarantee: never worse than :func:`isolated`; without pairs, and unless 60 steps are too few, within 0.1% of the
    optimum.  Complexity: O(n * k + q * k * log(q * k)) per step.

    References
    ----------
    Dantzig and Wolfe, "Decomposition principle for linear programs" (1960), as in :mod:`heuristics.gavel.prices`.
    """
    return priced(instance, throughputs_together(instance))
