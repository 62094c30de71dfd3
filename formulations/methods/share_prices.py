"""What a GPU is worth at each time: prices that bound the completion times of jobs that share GPUs.

Let a GPU cost pi(t) a second, constant in each interval of a grid and nothing after it.  Whatever a schedule does, its
jobs pay for no more than all M GPUs, so that

    sum_j C_j  >=  sum_j min_C [C + cost_j(C)]  -  M * integral of pi,

where cost_j(C) is the least for which job j does its work from its arrival to C, with shares that may be divided: with
R_j the least concave curve above the part of the job that is done in a second, and any price l of the job,

    cost_j(C)  >=  l - integral from arrival to C of max_s (l * R_j(s) - pi(t) * s).

In an interval of the grid that is linear in C for each l, so that the least of C + cost_j(C) there is no less than,
of any l, the lesser of its values at the interval's ends.  After the grid it is no less than the grid's end.  All of
this is a sum over few numbers, and holds for whatever prices: subgradient steps look for good ones, from those of a
schedule.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from formulations.engine import clock
from instances.afs.work_prices import Jobs, Run
from instances.schema import FloatArray, IntArray

__all__ = ["Prices", "Pricing"]

INTERVALS = 60
"""Into how many intervals, of equal length or shorter, a schedule's time is cut at the least."""
AFTER = (1.1, 1.2, 1.4)
"""Ends of further intervals, in lengths of the schedule."""
SPREAD = np.exp(
    np.array([-3, -1.5, -0.7, -0.3, -0.15, -0.07, -0.03, -0.01, 0, 0.01, 0.03, 0.07, 0.15, 0.3, 0.7, 1.5, 3])
)
"""Prices of a job that are tried around the last one."""
FINER, ROUNDS, ENOUGH = 5, 6, 1e-4
"""Prices between two, how often they are looked for, and the part of a job's bound at which that ends."""
MEMORY, PATIENCE, SHORTER, SHORTEST = 0.6, 8, 0.6, 0.01
"""Part of a step that the next one keeps; steps without gain, after which they become shorter; the end."""
FAR = 1e4
"""How many times as much, or as little, as at first a job's work may be worth."""
NO_MORE = 1e-9
"""Part of the best value by which a bound is as good as it."""
LEVELS = 64
"""Bounds between which the latest completions are tabulated."""


@dataclass(frozen=True)
class Prices:
    """Prices of a GPU, and what they prove.

    Attributes
    ----------
    grid : (k + 1,) float
        Ends of the intervals, the first 0, s.
    prices : (k,) float
        In each interval, at least 0, in s of the sum of all completion times for each second.
    least : (n,) float
        What each job costs at the least: its completion, and its GPUs, s.
    work : (n,) float
        Prices of the jobs' work at which that was found.
    """

    grid: FloatArray
    prices: FloatArray
    least: FloatArray
    work: FloatArray

    def bound(self, num_gpus: int) -> float:
        """Return the bound on the sum of the completion times, s."""
        return float(self.least.sum()) - num_gpus * float(self.prices @ np.diff(self.grid))


class Pricing:
    """The search for prices.

    Parameters
    ----------
    jobs : Jobs
    run : Run
        A schedule on the concave curves, whose last GPUs' worth the first prices are.
    work : (n,) float
        The prices of work that it follows.
    """

    def __init__(self, jobs: Jobs, run: Run, work: FloatArray) -> None:
        self._jobs, self._work = jobs, work
        grid, prices = _first(run)
        # Arrivals are ends of intervals, so that a job is there in the whole of one or not at all.
        self.grid = np.union1d(grid, jobs.releases[jobs.releases < grid[-1]])
        self._prices: FloatArray = prices[np.searchsorted(grid, self.grid[:-1], side="right") - 1]
        self._lengths = np.diff(self.grid)
        self._there = (self.grid[:-1] >= jobs.releases[:, None]).astype(float)
        soonest = jobs.releases + jobs.alone
        # The interval in which each job can complete the soonest, and which part of it has gone by then.
        self._from = np.clip(np.searchsorted(self.grid, soonest, side="right") - 1, 0, len(prices) - 1)
        self._from = np.minimum(self._from, len(self._lengths) - 1)
        self._gone = np.clip((soonest - self.grid[self._from]) / self._lengths[self._from], 0.0, 1.0)
        self._falling = [-gains[gains > 0] for gains in jobs.gains]
        self.best: Prices | None = None
        self._first_work = work
        self._step, self._stalled = 1.0, 0
        self._direction = self._slope = np.zeros(len(self._lengths))

    def run(self, value: float, steps: int, ends: float) -> bool:
        """Take subgradient steps from where the last ones led, until none gains; ``best`` has the best prices.

        Parameters
        ----------
        value : float
            A sum of completion times that can be had on the concave curves, s.
        steps : int
        ends : float
            Time at which it ends.

        Returns
        -------
        bool
            Whether more steps may gain more.
        """
        gpus = self._jobs.num_gpus
        for _ in range(steps):
            if time.perf_counter() >= ends or self._step < SHORTEST:
                break
            try:
                found, new = self._evaluated(self._prices, self._work)
            except clock.TimeIsUp:
                break
            self._work = np.clip(found.work, self._first_work / FAR, self._first_work * FAR)
            bound = found.bound(gpus)
            if self.best is None or bound > self.best.bound(gpus):
                self.best, self._slope, self._stalled = found, new, 0
            else:
                self._stalled += 1
            if self._stalled > PATIENCE:
                self._step, self._stalled, self._direction = self._step * SHORTER, 0, np.zeros(len(new))
                self._prices, new, bound = self.best.prices, self._slope, self.best.bound(gpus)
            self._direction = MEMORY * self._direction + new
            size = float((self._direction * new) @ self._lengths)
            if size <= 0:
                self._direction, size = new.copy(), float((new * new) @ self._lengths)
            if size <= 0 or value * (1 - NO_MORE) <= bound:
                self._step = 0.0
                break
            self._prices = np.maximum(self._prices + self._step * (value - bound) / size * self._direction, 0.0)
        return self._step >= SHORTEST

    def _evaluated(self, prices: FloatArray, work: FloatArray) -> tuple[Prices, FloatArray]:
        """Return what prices prove, and GPUs that are asked for above those that there are, by interval."""
        asked = np.full(len(prices), -float(self._jobs.num_gpus))
        least, found = np.zeros(len(work)), work.copy()
        for job in range(len(work)):
            clock.check()
            least[job], found[job], held = self._least(job, prices, float(work[job]))
            asked += held
        return Prices(self.grid, prices, least, found), asked

    def _least(self, job: int, prices: FloatArray, center: float) -> tuple[float, float, FloatArray]:
        """Return what a job costs at the least, the price of its work that shows it, and the GPUs that it holds."""
        work = center * SPREAD
        shares, ends = self._costs(job, prices, work)
        before = -np.inf
        for attempt in range(ROUNDS):
            lowest = self._in_intervals(job, ends)
            which = lowest.argmax(axis=0)
            highest = lowest[which, np.arange(lowest.shape[1])]
            interval = int(highest.argmin())
            least, one = float(highest[interval]), int(which[interval])
            if least - before < ENOUGH * abs(least) or attempt == ROUNDS - 1:
                break
            before = least
            below, above = work[work < work[one]].max(initial=work[one] / 2), work[work > work[one]].min(initial=np.inf)
            above = 2 * work[one] if np.isinf(above) else above
            part = np.arange(1, FINER + 1) / (FINER + 1)
            finer = np.concatenate([below + part * (work[one] - below), work[one] + part * (above - work[one])])
            more, further = self._costs(job, prices, finer)
            work = np.concatenate([work, finer])
            shares, ends = np.concatenate([shares, more]), np.concatenate([ends, further])
        held = shares[one] * self._there[job]
        held[self._from[job] + interval + 1 :] = 0.0
        done = float((self._jobs.concave[job][shares[one]] * (held > 0)) @ self._lengths)
        # Shares that do more than the work, or less, ask for as much less, or more.
        return min(least, float(self.grid[-1])), float(work[one]), held / done if done > 0 else held

    def _costs(self, job: int, prices: FloatArray, work: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return the shares that pay for each price of the work, and what it costs to complete at each grid point."""
        falling, curve = self._falling[job], self._jobs.concave[job]
        shares = np.searchsorted(falling, -(prices / work[:, None]).ravel(), side="right").reshape(len(work), -1)
        surplus = (work[:, None] * curve[shares] - prices * shares) * (self._there[job] * self._lengths)
        ends = np.empty((len(work), len(self.grid)))
        ends[:] = self.grid + work[:, None]
        ends[:, 1:] -= np.cumsum(surplus, axis=1)
        return shares, ends

    def _in_intervals(self, job: int, ends: FloatArray) -> FloatArray:
        """Return at the least what completing in each interval costs, from the first one in which that is possible."""
        first = self._from[job]
        left, right = ends[:, first:-1].copy(), ends[:, first + 1 :]
        left[:, 0] += self._gone[job] * (right[:, 0] - left[:, 0])
        return np.minimum(left, right)

    def latest(self, found: Prices, slack: float) -> tuple[FloatArray, FloatArray]:
        """Tabulate when each job completes at the latest where it costs no more than a slack above its least.

        Returns
        -------
        (k,) float, (k, n) float
            Slacks from 0 to ``slack``, and the times, s.
        """
        slacks = np.linspace(0.0, slack, LEVELS)
        times = np.empty((LEVELS, len(found.work)))
        for job, (price, least) in enumerate(zip(found.work.tolist(), found.least.tolist(), strict=True)):
            _, ends = self._costs(job, found.prices, price * np.exp(np.linspace(-3, 3, 121)))
            costs = self._in_intervals(job, ends).max(axis=0)
            later = np.minimum.accumulate(costs[::-1])[::-1]
            last = np.searchsorted(later, least + slacks, side="right") - 1
            until = self.grid[self._from[job] + 1 :][np.maximum(last, 0)]
            # Whoever completes after the grid costs as much as that is late, or more.
            times[:, job] = np.where(self.grid[-1] <= least + slacks, least + slacks, until)
        return slacks, times


def _first(run: Run) -> tuple[FloatArray, FloatArray]:
    """Return a grid from a schedule's events, and prices that fall evenly between what its last GPUs are worth."""
    ends = np.array(run.ends)
    later = np.diff(ends, prepend=0.0) > 1e-9 * ends[-1]
    ends, worth = ends[later], np.append(np.array(run.thresholds)[later], 0.0)
    grid, prices = [0.0], []
    for event, end in enumerate(ends.tolist()):
        begin = grid[-1]
        parts = max(1, int(np.ceil((end - begin) / ends[-1] * INTERVALS)))
        grid += np.linspace(begin, end, parts + 1)[1:].tolist()
        part = (np.arange(parts) + 0.5) / parts
        prices += (worth[event] * (1 - part) + worth[event + 1] * part).tolist()
    return np.array([*grid, *(ends[-1] * np.array(AFTER))]), np.array([*prices, *([0.0] * len(AFTER))])
