"""Arrays to HiGHS and back: options, statuses, bounds, and warm re-solves.

Nothing that HiGHS returns is believed before it is checked: every call's return status, whether a
point is there at all, and, in NumPy, whether the point satisfies the rows.

HiGHS gets a program in units that suit its tolerances (:mod:`formulations.engine.scaling`), and what it returns is
checked in these, which are the program's own to the last digit; results are in the program's own units.
"""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar, Literal

import highspy
import numpy as np
from numpy.typing import NDArray

from formulations.engine import clock
from formulations.engine.certificate import Certificate, directions, proves_infeasible, proves_unbounded
from formulations.engine.linear import (
    FEASIBILITY_TOLERANCE,
    POINT_TOLERANCE,
    Columns,
    LinearProgram,
    refuse_extreme_numbers,
    refuse_non_numbers,
)
from formulations.engine.scaling import Scaling, scaled
from instances.base import agree
from instances.schema import FloatArray

__all__ = [
    "INTERIOR_POINT_ROWS",
    "SECOND_LOOK",
    "WEAKEST_FIRST",
    "Proof",
    "Result",
    "Session",
    "SolverDisagreement",
    "SolverError",
    "Status",
    "first_options",
    "hand_over",
    "in_own_units",
    "limit_run",
    "out_of_time",
    "reconciled",
    "version",
    "with_crossed_bounds",
]

INTERIOR_POINT_ROWS = 1000
"""Cold LPs with more rows than this are faster by interior point (with crossover) than simplex.

``python -m benchmarks engine.interior_point`` compares them.
"""

CAREFUL_ROWS = 2000
"""An LP with more rows that has a point, but not quite a proof, is not solved again with more care."""

_USUAL: dict[str, Any] = {
    "solver": "choose",
    "presolve": "choose",
    "simplex_scale_strategy": 2,
    "primal_feasibility_tolerance": FEASIBILITY_TOLERANCE,
    "dual_feasibility_tolerance": FEASIBILITY_TOLERANCE,
}
_INTERIOR: dict[str, Any] = {**_USUAL, "solver": "ipm"}
_CAREFUL: dict[str, Any] = {
    "solver": "simplex",
    "presolve": "off",
    "simplex_scale_strategy": 0,
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
}
"""Settings that settle nearly all linear programs whose proof fails after presolve and scaling."""
_RESCALED: dict[str, Any] = {**_CAREFUL, "simplex_scale_strategy": 4}
"""Settings for the rest: programs with coefficients so far apart that they need scaling of another kind."""
_WITHOUT_PRESOLVE: dict[str, Any] = {**_USUAL, "presolve": "off"}
_SECOND_WAY: dict[str, Any] = {
    **_WITHOUT_PRESOLVE,
    "mip_detect_symmetry": False,
    # What is within 1e-6 of a whole number counts as whole to the first: a share of at most 1 - 1e-6 is then all or
    # nothing, and plans are lost.  No number is that near to both.
    "mip_feasibility_tolerance": 3e-7,
}
_SECOND_WAY_PRESOLVED: dict[str, Any] = {
    **_SECOND_WAY,
    "presolve": "choose",
    # Without probing and enumeration: what prepares these looks at no clock.
    "presolve_rule_off": 2**15 + 2**16,
}
"""The second way of a program of which the first was without presolve."""

SECOND_LOOK = (0.5, 1.0)
"""Time for a second way by default: seconds, or as a multiple of the first run if that is more."""

SECOND_SCALE = 1024.0
"""Largest cost in the second search, within a factor of two.

HiGHS's tolerance of reduced costs is absolute, and a mixed-integer search does not account for what it
lets pass: with costs of 1e-5 and values of 1e4, a "proven" optimum was 0.5 % off (docs/highs-report.md).
"""

Status = Literal["optimal", "feasible", "infeasible", "unbounded", "unknown"]
"""Outcome of a solve.  "optimal": there is a point, proven best.  "feasible": there is a point, and a gap to
the bound remains.  "infeasible" and "unbounded": proven, no point.  "unknown": neither a point nor a proof."""


Proof = Literal["prices", "ray", "certificate", "two runs", "one run", "argument", ""]
"""Ground of a bound, or of the verdict "infeasible" or "unbounded".  "prices": dual prices that NumPy checked,
of the program or of its relaxation.  "ray": a point and a direction without end, checked in NumPy.  "certificate":
derivations that anyone can check in exact fractions (VIPR).  "two runs": mixed-integer searches that took different
ways.  "one run": the word of one solver run.  "argument": a reason that needs no solver, such as a closed form.
"": nothing is proven."""

WEAKEST_FIRST: tuple[Proof, ...] = ("", "one run", "two runs", "ray", "prices", "certificate", "argument")
"""Proofs in order: what rests on several rests on the first of them."""


class SolverError(RuntimeError):
    """A solver failed in a way that is no statement about the model."""


class SolverDisagreement(UserWarning):
    """Two runs on one mixed-integer program proved what cannot both be true."""


@dataclass(frozen=True)
class Result:
    """Proof of one solver run about a :class:`LinearProgram`.

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
    proof : str
        What the bound, or a verdict without a point, rests on (:data:`Proof`).
    """

    status: Status
    x: FloatArray | None
    bound: float
    certificate: Certificate | None
    seconds: float
    message: str
    proof: Proof = ""


class Session:
    """A HiGHS object that is kept, so that a sequence of similar programs is solved warm.

    Each call of :meth:`run` compares the program with the one before and pushes only what
    differs; the basis of the last solve is the start of the next.  A session is not to be shared
    between threads.

    Parameters
    ----------
    time_limit : float, optional
        Limit of each run, s; within a solve that has a limit, no run gets more than is left of that.
    mip_gap : float
        Relative gap at which a mixed-integer solve may stop; 0 asks for a proof.
    threads, seed : int
        Passed to the solver.
    tolerance : float
        Of linear programs' feasibility, primal and dual, where they are asked for more precision.
    verify : bool, optional
        Whether a mixed-integer optimum, or infeasibility, is checked a second way: by default where that is quick
        beside the first run (:data:`SECOND_LOOK`); True whatever it takes within ``time_limit``; False never.
    """

    _scheduler_threads: ClassVar[int] = 0

    def __init__(
        self,
        *,
        time_limit: float | None = None,
        mip_gap: float = 0.0,
        threads: int = 1,
        seed: int = 0,
        tolerance: float = FEASIBILITY_TOLERANCE,
        verify: bool | None = None,
    ) -> None:
        self.time_limit = time_limit
        self.verify = verify
        self._tolerance = tolerance
        self._threads = threads
        self._last: LinearProgram | None = None
        self._scaling: Scaling | None = None
        self._highs = highspy.Highs()
        self._options = dict(_defaults())
        self._option("output_flag", False)
        self._option("threads", threads)
        self._option("random_seed", seed)
        self._option("mip_rel_gap", mip_gap)
        self._option("mip_abs_gap", 0.0)
        # HiGHS's own mip_feasibility_tolerance (1e-6) stays: asked for 1e-7, it called twice as many feasible
        # programs with coefficients far apart infeasible.

    def run(
        self,
        program: LinearProgram,
        *,
        start: FloatArray | None = None,
        interior_rows: int = INTERIOR_POINT_ROWS,
        presolve: bool = True,
    ) -> Result:
        """Solve ``program``, from the last basis where its shape allows.

        Parameters
        ----------
        program : LinearProgram
        start : (columns,) float, optional
            A point to start a mixed-integer search from; it is ignored where it is infeasible.
        interior_rows : int
            A cold linear program with more rows than this is solved by interior point.
        presolve : bool
            Whether a linear program is presolved before simplex, and a mixed-integer one before its search.  Presolve
            of many thousands of whole columns may look at no clock for longer than the search takes.

        Raises
        ------
        ModelError
            When the program holds a number that HiGHS would not take at its value.
        SolverError
            When HiGHS fails.
        """
        refuse_non_numbers(program)
        inner, scaling = self._in_units(program)
        refuse_extreme_numbers(program, inner)
        settled = _without_columns(program) if not program.num_cols else with_crossed_bounds(program)
        if settled is not None:
            self._last = None
            return settled
        if clock.is_up():
            return out_of_time(program)
        self._scaling = scaling
        if start is not None and len(start) == program.num_cols:
            start = scaling.point(start)
        return in_own_units(program, scaling, self._run(inner, start, interior_rows, presolve))

    def _in_units(self, program: LinearProgram) -> tuple[LinearProgram, Scaling]:
        """Return the program as HiGHS gets it: in the units of the last run, as long as they suit it."""
        last = self._scaling
        if last is not None and (len(last.columns), len(last.rows)) == (program.num_cols, program.num_rows):
            inner = last.apply(program)
            if not last.columns[program.integer].any() and scaled(inner)[1].trivial:
                return inner, last
        return scaled(program)

    def _run(self, program: LinearProgram, start: FloatArray | None, interior_rows: int, presolve: bool) -> Result:
        """:meth:`run` of a program in units that suit HiGHS, in which its points and proofs are checked."""
        cold = not self._push(program)
        if start is not None and program.is_mip:
            point = highspy.HighsSolution()
            point.col_value = start
            self._checked(self._highs.setSolution(point), "taking the start point")
        if program.is_mip:
            ways = [_USUAL, _WITHOUT_PRESOLVE] if presolve else [_WITHOUT_PRESOLVE]
            found = self._verified(program, self._solve(program, ways), presolve)
            return found if start is None else self._beside(program, found, start)
        first = first_options(program, interior_rows) if cold else _USUAL
        usual = [_INTERIOR, _USUAL] if first is _INTERIOR else [_USUAL] if presolve else [_WITHOUT_PRESOLVE, _USUAL]
        return self._solve(program, [*usual, _CAREFUL, _RESCALED])

    def add_columns(self, columns: Columns) -> LinearProgram:
        """Append columns to the program of the last run; the next :meth:`run` of it starts warm.

        Returns
        -------
        LinearProgram
            The program of the last run with the columns at its end.
        """
        last, self._last = self._last, None
        if last is None or self._scaling is None:
            raise SolverError("there is no program to add columns to: the last run needed no solver, or there was none")
        self._scaling, columns = self._scaling.with_columns(columns)
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
        extended = last.with_columns(columns)
        self._last = _copied(extended)
        return self._scaling.inverse.apply(extended)

    def check(self, program: LinearProgram, first: Result, *, presolve: bool = False) -> Result:
        """Check ``first``, a result of any solver on a mixed-integer program, a second way.

        The second way is the relaxation, whose prices prove the bound where it is as good; else a search without
        presolve and symmetry, with another tolerance of whole numbers, on a scaled objective, from the point of the
        first.

        Parameters
        ----------
        program : LinearProgram
        first : Result
            Its own seconds do not count against the session's limit.
        presolve : bool
            Whether the second search presolves, which it should where the first did not.

        Warns
        -----
        SolverDisagreement
            When the two contradict each other.
        """
        began = time.perf_counter()
        try:
            proven = self._checked_by_relaxation(program, first)
            return proven or self._checked_by_search(program, first, began, presolve)
        except SolverError:
            # A second way that fails says nothing about the first.
            return _unconfirmed(first, time.perf_counter() - began)

    def _checked_by_relaxation(self, program: LinearProgram, first: Result) -> Result | None:
        """``first`` where the relaxation's prices prove it."""
        relaxation = replace(program, integer=np.zeros_like(program.integer))
        relaxed = Session(time_limit=self.time_limit, threads=self._threads).run(relaxation)
        if relaxed.proof != "prices":
            return None
        proven = first.status == relaxed.status == "infeasible" or (
            first.x is not None and agree(program.objective(first.x), _raised(program, relaxed.bound), size=1.0)
        )
        return replace(first, seconds=first.seconds + relaxed.seconds, proof="prices") if proven else None

    def _checked_by_search(self, program: LinearProgram, first: Result, began: float, presolve: bool) -> Result:
        spent = time.perf_counter() - began
        first = replace(first, seconds=first.seconds + spent)
        left = None if self.time_limit is None else self.time_limit - spent
        if left is not None and left <= 0:
            return _unconfirmed(first, spent)
        other = Session(time_limit=left, threads=self._threads, verify=False)
        return reconciled(program, first, other._second_way(program, first.x, presolve))

    def _beside(self, program: LinearProgram, found: Result, start: FloatArray) -> Result:
        """Return what was found, or the point that the search began with where that shows it to be wrong."""
        known = Result("feasible", start, _best(program), None, 0.0, "The start point")
        if len(start) != program.num_cols or not _refuted(program, found, known):
            return found
        known = replace(known, x=self._point(program, start)[0])
        return reconciled(program, found, known) if _refuted(program, found, known) else found

    def _verified(self, program: LinearProgram, first: Result, presolved: bool) -> Result:
        """Return a proof of a mixed-integer program checked a second way, as far as there is time for it."""
        if self.verify is False or first.status not in ("optimal", "infeasible") or first.proof != "one run":
            return first
        allowed = math.inf if self.verify else max(SECOND_LOOK[0], SECOND_LOOK[1] * first.seconds)
        allowed = min(allowed, clock.left())
        if self.time_limit is not None:
            allowed = min(allowed, self.time_limit - first.seconds)
        if allowed <= 0:
            return first
        limit = None if math.isinf(allowed) else allowed
        other = Session(time_limit=limit, threads=self._threads, verify=False)
        return other.check(program, first, presolve=not presolved)

    def _second_way(self, program: LinearProgram, start: FloatArray | None, presolve: bool = False) -> Result:
        largest = float(np.abs(program.cost).max(initial=0.0))
        scale = 2.0 ** round(math.log2(SECOND_SCALE / largest)) if largest else 1.0
        louder = replace(program, cost=program.cost * scale, offset=program.offset * scale)
        self._push(louder)
        if start is not None:
            point = highspy.HighsSolution()
            point.col_value = start
            self._checked(self._highs.setSolution(point), "taking the start point")
        result = self._solve(louder, [_SECOND_WAY_PRESOLVED if presolve else _SECOND_WAY])
        return replace(result, bound=result.bound / scale)

    def _solve(self, program: LinearProgram, ways: list[dict[str, Any]]) -> Result:
        """Run HiGHS, and again with more care where the outcome is not proven; the best of the results."""
        if Session._scheduler_threads not in (0, self._threads):
            # HiGHS keeps one pool of threads for the process and refuses another size.
            highspy.Highs.resetGlobalScheduler(True)
        Session._scheduler_threads = self._threads
        known = highspy.HighsModelStatus
        began = time.perf_counter()
        limit = min(math.inf if self.time_limit is None else self.time_limit, clock.left())
        best, failure = None, ""
        for way in ways:
            left = limit - (time.perf_counter() - began)
            if way is not ways[0]:
                # Without presolve, a large program could take a hundred times longer.
                patient = way is _CAREFUL or way is _RESCALED
                if left <= 0 or (patient and best and best.x is not None and program.num_rows > CAREFUL_ROWS):
                    break
                # A basis that led nowhere is no start.
                self._highs.clearSolver()
            if not program.is_mip:
                left += self._highs.getRunTime()
            for name, value in {**way, "time_limit": max(0.0, left)}.items():
                self._option(name, min(value, self._tolerance) if name.endswith("feasibility_tolerance") else value)
            outcome = self._highs.run()
            status = self._highs.getModelStatus()
            if outcome == highspy.HighsStatus.kError:
                failure = self._highs.modelStatusToString(status)
                continue
            result = self._judge(program, status, time.perf_counter() - began)
            if best is None or _SETTLED.index(result.status) >= _SETTLED.index(best.status):
                best = result
            # After kUnboundedOrInfeasible, presolve saw that there is no optimum, but not which of the two it is.
            again = status == known.kUnboundedOrInfeasible if program.is_mip else status != known.kTimeLimit
            if not again or result.status not in ("unknown", "feasible"):
                break
        if best is None:
            raise SolverError(f"HiGHS failed: {failure}")
        return replace(best, seconds=time.perf_counter() - began)

    def _judge(self, program: LinearProgram, status: Any, seconds: float) -> Result:
        message = self._highs.modelStatusToString(status)
        known = highspy.HighsModelStatus
        proof: Proof
        if status == known.kInfeasible:
            if not program.is_mip and not self._conflict_proven(program):
                message += "; but no prices prove it"
                return Result("unknown", None, _best(program), None, seconds, message)
            proof = "one run" if program.is_mip else "prices"
            return Result("infeasible", None, _worst(program), None, seconds, message, proof)
        if status == known.kUnbounded:
            bounded = bool(np.isfinite(program.col_lower).all() and np.isfinite(program.col_upper).all())
            if bounded or not self._ray_proven(program):
                message += "; but every variable is bounded" if bounded else "; but no direction proves it"
                return Result("unknown", None, _best(program), None, seconds, message)
            return Result("unbounded", None, _best(program), None, seconds, message, "ray")
        x = None
        if self._info("primal_solution_status") == int(highspy.SolutionStatus.kSolutionStatusFeasible):
            point = self._highs.getSolution()
            x, off = self._point(program, np.array(point.col_value))
            if x is None:
                message += "; the solver's point violates the rows and is not used"
        certificate = None
        bound = _best(program)
        if program.is_mip:
            found = self._info("mip_dual_bound")
            if found is not None and (status == known.kOptimal or math.isfinite(found)):
                bound = float(found)
        elif status == known.kOptimal and x is not None:
            # A program that was taken as it is is in units that suit it.
            units = self._scaling if self._scaling is not None and self._scaling.trivial else None
            prices = np.array(point.row_dual)
            certificate = Certificate.of(
                program, x, prices, scaling=units, infeasibility=None if units is None else off
            )
            bound = certificate.dual_objective
        proof = "" if math.isinf(bound) else "prices" if certificate else "one run"
        if x is None:
            return Result("unknown", None, bound, certificate, seconds, message, proof)
        # Of a mixed-integer program the rounded point has to reach the bound, with no gap allowed.
        proven = status == known.kOptimal and (
            agree(program.objective(x), bound, size=1.0) if certificate is None else certificate.holds
        )
        if status == known.kOptimal and not proven:
            message += f"; but {certificate or 'the point is not at the bound'}"
        return Result("optimal" if proven else "feasible", x, bound, certificate, seconds, message, proof)

    def _info(self, name: str) -> Any:
        """Return one value of the last run by its name, if there is one; all at once take HiGHS ten times as long."""
        status, value = self._highs.getInfoValue(name)
        return value if status == highspy.HighsStatus.kOk else None

    def _conflict_proven(self, program: LinearProgram) -> bool:
        if proves_infeasible(program):
            return True
        _, exists, ray = self._highs.getDualRay()
        return bool(exists) and (proves_infeasible(program, ray) or proves_infeasible(program, -ray))

    def _ray_proven(self, program: LinearProgram) -> bool:
        """Tell whether there is a point, and a direction from it without end in which the objective improves."""
        # Numbers of a computer are fractions, so a direction serves whole variables too: some multiple of it is whole.
        direction = Session(threads=self._threads).run(directions(program)).x
        if direction is None or not proves_unbounded(program, direction):
            return False
        anywhere = replace(program, cost=np.zeros(program.num_cols))
        return Session(time_limit=self.time_limit, threads=self._threads).run(anywhere).x is not None

    def _point(self, program: LinearProgram, x: FloatArray) -> tuple[FloatArray | None, float]:
        """Return the solver's point with whole integers, or None if it misses the rows; and by how much it does."""
        if len(x) != program.num_cols:
            return None, math.inf
        x = np.minimum(np.maximum(x, program.col_lower), program.col_upper)
        whole = program.integer
        if whole.any():
            rounded = x.copy()
            rounded[whole] = np.rint(x[whole])
            if program.infeasibility(rounded) > POINT_TOLERANCE and not whole.all():
                # Rounding moved the integers by less than the solver's tolerance; let the
                # continuous variables follow.
                fixed = program.with_fixed(whole, rounded)
                moved = Session(time_limit=self.time_limit, threads=self._threads).run(fixed).x
                return moved, math.inf if moved is None else program.infeasibility(moved)
            x = rounded
        off = program.infeasibility(x)
        return (x if off <= POINT_TOLERANCE else None), off

    def _push(self, program: LinearProgram) -> bool:
        """Bring the solver's copy up to date; True when the last basis is still of use."""
        # Until all is pushed, HiGHS holds neither the one program nor the other.
        last, self._last = self._last, None
        warm = self._differences(last, program)
        self._last = _copied(program)
        return warm

    def _differences(self, last: LinearProgram | None, program: LinearProgram) -> bool:
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
        self._checked(hand_over(self._highs, program), "taking the model")

    def _option(self, name: str, value: Any) -> None:
        if self._options.get(name) != value:
            self._checked(self._highs.setOptionValue(name, value), f"setting option {name!r} to {value!r}")
            self._options[name] = value

    @staticmethod
    def _checked(status: Any, doing: str) -> None:
        # A warning means that HiGHS changed what it was given.
        if status != highspy.HighsStatus.kOk:
            raise SolverError(f"HiGHS reported {status} when {doing}")


@cache
def _defaults() -> dict[str, Any]:
    """HiGHS's own values of the options that sessions set."""
    names = ("output_flag", "threads", "random_seed", "mip_rel_gap", "mip_abs_gap", "time_limit", *_SECOND_WAY)
    solver = highspy.Highs()
    return {name: solver.getOptionValue(name)[1] for name in names}


def limit_run(solver: highspy.Highs, seconds: float) -> None:
    """Let the next run of a linear program take so many seconds; HiGHS counts all of an object's runs together."""
    solver.setOptionValue("time_limit", min(max(0.0, seconds) + solver.getRunTime(), highspy.kHighsInf))


def hand_over(solver: highspy.Highs, program: LinearProgram) -> Any:
    """Give HiGHS a program, as arrays, and return its status; objects of its own types are made of lists, slowly."""
    sense = highspy.ObjSense.kMinimize if program.sense == "min" else highspy.ObjSense.kMaximize
    return solver.passModel(
        program.num_cols,
        program.num_rows,
        len(program.value),
        int(highspy.MatrixFormat.kRowwise),
        int(sense),
        program.offset,
        program.cost,
        program.col_lower,
        program.col_upper,
        program.row_lower,
        program.row_upper,
        program.indptr,
        program.index,
        program.value,
        # 0 is a continuous variable, 1 a whole one.
        program.integer.astype(np.int32),
    )


def first_options(program: LinearProgram, interior_rows: int = INTERIOR_POINT_ROWS) -> dict[str, Any]:
    """HiGHS's options for the first run of a cold program."""
    return _INTERIOR if not program.is_mip and program.num_rows > interior_rows else _USUAL


def reconciled(program: LinearProgram, first: Result, second: Result) -> Result:
    """Join what two runs on one mixed-integer program prove.

    A point that NumPy has checked outweighs any claim that there is none, or none so good: the run that claimed so
    is wrong, its bound is discarded, and the other's word stands alone.

    Parameters
    ----------
    program : LinearProgram
    first : Result
        "optimal" or "infeasible".
    second : Result
        Of a run that took another way.

    Warns
    -----
    SolverDisagreement
        When the two contradict each other.
    """
    seconds = first.seconds + second.seconds
    if _refuted(program, first, second):
        message = f"{second.message}; another run, wrong, {_claim(program, first)}"
        result = replace(second, seconds=seconds, message=message, certificate=None)
    elif _refuted(program, second, first):
        result = replace(
            first, seconds=seconds, message=f"{first.message}; a second run, wrong, {_claim(program, second)}"
        )
    elif first.status == second.status == "infeasible" or (
        first.x is not None and _reaches(program, first.x, second.bound)
    ):
        return replace(first, seconds=seconds, proof="two runs")
    else:
        return _unconfirmed(replace(first, seconds=seconds), second.seconds)
    warnings.warn(SolverDisagreement(f"mixed-integer program: {result.message}"), stacklevel=2)
    return result


def _unconfirmed(first: Result, seconds: float) -> Result:
    return replace(first, message=f"{first.message}; not confirmed by a second run within {seconds:.3g} s")


def _refuted(program: LinearProgram, claimed: Result, found: Result) -> bool:
    """Tell whether the point of one run shows the other's bound to be wrong."""
    if found.x is None:
        return False
    if claimed.status == "infeasible":
        return True
    value = program.objective(found.x)
    beyond = value < claimed.bound if program.sense == "min" else value > claimed.bound
    return beyond and not _reaches(program, found.x, claimed.bound)


def _reaches(program: LinearProgram, x: FloatArray, bound: float) -> bool:
    """Tell whether a point's value is the bound, for a point that keeps to its rows within a tolerance."""
    value = program.objective(x)
    cost, terms = np.abs(program.cost), np.abs(program.cost * x)
    # A continuous variable that is 0 is so but for rounding.
    size = float(np.where(program.integer, terms, np.maximum(terms, cost)).sum())
    return agree(value, bound, size=size) or abs(value - bound) <= POINT_TOLERANCE * float(terms.sum())


def _claim(program: LinearProgram, result: Result) -> str:
    if result.status == "infeasible":
        return "called the program infeasible"
    return f"claimed the bound {result.bound:.9g}"


def _raised(program: LinearProgram, bound: float) -> float:
    """Return a bound of the relaxation, raised to the next value that whole variables can have."""
    whole = program.cost[program.integer]
    steps = np.rint(whole)
    if program.cost[~program.integer].any() or (whole != steps).any() or np.abs(steps).max(initial=0.0) > 2**53:
        return bound
    step = float(np.gcd.reduce(steps.astype(np.int64), initial=0))
    if not step or math.isinf(bound):
        return bound
    # A little less, for the rounding in the bound itself.
    slack = POINT_TOLERANCE * max(1.0, abs(bound))
    sign = 1.0 if program.sense == "min" else -1.0
    return program.offset + sign * step * math.ceil((sign * (bound - program.offset) - slack) / step)


@cache
def version() -> str:
    """Version of the HiGHS library in use."""
    return str(highspy.Highs().version())


def out_of_time(program: LinearProgram) -> Result:
    """Return the result of a run for which no time was left."""
    return Result("unknown", None, _best(program), None, 0.0, "Time limit reached before the solver was asked")


def _without_columns(program: LinearProgram) -> Result:
    feasible = bool((program.row_lower <= POINT_TOLERANCE).all() and (program.row_upper >= -POINT_TOLERANCE).all())
    if not feasible:
        return Result("infeasible", None, _worst(program), None, 0.0, "no variables", "argument")
    return Result("optimal", np.zeros(0), program.offset, None, 0.0, "no variables", "argument")


def with_crossed_bounds(program: LinearProgram) -> Result | None:
    """Return the result where a lower bound exceeds the upper one, which HiGHS would take with a warning."""
    columns = np.flatnonzero(program.col_lower > program.col_upper)
    rows = np.flatnonzero(program.row_lower > program.row_upper)
    if not columns.size and not rows.size:
        return None
    name = program.column_name(int(columns[0])) if columns.size else program.row_name(int(rows[0]))
    message = f"{'variable' if columns.size else 'constraint'} {name!r} has crossed bounds"
    return Result("infeasible", None, _worst(program), None, 0.0, message, "argument")


def in_own_units(program: LinearProgram, scaling: Scaling, result: Result) -> Result:
    """Return the result of a scaled program as one of the program itself."""
    if not scaling.trivial:
        own, certificate = scaling.inverse, result.certificate
        if certificate is not None:
            certificate = replace(
                certificate,
                primal_objective=own.value(certificate.primal_objective),
                dual_objective=own.value(certificate.dual_objective),
                row_duals=own.prices(certificate.row_duals),
                size=scaling.size,
            )
        x = None if result.x is None else own.point(result.x)
        result = replace(result, x=x, bound=own.value(result.bound), certificate=certificate)
    if result.status != "optimal" or result.x is None:
        return result
    # Where both are zero but for rounding, the bound must not be beyond the point's own value.
    value = program.objective(result.x)
    beyond = value < result.bound if program.sense == "min" else value > result.bound
    return replace(result, bound=value) if beyond else result


def _copied(program: LinearProgram) -> LinearProgram:
    """Copy the arrays, so that a caller who changes one in place is noticed."""
    arrays: dict[str, Any] = {name: part.copy() for name, part in vars(program).items() if isinstance(part, np.ndarray)}
    return replace(program, **arrays)


def _differing(*pairs: FloatArray) -> NDArray[np.int32]:
    lower_was, lower_is, upper_was, upper_is = pairs
    return np.flatnonzero((lower_was != lower_is) | (upper_was != upper_is)).astype(np.int32)


_SETTLED = ("unknown", "feasible", "infeasible", "unbounded", "optimal")


def _best(program: LinearProgram) -> float:
    """Return the bound that says nothing."""
    return -math.inf if program.sense == "min" else math.inf


def _worst(program: LinearProgram) -> float:
    """Return the bound of a program without any point."""
    return -_best(program)
