"""The job logs of SenseTime's Helios clusters (SC'21)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from instances.data.jobs import finish
from instances.data.lines import Column, Source, moment, number, read_columns, reader, text, whole

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_trace"]

_COLUMNS = {
    "job_id": Column(("job_id",), text),
    "submit_time": Column(("submit_time",), moment),
    "num_gpus": Column(("gpu_num",), whole),
    "duration": Column(("duration",), number),
}


@reader
def read_trace(
    source: Source, *, columns: Mapping[str, str] | None = None, skip_bad_rows: bool = False
) -> pd.DataFrame:
    """Read the log of a cluster, ``cluster_log.csv``; jobs that asked for no GPU are left out.

    Parameters
    ----------
    source : path, open file or DataFrame
        With columns job_id, submit_time (a date and time), gpu_num and duration (s).
    columns, skip_bad_rows
        As in :func:`instances.data.jobs.read_trace`.

    Returns
    -------
    DataFrame
        A job table: ``job_id``, ``submit_time`` (s after the first), ``num_gpus``, ``duration`` (s), whatever the job's
        end was.

    Raises
    ------
    InstanceError
        When a line is malformed; the message names file and line.
    """
    jobs = read_columns(source, _COLUMNS, given=columns or {}, skip_bad_rows=skip_bad_rows)
    return finish(jobs, leave_out={"job asked for no GPU": jobs["num_gpus"].to_numpy(int) < 1})
