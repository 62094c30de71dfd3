"""Fast methods for :class:`instances.elasticflow.best_effort.BestEffort`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np

from heuristics.elasticflow.filling import COSTS, fill_fewest, fill_jobs, fill_together, needs
from instances.arithmetic import power
from instances.elasticflow.best_effort import BestEffort
from instances.elasticflow.sharing import RATE_TOLERANCE, SlotPlan
from instances.hulls import upper_hull
from instances.schema import FloatArray, IntArray

__all__ = ["local_search", "minimum_shares_first", "shortest_first"]

PRICED = 7
"""Eighths of a search's budget after which there is no plan at prices."""
CLEARLY = 0.9
"""Part of the other plan's value up to which a plan at prices is the only one to go on from."""


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
    one of the least work on one GPU first, is done as soon as it can be, whichever is better; and with what jobs take
    at prices of GPUs, those with deadlines as cheaply as they can, each other so that it pays the least for them and
    for the slots until it is done.  There slots may be overused at first, and prices rise in them until none is.
    Where the prices' plan is better by a tenth it is the only beginning, else both are gone on from.

    A best-effort job then completes a slot sooner if it can be filled into the GPUs that the others leave before; if
    not, if all jobs can be filled together (:func:`heuristics.elasticflow.filling.fill_together`).  Where none can, one
    completes some slots sooner and another later by one slot less, or else by as many, to go on from there.

    Guarantee: never worse than :func:`minimum_shares_first`; otherwise none known.  None when no beginning has all jobs
    done in the slots that are planned for them.
    Complexity: that of :func:`minimum_shares_first`, and for each of the ``budget`` jobs filled O(h G), at prices
    O(h^2 G).

    Parameters
    ----------
    instance : BestEffort
    budget : int
        Jobs that are filled and completions that are tried, about.

    References
    ----------
    McMurchie and Ebeling, PathFinder: a negotiation-based performance-driven router for FPGAs (FPGA 1995), for prices
    of what is overused that rise.
    """
    negotiation = _Negotiation(instance)
    priced = negotiation.plan(PRICED * budget // 8)
    budget -= negotiation.filled
    shares = [plan for plan in (minimum_shares_first(instance), _least_work_first(instance)) if plan is not None]
    best = min(shares, key=instance.objective, default=priced)
    if best is None:
        return None
    if priced is not None and instance.objective(priced) < CLEARLY * instance.objective(best):
        best = priced
    elif priced is not None:
        search = _Completions(instance, best.gpus, budget // 2)
        search.run()
        budget -= budget // 2 - search.budget
        best = min(SlotPlan(gpus=search.gpus), priced, key=instance.objective)
    search = _Completions(instance, best.gpus, budget)
    search.run()
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


class _Negotiation:
    """Jobs that take GPUs at prices, which rise in slots where they take more than there are.

    Attributes
    ----------
    prices, lacking : (h,) float
        Of a GPU in each slot, and in addition of one that the slot does not have, in slots until one job is done.
    filled : int
        Jobs filled, those in many slots counted more than once.
    """

    FIRST, FALL, RISE = 0.25, 0.6, 1.7
    """Price of all GPUs of the first slot, as a part of the best-effort jobs; what a slot later it has fallen to, as a
    part; and by what factor that of GPUs which a slot does not have rises."""
    AHEAD = 8
    """Slots in which a best-effort job is filled at first."""

    def __init__(self, instance: BestEffort) -> None:
        self.instance, self.filled = instance, 0
        self._curves, self._need = instance.best_throughputs, needs(instance)
        self._hulls: dict[int, tuple[IntArray, IntArray, FloatArray]] = {}
        first = self.FIRST * max(1, int(instance.best_effort.sum())) / instance.num_gpus
        self.prices: FloatArray = first * power(self.FALL, np.arange(instance.horizon))
        self.lacking = np.full(instance.horizon, first)

    def plan(self, most: int) -> SlotPlan | None:
        """Fill jobs until no slot is overused; None where about ``most`` jobs filled do not lead there."""
        instance = self.instance
        gpus, usage = np.zeros((instance.num_jobs, instance.horizon), np.int64), np.zeros(instance.horizon, np.int64)
        # Deadlines first.
        todo = np.lexsort((instance.deadlines, instance.best_effort))
        while todo.size:
            for job in todo.tolist():
                held = self._cheapest(job, instance.num_gpus - usage + gpus[job])
                if held is None or self.filled > most:
                    return None
                usage += held - gpus[job]
                gpus[job] = held
            overused = usage > instance.num_gpus
            self.lacking[overused] *= self.RISE
            todo = np.flatnonzero((gpus[:, overused] > 0).any(axis=1))
        return SlotPlan(gpus=gpus) if (instance.work(gpus) >= self._need).all() else None

    def _cheapest(self, job: int, free: IntArray) -> IntArray | None:
        """(h,) int: GPUs with which a job is done where they and its slots cost least; None where it cannot be."""
        instance, curve, need, last = (
            self.instance,
            self._curves[job],
            self._need[job],
            int(self.instance.deadlines[job]),
        )
        if need <= 0:
            return np.zeros(instance.horizon, np.int64)
        counts, widths, rises = self._steps(job)
        waits = bool(instance.best_effort[job])
        ahead = min(last, self.AHEAD) if waits else last
        while True:
            # Of each step, first the GPUs that are free.
            inside = np.clip(free[:ahead, None] - counts, 0, widths)
            if not instance.concave:
                inside = np.where(inside < widths, 0, inside)
            amounts = np.stack([inside, widths - inside], axis=1)
            prices = np.stack([self.prices[:ahead], self.prices[:ahead] + self.lacking[:ahead]], axis=1)
            rates = (prices[:, :, None] / rises).ravel()
            some = np.flatnonzero(amounts)
            some = some[np.argsort(rates[some], kind="stable")]
            slots, amounts = some // (2 * len(rises)), amounts.ravel()[some]
            works = amounts * rises[some % len(rises)]
            ends = np.arange(1, ahead + 1) if waits else np.array([last])
            early = slots < ends[:, None]
            done = np.cumsum(np.where(early, works, 0.0), axis=1)
            self.filled += 1 + early.size // COSTS
            rows = np.flatnonzero(done.max(axis=1, initial=0.0) >= need)
            if rows.size:
                steps = (done[rows] < need).sum(axis=1)
                paid = np.cumsum(np.where(early[rows], works * rates[some], 0.0), axis=1)[np.arange(len(rows)), steps]
                paid -= (done[rows, steps] - need) * rates[some[steps]]
                costs = paid + ends[rows] * waits
                best = int(costs.argmin())
                # Later ends cost more in slots alone.
                if ahead == last or costs[best] <= ahead:
                    break
            elif ahead == last:
                return None
            ahead = min(last, 2 * ahead)
        step = int(steps[best])
        taken = np.flatnonzero(early[rows[best], :step])
        held = np.bincount(slots[taken], weights=amounts[taken], minlength=instance.horizon).astype(np.int64)
        held[slots[step]] = 0
        missing = need - np.cumsum(curve[held])[-1]
        held[slots[step]] = min(int(np.searchsorted(curve, missing)), instance.num_gpus)
        return held

    def _steps(self, job: int) -> tuple[IntArray, IntArray, FloatArray]:
        """Return the steps of a curve's hull: GPUs before each, its GPUs, and what each of them adds."""
        if job not in self._hulls:
            curve = self._curves[job]
            if self.instance.concave:
                falls = -np.diff(curve, n=2) > RATE_TOLERANCE * curve[-1]
                corners = np.concatenate([[0], np.flatnonzero(falls) + 1, [len(curve) - 1]])
            else:
                corners = np.array(upper_hull(range(len(curve)), curve.tolist()))
            widths, gains = np.diff(corners), np.diff(curve[corners])
            some = gains > 0
            self._hulls[job] = corners[:-1][some], widths[some], gains[some] / widths[some]
        return self._hulls[job]


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

    def run(self) -> None:
        """Let jobs complete sooner until none can, or the budget is spent."""
        while self.budget > 0 and (self.sooner() or self.exchanged()):
            pass

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
