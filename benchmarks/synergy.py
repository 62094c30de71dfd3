"""What the tables of Synergy's problems ask beside the library's own functions."""

from __future__ import annotations

from typing import Any

import formulations
from formulations import Solution
from formulations.synergy.allocation import relaxation
from heuristics.synergy.placement import balanced_fit, best_fit, swap_fit
from instances.synergy import allocation
from instances.synergy.placement import SynergyPlacement
from instances.synergy.tuning import Tuning

__all__ = ["fits", "second_stage", "skipped", "stage_one", "theorem"]


def second_stage(seed: int, *, integral_gpus: bool = False, **options: Any) -> SynergyPlacement:
    """Return jobs of published models with the resources that the first stage's optimum gives them."""
    first = allocation.from_mix(seed, **options)
    plan: Any = formulations.solve(first).plan
    return first.placement(plan, integral_gpus=integral_gpus)


def fits(instance: SynergyPlacement) -> str:
    """Return the fragmented jobs of three heuristics."""
    plans = (heuristic(instance) for heuristic in (best_fit, balanced_fit, swap_fit))
    return "/".join("–" if plan is None else f"{instance.objective(plan):.0f}" for plan in plans)


def stage_one(instance: Tuning, best: Solution) -> float:
    """Return the first stage's optimum over the best plan's value."""
    return formulations.solve(instance.stage_one()).bound / float(best.objective or 0.0)


def theorem(instance: Tuning, best: Solution) -> float:
    """Return the bound of Theorem 4.1 over the best plan's value."""
    return formulations.solve(relaxation(instance.stage_one())).bound / float(best.objective or 0.0)


def skipped(instance: Tuning, plan: Any) -> float:
    """Return the share of jobs that a plan leaves out."""
    return float(instance.skipped(plan).mean())
