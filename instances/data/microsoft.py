"""Raw traces of Microsoft's clusters: jobs without model or deadline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instances.data.lines import PathLike, gpus, number, read_jobs, text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["COLUMNS", "read_trace"]

COLUMNS = {
    "job_id": (("job_id",), text),
    "submit_time": (("submission_time", "submit_time"), number),
    "duration": (("duration",), number),
    "num_gpus": (("num_gpu",), gpus),
}
"""Columns of the table, the names that they go by in files, and how a cell is read."""


def read_trace(path: PathLike) -> pd.DataFrame:
    """A raw trace of one of Microsoft's clusters.

    Parameters
    ----------
    path : path
        A file such as ``cluster02.csv``, with columns job_id, submission_time, duration, num_gpu.

    Returns
    -------
    DataFrame
        ``job_id``, ``submit_time`` (s), ``duration`` (s), ``num_gpus``; in the file's order.

    Raises
    ------
    InstanceError
        When a line is malformed; the message names file and line.
    """
    return read_jobs(path, COLUMNS)
