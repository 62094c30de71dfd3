"""Soroush's geometric binner: max-min fairness up to a factor, in one linear program.

The height of a job is its normalised throughput over its weight.  Heights are cut into bins, each ``alpha`` times
as high as the ones below together; what a job has in a bin is worth ``epsilon`` times as much as in the bin
below.  So the program fills the low bins of all jobs before the high ones of any, as far as ``epsilon`` is small.

References
----------
Namyar et al., "Solving Max-Min Fair Resource Allocations Quickly on Large Graphs" (NSDI'24), section 3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from instances.gavel.hierarchical_fairness import HierarchicalFairness
from instances.gavel.sharing import Allocation
from instances.schema import FloatArray, IntArray

__all__ = ["Entries", "Maximize", "binned", "bins"]

Entries: TypeAlias = tuple[IntArray, IntArray, FloatArray]
"""Rows, columns and values of a matrix's entries."""
HIGHEST = 1e15
"""Ends of bins over the first; what is higher is all in the last bin, because floats cannot hold both."""
Maximize: TypeAlias = Callable[[FloatArray, FloatArray, Entries, FloatArray], FloatArray]
"""``solve(cost, upper, entries, limits)``: x from 0 to ``upper`` with ``A @ x <= limits``, of greatest ``cost @ x``."""


def bins(instance: HierarchicalFairness, alpha: float, least_worth: float) -> tuple[FloatArray, float]:
    """(b,) upper ends of the bins, heights, and ``epsilon``.

    The first bin ends at the least height of X_isolated, below which nobody's first level is, the last one at or
    above the greatest height of all, or ``HIGHEST`` times as high as the first.

    Raises
    ------
    ValueError
        When ``alpha`` is not above 1, or ``least_worth`` not between 0 and 1.
    """
    if not alpha > 1:
        raise ValueError(f"alpha: got {alpha!r}, must be above 1")
    if not 0 < least_worth < 1:
        raise ValueError(f"least_worth: got {least_worth!r}, must be between 0 and 1")
    rates = instance.rates(instance.ceilings <= 0)
    rising = rates > 0
    isolated = instance.normalized_throughputs(instance.isolated_share())
    with np.errstate(over="ignore"):
        heights = isolated[rising & (isolated > 0)] / rates[rising & (isolated > 0)]
        greatest = float((instance.ceilings[rising] / rates[rising]).max(initial=0.0))
    if not heights.size:
        return np.array([max(greatest, 1.0)]), 1.0
    least = float(heights.min())
    last = max(1, int(np.ceil(np.log(min(greatest / least, HIGHEST)) / np.log(alpha))))
    return least * alpha ** np.arange(last + 1.0), least_worth ** (1 / last)


def binned(instance: HierarchicalFairness, solve: Maximize, alpha: float, least_worth: float) -> Allocation:
    """Return the allocation of the program's solution."""
    if not instance.num_jobs:
        return instance.isolated_share()
    ends, epsilon = bins(instance, alpha, least_worth)
    n, k, q = instance.num_jobs, instance.num_types, instance.num_pairs
    rates = instance.rates(instance.ceilings <= 0)
    rising, waiting = np.flatnonzero(rates > 0), np.flatnonzero((rates <= 0) & (instance.ceilings > 0))
    b = len(ends)
    unit = ends[0]
    # Columns X[r, j] that fit, then what each rising job has in each bin, then all that each waiting job has.
    row, kind = np.nonzero(instance.fits)
    place = np.full(n, -1)
    place[rising], place[waiting] = np.arange(len(rising)), len(rising) + np.arange(len(waiting))
    shares, heights = len(row), len(rising) * b
    worth = epsilon ** np.arange(b)
    cost = np.concatenate([np.zeros(shares), np.tile(worth, len(rising)), np.full(len(waiting), worth[-1])])
    widths = np.diff(ends, prepend=0.0) / unit
    widths[-1] = np.inf
    upper = np.concatenate([np.ones(shares), np.tile(widths, len(rising)), np.full(len(waiting), np.inf)])
    # Which job gains how much height, in units of the first bin, from which column.
    partners = np.concatenate([np.stack([np.arange(n), np.full(n, -1)], axis=1), instance.pairs])
    gains = np.concatenate([np.stack([instance.throughputs, np.zeros((n, k))], axis=2), instance.pair_throughputs])
    weights = np.where(rates > 0, rates, instance.entity_weights[instance.entities])
    with np.errstate(over="ignore"):  # What the solver cannot take it refuses.
        per_step = instance.level_per_throughput / (weights * unit)
    rows, columns, values = [], [], []
    for side in (0, 1):
        job = partners[row, side]
        there = np.flatnonzero(job >= 0)
        rows += [job[there]]
        columns += [there]
        values += [np.ones(len(there))]
        gaining = there[place[job[there]] >= 0]
        rows += [n + len(instance.num_workers) + place[job[gaining]]]
        columns += [gaining]
        with np.errstate(invalid="ignore"):
            values += [-gains[row[gaining], kind[gaining], side] * per_step[job[gaining]]]
    rows += [n + instance.pools[kind], n + len(instance.num_workers) + np.repeat(np.arange(len(rising)), b)]
    columns += [np.arange(shares), shares + np.arange(heights)]
    values += [instance.row_scale_factors[row].astype(float), np.ones(heights)]
    rows += [n + len(instance.num_workers) + len(rising) + np.arange(len(waiting))]
    columns += [shares + heights + np.arange(len(waiting))]
    values += [np.ones(len(waiting))]
    limits = np.concatenate([np.ones(n), instance.num_workers, np.zeros(len(rising) + len(waiting))]).astype(float)
    entries = np.concatenate(rows), np.concatenate(columns), np.concatenate(values)
    found = solve(cost, upper, entries, limits)
    fractions = np.zeros((n + q, k))
    fractions[row, kind] = np.maximum(0.0, found[:shares])
    return _within_limits(instance, Allocation(time_fractions=fractions))


def _within_limits(instance: HierarchicalFairness, allocation: Allocation) -> Allocation:
    """Return the allocation, scaled down by what a solver's rounding takes too much."""
    time, workers = instance.loads(allocation)
    some = instance.num_workers > 0
    over = max(float(time.max(initial=1.0)), float((workers[some] / instance.num_workers[some]).max(initial=1.0)))
    return Allocation(time_fractions=allocation.time_fractions / over)
