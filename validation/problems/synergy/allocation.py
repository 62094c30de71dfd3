"""Entry of synergy.allocation: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from heuristics.synergy import allocation as fast
from instances.arithmetic import total
from instances.synergy.allocation import SynergyAllocation, SynergyAllocationPlan, from_trace, generate
from validation.catalogue import Heuristic, named
from validation.kinds.promises import BreaksOnly, Holds, NeverWorseThan, Relabelled
from validation.problems.synergy.sensitivity import fair_by_default, jobs, sensitive_entry, upgraded
from validation.testing import st

__all__ = ["ENTRY", "strategy"]


@st.composite
def strategy(draw: st.DrawFn, *, max_servers: int = 3, max_gpus: int = 4, max_configs: int = 5) -> SynergyAllocation:
    """Draw jobs that fit the cluster's GPUs, with any configurations besides one within the proportional share."""
    return SynergyAllocation(**draw(jobs(max_servers, max_gpus, max_configs)))


OWED_MORE = "jobs can be owed more throughput than their share gives them"


def _shares_fit(instance: SynergyAllocation) -> bool:
    """Return whether the jobs' GPUs fit the cluster, and none is owed more than its share gives it."""
    return total(instance.gpu_demands) <= instance.num_gpus and fair_by_default(instance)


FEASIBLE = BreaksOnly((), _shares_fit, "where the jobs' GPUs fit and no job is owed more than its share gives it")


def _least(instance: SynergyAllocation, job: int) -> int:
    """Return what needs least of the cluster: of what is fair within the job's share, else fair, else all there is."""
    table, fair = instance.configs[job], instance.usable_configs[job]
    inside = fair & (table[:, :2] <= instance.shares[job] * (1 + 1e-9)).all(axis=1)
    cost = (table[:, :2] / _sizes(instance)).sum(axis=1)
    return int(min(np.flatnonzero(inside if inside.any() else fair | ~fair.any()), key=lambda one: (cost[one], one)))


def _sizes(instance: SynergyAllocation) -> NDArray[np.float64]:
    return np.array([amount or 1.0 for amount in instance.capacity])


def _share_or_least(instance: SynergyAllocation, plan: SynergyAllocationPlan) -> bool:
    """Return whether jobs have what their share gives or, where that is too slow, what needs least."""
    wanted = [
        own if own >= 0 and instance.usable_configs[job][own] else _least(instance, job)
        for job, own in enumerate(instance.proportional_choices.tolist())
    ]
    return np.array_equal(plan.choices, wanted)


def _least_upgraded(instance: SynergyAllocation, plan: SynergyAllocationPlan) -> bool:
    """Return whether jobs begin with what needs least, and upgrades follow that add most for their resources."""
    n = instance.num_jobs
    least = [_least(instance, job) for job in range(n)]
    room = np.array(instance.capacity) * (1 + 1e-12) - instance.chosen(np.array(least, np.int64))[:, :2].sum(axis=0)
    sizes = np.tile(_sizes(instance), (n, 1))
    wanted = upgraded(least, instance, instance.undominated, np.ones((n, 1)), sizes, room[None])
    return np.array_equal(plan.choices, wanted)


ENTRY = sensitive_entry(
    title="How much CPU and memory each job gets, for the greatest total throughput",
    source="Synergy, section 4.1.1, program (1)-(5)",
    instance=SynergyAllocation,
    generate=generate,
    sizes=(4, 16, 64),
    heuristics=named(
        Heuristic(
            fast.proportional,
            infeasible_because=OWED_MORE,
            promises=(
                FEASIBLE,
                Relabelled(),
                Holds("jobs have their share or, where that is too slow, what needs least", _share_or_least),
            ),
        ),
        Heuristic(
            fast.greedy_marginal,
            infeasible_because=OWED_MORE,
            promises=(
                FEASIBLE,
                NeverWorseThan("proportional", fair_by_default, "where no job is owed more than its share gives it"),
                Holds("what needs least is upgraded where that adds most for its resources", _least_upgraded),
            ),
        ),
    ),
    from_trace=from_trace,
    strategy=strategy,
    wide={"max_servers": 6, "max_gpus": 16, "max_configs": 8},
)
