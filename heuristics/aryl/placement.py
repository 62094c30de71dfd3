"""Fast methods for :class:`instances.aryl.placement.ArylPlacement`."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import Counter
from typing import TypeAlias

import numpy as np

from instances.aryl.placement import ArylPlacement, ArylPlacementPlan
from instances.schema import BoolArray

__all__ = ["best_fit_decreasing", "local_search", "naive_best_fit_decreasing"]

Place: TypeAlias = tuple[int, int, int]
"""A job, a server, and how many of the job's workers are there."""


def best_fit_decreasing(instance: ArylPlacement) -> ArylPlacementPlan:
    """Largest workers first, each on the fullest server of its preferred group that still fits it.

    Workers are taken by GPUs, largest first (ties: lowest job), those of heterogeneous jobs after all
    others.  In the preferred group (inference for elastic jobs, but for base workers of heterogeneous
    ones; training for others) a worker goes to the opened server with the fewest free GPUs that fits
    it; if none does, the smallest unopened one that fits is opened (ties: lowest server).  Servers in use
    are opened ones.  Only when neither exists the other group is tried, in the same way.  On inference
    servers flexible workers only join flexible workers, and others only others or servers in use.  A
    worker that fits nowhere is left out, and the plan then breaks ``all_placed``.

    Guarantee: none known for two groups.  On one group of equal servers it is best fit decreasing,
    which opens at most 11/9 of the fewest possible servers plus 4; when every size divides the
    next larger one and the server's (1, 2, 4 and 8 GPUs), it opens the fewest.
    Complexity: O(m (log s + s)) for m times that a job takes a server, the s for keeping a list in order.

    References
    ----------
    Aryl (EuroSys'23 as Lyra), section 5.3, and section 6 for heterogeneous jobs.  Johnson, "Near-optimal
    bin packing algorithms" (1973).  Coffman, Garey, Johnson, "Bin packing with divisible item sizes"
    (1987).
    """
    return _plan(instance, _packed(instance, instance.prefers_loan, instance.flexible, last=instance.heterogeneous))


def naive_best_fit_decreasing(instance: ArylPlacement) -> ArylPlacementPlan:
    """Best fit decreasing without regard to elasticity: all workers prefer training servers.

    As :func:`best_fit_decreasing`, but elastic jobs are treated like the others, and base and flexible
    workers share servers: with flexible workers its plans may break ``separate_groups``.

    Guarantee and complexity: those of :func:`best_fit_decreasing`.

    References
    ----------
    Aryl (EuroSys'23 as Lyra), section 7.2 and Table 6.
    """
    nobody = np.zeros(instance.num_jobs, bool)
    return _plan(instance, _packed(instance, nobody, nobody, last=nobody))


def local_search(
    instance: ArylPlacement, *, budget: int = 3000, rng: np.random.Generator | int = 0
) -> ArylPlacementPlan:
    """Improve placements by dividing the workers of two servers anew between them, two after two (ours).

    From two placements, the largest workers first: that of :func:`best_fit_decreasing`, and one that opens a server
    only where none that is opened has room, in either group.  Of all ways to divide the workers of two servers the one
    is taken that opens the fewest servers, then leaves the fewest workers off their group, then has the greatest sum of
    squares of GPUs in use; of servers that are alike and hold alike workers, as many as there are at once.
    Where no two servers can be improved, three pairs are divided at random, so that no more servers are opened and at
    most one more worker of each pair is off its group; twenty times, from the best placement so far.

    Guarantee: never worse than :func:`best_fit_decreasing`, whose plan it returns where neither places all workers.
    On two servers optimal where one does, within the budget.
    Complexity: O(m (log s + s)), as there, and ``budget``.

    Parameters
    ----------
    instance : ArylPlacement
    budget : int
        Ways to divide two servers' workers that are looked at.
    rng : Generator or int
        Source of randomness, or its seed.
    """
    nobody = np.zeros(instance.num_jobs, bool)
    prefers, flexible = instance.prefers_loan, instance.flexible
    starts = [
        _packed(instance, prefers, flexible, last=instance.heterogeneous),
        _packed(instance, prefers, flexible, last=nobody, opened_first=True),
    ]
    whole = [places for places in starts if sum(count for _, _, count in places) == instance.total_workers]
    if not whole or not instance.total_workers:
        return _plan(instance, starts[0])
    pairs = _Pairs(instance, budget)
    best = min((pairs.improved(load) for load in sorted(map(pairs.loads, whole), key=pairs.value)), key=pairs.value)
    rng = np.random.default_rng(rng)
    for _ in range(KICKS if instance.num_servers > 1 else 0):
        if pairs.budget <= 0:
            break
        best = min(pairs.improved(pairs.kicked(best, rng)), best, key=pairs.value)
    return _plan(instance, pairs.dealt(best))


KICKS = 20
"""Times that servers are divided at random."""

Class: TypeAlias = tuple[int, bool, bool]
"""Free GPUs of a server, whether it is on loan, and whether it is in use."""
Server: TypeAlias = tuple[Class, tuple[int, ...]]
"""A server's class, and how many workers of each kind it holds."""
Cost: TypeAlias = tuple[int, int, int]
"""Servers opened, workers off their group, and less the squares of the GPUs in use."""


class _Pairs:
    """Servers by what they hold, and what becomes of two of them where their workers are divided anew.

    Workers of equal GPUs and preference, flexible or not, are one kind.
    """

    def __init__(self, instance: ArylPlacement, budget: int) -> None:
        self.instance, self.budget = instance, budget
        arrays = instance.gpus_per_worker, instance.prefers_loan, instance.flexible
        of_jobs = list(zip(*(values.tolist() for values in arrays), strict=True))
        self.kinds: list[tuple[int, bool, bool]] = sorted({*of_jobs}, reverse=True)
        self.kind = [self.kinds.index(one) for one in of_jobs]
        arrays = instance.server_gpus, instance.on_loan, instance.in_use
        self.classes: list[Class] = list(zip(*(values.tolist() for values in arrays), strict=True))
        self.known: dict[tuple[Server, Server], tuple[Server, Server] | None] = {}

    def loads(self, places: list[Place]) -> Counter[Server]:
        """Return how many servers of each class hold the same."""
        held = [[0] * len(self.kinds) for _ in self.classes]
        for job, server, count in places:
            held[server][self.kind[job]] += count
        return Counter((some, tuple(counts)) for some, counts in zip(self.classes, held, strict=True))

    def dealt(self, loads: Counter[Server]) -> list[Place]:
        """Deal the places out to servers and jobs, both in order."""
        servers: dict[Class, list[int]] = {}
        for server in reversed(range(len(self.classes))):
            servers.setdefault(self.classes[server], []).append(server)
        jobs: list[list[tuple[int, int]]] = [[] for _ in self.kinds]
        for job, count in reversed([*enumerate(self.instance.num_workers.tolist())]):
            jobs[self.kind[job]].append((job, count))
        places = []
        for (some, counts), times in sorted(loads.items()):
            for server in (servers[some].pop() for _ in range(times)):
                for waiting, count in zip(jobs, counts, strict=True):
                    left = count
                    while left:
                        job, there = waiting.pop()
                        placed = min(left, there)
                        places.append((job, server, placed))
                        left -= placed
                        if placed < there:
                            waiting.append((job, there - placed))
        return places

    def value(self, loads: Counter[Server]) -> tuple[int, int]:
        """Servers opened, and workers off their group."""
        costs = [(self.cost(server), times) for server, times in loads.items()]
        opened, off = (sum(times * (cost or (0, 0))[part] for cost, times in costs) for part in range(2))
        return opened, off

    def cost(self, server: Server) -> Cost | None:
        """Cost of a server; None where its workers may not be on it together."""
        (_, on_loan, in_use), counts = server
        held = [(*kind, count) for kind, count in zip(self.kinds, counts, strict=True) if count]
        flexible = [kind[2] for kind in held]
        if on_loan and any(flexible) and (in_use or not all(flexible)):
            return None
        used = sum(gpus * count for gpus, _, _, count in held)
        off = sum(count for _, prefers, _, count in held if prefers != on_loan)
        return int(used > 0 and not in_use), off, -used * used

    def divided(self, first: Server, second: Server) -> list[tuple[Cost, Server, Server]]:
        """Return all ways to divide the workers of two servers between them; the present one if those are too many."""
        there = [a + b for a, b in zip(first[1], second[1], strict=True)]
        gpus, room = [kind[0] for kind in self.kinds], first[0][0]
        most = math.prod(min(count, room // need) + 1 for count, need in zip(there, gpus, strict=True))
        ways: list[tuple[int, tuple[int, ...]]] = [(0, ())]
        for count, need, now in zip(there, gpus, first[1], strict=True):
            # Where there are more ways than may be looked at, only as they are.
            ways = [
                (used + need * here, (*counts, here))
                for used, counts in ways
                for here in (range(min(count, (room - used) // need) + 1) if most <= self.budget else (now,))
            ]
        least = sum(need * count for need, count in zip(gpus, there, strict=True)) - second[0][0]
        self.budget -= len(ways)
        found = []
        for used, counts in ways:
            if used >= least:
                one = (first[0], counts)
                other = (second[0], tuple(count - here for count, here in zip(there, counts, strict=True)))
                costs = self.cost(one), self.cost(other)
                if costs[0] is not None and costs[1] is not None:
                    opened, off, squares = (a + b for a, b in zip(costs[0], costs[1], strict=True))
                    found.append(((opened, off, squares), one, other))
        return found

    def better(self, first: Server, second: Server) -> tuple[Server, Server] | None:
        """Return the best two servers in place of two; None where those are the best."""
        if (first, second) not in self.known:
            ways = self.divided(first, second)
            now = next(cost for cost, one, _ in ways if one == first)
            cost, one, other = min(ways)
            self.known[first, second] = (one, other) if cost < now else None
        return self.known[first, second]

    def improved(self, loads: Counter[Server]) -> Counter[Server]:
        """Return servers of which no two can be improved, unless the budget is used up."""
        loads = loads.copy()
        waiting = sorted(loads)
        while waiting and self.budget > 0:
            first = waiting[-1]
            for second in sorted(loads):
                times = min(loads[first], loads[second]) if first != second else loads[first] // 2
                found = self.better(first, second) if times and self.budget > 0 else None
                if found is not None:
                    _replace(loads, (first, second), found, times)
                    waiting += [one for one in (second, *found) if one not in waiting]
                    break
            else:
                waiting.remove(first)
        return loads

    def kicked(self, loads: Counter[Server], rng: np.random.Generator) -> Counter[Server]:
        """Divide three pairs of servers at random, so that no more are opened and little more is off its group."""
        loads = loads.copy()
        for _ in range(3):
            servers = sorted(loads.elements())
            chosen = rng.choice(len(servers), 2, replace=False).tolist()
            first, second = servers[chosen[0]], servers[chosen[1]]
            ways = self.divided(first, second)
            opened, off, _ = next(cost for cost, one, _ in ways if one == first)
            ways = [way for way in ways if way[0][0] <= opened and way[0][1] <= off + 1]
            _replace(loads, (first, second), ways[int(rng.integers(len(ways)))][1:], 1)
        return loads


def _replace(loads: Counter[Server], old: tuple[Server, Server], new: tuple[Server, Server], times: int) -> None:
    """Put as many servers that hold something else in place of others."""
    for server in old:
        loads[server] -= times
    for server in new:
        loads[server] += times
    for server in old:
        if not loads[server]:
            del loads[server]


def _plan(instance: ArylPlacement, places: list[Place]) -> ArylPlacementPlan:
    """Return the plan that has workers at these places."""
    # Written through once: fresh pages that are touched here and there cost more than the packing.
    workers = np.full((instance.num_jobs, instance.num_servers), 0)
    jobs, servers, counts = np.array(places, np.int64).reshape(-1, 3).T
    np.add.at(workers, (jobs, servers), counts)
    return ArylPlacementPlan(workers=workers)


def _packed(
    instance: ArylPlacement,
    prefers_loan: BoolArray,
    flexible: BoolArray,
    *,
    last: BoolArray,
    opened_first: bool = False,
) -> list[Place]:
    """Best fit decreasing where jobs prefer, and are kept apart, as the arrays say.

    ``opened_first`` puts workers on opened servers of either group before one is opened.
    """
    sizes, in_use = instance.server_gpus.tolist(), instance.in_use
    # Servers of each group as (free GPUs, server), in order: those still closed, and opened ones, of
    # which inference servers with flexible workers are a group of their own.
    closed: dict[bool, list[tuple[int, int]]] = {}
    opened: dict[tuple[bool, bool], list[tuple[int, int]]] = {}
    for group in (False, True):
        mine = instance.on_loan == group
        closed[group] = sorted((sizes[i], int(i)) for i in np.flatnonzero(mine & ~in_use))
        opened[group, False] = sorted((sizes[i], int(i)) for i in np.flatnonzero(mine & in_use))
        opened[group, True] = []
    places: list[Place] = []
    for job in np.lexsort((-instance.gpus_per_worker, last)).tolist():
        need, prefers, apart = int(instance.gpus_per_worker[job]), bool(prefers_loan[job]), bool(flexible[job])
        choices = []
        for group in (prefers, not prefers):
            mine = opened[group, group and apart]
            choices += [(mine, mine), (closed[group], mine)]
        if opened_first:
            choices = choices[::2] + choices[1::2]
        left = int(instance.num_workers[job])
        while left:
            found = next((some for some in choices if bisect_left(some[0], (need, 0)) < len(some[0])), None)
            if found is None:
                break
            candidates, now_opened = found
            free, server = candidates.pop(bisect_left(candidates, (need, 0)))
            # The server that one worker is put on is the fullest that fits the next one, as long as it does.
            placed = min(left, free // need)
            insort(now_opened, (free - placed * need, server))
            places.append((job, server, placed))
            left -= placed
    return places
