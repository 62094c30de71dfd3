"""Small sets of jobs that are sensitive to CPU and memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from instances.synergy.sensitivity import SensitiveJobs
from validation.catalogue import Entry, Rescaling
from validation.testing import st
from validation.testing.arrays import quarters, whole_floats

MOST_JOBS = 12

__all__ = ["configs", "fair_by_default", "fair_throughputs", "gpu_demands", "jobs", "sensitive_entry", "upgraded"]

sensitive_entry = partial(
    Entry,
    size="num_servers",
    symmetric=("n",),
    rescalings=(
        Rescaling(("server_cpus", "configs[0]"), 0),
        Rescaling(("server_memory", "configs[1]"), 0),
        Rescaling(("configs[2]", "fair_throughputs"), 1),
    ),
    enlarge=lambda instance: replace(instance, num_servers=instance.num_servers + 1),
)
"""An entry of jobs that are sensitive to CPU and memory, by what is its own."""


@st.composite
def jobs(draw: st.DrawFn, max_servers: int, max_gpus: int, max_configs: int) -> dict[str, Any]:
    """Draw the fields of jobs that fit the GPUs of a cluster, with any configurations."""
    num_servers = draw(st.integers(1, max_servers))
    server_gpus = draw(st.integers(1, max_gpus))
    # Shares of quarters of a core, so that some lie between two configurations.
    share = draw(quarters(2, 1, 4))
    demands = draw(gpu_demands(num_servers * server_gpus, max_gpus))
    tables = [draw(configs(gpus, gpus * share[0], max_configs)) for gpus in demands]
    return {
        "num_servers": num_servers,
        "server_gpus": server_gpus,
        "server_cpus": float(server_gpus * share[0]),
        "server_memory": float(server_gpus * share[1]),
        "gpu_demands": np.array(demands),
        "configs": tuple(tables),
        "server_cap": draw(st.booleans()),
        **draw(fair_throughputs(tables)),
    }


@st.composite
def gpu_demands(draw: st.DrawFn, total: int, most: int) -> list[int]:
    """Draw demands of GPUs that sum to at most ``total``, in half of the draws to all of it."""
    demands: list[int] = []
    filled = draw(st.booleans())
    while total and len(demands) < MOST_JOBS and (not demands or filled or draw(st.booleans())):
        demands.append(draw(st.integers(1, min(most, total))))
        total -= demands[-1]
    return demands


@st.composite
def configs(draw: st.DrawFn, gpus: int, cpus: float, most: int) -> NDArray[np.float64]:
    """Draw configurations of a job on ``gpus`` GPUs, the first within its share of ``cpus`` cores and of any memory."""
    first = [float(draw(st.integers(0, int(cpus)))), float(draw(st.integers(0, gpus))), draw(st.integers(0, 4))]
    rest = draw(whole_floats((draw(st.integers(0, most - 1)), 3), 0, 4 * gpus))
    if draw(st.booleans()):
        # Each takes a little more than the one before and is faster, so that there are steps to go.
        rest = np.array(first) + np.cumsum(np.minimum(rest, 2), axis=0)
    return np.concatenate([[first], rest])


@st.composite
def fair_throughputs(draw: st.DrawFn, tables: list[NDArray[np.float64]]) -> dict[str, Any]:
    """Draw no field, for its default, or throughputs that some configuration of each job just attains."""
    if draw(st.integers(0, 3)) < 3:
        return {}
    return {"fair_throughputs": np.array([draw(st.sampled_from([0.0, *table[:, 2].tolist()])) for table in tables])}


def fair_by_default(instance: SensitiveJobs[Any]) -> bool:
    """Return whether each job has a configuration within its share, and is owed no more than its fastest there."""
    choices = instance.proportional_choices
    return bool((choices >= 0).all() and (instance.fair_throughputs <= instance.chosen(choices)[:, 2]).all())


def upgraded(
    choices: Sequence[int], instance: Any, allowed: Sequence[Any], parts: Any, sizes: Any, room: Any
) -> list[int]:
    """Return choices after each upgrade in turn that adds the most throughput for its resources, of those that fit.

    Each job has ``parts`` (n, m) of its resources in each of m places, which have ``room`` (m, 2) left, and counts
    resources in ``sizes`` (n, 2).  Of several upgrades the lowest job's lowest is taken.
    """
    choices, room = list(choices), room.copy()
    while True:
        ways = []
        for job, now in enumerate(choices):
            if now < 0:
                continue
            here, table = parts[job] > 0, instance.configs[job]
            more = table[allowed[job]] - table[now]
            fits = (parts[job, here, None, None] * more[:, :2] <= room[here, None]).all(axis=(0, 2))
            for one in np.flatnonzero(fits & (more[:, 2] > 0)):
                cost = float((more[one, :2] / sizes[job]).sum())
                ways.append((-float(more[one, 2]) / cost if cost > 0 else -np.inf, job, int(allowed[job][one])))
        if not ways:
            return choices
        _, job, config = min(ways)
        room -= parts[job][:, None] * (instance.configs[job][config] - instance.configs[job][choices[job]])[:2]
        choices[job] = config
