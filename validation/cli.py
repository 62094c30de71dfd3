"""The ``optgap`` command.

Every command is a thin shell around a function of the library.  Bad input ends in one line that
names the culprit and exit code 2; a study with an oracle disagreement ends in exit code 1.
"""

from __future__ import annotations

import json
import os
import sys
import time
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from instances.base import InstanceError, PlanError, nearest
from validation import catalogue
from validation.catalogue import CatalogueError
from validation.formatting import duration, gap_range, number

if TYPE_CHECKING:
    from validation.results import Study
    from validation.study import Progress

app = typer.Typer(
    name="optgap",
    help="Exact optima, heuristics, and the gap between them, for GPU-cluster scheduling problems.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
bench_app = typer.Typer(help="Benchmarks of the library itself.", no_args_is_help=True)
app.add_typer(bench_app, name="bench")

BAD_INPUT = 2
DISAGREEMENT = 1


def main() -> None:
    """Entry point: what the user got wrong becomes one line on standard error."""
    try:
        app(standalone_mode=True)
    except BrokenPipeError:
        # The reader of a pipe went away, as in ``optgap list | head``.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except KeyboardInterrupt:
        _complain("interrupted")
        sys.exit(130)
    except Exception as error:
        if not isinstance(error, _expected()):
            raise
        _complain(str(error) if not isinstance(error, OSError) else _os_error(error))
        sys.exit(BAD_INPUT)


def _expected() -> tuple[type[Exception], ...]:
    """Errors that say what the user got wrong; anything else is a bug and keeps its traceback."""
    from formulations import ModelError, SolverNotFound
    from validation.cases import StudyError

    return (InstanceError, PlanError, CatalogueError, StudyError, SolverNotFound, ModelError, OSError)


def _os_error(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename else str(error)


def _complain(message: str) -> None:
    print(f"optgap: {message}", file=sys.stderr)


def _console() -> Console:
    # A table that is cut to a narrow terminal, or to the 80 columns of a pipe, loses its numbers.
    console = Console(highlight=False)
    console.width = max(console.width, 120)
    return console


@app.command("list")
def list_problems() -> None:
    """List the problems and their heuristics."""
    for entry in catalogue.CATALOGUE.values():
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
    from validation.cases import StudyError, generate

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
    time_limit: Annotated[float | None, typer.Option(help="Limit for the solver, s.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="What a random heuristic draws from.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Solve one instance, exactly or by a heuristic."""
    from instances.files import load

    instance = load(file)
    found = _by_heuristic(instance, heuristic, seed) if heuristic else _exactly(instance, solver, time_limit)
    if as_json:
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

    solution = formulations.solve(instance, solver=solver, time_limit=time_limit)
    if solution.status == "infeasible":
        print(formulations.explain(instance), file=sys.stderr)
    return solution.to_dict()


def _by_heuristic(instance: Any, name: str, seed: int) -> dict[str, Any]:
    """A heuristic's plan in the same form as a solution; it proves no bound."""
    from validation.cases import import_function
    from validation.catalogue import Heuristic
    from validation.study import call_heuristic

    heuristic = (
        Heuristic(import_function(name), declines=True) if ":" in name else catalogue.heuristic(instance.problem, name)
    )
    began = time.perf_counter()
    plan = call_heuristic(instance, heuristic, seed)
    seconds = time.perf_counter() - began
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
        "solve_seconds": seconds,
        "solver": name,
        "solver_version": "",
        "message": "; ".join(map(str, broken)),
    }


@app.command()
def study(
    problems: Annotated[list[str] | None, typer.Argument(help="Problems, or papers for all of theirs.")] = None,
    config: Annotated[Path | None, typer.Option(help="TOML file with the same options; these here win.")] = None,
    heuristic: Annotated[list[str] | None, typer.Option(help="Only these; names or module:function.")] = None,
    sizes: Annotated[
        list[str] | None, typer.Option(help="Sizes, such as 10,20, or for one problem, aryl.reclaim=10,20.")
    ] = None,
    count: Annotated[int | None, typer.Option(help="Instances for each size, 10 by default.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of instances and random heuristics. Required.")] = None,
    instances: Annotated[Path | None, typer.Option(help="Directory of instances as JSON.")] = None,
    throughputs: Annotated[
        list[str] | None, typer.Option(help="Real throughputs: PATH, or PAPER=PATH where several papers read some.")
    ] = None,
    trace: Annotated[list[str] | None, typer.Option(help="Real jobs: PATH or PAPER=PATH.")] = None,
    time_limit: Annotated[float | None, typer.Option(help="Limit for each run, s; 60 by default.")] = None,
    jobs: Annotated[int | None, typer.Option(help="Worker processes; one for each core by default.")] = None,
    solver: Annotated[str | None, typer.Option(help="Solver of the exact side; highs by default.")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Directory of the study. Required.")] = None,
) -> None:
    """Measure heuristics against proven optima; an interrupted study is resumed by the same command."""
    from validation.cases import StudyError
    from validation.study import gap_study

    asked = _from_toml(config) if config else {}
    given = {
        "problems": problems or None,
        "heuristics": heuristic or None,
        "sizes": _sizes(sizes) if sizes else None,
        "count": count,
        "seed": seed,
        "instances": instances,
        "throughputs": _paths(throughputs) if throughputs else None,
        "trace": _paths(trace) if trace else None,
        "time_limit": time_limit,
        "jobs": jobs,
        "solver": solver,
        "output": output,
    }
    asked |= {name: value for name, value in given.items() if value is not None}
    for name, option in (("problems", "a problem"), ("seed", "--seed"), ("output", "-o DIR")):
        if name not in asked:
            raise StudyError(f"missing {option}")
    meter = _Meter()
    try:
        result = gap_study(asked.pop("problems"), progress=meter, **asked)
    except KeyboardInterrupt:
        meter.end()
        _complain(f"interrupted; what ended is in {asked['output']}, and the same command goes on from there")
        raise typer.Exit(130) from None
    meter.end()
    _print_study(result)


def _print_study(result: Study) -> None:
    console = _console()
    for table in _summary_tables(result):
        console.print(table)
    failed = result.rows[result.rows["status"] == "failed"]
    if len(failed):
        console.print(
            Text(
                f"{len(failed)} runs failed; the first: {failed.iloc[0]['algorithm']}: {failed.iloc[0]['reason']}",
                "yellow",
            )
        )
    console.print(f"report: {result.report}", soft_wrap=True)
    wrong = result.disagreements
    if len(wrong):
        for row in wrong.to_dict("records"):
            console.print(
                Text(
                    f"oracle disagreement: {row['problem']}: {row['algorithm']} found {number(row['value'])}, better "
                    f"than the exact side's bound {number(row['exact_bound'])} ({row['exact_status']}); instance: "
                    f"{result.directory / row['file']}",
                    "bold red",
                ),
                soft_wrap=True,
            )
        raise typer.Exit(DISAGREEMENT)


_SUMMARY_COLUMNS = (
    "from",
    "size",
    "heuristic",
    "instances",
    "proven",
    "feasible",
    "gap mean",
    "95%",
    "worst",
    "time",
    "exact",
)


def _summary_tables(result: Study) -> list[Table]:
    tables = []
    summary = result.summary()
    if summary.empty:
        return []
    for problem, group in summary.groupby("problem", sort=False):
        table = Table(title=str(problem), title_justify="left", box=None, pad_edge=False)
        columns = (
            "from",
            "size",
            "heuristic",
            "instances",
            "proven",
            "feasible",
            "gap mean",
            "95%",
            "worst",
            "time",
            "exact",
        )
        for name in columns:
            table.add_column(name, justify="left" if name in ("from", "heuristic") else "right", no_wrap=True)
        for row in group.to_dict("records"):
            gaps = [gap_range(row[f"gap_{kind}_low"], row[f"gap_{kind}_high"]) for kind in ("mean", "p95", "worst")]
            table.add_row(
                row["source"],
                str(row["size"]),
                row["heuristic"],
                *(str(row[name]) for name in ("instances", "proven", "feasible")),
                *gaps,
                duration(row["median_seconds"]),
                duration(row["exact_median_seconds"]),
            )
        tables.append(table)
    return tables


class _Meter:
    """Progress of a study on one line of a terminal, or a line now and then in a log."""

    def __init__(self) -> None:
        self.live = sys.stderr.isatty()
        self.shown = 0.0
        self.began = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        last = progress.done == progress.total
        if not last and now - self.shown < (0.1 if self.live else 5.0):
            return
        self.shown = now
        left = (
            "" if progress.seconds_left is None or last else f", about {duration(max(1.0, progress.seconds_left))} left"
        )
        failed = f", {progress.failed} failed" if progress.failed else ""
        line = f"{progress.done} of {progress.total} runs{failed}, {duration(now - self.began)}{left}"
        print(f"\r\x1b[2K{line}" if self.live else line, end="" if self.live else "\n", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self.live:
            print(file=sys.stderr)


def _from_toml(path: Path) -> dict[str, Any]:
    """Keyword arguments of a study from a TOML file."""
    from validation.cases import StudyError

    try:
        asked = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise StudyError(f"{path}: not valid TOML: {error}") from None
    known: dict[str, tuple[type, ...]] = {
        "problems": (str, list),
        "heuristics": (list,),
        "sizes": (list, dict),
        "count": (int,),
        "seed": (int,),
        "instances": (str,),
        "throughputs": (str, dict),
        "trace": (str, dict),
        "time_limit": (int, float),
        "jobs": (int,),
        "solver": (str,),
        "output": (str,),
    }
    for name, value in asked.items():
        if name not in known:
            raise StudyError(f"{path}: unknown option {name!r}{nearest(name, known)}")
        if not isinstance(value, known[name]) or isinstance(value, bool):
            kinds = " or ".join(kind.__name__ for kind in known[name])
            raise StudyError(f"{path}: {name}: got {value!r}, must be {kinds}")
    return asked


def _sizes(given: Sequence[str]) -> list[int] | dict[str, list[int]]:
    """``10,20`` or ``aryl.reclaim=10,20`` (for each problem named)."""
    named = {}
    plain: list[int] = []
    for item in given:
        problem, equals, numbers = item.rpartition("=")
        if equals:
            named[problem] = _whole_numbers(numbers)
        else:
            plain += _whole_numbers(numbers)
    if named and plain:
        from validation.cases import StudyError

        raise StudyError("--sizes: either sizes for all problems or PROBLEM=SIZES for each, not both")
    return named or plain


def _whole_numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        from validation.cases import StudyError

        raise StudyError(f"--sizes: got {text!r}, must be whole numbers such as 10,20") from None


def _paths(given: Sequence[str]) -> str | Mapping[str, str]:
    """A path, or a mapping from paper to path."""
    papers = {problem.split(".")[0] for problem in catalogue.CATALOGUE}
    named = {}
    for item in given:
        paper, equals, path = item.partition("=")
        if equals and paper in papers:
            named[paper] = path
        elif len(given) == 1:
            return item
        else:
            from validation.cases import StudyError

            raise StudyError(f"got {item!r} among several paths, must be PAPER=PATH")
    return named


@app.command()
def report(
    directory: Annotated[Path, typer.Argument(help="Directory of a study, finished or not.")],
) -> None:
    """Write table and report of a study anew, and print its summary."""
    from validation.results import finish

    _print_study(finish(directory))


@app.command()
def doctor() -> None:
    """Check the installation: packages, solvers, and a solve whose answer is known."""
    from validation.doctor import examine

    findings = examine()
    console = _console()
    for finding in findings:
        mark = Text("ok  " if finding.ok else "BAD ", "green" if finding.ok else "bold red")
        console.print(mark + Text(finding.text), soft_wrap=True)
    if not all(finding.ok for finding in findings):
        raise typer.Exit(1)


@bench_app.command()
def overhead(
    repeats: Annotated[int, typer.Option(min=1, help="Timed repetitions of each side.")] = 7,
) -> None:
    """Whole time of a solve against handing HiGHS the same arrays."""
    from validation.bench import overhead

    table = Table(box=None, pad_edge=False)
    for name in ("jobs", "whole", "HiGHS on the arrays", "ratio", "at most"):
        table.add_column(name, justify="right")
    for row in overhead(repeats):
        table.add_row(str(row.jobs), duration(row.whole), duration(row.raw), f"{row.ratio:.2f}", f"{row.limit:.2f}")
    _console().print(table)
