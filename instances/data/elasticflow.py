"""The throughput tables and job traces that were published with ElasticFlow (ASPLOS'23)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from instances.base import InstanceError
from instances.data.lines import (
    PathLike,
    gpus,
    number,
    positive_whole,
    read_cell,
    read_header,
    read_jobs,
    read_rows,
    text,
)
from instances.schema import FloatArray

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_throughputs", "read_trace", "throughput_curve"]


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
        for line, cells in read_rows(path, ("global_batch_size", *read_header(path))):
            where = f"{path}, line {line}"
            batch_size = read_cell(positive_whole, cells.pop("global_batch_size"), f"{where}: global_batch_size")
            if (path.stem, batch_size) in rows:
                raise InstanceError(f"{where}: batch size {batch_size} is there twice")
            rates = {
                read_cell(gpus, name, f"{path}, line 1: number of GPUs"): read_cell(
                    _throughput, cell, f"{where}: {name} GPUs"
                )
                for name, cell in cells.items()
            }
            if len(rates) < len(cells):
                raise InstanceError(f"{path}, line 1: a number of GPUs is there twice")
            rows[path.stem, batch_size] = rates
    if not rows:
        raise InstanceError(f"{folder}: there are no throughputs in the tables")
    table = pd.DataFrame.from_dict(rows, orient="index")
    table.index = pd.MultiIndex.from_tuples(rows, names=["model", "batch_size"])
    return table[sorted(table.columns)]


def _throughput(cell: str) -> float:
    """Iterations/s, NaN where none was measured."""
    if cell.strip() in ("", "nan"):
        return math.nan
    return number(cell) or math.nan


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
    return read_jobs(
        path,
        {
            "job_id": (("job_id",), text),
            "submit_time": (("submit_time", "submission_time"), number),
            "iterations": (("iteration", "num_iteration"), number),
            "model": (("model_name",), text),
            "deadline": (("ddl", "deadline"), number),
            "batch_size": (("batch_size",), positive_whole),
            "num_gpus": (("num_gpu",), gpus),
            "duration": (("duration",), number),
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
