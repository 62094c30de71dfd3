"""Instances of Synergy's problems."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from instances.synergy.allocation import Allocation
from instances.synergy.heterogeneous_allocation import HeterogeneousAllocation
from instances.synergy.placement import Placement
from instances.synergy.tuning import Tuning
from validation.strategies.arrays import integers, quarters, whole_floats


@st.composite
def allocation(draw: st.DrawFn, *, max_servers: int = 3, max_gpus: int = 4, max_configs: int = 5) -> Allocation:
    """Jobs that fit the cluster's GPUs, with any configurations besides one within the proportional share."""
    return Allocation(**draw(_jobs(max_servers, max_gpus, max_configs)))


@st.composite
def tuning(draw: st.DrawFn, *, max_servers: int = 3, max_gpus: int = 4, max_configs: int = 4) -> Tuning:
    """The same jobs, to be placed; they may be split over servers or not."""
    return Tuning(**draw(_jobs(max_servers, max_gpus, max_configs)), allow_split=draw(st.booleans()))


@st.composite
def heterogeneous_allocation(
    draw: st.DrawFn, *, max_types: int = 2, max_gpus: int = 3, max_configs: int = 3
) -> HeterogeneousAllocation:
    """Jobs that fit the cluster's GPUs, with configurations on every machine type, one of them within its share."""
    k = draw(st.integers(1, max_types))
    num_servers = draw(integers(k, 1, 2))
    server_gpus = draw(integers(k, 1, max_gpus))
    server_cpus = server_gpus * draw(whole_floats(k, 1, 4))
    server_memory = server_gpus * draw(whole_floats(k, 1, 4))
    gpu_demands = draw(_gpu_demands(int(num_servers @ server_gpus), max_gpus))
    configs, types = [], []
    for gpus in gpu_demands:
        tables = [draw(_configs(gpus, gpus * server_cpus[kind] / server_gpus[kind], max_configs)) for kind in range(k)]
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
    )


@st.composite
def placement(draw: st.DrawFn, *, max_servers: int = 3, max_jobs: int = 5, max_gpus: int = 4) -> Placement:
    """Jobs of any demands, larger than a server too; not all need fit."""
    n = draw(st.integers(1, max_jobs))
    return Placement(
        num_servers=draw(st.integers(1, max_servers)),
        server_gpus=draw(st.integers(1, max_gpus)),
        server_cpus=float(draw(st.integers(1, 8))),
        server_memory=float(draw(st.integers(1, 8))),
        demands=np.column_stack([draw(whole_floats(n, 0, max_gpus)), draw(quarters(n, 0, 6)), draw(quarters(n, 0, 6))]),
        integral_gpus=draw(st.booleans()),
    )


@st.composite
def _jobs(draw: st.DrawFn, max_servers: int, max_gpus: int, max_configs: int) -> dict[str, Any]:
    num_servers = draw(st.integers(1, max_servers))
    server_gpus = draw(st.integers(1, max_gpus))
    # Shares of quarters of a core, so that some lie between two configurations.
    share = draw(quarters(2, 1, 4))
    gpu_demands = draw(_gpu_demands(num_servers * server_gpus, max_gpus))
    return {
        "num_servers": num_servers,
        "server_gpus": server_gpus,
        "server_cpus": float(server_gpus * share[0]),
        "server_memory": float(server_gpus * share[1]),
        "gpu_demands": np.array(gpu_demands),
        "configs": tuple(draw(_configs(gpus, gpus * share[0], max_configs)) for gpus in gpu_demands),
    }


@st.composite
def _gpu_demands(draw: st.DrawFn, total: int, most: int) -> list[int]:
    """Demands that sum to at most ``total``."""
    demands: list[int] = []
    while total and (not demands or draw(st.booleans())):
        demands.append(draw(st.integers(1, min(most, total))))
        total -= demands[-1]
    return demands


@st.composite
def _configs(draw: st.DrawFn, gpus: int, cpus: float, most: int) -> NDArray[np.float64]:
    """Configurations of a job on ``gpus`` GPUs, the first within its share of ``cpus`` cores and of any memory."""
    first = [float(draw(st.integers(0, int(cpus)))), float(draw(st.integers(0, gpus))), draw(st.integers(0, 4))]
    rest = draw(whole_floats((draw(st.integers(0, most - 1)), 3), 0, 4 * gpus))
    return np.concatenate([[first], rest])
