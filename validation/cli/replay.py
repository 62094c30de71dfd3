"""The command ``replay``: traces under several decision makers, and what the difference came to."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.table import Table

from validation.cli import interruption
from validation.cli.app import FAILED, JSON, app, complain, console, is_quiet, say_json, text, warn
from validation.cli.options import with_options
from validation.replay.options import ReplayOptions

if TYPE_CHECKING:
    from typing import Any

    from validation.replay.results import Replays

__all__ = ["replay", "report_replays"]

MOST_TOLD = 20
"""Sentences on the terminal."""


def replay(config: Path | None, as_json: bool | None, **given: Any) -> None:
    """Replay traces under several decision makers. What was interrupted is resumed by the same command.

    Ends with 3 where replays failed.
    """
    options = ReplayOptions.given(config, **given)
    from validation.outputs import folder_to_write
    from validation.replay.study import run_replays
    from validation.study.progress import Meter

    assert options.output is not None
    output = Path(options.output)
    interruption.say(lambda: _so_far(output))
    meter = Meter("replays and bounds", is_quiet())
    try:
        with folder_to_write(output):
            result = run_replays(options, progress=meter, warn=complain)
    finally:
        meter.end()
    _print_replays(result, as_json)


with_options(replay, ReplayOptions, {"as_json": (bool, JSON)})
app.command()(replay)


def _so_far(output: Path) -> str:
    """Where what ended is, for one who interrupts."""
    if not (output / "rows.jsonl").exists():
        return "nothing had ended"
    return f"the replays that ended are in {output}, and the same command goes on from there"


def report_replays(directory: Path, as_json: bool = False) -> bool:
    """Write tables and report of replays anew, and print what they say; whether the directory holds any."""
    from validation.replay.records import REPLAYS

    if not os.path.lexists(directory / REPLAYS.record):
        return False
    from validation.replay.report import finish

    _print_replays(finish(directory, complain), as_json)
    return True


def _print_replays(result: Replays, as_json: bool | None) -> None:
    from validation.replay.report import sentences

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
    if not meta["finished"]:
        warn(f"unfinished: {meta['cells_ended']} of {meta['cells']} replays have ended", "yellow", as_json)
    if not as_json:
        console().print(text(f"report: {result.report}"), soft_wrap=True)
    if len(failed):
        raise typer.Exit(FAILED)


def _print_tables(result: Replays, told: Sequence[str]) -> None:
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
