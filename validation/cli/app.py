"""The ``optgap`` command as a whole: what all commands share.

Every command is a thin shell around a function of the library.  Bad input ends in one line that
names the culprit and exit code 2; :data:`EXIT_CODES` has the others.
"""

from __future__ import annotations

import functools
import io
import json
import math
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from validation.cli.help import App
from validation.formatting import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

__all__ = [
    "BAD_INPUT",
    "DISAGREEMENT",
    "EXIT_CODES",
    "FAILED",
    "AsJson",
    "app",
    "complain",
    "console",
    "is_quiet",
    "run",
    "say",
    "say_json",
    "text",
    "warn",
    "what_is_wrong",
]

app = App(
    name="optgap",
    help="Exact optima, heuristics, and the gap between them, for GPU-cluster scheduling problems.",
    pretty_exceptions_enable=False,
)
"""The command ``optgap``, to which each module of commands adds its own."""

DISAGREEMENT = 1
"""Exit code when something was refuted: a check, a submission, an oracle."""
BAD_INPUT = 2
"""Exit code when a command was asked for what cannot be."""
FAILED = 3
"""Exit code when some runs failed: a heuristic did, or an exact solve died."""
EXIT_CODES = {
    0: "all is well",
    DISAGREEMENT: (
        "what was examined is not well: a heuristic is better than a proven bound (an oracle disagreement), a check "
        "failed, a submission was not taken, or the installation is not sound"
    ),
    BAD_INPUT: "bad input; one line on standard error names the culprit",
    FAILED: (
        "some runs failed: a heuristic raised, ran past its limit or returned no plan though it may not decline, or an "
        "exact solve died"
    ),
    130: "interrupted by Ctrl-C; 143 by SIGTERM, 129 by the end of the terminal (128 and the number of the signal)",
}
"""What the code says that a command ends with."""

FIRST_STEPS = """\
Exact optima, heuristics, and the gap between them: GPU-cluster scheduling.

A first gap study, heuristics against proven optima:

    optgap study aryl.reclaim --sizes 10,20 --count 10 --seed 1 -o study

One instance, and its optimum with the proof:

    optgap generate gavel.max_min_fairness --seed 1 > one.json
    optgap solve one.json

A heuristic of your own, a function in a file:

    optgap check aryl.reclaim mine.py:my_heuristic

optgap list      the problems and their heuristics
optgap doctor    is this installation sound?
optgap --help    all commands; optgap COMMAND --help the options of one"""

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of words.")]
"""The option of every command that prints results."""

LONGEST_LINE = 2000
"""Letters of a complaint: names that were given may be of any length."""

_quiet = False


def _version(asked: bool) -> None:
    if asked:
        from validation.kernel.provenance import version

        print(f"optgap {version('scheduling-formulations')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
    load: Annotated[
        list[str] | None,
        typer.Option(help="Module that registers problems, heuristics or claims, or module:problem."),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print only warnings and errors, and JSON where it is asked for.")
    ] = False,
) -> None:
    """Exact optima, heuristics, and the gap between them, for GPU-cluster scheduling problems."""


def run(given: Sequence[str], commands: Callable[[str | None], typer.Typer]) -> int:
    """Run the command and return its exit code; the user's mistake becomes one line on standard error.

    Parameters
    ----------
    given : sequence of str
    commands : callable
        Makes :data:`app` have the command of a name, or all where there is none.
    """
    global _quiet
    _quiet = False
    shown = warnings.showwarning
    warnings.showwarning = functools.partial(_warn_of_data, shown)
    # What a terminal cannot show, such as a path of other bytes, is no reason to lose the rest.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        arguments, loads, _quiet = _split_globals(given)
        for argument in arguments:
            if "\0" in argument:
                raise typer.BadParameter(f"got {argument!r}, must have no zero byte in it")
        if loads:
            from validation import catalogue

            for reference in loads:
                catalogue.load(reference)
        if not arguments and "_OPTGAP_COMPLETE" not in os.environ:
            say(FIRST_STEPS)
            return 0
        code = commands(arguments[0] if arguments else None)(arguments, prog_name="optgap", standalone_mode=False)
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
        from validation.errors import HeuristicFailedError

        return FAILED if isinstance(error, HeuristicFailedError) else BAD_INPUT
    finally:
        warnings.showwarning = shown
    return int(code or 0)


def _warn_of_data(others: Callable[..., None], message: Warning, category: type[Warning], *where: Any) -> None:
    """Show a warning: one about data in a line, any other as ever."""
    from instances.data.jobs import DoubtfulData

    if issubclass(category, DoubtfulData):
        complain(f"warning: {message}")
    else:
        others(message, category, *where)


def _split_globals(arguments: Sequence[str]) -> tuple[list[str], list[str], bool]:
    """Take ``--load X`` and ``--quiet`` out of the arguments, wherever they stand: they are of every command."""
    rest: list[str] = []
    loads: list[str] = []
    quiet = False
    waiting = iter(arguments)
    for argument in waiting:
        if argument == "--load":
            reference = next(waiting, None)
            if reference is None:
                raise typer.BadParameter("expects a module, such as my_module", param_hint="--load")
            loads.append(reference)
        elif argument.startswith("--load="):
            loads.append(argument.removeprefix("--load="))
        elif argument == "--quiet":
            quiet = True
        else:
            rest.append(argument)
    return rest, loads, quiet


def what_is_wrong(error: Exception) -> str | None:
    """Say the user's mistake in words; None for anything else, which is a bug and keeps its traceback."""
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
    """One line on standard error; of one that is too long the beginning and the end."""
    words = printable(" ".join(message.split()))
    if len(words) > LONGEST_LINE:
        words = f"{words[: LONGEST_LINE // 2]} ... {words[-LONGEST_LINE // 2 :]}"
    print("optgap:", words, file=sys.stderr)


def is_quiet() -> bool:
    """Return whether the command is to say nothing but what is wrong."""
    return _quiet


def say(message: str) -> None:
    """Lines on standard output, about names and reasons that are anybody's."""
    if not _quiet:
        print(printable(message))


def say_json(data: Any) -> None:
    """One JSON document on standard output; what JSON has no number for, such as an infinite gap, is null."""
    print(json.dumps(_finite(data), allow_nan=False))


def _finite(data: Any) -> Any:
    if isinstance(data, float) and not math.isfinite(data):
        return None
    if isinstance(data, Mapping):
        return {name: _finite(value) for name, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(value) for value in data]
    return data


def warn(message: str, style: str, as_json: bool) -> None:
    """Print a line among the words; on standard error where no words are wanted."""
    if as_json or _quiet:
        complain(message)
    else:
        console().print(text(message, style), soft_wrap=True)


def text(words: str, style: str = "") -> Text:
    """Words as they are: brackets are no markup, and what a terminal would obey is shown."""
    from rich.text import Text

    return Text(printable(words), style)


def console() -> Console:
    """Return the console that tables go to."""
    from rich.console import Console

    # A table that is cut to a narrow terminal, or to the 80 columns of a pipe, loses its numbers; and words
    # in brackets are words, such as those of a path.
    made = Console(highlight=False, markup=False, emoji=False, quiet=_quiet)
    made.width = max(made.width, 150)
    return made
