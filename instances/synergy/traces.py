"""Jobs of published models, with the profiles and the job list of :mod:`instances.data.synergy`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, TypedDict, TypeVar, Unpack

import numpy as np

from instances.base import Plan
from instances.data.lines import Source
from instances.data.origin import origin
from instances.data.synergy import Profiles, read_profiles, read_trace
from instances.synergy.profiles import TASKS
from instances.synergy.sensitivity import SensitiveJobs, from_matrix
from instances.synergy.synthetic import SERVER_GPUS, SERVER_MEMORY, DemandOptions, Jobs, draw_demands

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "MixOptions",
    "ProfiledJobs",
    "ServerChoice",
    "TraceChoice",
    "jobs_from_mix",
    "jobs_from_trace",
    "models_of",
    "profiled",
]


class ServerChoice(TypedDict, total=False):
    """The keyword arguments that every reader of real input takes: what servers there are.

    ``cpus_per_gpu`` (3 by default) gives a server's CPU cores and picks the profiles; ``server_gpus``
    and ``server_memory`` (GB) are the paper's by default.  ``server_cap`` says whether a job is given at
    most one server's CPUs and memory, as section 6 assumes; it is by default.
    """

    cpus_per_gpu: int
    server_gpus: int
    server_memory: float
    server_cap: bool


class TraceChoice(ServerChoice, total=False):
    """The keyword arguments of :func:`jobs_from_trace`, which ``from_trace`` takes.

    ``columns`` and ``skip_bad_rows`` are those of :func:`instances.data.synergy.read_trace`.
    """

    columns: Mapping[str, str] | None
    skip_bad_rows: bool


class MixOptions(DemandOptions, ServerChoice, total=False):
    """The keyword arguments of :func:`jobs_from_mix`, which ``from_mix`` takes."""

    num_servers: int


def profiled(
    models: Sequence[str],
    gpu_demands: Sequence[int],
    *,
    profiles: Profiles,
    num_servers: int,
    cpus_per_gpu: int = 3,
    server_gpus: int = SERVER_GPUS,
    server_memory: float = SERVER_MEMORY,
    server_cap: bool = True,
) -> Jobs:
    """Jobs of published models.

    A job on g GPUs counts g times the throughput of one GPU.

    Raises
    ------
    InstanceError
        When there is no profile of a model.
    """
    configs = tuple(
        from_matrix(profiles.of(model), profiles.cpus, profiles.memory, gpus=gpus)
        for model, gpus in zip(models, gpu_demands, strict=True)
    )
    return Jobs(
        num_servers=num_servers,
        server_gpus=server_gpus,
        server_cpus=float(cpus_per_gpu * server_gpus),
        server_memory=server_memory,
        gpu_demands=np.array(gpu_demands, np.int64),
        configs=configs,
        server_cap=server_cap,
    )


def jobs_from_mix(
    rng: np.random.Generator | int,
    *,
    throughputs: Source,
    num_servers: int = 4,
    cpus_per_gpu: int = 3,
    server_gpus: int = SERVER_GPUS,
    server_memory: float = SERVER_MEMORY,
    server_cap: bool = True,
    **demands: Unpack[DemandOptions],
) -> tuple[Jobs, dict[str, Any]]:
    """Jobs of published models in a task mix, and where they are from.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    throughputs : path
        File for :func:`instances.data.synergy.read_profiles`.
    num_servers : int
        Servers.
    cpus_per_gpu, server_gpus, server_memory, server_cap
        As in :class:`ServerChoice`.
    **demands
        Task mix and GPUs of the jobs, as for :func:`instances.synergy.synthetic.draw_demands`.

    Raises
    ------
    InstanceError
        When the file is malformed, or has no profiles for ``cpus_per_gpu``.
    """
    rng = np.random.default_rng(rng)
    profiles = read_profiles(throughputs, cpus_per_gpu=cpus_per_gpu)
    tasks, gpu_demands = draw_demands(rng, num_servers * server_gpus, **demands)
    models = [str(rng.choice(TASKS[task])) for task in tasks]
    choice = ServerChoice(
        cpus_per_gpu=cpus_per_gpu, server_gpus=server_gpus, server_memory=server_memory, server_cap=server_cap
    )
    told = origin(
        "instances.synergy.traces.jobs_from_mix",
        throughputs=profiles.attrs,
        jobs=models,
        options={"num_servers": num_servers, **choice, **demands},
    )
    return profiled(models, gpu_demands.tolist(), profiles=profiles, num_servers=num_servers, **choice), told


def jobs_from_trace(
    rng: np.random.Generator | int,
    *,
    throughputs: Source,
    trace: Source,
    num_servers: int = 4,
    columns: Mapping[str, str] | None = None,
    skip_bad_rows: bool = False,
    **choice: Unpack[ServerChoice],
) -> tuple[Jobs, dict[str, Any]]:
    """Jobs of a trace, drawn until the GPUs are full, and where they are from.

    They come in random order, none a second time before all have come.  A job that no longer fits
    is passed over.  Models that the trace does not name are drawn, uniformly of those that were profiled.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed: it draws the jobs.
    throughputs, trace : path or open file
        What :func:`instances.data.synergy.read_profiles` and ``read_trace`` read; the trace may be a DataFrame.
    num_servers : int
        Servers.
    columns, skip_bad_rows
        As in :func:`instances.data.synergy.read_trace`.
    **choice
        What servers, as in :class:`ServerChoice`.

    Raises
    ------
    InstanceError
        When a file is malformed, or there is no profile of a job's model.
    """
    rng = np.random.default_rng(rng)
    jobs = read_trace(trace, columns=columns, skip_bad_rows=skip_bad_rows)
    left = num_servers * choice.get("server_gpus", SERVER_GPUS)
    least = int(jobs["gpus"].min())
    profiles = read_profiles(throughputs, cpus_per_gpu=choice.get("cpus_per_gpu", 3))
    asked, models = jobs["gpus"].tolist(), models_of(rng, jobs, profiles)
    rows: list[int] = []
    passed = 0
    while left >= least:
        for position in rng.permutation(len(jobs)).tolist():
            if asked[position] <= left:
                rows.append(position)
                left -= asked[position]
            else:
                passed += 1
    fields = profiled(
        [models[row] for row in rows],
        [asked[row] for row in rows],
        profiles=profiles,
        num_servers=num_servers,
        **choice,
    )
    return fields, origin(
        "instances.synergy.traces.jobs_from_trace",
        throughputs=profiles.attrs,
        trace=jobs.attrs,
        rows=rows,
        jobs=jobs["id"].iloc[rows].tolist(),
        repairs={
            "model is drawn": int((jobs["model"].iloc[rows] == "").sum()),
            "job is passed over, which no longer fits": passed,
            "job is drawn again": len(rows) - len({*rows}),
        },
        options={"num_servers": num_servers, **choice},
    )


def models_of(rng: np.random.Generator, jobs: pd.DataFrame, profiles: Profiles) -> list[str]:
    """Return the model of each job; one that the trace does not name is drawn of those that were profiled."""
    known = [*profiles.throughputs]
    return [model or known[int(rng.integers(len(known)))] for model in jobs["model"].tolist()]


P = TypeVar("P", bound=Plan)


class ProfiledJobs(SensitiveJobs[P]):
    """Jobs that may be of published models; the fields are those of :class:`SensitiveJobs`."""

    @classmethod
    def from_mix(cls, rng: np.random.Generator | int, *, throughputs: Source, **options: Unpack[MixOptions]) -> Self:
        """Jobs of published models in a task mix.

        The parameters and errors are those of :func:`instances.synergy.traces.jobs_from_mix`.
        """
        jobs, origin = jobs_from_mix(rng, throughputs=throughputs, **options)
        return cls(**jobs).with_origin(origin)

    @classmethod
    def from_trace(
        cls,
        rng: np.random.Generator | int,
        *,
        throughputs: Source,
        trace: Source,
        num_servers: int = 4,
        **choice: Unpack[TraceChoice],
    ) -> Self:
        """Jobs drawn from a published trace until the GPUs are full.

        The parameters and errors are those of :func:`instances.synergy.traces.jobs_from_trace`.
        """
        jobs, origin = jobs_from_trace(rng, throughputs=throughputs, trace=trace, num_servers=num_servers, **choice)
        return cls(**jobs).with_origin(origin)
