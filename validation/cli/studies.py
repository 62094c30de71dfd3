"""Commands about studies: ``study``, ``merge`` and ``report``."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import fields
from operator import getitem
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from validation.cli import interruption
from validation.cli.app import DISAGREEMENT, app, complain, console, say
from validation.cli.cluster import DASK
from validation.formatting import number, printable
from validation.study.options import StudyOptions, as_toml

if TYPE_CHECKING:
    from validation.study.results import Study

__all__ = ["merge", "report", "study"]

MOST_TOLD = 20
"""Oracle disagreements on the terminal."""


def study(config: Path | None, dry_run: bool | None, dask: str | None, **given: Any) -> None:
    """Measure heuristics against proven optima; an interrupted study is resumed by the same command."""
    options = StudyOptions.given(config, **given)
    if dry_run:
        from validation.study.forecast import forecast

        say(str(forecast(options)))
        return
    from validation.cli.cluster import cluster
    from validation.outputs import folder_to_write
    from validation.study.progress import Meter
    from validation.study.run import run_study

    assert options.output is not None
    output = Path(options.output)
    interruption.say(lambda: _so_far(output))
    meter = Meter()
    try:
        with folder_to_write(output), cluster(dask) as client:
            result = run_study(options, progress=meter, client=client, warn=complain)
    finally:
        meter.end()
    _print_study(result)


def _so_far(output: Path) -> str:
    """Where what ended is, for one who interrupts a study."""
    if not (output / "rows.jsonl").exists():
        return "nothing had ended"
    return f"what ended is in {output}, and the same command goes on from there"


def _with_options() -> None:
    """Give the command the parameters of :class:`StudyOptions`, which tell them once."""
    parameters = []
    for one in fields(StudyOptions):
        told = one.metadata
        made = typer.Argument if told["argument"] else typer.Option
        help = told["help"]
        if not isinstance(told["default"], bool) and told["default"] is not None:
            help = f"{help.rstrip('.')}; {as_toml(told['default'])} by default."
        parameters.append(_parameter(one.name, told["annotation"], made(*told["names"], help=help)))
    config = typer.Option(help="TOML file with the same options; these here win.")
    parameters.insert(1, _parameter("config", Path, config))
    dry_run = typer.Option("--dry-run", help="Say how many runs there are, their time and disk, and do nothing.")
    parameters.append(_parameter("dry_run", bool, dry_run))
    parameters.append(_parameter("dask", str, typer.Option(help=DASK)))
    study.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    study.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}


def _parameter(name: str, kind: Any, told: Any) -> inspect.Parameter:
    annotation = getitem(Annotated, (kind | None, told))
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


_with_options()
app.command()(study)


def _print_study(result: Study) -> None:
    page = console()
    for table in _summary_tables(result):
        page.print(table)
    failed = result.rows[result.rows["status"] == "failed"]
    if len(failed):
        page.print(
            _text(
                f"{len(failed)} runs failed; the first: {failed.iloc[0]['algorithm']}: {failed.iloc[0]['reason']}",
                "yellow",
            )
        )
    told = result.metadata
    if not told["finished"]:
        what = f"shard {told['shard']}" if told["shard"] else "unfinished"
        page.print(_text(f"{what}: {told['cells_ended']} of the study's {told['cells']} runs have ended", "yellow"))
    if result.verified:
        page.print(_text(f"found once more by a second way: {result.verified}"))
    page.print(_text(f"report: {result.report}"), soft_wrap=True)
    wrong = result.disagreements
    if len(wrong):
        for row in wrong.head(MOST_TOLD).to_dict("records"):
            page.print(
                _text(
                    f"oracle disagreement: {row['problem']}: {_contradiction(row)}; instance: "
                    f"{result.directory / row['file']}",
                    "bold red",
                ),
                soft_wrap=True,
            )
        if len(wrong) > MOST_TOLD:
            page.print(_text(f"and {len(wrong) - MOST_TOLD:,} more, see results.parquet", "bold red"))
        raise typer.Exit(DISAGREEMENT)


def _contradiction(row: Mapping[Any, Any]) -> str:
    if row["verification"] == "contradicted":
        return (
            f"the exact side's {row['status']} {number(row['value'])} is contradicted by a second way, see the report"
        )
    bound = f"{number(row['exact_bound'])} ({row['exact_status']})"
    return f"{row['algorithm']} found {number(row['value'])}, better than the exact side's bound {bound}"


def _summary_tables(result: Study) -> list[Table]:
    from validation import catalogue

    tables = []
    overview = result.overview()
    if overview.empty:
        return []
    for problem, group in overview.groupby("problem", sort=False):
        entry = catalogue.CATALOGUE.get(str(problem))
        title = f"{problem} (size is {entry.size})" if entry else str(problem)
        table = Table(title=_text(title, "italic"), title_justify="left", box=None, pad_edge=False)
        # What is told of other problems only is no column of this one.
        columns = {"source": "from"} | {name: name for name in overview.columns[2:] if (group[name] != "").any()}
        for name, head in columns.items():
            table.add_column(head, justify="left" if name in ("source", "heuristic") else "right", no_wrap=True)
        for row in group.to_dict("records"):
            table.add_row(*(_text(str(row[name])) for name in columns))
        tables.append(table)
    return tables


def _text(words: str, style: str = "") -> Text:
    """Words as they are: brackets are no markup, and what a terminal would obey is shown."""
    return Text(printable(words), style)


@app.command()
def merge(
    directories: Annotated[list[Path], typer.Argument(help="Directories of shards, or of copies of one study.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Directory of the study that they make; new, or of the same study.")
    ],
) -> None:
    """Join shards of a study, or interrupted copies of it, into one."""
    from validation.outputs import folder_to_write
    from validation.study.merge import merge_studies

    interruption.say(lambda: f"every file in {output} is whole, and the same command goes on from there")
    with folder_to_write(output):
        result = merge_studies(directories, output, warn=complain)
    _print_study(result)


@app.command()
def report(
    directory: Annotated[Path, typer.Argument(help="Directory of a study, finished or not.")],
) -> None:
    """Write table and report of a study anew, and print its summary."""
    from validation.outputs import try_folder
    from validation.study.report import finish

    interruption.say(lambda: f"every file in {directory} is whole, and the same command writes table and report anew")
    if directory.is_dir():
        try_folder(directory)
    _print_study(finish(directory, complain))
