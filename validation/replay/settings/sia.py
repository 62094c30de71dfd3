"""Sia (SOSP'23): in each round every job has a GPU type and a number of GPUs, or waits.

A decision is an instance of ``sia.goodput``: the jobs that are there, their goodputs on each configuration, the
configuration that each holds, and the part of its goodput that a change would leave it.  That part follows from its age
T and the restarts N that it has had, each of which is taken to cost S seconds: (T - N S) / (T + S).  What a restart
does cost is said apart (:class:`validation.replay.Costs`); with ``restart_seconds`` equal to it the program knows it.

As printed / as built
---------------------
- Where restarts have cost as much as the job's age, the released code leaves a change a goodput of nothing.  Goodputs
  are above 0 here, and what is left is ``LEAST``, with which a change costs more than to wait.
- The paper starts jobs small and lets them grow by a factor of two at most in a round, because it does not know how
  they scale before they have run.  Here curves are known, and a job may have any configuration at any time.
- Jobs of a table run at one batch size, so that goodputs are throughputs.
- Which nodes hold a job's GPUs is not decided: a job moves when its configuration changes, and only then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from instances.data.lines import Source
from instances.schema import FloatArray, IntArray
from instances.sia.configurations import sizes_within
from instances.sia.goodput import Goodput, GoodputPlan
from validation.errors import ReplayError
from validation.replay.engine import Ask, Decide, Decision, Jobs, State
from validation.replay.plans import accepted
from validation.replay.settings import afs
from validation.replay.settings.gavel import JITTER
from validation.replay.ways import Ways

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PROBLEMS", "Sia", "from_jobs", "generate", "on_powers_of_two"]

PROBLEMS = ("sia.goodput",)

ROUND = 60.0
"""Length of a round in the paper, s."""
RESTART = 30.0
"""What the released code takes a restart to cost by default, s."""
LEAST = 1e-3
"""The least part of its goodput that a change leaves a job."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Sia:
    """Jobs that run on configurations of one or several GPU types; t types, k configurations.

    Attributes
    ----------
    jobs : Jobs
        Work in iterations.
    num_gpus : (t,) int
    config_types, config_gpus : (k,) int
        GPU type, and GPUs, of each configuration.
    rates : (n, k) float
        Iterations/s of each job on each configuration; 0 where it cannot run.
    power, queue_penalty : float
        Of each instance.
    restart_seconds : float
        What a restart is taken to cost when configurations are chosen, s.
    round_length : float
        s.
    name : str
        Name of the setting in tables.

    Raises
    ------
    ReplayError
        When there is no rate for each job and configuration, or a configuration has more GPUs than its type.
    """

    jobs: Jobs
    num_gpus: IntArray
    config_types: IntArray
    config_gpus: IntArray
    rates: FloatArray
    power: float = -0.5
    queue_penalty: float = 1.1
    restart_seconds: float = RESTART
    round_length: float = ROUND
    name: str = "sia"

    def __post_init__(self) -> None:
        wanted = (len(self.jobs), len(self.config_gpus))
        if self.rates.shape != wanted:
            raise ReplayError(f"rates: got shape {self.rates.shape}, must be {wanted}, jobs and configurations")
        wide = np.flatnonzero(self.config_gpus > self.num_gpus[self.config_types])
        if wide.size:
            raise ReplayError(f"config_gpus: configuration {wide[0]} has more GPUs than there are of its type")
        if not 0 <= self.restart_seconds < np.inf:
            raise ReplayError(f"restart_seconds: got {self.restart_seconds}, must be a number of seconds, at least 0")

    @property
    def capacity(self) -> FloatArray:
        """GPUs of each type, (t,) float."""
        return self.num_gpus.astype(float)

    @cached_property
    def goodputs(self) -> FloatArray:
        """Rates relative to each job's least, (n, k) float."""
        least = np.where(self.rates > 0, self.rates, np.inf).min(axis=1, keepdims=True)
        relative: FloatArray = self.rates / least
        return relative

    all_run = True

    def begin(self) -> Decide:
        """Return the function that decides in one replay."""
        return _Course(self).decide

    def ways(self) -> Ways:
        """Return each job on each configuration."""
        takes = self._takes
        return Ways.alone(
            self.capacity,
            ((job, float(rate), takes[config].tolist()) for (job, config), rate in np.ndenumerate(self.rates)),
        )

    def slots(self) -> None:
        """Return None: no job has a deadline that counts."""

    def equal_rates(self, jobs: IntArray) -> FloatArray:
        """Return each job's rate on an m-th of all GPUs, on each type for its part of the time, (m,) float.

        Between configurations, and below the least, rates are linear; beyond the greatest they stay.
        """
        share, parts = self.num_gpus.sum() / len(jobs), self.num_gpus / self.num_gpus.sum()
        rates = np.zeros(len(jobs))
        for kind, part in enumerate(parts.tolist()):
            mine = np.flatnonzero(self.config_types == kind)
            mine = mine[np.argsort(self.config_gpus[mine], kind="stable")]
            gpus = np.append(0, self.config_gpus[mine])
            best = np.maximum.accumulate(np.append(np.zeros((len(jobs), 1)), self.rates[np.ix_(jobs, mine)], axis=1), 1)
            rates += part * np.array([np.interp(share, gpus, one) for one in best])
        return rates

    @cached_property
    def _takes(self) -> FloatArray:
        """GPUs of each type that each configuration takes, (k, t) float."""
        takes = np.zeros((len(self.config_gpus), len(self.num_gpus)))
        takes[np.arange(len(self.config_gpus)), self.config_types] = self.config_gpus
        return takes


class _Course:
    """One replay: what each job holds, held last, and how often it was restarted."""

    def __init__(self, setting: Sia) -> None:
        self.setting = setting
        self.held, self.last = np.full((2, len(setting.jobs)), -1)
        self.restarts = np.zeros(len(setting.jobs), np.int64)

    def decide(self, state: State, ask: Ask) -> Decision:
        setting, jobs = self.setting, state.jobs
        ages, cost = state.now - state.arrivals, setting.restart_seconds
        factors = np.ones(len(jobs))
        some = ages + cost > 0
        factors[some] = (ages - self.restarts[jobs] * cost)[some] / (ages + cost)[some]
        instance = Goodput(
            num_gpus=setting.num_gpus,
            config_types=setting.config_types,
            config_gpus=setting.config_gpus,
            goodputs=setting.goodputs[jobs],
            current=self.held[jobs],
            restart_factors=np.clip(factors, LEAST, 1.0),
            power=setting.power,
            queue_penalty=setting.queue_penalty,
        )
        shown = None
        if state.jitter.any():
            shown = replace(instance, goodputs=instance.goodputs * (1 + JITTER * state.jitter[:, None]))
        plan = ask(instance, default="greedy_marginal", asked=shown, jobs=jobs)
        assert isinstance(plan, GoodputPlan)
        configs = accepted(instance, plan).configs
        runs = configs >= 0
        before = self.last[jobs]
        self.restarts[jobs] += runs & (before >= 0) & ((configs != before) | (self.held[jobs] < 0))
        self.held[jobs] = configs
        self.last[jobs] = np.where(runs, configs, before)
        return Decision(
            rates=np.where(runs, setting.rates[jobs, configs], 0.0),
            gpus=np.where(runs[:, None], setting._takes[configs], 0.0),
            placements=configs + 1,
        )


def on_powers_of_two(elastic: afs.Elastic, *, server_gpus: int = 4, restart_seconds: float = RESTART) -> Sia:
    """Return Sia's setting of the jobs of AFS's: one GPU type, powers of two in a server and whole servers beyond.

    Parameters
    ----------
    elastic : Elastic
    server_gpus : int
        GPUs of each server.
    restart_seconds : float
        As of :class:`Sia`.
    """
    sizes = np.array(sizes_within(server_gpus, elastic.num_gpus // server_gpus), np.int64)
    rates = elastic.throughputs[:, sizes]
    return Sia(
        jobs=replace(elastic.jobs, fastest=rates.max(axis=1)),
        num_gpus=np.array([elastic.num_gpus]),
        config_types=np.zeros(len(sizes), np.int64),
        config_gpus=sizes,
        rates=rates,
        restart_seconds=restart_seconds,
    )


def generate(
    rng: np.random.Generator | int,
    *,
    problem: str = PROBLEMS[0],
    throughputs: Source,
    num_jobs: int = 160,
    num_gpus: int = 64,
    load: float = 0.7,
    models: Sequence[str] | None = None,
    server_gpus: int = 4,
    restart_seconds: float = RESTART,
) -> Sia:
    """Draw jobs as AFS's setting does (:func:`validation.replay.settings.afs.generate`).

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    problem : str
    throughputs, num_jobs, num_gpus, load, models
        As of AFS's setting; 160 jobs on 64 GPUs by default.
    server_gpus, restart_seconds
        As of :func:`on_powers_of_two`.
    """
    drawn = afs.generate(rng, throughputs=throughputs, num_jobs=num_jobs, num_gpus=num_gpus, load=load, models=models)
    return on_powers_of_two(drawn, server_gpus=server_gpus, restart_seconds=restart_seconds)


def from_jobs(
    jobs: pd.DataFrame,
    *,
    problem: str = PROBLEMS[0],
    rng: np.random.Generator | int = 0,
    throughputs: Source,
    num_gpus: int = 64,
    repair: bool = True,
    models: Sequence[str] | None = None,
    server_gpus: int = 4,
    restart_seconds: float = RESTART,
) -> Sia:
    """Make elastic jobs of a table as AFS's setting does (:func:`validation.replay.settings.afs.from_jobs`).

    Parameters
    ----------
    jobs : DataFrame
        A job table (:mod:`instances.data.jobs`), or as from :mod:`validation.replay.workloads`.
    problem : str
    rng, throughputs, num_gpus, repair, models
        As of AFS's setting.
    server_gpus, restart_seconds
        As of :func:`on_powers_of_two`.

    Raises
    ------
    InstanceError
        When a table is malformed.
    """
    elastic = afs.from_jobs(jobs, rng=rng, throughputs=throughputs, num_gpus=num_gpus, repair=repair, models=models)
    return on_powers_of_two(elastic, server_gpus=server_gpus, restart_seconds=restart_seconds)
