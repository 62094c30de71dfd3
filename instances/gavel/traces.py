"""Instances from real input: the tables and traces of :mod:`instances.data.gavel`.

What a table does not list does not run: a type that lacks a job type counts as throughput 0 there,
and so does a pair that it lacks.  A job type that no worker type lists is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np

from instances.base import InstanceError
from instances.data.gavel import JobType, read_throughputs, read_trace
from instances.data.lines import PathLike
from instances.files import instance_type
from instances.gavel.sharing import Sharing
from instances.schema import FloatArray, declarations

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "BATCH_SIZES",
    "PHYSICAL_CLUSTER",
    "ROUND_SECONDS",
    "UNCONSOLIDATED",
    "WORKER_TYPES",
    "ClusterChoice",
    "active_jobs",
    "cluster",
    "draw_jobs",
    "from_trace",
    "jobs_from_trace",
    "listed_jobs",
]

WORKER_TYPES = ("k80", "p100", "v100")
BATCH_SIZES = {
    "ResNet-50": (16, 32, 64, 128),
    "ResNet-18": (16, 32, 64, 128, 256),
    "A3C": (4,),
    "LM": (5, 10, 20, 40, 80),
    "Transformer": (16, 32, 64, 128, 256),
    "CycleGAN": (1,),
    "Recommendation": (512, 1024, 2048, 4096, 8192),
}
"""Table 2's batch sizes, 26 job types in all, by the names that the published tables give the models."""
PHYSICAL_CLUSTER = {"v100": 8, "p100": 16, "k80": 24}
"""Workers of each type in the experiments of section 7.2; in those of 7.3 there are 36 of each."""
ROUND_SECONDS = 360.0
"""Length of a round in the experiments (section 5), s."""
UNCONSOLIDATED = "_unconsolidated"
"""Ending of the table's names for a worker type with a job's workers spread over servers."""


class ClusterChoice(TypedDict, total=False):
    """The keyword arguments of :func:`cluster`, which every reader of real input takes."""

    worker_types: Sequence[str]
    num_workers: int | Sequence[int] | None
    unconsolidated: bool
    share_space: bool


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
        As from :func:`instances.data.gavel.read_throughputs`.
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


def jobs_from_trace(
    rng: np.random.Generator | int,
    *,
    throughputs: PathLike,
    trace: PathLike,
    num_jobs: int = 16,
    **choice: Unpack[ClusterChoice],
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Jobs drawn from a real trace, and the cluster that they share.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed: it draws the jobs, without replacement if the trace has
        enough of the table's types (:func:`draw_jobs`).
    throughputs, trace : path
        Files for :func:`instances.data.gavel.read_throughputs` and ``read_trace``.
    num_jobs : int
        Number of jobs, n.
    **choice
        Worker types, their numbers and placements, and space sharing, as in :func:`cluster`.

    Returns
    -------
    jobs : DataFrame
        Rows of the trace.
    fields : dict
        Fields of :class:`instances.gavel.sharing.Sharing`.

    Raises
    ------
    InstanceError
        When a file is malformed, or the table has none of the trace's job types.
    """
    table = read_throughputs(throughputs)
    jobs = draw_jobs(rng, read_trace(trace), table, num_jobs)
    return jobs, cluster(jobs, table, **choice)


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
        Files for :func:`instances.data.gavel.read_throughputs` and ``read_trace``.
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
