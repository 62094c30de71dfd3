"""Shares of the spare GPUs: Aryl (EuroSys'23 as Lyra), section 5.2 and Algorithm 2, lines 10 to 21.

Every elastic job holds its minimum of workers; ``capacity`` GPUs are left.  Job j can take w more
workers, up to its maximum, and then runs for a shorter time.  Choose w for every job so that the
total reduction of running time is greatest: a multiple-choice knapsack.

    max  sum_j reduction[j][w_j]    s.t.  sum_j w_j * gpus_per_worker[j] <= capacity.

Under linear scaling a job that takes T_j s at its maximum takes T_j * max_j / (min_j + w) s with
w extra workers, so the reduction is

    T_j * (max_j / min_j) * w / (w + min_j),

the paper's ``T_max * w / (w + w_min)`` with T_max the job's longest running time.

As printed / as built
---------------------
Line 17 of Algorithm 2 charges a job's base workers again, ``(w_min + w) * gpus_per_worker`` against
GPUs that are left after the base demands.  The text of section 5.2 charges the extra workers only;
so does this module.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from instances import pictures
from instances.arguments import Count, Fraction, checked
from instances.arithmetic import power, product, total
from instances.base import Instance, InstanceError, Plan, PlanError, Violation, agree, exceeding
from instances.data import microsoft
from instances.data.elasticflow import read_throughputs, throughput_curve
from instances.data.jobs import draw_first
from instances.data.lines import Source
from instances.data.origin import origin
from instances.schema import Array, FloatArray, IntArray, Ragged, Scalar

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "ElasticAllocation",
    "ElasticAllocationPlan",
    "HeterogeneousRun",
    "figure_6",
    "from_frame",
    "from_trace",
    "generate",
    "heterogeneous_training",
    "imperfect_scaling",
    "indivisible_workers",
    "mispredicted",
    "normalised_capacity",
    "table_10",
    "two_elastic_jobs",
]

MOST_EXTRA = 20_000_000
"""The most workers that all jobs together may add."""


@dataclass(frozen=True, eq=False)
class ElasticAllocationPlan(Plan):
    """Workers to add.

    Attributes
    ----------
    extra_workers : (n,) int
        Workers of each job beyond its minimum.
    """

    extra_workers: Annotated[IntArray, Array(int, "n")]


@dataclass(frozen=True, eq=False)
class ElasticAllocation(Instance[ElasticAllocationPlan]):
    """Elastic jobs and the GPUs that are left after their base demands.

    Attributes
    ----------
    capacity : int
        GPUs left, at least 0.
    min_workers, max_workers : (n,) int
        Fewest and most workers of each job; 1 <= min <= max.  What lies between them adds up to at most
        20,000,000 workers: tables have an entry for each.
    gpus_per_worker : (n,) int
        GPUs of each worker, at least 1.
    min_running_times : (n,) float
        Running time with the most workers, s; 0 for a finished job, which gains nothing.
    running_times : tuple of n arrays, optional
        For jobs that do not scale linearly: running time with min, min + 1, ..., max workers, s.
        The last entry must equal ``min_running_times``; a finished job has only zeros.  None for
        linear scaling.
    """

    problem = "aryl.elastic_allocation"
    sense = "max"
    measure = "reduction of running time, s"
    plan_type = ElasticAllocationPlan

    capacity: Annotated[int, Scalar(int, minimum=0)]
    min_workers: Annotated[IntArray, Array(int, "n", minimum=1)]
    max_workers: Annotated[IntArray, Array(int, "n", minimum=1)]
    gpus_per_worker: Annotated[IntArray, Array(int, "n", minimum=1)]
    min_running_times: Annotated[FloatArray, Array(float, "n", minimum=0)]
    running_times: Annotated[tuple[FloatArray, ...] | None, Ragged(float, "n w", minimum=0)] = None

    def _check(self) -> None:
        below = np.flatnonzero(self.max_workers < self.min_workers)
        if below.size:
            job = below[0]
            raise self.refuse(
                "max_workers",
                f"got {self.max_workers[job]} at index [{job}], must be at least min_workers, {self.min_workers[job]}",
            )
        if total(self.max_extra) > MOST_EXTRA:
            raise self.refuse(
                "max_workers",
                f"got {total(self.max_extra):,} more than min_workers in all, must be at most {MOST_EXTRA:,} more",
            )
        for job, table in enumerate(self.running_times or ()):
            wanted = int(self.max_extra[job]) + 1
            if len(table) != wanted:
                raise self.refuse("running_times", f"entry {job}: got {len(table)} times, must be {wanted}")
            if not agree(table[-1], self.min_running_times[job]):
                raise self.refuse(
                    "running_times",
                    f"entry {job}: ends with {table[-1]:g}, must end with min_running_times, "
                    f"{self.min_running_times[job]:g}",
                )
            if not table.all() and table.any():
                raise self.refuse(
                    "running_times", f"entry {job}: got 0 and {table.max():g}, must be all 0 or all greater than 0"
                )

    @property
    def num_jobs(self) -> int:
        """Number of jobs, n."""
        return self.dims["n"]

    @property
    def max_extra(self) -> IntArray:
        """(n,) int: most extra workers of each job."""
        return self.max_workers - self.min_workers

    @cached_property
    def reductions(self) -> tuple[FloatArray, ...]:
        """For each job, the reduction of its running time with 0, 1, ..., max_extra more workers, s."""
        if self.running_times is not None:
            return tuple(table[0] - table for table in self.running_times)
        longest = self.min_running_times * self.max_workers / self.min_workers
        tables = []
        for job, most in enumerate(self.max_extra):
            extra = np.arange(most + 1)
            tables.append(longest[job] * extra / (extra + self.min_workers[job]))
        return tuple(tables)

    def times(self, job: int) -> FloatArray:
        """Return the running times of a job with its minimum, minimum + 1, ..., maximum of workers, s."""
        if self.running_times is not None:
            return self.running_times[job]
        least, most = int(self.min_workers[job]), int(self.max_workers[job])
        return np.asarray(self.min_running_times[job] * most / np.arange(least, most + 1))

    def _value(self, plan: ElasticAllocationPlan) -> float:
        outside = np.flatnonzero((plan.extra_workers < 0) | (plan.extra_workers > self.max_extra))
        if outside.size:
            job = outside[0]
            raise PlanError(
                f"{self.problem}: extra_workers is {plan.extra_workers[job]} at index [{job}], "
                f"must be 0 to {self.max_extra[job]}"
            )
        return float(sum(table[extra] for table, extra in zip(self.reductions, plan.extra_workers, strict=True)))

    def _broken_rules(self, plan: ElasticAllocationPlan) -> Iterator[Violation]:
        yield from exceeding("min_extra", 0, plan.extra_workers)
        yield from exceeding("max_extra", plan.extra_workers, self.max_extra)
        yield from exceeding("capacity", product(plan.extra_workers, self.gpus_per_worker), self.capacity)

    def _draw(self, axes: Axes, plan: ElasticAllocationPlan | None) -> None:
        jobs = np.arange(self.num_jobs)
        axes.bar(jobs, self.min_workers, color=pictures.OUTLINE, alpha=0.6)
        used = ""
        if plan is not None:
            axes.bar(jobs, plan.extra_workers, bottom=self.min_workers, color=pictures.colour(0))
            used = f"{int(plan.extra_workers @ self.gpus_per_worker)} of "
        pictures.outline(axes, jobs, self.max_workers)
        pictures.number_axis(
            axes.xaxis, self.num_jobs, [f"{job}\n×{gpus}" for job, gpus in enumerate(self.gpus_per_worker.tolist())]
        )
        per_worker = " × GPUs of a worker" if self.num_jobs <= pictures.MOST_NUMBERED else ""
        axes.set_xlabel(f"job{per_worker} ({used}{self.capacity} GPUs for extra workers)")
        axes.set_ylabel("workers")
        marks: dict[str, pictures.Look] = {"minimum": {"facecolor": pictures.OUTLINE, "alpha": 0.6}}
        if plan is not None:
            marks["extra"] = {"facecolor": pictures.colour(0)}
        pictures.legend(axes, [], marks | {"maximum": {"facecolor": "none", "edgecolor": pictures.OUTLINE}})


@checked
def generate(
    rng: np.random.Generator | int,
    *,
    num_jobs: Count = 20,
    max_extra: Count = 8,
    tightness: Fraction = 0.5,
    linear: bool = True,
) -> ElasticAllocation:
    """Elastic jobs that compete for a fraction of the GPUs they could use.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    num_jobs : int
        Number of jobs, n.
    max_extra : int
        Each job can take 1 to this many extra workers.
    tightness : float
        Hardness dial from 0 to 1: the fraction of the jobs' extra demand that does not fit.  At 0
        everything fits; in between, the knapsack has to choose; at 1 nothing fits.
    linear : bool
        Linear scaling (the paper's); or tables of jobs that lose speed when their workers spill
        over to one more server of 8 GPUs, so that running times may rise before they fall.
    """
    rng = np.random.default_rng(rng)
    min_workers = rng.integers(1, 5, num_jobs)
    extra = rng.integers(1, max_extra + 1, num_jobs)
    gpus_per_worker = rng.choice([1, 2, 4, 8], num_jobs, p=[0.4, 0.3, 0.2, 0.1])
    # Durations as in the traces of these papers: minutes to days, log-uniform.
    times = np.round(60 * power(10, rng.uniform(1.0, 3.5, num_jobs)))
    max_workers = min_workers + extra
    tables = None
    if not linear:
        # Speed of w workers on k servers, in workers: w / (1 + loss * (k - 1)).
        loss = rng.uniform(0, 0.5, num_jobs)
        tables = []
        for job in range(num_jobs):
            workers = np.arange(min_workers[job], max_workers[job] + 1)
            servers = -(-workers * gpus_per_worker[job] // 8)
            speed = workers / (1 + loss[job] * (servers - 1))
            tables.append(times[job] * speed[-1] / speed)
    return ElasticAllocation(
        capacity=int((1 - tightness) * (extra @ gpus_per_worker)),
        min_workers=min_workers,
        max_workers=max_workers,
        gpus_per_worker=gpus_per_worker,
        min_running_times=times,
        running_times=None if tables is None else tuple(tables),
    )


def from_trace(
    rng: np.random.Generator | int,
    *,
    throughputs: Source,
    trace: Source,
    num_jobs: int = 20,
    scaling: int = 2,
    tightness: float = 0.5,
    columns: Mapping[str, str] | None = None,
    skip_bad_rows: bool = False,
    time: float | None = None,
) -> ElasticAllocation:
    """Consecutive jobs of a trace that can grow beyond the GPUs they ran on, at measured speeds.

    A worker is one GPU, and a job's minimum is what it held in the trace.  Its running times follow
    a curve drawn from the tables, through the trace's duration at the minimum: linear between the
    counts of GPUs that were measured, flat beyond them.  Curves need not rise or be concave; the
    problem asks for neither, and they are taken as they are.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed: it chooses the stretch of the trace, and draws curves.
    throughputs : path, open file or DataFrame
        Tables for :func:`instances.data.elasticflow.read_throughputs`, mostly a folder.
    trace : path, open file or DataFrame
        A job table for :func:`instances.data.microsoft.read_trace`, such as a raw Microsoft trace or the Tiresias
        trace.
    num_jobs : int
        Number of jobs, n.
    scaling : int
        Most workers of a job, in multiples of its minimum.
    tightness : float
        As in :func:`generate`.
    columns, skip_bad_rows, time
        As in :class:`instances.data.jobs.TraceChoice`.

    Raises
    ------
    InstanceError
        When a file is malformed, the trace has too few jobs, or no curve goes down to a job's GPUs.
    """
    if scaling < 1 or not 0 <= tightness <= 1:
        raise InstanceError(f"got scaling {scaling} and tightness {tightness}, must be at least 1, and from 0 to 1")
    rng = np.random.default_rng(rng)
    rates = read_throughputs(throughputs)
    measured: list[dict[Any, float]] = [row.dropna().to_dict() for _, row in rates.iterrows()]
    arriving = microsoft.read_trace(trace, columns=columns, skip_bad_rows=skip_bad_rows)
    first = draw_first(rng, arriving, num_jobs, time)
    jobs = arriving.iloc[first : first + num_jobs]
    min_workers = jobs["num_gpus"].to_numpy(np.int64)
    tables = []
    for held, duration in zip(min_workers.tolist(), jobs["duration"].tolist(), strict=True):
        usable = [row for row in measured if row and min(row) <= held]
        if not usable:
            raise InstanceError(f"{rates.attrs['reading']['source']}: no model was measured on {held} GPUs or fewer")
        curve = throughput_curve(usable[int(rng.integers(len(usable)))], scaling * held)
        tables.append(duration * curve[held] / curve[held:])
    return ElasticAllocation(
        capacity=int((1 - tightness) * (scaling - 1) * min_workers.sum()),
        min_workers=min_workers,
        max_workers=scaling * min_workers,
        gpus_per_worker=np.ones(num_jobs, np.int64),
        min_running_times=np.array([table[-1] for table in tables]),
        running_times=tuple(tables),
    ).with_origin(
        origin(
            "instances.aryl.elastic_allocation.from_trace",
            throughputs=rates.attrs,
            trace=arriving.attrs,
            rows=np.arange(first, first + num_jobs),
            jobs=jobs["job_id"].tolist(),
            repairs={"model and batch size are drawn": num_jobs},
            options={"num_jobs": num_jobs, "scaling": scaling, "tightness": tightness, "time": time},
        )
    )


from_frame = ElasticAllocation.from_frame


def imperfect_scaling(instance: ElasticAllocation, *, loss: float = 0.1, compounded: bool = False) -> ElasticAllocation:
    """Return the same jobs, but that lose throughput beyond the middle of their range (section 7.2, Figure 10).

    Every worker beyond the midpoint of minimum and maximum costs a further 10% of the throughput that
    the job would have without loss.

    Parameters
    ----------
    instance : ElasticAllocation
    loss : float
        Fraction lost with each such worker, 0 to 1 (0.1 in the paper).
    compounded : bool
        Whether a loss is a fraction of what the losses before it have left.  The paper can be read in
        both ways; by default losses add up, so that ten of them leave nothing.

    Raises
    ------
    ValueError
        When ``loss`` is out of range, or a job's losses add up to all of its throughput.
    """
    if not 0 <= loss < 1:
        raise ValueError(f"loss: got {loss!r}, must be at least 0 and below 1")
    tables = []
    for job, (least, most) in enumerate(zip(instance.min_workers.tolist(), instance.max_workers.tolist(), strict=True)):
        beyond = np.maximum(0, np.arange(least, most + 1) - (least + most) // 2)
        kept = power(1 - loss, beyond) if compounded else 1 - loss * beyond
        if kept[-1] <= 0:
            raise ValueError(f"loss: {beyond[-1]} losses of {loss:g} leave job {job} no throughput, compound them")
        tables.append(instance.times(job) / kept)
    return _with_times(instance, tables)


def _with_times(instance: ElasticAllocation, tables: list[FloatArray]) -> ElasticAllocation:
    """Return the same jobs with these running times on their minimum of workers, one more, and so on, s."""
    least = np.array([table[-1] for table in tables])
    return replace(instance, min_running_times=least, running_times=tuple(tables))


def heterogeneous_training(
    instance: ElasticAllocation, rng: np.random.Generator | int, *, fraction: float = 0.1, performance: float = 0.7
) -> ElasticAllocation:
    """Return the same jobs, of which some run on both kinds of GPUs as soon as they have an extra worker (section 7.1).

    Their base workers are on training servers and the extra ones on inference servers (section 6), and together they
    make a part of the throughput that so many workers would make without loss: that of ``performance``.  So an extra
    worker or two may make such a job slower.  ``capacity`` counts GPUs on loan in training GPUs
    (:func:`normalised_capacity`).

    Parameters
    ----------
    instance : ElasticAllocation
    rng : Generator or int
        Source of randomness, or its seed.
    fraction : float
        From 0 to 1: the fraction of the jobs, to the nearest job, that run on both kinds (0.1 in the scenario Advanced,
        1 in Ideal).
    performance : float
        Above 0 and at most 1: 0.7 in Advanced, for which the paper says "at most"; 1 in Ideal.

    Raises
    ------
    ValueError
        When ``fraction`` or ``performance`` is out of range.
    """
    if not 0 <= fraction <= 1:
        raise ValueError(f"fraction: got {fraction!r}, must be 0 to 1")
    if not 0 < performance <= 1:
        raise ValueError(f"performance: got {performance!r}, must be above 0 and at most 1")
    n = instance.num_jobs
    chosen = np.random.default_rng(rng).permutation(n)[: round(fraction * n)]
    tables = [instance.times(job) for job in range(n)]
    for job in chosen.tolist():
        tables[job] = np.concatenate([tables[job][:1], tables[job][1:] / performance])
    return _with_times(instance, tables)


def mispredicted(
    instance: ElasticAllocation, rng: np.random.Generator | int, *, wrong: float = 0.2, margin: float = 0.25
) -> ElasticAllocation:
    """Return the instance as a scheduler sees it whose predictions of running time are wrong (section 7.5, Table 9).

    A plan made for it is valued by the instance itself: ``instance.objective(plan)``.

    Parameters
    ----------
    instance : ElasticAllocation
    rng : Generator or int
        Source of randomness, or its seed.
    wrong : float
        Hardness dial from 0 to 1: the fraction of the jobs, to the nearest job, whose running times are
        all mispredicted by one factor.  0, 0.2, 0.4 and 0.6 in Table 9.
    margin : float
        The factors are uniform on [1 - margin, 1 + margin]; the paper says that no prediction is further
        off than 25%.

    Raises
    ------
    ValueError
        When ``wrong`` or ``margin`` is out of range.
    """
    if not 0 <= wrong <= 1:
        raise ValueError(f"wrong: got {wrong!r}, must be 0 to 1")
    if not 0 <= margin < 1:
        raise ValueError(f"margin: got {margin!r}, must be at least 0 and below 1")
    rng = np.random.default_rng(rng)
    n = instance.num_jobs
    chosen = rng.permutation(n)[: round(wrong * n)]
    factors = np.ones(n)
    factors[chosen] = rng.uniform(1 - margin, 1 + margin, len(chosen))
    tables = instance.running_times
    return replace(
        instance,
        min_running_times=instance.min_running_times * factors,
        running_times=None if tables is None else tuple(f * table for f, table in zip(factors, tables, strict=True)),
    )


def normalised_capacity(training_gpus: int, inference_gpus: int, *, speed: float = 0.25) -> int:
    """Free GPUs of both clusters in training GPUs, rounded down: the capacity of both phases (section 5.2).

    Parameters
    ----------
    training_gpus, inference_gpus : int
        Free GPUs of training servers, and of inference servers on loan.
    speed : float
        What an inference GPU is worth in training GPUs.  Table 10 takes a T4 for a quarter of a V100;
        section 7.5 takes three inference servers for one training server of as many GPUs.
    """
    return training_gpus + math.floor(inference_gpus * speed + 1e-9)


@dataclass(frozen=True)
class HeterogeneousRun:
    """A row of Table 10: a model on both kinds of GPUs.

    Attributes
    ----------
    model : str
    v100, t4 : int
        GPUs of each kind.
    theoretical, measured : float
        Throughput, where a T4 is a quarter of a V100, and as measured.
    running_time : float
        Minutes until the same validation metric is reached.
    """

    model: str
    v100: int
    t4: int
    theoretical: float
    measured: float
    running_time: float

    @property
    def degradation(self) -> float:
        """The fraction of the theoretical throughput that is lost."""
        return 1 - self.measured / self.theoretical


def table_10() -> tuple[HeterogeneousRun, ...]:
    """Table 10: three models on V100s alone, and with T4s in place of some.

    A row on V100s alone, first of its model, has the measured throughput in both columns.
    """
    rows = (
        ("ResNet-50", 16, 0, 18883, 18883, 127),
        ("ResNet-50", 12, 4, 15342, 14383, 162),
        ("ResNet-50", 8, 8, 11801, 9823, 155),
        ("ResNet-50", 4, 12, 8261, 7297, 161),
        ("GNMT", 16, 0, 791771, 791771, 35),
        ("GNMT", 12, 4, 643313, 484684, 46),
        ("GNMT", 8, 8, 494856, 436631, 47),
        ("GNMT", 4, 12, 346399, 312033, 44),
        ("BERT", 32, 0, 1572, 1572, 46),
        ("BERT", 24, 8, 1277, 923, 61),
        ("BERT", 16, 16, 982, 874, 61),
        ("BERT", 8, 24, 687, 655, 57),
    )
    return tuple(HeterogeneousRun(*row) for row in rows)


def figure_6(capacity: int = 2) -> ElasticAllocation:
    """Return the knapsack of Figure 6: the jobs of Table 4, A of 2 GPUs a worker and B of 1.

    A has 2 or 3 workers and takes 100 s on 3; B has 2 to 6 and takes 20 s on 6.  A's one item takes 2
    GPUs and saves 50 s, B's take 1 to 4 and save 20, 30, 36 and 40 s.

    Parameters
    ----------
    capacity : int
        GPUs that are left, of which section 5.2 gives no number.
    """
    return ElasticAllocation(
        capacity=capacity,
        min_workers=np.array([2, 2]),
        max_workers=np.array([3, 6]),
        gpus_per_worker=np.array([2, 1]),
        min_running_times=np.array([100.0, 20.0]),
    )


def two_elastic_jobs() -> ElasticAllocation:
    """Two jobs of different minimum that compete for two workers of one GPU.

    Both take 40 s with 4 workers; job 0 needs at least 1, job 1 at least 2.  The first extra worker
    saves job 0 80 s of 160 and job 1 26.7 s of 80, the second saves job 0 another 26.7 s: giving
    both to job 0 and giving one to each are worth the same, 320/3 s.
    """
    return ElasticAllocation(
        capacity=2,
        min_workers=np.array([1, 2]),
        max_workers=np.array([4, 4]),
        gpus_per_worker=np.array([1, 1]),
        min_running_times=np.array([40.0, 40.0]),
    )


def indivisible_workers() -> ElasticAllocation:
    """Two jobs of large workers that compete for 4 GPUs, on which the greedy choice errs.

    A worker of 3 GPUs saves job 0 90 s, 30 per GPU; a worker of 4 saves job 1 100 s, 25 per GPU.
    Only one of the two fits, and the one that saves less per GPU saves more.
    """
    return ElasticAllocation(
        capacity=4,
        min_workers=np.array([1, 1]),
        max_workers=np.array([2, 2]),
        gpus_per_worker=np.array([3, 4]),
        min_running_times=np.array([90.0, 100.0]),
    )
