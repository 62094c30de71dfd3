"""The log of Microsoft's Philly clusters (ATC'19), and the pairs of duration and GPUs that Gavel took from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from instances.base import InstanceError
from instances.data.jobs import finish
from instances.data.lines import (
    MOST_REASONS,
    Column,
    PathLike,
    Reading,
    Source,
    gpus,
    moment,
    number,
    read_cell,
    read_columns,
    read_json,
    reader,
    sniffed,
    text,
)
from instances.schema import quoted
from instances.text import OpenFile

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_distribution", "read_placements", "read_trace"]


@reader
def read_trace(source: PathLike | OpenFile, *, skip_bad_rows: bool = False) -> pd.DataFrame:
    """Read the job log ``cluster_job_log``: JSON, a list of jobs with their attempts.

    A job's duration is the time of all its attempts whose start and end are known, its GPUs are those of the last of
    them, and it is submitted when it was.  Jobs that have no such attempt, or had not ended, are left out.

    Parameters
    ----------
    source : path or open file
    skip_bad_rows : bool
        As in :func:`instances.data.jobs.read_trace`.

    Returns
    -------
    DataFrame
        A job table: ``job_id``, ``submit_time`` (s after the first), ``num_gpus``, ``duration`` (s).

    Raises
    ------
    InstanceError
        When the file is malformed; the message names the job by its number, from 0.
    """
    import pandas as pd

    rows, reading = _jobs(source, skip_bad_rows)
    jobs = pd.DataFrame([{name: value for name, value in row.items() if name != "known"} for row in rows])
    jobs.attrs["reading"] = reading
    attempts, running = jobs["attempts"].to_numpy(int), jobs["running"].to_numpy(bool)
    return finish(
        jobs,
        leave_out={
            "job had not ended": running,
            "job has no attempt with start and end": ~running & (attempts == 0),
            "job used no GPU": jobs["num_gpus"].to_numpy(int) < 1,
        },
        filled_in={"duration is the sum of several attempts": attempts > 1},
    )


def _jobs(source: PathLike | OpenFile, skip_bad_rows: bool) -> tuple[list[dict[str, Any]], Reading]:
    """Return the jobs of the log, and how they were read."""
    head, is_csv, file = sniffed(source)
    if is_csv:
        raise InstanceError(
            f"{file.name}: got {quoted(head)}, must be JSON; a table with a header is of the format jobs"
        )
    content, reading = read_json(file)
    name = reading["source"]
    if not isinstance(content, list):
        raise InstanceError(f"{name}: got {quoted(content)}, must be a list of jobs")
    rows: list[dict[str, Any]] = []
    reasons: list[str] = []
    skipped = 0
    for number_of, entry in enumerate(content):
        try:
            rows.append(_job(entry, f"{name}, job {number_of}"))
        except InstanceError as error:
            if not skip_bad_rows:
                raise
            skipped += 1
            reasons += [str(error)] if len(reasons) < MOST_REASONS else []
    if not rows:
        raise InstanceError(f"{name}: there are no jobs" + (f"; {reasons[0]}" if reasons else ""))
    told: Reading = {**reading, "rows": len(content), "skipped": skipped, "reasons": reasons}
    return rows, told


@reader
def read_placements(source: PathLike | OpenFile, *, skip_bad_rows: bool = False) -> pd.DataFrame:
    """Read the job log as a placement table: a row for each server of each attempt whose start and end are known.

    Parameters
    ----------
    source : path or open file
    skip_bad_rows : bool
        As in :func:`instances.data.jobs.read_trace`.

    Returns
    -------
    DataFrame
        As from :func:`instances.data.placements.read_placements`; times are s after the first start.

    Raises
    ------
    InstanceError
        When the file is malformed; the message names the job by its number, from 0.
    """
    import pandas as pd

    jobs, reading = _jobs(source, skip_bad_rows)
    rows = []
    without = 0
    for job in jobs:
        without += not job["known"]
        for spent, attempt in job["known"]:
            end = moment(attempt["end_time"])
            _gpus(attempt.get("detail"), f"{reading['source']}: job {job['job_id']}: detail")
            rows += [
                (job["job_id"], str(server.get("ip")), len(server["gpus"]), end - spent, end)
                for server in attempt["detail"]
                if server["gpus"]
            ]
    if not rows:
        raise InstanceError(f"{reading['source']}: there are no placements")
    table = pd.DataFrame(rows, columns=["job_id", "server", "gpus", "start", "end"])
    table = table.assign(start=table["start"] - table["start"].min(), end=table["end"] - table["start"].min())
    table.attrs["reading"] = {**reading, "left_out": {"job has no attempt with start and end": without}}
    return table


def _job(entry: Any, where: str) -> dict[str, Any]:
    """Return a job of the log; what is missing of its attempts is no fault of it."""
    if not isinstance(entry, dict):
        raise InstanceError(f"{where}: got {quoted(entry)}, must be a JSON object")
    attempts = entry.get("attempts")
    if not isinstance(attempts, list) or not all(isinstance(attempt, dict) for attempt in attempts):
        raise InstanceError(f"{where}: attempts: got {quoted(attempts)}, must be a list of JSON objects")
    known = []
    for attempt in attempts:
        ends = [attempt.get(side) for side in ("start_time", "end_time")]
        if all(isinstance(end, str) and end not in ("None", "") for end in ends):
            start, end = (read_cell(moment, str(end), f"{where}: attempts") for end in ends)
            if end < start:
                raise InstanceError(f"{where}: attempts: got one that ends before it starts, at {attempt['end_time']}")
            known.append((end - start, attempt))
    return {
        "job_id": read_cell(text, str(entry.get("jobid", "")), f"{where}: jobid"),
        "submit_time": read_cell(moment, str(entry.get("submitted_time")), f"{where}: submitted_time"),
        "duration": float(sum(spent for spent, _ in known)),
        "num_gpus": _gpus(known[-1][1].get("detail"), f"{where}: detail") if known else 0,
        "attempts": len(known),
        "running": bool(attempts) and attempts[-1].get("end_time") in (None, "None", ""),
        "known": known,
    }


def _gpus(detail: Any, where: str) -> int:
    if not isinstance(detail, list) or not all(
        isinstance(server, dict) and isinstance(server.get("gpus"), list) for server in detail
    ):
        raise InstanceError(f"{where}: got {quoted(detail)}, must be a list of servers, each with a list of gpus")
    return sum(len(server["gpus"]) for server in detail)


@reader
def read_distribution(
    source: Source, *, columns: Mapping[str, str] | None = None, skip_bad_rows: bool = False
) -> pd.DataFrame:
    """Pairs of duration and GPUs, such as ``philly_job_distribution.csv``, which say nothing of arrivals.

    Parameters
    ----------
    source : path, open file or DataFrame
        With columns duration_seconds and num_gpus.
    columns, skip_bad_rows
        As in :func:`instances.data.jobs.read_trace`.

    Returns
    -------
    DataFrame
        A job table: ``job_id``, the number of the row, ``submit_time``, 0 s for all, ``num_gpus`` and ``duration`` (s).

    Raises
    ------
    InstanceError
        When a line is malformed; the message names file and line.
    """
    known = {
        "num_gpus": Column(("num_gpus", "num_gpu"), gpus),
        "duration": Column(("duration_seconds", "duration"), number),
    }
    pairs = read_columns(source, known, given=columns or {}, skip_bad_rows=skip_bad_rows)
    jobs = pairs.assign(job_id=[str(row) for row in range(len(pairs))], submit_time=0.0)
    everyone = np.ones(len(jobs), bool)
    return finish(jobs, filled_in={"job is there from the start": everyone})
