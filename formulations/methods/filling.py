"""Water filling under limits that prices prove: where levels rise, and stop, without a solver.

Prices u >= 0 of the pools' workers limit every allocation.  A job alone that is to have the level l at
least pays C_m(l), the cheapest mix of types that gives it: the lower hull of its types' points (level, cost)
and of idleness, (0, 0), a convex function of l.  So with W the workers of the pools,

    sum_m C_m(l_m)  <=  u @ W                         for all levels l that an allocation attains.

For jobs in pairs, C_m(l) = z_m * l - y_m, where no column is worth more at the jobs' prices z than the time, at y,
and the workers that it takes cost: weak duality.

Levels rise at their rates until a job has its ceiling, or such a limit is reached.  That freezes each job that
would have to pay more, and the others where they would begin to: some pool is closed to whoever is not in it yet.
Between two limits levels need no steps.  Where each job stops is known, so in an entity it is known in which order
and at which heights, and what a limit adds up to is an increasing function of the height.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from formulations.gavel.sharing import incidence
from instances.gavel.hierarchical_fairness import HierarchicalFairness
from instances.schema import BoolArray, FloatArray, IntArray

__all__ = ["CEILING", "RISING", "Filled", "Level", "Limit", "Limits"]

NOISE = 1e-11
"""Prices up to this, of all that is paid or with jobs' prices times ceilings summing to 1, are rounding."""
TIE = 1e-12
"""Levels and heights this close to one another, relatively, are the same."""
BESIDE = 1e-6
"""Part of new prices in those beside a limit's own."""
CEILING, RISING = -1, -2
"""Why a job stops, where it is no limit's number: it has its ceiling, or does not stop yet."""


@dataclass(frozen=True, eq=False)
class Limit:
    """``sum(prices * v(X)) <= most`` for every allocation X, by weak duality.

    Attributes
    ----------
    prices : (n,) float
        Of each job's normalised throughput, at least 0.
    time_prices, pool_prices : (n,) and (p,) float
        Of each job's time and each pool's workers, at least 0.
    most : float
        The limit that follows from them.
    """

    prices: FloatArray
    time_prices: FloatArray
    pool_prices: FloatArray
    most: float


@dataclass(frozen=True, eq=False)
class Level:
    """A level at which jobs stop rising, and why they do.

    Attributes
    ----------
    height : float
        How far levels have risen: the sum of all rises so far.
    jobs : (j,) int
        Jobs frozen here.
    limit : Limit, optional
        Holds with equality at the final levels and has a positive price on each of the jobs, so none of
        them can rise unless another job falls.  None where a solver without prices was asked about
        each job instead.
    """

    height: float
    jobs: IntArray
    limit: Limit | None


@dataclass(frozen=True, eq=False)
class _Costs:
    """Costs of the jobs' levels at some prices: ``C_m(l) = max_i slopes[i, m] * l - times[i, m]``.

    Attributes
    ----------
    pool_prices : (p,) float
    slopes, times : (i, n) float
        At least 0, and slopes do not fall.  Of a job alone the first are 0, of a job in pairs all are the same.
    most : float
        What the workers of all pools cost.
    """

    pool_prices: FloatArray
    slopes: FloatArray
    times: FloatArray
    most: float

    @cached_property
    def free(self) -> FloatArray:
        """(n,) float: the level up to which more costs a job nothing."""
        starts = np.full(self.slopes.shape, np.inf)
        np.divide(self.times, self.slopes, out=starts, where=self.slopes > 0)
        free: FloatArray = np.where(self.slopes[0] > 0, 0.0, starts.min(axis=0))
        return free

    def at(self, levels: FloatArray) -> tuple[float, IntArray]:
        """Return what all pay together, and which piece of its costs each job is on: the steepest, where two meet."""
        costs = self.slopes * levels - self.times
        size = TIE * self.slopes * levels
        piece = len(costs) - 1 - (costs + size)[::-1].argmax(axis=0)
        return float(costs.max(axis=0).sum()), piece

    def limit(self, levels: FloatArray) -> Limit:
        """Return the limit at some levels, with a price on each job that would have to pay more for more."""
        _, piece = self.at(levels)
        jobs = np.arange(len(levels))
        time_prices = self.times[piece, jobs]
        return Limit(self.slopes[piece, jobs], time_prices, self.pool_prices, float(time_prices.sum()) + self.most)


@dataclass(frozen=True, eq=False)
class Filled:
    """Levels that filling under some limits ends in.

    Attributes
    ----------
    levels : (n,) float
    heights : (n,) float
        Where each job stops; infinite where it does not yet.
    causes : (n,) int
        Number of the limit that stops it, or :data:`CEILING`, or :data:`RISING`.
    height : float
        Where the last limit was reached.
    limits : tuple of int
        Numbers of the limits that have been reached, in order.
    stops, awaited : (n,) float and (n,) int
        Level at which each job will stop, as far as is known, and the cause.
    """

    levels: FloatArray
    heights: FloatArray
    causes: IntArray
    height: float
    limits: tuple[int, ...]
    stops: FloatArray
    awaited: IntArray

    @property
    def reached(self) -> int:
        """Number of limits that have been reached."""
        return len(self.limits)

    @property
    def complete(self) -> bool:
        """Whether all jobs have stopped."""
        return not (self.causes == RISING).any()


class Limits:
    """Known limits of the levels that allocations attain: the ceilings, and limits from prices.

    Parameters
    ----------
    instance : HierarchicalFairness
    """

    def __init__(self, instance: HierarchicalFairness) -> None:
        self.instance = instance
        self._entries = incidence(instance)
        self._paired = np.zeros(instance.num_jobs, bool)
        self._paired[instance.pairs] = True
        worth = np.where(instance.fits[: instance.num_jobs], instance.throughputs, 0.0).T
        self._levels_of_types = np.vstack([np.zeros(instance.num_jobs), worth * instance.level_per_throughput])
        self._limits: list[_Costs] = []

    def add(self, prices: FloatArray, time_prices: FloatArray, pool_prices: FloatArray) -> None:
        """Add the limit that prices of jobs, of their time and of the workers prove; rounding in them is harmless."""
        paid = pool_prices * self.instance.num_workers
        pool_prices = np.where(paid > NOISE * paid.sum(), pool_prices, 0.0)
        slopes, times = self._hulls(pool_prices)
        if self._paired.any():
            prices, time_prices = self._of_pairs(prices, time_prices, pool_prices)
            slopes[:, self._paired], times[:, self._paired] = prices[self._paired], time_prices[self._paired]
        most = float(pool_prices @ self.instance.num_workers)
        self._limits.append(_Costs(pool_prices, slopes, times, most))

    def add_beside(self, number: int, pool_prices: FloatArray) -> None:
        """Add limits without pairs whose prices are those of another one, and a hair of these.

        Among many jobs, what is reached after a limit is proven by prices that are hardly others: those far from them
        are reached later, and the nearer they come to these the earlier.
        """
        near = self._limits[number].pool_prices
        workers = self.instance.num_workers
        prices = (1 - BESIDE) * near / float(near @ workers) + BESIDE * pool_prices / float(pool_prices @ workers)
        none = np.zeros(self.instance.num_jobs)
        self.add(none, none, prices)

    def ease(self, jobs: IntArray, causes: IntArray) -> None:
        """Let jobs rise through the limits that stopped them: their prices there are rounding."""
        for number in np.unique(causes[causes >= 0]).tolist():
            eased = jobs[causes == number]
            old = self._limits[number]
            slopes, times = old.slopes.copy(), old.times.copy()
            slopes[:, eased] = 0.0
            # What a job in pairs has paid for its time stays, so that the limit still holds.
            times[:, eased] = np.where(self._paired[eased], times[:, eased], 0.0)
            self._limits[number] = _Costs(old.pool_prices, slopes, times, old.most)

    def _hulls(self, pool_prices: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Slopes and times of the lower hulls of the types' points (level, cost)."""
        instance, levels = self.instance, self._levels_of_types
        costs = np.zeros_like(levels)
        np.multiply.outer(pool_prices[instance.pools], instance.scale_factors.astype(float), out=costs[1:])
        jobs = np.arange(instance.num_jobs)
        slopes, times = np.zeros_like(levels), np.zeros_like(levels)
        at = np.where(costs == 0, levels, -1.0).argmax(axis=0)
        for piece in range(1, len(levels)):
            ahead = levels - levels[at, jobs]
            rise = np.divide(costs - costs[at, jobs], ahead, out=np.full_like(costs, np.inf), where=ahead > 0)
            following = rise.argmin(axis=0)
            slope = rise[following, jobs]
            further = np.isfinite(slope)
            slopes[piece] = np.where(further, np.maximum(slope, slopes[piece - 1]), slopes[piece - 1])
            times[piece] = np.where(
                further, np.maximum(slopes[piece] * levels[at, jobs] - costs[at, jobs], 0.0), times[piece - 1]
            )
            at = np.where(further, following, at)
        return slopes, times

    def _of_pairs(
        self, prices: FloatArray, time_prices: FloatArray, pool_prices: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Prices of jobs, as high as their time and workers allow, and of their time, as high as the jobs' need.

        A column of X may be worth no more to its jobs than its time and workers cost.  Where it is,
        time is made dearer; where it is worth less, its jobs' prices are raised.
        """
        instance, entries = self.instance, self._entries
        fits = instance.fits.ravel()
        value = np.where(fits[entries.column], entries.throughput * instance.level_per_throughput[entries.job], 0.0)
        # A pair's column has two jobs to raise the price of.
        sharing = np.where(entries.column < instance.num_jobs * instance.num_types, 1.0, 2.0)

        def cost_beyond_worth(time_prices: FloatArray) -> FloatArray:
            cost = np.bincount(entries.column, weights=time_prices[entries.job], minlength=len(fits)).astype(float)
            cost += (instance.row_scale_factors[:, None] * pool_prices[instance.pools]).ravel()
            worth = np.bincount(entries.column, weights=value * prices[entries.job], minlength=len(fits))
            return (cost - worth)[entries.column] / sharing

        dearer = np.zeros(instance.num_jobs)
        missing = np.where(fits[entries.column], -cost_beyond_worth(time_prices), 0.0)
        np.maximum.at(dearer, entries.job, missing)
        time_prices = time_prices + dearer
        left = np.maximum(0.0, cost_beyond_worth(time_prices))
        raised = np.full(instance.num_jobs, np.inf)
        np.minimum.at(raised, entries.job[value > 0], left[value > 0] / value[value > 0])
        raised[np.isinf(raised)] = 0.0
        return prices + np.where(raised * instance.ceilings > NOISE, raised, 0.0), time_prices

    def fill(self, most: int, *, after: Filled | None = None) -> Filled:
        """Fill until so many limits are reached in all, or all jobs have stopped.

        Parameters
        ----------
        most : int
        after : Filled, optional
            Where to go on from, levels that some allocation attains, under limits that have not been eased since; by
            default from the bottom.
        """
        n = self.instance.num_jobs
        levels, stops, height = np.zeros(n), self.instance.ceilings.copy(), 0.0
        heights, causes, stopped = np.full(n, np.inf), np.full(n, CEILING), np.zeros(n, bool)
        reached: list[int] = []
        if after is not None:
            levels, stops, height, reached = after.levels, after.stops.copy(), after.height, list(after.limits)
            heights, causes, stopped = after.heights.copy(), after.awaited.copy(), after.causes != RISING
        # The newest are the nearest.
        loose = [number for number in range(len(self._limits))[::-1] if number not in reached]
        while True:
            rise = _Rise(self.instance, levels, stops, stopped, height)
            limit = None
            if len(reached) < most:
                limit, height = _first_reached(rise, [(number, self._limits[number]) for number in loose])
            now = rise.ends <= height
            heights[now], stopped = rise.ends[now], stopped | now
            levels = rise.at(height)
            if limit is None:
                known = np.where(stopped, causes, RISING)
                return Filled(levels, heights, known, height, tuple(reached), stops, causes)
            loose.remove(limit)
            reached.append(limit)
            free = self._limits[limit].free
            held = ~stopped & (free < stops)
            stops[held], causes[held] = np.maximum(levels, free)[held], limit

    def levels(self, filled: Filled) -> tuple[Level, ...]:
        """Find where jobs stop, with the proofs."""
        limits = {
            number: self._limits[number].limit(filled.levels)
            for number in set(filled.causes.tolist()) - {CEILING, RISING}
        }
        full = filled.causes == CEILING
        limits[CEILING] = Limit(
            full.astype(float),
            np.where(full, filled.levels, 0.0),
            np.zeros(len(self.instance.num_workers)),
            float(filled.levels[full].sum()),
        )
        stopped = np.flatnonzero(filled.causes != RISING)
        order = stopped[np.lexsort((filled.causes[stopped], filled.heights[stopped]))]
        heights, causes = filled.heights[order], filled.causes[order]
        firsts = np.flatnonzero((np.diff(heights) > TIE * heights[1:]) | (np.diff(causes) != 0)) + 1
        return tuple(
            Level(float(filled.heights[jobs[0]]), jobs, limits[int(filled.causes[jobs[0]])])
            for jobs in np.split(order, firsts)
            if jobs.size
        )


class _Rise:
    """The rise of the levels while each job's stop is known.

    Jobs of an entity that share fairly have risen by ``weights * turn`` until they stop, where turn is a number
    of the entity that rises the faster the fewer of them are left; in order, each rises alone in its turn.

    Parameters
    ----------
    instance : HierarchicalFairness
    levels, stops : (n,) float
        Where each job begins and ends.
    stopped : (n,) bool
        Jobs that take no part.
    height : float
        Where the rise begins.
    """

    def __init__(
        self, instance: HierarchicalFairness, levels: FloatArray, stops: FloatArray, stopped: BoolArray, height: float
    ) -> None:
        n = instance.num_jobs
        self.start = height
        self.ends = np.where(stopped, np.nan, height)
        self._levels, self._stops, self._stopped = levels, stops, stopped
        self._begin, self._weights = np.zeros(n), np.zeros(n)
        self._turns: list[tuple[IntArray, FloatArray, FloatArray]] = []
        rising = np.flatnonzero(~stopped)
        rising = rising[np.argsort(instance.entities[rising], kind="stable")]
        for jobs in np.split(rising, np.flatnonzero(np.diff(instance.entities[rising])) + 1):
            if not jobs.size:
                continue
            entity = instance.entities[jobs[0]]
            weight = float(instance.entity_weights[entity])
            left = np.maximum(0.0, stops[jobs] - levels[jobs])
            if instance.entity_policies[entity] == "fifo":
                turns = np.cumsum(left)
                self._weights[jobs], self._begin[jobs] = 1.0, np.concatenate([[0.0], turns[:-1]])
                ends = height + turns / weight
            else:
                self._weights[jobs] = instance.weights[jobs]
                turns = left / instance.weights[jobs]
                order = np.argsort(turns, kind="stable")
                jobs, turns = jobs[order], turns[order]
                still = np.cumsum(instance.weights[jobs][::-1])[::-1]
                ends = height + np.cumsum(np.diff(turns, prepend=0.0) * still) / weight
            self.ends[jobs] = ends
            self._turns.append((jobs, np.append(height, ends), np.append(0.0, turns)))

    @cached_property
    def heights(self) -> FloatArray:
        """The heights at which jobs stop, each once."""
        return np.unique(self.ends[~self._stopped])

    def at(self, height: float) -> FloatArray:
        """(n,) float: the levels at a height."""
        turn = np.zeros(len(self._levels))
        for jobs, ends, turns in self._turns:
            turn[jobs] = np.interp(height, ends, turns)
        risen = self._levels + self._weights * np.maximum(0.0, turn - self._begin)
        levels: FloatArray = np.where(
            self._stopped, self._levels, np.where(self.ends <= height, self._stops, np.minimum(risen, self._stops))
        )
        return levels


def _first_reached(rise: _Rise, limits: list[tuple[int, _Costs]]) -> tuple[int | None, float]:
    """Return the number of the limit that is reached first, and where.

    None, and infinity, where levels rise to their stops within all.
    """
    heights = rise.heights
    first, height, high = None, np.inf, len(heights) - 1
    for number, limit in limits:
        if high < 0:
            break
        # Nothing is reached where a limit is kept as far as the first so far, or as levels rise.
        top = float(heights[high]) if first is None else height
        if limit.at(rise.at(top))[0] <= limit.most:
            continue
        low = -1
        while high - low > 1:
            middle = (low + high) // 2
            broken = limit.at(rise.at(float(heights[middle])))[0] > limit.most
            low, high = (low, middle) if broken else (middle, high)
        # Up to here levels rise in straight lines, and costs are convex: Newton's method from above.
        start, height = rise.start if low < 0 else float(heights[low]), min(top, float(heights[high]))
        rates = (rise.at(height) - rise.at(start)) / (height - start) if height > start else np.zeros(len(rise.ends))
        first = number
        while True:
            costs, piece = limit.at(rise.at(height))
            speed = float(np.take_along_axis(limit.slopes, piece[None], axis=0)[0] @ rates)
            lower = max(start, height - (costs - limit.most) / speed) if costs > limit.most and speed > 0 else height
            if lower >= height:
                break
            height = lower
    return first, height
