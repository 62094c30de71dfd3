"""Studies of replays: traces under several decision makers, and what the difference between them came to.

A study of replays is a table of the kernel's (:mod:`validation.kernel.run`) with a cell for each trace, window, seed,
decision maker and tie-break.  Each is a replay that stands by itself; its tables are stored beside its row.  One more
cell for each trace, window and seed, "offline" in place of a decision maker, bounds them all
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
import pickle
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

import formulations
import heuristics
import instances
import validation.replay
from instances.base import Instance
from instances.files import text_of, write_whole
from validation import catalogue
from validation.catalogue import Heuristic, Imported
from validation.errors import StudyError
from validation.formatting import printable
from validation.kernel.judging import LARGEST
from validation.kernel.keys import exact_code, heuristic_code
from validation.kernel.kind import Cell, Plan, Tell, Warn
from validation.kernel.options import documented
from validation.kernel.records import file_of
from validation.kernel.run import Watch, run, shard_cells, walled, workers
from validation.kernel.walls import ruled, rules
from validation.kernel.workers import Outcome, Task
from validation.kinds.replays import windows
from validation.kinds.replays.options import POISSON, ReplayOptions, Traces
from validation.kinds.replays.records import ENDED, OFFLINE, REPLAYS, TABLES, TABLES_FOLDER, table_file
from validation.kinds.replays.results import Replays, parquet
from validation.kinds.replays.windows import Workload, readings, workload
from validation.kinds.stored import finish_replays
from validation.replay import settings
from validation.replay.deciders import EXACT, decider
from validation.replay.engine import Costs, Setting, replay
from validation.replay.online import PARCELS, is_program
from validation.settings import REGISTERED

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["Policy", "ReplayCell", "plan", "replay_study", "run_replays"]


def replay_study(
    traces: Traces,
    *,
    progress: Watch = None,
    client: Client | None = None,
    **options: Any,
) -> Replays:
    """Replay traces under several decision makers, or finish a study that was interrupted.

    Parameters
    ----------
    {options}
    progress : callable or False, optional
        Called with a :class:`Progress` now and then; by default shown where there is a terminal or a notebook, never
        with False.
    client : distributed.Client, optional
        Of a Dask cluster whose workers run the replays, one for each of their threads; this process alone
        writes.  In place of ``jobs``.

    Returns
    -------
    Replays

    Raises
    ------
    StudyError, CatalogueError, InstanceError, ReplayError, SolverNotFound
        When the replays cannot be run as asked; nothing is run or written then.
    """
    return run_replays(ReplayOptions.of_call(traces=traces, **options), progress=progress, client=client)


documented(replay_study, ReplayOptions)


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
        if self.heuristic is None or self.decides_online:
            return False
        return not isinstance(self.given, str) or isinstance(self.heuristic.function, Imported)

    @property
    def decides_online(self) -> bool:
        """Whether it is a program that gets plain JSON, and starts from a process that knows no job."""
        return is_program(self.given)


HINDSIGHT = Policy(OFFLINE, None, None)
"""Stands where a decision maker does in the cells that bound them all."""


@dataclass(frozen=True)
class ReplayCell(Cell):
    """One replay, or what bounds those of the same jobs.

    Attributes
    ----------
    workload : Workload
        Which jobs, and what is made of them.
    window, seed, tie : int
    policy : Policy
    options : ReplayOptions
    code : sequence of str
        Versions of what runs.
    memory : int, optional
        Bytes that it may take.
    """

    workload: Workload
    window: int
    seed: int
    policy: Policy
    tie: int
    options: ReplayOptions
    code: Sequence[str]
    memory: int | None

    @cached_property
    def key(self) -> str:  # type: ignore[override]
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

    @property
    def heuristic(self) -> Heuristic | None:
        """The decision maker, where it is a heuristic."""
        return self.policy.heuristic

    @property
    def limit(self) -> float:
        """Seconds of the replay."""
        return self.options.replay_limit or float("inf")

    @property
    def like(self) -> tuple[tuple[Any, ...], ...]:
        """Trace and decision maker."""
        return ((self.workload.name, self.policy.name),)

    def task(self, number: int, directory: Path) -> Task:
        """Make the task; what asks the user's code finds optima afterwards, in a worker used for nothing else then."""
        return Task((number, b""), self.limit, asks=self.policy.asks, memory=self.memory, solves=True)

    def run(self, content: bytes, tell: Tell) -> dict[str, Any]:
        """Compute what the row and the files are made of; the jobs are those that are given, or are read here."""
        setting = pickle.loads(content) if content else self.workload.setting(self.window, self.seed)
        if self.policy.name == OFFLINE:
            return bound_cell(self, setting)
        found = run_cell(self, setting, tell)
        if content:
            # Nobody elsewhere could read the file.
            found["kept"] = Path(found["kept"]).read_bytes()
        return found

    def sent(self, content: bytes, heuristic: Heuristic | None) -> tuple[bytes, Self]:
        """Send the jobs themselves, because what they are read from is here."""
        policy = replace(self.policy, given=heuristic) if self.policy.asks else self.policy
        return pickle.dumps(self.workload.setting(self.window, self.seed)), replace(self, policy=policy)

    def row(self, outcome: Outcome, directory: Path) -> dict[str, Any]:
        """Make the row when the cell has ended, with its tables and instances on the disk."""
        row = {**self.record, "seconds": outcome.seconds, "metrics": None, "tables": None, "kept": 0, "bounds": None}
        if outcome.reason:
            return {**row, "status": "failed", "reason": printable(outcome.reason)}
        row |= {"status": ENDED, "reason": ""}
        result, hashes = outcome.result, dict[str, str]()
        if self.policy.name == OFFLINE:
            return {**row, "bounds": result}
        (directory / TABLES_FOLDER).mkdir(exist_ok=True)
        for name in TABLES:
            content = result["tables"][name]
            write_whole(directory / table_file(self.key, name), content)
            hashes[name] = hashlib.sha256(content).hexdigest()
        kept = _take(directory, result["kept"])
        return {**row, "metrics": result["metrics"], "tables": hashes, "kept": kept}


@walled(REPLAYS, strict=lambda options: bool(_programs(options)))
def plan(options: ReplayOptions, client: Client | None = None) -> Plan:
    """Plan a study of replays; nothing is run or written.

    Raises
    ------
    StudyError, CatalogueError, InstanceError, ReplayError, SolverNotFound
        When it cannot be run as asked.
    """
    assert options.problem is not None
    assert options.output is not None
    assert isinstance(options.traces, list)
    catalogue.entry(options.problem)
    made = settings.settings_of(options.problem)
    if options.solver != "highs":
        formulations.find_solver(options.solver)
    if client is not None and (programs := _programs(options)):
        raise StudyError(f"policies: {programs[0]} decides on this machine only: leave out the cluster")
    with ruled(hidden=(*rules().hidden, *_traces(options))):
        policies = _policies(options.problem, options.policies)
        code_of = {
            one.name: [] if one.heuristic is None else heuristic_code(one.heuristic.function) for one in policies
        }
    how = readings(options)
    loads = [workload(trace, made, options, how[trace]) for trace in options.traces]
    _refuse_twins([load.name for load in loads])
    paper = options.problem.split(".")[0]
    code = [_code_of_replays(paper), *exact_code(options.problem, options.solver)]
    if options.problem in REGISTERED:
        code += [part for one in (made.from_jobs, made.generate) if one is not None for part in heuristic_code(one)]
    jobs, memory = workers(options.jobs, options.memory_limit, client)
    cells = [
        ReplayCell(load, window, seed, policy, tie, options, [*code, *code_of.get(policy.name, [])], memory)
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
    return Plan(
        REPLAYS,
        Path(options.output),
        {**options.asked([one.name for one in policies]), "read": read},
        cells,
        shard_cells(cells, options.shard),
        jobs,
        options.shard,
        frozenset({options.problem}),
        finish_replays,
        note=lambda now, done, total: f"{done:,} of {total:,} jobs at {simulated(now)}",
    )


def _programs(options: ReplayOptions) -> list[str]:
    """Return the decision makers that are programs, which decide online."""
    given = options.policies
    several = given.values() if isinstance(given, Mapping) else _several(given)
    return [one for one in several if is_program(one)]


def _traces(options: ReplayOptions) -> list[Path]:
    """Return the files of the traces, which no program may read."""
    assert isinstance(options.traces, list)
    return [Path(one) for one in options.traces if isinstance(one, str) and one != POISSON]


def _refuse_twins(names: Sequence[str]) -> None:
    """Refuse traces of one name, whose rows nobody could tell apart."""
    for name in names:
        if names.count(name) > 1:
            raise StudyError(
                f"traces: two are called {name!r}: rename one; DataFrames get names as in {{'mine': frame}}"
            )


def _policies(problem: str, given: Any) -> list[Policy]:
    """Return the decision makers asked for, each under its name."""
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
    """Hash of what runs a replay: the simulator, what makes jobs of a trace, the paper's problems, all exact methods.

    A setting may have something decided by itself, by any of the paper's heuristics and models.
    """
    files = [Path(windows.__file__), *Path(validation.replay.__path__[0]).rglob("*.py")]
    files += Path(formulations.__path__[0]).glob("methods/*.py")
    for room in (instances, formulations, heuristics):
        files += (Path(room.__path__[0]) / paper).glob("*.py")
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(f"{file.parent.parent.name}/{file.parent.name}/{file.name}".encode() + file.read_bytes())
    return digest.hexdigest()


# --- running it ---------------------------------------------------------------------------------


def run_replays(
    options: ReplayOptions, *, progress: Watch = None, client: Client | None = None, warn: Warn = warnings.warn
) -> Replays:
    """:func:`replay_study` of options that are one object; ``warn`` is told of damage that was mended."""
    found: Replays = run(plan(options, client), progress=progress, client=client, warn=warn)
    return found


def simulated(seconds: float) -> str:
    """Write a time on the simulated clock."""
    days, rest = divmod(seconds, 86400)
    return f"{f'{days:.0f} d ' if days else ''}{rest // 3600:.0f} h {rest % 3600 // 60:02.0f} min"


def _take(directory: Path, parcel: str | bytes) -> int:
    """Store the instances that a worker has left in a file, or sent; how many they are."""
    kept = 0
    with io.BytesIO(parcel) if isinstance(parcel, bytes) else open(parcel, "rb") as file:
        for line in file:
            name, text = json.loads(line)
            path = directory / name
            if path.parent.is_symlink() or path.is_symlink():
                raise StudyError(f"{path} is a symbolic link, which a {REPLAYS.name} does not follow")
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, text, durable=False)
            kept += 1
    if isinstance(parcel, str):
        os.unlink(parcel)
    return kept


# --- in a worker --------------------------------------------------------------------------------


def bound_cell(cell: ReplayCell, setting: Setting) -> dict[str, Any]:
    """Bound what any schedule of the cell's jobs can do, by metric."""
    from validation.replay.offline import offline

    found = offline(
        setting,  # type: ignore[arg-type]
        costs=Costs(cell.options.restart, cell.options.migration),
        round_length=None if cell.workload.round_length else cell.options.round_length,
        time_limit=cell.options.offline,
    )
    return {name: {**one._asdict(), "value": float(one.value)} for name, one in found.items()}


def run_cell(cell: ReplayCell, setting: Setting, tell: Tell) -> dict[str, Any]:
    """Metrics and tables of a cell, and the path of a file that holds what is kept of its instances.

    Parameters
    ----------
    cell : ReplayCell
    setting : Setting
        The cluster and the jobs, the same for all decision makers.
    tell : callable
        Is told the simulated time since the first arrival, s, and how many of the jobs are done.
    """
    options = cell.options
    total, first = len(setting.jobs), float(setting.jobs.arrivals[0]) if len(setting.jobs) else 0.0
    parcels = Path(tempfile.gettempdir(), PARCELS)
    parcels.mkdir(exist_ok=True)
    handle, parcel = tempfile.mkstemp(dir=parcels)
    hidden = (*rules().hidden, *_traces(options))
    with open(handle, "w", encoding="utf-8") as file, ruled(hidden=hidden):

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
            progress=lambda now, done: tell(now - first, done, total),
        )
    return {
        "metrics": {name: sayable(value) for name, value in replayed.metrics().items()},
        "tables": {name: parquet(getattr(replayed, name)) for name in TABLES},
        "kept": parcel,
    }


def sayable(value: float) -> float | None:
    """Return a number, where it is one that the log can hold."""
    return float(value) if np.isfinite(value) and abs(value) <= LARGEST else None
