"""Fast methods for :class:`instances.elasticflow.best_effort.BestEffort`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np

from heuristics.elasticflow.filling import fill_fewest, fill_jobs, fill_together, needs
from instances.elasticflow.best_effort import BestEffort
from instances.elasticflow.sharing import SlotPlan
from instances.schema import FloatArray, IntArray

__all__ = ["local_search", "minimum_shares_first", "shortest_first"]


def minimum_shares_first(instance: BestEffort) -> SlotPlan | None:
    """Minimum satisfactory shares of the jobs with deadlines, then idle GPUs one by one to best-effort jobs.

    Jobs with deadlines get their shares by Algorithm 1.  In each slot, what they leave goes one GPU at a
    time to the unfinished best-effort job whose throughput that GPU raises most, in proportion to what it
    does on one GPU.  Ties go to the job with the least left to do, in slots on one GPU, then to the
    lowest.

    The paper puts best-effort jobs into the queue of Algorithm 2 with infinite deadlines; what its marginal
    return is without a last slot it leaves open, and the rule above is this library's reading.

    Guarantee: none known.  None when Algorithm 1 finds no shares, or a best-effort job is not done in the
    slots that are planned for it.  Complexity: O(n log n + n (G + h) + h n G).

    References
    ----------
    ElasticFlow (ASPLOS'23), section 4.4 (jobs without deadlines), with Algorithms 1 and 2.
    """

    def give(free: int, left: FloatArray) -> IntArray:
        held = np.zeros(instance.num_jobs, np.int64)
        gains = np.diff(instance.throughputs, axis=1)
        alone = instance.throughputs[:, 1]
        with np.errstate(divide="ignore", invalid="ignore"):
            slots = np.where(alone > 0, left / alone, np.inf)
            relative = np.where(alone[:, None] > 0, gains / alone[:, None], np.where(gains > 0, np.inf, 0.0))
        for _ in range(free):
            gain = np.where(left > 0, relative[np.arange(len(held)), np.minimum(held, instance.num_gpus - 1)], 0.0)
            gain[held == instance.num_gpus] = 0.0
            # The last key is the first to sort by.
            job = int(np.lexsort((slots, -gain))[0])
            if gain[job] <= 0:
                break
            held[job] += 1
        return held

    return _after_shares(instance, give)


def shortest_first(instance: BestEffort) -> SlotPlan | None:
    """Let, in each slot, the best-effort job with the least left take every GPU that makes it faster (ours).

    The least left is counted in slots at the job's fastest.  Guarantee and None as
    :func:`minimum_shares_first`.  Complexity: O(n log n + n (G + h) + h n log n).
    """
    best = instance.best_throughputs

    def give(free: int, left: FloatArray) -> IntArray:
        held = np.zeros(instance.num_jobs, np.int64)
        with np.errstate(divide="ignore", invalid="ignore"):
            slots = np.where(best[:, -1] > 0, left / best[:, -1], np.inf)
        for job in np.argsort(slots, kind="stable"):
            if left[job] > 0:
                held[job] = np.searchsorted(best[job], best[job, free])
                free -= int(held[job])
        return held

    return _after_shares(instance, give)


def local_search(instance: BestEffort, *, budget: int = 800) -> SlotPlan | None:
    """Take completions for deadlines, and bring them forward one after the other as long as all can be met (ours).

    It begins with :func:`minimum_shares_first`, or with shares by Algorithm 1 beside which each best-effort job, the
    one of the least work on one GPU first, is done as soon as it can be, whichever is better.  A best-effort job then
    completes a slot sooner if it can be filled into the GPUs that the others leave before; if not, if all jobs can be
    filled together (:func:`heuristics.elasticflow.filling.fill_together`).  Where none can, one completes some slots
    sooner and another later by one slot less, or else by as many, to go on from there.

    Guarantee: never worse than :func:`minimum_shares_first`; otherwise none known.  None when Algorithm 1 finds no
    shares, or neither beginning has all best-effort jobs done in the slots that are planned for them.
    Complexity: that of :func:`minimum_shares_first`, and O(h G) for each of the ``budget`` jobs filled.

    Parameters
    ----------
    instance : BestEffort
    budget : int
        Jobs that are filled and completions that are tried, about.
    """
    plans = [plan for plan in (minimum_shares_first(instance), _least_work_first(instance)) if plan is not None]
    if not plans:
        return None
    search = _Completions(instance, min(plans, key=instance.objective).gpus, budget)
    while search.budget > 0 and (search.sooner() or search.exchanged()):
        pass
    return SlotPlan(gpus=search.gpus)


def _least_work_first(instance: BestEffort) -> SlotPlan | None:
    """Shares by Algorithm 1, then each best-effort job done as soon as it can be, the one of the least work first."""
    gpus = fill_jobs(instance, np.flatnonzero(~instance.best_effort))
    if gpus is None:
        return None
    free = instance.num_gpus - gpus.sum(axis=0)
    # Without jobs the table has no columns.
    alone = instance.throughputs[:, 1:2].reshape(-1)
    slots = np.divide(instance.iterations, alone, out=np.full(instance.num_jobs, np.inf), where=alone > 0)
    for job in np.argsort(slots, kind="stable"):
        if not instance.best_effort[job]:
            continue
        held = fill_fewest(instance, job, free[: instance.deadlines[job]])
        if held is None:
            return None
        first, last = 1, len(held)
        while first < last:
            middle = (first + last) // 2
            sooner = fill_fewest(instance, job, free[:middle])
            if sooner is None:
                first = middle + 1
            else:
                last, held = middle, sooner
        gpus[job, : len(held)] = held
        free[: len(held)] -= held
    return SlotPlan(gpus=gpus)


class _Completions:
    """A plan, and when each job has to be done in it: by its deadline, or when it is, if it has none.

    Parameters
    ----------
    instance : BestEffort
    gpus : (n, h) int
        A plan's.
    budget : int
        Jobs that may be filled.
    """

    SLOTS = (1, 2, 3, 5)
    """By how many slots a job completes sooner, and another by one less later, or by as many."""

    def __init__(self, instance: BestEffort, gpus: IntArray, budget: int) -> None:
        self.instance, self.budget = instance, budget
        self._free = np.full(instance.horizon, instance.num_gpus)
        self._alone: dict[tuple[int, int], float] = {}
        self._seen = set[bytes]()
        self._keep(gpus)

    def _keep(self, gpus: IntArray) -> None:
        self.gpus = gpus
        self.ends = np.where(self.instance.best_effort, self.instance.completion(gpus), self.instance.deadlines)
        self._seen.add(self.ends.tobytes())

    @property
    def _last_first(self) -> list[int]:
        """The best-effort jobs with work to do, by completion."""
        jobs = np.flatnonzero(self.instance.best_effort & (self.ends > 0))
        return [int(job) for job in jobs[np.argsort(-self.ends[jobs], kind="stable")]]

    def sooner(self) -> bool:
        """Let each job complete sooner, slot by slot, as long as it can; return whether one does."""
        before = int(self.ends.sum())
        for job in self._last_first:
            while self.ends[job] > 1 and self.budget > 0:
                end = int(self.ends[job]) - 1
                free = self._free - self.gpus.sum(axis=0) + self.gpus[job]
                self.budget -= 1
                held = fill_fewest(self.instance, job, free[:end])
                if held is not None:
                    gpus = self.gpus.copy()
                    gpus[job] = np.pad(held, (0, len(free) - end))
                    self._keep(gpus)
                elif not self._filled_anew({job: end}):
                    break
        return int(self.ends.sum()) < before

    def exchanged(self) -> bool:
        """Let a job complete sooner and another later by one slot less, or by as many; return whether that can be."""
        for less, slots, job, other in product((1, 0), self.SLOTS, self._last_first, self._last_first):
            end, later = int(self.ends[job]) - slots, int(self.ends[other]) + slots - less
            if job == other or end <= 0 or later == self.ends[other] or later > self.instance.deadlines[other]:
                continue
            if self._filled_anew({job: end, other: later}):
                return True
            if self.budget <= 0:
                break
        return False

    def _filled_anew(self, changed: dict[int, int]) -> bool:
        """Let some jobs be done at other times, all filled together; return whether all can be, in a way not seen."""
        ends = self.ends.copy()
        ends[list(changed)] = list(changed.values())
        self.budget -= 1
        if ends.tobytes() in self._seen or not self._enough(ends):
            return False
        gpus, filled = fill_together(self.instance, self.gpus, ends, self.budget)
        self.budget -= filled
        if gpus is not None:
            self._keep(gpus)
        return gpus is not None

    def _enough(self, ends: IntArray) -> bool:
        """Whether the slots before each end have as many GPUs as the jobs done by then take at least, each alone."""
        for job, end in enumerate(ends.tolist()):
            if (job, end) not in self._alone:
                held = fill_fewest(self.instance, job, self._free[:end])
                self._alone[job, end] = np.inf if held is None else float(held.sum())
        order = np.argsort(ends, kind="stable")
        least = np.cumsum([self._alone[job, int(ends[job])] for job in order.tolist()])
        return bool((least <= self.instance.num_gpus * ends[order]).all())


Give = Callable[[int, FloatArray], IntArray]
"""From the idle GPUs of a slot and the iterations that best-effort jobs have left to their GPUs in it."""


def _after_shares(instance: BestEffort, give: Give) -> SlotPlan | None:
    """Shares by Algorithm 1, then what ``give`` hands out, slot by slot."""
    gpus = fill_jobs(instance, np.flatnonzero(~instance.best_effort))
    if gpus is None:
        return None
    left = np.where(instance.best_effort, needs(instance), 0.0)
    for slot in range(instance.horizon):
        left[instance.deadlines <= slot] = 0.0
        held = give(instance.num_gpus - int(gpus[:, slot].sum()), left)
        gpus[:, slot] += held
        left = np.maximum(0.0, left - instance.throughputs[np.arange(instance.num_jobs), held])
    done = instance.work(gpus) >= needs(instance)
    return SlotPlan(gpus=gpus) if done.all() else None
