"""Allocations that give each job its multiple of a common level, by an interior-point method.

Four of Gavel's policies ask for the greatest level at which some allocation gives each job m at least ``level *
demand[m]`` steps/s.  With columns x = X[row, type] that is

    max  level   s.t.   C x >= level  (a row for each job that demands),   P x <= 1  (each job's time, each pool),

and any prices y of the rows of P and z of those of C prove that no level exceeds

    max_c (z' C)_c / (y' P)_c  *  sum(y) / sum(z).

Newton's method on the conditions of optimality, with all products of a slack and its price alike and less in each step
(Mehrotra's predictor and corrector), needs few steps, each of them a system of equations with a row for each row of
the program.  Rows of jobs that are in no pair meet only in the pools: the system is a small block for each job and a
border as wide as there are pools.  Pairs are kept within groups of jobs, each a block.

References
----------
Mehrotra, "On the implementation of a primal-dual interior point method" (1992).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from instances.gavel.sharing import Allocation, Sharing
from instances.schema import BoolArray, FloatArray, IntArray

__all__ = ["EPSILON", "GROUP", "RAISED", "ROUGHLY", "Attained", "LevelProgram", "Levels", "checked", "whole"]

EPSILON = 1e-3
"""Relative distance of a level from the limit that prices prove, close enough by default."""
ROUGHLY = 10
"""So many times that distance is close enough for prices that only lead on."""
GROUP = 16
"""Jobs in a group, within which pairs are kept: each is a block of twice as many rows."""
STEPS = 40
"""Steps after which the best point so far has to do."""
SHORT = 0.95
"""Part of the way to the nearest limit that a step goes."""
RAISED = 0.1
"""Part of ``epsilon`` that may be lost by raising the demands of jobs that need next to nothing."""


@dataclass(frozen=True)
class LevelProgram:
    """Columns X[row, type] that give some job something, in (columns,) arrays.

    A pair's column counts towards two jobs, ``first`` and ``second``; for a job alone, ``second``
    is job n, which does not exist and stands for nothing.
    """

    num_jobs: int
    num_pools: int
    shape: tuple[int, int]
    position: IntArray
    first: IntArray
    second: IntArray
    first_level: FloatArray
    second_level: FloatArray
    pool: IntArray
    pool_share: FloatArray

    @classmethod
    def of(cls, instance: Sharing, reach: FloatArray, kept: BoolArray | None = None) -> LevelProgram:
        """Return the program in which each job, alone in its best column all the time, has the level ``reach``.

        Parameters
        ----------
        instance : Sharing
        reach : (n,) float
        kept : (q,) bool, optional
            Pairs that have columns; all by default.
        """
        n, k, q = instance.num_jobs, instance.num_types, instance.num_pairs
        first = np.concatenate([np.arange(n), instance.pairs[:, 0]])
        second = np.concatenate([np.full(n, n), instance.pairs[:, 1]])
        greatest, level = np.append(instance.greatest_throughputs, 1.0), np.append(reach, 0.0)
        greatest = np.where(greatest > 0, greatest, 1.0)
        able = instance.fits.copy()
        if kept is not None:
            able[n:] &= kept[:, None]
        own = np.concatenate([instance.throughputs, instance.pair_throughputs[:, :, 0]])
        other = np.concatenate([np.zeros((n, k)), instance.pair_throughputs[:, :, 1]])
        own = np.where(able, own, 0.0) / greatest[first, None] * level[first, None]
        other = np.where(able, other, 0.0) / greatest[second, None] * level[second, None]
        row, kind = np.nonzero((own > 0) | (other > 0))
        pool = instance.pools[kind]
        return cls(
            num_jobs=n,
            num_pools=len(instance.num_workers),
            shape=(n + q, k),
            position=row * k + kind,
            first=first[row],
            second=second[row],
            first_level=own[row, kind],
            second_level=other[row, kind],
            pool=pool,
            pool_share=instance.row_scale_factors[row] / instance.num_workers[pool],
        )

    def load(self, x: FloatArray) -> FloatArray:
        """P x: time of each job, then workers of each pool as a share of it."""
        time = self._of_jobs(x, x)
        return np.concatenate([time, np.bincount(self.pool, self.pool_share * x, self.num_pools)])

    def cover(self, x: FloatArray) -> FloatArray:
        """C x: level of each job."""
        return self._of_jobs(self.first_level * x, self.second_level * x)

    def prices(self, y: FloatArray) -> FloatArray:
        """Column prices y' P."""
        of_job, of_pool = np.append(y[: self.num_jobs], 0.0), y[self.num_jobs :]
        prices: FloatArray = of_job[self.first] + of_job[self.second] + of_pool[self.pool] * self.pool_share
        return prices

    def worths(self, z: FloatArray) -> FloatArray:
        """Return the worth of each column at prices z, z' C."""
        of_job = np.append(z, 0.0)
        worths: FloatArray = self.first_level * of_job[self.first] + self.second_level * of_job[self.second]
        return worths

    def value(self, x: FloatArray) -> float:
        """Return the level that x attains when it is scaled to fill its tightest packing row."""
        return float(self.cover(x).min() / self.load(x).max())

    def bound(self, y: FloatArray, z: FloatArray) -> float:
        """Return the level that prices y and z prove cannot be exceeded."""
        return self.limit(y, z) / float(z.sum())

    def limit(self, y: FloatArray, z: FloatArray) -> float:
        """Return what prices y prove that levels at prices z, z' C x, do not exceed."""
        return float((self.worths(z) / self.prices(y)).max() * y.sum())

    def allocation(self, x: FloatArray) -> Allocation:
        """Return the allocation of columns x."""
        fractions = np.zeros(self.shape)
        fractions.ravel()[self.position] = x
        return Allocation(time_fractions=fractions)

    def _of_jobs(self, first: FloatArray, second: FloatArray) -> FloatArray:
        n = self.num_jobs
        both = np.bincount(self.first, first, n + 1) + np.bincount(self.second, second, n + 1)
        return both[:n].astype(float)


@dataclass(frozen=True)
class Attained:
    """An allocation, what it attains of a demand, and what limits all allocations.

    Attributes
    ----------
    allocation : Allocation
    multiple : float
        Of the demand that each job has at least.
    prices : (n,) float
        Of each job's throughput, 0 for one that has more than it demands.
    limit : float
        ``prices @ throughput(X)`` is at most this for every X of jobs alone and of the pairs that are kept.
    free : (p,) bool
        Pools whose workers have no price.
    """

    allocation: Allocation
    multiple: float
    prices: FloatArray
    limit: float
    free: BoolArray


class Levels:
    """A cluster, asked for the greatest multiples of what its jobs demand.

    Of more than ``GROUP`` jobs, those in pairs that gain most, at the prices of the jobs alone for the first demand, go
    into one group; pairs across groups are left out (:func:`whole` says where there are none).
    """

    def __init__(self, instance: Sharing) -> None:
        self.instance = instance
        n = instance.num_jobs
        self._group = None if not whole(instance) else np.arange(n) if not instance.num_pairs else np.zeros(n, np.int64)

    def attain(self, demand: FloatArray, epsilon: float = EPSILON) -> Attained:
        """Return an allocation whose multiple is within ``epsilon`` of the greatest, with the pairs that are kept.

        Parameters
        ----------
        demand : (n,) float
            Steps/s of each job, some above 0, and those only of jobs that run somewhere.
        epsilon : float
        """
        instance, n, asks = self.instance, self.instance.num_jobs, demand > 0
        count = np.count_nonzero(asks)
        with np.errstate(over="ignore"):
            reach = np.divide(instance.greatest_throughputs, demand, out=np.zeros(n), where=asks)
        unit = float(reach[asks].min())
        # With 1 / n of the time of the least one's best for each, all that is raised here costs a part of the optimum.
        reach = np.minimum(reach / unit, count / (RAISED * epsilon))
        if self._group is None:
            self._group = self._groups(reach, asks, epsilon)
        group = self._group
        program = LevelProgram.of(instance, reach, group[instance.pairs[:, 0]] == group[instance.pairs[:, 1]])
        x, y, z = _interior_point(program, asks, group, epsilon)
        levels, load = program.cover(x), program.load(x)
        level = float(levels[asks].min())
        # Of a slack and its price one is 0 at the optimum, and here the smaller one.
        z = np.where(z * count * level > levels - level, z, 0.0)
        free = y[n:] * len(y) / y.sum() < 1 - load[n:]
        per = np.divide(reach, instance.greatest_throughputs, out=np.zeros(n), where=asks)
        return Attained(program.allocation(x), level * unit, z * per, program.limit(y, z), free)

    def _groups(self, reach: FloatArray, asks: BoolArray, epsilon: float) -> IntArray:
        """(n,) int: a group of at most ``GROUP`` jobs for each, joined by the pairs that gain most."""
        instance, n = self.instance, self.instance.num_jobs
        alone = LevelProgram.of(instance, reach, np.zeros(instance.num_pairs, bool))
        _, y, z = _interior_point(alone, asks, np.arange(n), ROUGHLY * epsilon)
        program = LevelProgram.of(instance, reach)
        gain = np.zeros(n + instance.num_pairs)
        np.maximum.at(gain, program.position // instance.num_types, program.worths(z) / program.prices(y))
        gain = gain[n:] * y.sum() / alone.limit(y, z)
        group, members = list(range(n)), [[job] for job in range(n)]
        order = np.argsort(-gain, kind="stable")
        for first, second in instance.pairs[order[gain[order] > 1]].tolist():
            one, other = group[first], group[second]
            if one != other and len(members[one]) + len(members[other]) <= GROUP:
                for job in members[other]:
                    group[job] = one
                members[one] += members[other]
                members[other] = []
        # Groups share blocks, so that there are few of them.
        blocks: list[list[int]] = []
        for some in sorted(members, key=len, reverse=True):
            block = next((one for one in blocks if len(one) + len(some) <= GROUP), None)
            if block is None:
                blocks.append(some)
            else:
                block += some
        groups = np.zeros(n, np.int64)
        for number, some in enumerate(blocks):
            groups[some] = number
        return groups


def whole(instance: Sharing) -> bool:
    """Return whether no pair is left out: there is none, or all jobs are one group."""
    return not instance.num_pairs or instance.num_jobs <= GROUP


def checked(epsilon: float) -> float:
    """Return ``epsilon``.

    Raises
    ------
    ValueError
        When it is less than 1e-5, which rounding would keep from being proven, or not less than 0.1.
    """
    if not 1e-5 <= epsilon < 0.1:
        raise ValueError(f"epsilon: got {epsilon!r}, must be at least 1e-5 and less than 0.1")
    return epsilon


class _Blocks:
    """The equations of a step: a block for each group of jobs, and the pools and the level as their border."""

    def __init__(self, program: LevelProgram, asks: BoolArray, group: IntArray) -> None:
        n = program.num_jobs
        order = np.argsort(group, kind="stable")
        sizes = np.bincount(group)
        place = np.empty(n, np.int64)
        place[order] = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        self.program, self.asks = program, asks.astype(float)
        self.side = side = 2 * int(sizes.max())
        self.count = len(sizes)
        start = group * side + place
        self.rows = np.stack([start, start + side // 2])
        paired = bool((program.second < n).any())
        second = np.where(program.second < n, program.second, program.first)
        jobs = np.stack([program.first, second][: 1 + paired])
        of_column = np.concatenate(self.rows[:, jobs].transpose(1, 0, 2)).T
        there = np.ones(len(program.first)), (program.second < n).astype(float)
        signs = (program.first_level, -there[0], program.second_level, -there[1])
        values = np.stack(signs[: 2 + 2 * paired], axis=1)
        width = values.shape[1]
        self.cells = (of_column[:, :, None] * side + of_column[:, None, :] % side).ravel()
        self.products = (values[:, :, None] * values[:, None, :]).reshape(-1, width**2)
        self.border_cells = (of_column * program.num_pools + program.pool[:, None]).ravel()
        self.border = -values * program.pool_share[:, None]

    def solver(self, d: FloatArray, diagonal: FloatArray) -> Callable[[FloatArray], tuple[FloatArray, FloatArray]]:
        """Return what solves ``(A D A' + diagonal) (dz, dy) = right``, with columns x and the level in A."""
        program, side, count = self.program, self.side, self.count
        n, p = program.num_jobs, program.num_pools
        cells = np.asarray(np.bincount(self.cells, (d[:-1, None] * self.products).ravel(), count * side**2), float)
        blocks = cells.reshape(count, side, side)
        own = np.ones(count * side)
        own[self.rows] = diagonal[: 2 * n].reshape(2, n)
        blocks[:, np.arange(side), np.arange(side)] += own.reshape(count, side)
        border = np.zeros((count * side, p + 1))
        border[:, :p] = np.bincount(self.border_cells, (d[:-1, None] * self.border).ravel(), count * side * p).reshape(
            -1, p
        )
        border[self.rows[0], p] = self.asks
        corner = np.bincount(program.pool, d[:-1] * program.pool_share**2, p) + diagonal[2 * n :]
        inverse = np.linalg.inv(blocks)
        through = (inverse @ border.reshape(count, side, p + 1)).reshape(-1, p + 1)
        small = np.linalg.inv(np.diag(np.append(corner, -1 / d[-1])) - border.T @ through)

        def solve(right: FloatArray) -> tuple[FloatArray, FloatArray]:
            spread = np.zeros(count * side)
            spread[self.rows] = right[: 2 * n].reshape(2, n)
            inner = (inverse @ spread.reshape(count, side, 1)).ravel()
            outer = small @ (np.append(right[2 * n :], 0.0) - border.T @ inner)
            inner -= through @ outer
            return inner[self.rows[0]], np.concatenate([inner[self.rows[1]], outer[:p]])

        return solve


class _Conditions:
    """Slacks of a point, and costs of its prices: what an optimum has of each pair of them is a product of 0.

    Columns come first, then the level, the rows of C and those of P.  Rows of jobs that demand nothing have a slack
    of 1.
    """

    def __init__(self, program: LevelProgram, asks: BoolArray) -> None:
        self.program, self.demand, self.columns = program, asks.astype(float), len(program.first)

    def slacks(self, x: FloatArray, level: float, one: float = 1.0) -> FloatArray:
        """Of a point, or with ``one`` 0 of a change."""
        cover, load = self.program.cover(x), self.program.load(x)
        return np.concatenate([x, [level], cover - self.demand * level + one * (1 - self.demand), one - load])

    def costs(self, y: FloatArray, z: FloatArray, one: float = 1.0) -> FloatArray:
        """Of prices, or with ``one`` 0 of a change."""
        return np.concatenate([self.program.prices(y) - self.program.worths(z), [self.demand @ z - one], z, y])

    def prices(self, costs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Prices y and z."""
        rows = costs[self.columns + 1 :]
        return rows[self.program.num_jobs :], rows[: self.program.num_jobs]

    def step(
        self,
        slacks: FloatArray,
        costs: FloatArray,
        solve: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
        wanted: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Return changes that change the products by what is wanted, to first order."""
        m = self.columns
        own = wanted / costs
        dz, dy = solve(own[m + 1 :] - self.slacks(own[:m], float(own[m]), 0.0)[m + 1 :])
        change = self.costs(dy, dz, 0.0)
        moved = (own - slacks / costs * change)[: m + 1]
        return self.slacks(moved[:m], float(moved[m]), 0.0), change


def _interior_point(
    program: LevelProgram, asks: BoolArray, group: IntArray, epsilon: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return columns x that break no limit, and prices y and z; the least level is within ``epsilon`` of the limit."""
    n, p, m = program.num_jobs, program.num_pools, len(program.first)
    conditions, demand = _Conditions(program, asks), asks.astype(float)
    y, z = np.concatenate([np.full(n, 0.5 / n), np.full(p, 0.5 / p)]), demand / demand.sum() + (1 - demand) / n
    x = 1 / program.prices(y)
    cover = program.cover(x)[program.first]
    x /= np.where(cover > 0, cover, 1.0)
    x *= 0.5 / program.load(x).max()
    s = conditions.slacks(x, 0.5 * float(program.cover(x)[asks].min()))
    c = conditions.costs(4 * program.limit(y, z) / y.sum() * y, 2 * z)
    best, value, proven, bound = x, -np.inf, (y, z), np.inf
    equations = _Blocks(program, asks, group)
    for _ in range(STEPS):
        load = 1 - float(s[m + 1 + n :].min())
        attained = float((s[m] + s[m + 1 : m + 1 + n][asks]).min()) / load
        if attained > value:
            best, value = s[:m] / load, attained
        y, z = conditions.prices(c)
        z = z * demand / float(z @ demand)
        limit = program.limit(y, z)
        if limit < bound:
            proven, bound = (y, z), limit
        if value >= (1 - epsilon) * bound:
            break
        try:
            solve = equations.solver((s / c)[: m + 1], (s / c)[m + 1 :])
        except np.linalg.LinAlgError:
            break
        products = s * c
        ds, dc = conditions.step(s, c, solve, -products)
        after = float((s + _part(s, ds) * ds) @ (c + _part(c, dc) * dc))
        alike = float(products.mean()) * (after / float(products.sum())) ** 3
        ds, dc = conditions.step(s, c, solve, alike - products - ds * dc)
        moved = (s + SHORT * _part(s, ds) * ds)[: m + 1]
        # From these anew, so that rounding adds up nowhere.
        s = conditions.slacks(moved[:m], float(moved[m]))
        c = conditions.costs(*conditions.prices(c + SHORT * _part(c, dc) * dc))
        if not ((s > 0).all() and (c > 0).all()):
            break
    return best, *proven


def _part(at: FloatArray, change: FloatArray) -> float:
    """Return the part of a change, at most 1, with which nothing falls below 0."""
    most = float((-change / at).max())
    return 1.0 if most <= 1 else 1 / most
