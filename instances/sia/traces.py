"""Goodputs from published tables, and the jobs of a trace, for :func:`instances.sia.goodput.from_trace`.

Of a table of Gavel's a job trains at a fixed batch size, so that its goodput is in proportion to its steps/s.  Of a
folder of Sia's profiles a job's goodput on g GPUs is the greatest, over batch sizes B, of

    B / step time on g GPUs  *  (variance + square) / (variance + square * B / B_0),

with B_0 the least batch size of which there is a run, and ``square`` and ``variance`` those of the gradient at B_0.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from instances.base import InstanceError
from instances.data import gavel, sia
from instances.data.lines import Source, is_table, read_table, reader, sniffed
from instances.gavel.traces import UNCONSOLIDATED
from instances.sia.configurations import batch_sizes

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TRIED", "read_goodputs", "read_requests", "table_of"]

TRIED = 50
"""Batch sizes that are tried between the least and the greatest of which there are runs, as in the released code."""


@reader
def read_goodputs(source: Source, *, epoch: int = 1) -> pd.DataFrame:
    """Read what models make of numbers of GPUs of each type.

    Parameters
    ----------
    source : path, open file or DataFrame
        A folder of Sia's: in it, for each model, a folder with ``placements-<type>.csv``, or also
        ``scalability-<type>.csv`` for what these lack, and runs ``validation-<batch size>.csv``; or a table of Gavel's
        (:func:`instances.data.gavel.read_throughputs`), without its types of workers that are spread over servers.
    epoch : int
        Of a folder, the epoch of which the runs' gradients are, from 1; the last of a shorter run.

    Returns
    -------
    DataFrame
        ``gpu_type``, ``model``, ``num_gpus`` and ``goodput``, in whatever unit a model's goodputs share.

    Raises
    ------
    InstanceError
        When a file is malformed, or there are none.
    """
    import pandas as pd

    if isinstance(source, (str, os.PathLike)) and os.path.isdir(source):
        return _of_folder(Path(source), epoch)
    table = gavel.read_throughputs(source)
    alone = table[(table["partner_scale_factor"] == 0) & ~table["worker_type"].str.endswith(UNCONSOLIDATED)]
    names = {"worker_type": "gpu_type", "scale_factor": "num_gpus", "throughput": "goodput"}
    made = pd.DataFrame(alone.rename(columns=names)[["gpu_type", "model", "num_gpus", "goodput"]])
    made.attrs["reading"] = table.attrs["reading"]
    return made.reset_index(drop=True)


def read_requests(
    source: Source, *, columns: Mapping[str, str] | None = None, skip_bad_rows: bool = False
) -> pd.DataFrame:
    """Read the jobs of a trace of Gavel's, a job table, or a workload of Sia's.

    Parameters
    ----------
    source : path, open file or DataFrame
    columns, skip_bad_rows
        As in :func:`instances.data.jobs.read_trace`.

    Returns
    -------
    DataFrame
        ``model`` ("" where the trace does not say), ``scale_factor`` (GPUs that the job asks for) and ``arrival`` (s).

    Raises
    ------
    InstanceError
        When a line is malformed.
    """
    if not is_table(source):
        _, is_csv, text = sniffed(source)  # type: ignore[arg-type]
        if not is_csv:
            return gavel.read_trace(source, columns=columns, skip_bad_rows=skip_bad_rows)
        source = read_table(text)
    read = sia.read_workload if "application" in read_table(source).header else gavel.read_trace
    return read(source, columns=columns, skip_bad_rows=skip_bad_rows)


def _of_folder(folder: Path, epoch: int) -> pd.DataFrame:
    """Return the goodputs of the models of a folder of Sia's profiles."""
    import pandas as pd

    rows: list[tuple[str, str, int, float]] = []
    told = []
    for placements in sorted(folder.glob("*/placements-*.csv")):
        model, kind = placements.parent.name, placements.stem.removeprefix("placements-")
        runs = {
            int(path.stem.removeprefix("validation-")): path
            for path in placements.parent.glob("validation-*.csv")
            if path.stem.removeprefix("validation-").isdecimal()
        }
        if not runs:
            raise InstanceError(f"{placements.parent}: there are no runs of {model} (validation-<batch size>.csv)")
        least, most = min(runs), max(runs)
        gradients = sia.read_gradients(runs[least])
        row = gradients.iloc[min(max(epoch, 1), len(gradients)) - 1]
        square, variance = float(row["square"]), float(row["variance"])
        # Of a run that tells neither, larger batches bring nothing.
        square = square if square + variance > 0 else 1.0
        sizes = sorted({round(size) for size in batch_sizes(float(least), float(most), TRIED).tolist()})
        found: dict[int, float] = {}
        # What placements were measured goes before what is told of a number of GPUs.
        for path in (placements, placements.with_name(f"scalability-{kind}.csv")):
            if path.exists():
                steps = sia.read_throughputs(path, batch_sizes=sizes)
                told.append(f"{steps.attrs['reading']['sha256']}  {path.name}\n")
                for gpus in steps.columns.tolist():
                    rates = [
                        size * rate * (variance + square) / (variance + square * size / least)
                        for (_, size), rate in zip(steps.index.tolist(), steps[gpus].tolist(), strict=True)
                        if not math.isnan(rate)
                    ]
                    if rates:
                        found.setdefault(int(gpus), max(rates))
        rows += [(kind, model, gpus, goodput) for gpus, goodput in found.items()]
    if not rows:
        raise InstanceError(f"{folder}: there are no profiles (<model>/placements-<type>.csv)")
    made = pd.DataFrame(rows, columns=["gpu_type", "model", "num_gpus", "goodput"])
    sha256 = hashlib.sha256("".join(told).encode(errors="replace")).hexdigest()
    made.attrs["reading"] = {"source": os.fspath(folder), "sha256": sha256, "rows": len(rows)}
    return made


def table_of(goodputs: pd.DataFrame, gpu_type: str) -> dict[tuple[str, int], float]:
    """Return the goodputs of a type, by model and number of GPUs; those that are 0 are left out."""
    of = goodputs[(goodputs["gpu_type"] == gpu_type) & (goodputs["goodput"] > 0)]
    kinds = zip(of["model"].tolist(), of["num_gpus"].tolist(), strict=True)
    return dict(zip(kinds, np.asarray(of["goodput"], float).tolist(), strict=True))
