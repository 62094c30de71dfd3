"""Fast methods for :class:`instances.gavel.fifo.Fifo`."""

from __future__ import annotations

from heuristics.gavel.greedy import fastest_free_types
from heuristics.gavel.sharing import equal_share, heterogeneity_agnostic, isolated, matched_packing, random_packing
from instances.gavel.fifo import Fifo
from instances.gavel.sharing import Allocation

__all__ = [
    "backfilling",
    "equal_share",
    "fastest_free_type",
    "heterogeneity_agnostic",
    "isolated",
    "matched_packing",
    "random_packing",
]


def fastest_free_type(instance: Fifo) -> Allocation:
    """Jobs in the order of their arrival, each on the fastest type that is free for it.

    A job that finds too few free workers ends the allocation: nobody overtakes it.  This is what the
    authors' released code does in place of the policy's program, except that a job is never put on a
    type on which it makes no steps.  Ties go to the lowest type.

    Guarantee: none known.  Complexity: O(n * k).

    References
    ----------
    Gavel (OSDI'20), section 4.2 (the policy), and the released code's FIFO policy.
    """
    return fastest_free_types(instance, range(instance.num_jobs), blocking=True)


def backfilling(instance: Fifo) -> Allocation:
    """:func:`fastest_free_type`, except that the jobs behind one that waits go on (ours).

    Guarantee: never worse than :func:`fastest_free_type`.  Complexity: O(n * k).
    """
    return fastest_free_types(instance, range(instance.num_jobs), blocking=False)
