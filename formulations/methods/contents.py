"""Configurations and places by what stands on one server: prices of the jobs bound every plan, and fill servers.

A *content* of a server is a multiset of parts of jobs: a whole job in one of its configurations, or some GPUs of a job
that may be split, with their share of its CPU cores, memory and throughput, less what a split costs.  A plan is a
content for each server, and its value the sum of theirs.  Let job j want g_j GPUs, and v(K) be the worth of content K
and k_j(K) the GPUs that it has of job j.  For any prices pi_j of a GPU of each job, of any sign,

    value of a plan  =  sum_i v(K_i)  =  sum_j g_j pi_j  +  sum_i (v(K_i) - sum_j k_j(K_i) pi_j)
                     <=  sum_j g_j pi_j  +  s max(0, max_K (v(K) - sum_j k_j(K) pi_j)),

because the plan has all GPUs of each job.  The greatest worth of a content at given prices is that of a knapsack with
three limits, GPUs, cores and memory, in which each job is taken at most once: a table over what is left of the three,
one job after the other (:meth:`Contents.table`).  Cores and memory are counted in whole units; where no unit counts all
amounts of an instance as they are, amounts are rounded down for the bound and up for contents that are to be used.  The
prices are those of the linear program over the contents that tables have found (Dantzig and Wolfe), each time drawn to
the best prices so far (Wentges), from the prices of the first stage on.

Plans are made by filling one server after the other with the content that is worth most at the prices, of the jobs that
are left; the rest of a job that is split comes first on the next server.  A few servers at a time, drawn at random, are
then emptied and filled again at prices that are shaken a little, as long as that gains.

References
----------
Dantzig, Wolfe, "Decomposition principle for linear programs" (1960).  Wentges, "Weighted Dantzig-Wolfe decomposition
for linear mixed-integer programming" (1997).
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import highspy
import numpy as np

from formulations.engine import clock
from formulations.engine.highs import Result, Status, limit_run, version
from formulations.engine.options import Options
from formulations.engine.solution import Solution, judged, relative_gap
from formulations.engine.solving import solve_one_model
from formulations.methods import GaveUp, Method
from formulations.synergy.classes import equal_rows
from formulations.synergy.tuning import as_jobs
from instances.base import WIDER, Plan, agree
from instances.schema import FloatArray, IntArray
from instances.synergy.sensitivity import THROUGHPUT
from instances.synergy.tuning import Tuning, TuningPlan

__all__ = ["CONTENTS", "Contents", "Program", "contents_of", "refilled", "solved", "units"]

MOST_UNITS = 48
"""Units up to which a server's cores or memory are counted in."""
MOST_NUMBERS = 40_000_000
"""Numbers in a table up to which it is made."""
ROUNDING = 1e-9
"""Part of a sum by which the floats that it adds up may be off, and more."""
DRAWN = 0.8
"""Part of the best prices in those that are tried next."""
NEAR = 1e-4
"""Relative distance of the bound from the program's value at which prices are good enough."""
AT_ONCE = 30
"""Contents that a table adds to the program."""
ANEW = 16
"""Times that prices are made anew while a cluster is filled."""
FEWEST, MOST = 2, 9
"""Servers that are emptied together, drawn from the first to below the second."""
SHAKEN = 0.1
"""Standard deviation of prices that are shaken, relative to the mean worth of a GPU."""
PATIENCE = 30
"""Refills without gain, for each server, after which there are said to be no more."""
FIRST = 0.75
"""Part of the time for prices."""

Copy = tuple[IntArray, FloatArray]
"""Parts of which a server has one at most, because they are of one job, and what each gains."""


def units(amounts: FloatArray, capacity: float) -> tuple[int, IntArray, IntArray]:
    """Count amounts in whole units of a server's capacity.

    Parameters
    ----------
    amounts : (m,) float
    capacity : float

    Returns
    -------
    limit : int
        Units of the server.
    least, most : (m,) int each
        Amounts whose ``least`` together are above the limit do not fit together, by the judge's tolerance; those whose
        ``most`` are not, do.  They are the same where some unit counts all amounts as they are.  What does not fit
        alone has more than the limit of both.

    Notes
    -----
    Whole numbers n_i count amounts a_i without loss up to a limit U where a_i <= n_i C / U for all i, so that
    sum n_i <= U means sum a_i <= C, and, with r the greatest n_i / a_i, the whole part of r C is U: as n_i <= r a_i,
    sum a_i <= C then means sum n_i <= U.
    """
    wide = capacity * (1 + WIDER)
    fits, some = amounts <= wide, (amounts > 0) & (amounts <= wide)
    if not some.any():
        none = np.where(fits, 0, 1)
        return 0, none, none
    for limit in range(1, MOST_UNITS + 1):
        number = np.maximum(np.ceil(amounts[some] * (limit / capacity) - ROUNDING), 1.0)
        if float((number / amounts[some]).max()) * wide * (1 + ROUNDING) < limit + 1:
            counted = np.where(fits, 0, limit + 1)
            counted[some] = number
            return limit, counted, counted
    exactly = np.where(fits, amounts * (limit / capacity), limit + 1.0)
    least = np.where(fits, np.floor(exactly * (1 - ROUNDING)), limit + 1).astype(np.int64)
    return limit, least, np.ceil(exactly).astype(np.int64)


class Contents:
    """The contents of servers of an instance.

    Parameters
    ----------
    instance : Tuning
        With a usable configuration for each job.

    Raises
    ------
    GaveUp
        When the tables are too large.

    Attributes
    ----------
    kinds : list of list of int
        Jobs that are alike in GPUs and usable configurations that no other one dominates.
    demand, count : (t,) int
        GPUs of a job of each kind, and jobs of it.
    kind, gpus, config : (m,) int
        Of each part: the kind of job, its GPUs, and the configuration, by the number in the job's table.
    worth : (m,) float
    """

    def __init__(self, instance: Tuning) -> None:
        self.instance = instance
        usable = [
            np.intersect1d(rows, np.flatnonzero(enough))
            for rows, enough in zip(instance.undominated, instance.usable_configs, strict=True)
        ]
        tables = [table[rows] for table, rows in zip(instance.configs, usable, strict=True)]
        alike = [(gpus, table.tobytes()) for gpus, table in zip(instance.gpu_demands.tolist(), tables, strict=True)]
        self.kinds = equal_rows(alike)
        first = [jobs[0] for jobs in self.kinds]
        self.demand = instance.gpu_demands[first]
        self.count = np.array([len(jobs) for jobs in self.kinds])
        self.usable = [usable[job] for job in first]
        parts: list[tuple[int, int, int, float, float, float]] = []
        for t, job in enumerate(first):
            gpus, penalised = int(self.demand[t]), instance.penalised[job]
            pieces = range(1, min(gpus - 1, instance.server_gpus) + 1) if instance.allow_split else range(0)
            for k in [*pieces, *([gpus] if gpus <= instance.server_gpus else [])]:
                kept = 1 - instance.split_penalty if penalised and k < gpus else 1.0
                parts += [
                    (t, k, c, worth * kept * k / gpus, cpus * k / gpus, memory * k / gpus)
                    for c, (cpus, memory, worth) in enumerate(tables[job].tolist())
                ]
        columns = np.array(parts).reshape(-1, 6).T
        cpus = units(columns[4], instance.server_cpus)
        memory = units(columns[5], instance.server_memory)
        self.limits = (instance.server_gpus, cpus[0], memory[0])
        least, most = (np.column_stack([columns[1].astype(np.int64), cpus[i], memory[i]]) for i in (1, 2))
        fits = (least <= self.limits).all(axis=1)
        self.least, self.most, columns = least[fits], most[fits], columns[:, fits]
        self.exact = bool((self.least == self.most).all())
        self.kind, self.gpus, self.config = columns[:3].astype(np.int64)
        self.worth, self.amounts = columns[3], columns[4:]
        self.of_kind = [np.flatnonzero(self.kind == t) for t in range(len(self.kinds))]
        whole = (self.gpus == self.demand[self.kind]) | (self.demand[self.kind] > instance.server_gpus)
        self.unsplit = [own[whole[own]] if whole[own].any() else own for own in self.of_kind]
        pairs, self.pair = np.unique(np.column_stack([self.kind, self.config]), axis=0, return_inverse=True)
        self.pair = self.pair.ravel()
        self.pair_kind = pairs[:, 0]
        self.of_pair = [np.flatnonzero(self.pair == p) for p in range(len(pairs))]
        if not all(map(len, self.of_kind)):
            raise GaveUp("a job has no part that fits a server")
        size = len(self.copies(self.count, self.worth)) + 1
        if size * math.prod(limit + 1 for limit in self.limits) > MOST_NUMBERS:
            raise GaveUp("the table of a server's contents is too large")

    def copies(self, count: IntArray, gain: FloatArray, *, whole: bool = False) -> list[Copy]:
        """Return the jobs that a server may hold, ``whole`` where it can; of a kind no more than it has room for."""
        copies: list[Copy] = []
        for own, jobs in zip(self.unsplit if whole else self.of_kind, count.tolist(), strict=True):
            if jobs:
                copies += [(own, gain[own])] * min(jobs, self.instance.server_gpus // int(self.gpus[own].min()))
        return copies

    def table(self, copies: Sequence[Copy], sizes: IntArray) -> FloatArray:
        """Return the greatest gain of a content, of the copies from each position on, by what is left of the limits.

        Parameters
        ----------
        copies : sequence of Copy
        sizes : (m, 3) int
            What a part takes, in units.

        Returns
        -------
        (copies + 1, G + 1, C + 1, M + 1) float
        """
        clock.check()
        gpus, cpus, memory = self.limits
        table = np.zeros((len(copies) + 1, gpus + 1, cpus + 1, memory + 1))
        for position in range(len(copies) - 1, -1, -1):
            then, now = table[position + 1], table[position]
            now[:] = then
            parts, gains = copies[position]
            for (g, c, m), gain in zip(sizes[parts].tolist(), gains.tolist(), strict=True):
                if gain > 0:
                    there = now[g:, c:, m:]
                    np.maximum(there, then[: gpus + 1 - g, : cpus + 1 - c, : memory + 1 - m] + gain, out=there)
        return table

    def content(
        self, table: FloatArray, copies: Sequence[Copy], sizes: IntArray, left: tuple[int, int, int]
    ) -> list[tuple[int, int]]:
        """Return a content of greatest gain within what is left of the limits: positions of copies, and parts."""
        chosen: list[tuple[int, int]] = []
        position = 0
        while table[position][left] > 0:
            rest = table[position:, left[0], left[1], left[2]]
            # The last copy from which on there is as much to gain.
            position += int(np.argmax(rest != rest[0])) - 1
            parts, gains = copies[position]
            after = np.array(left) - sizes[parts]
            some = (gains > 0) & (after >= 0).all(axis=1)
            parts, gains, after = parts[some], gains[some], after[some]
            best = int((table[(position + 1, *after.T)] + gains).argmax())
            chosen.append((position, int(parts[best])))
            left = (int(after[best, 0]), int(after[best, 1]), int(after[best, 2]))
            position += 1
        return chosen

    def first_prices(self, count: IntArray, servers: int) -> FloatArray:
        """(t,) float: prices of a GPU of each kind, by the first stage's relaxation for some jobs and servers."""
        highs = _silent()
        kinds, some = len(count), np.flatnonzero(count[self.kind] > 0)
        capacities = servers * np.array([self.instance.server_cpus, self.instance.server_memory], float)
        wanted = (count * self.demand).astype(float)
        lower, upper = np.append(wanted, [-highspy.kHighsInf] * 2), np.append(wanted, capacities)
        starts, nothing = np.zeros(kinds + 2, np.int32), np.zeros(0)
        highs.addRows(kinds + 2, lower, upper, 0, starts, nothing.astype(np.int32), nothing)
        rows = np.column_stack([self.kind[some], np.full((len(some), 2), [kinds, kinds + 1])]).astype(np.int32).ravel()
        values = np.column_stack([self.gpus[some], self.amounts[:, some].T]).ravel()
        free = np.zeros(len(some)), np.full(len(some), highspy.kHighsInf)
        highs.addCols(
            len(some), self.worth[some], *free, 3 * len(some), 3 * np.arange(len(some), dtype=np.int32), rows, values
        )
        limit_run(highs, clock.left())
        highs.run()
        prices: FloatArray = np.nan_to_num(highs.getSolution().row_dual)[:kinds]
        return prices

    def filled(
        self, count: IntArray, servers: int, prices: FloatArray | None = None, *, whole: bool = False
    ) -> list[list[int]] | None:
        """Fill servers one after the other; None where that does not place all jobs.

        Parameters
        ----------
        count : (t,) int
            Jobs of each kind.
        servers : int
        prices : (t,) float, optional
            Of a GPU of each kind; by default those of the first stage, made anew as jobs are placed.
        whole : bool
            Whether no job is split that a server holds.

        Returns
        -------
        list of list of int
            The parts on each server.
        """
        count, found, own = count.copy(), [], prices
        # What is to come of jobs that are split: the parts that it may be placed in, and its GPUs.
        owed: list[tuple[IntArray, int]] = []
        for server in range(servers):
            if own is None or (prices is None and server % max(1, servers // ANEW) == 0):
                own = self.first_prices(count, servers - server)
            gain = self.worth - own[self.kind] * self.gpus
            much = 1 + 4 * self.instance.server_gpus * float(np.abs(gain).max())
            wanted = int(count @ self.demand) + sum(gpus for _, gpus in owed)
            if wanted > (servers - server - 1) * self.instance.server_gpus:
                gain += much * self.gpus
            rests = [(parts, gain[parts] + 2 * much * self.gpus[parts]) for parts, _ in owed]
            copies = [*rests, *self.copies(count, gain, whole=whole)]
            content = self.content(self.table(copies, self.most), copies, self.most, self.limits)
            found.append([part for _, part in content])
            placed = dict(content)
            rest = [
                (parts, gpus - int(self.gpus[placed[position]]) if position in placed else gpus)
                for position, (parts, gpus) in enumerate(owed)
            ]
            for position, part in content:
                if position >= len(owed):
                    count[self.kind[part]] -= 1
                    same = self.of_pair[self.pair[part]]
                    rest.append((same, int(self.demand[self.kind[part]] - self.gpus[part])))
            owed = [(parts[self.gpus[parts] <= gpus], gpus) for parts, gpus in rest if gpus]
        return None if count.any() or owed else found

    def plan(self, contents: Sequence[Sequence[int]]) -> TuningPlan:
        """Return the plan that has these parts on its servers."""
        instance = self.instance
        on_server = np.zeros((len(self.of_pair), instance.num_servers), np.int64)
        for server, parts in enumerate(contents):
            np.add.at(on_server[:, server], self.pair[parts], self.gpus[parts])
        choices = np.full(instance.num_jobs, -1)
        gpus = np.zeros((instance.num_jobs, instance.num_servers), np.int64)
        waiting = [iter(jobs) for jobs in self.kinds]
        for there, same in zip(on_server, self.of_pair, strict=True):
            t, c = int(self.kind[same[0]]), int(self.config[same[0]])
            for row, job in zip(as_jobs(there, int(self.demand[t])), waiting[t], strict=False):
                choices[job], gpus[job] = self.usable[t][c], row
        return TuningPlan(choices=choices, gpus=gpus)

    def contents(self, plan: TuningPlan) -> list[list[int]]:
        """Return the parts on each server of a plan, a configuration that dominates the job's in its place."""
        found: list[list[int]] = [[] for _ in range(self.instance.num_servers)]
        for t, jobs in enumerate(self.kinds):
            for job in jobs:
                table, choice = self.instance.configs[job], int(plan.choices[job])
                own, now = table[self.usable[t]], table[choice]
                as_good = (own[:, :THROUGHPUT] <= now[:THROUGHPUT]).all(axis=1) & (
                    own[:, THROUGHPUT] >= now[THROUGHPUT]
                )
                same = self.of_kind[t][self.config[self.of_kind[t]] == np.argmax(as_good)]
                for server in np.flatnonzero(plan.gpus[job]).tolist():
                    found[server].append(int(same[self.gpus[same] == plan.gpus[job, server]][0]))
        return found


def _silent() -> highspy.Highs:
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.changeObjectiveSense(highspy.ObjSense.kMaximize)
    return highs


class Program:
    """The linear program over contents: its columns are found by tables, its prices bound every plan.

    Attributes
    ----------
    prices : (t,) float
        Of a GPU of each kind, the best so far.
    bound : float
    """

    def __init__(self, contents: Contents, plan: Sequence[Sequence[int]] | None) -> None:
        self._contents = contents
        self._wanted = (contents.count * contents.demand).astype(float)
        self._servers = contents.instance.num_servers
        self._known: set[tuple[int, ...]] = set()
        kinds = len(self._wanted)
        self._highs = _silent()
        for want in self._wanted.tolist():
            self._highs.addRow(want, want, 0, [], [])
        self._highs.addRow(-highspy.kHighsInf, float(self._servers), 0, [], [])
        # What is not placed costs more than any GPU is worth.
        cost = -10.0 * float((contents.worth / contents.gpus).max())
        for t in range(kinds):
            self._highs.addCol(cost, 0.0, highspy.kHighsInf, 1, np.array([t], np.int32), np.ones(1))
        for parts in plan or ():
            self._add(parts)
        self.prices = contents.first_prices(contents.count, self._servers)
        self.bound = math.inf

    def _add(self, parts: Sequence[int]) -> bool:
        key = tuple(sorted(parts))
        if key in self._known:
            return False
        self._known.add(key)
        there = np.array(key, np.int64)
        held = np.bincount(self._contents.kind[there], self._contents.gpus[there], len(self._wanted))
        some = np.flatnonzero(held)
        rows = np.append(some, len(held)).astype(np.int32)
        values = np.append(held[some], 1.0)
        self._highs.addCol(float(self._contents.worth[there].sum()), 0.0, highspy.kHighsInf, len(rows), rows, values)
        return True

    def run(self) -> None:
        """Add contents as prices call for them, until there are none, the bound is near, or the time is up."""
        self._priced(self.prices, math.inf)
        while clock.left() > 0:
            limit_run(self._highs, clock.left())
            self._highs.run()
            value = self._highs.getInfo().objective_function_value
            if self.bound - value <= NEAR * abs(value):
                return
            duals = np.nan_to_num(self._highs.getSolution().row_dual)
            own = duals[:-1]
            try:
                drawn = DRAWN * self.prices + (1 - DRAWN) * own
                if not self._priced(drawn, duals[-1], own) and not self._priced(own, duals[-1], own):
                    return
            except clock.TimeIsUp:
                return

    def _priced(self, prices: FloatArray, most: float, own: FloatArray | None = None) -> int:
        """Keep the bound at some prices if it is the best, and add contents that gain more than ``most`` at others."""
        contents, new = self._contents, 0
        gain = contents.worth - prices[contents.kind] * contents.gpus
        copies = contents.copies(contents.count, gain)
        table = contents.table(copies, contents.least)
        paid = float(self._wanted @ prices)
        gained = self._servers * float(table[0].max())
        bound = paid + gained + ROUNDING * (float(self._wanted @ np.abs(prices)) + gained)
        if bound < self.bound:
            self.bound, self.prices = bound, prices
        if own is None:
            return 0
        if not contents.exact:
            table = contents.table(copies, contents.most)
        for left in _ends(table[0]):
            parts = [part for _, part in contents.content(table, copies, contents.most, left)]
            there = np.array(parts, np.int64)
            gains = contents.worth[there] - own[contents.kind[there]] * contents.gpus[there]
            if gains.sum() > most + ROUNDING * (1 + abs(most)):
                new += self._add(parts)
            if new == AT_ONCE:
                break
        return new


def _ends(gain: FloatArray) -> Iterator[tuple[int, int, int]]:
    """Yield limits of a server, and what is a little below them, for which a content gains most."""
    some = gain[:, -7:, -7:]
    for place in np.argsort(-some, axis=None, kind="stable")[: 2 * AT_ONCE].tolist():
        g, c, m = np.unravel_index(place, some.shape)
        if some[g, c, m] > 0:
            yield int(g), int(c + gain.shape[1] - some.shape[1]), int(m + gain.shape[2] - some.shape[2])


def refilled(contents: Contents, plan: list[list[int]], prices: FloatArray, bound: float, seed: int) -> list[list[int]]:
    """Return the plan with a few servers after a few emptied and filled again, until that gains no more.

    Parameters
    ----------
    contents : Contents
    plan : list of list of int
        The parts on each server.
    prices : (t,) float
    bound : float
        At which it ends.
    seed : int
    """
    rng = np.random.default_rng(seed)
    plan, worth = [list(parts) for parts in plan], contents.worth
    shaken = SHAKEN * float(worth.sum() / contents.gpus.sum())
    value, patience = float(sum(worth[parts].sum() for parts in plan)), 0
    while patience < PATIENCE * len(plan) and clock.left() > 0 and not agree(value, bound):
        patience += 1
        some = rng.permutation(len(plan))[: rng.integers(FEWEST, MOST)].tolist()
        before = [part for server in some for part in plan[server]]
        count = _jobs(contents, before)
        if count is None:
            continue
        own = prices + shaken * rng.standard_normal(len(prices))
        try:
            found = contents.filled(count, len(some), own)
        except clock.TimeIsUp:
            break
        if found is None:
            continue
        gained = float(sum(worth[parts].sum() for parts in found) - worth[before].sum())
        if gained >= 0:
            for server, parts in zip(some, found, strict=True):
                plan[server] = parts
            if gained > ROUNDING * value:
                value, patience = value + gained, 0
    return plan


def _jobs(contents: Contents, parts: Sequence[int]) -> IntArray | None:
    """(t,) int: the jobs of each kind that parts make up; None where some job of them is split with other parts."""
    there = np.array(parts, np.int64)
    held = np.bincount(contents.pair[there], contents.gpus[there], len(contents.of_pair)).astype(np.int64)
    jobs, more = np.divmod(held, contents.demand[contents.pair_kind])
    if more.any():
        return None
    return np.bincount(contents.pair_kind, jobs, len(contents.kinds)).astype(np.int64)


def contents_of(instance: Tuning) -> Contents | None:
    """Return the contents of servers of an instance, or None where a table cannot hold them."""
    try:
        return Contents(instance)
    except GaveUp:
        return None


def solve(instance: Tuning, options: Options) -> Solution:
    """Solve by the contents of servers alone."""
    return solved(Contents(instance), options)


def solved(contents: Contents, options: Options, ceiling: float = math.inf) -> Solution:
    """Fill servers, bound all plans by prices, fill servers at these; what gap is left is the one model's.

    Parameters
    ----------
    contents : Contents
    options : Options
    ceiling : float
        A bound that is proven otherwise, at which it ends; it is not that of the solution.
    """
    began, instance = time.perf_counter(), contents.instance
    start = options.start
    best = _Best(contents, start if isinstance(start, TuningPlan) and not instance.violations(start) else None)
    bound, message = math.inf, ""

    def open_yet() -> bool:
        gap = relative_gap(best.value, min(bound, ceiling))
        return gap > options.mip_gap and clock.left() > 0

    try:
        for whole in (True, False) if instance.allow_split else (True,):
            if open_yet():
                best.take(contents.filled(contents.count, instance.num_servers, whole=whole))
        if open_yet():
            program = Program(contents, best.contents)
            with clock.within(FIRST * clock.left()):
                program.run()
            bound = program.bound
            best.take(contents.filled(contents.count, instance.num_servers, program.prices))
            if open_yet() and best.contents is not None:
                best.take(refilled(contents, best.contents, program.prices, bound, options.seed))
    except clock.TimeIsUp:
        message = "time limit"
    seconds = time.perf_counter() - began
    if open_yet():
        last = solve_one_model(instance, replace(options, start=best.plan))
        if last.status == "infeasible" or last.bound <= bound:
            return replace(last, method=CONTENTS.name)
        seconds, message = seconds + last.solve_seconds, last.message
        best.keep(last.plan)
    met = best.value is not None and agree(best.value, bound)
    status: Status = "optimal" if met else "unknown" if best.plan is None else "feasible"
    return judged(
        instance,
        best.plan,
        Result(status, None, bound, None, seconds, message, "prices" if math.isfinite(bound) else ""),
        began=began,
        solver="highs",
        solver_version=version(),
        method=CONTENTS.name,
        start=start,
    )


class _Best:
    """The best plan so far, its value, and what it has on the servers."""

    def __init__(self, contents: Contents, plan: TuningPlan | None) -> None:
        self._contents = contents
        self.plan: TuningPlan | None = None
        self.value: float | None = None
        self.keep(plan)

    @property
    def contents(self) -> list[list[int]] | None:
        return None if self.plan is None else self._contents.contents(self.plan)

    def take(self, found: list[list[int]] | None) -> None:
        """Keep the plan of what is on the servers if it is better."""
        self.keep(None if found is None else self._contents.plan(found))

    def keep(self, plan: Plan | None) -> None:
        """Keep a plan if it is better and the judge accepts it."""
        instance = self._contents.instance
        if isinstance(plan, TuningPlan) and not instance.violations(plan):
            value = instance.objective(plan)
            if self.value is None or value > self.value:
                self.plan, self.value = plan, value


CONTENTS = Method(
    name="contents of servers",
    short="contents",
    proves="prices of the jobs, at which no content of a server is worth more than is counted; else the one model",
    where="servers whose contents a table can hold",
    solve=solve,
)
