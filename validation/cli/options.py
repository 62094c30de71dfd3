"""Commands whose options are the fields of a class (:class:`validation.kernel.options.Options`)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from operator import getitem
from pathlib import Path
from typing import Annotated, Any

import typer

from validation.cli.completion import heuristic_names, problem_names
from validation.kernel.options import Options, as_toml

__all__ = ["with_options"]

COMPLETED: dict[str, Callable[..., Any]] = {
    "problem": problem_names,
    "problems": problem_names,
    "heuristics": heuristic_names,
}
"""Options whose values a shell can complete."""


def with_options(command: Callable[..., None], kind: type[Options], others: Mapping[str, tuple[Any, Any]]) -> None:
    """Give a command the parameters of a class of options, and ``config``, a TOML file with the same.

    Parameters
    ----------
    command : callable
    kind : type
    others : mapping of str to (type, option)
        What it takes besides.
    """
    parameters = []
    for one in kind.fields():
        told = one.metadata
        made = typer.Argument if told["argument"] else typer.Option
        help = told["help"]
        if not isinstance(told["default"], bool) and told["default"] is not None:
            help = f"{help.rstrip('.')}; {as_toml(told['default'])} by default."
        completed = COMPLETED.get(one.name)
        parameters.append(
            _parameter(one.name, told["annotation"], made(*told["names"], help=help, autocompletion=completed))
        )
    config = typer.Option(help="TOML file with the same options; options given here win.")
    parameters.insert(1, _parameter("config", Path, config))
    parameters += [_parameter(name, *told) for name, told in others.items()]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}


def _parameter(name: str, kind: Any, told: Any) -> inspect.Parameter:
    annotation = getitem(Annotated, (kind | None, told))
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
