"""Fast methods for :class:`instances.synergy.allocation.SynergyAllocation`."""

from __future__ import annotations

import numpy as np

from heuristics.synergy.marginal import upgrade
from instances.schema import IntArray
from instances.synergy.allocation import SynergyAllocation, SynergyAllocationPlan
from instances.synergy.sensitivity import within

__all__ = ["greedy_marginal", "proportional"]


def proportional(instance: SynergyAllocation) -> SynergyAllocationPlan:
    """Every job at its GPU-proportional share: its fastest configuration at or below it.

    What schedulers without knowledge of the jobs' sensitivity do, the paper's baseline.

    Guarantee: feasible when the jobs' GPUs fit the cluster and fair throughputs are the default.
    A job without a configuration that is within its share and fair takes the fair one that needs
    the least, and the plan may be infeasible.  Complexity: O(A log A) for A configurations in all.

    References
    ----------
    Synergy (OSDI'22), section 2 (GPU-proportional allocation).
    """
    choices = np.array(
        [
            choice if choice >= 0 and instance.usable_configs[job][choice] else _cheapest(instance, job)
            for job, choice in enumerate(instance.proportional_choices.tolist())
        ],
        np.int64,
    )
    return SynergyAllocationPlan(choices=choices)


def greedy_marginal(instance: SynergyAllocation) -> SynergyAllocationPlan:
    """Least fair configurations first, then upgrades by throughput per resource.

    Every job starts at the configuration that needs the least, of those at or below its
    GPU-proportional share that give it its fair throughput.  Then the upgrade that adds the most
    throughput for each added fraction of the cluster's CPUs and memory is taken, as long as one
    fits.  Ties go to the lowest job.

    Guarantee: with the default fair throughputs never below :func:`proportional`, and feasible where
    the jobs' GPUs fit the cluster; none is known relative to the optimum.
    Complexity: O(U A) for U upgrades among A configurations.

    References
    ----------
    Kellerer, Pferschy, Pisinger, "Knapsack Problems" (2004), section 11.2, for one resource.
    """
    choices = np.array([_cheapest(instance, job) for job in range(instance.num_jobs)], np.int64)
    types = tuple(np.zeros(len(table), np.int64) for table in instance.configs)
    capacity = np.array([instance.capacity])
    return SynergyAllocationPlan(choices=upgrade(choices, instance.configs, types, instance.undominated, capacity))


def _cheapest(instance: SynergyAllocation, job: int) -> int:
    """Return the fair configuration within the cap that needs the least; one within the job's share if there is one."""
    table, fair = instance.configs[job], instance.usable_configs[job]
    inside = fair & within(table, instance.shares[job])
    allowed: IntArray = np.flatnonzero(inside if inside.any() else fair if fair.any() else np.ones(len(table), bool))
    scale = [amount or 1.0 for amount in instance.capacity]
    return int(allowed[(table[allowed, :2] / scale).sum(axis=1).argmin()])
