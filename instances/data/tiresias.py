"""The trace of Tiresias (NSDI'19): jobs with model and duration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from instances.data import jobs
from instances.data.lines import Source, read_columns, reader

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_trace"]

_COLUMNS = {
    **{name: jobs.COLUMNS[name] for name in ("job_id", "submit_time", "duration", "num_gpus")},
    "model": jobs.COLUMNS["model"]._replace(optional=False),
}


@reader
def read_trace(
    source: Source, *, columns: Mapping[str, str] | None = None, skip_bad_rows: bool = False
) -> pd.DataFrame:
    """Read the Tiresias trace, or another one with its columns.

    Parameters
    ----------
    source : path, open file or DataFrame
        A file such as ``60_job.csv``, with columns job_id, submit_time, duration, num_gpu, model_name.
    columns, skip_bad_rows
        As in :func:`instances.data.jobs.read_trace`.

    Returns
    -------
    DataFrame
        ``job_id``, ``submit_time`` (s), ``duration`` (s), ``num_gpus``, ``model``; in the file's
        order.

    Raises
    ------
    InstanceError
        When a line is malformed; the message names file and line.
    """
    return read_columns(source, _COLUMNS, given=columns or {}, skip_bad_rows=skip_bad_rows)
