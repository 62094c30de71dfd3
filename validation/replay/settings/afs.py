"""AFS (NSDI'21): elastic jobs share identical GPUs, anew at every arrival and completion.

A decision is an instance of ``afs.elastic_sharing``: the jobs that are there, the work that each has left, how long
each has run and what it holds; nobody else arrives.  Its plan is a schedule to the end of the last of them.  The replay
follows it until somebody does arrive, or a job is late because restarts cost time; then the next instance is decided.
Asked again in between, a scheduler would say the same, and the rest of an optimum is an optimum of what is left.

With ``preemption=False`` a job that runs keeps at least the GPUs on which it runs at all: where a plan takes them, they
are put first, and the others get what is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from instances.afs.curves import curves
from instances.afs.elastic_sharing import EXACT, ElasticSharing, Schedule
from instances.afs.simulation import beginning
from instances.base import InstanceError
from instances.data.lines import Source
from instances.schema import FloatArray, IntArray
from validation.replay.engine import Ask, Decide, Decision, Jobs, State
from validation.replay.ways import Ways, corners_of
from validation.replay.workloads import durations, in_order, poisson, rate_at, scale_factors

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PROBLEMS", "Elastic", "from_jobs", "generate"]

PROBLEMS = ("afs.elastic_sharing",)

LATE = 1e-9
"""Part of a job's work, or of a plan's length, by which a replay may be off its plan and still be on it."""


@dataclass(frozen=True, eq=False)
class Elastic:
    """Elastic jobs on a cluster of identical GPUs.

    Attributes
    ----------
    jobs : Jobs
        Work in iterations.
    num_gpus : int
    throughputs : (n, num_gpus+1) float
        Iterations/s of each job on 0, 1, ..., num_gpus GPUs.
    requests : (n,) int
        GPUs that each job asks for; 0 for as many as it can use.
    reallocation : str
        "at_completions" or "any_time", of each instance; the latter lets turns end.
    quantum : float
        Unit of time of schedulers that do not know how long jobs are, s.
    preemption : bool
        Whether a job that runs may lose all its GPUs.
    name : str
        Name of the setting in tables.
    """

    jobs: Jobs
    num_gpus: int
    throughputs: FloatArray
    requests: IntArray
    reallocation: str = "at_completions"
    quantum: float = 7200.0
    preemption: bool = True
    name: str = "afs"

    @property
    def capacity(self) -> FloatArray:
        """GPUs of the cluster, (1,) float."""
        return np.array([float(self.num_gpus)])

    def begin(self) -> Decide:
        """Return the function that decides in one replay."""
        return _Course(self).decide

    all_run = True

    def ways(self) -> Ways:
        """Return each job on some GPUs; on concave curves turns make any average share."""
        concave = bool((np.diff(self.throughputs, n=2, axis=1) <= EXACT * self.throughputs[:, -1:]).all())
        corners = enumerate(map(corners_of, self.throughputs))
        return Ways.alone(
            self.capacity,
            ((job, float(self.throughputs[job, gpus]), (gpus,)) for job, some in corners for gpus in some),
            attained=concave and self.reallocation == "any_time" and self.preemption,
        )

    def slots(self) -> None:
        """Return None: no job has a deadline that counts."""

    def equal_rates(self, jobs: IntArray) -> FloatArray:
        """Return each job's rate on an m-th of the GPUs, linear between whole numbers, (m,) float, iterations/s."""
        share = self.num_gpus / len(jobs)
        low = int(share)
        part = share - low
        table = self.throughputs
        return np.asarray(table[jobs, low] * (1 - part) + table[jobs, min(low + 1, self.num_gpus)] * part)


class _Course:
    """One replay: the plan that is followed, and the progress on it."""

    def __init__(self, setting: Elastic) -> None:
        self.setting = setting
        self.fewest = (setting.throughputs > 0).argmax(axis=1)
        self.place = np.full(len(setting.jobs), -1)
        self.begun, self.last = 0.0, 0.0
        self.plan: Schedule | None = None
        self.left = np.zeros(len(setting.jobs))
        self.rates = np.zeros(len(setting.jobs))

    def decide(self, state: State, ask: Ask) -> Decision:
        setting, jobs = self.setting, state.jobs
        if self.plan is None or not self._on_plan(state):
            self._ask(state, ask)
        assert self.plan is not None
        times = self.plan.times - self.plan.times[0]
        passed = state.now - self.begun
        # A completion ends an interval up to rounding.
        interval = (
            int(np.searchsorted(times, passed + LATE * max(passed, float(np.diff(times).min())), side="right")) - 1
        )
        shares = self.plan.shares[min(interval, len(self.plan.shares) - 1), self.place[jobs]]
        if not setting.preemption:
            shares = self._kept(state, shares)
        until = np.inf
        if setting.reallocation == "any_time" and interval + 1 < len(times):
            until = self.begun + float(times[interval + 1])
        rates = setting.throughputs[jobs, shares]
        self.left[jobs], self.rates[jobs], self.last = state.left, rates, state.now
        return Decision(rates=rates, gpus=shares.astype(float), until=until if until > state.now else np.inf)

    def _on_plan(self, state: State) -> bool:
        """Return whether no job has come, and every job has got on as planned."""
        jobs = state.jobs
        if (self.place[jobs] < 0).any():
            return False
        expected = self.left[jobs] - self.rates[jobs] * (state.now - self.last)
        assert self.plan is not None
        over = state.now - self.begun >= (self.plan.times[-1] - self.plan.times[0]) * (1 - LATE)
        return not over and bool((np.abs(state.left - expected) <= LATE * self.setting.jobs.work[jobs]).all())

    def _ask(self, state: State, ask: Ask) -> None:
        setting, jobs = self.setting, state.jobs
        instance = ElasticSharing(
            num_gpus=setting.num_gpus,
            work=state.left,
            throughputs=setting.throughputs[jobs],
            reallocation=setting.reallocation,
            requests=setting.requests[jobs],
            quantum=setting.quantum,
            attained=state.ran,
            held=state.gpus[:, 0].astype(np.int64),
        )
        arrivals = setting.jobs.arrivals
        coming = int(np.searchsorted(arrivals, state.now, side="right"))
        # Whoever comes then makes another plan necessary.
        end = float(arrivals[coming]) - state.now if coming < len(arrivals) else np.inf
        plan = ask(instance, briefly=partial(beginning, end), jobs=jobs)
        assert isinstance(plan, Schedule)
        self.plan, self.begun = plan, state.now
        self.place[:] = -1
        self.place[jobs] = np.arange(len(jobs))

    def _kept(self, state: State, shares: IntArray) -> IntArray:
        """Return the shares, changed so that jobs that run keep what they need to run."""
        holds = state.gpus[:, 0] > 0
        needed = np.where(holds, self.fewest[state.jobs], 0)
        if (shares >= needed).all():
            return shares
        kept = needed.copy()
        left = self.setting.num_gpus - int(needed.sum())
        # In the order of the jobs, what the plan gives beyond that, as far as it is there.
        for job in range(len(shares)):
            more = min(int(shares[job]) - int(kept[job]), left)
            low = int(self.fewest[state.jobs[job]])
            if more > 0 and kept[job] + more >= low:
                kept[job] += more
                left -= more
        return kept


def generate(
    rng: np.random.Generator | int,
    *,
    problem: str = PROBLEMS[0],
    throughputs: Source,
    num_jobs: int = 1000,
    num_gpus: int = 64,
    load: float = 0.7,
    models: Sequence[str] | None = None,
    reallocation: str = "at_completions",
    quantum: float = 7200.0,
    preemption: bool = True,
) -> Elastic:
    """Draw jobs that arrive at random, with the durations and numbers of GPUs that Gavel draws (section 7.1 there).

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    problem, throughputs, num_gpus, models, reallocation, quantum, preemption
        As in :func:`from_jobs`.
    num_jobs : int
    load : float
        GPU-seconds that arrive, of what the jobs ask for, over those that there are.
    """
    import pandas as pd

    rng = np.random.default_rng(rng)
    lasting, widths = durations(rng, num_jobs), scale_factors(rng, num_jobs)
    jobs = pd.DataFrame(
        {
            "job_id": [str(job) for job in range(num_jobs)],
            "submit_time": poisson(rng, num_jobs, rate_at(load, lasting * widths, num_gpus)),
            "num_gpus": widths,
            "duration": lasting,
        }
    )
    return from_jobs(
        jobs,
        problem=problem,
        rng=rng,
        throughputs=throughputs,
        num_gpus=num_gpus,
        models=models,
        reallocation=reallocation,
        quantum=quantum,
        preemption=preemption,
    )


def from_jobs(
    jobs: pd.DataFrame,
    *,
    problem: str = PROBLEMS[0],
    rng: np.random.Generator | int = 0,
    throughputs: Source,
    num_gpus: int = 64,
    repair: bool = True,
    models: Sequence[str] | None = None,
    reallocation: str = "at_completions",
    quantum: float = 7200.0,
    preemption: bool = True,
) -> Elastic:
    """Make elastic jobs of a table, as :func:`instances.afs.elastic_sharing.from_trace` does.

    A job that names a model for which there is a table gets that model's curve, at a batch size drawn; any other, a
    curve drawn.  It asks for its GPUs, at most the cluster's, and its work is what it would do on them in its duration
    (section 5.1).

    Parameters
    ----------
    jobs : DataFrame
        A job table (:mod:`instances.data.jobs`), or as from :mod:`validation.replay.workloads`.
    problem : str
    rng : Generator or int
        Source of randomness, or its seed: it draws curves.
    throughputs : path, open file or DataFrame
        Tables for :func:`instances.data.elasticflow.read_throughputs`, mostly a folder.
    num_gpus : int
    repair, models
        As in :func:`instances.afs.curves.curves`.
    reallocation, quantum, preemption
        As of :class:`Elastic`.

    Raises
    ------
    InstanceError
        When a table is malformed.
    """
    if problem not in PROBLEMS:
        raise InstanceError(f"problem: got {problem!r}, must be one of {', '.join(PROBLEMS)}")
    rng = np.random.default_rng(rng)
    known = curves(throughputs, num_gpus=num_gpus, models=models, repair=repair)
    jobs = in_order(jobs)
    names = sorted(known.tables)
    by_model: dict[str, list[int]] = {}
    for place, kind in enumerate(names):
        by_model.setdefault(kind[0], []).append(place)
    every = list(range(len(names)))
    models_of = jobs["model"].tolist() if "model" in jobs else [""] * len(jobs)
    choices = [by_model.get(model, every) for model in models_of]
    drawn = np.array([some[int(rng.integers(len(some)))] for some in choices], np.int64)
    tables = np.array([known.tables[name] for name in names])
    requests = np.minimum(jobs["num_gpus"].to_numpy(np.int64), num_gpus)
    throughput = tables[drawn]
    return Elastic(
        jobs=Jobs(
            names=jobs["job_id"].tolist(),
            arrivals=jobs["submit_time"].to_numpy(float),
            work=jobs["duration"].to_numpy(float) * throughput[np.arange(len(jobs)), requests],
            fastest=throughput[:, -1],
            columns={"model": np.array([names[kind][0] for kind in drawn], dtype=object), "requests": requests},
        ),
        num_gpus=num_gpus,
        throughputs=throughput,
        requests=requests,
        reallocation=reallocation,
        quantum=quantum,
        preemption=preemption,
    )
