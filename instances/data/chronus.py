"""The traces of Chronus (SoCC'21): jobs with models and expected times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from instances.data import jobs
from instances.data.lines import CellReader, Column, Source, number, read_columns, reader, whole

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_trace"]


class _First(CellReader):
    """The first of several numbers with dashes between them."""

    def __call__(self, cell: str) -> float:
        return number(cell.split("-")[0])


_COLUMNS = {
    **{name: jobs.COLUMNS[name] for name in ("job_id", "submit_time", "iterations", "model", "duration")},
    "num_gpus": Column(("num_gpu",), whole),
    "deadline": Column(("expect_time_list",), _First()),
    "best_effort": Column(("best_effort",), whole),
}


@reader
def read_trace(
    source: Source, *, columns: Mapping[str, str] | None = None, skip_bad_rows: bool = False
) -> pd.DataFrame:
    """Read a trace such as ``trace_job_Philly_SLO.csv``; best-effort jobs, which have no deadline, are left out.

    A job's deadline is its submission plus the first of its expected times.  Jobs of no GPU are left out, as by
    the authors' simulator.

    Parameters
    ----------
    source : path, open file or DataFrame
        With columns job_id, submit_time (s), num_gpu, duration (s), iterations, model_name, expect_time_list and
        best_effort.
    columns, skip_bad_rows
        As in :func:`instances.data.jobs.read_trace`.

    Returns
    -------
    DataFrame
        A job table: ``job_id``, ``submit_time`` (s after the first), ``iterations``, ``model``, ``deadline`` (s),
        ``num_gpus``, ``duration`` (s).

    Raises
    ------
    InstanceError
        When a line is malformed; the message names file and line.
    """
    found = read_columns(source, _COLUMNS, given=columns or {}, skip_bad_rows=skip_bad_rows)
    return jobs.finish(
        found.assign(deadline=found["deadline"] + found["submit_time"]),
        leave_out={
            "job asked for no GPU": found["num_gpus"].to_numpy(int) < 1,
            "best-effort job, without a deadline": found["best_effort"].to_numpy(int) > 0,
        },
    )
