"""Servers to give back, by a search of this problem's own: parts of the plans, each with a bound by prices.

Without the row that counts the returned servers, the relaxation of :mod:`formulations.aryl.reclaim` has whole vertices,
so all of its weakness is that row's: it returns a bit of many servers, and preempts as much of their jobs.  A part of
the plans fixes some servers as returned and some as kept.  The next server to fix is one that costs much either way:
returned, it brings jobs that no other does; kept, nearly all of its jobs are preempted all the same.  A few dozen parts
raise the bound by more than cuts do, which see few servers at a time.

The bound of a part is that of its relaxation, proven by prices: they divide each job among its servers, and the demand
cannot cost less than the servers that are cheapest by that.  Preempted jobs are counted, so the bound is rounded up.
Plans come from swaps of one server for another, where what was swapped stays for some steps (Glover's tabu search),
from the best plan and from some that grow about one server each: good plans are few clusters of servers, and swaps do
not lead from one cluster to another.

References
----------
Glover, "Tabu search, part I" (1989).
"""

from __future__ import annotations

import heapq
import math
import time
from dataclasses import replace

import numpy as np

from formulations.engine import clock
from formulations.engine.highs import Result, Status, version
from formulations.engine.linear import LinearProgram, csr
from formulations.engine.options import Options
from formulations.engine.solution import Solution, judged
from formulations.methods import Choice, Method, one_model
from instances.aryl.reclaim import Reclaim, ReclaimPlan
from instances.schema import BoolArray, FloatArray, IntArray

__all__ = ["CHOICE", "PARTS", "relaxation", "search"]

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
    program, session, rng = relaxation(instance), options.session(), np.random.default_rng(options.seed)
    pairs = np.argwhere(instance.hosts).T
    solved, seconds, next_swaps = 0, 0.0, FIRST_SWAPS
    # Parts as (bound, number, server to fix next, servers that are returned, servers that may be).
    parts: list[tuple[float, int, int, BoolArray, BoolArray]] = []
    nothing = np.zeros(instance.num_servers, bool)
    new = [(0.0, nothing, ~nothing)]
    while True:
        for bound, returned, allowed in new:
            if instance.demand in (returned.sum(), allowed.sum()):
                # There is one plan.
                only = returned if returned.sum() == instance.demand else allowed
                best, value = _better(instance, best, value, only)
            elif returned.sum() < instance.demand < allowed.sum():
                relaxed = session.run(
                    _within(program, returned, allowed), interior_rows=program.num_rows, presolve=False
                )
                solved, seconds = solved + 1, seconds + relaxed.seconds
                share = (returned + allowed.astype(float)) / 2
                if relaxed.x is not None:
                    share = relaxed.x[: instance.num_servers]
                    best, value = _better(instance, best, value, _largest(share, instance.demand))
                if math.isfinite(relaxed.bound):
                    bound = max(bound, float(math.ceil(relaxed.bound - WHOLE)))
                server = _costly(pairs, returned, allowed, share)
                heapq.heappush(parts, (bound, solved, server, returned, allowed))
        if solved >= next_swaps and parts and parts[0][0] < value:
            best, value = _better(instance, best, value, _swapped(instance, best, rng))
            for _ in range(GROWN):
                best, value = _better(instance, best, value, _swapped(instance, _grown(instance, rng), rng))
            next_swaps *= 4
        bound = min(parts[0][0], value) if parts else value
        if value - bound <= options.mip_gap * value or clock.left() <= 0:
            break
        bound, _, server, returned, allowed = heapq.heappop(parts)
        fixed = np.arange(instance.num_servers) == server
        new = [(bound, returned | fixed, allowed), (bound, returned, allowed & ~fixed)]
    status: Status = "optimal" if bound == value else "feasible"
    why = "time limit, " if clock.left() <= 0 and bound < value else ""
    return judged(
        instance,
        ReclaimPlan(servers=np.flatnonzero(best)),
        Result(status, None, bound, None, seconds, f"{why}{solved:,} parts", "prices"),
        began=began,
        solver="highs",
        solver_version=version(),
        method=PARTS.name,
    )


def relaxation(instance: Reclaim) -> LinearProgram:
    """Return the model's relaxation: a column for each server, then one for all jobs on the same servers, if several.

    A job on one server is part of what the server costs.
    """
    width = instance.hosts.sum(axis=1)
    hosts, count = np.unique(instance.hosts[width > 1], axis=0, return_counts=True)
    jobs, servers = np.nonzero(hosts)
    cost = np.concatenate([instance.hosts[width == 1].sum(axis=0), count]).astype(float)
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


def _within(program: LinearProgram, returned: BoolArray, allowed: BoolArray) -> LinearProgram:
    """Return the program of a part."""
    lower, upper = program.col_lower.copy(), program.col_upper.copy()
    lower[: len(returned)], upper[: len(allowed)] = returned, allowed
    return replace(program, col_lower=lower, col_upper=upper)


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


def _grown(instance: Reclaim, rng: np.random.Generator) -> BoolArray:
    """Choose as many servers as are demanded: one at random, then always one that brings the fewest jobs more."""
    returned = np.zeros(instance.num_servers, bool)
    brings = instance.hosts.sum(axis=0)
    untouched = np.ones(instance.num_jobs, bool)
    server = int(rng.integers(instance.num_servers))
    for _ in range(instance.demand):
        returned[server] = True
        new = untouched & instance.hosts[:, server]
        untouched &= ~new
        brings -= instance.hosts[new].sum(axis=0)
        server = int(np.where(returned, np.inf, brings + rng.random(instance.num_servers)).argmin())
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
    while since < STEPS * instance.num_servers and not (step % 100 == 0 and clock.left() <= 0):
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
    proves="prices of the relaxation of each part that is not divided further, rounded up: jobs are counted",
    where="demands of no more servers than there are",
    solve=search,
    applies=lambda instance: instance.demand <= instance.num_servers,
)
CHOICE = Choice((PARTS, one_model.METHOD))
