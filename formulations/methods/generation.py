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
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from formulations.engine import clock
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
from formulations.engine.scaling import Scaling
from formulations.gavel.sharing import SharingProgram
from instances.base import agree
from instances.schema import FloatArray

__all__ = ["PRICING_COLUMNS", "ColumnGeneration", "refuse_numbers"]

PRICING_COLUMNS = 20_000
"""With more pair columns than this, generating columns is faster than the whole program.

``python -m benchmarks engine.pricing`` compares them.
"""


class ColumnGeneration:
    """A policy's program with the columns generated so far; HiGHS solves each step warm.

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
    generates : bool, optional
        Whether columns are generated, or there from the start; by default they are generated where there are many.

    Attributes
    ----------
    program : LinearProgram
        The program of the last run, over the columns that it has.
    generates : bool
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
        generates: bool | None = None,
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
        self.generates = q * k > PRICING_COLUMNS if generates is None else generates
        if self.generates:
            self._size = refuse_numbers(policy, program).size
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
                refuse_numbers(self._policy, self._whole)
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
            if closed or clock.is_up():
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
        """Return the program with more columns; the next run starts warm where they are few."""
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
        """Return the most that columns of these gains can add to the objective together."""
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
        """Make the whole program without its other columns."""
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


def refuse_numbers(policy: SharingProgram, program: LinearProgram) -> Scaling:
    """Return the units that suit a program, or raise for a number that HiGHS would not take, with the model's names."""
    try:
        return refuse_bad_numbers(program)
    except ModelError:
        translate(policy.model())
        raise
