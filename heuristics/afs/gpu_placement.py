"""Fast methods for :class:`instances.afs.gpu_placement.GpuPlacement`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from instances.afs.gpu_placement import GpuPlacement, GpuPlacementPlan
from instances.arithmetic import total
from instances.schema import IntArray

__all__ = ["first_fit_decreasing", "first_fit_decreasing_in_place"]


def first_fit_decreasing(instance: GpuPlacement) -> GpuPlacementPlan | None:
    """Place jobs as the proof of Proposition 1 does: largest share first, on the first machines that fit.

    It does not look at where jobs were.  Whole machines go first, then powers of two, in decreasing order.

    Guarantee: feasible; none on the GPUs kept.  ``None`` where the jobs have more GPUs than there are.
    Complexity: O(n * m).

    References
    ----------
    AFS (NSDI'21), Appendix E, proof of Proposition 1.
    """
    return _placed(instance, lambda job, fitting: fitting)


def first_fit_decreasing_in_place(instance: GpuPlacement) -> GpuPlacementPlan | None:
    """As :func:`first_fit_decreasing`, but first on the machines where the job keeps the most GPUs.

    Because shares are powers of two or whole machines, in decreasing order every machine has room for
    whole blocks of the size at hand, and so all jobs find room whatever machines they prefer.  Ties
    go to the lowest job and the lowest machine.

    Guarantee: feasible; none known on the GPUs kept.  ``None`` where the jobs have more GPUs than there are.
    Complexity: O(n * m log m).

    References
    ----------
    None: the library's own preference in the placement of Proposition 1.
    """

    def preferred(job: int, fitting: IntArray) -> IntArray:
        kept = np.minimum(instance.previous[job, fitting], instance.blocks[job])
        return np.asarray(fitting[np.argsort(-kept, kind="stable")])

    return _placed(instance, preferred)


def _placed(instance: GpuPlacement, preferred: Callable[[int, IntArray], IntArray]) -> GpuPlacementPlan | None:
    """Jobs from the largest share on, each on the first of the machines that fit, as ``preferred`` orders them."""
    if total(instance.regulated) > instance.num_gpus:
        return None
    free = np.full(instance.num_machines, instance.gpus_per_machine)
    gpus = np.zeros((instance.num_jobs, instance.num_machines), np.int64)
    for job in np.argsort(-instance.regulated, kind="stable").tolist():
        block = int(instance.blocks[job])
        chosen = preferred(job, np.flatnonzero(free >= block))[: int(instance.spans[job])]
        gpus[job, chosen] = block
        free[chosen] -= block
    return GpuPlacementPlan(gpus=gpus)
