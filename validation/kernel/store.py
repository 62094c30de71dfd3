"""The directory of a table: whose it is, what is read from it, and what is promised of what is written.

A directory is a study's when it holds the record of one, or a log with rows of one; so with every kind.  Elsewhere no
file is overwritten; symbolic links are followed nowhere.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import stat
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, Self

import filelock
import numpy as np

from instances.files import write_whole
from validation.errors import StudyError
from validation.kernel.kind import Kind, Warn
from validation.kernel.records import RUN, Cells, check_run, parsed

__all__ = [
    "INSTANCES",
    "LOG",
    "Line",
    "Log",
    "Record",
    "Rows",
    "Warn",
    "as_stored",
    "content_of",
    "is_whole",
    "lines_of",
    "locked",
    "mend_log",
    "own_record",
    "read_log",
    "read_record",
    "require_record",
    "rows_of",
    "set_aside",
    "to_hide",
    "write_json",
    "write_record",
]

LOG, ASIDE, LOCK, INSTANCES = "rows.jsonl", "rows.damaged.jsonl", ".lock", "instances"
"""Names in the directory, whatever the kind."""

LOCK_PATIENCE = 2.0
"""Seconds to wait for another run to let go of the directory: one that was killed lets go when its
workers are gone, too."""


# --- whose it is --------------------------------------------------------------------------------


@contextmanager
def locked(directory: Path, kind: Kind) -> Iterator[Record | None]:
    """Hold a directory, so that two runs cannot write into it at once.

    Yields
    ------
    Record or None
        The record that it holds; None where there is none yet.

    Raises
    ------
    StudyError
        When it cannot be had, or holds files of somebody else's that would be overwritten.
    """
    lock = filelock.FileLock(directory / LOCK)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        own_record(directory, kind)
        lock.acquire(timeout=LOCK_PATIENCE)
    except filelock.Timeout:
        raise StudyError(f"another {kind.name} is writing to {directory}") from None
    except OSError as error:
        raise StudyError(f"cannot write to {directory}: {error.strerror}") from None
    with lock:
        # Another run may have written one while this one waited.
        yield read_record(directory, kind) if (directory / kind.record).exists() else None


def _names(kind: Kind) -> tuple[str, ...]:
    """Names that nobody else may have in the directory."""
    return (kind.record, LOG, ASIDE, *kind.files, *kind.folders)


def require_record(directory: Path, kind: Kind) -> Record:
    """Read the record that a directory holds, or raise where there is none.

    Raises
    ------
    StudyError
        Where it holds none of the kind, or something else under the names of its files.
    """
    found = own_record(directory, kind) if os.path.lexists(directory / kind.record) else None
    if found is None:
        raise StudyError(f"{directory} holds no {kind.name}: there is no {kind.record} in it")
    return found


def own_record(directory: Path, kind: Kind) -> Record | None:
    """Read the record, where there is one; raise where there is anything that is of no such kind."""
    # What there is comes first, and the record after it: a run that begins just now writes its record first.
    found = [name for name in _names(kind) if os.path.lexists(directory / name)]
    for name in (LOCK, *found):
        _refuse_odd(directory / name, kind)
    if kind.record in found:
        return read_record(directory, kind)
    if found and all(line.wrong for line in lines_of(directory, kind)):
        path = directory / found[0]
        raise StudyError(f"{path} is not a {kind.name}'s, there is no {kind.record} beside it: choose another output")
    return None


def _refuse_odd(path: Path, kind: Kind) -> None:
    """Raise where a path is another sort of thing than is written there."""
    if not os.path.lexists(path):
        return
    found = os.lstat(path)
    if stat.S_ISLNK(found.st_mode):
        raise StudyError(f"{path} is a symbolic link, which a {kind.name} does not follow")
    folder = path.name in kind.folders
    if not (stat.S_ISDIR if folder else stat.S_ISREG)(found.st_mode):
        raise StudyError(f"{path} is not a {kind.name}'s: it must be a {'directory' if folder else 'file'}")
    # Taking a lock empties its file.
    if path.name == LOCK and found.st_size:
        raise StudyError(f"{path} is not a {kind.name}'s, whose lock is empty: choose another output")


def to_hide(directory: Path, kind: Kind) -> tuple[Path, ...]:
    """Return what code of the user's must not read: the results in a directory, and in those that lie near.

    Where the user's code lies in the directory itself, what no run has written there may be read.
    """
    directory, here = Path(os.path.realpath(directory)), Path("/")
    with contextlib.suppress(OSError):  # The current folder may be gone.
        here = Path.cwd()
    needed = (here, Path(sys.prefix))
    own = [directory]
    if any(one.is_relative_to(directory) for one in needed) or any(directory.glob("*.py")):
        # What is half written begins with a point.
        unseen = [one for one in directory.glob(".*") if one.is_file()]
        own = [*(directory / name for name in _names(kind)), *unseen]
    near = dict.fromkeys([*_beside(here), *_beside(directory.parent)])
    looked = itertools.chain(near, itertools.chain.from_iterable(map(_beside, near)))
    others = [one for one in itertools.islice(looked, _MOST_NEAR) if os.path.lexists(one / LOG)]
    found = (one / LOG if any(place.is_relative_to(one) for place in needed) else one for one in dict.fromkeys(others))
    return *own, *(one for one in found if one not in (directory, directory / LOG))


_MOST_BESIDE, _MOST_NEAR = 1000, 5000
"""What is looked through, in a folder and in all."""


def _beside(folder: Path) -> list[Path]:
    """Return the folders in a folder; of the first so many entries."""
    with contextlib.suppress(OSError), os.scandir(folder) as found:
        return [Path(one.path) for one in itertools.islice(found, _MOST_BESIDE) if one.is_dir(follow_symlinks=False)]
    return []


# --- the record ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Record:
    """The record of a directory.

    Attributes
    ----------
    asked : dict
        What was asked.
    run : dict
        By which run last.
    cells : Cells
        What follows from it.
    runs : list of dict
        All runs that are known of, where there were several.
    """

    asked: Mapping[str, Any]
    run: Mapping[str, Any]
    cells: Cells
    runs: Sequence[Mapping[str, Any]] = ()


_CELLS, _END = b' "cells":[\n', b"]}\n"
"""What stands before and after the cells, which have a line each; versions before indented them."""


def write_record(directory: Path, record: Record, kind: Kind) -> None:
    """Write the record, whole or not at all."""
    write_whole(directory / kind.record, _pieces(record))


def _pieces(record: Record) -> Iterator[bytes]:
    head = {"asked": record.asked, "run": record.run, **({"runs": record.runs} if record.runs else {})}
    yield json.dumps(head, indent=1, default=_plain).removesuffix("\n}").encode() + b",\n" + _CELLS
    for number, cell in enumerate(record.cells):
        yield (b",\n" if number else b"") + json.dumps(cell).encode()
    yield b"\n" + _END


def read_record(directory: Path, kind: Kind) -> Record:
    """Read the record that a directory holds; what else it holds is not looked at.

    Raises
    ------
    StudyError
        When there is no such record, or an entry of it is not what it must be.
    """
    path = directory / kind.record
    try:
        with path.open("rb") as file:
            return _read_record(file, kind)
    except (FileNotFoundError, NotADirectoryError):
        raise StudyError(f"{directory} holds no {kind.name}: there is no {kind.record} in it") from None
    except ValueError as error:
        raise StudyError(f"{path}: {error}") from None


def _read_record(file: BinaryIO, kind: Kind) -> Record:
    head: list[bytes] = []
    for line in file:
        if line == _CELLS:
            told = parsed(b"".join(head) + b' "cells":' + b"[]}")
            cells: Iterable[Any] = _cells_by_line(file)
            break
        head.append(line)
    else:
        told = parsed(b"".join(head))
        cells = told["cells"] if isinstance(told, dict) and isinstance(told.get("cells"), list) else ()
    wrong = check_run(told, kind.asked)
    if wrong:
        raise ValueError(wrong)
    run, *runs = ({name: one.get(name) for name in RUN} for one in (told["run"], *told.get("runs", [])))
    # What else stands there is nobody's.
    return Record(told["asked"], run, kind.cells(told["asked"], cells), runs)


def _cells_by_line(file: BinaryIO) -> Iterator[Any]:
    waiting = b""
    for line in file:
        if waiting == _END:
            break
        if waiting:
            yield parsed(waiting.removesuffix(b",\n"))
        waiting = line
    else:
        if waiting == _END:
            return
    raise ValueError("not valid JSON")


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file, whole or not at all."""
    write_whole(path, json.dumps(content, indent=1, default=_plain) + "\n")


def as_stored(content: Any) -> Any:
    """Content as it comes back from a file."""
    return json.loads(json.dumps(content, default=_plain))


def _plain(value: Any) -> Any:
    """JSON's word for what it has no word for: arrays and numbers of NumPy's, paths."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)


# --- the log ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a log: a row, or what is ``wrong`` with it.

    Attributes
    ----------
    number : int
        From 1.
    start : int
        Where it begins in the file, bytes.
    content : bytes
        With its end.
    row : dict
        Empty where something is wrong.
    wrong : str
        Empty where nothing is.
    """

    number: int
    start: int
    content: bytes
    row: dict[str, Any]
    wrong: str


class Log:
    """The log while it is written: what :meth:`Log.append` adds is on the disk, whole, when :meth:`Log.sync` returns.

    To be used as a context.
    """

    def __init__(self, directory: Path) -> None:
        self.path = directory / LOG
        self.handle = _open_to_append(self.path)
        self.synced = True
        with contextlib.suppress(OSError):  # Some file systems have no such thing.
            _sync_folder(directory)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.sync()
        finally:
            os.close(self.handle)

    def append(self, row: Mapping[str, Any]) -> None:
        """Add a row.

        Raises
        ------
        StudyError
            When it cannot be written; the log ends with the row before, then.
        """
        end = os.fstat(self.handle).st_size
        try:
            self.synced = False
            _write(self.handle, (json.dumps(row, allow_nan=False) + "\n").encode())
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self.handle, end)
            raise StudyError(f"cannot write to {self.path}: {error.strerror}") from None

    def sync(self) -> None:
        """Wait until all rows are on the disk: once for many, because it takes some milliseconds.

        Raises
        ------
        StudyError
            When they cannot be written.
        """
        try:
            if not self.synced:
                os.fsync(self.handle)
            self.synced = True
        except OSError as error:
            raise StudyError(f"cannot write to {self.path}: {error.strerror}") from None


@dataclass(frozen=True)
class Rows:
    """The content of a log: its rows, in the order in which the cells ended, and the lines that are none.

    ``damaged`` has the number and the fault of each of these lines.
    """

    rows: list[dict[str, Any]]
    damaged: list[tuple[int, str]]


def read_log(directory: Path, kind: Kind, cells: Cells | None = None) -> Rows:
    """Read at once what :func:`lines_of` yields."""
    lines = [*lines_of(directory, kind, cells)]
    return Rows(
        [line.row for line in lines if not line.wrong], [(line.number, line.wrong) for line in lines if line.wrong]
    )


_KEY = re.compile(rb'"key": "([0-9a-f]{64})"')
"""How the library writes the key of a row."""


def lines_of(
    directory: Path, kind: Kind, cells: Cells | None = None, *, keys: Collection[str] | None = None
) -> Iterator[Line]:
    """Yield the lines of a log, one by one, in the order in which the cells ended.

    A last line without its end is passed over: it is being written, or its writer was killed.

    Parameters
    ----------
    directory : Path
    kind : Kind
    cells : Cells, optional
        Cells that the rows may be of; a row that says something else of its cell is none.
    keys : collection of str, optional
        Of the rows that are wanted; most others are not looked at.
    """
    start = 0
    for number, content in enumerate(_lines(directory / LOG), 1):
        told = None if keys is None else _KEY.search(content)
        if keys is not None and told and told[1].decode() not in keys:
            start += len(content)
            continue
        row, wrong = {}, ""
        try:
            row = parsed(content)
            wrong = kind.check(row, cells)
        except ValueError as error:
            wrong = str(error)
        yield Line(number, start, content, {} if wrong else row, wrong)
        start += len(content)


def rows_of(directory: Path, kind: Kind, cells: Cells, warn: Warn) -> Iterator[dict[str, Any]]:
    """Yield the rows of a log that are of these cells; of several of one cell the last holds.

    Parameters
    ----------
    directory : Path
    kind : Kind
    cells : Cells
    warn : callable
        Told of each line that is none, and passed over.
    """
    for line in lines_of(directory, kind, cells):
        if line.wrong:
            then = f"passed over, the {kind.name}'s command computes its cell again"
            warn(f"{directory / LOG}, line {line.number}: {line.wrong}; {then}")
        elif line.row["key"] in cells.numbers:
            yield line.row


def is_whole(directory: Path, kind: Kind, row: Mapping[str, Any]) -> bool:
    """Return whether the files that are a row's own are as they were written."""
    files = {} if kind.beside is None else kind.beside(row)
    return all(content_of(directory / file, wanted) is not None for file, wanted in files.items())


def content_of(path: Path, wanted: str) -> bytes | None:
    """Read a file; None where its content has not the wanted hash."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    return content if sha256(content).hexdigest() == wanted else None


def mend_log(directory: Path, kind: Kind, cells: Cells, warn: Warn) -> set[int]:
    """Numbers of the cells that the log has a row of, failures excepted; it holds nothing but rows afterwards.

    A last line without its end is dropped: the run that wrote it was killed in the middle.  Lines that are
    no rows are set aside, each with a warning.  A row that has lost a file of its own counts for nothing.
    """
    log, end = directory / LOG, 0
    done: set[int] = set()
    damaged: list[Line] = []
    for line in lines_of(directory, kind, cells):
        end = line.start + len(line.content)
        if line.wrong:
            damaged.append(line)
        elif line.row["status"] != "failed" and line.row["key"] in cells.numbers:
            cell = cells.numbers[line.row["key"]]
            (done.add if is_whole(directory, kind, line.row) else done.discard)(cell)
    if damaged:
        handle = _open_to_append(directory / ASIDE)
        try:
            _write(handle, b"".join(line.content for line in damaged))
            os.fsync(handle)
        finally:
            os.close(handle)
        bad = {line.number for line in damaged}
        write_whole(log, (content for number, content in enumerate(_lines(log), 1) if number not in bad))
        for line in damaged:
            warn(f"{log}, line {line.number}: {line.wrong}; set aside in {ASIDE}, its cell is computed again")
    elif log.exists() and log.stat().st_size > end:
        os.truncate(log, end)
    return done


def set_aside(directory: Path) -> int:
    """Count the lines of the log that were set aside so far."""
    return sum(1 for _ in _lines(directory / ASIDE))


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file, but for a last one without its end."""
    try:
        with path.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    return
                yield line
    except FileNotFoundError:
        return


def _open_to_append(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)


def _write(handle: int, data: bytes) -> None:
    """Write all of it."""
    while data:
        data = data[os.write(handle, data) :]


def _sync_folder(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
