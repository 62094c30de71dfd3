"""The sensitivity profiles and job lists that were published with Synergy (OSDI'22)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from instances.base import InstanceError
from instances.data.lines import (
    Cell,
    PathLike,
    csv_lines,
    gpus,
    number,
    positive_whole,
    read_cell,
    read_json,
    text,
    whole,
)
from instances.schema import FloatArray, nearest, quoted

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Profiles", "read_profiles", "read_trace"]

_COLUMNS: dict[str, Cell] = {
    "id": whole,
    "model": text,
    "arrival": number,
    "iterations": positive_whole,
    "gpus": gpus,
}


@dataclass(frozen=True)
class Profiles:
    """Measured sensitivity of several models, per GPU.

    Attributes
    ----------
    cpus : (c,) float
        CPU cores per GPU, the rows of every matrix.
    memory : (m,) float
        Memory per GPU, GB, the columns.
    throughputs : mapping
        Model to its (c, m) matrix: throughput of one GPU, relative to the GPU-proportional share.
    """

    cpus: FloatArray
    memory: FloatArray
    throughputs: Mapping[str, FloatArray]

    def of(self, model: str) -> FloatArray:
        """The matrix of ``model``.

        Raises
        ------
        InstanceError
            When the model was not profiled.
        """
        if model not in self.throughputs:
            raise InstanceError(f"there is no profile of model {quoted(model)}{nearest(model, self.throughputs)}")
        return self.throughputs[model]


def read_profiles(path: PathLike, *, cpus_per_gpu: int = 3) -> Profiles:
    """The authors' sensitivity profiles, as JSON.

    Parameters
    ----------
    path : path
        File with ``cpus_per_gpu``, ``memory_gb_per_gpu`` and ``profiles_by_cpu_gpu_ratio``.
    cpus_per_gpu : int
        CPU cores of a server for each of its GPUs: which of the profiles to take.

    Raises
    ------
    InstanceError
        When the file is malformed; the message names it and the entry.
    """
    data = read_json(path)
    ratio = str(cpus_per_gpu)
    by_ratio = _entry(path, data, "profiles_by_cpu_gpu_ratio")
    if not isinstance(by_ratio, dict) or ratio not in by_ratio:
        known = ", ".join(by_ratio) if isinstance(by_ratio, dict) else "none"
        raise InstanceError(f"{path}: there are no profiles for {ratio} CPUs per GPU, only for {known}")
    cpus = _positive(path, "cpus_per_gpu", _entry(path, data, "cpus_per_gpu"), 1)
    memory = _positive(path, "memory_gb_per_gpu", _entry(path, data, "memory_gb_per_gpu"), 1)
    models = by_ratio[ratio]
    if not isinstance(models, dict):
        raise InstanceError(f"{path}: profiles_by_cpu_gpu_ratio.{ratio}: got {quoted(models)}, must be a JSON object")
    throughputs = {}
    for model, entry in models.items():
        where = f"profiles_by_cpu_gpu_ratio.{ratio}.{model}"
        matrix = _positive(path, where, _entry(path, entry, "throughput"), 2)
        if matrix.shape != (len(cpus), len(memory)):
            raise InstanceError(
                f"{path}: {where}: got shape {matrix.shape}, must be one row for each of {len(cpus)} CPU counts "
                f"and one column for each of {len(memory)} memory sizes"
            )
        throughputs[model] = matrix
    return Profiles(cpus, memory, throughputs)


def _entry(path: PathLike, data: Any, name: str) -> Any:
    if not isinstance(data, dict) or name not in data:
        raise InstanceError(f"{path}: entry {name!r} is missing")
    return data[name]


def _positive(path: PathLike, name: str, value: Any, ndim: int) -> FloatArray:
    try:
        array = np.array(value, float)
    except (TypeError, ValueError, OverflowError):
        array = np.zeros(0)
    if array.ndim != ndim or not array.size or not (np.isfinite(array) & (array > 0)).all():
        raise InstanceError(f"{path}: {name}: must be an array of positive numbers in {ndim} dimension(s)")
    array.setflags(write=False)
    return array


def read_trace(path: PathLike) -> pd.DataFrame:
    """The authors' job list: lines of id, model, arrival, iterations and GPUs, without a header.

    Returns
    -------
    DataFrame
        In the file's order: ``id`` (int), ``model`` (str), ``arrival`` (s), ``iterations`` (int),
        ``gpus`` (int).

    Raises
    ------
    InstanceError
        When a line is malformed; the message names the file and the line.
    """
    import pandas as pd

    rows = []
    for line, cells in csv_lines(path):
        if len(cells) != len(_COLUMNS):
            raise InstanceError(f"{path}, line {line}: got {len(cells)} cells, must be {', '.join(_COLUMNS)}")
        rows.append(
            {
                column: read_cell(read, cell, f"{path}, line {line}: {column}")
                for (column, read), cell in zip(_COLUMNS.items(), cells, strict=True)
            }
        )
    if not rows:
        raise InstanceError(f"{path}: there are no jobs")
    return pd.DataFrame(rows)
