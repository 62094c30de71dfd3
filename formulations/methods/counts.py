"""Rounds of each job by a table of GPU-rounds, and then which rounds they are.

A plan of :class:`instances.shockwave.window.Window` is worth what its numbers of rounds say.  Which rounds they are
decides only whether there are GPUs in each, and while that is left open there is one capacity, the window's GPU-rounds.
Let the longest time left be at most t: each job then needs some rounds at least, and what every round more adds to its
utility falls from one to the next.  So the best m rounds for jobs of one width are those that add most, and a table
over GPU-rounds, one width after the other, has the most that all widths can add: W(t).  It rises with t, and

    max over t of  W(t) - remaining_penalty * t

over the times left after whole rounds bounds every plan.  Between two of them, t and u, no value is above
W(u) - remaining_penalty * t, by which most are never looked at.  Where rounds are found for the numbers that attain the
bound, or for others as good, it is proven; else the model is searched from the best plan found.
"""

from __future__ import annotations

import heapq
import math
import time
from dataclasses import replace
from functools import cached_property

import numpy as np

from formulations.engine import clock
from formulations.engine.highs import Result, version
from formulations.engine.options import Options
from formulations.engine.solution import Solution, judged
from formulations.engine.solving import solve_one_model
from formulations.methods import Choice, GaveUp, Method, one_model
from formulations.shockwave.window import fullest_round
from instances.base import agree
from instances.schema import FloatArray, IntArray
from instances.shockwave.packing import packed
from instances.shockwave.window import Window, WindowPlan

__all__ = ["CHOICE", "COUNTS", "Counts"]

MOST = 20_000_000
"""GPU-rounds of all widths' tables together up to which they are made."""
FEWER = 64
"""GPU-rounds of the window that numbers of rounds may leave over where those that leave none cannot be packed."""


class Counts:
    """Numbers of rounds of an instance's jobs.

    Attributes
    ----------
    widths : list of int
        GPUs of jobs, descending.
    """

    def __init__(self, instance: Window) -> None:
        self.instance = instance
        self.capacity = fullest_round(instance) * instance.num_rounds
        self.widths: list[int] = np.unique(instance.scale_factors)[::-1].tolist()
        # Rounds that add the most first, of jobs of each width; the first of a job before its second.
        self._ranked = []
        gains = np.diff(instance.utilities, axis=1)
        for width in self.widths:
            jobs = np.flatnonzero(instance.scale_factors == width)
            order = np.argsort(-gains[jobs], axis=None, kind="stable")
            job, number = np.divmod(order, instance.num_rounds)
            self._ranked.append((jobs[job], number, gains[jobs].ravel()[order]))

    @cached_property
    def times(self) -> FloatArray:
        """Times that the longest can be, ascending: those left after whole rounds, that no plan is below."""
        instance = self.instance
        jobs = np.arange(instance.num_jobs)
        least = float(instance.times_after[jobs, instance.most_rounds].max(initial=0.0))
        times: FloatArray = np.unique(instance.times_after)
        return np.append(least, times[times > least])

    def needed(self, longest: float) -> IntArray:
        """(n,) int: rounds that jobs need at least for their limits and this longest time left."""
        late: IntArray = (self.instance.times_after > longest).sum(axis=1)
        return np.maximum(late, self.instance.least_rounds)

    def fits(self, longest: float) -> bool:
        """Return whether there are GPU-rounds for what jobs need at least."""
        needed = self.needed(longest)
        gpus = sum((self.instance.scale_factors.astype(object) * needed).tolist())
        return bool((needed <= self.instance.most_rounds).all() and gpus <= self.capacity)

    def best(self, longest: float, fewer: int = 0) -> list[IntArray]:
        """Return the numbers of rounds that are worth most, and those that are if some GPU-rounds are left over.

        Parameters
        ----------
        longest : float
            Longest time left at most, s.
        fewer : int
            Numbers are returned for 0 to so many GPU-rounds left over.

        Returns
        -------
        list of (n,) int
        """
        clock.check()
        needed = self.needed(longest)
        room = self.capacity - int(self.instance.scale_factors @ needed)
        added, tables = [], [np.zeros(room + 1)]
        for width, (jobs, number, gains) in zip(self.widths, self._ranked, strict=True):
            free = (number >= needed[jobs]) & (number < self.instance.most_rounds[jobs])
            some = np.flatnonzero(free)[: room // width]
            added.append((jobs[some], np.concatenate([[0.0], np.cumsum(gains[some])])))
            if width == self.widths[-1]:
                break
            before, after = tables[-1], tables[-1].copy()
            for count, gain in clock.ticking(enumerate(added[-1][1].tolist())):
                beyond = after[count * width :]
                np.maximum(beyond, before[: len(beyond)] + gain, out=beyond)
            tables.append(after)
        found = []
        for left in range(room, max(-1, room - fewer - 1), -1):
            rounds, there = needed.copy(), left
            for width, (jobs, gains), table in zip(self.widths[::-1], added[::-1], tables[::-1], strict=True):
                counts = np.arange(min(len(gains), there // width + 1))
                most = int((gains[counts] + table[there - counts * width]).argmax())
                np.add.at(rounds, jobs[:most], 1)
                there -= most * width
            found.append(rounds)
        return found

    def search(self) -> tuple[float, float]:
        """Return the bound and the longest time left at which it is attained; minus infinity where nothing fits."""
        times, penalty = self.times, self.instance.remaining_penalty
        low, high = 0, len(times)
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.fits(float(times[middle])) else (middle + 1, high)
        if low == len(times):
            return -math.inf, math.inf
        known: dict[int, tuple[float, float]] = {}

        def look(at: int) -> tuple[float, float]:
            if at not in known:
                rounds = self.best(float(times[at]))[0]
                worth = math.fsum(self.instance.utilities[np.arange(len(rounds)), rounds].tolist())
                known[at] = worth, self.instance.value_of(rounds)
            return known[at]

        def most(span: tuple[int, int]) -> float:
            return look(span[1])[0] - penalty * float(times[span[0]])

        first = (low, len(times) - 1)
        look(low)
        spans = [(-most(first), first)]
        while spans:
            bound, (start, end) = heapq.heappop(spans)
            if -bound <= max(value for _, value in known.values()):
                break
            middle = (start + end) // 2
            # Of two that are next to each other both have been looked at.
            for span in ((start, middle), (middle, end)) if end - start > 1 else ():
                look(span[0])
                heapq.heappush(spans, (-most(span), span))
        at = max(known, key=lambda one: known[one][1])
        return known[at][1], float(times[at])


def solve(instance: Window, options: Options) -> Solution:
    """Find the best numbers of rounds, and rounds for them; where none are found, search the model."""
    began = time.perf_counter()
    counts = Counts(instance)
    if counts.capacity * len(counts.widths) > MOST:
        raise GaveUp(f"there are too many GPU-rounds for a table: {counts.capacity:,}, of {len(counts.widths)} widths")
    bound, longest = counts.search()
    start = options.start
    plan = start if isinstance(start, WindowPlan) and not instance.violations(start) else None
    packings = 0
    for rounds in counts.best(longest, FEWER) if math.isfinite(bound) else []:
        if plan is not None and instance.value_of(rounds) <= instance.objective(plan):
            break
        packings += 1
        runs = packed(rounds, instance.scale_factors, instance.num_gpus, instance.num_rounds)
        if runs is not None:
            plan = WindowPlan(runs=runs)
    result = Result("optimal", None, bound, None, 0.0, f"{packings:,} packings of numbers of rounds", "argument")
    if plan is None or not agree(instance.objective(plan), bound):
        searched = solve_one_model(instance, replace(options, start=plan))
        plan = plan if searched.plan is None else searched.plan  # type: ignore[assignment]
        by_table = bound <= searched.bound and searched.status != "infeasible"
        result = replace(
            result,
            status=searched.status if plan is None or not agree(instance.objective(plan), bound) else "optimal",
            bound=bound if by_table else searched.bound,
            seconds=searched.solve_seconds,
            message=f"{result.message}; {searched.message}",
            proof="argument" if by_table else searched.proof,
        )
    return judged(
        instance, plan, result, began=began, solver="highs", solver_version=version(), method=COUNTS.name, start=plan
    )


COUNTS = Method(
    name="numbers of rounds",
    short="counts",
    proves="a table over the window's GPU-rounds for each longest time left that matters; else the search of the model",
    where="windows whose GPU-rounds a table can hold",
    solve=solve,
)
CHOICE = Choice((COUNTS, one_model.METHOD))
