"""Problems by name, and instances to and from JSON files."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import instances
from instances.base import Instance, InstanceError, nearest

AnyInstance = Instance[Any]


@cache
def problems() -> tuple[str, ...]:
    """Names of all problems, ``"<paper>.<problem>"``, in alphabetical order.

    A problem is a module ``instances/<paper>/<problem>.py`` that defines an instance class of
    that name; modules of a paper that only help others define none and are passed over.
    """
    names = []
    for paper in pkgutil.iter_modules(instances.__path__):
        if paper.ispkg:
            package = importlib.import_module(f"instances.{paper.name}")
            for module in pkgutil.iter_modules(package.__path__):
                name = f"{paper.name}.{module.name}"
                if _class_in(name) is not None:
                    names.append(name)
    return tuple(sorted(names))


@cache
def instance_type(problem: str) -> type[AnyInstance]:
    """The instance class of ``problem``, such as ``"aryl.reclaim"``.

    Raises
    ------
    InstanceError
        When there is no such problem; the nearest name is suggested.
    """
    if problem in problems():
        found = _class_in(problem)
        assert found is not None
        return found
    raise InstanceError(f"unknown problem {problem!r}{nearest(str(problem), problems())}")


def _class_in(name: str) -> type[AnyInstance] | None:
    module = importlib.import_module(f"instances.{name}")
    for value in vars(module).values():
        if isinstance(value, type) and issubclass(value, Instance) and vars(value).get("problem") == name:
            return value
    return None


def read(data: Mapping[str, Any]) -> AnyInstance:
    """An instance from its JSON form, whatever its problem."""
    if not isinstance(data, Mapping):
        raise InstanceError(f"an instance must be a JSON object, got {type(data).__name__}")
    if not isinstance(data.get("problem", ""), str):
        raise InstanceError(f"field 'problem': got {data['problem']!r}, must be a name such as \"aryl.reclaim\"")
    if "problem" not in data:
        raise InstanceError("field 'problem' is missing, such as \"aryl.reclaim\"")
    return instance_type(data["problem"]).from_dict(data)


def load(path: str | os.PathLike[str]) -> AnyInstance:
    """Read an instance from a JSON file.

    Raises
    ------
    InstanceError
        When the file is not JSON (it may be truncated) or does not describe an instance; the
        message names the file and the field.
    OSError
        When the file cannot be read.
    """
    path = Path(path)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise InstanceError(f"{path}: not a text file") from None
    except json.JSONDecodeError as error:
        raise InstanceError(f"{path}: not valid JSON at line {error.lineno}: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        # A number of thousands of digits, or lists nested as deeply.
        raise InstanceError(f"{path}: not valid JSON: {error}") from None
    try:
        return read(data)
    except InstanceError as error:
        raise InstanceError(f"{path}: {error}") from None


def save(instance: AnyInstance, path: str | os.PathLike[str]) -> None:
    """Write an instance as JSON; the file appears whole or not at all."""
    write_whole(path, json.dumps(instance.to_dict(), allow_nan=False) + "\n")


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a file so that a reader, or a crash, never meets half of it."""
    path = Path(path)
    data = content.encode() if isinstance(content, str) else content
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
