"""The command ``doctor``."""

from __future__ import annotations

import typer
from rich.text import Text

from validation.cli.app import app, console
from validation.cli.installation import examine

__all__ = ["doctor"]


@app.command()
def doctor() -> None:
    """Check the installation: packages, solvers, and a solve whose answer is known."""
    findings = examine()
    page = console()
    for finding in findings:
        mark = Text("ok  " if finding.ok else "BAD ", "green" if finding.ok else "bold red")
        page.print(mark + Text(finding.text), soft_wrap=True)
    if not all(finding.ok for finding in findings):
        raise typer.Exit(1)
