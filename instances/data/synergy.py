"""The sensitivity profiles and job lists that were published with Synergy (OSDI'22)."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from instances.base import InstanceError
from instances.data import jobs
from instances.data.lines import (
    Column,
    PathLike,
    Reading,
    Source,
    gpus,
    is_table,
    number,
    positive,
    positive_whole,
    read_columns,
    read_json,
    read_table,
    reader,
    sniffed,
    text,
    whole,
)
from instances.schema import FloatArray, nearest, quoted
from instances.text import read_source

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Profiles", "read_matrices", "read_profiles", "read_trace", "written"]

_COLUMNS = {
    "id": Column(("id",), whole),
    "model": Column(("model",), text),
    "arrival": Column(("arrival",), number),
    "iterations": Column(("iterations",), positive_whole),
    "gpus": Column(("gpus",), gpus),
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
    attrs : dict
        How they were read, under "reading", as in the ``attrs`` of a DataFrame.
    """

    cpus: FloatArray
    memory: FloatArray
    throughputs: Mapping[str, FloatArray]
    attrs: dict[str, Reading] = field(default_factory=dict, compare=False, repr=False)

    def of(self, model: str) -> FloatArray:
        """Return the matrix of ``model``.

        Raises
        ------
        InstanceError
            When the model was not profiled; the message says what to give.
        """
        if model not in self.throughputs:
            raise InstanceError(
                f"there is no profile of model {quoted(model)}{nearest(model, self.throughputs)}; there are of "
                f"{', '.join(self.throughputs)}: leave its jobs out, or give profiles with it"
            )
        return self.throughputs[model]


_ENTRIES = {
    "model": Column(("model",), text),
    "cpus": Column(("cpus_per_gpu",), positive),
    "memory": Column(("memory_gb_per_gpu",), positive),
    "throughput": Column(("throughput",), positive),
}


@reader
def read_profiles(source: Source, *, cpus_per_gpu: int = 3) -> Profiles:
    """Read the authors' sensitivity profiles, as the JSON that ``optgap convert synergy-profiles`` writes; or a table.

    Parameters
    ----------
    source : path, open file or DataFrame
        JSON with ``cpus_per_gpu``, ``memory_gb_per_gpu`` and ``profiles_by_cpu_gpu_ratio``; or CSV or a DataFrame with
        columns ``model``, ``cpus_per_gpu``, ``memory_gb_per_gpu`` and ``throughput``, a row for each entry.
    cpus_per_gpu : int
        CPU cores of a server for each of its GPUs: which of the profiles of a JSON file to take.

    Raises
    ------
    InstanceError
        When the file is malformed; the message names it and the entry.
    """
    if is_table(source):
        return _of_entries(source)
    _, is_csv, file = sniffed(source)  # type: ignore[arg-type]
    if is_csv:
        return _of_entries(read_table(file))
    data, reading = read_json(file)
    path = reading["source"]
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
    reading["rows"] = len(throughputs)
    return Profiles(cpus, memory, throughputs, {"reading": reading})


def _of_entries(source: Source) -> Profiles:
    """Return profiles from a table of their entries."""
    entries = read_columns(source, _ENTRIES, what="profiles")
    reading = entries.attrs["reading"]
    wide = entries.pivot_table(index=["model", "cpus"], columns="memory", values="throughput", sort=True)
    cpus, memory = np.unique(entries["cpus"].to_numpy(float)), wide.columns.to_numpy(float)
    throughputs = {
        model: _positive(reading["source"], f"profile of {model}", wide.loc[model].reindex(cpus).to_numpy(float), 2)
        for model in dict.fromkeys(entries["model"].tolist())
    }
    return Profiles(cpus, memory, throughputs, {"reading": reading})


CPUS_PER_GPU = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 9.0, 12.0, 24.0)
"""CPU cores per GPU, the rows of the published matrices."""
MEMORY_PER_GPU = (20.83, 62.5, 125.0, 187.5, 250.0)
"""Memory per GPU, GB, their columns: a third of a GPU's share of a server of 8 GPUs and 500 GB, and 1 to 4 shares."""


@reader
def read_matrices(source: PathLike) -> Profiles:
    """Read the profiles as the authors published them: a folder of Python modules, one for each model.

    Of a module ``<model>_1.py``, which is about jobs of one GPU, the matrix that ``self.tput`` is set to is taken.
    Nothing of it is run.

    Parameters
    ----------
    source : path
        A folder such as ``simulator/models``, or one module.

    Raises
    ------
    InstanceError
        When there is no such module, or it sets no matrix of 9 rows and 5 columns of positive numbers.
    """
    folder = Path(source)
    paths = [folder] if folder.is_file() else sorted(folder.glob("*_1.py"))
    if not paths:
        raise InstanceError(f"{folder}: there are no profiles (<model>_1.py)")
    throughputs, told = {}, []
    for path in paths:
        name, content, sha256 = read_source(path)
        matrix = _positive(name, "self.tput", _assigned(name, content), 2)
        if matrix.shape != (len(CPUS_PER_GPU), len(MEMORY_PER_GPU)):
            raise InstanceError(f"{name}: self.tput: got shape {matrix.shape}, must be (9, 5)")
        throughputs[path.stem.removesuffix("_1")] = matrix
        told.append(f"{sha256}  {path.name}\n")
    together = hashlib.sha256("".join(told).encode(errors="replace")).hexdigest()
    reading: Reading = {"source": str(folder), "sha256": together, "rows": len(throughputs)}
    return Profiles(np.array(CPUS_PER_GPU), np.array(MEMORY_PER_GPU), throughputs, {"reading": reading})


def _assigned(name: str, content: str) -> Any:
    """Return the value of ``self.tput`` in a module: the lists in ``np.array([...])``."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InstanceError(f"{name}: not a Python module") from None
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call) or not node.value.args:
            continue
        if any(isinstance(target, ast.Attribute) and target.attr == "tput" for target in node.targets):
            try:
                return ast.literal_eval(node.value.args[0])
            except (ValueError, TypeError, RecursionError, MemoryError):
                break
    raise InstanceError(f"{name}: nothing like self.tput = np.array([[...], ...]) is in it")


def written(profiles: Profiles, *, cpus_per_gpu: int = 3) -> str:
    """Profiles as the JSON that :func:`read_profiles` reads.

    Parameters
    ----------
    profiles : Profiles
    cpus_per_gpu : int
        CPU cores of a server for each of its GPUs, with which they were measured.

    Raises
    ------
    InstanceError
        When there is no such server.
    """
    if cpus_per_gpu < 1:
        raise InstanceError(f"cpus_per_gpu: got {cpus_per_gpu}, must be at least 1")
    models = {model: {"throughput": matrix.tolist()} for model, matrix in profiles.throughputs.items()}
    content = {
        "cpus_per_gpu": profiles.cpus.tolist(),
        "memory_gb_per_gpu": profiles.memory.tolist(),
        "profiles_by_cpu_gpu_ratio": {str(cpus_per_gpu): models},
    }
    return json.dumps(content, indent=1, allow_nan=False) + "\n"


def _entry(path: str, data: Any, name: str) -> Any:
    if not isinstance(data, dict) or name not in data:
        raise InstanceError(f"{path}: entry {name!r} is missing")
    return data[name]


def _positive(path: str, name: str, value: Any, ndim: int) -> FloatArray:
    try:
        array = np.array(value, float)
    except (TypeError, ValueError, OverflowError):
        array = np.zeros(0)
    if array.ndim != ndim or not array.size or not (np.isfinite(array) & (array > 0)).all():
        raise InstanceError(f"{path}: {name}: must be an array of positive numbers in {ndim} dimension(s)")
    array.setflags(write=False)
    return array


@reader
def read_trace(
    source: Source, *, columns: Mapping[str, str] | None = None, skip_bad_rows: bool = False
) -> pd.DataFrame:
    """Read the authors' job list: lines of id, model, arrival, iterations and GPUs, without a header; or a job table.

    Parameters
    ----------
    source : path, open file or DataFrame
        A job table (:mod:`instances.data.jobs`) has a header, and needs a column of GPUs.
    columns, skip_bad_rows
        As in :func:`instances.data.jobs.read_trace`, ``columns`` of a job table.

    Returns
    -------
    DataFrame
        In the file's order: ``id`` (int; text of a job table), ``model`` ("" where a job table does not say),
        ``gpus`` (int), and where they are told ``arrival`` (s) and ``iterations``.  How it was read is
        ``attrs["reading"]``.

    Raises
    ------
    InstanceError
        When a line is malformed; the message names the file and the line.
    """
    if not is_table(source):
        head, _, file = sniffed(source)  # type: ignore[arg-type]
        if not head or head.split(",")[0].strip().isdecimal():
            table = replace(read_table(file, header=False), header=[*_COLUMNS])
            return read_columns(table, _COLUMNS, skip_bad_rows=skip_bad_rows)
        source = read_table(file)
    made = jobs.read_jobs(source, needs=("num_gpus",), columns=columns, skip_bad_rows=skip_bad_rows)
    made = made.rename(columns={"job_id": "id", "submit_time": "arrival", "num_gpus": "gpus"})
    made = made if "model" in made else made.assign(model="")
    return made[[name for name in _COLUMNS if name in made]]
