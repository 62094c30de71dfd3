"""Which servers hold the workers: Aryl (EuroSys'23 as Lyra), section 5.3.

Every worker needs its GPUs on one server.  The fewer servers are opened, the fewer fragments are
left; beyond that, elastic jobs belong on the inference servers that are on loan, where they are
scaled in rather than preempted when servers go back, and all others on training servers:

    min  servers opened  +  workers off their preferred group / (1 + all workers).

The second term is below 1, so it never outweighs a server.  The first term alone is bin packing,
which is NP-hard.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from instances.base import Array, BoolArray, Instance, IntArray, Plan, StrArray, Violation, exceeding


@dataclass(frozen=True, eq=False)
class PlacementPlan(Plan):
    """Where the workers go.

    Attributes
    ----------
    workers : (n, s) int
        Workers of job j on server i.
    """

    workers: Annotated[IntArray, Array(int, "n s")]


@dataclass(frozen=True, eq=False)
class Placement(Instance[PlacementPlan]):
    """Workers to place, and the servers of both clusters.

    Attributes
    ----------
    gpus_per_worker : (n,) int
        GPUs of each worker of job j, at least 1.
    num_workers : (n,) int
        Workers of job j, all of them to be placed, at least 0.
    elastic : (n,) bool
        Whether job j is elastic, and so prefers inference servers.
    server_gpus : (s,) int
        Free GPUs of each server, at least 1.
    server_groups : (s,) str
        "training" or "inference".
    """

    problem = "aryl.placement"
    sense = "min"
    plan_type = PlacementPlan

    gpus_per_worker: Annotated[IntArray, Array(int, "n", minimum=1)]
    num_workers: Annotated[IntArray, Array(int, "n", minimum=0)]
    elastic: Annotated[BoolArray, Array(bool, "n")]
    server_gpus: Annotated[IntArray, Array(int, "s", minimum=1)]
    server_groups: Annotated[StrArray, Array(str, "s", choices=("training", "inference"))]

    @property
    def num_jobs(self) -> int:
        return self.dims["n"]

    @property
    def num_servers(self) -> int:
        return self.dims["s"]

    @property
    def total_workers(self) -> int:
        """Workers of all jobs."""
        return int(self.num_workers.sum())

    @property
    def off_group(self) -> BoolArray:
        """(n, s) bool: where a worker of job j is off its preferred group."""
        on_loan = np.asarray(self.server_groups == "inference", bool)
        off: BoolArray = self.elastic[:, None] ^ on_loan[None, :]
        return off

    def servers_opened(self, plan: PlacementPlan) -> int:
        """Servers that hold a worker."""
        return int((plan.workers > 0).any(axis=0).sum())

    def workers_off_group(self, plan: PlacementPlan) -> int:
        """Workers of elastic jobs on training servers, and of others on inference servers."""
        return int(plan.workers[self.off_group].sum())

    def value(self, plan: PlacementPlan) -> float:
        return self.servers_opened(plan) + self.workers_off_group(plan) / (1 + self.total_workers)

    def broken_rules(self, plan: PlacementPlan) -> Iterator[Violation]:
        yield from exceeding("workers_at_least_0", -plan.workers, 0)
        missing = np.abs(plan.workers.sum(axis=1) - self.num_workers)
        yield from exceeding("all_placed", missing, 0)
        yield from exceeding("server_gpus", self.gpus_per_worker @ plan.workers, self.server_gpus)


def generate(
    rng: np.random.Generator | int,
    *,
    total_workers: int = 40,
    workers_per_job: float = 3.0,
    elastic: float = 0.3,
    awkward: float = 0.5,
    load: float = 0.8,
    gpus_per_server: int = 8,
) -> Placement:
    """Jobs that fill most of two clusters of equal servers.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    total_workers : int
        Workers of all jobs.
    workers_per_job : float
        Workers of a job on average (geometric), at least 1.
    elastic : float
        Fraction from 0 to 1 of the jobs that are elastic (5% in the paper's traces).
    awkward : float
        Hardness dial: fraction from 0 to 1 of the jobs whose workers need any number of GPUs up to
        a server's; the others need 1, 2, 4 or 8, which pack without waste.
    load : float
        Hardness dial: fraction from 0 to 1 of all GPUs that the workers need.  Near 1 waste must
        be avoided, or no placement is left.
    gpus_per_server : int
        GPUs of each server (8 in the paper).  About half of the servers are on loan.
    """
    rng = np.random.default_rng(rng)
    sizes: list[int] = []
    while sum(sizes) < total_workers:
        sizes.append(min(int(rng.geometric(1 / workers_per_job)), total_workers - sum(sizes)))
    n = len(sizes)
    powers = np.array([g for g in (1, 2, 4, 8) if g <= gpus_per_server])
    gpus = np.where(rng.random(n) < awkward, rng.integers(1, gpus_per_server + 1, n), rng.choice(powers, n))
    servers = max(2, int(np.ceil(gpus @ sizes / (load * gpus_per_server))))
    groups = np.where(rng.permutation(servers) < servers / 2, "inference", "training")
    return Placement(
        gpus_per_worker=gpus,
        num_workers=np.array(sizes),
        elastic=rng.random(n) < elastic,
        server_gpus=np.full(servers, gpus_per_server),
        server_groups=groups,
    )


def four_servers() -> Placement:
    """Two servers of 8 GPUs in each group, on which keeping to the groups opens one too many.

    Job 0 has two workers of 3 GPUs and job 1 four of 2: 14 GPUs on the two training servers.  The
    worker of elastic job 2 needs 2 GPUs: on the training server with 2 to spare it costs 1/8 for
    being off its group, on an inference server of its own it costs a whole server.
    """
    return Placement(
        gpus_per_worker=np.array([3, 2, 2]),
        num_workers=np.array([2, 4, 1]),
        elastic=np.array([False, False, True]),
        server_gpus=np.array([8, 8, 8, 8]),
        server_groups=np.array(["training", "training", "inference", "inference"]),
    )


def two_full_servers() -> Placement:
    """Workers of 4, 3, 3, 2, 2 and 2 GPUs that fill two servers of 8, where best fit needs three.

    4 + 2 + 2 and 3 + 3 + 2 leave no GPU free; best fit puts 4 and 3 together, which strands a GPU.
    """
    return Placement(
        gpus_per_worker=np.array([4, 3, 2]),
        num_workers=np.array([1, 2, 3]),
        elastic=np.zeros(3, bool),
        server_gpus=np.full(3, 8),
        server_groups=np.full(3, "training"),
    )
