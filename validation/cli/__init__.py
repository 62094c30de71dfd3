"""The ``optgap`` command: one module for each family of commands.

Nothing is imported before signals are waited for (:mod:`validation.cli.interruption`).
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typer import Typer

__all__ = ["MODULES", "commands", "main"]


MODULES = {
    "bench": ["bench"],
    "collection": ["collection"],
    "compare": ["compare"],
    "convert": ["convert"],
    "doctor": ["doctor", "selftest"],
    "judge": ["judge"],
    "problems": ["list", "generate", "solve"],
    "replay": ["replay"],
    "studies": ["study", "merge", "report"],
    "verify": ["verify"],
    "testing": ["check", "hunt", "worst-case", "claims"],
}
"""The commands that each module adds."""


def main() -> None:
    """Entry point."""
    from validation.cli.interruption import guarded

    sys.exit(guarded(_run))


def commands(name: str | None = None) -> Typer:
    """Return the commands, as what Typer calls an app: all, or those of the module that has the one named."""
    wanted = [module for module, names in MODULES.items() if name in names]
    for module in wanted or MODULES:
        import_module(f"validation.cli.{module}")
    from validation.cli.app import app

    return app


def _run() -> int:
    from validation.cli.app import run

    return run(sys.argv[1:], commands)
