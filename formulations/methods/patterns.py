"""Servers for workers, by what stands on a server: the fewest servers, and then the fewest workers off their group.

Nothing tells servers of one size and group apart, nor workers of equal GPUs on one of them.  What counts is the
*pattern* of a server, the number of its workers of each size: with 8 GPUs there are 22 that leave no room for another
worker.  An instance has three *sides*: training servers, inference servers for all but flexible workers, and those that
are set apart for flexible ones, which servers in use never are.  With x[c, p] the servers of class c (size, group, in
use or not) that have pattern p, which is one of a side's, and the workers of size g that leave their side for another,

    min   sum of x of classes that are not in use
    s.t.  sum a[p, g] * x[c, p]  >=  workers of size g that prefer the side
                                     - those that leave it + those that come      for each side and size g
          sum_p x[c, p]  <=  servers of class c                                   for each class c
          x, and the workers that leave, whole and at least 0,

and with the servers counted so, the fewest workers that leave.  As many workers do not fill a pattern as are too few,
so only patterns that leave no room are needed.  Its optimum is that of :mod:`formulations.aryl.placement`
(docs/problems/aryl/placement.md), and its relaxation is hardly ever a server from it: where the bound, rounded up, is
met, prices prove it.

References
----------
Gilmore, Gomory, "A linear programming approach to the cutting-stock problem" (1961).
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from types import SimpleNamespace

import numpy as np

from formulations.engine import clock
from formulations.engine.highs import WEAKEST_FIRST, Result, version
from formulations.engine.linear import POINT_TOLERANCE, LinearProgram, csr
from formulations.engine.options import Options
from formulations.engine.solution import Solution, judged
from formulations.methods import Choice, GaveUp, Method, one_model
from instances.aryl.placement import ArylPlacement, ArylPlacementPlan
from instances.schema import BoolArray, FloatArray, IntArray

__all__ = ["CHOICE", "PATTERNS", "Patterns", "fullest"]

MOST = 2_000_000
"""Numbers in a table of patterns up to which it is made."""
FIRST = 0.6
"""Part of the time for the servers; the rest is for the workers off their group."""

TRAINING, SHARED, APART = range(3)
"""Sides: training servers, and inference servers for workers that are not flexible, and for those that are."""
LEAVES = ((TRAINING, SHARED), (SHARED, TRAINING), (APART, TRAINING))
"""The sides that workers are on by preference, and to which they can leave."""


def fullest(free: int, sizes: IntArray, most: IntArray) -> IntArray:
    """Return the patterns of a server that leave no room for another worker.

    Parameters
    ----------
    free : int
        GPUs of the server.
    sizes : (g,) int
        GPUs of a worker, each size once, at least 1.
    most : (g,) int
        Workers of each size that there are.

    Returns
    -------
    (p, g) int
        Workers of each size.  A server that holds no worker has no pattern.

    Raises
    ------
    GaveUp
        When there are too many.
    """
    some = np.flatnonzero((most > 0) & (sizes <= free))[::-1]
    patterns = np.zeros((1, len(sizes)), np.int64)
    left = np.full(1, free)
    for size in some.tolist():
        clock.check()
        fits = np.minimum(left // sizes[size], most[size])
        # The smallest workers fill what is left.
        fewest = fits if size == some[-1] else np.zeros_like(fits)
        choices = fits - fewest + 1
        if int(choices.sum()) * len(sizes) > MOST:
            raise GaveUp(f"there are too many ways to fill a server of {free} GPUs")
        before = np.repeat(np.arange(len(left)), choices)
        number = np.arange(len(before)) - np.repeat(np.cumsum(choices) - choices, choices) + fewest[before]
        patterns = patterns[before]
        patterns[:, size] = number
        left = left[before] - number * sizes[size]
    no_room = ((patterns == most) | (sizes > left[:, None])).all(axis=1)
    full: IntArray = patterns[no_room & patterns.any(axis=1)]
    return full


@dataclass(frozen=True)
class Patterns:
    """The program over patterns of an instance.

    Its columns are the numbers of servers of each pattern and then, for each size, the workers that leave, as
    ``LEAVES`` has them.  Its rows are the sizes of each side, the classes, and all servers together.
    """

    instance: ArylPlacement

    @cached_property
    def sizes(self) -> IntArray:
        """(g,) int: the sizes of workers, ascending."""
        return np.unique(self.instance.gpus_per_worker[self.instance.num_workers > 0])

    @cached_property
    def side(self) -> IntArray:
        """(n,) int: the side that the workers of each job prefer."""
        instance = self.instance
        side: IntArray = np.where(instance.flexible, APART, np.where(instance.prefers_loan, SHARED, TRAINING))
        return side

    @cached_property
    def wanted(self) -> IntArray:
        """(3, g) int: workers that prefer each side, by size."""
        counts = np.zeros((3, len(self.sizes)), np.int64)
        some = self.instance.num_workers > 0
        size = np.searchsorted(self.sizes, self.instance.gpus_per_worker[some])
        np.add.at(counts, (self.side[some], size), self.instance.num_workers[some])
        return counts

    @cached_property
    def classes(self) -> list[IntArray]:
        """The servers of each size and group, in use or not."""
        alike = np.column_stack([self.instance.server_gpus, self.instance.on_loan, self.instance.in_use])
        kind = np.unique(alike, axis=0, return_inverse=True)[1].ravel()
        return [np.flatnonzero(kind == each) for each in range(int(kind.max()) + 1)]

    @cached_property
    def tables(self) -> list[tuple[int, int, IntArray]]:
        """Class, side and patterns of the columns, in their order."""
        most = {
            TRAINING: self.wanted.sum(axis=0),
            SHARED: self.wanted[TRAINING] + self.wanted[SHARED],
            APART: self.wanted[APART],
        }
        found, numbers = [], 0
        for each, servers in enumerate(self.classes):
            free = int(self.instance.server_gpus[servers[0]])
            on_loan, in_use = self.instance.on_loan[servers[0]], self.instance.in_use[servers[0]]
            for side in (TRAINING,) if not on_loan else (SHARED,) if in_use else (SHARED, APART):
                found.append((each, side, fullest(free, self.sizes, most[side])))
                numbers += found[-1][2].size
                if numbers > MOST:
                    raise GaveUp("there are too many ways to fill a server")
        return found

    @cached_property
    def num_patterns(self) -> int:
        """Columns that are patterns."""
        return sum(len(patterns) for _, _, patterns in self.tables)

    @cached_property
    def opens(self) -> BoolArray:
        """Whether a column is a pattern of servers that are not in use."""
        in_use = self.instance.in_use
        of_pattern = [np.full(len(patterns), not in_use[self.classes[each][0]]) for each, _, patterns in self.tables]
        return np.concatenate([*of_pattern, np.zeros(len(LEAVES) * len(self.sizes), bool)])

    @cached_property
    def program(self) -> LinearProgram:
        """The program that counts servers."""
        kinds, all_servers = len(self.sizes), 3 * len(self.sizes) + len(self.classes)
        rows, columns, values = [], [], []
        upper: list[IntArray] = []
        first = 0
        for each, side, patterns in self.tables:
            pattern, size = patterns.nonzero()
            mine = first + np.arange(len(patterns))
            rows += [side * kinds + size, np.full(len(patterns), 3 * kinds + each)]
            columns += [first + pattern, mine]
            values += [patterns[pattern, size], np.ones(len(patterns))]
            upper.append(np.full(len(patterns), len(self.classes[each])))
            first += len(patterns)
        for home, away in LEAVES:
            moves = first + np.arange(kinds)
            rows += [home * kinds + np.arange(kinds), away * kinds + np.arange(kinds)]
            columns += [moves, moves]
            values += [np.ones(kinds), -np.ones(kinds)]
            upper.append(self.wanted[home])
            first += kinds
        rows.append(np.full(np.count_nonzero(self.opens), all_servers))
        columns.append(np.flatnonzero(self.opens))
        values.append(np.ones(np.count_nonzero(self.opens)))
        return LinearProgram(
            "min", 0.0, self.opens.astype(float),
            np.zeros(first), np.concatenate(upper).astype(float), np.ones(first, bool),
            *csr(np.concatenate(rows), np.concatenate(columns), np.concatenate(values), all_servers + 1),
            np.concatenate([self.wanted.ravel(), np.full(len(self.classes) + 1, -np.inf)]),
            np.concatenate([np.full(3 * kinds, np.inf), [len(servers) for servers in self.classes], [np.inf]]),
        )  # fmt: skip

    def off_group(self, servers: int) -> LinearProgram:
        """Return the program that counts workers off their group, with so many servers at most."""
        upper = self.program.row_upper.copy()
        upper[-1] = servers
        moves = np.arange(len(self.opens)) >= self.num_patterns
        return replace(self.program, cost=moves.astype(float), row_upper=upper)

    @property
    def both(self) -> LinearProgram:
        """The program that counts servers and, as parts of one, workers off their group; as the reference states it."""
        price = 1 / (1 + self.instance.total_workers)
        moves = np.arange(len(self.opens)) >= self.num_patterns
        return replace(self.program, cost=np.where(moves, price, self.program.cost), variables=tuple(self._named()))

    def _named(self) -> Iterator[SimpleNamespace]:
        """Yield the columns with their names."""
        instance = self.instance
        for each, side, patterns in self.tables:
            first = self.classes[each][0]
            kind = f"{instance.server_gpus[first]},{instance.on_loan[first]:d},{instance.in_use[first]:d},{side}"
            for pattern in patterns.tolist():
                yield SimpleNamespace(name=f"servers[{kind},{'.'.join(map(str, pattern))}]")
        for home, _ in LEAVES:
            for size in self.sizes.tolist():
                yield SimpleNamespace(name=f"off[{home},{size}]")

    def plan(self, x: FloatArray) -> ArylPlacementPlan:
        """Return the plan of a point: workers take the places of their side in the order of the jobs."""
        instance, number = self.instance, np.rint(x).astype(np.int64)
        leaving = number[self.num_patterns :].reshape(len(LEAVES), -1)
        # Places for workers of each size on each server, and who takes them.
        places = np.zeros((3, len(self.sizes), instance.num_servers), np.int64)
        workers = np.zeros((instance.num_jobs, instance.num_servers), np.int64)
        opened = np.zeros(len(self.classes), np.int64)
        first = 0
        for each, side, patterns in self.tables:
            count = number[first : first + len(patterns)]
            first += len(patterns)
            servers = self.classes[each][opened[each] : opened[each] + count.sum()]
            opened[each] += count.sum()
            places[side][:, servers] = np.repeat(patterns, count, axis=0).T
        for (home, away), leave in zip(LEAVES, leaving, strict=True):
            for size, gpus in enumerate(self.sizes.tolist()):
                jobs = np.flatnonzero((self.side == home) & (instance.gpus_per_worker == gpus))
                all_workers = instance.num_workers[jobs]
                leaves = np.diff(np.minimum(np.cumsum(all_workers), leave[size]), prepend=0)
                _take(jobs, all_workers - leaves, places[home, size], workers)
                _take(jobs, leaves, places[away, size], workers)
        return ArylPlacementPlan(workers=workers)


def _take(jobs: IntArray, count: IntArray, places: IntArray, workers: IntArray) -> None:
    """Let workers of some jobs take places on the servers, the first first; ``places`` and ``workers`` are changed."""
    last_worker, last_place = np.cumsum(count), np.cumsum(places)
    # Ends of the runs of workers of one job on one server.
    ends = np.unique(np.concatenate([last_worker, np.minimum(last_place, count.sum())]))
    ends = ends[ends > 0]
    taken = np.diff(ends, prepend=0)
    server = np.searchsorted(last_place, ends)
    np.add.at(workers, (jobs[np.searchsorted(last_worker, ends)], server), taken)
    np.subtract.at(places, server, taken)


def solve(instance: ArylPlacement, options: Options) -> Solution:
    """Count servers first, and with the fewest of them workers off their group."""
    began = time.perf_counter()
    patterns = Patterns(instance)
    with clock.within(FIRST * clock.left()):
        result = options.session().run(patterns.program)
    plan = None
    if result.x is not None:
        servers, fewest = round(patterns.program.objective(result.x)), _whole(result.bound)
        program = patterns.off_group(servers)
        second = options.session().run(program, start=result.x)
        x = result.x if second.x is None else second.x
        plan = patterns.plan(x)
        # More servers cost more than the groups of all workers.
        off = _whole(second.bound) if fewest == servers else 0
        met = fewest == servers and off == round(program.objective(x))
        proofs = (result.proof, second.proof) if off else (result.proof,)
        result = Result(
            "optimal" if met else "feasible",
            None,
            fewest + off / (1 + instance.total_workers),
            None,
            result.seconds + second.seconds,
            f"{patterns.num_patterns:,} patterns: {result.message}; {second.message}",
            min(proofs, key=WEAKEST_FIRST.index) or "argument",
        )
    elif result.status != "infeasible":
        result = replace(result, status="unknown", bound=float(_whole(result.bound)), proof=result.proof or "argument")
    return judged(
        instance,
        plan,
        replace(result, certificate=None),
        began=began,
        solver="highs",
        solver_version=version(),
        method=PATTERNS.name,
        start=options.start,
    )


def _whole(bound: float) -> int:
    """Return a bound on what is counted, rounded up; it is a sum of floats, and 0 where nothing is proven."""
    return max(0, math.ceil(bound - POINT_TOLERANCE * max(1.0, abs(bound)))) if math.isfinite(bound) else 0


PATTERNS = Method(
    name="patterns of servers",
    short="patterns",
    proves="prices of the relaxation over patterns, rounded up; where no plan meets that, the search of their program",
    where="servers that can be filled in few enough ways",
    solve=solve,
)
CHOICE = Choice((PATTERNS, one_model.METHOD))
