"""The trace of Tiresias (NSDI'19): jobs with model and duration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instances.data import microsoft
from instances.data.lines import PathLike, read_jobs

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_trace"]


def read_trace(path: PathLike) -> pd.DataFrame:
    """The Tiresias trace, or another one with its columns.

    Parameters
    ----------
    path : path
        A file such as ``60_job.csv``, with columns job_id, submit_time, duration, num_gpu, model_name.

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
    return read_jobs(path, {**microsoft.COLUMNS, "model": (("model_name",), str.strip)})
