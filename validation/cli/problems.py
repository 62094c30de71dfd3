"""Commands about problems and single instances: ``list``, ``generate``, ``solve``."""

from __future__ import annotations

import functools
import json
import math
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from validation.cli import interruption
from validation.cli.app import DISAGREEMENT, FAILED, AsJson, app, complain, is_quiet, say, say_json, what_is_wrong
from validation.cli.options import with_options
from validation.errors import StudyError
from validation.formatting import gap_range, number
from validation.kernel.options import LIMIT, Options, option, output_option
from validation.kinds.study.options import whole_numbers

EXPLAIN_SECONDS = 30.0
"""For the search of the constraints that conflict."""

HEURISTIC_SECONDS = 600.0
"""For a heuristic on one instance, unless told otherwise."""

__all__ = ["generate", "list_problems", "solve", "solve_apart"]


@app.command("list")
def list_problems(as_json: AsJson = False) -> None:
    """List the problems and their heuristics."""
    from validation.catalogue import CATALOGUE

    if as_json:
        told = ("problem", "title", "source", "size", "sizes")
        say_json(
            [
                {name: getattr(entry, name) for name in told} | {"heuristics": [*entry.heuristics]}
                for entry in CATALOGUE.values()
            ]
        )
        return
    for entry in CATALOGUE.values():
        say(f"{entry.problem}\n    {entry.title} ({entry.source})\n    heuristics: {', '.join(entry.heuristics)}")


@dataclass(frozen=True, kw_only=True)
class GenerateOptions(Options):
    """Which instances are generated, or drawn from what."""

    problem: str = option("Name of a problem, such as aryl.reclaim.", (str,), required="a problem", argument=True)
    seed: int = option("Seed of the instances.", (int,), required="--seed", least=0)
    sizes: list[int] | None = option(
        "Sizes such as 10,20; the smallest of the catalogue by default.",
        (list,),
        names=("--sizes", "--size"),
        read=whole_numbers,
    )
    count: int = option("How many instances of each size.", (int,), default=1, least=1, most=1_000_000)
    throughputs: list[str] | None = option("Real throughputs to draw from, as in studies.", (list,))
    trace: list[str] | None = option("Real jobs to draw from.", (list,))
    placements: list[str] | None = option("Real placements to draw from.", (list,))
    reader: list[str] | None = option("NAME=VALUE: how they are read, as in studies.", (list,))
    times: list[str] | None = option("Times of the trace in place of COUNT draws.", (list,))
    output: Path | None = output_option("Directory for the files; one instance is printed without.")


@app.command()
@with_options(GenerateOptions)
def generate(options: GenerateOptions, as_json: AsJson = False) -> None:
    """Generate instances as JSON, or draw them from real data. A study with this seed would use the same ones."""
    from instances.files import save
    from validation import catalogue
    from validation.kinds.study.cases import generate
    from validation.kinds.study.options import StudyOptions
    from validation.kinds.study.real import choose_draws
    from validation.outputs import folder_to_write, refuse_foreign, writing

    problem, seed, output = options.problem, options.seed, options.output
    sizes = options.sizes or catalogue.entry(problem).sizes[:1]
    make: Callable[[int, int], Any] = functools.partial(generate, problem, seed)
    numbers, name = range(options.count), f"{problem}-{{size}}-{seed}"
    given = options.some("throughputs", "trace", "placements", "reader", "times")
    if any(given.values()):
        studied = StudyOptions.given(problems=problem, seed=seed, output=output or Path(), **given)
        draws = choose_draws([problem], studied)[problem]
        make, numbers = draws.instance, draws.numbers(options.count)
        sizes, name = ([0], f"{problem}-trace-{seed}") if draws.snapshots else (sizes, f"{name}-trace")
    asked = [(size, index) for size in sizes for index in numbers]
    if output is None:
        if len(asked) > 1:
            raise StudyError("more than one instance needs a directory: -o DIR")
        # Written, not said: it is what the command makes where no directory is given.
        print(json.dumps(make(*asked[0]).to_dict(), allow_nan=False))
        return
    paths = [output / f"{name.format(size=size)}-{index}.json" for size, index in asked]
    for path in paths:
        refuse_foreign(path, problem)
    done = 0
    interruption.say(lambda: f"{done} of {len(paths)} instances are in {output}")
    with folder_to_write(output):
        for (size, index), path in zip(asked, paths, strict=True):
            made = make(size, index)
            with writing(output):
                save(made, path)
            done += 1
            if not as_json:
                say(str(path))
    if as_json:
        say_json({"problem": problem, "files": [str(path) for path in paths]})


@dataclass(frozen=True, kw_only=True)
class SolveOptions(Options):
    """How one instance is solved."""

    file: Path = option("Instance as JSON.", (str,), required="a file", argument=True, paths=True)
    heuristic: str | None = option("A heuristic of the catalogue or module:function; exact without.", (str,))
    solver: str = option("Solver of the exact model.", (str,), default="highs")
    time_limit: float | None = option(
        f"Limit for the solver, s; for a heuristic, {HEURISTIC_SECONDS:g} by default.", (float,), form=LIMIT
    )
    seed: int = option("What a random heuristic draws from.", (int,), default=0, least=0)
    verify: bool = option("Find the optimum once more, by a second way, within the same limit.", (bool,))
    certificate: Path | None = option(
        "File for a certificate of the optimum, in the format VIPR; made within the same limit.", (str,), paths=True
    )
    method: str = option(
        "An exact method by its name or short name; another name lists those that there are.", (str,), default="auto"
    )


@app.command()
@with_options(SolveOptions)
def solve(options: SolveOptions, as_json: AsJson = False) -> None:
    """Solve one instance, exactly or by a heuristic."""
    from instances.files import load
    from validation.outputs import try_file

    instance, limit = load(options.file), options.time_limit
    interruption.say(lambda: "nothing had been solved")
    if options.heuristic and options.verify:
        raise typer.BadParameter("a heuristic proves nothing that could be found once more", param_hint="--verify")
    if options.heuristic and options.method != "auto":
        raise typer.BadParameter("a heuristic is no exact method", param_hint="--method")
    if options.heuristic and options.certificate:
        raise typer.BadParameter("a heuristic proves nothing that could be certified", param_hint="--certificate")
    if options.certificate is not None:
        try_file(options.certificate)
    found = (
        by_heuristic(instance, options.heuristic, options.seed, limit)
        if options.heuristic
        else solve_apart(instance, options.solver, limit, options.verify, options.method, options.certificate)
    )
    if as_json:
        say_json({"problem": instance.problem, "instance": instance.digest, **found})
        _end_if_wrong(found, as_json)
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
        "method": "" if options.method == "auto" else found["method"],
        "proof": found["proof"],
        "message": found["message"],
        "verified": _verified(found.get("verification")),
        "plan": json.dumps(found["plan"]) if found["plan"] is not None else "none",
    }
    for name, value in lines.items():
        if value:
            say(f"{name:<10} {value}")
    _end_if_wrong(found, as_json)


def _end_if_wrong(found: dict[str, Any], as_json: bool) -> None:
    """End with the code of a failure where the heuristic failed, of a disagreement where a second way contradicts."""
    if found["status"] == "failed":
        if as_json or is_quiet():
            complain(f"{found['solver']}: {found['message']}")
        raise typer.Exit(FAILED)
    second = found.get("verification")
    if second and second["verdict"] == "contradicted":
        if is_quiet():
            complain(f"oracle disagreement: {_verified(second)}")
        raise typer.Exit(DISAGREEMENT)


def _verified(second: dict[str, Any] | None) -> str:
    return "" if second is None else f"{second['verdict']}, {second['way']}: {second['message']}"


def _or_none(value: float | None) -> str:
    return "none" if value is None else number(value)


def solve_apart(
    instance: Any,
    solver: str,
    time_limit: float | None,
    verify: bool,
    method: str = "auto",
    certificate: Path | None = None,
) -> dict[str, Any]:
    """Solve an instance in a process of its own; return the solution as JSON, and write its certificate if asked."""
    import formulations  # noqa: F401, the time for that is not the solver's
    from instances.files import write_whole
    from validation.kernel.isolation import Apart
    from validation.outputs import writing

    began = time.monotonic()
    limit = math.inf if time_limit is None else (1 + verify) * (time_limit + overtime(time_limit))
    # Apart, because a solver does not look at its clock all the time, nor does it hear that it is interrupted.
    with Apart(
        functools.partial(_solved, instance, solver, time_limit, verify, method, certificate is not None), own=True
    ) as apart:
        answer = apart.ask(seconds=limit)
    spent = time.monotonic() - began
    if answer.content is None:
        if spent < limit:
            raise StudyError(f"the exact side of {instance.problem}: {answer.reason}")
        return _out_of_time(instance, solver, spent)
    found = answer.content
    if "refused" in found:
        raise StudyError(found["refused"])
    if "bug" in found:
        print(found["bug"], end="", file=sys.stderr)
        raise typer.Exit(1)
    text = found.pop("vipr")
    if certificate is not None and text:
        with writing(certificate):
            write_whole(certificate, text)
    if found["status"] == "infeasible":
        left = EXPLAIN_SECONDS if time_limit is None else max(1.0, min(EXPLAIN_SECONDS, time_limit - spent))
        print(_why(instance, left), file=sys.stderr)
    return found


def overtime(limit: float) -> float:
    """Seconds that an exact solve gets beyond its time limit before it is stopped from outside."""
    return max(1.0, limit / 5)


def _solved(
    instance: Any, solver: str, time_limit: float | None, verify: bool, method: str, certificate: bool
) -> dict[str, Any]:
    """Solve an instance; return the solution as JSON, or why there is none."""
    import formulations

    try:
        solution = formulations.solve(
            instance, solver=solver, time_limit=time_limit, method=method, certificate=certificate
        )
        found = {**solution.to_dict(), "vipr": solution.vipr}
        if verify:
            found["verification"] = formulations.verify(instance, solution, time_limit=time_limit).to_dict()
        return found
    except formulations.MethodError as error:
        return {"refused": str(error)}
    except Exception as error:
        message = what_is_wrong(error)
        return {"bug": traceback.format_exc()} if message is None else {"refused": message}


def _out_of_time(instance: Any, solver: str, seconds: float) -> dict[str, Any]:
    """Make the JSON of an instance whose solve had to be stopped: plan and bound at hand."""
    from formulations.engine.solving import unsolved

    began = time.perf_counter() - seconds
    why = f"time limit: stopped after {seconds:.3g} s"
    return unsolved(instance, why, solver=solver, began=began, solve_seconds=seconds).to_dict()


def _why(instance: Any, seconds: float) -> str:
    """Constraints that conflict, as far as they are found in so many seconds."""
    from validation.kernel.isolation import Apart

    # Apart, because the model is built and solved again, and neither looks at a clock all the time.
    with Apart(functools.partial(_explained, instance, seconds), own=True) as apart:
        found = apart.ask(seconds=seconds + 1.0)
    if found.content is None or "why" not in found.content:
        return f"infeasible: no conflict was found within {seconds:.3g} s"
    return str(found.content["why"])


def _explained(instance: Any, seconds: float) -> dict[str, Any]:
    import formulations

    return {"why": str(formulations.explain(instance, time_limit=seconds))}


def by_heuristic(instance: Any, name: str, seed: int, time_limit: float | None) -> dict[str, Any]:
    """Return a heuristic's plan in the same form as a solution; it proves no bound."""
    from validation import catalogue
    from validation.kernel.asking import answer
    from validation.kernel.judging import Status
    from validation.kernel.provenance import memory_of_machine

    _, heuristic = catalogue.heuristic(instance.problem, name)
    limit = time_limit or HEURISTIC_SECONDS
    found = answer(instance, heuristic, seed, seconds=limit, memory=memory_of_machine() // 2)
    return {
        "status": found.status,
        "objective": found.value if found.status == Status.FEASIBLE else None,
        "bound": None,
        "gap": None,
        "plan": None if found.plan is None else found.plan.to_dict(),
        "build_seconds": 0.0,
        "solve_seconds": found.seconds,
        "solver": name,
        "solver_version": "",
        "method": "heuristic",
        "proof": "",
        "message": found.reason,
    }
