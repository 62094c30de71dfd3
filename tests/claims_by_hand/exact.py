"""Vertices of a polytope, in fractions: every optimum of a linear program is a mixture of the best of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

__all__ = ["Row", "Vector", "best", "dot", "vertices"]

Vector = tuple[Fraction, ...]
Row = tuple[Sequence[Fraction | int], Fraction | int]
"""Coefficients of a row and what it may be at most."""


def dot(first: Sequence[Fraction | int], second: Sequence[Fraction | int]) -> Fraction:
    return sum((Fraction(a) * b for a, b in zip(first, second, strict=True)), Fraction(0))


def vertices(size: int, rows: Sequence[Row]) -> set[Vector]:
    """The vertices of what is at least 0 and within all rows: as many of these limits as variables hold with equality,
    of rows that do not follow from each other."""
    limits = [([int(i == one) for i in range(size)], 0) for one in range(size)]
    return {
        point
        for point in _crossings(size, [*limits, *rows], [])
        if min(point) >= 0 and all(dot(row, point) <= limit for row, limit in rows)
    }


def _crossings(size: int, left: Sequence[Row], solved: list[list[Fraction]]) -> Iterator[Vector]:
    """Where ``size`` rows cross, ``solved`` the first of them: a column of 1 that the others do not have, each."""
    if len(solved) == size:
        by_column = {row.index(1): row[-1] for row in solved}
        yield tuple(by_column[column] for column in range(size))
        return
    for place, (coefficients, limit) in enumerate(left):
        row = [*map(Fraction, coefficients), Fraction(limit)]
        for other in solved:
            column = other.index(1)
            row = [a - row[column] * b for a, b in zip(row, other, strict=True)]
        pivot = next((column for column in range(size) if row[column]), None)
        if pivot is None:
            continue
        row = [each / row[pivot] for each in row]
        reduced = [[a - other[pivot] * b for a, b in zip(other, row, strict=True)] for other in solved]
        yield from _crossings(size, left[place + 1 :], [*reduced, row])


def best(size: int, rows: Sequence[Row], worth: Sequence[Fraction | int]) -> tuple[Fraction, list[Vector]]:
    """The greatest worth within a polytope, and the vertices that have it."""
    points = vertices(size, rows)
    most = max(dot(worth, point) for point in points)
    return most, [point for point in points if dot(worth, point) == most]
