"""What a shell completes with: names of problems and of heuristics."""

from __future__ import annotations

import typer

__all__ = ["heuristic_names", "problem_and_heuristic", "problem_names"]


def problem_names(incomplete: str) -> list[str]:
    """Names of problems that begin so."""
    from validation.catalogue import CATALOGUE

    return [problem for problem in CATALOGUE if problem.startswith(incomplete)]


def heuristic_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of heuristics that begin so: those of the problems of the command, where they are known already."""
    from validation.catalogue import CATALOGUE

    given = ctx.params.get("problem") or ctx.params.get("problems") or ctx.params.get("names") or []
    problems = [one for one in ([given] if isinstance(given, str) else given) if one in CATALOGUE]
    found = dict.fromkeys(name for problem in problems or CATALOGUE for name in CATALOGUE[problem].heuristics)
    return [name for name in found if name.startswith(incomplete)]


def problem_and_heuristic(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete ``PROBLEM HEURISTIC``: problems first, then the heuristics of the problem."""
    given = ctx.params.get("names") or ()
    return heuristic_names(ctx, incomplete) if given else problem_names(incomplete)
