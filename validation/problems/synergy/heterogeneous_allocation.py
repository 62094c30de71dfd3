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


def _fastest_within_share(instance: HeterogeneousAllocation, plan: SynergyAllocationPlan) -> bool:
    """Return whether no job with a configuration within its share has a faster one within that share of its type."""
    for job, choice in enumerate(plan.choices.tolist()):
        kinds = instance.config_types[job]
        best = instance.proportional_choices[job]
        if (best >= 0).any() and choice != best[kinds[choice]]:
            return False
    return True


def _no_upgrade_fits(instance: HeterogeneousAllocation, plan: SynergyAllocationPlan) -> bool:
    """Return whether there is nothing left for a faster configuration of any job on its type."""
    left = instance.capacity[:, :2].astype(float)
    chosen = [
        (table[c], kinds[c])
        for table, kinds, c in zip(instance.configs, instance.config_types, plan.choices, strict=True)
    ]
    for config, kind in chosen:
        left[kind] -= config[:2]
    if (left < 0).any():
        return True
    for job, (config, kind) in enumerate(chosen):
        table, kinds = instance.configs[job], instance.config_types[job]
        faster = table[(table[:, 2] > config[2]) & (kinds == kind) & instance.allowed_configs[job]]
        if (faster[:, :2] - config[:2] <= left[kind] * (1 - 1e-9)).all(axis=1).any():
            return False
    return True


def _largest_first(instance: HeterogeneousAllocation, plan: SynergyAllocationPlan) -> bool:
    """Return whether jobs, most GPUs first, are where their share makes them fastest, of the types with enough left.

    One that finds no such type is where most are left.  Up to the first that is owed more than its shares give it.
    """
    free = instance.capacity[:, 2].tolist()
    for gpus, job in sorted((-int(gpus), job) for job, gpus in enumerate(instance.gpu_demands)):
        best = instance.proportional_choices[job]
        room = [kind for kind, left in enumerate(free) if left >= -gpus]
        if not all(choice >= 0 and instance.usable_configs[job][choice] for choice in best):
            return True
        choice = plan.choices[job]
        if not room and free[instance.config_types[job][choice]] < max(free):
            return False
        if room and instance.configs[job][choice, 2] != max(instance.configs[job][best[kind], 2] for kind in room):
            return False
        free[instance.config_types[job][choice]] += gpus
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
                Holds("each job is as fast as its share of its type lets it", _fastest_within_share),
                Holds("each job, most GPUs first, is where its share makes it fastest", _largest_first),
            ),
        ),
        Heuristic(
            fast.greedy_marginal,
            infeasible_because=NO_TYPE_LEFT,
            promises=(
                ROOM,
                NeverWorseThan("proportional"),
                Holds("no upgrade of a job on its type fits any more", _no_upgrade_fits),
            ),
        ),
    ),
    strategy=strategy,
    wide={"max_types": 3, "max_gpus": 8, "max_configs": 5},
)
