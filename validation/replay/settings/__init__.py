"""Settings, one module for each paper: the order of its problems in a replay.

Each module has ``PROBLEMS``, the problems of the catalogue that it asks, the first of them the one whose decision maker
is compared, and ``from_jobs(jobs, *, problem, rng, **options) -> Setting``, which makes a setting of a job table
(:mod:`instances.data.jobs`); most have ``generate`` as well, which draws one.  Those of users come in as
:class:`validation.settings.Settings`, through :func:`validation.register`.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil

from validation.errors import ReplayError
from validation.settings import REGISTERED, Settings

__all__ = ["problems", "settings_of"]


def problems() -> dict[str, Settings]:
    """Return what makes settings that ask a problem, for every problem that can be replayed."""
    return {**_own(), **REGISTERED}


@functools.cache
def _own() -> dict[str, Settings]:
    found: dict[str, Settings] = {}
    for name in sorted(one.name for one in pkgutil.iter_modules(__path__)):
        module = importlib.import_module(f"{__name__}.{name}")
        made = Settings(module.PROBLEMS, module.from_jobs, getattr(module, "generate", None), name)
        for problem in made.problems:
            found.setdefault(problem, made)
    return found


def settings_of(problem: str) -> Settings:
    """Return what makes settings that ask ``problem``.

    Raises
    ------
    ReplayError
        When none asks it; the message lists the problems that can be replayed.
    """
    found = problems()
    if problem not in found:
        raise ReplayError(
            f"{problem} is in no replay; there are {', '.join(found)}; of your own by register(Settings(...)), "
            "in a module that --load names"
        )
    return found[problem]
