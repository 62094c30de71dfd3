"""Fast methods for :class:`instances.afs.network_packing.NetworkPacking`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from instances.afs.network_packing import NetworkPacking, NetworkPackingPlan
from instances.arithmetic import total

__all__ = ["floor_and_grow", "floor_and_grow_nearest"]

Pick = Literal["first", "last", "smallest"]


def floor_and_grow(instance: NetworkPacking, *, pick: Pick = "first") -> NetworkPackingPlan | None:
    """Regulate shares as the proof of Proposition 2 does: round down, then let jobs grow while GPUs are left.

    Every job starts from its floor.  While GPUs are left, a job whose increment fits grows to the next
    regulated share: twice as much from a power of two below 2^g, one machine more from whole machines.  A job
    without GPUs never grows.  One whose increment fits exists as long as a GPU is left, because the GPUs
    and the shares are all multiples of the smallest increment.

    Parameters
    ----------
    instance : NetworkPacking
    pick : "first", "last" or "smallest"
        Which of the jobs that fit grows, which the proof leaves open: the lowest, the highest, or the one of
        the smallest increment, of these the one that lacks the most of what it wanted, and of those the lowest.

    Notes
    -----
    Guarantee: feasible, with every share at least its floor; none known on the distance.  ``None`` where
    more GPUs are wanted than there are.  Complexity: O((n * g + num_machines) n).

    References
    ----------
    AFS (NSDI'21), section 4.4, Appendix E, proof of Proposition 2.
    """
    if pick == "smallest":
        return _grown(instance, lambda able: min(able)[2])
    return _grown(instance, lambda able: able[0 if pick == "first" else -1][2])


def floor_and_grow_nearest(instance: NetworkPacking) -> NetworkPackingPlan | None:
    """As :func:`floor_and_grow`, where the job grows that adds the least to the distance.

    Of several, the one of the largest increment, and of those the lowest.

    Guarantee: feasible, with every share at least its floor; none known on the distance.  ``None`` where
    more GPUs are wanted than there are.  Complexity: O((n * g + num_machines) n).

    References
    ----------
    None: the library's own choice among the jobs of the proof of Proposition 2.
    """
    return _grown(instance, lambda able: min(able, key=lambda one: (abs(one[0] + one[1]) - abs(one[1]), -one[0]))[2])


def _grown(instance: NetworkPacking, choose: Callable[[list[tuple[int, int, int]]], int]) -> NetworkPackingPlan | None:
    """Shares grown from the floors; ``choose`` picks among (increment, excess over what is wanted, job)."""
    if total(instance.shares) > instance.num_gpus:
        return None
    regulated = instance.floors.copy()
    left = total(instance.shares) - int(regulated.sum())
    while left:
        steps = np.minimum(regulated, instance.gpus_per_machine)
        jobs = np.flatnonzero((steps > 0) & (steps <= left)).tolist()
        able = [(int(steps[job]), int(regulated[job] - instance.shares[job]), job) for job in jobs]
        job = choose(able)
        left -= int(steps[job])
        regulated[job] += steps[job]
    return NetworkPackingPlan(regulated=regulated)
