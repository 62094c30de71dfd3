"""Commands about studies: ``study``, ``merge`` and ``report``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from validation.cli import interruption
from validation.cli.app import DISAGREEMENT, app, complain, console, say, text
from validation.cli.cluster import DASK
from validation.cli.options import with_options
from validation.formatting import number
from validation.study.options import StudyOptions

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


with_options(
    study,
    StudyOptions,
    {
        "dry_run": (
            bool,
            typer.Option("--dry-run", help="Say how many runs there are, their time and disk, and do nothing."),
        ),
        "dask": (str, typer.Option(help=DASK)),
    },
)
app.command()(study)


def _print_study(result: Study) -> None:
    page = console()
    for table in _summary_tables(result):
        page.print(table)
    failed = result.rows[result.rows["status"] == "failed"]
    if len(failed):
        page.print(
            text(
                f"{len(failed)} runs failed; the first: {failed.iloc[0]['algorithm']}: {failed.iloc[0]['reason']}",
                "yellow",
            )
        )
    told = result.metadata
    if not told["finished"]:
        what = f"shard {told['shard']}" if told["shard"] else "unfinished"
        page.print(text(f"{what}: {told['cells_ended']} of the study's {told['cells']} runs have ended", "yellow"))
    if result.verified:
        page.print(text(f"found once more by a second way: {result.verified}"))
    page.print(text(f"report: {result.report}"), soft_wrap=True)
    wrong = result.disagreements
    if len(wrong):
        for row in wrong.head(MOST_TOLD).to_dict("records"):
            page.print(
                text(
                    f"oracle disagreement: {row['problem']}: {_contradiction(row)}; instance: "
                    f"{result.directory / row['file']}",
                    "bold red",
                ),
                soft_wrap=True,
            )
        if len(wrong) > MOST_TOLD:
            page.print(text(f"and {len(wrong) - MOST_TOLD:,} more, see results.parquet", "bold red"))
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
        table = Table(title=text(title, "italic"), title_justify="left", box=None, pad_edge=False)
        # What is told of other problems only is no column of this one.
        columns = {"source": "from"} | {name: name for name in overview.columns[2:] if (group[name] != "").any()}
        for name, head in columns.items():
            table.add_column(head, justify="left" if name in ("source", "heuristic") else "right", no_wrap=True)
        for row in group.to_dict("records"):
            table.add_row(*(text(str(row[name])) for name in columns))
        tables.append(table)
    return tables


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
    directory: Annotated[Path, typer.Argument(help="Directory of a study or of replays, finished or not.")],
) -> None:
    """Write table and report of a study anew, and print its summary."""
    from validation.cli.replay import report_replays
    from validation.outputs import try_folder
    from validation.study.report import finish

    interruption.say(lambda: f"every file in {directory} is whole, and the same command writes table and report anew")
    if directory.is_dir():
        try_folder(directory)
    if report_replays(directory):
        return
    _print_study(finish(directory, complain))
