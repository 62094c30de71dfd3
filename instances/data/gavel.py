"""The throughput tables and job traces that were published with Gavel (OSDI'20).

A table says how many steps/s each job type, a model and a number of workers (its scale factor),
makes alone and next to a partner on each worker type; a trace says which jobs arrive when.
"""

from __future__ import annotations

import ast
import math
import os
import sys
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from instances.base import InstanceError
from instances.data.lines import (
    LARGEST_WHOLE,
    Cell,
    PathLike,
    number,
    positive,
    positive_whole,
    read_cell,
    read_json,
    read_text,
    text,
)
from instances.schema import quoted

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["JobType", "read_throughputs", "read_trace"]

JobType = tuple[str, int]
"""Model and scale factor."""


def read_throughputs(path: PathLike) -> pd.DataFrame:
    """A table such as ``simulation_throughputs.json``, one row per entry.

    Returns
    -------
    DataFrame
        ``worker_type``; ``model`` and ``scale_factor`` of the job; ``partner`` and
        ``partner_scale_factor`` of the job next to it, "" and 0 for the job alone; ``throughput``
        and ``partner_throughput``, steps/s, NaN for the job alone.

    Raises
    ------
    InstanceError
        When the file is malformed; the message names file, worker type and job type.
    """
    # A study draws many instances from one file.
    return _read_throughputs(Path(path), os.stat(path).st_mtime_ns).copy()


@lru_cache(maxsize=8)
def _read_throughputs(path: Path, modified: int) -> pd.DataFrame:
    import pandas as pd

    content = read_json(path)
    rows: list[tuple[str, str, int, str, int, float, float]] = []
    job_types: dict[str, JobType] = {}

    def job_type(key: str, where: str) -> JobType:
        if key not in job_types:
            job_types[key] = _job_type(key, where)
        return job_types[key]

    for worker_type, jobs in _members(content, f"{path}"):
        for key, entries in _members(jobs, f"{path}: {worker_type}"):
            own = job_type(key, f"{path}: {worker_type}")
            for other, entry in _members(entries, f"{path}: {worker_type}: {key}"):
                where = f"{path}: {worker_type}: {key}: {other}"
                if other == "null":
                    rows.append((worker_type, *own, "", 0, _rate(entry, where), math.nan))
                    continue
                if not isinstance(entry, list) or len(entry) != 2:
                    raise InstanceError(f"{where}: got {quoted(entry)}, must be two throughputs, own and partner's")
                rates = [_rate(rate, where) for rate in entry]
                rows.append((worker_type, *own, *job_type(other, where), rates[0], rates[1]))
    columns = ["worker_type", "model", "scale_factor", "partner", "partner_scale_factor"]
    return pd.DataFrame(rows, columns=[*columns, "throughput", "partner_throughput"])


def _members(value: Any, where: str) -> list[tuple[str, Any]]:
    if not isinstance(value, dict):
        raise InstanceError(f"{where}: got {quoted(value)}, must be a JSON object")
    return list(value.items())


def _job_type(key: str, where: str) -> JobType:
    """``("ResNet-18 (batch size 16)", 1)`` from its Python spelling."""
    try:
        model, scale_factor = ast.literal_eval(key)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        # The last two for brackets without end.
        model, scale_factor = None, None
    if not isinstance(model, str) or type(scale_factor) is not int or not 1 <= scale_factor <= LARGEST_WHOLE:
        raise InstanceError(f"{where}: got job type {quoted(key)}, must be like \"('ResNet-18 (batch size 16)', 1)\"")
    return model, scale_factor


def _rate(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= sys.float_info.max:
        raise InstanceError(f"{where}: got {quoted(value)}, must be a throughput of at least 0 steps/s")
    return float(value)


def _slo(cell: str) -> float:
    """Seconds; a negative number stands for none."""
    try:
        seconds = float(cell)
    except ValueError:
        seconds = math.nan
    if math.isnan(seconds) or not seconds:
        raise ValueError("must be positive seconds, or negative for none")
    return seconds if seconds > 0 else math.inf


_FORMS: dict[int, dict[str, Cell]] = {
    10: {
        "model": text,
        "command": str,
        "directory": str,
        "steps_argument": str,
        "needs_data": number,
        "steps": positive_whole,
        "scale_factor": positive_whole,
        "priority": positive,
        "slo": _slo,
        "arrival": number,
    },
    7: {
        "model": text,
        "command": str,
        "steps_argument": str,
        "needs_data": number,
        "steps": positive_whole,
        "arrival": number,
        "scale_factor": positive_whole,
    },
}


def read_trace(path: PathLike) -> pd.DataFrame:
    """A trace of tab-separated jobs, of 10 columns or of the older 7.

    Returns
    -------
    DataFrame
        In the file's order: ``model``, ``scale_factor``, ``steps``, ``arrival`` (s), ``priority``
        (the weight, 1 in the older form), ``slo`` (s, infinite for none), ``command``.

    Raises
    ------
    InstanceError
        When a line is malformed; the message names file and line.
    """
    import pandas as pd

    lines = read_text(path).rstrip("\n").split("\n")
    form = _FORMS.get(lines[0].count("\t") + 1)
    jobs = []
    for line, content in enumerate(lines, 1):
        cells = content.rstrip("\r").split("\t")
        if form is None or len(cells) != len(form):
            must = "10 or 7" if form is None else f"{len(form)}, as in line 1"
            raise InstanceError(f"{path}, line {line}: got {len(cells)} tab-separated columns, must be {must}")
        job: dict[str, Any] = {"priority": 1.0, "slo": math.inf}
        for (column, read), cell in zip(form.items(), cells, strict=True):
            job[column] = read_cell(read, cell, f"{path}, line {line}: {column}")
        jobs.append(job)
    columns = ["model", "scale_factor", "steps", "arrival", "priority", "slo", "command"]
    return pd.DataFrame(jobs)[columns]
