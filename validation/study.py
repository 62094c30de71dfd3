"""Optimality-gap studies: heuristics against proven optima, over many instances.

A study is a set of *cells*, one for each instance and algorithm.  Each runs in a worker process
under a hard time limit, and its row is appended to a log as soon as it ends, under a key made of
its content: the instance, the algorithm with its options, the seed, and the versions of the code.
So a study can be killed at any moment, and the same call finishes it.

The directory of a study holds

    study.json        what was asked, and the cells that follow from it
    instances/        every instance, as JSON
    rows.jsonl        the log, one line for each cell that ended
    results.parquet   the table: one row for each cell, gaps included
    metadata.json     versions, machine, command, commit, counts
    report.html       the report, with its pictures inside
"""

from __future__ import annotations

import copy
import fcntl
import hashlib
import inspect
import json
import operator
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import formulations
from instances.base import PlanError
from instances.files import save
from validation import catalogue
from validation.cases import (
    EXACT,
    Algorithm,
    AnyInstance,
    Case,
    StudyError,
    choose_algorithms,
    choose_cases,
    choose_problems,
)
from validation.catalogue import Heuristic
from validation.keys import exact_code, heuristic_code
from validation.results import Study, cores, last_run, provenance, read_log, write_json
from validation.workers import Outcome, Task, run_tasks

EXACT_GRACE = 10.0
"""Seconds that an exact solve gets beyond its time limit, for building and checking, before its
worker is killed."""

LOCK_PATIENCE = 2.0
"""Seconds to wait for another run to let go of the directory: one that was killed lets go when its
workers are gone, too."""


@dataclass(frozen=True)
class Cell:
    """One algorithm on one instance; ``key`` is the hash of all that its row depends on."""

    case: Case
    algorithm: Algorithm
    key: str


@dataclass(frozen=True)
class Progress:
    """How far a study is: cells done of the total, failures among them, seconds left."""

    done: int
    total: int
    failed: int
    seconds_left: float | None


def gap_study(
    problems: str | Sequence[str],
    *,
    seed: int,
    output: str | os.PathLike[str],
    heuristics: str | Sequence[str | Callable[..., Any]] | Mapping[str, str | Callable[..., Any]] | None = None,
    sizes: Sequence[int] | Mapping[str, Sequence[int]] | None = None,
    count: int | None = None,
    instances: str | os.PathLike[str] | Sequence[AnyInstance] | None = None,
    throughputs: str | Mapping[str, str] | None = None,
    trace: str | Mapping[str, str] | None = None,
    repair: bool = False,
    time_limit: float = 60.0,
    jobs: int | None = None,
    solver: str = "highs",
    progress: Callable[[Progress], None] | None = None,
) -> Study:
    """Measure heuristics against exact optima, or finish a study that was interrupted.

    Parameters
    ----------
    problems : str or sequence of str
        Names such as "aryl.reclaim", or a paper's name for all of its problems.
    seed : int
        Determines the generated instances and what random heuristics draw.
    output : path
        Directory of the study; rows that it already holds for the same content are not computed
        again, failures excepted.
    heuristics : sequence or mapping, optional
        Names from the catalogue, "module:function" references, functions, or a mapping from new
        names to such.  All of the catalogue's for each problem by default.
    sizes : sequence of int or mapping from problem to such, optional
        Sizes of the generated instances; the catalogue's by default.
    count : int, optional
        Instances for each size and source, 10 by default.
    instances : path or sequence of Instance, optional
        Instances to study, or a directory of their JSON files.  Nothing is generated then,
        unless ``count`` is given too.
    throughputs, trace : path or mapping from paper to path, optional
        Files of real data, from which ``count`` more instances of each size are drawn for the
        problems that can read them.
    repair : bool
        Whether measured curves that a problem cannot take as they are may be repaired, as the
        reader of that data says; refused by default.
    time_limit : float
        Limit for each cell, s.
    jobs : int, optional
        Worker processes; one for each core by default.
    solver : str
        Solver of the exact side.
    progress : callable, optional
        Called with a :class:`Progress` whenever a cell ends.

    Returns
    -------
    Study

    Raises
    ------
    StudyError, CatalogueError, InstanceError, SolverNotFound
        When the study cannot be run as asked; nothing is run or written then.
    """
    chosen = choose_problems(problems)
    # One form of each number, whoever gave it, because keys are made of their text.
    seed, time_limit = operator.index(seed), float(time_limit)
    if not 0 < time_limit < float("inf"):
        raise StudyError(f"time_limit: got {time_limit!r}, must be positive seconds")
    if jobs is not None and jobs < 1:
        raise StudyError(f"jobs: got {jobs!r}, must be at least 1")
    if count is not None and count < 1:
        raise StudyError(f"count: got {count!r}, must be at least 1")
    if seed < 0:
        raise StudyError(f"seed: got {seed!r}, must be at least 0")
    if solver != "highs":
        formulations.find_solver(solver)
    algorithms = choose_algorithms(chosen, heuristics, solver, time_limit)
    directory = Path(output)
    if isinstance(instances, (str, os.PathLike)) and directory.resolve().is_relative_to(Path(instances).resolve()):
        raise StudyError(f"output: {directory} is inside {instances}, whose files are to be studied: choose another")
    cases = choose_cases(chosen, seed, sizes, count, instances, throughputs, trace, repair)
    if not cases:
        raise StudyError("there is no instance to study: sizes is empty")
    code = {
        (problem, algorithm.name): _code(problem, algorithm) for problem in chosen for algorithm in algorithms[problem]
    }
    cells = [
        Cell(case, algorithm, _key(case.instance, algorithm, code[case.instance.problem, algorithm.name], seed))
        for case in cases
        for algorithm in algorithms[case.instance.problem]
    ]
    asked = {
        "problems": list(chosen),
        "heuristics": {problem: [a.name for a in found if a.heuristic] for problem, found in algorithms.items()},
        "sizes": sizes,
        "count": count,
        "seed": seed,
        "instances": str(instances) if isinstance(instances, (str, os.PathLike)) else instances and "given",
        "throughputs": throughputs,
        "trace": trace,
        "repair": repair,
        "time_limit": time_limit,
        "solver": solver,
    }
    with _locked(directory):
        earlier = last_run(directory)
        _save_instances(directory, cases)
        run = provenance(jobs or cores())
        study = {"asked": asked, "run": run, "cells": [_cell_record(cell) for cell in cells]}
        write_json(directory / "study.json", study)
        began = time.perf_counter()
        computed = _run(directory, cells, seed, time_limit, jobs or cores(), progress)
        run["seconds"] = time.perf_counter() - began
        # A call that found all rows there leaves word of the one that computed them.
        write_json(directory / "study.json", study | {"run": run if computed or earlier is None else earlier})
        # It brings Matplotlib, which neither the workers nor what else uses this module should load.
        from validation.report import finish

        return finish(directory)


# --- keys ---------------------------------------------------------------------------------------


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


# --- running ------------------------------------------------------------------------------------


def _run(
    directory: Path,
    cells: Sequence[Cell],
    seed: int,
    time_limit: float,
    jobs: int,
    progress: Callable[[Progress], None] | None,
) -> int:
    """Run the cells that the log does not hold yet, appending a row as each ends; how many."""
    log = directory / "rows.jsonl"
    _cut_torn_line(log)
    finished = {row["key"] for row in read_log(log) if row["status"] != "failed"}
    todo = [cell for cell in cells if cell.key not in finished]
    estimate = _Estimate(todo, jobs)
    done, failed = len(cells) - len(todo), 0
    if progress is not None:
        progress(Progress(done, len(cells), 0, None if todo else 0.0))
    tasks = [Task((number,), _hard_limit(cell, time_limit)) for number, cell in enumerate(todo)]
    outcomes = run_tasks(partial(_run_cell, todo, seed, time_limit), tasks, jobs=jobs)
    with open(log, "a", encoding="utf-8") as file, closing(outcomes):
        for outcome in outcomes:
            cell = todo[outcome.task.arguments[0]]
            row = _row(cell, outcome)
            file.write(json.dumps(row, allow_nan=False) + "\n")
            file.flush()
            done += 1
            failed += row["status"] == "failed"
            estimate.ended(cell, outcome.seconds)
            if progress is not None:
                progress(Progress(done, len(cells), failed, estimate.seconds_left()))
    return len(todo)


def _hard_limit(cell: Cell, time_limit: float) -> float:
    return time_limit + EXACT_GRACE if cell.algorithm.heuristic is None else time_limit


def _run_cell(cells: Sequence[Cell], seed: int, time_limit: float, number: int) -> dict[str, Any]:
    """Row entries of a cell, computed in a worker."""
    instance, algorithm = cells[number].case.instance, cells[number].algorithm
    if algorithm.heuristic is None:
        return solve_exactly(instance, algorithm.options["solver"], time_limit)
    return run_heuristic(instance, algorithm.heuristic, seed)


def solve_exactly(instance: AnyInstance, solver: str, time_limit: float) -> dict[str, Any]:
    """Row entries of the exact side of an instance."""
    solution = formulations.solve(instance, solver=solver, time_limit=time_limit)
    return {
        "status": solution.status,
        "reason": solution.message,
        "value": solution.objective,
        "bound": solution.bound if np.isfinite(solution.bound) else None,
        "seconds": solution.build_seconds + solution.solve_seconds,
        "solver": f"{solution.solver} {solution.solver_version}",
        "relaxation": _relaxation(instance),
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
        return {**entries, "status": "feasible", "value": instance.objective(plan)}
    except PlanError as error:
        return {**entries, "status": "failed", "reason": str(error)}


def _row(cell: Cell, outcome: Outcome) -> dict[str, Any]:
    row = _cell_record(cell)
    if outcome.reason:
        row |= {"status": "failed", "reason": outcome.reason, "value": None, "seconds": outcome.seconds}
    else:
        row |= outcome.result
        row["engine_seconds"] = outcome.seconds - row["seconds"]
    value = row.get("value")
    if value is not None and not np.isfinite(value):
        row |= {"status": "failed", "reason": f"the plan is worth {value}", "value": None}
    return row


def _cell_record(cell: Cell) -> dict[str, Any]:
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


class _Estimate:
    """Time left, from the mean time of cells of the same problem, size and algorithm."""

    def __init__(self, cells: Sequence[Cell], jobs: int) -> None:
        self.jobs = jobs
        self.left: dict[tuple[str, int, str], int] = {}
        self.seen: dict[tuple[str, int, str], list[float]] = {}
        for cell in cells:
            self.left[self._kind(cell)] = self.left.get(self._kind(cell), 0) + 1

    @staticmethod
    def _kind(cell: Cell) -> tuple[str, int, str]:
        return cell.case.instance.problem, cell.case.size, cell.algorithm.name

    def ended(self, cell: Cell, seconds: float) -> None:
        kind = self._kind(cell)
        self.left[kind] -= 1
        self.seen.setdefault(kind, []).append(seconds)

    def seconds_left(self) -> float | None:
        everything = [seconds for times in self.seen.values() for seconds in times]
        overall = sum(everything) / len(everything)
        total = 0.0
        for kind, number in self.left.items():
            times = self.seen.get(kind)
            if times is None and kind[2] == EXACT:
                # Exact solves of another size say more than heuristics do.
                times = [s for (p, _, a), found in self.seen.items() if (p, a) == (kind[0], EXACT) for s in found]
            total += number * (sum(times) / len(times) if times else overall)
        return total / self.jobs


# --- files --------------------------------------------------------------------------------------


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Hold the study's directory, so that two runs cannot write into it at once."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        file = open(directory / ".lock", "w")  # noqa: SIM115, closed below
    except OSError as error:
        raise StudyError(f"cannot write to {directory}: {error.strerror}") from None
    with file:
        deadline = time.monotonic() + LOCK_PATIENCE
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() >= deadline:
                    raise StudyError(f"another study is writing to {directory}") from None
                time.sleep(0.05)
        yield


def _save_instances(directory: Path, cases: Sequence[Case]) -> None:
    for case in cases:
        path = directory / case.file
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            save(case.instance, path)


def _cut_torn_line(log: Path) -> None:
    """Drop a last line without its end: the run that wrote it was killed in the middle."""
    if log.exists():
        content = log.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.truncate(log, whole)
