"""Cores: prices settle most choices of an instance, and the model of those that are left is solved.

Prices bound all plans, and a plan with a certain choice is worse than the bound by at least what the choice loses at
the prices.  So once a plan is known, every choice is settled that loses more than lies between plan and bound, and what
is left, the core, is a smaller instance of the same problem.  A better plan makes the core smaller, so the first search
is one for a plan, among what loses least.

References
----------
Kellerer, Pferschy, Pisinger, "Knapsack Problems" (2004), chapter 11, for the core of a multiple-choice knapsack.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from formulations.engine import clock
from formulations.engine.highs import Proof
from formulations.engine.options import Options
from formulations.engine.solution import Solution
from instances.base import Instance, Plan, agree
from instances.schema import BoolArray, FloatArray

__all__ = ["Searched", "search"]

ROUNDING = 1e-12
"""Part of the bound that its sums may owe to rounding."""

P = TypeVar("P", bound=Plan)


@dataclass(frozen=True)
class Searched(Generic[P]):
    """What the searches of a core found: a plan, a bound and what it rests on, in how many of the solver's seconds."""

    plan: P
    bound: float
    proof: Proof
    seconds: float
    message: str


def search(
    instance: Instance[P],
    plan: P,
    relaxed: float,
    loss: FloatArray,
    nearest: float,
    options: Options,
    among: Callable[[BoolArray, P, Options], tuple[P, Solution]],
    *,
    words: tuple[str, str],
) -> Searched[P]:
    """Search among the choices that lose least for a plan, and then among all that are not settled.

    Parameters
    ----------
    instance : Instance
    plan : Plan
        The best that is known.
    relaxed : float
        The bound at the prices.
    loss : array of float
        What each choice loses there, at least 0.
    nearest : float
        Up to what loss choices are in the first search.
    options : Options
    among : callable
        ``among(core, plan, options)`` solves the instance that has some of the choices alone; it returns the better of
        the plan and of what is found, and the solution.
    words : pair of str
        What has prices, and what the choices are.
    """
    sign, better, worse = (1.0, min, max) if instance.sense == "min" else (-1.0, max, min)
    margin = ROUNDING * abs(relaxed)
    found: Searched[Any] = Searched(plan, relaxed, "prices", 0.0, f"the prices of {words[0]} settle all")
    for reach in (nearest, math.inf):
        value = instance.objective(found.plan)
        core = loss <= min(reach, sign * (value - relaxed) + margin)
        if agree(value, relaxed) or not core.any() or clock.is_up():
            break
        last = reach == math.inf
        with clock.within(clock.left() if last else clock.left() / 2):
            plan, solution = among(core, found.plan, options if last else replace(options, verify=False))
        found = replace(found, plan=plan, seconds=found.seconds + solution.solve_seconds)
        if last:
            # Nothing outside of what was searched is better than this.
            settled = relaxed + sign * (float(loss[~core].min(initial=math.inf)) - margin)
            bound = worse(relaxed, better(solution.bound, settled, instance.objective(plan)))
            message = f"{int(core.sum()):,} of {core.size:,} {words[1]} are in the core: {solution.message}"
            proof: Proof = "prices" if bound == relaxed else solution.proof or "prices"
            found = replace(found, bound=bound, proof=proof, message=message)
    return found
