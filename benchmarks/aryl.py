"""What the tables of Aryl's problems ask beside the library's own functions."""

from __future__ import annotations

from formulations import Solution
from formulations.engine.highs import Session
from formulations.methods.branching import relaxation
from heuristics.aryl.placement import best_fit_decreasing
from instances.aryl.elastic_allocation import ElasticAllocation
from instances.aryl.placement import ArylPlacement, ArylPlacementPlan
from instances.aryl.reclaim import Reclaim
from instances.aryl.two_job import ArylTwoJob, ArylTwoJobPlan

__all__ = ["best_split", "core", "num_choices", "opens_more", "relaxed"]


def core(instance: ElasticAllocation, solution: Solution) -> float:
    """Return of how many jobs a model was made."""
    told = solution.message.partition(" of ")[0].replace(",", "")
    return float(told) if told.isdigit() else 0.0


def num_choices(instance: ElasticAllocation) -> int:
    """Return the choices of all jobs together."""
    return int(instance.max_extra.sum())


def opens_more(instance: ArylPlacement, best: Solution) -> bool | None:
    """Return True where the heuristic opens more servers than needed, None where it or the exact side has no plan."""
    fast = best_fit_decreasing(instance)
    if best.status != "optimal" or not isinstance(best.plan, ArylPlacementPlan) or instance.violations(fast):
        return None
    return instance.servers_opened(fast) > instance.servers_opened(best.plan)


def relaxed(instance: Reclaim) -> float:
    """Return the bound of the relaxation."""
    return Session().run(relaxation(instance)).bound


def best_split(instance: ArylTwoJob) -> ArylTwoJobPlan:
    """Return the best of all splits."""
    return min(map(instance.split, instance.splits), key=instance.objective)
