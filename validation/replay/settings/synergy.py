"""Synergy (OSDI'22): rounds of runnable jobs that divide the servers' CPUs and memory.

What is the paper's: time goes in rounds of 5 minutes (sections 1 and 4.2; the authors' configurations say the same).
At the beginning of each the queue is put in order, by arrival, remaining time, attained service or finish-time
fairness, and its first jobs whose GPU demands the cluster can satisfy are *runnable* (section 4.2).  They then get
CPUs and memory beside their GPUs, each at least as fast as with its GPU-proportional share, and train at what their
sensitivity profile says of it until the round is over (section 3.1, appendix A.1).  A job goes on where it was if the
round lets it (the leases of section 4.3).

Work is what the profiles measure: a job's throughput, for so many seconds.  The paper says how long a job takes with
its GPU-proportional share (section 5.1); its work is that many seconds of its fair throughput.

As printed / as built
---------------------
- Rounds begin at multiples of their length from the first arrival, and GPUs of a job that ends in a round are idle
  until the next.  The paper does not say either.
- The remaining time of SRTF is that at the GPU-proportional share, because a job's share in rounds to come is not
  known.  Attained service is GPU time.  Finish-time fairness compares the time since arrival, and what remains at the
  GPU-proportional share, with a run at that share from the start; the paper names the policy and its source only.
- Servers are alike, and a decision maker numbers them as it likes.  They are numbered anew so that jobs stay where they
  were, the pair of old and new server that share most GPUs first.
- A job that a plan leaves out (Synergy-Greedy skips jobs) waits for the next round, and its GPUs are idle.
- Under "synergy.allocation" the cluster is one super-machine, whose optimum in every round is the paper's Synergy-Opt.
  Under "synergy.placement" its jobs are then spread over servers, which costs nothing: the paper prices no split.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypedDict, TypeVar, Unpack

import numpy as np

from instances.base import Plan
from instances.data.lines import Source
from instances.data.synergy import read_profiles
from instances.schema import FloatArray, IntArray
from instances.synergy import queue as queues
from instances.synergy.allocation import SynergyAllocation
from instances.synergy.profiles import TASKS, draw_tasks
from instances.synergy.sensitivity import CPU, MEMORY, THROUGHPUT
from instances.synergy.synthetic import SERVER_GPUS, SERVER_MEMORY
from instances.synergy.traces import profiled
from instances.synergy.tuning import Tuning, four_jobs
from validation.errors import ReplayError
from validation.replay.engine import Ask, Decide, Decision, Jobs, State
from validation.replay.plans import accepted, renumbered
from validation.replay.settings.gavel import JITTER
from validation.replay.ways import Ways
from validation.replay.workloads import durations, in_order, poisson, scale_factors

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PROBLEMS", "ROUND", "Rounds", "Synergy", "derived", "from_jobs", "generate", "two_rounds"]

PROBLEMS = ("synergy.tuning", "synergy.allocation", "synergy.placement")

ROUND = 300.0
"""Length of a round, s (sections 1 and 4.2)."""

SKIPS = ("placed",)
"""Rule that Synergy-Greedy breaks by skipping jobs; they wait."""


class Rounds(TypedDict, total=False):
    """Options of a workload: ``queue``, ``problem`` and ``round_length`` of :class:`Synergy`."""

    queue: str
    problem: str
    round_length: float


@dataclass(frozen=True, eq=False)
class Synergy:
    """A cluster of identical servers, and sensitive jobs that come over time.

    Attributes
    ----------
    jobs : Jobs
        Work in seconds times the throughput of ``cluster``; ``fastest`` is that of the best allowed configuration.
    cluster : Tuning
        The servers, and all jobs of the trace in its order: their GPUs, configurations and fair throughputs.
    queue : str
        What orders the queue: "fifo", "srtf", "las" or "ftf" (:mod:`instances.synergy.queue`).
    problem : str
        What a round asks: "synergy.tuning" (default "tune"), "synergy.allocation" (default "greedy_marginal"), or
        "synergy.placement" (default "best_fit") of what an allocation gives.
    round_length : float
        s.

    Raises
    ------
    ReplayError
        When a job wants more GPUs than there are, the numbers of jobs differ, or an option is none.
    """

    jobs: Jobs
    cluster: Tuning
    queue: str = "fifo"
    problem: str = "synergy.tuning"
    round_length: float = ROUND

    def __post_init__(self) -> None:
        if self.queue not in _ORDERS:
            raise ReplayError(f"queue: got {self.queue!r}, must be one of {', '.join(_ORDERS)}")
        if self.problem not in PROBLEMS:
            raise ReplayError(f"problem: got {self.problem!r}, must be one of {', '.join(PROBLEMS)}")
        if self.cluster.num_jobs != len(self.jobs):
            raise ReplayError(
                f"cluster: has {self.cluster.num_jobs} jobs, must be those of the trace, {len(self.jobs)}"
            )
        wide = np.flatnonzero(self.cluster.gpu_demands > self.cluster.num_gpus)
        if wide.size:
            job = int(wide[0])
            raise ReplayError(
                f"job {self.jobs.names[job]} wants {self.cluster.gpu_demands[job]} GPUs, there are "
                f"{self.cluster.num_gpus}"
            )

    @property
    def name(self) -> str:
        """Name of the setting in tables."""
        return f"synergy {self.queue}"

    @cached_property
    def capacity(self) -> FloatArray:
        """GPUs of each server, (s,) float; of the whole cluster where it is one super-machine."""
        servers = 1 if self.problem == "synergy.allocation" else self.cluster.num_servers
        return np.full(servers, self.cluster.num_gpus / servers)

    all_run = True

    def begin(self) -> Decide:
        """Return the function that decides in one replay."""
        return _Course(self).decide

    def ways(self) -> Ways:
        """Return each job at each configuration that may be worth it, on the cluster as one super-machine."""
        cluster, found = self.cluster, []
        for job, gpus in enumerate(cluster.gpu_demands.tolist()):
            rows = np.intersect1d(cluster.undominated[job], np.flatnonzero(cluster.usable_configs[job]))
            found += [
                (job, one[THROUGHPUT], (gpus, one[CPU], one[MEMORY])) for one in cluster.configs[job][rows].tolist()
            ]
        servers = cluster.num_servers
        return Ways.alone(
            np.array([cluster.num_gpus, servers * cluster.server_cpus, servers * cluster.server_memory]), found
        )

    def slots(self) -> None:
        """Return None: no job has a deadline that counts."""

    def equal_rates(self, jobs: IntArray) -> FloatArray:
        """Return fair throughputs times the part of the time in which as many jobs of its size would have the GPUs."""
        share = self.cluster.num_gpus / len(jobs)
        rates: FloatArray = self.cluster.fair_throughputs[jobs] * np.minimum(
            1.0, share / self.cluster.gpu_demands[jobs]
        )
        return rates


class _Course:
    """Memory of one replay: the round before, which is asked again where the same jobs are runnable in its order."""

    def __init__(self, setting: Synergy) -> None:
        self.setting = setting
        self.round: _Round | None = None

    def decide(self, state: State, ask: Ask) -> Decision:
        setting = self.setting
        order = _ORDERS[setting.queue](setting, state)
        here = queues.runnable(setting.cluster.gpu_demands[state.jobs], setting.cluster.num_gpus, order.tolist())
        jobs = state.jobs[here]
        if self.round is None or not np.array_equal(self.round.jobs, jobs):
            self.round = _Round(setting, jobs, state.jitter[here])
        rates = np.zeros(len(state.jobs))
        gpus = np.zeros((len(state.jobs), len(setting.capacity)))
        rates[here], gpus[here] = self.round.decide(ask)
        return Decision(rates=rates, gpus=renumbered(state.gpus, gpus))


class _Round:
    """What runnable jobs ask, and what follows from the last plan."""

    def __init__(self, setting: Synergy, jobs: IntArray, jitter: FloatArray) -> None:
        self.jobs, self.spreads = jobs, setting.problem == "synergy.placement"
        cluster = setting.cluster.restricted_to(jobs)
        self.instance: SynergyAllocation | Tuning
        self.shown: SynergyAllocation | Tuning | None
        if setting.problem == "synergy.tuning":
            self.instance, self.shown = cluster, _jittered(cluster, jitter)
        else:
            self.instance = cluster.stage_one()
            self.shown = _jittered(self.instance, jitter)
        self.plan: Plan | None = None

    def decide(self, ask: Ask) -> tuple[FloatArray, FloatArray]:
        """Return rates, (m,), and GPUs on each server, (m, s)."""
        default = "tune" if isinstance(self.instance, Tuning) else "greedy_marginal"
        plan = ask(self.instance, default=default, asked=self.shown, jobs=self.jobs, forgiven=SKIPS)
        if plan is not self.plan:
            self.plan = plan
            self._follow(plan)
        if self.spreads:
            spread = ask(self.spread, default="best_fit", jobs=self.jobs)
            return self.rates, self.gpus * accepted(self.spread, spread).shares
        return self.rates, self.gpus

    def _follow(self, plan: Plan) -> None:
        if isinstance(self.instance, Tuning):
            tuned = accepted(self.instance, plan, but=SKIPS)
            runs = ~self.instance.skipped(tuned)
            self.rates = np.where(runs, self.instance.chosen(tuned.choices)[:, THROUGHPUT], 0.0)
            self.gpus = np.where(runs[:, None], tuned.gpus, 0).astype(float)
            return
        divided = accepted(self.instance, plan)
        self.rates = self.instance.chosen(divided.choices)[:, THROUGHPUT]
        self.gpus = self.instance.gpu_demands[:, None].astype(float)
        if self.spreads:
            self.spread = self.instance.placement(divided)


Rounded = TypeVar("Rounded", Tuning, SynergyAllocation)


def _jittered(instance: Rounded, jitter: FloatArray) -> Rounded | None:
    """Return the instance with throughputs slightly off, so that ties between jobs fall otherwise; None without jitter.

    Jobs stay in the order of the queue, which means something to Synergy-Greedy.
    """
    if not jitter.any():
        return None
    by = 1 + JITTER * jitter
    return replace(
        instance,
        configs=tuple(table * (1, 1, factor) for table, factor in zip(instance.configs, by.tolist(), strict=True)),
        fair_throughputs=instance.fair_throughputs * by,
    )


def _finish_time_ratios(setting: Synergy, state: State) -> FloatArray:
    fair = setting.cluster.fair_throughputs[state.jobs]
    ratios: FloatArray = (state.now - state.arrivals + state.left / fair) / (setting.jobs.work[state.jobs] / fair)
    return ratios


_ORDERS = {
    "fifo": lambda setting, state: queues.fifo(state.arrivals),
    "srtf": lambda setting, state: queues.srtf(state.left / setting.cluster.fair_throughputs[state.jobs]),
    "las": lambda setting, state: queues.las(state.service),
    "ftf": lambda setting, state: queues.ftf(_finish_time_ratios(setting, state)),
}


# --- workloads -----------------------------------------------------------------------------------


def _setting(
    cluster: Tuning,
    arrivals: FloatArray,
    seconds: FloatArray,
    *,
    models: Sequence[str],
    names: Sequence[object] | None = None,
    **rounds: Unpack[Rounds],
) -> Synergy:
    """Return a setting of jobs that take so many ``seconds`` with the GPU-proportional share."""
    return Synergy(
        jobs=Jobs(
            names=np.arange(len(arrivals)) if names is None else names,
            arrivals=arrivals,
            work=seconds * cluster.fair_throughputs,
            fastest=cluster.chosen(cluster.best_choices)[:, THROUGHPUT],
            columns={"model": np.array(models, dtype=object), "num_gpus": cluster.gpu_demands},
        ),
        cluster=cluster,
        **rounds,
    )


def two_rounds(*, minutes: float = 10.0, **rounds: Unpack[Rounds]) -> Synergy:
    """Return the jobs of :func:`instances.synergy.tuning.four_jobs`, all at once, each ten minutes long at its share.

    All fit at once.  With GPU-proportional shares each trains at 4 and is done after two rounds; tuned, ResNet18 and
    Audio-M5 are faster, and the others as fast.
    """
    cluster = four_jobs()
    return _setting(
        cluster,
        np.zeros(4),
        np.full(4, 60 * minutes),
        models=("res18", "m5", "transformer", "gnmt"),
        **rounds,
    )


def generate(
    rng: np.random.Generator | int,
    *,
    num_jobs: int = 20,
    jobs_per_hour: float = 6.0,
    num_servers: int = 2,
    **rounds: Unpack[Rounds],
) -> Synergy:
    """Draw jobs of the four kinds of :func:`instances.synergy.tuning.four_jobs`, half of them sensitive.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    num_jobs : int
        Number of jobs, of 4 GPUs each.
    jobs_per_hour : float
        Mean rate of their Poisson arrivals.
    num_servers : int
        Servers of 8 GPUs, 24 cores and 500 GB.
    **rounds
        As in :class:`Rounds`.
    """
    rng = np.random.default_rng(rng)
    kinds = rng.integers(0, 4, num_jobs)
    four = four_jobs()
    cluster = Tuning(
        num_servers=num_servers,
        server_gpus=four.server_gpus,
        server_cpus=four.server_cpus,
        server_memory=four.server_memory,
        gpu_demands=np.full(num_jobs, 4),
        configs=tuple(four.configs[kind] for kind in kinds.tolist()),
    )
    return _setting(
        cluster,
        poisson(rng, num_jobs, jobs_per_hour),
        60 * 10 ** rng.uniform(0.5, 2.0, num_jobs),
        models=[("res18", "m5", "transformer", "gnmt")[kind] for kind in kinds.tolist()],
        **rounds,
    )


def derived(
    rng: np.random.Generator | int,
    *,
    throughputs: Source,
    num_jobs: int = 1000,
    jobs_per_hour: float = 9.0,
    num_servers: int = 16,
    mix: Sequence[float] = (20, 70, 10),
    multi_gpu: bool = False,
    widest: int = 8,
    cpus_per_gpu: int = 3,
    **rounds: Unpack[Rounds],
) -> Synergy:
    """Draw a trace of published models, as section 5.1 derives them.

    With its GPU-proportional share a job takes 10^x minutes, x uniform on [1.5, 3] in 80 % of the cases and on [3, 4]
    in the others.  Arrivals are Poisson.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    throughputs : path or open file
        Profiles for :func:`instances.data.synergy.read_profiles`.
    num_jobs : int
    jobs_per_hour : float
        9 in Figure 9.
    num_servers : int
        Servers of 8 GPUs; 16 in sections 5.3.2 and following.
    mix : sequence of 3 float
        Weights of image, language and speech jobs.
    multi_gpu : bool
        GPU demands of 1 (70 %), 2 or 4 (25 %) and 8 (5 %), which are this library's stand-in for those of the Philly
        trace; else all 1.
    widest : int
        Most GPUs of a job with ``multi_gpu``; 16 in section 5.3.  From 16 on the 5 % are any power of two from 8 on.
    cpus_per_gpu : int
        CPU cores of a server for each of its GPUs.
    **rounds
        As in :class:`Rounds`.
    """
    rng = np.random.default_rng(rng)
    models = [str(rng.choice(TASKS[task])) for task in draw_tasks(rng, num_jobs, mix)]
    sizes = scale_factors(rng, num_jobs) if multi_gpu else np.ones(num_jobs, np.int64)
    if widest >= 16:
        sizes <<= np.where(sizes == 8, rng.integers(int(widest).bit_length() - 3, size=num_jobs), 0)
    fields = profiled(
        models,
        sizes.tolist(),
        profiles=read_profiles(throughputs, cpus_per_gpu=cpus_per_gpu),
        num_servers=num_servers,
        cpus_per_gpu=cpus_per_gpu,
    )
    return _setting(
        Tuning(**fields),
        poisson(rng, num_jobs, jobs_per_hour),
        durations(rng, num_jobs),
        models=models,
        **rounds,
    )


def from_jobs(
    jobs: pd.DataFrame,
    *,
    problem: str = "synergy.tuning",
    rng: np.random.Generator | int = 0,
    throughputs: Source,
    num_servers: int = 16,
    mix: Sequence[float] = (20, 70, 10),
    cpus_per_gpu: int = 3,
    server_gpus: int = SERVER_GPUS,
    server_memory: float = SERVER_MEMORY,
    queue: str = "fifo",
    round_length: float = ROUND,
) -> Synergy:
    """Make a setting of the jobs of a table, which keep GPUs, arrivals and durations, as in section 5.3.1.

    A duration is that with the GPU-proportional share.  Models are the table's where all of its jobs have one that was
    profiled; otherwise all are drawn, by ``mix``.

    Parameters
    ----------
    jobs : DataFrame
        A job table (:mod:`instances.data.jobs`).
    problem : str
        As in :class:`Synergy`.
    rng : Generator or int
        Source of randomness, or its seed: it draws models.
    throughputs : path or open file
        Profiles for :func:`instances.data.synergy.read_profiles`.
    num_servers, server_gpus, server_memory, cpus_per_gpu
        The servers; ``cpus_per_gpu`` picks the profiles.
    mix : sequence of 3 float
        Weights of image, language and speech jobs.
    queue, round_length
        As in :class:`Synergy`.

    Raises
    ------
    InstanceError
        When the profiles are malformed.
    ReplayError
        When a job wants more GPUs than there are.
    """
    rng = np.random.default_rng(rng)
    jobs = in_order(jobs)
    profiles = read_profiles(throughputs, cpus_per_gpu=cpus_per_gpu)
    if "model" in jobs and jobs["model"].isin(list(profiles.throughputs)).all():
        models = [str(model) for model in jobs["model"]]
    else:
        models = [str(rng.choice(TASKS[task])) for task in draw_tasks(rng, len(jobs), mix)]
    fields = profiled(
        models,
        jobs["num_gpus"].tolist(),
        profiles=profiles,
        num_servers=num_servers,
        cpus_per_gpu=cpus_per_gpu,
        server_gpus=server_gpus,
        server_memory=server_memory,
    )
    return _setting(
        Tuning(**fields),
        jobs["submit_time"].to_numpy(float),
        jobs["duration"].to_numpy(float),
        models=models,
        names=jobs["job_id"].tolist(),
        queue=queue,
        problem=problem,
        round_length=round_length,
    )
