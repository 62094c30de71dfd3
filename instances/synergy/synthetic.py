"""Synthetic jobs and servers, drawn alike for Synergy's allocation problems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict, Unpack

import numpy as np

from instances.schema import FloatArray, IntArray
from instances.synergy.profiles import CPUS_PER_GPU, MEMORY_SHARES, draw_gpu_demands, draw_matrix, draw_tasks
from instances.synergy.sensitivity import from_matrix

__all__ = [
    "SERVER_CPUS",
    "SERVER_GPUS",
    "SERVER_MEMORY",
    "DemandOptions",
    "JobOptions",
    "Jobs",
    "draw_demands",
    "draw_jobs",
]

SERVER_GPUS, SERVER_CPUS, SERVER_MEMORY = 8, 24.0, 500.0
"""GPUs, CPU cores and memory (GB) of the paper's servers."""


class DemandOptions(TypedDict, total=False):
    """The keyword arguments of :func:`draw_demands`."""

    mix: Sequence[float]
    load: float
    multi_gpu: bool
    widest: int


class JobOptions(DemandOptions, total=False):
    """The keyword arguments of :func:`draw_jobs`, which ``generate`` takes."""

    num_servers: int
    server_gpus: int
    server_cpus: float
    server_memory: float
    server_cap: bool


class Jobs(TypedDict):
    """Fields of :class:`instances.synergy.sensitivity.SensitiveJobs`: all but the fair throughputs."""

    num_servers: int
    server_gpus: int
    server_cpus: float
    server_memory: float
    gpu_demands: IntArray
    configs: tuple[FloatArray, ...]
    server_cap: bool


def draw_demands(
    rng: np.random.Generator,
    num_gpus: int,
    *,
    mix: Sequence[float] = (20, 70, 10),
    load: float = 1.0,
    multi_gpu: bool = True,
    widest: int = 8,
) -> tuple[list[str], IntArray]:
    """Tasks and GPUs of jobs that fill a cluster.

    Parameters
    ----------
    rng : Generator
        Source of randomness.
    num_gpus : int
        GPUs of the cluster.
    mix : sequence of 3 float
        Hardness dial: weights of image jobs, which want CPU cores, of language jobs, which spare
        them, and of speech jobs, which want memory.  (20, 70, 10) has much to give and few to
        take; at (50, 0, 50) nearly every job wants what the others want.
    load : float
        Fraction of the GPUs that the jobs hold.
    multi_gpu : bool
        GPU demands of 1 (70%), 2 or 4 (25%) and 8 (5%); else all 1.
    widest : int
        Most GPUs of a job; 16 in section 5.3, which a job holds on two of the paper's servers.  From 16 on the 5% are
        any power of two from 8 to that.

    Returns
    -------
    tasks : list of n str
    gpu_demands : (n,) int
    """
    gpu_demands = draw_gpu_demands(rng, max(1, round(load * num_gpus)), multi_gpu=multi_gpu, widest=widest)
    return draw_tasks(rng, len(gpu_demands), mix), gpu_demands


def draw_jobs(
    rng: np.random.Generator | int,
    *,
    num_servers: int = 4,
    server_gpus: int = SERVER_GPUS,
    server_cpus: float = SERVER_CPUS,
    server_memory: float = SERVER_MEMORY,
    server_cap: bool = True,
    **demands: Unpack[DemandOptions],
) -> Jobs:
    """Fields of :class:`instances.synergy.sensitivity.SensitiveJobs`: jobs of a task mix that fill the GPUs.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    num_servers : int
        Servers.
    server_gpus : int
        GPUs of a server.
    server_cpus, server_memory : float
        CPU cores and memory (GB) of a server.  With, say, 28 cores the GPU-proportional share lies
        between two configurations.
    server_cap : bool
        Whether a job is given at most one server's CPUs and memory.
    **demands
        Task mix and GPUs of the jobs, as for :func:`draw_demands`.
    """
    rng = np.random.default_rng(rng)
    tasks, gpu_demands = draw_demands(rng, num_servers * server_gpus, **demands)
    share = np.array([server_cpus, server_memory]) / server_gpus
    cpus = np.array([cores for cores in CPUS_PER_GPU if cores <= server_cpus])
    memory = np.floor(100 * share[1] * np.array(MEMORY_SHARES)) / 100
    configs = []
    for task, gpus in zip(tasks, gpu_demands.tolist(), strict=True):
        matrix = draw_matrix(rng, task, gpus, cpus=gpus * cpus, memory=gpus * memory, share=gpus * share)
        configs.append(from_matrix(matrix / gpus, cpus, memory, gpus=gpus))
    return Jobs(
        num_servers=num_servers,
        server_gpus=server_gpus,
        server_cpus=server_cpus,
        server_memory=server_memory,
        gpu_demands=gpu_demands,
        configs=tuple(configs),
        server_cap=server_cap,
    )
