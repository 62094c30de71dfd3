"""Outputs of commands: tried before there is anything to lose; files of others are not overwritten."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from instances.base import InstanceError
from instances.text import as_json, read_text
from validation.errors import StudyError

__all__ = ["folder_to_write", "refuse_foreign", "try_file", "try_folder", "writing"]

_PAGE = b'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>'
"""Beginning of the pages of hunts."""


def refuse_foreign(path: Path, problem: str) -> None:
    """Raise where something is in the way that the command has not written.

    Parameters
    ----------
    path : Path
        Of an instance, of a witness, or of the page of one.
    problem : str

    Raises
    ------
    StudyError
        When there is something else than an instance of the problem, or a page about it.
    """
    if not os.path.lexists(path):
        return
    if path.is_symlink() or not path.is_file() or not _is_own(path, problem):
        raise StudyError(f"{path} is in the way, and holds no {problem}: choose another directory")


def _is_own(path: Path, problem: str) -> bool:
    if path.suffix == ".html":
        return path.read_bytes().startswith(_PAGE + problem.encode())
    try:
        data = as_json(read_text(path), f"{path}")
    except InstanceError:
        return False
    # What the problem has become since, so that it refuses its own old instances, does not matter.
    held = data.get("instance", data) if isinstance(data, Mapping) else None
    return isinstance(held, Mapping) and held.get("problem") == problem


@contextlib.contextmanager
def folder_to_write(folder: Path) -> Iterator[None]:
    """Make a folder that takes files, where it is missing; remove what was made if it stays empty.

    Raises
    ------
    StudyError
        When nothing can be written there, before anything else is done.
    """
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    try:
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        try_folder(folder)
        yield
    except OSError as error:
        # Nor is it the folder that does not take it where the reader of a pipe is gone.
        if error.filename is not None or isinstance(error, BrokenPipeError):
            raise
        # A write that fails names no file.
        raise StudyError(f"cannot write to {folder}: {error.strerror}") from None
    finally:
        with contextlib.suppress(OSError):
            for made in missing:
                made.rmdir()


def try_file(path: Path) -> None:
    """Refuse a file that cannot be written, without replacing one of its name.

    Raises
    ------
    StudyError
    """
    if path.is_dir():
        raise StudyError(f"cannot write to {path}: it is a directory")
    with writing(path):
        _write_into(path.parent)


def try_folder(folder: Path) -> None:
    """Refuse a folder that takes no files.

    Raises
    ------
    StudyError
    """
    with writing(folder):
        _write_into(folder)


@contextlib.contextmanager
def writing(place: Path) -> Iterator[None]:
    """Turn a failure within the context into an error that names the place."""
    try:
        yield
    except OSError as error:
        raise StudyError(f"cannot write to {place}: {error.strerror}") from None


def _write_into(folder: Path) -> None:
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(4096))  # A block of most disks.
        file.flush()
