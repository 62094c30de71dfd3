"""What a GPU is worth at each time: prices that bound the average completion time of jobs that run once started.

Let a GPU cost pi_k a second in interval k of a grid, and nothing after it.  In any schedule the jobs pay for no more
than all C GPUs at all times, so that with Pi(t) the price of a GPU from 0 to t

    sum_j (S_j + T_j)  >=  sum_j min_{s >= 0} [s + T_j + g_j (Pi(s + T_j) - Pi(s))]  -  C Pi(infinity).

Pi is piecewise linear, and so is each bracket, which is least where s or s + T_j is a point of the grid.  The bound
holds for all prices; the best are those of a linear program with the brackets' starts as columns and a row for each
job and each interval, a time-indexed relaxation.

The same prices bound what is left of a schedule: lane l is free from r_l on, job j begins at r_(g_j) at the soonest,
and the jobs that are left pay for no more than the lanes from then on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from formulations.engine import clock
from formulations.engine.linear import LinearProgram, csr
from formulations.engine.options import Options
from instances.schema import FloatArray, IntArray

__all__ = ["Jobs", "Prices", "best_prices"]

ENTRIES = 1_000_000
"""Entries of the linear program up to which it is made."""
NEGLIGIBLE = 1e-7
"""Part of an interval that the linear program need not know."""
STEPS = 4096
"""Times for which the least costs of jobs are tabulated; between two of them the earlier one's are a bound."""


@dataclass(frozen=True)
class Jobs:
    """Jobs with work left, in lanes: all their demands and the GPUs divided by what divides every demand.

    Attributes
    ----------
    lanes : int
        Lanes, each of as many GPUs.
    widths : (n,) int
        Lanes of each job.
    times : (n,) float
        Running times, s.
    """

    lanes: int
    widths: IntArray
    times: FloatArray

    @cached_property
    def horizon(self) -> float:
        """Time after which few jobs run in a good schedule, s."""
        return float((self.widths * self.times).sum() / self.lanes + self.times.max())

    @cached_property
    def kinds(self) -> tuple[FloatArray, IntArray, IntArray]:
        """(k, 2) width and time of each kind of job, (n,) the kind of each job, (k,) jobs of each kind."""
        both = np.column_stack([self.widths, self.times])
        kinds, kind, count = np.unique(both, axis=0, return_inverse=True, return_counts=True)
        return kinds, kind.ravel(), count


@dataclass(frozen=True)
class Prices:
    """Prices of a lane over time.

    Attributes
    ----------
    grid : (k + 1,) float
        Ends of the intervals, the first 0, s.
    prices : (k,) float
        Price of a lane in each interval, at least 0, in s of the sum of all completion times for each second.
    """

    grid: FloatArray
    prices: FloatArray

    @cached_property
    def _total(self) -> FloatArray:
        return np.concatenate([[0.0], np.cumsum(self.prices * np.diff(self.grid))])

    def until(self, times: FloatArray) -> FloatArray:
        """Return the price of a lane from 0 to each of some times."""
        paid: FloatArray = np.interp(times, self.grid, self._total)
        return paid

    def least(self, width: int, time: float, starts: FloatArray) -> FloatArray:
        """Return what a job costs at the least that begins at some time or later: its completion, and its lanes."""
        points = np.unique(np.concatenate([self.grid, np.maximum(self.grid - time, 0.0)]))
        later = np.append(np.minimum.accumulate(self._cost(width, time, points)[::-1])[::-1], np.inf)
        least: FloatArray = np.minimum(self._cost(width, time, starts), later[np.searchsorted(points, starts)])
        return least

    def _cost(self, width: int, time: float, starts: FloatArray) -> FloatArray:
        return starts + time + width * (self.until(starts + time) - self.until(starts))

    def bound(self, jobs: Jobs) -> float:
        """Return the bound on the sum of the completion times."""
        kinds, _, count = jobs.kinds
        least = [self.least(int(width), time, np.zeros(1))[0] for width, time in kinds.tolist()]
        return float(count @ np.array(least) - jobs.lanes * self._total[-1])

    def table(self, jobs: Jobs) -> tuple[float, FloatArray]:
        """Return a step of time, and (n, steps) the least cost of each job that begins so many steps on or later."""
        times = np.linspace(0.0, jobs.horizon, STEPS + 1)
        rows = [self.least(int(w), t, times) for w, t in zip(jobs.widths, jobs.times.tolist(), strict=True)]
        return float(times[1]), np.array(rows)


def best_prices(jobs: Jobs, intervals: int, options: Options) -> tuple[Prices, FloatArray] | None:
    """Return the best prices on a grid, and when each job begins on the average of the relaxation.

    Prices fall over time, and fastest in the beginning, when the small jobs run: the ends of the intervals are squares.

    Parameters
    ----------
    jobs : Jobs
    intervals : int
    options : Options
        Of the linear program.

    Returns
    -------
    (Prices, (n,) float) or None
        None where the program is too large, or not solved.
    """
    grid = jobs.horizon * np.linspace(0.0, 1.0, intervals + 1) ** 2
    kinds, kind, count = jobs.kinds
    if 4 * (intervals + 1) * len(kinds) > ENTRIES:
        return None
    columns: list[tuple[int, FloatArray]] = []
    entries = 0
    for each, (_, time) in enumerate(kinds.tolist()):
        points = np.unique(np.concatenate([grid, grid - time]))
        later = (points > NEGLIGIBLE * grid[1]) & (points < jobs.horizon)
        columns.append((each, np.append(0.0, points[later])))
        first, last = np.searchsorted(grid, columns[-1][1]), np.searchsorted(grid, columns[-1][1] + time)
        entries += int((last - first + 1).sum())
        if entries > ENTRIES:
            return None
    program, starts = _program(jobs, grid, columns)
    result = options.session().run(program)
    if result.certificate is None or result.x is None:
        return None
    duals = np.asarray(result.certificate.row_duals)[len(kinds) :]
    prices = np.maximum(-duals, 0.0) * _unit(grid) / (jobs.lanes * np.diff(grid))
    owner = np.concatenate([np.full(len(points), each) for each, points in columns])
    mean = np.bincount(owner, weights=result.x * starts, minlength=len(kinds)) / count
    return Prices(grid, prices), mean[kind]


def _unit(grid: FloatArray) -> float:
    """Return the unit of starts in the linear program, s."""
    return float(grid[-1]) / (len(grid) - 1)


def _program(
    jobs: Jobs, grid: FloatArray, columns: Sequence[tuple[int, FloatArray]]
) -> tuple[LinearProgram, FloatArray]:
    """Return the relaxation, and the start of each column: all lanes of an interval are 1.

    What is little beside an interval of all lanes is left out, since a solver would; prices are prices all the same.
    """
    kinds, _, count = jobs.kinds
    rows, places, values, costs, begins = [], [], [], [], []
    first = 0
    for each, points in columns:
        clock.check()
        width, time = kinds[each].tolist()
        used = np.minimum(grid[1:], points[:, None] + time) - np.maximum(grid[:-1], points[:, None])
        used *= width / (np.diff(grid) * jobs.lanes)
        column, interval = np.nonzero(used > NEGLIGIBLE)
        mine = first + np.arange(len(points))
        rows += [np.full(len(points), each), len(kinds) + interval]
        places += [mine, first + column]
        values += [np.ones(len(points)), used[column, interval]]
        costs.append(points / _unit(grid))
        begins.append(points)
        first += len(points)
    num_rows = len(kinds) + len(grid) - 1
    limit = np.concatenate([count, np.ones(len(grid) - 1)]).astype(float)
    lower = np.concatenate([count, np.full(len(grid) - 1, -np.inf)])
    return LinearProgram(
        "min", 0.0, np.concatenate(costs),
        np.zeros(first), np.full(first, np.inf), np.zeros(first, bool),
        *csr(np.concatenate(rows), np.concatenate(places), np.concatenate(values), num_rows),
        lower, limit,
    ), np.concatenate(begins)  # fmt: skip
