"""Fast methods for :class:`instances.elasticflow.allocation.ElasticFlowAllocation`."""

from __future__ import annotations

import heapq

import numpy as np

from heuristics.elasticflow.filling import fill_job, fill_jobs, needs
from instances.elasticflow.allocation import ElasticFlowAllocation
from instances.elasticflow.sharing import SlotPlan
from instances.schema import IntArray

__all__ = ["greedy_marginal_return", "greedy_marginal_return_repaired"]


def greedy_marginal_return(instance: ElasticFlowAllocation) -> SlotPlan | None:
    """Algorithm 2: minimum satisfactory shares, then the idle GPUs of slot 0 one by one.

    Each job starts with its share by Algorithm 1.  Its *marginal return* is the GPU time that it
    saves if it gets one more GPU in slot 0 and its other slots are filled anew by Algorithm 1 into
    what the others leave; it can be negative.  The job of the highest marginal return gets the next
    GPU (ties go to the lowest job).

    As printed, each job that one more GPU makes faster enters the queue once, with the marginal
    return of its share, and leaves it with its GPU.  So GPUs stay idle that (7) wants used.

    Guarantee: none known.  Plans keep (5) and (6); they can break (7).  It returns None when
    Algorithm 1 finds no shares, which can happen although there is a plan.
    Complexity: O(n log n + (n + G) (G + h)).

    References
    ----------
    ElasticFlow (ASPLOS'23), section 4.2, Algorithm 2.
    """
    return _one_by_one(instance, repaired=False)


def greedy_marginal_return_repaired(instance: ElasticFlowAllocation) -> SlotPlan | None:
    """:func:`greedy_marginal_return`, except that no GPU stays idle that would help (ours).

    A job stays in the queue while another GPU makes it faster, and its marginal return is computed
    again before it is served.

    Guarantee: none known.  Plans keep (5), (6) and (7).  It returns None as
    :func:`greedy_marginal_return` does.
    Complexity: that of :func:`greedy_marginal_return`, with another factor n at worst, which lazy
    evaluation avoids as a rule.
    """
    return _one_by_one(instance, repaired=True)


def _one_by_one(instance: ElasticFlowAllocation, *, repaired: bool) -> SlotPlan | None:
    gpus = fill_jobs(instance, np.arange(instance.num_jobs))
    if gpus is None:
        return None
    growth = _Growth(instance, gpus)
    queue = [(-growth.marginal_return(job), job) for job in range(instance.num_jobs) if growth.faster(job)]
    heapq.heapify(queue)
    while queue and growth.free[0] > 0:
        _, job = heapq.heappop(queue)
        if repaired:
            now = (-growth.marginal_return(job), job)
            if queue and now > queue[0]:
                heapq.heappush(queue, now)
                continue
        growth.grow(job)
        if repaired and growth.faster(job):
            heapq.heappush(queue, (-growth.marginal_return(job), job))
    return SlotPlan(gpus=growth.gpus)


class _Growth:
    """A plan whose jobs can be given one more GPU in slot 0."""

    def __init__(self, instance: ElasticFlowAllocation, gpus: IntArray) -> None:
        self.instance = instance
        self.gpus = gpus
        self.free = instance.num_gpus - gpus.sum(axis=0)
        self.needs = needs(instance)

    def faster(self, job: int) -> bool:
        """Whether one more GPU in slot 0 would make the job faster there."""
        now = self.gpus[job, 0]
        return bool(now < self.instance.num_gpus and self.instance.faster[job, now])

    def marginal_return(self, job: int) -> int:
        """GPU-slots that the job saves if it grows."""
        return int(self.gpus[job].sum() - self._grown(job).sum())

    def grow(self, job: int) -> None:
        grown = self._grown(job)
        self.free[: len(grown)] += self.gpus[job, : len(grown)] - grown
        self.gpus[job, : len(grown)] = grown

    def _grown(self, job: int) -> IntArray:
        """GPUs of the job up to its deadline with one more in slot 0."""
        curve = self.instance.throughputs[job]
        held = self.gpus[job, : self.instance.deadlines[job]]
        now = held[0] + 1
        left = float(self.needs[job] - curve[now])
        rest = fill_job(curve, left, self.free[1 : len(held)] + held[1:])
        if rest is None:
            # Only a falling curve is so: the job keeps what it had, up to where it is done.
            rest = held[1:].copy()
            after = np.cumsum(curve[rest[::-1]])[::-1]
            rest[np.append(after[1:], 0.0) >= left] = 0
        return np.concatenate([[now], rest])
