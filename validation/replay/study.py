"""Studies of replays: traces under several decision makers, and what the difference between them came to.

A study is a set of *cells*, one for each trace, window, seed, decision maker and tie-break.  Each is a replay that
stands by itself: it runs in a worker process, its tables are stored, and its row is appended to a log, under a key made
of its content, as in :mod:`validation.study.run`.  So a study can be killed at any moment, and the same call finishes
it.  One more cell for each trace, window and seed, "offline" in place of a decision maker, bounds them all
(:mod:`validation.replay.offline`).

The directory of a study of replays holds

    replay.json       what was asked, and the cells that follow from it
    replays/          the tables of each replay that ended
    instances/        what was kept of what was decided, as JSON, named by digest
    rows.jsonl        the log, one line for each replay that ended
    results.parquet   the metrics: one row for each replay
    jobs.parquet, decisions.parquet, usage.parquet   the tables of all replays
    offline.parquet   what hindsight could do with the jobs of each trace, window and seed
    metadata.json     versions, machine, command, commit, counts
    report.html       the report, with its pictures inside
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

import formulations
import heuristics
import instances
from instances.base import Instance
from instances.files import text_of, write_whole
from validation import catalogue
from validation.catalogue import Heuristic, Imported
from validation.errors import StudyError
from validation.formatting import printable
from validation.isolation import CONTEXT
from validation.provenance import cores, memory_of_machine, provenance
from validation.replay import settings
from validation.replay.deciders import EXACT, decider
from validation.replay.engine import Costs, Setting, replay
from validation.replay.options import ReplayOptions
from validation.replay.records import CELL, ENDED, OFFLINE, REPLAYS, TABLES, TABLES_FOLDER
from validation.replay.results import Replays, table_file, whole_tables
from validation.replay.windows import Workload, readings, workload
from validation.study.cases import file_of
from validation.study.keys import exact_code, heuristic_code
from validation.study.options import documented
from validation.study.progress import Meter, Progress, somebody_watches
from validation.study.records import LARGEST, Cells
from validation.study.store import Log, Record, Warn, locked, mend_log, write_study
from validation.workers import Outcome, Task, run_tasks

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Cell", "Planned", "Policy", "plan", "replay_study", "run_replays"]

GLANCE = 1.0
"""Seconds between looks at the simulated clocks."""


def replay_study(
    traces: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    progress: Callable[[Progress], None] | Literal[False] | None = None,
    **options: Any,
) -> Replays:
    """Replay traces under several decision makers, or finish a study that was interrupted.

    Parameters
    ----------
    {options}
    progress : callable or False, optional
        Called with a :class:`Progress` now and then; by default shown where there is a terminal or a notebook, never
        with False.

    Returns
    -------
    Replays

    Raises
    ------
    StudyError, CatalogueError, InstanceError, ReplayError, SolverNotFound
        When the replays cannot be run as asked; nothing is run or written then.
    """
    return run_replays(ReplayOptions(traces=traces, **options), progress=progress)


documented(replay_study, ReplayOptions, required=("traces", "problem", "policies", "output"))


# --- what is to be run --------------------------------------------------------------------------


@dataclass(frozen=True)
class Policy:
    """A decision maker of a study.

    Attributes
    ----------
    name : str
    given : str, callable or Heuristic
        As it was given.
    heuristic : Heuristic, optional
        None for the exact model.
    """

    name: str
    given: Any
    heuristic: Heuristic | None

    @property
    def asks(self) -> bool:
        """Whether it is code of the user's, which runs apart."""
        if self.heuristic is None:
            return False
        return not isinstance(self.given, str) or isinstance(self.heuristic.function, Imported)


HINDSIGHT = Policy(OFFLINE, None, None)
"""Stands where a decision maker does in the cells that bound them all."""


@dataclass(frozen=True)
class Cell:
    """One replay.

    Attributes
    ----------
    workload : Workload
        Which jobs, and what is made of them.
    window, seed, tie : int
    policy : Policy
    options : ReplayOptions
    code : sequence of str
        Versions of what runs.
    """

    workload: Workload
    window: int
    seed: int
    policy: Policy
    tie: int
    options: ReplayOptions
    code: Sequence[str]

    @cached_property
    def key(self) -> str:
        """Hash of all that its row depends on."""
        told = ["problem", "restart", "migration", "round_length"]
        told += ["offline"] if self.policy == HINDSIGHT else ["gaps", "keep", "time_limit", "solver"]
        content = {
            "workload": self.workload.told,
            "window": self.window,
            "seed": self.seed,
            "policy": self.policy.name,
            "tie": self.tie,
            "options": {name: getattr(self.options, name) for name in told},
            "code": list(self.code),
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()

    @property
    def record(self) -> dict[str, Any]:
        """The entries of its row that are known before it runs."""
        return {
            "key": self.key,
            "problem": self.options.problem,
            "trace": self.workload.name,
            "window": self.window,
            "seed": self.seed,
            "policy": self.policy.name,
            "tie": self.tie,
        }

    def setting(self) -> Setting:
        """The cluster and the jobs, the same for all decision makers."""
        return self.workload.setting(self.window, self.seed)


@dataclass(frozen=True)
class Planned:
    """What a study of replays is about to do.

    Attributes
    ----------
    directory : Path
    asked : dict
        What its record says.
    cells : list of Cell
    jobs : int
        Worker processes.
    memory : int
        Bytes that a replay may take.
    """

    directory: Path
    asked: dict[str, Any]
    cells: list[Cell]
    jobs: int
    memory: int


def plan(options: ReplayOptions) -> Planned:
    """What a study of replays would do; nothing is run or written.

    Raises
    ------
    StudyError, CatalogueError, InstanceError, ReplayError, SolverNotFound
        When it cannot be run as asked.
    """
    assert options.problem is not None
    assert options.output is not None
    assert isinstance(options.traces, list)
    catalogue.entry(options.problem)
    module = settings.module_of(options.problem)
    if options.solver != "highs":
        formulations.find_solver(options.solver)
    policies = _policies(options.problem, options.policies)
    how = readings(options)
    loads = [workload(trace, module, options, how[trace]) for trace in options.traces]
    paper = options.problem.split(".")[0]
    code = [_code_of_replays(paper), *exact_code(options.problem, options.solver)]
    code_of = {one.name: [] if one.heuristic is None else heuristic_code(one.heuristic.function) for one in policies}
    cells = [
        Cell(load, window, seed, policy, tie, options, [*code, *code_of.get(policy.name, [])])
        for load in loads
        for window in range(options.windows)
        for seed in range(options.seed, options.seed + options.seeds)
        for policy in [*policies, HINDSIGHT]
        for tie in range(1 if policy == HINDSIGHT else options.ties)
    ]
    read = {load.name: load.counted() for load in loads}
    for load in loads:
        for window in range(options.windows):
            load.refuse_missing(window, read[load.name].get("jobs", 0))
            # What a setting refuses is known before anything runs.
            load.setting(window, options.seed)
    for load in loads:
        for path in load.files:
            # Code of the user's reads nothing there.
            if Path(os.path.realpath(path)).is_relative_to(os.path.realpath(options.output)):
                raise StudyError(f"output: {path}, which is to be read, is in {options.output}: choose another")
    jobs = options.jobs or cores()
    memory = options.memory_limit or memory_of_machine() // (2 * jobs)
    asked = {**options.asked([one.name for one in policies]), "read": read}
    return Planned(Path(options.output), asked, cells, jobs, memory)


def _policies(problem: str, given: Any) -> list[Policy]:
    """The decision makers asked for, each under its name."""
    pairs = [*given.items()] if isinstance(given, Mapping) else [(None, one) for one in _several(given)]
    found: dict[str, Policy] = {}
    for name, one in pairs:
        exact = isinstance(one, str) and one == EXACT
        own, heuristic = (EXACT, None) if exact else catalogue.heuristic(problem, one)
        policy = Policy(str(name or own), one, heuristic)
        if policy.name == OFFLINE:
            raise StudyError(f"policies: {OFFLINE} is the name of what hindsight could do: choose another")
        if printable(policy.name) != policy.name:
            raise StudyError(f"policies: got {policy.name!r}, must be a name in visible characters")
        if found.setdefault(policy.name, policy).heuristic != heuristic:
            raise StudyError(f"two decision makers are called {policy.name!r}: name them, as in {{'mine': function}}")
    if not found:
        raise StudyError("missing --policy")
    return [*found.values()]


def _several(given: Any) -> Sequence[Any]:
    return given if isinstance(given, Sequence) and not isinstance(given, str) else [given]


def _code_of_replays(paper: str) -> str:
    """Hash of what runs a replay: this package, but for what makes studies and pages of it, and the paper's problems.

    A setting may have something decided by itself, by any of the paper's heuristics and models.
    """
    package, rooms = Path(__file__).parent, (instances, formulations, heuristics)
    files = [file for file in package.rglob("*.py") if file.parent != package or file.stem not in _OF_STUDIES]
    files += [file for room in rooms for file in (Path(str(room.__file__)).parent / paper).glob("*.py")]
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(f"{file.parent.parent.name}/{file.parent.name}/{file.name}".encode() + file.read_bytes())
    return digest.hexdigest()


_OF_STUDIES = ("__init__", "options", "paired", "plots", "records", "report", "results", "study")


# --- running it ---------------------------------------------------------------------------------


def run_replays(
    options: ReplayOptions,
    *,
    progress: Callable[[Progress], None] | Literal[False] | None = None,
    warn: Warn = warnings.warn,
) -> Replays:
    """:func:`replay_study` of options that are one object; ``warn`` is told of damage that was mended."""
    planned = plan(options)
    directory, cells = planned.directory, planned.cells
    if progress is None and somebody_watches():
        progress = Meter("replays and bounds")
    with locked(directory, REPLAYS) as earlier:
        run = {**provenance(planned.jobs), "shard": None}
        record = Record(planned.asked, run, Cells((cell.record for cell in cells), CELL))
        # The record comes first: by it the rest is known as a study's.
        write_study(directory, record, REPLAYS)
        done = mend_log(directory, record.cells, warn, REPLAYS)
        whole = whole_tables(directory, record.cells)
        todo = [cell for number, cell in enumerate(cells) if number not in done or cell.key not in whole]
        began = time.perf_counter()
        _run(planned, todo, progress or None)
        run["seconds"] = time.perf_counter() - began
        if earlier is not None and not todo:
            # A call that found all rows there leaves word of the one that computed them.
            record = replace(record, run=earlier.run)
        write_study(directory, record, REPLAYS)
        # It brings Matplotlib, which neither the workers nor what else uses this module should load.
        from validation.replay.report import finish

        return finish(directory, warn)


class _Clocks:
    """How far the replays are that run: what the workers write, and this process reads.

    Parameters
    ----------
    number : int
        Of replays.
    """

    def __init__(self, number: int) -> None:
        self.shared = CONTEXT.RawArray("d", 3 * max(1, number))

    def tell(self, number: int, total: int, now: float, done: int) -> None:
        """Replay ``number`` is at ``now``, s, with ``done`` of ``total`` jobs done."""
        self.shared[3 * number : 3 * number + 3] = (now, done, total)

    def of(self, number: int) -> tuple[float, int, int]:
        """Time, jobs done and jobs of a replay; zeros where it has not begun."""
        now, done, total = self.shared[3 * number : 3 * number + 3]
        return now, int(done), int(total)


def _run(planned: Planned, todo: Sequence[Cell], progress: Callable[[Progress], None] | None) -> None:
    """Run cells, storing the tables of each and adding its row to the log."""
    directory, clocks, total = planned.directory, _Clocks(len(todo)), len(planned.cells)
    over, failed, began = set[int](), 0, time.monotonic()

    def show() -> None:
        """Say how far it is, with the simulated clocks."""
        log.sync()
        if progress is None:
            return
        running = [clocks.of(number) for number in range(len(todo)) if number not in over]
        running = [one for one in running if one[2]]
        part = len(over) + sum(done / jobs for _, done, jobs in running)
        left = (time.monotonic() - began) * (len(todo) / part - 1) if part else None
        note = ", ".join(f"{done:,} of {jobs:,} jobs at {simulated(now)}" for now, done, jobs in running)
        progress(Progress(total - len(todo) + len(over), total, failed, left if todo else 0.0, note))

    # The numbers of cells cross to forked workers, whose decision makers need not be picklable then.
    call = partial(_run_number, todo, clocks)
    tasks = (_task(number, cell, planned) for number, cell in enumerate(todo))
    with Log(directory) as log:
        show()
        with closing(run_tasks(call, tasks, jobs=planned.jobs, hidden=directory, pause=show, every=GLANCE)) as outcomes:
            for outcome in outcomes:
                number = outcome.task.arguments[0]
                row = _stored(directory, todo[number], outcome)
                log.append(row)
                over.add(number)
                failed += row["status"] == "failed"
        show()


def simulated(seconds: float) -> str:
    """A time on the simulated clock."""
    days, rest = divmod(seconds, 86400)
    return f"{f'{days:.0f} d ' if days else ''}{rest // 3600:.0f} h {rest % 3600 // 60:02.0f} min"


def _task(number: int, cell: Cell, planned: Planned) -> Task:
    limit = cell.options.replay_limit or float("inf")
    # What asks code of the user's finds optima beside when it has ended, and its worker has solved something then.
    return Task((number,), limit, asks=cell.policy.asks, memory=planned.memory, solves=True)


def _stored(directory: Path, cell: Cell, outcome: Outcome) -> dict[str, Any]:
    """The row of a cell that has ended, its tables and instances on the disk."""
    row = {**cell.record, "seconds": outcome.seconds, "metrics": None, "tables": None, "kept": 0, "bounds": None}
    if outcome.reason:
        return {**row, "status": "failed", "reason": printable(outcome.reason)}
    result, hashes = outcome.result, dict[str, str]()
    if cell.policy == HINDSIGHT:
        return {**row, "status": ENDED, "reason": "", "bounds": result}
    (directory / TABLES_FOLDER).mkdir(exist_ok=True)
    for name in TABLES:
        content = result["tables"][name]
        write_whole(directory / table_file(cell.key, name), content)
        hashes[name] = hashlib.sha256(content).hexdigest()
    kept = _take(directory, result["kept"])
    return {**row, "status": ENDED, "reason": "", "metrics": result["metrics"], "tables": hashes, "kept": kept}


def _take(directory: Path, parcel: str) -> int:
    """Store the instances that a worker has left in a file; how many they are."""
    kept = 0
    with open(parcel, encoding="utf-8") as file:
        for line in file:
            name, text = json.loads(line)
            path = directory / name
            if path.parent.is_symlink() or path.is_symlink():
                raise StudyError(f"{path} is a symbolic link, which a {REPLAYS.name} does not follow")
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, text, durable=False)
            kept += 1
    os.unlink(parcel)
    return kept


# --- in a worker --------------------------------------------------------------------------------


def _run_number(cells: Sequence[Cell], clocks: _Clocks, number: int) -> dict[str, Any]:
    if cells[number].policy == HINDSIGHT:
        return bound_cell(cells[number])
    return run_cell(cells[number], partial(clocks.tell, number))


def bound_cell(cell: Cell) -> dict[str, Any]:
    """What no schedule of the cell's jobs beats, by metric."""
    from validation.replay.offline import offline

    found = offline(
        cell.setting(),  # type: ignore[arg-type]
        costs=Costs(cell.options.restart, cell.options.migration),
        round_length=None if cell.workload.round_length else cell.options.round_length,
        time_limit=cell.options.offline,
    )
    return {name: {**one._asdict(), "value": float(one.value)} for name, one in found.items()}


def run_cell(cell: Cell, tell: Callable[[int, float, int], None]) -> dict[str, Any]:
    """Metrics and tables of a cell, and the path of a file that holds what is kept of its instances.

    Parameters
    ----------
    cell : Cell
    tell : callable
        Is told how many jobs there are, the simulated time since the first arrival, s, and how many jobs are done.
    """
    options, setting = cell.options, cell.setting()
    total, first = len(setting.jobs), float(setting.jobs.arrivals[0]) if len(setting.jobs) else 0.0
    handle, parcel = tempfile.mkstemp(prefix="kept-")
    with open(handle, "w", encoding="utf-8") as file:

        def sink(number: int, instance: Instance[Any]) -> None:
            file.write(json.dumps([file_of(instance.problem, instance.digest), text_of(instance)]) + "\n")

        made = decider(
            str(options.problem),
            cell.policy.given,
            seed=cell.seed,
            time_limit=options.time_limit,
            memory=options.memory_limit,
            solver=options.solver,
        )
        replayed = replay(
            setting,
            made,
            # The first goes by the order of arrival.
            ties=None if cell.tie == 0 else cell.tie,
            costs=Costs(options.restart, options.migration),
            # A setting that was told of the rounds has them for its own.
            round_length=None if cell.workload.round_length else options.round_length,
            gaps=options.gaps,
            exact_limit=options.time_limit,
            keep=options.keep,
            sink=sink,
            seed=cell.seed,
            progress=lambda now, done: tell(total, now - first, done),
        )
    return {
        "metrics": {name: sayable(value) for name, value in replayed.metrics().items()},
        "tables": {name: _as_parquet(getattr(replayed, name)) for name in TABLES},
        "kept": parcel,
    }


def sayable(value: float) -> float | None:
    """A number, where it is one that the log can hold."""
    return float(value) if np.isfinite(value) and abs(value) <= LARGEST else None


def _as_parquet(table: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    table.to_parquet(buffer, index=False)
    return buffer.getvalue()
