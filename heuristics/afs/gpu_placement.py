"""Fast methods for :class:`instances.afs.gpu_placement.GpuPlacement`."""

from __future__ import annotations

import numpy as np

from instances.afs.gpu_placement import GpuPlacement, GpuPlacementPlan

__all__ = ["first_fit_decreasing"]


def first_fit_decreasing(instance: GpuPlacement) -> GpuPlacementPlan:
    """Largest share first, on the machines where the job keeps the most GPUs, else the first that fit.

    Because shares are powers of two or whole machines, in this order every machine has room for
    whole blocks of the size at hand, and so all jobs find room whatever machines they prefer.  Ties
    go to the lowest job and the lowest machine.

    Guarantee: feasible (Proposition 1); none known on the GPUs kept.
    Complexity: O(n * m log m).

    References
    ----------
    AFS (NSDI'21), section 4.4, Proposition 1 (its placement), with a preference for old machines.
    """
    free = np.full(instance.num_machines, instance.gpus_per_machine)
    gpus = np.zeros((instance.num_jobs, instance.num_machines), np.int64)
    for job in np.argsort(-instance.regulated, kind="stable"):
        block = int(instance.blocks[job])
        fitting = np.flatnonzero(free >= block)
        kept = np.minimum(instance.previous[job, fitting], block)
        chosen = fitting[np.argsort(-kept, kind="stable")[: int(instance.spans[job])]]
        gpus[job, chosen] = block
        free[chosen] -= block
    return GpuPlacementPlan(gpus=gpus)
