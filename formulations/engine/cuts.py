"""Cuts that rounding proves (Chvatal and Gomory), for a point of a program's relaxation.

Rows with multipliers, and bounds of columns that make the coefficients whole, add up to ``a x <= b`` with whole ``a``
on whole columns, so that ``a x <= floor(b)``.  A coefficient is rounded down by the column's lower bound or up by the
upper one, whichever is nearer to the point; a continuous column is taken out.  Multipliers come from

- rows alone, divided by one of their coefficients: of knapsacks these are the extended covers;
- the prices of the rows, divided by a cost: what costs are rounded to that of all columns of that cost or more;
- rows of the inverse of the optimal basis, whose whole multiples of rows of whole numbers are left out (Gomory);
- halves of rows of whole numbers that are tight, whose sums have odd right sides (zero-half cuts).

The points are floats, and so is the choice of cuts; what a cut states is added up in fractions.

References
----------
Gomory, "Outline of an algorithm for integer solutions to linear programs" (1958).
Caprara and Fischetti, "{0, 1/2}-Chvatal-Gomory cuts" (1996).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.engine import clock
from formulations.engine.linear import LinearProgram
from instances.schema import FloatArray

__all__ = ["Cut", "Separation"]

FRACTIONAL = 1e-6
"""How far from whole a column is that a cut is sought for."""

VIOLATED = 1e-3
"""By how much a cut is missed at least, as a distance."""

PARALLEL = 0.95
"""Cosine from which on two cuts are much the same."""

LARGEST = 1000
"""The largest coefficient of a cut: what has larger ones is numerically poor."""

MOST_DIVISORS = 8
"""Coefficients of a row that it is divided by."""

MOST_TIGHT = 1500
"""Tight rows up to which zero-half cuts are sought."""

FINEST = 10_000
"""The largest denominator of multipliers."""


@dataclass(frozen=True)
class Cut:
    """The constraint ``terms @ x <= limit`` and what it follows from.

    Attributes
    ----------
    terms : dict of int
        Whole coefficients by column.
    limit : int
    rows : dict of Fraction
        Multipliers of rows: of upper limits where positive, of lower ones where negative.
    bounds : dict of Fraction
        Multipliers of bounds of columns, likewise.
    """

    terms: dict[int, int]
    limit: int
    rows: dict[int, Fraction]
    bounds: dict[int, Fraction]


class Separation:
    """Cuts of a program at points of its relaxation.

    Parameters
    ----------
    program : LinearProgram
        Its rows may be cuts themselves.
    cost : (columns,) float
        Of a minimum.
    whole : (columns,) bool
        The columns that are whole.
    lower, upper : sequence
        Exact bounds of the columns; None for none.
    """

    def __init__(
        self,
        program: LinearProgram,
        cost: FloatArray,
        whole: NDArray[np.bool_],
        lower: Sequence[Any],
        upper: Sequence[Any],
    ) -> None:
        self._program, self._whole, self._lower, self._upper = program, whole, lower, upper
        self._costs = np.unique(np.abs(cost[whole & (cost != 0)]))[: -MOST_DIVISORS - 1 : -1].tolist()
        self._low = np.array([-math.inf if v is None else float(v) for v in lower])
        self._high = np.array([math.inf if v is None else float(v) for v in upper])
        row = np.repeat(np.arange(program.num_rows), np.diff(program.indptr))
        broken = np.bincount(row, weights=~whole[program.index] | (program.value % 1 != 0), minlength=program.num_rows)
        limits = [np.where(np.isfinite(side), side, 0.0) for side in (program.row_lower, program.row_upper)]
        self._in_whole_numbers = (broken == 0) & (limits[0] % 1 == 0) & (limits[1] % 1 == 0)

    def cuts(self, x: FloatArray, prices: FloatArray, inverse: Iterable[FloatArray], most: int) -> list[Cut]:
        """Return cuts that a point misses, the farthest first.

        Parameters
        ----------
        x : (columns,) float
        prices : (rows,) float
            Of the rows, as a minimum has them.
        inverse : iterable of (rows,) float
            Rows of the basis's inverse, of columns that should be whole.
        most : int
        """
        found = []
        for multipliers in self._multipliers(x, prices, inverse):
            screened = self._screened(multipliers, x)
            if screened is not None:
                found.append((*screened, multipliers))
        found.sort(key=lambda one: -one[0])
        chosen: list[Cut] = []
        taken: list[FloatArray] = []
        for _, direction, multipliers in found:
            if len(chosen) == most:
                break
            clock.check()
            if taken and (np.array(taken) @ direction).max() > PARALLEL:
                continue
            cut = self._exact(multipliers, x)
            if cut is not None:
                chosen.append(cut)
                taken.append(direction)
        return chosen

    # --- multipliers --------------------------------------------------------------------------

    def _multipliers(
        self, x: FloatArray, prices: FloatArray, inverse: Iterable[FloatArray]
    ) -> Iterator[dict[int, Fraction]]:
        yield from self._of_rows(x)
        for cost in self._costs:
            yield from self._combined(-prices / cost, reduced=False)
        for row in inverse:
            for sign in (1, -1):
                yield from self._combined(sign * row, reduced=True)
        yield from self._halves(x)

    def _of_rows(self, x: FloatArray) -> Iterator[dict[int, Fraction]]:
        program = self._program
        fractional = self._whole & (np.abs(x - np.rint(x)) > FRACTIONAL)
        activities = program.row_activities(x)
        row = np.repeat(np.arange(program.num_rows), np.diff(program.indptr))
        for i in clock.ticking(np.unique(row[fractional[program.index]]).tolist()):
            span = slice(program.indptr[i], program.indptr[i + 1])
            columns, values = program.index[span], program.value[span]
            divisors = np.unique(np.abs(values[fractional[columns] & (values != 0)]))[::-1][:MOST_DIVISORS].tolist()
            for side, limit in ((1, program.row_upper[i]), (-1, program.row_lower[i])):
                for divisor in divisors:
                    # A row that is far from tight gives nothing.
                    if abs(limit - activities[i]) < divisor:
                        yield {i: side / Fraction(divisor)}

    def _combined(self, row: FloatArray, *, reduced: bool) -> Iterator[dict[int, Fraction]]:
        program, found = self._program, {}
        for i in np.flatnonzero(np.abs(row) > 1e-9).tolist():
            price = Fraction(float(row[i])).limit_denominator(FINEST)
            if reduced and self._in_whole_numbers[i]:
                price -= math.floor(price) if math.isfinite(program.row_upper[i]) else math.ceil(price)
            if price:
                if math.isinf(program.row_upper[i] if price > 0 else program.row_lower[i]):
                    return
                found[i] = price
        if found:
            yield found

    def _halves(self, x: FloatArray) -> Iterator[dict[int, Fraction]]:
        """Yield sums of halves of tight rows in which no column away from its bounds has an odd coefficient."""
        program = self._program
        activities = program.row_activities(x)
        tight = []
        for i in np.flatnonzero(self._in_whole_numbers).tolist():
            for side, limit in ((1, program.row_upper[i]), (-1, program.row_lower[i])):
                if abs(limit - activities[i]) < FRACTIONAL:
                    tight.append((i, side, int(limit)))
                    break
        if not tight or len(tight) > MOST_TIGHT:
            return
        at_low, at_high = x - self._low < FRACTIONAL, self._high - x < FRACTIONAL
        inside = np.flatnonzero(~(at_low | at_high))
        place = np.full(program.num_cols, -1)
        place[inside] = np.arange(len(inside))
        bits = np.zeros((len(tight), len(inside) + 1), bool)
        for k, (i, _, limit) in enumerate(tight):
            span = slice(program.indptr[i], program.indptr[i + 1])
            columns = program.index[span]
            odd = columns[program.value[span] % 2 != 0]
            bits[k, place[odd[place[odd] >= 0]]] = True
            bounds = np.where(at_low[odd], self._low[odd], self._high[odd])[place[odd] < 0]
            bits[k, -1] = bool((limit + bounds.sum()) % 2)
        parts = np.eye(len(tight), dtype=bool)
        free = np.ones(len(tight), bool)
        for column in clock.ticking(range(len(inside))):
            having = np.flatnonzero(bits[:, column] & free)
            if not having.size:
                continue
            pivot = having[parts[having].sum(axis=1).argmin()]
            free[pivot] = False
            others = having[having != pivot]
            bits[others] ^= bits[pivot]
            parts[others] ^= parts[pivot]
        for k in np.flatnonzero(free & bits[:, -1]).tolist():
            yield {tight[t][0]: Fraction(tight[t][1], 2) for t in np.flatnonzero(parts[k]).tolist()}

    # --- rounding -----------------------------------------------------------------------------

    def _screened(self, multipliers: dict[int, Fraction], x: FloatArray) -> tuple[float, FloatArray] | None:
        """Return by how far a point misses the cut of some multipliers, and the cut's direction; None for no cut."""
        program = self._program
        prices = np.zeros(program.num_rows)
        for i, price in multipliers.items():
            prices[i] = price
        right = float(
            sum(
                float(price) * (program.row_upper if price > 0 else program.row_lower)[i]
                for i, price in multipliers.items()
            )
        )
        left = program.column_products(prices)
        columns = np.flatnonzero(np.abs(left) > 1e-11)
        a, at, whole = left[columns], x[columns], self._whole[columns]
        low, high = self._low[columns], self._high[columns]
        down = np.where(whole, np.floor(a + 1e-9), 0.0)
        up = np.where(whole, np.ceil(a - 1e-9), 0.0)
        # Of a continuous column only one of the two is there.
        can_down, can_up = (a >= down - 1e-9) & np.isfinite(low), (a <= up + 1e-9) & np.isfinite(high)
        none = np.abs(a - np.rint(a)) < 1e-9
        down_loss = np.where(can_down, (a - down) * (at - np.where(np.isfinite(low), low, 0)), math.inf)
        up_loss = np.where(can_up, (up - a) * (np.where(np.isfinite(high), high, 0) - at), math.inf)
        down_loss = np.where(none & whole, 0.0, down_loss)
        lower = down_loss <= up_loss
        if not np.isfinite(np.where(lower, down_loss, up_loss)).all():
            return None
        b = np.where(none & whole, np.rint(a), np.where(lower, down, up))
        if not b.any() or np.abs(b).max() > LARGEST:
            return None
        moved = np.where(none & whole, 0.0, b - a)
        bound = np.where(moved < 0, low, high)
        right += float((moved * np.where(moved != 0, bound, 0.0)).sum())
        norm = float(np.sqrt(b @ b))
        away = (float(b @ at) - math.floor(right + 1e-7)) / norm
        if away < VIOLATED:
            return None
        direction = np.zeros(program.num_cols)
        direction[columns] = b / norm
        return away, direction

    def _exact(self, multipliers: dict[int, Fraction], x: FloatArray) -> Cut | None:
        """Return the cut of some multipliers, if the point misses it."""
        program = self._program
        left: dict[int, Fraction] = {}
        right = Fraction()
        for i, price in multipliers.items():
            right += price * Fraction(float((program.row_upper if price > 0 else program.row_lower)[i]))
            for e in range(program.indptr[i], program.indptr[i + 1]):
                j = int(program.index[e])
                left[j] = left.get(j, 0) + price * Fraction(float(program.value[e]))
        terms, bounds = {}, {}
        for j, a in left.items():
            down, up = (math.floor(a), math.ceil(a)) if self._whole[j] else (0, 0)
            if a != down or a != up:
                low, high = self._lower[j], self._upper[j]
                can_down, can_up = low is not None and a >= down, high is not None and a <= up
                down_loss = float(a - down) * (x[j] - float(low)) if can_down else math.inf
                up_loss = float(up - a) * (float(high) - x[j]) if can_up else math.inf
                if math.isinf(min(down_loss, up_loss)):
                    return None
                to, bound = (down, low) if down_loss <= up_loss else (up, high)
                bounds[j] = to - a
                right += (to - a) * bound
                a = Fraction(to)
            if a:
                terms[j] = int(a)
        limit = math.floor(right)
        if sum(a * x[j] for j, a in terms.items()) <= limit + FRACTIONAL:
            return None
        return Cut(terms, limit, multipliers, bounds)
