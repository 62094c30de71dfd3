"""Arrays to HiGHS and back: options, statuses, bounds, and warm re-solves.

Nothing that HiGHS returns is believed before it is checked: every call's return status, whether a
point is there at all, and, in NumPy, whether the point satisfies the rows.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import highspy
import numpy as np
from numpy.typing import NDArray

from formulations.certificate import Certificate
from formulations.linear import Columns, FloatArray, LinearProgram
from instances.base import TOLERANCE

INTERIOR_POINT_ROWS = 1000
"""Cold LPs with more rows than this are faster by interior point (with crossover) than simplex."""


class SolverError(RuntimeError):
    """A solver failed in a way that is no statement about the model."""


@dataclass(frozen=True)
class Result:
    """What one solver run proved about a :class:`LinearProgram`.

    Attributes
    ----------
    status : str
        "optimal", "feasible", "infeasible", "unbounded" or "unknown".
    x : (columns,) float, optional
        A point that satisfies all rows and bounds (checked in NumPy), integers exactly whole.
    bound : float
        Proven dual bound in the program's own sense; infinite when there is none.
    certificate : Certificate, optional
        For linear programs solved to optimality: the dual solution and its check.
    seconds : float
        Time in the solver, s.
    message : str
        The solver's own status, and what the checks found where they found something.
    """

    status: str
    x: FloatArray | None
    bound: float
    certificate: Certificate | None
    seconds: float
    message: str


class Session:
    """A HiGHS object that is kept, so that a sequence of similar programs is solved warm.

    Each call of :meth:`run` compares the program with the one before and pushes only what
    differs; the basis of the last solve is the start of the next.  A session is not to be shared
    between threads.

    Parameters
    ----------
    time_limit : float, optional
        Limit of each run, s.
    mip_gap : float
        Relative gap at which a mixed-integer solve may stop; 0 asks for a proof.
    threads, seed : int
        Passed to the solver.
    """

    _scheduler_threads: ClassVar[int] = 0

    def __init__(
        self, *, time_limit: float | None = None, mip_gap: float = 0.0, threads: int = 1, seed: int = 0
    ) -> None:
        self.time_limit = time_limit
        self._threads = threads
        self._last: LinearProgram | None = None
        self._highs = highspy.Highs()
        self._option("output_flag", False)
        self._option("threads", threads)
        self._option("random_seed", seed)
        self._option("mip_rel_gap", mip_gap)
        self._option("mip_abs_gap", 0.0)

    def run(self, program: LinearProgram, *, start: FloatArray | None = None) -> Result:
        """Solve ``program``, from the last basis where its shape allows.

        Parameters
        ----------
        program : LinearProgram
        start : (columns,) float, optional
            A point to start a mixed-integer search from; it is ignored where it is infeasible.
        """
        if not program.num_cols:
            return _without_columns(program)
        crossed = np.flatnonzero(program.col_lower > program.col_upper)
        if crossed.size:
            name = program.column_name(int(crossed[0]))
            return Result("infeasible", None, _worst(program), None, 0.0, f"variable {name!r} has crossed bounds")
        cold = not self._push(program)
        if not program.is_mip:
            interior = cold and program.num_rows > INTERIOR_POINT_ROWS
            self._option("solver", "ipm" if interior else "choose")
        if start is not None and program.is_mip:
            point = highspy.HighsSolution()
            point.col_value = start
            self._checked(self._highs.setSolution(point), "taking the start point")
        return self._solve(program)

    def add_columns(self, columns: Columns) -> LinearProgram:
        """Append columns to the program of the last run; the next :meth:`run` of it starts warm.

        Returns
        -------
        LinearProgram
            The program of the last run with the columns at its end.
        """
        if self._last is None:
            raise SolverError("there is no program to add columns to: nothing was run")
        self._checked(
            self._highs.addCols(
                len(columns.cost),
                columns.cost,
                columns.lower,
                columns.upper,
                len(columns.rows),
                columns.indptr[:-1],
                columns.rows,
                columns.values,
            ),
            "adding columns",
        )
        self._last = self._last.with_columns(columns)
        return self._last

    def _solve(self, program: LinearProgram) -> Result:
        if Session._scheduler_threads not in (0, self._threads):
            # HiGHS keeps one pool of threads for the process and refuses another size.
            highspy.Highs.resetGlobalScheduler(True)
        Session._scheduler_threads = self._threads
        self._option("time_limit", math.inf if self.time_limit is None else self.time_limit)
        began = time.perf_counter()
        outcome = self._highs.run()
        status = self._highs.getModelStatus()
        if status == highspy.HighsModelStatus.kUnboundedOrInfeasible:
            # Presolve saw that there is no optimum, but not which of the two it is.
            self._option("presolve", "off")
            outcome = self._highs.run()
            status = self._highs.getModelStatus()
            self._option("presolve", "choose")
        seconds = time.perf_counter() - began
        if outcome == highspy.HighsStatus.kError:
            raise SolverError(f"HiGHS failed: {self._highs.modelStatusToString(status)}")
        return self._judge(program, status, seconds)

    def _judge(self, program: LinearProgram, status: Any, seconds: float) -> Result:
        info = self._highs.getInfo()
        message = self._highs.modelStatusToString(status)
        known = highspy.HighsModelStatus
        if status == known.kInfeasible:
            return Result("infeasible", None, _worst(program), None, seconds, message)
        if status == known.kUnbounded:
            return Result("unbounded", None, _best(program), None, seconds, message)
        x = None
        if info.primal_solution_status == int(highspy.SolutionStatus.kSolutionStatusFeasible):
            point = self._highs.getSolution()
            x = self._point(program, np.array(point.col_value))
            if x is None:
                message += "; the solver's point violates the rows and is not used"
        certificate = None
        bound = _best(program)
        if program.is_mip:
            if status == known.kOptimal or math.isfinite(info.mip_dual_bound):
                bound = float(info.mip_dual_bound)
        elif status == known.kOptimal and x is not None:
            certificate = Certificate.of(program, x, np.array(point.row_dual))
            bound = certificate.dual_objective
        if x is None:
            return Result("unknown", None, bound, certificate, seconds, message)
        proven = status == known.kOptimal and (certificate is None or certificate.holds)
        if status == known.kOptimal and not proven:
            message += f"; but {certificate}"
        return Result("optimal" if proven else "feasible", x, bound, certificate, seconds, message)

    def _point(self, program: LinearProgram, x: FloatArray) -> FloatArray | None:
        """The solver's point with whole integers, or None when it does not satisfy the rows."""
        if len(x) != program.num_cols:
            return None
        x = np.clip(x, program.col_lower, program.col_upper)
        whole = program.integer
        if whole.any():
            rounded = x.copy()
            rounded[whole] = np.rint(x[whole])
            if program.infeasibility(rounded) > TOLERANCE and not whole.all():
                # Rounding moved the integers by less than the solver's tolerance; let the
                # continuous variables follow.
                fixed = replace(
                    program,
                    integer=np.zeros_like(whole),
                    col_lower=np.where(whole, rounded, program.col_lower),
                    col_upper=np.where(whole, rounded, program.col_upper),
                )
                again = Session(threads=self._threads).run(fixed)
                return again.x
            x = rounded
        return x if program.infeasibility(x) <= TOLERANCE else None

    def _push(self, program: LinearProgram) -> bool:
        """Bring the solver's copy up to date; True when the last basis is still of use."""
        last = self._last
        self._last = program
        if last is None or (last.num_cols, last.num_rows) != (program.num_cols, program.num_rows):
            self._load(program)
            return False
        same_pattern = np.array_equal(last.indptr, program.indptr) and np.array_equal(last.index, program.index)
        changed = np.flatnonzero(last.value != program.value) if same_pattern else np.zeros(0, np.intp)
        if (
            not same_pattern
            or len(changed) > 1000
            or last.sense != program.sense
            or not np.array_equal(last.integer, program.integer)
        ):
            basis = self._highs.getBasis()
            self._load(program)
            if basis.valid:
                self._checked(self._highs.setBasis(basis), "restoring the basis")
            return bool(basis.valid)
        rows = np.searchsorted(program.indptr, changed, side="right") - 1
        for row, entry in zip(rows, changed, strict=True):
            self._checked(
                self._highs.changeCoeff(int(row), int(program.index[entry]), float(program.value[entry])),
                "changing a coefficient",
            )
        costs = np.flatnonzero(last.cost != program.cost).astype(np.int32)
        if len(costs):
            self._checked(self._highs.changeColsCost(len(costs), costs, program.cost[costs]), "changing costs")
        cols = _differing(last.col_lower, program.col_lower, last.col_upper, program.col_upper)
        if len(cols):
            self._checked(
                self._highs.changeColsBounds(len(cols), cols, program.col_lower[cols], program.col_upper[cols]),
                "changing column bounds",
            )
        moved = _differing(last.row_lower, program.row_lower, last.row_upper, program.row_upper)
        if len(moved):
            self._checked(
                self._highs.changeRowsBounds(len(moved), moved, program.row_lower[moved], program.row_upper[moved]),
                "changing row bounds",
            )
        if last.offset != program.offset:
            self._checked(self._highs.changeObjectiveOffset(program.offset), "changing the offset")
        return bool(self._highs.getBasis().valid)

    def _load(self, program: LinearProgram) -> None:
        self._checked(self._highs.passModel(highs_lp(program)), "taking the model")

    def _option(self, name: str, value: Any) -> None:
        self._checked(self._highs.setOptionValue(name, value), f"setting option {name!r} to {value!r}")

    @staticmethod
    def _checked(status: Any, doing: str) -> None:
        # A warning means that HiGHS changed what it was given.
        if status != highspy.HighsStatus.kOk:
            raise SolverError(f"HiGHS reported {status} when {doing}")


def highs_lp(program: LinearProgram) -> highspy.HighsLp:
    """The program in HiGHS's own type."""
    lp = highspy.HighsLp()
    lp.num_col_ = program.num_cols
    lp.num_row_ = program.num_rows
    lp.sense_ = highspy.ObjSense.kMinimize if program.sense == "min" else highspy.ObjSense.kMaximize
    lp.offset_ = program.offset
    lp.col_cost_ = program.cost
    lp.col_lower_ = program.col_lower
    lp.col_upper_ = program.col_upper
    lp.row_lower_ = program.row_lower
    lp.row_upper_ = program.row_upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.num_col_ = program.num_cols
    lp.a_matrix_.num_row_ = program.num_rows
    lp.a_matrix_.start_ = program.indptr
    lp.a_matrix_.index_ = program.index
    lp.a_matrix_.value_ = program.value
    if program.is_mip:
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[whole] for whole in program.integer.tolist()]
    return lp


def version() -> str:
    """Version of the HiGHS library in use."""
    return str(highspy.Highs().version())


def _without_columns(program: LinearProgram) -> Result:
    feasible = bool((program.row_lower <= TOLERANCE).all() and (program.row_upper >= -TOLERANCE).all())
    if not feasible:
        return Result("infeasible", None, _worst(program), None, 0.0, "no variables")
    return Result("optimal", np.zeros(0), program.offset, None, 0.0, "no variables")


def _differing(*pairs: FloatArray) -> NDArray[np.int32]:
    lower_was, lower_is, upper_was, upper_is = pairs
    return np.flatnonzero((lower_was != lower_is) | (upper_was != upper_is)).astype(np.int32)


def _best(program: LinearProgram) -> float:
    """The bound that says nothing."""
    return -math.inf if program.sense == "min" else math.inf


def _worst(program: LinearProgram) -> float:
    """The bound of a program without any point."""
    return -_best(program)
