"""Real input: throughput tables, the authors' job traces, and the Microsoft traces.

The readers return pandas DataFrames in one spelling, whatever the file's own; a malformed line is
an error that names file and line.  :func:`jobs_from_trace` turns a stretch of a trace into the
fields that the problems of ElasticFlow share.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from instances.base import FloatArray, InstanceError

if TYPE_CHECKING:
    import pandas as pd

PathLike = str | os.PathLike[str]

DEADLINE_FACTORS = (0.5, 1.5)
"""The paper draws each deadline uniformly from this range times the job's duration."""


def read_throughputs(folder: PathLike) -> pd.DataFrame:
    """Throughput tables: one file ``<model>.csv`` for each model.

    A file has the header ``global_batch_size,1,2,4,...`` (numbers of GPUs) and a line for each
    batch size with the measured iterations/s.  Cells that are empty, ``nan`` or zero were not
    measured, or the job cannot run so.

    Parameters
    ----------
    folder : path
        Folder of the tables, such as ``throughputs_A100``.

    Returns
    -------
    DataFrame
        One row for each (model, batch_size), its index, and one column for each number of GPUs;
        iterations/s, NaN where not measured.

    Raises
    ------
    InstanceError
        When there is no table, or a line is malformed; the message names file and line.
    """
    import pandas as pd

    paths = sorted(Path(folder).glob("*.csv"))
    if not paths:
        raise InstanceError(f"{folder}: there are no throughput tables (*.csv)")
    rows: dict[tuple[str, int], dict[int, float]] = {}
    for path in paths:
        for line, cells in _lines(path, ("global_batch_size",)):
            where = f"{path}, line {line}"
            batch_size = _whole(cells.pop("global_batch_size"), f"{where}: global_batch_size", minimum=1)
            if (path.stem, batch_size) in rows:
                raise InstanceError(f"{where}: batch size {batch_size} is there twice")
            rows[path.stem, batch_size] = {
                _whole(gpus, f"{path}, line 1: number of GPUs", minimum=1): _throughput(cell, f"{where}: {gpus} GPUs")
                for gpus, cell in cells.items()
            }
    table = pd.DataFrame.from_dict(rows, orient="index")
    table.index = pd.MultiIndex.from_tuples(rows, names=["model", "batch_size"])
    return table[sorted(table.columns)]


def read_trace(path: PathLike) -> pd.DataFrame:
    """A trace of the authors: jobs with model, iterations and deadline.

    Both spellings of the header are read: ``ddl``, ``iteration``, ``submit_time`` of the authors'
    repository, and ``deadline``, ``num_iteration``, ``submission_time`` of Microsoft's.  Other
    columns are left out.

    Parameters
    ----------
    path : path
        A file such as ``philly_103959.csv``.

    Returns
    -------
    DataFrame
        ``job_id``, ``submit_time`` (s), ``iterations``, ``model``, ``deadline`` (s, on the clock
        of ``submit_time``), ``batch_size``, ``num_gpus``, ``duration`` (s); in the file's order.

    Raises
    ------
    InstanceError
        When a line is malformed; the message names file and line.
    """
    return _jobs(
        path,
        {
            "job_id": (("job_id",), _text),
            "submit_time": (("submit_time", "submission_time"), _number),
            "iterations": (("iteration", "num_iteration"), _number),
            "model": (("model_name",), _text),
            "deadline": (("ddl", "deadline"), _number),
            "batch_size": (("batch_size",), _positive),
            "num_gpus": (("num_gpu",), _positive),
            "duration": (("duration",), _number),
        },
    )


def read_microsoft_trace(path: PathLike) -> pd.DataFrame:
    """A raw trace of one of Microsoft's clusters: jobs without model or deadline.

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
    return _jobs(
        path,
        {
            "job_id": (("job_id",), _text),
            "submit_time": (("submission_time", "submit_time"), _number),
            "duration": (("duration",), _number),
            "num_gpus": (("num_gpu",), _positive),
        },
    )


def throughput_curve(measured: Mapping[int, float], num_gpus: int, *, interpolate: bool = True) -> FloatArray:
    """Throughput at 0 to ``num_gpus`` GPUs from a row of a throughput table.

    Parameters
    ----------
    measured : mapping of int to float
        Number of GPUs to iterations/s, NaN where not measured; a row of :func:`read_throughputs`.
    num_gpus : int
        Last point of the curve.
    interpolate : bool
        Whether counts between two measured ones lie on the line between them; otherwise the job
        runs at the next lower measured count and leaves the other GPUs idle, as the system does,
        which gives jobs powers of two.

    Returns
    -------
    (num_gpus + 1,) float
        Iterations/s: 0 below the lowest measured count, and constant beyond the highest.

    Raises
    ------
    InstanceError
        When nothing is measured.
    """
    points = sorted((gpus, rate) for gpus, rate in measured.items() if not math.isnan(rate))
    if not points:
        raise InstanceError("measured: got no throughput, must have at least one")
    levels, rates = (np.array(values, float) for values in zip(*points, strict=True))
    gpus = np.arange(num_gpus + 1)
    if interpolate:
        curve = np.interp(gpus, levels, rates)
    else:
        curve = rates[np.maximum(np.searchsorted(levels, gpus, side="right") - 1, 0)]
    return np.where(gpus < levels[0], 0.0, curve)


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
        Folder of throughput tables for :func:`read_throughputs`.
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
        What happens between measured counts of GPUs; see :func:`throughput_curve`.

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
    with_models = "model_name" in _header(Path(trace))
    jobs = read_trace(trace) if with_models else read_microsoft_trace(trace)
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
            throughput_curve(row, int(gpus), interpolate=False)[-1] for row, gpus in zip(measured, held, strict=True)
        ]
    if with_models and not draw_deadlines:
        seconds = (jobs["deadline"] - jobs["submit_time"]).to_numpy(float)
    else:
        seconds = durations * rng.uniform(*DEADLINE_FACTORS, num_jobs)
    return {
        "num_gpus": num_gpus,
        "iterations": iterations,
        "deadlines": np.maximum(1, np.floor(seconds / slot_seconds)).astype(np.int64),
        "throughputs": slot_seconds
        * np.array([throughput_curve(row, num_gpus, interpolate=interpolate) for row in measured]),
    }


# --- files ---------------------------------------------------------------------------------------

_Reader = Callable[[str, str], Any]


def _header(path: Path) -> list[str]:
    with path.open(newline="", encoding="utf-8") as file:
        return next(csv.reader(file), [])


def _lines(path: Path, required: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    """Number and cells of each line after the header; blank lines are passed over."""
    header = _header(path)
    for column in required:
        if column not in header:
            raise InstanceError(f"{path}, line 1: there is no column {column!r}")
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.reader(file)
        next(reader)
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(header):
                raise InstanceError(f"{path}, line {reader.line_num}: got {len(cells)} cells, must be {len(header)}")
            yield reader.line_num, dict(zip(header, cells, strict=True))


def _jobs(path: PathLike, columns: Mapping[str, tuple[tuple[str, ...], _Reader]]) -> pd.DataFrame:
    """Jobs of a trace; ``columns`` gives, for each column, its spellings and how to read a cell."""
    import pandas as pd

    path = Path(path)
    header = _header(path)
    spelled = {
        column: next((name for name in names if name in header), names[0]) for column, (names, _) in columns.items()
    }
    rows = [
        {
            column: read(cells[spelled[column]], f"{path}, line {line}: {spelled[column]}")
            for column, (_, read) in columns.items()
        }
        for line, cells in _lines(path, tuple(spelled.values()))
    ]
    if not rows:
        raise InstanceError(f"{path}: there are no jobs")
    return pd.DataFrame(rows)


def _text(cell: str, where: str) -> str:
    if not cell.strip():
        raise InstanceError(f"{where}: got nothing")
    return cell.strip()


def _number(cell: str, where: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        raise InstanceError(f"{where}: got {cell!r}, must be a number") from None
    if not math.isfinite(value) or value < 0:
        raise InstanceError(f"{where}: got {cell!r}, must be finite and at least 0")
    return value


def _whole(cell: str, where: str, minimum: int) -> int:
    value = _number(cell, where)
    if value != round(value) or value < minimum:
        raise InstanceError(f"{where}: got {cell!r}, must be a whole number, at least {minimum}")
    return round(value)


def _positive(cell: str, where: str) -> int:
    return _whole(cell, where, minimum=1)


def _throughput(cell: str, where: str) -> float:
    """Iterations/s, NaN where none was measured."""
    if cell.strip() in ("", "nan"):
        return math.nan
    return _number(cell, where) or math.nan
