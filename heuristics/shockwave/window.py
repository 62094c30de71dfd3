"""Fast methods for :class:`instances.shockwave.window.Window`."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator

import numpy as np

from instances.arithmetic import product
from instances.schema import BoolArray, FloatArray, IntArray
from instances.shockwave.packing import packed
from instances.shockwave.window import Window, WindowPlan

__all__ = ["finish_time_fair", "greedy_marginal", "least_finished_first", "priced_rounds", "work_conserving"]

LEVELS = 12
"""Longest times left that plans are made for."""
MOST = 2_000
"""Jobs up to which rounds are exchanged, by a table of all pairs."""
GAIN = 1e-12
"""Part of its size by which an exchange must better the value."""
TIMES = 4
"""Longest times left, those whose relaxations are worth most, that plans of priced rounds are made for."""
FEWER = 4
"""Numbers of rounds that are tried for each of them: the best, and those without the last one, two and three."""
NEAR, MOST_NEAR = 2, 16
"""Rounds of each width at the price that a table chooses: as many GPUs as two widest jobs hold; and at most."""
TABLE = 100_000
"""GPU-rounds that the table has at most."""


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
    low = _first_that_fits(instance, times, instance.capacity)
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


def priced_rounds(instance: Window) -> WindowPlan | None:
    """Choose numbers of rounds at a price of GPU-rounds, find rounds for them, and exchange what gains.

    While it is open which rounds they are, there is one capacity, the window's GPU-rounds.  For a longest time left,
    each job gets the rounds that it and its limit need; of all others those come first that gain most for each GPU,
    until GPU-rounds run out, and of those next to that price a small table takes the ones that are worth most together.
    Which longest times left are tried is found by bisection, with the relaxation as a bound.  Where no rounds are found
    for the numbers, they are for fewer: without the last ones, or with no more than they need for narrow jobs.  GPUs
    that are left then go by gain, as in :func:`greedy_marginal`, whose plan is taken where none is found, and whose
    exchanges better the best one.

    Guarantee: feasible; optimal where all jobs hold equally many GPUs; with up to 2,000 jobs no exchange of one job's
    round for another's is better, nor is another round; none known relative to the optimum otherwise.  None where no
    rounds are found within the limits, though there may be some.
    Complexity: O(n R log(n R)), O(n R) for each longest time that is looked at, at most n R and mostly fewer than ten,
    and O(n^2 + n R) for each exchange.

    References
    ----------
    Ours, of what solves knapsacks: the relaxation's greedy, and a table of the core about its price (Balas and Zemel,
    An algorithm for large zero-one knapsack problems, Operations Research 28, 1980).
    """
    if not instance.num_jobs:
        return WindowPlan(runs=np.zeros((0, instance.num_rounds), bool))
    numbers = _Numbers(instance)
    relaxed = numbers.relaxations()
    best, value = None, -math.inf
    for longest in sorted(relaxed, key=lambda time: -relaxed[time])[:TIMES]:
        if relaxed[longest] <= value:
            break
        for runs in numbers.packings(longest):
            found = instance.value_of(runs.sum(axis=1))
            if found > value:
                best, value = runs, found
    if best is None:
        return greedy_marginal(instance)
    return WindowPlan(runs=best if instance.num_jobs > MOST else _exchanged(instance, best))


class _Numbers:
    """Numbers of rounds of an instance's jobs, which share the window's GPU-rounds.

    Arrays have an entry for each round that adds to the value, those that add most for each GPU first.

    Attributes
    ----------
    capacity : int
        GPU-rounds, without GPUs that are left in every round because the jobs' GPUs have a common divisor.
    job, number : int arrays
        Whose round it is, and how many the job has before it.
    gains : float array
        What it adds.
    """

    def __init__(self, instance: Window) -> None:
        self.instance, scales = instance, instance.scale_factors
        divisor = int(np.gcd.reduce(scales))
        self.capacity = instance.num_gpus // divisor * divisor * instance.num_rounds
        gains = np.diff(instance.utilities, axis=1)
        order = np.argsort(-gains / scales[:, None], axis=None, kind="stable")
        job, number = np.divmod(order, instance.num_rounds)
        adds = (gains.ravel()[order] > 0) & (number < instance.most_rounds[job])
        self.job, self.number, self.gains = job[adds], number[adds], gains.ravel()[order[adds]]
        self._gpus = scales[self.job]

    def relaxations(self) -> dict[float, float]:
        """Return longest times left and what their relaxations are worth, that of the greatest value among them."""
        times, penalty = np.unique(self.instance.times_after), self.instance.remaining_penalty
        first, last = _first_that_fits(self.instance, times, self.capacity), len(times) - 1
        worth: dict[float, float] = {}

        def bound(start: int, end: int) -> float:
            # What rounds add in the relaxation rises with the longest time.
            one, other = float(times[start]), float(times[end])
            for time in (one, other):
                if time not in worth:
                    worth[time] = self._relaxed(time)
            return worth[other] + penalty * (other - one)

        spans = [(-bound(first, last), first, last)] if first <= last else []
        while spans:
            most, start, end = heapq.heappop(spans)
            if -most <= max(worth.values()):
                break
            middle = (start + end) // 2
            for one, other in ((start, middle), (middle, end)) if end - start > 1 else ():
                heapq.heappush(spans, (-bound(one, other), one, other))
        return worth

    def packings(self, longest: float) -> Iterator[BoolArray]:
        """Yield the jobs' rounds for the best numbers with a longest time left, else those found for fewer."""
        instance, scales = self.instance, self.instance.scale_factors
        needed, best = _needed(instance, longest), self._best(longest)
        beyond = (self.number >= needed[self.job]) & (self.number < best[self.job])
        for width in np.unique(scales).tolist():
            # Narrower jobs get what they need.
            kept = scales >= width
            last = self.job[beyond & kept[self.job]]
            for fewer in range(min(FEWER, len(last) + 1)):
                rounds = np.where(kept, best, needed)
                np.subtract.at(rounds, last[len(last) - fewer :], 1)
                runs = packed(rounds, scales, instance.num_gpus, instance.num_rounds)
                if runs is not None:
                    yield _filled(instance, runs)
                    if (rounds == best).all():
                        return

    def _cut(self, longest: float) -> tuple[IntArray, IntArray, int, int]:
        """Return the rounds needed, which others there are, for how many there are GPU-rounds, and what is left."""
        needed = _needed(self.instance, longest)
        others = np.flatnonzero(self.number >= needed[self.job])
        room = self.capacity - product(self.instance.scale_factors, needed)
        gpus = np.cumsum(self._gpus[others], dtype=float)
        taken = int(np.searchsorted(gpus, room, side="right"))
        return needed, others, taken, room - int(gpus[taken - 1]) if taken else room

    def _relaxed(self, longest: float) -> float:
        """Return what rounds are worth with a longest time left, where one of them may be taken in part."""
        needed, others, taken, room = self._cut(longest)
        worth = self.instance.utilities[np.arange(len(needed)), needed].sum() + self.gains[others[:taken]].sum()
        if taken < len(others):
            worth += room * self.gains[others[taken]] / self._gpus[others[taken]]
        return float(worth) - self.instance.remaining_penalty * longest

    def _best(self, longest: float) -> IntArray:
        """(n,) int: numbers of rounds that are worth most with a longest time left, of those near the price."""
        needed, others, taken, room = self._cut(longest)
        rounds, gpus = needed.copy(), self._gpus[others]
        np.add.at(rounds, self.job[others[:taken]], 1)
        near, cores = NEAR * int(gpus.max(initial=0)), []
        for width in np.unique(gpus)[::-1].tolist():
            alike, number = others[gpus == width], int((gpus[:taken] == width).sum())
            some = min(MOST_NEAR, -(-near // width))
            cores.append((width, alike[max(0, number - some) : number], alike[number : number + some]))
        room += sum(width * len(inside) for width, inside, _ in cores)
        room = min(room, sum(width * (len(inside) + len(outside)) for width, inside, outside in cores))
        if room > TABLE:
            return rounds
        choices, tables = [], [np.zeros(room + 1)]
        for width, inside, outside in cores:
            np.subtract.at(rounds, self.job[inside], 1)
            core = np.concatenate([inside, outside])[: room // width]
            gains, after = np.append(0.0, np.cumsum(self.gains[core])), tables[-1].copy()
            for count in range(1, len(gains)):
                beyond = after[count * width :]
                np.maximum(beyond, tables[-1][: len(beyond)] + gains[count], out=beyond)
            choices.append((width, self.job[core], gains))
            tables.append(after)
        for (width, jobs, gains), table in zip(choices[::-1], tables[-2::-1], strict=True):
            counts = np.arange(min(len(gains), room // width + 1))
            most = int((gains[counts] + table[room - counts * width]).argmax())
            np.add.at(rounds, jobs[:most], 1)
            room -= most * width
        return rounds


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


def _first_that_fits(instance: Window, times: FloatArray, capacity: int) -> int:
    """Return the first longest time left for which there are GPU-rounds; as many as there are times for none."""
    low, high = 0, len(times)
    while low < high:
        middle = (low + high) // 2
        needed = _needed(instance, float(times[middle]))
        fits = (needed <= instance.most_rounds).all() and product(instance.scale_factors, needed) <= capacity
        low, high = (low, middle) if fits else (middle + 1, high)
    return low


def _filled(instance: Window, runs: BoolArray) -> BoolArray:
    """Give rounds to jobs, the one first that gains most for each GPU, in the rounds with the most GPUs left."""
    runs = runs.copy()
    rounds = runs.sum(axis=1)
    left = instance.num_gpus - instance.scale_factors @ runs
    gains = np.diff(instance.utilities, axis=1) / instance.scale_factors[:, None]
    job, number = np.divmod(np.argsort(-gains, axis=None, kind="stable"), instance.num_rounds)
    wanted = (number >= rounds[job]) & (gains[job, number] > 0)
    full = instance.scale_factors > left.max()
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
    return _shortened(instance, runs, left)


def _shortened(instance: Window, runs: BoolArray, left: IntArray) -> BoolArray:
    """Give rounds with GPUs left to the job of the longest time left, as long as that gains."""
    rounds, jobs = runs.sum(axis=1), np.arange(instance.num_jobs)
    while True:
        now = instance.times_after[jobs, rounds]
        job = int(now.argmax())
        room = np.where(runs[job], -1, left)
        at = int(room.argmax())
        if room[at] < instance.scale_factors[job]:
            return runs
        then = max(np.delete(now, job).max(initial=0.0), instance.times_after[job, rounds[job] + 1])
        gain = np.diff(instance.utilities[job])[rounds[job]] + instance.remaining_penalty * (now[job] - then)
        if gain <= 0:
            return runs
        runs[job, at] = True
        rounds[job] += 1
        left[at] -= instance.scale_factors[job]


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
        able = gives[:, None] & (jobs[:, None] != jobs) & (scales <= scales[:, None] + left.max())
        pairs = np.flatnonzero(able & (gains > GAIN * max(1.0, abs(value))))
        for pair in pairs[np.argsort(-gains.ravel()[pairs], kind="stable")].tolist():
            giver, taker = divmod(pair, len(jobs))
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
