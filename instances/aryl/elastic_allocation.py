"""Who gets the spare GPUs: Aryl (EuroSys'23 as Lyra), section 5.2 and phase two of Algorithm 2.

Every elastic job holds its minimum of workers; ``capacity`` GPUs are left.  Job j can take w more
workers, up to its maximum, and then runs for a shorter time.  Choose w for every job so that the
total reduction of running time is greatest: a multiple-choice knapsack.

    max  sum_j reduction[j][w_j]    s.t.  sum_j w_j * gpus_per_worker[j] <= capacity.

Under linear scaling a job that takes T_j s at its maximum takes T_j * max_j / (min_j + w) s with
w extra workers, so the reduction is

    T_j * (max_j / min_j) * w / (w + min_j),

the paper's ``T_max * w / (w + w_min)`` with T_max the job's longest running time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from instances.base import (
    Array,
    FloatArray,
    Instance,
    IntArray,
    Plan,
    PlanError,
    Ragged,
    Scalar,
    Violation,
    agree,
    exceeding,
)


@dataclass(frozen=True, eq=False)
class ElasticAllocationPlan(Plan):
    """Workers to add.

    Attributes
    ----------
    extra_workers : (n,) int
        Workers of each job beyond its minimum.
    """

    extra_workers: Annotated[IntArray, Array(int, "n")]


@dataclass(frozen=True, eq=False)
class ElasticAllocation(Instance[ElasticAllocationPlan]):
    """Elastic jobs and the GPUs that are left after their base demands.

    Attributes
    ----------
    capacity : int
        GPUs left, at least 0.
    min_workers, max_workers : (n,) int
        Fewest and most workers of each job; 1 <= min <= max.
    gpus_per_worker : (n,) int
        GPUs of each worker, at least 1.
    min_running_times : (n,) float
        Running time with the most workers, s, positive.
    running_times : tuple of n arrays, optional
        For jobs that do not scale linearly: running time with min, min + 1, ..., max workers, s.
        The last entry must equal ``min_running_times``.  None for linear scaling.
    """

    problem = "aryl.elastic_allocation"
    sense = "max"
    plan_type = ElasticAllocationPlan

    capacity: Annotated[int, Scalar(int, minimum=0)]
    min_workers: Annotated[IntArray, Array(int, "n", minimum=1)]
    max_workers: Annotated[IntArray, Array(int, "n", minimum=1)]
    gpus_per_worker: Annotated[IntArray, Array(int, "n", minimum=1)]
    min_running_times: Annotated[FloatArray, Array(float, "n", above=0)]
    running_times: Annotated[tuple[FloatArray, ...] | None, Ragged(float, "n w", above=0)] = None

    def check(self) -> None:
        below = np.flatnonzero(self.max_workers < self.min_workers)
        if below.size:
            job = below[0]
            raise self.refuse(
                "max_workers",
                f"got {self.max_workers[job]} at index [{job}], must be at least min_workers, {self.min_workers[job]}",
            )
        for job, table in enumerate(self.running_times or ()):
            wanted = int(self.max_extra[job]) + 1
            if len(table) != wanted:
                raise self.refuse("running_times", f"entry {job}: got {len(table)} times, must be {wanted}")
            if not agree(table[-1], self.min_running_times[job]):
                raise self.refuse(
                    "running_times",
                    f"entry {job}: ends with {table[-1]:g}, must end with min_running_times, "
                    f"{self.min_running_times[job]:g}",
                )

    @property
    def num_jobs(self) -> int:
        return self.dims["n"]

    @property
    def max_extra(self) -> IntArray:
        """(n,) int: most extra workers of each job."""
        return self.max_workers - self.min_workers

    @cached_property
    def reductions(self) -> tuple[FloatArray, ...]:
        """For each job, the reduction of its running time with 0, 1, ..., max_extra more workers, s."""
        if self.running_times is not None:
            return tuple(table[0] - table for table in self.running_times)
        longest = self.min_running_times * self.max_workers / self.min_workers
        tables = []
        for job, most in enumerate(self.max_extra):
            extra = np.arange(most + 1)
            tables.append(longest[job] * extra / (extra + self.min_workers[job]))
        return tuple(tables)

    def value(self, plan: ElasticAllocationPlan) -> float:
        outside = np.flatnonzero((plan.extra_workers < 0) | (plan.extra_workers > self.max_extra))
        if outside.size:
            job = outside[0]
            raise PlanError(
                f"{self.problem}: extra_workers is {plan.extra_workers[job]} at index [{job}], "
                f"must be 0 to {self.max_extra[job]}"
            )
        return float(sum(table[extra] for table, extra in zip(self.reductions, plan.extra_workers, strict=True)))

    def broken_rules(self, plan: ElasticAllocationPlan) -> Iterator[Violation]:
        yield from exceeding("min_extra", -plan.extra_workers, 0)
        yield from exceeding("max_extra", plan.extra_workers, self.max_extra)
        yield from exceeding("capacity", int(plan.extra_workers @ self.gpus_per_worker), self.capacity)


def generate(
    rng: np.random.Generator | int,
    *,
    num_jobs: int = 20,
    max_extra: int = 8,
    tightness: float = 0.5,
    linear: bool = True,
) -> ElasticAllocation:
    """Elastic jobs that compete for a fraction of the GPUs they could use.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    num_jobs : int
        Number of jobs, n.
    max_extra : int
        Each job can take 1 to this many extra workers.
    tightness : float
        Hardness dial from 0 to 1: the fraction of the jobs' extra demand that does not fit.  At 0
        everything fits; in between, the knapsack has to choose; at 1 nothing fits.
    linear : bool
        Linear scaling (the paper's), or tables with a parallel efficiency drawn for each job.
    """
    rng = np.random.default_rng(rng)
    min_workers = rng.integers(1, 5, num_jobs)
    extra = rng.integers(1, max_extra + 1, num_jobs)
    gpus_per_worker = rng.choice([1, 2, 4, 8], num_jobs, p=[0.4, 0.3, 0.2, 0.1])
    # Durations as in the traces of these papers: minutes to days, log-uniform.
    times = np.round(60 * 10 ** rng.uniform(1.0, 3.5, num_jobs))
    tables = None
    if not linear:
        tables = []
        for job in range(num_jobs):
            workers = np.arange(min_workers[job], min_workers[job] + extra[job] + 1)
            serial = rng.uniform(0, 0.3)
            speed = 1 / (serial + (1 - serial) / workers)
            tables.append(times[job] * speed[-1] / speed)
    return ElasticAllocation(
        capacity=int((1 - tightness) * (extra @ gpus_per_worker)),
        min_workers=min_workers,
        max_workers=min_workers + extra,
        gpus_per_worker=gpus_per_worker,
        min_running_times=times,
        running_times=None if tables is None else tuple(tables),
    )


def two_elastic_jobs() -> ElasticAllocation:
    """Two jobs of different minimum that compete for two workers of one GPU.

    Both take 40 s with 4 workers; job 0 needs at least 1, job 1 at least 2.  The first extra worker
    saves job 0 80 s of 160 and job 1 26.7 s of 80, the second saves job 0 another 26.7 s: giving
    both to job 0 and giving one to each are worth the same, 106.7 s.
    """
    return ElasticAllocation(
        capacity=2,
        min_workers=np.array([1, 2]),
        max_workers=np.array([4, 4]),
        gpus_per_worker=np.array([1, 1]),
        min_running_times=np.array([40.0, 40.0]),
    )
