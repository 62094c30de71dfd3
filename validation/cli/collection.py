"""Commands ``collection``: the instances with the best plans and bounds that are known."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from validation.cli import interruption
from validation.cli.app import DISAGREEMENT, AsJson, app, complain, console, say, say_json, text, warn
from validation.cli.help import App
from validation.errors import StudyError
from validation.formatting import number, percent

__all__ = ["check", "export", "list_instances", "show", "solve", "submit"]

collection_app = App(help="Instances with the best plans and bounds that are known.")
app.add_typer(collection_app, name="collection")

Where = Annotated[
    Path | None,
    typer.Option("--collection", help="Folder of the collection; else $SCHEDULING_COLLECTION, else the checkout's."),
]
Name = Annotated[str, typer.Argument(help="Of an instance, such as aryl.reclaim-g03.")]


@collection_app.command("list")
def list_instances(
    problem: Annotated[str | None, typer.Option(help="Only of this problem, or of this paper's.")] = None,
    kind: Annotated[str | None, typer.Option("--class", help="Only of this class: easy, hard or open.")] = None,
    as_json: AsJson = False,
    folder: Where = None,
) -> None:
    """List the instances: what the best plan is worth, the bound, and what proves it."""
    from instances.schema import nearest
    from validation.kinds.collection.store import CLASSES, load

    collection = load(folder)
    if kind is not None and kind not in CLASSES:
        raise StudyError(f"--class: got {kind!r}{nearest(kind, CLASSES)}, must be one of {', '.join(CLASSES)}")
    frame = collection.frame().loc[collection.names(problem)]
    if kind is not None:
        frame = frame[frame["class"] == kind]
    if as_json:
        say_json(frame.reset_index().to_dict("records"))
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in ("name", "class", "origin", "jobs", "value", "bound", "gap", "proof"):
        table.add_column(name, justify="right" if name in ("jobs", "value", "bound", "gap") else "left")
    for instance, row in frame.to_dict("index").items():
        jobs = "" if math.isnan(row["jobs"]) else f"{row['jobs']:.0f}"
        numbers = [jobs, number(row["value"]), number(row["bound"]), percent(row["gap"])]
        table.add_row(*map(text, [str(instance), row["class"], row["origin"], *numbers, row["proof"]]))
    console().print(table)
    say(f"{len(frame)} instances of collection {collection.version}")


@collection_app.command()
def show(
    name: Name,
    plot: Annotated[Path | None, typer.Option(help="Picture of the best plan to write: a .png, .svg or .pdf.")] = None,
    as_json: AsJson = False,
    folder: Where = None,
) -> None:
    """Show what is known of an instance."""
    from validation.kinds.collection.store import load

    collection = load(folder)
    record, instance, plan = collection.record(name), collection.instance(name), collection.plan(name)
    if plot is not None:
        _write_picture(instance, plan, plot)
    if as_json:
        say_json(record)
        return
    best, bound = record["best"], record["bound"]
    lines = {
        "name": name,
        "problem": f"{record['problem']} ({'smaller' if record['sense'] == 'min' else 'greater'} is better)",
        "class": record["class"],
        "origin": _told(record["origin"]),
        "licence": record["licence"],
        "size": ", ".join(f"{dimension} = {length}" for dimension, length in record["size"].items()),
        "best": f"{number(best['value'])} (exactly {best['exact']}), by {best['found_by']}, {best['date']}",
        "bound": "none" if bound["value"] is None else f"{number(bound['value'])}, {_proven(bound['proof'])}",
        "digest": record["digest"],
        "files": f"{collection.file(name, 'instance')}, {collection.file(name, 'plan')}",
        "plan": repr(plan),
        "picture": "" if plot is None else str(plot),
        "history": "; ".join(f"until {one['date']}: {_replaced(one)}" for one in record["history"]),
    }
    for heading, value in lines.items():
        if value:
            say(f"{heading:<8} {value}")
    say("heuristics:")
    for heuristic, one in record["heuristics"].items():
        worth = one["status"] if one["value"] is None else number(one["value"])
        say(f"    {heuristic:<28} {worth:<14} {'' if one['gap'] is None else 'gap ' + percent(one['gap'])}".rstrip())


@collection_app.command()
def solve(
    name: Name,
    time_limit: Annotated[float | None, typer.Option(help="Limit for the solver, s.")] = None,
    solver: Annotated[str, typer.Option(help="Solver of the exact model.")] = "highs",
    output: Annotated[Path | None, typer.Option("-o", "--output", help="File for the plan that is found.")] = None,
    as_json: AsJson = False,
    folder: Where = None,
) -> None:
    """Solve an instance again, and say how that compares with what is known."""
    from instances.files import write_whole
    from validation.cli.problems import solve_apart
    from validation.kernel.gaps import beats
    from validation.kinds.collection.store import load
    from validation.outputs import try_file

    if time_limit is not None and not time_limit > 0:
        raise typer.BadParameter(f"got {time_limit}, must be positive seconds", param_hint="--time-limit")
    collection = load(folder)
    record, instance = collection.record(name), collection.instance(name)
    if output is not None:
        try_file(output)
    interruption.say(lambda: "nothing had been solved")
    found = solve_apart(instance, solver, time_limit, False)
    value, bound = found["objective"], found["bound"]
    best, known = record["best"]["value"], record["bound"]["value"]
    written = output if found["plan"] is not None else None
    if written is not None:
        write_whole(written, json.dumps(found["plan"], allow_nan=False) + "\n")
    if as_json:
        say_json({"name": name, "known": {"value": best, "bound": known}, **found})
    else:
        than = f"{_than(record['sense'], value, best)} {number(best)}"
        say(f"status   {found['status']}, {found['build_seconds'] + found['solve_seconds']:.3g} s")
        say(f"value    {'none' if value is None else number(value)}, {than}")
        other = "max" if record["sense"] == "min" else "min"
        than = "none is known" if known is None else f"{_than(other, bound, known)} {number(known)}"
        say(f"bound    {'none' if bound is None else number(bound)}, {than}")
        if written is not None:
            say(f"plan     {written}")
    if value is not None and known is not None and beats(record["sense"], value, known):
        complain(f"{name}: the plan is beyond the bound that is known: one of the two is wrong")
        raise typer.Exit(DISAGREEMENT)


@collection_app.command()
def submit(
    name: Name,
    plan: Annotated[Path | None, typer.Argument(help="Plan as JSON.")] = None,
    prices: Annotated[Path | None, typer.Option(help="Prices as JSON, which prove a bound.")] = None,
    certificate: Annotated[Path | None, typer.Option(help="A certificate, which proves a bound; .gz as well.")] = None,
    run: Annotated[Path | None, typer.Option(help="A solver run as JSON, which claims a bound.")] = None,
    by: Annotated[str, typer.Option(help="Who or what found the plan.")] = "submitted",
    as_json: AsJson = False,
    folder: Where = None,
) -> None:
    """Check a plan, or a bound with its proof, and take it into the collection if it is better; else exit with 1."""
    from instances import text as files
    from instances.files import instance_type
    from validation.kinds.collection import submission
    from validation.kinds.collection.store import load

    given = [file for file in (plan, prices, certificate, run) if file is not None]
    if len(given) != 1:
        raise StudyError("give one of a plan, --prices FILE, --certificate FILE and --run FILE")
    collection = load(folder)
    content = files.read_text(given[0])
    data: Any = content if certificate is not None else files.as_json(content, f"{given[0]}")
    if certificate is None and not isinstance(data, Mapping):
        raise StudyError(f"{given[0]}: must be a JSON object")
    with collection.changing(complain):
        if plan is not None:
            made = instance_type(collection.record(name)["problem"]).plan_type.from_dict(data)
            done = submission.submit_plan(collection, name, made, by=by)
        elif prices is not None:
            done = submission.submit_prices(collection, name, data)
        elif certificate is not None:
            done = submission.submit_certificate(collection, name, data)
        else:
            done = submission.submit_run(collection, name, data)
    if as_json:
        say_json({"name": name, "verdict": done.verdict, "taken": done.taken, "message": done.message})
    elif done.taken:
        say(f"{done.verdict}: {done.message}")
    else:
        warn(f"{done.verdict}: {done.message}", "", as_json=False)
    if not done.taken:
        raise typer.Exit(DISAGREEMENT)


@collection_app.command()
def export(
    output: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to write; an earlier export is replaced.")],
    mps: Annotated[bool, typer.Option("--mps", help="Write each program, NAME.mps.gz.")] = False,
    solu: Annotated[bool, typer.Option("--solu", help="Write what is known of their optima, collection.solu.")] = False,
    problem: Annotated[str | None, typer.Option(help="Only of this problem, or of this paper's.")] = None,
    as_json: AsJson = False,
    folder: Where = None,
) -> None:
    """Write the instances as programs in MPS, with MIPLIB's .solu file, for who has no use for this library.

    What is no one program, or a very large one, is named with the reason.
    """
    from validation.kinds.collection import export as exporting
    from validation.kinds.collection.store import load

    if not (mps or solu):
        raise StudyError("give --mps, --solu, or both")
    interruption.say(lambda: "nothing had been written")
    done = exporting.export(load(folder), output, problem=problem, mps=mps, solu=solu)
    if as_json:
        say_json({"folder": str(output), "written": done.written, "left_out": done.left_out})
        return
    for name, why in done.left_out.items():
        say(f"left out: {name}: {why}")
    say(f"{len(done.written)} instances in {output}, {len(done.left_out)} left out")


@collection_app.command()
def check(
    problem: Annotated[str | None, typer.Option(help="Only of this problem.")] = None,
    name: Annotated[str | None, typer.Option(help="Only this instance.")] = None,
    mend: Annotated[
        bool, typer.Option("--mend", help="First end what a process that was killed had begun to write.")
    ] = False,
    as_json: AsJson = False,
    folder: Where = None,
) -> None:
    """Check the collection as its check.py does. Files, plans, values and proofs, by the library's own reference."""
    from instances.reference import records
    from validation.kinds.collection.store import load

    collection = load(folder)
    if mend:
        with collection.changing(complain):
            pass
    counts, wrong = records.check(collection.folder, problem=problem, name=name)
    if as_json:
        say_json({"counts": {one: dict(count) for one, count in counts.items()}, "wrong": wrong})
    else:
        say(records.table(counts))
    for line in wrong:
        complain(line)
    if wrong:
        raise typer.Exit(DISAGREEMENT)


def _than(sense: str, value: float | None, known: float) -> str:
    from instances.base import agree

    if value is None:
        return "where there is"
    if agree(value, known, size=1.0):
        return "as good as the"
    return "better than the" if (value < known if sense == "min" else value > known) else "worse than the"


def _told(origin: Mapping[str, Any]) -> str:
    files = ", ".join(origin.get("files", []))
    return f"{origin['kind']}: {origin['call']}" + (f", from {files}" if files else "")


def _proven(proof: Mapping[str, Any]) -> str:
    if proof["kind"] == "runs":
        told = [f"{run['solver']} {run['version']} ({run['status']}, {run['seconds']:.3g} s)" for run in proof["runs"]]
        return f"on the word of {', '.join(told)}"
    return f"proven by {proof['kind']}"


def _replaced(entry: Mapping[str, Any]) -> str:
    what = next(name for name in ("best", "bound") if name in entry)
    value = entry[what]["value"]
    return f"{what} {'none' if value is None else number(value)}"


def _write_picture(instance: Any, plan: Any, file: Path) -> None:
    from instances.files import write_whole
    from validation.outputs import try_file
    from validation.pages.drawing import own_style

    form = file.suffix.removeprefix(".")
    if form not in ("png", "svg", "pdf"):
        raise StudyError(f"--plot: got {file}, must end in .png, .svg or .pdf")
    try_file(file)
    drawn = io.BytesIO()
    with own_style({}, salt="collection"):
        from matplotlib.figure import Figure

        figure = Figure(layout="constrained")
        instance.plot(plan, ax=figure.subplots())
        figure.savefig(drawn, format=form)
    write_whole(file, drawn.getvalue())
