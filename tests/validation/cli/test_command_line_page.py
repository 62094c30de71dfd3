"""The page of the command line tells the commands as they are."""

import re
from pathlib import Path

from typer.main import get_command

from validation.cli import commands
from validation.cli.app import EXIT_CODES

from ...files import module_of

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "command-line.md").read_text(encoding="utf-8")


def test_it_is_as_it_would_be_written_anew() -> None:
    assert module_of(DOCS / "write.py").with_commands(PAGE) == PAGE


def test_every_command_has_a_section() -> None:
    app = get_command(commands())
    wanted = []
    for name, command in sorted(app.commands.items()):  # type: ignore[attr-defined]
        members = sorted(getattr(command, "commands", ()))
        wanted += [name if member == name else f"{name} {member}" for member in members] or [name]
    assert re.findall(r"^## optgap (.+)$", PAGE, re.MULTILINE) == wanted


def test_it_names_every_exit_code() -> None:
    for code, meaning in EXIT_CODES.items():
        assert f"| {code} | {meaning} |" in PAGE
