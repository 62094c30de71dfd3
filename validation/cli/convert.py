"""The command ``convert``: published data as files that the library reads."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from validation.cli import interruption
from validation.cli.app import app, say
from validation.errors import StudyError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["convert", "readers"]


def readers() -> dict[str, tuple[Callable[..., Any], Callable[..., str]]]:
    """For each format its reader, and how what it gives is written."""
    from instances.data import alibaba, chronus, helios, jobs, philly, sia, synergy

    return {
        "jobs": (jobs.read_trace, jobs.write),
        "philly": (philly.read_trace, jobs.write),
        "philly-distribution": (philly.read_distribution, jobs.write),
        "helios": (helios.read_trace, jobs.write),
        "openb": (alibaba.read_trace, jobs.write),
        "openb-nodes": (alibaba.read_nodes, _as_csv),
        "chronus": (chronus.read_trace, jobs.write),
        "sia": (sia.read_throughputs, _with_index),
        "synergy-profiles": (synergy.read_matrices, synergy.written),
    }


def _as_csv(frame: pd.DataFrame) -> str:
    return frame.to_csv(index=False)


def _with_index(frame: pd.DataFrame) -> str:
    return frame.to_csv()


@app.command()
def convert(
    form: Annotated[
        str,
        typer.Argument(
            metavar="FORMAT",
            help="Of the file, as docs/data.md lists them: jobs, "
            "philly, helios, openb, chronus, sia, synergy-profiles, ...",
        ),
    ],
    file: Annotated[Path, typer.Argument(help="What was published: a file, which may be a gzip, or a folder.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="File to write.")],
    column: Annotated[
        list[str] | None, typer.Option(help="NAME=COLUMN: what a column is called in the file, if otherwise.")
    ] = None,
    skip_bad_rows: Annotated[
        bool, typer.Option("--skip-bad-rows", help="Leave out rows that cannot be read, and count them.")
    ] = False,
    cpus_per_gpu: Annotated[
        int | None, typer.Option(min=1, help="Of synergy-profiles: CPU cores per GPU of the servers; 3 by default.")
    ] = None,
    gpu_type: Annotated[str | None, typer.Option(help="Of sia: the type of GPU, where the file has several.")] = None,
) -> None:
    """Convert published data into a file that the library reads; what was left out or filled in is counted."""
    from instances.files import write_whole
    from instances.schema import nearest
    from validation.outputs import try_file

    known = readers()
    if form not in known:
        raise StudyError(f"unknown format {form!r}{nearest(form, known)}, must be one of {', '.join(known)}")
    read, write = known[form]
    given = {"columns": _pairs(column or []), "skip_bad_rows": skip_bad_rows, "gpu_type": gpu_type}
    asked = {name: value for name, value in given.items() if value}
    for name in asked:
        if name not in inspect.signature(read).parameters:
            raise StudyError(f"format {form} has no option --{name.removesuffix('s').replace('_', '-')}")
    if cpus_per_gpu is not None and form != "synergy-profiles":
        raise StudyError(f"format {form} has no option --cpus-per-gpu")
    if output.exists() or output.is_symlink():
        raise StudyError(f"{output} is in the way: choose another file")
    try_file(output)
    interruption.say(lambda: "nothing was written")
    made = read(file, **asked)
    written = write(made, cpus_per_gpu=cpus_per_gpu or 3) if form == "synergy-profiles" else write(made)
    write_whole(output, written)
    for line in _told(made.attrs["reading"], len(made.throughputs) if form == "synergy-profiles" else len(made)):
        say(line)
    say(str(output))


def _pairs(given: list[str]) -> dict[str, str]:
    """``NAME=COLUMN``."""
    for one in given:
        if "=" not in one:
            raise StudyError(f"--column: got {one!r}, must be NAME=COLUMN")
    return {name: column for name, _, column in (one.partition("=") for one in given)}


def _told(reading: Mapping[str, Any], kept: int) -> list[str]:
    """What there is to know of how a file was read."""
    lines = [f"{kept:,} rows from {reading['rows']:,} of {reading['source']}"]
    if reading.get("skipped"):
        lines.append(f"{reading['skipped']:,} rows skipped, the first: {reading['reasons'][0]}")
    lines += [f"{count:,} left out: {why}" for why, count in reading.get("left_out", {}).items()]
    lines += [f"{count:,} of these: {what}" for what, count in reading.get("filled_in", {}).items()]
    if reading.get("repeated"):
        lines.append(f"{reading['repeated']:,} of these have the job_id of one before")
    return lines
