"""Commands that look for what is wrong: ``check``, ``hunt``, ``worst-case``, ``claims``."""

from __future__ import annotations

import contextlib
import functools
import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from validation.cli import interruption
from validation.cli.app import DISAGREEMENT, FAILED, AsJson, app, complain, is_quiet, say, say_json
from validation.cli.cluster import DASK, cluster
from validation.cli.completion import problem_and_heuristic, problem_names
from validation.errors import HeuristicFailedError, StudyError
from validation.formatting import duration, gap_range, number

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from formulations.worst_case.proving import Measure
    from validation.kinds.checks import CheckReport
    from validation.kinds.claims import Verdict
    from validation.kinds.witness import Witness

__all__ = ["check", "claims", "hunt", "worst_case"]

ProblemOption = Annotated[
    str | None, typer.Option(help="The problem, where HEURISTIC alone is given.", autocompletion=problem_names)
]
SEARCH: dict[str, Any] = {"instances": None, "seconds": 20.0, "seed": 0}
"""How claims are searched, unless told otherwise."""


@app.command()
def check(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="PROBLEM HEURISTIC",
            help="A problem such as aryl.reclaim; then a name of the catalogue, module:function or file.py:function.",
            autocompletion=problem_and_heuristic,
        ),
    ],
    problem: ProblemOption = None,
    ratio: Annotated[float | None, typer.Option(help="Promise: within this factor of the optimum.")] = None,
    monotone: Annotated[bool, typer.Option("--monotone", help="Promise: more resources never hurt.")] = False,
    relabelled: Annotated[bool, typer.Option("--relabelled", help="Promise: renumbering changes nothing.")] = False,
    max_examples: Annotated[int, typer.Option(min=1, help="Instances for each check.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the search.")] = 0,
    strategy: Annotated[str | None, typer.Option(help="Draw instances from this: module:strategy.")] = None,
    time_limit: Annotated[float, typer.Option(help="Limit for all checks, s.")] = 600.0,
    output: Annotated[Path, typer.Option("-o", "--output", help="Directory for failing instances.")] = Path("failures"),
    as_json: AsJson = False,
) -> None:
    """Look for an instance on which a heuristic breaks a rule. What it promises beyond that can be checked as well."""
    from validation.kernel.isolation import Apart
    from validation.kernel.provenance import memory_of_machine
    from validation.kinds.checks import Monotone, Promise, Ratio, Relabelled
    from validation.outputs import folder_to_write

    promises: list[Promise] = []
    if ratio is not None:
        if not ratio >= 1:
            raise StudyError(f"--ratio: got {ratio:g}, must be at least 1")
        promises.append(Ratio(ratio))
    promises += [Monotone()] if monotone else []
    promises += [Relabelled()] if relabelled else []
    problem, heuristic = _problem_and_heuristic(names, problem)
    options = {"promises": promises, "max_examples": max_examples, "seed": seed, "strategy": strategy}
    report: dict[str, Any] = {}
    interruption.say(lambda: "what had been checked is above" if report else "nothing had been checked")
    end = time.monotonic() + time_limit
    # Apart: a heuristic that hangs or ends the process must not pass for one that is well.
    with (
        folder_to_write(output),
        Apart(_Checks(problem, heuristic, output, options), memory=memory_of_machine() // 2, writable=output) as apart,
    ):
        try:
            while True:
                answer = apart.ask(seconds=max(0.0, end - time.monotonic()))
                said = {"error": answer.reason} if answer.content is None else answer.content
                if "report" not in said:
                    break
                report = said
        finally:
            # Also where it is cut short, by whatever.
            if report and as_json:
                say_json(report["json"])
            elif report:
                say(report["report"])
    if "refused" in said:
        raise StudyError(said["refused"])
    if "error" in said:
        late = answer.reason.startswith("time limit")
        why = f"time limit: stopped after {time_limit:g} s" if late else said["error"]
        complain(f"{heuristic}: {why}{'; what had been checked is above' if report else ''}")
    elif is_quiet() and not report["json"]["ok"]:
        failed = [one["name"] for one in report["json"]["results"] if one["status"] == "failed"]
        complain(f"{heuristic}: {', '.join(failed) or 'no check'} {'failed' if failed else 'ran'}")
    if "error" in said or not report["json"]["ok"]:
        raise typer.Exit(DISAGREEMENT)


class _Checks:
    """Answers with the report so far, in words and as JSON, after one more check; in the end with nothing."""

    def __init__(self, problem: str, heuristic: str, output: Path, options: dict[str, Any]) -> None:
        self.asked = (problem, heuristic, output, options)
        self.reports: Iterator[CheckReport] | None = None

    def __call__(self) -> dict[str, Any]:
        from formulations import SolverNotFound
        from instances import InstanceError
        from validation.errors import CatalogueError
        from validation.kinds.checks import run_checks

        try:
            if self.reports is None:
                problem, heuristic, output, options = self.asked
                drawn = _strategy(options["strategy"])
                self.reports = run_checks(problem, heuristic, output=output, **{**options, "strategy": drawn})
            report = next(self.reports, None)
        except (StudyError, CatalogueError, InstanceError, SolverNotFound) as error:
            return {"refused": str(error)}
        return {} if report is None else {"report": str(report), "json": report.to_dict()}


def _problem_and_heuristic(names: list[str], problem: str | None) -> tuple[str, str]:
    """Both from ``PROBLEM HEURISTIC``, or from ``HEURISTIC --problem PROBLEM``."""
    wanted = 2 if problem is None else 1
    if len(names) != wanted:
        raise StudyError(f"got {' '.join(names)!r}, must be PROBLEM HEURISTIC, or HEURISTIC --problem PROBLEM")
    return (names[0], names[1]) if problem is None else (problem, names[0])


def _strategy(reference: str | None) -> SearchStrategy[Any] | None:
    """Return the Hypothesis strategy that "module:name" names, or that the function of that name makes."""
    if reference is None:
        return None
    from hypothesis.strategies import SearchStrategy

    from validation.catalogue import import_tried

    found = import_tried(reference)
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
            autocompletion=problem_and_heuristic,
        ),
    ],
    seed: Annotated[int, typer.Option(min=0, help="Seed of the search.")],
    budget: Annotated[str, typer.Option(help="Time in all, such as 60s or 5m.")] = "60s",
    keep: Annotated[float, typer.Option(help="Fraction of the worst gap that shrinking keeps.")] = 0.9,
    jobs: Annotated[int | None, typer.Option(min=1, help="Worker processes; one for each core by default.")] = None,
    restarts: Annotated[
        int | None,
        typer.Option(min=1, help="Make so many searches of 200 instances each, so that the seed alone decides."),
    ] = None,
    problem: ProblemOption = None,
    strategy: Annotated[str | None, typer.Option(help="Draw instances from this, too: module:strategy.")] = None,
    measure: Annotated[str, typer.Option(help="What is to be greatest: ratio (the gap) or difference.")] = "ratio",
    fix: Annotated[list[str] | None, typer.Option(help="NAME=VALUE of the generator, strategy or instances.")] = None,
    where: Annotated[str | None, typer.Option(help="Only instances of which this is true: module:function.")] = None,
    dask: Annotated[str | None, typer.Option(help=DASK)] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="Directory for what is found.")] = Path("hunt"),
    as_json: AsJson = False,
) -> None:
    """Search for the instance on which a heuristic does worst. The one found is made as small as possible."""
    began = time.monotonic()
    allowed = _seconds(budget)
    from validation.kinds.hunt import CUT_SHORT, INTERRUPTED, OracleDisagreementError, find_worst
    from validation.kinds.witness import paths_of
    from validation.outputs import folder_to_write, refuse_foreign, writing

    # What it takes to import everything counts, but for a hunt that would have no time left.
    left = allowed if allowed <= 0 else max(allowed / 2, allowed - (time.monotonic() - began))
    problem, heuristic = _problem_and_heuristic(names, problem)
    for path in paths_of(output, problem, heuristic):
        refuse_foreign(path, problem)
    fixed = _dials(fix)
    interruption.say(lambda: "nothing had been found")
    with folder_to_write(output), cluster(dask) as client:
        try:
            found = find_worst(
                problem,
                heuristic,
                seed=seed,
                budget=left,
                keep=keep,
                jobs=jobs,
                restarts=restarts,
                strategy=_strategy(strategy),
                measure=cast("Measure", measure),
                fix=fixed,
                where=_predicate(where),
                progress=None if is_quiet() else functools.partial(_show_hunt, measure),
                client=client,
            )
        except OracleDisagreementError as error:
            complain(f"oracle disagreement: {error}")
            raise typer.Exit(DISAGREEMENT) from None
        interruption.say(lambda: "the worst instance so far is above")
        if as_json:
            say_json(found.to_dict())
        else:
            _print_hunt(found)
        with writing(output):
            path = found.save(output)
    interruption.say(lambda: f"the worst instance so far is in {path}")
    if not as_json:
        say(f"saved       {path}\npage        {path.with_suffix('.html')}")
        say(f"again       optgap solve {path} [--heuristic {heuristic}]")
    if set(found.failures) - {CUT_SHORT, INTERRUPTED}:
        if as_json or is_quiet():
            complain(f"{heuristic}: {found.failures[0]}")
        raise typer.Exit(FAILED)


def _print_hunt(found: Witness) -> None:
    judged = found.judged
    value = "no feasible plan" if judged.value is None else number(judged.value)
    worst = f"{gap_range(found.worst_gap, found.worst_gap)}, difference {number(found.worst_difference)}"
    say(f"worst gap   {worst}, found by {found.found_by}")
    say(
        f"smallest    gap {gap_range(judged.gap, judged.gap)}, difference {number(judged.difference)}: "
        f"{found.heuristic} {value}, optimum {number(judged.optimum)}"
    )
    # Before anything is written, so that it is not lost where nothing can be.
    say(f"instance    {json.dumps(judged.instance.to_dict())}")
    say(f"tried       {found.evaluated} instances")
    for failure in found.failures:
        say(f"ended early {failure}")


def _dials(given: list[str] | None) -> dict[str, Any]:
    """``NAME=VALUE`` by name; a number or a truth value where the text is one."""
    from validation.reader_options import pairs

    return {name: _plain_value(value) for name, value in pairs(given or [], "--fix").items()}


def _plain_value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _predicate(reference: str | None) -> Callable[[Any], bool] | None:
    """Return the function that "module:function" names; it says whether an instance belongs."""
    if reference is None:
        return None
    from validation.catalogue import import_tried

    found = import_tried(reference)
    if not callable(found):
        raise StudyError(f"--where: {reference!r} is no function, but {type(found).__name__}")
    wanted: Callable[[Any], bool] = found
    return wanted


def _seconds(text: str) -> float:
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    amount, unit = (text[:-1], text[-1]) if text[-1:] in units else (text, "s")
    try:
        return float(amount) * units[unit]
    except ValueError:
        raise StudyError(f"--budget: got {text!r}, must be a time such as 60s or 5m") from None


def _show_hunt(measure: str, seconds: float, worst: float, evaluated: int) -> None:
    end = "\r" if sys.stderr.isatty() else "\n"
    said = f"gap {gap_range(worst, worst)}" if measure == "ratio" else f"difference {number(worst)}"
    print(
        f"{duration(seconds)}: worst {said} on {evaluated} instances   ",
        end=end,
        file=sys.stderr,
        flush=True,
    )


@app.command("worst-case")
def worst_case(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="PROBLEM HEURISTIC",
            help="A problem, and a heuristic whose worst case has a model.",
            autocompletion=problem_and_heuristic,
        ),
    ],
    size: Annotated[int, typer.Option(min=1, help="How large the instances are.")],
    fix: Annotated[list[str] | None, typer.Option(help="NAME=VALUE: what else chooses the instances.")] = None,
    measure: Annotated[str, typer.Option(help="ratio or difference, of the heuristic's value and the optimum.")] = (
        "ratio"
    ),
    time_limit: Annotated[float | None, typer.Option(help="Limit for the proof, s.")] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Search every program a second way, too.")] = False,
    problem: ProblemOption = None,
    as_json: AsJson = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Directory for the witness and its page.")
    ] = None,
) -> None:
    """Prove how bad a heuristic gets on all instances of a size. The instance on which it does is shown."""
    from validation.kernel.isolation import Apart
    from validation.kinds.worst_case import witness_paths
    from validation.outputs import folder_to_write, refuse_foreign

    problem, heuristic = _problem_and_heuristic(names, problem)
    dials = _dials(fix)
    options = {"size": size, "measure": measure, "time_limit": time_limit, "verify": verify or None, **dials}
    interruption.say(lambda: "nothing had been proven")
    if output is not None:
        for path in witness_paths(output, problem, heuristic, size, dials):
            refuse_foreign(path, problem)
    with contextlib.nullcontext() if output is None else folder_to_write(output):
        # Apart, because a solver does not hear that it is interrupted.
        with Apart(functools.partial(_proven, problem, heuristic, output, options), writable=output) as apart:
            answer = apart.ask(seconds=math.inf)
        said = {"refused": f"the proof: {answer.reason}"} if answer.content is None else answer.content
        if "refused" in said:
            raise StudyError(said["refused"])
        if "failed" in said:
            raise HeuristicFailedError(f"{heuristic}: {said['failed']}")
        if "wrong" in said:
            complain(f"the model of the worst case is wrong: {said['wrong']}")
            raise typer.Exit(DISAGREEMENT)
        if as_json:
            say_json(said["json"])
        else:
            say(said["words"])
    if said["path"] and not as_json:
        path = Path(said["path"])
        say(f"saved      {path}\npage       {path.with_suffix('.html')}")
        say(f"again      optgap solve {path} [--heuristic {heuristic}]")


def _proven(problem: str, heuristic: str, output: Path | None, options: dict[str, Any]) -> dict[str, Any]:
    """Return a worst case as JSON and in words, or why there is none."""
    from instances import InstanceError
    from validation.errors import CatalogueError
    from validation.kinds.hunt import OracleDisagreementError
    from validation.kinds.worst_case import WitnessRefutedError, worst_case

    try:
        found = worst_case(problem, heuristic, **options)
        path = "" if output is None or found.judged is None else str(found.save(output))
    except HeuristicFailedError as error:
        return {"failed": str(error)}
    except (StudyError, CatalogueError, InstanceError) as error:
        return {"refused": str(error)}
    except (WitnessRefutedError, OracleDisagreementError) as error:
        return {"wrong": str(error)}
    return {"json": found.to_dict(), "words": str(found), "path": path}


@app.command()
def claims(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Only the claims of this paper or problem, or the claim of this name."),
    ] = None,
    instances: Annotated[
        int | None,
        typer.Option(min=1, help="Most instances for each claim; 500, or all of a finite set, by default."),
    ] = None,
    seconds: Annotated[float, typer.Option(help="Time for each claim.")] = SEARCH["seconds"],
    seed: Annotated[int, typer.Option(min=0, help="Seed of random instances.")] = SEARCH["seed"],
    as_json: AsJson = False,
    dask: Annotated[str | None, typer.Option(help=DASK)] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Directory for an index and a page for each of these claims.")
    ] = None,
) -> None:
    """Put the papers' formal statements to the test."""
    from validation.kinds import claims as found
    from validation.kinds.claim_pages import folder_of_pages, write_pages
    from validation.outputs import folder_to_write, writing

    wanted = found.claims(name)
    verdicts: list[Verdict] = []

    def so_far() -> str:
        unwritten = "" if output is None else f", and {output} is not written"
        return f"{len(verdicts)} of {len(wanted)} claims had been examined{unwritten}"

    interruption.say(so_far)
    options: dict[str, Any] = {"instances": instances, "seconds": seconds, "seed": seed}
    with contextlib.nullcontext() if output is None else folder_to_write(folder_of_pages(output)):
        try:
            with cluster(dask) as client:
                for verdict in (
                    (found.examine(claim, **options) for claim in wanted)
                    if client is None
                    else found.examine_all(wanted, client=client, **options)
                ):
                    verdicts.append(verdict)
                    if not as_json:
                        say(f"{verdict}\n")
                        sys.stdout.flush()
        finally:
            # Also of an interruption, the verdicts so far; pages are of all these claims or they are not written.
            if as_json:
                say_json([verdict.to_dict() for verdict in verdicts])
        if output is not None:
            given = [f"--{name} {value}" for name, value in options.items() if value != SEARCH[name]]
            with writing(output):
                write_pages(verdicts, output, " ".join(given))
