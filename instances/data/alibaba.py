"""Alibaba's GPU cluster trace of 2023 (FGD, ATC'23): the lists of pods and nodes called openb."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from instances.data.jobs import finish
from instances.data.lines import Cell, Column, Source, any_text, number, read_columns, reader, text, whole

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_nodes", "read_trace"]


class _Time(Cell):
    """Seconds, NaN where the pod has none."""

    def __call__(self, cell: str) -> float:
        return math.nan if cell.strip() in ("", "nan") else number(cell)


_PODS = {
    "job_id": Column(("name",), text),
    "num_gpus": Column(("num_gpu",), whole),
    "gpu_milli": Column(("gpu_milli",), number),
    "submit_time": Column(("creation_time",), number),
    "end": Column(("deletion_time",), _Time()),
    "start": Column(("scheduled_time",), _Time()),
}
_NODES = {
    "node_id": Column(("sn",), text),
    "num_gpus": Column(("gpu",), whole),
    "cpus": Column(("cpu_milli",), number),
    "memory": Column(("memory_mib",), number),
    "gpu_type": Column(("model",), any_text),
}


@reader
def read_trace(
    source: Source, *, columns: Mapping[str, str] | None = None, skip_bad_rows: bool = False
) -> pd.DataFrame:
    """A list of pods, such as ``openb_pod_list_default.csv``, as jobs of whole GPUs.

    A pod's duration is the time from its scheduling to its deletion.  A pod that asked for a part of a GPU becomes a
    job of one; pods without GPU, and those that were never scheduled or deleted, are left out.

    Parameters
    ----------
    source : path, open file or DataFrame
        With columns name, num_gpu, gpu_milli, creation_time, deletion_time and scheduled_time (s).
    columns, skip_bad_rows
        As in :func:`instances.data.jobs.read_trace`.

    Returns
    -------
    DataFrame
        A job table: ``job_id``, ``submit_time`` (s after the first), ``num_gpus``, ``duration`` (s).

    Raises
    ------
    InstanceError
        When a line is malformed; the message names file and line.
    """
    pods = read_columns(source, _PODS, given=columns, skip_bad_rows=skip_bad_rows)
    duration = (pods["end"] - pods["start"]).to_numpy(float)
    whole_gpus = pods["num_gpus"].to_numpy(int)
    part = (whole_gpus == 1) & (pods["gpu_milli"].to_numpy(float) < 1000)
    return finish(
        pods.assign(duration=duration),
        leave_out={
            "pod asked for no GPU": whole_gpus < 1,
            "pod was never scheduled, or never deleted": np.isnan(duration),
            "pod was deleted before it was scheduled": duration < 0,
        },
        filled_in={"part of a GPU is rounded up to one": part},
    )


@reader
def read_nodes(source: Source, *, columns: Mapping[str, str] | None = None) -> pd.DataFrame:
    """A list of nodes, such as ``openb_node_list_gpu_node.csv``.

    Parameters
    ----------
    source : path, open file or DataFrame
        With columns sn, cpu_milli, memory_mib, gpu and model.
    columns : mapping, optional
        As in :func:`instances.data.jobs.read_trace`.

    Returns
    -------
    DataFrame
        ``node_id``, ``num_gpus``, ``cpus``, ``memory`` (GB), ``gpu_type`` ("" for none); in the file's order.

    Raises
    ------
    InstanceError
        When a line is malformed; the message names file and line.
    """
    nodes = read_columns(source, _NODES, given=columns, what="nodes")
    return nodes.assign(cpus=nodes["cpus"] / 1000, memory=nodes["memory"] * 2**20 / 1e9)
