"""CPU and memory over machine types: Synergy (OSDI'22), appendix A.2, program (22)-(26).

As :mod:`instances.synergy.allocation`, with several types of machine.  A job runs on one type, its
throughput depends on the type too, and every type has its own CPUs, memory and GPUs:

    max  sum_j W_j[i_j, c_j, m_j]
    s.t. sum_{j: i_j = i} c_j <= C_i,   m_j likewise <= M_i,   g_j likewise <= G_i    for each type i,
         W_j[i_j, c_j, m_j] >= W_j^fair.

As printed / as built
---------------------
The printed program has no GPU capacity per type, so all jobs could crowd onto the fastest type;
here each type's GPUs are a limit.  The default of W^fair is, of the types on which the job has a
configuration at or below its GPU-proportional share, the least of the best throughputs there: on
whichever type a job ends up, its proportional share satisfies (26).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from instances.base import (
    Array,
    BoolArray,
    FloatArray,
    Instance,
    IntArray,
    PlanError,
    Ragged,
    Violation,
    default,
    exceeding,
)
from instances.synergy.allocation import AllocationPlan
from instances.synergy.profiles import (
    CPUS_PER_GPU,
    MEMORY_SHARES,
    draw_gpu_demands,
    draw_matrix,
    draw_tasks,
)
from instances.synergy.sensitivity import (
    CPU,
    MEMORY,
    THROUGHPUT,
    at_least_fair,
    fastest,
    from_matrix,
    undominated,
    within,
)


@dataclass(frozen=True, eq=False, kw_only=True)
class HeterogeneousAllocation(Instance[AllocationPlan]):
    """Jobs that divide CPUs, memory and GPUs of several machine types.

    Attributes
    ----------
    num_servers : (k,) int
        Servers of each type.
    server_gpus : (k,) int
        GPUs of a server of each type.
    server_cpus, server_memory : (k,) float
        CPU cores and memory (GB) of a server of each type.
    gpu_demands : (n,) int
        GPUs that each job holds.
    configs : tuple of n arrays (a_j, 3)
        For each job the CPU cores, memory (GB) and throughput that it may be given, in total for
        the job.
    config_types : tuple of n arrays (a_j,) int
        The machine type of each configuration.
    fair_throughputs : (n,) float
        Throughput that each job must at least have; the default is described above.
    """

    problem = "synergy.heterogeneous_allocation"
    sense = "max"
    plan_type = AllocationPlan

    num_servers: Annotated[IntArray, Array(int, "k", minimum=1)]
    server_gpus: Annotated[IntArray, Array(int, "k", minimum=1)]
    server_cpus: Annotated[FloatArray, Array(float, "k", minimum=0)]
    server_memory: Annotated[FloatArray, Array(float, "k", minimum=0)]
    gpu_demands: Annotated[IntArray, Array(int, "n", minimum=1)]
    configs: Annotated[tuple[FloatArray, ...], Ragged(float, "n a 3", minimum=0)]
    config_types: Annotated[tuple[IntArray, ...], Ragged(int, "n a", minimum=0)]
    fair_throughputs: Annotated[FloatArray, Array(float, "n", minimum=0)] = default(lambda dims: np.zeros(dims["n"]))

    def __post_init__(self) -> None:
        # The default needs the other fields, which are only known to be sound afterwards.
        left_out = not isinstance(self.fair_throughputs, (np.ndarray, Sequence))
        super().__post_init__()
        if left_out:
            object.__setattr__(self, "fair_throughputs", self._least_proportional_throughputs())

    def check(self) -> None:
        for job, (table, types) in enumerate(zip(self.configs, self.config_types, strict=True)):
            if len(types) != len(table):
                raise self.refuse("config_types", f"entry {job}: got {len(types)} types, must be {len(table)}")
            if types.max() >= self.num_types:
                raise self.refuse(
                    "config_types",
                    f"entry {job}: got type {types.max()}, must be below the number of types, {self.num_types}",
                )

    def _least_proportional_throughputs(self) -> FloatArray:
        fair = []
        for job, (table, best) in enumerate(zip(self.configs, self.proportional_choices, strict=True)):
            known = best[best >= 0]
            if not known.size:
                raise self.refuse(
                    "fair_throughputs",
                    f"left out, but job {job} has no configuration at or below its GPU-proportional share "
                    "on any type; must be given",
                )
            fair.append(table[known, THROUGHPUT].min())
        least = np.array(fair)
        least.setflags(write=False)
        return least

    @property
    def num_jobs(self) -> int:
        return self.dims["n"]

    @property
    def num_types(self) -> int:
        return self.dims["k"]

    @cached_property
    def capacity(self) -> FloatArray:
        """(k, 3) float: CPU cores, memory (GB) and GPUs of each type."""
        sizes: FloatArray = np.column_stack([self.server_cpus, self.server_memory, self.server_gpus])
        capacity: FloatArray = self.num_servers[:, None] * sizes
        return capacity

    @cached_property
    def shares(self) -> FloatArray:
        """(n, k, 2) float: CPU cores and memory (GB) of each job's GPU-proportional share of each type."""
        per_gpu = np.column_stack([self.server_cpus, self.server_memory]) / self.server_gpus[:, None]
        shares: FloatArray = self.gpu_demands[:, None, None] * per_gpu
        return shares

    @cached_property
    def proportional_choices(self) -> tuple[IntArray, ...]:
        """For each job, (k,) int: its fastest configuration at or below its share of each type; -1 if none."""
        return tuple(
            np.array([fastest(table, (types == kind) & within(table, shares[kind])) for kind in range(self.num_types)])
            for table, types, shares in zip(self.configs, self.config_types, self.shares, strict=True)
        )

    @cached_property
    def fair_configs(self) -> tuple[BoolArray, ...]:
        """For each job, (a_j,) bool: the configurations that give it its fair throughput."""
        return tuple(
            at_least_fair(table, fair) for table, fair in zip(self.configs, self.fair_throughputs.tolist(), strict=True)
        )

    @cached_property
    def undominated(self) -> tuple[IntArray, ...]:
        """For each job, the configurations that no other one of the same type dominates."""
        found = []
        for table, types in zip(self.configs, self.config_types, strict=True):
            of_type = [np.flatnonzero(types == kind) for kind in range(self.num_types)]
            found.append(np.sort(np.concatenate([rows[undominated(table[rows])] for rows in of_type])))
        return tuple(found)

    def _unknown(self, plan: AllocationPlan) -> IntArray:
        counts = np.array([len(table) for table in self.configs])
        return np.flatnonzero((plan.choices < 0) | (plan.choices >= counts))

    def value(self, plan: AllocationPlan) -> float:
        unknown = self._unknown(plan)
        if unknown.size:
            job = unknown[0]
            raise PlanError(
                f"{self.problem}: choices is {plan.choices[job]} at index [{job}], "
                f"must be 0 to {len(self.configs[job]) - 1}"
            )
        return float(sum(table[choice, THROUGHPUT] for table, choice in zip(self.configs, plan.choices, strict=True)))

    def broken_rules(self, plan: AllocationPlan) -> Iterator[Violation]:
        unknown = set(self._unknown(plan).tolist())
        used = np.zeros((self.num_types, 3))
        for job, choice in enumerate(plan.choices.tolist()):
            if job in unknown:
                yield Violation("one_config", (job,), 1.0)
                continue
            config, fair = self.configs[job][choice], self.fair_throughputs[job]
            used[self.config_types[job][choice]] += (config[CPU], config[MEMORY], self.gpu_demands[job])
            if not self.fair_configs[job][choice]:
                yield Violation("fair_throughput", (job,), float(fair - config[THROUGHPUT]))
        for resource, name in enumerate(("cpus", "memory", "gpus")):
            yield from exceeding(name, used[:, resource], self.capacity[:, resource])


def generate(
    rng: np.random.Generator | int,
    *,
    num_servers: int = 4,
    mix: Sequence[float] = (20, 70, 10),
    load: float = 1.0,
    multi_gpu: bool = True,
    heterogeneity: float = 3.0,
) -> HeterogeneousAllocation:
    """Synthetic jobs on two types of server: plain ones, and as many with faster GPUs and fewer cores each.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    num_servers : int
        Servers of each type, of 8 GPUs and 500 GB; 24 cores on the first type, 32 on the second.
    mix : sequence of 3 float
        Weights of image, language and speech jobs.
    load : float
        Fraction of the GPUs that the jobs hold.
    multi_gpu : bool
        GPU demands of 1 (70%), 2 or 4 (25%) and 8 (5%); else all 1.
    heterogeneity : float
        Hardness dial: on the second type a job is faster by a factor drawn uniformly from 1 to this.
    """
    rng = np.random.default_rng(rng)
    server_cpus = np.array([24.0, 32.0])
    gpu_demands = draw_gpu_demands(rng, max(1, round(load * 2 * num_servers * 8)), multi_gpu=multi_gpu)
    cpus = np.array(CPUS_PER_GPU)
    memory = np.floor(100 * 62.5 * np.array(MEMORY_SHARES)) / 100
    configs, types = [], []
    for task, gpus in zip(draw_tasks(rng, len(gpu_demands), mix), gpu_demands.tolist(), strict=True):
        tables = []
        # The same job on both types: the same stream of numbers draws its profile.
        state = int(rng.integers(2**32))
        faster = rng.uniform(1, heterogeneity)
        for kind, factor in enumerate((1.0, faster)):
            share = np.array([server_cpus[kind], 500.0]) / 8
            matrix = draw_matrix(
                np.random.default_rng(state), task, gpus, cpus=gpus * cpus, memory=gpus * memory, share=gpus * share
            )
            tables.append(from_matrix(np.round(factor * matrix / gpus, 4), cpus, memory, gpus=gpus))
        configs.append(np.concatenate(tables))
        types.append(np.repeat([0, 1], len(tables[0])))
    return HeterogeneousAllocation(
        num_servers=np.full(2, num_servers),
        server_gpus=np.full(2, 8),
        server_cpus=server_cpus,
        server_memory=np.full(2, 500.0),
        gpu_demands=gpu_demands,
        configs=tuple(configs),
        config_types=tuple(types),
    )


def one_fast_machine() -> HeterogeneousAllocation:
    """Two jobs of one GPU; one machine is twice as fast for both, and has one GPU.

    Without the limit on GPUs both jobs would share the fast machine's 4 cores, 2 each, for a
    total of 8.  With it, one of them runs on the slow machine, for a total of 6.
    """
    table = np.array([[2.0, 10.0, 2.0], [2.0, 10.0, 4.0]])
    return HeterogeneousAllocation(
        num_servers=np.array([1, 1]),
        server_gpus=np.array([1, 1]),
        server_cpus=np.array([4.0, 4.0]),
        server_memory=np.array([20.0, 20.0]),
        gpu_demands=np.array([1, 1]),
        configs=(table, table),
        config_types=(np.array([0, 1]), np.array([0, 1])),
    )
