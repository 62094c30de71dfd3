"""One linear program of a policy of Gavel's, and what every method does with it: limits before, a verdict after."""

from __future__ import annotations

import importlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from formulations.engine import highs
from formulations.engine.folding import LARGEST_SHARE, Folding, fold
from formulations.engine.highs import INTERIOR_POINT_ROWS, Result
from formulations.engine.linear import LinearProgram
from formulations.engine.options import Options
from formulations.engine.polishing import PRECISE
from formulations.engine.protocol import formulation
from formulations.engine.scaling import unit
from formulations.engine.solution import Solution, judged
from formulations.gavel.priced import with_stricter_slos
from formulations.gavel.sharing import SharingProgram
from formulations.methods import Method
from formulations.methods.generation import ColumnGeneration
from instances.gavel.makespan import Makespan
from instances.gavel.max_min_fairness import MaxMinFairness
from instances.gavel.sharing import Allocation, Sharing

__all__ = ["POLICIES", "PRICED_JOBS", "Policy", "PolicyMethod", "Task"]

PRICED_JOBS = 600
"""From so many jobs on, programs without pairs are solved by prices; max-min fairness from a third as many."""
UNTIED_JOBS = 2_500
"""The same for programs in which nothing ties all jobs together, which simplex solves faster; with SLOs less so."""
ALIKE = 2_000
"""Jobs that are looked at before columns of more are told apart."""
BEYOND = 1.01
"""How many times what a variable can have is beyond it, whatever the rounding."""
SIMPLEX_ROWS = 5_000
"""Up to so many rows, programs in which no variable ties all jobs together are left to simplex.

Interior point overtakes it later there than elsewhere; ``python -m benchmarks engine.interior_point`` compares them.
"""


@dataclass(frozen=True)
class Policy:
    """A policy's program with what helps to solve it.

    Attributes
    ----------
    covering : str
        The constraint that limits how many units of pair columns there can be.
    interior_rows : int
        With more rows than this, the first program is solved by interior point.
    priced_jobs : int
        From so many jobs on, prices are the best method without pairs.
    reach : callable, optional
        ``reach(instance) -> float``: the most that the policy's variable can have.  A limit just above it takes no part
        in any optimum, and lets the dual simplex method start, which takes a third less time than without.
    stricter : callable, optional
        ``stricter(instance)`` has limits a little stricter, for a plan where that of the instance misses them.
    """

    covering: str = "job_time"
    interior_rows: int = INTERIOR_POINT_ROWS
    priced_jobs: int = PRICED_JOBS
    reach: Callable[[Any], float] | None = None
    stricter: Callable[[Any], Any] | None = None


def _greatest_level(instance: MaxMinFairness) -> float:
    """Bound the least level: no job is above its ceiling, where it has all of its time in its best place."""
    ceilings = instance.level_per_throughput * instance.greatest_throughputs / instance.weights
    return float(ceilings.min()) * unit(instance.weights)


def _greatest_rate(instance: Makespan) -> float:
    """Bound the rate: no job is faster than with all of its time in its best place."""
    if not instance.active.any():
        return math.inf
    fastest = instance.greatest_throughputs[instance.active] / instance.steps[instance.active]
    isolated: float = importlib.import_module("formulations.gavel.makespan").isolated_makespan(instance)
    return isolated * float(fastest.min())


POLICIES = {
    "gavel.cost": Policy("budget", SIMPLEX_ROWS, stricter=with_stricter_slos),
    "gavel.fifo": Policy(interior_rows=SIMPLEX_ROWS, priced_jobs=UNTIED_JOBS),
    "gavel.makespan": Policy(interior_rows=SIMPLEX_ROWS // 2, reach=_greatest_rate),
    "gavel.max_min_fairness": Policy(priced_jobs=PRICED_JOBS // 3, reach=_greatest_level),
    "gavel.throughput_per_dollar": Policy(
        interior_rows=SIMPLEX_ROWS, priced_jobs=UNTIED_JOBS * 3 // 5, stricter=with_stricter_slos
    ),
    "gavel.total_throughput": Policy(interior_rows=SIMPLEX_ROWS, priced_jobs=UNTIED_JOBS),
}
"""Thresholds, reach and stricter variant of each policy that is one linear program, by problem."""


class Task:
    """An instance of such a policy, with what its methods need alike, each made once.

    Parameters
    ----------
    instance : Sharing
    """

    def __init__(self, instance: Sharing) -> None:
        self.began = time.perf_counter()
        self.instance = instance
        self.known = POLICIES[instance.problem]
        self._module = importlib.import_module(f"formulations.{instance.problem}")

    @cached_property
    def policy(self) -> SharingProgram:
        """The policy's program as it is stated."""
        return self._program(self.instance)

    def _program(self, instance: Sharing) -> SharingProgram:
        policy: SharingProgram = self._module.program(instance)
        return policy

    @cached_property
    def program(self) -> LinearProgram:
        """The program's arrays, with a limit of the variable."""
        program = self.policy.arrays()
        reach = math.inf if self.known.reach is None else self.known.reach(self.instance)
        if reach < math.inf:
            program.col_upper[-1] = BEYOND * reach
        return program

    @cached_property
    def folding(self) -> Folding | None:
        """The program over classes of columns that are alike; None where too few are."""
        return fold(self.program) if self._alike() else None

    def _alike(self) -> bool:
        """Guess whether many jobs are alike, by the sums of some of their throughputs."""
        sums = self.instance.throughputs[:: -(-self.instance.num_jobs // ALIKE)].sum(axis=1)
        sums.sort()
        return 1 + int((sums[1:] != sums[:-1]).sum()) <= LARGEST_SHARE * len(sums)

    def generation(self, options: Options, generates: bool) -> ColumnGeneration:
        """State the program for HiGHS, with its columns from the start or as they are called for."""
        known = self.known
        return ColumnGeneration(
            self.policy,
            self.program,
            options,
            covering=known.covering,
            interior_rows=known.interior_rows,
            generates=generates,
        )

    def solution(self, result: Result, options: Options, method: str) -> Solution:
        """Make the solution of the instance from a result of its program."""
        instance, offered = self.instance, formulation(self.instance.problem)
        if offered.slack is not None and result.certificate is not None:
            wider = offered.slack(instance, self.program, result.certificate.row_duals)
            result = replace(result, bound=result.bound + wider)
        if offered.bound is not None:
            result = replace(result, bound=offered.bound(instance, result.bound))
        plan = self._plan(result)
        broken = None if plan is None else instance.violations(plan)
        if self.known.stricter is not None and broken:
            policy = self._program(self.known.stricter(instance))
            covering = self.known.covering
            again = ColumnGeneration(policy, policy.arrays(), options, covering=covering, tolerance=PRECISE).run()
            result = replace(result, seconds=result.seconds + again.seconds)
            if again.x is not None:
                result = replace(result, x=again.x)
                plan, broken = self._plan(result), None
        return judged(
            instance,
            plan,
            result,
            began=self.began,
            solver="highs",
            solver_version=highs.version(),
            method=method,
            program=self.program,
            broken=broken,
        )

    def _plan(self, result: Result) -> Allocation | None:
        return None if result.x is None else self.policy.plan(result.x[: self.instance.fits.size])


@dataclass(frozen=True)
class PolicyMethod:
    """A method for one linear program of a policy: ``run(task, options) -> Result``, and what :class:`Method` says."""

    name: str
    short: str
    proves: str
    where: str
    run: Callable[[Task, Options], Result]

    def on(self, task: Task) -> Method:
        """Bind the method to the instance of a task."""

        def solve(instance: Sharing, options: Options) -> Solution:
            return task.solution(self.run(task, options), options, self.name)

        return Method(self.name, self.short, self.proves, self.where, solve, proofs=("prices",))

    @property
    def method(self) -> Method:
        """The method, for any instance."""

        def solve(instance: Sharing, options: Options) -> Solution:
            return self.on(Task(instance)).solve(instance, options)

        return Method(self.name, self.short, self.proves, self.where, solve, proofs=("prices",))
