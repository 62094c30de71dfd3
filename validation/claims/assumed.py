"""Predicates of what claims assume; each says in its first line what instances keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from instances.base import Instance
from instances.schema import FloatArray

__all__ = ["concave", "only", "power_of_two"]


def only(*examples: Instance[Any]) -> Callable[[Any], bool]:
    """Return the predicate of claims about examples."""

    def is_one(instance: Instance[Any]) -> bool:
        """Return whether it is the example that the claim names."""
        return instance in examples

    return is_one


def concave(curves: FloatArray, *, strictly_rising: bool = False) -> bool:
    """Return whether the first GPU of each curve helps, and no further one adds more than the one before or harms."""
    gains = np.diff(curves, axis=1)
    least = gains.min(initial=np.inf)
    falls = bool((np.diff(gains, axis=1) <= 0).all())
    return falls and bool((gains[:, 0] > 0).all()) and bool(least > 0 if strictly_rising else least >= 0)


def power_of_two(number: int) -> bool:
    """Return whether a number is a power of two."""
    return number > 0 and number & (number - 1) == 0
