"""The command ``replay``: traces under several decision makers, and what the difference came to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

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
"""Remarks on the terminal."""


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
    from validation.kinds.replays.report import findings, of_programs, remarks, sentences

    differences, gaps, costs = result.differences(), result.gaps(), result.cost_of_gaps()
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
                "sentences": sentences(result, differences, gaps, costs),
            }
        )
    else:
        _print_tables(result, findings(result, differences, result.averages(), result.beside_offline()))
        for one in (of_programs(result) + remarks(result))[:MOST_TOLD]:
            console().print(text(one), soft_wrap=True)
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


def _print_tables(result: Replays, found: Sequence[tuple[str, list[dict[str, Any]]]]) -> None:
    overview = result.overview()
    problem = result.metadata["asked"]["problem"]
    for title, lines in found:
        _print_table(title, lines, ("decision maker", "so"))
    for trace, rows in overview.groupby("trace", sort=False) if len(overview) else ():
        _print_table(f"{trace}, {problem}", rows.drop(columns="trace").to_dict("records"), ("policy",))


def _print_table(title: str, lines: Sequence[Mapping[Any, Any]], left: Sequence[str]) -> None:
    from rich.table import Table

    table = Table(title=text(title, "italic"), title_justify="left", box=None, pad_edge=False)
    for name in lines[0]:
        table.add_column(text(str(name)), justify="left" if name in left else "right", no_wrap=name in left)
    for line in lines:
        table.add_row(*(text(str(word)) for word in line.values()))
    console().print(table)
