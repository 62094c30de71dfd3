"""Whether given levels can be attained without pairs: plans at prices of the pools, and mixes of plans.

At prices u of the pools' workers each job has a cheapest way to its level, two types at most, on its own.  Together
these are a plan that attains the levels and takes ``load_i`` of pool i's workers.  By convexity a mix of such plans,
``sum_k z_k * plan_k``, attains the levels too, and by duality the least part by which pools must be overfull is

    min over mixes  max_i load_i / workers_i - 1   =   max over prices with u @ workers = 1  of  sum_m C_m(l_m) - 1,

with C_m the cheapest cost.  So prices and mixes close in on each other (Dantzig and Wolfe's column generation): a
linear program of as many rows as there are pools mixes the plans known, its prices make the next plan.  Nothing in it
grows with the jobs but the plans, each made by NumPy.

References
----------
Dantzig and Wolfe, "Decomposition principle for linear programs" (1960).
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from formulations.engine import clock
from formulations.engine.linear import LinearProgram, csr
from formulations.engine.options import Options
from formulations.engine.polishing import PRECISE
from instances.gavel.sharing import Allocation, Sharing
from instances.schema import FloatArray

__all__ = ["Attained", "Mixing"]

ROUNDS = 300
"""Plans made before the way is given up."""
DECIDED = 0.5
"""Part of the least overload known that prices have to prove, to be good enough."""
AIM = 1e-3
"""Part of the tolerance that is asked for."""
COST, LEAST = 2.0**13, 1e-8
"""Cost of the overload, beside which a solver sees a ten-thousandth of its tolerance; and a load that it sees."""
KEPT = 12
"""Prices that are tried first at the next levels."""


@dataclass(frozen=True, eq=False)
class Attained:
    """Answer to whether some levels are attained, and what it rests on.

    Attributes
    ----------
    overload : float
        Part of their workers by which pools are overfull in the best mix of plans; at most 0 where none is.
    proven : float
        Part by which the prices prove that some pool is overfull in every plan.
    pool_prices : (p,) float
        These prices; what all workers cost at them is 1.
    allocation : Allocation
        The mix, which is within the limits where nothing is overfull.
    missed : bool
        Whether that is more than rounding.
    plans : int
        Plans made.
    seconds : float
    """

    overload: float
    proven: float
    pool_prices: FloatArray
    allocation: Allocation
    missed: bool
    plans: int
    seconds: float


class Mixing:
    """Levels of jobs without pairs, one vector after the other.

    Parameters
    ----------
    instance : Sharing
        Without pairs.
    options : Options
    """

    def __init__(self, instance: Sharing, options: Options) -> None:
        self._instance, self._options = instance, options
        worth = np.where(instance.fits, instance.throughputs, 0.0).T
        self._levels_of_types = np.vstack([np.zeros(instance.num_jobs), worth * instance.level_per_throughput])
        # Idleness is type 0, and its pool one behind the others.
        self._pools = np.concatenate([[len(instance.num_workers)], instance.pools])
        self._used = np.flatnonzero(instance.num_workers > 0)
        kinds = range(len(self._levels_of_types))
        self._ends = [(slow, fast) for slow in kinds for fast in kinds if slow != fast and fast]
        self._tried: list[FloatArray] = [np.ones(len(self._used)) / max(1, len(self._used))]

    def at(self, levels: FloatArray, *, tolerance: float) -> Attained | None:
        """Decide whether levels are attained; None where neither is found out.

        Parameters
        ----------
        levels : (n,) float
        tolerance : float
            Overload that may be left where mixes and prices come no closer; less is asked for.
        """
        began = time.perf_counter()
        aim = AIM * tolerance
        mixes = _Mixes(self, levels)
        overload, weights, proven, best = np.inf, np.zeros(0), -np.inf, self._tried[0]
        waiting, seen = list(self._tried), set()
        while len(mixes.plans) < ROUNDS and clock.left() > 0:
            for prices in waiting:
                value = mixes.add(prices)
                seen.add(prices.tobytes())
                if value > proven:
                    proven, best = value, prices
            overload, weights, prices = self._mixed(np.array(mixes.loads))
            if overload <= aim or proven > max(aim, DECIDED * overload) or prices.tobytes() in seen:
                break
            waiting = [prices]
        if overload > tolerance and proven <= aim:
            return None
        kept = [price for price, weight in zip(mixes.prices, weights, strict=True) if weight > 0]
        self._tried = [best, *(price for price in kept if price is not best)][:KEPT]
        pool_prices = np.zeros(len(self._instance.num_workers))
        pool_prices[self._used] = best / self._instance.num_workers[self._used]
        seconds = time.perf_counter() - began
        return Attained(
            overload, proven, pool_prices, mixes.allocation(weights), proven > aim, len(mixes.plans), seconds
        )

    def _mixed(self, loads: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Find the mix of plans with the least overload, and the prices of the pools there, which sum to 1.

        Loads are relative to workers.
        """
        plans, pools = loads.shape
        loads = np.where(loads > LEAST, loads, 0.0)
        rows = np.concatenate([np.repeat(np.arange(pools), plans), np.arange(pools), np.full(plans, pools)])
        columns = np.concatenate([np.tile(np.arange(plans), pools), np.full(pools, plans), np.arange(plans)])
        values = np.concatenate([loads.T.ravel(), np.full(pools, -1.0), np.ones(plans)])
        program = LinearProgram(
            "min", 0.0, np.append(np.zeros(plans), COST),
            np.zeros(plans + 1), np.append(np.ones(plans), np.inf), np.zeros(plans + 1, bool),
            *csr(rows, columns, values, pools + 1),
            np.append(np.full(pools, -np.inf), 1.0), np.append(np.zeros(pools), 1.0),
        )  # fmt: skip
        result = self._options.session(PRECISE).run(program, presolve=False)
        if result.x is None or result.certificate is None:
            return np.inf, np.zeros(plans), self._tried[0]
        weights = np.maximum(0.0, result.x[:plans])
        weights /= weights.sum()
        prices = np.maximum(0.0, -result.certificate.row_duals[:pools])
        overload = float((weights @ loads).max(initial=0.0)) - 1.0
        return overload, weights, prices / prices.sum() if prices.sum() > 0 else self._tried[0]


class _Mixes:
    """Plans that attain some levels, each the cheapest at its prices."""

    def __init__(self, mixing: Mixing, levels: FloatArray) -> None:
        instance = mixing._instance
        self._mixing = mixing
        of_types = mixing._levels_of_types
        levels = np.clip(levels, 0.0, of_types.max(axis=0))
        widths = instance.scale_factors.astype(float)
        shape = (len(mixing._ends), instance.num_jobs)
        # Workers that a job takes of either end of a mix, and the mixes that do not lead to its level.
        self._slow, self._fast, self._closed = np.empty(shape), np.empty(shape), np.empty(shape, bool)
        for position, (slow, fast) in enumerate(mixing._ends):
            ahead = of_types[fast] - of_types[slow]
            possible = (of_types[slow] <= levels) & (levels <= of_types[fast]) & (ahead > 0)
            share = np.divide(levels - of_types[slow], ahead, out=np.zeros(len(levels)), where=possible)
            self._fast[position] = share * widths
            self._slow[position] = widths - self._fast[position]
            self._closed[position] = ~possible
        # A job at 0 idles, also where no mix leads to anything.
        self._closed[0, levels <= 0] = False
        self.prices: list[FloatArray] = []
        self.loads: list[FloatArray] = []
        self.plans: list[NDArray[np.int16]] = []

    def add(self, prices: FloatArray) -> float:
        """Make the cheapest plan at prices of the pools, which sum to 1; what it costs beyond 1."""
        mixing, jobs = self._mixing, np.arange(self._slow.shape[1])
        workers = mixing._instance.num_workers
        each = np.zeros(len(workers) + 1)
        each[mixing._used] = prices / workers[mixing._used]
        each = each[mixing._pools]
        least, chosen = np.full(len(jobs), np.inf), np.zeros(len(jobs), np.int16)
        for position, (slow, fast) in enumerate(mixing._ends):
            cost = self._fast[position] * each[fast] + self._slow[position] * each[slow]
            cost[self._closed[position]] = np.inf
            cheaper = cost < least
            least[cheaper], chosen[cheaper] = cost[cheaper], position
        ends = mixing._pools[np.array(mixing._ends)][chosen]
        load = np.bincount(ends[:, 0], weights=self._slow[chosen, jobs], minlength=len(workers) + 1)
        load += np.bincount(ends[:, 1], weights=self._fast[chosen, jobs], minlength=len(workers) + 1)
        relative = load[mixing._used] / workers[mixing._used]
        self.prices.append(prices)
        self.loads.append(relative)
        self.plans.append(chosen)
        return float(prices @ (relative - 1.0))

    def allocation(self, weights: FloatArray) -> Allocation:
        """Mix the plans by weights."""
        mixing, jobs = self._mixing, np.arange(self._slow.shape[1])
        fractions = np.zeros((len(jobs), len(mixing._levels_of_types)))
        widths = mixing._instance.scale_factors
        ends = np.array(mixing._ends)
        for weight, chosen in zip(weights.tolist(), self.plans, strict=True):
            if weight > 0:
                fractions[jobs, ends[chosen, 0]] += weight * self._slow[chosen, jobs] / widths
                fractions[jobs, ends[chosen, 1]] += weight * self._fast[chosen, jobs] / widths
        return Allocation(time_fractions=fractions[:, 1:])
