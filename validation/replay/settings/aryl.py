"""Aryl (EuroSys'23 as Lyra): elastic jobs on training servers, and on inference servers that are on loan.

What is the paper's: the inference cluster says how many of its servers are on loan, and when it wants some back
(section 4); which go back is Aryl's choice, and jobs with base workers on them are preempted (Algorithm 1).  Jobs then
start on their base demands, and run without interruption until servers are reclaimed; the GPUs that are left go to
flexible workers, which can be scaled in at any time (section 5.2, Algorithm 2, both phases).  The capacity of both
phases counts GPUs on loan in training GPUs, ``inference_speed`` of one each.  Workers are placed on few servers,
non-empty ones before others, elastic jobs on those on loan where that costs none, flexible workers apart from others
there (section 5.3).

Everything is decided anew at every arrival, every completion and every change of the loan; one decision asks, in this
order and each only where there is something to decide,

1. ``aryl.reclaim``: which servers go back (default "flexible_first");
2. ``aryl.base_allocation``: which waiting jobs start now (default "shortest_job_first"), those that its plan begins at
   0 s;
3. ``aryl.placement``: where their base workers go (default "best_fit_decreasing");
4. ``aryl.elastic_allocation``: how many flexible workers each elastic job gets (default "dynamic_program");
5. ``aryl.placement`` again: where these go.

Work is the time of one worker on a training GPU.  Jobs scale linearly (section 5), and workers on servers on loan count
with ``inference_speed`` of one.

As printed / as built
---------------------
- The paper schedules periodically, "in high frequency"; here at events, between which nothing changes.
- Any job may run on any server, on both kinds at once too, without a loss: the paper's Ideal scenario.  A worker takes
  as many GPUs on a server on loan, and is slower there: what the normalised capacity gives out may leave GPUs on loan
  idle.
- All jobs have checkpoints: a preempted job keeps its work and pays for its restart.  One that starts elsewhere at once
  is a migration in the table of jobs; how many were preempted is the value of the decisions of ``aryl.reclaim``.
- While no job is there the loan is not followed: what is on loan is told when one comes.
- Flexible workers come and go for free, and are placed anew in every decision.  Those that find no server are left out,
  and so is a job, until the next decision, of whose base workers one does not.
- Waiting jobs that the capacity cannot hold are no part of the instance of phase one.  With ``overtake=False`` nor are
  those behind them, as under the paper's Baseline, which is first in, first out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypedDict, Unpack

import numpy as np

from instances.aryl.base_allocation import BaseAllocation
from instances.aryl.elastic_allocation import ElasticAllocation, normalised_capacity
from instances.aryl.placement import ArylPlacement
from instances.aryl.reclaim import Reclaim
from instances.base import TOLERANCE
from instances.schema import BoolArray, FloatArray, IntArray
from validation.errors import ReplayError
from validation.replay.engine import Ask, Decide, Decision, Jobs, State
from validation.replay.plans import accepted
from validation.replay.ways import Ways
from validation.replay.workloads import in_order, poisson

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["NEVER", "PROBLEMS", "Aryl", "Loans", "daily", "four_servers", "from_jobs", "generate"]

PROBLEMS = ("aryl.elastic_allocation", "aryl.reclaim", "aryl.base_allocation", "aryl.placement")

DAY = 86_400.0
"""Length of a day, s."""


@dataclass(frozen=True, eq=False)
class Loans:
    """Number of inference servers on loan, a step function of time.

    Attributes
    ----------
    times : (k,) float
        When their number changes, s, rising, the first one 0.
    servers : (k,) int
        Servers on loan from then on.
    period : float
        s after which it begins again; infinite for a last number that stays.

    Raises
    ------
    ReplayError
        When times do not rise from 0 to below the period, or a number is below 0.
    """

    times: FloatArray
    servers: IntArray
    period: float = math.inf

    def __post_init__(self) -> None:
        object.__setattr__(self, "times", np.array(self.times, float))
        object.__setattr__(self, "servers", np.array(self.servers, np.int64))
        times = self.times
        if times.ndim != 1 or times.shape != self.servers.shape or not len(times):
            raise ReplayError(
                f"loans: got {times.size} times and {self.servers.size} numbers, must be as many, at least 1"
            )
        if times[0] != 0 or not (np.diff(times) > 0).all() or not times[-1] < self.period:
            raise ReplayError(f"loans: times must rise from 0 to below the period, got {times.tolist()}")
        if (self.servers < 0).any():
            raise ReplayError(f"loans: got {self.servers.min()} servers, must be at least 0")

    def at(self, now: float) -> int:
        """Return the servers on loan at a time."""
        return int(self.servers[self._step(now)[1]])

    def next(self, now: float) -> float:
        """Return the next time at which the number may change, s; infinite for never."""
        begun, step = self._step(now)
        if step + 1 < len(self.times):
            return begun + float(self.times[step + 1])
        return begun + self.period

    def _step(self, now: float) -> tuple[float, int]:
        """Return the beginning of the period of a time, and the step in it."""
        # A time that this has told may have been rounded down.
        now += 2 * math.ulp(now)
        begun = 0.0 if math.isinf(self.period) else math.floor(now / self.period) * self.period
        return begun, int(np.searchsorted(begun + self.times, now, side="right")) - 1


NEVER = Loans(np.zeros(1), np.zeros(1, np.int64))
"""Loan of no server, ever."""


def daily(num_servers: int, *, least: int = 0, steps: int = 24, quiet: float = 4.0) -> Loans:
    """Return a loan of a daily shape: most servers are on loan at a quiet hour, fewest half a day later.

    A cosine, made for examples; the paper's own demand is in its Figure 1 only.

    Parameters
    ----------
    num_servers, least : int
        Most and fewest servers on loan.
    steps : int
        Changes a day.
    quiet : float
        Hour of the most, from the beginning of the replay's day.
    """
    hours = np.arange(steps) * 24 / steps
    share = (1 + np.cos(2 * np.pi * (hours - quiet) / 24)) / 2
    return Loans(hours * 3600, np.round(least + (num_servers - least) * share).astype(np.int64), DAY)


class Cluster(TypedDict, total=False):
    """Cluster of a workload: fields of :class:`Aryl`."""

    num_servers: int
    loans: Loans
    server_gpus: int
    inference_speed: float
    problem: str
    overtake: bool
    estimates: FloatArray


@dataclass(frozen=True, eq=False)
class Aryl:
    """Jobs of base and flexible workers on training servers and servers on loan.

    Attributes
    ----------
    jobs : Jobs
        Work in seconds of one worker on a training GPU.
    min_workers, max_workers, gpus_per_worker : (n,) int
        As in :class:`instances.aryl.elastic_allocation.ElasticAllocation`; the minimum is the base demand.
    num_servers : int
        Training servers.
    loans : Loans
        Inference servers on loan; by default never one.
    server_gpus : int
        GPUs of each server of either kind.
    inference_speed : float
        Speed of a worker on a server on loan, above 0 and at most 1.
    problem : str
        Whose decision maker is compared.
    overtake : bool
        Whether a waiting job that the idle GPUs cannot hold lets others pass.
    estimates : (n,) float, optional
        How many times its running time the decision makers take each job's to be; once by default.
    name : str
        Name of the setting in tables.

    Raises
    ------
    ReplayError
        When a job does not fit on the empty training servers, sizes differ, or a number means nothing.
    """

    jobs: Jobs
    min_workers: IntArray
    max_workers: IntArray
    gpus_per_worker: IntArray
    num_servers: int
    loans: Loans = NEVER
    server_gpus: int = 8
    inference_speed: float = 1.0
    problem: str = PROBLEMS[0]
    overtake: bool = True
    estimates: FloatArray | None = None
    name: str = "aryl"

    def __post_init__(self) -> None:
        estimates = np.ones(len(self.jobs)) if self.estimates is None else np.array(self.estimates, float)
        if estimates.shape != (len(self.jobs),) or not (estimates > 0).all():
            raise ReplayError(f"estimates: must be a number above 0 for each of {len(self.jobs)} jobs")
        object.__setattr__(self, "estimates", estimates)
        for name in ("min_workers", "max_workers", "gpus_per_worker"):
            values = np.array(getattr(self, name), np.int64)
            object.__setattr__(self, name, values)
            if values.shape != (len(self.jobs),) or (values < 1).any():
                raise ReplayError(f"{name}: must be a whole number for each of {len(self.jobs)} jobs, at least 1")
        if self.problem not in PROBLEMS:
            raise ReplayError(f"problem: got {self.problem!r}, must be one of {', '.join(PROBLEMS)}")
        if not 0 < self.inference_speed <= 1:
            raise ReplayError(f"inference_speed: got {self.inference_speed}, must be above 0 and at most 1")
        less = np.flatnonzero(self.max_workers < self.min_workers)
        if less.size:
            raise ReplayError(f"max_workers: job {self.jobs.names[less[0]]} has fewer than min_workers")
        room = self.num_servers * (self.server_gpus // self.gpus_per_worker)
        wide = np.flatnonzero(self.min_workers > room)
        if wide.size:
            job = int(wide[0])
            raise ReplayError(
                f"job {self.jobs.names[job]} has {self.min_workers[job]} workers of {self.gpus_per_worker[job]} GPUs, "
                f"the training servers hold {room[job]}"
            )

    @property
    def loanable(self) -> int:
        """Inference servers that are ever on loan."""
        return int(self.loans.servers.max())

    @property
    def capacity(self) -> FloatArray:
        """GPUs of each server, (s,) float, those of the training cluster first."""
        return np.full(self.num_servers + self.loanable, float(self.server_gpus))

    all_run = True

    def begin(self) -> Decide:
        """Return the function that decides in one replay."""
        return _Scheduler(self)

    def ways(self) -> Ways:
        """Return each job on its most workers, on training servers or on all servers that are ever on loan."""
        most, size, speed = self.max_workers.tolist(), self.gpus_per_worker.tolist(), self.inference_speed
        on_training = ((job, float(many), (many * size[job], 0)) for job, many in enumerate(most))
        on_loan = ((job, many * speed, (0, many * size[job])) for job, many in enumerate(most))
        return Ways.alone(
            self.server_gpus * np.array([self.num_servers, self.loanable]),
            [*on_training, *(on_loan if self.loanable else ())],
        )

    def slots(self) -> None:
        """Return None: no job has a deadline that counts."""

    def equal_rates(self, jobs: IntArray) -> FloatArray:
        """Return the workers of each job on an m-th of the training GPUs, at most its maximum, (m,) float."""
        share = self.num_servers * self.server_gpus / len(jobs)
        rates: FloatArray = np.minimum(self.max_workers[jobs], share / self.gpus_per_worker[jobs])
        return rates


class _Scheduler:
    """Decisions of one replay: the places of the workers, and the servers that are on loan."""

    def __init__(self, setting: Aryl) -> None:
        self.setting = setting
        n, servers = len(setting.jobs), setting.num_servers + setting.loanable
        self.training = np.arange(servers) < setting.num_servers
        self.there = self.training.copy()
        self.base, self.flexible = np.zeros((2, n, servers), np.int64)
        # Which run of a job this is: what tells a restart from a change of flexible workers.
        self.runs = np.zeros(n, np.int64)
        # Those that are there; what others held is not looked at any more.
        self.jobs = np.zeros(0, np.int64)

    def __call__(self, state: State, ask: Ask) -> Decision:
        setting, jobs = self.setting, state.jobs
        self.jobs = jobs
        self._loan_or_reclaim(setting.loans.at(state.now), ask)
        self.flexible[jobs] = 0
        self._start(state, ask)
        self._scale_out(state, ask)
        workers = self.base[jobs] + self.flexible[jobs]
        speed = np.where(self.training, 1.0, setting.inference_speed)
        return Decision(
            rates=workers.astype(float) @ speed,
            gpus=(workers * setting.gpus_per_worker[jobs, None]).astype(float),
            placements=self.runs[jobs],
            until=setting.loans.next(state.now),
            capacity=np.where(self.there, float(setting.server_gpus), 0.0),
        )

    def _estimated(self, state: State) -> FloatArray:
        """Return the work that each job is taken to have left, (m,) float."""
        assert self.setting.estimates is not None
        estimated: FloatArray = state.left * self.setting.estimates[state.jobs]
        return estimated

    def _capacity(self, free: IntArray) -> int:
        """Return free GPUs in training GPUs, as section 5.2 counts them."""
        on_loan = int(free[~self.training].sum())
        return normalised_capacity(int(free[self.training].sum()), on_loan, speed=self.setting.inference_speed)

    def _free(self) -> IntArray:
        """Return the GPUs of each server that no worker holds, (s,) int."""
        held = self.setting.gpus_per_worker[self.jobs] @ (self.base[self.jobs] + self.flexible[self.jobs])
        free: IntArray = np.where(self.there, self.setting.server_gpus, 0) - held
        return free

    # --- loans (section 4) ---

    def _loan_or_reclaim(self, wanted: int, ask: Ask) -> None:
        jobs, on_loan = self.jobs, np.flatnonzero(self.there & ~self.training)
        if wanted > len(on_loan):
            lent = np.flatnonzero(~self.there)[: wanted - len(on_loan)]
            self.there[lent] = True
            return
        if wanted == len(on_loan):
            return
        demand = len(on_loan) - wanted
        workers = self.base[np.ix_(jobs, on_loan)] + self.flexible[np.ix_(jobs, on_loan)]
        here = jobs[workers.any(axis=1)]
        returned = on_loan[wanted:]
        if len(here):
            instance = Reclaim(
                hosts=self.base[np.ix_(here, on_loan)] > 0,
                gpus=workers[workers.any(axis=1)] * self.setting.gpus_per_worker[here, None],
                demand=demand,
            )
            plan = accepted(instance, ask(instance, default="flexible_first", jobs=here))
            returned = on_loan[plan.servers]
            preempted = here[instance.preempted(plan)]
            self.base[preempted] = self.flexible[preempted] = 0
        self.there[returned] = False

    # --- phase one (section 5.2) ---

    def _start(self, state: State, ask: Ask) -> None:
        setting = self.setting
        free = self._free()
        capacity = self._capacity(free)
        order = np.argsort(state.arrivals, kind="stable")
        waiting = order[~self.base[state.jobs[order]].any(axis=1)]
        demands = (setting.min_workers * setting.gpus_per_worker)[state.jobs]
        fits = demands[waiting] <= capacity
        waiting = waiting[fits if setting.overtake else np.logical_and.accumulate(fits)]
        if not len(waiting):
            return
        instance = BaseAllocation(
            capacity=capacity,
            gpu_demands=demands[waiting],
            running_times=self._estimated(state)[waiting] / setting.min_workers[state.jobs[waiting]],
        )
        plan = accepted(instance, ask(instance, default="shortest_job_first", jobs=state.jobs[waiting]))
        first = plan.starts <= TOLERANCE * instance.running_times
        jobs = state.jobs[waiting[first]]
        placed = self._placed(jobs, setting.min_workers[jobs], free, np.zeros(len(jobs), bool), ask)
        whole = placed.sum(axis=1) == setting.min_workers[jobs]
        self.base[jobs[whole]] = placed[whole]
        self.runs[jobs[whole]] += 1

    # --- phase two (section 5.2) ---

    def _scale_out(self, state: State, ask: Ask) -> None:
        setting, jobs = self.setting, state.jobs
        runs = self.base[jobs].any(axis=1) & (setting.max_workers[jobs] > setting.min_workers[jobs])
        # On servers on loan flexible workers are kept apart from base workers.
        free = np.where(self.training | ~self.base[jobs].any(axis=0), self._free(), 0)
        rows, elastic = np.flatnonzero(runs), jobs[runs]
        capacity = self._capacity(free)
        if not len(elastic) or capacity < setting.gpus_per_worker[elastic].min():
            return
        instance = ElasticAllocation(
            capacity=capacity,
            min_workers=setting.min_workers[elastic],
            max_workers=setting.max_workers[elastic],
            gpus_per_worker=setting.gpus_per_worker[elastic],
            min_running_times=self._estimated(state)[rows] / setting.max_workers[elastic],
        )
        extra = accepted(instance, ask(instance, default="dynamic_program", jobs=elastic)).extra_workers
        grown = extra > 0
        if grown.any():
            self.flexible[elastic[grown]] = self._placed(
                elastic[grown], extra[grown], free, np.ones(int(grown.sum()), bool), ask
            )

    # --- placement (section 5.3) ---

    def _placed(self, jobs: IntArray, workers: IntArray, free: IntArray, flexible: BoolArray, ask: Ask) -> IntArray:
        """Return the workers on each server, (m, s) int; a job may have fewer than it should."""
        setting = self.setting
        placed = np.zeros((len(jobs), len(free)), np.int64)
        servers = np.flatnonzero(free > 0)
        if len(jobs):
            instance = ArylPlacement(
                gpus_per_worker=setting.gpus_per_worker[jobs],
                num_workers=workers,
                elastic=setting.max_workers[jobs] > setting.min_workers[jobs],
                server_gpus=free[servers],
                server_groups=np.where(self.training[servers], "training", "inference"),
                flexible=flexible,
                used_gpus=setting.gpus_per_worker[self.jobs] @ self.base[np.ix_(self.jobs, servers)],
            )
            but = ("all_placed",)
            plan = accepted(instance, ask(instance, default="best_fit_decreasing", jobs=jobs, forgiven=but), but=but)
            placed[:, servers] = plan.workers
        return placed


# --- workloads -----------------------------------------------------------------------------------


def _setting(
    arrivals: FloatArray,
    durations: FloatArray,
    min_workers: IntArray,
    max_workers: IntArray,
    gpus_per_worker: IntArray,
    *,
    names: object = None,
    **cluster: Unpack[Cluster],
) -> Aryl:
    """Return a setting of jobs whose ``durations`` are those on their base demands."""
    return Aryl(
        jobs=Jobs(
            names=np.arange(len(arrivals)) if names is None else names,
            arrivals=arrivals,
            work=durations * min_workers,
            fastest=max_workers.astype(float),
            columns={"base_gpus": min_workers * gpus_per_worker, "elastic": max_workers > min_workers},
        ),
        min_workers=min_workers,
        max_workers=max_workers,
        gpus_per_worker=gpus_per_worker,
        **cluster,
    )


def four_servers(**cluster: Unpack[Cluster]) -> Aryl:
    """Return three jobs on one training server of 2 GPUs, with two inference servers on loan from 0 s to 100 s.

    Job a has 2 workers and takes 300 s, b has 2 and takes 200 s, c is elastic, 1 to 3 workers, and takes 360 s on one;
    all are there at 0.
    """
    return _setting(
        np.zeros(3),
        np.array([300.0, 200.0, 360.0]),
        np.array([2, 2, 1]),
        np.array([2, 2, 3]),
        np.ones(3, np.int64),
        names=("a", "b", "c"),
        **Cluster(num_servers=1, server_gpus=2, loans=Loans(np.array([0.0, 100.0]), np.array([2, 0]))) | cluster,
    )


def generate(
    rng: np.random.Generator | int,
    *,
    num_jobs: int = 30,
    jobs_per_hour: float = 12.0,
    elastic: float = 0.3,
    loaned: int = 3,
    wrong: float = 0.0,
    **cluster: Unpack[Cluster],
) -> Aryl:
    """Draw jobs of minutes to hours on a few servers, and a loan of a daily shape.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    num_jobs : int
    jobs_per_hour : float
        Mean rate of their Poisson arrivals.
    elastic : float
        Part of the jobs that can grow to twice their base demand.
    loaned : int
        Most servers on loan (:func:`daily`), where ``loans`` is not given.
    wrong : float
        Part of the jobs whose running time is estimated wrongly, by up to 25 % either way (section 7.5).
    **cluster
        As in ``Cluster``; 4 training servers by default.
    """
    rng = np.random.default_rng(rng)
    workers = rng.integers(1, 5, num_jobs)
    setting = _setting(
        poisson(rng, num_jobs, jobs_per_hour),
        60 * 10 ** rng.uniform(1.0, 2.5, num_jobs),
        workers,
        np.where(rng.random(num_jobs) < elastic, 2 * workers, workers),
        rng.choice([1, 2, 4], num_jobs),
        **Cluster(num_servers=4, loans=daily(loaned)) | cluster,
    )
    return replace(setting, estimates=_estimates(rng, num_jobs, wrong)) if wrong else setting


def _estimates(rng: np.random.Generator, num_jobs: int, wrong: float) -> FloatArray:
    """Draw how many times its length each job is taken to have; some are wrong by up to 25 % (section 7.5)."""
    return np.where(rng.random(num_jobs) < wrong, rng.uniform(0.75, 1.25, num_jobs), 1.0)


def from_jobs(
    jobs: pd.DataFrame,
    *,
    problem: str = PROBLEMS[0],
    rng: np.random.Generator | int = 0,
    num_servers: int = 16,
    server_gpus: int = 8,
    loaned: int = 4,
    loans: Loans | None = None,
    inference_speed: float = 1.0,
    elastic: float = 0.05,
    scaling: int = 2,
    overtake: bool = True,
) -> Aryl:
    """Make a setting of the jobs of a table, some of which are drawn to be elastic.

    A job's GPUs and duration are those of its base demand.  Workers are as large as divides both its GPUs and a
    server's: eight GPUs are one worker on servers of eight, twelve are three.

    Parameters
    ----------
    jobs : DataFrame
        A job table (:mod:`instances.data.jobs`).
    problem : str
        As in :class:`Aryl`.
    rng : Generator or int
        Source of randomness, or its seed: it draws which jobs are elastic.
    num_servers, server_gpus : int
        Training servers, and GPUs of each server.
    loaned : int
        Most servers on loan (:func:`daily`), where ``loans`` is not given; 0 for none.
    loans : Loans, optional
    inference_speed, overtake
        As in :class:`Aryl`.
    elastic : float
        Part of the jobs that are elastic; about 0.05 in the paper (section 7.1).
    scaling : int
        Most workers of an elastic job, in multiples of its base demand.

    Raises
    ------
    ReplayError
        When a job does not fit on the empty training servers.
    """
    rng = np.random.default_rng(rng)
    jobs = in_order(jobs)
    gpus = jobs["num_gpus"].to_numpy(np.int64)
    per_worker = np.gcd(gpus, server_gpus)
    workers = gpus // per_worker
    return _setting(
        jobs["submit_time"].to_numpy(float),
        jobs["duration"].to_numpy(float),
        workers,
        np.where(rng.random(len(jobs)) < elastic, scaling * workers, workers),
        per_worker,
        names=jobs["job_id"].tolist(),
        num_servers=num_servers,
        server_gpus=server_gpus,
        loans=daily(loaned) if loans is None else loans,
        inference_speed=inference_speed,
        problem=problem,
        overtake=overtake,
    )
