"""Policies' programs without pairs, solved over a few prices whatever the number of jobs.

Jobs that share no workers meet in few rows: the pools' capacities, a budget, and one variable g (a level, a
rate) that all of them look at.  At prices of these rows each job is alone, with time to spend and perhaps a
throughput to reach,

    min  sum_j cost[m, j] * x[j]   s.t.   sum_j x[j] <= time(g),   sum_j speed[m, j] * x[j] >= asked[m](g),   x >= 0,

where ``cost`` is what its workers cost at the prices less what its time there is worth.  With idleness as one
more type, of speed and cost 0, the points (speed, cost) have a lower convex hull, and the best mix is on it: one
type, or the two ends of an edge.  As g moves, the shares of a mix are linear in g.

Away from the optimum's prices by little, nearly all jobs have the mix that they have there.  So

1. a sample of some hundreds stands for all jobs: each is drawn with a chance in proportion to the load that it may
   shift and to how near it is to another mix, and stands for as many as its chance is small.  Once all jobs' mixes
   at some prices are known, the rows are corrected by what the sample's load there misses, so that only jobs that
   change their mix add to the error.  The linear program over the sample gives prices;
2. all jobs are asked for their mix at these prices, how near it is to another, and how far the pools are from full.
   Prices at which they are nearer to it are kept; else the sample grows;
3. when few jobs are near enough to matter, the program over them, with the other jobs' mixes as linear functions of g,
   has the prices and shares of the whole, if no other job can do better at its prices.  Those that can are added to
   it, until what is left to gain is rounding.

Until the last step costs are perturbed by about 1e-6 of the prices, so that among many jobs that are alike, or
types that cost nothing, there is one best mix.

Nothing rests on the samples: the result is a point and prices of all rows of the whole program, and their
certificate says what they prove.  Where it is not a proof, or the steps do not end, there is no result, and the
linear program is solved as a whole.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.engine import clock
from formulations.engine.certificate import Certificate
from formulations.engine.highs import Result
from formulations.engine.linear import LinearProgram, ModelError, csr
from formulations.engine.options import Options
from formulations.engine.polishing import PRECISE
from formulations.gavel.sharing import SharingProgram
from instances.schema import BoolArray, FloatArray

__all__ = ["Jobs", "PricedJobs"]

SAMPLE = (64, 4.0, 500)
"""Jobs in a sample: the root of their number so many times, from the least to the most."""
SPREAD = 10.0
"""Undecided are the nearest jobs that together may shift so many times the load by which the pools are off."""
FINAL = 2.0
"""Samples' worth of undecided jobs that make up the last program."""
PERTURBATION = 1e-6
"""Of the costs, relative to prices."""
NEGLIGIBLE = 1e-8
"""Part of its time that a job must ask for to have columns of its own."""
ENOUGH = 1e-10
"""What may be left to gain, relative to the objective."""
ROUNDS = 40
"""Programs solved before the way is given up."""
ROUNDING = 1e-12
"""By how much a share may be beyond 0 and 1."""

Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Jobs:
    """A policy's program as jobs that meet in a few rows and one variable g.

    Attributes
    ----------
    speeds, gains : (k+1, n) float
        Left side of the job's own row, and the objective, per unit of time on each type; type 0 is idleness.
    usable : (k+1, n) bool
    widths : (n,) float
        Workers that a job holds.
    pools : (k,) int
    workers : (p,) float
    asked, asked_g : (n,) float
        The job's own row asks for ``asked + asked_g * g``; minus infinity where it has no row.
    time, time_g : float
        A job has ``time + time_g * g``, and each pool as much for each worker.
    g_lower, g_upper, g_gain : float
        Limits of g, and what one unit adds to the objective.
    prices : (k+1, n) float, optional
        What a job's time costs of a budget that must be spent.
    budget : float
    """

    speeds: FloatArray
    gains: FloatArray
    usable: BoolArray
    widths: FloatArray
    pools: Indices
    workers: FloatArray
    asked: FloatArray
    asked_g: FloatArray
    time: float
    time_g: float
    g_lower: float
    g_upper: float
    g_gain: float
    prices: FloatArray | None
    budget: float

    @property
    def num_jobs(self) -> int:
        """Number of jobs, n."""
        return len(self.widths)

    @property
    def num_types(self) -> int:
        """Number of worker types, k."""
        return len(self.pools)

    def within(self, g: float) -> float:
        """Time of each job, and of each worker, at g."""
        return self.time + self.time_g * g

    def reach(self) -> FloatArray:
        """(n,) float: the greatest g at which each job's own row can be met."""
        room = self.speeds.max(axis=0) * self.time - self.asked
        per_g = self.asked_g - self.speeds.max(axis=0) * self.time_g
        reach: FloatArray = np.divide(
            room, per_g, out=np.full(len(room), np.inf), where=(per_g > 0) & np.isfinite(room)
        )
        return reach


@dataclass(frozen=True, eq=False)
class _Prices:
    """Prices of the pools' workers, at least 0, and of the budget; with the value of g that they came with."""

    pools: FloatArray
    budget: float
    g: float


@dataclass(eq=False)
class _Mixes:
    """Two types for each job: ``share + share_g * g`` of its time on the second, the rest on the first."""

    first: NDArray[np.int8]
    second: NDArray[np.int8]
    share: FloatArray
    share_g: FloatArray

    def take(self, jobs: Indices, other: _Mixes) -> None:
        """Give some jobs the mixes of ``other``."""
        for name in ("first", "second", "share", "share_g"):
            getattr(self, name)[jobs] = getattr(other, name)[jobs]


def _pick(values: FloatArray, kind: NDArray[np.int8]) -> FloatArray:
    """Value of each job at a type of its own."""
    picked: FloatArray = np.take_along_axis(values, kind[None].astype(np.intp), axis=0)[0]
    return picked


def _costs(jobs: Jobs, prices: _Prices, noise: Any = 0.0) -> FloatArray:
    """(k+1, n) float: what a unit of a job's time costs beyond its worth; infinite where the job cannot be."""
    costs = np.empty_like(jobs.speeds)
    costs[0] = 0.0
    np.multiply.outer(prices.pools[jobs.pools], jobs.widths, out=costs[1:])
    if jobs.prices is not None:
        costs += prices.budget * jobs.prices
    costs -= jobs.gains
    costs += noise
    costs[~jobs.usable] = np.inf
    return costs


def _best_mixes(jobs: Jobs, costs: FloatArray, g: float) -> _Mixes:
    """The cheapest mix of each job on its own: along the lower hull of its types to the speed that is asked."""
    span, speeds = jobs.within(g), jobs.speeds
    needed = np.minimum((jobs.asked + jobs.asked_g * g) / span, speeds.max(axis=0))
    first = costs.argmin(axis=0).astype(np.int8)
    second = first.copy()
    left = np.flatnonzero(_pick(speeds, first) < needed)
    for _ in range(jobs.num_types):
        if not left.size:
            break
        at, speed, cost = first[left], speeds[:, left], costs[:, left]
        ahead = speed - _pick(speed, at)
        slope = np.divide(cost - _pick(cost, at), ahead, out=np.full_like(cost, np.inf), where=ahead > 0)
        reached = slope.argmin(axis=0).astype(np.int8)
        second[left] = reached
        beyond = _pick(speed, reached) < needed[left]
        left = left[beyond]
        first[left] = reached[beyond]
    return _solved(jobs, first, second)


def _solved(jobs: Jobs, first: NDArray[np.int8], second: NDArray[np.int8]) -> _Mixes:
    """The mixes of two types that meet the jobs' own rows."""
    edge = first != second
    slow, fast = _pick(jobs.speeds, first), _pick(jobs.speeds, second)
    zero = np.zeros(jobs.num_jobs)
    share = np.divide(jobs.asked - slow * jobs.time, fast - slow, out=zero.copy(), where=edge)
    share_g = np.divide(jobs.asked_g - slow * jobs.time_g, fast - slow, out=zero, where=edge)
    return _Mixes(first, second, share, share_g)


def _speed_prices(jobs: Jobs, costs: FloatArray, mixes: _Mixes) -> FloatArray:
    """(n,) float: price of each job's own row at which both types of its mix are as good."""
    edge = mixes.first != mixes.second
    rise = _ahead(jobs, mixes)
    dearer = np.where(edge, _pick(costs, mixes.second), 0.0) - np.where(edge, _pick(costs, mixes.first), 0.0)
    slopes: FloatArray = np.divide(dearer, rise, out=np.zeros(jobs.num_jobs), where=edge)
    return np.maximum(0.0, slopes)


def _margins(jobs: Jobs, prices: _Prices, noise: FloatArray, costs: FloatArray, mixes: _Mixes) -> FloatArray:
    """(n,) float: by what part prices and g may move, about, before a job has another mix."""
    count = np.arange(jobs.num_jobs)
    y = _speed_prices(jobs, costs, mixes)
    behind = costs - y * jobs.speeds
    behind -= _pick(behind, mixes.first)
    behind[mixes.first, count] = np.inf
    behind[mixes.second, count] = np.inf
    paid = np.maximum(float(prices.pools.max(initial=0.0)) * jobs.widths, noise.max(axis=0))
    if jobs.prices is not None:
        paid = paid + abs(prices.budget) * jobs.prices.max(axis=0)
    edge = mixes.first != mixes.second
    nearest = np.minimum(behind.min(axis=0), np.where(edge, y * (_ahead(jobs, mixes)), np.inf))
    margins: FloatArray = np.divide(nearest, paid, out=np.full(jobs.num_jobs, np.inf), where=paid > 0)
    asks = np.isfinite(jobs.asked)
    if jobs.time <= 0 or not asks.any():
        # Where g multiplies every limit, mixes do not depend on it.
        return margins
    span, needed = jobs.within(prices.g), np.where(asks, jobs.asked + jobs.asked_g * prices.g, 0.0)
    share = mixes.share + mixes.share_g * prices.g
    room = np.where(
        edge, np.minimum(share, span - share) * _ahead(jobs, mixes), _pick(jobs.speeds, mixes.first) * span - needed
    )
    moves = np.divide(np.abs(room), np.abs(needed), out=np.full(jobs.num_jobs, np.inf), where=asks & (needed != 0))
    nearer: FloatArray = np.minimum(margins, moves)
    return nearer


def _ahead(jobs: Jobs, mixes: _Mixes) -> FloatArray:
    """(n,) float: by how much a job is faster on its second type than on its first."""
    return _pick(jobs.speeds, mixes.second) - _pick(jobs.speeds, mixes.first)


def _loads(jobs: Jobs, mixes: _Mixes, chosen: Any = slice(None), weights: Any = 1.0) -> FloatArray:
    """(p + 2, 2) float: what some jobs take of the pools and the budget, and add to the objective: constant, per g."""
    k, p = jobs.num_types, len(jobs.workers)
    first, second = mixes.first[chosen], mixes.second[chosen]
    widths = jobs.widths[chosen]
    totals = np.zeros((p + 2, 2))
    for column, all_of_it, share in ((0, jobs.time, mixes.share[chosen]), (1, jobs.time_g, mixes.share_g[chosen])):
        for kind, times in ((first, (all_of_it - share) * weights), (second, share * weights)):
            by_type = np.bincount(kind, weights=times * widths, minlength=k + 1)
            totals[:p, column] += np.bincount(jobs.pools, weights=by_type[1:], minlength=p)
            if jobs.prices is not None:
                totals[p, column] += float(_pick(jobs.prices[:, chosen], kind) @ times)
            totals[p + 1, column] += float(_pick(jobs.gains[:, chosen], kind) @ times)
    return totals


@dataclass(frozen=True, eq=False)
class _Outcome:
    """What the program over some jobs has: prices, and the shares and the prices of the jobs' own rows."""

    prices: _Prices
    shares: FloatArray
    speed_prices: FloatArray
    objective: float
    mass: float


def _solve_over(
    jobs: Jobs, chosen: Indices, weights: FloatArray, rest: FloatArray, gains: FloatArray, options: Options
) -> _Outcome | None:
    """The program over some jobs, each counted so many times, beside the load of the rest."""
    m, k, p = len(chosen), jobs.num_types, len(jobs.workers)
    usable = jobs.usable[1:, chosen]
    kind, job = np.nonzero(usable)
    columns = np.arange(len(kind))
    g = len(kind)
    asking = np.flatnonzero(np.isfinite(jobs.asked[chosen]))
    place = np.full(m, -1)
    place[asking] = m + np.arange(len(asking))
    couplings = m + len(asking)
    speeds = jobs.speeds[1:, chosen][kind, job]
    load = weights[job] * jobs.widths[chosen][job]
    unit = max(1.0, float(load.max(initial=0.0)))
    asks = place[job] >= 0
    rows: list[Any] = [
        job,
        place[job][asks],
        couplings + jobs.pools[kind],
        np.arange(m),
        place[asking],
        couplings + np.arange(p),
    ]
    cols: list[Any] = [columns, columns[asks], columns, np.full(m, g), np.full(len(asking), g), np.full(p, g)]
    vals: list[Any] = [
        np.ones(g),
        speeds[asks],
        load / unit,
        np.full(m, -jobs.time_g),
        -jobs.asked_g[chosen][asking],
        (rest[:p, 1] - jobs.time_g * jobs.workers) / unit,
    ]
    upper: list[Any] = [
        np.full(m, jobs.time),
        np.full(len(asking), np.inf),
        (jobs.workers * jobs.time - rest[:p, 0]) / unit,
    ]
    lower: list[Any] = [np.full(m, -np.inf), jobs.asked[chosen][asking], np.full(p, -np.inf)]
    if jobs.prices is not None:
        spent = weights[job] * jobs.prices[1:, chosen][kind, job]
        rows += [np.full(g, couplings + p), [couplings + p]]
        cols += [columns, [g]]
        vals += [spent / unit, [rest[p, 1] / unit]]
        upper.append([(jobs.budget - rest[p, 0]) / unit])
        lower.append([(jobs.budget - rest[p, 0]) / unit])
    upper_all, lower_all = np.concatenate(upper), np.concatenate(lower)
    indptr, index, value = csr(np.concatenate(rows), np.concatenate(cols), np.concatenate(vals), len(upper_all))
    cost = np.append(weights[job] * gains[1:, chosen][kind, job], jobs.g_gain + rest[p + 1, 1])
    worth = float(np.abs(cost).max(initial=0.0)) or 1.0
    program = LinearProgram(
        "max", 0.0, cost * (100.0 / worth),
        np.append(np.zeros(g), jobs.g_lower), np.append(np.full(g, np.inf), jobs.g_upper), np.zeros(g + 1, bool),
        indptr, index, value, lower_all, upper_all,
    )  # fmt: skip
    try:
        result = options.session(PRECISE).run(program)
    except ModelError:
        return None
    if result.status != "optimal" or result.x is None or result.certificate is None:
        return None
    duals = result.certificate.row_duals * (worth / 100.0)
    at = couplings + np.arange(p)
    speed_prices = np.zeros(m)
    speed_prices[asking] = np.maximum(0.0, -duals[place[asking]])
    shares = np.zeros((k + 1, m))
    shares[kind + 1, job] = result.x[:g]
    found = _Prices(
        np.maximum(0.0, duals[at]) / unit,
        float(duals[couplings + p]) / unit if jobs.prices is not None else 0.0,
        float(result.x[g]),
    )
    objective = float(cost @ result.x + rest[p + 1, 0])
    mass = abs(objective) + float(speed_prices[asking] @ np.abs(jobs.asked[chosen][asking]))
    return _Outcome(found, shares, speed_prices / weights, objective, mass)


def _sample(sizes: FloatArray, count: int, rng: np.random.Generator) -> tuple[Indices, FloatArray]:
    """About so many positions, each with a chance in proportion to its size, and how many each stands for."""
    sizes = np.where(sizes > 0, sizes + 1e-3 * sizes.mean(), 0.0)
    chance = np.minimum(1.0, sizes * (count / sizes.sum()))
    for _ in range(8):
        sure = chance >= 1
        free = sizes[~sure].sum()
        if sure.sum() >= count or not free:
            break
        chance = np.where(sure, 1.0, np.minimum(1.0, sizes * ((count - sure.sum()) / free)))
    order = rng.permutation(len(sizes))
    marks = np.cumsum(chance[order]) + rng.random()
    drawn = order[
        np.flatnonzero(np.floor(marks) > np.floor(np.concatenate([[marks[0] - chance[order[0]]], marks[:-1]])))
    ]
    return drawn, 1 / chance[drawn]


@dataclass(frozen=True, eq=False)
class _Optimum:
    """Shares of all jobs, g, and the prices of all rows."""

    shares: FloatArray
    g: float
    prices: _Prices
    speed_prices: FloatArray
    time_prices: FloatArray
    noise: FloatArray
    programs: int


@dataclass(frozen=True, eq=False)
class _Standing:
    """All jobs at some prices, and how far these are from the optimum's.

    Attributes
    ----------
    mixes : _Mixes
    load : (p + 2, 2) float
    margins : (n,) float
        How near each job is to another mix.
    swing : (n,) float
        How many workers it may then shift.
    order : (m,) int
        Jobs that may shift any, the nearest first.
    off : float
        How far the pools are from full, relative to all workers.
    needed : int
        How many of the first jobs may together shift several times that.
    """

    mixes: _Mixes
    load: FloatArray
    margins: FloatArray
    swing: FloatArray
    order: Indices
    off: float
    needed: int

    @classmethod
    def at(
        cls, jobs: Jobs, prices: _Prices, noise: FloatArray, negligible: BoolArray, before: float
    ) -> _Standing | None:
        """None where the pools are as far from full as before, or farther."""
        costs = _costs(jobs, prices, noise)
        mixes = _best_mixes(jobs, costs, prices.g)
        load = _loads(jobs, mixes)
        off = _imbalance(jobs, prices, load)
        if not off < before:
            return None
        margins = _margins(jobs, prices, noise, costs, mixes)
        swing = np.where(negligible, 0.0, jobs.widths * _time_used(jobs, mixes, prices.g))
        order = np.argsort(margins)
        order = order[swing[order] > 0]
        enough = SPREAD * off * float(jobs.workers.sum())
        needed = int(np.searchsorted(np.cumsum(swing[order]), enough))
        return cls(mixes, load, margins, swing, order, off, needed)


def _optimum(jobs: Jobs, options: Options, near: _Optimum | None = None) -> _Optimum | None:
    """The optimum by samples; None where they lead nowhere.

    Parameters
    ----------
    jobs : Jobs
    options : Options
    near : _Optimum, optional
        That of a program that differs little.
    """
    rng = np.random.default_rng(0)
    n = jobs.num_jobs
    count = int(np.clip(SAMPLE[1] * n**0.5, SAMPLE[0], SAMPLE[2]))
    if n <= FINAL * count:
        return None
    reach = jobs.reach()
    greatest = min(float(reach.min()), jobs.g_upper)
    pinned, negligible = _pinned(jobs, reach), _negligible(jobs, greatest)
    sizes = np.where(negligible, 0.0, jobs.widths * _urgency(jobs, reach))
    noise = None if near is None else near.noise
    standing: _Standing | None = None
    if near is not None:
        prices = replace(near.prices, g=min(near.prices.g, greatest))
        standing = _Standing.at(jobs, prices, near.noise, negligible, np.inf)
    wider, programs = 4.0, 0
    while True:
        if standing is not None:
            if standing.needed <= FINAL * count:
                undecided = pinned.copy()
                undecided[standing.order[: max(count, standing.needed)]] = True
                assert noise is not None
                return _finished(jobs, standing, noise, undecided, count, programs, options)
            pool = standing.order[: int(wider * standing.needed)]
            sizes = np.zeros(n)
            sizes[pool] = standing.swing[pool] / (np.maximum(standing.margins[pool], 0.0) + standing.off)
        if programs >= ROUNDS or clock.left() <= 0 or not sizes.any():
            return None
        drawn, weights = _sample(np.where(pinned, 0.0, sizes), count, rng)
        chosen = np.concatenate([drawn, np.flatnonzero(pinned)])
        weights = np.concatenate([weights, np.ones(int(pinned.sum()))])
        rest = np.zeros((len(jobs.workers) + 2, 2))
        if standing is not None:
            # Whatever the sample, its jobs' present mixes and the rest are the load of all.
            rest = standing.load - _loads(jobs, standing.mixes, chosen, weights)
        outcome = _solve_over(jobs, chosen, weights, rest, jobs.gains if noise is None else jobs.gains - noise, options)
        programs += 1
        if outcome is None and standing is None:
            return None
        before = np.inf if standing is None else standing.off
        if outcome is not None:
            prices = replace(outcome.prices, g=min(outcome.prices.g, greatest))
            if noise is None:
                noise = _noise(jobs, outcome, prices, rng)
            standing = _Standing.at(jobs, prices, noise, negligible, before) or standing
        if standing is None or standing.off > 0.5 * before:
            count, wider = min(n, int(1.5 * count)), min(16 * wider, float(n))


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


def _imbalance(jobs: Jobs, prices: _Prices, loads: FloatArray) -> float:
    """How far all jobs' load is from what pools have: all of it where they have a price, else no more."""
    p, span = len(jobs.workers), jobs.within(prices.g)
    load = loads[:, 0] + loads[:, 1] * prices.g
    beyond = load[:p] - jobs.workers * span
    size = max(float(jobs.workers.sum()) * span, 1e-300)
    off = float(np.where(prices.pools > 0, np.abs(beyond), np.maximum(beyond, 0.0)).sum()) / size
    return off if jobs.prices is None else off + abs(load[p] - jobs.budget) / jobs.budget


def _time_used(jobs: Jobs, mixes: _Mixes, g: float) -> FloatArray:
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


def _noise(jobs: Jobs, outcome: _Outcome, prices: _Prices, rng: np.random.Generator) -> FloatArray:
    """(k+1, n) float: costs that make one mix the best of each job."""
    fuzz = rng.random(jobs.speeds.shape)
    mass = outcome.mass or jobs.g_gain
    price = max(
        mass / max(float(jobs.workers.sum()), 1.0) / max(jobs.within(prices.g), 1e-300),
        float(prices.pools.max(initial=0.0)),
    )
    noise = PERTURBATION * (0.5 + fuzz) * (price * jobs.widths)
    if jobs.prices is not None:
        noise += PERTURBATION * fuzz * (abs(prices.budget) * jobs.prices)
    noise[0] = 0.0
    return noise


def _finished(
    jobs: Jobs,
    standing: _Standing,
    noise: FloatArray,
    undecided: BoolArray,
    count: int,
    programs: int,
    options: Options,
) -> _Optimum | None:
    """The program over the undecided jobs, and those that turn out to be, until nothing is left to gain."""
    n, mixes, order = jobs.num_jobs, standing.mixes, standing.order
    while programs < ROUNDS and clock.left() > 0 and undecided.sum() <= max(20 * count, n / 4):
        rest = _loads(jobs, mixes, np.flatnonzero(~undecided))
        chosen = np.flatnonzero(undecided)
        outcome = _solve_over(jobs, chosen, np.ones(len(chosen)), rest, jobs.gains, options)
        programs += 1
        if outcome is None:
            # The others' mixes leave no room.
            nearest = order[~undecided[order]]
            if not nearest.size:
                return None
            undecided[nearest[: int(undecided.sum())]] = True
            continue
        prices = outcome.prices
        costs = _costs(jobs, prices)
        span = jobs.within(prices.g)
        y = _speed_prices(jobs, costs, mixes)
        y[chosen] = outcome.speed_prices
        worth = y * jobs.speeds - costs
        time_prices = np.maximum(0.0, worth.max(axis=0))
        share = mixes.share + mixes.share_g * prices.g
        shares = np.zeros_like(jobs.speeds)
        everyone = np.arange(n)
        shares[mixes.first, everyone] = span - share
        shares[mixes.second, everyone] += share
        shares[:, chosen] = outcome.shares
        # What each job would gain: its time's price beyond what its mix is worth.
        lost = time_prices * span - (np.where(shares > 0, worth, 0.0) * shares).sum(axis=0)
        lost[chosen] = 0.0
        # A share is beyond what there is, or one type alone, which has been enough, no longer is.
        alone = jobs.asked + jobs.asked_g * prices.g - _pick(jobs.speeds, mixes.first) * span
        short = np.where(mixes.first == mixes.second, alone, np.maximum(-share, share - span))
        short[chosen] = 0.0
        enough = ENOUGH * max(abs(outcome.objective), 1e-3 * outcome.mass)
        broken = short > ROUNDING * span
        if not broken.any() and lost.sum() <= enough:
            return _Optimum(np.maximum(shares, 0.0)[1:], prices.g, prices, y, time_prices, noise, programs)
        found = np.flatnonzero(broken | (lost > enough / n))
        worst = np.argsort(-np.where(broken, np.inf, lost)[found], kind="stable")[:count]
        undecided[found[worst]] = True
        if found.size > count:
            undecided[order[~undecided[order]][: int(undecided.sum())]] = True
    return None


@dataclass(frozen=True, eq=False)
class _Translation:
    """A policy's program as jobs, and the way back."""

    jobs: Jobs
    policy: SharingProgram
    row_units: FloatArray
    g_unit: float

    @classmethod
    def of(cls, policy: SharingProgram) -> _Translation | None:
        """None for a program of another form."""
        stated = policy.stated
        instance = policy.instance
        if instance.num_pairs or len(stated.requirements) > 1 or len(stated.variables) > 1 or len(stated.budgets) > 1:
            return None
        n, k = instance.num_jobs, instance.num_types
        usable = np.ones((k + 1, n), bool)
        usable[1:] = instance.fits.T
        throughputs = np.where(instance.fits, instance.throughputs, 0.0).T
        gains, speeds = np.zeros((k + 1, n)), np.zeros((k + 1, n))
        if stated.worth is not None:
            gains[1:] = throughputs * stated.worth.T
        asked, asked_g = np.full(n, -np.inf), np.zeros(n)
        units, g_unit = np.ones(n), 1.0
        lower, upper = next(iter(stated.variables.values()), (0.0, 0.0))
        for row in stated.requirements:
            weights = np.zeros(n)
            weights[row.jobs] = row.weights[row.jobs]
            speeds[1:] = throughputs * weights
            greatest = speeds.max(axis=0)
            if (greatest[row.jobs] <= 0).any():
                return None
            units = np.where(greatest > 0, greatest, 1.0)
            speeds /= units
            asked[row.jobs] = row.lower / units[row.jobs]
            if row.less is not None:
                asked_g[row.jobs] = 1 / units[row.jobs]
                if not stated.homogeneous and not np.any(row.lower):
                    g_unit = float(greatest[row.jobs].min())
        homogeneous = stated.homogeneous
        jobs = Jobs(
            speeds=speeds,
            gains=gains,
            usable=usable,
            widths=instance.scale_factors.astype(float),
            pools=instance.pools,
            workers=instance.num_workers.astype(float),
            asked=asked,
            asked_g=asked_g * g_unit,
            time=0.0 if homogeneous else 1.0,
            time_g=1.0 if homogeneous else 0.0,
            g_lower=lower / g_unit,
            g_upper=upper / g_unit,
            g_gain=g_unit if stated.objective in stated.variables else 0.0,
            prices=_with_idleness(stated.budgets[0][1].reshape(n, k).T) if stated.budgets else None,
            budget=stated.budgets[0][2] if stated.budgets else 0.0,
        )
        return cls(jobs, policy, units, g_unit)

    def asking(self, row_lower: FloatArray) -> _Translation:
        """The same with other lower limits of the program's rows."""
        (row,) = self.policy.stated.requirements
        asked = self.jobs.asked.copy()
        asked[row.jobs] = row_lower[self.policy.rows(row.name)] / self.row_units[row.jobs]
        return replace(self, jobs=replace(self.jobs, asked=asked))

    def point(self, optimum: _Optimum) -> FloatArray:
        """Values of the program's columns."""
        x = optimum.shares.T.ravel()
        return np.append(x, optimum.g * self.g_unit) if self.policy.stated.variables else x

    def duals(self, optimum: _Optimum) -> FloatArray:
        """Prices of the program's rows."""
        stated = self.policy.stated
        by_name = {"job_time": optimum.time_prices, "pool_capacity": optimum.prices.pools}
        scale = 1.0
        for row in stated.requirements:
            prices = (optimum.speed_prices / self.row_units)[row.jobs]
            by_name[row.name] = -prices
            if row.less == stated.objective and np.isinf(self.jobs.g_upper) and prices.any():
                # Prices of any size are as good; these leave nothing for the variable.
                scale = 1 / float(prices.sum())
        for name, _, _ in stated.budgets:
            by_name[name] = np.array([optimum.prices.budget])
        duals: FloatArray = np.concatenate([by_name[name] for name in self.policy.constraints]) * scale
        return duals


def _with_idleness(values: FloatArray) -> FloatArray:
    """With a row of zeros for idleness above those of the types."""
    return np.vstack([np.zeros(values.shape[1]), values])


class PricedJobs:
    """A policy's program without pairs, and programs that differ from it in what jobs' own rows ask for.

    Parameters
    ----------
    policy : SharingProgram
    program : LinearProgram
        Its arrays.
    options : Options

    Attributes
    ----------
    program : LinearProgram
        The program of the last run.
    """

    def __init__(self, policy: SharingProgram, program: LinearProgram, options: Options) -> None:
        self.program = program
        self._policy = policy
        self._options = options
        self._translation = _Translation.of(policy)
        self._last: _Optimum | None = None

    def run(self, row_lower: FloatArray | None = None) -> Result | None:
        """The optimum; None where this way does not lead to a proof.

        Parameters
        ----------
        row_lower : (rows,) float, optional
            Lower limits of the program's rows, in place of those of the last run.
        """
        began = time.perf_counter()
        if self._translation is None:
            return None
        if row_lower is not None:
            self.program = replace(self.program, row_lower=row_lower)
            self._translation = self._translation.asking(row_lower)
        optimum = _optimum(self._translation.jobs, self._options, self._last)
        if optimum is None:
            return None
        self._last = optimum
        x = self._translation.point(optimum)
        certificate = Certificate.of(self.program, x, self._translation.duals(optimum))
        if not certificate.holds:
            return None
        return Result(
            "optimal",
            x,
            certificate.dual_objective,
            certificate,
            time.perf_counter() - began,
            f"Optimal; {optimum.programs} programs over some of the {len(self._translation.jobs.widths)} jobs",
            "prices",
        )
