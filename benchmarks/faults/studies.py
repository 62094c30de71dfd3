"""Studies that are killed, suspended, short of disk, and given directories that anybody has changed.

The truth is the table of the same study left alone, in all columns but the times.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import resource
import shutil
import signal
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd

from benchmarks.faults.mutations import altered_tree, as_json
from benchmarks.faults.tally import Tally, fault
from validation import StudyError
from validation.kernel.isolation import CONTEXT, descendants, end_family
from validation.kernel.store import read_log
from validation.kinds.study import cells as runs
from validation.kinds.study import report, run
from validation.kinds.study.options import StudyOptions
from validation.kinds.study.records import STUDY
from validation.kinds.study.report import finish

__all__ = ["ASKED", "KINDS", "Running", "left_alone", "names", "scratch", "snapshot", "without_pictures"]

ASKED: dict[str, Any] = {
    "problems": "aryl.reclaim",
    "seed": 8,
    "sizes": [5],
    "count": 4,
    "heuristics": ["random", "gpu_fraction"],
    "jobs": 2,
}
TIMES = ["seconds", "engine_seconds", "exact_seconds"]
PATIENCE = 600.0
"""Seconds after which a study hangs."""

Table = dict[tuple[str, str], list[str]]
"""The rows of each instance and algorithm as words."""


# --- studies in processes of their own ----------------------------------------------------------


class Running:
    """A study in a process of its own; what it says, and its table, go into files beside its directory."""

    def __init__(self, directory: Path, prepare: Callable[[], None] = lambda: None, **asked: Any) -> None:
        self.directory = directory
        self.process = CONTEXT.Process(target=_study, args=(directory, prepare, asked))
        self.process.start()

    @property
    def pid(self) -> int:
        found = self.process.pid
        assert found is not None
        return int(found)

    def runs(self, seconds: float = 0.0) -> bool:
        """Whether it runs so many seconds from now."""
        self.process.join(seconds)
        return self.process.exitcode is None

    def kill(self) -> None:
        self.process.kill()
        self.process.join()

    def end(self, tally: Tally, name: str, truth: Table | None = None) -> int | None:
        """Wait for its exit code; None when it hangs, or ends otherwise than in one line.

        Where it ends well its table is compared with the truth.
        """
        if self.runs(PATIENCE):
            tally.tell(f"{name}: hangs", "hangs")
            end_family(self.pid)
            self.kill()
            return None
        code, said = self.process.exitcode, self.said
        if "Traceback" in said or code not in (0, 2) or len(said.splitlines()) != (code == 2):
            tally.tell(f"{name}: ended with {code}, saying {said!r}", "tracebacks")
            return None
        if code == 0 and truth is not None:
            _compare(tally, name, self.table, truth)
            keys = [row["key"] for row in self.log if row["status"] != "failed"]
            tally.doubled += len(keys) - len(set(keys))
        return int(code)

    @property
    def said(self) -> str:
        return _beside(self.directory, ".err").read_text(encoding="utf-8")

    @property
    def table(self) -> Table:
        return _by_cell(pd.read_csv(_beside(self.directory, ".csv"), dtype=str, keep_default_na=False))

    @property
    def log(self) -> list[dict[str, Any]]:
        return read_log(self.directory, STUDY).rows


def _beside(directory: Path, suffix: str) -> Path:
    return directory.parent / f"{directory.name}{suffix}"


def _study(directory: Path, prepare: Callable[[], None], asked: dict[str, Any]) -> None:
    """Body of the process."""
    sys.stderr = open(_beside(directory, ".err"), "w", encoding="utf-8")  # noqa: SIM115, it stays open
    try:
        prepare()
        with without_pictures():
            rows = _rows(directory, _say, **asked)
    except (StudyError, OSError) as error:
        _say(str(error))
        sys.stderr.flush()
        os._exit(2)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    rows.drop(columns=TIMES).to_csv(_beside(directory, ".csv"), index=False)


def _rows(directory: Path, warn: Callable[[str], object], **asked: Any) -> pd.DataFrame:
    """Run the study in a directory, and return its rows."""
    return run.run_study(StudyOptions(**ASKED | asked, output=directory), progress=False, warn=warn).rows


@contextlib.contextmanager
def without_pictures() -> Iterator[None]:
    """Make reports without pictures, which take most of a small study's time."""
    with (
        mock.patch.multiple(report, problem_pictures=lambda *_: [], plans_side_by_side=lambda *_, **__: "<svg></svg>"),
        mock.patch("validation.kinds.replays.report.trace_pictures", return_value=[]),
    ):
        yield


def _say(line: str) -> None:
    print(line, file=sys.stderr)


def _by_cell(table: pd.DataFrame) -> Table:
    found: Table = {}
    for row in table.to_dict("records"):
        if row["status"] == "optimal":
            # Whether a second run came as far in its share of the time is told in words, and is a time, too.
            row["reason"] = ""
        found.setdefault((str(row["instance"]), str(row["algorithm"])), []).append(json.dumps(row, default=str))
    return found


def left_alone(folder: Path, **asked: Any) -> tuple[Table, float]:
    """Return the table of a study left alone, and how long it takes."""
    began = time.monotonic()
    alone, tally = Running(folder / "alone", **asked), Tally()
    code = alone.end(tally, "left alone")
    assert code == 0, tally.wrong
    return alone.table, time.monotonic() - began


def _compare(tally: Tally, name: str, table: Table, truth: Table) -> None:
    """Count what is not as it is in a study left alone."""
    for (instance, algorithm), rows in truth.items():
        what = f"{algorithm} on {instance[:12]}"
        found = table.get((instance, algorithm))
        if found is None:
            tally.tell(f"{name}: lost: {what}", "lost")
        elif found[0] != rows[0]:
            now, before = json.loads(found[0]), json.loads(rows[0])
            other = [f"{entry} {before[entry]!r} is {now[entry]!r}" for entry in before if now[entry] != before[entry]]
            tally.tell(f"{name}: changed: {what}: {', '.join(other)}", "changed")
    for (instance, algorithm), rows in table.items():
        if len(rows) > 1 or (instance, algorithm) not in truth:
            tally.tell(f"{name}: doubled: {algorithm} on {instance[:12]}", "doubled")


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """Make a folder that is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        yield Path(folder)


# --- processes that die and sleep ---------------------------------------------------------------


@fault("studies.coordinator_killed", 100)
def coordinator_killed(tally: Tally, seed: int, count: int) -> None:
    """SIGKILL of the process that runs a study, at a random moment; resumed until it ends."""
    draw = np.random.default_rng([seed, 1])
    with scratch() as folder:
        truth, whole = left_alone(folder)
        for name, directory in names(tally, folder, seed, count):
            running = Running(directory)
            while tally.tried < count and running.runs(draw.uniform(0, 1.1 * whole)):
                running.kill()
                tally.begin()
                tally.count("killed")
                running = Running(directory)
            if running.end(tally, name, truth) == 0:
                tally.count("studies ended")


@fault("studies.worker_killed", 100)
def worker_killed(tally: Tally, seed: int, count: int) -> None:
    """SIGKILL of a worker or a heuristic of a running study; then the same command again."""
    draw = np.random.default_rng([seed, 2])
    with scratch() as folder:
        truth, whole = left_alone(folder)
        for name, directory in names(tally, folder, seed, count):
            running = Running(directory)
            while tally.tried < count and running.runs(draw.uniform(0, whole / 5)):
                below = descendants(running.pid)
                with contextlib.suppress(ProcessLookupError):
                    if below:
                        os.kill(int(draw.choice(below)), signal.SIGKILL)
                        tally.begin()
            ended = running.end(tally, name)
            for reason in (row["reason"] for row in running.log if row["status"] == "failed"):
                tally.count("failed rows that say so")
                if not any(word in reason for word in ("died", "SIGKILL", "EOFError")):
                    tally.tell(f"{name}: a row failed because of {reason!r}")
            if Running(directory).end(tally, name, truth if ended == 0 else None) == ended == 0:
                tally.count("studies that ended")


@fault(
    "studies.clocks",
    20,
    "A study suspended for longer than its cells may take (SIGSTOP, SIGCONT), at a random moment",
)
def clocks(tally: Tally, seed: int, count: int) -> None:
    """Suspend studies."""
    draw = np.random.default_rng([seed, 3])
    with scratch() as folder, scratch() as other:
        # A limit that no cell comes near on this machine, as busy as it is: only the suspension may matter.
        limit = max(3.0, left_alone(other)[1])
        truth, whole = left_alone(folder, time_limit=limit)
        for name, directory in names(tally, folder, seed, count):
            running = Running(directory, _without_grace, time_limit=limit)
            if running.runs(draw.uniform(0, whole)):
                os.kill(running.pid, signal.SIGSTOP)
                time.sleep(limit + 1.0)
                os.kill(running.pid, signal.SIGCONT)
                tally.count("suspended")
            else:
                tally.count("ended before")
            tally.begin()
            running.end(tally, name, truth)


def names(tally: Tally, folder: Path, seed: int, count: int) -> Iterator[tuple[str, Path]]:
    """Yield names and directories of studies, until harm was done so many times."""
    for number in itertools.count():
        if tally.tried >= count:
            return
        yield f"study {number} of seed {seed}", folder / str(number)


def _without_grace() -> None:
    """Let workers be killed when a cell's own limit is over."""
    runs.GRACE = 0.0


# --- disks --------------------------------------------------------------------------------------


@fault(
    "studies.disk_full",
    50,
    "A study whose files cannot grow beyond a random size; then the same command with room",
)
def disk_full(tally: Tally, seed: int, count: int) -> None:
    """Leave studies no room."""
    draw = np.random.default_rng([seed, 4])
    with scratch() as folder:
        truth, _ = left_alone(folder)
        largest = max(file.stat().st_size for file in (folder / "alone").rglob("*") if file.is_file())
        for name, directory in names(tally, folder, seed, count):
            running = Running(directory, partial(_no_larger, int(draw.integers(100, largest * 11 // 10))))
            tally.begin()
            code = running.end(tally, name)
            if code is None:
                continue
            tally.count("ended all the same" if code == 0 else "refused in one line")
            log = directory / "rows.jsonl"
            before = log.read_bytes() if log.exists() else b""
            if not (before == b"" or before.endswith(b"\n")) or read_log(directory, STUDY).damaged:
                tally.tell(f"{name}: a torn row")
            if Running(directory).end(tally, name, truth) == 0 and not log.read_bytes().startswith(before):
                tally.tell(f"{name}: rows that were there were written again", "lost")


def _no_larger(size: int) -> None:
    """Let no file of the process grow beyond so many bytes."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


# --- files that anybody has changed -------------------------------------------------------------


@fault(
    "studies.tampered",
    1_000,
    "A directory whose record, log or instances were changed, reported, a tenth with pictures; a twentieth resumed",
)
def tampered(tally: Tally, seed: int, count: int) -> None:
    """Change directories."""
    draw = np.random.default_rng([seed, 5])
    with scratch() as folder:
        with without_pictures():
            truth = _by_cell(_rows(folder / "alone", _say).drop(columns=TIMES))
        for number in range(count):
            directory = folder / "tampered"
            shutil.copytree(folder / "alone", directory)
            what, untouched = _tamper(directory, draw)
            name = f"directory {number} of seed {seed} ({what})"
            tally.begin()
            told: list[str] = []
            with _named(tally, name, told), contextlib.nullcontext() if number % 10 == 0 else without_pictures():
                found = finish(directory, told.append).rows
                tally.count("reported with a warning" if told else "reported")
                _keeps(tally, name, found, untouched, truth)
            if number % 20 == 0:
                with _named(tally, name, told), without_pictures():
                    found = _rows(directory, told.append)
                    tally.count("resumed")
                    tally.lost += len(truth) - len(found)
                    _keeps(tally, name, found, untouched, truth)
            if not all(line.isprintable() for line in told):
                tally.tell(f"{name}: said {told!r}")
            shutil.rmtree(directory)


@contextlib.contextmanager
def _named(tally: Tally, name: str, told: list[str]) -> Iterator[None]:
    """Count a refusal in one line; anything else is a traceback."""
    try:
        yield
    except (StudyError, OSError) as error:
        told.append(str(error))
        tally.count("refused in one line")
    except Exception as error:
        tally.tell(f"{name}: {type(error).__name__}: {error}", "tracebacks")


def _keeps(tally: Tally, name: str, found: pd.DataFrame, untouched: set[str], truth: Table) -> None:
    """Count rows that nobody has touched and that are gone or changed."""
    values = {str(row["key"]): (row["status"], row["value"]) for row in found.to_dict("records")}
    for rows in truth.values():
        row = json.loads(rows[0])
        if row["key"] not in untouched:
            continue
        if row["key"] not in values:
            tally.tell(f"{name}: lost: {row['key'][:12]}", "lost")
        elif values[row["key"]] != (row["status"], row["value"]):
            tally.tell(f"{name}: changed: {row['key'][:12]}", "changed")


def _tamper(directory: Path, draw: np.random.Generator) -> tuple[str, set[str]]:
    """Change something; what, and the keys of the rows that must stand all the same."""
    rows = [json.loads(line) for line in (directory / "rows.jsonl").read_bytes().splitlines()]
    everything = {row["key"] for row in rows}
    kind = str(draw.choice(["record", "rows", "bytes of the record", "bytes of the log", "instances"]))
    record, log = directory / "study.json", directory / "rows.jsonl"
    if kind == "record":
        record.write_text("".join(_altered(json.loads(record.read_bytes()), draw)), encoding="utf-8")
        return kind, set()
    if kind == "rows":
        chosen = set(draw.choice(len(rows), size=int(draw.integers(1, 4)), replace=False).tolist())
        lines = [
            line for i, row in enumerate(rows) for line in (_altered(row, draw) if i in chosen else [json.dumps(row)])
        ]
        log.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        touched = {rows[i]["key"] for i in chosen}
        # The exact side's value is part of others' rows only by the gap.
        return kind, everything - touched
    if kind == "instances":
        files = sorted((directory / "instances").rglob("*.json"))
        for file in draw.choice(np.array(files, object), size=2, replace=False):
            content = file.read_bytes()
            if draw.random() < 0.3:
                file.unlink()
            else:
                file.write_bytes(_damaged(content, draw))
        return kind, everything
    path = record if kind == "bytes of the record" else log
    path.write_bytes(_damaged(path.read_bytes(), draw))
    return kind, set()


def _altered(tree: Any, draw: np.random.Generator) -> list[str]:
    """Return the JSON of a tree of which one place is another; it may be gone as a whole, or there twice."""
    return [as_json(draw, one) for one in altered_tree(draw, [tree], times=1)]


def _damaged(content: bytes, draw: np.random.Generator) -> bytes:
    """Bytes that were cut, turned, zeroed or put elsewhere."""
    start, end = sorted(draw.integers(0, len(content), 2).tolist())
    match draw.integers(4):
        case 0:
            return content[:start]
        case 1:
            return content[:start] + bytes([content[start] ^ (1 << int(draw.integers(8)))]) + content[start + 1 :]
        case 2:
            return content[:start] + bytes(end - start) + content[end:]
        case _:
            return content[:start] + content[end:] + content[start:end]


NAMES = (
    "study.json",
    "rows.jsonl",
    "rows.damaged.jsonl",
    "results.parquet",
    "metadata.json",
    "report.html",
    ".lock",
    "instances",
)
KINDS: dict[str, Callable[[Path], object]] = {
    "words": lambda path: path.write_text("my own words\n", encoding="utf-8"),
    "JSON": lambda path: path.write_text('{"mine": 1}\n', encoding="utf-8"),
    "link": lambda path: path.symlink_to("../mine"),
    "dangling link": lambda path: path.symlink_to("../nowhere"),
    "directory": lambda path: path.mkdir(),
    "pipe": lambda path: os.mkfifo(path),
}


@fault("studies.foreign", len(NAMES) * len(KINDS))
def foreign(tally: Tally, seed: int, count: int) -> None:
    """Somebody's own file, link, directory or pipe under a name that a study writes."""
    draw = np.random.default_rng([seed, 6])
    pairs = [(name, kind) for name in NAMES for kind in KINDS]
    with scratch() as folder:
        (folder / "mine").write_text("mine", encoding="utf-8")
        for number in draw.permutation(len(pairs))[:count].tolist():
            name, kind = pairs[number]
            directory = folder / str(number)
            directory.mkdir()
            KINDS[kind](directory / name)
            before = snapshot(folder)
            tally.begin()
            code = Running(directory).end(tally, f"{name}: {kind}")
            for suffix in (".err", ".csv"):
                _beside(directory, suffix).unlink(missing_ok=True)
            if code == 2 and snapshot(folder) == before:
                tally.count("refused in one line")
            else:
                tally.tell(f"{name}: {kind}: ended with {code}, and files were changed or nothing was said")


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """All below a folder: kind and content."""
    found = {}
    for path in folder.rglob("*"):
        kind = stat.S_IFMT(path.lstat().st_mode)
        content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(folder))] = (kind, content)
    return found
