"""Optimality-gap studies: heuristics against proven optima, over many instances.

A study is a table of the kernel's (:mod:`validation.kernel.run`) whose cells are *runs*, one for each instance and
algorithm.  Its directory holds

    study.json        what was asked, and the cells that follow from it
    instances/        every instance, as JSON
    rows.jsonl        the log, one line for each cell that ended
    rows.damaged.jsonl   lines of the log that were damaged, set aside
    results.parquet   the table: one row for each cell, gaps included
    metadata.json     versions, machine, command, commit, counts
    report.html       the report, with its pictures inside
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import formulations
from instances.files import text_of, write_whole
from validation.errors import StudyError
from validation.kernel.kind import Plan, Warn
from validation.kernel.options import documented
from validation.kernel.run import Watch, run, shard_cells, walled, workers
from validation.kernel.store import INSTANCES
from validation.kinds.stored import finish_study
from validation.kinds.study.cases import Case, choose_algorithms, choose_cases, choose_problems
from validation.kinds.study.cells import Run, cells_of
from validation.kinds.study.options import StudyOptions
from validation.kinds.study.records import STUDY
from validation.kinds.study.results import Study
from validation.kinds.study.sweeps import choose_settings, labels_of

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["gap_study", "plan", "run_study"]


def gap_study(
    problems: str | Sequence[str],
    *,
    progress: Watch = None,
    client: Client | None = None,
    **options: Any,
) -> Study:
    """Measure heuristics against exact optima, or finish a study that was interrupted.

    Parameters
    ----------
    {options}
    progress : callable or False, optional
        Called with a :class:`Progress` whenever a cell ends; by default shown where there is a
        terminal or a notebook, never with False.
    client : distributed.Client, optional
        Of a Dask cluster whose workers run the cells, one for each of their threads; this process alone
        writes.  In place of ``jobs``.

    Returns
    -------
    Study

    Raises
    ------
    StudyError, CatalogueError, InstanceError, SolverNotFound
        When the study cannot be run as asked; nothing is run or written then.
    """
    return run_study(StudyOptions.of_call(problems=problems, **options), progress=progress, client=client)


documented(gap_study, StudyOptions)


@walled(STUDY)
def plan(options: StudyOptions, client: Client | None = None) -> Plan:
    """Plan a study; nothing is run or written.

    Raises
    ------
    StudyError, CatalogueError, InstanceError, SolverNotFound
        When the study cannot be run as asked.
    """
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
    jobs, memory = workers(options.jobs, options.memory_limit, client)
    cells = cells_of(cases, algorithms, options.seed, time_limit=options.time_limit, memory=memory)
    mine = shard_cells(cells, options.shard)
    names = {problem: [a.name for a in found if a.heuristic] for problem, found in algorithms.items()}
    swept = labels_of(choose_settings(chosen, options.sweep))
    of_mine = _cases(cells, mine)
    return Plan(
        STUDY,
        directory,
        options.asked(names, chosen, swept),
        cells,
        mine,
        jobs,
        options.shard,
        frozenset(chosen),
        finish_study,
        prepare=partial(_save_instances, directory, of_mine),
        disk=sum(case.text_bytes for case in of_mine),
    )


def _cases(cells: Sequence[Run], mine: Sequence[int]) -> list[Case]:
    """Return the cases of some cells, each instance once."""
    return [*{cells[number].case.digest: cells[number].case for number in mine}.values()]


def run_study(
    options: StudyOptions, *, progress: Watch = None, client: Client | None = None, warn: Warn = warnings.warn
) -> Study:
    """:func:`gap_study` of options that are one object; ``warn`` is told of damage that was mended."""
    found: Study = run(plan(options, client), progress=progress, client=client, warn=warn)
    return found


def _save_instances(directory: Path, cases: Iterable[Case]) -> None:
    """Write the instances of a study, those anew that are not as they were written."""
    for case in cases:
        path = directory / case.file
        if path.parent.is_symlink():
            raise StudyError(f"{path.parent} is a symbolic link, which a study does not follow")
        if path.is_file() and not path.is_symlink() and sha256(path.read_bytes()).digest() == case.text_hash:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        # What a power cut takes away is written again by the next call.
        write_whole(path, text_of(case.instance), durable=False)


def _refuse_overlap(directory: Path, given: Path) -> None:
    """Raise where the instances to be studied lie where the study writes, or the other way round."""
    # Not Path.resolve, which fails at links that lead round in a circle.
    inside, outside = Path(os.path.realpath(directory)), Path(os.path.realpath(given))
    if inside.is_relative_to(outside):
        raise StudyError(f"output: {directory} is inside {given}, whose files are to be studied: choose another")
    if outside.is_relative_to(inside / INSTANCES):
        raise StudyError(f"output: a study in {directory} would keep its own files in {given}: choose another")
