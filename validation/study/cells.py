"""Cells of a study: one algorithm on one instance, each a task that stands by itself.

A :class:`Cell` holds, beside the data of its instance, all that it takes to compute its row (:func:`run_cell`), so
that any executor can run it, here or on another machine.  A heuristic runs apart from the process that judges it
(:mod:`validation.isolation`); what crosses is the data of its plan.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

import formulations
from instances.base import Plan, PlanError
from instances.schema import declarations
from validation import catalogue
from validation.catalogue import Heuristic
from validation.formatting import printable
from validation.isolation import Apart, plain
from validation.study.cases import Algorithm, AnyInstance, Case
from validation.study.keys import exact_code, heuristic_code
from validation.study.options import shard_of
from validation.study.records import LARGEST
from validation.workers import Outcome

__all__ = [
    "Asked",
    "Asking",
    "Cell",
    "ask",
    "cell_record",
    "cells_of",
    "in_shard",
    "judged",
    "row_of",
    "run_cell",
    "solve_exactly",
]


LARGEST_PLAN = 4_000
"""Characters of a plan's JSON up to which the log keeps it."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One algorithm on one instance.

    Attributes
    ----------
    case : Case
        Which instance, and where it comes from.
    algorithm : Algorithm
        The heuristic, or the exact solve with its solver and time limit.
    seed : int
        Of random heuristics.
    key : str
        Hash of all that the row depends on.
    time_limit : float
        Of the algorithm, s.
    memory : int, optional
        Bytes that it may take; a heuristic is stopped by whoever asks it, an exact solve by whoever runs the cell.
    """

    case: Case
    algorithm: Algorithm
    seed: int
    key: str
    time_limit: float
    memory: int | None

    @property
    def exact_limit(self) -> float:
        """Seconds of an exact cell: its limit, and as long again where what is found is verified."""
        return self.time_limit * (2 if self.algorithm.verifies else 1)


def cells_of(
    cases: Sequence[Case],
    algorithms: Mapping[str, Sequence[Algorithm]],
    seed: int,
    *,
    time_limit: float,
    memory: int | None = None,
) -> list[Cell]:
    """Every algorithm of a problem on every one of its instances."""
    code = {(problem, one.name): _code(problem, one) for problem, found in algorithms.items() for one in found}
    return [
        Cell(case, one, seed, _key(case, one, code[case.problem, one.name], seed), time_limit, memory)
        for case in cases
        for one in algorithms[case.problem]
    ]


def in_shard(key: str, shard: str) -> bool:
    """Whether a cell belongs to a shard "i/n": each belongs to one of the n, told by its key alone."""
    told = shard_of(shard)
    assert told is not None
    number, parts = told
    return int(key, 16) % parts == number


def run_cell(cell: Cell, instance: AnyInstance) -> dict[str, Any]:
    """Row entries of a cell, whose instance whoever runs it has made or read."""
    algorithm = cell.algorithm
    if algorithm.heuristic is None:
        return solve_exactly(instance, algorithm.options["solver"], cell.time_limit, verify=algorithm.verifies)
    return judged(instance, algorithm.heuristic, cell.seed, seconds=cell.time_limit, memory=cell.memory)


def solve_exactly(instance: AnyInstance, solver: str, time_limit: float, *, verify: bool) -> dict[str, Any]:
    """Row entries of the exact side of an instance."""
    solution = formulations.solve(instance, solver=solver, time_limit=time_limit)
    second = formulations.verify(instance, solution, time_limit=time_limit) if verify else None
    return {
        "status": solution.status,
        "reason": f"{solution.message}; proof: {solution.proof or 'none'}",
        "value": solution.objective,
        "bound": _sayable(solution.bound),
        "seconds": solution.build_seconds + solution.solve_seconds,
        "solver": f"{solution.solver} {solution.solver_version}",
        "relaxation": _relaxation(instance),
        "plan": _small(solution.plan),
        "verification": None if second is None else second.verdict,
        "second": None if second is None else second.to_dict(),
    }


def _relaxation(instance: AnyInstance) -> float | None:
    """The bound that the paper measures its heuristic against, where the catalogue has one."""
    bound = catalogue.entry(instance.problem).relaxation
    return None if bound is None else _sayable(bound(instance))


def _sayable(value: float) -> float | None:
    """A number, where it is one that the log can hold."""
    return value if abs(value) <= LARGEST else None


@dataclass(frozen=True)
class Asked:
    """What came of asking a heuristic.

    Attributes
    ----------
    plan : Plan, optional
        Made of the data of its answer; None where it declined, or there is no answer.
    seconds : float
    reason : str
        Why there is no plan to be judged: it raised, died, was stopped or returned something else.
    """

    plan: Plan | None
    seconds: float
    reason: str = ""


class Asking:
    """A heuristic in a process of its own; a random one draws from a stream of seed and instance alone.

    Parameters
    ----------
    heuristic : Heuristic
    seed : int
    memory : int, optional
        Bytes above which it is stopped.

    Notes
    -----
    For one instance, :func:`ask`.  Asked of several, the heuristic is called in one process as long as
    that lives, so that what it keeps there is its own affair.  To be used as a context.
    """

    def __init__(self, heuristic: Heuristic, seed: int, *, memory: int | None = None) -> None:
        for module in heuristic.imports:
            importlib.import_module(module)
        # The function reaches a forked process as it is, so that it need not be picklable.
        self.apart = Apart(functools.partial(answered, heuristic, seed), memory=memory)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.apart.close()

    def ask(self, instance: AnyInstance, *, seconds: float) -> Asked:
        """Its plan for an instance, after at most ``seconds``."""
        answer = self.apart.ask(instance, seconds=seconds)
        plan, reason = _plan_of(instance, answer.content) if answer.content is not None else (None, answer.reason)
        return Asked(plan, answer.seconds, plain(reason))


def ask(instance: AnyInstance, heuristic: Heuristic, seed: int, *, seconds: float, memory: int | None = None) -> Asked:
    """A heuristic's plan for one instance, from a process that nothing else uses."""
    with Asking(heuristic, seed, memory=memory) as asking:
        return asking.ask(instance, seconds=seconds)


def answered(heuristic: Heuristic, seed: int, instance: AnyInstance) -> dict[str, Any]:
    """What a heuristic returns, as data: the declared fields of its plan."""
    options = {}
    if heuristic.random:
        options["rng"] = np.random.default_rng([seed, int(instance.digest[:16], 16)])
    kind = instance.plan_type
    plan = heuristic.function(instance, **options)
    if plan is None:
        return {"none": True}
    if not isinstance(plan, kind):
        return {"other": type(plan).__name__}
    # Not by a method of the plan's, which may be a class of the user's.
    return {f"plan.{name}": _data(getattr(plan, name)) for name in declarations(kind)}


def _data(value: Any) -> Any:
    """A field without what a class of the user's may add to it."""
    if isinstance(value, np.ndarray):
        return np.asarray(value).view(np.ndarray)
    if isinstance(value, (list, tuple)):
        return [_data(one) for one in value]
    return value


def _plan_of(instance: AnyInstance, content: Mapping[str, Any]) -> tuple[Plan | None, str]:
    """The plan that an answer describes, checked field by field, or why there is none."""
    if "error" in content:
        return None, str(content["error"])
    if "none" in content:
        return None, ""
    if "other" in content:
        return None, f"{instance.problem}: a plan must be a {instance.plan_type.__name__}, got {content['other']}"
    fields = {name: content.get(f"plan.{name}") for name in declarations(instance.plan_type)}
    try:
        return instance.plan_type(**fields), ""
    except (PlanError, TypeError, RecursionError) as error:
        return None, str(error)


def judged(
    instance: AnyInstance, heuristic: Heuristic, seed: int, *, seconds: float, memory: int | None
) -> dict[str, Any]:
    """Row entries of a heuristic on an instance: its plan is judged by the instance."""
    asked = ask(instance, heuristic, seed, seconds=seconds, memory=memory)
    plan = asked.plan
    entries: dict[str, Any] = {"seconds": asked.seconds, "value": None, "reason": asked.reason}
    if asked.reason:
        return {**entries, "status": "failed"}
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
    # What the reader of the log would not take for a row must not be written as one.
    row["reason"] = printable(row["reason"])
    value = row.get("value")
    if value is not None and not abs(value) <= LARGEST:
        row |= {"status": "failed", "reason": f"the plan is worth {value}", "value": None}
    return row


def cell_record(cell: Cell) -> dict[str, Any]:
    """The entries of a row that are known before the cell runs."""
    return {
        "key": cell.key,
        "problem": cell.case.problem,
        "sense": cell.case.sense,
        "source": cell.case.source,
        "size": cell.case.size,
        "index": cell.case.index,
        "instance": cell.case.digest,
        "file": cell.case.file,
        "algorithm": cell.algorithm.name,
        **cell.case.swept,
    }


def _code(problem: str, algorithm: Algorithm) -> list[str]:
    """Version of the code that an algorithm runs."""
    if algorithm.heuristic is None:
        return exact_code(problem, algorithm.options["solver"], verify=algorithm.verifies)
    code = heuristic_code(algorithm.heuristic.function)
    # One that solves programs depends on what solves them.
    return code + exact_code(problem, "highs") if "formulations" in algorithm.heuristic.imports else code


def _key(case: Case, algorithm: Algorithm, code: list[str], seed: int) -> str:
    """Hash of all that the row of a cell depends on."""
    content = {
        "problem": case.problem,
        "instance": case.digest,
        "algorithm": algorithm.name,
        "options": dict(algorithm.options),
        "seed": seed if algorithm.heuristic is not None and algorithm.heuristic.random else None,
        "code": code,
    }
    # Two values may make the same instance, of which each has its rows; where nothing is swept keys are what they were.
    swept = {name: value for name, value in case.swept.items() if value is not None}
    if swept:
        content["swept"] = swept
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
