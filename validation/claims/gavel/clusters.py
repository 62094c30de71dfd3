"""Instances of Gavel's policies: all small ones of a kind, and random ones."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from instances.gavel.cost import Cost
from instances.gavel.fifo import Fifo
from instances.gavel.finish_time_fairness import FinishTimeFairness
from instances.gavel.makespan import Makespan
from instances.gavel.max_min_fairness import MaxMinFairness
from instances.gavel.priced import PricedSharing
from instances.gavel.sharing import Sharing
from instances.gavel.shortest_job_first import ShortestJobFirst
from instances.gavel.steps import SharingWithSteps
from instances.gavel.throughput_per_dollar import ThroughputPerDollar
from instances.gavel.total_throughput import TotalThroughput
from validation.claims.claim import Claim
from validation.claims.words import listed

__all__ = [
    "DRAWN",
    "DRAWN_ASSUMPTIONS",
    "DRAWN_OF_ONE_WORKER",
    "DRAWN_ON_ONE_TYPE",
    "FAMILY_ASSUMPTIONS",
    "ONE_WORKER",
    "POLICIES",
    "SLOS",
    "WIDE",
    "Family",
    "are_drawn",
    "are_drawn_of_one_worker",
    "can_be",
    "drawn",
    "late_if_split",
    "of_family",
]

POLICIES: tuple[type[Sharing], ...] = (
    MaxMinFairness,
    Makespan,
    FinishTimeFairness,
    Fifo,
    ShortestJobFirst,
    TotalThroughput,
    Cost,
    ThroughputPerDollar,
)
"""The policies that are linear programs over times on types."""


def _or(values: tuple[float, ...]) -> str:
    """Return alternatives in words: ``1``, ``1 or 2`` or ``1, 2 or 3``."""
    return listed([f"{value:g}" for value in values], last="or")


@dataclass(frozen=True)
class Family:
    """All jobs of some kinds on all clusters of a few types, smallest first, once up to numbering.

    Attributes
    ----------
    policy : type
    most_jobs : int
    speeds : tuple of int
        Throughputs that a job can have.
    jobs, types : mapping of str to tuple
        Further fields with an entry for each job or type, and the values that it can have.
    ordered : bool
        Whether the order of the jobs matters.
    most_types : int
    workers : tuple of int
        Workers that a type can have.

    Notes
    -----
    Instances that cannot be (:func:`can_be`) are left out.
    """

    policy: type[Sharing]
    most_jobs: int
    speeds: tuple[int, ...]
    jobs: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    types: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    ordered: bool = False
    most_types: int = 2
    workers: tuple[int, ...] = (1, 2)

    def instances(self, rng: np.random.Generator) -> Iterator[Sharing]:
        """Yield the instances; nothing of them is random."""
        types = {"num_workers": self.workers, **self.types}
        sizes = itertools.product(range(1, self.most_jobs + 1), range(1, self.most_types + 1))
        for n, k in sorted(sizes, key=lambda size: (size[0] * size[1], size)):
            kinds = list(itertools.product(*self.jobs.values(), *[self.speeds] * k))
            sets: Iterator[tuple[Any, ...]] = itertools.combinations_with_replacement(kinds, n)
            members = itertools.product(kinds, repeat=n) if self.ordered else sets
            columns = itertools.combinations_with_replacement(itertools.product(*types.values()), k)
            both = itertools.product(members, columns)
            for rows, cols in sorted(both, key=lambda each: sum(map(sum, each[0])) + sum(map(sum, each[1]))):
                fields: dict[str, Any] = {name: np.array([c[i] for c in cols]) for i, name in enumerate(types)}
                fields |= {name: np.array([r[i] for r in rows]) for i, name in enumerate(self.jobs)}
                fields["throughputs"] = np.array([r[len(self.jobs) :] for r in rows], float)
                instance = self.policy(**fields)
                if can_be(instance):
                    yield instance

    def has(self, instance: Sharing) -> bool:
        """Return whether the numbers are those of the scope, and all jobs have work, fit and have a possible past."""
        return (
            type(instance) is self.policy
            and 1 <= instance.num_jobs <= self.most_jobs
            and instance.num_types <= self.most_types
            and not len(instance.pairs)
            and set(instance.throughputs.ravel().tolist()) <= set(self.speeds)
            and set(instance.num_workers.tolist()) <= set(self.workers)
            and all(
                set(getattr(instance, name).tolist()) <= set(values)
                for name, values in (*self.jobs.items(), *self.types.items())
            )
            and can_be(instance)
        )

    @property
    def scope(self) -> str:
        """Description of the instances in words."""
        fields = [*self.jobs.items(), *self.types.items()]
        further = [f"{name} of {_or(values)}" for name, values in fields if len(values) > 1]
        speeds = f"up to {self.most_jobs} jobs of {_or(self.speeds)} steps/s"
        workers = f"{'one type' if self.most_types == 1 else 'one or two types'} of {_or(self.workers)} workers"
        numbering = "in every order" if self.ordered else "up to numbering"
        return ", ".join([f"{speeds} on {workers}", *further, numbering])


def can_be(instance: Sharing) -> bool:
    """Return whether all jobs have work, run on a type that they fit, and have a past only if they have been there."""
    fits = instance.scale_factors[:, None] <= instance.num_workers[instance.pools]
    runs = bool((fits & (instance.throughputs > 0)).any(axis=1).all())
    works = not isinstance(instance, SharingWithSteps) or bool((instance.steps > 0).all())
    past = not isinstance(instance, FinishTimeFairness) or bool(
        ((instance.elapsed > 0) | (instance.isolated_elapsed == 0)).all()
    )
    return runs and works and past


def _draw(
    policy: type[Sharing],
    rng: np.random.Generator,
    *,
    most_types: int = 3,
    wide: bool = True,
    pairs: bool = True,
    slos: bool = False,
) -> Sharing:
    """Draw up to 5 jobs, of several workers, with zero throughputs, placements and pairs, in whole numbers."""
    n, p = int(rng.integers(1, 6)), int(rng.integers(1, most_types + 1))
    k = int(rng.integers(p, most_types + 1))
    num_workers = rng.integers(1, 5, p)
    widest = int(num_workers.argmax())
    throughputs = rng.integers(0, 9, (n, k)).astype(float)
    throughputs[:, widest] = np.maximum(1, throughputs[:, widest])
    scale_factors = rng.integers(1, num_workers[widest] + 1, n) if wide else np.ones(n, np.int64)
    fields: dict[str, Any] = {
        "throughputs": throughputs,
        "num_workers": num_workers,
        "pools": np.concatenate([np.arange(p), rng.integers(0, p, k - p)]),
        "scale_factors": scale_factors,
    }
    if pairs:
        alike = [(a, b) for a, b in itertools.combinations(range(n), 2) if scale_factors[a] == scale_factors[b]]
        chosen = [pair for pair in alike if rng.random() < 0.7]
        fields["pairs"] = np.array(chosen, np.int64).reshape(-1, 2)
        fields["pair_throughputs"] = rng.integers(0, 9, (len(chosen), k, 2)).astype(float)
    if issubclass(policy, MaxMinFairness):
        fields["weights"] = rng.integers(1, 5, n).astype(float)
    if issubclass(policy, SharingWithSteps):
        fields["steps"] = rng.integers(1, 61, n).astype(float)
    if issubclass(policy, FinishTimeFairness):
        elapsed, isolated = rng.integers(0, 61, (2, n)).astype(float)
        fields["elapsed"], fields["isolated_elapsed"] = elapsed, np.where(elapsed > 0, isolated, 0.0)
    if issubclass(policy, PricedSharing):
        fields["costs"] = rng.integers(1, 6, k).astype(float)
        if slos:
            fields["slos"] = np.where(rng.random(n) < 0.5, rng.integers(1, 61, n), np.inf)
    return policy(**fields)


def drawn(*policies: type[Sharing], **options: Any) -> Callable[[np.random.Generator], Iterator[Sharing]]:
    """Return the generator of random instances, of the policies in turn."""

    def instances(rng: np.random.Generator) -> Iterator[Sharing]:
        for policy in itertools.cycle(policies):
            yield _draw(policy, rng, **options)

    return instances


def are_drawn(instance: Sharing) -> bool:
    """Return whether up to 5 jobs on up to 3 types have work, run on a type that they fit, and have a possible past."""
    whole = all(
        (array[np.isfinite(array)] % 1 == 0).all()
        for array in (instance.throughputs, instance.pair_throughputs, getattr(instance, "steps", np.zeros(1)))
    )
    return 1 <= instance.num_jobs <= 5 and instance.num_types <= 3 and whole and can_be(instance)


def late_if_split(policy: type[Sharing]) -> Sharing:
    """Return two jobs on one worker, of which the slower has an SLO that asks for three quarters of the time."""
    priced: dict[str, Any] = {"steps": [3.0, 1.0], "slos": [4.0, np.inf], "costs": [1.0]}
    return policy(throughputs=np.array([[1.0], [2.0]]), num_workers=np.array([1]), **priced)


def are_drawn_of_one_worker(instance: Sharing) -> bool:
    """Return whether up to 5 jobs of one worker on up to 3 types have work, run on a type, and have a possible past."""
    return are_drawn(instance) and bool((instance.scale_factors == 1).all())


DRAWN_ON_ONE_TYPE = "random jobs, up to 5 of up to 4 workers on up to 4 of one type"
"""Description of the random instances on one type of worker."""
DRAWN = "random jobs, up to 5 of up to 4 workers on up to 3 types, with pairs and placements"
"""Description of the random instances."""
DRAWN_OF_ONE_WORKER = "random jobs, up to 5 of one worker on up to 3 types, with pairs and placements"
"""Description of those of jobs of one worker."""
SLOS = ", half of them with SLOs of 1 to 60 s"
"""What further describes those of the policies of price."""

DRAWN_ASSUMPTIONS = (
    "throughputs are known and do not change, time is divided without loss, at most two jobs share workers. What is "
    "stated of policies names no size of cluster; here clusters and throughputs are small whole numbers. A job gets no "
    "time on a type with fewer workers than it holds, which the paper leaves open."
)
"""Assumptions of the paper that random instances keep."""
FAMILY_ASSUMPTIONS = (
    "throughputs are known and do not change, time is divided without loss. What is stated of policies names no "
    "size of cluster; here clusters are small, so that jobs compete for every worker, and no space is shared."
)
"""Assumptions of the paper that the families of small clusters keep."""


def of_family(family: Family, **told: Any) -> Claim:
    """Return a claim that is tried on all instances of a family."""
    made = {"assumptions": FAMILY_ASSUMPTIONS, "relaxed": "", "assumes": family.has, **told}
    return Claim(instances=family.instances, scope=family.scope, exhaustive=True, **made)


ONE_WORKER = Family(MaxMinFairness, 3, (1, 2, 3))
"""Jobs of one worker."""

WIDE = Family(MaxMinFairness, 3, (1, 2), jobs={"scale_factors": (1, 2)}, workers=(1, 2, 3))
"""Jobs of one or two workers."""
