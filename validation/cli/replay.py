"""The command ``replay``: traces under several decision makers, and what the difference came to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from validation.cli.app import FAILED, AsJson, app, console, say_json, text, warn
from validation.cli.cluster import Dask
from validation.cli.options import with_options
from validation.cli.runs import DryRun, carried_out, say_forecast
from validation.kinds.replays.options import ReplayOptions

if TYPE_CHECKING:
    from validation.kinds.replays.results import Replays

__all__ = ["replay", "tell_replays"]

MOST_TOLD = 20
"""Sentences on the terminal."""


@app.command()
@with_options(ReplayOptions, config=True)
def replay(options: ReplayOptions, dry_run: DryRun = False, dask: Dask = None, as_json: AsJson = False) -> None:
    """Replay traces under several decision makers. What was interrupted is resumed by the same command.

    Ends with 3 where replays failed, or a decision maker did although another's plan was used in place of its own.
    """
    if dry_run:
        from validation.kinds.replays.study import plan

        say_forecast(plan(options), as_json)
        return
    from validation.kinds.replays.study import run_replays

    tell_replays(carried_out(run_replays, options, dask, "replays and bounds", "the replays that ended are"), as_json)


def tell_replays(result: Replays, as_json: bool) -> None:
    """Tell what replays found, and end with the code that says whether all is well."""
    from validation.kernel.judging import Status
    from validation.kinds.replays.report import sentences

    differences, gaps, costs = result.differences(), result.gaps(), result.cost_of_gaps()
    told = sentences(result, differences, gaps, costs)
    meta, failed = result.metadata, result.rows[result.rows["status"] == "failed"]
    if as_json:
        say_json(
            {
                "directory": str(result.directory),
                "report": str(result.report),
                "finished": meta["finished"],
                "replays": meta["cells"],
                "ended": meta["cells_ended"],
                "failed": len(failed),
                "averages": result.averages().to_dict("records"),
                "differences": differences.to_dict("records"),
                "gaps": gaps.to_dict("records"),
                "offline": result.offline.to_dict("records"),
                "sentences": told,
            }
        )
    else:
        _print_tables(result, told)
    if len(failed):
        first = failed.iloc[0]
        warn(f"{len(failed)} replays failed; the first: {first['policy']}: {first['reason']}", "yellow", as_json)
    missed = result.decisions[result.decisions["status"] == Status.FAILED]
    if len(missed):
        first = missed.iloc[0]
        said = f"{len(missed)} decisions failed, and another's plan was used; the first: {first['algorithm']}"
        warn(f"{said}: {first['reason']}", "yellow", as_json)
    if not meta["finished"]:
        state = f"shard {meta['shard']}" if meta["shard"] else "unfinished"
        warn(f"{state}: {meta['cells_ended']} of {meta['cells']} replays have ended", "yellow", as_json)
    if not as_json:
        console().print(text(f"report: {result.report}"), soft_wrap=True)
    if len(failed) or len(missed):
        raise typer.Exit(FAILED)


def _print_tables(result: Replays, told: Sequence[str]) -> None:
    from rich.table import Table

    page = console()
    overview = result.overview()
    for trace, rows in overview.groupby("trace", sort=False) if len(overview) else ():
        title = text(f"{trace}, {result.metadata['asked']['problem']}", "italic")
        table = Table(title=title, title_justify="left", box=None, pad_edge=False)
        columns = [str(name) for name in overview if name != "trace"]
        for name in columns:
            table.add_column(text(name), justify="left" if name == "policy" else "right", no_wrap=name == "policy")
        for row in rows.to_dict("records"):
            table.add_row(*(text(str(row[name])) for name in columns))
        page.print(table)
    for one in told[:MOST_TOLD]:
        page.print(text(one), soft_wrap=True)
    if len(told) > MOST_TOLD:
        page.print(text(f"and {len(told) - MOST_TOLD:,} more, see the report"))
