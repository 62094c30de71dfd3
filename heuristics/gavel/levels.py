"""Allocations that give each job its multiple of a common level, by an interior-point method.

Four of Gavel's policies ask for the greatest level at which some allocation gives each job m at least ``level *
demand[m]`` steps/s.  With columns x = X[row, type] that is

    max  level   s.t.   C x >= level  (a row for each job that demands),   P x <= 1  (each job's time, each pool),

and any prices y of the rows of P and z of those of C prove that no level exceeds

    max_c (z' C)_c / (y' P)_c  *  sum(y) / sum(z).

Newton's method on the conditions of optimality, with all products of a slack and its price alike and less in each step
(Mehrotra's predictor and corrector), needs few steps, each of them a system of equations with a row for each row of
the program.  Rows of jobs that are in no pair meet only in the pools: the system is a small block for each job and a
border as wide as there are pools.  Pairs are kept within groups of jobs, and the jobs that they join are a block.  A
program of much the same demands as the last one begins on the way to the last one's optimum, not near its end.

References
----------
Mehrotra, "On the implementation of a primal-dual interior point method" (1992).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from instances.gavel.sharing import Allocation, Sharing
from instances.schema import BoolArray, FloatArray, IntArray

__all__ = ["EPSILON", "GROUP", "RAISED", "ROUGHLY", "Attained", "LevelProgram", "Levels", "checked", "whole"]

EPSILON = 1e-3
"""Relative distance of a level from the limit that prices prove, close enough by default."""
ROUGHLY = 10
"""So many times that distance is close enough for prices that only lead on."""
GROUP = 16
"""Jobs in a group, within which pairs are kept: blocks have at most twice as many rows."""
STEPS = 40
"""Steps after which the best point so far has to do."""
SHORT = 0.95
"""Part of the way to the nearest limit that a step goes."""
KEPT, INSIDE = 0.03, 0.9
"""The distance of a level from its limit at which a point is kept for the next program to begin with, and the part of
all limits, and of its least level, that it then has: points nearer to limits, as all are in the end, lead on slowly."""
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

    @cached_property
    def paired(self) -> IntArray:
        """Columns of two jobs."""
        return np.flatnonzero(self.second < self.num_jobs)

    def _of_jobs(self, first: FloatArray, second: FloatArray) -> FloatArray:
        own = np.asarray(np.bincount(self.first, first, self.num_jobs), float)
        if self.paired.size:
            own += np.bincount(self.second[self.paired], second[self.paired], self.num_jobs)
        return own


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
        self._begun: _Begun | None = None
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
        x, y, z, self._begun = _interior_point(program, asks, epsilon, self._begun)
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
        _, y, z, self._begun = _interior_point(alone, asks, ROUGHLY * epsilon)
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
        at = size = 0
        for some in sorted(members, key=len, reverse=True):
            # A block that was too full for as many is so still.
            at, size = at if len(some) == size else 0, len(some)
            while at < len(blocks) and len(blocks[at]) + size > GROUP:
                at += 1
            if at == len(blocks):
                blocks.append([])
            blocks[at] += some
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


class _Sums:
    """Sums in cells of what each column has there, (columns, width), times a factor of the column."""

    def __init__(self, cells: IntArray, values: FloatArray) -> None:
        self.column, place = np.nonzero(values)
        self.cells, self.values = cells[self.column, place], values[self.column, place]

    def of(self, factors: FloatArray, count: int) -> FloatArray:
        return np.asarray(np.bincount(self.cells, factors[self.column] * self.values, count), float)


class _Blocks:
    """The equations of a step: a block for each set of jobs that pairs join, the pools and the level as their border.

    Blocks of one size come together.  Each has a row of C for each of its jobs, then their rows of P.
    """

    def __init__(self, program: LevelProgram, asks: BoolArray) -> None:
        n = program.num_jobs
        pairs = program.second < n
        joined = _joined(n, program.first[program.paired], program.second[program.paired])
        sizes = np.bincount(joined, minlength=n)[joined]
        order = np.lexsort((joined, sizes))
        joined, sizes = joined[order], sizes[order]
        begins = np.flatnonzero(np.diff(joined, prepend=-1))
        first = np.repeat(begins, sizes[begins])
        covers = first + np.arange(n)
        self.program, self.asks = program, asks.astype(float)
        self.rows = np.empty((2, n), np.int64)
        self.rows[:, order] = covers, covers + sizes
        # Cell (row, other) of a block is at ``cells[row] + other``.
        places, cells = self.rows[:, order], np.empty(2 * n, np.int64)
        before = np.cumsum(4 * sizes) - 4 * sizes
        cells[places] = before[first] + (places - 2 * first) * 2 * sizes - 2 * first
        self.diagonal = cells + np.arange(2 * n)
        self.count = int(4 * sizes.sum())
        self.kinds: list[tuple[slice, slice, int]] = []
        for size in np.unique(sizes).tolist():
            jobs = np.flatnonzero(sizes == size)
            rows, number = 2 * int(jobs[0]), 2 * len(jobs)
            start = int(before[jobs[0]])
            self.kinds.append((slice(rows, rows + number), slice(start, start + 2 * size * number), 2 * size))
        second = np.where(pairs, program.second, program.first)
        of_column = np.concatenate([self.rows[:, program.first], self.rows[:, second]]).T
        there = np.ones(len(program.first)), pairs.astype(float)
        values = np.stack([program.first_level, -there[0], program.second_level, -there[1]], axis=1)
        # Most columns are of one job, and most of their products 0.
        both = cells[of_column][:, :, None] + of_column[:, None, :]
        self.products = _Sums(both.reshape(-1, 16), (values[:, :, None] * values[:, None, :]).reshape(-1, 16))
        self.border = _Sums(
            of_column * program.num_pools + program.pool[:, None], -values * program.pool_share[:, None]
        )

    def solver(self, d: FloatArray, diagonal: FloatArray) -> Callable[[FloatArray], tuple[FloatArray, FloatArray]]:
        """Return what solves ``(A D A' + diagonal) (dz, dy) = right``, with columns x and the level in A."""
        program, n, p = self.program, self.program.num_jobs, self.program.num_pools
        cells = self.products.of(d[:-1], self.count)
        cells[self.diagonal[self.rows]] += diagonal[: 2 * n].reshape(2, n)
        border = np.zeros((2 * n, p + 1))
        border[:, :p] = self.border.of(d[:-1], 2 * n * p).reshape(-1, p)
        border[self.rows[0], p] = self.asks
        corner = np.bincount(program.pool, d[:-1] * program.pool_share**2, p) + diagonal[2 * n :]
        inverses = [(rows, _inverse(cells[own].reshape(-1, side, side))) for rows, own, side in self.kinds]

        def within(right: FloatArray) -> FloatArray:
            found = np.empty_like(right)
            for rows, inverse in inverses:
                own = right[rows]
                found[rows] = (inverse @ own.reshape(*inverse.shape[:2], -1)).reshape(own.shape)
            return found

        through = within(border)
        small = np.linalg.inv(np.diag(np.append(corner, -1 / d[-1])) - border.T @ through)

        def solve(right: FloatArray) -> tuple[FloatArray, FloatArray]:
            spread = np.empty((2 * n, 1))
            spread[self.rows, 0] = right[: 2 * n].reshape(2, n)
            inner = within(spread)[:, 0]
            outer = small @ (np.append(right[2 * n :], 0.0) - border.T @ inner)
            inner -= through @ outer
            return inner[self.rows[0]], np.concatenate([inner[self.rows[1]], outer[:p]])

        return solve


def _joined(n: int, first: IntArray, second: IntArray) -> IntArray:
    """(n,) int: the least job of each job's set, where pairs join sets."""
    joined = np.arange(n)
    while (joined[first] != joined[second]).any():
        least = np.minimum(joined[first], joined[second])
        for jobs in (first, second):
            np.minimum.at(joined, joined[jobs], least)
            np.minimum.at(joined, jobs, least)
        joined = joined[joined]
    return joined


def _inverse(blocks: FloatArray) -> FloatArray:
    """Inverses of symmetric positive definite blocks; by a formula those of jobs alone, of which there are many."""
    if blocks.shape[-1] > 2:
        return np.asarray(np.linalg.inv(blocks), float)
    first, between = 1 / blocks[:, 0, 0], blocks[:, 0, 1]
    through = first * between
    last = 1 / (blocks[:, 1, 1] - between * through)
    inverse = np.empty_like(blocks)
    inverse[:, 0, 0] = first + through * last * through
    inverse[:, 0, 1] = inverse[:, 1, 0] = -through * last
    inverse[:, 1, 1] = last
    return inverse


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


@dataclass(frozen=True)
class _Begun:
    """A point on the way to an optimum, from which programs of much the same demands begin.

    Attributes
    ----------
    position : (columns,) int
    x : (columns,) float
    y, z : float
        Prices.
    """

    position: IntArray
    x: FloatArray
    y: FloatArray
    z: FloatArray

    def of(self, program: LevelProgram) -> FloatArray:
        """(columns,) float: the columns of a program, 0 where they are new."""
        every = np.zeros(program.shape)
        every.ravel()[self.position] = self.x
        known: FloatArray = every.ravel()[program.position]
        return known


def _interior_point(
    program: LevelProgram, asks: BoolArray, epsilon: float, begun: _Begun | None = None
) -> tuple[FloatArray, FloatArray, FloatArray, _Begun | None]:
    """Return columns x that break no limit, and prices y and z; the least level is within ``epsilon`` of the limit.

    Last comes a point to begin the next program with, if there was one.
    """
    n, p, m = program.num_jobs, program.num_pools, len(program.first)
    conditions, demand = _Conditions(program, asks), asks.astype(float)
    y, z = np.concatenate([np.full(n, 0.5 / n), np.full(p, 0.5 / p)]), demand / demand.sum() + (1 - demand) / n
    x = 1 / program.prices(y)
    cover = program.cover(x)[program.first]
    x /= np.where(cover > 0, cover, 1.0)
    x *= 0.5 / program.load(x).max()
    part, y_over, z_over = 0.5, 4.0, 2.0
    if begun is not None:
        known = begun.of(program)
        x = np.where(known > 0, known, x)
        x *= min(1.0, INSIDE / program.load(x).max())
        y, z = begun.y, np.where(asks, begun.z / float(demand @ begun.z), 1 / n)
        part, y_over, z_over = INSIDE, 1.2, 1.1
    s = conditions.slacks(x, part * float(program.cover(x)[asks].min()))
    c = conditions.costs(y_over * program.limit(y, z) / y.sum() * y, z_over * z)
    best, value, proven, bound, begun = x, -np.inf, (y, z), np.inf, None
    equations = _Blocks(program, asks)
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
        if begun is None and value >= (1 - KEPT) * bound:
            begun = _Begun(program.position, s[:m], *conditions.prices(c))
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
    return best, *proven, begun


def _part(at: FloatArray, change: FloatArray) -> float:
    """Return the part of a change, at most 1, with which nothing falls below 0."""
    most = float((-change / at).max())
    return 1.0 if most <= 1 else 1 / most
