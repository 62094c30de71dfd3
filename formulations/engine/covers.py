"""Points in whole numbers that a judge refuses, cut off.

A solver keeps rows within 1e-6, so it may return a point in whole numbers that misses a row by more than rounding.
Then some of the row's terms are too much together, whatever the others are: with a row ``sum_j a_j x_j <= u``, the
point x*, and as few terms C as will do,

    sum_{j in C} a_j x*_j  +  sum_{j not in C} min a_j x_j   >   u.

So a point that keeps to the row has an x_j below x*_j, or above it where a_j < 0, for some j in C.  Such a *cover* cuts
off x* and no point that keeps to the row.

Limits are wider than what a judge accepts (:func:`instances.base.widened`), so a point may keep to all
rows and still be refused.  What is refused is more than a judge accepts in one of the rows that are full but for that
width; nobody says in which, so C are the terms of them all: where none is less, that row is no less full.  That is so
where all variables are whole.  Without any C, nothing is accepted.

What x_j is 0 or 1 says by itself, a new variable says of any other: whether it has come to x*_j.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from formulations.engine.linear import ROUNDING, LinearProgram
from instances.base import WIDER
from instances.schema import BoolArray, FloatArray, IntArray

__all__ = ["without_refused"]


@dataclass(frozen=True, eq=False)
class _Row:
    """One side of a row of whole variables: ``values @ x[columns] <= limit``.

    Attributes
    ----------
    columns : (entries,) int
    values : (entries,) float
    limit : float
    least : (entries,) float
        The terms where the variables' bounds let them be least.
    widened : bool
        Whether the limit may be wider than the judge's: it is of an inequality that is not about whole numbers.
    """

    columns: IntArray
    values: FloatArray
    limit: float
    least: FloatArray
    widened: bool

    def beyond(self, terms: FloatArray, part: float) -> bool:
        """Tell whether such terms are together more than the limit and so much of it, or of the largest term."""
        return bool(terms.sum() - self.limit > part * max(abs(self.limit), float(np.abs(terms).max(initial=0.0))))

    def cover(self, x: FloatArray) -> IntArray | None:
        """Return the entries whose terms at ``x`` are too much together, as few as will do; None where they are not."""
        terms = self.values * x[self.columns]
        if not self.beyond(terms, ROUNDING):
            return None
        kept = terms > self.least
        for entry in np.argsort(terms - self.least):
            fewer = np.where(kept, terms, self.least)
            fewer[entry] = self.least[entry]
            kept[entry] = not self.beyond(fewer, ROUNDING)
        return np.flatnonzero(kept)

    def full(self, x: FloatArray) -> IntArray | None:
        """Return the entries that fill the row to its width, if it has one, at ``x``; None where they do not."""
        terms = self.values * x[self.columns]
        if not (self.widened and self.beyond(terms, -WIDER)):
            return None
        return np.flatnonzero(terms > self.least)

    def like(self, other: _Row) -> bool:
        """Tell whether what is too much in the other row is so in this one, entry for entry."""
        return (
            self.limit == other.limit
            and np.array_equal(self.values, other.values)
            and np.array_equal(self.least, other.least)
        )


def without_refused(program: LinearProgram, x: FloatArray) -> LinearProgram | None:
    """Return the program without ``x`` and its like; None where no row of whole variables shows why it is refused.

    Parameters
    ----------
    program : LinearProgram
    x : (columns,) float
        A point whose plan the judge refuses; its whole variables are whole.

    Returns
    -------
    LinearProgram, optional
        The program with more rows, and more columns behind its own.  It has all points that the judge accepts.
    """
    rows, grown = list(_rows(program)), _Grown(program)
    covers = [(row, cover) for row in rows if (cover := row.cover(x)) is not None]
    full = [(row, filled) for row in rows if program.integer.all() and (filled := row.full(x)) is not None]
    for row, cover in covers or full[: len(full) == 1]:
        for one in rows:
            if one is row or one.like(row):
                grown.cut(one.columns[cover], one.values[cover] > 0, x[row.columns[cover]])
    if not covers and len(full) > 1:
        columns = np.concatenate([row.columns[filled] for row, filled in full])
        rising = np.concatenate([row.values[filled] > 0 for row, filled in full])
        ways = np.unique(np.column_stack([columns, rising]), axis=0)
        grown.cut(ways[:, 0], ways[:, 1] > 0, x[ways[:, 0]])
    return grown.program()


def _rows(program: LinearProgram) -> Iterator[_Row]:
    """Both sides of the rows of whole variables."""
    for number in range(program.num_rows):
        entries = slice(program.indptr[number], program.indptr[number + 1])
        columns, lower, upper = (
            program.index[entries].astype(np.int64),
            program.row_lower[number],
            program.row_upper[number],
        )
        if not program.integer[columns].all():
            continue
        for sign, limit in ((1.0, upper), (-1.0, -lower)):
            values = sign * program.value[entries]
            if np.isfinite(limit):
                ends = np.where(values > 0, program.col_lower[columns], program.col_upper[columns])
                widened = lower < upper and bool(limit % 1 or (values % 1).any())
                yield _Row(columns, values, float(limit), values * ends, widened)


class _Grown:
    """A program that gets rows, and variables of 0 or 1 behind its own."""

    def __init__(self, program: LinearProgram) -> None:
        self._program = program
        self._columns = program.num_cols
        self._rows: list[tuple[list[int], list[float], float]] = []

    def cut(self, columns: IntArray, rising: BoolArray, ends: FloatArray) -> None:
        """Let not all of the variables come to their ends: the rising ones from below, the others from above."""
        lower, upper = self._program.col_lower[columns], self._program.col_upper[columns]
        signs = np.where(rising, 1.0, -1.0)
        first, last, ends = np.where(rising, lower, -upper), np.where(rising, upper, -lower), signs * ends
        if np.isinf(last).any() or len(np.unique(columns)) < len(columns):
            # Rows that want the same variable less and more have no such point in common.
            return
        told, parts, most = columns.tolist(), signs.tolist(), len(columns) - 1.0
        for entry in range(len(columns)):
            if ends[entry] == last[entry] == first[entry] + 1:
                most += float(first[entry])
                continue
            reach = float(last[entry] - ends[entry] + 1)
            self._rows.append(([told[entry], self._columns], [parts[entry], -reach], float(ends[entry] - 1)))
            told[entry], parts[entry] = self._columns, 1.0
            self._columns += 1
        self._rows.append((told, parts, most))

    def program(self) -> LinearProgram | None:
        """Return the program with all of them; None without any."""
        if not self._rows:
            return None
        given, added = self._program, self._columns - self._program.num_cols
        columns, values, limits = zip(*self._rows, strict=True)
        lengths = np.array([len(row) for row in columns])
        below = np.full(len(limits), -np.inf)
        return replace(
            given.with_rows(lengths, np.concatenate(columns), np.concatenate(values), below, np.array(limits)),
            cost=np.append(given.cost, np.zeros(added)),
            col_lower=np.append(given.col_lower, np.zeros(added)),
            col_upper=np.append(given.col_upper, np.ones(added)),
            integer=np.append(given.integer, np.ones(added, bool)),
        )
