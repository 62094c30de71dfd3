"""Problems by name, and instances to and from JSON files."""

from __future__ import annotations

import contextlib
import errno
import importlib
import json
import os
import pkgutil
import secrets
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from instances import outside
from instances.base import Instance, InstanceError
from instances.schema import nearest, quoted
from instances.text import as_json, read_text

__all__ = [
    "UNFINISHED",
    "AnyInstance",
    "instance_type",
    "is_own",
    "load",
    "problems",
    "read",
    "register",
    "save",
    "text_of",
    "unknown_problem",
    "write_whole",
]

_FOLDER = Path(__file__).parent
"""Of the library's own problems, by paper."""

AnyInstance = Instance[Any]
"""An instance of any problem."""

_REGISTERED: dict[str, type[AnyInstance]] = {}
"""Instance classes of problems from outside the library."""

UNFINISHED: set[str] = set()
"""Paths of files beside those that are being written; whoever ends the process at once has to remove them."""


def problems() -> tuple[str, ...]:
    """Names of all problems, ``"<paper>.<problem>"``: the library's in alphabetical order, then those from outside.

    A problem of the library is a module ``instances/<paper>/<problem>.py`` that defines an instance
    class of that name; modules that only help others, as all of ``instances.data`` do, define none and are
    passed over.
    """
    outside.load()
    return (*_own(), *_REGISTERED)


@cache
def _own() -> tuple[str, ...]:
    names = []
    for paper in pkgutil.iter_modules([str(_FOLDER)]):
        # The reference is no paper, and searches plans: whoever names a problem need not have it in memory.
        if paper.ispkg and paper.name != "reference":
            package = importlib.import_module(f"instances.{paper.name}")
            for module in pkgutil.iter_modules(package.__path__):
                name = f"{paper.name}.{module.name}"
                if _class_in(name) is not None:
                    names.append(name)
    return tuple(sorted(names))


def is_own(problem: str) -> bool:
    """Return whether a problem is one of the library's own."""
    return problem in _own()


def instance_type(problem: str) -> type[AnyInstance]:
    """Return the instance class of ``problem``, such as ``"aryl.reclaim"``.

    Raises
    ------
    InstanceError
        When there is no such problem; the nearest name is suggested.
    """
    if is_own(problem):
        found = _class_in(problem)
        assert found is not None
        return found
    if problem not in _REGISTERED:
        outside.load(problem)
    if problem in _REGISTERED:
        return _REGISTERED[problem]
    raise InstanceError(unknown_problem(problem, problems()))


def unknown_problem(problem: Any, known: Iterable[str]) -> str:
    """Say that there is no such problem, and what may be wrong: it is unfinished, misspelt, or not imported."""
    name = str(problem)
    elsewhere = "; import the module that registers it (optgap --load MODULE)" if "." in name else ""
    return f"unknown problem {quoted(problem)}{_unfinished(name) or nearest(name, known) or elsewhere}"


def _unfinished(problem: str) -> str | None:
    """Name what a module under the name of a problem lacks to be one; None where there is no such module."""
    paper, _, name = problem.partition(".")
    if not (paper.isidentifier() and name.isidentifier()):
        return None
    module = _FOLDER / paper / f"{name}.py"
    # Not Path.is_file, to which a name longer than a file's may be is an error.
    if not os.path.isfile(module):
        return None
    if not (module.parent / "__init__.py").is_file():
        return f": {paper}/__init__.py is missing beside {paper}/{name}.py"
    return f": {paper}/{name}.py defines no instance class whose problem is {problem!r}"


def register(cls: type[AnyInstance]) -> None:
    """Make an instance class from outside the library known by the name of its problem.

    A class registered anew under the same name (a notebook's cell run again) takes its place.

    Raises
    ------
    InstanceError
        When the class has no problem's name of the form ``"<paper>.<problem>"``, or one of the
        library's own.
    """
    name = getattr(cls, "problem", None)
    if not isinstance(name, str) or len(parts := name.split(".")) != 2 or not all(p.isidentifier() for p in parts):
        raise InstanceError(f'{cls.__name__}.problem: got {name!r}, must be a name such as "demo.one_server"')
    if is_own(name):
        raise InstanceError(f"{cls.__name__}.problem: {name!r} is a problem of the library: choose another name")
    _REGISTERED[name] = cls


@cache
def _class_in(name: str) -> type[AnyInstance] | None:
    module = importlib.import_module(f"instances.{name}")
    for value in vars(module).values():
        if isinstance(value, type) and issubclass(value, Instance) and vars(value).get("problem") == name:
            return value
    return None


def read(data: Mapping[str, Any]) -> AnyInstance:
    """Return an instance from its JSON form, whatever its problem."""
    if not isinstance(data, Mapping):
        raise InstanceError(f"an instance must be a JSON object, got {type(data).__name__}")
    if not isinstance(data.get("problem", ""), str):
        raise InstanceError(f"field 'problem': got {quoted(data['problem'])}, must be a name such as \"aryl.reclaim\"")
    if "problem" not in data:
        raise InstanceError("field 'problem' is missing, such as \"aryl.reclaim\"")
    return instance_type(data["problem"]).from_dict(data)


def load(path: str | os.PathLike[str]) -> AnyInstance:
    """Read an instance from a JSON file, or from the witness of a hunt, which holds one.

    Raises
    ------
    InstanceError
        When the file is not JSON (it may be truncated) or does not describe an instance; the
        message names the file and the field.
    OSError
        When the file cannot be read.
    """
    data = as_json(read_text(path), f"{path}")
    if isinstance(data, Mapping) and isinstance(data.get("instance"), Mapping):
        data = data["instance"]
    try:
        return read(data)
    except InstanceError as error:
        raise InstanceError(f"{path}: {error}") from None


def save(instance: AnyInstance, path: str | os.PathLike[str]) -> None:
    """Write an instance as JSON; the file appears whole or not at all."""
    write_whole(path, text_of(instance))


def text_of(instance: AnyInstance) -> str:
    """Return the text that :func:`save` writes."""
    return json.dumps(instance.to_dict(), allow_nan=False) + "\n"


def write_whole(
    path: str | os.PathLike[str], content: str | bytes | Iterable[bytes | memoryview], *, durable: bool = True
) -> None:
    """Write a file so that a reader, or a crash, never meets half of it.

    Parameters
    ----------
    path : path
    content : str, bytes or iterable of bytes
        Pieces are written one after the other, so that the whole need not be in memory.
    durable : bool
        Whether that holds of a power cut, too, which takes some milliseconds.

    Raises
    ------
    OSError
        When it cannot be written; its ``filename`` is the path.  What was there is there still.

    Notes
    -----
    A link is replaced, because where it leads to may be somebody else's.  Devices, such as ``/dev/stdout``, and pipes
    are written into; a file in their place would take them from everybody.
    """
    path = Path(path)
    # A path of other bytes than UTF-8's, which a page may name, is no reason to write none.
    data = content.encode(errors="backslashreplace") if isinstance(content, str) else content
    pieces = (data,) if isinstance(data, bytes) else data
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    # Named before it is made: an interruption between the two would leave it behind.
    temporary = path.parent / f".writing-{secrets.token_hex(8)}"
    try:
        if path.parent == Path("/dev") or (path.exists() and not path.is_file() and not path.is_symlink()):
            with open(path, "wb") as file:
                file.writelines(pieces)
            return
        UNFINISHED.add(str(temporary))
        try:
            with open(temporary, "xb") as file:
                file.writelines(pieces)
                file.flush()
                if durable:
                    os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        finally:
            UNFINISHED.discard(str(temporary))
    except OSError as error:
        # What cannot be written is the file that was asked for, not the one beside it.
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None
