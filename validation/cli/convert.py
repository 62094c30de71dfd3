"""The command ``convert``: published data as files that the library reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from validation.cli import interruption
from validation.cli.app import AsJson, app, say, say_json
from validation.errors import StudyError
from validation.reader_options import lacking, pairs, parameters, typed
from validation.sources import told

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["convert", "readers"]


def readers() -> dict[str, tuple[Callable[..., Any], Callable[..., str]]]:
    """Return, for each format, its reader and how what it gives is written."""
    from instances.data import alibaba, chronus, helios, jobs, philly, placements, sia, synergy

    return {
        "jobs": (jobs.read_trace, jobs.write),
        "philly": (philly.read_trace, jobs.write),
        "philly-placements": (philly.read_placements, placements.write),
        "philly-distribution": (philly.read_distribution, jobs.write),
        "helios": (helios.read_trace, jobs.write),
        "openb": (alibaba.read_trace, jobs.write),
        "openb-placements": (alibaba.read_placements, placements.write),
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
            autocompletion=lambda incomplete: [name for name in readers() if name.startswith(incomplete)],
            help="Of the file, as docs/data.md lists them: jobs, "
            "philly, helios, openb, chronus, sia, synergy-profiles, ...",
        ),
    ],
    file: Annotated[Path, typer.Argument(help="What was published: a file, which may be a gzip, or a folder.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="File to write.")],
    reader: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=VALUE or NAME.ENTRY=VALUE: how the file is read, parameters of the format's reader, such as "
            "skip_bad_rows=true, columns.job_id=JobID or gpu_type=rtx; those of writing, such as cpus_per_gpu=3."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Convert published data into a file that the library reads. What was left out or filled in is counted."""
    from instances.files import write_whole
    from instances.schema import nearest
    from validation.outputs import try_file

    known = readers()
    if form not in known:
        raise StudyError(f"unknown format {form!r}{nearest(form, known)}, must be one of {', '.join(known)}")
    read, write = known[form]
    of_writing = parameters(write)
    asked = typed(pairs(reader or []), parameters(read) | of_writing, f"format {form}")
    if output.exists() or output.is_symlink():
        raise StudyError(f"{output} is in the way: choose another file")
    try_file(output)
    of_reading = {name: value for name, value in asked.items() if name not in of_writing}
    if missing := lacking(read, file, **of_reading):
        raise StudyError(f"format {form}: missing a required argument: {missing!r}: give it as --reader NAME=VALUE")
    interruption.say(lambda: "nothing was written")
    made = read(file, **of_reading)
    written = write(made, **{name: value for name, value in asked.items() if name in of_writing})
    write_whole(output, written)
    reading, kept = made.attrs["reading"], len(made.throughputs) if form == "synergy-profiles" else len(made)
    if as_json:
        say_json({"file": str(output), "rows": kept, "reading": reading})
        return
    for line in [f"{kept:,} rows from {reading['rows']:,} of {reading['source']}", *told(reading)]:
        say(line)
    say(str(output))
