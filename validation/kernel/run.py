"""A table is computed, or what was interrupted is finished, whatever its kind.

Each cell runs in a worker process under a hard time limit, and its row is appended to a log as soon as it ends, under a
key made of all that it depends on.  So a run can be killed at any moment, and the same call finishes it.  A row that
counts as done is on the disk (:mod:`validation.kernel.store`).  In place of the workers there may be the nodes of a
cluster, and several runs may each have a shard of the cells, which :mod:`validation.kernel.merge` joins.
"""

from __future__ import annotations

import gc
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from validation.catalogue import Heuristic
from validation.errors import StudyError
from validation.kernel.keys import is_library, is_told
from validation.kernel.kind import Cell, Kind, Plan, Warn
from validation.kernel.options import shard_of
from validation.kernel.progress import Clocks, Estimate, Meter, Progress, somebody_watches
from validation.kernel.provenance import cores, memory_of_machine, provenance
from validation.kernel.records import Cells, shown
from validation.kernel.store import Log, Record, as_stored, locked, mend_log, to_hide, write_record
from validation.kernel.walls import Rules, lost, ruled, rules
from validation.kernel.workers import Outcome, Task, run_tasks

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["Watch", "computed_again", "in_shard", "left_out", "run", "shard_cells", "walled", "workers"]

Watch = Callable[[Progress], None] | Literal[False] | None
"""Called with a :class:`Progress` now and then; None: shown where somebody watches; False: not."""

GLANCE = 1.0
"""Seconds between looks at the clocks of cells."""

LARGE = 1000
"""Cells from which memory is given back before the report."""


# --- what is planned ----------------------------------------------------------------------------

Planner = Callable[..., Plan]


def walled(kind: Kind, strict: Callable[[Any], bool] = lambda _: False) -> Callable[[Planner], Planner]:
    """Make a function of options plan with the rules that they make, because it imports code of the user's.

    Parameters
    ----------
    kind : Kind
    strict : callable
        Says of the options whether nothing may outlast a process of the user's code.
    """

    def around(planner: Planner) -> Planner:
        @wraps(planner)
        def within(options: Any, client: Client | None = None) -> Plan:
            hidden = to_hide(Path(options.output), kind)
            with ruled(Rules(hidden, options.allow_network, strict(options), options.memory_limit)):
                return replace(planner(options, client), rules=rules())

        return within

    return around


def workers(jobs: int | None, memory: int | None, client: Client | None) -> tuple[int, int | None]:
    """Choose how many cells run at once, and the bytes that each may take; nodes of a cluster know their own memory.

    Parameters
    ----------
    jobs, memory : int, optional
        As they were asked for.
    client : distributed.Client, optional

    Raises
    ------
    StudyError
        When there is a cluster, and jobs were asked for.
    """
    if client is None:
        jobs = jobs or cores()
        return jobs, memory or memory_of_machine() // (2 * jobs)
    if jobs is not None:
        raise StudyError("jobs: the threads of the Dask workers say how many run at once")
    from validation.kernel.cluster import threads_of

    # There may be none yet.
    return max(1, threads_of(client)), memory


def shard_cells(cells: Sequence[Cell], shard: str | None) -> Sequence[int]:
    """Numbers of the cells that belong to a shard; all without one.

    Raises
    ------
    StudyError
        Where a heuristic has other keys in each shard, so that its cells would be in several, or in none.
    """
    if shard is None:
        return range(len(cells))
    for one in _heuristics(cells).values():
        if not is_told(one.function):
            raise StudyError(
                f"shard: {one.name} has no source file, or holds what cannot be pickled, so that its cells cannot "
                "be told in the same way by every shard"
            )
    return [number for number, cell in enumerate(cells) if in_shard(cell.key, shard)]


def _heuristics(cells: Sequence[Cell]) -> dict[int, Heuristic]:
    """Return the heuristics of cells, which are few, by their identity."""
    return {id(cell.heuristic): cell.heuristic for cell in cells if cell.heuristic is not None}


def in_shard(key: str, shard: str) -> bool:
    """Return whether a cell belongs to a shard "i/n": each belongs to one of the n, told by its key alone."""
    told = shard_of(shard)
    assert told is not None
    number, parts = told
    return int(key, 16) % parts == number


def left_out(found: Record, plan: Plan) -> str:
    """Say what a run that was asked otherwise takes out of the table of the one before it; empty where nothing.

    Rows that are computed again, because a time limit or the code has changed, are in the table still.
    """
    if found.cells.numbers.keys() <= {cell.key for cell in plan.cells}:
        return ""
    before, now = found.asked, as_stored(plan.asked)
    kept = {_run_of(cell.record) for cell in plan.cells}
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
    return f"another {plan.kind.name} was here: {why}; {of} are no part of this one, and stay in the log"


def computed_again(found: Record, plan: Plan, now: Mapping[str, Any]) -> str:
    """Say why runs that the directory has are computed again: their versions are others; empty where none are.

    Parameters
    ----------
    found : Record
    plan : Plan
    now : mapping
        What runs now, as :func:`validation.kernel.provenance.provenance` says.
    """
    before, after = found.run["versions"], now["versions"]
    differ = [f"{name} {before.get(name)} is {after[name]} now" for name in after if before.get(name) != after[name]]
    if found.run["commit"] != now["commit"]:
        differ.append("the library's code has changed")
    keys = {cell.key for cell in plan.cells}
    if not differ or found.cells.numbers.keys() <= keys:
        return ""
    runs = {_run_of(cell.record) for cell in plan.cells}
    again = sum(cell["key"] not in keys and _run_of(cell) in runs for cell in found.cells)
    return f"{again} of its {len(found.cells)} runs are computed again: {'; '.join(differ)}" if again else ""


def _run_of(cell: Mapping[str, Any]) -> tuple[Any, ...]:
    """Identify a run, whatever it was computed by."""
    return tuple(value for name, value in cell.items() if name not in ("key", "source", "size", "index"))


# --- running it ---------------------------------------------------------------------------------


def run(plan: Plan, *, progress: Watch = None, client: Client | None = None, warn: Warn = warnings.warn) -> Any:
    """Compute what is not there yet, and make the result of all of it.

    Parameters
    ----------
    plan : Plan
    progress : callable or False, optional
    client : distributed.Client, optional
        Of a Dask cluster whose workers run the cells, one for each of their threads; this process alone writes.
    warn : callable, optional
        Told of damage that was mended, and of what an earlier run has that this one has not.

    Raises
    ------
    StudyError
        When the directory cannot be had or written, or the cluster fails.
    """
    with ruled(plan.rules):
        return _run_walled(plan, progress, client, warn)


def _run_walled(plan: Plan, progress: Watch, client: Client | None, warn: Warn) -> Any:
    kind, directory = plan.kind, plan.directory
    if progress is None and somebody_watches():
        progress = Meter(kind.counted)
    with locked(directory, kind) as found:
        this = {**provenance(plan.jobs), "shard": plan.shard}
        if client is None and (said := lost(this["machine"]["walls"])):
            warn(said)
        if found is not None:
            for said in filter(None, (left_out(found, plan), computed_again(found, plan, this))):
                warn(f"{directory}: {said}")
        # Of what is there already, the runs are to be kept, and not the cells, which may be many.
        earlier = None if found is None else replace(found, cells=Cells([]))
        del found
        runs = [*earlier.runs, this] if earlier is not None and earlier.runs else []
        record = Record(plan.asked, this, plan.records(), runs)
        # The record comes first: by it the rest is known as what it is.
        write_record(directory, record, kind)
        plan.prepare()
        done = mend_log(directory, kind, record.cells, warn)
        todo = [plan.cells[number] for number in plan.mine if number not in done]
        began = time.perf_counter()
        _run(plan, todo, progress or None, client, warn)
        this["seconds"] = time.perf_counter() - began
        if earlier is not None and not todo:
            # A call that found all rows there leaves word of the one that computed them.
            record = replace(record, run=earlier.run, runs=earlier.runs)
        write_record(directory, record, kind)
        result = plan.result
        # The report reads what it needs from the files; what is in cycles is given back, too, where it is much: to look
        # for it takes longer than a small study.
        large = len(record.cells) >= LARGE
        del plan, record, done, todo
        if large:
            gc.collect()
        return result(directory, warn)


def _run(
    plan: Plan, todo: Sequence[Cell], progress: Callable[[Progress], None] | None, client: Client | None, warn: Warn
) -> None:
    """Run cells, adding the row of each to the log."""
    total = len(plan.mine)
    done, failed = total - len(todo), 0
    estimate, arrived = Estimate(todo, plan.jobs), list[tuple[Cell, Mapping[str, Any], float]]()
    # The workers of a cluster have no memory in common with this process.
    clocks = Clocks(len(todo)) if plan.note is not None and client is None else None

    def tell() -> None:
        left, note = estimate.seconds_left(), ""
        if clocks is not None and plan.note is not None:
            left, note = clocks.remaining(plan.note)
        if progress is not None:
            progress(Progress(done, total, failed, left if done < total else 0.0, note))

    def settle() -> None:
        """Count the rows that have arrived, when they are on the disk."""
        nonlocal done, failed
        log.sync()
        for cell, row, seconds in arrived:
            done += 1
            failed += row["status"] == "failed"
            estimate.ended(cell, seconds)
            tell()
        if clocks is not None and not arrived:
            tell()
        arrived.clear()

    tell()
    with Log(plan.directory) as log:
        with closing(_outcomes(plan, todo, settle, clocks, client, warn)) as outcomes:
            for outcome in outcomes:
                number = outcome.task.arguments[0]
                row = todo[number].row(outcome, plan.directory)
                log.append(row)
                arrived.append((todo[number], row, outcome.seconds))
                if clocks is not None:
                    clocks.ended(number)
        settle()


def _outcomes(
    plan: Plan,
    todo: Sequence[Cell],
    pause: Callable[[], None],
    clocks: Clocks | None,
    client: Client | None,
    warn: Warn,
) -> Generator[Outcome]:
    """Cells as they end; ``pause`` is called when there is none at hand."""
    theirs = {number for number, one in _heuristics(todo).items() if not is_library(one.function)}
    # Those of the user's come last, because nothing is solved beside them, which may take all of a machine.
    order = sorted(range(len(todo)), key=lambda number: id(todo[number].heuristic) in theirs)
    tasks = (
        replace(todo[number].task(number, plan.directory), others=id(todo[number].heuristic) in theirs)
        for number in order
    )
    if client is not None:
        return _on_cluster(client, plan, todo, tasks, pause, warn)
    every = {} if clocks is None else {"every": GLANCE}
    # The number of a cell crosses to a forked worker, whose heuristic need not be picklable then.
    return run_tasks(partial(_run_number, todo, clocks), tasks, jobs=plan.jobs, pause=pause, **every)


def _run_number(cells: Sequence[Cell], clocks: Clocks | None, number: int, content: bytes) -> Any:
    return cells[number].run(content, _nobody if clocks is None else clocks.teller(number))


def _nobody(now: float, done: int, total: int) -> None:
    """Report the progress of a cell to nobody."""


# --- on other machines --------------------------------------------------------------------------


def _on_cluster(
    client: Client, plan: Plan, todo: Sequence[Cell], tasks: Iterable[Task], pause: Callable[[], None], warn: Warn
) -> Generator[Outcome]:
    from validation.kernel import cluster

    modules = cluster.modules_of(plan.problems)
    carried = {number: cluster.carried(one, modules) for number, one in _heuristics(todo).items()}

    def travels(task: Task) -> tuple[bytes, Cell]:
        number, content = task.arguments
        cell: Cell = todo[number]
        return cell.sent(content, carried.get(id(cell.heuristic)))

    return cluster.run_tasks(
        client,
        _run_sent,
        tasks,
        total=len(todo),
        travels=travels,
        problems=plan.problems,
        ready=(type(todo[0]).__module__,) if todo else (),
        pause=pause,
        warn=warn,
    )


def _run_sent(content: bytes, cell: Cell) -> Any:
    return cell.run(content, _nobody)
