"""Commands about the installation: ``doctor`` and ``selftest``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

import typer

from validation.cli.app import DISAGREEMENT, AsJson, app, complain, console, is_quiet, say_json, text
from validation.selftest import Finding

__all__ = ["doctor", "selftest"]


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Check the installation. It looks at packages, solvers, and a solve whose answer is known."""
    from validation.cli.installation import examine

    _show(examine(), as_json)


@app.command()
def selftest(as_json: AsJson = False) -> None:
    """Try every problem, its heuristics, and a study once. This is for an installation without the test suite."""
    from validation.selftest import selftest

    _show(selftest(), as_json)


def _show(findings: Iterable[Finding], as_json: bool) -> None:
    """Tell findings as they come; end with 1 where one is bad."""
    page, told = console(), []
    for finding in findings:
        told.append(finding)
        if is_quiet() and not finding.ok:
            complain(finding.text)
        if not as_json:
            mark = text("ok  " if finding.ok else "BAD ", "green" if finding.ok else "bold red")
            page.print(mark + text(finding.text), soft_wrap=True)
    if as_json:
        say_json([asdict(finding) for finding in told])
    if not all(finding.ok for finding in told):
        raise typer.Exit(DISAGREEMENT)
