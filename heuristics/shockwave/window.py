"""Fast methods for :class:`instances.shockwave.window.Window`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from instances.schema import BoolArray, FloatArray, IntArray
from instances.shockwave.packing import packed
from instances.shockwave.window import Window, WindowPlan

__all__ = ["finish_time_fair", "greedy_marginal", "least_finished_first", "work_conserving"]

LEVELS = 12
"""Longest times left that plans are made for."""
MOST = 2_000
"""Jobs up to which rounds are exchanged, by a table of all pairs."""
GAIN = 1e-12
"""Part of its size by which an exchange must better the value."""


def work_conserving(instance: Window) -> WindowPlan:
    """Run in each round the jobs with the longest time left that GPUs are there for.

    So the released code fills the GPUs that its program leaves idle, in the same order in all rounds: that of the times
    left before the window.  Here it fills all of them.  Ties go to the lowest job.

    Guarantee: feasible where there are no limits, and in no round is a job out that there are GPUs for; none relative
    to the optimum.
    Complexity: O(n log n + n R).

    References
    ----------
    Shockwave's released code (``construct_schedules``).
    """
    return _round_by_round(instance, lambda rounds: instance.times_left, idle=True)


def least_finished_first(instance: Window) -> WindowPlan:
    """Run in each round the jobs with the smallest part of their epochs done that GPUs are there for.

    What they do in the window counts; a job whose epochs are done runs no more.  Ties go to the lowest job.

    Guarantee: feasible where there are no limits, and no job with epochs left is out of a round that there are GPUs
    for; none relative to the optimum.
    Complexity: O(R n log n).

    References
    ----------
    Ours; the order of max-min fairness on what the program's logarithms are of.
    """
    return _round_by_round(instance, lambda rounds: -_progress(instance, rounds))


def finish_time_fair(instance: Window) -> WindowPlan:
    """Run in each round the jobs that would finish latest, measured by their limits, that GPUs are there for.

    A job's finish time is that of its rounds so far and its share after the window, and where it has no limit it is
    measured by the finish time of its share from now on.  A job whose epochs are done runs no more.  Ties go to the
    lowest job.

    Guarantee: feasible where there are no limits, and no job with epochs left is out of a round that there are GPUs
    for; none relative to the optimum.
    Complexity: O(R n log n).

    References
    ----------
    Gavel (OSDI'20), finish-time fairness (that of Themis, NSDI'20), whose ratio orders the jobs of each round here.
    """
    share = max(1.0, instance.num_jobs / instance.num_gpus)
    alone = instance.round_duration * (instance.rounds_past + instance.num_rounds) + instance.times_left * share
    fair = np.where(np.isfinite(instance.finish_limits), instance.finish_limits, alone)
    jobs = np.arange(instance.num_jobs)
    return _round_by_round(instance, lambda rounds: instance.finish_times[jobs, rounds] / fair)


def greedy_marginal(instance: Window) -> WindowPlan | None:
    """Give rounds first by limits and the longest time left, then by gain for each GPU, and exchange what gains.

    For some longest times left, from the least that there are GPU-rounds for: each job gets the rounds that its limit
    and this time need, and the rounds that are left go to the job that gains most utility for each GPU, one after the
    other.  In the best of these plans, one job's round is given to another as long as that gains.

    Guarantee: feasible; with up to 2,000 jobs no exchange of one job's round for another's is better, nor is another
    round; none known relative to the optimum.  None where no rounds are found within the limits, though there may be
    some.
    Complexity: O(n R log(n R)) for each time, and O(n^2 + n R) for each exchange.

    References
    ----------
    Ours: the field's rule for knapsacks, on what the program decides.
    """
    if not instance.num_jobs:
        return WindowPlan(runs=np.zeros((0, instance.num_rounds), bool))
    times = np.unique(instance.times_after)
    low, high = 0, len(times)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _fits(instance, float(times[middle])) else (middle + 1, high)
    best: WindowPlan | None = None
    for at in np.unique(np.linspace(low, len(times) - 1, LEVELS).astype(int)).tolist() if low < len(times) else []:
        runs = packed(
            _needed(instance, float(times[at])), instance.scale_factors, instance.num_gpus, instance.num_rounds
        )
        if runs is not None:
            plan = WindowPlan(runs=_filled(instance, runs))
            best = plan if best is None else max(best, plan, key=instance.objective)
    if best is None or instance.num_jobs > MOST:
        return best
    return WindowPlan(runs=_exchanged(instance, np.array(best.runs)))


def _progress(instance: Window, rounds: IntArray) -> FloatArray:
    """(n,) float: part of its epochs that each job has done after some rounds."""
    progress: FloatArray = (
        instance.epochs_done + instance.planned(rounds) / instance.epoch_durations
    ) / instance.epochs
    return progress


def _round_by_round(instance: Window, urgency: Callable[[IntArray], FloatArray], *, idle: bool = False) -> WindowPlan:
    """Run in each round the most urgent jobs that GPUs are there for; with ``idle`` those without epochs left, too."""
    runs = np.zeros((instance.num_jobs, instance.num_rounds), bool)
    rounds = np.zeros(instance.num_jobs, np.int64)
    total = instance.epoch_durations * (instance.epochs - instance.epochs_done)
    for at in range(instance.num_rounds):
        left = instance.num_gpus
        open_ = idle | (instance.round_duration * rounds < total)
        for job in np.argsort(-urgency(rounds), kind="stable").tolist():
            if open_[job] and instance.scale_factors[job] <= left:
                runs[job, at] = True
                left -= int(instance.scale_factors[job])
        rounds += runs[:, at]
    return WindowPlan(runs=runs)


def _needed(instance: Window, longest: float) -> IntArray:
    """(n,) int: rounds that jobs need at least for their limits and a longest time left."""
    late: IntArray = (instance.times_after > longest).sum(axis=1)
    return np.maximum(late, instance.least_rounds)


def _fits(instance: Window, longest: float) -> bool:
    """Return whether there are GPU-rounds for what jobs need at least."""
    needed = _needed(instance, longest)
    gpus = sum((instance.scale_factors.astype(object) * needed).tolist())
    return bool((needed <= instance.most_rounds).all() and gpus <= instance.capacity)


def _filled(instance: Window, runs: BoolArray) -> BoolArray:
    """Give rounds to jobs, the one first that gains most for each GPU, in the rounds with the most GPUs left."""
    runs = runs.copy()
    rounds = runs.sum(axis=1)
    left = instance.num_gpus - instance.scale_factors @ runs
    gains = np.diff(instance.utilities, axis=1) / instance.scale_factors[:, None]
    job, number = np.divmod(np.argsort(-gains, axis=None, kind="stable"), instance.num_rounds)
    wanted = (number >= rounds[job]) & (gains[job, number] > 0)
    full = np.zeros(instance.num_jobs, bool)
    for one in job[wanted].tolist():
        if full[one]:
            continue
        room = np.where(runs[one], -1, left)
        at = int(room.argmax())
        if room[at] < instance.scale_factors[one]:
            full[one] = True
            continue
        runs[one, at] = True
        left[at] -= instance.scale_factors[one]
    return runs


def _exchanged(instance: Window, runs: BoolArray) -> BoolArray:
    """Give a round of one job to another, that which gains most first, and what is left to whoever gains by it."""
    scales, jobs = instance.scale_factors, np.arange(instance.num_jobs)
    more = np.append(np.diff(instance.utilities, axis=1), np.full((len(jobs), 1), -np.inf), axis=1)
    penalty, after = instance.remaining_penalty, instance.times_after
    value = instance.objective(WindowPlan(runs=runs))
    while True:
        rounds = runs.sum(axis=1)
        left = instance.num_gpus - scales @ runs
        now = after[jobs, rounds]
        with_more = after[jobs, np.minimum(rounds + 1, instance.num_rounds)]
        with_less = after[jobs, np.maximum(rounds - 1, 0)]
        # Of the longest time left of all others, for every pair: it is one of the three longest.
        longest = np.zeros((len(jobs), len(jobs)))
        for job in np.argsort(now, kind="stable")[-3:].tolist():
            others = np.where((jobs[:, None] == job) | (jobs == job), 0.0, now[job])
            longest = np.maximum(longest, others)
        then = np.maximum(longest, np.maximum(with_less[:, None], with_more[None, :]))
        lost = more[jobs, np.maximum(rounds - 1, 0)]
        gains = more[jobs, rounds][None, :] - lost[:, None] - penalty * (then - now.max(initial=0.0))
        gives = (rounds > instance.least_rounds) & (rounds > 0)
        gains = np.where(gives[:, None] & (jobs[:, None] != jobs), gains, -np.inf)
        for pair in np.argsort(-gains, axis=None, kind="stable").tolist():
            giver, taker = divmod(pair, len(jobs))
            if not gains[giver, taker] > GAIN * max(1.0, abs(value)):
                return runs
            at = np.flatnonzero(runs[giver] & ~runs[taker] & (scales[taker] <= scales[giver] + left))
            if at.size:
                changed = runs.copy()
                changed[giver, at[0]], changed[taker, at[0]] = False, True
                changed = _filled(instance, changed)
                break
        else:
            return runs
        found = instance.objective(WindowPlan(runs=changed))
        if found <= value:
            return runs
        runs, value = changed, found
