"""Alibaba's GPU cluster trace of 2023 (FGD, ATC'23): the lists of pods and nodes called openb."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from instances.base import InstanceError
from instances.data.jobs import finish
from instances.data.lines import (
    CellReader,
    Column,
    Reading,
    Source,
    any_text,
    number,
    read_columns,
    reader,
    text,
    whole,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_nodes", "read_placements", "read_trace"]


class _Time(CellReader):
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
    "models": Column(("gpu_spec",), any_text, optional=True),
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
    """Read a list of pods, such as ``openb_pod_list_default.csv``, as jobs of whole GPUs.

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
    pods = read_columns(source, _PODS, given=columns or {}, skip_bad_rows=skip_bad_rows)
    duration = (pods["end"] - pods["start"]).to_numpy(float)
    return finish(
        pods.assign(duration=duration),
        leave_out=_no_jobs(pods),
        filled_in={"part of a GPU is rounded up to one": _part(pods)},
    )


def _no_jobs(pods: pd.DataFrame) -> dict[str, NDArray[np.bool_]]:
    """Why pods are no jobs, and which."""
    duration = (pods["end"] - pods["start"]).to_numpy(float)
    return {
        "pod asked for no GPU": pods["num_gpus"].to_numpy(int) < 1,
        "pod was never scheduled, or never deleted": np.isnan(duration),
        "pod was deleted before it was scheduled": duration < 0,
    }


def _part(pods: pd.DataFrame) -> NDArray[np.bool_]:
    """Mark the pods that asked for a part of a GPU."""
    part: NDArray[np.bool_] = (pods["num_gpus"].to_numpy(int) == 1) & (pods["gpu_milli"].to_numpy(float) < 1000)
    return part


def read_placements(
    source: Source, *, nodes: Source, columns: Mapping[str, str] | None = None, skip_bad_rows: bool = False
) -> pd.DataFrame:
    """Place a list of pods on a list of nodes, which the trace does not do: each on the node that it fits best.

    In the order in which they were scheduled, each pod gets its GPUs on the node that has enough of them free and
    fewest more, the first in the file of those; where ``gpu_spec`` names models, on a node of one of them.  It keeps
    them until it is deleted.  CPU cores and memory are not looked at, and no GPU is shared: a pod that asked for a part
    of one holds it whole.

    Parameters
    ----------
    source : path, open file or DataFrame
        As in :func:`read_trace`; a column gpu_spec may be there.
    nodes : path, open file or DataFrame
        As in :func:`read_nodes`.
    columns, skip_bad_rows
        As in :func:`read_trace`, of the pods.

    Returns
    -------
    DataFrame
        As from :func:`instances.data.placements.read_placements`, with ``server_gpus``; times are s after the first
        start.

    Raises
    ------
    InstanceError
        When a line is malformed, or no pod finds a node; the message names the file.
    """
    import pandas as pd

    pods = read_columns(source, _PODS, given=columns or {}, skip_bad_rows=skip_bad_rows, what="pods")
    servers = read_nodes(nodes)
    reading: Reading = pods.attrs["reading"]
    reading |= {"reader": f"{__name__}.read_placements", "options": {"nodes": servers.attrs["reading"]}}
    kept = np.ones(len(pods), bool)
    reading["left_out"] = {}
    for why, which in _no_jobs(pods).items():
        reading["left_out"][why] = int((kept & which).sum())
        kept &= ~which
    asked = pods[kept].sort_values("start", kind="stable")
    size = servers["num_gpus"].to_numpy(np.int64)
    model = servers["gpu_type"].to_numpy(str)
    free, ends = size.copy(), list[tuple[float, int, int]]()
    rows = []
    wanted = asked["models"].tolist() if "models" in asked else [""] * len(asked)
    for pod, gpus, start, end, models in zip(
        asked["job_id"], asked["num_gpus"].tolist(), asked["start"].tolist(), asked["end"].tolist(), wanted, strict=True
    ):
        while ends and ends[0][0] <= start:
            _, back, node = heapq.heappop(ends)
            free[node] += back
        fits = free >= gpus
        if models not in ("", "nan"):
            fits &= np.isin(model, models.split("|"))
        if fits.any():
            node = int(np.where(fits, free, free.max() + 1).argmin())
            free[node] -= gpus
            heapq.heappush(ends, (end, gpus, node))
            rows.append((pod, servers["node_id"].iloc[node], gpus, start, end, int(size[node])))
    if not rows:
        raise InstanceError(f"{reading['source']}: there are no placements: no pod finds a node with its GPUs")
    reading["left_out"]["pod finds no node with its GPUs free"] = len(asked) - len(rows)
    reading["filled_in"] = {
        "node is that which the pod fits best": len(rows),
        "part of a GPU is rounded up to one": int(_part(asked).sum()),
    }
    table = pd.DataFrame(rows, columns=["job_id", "server", "gpus", "start", "end", "server_gpus"])
    first = table["start"].min()
    table = table.assign(start=table["start"] - first, end=table["end"] - first)
    table.attrs["reading"] = reading
    return table


@reader
def read_nodes(source: Source, *, columns: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Read a list of nodes, such as ``openb_node_list_gpu_node.csv``.

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
    nodes = read_columns(source, _NODES, given=columns or {}, what="nodes")
    return nodes.assign(cpus=nodes["cpus"] / 1000, memory=nodes["memory"] * 2**20 / 1e9)
