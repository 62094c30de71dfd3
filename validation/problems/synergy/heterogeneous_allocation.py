"""Entry of synergy.heterogeneous_allocation: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

import numpy as np

from heuristics.synergy import heterogeneous_allocation as fast
from instances.synergy.allocation import SynergyAllocationPlan
from instances.synergy.heterogeneous_allocation import HeterogeneousAllocation, generate
from validation.catalogue import Heuristic, named
from validation.kinds.promises import BreaksOnly, Holds, NeverWorseThan
from validation.problems.synergy import sensitivity
from validation.testing import st
from validation.testing.arrays import integers, whole_floats

__all__ = ["ENTRY", "strategy"]

NO_TYPE_LEFT = "a job can find no machine type with enough free GPUs"


@st.composite
def strategy(
    draw: st.DrawFn, *, max_types: int = 2, max_gpus: int = 3, max_configs: int = 3
) -> HeterogeneousAllocation:
    """Draw jobs that fit the cluster's GPUs, with configurations on every machine type, one within its share."""
    k = draw(st.integers(1, max_types))
    num_servers = draw(integers(k, 1, 2))
    server_gpus = draw(integers(k, 1, max_gpus))
    server_cpus = server_gpus * draw(whole_floats(k, 1, 4))
    server_memory = server_gpus * draw(whole_floats(k, 1, 4))
    gpu_demands = draw(sensitivity.gpu_demands(int(num_servers @ server_gpus), max_gpus))
    configs, types = [], []
    for gpus in gpu_demands:
        tables = [
            draw(sensitivity.configs(gpus, gpus * server_cpus[kind] / server_gpus[kind], max_configs))
            for kind in range(k)
        ]
        configs.append(np.concatenate(tables))
        types.append(np.repeat(np.arange(k), [len(table) for table in tables]))
    return HeterogeneousAllocation(
        num_servers=num_servers,
        server_gpus=server_gpus,
        server_cpus=server_cpus,
        server_memory=server_memory,
        gpu_demands=np.array(gpu_demands),
        configs=tuple(configs),
        config_types=tuple(types),
        server_cap=draw(st.booleans()),
        **draw(sensitivity.fair_throughputs(configs)),
    )


def _one_type(instance: HeterogeneousAllocation) -> bool:
    """Return whether there is one machine type, with GPUs for all jobs, whose shares give them what they are owed."""
    if instance.num_types > 1:
        return False
    best = np.array([choices[0] for choices in instance.proportional_choices])
    owed = all(
        choice >= 0 and fair <= table[choice, 2]
        for choice, fair, table in zip(best, instance.fair_throughputs, instance.configs, strict=True)
    )
    return owed and bool(instance.gpu_demands.sum() <= instance.num_gpus)


def _largest_first(instance: HeterogeneousAllocation) -> list[int]:
    """Return jobs' shares, most GPUs first, where they are fastest, of the types with enough left; fair ones first.

    One that finds no such type is where most are left, and one without a share has its first configuration.
    """
    free, choices = instance.capacity[:, 2].tolist(), [0] * instance.num_jobs
    for gpus, job in sorted((-int(gpus), job) for job, gpus in enumerate(instance.gpu_demands)):
        best = instance.proportional_choices[job].tolist()
        known = [kind for kind, choice in enumerate(best) if choice >= 0]
        room = [kind for kind in known if free[kind] >= -gpus]
        fair = [kind for kind in room if instance.usable_configs[job][best[kind]]]
        if room:
            kind = max(fair or room, key=lambda kind: float(instance.configs[job][best[kind], 2]))
        else:
            kind = max(known or range(len(free)), key=lambda kind: free[kind])
        choices[job] = max(0, best[kind])
        free[instance.config_types[job][choices[job]]] += gpus
    return choices


def _upgraded(instance: HeterogeneousAllocation, plan: SynergyAllocationPlan) -> bool:
    """Return whether shares are upgraded on their types, where that adds most for its resources."""
    choices = _largest_first(instance)
    kinds = np.array([own[choice] for own, choice in zip(instance.config_types, choices, strict=True)], np.int64)
    room = instance.capacity[:, :2] * (1 + 1e-12)
    for job, choice in enumerate(choices):
        room[kinds[job]] -= instance.configs[job][choice, :2]
    allowed = [
        rows[own[rows] == kind]
        for rows, own, kind in zip(instance.undominated, instance.config_types, kinds, strict=True)
    ]
    sizes = np.where(instance.capacity > 0, instance.capacity, 1.0)[kinds, :2]
    upgraded = sensitivity.upgraded(choices, instance, allowed, np.eye(len(room))[kinds], sizes, room)
    return np.array_equal(plan.choices, upgraded)


def _none_alone(instance: HeterogeneousAllocation, plan: SynergyAllocationPlan) -> bool:
    """Return whether no job has a faster fair configuration on its type that fits, the other jobs as they are."""
    kinds = [int(own[choice]) for own, choice in zip(instance.config_types, plan.choices, strict=True)]
    held = [table[choice] for table, choice in zip(instance.configs, plan.choices, strict=True)]
    for job, (kind, now) in enumerate(zip(kinds, held, strict=True)):
        left = instance.capacity[kind, :2] - sum(row[:2] for at, row in zip(kinds, held, strict=True) if at == kind)
        others = instance.usable_configs[job] & (instance.config_types[job] == kind)
        for row in instance.configs[job][others]:
            if (row[:2] <= (left + now[:2]) * (1 - 1e-9)).all() and row[2] > now[2] * (1 + 1e-9):
                return False
    return True


ROOM = BreaksOnly((), _one_type, "with one machine type and no job owed more than its share gives it")


ENTRY = sensitivity.sensitive_entry(
    title="How much CPU and memory each job gets, on which type of machine",
    source="Synergy, appendix A.2, program (22)-(26)",
    instance=HeterogeneousAllocation,
    generate=generate,
    sizes=(2, 8, 32),
    heuristics=named(
        Heuristic(
            fast.proportional,
            infeasible_because=NO_TYPE_LEFT,
            promises=(
                ROOM,
                Holds(
                    "each job, most GPUs first, is where its share makes it fastest",
                    lambda instance, plan: plan.choices.tolist() == _largest_first(instance),
                ),
            ),
        ),
        Heuristic(
            fast.greedy_marginal,
            infeasible_because=NO_TYPE_LEFT,
            promises=(
                ROOM,
                NeverWorseThan("proportional"),
                Holds("shares are upgraded where that adds most for its resources", _upgraded),
            ),
        ),
        Heuristic(
            fast.priced_types,
            infeasible_because=NO_TYPE_LEFT,
            promises=(ROOM, NeverWorseThan("greedy_marginal"), Holds("no job alone could be faster", _none_alone)),
        ),
    ),
    strategy=strategy,
    wide={"max_types": 3, "max_gpus": 8, "max_configs": 5},
)
