"""Problems from outside the library: packages that name themselves in an entry-point group.

A package that adds problems, heuristics, claims or strategies names, in its ``pyproject.toml``, the
modules that register them (``validation.register``) when they are imported::

    [project.entry-points.scheduling_formulations]
    "demo.one_server" = "my_package.one_server"

The name of a module that registers a problem is the problem's, so that an instance file can be read
without importing anybody else's package.
"""

from __future__ import annotations

import warnings
from functools import cache
from importlib.metadata import EntryPoint, entry_points

__all__ = ["GROUP", "load"]

GROUP = "scheduling_formulations"
"""Entry points of packages that add problems."""

_LOADED: set[EntryPoint] = set()


@cache
def _found() -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=GROUP))


def load(name: str | None = None) -> None:
    """Import the modules that installed packages name, once each; all of them, or the one of a name.

    A module that cannot be imported is a warning that names its package: one broken package is no
    reason to keep everything else from being used.
    """
    for point in _found():
        if point in _LOADED or name not in (None, point.name):
            continue
        _LOADED.add(point)
        try:
            point.load()
        except Exception as error:
            owner = point.dist.name if point.dist is not None else "a package"
            warnings.warn(f"{owner}: {point.name!r} cannot be loaded: {error}", stacklevel=2)
