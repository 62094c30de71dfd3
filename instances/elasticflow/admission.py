"""How many jobs can be promised their deadlines: ElasticFlow (ASPLOS'23), section 4.1.

A job is admitted only if it and all jobs admitted so far can meet their deadlines.  The system
decides job by job, in order of arrival; here all jobs are known, and the question is how many can
be admitted at most:

    max   |A|   over sets A of jobs for which there are GPUs x_i(t) with
          sum_{t=0}^{D_i - 1} T_i(x_i(t)) >= M_i       for each job i in A      (2)
          sum_{i in A} x_i(t) <= G                     for each slot t.         (3)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from instances.base import Array, BoolArray, IntArray, Plan, Violation, exceeding
from instances.elasticflow.sharing import DeadlineJobs, draw_jobs
from instances.elasticflow.traces import PathLike, jobs_from_trace


@dataclass(frozen=True, eq=False)
class AdmissionPlan(Plan):
    """The jobs that are admitted, and how they meet their deadlines.

    Attributes
    ----------
    admitted : (n,) bool
        Whether each job is admitted.
    gpus : (n, h) int
        GPUs of each job in each slot, 0 for jobs that are not admitted; h is the latest deadline.
    """

    admitted: Annotated[BoolArray, Array(bool, "n")]
    gpus: Annotated[IntArray, Array(int, "n h")]


@dataclass(frozen=True, eq=False, kw_only=True)
class Admission(DeadlineJobs[AdmissionPlan]):
    """Jobs that ask to be admitted; the other fields are those of :class:`DeadlineJobs`.

    Attributes
    ----------
    arrival_order : (n,) int
        The jobs in the order in which they ask; each once.
    """

    problem = "elasticflow.admission"
    sense = "max"
    plan_type = AdmissionPlan

    arrival_order: Annotated[IntArray, Array(int, "a", index_of="n")]

    def check(self) -> None:
        super().check()
        if not np.array_equal(np.sort(self.arrival_order), np.arange(self.num_jobs)):
            raise self.refuse(
                "arrival_order",
                f"got {self.arrival_order.tolist()}, must be each job from 0 to {self.num_jobs - 1} once",
            )

    def value(self, plan: AdmissionPlan) -> float:
        return int(plan.admitted.sum())

    def broken_rules(self, plan: AdmissionPlan) -> Iterator[Violation]:
        yield from self.broken_slot_rules(plan.gpus, np.where(plan.admitted, self.iterations, 0.0))
        yield from exceeding("not_admitted", np.where(plan.admitted, 0, plan.gpus.sum(axis=1)), 0)


def generate(
    rng: np.random.Generator | int,
    *,
    num_jobs: int = 10,
    num_gpus: int = 16,
    horizon: int = 20,
    tightness: float = 1.0,
    curves: str = "concave",
) -> Admission:
    """Synthetic jobs, more than can be served, in random order of arrival.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    num_jobs, num_gpus, horizon, curves
        As for :func:`instances.elasticflow.minimum_satisfactory_share.generate`.
    tightness : float
        Hardness dial, above 0: the largest part of the GPU time up to any deadline that the jobs
        due by then would need if each always ran at its most efficient number of GPUs.  At 0.3
        mostly all can be admitted; the larger, the fewer.
    """
    rng = np.random.default_rng(rng)
    fields = draw_jobs(rng, num_jobs=num_jobs, num_gpus=num_gpus, horizon=horizon, tightness=tightness, curves=curves)
    return Admission(**fields, arrival_order=rng.permutation(num_jobs))


def from_trace(
    rng: np.random.Generator | int,
    *,
    throughputs: PathLike,
    trace: PathLike,
    num_jobs: int = 10,
    num_gpus: int = 16,
    slot_seconds: float = 3600.0,
    draw_deadlines: bool = False,
    interpolate: bool = True,
) -> Admission:
    """Consecutive jobs of a real trace, which arrive in the order of the trace.

    The parameters are those of :func:`instances.elasticflow.traces.jobs_from_trace`.
    """
    fields = jobs_from_trace(
        rng,
        throughputs=throughputs,
        trace=trace,
        num_jobs=num_jobs,
        num_gpus=num_gpus,
        slot_seconds=slot_seconds,
        draw_deadlines=draw_deadlines,
        interpolate=interpolate,
    )
    return Admission(**fields, arrival_order=np.arange(num_jobs))


def greedy_arrival() -> Admission:
    """A large job that arrives first keeps out two small ones.

    One GPU for two slots: job 0 needs both slots, jobs 1 and 2 one each.  In order of arrival only
    job 0 is admitted; without it, both others could be.
    """
    return Admission(
        num_gpus=1,
        iterations=np.array([2.0, 1.0, 1.0]),
        deadlines=np.array([2, 2, 2]),
        throughputs=np.tile([0.0, 1.0], (3, 1)),
        arrival_order=np.array([0, 1, 2]),
    )
