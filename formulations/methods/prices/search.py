"""The steps from samples of jobs to the optimum of all of them."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from formulations.engine import clock
from formulations.engine.certificate import Certificate
from formulations.engine.highs import Result
from formulations.engine.linear import LinearProgram
from formulations.engine.options import Options
from formulations.engine.scaling import Scaling
from formulations.gavel.sharing import SharingProgram
from formulations.methods import GaveUp
from formulations.methods.prices.interior import prices_over
from formulations.methods.prices.jobs import Jobs, Translation
from formulations.methods.prices.mixes import (
    Indices,
    Mixes,
    Prices,
    best_mixes,
    costs_at,
    loads_of,
    margins_at,
    pick,
    speed_prices,
)
from formulations.methods.prices.some import Outcome, sample, solve_over
from instances.schema import BoolArray, FloatArray

__all__ = ["PricedJobs", "first_sample"]

SAMPLE = (256, 12.0, 4000)
"""Jobs in a sample: the root of their number so many times, from the least to the most."""
CLOSE = (1e-4, 0.1)
"""Errors of prices, of all jobs and of a sample, relative to the objective; the latter also of what is off."""
CLOSER = 1e-2
"""What these errors are multiplied by where prices have led no further."""
SPREAD = 10.0
"""Undecided are the nearest jobs that together may shift so many times the load by which the pools are off."""
LAST = (0.1, 0.25)
"""Parts of a sample's number of jobs that are undecided at least and at most in the first of the last programs."""
PERTURBATION = 1e-6
"""Of the costs, relative to prices."""
NEGLIGIBLE = 1e-8
"""Part of its time that a job must ask for to have columns of its own."""
ENOUGH = 1e-10
"""What may be left to gain, relative to the objective."""
ROUNDS = 40
"""Programs solved before the method gives up."""
ROUNDING = 1e-12
"""By how much a share may be beyond 0 and 1."""


def first_sample(num_jobs: int) -> int | None:
    """Jobs in the first sample; None where there are too few for it to pay."""
    count = int(np.clip(SAMPLE[1] * num_jobs**0.5, SAMPLE[0], SAMPLE[2]))
    return None if num_jobs <= SAMPLE[0] / 2 else count


@dataclass(frozen=True, eq=False)
class _Optimum:
    """Shares of all jobs, g, and the prices of all rows; with what a program that differs little begins from."""

    shares: FloatArray
    g: float
    prices: Prices
    speed_prices: FloatArray
    time_prices: FloatArray
    noise: FloatArray
    programs: int


class _Standing:
    """All jobs at some prices, and how far these are from the optimal ones.

    Attributes
    ----------
    mixes : Mixes
    load : (p + 2, 2) float
    off : float
        How far the pools are from full, relative to all workers.
    """

    def __init__(self, jobs: Jobs, prices: Prices, noise: FloatArray, negligible: BoolArray) -> None:
        self._jobs, self._prices, self._noise, self._negligible = jobs, prices, noise, negligible
        self._costs = costs_at(jobs, prices, noise)
        self.mixes = best_mixes(jobs, self._costs, prices.g)
        self.load = loads_of(jobs, self.mixes)
        self.off = _imbalance(jobs, prices, self.load)

    @cached_property
    def margins(self) -> FloatArray:
        """(n,) float: how near each job is to another mix."""
        return margins_at(self._jobs, self._prices, self._noise, self._costs, self.mixes)

    @cached_property
    def swing(self) -> FloatArray:
        """(n,) float: how many workers each job may then shift."""
        used = _time_used(self._jobs, self.mixes, self._prices.g)
        return np.where(self._negligible, 0.0, self._jobs.widths * used)

    @cached_property
    def order(self) -> Indices:
        """(m,) int: jobs that may shift any, the nearest first."""
        order = np.argsort(self.margins)
        return order[self.swing[order] > 0]

    @cached_property
    def needed(self) -> int:
        """Number of the first jobs that may together shift :data:`SPREAD` times what the pools are off by."""
        enough = SPREAD * self.off * float(self._jobs.workers.sum())
        return int(np.searchsorted(np.cumsum(self.swing[self.order]), enough))

    def urgency(self, wider: float) -> FloatArray:
        """(n,) float: sizes for a sample: what a job may shift, and how near it is to it; 0 far away."""
        near = self.order[: int(wider * self.needed)]
        sizes = np.zeros(self._jobs.num_jobs)
        sizes[near] = self.swing[near] / (np.maximum(self.margins[near], 0.0) + self.off)
        return sizes


class _Search:
    """The steps to the optimum of some jobs.

    What holds between steps: ``standing`` are all jobs at the best prices so far, those with the pools nearest to
    full, or None before there are any; ``noise`` perturbs the costs in all samples, once there are prices to measure
    it by; ``programs`` have been solved, at most :data:`ROUNDS`; and samples have ``count`` jobs, which only grows.

    Parameters
    ----------
    jobs : Jobs
    options : Options
    near : _Optimum, optional
        That of a program that differs little.

    Raises
    ------
    GaveUp
        When there are too few jobs for samples.
    """

    def __init__(self, jobs: Jobs, options: Options, near: _Optimum | None = None) -> None:
        count = first_sample(jobs.num_jobs)
        if count is None:
            raise GaveUp(f"{jobs.num_jobs} jobs are too few to draw from")
        self._jobs, self._options, self._count = jobs, options, count
        self._rng = np.random.default_rng(0)
        reach = jobs.reach()
        self._greatest = min(float(reach.min()), jobs.g_upper)
        self._pinned, self._negligible = _pinned(jobs, reach), _negligible(jobs, self._greatest)
        self._first_sizes = np.where(self._negligible, 0.0, jobs.widths * _urgency(jobs, reach))
        self._programs, self._wider, self._closer = 0, 4.0, 1.0
        self._noise = None if near is None else near.noise
        self._standing: _Standing | None = None
        if near is not None:
            self._look_at(near.prices)

    def run(self) -> _Optimum:
        """Search for the optimum.

        Raises
        ------
        GaveUp
            When the steps lead nowhere within :data:`ROUNDS` programs and the time.
        """
        while self._standing is None or self._standing.needed > LAST[1] * self._count:
            before = np.inf if self._standing is None else self._standing.off
            self._sample()
            if self._standing is None or self._standing.off > 0.5 * before:
                n = self._jobs.num_jobs
                self._count, self._wider = min(n, int(1.5 * self._count)), min(16 * self._wider, float(n))
                # A pool may have a price that is little beside the objective.
                self._closer *= CLOSER
        return self._finish(self._standing)

    def _sample(self) -> None:
        """Solve the program over a sample, and look at all jobs at its prices."""
        jobs, standing = self._jobs, self._standing
        sizes = self._first_sizes if standing is None else standing.urgency(self._wider)
        if not sizes.any():
            raise GaveUp("no job may shift any load")
        self._check()
        drawn, weights = sample(np.where(self._pinned, 0.0, sizes), self._count, self._rng)
        chosen = np.concatenate([drawn, np.flatnonzero(self._pinned)])
        weights = np.concatenate([weights, np.ones(int(self._pinned.sum()))])
        rest, close = np.zeros((len(jobs.workers) + 2, 2)), CLOSE[self._count < jobs.num_jobs]
        if standing is not None:
            # Whatever the sample, its jobs' present mixes and the rest are the load of all.
            rest = standing.load - loads_of(jobs, standing.mixes, chosen, weights)
            close = min(close, CLOSE[1] * standing.off)
        gains = jobs.gains if self._noise is None else jobs.gains - self._noise
        self._programs += 1
        try:
            prices, mass = prices_over(jobs, chosen, weights, rest, gains, self._closer * close)
        except GaveUp:
            if standing is None:
                raise
            return
        if self._noise is None:
            self._noise = _noise(jobs, mass, self._within_reach(prices), self._rng)
        self._look_at(prices)

    def _look_at(self, prices: Prices) -> None:
        """Ask all jobs for their mixes at prices, and keep these where pools are nearer to full than before."""
        assert self._noise is not None
        found = _Standing(self._jobs, self._within_reach(prices), self._noise, self._negligible)
        if found.off < (np.inf if self._standing is None else self._standing.off):
            self._standing = found

    def _within_reach(self, prices: Prices) -> Prices:
        return replace(prices, g=min(prices.g, self._greatest))

    def _check(self) -> None:
        if self._programs >= ROUNDS or clock.is_up():
            raise GaveUp(f"{self._programs} programs over some jobs have not led to the optimum")

    def _finish(self, standing: _Standing) -> _Optimum:
        """Solve the program over the undecided jobs, and those that turn out to be, until nothing is left to gain."""
        jobs, mixes, order = self._jobs, standing.mixes, standing.order
        undecided = self._pinned.copy()
        undecided[order[: max(int(LAST[0] * self._count), standing.needed)]] = True
        while undecided.sum() <= max(20 * self._count, jobs.num_jobs / 4):
            self._check()
            rest = loads_of(jobs, mixes, np.flatnonzero(~undecided))
            chosen = np.flatnonzero(undecided)
            self._programs += 1
            try:
                outcome = solve_over(jobs, chosen, rest, self._options)
            except GaveUp:
                # The others' mixes leave no room.
                nearest = order[~undecided[order]]
                if not nearest.size:
                    raise
                undecided[nearest[: int(undecided.sum())]] = True
                continue
            all_jobs = _Everyone(jobs, mixes, chosen, outcome)
            wanting = all_jobs.wanting()
            if not wanting.size:
                assert self._noise is not None
                return all_jobs.optimum(self._noise, self._programs)
            undecided[wanting[: self._count]] = True
            if wanting.size > self._count:
                undecided[order[~undecided[order]][: int(undecided.sum())]] = True
        raise GaveUp("a quarter of the jobs, and more, are undecided")


class _Everyone:
    """All jobs at the prices of the program over the undecided ones: those that it chose, and the others' mixes.

    Attributes
    ----------
    shares : (k+1, n) float
    speed_prices, time_prices : (n,) float
    """

    def __init__(self, jobs: Jobs, mixes: Mixes, chosen: Indices, outcome: Outcome) -> None:
        self._jobs, self._outcome = jobs, outcome
        prices = outcome.prices
        costs = costs_at(jobs, prices)
        self._span = span = jobs.within(prices.g)
        self.speed_prices = speed_prices(jobs, costs, mixes)
        self.speed_prices[chosen] = outcome.speed_prices
        worth = self.speed_prices * jobs.speeds - costs
        self.time_prices = np.maximum(0.0, worth.max(axis=0))
        share = mixes.share + mixes.share_g * prices.g
        self.shares = np.zeros_like(jobs.speeds)
        everyone = np.arange(jobs.num_jobs)
        self.shares[mixes.first, everyone] = span - share
        self.shares[mixes.second, everyone] += share
        self.shares[:, chosen] = outcome.shares
        # What each job would gain: its time's price beyond what its mix is worth.
        self._lost = self.time_prices * span - (np.where(self.shares > 0, worth, 0.0) * self.shares).sum(axis=0)
        self._lost[chosen] = 0.0
        # A share is beyond what there is, or one type alone, which has been enough, no longer is.
        alone = jobs.asked + jobs.asked_g * prices.g - pick(jobs.speeds, mixes.first) * span
        self._short = np.where(mixes.first == mixes.second, alone, np.maximum(-share, share - span))
        self._short[chosen] = 0.0

    def wanting(self) -> Indices:
        """List the jobs that would gain by another mix, or do not get what they ask for; the worst first."""
        enough = ENOUGH * max(abs(self._outcome.objective), 1e-3 * self._outcome.mass)
        broken = self._short > ROUNDING * self._span
        if not broken.any() and self._lost.sum() <= enough:
            return np.zeros(0, np.intp)
        found = np.flatnonzero(broken | (self._lost > enough / self._jobs.num_jobs))
        return found[np.argsort(-np.where(broken, np.inf, self._lost)[found], kind="stable")]

    def optimum(self, noise: FloatArray, programs: int) -> _Optimum:
        """Return the optimum, where no job is wanting."""
        prices = self._outcome.prices
        shares = np.maximum(self.shares, 0.0)[1:]
        return _Optimum(shares, prices.g, prices, self.speed_prices, self.time_prices, noise, programs)


def _pinned(jobs: Jobs, reach: FloatArray) -> BoolArray:
    """(n,) bool: jobs that may decide alone, which no sample may be without."""
    pinned = np.zeros(jobs.num_jobs, bool)
    first = min(8, jobs.num_jobs) - 1
    if np.isfinite(reach).any():
        pinned[np.argpartition(reach, first)[: first + 1]] = True
    if jobs.prices is not None:
        bargain = np.divide(jobs.gains, jobs.prices, out=np.zeros_like(jobs.gains), where=jobs.prices > 0).max(axis=0)
        pinned[np.argpartition(-bargain, first)[: first + 1]] = True
    return pinned


def _negligible(jobs: Jobs, greatest: float) -> BoolArray:
    """(n,) bool: jobs that ask for so little of their time that no solver sees it, and add nothing by themselves."""
    if not np.isfinite(greatest):
        return np.zeros(jobs.num_jobs, bool)
    needed = jobs.asked + jobs.asked_g * greatest
    negligible: BoolArray = needed < jobs.speeds.max(axis=0) * jobs.within(greatest) * NEGLIGIBLE
    return negligible & ~jobs.gains.any(axis=0)


def _imbalance(jobs: Jobs, prices: Prices, loads: FloatArray) -> float:
    """Return how far all jobs' load is from what pools have: all of it where they have a price, else no more."""
    p, span = len(jobs.workers), jobs.within(prices.g)
    load = loads[:, 0] + loads[:, 1] * prices.g
    beyond = load[:p] - jobs.workers * span
    size = max(float(jobs.workers.sum()) * span, 1e-300)
    off = float(np.where(prices.pools > 0, np.abs(beyond), np.maximum(beyond, 0.0)).sum()) / size
    return off if jobs.prices is None else off + abs(load[p] - jobs.budget) / jobs.budget


def _time_used(jobs: Jobs, mixes: Mixes, g: float) -> FloatArray:
    """(n,) float: the part of its time that a job does not idle, and what it might where it has nothing to reach."""
    if jobs.gains.any():
        return np.ones(jobs.num_jobs)
    span = jobs.within(g)
    share = mixes.share + mixes.share_g * g
    idle = np.where(mixes.first == 0, span - share, 0.0)
    used: FloatArray = np.clip((span - idle) / max(span, 1e-300), 0.0, 1.0)
    return used


def _urgency(jobs: Jobs, reach: FloatArray) -> FloatArray:
    """(n,) float: how much of its time a job may take, relative to others."""
    if jobs.gains.any() or not np.isfinite(reach.min()):
        return np.ones(jobs.num_jobs)
    urgent: FloatArray = np.clip(np.abs(reach.min()) / np.maximum(np.abs(reach), 1e-300), 0.0, 1.0)
    return urgent


def _noise(jobs: Jobs, mass: float, prices: Prices, rng: np.random.Generator) -> FloatArray:
    """(k+1, n) float: costs that make one mix the best of each job."""
    fuzz = rng.random(jobs.speeds.shape)
    price = max(
        (mass or jobs.g_gain) / max(float(jobs.workers.sum()), 1.0) / max(jobs.within(prices.g), 1e-300),
        float(prices.pools.max(initial=0.0)),
    )
    noise = PERTURBATION * (0.5 + fuzz) * (price * jobs.widths)
    if jobs.prices is not None:
        noise += PERTURBATION * fuzz * (abs(prices.budget) * jobs.prices)
    noise[0] = 0.0
    return noise


class PricedJobs:
    """A policy's program without pairs, and programs that differ from it in what jobs' own rows ask for.

    Parameters
    ----------
    policy : SharingProgram
    program : LinearProgram
        Its arrays.
    options : Options
    units : Scaling, optional
        Those that suit the program, where they are known.

    Attributes
    ----------
    program : LinearProgram
        The program of the last run.

    Raises
    ------
    GaveUp
        When the program is of another form.
    """

    def __init__(
        self, policy: SharingProgram, program: LinearProgram, options: Options, units: Scaling | None = None
    ) -> None:
        self.program, self._units = program, units
        self._options = options
        self._translation = Translation.of(policy)
        self._last: _Optimum | None = None

    def run(self, row_lower: FloatArray | None = None) -> Result:
        """Find the optimum.

        Parameters
        ----------
        row_lower : (rows,) float, optional
            Lower limits of the program's rows, in place of those of the last run.

        Raises
        ------
        GaveUp
            When the steps do not lead to a proof.
        """
        began = time.perf_counter()
        if row_lower is not None:
            self.program, self._units = replace(self.program, row_lower=row_lower), None
            self._translation = self._translation.asking(row_lower)
        jobs = self._translation.jobs
        optimum = self._last = _Search(jobs, self._options, self._last).run()
        x = self._translation.point(optimum.shares, optimum.g)
        duals = self._translation.duals(
            optimum.time_prices, optimum.prices.pools, optimum.speed_prices, optimum.prices.budget
        )
        certificate = Certificate.of(self.program, x, duals, scaling=self._units)
        if not certificate.holds:
            raise GaveUp("the prices found over some jobs prove nothing of all of them")
        return Result(
            "optimal",
            x,
            certificate.dual_objective,
            certificate,
            time.perf_counter() - began,
            f"Optimal; {optimum.programs} programs over some of the {jobs.num_jobs} jobs",
            "prices",
        )
