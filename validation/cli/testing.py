"""Commands that look for what is wrong: ``check``, ``hunt``, ``worst-case``, ``claims``."""

from __future__ import annotations

import contextlib
import functools
import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from validation.cli import interruption
from validation.cli.app import DISAGREEMENT, FAILED, AsJson, app, complain, is_quiet, say, say_json
from validation.cli.cluster import Dask, cluster
from validation.cli.options import with_options
from validation.errors import HeuristicFailedError, StudyError
from validation.formatting import duration, gap_range, number
from validation.kinds.options import CheckOptions, ClaimOptions, HuntOptions, WorstCaseOptions

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from validation.kinds.checks import CheckReport
    from validation.kinds.claims import Verdict
    from validation.kinds.witness import Witness

__all__ = ["check", "claims", "hunt", "worst_case"]


@app.command()
@with_options(CheckOptions)
def check(options: CheckOptions, as_json: AsJson = False) -> None:
    """Look for an instance on which a heuristic breaks a rule. What it promises beyond that can be checked as well."""
    from validation.kernel.isolation import Apart
    from validation.kernel.walls import lost, ruled, standing
    from validation.outputs import folder_to_write

    _, heuristic = options.subject
    output = Path(options.output)
    report: dict[str, Any] = {}
    interruption.say(lambda: "what had been checked is above" if report else "nothing had been checked")
    end = time.monotonic() + options.time_limit
    # Apart, because a solver does not hear that it is interrupted; the heuristic is asked apart from that.
    with (
        folder_to_write(output),
        ruled(network=options.allow_network),
        Apart(_Checks(options), own=True) as apart,
    ):
        if gone := lost(standing()):
            complain(gone)
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
        why = f"time limit: stopped after {options.time_limit:g} s" if late else said["error"]
        complain(f"{heuristic}: {why}{'; what had been checked is above' if report else ''}")
    elif is_quiet() and not report["json"]["ok"]:
        failed = [one["name"] for one in report["json"]["results"] if one["status"] == "failed"]
        complain(f"{heuristic}: {', '.join(failed) or 'no check'} {'failed' if failed else 'ran'}")
    if "error" in said or not report["json"]["ok"]:
        raise typer.Exit(DISAGREEMENT)


class _Checks:
    """Answers with the report so far, in words and as JSON, after one more check; in the end with nothing."""

    def __init__(self, options: CheckOptions) -> None:
        self.options = options
        self.reports: Iterator[CheckReport] | None = None

    def __call__(self) -> dict[str, Any]:
        from formulations import SolverNotFound
        from instances import InstanceError
        from validation.errors import CatalogueError
        from validation.kinds.checks import run_checks

        try:
            if self.reports is None:
                self.reports = run_checks(replace(self.options, strategy=_strategy(self.options.strategy)))
            report = next(self.reports, None)
        except (StudyError, CatalogueError, InstanceError, SolverNotFound) as error:
            return {"refused": str(error)}
        return {} if report is None else {"report": str(report), "json": report.to_dict()}


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
@with_options(HuntOptions)
def hunt(
    options: HuntOptions,
    dask: Dask = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="Directory for what is found.")] = Path("hunt"),
    as_json: AsJson = False,
) -> None:
    """Search for the instance on which a heuristic does worst. The one found is made as small as possible."""
    began = time.monotonic()
    from validation.kinds.hunt import CUT_SHORT, INTERRUPTED, OracleDisagreementError, find_worst
    from validation.kinds.witness import paths_of
    from validation.outputs import folder_to_write, refuse_foreign, writing

    # What it takes to import everything counts, but for a hunt that would have no time left.
    left = max(options.budget / 2, options.budget - (time.monotonic() - began))
    problem, heuristic = options.subject
    for path in paths_of(output, problem, heuristic):
        refuse_foreign(path, problem)
    interruption.say(lambda: "nothing had been found")
    with folder_to_write(output), cluster(dask) as client:
        try:
            found = find_worst(
                problem,
                heuristic,
                budget=left,
                strategy=_strategy(options.strategy),
                where=_predicate(options.where),
                progress=None if is_quiet() else functools.partial(_show_hunt, options.measure),
                client=client,
                **options.some("seed", "keep", "jobs", "restarts", "measure", "fix", "allow_network"),
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
@with_options(WorstCaseOptions)
def worst_case(
    options: WorstCaseOptions,
    as_json: AsJson = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Directory for the witness and its page.")
    ] = None,
) -> None:
    """Prove how bad a heuristic gets on all instances of a size. The instance on which it does is shown."""
    from validation.kernel.isolation import Apart
    from validation.kinds.worst_case import witness_paths
    from validation.outputs import folder_to_write, refuse_foreign

    problem, heuristic = options.subject
    interruption.say(lambda: "nothing had been proven")
    if output is not None:
        for path in witness_paths(output, problem, heuristic, options.size, options.fix or {}):
            refuse_foreign(path, problem)
    with contextlib.nullcontext() if output is None else folder_to_write(output):
        # Apart, because a solver does not hear that it is interrupted.
        with Apart(functools.partial(_proven, options, output), own=True) as apart:
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


def _proven(options: WorstCaseOptions, output: Path | None) -> dict[str, Any]:
    """Return a worst case as JSON and in words, or why there is none."""
    from instances import InstanceError
    from validation.errors import CatalogueError
    from validation.kinds.hunt import OracleDisagreementError
    from validation.kinds.worst_case import WitnessRefutedError, worst_case

    try:
        asked = {**options.some("size", "measure", "time_limit"), **(options.fix or {})}
        found = worst_case(*options.subject, verify=options.verify or None, **asked)
        path = "" if output is None or found.judged is None else str(found.save(output))
    except HeuristicFailedError as error:
        return {"failed": str(error)}
    except (StudyError, CatalogueError, InstanceError) as error:
        return {"refused": str(error)}
    except (WitnessRefutedError, OracleDisagreementError) as error:
        return {"wrong": str(error)}
    return {"json": found.to_dict(), "words": str(found), "path": path}


@app.command()
@with_options(ClaimOptions)
def claims(
    options: ClaimOptions,
    as_json: AsJson = False,
    dask: Dask = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Directory for an index and a page for each of these claims.")
    ] = None,
) -> None:
    """Put the papers' formal statements to the test."""
    from validation.kinds import claims as found
    from validation.kinds.claim_pages import folder_of_pages, write_pages
    from validation.outputs import folder_to_write, writing

    wanted = found.claims(options.name)
    verdicts: list[Verdict] = []

    def so_far() -> str:
        unwritten = "" if output is None else f", and {output} is not written"
        return f"{len(verdicts)} of {len(wanted)} claims had been examined{unwritten}"

    interruption.say(so_far)
    search = options.some("instances", "seconds", "seed")
    with contextlib.nullcontext() if output is None else folder_to_write(folder_of_pages(output)):
        try:
            with cluster(dask) as client:
                for verdict in (
                    (found.examine(claim, **search) for claim in wanted)
                    if client is None
                    else found.examine_all(wanted, client=client, **search)
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
            given = [f"--{name} {value}" for name, value in search.items() if value != getattr(ClaimOptions, name)]
            with writing(output):
                write_pages(verdicts, output, " ".join(given))
