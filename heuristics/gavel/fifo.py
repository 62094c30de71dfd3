"""Fast methods for :class:`instances.gavel.fifo.Fifo`."""

from __future__ import annotations

import numpy as np

from heuristics.gavel.greedy import fastest_free_types, free_types
from heuristics.gavel.prices import priced
from heuristics.gavel.sharing import equal_share, heterogeneity_agnostic, isolated, matched_packing, random_packing
from instances.gavel.fifo import Fifo
from instances.gavel.sharing import Allocation

__all__ = [
    "agnostic_fifo",
    "backfilling",
    "equal_share",
    "fastest_free_type",
    "heterogeneity_agnostic",
    "isolated",
    "matched_packing",
    "priced_types",
    "random_packing",
]


def fastest_free_type(instance: Fifo) -> Allocation:
    """Jobs in the order of their arrival, each on the fastest type that is free for it.

    A job that finds too few free workers on every type ends the allocation: nobody overtakes it.  One that
    finds enough, but only on types on which it makes no steps, is dropped, and the next one's turn comes.
    This is what the authors' released code does in place of the policy's program.  Ties go to the lowest type.

    Guarantee: none known.  Complexity: O(n * k).

    References
    ----------
    Gavel (OSDI'20), section 4.2 (the policy), and the released code's FIFO policy.
    """
    return fastest_free_types(instance, range(instance.num_jobs), blocking=True)


def agnostic_fifo(instance: Fifo) -> Allocation:
    """Jobs in the order of their arrival, each on the lowest type with enough free workers, whatever its speed there.

    A job that finds too few on every type ends the allocation; one that makes no steps on those that have enough is
    dropped, as by :func:`fastest_free_type`.

    Guarantee: none.  Complexity: O(n * k).

    References
    ----------
    Gavel (OSDI'20), section 7.3 (the heterogeneity-agnostic FIFO).  The print does not say which of the free
    workers a job takes.
    """
    return free_types(instance, range(instance.num_jobs), (instance.throughputs > 0).astype(float), blocking=True)


def backfilling(instance: Fifo) -> Allocation:
    """:func:`fastest_free_type`, except that the jobs behind one that waits go on (ours).

    Guarantee: never worse than :func:`fastest_free_type`.  Complexity: O(n * k).
    """
    return fastest_free_types(instance, range(instance.num_jobs), blocking=False)


def priced_types(instance: Fifo) -> Allocation:
    """Jobs and pairs where they are worth most after the prices of workers: the best mean of such plans (ours).

    Guarantee: never worse than :func:`isolated`; without pairs, and unless 60 steps are too few, within 0.1% of the
    optimum.  Complexity: O(n * k + q * k * log(q * k)) per step.

    References
    ----------
    Dantzig and Wolfe, "Decomposition principle for linear programs" (1960), as in :mod:`heuristics.gavel.prices`.
    """
    worths = instance.worths
    alone = worths[:, None] * instance.throughputs
    together = (worths[instance.pairs][:, None, :] * instance.pair_throughputs).sum(axis=2)
    return priced(instance, np.concatenate([alone, together]))
