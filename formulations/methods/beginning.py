"""The plan that a search begins with where a heuristic has a good one long before the search has.

Whoever gives a solve a limit gets the best plan known by then, and that should be no worse than what a heuristic has in
a tenth of the time.  So searches that last begin with the plan of the heuristic that comes closest.  It is a plan like
any other: the instance says what it is worth, and no bound or proof rests on it.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from formulations.engine import clock
from instances.base import Instance, Plan

__all__ = ["BEGINNINGS", "Beginning", "plan_of_heuristic"]

LEAST_LEFT = 0.3
"""Seconds that must be left, by which a heuristic takes no more than a good part of them."""


@dataclass(frozen=True)
class Beginning:
    """A heuristic, and for which sizes it is quick beside the search.

    Attributes
    ----------
    heuristic : str
        Name in ``heuristics.<paper>.<problem>``.
    size : str
        Name of the dimension, as ``instance.dims`` has it.
    least, most : int
        Sizes between which it is asked: below, the search is as quick; above, it takes more than some tenths of a
        second.
    """

    heuristic: str
    size: str
    least: int
    most: int


BEGINNINGS: dict[str, Beginning] = {
    "afs.elastic_sharing": Beginning("local_search", "n", 16, 200),
    "afs.gpu_placement": Beginning("priced_first_fit", "n", 48, 1000),
    "aryl.base_allocation": Beginning("local_search", "n", 8, 400),
    "aryl.reclaim": Beginning("tabu_search", "s", 100, 2000),
    "elasticflow.best_effort": Beginning("local_search", "n", 16, 100),
    "elasticflow.placement": Beginning("priced_repack", "n", 16, 10_000),
    "gavel.finish_time_fairness": Beginning("interior_point", "n", 500, 4000),
    "gavel.round_assignment": Beginning("iterated_greedy", "n", 200, 3000),
    "synergy.placement": Beginning("swap_fit", "n", 100, 1000),
    "sia.goodput": Beginning("priced_types", "n", 200, 1000),
    "prism.placement": Beginning("local_search", "n", 4, 200),
    "eplb.placement": Beginning("local_search", "e", 4, 1000),
}
"""Of which problems, by their names."""


def plan_of_heuristic(instance: Instance[Any]) -> Plan | None:
    """Return the heuristic's plan to begin with; None where there is none, or no time for it."""
    known = BEGINNINGS.get(instance.problem)
    if known is None or not known.least <= instance.dims[known.size] <= known.most or clock.left() < LEAST_LEFT:
        return None
    module = importlib.import_module(f"heuristics.{instance.problem}")
    plan: Plan | None = getattr(module, known.heuristic)(instance)
    return plan
