"""Commands whose options are the fields of a class (:class:`validation.kernel.options.Options`)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import Field
from operator import getitem
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from validation.cli.completion import (
    claim_names,
    heuristic_names,
    problem_and_heuristic,
    problem_names,
    solver_names,
)
from validation.kernel.options import Options, as_toml

__all__ = ["with_options"]

COMPLETED: dict[str, Callable[..., Any]] = {
    "problem": problem_names,
    "problems": problem_names,
    "heuristic": heuristic_names,
    "heuristics": heuristic_names,
    "name": claim_names,
    "names": problem_and_heuristic,
    "solver": solver_names,
}
"""Options whose values a shell can complete."""


def with_options(kind: type[Options], *, config: bool = False) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of a class in place of its first parameter, which gets what was asked.

    Parameters
    ----------
    kind : type
    config : bool
        Whether a TOML file may hold them as well.  None has to be given on the command line then.
    """
    asked = [_parameter(one, config) for one in kind.fields()]
    if config:
        told = typer.Option(help="TOML file with the same options; options given here win.")
        asked.insert(1, _keyword("config", Path, told, None))

    def with_them(command: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(command, include_extras=True)
        _, *own = inspect.signature(command).parameters.values()
        rest = [one.replace(kind=one.KEYWORD_ONLY, annotation=hints[one.name]) for one in own]

        @functools.wraps(command)
        def run(**given: Any) -> None:
            others = {one.name: given.pop(one.name) for one in rest}
            command(kind.given(**given), **others)

        signature = inspect.Signature([*asked, *rest])
        run.__signature__ = signature  # type: ignore[attr-defined]
        run.__annotations__ = {name: one.annotation for name, one in signature.parameters.items()}
        return run

    return with_them


def _parameter(one: Field[Any], config: bool) -> inspect.Parameter:
    """Return the parameter of an option, which has no default where a TOML file may hold it."""
    told, help, default = one.metadata, one.metadata["help"], one.default
    limits = {} if config else {"min": told["least"], "max": told["most"]}
    if config:
        if default is not None and not isinstance(default, bool):
            help = f"{help.rstrip('.')}; {as_toml(default)} by default."
        default = None
    elif told["required"]:
        default = inspect.Parameter.empty
    names = told["names"] or ((f"--{one.name.replace('_', '-')}",) if told["kinds"] == (bool,) else ())
    made: Any = typer.Argument if told["argument"] else typer.Option
    shown = made(*names, help=help, metavar=told["metavar"], autocompletion=COMPLETED.get(one.name), **limits)
    several = list in told["kinds"] or dict in told["kinds"]
    return _keyword(one.name, list[str] if several else Path if told["paths"] else told["kinds"][-1], shown, default)


def _keyword(name: str, kind: Any, shown: Any, default: Any) -> inspect.Parameter:
    annotation = getitem(Annotated, (kind if default is inspect.Parameter.empty else kind | None, shown))
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
