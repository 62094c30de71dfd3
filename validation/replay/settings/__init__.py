"""Settings, one module for each paper: the order of its problems in a replay.

Each module has ``PROBLEMS``, the problems of the catalogue that it asks, the first of them the one whose decision maker
is compared, and ``from_jobs(jobs, *, problem, rng, **options) -> Setting``, which makes a setting of a job table
(:mod:`instances.data.jobs`).
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

from validation.errors import ReplayError

__all__ = ["module_of", "problems"]


def problems() -> dict[str, str]:
    """Return every problem that a setting asks, and the module of that setting."""
    found: dict[str, str] = {}
    for module in sorted(one.name for one in pkgutil.iter_modules(__path__)):
        for problem in importlib.import_module(f"{__name__}.{module}").PROBLEMS:
            found.setdefault(problem, module)
    return found


def module_of(problem: str) -> ModuleType:
    """Return the module whose ``from_jobs`` makes a setting that asks ``problem``.

    Raises
    ------
    ReplayError
        When no setting asks it; the message lists the problems that can be replayed.
    """
    found = problems()
    if problem not in found:
        raise ReplayError(f"{problem} is in no replay; there are {', '.join(found)}")
    return importlib.import_module(f"{__name__}.{found[problem]}")
