"""Hindsight: bounds that no schedule of a setting's jobs can beat, with all arrivals known.

A setting says in which *ways* its jobs can run: what a way takes of each resource (GPUs of a pool, CPU cores, memory),
and how fast the jobs in it get on.  Time is divided among the ways without end here, a job is in one way at a time, and
no more of a resource is taken than there is.  Whatever a setting does with whole GPUs, servers, rounds and costs is
such a division too, so that a bound on it holds for every schedule; where each such division is a schedule of the
setting (``attained``), the optimum of the division is that of the schedules.

Average completion time
    Between two releases i and i+1, with k jobs complete, A_i - k jobs wait: slot (i, k), of a length to be decided.
    With x[w, i, k] the time that way w has in it::

        min   sum_{i,k} (A_i - k) * length[i, k]
        s.t.  sum_k length[i, k] = what lies between the releases                     but for the last
              sum_{w of j} x[w, i, k] <= length[i, k]
              sum_w takes[w, r] * x[w, i, k] <= capacity[r] * length[i, k]
              sum_{w,i,k} rate[w, j] * x[w, i, k] = work[j]
              what j does with at most k jobs complete >= work[j] * sum_{q<=k} position[j, q]
              length[i, k] = 0 unless over[k, i] and not over[k + 1, i - 1]

    ``position[j, q]`` says that job j is the one to complete after q others, ``over[k, i]`` that k jobs are complete
    before release i + 1.  With one release that is the program of :mod:`formulations.afs.elastic_sharing`.
Makespan
    The linear program of the slots between releases.
Deadlines met
    How many of the deadlines of ElasticFlow can be kept, with GPU-slots between releases and deadlines.

Of more jobs than these programs hold in their time there are bounds by argument.  With prices of the resources that
make all of them together worth 1, a job is worth the least that its work can cost, p_j, and all jobs together do no
more than a machine that does 1 a second, whose bounds are those of :mod:`formulations.afs.one_machine`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from formulations.afs.one_machine import sum_of_ends
from formulations.engine.highs import Result, Session
from formulations.engine.linear import LinearProgram, csr
from instances.base import TOLERANCE, Sense
from instances.schema import FloatArray, IntArray
from validation.errors import ReplayError
from validation.replay.engine import Costs, Jobs
from validation.replay.ways import Hindsight, Slots, Ways, corners_of

__all__ = ["METRICS", "Bound", "offline"]

METRICS = ("average_jct", "makespan", "deadlines_met")
"""Metrics that are bounded: times from below, the part of the deadlines that are met from above."""

MOST = 60_000
"""Most columns of a program that is tried."""

PRICING = 20.0
"""Time limit of the program that prices resources, s."""

WHOLE = 1e4
"""A job's work in the programs, and the time that the jobs take one after the other."""


NO_COSTS = Costs()


class Bound(NamedTuple):
    """A value that no schedule of a setting beats.

    Attributes
    ----------
    value : float
        In the unit of the metric.
    exact : bool
        Whether a schedule of the setting has this value: it is the optimum.
    proof : str
        What it rests on, as ``Solution.proof``: "prices", "two runs", "one run" or "argument".
    """

    value: float
    exact: bool
    proof: str


def offline(
    setting: Hindsight, *, costs: Costs = NO_COSTS, round_length: float | None = None, time_limit: float = 60.0
) -> dict[str, Bound]:
    """Return bounds that no schedule of a setting can beat, even one that knows all arrivals.

    Parameters
    ----------
    setting : Hindsight
        Of one that does not tell its ways nothing is known.
    costs, round_length
        Of the replays, as in :func:`validation.replay.replay`.
    time_limit : float
        Seconds for each program; 0 for the bounds by argument alone.

    Returns
    -------
    dict of str to Bound
        For ``average_jct`` and ``makespan`` where all jobs are run, for ``deadlines_met`` where they are what counts.
    """
    jobs = setting.jobs
    if not len(jobs) or not hasattr(setting, "ways"):
        return {}
    own = getattr(setting, "round_length", None)
    length = own if round_length is None else round_length
    releases = _releases(jobs, length)
    # Time that is divided without end has neither rounds nor restarts.
    free = length is None and costs == NO_COSTS
    found: dict[str, Bound] = {}
    if setting.all_run:
        there = np.flatnonzero(jobs.work > 0)
        trace = _Trace(setting.ways().of(there), releases[there], jobs.work[there])
        waits = float((releases - jobs.arrivals)[there].sum())
        flow, makespan = trace.flow(time_limit), trace.makespan(time_limit)
        exact = trace.ways.attained and free
        found["average_jct"] = Bound((flow.value + waits) / len(jobs), flow.exact and exact, flow.proof)
        last = float(jobs.arrivals[-1])
        end = makespan if makespan.value >= last else Bound(last, makespan.exact, makespan.proof)
        found["makespan"] = Bound(end.value - float(jobs.arrivals[0]), end.exact and exact, end.proof)
    slots = setting.slots()
    if slots is not None and slots.counts.any():
        found["deadlines_met"] = _deadlines_met(slots, jobs, time_limit, costs == NO_COSTS)
    return found


def _releases(jobs: Jobs, round_length: float | None) -> FloatArray:
    """Return the earliest time at which each job can run, (n,) float, s: with rounds, from the next one on."""
    if round_length is None:
        return jobs.arrivals
    start = jobs.arrivals[0]
    rounds = (jobs.arrivals - start) / round_length
    begun = np.abs(rounds - np.round(rounds)) <= TOLERANCE * np.maximum(1.0, rounds)
    return np.where(begun, jobs.arrivals, start + np.ceil(rounds) * round_length)


# --- completion times ----------------------------------------------------------------------------


@dataclass(eq=False)
class _Trace:
    """Jobs with work, n of them, in order of release."""

    ways: Ways
    releases: FloatArray
    work: FloatArray
    worth: FloatArray = field(init=False)
    alone: FloatArray = field(init=False)
    unit: float = field(init=False)

    def __post_init__(self) -> None:
        ways = self.ways
        fastest = np.zeros(len(self.work))
        np.maximum.at(fastest, ways.job, ways.rate)
        if (fastest == 0).any():
            raise ReplayError(f"job {int(np.argmin(fastest))} of those with work has no way to run")
        self.alone = self.work / fastest
        self.unit = float(self.alone.sum()) / WHOLE or 1.0
        self.worth = self._worth()

    @cached_property
    def share(self) -> FloatArray:
        """Part of its job that each entry of the ways does in a ``unit`` of time, of ``WHOLE``, (e,) float."""
        share: FloatArray = self.ways.rate * self.unit / self.work[self.ways.job] * WHOLE
        return share

    @cached_property
    def size(self) -> FloatArray:
        """Unit in which each resource is measured, (r,) float; 1 where there is nothing of it."""
        return np.where(self.ways.capacity > 0, self.ways.capacity, 1.0)

    @cached_property
    def of_way(self) -> list[list[tuple[int, float]]]:
        """Jobs of each way, with their shares."""
        of_way: list[list[tuple[int, float]]] = [[] for _ in self.ways.takes]
        for way, job, share in zip(self.ways.way.tolist(), self.ways.job.tolist(), self.share.tolist(), strict=True):
            of_way[way].append((job, share))
        return of_way

    def _there_from(self, interval: IntArray) -> IntArray:
        """Return the first interval in which each way can be had, when all jobs in it are there, (w,) int."""
        first = np.zeros(len(self.ways.takes), np.int64)
        np.maximum.at(first, self.ways.way, interval[self.ways.job])
        return first

    def _worth(self) -> FloatArray:
        """Return the least seconds of all resources that each job's work costs, by resource prices, (n,) float.

        The prices are those of a program that shares all work out at once; whatever they are, what follows holds.
        """
        ways, n, r = self.ways, len(self.work), len(self.ways.capacity)
        rows = np.concatenate([ways.job, *(np.full(len(ways.takes), n + one) for one in range(r)), n + np.arange(r)])
        every = np.arange(len(ways.takes))
        columns = np.concatenate([ways.way, *([every] * r), np.full(r, len(every))])
        values = np.concatenate(
            [self.share, *(ways.takes[:, one] / self.size[one] for one in range(r)), -1.0 * (ways.capacity > 0)]
        )
        prices, told = np.where(ways.capacity > 0, 1 / r, 0.0), np.zeros(n)
        if r > 1 and len(every) <= MOST:
            shared = LinearProgram(
                "min", 0.0, np.append(np.zeros(len(every)), 1.0), np.zeros(len(every) + 1),
                np.full(len(every) + 1, np.inf), np.zeros(len(every) + 1, bool), *csr(rows, columns, values, n + r),
                np.append(np.full(n, WHOLE), np.full(r, -np.inf)), np.append(np.full(n, np.inf), np.zeros(r)),
            )  # fmt: skip
            certificate = Session(time_limit=PRICING).run(shared).certificate
            if certificate is not None and (certificate.row_duals[n:] < 0).any():
                prices = np.maximum(-certificate.row_duals[n:], 0.0)
                told = np.maximum(certificate.row_duals[:n], 0.0) / self.work
        price = prices / self.size / prices.sum()
        cost = ways.takes @ price
        # Partners in a way pay for it alike, or as the program has it, scaled until no way gives more than it costs.
        each = np.full(n, np.inf)
        partners = np.bincount(ways.way, minlength=len(cost))
        np.minimum.at(each, ways.job, cost[ways.way] / (partners[ways.way] * ways.rate))
        if len(ways.way) > len(ways.takes):
            gained = np.bincount(ways.way, told[ways.job] * ways.rate, len(cost))
            told *= float((cost[gained > 0] / gained[gained > 0]).min(initial=1.0))
            if self.work @ told > self.work @ each:
                each = told
        worth: FloatArray = self.work * each
        return worth

    # --- average completion time ---

    def flow(self, time_limit: float) -> Bound:
        """Return the bound on the sum of the times from release to end, s."""
        ends = sum_of_ends(self.releases, self.worth, self.alone)
        argued = Bound(ends - float(self.releases.sum()), False, "argument")
        return _better(argued, self._least_flow(time_limit), self.unit)

    def _least_flow(self, time_limit: float) -> Result | None:
        """Solve the program of the module's docstring, in ``unit`` s; return None where it is too large."""
        n, ways = len(self.work), self.ways
        begins, interval = np.unique(self.releases, return_inverse=True)
        lasts, r = len(begins), len(ways.capacity)
        present = np.searchsorted(self.releases, begins, side="right")
        of_slot = [(i, k) for i in range(lasts) for k in range(min(int(present[i]) + 1, n))]
        if not n or not time_limit or len(ways.takes) * len(of_slot) > MOST:
            return None
        from_interval = self._there_from(interval)
        most = self._serial() / self.unit
        program = _Program()
        length = {
            (i, k): program.column(
                cost=present[i] - k,
                upper=(begins[i + 1] - begins[i]) / self.unit if i + 1 < lasts else most / (n - k),
            )
            for i, k in of_slot
        }
        position = {(j, q): program.column(upper=1, integer=True) for j in range(n) for q in range(n)}
        over = {
            (k, i): program.column(upper=1, integer=True)
            for i in range(lasts - 1)
            for k in range(1, min(int(present[i]), n - 1) + 1)
        }
        done: dict[tuple[int, int], list[tuple[int, float]]] = {(j, k): [] for j in range(n) for k in range(n)}
        for i, k in of_slot:
            if k == present[i]:
                continue
            taken: list[list[tuple[int, float]]] = [[(length[i, k], -float(there > 0))] for there in ways.capacity]
            busy: list[list[tuple[int, float]]] = [[(length[i, k], -1.0)] for _ in range(n)]
            for way in np.flatnonzero(from_interval <= i).tolist():
                column = program.column()
                for resource in range(r):
                    if ways.takes[way, resource]:
                        taken[resource].append((column, ways.takes[way, resource] / self.size[resource]))
                for job, share in self.of_way[way]:
                    busy[job].append((column, 1.0))
                    done[job, k].append((column, share))
            for row in (*taken, *busy):
                if len(row) > 1:
                    program.row(row, upper=0)
        for i in range(lasts - 1):
            span = (begins[i + 1] - begins[i]) / self.unit
            program.row([(length[i, k], 1.0) for at, k in of_slot if at == i], lower=span, upper=span)
        for j in range(n):
            program.row([entry for k in range(n) for entry in done[j, k]], lower=WHOLE, upper=WHOLE)
            program.row([(position[j, q], 1.0) for q in range(n)], lower=1, upper=1)
            program.row([(position[q, j], 1.0) for q in range(n)], lower=1, upper=1)
            for k in range(n - 1):
                before = [entry for q in range(k + 1) for entry in done[j, q]]
                program.row([*before, *((position[j, q], -WHOLE) for q in range(k + 1))], lower=0)
        for i, k in of_slot:
            upper = program.upper[length[i, k]]
            if i < lasts - 1 and (k, i) in over:
                program.row([(length[i, k], 1.0), (over[k, i], -upper)], upper=0)
            if (k + 1, i - 1) in over:
                program.row([(length[i, k], 1.0), (over[k + 1, i - 1], upper)], upper=upper)
        for (k, i), column in over.items():
            for later in ((k, i + 1), (k - 1, i)):
                if later in over:
                    program.row([(column, 1.0), (over[later], -1.0)], upper=0)
        # Nobody completes before it is there.
        for (k, i), column in over.items():
            for j in np.flatnonzero(interval > i).tolist():
                program.row([(column, 1.0), *((position[j, q], 1.0) for q in range(k))], upper=1)
        return program.solve(time_limit)

    def _serial(self) -> float:
        """Return the sum of the times from release to end when jobs run one after another, in order of release, s."""
        ways, n = self.ways, len(self.work)
        over = (ways.takes / np.maximum(ways.capacity, 1e-300)).max(axis=1, initial=1.0)
        best = np.zeros(n)
        np.maximum.at(best, ways.job, ways.rate / over[ways.way])
        now, total = -math.inf, 0.0
        for release, takes in zip(self.releases.tolist(), (self.work / best).tolist(), strict=True):
            now = max(now, release) + takes
            total += now - release
        return total

    # --- makespan ---

    def makespan(self, time_limit: float) -> Bound:
        """Return the bound on the last end, s."""
        if not len(self.work):
            return Bound(-math.inf, True, "argument")
        later = np.cumsum(self.worth[::-1])[::-1]
        argued = Bound(float(max((self.releases + later).max(), (self.releases + self.alone).max())), False, "argument")
        begins = np.unique(self.releases)
        result = self._least_makespan(begins, time_limit) if time_limit else None
        start = float(begins[-1])
        rest = _better(Bound(argued.value - start, False, "argument"), result, self.unit)
        return Bound(rest.value + start, rest.exact, rest.proof)

    def _least_makespan(self, begins: FloatArray, time_limit: float) -> Result | None:
        """Find the least time after the last release, in ``unit`` s; None where the program is too large."""
        ways, n, r, lasts = self.ways, len(self.work), len(self.ways.capacity), len(begins)
        if len(ways.takes) * lasts > MOST:
            return None
        from_interval = self._there_from(np.searchsorted(begins, self.releases))
        program = _Program()
        rest = program.column(cost=1)
        done: list[list[tuple[int, float]]] = [[] for _ in range(n)]
        for i in range(lasts):
            span = (begins[i + 1] - begins[i]) / self.unit if i + 1 < lasts else 0.0
            open_end = [(rest, -1.0)] if i + 1 == lasts else []
            taken: list[list[tuple[int, float]]] = [[] for _ in range(r)]
            busy: list[list[tuple[int, float]]] = [[] for _ in range(n)]
            for way in np.flatnonzero(from_interval <= i).tolist():
                column = program.column()
                for resource in np.flatnonzero(ways.takes[way]).tolist():
                    taken[resource].append((column, ways.takes[way, resource] / self.size[resource]))
                for job, share in self.of_way[way]:
                    busy[job].append((column, 1.0))
                    done[job].append((column, share))
            for resource, row in enumerate(taken):
                there = float(ways.capacity[resource] > 0)
                program.row([*row, *((column, there * value) for column, value in open_end)], upper=span * there)
            for row in busy:
                if row:
                    program.row([*row, *open_end], upper=span)
        for row in done:
            program.row(row, lower=WHOLE, upper=WHOLE)
        return program.solve(time_limit)


def _better(argued: Bound, result: Result | None, unit: float) -> Bound:
    """Return the greater of two lower bounds, s; one proven to be attained counts even where it rounds below."""
    if result is None or not np.isfinite(result.bound):
        return argued
    value = result.bound * unit
    if result.status == "optimal" and value >= argued.value * (1 - 1e-6):
        return Bound(value, True, result.proof)
    return Bound(value, False, result.proof) if value > argued.value else argued


# --- deadlines -----------------------------------------------------------------------------------


def _deadlines_met(slots: Slots, jobs: Jobs, time_limit: float, free: bool) -> Bound:
    """Return the bound on the part of the deadlines that are met."""
    count = int(slots.counts.sum())
    finished = slots.counts & (jobs.work == 0)
    most_work = slots.curves.max(axis=1) * np.maximum(slots.last - slots.first, 0)
    able = np.flatnonzero(slots.counts & ~finished & (most_work >= jobs.work * (1 - TOLERANCE)))
    argued = Bound((len(able) + int(finished.sum())) / count, not len(able) and slots.attained and free, "argument")
    if not time_limit or not len(able):
        return argued
    steps = [_steps(slots.curves[job]) for job in able.tolist()]
    whole = all(concave for _, _, concave in steps)
    cuts = np.unique(np.concatenate([slots.first[able], slots.last[able]]))
    if sum(len(widths) for widths, _, _ in steps) * len(cuts) > MOST:
        return argued
    program = _Program("max")
    used: list[list[tuple[int, float]]] = [[] for _ in cuts[:-1]]
    for job, (widths, slopes, _) in zip(able.tolist(), steps, strict=True):
        admitted = program.column(cost=1, upper=1, integer=True)
        work = [(admitted, -1.0)]
        for k in np.flatnonzero((cuts[:-1] >= slots.first[job]) & (cuts[1:] <= slots.last[job])).tolist():
            for width, slope in zip(widths, slopes, strict=True):
                column = program.column(upper=width * float(cuts[k + 1] - cuts[k]), integer=whole)
                work.append((column, slope / jobs.work[job]))
                used[k].append((column, 1.0))
        program.row(work, lower=0)
    for k, row in enumerate(used):
        program.row(row, upper=slots.num_gpus * float(cuts[k + 1] - cuts[k]))
    result = program.solve(time_limit)
    if not np.isfinite(result.bound):
        return argued
    most = min(math.floor(result.bound + 1e-6), len(able))
    exact = result.status == "optimal" and whole and slots.attained and free
    if most == len(able) and not exact:
        return argued
    return Bound((most + int(finished.sum())) / count, exact, result.proof)


def _steps(curve: FloatArray) -> tuple[list[float], list[float], bool]:
    """Return widths, GPUs, and slopes of the least concave curve above one, and whether it is that up to its peak."""
    corners = [0, *corners_of(curve)]
    widths = np.diff(corners)
    hull = np.interp(np.arange(corners[-1] + 1), corners, curve[corners])
    concave = bool((hull - curve[: corners[-1] + 1] <= TOLERANCE * curve.max()).all())
    return widths.astype(float).tolist(), (np.diff(curve[corners]) / widths).tolist(), concave


# --- programs ------------------------------------------------------------------------------------


class _Program:
    """A linear or mixed-integer program, column by column and row by row; columns are at least 0."""

    def __init__(self, sense: Sense = "min") -> None:
        self.sense = sense
        self.cost: list[float] = []
        self.upper: list[float] = []
        self.integer: list[bool] = []
        self.rows: list[Sequence[tuple[int, float]]] = []
        self.limits: list[tuple[float, float]] = []

    def column(self, *, cost: float = 0.0, upper: float = math.inf, integer: bool = False) -> int:
        self.cost.append(float(cost))
        self.upper.append(float(upper))
        self.integer.append(integer)
        return len(self.cost) - 1

    def row(self, entries: Sequence[tuple[int, float]], *, lower: float = -math.inf, upper: float = math.inf) -> None:
        self.rows.append(entries)
        self.limits.append((lower, upper))

    def solve(self, time_limit: float) -> Result:
        entries = [(row, column, value) for row, some in enumerate(self.rows) for column, value in some]
        rows, columns, values = (np.array(part) for part in zip(*entries, strict=True))
        lower, upper = (np.array(part, float) for part in zip(*self.limits, strict=True))
        n = len(self.cost)
        program = LinearProgram(
            self.sense, 0.0, np.array(self.cost), np.zeros(n), np.array(self.upper), np.array(self.integer),
            *csr(rows.astype(np.int64), columns.astype(np.int64), values.astype(float), len(lower)), lower, upper,
        )  # fmt: skip
        return Session(time_limit=time_limit).run(program)
