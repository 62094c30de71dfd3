"""Linear programs in which many columns and rows are alike, solved over classes of them.

Two jobs with the same data are the same column but for their names, and averaging a solution over
all ways to exchange them leaves a solution.  In general, take any partition of the columns and rows
into classes such that

- columns of a class have the same cost and bounds, and rows of a class the same limits;
- a column has the same sum of coefficients over each class of rows as every other of its class, and
  a row over each class of columns (the partition is equitable).

Then some optimal point is the same on each class, so a program with one column for each class and one
row for each class of rows has the same optimum.  Its solution gives every column of a class the same
value; its price of a class of rows is split evenly.  Both are checked on the whole program, like any
other certificate, so the optimum does not rest on the way the classes were found.

The coarsest such partition comes from colour refinement: columns and rows start with the colour of
their own numbers and are then told apart by the colours that they meet, with which coefficients, until
no class splits.

References
----------
Grohe, Kersting, Mladenov and Selman, "Dimension reduction via colour refinement" (ESA 2014).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.engine.certificate import Certificate
from formulations.engine.highs import Result
from formulations.engine.linear import LinearProgram, csr
from instances.schema import FloatArray

__all__ = ["Folding", "fold"]

Colours = NDArray[Any]
"""Of dtype uint64."""

LARGEST_SHARE = 0.5
"""Folding is worth its while when it leaves at most this share of the columns."""


@dataclass(frozen=True)
class Folding:
    """A linear program, folded.

    Attributes
    ----------
    whole, program : LinearProgram
        The program, and the one over classes.
    columns, rows : (columns,) and (rows,) int
        Class of each column and row of the whole program.
    """

    whole: LinearProgram
    program: LinearProgram
    columns: NDArray[np.intp]
    rows: NDArray[np.intp]

    def unfold(self, result: Result) -> Result:
        """Return an optimal result of the folded program as one of the whole program, whose proof is checked anew."""
        if result.x is None or result.certificate is None:
            raise ValueError(f"there is no optimum to unfold: {result.message}")
        x = result.x[self.columns]
        size = np.bincount(self.rows)
        certificate = Certificate.of(self.whole, x, (result.certificate.row_duals / size)[self.rows])
        return replace(
            result,
            status="optimal" if certificate.holds else "feasible",
            x=x,
            bound=certificate.dual_objective,
            certificate=certificate,
            message=f"{result.message}; {self.whole.num_cols} columns in {self.program.num_cols} classes",
        )


def fold(program: LinearProgram) -> Folding | None:
    """Return the program over classes of columns and rows that are alike; None when too few are.

    Parameters
    ----------
    program : LinearProgram
        Without integers.
    """
    if program.is_mip or not program.num_cols:
        return None
    value = _mixed(program.value.view(np.uint64))
    # Most programs are not worth their while, which the columns' own numbers show.
    column_colour = _hashed(program.cost, program.col_lower, program.col_upper)
    column_colour = _mixed(column_colour + _met(program.index, value, program.num_cols))
    if _classes(column_colour) is None:
        return None
    row = np.repeat(np.arange(program.num_rows), np.diff(program.indptr))
    row_colour = _hashed(program.row_lower, program.row_upper)
    before = 0
    while True:
        row_colour = _mixed(row_colour + _met(row, column_colour[program.index] ^ value, program.num_rows))
        column_colour = _mixed(column_colour + _met(program.index, row_colour[row] ^ value, program.num_cols))
        classes = _classes(column_colour)
        if classes is None:
            return None
        if classes == before:
            break
        before = classes
    _, first_column, columns = np.unique(column_colour, return_index=True, return_inverse=True)
    _, first_row, rows = np.unique(row_colour, return_index=True, return_inverse=True)
    return Folding(program, _folded(program, row, columns, rows, first_column, first_row), columns, rows)


def _folded(
    program: LinearProgram,
    row: NDArray[np.intp],
    columns: NDArray[np.intp],
    rows: NDArray[np.intp],
    first_column: NDArray[np.intp],
    first_row: NDArray[np.intp],
) -> LinearProgram:
    """One row of each class, with the coefficients of each class of columns added up."""
    chosen = np.zeros(program.num_rows, bool)
    chosen[first_row] = True
    kept = np.flatnonzero(chosen[row])
    places, where = np.unique(rows[row[kept]] * len(first_column) + columns[program.index[kept]], return_inverse=True)
    sums = np.bincount(where, weights=program.value[kept], minlength=len(places)).astype(float)
    indptr, index, value = csr(places // len(first_column), places % len(first_column), sums, len(first_row))
    return replace(
        program,
        cost=np.bincount(columns, weights=program.cost, minlength=len(first_column)).astype(float),
        col_lower=program.col_lower[first_column],
        col_upper=program.col_upper[first_column],
        integer=np.zeros(len(first_column), bool),
        indptr=indptr,
        index=index,
        value=value,
        row_lower=program.row_lower[first_row],
        row_upper=program.row_upper[first_row],
        variables=(),
        constraints=(),
    )


def _hashed(*numbers: FloatArray) -> Colours:
    """Return a colour for each position, by the numbers there."""
    colour = np.zeros(len(numbers[0]), np.uint64)
    for array in numbers:
        # Adding 0.0 makes -0.0 and 0.0 one number.
        colour = _mixed(colour + (array + 0.0).view(np.uint64))
    return colour


def _classes(colour: Colours) -> int | None:
    """Return the number of colours; None where they are too many."""
    count = len(np.unique(colour))
    return None if count > LARGEST_SHARE * len(colour) else count


def _met(position: NDArray[np.signedinteger[Any]], met: Colours, count: int) -> Colours:
    """Assign each position a number by the multiset of what their entries meet: equal numbers for equal multisets."""
    entry = _mixed(met)
    # Sums modulo 2**64 from two sums of 32 bits, which are exact in floating point.
    low = np.bincount(position, weights=(entry & np.uint64(0xFFFFFFFF)).astype(float), minlength=count)
    high = np.bincount(position, weights=(entry >> np.uint64(32)).astype(float), minlength=count)
    return low.astype(np.uint64) + (high.astype(np.uint64) << np.uint64(32))


def _mixed(number: Colours) -> Colours:
    """Return a permutation of the 64-bit numbers that leaves no pattern (SplitMix64)."""
    number = number + np.uint64(0x9E3779B97F4A7C15)
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Colours = number ^ (number >> np.uint64(31))
    return mixed
