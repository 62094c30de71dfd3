"""What the tables of ElasticFlow's problems ask beside the library's own functions."""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo

import formulations
from benchmarks.tables import seconds, timed
from formulations import Solution
from formulations.elasticflow.flow import Cut, shares_by_flow
from formulations.worst_case.elasticflow import minimum_satisfactory_share as worst_shares
from heuristics.elasticflow.minimum_satisfactory_share import progressive_filling
from instances.elasticflow.minimum_satisfactory_share import MinimumSatisfactoryShare

__all__ = ["missing", "proof", "shares", "told", "told_whole", "turned_away"]


def proof(instance: MinimumSatisfactoryShare, *, time_limit: float) -> str:
    """Return how far the exact side comes with a gap of 1e-3, and where that leaves one open, within a limit."""
    first, took = timed(formulations.solve, instance, mip_gap=1e-3)
    said = f"{_verdict(first)}, {seconds(took)}"
    return f"{said}; {told(instance, time_limit=time_limit)}" if _open(first) else said


def told(asked: Any, *, time_limit: float) -> str:
    """Return how far the exact side comes within a limit, and its time."""
    solution, took = timed(formulations.solve, asked, time_limit=time_limit)
    return f"{_verdict(solution)}, {seconds(took)}"


def told_whole(instance: MinimumSatisfactoryShare, *, time_limit: float) -> str:
    """Return the same of the whole model by HiGHS alone."""
    return told(formulations.build(instance), time_limit=time_limit)


def _verdict(solution: Solution) -> str:
    return f"gap {solution.gap:.1e}" if _open(solution) else solution.status


def _open(solution: Solution) -> bool:
    """Return True where there is a plan, and a gap."""
    return solution.objective is not None and solution.gap is not None and solution.gap > 0


def shares(instance: MinimumSatisfactoryShare) -> object:
    """Return the shares of a flow that serves all jobs."""
    found = shares_by_flow(instance)
    if isinstance(found, Cut):
        raise RuntimeError(f"no flow serves all jobs: {found}")
    return found


def turned_away(seed: int, **sizes: Any) -> pyo.ConcreteModel:
    """Return the program of the worst case of Algorithm 1 among feasible sets of that size."""
    return worst_shares.turned_away(**sizes)


def missing(model: pyo.ConcreteModel, solution: Solution) -> str:
    """Return the most work that is missing, GPU-slots, where the heuristic bears the worst case out."""
    if solution.objective is not None and solution.objective > 0.5:
        solution.load()
        instance = worst_shares.read(model)
        assert progressive_filling(instance) is None
        assert formulations.solve(instance).status == "optimal"
    # GPU-slots are whole.
    return f"{round(solution.bound)}" if solution.status == "optimal" else f"at most {solution.bound:.4g}"
