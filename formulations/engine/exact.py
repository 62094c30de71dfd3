"""Linear programs in exact fractions: what prices and a basis prove when nothing is rounded.

Every number of a program is a float, hence a fraction.  HiGHS is asked again, without presolve, for a
basis.  Its two systems of equations, ``B x = limits`` for the point and ``B' y = c`` for the prices, are
solved in fractions.  If the point keeps to every row and bound, and the reduced costs have the right signs,
the optimum is known as a fraction.  Where the equations are too many for the time, or the basis is not quite
optimal in exact arithmetic, the prices alone still bound every point (weak duality, see
:mod:`formulations.engine.certificate`):

    sum_i  (l_i if y_i > 0 else u_i) * y_i  +  sum_j  (a_j if d_j > 0 else b_j) * d_j,      d = c - A'y.

A reduced cost that faces an infinite bound, by rounding of the prices, is made zero by one price of its column,
or faces the bound that the rows imply.

References
----------
Neumaier and Shcherbina, "Safe bounds in linear and mixed-integer linear programming" (2004).
Applegate, Cook, Dash and Espinoza, "Exact solutions to linear programming problems" (2007).
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

from formulations.engine.highs import hand_over
from formulations.engine.linear import LinearProgram
from formulations.engine.scaling import scaled

__all__ = ["ExactOptimum", "exact_bound", "exact_optimum", "exact_point"]

ROUNDS = 3
"""Times that implied bounds are sought, each time with those found before."""

Sparse = dict[int, Fraction]


@dataclass(frozen=True)
class ExactOptimum:
    """Proof about a linear program in exact arithmetic.

    Attributes
    ----------
    bound : Fraction, optional
        No point is better; None where no prices prove a bound.
    value : Fraction, optional
        Value of a point that keeps to every row and bound exactly; None where none was found.
    """

    bound: Fraction | None
    value: Fraction | None

    @property
    def proven(self) -> bool:
        """Tell whether point and prices prove each other optimal, to the last digit."""
        return self.value is not None and self.value == self.bound


def exact_optimum(program: LinearProgram, *, seconds: float = math.inf) -> ExactOptimum:
    """Return the optimum of a linear program, as far as fractions prove it.

    Parameters
    ----------
    program : LinearProgram
        Integer requirements do not matter.
    seconds : float
        Limit for the solver and for the equations, each.
    """
    solved = _basis(program, seconds)
    if solved is None:
        return ExactOptimum(None, None)
    prices, columns, rows = solved
    fractions = _Fractions(program)
    end = time.monotonic() + seconds
    point = fractions.point(columns, rows, end)
    exact_prices = fractions.prices(columns, rows, end)
    bound = None if exact_prices is None else fractions.bound(exact_prices)
    if bound is None:
        bound = fractions.bound([Fraction(price) for price in prices])
    value = None if point is None or not fractions.feasible(point) else fractions.value(point)
    sign = 1 if program.sense == "min" else -1
    return ExactOptimum(None if bound is None else sign * bound, None if value is None else sign * value)


def exact_bound(program: LinearProgram, row_duals: Any) -> Fraction | None:
    """Return the bound that row prices, in the program's own sense, prove without rounding; None for no bound."""
    sign = 1 if program.sense == "min" else -1
    found = _Fractions(program).bound([sign * Fraction(float(price)) for price in row_duals])
    return None if found is None else sign * found


def exact_point(
    program: LinearProgram, point: list[Fraction], whole: NDArray[np.bool_], *, seconds: float = math.inf
) -> list[Fraction] | None:
    """Return a point that keeps to every row and bound exactly: the one given, or a vertex with the same whole numbers.

    Parameters
    ----------
    program : LinearProgram
    point : list of Fraction
    whole : (columns,) bool
        Which columns are kept as they are.
    seconds : float
        Limit for the solver and for the equations, each.

    Returns
    -------
    list of Fraction, optional
        None where none is found.
    """
    if _Fractions(program).feasible(point):
        return point
    fixed = program.with_fixed(whole, np.array([float(v) for v in point]))
    solved = None if whole.all() else _basis(fixed, seconds)
    if solved is None:
        return None
    fractions = _Fractions(fixed)
    found = fractions.point(*solved[1:], time.monotonic() + seconds)
    return found if found is not None and fractions.feasible(found) else None


def _basis(program: LinearProgram, seconds: float) -> tuple[list[float], list[Any], list[Any]] | None:
    """Prices (of the program as a minimum), and the statuses of columns and rows in an optimal basis."""
    inner, scaling = scaled(program)
    highs = highspy.Highs()
    for name, value in (
        ("output_flag", False),
        ("presolve", "off"),
        ("solver", "simplex"),
        ("primal_feasibility_tolerance", 1e-10),
        ("dual_feasibility_tolerance", 1e-10),
        ("time_limit", seconds),
    ):
        highs.setOptionValue(name, value)
    hand_over(highs, replace(inner, integer=np.zeros(inner.num_cols, bool)))
    highs.run()
    basis, solution = highs.getBasis(), highs.getSolution()
    if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal or not basis.valid:
        return None
    sign = 1.0 if program.sense == "min" else -1.0
    prices = sign * scaling.inverse.prices(np.array(solution.row_dual))
    return prices.tolist(), list(basis.col_status), list(basis.row_status)


class _Fractions:
    """A program as a minimum, in fractions, by rows and by columns."""

    def __init__(self, program: LinearProgram) -> None:
        sign = 1 if program.sense == "min" else -1
        self.cost = [sign * Fraction(cost) for cost in program.cost.tolist()]
        self.offset = sign * Fraction(program.offset)
        self.rows: list[Sparse] = []
        self.columns: list[Sparse] = [{} for _ in self.cost]
        starts, index, values = program.indptr.tolist(), program.index.tolist(), program.value.tolist()
        for i in range(program.num_rows):
            row = {
                j: Fraction(a) for j, a in zip(index[starts[i] : starts[i + 1]], values[starts[i] :], strict=False) if a
            }
            self.rows.append(row)
            for j, a in row.items():
                self.columns[j][i] = a
        self.lower, self.upper = _limits(program.col_lower), _limits(program.col_upper)
        self.row_lower, self.row_upper = _limits(program.row_lower), _limits(program.row_upper)

    def value(self, x: list[Fraction]) -> Fraction:
        return self.offset + sum((c * v for c, v in zip(self.cost, x, strict=True) if c), Fraction())

    def feasible(self, x: list[Fraction]) -> bool:
        activities = [sum((a * x[j] for j, a in row.items()), Fraction()) for row in self.rows]
        return _within(x, self.lower, self.upper) and _within(activities, self.row_lower, self.row_upper)

    # --- a basis ------------------------------------------------------------------------------------

    def point(self, columns: list[Any], rows: list[Any], end: float) -> list[Fraction] | None:
        """Return the point of a basis: columns and rows that are not basic are at a limit."""
        basic = [j for j, status in enumerate(columns) if status == highspy.HighsBasisStatus.kBasic]
        x = [_at(status, *ends) for status, *ends in zip(columns, self.lower, self.upper, strict=True)]
        system, right = [], []
        for i, status in enumerate(rows):
            if status == highspy.HighsBasisStatus.kBasic:
                continue
            row = self.rows[i]
            fixed = sum((a * x[j] for j, a in row.items() if x[j]), Fraction())
            system.append(dict(row))
            right.append(_at(status, self.row_lower[i], self.row_upper[i]) - fixed)
        unknown = set(basic)
        system = [{j: a for j, a in row.items() if j in unknown} for row in system]
        found = _solved(system, right, end)
        if found is None or len(found) != len(basic):
            return None
        for j, value in found.items():
            x[j] = value
        return x

    def prices(self, columns: list[Any], rows: list[Any], end: float) -> list[Fraction] | None:
        """Return the prices of a basis: basic columns cost what their rows are worth, basic rows nothing."""
        binding = {i for i, status in enumerate(rows) if status != highspy.HighsBasisStatus.kBasic}
        basic = [j for j, status in enumerate(columns) if status == highspy.HighsBasisStatus.kBasic]
        system = [{i: a for i, a in self.columns[j].items() if i in binding} for j in basic]
        found = _solved(system, [self.cost[j] for j in basic], end)
        if found is None or len(found) != len(binding):
            return None
        return [found.get(i, Fraction()) for i in range(len(self.rows))]

    # --- weak duality -------------------------------------------------------------------------------

    def bound(self, prices: list[Fraction]) -> Fraction | None:
        """Return the bound of prices that are made to face no infinite limit; None where they cannot be."""
        y = list(prices)
        for i, price in enumerate(y):
            if (price > 0 and self.row_lower[i] is None) or (price < 0 and self.row_upper[i] is None):
                y[i] = Fraction()
        reduced = [
            c - sum((a * y[i] for i, a in col.items()), Fraction())
            for c, col in zip(self.cost, self.columns, strict=True)
        ]
        open_columns = [j for j, d in enumerate(reduced) if d and self._faced(j, d, self.lower, self.upper) is None]
        lower, upper = self.lower, self.upper
        if open_columns:
            lower, upper = self._implied(open_columns)
        for j in open_columns:
            if self._faced(j, reduced[j], lower, upper) is None:
                self._close(j, y, reduced)
        total = self.offset
        for i, price in enumerate(y):
            if price:
                limit = self.row_lower[i] if price > 0 else self.row_upper[i]
                if limit is None:
                    return None
                total += price * limit
        for j, d in enumerate(reduced):
            if d:
                limit = self._faced(j, d, lower, upper)
                if limit is None:
                    return None
                total += d * limit
        return total

    @staticmethod
    def _faced(j: int, d: Fraction, lower: list[Fraction | None], upper: list[Fraction | None]) -> Fraction | None:
        return lower[j] if d > 0 else upper[j]

    def _close(self, j: int, y: list[Fraction], reduced: list[Fraction]) -> None:
        """Make the reduced cost of a column zero by the price of the row that weighs most in it."""
        column = self.columns[j]
        if not column:
            return
        i = max(column, key=lambda row: abs(y[row] * column[row]))
        change = reduced[j] / column[i]
        y[i] += change
        for k, a in self.rows[i].items():
            reduced[k] -= a * change

    def _implied(self, wanted: list[int]) -> tuple[list[Fraction | None], list[Fraction | None]]:
        """Bounds of columns as the rows imply them, where they have none of their own."""
        lower, upper = list(self.lower), list(self.upper)
        # Bounds of others that share a row help to bound those that are wanted.
        near = {k for j in wanted for i in self.columns[j] for k in self.rows[i]}
        for _ in range(ROUNDS):
            before = sum(limit is None for limit in (*lower, *upper))
            for j in near:
                for i, a in self.columns[j].items():
                    least, most = self._others(i, j, lower, upper)
                    for limit, rest, rising in ((self.row_upper[i], least, a > 0), (self.row_lower[i], most, a < 0)):
                        if limit is None or rest is None:
                            continue
                        found = (limit - rest) / a
                        if rising and upper[j] is None:
                            upper[j] = found
                        elif not rising and lower[j] is None:
                            lower[j] = found
            if sum(limit is None for limit in (*lower, *upper)) == before:
                break
        return lower, upper

    def _others(
        self, i: int, j: int, lower: list[Fraction | None], upper: list[Fraction | None]
    ) -> tuple[Fraction | None, Fraction | None]:
        """Least and greatest sum of the other terms of a row; None where there is no such."""
        least: Fraction | None = Fraction()
        most: Fraction | None = Fraction()
        for k, a in self.rows[i].items():
            if k == j:
                continue
            low, high = (lower[k], upper[k]) if a > 0 else (upper[k], lower[k])
            least = None if least is None or low is None else least + a * low
            most = None if most is None or high is None else most + a * high
            if least is None and most is None:
                break
        return least, most


def _limits(limits: Any) -> list[Fraction | None]:
    return [Fraction(limit) if math.isfinite(limit) else None for limit in limits.tolist()]


def _within(values: list[Fraction], lower: list[Fraction | None], upper: list[Fraction | None]) -> bool:
    return all(
        (low is None or low <= value) and (high is None or value <= high)
        for value, low, high in zip(values, lower, upper, strict=True)
    )


def _at(status: Any, lower: Fraction | None, upper: Fraction | None) -> Fraction:
    """Return the place of a column or row that is not basic."""
    known = highspy.HighsBasisStatus
    if status == known.kUpper and upper is not None:
        return upper
    if status == known.kLower and lower is not None:
        return lower
    return Fraction()


def _solved(system: list[Sparse], right: list[Fraction], end: float) -> dict[int, Fraction] | None:
    """Return the one solution of a sparse square system; None where there is not just one, or no time.

    Elimination, each time by the shortest row left and, in it, the unknown that the fewest rows have.
    """
    rows = [dict(row) for row in system]
    right = list(right)
    having: dict[int, set[int]] = {}
    for i, row in enumerate(rows):
        for j in row:
            having.setdefault(j, set()).add(i)
    left = set(range(len(rows)))
    order: list[tuple[int, int]] = []
    while left:
        if time.monotonic() > end:
            return None
        pivot_row = min(left, key=lambda i: len(rows[i]))
        row = rows[pivot_row]
        if not row:
            return None
        j = min(row, key=lambda unknown: len(having[unknown]))
        left.remove(pivot_row)
        for k in row:
            having[k].discard(pivot_row)
        pivot = row[j]
        for i in list(having[j]):
            factor = rows[i][j] / pivot
            target = rows[i]
            for k, a in row.items():
                changed = target.get(k, Fraction()) - factor * a
                if changed and k != j:
                    target[k] = changed
                    having[k].add(i)
                elif k in target:
                    del target[k]
                    having[k].discard(i)
            right[i] -= factor * right[pivot_row]
        order.append((pivot_row, j))
    found: dict[int, Fraction] = {}
    for i, j in reversed(order):
        row = rows[i]
        rest = sum((a * found[k] for k, a in row.items() if k != j), Fraction())
        found[j] = (right[i] - rest) / row[j]
    return found
