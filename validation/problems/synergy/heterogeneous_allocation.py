"""synergy.heterogeneous_allocation: what is promised of its heuristics, and small instances to test them on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from heuristics.synergy import heterogeneous_allocation as fast
from instances.synergy.heterogeneous_allocation import HeterogeneousAllocation, generate
from validation.catalogue import Entry, Heuristic, Rescaling, named
from validation.problems.synergy import sensitivity
from validation.testing.arrays import integers, whole_floats

__all__ = ["ENTRY", "strategy"]

NO_TYPE_LEFT = "a job can find no machine type with enough free GPUs"


@st.composite
def strategy(
    draw: st.DrawFn, *, max_types: int = 2, max_gpus: int = 3, max_configs: int = 3
) -> HeterogeneousAllocation:
    """Jobs that fit the cluster's GPUs, with configurations on every machine type, one of them within its share."""
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
    )


ENTRY = Entry(
    title="How much CPU and memory each job gets, on which type of machine",
    source="Synergy, appendix A.2, program (22)-(26)",
    instance=HeterogeneousAllocation,
    generate=generate,
    size="num_servers",
    sizes=(2, 8, 32),
    heuristics=named(
        Heuristic(fast.proportional, infeasible_because=NO_TYPE_LEFT),
        Heuristic(fast.greedy_marginal, infeasible_because=NO_TYPE_LEFT),
    ),
    symmetric=("n",),
    rescalings=(
        Rescaling(("server_cpus", "configs[0]"), 0),
        Rescaling(("server_memory", "configs[1]"), 0),
        Rescaling(("configs[2]", "fair_throughputs"), 1),
    ),
    enlarge=lambda instance: replace(instance, num_servers=instance.num_servers + 1),
    strategy=strategy,
)
