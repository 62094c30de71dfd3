"""Numbers of GPUs of admitted jobs: ElasticFlow (ASPLOS'23), section 4.2.

All jobs are to meet their deadlines at the least GPU time, as in
:mod:`instances.elasticflow.minimum_satisfactory_share`, but no GPU may be idle in slot 0 as long as
it would speed up a job:

    min   sum_i sum_t x_i(t)                                                       (4)
    s.t.  sum_{t=0}^{D_i - 1} T_i(x_i(t)) >= M_i       for each job i              (5)
          sum_i x_i(t) <= G                            for each slot t             (6)
          sum_i x_i(0) = G, or T_i(x_i(0) + 1) <= T_i(x_i(0)) for each job i.      (7)

As printed / as built
---------------------
Slots run from 0 to D_i - 1, as in Figure 4, not to D_i.  (7) is an implication and is built as one.
A job without iterations left is done, and no GPU makes it faster.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from instances.arithmetic import total
from instances.base import Violation
from instances.elasticflow.sharing import PromisedJobs, SlotPlan
from instances.schema import BoolArray, IntArray

__all__ = [
    "ElasticFlowAllocation",
    "equal_jobs",
    "from_frame",
    "from_trace",
    "generate",
    "overrun",
    "overrun_as_printed",
    "overrun_by_moment",
    "two_idle_gpus",
]


@dataclass(frozen=True, eq=False, kw_only=True)
class ElasticFlowAllocation(PromisedJobs):
    """Admitted jobs, all of which must meet their deadlines; the fields are those of :class:`DeadlineJobs`."""

    problem = "elasticflow.allocation"

    @cached_property
    def gains(self) -> BoolArray:
        """(n, G) bool: whether each job that holds 0 to G - 1 GPUs is faster with one more; a finished job never is."""
        return self.faster & (self.iterations > 0)[:, None]

    def faster_now(self, gpus: IntArray) -> BoolArray:
        """(n,) bool: whether each job would be faster with one more GPU in slot 0."""
        now = np.clip(gpus[:, 0], 0, self.num_gpus)
        rest = np.minimum(now, self.num_gpus - 1)
        return (now < self.num_gpus) & self.gains[np.arange(self.num_jobs), rest]

    def _broken_rules(self, plan: SlotPlan) -> Iterator[Violation]:
        yield from super()._broken_rules(plan)
        idle = self.num_gpus - total(plan.gpus[:, 0]) if self.num_jobs else 0
        if idle > 0:
            for job in np.flatnonzero(self.faster_now(plan.gpus)):
                yield Violation("no_useful_idle_gpu", (int(job),), float(idle))


generate = ElasticFlowAllocation.generate
from_trace = ElasticFlowAllocation.from_trace
from_frame = ElasticFlowAllocation.from_frame


def two_idle_gpus() -> ElasticFlowAllocation:
    """Two equal jobs on four GPUs, of which their minimum satisfactory shares use one each.

    Both do 2, 3 and 3.5 iterations per slot on 1, 2 and 3 GPUs (3.5 on 4 too) and have 4 to do in
    two slots.  One GPU each in both slots, 4 GPU-slots, would do, but leaves two GPUs idle in slot 0
    that would speed them up.  With two GPUs each there, they still need one in slot 1: 6 GPU-slots.
    """
    return ElasticFlowAllocation(
        num_gpus=4,
        iterations=np.array([4.0, 4.0]),
        deadlines=np.array([2, 2]),
        throughputs=np.tile([0.0, 2.0, 3.0, 3.5, 3.5], (2, 1)),
    )


def equal_jobs() -> ElasticFlowAllocation:
    """Two equal jobs whose idle GPUs are best shared, where Algorithm 2 can give them all to one.

    Each GPU adds one iteration per slot less than the one before, 8, 7, ..., 1, and both jobs have 22 to
    do in two slots.  Shares of 1 and 2 GPUs, 3 GPU-slots each, are the least; they leave 6 of the 8 GPUs
    idle in slot 0.  With four GPUs each there, both are done: 8 GPU-slots.  Handed out one by one to the
    job of the highest marginal return, of two equal ones to the lowest, they come to 9; another way of
    breaking these ties comes to 8.
    """
    return ElasticFlowAllocation(
        num_gpus=8,
        iterations=np.array([22.0, 22.0]),
        deadlines=np.array([2, 2]),
        throughputs=np.tile([0.0, 8, 15, 21, 26, 30, 33, 35, 36], (2, 1)),
    )


def overrun_as_printed() -> ElasticFlowAllocation:
    """Three jobs to which Algorithm 2 as printed gives three GPUs of two, however ties are broken.

    Jobs 0 and 1 hold a GPU each in slot 2.  Their x_k, which line 15 subtracts, have one in slot 0 in its
    place and are never carried out, so that job 2 finds room in slot 2.
    """
    return ElasticFlowAllocation(
        num_gpus=2,
        iterations=np.array([6.0, 17.0, 12.0]),
        deadlines=np.array([4, 5, 5]),
        throughputs=np.array([[0.0, 5, 8], [0.0, 6, 7], [0.0, 4, 5]]),
    )


def overrun() -> ElasticFlowAllocation:
    """Four jobs to which Algorithm 2 can give five GPUs of four: plans that are not carried out count.

    Line 15 subtracts the x_k of earlier jobs, and for jobs 0 and 1 these are plans with one GPU more in
    slot 0 and fewer in slots 2 and 3.  Job 2 fills those, and is the one that is served; jobs 0 and 1 hold
    what they held.  Read with the test of (7) and the G of all GPUs.
    """
    return ElasticFlowAllocation(
        num_gpus=4,
        iterations=np.array([12.0, 36.0, 112.0, 14.0]),
        deadlines=np.array([4, 4, 8, 5]),
        throughputs=np.array(
            [[0.0, 9, 12, 15, 16], [0.0, 8, 11, 13, 15], [0.0, 8, 15, 21, 25], [0.0, 8, 12, 14, 16]],
        ),
    )


def overrun_by_moment() -> ElasticFlowAllocation:
    """Four jobs to which Algorithm 2 can give four GPUs of three: jobs of later deadlines do not count.

    Jobs 1 and 3, of deadline 7, hold a GPU each in slot 1.  Job 2, of deadline 5, grows, and line 15 finds
    room for it there.  All is as printed, with the moments of finishing compared.
    """
    return ElasticFlowAllocation(
        num_gpus=3,
        iterations=np.array([15.0, 14.0, 15.0, 20.0]),
        deadlines=np.array([5, 7, 5, 7]),
        throughputs=np.array([[0.0, 2, 4, 5], [0.0, 6, 9, 10], [0.0, 7, 13, 19], [0.0, 7, 9, 10]]),
    )
