"""Linear programs in units that a solver's tolerances suit.

A solver's tolerances are absolute: HiGHS lets a row be missed by 1e-7, and 1e-6 in a mixed-integer search, takes
a reduced cost of 1e-7 for none, and drops coefficients up to 1e-9.  So what it proves depends on the units of the
data: of costs of 1e-8 it sees nothing at all.  Here a program is measured in other units, each a power of two, so
that nothing is rounded and everything can be undone to the last digit:

    x_j = 2**columns_j * x'_j,     row i times 2**rows_i,     the objective times 2**objective.

Only what is out of range is changed, and nothing about the data of an ordinary program:

- the objective, where its largest coefficient is below 1 or above 2**20 (it is 2**10 then), or its least
  below 2**-23;
- a row, where its coefficients and limits are all below 2**-3, or its coefficients are all below 2**-20 or all
  above 2**10;
- a continuous column, where its coefficients, its share of the largest cost, and the reciprocals of its limits are
  all below 2**-10 or all above 2**10;
- all limits of a program without integers, where they are all below 2**-10 or all above 2**20.

An integer column keeps its unit.  Coefficients that are far apart in one row stay so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from instances.schema import FloatArray

if TYPE_CHECKING:
    from formulations.engine.linear import Columns, LinearProgram

__all__ = ["Scaling", "infeasibility", "largest_limit", "scaled", "unit"]

Exponents = NDArray[np.int32]

COSTS = (0, 20)
"""Exponents between which the largest cost is left alone; a scaled one is in the middle."""
LEAST_COST = -23
ROW_LOW, ROW_VANISHING, ROW_HIGH = -3, -20, 10
COLUMN_LOW, COLUMN_HIGH = -10, 10
LIMIT_LOW, LIMIT_HIGH = -10, 20
UNITS = (-10, 20)
LARGEST_EXPONENT = 200
"""Factors stay within 2**±200, so that no number of ordinary size overflows or vanishes."""
ROUNDS = 2


@dataclass(frozen=True, eq=False)
class Scaling:
    """Units of a program's rows, columns and objective, as exponents of two.

    Attributes
    ----------
    rows, columns : (rows,) and (columns,) int
    objective : int
    """

    rows: Exponents
    columns: Exponents
    objective: int

    @cached_property
    def trivial(self) -> bool:
        """Tell whether all units are 1."""
        return not (self.objective or self.rows.any() or self.columns.any())

    def apply(self, program: LinearProgram) -> LinearProgram:
        """Return the program in these units."""
        if self.trivial:
            return program
        of_entry = np.repeat(self.rows, np.diff(program.indptr)) + self.columns[program.index]
        return replace(
            program,
            offset=self.value(program.offset),
            cost=np.ldexp(program.cost, self.columns + self.objective),
            col_lower=np.ldexp(program.col_lower, -self.columns),
            col_upper=np.ldexp(program.col_upper, -self.columns),
            value=np.ldexp(program.value, of_entry),
            row_lower=np.ldexp(program.row_lower, self.rows),
            row_upper=np.ldexp(program.row_upper, self.rows),
        )

    @property
    def size(self) -> float:
        """Ordinary value of the objective: 1, or the largest cost where the objective is scaled."""
        return math.ldexp(1.0, sum(COSTS) // 2 - self.objective) if self.objective else 1.0

    @property
    def inverse(self) -> Scaling:
        """Units that undo it, of programs and of points, prices and values."""
        return Scaling(-self.rows, -self.columns, -self.objective)

    def value(self, value: float) -> float:
        """Return an objective value in these units."""
        return math.ldexp(value, self.objective)

    def point(self, x: FloatArray) -> FloatArray:
        """Return a point in these units."""
        point: FloatArray = np.ldexp(x, -self.columns)
        return point

    def prices(self, y: FloatArray) -> FloatArray:
        """Row prices in these units."""
        prices: FloatArray = np.ldexp(y, self.objective - self.rows)
        return prices

    def with_columns(self, columns: Columns) -> tuple[Scaling, Columns]:
        """Return the units with those of columns that are appended, and these columns in them."""
        column = np.repeat(np.arange(len(columns.cost)), np.diff(columns.indptr))
        value = np.ldexp(columns.values, self.rows[columns.rows])
        cost = np.ldexp(columns.cost, self.objective - COSTS[1] // 2)
        own = _of_columns(column, value, cost, columns.lower, columns.upper)
        return replace(self, columns=np.concatenate([self.columns, own])), replace(
            columns,
            cost=np.ldexp(columns.cost, own + self.objective),
            lower=np.ldexp(columns.lower, -own),
            upper=np.ldexp(columns.upper, -own),
            values=np.ldexp(value, own[column]),
        )


def scaled(program: LinearProgram) -> tuple[LinearProgram, Scaling]:
    """Return a program in units that suit solvers, and these units; the program itself where it suits them.

    Parameters
    ----------
    program : LinearProgram
        With finite coefficients.
    """
    rows, columns = np.zeros(program.num_rows, np.int32), np.zeros(program.num_cols, np.int32)
    if _ordinary(program):
        return program, Scaling(rows, columns, 0)
    given = program
    for _ in range(ROUNDS):
        changed = _of_rows(program)
        if changed.any():
            rows += changed
            program = Scaling(changed, np.zeros_like(columns), 0).apply(program)
        cost = np.ldexp(program.cost, -_exponent(np.abs(program.cost).max(initial=0.0)))
        changed = _of_columns(program.index, program.value, cost, program.col_lower, program.col_upper)
        changed[program.integer] = 0
        if not changed.any():
            break
        columns += changed
        program = Scaling(np.zeros_like(rows), changed, 0).apply(program)
    limits = 0 if program.is_mip else _of_limits(program)
    scaling = Scaling(
        _clamped(rows - limits), _clamped(columns + limits), _of_objective(np.ldexp(program.cost, limits))
    )
    return scaling.apply(given), scaling


def infeasibility(program: LinearProgram, x: FloatArray) -> float:
    """Largest violation of a row or bound, as :meth:`LinearProgram.infeasibility`, in units that suit the program."""
    inner, scaling = scaled(program)
    return inner.infeasibility(scaling.point(x))


def unit(values: Any) -> float:
    """Return a power of two to measure numbers in: 1 where the largest is between 2**-10 and 2**20, else its own size.

    For formulations, whose models other solvers get as they are.
    """
    sizes = np.abs(np.asarray(values, float))
    largest = _exponent(sizes[np.isfinite(sizes)].max(initial=0.0))
    return 1.0 if UNITS[0] <= largest < UNITS[1] else math.ldexp(1.0, largest)


def _ordinary(program: LinearProgram) -> bool:
    """Tell whether a look at all numbers together shows that they need no other units."""
    size = np.abs(program.value)
    least, most = (float(size.min()), float(size.max())) if size.size else (1.0, 1.0)
    if not 2.0**COLUMN_LOW <= least <= most <= 2.0**COLUMN_HIGH:
        return False
    rows_fit = 2.0**ROW_LOW <= least <= most <= 2.0**ROW_HIGH or not _of_rows(program).any()
    return rows_fit and not _of_objective(program.cost) and (program.is_mip or not _of_limits(program))


def _of_objective(cost: FloatArray) -> int:
    sizes = np.abs(cost[cost != 0])
    if not sizes.size:
        return 0
    least, most = _exponent(sizes.min()), _exponent(sizes.max())
    if COSTS[0] <= most < COSTS[1] and least >= LEAST_COST:
        return 0
    # Around 1 where costs are far apart, as far as the largest allows.
    raised = min(max(most - (least + most) // 2, sum(COSTS) // 2), COSTS[1])
    return int(np.clip(raised - most, -LARGEST_EXPONENT, LARGEST_EXPONENT))


def _of_rows(program: LinearProgram) -> Exponents:
    filled = program.indptr[1:] > program.indptr[:-1]
    exponents = np.zeros(program.num_rows, np.int32)
    if not filled.any():
        return exponents
    size = np.abs(program.value)
    if size.min() >= 2.0**ROW_LOW and size.max() <= 2.0**ROW_HIGH:
        return exponents
    least, most = _extremes(size, program.indptr[:-1][filled])
    low, high = most < 2.0**ROW_LOW, least > 2.0**ROW_HIGH
    if low.any():
        limit = largest_limit(program.row_lower[filled], program.row_upper[filled])
        low &= (limit < 2.0**ROW_LOW) | (most < 2.0**ROW_VANISHING)
    if low.any() or high.any():
        top, bottom = _exponents(most), _exponents(least)
        exponents[filled] = np.where(low, -top, np.where(high, -((top + bottom) // 2), 0))
    return _clamped(exponents)


def _extremes(size: FloatArray, starts: NDArray[np.signedinteger]) -> tuple[FloatArray, FloatArray]:
    """Least and largest of the sizes of each row that are not zero; rows of zeros count as 1."""
    zero = size == 0
    most = np.maximum.reduceat(size, starts)
    least = np.minimum.reduceat(np.where(zero, np.inf, size) if zero.any() else size, starts)
    return np.where(most > 0, least, 1.0), np.where(most > 0, most, 1.0)


def _of_columns(
    column: NDArray[np.signedinteger], value: FloatArray, cost: FloatArray, lower: FloatArray, upper: FloatArray
) -> Exponents:
    """Units of columns, from entries, costs of at most about 1, and limits."""
    size = np.abs(value)
    exponents = np.zeros(len(cost), np.int32)
    if size.size and size.min() >= 2.0**COLUMN_LOW and size.max() <= 2.0**COLUMN_HIGH:
        return exponents
    met = np.bincount(column[size > 0], minlength=len(cost)) > 0
    limit = largest_limit(lower, upper)
    limit_size = np.divide(1.0, limit, out=np.zeros(len(cost)), where=limit > 0)
    most = np.maximum(np.abs(cost), limit_size)
    np.maximum.at(most, column, size)
    least = np.where(cost != 0, np.abs(cost), np.inf)
    least = np.minimum(least, np.where(limit_size > 0, limit_size, np.inf))
    np.minimum.at(least, column, np.where(size > 0, size, np.inf))
    low, high = met & (most < 2.0**COLUMN_LOW), met & (least > 2.0**COLUMN_HIGH)
    exponents[low] = -_exponents(most[low])
    exponents[high] = -_exponents(least[high])
    return _clamped(exponents)


def _of_limits(program: LinearProgram) -> int:
    """Return the unit of all columns together that makes limits of ordinary size."""
    limits = (program.row_upper, program.col_upper, program.row_lower, program.col_lower)
    for limit in limits:
        size = np.abs(limit)
        if ((size >= 2.0**LIMIT_LOW) & (size <= 2.0**LIMIT_HIGH)).any():
            return 0
    sizes = np.abs(np.concatenate(limits))
    sizes = sizes[(sizes > 0) & np.isfinite(sizes)]
    if not sizes.size or not (sizes.max() < 2.0**LIMIT_LOW or sizes.min() > 2.0**LIMIT_HIGH):
        return 0
    return _exponent(sizes.max())


def largest_limit(lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Size of the larger finite limit; 0 without any."""
    sizes = [np.where(np.isfinite(limit), np.abs(limit), 0.0) for limit in (lower, upper)]
    largest: FloatArray = np.maximum(*sizes)
    return largest


def _exponents(sizes: FloatArray) -> Exponents:
    """Return the k of each ``2**k <= size < 2**(k + 1)``; 0 of zero."""
    mantissa, exponent = np.frexp(sizes)
    return np.where(mantissa > 0, exponent - 1, 0).astype(np.int32)


def _exponent(size: float) -> int:
    mantissa, exponent = math.frexp(size)
    return exponent - 1 if mantissa > 0 else 0


def _clamped(exponents: Exponents) -> Exponents:
    return np.clip(exponents, -LARGEST_EXPONENT, LARGEST_EXPONENT)
