"""Servers for jobs: Synergy (OSDI'22), section 4.1.2 and appendix A.1.3.

The first stage has fixed every job's GPUs, CPU cores and memory.  A job may be spread over
servers, each carrying a share of all three resources; a job on more than one server is
*fragmented*, and pays for communication.  As few jobs as possible should be:

    min  |{ j : x[j, i] > 0 for more than one i }|
    s.t. sum_i x[j, i] = 1,   sum_j x[j, i] * demand_j <= capacity of a server,   x >= 0.

With one server this asks whether the demands fit, with many it contains bin packing: NP-hard.

As printed / as built
---------------------
The paper states the constraints as a linear program without an objective, and shows that a vertex
fragments at most 3 jobs for each server (Theorem A.2).  That vertex is
:func:`formulations.synergy.placement.vertex`; here the number of fragmented jobs is the objective.
Shares are continuous, as printed, which can cut through a GPU; with ``integral_gpus`` every server
carries whole GPUs of each job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Unpack

import numpy as np

from instances import pictures
from instances.arithmetic import dot
from instances.base import Instance, Plan, Violation, exceeding
from instances.data.lines import Source
from instances.data.origin import origin
from instances.data.synergy import read_profiles, read_trace
from instances.schema import Array, BoolArray, FloatArray, Scalar
from instances.synergy.profiles import draw_gpu_demands
from instances.synergy.sensitivity import THROUGHPUT, fastest, from_matrix, within_server
from instances.synergy.synthetic import SERVER_CPUS, SERVER_GPUS, SERVER_MEMORY
from instances.synergy.traces import ServerChoice, models_of

__all__ = [
    "RESOURCES",
    "SynergyPlacement",
    "SynergyPlacementPlan",
    "from_frame",
    "from_trace",
    "generate",
    "shared_middle",
    "six_gpus",
]

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RESOURCES = ("gpus", "cpus", "memory")
"""The resources of servers, in the order of rows and columns."""


@dataclass(frozen=True, eq=False)
class SynergyPlacementPlan(Plan):
    """The servers of the jobs.

    Attributes
    ----------
    shares : (n, s) float
        Share of each job's demands on each server.
    """

    shares: Annotated[FloatArray, Array(float, "n s")]


@dataclass(frozen=True, eq=False, kw_only=True)
class SynergyPlacement(Instance[SynergyPlacementPlan]):
    """Jobs of given demands, and identical servers.

    ``num_gpus`` is ``num_servers * server_gpus``.

    Attributes
    ----------
    num_servers : int
        Servers, s.  Jobs times servers are at most 50,000,000: plans have an entry for each.
    server_gpus : int
        GPUs of a server.
    server_cpus, server_memory : float
        CPU cores and memory (GB) of a server.
    demands : (n, 3) float
        GPUs (whole), CPU cores and memory (GB) of each job.
    integral_gpus : bool
        Whether a server must carry whole GPUs of each job.  False by default.
    """

    problem = "synergy.placement"
    sense = "min"
    measure = "fragmented jobs"
    plan_type = SynergyPlacementPlan

    num_servers: Annotated[int, Scalar(int, minimum=1)]
    server_gpus: Annotated[int, Scalar(int, minimum=1)]
    server_cpus: Annotated[float, Scalar(float, minimum=0)]
    server_memory: Annotated[float, Scalar(float, minimum=0)]
    demands: Annotated[FloatArray, Array(float, "n 3", minimum=0)]
    integral_gpus: Annotated[bool, Scalar(bool)] = False

    def _check(self) -> None:
        self._refuse_tables("num_servers", self.num_servers, "servers")
        broken = np.flatnonzero(self.demands[:, 0] % 1)
        if broken.size:
            job = broken[0]
            raise self.refuse("demands", f"got {self.demands[job, 0]:g} GPUs at index [{job}, 0], must be whole")

    @property
    def num_jobs(self) -> int:
        """Number of jobs, n."""
        return self.dims["n"]

    @property
    def num_gpus(self) -> int:
        """GPUs of the cluster."""
        return self.num_servers * self.server_gpus

    @property
    def capacity(self) -> FloatArray:
        """(3,) float: GPUs, CPU cores and memory (GB) of a server."""
        return np.array([self.server_gpus, self.server_cpus, self.server_memory], float)

    def _plan_dims(self) -> dict[str, int]:
        return {**self.dims, "s": self.num_servers}

    def fragmented(self, plan: SynergyPlacementPlan) -> BoolArray:
        """(n,) bool: the jobs on more than one server."""
        fragmented: BoolArray = np.asarray((plan.shares > 0).sum(axis=1) > 1)
        return fragmented

    def _value(self, plan: SynergyPlacementPlan) -> float:
        return int(self.fragmented(plan).sum())

    def _broken_rules(self, plan: SynergyPlacementPlan) -> Iterator[Violation]:
        shares = plan.shares
        yield from exceeding("share_at_least_0", 0, shares)
        yield from exceeding("placed", np.abs(shares.sum(axis=1) - 1), 0, size=1)
        used = dot(shares.T, self.demands)
        for resource, name in enumerate(RESOURCES):
            yield from exceeding(f"server_{name}", used[:, resource], self.capacity[resource])
        if self.integral_gpus:
            gpus = shares * self.demands[:, :1]
            yield from exceeding("whole_gpus", np.abs(gpus - np.rint(gpus)), 0, size=np.abs(gpus))

    def _draw(self, axes: Axes, plan: SynergyPlacementPlan | None) -> None:
        part = self.demands / np.where(self.capacity > 0, self.capacity, 1.0)
        if plan is None:
            pictures.side_by_side(axes, dict(zip(("GPUs", "CPU cores", "memory"), part.T, strict=True)))
            axes.axhline(1, color=pictures.OUTLINE, linestyle="--", linewidth=1.0)
            axes.set_ylabel("demand / capacity of a server")
            axes.set_xlabel(f"job ({self.num_servers} servers)")
            return
        # Three columns for each server.
        used = (plan.shares[:, :, None] * part[:, None, :]).reshape(self.num_jobs, 3 * self.num_servers)
        at = (np.arange(self.num_servers)[:, None] + np.array([-0.28, 0.0, 0.28])).ravel()
        fragmented = self.fragmented(plan)
        pictures.stacked(axes, used, at=at, width=0.26, hatched=np.broadcast_to(fragmented[:, None], used.shape))
        axes.axhline(1, color=pictures.OUTLINE, linestyle="--", linewidth=1.0)
        pictures.number_axis(axes.xaxis, self.num_servers)
        axes.set_xlim(-0.6, self.num_servers - 0.4)
        axes.set_xlabel("server (its columns: GPUs, CPU cores, memory)")
        axes.set_ylabel("part of the server in use")
        marks = {"fragmented job": pictures.HATCHED} if fragmented.any() else {}
        pictures.legend(axes, [f"job {job}" for job in range(self.num_jobs)], marks)


def generate(
    rng: np.random.Generator | int,
    *,
    num_servers: int = 4,
    fill: float = 0.9,
    multi_gpu: bool = True,
    integral_gpus: bool = False,
    server_gpus: int = SERVER_GPUS,
    server_cpus: float = SERVER_CPUS,
    server_memory: float = SERVER_MEMORY,
) -> SynergyPlacement:
    """Jobs whose demands fill the servers, as a first stage leaves them.

    The GPUs of all servers are in use.  CPU cores and memory are drawn unevenly, in steps of a
    quarter core and of 5 GB per GPU, so that some jobs hold many times what others do.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    num_servers : int
        Servers, s.
    fill : float
        Hardness dial from 0 to 1: fraction of all CPU cores and memory that the jobs hold, up to
        rounding.  At 1 there is nothing to spare, and some jobs must be fragmented.
    multi_gpu : bool
        GPU demands of 1 (70%), 2 or 4 (25%) and 8 (5%); else all 1.
    integral_gpus : bool
        Whether servers carry whole GPUs of each job.  The demands then fit only by chance when
        ``fill`` is near 1.
    server_gpus : int
    server_cpus, server_memory : float
        Size of a server.
    """
    rng = np.random.default_rng(rng)
    gpus = draw_gpu_demands(rng, num_servers * server_gpus, multi_gpu=multi_gpu)
    demands = [gpus.astype(float)]
    for capacity, step in ((server_cpus, 0.25), (server_memory, 5.0)):
        weight = gpus * rng.exponential(1.0, len(gpus))
        amount = fill * num_servers * capacity * weight / weight.sum()
        # Rounded down, so that the total fits.
        demands.append(step * gpus * np.floor(amount / (step * gpus)))
    return SynergyPlacement(
        num_servers=num_servers,
        server_gpus=server_gpus,
        server_cpus=server_cpus,
        server_memory=server_memory,
        demands=np.column_stack(demands),
        integral_gpus=integral_gpus,
    )


def from_trace(
    rng: np.random.Generator | int,
    *,
    throughputs: Source,
    trace: Source,
    num_servers: int = 4,
    columns: Mapping[str, str] | None = None,
    skip_bad_rows: bool = False,
    **choice: Unpack[ServerChoice],
) -> SynergyPlacement:
    """Jobs of a trace with their best-case demands, as many as the cluster holds.

    Jobs are taken in random order, none a second time before all have come, until the first one
    whose demand exceeds what is left of the cluster.  A job that one server can hold wants at most one
    server's CPUs and memory (section 6), unless ``server_cap`` is false.  The parameters and errors are those of
    :func:`instances.synergy.traces.jobs_from_trace`.
    """
    rng = np.random.default_rng(rng)
    cpus_per_gpu, server_gpus = choice.get("cpus_per_gpu", 3), choice.get("server_gpus", SERVER_GPUS)
    profiles = read_profiles(throughputs, cpus_per_gpu=cpus_per_gpu)
    jobs = read_trace(trace, columns=columns, skip_bad_rows=skip_bad_rows)
    server = np.array([server_gpus, float(cpus_per_gpu * server_gpus), choice.get("server_memory", SERVER_MEMORY)])
    left = num_servers * server
    demands: list[FloatArray] = []
    asked, models = jobs["gpus"].tolist(), models_of(rng, jobs, profiles)
    rows: list[int] = []
    while True:
        for position in rng.permutation(len(jobs)).tolist():
            gpus = asked[position]
            matrix = profiles.of(models[position])
            table = from_matrix(matrix, profiles.cpus, profiles.memory, gpus=gpus)
            capped = (
                within_server(table, gpus, *server) if choice.get("server_cap", True) else np.ones(len(table), bool)
            )
            demand = np.array([gpus, *table[fastest(table, capped), :THROUGHPUT]])
            if (demand > left).any():
                break
            demands.append(demand)
            rows.append(position)
            left = left - demand
        else:
            continue
        break
    return SynergyPlacement(
        num_servers=num_servers,
        server_gpus=server_gpus,
        server_cpus=float(server[1]),
        server_memory=float(server[2]),
        demands=np.array(demands, float).reshape(-1, 3),
    ).with_origin(
        origin(
            "instances.synergy.placement.from_trace",
            throughputs=profiles.attrs,
            trace=jobs.attrs,
            rows=rows,
            jobs=jobs["id"].iloc[rows].tolist(),
            repairs={
                "model is drawn": int((jobs["model"].iloc[rows] == "").sum()),
                "job is drawn again": len(rows) - len({*rows}),
            },
            options={"num_servers": num_servers, **choice},
        )
    )


from_frame = SynergyPlacement.from_frame


def shared_middle() -> SynergyPlacement:
    """Three jobs that fill two servers exactly: one of them must be fragmented.

    Each job wants 2 GPUs and 2/3 of a server's CPUs and of its memory.  No two fit one server, so
    two run whole and the third takes what is left of both.
    """
    return SynergyPlacement(
        num_servers=2,
        server_gpus=4,
        server_cpus=12.0,
        server_memory=120.0,
        demands=np.array([[2.0, 8.0, 80.0]] * 3),
    )


def six_gpus() -> tuple[SynergyPlacement, SynergyPlacementPlan]:
    """Return a job of 6 GPUs that a solution of the second program cuts into 3.3 and 2.7 (section 4.1.3).

    The servers, two of 4 GPUs, and the job's cores and memory are not printed.
    """
    instance = SynergyPlacement(
        num_servers=2, server_gpus=4, server_cpus=12.0, server_memory=120.0, demands=np.array([[6.0, 18.0, 180.0]])
    )
    return instance, SynergyPlacementPlan(shares=np.array([[3.3 / 6, 2.7 / 6]]))
