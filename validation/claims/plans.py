"""What is best, by the reference, and the plans that a counterexample's words and picture show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import formulations
from instances.base import Instance, Plan
from validation import catalogue
from validation.claims.claim import Plans
from validation.kernel.gaps import beats
from validation.testing.second_opinion import optimum

__all__ = ["OPTIMAL", "better_than", "optimal_plan", "plans_of"]

OPTIMAL = "optimal"
"""Name of the exact model's plan."""


def better_than(instance: Instance[Any], value: float) -> float | None:
    """Return the best value that a plan can have, by the reference, where it beats ``value``; None where it does not.

    The reference shares nothing with the heuristics that are judged by it, nor with the models.
    """
    best = optimum(instance)
    return float(best) if best is not None and beats(instance.sense, float(best), value) else None


def optimal_plan(instance: Instance[Any]) -> Any:
    """Return the plan of the exact model; None where there is none."""
    solution = formulations.solve(instance)
    assert solution.status in ("optimal", "infeasible"), solution
    return solution.plan


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
    if name == OPTIMAL:
        return optimal_plan(instance)
    return catalogue.entry(instance.problem).heuristics[name].function(instance)
