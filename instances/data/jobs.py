"""Job tables: a header, and a line for each job.

This is the form that ``optgap convert`` writes, and the traces of Microsoft's clusters, of Tiresias and of
ElasticFlow's authors are tables of this form with other spellings, all of which are read.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict

import numpy as np
from numpy.typing import NDArray

from instances.base import InstanceError
from instances.data.lines import (
    MOST_REASONS,
    Column,
    Source,
    any_text,
    gpus,
    moment,
    named,
    number,
    on_clock,
    positive_whole,
    read_columns,
    read_table,
    reader,
    text,
)
from instances.text import Text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["COLUMNS", "DoubtfulData", "TraceChoice", "draw_first", "finish", "read_jobs", "read_trace", "write"]

COLUMNS: Mapping[str, Column] = {
    "job_id": Column(("job_id", "id"), text),
    "submit_time": Column(("submit_time", "submission_time", "submitted_time", "arrival", "arrival_time"), moment),
    "iterations": Column(("iteration", "num_iteration", "iterations", "steps"), number, optional=True),
    "model": Column(("model_name", "model"), any_text, optional=True),
    "deadline": Column(("ddl", "deadline"), moment, optional=True),
    "batch_size": Column(("batch_size",), positive_whole, optional=True),
    "num_gpus": Column(("num_gpu", "num_gpus", "gpus", "gpu_num", "scale_factor"), gpus),
    "duration": Column(("duration", "run_time"), number),
}
"""Columns of the table, the names that they go by in files, and how a cell is read."""

_ENDS: Mapping[str, Column] = {
    "start": Column(("start_time", "start"), moment),
    "end": Column(("end_time", "finish_time", "finished_time", "end"), moment),
}
"""What a table may tell in place of durations."""

LONG = 30 * 86400.0
"""Half of the jobs of no trace take longer, s."""


class DoubtfulData(UserWarning):
    """Numbers of a table look as if they meant something else."""


class TraceChoice(TypedDict, total=False):
    """The options that every ``from_trace`` that reads a job table takes beside its own.

    ``columns`` and ``skip_bad_rows`` are those of :func:`read_trace`; the window of jobs begins with the first one that
    is submitted at ``time`` (s, on the trace's clock) or later, or anywhere alike where it is not given.
    """

    columns: Mapping[str, str] | None
    skip_bad_rows: bool
    time: float | None


@reader
def read_trace(
    source: Source, *, columns: Mapping[str, str] | None = None, skip_bad_rows: bool = False
) -> pd.DataFrame:
    """Read a job table with whichever of the optional columns it has.

    Parameters
    ----------
    source : path, open file or DataFrame
    columns : mapping, optional
        Names of the result to those of the file, where they are none of the known spellings, such as
        ``{"job_id": "Identifier"}``; ``start`` and ``end`` are names, too.
    skip_bad_rows : bool
        Leave out rows that cannot be read, and count them in ``attrs["reading"]``, instead of refusing the file.

    Returns
    -------
    DataFrame
        ``job_id`` (the number of the row where the file names none), ``submit_time`` (s), ``num_gpus``, ``duration``
        (s; from start to end where the file has these instead), and where the file has them ``iterations``, ``model``
        ("" where it is not known), ``deadline`` (s, on the clock of ``submit_time``) and ``batch_size``; in the file's
        order.  Times that are dates, or count from 1970, are seconds from the first job on.

    Raises
    ------
    InstanceError
        When a line is malformed; the message names file and line.

    Warns
    -----
    DoubtfulData
        When durations look like milliseconds.
    """
    return read_jobs(source, columns=columns, skip_bad_rows=skip_bad_rows)


def read_jobs(
    source: Source | Text,
    known: Mapping[str, Column] = COLUMNS,
    *,
    needs: Sequence[str] = ("submit_time", "num_gpus", "duration"),
    columns: Mapping[str, str] | None = None,
    skip_bad_rows: bool = False,
) -> pd.DataFrame:
    """Read a job table of other columns than :func:`read_trace` does.

    Parameters
    ----------
    source : path, open file or DataFrame
    known : mapping
        What is read where it is there.
    needs : sequence of str
        What the table is refused without.
    columns, skip_bad_rows
        As in :func:`read_trace`.

    Raises
    ------
    InstanceError
        When a line is malformed; the message names file and line.
    """
    table, given = read_table(source), columns or {}
    known = {name: column._replace(optional=name not in needs) for name, column in known.items()}
    times = {"duration": COLUMNS["duration"], **_ENDS}
    optional = {name: column._replace(optional=True) for name, column in times.items()}
    found = named(table, optional, {name: column for name, column in given.items() if name in times})
    if _ENDS.keys() <= given.keys() or found.keys() == _ENDS.keys():
        del known["duration"]
        known |= _ENDS
    jobs = read_columns(table, known, given=given, skip_bad_rows=skip_bad_rows)
    if "submit_time" in jobs:
        jobs = on_clock(jobs, "submit_time", ("deadline", *_ENDS))
    if "start" in jobs:
        jobs = _lasting(jobs, skip_bad_rows)
    if "job_id" not in jobs:
        jobs.insert(0, "job_id", [str(row) for row in range(len(jobs))])
        jobs.attrs["reading"]["filled_in"] = {"job_id is the number of the row": len(jobs)}
    _doubt(jobs)
    return jobs


def _lasting(jobs: pd.DataFrame, skip_bad_rows: bool) -> pd.DataFrame:
    """Return a table with durations in place of starts and ends."""
    jobs = jobs.assign(duration=jobs["end"] - jobs["start"]).drop(columns=[*_ENDS])
    backwards = jobs["duration"].to_numpy(float) < 0
    if backwards.any():
        reading = jobs.attrs["reading"]
        reason = f"{reading['source']}: job {int(backwards.argmax())}, counted from 0, ends before it starts"
        if not skip_bad_rows or backwards.all():
            raise InstanceError(reason)
        reading["skipped"] += int(backwards.sum())
        reading["reasons"] = [*reading["reasons"], reason][:MOST_REASONS]
        jobs = jobs[~backwards].reset_index(drop=True)
    return jobs


def _doubt(jobs: pd.DataFrame) -> None:
    """Point out durations that look like milliseconds."""
    if "duration" not in jobs or not (middle := float(jobs["duration"].median())) > LONG:
        return
    reading = jobs.attrs["reading"]
    doubt = f"half of the jobs take longer than {middle / 86400:,.0f} days: are their durations milliseconds?"
    reading["doubts"] = [doubt]
    warnings.warn(f"{reading['source']}: {doubt}", DoubtfulData, stacklevel=4)


def finish(
    jobs: pd.DataFrame,
    *,
    leave_out: Mapping[str, NDArray[np.bool_]] | None = None,
    filled_in: Mapping[str, NDArray[np.bool_]] | None = None,
) -> pd.DataFrame:
    """Make a job table of the rows of a log: those that are such jobs, in order of submission, from the first one on.

    Parameters
    ----------
    jobs : DataFrame
        Columns of a job table, and how they were read.
    leave_out, filled_in : mapping, optional
        Why rows are left out, or what was put in their place of what the log does not say, to which rows that is.  A
        row that is left out counts for its first reason.

    Raises
    ------
    InstanceError
        When no row is left.
    """
    jobs = on_clock(jobs, "submit_time", ("deadline",))
    reading = jobs.attrs["reading"]
    kept = np.ones(len(jobs), bool)
    reading["left_out"] = {}
    for why, rows in (leave_out or {}).items():
        if (kept & rows).any():
            reading["left_out"][why] = int((kept & rows).sum())
        kept &= ~rows
    if not kept.any():
        raise InstanceError(f"{reading['source']}: there are no jobs; left out: {', '.join(reading['left_out'])}")
    reading["filled_in"] = {what: int(rows[kept].sum()) for what, rows in (filled_in or {}).items() if rows[kept].any()}
    table = jobs[kept].sort_values("submit_time", kind="stable")
    start = table["submit_time"].min()
    shifted = {name: table[name] - start for name in ("submit_time", "deadline") if name in table}
    table = table.assign(**shifted).reset_index(drop=True)
    reading["repeated"] = int(table["job_id"].duplicated().sum())
    table.attrs["reading"] = reading
    table = table[[name for name in COLUMNS if name in table]]
    _doubt(table)
    return table


def write(jobs: pd.DataFrame) -> str:
    """Write a job table as the CSV that :func:`read_trace` reads."""
    return jobs.rename(columns={name: column.names[0] for name, column in COLUMNS.items()}).to_csv(index=False)


def draw_first(rng: np.random.Generator, jobs: pd.DataFrame, num_jobs: int, time: float | None = None) -> int:
    """Row of a job table at which a window of so many jobs begins.

    Parameters
    ----------
    rng : Generator
        Draws the row where no time is given.
    jobs : DataFrame
    num_jobs : int
    time : float, optional
        The window begins with the first row, in the file's order, that is submitted then or later, s.

    Raises
    ------
    InstanceError
        When the table has fewer jobs, or fewer from that row on.
    """
    if not 1 <= num_jobs <= len(jobs):
        name = jobs.attrs["reading"]["source"]
        raise InstanceError(f"num_jobs: got {num_jobs}, must be 1 to {len(jobs)}, the number of jobs in {name}")
    if time is None:
        return int(rng.integers(0, len(jobs) - num_jobs + 1))
    later = jobs["submit_time"].to_numpy(float) >= time
    first = int(later.argmax()) if later.any() else len(jobs)
    if first + num_jobs > len(jobs):
        raise InstanceError(
            f"time: got {time:g}, of which on there are {len(jobs) - first} jobs in {jobs.attrs['reading']['source']}, "
            f"must be {num_jobs}"
        )
    return first
