"""Commands that look for what is wrong: ``check``, ``hunt``, ``claims``."""

from __future__ import annotations

import functools
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from validation.cli.app import DISAGREEMENT, app, complain
from validation.errors import StudyError
from validation.formatting import duration, gap_range, number

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["check", "claims", "hunt"]


@app.command()
def check(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="PROBLEM HEURISTIC",
            help="A problem such as aryl.reclaim; then a name of the catalogue, module:function or file.py:function.",
        ),
    ],
    problem: Annotated[str | None, typer.Option(help="The problem, where HEURISTIC alone is given.")] = None,
    ratio: Annotated[float | None, typer.Option(help="Promise: within this factor of the optimum.")] = None,
    monotone: Annotated[bool, typer.Option("--monotone", help="Promise: more resources never hurt.")] = False,
    relabelled: Annotated[bool, typer.Option("--relabelled", help="Promise: renumbering changes nothing.")] = False,
    max_examples: Annotated[int, typer.Option(min=1, help="Instances for each check.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the search.")] = 0,
    strategy: Annotated[str | None, typer.Option(help="Draw instances from this: module:strategy.")] = None,
    time_limit: Annotated[float, typer.Option(help="Limit for all checks, s.")] = 600.0,
    output: Annotated[Path, typer.Option("-o", "--output", help="Directory for failing instances.")] = Path("failures"),
) -> None:
    """Look for an instance on which a heuristic breaks a rule or a promise."""
    from validation.isolation import Apart
    from validation.testing.checks import Monotone, Promise, Ratio, Relabelled

    promises: list[Promise] = []
    if ratio is not None:
        if not ratio >= 1:
            raise StudyError(f"--ratio: got {ratio:g}, must be at least 1")
        promises.append(Ratio(ratio))
    promises += [Monotone()] if monotone else []
    promises += [Relabelled()] if relabelled else []
    problem, heuristic = _problem_and_heuristic(names, problem)
    options = {"promises": promises, "max_examples": max_examples, "seed": seed, "strategy": strategy}
    made = not output.exists()
    output.mkdir(parents=True, exist_ok=True)
    # Apart: a heuristic that hangs or ends the process must not pass for one that is well.
    with Apart(functools.partial(_checked, problem, heuristic, output, options), writable=output) as apart:
        answer = apart.ask(seconds=time_limit)
    if made and not any(output.iterdir()):
        output.rmdir()
    said = {"error": answer.reason} if answer.content is None else answer.content
    if "error" in said:
        complain(f"{heuristic}: {said['error']}")
        raise typer.Exit(1)
    if "refused" in said:
        raise StudyError(said["refused"])
    print(said["report"])
    if not said["ok"]:
        raise typer.Exit(1)


def _checked(problem: str, heuristic: str, output: Path, options: dict[str, Any]) -> dict[str, Any]:
    """The report of all checks as words."""
    from formulations import SolverNotFound
    from instances import InstanceError
    from validation.errors import CatalogueError
    from validation.testing.checks import check_heuristic

    try:
        strategy = _strategy(options.pop("strategy"))
        found = check_heuristic(problem, heuristic, output=output, strategy=strategy, **options)
    except (StudyError, CatalogueError, InstanceError, SolverNotFound) as error:
        return {"refused": str(error)}
    return {"report": str(found), "ok": found.ok}


def _problem_and_heuristic(names: list[str], problem: str | None) -> tuple[str, str]:
    """Both from ``PROBLEM HEURISTIC``, or from ``HEURISTIC --problem PROBLEM``."""
    wanted = 2 if problem is None else 1
    if len(names) != wanted:
        raise StudyError(f"got {' '.join(names)!r}, must be PROBLEM HEURISTIC, or HEURISTIC --problem PROBLEM")
    return (names[0], names[1]) if problem is None else (problem, names[0])


def _strategy(reference: str | None) -> SearchStrategy[Any] | None:
    """The Hypothesis strategy that "module:name" names, or that the function of that name makes."""
    if reference is None:
        return None
    from hypothesis.strategies import SearchStrategy

    from validation.catalogue import import_object

    found = import_object(reference)
    found = found() if callable(found) else found
    if not isinstance(found, SearchStrategy):
        raise StudyError(f"--strategy: {reference!r} is no Hypothesis strategy, but {type(found).__name__}")
    return found


@app.command()
def hunt(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="PROBLEM HEURISTIC",
            help="A problem such as aryl.reclaim; then a name of the catalogue, module:function or file.py:function.",
        ),
    ],
    seed: Annotated[int, typer.Option(min=0, help="Seed of the search.")],
    budget: Annotated[str, typer.Option(help="Time in all, such as 60s or 5m.")] = "60s",
    keep: Annotated[float, typer.Option(help="Fraction of the worst gap that shrinking keeps.")] = 0.9,
    jobs: Annotated[int | None, typer.Option(min=1, help="Worker processes; one for each core by default.")] = None,
    problem: Annotated[str | None, typer.Option(help="The problem, where HEURISTIC alone is given.")] = None,
    strategy: Annotated[str | None, typer.Option(help="Draw instances from this, too: module:strategy.")] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="Directory for what is found.")] = Path("hunt"),
) -> None:
    """Search for the instance on which a heuristic does worst, and shrink it."""
    from validation.testing.hunt import INTERRUPTED, OracleDisagreementError, find_worst

    problem, heuristic = _problem_and_heuristic(names, problem)
    try:
        found = find_worst(
            problem,
            heuristic,
            seed=seed,
            budget=_seconds(budget),
            keep=keep,
            jobs=jobs,
            strategy=_strategy(strategy),
            progress=_show_hunt,
        )
    except OracleDisagreementError as error:
        complain(f"oracle disagreement: {error}")
        raise typer.Exit(DISAGREEMENT) from None
    path = found.save(output)
    judged = found.judged
    value = "no feasible plan" if judged.value is None else number(judged.value)
    print(f"worst gap   {gap_range(found.worst_gap, found.worst_gap)}, found by {found.found_by}")
    print(f"smallest    gap {gap_range(judged.gap, judged.gap)}: {heuristic} {value}, optimum {number(judged.optimum)}")
    print(f"instance    {json.dumps(judged.instance.to_dict())}")
    print(f"judged      {found.evaluated} instances")
    for failure in found.failures:
        print(f"ended early {failure}")
    print(f"witness     {path}\npage        {path.with_suffix('.html')}")
    print(f"again       optgap solve {path} [--heuristic {heuristic}]")
    if INTERRUPTED in found.failures:
        raise typer.Exit(130)


def _seconds(text: str) -> float:
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    amount, unit = (text[:-1], text[-1]) if text[-1:] in units else (text, "s")
    try:
        return float(amount) * units[unit]
    except ValueError:
        raise StudyError(f"--budget: got {text!r}, must be a time such as 60s or 5m") from None


def _show_hunt(seconds: float, worst: float, evaluated: int) -> None:
    end = "\r" if sys.stderr.isatty() else "\n"
    print(
        f"{duration(seconds)}: worst gap {gap_range(worst, worst)} on {evaluated} instances   ",
        end=end,
        file=sys.stderr,
        flush=True,
    )


@app.command()
def claims(
    name: Annotated[
        str | None,
        typer.Argument(metavar="PAPER_OR_PROBLEM", help="Only the claims of this paper, or of this problem."),
    ] = None,
    instances: Annotated[
        int | None,
        typer.Option(min=1, help="Most instances for each claim; 500, or all of a finite set, by default."),
    ] = None,
    seconds: Annotated[float, typer.Option(help="Time for each claim.")] = 20.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of random instances.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdicts as one JSON list instead.")] = False,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Also write a Markdown page.")] = None,
) -> None:
    """Put the papers' formal statements to the test."""
    from instances.files import write_whole
    from validation.testing import claims as found

    verdicts = []
    for claim in found.claims(name):
        verdict = found.examine(claim, instances=instances, seconds=seconds, seed=seed)
        if not as_json:
            print(f"{verdict}\n", flush=True)
        verdicts.append(verdict)
    if as_json:
        print(json.dumps([verdict.to_dict() for verdict in verdicts], indent=2))
    if output is not None:
        write_whole(output, found.page(verdicts))
