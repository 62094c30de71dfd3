"""The ``optgap`` command as a whole: what all commands share.

Every command is a thin shell around a function of the library.  Bad input ends in one line that
names the culprit and exit code 2; a study with an oracle disagreement ends in exit code 1.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer
from rich.console import Console

__all__ = ["BAD_INPUT", "DISAGREEMENT", "app", "complain", "console", "main"]

app = typer.Typer(
    name="optgap",
    help="Exact optima, heuristics, and the gap between them, for GPU-cluster scheduling problems.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

BAD_INPUT = 2
DISAGREEMENT = 1


def _version(asked: bool) -> None:
    if asked:
        from validation.provenance import version

        print(f"optgap {version('scheduling-formulations')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
    load: Annotated[
        list[str] | None,
        typer.Option(help="Module that registers problems, heuristics or claims, or module:problem; anywhere."),
    ] = None,
) -> None:
    """Exact optima, heuristics, and the gap between them, for GPU-cluster scheduling problems."""


def main() -> None:
    """Entry point: what the user got wrong becomes one line on standard error."""
    try:
        arguments, loads = _split_loads(sys.argv[1:])
        if loads:
            from validation import catalogue

            for reference in loads:
                catalogue.load(reference)
        code = app(arguments or ["--help"], prog_name="optgap", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of a pipe went away, as in ``optgap list | head``.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (KeyboardInterrupt, typer.Abort):
        complain("interrupted")
        sys.exit(130)
    except Exception as error:
        message = _what_is_wrong(error)
        if message is None:
            raise
        complain(message)
        sys.exit(BAD_INPUT)
    sys.exit(code)


def _split_loads(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Take ``--load X`` out of the arguments, wherever it stands: what it names must be known to every command."""
    rest: list[str] = []
    loads: list[str] = []
    waiting = iter(arguments)
    for argument in waiting:
        if argument == "--load":
            reference = next(waiting, None)
            if reference is None:
                raise typer.BadParameter("expects a module, such as my_module", param_hint="--load")
            loads.append(reference)
        elif argument.startswith("--load="):
            loads.append(argument.removeprefix("--load="))
        else:
            rest.append(argument)
    return rest, loads


def _what_is_wrong(error: Exception) -> str | None:
    """The user's mistake in words; None for anything else, which is a bug and keeps its traceback."""
    if isinstance(error, OSError):
        return _os_error(error)
    if hasattr(error, "format_message"):  # No such command or option, a value out of range, ...
        return str(error.format_message())
    if isinstance(error, (ImportError, AttributeError)):
        # Other packages with the names of this library's lack what is asked of them.
        from validation.cli.installation import rooms

        return next((finding.text for finding in rooms() if not finding.ok), None)
    from formulations import ModelError, SolverError, SolverNotFound
    from instances.base import InstanceError, PlanError
    from validation.errors import CatalogueError, StudyError

    expected = (InstanceError, PlanError, CatalogueError, StudyError, SolverNotFound, SolverError, ModelError)
    return str(error) if isinstance(error, expected) else None


def _os_error(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename else str(error)


def complain(message: str) -> None:
    """One line on standard error."""
    print("optgap:", " ".join(message.split()), file=sys.stderr)


def console() -> Console:
    """Where tables go."""
    # A table that is cut to a narrow terminal, or to the 80 columns of a pipe, loses its numbers.
    made = Console(highlight=False)
    made.width = max(made.width, 120)
    return made
