"""The reference beside the instances' own judges."""

import json
import math
from typing import Any

from instances.base import Instance, PlanError
from instances.reference import Malformed, Reference
from validation.testing.second_opinion import optimum, reference_of

__all__ = ["judged", "optimum", "reference_of", "referred", "same"]


def same(exact: Any, value: float, size: float = 0.0) -> bool:
    """Whether a fraction and a float are equal but for rounding."""
    if math.isinf(value) or exact in (math.inf, -math.inf):
        return bool(exact == value)
    return bool(abs(float(exact) - value) <= 1e-9 * max(abs(value), size))


def judged(instance: Instance[Any], plan: dict[str, Any]) -> tuple[set[str], float] | None:
    """Rules that a plan breaks and its value, by the instance; None where it is none."""
    try:
        read = instance.plan_type.from_dict(plan)
        return {violation.rule for violation in instance.violations(read)}, instance.objective(read)
    except PlanError:
        return None


def referred(reference: Reference, plan: dict[str, Any]) -> tuple[set[str], Any] | None:
    """The same by the reference."""
    text = json.dumps(plan)
    try:
        return set(reference.violations(text)), reference.value(text)
    except Malformed:
        return None
