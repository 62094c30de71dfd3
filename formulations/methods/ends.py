"""Best-effort jobs beside deadlines, by a search of this problem's own: when each is done, and what it pays for that.

Let a GPU cost pi_t >= 0 in slot t.  In any plan the jobs pay for no more than all G GPUs of every slot, so that

    sum_i C_i  >=  sum_{i best-effort} min_e [e + least_i(e)]  +  sum_{i with deadline} least_i(D_i)  -  G sum_t pi_t,

where least_i(e) is what job i pays at the least to be done after e slots (:mod:`formulations.methods.slot_prices`).
This holds for all prices; the best are those of a linear program with a column for each way of a job to be done, which
are made as they are called for (Gilmore and Gomory).  Completion times are whole, so the bound is rounded up.

Plans come from the same columns in whole numbers.  Where plan and bound differ, the plans are divided into parts by
when a job is done: after at most so many slots, or after more.  Where the relaxation of a part has each job done at one
time, these times are deadlines, and whether they can all be met is the question of
:mod:`instances.elasticflow.minimum_satisfactory_share`.

References
----------
Gilmore and Gomory, "A linear programming approach to the cutting-stock problem" (1961).
"""

from __future__ import annotations

import contextlib
import heapq
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import highspy
import numpy as np

from formulations.elasticflow.greedy import could_be_served, served
from formulations.engine import clock
from formulations.engine.highs import WEAKEST_FIRST, Proof, Result, Status, limit_run, version
from formulations.engine.linear import LinearProgram, csr
from formulations.engine.options import Options
from formulations.engine.solution import Solution, judged
from formulations.engine.solving import solve_by_method
from formulations.methods import Choice, Method, one_model
from formulations.methods.slot_prices import payers
from instances.elasticflow.best_effort import BestEffort
from instances.elasticflow.minimum_satisfactory_share import MinimumSatisfactoryShare
from instances.elasticflow.sharing import SlotPlan
from instances.schema import BoolArray, FloatArray, IntArray

__all__ = ["CHOICE", "ENDS", "Ways", "prices", "search"]

ROUNDING = 1e-9
"""Part of all that is summed up to a bound by which the sum may be off."""
WHOLE = 1e-6
"""Amount by which a bound may exceed a whole number and be rounded to it."""
FIRST_PLANS = 1
"""Parts after which plans are looked for among the columns, and again whenever there are four times as many."""
MOST_MISSED = 1e7
"""Cost of a job that is not done up to which it is raised, in slots."""
PLAN_SECONDS = 10.0
"""Limit for looking for a plan among the columns, s."""
PLAN_PART = 0.25
"""And as a part of the time that is left."""


@dataclass(eq=False)
class Part:
    """The plans in which each job is done after ``first`` to ``last`` slots: (n,) int each.

    Attributes
    ----------
    prices : (h,) float, optional
        Of a GPU in each slot, which prove what is known of the part; None where they prove nothing.
    halves : tuple, optional
        A job and a number of slots, and the parts in which it is done by then and later.
    """

    first: IntArray
    last: IntArray
    prices: FloatArray | None = None
    halves: tuple[int, int, Part, Part] | None = None

    def divided(self, job: int, end: int) -> tuple[Part, Part]:
        """Divide it by whether a job is done after at most so many slots, or after more, and return the two."""
        lower, upper = self.first.copy(), self.last.copy()
        lower[job], upper[job] = end + 1, end
        halves = Part(self.first, upper, self.prices), Part(lower, self.last, self.prices)
        self.halves = (job, end, *halves)
        return halves

    def proof(self) -> dict[str, Any] | None:
        """Return the prices of its undivided parts, as the reference reads them; None where some part has none."""
        if self.halves is None:
            return None if self.prices is None else {"slots": self.prices.tolist()}
        job, end, *halves = self.halves
        sooner, later = (half.proof() for half in halves)
        return None if sooner is None or later is None else {"job": job, "end": end, "sooner": sooner, "later": later}


def search(instance: BestEffort, options: Options) -> Solution:
    """Return the best plan, by dividing the plans by when the jobs are done until no part can hold a better one."""
    began = time.perf_counter()
    count = max(1, int(instance.best_effort.sum()))
    found = _Search(instance, options)
    try:
        found.run()
    except clock.TimeIsUp:
        found.message = "time limit, "
    status: Status = "unknown" if found.plan is None else "optimal" if found.bound >= found.value else "feasible"
    if found.plan is None and math.isinf(found.bound):
        status = "infeasible"
    return judged(
        instance,
        None if found.plan is None else SlotPlan(gpus=found.plan),
        Result(
            status, None, found.bound / count, None, found.ways.seconds, f"{found.message}{found.parts:,} parts",
            found.proof,
        ),
        began=began,
        solver="highs",
        solver_version=version(),
        method=ENDS.name,
    )  # fmt: skip


def prices(instance: BestEffort, plan: SlotPlan | None) -> list[dict[str, Any]]:
    """Return prices for the reference: those that prove most of all plans, and those of the parts of the search.

    Parameters
    ----------
    instance : BestEffort
    plan : SlotPlan, optional
        The best plan known, which the search begins with.
    """
    found = _Search(instance, Options(start=plan))
    with contextlib.suppress(clock.TimeIsUp):
        found.run()
    proofs = Part(found.whole.first, found.whole.last, found.whole.prices).proof(), found.whole.proof()
    return [proof for proof in proofs if proof is not None]


class _Search:
    """The search under way.

    Attributes
    ----------
    plan : (n, h) int, optional
        The best plan found.
    value, bound : float
        The sum of its completion times, and the bound on that of any plan; infinite without one.
    parts : int
        Parts that were bounded.
    proof : str
        Ground of the bound.
    """

    def __init__(self, instance: BestEffort, options: Options) -> None:
        self.instance, self.options = instance, options
        self.plan: IntArray | None = None
        self.value, self.bound, self.parts, self.message = math.inf, 0.0, 0, ""
        self.proof: Proof = "prices"
        self.jobs = instance.iterations > 0
        self.waiting = self.jobs & instance.best_effort
        self.ways = Ways(instance)
        first = np.where(self.waiting, 1, instance.deadlines)
        self.whole = Part(first, instance.deadlines, np.zeros(instance.horizon))

    def run(self) -> None:
        """Search until the bound is met, or as near as is asked for."""
        instance = self.instance
        if isinstance(self.options.start, SlotPlan):
            self.take(self.options.start.gpus)
        for give in (_rising_most, _shortest_first):
            self.take(_filled(instance, give))
        self.bound = float(self.waiting.sum())
        parts: list[tuple[float, int, Part]] = []
        undecided, number, next_plans = math.inf, 0, FIRST_PLANS
        bound, part = self.bound, self.whole
        while True:
            bound, amounts = self.ways.bounded(part, bound, self.value)
            self.parts += 1
            left = min(undecided, parts[0][0] if parts else math.inf)
            self.bound = max(self.bound, min(bound, left, self.value))
            clock.check()
            if self.parts >= next_plans and bound < self.value:
                self.take(self.ways.plan(self.options, self.plan))
                next_plans *= 4
            if bound < self.value:
                split, decided = self.divided(part, bound, amounts)
                undecided = undecided if decided else min(undecided, bound)
                for each in split:
                    number += 1
                    heapq.heappush(parts, (bound, -number, each))
            left = min(undecided, parts[0][0] if parts else math.inf)
            self.bound = max(self.bound, min(left, self.value))
            if not parts or parts[0][0] >= self.value or self.value - self.bound <= self.options.mip_gap * self.value:
                break
            bound, _, part = heapq.heappop(parts)

    def take(self, gpus: IntArray | None) -> None:
        """Keep a plan if it is one, and better."""
        if gpus is None or self.instance.violations(SlotPlan(gpus=gpus)):
            return
        completion = self.instance.completion(gpus)
        self.ways.take(gpus, completion)
        value = float(completion[self.waiting].sum())
        if value < self.value:
            self.plan, self.value = gpus, value

    def divided(self, part: Part, bound: float, amounts: FloatArray) -> tuple[list[Part], bool]:
        """Return the parts of a part that are left, and whether all else of it holds no plan better than is known."""
        mean, spread = self.ways.ends(part, amounts, self.waiting)
        ends = np.where(self.waiting, np.maximum(self.ways.latest(part, amounts), part.first), part.last)
        if spread.max(initial=0.0) > WHOLE:
            gpus, done = served(replace(self.instance, deadlines=ends), np.argsort(ends, kind="stable"))
            if done.all():
                self.take(np.pad(gpus, ((0, 0), (0, self.instance.horizon - gpus.shape[1]))))
            if bound >= self.value:
                return [], True
            job = int(spread.argmax())
            middle = min(max(int(mean[job]), part.first[job]), part.last[job] - 1)
            return [*part.divided(job, int(middle))][::-1], True
        # Each job is done at one time.
        there_is = self.met(ends)
        if bound >= self.value:
            return [], True
        # Nor are these times met if some are earlier: one of them is later.
        split = []
        for job in np.flatnonzero(self.waiting & (ends < part.last)).tolist():
            part, later = part.divided(job, int(ends[job]))
            split.append(later)
        # Nor do any prices say so.
        part.prices = None
        return split, there_is is not None

    def met(self, ends: IntArray) -> bool | None:
        """Look whether all jobs can be done by these times, and keep the plan; None where that stays open."""
        instance = self.instance
        asked = MinimumSatisfactoryShare(
            num_gpus=instance.num_gpus,
            iterations=instance.iterations,
            deadlines=ends,
            throughputs=instance.throughputs,
        )
        # Any plan will do, however many GPU-slots it takes.
        gpus, done = served(asked, np.argsort(ends, kind="stable"))
        if not done.all():
            try:
                with clock.within(min(PLAN_SECONDS, PLAN_PART * clock.left())):
                    answer = solve_by_method(asked, replace(self.options, mip_gap=1.0, start=None))
            except clock.TimeIsUp:
                return None
            if answer.status == "infeasible":
                # The bound rests on the weakest of these answers.
                self.proof = min(self.proof, answer.proof, key=WEAKEST_FIRST.index)
                return False
            if not isinstance(answer.plan, SlotPlan):
                return None
            gpus = answer.plan.gpus
        self.take(np.pad(gpus, ((0, 0), (0, instance.horizon - gpus.shape[1]))))
        return True


class Ways:
    """Ways of the jobs to be done, as columns of a linear program, which are made as its prices call for them.

    The solver's word is not believed: any prices prove the bound that is summed here.

    Attributes
    ----------
    seconds : float
        Time in the solver, s.
    """

    def __init__(self, instance: BestEffort) -> None:
        self._instance = instance
        self._jobs = np.flatnonzero(instance.iterations > 0)
        self._waits = instance.best_effort
        self._payers = payers(instance)
        # Columns: the job of each, when it is done, and its GPUs.
        self._job: list[int] = []
        self._end: list[int] = []
        self._gpus: list[IntArray] = []
        self._known: set[tuple[int, int, bytes]] = set()
        self.seconds = 0.0
        self._highs = highspy.Highs()
        self._highs.setOptionValue("output_flag", False)
        self._highs.setOptionValue("presolve", "off")
        for _ in self._jobs:
            self._highs.addRow(1.0, highspy.kHighsInf, 0, [], [])
        for _ in range(instance.horizon):
            self._highs.addRow(-highspy.kHighsInf, float(instance.num_gpus), 0, [], [])
        self._row = {job: row for row, job in enumerate(self._jobs.tolist())}
        # A job that is not done costs more than one that is done last.
        self._missed = 2.0 * (instance.horizon + 1)
        for row in range(len(self._jobs)):
            self._highs.addCol(self._missed, 0.0, highspy.kHighsInf, 1, [row], [1.0])

    def take(self, gpus: IntArray, completion: IntArray) -> None:
        """Make columns of a plan."""
        for job in self._jobs.tolist():
            end = int(completion[job] if self._waits[job] else self._instance.deadlines[job])
            self._add(job, end, gpus[job, :end])

    def _add(self, job: int, end: int, gpus: IntArray) -> bool:
        key = (job, end, gpus.tobytes())
        if key in self._known:
            return False
        self._known.add(key)
        slots = np.flatnonzero(gpus)
        rows = np.append(self._row[job], len(self._jobs) + slots).astype(np.int32)
        cost = float(end) if self._waits[job] else 0.0
        values = np.append(1.0, gpus[slots]).astype(float)
        self._highs.addCol(cost, 0.0, highspy.kHighsInf, len(rows), rows, values)
        self._job.append(job)
        self._end.append(end)
        self._gpus.append(gpus)
        return True

    def bounded(self, part: Part, bound: float, value: float) -> tuple[float, FloatArray]:
        """Return the bound of a part, and how much of each column its relaxation takes.

        It ends as soon as the bound, in whole numbers, is at ``value`` or cannot rise, or the time is up.  A part whose
        bound is above the latest ends of its jobs holds no plan, and its bound is infinite.

        Parameters
        ----------
        part : Part
        bound, value : float
            A bound of the part that is known, and the value of the best plan.
        """
        self._restrict(part)
        most = float(part.last[self._waits & (self._instance.iterations > 0)].sum())
        whole, best = False, np.zeros(self._instance.horizon)
        while True:
            amounts, duals = self._run()
            missed, amounts = float(amounts[: len(self._jobs)].sum()), amounts[len(self._jobs) :]
            reached = float(self._costs(part) @ amounts) + self._missed * missed
            prices = np.maximum(-duals[len(self._jobs) :], 0.0)
            # Prices between the best and the last ones prove more while these leap.
            for mean in ((best + prices) / 2, prices):
                try:
                    total, new = self._priced(part, mean, duals, whole=whole)
                except clock.TimeIsUp:
                    return bound, amounts
                if total > bound + WHOLE:
                    best = part.prices = mean
                bound = max(bound, math.inf if math.isinf(total) else math.ceil(total - WHOLE))
                if new or bound >= value or bound > most:
                    break
            if bound > most:
                return math.inf, amounts
            if bound >= value:
                return bound, amounts
            if missed > WHOLE and self._missed < MOST_MISSED:
                if whole and not new:
                    self._miss(10 * self._missed)
            elif bound >= math.ceil(reached - WHOLE) or (whole and not new):
                return bound, amounts
            whole = whole or not new

    def _miss(self, cost: float) -> None:
        """Let a job that is not done cost so much."""
        self._missed = cost
        jobs = np.arange(len(self._jobs), dtype=np.int32)
        self._highs.changeColsCost(len(jobs), jobs, np.full(len(jobs), cost))

    def _restrict(self, part: Part) -> None:
        """Leave the columns that a part has, at what they cost in it."""
        if self._job:
            columns = np.arange(len(self._jobs), len(self._jobs) + len(self._job), dtype=np.int32)
            upper = np.where(np.array(self._end) <= part.last[self._job], highspy.kHighsInf, 0.0)
            self._highs.changeColsBounds(len(columns), columns, np.zeros(len(columns)), upper)
            self._highs.changeColsCost(len(columns), columns, self._costs(part))

    def _costs(self, part: Part) -> FloatArray:
        job = np.array(self._job, np.int64)
        return np.where(self._waits[job], np.maximum(self._end, part.first[job]), 0).astype(float)

    def _run(self) -> tuple[FloatArray, FloatArray]:
        limit_run(self._highs, clock.left())
        began = time.perf_counter()
        self._highs.run()
        self.seconds += time.perf_counter() - began
        found = self._highs.getSolution()
        return np.nan_to_num(found.col_value), np.nan_to_num(found.row_dual)

    def _priced(self, part: Part, prices: FloatArray, duals: FloatArray, *, whole: bool) -> tuple[float, bool]:
        """Return the bound of a part by some prices, and whether it has new columns that the last duals call for."""
        own = np.maximum(-duals[len(self._jobs) :], 0.0)
        total, size, new = 0.0, self._instance.num_gpus * float(prices.sum()), False
        for row, job in enumerate(self._jobs.tolist()):
            clock.check()
            first, last = int(part.first[job]), int(part.last[job])
            each = 1.0 if self._waits[job] else 0.0
            paid = self._payers[job].cheapest(prices, first, last, each, whole=whole)
            total += paid.least
            if len(paid.gpus) and each * paid.end + own[: paid.end] @ paid.gpus < duals[row] - ROUNDING * (
                1 + duals[row]
            ):
                new |= self._add(job, paid.end, paid.gpus)
        return total if math.isinf(total) else total - size - ROUNDING * (abs(total) + size), new

    def ends(self, part: Part, amounts: FloatArray, waiting: BoolArray) -> tuple[FloatArray, FloatArray]:
        """(n,) float each: when each best-effort job is done in the mean of a relaxation, and how that varies."""
        job, end = np.array(self._job), np.maximum(self._end, part.first[self._job])
        n = self._instance.num_jobs
        amounts = amounts[: len(job)] if len(amounts) >= len(job) else np.pad(amounts, (0, len(job) - len(amounts)))
        of = np.maximum(np.bincount(job, weights=amounts, minlength=n), WHOLE)
        mean = np.bincount(job, weights=amounts * end, minlength=n) / of
        spread = np.bincount(job, weights=amounts * (end - mean[job]) ** 2, minlength=n) / of
        return mean, np.where(waiting & (part.first < part.last), spread, 0.0)

    def latest(self, part: Part, amounts: FloatArray) -> IntArray:
        """(n,) int: when each job is done at the latest in a relaxation, as far as more than a little of it is."""
        latest = part.first.copy()
        for column in np.flatnonzero(amounts > WHOLE).tolist():
            job = self._job[column]
            latest[job] = max(latest[job], self._end[column])
        return np.minimum(latest, part.last)

    def plan(self, options: Options, start: IntArray | None) -> IntArray | None:
        """Return the best plan of the columns, one of each job, or the best that is found in a while."""
        instance = self._instance
        job, count = np.array(self._job), len(self._job)
        slot = [np.flatnonzero(gpus) for gpus in self._gpus]
        rows = np.concatenate([np.array([self._row[one] for one in self._job]), len(self._jobs) + np.concatenate(slot)])
        columns = np.concatenate([np.arange(count), np.repeat(np.arange(count), [len(one) for one in slot])])
        values = np.concatenate([np.ones(count), np.concatenate(self._gpus)[np.concatenate(self._gpus) > 0]])
        num_rows = len(self._jobs) + instance.horizon
        lower = np.concatenate([np.ones(len(self._jobs)), np.full(instance.horizon, -np.inf)])
        upper = np.concatenate([np.ones(len(self._jobs)), np.full(instance.horizon, float(instance.num_gpus))])
        program = LinearProgram(
            "min", 0.0, np.where(self._waits[job], self._end, 0).astype(float),
            np.zeros(count), np.ones(count), np.ones(count, bool),
            *csr(rows, columns, values.astype(float), num_rows), lower, upper,
        )  # fmt: skip
        limit = min(PLAN_SECONDS, PLAN_PART * clock.left())
        began = time.perf_counter()
        point = None if start is None else self._point(start)
        found = replace(options, time_limit=limit, verify=False).session().run(program, start=point)
        self.seconds += time.perf_counter() - began
        if found.x is None:
            return None
        gpus = np.zeros((instance.num_jobs, instance.horizon), np.int64)
        for column in np.flatnonzero(found.x > 0.5).tolist():
            gpus[self._job[column], : self._end[column]] = self._gpus[column]
        return gpus

    def _point(self, plan: IntArray) -> FloatArray:
        """Return a plan as a point: of each job one of the columns that it is."""
        x, seen = np.zeros(len(self._job)), set()
        for column, (job, end, gpus) in enumerate(zip(self._job, self._end, self._gpus, strict=True)):
            if (
                job not in seen
                and np.array_equal(plan[job, :end], gpus)
                and not (self._waits[job] and plan[job, end:].any())
            ):
                seen.add(job)
                x[column] = 1.0
        return x


Give = Callable[[BestEffort, int, FloatArray], IntArray]
"""From the idle GPUs of a slot, and the iterations that best-effort jobs have left, to their GPUs in it."""


def _filled(instance: BestEffort, give: Give) -> IntArray | None:
    """Serve the jobs with deadlines, as late as can be, and then the others, slot by slot, with what they leave."""
    deadlines = np.where(instance.best_effort, instance.horizon, instance.deadlines)
    with_one = replace(instance, iterations=np.where(instance.best_effort, 0.0, instance.iterations))
    gpus, done = served(with_one, np.argsort(deadlines, kind="stable"))
    if not done.all():
        return None
    left = np.where(instance.best_effort, instance.iterations, 0.0)
    for slot in range(instance.horizon):
        clock.check()
        left[instance.deadlines <= slot] = 0.0
        if not left.any():
            break
        held = give(instance, instance.num_gpus - int(gpus[:, slot].sum()), left)
        gpus[:, slot] += held
        left = np.maximum(0.0, left - instance.throughputs[np.arange(instance.num_jobs), held])
    return gpus


def _rising_most(instance: BestEffort, free: int, left: FloatArray) -> IntArray:
    """Give idle GPUs one by one where throughput rises most, beside that on one GPU; then to the least left."""
    held = np.zeros(instance.num_jobs, np.int64)
    # A job that does nothing on one GPU comes after those that do.
    alone = np.where(instance.throughputs[:, 1] > 0, instance.throughputs[:, 1], np.inf)
    slots, jobs = left / alone, np.arange(len(held))
    alone = np.where(np.isinf(alone), instance.best_throughputs[:, -1:].max(initial=1.0), alone)
    for _ in range(free):
        more = np.minimum(held + 1, instance.num_gpus)
        gain = (instance.throughputs[jobs, more] - instance.throughputs[jobs, held]) / alone
        gain = np.where(left > 0, gain, 0.0)
        job = int(np.lexsort((slots, -gain))[0])
        if gain[job] <= 0:
            break
        held[job] += 1
    return held


def _shortest_first(instance: BestEffort, free: int, left: FloatArray) -> IntArray:
    """Give the job with the least left, at its fastest, all idle GPUs that make it faster, then the next."""
    held = np.zeros(instance.num_jobs, np.int64)
    best = instance.best_throughputs
    for job in np.argsort(left / np.maximum(best[:, -1], np.finfo(float).tiny), kind="stable").tolist():
        if left[job] > 0:
            held[job] = np.searchsorted(best[job], best[job, free])
            free -= int(held[job])
    return held


ENDS = Method(
    name="ends of the jobs",
    short="ends",
    proves="prices of a GPU in each slot for each part of the plans that is left, rounded up: slots are counted",
    where="jobs that could each be done in time with all GPUs",
    solve=search,
    applies=lambda instance: bool(could_be_served(instance).all()),
)
CHOICE = Choice((ENDS, one_model.METHOD))
"""How problems are solved: the exact methods by name, and which problem knows which."""
