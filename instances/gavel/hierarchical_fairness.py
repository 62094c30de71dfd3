"""Fairness at two levels, entities and their jobs: Gavel (OSDI'20), section 4.3.

Entities (teams, departments) share a cluster by their weights, and each shares what it gets among
its jobs, by their weights ("fairness") or in their order ("fifo").  What counts of a job is its
normalised throughput, relative to an equal share of the cluster.  Water filling says who gets what:

- the levels of all jobs start at 0 and rise together, each at the job's current weight: its
  entity's weight, shared among the entity's jobs that still rise in proportion to ``weights``, or
  under "fifo" all of it on the first of them;
- a job is frozen at its level when no allocation gives it more while every other job keeps its level;
- then weights are shared anew, until all jobs are frozen.

A job to which X_equal gives nothing is frozen at 0 from the start.

The vector of levels in which this ends is the solution.  With one entity it is the
lexicographically greatest vector of normalised throughput over weight.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Unpack

import numpy as np

from instances import pictures
from instances.arithmetic import power
from instances.base import Violation, exceeding
from instances.data.lines import Source
from instances.gavel.sharing import Allocation, Sharing
from instances.gavel.synthetic import ClusterOptions, draw_cluster
from instances.gavel.traces import TraceChoice, entities_of, jobs_from_trace
from instances.schema import Array, BoolArray, FloatArray, IntArray, StrArray, default

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "HierarchicalAllocation",
    "HierarchicalFairness",
    "four_jobs",
    "from_frame",
    "from_trace",
    "generate",
    "growing_cluster",
    "product_and_research",
    "two_entities",
]


@dataclass(frozen=True, eq=False)
class HierarchicalAllocation(Allocation):
    """Fractions of time, and what they give.

    Attributes
    ----------
    time_fractions : (n+q, k) float
        As in :class:`instances.gavel.sharing.Allocation`.
    normalized_throughputs : (n,) float
        ``scale_factor_m * throughput(m, X) / throughput(m, X_equal)``, by which plans are compared.
    """

    normalized_throughputs: Annotated[FloatArray, Array(float, "n")]


@dataclass(frozen=True, eq=False, kw_only=True)
class HierarchicalFairness(Sharing):
    """Jobs of several entities that share a cluster; the other fields are those of :class:`Sharing`.

    Attributes
    ----------
    entities : (n,) int
        Entity of each job, 0 by default.
    entity_weights : (e,) float
        Weight of each entity, positive; by default there is one entity, of weight 1.
    entity_policies : (e,) str
        "fairness" or "fifo" for each entity, "fairness" by default.  Under "fifo" jobs are served
        in the order of their numbers.
    weights : (n,) float
        Weight of each job in its entity, positive, 1 by default; it means nothing under "fifo".
    """

    problem = "gavel.hierarchical_fairness"
    sense = "max"
    measure = "first level of normalised throughput"
    plan_type = HierarchicalAllocation

    entities: Annotated[IntArray, Array(int, "n", index_of="e")] = default(lambda dims: np.zeros(dims["n"], np.int64))
    entity_weights: Annotated[FloatArray, Array(float, "e", above=0)] = default(lambda dims: np.ones(dims.get("e", 1)))
    entity_policies: Annotated[StrArray, Array(str, "e", choices=("fairness", "fifo"))] = default(
        lambda dims: np.full(dims["e"], "fairness")
    )
    weights: Annotated[FloatArray, Array(float, "n", above=0)] = default(lambda dims: np.ones(dims["n"]))

    @property
    def num_entities(self) -> int:
        """Number of entities."""
        return self.dims["e"]

    def rates(self, frozen: BoolArray) -> FloatArray:
        """(n,) float: current weight of each job, at which its level rises; 0 for those that do not.

        Parameters
        ----------
        frozen : (n,) bool
            The jobs whose levels have stopped.
        """
        rising = ~frozen
        fair = (self.entity_policies == "fairness")[self.entities]
        weights = np.where(rising & fair, self.weights, 0.0)
        shares = np.zeros(self.num_jobs)
        total = np.bincount(self.entities, weights=weights, minlength=self.num_entities)
        np.divide(weights, total[self.entities], out=shares, where=weights > 0)
        queued = np.flatnonzero(rising & ~fair)
        _, first = np.unique(self.entities[queued], return_index=True)
        shares[queued[first]] = 1.0
        rates: FloatArray = shares * self.entity_weights[self.entities]
        return rates

    @cached_property
    def ceilings(self) -> FloatArray:
        """(n,) float: normalised throughput of each job at best, all the time in its best row and type."""
        ceilings: FloatArray = self.greatest_throughputs * self.level_per_throughput
        return ceilings

    def plan(self, allocation: Allocation) -> HierarchicalAllocation:
        """Return an allocation as a plan of this problem."""
        return HierarchicalAllocation(
            time_fractions=allocation.time_fractions, normalized_throughputs=self.normalized_throughputs(allocation)
        )

    def _value(self, plan: Allocation) -> float:
        """Return the first level: the height to which all jobs that rise at first can rise together under the plan.

        Plans are to be compared by their whole vector; this is its part that one number can hold.
        """
        rates = self.rates(np.zeros(self.num_jobs, bool))
        rising = rates > 0
        return float((self.normalized_throughputs(plan)[rising] / rates[rising]).min())

    def _broken_rules(self, plan: Allocation) -> Iterator[Violation]:
        yield from super()._broken_rules(plan)
        assert isinstance(plan, HierarchicalAllocation)
        received = self.normalized_throughputs(plan)
        error = np.abs(plan.normalized_throughputs - received)
        yield from exceeding("normalized_throughputs", error, 0, size=np.abs(received))

    def _draw(self, axes: Axes, plan: Allocation | None) -> None:
        names = [
            f"entity {entity} (weight {weight:.3g}, {policy})"
            for entity, (weight, policy) in enumerate(
                zip(self.entity_weights.tolist(), self.entity_policies.tolist(), strict=True)
            )
        ]
        if plan is None:
            super()._draw(axes, None)
            # A strip in the colour of its entity beside each job.
            for job, entity in enumerate(self.entities.tolist()):
                axes.axhspan(job - 0.5, job + 0.5, xmax=0.012, color=pictures.colour(entity))
            pictures.legend(axes, names)
            return
        # Jobs of an entity stand together, in its colour.
        order = np.argsort(self.entities, kind="stable")
        rank = np.argsort(order)
        rows = np.concatenate([order, np.arange(self.num_jobs, len(plan.time_fractions))])
        labels = [str(job) for job in order.tolist()] + [f"{a}+{b}" for a, b in self.pairs.tolist()]
        pictures.time_fractions(
            axes,
            plan.time_fractions[rows],
            scale_factors=self.row_scale_factors[rows],
            pairs=rank[self.pairs],
            pools=self.pools,
            num_workers=self.num_workers,
            texts=labels,
            colours=[pictures.colour(entity) for entity in self.entities[order].tolist()],
        )
        axes.set_ylabel("workers kept busy, by job")
        pictures.legend(axes, names, self._marks())


def generate(
    rng: np.random.Generator | int,
    *,
    num_entities: int = 3,
    fifo_fraction: float = 0.4,
    weight_spread: float = 8.0,
    **options: Unpack[ClusterOptions],
) -> HierarchicalFairness:
    """Synthetic jobs of several entities.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    num_entities : int
        Entities, e; jobs belong to any of them alike.
    fifo_fraction : float
        Probability of an entity to serve its jobs in order.
    weight_spread : float
        Hardness dial: weights are log-uniform from 1 to this, for entities up to its square root.
        The more they differ, the more levels there are.
    **options
        Sizes and the hardness dial of :func:`instances.gavel.synthetic.draw_cluster`.
    """
    rng = np.random.default_rng(rng)
    fields = draw_cluster(rng, **options)
    n = len(fields["scale_factors"])
    return HierarchicalFairness(
        **fields,
        entities=rng.integers(0, num_entities, n),
        entity_weights=power(weight_spread, rng.uniform(0, 0.5, num_entities)),
        entity_policies=np.where(rng.random(num_entities) < fifo_fraction, "fifo", "fairness"),
        weights=power(weight_spread, rng.uniform(0, 1, n)),
    )


def from_trace(
    rng: np.random.Generator | int,
    *,
    throughputs: Source,
    trace: Source,
    num_jobs: int = 16,
    num_entities: int = 3,
    entities_by: str = "random",
    **choice: Unpack[TraceChoice],
) -> HierarchicalFairness:
    """Jobs of a real trace, with the throughputs of a published table and the trace's priorities.

    The other parameters and errors are those of :func:`instances.gavel.traces.jobs_from_trace`.

    Parameters
    ----------
    num_entities, entities_by
        Entities, which traces do not name; see :func:`instances.gavel.traces.entities_of`.
    """
    rng = np.random.default_rng(rng)
    jobs, fields = jobs_from_trace(rng, throughputs=throughputs, trace=trace, num_jobs=num_jobs, **choice)
    told = jobs.attrs["origin"]
    told["options"] |= {"entities_by": entities_by, "num_entities": num_entities}
    return HierarchicalFairness(
        **fields,
        **entities_of(jobs, entities_by, num_entities, rng),
        weights=jobs["priority"].to_numpy(float),
    ).with_origin(told)


from_frame = HierarchicalFairness.from_frame


def four_jobs() -> HierarchicalFairness:
    """Return the example of section 4.3: jobs of weights 3, 1, 1, 1 on 4 GPUs of one type.

    The first level is where job 0 runs all the time, at weight 1/2, and the others a third of it.
    There is a GPU for everybody, so the others go on rising, and all end at 1.
    """
    return HierarchicalFairness(
        throughputs=np.ones((4, 1)), num_workers=np.array([4]), weights=np.array([3.0, 1.0, 1.0, 1.0])
    )


def two_entities() -> HierarchicalFairness:
    """Two entities of weights 1 and 2 on three GPUs of one type, the second in order.

    Job 2, first of the second entity, has all its time when jobs 0 and 1 of the first are at a
    quarter each.  Then job 3 rises in its place, twice as fast as jobs 0 and 1 together, and has
    all its time when they are at half each; that fills the GPUs.
    """
    return HierarchicalFairness(
        throughputs=np.ones((4, 1)),
        num_workers=np.array([3]),
        entities=np.array([0, 0, 1, 1]),
        entity_weights=np.array([1.0, 2.0]),
        entity_policies=np.array(["fairness", "fifo"]),
    )


def product_and_research() -> HierarchicalFairness:
    """Return the two teams of Figure 6 on two GPUs: three jobs that share fairly, and two in order.

    If job 3 is frozen its weight goes to job 4; if job 1 is, its weight is shared by jobs 0 and 2.  (The
    figure counts jobs from 1; speeds, GPUs and the teams' weights are not printed.)
    """
    return HierarchicalFairness(
        throughputs=np.ones((5, 1)),
        num_workers=np.array([2]),
        entities=np.array([0, 0, 0, 1, 1]),
        entity_weights=np.ones(2),
        entity_policies=np.array(["fairness", "fifo"]),
    )


def growing_cluster(time: int = 68, *, policy: str = "fairness") -> HierarchicalFairness:
    """Return the cluster of Figures 12 and 13 at a time: three workers of each of three types, a new job every 4 steps.

    The first six jobs belong to entity 0 of weight 1, the next to entity 1 of weight 2, the last to entity 2
    of weight 3; all 18 are there at time 68.  (The jobs' speeds are not printed.  These are made up: three
    kinds of jobs in turn, which gain 10, 4 and 2 times from the fastest type.)

    Parameters
    ----------
    time : int
        Time steps, at least 0; job m is there from step 4 m on.
    policy : str
        "fairness" within entities (Figure 12), or "fifo" (Figure 13).
    """
    jobs = np.arange(min(18, time // 4 + 1))
    speeds = np.array([[10.0, 4.0, 1.0], [8.0, 5.0, 2.0], [4.0, 3.0, 2.0]])
    return HierarchicalFairness(
        throughputs=speeds[jobs % 3],
        num_workers=np.array([3, 3, 3]),
        entities=jobs // 6,
        entity_weights=np.array([1.0, 2.0, 3.0]),
        entity_policies=np.full(3, policy),
    )
