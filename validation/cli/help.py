"""Help as people read it: commands and options in groups by what they are for, values in words."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

__all__ = ["COMMANDS", "OPTIONS", "App"]

COMMANDS = {
    "Problems and instances": ("list", "generate", "solve", "verify", "convert"),
    "Studies": ("study", "replay", "merge", "report", "compare"),
    "A heuristic of yours": ("check", "hunt", "worst-case", "judge"),
    "What is known": ("claims", "collection"),
    "The installation": ("doctor", "selftest", "bench"),
}
"""What commands are for."""

OPTIONS = {
    "Real data": ("throughputs", "trace", "placements", "reader", "times", "real_only", "repair"),
    "Cluster and jobs": ("setting", "restart", "migration", "round_length"),
    "Windows and draws": ("windows", "length", "seeds", "ties"),
    "Solver and limits": (
        "solver",
        "verify",
        "certificate",
        "gaps",
        "offline",
        "time_limit",
        "replay_limit",
        "memory_limit",
    ),
    "Machines": ("jobs", "shard", "dask"),
    "Output": ("output", "dry_run", "as_json", "help"),
}
"""What options are for, by the names of their parameters; others come first."""

MANY = 12
"""Options from which on they are told in groups."""

WORDS = {"str": "text", "int": "number", "float": "number", "Path": "path"}
"""Types, for those who do not write Python."""


def _grouped(rows: Mapping[str, Any], groups: Mapping[str, Sequence[str]], others: str) -> dict[str, list[Any]]:
    """Return rows by the titles of their groups, those of none first."""
    of_some = {name for names in groups.values() for name in names}
    found = {others: [row for name, row in rows.items() if name not in of_some]}
    found |= {title: [rows[name] for name in names if name in rows] for title, names in groups.items()}
    return {title: told for title, told in found.items() if told}


def _told(parameter: Any, context: Any) -> tuple[str, str] | None:
    """Return the name of a parameter with its value in words, and what it means; None for a hidden one."""
    record = parameter.get_help_record(context)
    if record is None:
        return None
    name, help = record
    if parameter.param_type_name == "argument":
        # Its name tells what it is.
        return re.sub(r" <[\w\[\]]+>", "", name), help
    return re.sub(r"<(?:list\[)?(\w+)(?:\]| range)?>", lambda found: f"<{WORDS.get(found[1], found[1])}>", name), help


def _write_parameters(command: Any, context: Any, formatter: Any) -> None:
    """Write what a command takes."""
    told = [(one, row) for one in command.get_params(context) if (row := _told(one, context)) is not None]
    arguments = {one.name: row for one, row in told if one.param_type_name == "argument"}
    options = {one.name: row for one, row in told if one.param_type_name == "option"}
    sections = _grouped(arguments, {}, "Arguments")
    sections |= _grouped(options, OPTIONS if len(options) > MANY else {}, "Options")
    _write(formatter, sections)


def _write(formatter: Any, sections: Mapping[str, Sequence[Any]]) -> None:
    for title, rows in sections.items():
        with formatter.section(title):
            formatter.write_dl(rows)


def _write_commands(members: Mapping[str, Any], formatter: Any, groups: Mapping[str, Sequence[str]]) -> None:
    """Write what commands a group has."""
    commands = [(name, command) for name, command in members.items() if not command.hidden]
    width = formatter.width - 6 - max(len(name) for name, _ in commands)
    rows = {name: (name, command.get_short_help_str(width)) for name, command in commands}
    _write(formatter, _grouped(rows, groups, "Commands"))


class _Command(TyperCommand):
    beside: Mapping[str, Any] = {}
    """The other commands of a group that has one of its own name."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _write_parameters(self, ctx, formatter)
        if self.beside:
            _write_commands(self.beside, formatter, {})


class _Group(TyperGroup):
    """A group; a command of its own name is what it does where none of the others is named."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.own = self.commands.get(self.name or "")
        if isinstance(self.own, _Command):
            self.own.beside = {name: one for name, one in self.commands.items() if one is not self.own}

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        others = self.commands.keys() - {self.name}
        if self.own is None or (args and args[0] in others):
            return super().make_context(info_name, args, parent, **extra)
        return self.own.make_context(info_name, args, parent, **extra)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _write_parameters(self, ctx, formatter)
        _write_commands(self.commands, formatter, COMMANDS if ctx.parent is None else {})


class App(typer.Typer):
    """Commands with this help."""

    def __init__(self, **given: Any) -> None:
        super().__init__(cls=_Group, rich_markup_mode=None, **given)

    def command(self, name: str | None = None, **given: Any) -> Callable[[Any], Any]:
        """Add a command, as Typer does."""
        return super().command(name, cls=_Command, **given)
