"""Configurations of jobs and their servers: the problem that Synergy-Tune answers.

Synergy (OSDI'22), section 4.2.  In every round the jobs that are to run hold all or some of the
cluster's GPUs.  Each takes one of its configurations and is placed: on one server, or spread over
several with its CPUs and memory following its GPUs proportionally.  All servers' capacities hold,
no job trains slower than with its GPU-proportional share, and the total throughput is greatest:

    max  sum_j W_j[c_j, m_j]
    s.t. sum_i g[j, i] = g_j,   sum_j g[j, i] <= G,
         sum_j g[j, i] * c_j / g_j <= C,   sum_j g[j, i] * m_j / g_j <= M     for each server i,
         W_j[c_j, m_j] >= W_j^fair,   g[j, i] whole,
         c_j <= C,  m_j <= M     for each job with g_j <= G (section 6).

The paper bounds this problem by its first stage (:meth:`Tuning.stage_one`) and answers it with a
heuristic; the exact problem is this library's.  With single-GPU jobs alone it is a packing of
servers by jobs of several sizes, so it is NP-hard.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Unpack

import numpy as np

from instances import pictures
from instances.arithmetic import dot, total
from instances.base import Plan, PlanError, Violation, exceeding
from instances.schema import Array, BoolArray, FloatArray, IntArray, Scalar
from instances.synergy.allocation import SynergyAllocation
from instances.synergy.sensitivity import CPU, MEMORY, THROUGHPUT, from_matrix
from instances.synergy.synthetic import JobOptions, draw_jobs
from instances.synergy.traces import ProfiledJobs

__all__ = [
    "Tuning",
    "TuningPlan",
    "four_jobs",
    "from_frame",
    "from_mix",
    "from_trace",
    "generate",
    "more_cores",
    "more_memory",
    "proportional_share",
    "split_in_two",
    "table_1",
    "table_2",
    "table_3",
]

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class TuningPlan(Plan):
    """Configurations and places.

    Attributes
    ----------
    choices : (n,) int
        Index of the job's configuration; -1 for a job that is left out.
    gpus : (n, s) int
        GPUs of each job on each server.
    """

    choices: Annotated[IntArray, Array(int, "n")]
    gpus: Annotated[IntArray, Array(int, "n s")]


@dataclass(frozen=True, eq=False, kw_only=True)
class Tuning(ProfiledJobs[TuningPlan]):
    """Jobs to configure and place; the other fields are those of :class:`SensitiveJobs`.

    Jobs times servers are at most 50,000,000: plans have an entry for each.

    Attributes
    ----------
    allow_split : bool
        Whether a job may be spread over servers.  True by default.
    split_penalty : float
        Fraction of its throughput, from 0 to 1, that a job loses to communication when it is spread over
        servers although one could hold its GPUs: what section 6 leaves to future work.  0 by default, as
        in the paper's model.  Without the server cap, consolidation then has its price and its gain.
        Fair throughputs are those of configurations, before the loss.
    """

    problem = "synergy.tuning"
    sense = "max"
    measure = "total throughput"
    plan_type = TuningPlan

    allow_split: Annotated[bool, Scalar(bool)] = True
    split_penalty: Annotated[float, Scalar(float, minimum=0)] = 0.0

    def _check(self) -> None:
        self._refuse_tables("num_servers", self.num_servers, "servers")
        if self.split_penalty > 1:
            raise self.refuse("split_penalty", f"got {self.split_penalty:g}, must be at most 1")

    def _plan_dims(self) -> dict[str, int]:
        return {**self.dims, "s": self.num_servers}

    def stage_one(self) -> SynergyAllocation:
        """Return the paper's first stage, the cluster as one super-machine: its optimum bounds this one's."""
        return SynergyAllocation(
            num_servers=self.num_servers,
            server_gpus=self.server_gpus,
            server_cpus=self.server_cpus,
            server_memory=self.server_memory,
            gpu_demands=self.gpu_demands,
            configs=self.configs,
            fair_throughputs=self.fair_throughputs,
            server_cap=self.server_cap,
        )

    def skipped(self, plan: TuningPlan) -> BoolArray:
        """(n,) bool: the jobs that do not run, for lack of a configuration or of all their GPUs."""
        skipped: BoolArray = (plan.choices < 0) | (total(plan.gpus, axis=1) != self.gpu_demands)
        return skipped

    @property
    def penalised(self) -> BoolArray:
        """(n,) bool: the jobs that lose throughput when they are split."""
        penalised: BoolArray = np.asarray(self.gpu_demands <= self.server_gpus) & (self.split_penalty > 0)
        return penalised

    def _value(self, plan: TuningPlan) -> float:
        """Total throughput of the jobs that run."""
        unknown = self.unknown_choices(plan.choices, -1)
        if unknown.size:
            job = unknown[0]
            raise PlanError(
                f"{self.problem}: choices is {plan.choices[job]} at index [{job}], "
                f"must be -1 (left out) to {len(self.configs[job]) - 1}"
            )
        split = self.penalised & ((plan.gpus > 0).sum(axis=1) > 1)
        worth = self.chosen(plan.choices)[:, THROUGHPUT] * np.where(split, 1 - self.split_penalty, 1.0)
        return float(worth[~self.skipped(plan)].sum())

    def _broken_rules(self, plan: TuningPlan) -> Iterator[Violation]:
        unknown = self.unknown_choices(plan.choices, -1)
        for job in unknown.tolist():
            yield Violation("one_config", (job,), 1.0)
        choices = plan.choices.copy()
        choices[unknown] = -1
        away = abs(total(plan.gpus, axis=1).astype(object) - self.gpu_demands)
        yield from exceeding("placed", np.where(plan.choices == -1, self.gpu_demands, away), 0)
        yield from exceeding("gpus_at_least_0", 0, plan.gpus)
        if not self.allow_split:
            yield from exceeding("one_server", (plan.gpus > 0).sum(axis=1), 1)
        used = self.used(choices, plan.gpus)
        yield from exceeding("server_gpus", total(plan.gpus, axis=0), self.server_gpus)
        yield from exceeding("server_cpus", used[:, CPU], self.server_cpus)
        yield from exceeding("server_memory", used[:, MEMORY], self.server_memory)
        yield from self.above_server(choices)
        yield from self.unfair(choices)

    def used(self, choices: IntArray, gpus: IntArray) -> FloatArray:
        """(s, 2) float: CPU cores and memory (GB) in use on each server."""
        per_gpu = self.chosen(choices)[:, :THROUGHPUT] / self.gpu_demands[:, None]
        used: FloatArray = dot(gpus.T, per_gpu)
        return used

    def _draw(self, axes: Axes, plan: TuningPlan | None) -> None:
        if plan is None:
            super()._draw(axes, None)
            return
        choices = plan.choices.copy()
        choices[self.unknown_choices(choices, -1)] = -1
        used = self.used(choices, plan.gpus)
        names = [
            f"server {server}\n{cpus:.4g}/{self.server_cpus:g} cores\n{memory:.4g}/{self.server_memory:g} GB"
            for server, (cpus, memory) in enumerate(used.tolist())
        ]
        split = (plan.gpus > 0).sum(axis=1, keepdims=True) > 1
        pictures.servers(
            axes,
            plan.gpus,
            capacity=self.server_gpus,
            names=names if self.num_servers <= 6 else None,
            hatched=np.broadcast_to(split, plan.gpus.shape),
        )
        left_out = np.flatnonzero(self.skipped(plan))
        axes.set_xlabel(f"server ({pictures.jobs(left_out)} left out)" if left_out.size else "server")
        axes.set_ylabel("GPUs")
        speeds = self.chosen(choices)[:, THROUGHPUT] / np.where(self.fair_throughputs > 0, self.fair_throughputs, 1.0)
        pictures.legend(
            axes,
            [f"job {job} ({speed:.3g} × fair)" for job, speed in enumerate(speeds.tolist())],
            {"job on several servers": pictures.HATCHED} if split.any() else {},
        )


def generate(rng: np.random.Generator | int, *, allow_split: bool = True, **options: Unpack[JobOptions]) -> Tuning:
    """Synthetic jobs of a task mix that fill the cluster's GPUs.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    allow_split : bool
        Whether a job may be spread over servers.
    **options
        Servers, jobs and the hardness dial of :func:`instances.synergy.synthetic.draw_jobs` and
        ``draw_demands``.
    """
    return Tuning(**draw_jobs(rng, **options), allow_split=allow_split)


from_mix = Tuning.from_mix
from_trace = Tuning.from_trace
from_frame = Tuning.from_frame


def four_jobs() -> Tuning:
    """Four jobs of four GPUs on two servers of 8 GPUs, 24 cores and 500 GB.

    Two jobs are sensitive (ResNet18 wants cores, Audio-M5 cores and memory) and two are not
    (Transformer and GNMT train at full speed with one core per GPU).  With GPU-proportional shares
    each job trains at 4, 16 in all.  An example of this library's, with more configurations than the
    paper's :func:`table_1`.  The numbers are points of the authors' published profiles for
    3 cores per GPU, with the throughput of one GPU at its proportional share as the unit.
    """
    cpus, memory = [1, 3, 4, 5, 6], [20.83, 62.5, 125.0, 187.5]
    # One row for each number of cores, one column for each memory size.
    res18 = [[0.1, row, row, row] for row in (0.37, 1.0, 1.3, 1.53, 1.75)]
    m5 = [[0.1, row, row, row] for row in (0.3, 1.0, 1.2, 1.4)] + [[0.1, 1.5, 2.0, 2.5]]
    language = np.ones((5, 4))
    return Tuning(
        num_servers=2,
        server_gpus=8,
        server_cpus=24.0,
        server_memory=500.0,
        gpu_demands=np.array([4, 4, 4, 4]),
        configs=tuple(from_matrix(matrix, cpus, memory, gpus=4) for matrix in (res18, m5, language, language)),
    )


def table_1() -> Tuning:
    """Return the four jobs of Table 1, each with its shares in Tables 2 and 3.

    J1 ResNet18, J2 Audio-M5, J3 Transformer and J4 GNMT want 4 GPUs each, on two servers of 8 GPUs, 24
    cores and 500 GB (section 2.1).  Configuration 0 is the GPU-proportional share (Table 2), 1 the
    resource-sensitive one (Table 3).  Throughputs are not printed.  Here they are in units of one GPU
    at its proportional share: those of the authors' published profiles for 3 cores per GPU, at the next
    point below, and for Transformer and GNMT, whose runtime the paper finds unaffected, 4.
    """
    sensitive = [[23, 400, 6.12], [12, 450, 4], [1, 100, 4], [12, 50, 4]]
    return Tuning(
        num_servers=2,
        server_gpus=8,
        server_cpus=24.0,
        server_memory=500.0,
        gpu_demands=np.array([4, 4, 4, 4]),
        configs=tuple(np.array([[12, 250, 4], config], float) for config in sensitive),
    )


def table_2() -> TuningPlan:
    """GPU-proportional shares for :func:`table_1`: J1 and J2 on the first server, J3 and J4 on the second."""
    return TuningPlan(choices=np.zeros(4, np.int64), gpus=np.array([[4, 0], [4, 0], [0, 4], [0, 4]]))


def table_3() -> TuningPlan:
    """Resource-sensitive shares for :func:`table_1`: J1 and J3 on the first server, J2 and J4 on the second."""
    return TuningPlan(choices=np.ones(4, np.int64), gpus=np.array([[4, 0], [0, 4], [4, 0], [0, 4]]))


def proportional_share() -> Tuning:
    """Return a job of one GPU on a server of 4 GPUs, 16 cores, 200 GB: its share is 4 cores and 50 GB (section 2)."""
    return Tuning(
        num_servers=1,
        server_gpus=4,
        server_cpus=16.0,
        server_memory=200.0,
        gpu_demands=np.array([1]),
        configs=(np.array([[4.0, 50.0, 1.0]]),),
    )


def more_cores() -> Tuning:
    """AlexNet with 3 or 12 cores, 3.1 times as fast, and ResNet18 with 3 or 9, 2.3 times as fast (section 2.1).

    Each on one GPU of a server of 8 GPUs, 24 cores and 500 GB, with its data set in memory; the memory
    of the two configurations, one GPU's share, is not printed.
    """
    return Tuning(
        num_servers=1,
        server_gpus=8,
        server_cpus=24.0,
        server_memory=500.0,
        gpu_demands=np.array([1, 1]),
        configs=(np.array([[3, 62.5, 1], [12, 62.5, 3.1]]), np.array([[3, 62.5, 1], [9, 62.5, 2.3]])),
    )


def more_memory() -> Tuning:
    """ResNet18 with 62 or 500 GB, about twice as fast, and GNMT with 62 GB or its process's 20 (section 2.1).

    Each on one GPU of two servers of 500 GB, of which 62 are the share.  Cores are not printed.
    """
    return Tuning(
        num_servers=2,
        server_gpus=8,
        server_cpus=24.0,
        server_memory=500.0,
        gpu_demands=np.array([1, 1]),
        configs=(np.array([[3, 62, 1], [3, 500, 2]], float), np.array([[3, 62, 1], [3, 20, 1]], float)),
    )


def split_in_two() -> Tuning:
    """Return a job of 2 GPUs, 12 cores and 300 GB over two servers of one GPU, with half on each (section 4.2)."""
    return Tuning(
        num_servers=2,
        server_gpus=1,
        server_cpus=6.0,
        server_memory=150.0,
        gpu_demands=np.array([2]),
        configs=(np.array([[12.0, 300.0, 1.0]]),),
    )
