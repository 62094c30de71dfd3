"""The ``optgap`` command: one module for each family of commands.

Nothing is imported before signals are waited for (:mod:`validation.cli.interruption`).
"""

import sys

__all__ = ["main"]


def main() -> None:
    """Entry point."""
    from validation.cli.interruption import guarded

    sys.exit(guarded(_run))


def _run() -> int:
    from validation.cli import (  # noqa: F401, they add their commands
        bench,
        collection,
        convert,
        doctor,
        judge,
        problems,
        replay,
        studies,
        testing,
    )
    from validation.cli.app import run

    return run(sys.argv[1:])
