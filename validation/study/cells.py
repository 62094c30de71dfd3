"""Cells of a study: one algorithm on one instance, each a task that stands by itself.

A :class:`Cell` holds all that it takes to compute its row (:func:`run_cell`), so that any executor can
run it, here or on another machine.
"""

from __future__ import annotations

import copy
import hashlib
import inspect
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import formulations
from instances.base import Plan, PlanError
from validation import catalogue
from validation.catalogue import Heuristic
from validation.study.cases import Algorithm, AnyInstance, Case
from validation.study.keys import exact_code, heuristic_code
from validation.workers import Outcome

__all__ = ["Cell", "call_heuristic", "cell_record", "cells_of", "row_of", "run_cell", "run_heuristic", "solve_exactly"]


LARGEST_PLAN = 4_000
"""Characters of a plan's JSON up to which the log keeps it."""


@dataclass(frozen=True)
class Cell:
    """One algorithm on one instance.

    Attributes
    ----------
    case : Case
        The instance, and where it comes from.
    algorithm : Algorithm
        The heuristic, or the exact solve with its solver and time limit.
    seed : int
        Of random heuristics.
    key : str
        Hash of all that the row depends on.
    """

    case: Case
    algorithm: Algorithm
    seed: int
    key: str


def cells_of(cases: Sequence[Case], algorithms: Mapping[str, Sequence[Algorithm]], seed: int) -> list[Cell]:
    """Every algorithm of a problem on every one of its instances."""
    code = {(problem, one.name): _code(problem, one) for problem, found in algorithms.items() for one in found}
    return [
        Cell(case, one, seed, _key(case.instance, one, code[case.instance.problem, one.name], seed))
        for case in cases
        for one in algorithms[case.instance.problem]
    ]


def run_cell(cell: Cell) -> dict[str, Any]:
    """Row entries of a cell."""
    instance, algorithm = cell.case.instance, cell.algorithm
    if algorithm.heuristic is None:
        return solve_exactly(instance, algorithm.options["solver"], algorithm.options["time_limit"])
    return run_heuristic(instance, algorithm.heuristic, cell.seed)


def solve_exactly(instance: AnyInstance, solver: str, time_limit: float) -> dict[str, Any]:
    """Row entries of the exact side of an instance."""
    solution = formulations.solve(instance, solver=solver, time_limit=time_limit)
    return {
        "status": solution.status,
        "reason": f"{solution.message}; proof: {solution.proof or 'none'}",
        "value": solution.objective,
        "bound": solution.bound if np.isfinite(solution.bound) else None,
        "seconds": solution.build_seconds + solution.solve_seconds,
        "solver": f"{solution.solver} {solution.solver_version}",
        "relaxation": _relaxation(instance),
        "plan": _small(solution.plan),
    }


def _relaxation(instance: AnyInstance) -> float | None:
    """The bound that the paper measures its heuristic against, where the catalogue has one."""
    bound = catalogue.entry(instance.problem).relaxation
    value = None if bound is None else bound(instance)
    return value if value is not None and np.isfinite(value) else None


def call_heuristic(instance: AnyInstance, heuristic: Heuristic, seed: int) -> tuple[Any, float]:
    """A heuristic's plan and its seconds; a random one draws from a stream of seed and instance alone.

    It gets a copy, so that nothing it does to the instance reaches the judge.
    """
    given = copy.deepcopy(instance)
    options = {}
    if _is_random(heuristic):
        options["rng"] = np.random.default_rng([seed, int(instance.digest[:16], 16)])
    began = time.perf_counter()
    plan = heuristic.function(given, **options)
    return plan, time.perf_counter() - began


def run_heuristic(instance: AnyInstance, heuristic: Heuristic, seed: int) -> dict[str, Any]:
    """Row entries of a heuristic on an instance: its plan is judged by the instance."""
    plan, seconds = call_heuristic(instance, heuristic, seed)
    entries: dict[str, Any] = {"seconds": seconds, "value": None, "reason": ""}
    if plan is None:
        if heuristic.declines:
            return {**entries, "status": "declined", "reason": "the heuristic found no plan"}
        return {**entries, "status": "failed", "reason": "returned None"}
    try:
        broken = instance.violations(plan)
        if broken:
            reason = "; ".join(map(str, broken[:3])) + (f"; {len(broken) - 3} more" if len(broken) > 3 else "")
            return {**entries, "status": "infeasible", "reason": reason}
        return {**entries, "status": "feasible", "value": instance.objective(plan), "plan": _small(plan)}
    except PlanError as error:
        return {**entries, "status": "failed", "reason": str(error)}


def _small(plan: Plan | None) -> dict[str, Any] | None:
    """A plan as JSON for the report's pictures; None where it would make the log heavy."""
    entries = None if plan is None else plan.to_dict()
    return entries if entries is not None and len(json.dumps(entries)) <= LARGEST_PLAN else None


def row_of(cell: Cell, outcome: Outcome) -> dict[str, Any]:
    """The row of a cell that has ended, however it did."""
    row = cell_record(cell)
    if outcome.reason:
        row |= {"status": "failed", "reason": outcome.reason, "value": None, "seconds": outcome.seconds}
    else:
        row |= outcome.result
        row["engine_seconds"] = outcome.seconds - row["seconds"]
    value = row.get("value")
    if value is not None and not np.isfinite(value):
        row |= {"status": "failed", "reason": f"the plan is worth {value}", "value": None}
    return row


def cell_record(cell: Cell) -> dict[str, Any]:
    """The entries of a row that are known before the cell runs."""
    return {
        "key": cell.key,
        "problem": cell.case.instance.problem,
        "sense": cell.case.instance.sense,
        "source": cell.case.source,
        "size": cell.case.size,
        "index": cell.case.index,
        "instance": cell.case.instance.digest,
        "file": cell.case.file,
        "algorithm": cell.algorithm.name,
    }


def _code(problem: str, algorithm: Algorithm) -> list[str]:
    """Version of the code that an algorithm runs."""
    if algorithm.heuristic is None:
        return exact_code(problem, algorithm.options["solver"])
    return heuristic_code(algorithm.heuristic.function)


def _key(instance: AnyInstance, algorithm: Algorithm, code: list[str], seed: int) -> str:
    """Hash of all that the row of a cell depends on."""
    content = {
        "problem": instance.problem,
        "instance": instance.digest,
        "algorithm": algorithm.name,
        "options": dict(algorithm.options),
        "seed": seed if algorithm.heuristic is not None and _is_random(algorithm.heuristic) else None,
        "code": code,
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _is_random(heuristic: Heuristic) -> bool:
    try:
        return "rng" in inspect.signature(heuristic.function).parameters
    except ValueError:  # A function of a library in C that does not tell its parameters.
        return False
