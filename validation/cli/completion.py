"""What a shell completes with: names of problems, heuristics, solvers and claims."""

from __future__ import annotations

import contextlib

import typer

__all__ = [
    "claim_names",
    "heuristic_names",
    "problem_and_heuristic",
    "problem_names",
    "solver_names",
]


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


def solver_names(incomplete: str) -> list[str]:
    """Names of solvers that begin so, those that can be used."""
    import formulations
    from validation.cli.installation import OTHER_SOLVERS

    found = ["highs"]
    for name in OTHER_SOLVERS:
        with contextlib.suppress(formulations.SolverNotFound):
            formulations.find_solver(name)
            found.append(name)
    return [name for name in found if name.startswith(incomplete)]


def claim_names(incomplete: str) -> list[str]:
    """Names that claims are found by and that begin so."""
    from validation.kinds.claims import known_names

    return [name for name in known_names() if name.startswith(incomplete)]
