"""The code that a row depends on, as a hash: when it changes, the row is computed again.

Code is told by its source: of the module that defines a function, and of the modules that it draws
on, as far as they are this library's or the user's own.  Other distributions are told by versions.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import os
import pickle
import platform
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any

import formulations
from formulations.engine import solving, verification
from formulations.methods import choice
from formulations.methods.beginning import BEGINNINGS
from validation.catalogue import IMPORT_SECONDS, Heuristic, Imported, import_object
from validation.kernel.isolation import Apart
from validation.kernel.provenance import version

__all__ = ["ROOMS", "code_of", "exact_code", "heuristic_code", "is_installed", "is_library", "is_told"]

_LIBRARY = ("formulations", "heuristics", "instances")
ROOMS = (*_LIBRARY, "validation")
"""Packages of the library."""
_DISTRIBUTIONS = ("scheduling-formulations", "pyomo", "highspy", "numpy", "networkx", "hypothesis", "cloudpickle")
_INSTALLED = tuple(Path(sysconfig.get_path(kind)).resolve() for kind in ("stdlib", "purelib", "platlib"))


def exact_code(problem: str, solver: str, *, verify: bool = False) -> list[str]:
    """Version of an exact solve: of everything between the instance and the answer, and the second answer."""
    names = ("scheduling-formulations", "pyomo", "highspy", "numpy")
    modules = [solving, sys.modules[formulations.formulation(problem).build.__module__]]
    # Looked up by name when something is solved, so that nothing between here and them holds them.
    known = choice(problem)
    modules += [sys.modules[one.solve.__module__] for one in (*known.methods, known.again) if one is not None]
    modules += [importlib.import_module(f"heuristics.{problem}")] if problem in BEGINNINGS else []
    # What verification asks for prices it imports when it does.
    modules += [verification, importlib.import_module("formulations.gavel.duals")] if verify else []
    return [*map(version, names), solver, _hash(_sources(modules))]


def heuristic_code(function: Callable[..., Any]) -> list[str]:
    """Version of a heuristic: of its source, and of the values that it carries along.

    One without a source file (from a notebook or a prompt), or with values that cannot be pickled,
    gets a version of its own each time, because nobody could tell whether it has changed.
    """
    if isinstance(function, Imported):
        with Apart(_imported_code) as apart:
            answer = apart.ask(function.reference, seconds=IMPORT_SECONDS)
        content = (answer.content or {}).get("code") or os.urandom(16).hex()
    else:
        content = _content(function)
    return [version("scheduling-formulations"), version("numpy"), content]


def is_told(function: Callable[..., Any]) -> bool:
    """Return whether a heuristic has the same version each time that it is asked for."""
    return heuristic_code(function) == heuristic_code(function)


def code_of(problems: Sequence[str] = ()) -> dict[str, str]:
    """Return what the result of a task depends on beside the task, by name: versions, and hashes of sources.

    Parameters
    ----------
    problems : sequence of str
        Problems from outside the library, whose code counts too.
    """
    digest = hashlib.sha256()
    for room in ROOMS:
        folder = Path(str(importlib.import_module(room).__file__)).parent
        for file in sorted(folder.rglob("*.py")):
            content = file.read_bytes()
            digest.update(f"{file.relative_to(folder.parent).as_posix()}:{len(content)}:".encode() + content)
    return {
        "Python": platform.python_version(),
        **{name: version(name) for name in _DISTRIBUTIONS},
        "source of the library": digest.hexdigest(),
        **{f"source of {problem}": exact_code(problem, "highs")[-1] for problem in problems},
    }


def _content(function: Callable[..., Any]) -> str:
    try:
        return _hash(_parts(function, set()))
    except Exception:  # Pickling runs code of anyone's.
        return os.urandom(16).hex()


def _imported_code(reference: str) -> dict[str, Any]:
    found = import_object(reference)
    return {"code": _content(found.function if isinstance(found, Heuristic) else found)}


def _hash(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)}:".encode() + part)
    return digest.hexdigest()


def _parts(value: Any, seen: set[int]) -> Iterator[bytes]:
    """Bytes that change when what ``value`` does or holds changes."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, functools.partial):
        held = [value.func, *value.args, *value.keywords, *value.keywords.values()]
    elif isinstance(value, MethodType):
        held = [value.__func__, value.__self__]
    elif isinstance(value, FunctionType):
        yield value.__qualname__.encode()
        yield from _sources([sys.modules[value.__module__]])
        held = [cell.cell_contents for cell in value.__closure__ or ()]
        held += [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
    else:
        yield pickle.dumps(value)
        held = []
        if callable(value):
            yield from _sources([sys.modules[type(value).__module__]])
    for one in held:
        yield from _parts(one, seen)


def _sources(modules: Iterable[ModuleType]) -> Iterator[bytes]:
    """Names and sources of modules, and of those of the library's and the user's that they use."""
    waiting = {module.__name__: module for module in modules}
    own = {name.split(".")[0] for name in waiting}
    found: dict[str, bytes] = {}
    while waiting:
        name, module = waiting.popitem()
        file = getattr(module, "__file__", None)
        # Of what was typed into a notebook or a prompt nobody could tell whether it has changed.
        found[name] = os.urandom(16) if file is None else Path(file).read_bytes()
        for value in vars(module).values():
            used = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
            # A package knows those of its modules that happen to be imported, used or not.
            inside = isinstance(value, ModuleType) and value.__name__.startswith(f"{name}.")
            if not isinstance(used, str) or inside or used in found or used not in sys.modules:
                continue
            if used.split(".")[0] in own or _is_watched(sys.modules[used]):
                waiting[used] = sys.modules[used]
    for name in sorted(found):
        yield name.encode()
        yield found[name]


def _is_watched(module: ModuleType) -> bool:
    room = module.__name__.split(".")[0]
    if room in ROOMS:
        return room != "validation"  # What measures is no part of what is measured.
    file = getattr(module, "__file__", None)
    return file is not None and not is_installed(file)


def is_library(function: Any) -> bool:
    """Return whether a function is found by its name in the library's modules."""
    module, name = getattr(function, "__module__", None) or "", getattr(function, "__qualname__", "")
    return module.split(".")[0] in ROOMS and getattr(sys.modules.get(module), name, None) is function


@functools.cache
def is_installed(file: str) -> bool:
    """Return whether a file is Python's own, or belongs to an installed distribution."""
    # Asked of the same hundreds of files in every study.
    path = Path(file).resolve()
    return any(path.is_relative_to(place) for place in _INSTALLED)
