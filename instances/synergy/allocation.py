"""Shares of CPU and memory: Synergy (OSDI'22), section 4.1.1, program (1)-(5).

Seen as one super-machine, the cluster's CPU cores and memory are divided among the jobs of a
round.  Each job takes one of its configurations; no job may train slower than with its
GPU-proportional share; the total throughput is to be greatest:

    max  sum_j W_j[c_j, m_j]
    s.t. sum_j c_j <= C,   sum_j m_j <= M,   W_j[c_j, m_j] >= W_j^fair,

and a job whose GPUs one server can hold is given no more than one server's CPUs and memory.

Which server a job runs on is the second stage (:mod:`instances.synergy.placement`), so the value
bounds what any assignment to servers can reach (Theorem 4.1).

As printed / as built
---------------------
GPUs are not constrained, as printed: that the jobs of a round fit the cluster's GPUs is decided
before.  The server cap of section 6, which the program does not print, is the field ``server_cap``.
The paper's W^fair is the throughput at the GPU-proportional share; where that share is no
point of the profile, (5) would be undefined, so the default is the best configuration at or below
the share, which keeps the program feasible whenever the GPUs suffice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Unpack

import numpy as np

from instances.base import Plan, PlanError, Violation, exceeding
from instances.schema import Array, IntArray
from instances.synergy import sensitivity
from instances.synergy.placement import SynergyPlacement
from instances.synergy.sensitivity import CPU, MEMORY, THROUGHPUT
from instances.synergy.synthetic import JobOptions, draw_jobs
from instances.synergy.traces import ProfiledJobs

__all__ = ["SynergyAllocation", "SynergyAllocationPlan", "from_frame", "from_mix", "from_trace", "generate"]

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class SynergyAllocationPlan(Plan):
    """A configuration for each job.

    Attributes
    ----------
    choices : (n,) int
        Index of the job's configuration.
    """

    choices: Annotated[IntArray, Array(int, "n")]


@dataclass(frozen=True, eq=False, kw_only=True)
class SynergyAllocation(ProfiledJobs[SynergyAllocationPlan]):
    """Jobs that divide the cluster's CPUs and memory; the fields are those of :class:`SensitiveJobs`."""

    problem = "synergy.allocation"
    sense = "max"
    measure = "total throughput"
    plan_type = SynergyAllocationPlan

    @property
    def capacity(self) -> tuple[float, float]:
        """CPU cores and memory (GB) of the cluster."""
        return self.num_servers * self.server_cpus, self.num_servers * self.server_memory

    def _value(self, plan: SynergyAllocationPlan) -> float:
        unknown = self.unknown_choices(plan.choices, 0)
        if unknown.size:
            job = unknown[0]
            raise PlanError(
                f"{self.problem}: choices is {plan.choices[job]} at index [{job}], "
                f"must be 0 to {len(self.configs[job]) - 1}"
            )
        return float(self.chosen(plan.choices)[:, THROUGHPUT].sum())

    def _broken_rules(self, plan: SynergyAllocationPlan) -> Iterator[Violation]:
        unknown = self.unknown_choices(plan.choices, 0)
        for job in unknown.tolist():
            yield Violation("one_config", (job,), 1.0)
        choices = plan.choices.copy()
        choices[unknown] = -1
        used = self.chosen(choices).sum(axis=0)
        cpus, memory = self.capacity
        yield from exceeding("cpus", used[CPU], cpus)
        yield from exceeding("memory", used[MEMORY], memory)
        yield from self.above_server(choices)
        yield from self.unfair(choices)

    def placement(self, plan: SynergyAllocationPlan, *, integral_gpus: bool = False) -> SynergyPlacement:
        """Return the second stage (4.1.2): place the jobs with the CPUs and memory that ``plan`` gives them."""
        return SynergyPlacement(
            num_servers=self.num_servers,
            server_gpus=self.server_gpus,
            server_cpus=self.server_cpus,
            server_memory=self.server_memory,
            demands=np.column_stack([self.gpu_demands, self.chosen(plan.choices)[:, :THROUGHPUT]]),
            integral_gpus=integral_gpus,
        )

    def _draw(self, axes: Axes, plan: SynergyAllocationPlan | None) -> None:
        if plan is None:
            super()._draw(axes, None)
            return
        choices = plan.choices.copy()
        choices[self.unknown_choices(choices, 0)] = -1
        given = self.chosen(choices)
        sensitivity.draw_shares(axes, given, self.shares, self.fair_throughputs)
        used, (cpus, memory) = given.sum(axis=0), self.capacity
        axes.set_xlabel(f"job (in all {used[CPU]:.6g} of {cpus:g} CPU cores, {used[MEMORY]:.6g} of {memory:g} GB)")


def generate(rng: np.random.Generator | int, **options: Unpack[JobOptions]) -> SynergyAllocation:
    """Synthetic jobs of a task mix that fill the cluster's GPUs.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    **options
        Servers, jobs and the hardness dial of :func:`instances.synergy.synthetic.draw_jobs` and
        ``draw_demands``.
    """
    return SynergyAllocation(**draw_jobs(rng, **options))


from_mix = SynergyAllocation.from_mix
from_trace = SynergyAllocation.from_trace
from_frame = SynergyAllocation.from_frame
