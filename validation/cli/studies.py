"""Commands about studies: ``study``, ``merge`` and ``report``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from validation.cli import interruption
from validation.cli.app import (
    DISAGREEMENT,
    FAILED,
    AsJson,
    app,
    complain,
    console,
    say_json,
    text,
    warn,
)
from validation.cli.cluster import Dask
from validation.cli.options import with_options
from validation.cli.runs import DryRun, carried_out, say_forecast
from validation.formatting import number
from validation.kinds.study.options import StudyOptions

if TYPE_CHECKING:
    from rich.table import Table

    from validation.kinds.study.results import Study

__all__ = ["merge", "report", "study"]

MOST_TOLD = 20
"""Oracle disagreements on the terminal."""
WIDEST = 10_000
"""Characters of a line, of which a table takes as many as it needs."""


@app.command()
@with_options(StudyOptions, config=True)
def study(options: StudyOptions, dry_run: DryRun = False, dask: Dask = None, as_json: AsJson = False) -> None:
    """Measure heuristics against proven optima. An interrupted study is resumed by the same command.

    Ends with 3 where runs failed: a heuristic raised, ran past its limit or returned no plan though it may not decline,
    or an exact solve died.
    """
    if dry_run:
        from validation.kinds.study.run import plan

        say_forecast(plan(options), as_json)
        return
    from validation.kinds.study.run import run_study

    _tell_study(carried_out(run_study, options, dask, "runs", "what ended is"), as_json)


def _tell_study(result: Study, as_json: bool, written: Sequence[Path] = ()) -> None:
    """Tell what a study found, and end with the code that says whether all is well."""
    wrong = [
        f"oracle disagreement: {row['problem']}: {_contradiction(row)}; instance: {result.directory / row['file']}"
        for row in result.disagreements.head(MOST_TOLD).to_dict("records")
    ]
    if len(result.disagreements) > MOST_TOLD:
        wrong.append(f"and {len(result.disagreements) - MOST_TOLD:,} more oracle disagreements, see results.parquet")
    if as_json:
        say_json({**result.to_dict(), "written": [str(path) for path in written]})
    else:
        _print_tables(result)
    told = result.metadata
    for what, rows in (("runs failed", result.failures), ("exact solves were stopped at a limit", result.stopped)):
        if len(rows):
            first = rows.iloc[0]
            warn(f"{len(rows)} {what}; the first: {first['algorithm']}: {first['reason']}", "yellow", as_json)
    if not told["finished"] and not told["shard"]:
        warn(f"unfinished: {_ended(result)}", "yellow", as_json)
    if not as_json:
        _print_files(result, written)
    for line in wrong:
        warn(line, "bold red", as_json)
    if wrong:
        raise typer.Exit(DISAGREEMENT)
    if len(result.failures):
        raise typer.Exit(FAILED)


def _print_tables(result: Study) -> None:
    page = console()
    for table in _summary_tables(result):
        # A column that does not fit would be cut.
        page.width = max(page.width, page.measure(table, options=page.options.update(width=WIDEST)).maximum)
        page.print(table)


def _print_files(result: Study, written: Sequence[Path]) -> None:
    from validation.kinds.study.report import filled_in

    page = console()
    if result.metadata["shard"] and not result.metadata["finished"]:
        page.print(text(f"shard {result.metadata['shard']}: {_ended(result)}", "yellow"))
    if result.verified:
        page.print(text(f"found once more by a second way: {result.verified}"))
    filled = ", ".join(f"{what} ({count:,})" for what, count in filled_in(result).items())
    if filled:
        page.print(text(f"filled in or changed of the real data, jobs in all: {filled}"), soft_wrap=True)
    for path in written:
        page.print(text(f"table: {path}"), soft_wrap=True)
    page.print(text(f"report: {result.report}"), soft_wrap=True)


def _ended(result: Study) -> str:
    return f"{result.metadata['cells_ended']} of the study's {result.metadata['cells']} runs have ended"


def _contradiction(row: Mapping[Any, Any]) -> str:
    if row["verification"] == "contradicted":
        return (
            f"the exact side's {row['status']} {number(row['value'])} is contradicted by a second way, see the report"
        )
    bound = f"{number(row['exact_bound'])} ({row['exact_status']})"
    return f"{row['algorithm']} found {number(row['value'])}, better than the exact side's bound {bound}"


def _summary_tables(result: Study) -> list[Table]:
    from rich.table import Table

    from validation import catalogue

    tables = []
    overview = result.overview()
    if overview.empty:
        return []
    for problem, group in overview.groupby("problem", sort=False):
        entry = catalogue.CATALOGUE.get(str(problem))
        table = Table(title=text(str(problem), "italic"), title_justify="left", box=None, pad_edge=False)
        # What is told of other problems only is no column of this one.
        columns = {name: name for name in overview.columns[1:] if (group[name] != "").any()}
        columns |= {"source": "from"} | ({"size": entry.size} if entry else {})
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
    as_json: AsJson = False,
) -> None:
    """Join shards or interrupted copies of a study or of replays into one. Ends with 3 where runs failed."""
    from validation.cli.replay import tell_replays
    from validation.kinds.replays.results import Replays
    from validation.kinds.stored import merge_studies
    from validation.outputs import folder_to_write

    interruption.say(lambda: f"every file in {output} is whole, and the same command goes on from there")
    with folder_to_write(output):
        result = merge_studies(directories, output, warn=complain)
    if isinstance(result, Replays):
        tell_replays(result, as_json)
    else:
        _tell_study(result, as_json)


@app.command()
def report(
    directory: Annotated[Path, typer.Argument(help="Directory of a study or of replays, finished or not.")],
    latex: Annotated[
        bool, typer.Option("--latex", help="Write the summary of a study as a LaTeX table, too: summary.tex.")
    ] = False,
    csv: Annotated[
        bool, typer.Option("--csv", help="Write the summary of a study with all digits, too: summary.csv.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write a study's table and report anew, and print its summary. Ends with 3 where runs failed."""
    from validation.cli.replay import tell_replays
    from validation.kernel.store import require_record
    from validation.kinds.replays.results import Replays
    from validation.kinds.stored import KINDS, kind_of
    from validation.outputs import try_folder

    interruption.say(lambda: f"every file in {directory} is whole, and the same command writes table and report anew")
    if directory.is_dir():
        try_folder(directory)
    kind, finish = KINDS[0] if latex or csv else kind_of(directory)  # Replays have no such table.
    require_record(directory, kind)
    result = finish(directory, complain)
    if isinstance(result, Replays):
        tell_replays(result, as_json)
        return
    written = [one for wanted, one in ((latex, _write_latex), (csv, _write_csv)) if wanted]
    _tell_study(result, as_json, [write(result) for write in written])


def _write_latex(result: Study) -> Path:
    """Write the summary as people read it, for a paper."""
    from instances.files import write_whole

    path = result.directory / "summary.tex"
    write_whole(path, str(result.overview().to_latex()))
    return path


def _write_csv(result: Study) -> Path:
    """Write the summary, for another program."""
    from instances.files import write_whole

    path = result.directory / "summary.csv"
    write_whole(path, result.summary().to_csv(index=False))
    return path
