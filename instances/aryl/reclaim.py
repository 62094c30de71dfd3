"""Which servers to give back: Aryl (EuroSys'23 as Lyra), section 4.

Inference servers are on loan to training jobs, and ``demand`` of them must be returned.  A job
with a base worker on a returned server is preempted as a whole, wherever its other workers are.
Flexible workers are scaled in instead, and preempt nothing.  Choose the servers so that as few
jobs as possible are preempted:

    min  |{ j : hosts[j, i] for some i in S }|    over sets S of exactly ``demand`` servers.

This is minimum k-union (each server the set of jobs it hosts), which is NP-hard.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from instances.base import Array, BoolArray, Instance, IntArray, Plan, PlanError, Scalar, Violation


@dataclass(frozen=True, eq=False)
class ReclaimPlan(Plan):
    """Servers to return.

    Attributes
    ----------
    servers : (d,) int
        Distinct server numbers, in any order.
    """

    servers: Annotated[IntArray, Array(int, "d", empty=True)]


@dataclass(frozen=True, eq=False)
class Reclaim(Instance[ReclaimPlan]):
    """Servers on loan, the jobs on them, and how many servers to return.

    Attributes
    ----------
    hosts : (n, s) bool
        Whether job j has base workers on server i.
    gpus : (n, s) int
        GPUs that job j holds on server i, base and flexible; positive wherever it has base
        workers.
    demand : int
        Number of servers to return, 0 to s.
    """

    problem = "aryl.reclaim"
    sense = "min"
    plan_type = ReclaimPlan

    hosts: Annotated[BoolArray, Array(bool, "n s")]
    gpus: Annotated[IntArray, Array(int, "n s", minimum=0)]
    demand: Annotated[int, Scalar(int, minimum=0)]

    def check(self) -> None:
        if self.demand > self.num_servers:
            raise self.refuse("demand", f"got {self.demand}, must be at most the number of servers, {self.num_servers}")
        bare = np.argwhere(self.hosts & (self.gpus == 0))
        if bare.size:
            job, server = bare[0]
            raise self.refuse("gpus", f"got 0 at index [{job}, {server}], must be positive where hosts is true")

    @property
    def num_jobs(self) -> int:
        return self.dims["n"]

    @property
    def num_servers(self) -> int:
        return self.dims["s"]

    def preempted(self, plan: ReclaimPlan) -> BoolArray:
        """(n,) bool: the jobs with base workers on a returned server."""
        outside = self._outside(plan)
        if outside.size:
            raise PlanError(f"{self.problem}: there is no server {outside[0]}, only 0 to {self.num_servers - 1}")
        preempted: BoolArray = np.asarray(self.hosts[:, plan.servers].any(axis=1))
        return preempted

    def _outside(self, plan: ReclaimPlan) -> IntArray:
        return plan.servers[(plan.servers < 0) | (plan.servers >= self.num_servers)]

    def value(self, plan: ReclaimPlan) -> float:
        return int(self.preempted(plan).sum())

    def collateral_damage(self, plan: ReclaimPlan) -> int:
        """GPUs vacated beyond demand: those of preempted jobs on servers that are not returned."""
        kept = np.ones(self.num_servers, bool)
        kept[plan.servers] = False
        return int(self.gpus[np.ix_(self.preempted(plan), kept)].sum())

    def broken_rules(self, plan: ReclaimPlan) -> Iterator[Violation]:
        for server in self._outside(plan):
            yield Violation("server_exists", (int(server),), 1.0)
        servers, counts = np.unique(plan.servers, return_counts=True)
        for server, count in zip(servers, counts, strict=True):
            if count > 1:
                yield Violation("server_once", (int(server),), float(count - 1))
        if len(plan.servers) != self.demand:
            yield Violation("demand", (), float(abs(len(plan.servers) - self.demand)))


def generate(
    rng: np.random.Generator | int,
    *,
    num_servers: int = 20,
    demand: int | None = None,
    jobs_per_server: float = 3.0,
    spread: float = 0.5,
    elastic: float = 0.05,
    gpus_per_server: int = 8,
) -> Reclaim:
    """A cluster on loan with jobs scattered over its servers.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    num_servers : int
        Servers on loan, s.
    demand : int, optional
        Servers to return; 10% of them, at least one, by default.
    jobs_per_server : float
        Jobs for each server; n is this times s.
    spread : float
        Hardness dial from 0 to 1.  At 0 every job sits on one server and the greedy choice is
        optimal; towards 1 jobs span many servers and the servers' costs depend on each other.
    elastic : float
        Fraction of the jobs that also hold flexible workers (5% in the paper's traces).
    gpus_per_server : int
        GPUs of each server (8 in the paper).
    """
    rng = np.random.default_rng(rng)
    s = num_servers
    n = max(1, round(jobs_per_server * s))
    free = np.full(s, gpus_per_server)
    hosts = np.zeros((n, s), bool)
    gpus = np.zeros((n, s), np.int64)
    for job in range(n):
        # Geometric in the number of servers: most jobs are small, some are wide.
        width = min(s, int(rng.geometric(1 - 0.75 * spread)))
        flexible = int(rng.integers(1, 3)) if rng.random() < elastic else 0
        chosen = rng.permutation(np.flatnonzero(free > 0))[: width + flexible]
        for position, server in enumerate(chosen):
            held = int(rng.integers(1, min(free[server], 3) + 1))
            gpus[job, server] = held
            hosts[job, server] = position < width
            free[server] -= held
    if demand is None:
        demand = max(1, round(0.1 * s))
    return Reclaim(hosts=hosts, gpus=gpus, demand=demand)


def six_servers() -> Reclaim:
    """Six servers of 8 GPUs, two to return, on which counting jobs misleads (cf. Figure 5).

    Every server hosts one or two jobs.  Job 0 spans servers 4 and 5 and shares each with nobody;
    jobs 1 to 4 run alone on servers 0 to 3.  By number of jobs all six servers look the same, and
    the lowest two, 0 and 1, cost two preemptions; by fraction of servers, 4 and 5 cost 1/2 each,
    and returning both preempts one job only, the optimum.
    """
    hosts = np.zeros((5, 6), bool)
    hosts[0, [4, 5]] = True
    for job in range(1, 5):
        hosts[job, job - 1] = True
    return Reclaim(hosts=hosts, gpus=np.where(hosts, 8, 0), demand=2)
