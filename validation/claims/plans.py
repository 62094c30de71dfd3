"""Plans of heuristics and of the exact model that a counterexample's picture shows, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import formulations
from instances.base import Instance, Plan
from validation import catalogue
from validation.claims.claim import Plans

__all__ = ["OPTIMAL", "plans_of"]

OPTIMAL = "optimal"
"""Name of the exact model's plan."""


def plans_of(*which: str | tuple[str, Callable[[Any], Plan | None]]) -> Plans:
    """Return the plans that a picture shows, without those that were not found.

    Parameters
    ----------
    *which : str, or (str, callable)
        A heuristic of the catalogue, or :data:`OPTIMAL`; or any name, with what makes a plan of the instance.
    """

    def plans(instance: Instance[Any]) -> dict[str, Plan]:
        found = ((one, _named(instance, one)) if isinstance(one, str) else (one[0], one[1](instance)) for one in which)
        return {name: plan for name, plan in found if plan is not None}

    return plans


def _named(instance: Instance[Any], name: str) -> Any:
    if name != OPTIMAL:
        return catalogue.entry(instance.problem).heuristics[name].function(instance)
    solution = formulations.solve(instance)
    assert solution.status in ("optimal", "infeasible"), solution
    return solution.plan
