"""The ``optgap`` command.

Every command is a thin shell around a function of the library.  Bad input ends in one line that
names the culprit and exit code 2; a study with an oracle disagreement ends in exit code 1.
"""

from __future__ import annotations

import json
import math
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

from validation.formatting import duration, gap_range, number

if TYPE_CHECKING:
    from validation.results import Study
    from validation.study import Progress

app = typer.Typer(
    name="optgap",
    help="Exact optima, heuristics, and the gap between them, for GPU-cluster scheduling problems.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
bench_app = typer.Typer(help="Benchmarks of the library itself.")
app.add_typer(bench_app, name="bench")

BAD_INPUT = 2
DISAGREEMENT = 1


def main() -> None:
    """Entry point: what the user got wrong becomes one line on standard error."""
    try:
        code = app(sys.argv[1:] or ["--help"], prog_name="optgap", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of a pipe went away, as in ``optgap list | head``.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (KeyboardInterrupt, typer.Abort):
        _complain("interrupted")
        sys.exit(130)
    except Exception as error:
        message = _what_is_wrong(error)
        if message is None:
            raise
        _complain(message)
        sys.exit(BAD_INPUT)
    sys.exit(code)


def _what_is_wrong(error: Exception) -> str | None:
    """The user's mistake in words; None for anything else, which is a bug and keeps its traceback."""
    if isinstance(error, OSError):
        return _os_error(error)
    if hasattr(error, "format_message"):  # No such command or option, a value out of range, ...
        return str(error.format_message())
    if isinstance(error, (ImportError, AttributeError)):
        # Other packages with the names of this library's lack what is asked of them.
        from validation.doctor import rooms

        return next((finding.text for finding in rooms() if not finding.ok), None)
    from formulations import ModelError, SolverError, SolverNotFound
    from instances.base import InstanceError, PlanError
    from validation.cases import StudyError
    from validation.catalogue import CatalogueError

    expected = (InstanceError, PlanError, CatalogueError, StudyError, SolverNotFound, SolverError, ModelError)
    return str(error) if isinstance(error, expected) else None


def _os_error(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename else str(error)


def _complain(message: str) -> None:
    print("optgap:", " ".join(message.split()), file=sys.stderr)


def _console() -> Console:
    # A table that is cut to a narrow terminal, or to the 80 columns of a pipe, loses its numbers.
    console = Console(highlight=False)
    console.width = max(console.width, 120)
    return console


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

    if time_limit is not None and not time_limit > 0:
        raise typer.BadParameter(f"got {time_limit}, must be positive seconds", param_hint="--time-limit")
    instance = load(file)
    found = _by_heuristic(instance, heuristic, seed) if heuristic else _exactly(instance, solver, time_limit)
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
    from validation import catalogue
    from validation.cases import import_function
    from validation.catalogue import Heuristic
    from validation.study import call_heuristic

    heuristic = (
        Heuristic(import_function(name), declines=True) if ":" in name else catalogue.heuristic(instance.problem, name)
    )
    plan, seconds = call_heuristic(instance, heuristic, seed)
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
    repair: Annotated[
        bool | None, typer.Option("--repair", help="Repair measured curves that a problem cannot take.")
    ] = None,
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
        "repair": repair,
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
    from validation import catalogue

    tables = []
    summary = result.summary()
    if summary.empty:
        return []
    for problem, group in summary.groupby("problem", sort=False):
        entry = catalogue.CATALOGUE.get(str(problem))
        title = f"{problem} (size is {entry.size})" if entry else str(problem)
        table = Table(title=title, title_justify="left", box=None, pad_edge=False)
        for name in _SUMMARY_COLUMNS:
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
    from instances.base import nearest
    from validation.cases import StudyError

    try:
        asked = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
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
        "repair": (bool,),
        "time_limit": (int, float),
        "jobs": (int,),
        "solver": (str,),
        "output": (str,),
    }
    for name, value in asked.items():
        if name not in known:
            raise StudyError(f"{path}: unknown option {name!r}{nearest(name, known)}")
        if not isinstance(value, known[name]) or (isinstance(value, bool) and bool not in known[name]):
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
    from validation.catalogue import CATALOGUE

    papers = {problem.split(".")[0] for problem in CATALOGUE}
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
def check(
    heuristic: Annotated[str, typer.Argument(help="my_module:my_heuristic, or a name of the catalogue.")],
    problem: Annotated[str, typer.Option(help="Name of a problem, such as aryl.reclaim.")],
    ratio: Annotated[float | None, typer.Option(help="Promise: within this factor of the optimum.")] = None,
    monotone: Annotated[bool, typer.Option("--monotone", help="Promise: more resources never hurt.")] = False,
    relabelled: Annotated[bool, typer.Option("--relabelled", help="Promise: renumbering changes nothing.")] = False,
    max_examples: Annotated[int, typer.Option(min=1, help="Instances for each check.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the search.")] = 0,
    output: Annotated[Path, typer.Option("-o", "--output", help="Directory for failing instances.")] = Path("failures"),
) -> None:
    """Look for an instance on which a heuristic breaks a rule or a promise."""
    from validation import catalogue
    from validation.cases import StudyError, import_function
    from validation.checks import Monotone, Promise, Ratio, Relabelled, check_heuristic

    promises: list[Promise] = []
    if ratio is not None:
        if not ratio >= 1:
            raise StudyError(f"--ratio: got {ratio:g}, must be at least 1")
        promises.append(Ratio(ratio))
    promises += [Monotone()] if monotone else []
    promises += [Relabelled()] if relabelled else []
    catalogue.entry(problem)
    subject = import_function(heuristic) if ":" in heuristic else catalogue.heuristic(problem, heuristic)
    found = check_heuristic(problem, subject, promises=promises, max_examples=max_examples, seed=seed, output=output)
    print(found)
    if not found.ok:
        raise typer.Exit(1)


@app.command()
def hunt(
    problem: Annotated[str, typer.Argument(help="Name of a problem, such as aryl.reclaim.")],
    heuristic: Annotated[str, typer.Argument(help="A name of the catalogue or module:function.")],
    seed: Annotated[int, typer.Option(min=0, help="Seed of the search.")],
    budget: Annotated[str, typer.Option(help="Time in all, such as 60s or 5m.")] = "60s",
    keep: Annotated[float, typer.Option(help="Fraction of the worst gap that shrinking keeps.")] = 0.9,
    jobs: Annotated[int | None, typer.Option(min=1, help="Worker processes; one for each core by default.")] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="Directory for what is found.")] = Path("hunt"),
) -> None:
    """Search for the instance on which a heuristic does worst, and shrink it."""
    from validation.hunt import OracleDisagreementError, find_worst

    try:
        found = find_worst(
            problem, heuristic, seed=seed, budget=_seconds(budget), keep=keep, jobs=jobs, progress=_show_hunt
        )
    except OracleDisagreementError as error:
        _complain(f"oracle disagreement: {error}")
        raise typer.Exit(DISAGREEMENT) from None
    path = found.save(output)
    judged = found.judged
    value = "no feasible plan" if judged.value is None else number(judged.value)
    print(f"worst gap   {gap_range(found.worst_gap, found.worst_gap)}, found by {found.found_by}")
    print(f"smallest    gap {gap_range(judged.gap, judged.gap)}: {heuristic} {value}, optimum {number(judged.optimum)}")
    print(f"instance    {json.dumps(judged.instance.to_dict())}")
    print(f"judged      {found.evaluated} instances")
    for failure in found.failures[:3]:
        print(f"ended early {failure}")
    print(f"witness     {path}\npage        {path.with_suffix('.html')}")


def _seconds(text: str) -> float:
    from validation.cases import StudyError

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
    paper: Annotated[str | None, typer.Argument(help="Only the claims of this paper.")] = None,
    instances: Annotated[
        int | None,
        typer.Option(min=1, help="Most instances for each claim; 500, or all of a finite set, by default."),
    ] = None,
    seconds: Annotated[float, typer.Option(help="Time for each claim.")] = 20.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of random instances.")] = 0,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Also write a Markdown page.")] = None,
) -> None:
    """Put the papers' formal statements to the test."""
    from instances.files import write_whole
    from validation import claims as found

    verdicts = []
    for claim in found.claims(paper):
        verdict = found.examine(claim, instances=instances, seconds=seconds, seed=seed)
        print(f"{verdict}\n", flush=True)
        verdicts.append(verdict)
    if output is not None:
        write_whole(output, found.page(verdicts))


@app.command()
def report(
    directory: Annotated[Path, typer.Argument(help="Directory of a study, finished or not.")],
) -> None:
    """Write table and report of a study anew, and print its summary."""
    from validation.report import finish

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


@bench_app.command()
def gavel(
    repeats: Annotated[int, typer.Option(min=1, help="Timed repetitions of each side.")] = 5,
    throughputs: Annotated[Path | None, typer.Option(help="Published throughput table.")] = None,
    trace: Annotated[Path | None, typer.Option(help="Published trace.")] = None,
) -> None:
    """Times of Gavel's policies, against HiGHS on the same arrays where there is one program."""
    from validation import bench

    table = Table(box=None, pad_edge=False)
    for name in ("what", "whole", "ratio", "at most"):
        table.add_column(name, justify="left" if name == "what" else "right")
    files = {"throughputs": str(throughputs), "trace": str(trace)} if throughputs and trace else {}
    for row in bench.gavel(repeats, **files):
        limit = f"{row.limit:.2f}" if row.ratio is not None else duration(row.limit)
        table.add_row(row.what, duration(row.seconds), "" if row.ratio is None else f"{row.ratio:.2f}", limit)
    _console().print(table)
