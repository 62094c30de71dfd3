"""The core of a round: prices of jobs and workers settle most entries, and the model of the others is solved.

A round of many jobs has far more pairs than can run.  With a price u[m] of each job and v[p] of each pool's workers,
none below 0, an entry (row r, type j of pool p) lacks

    slack[r, j] = sum of u[m], m in r, + scale_factor[r] * v[p] - priority[r, j].

Where no slack is below 0, every plan is worth what the jobs and workers that it uses cost, less the slack of its
entries, so none is worth more than the bound

    sum_m u[m] + sum_p v[p] * num_workers[p],

and one with a certain entry at most the bound less the slack of that, which is what it loses
(:mod:`formulations.methods.cores`).  The prices are those of the linear relaxation, whose columns are generated.  Any
others prove as much: a slack below 0 raises the price of one of the entry's jobs.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np

from formulations.engine import clock
from formulations.engine.highs import Result, Session, Status, version
from formulations.engine.linear import Columns, LinearProgram, csr
from formulations.engine.options import Options
from formulations.engine.solution import Solution, judged
from formulations.engine.solving import solve_one_model
from formulations.methods import Choice, GaveUp, Method, cores, one_model
from instances.base import agree
from instances.gavel.round_assignment import Entries, RoundAssignment, RoundAssignmentPlan
from instances.schema import BoolArray, FloatArray, IntArray

__all__ = ["CHOICE", "CORE"]

MANY = 1000
"""Entries from which on the core comes before the whole model."""
FIRST = 4
"""Entries for each job that the relaxation begins with, and half as many that it gets at a time."""
PRICED = 1e-9
"""Part of the greatest priority up to which a slack below 0 calls for no column."""


def solve(instance: RoundAssignment, options: Options) -> Solution:
    """Settle by prices what they settle, and solve the model of the entries that are left."""
    began = time.perf_counter()
    entries = _Entries(instance)
    if math.isinf(4.0 * len(entries.rows) * float(entries.priorities.max(initial=0.0))):
        raise GaveUp("numbers are too large to add up")
    relaxed, slack, seconds = _relaxation(entries)
    # What the relaxation uses lacks nothing; of that, the highest priority comes first.
    order = np.argsort(-entries.priorities, kind="stable")
    plan = entries.plan(entries.greedy(order, slack[order]))
    if isinstance(options.start, RoundAssignmentPlan) and not instance.violations(options.start):
        plan = max(plan, options.start, key=instance.objective)
    nearest = float(np.sort(slack)[: instance.num_jobs].max(initial=0.0))
    found = cores.search(
        instance, plan, relaxed, slack, nearest, options, entries.among, words=("jobs and workers", "entries")
    )
    plan = instance.filled(found.plan, urgent=False)
    status: Status = "optimal" if agree(instance.objective(plan), found.bound) else "feasible"
    return judged(
        instance,
        plan,
        Result(status, None, found.bound, None, seconds + found.seconds, found.message, found.proof),
        began=began,
        solver="highs",
        solver_version=version(),
        method=CORE.name,
    )


class _Entries(Entries):
    """The eligible entries of positive priority on pools that are wide enough."""

    def __init__(self, instance: RoundAssignment) -> None:
        super().__init__(instance, instance.urgent)

    def columns(self, some: IntArray) -> Columns:
        """Columns of some entries; the rows are the jobs, then the pools."""
        paired = np.flatnonzero(self.second[some] != self.first[some])
        position, jobs = np.arange(len(some)), self.instance.num_jobs
        indptr, rows, values = csr(
            np.concatenate([position, paired, position]),
            np.concatenate([self.first[some], self.second[some][paired], jobs + self.pools[some]]),
            np.concatenate([np.ones(len(some) + len(paired)), self.workers[some]]),
            len(some),
        )
        return Columns(
            cost=self.priorities[some],
            lower=np.zeros(len(some)),
            upper=np.full(len(some), np.inf),
            indptr=indptr,
            rows=rows,
            values=values,
        )

    def slack(self, jobs: FloatArray, workers: FloatArray) -> FloatArray:
        """(e,) float: what entries lack at a price of each job and of each pool's workers."""
        pair = np.where(self.second != self.first, jobs[self.second], 0.0)
        slack: FloatArray = jobs[self.first] + pair + self.workers * workers[self.pools] - self.priorities
        return slack

    def among(
        self, core: BoolArray, plan: RoundAssignmentPlan, options: Options
    ) -> tuple[RoundAssignmentPlan, Solution]:
        """Solve the instance that has some of the entries alone, as :func:`cores.search` asks."""
        rows, priorities = self._among(core)
        pairs = self.instance.pairs[rows[self.instance.num_jobs :] - self.instance.num_jobs]
        part = replace(self.instance, pairs=pairs, priorities=priorities, eligible=priorities > 0)
        start = RoundAssignmentPlan(chosen=plan.chosen[rows] & (priorities > 0))
        found = solve_one_model(part, replace(options, start=start))
        if isinstance(found.plan, RoundAssignmentPlan):
            chosen = np.zeros_like(plan.chosen)
            chosen[rows] = found.plan.chosen
            plan = max(plan, RoundAssignmentPlan(chosen=chosen), key=self.instance.objective)
        return plan, found

    def _among(self, core: BoolArray) -> tuple[IntArray, FloatArray]:
        """Rows of the instance that has some of the entries alone, and their priorities."""
        priorities = np.zeros_like(self.instance.priorities)
        priorities[self.rows[core], self.kinds[core]] = self.priorities[core]
        jobs = self.instance.num_jobs
        rows = np.concatenate([np.arange(jobs), jobs + np.flatnonzero(priorities[jobs:].any(axis=1))])
        return rows, priorities[rows]


def _relaxation(entries: _Entries) -> tuple[float, FloatArray, float]:
    """Return the bound at the relaxation's prices, every entry's slack, and the solver's seconds.

    Without time for all of its columns, the prices are those of the columns that it has.
    """
    instance = entries.instance
    jobs, pools = instance.num_jobs, len(instance.num_workers)
    limits = np.concatenate([np.ones(jobs), instance.num_workers])
    program = LinearProgram(
        "max", 0.0, np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0, bool),
        np.zeros(jobs + pools + 1, np.int32), np.zeros(0, np.int32), np.zeros(0),
        np.full(jobs + pools, -np.inf), limits,
    )  # fmt: skip
    first = np.argsort(-entries.priorities / entries.workers, kind="stable")[: FIRST * jobs]
    program, session, seconds = program.with_columns(entries.columns(first)), Session(), 0.0
    there = np.zeros(len(entries.rows), bool)
    there[first] = True
    prices = np.zeros(jobs + pools)
    while len(first):
        result = session.run(program)
        seconds += result.seconds
        if result.certificate is None:
            break
        prices = np.maximum(result.certificate.row_duals, 0.0)
        slack = np.where(there, 0.0, entries.slack(prices[:jobs], prices[jobs:]))
        wanted = np.flatnonzero(slack < -PRICED * float(entries.priorities.max()))
        if not len(wanted) or clock.is_up():
            break
        most = wanted[np.argsort(slack[wanted], kind="stable")[: FIRST * jobs // 2]]
        there[most] = True
        program = session.add_columns(entries.columns(most))
    prices_of_jobs = prices[:jobs].copy()
    lacking = np.maximum(-entries.slack(prices_of_jobs, prices[jobs:]), 0.0)
    np.maximum.at(prices_of_jobs, entries.first, prices[:jobs][entries.first] + lacking)
    slack = np.maximum(entries.slack(prices_of_jobs, prices[jobs:]), 0.0)
    bound = math.fsum(prices_of_jobs.tolist()) + math.fsum((prices[jobs:] * instance.num_workers).tolist())
    return bound, slack, seconds


CORE = Method(
    name="the core of a round",
    short="core",
    proves="the prices of jobs and workers for what they settle, and the search of the model of what is left",
    where="priorities that can be added up; it comes first where there are many",
    solve=solve,
)


def _best_first(instance: RoundAssignment) -> tuple[Method, Method]:
    """Return the one model first where there is little to settle."""
    many = np.count_nonzero(instance.urgent) >= MANY
    return (CORE, one_model.METHOD) if many else (one_model.METHOD, CORE)


CHOICE = Choice((CORE, one_model.METHOD), best_first=_best_first)
