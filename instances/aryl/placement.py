"""Servers for workers: Aryl (EuroSys'23 as Lyra), section 5.3.

Every worker needs its GPUs on one server.  The fewer servers are opened, the fewer fragments are
left; beyond that, elastic jobs belong on the inference servers that are on loan, where they are
scaled in rather than preempted when servers go back, and all others on training servers:

    min  servers opened  +  workers off their preferred group / (1 + all workers).

The second term is below 1, so it never outweighs a server.  The first term alone is bin packing,
which is NP-hard.  A server that workers of earlier epochs use is open already: best fit takes a non-empty
server before a new one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Unpack

import numpy as np

from instances import pictures
from instances.arguments import Count, Fraction, checked
from instances.arithmetic import product, total
from instances.base import Instance, Plan, Violation, exceeding, unequal
from instances.data.lines import Source
from instances.data.placements import PlacementChoice, draw_coming
from instances.schema import Array, BoolArray, IntArray, Scalar, StrArray, default

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "ArylPlacement",
    "ArylPlacementPlan",
    "base_and_flexible",
    "four_servers",
    "from_frame",
    "from_placements",
    "generate",
    "two_full_servers",
]


@dataclass(frozen=True, eq=False)
class ArylPlacementPlan(Plan):
    """The servers of the workers.

    Attributes
    ----------
    workers : (n, s) int
        Workers of job j on server i.
    """

    workers: Annotated[IntArray, Array(int, "n s")]


@dataclass(frozen=True, eq=False)
class ArylPlacement(Instance[ArylPlacementPlan]):
    """Workers to place, and the servers of both clusters.

    ``num_gpus`` is the sum of ``server_gpus``.

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
    flexible : (n,) bool
        Whether these are the flexible workers of an elastic job, whose base workers are another job
        here; none by default.  On inference servers they are kept apart: no such server holds
        flexible workers and others.
    heterogeneous : (n,) bool
        Whether the job can run on both kinds of GPUs at once; none by default.  Its base workers then
        prefer training servers though it is elastic (section 6).
    used_gpus : (s,) int
        GPUs of each server, beside the free ones, that workers placed before use; none by default.  A server
        in use is open already.  They are not flexible ones, which every epoch scales anew (section 5.2), so that no
        flexible worker joins them on an inference server.
    """

    problem = "aryl.placement"
    sense = "min"
    measure = "servers opened + workers off their group / (1 + all)"
    plan_type = ArylPlacementPlan

    gpus_per_worker: Annotated[IntArray, Array(int, "n", minimum=1)]
    num_workers: Annotated[IntArray, Array(int, "n", minimum=0)]
    elastic: Annotated[BoolArray, Array(bool, "n")]
    server_gpus: Annotated[IntArray, Array(int, "s", minimum=1)]
    server_groups: Annotated[StrArray, Array(str, "s", choices=("training", "inference"))]
    flexible: Annotated[BoolArray, Array(bool, "n")] = default(lambda dims: np.zeros(dims["n"], bool))
    heterogeneous: Annotated[BoolArray, Array(bool, "n")] = default(lambda dims: np.zeros(dims["n"], bool))
    used_gpus: Annotated[IntArray, Array(int, "s", minimum=0)] = default(
        lambda dims: np.zeros(dims["s"], np.int64), later=True
    )

    def _check(self) -> None:
        rigid = np.flatnonzero(self.flexible & ~self.elastic)
        if rigid.size:
            raise self.refuse("flexible", f"got True at index [{rigid[0]}], must be False where elastic is")

    @property
    def num_jobs(self) -> int:
        """Number of jobs, n."""
        return self.dims["n"]

    @property
    def num_servers(self) -> int:
        """Number of servers, s."""
        return self.dims["s"]

    @property
    def num_gpus(self) -> int:
        """Free GPUs of all servers."""
        return int(total(self.server_gpus))

    @property
    def total_workers(self) -> int:
        """Workers of all jobs."""
        return int(total(self.num_workers))

    @property
    def on_loan(self) -> BoolArray:
        """(s,) bool: the inference servers."""
        return np.asarray(self.server_groups == "inference", bool)

    @property
    def prefers_loan(self) -> BoolArray:
        """(n,) bool: whether workers of job j prefer inference servers."""
        prefers: BoolArray = self.flexible | (self.elastic & ~self.heterogeneous)
        return prefers

    @property
    def off_group(self) -> BoolArray:
        """(n, s) bool: where a worker of job j is off its preferred group."""
        off: BoolArray = self.prefers_loan[:, None] ^ self.on_loan[None, :]
        return off

    @property
    def in_use(self) -> BoolArray:
        """(s,) bool: the servers that hold workers placed before."""
        return np.asarray(self.used_gpus > 0, bool)

    def servers_opened(self, plan: ArylPlacementPlan) -> int:
        """Servers that hold a worker and held none before."""
        return int(((plan.workers > 0).any(axis=0) & ~self.in_use).sum())

    def workers_off_group(self, plan: ArylPlacementPlan) -> int:
        """Workers that prefer inference servers on training servers, and others on inference servers."""
        return int(plan.workers[self.off_group].sum())

    def _value(self, plan: ArylPlacementPlan) -> float:
        return self.servers_opened(plan) + self.workers_off_group(plan) / (1 + self.total_workers)

    def _broken_rules(self, plan: ArylPlacementPlan) -> Iterator[Violation]:
        yield from exceeding("workers_at_least_0", 0, plan.workers)
        yield from unequal("all_placed", total(plan.workers, axis=1), self.num_workers)
        yield from exceeding("server_gpus", product(self.gpus_per_worker, plan.workers), self.server_gpus)
        flexible = (plan.workers[self.flexible] > 0).any(axis=0)
        others = (plan.workers[~self.flexible] > 0).any(axis=0) | self.in_use
        yield from exceeding("separate_groups", flexible & others & self.on_loan, False)

    def _draw(self, axes: Axes, plan: ArylPlacementPlan | None) -> None:
        names = [f"job {job}{' (elastic)' if elastic else ''}" for job, elastic in enumerate(self.elastic.tolist())]
        # Training servers stand before those on loan.
        order = np.argsort(self.on_loan, kind="stable")
        training = self.num_servers - int(self.on_loan.sum())
        if plan is None:
            gpus = np.diag(self.num_workers * self.gpus_per_worker)
            pictures.stacked(
                axes,
                gpus,
                texts=[
                    f"{workers}×{size}"
                    for workers, size in zip(self.num_workers.tolist(), self.gpus_per_worker.tolist(), strict=True)
                ],
                hatched=np.broadcast_to(self.elastic[:, None], gpus.shape),
            )
            pictures.number_axis(axes.xaxis, self.num_jobs)
            axes.set_xlabel(
                f"job (for it {training} training servers of {self.server_gpus[~self.on_loan].sum()} GPUs in all, "
                f"{self.num_servers - training} inference of {self.server_gpus[self.on_loan].sum()})"
            )
            axes.set_ylabel("GPUs wanted: workers × GPUs of a worker")
            pictures.legend(axes, [], {"elastic": pictures.HATCHED} if self.elastic.any() else {})
            return
        # A plan for no jobs may come without the columns.
        workers = plan.workers.reshape(self.num_jobs, self.num_servers)
        gpus = workers * self.gpus_per_worker[:, None]
        off = self.off_group & (workers > 0)
        texts = [str(job) for job in range(self.num_jobs)]
        if self.in_use.any():
            gpus, off = np.vstack([gpus, self.used_gpus]), np.vstack([off, np.zeros(self.num_servers, bool)])
            names.append("in use before")
            texts.append("")
        pictures.servers(
            axes,
            gpus[:, order],
            capacity=(self.server_gpus + self.used_gpus)[order],
            names=[str(server) for server in order.tolist()],
            hatched=off[:, order],
            texts=texts,
        )
        axes.axvspan(training - 0.5, self.num_servers - 0.5, color=pictures.OUTLINE, alpha=0.1, linewidth=0, zorder=0)
        axes.set_xlabel("server (shaded: inference servers on loan)")
        axes.set_ylabel("GPUs")
        pictures.legend(axes, names, {"off its group": pictures.HATCHED} if off.any() else {})


@checked
def generate(
    rng: np.random.Generator | int,
    *,
    total_workers: Count = 40,
    workers_per_job: Annotated[float, Scalar(float, minimum=1)] = 3.0,
    elastic: Fraction = 0.3,
    awkward: Fraction = 0.5,
    load: Annotated[float, Scalar(float, above=0, maximum=1)] = 0.8,
    gpus_per_server: Count = 8,
    in_use: Fraction = 0.0,
    heterogeneous: Fraction = 0.0,
) -> ArylPlacement:
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
    in_use : float
        Servers that hold workers placed before, from 0 to 1, as a fraction of the others, and beside them.  Of their
        GPUs any number is free, at least one.
    heterogeneous : float
        Fraction from 0 to 1 of the jobs that can run on both kinds of GPUs at once (10% in the scenario Advanced of
        section 7.1, all in Ideal).
    """
    rng = np.random.default_rng(rng)
    sizes: list[int] = []
    while sum(sizes) < total_workers:
        sizes.append(min(int(rng.geometric(1 / workers_per_job)), total_workers - sum(sizes)))
    n = len(sizes)
    powers = np.array([g for g in (1, 2, 4, 8) if g <= gpus_per_server])
    gpus = np.where(rng.random(n) < awkward, rng.integers(1, gpus_per_server + 1, n), rng.choice(powers, n))
    servers = max(2, int(np.ceil(gpus @ sizes / (load * gpus_per_server))))
    groups = _draw_groups(rng, servers)
    is_elastic = rng.random(n) < elastic
    # A server of one GPU has none free when it is in use.
    used = rng.integers(1, gpus_per_server, round(in_use * servers)) if gpus_per_server > 1 else np.zeros(0, np.int64)
    if used.size:
        groups = np.concatenate([groups, _draw_groups(rng, len(used))])
    return ArylPlacement(
        gpus_per_worker=gpus,
        num_workers=np.array(sizes),
        elastic=is_elastic,
        server_gpus=np.concatenate([np.full(servers, gpus_per_server), gpus_per_server - used]),
        server_groups=groups,
        used_gpus=np.concatenate([np.zeros(servers, np.int64), used]),
        # Drawn last, so that without any the rest is what it was.
        heterogeneous=rng.random(n) < heterogeneous,
    )


def _draw_groups(rng: np.random.Generator, num_servers: int) -> StrArray:
    """(s,) str: about half of the servers are inference servers, on loan."""
    return np.where(rng.permutation(num_servers) < num_servers / 2, "inference", "training")


from_frame = ArylPlacement.from_frame


def from_placements(
    rng: np.random.Generator | int,
    *,
    placements: Source,
    total_workers: int = 40,
    elastic: float = 0.3,
    gpus_per_server: int = 8,
    in_use: bool = False,
    **choice: Unpack[PlacementChoice],
) -> ArylPlacement:
    """Workers that came one after the other, to be placed together on the servers that they came to.

    What a job holds on a server is a worker of as many GPUs, and workers of a job that differ are jobs of their own.
    Of each server are free what jobs that had come before do not hold when the first of these workers comes, and at
    least what they held there: the table's own placement is a plan.

    The table, the time and the errors are those of :class:`instances.data.placements.PlacementChoice`; the generator
    draws which jobs are elastic and which servers on loan, too.

    Parameters
    ----------
    total_workers : int
        Workers of all jobs.
    elastic : float
        Fraction from 0 to 1 of the jobs that are elastic.
    gpus_per_server : int
        GPUs of each server, where the table does not tell.
    in_use : bool
        Whether servers are in use that jobs hold which had come before; else all count as empty.
    """
    rng = np.random.default_rng(rng)
    coming = draw_coming(rng, placements, total_workers, **choice)
    kinds, workers = np.unique(np.column_stack([coming.piece_jobs, coming.gpus]), axis=0, return_counts=True)
    came = np.bincount(coming.piece_servers, weights=coming.gpus).astype(np.int64)
    sizes = coming.server_gpus
    free = (gpus_per_server if sizes is None else sizes) - coming.held
    is_elastic = rng.random(len(coming.jobs)) < elastic
    told = coming.origin(
        "instances.aryl.placement.from_placements",
        jobs=[coming.jobs[job] for job in kinds[:, 0]],
        repairs={
            "what a job held on a server is a worker": total_workers,
            "server has more free GPUs than the table leaves it, for what came to it": int((came > free).sum()),
            "whether a job is elastic is drawn": len(coming.jobs),
            "whether a server is on loan is drawn": len(coming.servers),
        },
        total_workers=total_workers,
        elastic=elastic,
        gpus_per_server=gpus_per_server if sizes is None else None,
        **({"in_use": True} if in_use else {}),
    )
    return ArylPlacement(
        gpus_per_worker=kinds[:, 1],
        num_workers=workers,
        elastic=is_elastic[kinds[:, 0]],
        server_gpus=np.maximum(free, came),
        server_groups=_draw_groups(rng, len(coming.servers)),
        used_gpus=coming.held if in_use else np.zeros(len(came), np.int64),
    ).with_origin(told)


def four_servers() -> ArylPlacement:
    """Two servers of 8 GPUs in each group, on which keeping to the groups opens one too many.

    Job 0 has two workers of 3 GPUs and job 1 four of 2: 14 GPUs on the two training servers.  The
    worker of elastic job 2 needs 2 GPUs: on the training server with 2 to spare it costs 1/8 for
    being off its group, on an inference server of its own it costs a whole server.
    """
    return ArylPlacement(
        gpus_per_worker=np.array([3, 2, 2]),
        num_workers=np.array([2, 4, 1]),
        elastic=np.array([False, False, True]),
        server_gpus=np.array([8, 8, 8, 8]),
        server_groups=np.array(["training", "training", "inference", "inference"]),
    )


def base_and_flexible() -> ArylPlacement:
    """Return a base and a flexible worker of 4 GPUs of one elastic job, and two servers on loan.

    Each needs an inference server of its own, so that the flexible worker's can go back without a
    preemption; placed without regard to elasticity they would share one.
    """
    return ArylPlacement(
        gpus_per_worker=np.array([4, 4]),
        num_workers=np.array([1, 1]),
        elastic=np.array([True, True]),
        server_gpus=np.array([3, 8, 8]),
        server_groups=np.array(["training", "inference", "inference"]),
        flexible=np.array([False, True]),
    )


def two_full_servers() -> ArylPlacement:
    """Workers of 4, 3, 3, 2, 2 and 2 GPUs that fill two servers of 8, where best fit needs three.

    4 + 2 + 2 and 3 + 3 + 2 leave no GPU free; best fit puts 4 and 3 together, which strands a GPU.
    """
    return ArylPlacement(
        gpus_per_worker=np.array([4, 3, 2]),
        num_workers=np.array([1, 2, 3]),
        elastic=np.zeros(3, bool),
        server_gpus=np.full(3, 8),
        server_groups=np.full(3, "training"),
    )
