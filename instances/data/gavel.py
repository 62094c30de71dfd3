"""The throughput tables and job traces that were published with Gavel (OSDI'20).

A table says how many steps/s each job type, a model and a number of workers (its scale factor),
makes alone and next to a partner on each worker type; a trace says which jobs arrive when.
"""

from __future__ import annotations

import ast
import math
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from instances.base import InstanceError
from instances.data import jobs
from instances.data.lines import (
    LARGEST_WHOLE,
    CellReader,
    Column,
    Source,
    Table,
    any_text,
    is_table,
    number,
    positive,
    positive_whole,
    prose,
    read_columns,
    read_json,
    read_table,
    reader,
    sniffed,
    text,
    whole,
)
from instances.schema import quoted
from instances.text import Text

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
        JSON: worker type, then job type, then "null" for the job alone or the job type of its partner, to steps/s; or
        CSV or a DataFrame with columns as the result, of which those about partners may be missing.

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

    if is_table(source):
        return _from_frame(source)
    _, is_csv, file = sniffed(source)  # type: ignore[arg-type]
    if is_csv:
        return _from_frame(read_table(file))
    content, reading = read_json(file)
    name = reading["source"]
    rows: list[tuple[str, str, int, str, int, float, float]] = []
    job_types: dict[str, JobType] = {}

    def job_type(key: str, where: str) -> JobType:
        if key not in job_types:
            job_types[key] = _job_type(key, where)
        return job_types[key]

    for worker_type, entries_of in _members(content, name):
        for key, entries in _members(entries_of, f"{name}: {worker_type}"):
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


def _from_frame(frame: Source) -> pd.DataFrame:
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


_JOBS = {
    **jobs.COLUMNS,
    **{name: _COLUMNS[name] for name in ("priority", "slo", "command", "mode")},
}
"""Columns of a job table."""
_NAMES = {"num_gpus": "scale_factor", "iterations": "steps", "submit_time": "arrival"}
"""Those of them that Gavel calls otherwise."""


@reader
def read_trace(
    source: Source, *, columns: Mapping[str, str] | None = None, skip_bad_rows: bool = False
) -> pd.DataFrame:
    """Read a trace of tab-separated jobs, of 10 columns or of the older 7, or of Shockwave's 12; or a job table.

    Parameters
    ----------
    source : path, open file or DataFrame
        A job table (:mod:`instances.data.jobs`) has a header with commas.  It needs arrivals, GPUs, and iterations or
        durations; ``priority`` and ``slo`` are known, too, and the names of the result are those of columns as well.
    columns, skip_bad_rows
        As in :func:`instances.data.jobs.read_trace`, ``columns`` of a job table.

    Returns
    -------
    DataFrame
        In the file's order: ``model`` ("" where a job table does not say), ``scale_factor``, ``steps`` (NaN where it
        tells durations), ``arrival`` (s), ``priority`` (the weight, 1 in the older form), ``slo`` (s, infinite for
        none), ``command``; of 12 columns and of job tables also ``duration`` (s), and ``mode`` (how the batch size
        changes as the job runs, which no instance knows).  How it was read is ``attrs["reading"]``.

    Raises
    ------
    InstanceError
        When a line is malformed; the message names file and line.
    """
    if is_table(source):
        made = _of_job_table(source, columns, skip_bad_rows)
    else:
        _, is_csv, file = sniffed(source)  # type: ignore[arg-type]
        if is_csv:
            made = _of_job_table(file, columns, skip_bad_rows)
        else:
            table = _with_header(read_table(file, separator="\t", header=False))
            made = read_columns(table, _COLUMNS, skip_bad_rows=skip_bad_rows)
    missing: dict[str, Any] = {"model": "", "steps": math.nan, "priority": 1.0, "slo": math.inf, "command": ""}
    made = made.assign(**{name: value for name, value in missing.items() if name not in made})
    return made[[name for name in _COLUMNS if name in made]]


def _of_job_table(source: Source | Text, columns: Mapping[str, str] | None, skip_bad_rows: bool) -> pd.DataFrame:
    """Return the jobs of a job table by Gavel's names."""
    made = jobs.read_jobs(
        source, _JOBS, needs=("submit_time", "num_gpus"), columns=columns, skip_bad_rows=skip_bad_rows
    )
    name = made.attrs["reading"]["source"]
    if "iterations" not in made and "duration" not in made:
        raise InstanceError(
            f"{name}: there is no column 'iterations', nor one 'duration': name one, as in "
            "columns={'duration': ...}, in the shell --reader columns.duration=..."
        )
    if "deadline" in made and "slo" not in made:
        made = made.assign(slo=made["deadline"] - made["submit_time"])
        early = made["slo"].to_numpy(float) <= 0
        if early.any():
            job = made["job_id"].iloc[int(early.argmax())]
            raise InstanceError(f"{name}: job {job}: its deadline is not after its arrival")
    return made.rename(columns=_NAMES)


def _with_header(table: Table) -> Table:
    """Return the table with the names of its columns, which go by their number in the first line."""
    form = _FORMS.get(len(table.rows[0]))
    if form is None:
        raise InstanceError(
            f"{table.at(0)}: got {len(table.rows[0])} tab-separated columns, must be {', '.join(map(str, _FORMS))}; "
            "or a table with commas and a header"
        )
    return replace(table, header=form)
