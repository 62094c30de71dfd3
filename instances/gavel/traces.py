"""Real input: the throughput tables and job traces that were published with Gavel (OSDI'20).

A table says how many steps/s each job type, a model and a number of workers (its scale factor),
makes alone and next to a partner on each worker type; a trace says which jobs arrive when.  What
the table does not list does not run: a type that lacks a job type counts as throughput 0 there,
and so does a pair that it lacks.  A job type that no worker type lists is an error.
"""

from __future__ import annotations

import ast
import json
import math
import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from instances.base import FloatArray, InstanceError, declarations
from instances.files import instance_type
from instances.gavel.sharing import Sharing

if TYPE_CHECKING:
    import pandas as pd

PathLike = str | os.PathLike[str]
JobType = tuple[str, int]

WORKER_TYPES = ("k80", "p100", "v100")
UNCONSOLIDATED = "_unconsolidated"
"""Ending of the table's names for a worker type with a job's workers spread over servers."""


class ClusterChoice(TypedDict, total=False):
    """The keyword arguments of :func:`cluster`, which every reader of real input takes."""

    worker_types: Sequence[str]
    num_workers: int | Sequence[int] | None
    unconsolidated: bool
    share_space: bool


# --- files -----------------------------------------------------------------------------------


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

    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise InstanceError(f"{path}: not a text file") from None
    except json.JSONDecodeError as error:
        raise InstanceError(f"{path}, line {error.lineno}: not valid JSON: {error.msg}") from None
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
                    raise InstanceError(f"{where}: got {entry!r}, must be two throughputs, own and partner's")
                rates = [_rate(rate, where) for rate in entry]
                rows.append((worker_type, *own, *job_type(other, where), rates[0], rates[1]))
    columns = ["worker_type", "model", "scale_factor", "partner", "partner_scale_factor"]
    return pd.DataFrame(rows, columns=[*columns, "throughput", "partner_throughput"])


def _members(value: Any, where: str) -> list[tuple[str, Any]]:
    if not isinstance(value, dict):
        raise InstanceError(f"{where}: got {value!r:.60}, must be a JSON object")
    return list(value.items())


def _job_type(key: str, where: str) -> JobType:
    """``("ResNet-18 (batch size 16)", 1)`` from its Python spelling."""
    try:
        model, scale_factor = ast.literal_eval(key)
    except (ValueError, SyntaxError, TypeError):
        model, scale_factor = None, None
    if not isinstance(model, str) or type(scale_factor) is not int or scale_factor < 1:
        raise InstanceError(f"{where}: got job type {key!r}, must be like \"('ResNet-18 (batch size 16)', 1)\"")
    return model, scale_factor


def _rate(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise InstanceError(f"{where}: got {value!r}, must be a throughput of at least 0 steps/s")
    return float(value)


def _text(cell: str) -> str:
    return cell


def _positive_whole(cell: str) -> int:
    if int(cell) < 1:
        raise ValueError("must be at least 1")
    return int(cell)


def _positive(cell: str) -> float:
    if not 0 < float(cell) < math.inf:
        raise ValueError("must be positive and finite")
    return float(cell)


def _not_negative(cell: str) -> float:
    if not 0 <= float(cell) < math.inf:
        raise ValueError("must be at least 0 and finite")
    return float(cell)


def _slo(cell: str) -> float:
    """Seconds; a negative number stands for none."""
    if math.isnan(float(cell)) or float(cell) == 0:
        raise ValueError("must be positive seconds, or negative for none")
    return float(cell) if float(cell) > 0 else math.inf


_FORMS: dict[int, dict[str, Callable[[str], Any]]] = {
    10: {
        "model": _text,
        "command": _text,
        "directory": _text,
        "steps_argument": _text,
        "needs_data": _not_negative,
        "steps": _positive_whole,
        "scale_factor": _positive_whole,
        "priority": _positive,
        "slo": _slo,
        "arrival": _not_negative,
    },
    7: {
        "model": _text,
        "command": _text,
        "steps_argument": _text,
        "needs_data": _not_negative,
        "steps": _positive_whole,
        "arrival": _not_negative,
        "scale_factor": _positive_whole,
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

    path = Path(path)
    try:
        lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    except UnicodeDecodeError:
        raise InstanceError(f"{path}: not a text file") from None
    form = _FORMS.get(lines[0].count("\t") + 1)
    jobs = []
    for number, line in enumerate(lines, 1):
        cells = line.rstrip("\r").split("\t")
        if form is None or len(cells) != len(form):
            must = "10 or 7" if form is None else f"{len(form)}, as in line 1"
            raise InstanceError(f"{path}, line {number}: got {len(cells)} tab-separated columns, must be {must}")
        job: dict[str, Any] = {"priority": 1.0, "slo": math.inf}
        for (column, read), cell in zip(form.items(), cells, strict=True):
            try:
                job[column] = read(cell)
            except ValueError as error:
                raise InstanceError(f"{path}, line {number}: {column}: got {cell!r}: {error}") from None
        jobs.append(job)
    columns = ["model", "scale_factor", "steps", "arrival", "priority", "slo", "command"]
    return pd.DataFrame(jobs)[columns]


# --- jobs of a trace as instances ---------------------------------------------------------------


def cluster(
    jobs: pd.DataFrame,
    throughputs: pd.DataFrame,
    *,
    worker_types: Sequence[str] = WORKER_TYPES,
    num_workers: int | Sequence[int] | None = None,
    unconsolidated: bool = False,
    share_space: bool = True,
) -> dict[str, Any]:
    """Fields of :class:`instances.gavel.sharing.Sharing` for jobs of a trace.

    Parameters
    ----------
    jobs : DataFrame
        With ``model`` and ``scale_factor``.
    throughputs : DataFrame
        As from :func:`read_throughputs`.
    worker_types : sequence of str
        Worker types, one pool each.
    num_workers : int or sequence of int, optional
        Workers of each type; by default a quarter of the jobs, at least 8.
    unconsolidated : bool
        Whether each pool has a second type, for workers spread over servers.
    share_space : bool
        Whether jobs of equal scale factor may share workers, where the table has a throughput for
        the pair that is not zero.

    Raises
    ------
    InstanceError
        When the table lacks a worker type or a job's type; the message names it.
    """
    n = len(jobs)
    names = list(worker_types)
    if unconsolidated:
        names += [f"{name}{UNCONSOLIDATED}" for name in worker_types]
    known = set(throughputs["worker_type"])
    for name in names:
        if name not in known:
            raise InstanceError(f"worker type {name!r}: the table has only {', '.join(sorted(known))}")
    kinds = list(zip(jobs["model"].tolist(), jobs["scale_factor"].tolist(), strict=True))
    alone, together = _rates(throughputs, names, kinds)
    kind_of = {kind: number for number, kind in enumerate(dict.fromkeys(kinds))}
    number = np.array([kind_of[kind] for kind in kinds], np.int64)
    scale_factors = jobs["scale_factor"].to_numpy(np.int64)
    first, second = np.triu_indices(n if share_space else 0, 1)
    runs = together.max(axis=(2, 3)) > 0
    possible = runs[number[first], number[second]] & (scale_factors[first] == scale_factors[second])
    first, second = first[possible], second[possible]
    workers = max(8, n // 4) if num_workers is None else num_workers
    return {
        "throughputs": alone[number],
        "num_workers": np.broadcast_to(np.asarray(workers), len(worker_types)),
        "pools": np.arange(len(names)) % len(worker_types),
        "scale_factors": scale_factors,
        "pairs": np.stack([first, second], axis=1),
        "pair_throughputs": together[number[first], number[second]],
    }


def _rates(table: pd.DataFrame, names: Sequence[str], kinds: Sequence[JobType]) -> tuple[FloatArray, FloatArray]:
    """(u, k) alone and (u, u, k, 2) together, for the u different job types among ``kinds``."""
    kind_of = {kind: number for number, kind in enumerate(dict.fromkeys(kinds))}
    column_of = {name: number for number, name in enumerate(names)}
    alone = np.full((len(kind_of), len(names)), -1.0)
    together = np.zeros((len(kind_of), len(kind_of), len(names), 2))
    for name, model, scale, partner, partner_scale, rate, partner_rate in table.itertuples(index=False, name=None):
        column, own = column_of.get(name), kind_of.get((model, scale))
        if column is None or own is None:
            continue
        if not partner_scale:
            alone[own, column] = rate
        elif (other := kind_of.get((partner, partner_scale))) is not None:
            together[own, other, column] = rate, partner_rate
            # The mirrored entry, where the table has it, says the same.
            together[other, own, column] = partner_rate, rate
    missing = np.flatnonzero((alone < 0).all(axis=1))
    if missing.size:
        model, scale = list(kind_of)[missing[0]]
        raise InstanceError(f"model {model!r} with scale factor {scale}: the table has no such job type")
    return np.maximum(alone, 0.0), together


def listed_jobs(trace: pd.DataFrame, throughputs: pd.DataFrame) -> pd.DataFrame:
    """The jobs of a trace whose type, model and scale factor, the table has on some worker type.

    Raises
    ------
    InstanceError
        When there are none.
    """
    listed = set(zip(throughputs["model"].tolist(), throughputs["scale_factor"].tolist(), strict=True))
    kinds = list(zip(trace["model"].tolist(), trace["scale_factor"].tolist(), strict=True))
    known = np.array([kind in listed for kind in kinds])
    if not known.any():
        model, scale = kinds[0]
        raise InstanceError(
            f"model {model!r} with scale factor {scale}, as all others of the trace: the table has no such job type"
        )
    return trace[known].reset_index(drop=True)


def draw_jobs(
    rng: np.random.Generator | int, trace: pd.DataFrame, throughputs: pd.DataFrame, num_jobs: int
) -> pd.DataFrame:
    """Jobs drawn from a trace, among those whose type the table has.

    They are drawn without replacement and keep the trace's order; with replacement, in the order
    drawn, when the trace has too few.

    Raises
    ------
    InstanceError
        When the table has none of the trace's job types.
    """
    if num_jobs < 1:
        raise InstanceError(f"num_jobs: got {num_jobs}, must be at least 1")
    rng = np.random.default_rng(rng)
    listed = listed_jobs(trace, throughputs)
    if num_jobs <= len(listed):
        chosen = np.sort(rng.permutation(len(listed))[:num_jobs])
    else:
        chosen = rng.integers(0, len(listed), num_jobs)
    return listed.iloc[chosen].reset_index(drop=True)


def active_jobs(
    trace: pd.DataFrame,
    throughputs: pd.DataFrame,
    time: float,
    *,
    slowdown: float = 1.0,
    worker_types: Sequence[str] = WORKER_TYPES,
) -> pd.DataFrame:
    """Jobs that have arrived by ``time`` and are not done, in order of arrival.

    A trace does not say how fast its jobs ran.  Here each has run, since it arrived, ``slowdown``
    times slower than alone on its fastest worker type.

    Returns
    -------
    DataFrame
        The trace's columns, with ``steps`` left to do, ``steps_done`` and ``elapsed`` (s).

    Raises
    ------
    InstanceError
        When a job that has arrived is of a type that the table lacks, or none is active.
    """
    if not slowdown > 0:
        raise InstanceError(f"slowdown: got {slowdown}, must be positive")
    arrived = trace[trace["arrival"] <= time].sort_values("arrival", kind="stable")
    speed = np.zeros(0)
    if len(arrived):
        speed = cluster(arrived, throughputs, worker_types=worker_types, share_space=False)["throughputs"].max(axis=1)
    elapsed = time - arrived["arrival"].to_numpy(float)
    done = np.floor(elapsed * speed / slowdown)
    steps = arrived["steps"].to_numpy(float)
    left = done < steps
    if not left.any():
        raise InstanceError(f"time: got {time:g}, must be a time at which some job is active")
    active = arrived.assign(steps=steps - done, steps_done=done, elapsed=elapsed)[left]
    return active.reset_index(drop=True)


def from_trace(
    problem: str,
    *,
    throughputs: PathLike,
    trace: PathLike,
    time: float,
    slowdown: float = 1.0,
    worker_types: Sequence[str] = WORKER_TYPES,
    num_workers: int | Sequence[int] | None = None,
    unconsolidated: bool = False,
    share_space: bool = True,
    only_listed: bool = False,
    **fields: Any,
) -> Sharing:
    """A snapshot: the jobs of a trace that are active at a time, as an instance of any policy.

    Parameters
    ----------
    problem : str
        A policy's name, such as "gavel.finish_time_fairness".
    throughputs, trace : path
        Files for :func:`read_throughputs` and :func:`read_trace`.
    time : float
        When, s after the start of the trace.
    slowdown : float
        How the jobs have run so far; see :func:`active_jobs`.
    worker_types, num_workers, unconsolidated, share_space
        As in :func:`cluster`.
    only_listed : bool
        Whether jobs whose type the table lacks are left out; otherwise they are an error.
    **fields
        Fields that no trace has, such as ``costs`` or ``entities``; they go before those of the
        trace: ``weights`` (its priorities), ``steps`` (left to do), ``slos`` (time left; none for
        jobs that have missed theirs), ``elapsed`` and ``isolated_elapsed``.

    Raises
    ------
    InstanceError
        When a file is malformed, the table lacks a job's type, no job is active, or ``problem``
        is no policy.
    """
    kind = instance_type(problem)
    if not issubclass(kind, Sharing):
        raise InstanceError(f"problem: got {problem!r}, must be a policy of Gavel with throughputs")
    table = read_throughputs(throughputs)
    arriving = read_trace(trace)
    if only_listed:
        arriving = listed_jobs(arriving, table)
    jobs = active_jobs(arriving, table, time, slowdown=slowdown, worker_types=worker_types)
    shared = cluster(
        jobs,
        table,
        worker_types=worker_types,
        num_workers=num_workers,
        unconsolidated=unconsolidated,
        share_space=share_space,
    )
    known = {
        "weights": jobs["priority"].to_numpy(float),
        "steps": jobs["steps"].to_numpy(float),
        "slos": np.where(jobs["slo"] > jobs["elapsed"], jobs["slo"] - jobs["elapsed"], np.inf),
        "elapsed": jobs["elapsed"].to_numpy(float),
        "isolated_elapsed": jobs["steps_done"].to_numpy(float) / Sharing(**shared).isolated_throughputs,
    }
    declared = declarations(kind)
    taken = {name: value for name, value in known.items() if name in declared and name not in fields}
    return kind(**shared, **taken, **fields)
