"""Raw traces of Microsoft's clusters: jobs without model or deadline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from instances.data import jobs
from instances.data.lines import Source, reader

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_trace"]

_COLUMNS = {name: jobs.COLUMNS[name] for name in ("job_id", "submit_time", "duration", "num_gpus")}


@reader
def read_trace(
    source: Source, *, columns: Mapping[str, str] | None = None, skip_bad_rows: bool = False
) -> pd.DataFrame:
    """Read a raw trace of one of Microsoft's clusters.

    Parameters
    ----------
    source : path, open file or DataFrame
        A file such as ``cluster02.csv``, with columns job_id, submission_time, duration, num_gpu.
    columns, skip_bad_rows
        As in :func:`instances.data.jobs.read_trace`.

    Returns
    -------
    DataFrame
        ``job_id``, ``submit_time`` (s), ``duration`` (s), ``num_gpus``; in the file's order.

    Raises
    ------
    InstanceError
        When a line is malformed; the message names file and line.
    """
    return jobs.read_jobs(source, _COLUMNS, columns=columns, skip_bad_rows=skip_bad_rows)
