"""Elastic jobs under prices of their work: who holds how many GPUs, and which prices belong to an order.

Heuristics look for prices whose schedules are good; exact models begin with such, and bound what is left.

Let y_j be the price of job j's work.  The whole shares worth most at a moment are those of max_c sum_j y_j R_j(c_j)
over the jobs that are there and not done, with R_j(s) the part of job j's work done in a second on s GPUs; for
concave curves they are the M greatest gains of single GPUs.  Prices that never change lead to the best schedule of an
order of events (completions and arrivals), and follow from it, from its last completion back to its first: let F(m)
be what the jobs that complete later are worth on m GPUs.  Then

    y_j = min_s (1 + F(M) - F(M - s)) / R_j(s),

so that with job j the cluster is worth 1 more a second, for the one job more that waits.  In the linear program of
the order (the page of the problem has it) all rows of these dual prices are then equal, and a schedule that
follows them and whose jobs complete in this order is the best of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from instances.afs.elastic_sharing import EXACT, ElasticSharing, Schedule
from instances.afs.simulation import State, simulate
from instances.hulls import upper_hull
from instances.schema import BoolArray, FloatArray, IntArray

__all__ = ["ARRIVAL", "Jobs", "Run", "envelope"]

ARRIVAL = -1
"""Stands for the next arrival in an order of events."""


def envelope(table: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the least concave curve above one, (m,) float, and the shares at its corners."""
    shares = np.arange(len(table))
    bends = np.diff(table, n=2)
    if (bends <= 0).all():
        return table, np.flatnonzero(np.concatenate([[True], bends < 0, [True]]))
    corners = upper_hull(shares, table)
    return np.interp(shares, corners, table[corners]), np.array(corners)


@dataclass(frozen=True)
class Run:
    """What comes of prices.

    Attributes
    ----------
    total : float
        Sum of the completion times, from the first arrival on, s.
    events : list of int
        Jobs in order of completion, with ``ARRIVAL`` at each time after the first at which jobs arrive.
    ends : list of float
        When the events are, s.
    thresholds : list of float
        What the last GPU that is held is worth until each event.
    """

    total: float
    events: list[int]
    ends: list[float]
    thresholds: list[float]


class Jobs:
    """Jobs with work left, each of which runs on some number of GPUs.

    Parameters
    ----------
    instance : ElasticSharing

    Attributes
    ----------
    which : (n,) int
        The jobs, by arrival.
    begin : float
        When the first of them arrives, s.
    releases : (n,) float
        When each arrives, s after ``begin``, ascending.
    rates : (n, M+1) float
        Part of each job that is done in a second.
    concave : (n, M+1) float
        The least concave curves above them.
    """

    def __init__(self, instance: ElasticSharing) -> None:
        self.instance = instance
        jobs = np.flatnonzero(instance.work)
        self.which: IntArray = jobs[np.argsort(instance.arrivals[jobs], kind="stable")]
        arrivals = instance.arrivals[self.which]
        self.begin = float(arrivals.min(initial=np.inf)) if len(jobs) else 0.0
        self.releases: FloatArray = arrivals - self.begin
        self.num_gpus = instance.num_gpus
        self.rates: FloatArray = instance.throughputs[self.which] / instance.work[self.which, None]
        hulls = [envelope(table) for table in self.rates]
        self.concave: FloatArray = np.array([hull for hull, _ in hulls]).reshape(self.rates.shape)
        self.gains: FloatArray = np.maximum(np.diff(self.concave, axis=1), 0.0)
        self._corners = [corners for _, corners in hulls]
        self.all_concave = bool(instance.concave[self.which].all())

    def __len__(self) -> int:
        return len(self.which)

    @cached_property
    def groups(self) -> list[IntArray]:
        """The jobs that arrive together, by arrival."""
        times = np.unique(self.releases)
        return [np.flatnonzero(self.releases == time) for time in times]

    @cached_property
    def alone(self) -> FloatArray:
        """(n,) float: what each job takes at the least, s."""
        alone: FloatArray = 1 / self.rates[:, -1]
        return alone

    @cached_property
    def sizes(self) -> FloatArray:
        """(n,) float: what each job takes of the whole cluster at the least, s."""
        sizes: FloatArray = (np.arange(1, self.num_gpus + 1) / self.concave[:, 1:]).min(axis=1) / self.num_gpus
        return sizes

    def average(self, total: float) -> float:
        """Return the average JCT, s, of a sum of completion times; other jobs are done when they arrive."""
        return (total - float(self.releases.sum())) / self.instance.num_jobs

    # --- prices of work --------------------------------------------------------------------------

    def prices(self, events: Sequence[int]) -> FloatArray | None:
        """(n,) float: the prices of an order of events; None where a job would complete before it arrives."""
        prices = np.zeros(len(self))
        later = np.zeros(self.num_gpus)
        waiting: set[int] = set()
        group = len(self.groups)
        for event in reversed(events):
            if event == ARRIVAL:
                group -= 1
                gone = self.groups[group].tolist()
                if not waiting.issuperset(gone):
                    return None
                waiting.difference_update(gone)
                left = np.array(sorted(waiting), np.int64)
                later = self._most(np.append(np.zeros(self.num_gpus), prices[left, None] * self.gains[left]))
                continue
            # The gains of single GPUs, of which those worth least are given up first.
            given_up = 1 + np.cumsum(later[::-1])
            prices[event] = float((given_up / self.concave[event, 1:]).min())
            later = self._most(np.append(later, prices[event] * self.gains[event]))
            waiting.add(event)
        return prices

    def _most(self, gains: FloatArray) -> FloatArray:
        """Return the M greatest, descending."""
        most: FloatArray = -np.sort(-gains)[: self.num_gpus]
        return most

    def follow(self, prices: FloatArray, whole: bool) -> Run:
        """Return what comes of prices: on the jobs' own curves where it is ``whole``, else on the concave ones."""
        n = len(self)
        gains, jobs, widths, rates = self._steps(whole)
        worth = prices[jobs] * gains
        order = np.argsort(-worth, kind="stable")
        order = order[worth[order] > 0]
        worth, jobs, widths = worth[order], jobs[order], widths[order]
        single = bool((widths == 1).all())
        left, done = np.ones(n), np.zeros(n, bool)
        now, total, group = 0.0, 0.0, 0
        there = np.zeros(n, bool)
        there[self.groups[0]] = True
        events: list[int] = []
        ends: list[float] = []
        thresholds: list[float] = []
        every = np.arange(n)
        while len(jobs):
            here = slice(None) if there.all() else there[jobs]
            mine, sizes, value = jobs[here], widths[here], worth[here]
            shares = np.bincount(mine[: self.num_gpus], minlength=n) if single else self._packed(mine, sizes)
            speeds = rates[every, shares]
            spans = np.divide(left, speeds, out=np.full(n, np.inf), where=speeds > 0)
            span = float(spans.min())
            # Where GPUs are left over the last one is worth nothing.
            last = self.num_gpus - 1 if single else int(np.searchsorted(np.cumsum(sizes), self.num_gpus))
            threshold = float(value[last]) if last < len(value) else 0.0
            coming = float(self.releases[self.groups[group + 1][0]]) if group + 1 < len(self.groups) else np.inf
            arrives = now + span > coming
            span = coming - now if arrives else span
            left -= speeds * span
            now = coming if arrives else now + span
            ended = there & (left <= EXACT) & ~done
            if not arrives:
                ended |= spans <= span
            for job in np.flatnonzero(ended).tolist():
                events.append(job)
                ends.append(now)
                thresholds.append(threshold)
                total += now
            if arrives:
                group += 1
                there[self.groups[group]] = True
                events.append(ARRIVAL)
                ends.append(now)
                thresholds.append(threshold)
            if ended.any():
                done |= ended
                stays = ~done[jobs]
                worth, jobs, widths = worth[stays], jobs[stays], widths[stays]
        return Run(total, events, ends, thresholds)

    def _steps(self, whole: bool) -> tuple[FloatArray, IntArray, IntArray, FloatArray]:
        """Gains for each GPU, jobs and widths of steps, and the rates that they lead to."""
        return self._own_steps if whole and not self.all_concave else self._single_steps

    @cached_property
    def _single_steps(self) -> tuple[FloatArray, IntArray, IntArray, FloatArray]:
        jobs = np.repeat(np.arange(len(self)), self.num_gpus)
        return self.gains.ravel(), jobs, np.ones(len(jobs), np.int64), self.concave

    @cached_property
    def _own_steps(self) -> tuple[FloatArray, IntArray, IntArray, FloatArray]:
        jobs = np.repeat(np.arange(len(self)), [len(corners) - 1 for corners in self._corners])
        widths = np.concatenate([np.diff(corners) for corners in self._corners])
        firsts = np.concatenate([corners[:-1] for corners in self._corners])
        return self.gains[jobs, firsts], jobs, widths, self.rates

    def _packed(self, jobs: IntArray, widths: IntArray) -> IntArray:
        """Return shares: steps one after the other, as far as they fit; then what is left for who is faster on it."""
        shares = np.zeros(len(self), np.int64)
        left = self.num_gpus
        blocked: dict[int, None] = {}
        for job, width in zip(jobs.tolist(), widths.tolist(), strict=True):
            if not left:
                break
            if width <= left and job not in blocked:
                shares[job] += width
                left -= width
            else:
                blocked[job] = None
        for job in blocked:
            table = self.rates[job]
            most = int(np.searchsorted(table, table[shares[job] + left]))
            if table[most] > table[shares[job]]:
                left -= most - int(shares[job])
                shares[job] = most
        return shares

    def schedule(self, prices: FloatArray) -> Schedule:
        """Return the schedule that follows prices, of whole GPUs."""
        gains, jobs, widths, _ = self._steps(True)
        worth = prices[jobs] * gains
        order = np.argsort(-worth, kind="stable")
        order = order[worth[order] > 0]
        jobs, widths = jobs[order], widths[order]
        single = bool((widths == 1).all())

        def policy(state: State) -> IntArray:
            there: BoolArray = np.zeros(self.instance.num_jobs, bool)
            there[state.active] = True
            mine = there[self.which][jobs]
            held = (
                np.bincount(jobs[mine][: self.num_gpus], minlength=len(self))
                if single
                else self._packed(jobs[mine], widths[mine])
            )
            shares = np.zeros(self.instance.num_jobs, np.int64)
            shares[self.which] = held
            return shares

        return simulate(self.instance, policy)
