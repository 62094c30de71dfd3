"""Linear programs in exact fractions, for small ones: a tableau and two phases, by Bland's rule."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

from .common import FEW_STEPS, Counter

Limit = tuple[Sequence[Fraction | int], Fraction | int]
"""Coefficients and what they may add up to."""


def least(cost: Sequence[Fraction | int], limits: Iterable[Limit], counter: Counter | None = None) -> Fraction | float:
    """Return the least ``cost @ x`` over ``x >= 0`` with ``a @ x <= b`` for each limit ``(a, b)``.

    Infinite where there is no point, and minus infinity where there is no least one.

    Parameters
    ----------
    cost : sequence of number
    limits : iterable of (sequence of number, number)
    counter : Counter, optional
        Of the steps that may be taken: entries of the tableau, a pivot at a time.
    """
    counter = counter or Counter(FEW_STEPS)
    limits = list(limits)
    n, m = len(cost), len(limits)
    counter.step(m * (n + m))
    # The last row is the cost; one artificial column, entered where b is least, makes a first point.
    artificial = n + m
    table = [
        [*map(Fraction, a), *(Fraction(k == i) for k in range(m)), Fraction(-1), Fraction(b)]
        for i, (a, b) in enumerate(limits)
    ]
    basis = list(range(n, n + m))
    target = [*map(Fraction, cost), *[Fraction(0)] * (m + 2)]
    if table and min(row[-1] for row in table) < 0:
        table.append([Fraction(j == artificial) for j in range(n + m + 2)])
        _pivot(table, basis, min(range(m), key=lambda i: table[i][-1]), artificial)
        _minimize(table, basis, counter)
        if table.pop()[-1]:
            return math.inf
        if artificial in basis:
            i = basis.index(artificial)
            _pivot(table, basis, i, next(j for j in range(n + m) if table[i][j]))
    for row in table:
        row[artificial] = Fraction(0)
    for row, basic in zip(table, basis, strict=True):
        if target[basic]:
            factor = target[basic]
            target = [t - factor * a for t, a in zip(target, row, strict=True)]
    table.append(target)
    return -table[-1][-1] if _minimize(table, basis, counter) else -math.inf


def _minimize(table: list[list[Fraction]], basis: list[int], counter: Counter) -> bool:
    """Pivot until the last row has no negative entry; False where it falls without end."""
    while True:
        entering = next((j for j, reduced in enumerate(table[-1][:-1]) if reduced < 0), None)
        if entering is None:
            return True
        ratios = [(row[-1] / row[entering], basis[i], i) for i, row in enumerate(table[:-1]) if row[entering] > 0]
        if not ratios:
            return False
        counter.step(len(table) * len(table[0]) // 4)
        _pivot(table, basis, min(ratios)[2], entering)


def _pivot(table: list[list[Fraction]], basis: list[int], i: int, j: int) -> None:
    pivot = table[i][j]
    table[i] = [a / pivot if a else a for a in table[i]]
    for k, row in enumerate(table):
        if k != i and row[j]:
            factor = row[j]
            table[k] = [a - factor * b if b else a for a, b in zip(row, table[i], strict=True)]
    basis[i] = j
