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

import numpy as np

from instances.base import Violation
from instances.elasticflow.sharing import DeadlineJobs, SlotPlan, draw_jobs
from instances.elasticflow.traces import PathLike, jobs_from_trace


@dataclass(frozen=True, eq=False, kw_only=True)
class MinimumSatisfactoryShare(DeadlineJobs[SlotPlan]):
    """Jobs that must all meet their deadlines; the fields are those of :class:`DeadlineJobs`."""

    problem = "elasticflow.minimum_satisfactory_share"
    sense = "min"
    plan_type = SlotPlan

    def value(self, plan: SlotPlan) -> float:
        return int(plan.gpus.sum())

    def broken_rules(self, plan: SlotPlan) -> Iterator[Violation]:
        yield from self.broken_slot_rules(plan.gpus, self.iterations)


def generate(
    rng: np.random.Generator | int,
    *,
    num_jobs: int = 8,
    num_gpus: int = 16,
    horizon: int = 20,
    tightness: float = 0.4,
    curves: str = "concave",
) -> MinimumSatisfactoryShare:
    """Synthetic jobs that compete for the GPUs.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    num_jobs : int
        Number of jobs, n.
    num_gpus : int
        GPUs of the cluster.
    horizon : int
        Deadlines are drawn uniformly from 1 to this many slots.
    tightness : float
        Hardness dial, above 0: the largest part of the GPU time up to any deadline that the jobs
        due by then would need if each always ran at its most efficient number of GPUs.  Above 1
        there is no plan.  With linear curves there is one up to about 1 (Theorem 1); with others
        plans run out earlier (for 16 GPUs at about half, for more at less), because jobs that need
        many GPUs run less efficiently.  No job has more to do than it could do alone, which can
        lower the load.
    curves : str
        "concave" (the default), "linear", or "measured": powers of two with an error of measurement,
        flat in between, which is neither concave nor monotone.
    """
    return MinimumSatisfactoryShare(
        **draw_jobs(
            np.random.default_rng(rng),
            num_jobs=num_jobs,
            num_gpus=num_gpus,
            horizon=horizon,
            tightness=tightness,
            curves=curves,
        )
    )


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
) -> MinimumSatisfactoryShare:
    """Consecutive jobs of a real trace; see :func:`instances.elasticflow.traces.jobs_from_trace`."""
    return MinimumSatisfactoryShare(
        **jobs_from_trace(
            rng,
            throughputs=throughputs,
            trace=trace,
            num_jobs=num_jobs,
            num_gpus=num_gpus,
            slot_seconds=slot_seconds,
            draw_deadlines=draw_deadlines,
            interpolate=interpolate,
        )
    )


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
