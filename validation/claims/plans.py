"""What is best, by the reference, and the plans that a counterexample's words and picture show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import formulations
from formulations import Solution
from instances.base import Instance, Plan, agree
from instances.reference import TooLarge
from validation import catalogue
from validation.claims.claim import Plans
from validation.kernel.gaps import beats
from validation.testing.second_opinion import optimum

__all__ = ["OPTIMAL", "Ground", "better_than", "optimal_plan", "plans_of", "proven"]

OPTIMAL = "optimal"
"""Name of the exact model's plan."""

Ground = Literal["prices", "enumeration", "certificate"]
"""What an optimum rests on: a linear program's prices, the reference's enumeration, or derivations in fractions."""


def better_than(instance: Instance[Any], value: float) -> float | None:
    """Return the best value that a plan can have, by the reference, where it beats ``value``; None where it does not.

    The reference shares nothing with the heuristics that are judged by it, nor with the models.
    """
    best = optimum(instance)
    return float(best) if best is not None and beats(instance.sense, float(best), value) else None


def proven(instance: Instance[Any]) -> tuple[Solution, Ground]:
    """Return the exact model's solution, and what it rests on: no claim takes a mixed-integer run's word.

    Raises
    ------
    AssertionError
        When nothing proves it, or the reference finds another optimum.
    """
    solution = formulations.solve(instance, verify=False)
    assert solution.status in ("optimal", "infeasible"), solution
    if solution.proof == "prices":
        return solution, "prices"
    try:
        best = optimum(instance)
    except TooLarge:
        solution = formulations.certify(instance, solution)
        assert formulations.verify(instance, solution).verdict == "confirmed", solution
        return solution, "certificate"
    value = solution.objective
    assert best is None if value is None else best is not None and agree(value, float(best)), (best, solution)
    return solution, "enumeration"


def optimal_plan(instance: Instance[Any]) -> Any:
    """Return a plan that is proven best; None where there is none."""
    return proven(instance)[0].plan


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
