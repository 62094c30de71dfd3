"""The ``optgap`` command: one module for each family of commands.

Nothing is imported before signals are waited for (:mod:`validation.cli.interruption`).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typer import Typer

__all__ = ["commands", "main"]


def main() -> None:
    """Entry point."""
    from validation.cli.interruption import guarded

    sys.exit(guarded(_run))


def commands() -> Typer:
    """Return all commands, as what Typer calls an app."""
    from validation.cli import (  # noqa: F401, they add their commands
        bench,
        collection,
        compare,
        convert,
        doctor,
        judge,
        problems,
        replay,
        studies,
        testing,
    )
    from validation.cli.app import app

    return app


def _run() -> int:
    commands()
    from validation.cli.app import run

    return run(sys.argv[1:])
