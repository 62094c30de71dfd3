"""Jobs from real input: a stretch of a trace as the fields that the problems of ElasticFlow share."""

from __future__ import annotations

from typing import Any, TypedDict

import numpy as np

from instances.base import InstanceError
from instances.data import microsoft
from instances.data.elasticflow import read_throughputs, read_trace, throughput_curve
from instances.data.lines import PathLike, read_header
from instances.schema import LARGEST

__all__ = ["DEADLINE_FACTORS", "JobChoice", "jobs_from_trace"]

DEADLINE_FACTORS = (0.5, 1.5)
"""The paper draws each deadline uniformly from this range times the job's duration."""


class JobChoice(TypedDict, total=False):
    """The keyword arguments of :func:`jobs_from_trace` that every ``from_trace`` takes beside the number of jobs."""

    num_gpus: int
    slot_seconds: float
    draw_deadlines: bool
    interpolate: bool


def jobs_from_trace(
    rng: np.random.Generator | int,
    *,
    throughputs: PathLike,
    trace: PathLike,
    num_jobs: int = 10,
    num_gpus: int = 16,
    slot_seconds: float = 3600.0,
    draw_deadlines: bool = False,
    interpolate: bool = True,
) -> dict[str, Any]:
    """Consecutive jobs of a trace, as if all had been submitted now.

    Rounding: a slot is ``slot_seconds`` long, and a job's throughput in a slot is that many times
    its iterations/s, unrounded.  A deadline is rounded down to whole slots, so that a plan that
    meets it meets the real one; but a job has one slot at least.  Iterations are taken as they are.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed: it chooses the stretch of the trace, and draws what the
        trace does not say.
    throughputs : path
        Folder of throughput tables for :func:`instances.data.elasticflow.read_throughputs`.
    trace : path
        A trace of the authors (with ``model_name``), or one of Microsoft's.  For the latter, each
        job's model and batch size are drawn uniformly from the tables, and it has the iterations
        that this model does in the job's duration on its GPUs (or on the most that were measured,
        if those are fewer); deadlines are drawn.
    num_jobs : int
        Number of jobs, n.
    num_gpus : int
        GPUs of the cluster.
    slot_seconds : float
        Length of a slot, s.
    draw_deadlines : bool
        Draw deadlines as the paper does, uniformly from 0.5 to 1.5 times the job's duration,
        instead of taking the trace's.
    interpolate : bool
        What happens between measured counts of GPUs; see :func:`instances.data.elasticflow.throughput_curve`.

    Returns
    -------
    dict
        The fields ``num_gpus``, ``iterations``, ``deadlines`` (slots) and ``throughputs``
        (iterations per slot).

    Raises
    ------
    InstanceError
        When a file is malformed, the trace has too few jobs, or there is no table for a job.
    """
    if not slot_seconds > 0:
        raise InstanceError(f"slot_seconds: got {slot_seconds!r}, must be positive")
    rng = np.random.default_rng(rng)
    tables = read_throughputs(throughputs)
    with_models = "model_name" in read_header(trace)
    jobs = read_trace(trace) if with_models else microsoft.read_trace(trace)
    if not 1 <= num_jobs <= len(jobs):
        raise InstanceError(f"num_jobs: got {num_jobs}, must be 1 to {len(jobs)}, the number of jobs in {trace}")
    first = int(rng.integers(0, len(jobs) - num_jobs + 1))
    jobs = jobs.iloc[first : first + num_jobs]
    durations = jobs["duration"].to_numpy(float)
    if with_models:
        kinds = list(zip(jobs["model"], jobs["batch_size"], strict=True))
        missing = [kind for kind in kinds if kind not in tables.index]
        if missing:
            raise InstanceError(
                f"{throughputs}: there is no throughput of {missing[0][0]} at batch size {missing[0][1]}"
            )
    else:
        kinds = [tables.index[i] for i in rng.integers(0, len(tables), num_jobs)]
    measured = [tables.loc[kind].to_dict() for kind in kinds]
    if with_models:
        iterations = jobs["iterations"].to_numpy(float)
    else:
        held = jobs["num_gpus"].to_numpy(int)
        iterations = durations * [
            throughput_curve(row, min(int(gpus), max(row)), interpolate=False)[-1]
            for row, gpus in zip(measured, held, strict=True)
        ]
    if with_models and not draw_deadlines:
        seconds = (jobs["deadline"] - jobs["submit_time"]).to_numpy(float)
    else:
        seconds = durations * rng.uniform(*DEADLINE_FACTORS, num_jobs)
    return {
        "num_gpus": num_gpus,
        "iterations": iterations,
        "deadlines": np.clip(np.floor(seconds / slot_seconds), 1, LARGEST + 1).astype(np.int64),
        "throughputs": slot_seconds
        * np.array([throughput_curve(row, num_gpus, interpolate=interpolate) for row in measured]),
    }
