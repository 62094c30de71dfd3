"""The files of Sia (SOSP'23), and of Pollux before it.

Profiles of models tell how long a step takes on a placement of GPUs, runs of them how noisy the gradient was after each
epoch, and workloads which jobs are submitted when.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from instances.base import InstanceError
from instances.data.lines import (
    CellReader,
    Column,
    Source,
    number,
    positive,
    positive_whole,
    read_columns,
    read_table,
    reader,
    text,
)
from instances.schema import quoted

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_gradients", "read_throughputs", "read_workload"]


class _Placement(CellReader):
    """GPUs of a placement, whose digits are those on each server."""

    def __call__(self, cell: str) -> int:
        if not cell.isdecimal() or not cell.isascii() or not 0 < len(cell) < 100 or not sum(map(int, cell)):
            raise ValueError("must be digits, the GPUs on each server")
        return sum(map(int, cell))


_STEPS = {
    "local": Column(("local_bsz",), positive_whole),
    "seconds": Column(("step_time",), positive),
    "gpu_type": Column(("gpu_type",), text, optional=True),
}


@reader
def read_throughputs(
    source: Source,
    *,
    model: str | None = None,
    gpu_type: str | None = None,
    batch_sizes: Sequence[int] | None = None,
) -> pd.DataFrame:
    """Read a profile of a model as a throughput table: one row for each global batch size.

    A step on g GPUs at the global batch size B is one at the local batch size B / g.  Between measured local
    batch sizes its time is linear; beyond them nothing is known.  Of several placements of as many GPUs the
    fastest counts.  Time is that of a step; how much a step learns at a batch size is no part of it.

    Parameters
    ----------
    source : path, open file or DataFrame
        With columns local_bsz, step_time (s), and placement or num_replicas, such as ``placements-quad.csv`` or
        ``scalability-rtx.csv`` of a model, or ``bert.csv`` with a column gpu_type.
    model : str, optional
        Its name; by default that of the file, or of its folder where the file is called after what was measured.
    gpu_type : str, optional
        Which rows to take, where the file has several types.
    batch_sizes : sequence of int, optional
        Global batch sizes; by default the powers of 2 among those that were measured.

    Returns
    -------
    DataFrame
        As from :func:`instances.data.elasticflow.read_throughputs`.

    Raises
    ------
    InstanceError
        When a line is malformed, or nothing was measured that is asked for.
    """
    import pandas as pd

    table = read_table(source)
    by_number = "num_replicas" in table.header
    held = Column(("num_replicas",), positive_whole) if by_number else Column(("placement",), _Placement())
    steps = read_columns(table, {**_STEPS, "gpus": held}, what="steps")
    reading = steps.attrs["reading"]
    if "gpu_type" in steps:
        types = sorted(set(steps["gpu_type"]))
        if gpu_type not in types and (gpu_type is not None or len(types) > 1):
            raise InstanceError(f"{table.name}: gpu_type: got {quoted(gpu_type)}, must be one of {', '.join(types)}")
        steps = steps[steps["gpu_type"] == (gpu_type or types[0])]
    elif gpu_type is not None:
        raise InstanceError(f"{table.name}: gpu_type: got {quoted(gpu_type)}, the file has no such column")
    fastest = steps.groupby(["gpus", "local"], as_index=False)["seconds"].min()
    measured = {}
    for gpus in sorted(set(fastest["gpus"].tolist())):
        of = fastest[fastest["gpus"] == gpus]
        measured[gpus] = of["local"].to_numpy(float), of["seconds"].to_numpy(float)
    if batch_sizes is None:
        most = max(gpus * local[-1] for gpus, (local, _) in measured.items())
        batch_sizes = [2**power for power in range(int(most).bit_length())]
    rows = {
        (model or _model(source, table.name), size): {
            gpus: _rate(size / gpus, *points) for gpus, points in measured.items()
        }
        for size in batch_sizes
    }
    rows = {kind: rates for kind, rates in rows.items() if not np.isnan([*rates.values()]).all()}
    if not rows:
        raise InstanceError(f"{table.name}: batch_sizes: none of {', '.join(map(str, batch_sizes))} was measured")
    made = pd.DataFrame.from_dict(rows, orient="index")
    made.index = pd.MultiIndex.from_tuples(rows, names=["model", "batch_size"])
    made.attrs["reading"] = reading
    return made


_GRADIENTS = {
    "square": Column(("grad_sqr",), number),
    "variance": Column(("grad_var",), number),
}


@reader
def read_gradients(source: Source) -> pd.DataFrame:
    """Read a model's run at one batch size, such as ``validation-128.csv``: a row for each epoch.

    Parameters
    ----------
    source : path, open file or DataFrame
        With columns grad_sqr and grad_var.

    Returns
    -------
    DataFrame
        ``square``, of the gradient's norm, and ``variance``, that of the gradient at this batch size; only their ratio
        means anything.

    Raises
    ------
    InstanceError
        When a line is malformed.
    """
    return read_columns(source, _GRADIENTS, what="epochs")


_WORKLOAD = {
    "job_id": Column(("name",), text),
    "arrival": Column(("time",), number),
    "model": Column(("application",), text),
    "scale_factor": Column(("num_replicas",), positive_whole),
    "batch_size": Column(("batch_size",), positive_whole, optional=True),
}


@reader
def read_workload(
    source: Source, *, columns: Mapping[str, str] | None = None, skip_bad_rows: bool = False
) -> pd.DataFrame:
    """Read a workload, such as ``workload-1.csv``: the jobs that are submitted to a simulated cluster.

    Parameters
    ----------
    source : path, open file or DataFrame
        With columns name, time (s), application and num_replicas, and maybe batch_size.
    columns, skip_bad_rows
        As in :func:`instances.data.jobs.read_trace`.

    Returns
    -------
    DataFrame
        ``job_id``, ``arrival`` (s), ``model``, ``scale_factor`` (the GPUs that a job of fixed size asks for), and
        ``batch_size`` where the file has it; in the file's order.

    Raises
    ------
    InstanceError
        When a line is malformed.
    """
    return read_columns(source, _WORKLOAD, given=columns, skip_bad_rows=skip_bad_rows)


def _rate(local: float, sizes: np.ndarray, seconds: np.ndarray) -> float:
    """Steps/s at a local batch size, NaN outside of what was measured."""
    return float(1 / np.interp(local, sizes, seconds)) if sizes[0] <= local <= sizes[-1] else float("nan")


def _model(source: object, name: str) -> str:
    """Return the model that a file is about."""
    path = Path(name)
    about = path.name.removesuffix(".gz").removesuffix(".csv")
    if not isinstance(source, (str, os.PathLike)):
        return about
    return path.absolute().parent.name if about.startswith(("placements", "scalability", "validation")) else about
