"""The directory of a study: whose it is, what is read from it, and what is promised of what is written.

A directory is a study's when it holds the record of one, or a log with rows of one.  Elsewhere no file is
overwritten; symbolic links are followed nowhere.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeAlias

import filelock
import numpy as np

from instances.files import text_of, write_whole
from validation.errors import StudyError
from validation.study.cases import Case
from validation.study.records import CELL, RUN, check_cells, check_row, check_run, parsed

__all__ = [
    "LOG",
    "Log",
    "Rows",
    "Warn",
    "locked",
    "mend_log",
    "read_log",
    "read_study",
    "require_study",
    "save_instances",
    "set_aside",
    "write_json",
    "write_study",
]

RECORD, LOG, ASIDE, LOCK, INSTANCES = "study.json", "rows.jsonl", "rows.damaged.jsonl", ".lock", "instances"
_NAMES = (RECORD, LOG, ASIDE, "results.parquet", "metadata.json", "report.html", INSTANCES)

LOCK_PATIENCE = 2.0
"""Seconds to wait for another run to let go of the directory: one that was killed lets go when its
workers are gone, too."""

Warn: TypeAlias = Callable[[str], object]
"""Takes a line about damage that a study survives."""


# --- whose it is --------------------------------------------------------------------------------


@contextmanager
def locked(directory: Path) -> Iterator[dict[str, Any] | None]:
    """Hold the study's directory, so that two runs cannot write into it at once.

    Yields
    ------
    dict or None
        The record of the study that it holds; None where there is none yet.

    Raises
    ------
    StudyError
        When it cannot be had, or holds files of somebody else's that the study would overwrite.
    """
    lock = filelock.FileLock(directory / LOCK)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        _refuse_foreign(directory)
        lock.acquire(timeout=LOCK_PATIENCE)
    except filelock.Timeout:
        raise StudyError(f"another study is writing to {directory}") from None
    except OSError as error:
        raise StudyError(f"cannot write to {directory}: {error.strerror}") from None
    with lock:
        # Another run may have written one while this one waited.
        yield read_study(directory) if (directory / RECORD).exists() else None


def require_study(directory: Path) -> dict[str, Any]:
    """The record of the study that a directory holds.

    Raises
    ------
    StudyError
        Where it holds no study, or something else under the names of its files.
    """
    found = _refuse_foreign(directory) if os.path.lexists(directory / RECORD) else None
    if found is None:
        raise StudyError(f"{directory} holds no study: there is no {RECORD} in it")
    return found


def _refuse_foreign(directory: Path) -> dict[str, Any] | None:
    """The record of a study, where there is one; an error where there is anything that is no study's."""
    # What there is comes first, and the record after it: a run that begins just now writes its record first.
    found = [name for name in _NAMES if os.path.lexists(directory / name)]
    for name in (LOCK, *found):
        _refuse_odd(directory / name)
    if RECORD in found:
        return read_study(directory)
    if found and not read_log(directory).rows:
        path = directory / found[0]
        raise StudyError(f"{path} is not a study's, there is no {RECORD} beside it: choose another output")
    return None


def _refuse_odd(path: Path) -> None:
    """Raise where a path is another kind of thing than a study writes there."""
    if not os.path.lexists(path):
        return
    found = os.lstat(path)
    if stat.S_ISLNK(found.st_mode):
        raise StudyError(f"{path} is a symbolic link, which a study does not follow")
    folder = path.name == INSTANCES
    if not (stat.S_ISDIR if folder else stat.S_ISREG)(found.st_mode):
        raise StudyError(f"{path} is not a study's: it must be a {'directory' if folder else 'file'}")
    # Taking a lock empties its file.
    if path.name == LOCK and found.st_size:
        raise StudyError(f"{path} is not a study's, whose lock is empty: choose another output")


# --- the record ---------------------------------------------------------------------------------


def write_study(directory: Path, asked: Mapping[str, Any], run: Mapping[str, Any], cells: Sequence[Any]) -> None:
    """Write what was asked, by which run, and the cells that follow from it."""
    write_json(directory / RECORD, {"asked": asked, "run": run, "cells": cells})


def read_study(directory: Path) -> dict[str, Any]:
    """What was asked, by which run, and the cells that follow from it.

    Raises
    ------
    StudyError
        When there is no such record, or an entry of it is not what it must be.
    """
    path = directory / RECORD
    try:
        study = parsed(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise StudyError(f"{directory} holds no study: there is no {RECORD} in it") from None
    except ValueError as error:
        raise StudyError(f"{path}: {error}") from None
    wrong = check_run(study) or check_cells(study["cells"])
    if wrong:
        raise StudyError(f"{path}: {wrong}")
    # What else stands there is nobody's.
    cells = [{name: cell[name] for name in CELL} for cell in study["cells"]]
    return {"asked": study["asked"], "run": {name: study["run"][name] for name in RUN}, "cells": cells}


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file, whole or not at all."""
    write_whole(path, json.dumps(content, indent=1, default=_plain) + "\n")


def _plain(value: Any) -> Any:
    """JSON's word for what it has no word for: arrays and numbers of NumPy's, paths."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)


# --- instances ----------------------------------------------------------------------------------


def save_instances(directory: Path, cases: Sequence[Case]) -> None:
    """Write the instances of a study, those anew that are not as they were written."""
    for case in cases:
        path, text = directory / case.file, text_of(case.instance)
        if path.parent.is_symlink():
            raise StudyError(f"{path.parent} is a symbolic link, which a study does not follow")
        if path.is_file() and not path.is_symlink() and path.read_bytes() == text.encode():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        # What a power cut takes away is written again by the next call.
        write_whole(path, text, durable=False)


# --- the log ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rows:
    """What a log says: its rows, in the order in which the cells ended, and the lines that are none.

    ``damaged`` has the number and the fault of each of these lines.
    """

    rows: list[dict[str, Any]]
    damaged: list[tuple[int, str]]


class Log:
    """The log while it is written: a row is on the disk, whole, when :meth:`append` returns.

    To be used as a context.
    """

    def __init__(self, directory: Path) -> None:
        self.path = directory / LOG
        self.handle = _open_to_append(self.path)
        with contextlib.suppress(OSError):  # Some file systems have no such thing.
            _sync_folder(directory)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
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
            _write(self.handle, (json.dumps(row, allow_nan=False) + "\n").encode())
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self.handle, end)
            raise StudyError(f"cannot write to {self.path}: {error.strerror}") from None


def read_log(directory: Path, cells: Sequence[Mapping[str, Any]] = ()) -> Rows:
    """What the log of a study says.

    A last line without its end is passed over: it is being written, or its writer was killed.

    Parameters
    ----------
    directory : Path
    cells : sequence of mapping, optional
        Cells that the rows may be of; a row that says something else of its cell is none.
    """
    return _read(_lines(directory / LOG)[0], cells)


def mend_log(directory: Path, cells: Sequence[Mapping[str, Any]], warn: Warn) -> list[dict[str, Any]]:
    """The rows of the log, which holds nothing else afterwards.

    A last line without its end is dropped: the run that wrote it was killed in the middle.  Lines that are
    no rows are set aside, each with a warning.
    """
    log = directory / LOG
    lines, torn = _lines(log)
    found = _read(lines, cells)
    if found.damaged:
        bad = {number for number, _ in found.damaged}
        handle = _open_to_append(directory / ASIDE)
        try:
            _write(handle, b"".join(lines[number - 1] + b"\n" for number in sorted(bad)))
        finally:
            os.close(handle)
        write_whole(log, b"".join(line + b"\n" for number, line in enumerate(lines, 1) if number not in bad))
        for number, wrong in found.damaged:
            warn(f"{log}, line {number}: {wrong}; set aside in {ASIDE}, its cell is computed again")
    elif torn:
        os.truncate(log, log.stat().st_size - len(torn))
    return found.rows


def set_aside(directory: Path) -> int:
    """How many lines of the log were set aside so far."""
    return len(_lines(directory / ASIDE)[0])


def _read(lines: Sequence[bytes], cells: Sequence[Mapping[str, Any]]) -> Rows:
    found = Rows([], [])
    known = {cell["key"]: cell for cell in cells}
    for number, line in enumerate(lines, 1):
        try:
            row = parsed(line)
        except ValueError as error:
            found.damaged.append((number, str(error)))
            continue
        wrong = check_row(row, known)
        if wrong:
            found.damaged.append((number, wrong))
        else:
            found.rows.append(row)
    return found


def _lines(path: Path) -> tuple[list[bytes], bytes]:
    """The lines of a file, without their ends, and what stands after the last end."""
    try:
        *lines, torn = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return [], b""
    return lines, torn


def _open_to_append(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)


def _write(handle: int, data: bytes) -> None:
    """Write all of it, and wait until it is on the disk."""
    while data:
        data = data[os.write(handle, data) :]
    os.fsync(handle)


def _sync_folder(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
