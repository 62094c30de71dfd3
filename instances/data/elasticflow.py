"""The throughput tables and job traces that were published with ElasticFlow (ASPLOS'23)."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from instances.base import InstanceError
from instances.data import jobs
from instances.data.lines import (
    CellReader,
    Source,
    Table,
    gpus,
    number,
    positive_whole,
    read_cell,
    read_columns,
    read_table,
    reader,
    text,
)
from instances.schema import FloatArray, quoted

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_throughputs", "read_trace", "throughput_curve"]


@reader
def read_throughputs(source: Source) -> pd.DataFrame:
    """Throughput tables: a folder with one file ``<model>.csv`` for each model, or one table.

    A file has the header ``global_batch_size,1,2,4,...`` (numbers of GPUs) and a line for each
    batch size with the measured iterations/s.  Cells that are empty, ``nan`` or zero were not
    measured, or the job cannot run so.

    Parameters
    ----------
    source : path, open file or DataFrame
        Folder of tables, such as ``throughputs_A100``, which may be gzips (``.csv.gz``); or one table, of the model
        that its column ``model`` says, else of the one that its file is called after.

    Returns
    -------
    DataFrame
        One row for each (model, batch_size), its index, and one column for each number of GPUs;
        iterations/s, NaN where not measured.  How it was read is ``attrs["reading"]``.

    Raises
    ------
    InstanceError
        When there is no table, or a line is malformed; the message names file and line.
    """
    import pandas as pd

    rows: dict[tuple[str, int], dict[int, float]] = {}
    # Of several files, the hash of what sha256sum says of them.
    told = []
    for model, table in _tables(source):
        _read_table(table, model, rows)
        told.append(f"{table.sha256}  {os.path.basename(table.name)}\n")
    name = os.fspath(source) if isinstance(source, (str, os.PathLike)) else table.name
    sha256 = table.sha256 if len(told) == 1 else hashlib.sha256("".join(told).encode(errors="replace")).hexdigest()
    if not rows:
        raise InstanceError(f"{name}: there are no throughputs in the tables")
    made = pd.DataFrame.from_dict(rows, orient="index")
    made.index = pd.MultiIndex.from_tuples(rows, names=["model", "batch_size"])
    made = made[sorted(made.columns)]
    made.attrs["reading"] = {"source": name, "sha256": sha256, "rows": len(rows)}
    if table.reading is not None:
        made.attrs["reading"]["before"] = dict(table.reading)
    return made


def _tables(source: Source) -> Iterator[tuple[str | None, Table]]:
    """Return the tables, each with the model that its file is called after."""
    if not isinstance(source, (str, os.PathLike)):
        yield None, read_table(source)
        return
    folder = Path(source)
    if folder.is_file():
        yield _model(folder), read_table(folder)
        return
    paths = sorted([*folder.glob("*.csv"), *folder.glob("*.csv.gz")])
    if not paths:
        raise InstanceError(f"{folder}: there are no throughput tables (*.csv)")
    for path in paths:
        yield _model(path), read_table(path)


def _model(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".csv")


def _read_table(table: Table, model: str | None, rows: dict[tuple[str, int], dict[int, float]]) -> None:
    """Add what a table says to the rows."""
    header = table.header
    size = "batch_size" if "batch_size" in header else "global_batch_size"
    for name in (size, *(["model"] if model is None else [])):
        if name not in header:
            raise InstanceError(f"{table.head}: there is no column {name!r}")
    counts = {}
    for place, name in enumerate(header):
        if header.count(name) > 1:
            raise InstanceError(f"{table.head}: column {quoted(name)} is there twice")
        if name not in (size, "model"):
            counts[place] = read_cell(gpus, name, f"{table.head}: number of GPUs")
    if len(set(counts.values())) < len(counts):
        raise InstanceError(f"{table.head}: a number of GPUs is there twice")
    for row, cells in enumerate(table.rows):
        where = table.at(row)
        if len(cells) != len(header):
            raise InstanceError(f"{where}: got {len(cells)} cells, must be {len(header)}")
        batch_size = read_cell(positive_whole, cells[header.index(size)], f"{where}: {size}")
        own = read_cell(text, cells[header.index("model")], f"{where}: model") if "model" in header else str(model)
        if (own, batch_size) in rows:
            raise InstanceError(f"{where}: batch size {batch_size} is there twice")
        rows[own, batch_size] = {
            count: read_cell(_throughput, cells[place], f"{where}: {header[place]} GPUs")
            for place, count in counts.items()
        }


class _Throughput(CellReader):
    """Iterations/s, NaN where none was measured."""

    def __call__(self, cell: str) -> float:
        if cell.strip() in ("", "nan"):
            return math.nan
        return number(cell) or math.nan


_throughput = _Throughput()


@reader
def read_trace(
    source: Source, *, columns: Mapping[str, str] | None = None, skip_bad_rows: bool = False
) -> pd.DataFrame:
    """Read a trace of the authors: jobs with model, iterations and deadline.

    All spellings of the header are read: ``ddl``, ``iteration``, ``submit_time`` of the authors'
    repository, and ``deadline``, ``num_iteration``, ``submission_time`` of Microsoft's.  Other
    columns are left out.

    Parameters
    ----------
    source : path, open file or DataFrame
        A file such as ``philly_103959.csv``.
    columns, skip_bad_rows
        As in :func:`instances.data.jobs.read_trace`.

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
    required = {name: column._replace(optional=False) for name, column in jobs.COLUMNS.items()}
    required["model"] = required["model"]._replace(read=text)
    return read_columns(source, required, given=columns or {}, skip_bad_rows=skip_bad_rows)


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
