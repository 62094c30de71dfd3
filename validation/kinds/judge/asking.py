"""The judge's questions: put by workers of this process, or by those of a program that has no solver.

This module imports nothing that solves, so that a program which imports it has nothing of the kind in memory: a
candidate's process is a copy of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

from instances.files import read
from validation import catalogue
from validation.catalogue import Heuristic, import_object
from validation.errors import StudyError
from validation.kernel.asking import answer, call
from validation.kernel.isolation import become_keeper, death, describe, silence
from validation.kernel.judging import NO_PLAN, Status
from validation.kernel.walls import ruled, rules, standing
from validation.kernel.workers import LIMITS, Task, run_tasks

__all__ = ["GRACE", "HEURISTIC_SEED", "MEMORY", "SOLVERS", "all_of", "rows_of", "serve"]

MEMORY = 2 * 10**9
"""Bytes that a heuristic may take; the same on every machine."""

HEURISTIC_SEED = 0
"""What a random heuristic draws from, with the instance's digest."""

GRACE = 10.0
"""Seconds beyond these limits for what is not limited: reading, checking and judging."""

SOLVERS = (
    *("formulations", "instances.reference", "pyomo", "highspy", "pyscipopt", "scipy.optimize", "ortools", "cvxopt"),
    *("gurobipy", "cplex", "docplex", "xpress", "mosek", "coptpy", "cuopt", "knitro", "hexaly", "localsolver"),
    *("pulp", "mip", "cylp", "glpk", "swiglpk", "linopy", "optlang", "cvxpy", "amplpy", "ampl_module_base", "gamspy"),
    *("gekko", "casadi", "cyipopt", "scs", "ecos", "osqp", "clarabel", "piqp", "daqp", "proxsuite", "quadprog"),
    *("qpsolvers", "minizinc", "cpmpy", "pysat", "z3", "pycosat"),
)
"""What proves optima: the library's exact side, the collection's checker, solvers, and packages that lead to them."""


def rows_of(
    given: str | Callable[..., Any] | Heuristic,
    problem: str,
    texts: Sequence[str],
    budget: float,
    jobs: int,
    *,
    no_solver: bool = False,
    steps: bool = False,
) -> tuple[str, list[dict[str, Any]]]:
    """Name of what is given, and what comes of every instance, in their order.

    Raises
    ------
    StudyError, CatalogueError
        When it cannot be asked as it is to be.
    """
    if not no_solver:
        name, candidate = _candidate(problem, given)
        return name, all_of(partial(_asked, candidate, budget, steps), texts, budget, jobs, asks=True)
    if not isinstance(given, str):
        raise StudyError(
            "no_solver: a function is called in a copy of this process, which has solvers; give module:function or "
            "file.py:function"
        )
    name, candidate = _candidate(problem, given)
    if "formulations" in candidate.imports:
        raise StudyError(f"no_solver: {name} is given the library's solver")
    if gone := [wall for wall in ("secrets", "calls") if not standing()[wall]]:
        raise StudyError(
            f"no_solver: nothing can be kept from a heuristic here: {', '.join(gone)} missing, see optgap doctor"
        )
    asked = {"given": given, "problem": problem, "texts": list(texts), "budget": budget, "jobs": jobs, "steps": steps}
    return name, _beside({**asked, "hidden": [str(one) for one in rules().hidden], "path": sys.path})


# --- what is judged -----------------------------------------------------------------------------


def _candidate(problem: str, given: str | Callable[..., Any] | Heuristic) -> tuple[str, Heuristic]:
    """Name of what is given, and a heuristic that calls it.

    What a reference names is imported in the processes that are asked, nowhere else, so that what its module does when
    it is imported is judged with the rest.
    """
    if isinstance(given, str) and ":" in given:
        catalogue.entry(problem)
        place, _, function = given.partition(":")
        if not function or (place.endswith(".py") and not os.path.isfile(place)):
            raise StudyError(f"heuristic: got {given!r}, must be file.py:function or module:function; no such file")
        return given, _by_reference(given)
    return catalogue.heuristic(problem, given)


def _by_reference(given: str) -> Heuristic:
    # Modules that it declares are its own affair: none of its code runs in a process that judges.
    return Heuristic(_ByReference(given), declines=True)


@dataclass(frozen=True)
class _ByReference:
    """A heuristic of which nothing is known before it is called."""

    given: str

    def __call__(self, instance: Any, rng: Any) -> Any:
        found = import_object(self.given)
        heuristic = found if isinstance(found, Heuristic) else Heuristic(found)
        plan = call(instance, heuristic, rng)
        if plan is None and not heuristic.declines:
            # Who judges has not imported what a reference names, and cannot know what it declares.
            raise TypeError(NO_PLAN)
        return plan


# --- asking -------------------------------------------------------------------------------------


def all_of(
    function: Callable[[str], dict[str, Any]],
    texts: Sequence[str],
    seconds: float,
    jobs: int,
    *,
    asks: bool = False,
) -> list[dict[str, Any]]:
    """Return what comes of every instance, in their order."""
    rows: dict[str, dict[str, Any]] = {}
    tasks = (Task((text,), seconds + GRACE, asks=asks) for text in texts)
    with closing(run_tasks(function, tasks, jobs=jobs)) as outcomes:
        for outcome in outcomes:
            lost = {"status": Status.FAILED, "value": None, "reason": outcome.reason, "seconds": outcome.seconds}
            rows[outcome.task.arguments[0]] = lost if outcome.reason else outcome.result
    return [rows[text] for text in texts]


def _asked(candidate: Heuristic, budget: float, steps: bool, text: str) -> dict[str, Any]:
    """Row entries of the heuristic; what it finds is judged here, in the process that asks it."""
    found = answer(read(json.loads(text)), candidate, HEURISTIC_SEED, seconds=budget, memory=MEMORY, counts=steps)
    late = found.status == Status.FAILED and found.reason.startswith(LIMITS[0])
    return {
        "status": Status.LATE if late else found.status,
        "value": found.value if found.status == Status.FEASIBLE else None,
        "reason": found.reason,
        "seconds": found.seconds,
        "steps": found.steps,
    }


# --- a program without solvers ------------------------------------------------------------------


def _beside(asked: dict[str, Any]) -> list[dict[str, Any]]:
    """Have a fresh interpreter ask: nothing that solves has been imported there."""
    # Without the current directory, whose files may have the names of other modules.
    program = [sys.executable, "-P", "-c", "from validation.kinds.judge.asking import serve; serve()"]
    # In a session of its own, so that Ctrl-C in the terminal is for this process to handle.
    process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    try:
        said, _ = process.communicate(json.dumps(asked).encode())
    except BaseException:
        process.terminate()
        process.wait()
        raise
    try:
        rows = json.loads(said)
    except ValueError:
        raise StudyError(f"no_solver: the process that asks died: {death(process.returncode)}") from None
    if isinstance(rows, str):
        raise StudyError(f"no_solver: {rows}")
    return list(rows)


def serve() -> None:
    """Body of the program: ask what standard input tells, and say on standard output what came of it."""
    become_keeper(os.getppid())
    asked = json.loads(sys.stdin.buffer.read())
    answers = os.dup(1)
    silence(0, 1)
    sys.path += [place for place in asked["path"] if place not in sys.path]
    sys.meta_path.insert(0, _Kept())
    hidden = (*map(Path, asked["hidden"]), *_places(sys.path))
    try:
        given = asked["given"]
        candidate = _by_reference(given) if ":" in given else catalogue.heuristic(asked["problem"], given)[1]
        with ruled(strict=True, memory=MEMORY, programs=False, hidden=hidden):
            budget = asked["budget"]
            ask = partial(_asked, candidate, budget, asked["steps"])
            said: Any = all_of(ask, asked["texts"], budget, asked["jobs"], asks=True)
    except Exception as error:
        said = describe(error)
    with open(answers, "w", encoding="utf-8") as file:
        json.dump(said, file)


class _Kept(MetaPathFinder):
    """An import of what is kept from a heuristic is an ImportError, as where it is not installed."""

    def find_spec(self, name: str, *_: Any) -> None:
        """Raise for a solver; pass on anything else."""
        if any(name == one or name.startswith(f"{one}.") for one in SOLVERS):
            raise ImportError(f"{name} is kept from heuristics here (no_solver)", name=name)


def _places(paths: Sequence[str]) -> list[Path]:
    """List the files and folders of what is kept from a heuristic."""
    found = []
    for place in dict.fromkeys(map(Path, paths)):
        for name in SOLVERS:
            *above, last = name.split(".")
            folder = place.joinpath(*above)
            found += [folder / last, folder / f"{last}.py", *folder.glob(f"{last}.*.so"), *folder.glob(f"{last}.so")]
            if not above:
                # Libraries that a package brings along, under the name of its distribution.
                found += [one for one in place.glob("*.libs") if one.name.lower() == f"{last}.libs"]
    return [one for one in found if one.exists()]
