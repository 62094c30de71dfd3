"""Schedules that run jobs to completion, as the baselines of Gavel's evaluation do, and their average as an allocation.

A schedule runs each job alone, on workers of one type, without preemption.  If it is over after T s, then
the time that each job has had on its type, over T, is an allocation in which all jobs finish within T.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass

import numpy as np

from instances.gavel.sharing import Allocation
from instances.gavel.steps import SharingWithSteps
from instances.schema import BoolArray, FloatArray, IntArray

__all__ = ["Schedule", "allox_schedule", "assignment", "averaged", "fifo_schedule"]


@dataclass(frozen=True, eq=False)
class Schedule:
    """Times and places at which jobs run.

    Attributes
    ----------
    types : (n,) int
        Worker type of each job; -1 for a job that does not run, because it has finished or cannot.
    starts, ends : (n,) float
        s; 0 for a job that does not run.
    """

    types: IntArray
    starts: FloatArray
    ends: FloatArray


def fifo_schedule(instance: SharingWithSteps) -> Schedule:
    """Jobs in the order of their numbers, each on the first workers that are free for it, whatever their speed.

    A job starts as soon as a type has enough free workers and the job before it has started; of several
    types it takes the lowest.  A type on which a job makes no steps is none for it.

    Guarantee: none.  Complexity: O(n * (k + n)).
    """
    # Of each pool, how many workers are free from when on, the earliest first.
    free = [[(0.0, int(workers))] for workers in instance.num_workers]
    runs = _runs(instance)
    types = np.full(instance.num_jobs, -1)
    starts, ends = np.zeros((2, instance.num_jobs))
    now = 0.0
    for job in np.flatnonzero(instance.active & runs.any(axis=1)):
        held = int(instance.scale_factors[job])
        ready = [
            max(now, _free_from(free[pool], held)) if runs[job, kind] else np.inf
            for kind, pool in enumerate(instance.pools.tolist())
        ]
        kind = int(np.argmin(ready))
        now = starts[job] = ready[kind]
        ends[job] = now + instance.steps[job] / instance.throughputs[job, kind]
        types[job] = kind
        _hold(free[instance.pools[kind]], held, float(ends[job]))
    return Schedule(types, starts, ends)


def _free_from(free: list[tuple[float, int]], held: int) -> float:
    """Return the time from which so many workers of a pool are free."""
    for time, count in free:
        held -= count
        if held <= 0:
            return time
    return np.inf


def _hold(free: list[tuple[float, int]], held: int, until: float) -> None:
    """Take so many workers of a pool, those that are free first."""
    left = held
    while left:
        time, count = free.pop(0)
        if count > left:
            free.insert(0, (time, count - left))
        left -= min(left, count)
    insort(free, (until, held))


def allox_schedule(instance: SharingWithSteps) -> Schedule | None:
    """AlloX: the least average completion time of jobs of one worker, by a matching of jobs and positions.

    A job that is the i-th from the end on its worker delays i jobs, itself included, by its time there.  So
    the least sum of completion times is a least-cost matching of jobs and positions, with i times the job's
    time on the type as the cost.

    Guarantee: least average completion time of the jobs that can run, without preemption and for jobs that
    are all there; None where a job holds several workers, which AlloX does not serve.
    Complexity: O(n**2 * k * (n + W)) for W workers a type.

    References
    ----------
    Gavel (OSDI'20), section 7.3 (the baseline); Le et al., "AlloX" (EuroSys'20).
    """
    if (instance.scale_factors > 1).any():
        return None
    runs = _runs(instance)
    jobs = np.flatnonzero(instance.active & runs.any(axis=1))
    types = np.full(instance.num_jobs, -1)
    starts, ends = np.zeros((2, instance.num_jobs))
    if not jobs.size:
        return Schedule(types, starts, ends)
    pool, worker, position = _positions(instance.num_workers, len(jobs))
    times = np.full((len(jobs), len(instance.num_workers)), np.inf)
    best = np.zeros(times.shape, np.int64)
    for kind, own in enumerate(instance.pools.tolist()):
        mine = np.full(len(jobs), np.inf)
        able = runs[jobs, kind]
        mine[able] = instance.steps[jobs[able]] / instance.throughputs[jobs[able], kind]
        shorter = mine < times[:, own]
        times[shorter, own], best[shorter, own] = mine[shorter], kind
    # A place that is no place for a job costs more than any matching of places that are.
    finite = times[np.isfinite(times)]
    beyond = float(finite.max()) * (len(jobs) + 1) ** 2
    costs: FloatArray = np.where(np.isfinite(times), times, beyond)[:, pool] * position.astype(float)
    chosen = assignment(costs)
    for column in sorted(chosen.tolist(), key=lambda place: (pool[place], worker[place], -position[place])):
        one = int(np.flatnonzero(chosen == column)[0])
        job, own = jobs[one], pool[column]
        before = (pool[chosen] == own) & (worker[chosen] == worker[column]) & (position[chosen] > position[column])
        starts[job] = ends[jobs[before]].max(initial=0.0)
        ends[job] = starts[job] + times[one, own]
        types[job] = best[one, own]
    return Schedule(types, starts, ends)


def _positions(num_workers: IntArray, num_jobs: int) -> tuple[IntArray, IntArray, IntArray]:
    """Pool, worker and position from the end, from 1, of each place; a worker of W needs n / W of them, rounded up."""
    places = [
        (pool, worker, position)
        for pool, workers in enumerate(num_workers.tolist())
        for worker in range(min(workers, num_jobs))
        for position in range(1, -(-num_jobs // workers) + 1)
    ]
    pool, worker, position = np.array(places, np.int64).reshape(-1, 3).T
    return pool, worker, position


def assignment(costs: FloatArray) -> IntArray:
    """(r,) int: a column for each row, all different, of least total cost (the Hungarian method).

    Parameters
    ----------
    costs : (r, c) float
        Finite; c at least r.

    References
    ----------
    Kuhn, "The Hungarian method for the assignment problem" (1955), by shortest augmenting paths.
    """
    rows, columns = costs.shape
    of_row, of_column = np.zeros(rows), np.zeros(columns)
    taken = np.full(columns, -1)
    for row in range(rows):
        slack = np.full(columns, np.inf)
        parent = np.full(columns, -1)
        done = np.zeros(columns, bool)
        current, column, visited = row, -1, [row]
        while True:
            reduced = costs[current] - of_row[current] - of_column
            better = ~done & (reduced < slack)
            slack[better], parent[better] = reduced[better], column
            nearest = int(np.where(done, np.inf, slack).argmin())
            step = slack[nearest]
            of_row[visited] += step
            of_column[done] -= step
            slack[~done] -= step
            done[nearest] = True
            column = nearest
            if taken[column] < 0:
                break
            current = int(taken[column])
            visited.append(current)
        while column >= 0:
            taken[column] = row if parent[column] < 0 else taken[parent[column]]
            column = int(parent[column])
    found = np.zeros(rows, np.int64)
    found[taken[taken >= 0]] = np.flatnonzero(taken >= 0)
    return found


def averaged(instance: SharingWithSteps, schedule: Schedule) -> Allocation:
    """Return the time that the jobs have had when the schedule is over, as fractions of its length."""
    x = np.zeros((instance.num_jobs + instance.num_pairs, instance.num_types))
    jobs = np.flatnonzero(schedule.types >= 0)
    length = float(schedule.ends.max(initial=0.0))
    if length > 0:
        x[jobs, schedule.types[jobs]] = (schedule.ends - schedule.starts)[jobs] / length
    return Allocation(time_fractions=x)


def _runs(instance: SharingWithSteps) -> BoolArray:
    """(n, k) bool: whether a job makes steps alone on a type that it fits."""
    runs: BoolArray = instance.fits[: instance.num_jobs] & (instance.throughputs > 0)
    return runs
