"""What commands have in common that compute a table, whatever its kind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from validation.cli import interruption
from validation.cli.app import complain, is_quiet, say, say_json
from validation.cli.cluster import cluster

if TYPE_CHECKING:
    from validation.kernel.kind import Plan

__all__ = ["DryRun", "carried_out", "say_forecast"]

Result = TypeVar("Result")

DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say how many runs there are, their time and disk, and do nothing.")
]
"""The option of such a command that only asks what it would take."""


def say_forecast(plan: Plan, as_json: bool) -> None:
    """Say what it would take to carry out a plan."""
    from validation.kernel.forecast import forecast

    found = forecast(plan, complain)
    if as_json:
        say_json(found.to_dict())
    else:
        say(str(found))


def carried_out(run: Callable[..., Result], options: Any, dask: str | None, counted: str, ended: str) -> Result:
    """Carry out a run, on a cluster if one is named, and return its result.

    Parameters
    ----------
    run : callable
        Takes the options, ``progress``, ``client`` and ``warn``.
    options : Options
    dask : str, optional
        Address of a scheduler.
    counted : str
        What is counted while it runs.
    ended : str
        Who is in the directory when the run is interrupted, for the message.
    """
    from validation.kernel.progress import Meter
    from validation.outputs import folder_to_write

    output = Path(options.output)
    log = output / "rows.jsonl"
    there = f"{ended} in {output}, and the same command goes on from there"
    interruption.say(lambda: there if log.exists() else "nothing had ended")
    meter = Meter(counted, is_quiet())
    try:
        with folder_to_write(output), cluster(dask) as client:
            return run(options, progress=meter, client=client, warn=complain)
    finally:
        meter.end()
