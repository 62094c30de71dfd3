"""Servers to give back: Aryl (EuroSys'23 as Lyra), section 4.

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
from typing import TYPE_CHECKING, Annotated, Literal, Unpack

import numpy as np

from instances import pictures
from instances.arguments import AtLeast0, Count, Fraction, checked
from instances.base import Instance, Plan, PlanError, Violation
from instances.data.lines import Source
from instances.data.placements import PlacementChoice, draw_held
from instances.schema import Array, BoolArray, IntArray, Scalar

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Reclaim", "ReclaimPlan", "figure_5", "from_frame", "from_placements", "generate", "six_servers", "wide_job"]

RETURNED: pictures.Look = {"facecolor": "#d1242f", "alpha": 0.18, "linewidth": 0}
"""The look of a returned server in pictures."""


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
        Number of servers to return, at least 0.  No plan returns more than s.
    """

    problem = "aryl.reclaim"
    sense = "min"
    measure = "jobs preempted"
    plan_type = ReclaimPlan

    hosts: Annotated[BoolArray, Array(bool, "n s")]
    gpus: Annotated[IntArray, Array(int, "n s", minimum=0)]
    demand: Annotated[int, Scalar(int, minimum=0)]

    def _check(self) -> None:
        bare = np.argwhere(self.hosts & (self.gpus == 0))
        if bare.size:
            job, server = bare[0]
            raise self.refuse("gpus", f"got 0 at index [{job}, {server}], must be positive where hosts is true")

    @property
    def num_jobs(self) -> int:
        """Number of jobs, n."""
        return self.dims["n"]

    @property
    def num_servers(self) -> int:
        """Number of servers, s."""
        return self.dims["s"]

    @property
    def flexible_servers(self) -> IntArray:
        """Servers without base workers: they are returned without preempting any job (section 5.3)."""
        return np.flatnonzero(~self.hosts.any(axis=0))

    def preempted(self, plan: ReclaimPlan) -> BoolArray:
        """(n,) bool: the jobs with base workers on a returned server."""
        outside = self._outside(plan)
        if outside.size:
            raise PlanError(f"{self.problem}: there is no server {outside[0]}, only 0 to {self.num_servers - 1}")
        preempted: BoolArray = np.asarray(self.hosts[:, plan.servers].any(axis=1))
        return preempted

    def _outside(self, plan: ReclaimPlan) -> IntArray:
        return plan.servers[(plan.servers < 0) | (plan.servers >= self.num_servers)]

    def _value(self, plan: ReclaimPlan) -> float:
        return int(self.preempted(plan).sum())

    def excess_gpus(self, plan: ReclaimPlan) -> int:
        """GPUs vacated in excess of the demand: those of preempted jobs on servers that are not returned.

        Base and flexible GPUs count alike, because a preempted job loses both.
        """
        preempted = self.preempted(plan)
        kept = np.ones(self.num_servers, bool)
        kept[plan.servers] = False
        return int(self.gpus[np.ix_(preempted, kept)].sum())

    def collateral_damage(self, plan: ReclaimPlan, *, relative_to: Literal["vacated", "returned"] = "vacated") -> float:
        """Return the fraction of GPUs vacated in excess of the demand (section 7.3); 0 where none are vacated.

        Parameters
        ----------
        plan : ReclaimPlan
        relative_to : "vacated" or "returned"
            What the excess is a fraction of, which the paper leaves open: all GPUs that are vacated, on
            returned servers and elsewhere (a value below 1), or those on returned servers alone.

        Returns
        -------
        float
            :meth:`excess_gpus` as a fraction.
        """
        excess = self.excess_gpus(plan)
        returned = int(self.gpus[:, np.unique(plan.servers)].sum())
        return excess / (returned + excess * (relative_to == "vacated")) if excess else 0.0

    def _broken_rules(self, plan: ReclaimPlan) -> Iterator[Violation]:
        for server in self._outside(plan):
            yield Violation("server_exists", (int(server),), 1.0)
        servers, counts = np.unique(plan.servers, return_counts=True)
        for server, count in zip(servers, counts, strict=True):
            if count > 1:
                yield Violation("server_once", (int(server),), float(count - 1))
        if len(plan.servers) != self.demand:
            yield Violation("demand", (), float(abs(len(plan.servers) - self.demand)))

    def _draw(self, axes: Axes, plan: ReclaimPlan | None) -> None:
        marks: dict[str, pictures.Look] = {}
        preempted = np.zeros(self.num_jobs, bool)
        if plan is not None:
            returned = np.unique(np.setdiff1d(plan.servers, self._outside(plan)))
            for server in returned.tolist():
                axes.axvspan(server - 0.5, server + 0.5, **RETURNED, zorder=0)
            preempted |= self.hosts[:, returned].any(axis=1)
            marks |= {"returned server": RETURNED} | ({"preempted job": pictures.HATCHED} if preempted.any() else {})
        flexible = ~self.hosts & (self.gpus > 0)
        if flexible.any():
            marks["flexible workers only"] = pictures.FADED
        pictures.servers(axes, self.gpus, hatched=np.broadcast_to(preempted[:, None], self.gpus.shape), faded=flexible)
        axes.set_xlabel(f"server ({self.demand} to return)")
        axes.set_ylabel("GPUs")
        pictures.legend(axes, [f"job {job}" for job in range(self.num_jobs)], marks)


@checked
def generate(
    rng: np.random.Generator | int,
    *,
    num_servers: Count = 20,
    demand: Annotated[int, Scalar(int, minimum=0)] | None = None,
    jobs_per_server: AtLeast0 = 3.0,
    spread: Fraction = 0.8,
    locality: Fraction = 0.9,
    elastic: Fraction = 0.05,
    gpus_per_server: Count = 8,
) -> Reclaim:
    """Draw a cluster on loan with jobs spread over its servers.

    Jobs come one after the other; each takes a GPU on as many servers as it is wide, close to one
    another or anywhere, where one is free.  Then some of the GPUs left on each server go to the
    jobs on it.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    num_servers : int
        Servers on loan, s.
    demand : int, optional
        Servers to return; 20% of them, at least one, by default.
    jobs_per_server : float
        Jobs for each server: n is this times s, less the jobs that find the cluster full.
    spread : float
        Hardness dial from 0 to 1.  At 0 every job sits on one server and the greedy choice is
        optimal; at 1 a job spans four servers on average and the servers' costs depend on each
        other.
    locality : float
        Hardness dial from 1 to 0.  At 1 a job takes the free servers that follow one another from
        a random one, as packing leaves them: greedy choices err most.  At 0 any free servers:
        wide jobs overlap everywhere, heuristics err less, and proofs take longest.
    elastic : float
        Fraction of the jobs that also hold flexible workers (5% in the paper's traces).
    gpus_per_server : int
        GPUs of each server (8 in the paper).
    """
    rng = np.random.default_rng(rng)
    s = num_servers
    wanted = max(1, round(jobs_per_server * s))
    # Geometric in the number of servers: most jobs are small, some are wide.
    widths = rng.geometric(1 - 0.75 * spread, wanted)
    flexible = np.where(rng.random(wanted) < elastic, rng.integers(1, 3, wanted), 0)
    free = np.full(s, gpus_per_server)
    hosts = np.zeros((wanted, s), bool)
    gpus = np.zeros((wanted, s), np.int64)
    for job in range(wanted):
        size = int(widths[job] + flexible[job])
        open_servers = np.flatnonzero(free > 0)
        nearest = open_servers[np.argsort((open_servers - rng.integers(s)) % s)]
        window = size + round((1 - locality) * max(0, s - size))
        chosen = rng.permutation(nearest[:window])[:size]
        hosts[job, chosen[: widths[job]]] = True
        gpus[job, chosen] = 1
        free[chosen] -= 1
    for server, row in enumerate(gpus.T.copy()):
        here = np.flatnonzero(row)
        more = rng.integers(0, free[server] + 1)
        if here.size:
            gpus[here, server] += rng.multinomial(more, np.full(len(here), 1 / len(here)))
    placed = hosts.any(axis=1)
    return Reclaim(hosts=hosts[placed], gpus=gpus[placed], demand=_demand(s, demand))


def _demand(num_servers: int, demand: int | None) -> int:
    """Servers to return: those asked for, else a fifth."""
    return max(1, round(0.2 * num_servers)) if demand is None else demand


from_frame = Reclaim.from_frame


def from_placements(
    rng: np.random.Generator | int,
    *,
    placements: Source,
    num_servers: int = 20,
    demand: int | None = None,
    **choice: Unpack[PlacementChoice],
) -> Reclaim:
    """Servers that were in use at a time, and the jobs on them, all of whose workers count as base workers.

    The table, the time and the errors are those of :class:`instances.data.placements.PlacementChoice`.

    Parameters
    ----------
    num_servers : int
        Servers, s.
    demand : int, optional
        As in :func:`generate`.
    """
    held = draw_held(np.random.default_rng(rng), placements, num_servers, **choice)
    wanted = _demand(num_servers, demand)
    told = held.origin(
        "instances.aryl.reclaim.from_placements",
        repairs={"workers count as base workers, which the table does not tell": len(held.jobs)},
        num_servers=num_servers,
        demand=wanted,
    )
    return Reclaim(hosts=held.gpus > 0, gpus=held.gpus, demand=wanted).with_origin(told)


def figure_5(demand: int = 2) -> Reclaim:
    """Return the six servers of Figure 5, whose costs are those of Table 1.

    Jobs a to d are 0 to 3 and servers 1 to 6 are 0 to 5.  Job a has half of its GPUs on each of the
    first two servers, b all of its on the third, c 80% on the fourth and 20% on the fifth, d 20% on
    the fifth and 80% on the sixth::

        server                        1    2    3    4    5    6
        number of jobs                1    1    1    1    2    1
        sum of fractions of GPUs     .5   .5    1   .8   .4   .8
        sum of fractions of servers  .5   .5    1   .5    1   .5

    The numbers of GPUs are in the figure's drawing only; 4 + 4, 8, 4 + 1 and 1 + 4 give these
    fractions on servers of 8, and so would twice as many of a, c and d.  Two servers are to be returned
    in the text: the first two preempt one job, and any others two or more.

    Parameters
    ----------
    demand : int
        Servers to return.
    """
    gpus = np.array(
        [
            [4, 4, 0, 0, 0, 0],
            [0, 0, 8, 0, 0, 0],
            [0, 0, 0, 4, 1, 0],
            [0, 0, 0, 0, 1, 4],
        ]
    )
    return Reclaim(hosts=gpus > 0, gpus=gpus, demand=demand)


def six_servers() -> Reclaim:
    """Six servers of 8 GPUs, three to return, on which only the fraction of servers leads right.

    An example in the manner of :func:`figure_5`, with numbers of this library's own.  Jobs 0
    and 1 span servers 3, 4 and 5; jobs 2 and 3 keep 7 of their 8 GPUs on servers 0 and 1, next to
    the small jobs 4 and 5, and the last one on server 2::

        server   jobs    by count   by GPUs   by servers
        0        2, 4    2          15/8      3/2
        1        3, 5    2          15/8      3/2
        2        2, 3    2          1/4       1
        3        0, 1    2          5/8       2/3
        4        0, 1    2          5/8       2/3
        5        0, 1    2          3/4       2/3

    Counting jobs tells nothing and ends with 4 preempted jobs; the fraction of GPUs falls for
    server 2 and ends with 4; the fraction of servers returns 3, 4 and 5 and preempts jobs 0 and 1
    only, the optimum.
    """
    gpus = np.array(
        [
            [0, 0, 0, 2, 3, 3],
            [0, 0, 0, 3, 2, 3],
            [7, 0, 1, 0, 0, 0],
            [0, 7, 1, 0, 0, 0],
            [1, 0, 0, 0, 0, 0],
            [0, 1, 0, 0, 0, 0],
        ]
    )
    return Reclaim(hosts=gpus > 0, gpus=gpus, demand=3)


def wide_job() -> Reclaim:
    """Six servers, two to return, on which Algorithm 1 preempts two jobs where one is enough.

    Job 0 spans servers 0, 3, 4 and 5, and the last three host a job of their own each (2, 3, 4);
    job 1 spans servers 1 and 2.  Server 0 costs least, 1/4, but nothing else becomes free with it;
    servers 1 and 2 cost 1/2 each and go together.
    """
    hosts = np.zeros((5, 6), bool)
    hosts[0, [0, 3, 4, 5]] = True
    hosts[1, [1, 2]] = True
    hosts[[2, 3, 4], [3, 4, 5]] = True
    return Reclaim(hosts=hosts, gpus=np.where(hosts, 2, 0), demand=2)
