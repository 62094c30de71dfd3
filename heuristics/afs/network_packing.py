"""Fast methods for :class:`instances.afs.network_packing.NetworkPacking`."""

from __future__ import annotations

import heapq

from instances.afs.network_packing import NetworkPacking, NetworkPackingPlan

__all__ = ["floor_and_grow"]


def floor_and_grow(instance: NetworkPacking) -> NetworkPackingPlan:
    """The construction that proves Proposition 2: round down, then grow the smallest shares.

    Every job starts from its floor.  While GPUs are left, the job of the smallest share that is not
    0 grows to the next regulated share: twice as much, or from 2^g on, one machine more.  Among
    jobs of the same share (all that hold whole machines count as the same) the one that lacks the
    most of what it wanted grows, and among those the lowest.

    It ends exactly at the sum: all shares, and so the GPUs that are left, are multiples of the
    smallest one, and this is by how much the job grows.

    Guarantee: feasible, with every share at least its floor; none known on the distance.
    Complexity: O((n * g + num_machines) log n).

    References
    ----------
    AFS (NSDI'21), section 4.4, Appendix E, Proposition 2.
    """
    machine = instance.gpus_per_machine
    regulated = instance.floors.copy()
    left = instance.num_gpus - int(regulated.sum())

    def rank(job: int) -> tuple[int, int, int]:
        return min(int(regulated[job]), machine), int(regulated[job] - instance.shares[job]), job

    queue = [rank(job) for job in range(instance.num_jobs) if regulated[job]]
    heapq.heapify(queue)
    while left:
        step, _, job = heapq.heappop(queue)
        regulated[job] += step
        left -= step
        heapq.heappush(queue, rank(job))
    return NetworkPackingPlan(regulated=regulated)
