"""Starts of waiting jobs: phase one of Aryl (EuroSys'23 as Lyra), section 5.2 and Algorithm 2.

Every job waits for its base demand: all GPUs of an inelastic job, those of its minimum of workers of
an elastic one.  It then runs on them without interruption for a known time.  All jobs are there from
the start.  Choose when each begins so that the average job completion time is least:

    min  (1/n) sum_j (starts[j] + running_times[j])
    s.t. the jobs that run at any time hold at most ``capacity`` GPUs.

Running times are given, so the average time in the queue is least too.  With jobs of several sizes
the problem is NP-hard.  The flexible demand is the next phase's
(:mod:`instances.aryl.elastic_allocation`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

import numpy as np

from instances import pictures
from instances.arguments import Count, Fraction, checked
from instances.arithmetic import power, total
from instances.base import TOLERANCE, Instance, InstanceError, Plan, Violation, exceeding
from instances.schema import Array, BoolArray, FloatArray, IntArray, Scalar

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["BaseAllocation", "BaseAllocationPlan", "from_frame", "generate", "short_but_large"]


@dataclass(frozen=True, eq=False)
class BaseAllocationPlan(Plan):
    """The times at which jobs begin.

    Attributes
    ----------
    starts : (n,) float
        When each job begins, s.
    """

    starts: Annotated[FloatArray, Array(float, "n")]


@dataclass(frozen=True, eq=False)
class BaseAllocation(Instance[BaseAllocationPlan]):
    """Waiting jobs of fixed demands, and the GPUs that they share.

    Attributes
    ----------
    capacity : int
        GPUs, at least 0.
    gpu_demands : (n,) int
        GPUs of each job's base demand, at least 1.
    running_times : (n,) float
        Running time on them, s: the longest that an elastic job can take.  A finished job has 0; it
        needs nothing.
    """

    problem = "aryl.base_allocation"
    sense = "min"
    measure = "average completion time, s"
    plan_type = BaseAllocationPlan

    capacity: Annotated[int, Scalar(int, minimum=0)]
    gpu_demands: Annotated[IntArray, Array(int, "n", minimum=1)]
    running_times: Annotated[FloatArray, Array(float, "n", minimum=0)]

    @property
    def num_jobs(self) -> int:
        """Number of jobs, n."""
        return self.dims["n"]

    @property
    def too_large(self) -> IntArray:
        """Jobs that have work left and need more GPUs than there are."""
        return np.flatnonzero((self.gpu_demands > self.capacity) & (self.running_times > 0))

    def in_order(self, order: Iterable[int]) -> BaseAllocationPlan:
        """Return the plan in which each job, in this order, begins as early as those before it leave it room.

        Parameters
        ----------
        order : iterable of int
            All jobs.

        Raises
        ------
        InstanceError
            When a job needs more GPUs than there are.
        """
        return BaseAllocationPlan(starts=np.array(self.starts_in_order(order), float))

    def starts_in_order(self, order: Iterable[int]) -> list[float]:
        """Return the starts of :meth:`in_order`, s, and no plan: of an order of some jobs; the others have 0.

        Each job is put where the profile of free GPUs has room for it first.  Complexity: O(n) for each job.
        """
        if self.too_large.size:
            raise InstanceError(f"{self.problem}: {pictures.jobs(self.too_large)} can never begin")
        needs, times = self._lists
        starts = [0.0] * len(needs)
        # From each moment on, up to the next, so many GPUs are free.
        moments, free = [0.0], [self.capacity]
        for job in order:
            if times[job] <= 0:
                continue
            first, need = 0, needs[job]
            while True:
                while free[first] < need:
                    first += 1
                end, last = moments[first] + times[job], first + 1
                while last < len(moments) and moments[last] < end and free[last] >= need:
                    last += 1
                if last == len(moments) or moments[last] >= end:
                    break
                first = last
            starts[job] = moments[first]
            if last == len(moments) or moments[last] > end:
                moments.insert(last, end)
                free.insert(last, free[last - 1])
            for at in range(first, last):
                free[at] -= need
        return starts

    @cached_property
    def _lists(self) -> tuple[list[int], list[float]]:
        return self.gpu_demands.tolist(), self.running_times.tolist()

    def running(self, plan: BaseAllocationPlan) -> BoolArray:
        """(n, n) bool: whether job i runs when job j begins."""
        begin, end = plan.starts, plan.starts + self.running_times
        # What rounding of times may add to a job is no overlap.
        slack = np.maximum(TOLERANCE * self.running_times[:, None], 2 * np.spacing(np.abs(begin))[None, :])
        running: BoolArray = (begin[:, None] <= begin[None, :]) & (end[:, None] - begin[None, :] > slack)
        return running

    def _value(self, plan: BaseAllocationPlan) -> float:
        return float((plan.starts + self.running_times).mean())

    def _broken_rules(self, plan: BaseAllocationPlan) -> Iterator[Violation]:
        yield from exceeding("starts_at_least_0", 0, plan.starts)
        running = self.running(plan)
        held = [total(self.gpu_demands[running[:, job]]) for job in range(self.num_jobs)]
        yield from exceeding("capacity", np.array(held, object), self.capacity)

    def _draw(self, axes: Axes, plan: BaseAllocationPlan | None) -> None:
        times = [f"{time:g} s" for time in self.running_times.tolist()]
        if plan is None:
            pictures.stacked(axes, np.diag(self.gpu_demands), texts=times)
            pictures.number_axis(axes.xaxis, self.num_jobs)
            axes.set_xlabel(f"job (in it: its running time), for {self.capacity} GPUs")
            axes.set_ylabel("GPUs of the base demand")
            return
        ends = plan.starts + self.running_times
        moments = np.unique(np.concatenate([[0.0], plan.starts, ends]))
        if len(moments) == 1:
            moments = moments[0] + np.array([0.0, 1.0])
        middles = (moments[:-1] + moments[1:]) / 2
        on = (plan.starts[None, :] <= middles[:, None]) & (middles[:, None] < ends[None, :])
        pictures.completions(axes, ends)
        pictures.over_time(axes, moments, on * self.gpu_demands[None, :], capacity=self.capacity)
        axes.set_xlabel("time, s (dotted: completions)")
        axes.set_ylabel("GPUs")
        pictures.whole_numbers(axes.yaxis)
        pictures.legend(axes, [f"job {job}" for job in range(self.num_jobs)])


@checked
def generate(
    rng: np.random.Generator | int, *, num_jobs: Count = 6, capacity: Count = 16, mixed: Fraction = 1.0
) -> BaseAllocation:
    """Jobs of minutes to hours that wait for a small cluster.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    num_jobs : int
        Number of jobs, n.
    capacity : int
        GPUs, at least 1.
    mixed : float
        Hardness dial from 0 to 1: the fraction of the jobs that need 1, 2, 4 ... GPUs, up to all, and
        not just a quarter of them.  At 0 the shortest job first is optimal.
    """
    rng = np.random.default_rng(rng)
    sizes = 2 ** rng.integers(0, capacity.bit_length(), num_jobs)
    return BaseAllocation(
        capacity=capacity,
        gpu_demands=np.where(rng.random(num_jobs) < mixed, sizes, max(1, capacity // 4)),
        running_times=np.round(60 * power(10, rng.uniform(0.5, 2.5, num_jobs))),
    )


from_frame = BaseAllocation.from_frame


def short_but_large() -> BaseAllocation:
    """Three jobs on 2 GPUs, on which the shortest job first errs.

    The shortest, 2 s, needs both GPUs; the other two, 3 s, need one each.  The shortest first completes
    them at 2, 5 and 5 s, 4 s on average; last, at 5, 3 and 3 s, 11/3 s on average.
    """
    return BaseAllocation(capacity=2, gpu_demands=np.array([2, 1, 1]), running_times=np.array([2.0, 3.0, 3.0]))
