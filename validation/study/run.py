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

import gc
import json
import os
import time
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import formulations
from instances.files import read
from validation.errors import StudyError
from validation.provenance import cores, memory_of_machine, provenance
from validation.study.cases import Algorithm, Case, choose_algorithms, choose_cases, choose_problems
from validation.study.cells import Cell, cell_record, cells_of, in_shard, row_of, run_cell
from validation.study.keys import is_told
from validation.study.options import StudyOptions, documented
from validation.study.progress import Estimate, Meter, Progress, somebody_watches
from validation.study.records import CELL, Cells, shown
from validation.study.results import Study
from validation.study.store import (
    INSTANCES,
    Log,
    Record,
    Warn,
    as_stored,
    locked,
    mend_log,
    save_instances,
    write_study,
)
from validation.study.sweeps import choose_settings, labels_of
from validation.workers import Task, run_tasks

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["Planned", "gap_study", "plan", "run_study"]

GRACE = 10.0
"""Seconds that a cell gets beyond its time limit, for building, checking and judging, before its worker is
killed."""


def gap_study(
    problems: str | Sequence[str],
    *,
    progress: Callable[[Progress], None] | Literal[False] | None = None,
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
    return run_study(StudyOptions(problems=problems, **options), progress=progress, client=client)


documented(gap_study, StudyOptions, required=("problems", "seed", "output"))


@dataclass(frozen=True)
class Planned:
    """What a study is about to do.

    Attributes
    ----------
    directory : Path
    asked : dict
        What its record says.
    cells : list of Cell
        All of the study.
    mine : sequence of int
        Numbers of those that are to be run here: all, or those of the shard.
    jobs : int
        Worker processes.
    """

    directory: Path
    asked: dict[str, Any]
    cells: list[Cell]
    mine: Sequence[int]
    jobs: int

    def records(self) -> Cells:
        """The records of all cells."""
        return Cells(map(cell_record, self.cells), (*CELL, *(self.asked["sweep"] or ())))


def plan(options: StudyOptions, client: Client | None = None) -> Planned:
    """What a study would do; nothing is run or written.

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
    jobs, memory = options.jobs or cores(), options.memory_limit
    if client is not None:
        # Nodes know their own memory.
        jobs = _threads(client, options)
    elif memory is None:
        memory = memory_of_machine() // (2 * jobs)
    cells = cells_of(cases, algorithms, options.seed, time_limit=options.time_limit, memory=memory)
    mine: Sequence[int] = range(len(cells))
    if options.shard is not None:
        _refuse_untold(algorithms)
        mine = [number for number in mine if in_shard(cells[number].key, options.shard)]
    names = {problem: [a.name for a in found if a.heuristic] for problem, found in algorithms.items()}
    swept = labels_of(choose_settings(chosen, options.sweep))
    return Planned(directory, options.asked(names, chosen, swept), cells, mine, jobs)


def left_out(found: Record, planned: Planned) -> str:
    """What a study that was asked otherwise takes out of the table of the one before it; empty where nothing.

    Rows that are computed again, because a time limit or the code has changed, are in the table still.
    """
    if found.cells.numbers.keys() <= {cell.key for cell in planned.cells}:
        return ""
    before, now = found.asked, as_stored(planned.asked)
    kept = {_run_of(one) for one in map(cell_record, planned.cells)}
    lost = sum(_run_of(one) not in kept for one in found.cells)
    if not lost and before["seed"] == now["seed"]:
        return ""
    differ = [
        f"{name} was {shown(before.get(name))} and is {shown(now[name])}"
        for name in now
        if before.get(name) != now[name]
    ]
    why = "; ".join(differ) or "the same was asked, of other instances"
    of = f"{lost} of its {len(found.cells)} runs" if lost else "runs of another seed"
    return f"another study was here: {why}; {of} are no part of this one, and stay in the log"


def _run_of(cell: Mapping[str, Any]) -> tuple[Any, ...]:
    """What a run is, whatever it was computed by."""
    return tuple(value for name, value in cell.items() if name not in ("key", "source", "size", "index"))


def _threads(client: Client, options: StudyOptions) -> int:
    """Threads of a cluster's workers, for the estimate of the time; there may be none yet."""
    if options.jobs is not None:
        raise StudyError("jobs: the threads of the Dask workers say how many run at once")
    from validation.cluster import threads_of

    return max(1, threads_of(client))


def _refuse_untold(algorithms: Mapping[str, Sequence[Algorithm]]) -> None:
    """Raise where a heuristic has other keys in each shard, so that its cells would be in several, or in none."""
    for found in algorithms.values():
        for one in found:
            if one.heuristic is not None and not is_told(one.heuristic.function):
                raise StudyError(
                    f"shard: {one.name} has no source file, or holds what cannot be pickled, so that its cells cannot "
                    "be told in the same way by every shard"
                )


def run_study(
    options: StudyOptions,
    *,
    progress: Callable[[Progress], None] | Literal[False] | None = None,
    client: Client | None = None,
    warn: Warn = warnings.warn,
) -> Study:
    """:func:`gap_study` of options that are one object; ``warn`` is told of damage that was mended."""
    planned = plan(options, client)
    directory, cells, mine = planned.directory, planned.cells, planned.mine
    if progress is None and somebody_watches():
        progress = Meter()
    with locked(directory) as found:
        if found is not None and (said := left_out(found, planned)):
            warn(f"{directory}: {said}")
        # Of what is there already, the runs are to be kept, and not the cells, which may be many.
        earlier = None if found is None else replace(found, cells=Cells([]))
        del found
        run = {**provenance(planned.jobs), "shard": options.shard}
        runs = [*earlier.runs, run] if earlier is not None and earlier.runs else []
        record = Record(planned.asked, run, planned.records(), runs)
        # The record comes first: by it the rest is known as a study's.
        write_study(directory, record)
        save_instances(directory, {cells[number].case.digest: cells[number].case for number in mine}.values())
        done = mend_log(directory, record.cells, warn)
        todo = [cells[number] for number in mine if number not in done]
        began = time.perf_counter()
        _run(directory, todo, len(mine), planned.jobs, progress or None, client, warn)
        run["seconds"] = time.perf_counter() - began
        if earlier is not None and not todo:
            # A call that found all rows there leaves word of the one that computed them.
            record = replace(record, run=earlier.run, runs=earlier.runs)
        write_study(directory, record)
        # The report reads what it needs from the files; what is in cycles is given back, too.
        del planned, cells, mine, record, done, todo
        gc.collect()
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
    todo: Sequence[Cell],
    total: int,
    jobs: int,
    progress: Callable[[Progress], None] | None,
    client: Client | None,
    warn: Warn,
) -> None:
    """Run cells, adding the row of each to the log."""
    estimate, arrived = Estimate(todo, jobs), list[tuple[Cell, Mapping[str, Any], float]]()
    done, failed = total - len(todo), 0
    if progress is not None:
        progress(Progress(done, total, 0, None if todo else 0.0))

    def settle() -> None:
        """Count the rows that have arrived, when they are on the disk."""
        nonlocal done, failed
        log.sync()
        for cell, row, seconds in arrived:
            done += 1
            failed += row["status"] == "failed"
            estimate.ended(cell, seconds)
            if progress is not None:
                progress(Progress(done, total, failed, estimate.seconds_left()))
        arrived.clear()

    with Log(directory) as log:
        with closing(_ended(directory, todo, jobs, settle, client, warn)) as ended:
            for cell, row, seconds in ended:
                log.append(row)
                arrived.append((cell, row, seconds))
        settle()


def _ended(
    directory: Path,
    todo: Sequence[Cell],
    jobs: int,
    pause: Callable[[], None],
    client: Client | None,
    warn: Warn,
) -> Generator[tuple[Cell, dict[str, Any], float]]:
    """Cells as they end, with row and seconds; ``pause`` is called when there is none at hand."""
    tasks = (_task(number, cell, _text(directory, cell.case)) for number, cell in enumerate(todo))
    if client is None:
        # The number of a cell crosses to a forked worker, whose heuristic need not be picklable then.
        outcomes = run_tasks(partial(_run_number, todo), tasks, jobs=jobs, hidden=directory, pause=pause)
    else:
        from validation.study.distributed import run_cells

        outcomes = run_cells(client, todo, tasks, hidden=directory, pause=pause, warn=warn)
    with closing(outcomes):
        for outcome in outcomes:
            cell = todo[outcome.task.arguments[0]]
            yield cell, row_of(cell, outcome), outcome.seconds


def _task(number: int, cell: Cell, text: bytes) -> Task:
    # The worker of a heuristic's cell stops the heuristic, so that its own limit is the judge's.
    if cell.algorithm.heuristic is not None:
        return Task((number, text), cell.time_limit + GRACE, asks=True)
    return Task((number, text), cell.exact_limit + GRACE, memory=cell.memory)


def _text(directory: Path, case: Case) -> bytes:
    """The stored JSON of an instance; nothing where it is not as it was stored."""
    try:
        text = (directory / case.file).read_bytes()
    except OSError:
        return b""
    return text if sha256(text).digest() == case.text_hash else b""


def _run_number(cells: Sequence[Cell], number: int, text: bytes) -> dict[str, Any]:
    cell = cells[number]
    return run_cell(cell, read(json.loads(text)) if text else cell.case.instance)
