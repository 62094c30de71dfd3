"""Optimality-gap studies: heuristics against proven optima, over many instances.

A study is a set of *cells*, one for each instance and algorithm.  Each runs in a worker process
under a hard time limit, and its row is appended to a log as soon as it ends, under a key made of
its content: the instance, the algorithm with its options, the seed, and the versions of the code.
So a study can be killed at any moment, and the same call finishes it.  A row that counts as done is on
the disk (:mod:`validation.study.store`).

The directory of a study holds

    study.json        what was asked, and the cells that follow from it
    instances/        every instance, as JSON
    rows.jsonl        the log, one line for each cell that ended
    rows.damaged.jsonl   lines of the log that were damaged, set aside
    results.parquet   the table: one row for each cell, gaps included
    metadata.json     versions, machine, command, commit, counts
    report.html       the report, with its pictures inside
"""

from __future__ import annotations

import inspect
import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, Literal

import formulations
from validation.errors import StudyError
from validation.provenance import cores, memory_of_machine, provenance
from validation.study.cases import choose_algorithms, choose_cases, choose_problems
from validation.study.cells import Cell, cell_record, cells_of, row_of, run_cell
from validation.study.options import StudyOptions
from validation.study.progress import Estimate, Meter, Progress, somebody_watches
from validation.study.results import Study
from validation.study.store import (
    INSTANCES,
    Log,
    Warn,
    locked,
    mend_log,
    save_instances,
    write_study,
)
from validation.workers import Task, run_tasks

__all__ = ["gap_study"]

GRACE = 10.0
"""Seconds that a cell gets beyond its time limit, for building, checking and judging, before its worker is
killed."""


def gap_study(
    problems: str | Sequence[str],
    *,
    progress: Callable[[Progress], None] | Literal[False] | None = None,
    **options: Any,
) -> Study:
    """Measure heuristics against exact optima, or finish a study that was interrupted.

    Parameters
    ----------
    {options}
    progress : callable or False, optional
        Called with a :class:`Progress` whenever a cell ends; by default shown where there is a
        terminal or a notebook, never with False.

    Returns
    -------
    Study

    Raises
    ------
    StudyError, CatalogueError, InstanceError, SolverNotFound
        When the study cannot be run as asked; nothing is run or written then.
    """
    return run_study(StudyOptions(problems=problems, **options), progress=progress)


def _documented() -> None:
    """Give :func:`gap_study` the parameters of :class:`StudyOptions`, which tell them once."""
    own = inspect.signature(gap_study).parameters
    kinds = inspect.Parameter
    asked = [
        kinds(
            one.name,
            kinds.POSITIONAL_OR_KEYWORD if one.name == "problems" else kinds.KEYWORD_ONLY,
            default=kinds.empty if one.name in ("problems", "seed", "output") else one.default,
            annotation=one.type,
        )
        for one in fields(StudyOptions)
    ]
    required = [one for one in asked if one.default is kinds.empty]
    others = [one for one in asked if one.default is not kinds.empty]
    gap_study.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [*required, *others, own["progress"]], return_annotation=Study
    )
    lines = [f"{one.name} : {one.type}\n        {one.metadata['help']}" for one in fields(StudyOptions)]
    gap_study.__doc__ = (gap_study.__doc__ or "").format(options="\n    ".join(lines))


_documented()


def run_study(
    options: StudyOptions,
    *,
    progress: Callable[[Progress], None] | Literal[False] | None = None,
    warn: Warn = warnings.warn,
) -> Study:
    """:func:`gap_study` of options that are one object; ``warn`` is told of damage that was mended."""
    assert options.problems is not None
    assert options.seed is not None
    assert options.output is not None
    chosen = choose_problems(options.problems)
    if options.solver != "highs":
        formulations.find_solver(options.solver)
    algorithms = choose_algorithms(chosen, options.heuristics, options.solver, options.time_limit, options.verify)
    directory, given = Path(options.output), options.instances
    if isinstance(given, (str, os.PathLike)):
        _refuse_overlap(directory, Path(given))
    cases = choose_cases(chosen, options)
    if not cases:
        raise StudyError("there is no instance to study: sizes is empty")
    jobs = options.jobs or cores()
    memory = options.memory_limit or memory_of_machine() // (2 * jobs)
    cells = cells_of(cases, algorithms, options.seed, time_limit=options.time_limit, memory=memory)
    names = {problem: [a.name for a in found if a.heuristic] for problem, found in algorithms.items()}
    if progress is None and somebody_watches():
        progress = Meter()
    with locked(directory) as earlier:
        asked, run = options.asked(names, chosen), provenance(jobs)
        records = [cell_record(cell) for cell in cells]
        # The record comes first: by it the rest is known as a study's.
        write_study(directory, asked, run, records)
        save_instances(directory, cases)
        rows = mend_log(directory, records, warn)
        began = time.perf_counter()
        computed = _run(directory, cells, rows, jobs, progress or None)
        run["seconds"] = time.perf_counter() - began
        # A call that found all rows there leaves word of the one that computed them.
        write_study(directory, asked, run if computed or earlier is None else earlier["run"], records)
        # It brings Matplotlib, which neither the workers nor what else uses this module should load.
        from validation.study.report import finish

        return finish(directory, warn)


def _refuse_overlap(directory: Path, given: Path) -> None:
    """Raise where the instances to be studied lie where the study writes, or the other way round."""
    # Not Path.resolve, which fails at links that lead round in a circle.
    inside, outside = Path(os.path.realpath(directory)), Path(os.path.realpath(given))
    if inside.is_relative_to(outside):
        raise StudyError(f"output: {directory} is inside {given}, whose files are to be studied: choose another")
    if outside.is_relative_to(inside / INSTANCES):
        raise StudyError(f"output: a study in {directory} would keep its own files in {given}: choose another")


def _run(
    directory: Path,
    cells: Sequence[Cell],
    rows: Sequence[Mapping[str, Any]],
    jobs: int,
    progress: Callable[[Progress], None] | None,
) -> int:
    """Run the cells that the log has no row of yet, appending one as each ends; how many."""
    finished = {row["key"] for row in rows if row["status"] != "failed"}
    todo = [cell for cell in cells if cell.key not in finished]
    estimate = Estimate(todo, jobs)
    done, failed = len(cells) - len(todo), 0
    if progress is not None:
        progress(Progress(done, len(cells), 0, None if todo else 0.0))
    # The worker of a heuristic's cell stops the heuristic, so that its own limit is the judge's.
    tasks = [
        Task((number,), cell.time_limit + GRACE, asks=True)
        if cell.algorithm.heuristic is not None
        else Task((number,), cell.exact_limit + GRACE, memory=cell.memory)
        for number, cell in enumerate(todo)
    ]
    # A number crosses to a forked worker and not the cell, whose heuristic need not be picklable then.
    outcomes = run_tasks(partial(_run_number, todo), tasks, jobs=jobs, hidden=directory)
    with Log(directory) as log, closing(outcomes):
        for outcome in outcomes:
            cell = todo[outcome.task.arguments[0]]
            row = row_of(cell, outcome)
            log.append(row)
            done += 1
            failed += row["status"] == "failed"
            estimate.ended(cell, outcome.seconds)
            if progress is not None:
                progress(Progress(done, len(cells), failed, estimate.seconds_left()))
    return len(todo)


def _run_number(cells: Sequence[Cell], number: int) -> dict[str, Any]:
    return run_cell(cells[number])
