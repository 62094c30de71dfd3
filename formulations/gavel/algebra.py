"""Linear expressions as arrays, written as mathematics: ``weights * throughput >= level``.

A :class:`Linear` holds one expression for each member of a set of jobs or pools, in sparse coordinates.  Sums,
products with arrays and comparisons make new ones in NumPy, so that a policy of a million jobs is stated by a
handful of operations, and what is stated is at once the matrix that a solver gets.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from formulations.engine.linear import IndexArray, csr
from instances.schema import FloatArray, IntArray

__all__ = ["Linear", "Relation", "Subset"]


@dataclass(frozen=True, eq=False)
class Subset:
    """A set of jobs with a name, in increasing order, for constraints to have rows for."""

    name: str
    members: IntArray

    def __array__(self, dtype: Any = None, copy: Any = None) -> IntArray:
        """Return the jobs, so that an array can be indexed by the set."""
        return np.asarray(self.members, dtype)


@dataclass(frozen=True, eq=False)
class Linear:
    """Linear expressions in the columns of a program: an array of them, or a single one.

    Attributes
    ----------
    rows, columns : (entries,) int
        ``values`` times the column is part of the expression ``row``, a position in the array without its shape.
    values : (entries,) float
    shape : tuple of int
        () for a single expression.
    over : str, optional
        The set that has a member for each of them.
    constant : float or float array
        Is part of each.
    """

    __array_ufunc__ = None  # So that NumPy leaves ``array * expression`` to the expression.

    rows: NDArray[Any]
    columns: NDArray[Any]
    values: FloatArray
    shape: tuple[int, ...] = ()
    over: str | None = None
    constant: FloatArray | float = 0.0

    @property
    def size(self) -> int:
        """Number of expressions."""
        return int(np.prod(self.shape))

    def __getitem__(self, subset: Subset) -> Linear:
        """Return the expressions of some jobs."""
        row_of = np.full(self.size, -1)
        row_of[subset.members] = np.arange(len(subset.members))
        kept = np.flatnonzero(row_of[self.rows] >= 0)
        constant = np.broadcast_to(self.constant, self.shape)[subset.members]
        rows, shape = row_of[self.rows[kept]], (len(subset.members),)
        return Linear(rows, self.columns[kept], self.values[kept], shape, subset.name, constant)

    def __mul__(self, factor: ArrayLike) -> Linear:
        factors = np.asarray(factor, float)
        if not factors.ndim:
            return replace(self, values=self.values * float(factors), constant=self.constant * float(factors))
        one = self._spread(factors.shape)
        each = np.broadcast_to(factors, one.shape).ravel()[one.rows]
        return replace(one, values=one.values * each, constant=one.constant * factors)

    def __add__(self, other: Linear | ArrayLike) -> Linear:
        if not isinstance(other, Linear):
            numbers = np.asarray(other, float)
            return replace(self._spread(numbers.shape), constant=self.constant + numbers)
        one, two = self._spread(other.shape), other._spread(self.shape)
        both = Linear(
            np.concatenate([one.rows, two.rows]),
            np.concatenate([one.columns, two.columns]),
            np.concatenate([one.values, two.values]),
            one.shape,
            one.over or two.over,
            one.constant + two.constant,
        )
        return both._gathered() if np.isin(two.columns, one.columns, kind="table").any() else both

    __rmul__, __radd__ = __mul__, __add__

    def __neg__(self) -> Linear:
        return self * -1.0

    def __sub__(self, other: Linear | ArrayLike) -> Linear:
        return self + -other if isinstance(other, Linear) else self + -np.asarray(other, float)

    def _spread(self, shape: tuple[int, ...]) -> Linear:
        """Repeat a single expression, once for each of several; several stay as they are."""
        if self.shape or not shape:
            return self
        count, entries = int(np.prod(shape)), len(self.columns)
        columns, values = np.tile(self.columns, count), np.tile(self.values, count)
        return Linear(np.arange(count).repeat(entries), columns, values, shape, None, self.constant)

    def sum(self) -> Linear:
        """Their sum."""
        constant = float(np.broadcast_to(self.constant, self.shape).sum())
        return Linear(np.zeros_like(self.rows), self.columns, self.values, constant=constant)._gathered()

    def _gathered(self) -> Linear:
        """Merge the terms so that there is one for each row and column, as solvers want them."""
        if np.bincount(self.columns).max(initial=0) <= 1:
            return self
        places = self.rows.astype(np.int64) * (int(self.columns.max()) + 1) + self.columns
        _, first, place = np.unique(places, return_index=True, return_inverse=True)
        order = first.argsort()
        kept, values = first[order], np.bincount(place, weights=self.values).astype(float)[order]
        return replace(self, rows=self.rows[kept], columns=self.columns[kept], values=values)

    def __ge__(self, other: Linear | ArrayLike) -> Relation:
        return Relation.of(self - other, 0.0, np.inf)

    def __le__(self, other: Linear | ArrayLike) -> Relation:
        return Relation.of(self - other, -np.inf, 0.0)

    def __eq__(self, other: Linear | ArrayLike) -> Relation:  # type: ignore[override]
        return Relation.of(self - other, 0.0, 0.0)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, eq=False)
class Relation:
    """Rows ``lower <= matrix @ columns <= upper``, one for each member of a set, or a single one.

    Attributes
    ----------
    over : str, optional
        The set.
    matrix : tuple of arrays
        Compressed sparse rows.
    lower, upper : (rows,) float
    """

    over: str | None
    matrix: tuple[IndexArray, IndexArray, FloatArray]
    lower: FloatArray
    upper: FloatArray

    @classmethod
    def of(cls, left: Linear, lower: float, upper: float) -> Relation:
        """``lower <= left <= upper``, with the constants of the expressions among the limits."""
        count = left.size
        constant = np.broadcast_to(left.constant, (count,))
        matrix = csr(left.rows, left.columns, left.values, count)
        return cls(left.over, matrix, lower - constant, upper - constant)
