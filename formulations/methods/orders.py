"""Orders of completions: each has prices of work, and so a schedule and what it is worth; a search goes through them.

Plans follow prices of work (:mod:`instances.afs.work_prices`): those of rules, then those of the order of events
that comes of them, again and again, then those of orders in which an event is moved.

The search says which job completes last, which before it, and so on (jobs that arrive together, on the least concave
curves above theirs).  A partial order is a set U of jobs, their prices y_j, and d_1 <= ... <= d_M, what single GPUs
are worth to them, which add up to the number of jobs in U.  With D(s) = d_1 + ... + d_s, and s(t) the GPUs of all
other jobs R,

    sum_j C_j  >=  sum_{j in U} y_j  +  sum_{j in R} C_j  +  integral of D(s(t)),

and with prices pi of GPUs (:mod:`formulations.methods.share_prices`) at which job j costs g_j at the least

    sum_j C_j  >=  sum_{j in U} y_j  +  sum_{j in R} g_j  -  sum_m integral of max(0, pi(t) - d_m).

Partial orders go layer by layer, and one is forgotten where this is no less than the best value, or beside another of
the same jobs whose prices and D are no more, but for what a greater D can cost until the last of R completes.  Layers
that become too large keep those of the least bounds, and the least of the others bounds all that was left out; they
become wider from pass to pass, until nothing is left out.  The page of the problem has the arguments.
"""

from __future__ import annotations

import math
import random
import time
from dataclasses import replace
from itertools import count

import numpy as np

from formulations.afs.elastic_sharing import for_rounded
from formulations.afs.one_machine import sum_of_ends
from formulations.engine import clock
from formulations.engine.highs import SECOND_LOOK, Proof, Result, Status, version
from formulations.engine.options import Options
from formulations.engine.solution import Solution, judged
from formulations.engine.solving import solve_one_model
from formulations.methods import Choice, Method, completions, one_model
from formulations.methods.beginning import plan_of_heuristic
from formulations.methods.share_prices import Pricing
from instances.afs.elastic_sharing import ElasticSharing, Schedule
from instances.afs.work_prices import Jobs, Run
from instances.base import Plan, agree
from instances.schema import FloatArray, IntArray

__all__ = ["CHOICE", "ORDERS", "Search"]

ROUNDING = 1e-9
"""Part of the best value that a partial order must promise to gain, or it is forgotten."""
MOST_JOBS = 62
"""Jobs up to which orders are searched: a set of jobs is a whole number."""
MOST_BYTES = 8 * 10**8
"""Size of the partial orders of a layer."""
FIRST_WIDTH, WIDER = 2000, 10
"""Partial orders kept in a layer at first, and how many times as many in the next pass."""
PIVOTS = 60
"""Partial orders of the same jobs that all others are compared with: those of the least bounds."""
CHUNK = 4096
"""Partial orders that are continued together."""
FEW_COLUMNS = 2000
"""Columns of the model up to which a proof is checked by it without being asked."""
POWERS = (1.0, 0.5, 2.0, 8.0)
"""How much less the work of longer jobs is worth, in the rules that plans begin with."""
AGAIN = 8
"""How often an order's prices are followed for the order that comes of them."""
STEPS, TURNS, NEAR = 10, 5, 4
"""Moves of the first turn, for each job, and in each turn twice as many; turns without a search; how far moves go."""
EVALUATIONS, PRICED = 20, 0.25
"""Prices that are tried in the first turn, in each twice as many, and the part of the time left that they may take."""
COLUMNS = 100_000
"""Columns up to which the model is tried where time is limited."""


class Search:
    """Partial orders of completions, from the last job to the first, layer by layer.

    Parameters
    ----------
    jobs : Jobs
        That arrive together, up to ``MOST_JOBS``.
    pricing : Pricing
        With prices.
    """

    def __init__(self, jobs: Jobs, pricing: Pricing) -> None:
        assert pricing.best is not None
        prices = pricing.best
        self._jobs, self._prices, self._pricing = jobs, prices, pricing
        self._points = np.unique(np.append(prices.prices, 0.0))
        above = np.maximum(prices.prices - self._points[:, None], 0.0)
        self._above: FloatArray = above @ np.diff(prices.grid)
        self._bits = 1 << np.arange(len(jobs), dtype=np.int64)
        self._root = prices.bound(jobs.num_gpus)

    def run(self, value: float, width: int, ends: float = math.inf) -> tuple[list[int] | None, float]:
        """Search once.

        Parameters
        ----------
        value : float
            The least sum of completion times that is known.
        width : int
            Partial orders kept in a layer.
        ends : float
            Time at which the search ends.

        Returns
        -------
        (list of int or None, float)
            An order that may be worth less than ``value``, and the least bound of what was left out: infinite where
            nothing was.
        """
        n, limit = len(self._jobs), value * (1 - ROUNDING)
        used, worth, total = np.zeros(1, np.int64), np.zeros((1, self._jobs.num_gpus)), np.zeros(1)
        bound = np.array([self._root])
        layers, left_out = [], math.inf
        for _ in range(n):
            parts = []
            for first in range(0, len(used), CHUNK):
                chunk = slice(first, first + CHUNK)
                for job in range(n):
                    if time.perf_counter() >= ends:
                        return None, min(left_out, float(bound.min()))
                    parts.append(self._continued(job, used[chunk], worth[chunk], total[chunk], first, limit))
            used, worth, total, bound, came, job_of = (np.concatenate(part) for part in zip(*parts, strict=True))
            if not len(used):
                return None, left_out
            stays = self._undominated(used, worth, total, bound, limit, ends)
            if len(stays) > width:
                ranks = np.argpartition(bound[stays], width)
                left_out = min(left_out, float(bound[stays[ranks[width]]]))
                stays = stays[np.sort(ranks[:width])]
            used, worth, total, bound = used[stays], worth[stays], total[stays], bound[stays]
            layers.append((came[stays], job_of[stays]))
        best = int(total.argmin())
        order: list[int] = []
        for came, job_of in reversed(layers):
            order.append(int(job_of[best]))
            best = int(came[best])
        # What is at the end is an order whose prices promise as much, which its schedule need not keep.
        return order, min(left_out, float(total.min()))

    def _continued(
        self, job: int, used: IntArray, worth: FloatArray, total: FloatArray, first: int, limit: float
    ) -> tuple[IntArray, FloatArray, FloatArray, FloatArray, IntArray, IntArray]:
        """Return what becomes of partial orders by a job before theirs, where it may be worth less than a limit."""
        jobs, costs = self._jobs, self._prices.least
        which = np.flatnonzero((used & self._bits[job]) == 0)
        price = ((1 + np.cumsum(worth[which], axis=1)) / jobs.concave[job, 1:]).min(axis=1)
        sums, sets = total[which] + price, used[which] | self._bits[job]
        rest = np.where((sets[:, None] & self._bits) == 0, costs, 0.0).sum(axis=1)
        # GPUs are worth no less with another job, so that this is a bound already.
        some = np.flatnonzero(sums + rest - self._paid(worth[which]) < limit)
        which, price, sums, sets, rest = which[some], price[some], sums[some], sets[some], rest[some]
        both = np.concatenate([worth[which], price[:, None] * jobs.gains[job]], axis=1)
        both.sort(axis=1)
        most = both[:, jobs.num_gpus :]
        bound = sums + rest - self._paid(most)
        fine = np.flatnonzero(bound < limit)
        return sets[fine], most[fine], sums[fine], bound[fine], first + which[fine], np.full(len(fine), job)

    def _paid(self, worth: FloatArray) -> FloatArray:
        """Return what all GPUs' prices are above what they are worth, over all time."""
        paid: FloatArray = np.interp(worth, self._points, self._above).sum(axis=1)
        return paid

    def _undominated(
        self, used: IntArray, worth: FloatArray, total: FloatArray, bound: FloatArray, limit: float, ends: float
    ) -> IntArray:
        """Return the partial orders that no other makes needless, of those that are compared."""
        ranks = np.lexsort((bound, used))
        used, total, bound = used[ranks], total[ranks], bound[ranks]
        lost = np.cumsum(worth[ranks], axis=1)
        slacks, times = self._pricing.latest(self._prices, max(limit - float(bound.min()), 0.0))
        level = np.minimum(np.searchsorted(slacks, limit - bound), len(slacks) - 1)
        waits = (used[:, None] & self._bits) == 0
        last = np.where(waits, times[level], 0.0).max(axis=1)
        stays = np.ones(len(used), bool)
        begins = np.flatnonzero(np.append(True, used[1:] != used[:-1]))
        for begin, end in zip(begins.tolist(), np.append(begins[1:], len(used)).tolist(), strict=True):
            if time.perf_counter() >= ends:
                break
            for pivot in range(begin, min(end - 1, begin + PIVOTS)):
                if stays[pivot]:
                    others = slice(pivot + 1, end)
                    more = np.maximum((lost[pivot] - lost[others]).max(axis=1), 0.0)
                    stays[others] &= total[others] < total[pivot] + last[others] * more
        return np.sort(ranks[stays])


class _Solve:
    """The best plan and bound of an instance while it is solved.

    Parameters
    ----------
    instance : ElasticSharing
        With work left, and no job that cannot run.
    options : Options
    """

    def __init__(self, instance: ElasticSharing, options: Options) -> None:
        self._instance, self._options = instance, options
        self.jobs = Jobs(instance)
        self._random = random.Random(options.seed)
        # GPUs do no more of a job than they can.
        self.bound = self._average(sum_of_ends(self.jobs.releases, self.jobs.sizes, self.jobs.alone))
        self.proof: Proof = "argument"
        self.plan: Schedule | None = None
        self.value = math.inf
        self.searched = False
        self._least_whole = math.inf
        self._work = np.ones(len(self.jobs))
        # On the concave curves.
        self.run: Run | None = None
        self._run_work = self._work
        self.pricing: Pricing | None = None

    # --- plans ---

    def _try(self, work: FloatArray) -> Run:
        """Follow prices of work; keep the schedule where it is better."""
        run = self.jobs.follow(work, whole=False)
        if self.run is None or run.total < self.run.total:
            self.run, self._run_work = run, work
        whole = run if self.jobs.all_concave else self.jobs.follow(work, whole=True)
        if whole.total < self._least_whole:
            self._least_whole, self._work = whole.total, work
        return run

    def take(self) -> None:
        """Make the plan of the best prices of work, and let the instance say what it is worth."""
        self.keep(self.jobs.schedule(self._work))

    def keep(self, plan: Plan | None) -> None:
        """Keep a plan if it is better than the best."""
        if isinstance(plan, Schedule) and _better(self._instance, plan, self.value):
            self.plan, self.value = plan, self._instance.objective(plan)

    def begin(self) -> None:
        """Follow rules, and the orders that come of them."""
        jobs = self.jobs
        keys = (jobs.sizes, np.sqrt(jobs.sizes * jobs.alone), jobs.alone)
        for power in POWERS:
            for key in keys:
                run = self._try((key / key.mean()) ** -power * jobs.sizes)
                for _ in range(AGAIN if power == 1 else 0):
                    work = jobs.prices(run.events)
                    if clock.is_up() or work is None:
                        break
                    events = run.events
                    run = self._try(work)
                    if run.events == events:
                        break
                if clock.is_up():
                    return

    def _move(self, steps: int, ends: float) -> None:
        """Move an event of the best order, or change a price, again and again; keep what is better."""
        draw, jobs = self._random, self.jobs
        for _ in range(steps):
            if time.perf_counter() >= ends:
                return
            if not jobs.all_concave and draw.random() < 0.7:
                work = self._work.copy()
                work[draw.randrange(len(work))] *= math.exp(draw.gauss(0, 0.7))
                self._try(work)
                continue
            assert self.run is not None
            events = self.run.events.copy()
            at = draw.randrange(len(events))
            event = events.pop(at)
            events.insert(min(max(0, at + draw.choice((-1, 1)) * draw.randint(1, NEAR)), len(events)), event)
            moved = jobs.prices(events)
            if moved is not None:
                self._try(moved)

    # --- bounds ---

    def _average(self, total: float) -> float:
        """Return the bound on the average that a bound on the sum of completion times proves."""
        return for_rounded(self._instance, self.jobs.average(total))

    @property
    def gap(self) -> float:
        """Gap between the best plan and the bound."""
        return 0.0 if agree(self.value, self.bound) else (self.value - self.bound) / self.value

    @property
    def done(self) -> bool:
        """Whether nothing is left to do, or no time for it."""
        return self.gap <= self._options.mip_gap or clock.is_up()

    def raise_bound(self, total: float, proof: Proof) -> None:
        """Keep a bound on the sum of completion times if it is better."""
        bound = min(self._average(total), self.value)
        if bound > self.bound:
            self.bound, self.proof = bound, proof

    def price(self, steps: int) -> None:
        """Find prices of GPUs, from those of the best schedule on the concave curves when it is first asked."""
        assert self.run is not None
        if self.pricing is None:
            work = self.jobs.prices(self.run.events)
            self.pricing = Pricing(self.jobs, self.run, self._run_work if work is None else work)
        self.pricing.run(self.run.total, steps, time.perf_counter() + PRICED * clock.left())
        if self.pricing.best is not None:
            self.raise_bound(self.pricing.best.bound(self.jobs.num_gpus), "prices")

    def improve(self) -> None:
        """Take turns: better prices, more moves, and wider passes through partial orders."""
        end = time.perf_counter() + clock.left()
        n = len(self.jobs)
        widest = MOST_BYTES // (8 * (3 * self.jobs.num_gpus + 8))
        searches = n <= MOST_JOBS and len(self.jobs.groups) == 1 and widest >= FIRST_WIDTH
        modelled = math.isinf(end) or _columns(self._instance) <= COLUMNS
        for turn in count():
            self.price(EVALUATIONS * 2**turn)
            if not self.done:
                self._move(STEPS * n * 2**turn, end)
            self.take()
            if self.done or (not searches and turn >= TURNS and modelled):
                return
            if not searches or self.pricing is None or self.pricing.best is None or self.run is None:
                continue
            width = min(FIRST_WIDTH * WIDER**turn, widest)
            value = self.run.total
            order, left_out = Search(self.jobs, self.pricing).run(value, width, end)
            if order is not None:
                work = self.jobs.prices(order)
                assert work is not None
                self._try(work)
                self.take()
            self.searched = math.isinf(left_out)
            # What was forgotten promised no more than rounding.
            self.raise_bound(min(left_out, value * (1 - ROUNDING)), "one run")
            if self.done or self.searched or width == widest:
                return


def _columns(instance: ElasticSharing) -> int:
    """Return about how many columns the model has."""
    slots = int(np.count_nonzero(instance.work)) + len(np.unique(instance.arrivals)) - 1
    return int((instance.max_shares + 1).sum()) * slots


def solve(instance: ElasticSharing, options: Options) -> Solution:
    """Return the best plan and bound of prices and orders, and of the models if these prove nothing."""
    began = time.perf_counter()
    if not instance.work.any():
        idle = Schedule(times=np.zeros(1), shares=np.zeros((0, instance.num_jobs), np.int64))
        done = Result("optimal", None, 0.0, None, 0.0, "all jobs are done", "argument")
        return judged(instance, idle, done, began=began, solver="none", solver_version="", method=ORDERS.name)
    known = _Solve(instance, options)
    known.begin()
    known.take()
    if not known.done:
        known.keep(plan_of_heuristic(instance))
        known.improve()
    again = None
    settled = known.gap <= options.mip_gap and known.proof == "one run"
    if settled and options.verify is not False and clock.left() > 0:
        again = _again(instance, options, time.perf_counter() - began)
        if again is not None and agree(again.bound, known.bound):
            known.proof = "two runs"
        if again is not None and isinstance(again.plan, Schedule) and _better(instance, again.plan, known.value):
            # Should it be better than the bound, the verdict below says so.
            known.plan = again.plan
    plan, bound, proof = known.plan, known.bound, known.proof
    message = "time limit" if known.gap > options.mip_gap and clock.is_up() else ""
    tried = clock.left() == math.inf or _columns(instance) <= COLUMNS
    if known.gap > options.mip_gap and clock.left() > 0 and tried:
        by_order = completions.BY_ORDER
        last = by_order.solve(instance, options) if by_order.applies(instance) else solve_one_model(instance, options)
        if last.bound > bound:
            bound, proof = last.bound, last.proof
        if isinstance(last.plan, Schedule) and _better(instance, last.plan, known.value):
            plan = last.plan
        message = last.message
    value = math.inf if plan is None else instance.objective(plan)
    status: Status = "optimal" if agree(value, bound) else "feasible"
    if status != "optimal" and instance.reallocation == "any_time" and not instance.concave.all():
        message = f"{message}; {_not_concave(instance)}" if message else _not_concave(instance)
    return judged(
        instance,
        plan,
        Result(status, None, bound, None, time.perf_counter() - began, message, proof),
        began=began,
        solver="highs",
        solver_version=version(),
        method=ORDERS.name,
    )


def _better(instance: ElasticSharing, plan: Schedule, value: float) -> bool:
    """Tell whether the plan of a model is one of the instance, and better."""
    return not instance.violations(plan) and instance.objective(plan) < value


def _again(instance: ElasticSharing, options: Options, seconds: float) -> Solution | None:
    """Solve the model in which shares may change at any time, which has no choice but the order, as a second way.

    It is asked in the time that a second look may take; None where it is too large for that.
    """
    freer = replace(instance, reallocation="any_time")
    if not options.verify and _columns(freer) > FEW_COLUMNS:
        return None
    with clock.within(None if options.verify else max(SECOND_LOOK[0], SECOND_LOOK[1] * seconds)):
        found = solve_one_model(freer, replace(options, verify=False))
    return found if found.status == "optimal" else None


def _not_concave(instance: ElasticSharing) -> str:
    job = int(np.flatnonzero(~instance.concave)[0])
    return f"job {job}'s curve is not concave, so the model's optimum is a bound that may not be attained"


ORDERS = Method(
    name="orders of completions",
    short="orders",
    proves="prices of GPU-time, and a search of all orders that they leave; after what it can hold, that of the model",
    where="every instance",
    solve=solve,
)
CHOICE = Choice((ORDERS, completions.BY_ORDER, one_model.METHOD))
