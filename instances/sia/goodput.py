"""Which configuration each job has in the next round: the program of Sia (SOSP'23).

A configuration is a GPU type and a number of GPUs, and each job has at most one, or waits.  With G[j, c] the goodput of
job j on configuration c, relative to its least, r_j the part of it that a restart leaves, p the power and lambda the
penalty of a job that waits:

    min  sum_{j runs} (r_jc G[j, c])^p  +  lambda * (jobs that wait)
    s.t. sum_{j on type t} GPUs of its configuration  <=  GPUs of type t,
         r_jc = r_j where j holds another configuration than c now, else 1.

A multiple-choice knapsack with one row for each type.

As printed / as built
---------------------
The paper maximises for p > 0 and minimises for p < 0.  Less is better here for every p: with p > 0 the value is minus
the sum, and a job that waits counts nothing.  The released code rounds powers to two decimals, caps them, and gives a
configuration on which a job cannot run a goodput of 1e-4, so that its plans may have jobs there; none of that is built.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

import numpy as np

from instances import pictures
from instances.arguments import Count, Fraction, Positive, checked
from instances.arithmetic import power, total
from instances.aryl.elastic_allocation import ElasticAllocation
from instances.base import Instance, InstanceError, Plan, PlanError, Violation, exceeding
from instances.data.lines import Source
from instances.data.origin import origin
from instances.gavel.max_min_fairness import MaxMinFairness
from instances.schema import Array, BoolArray, FloatArray, IntArray, Scalar, default, quoted
from instances.sia.configurations import TrainingModel, sizes_within
from instances.sia.traces import read_goodputs, read_requests, table_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "Goodput",
    "GoodputPlan",
    "from_elastic_allocation",
    "from_frame",
    "from_trace",
    "generate",
    "one_must_wait",
    "restart_not_worth_it",
    "type_for_each",
]

CONFIGURATIONS = ("powers of two", "all")
"""Configurations that :func:`generate` has."""
SERVER_GPUS = (4, 8, 8, 4)
"""GPUs of a server of each type, by turns."""
SPEEDS = (1.0, 2.2, 5.0, 1.6)
"""How fast a type is, by turns."""


@dataclass(frozen=True, eq=False)
class GoodputPlan(Plan):
    """Configurations of the jobs.

    Attributes
    ----------
    configs : (n,) int
        Number of each job's configuration; -1 for a job that waits.
    """

    configs: Annotated[IntArray, Array(int, "n")]


@dataclass(frozen=True, eq=False, kw_only=True)
class Goodput(Instance[GoodputPlan]):
    """GPU types, configurations, and what each job makes of them.

    Attributes
    ----------
    num_gpus : (t,) int
        GPUs of each type, at least 1.
    config_types : (k,) int
        GPU type of each configuration.
    config_gpus : (k,) int
        GPUs of each configuration, at least 1.
    goodputs : (n, k) float
        Goodput of each job on each configuration, relative to its least; 0 where it cannot run.
    current : (n,) int
        Configuration that each job holds now; -1 (the default) for none.
    restart_factors : (n,) float
        Part of its goodput, above 0 and at most 1, that a job has on another configuration than its current one,
        where it has one; 1 by default.
    power : float
        Exponent of goodputs, from -1 to 1 and not 0; -0.5 by default, as in the paper.
    queue_penalty : float
        What each job that waits adds to the value, where ``power`` is below 0; 1.1 by default.
    """

    problem = "sia.goodput"
    sense = "min"
    measure = "sum of powers of goodputs, and penalties"
    plan_type = GoodputPlan

    num_gpus: Annotated[IntArray, Array(int, "t", minimum=1)]
    config_types: Annotated[IntArray, Array(int, "k", index_of="t")]
    config_gpus: Annotated[IntArray, Array(int, "k", minimum=1)]
    goodputs: Annotated[FloatArray, Array(float, "n k", minimum=0)]
    current: Annotated[IntArray, Array(int, "n", index_of="k", minimum=-1)] = default(
        lambda dims: np.full(dims["n"], -1)
    )
    restart_factors: Annotated[FloatArray, Array(float, "n", above=0)] = default(lambda dims: np.ones(dims["n"]))
    power: Annotated[float, Scalar(float, minimum=-1)] = -0.5
    queue_penalty: Annotated[float, Scalar(float, minimum=0)] = 1.1

    def _check(self) -> None:
        if self.power == 0 or self.power > 1:
            raise self.refuse("power", f"got {self.power:g}, must be below 0, or above it and at most 1")
        above = np.flatnonzero(self.restart_factors > 1)
        if above.size:
            job = above[0]
            raise self.refuse(
                "restart_factors", f"got {self.restart_factors[job]:g} at index [{job}], must be at most 1"
            )
        costs = self.costs[self.goodputs > 0]
        if not np.isfinite(costs).all():
            raise self.refuse("power", f"got {self.power:g}: the power of a goodput is not a finite number")

    @property
    def num_jobs(self) -> int:
        """Number of jobs, n."""
        return self.dims["n"]

    @property
    def num_types(self) -> int:
        """Number of GPU types, t."""
        return self.dims["t"]

    @property
    def num_configs(self) -> int:
        """Number of configurations, k."""
        return self.dims["k"]

    @cached_property
    def costs(self) -> FloatArray:
        """(n, k) float: what each job adds to the value on each configuration; infinite where it cannot run."""
        restarted = (self.current[:, None] >= 0) & (self.current[:, None] != np.arange(self.num_configs))
        left = np.where(restarted, self.restart_factors[:, None] * self.goodputs, self.goodputs)
        powers = power(np.where(self.goodputs > 0, left, 1.0), self.power)
        costs: FloatArray = np.where(self.goodputs > 0, powers if self.power < 0 else -powers, np.inf)
        return costs

    @property
    def fits(self) -> BoolArray:
        """(k,) bool: whether a configuration has no more GPUs than there are of its type."""
        fits: BoolArray = self.config_gpus <= self.num_gpus[self.config_types]
        return fits

    @property
    def waiting_cost(self) -> float:
        """What a job that waits adds to the value."""
        return self.queue_penalty if self.power < 0 else 0.0

    def gpus_used(self, plan: GoodputPlan) -> IntArray:
        """(t,) int: GPUs of each type that a plan uses."""
        held = plan.configs[(plan.configs >= 0) & (plan.configs < self.num_configs)]
        types, gpus = self.config_types[held], self.config_gpus[held]
        return np.array([total(gpus[types == kind]) for kind in range(self.num_types)])

    def max_min_fairness(self, jobs: IntArray, gpus: IntArray) -> MaxMinFairness:
        """Return Gavel's question of some of the jobs: the time of each on each type, on a fixed number of GPUs.

        A throughput is the goodput on as many GPUs of the type, 0 where the job cannot run or there are too few.

        Parameters
        ----------
        jobs : (j,) int
        gpus : (j,) int
            GPUs of each of these jobs, at least 1.
        """
        throughputs = np.zeros((len(jobs), self.num_types))
        for config in np.flatnonzero(self.fits).tolist():
            kind, there = self.config_types[config], gpus == self.config_gpus[config]
            throughputs[there, kind] = np.maximum(throughputs[there, kind], self.goodputs[jobs[there], config])
        return MaxMinFairness(throughputs=throughputs, num_workers=self.num_gpus, scale_factors=gpus)

    def _value(self, plan: GoodputPlan) -> float:
        unknown = np.flatnonzero((plan.configs < -1) | (plan.configs >= self.num_configs))
        if unknown.size:
            job = unknown[0]
            raise PlanError(
                f"{self.problem}: configs is {plan.configs[job]} at index [{job}], must be -1 to {self.num_configs - 1}"
            )
        runs = np.flatnonzero(plan.configs >= 0)
        waiting = self.num_jobs - len(runs)
        return float(sum(self.costs[runs, plan.configs[runs]].tolist()) + self.waiting_cost * waiting)

    def _broken_rules(self, plan: GoodputPlan) -> Iterator[Violation]:
        yield from exceeding("config_exists", -1, plan.configs)
        yield from exceeding("config_exists", plan.configs, self.num_configs - 1)
        known = np.flatnonzero((plan.configs >= 0) & (plan.configs < self.num_configs))
        for job in known[self.goodputs[known, plan.configs[known]] <= 0].tolist():
            yield Violation("runs_there", (job,), 1.0)
        yield from exceeding("gpus", self.gpus_used(plan), self.num_gpus)

    def _draw(self, axes: Axes, plan: GoodputPlan | None) -> None:
        configs = self.current if plan is None else plan.configs
        jobs = np.arange(self.num_jobs)
        known = np.flatnonzero((configs >= 0) & (configs < self.num_configs))
        gpus = np.zeros(self.num_jobs, np.int64)
        gpus[known] = self.config_gpus[configs[known]]
        kinds = self.config_types[configs[known]]
        for kind in range(self.num_types):
            on = known[kinds == kind]
            axes.bar(on, gpus[on], color=pictures.colour(kind))
        if plan is not None:
            held = np.flatnonzero(self.current >= 0)
            before = np.zeros(self.num_jobs, np.int64)
            before[held] = self.config_gpus[self.current[held]]
            pictures.outline(axes, jobs, before)
        pictures.number_axis(axes.xaxis, self.num_jobs)
        used = self.gpus_used(GoodputPlan(configs=configs)).tolist()
        marks: dict[str, pictures.Look] = {
            f"type {kind}: {there} of {gpus} GPUs": {"facecolor": pictures.colour(kind)}
            for kind, (there, gpus) in enumerate(zip(used, self.num_gpus.tolist(), strict=True))
        }
        if plan is not None:
            marks["held now"] = {"facecolor": "none", "edgecolor": pictures.OUTLINE}
        axes.set_xlabel("job")
        axes.set_ylabel("GPUs" if plan is not None else "GPUs held now")
        pictures.legend(axes, [], marks)


@checked
def generate(
    rng: np.random.Generator | int,
    *,
    num_jobs: Count = 20,
    num_types: Count = 3,
    gpus_per_job: Positive = 1.0,
    running: Fraction = 0.5,
    power: float = -0.5,
    configurations: str = "powers of two",
) -> Goodput:
    """Jobs on several GPU types, some of which run already.

    Goodputs follow from Pollux's model (:class:`instances.sia.configurations.TrainingModel`); its parameters are drawn
    from ranges of this library's, not fitted to measurements.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    num_jobs : int
        Number of jobs, n.
    num_types : int
        GPU types, of servers of 4, 8, 8, 4, ... GPUs.
    gpus_per_job : float
        Hardness dial: GPUs for each job; each type has about as many, in whole servers.
    running : float
        Part of the jobs that hold a configuration now.
    power : float
        As the instance has it.
    configurations : str
        "powers of two", below a server, and whole servers beyond, as in the paper; or "all" numbers of GPUs up to 64.
        The jobs, with what they hold now and the goodputs that both have, are the same for the same seed.

    Raises
    ------
    InstanceError
        When there are no such configurations.
    """
    if configurations not in CONFIGURATIONS:
        raise InstanceError(
            f"configurations: got {quoted(configurations)}, must be one of {', '.join(map(repr, CONFIGURATIONS))}"
        )
    rng = np.random.default_rng(rng)
    types, gpus, servers, papers, num_gpus = [], [], [], [], []
    for kind in range(num_types):
        size = SERVER_GPUS[kind % len(SERVER_GPUS)]
        count = max(1, round(gpus_per_job * num_jobs / num_types / size))
        restricted = sizes_within(size, count)
        sizes = list(range(1, restricted[-1] + 1)) if configurations == "all" else restricted
        types += [kind] * len(sizes)
        gpus += sizes
        servers += [-(-one // size) for one in sizes]
        papers += [one in restricted for one in sizes]
        num_gpus.append(size * count)
    config_types, config_gpus, in_paper = np.array(types), np.array(gpus), np.array(papers)
    goodputs = np.array(
        [_drawn_goodputs(rng, config_types, config_gpus, np.array(servers), in_paper) for _ in range(num_jobs)]
    )
    holds = rng.random(num_jobs) < running
    current = np.full(num_jobs, -1)
    left = list(num_gpus)
    for job in np.flatnonzero(holds).tolist():
        able = [
            config
            for config in np.flatnonzero((goodputs[job] > 0) & in_paper).tolist()
            if config_gpus[config] <= min(left[types[config]], 8)
        ]
        if able:
            current[job] = rng.choice(able)
            left[types[current[job]]] -= gpus[current[job]]
    return Goodput(
        num_gpus=np.array(num_gpus),
        config_types=config_types,
        config_gpus=config_gpus,
        goodputs=goodputs,
        current=current,
        restart_factors=np.round(rng.uniform(0.5, 1.0, num_jobs), 3),
        power=power,
    )


def _drawn_goodputs(
    rng: np.random.Generator, types: IntArray, gpus: IntArray, servers: IntArray, in_paper: BoolArray
) -> FloatArray:
    """(k,) float: goodputs of a job that is drawn, relative to its least of the paper's, to four decimals."""
    least = float(2 ** rng.integers(3, 8))
    batches = least, least * float(2 ** rng.integers(2, 7))
    per_gpu = least * float(2 ** rng.integers(0, 3))
    noise = least * float(0.5 * power(100, rng.random()))
    heavy = float(0.5 * power(40, rng.random())) / least
    synced = float(rng.uniform(0.02, 0.4))
    found = np.zeros(len(types))
    for kind in range(int(types.max()) + 1):
        speed = SPEEDS[kind % len(SPEEDS)] * float(rng.uniform(0.8, 1.25))
        at = types == kind
        model = TrainingModel(
            per_step=0.05 / speed,
            per_example=heavy / speed,
            within=0.3 * synced,
            more_within=0.02 * synced,
            across=synced,
            more_across=0.05 * synced,
            overlap=float(rng.uniform(1.0, 5.0)),
        )
        found[at] = model.goodputs(gpus[at], servers[at], batches, per_gpu, noise)
    positive = found[(found > 0) & in_paper]
    scaled: FloatArray = np.round(found / positive.min(), 4) if positive.size else found
    return scaled


def from_trace(
    rng: np.random.Generator | int,
    *,
    throughputs: Source,
    trace: Source,
    num_jobs: int = 20,
    gpu_types: Sequence[str] | None = None,
    num_gpus: int | Sequence[int] | None = None,
    server_gpus: int | Sequence[int] = 4,
    running: float = 0.5,
    restart_seconds: float = 30.0,
    epoch: int = 1,
    power: float = -0.5,
    columns: Mapping[str, str] | None = None,
    skip_bad_rows: bool = False,
) -> Goodput:
    """Jobs of a trace, in the round in which the last of them arrives, with the goodputs of published tables.

    A job's goodput on a configuration is that of its model on as many GPUs of the type, relative to its least on the
    configurations; what the tables lack does not run.  None has ended or been restarted yet.  A part of the jobs hold
    the greatest configuration of at most the GPUs that they ask for, on a type that is drawn, where its GPUs suffice.
    A restart leaves a job of so many seconds ``seconds / (seconds + restart_seconds)``, and all where it is younger
    than a restart takes.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed: it chooses the stretch of the trace, models where the trace names none, and
        what jobs hold.
    throughputs : path, open file or DataFrame
        A table of Gavel's, or a folder of Sia's profiles (:func:`instances.sia.traces.read_goodputs`).
    trace : path, open file or DataFrame
        A trace of Gavel's, a job table, or a workload of Sia's (:func:`instances.sia.traces.read_requests`).
    num_jobs : int
        Number of jobs, n, one after the other among those of models that the table has.
    gpu_types : sequence of str, optional
        Types; by default all of the table, in alphabetical order.
    num_gpus : int or sequence of int, optional
        GPUs of each type, in whole servers; by default about as many in all as there are jobs, at least a server each.
    server_gpus : int or sequence of int
        GPUs of a server of each type.
    running : float
        Part of the jobs that hold a configuration now.
    restart_seconds : float
        What a restart takes, s; 30 in the released code but for some models.
    epoch : int
        As in :func:`instances.sia.traces.read_goodputs`.
    power : float
        As the instance has it.
    columns, skip_bad_rows
        As in :class:`instances.data.jobs.TraceChoice`.

    Raises
    ------
    InstanceError
        When a file is malformed, a type is unknown, or the trace has too few jobs of the table's models.
    """
    rng = np.random.default_rng(rng)
    table = read_goodputs(throughputs, epoch=epoch)
    known = sorted(set(table["gpu_type"]))
    names = known if gpu_types is None else list(gpu_types)
    for name in names:
        if name not in known:
            raise InstanceError(f"gpu_types: got {quoted(name)}, must be of {', '.join(known)}")
    if not 0 <= running <= 1 or restart_seconds < 0:
        raise InstanceError(
            f"got running {running:g} and restart_seconds {restart_seconds:g}, must be 0 to 1, and at least 0"
        )
    servers = _of_each("server_gpus", server_gpus, names)
    there = None if num_gpus is None else _of_each("num_gpus", num_gpus, names)
    counts = [max(1, round(num_jobs / len(names) / size)) for size in servers]
    for kind, size in enumerate(servers if there is not None else ()):
        if there is not None and (there[kind] < size or there[kind] % size):
            raise InstanceError(f"num_gpus: got {there[kind]} of {names[kind]}, must be whole servers of {size} GPUs")
    if there is not None:
        counts = [gpus // size for gpus, size in zip(there, servers, strict=True)]
    sizes = [sizes_within(size, count) for size, count in zip(servers, counts, strict=True)]
    config_types = np.repeat(np.arange(len(names)), list(map(len, sizes)))
    config_gpus = np.concatenate(sizes)
    of_type = [table_of(table, name) for name in names]
    made = {
        model: np.array(
            [of_type[kind].get((model, gpus), 0.0) for kind, gpus in zip(config_types, config_gpus, strict=True)]
        )
        for model in sorted(set(table["model"]))
    }
    made = {model: found / found[found > 0].min() for model, found in made.items() if found.any()}
    arriving = read_requests(trace, columns=columns, skip_bad_rows=skip_bad_rows)
    models = arriving["model"].tolist()
    drawn = [row for row, model in enumerate(models) if model == ""]
    for row in drawn if made else ():
        models[row] = list(made)[int(rng.integers(len(made)))]
    listed = np.flatnonzero([model in made for model in models])
    listed = listed[np.argsort(arriving["arrival"].to_numpy(float)[listed], kind="stable")]
    if not 1 <= num_jobs <= len(listed):
        raise InstanceError(
            f"num_jobs: got {num_jobs}, must be 1 to {len(listed)}, the number of jobs in "
            f"{arriving.attrs['reading']['source']} of models that run on these configurations, such as "
            f"{', '.join(list(made)[:3])}"
        )
    first = int(rng.integers(len(listed) - num_jobs + 1))
    rows = listed[first : first + num_jobs]
    arrivals = arriving["arrival"].to_numpy(float)[rows]
    asked = arriving["scale_factor"].to_numpy(np.int64)[rows]
    goodputs = np.array([made[models[row]] for row in rows.tolist()])
    current, left = np.full(num_jobs, -1), np.array(counts) * np.array(servers)
    for job in np.flatnonzero(rng.random(num_jobs) < running).tolist():
        kind = int(rng.integers(len(names)))
        able = (goodputs[job] > 0) & (config_types == kind) & (config_gpus <= min(int(asked[job]), int(left[kind])))
        if able.any():
            current[job] = np.flatnonzero(able)[-1]
            left[kind] -= config_gpus[current[job]]
    ages = arrivals[-1] - arrivals
    return Goodput(
        num_gpus=np.array(counts) * np.array(servers),
        config_types=config_types,
        config_gpus=config_gpus,
        goodputs=goodputs,
        current=current,
        restart_factors=_restart_factors(ages, restart_seconds),
        power=power,
    ).with_origin(
        origin(
            "instances.sia.goodput.from_trace",
            throughputs=table.attrs,
            trace=arriving.attrs,
            rows=rows,
            repairs={
                "job of the trace left out, whose model the table lacks": len(arriving) - len(listed),
                "model is drawn": len(set(drawn) & set(rows.tolist())),
                "what the job holds is drawn": int((current >= 0).sum()),
            },
            options={
                "num_jobs": num_jobs,
                "gpu_types": names,
                "num_gpus": num_gpus,
                "server_gpus": server_gpus,
                "running": running,
                "restart_seconds": restart_seconds,
                "epoch": epoch,
                "power": power,
            },
        )
    )


def _restart_factors(ages: FloatArray, restart_seconds: float) -> FloatArray:
    """(n,) float: what a restart leaves of the goodput of jobs that never had one, by their ages, s."""
    # A job that is younger than a restart takes would have next to nothing left.
    free = (ages < restart_seconds) | (ages == 0)
    return np.where(free, 1.0, ages / np.where(free, 1.0, ages + restart_seconds))


def _of_each(name: str, given: int | Sequence[int], types: Sequence[str]) -> list[int]:
    """Return a number for each type, of one for all or of as many."""
    numbers = [given] * len(types) if isinstance(given, int) else list(given)
    if len(numbers) != len(types) or min(numbers, default=0) < 1:
        raise InstanceError(
            f"{name}: got {quoted(numbers)}, must be a number from 1, or one for each of {', '.join(types)}"
        )
    return numbers


def from_elastic_allocation(elastic: ElasticAllocation) -> Goodput:
    """Return Aryl's question of spare GPUs (:mod:`instances.aryl.elastic_allocation`) as one of a single GPU type.

    With the power 1, the reduction of a job's running time by so many GPUs of extra workers for its goodput on them,
    and a job that gets none as one that waits, a plan is worth minus what Aryl's is worth, and feasible where that one
    is.  GPUs that make no whole number of a job's workers, are more than it can take, or do not shorten it, are none on
    which it runs here.  A job's number of extra workers is the GPUs of its configuration over those of a worker.
    """
    taken = [gpus * np.arange(1, len(of)) for gpus, of in zip(elastic.gpus_per_worker, elastic.reductions, strict=True)]
    sizes = np.unique(np.concatenate([np.ones(1, np.int64), *taken]))
    sizes = sizes[sizes <= max(1, elastic.capacity)]
    goodputs = np.zeros((elastic.num_jobs, len(sizes)))
    for job, (gpus, reductions) in enumerate(zip(taken, elastic.reductions, strict=True)):
        fit = gpus <= elastic.capacity
        goodputs[job, np.searchsorted(sizes, gpus[fit])] = np.maximum(reductions[1:][fit], 0.0)
    return Goodput(
        # Where none is left, nobody runs on one either.
        num_gpus=np.array([max(1, elastic.capacity)]),
        config_types=np.zeros(len(sizes), np.int64),
        config_gpus=sizes,
        goodputs=goodputs,
        power=1.0,
    )


from_frame = Goodput.from_frame


def one_must_wait() -> Goodput:
    """Two jobs and one GPU: the one that runs has its least goodput and costs 1, the one that waits 1.1, 2.1 in all."""
    return Goodput(
        num_gpus=np.array([1]),
        config_types=np.array([0]),
        config_gpus=np.array([1]),
        goodputs=np.array([[1.0], [1.0]]),
    )


def type_for_each() -> Goodput:
    """Two jobs and two GPU types of two GPUs: one job is four times as fast on the second type, the other is not.

    With each on two GPUs of its type, goodputs are 8 and 2, and the value is 8^-0.5 + 2^-0.5 = 1.0607; the other way
    round they are 2 and 2.
    """
    return Goodput(
        num_gpus=np.array([2, 2]),
        config_types=np.array([0, 0, 1, 1]),
        config_gpus=np.array([1, 2, 1, 2]),
        goodputs=np.array([[1.0, 2.0, 4.0, 8.0], [1.0, 2.0, 1.0, 2.0]]),
    )


def restart_not_worth_it() -> Goodput:
    """One job, which a GPU more would make 1.5 times as fast, but a restart leaves with 0.6 of that.

    It stays: 1 instead of (0.9)^-0.5 = 1.054.
    """
    held = type_for_each()
    return replace(
        held,
        num_gpus=np.array([2]),
        config_types=np.array([0, 0]),
        config_gpus=np.array([1, 2]),
        goodputs=np.array([[1.0, 1.5]]),
        current=np.array([0]),
        restart_factors=np.array([0.6]),
    )
