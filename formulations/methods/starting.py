"""When waiting jobs start: partial schedules in the order of starts, bounded by prices of GPU-time.

Some order of starts leads to an optimum, each job beginning as early as it fits but not before the one in front of it:
in the order of any schedule's starts, none of them comes later.  So a partial schedule is a set of jobs, the time from
which each lane is free (a lane is as many GPUs as divide every demand), and what its jobs' completions sum up to.
Search goes layer by layer, by the number of jobs that have started, and forgets a partial schedule

- whose bound (:mod:`formulations.methods.gpu_time`) is no less than the best plan's value;
- in which a job that waits would end before the one that starts, on lanes that it leaves idle: sooner costs nobody;
- beside another of the same jobs, free by a delay d later at most: whatever follows the one follows the other d later,
  so it is forgotten where its sum is no less than the other's and d for each job that waits.

Lanes that are too few for every waiting job are free only when enough are.  Of equal jobs the first starts first.

Layers that become too large keep the partial schedules of the least bounds, and the least of the others is a bound on
all that was left out.  Layers become wider from pass to pass, until nothing is left out: that is the proof.  Plans come
from these passes, from the rules of :mod:`formulations.aryl.base_allocation`, from the order of the relaxation's mean
starts, and from moves and swaps in the order (simulated annealing), which take turns with the passes.

Numbers are checked by adding: an optimum is found within 1e-9 of its value, by which times that are sums may be off.
"""

from __future__ import annotations

import math
import random
import time
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import count

import numpy as np

from formulations.aryl.base_allocation import mean_busy
from formulations.engine import clock
from formulations.engine.highs import SECOND_LOOK, Proof, Result, Status, version
from formulations.engine.options import Options
from formulations.engine.solution import Solution, judged
from formulations.engine.solving import solve_one_model
from formulations.methods import Choice, Method, one_model
from formulations.methods.gpu_time import Jobs, Prices, best_prices
from instances.aryl.base_allocation import BaseAllocation, BaseAllocationPlan
from instances.base import agree
from instances.schema import BoolArray, FloatArray, IntArray

__all__ = ["CHOICE", "STARTS", "Annealing", "Search", "plain"]

ROUNDING = 1e-9
"""Part of the best value that a partial schedule must promise to gain, or it is forgotten."""
MOST_JOBS = 60
"""Jobs up to which partial schedules are searched: a set of jobs is a whole number."""
MOST_BYTES = 16 * 10**8
"""Size of the partial schedules of a layer."""
FIRST_WIDTH, WIDER = 400, 10
"""Partial schedules kept in a layer at first, and how many times as many in the next pass."""
INTERVALS = (16, 48, 128)
"""Intervals of the prices: more and more, while they take no more than their share of the time."""
NEIGHBOURS, PIVOTS = 4, 500
"""Partial schedules of the same jobs that each is compared with: next to it by its bound, and the best of all."""
CHUNK = 20_000
"""Partial schedules that are continued together."""
STEPS = 300
"""Steps of the first annealing, for each job; every other has twice as many as the one before."""
TURNS = 6
"""Times that annealing is as long again where nothing else ends it."""
PRICED, COSTLIER = 0.2, 10.0
"""Part of the time for prices, and how many times as long the next grid takes."""
HOT, COLD = 2.0, 0.03
"""Temperatures, in mean running times."""
NEAR = 8
"""Places that most moves go."""


def jobs_of(instance: BaseAllocation) -> tuple[Jobs, IntArray]:
    """Return the jobs with work left, by running time, and which they are."""
    left = np.flatnonzero(instance.running_times > 0)
    which = left[np.lexsort((instance.gpu_demands[left], instance.running_times[left]))]
    gpus = int(np.gcd.reduce(instance.gpu_demands[which]))
    widths = instance.gpu_demands[which] // gpus
    return Jobs(instance.capacity // gpus, widths, instance.running_times[which].astype(float)), which


def begun(jobs: Jobs, order: list[int]) -> FloatArray:
    """Return the starts of jobs, each as early as it fits but not before the one in front of it."""
    starts = np.zeros(len(jobs.times))
    widths, times = jobs.widths.tolist(), jobs.times.tolist()
    running: list[tuple[float, int]] = []
    now, free = 0.0, jobs.lanes
    for job in order:
        while free < widths[job]:
            now, width = heappop(running)
            free += width
        free -= widths[job]
        starts[job] = now
        heappush(running, (now + times[job], widths[job]))
    return starts


def value_of(jobs: Jobs, order: list[int]) -> float:
    """Return the sum of the completion times of an order."""
    return float((begun(jobs, order) + jobs.times).sum())


class Annealing:
    """Moves and swaps of jobs in an order of starts; worse orders are taken the less the later it is.

    Parameters
    ----------
    jobs : Jobs
    seed : int
    """

    def __init__(self, jobs: Jobs, seed: int) -> None:
        self._jobs = jobs
        self._widths, self._times = jobs.widths.tolist(), jobs.times.tolist()
        self._random = random.Random(seed)

    def run(self, order: list[int], steps: int, ends: float) -> list[int]:
        """Return the best order found in some steps from an order, or until a time."""
        draw, n = self._random.random, len(order)
        self._order = list(order)
        # What runs, the lanes that are free, the time, the sum so far, and how long all others run.
        first: tuple[list[tuple[float, int]], int, float, float, float]
        first = ([], self._jobs.lanes, 0.0, 0.0, sum(self._times))
        self._before = [first]
        value = self._remember(0)
        best, least = self._order, value
        temperature = HOT * float(self._jobs.times.mean())
        cooler = (COLD / HOT) ** (1 / steps)
        for step in range(steps):
            if step % 256 == 0 and time.perf_counter() >= ends:
                break
            temperature *= cooler
            i = int(draw() * n)
            k = int(draw() * n) if draw() < 0.3 else min(max(0, i + int((2 * draw() - 1) * (NEAR + 1))), n - 1)
            if i == k:
                continue
            new = self._order.copy()
            if draw() < 0.4:
                new[i], new[k] = new[k], new[i]
            else:
                new.insert(k, new.pop(i))
            limit = value - temperature * math.log(1.0 - draw())
            if self._sum(new, min(i, k), limit) <= limit:
                self._order = new
                value = self._remember(min(i, k))
                if value < least:
                    best, least = new, value
        return best

    def _sum(self, order: list[int], first: int, limit: float) -> float:
        """Return the sum of an order that differs from a place on; something above the limit where it is above it."""
        running, free, now, total, rest = self._before[first]
        running, waiting = running.copy(), len(order) - first
        widths, times = self._widths, self._times
        for job in order[first:]:
            width = widths[job]
            while free < width:
                now, ended = heappop(running)
                free += ended
            free -= width
            end = now + times[job]
            total += end
            rest -= times[job]
            waiting -= 1
            if total + rest + waiting * now > limit:
                return math.inf
            heappush(running, (end, width))
        return total

    def _remember(self, first: int) -> float:
        """Keep what is known before each job from a place on; return the sum."""
        del self._before[first + 1 :]
        running, free, now, total, rest = self._before[first]
        for job in self._order[first:]:
            running, width = running.copy(), self._widths[job]
            while free < width:
                now, ended = heappop(running)
                free += ended
            free -= width
            total += now + self._times[job]
            rest -= self._times[job]
            heappush(running, (now + self._times[job], width))
            self._before.append((running, free, now, total, rest))
        return total


@dataclass
class _Layer:
    """Partial schedules of equally many jobs.

    Attributes
    ----------
    started : (m,) int
        The jobs that have started, a bit each.
    free : (m, lanes) float
        When the lanes are free, ascending; the first is no sooner than the last start.
    total : (m,) float
        Sum of completion times.
    bound : (m,) float
    came, job : (m,) int
        The partial schedule of the layer before, and the job that started after it.
    """

    started: IntArray
    free: FloatArray
    total: FloatArray
    bound: FloatArray
    came: IntArray
    job: IntArray

    def __len__(self) -> int:
        return len(self.started)

    def at(self, which: IntArray | BoolArray) -> _Layer:
        """Return some of them."""
        return _Layer(*(getattr(self, name)[which] for name in vars(self)))


class Search:
    """Partial schedules, layer by layer.

    Parameters
    ----------
    jobs : Jobs
        Up to ``MOST_JOBS``, equal ones side by side.
    prices : Prices
    """

    def __init__(self, jobs: Jobs, prices: Prices) -> None:
        self._jobs, self._prices = jobs, prices
        self._n = len(jobs.times)
        self._bits = 1 << np.arange(self._n, dtype=np.int64)
        self._step, self._least = prices.table(jobs)
        equal = (np.diff(jobs.times) == 0) & (np.diff(jobs.widths) == 0)
        self._after_equal = np.flatnonzero(equal) + 1

    def run(self, value: float, width: int, ends: float = math.inf) -> tuple[float, list[int] | None, float]:
        """Search once.

        Parameters
        ----------
        value : float
            The least sum of completion times that is known.
        width : int
            Partial schedules kept in a layer.
        ends : float
            Time at which the search ends.

        Returns
        -------
        (float, list of int or None, float)
            The least sum, an order of starts if it is less than ``value``, and the least bound of what was left out:
            infinite where nothing was.
        """
        limit = value * (1 - ROUNDING)
        nothing = np.zeros(1, np.int64)
        layer = _Layer(nothing, np.zeros((1, self._jobs.lanes)), np.zeros(1), np.zeros(1), nothing, nothing)
        layers, left_out = [], math.inf
        for waiting in range(self._n - 1, -1, -1):
            parts = []
            for first in range(0, len(layer), CHUNK):
                if time.perf_counter() >= ends:
                    return value, None, min(left_out, float(layer.bound.min()))
                parts.append(self._continued(layer, first, limit))
            layer = _joined(parts)
            if not len(layer):
                return value, None, left_out
            layer = _undominated(layer, waiting, ends)
            if len(layer) > width:
                ranks = np.argpartition(layer.bound, width)
                left_out = min(left_out, float(layer.bound[ranks[width]]))
                layer = layer.at(np.sort(ranks[:width]))
            layers.append((layer.came, layer.job))
        best = int(layer.total.argmin())
        least = float(layer.total[best])
        order: list[int] = []
        for came, job in reversed(layers):
            order.append(int(job[best]))
            best = int(came[best])
        return least, order[::-1], left_out

    def _continued(self, layer: _Layer, first: int, limit: float) -> _Layer:
        """Return what becomes of a chunk of partial schedules by one more job, where it may be worth less than a limit.

        A job's lanes are those that are free first; others that are free by its start wait in vain until then.
        """
        widths, times, prices = self._jobs.widths, self._jobs.times, self._prices
        chunk = layer.at(np.arange(first, min(first + CHUNK, len(layer))))
        waits = (chunk.started[:, None] & self._bits) == 0
        starts = chunk.free[:, widths - 1]
        ends = np.where(waits, starts + times, np.inf)
        # A time that is lost in rounding ends nothing before something else.
        possible = waits & (starts < np.where(ends > starts, ends, np.inf).min(axis=1)[:, None])
        possible[:, self._after_equal] &= ~waits[:, self._after_equal - 1]
        # First a bound that moves no other job and no other lane, which is quick.
        least = np.where(waits, self._tabulated(starts), 0.0)
        begin = prices.until(starts)
        paid = np.cumsum(prices.until(chunk.free), axis=1)
        idle = widths * begin - paid[:, widths - 1]
        own = ends + widths * (prices.until(np.where(waits, ends, 0.0)) - begin)
        rest = chunk.total - self._jobs.lanes * prices.until(np.array(np.inf)) + paid[:, -1] + least.sum(axis=1)
        possible &= rest[:, None] - least + idle + np.where(waits, own, 0.0) < limit
        came, job = np.nonzero(possible)
        start, end = starts[came, job], ends[came, job]
        free = np.maximum(chunk.free[came], start[:, None])
        free = np.where(np.arange(self._jobs.lanes) < widths[job][:, None], end[:, None], free)
        free.sort(axis=1)
        waits = waits[came]
        waits[np.arange(len(job)), job] = False
        # Until the narrowest job fits, nothing begins.
        narrowest = np.where(waits, widths, self._jobs.lanes).min(axis=1)
        free = np.maximum(free, free[np.arange(len(job)), narrowest - 1][:, None])
        total = chunk.total[came] + end
        bound = total - (prices.until(np.array(np.inf)) - prices.until(free)).sum(axis=1)
        soonest = free[:, widths - 1]
        bound += np.where(waits, self._tabulated(soonest), 0.0).sum(axis=1)
        bound = np.maximum(bound, total + self._apart(waits, soonest))
        bound = np.maximum(bound, chunk.bound[came]) if waits.any() else total
        new = _Layer(chunk.started[came] | self._bits[job], free, total, bound, first + came, job)
        return new.at(bound < limit)

    def _apart(self, waits: BoolArray, soonest: FloatArray) -> FloatArray:
        """Return at the least what the completions sum up to if only those of more than half of the lanes meet.

        No two of these run together, so they end no sooner than one after the other, the shortest first.
        """
        times, wide = self._jobs.times, 2 * self._jobs.widths > self._jobs.lanes
        alone = np.where(waits & ~wide, soonest + times, 0.0).sum(axis=1)
        first = np.where(waits & wide, soonest, np.inf).min(axis=1)
        after = first[:, None] + np.cumsum(np.where(waits & wide, times, 0.0), axis=1)
        apart: FloatArray = alone + np.where(waits & wide, after, 0.0).sum(axis=1)
        return apart

    def _tabulated(self, starts: FloatArray) -> FloatArray:
        """Return at the least what the jobs cost that begin at these times or later."""
        steps = np.minimum((starts / self._step).astype(np.int64), self._least.shape[1] - 1)
        least: FloatArray = self._least[np.arange(self._n), steps]
        return least


def _joined(parts: list[_Layer]) -> _Layer:
    """Return all parts as one layer, those of the same jobs side by side, by their bounds."""
    whole = _Layer(*(np.concatenate([getattr(part, name) for part in parts]) for name in vars(parts[0])))
    return whole.at(np.lexsort((whole.bound, whole.started)))


def _undominated(layer: _Layer, waiting: int, until: float) -> _Layer:
    """Return the partial schedules that no other makes needless, of those that are compared.

    Those of the same jobs stand side by side, by their bounds, and only what comes later is forgotten for the sake of
    what comes sooner, as long as there is time.
    """
    gone = np.zeros(len(layer), bool)
    for step in range(1, NEIGHBOURS + 1):
        one = np.flatnonzero(layer.started[step:] == layer.started[:-step])
        gone[one + step] |= _needless(layer, one, one + step, waiting)
    layer = layer.at(~gone)
    first = np.flatnonzero(np.append(True, layer.started[1:] != layer.started[:-1]))
    ends = np.append(first[1:], len(layer))
    stays = np.ones(len(layer), bool)
    for begin, end in np.column_stack([first, ends])[ends - first > NEIGHBOURS].tolist():
        if time.perf_counter() >= until:
            break
        stays[begin:end] = _best_of(layer.total[begin:end], layer.free[begin:end].T.copy(), waiting)
    return layer.at(stays)


def _best_of(total: FloatArray, free: FloatArray, waiting: int) -> BoolArray:
    """Tell of partial schedules of the same jobs, best first, which stay; ``free`` has a column for each."""
    stays = np.ones(len(total), bool)
    for pivot in np.arange(len(total) - 1)[:PIVOTS].tolist():
        if stays[pivot]:
            delay = (free[:, pivot, None] - free[:, pivot + 1 :]).max(axis=0)
            stays[pivot + 1 :] &= total[pivot + 1 :] < total[pivot] + waiting * np.maximum(delay, 0.0)
    return stays


def _needless(layer: _Layer, one: IntArray, other: IntArray, waiting: int) -> BoolArray:
    """Tell of each of ``other`` whether its sum is no less than that of ``one`` of the same jobs, and their delays."""
    gain = layer.total[other] - layer.total[one]
    some = np.flatnonzero(gain >= waiting * np.maximum(layer.free[one, -1] - layer.free[other, -1], 0.0))
    needless = np.zeros(len(one), bool)
    delay = np.maximum((layer.free[one[some]] - layer.free[other[some]]).max(axis=1, initial=0.0), 0.0)
    needless[some] = gain[some] >= waiting * delay
    return needless


class _Solve:
    """The best plan and bound of an instance while it is solved.

    Parameters
    ----------
    instance : BaseAllocation
        With work left, and no job too large.
    options : Options
        With a plan to start from.
    """

    def __init__(self, instance: BaseAllocation, options: Options) -> None:
        self._instance, self._options = instance, options
        self.jobs, self._which = jobs_of(instance)
        assert isinstance(options.start, BaseAllocationPlan)
        self.plan = options.start
        self.value = instance.objective(self.plan)
        starts = options.start.starts[self._which]
        self.order: list[int] = np.argsort(starts, kind="stable").tolist()
        self.bound = mean_busy(instance)
        self.proof: Proof = "argument"
        self.prices: Prices | None = None
        self.searched = False
        self.take(self.order)

    def take(self, order: list[int] | None) -> None:
        """Keep an order if its plan is better than the best."""
        if order is None:
            return
        starts = np.zeros(self._instance.num_jobs)
        starts[self._which] = begun(self.jobs, order)
        plan = BaseAllocationPlan(starts=starts)
        value = self._instance.objective(plan)
        if value < self.value:
            self.plan, self.value, self.order = plan, value, order

    def raise_bound(self, total: float, proof: Proof) -> None:
        """Keep a bound on the sum of completion times if it is better."""
        bound = min(total / self._instance.num_jobs, self.value)
        if bound > self.bound:
            self.bound, self.proof = bound, proof

    @property
    def done(self) -> bool:
        """Whether nothing is left to do, or no time for it."""
        return self.gap <= self._options.mip_gap or clock.is_up()

    @property
    def gap(self) -> float:
        """Gap between the best plan and the bound."""
        return 0.0 if agree(self.value, self.bound) else (self.value - self.bound) / self.value

    def price(self) -> None:
        """Find prices on finer and finer grids, while they are quick beside what time there is."""
        began = time.perf_counter()
        share = clock.left() * PRICED
        for intervals in INTERVALS:
            spent = time.perf_counter() - began
            if self.done or spent * COSTLIER > share:
                break
            with clock.within(max(share - spent, 0.0)):
                try:
                    found = best_prices(self.jobs, intervals, self._options)
                except clock.TimeIsUp:
                    break
            if found is None:
                break
            self.prices, starts = found
            self.raise_bound(self.prices.bound(self.jobs), "prices")
            self.take(np.argsort(starts, kind="stable").tolist())

    def improve(self) -> None:
        """Take turns: passes through partial schedules that become wider, and annealings that become longer."""
        end = time.perf_counter() + clock.left()
        annealing = Annealing(self.jobs, self._options.seed)
        n = len(self.jobs.times)
        widest = MOST_BYTES // (8 * (self.jobs.lanes + 5))
        searches = self.prices is not None and n <= MOST_JOBS and widest >= FIRST_WIDTH
        search = Search(self.jobs, self.prices) if searches and self.prices is not None else None
        for turn in count():
            spent = -time.perf_counter()
            self.take(annealing.run(self.order, STEPS * n * 2**turn, end))
            spent += time.perf_counter()
            if self.done or (search is None and turn >= TURNS and math.isinf(end)):
                return
            if search is None:
                continue
            width = min(FIRST_WIDTH * WIDER**turn, widest)
            total = float((self.plan.starts + self._instance.running_times).sum())
            _, order, left_out = search.run(total, width, end)
            self.take(order)
            self.searched = math.isinf(left_out)
            # What was forgotten promised no more than rounding.
            least = self.value * self._instance.num_jobs * (1 - ROUNDING)
            self.raise_bound(min(left_out, least), "one run")
            if self.done or width == widest:
                return


def solve(instance: BaseAllocation, options: Options) -> Solution:
    """Return the best plan and bound of prices, passes and annealings, and of the one model if these prove nothing."""
    began = time.perf_counter()
    known = _Solve(instance, options)
    known.price()
    if not known.done:
        known.improve()
    seconds = time.perf_counter() - began
    if known.searched and options.verify is not False and clock.left() > 0:
        limit = math.inf if options.verify else max(SECOND_LOOK[0], SECOND_LOOK[1] * seconds)
        if plain(known.jobs, known.value * instance.num_jobs * (1 - ROUNDING), min(limit, clock.left())):
            known.proof = "two runs"
    plan, bound, proof, message = known.plan, known.bound, known.proof, "time limit" if clock.is_up() else ""
    if known.gap > options.mip_gap and clock.left() > 0:
        last = solve_one_model(instance, replace(options, start=plan))
        if last.bound > bound:
            bound, proof = last.bound, last.proof
        if isinstance(last.plan, BaseAllocationPlan) and instance.objective(last.plan) < known.value:
            plan = last.plan
        message = last.message
    status: Status = "optimal" if agree(instance.objective(plan), bound) else "feasible"
    return judged(
        instance,
        plan,
        Result(status, None, bound, None, time.perf_counter() - began, message, proof),
        began=began,
        solver="highs",
        solver_version=version(),
        method=STARTS.name,
    )


def plain(jobs: Jobs, limit: float, seconds: float) -> bool:
    """Tell whether no order of starts has a sum of completion times below a limit: all orders, one after the other.

    It is a second way, which shares no more with :class:`Search` than that orders of starts suffice.  An order is left
    where its jobs and a bound by mean busy times come to the limit.  False where there is such an order, or no time.
    """
    ends = time.perf_counter() + seconds
    widths, times = jobs.widths.tolist(), jobs.times.tolist()
    areas = (jobs.widths * jobs.times / jobs.lanes).tolist()
    jobs_left = sorted(range(len(times)), key=areas.__getitem__)
    # Partial orders as (jobs that wait, by area; when and how wide the others end; lanes that are free; now; sum).
    stack: list[tuple[list[int], list[tuple[float, int]], int, float, float]] = [(jobs_left, [], jobs.lanes, 0.0, 0.0)]
    steps = 0
    while stack:
        waiting, running, free, now, total = stack.pop()
        if not waiting:
            return False
        tried = set()
        for job in waiting:
            steps += 1
            if steps % 256 == 0 and time.perf_counter() >= ends:
                return False
            if (widths[job], times[job]) in tried:
                continue
            tried.add((widths[job], times[job]))
            others, left, start = running.copy(), free, now
            while left < widths[job]:
                start, width = heappop(others)
                left += width
            heappush(others, (start + times[job], widths[job]))
            rest = [other for other in waiting if other != job]
            done = total + start + times[job]
            before = middles = alone = 0.0
            for other in rest:
                middles += before + areas[other] / 2
                before += areas[other]
                alone += times[other]
            if done + len(rest) * start + max(alone, middles + alone / 2) < limit:
                stack.append((rest, others, left - widths[job], start, done))
    return True


STARTS = Method(
    name="orders of starts",
    short="starts",
    proves="prices of GPU-time, and a search of all orders that they leave; after what it can hold, that of the model",
    where="every instance",
    solve=solve,
)
CHOICE = Choice((STARTS, one_model.METHOD))
