"""Programs that problems state of themselves, and certificates held against them.

A certificate proves something of the program that its file states.  Whether that is the program of an instance, or one
that has no fewer points, is another question: each of its constraints must be one that the instance's program has, or a
weaker one, each whole variable must be whole there, and the objective the same, but for rounding of its coefficients,
which is taken off the bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from .common import Number
from .vipr import Constraint, Proven, Refuted, shown

CONSTANT = "constant"
"""The variable of a certificate that is 1, whose coefficient is the objective's constant."""

ROUNDED = Fraction(1, 10**9)
"""How far a coefficient of the objective may be from the instance's, relatively, and be meant for the same."""

Key: TypeAlias = tuple[tuple[str, Fraction], ...]
"""A left side whose first coefficient, in the order of the names, is 1."""


@dataclass
class Program:
    """A program by the names of its variables.

    Attributes
    ----------
    sense : str
        "min" or "max".
    constant : Number
        Of the objective.
    objective : dict
        Costs by variable, of all of them.
    whole : set of str
        The variables that are whole.
    """

    sense: str
    constant: Number = 0
    objective: dict[str, Number] = field(default_factory=dict)
    whole: set[str] = field(default_factory=set)
    _lower: dict[Key, Number] = field(default_factory=dict)
    _upper: dict[Key, Number] = field(default_factory=dict)
    _like: dict[tuple[str, ...], list[Key]] = field(default_factory=dict)

    def variable(
        self, name: str, lower: Number = 0, upper: Number = math.inf, *, whole: bool = True, cost: Number = 0
    ) -> str:
        """Add a variable and return its name."""
        self.objective[name] = cost
        if whole:
            self.whole.add(name)
        self.row({name: 1}, lower, upper)
        return name

    def row(self, terms: Mapping[str, Number], lower: Number = -math.inf, upper: Number = math.inf) -> None:
        """Add the constraint ``lower <= terms <= upper``."""
        key, factor = _key({name: Fraction(a) for name, a in terms.items()})
        low, high = (limit if math.isinf(limit) else Fraction(limit) / factor for limit in (lower, upper))
        if factor < 0:
            low, high = (-end if math.isinf(end) else end for end in (high, low))
        if key not in self._lower:
            self._like.setdefault(tuple(name for name, _ in key), []).append(key)
        self._lower[key] = max(low, self._lower.get(key, -math.inf))
        self._upper[key] = min(high, self._upper.get(key, math.inf))

    def bound(self, proven: Proven) -> Number:
        """Return what a certificate proves of this program: a bound, infinite where that there is no point.

        Raises
        ------
        Refuted
            When its program is not this one, or proves nothing.
        """
        if proven.sense != self.sense:
            raise Refuted(f"the certificate's objective is a {proven.sense!r}, the program's a {self.sense!r}")
        names = proven.names
        known = dict(self.objective)
        constant = CONSTANT if CONSTANT in names and CONSTANT not in known else None
        if constant:
            known[constant] = 0
            self._lower[(constant, Fraction(1)),] = self._upper[(constant, Fraction(1)),] = 1
        for name in names:
            if name not in known:
                raise Refuted(f"the program has no variable {shown(name)}")
        for j in proven.integers:
            if names[j] not in self.whole:
                raise Refuted(f"the program does not ask that {shown(names[j])} is whole")
        for index, row in enumerate(proven.rows):
            if not self._implies(row, names):
                raise Refuted(f"the program does not have the certificate's constraint {index}")
        if proven.infeasible:
            return math.inf if self.sense == "min" else -math.inf
        if proven.bound is None:
            raise Refuted("the certificate proves no bound")
        told = {names[j]: Fraction(a, proven.objective.over) for j, a in proven.objective.terms.items()}
        found: Number = proven.bound + self.constant - (told.get(constant, 0) if constant else 0)
        for name in known:
            cost = Fraction(known[name])
            off = cost - told.get(name, 0)
            if not off or name == constant:
                continue
            if abs(off) > ROUNDED * abs(cost):
                raise Refuted(
                    f"the program's cost of {shown(name)} is {float(cost)!r}, not {float(told.get(name, 0))!r}"
                )
            key = ((name, Fraction(1)),)
            faced = (self._lower if (off > 0) == (self.sense == "min") else self._upper).get(key, math.inf)
            if math.isinf(faced):
                raise Refuted(f"the cost of {shown(name)} is rounded, and it has no bound")
            found += off * faced
        return found

    def _implies(self, row: Constraint, names: list[str]) -> bool:
        key, factor = _key({names[j]: Fraction(a, row.over) for j, a in row.terms.items()})
        right = Fraction(row.right, row.over) / factor
        lower: Number = 0 if not key else self._lower.get(key, -math.inf)
        upper: Number = 0 if not key else self._upper.get(key, math.inf)
        sense = row.sense if factor > 0 else -row.sense
        return (sense < 0 or lower >= right or self._weaker(dict(key), right)) and (
            sense > 0 or upper <= right or self._weaker({name: -a for name, a in key}, -right)
        )

    def _weaker(self, wanted: dict[str, Fraction], right: Fraction) -> bool:
        """Tell whether ``wanted . x >= right`` follows from a multiple of one row and the bounds of its variables.

        So coefficients may be rounded, if the row leaves room for it.
        """
        rows = [
            (multiple, {name: side * a for name, a in key}, side * limit)
            for key in self._like.get(tuple(wanted), ())
            for side, limit in ((1, self._lower[key]), (-1, self._upper[key]))
            if not math.isinf(limit)
            for multiple in _multiples(wanted, {name: side * a for name, a in key})
        ]
        for multiple, terms, limit in [(Fraction(0), {}, Fraction(0)), *rows]:
            parts = [self._least(name, a - multiple * terms.get(name, 0)) for name, a in wanted.items()]
            if -math.inf not in parts and right <= multiple * limit + sum(parts):
                return True
        return False

    def _least(self, name: str, cost: Fraction) -> Number:
        """Return the least of a variable times a number."""
        if not cost:
            return 0
        key = ((name, Fraction(1)),)
        bound = self._lower.get(key, -math.inf) if cost > 0 else self._upper.get(key, math.inf)
        return -math.inf if math.isinf(bound) else cost * bound


def _multiples(wanted: Mapping[str, Fraction], terms: Mapping[str, Fraction]) -> set[Fraction]:
    """Return positive multiples of a row that leave no coefficient of one sign above, or none below, what is wanted."""
    ratios = [[wanted[name] / a for name, a in terms.items() if (a > 0) == up] for up in (False, True)]
    return {ratio for some in ratios if some for ratio in (min(some), max(some)) if ratio > 0}


def _key(terms: Mapping[str, Fraction]) -> tuple[Key, Fraction]:
    """Return a left side divided by its first coefficient, and that."""
    ordered = sorted((name, a) for name, a in terms.items() if a)
    if not ordered:
        return (), Fraction(1)
    first = ordered[0][1]
    return tuple((name, a / first) for name, a in ordered), first
