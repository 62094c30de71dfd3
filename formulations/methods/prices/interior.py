"""Prices of the program over some jobs, by an interior-point method that has one small system of equations a step.

The program has two rows for each job, of its time and of what it asks for, and few that jobs meet in: pools, a budget
and the variable g.  In the normal equations ``A D A' p = r`` of the method (Mehrotra, "On the implementation of a
primal-dual interior point method", 1992) the rows of a job meet no other job's.  Where the job's own row is taken less
a multiple of the row of its time, these two do not meet either; what remains is a system with a row for each pool, the
budget and g.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from formulations.methods import GaveUp
from formulations.methods.prices.jobs import Jobs
from formulations.methods.prices.mixes import Indices, Prices
from instances.schema import FloatArray

__all__ = ["prices_over"]

START = 0.3
"""Size of the first point and of its reduced costs, relative to the largest number of the points of least squares."""
STEPS = 50
"""Steps before the method gives up."""
SHORT = 0.99
"""Part of the way to the nearest limit that a step goes."""

Solve: TypeAlias = Callable[[FloatArray, float], tuple[FloatArray, float]]


def prices_over(
    jobs: Jobs, chosen: Indices, weights: FloatArray, rest: FloatArray, gains: FloatArray, close: float
) -> tuple[Prices, float]:
    """Find prices of the program over some jobs, each counted so many times, beside the load of the rest.

    Parameters
    ----------
    jobs : Jobs
    chosen : (m,) int
    weights : (m,) float
    rest : (p + 2, 2) float
        What the others take of the pools and the budget, and add to the objective: constant, per g.
    gains : (k+1, n) float
        In place of those of ``jobs``.
    close : float
        Gap of the two sides, relative to the objective, and errors of rows that are good enough.

    Returns
    -------
    prices : Prices
    mass : float
        Size of what the objective adds up.

    Raises
    ------
    GaveUp
        When the method does not come close to an optimum; there may be none.
    """
    with np.errstate(all="ignore"):
        try:
            return _Program(jobs, chosen, weights, rest, gains).prices(close)
        except np.linalg.LinAlgError as error:
            raise GaveUp(f"prices of some jobs: {error}") from error


@dataclass
class _Iterate:
    """A point, prices of the rows, reduced costs z, and by how much rows and columns are off.

    What is not in use is 1 in x and in z.
    """

    x: FloatArray
    g: float
    prices: FloatArray
    z: FloatArray
    missing: FloatArray
    off: FloatArray
    off_g: float


class _Program:
    """The program over some jobs, ``min cost . x + cost_g * g``, with all that is at least 0 in one array x.

    Row j of x is the jobs' time on type j, 0 for idleness, and the last row what they have beyond what they ask for.
    One more column has what is free of each pool, and at its end the distances of g from its limits.  The rows are each
    job's time, each job's own, and those that jobs meet in.
    """

    def __init__(self, jobs: Jobs, chosen: Indices, weights: FloatArray, rest: FloatArray, gains: FloatArray) -> None:
        m, k, p = len(chosen), jobs.num_types, len(jobs.workers)
        self._jobs, self._count, self._pools, self._weights = jobs, m, p, weights
        usable, asks = jobs.usable[:, chosen], np.isfinite(jobs.asked[chosen])
        moves = jobs.g_lower < jobs.g_upper
        self._on = np.zeros((k + 2, m + 1))
        self._on[:-1, :-1], self._on[-1, :-1], self._on[:p, -1] = usable, 1.0, 1.0
        self._sides = np.array([moves, -float(moves and np.isfinite(jobs.g_upper))])
        self._on[-2:, -1] = np.abs(self._sides)
        self._speeds = np.zeros((k + 2, m))
        self._speeds[:-1], self._speeds[-1] = jobs.speeds[:, chosen] * (usable & asks), -1.0
        # The row of a job that asks for nothing is met by what it has beyond -1.
        asked = np.where(asks, jobs.asked[chosen], -1.0)
        self._asked_g = np.where(asks, jobs.asked_g[chosen], 0.0)
        meets = np.zeros((p + (jobs.prices is not None), k + 2, m + 1))
        meets[jobs.pools, np.arange(1, k + 1), :-1] = weights * jobs.widths[chosen] * usable[1:]
        limits, per_g = jobs.workers * jobs.time - rest[:p, 0], rest[:p, 1] - jobs.workers * jobs.time_g
        if jobs.prices is not None:
            meets[p, :-1, :-1] = weights * jobs.prices[:, chosen] * usable
            limits, per_g = np.append(limits, jobs.budget - rest[p, 0]), np.append(per_g, rest[p, 1])
        # These rows are in units of what a job takes at most.
        most = meets.max(axis=(1, 2))
        self._units = np.where(most > 0, most, 1.0)
        meets /= self._units[:, None, None]
        meets[np.arange(p), np.arange(p), -1] = 1.0
        self._flat = meets.reshape(len(most), -1)
        self._per_g = per_g / self._units
        self._right = np.concatenate([np.full(m, jobs.time), asked, limits / self._units])
        cost, cost_g = -weights * gains[:, chosen] * usable, -(jobs.g_gain + rest[p + 1, 1])
        self._scale = m / max(abs(cost_g), float(np.abs(cost).sum()), 1e-300)
        self._cost, self._cost_g = np.zeros_like(self._on), cost_g * self._scale
        self._cost[:-1, :-1] = cost * self._scale

    def prices(self, close: float) -> tuple[Prices, float]:
        """Take the steps: to where each product of x and z would be 0, corrected to where they are alike."""
        at, on = self._start(), self._on
        for _ in range(STEPS):
            products = at.x * at.z * on
            gap, value = float(products.sum()), float((self._cost * at.x).sum()) + self._cost_g * at.g
            wrong = max(float(np.abs(at.missing).max()), float(np.abs(at.off).max()))
            if gap <= close * max(abs(value), 1e-3 * self._count) and wrong <= close:
                return self._found(at, value)
            d = at.x / at.z * on
            step = partial(self._step, at, d, self._equations(d, float((at.z[-2:, -1] / at.x[-2:, -1]) @ on[-2:, -1])))
            _, _, dx, dz = step(-products)
            after = (at.x + _reach(at.x, dx, 1.0) * dx) * (at.z + _reach(at.z, dz, 1.0) * dz) * on
            alike = gap / float(on.sum()) * (float(after.sum()) / gap) ** 3
            change, change_g, dx, dz = step((alike - dx * dz) * on - products)
            one, other = _reach(at.x, dx, SHORT), _reach(at.z, dz, SHORT)
            at = _Iterate(
                x=at.x + one * dx,
                g=at.g + one * change_g,
                prices=at.prices + other * change,
                z=at.z + other * dz,
                missing=(1 - one) * at.missing,
                off=(1 - other) * at.off,
                off_g=(1 - other) * at.off_g,
            )
        raise GaveUp(f"prices of some jobs are not found in {STEPS} steps")

    def _found(self, at: _Iterate, value: float) -> tuple[Prices, float]:
        m, p = self._count, self._pools
        shared = -at.prices[2 * m :] / self._units / self._scale
        budget = float(shared[p]) if len(shared) > p else 0.0
        own = np.maximum(0.0, at.prices[m : 2 * m])
        mass = (abs(value) + float(own @ np.abs(self._right[m : 2 * m]))) / self._scale
        # A pool is free of which a greater part is left than its price is of the whole.
        workers = self._jobs.workers * self._jobs.within(at.g)
        left, worth = at.x[:p, -1] * self._units[:p] / workers, shared[:p] * workers / mass
        pools = np.where(left > worth, 0.0, np.maximum(0.0, shared[:p]))
        return Prices(pools, budget, at.g), mass

    def _start(self) -> _Iterate:
        """Return a point and prices: those of least squares, with x alike everywhere, and z for each unit of weight."""
        jobs, on = self._jobs, self._on > 0
        solve = self._equations(self._on, 1.0)
        prices, up = solve(self._right - self._sums(0.0 * self._on, jobs.g_lower), 0.0)
        x = self._worth(prices)[0]
        prices, _ = solve(self._sums(self._cost, 0.0), self._cost_g)
        z = (self._cost - self._worth(prices)[0]) * on
        x[-2:, -1], z[-2:, -1] = (up, 0.0), 0.0
        z[:, :-1] /= self._weights
        x, z = (np.where(on, START * np.abs(one[on]).max(), 1.0) for one in (x, z))
        z[:, :-1] = np.where(on[:, :-1], z[:, :-1] * self._weights, 1.0)
        room = jobs.g_upper - jobs.g_lower
        if on[-1, -1]:
            x[-2, -1] = np.clip(x[-2, -1], 0.1 * room, 0.9 * room)
            x[-1, -1] = room - x[-2, -1]
        g = jobs.g_lower + (float(x[-2, -1]) if on[-2, -1] else 0.0)
        worth, worth_g = self._worth(prices)
        off = (self._cost - worth - z) * on
        off[-2:, -1] = 0.0
        off_g = self._cost_g - worth_g - float(self._sides @ z[-2:, -1])
        return _Iterate(x, g, prices, z, self._right - self._sums(x * on, g), off, off_g)

    def _step(
        self, at: _Iterate, d: FloatArray, solve: Solve, wanted: FloatArray
    ) -> tuple[FloatArray, float, FloatArray, FloatArray]:
        """Return changes of prices, g, x and z that mend all rows and change each product of x and z as is wanted."""
        beyond = d * at.off - wanted / at.z
        beyond[-2:, -1] = 0.0
        pull = float(self._sides @ (wanted[-2:, -1] / at.x[-2:, -1]))
        change, change_g = solve(at.missing + self._sums(beyond, 0.0), at.off_g - pull)
        dx = d * self._worth(change)[0] - beyond
        dx[-2:, -1] = self._sides * change_g
        return change, change_g, dx, (wanted - at.z * dx) / at.x

    def _sums(self, x: FloatArray, g: float) -> FloatArray:
        """Return the left sides of the rows, A x."""
        m, own = self._count, x[:, :-1]
        sums = np.empty(len(self._right))
        own[:-1].sum(axis=0, out=sums[:m])
        (self._speeds * own).sum(axis=0, out=sums[m : 2 * m])
        sums[2 * m :] = self._flat @ x.ravel()
        if g:
            sums[:m] -= self._jobs.time_g * g
            sums[m : 2 * m] -= self._asked_g * g
            sums[2 * m :] += self._per_g * g
        return sums

    def _worth(self, prices: FloatArray) -> tuple[FloatArray, float]:
        """Return what prices of the rows make of one unit of each x, and of g."""
        m = self._count
        time, speed, shared = prices[:m], prices[m : 2 * m], prices[2 * m :]
        worth = (shared @ self._flat).reshape(self._on.shape)
        worth[:, :-1] += self._speeds * speed
        worth[:-1, :-1] += time
        worth *= self._on
        return worth, float(self._per_g @ shared - self._jobs.time_g * time.sum() - self._asked_g @ speed)

    def _equations(self, d: FloatArray, of_g: float) -> Solve:
        """Return what solves ``A D A' p + a g = r`` and ``a . p - of_g * g = r_g``, a being the column of g."""
        m, own, count = self._count, d[:, :-1], len(self._units)
        time = own[:-1].sum(axis=0)
        mean = (self._speeds[:-1] * own[:-1]).sum(axis=0) / time
        ahead = self._speeds.copy()
        ahead[:-1] -= mean
        speed = (ahead * ahead * own).sum(axis=0)
        loads = d * self._flat.reshape(count, *d.shape)
        by_time, by_speed = np.empty((2, count + 1, m))
        loads[:, :, :-1].sum(axis=1, out=by_time[:-1])
        (loads[:, :, :-1] * ahead).sum(axis=1, out=by_speed[:-1])
        by_time[-1], by_speed[-1] = -self._jobs.time_g, mean * self._jobs.time_g - self._asked_g
        over_time, over_speed = by_time / time, by_speed / speed
        left = np.zeros((count + 1, count + 1))
        left[:-1, :-1] = loads.reshape(count, -1) @ self._flat.T
        left[:-1, -1] = left[-1, :-1] = self._per_g
        left[-1, -1] = -of_g
        left -= over_time @ by_time.T + over_speed @ by_speed.T
        moves = bool(self._sides[0])
        if not moves:
            left[-1], left[-1, -1] = 0.0, 1.0
        inverse = np.linalg.inv(left)

        def solve(right: FloatArray, right_g: float) -> tuple[FloatArray, float]:
            asked = right[m : 2 * m] - mean * right[:m]
            shared = np.append(right[2 * m :], right_g) - over_time @ right[:m] - over_speed @ asked
            found = inverse @ shared
            found[-1] *= moves
            prices = np.empty_like(right)
            prices[m : 2 * m] = (asked - found @ by_speed) / speed
            prices[:m] = (right[:m] - found @ by_time) / time - mean * prices[m : 2 * m]
            prices[2 * m :] = found[:-1]
            return prices, float(found[-1])

        return solve


def _reach(values: FloatArray, change: FloatArray, part: float) -> float:
    """Return how far a change may go, 1 at most, as a part of the way to where the first value is 0."""
    return min(1.0, part / max(1e-300, -float((change / values).min())))
