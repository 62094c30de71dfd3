"""Answers of the reference to an instance of the library."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from instances.base import Instance
from instances.files import text_of
from instances.reference import Reference

__all__ = ["optimum", "reference_of"]


def reference_of(instance: Instance[Any]) -> Reference | None:
    """Return the instance as the reference reads it; None of a problem from outside, which it does not know."""
    try:
        return Reference(text_of(instance))
    except KeyError:
        return None


def optimum(instance: Instance[Any]) -> Fraction | None:
    """Return the best value that a plan can have, by the reference's search; None where there is no plan.

    Raises
    ------
    TooLarge
        When the search would take too many steps, as of all but small instances.
    """
    found = Reference(text_of(instance)).optimum()
    return None if math.isinf(found) else Fraction(found)
