"""Places of jobs: buddy placement with migration, ElasticFlow (ASPLOS'23), section 4.3.

Jobs hold powers of two of GPUs, and the GPUs of a job are to be close to each other.  Number the
GPUs of the cluster; a job of size s gets a *block*, GPUs o to o + s - 1 with o a multiple of s.  So
a job no larger than a server stays inside one (in one half, quarter, ... of it), and a larger one
takes whole servers.  Running jobs have a block already, and moving them costs time:

    min   |{ i running : o_i != o_i' }|
    s.t.  blocks [o_i, o_i + s_i) inside the cluster and disjoint, o_i a multiple of s_i.

If moving is allowed there is a placement whenever the sizes sum to at most the number of GPUs:
the largest first, each at the next free offset, which is always a multiple of its size.

As printed / as built
---------------------
The paper's claim that nothing is lost to fragmentation needs servers of a power of two of GPUs;
other servers are refused here.  A running job's size may have changed since it was placed, so its
previous offset need not be a multiple of its size, and previous blocks may overlap: then some
running jobs have to move.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Unpack

import numpy as np

from instances import pictures
from instances.arguments import AtLeast0, Count, Fraction, checked
from instances.base import Instance, InstanceError, Plan, Violation, exceeding
from instances.data.lines import Source
from instances.data.placements import PlacementChoice, draw_held
from instances.schema import LONGEST, Array, BoolArray, FloatArray, IntArray, Scalar

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "ElasticFlowPlacement",
    "ElasticFlowPlacementPlan",
    "fragmented_server",
    "from_frame",
    "from_placements",
    "generate",
    "seven_and_seven",
]


@dataclass(frozen=True, eq=False)
class ElasticFlowPlacementPlan(Plan):
    """Blocks of the jobs.

    Attributes
    ----------
    offsets : (n,) int
        First GPU of each job's block.
    """

    offsets: Annotated[IntArray, Array(int, "n")]


@dataclass(frozen=True, eq=False, kw_only=True)
class ElasticFlowPlacement(Instance[ElasticFlowPlacementPlan]):
    """A cluster, the sizes of the jobs, and where the running ones are.

    ``gpus_per_server`` is also found as ``server_gpus``, and ``num_servers`` follows from it.

    Attributes
    ----------
    num_gpus : int
        GPUs of the cluster, a multiple of ``gpus_per_server``, at most 10,000,000.
    gpus_per_server : int
        GPUs of each server, a power of two.
    sizes : (n,) int
        GPUs of each job, powers of two.  There is no placement of more than ``num_gpus``.
    previous_offsets : (n,) float
        First GPU of each running job's block so far, a whole number; infinite (in JSON ``null``)
        for a new job.
    """

    problem = "elasticflow.placement"
    sense = "min"
    measure = "running jobs moved"
    plan_type = ElasticFlowPlacementPlan

    num_gpus: Annotated[int, Scalar(int, minimum=1, maximum=LONGEST)]
    gpus_per_server: Annotated[int, Scalar(int, minimum=1)]
    sizes: Annotated[IntArray, Array(int, "n", minimum=1)]
    previous_offsets: Annotated[FloatArray, Array(float, "n", minimum=0, infinite=True)]

    def _check(self) -> None:
        server = self.gpus_per_server
        if server & (server - 1):
            raise self.refuse("gpus_per_server", f"got {server}, must be a power of two")
        if self.num_gpus % server:
            raise self.refuse("num_gpus", f"got {self.num_gpus}, must be a multiple of gpus_per_server, {server}")
        odd = np.flatnonzero(self.sizes & (self.sizes - 1))
        if odd.size:
            job = odd[0]
            raise self.refuse("sizes", f"got {self.sizes[job]} at index [{job}], must be a power of two")
        where = self.previous_offsets
        bad = np.flatnonzero(self.running & ((where != np.floor(where)) | (where >= self.num_gpus)))
        if bad.size:
            job = bad[0]
            raise self.refuse(
                "previous_offsets",
                f"got {where[job]:g} at index [{job}], must be a whole number below num_gpus, {self.num_gpus}",
            )

    @property
    def num_jobs(self) -> int:
        """Number of jobs, n."""
        return self.dims["n"]

    @property
    def num_servers(self) -> int:
        """Servers that the GPUs make."""
        return self.num_gpus // self.gpus_per_server

    @property
    def server_gpus(self) -> int:
        """GPUs of each server, ``gpus_per_server``."""
        return self.gpus_per_server

    @property
    def running(self) -> BoolArray:
        """(n,) bool: the jobs that have a block already."""
        return np.isfinite(self.previous_offsets)

    @property
    def can_stay(self) -> BoolArray:
        """(n,) bool: the running jobs whose previous offset, by itself, suits their size."""
        where = np.where(self.running, self.previous_offsets, 0).astype(np.int64)
        fits: BoolArray = self.running & (where % self.sizes == 0) & (where + self.sizes <= self.num_gpus)
        return fits

    def _value(self, plan: ElasticFlowPlacementPlan) -> float:
        return int((self.running & (plan.offsets != self.previous_offsets)).sum())

    def _broken_rules(self, plan: ElasticFlowPlacementPlan) -> Iterator[Violation]:
        last = self.num_gpus - self.sizes
        yield from exceeding("aligned", plan.offsets % self.sizes, 0)
        yield from exceeding("inside", 0, plan.offsets)
        yield from exceeding("inside", plan.offsets, last)
        inside = (plan.offsets >= 0) & (plan.offsets <= last)
        yield from exceeding("disjoint", _held(plan.offsets[inside], self.sizes[inside], self.num_gpus), 1)

    def _draw(self, axes: Axes, plan: ElasticFlowPlacementPlan | None) -> None:
        shown = np.flatnonzero(self.running) if plan is None else np.arange(self.num_jobs)
        offsets = (self.previous_offsets[shown] if plan is None else plan.offsets).astype(np.int64)
        moved = np.zeros(self.num_jobs, bool) if plan is None else self.running & (offsets != self.previous_offsets)
        row, few = self.gpus_per_server, self.num_servers <= pictures.MOST_NUMBERED
        for job, offset in zip(shown.tolist(), offsets.tolist(), strict=True):
            end = offset + int(self.sizes[job])
            # A block beyond the edge of a server goes on in the next one.
            for server in range(offset // row, -(-end // row)):
                left, right = max(offset, server * row), min(end, (server + 1) * row)
                axes.barh(
                    server,
                    right - left,
                    left=left - server * row,
                    height=0.8 if few else 1.0,
                    color=pictures.colour(job),
                    edgecolor="white",
                    linewidth=0.6 if few else 0.0,
                    hatch="////" if moved[job] else None,
                    alpha=1.0 if self.running[job] else pictures.FADED["alpha"],
                )
                if few:
                    axes.text(
                        (left + right) / 2 - server * row,
                        server,
                        str(job),
                        ha="center",
                        va="center",
                        fontsize=7,
                        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.8},
                    )
        for server in range(self.num_servers):
            axes.barh(
                server, row, height=0.8, fill=False, edgecolor=pictures.OUTLINE, linewidth=1.1 if few else 0.3, zorder=3
            )
        pictures.number_axis(axes.yaxis, self.num_servers)
        axes.invert_yaxis()
        new = np.flatnonzero(~self.running)
        to_place = f" (before; {pictures.jobs(new)} to place)" if plan is None and new.size else ""
        axes.set_xlabel(f"GPU of the server{to_place}")
        axes.set_ylabel("server")
        marks: dict[str, pictures.Look] = {"moved job": pictures.HATCHED} if moved.any() else {}
        if plan is not None and not self.running.all():
            marks["new job"] = pictures.FADED
        pictures.legend(axes, [f"job {job}, {size} GPUs" for job, size in enumerate(self.sizes.tolist())], marks)


def _held(offsets: IntArray, sizes: IntArray, num_gpus: int) -> IntArray:
    """(num_gpus,) int: blocks that each GPU is in."""
    starts = np.bincount(offsets, minlength=num_gpus + 1)
    ends = np.bincount(offsets + sizes, minlength=num_gpus + 1)
    return np.cumsum(starts - ends)[:num_gpus]


@checked
def generate(
    rng: np.random.Generator | int,
    *,
    num_servers: Count = 8,
    gpus_per_server: Count = 8,
    load: AtLeast0 = 1.0,
    churn: Fraction = 0.4,
    resized: Fraction = 0.1,
) -> ElasticFlowPlacement:
    """Draw a full cluster after some jobs have ended, some have changed their size and others have come.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    num_servers, gpus_per_server : int
        Servers of the cluster, and GPUs of each.
    load : float
        Hardness dial: GPUs of all jobs now, as a part of the cluster (a little less, to fit).  The
        nearer to 1, the more of the fragments that ended jobs left behind must be joined by moving
        others; above 1 there is no placement.
    churn : float
        Part of the jobs that have ended.
    resized : float
        Part of the others whose size has doubled or halved.
    """
    rng = np.random.default_rng(rng)
    num_gpus = num_servers * gpus_per_server
    sizes = _draw_sizes(rng, num_gpus, num_gpus)
    offsets = np.zeros(len(sizes), np.int64)
    free = np.ones(num_gpus, bool)
    for job in np.argsort(-sizes, kind="stable"):
        blocks = np.flatnonzero(free[: num_gpus // sizes[job] * sizes[job]].reshape(-1, sizes[job]).all(axis=1))
        offsets[job] = sizes[job] * rng.choice(blocks)
        free[offsets[job] : offsets[job] + sizes[job]] = False
    stays = rng.random(len(sizes)) >= churn
    sizes, offsets = sizes[stays], offsets[stays]
    changes = rng.random(len(sizes)) < resized
    doubles = rng.random(len(sizes)) < 0.5
    sizes = np.where(changes, np.where(doubles, np.minimum(2 * sizes, _largest(num_gpus)), (sizes + 1) // 2), sizes)
    fits = np.cumsum(sizes) <= load * num_gpus
    sizes, offsets = sizes[fits], offsets[fits]
    new = _draw_sizes(rng, num_gpus, int(load * num_gpus) - int(sizes.sum()))
    if not len(sizes) + len(new):
        new = np.array([1])
    return ElasticFlowPlacement(
        num_gpus=num_gpus,
        gpus_per_server=gpus_per_server,
        sizes=np.concatenate([sizes, new]),
        previous_offsets=np.concatenate([offsets.astype(float), np.full(len(new), np.inf)]),
    )


from_frame = ElasticFlowPlacement.from_frame


def _draw_sizes(rng: np.random.Generator, num_gpus: int, total: int) -> IntArray:
    """Sizes of jobs, most of them small, that sum to ``total``."""
    sizes: list[int] = []
    left = total
    while left > 0:
        size = int(rng.choice([1, 2, 4, 8, 16], p=[0.4, 0.2, 0.2, 0.15, 0.05]))
        sizes.append(min(size, _largest(num_gpus), _largest(left)))
        left -= sizes[-1]
    return np.array(sizes, np.int64)


def _largest(count: int) -> int:
    """Return the largest power of two up to ``count``."""
    return 1 << (count.bit_length() - 1)


def from_placements(
    rng: np.random.Generator | int,
    *,
    placements: Source,
    num_servers: int = 8,
    gpus_per_server: int = 8,
    **choice: Unpack[PlacementChoice],
) -> ElasticFlowPlacement:
    """Jobs where they ran at a time, and a job that comes and takes the largest block that the free GPUs make.

    A job holds a power of two of GPUs, those that it held rounded down.  Tables say which server a job was on, and not
    which of its GPUs: on each server the jobs' GPUs follow each other in the table's order, and a job on several
    servers began on the first of these.

    The table, the time and the errors are those of :class:`instances.data.placements.PlacementChoice`.

    Parameters
    ----------
    num_servers, gpus_per_server : int
        Servers, and the GPUs of each; jobs that no longer fit on a server are left out.
    """
    if gpus_per_server < 1:
        raise InstanceError(f"gpus_per_server: got {gpus_per_server}, must be at least 1")
    held = draw_held(np.random.default_rng(rng), placements, num_servers, **choice)
    num_gpus = num_servers * gpus_per_server
    ends = np.zeros(len(held.servers), np.int64)
    sizes, offsets, jobs = [], [], []
    for job, on in zip(held.jobs, held.gpus, strict=True):
        if (ends + on <= gpus_per_server).all():
            first = int(np.flatnonzero(on)[0])
            sizes.append(_largest(int(on.sum())))
            offsets.append(float(first * gpus_per_server + ends[first]))
            jobs.append(job)
            ends += on
    left = num_gpus - sum(sizes)
    if left:
        sizes.append(_largest(left))
        offsets.append(np.inf)
    told = held.origin(
        "instances.elasticflow.placement.from_placements",
        jobs=jobs,
        repairs={
            "job no longer fits on its server, and is left out": len(held.jobs) - len(jobs),
            "GPUs of a server are taken to follow each other": len(jobs),
            "job is put in that takes the largest block": int(left > 0),
        },
        num_servers=num_servers,
        gpus_per_server=gpus_per_server,
    )
    return ElasticFlowPlacement(
        num_gpus=num_gpus,
        gpus_per_server=gpus_per_server,
        sizes=np.array(sizes, np.int64),
        previous_offsets=np.array(offsets, float),
    ).with_origin(told)


def fragmented_server() -> ElasticFlowPlacement:
    """One server of 8 GPUs that is half free, but in two pieces: a job of 4 needs one move.

    Two jobs of two GPUs run at offsets 0 and 4.  Either one has to make room.
    """
    return ElasticFlowPlacement(
        num_gpus=8,
        gpus_per_server=8,
        sizes=np.array([2, 2, 4]),
        previous_offsets=np.array([0, 4, np.inf]),
    )


def seven_and_seven() -> BoolArray:
    """Mark the idle GPUs of two servers of Figure 5, of whose eight each jobs A and B have taken seven.

    A server has two sockets of four GPUs, in pairs.  The two idle GPUs are in no one pair, socket or
    server, so that job C, which needs two, finds no subtree.

    Returns
    -------
    (16,) bool
    """
    idle: BoolArray = np.arange(16) % 8 == 7
    return idle
