"""Jobs from real input: a stretch of a trace as the fields that the problems of ElasticFlow share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from instances.base import InstanceError
from instances.data.elasticflow import read_throughputs, throughput_curve
from instances.data.jobs import TraceChoice, draw_first, read_trace
from instances.data.lines import Source
from instances.data.origin import origin
from instances.schema import LARGEST

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["DEADLINE_FACTORS", "JobChoice", "jobs_from_trace"]

DEADLINE_FACTORS = (0.5, 1.5)
"""The paper draws each deadline uniformly from this range times the job's duration."""


class JobChoice(TraceChoice, total=False):
    """The keyword arguments of :func:`jobs_from_trace` that every ``from_trace`` takes beside the number of jobs."""

    num_gpus: int
    slot_seconds: float
    draw_deadlines: bool
    draw_models: bool
    interpolate: bool


def jobs_from_trace(
    rng: np.random.Generator | int,
    *,
    throughputs: Source,
    trace: Source,
    num_jobs: int = 10,
    num_gpus: int = 16,
    slot_seconds: float = 3600.0,
    draw_deadlines: bool = False,
    draw_models: bool = False,
    interpolate: bool = True,
    columns: Mapping[str, str] | None = None,
    skip_bad_rows: bool = False,
    time: float | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Consecutive jobs of a trace, as if all had been submitted now.

    Rounding: a slot is ``slot_seconds`` long, and a job's throughput in a slot is that many times
    its iterations/s, unrounded.  A deadline is rounded down to whole slots, so that a plan that
    meets it meets the real one; but a job has one slot at least.  Iterations are taken as they are.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed: it chooses the stretch of the trace, and draws what the
        trace does not say.
    throughputs : path, open file or DataFrame
        Throughput tables for :func:`instances.data.elasticflow.read_throughputs`, mostly a folder.
    trace : path, open file or DataFrame
        A job table for :func:`instances.data.jobs.read_trace`, such as a trace of the authors, or one of
        Microsoft's.  What it does not have is filled in: each job's model, or its batch size, is drawn uniformly
        from the tables; it has the iterations that this model does in the job's duration on its GPUs (or on
        the most that were measured, if those are fewer), also where the trace counts iterations without
        saying of which batch size; deadlines are drawn.
    num_jobs : int
        Number of jobs, n.
    num_gpus : int
        GPUs of the cluster.
    slot_seconds : float
        Length of a slot, s.
    draw_deadlines : bool
        Draw deadlines as the paper does, uniformly from 0.5 to 1.5 times the job's duration,
        instead of taking the trace's.
    draw_models : bool
        Take no notice of the trace's models, whose batch sizes and iterations mean nothing to others: draw them.
    interpolate : bool
        What happens between measured counts of GPUs; see :func:`instances.data.elasticflow.throughput_curve`.
    columns, skip_bad_rows, time
        As in :class:`instances.data.jobs.TraceChoice`.

    Returns
    -------
    fields : dict
        The fields ``num_gpus``, ``iterations``, ``deadlines`` (slots) and ``throughputs``
        (iterations per slot).
    origin : dict
        Where they are from, with what was filled in and rounded, for ``with_origin``.

    Raises
    ------
    InstanceError
        When a file is malformed, the trace has too few jobs, or there is no table for a job.
    """
    if not slot_seconds > 0:
        raise InstanceError(f"slot_seconds: got {slot_seconds!r}, must be positive")
    rng = np.random.default_rng(rng)
    tables = read_throughputs(throughputs)
    arriving = read_trace(trace, columns=columns, skip_bad_rows=skip_bad_rows)
    if draw_models:
        arriving = arriving.drop(columns=["model", "batch_size", "iterations"], errors="ignore")
    first = draw_first(rng, arriving, num_jobs, time)
    jobs = arriving.iloc[first : first + num_jobs]
    repairs: dict[str, int] = {}
    durations = jobs["duration"].to_numpy(float)
    kinds = _kinds(rng, jobs, tables, repairs)
    rows: dict[Any, dict[Any, float]] = tables.to_dict("index")
    measured = [rows[kind] for kind in kinds]
    held = jobs["num_gpus"].to_numpy(int)
    if "iterations" in jobs and "batch_size" in jobs:
        iterations = jobs["iterations"].to_numpy(float)
    else:
        most = np.array([max(row) for row in measured])
        repairs["iterations are what the model does in the job's duration on its GPUs"] = num_jobs
        repairs["GPUs beyond the most measured, of which the iterations are taken"] = int((held > most).sum())
        iterations = durations * [
            throughput_curve(row, gpus, interpolate=False)[-1]
            for row, gpus in zip(measured, np.minimum(held, most).tolist(), strict=True)
        ]
    if "deadline" in jobs and not draw_deadlines:
        seconds = (jobs["deadline"] - jobs["submit_time"]).to_numpy(float)
    else:
        repairs["deadline is drawn"] = num_jobs
        seconds = durations * rng.uniform(*DEADLINE_FACTORS, num_jobs)
    slots = np.floor(seconds / slot_seconds)
    repairs["deadline is lengthened to one slot"] = int((seconds < slot_seconds).sum())
    repairs["deadline is shortened to whole slots"] = int(((slots >= 1) & (slots * slot_seconds < seconds)).sum())
    fields = {
        "num_gpus": num_gpus,
        "iterations": iterations,
        "deadlines": np.clip(slots, 1, LARGEST + 1).astype(np.int64),
        "throughputs": slot_seconds
        * np.array([throughput_curve(row, num_gpus, interpolate=interpolate) for row in measured]),
    }
    return fields, origin(
        "instances.elasticflow.traces.jobs_from_trace",
        throughputs=tables.attrs,
        trace=arriving.attrs,
        rows=np.arange(first, first + num_jobs),
        jobs=jobs["job_id"].tolist(),
        repairs=repairs,
        options={
            "num_jobs": num_jobs,
            "num_gpus": num_gpus,
            "slot_seconds": slot_seconds,
            "draw_deadlines": draw_deadlines,
            "draw_models": draw_models,
            "interpolate": interpolate,
            "time": time,
        },
    )


def _kinds(
    rng: np.random.Generator, jobs: pd.DataFrame, tables: pd.DataFrame, repairs: dict[str, int]
) -> list[tuple[str, int]]:
    """Return the model and batch size of each job, drawn where the trace does not say."""
    known: list[tuple[str, int]] = list(tables.index)
    models = jobs["model"].tolist() if "model" in jobs else [""] * len(jobs)
    if not any(models):
        repairs["model and batch size are drawn"] = len(jobs)
        return [known[i] for i in rng.integers(0, len(known), len(jobs))]
    sizes = jobs["batch_size"].tolist() if "batch_size" in jobs else [None] * len(jobs)
    kinds = []
    for model, size in zip(models, sizes, strict=True):
        if model and size is not None:
            found = [(model, size)] if (model, size) in tables.index else []
        else:
            what = "batch size is drawn" if model else "model and batch size are drawn"
            repairs[what] = repairs.get(what, 0) + 1
            found = [kind for kind in known if model in ("", kind[0])]
        if not found:
            raise InstanceError(_missing(model, size, tables))
        kinds.append(found[0] if len(found) == 1 else found[int(rng.integers(len(found)))])
    return kinds


def _missing(model: str, size: int | None, tables: pd.DataFrame) -> str:
    """Advise on what to give where there are no throughputs of a job."""
    name = tables.attrs["reading"]["source"]
    batch = "" if size is None else f" at batch size {size}"
    sizes = [known for one, known in tables.index if one == model]
    has = f"of batch sizes {', '.join(map(str, sizes))}" if sizes else f"of {', '.join(dict(list(tables.index)))}"
    return (
        f"{name}: there is no throughput of {model}{batch}, only {has}: give a table {model}.csv with a line for it, "
        "or have models drawn (draw_models=True, in the shell --reader draw_models=true)"
    )
