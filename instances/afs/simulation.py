"""Schedules from rules: a cluster simulated from one arrival or completion to the next.

Heuristics are such rules, exact models follow from one to bound what is left, and replays look at the beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np

from instances.afs.elastic_sharing import EXACT, ElasticSharing, Schedule
from instances.schema import FloatArray, IntArray

__all__ = ["Policy", "State", "Turns", "beginning", "simulate"]


@dataclass(frozen=True)
class State:
    """The state of jobs that a scheduler sees when it re-allocates.

    Attributes
    ----------
    now : float
        Time, s.
    active : (m,) int
        Jobs that have arrived and are not done, by index.
    remaining : (n,) float
        Iterations that each job has yet to do.
    shares : (n,) int
        GPUs that each job held until now.
    attained : (n,) float
        Time for which each job has run so far, s, before the instance begins among it.
    """

    now: float
    active: IntArray
    remaining: FloatArray
    shares: IntArray
    attained: FloatArray


Policy = Callable[[State], IntArray]
"""Shares of all jobs, (n,) int, from a state; those of jobs that are not active do not count."""


Turns = Callable[[IntArray, FloatArray], FloatArray]
"""From the jobs that are there, (m,) int, and how long each job has run, (n,) float, s: how long each will
have run when its turn is over, (n,) float, s."""


_END: ContextVar[float] = ContextVar("end", default=np.inf)


@contextmanager
def beginning(end: float) -> Iterator[None]:
    """Let :func:`simulate` stop at the first event at ``end``, s, or later, for who follows schedules no further.

    Such a schedule leaves work undone, which its instance does not forgive.
    """
    token = _END.set(end)
    try:
        yield
    finally:
        _END.reset(token)


def simulate(instance: ElasticSharing, policy: Policy, *, turns: Turns | None = None) -> Schedule:
    """Return the schedule that follows when ``policy`` is asked at every arrival and completion.

    Parameters
    ----------
    instance : ElasticSharing
    policy : callable
        Shares from a :class:`State`.
    turns : callable, optional
        When turns end: the policy is asked then too, which the class "at_completions" does not allow.

    Raises
    ------
    ValueError
        When the policy lets no job run and none is to come, so that the simulation would not end.
    """
    jobs = np.arange(instance.num_jobs)
    work, arrivals = instance.work, instance.arrivals
    remaining, attained = work.copy(), instance.attained.copy()
    shares = instance.held
    now = float(arrivals.min()) if len(jobs) else 0.0
    times = [now]
    rows: list[IntArray] = []
    end = _END.get()
    while remaining.any() and now < end:
        active = np.flatnonzero((arrivals <= now) & (remaining > 0))
        chosen = np.zeros(len(jobs), np.int64)
        if len(active):
            chosen[active] = policy(State(now, active, remaining.copy(), shares, attained.copy()))[active]
        shares = chosen
        rates = instance.throughputs[jobs, shares]
        running = np.flatnonzero(rates)
        finish = now + remaining[running] / rates[running]
        to_come = arrivals[arrivals > now]
        until = min(finish.min(initial=np.inf), to_come.min(initial=np.inf))
        if np.isinf(until):
            raise ValueError(f"the policy lets no job run at {now:g} s, and no job is to arrive")
        if ((finish <= now) & (remaining[running] == work[running])).any():
            # Of a job that takes less than times can tell, something must be seen.
            until = float(np.nextafter(now, np.inf))
        if turns is not None and len(running):
            until = min(until, now + float((turns(active, attained) - attained)[running].min()))
        remaining[running] -= rates[running] * (until - now)
        attained[running] += until - now
        # Jobs that end together do so up to rounding, and must not leave crumbs behind.
        remaining[running[finish <= until]] = 0.0
        remaining[remaining <= EXACT * work] = 0.0
        if until > now:
            if rows and np.array_equal(rows[-1], shares):
                times[-1] = until
            else:
                rows.append(shares)
                times.append(until)
        now = until
    return Schedule(times=np.array(times), shares=np.array(rows).reshape(len(rows), len(jobs)))
