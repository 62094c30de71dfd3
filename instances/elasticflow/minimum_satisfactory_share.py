"""The least GPU time that meets every deadline: ElasticFlow (ASPLOS'23), section 4.1.

Job i has to do M_i iterations by its deadline, slot D_i; with x_i(t) of the G GPUs in slot t it
does T_i(x_i(t)).  Choose whole x_i(t) so that

    min   sum_i sum_t x_i(t)                                                  (4)
    s.t.  sum_{t=0}^{D_i - 1} T_i(x_i(t)) >= M_i       for each job i         (2)
          sum_i x_i(t) <= G                            for each slot t        (3)

An instance may have no plan at all: then not all of the jobs can meet their deadlines.

As printed / as built
---------------------
The paper sums from slot 0 to slot D_i; its own example (Figure 4) counts slots 0 to D_i - 1, and
so does this module.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Unpack

import numpy as np

from instances.base import Violation
from instances.data.lines import PathLike
from instances.elasticflow.sharing import DeadlineJobs, SlotPlan
from instances.elasticflow.synthetic import JobOptions, draw_jobs
from instances.elasticflow.traces import JobChoice, jobs_from_trace

__all__ = [
    "MinimumSatisfactoryShare",
    "from_frame",
    "from_trace",
    "generate",
    "job_alone",
    "job_in_company",
    "turned_away",
    "two_jobs",
]


@dataclass(frozen=True, eq=False, kw_only=True)
class MinimumSatisfactoryShare(DeadlineJobs[SlotPlan]):
    """Jobs that must all meet their deadlines; the fields are those of :class:`DeadlineJobs`."""

    problem = "elasticflow.minimum_satisfactory_share"
    sense = "min"
    measure = "GPU-slots"
    plan_type = SlotPlan

    def _value(self, plan: SlotPlan) -> float:
        return int(plan.gpus.sum())

    def _broken_rules(self, plan: SlotPlan) -> Iterator[Violation]:
        yield from self.broken_slot_rules(plan.gpus, self.iterations)


def generate(rng: np.random.Generator | int, **options: Unpack[JobOptions]) -> MinimumSatisfactoryShare:
    """Synthetic jobs that compete for the GPUs.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    **options
        Sizes, curves and the hardness dial of :func:`instances.elasticflow.synthetic.draw_jobs`.
    """
    return MinimumSatisfactoryShare(**draw_jobs(np.random.default_rng(rng), **options))


def from_trace(
    rng: np.random.Generator | int,
    *,
    throughputs: PathLike,
    trace: PathLike,
    num_jobs: int = 10,
    **choice: Unpack[JobChoice],
) -> MinimumSatisfactoryShare:
    """Consecutive jobs of a real trace.

    The parameters and errors are those of :func:`instances.elasticflow.traces.jobs_from_trace`.
    """
    fields = jobs_from_trace(rng, throughputs=throughputs, trace=trace, num_jobs=num_jobs, **choice)
    return MinimumSatisfactoryShare(**fields)


from_frame = MinimumSatisfactoryShare.from_frame


def two_jobs() -> MinimumSatisfactoryShare:
    """Figure 3: two jobs that earliest deadline first cannot serve, and one GPU each can.

    Both have 3 iterations to do, at 1 per unit of time on one GPU and 1.5 on two; the deadlines
    are 3 and 3.5 units.  A slot is half a unit here.
    """
    return MinimumSatisfactoryShare(
        num_gpus=2,
        iterations=np.array([3.0, 3.0]),
        deadlines=np.array([6, 7]),
        throughputs=np.tile([0, 0.5, 0.75], (2, 1)),
    )


def job_alone() -> MinimumSatisfactoryShare:
    """Job C of Figure 4 with the cluster to itself: deadline 2, 3 iterations, 4 GPUs.

    It does 1, 1.5 and 2 iterations per slot on 1, 2 and 4 GPUs (on 3, 1.75, which the paper leaves
    open).  One GPU is too slow; two GPUs for two slots, 4 GPU-slots, just do.
    """
    return MinimumSatisfactoryShare(
        num_gpus=4,
        iterations=np.array([3.0]),
        deadlines=np.array([2]),
        throughputs=np.array([[0, 1, 1.5, 1.75, 2]]),
    )


def job_in_company() -> MinimumSatisfactoryShare:
    """Job C of Figure 4 after jobs A and B, which hold one and two of the GPUs in slot 0.

    One GPU is left for job C in slot 0, so it needs all four in slot 1: 5 GPU-slots, one more than
    alone.
    """
    return MinimumSatisfactoryShare(
        num_gpus=4,
        iterations=np.array([1.0, 1.5, 3.0]),
        deadlines=np.array([1, 1, 2]),
        throughputs=np.tile([0, 1, 1.5, 1.75, 2], (3, 1)),
    )


def turned_away() -> MinimumSatisfactoryShare:
    """Two jobs with a plan that Algorithm 1 does not find.

    Both do 2 iterations per slot on one GPU and 3 on both, and have two slots.  Job 0 has 5 to do,
    which takes one GPU in one slot and both in the other; that leaves one GPU in one slot for the 2
    of job 1.  Algorithm 1 gives job 0 its level, 2, in both slots, and turns job 1 away.
    """
    return MinimumSatisfactoryShare(
        num_gpus=2,
        iterations=np.array([5.0, 2.0]),
        deadlines=np.array([2, 2]),
        throughputs=np.tile([0.0, 2.0, 3.0], (2, 1)),
    )
