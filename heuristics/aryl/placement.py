"""A fast method for :class:`instances.aryl.placement.ArylPlacement`."""

from __future__ import annotations

from bisect import bisect_left, insort

import numpy as np

from instances.aryl.placement import ArylPlacement, ArylPlacementPlan

__all__ = ["best_fit_decreasing"]


def best_fit_decreasing(instance: ArylPlacement) -> ArylPlacementPlan:
    """Largest workers first, each on the fullest server of its preferred group that still fits it.

    Workers are taken by GPUs, largest first (ties: lowest job).  In the preferred group (inference
    for elastic jobs, training for others) a worker goes to the opened server with the fewest free
    GPUs that fits it; if none does, the smallest unopened one that fits is opened (ties: lowest
    server).  Only when neither exists the other group is tried, in the same way.  A worker that
    fits nowhere is left out, and the plan then breaks ``all_placed``.

    Guarantee: none known for two groups.  On one group of equal servers it is best fit decreasing,
    which opens at most 11/9 of the fewest possible servers plus 4; when every size divides the
    next larger one and the server's (1, 2, 4 and 8 GPUs), it opens the fewest.
    Complexity: O(w (log s + s)) for w workers, the s for keeping a list in order.

    References
    ----------
    Aryl (EuroSys'23 as Lyra), section 5.3.  Johnson, "Near-optimal bin packing algorithms" (1973).
    Coffman, Garey, Johnson, "Bin packing with divisible item sizes" (1987).
    """
    inference = np.asarray(instance.server_groups == "inference", bool)
    sizes = instance.server_gpus.tolist()
    # Servers of each group as (free GPUs, server), in order: opened ones, and those still closed.
    opened: dict[bool, list[tuple[int, int]]] = {False: [], True: []}
    closed = {group: sorted((sizes[i], int(i)) for i in np.flatnonzero(inference == group)) for group in (False, True)}
    # Written through once: fresh pages that are touched here and there cost more than the packing.
    workers = np.full((instance.num_jobs, instance.num_servers), 0)
    for job in np.argsort(-instance.gpus_per_worker, kind="stable").tolist():
        need, elastic = int(instance.gpus_per_worker[job]), bool(instance.elastic[job])
        choices = [(servers[group], opened[group]) for group in (elastic, not elastic) for servers in (opened, closed)]
        for _ in range(int(instance.num_workers[job])):
            for candidates, now_opened in choices:
                position = bisect_left(candidates, (need, 0))
                if position < len(candidates):
                    free, server = candidates.pop(position)
                    insort(now_opened, (free - need, server))
                    workers[job, server] += 1
                    break
    return ArylPlacementPlan(workers=workers)
