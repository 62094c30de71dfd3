"""Names under which things stood in the version before, for one release; using one is a ``DeprecationWarning``."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["Finder", "moved_modules", "moved_names"]


def moved_names(module: str, home: str, *names: str) -> Callable[[str], Any]:
    """Make the ``__getattr__`` of a module from which names have moved to another, which is imported when asked for.

    Parameters
    ----------
    module, home : str
        Where the names were, and where they are.
    *names : str
    """

    def found(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        _warn(f"{module}.{name}", f"{home}.{name}")
        return getattr(importlib.import_module(home), name)

    return found


def moved_modules(renamed: Mapping[str, str]) -> None:
    """Let the import system find modules under their old names.

    Parameters
    ----------
    renamed : mapping
        New names by old ones.
    """
    sys.meta_path.insert(0, Finder(renamed))


class Finder(MetaPathFinder, Loader):
    """Finds modules under their old names; each hands on what the new one has.

    Parameters
    ----------
    renamed : mapping
        New names by old ones.
    """

    def __init__(self, renamed: Mapping[str, str]) -> None:
        self.renamed = renamed

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module under its old name; None of any other."""
        return ModuleSpec(fullname, self, is_package=True) if fullname in self.renamed else None

    def exec_module(self, module: ModuleType) -> None:
        """Let the module hand on what the new one has, and warn."""
        old, new = module.__name__, self.renamed[module.__name__]
        _warn(old, new)
        found = importlib.import_module(new)
        module.__doc__ = found.__doc__
        module.__getattr__ = lambda name: getattr(found, name)  # type: ignore[method-assign]


def _warn(old: str, new: str) -> None:
    warnings.warn(f"{old} is {new} now; the old name goes with the next release", DeprecationWarning, stacklevel=3)
