"""Common ground of Synergy's allocation problems: jobs that are more or less sensitive to CPUs and memory.

Every job holds a fixed number of GPUs.  Its *configurations* say how much CPU and memory it may
be given beside them, and how fast it then trains.  The *GPU-proportional share* is what other
schedulers give it: CPUs and memory of a server in the proportion of its GPUs.  The *server cap* is
an assumption of section 6: a job whose GPUs one server can hold is given no more than one server's
CPUs and memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from instances import pictures
from instances.base import TOLERANCE, Instance, Plan, Violation, exceeding
from instances.schema import Array, BoolArray, FloatArray, IntArray, Ragged, Scalar, default

__all__ = [
    "CPU",
    "MEMORY",
    "ROUNDING",
    "THROUGHPUT",
    "SensitiveJobs",
    "above_server",
    "at_least_fair",
    "fastest",
    "from_matrix",
    "saturating",
    "undominated",
    "within",
    "within_server",
]

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CPU, MEMORY, THROUGHPUT = 0, 1, 2
"""Columns of a configuration."""

ROUNDING = 1e-12
"""The most that rounding may add to a demand, relative to a share or capacity: so little that sums of many stay within
the judge's tolerance.
"""


def from_matrix(throughputs: ArrayLike, cpus: ArrayLike, memory: ArrayLike, *, gpus: int = 1) -> FloatArray:
    """Make configurations of a sensitivity matrix: the paper's W_j[c, m] of a whole job, or that of one GPU.

    Parameters
    ----------
    throughputs : (c, m) array_like
        As printed, W_j[c, m]: throughput of the whole job with each of ``cpus`` and ``memory``.
    cpus, memory : (c,) and (m,) array_like
        CPU cores and memory (GB) of the whole job.
    gpus : int
        1, the default, takes the matrix as it is.  For one that was measured per GPU, as the published
        profiles were, the GPUs of the job: all three numbers of a configuration are this many times those
        of one GPU.

    Returns
    -------
    (c * m, 3) FloatArray
        CPU cores, memory (GB) and throughput of the job, row by row of the matrix.

    Raises
    ------
    ValueError
        When the shapes do not fit.

    References
    ----------
    Synergy (OSDI'22), sections 3.1 and 4.1.1.
    """
    matrix, cores, sizes = (np.asarray(values, float) for values in (throughputs, cpus, memory))
    if matrix.shape != (len(cores), len(sizes)):
        raise ValueError(f"throughputs: got shape {matrix.shape}, must be ({len(cores)}, {len(sizes)})")
    grid = np.meshgrid(cores, sizes, indexing="ij")
    configs: FloatArray = gpus * np.column_stack([grid[0].ravel(), grid[1].ravel(), matrix.ravel()])
    return configs


def undominated(configs: FloatArray) -> IntArray:
    """Return the configurations that are worth considering.

    A configuration is dominated when another one needs no more of either resource and gives at
    least as much throughput; of equal ones the first is kept.  Whatever a plan or a relaxation
    does with a dominated configuration, it can do with the dominating one.

    Parameters
    ----------
    configs : (a, 3) float

    Returns
    -------
    (b,) int
        Indices, ascending.
    """
    # Column by column, which is faster than over an axis of two.
    cpus, memory, worth = configs.T
    as_good = (cpus[:, None] <= cpus) & (memory[:, None] <= memory) & (worth[:, None] >= worth)
    order = np.arange(len(configs))
    dominated = (as_good & ((order[:, None] < order) | ~as_good.T)).any(axis=0)
    return np.flatnonzero(~dominated)


def fastest(configs: FloatArray, allowed: BoolArray) -> int:
    """Return the allowed configuration of greatest throughput, then of least CPU, memory and index; -1 if none."""
    rows = np.flatnonzero(allowed)
    if not rows.size:
        return -1
    chosen = configs[rows]
    return int(rows[np.lexsort((chosen[:, MEMORY], chosen[:, CPU], -chosen[:, THROUGHPUT]))[0]])


def saturating(configs: FloatArray, allowed: BoolArray, fair: float, tolerance: float) -> int:
    """Return the least allowed configuration that saturates the job's throughput; -1 if none is allowed (3.2).

    Of those that reach ``1 - tolerance`` of the greatest throughput and, where any does, ``fair``, the
    one of least CPU, then of least memory and index.  With a tolerance of 0 it is that of :func:`fastest`.
    """
    best = fastest(configs, allowed)
    if best < 0:
        return best
    worth = configs[:, THROUGHPUT]
    enough = allowed & (worth >= (1 - tolerance) * worth[best])
    rows = np.flatnonzero(enough & at_least_fair(configs, fair) if at_least_fair(configs, fair)[best] else enough)
    return int(rows[np.lexsort((configs[rows, MEMORY], configs[rows, CPU]))[0]])


def within_server(
    configs: FloatArray, gpus: int, server_gpus: int, server_cpus: float, server_memory: float
) -> BoolArray:
    """Mark configurations within one server's CPUs and memory, (a,) bool; all, if it does not hold the GPUs (6)."""
    if gpus > server_gpus:
        return np.ones(len(configs), bool)
    cpus, memory = server_cpus * (1 + TOLERANCE), server_memory * (1 + TOLERANCE)
    inside: BoolArray = np.asarray((configs[:, CPU] <= cpus) & (configs[:, MEMORY] <= memory))
    return inside


def within(configs: FloatArray, share: FloatArray) -> BoolArray:
    """Mark the configurations at or below a share of CPUs and memory, up to rounding, (a,) bool."""
    most = share * (1 + ROUNDING)
    inside: BoolArray = np.asarray((configs[:, CPU] <= most[CPU]) & (configs[:, MEMORY] <= most[MEMORY]))
    return inside


def at_least_fair(configs: FloatArray, fair: float) -> BoolArray:
    """Mark the configurations that give a job its fair throughput, within the tolerance, (a,) bool."""
    worth = configs[:, THROUGHPUT]
    enough: BoolArray = fair - worth <= TOLERANCE * fair
    return enough


def above_server(job: int, config: FloatArray, server_cpus: float, server_memory: float) -> Iterator[Violation]:
    """Yield the violations of one server by a configuration."""
    for name, amount, capacity in (
        ("job_cpus", config[CPU], server_cpus),
        ("job_memory", config[MEMORY], server_memory),
    ):
        for violation in exceeding(name, amount, capacity):
            yield replace(violation, index=(job,))


P = TypeVar("P", bound=Plan)


@dataclass(frozen=True, eq=False, kw_only=True)
class SensitiveJobs(Instance[P]):
    """Resource-sensitive jobs on identical servers.

    ``num_gpus`` is ``num_servers * server_gpus``.

    Attributes
    ----------
    num_servers : int
        Servers, all alike.
    server_gpus : int
        GPUs of a server.
    server_cpus, server_memory : float
        CPU cores and memory (GB) of a server.
    gpu_demands : (n,) int
        GPUs that each job holds.
    configs : tuple of n arrays (a_j, 3)
        For each job the CPU cores, memory (GB) and throughput that it may be given, each in total
        for the job.  Any one unit of throughput for all jobs.
    fair_throughputs : (n,) float
        Throughput that each job must at least have.  By default its greatest among the
        configurations at or below the GPU-proportional share in both resources.
    server_cap : bool
        Whether a job whose GPUs one server can hold is given at most one server's CPUs and memory, as
        section 6 assumes.  True by default; :meth:`uncapped` is the problem without the cap.
    """

    num_servers: Annotated[int, Scalar(int, minimum=1)]
    server_gpus: Annotated[int, Scalar(int, minimum=1)]
    server_cpus: Annotated[float, Scalar(float, minimum=0)]
    server_memory: Annotated[float, Scalar(float, minimum=0)]
    gpu_demands: Annotated[IntArray, Array(int, "n", minimum=1)]
    configs: Annotated[tuple[FloatArray, ...], Ragged(float, "n a 3", minimum=0)]
    fair_throughputs: Annotated[FloatArray, Array(float, "n", minimum=0)] = default(lambda dims: np.zeros(dims["n"]))
    server_cap: Annotated[bool, Scalar(bool)] = True

    def __post_init__(self) -> None:
        # The default needs the other fields, which are only known to be sound afterwards.
        left_out = not isinstance(self.fair_throughputs, (np.ndarray, Sequence))
        super().__post_init__()
        if left_out:
            object.__setattr__(self, "fair_throughputs", self._proportional_throughputs())

    def _proportional_throughputs(self) -> FloatArray:
        missing = np.flatnonzero(self.proportional_choices < 0)
        if missing.size:
            job = missing[0]
            cpus, memory = self.shares[job]
            raise self.refuse(
                "fair_throughputs",
                f"left out, but job {job} has no configuration at or below its GPU-proportional share of "
                f"{cpus:g} CPUs and {memory:g} GB; must be given",
            )
        fair = self.chosen(self.proportional_choices)[:, THROUGHPUT].copy()
        fair.setflags(write=False)
        return fair

    def uncapped(self) -> Self:
        """Return the same jobs without the cap of one server's CPUs and memory."""
        return replace(self, server_cap=False)

    def restricted_to(self, jobs: Sequence[int] | IntArray) -> Self:
        """Return the same cluster with some of the jobs only, in the order given: the jobs of a round, say."""
        kept = np.asarray(jobs, np.int64)
        return replace(
            self,
            gpu_demands=self.gpu_demands[kept],
            configs=tuple(self.configs[job] for job in kept.tolist()),
            fair_throughputs=self.fair_throughputs[kept],
        )

    @property
    def num_jobs(self) -> int:
        """Number of jobs, n."""
        return self.dims["n"]

    @property
    def num_gpus(self) -> int:
        """GPUs of the cluster."""
        return self.num_servers * self.server_gpus

    @cached_property
    def shares(self) -> FloatArray:
        """(n, 2) float: CPU cores and memory (GB) of each job's GPU-proportional share."""
        per_gpu = np.array([self.server_cpus, self.server_memory]) / self.server_gpus
        shares: FloatArray = self.gpu_demands[:, None] * per_gpu
        return shares

    @cached_property
    def proportional_choices(self) -> IntArray:
        """(n,) int: each job's fastest configuration at or below its share; -1 where there is none."""
        return np.array(
            [fastest(table, within(table, share)) for table, share in zip(self.configs, self.shares, strict=True)],
            np.int64,
        )

    @cached_property
    def allowed_configs(self) -> tuple[BoolArray, ...]:
        """For each job, (a_j,) bool: the configurations that the server cap allows."""
        server = (self.server_gpus, self.server_cpus, self.server_memory)
        return tuple(
            within_server(table, gpus, *server) if self.server_cap else np.ones(len(table), bool)
            for table, gpus in zip(self.configs, self.gpu_demands.tolist(), strict=True)
        )

    @cached_property
    def best_choices(self) -> IntArray:
        """(n,) int: each job's best-case demand, its fastest allowed configuration with the least resources; or -1."""
        return self.best_case()

    def best_case(self, tolerance: float = 0.0) -> IntArray:
        """Each job's best-case demand (3.2): the least CPU and memory that saturate its throughput.

        Parameters
        ----------
        tolerance : float
            How much of its greatest throughput a saturated job may lack, as a fraction.

        Returns
        -------
        (n,) int
            -1 for a job of which the server cap allows no configuration.

        Raises
        ------
        ValueError
            When the tolerance is not between 0 and 1.
        """
        if not 0 <= tolerance < 1:
            raise ValueError(f"saturation: got {tolerance!r}, must be at least 0 and below 1")
        jobs = zip(self.configs, self.allowed_configs, self.fair_throughputs.tolist(), strict=True)
        return np.array([saturating(*job, tolerance) for job in jobs], np.int64)

    @cached_property
    def fair_configs(self) -> tuple[BoolArray, ...]:
        """For each job, (a_j,) bool: the configurations that give it its fair throughput."""
        return tuple(
            at_least_fair(table, fair) for table, fair in zip(self.configs, self.fair_throughputs.tolist(), strict=True)
        )

    @cached_property
    def usable_configs(self) -> tuple[BoolArray, ...]:
        """For each job, (a_j,) bool: the configurations that are fair and that the server cap allows."""
        return tuple(fair & allowed for fair, allowed in zip(self.fair_configs, self.allowed_configs, strict=True))

    @cached_property
    def undominated(self) -> tuple[IntArray, ...]:
        """For each job, the allowed configurations that no other one dominates; of all, where none is allowed."""
        return tuple(
            rows[allowed[rows]] if allowed.any() else rows
            for rows, allowed in zip(map(undominated, self.configs), self.allowed_configs, strict=True)
        )

    def chosen(self, choices: IntArray) -> FloatArray:
        """(n, 3) float: CPU cores, memory (GB) and throughput under ``choices``; zeros for -1."""
        rows = [
            table[choice] if choice >= 0 else np.zeros(3) for table, choice in zip(self.configs, choices, strict=True)
        ]
        return np.array(rows, float).reshape(-1, 3)

    def unknown_choices(self, choices: IntArray, least: int) -> IntArray:
        """(k,) int: the jobs whose choice is no configuration of theirs, nor as low as ``least``."""
        counts = np.array([len(table) for table in self.configs])
        return np.flatnonzero((choices < least) | (choices >= counts))

    def unfair(self, choices: IntArray) -> list[Violation]:
        """Jobs whose configuration gives them less than their fair throughput."""
        return [
            Violation("fair_throughput", (job,), float(fair - self.configs[job][choice, THROUGHPUT]))
            for job, (choice, fair) in enumerate(zip(choices.tolist(), self.fair_throughputs, strict=True))
            if choice >= 0 and not self.fair_configs[job][choice]
        ]

    def above_server(self, choices: IntArray) -> Iterator[Violation]:
        """Jobs whose configuration the server cap does not allow."""
        for job, choice in enumerate(choices.tolist()):
            if choice >= 0 and not self.allowed_configs[job][choice]:
                yield from above_server(job, self.configs[job][choice], self.server_cpus, self.server_memory)

    def _draw(self, axes: Axes, plan: P | None) -> None:
        """Draw the sensitivity of each job: its throughput by the CPU cores that it is given, at best."""
        draw_sensitivity(axes, self.configs, self.gpu_demands, self.fair_throughputs)
        axes.axvline(self.server_cpus / self.server_gpus, color=pictures.OUTLINE, linestyle="--", linewidth=1.0)
        pictures.from_zero(axes, y=True)
        axes.set_xlabel("CPU cores per GPU, with memory as wanted (dashed: GPU-proportional share)")
        pictures.legend(axes, [f"job {job} ({gpus} GPU)" for job, gpus in enumerate(self.gpu_demands.tolist())])


def draw_sensitivity(
    axes: Axes,
    configs: Sequence[FloatArray],
    gpu_demands: IntArray,
    fair_throughputs: FloatArray,
    *,
    linestyle: str = "-",
) -> None:
    """Draw each job's best throughput, relative to its fair one, with up to so many CPU cores per GPU."""
    cores, speeds = [], []
    for rows, gpus, fair in zip(configs, gpu_demands.tolist(), fair_throughputs.tolist(), strict=True):
        order = np.argsort(rows[:, CPU], kind="stable")
        cores.append(rows[order, CPU] / gpus)
        speeds.append(np.maximum.accumulate(rows[order, THROUGHPUT]) / (fair or 1.0))
    last = [np.append(np.diff(x) > 0, True)[: len(x)] for x in cores]
    pictures.curves(
        axes,
        [x[keep] for x, keep in zip(cores, last, strict=True)],
        [y[keep] for y, keep in zip(speeds, last, strict=True)],
        linestyle=linestyle,
    )
    axes.axhline(1, color=pictures.OUTLINE, linewidth=0.8)
    axes.set_ylabel("throughput / fair throughput")


def draw_shares(axes: Axes, given: FloatArray, shares: FloatArray, fair_throughputs: FloatArray) -> None:
    """Draw what each job is given against its fair share, and how fast it trains with it.

    Parameters
    ----------
    axes : matplotlib Axes
    given : (n, 3) float
        CPU cores, memory (GB) and throughput of each job.
    shares : (n, 2) float
        CPU cores and memory (GB) of its GPU-proportional share.
    fair_throughputs : (n,) float
        Throughput that it must at least have.
    """
    ratios = np.divide(
        given, fair := np.column_stack([shares, fair_throughputs]), where=fair > 0, out=np.zeros_like(given)
    )
    pictures.side_by_side(axes, {"CPU cores": ratios[:, CPU], "memory": ratios[:, MEMORY], "throughput": ratios[:, 2]})
    axes.axhline(1, color=pictures.OUTLINE, linewidth=1.0, linestyle="--")
    axes.set_ylabel("what the job gets / its fair share")
