"""Shockwave (NSDI'23): jobs of fixed width in rounds, planned over a window that moves.

A decision is an instance of ``shockwave.window``: what each job has done and has left, and when it would finish with
an equal share from now on.  Its first round is carried out, or some more (``rounds_followed``), unless jobs come or
end; GPUs that a round leaves idle go to the jobs with most left, as in the released code.

As printed / as built
---------------------
- The released code follows a plan until jobs come or end, or its window ends.  Here the window moves with each round
  by default, and ``rounds_followed`` lets a plan stand for longer.
- Finish times that limits derive from are estimated when jobs come or end, and averaged over the rounds for which they
  stood, the last with a tenth of the weight more, as there.
- Where limits cannot be met, the program without them decides (:func:`instances.shockwave.window.without_limits`).
  Weights are at most ``HEAVIEST`` there: powers of 100 are beyond what a number holds.  The released code then puts
  the rounds of that plan into another order; here they stay, because only the first ones are carried out.
- Epochs end within rounds: what is done of one is not lost, but is counted when it is whole.
- Running times are known, so that nothing has to be forecast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from instances.base import TOLERANCE
from instances.data.lines import Source
from instances.schema import BoolArray, FloatArray, IntArray
from instances.shockwave.window import Window, WindowPlan, without_limits
from validation.errors import ReplayError
from validation.replay.engine import Ask, Decide, Decision, Jobs, State
from validation.replay.inelastic import handed_out
from validation.replay.plans import acceptable, accepted
from validation.replay.settings import afs
from validation.replay.ways import Ways

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PROBLEMS", "Shockwave", "as_requested", "from_jobs", "generate"]

PROBLEMS = ("shockwave.window",)

ROUND = 120.0
"""Length of a round in the released configurations, s."""
EPOCH = 600.0
"""Length of an epoch of a job whose table tells none, s."""
MOMENTUM = 0.9
"""Weight of the averaged estimates of a finish time, beside the last."""
HEAVIEST = 1e6
"""The greatest weight of a late job."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Shockwave:
    """Jobs of fixed width on identical GPUs.

    Attributes
    ----------
    jobs : Jobs
        Work in iterations; ``fastest`` is the rate on the GPUs that a job holds.
    num_gpus : int
    scale_factors : (n,) int
        GPUs that each job holds.
    epochs : (n,) int
        Epochs into which its work is divided evenly.
    num_rounds : int
        Rounds of the window.
    rounds_followed : int
        Rounds of a plan that are carried out before the next window, if no job comes or ends.
    rho : float
        How many times its estimated finish time a job may take.
    remaining_penalty : float
        Of each instance.
    round_length : float
        s.
    name : str
        Name of the setting in tables.

    Raises
    ------
    ReplayError
        When sizes differ, a job holds more GPUs than there are, or a number means nothing.
    """

    jobs: Jobs
    num_gpus: int
    scale_factors: IntArray
    epochs: IntArray
    num_rounds: int = 20
    rounds_followed: int = 1
    rho: float = 1.0
    remaining_penalty: float = 1e-3
    round_length: float = ROUND
    name: str = "shockwave"

    def __post_init__(self) -> None:
        for name in ("scale_factors", "epochs"):
            values = getattr(self, name)
            if values.shape != (len(self.jobs),) or (values < 1).any():
                raise ReplayError(f"{name}: must be a whole number, at least 1, for each of {len(self.jobs)} jobs")
        wide = np.flatnonzero(self.scale_factors > self.num_gpus)
        if wide.size:
            job = int(wide[0])
            raise ReplayError(
                f"job {self.jobs.names[job]} holds {self.scale_factors[job]} GPUs, there are {self.num_gpus}"
            )
        if not 1 <= self.rounds_followed <= self.num_rounds:
            raise ReplayError(f"rounds_followed: got {self.rounds_followed}, must be 1 to {self.num_rounds} rounds")
        if not 0 < self.rho < np.inf:
            raise ReplayError(f"rho: got {self.rho}, must be above 0")

    @property
    def capacity(self) -> FloatArray:
        """GPUs of the cluster, (1,) float."""
        return np.array([float(self.num_gpus)])

    all_run = True

    def begin(self) -> Decide:
        """Return the function that decides in one replay."""
        return _Course(self).decide

    def ways(self) -> Ways:
        """Return each job on its GPUs."""
        rates, gpus = self.jobs.fastest.tolist(), self.scale_factors.tolist()
        return Ways.alone(
            self.capacity, ((job, rate, (held,)) for job, (rate, held) in enumerate(zip(rates, gpus, strict=True)))
        )

    def slots(self) -> None:
        """Return None: no job has a deadline that counts."""

    def equal_rates(self, jobs: IntArray) -> FloatArray:
        """Return each job's rate for the part of the time in which as many of its width have the GPUs, (m,) float."""
        share = np.minimum(1.0, self.num_gpus / (len(jobs) * self.scale_factors[jobs]))
        rates: FloatArray = self.jobs.fastest[jobs] * share
        return rates


class _Course:
    """One replay: estimates of finish times, and the plan that is followed."""

    def __init__(self, setting: Shockwave) -> None:
        self.setting = setting
        # Of each job the rounds at which its finish time was estimated, and the estimates, s from the first arrival.
        self.estimates: dict[int, list[tuple[int, float]]] = {}
        self.start = float(setting.jobs.arrivals[0])
        self.solved = 0
        self.plan: tuple[IntArray, BoolArray] | None = None

    def decide(self, state: State, ask: Ask) -> Decision:
        setting, jobs = self.setting, state.jobs
        past = round((state.now - self.start) / setting.round_length)
        times_left = state.left / setting.jobs.fastest[jobs]
        if state.changed:
            share = min(1.0, setting.num_gpus / len(jobs))
            whole = setting.jobs.work[jobs] / setting.jobs.fastest[jobs]
            finish = state.arrivals - self.start + whole / share
            for job, estimate in zip(jobs.tolist(), finish.tolist(), strict=True):
                self.estimates.setdefault(job, []).append((past, estimate))
        if self.plan is None or state.changed or past >= self.solved + setting.rounds_followed:
            self.plan, self.solved = (jobs, self._asked(state, ask, past, times_left).runs), past
        planned, runs = self.plan
        # Jobs are those of the plan, in whatever order.
        place = {job: row for row, job in enumerate(planned.tolist())}
        now = runs[[place[job] for job in jobs.tolist()], past - self.solved]
        gpus = setting.scale_factors[jobs]
        held = np.where(now, gpus, 0)
        # One that runs asks for no more.
        longest_first = np.argsort(-times_left, kind="stable").tolist()
        held += handed_out(gpus - held, longest_first, setting.num_gpus - int(held.sum()))
        return Decision(rates=np.where(held > 0, setting.jobs.fastest[jobs], 0.0), gpus=held.astype(float))

    def _asked(self, state: State, ask: Ask, past: int, times_left: FloatArray) -> WindowPlan:
        """Return the plan of the window that begins now."""
        setting, jobs = self.setting, state.jobs
        epochs = setting.epochs[jobs]
        part = state.done / setting.jobs.work[jobs]
        instance = Window(
            num_gpus=setting.num_gpus,
            num_rounds=setting.num_rounds,
            round_duration=setting.round_length,
            rounds_past=past,
            scale_factors=setting.scale_factors[jobs],
            epochs=epochs,
            epochs_done=np.minimum(np.floor(part * epochs + TOLERANCE).astype(np.int64), epochs),
            epoch_durations=setting.jobs.work[jobs] / setting.jobs.fastest[jobs] / epochs,
            times_left=times_left,
            finish_limits=setting.rho * np.array([_averaged(self.estimates[job], past) for job in jobs.tolist()]),
            remaining_penalty=setting.remaining_penalty,
        )
        nobody = WindowPlan(runs=np.zeros((len(jobs), setting.num_rounds), bool))
        # A limit that no plan keeps needs no search.
        if (instance.least_rounds <= instance.most_rounds).all():
            plan = ask(instance, default="greedy_marginal", otherwise=nobody, jobs=jobs)
            if acceptable(instance, plan):
                assert isinstance(plan, WindowPlan)
                return plan
        dropped = without_limits(instance, rho=setting.rho, most=HEAVIEST)
        return accepted(dropped, ask(dropped, default="greedy_marginal", jobs=jobs))


def _averaged(estimates: Sequence[tuple[int, float]], now: int) -> float:
    """Return the estimates' average over the rounds for which each stood, and the last one's part of it."""
    rounds, values = [at for at, _ in estimates] + [now], np.array([value for _, value in estimates])
    stood = np.diff(rounds)
    average = float(stood @ values / stood.sum()) if stood.any() else float(values[-1])
    return MOMENTUM * average + (1 - MOMENTUM) * float(values[-1])


def as_requested(
    elastic: afs.Elastic, *, epoch_seconds: float = EPOCH, num_rounds: int = 20, rounds_followed: int = 1
) -> Shockwave:
    """Return Shockwave's setting of the jobs of AFS's, each on the GPUs that it asks for.

    Parameters
    ----------
    elastic : Elastic
    epoch_seconds : float
        Length of an epoch, s; a shorter job has one.
    num_rounds, rounds_followed : int
        As of :class:`Shockwave`.
    """
    if not 0 < epoch_seconds < np.inf:
        raise ReplayError(f"epoch_seconds: got {epoch_seconds}, must be a number of seconds, above 0")
    requests = np.where(elastic.requests > 0, elastic.requests, 1)
    rates = elastic.throughputs[np.arange(len(requests)), requests]
    return Shockwave(
        jobs=replace(elastic.jobs, fastest=rates),
        num_gpus=elastic.num_gpus,
        scale_factors=requests,
        epochs=np.maximum(1, np.rint(elastic.jobs.work / rates / epoch_seconds)).astype(np.int64),
        num_rounds=num_rounds,
        rounds_followed=rounds_followed,
    )


def generate(
    rng: np.random.Generator | int,
    *,
    problem: str = PROBLEMS[0],
    throughputs: Source,
    num_jobs: int = 120,
    num_gpus: int = 32,
    load: float = 0.9,
    models: Sequence[str] | None = None,
    epoch_seconds: float = EPOCH,
    num_rounds: int = 20,
    rounds_followed: int = 1,
) -> Shockwave:
    """Draw jobs as AFS's setting does (:func:`validation.replay.settings.afs.generate`).

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    problem : str
    throughputs, num_jobs, num_gpus, load, models
        As of AFS's setting.
    epoch_seconds, num_rounds, rounds_followed
        As of :func:`as_requested`.
    """
    drawn = afs.generate(rng, throughputs=throughputs, num_jobs=num_jobs, num_gpus=num_gpus, load=load, models=models)
    return as_requested(drawn, epoch_seconds=epoch_seconds, num_rounds=num_rounds, rounds_followed=rounds_followed)


def from_jobs(
    jobs: pd.DataFrame,
    *,
    problem: str = PROBLEMS[0],
    rng: np.random.Generator | int = 0,
    throughputs: Source,
    num_gpus: int = 32,
    repair: bool = True,
    models: Sequence[str] | None = None,
    epoch_seconds: float = EPOCH,
    num_rounds: int = 20,
    rounds_followed: int = 1,
) -> Shockwave:
    """Make jobs of a table as AFS's setting does (:func:`validation.replay.settings.afs.from_jobs`), of fixed width.

    Parameters
    ----------
    jobs : DataFrame
        A job table (:mod:`instances.data.jobs`), or as from :mod:`validation.replay.workloads`.
    problem : str
    rng, throughputs, num_gpus, repair, models
        As of AFS's setting.
    epoch_seconds, num_rounds, rounds_followed
        As of :func:`as_requested`.

    Raises
    ------
    InstanceError
        When a table is malformed.
    """
    elastic = afs.from_jobs(jobs, rng=rng, throughputs=throughputs, num_gpus=num_gpus, repair=repair, models=models)
    return as_requested(elastic, epoch_seconds=epoch_seconds, num_rounds=num_rounds, rounds_followed=rounds_followed)
