"""Fast methods for :class:`instances.gavel.makespan.Makespan`."""

from __future__ import annotations

from heuristics.gavel import same_mix
from heuristics.gavel.sharing import equal_share, heterogeneity_agnostic, isolated, matched_packing, random_packing
from instances.gavel.makespan import Makespan
from instances.gavel.sharing import Allocation

__all__ = ["equal_share", "heterogeneity_agnostic", "isolated", "matched_packing", "random_packing", "same_finish"]


def same_finish(instance: Makespan) -> Allocation:
    """All jobs in the same mix of worker types, for as long as makes them finish together (ours).

    In its mix alone a job would take d_m s.  Running for d_m / T of the time it takes T s, and T is
    the least that fits: the longest d_m, or what fills the first pool.

    Guarantee: the least makespan of all plans in which every job runs alone in its mix; none known
    against others.  Complexity: O(n * k).
    """
    alone = instance.steps / same_mix.mixed_throughputs(instance)
    return same_mix.allocation(instance, alone / same_mix.load(instance, alone))
