"""Linear programs of which most columns never matter, solved by generating columns.

With all pairs of 512 jobs, a policy's program has hundreds of thousands of columns X[r, j], of which a
vertex uses a few hundred.  So the program starts from the jobs alone, and columns are added as their
reduced costs call for them, until those outside can add nothing.  Where more columns are added than a large
program has rows, it is solved by interior point anew, else by simplex from the last basis.

The bound is that of the whole program.  With prices y of the rows, a column c outside adds at most
``gain_c = cost_c - y' A_c`` per unit.  How many units there can be is limited by rows that cover the
columns, with positive coefficients only: the time of each job, or a budget.  If c has entries a_rc
in w_c such rows r of limits b_r,

    sum_c gain_c * x_c  =  sum_r sum_c (gain_c / (w_c * a_rc)) * a_rc * x_c
                       <=  sum_r b_r * max_c gain_c / (w_c * a_rc),

so the columns outside add at most the right side to the objective.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.engine import clock, highs
from formulations.engine.folding import LARGEST_SHARE, Folding, fold
from formulations.engine.highs import INTERIOR_POINT_ROWS, Result
from formulations.engine.linear import (
    FEASIBILITY_TOLERANCE,
    Columns,
    LinearProgram,
    ModelError,
    csr,
    refuse_bad_numbers,
    translate,
)
from formulations.engine.options import Options
from formulations.engine.polishing import PRECISE
from formulations.engine.scaling import scaled
from formulations.engine.solution import Solution, judged
from formulations.gavel.prices import PricedJobs
from formulations.gavel.sharing import SharingProgram, within_limits
from instances.base import agree
from instances.gavel.sharing import Allocation, Sharing
from instances.schema import FloatArray

__all__ = ["PRICED_JOBS", "PRICING_COLUMNS", "SIMPLEX_ROWS", "UNTIED_JOBS", "ColumnGeneration", "solve_program"]

PRICING_COLUMNS = 20_000
"""With more pair columns than this, generating columns is faster than the whole program.

``python -m benchmarks engine.pricing`` compares them.
"""
PRICED_JOBS = 700
"""From so many jobs on, programs without pairs are solved by prices; max-min fairness from half as many."""
UNTIED_JOBS = 1_500
"""The same for programs in which no variable ties all jobs together, which simplex solves faster."""
ALIKE = 2_000
"""Jobs that are looked at before columns of more are told apart."""
FOLDED_COLUMNS = 2_000
"""Up to so many classes of columns, the program over classes is faster than prices."""
BEYOND = 1.01
"""How many times what a variable can have is beyond it, whatever the rounding."""
SIMPLEX_ROWS = 5_000
"""Up to so many rows, programs in which no variable ties all jobs together are left to simplex.

Interior point overtakes it later there than elsewhere; ``python -m benchmarks engine.interior_point`` compares them.
"""


def solve_program(
    policy: SharingProgram,
    options: Options,
    *,
    covering: str = "job_time",
    interior_rows: int = INTERIOR_POINT_ROWS,
    priced_jobs: int = PRICED_JOBS,
    reach: float = math.inf,
    finish: Callable[[Any, FloatArray], Allocation] = within_limits,
    bound: Callable[[Any, float], float] | None = None,
    slack: Callable[[Any, LinearProgram, FloatArray], float] | None = None,
    stricter: Callable[[], SharingProgram] | None = None,
) -> Solution:
    """Solve a policy's one linear program by HiGHS, with many pairs by generating columns.

    Parameters
    ----------
    policy : SharingProgram
    options : Options
    covering : str
        The constraint that limits how many units of pair columns there can be.
    interior_rows : int
        With more rows than this, the first program is solved by interior point.
    priced_jobs : int
        From so many jobs on, a program without pairs is solved by prices (:mod:`formulations.gavel.prices`).
    reach : float
        The most that the policy's variable can have.  A limit just above it takes no part in any optimum, and lets the
        dual simplex method start, which takes a third less time than without.
    finish : callable, optional
        What the formulation's ``read`` makes of the instance and the (n+q, k) values of the columns.
    bound : callable, optional
        The formulation's ``bound``, where it has one.
    slack : callable, optional
        The formulation's ``slack``, where it has one.
    stricter : callable, optional
        The policy with limits a little stricter, for a plan where that of ``policy`` misses them.
    """
    began = time.perf_counter()
    instance = policy.instance
    program = policy.arrays()
    if reach < math.inf:
        program.col_upper[-1] = BEYOND * reach
    folding = fold(program) if _alike(instance) else None
    result, method = None, ""
    many = folding is None or folding.program.num_cols > FOLDED_COLUMNS
    if many and instance.num_jobs >= priced_jobs and not instance.num_pairs:
        _refuse_bad_numbers(policy, program)
        result, method = PricedJobs(policy, program, options).run(), "prices of what jobs share"
    if result is None and folding is not None:
        result, method = _over_classes(folding, options, interior_rows), "classes of columns that are alike"
    if result is None:
        generation = ColumnGeneration(policy, program, options, covering=covering, interior_rows=interior_rows)
        result = generation.run()
        method = "columns generated by price" if generation.generates else "one program of arrays"
    if slack is not None and result.certificate is not None:
        result = replace(result, bound=result.bound + slack(instance, program, result.certificate.row_duals))
    if bound is not None:
        result = replace(result, bound=bound(instance, result.bound))
    plan = _plan(instance, result, finish)
    broken = None if plan is None else instance.violations(plan)
    if stricter is not None and broken:
        policy = stricter()
        generation = ColumnGeneration(policy, policy.arrays(), options, covering=covering, tolerance=PRECISE)
        again = generation.run()
        result = replace(result, x=again.x, seconds=result.seconds + again.seconds)
        plan, broken = _plan(instance, result, finish), None
    return judged(
        instance,
        plan,
        result,
        began=began,
        solver="highs",
        solver_version=highs.version(),
        method=method,
        program=program,
        broken=broken,
    )


def _plan(instance: Sharing, result: Result, finish: Callable[[Any, FloatArray], Allocation]) -> Allocation | None:
    if result.x is None:
        return None
    return finish(instance, result.x[: instance.fits.size].reshape(instance.fits.shape))


def _alike(instance: Sharing) -> bool:
    """Whether jobs may be alike in large numbers, to judge by the sums of some of their throughputs."""
    sums = instance.throughputs[:: -(-instance.num_jobs // ALIKE)].sum(axis=1)
    sums.sort()
    return 1 + int((sums[1:] != sums[:-1]).sum()) <= LARGEST_SHARE * len(sums)


def _over_classes(folding: Folding, options: Options, interior_rows: int) -> Result | None:
    """The optimum by way of classes of columns that are alike; None where there is no such way."""
    if folding.program.num_cols > PRICING_COLUMNS:
        return None
    result = options.session().run(folding.program, interior_rows=interior_rows)
    if result.status != "optimal":
        return None
    result = folding.unfold(result)
    return result if result.status == "optimal" else None


class ColumnGeneration:
    """A policy's program with the columns generated so far; HiGHS solves each step warm.

    Where there are few pairs, it has all columns from the start.

    Parameters
    ----------
    policy : SharingProgram
    program : LinearProgram
        Its arrays.
    options : Options
    covering : str
        The constraint that limits how many units of pair columns there can be.
    interior_rows : int
        With more rows than this, the first program is solved by interior point, and so is one to which more
        columns than it has rows were added.
    tolerance : float
        Of the programs' feasibility, primal and dual.

    Attributes
    ----------
    program : LinearProgram
        The program of the last run, over the columns that it has.
    generates : bool
        Whether there are so many pairs that their columns are generated.
    """

    def __init__(
        self,
        policy: SharingProgram,
        program: LinearProgram,
        options: Options,
        *,
        covering: str = "job_time",
        interior_rows: int = INTERIOR_POINT_ROWS,
        tolerance: float = FEASIBILITY_TOLERANCE,
    ) -> None:
        instance = policy.instance
        n, k, q = instance.num_jobs, instance.num_types, instance.num_pairs
        self._policy = policy
        self._whole = program
        self._interior_rows = interior_rows
        # Without pairs there is nothing in a program that presolve could leave out.
        self._presolve = q > 0
        self._options, self._tolerance = options, tolerance
        self._session = options.session(tolerance)
        # Which column of the whole program each column of ``program`` is.
        self._columns = np.arange(self._whole.num_cols)
        self.program = self._whole
        self.generates = q * k > PRICING_COLUMNS
        if self.generates:
            _refuse_bad_numbers(policy, program)
            self._size = scaled(program)[1].size
            self._row = np.repeat(np.arange(self._whole.num_rows), np.diff(self._whole.indptr))
            self._covering = policy.rows(covering)
            self._batch = 4 * n
            self._columns = np.delete(self._columns, np.s_[n * k : (n + q) * k])
            self.program = self._with_only(self._columns)

    def run(self, row_lower: FloatArray | None = None) -> Result:
        """Solve the program; point and bound are those of the whole program.

        Parameters
        ----------
        row_lower : (rows,) float, optional
            Lower limits of the rows, in place of those of the last run.
        """
        if row_lower is not None:
            self._whole = replace(self._whole, row_lower=row_lower)
            self.program = replace(self.program, row_lower=row_lower)
        seconds = 0.0
        while True:
            try:
                result = self._session.run(self.program, interior_rows=self._interior_rows, presolve=self._presolve)
            except ModelError:
                _refuse_bad_numbers(self._policy, self._whole)
                raise
            if not self.generates:
                return result
            seconds += result.seconds
            if not self._outside().size:
                break
            if result.status == "infeasible":
                # There are no prices, and the columns outside may make the program feasible.
                self._columns, self.program = np.arange(self._whole.num_cols), self._whole
                continue
            if result.status != "optimal" or result.certificate is None:
                result = replace(result, bound=math.inf)
                break
            gain = self._gain(result.certificate.row_duals)
            bound = result.bound + self._potential(gain)
            closed = agree(result.bound, bound, size=self._size)
            if closed or clock.left() <= 0:
                result = replace(result, bound=bound, status="optimal" if closed else "feasible")
                break
            gaining = np.flatnonzero(gain > 0)
            best = gaining[np.argsort(-gain[gaining], kind="stable")[: self._batch]]
            self._columns = np.concatenate([self._columns, best])
            self.program = self._extended(self._taken(best))
        message = result.message
        if len(self._columns) < self._whole.num_cols:
            message += f"; {len(self._columns)} of {self._whole.num_cols} columns generated"
        x = None
        if result.x is not None:
            x = np.zeros(self._whole.num_cols)
            x[self._columns] = result.x
        return replace(result, x=x, seconds=seconds, message=message)

    def _extended(self, columns: Columns) -> LinearProgram:
        """The program with more columns; the next run starts warm where they are few."""
        if not len(columns.cost) > self.program.num_rows > self._interior_rows:
            return self._session.add_columns(columns)
        # So many turn the old basis over: from there, simplex would take longer than interior point from nothing.
        self._session = self._options.session(self._tolerance)
        return self.program.with_columns(columns)

    def _outside(self) -> NDArray[np.intp]:
        """Columns of the whole program that are not in the program and could be used."""
        outside = self._whole.col_upper > 0
        outside[self._columns] = False
        return np.flatnonzero(outside)

    def _gain(self, duals: FloatArray) -> FloatArray:
        """Reduced costs of the columns outside, where they are positive; 0 elsewhere."""
        # A price that faces an infinite limit proves nothing, and the certificate leaves it out too.
        whole = self._whole
        wrong = ((duals < 0) & np.isinf(whole.row_lower)) | ((duals > 0) & np.isinf(whole.row_upper))
        gain = np.maximum(0.0, whole.cost - whole.column_products(np.where(wrong, 0.0, duals)))
        gain[self._columns] = 0.0
        gain[whole.col_upper <= 0] = 0.0
        return gain

    def _potential(self, gain: FloatArray) -> float:
        """The most that columns of these gains can add to the objective together."""
        whole, covering = self._whole, self._covering
        entries = slice(whole.indptr[covering.start], whole.indptr[covering.stop])
        row, column = self._row[entries] - covering.start, whole.index[entries]
        times = np.bincount(column, minlength=whole.num_cols)
        ratio = np.zeros(len(column))
        gaining = gain[column] > 0
        ratio[gaining] = gain[column[gaining]] / (times[column[gaining]] * whole.value[entries][gaining])
        largest = np.zeros(covering.stop - covering.start)
        np.maximum.at(largest, row[gaining], ratio[gaining])
        return float(largest @ whole.row_upper[covering])

    def _with_only(self, columns: NDArray[np.intp]) -> LinearProgram:
        """The whole program without its other columns."""
        whole = self._whole
        position, kept = self._positions(columns)
        indptr, index, value = csr(self._row[kept], position[whole.index[kept]], whole.value[kept], whole.num_rows)
        return replace(
            whole,
            cost=whole.cost[columns],
            col_lower=whole.col_lower[columns],
            col_upper=whole.col_upper[columns],
            integer=whole.integer[columns],
            indptr=indptr,
            index=index,
            value=value,
        )

    def _taken(self, columns: NDArray[np.intp]) -> Columns:
        """Columns of the whole program."""
        whole = self._whole
        position, kept = self._positions(columns)
        indptr, rows, values = csr(position[whole.index[kept]], self._row[kept], whole.value[kept], len(columns))
        return Columns(
            cost=whole.cost[columns],
            lower=whole.col_lower[columns],
            upper=whole.col_upper[columns],
            indptr=indptr,
            rows=rows,
            values=values,
        )

    def _positions(self, columns: NDArray[np.intp]) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
        """Position of each column of the whole program among ``columns``, and the entries that those have."""
        position = np.full(self._whole.num_cols, -1)
        position[columns] = np.arange(len(columns))
        return position, np.flatnonzero(position[self._whole.index] >= 0)


def _refuse_bad_numbers(policy: SharingProgram, program: LinearProgram) -> None:
    """Raise for a number that HiGHS would not take at its value, with the names that the model has."""
    try:
        refuse_bad_numbers(program)
    except ModelError:
        translate(policy.model())
        raise
