"""Fast methods for :class:`instances.aryl.placement.ArylPlacement`."""

from __future__ import annotations

from bisect import bisect_left, insort

import numpy as np

from instances.aryl.placement import ArylPlacement, ArylPlacementPlan
from instances.schema import BoolArray

__all__ = ["best_fit_decreasing", "naive_best_fit_decreasing"]


def best_fit_decreasing(instance: ArylPlacement) -> ArylPlacementPlan:
    """Largest workers first, each on the fullest server of its preferred group that still fits it.

    Workers are taken by GPUs, largest first (ties: lowest job), those of heterogeneous jobs after all
    others.  In the preferred group (inference for elastic jobs, but for base workers of heterogeneous
    ones; training for others) a worker goes to the opened server with the fewest free GPUs that fits
    it; if none does, the smallest unopened one that fits is opened (ties: lowest server).  Servers in use
    are opened ones.  Only when neither exists the other group is tried, in the same way.  On inference
    servers flexible workers only join flexible workers, and others only others or servers in use.  A
    worker that fits nowhere is left out, and the plan then breaks ``all_placed``.

    Guarantee: none known for two groups.  On one group of equal servers it is best fit decreasing,
    which opens at most 11/9 of the fewest possible servers plus 4; when every size divides the
    next larger one and the server's (1, 2, 4 and 8 GPUs), it opens the fewest.
    Complexity: O(m (log s + s)) for m times that a job takes a server, the s for keeping a list in order.

    References
    ----------
    Aryl (EuroSys'23 as Lyra), section 5.3, and section 6 for heterogeneous jobs.  Johnson, "Near-optimal
    bin packing algorithms" (1973).  Coffman, Garey, Johnson, "Bin packing with divisible item sizes"
    (1987).
    """
    return _packed(instance, instance.prefers_loan, instance.flexible, last=instance.heterogeneous)


def naive_best_fit_decreasing(instance: ArylPlacement) -> ArylPlacementPlan:
    """Best fit decreasing without regard to elasticity: all workers prefer training servers.

    As :func:`best_fit_decreasing`, but elastic jobs are treated like the others, and base and flexible
    workers share servers: with flexible workers its plans may break ``separate_groups``.

    Guarantee and complexity: those of :func:`best_fit_decreasing`.

    References
    ----------
    Aryl (EuroSys'23 as Lyra), section 7.2 and Table 6.
    """
    nobody = np.zeros(instance.num_jobs, bool)
    return _packed(instance, nobody, nobody, last=nobody)


def _packed(
    instance: ArylPlacement, prefers_loan: BoolArray, flexible: BoolArray, *, last: BoolArray
) -> ArylPlacementPlan:
    """Best fit decreasing where jobs prefer, and are kept apart, as the arrays say."""
    sizes, in_use = instance.server_gpus.tolist(), instance.in_use
    # Servers of each group as (free GPUs, server), in order: those still closed, and opened ones, of
    # which inference servers with flexible workers are a group of their own.
    closed: dict[bool, list[tuple[int, int]]] = {}
    opened: dict[tuple[bool, bool], list[tuple[int, int]]] = {}
    for group in (False, True):
        mine = instance.on_loan == group
        closed[group] = sorted((sizes[i], int(i)) for i in np.flatnonzero(mine & ~in_use))
        opened[group, False] = sorted((sizes[i], int(i)) for i in np.flatnonzero(mine & in_use))
        opened[group, True] = []
    # Written through once: fresh pages that are touched here and there cost more than the packing.
    workers = np.full((instance.num_jobs, instance.num_servers), 0)
    for job in np.lexsort((-instance.gpus_per_worker, last)).tolist():
        need, prefers, apart = int(instance.gpus_per_worker[job]), bool(prefers_loan[job]), bool(flexible[job])
        choices = []
        for group in (prefers, not prefers):
            mine = opened[group, group and apart]
            choices += [(mine, mine), (closed[group], mine)]
        left = int(instance.num_workers[job])
        while left:
            found = next((some for some in choices if bisect_left(some[0], (need, 0)) < len(some[0])), None)
            if found is None:
                break
            candidates, now_opened = found
            free, server = candidates.pop(bisect_left(candidates, (need, 0)))
            # The server that one worker is put on is the fullest that fits the next one, as long as it does.
            placed = min(left, free // need)
            insort(now_opened, (free - placed * need, server))
            workers[job, server] += placed
            left -= placed
    return ArylPlacementPlan(workers=workers)
