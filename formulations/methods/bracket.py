"""Finish-time fairness by a bracket: a rho that a plan attains, and a rho below which none can be.

The programs of :mod:`formulations.gavel.finish_time_fairness`, of which rho is attainable exactly when the greatest
slack is at least 0, close it:

- the plan of each program attains its own greatest rho_m, an upper end.  It is scaled down by what
  the solver's tolerance lets it exceed the limits, so that it truly is a plan;
- the prices y >= 0 of the rows ``finish`` make a lower end.  Whatever rho is, by weak duality every
  plan has ``sum_m y_m * (left side of finish[m] without slack) <= V``, where V is what the prices of
  the limits add up to, so attaining rho takes ``sum_m y_m * asked[m](rho) <= V``.  The left side
  decreases in rho: everything below the root is proven impossible.

The next rho is the root.  The prices are those of a vertex of one and the same dual polyhedron for
every rho, of which there are finitely many, and each step that does not end finds one with a greater
root: Newton's method on the greatest of the curves ``sum_m y_m * asked[m](rho) - V``, from below.
Two to five programs, each solved warm from the one before, close the bracket to rounding errors; those of many jobs
without pairs by prices (:mod:`formulations.methods.prices`).

Solvers that give no prices close the bracket more slowly: with only a bound s on the slack at rho,
attaining rho' takes ``asked[m](rho') <= asked[m](rho) + s`` for some m, which gives the lower end; the
next rho is the upper end (Dinkelbach's method for the largest of several ratios).

References
----------
Crouzeix, Ferland and Schaible, "An algorithm for generalized fractional programs" (1985).
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np

from formulations.engine import highs
from formulations.engine.highs import Result
from formulations.engine.linear import LinearProgram, translate
from formulations.engine.options import Options
from formulations.engine.solution import Solution, judged
from formulations.engine.solving import run
from formulations.gavel.finish_time_fairness import asked_speeds, build, impossible_alone, program, time_left
from formulations.gavel.sharing import SharingProgram, fullness, within_limits
from formulations.methods import Choice, GaveUp, Method
from formulations.methods.beginning import plan_of_heuristic
from formulations.methods.generation import ColumnGeneration
from formulations.methods.policy import PRICED_JOBS
from formulations.methods.prices.search import PricedJobs
from instances.gavel.finish_time_fairness import FinishTimeFairness
from instances.gavel.sharing import Allocation
from instances.schema import FloatArray

__all__ = ["CHOICE", "METHOD", "WITHOUT_PRICES", "solve", "solve_without_prices"]

HALVINGS = 20
"""Of the bracket between the isolated share and what no plan can have, before any program."""
BRACKET = 1e-7
"""How far the rho attained and the rho proven impossible may lie apart, relatively."""
CLOSE = 1e-10
"""How far apart they may lie for no program to be solved, if the last one brought them closer."""
ROUNDING = 1e-12
"""By how much sums have to differ, relatively, before the difference proves anything."""


def solve(instance: FinishTimeFairness, options: Options) -> Solution:
    """Close the bracket between a rho that a plan attains and a rho below which none can be."""
    return _closed(instance, options, priced=options.solver == "highs")


def solve_without_prices(instance: FinishTimeFairness, options: Options) -> Solution:
    """:func:`solve` by the bounds of programs alone, each built and solved anew."""
    return _closed(instance, options, priced=False)


def _closed(instance: FinishTimeFairness, options: Options, *, priced: bool) -> Solution:
    began = time.perf_counter()
    plan = instance.isolated_share()
    attained, impossible = instance.isolated_value, impossible_alone(instance)
    # Without pairs programs are over a few jobs, and sooner solved than the heuristic ends.
    quick = plan_of_heuristic(instance) if instance.num_pairs else plan
    if not isinstance(quick, Allocation) or instance.violations(quick):
        quick = plan
    # Programs begin where a heuristic is, and close the bracket by plans of their own, which are closer to its end.
    rho = min(attained, instance.objective(quick))
    programs = _Programs(instance, options, priced=priced)
    result = Result("optimal", None, impossible, None, 0.0, "a job that cannot do better alone decides", "argument")
    proof = result.proof
    while attained - impossible > CLOSE * attained:
        result, allocation = programs.at(rho)
        before = (attained, impossible)
        if allocation is not None:
            allocation = within_limits(instance, allocation.time_fractions)
            if instance.objective(allocation) < attained:
                attained, plan = instance.objective(allocation), allocation
        below = _impossible(instance, rho, result, programs.finish_rows, attained)
        if below > impossible:
            impossible, proof = below, result.proof
        aim = attained if result.certificate is None else impossible
        if before == (attained, impossible):
            if attained - impossible <= BRACKET * attained:
                break
            # The plan misses the root by rounding errors, which can weigh heavily where a small change
            # of rho is a large change of speed.  Just above the root a plan has to exist.
            aim = impossible * (1 + BRACKET / 2)
            if rho >= aim:
                break
        rho = aim
    closed = attained - impossible <= BRACKET * attained
    if not closed:
        # Programs that were cut short may have led to less than needs none.
        for other in (_same_mix(instance), quick):
            if instance.objective(other) < attained:
                attained, plan = instance.objective(other), other
        closed = attained - impossible <= BRACKET * attained
    ends = f"attained {attained:.12g}, impossible below {impossible:.12g}"
    return judged(
        instance,
        plan,
        replace(
            result,
            status="optimal" if closed else "feasible",
            x=None,
            bound=impossible,
            proof=proof,
            seconds=programs.seconds,
            message=f"{result.message}; {programs.count} programs: {ends}",
        ),
        began=began,
        solver=options.solver,
        solver_version=programs.version,
        method="bracket of programs",
        program=programs.program,
    )


def _same_mix(instance: FinishTimeFairness) -> Allocation:
    """Give each job for so long what it has in isolation that all ratios are equal, and as small as fits."""
    best, jobs = instance.isolated_share(), instance.weighed
    fractions, speeds = best.time_fractions[jobs], instance.isolated_throughputs[jobs]
    low, high = impossible_alone(instance), instance.isolated_value
    for _ in range(HALVINGS if math.isfinite(high) else 0):
        rho = low / 2 + high / 2
        left = rho * instance.isolated_times[jobs] - instance.elapsed[jobs]
        if not left.min(initial=math.inf) > 0:
            low = rho
            continue
        asked = np.zeros_like(best.time_fractions)
        with np.errstate(over="ignore", invalid="ignore"):
            asked[jobs] = fractions * (instance.steps[jobs] / left / speeds)[:, None]
        if not np.isfinite(asked).all():
            low = rho
            continue
        plan = Allocation(time_fractions=asked)
        if fullness(instance, plan) > 1 or not instance.objective(plan) < instance.objective(best):
            low = rho
        else:
            best, high = plan, rho
    return best


class _Programs:
    """The linear programs at one rho after the other: with prices, each warm by HiGHS, or each anew by any solver."""

    def __init__(self, instance: FinishTimeFairness, options: Options, *, priced: bool) -> None:
        self.instance = instance
        self.options = options
        self.priced = priced
        self.program: LinearProgram | None = None
        self.finish_rows = slice(0)
        self.version = highs.version() if options.solver == "highs" else ""
        self.seconds = 0.0
        self.count = 0
        self._policy: SharingProgram | None = None
        self._jobs: PricedJobs | None = None
        self._generation: ColumnGeneration | None = None

    def at(self, rho: float) -> tuple[Result, Allocation | None]:
        self.count += 1
        instance = self.instance
        if not self.priced:
            model = build(instance, rho)
            self.program = translate(model)
            result, _, self.version = run(model, self.program, self.options)
            result = replace(result, certificate=None)
        else:
            result = self._priced(rho)
        self.seconds += result.seconds
        if result.x is None:
            return result, None
        return result, Allocation(time_fractions=result.x[: instance.fits.size].reshape(instance.fits.shape))

    def _priced(self, rho: float) -> Result:
        instance = self.instance
        if self._policy is None:
            self._policy = program(instance, asked_speeds(instance, rho))
            self.program = self._policy.arrays()
            self.finish_rows = self._policy.rows("finish")
            if instance.num_jobs >= PRICED_JOBS and not instance.num_pairs:
                self._jobs = self._by_prices(self._policy, self.program)
        assert self.program is not None
        lower = self.program.row_lower.copy()
        lower[self.finish_rows] = asked_speeds(instance, rho)
        if self._jobs is not None:
            try:
                result = self._jobs.run(lower)
            except GaveUp:
                self.program, self._jobs = self._jobs.program, None
            else:
                self.program = self._jobs.program
                return result
        if self._generation is None:
            self._generation = ColumnGeneration(self._policy, self.program, self.options)
        result = self._generation.run(lower)
        self.program = self._generation.program
        return result

    def _by_prices(self, policy: SharingProgram, arrays: LinearProgram) -> PricedJobs | None:
        try:
            return PricedJobs(policy, arrays, self.options)
        except GaveUp:
            return None


def _impossible(instance: FinishTimeFairness, rho: float, result: Result, finish_rows: slice, attained: float) -> float:
    """Return a rho that no plan is below, from the program at ``rho``; 0 where it proves nothing."""
    asked = asked_speeds(instance, rho)
    if not np.isfinite(result.bound):
        return 0.0
    if result.certificate is not None:
        # A price of the wrong sign proves nothing, and the certificate's bound leaves it out too.
        prices = np.maximum(0.0, -result.certificate.row_duals[finish_rows])
        return _root(instance, prices, result.bound + float(prices @ asked), attained)
    speeds = asked + result.bound
    jobs, most = instance.weighed, time_left(instance, instance.isolated_value)
    times = np.divide(most, speeds, out=np.full(len(speeds), np.inf), where=speeds > 0)
    return float(((instance.elapsed[jobs] + times) / instance.isolated_times[jobs]).min())


def _root(instance: FinishTimeFairness, prices: FloatArray, most: float, attained: float) -> float:
    """Return the rho, up to ``attained``, below which ``prices @ asked(rho)`` exceeds ``most``."""

    def exceeds(rho: float) -> bool:
        asked = asked_speeds(instance, rho)
        return bool(np.isinf(asked).any()) or float(prices @ asked) > most + ROUNDING * abs(most)

    low, high = 0.0, attained
    while high - low > ROUNDING * high:
        middle = (low + high) / 2
        low, high = (middle, high) if exceeds(middle) else (low, middle)
    return low


METHOD = Method(
    name="bracket of programs",
    short="bracket",
    proves="prices of linear programs, or by other solvers their bounds, below which value no plan can be",
    where="every instance",
    solve=solve,
    any_solver=True,
    proofs=("argument", "prices"),
)
WITHOUT_PRICES = Method(
    name="bracket of programs without prices",
    short="bounds",
    proves="bounds of linear programs, each built and solved anew, below which value no plan can be",
    where="every instance",
    solve=solve_without_prices,
    any_solver=True,
    proofs=("argument", "prices"),
)
CHOICE = Choice((METHOD, WITHOUT_PRICES), again=WITHOUT_PRICES)
