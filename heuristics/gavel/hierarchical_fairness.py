"""Fast allocations to compare with :class:`instances.gavel.hierarchical_fairness.HierarchicalFairness`.

They are those of :mod:`heuristics.gavel.sharing`, as plans of this problem.  None knows of entities.
"""

from __future__ import annotations

from heuristics.gavel import sharing
from instances.gavel.hierarchical_fairness import HierarchicalAllocation, HierarchicalFairness


def isolated(instance: HierarchicalFairness) -> HierarchicalAllocation:
    """X_isolated: a 1/n share of every pool for each job (:func:`heuristics.gavel.sharing.isolated`).

    Guarantee: none on the levels of entities.  Complexity: O(n * k).

    References
    ----------
    Gavel (OSDI'20), section 4.1.
    """
    return instance.plan(sharing.isolated(instance))


def equal_share(instance: HierarchicalFairness) -> HierarchicalAllocation:
    """One fraction of time for all jobs (:func:`heuristics.gavel.sharing.equal_share`).

    Guarantee: none known.  Complexity: O(n * k).

    References
    ----------
    Gavel (OSDI'20), section 4.1.
    """
    return instance.plan(sharing.equal_share(instance))


def heterogeneity_agnostic(instance: HierarchicalFairness) -> HierarchicalAllocation:
    """Max-min fair worker time by the jobs' weights (:func:`heuristics.gavel.sharing.heterogeneity_agnostic`).

    Guarantee: none on throughputs.  Complexity: that of the shared function.

    References
    ----------
    Gavel (OSDI'20), sections 4.1 and 7.
    """
    return instance.plan(sharing.heterogeneity_agnostic(instance))
