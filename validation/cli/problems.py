"""Commands about problems and single instances: ``list``, ``generate``, ``solve``."""

from __future__ import annotations

import functools
import json
import math
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from validation.cli.app import app
from validation.formatting import gap_range, number

EXPLAIN_SECONDS = 30.0
"""For the search of the constraints that conflict."""

HEURISTIC_SECONDS = 600.0
"""For a heuristic on one instance, unless told otherwise."""

__all__ = ["generate", "list_problems", "solve"]


@app.command("list")
def list_problems() -> None:
    """List the problems and their heuristics."""
    from validation.catalogue import CATALOGUE

    for entry in CATALOGUE.values():
        print(f"{entry.problem}\n    {entry.title} ({entry.source})\n    heuristics: {', '.join(entry.heuristics)}")


@app.command()
def generate(
    problem: Annotated[str, typer.Argument(help="Name of a problem, such as aryl.reclaim.")],
    seed: Annotated[int, typer.Option(min=0, help="Seed of the instances.")],
    size: Annotated[int | None, typer.Option(min=1, help="Size; the smallest of the catalogue by default.")] = None,
    count: Annotated[int, typer.Option(min=1, help="How many instances.")] = 1,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Directory for the files; one instance is printed without.")
    ] = None,
) -> None:
    """Generate instances as JSON files, the same ones that a study with this seed would use."""
    from instances.files import save
    from validation import catalogue
    from validation.errors import StudyError
    from validation.study.cases import generate

    entry = catalogue.entry(problem)
    size = size or entry.sizes[0]
    if output is None:
        if count > 1:
            raise StudyError("more than one instance needs a directory: -o DIR")
        print(json.dumps(generate(problem, seed, size).to_dict(), allow_nan=False))
        return
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StudyError(f"cannot write to {output}: {error.strerror}") from None
    for index in range(count):
        path = output / f"{problem}-{size}-{seed}-{index}.json"
        save(generate(problem, seed, size, index), path)
        print(path)


@app.command()
def solve(
    file: Annotated[Path, typer.Argument(help="Instance as JSON.")],
    heuristic: Annotated[
        str | None, typer.Option(help="A heuristic of the catalogue or module:function; exact without.")
    ] = None,
    solver: Annotated[str, typer.Option(help="Solver of the exact model.")] = "highs",
    time_limit: Annotated[
        float | None, typer.Option(help=f"Limit for the solver, s; for a heuristic, {HEURISTIC_SECONDS:g} by default.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="What a random heuristic draws from.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Solve one instance, exactly or by a heuristic."""
    from instances.files import load

    if time_limit is not None and not time_limit > 0:
        raise typer.BadParameter(f"got {time_limit}, must be positive seconds", param_hint="--time-limit")
    instance = load(file)
    found = (
        _by_heuristic(instance, heuristic, seed, time_limit) if heuristic else _exactly(instance, solver, time_limit)
    )
    if as_json:
        if found["objective"] is not None and not math.isfinite(found["objective"]):
            found["objective"] = None
        print(json.dumps({"problem": instance.problem, "instance": instance.digest, **found}, allow_nan=False))
        return
    gap = found["gap"]
    lines = {
        "problem": f"{instance.problem} ({'smaller' if instance.sense == 'min' else 'greater'} is better)",
        "status": found["status"],
        "objective": _or_none(found["objective"]),
        "bound": _or_none(found["bound"]),
        "gap": "unknown" if gap is None else gap_range(gap, gap),
        "seconds": f"{found['build_seconds'] + found['solve_seconds']:.3g} (solver {found['solve_seconds']:.3g})",
        "solver": f"{found['solver']} {found['solver_version']}".strip(),
        "proof": found["proof"],
        "message": found["message"],
        "plan": json.dumps(found["plan"]) if found["plan"] is not None else "none",
    }
    for name, value in lines.items():
        if value:
            print(f"{name:<10} {value}")


def _or_none(value: float | None) -> str:
    return "none" if value is None else number(value)


def _exactly(instance: Any, solver: str, time_limit: float | None) -> dict[str, Any]:
    import formulations

    began = time.monotonic()
    solution = formulations.solve(instance, solver=solver, time_limit=time_limit)
    if solution.status == "infeasible":
        left = EXPLAIN_SECONDS
        if time_limit is not None:
            left = max(1.0, min(left, time_limit - (time.monotonic() - began)))
        print(_why(instance, left), file=sys.stderr)
    return solution.to_dict()


def _why(instance: Any, seconds: float) -> str:
    """Constraints that conflict, as far as they are found in so many seconds."""
    from validation.isolation import Apart

    # Apart, because the model is built and solved again, and neither looks at a clock all the time.
    with Apart(functools.partial(_explained, instance, seconds)) as apart:
        found = apart.ask(seconds=seconds + 1.0)
    if found.content is None or "why" not in found.content:
        return f"infeasible: no conflict was found within {seconds:.3g} s"
    return str(found.content["why"])


def _explained(instance: Any, seconds: float) -> dict[str, Any]:
    import formulations

    return {"why": str(formulations.explain(instance, time_limit=seconds))}


def _by_heuristic(instance: Any, name: str, seed: int, time_limit: float | None) -> dict[str, Any]:
    """A heuristic's plan in the same form as a solution; it proves no bound."""
    from validation import catalogue
    from validation.errors import StudyError
    from validation.provenance import memory_of_machine
    from validation.study.cells import ask

    _, heuristic = catalogue.heuristic(instance.problem, name)
    limit = time_limit or HEURISTIC_SECONDS
    asked = ask(instance, heuristic, seed, seconds=limit, memory=memory_of_machine() // 2)
    if asked.reason:
        raise StudyError(f"{name}: {asked.reason}")
    plan = asked.plan
    if plan is None:
        broken, status, objective = [], "declined", None
    else:
        broken = instance.violations(plan)
        status = "infeasible" if broken else "feasible"
        objective = None if broken else instance.objective(plan)
    return {
        "status": status,
        "objective": objective,
        "bound": None,
        "gap": None,
        "plan": None if plan is None else plan.to_dict(),
        "build_seconds": 0.0,
        "solve_seconds": asked.seconds,
        "solver": name,
        "solver_version": "",
        "method": "heuristic",
        "proof": "",
        "message": "; ".join(map(str, broken)),
    }
