"""Exact solution of :class:`instances.gavel.finish_time_fairness.FinishTimeFairness` by a bracket.

With D_m the finish time in isolation, rho_m <= rho means

    throughput(m, X)  >=  steps_m / (rho * D_m - elapsed_m),        rho > elapsed_m / D_m,

so for a given rho a linear program tells whether X exists.  In units of what rho_iso, the value of
the isolated share, asks of each job,

    asked[m](rho) = (rho_iso * D_m - elapsed_m) / (rho * D_m - elapsed_m),

it reads

    max   slack
    s.t.  finish[m]:  sum_{r, j} (rho_iso * D_m - elapsed_m) / steps_m * throughput[m, r, j] * X[r, j]
                          -  slack  >=  asked[m](rho)                 for each job m that is weighed
          job_time[m], pool_capacity[p]  of :mod:`formulations.gavel.sharing`.

Weighed are the jobs that have steps left and run alone somewhere; the ratios of the others are constants.
rho is attainable exactly when the greatest slack is at least 0.  :func:`solve` closes a bracket:

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
without pairs by prices (:mod:`formulations.gavel.prices`).

Solvers that give no prices close the bracket more slowly: with only a bound s on the slack at rho,
attaining rho' takes ``asked[m](rho') <= asked[m](rho) + s`` for some m, which gives the lower end; the
next rho is the upper end (Dinkelbach's method for the largest of several ratios).

References
----------
Crouzeix, Ferland and Schaible, "An algorithm for generalized fractional programs" (1985).
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pyomo.environ as pyo

from formulations.engine import highs
from formulations.engine.highs import Result
from formulations.engine.linear import LinearProgram, translate
from formulations.engine.options import Options
from formulations.engine.protocol import Formulation
from formulations.engine.solution import Solution, judged
from formulations.engine.solving import run
from formulations.gavel.prices import PricedJobs
from formulations.gavel.pricing import PRICED_JOBS, ColumnGeneration
from formulations.gavel.sharing import SharingProgram, read_allocation, within_limits
from instances.gavel.finish_time_fairness import FinishTimeFairness
from instances.gavel.sharing import Allocation
from instances.schema import FloatArray

__all__ = ["FORMULATION", "build", "read", "solve", "solve_without_prices"]

BRACKET = 1e-7
"""How far the rho attained and the rho proven impossible may lie apart, relatively."""
ROUNDING = 1e-12
"""By how much sums have to differ, relatively, before the difference proves anything."""


def build(instance: FinishTimeFairness, rho: float | None = None) -> pyo.ConcreteModel:
    """Pyomo model that tells whether ``rho`` is attainable: whether its optimum is at least 0.

    Sets JOBS, WEIGHED (jobs whose ratio is to be decided), ROWS (jobs alone, then pairs), TYPES, POOLS;
    variables ``X[r, j]`` and ``slack``; constraints ``job_time[m]``, ``pool_capacity[p]`` and ``finish[m]``;
    objective ``greatest_slack``.

    Parameters
    ----------
    instance : FinishTimeFairness
    rho : float, optional
        By default the value of the isolated share.

    Raises
    ------
    ValueError
        When not even infinite speed attains ``rho``.
    """
    asked = _asked(instance, instance.isolated_value if rho is None else rho)
    if not np.isfinite(asked).all():
        job = int(instance.weighed[np.isinf(asked).argmax()])
        raise ValueError(f"rho: got {rho:g}, job {job} is too late for it at any speed")
    return _program(instance, asked).model()


def read(model: pyo.ConcreteModel) -> Allocation:
    """The plan in the values of ``X``."""
    return read_allocation(model)


def solve(instance: FinishTimeFairness, options: Options) -> Solution:
    """Close the bracket between a rho that a plan attains and a rho below which none can be."""
    return _closed(instance, options, priced=options.solver == "highs")


def solve_without_prices(instance: FinishTimeFairness, options: Options) -> Solution:
    """:func:`solve` by the bounds of programs alone, each built and solved anew."""
    return _closed(instance, options, priced=False)


def _closed(instance: FinishTimeFairness, options: Options, *, priced: bool) -> Solution:
    began = time.perf_counter()
    plan = instance.isolated_share()
    attained, impossible = instance.isolated_value, _impossible_alone(instance)
    rho = attained
    programs = _Programs(instance, options, priced=priced)
    result = Result("optimal", None, impossible, None, 0.0, "a job that cannot do better alone decides", "argument")
    while attained - impossible > BRACKET * attained:
        result, allocation = programs.at(rho)
        before = (attained, impossible)
        if allocation is not None:
            allocation = within_limits(instance, allocation.time_fractions)
            if instance.objective(allocation) < attained:
                attained, plan = instance.objective(allocation), allocation
        impossible = max(impossible, _impossible(instance, rho, result, programs.finish_rows, attained))
        aim = attained if result.certificate is None else impossible
        if before == (attained, impossible):
            # The plan misses the root by rounding errors, which can weigh heavily where a small change
            # of rho is a large change of speed.  Just above the root a plan has to exist.
            aim = impossible * (1 + BRACKET / 2)
            if rho >= aim:
                break
        rho = aim
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
            seconds=programs.seconds,
            message=f"{result.message}; {programs.count} programs: {ends}",
        ),
        began=began,
        solver=options.solver,
        solver_version=programs.version,
        method="bracket of programs",
        program=programs.program,
    )


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
            self._policy = _program(instance, _asked(instance, rho))
            self.program = self._policy.arrays()
            self.finish_rows = self._policy.rows("finish")
            if instance.num_jobs >= PRICED_JOBS and not instance.num_pairs:
                self._jobs = PricedJobs(self._policy, self.program, self.options)
        assert self.program is not None
        lower = self.program.row_lower.copy()
        lower[self.finish_rows] = _asked(instance, rho)
        if self._jobs is not None:
            result = self._jobs.run(lower)
            self.program = self._jobs.program
            if result is not None:
                return result
            self._jobs = None
        if self._generation is None:
            self._generation = ColumnGeneration(self._policy, self.program, self.options)
        result = self._generation.run(lower)
        self.program = self._generation.program
        return result


def _program(instance: FinishTimeFairness, asked: FloatArray) -> SharingProgram:
    program = SharingProgram(instance)
    speeds = _speed_per_throughput(instance)
    # Limits that cut nothing off at any rho to come: X = 0 falls short by the greatest speed asked for,
    # and no job is faster than it can be.
    most = max(float(asked.max(initial=1.0)), float(_asked(instance, _impossible_alone(instance)).max(initial=1.0)))
    greatest = speeds * instance.greatest_throughputs[instance.weighed]
    program.variable("slack", lower=-most, upper=float(greatest.min()) if greatest.size else 1.0)
    program.subset("WEIGHED", instance.weighed)
    per_job = np.zeros(instance.num_jobs)
    per_job[instance.weighed] = speeds
    program.throughput_rows("finish", per_job, over="WEIGHED", less="slack", lower=asked)
    program.maximize("greatest_slack", variable="slack")
    return program


def _speed_per_throughput(instance: FinishTimeFairness) -> FloatArray:
    """(weighed,) float: one step/s of each job, relative to what the isolated share's value asks of it."""
    speeds: FloatArray = _left(instance, instance.isolated_value) / instance.steps[instance.weighed]
    return speeds


def _left(instance: FinishTimeFairness, rho: float) -> FloatArray:
    """(weighed,) float: time that ``rho`` leaves each job to finish in, s."""
    jobs = instance.weighed
    left: FloatArray = rho * instance.isolated_times[jobs] - instance.elapsed[jobs]
    return left


def _asked(instance: FinishTimeFairness, rho: float) -> FloatArray:
    """(weighed,) float: speed that ``rho`` asks of each job; infinite where no speed attains it."""
    left, most = _left(instance, rho), _left(instance, instance.isolated_value)
    with np.errstate(over="ignore"):
        asked: FloatArray = np.divide(most, left, out=np.full(len(left), np.inf), where=left > 0)
    return asked


def _impossible_alone(instance: FinishTimeFairness) -> float:
    """A rho that no plan is below: some job does not reach it even at its greatest throughput."""
    least = instance.finish_time_ratios(instance.isolated_share())
    jobs = instance.weighed
    times = instance.steps[jobs] / instance.greatest_throughputs[jobs]
    least[jobs] = (instance.elapsed[jobs] + times) / instance.isolated_times[jobs]
    return float(least.max())


def _impossible(instance: FinishTimeFairness, rho: float, result: Result, finish_rows: slice, attained: float) -> float:
    """A rho that no plan is below, from the program at ``rho``; 0 where it proves nothing."""
    asked = _asked(instance, rho)
    if not np.isfinite(result.bound):
        return 0.0
    if result.certificate is not None:
        # A price of the wrong sign proves nothing, and the certificate's bound leaves it out too.
        prices = np.maximum(0.0, -result.certificate.row_duals[finish_rows])
        return _root(instance, prices, result.bound + float(prices @ asked), attained)
    speeds = asked + result.bound
    jobs, most = instance.weighed, _left(instance, instance.isolated_value)
    times = np.divide(most, speeds, out=np.full(len(speeds), np.inf), where=speeds > 0)
    return float(((instance.elapsed[jobs] + times) / instance.isolated_times[jobs]).min())


def _root(instance: FinishTimeFairness, prices: FloatArray, most: float, attained: float) -> float:
    """The rho, up to ``attained``, below which ``prices @ asked(rho)`` exceeds ``most``."""

    def exceeds(rho: float) -> bool:
        asked = _asked(instance, rho)
        return bool(np.isinf(asked).any()) or float(prices @ asked) > most + ROUNDING * abs(most)

    low, high = 0.0, attained
    while high - low > ROUNDING * high:
        middle = (low + high) / 2
        low, high = (middle, high) if exceeds(middle) else (low, middle)
    return low


FORMULATION = Formulation(build=build, read=read, solve=solve, any_solver=True, again=solve_without_prices)
