"""Fast methods for :class:`instances.synergy.heterogeneous_allocation.HeterogeneousAllocation`."""

from __future__ import annotations

import numpy as np

from heuristics.synergy.marginal import upgrade
from instances.schema import IntArray
from instances.synergy.allocation import SynergyAllocationPlan
from instances.synergy.heterogeneous_allocation import HeterogeneousAllocation
from instances.synergy.sensitivity import THROUGHPUT

__all__ = ["greedy_marginal", "proportional"]


def proportional(instance: HeterogeneousAllocation) -> SynergyAllocationPlan:
    """Every job at the GPU-proportional share of a machine type, on the type where that is fastest.

    Jobs choose in order of GPUs, most first, ties to the lowest index; a job takes, of the types
    with enough free GPUs, the one where its fastest configuration at or below its share has the
    greatest throughput; first of those where that is fair.  One without such a configuration
    takes its first.

    Guarantee: fair and within the CPUs and memory under the default fair throughputs, if every job
    has a configuration within its share of each type; within the GPUs unless a job finds no type
    with enough of them free, which then takes the one with the most.  Complexity: O(A log A + n k)
    for A configurations in all.

    References
    ----------
    Synergy (OSDI'22), section 2 (GPU-proportional allocation) and appendix A.2 (machine types).
    """
    return SynergyAllocationPlan(choices=_proportional(instance))


def greedy_marginal(instance: HeterogeneousAllocation) -> SynergyAllocationPlan:
    """:func:`proportional`, then upgrades on the same machine type by throughput per resource.

    The upgrade that adds the most throughput for each added fraction of the type's CPUs and memory
    is taken, as long as one fits.  Ties go to the lowest job.

    Guarantee: never below :func:`proportional`; none is known relative to the optimum.
    Complexity: O(U A) for U upgrades among A configurations.
    """
    choices = upgrade(
        _proportional(instance), instance.configs, instance.config_types, instance.undominated, instance.capacity[:, :2]
    )
    return SynergyAllocationPlan(choices=choices)


def _proportional(instance: HeterogeneousAllocation) -> IntArray:
    free = instance.capacity[:, 2].copy()
    choices = np.zeros(instance.num_jobs, np.int64)
    for job in np.argsort(-instance.gpu_demands, kind="stable").tolist():
        gpus, best = instance.gpu_demands[job], instance.proportional_choices[job]
        worth = np.where(best >= 0, instance.configs[job][best, THROUGHPUT], -1.0)
        fair = np.array([bool(c >= 0 and instance.usable_configs[job][c]) for c in best])
        # First the types where the job fits and is fair, then where it fits, then where it is known.
        rank = np.where(best >= 0, 1 + (free >= gpus) * (1 + fair), 0)
        kinds = np.flatnonzero(rank == rank.max())
        kind = kinds[worth[kinds].argmax()] if rank.max() > 1 else kinds[free[kinds].argmax()]
        choices[job] = best[kind] if best[kind] >= 0 else 0
        free[instance.config_types[job][choices[job]]] -= gpus
    return choices
