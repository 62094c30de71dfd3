"""What Synergy's allocation problems share: jobs that are more or less sensitive to CPUs and memory.

Every job holds a fixed number of GPUs.  Its *configurations* say how much CPU and memory it may
be given beside them, and how fast it then trains.  The *GPU-proportional share* is what other
schedulers give it: CPUs and memory of a server in the proportion of its GPUs.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, TypedDict, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from instances.base import (
    TOLERANCE,
    Array,
    BoolArray,
    FloatArray,
    Instance,
    IntArray,
    Plan,
    Ragged,
    Scalar,
    Violation,
    default,
)
from instances.synergy.profiles import (
    CPUS_PER_GPU,
    MEMORY_SHARES,
    TASKS,
    draw_gpu_demands,
    draw_matrix,
    draw_tasks,
    read_jobs,
    read_profiles,
)

CPU, MEMORY, THROUGHPUT = 0, 1, 2
"""Columns of a configuration."""


def from_matrix(throughputs: ArrayLike, cpus: ArrayLike, memory: ArrayLike, *, gpus: int = 1) -> FloatArray:
    """Configurations from the paper's matrix W[c, m] of one GPU.

    Parameters
    ----------
    throughputs : (c, m) array_like
        Throughput of one GPU with each of ``cpus`` and ``memory``.
    cpus, memory : (c,) and (m,) array_like
        CPU cores and memory (GB) per GPU.
    gpus : int
        GPUs of the job; all three numbers of a configuration are this many times those of one GPU.

    Returns
    -------
    (c * m, 3) FloatArray
        CPU cores, memory (GB) and throughput of the job, row by row of the matrix.

    Raises
    ------
    ValueError
        When the shapes do not fit.
    """
    matrix, cores, sizes = (np.asarray(values, float) for values in (throughputs, cpus, memory))
    if matrix.shape != (len(cores), len(sizes)):
        raise ValueError(f"throughputs: got shape {matrix.shape}, must be ({len(cores)}, {len(sizes)})")
    grid = np.meshgrid(cores, sizes, indexing="ij")
    configs: FloatArray = gpus * np.column_stack([grid[0].ravel(), grid[1].ravel(), matrix.ravel()])
    return configs


def undominated(configs: FloatArray) -> IntArray:
    """Which configurations are worth considering.

    A configuration is dominated when another one needs no more of either resource and gives at
    least as much throughput; of equal ones the first is kept.  Whatever a plan or a relaxation
    does with a dominated configuration, it can do with the dominating one.

    Parameters
    ----------
    configs : (a, 3) float

    Returns
    -------
    (b,) int
        Indices, ascending.
    """
    cost, worth = configs[:, :THROUGHPUT], configs[:, THROUGHPUT]
    as_good = (cost[:, None] <= cost[None, :]).all(axis=2) & (worth[:, None] >= worth[None, :])
    first = np.arange(len(configs))[:, None] < np.arange(len(configs))[None, :]
    dominated = (as_good & (first | ~as_good.T)).any(axis=0)
    return np.flatnonzero(~dominated)


def fastest(configs: FloatArray, allowed: BoolArray) -> int:
    """The allowed configuration of greatest throughput, then of least CPU, memory and index; -1 if none."""
    rows = np.flatnonzero(allowed)
    if not rows.size:
        return -1
    chosen = configs[rows]
    return int(rows[np.lexsort((chosen[:, MEMORY], chosen[:, CPU], -chosen[:, THROUGHPUT]))[0]])


def within(configs: FloatArray, share: FloatArray) -> BoolArray:
    """(a,) bool: the configurations at or below a share of CPUs and memory, up to rounding."""
    inside: BoolArray = np.asarray((configs[:, :THROUGHPUT] <= share * (1 + 1e-9)).all(axis=1))
    return inside


def at_least_fair(configs: FloatArray, fair: float) -> BoolArray:
    """(a,) bool: the configurations that give a job its fair throughput, within the tolerance."""
    worth = configs[:, THROUGHPUT]
    enough: BoolArray = fair - worth <= TOLERANCE * np.maximum(1.0, np.abs(worth))
    return enough


P = TypeVar("P", bound=Plan)


@dataclass(frozen=True, eq=False, kw_only=True)
class SensitiveJobs(Instance[P]):
    """Resource-sensitive jobs on identical servers.

    Attributes
    ----------
    num_servers : int
        Servers, all alike.
    server_gpus : int
        GPUs of a server.
    server_cpus, server_memory : float
        CPU cores and memory (GB) of a server.
    gpu_demands : (n,) int
        GPUs that each job holds.
    configs : tuple of n arrays (a_j, 3)
        For each job the CPU cores, memory (GB) and throughput that it may be given, each in total
        for the job.  Any one unit of throughput for all jobs.
    fair_throughputs : (n,) float
        Throughput that each job must at least have.  By default its greatest among the
        configurations at or below the GPU-proportional share in both resources.
    """

    num_servers: Annotated[int, Scalar(int, minimum=1)]
    server_gpus: Annotated[int, Scalar(int, minimum=1)]
    server_cpus: Annotated[float, Scalar(float, minimum=0)]
    server_memory: Annotated[float, Scalar(float, minimum=0)]
    gpu_demands: Annotated[IntArray, Array(int, "n", minimum=1)]
    configs: Annotated[tuple[FloatArray, ...], Ragged(float, "n a 3", minimum=0)]
    fair_throughputs: Annotated[FloatArray, Array(float, "n", minimum=0)] = default(lambda dims: np.zeros(dims["n"]))

    def __post_init__(self) -> None:
        # The default needs the other fields, which are only known to be sound afterwards.
        left_out = not isinstance(self.fair_throughputs, (np.ndarray, Sequence))
        super().__post_init__()
        if left_out:
            object.__setattr__(self, "fair_throughputs", self._proportional_throughputs())

    def _proportional_throughputs(self) -> FloatArray:
        missing = np.flatnonzero(self.proportional_choices < 0)
        if missing.size:
            job = missing[0]
            cpus, memory = self.shares[job]
            raise self.refuse(
                "fair_throughputs",
                f"left out, but job {job} has no configuration at or below its GPU-proportional share of "
                f"{cpus:g} CPUs and {memory:g} GB; must be given",
            )
        fair = self.chosen(self.proportional_choices)[:, THROUGHPUT].copy()
        fair.setflags(write=False)
        return fair

    @property
    def num_jobs(self) -> int:
        return self.dims["n"]

    @cached_property
    def shares(self) -> FloatArray:
        """(n, 2) float: CPU cores and memory (GB) of each job's GPU-proportional share."""
        per_gpu = np.array([self.server_cpus, self.server_memory]) / self.server_gpus
        shares: FloatArray = self.gpu_demands[:, None] * per_gpu
        return shares

    @cached_property
    def proportional_choices(self) -> IntArray:
        """(n,) int: each job's fastest configuration at or below its share; -1 where there is none."""
        return np.array(
            [fastest(table, within(table, share)) for table, share in zip(self.configs, self.shares, strict=True)]
        )

    @cached_property
    def best_choices(self) -> IntArray:
        """(n,) int: each job's best-case demand, its fastest configuration with the least resources."""
        return np.array([fastest(table, np.ones(len(table), bool)) for table in self.configs])

    @cached_property
    def fair_configs(self) -> tuple[BoolArray, ...]:
        """For each job, (a_j,) bool: the configurations that give it its fair throughput."""
        return tuple(
            at_least_fair(table, fair) for table, fair in zip(self.configs, self.fair_throughputs.tolist(), strict=True)
        )

    @cached_property
    def undominated(self) -> tuple[IntArray, ...]:
        """For each job, the configurations that no other one dominates."""
        return tuple(undominated(table) for table in self.configs)

    def chosen(self, choices: IntArray) -> FloatArray:
        """(n, 3) float: CPU cores, memory (GB) and throughput under ``choices``; zeros for -1."""
        return np.array(
            [table[choice] if choice >= 0 else np.zeros(3) for table, choice in zip(self.configs, choices, strict=True)]
        )

    def unknown_choices(self, choices: IntArray, least: int) -> IntArray:
        """(k,) int: the jobs whose choice is no configuration of theirs, nor as low as ``least``."""
        counts = np.array([len(table) for table in self.configs])
        return np.flatnonzero((choices < least) | (choices >= counts))

    def unfair(self, choices: IntArray) -> list[Violation]:
        """Jobs whose configuration gives them less than their fair throughput."""
        return [
            Violation("fair_throughput", (job,), float(fair - self.configs[job][choice, THROUGHPUT]))
            for job, (choice, fair) in enumerate(zip(choices.tolist(), self.fair_throughputs, strict=True))
            if choice >= 0 and not self.fair_configs[job][choice]
        ]


# --- jobs for generators -----------------------------------------------------------------------


class Jobs(TypedDict):
    """The fields that describe jobs and servers, for a class that has them."""

    num_servers: int
    server_gpus: int
    server_cpus: float
    server_memory: float
    gpu_demands: IntArray
    configs: tuple[FloatArray, ...]


def draw(
    rng: np.random.Generator | int,
    *,
    num_servers: int,
    mix: Sequence[float],
    load: float,
    multi_gpu: bool,
    server_gpus: int,
    server_cpus: float,
    server_memory: float,
) -> Jobs:
    """Synthetic jobs that fill ``load`` of the cluster's GPUs."""
    rng = np.random.default_rng(rng)
    gpu_demands = draw_gpu_demands(rng, max(1, round(load * num_servers * server_gpus)), multi_gpu=multi_gpu)
    share = np.array([server_cpus, server_memory]) / server_gpus
    cpus = np.array([cores for cores in CPUS_PER_GPU if cores <= server_cpus])
    memory = np.floor(100 * share[1] * np.array(MEMORY_SHARES)) / 100
    configs = []
    for task, gpus in zip(draw_tasks(rng, len(gpu_demands), mix), gpu_demands.tolist(), strict=True):
        matrix = draw_matrix(rng, task, gpus, cpus=gpus * cpus, memory=gpus * memory, share=gpus * share)
        configs.append(from_matrix(matrix / gpus, cpus, memory, gpus=gpus))
    return Jobs(
        num_servers=num_servers,
        server_gpus=server_gpus,
        server_cpus=server_cpus,
        server_memory=server_memory,
        gpu_demands=gpu_demands,
        configs=tuple(configs),
    )


def profiled(
    models: Sequence[str],
    gpu_demands: Sequence[int],
    *,
    throughputs: str | os.PathLike[str],
    num_servers: int,
    server_gpus: int = 8,
    cpus_per_gpu: int = 3,
    server_memory: float = 500.0,
) -> Jobs:
    """Jobs of published models; ``throughputs`` is the file that :func:`read_profiles` reads.

    A job on g GPUs counts g times the throughput of one GPU.

    Raises
    ------
    InstanceError
        When the file is malformed or has no profile of a model.
    """
    profiles = read_profiles(throughputs, cpus_per_gpu=cpus_per_gpu)
    configs = tuple(
        from_matrix(profiles.of(model), profiles.cpus, profiles.memory, gpus=gpus)
        for model, gpus in zip(models, gpu_demands, strict=True)
    )
    return Jobs(
        num_servers=num_servers,
        server_gpus=server_gpus,
        server_cpus=float(cpus_per_gpu * server_gpus),
        server_memory=server_memory,
        gpu_demands=np.array(gpu_demands, np.int64),
        configs=configs,
    )


def draw_profiled(
    rng: np.random.Generator | int,
    *,
    throughputs: str | os.PathLike[str],
    num_servers: int,
    mix: Sequence[float],
    multi_gpu: bool,
    **servers: Any,
) -> Jobs:
    """Jobs of published models in a mix of tasks that fill all GPUs; ``servers`` as in :func:`profiled`."""
    rng = np.random.default_rng(rng)
    gpu_demands = draw_gpu_demands(rng, num_servers * int(servers.get("server_gpus", 8)), multi_gpu=multi_gpu)
    models = [str(rng.choice(TASKS[task])) for task in draw_tasks(rng, len(gpu_demands), mix)]
    return profiled(models, gpu_demands.tolist(), throughputs=throughputs, num_servers=num_servers, **servers)


def draw_traced(
    rng: np.random.Generator | int,
    *,
    throughputs: str | os.PathLike[str],
    trace: str | os.PathLike[str],
    num_servers: int,
    **servers: Any,
) -> Jobs:
    """Jobs of a trace, drawn until the GPUs are full; ``servers`` as in :func:`profiled`.

    The jobs of :func:`read_jobs` come in random order, none a second time before all have come.  A
    job that no longer fits is passed over.
    """
    rng = np.random.default_rng(rng)
    jobs = read_jobs(trace)
    left = num_servers * int(servers.get("server_gpus", 8))
    least = int(jobs["gpus"].min())
    models: list[str] = []
    gpu_demands: list[int] = []
    while left >= least:
        for position in rng.permutation(len(jobs)):
            gpus = int(jobs["gpus"].iloc[position])
            if gpus <= left:
                models.append(str(jobs["model"].iloc[position]))
                gpu_demands.append(gpus)
                left -= gpus
    return profiled(models, gpu_demands, throughputs=throughputs, num_servers=num_servers, **servers)
