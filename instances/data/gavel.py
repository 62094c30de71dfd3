"""The throughput tables and job traces that were published with Gavel (OSDI'20).

A table says how many steps/s each job type, a model and a number of workers (its scale factor),
makes alone and next to a partner on each worker type; a trace says which jobs arrive when.
"""

from __future__ import annotations

import ast
import math
import re
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from instances.base import InstanceError
from instances.data.lines import (
    LARGEST_WHOLE,
    CellReader,
    Column,
    Source,
    Table,
    any_text,
    number,
    positive,
    positive_whole,
    prose,
    read_columns,
    read_json,
    read_table,
    reader,
    text,
    whole,
)
from instances.schema import quoted

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["JobType", "read_throughputs", "read_trace"]

JobType = tuple[str, int]
"""Model and scale factor."""


@reader
def read_throughputs(source: Source) -> pd.DataFrame:
    """Read a table such as ``simulation_throughputs.json``, one row per entry.

    Parameters
    ----------
    source : path, open file or DataFrame
        JSON: worker type, then job type, then "null" for the job alone or the job type of its partner, to steps/s.  A
        DataFrame has columns as the result, of which those about partners may be missing.

    Returns
    -------
    DataFrame
        ``worker_type``; ``model`` and ``scale_factor`` of the job; ``partner`` and
        ``partner_scale_factor`` of the job next to it, "" and 0 for the job alone; ``throughput``
        and ``partner_throughput``, steps/s, NaN for the job alone.  How it was read is ``attrs["reading"]``.

    Raises
    ------
    InstanceError
        When the file is malformed; the message names file, worker type and job type.
    """
    import pandas as pd

    if isinstance(source, (pd.DataFrame, Table)):
        return _from_frame(source)
    content, reading = read_json(source)
    name = reading["source"]
    rows: list[tuple[str, str, int, str, int, float, float]] = []
    job_types: dict[str, JobType] = {}

    def job_type(key: str, where: str) -> JobType:
        if key not in job_types:
            job_types[key] = _job_type(key, where)
        return job_types[key]

    for worker_type, jobs in _members(content, name):
        for key, entries in _members(jobs, f"{name}: {worker_type}"):
            own = job_type(key, f"{name}: {worker_type}")
            for other, entry in _members(entries, f"{name}: {worker_type}: {key}"):
                where = f"{name}: {worker_type}: {key}: {other}"
                if other == "null":
                    rows.append((worker_type, *own, "", 0, _rate(entry, where), math.nan))
                    continue
                if not isinstance(entry, list) or len(entry) != 2:
                    raise InstanceError(f"{where}: got {quoted(entry)}, must be two throughputs, own and partner's")
                rates = [_rate(rate, where) for rate in entry]
                rows.append((worker_type, *own, *job_type(other, where), rates[0], rates[1]))
    made = pd.DataFrame(rows, columns=[*_ENTRIES])
    made.attrs["reading"] = {**reading, "rows": len(rows)}
    return made


class _PartnerRate(CellReader):
    """Steps/s, NaN for the job alone."""

    def __call__(self, cell: str) -> float:
        return math.nan if cell.strip() in ("", "nan") else number(cell)


_ENTRIES = {
    "worker_type": Column(("worker_type",), text),
    "model": Column(("model",), text),
    "scale_factor": Column(("scale_factor",), positive_whole),
    "partner": Column(("partner",), any_text, optional=True),
    "partner_scale_factor": Column(("partner_scale_factor",), whole, optional=True),
    "throughput": Column(("throughput",), number),
    "partner_throughput": Column(("partner_throughput",), _PartnerRate(), optional=True),
}


def _from_frame(frame: pd.DataFrame | Table) -> pd.DataFrame:
    """Return a table of throughputs from one of its entries."""
    made = read_columns(frame, _ENTRIES, what="throughputs")
    alone: dict[str, Any] = {"partner": "", "partner_scale_factor": 0, "partner_throughput": math.nan}
    made = made.assign(**{name: value for name, value in alone.items() if name not in made})
    return made[[*_ENTRIES]]


def _members(value: Any, where: str) -> list[tuple[str, Any]]:
    if not isinstance(value, dict):
        raise InstanceError(f"{where}: got {quoted(value)}, must be a JSON object")
    return list(value.items())


_ONE_WORKER = re.compile(r"[^'\"()]{1,80} \(batch size \d{1,9}\)")


def _job_type(key: str, where: str) -> JobType:
    """``("ResNet-18 (batch size 16)", 1)`` from its Python spelling, or of one worker from its first part alone."""
    try:
        model, scale_factor = ast.literal_eval(key)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        # The last two for brackets without end.  The oldest tables know one worker for a job, and say so of none.
        model, scale_factor = (key, 1) if _ONE_WORKER.fullmatch(key) else (None, None)
    if not isinstance(model, str) or type(scale_factor) is not int or not 1 <= scale_factor <= LARGEST_WHOLE:
        raise InstanceError(f"{where}: got job type {quoted(key)}, must be like \"('ResNet-18 (batch size 16)', 1)\"")
    return model, scale_factor


def _rate(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= sys.float_info.max:
        raise InstanceError(f"{where}: got {quoted(value)}, must be a throughput of at least 0 steps/s")
    return float(value)


class _Slo(CellReader):
    """Seconds; a negative number stands for none."""

    def __call__(self, cell: str) -> float:
        try:
            seconds = float(cell)
        except ValueError:
            seconds = math.nan
        if math.isnan(seconds) or not seconds:
            raise ValueError("must be positive seconds, or negative for none")
        return seconds if seconds > 0 else math.inf


_COLUMNS = {
    "model": Column(("model",), text),
    "scale_factor": Column(("scale_factor",), positive_whole),
    "steps": Column(("steps",), positive_whole),
    "arrival": Column(("arrival",), number),
    "priority": Column(("priority",), positive, optional=True),
    "slo": Column(("slo",), _Slo(), optional=True),
    "command": Column(("command",), prose, optional=True),
    "duration": Column(("duration",), number, optional=True),
    "mode": Column(("mode",), text, optional=True),
}
_START = ["model", "command", "directory", "steps_argument", "needs_data", "steps", "scale_factor"]
_FORMS = {
    12: [*_START, "mode", "priority", "slo", "duration", "arrival"],
    10: [*_START, "priority", "slo", "arrival"],
    7: ["model", "command", "steps_argument", "needs_data", "steps", "arrival", "scale_factor"],
}
"""Columns of a line, by their number: Shockwave's traces, Gavel's, and Gavel's older ones."""


@reader
def read_trace(source: Source, *, skip_bad_rows: bool = False) -> pd.DataFrame:
    """Read a trace of tab-separated jobs, of 10 columns or of the older 7, or of Shockwave's 12.

    Parameters
    ----------
    source : path, open file or DataFrame
        A DataFrame has columns as the result, of which those from ``priority`` on may be missing.
    skip_bad_rows : bool
        As in :func:`instances.data.jobs.read_trace`.

    Returns
    -------
    DataFrame
        In the file's order: ``model``, ``scale_factor``, ``steps``, ``arrival`` (s), ``priority``
        (the weight, 1 in the older form), ``slo`` (s, infinite for none), ``command``; of 12 columns also
        ``duration`` (s) and ``mode`` (how the batch size changes as the job runs, which no instance knows).  How it
        was read is ``attrs["reading"]``.

    Raises
    ------
    InstanceError
        When a line is malformed; the message names file and line.
    """
    table = read_table(source, separator="\t", header=False)
    if table.unit == "line":
        table = _with_header(table)
    made = read_columns(table, _COLUMNS, skip_bad_rows=skip_bad_rows)
    missing: dict[str, Any] = {"priority": 1.0, "slo": math.inf, "command": ""}
    made = made.assign(**{name: value for name, value in missing.items() if name not in made})
    return made[[name for name in _COLUMNS if name in made]]


def _with_header(table: Table) -> Table:
    """Return the table with the names of its columns, which go by their number in the first line."""
    if not table.rows:
        raise InstanceError(f"{table.name}: there are no jobs")
    form = _FORMS.get(len(table.rows[0]))
    if form is None:
        raise InstanceError(
            f"{table.at(0)}: got {len(table.rows[0])} tab-separated columns, must be {', '.join(map(str, _FORMS))}"
        )
    return replace(table, header=form)
