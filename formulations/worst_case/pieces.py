"""Pieces of worst-case models: products with a choice, and data from a solver's point."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import pyomo.environ as pyo

__all__ = ["snapped", "switched", "whole_multiples"]

SNAP = 1e-7
"""Relative distance from a fraction of small numbers at which a number of a point is taken for it."""
DENOMINATOR = 1000
"""Of such fractions, at most."""


def switched(
    model: pyo.ConcreteModel,
    name: str,
    members: pyo.Set,
    product: Callable[..., tuple[Any, Any]],
    *,
    most: float,
) -> pyo.Var:
    """Products of a choice and a number, exactly: variables ``name[i]``, and the rows that make them the products.

    Parameters
    ----------
    model : ConcreteModel
    name : str
        Of the variables; their rows are called after them.
    members : Set
    product : callable
        ``product(i) -> (choice, number)``: a binary, and an expression from 0 to ``most``.
    most : float
        The number's own limit, from its bounds or an argument: not one that is merely large.
    """
    variables = pyo.Var(members, bounds=(0, most))

    def rows(model: pyo.ConcreteModel, row: int, *index: Any) -> Any:
        made, (choice, number) = variables[index], product(*index)
        if row == 0:
            return made <= most * choice
        return made <= number if row == 1 else made >= number - most * (1 - choice)

    model.add_component(name, variables)
    model.add_component(f"{name}_is_product", pyo.Constraint(range(3), members, rule=rows))
    return variables


def snapped(value: float) -> float:
    """Return a number of a solver's point as the fraction of small numbers beside it, if there is one, else as it is.

    What a solver makes of 1/3 would else break a tie that the model means.
    """
    near = float(Fraction(value).limit_denominator(DENOMINATOR))
    return near if abs(near - value) <= SNAP * max(1.0, abs(value)) else value


def whole_multiples(values: Iterable[float]) -> list[int]:
    """Numbers of a solver's point, as fractions of small numbers, times what makes all of them whole."""
    found = [Fraction(value).limit_denominator(DENOMINATOR) for value in values]
    times = math.lcm(*(one.denominator for one in found))
    return [int(one * times) for one in found]
