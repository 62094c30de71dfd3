"""How much CPU and memory each job gets: Synergy (OSDI'22), section 4.1.1, program (1)-(5).

Seen as one super-machine, the cluster's CPU cores and memory are divided among the jobs of a
round.  Each job takes one of its configurations; no job may train slower than with its
GPU-proportional share; the total throughput is to be greatest:

    max  sum_j W_j[c_j, m_j]
    s.t. sum_j c_j <= C,   sum_j m_j <= M,   W_j[c_j, m_j] >= W_j^fair.

Which server a job runs on is the second stage (:mod:`instances.synergy.placement`), so the value
bounds what any assignment to servers can reach (Theorem 4.1).

As printed / as built
---------------------
GPUs are not constrained, as printed: that the jobs of a round fit the cluster's GPUs is decided
before.  The paper's W^fair is the throughput at the GPU-proportional share; where that share is no
point of the profile, (5) would be undefined, so the default is the best configuration at or below
the share, which keeps the program feasible whenever the GPUs suffice.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from instances.base import Array, IntArray, Plan, PlanError, Violation, exceeding
from instances.synergy import sensitivity
from instances.synergy.placement import Placement
from instances.synergy.sensitivity import CPU, MEMORY, THROUGHPUT, SensitiveJobs


@dataclass(frozen=True, eq=False)
class AllocationPlan(Plan):
    """A configuration for each job.

    Attributes
    ----------
    choices : (n,) int
        Index of the job's configuration.
    """

    choices: Annotated[IntArray, Array(int, "n")]


@dataclass(frozen=True, eq=False, kw_only=True)
class Allocation(SensitiveJobs[AllocationPlan]):
    """Jobs that divide the cluster's CPUs and memory; the fields are those of :class:`SensitiveJobs`."""

    problem = "synergy.allocation"
    sense = "max"
    plan_type = AllocationPlan

    @property
    def capacity(self) -> tuple[float, float]:
        """CPU cores and memory (GB) of the cluster."""
        return self.num_servers * self.server_cpus, self.num_servers * self.server_memory

    def value(self, plan: AllocationPlan) -> float:
        unknown = self.unknown_choices(plan.choices, 0)
        if unknown.size:
            job = unknown[0]
            raise PlanError(
                f"{self.problem}: choices is {plan.choices[job]} at index [{job}], "
                f"must be 0 to {len(self.configs[job]) - 1}"
            )
        return float(self.chosen(plan.choices)[:, THROUGHPUT].sum())

    def broken_rules(self, plan: AllocationPlan) -> Iterator[Violation]:
        unknown = self.unknown_choices(plan.choices, 0)
        for job in unknown.tolist():
            yield Violation("one_config", (job,), 1.0)
        choices = plan.choices.copy()
        choices[unknown] = -1
        used = self.chosen(choices).sum(axis=0)
        cpus, memory = self.capacity
        yield from exceeding("cpus", used[CPU], cpus)
        yield from exceeding("memory", used[MEMORY], memory)
        yield from self.unfair(choices)

    def placement(self, plan: AllocationPlan, *, integral_gpus: bool = False) -> Placement:
        """The second stage (4.1.2): place the jobs with the CPUs and memory that ``plan`` gives them."""
        return Placement(
            num_servers=self.num_servers,
            server_gpus=self.server_gpus,
            server_cpus=self.server_cpus,
            server_memory=self.server_memory,
            demands=np.column_stack([self.gpu_demands, self.chosen(plan.choices)[:, :THROUGHPUT]]),
            integral_gpus=integral_gpus,
        )


def generate(
    rng: np.random.Generator | int,
    *,
    num_servers: int = 4,
    mix: Sequence[float] = (20, 70, 10),
    load: float = 1.0,
    multi_gpu: bool = True,
    server_gpus: int = 8,
    server_cpus: float = 24.0,
    server_memory: float = 500.0,
) -> Allocation:
    """Synthetic jobs of a task mix that fill the cluster's GPUs.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    num_servers : int
        Servers.
    mix : sequence of 3 float
        Hardness dial: weights of image jobs, which want CPU cores, of language jobs, which spare
        them, and of speech jobs, which want memory.  (20, 70, 10) has much to give and few to
        take; at (50, 0, 50) nearly every job wants what the others want.
    load : float
        Fraction of the GPUs that the jobs hold.
    multi_gpu : bool
        GPU demands of 1 (70%), 2 or 4 (25%) and 8 (5%); else all 1.
    server_gpus : int
        GPUs of a server (8 in the paper).
    server_cpus, server_memory : float
        CPU cores and memory (GB) of a server (24 and 500 in the paper).  With, say, 28 cores the
        GPU-proportional share lies between two configurations.
    """
    return Allocation(
        **sensitivity.draw(
            rng,
            num_servers=num_servers,
            mix=mix,
            load=load,
            multi_gpu=multi_gpu,
            server_gpus=server_gpus,
            server_cpus=server_cpus,
            server_memory=server_memory,
        )
    )


def from_mix(
    rng: np.random.Generator | int,
    *,
    throughputs: str | os.PathLike[str],
    num_servers: int = 4,
    mix: Sequence[float] = (20, 70, 10),
    multi_gpu: bool = True,
    cpus_per_gpu: int = 3,
) -> Allocation:
    """Jobs of published models in a task mix; ``throughputs`` is the profiles file.

    ``cpus_per_gpu`` sets the servers' CPU cores (8 GPUs and 500 GB each) and picks the profiles.
    """
    jobs = sensitivity.draw_profiled(
        rng,
        throughputs=throughputs,
        num_servers=num_servers,
        mix=mix,
        multi_gpu=multi_gpu,
        cpus_per_gpu=cpus_per_gpu,
    )
    return Allocation(**jobs)


def from_trace(
    rng: np.random.Generator | int,
    *,
    throughputs: str | os.PathLike[str],
    trace: str | os.PathLike[str],
    num_servers: int = 4,
    cpus_per_gpu: int = 3,
) -> Allocation:
    """Jobs drawn from a published trace until the GPUs are full; ``throughputs`` is the profiles file."""
    jobs = sensitivity.draw_traced(
        rng, throughputs=throughputs, trace=trace, num_servers=num_servers, cpus_per_gpu=cpus_per_gpu
    )
    return Allocation(**jobs)
