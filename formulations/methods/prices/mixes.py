"""Each job alone at prices: its cheapest mix of types, how near it is to another, and what all mixes load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.methods.prices.jobs import Jobs
from instances.schema import FloatArray

__all__ = ["Indices", "Mixes", "Prices", "best_mixes", "costs_at", "loads_of", "margins_at", "pick", "speed_prices"]

Indices = NDArray[np.intp]
"""Numbers of jobs, pools or mixes."""


@dataclass(frozen=True, eq=False)
class Prices:
    """Prices of the pools' workers, at least 0, and of the budget; with the value of g that they came with."""

    pools: FloatArray
    budget: float
    g: float


@dataclass(eq=False)
class Mixes:
    """Two types for each job: ``share + share_g * g`` of its time on the second, the rest on the first."""

    first: NDArray[np.int8]
    second: NDArray[np.int8]
    share: FloatArray
    share_g: FloatArray


def pick(values: FloatArray, kind: NDArray[np.int8]) -> FloatArray:
    """Value of each job at a type of its own."""
    picked: FloatArray = np.take_along_axis(values, kind[None].astype(np.intp), axis=0)[0]
    return picked


def costs_at(jobs: Jobs, prices: Prices, noise: Any = 0.0) -> FloatArray:
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


def best_mixes(jobs: Jobs, costs: FloatArray, g: float) -> Mixes:
    """Find the cheapest mix of each job on its own: along the lower hull of its types to the speed that is asked."""
    span, speeds = jobs.within(g), jobs.speeds
    needed = np.minimum((jobs.asked + jobs.asked_g * g) / span, speeds.max(axis=0))
    first = costs.argmin(axis=0).astype(np.int8)
    second = first.copy()
    left = np.flatnonzero(pick(speeds, first) < needed)
    for _ in range(jobs.num_types):
        if not left.size:
            break
        at, speed, cost = first[left], speeds[:, left], costs[:, left]
        ahead = speed - pick(speed, at)
        slope = np.divide(cost - pick(cost, at), ahead, out=np.full_like(cost, np.inf), where=ahead > 0)
        reached = slope.argmin(axis=0).astype(np.int8)
        second[left] = reached
        beyond = pick(speed, reached) < needed[left]
        left = left[beyond]
        first[left] = reached[beyond]
    return _meeting(jobs, first, second)


def _meeting(jobs: Jobs, first: NDArray[np.int8], second: NDArray[np.int8]) -> Mixes:
    """Mix two types so that the jobs' own rows are met."""
    edge = first != second
    slow, fast = pick(jobs.speeds, first), pick(jobs.speeds, second)
    zero = np.zeros(jobs.num_jobs)
    share = np.divide(jobs.asked - slow * jobs.time, fast - slow, out=zero.copy(), where=edge)
    share_g = np.divide(jobs.asked_g - slow * jobs.time_g, fast - slow, out=zero, where=edge)
    return Mixes(first, second, share, share_g)


def speed_prices(jobs: Jobs, costs: FloatArray, mixes: Mixes) -> FloatArray:
    """(n,) float: price of each job's own row at which both types of its mix are as good."""
    edge = mixes.first != mixes.second
    rise = _ahead(jobs, mixes)
    dearer = np.where(edge, pick(costs, mixes.second), 0.0) - np.where(edge, pick(costs, mixes.first), 0.0)
    slopes: FloatArray = np.divide(dearer, rise, out=np.zeros(jobs.num_jobs), where=edge)
    return np.maximum(0.0, slopes)


def margins_at(jobs: Jobs, prices: Prices, noise: FloatArray, costs: FloatArray, mixes: Mixes) -> FloatArray:
    """(n,) float: by what part prices and g may move, about, before a job has another mix."""
    count = np.arange(jobs.num_jobs)
    y = speed_prices(jobs, costs, mixes)
    behind = costs - y * jobs.speeds
    behind -= pick(behind, mixes.first)
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
        edge, np.minimum(share, span - share) * _ahead(jobs, mixes), pick(jobs.speeds, mixes.first) * span - needed
    )
    moves = np.divide(np.abs(room), np.abs(needed), out=np.full(jobs.num_jobs, np.inf), where=asks & (needed != 0))
    nearer: FloatArray = np.minimum(margins, moves)
    return nearer


def _ahead(jobs: Jobs, mixes: Mixes) -> FloatArray:
    """(n,) float: by how much a job is faster on its second type than on its first."""
    return pick(jobs.speeds, mixes.second) - pick(jobs.speeds, mixes.first)


def loads_of(jobs: Jobs, mixes: Mixes, chosen: Any = slice(None), weights: Any = 1.0) -> FloatArray:
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
                totals[p, column] += float(pick(jobs.prices[:, chosen], kind) @ times)
            totals[p + 1, column] += float(pick(jobs.gains[:, chosen], kind) @ times)
    return totals
