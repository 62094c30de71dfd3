"""Jobs for replays: traces in any of their forms as one table, and arrivals at random.

The table is that of :mod:`instances.data.jobs`.  Gavel's traces become such a table too, with ``priority`` as a further
column; they tell steps and no durations.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from instances.base import InstanceError
from instances.data import gavel
from instances.data.jobs import read_trace
from instances.data.lines import Source
from instances.schema import FloatArray, IntArray
from validation.errors import ReplayError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["HOUR", "durations", "in_order", "poisson", "rate_at", "read_jobs", "reader_of", "scale_factors"]

HOUR = 3600.0
"""Length of an hour, s."""


def reader_of(trace: Source) -> Callable[..., pd.DataFrame]:
    """Return the reader of a trace: Gavel's tab-separated form where its name ends in ``.trace``, else a job table."""
    of_gavel = isinstance(trace, (str, os.PathLike)) and os.fspath(trace).endswith(".trace")
    return gavel.read_trace if of_gavel else read_trace


def read_jobs(trace: Source, **options: Any) -> pd.DataFrame:
    """Return the jobs of a trace in order of submission, on a clock that begins with the first.

    Parameters
    ----------
    trace : path, open file or DataFrame
        A job table, or a trace of Gavel's (:func:`reader_of`).
    **options
        Of its reader: ``skip_bad_rows``, and of job tables ``columns``.

    Raises
    ------
    InstanceError
        When a line is malformed, or there is no job.
    """
    read = reader_of(trace)
    jobs = read(trace, **options)
    return in_order(_of_gavel(jobs) if read is gavel.read_trace else jobs)


def _of_gavel(jobs: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    table = pd.DataFrame(
        {
            "job_id": [f"{number}" for number in range(len(jobs))],
            "submit_time": jobs["arrival"],
            "iterations": jobs["steps"].astype(float),
            "model": jobs["model"],
            "deadline": jobs["arrival"] + jobs["slo"],
            "num_gpus": jobs["scale_factor"],
            "duration": jobs.get("duration", np.nan),
            "priority": jobs["priority"],
        }
    )
    table.attrs["reading"] = jobs.attrs.get("reading", {})
    return table


def in_order(jobs: pd.DataFrame) -> pd.DataFrame:
    """Return a job table in order of submission, its clock beginning with the first job.

    Raises
    ------
    InstanceError
        When there is no job.
    """
    if not len(jobs):
        raise InstanceError(f"{jobs.attrs.get('reading', {}).get('source', 'the table')}: there are no jobs")
    start = jobs["submit_time"].min()
    shifted = {name: jobs[name] - start for name in ("submit_time", "deadline") if name in jobs}
    return jobs.assign(**shifted).sort_values("submit_time", kind="stable").reset_index(drop=True)


def poisson(rng: np.random.Generator, num_jobs: int, per_hour: float) -> FloatArray:
    """Draw arrivals of a Poisson process of so many jobs an hour, (n,) float, s; the first at 0.

    Raises
    ------
    ReplayError
        When the rate is not a positive number, or there is no job.
    """
    if not 0 < per_hour < np.inf:
        raise ReplayError(f"per_hour: got {per_hour}, must be a number of jobs, above 0")
    if num_jobs < 1:
        raise ReplayError(f"num_jobs: got {num_jobs}, must be at least 1")
    return np.concatenate([[0.0], np.cumsum(rng.exponential(HOUR / per_hour, num_jobs - 1))])


def rate_at(load: float, gpu_seconds: FloatArray, num_gpus: float) -> float:
    """Return the jobs an hour at which jobs of so many GPU-seconds on average ask for a part ``load`` of the GPUs."""
    if not 0 < load < np.inf:
        raise ReplayError(f"load: got {load}, must be above 0")
    return load * num_gpus * HOUR / float(np.mean(gpu_seconds))


def durations(rng: np.random.Generator, num_jobs: int) -> FloatArray:
    """Draw durations on the fastest type as Gavel does, after Gandiva, (n,) float, s (section 7.1).

    10^x minutes, x uniform from 1.5 to 3 for 80% of the jobs and from 3 to 4 for the others.
    """
    short = rng.random(num_jobs) < 0.8
    exponent = np.where(short, rng.uniform(1.5, 3, num_jobs), rng.uniform(3, 4, num_jobs))
    drawn: FloatArray = 60.0 * 10**exponent
    return drawn


def scale_factors(rng: np.random.Generator, num_jobs: int) -> IntArray:
    """Draw workers as in Gavel's multi-worker traces (7.1), (n,) int: 1 (70%), 2 or 4 (25%), 8 (5%)."""
    return rng.choice([1, 2, 4, 8], num_jobs, p=[0.7, 0.125, 0.125, 0.05])
