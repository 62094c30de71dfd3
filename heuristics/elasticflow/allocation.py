"""Fast methods for :class:`instances.elasticflow.allocation.ElasticFlowAllocation`."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import numpy as np

from heuristics.elasticflow.filling import fill_fewest, fill_job, fill_jobs, needs
from instances.elasticflow.allocation import ElasticFlowAllocation
from instances.elasticflow.sharing import RATE_TOLERANCE, SlotPlan
from instances.schema import IntArray

__all__ = ["Ties", "greedy_marginal_return", "greedy_marginal_return_repaired", "local_search"]

Queue = list[tuple[int, int]]
Ties = Callable[[Sequence[int]], int]
"""Takes jobs that are tied, and returns one of them."""
Finish = Literal["slot", "moment", "rate"]
Free = Literal["printed", "earlier_jobs", "all_jobs"]


def greedy_marginal_return(
    instance: ElasticFlowAllocation, *, finish: Finish = "slot", free: Free = "printed", ties: Ties | None = None
) -> SlotPlan | None:
    """Algorithm 2 as printed: minimum satisfactory shares, then the idle GPUs of slot 0 one by one.

    Each job starts with its share a_i by Algorithm 1.  Its plan with one more GPU in slot 0 is x_i,
    whose other slots ``ProgressiveFilling(i, 1)`` fills from nothing; its priority, the *marginal
    return*, is the GPU time that x_i saves, often a negative number.  A job enters the queue only if
    x_i finishes before a_i (lines 10 and 23).  The job of the highest priority leaves the queue, x_i
    becomes its a_i, and it may enter again with a new x_i (lines 19 to 24).  The others keep their x_i
    and priorities.

    Guarantee: none known.  Plans keep (5).  They can break (6), because line 15 looks at jobs of
    earlier deadlines only and x_i can be out of date, and (7), because a job that would be faster in
    slot 0 stays out of the queue unless it finishes earlier.  It returns None when Algorithm 1 finds no
    shares, which can happen although there is a plan.
    Complexity: O(n log n + (n + G) (G + n h)).

    Parameters
    ----------
    instance : ElasticFlowAllocation
    finish : str
        What lines 10 and 23 compare: the last slot in which a job still works ("slot"), the moment in it
        at which its iterations are done ("moment"), or when they would be if it went on as in slot 0
        ("rate"), which is the test of (7): whether one more GPU makes the job faster.
    free : str
        What line 15 finds free in a slot: the G that lines 4 and 18 have lowered, less what the jobs of
        earlier deadlines hold in their x_k ("printed"; never less than none); all GPUs, less the
        same ("earlier_jobs"); or all GPUs, less the a_k of all other jobs ("all_jobs"), which keeps (6)
        for every x_i that is not out of date.
    ties : callable, optional
        Takes the jobs of the highest priority, where there are several, and returns the one that leaves
        the queue, each time anew.  By default the lowest.

    References
    ----------
    ElasticFlow (ASPLOS'23), section 4.2, Algorithm 2.
    """
    shares = fill_jobs(instance, np.arange(instance.num_jobs))
    if shares is None:
        return None
    growth = _PrintedGrowth(instance, shares, finish, free)
    queue: Queue = []
    for job in growth.order.tolist():
        growth.idle -= int(growth.held[job, 0])
        growth.enter(queue, job)
    while growth.idle > 0 and queue:
        job = _served(queue, heapq.heappop(queue), ties, None)
        growth.held[job] = growth.grown[job]
        growth.idle -= 1
        growth.enter(queue, job)
    return SlotPlan(gpus=growth.held)


def _served(queue: Queue, first: tuple[int, int], ties: Ties | None, priority: Callable[[int], int] | None) -> int:
    """Return the job that is served of those that are as high as ``first``; the others go back into the queue.

    The queue holds priorities with the sign changed; ``priority``, where given, computes one anew.
    """
    if ties is None:
        return first[1]
    others: Queue = []
    while queue and queue[0][0] == first[0]:
        other = heapq.heappop(queue)[1]
        others.append((first[0] if priority is None else -priority(other), other))
    tied = [first[1], *(other for now, other in others if now == first[0])]
    job = ties(tied) if len(tied) > 1 else first[1]
    for entry in (first, *others):
        if entry[1] != job:
            heapq.heappush(queue, entry)
    return job


class _PrintedGrowth:
    """The variables of Algorithm 2: a (``held``), x (``grown``) and G (``idle``)."""

    def __init__(self, instance: ElasticFlowAllocation, shares: IntArray, finish: Finish, free: Free) -> None:
        self.instance = instance
        self.finish = finish
        self.free = free
        self.needs = needs(instance)
        self.held = shares
        self.grown = shares.copy()
        self.idle = instance.num_gpus
        self.order = np.argsort(instance.deadlines, kind="stable")
        self.rank = np.argsort(self.order)

    def enter(self, queue: Queue, job: int) -> None:
        """Lines 7 to 11, or 20 to 24: the job's plan with one more GPU, and its place in the queue."""
        now = int(self.held[job, 0]) + 1
        if now > self.instance.num_gpus:
            return
        end = int(self.instance.deadlines[job])
        curve = self.instance.throughputs[job]
        self.grown[job] = 0
        self.grown[job, 0] = now
        free = self._free(job)[1:end]
        rest = fill_job(curve, float(self.needs[job] - curve[now]), free)
        # Where no level is enough x_i holds what the last one gave, all that is free, and line 15 subtracts it.
        self.grown[job, 1:end] = free if rest is None else rest
        if rest is not None and self._sooner(job, now):
            saved = int(self.held[job].sum() - self.grown[job].sum())
            heapq.heappush(queue, (-saved, job))

    def _free(self, job: int) -> IntArray:
        """(h,) int: what line 15 finds free."""
        if self.free == "all_jobs":
            most, others = self.instance.num_gpus, self.held.sum(axis=0) - self.held[job]
        else:
            most = self.idle if self.free == "printed" else self.instance.num_gpus
            others = self.grown[self.order[: self.rank[job]]].sum(axis=0)
        left: IntArray = np.maximum(0, most - others)
        return left

    def _sooner(self, job: int, now: int) -> bool:
        """Return whether the job finishes earlier with its GPUs of ``grown`` than with those of ``held``."""
        if self.finish == "rate":
            return bool(self.instance.gains[job, now - 1])
        # Equal moments differ by rounding.
        return self._finishes(job, self.grown) < self._finishes(job, self.held) * (1 - RATE_TOLERANCE)

    def _finishes(self, job: int, gpus: IntArray) -> float:
        """Return the time at which the job is done, in slots from now."""
        if self.needs[job] <= 0:
            return 0
        work = np.cumsum(self.instance.throughputs[job, gpus[job]])
        slot = int(np.searchsorted(work, self.needs[job]))
        if self.finish == "slot" or slot == len(work):
            return slot
        before = work[slot - 1] if slot else 0.0
        return float(slot + (self.needs[job] - before) / (work[slot] - before))


def greedy_marginal_return_repaired(instance: ElasticFlowAllocation, *, ties: Ties | None = None) -> SlotPlan | None:
    """:func:`greedy_marginal_return` that keeps (6) and (7) (ours).

    A job is in the queue while another GPU makes it faster in slot 0, which is what (7) asks, whether or
    not it then finishes earlier.  Its other slots are filled into what all other jobs leave of all GPUs,
    and its marginal return is computed again before it is served.

    Guarantee: none known.  Plans keep (5), (6) and (7).  It returns None as
    :func:`greedy_marginal_return` does.
    Complexity: O(n log n + (n + G) (G + h)), with another factor n at worst, which lazy evaluation
    avoids as a rule.

    Parameters
    ----------
    instance : ElasticFlowAllocation
    ties : callable, optional
        As in :func:`greedy_marginal_return`.
    """
    gpus = fill_jobs(instance, np.arange(instance.num_jobs))
    if gpus is None:
        return None
    growth = _Growth(instance, gpus)
    queue = [(-growth.marginal_return(job), job) for job in range(instance.num_jobs) if growth.faster(job)]
    heapq.heapify(queue)
    while queue and growth.free[0] > 0:
        _, job = heapq.heappop(queue)
        now = (-growth.marginal_return(job), job)
        if queue and now > queue[0]:
            heapq.heappush(queue, now)
            continue
        job = _served(queue, now, ties, growth.marginal_return)
        growth.grow(job)
        if growth.faster(job):
            heapq.heappush(queue, (-growth.marginal_return(job), job))
    return SlotPlan(gpus=growth.gpus)


def local_search(instance: ElasticFlowAllocation, *, budget: int = 600) -> SlotPlan | None:
    """Move GPUs of slot 0 from one job to another, both filled anew elsewhere, as long as that takes fewer GPU-slots.

    The first plan is that of :func:`greedy_marginal_return_repaired`.  Jobs in turn, those first that take most
    GPU-slots, give 1, 2, 4, ... of their GPUs in slot 0 to another, or are filled anew with those that they have; the
    other slots of both take the fewest GPU-slots of what all others leave
    (:func:`heuristics.elasticflow.filling.fill_fewest`).  The first exchange that takes fewer is made, until none does
    or ``budget`` is used up.  As many GPUs of slot 0 are in use as before, so (7) holds.

    Guarantee: never more GPU-slots than :func:`greedy_marginal_return_repaired`; none known relative to the optimum.
    None as there.  Complexity: that of the first plan, and O(G + h) for each job filled; on curves that are not concave
    as :func:`~heuristics.elasticflow.filling.fill_fewest`.

    Parameters
    ----------
    instance : ElasticFlowAllocation
    budget : int
        Jobs that are filled anew.
    """
    first = greedy_marginal_return_repaired(instance)
    if first is None or not instance.num_jobs:
        return first
    exchanges = _Exchanges(instance, first.gpus, budget)
    while exchanges.improved():
        pass
    return SlotPlan(gpus=exchanges.gpus)


class _Exchanges:
    """A plan in which jobs exchange GPUs of slot 0, and are filled anew elsewhere, within a budget of jobs filled."""

    def __init__(self, instance: ElasticFlowAllocation, gpus: IntArray, budget: int) -> None:
        self.instance, self.gpus, self.budget = instance, gpus.copy(), budget

    def improved(self) -> bool:
        """Make the first exchange that takes fewer GPU-slots; return whether there is one."""
        for jobs, now in self._offered():
            if self.budget <= 0:
                break
            found = self._filled(jobs, now)
            if found is not None and sum(map(np.sum, found)) < self.gpus[jobs].sum():
                self.gpus[jobs] = found
                return True
        return False

    def _offered(self) -> Iterator[tuple[list[int], list[int]]]:
        """Yield jobs to be filled anew, and their GPUs in slot 0: one as it is, or one that gives some to another."""
        held = self.gpus[:, 0].tolist()
        for one in np.argsort(-self.gpus.sum(axis=1), kind="stable").tolist():
            for other in range(len(held)):
                if one == other:
                    yield [one], [held[one]]
                    continue
                for count in (2**i for i in range(held[one].bit_length())):
                    after = held[other] + count
                    if after > self.instance.num_gpus or not self.instance.gains[other, after - 1]:
                        break
                    yield [one, other], [held[one] - count, after]

    def _filled(self, jobs: list[int], now: list[int]) -> list[IntArray] | None:
        """Fill jobs with so many GPUs in slot 0, each with the fewest GPU-slots elsewhere; None where one cannot be."""
        left = self.instance.num_gpus - self.gpus.sum(axis=0) + self.gpus[jobs].sum(axis=0)
        found = []
        for job, held in zip(jobs, now, strict=True):
            self.budget -= 1
            end = int(self.instance.deadlines[job])
            rest = fill_fewest(self.instance, job, left[1:end], float(self.instance.throughputs[job, held]))
            if rest is None:
                return None
            found.append(np.concatenate([[held], rest, np.zeros(self.instance.horizon - end, np.int64)]))
            left = left - found[-1]
        return found


class _Growth:
    """A plan whose jobs can be given one more GPU in slot 0."""

    def __init__(self, instance: ElasticFlowAllocation, gpus: IntArray) -> None:
        self.instance = instance
        self.gpus = gpus
        self.free = instance.num_gpus - gpus.sum(axis=0)
        self.needs = needs(instance)

    def faster(self, job: int) -> bool:
        """Return whether one more GPU in slot 0 would make the job faster there."""
        now = self.gpus[job, 0]
        return bool(now < self.instance.num_gpus and self.instance.gains[job, now])

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
