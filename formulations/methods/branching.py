"""Servers to give back, by a search of this problem's own: parts of the plans, each with a bound by prices.

Without the row that counts the returned servers, the relaxation of :mod:`formulations.aryl.reclaim` has whole vertices,
so all of its weakness is that row's: it returns a bit of many servers, and preempts as much of their jobs.  A part of
the plans fixes some servers as returned and some as kept.  The next server to fix is one that costs much either way:
returned, it brings jobs that no other does; kept, nearly all of its jobs are preempted all the same.  A few dozen parts
raise the bound by more than cuts do, which see few servers at a time.

The bound of a part is that of its relaxation, proven by prices: they divide each job among its servers, and the demand
cannot cost less than the servers that are cheapest by that.  Preempted jobs are counted, so the bound is rounded up.
The relaxation of a part is solved from the basis of the part that it was divided from, a few steps of simplex away.

Where hundreds of servers are returned, no few parts tell much.  After some hundred of them the relaxation of all plans
is tightened by spreading constraints (:mod:`formulations.methods.spreading`), as long as these raise its bound beyond
that of the parts; the better of the two bounds counts.  They make the programs larger and slower, so that parts are
bounded without them.  What the tightened relaxation returns most of is where swaps begin as well.

Plans come from servers that are added one by one, the cheapest first, and from swaps of one server for another, where
what was swapped stays for some steps (Glover's tabu search): from the best plan, and from some that grow about one
server each, since good plans are few clusters of servers and swaps do not lead from one cluster to another.

References
----------
Glover, "Tabu search, part I" (1989).
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Iterator
from typing import Any

import highspy
import numpy as np

from formulations.engine import clock
from formulations.engine.highs import Result, Status, hand_over, limit_run, version
from formulations.engine.linear import LinearProgram, csr
from formulations.engine.options import Options
from formulations.engine.solution import Solution, judged
from formulations.methods import Choice, Method, one_model
from formulations.methods.spreading import spread
from instances.aryl.reclaim import Reclaim, ReclaimPlan
from instances.schema import BoolArray, FloatArray, IntArray

__all__ = ["CHOICE", "PARTS", "Relaxation", "prices", "relaxation", "search"]

Basis = highspy.HighsBasis

WHOLE = 1e-6
"""Amount by which a bound may exceed a whole number and be rounded to it; it is a sum of floats."""
FIRST_SWAPS = 8
"""Parts after which plans are first looked for by swaps, and again whenever there are four times as many."""
GROWN = 8
"""Plans that swaps then start from, beside the best one."""
STEPS = 2
"""Swaps without a better plan after which they end, for each server."""
STAYS = (7, 15)
"""Steps that a swapped server stays, drawn from the first to below the second."""
FIRST_SPREAD = 256
"""Parts after which spreading constraints are tried."""
ROUNDS = 5
"""Rounds of them by whose raise of the bound it is told whether more are worth while."""
SLOW = 0.05
"""Raise in so many rounds, relative to what lies between the best plan and the bound, below which they end."""
DRAWN = 80
"""Servers whose constraints are looked for in a round."""
ADDED = 30
"""Constraints that a round adds at most in either direction."""
WEIGHTLESS, IDLE = 1e-6, 100
"""Weight up to which a constraint is idle, and how many of these stay; more are dropped together."""
SHARES = (4, 12, 60, 840)
"""Shares that a job is divided into among its servers, in the order in which they are tried."""
VIOLATED = 1e-3
"""Violation, in servers, up to which a constraint is not added."""


def search(instance: Reclaim, options: Options) -> Solution:
    """Return the best plan, by dividing the plans into parts until none can hold a better one.

    Parameters
    ----------
    instance : Reclaim
        Which demands no more servers than there are.
    options : Options
        With a plan to start from.
    """
    began = time.perf_counter()
    assert isinstance(options.start, ReclaimPlan)
    best = np.isin(np.arange(instance.num_servers), options.start.servers)
    value = _preempted(instance, best)
    rng = np.random.default_rng(options.seed)
    for width in (np.ones(instance.num_jobs), np.maximum(instance.hosts.sum(axis=1), 1)):
        best, value = _better(instance, best, value, _grown(instance, 1 / width))
    best, value = _better(instance, best, value, _swapped(instance, best, rng))
    relaxed = Relaxation(instance)
    nothing = np.zeros(instance.num_servers, bool)
    least, next_swaps = relaxed.bound(relaxed.divided, nothing, ~nothing), FIRST_SWAPS
    # What is known of all plans at once, from the relaxation with spreading constraints.
    floor, spreads, seconds = _whole(least), True, 0.0
    # Parts as (bound, number, server to fix next, servers that are returned, servers that may be, basis).
    parts: list[tuple[float, int, int, BoolArray, BoolArray, Basis | None]] = []
    new: list[tuple[float, BoolArray, BoolArray, Basis | None]] = [(floor, nothing, ~nothing, None)]
    while True:
        for bound, returned, allowed, basis in new:
            if instance.demand in (returned.sum(), allowed.sum()):
                # There is one plan.
                only = returned if returned.sum() == instance.demand else allowed
                best, value = _better(instance, best, value, only)
            elif returned.sum() < instance.demand < allowed.sum() and bound < value:
                least, share, basis = relaxed.solve(returned, allowed, basis)
                best, value = _better(instance, best, value, _largest(share, instance.demand))
                bound = max(bound, _whole(least))
                if bound < value:
                    server = _costly(relaxed.pairs, returned, allowed, share)
                    heapq.heappush(parts, (bound, relaxed.solved, server, returned, allowed, basis))
        if relaxed.solved >= next_swaps and parts and parts[0][0] < value:
            best, value = _better(instance, best, value, _swapped(instance, best, rng))
            for _ in range(GROWN):
                grown = _grown(instance, np.ones(instance.num_jobs), rng)
                best, value = _better(instance, best, value, _swapped(instance, grown, rng))
            next_swaps *= 4
        bound = min(max(parts[0][0], floor), value) if parts else value
        if value - bound <= options.mip_gap * value or clock.is_up():
            break
        if spreads and relaxed.solved >= FIRST_SPREAD:
            spreads = False
            raised, tight = [0.0], Relaxation(instance)
            for least, share in tight.tightened(rng):
                best, value = _better(instance, best, value, _swapped(instance, _largest(share, instance.demand), rng))
                raised = [*raised[-ROUNDS:], max(raised[-1], least)]
                floor = _whole(raised[-1])
                gain = raised[-1] - raised[0]
                slow = gain < SLOW * (value - raised[-1]) or raised[-1] + gain < bound
                if slow or value - floor <= options.mip_gap * value or clock.is_up():
                    break
            new, seconds = [], tight.seconds
            continue
        bound, _, server, returned, allowed, basis = heapq.heappop(parts)
        fixed = np.arange(instance.num_servers) == server
        new = [(bound, returned | fixed, allowed, basis), (bound, returned, allowed & ~fixed, basis)]
    status: Status = "optimal" if bound == value else "feasible"
    why = "time limit, " if clock.is_up() and bound < value else ""
    return judged(
        instance,
        ReclaimPlan(servers=np.flatnonzero(best)),
        Result(status, None, bound, None, seconds + relaxed.seconds, f"{why}{relaxed.solved:,} parts", "prices"),
        began=began,
        solver="highs",
        solver_version=version(),
        method=PARTS.name,
    )


def prices(instance: Reclaim, plan: ReclaimPlan) -> dict[str, Any]:
    """Return prices that prove a plan best, for the reference: the plans are divided until each part's prove enough.

    Parameters
    ----------
    instance : Reclaim
    plan : ReclaimPlan
        A best one.
    """
    relaxed, value = Relaxation(instance), int(instance.objective(plan))
    nothing = np.zeros(instance.num_servers, bool)

    def proof(returned: BoolArray, allowed: BoolArray, basis: Basis | None) -> dict[str, Any]:
        free, more = allowed & ~returned, instance.demand - int(returned.sum())
        if not 0 <= more <= int(free.sum()):
            # Nothing is left to be proven of no plan.
            return {"of": 1, "shares": np.zeros(relaxed.pairs.shape[1], int).tolist()}
        clock.check()
        least, share, basis = relaxed.solve(returned, allowed, basis)
        for of in SHARES if _whole(least) >= value or not free.any() else ():
            shares = relaxed.shares(of)
            cost = np.bincount(relaxed.pairs[1], weights=shares, minlength=len(free))
            if cost[returned].sum() + np.sort(cost[free])[:more].sum() > of * (value - 1) or not free.any():
                return {"of": of, "shares": shares.tolist()}
        server = _costly(relaxed.pairs, returned, allowed, share)
        fixed = np.arange(len(free)) == server
        sides = proof(returned | fixed, allowed, basis), proof(returned, allowed & ~fixed, basis)
        return {"server": server, "returned": sides[0], "kept": sides[1]}

    return proof(nothing, ~nothing, None)


class Relaxation:
    """The relaxation of a part of the plans, from the basis of the part that it was divided from.

    Nothing that the solver returns is believed: its weights take spreading constraints off the objective, its prices
    divide what is left of each job among its servers, and the bound is what the demand costs by them, summed here.  Any
    weights and prices prove one.

    Attributes
    ----------
    pairs : (2, p) int
        Jobs and their servers.
    rows, least : (m, s + k) and (m,) int
        Spreading constraints on the servers and the k sets of jobs on several: what they come to at least.
    solved, seconds : int, float
        Programs solved, and the time in the solver, s.
    prices : (p,) float
        Those of the last program, of jobs on several servers.
    """

    def __init__(self, instance: Reclaim) -> None:
        self._demand, self._rows = instance.demand, instance.hosts
        self.pairs = np.argwhere(instance.hosts).T
        self._alone, self._hosts, self._count = _wide_and_alone(instance)
        self._jobs, self._servers = np.nonzero(self._hosts)
        self._cost = np.concatenate([self._alone, self._count]).astype(float)
        self.rows, self.least = np.zeros((0, len(self._cost)), np.int64), np.zeros(0, np.int64)
        self.solved, self.seconds = 0, 0.0
        self.prices = self.divided
        self._highs = highspy.Highs()
        settings = {"output_flag": False, "presolve": "off", "solver": "simplex"}
        # Steepest edges would have to be found anew for each basis.
        for name, setting in {**settings, "simplex_dual_edge_weight_strategy": 1}.items():
            self._highs.setOptionValue(name, setting)
        hand_over(self._highs, relaxation(instance))

    @property
    def divided(self) -> FloatArray:
        """(p,) float: prices that divide each job on several servers among them alike."""
        prices: FloatArray = (self._count / self._hosts.sum(axis=1))[self._jobs]
        return prices

    def bound(
        self, prices: FloatArray, returned: BoolArray, allowed: BoolArray, weights: FloatArray | None = None
    ) -> float:
        """Return what the demand costs at the least in a part.

        Parameters
        ----------
        prices : (p,) float
            Of jobs on several servers, on each of them.
        returned, allowed : (s,) bool
            Servers that are returned, and that may be.
        weights : (m,) float, optional
            Of the spreading constraints.  By as much as a row exceeds what it comes to at least, times a weight, the
            objective may be lowered.
        """
        weights = np.zeros(len(self.least)) if weights is None else np.maximum(weights, 0.0)
        alone, count = np.split(self._cost - weights @ self.rows, [len(returned)])
        # A job whose count is below 0 then is preempted once at most.
        fixed = weights @ self.least + np.minimum(count, 0.0).sum()
        count, prices = np.maximum(count, 0.0), np.maximum(prices, 0.0)
        paid = np.bincount(self._jobs, weights=prices, minlength=len(count))
        prices = prices * np.divide(count, paid, out=np.ones(len(paid)), where=paid > count)[self._jobs]
        cost = alone + np.bincount(self._servers, weights=prices, minlength=len(returned))
        cheapest = np.sort(cost[allowed & ~returned])[: self._demand - int(returned.sum())]
        return float(fixed + cost[returned].sum() + cheapest.sum())

    def solve(
        self, returned: BoolArray, allowed: BoolArray, basis: Basis | None
    ) -> tuple[float, FloatArray, Basis | None]:
        """Return the bound of a part, how much of each server its relaxation returns, and its basis."""
        servers = np.arange(len(returned), dtype=np.int32)
        self._highs.changeColsBounds(len(servers), servers, returned.astype(float), allowed.astype(float))
        if basis is not None:
            self._highs.setBasis(basis)
        limit_run(self._highs, clock.left())
        began = time.perf_counter()
        self._highs.run()
        self.solved, self.seconds = self.solved + 1, self.seconds + time.perf_counter() - began
        found, num_pairs = self._highs.getSolution(), len(self._jobs)
        share = np.array(found.col_value[: len(returned)] if found.value_valid else (returned + allowed) / 2)
        prices, weights = self.divided, np.zeros(len(self.least))
        if found.dual_valid:
            dual = np.nan_to_num(found.row_dual)
            prices, weights = dual[:num_pairs], dual[num_pairs + 1 :]
        self.prices, share = prices, np.clip(np.nan_to_num(share), returned, allowed)
        basis = self._highs.getBasis()
        return self.bound(prices, returned, allowed, weights), share, basis if basis.valid else None

    def shares(self, of: int) -> IntArray:
        """(pairs,) int: shares of each job on each of its servers, ``of`` one, by the last prices.

        Rounded down, but the largest rests up, as many as their sum allows.
        """
        prices = np.maximum(self.prices, 0.0)
        paid = np.bincount(self._jobs, weights=prices, minlength=len(self._count))
        parts = of * prices / np.maximum(paid, self._count)[self._jobs]
        rounded = np.floor(parts + WHOLE).astype(np.int64)
        sums = [np.bincount(self._jobs, weights=one, minlength=len(self._count)) for one in (parts, rounded)]
        lacking = np.floor(sums[0] + WHOLE) - sums[1]
        order = np.lexsort((rounded - parts, self._jobs))
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order)) - np.searchsorted(self._jobs, self._jobs)
        rounded += rank < lacking[self._jobs]
        of_row = {row.tobytes(): rounded[self._jobs == k].tolist() for k, row in enumerate(self._hosts)}
        return np.array([share for row in self._rows for share in of_row.get(row.tobytes(), [of] * int(row.sum()))])

    def tightened(self, rng: np.random.Generator) -> Iterator[tuple[float, FloatArray]]:
        """Yield the bound of all plans, and how much of each server is returned, as spreading constraints are added.

        Each round adds those that the point violates most, of some servers drawn.  Those without weight are dropped.
        """
        nothing = np.zeros(len(self._alone), bool)
        # One basis leads to the next here.
        self._highs.setOptionValue("simplex_dual_edge_weight_strategy", 2)
        while True:
            bound, share, _ = self.solve(nothing, ~nothing, None)
            yield bound, share
            found = self._highs.getSolution()
            if not (found.value_valid and found.dual_valid):
                return
            idle = np.array(found.row_dual[len(self._jobs) + 1 :]) <= WEIGHTLESS
            if idle.sum() > IDLE:
                self._drop(idle)
            preempted = np.clip(found.col_value[len(nothing) :], 0.0, 1.0)
            drawn = rng.permutation(len(nothing))[:DRAWN]
            for outward in (True, False):
                rows, least, violation = spread(self._hosts, self._demand, share, preempted, drawn, outward=outward)
                most = np.argsort(-violation, kind="stable")[:ADDED]
                most = most[violation[most] > VIOLATED]
                self._add(rows[most], least[most])

    def _add(self, rows: IntArray, least: IntArray) -> None:
        """Take up spreading constraints."""
        self.rows, self.least = np.concatenate([self.rows, rows]), np.append(self.least, least)
        for row, value in zip(rows, least.tolist(), strict=True):
            where = np.flatnonzero(row).astype(np.int32)
            self._highs.addRow(value, highspy.kHighsInf, len(where), where, row[where].astype(float))

    def _drop(self, idle: BoolArray) -> None:
        """Give up some of the spreading constraints."""
        rows = len(self._jobs) + 1 + np.flatnonzero(idle).astype(np.int32)
        self._highs.deleteRows(len(rows), rows)
        self.rows, self.least = self.rows[~idle], self.least[~idle]


def _whole(bound: float) -> float:
    """Return the next whole number, for jobs are counted."""
    return float(math.ceil(bound - WHOLE))


def _wide_and_alone(instance: Reclaim) -> tuple[IntArray, BoolArray, IntArray]:
    """Return each server's jobs on no other; of those on several, (k, s) the servers, and (k,) how many have them."""
    width = instance.hosts.sum(axis=1)
    hosts, count = np.unique(instance.hosts[width > 1], axis=0, return_counts=True)
    return instance.hosts[width == 1].sum(axis=0), hosts, count


def relaxation(instance: Reclaim) -> LinearProgram:
    """Return the model's relaxation: a column for each server, then one for all jobs on the same servers, if several.

    A job on one server is part of what the server costs.
    """
    alone, hosts, count = _wide_and_alone(instance)
    jobs, servers = np.nonzero(hosts)
    cost = np.concatenate([alone, count]).astype(float)
    rows = np.arange(len(jobs))
    demand = np.full(instance.num_servers, len(jobs))
    return LinearProgram(
        "min", 0.0, cost,
        np.zeros(len(cost)), np.ones(len(cost)), np.zeros(len(cost), bool),
        *csr(
            np.concatenate([rows, rows, demand]),
            np.concatenate([instance.num_servers + jobs, servers, np.arange(instance.num_servers)]),
            np.concatenate([np.ones(len(jobs)), -np.ones(len(jobs)), np.ones(instance.num_servers)]),
            len(jobs) + 1,
        ),
        np.append(np.zeros(len(jobs)), instance.demand), np.append(np.full(len(jobs), np.inf), instance.demand),
    )  # fmt: skip


def _costly(pairs: IntArray, returned: BoolArray, allowed: BoolArray, share: FloatArray) -> int:
    """Return the server to fix next, by how much the relaxation's value rises either way, as far as its jobs tell.

    The relaxation mixes two sets of servers, one within the other.  The larger costs more by a rate for each server
    more; a server that has to be in both brings the jobs that the smaller does not touch, and one that is in
    neither spares the jobs that nothing else of the larger touches.  ``pairs`` are the jobs and their servers.
    """
    jobs, servers = pairs
    inner, outer = share > 1 - WHOLE, share > WHOLE
    untouched = np.bincount(jobs, weights=inner[servers]) == 0
    touching = np.bincount(jobs, weights=outer[servers])
    rate = float((untouched & (touching > 0)).sum() / max(1, int((outer & ~inner).sum())))
    brought = np.bincount(servers, weights=untouched[jobs], minlength=len(share)) - rate
    lost = rate - np.bincount(servers, weights=(touching == 1)[jobs], minlength=len(share))
    rise = np.maximum(brought, WHOLE) * (1 - share) * np.maximum(lost, WHOLE) * share
    open_ones = allowed & ~returned
    split = open_ones & outer & ~inner
    return int(np.where(split if split.any() else open_ones, rise, -1.0).argmax())


def _largest(share: FloatArray, demand: int) -> BoolArray:
    """Return the servers of the largest shares, as many as are demanded; ties go to the lowest."""
    returned = np.zeros(len(share), bool)
    returned[np.argsort(-share, kind="stable")[:demand]] = True
    return returned


def _preempted(instance: Reclaim, returned: BoolArray) -> float:
    """Jobs preempted, counted here: the bound must not rest on the verdict that it is compared with."""
    return float(instance.hosts[:, returned].any(axis=1).sum())


def _better(instance: Reclaim, best: BoolArray, value: float, other: BoolArray) -> tuple[BoolArray, float]:
    """Return the better of two plans, and its value."""
    preempted = _preempted(instance, other)
    return (other, preempted) if preempted < value else (best, value)


def _grown(instance: Reclaim, weight: FloatArray, rng: np.random.Generator | None = None) -> BoolArray:
    """Choose as many servers as are demanded, one by one: always one whose jobs more weigh least together.

    With ``rng`` the first is drawn, and of several that weigh the same one is; else the lowest is the first.
    """
    returned = np.zeros(instance.num_servers, bool)
    brings = weight @ instance.hosts
    untouched = np.ones(instance.num_jobs, bool)
    drawn = None if rng is None else int(rng.integers(instance.num_servers))
    for _ in range(instance.demand):
        noise = 0.0 if rng is None else rng.random(instance.num_servers)
        cheapest = int(np.where(returned, np.inf, np.round(brings, 9) + noise).argmin())
        server, drawn = cheapest if drawn is None else drawn, None
        returned[server] = True
        new = np.flatnonzero(untouched & instance.hosts[:, server])
        untouched[new] = False
        brings -= weight[new] @ instance.hosts[new]
    return returned


def _swapped(instance: Reclaim, plan: BoolArray, rng: np.random.Generator) -> BoolArray:
    """Return the best servers on a way of swaps from a plan; what was swapped stays for a while."""
    jobs = [np.flatnonzero(column) for column in instance.hosts.T]
    servers = [np.flatnonzero(row) for row in instance.hosts]
    returned = plan.copy()
    touching = instance.hosts[:, returned].sum(axis=1)
    # What each server would bring, and what each returned one would spare, in jobs.
    brings = instance.hosts[touching == 0].sum(axis=0)
    spares = instance.hosts[touching == 1].sum(axis=0)
    stays = np.zeros(instance.num_servers, np.int64)
    best, value, least, since, step = returned.copy(), 0, 0, 0, 0
    while since < STEPS * instance.num_servers and not (step % 100 == 0 and clock.is_up()):
        step, since = step + 1, since + 1
        free = stays < step
        chance = rng.random(instance.num_servers)
        out = int(np.where(returned & free, spares + chance, -1.0).argmax())
        returned[out] = False
        value -= spares[out]
        for job in jobs[out].tolist():
            touching[job] -= 1
            if touching[job] == 0:
                brings[servers[job]] += 1
                spares[servers[job]] -= 1
            elif touching[job] == 1:
                spares[servers[job]] += 1
        stays[out] = step + rng.integers(*STAYS)
        into = int(np.where(~returned & free, brings - chance, np.inf).argmin())
        if returned[into] or not free[into]:
            into = out
        returned[into] = True
        value += brings[into]
        for job in jobs[into].tolist():
            touching[job] += 1
            if touching[job] == 1:
                brings[servers[job]] -= 1
                spares[servers[job]] += 1
            elif touching[job] == 2:
                spares[servers[job]] -= 1
        stays[into] = step + rng.integers(*STAYS)
        if value < least:
            best, least, since = returned.copy(), value, 0
    return best


PARTS = Method(
    name="parts of the plans",
    short="parts",
    proves="prices of the relaxation of each part not divided further, or of all plans, rounded up: jobs are counted",
    where="demands of no more servers than there are",
    solve=search,
    applies=lambda instance: instance.demand <= instance.num_servers,
    proofs=("prices",),
)
CHOICE = Choice((PARTS, one_model.METHOD))
