"""The ``optgap`` command as a whole: what all commands share.

Every command is a thin shell around a function of the library.  Bad input ends in one line that
names the culprit and exit code 2; a study with an oracle disagreement ends in exit code 1.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from validation.formatting import printable

__all__ = ["BAD_INPUT", "DISAGREEMENT", "app", "complain", "console", "run", "say", "text", "what_is_wrong"]

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


def run(given: Sequence[str]) -> int:
    """The exit code of the command; what the user got wrong becomes one line on standard error."""
    # What a terminal cannot show, such as a path of other bytes, is no reason to lose the rest.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        arguments, loads = _split_loads(given)
        for argument in arguments:
            if "\0" in argument:
                raise typer.BadParameter(f"got {argument!r}, must have no zero byte in it")
        if loads:
            from validation import catalogue

            for reference in loads:
                catalogue.load(reference)
        code = app(arguments or ["--help"], prog_name="optgap", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of a pipe went away, as in ``optgap list | head``.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        message = what_is_wrong(error)
        if message is None:
            raise
        complain(message)
        return BAD_INPUT
    return int(code or 0)


def _split_loads(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
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


def what_is_wrong(error: Exception) -> str | None:
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
    from validation.errors import CatalogueError, ReplayError, StudyError

    expected = (
        InstanceError,
        PlanError,
        CatalogueError,
        StudyError,
        ReplayError,
        SolverNotFound,
        SolverError,
        ModelError,
    )
    return str(error) if isinstance(error, expected) else None


def _os_error(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename else str(error)


def complain(message: str) -> None:
    """One line on standard error."""
    print("optgap:", printable(" ".join(message.split())), file=sys.stderr)


def say(message: str) -> None:
    """Lines on standard output, about names and reasons that are anybody's."""
    print(printable(message))


def text(words: str, style: str = "") -> Text:
    """Words as they are: brackets are no markup, and what a terminal would obey is shown."""
    return Text(printable(words), style)


def console() -> Console:
    """Where tables go."""
    # A table that is cut to a narrow terminal, or to the 80 columns of a pipe, loses its numbers; and words
    # in brackets are words, such as those of a path.
    made = Console(highlight=False, markup=False, emoji=False)
    made.width = max(made.width, 150)
    return made
