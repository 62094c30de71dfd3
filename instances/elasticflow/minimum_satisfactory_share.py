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

from dataclasses import dataclass

import numpy as np

from instances.elasticflow.sharing import PromisedJobs

__all__ = [
    "MinimumSatisfactoryShare",
    "diminishing_returns",
    "from_frame",
    "from_trace",
    "generate",
    "job_alone",
    "job_in_company",
    "turned_away",
    "two_jobs",
]


@dataclass(frozen=True, eq=False, kw_only=True)
class MinimumSatisfactoryShare(PromisedJobs):
    """Jobs that must all meet their deadlines; the fields are those of :class:`DeadlineJobs`."""

    problem = "elasticflow.minimum_satisfactory_share"


generate = MinimumSatisfactoryShare.generate
from_trace = MinimumSatisfactoryShare.from_trace
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


def diminishing_returns(deadline: int = 6) -> MinimumSatisfactoryShare:
    """Return the job of section 4.1 whose GPU time grows as its deadline comes nearer.

    Its curve is that of job C, and it has one unit of work, which takes 1, 2/3 and 1/2 of a unit of time
    on 1, 2 and 4 GPUs: 1, 4/3 and 2 units of GPU time.  A slot is 1/6 of a unit here, and so is an
    iteration of work: deadlines of 6, 4 and 3 slots take 6, 8 and 12 GPU-slots.

    Parameters
    ----------
    deadline : int
        Slots until the deadline; the paper's are 6 and 4.
    """
    return MinimumSatisfactoryShare(
        num_gpus=4,
        iterations=np.array([6.0]),
        deadlines=np.array([deadline]),
        throughputs=np.array([[0, 1, 1.5, 1.75, 2]]),
    )


def turned_away() -> MinimumSatisfactoryShare:
    """Three jobs with a plan that Algorithm 1 does not find.

    All do 2 iterations per slot on one GPU and 3 on both.  Jobs 0 and 1 have 2 to do by slot 2, and
    Algorithm 1 puts both into slot 1, the last before their deadline, which is then full.  Job 2 has 7
    to do by slot 3, and slots 0 and 2 do 6 at most.  With job 0 in slot 0, job 2 could have a GPU in
    slots 0 and 1 and both in slot 2.
    """
    return MinimumSatisfactoryShare(
        num_gpus=2,
        iterations=np.array([2.0, 2.0, 7.0]),
        deadlines=np.array([2, 2, 3]),
        throughputs=np.tile([0.0, 2.0, 3.0], (3, 1)),
    )
