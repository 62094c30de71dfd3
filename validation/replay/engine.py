"""The engine: run a trace through a cluster, event by event, exact in time.

Between events every job runs at a constant rate, so that its end is known and nothing happens in between.  An event is
an arrival, the end of a job, or the time up to which a decision stands (the end of a round or of a slot).  At each the
setting is asked anew: it makes an instance of the catalogue of what is there, has it decided, and says which rates and
which GPUs follow from the plan.  What a decision hands out is checked before it takes effect, and the books at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np

from instances.base import TOLERANCE, Instance, Plan
from instances.schema import FloatArray, IntArray
from validation.errors import ConservationError, ReplayError
from validation.replay.deciders import Briefly, Decider
from validation.replay.questions import Questions
from validation.replay.replayed import Books, Replayed

__all__ = ["Ask", "Costs", "Decide", "Decision", "Jobs", "Setting", "State", "replay"]

AnyInstance = Instance[Any]

CRUMB = 1e-12
"""Part of a job's work that is rounding: jobs that end together do so up to this."""

IDLE = 10_000
"""Decisions in a row under which no job runs and none arrives, after which a replay is given up."""


# --- what a setting is told, and says ------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Jobs:
    """Jobs of a replay; n is their number.

    Attributes
    ----------
    names : (n,) str
    arrivals : (n,) float
        s, not falling.
    work : (n,) float
        What each job asks for, in the setting's own unit (iterations, GPU-seconds), at least 0.
    fastest : (n,) float
        Greatest rate, work/s, that each job can have on the empty cluster.  No decision may give it more, and its
        slowdown is measured against it.
    deadlines : (n,) float
        s on the clock of ``arrivals``; infinite where there is none.  None by default.
    columns : mapping of str to (n,) array
        What else the table of jobs is to say of each: its model, its weight, its user.

    Raises
    ------
    ReplayError
        When lengths differ, times fall, or a number means nothing.
    """

    names: Any
    arrivals: FloatArray
    work: FloatArray
    fastest: FloatArray
    deadlines: FloatArray | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n = len(self.names)
        object.__setattr__(self, "names", np.array([str(name) for name in self.names], dtype=object))
        if self.deadlines is None:
            object.__setattr__(self, "deadlines", np.full(n, np.inf))
        for name in ("arrivals", "work", "fastest", "deadlines"):
            values = np.array(getattr(self, name), float)
            object.__setattr__(self, name, values)
            if values.shape != (n,):
                raise ReplayError(f"{name}: got shape {values.shape}, must be ({n},), one for each job")
            wrong = np.flatnonzero(~(values >= 0) | (np.isinf(values) & (name != "deadlines")))
            if wrong.size:
                job = int(wrong[0])
                raise ReplayError(
                    f"{name}: got {values[job]:g} for job {self.names[job]}, must be a number, at least 0"
                )
        early = np.flatnonzero(np.diff(self.arrivals) < 0)
        if early.size:
            raise ReplayError(
                f"arrivals: job {self.names[early[0] + 1]} arrives before the one ahead of it, must be in order"
            )
        stuck = np.flatnonzero((self.work > 0) & (self.fastest == 0))
        if stuck.size:
            raise ReplayError(f"fastest: job {self.names[stuck[0]]} has work to do and runs nowhere")
        for name, values in self.columns.items():
            if len(values) != n:
                raise ReplayError(f"columns: {name} has {len(values)} entries, must be {n}, one for each job")

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True, eq=False)
class State:
    """State of a replay when a setting decides; m is the number of jobs that have arrived and are not done.

    All arrays of m follow the order of ``jobs``, which is that of arrival, or, where ties are broken by a seed, a
    random one that stays the same throughout the replay.  A setting whose order means something sorts them itself.

    Attributes
    ----------
    now : float
        s, on the clock of the arrivals.
    jobs : (m,) int
        Indices into the trace.
    left, done : (m,) float
        Work that each has yet to do, and has done.
    service : (m,) float
        GPU-seconds that each has held.
    ran : (m,) float
        Seconds for which each has held any GPUs.
    gpus : (m, s) float
        GPUs of each pool that each has held until now.
    placements : (m,) int
        Key of the placement that each has held until now; 0 where it held none.
    arrivals : (m,) float
        s.
    started : (m,) float
        When each first held GPUs, s; NaN where it has not.
    jitter : (m,) float
        From -1 to 1, one number for each job by the seed of the ties; zeros where ties are not broken by a seed.
    changed : bool
        Whether other jobs are there than at the last decision.
    """

    now: float
    jobs: IntArray
    left: FloatArray
    done: FloatArray
    service: FloatArray
    ran: FloatArray
    gpus: FloatArray
    placements: IntArray
    arrivals: FloatArray
    started: FloatArray
    jitter: FloatArray
    changed: bool


@dataclass(frozen=True, eq=False)
class Decision:
    """Rates and GPUs from now on, for the m jobs of a state in its order.

    Attributes
    ----------
    rates : (m,) float
        Work/s of each.
    gpus : (m, s) float
        GPUs of each pool that each holds; (m,) where there is one pool.  Averages where time is shared.
    placements : (m,) int, optional
        Key of the placement that each holds, not 0 where it runs: a job whose key changes is restarted, or migrated if
        its number of GPUs stays.  By default jobs hold another placement where their row of ``gpus`` is another.
    turned_away : (k,) int
        Jobs, as indices into the trace, that are not to be run at all; they leave.
    until : float
        Time up to which it stands if no job arrives or ends, s.
    capacity : (s,) float, optional
        GPUs of each pool that there are for its duration, where that changes; the setting's by default.
    """

    rates: FloatArray
    gpus: FloatArray
    placements: IntArray | None = None
    turned_away: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    until: float = math.inf
    capacity: FloatArray | None = None


class Ask(Protocol):
    """Function that hands an instance to the decision maker, and records the answer."""

    def __call__(
        self,
        instance: AnyInstance,
        *,
        default: str | None = None,
        asked: AnyInstance | None = None,
        otherwise: Plan | None = None,
        briefly: Briefly | None = None,
        jobs: IntArray | None = None,
        forgiven: Collection[str] = (),
    ) -> Plan:
        """Return a plan for an instance.

        Parameters
        ----------
        instance : Instance
            Who decides is who was named for its problem.
        default : str, optional
            Heuristic that decides where nobody was named for the problem, and where who was has no plan; both are
            recorded.
        asked : Instance, optional
            What the decision maker is shown in place of ``instance``, which judges the plan: the same with weights
            that differ by a jitter, so that ties fall otherwise.
        otherwise : Plan, optional
            What the setting falls back on where none of them has a plan.
        briefly : callable, optional
            Makes a context within which the library's heuristics leave out what the setting will not follow.  It is
            not entered where the whole plan's value is wanted.
        jobs : (n,) int, optional
            Jobs of the instance in its order, as indices into the trace, for programs that decide online
            (:mod:`validation.replay.online`); without it they are not told which are which.
        forgiven : collection of str
            Rules that a plan may break, because the setting can live without; under one that breaks another a program
            ends the replay.

        Raises
        ------
        ReplayError
            When there is no plan.
        """
        ...


Decide = Callable[[State, Ask], Decision]
"""Function that decides in one replay."""


class Setting(Protocol):
    """A cluster, its jobs, and what a paper does with them.

    One that decides in rounds or slots of its own also tells their length, ``round_length``, in seconds.  One that
    knows each job's rate on an equal share of the cluster tells it, ``equal_rates(jobs)``, (m,) float, work/s:
    finish-time fairness is measured against it.

    Attributes
    ----------
    name : str
        Of the paper, and of what the setting was told to do.
    capacity : (s,) float
        GPUs of each pool, within which they are alike: a worker type, a server, or the whole cluster.
    jobs : Jobs
    """

    @property
    def name(self) -> str:
        """Name of the setting in tables."""

    @property
    def capacity(self) -> FloatArray:
        """GPUs of each pool, (s,) float."""

    @property
    def jobs(self) -> Jobs:
        """Jobs that are replayed."""

    def begin(self) -> Decide:
        """Return the function that decides in one replay, and may remember; a setting serves any number of replays."""
        ...


def checked(setting: Any, made_by: str = "setting") -> Setting:
    """Return a setting that has what a replay needs.

    Raises
    ------
    ReplayError
        When something is missing, or is not what it must be; ``made_by`` says where that is from.
    """
    missing = [name for name in ("name", "capacity", "jobs", "begin") if not hasattr(setting, name)]
    if missing:
        raise ReplayError(f"{made_by}: got {type(setting).__name__} without {missing[0]}, must be a setting")
    if not isinstance(setting.jobs, Jobs):
        raise ReplayError(f"{made_by}: jobs: got {type(setting.jobs).__name__}, must be Jobs")
    if not callable(setting.begin):
        raise ReplayError(f"{made_by}: begin: got {type(setting.begin).__name__}, must be a function")
    capacity = np.asarray(setting.capacity, float)
    if capacity.ndim != 1 or not len(capacity) or not ((capacity >= 0) & np.isfinite(capacity)).all():
        raise ReplayError(f"{made_by}: capacity: got {setting.capacity!r}, must be the GPUs of each pool, such as [8]")
    found: Setting = setting
    return found


@dataclass(frozen=True)
class Costs:
    """Costs of changes, in seconds in which the job holds its GPUs and makes no progress; no work is lost.

    Attributes
    ----------
    restart : float
        When a job that has run before runs on another number of GPUs than until now, none among them.
    migration : float
        When a job that runs moves to as many other GPUs.
    """

    restart: float = 0.0
    migration: float = 0.0

    def __post_init__(self) -> None:
        for name in ("restart", "migration"):
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                raise ReplayError(f"{name}: got {value}, must be a number of seconds, at least 0")


# --- the run -------------------------------------------------------------------------------------


def replay(
    setting: Setting,
    *deciders: Decider,
    ties: int | None = None,
    costs: Costs = Costs(),
    round_length: float | None = None,
    gaps: int | Literal["all"] = 0,
    exact_limit: float = 60.0,
    keep: int | Literal["all"] = 0,
    sink: Callable[[int, AnyInstance], None] | None = None,
    seed: int = 0,
    horizon: float = math.inf,
    progress: Callable[[float, int], None] | None = None,
) -> Replayed:
    """Run the jobs of a setting to their ends.

    Parameters
    ----------
    setting : Setting
    *deciders : Decider
        Who decides, one for each problem; the setting's defaults decide the others.
    ties : int, optional
        Seed by which ties are broken: the order of the jobs in each instance, and jitters.  By default jobs are in the
        order of their arrival.
    costs : Costs
    round_length : float, optional
        Decide at multiples of so many seconds from the first arrival only: a job that arrives in between waits, and
        GPUs of one that ends are free from then on.  Not for a setting that has rounds of its own.
    gaps : int or "all"
        Of how many instances of the deciders' problems, a sample drawn by ``seed``, the optimum is found beside, after
        the run, which it does not influence.
    exact_limit : float
        For each of these, s.
    keep : int or "all"
        How many instances are kept, a sample drawn by ``seed`` or each.
    sink : callable, optional
        Is given the number and the instance of each that is kept, in place of ``Replayed.kept``; of "all" as they are
        decided, of a sample when the run is over.
    seed : int
        Of the samples.
    horizon : float
        Time at which the replay stops, s; jobs that are there then have no end.
    progress : callable, optional
        Is told the time and how many jobs are done, at every event.

    Raises
    ------
    ReplayError
        When no job runs and none is to come, or nobody has a plan.
    ConservationError
        When what is decided cannot be.
    """
    with ExitStack() as stack:
        asking = Questions(deciders, stack, gaps=gaps, keep=keep, sink=sink, seed=seed)
        run = _Run(checked(setting), ties, costs, round_length, horizon)
        decide = setting.begin()
        if not callable(decide):
            raise ReplayError(f"begin: got {type(decide).__name__}, must be a function that decides")
        while run.advance(decide, asking):
            if progress is not None:
                progress(run.now, run.num_done)
        asking.close(exact_limit)
    return Replayed(
        jobs=run.books.jobs_table(setting.jobs),
        decisions=asking.table(),
        usage=run.books.usage_table(),
        kept=asking.kept,
    )


class _Run:
    """A run in progress: the clock, and the progress of each job."""

    def __init__(
        self, setting: Setting, ties: int | None, costs: Costs, round_length: float | None, horizon: float
    ) -> None:
        own = getattr(setting, "round_length", None)
        if own is not None and round_length is not None:
            raise ReplayError(f"round_length: {setting.name} has rounds of its own, of {own:g} s")
        round_length = own if round_length is None else round_length
        if round_length is not None and not 0 < round_length < math.inf:
            raise ReplayError(f"round_length: got {round_length}, must be a number of seconds, above 0")
        self.jobs, self.costs = setting.jobs, costs
        self.name, self.equal_rates = setting.name, getattr(setting, "equal_rates", None)
        self.round_length, self.horizon = round_length, horizon
        self.capacity = np.asarray(setting.capacity, float)
        n, pools = len(self.jobs), len(self.capacity)
        self.books = Books(n)
        self.rank, self.jitter = np.arange(n), np.zeros(n)
        if ties is not None:
            rng = np.random.default_rng(ties)
            self.rank, self.jitter = rng.permutation(n), rng.uniform(-1, 1, n)
        self.start = float(self.jobs.arrivals[0]) if n else 0.0
        self.now = self.start
        self.coming = 0
        self.active = np.zeros(0, np.int64)
        self.left, self.done = self.jobs.work.copy(), np.zeros(n)
        # What the last digits of times are worth in work of each job.
        self.digits = np.zeros(n)
        self.rates, self.gpus = np.zeros(n), np.zeros((n, pools))
        self.placements, self.last_width = np.zeros(n, np.int64), np.zeros(n)
        self.paused_until = np.full(n, -np.inf)
        self.equal, self.equal_left = np.zeros(n), self.jobs.work.copy()
        self.stands_until = -math.inf
        self.changed = True
        self.idle = self.num_done = 0

    def advance(self, decide: Decide, ask: Questions) -> bool:
        """Go on to the next event; False when there is none."""
        self._admit()
        if not len(self.active):
            if self.coming == len(self.jobs) or self.jobs.arrivals[self.coming] >= self.horizon:
                self._stop()
                return False
            self._go_to(float(self.jobs.arrivals[self.coming]))
            return True
        if self.round_length is None:
            self._decide(decide, ask, math.inf)
        elif self.now >= self.stands_until:
            rounds = (self.now - self.start) / self.round_length
            if abs(rounds - round(rounds)) > TOLERANCE * max(1.0, rounds):
                # The cluster was empty, and somebody has come in the middle of a round.
                self.stands_until = self.start + math.ceil(rounds) * self.round_length
            else:
                self._decide(decide, ask, self.start + (round(rounds) + 1) * self.round_length)
        if len(self.active):
            self._go_to(self._next_event())
        if self.now >= self.horizon:
            self._stop()
            return False
        return True

    # --- events ---

    def _admit(self) -> None:
        """Let the jobs in that have arrived; one that has nothing to do is done."""
        first = self.coming
        self.coming = int(np.searchsorted(self.jobs.arrivals, self.now, side="right"))
        if self.coming == first:
            return
        new = np.arange(first, self.coming)
        finished = new[self.jobs.work[new] == 0]
        self.books.started[finished] = self.books.ended[finished] = self.jobs.arrivals[finished]
        self.books.equal_end[finished] = self.jobs.arrivals[finished]
        self.num_done += len(finished)
        new = new[self.jobs.work[new] > 0]
        if len(new):
            both = np.concatenate([self.active, new])
            self._now_there(both[np.argsort(self.rank[both], kind="stable")])

    def _now_there(self, jobs: IntArray) -> None:
        """Make these the jobs that are there, with new equal shares."""
        self.active, self.changed = jobs, True
        if len(jobs):
            self.equal[jobs] = self.equal_rates(jobs) if self.equal_rates else np.nan

    def _next_event(self) -> float:
        running = self.active[self.rates[self.active] > 0]
        arrival = self.jobs.arrivals[self.coming] if self.coming < len(self.jobs) else math.inf
        ends = np.maximum(self.now, self.paused_until[running]) + self.left[running] / self.rates[running]
        until = min(float(ends.min(initial=np.inf)), float(arrival), self.stands_until)
        self.idle = 0 if len(running) or self.coming < len(self.jobs) else self.idle + 1
        if math.isinf(until) or self.idle > IDLE:
            names = ", ".join(self.jobs.names[self.active[:3]])
            raise ReplayError(f"no job runs at {self.now:.10g} s, and none is to come; waiting: {names}")
        return min(until, self.horizon)

    def _go_to(self, until: float) -> None:
        """Let time pass: running jobs make progress, and jobs that are done leave."""
        jobs, books = self.active, self.books
        passed = until - self.now
        if passed < 0:
            raise ConservationError("time", f"from {self.now:.17g} s back to {until:.17g} s")
        rates = self.rates[jobs]
        ends = np.maximum(self.now, self.paused_until[jobs]) + np.divide(
            self.left[jobs], rates, out=np.full(len(jobs), np.inf), where=rates > 0
        )
        work = rates * np.clip(until - np.maximum(self.now, self.paused_until[jobs]), 0.0, None)
        self.left[jobs] -= work
        self.done[jobs] += work
        self.digits[jobs] += rates * np.spacing(until)
        holds = self.gpus[jobs].sum(axis=1)
        books.service[jobs] += holds * passed
        books.ran[jobs] += np.where(holds > 0, passed, 0.0)
        self._equal_shares(jobs, passed)
        over = (ends <= until) | ((rates > 0) & (self.left[jobs] <= CRUMB * self.jobs.work[jobs]))
        self.now = until
        if over.any():
            self._end(jobs[over])
            self._now_there(jobs[~over])

    def _equal_shares(self, jobs: IntArray, passed: float) -> None:
        """Let the jobs make progress that would run on equal shares."""
        rate, left = self.equal[jobs], self.equal_left[jobs]
        need = np.divide(left, rate, out=np.full(len(jobs), np.inf), where=rate > 0)
        through = (need <= passed) & (left > 0)
        self.books.equal_end[jobs[through]] = self.now + need[through]
        self.equal_left[jobs] = np.where(need <= passed, 0.0, left - rate * passed)

    def _end(self, jobs: IntArray) -> None:
        work = self.jobs.work[jobs]
        off = np.abs(self.done[jobs] - work) > TOLERANCE * work + 2 * self.digits[jobs]
        if off.any():
            job = jobs[off][0]
            raise ConservationError(
                "work", f"job {self.jobs.names[job]} ends with {self.done[job]:.12g} done of {self.jobs.work[job]:.12g}"
            )
        self.left[jobs], self.done[jobs] = 0.0, work
        self.books.ended[jobs] = self.now
        # Who is done before an equal share would have been is measured as if that share stayed as it is.
        early = jobs[np.isnan(self.books.equal_end[jobs])]
        with np.errstate(divide="ignore"):
            self.books.equal_end[early] = self.now + self.equal_left[early] / self.equal[early]
        self._release(jobs)
        self.num_done += len(jobs)

    def _release(self, jobs: IntArray) -> None:
        self.rates[jobs], self.gpus[jobs], self.placements[jobs] = 0.0, 0.0, 0
        self._note()

    def _note(self) -> None:
        jobs = self.active
        holds = self.gpus[jobs].any(axis=1)
        there = np.isnan(self.books.ended[jobs])
        running = int((holds & there).sum())
        self.books.note(
            self.now, float(self.gpus[jobs].sum()), float(self.capacity.sum()), int(there.sum()) - running, running
        )

    def _stop(self) -> None:
        self.books.close(self.now)

    # --- decisions ---

    def _decide(self, decide: Decide, ask: Questions, until: float) -> None:
        jobs = self.active
        books = self.books
        ask.now = self.now
        state = State(
            now=self.now,
            jobs=jobs.copy(),
            left=self.left[jobs],
            done=self.done[jobs],
            service=books.service[jobs],
            ran=books.ran[jobs],
            gpus=self.gpus[jobs],
            placements=self.placements[jobs],
            arrivals=self.jobs.arrivals[jobs],
            started=books.started[jobs],
            jitter=self.jitter[jobs],
            changed=self.changed,
        )
        self.changed = False
        ask.state, ask.names = state, self.jobs.names
        self._take(jobs, decide(state, ask), until)

    def _take(self, jobs: IntArray, decision: Decision, until: float) -> None:
        """Check a decision, and let it take effect."""
        if not isinstance(decision, Decision):
            raise ReplayError(f"{self.name} decided {type(decision).__name__}, must be a Decision")
        gpus = np.asarray(decision.gpus, float)
        gpus = gpus[:, None] if gpus.ndim == 1 and len(self.capacity) == 1 else gpus
        rates = np.asarray(decision.rates, float)
        if decision.capacity is not None:
            self.capacity = np.asarray(decision.capacity, float)
        away = np.asarray(decision.turned_away, np.int64)
        self._check(jobs, rates, gpus, away)
        self.stands_until = min(until, decision.until)
        if not self.stands_until > self.now:
            raise ConservationError("time", f"a decision at {self.now:.17g} s stands until {self.stands_until:.17g} s")
        before, held = self.gpus[jobs], self.placements[jobs]
        placements = decision.placements
        width, was = gpus.sum(axis=1), before.sum(axis=1)
        if placements is None:
            same = (gpus == before).all(axis=1)
            placements = np.where(same, held, held + 1)
        placements = np.where(width > 0, placements, 0)
        runs, ran = width > 0, ~np.isnan(self.books.started[jobs])
        moved = runs & (was > 0) & (placements != held)
        migrated = moved & (width == was)
        restarted = (moved & (width != was)) | (runs & ran & (was == 0))
        books = self.books
        books.migrations[jobs] += migrated
        books.restarts[jobs] += restarted
        books.preemptions[jobs] += ~runs & (was > 0)
        pause = self.costs.restart * restarted + self.costs.migration * migrated
        self.paused_until[jobs] = np.where(pause > 0, self.now + pause, self.paused_until[jobs])
        first = jobs[runs & ~ran]
        books.started[first] = self.now
        self.rates[jobs], self.gpus[jobs], self.placements[jobs] = rates, gpus, placements
        if len(away):
            books.turned_away[away] = True
            self.num_done += len(away)
            self._now_there(jobs[~np.isin(jobs, away)])
        self._note()

    def _check(self, jobs: IntArray, rates: FloatArray, gpus: FloatArray, away: IntArray) -> None:
        """Check that a decision hands out no more than there is."""

        def refuse(rule: str, bad: Any, what: Callable[[int], str]) -> None:
            if bad.any():
                wrong = np.flatnonzero(bad)
                raise ConservationError(rule, f"{what(int(wrong[0]))} at {self.now:.10g} s")

        def name(job: int) -> str:
            return f"job {self.jobs.names[jobs[job]]}"

        if rates.shape != (len(jobs),) or gpus.shape != (len(jobs), len(self.capacity)):
            raise ConservationError(
                "shape",
                f"rates {rates.shape} and gpus {gpus.shape}, must be ({len(jobs)},) and "
                f"({len(jobs)}, {len(self.capacity)}) at {self.now:.10g} s",
            )
        width = gpus.sum(axis=1)
        used = gpus.sum(axis=0)
        refuse("rate", ~((rates >= 0) & (rates < np.inf)), lambda job: f"{name(job)} gets {rates[job]:g} work/s")
        refuse("gpus", ~(gpus >= 0).all(axis=1), lambda job: f"{name(job)} holds {gpus[job].tolist()} GPUs")
        refuse(
            "capacity",
            used > self.capacity + np.where((gpus == np.round(gpus)).all(axis=0), 0.0, TOLERANCE * self.capacity),
            lambda pool: f"{used[pool]:.12g} GPUs of {self.capacity[pool]:g} of pool {pool}",
        )
        refuse("rate", (rates > 0) & (width == 0), lambda job: f"{name(job)} runs on no GPUs")
        fastest = self.jobs.fastest[jobs]
        refuse(
            "rate",
            rates > fastest * (1 + TOLERANCE),
            lambda job: f"{name(job)} gets {rates[job]:.12g} work/s, more than {fastest[job]:.12g}",
        )
        if not len(away):
            return
        refuse("turned_away", ~np.isin(away, jobs), lambda one: f"job number {away[one]} is not there")
        gone = np.isin(jobs, away)
        refuse("turned_away", gone & (width > 0), lambda job: f"{name(job)} is given GPUs and turned away")
        refuse(
            "turned_away",
            gone & ~np.isnan(self.books.started[jobs]),
            lambda job: f"{name(job)} has run and is turned away",
        )
