"""Cells of a study: one algorithm on one instance, each a task that stands by itself."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

import formulations
from instances.base import Plan
from instances.files import read, text_of
from validation import catalogue
from validation.catalogue import Heuristic
from validation.formatting import printable
from validation.kernel.asking import answer
from validation.kernel.judging import LARGEST, Status, worst
from validation.kernel.keys import exact_code, heuristic_code
from validation.kernel.kind import Cell, Tell
from validation.kernel.node import memory_share
from validation.kernel.workers import Outcome, Task
from validation.kinds.study.cases import EXACT, Algorithm, AnyInstance, Case

__all__ = ["Run", "cells_of", "judged", "solve_exactly"]


GRACE = 10.0
"""Seconds that a cell gets beyond its time limit, for building, checking and judging, before its worker is
killed."""

LARGEST_PLAN = 4_000
"""Characters of a plan's JSON up to which the log keeps it."""


@dataclass(frozen=True, slots=True)
class Run(Cell):
    """One algorithm on one instance.

    Attributes
    ----------
    case : Case
        Which instance, and where it comes from; None elsewhere than where the study was planned.
    algorithm : Algorithm
        The heuristic, or the exact solve with its solver and time limit.
    seed : int
        Of random heuristics.
    key : str
        Hash of all that the row depends on.
    time_limit : float
        Of the algorithm, s.
    memory : int, optional
        Bytes that it may take, by default the node's share; a heuristic is stopped by whoever asks it, an exact solve
        by whoever runs the cell.
    """

    case: Case
    algorithm: Algorithm
    seed: int
    key: str
    time_limit: float
    memory: int | None

    @property
    def heuristic(self) -> Heuristic | None:
        """The heuristic, if it is one."""
        return self.algorithm.heuristic

    @property
    def limit(self) -> float:
        """Seconds of the run: its limit, and as long again where what an exact solve finds is verified."""
        return self.time_limit * (2 if self.algorithm.verifies else 1)

    @property
    def like(self) -> tuple[tuple[Any, ...], ...]:
        """Problem, size, algorithm and what is swept; exact solves of another size say more than heuristics do."""
        problem, name = self.case.problem, self.algorithm.name
        same = (problem, self.case.size, name, *self.case.swept.values())
        return (same, (problem, EXACT)) if name == EXACT else (same,)

    @property
    def record(self) -> dict[str, Any]:
        """The entries of a row that are known before the cell runs."""
        return {
            "key": self.key,
            "problem": self.case.problem,
            "sense": self.case.sense,
            "source": self.case.source,
            "size": self.case.size,
            "index": self.case.index,
            "instance": self.case.digest,
            "file": self.case.file,
            "algorithm": self.algorithm.name,
            **self.case.swept,
        }

    def task(self, number: int, directory: Path) -> Task:
        """Make the task; the worker of a heuristic's cell stops the heuristic, so that its own limit is the judge's."""
        content = _text(directory, self.case)
        asks = self.heuristic is not None
        return Task((number, content), self.limit + GRACE, asks=asks, memory=None if asks else self.memory)

    def run(self, content: bytes, tell: Tell) -> dict[str, Any]:
        """Row entries, of the instance whose JSON is given, or that is made here."""
        instance = read(json.loads(content)) if content else self.case.instance
        if self.heuristic is None:
            solver = self.algorithm.options["solver"]
            return solve_exactly(instance, solver, self.time_limit, verify=self.algorithm.verifies)
        memory = self.memory or memory_share()
        return judged(instance, self.heuristic, self.seed, seconds=self.time_limit, memory=memory)

    def sent(self, content: bytes, heuristic: Heuristic | None) -> tuple[bytes, Self]:
        """Send the instance's JSON, and no case, which would have to be looked for in files, or made."""
        content = content or text_of(self.case.instance).encode()
        return content, replace(self, case=_NO_CASE, algorithm=replace(self.algorithm, heuristic=heuristic))

    def row(self, outcome: Outcome, directory: Path) -> dict[str, Any]:
        """Make the row when the cell has ended, however it did."""
        row = self.record
        if outcome.reason:
            row |= {"status": Status.FAILED, "reason": outcome.reason, "value": None, "seconds": outcome.seconds}
        else:
            row |= outcome.result
            row["engine_seconds"] = outcome.seconds - row["seconds"]
        # What the reader of the log would not take for a row must not be written as one.
        row["reason"] = printable(row["reason"])
        value = row.get("value")
        if value is not None and not abs(value) <= LARGEST:
            if abs(value) > LARGEST and math.copysign(math.inf, value) == worst(row["sense"]):
                row |= {"value": None, "infinite": True}
            else:
                row |= {"status": Status.FAILED, "reason": f"the plan is worth {value}", "value": None}
        return row


_NO_CASE: Any = None


def _text(directory: Path, case: Case) -> bytes:
    """Read the stored JSON of an instance; nothing where it is not as it was stored."""
    try:
        text = (directory / case.file).read_bytes()
    except OSError:
        return b""
    return text if sha256(text).digest() == case.text_hash else b""


def cells_of(
    cases: Sequence[Case],
    algorithms: Mapping[str, Sequence[Algorithm]],
    seed: int,
    *,
    time_limit: float,
    memory: int | None = None,
) -> list[Run]:
    """Pair every algorithm of a problem with every one of its instances."""
    code = {(problem, one.name): _code(problem, one) for problem, found in algorithms.items() for one in found}
    return [
        Run(case, one, seed, _key(case, one, code[case.problem, one.name], seed), time_limit, memory)
        for case in cases
        for one in algorithms[case.problem]
    ]


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
    """Return the bound that the paper measures its heuristic against, where the catalogue has one."""
    bound = catalogue.entry(instance.problem).relaxation
    return None if bound is None else _sayable(bound(instance))


def _sayable(value: float) -> float | None:
    """Return a number, where it is one that the log can hold."""
    return value if abs(value) <= LARGEST else None


def judged(
    instance: AnyInstance, heuristic: Heuristic, seed: int, *, seconds: float, memory: int | None
) -> dict[str, Any]:
    """Row entries of a heuristic on an instance: its plan is judged by the instance."""
    found = answer(instance, heuristic, seed, seconds=seconds, memory=memory)
    feasible = found.status == Status.FEASIBLE
    entries = {"status": found.status, "reason": found.reason, "value": found.value if feasible else None}
    return {**entries, "seconds": found.seconds} | ({"plan": _small(found.plan)} if feasible else {})


def _small(plan: Plan | None) -> dict[str, Any] | None:
    """Return a plan as JSON for the report's pictures; None where it would make the log heavy."""
    entries = None if plan is None else plan.to_dict()
    return entries if entries is not None and len(json.dumps(entries)) <= LARGEST_PLAN else None


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
