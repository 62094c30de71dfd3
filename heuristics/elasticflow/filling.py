"""Progressive filling, and what else the heuristics of ElasticFlow share.

Jobs are served one after another; each takes GPUs from what the ones before have left,
``free[t]`` in slot t.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from instances.elasticflow.sharing import DeadlineJobs
from instances.schema import FloatArray, IntArray

__all__ = [
    "ROUNDING",
    "Filling",
    "fill_cheapest",
    "fill_fewest",
    "fill_job",
    "fill_job_cleared",
    "fill_jobs",
    "fill_together",
    "needs",
    "power_of_two_below",
    "run_by_deadline",
    "run_elastically",
]

ROUNDING = 1e-12
"""Work counts as done when less than this part of it is missing, for the rounding of sums."""

Filling = Callable[[FloatArray, float, IntArray], IntArray | None]
"""From a job's curve, iterations to do and free GPUs in each slot to its GPUs in each slot."""


def needs(instance: DeadlineJobs[Any]) -> FloatArray:
    """(n,) float: iterations with which each job's work counts as done."""
    return instance.iterations * (1 - ROUNDING)


def fill_job(curve: FloatArray, need: float, free: IntArray, *, powers_of_two: bool = False) -> IntArray | None:
    """Algorithm 1's ``ProgressiveFilling`` for one job, as printed.

    The levels j = 1, 2, ... are tried in turn.  At level j the slots are set to min(j, free GPUs) one by
    one, from the last one backwards (lines 13 to 15); the others keep what they hold from the level
    before, which no line clears.  The job is done as soon as all of its slots together do its iterations
    (line 17).  So slots near the deadline hold j GPUs at most, and those before them j - 1.

    Parameters
    ----------
    curve : (G+1,) float
        Iterations in one slot on 0 to G GPUs.
    need : float
        Iterations to do; a job that has none gets no GPU.
    free : (d,) int
        Free GPUs in each slot that the job may use, up to its deadline.
    powers_of_two : bool
        Whether the job can only run on a power of two: levels are 1, 2, 4, ..., and min() is
        rounded down to one.

    Returns
    -------
    (d,) int or None
        GPUs in each slot; None when no level is enough.

    Notes
    -----
    Guarantee: on a concave curve, no other numbers of GPUs up to ``free`` do the iterations in fewer
    GPU-slots, because steps that gain most are taken first.
    Complexity: O(G + d), by counting the slots with each number of free GPUs.

    References
    ----------
    ElasticFlow (ASPLOS'23), section 4.1, Algorithm 1, lines 11 to 22.
    """
    if need <= 0:
        return np.zeros(len(free), np.int64)
    if powers_of_two:
        free = power_of_two_below(free)
    levels = _levels(len(curve), powers_of_two)
    # At a level only the slots with so many free GPUs change, each by the same.
    open_slots = np.cumsum(np.bincount(free, minlength=len(curve))[::-1])[::-1][levels[1:]]
    gains = np.diff(curve[levels])
    done = np.cumsum(gains * open_slots)
    enough = np.flatnonzero(done >= need)
    if not len(enough):
        return None
    step = int(enough[0])
    below, level, before = levels[step], levels[step + 1], done[step] - gains[step] * open_slots[step]
    raised = np.searchsorted(before + gains[step] * np.arange(1, open_slots[step]), need) + 1
    gpus: IntArray = np.minimum(below, free)
    gpus[np.flatnonzero(free >= level)[-raised:]] = level
    return gpus


def fill_job_cleared(curve: FloatArray, need: float, free: IntArray) -> IntArray | None:
    """:func:`fill_job` with every slot cleared before the next level (ours).

    At level j the job takes min(j, free GPUs) in each slot, from its last slot backwards, until its
    iterations are done; slots that it does not reach hold nothing.  Complexity: O(G + d).
    """
    gpus = np.zeros(len(free), np.int64)
    if need <= 0:
        return gpus
    slots = np.bincount(free, minlength=len(curve))
    # At level j the slots with fewer free GPUs give what they have, the others give j.
    full = np.cumsum(slots[::-1])[::-1]
    done = np.cumsum(slots * curve) - slots * curve + full * curve
    enough = np.flatnonzero(done >= need)
    if not len(enough):
        return None
    gpus[:] = np.minimum(enough[0], free)
    so_far = np.cumsum(curve[gpus[::-1]])
    unused = len(gpus) - 1 - int(np.searchsorted(so_far, need))
    gpus[: max(0, unused)] = 0
    return gpus


MOST_SLOTS, MOST_SUMS = 32, 300_000
"""Slots, and sums of work in all, up to which the fewest GPU-slots are counted out on curves that are not concave."""


def fill_fewest(instance: DeadlineJobs[Any], job: int, free: IntArray, done: float = 0.0) -> IntArray | None:
    """Return the GPUs of a job in each slot, the fewest in all that do its iterations with those that are free (ours).

    ``done`` iterations are done elsewhere.

    On concave curves that is :func:`fill_job`.  On others it is the better of that and :func:`fill_job_cleared`, or,
    in no more than 32 slots, what a dynamic program over slots and GPU-slots finds.  None where nothing is found.
    Complexity: O(G + d), and on curves that are not concave O(G d c) for c GPU-slots.
    """
    curve, need = instance.throughputs[job], float(instance.iterations[job] * (1 - ROUNDING)) - done
    held = fill_job(curve, need, free)
    if instance.concave:
        return held
    cleared = fill_job_cleared(curve, need, free)
    if held is None or (cleared is not None and cleared.sum() < held.sum()):
        held = cleared
    fewer = int(free.sum() if held is None else held.sum() - 1)
    if fewer <= 0 or len(free) > MOST_SLOTS or len(free) * (fewer + 1) * len(curve) > MOST_SUMS:
        return held
    counted = _counted_out(curve, need, free, fewer)
    return held if counted is None else counted


def _counted_out(curve: FloatArray, need: float, free: IntArray, most: int) -> IntArray | None:
    """Return the fewest GPU-slots, up to ``most``, that do the iterations; None where there are none."""
    work = np.zeros(most + 1)
    before = np.arange(most + 1)[:, None] - np.arange(len(curve))
    taken = []
    for left in free.tolist():
        some = before[:, : left + 1]
        sums = np.where(some >= 0, work[np.maximum(some, 0)] + curve[: left + 1], -1.0)
        taken.append(sums.argmax(axis=1))
        work = sums.max(axis=1)
    enough = np.flatnonzero(work >= need)
    if not len(enough):
        return None
    count, gpus = int(enough[0]), np.zeros(len(free), np.int64)
    for slot in reversed(range(len(free))):
        gpus[slot] = taken[slot][count]
        count -= int(gpus[slot])
    return gpus


BISECTIONS = 8
"""Of the price of work in :func:`fill_cheapest`."""

COSTS = 2000
"""Slots times numbers of GPUs with which a job filled by :func:`fill_together` counts as one more."""


def fill_cheapest(curve: FloatArray, need: float, costs: FloatArray) -> IntArray | None:
    """Return the GPUs of a job in each slot that do its iterations and cost little (ours).

    At a price of work each slot takes what is worth most.  The price is bisected; the GPUs at its lower end are raised
    in the one slot where what is missing costs least, those at its upper end lowered in the one where that saves most,
    and the cheaper of the two is returned.

    Parameters
    ----------
    curve : (G+1,) float
        Iterations in one slot on up to 0 to G GPUs, which does not fall.
    need : float
        Iterations to do.
    costs : (d, G+1) float
        What GPUs cost in each slot, from 0 on, more for more.

    Returns
    -------
    (d,) int or None
        GPUs in each slot; None where all GPUs of all slots are too few.

    Notes
    -----
    Guarantee: none known.  Complexity: O(d G) for each bisection.
    """
    slots, few = np.arange(len(costs)), np.zeros(len(costs), np.int64)
    if need <= 0:
        return few
    # As parts of what is to be done, of which no slot can do more than all.
    curve = np.minimum(curve, need) / need
    if not len(costs) or np.cumsum(np.full(len(costs), curve[-1]))[-1] < 1:
        return None

    def worth_most(price: float) -> tuple[IntArray, float]:
        taken: IntArray = (price * curve - costs).argmax(axis=1)
        return taken, float(np.cumsum(curve[taken])[-1])

    lower, upper, missing = 0.0, float(costs[:, -1].max() / curve[-1]), 1.0
    many, done = worth_most(upper)
    while done < 1:
        lower, upper, few, missing = upper, 4 * upper, many, 1 - done
        many, done = worth_most(upper)
    for _ in range(BISECTIONS):
        if np.count_nonzero(few != many) <= 1:
            break
        price = (lower + upper) / 2
        taken, so_far = worth_most(price)
        if so_far < 1:
            lower, few, missing = price, taken, 1 - so_far
        else:
            upper, many, done = price, taken, so_far
    raised = np.searchsorted(curve, curve[few] + missing)
    enough = raised < len(curve)
    more = np.where(enough, costs[slots, np.minimum(raised, len(curve) - 1)] - costs[slots, few], np.inf)
    lowered = np.minimum(np.searchsorted(curve, curve[many] - (done - 1)), many)
    less = costs[slots, many] - costs[slots, lowered]
    up, down = int(more.argmin()), int(less.argmax())
    if np.cumsum(costs[slots, few])[-1] + more[up] <= np.cumsum(costs[slots, many])[-1] - less[down]:
        few = few.copy()
        few[up] = raised[up]
        return few
    many[down] = lowered[down]
    return many


def fill_together(
    instance: DeadlineJobs[Any],
    gpus: IntArray,
    ends: IntArray,
    most: int,
    *,
    price: float = 0.05,
    rise: float = 1.5,
    rounds: int = 12,
) -> tuple[IntArray | None, int]:
    """Let all jobs be done in time, from GPUs with which some are not, or slots are overused (ours).

    Jobs that hold GPUs after their ends are filled anew (:func:`fill_cheapest`), at a price for each GPU and another
    one, 1 at first, for each that a slot does not have.  The latter rises in the slots that are overused, and the jobs
    that hold GPUs there are filled anew, one after the other, until none is.

    Parameters
    ----------
    instance : DeadlineJobs
    gpus : (n, h) int
        GPUs in each slot, with which jobs that hold none after their ends do their iterations.
    ends : (n,) int
        Slots after which each job has to be done.
    most : int
        Jobs that may be filled.
    price : float
        Of a GPU; the smaller, the less it matters how many GPU-slots the jobs take.
    rise : float
        Factor by which the price of GPUs that a slot does not have rises.
    rounds : int
        How often it may rise.

    Returns
    -------
    gpus : (n, h) int or None
        None where no round had all in time; that there is no plan is not said.
    filled : int
        Jobs filled, those in many slots counted more than once.

    Notes
    -----
    Guarantee: none known.  Complexity: O(h G) for each job filled.
    """
    gpus, lacking, filled = gpus.copy(), np.ones(instance.horizon), 0
    counts = np.arange(instance.num_gpus + 1)
    curves, need = instance.best_throughputs, needs(instance)
    late = np.arange(instance.horizon) >= ends[:, None]
    todo = np.flatnonzero((late & (gpus > 0)).any(axis=1))
    gpus[late] = 0
    usage = gpus.sum(axis=0)
    for _ in range(rounds):
        for job in todo.tolist():
            end = ends[job]
            others = usage[:end] - gpus[job, :end] - instance.num_gpus
            over = np.maximum(others[:, None] + counts, 0) - np.maximum(others, 0)[:, None]
            held = fill_cheapest(curves[job], need[job], price * counts + lacking[:end, None] * over)
            filled += 1 + over.size // COSTS
            if held is None or filled > most:
                return None, filled
            usage[:end] += held - gpus[job, :end]
            gpus[job, :end] = held
        overused = usage > instance.num_gpus
        if not overused.any():
            return gpus, filled
        lacking[overused] *= rise
        todo = np.flatnonzero((gpus[:, overused] > 0).any(axis=1))
    return None, filled


def _levels(count: int, powers_of_two: bool) -> IntArray:
    """0 and the levels below ``count``."""
    if not powers_of_two:
        return np.arange(count)
    powers = 2 ** np.arange(count.bit_length())
    return np.concatenate([[0], powers[powers < count]])


def power_of_two_below(counts: IntArray) -> IntArray:
    """Return the greatest power of two up to each count; 0 for 0."""
    exponents = np.frexp(np.maximum(counts, 1))[1] - 1
    return np.where(counts > 0, 2 ** exponents.astype(np.int64), 0)


def fill_jobs(instance: DeadlineJobs[Any], jobs: IntArray, fill: Filling = fill_job) -> IntArray | None:
    """Algorithm 1: the jobs in order of deadline, each filled into what the ones before have left.

    Returns
    -------
    (n, h) int or None
        GPUs in each slot, 0 for the jobs that are not in ``jobs``; None when one cannot finish.
    """
    gpus = np.zeros((instance.num_jobs, instance.horizon), np.int64)
    free = np.full(instance.horizon, instance.num_gpus)
    need = needs(instance)
    for job in jobs[np.argsort(instance.deadlines[jobs], kind="stable")]:
        deadline = instance.deadlines[job]
        filled = fill(instance.throughputs[job], need[job], free[:deadline])
        if filled is None:
            return None
        gpus[job, :deadline] = filled
        free[:deadline] -= filled
    return gpus


def run_elastically(instance: DeadlineJobs[Any]) -> IntArray:
    """Fill the jobs in order of deadline: each as Algorithm 1 does, or, if it finds no level, as fast as it can run.

    Returns
    -------
    (n, h) int
        GPUs in each slot; jobs may miss their deadlines.
    """
    gpus = np.zeros((instance.num_jobs, instance.horizon), np.int64)
    free = np.full(instance.horizon, instance.num_gpus)
    need = needs(instance)
    for job in np.argsort(instance.deadlines, kind="stable"):
        deadline, curve = instance.deadlines[job], instance.throughputs[job]
        filled = fill_job(curve, need[job], free[:deadline])
        if filled is None:
            filled = _scaled_out(curve, free[:deadline])
        gpus[job, :deadline] = filled
        free[:deadline] -= filled
    return gpus


def run_by_deadline(instance: DeadlineJobs[Any], jobs: IntArray) -> IntArray:
    """In each slot the jobs take, in order of deadline, as many GPUs as do not slow them down.

    A job runs from slot 0 until its iterations are done or its deadline has come.

    Returns
    -------
    (n, h) int
        GPUs in each slot, 0 for the jobs that are not in ``jobs``; jobs may miss their deadlines.
    """
    gpus = np.zeros((instance.num_jobs, instance.horizon), np.int64)
    free = np.full(instance.horizon, instance.num_gpus)
    need = needs(instance)
    for job in jobs[np.argsort(instance.deadlines[jobs], kind="stable")]:
        deadline, curve = instance.deadlines[job], instance.throughputs[job]
        taken = _scaled_out(curve, free[:deadline])
        before = np.cumsum(curve[taken]) - curve[taken]
        taken[before >= need[job]] = 0
        gpus[job, :deadline] = taken
        free[:deadline] -= taken
    return gpus


def _scaled_out(curve: FloatArray, free: IntArray) -> IntArray:
    """Of the free GPUs in each slot, as many as a job can scale out to before its throughput falls."""
    falls = np.flatnonzero(np.diff(curve) < 0)
    taken: IntArray = np.minimum(free, falls[0] if falls.size else len(curve) - 1)
    return taken
