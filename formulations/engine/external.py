"""Every solver other than HiGHS: CP-SAT in a process of its own, all others through Pyomo's interfaces.

What they return is treated like anyone's word: the point is checked in NumPy against the
library's own translation of the model, and a bound is one only if the solver claims it.

A solver gets the model itself, or, where its numbers need other units (:mod:`formulations.engine.scaling`), a
model made of the scaled arrays.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray
from pyomo.contrib.solver.common.factory import SolverFactory
from pyomo.contrib.solver.common.results import SolutionStatus, TerminationCondition

from formulations.engine import clock, cpsat
from formulations.engine.highs import Proof, Result, SolverError, in_own_units, out_of_time, with_crossed_bounds
from formulations.engine.linear import POINT_TOLERANCE, LinearProgram, Rows, refuse_extreme_numbers, weighted_sum
from formulations.engine.options import Options
from formulations.engine.scaling import scaled
from formulations.engine.vipr import implied
from instances.base import agree
from instances.schema import FloatArray, nearest

__all__ = ["SolverNotFound", "find", "run"]

PREFERRED = {
    "scip": ("scip_direct", "scip"),
    "gurobi": ("gurobi_direct", "gurobi"),
}
"""Pyomo's names for one solver's interfaces, the fast ones first."""

SEED = {"scip": "randomization/randomseedshift", "gurobi": "Seed"}
"""The solvers' own names for the seed."""

INSTALL = {
    "scip": "pip install PySCIPOpt",
    "gurobi": "pip install gurobipy",
    "cp-sat": "pip install ortools",
    "cbc": "install the program cbc (Debian: coinor-cbc)",
    "glpk": "install the program glpsol (Debian: glpk-utils)",
}


class SolverNotFound(RuntimeError):  # noqa: N818, the name that the interface promises
    """The solver is not installed, or Pyomo does not know its name; the message says what to do."""


def find(name: str) -> Any:
    """Pyomo's interface to solver ``name``: the new one where it exists, else the classic one; of CP-SAT our own.

    Raises
    ------
    SolverNotFound
    """
    if name == cpsat.NAME:
        if cpsat.installed():
            return cpsat
        raise _missing(name, name)
    new, classic = set(SolverFactory), set(pyo.SolverFactory)
    known = False
    for candidate in PREFERRED.get(name, (name,)):
        if candidate in new:
            known = True
            interface = SolverFactory(candidate)
            if interface.available():
                return interface
    for candidate in PREFERRED.get(name, (name,)):
        if candidate in classic and candidate not in new:
            known = True
            interface = pyo.SolverFactory(candidate)
            if interface.available(exception_flag=False):
                return interface
    if not known:
        names = {"highs", cpsat.NAME, *PREFERRED, *new, *(n for n in classic if not n.startswith("_"))}
        raise SolverNotFound(f"unknown solver {name!r}{nearest(name, names)}")
    raise _missing(name, name.split("_")[0])


def _missing(name: str, package: str) -> SolverNotFound:
    hint = INSTALL.get(package, "see the documentation of Pyomo")
    return SolverNotFound(f"solver {name!r} is not installed: {hint}, or use 'highs'")


def run(
    model: pyo.ConcreteModel, program: LinearProgram, options: Options, start: FloatArray | None = None
) -> tuple[Result, str, str]:
    """Solve ``model`` with ``options.solver``; the model's variable values are left as they were.

    Parameters
    ----------
    model : ConcreteModel
    program : LinearProgram
        The model's arrays.
    options : Options
    start : (columns,) float, optional
        A point to start from, for CP-SAT; Pyomo's interfaces take none.
    """
    interface = find(options.solver)
    left = clock.left()
    if left <= 0:
        return out_of_time(program), options.solver, ""
    if math.isfinite(left):
        options = replace(options, time_limit=left)
    began = time.perf_counter()
    if interface is cpsat:
        result, version = _by_cpsat(program, options, left, start)
        return result, options.solver, version
    inner, scaling = scaled(program)
    refuse_extreme_numbers(program, inner)
    if not scaling.trivial:
        model, inner = _model_of(inner)
    result, version = _run(interface, model, inner, options, began)
    return in_own_units(program, scaling, result), options.solver, version


def _by_cpsat(program: LinearProgram, options: Options, left: float, start: FloatArray | None) -> tuple[Result, str]:
    """Solve the program's arrays by CP-SAT, which needs no other units: it has no tolerance.

    Continuous variables that are whole in some best point are whole ones to it.
    """
    began = time.perf_counter()
    program = replace(program, integer=program.integer | implied(program))
    settled = with_crossed_bounds(program)
    if settled is not None:
        return settled, ""
    found, version = cpsat.ask(program, options, left, start)
    if found["values"] is not None:
        found["values"] = pyo.ComponentMap(zip(program.variables, found["values"].tolist(), strict=True))
    return _checked(program, found, time.perf_counter() - began), version


def _model_of(program: LinearProgram) -> tuple[pyo.ConcreteModel, LinearProgram]:
    """Return a Pyomo model of a program's arrays, and the program with that model's variables and constraints."""
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(program.num_cols))
    variables = list(model.x.values())
    lower, upper = program.col_lower.tolist(), program.col_upper.tolist()
    for variable, low, high, whole in zip(variables, lower, upper, program.integer.tolist(), strict=True):
        variable.domain = pyo.Integers if whole else pyo.Reals
        variable.setlb(None if math.isinf(low) else low)
        variable.setub(None if math.isinf(high) else high)
    model.ROWS = pyo.RangeSet(0, program.num_rows - 1)
    matrix = (program.indptr, program.index, program.value)
    model.rows = Rows(model.ROWS, matrix, variables, lower=program.row_lower, upper=program.row_upper)
    used = np.flatnonzero(program.cost)
    total = weighted_sum(program.cost[used], [variables[column] for column in used]) + program.offset
    model.goal = pyo.Objective(expr=total, sense=pyo.minimize if program.sense == "min" else pyo.maximize)
    return model, replace(program, variables=variables, constraints=[(model.rows, list(model.ROWS))])


def _run(
    interface: Any, model: pyo.ConcreteModel, program: LinearProgram, options: Options, began: float
) -> tuple[Result, str]:
    empty = np.diff(program.indptr) == 0
    if (empty & ((program.row_lower > POINT_TOLERANCE) | (program.row_upper < -POINT_TOLERANCE))).any():
        result = {"status": "infeasible", "values": None, "bound": None, "message": "a row without variables is broken"}
        return _checked(program, result, 0.0), ""
    # Interfaces choke on a row without variables, which says nothing here.
    silenced = [data for data in _constraints(program, empty) if data.active]
    before = [(variable, variable.value, variable.stale) for variable in program.variables]
    # Pyomo logs at level ERROR what is merely the answer "infeasible".
    logger = logging.getLogger("pyomo")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        for data in silenced:
            data.deactivate()
        if isinstance(interface, tuple(SolverFactory._cls.values())):
            result, version = _new_interface(interface, model, program, options)
        else:
            result, version = _classic_interface(interface, model, program, options)
    except Exception as error:
        # Each interface fails in its own way (an assertion of SCIP's on a row without variables).
        raise SolverError(f"{options.solver}: {error}") from error
    finally:
        logger.setLevel(level)
        for data in silenced:
            data.activate()
        for variable, value, stale in before:
            variable.set_value(value, skip_validation=True)
            variable.stale = stale
    seconds = time.perf_counter() - began
    return _checked(program, result, seconds), version


def _constraints(program: LinearProgram, rows: NDArray[np.bool_]) -> Iterator[Any]:
    """Pyomo's constraints of some of a program's rows."""
    row = 0
    for component, indices in program.constraints:
        for index in indices:
            if rows[row]:
                yield component[index]
            row += 1


def _new_interface(interface: Any, model: Any, program: LinearProgram, options: Options) -> tuple[dict[str, Any], str]:
    config: dict[str, Any] = {
        "load_solutions": False,
        "raise_exception_on_nonoptimal_result": False,
        "threads": options.threads,
    }
    if options.time_limit is not None:
        config["time_limit"] = options.time_limit
    has_gap = hasattr(interface.config, "rel_gap")
    if program.is_mip and has_gap:
        config["rel_gap"] = options.mip_gap
        config["abs_gap"] = 0.0
    seed = SEED.get(options.solver.split("_")[0])
    if seed is not None:
        config["solver_options"] = {seed: options.seed}
    found = interface.solve(model, **config)
    point = None
    if found.solution_status in (SolutionStatus.optimal, SolutionStatus.feasible, SolutionStatus.unknown):
        point = found.solution_loader.get_vars()
    status = {
        TerminationCondition.convergenceCriteriaSatisfied: "optimal",
        TerminationCondition.provenInfeasible: "infeasible",
        TerminationCondition.unbounded: "unbounded",
    }.get(found.termination_condition, "unknown")
    version = ".".join(map(str, found.solver_version or ()))
    return {
        "status": status,
        "values": point,
        "bound": found.objective_bound,
        "message": str(found.termination_condition.name),
        "exact": not program.is_mip or (has_gap and options.mip_gap == 0),
    }, version


def _classic_interface(
    interface: Any, model: Any, program: LinearProgram, options: Options
) -> tuple[dict[str, Any], str]:
    keywords: dict[str, Any] = {"load_solutions": False}
    if options.time_limit is not None:
        keywords["timelimit"] = options.time_limit
    found = interface.solve(model, **keywords)
    condition = found.solver.termination_condition
    status = {"optimal": "optimal", "infeasible": "infeasible", "unbounded": "unbounded"}.get(str(condition), "unknown")
    values = None
    if len(found.solution):
        for variable in program.variables:
            variable.set_value(None, skip_validation=True)
        model.solutions.load_from(found)
        values = pyo.ComponentMap((variable, variable.value) for variable in program.variables)
    bound = found.problem.lower_bound if program.sense == "min" else found.problem.upper_bound
    version = ".".join(map(str, interface.version() or ()))
    # Pyomo has no common name for the gap, so the solver's own applies.
    exact = not program.is_mip
    return {"status": status, "values": values, "bound": bound, "message": str(condition), "exact": exact}, version


def _checked(program: LinearProgram, found: dict[str, Any], seconds: float) -> Result:
    """Return the solver's word, as far as it stands up to the library's own copy of the model."""
    nothing = -math.inf if program.sense == "min" else math.inf
    status, message = found["status"], found["message"]
    if status in ("infeasible", "unbounded"):
        bound = -nothing if status == "infeasible" else nothing
        return Result(status, None, bound, None, seconds, message, "one run")
    x = None
    if found["values"] is not None:
        values = [found["values"].get(v) for v in program.variables]
        # A solver leaves out the variables that appear in no row.
        free = np.clip(np.zeros(program.num_cols), program.col_lower, program.col_upper)
        x = np.array([rest if v is None else v for v, rest in zip(values, free, strict=True)], float)
        x = np.clip(x, program.col_lower, program.col_upper)
        x[program.integer] = np.rint(x[program.integer])
        if program.infeasibility(x) > POINT_TOLERANCE:
            x = None
            message += "; the solver's point violates the rows and is not used"
    bound = found["bound"]
    bound = nothing if bound is None or not math.isfinite(bound) or abs(bound) >= 1e20 else float(bound)
    if x is None:
        return Result("unknown", None, bound, None, seconds, message, "" if math.isinf(bound) else "one run")
    if status == "optimal" and not math.isfinite(bound) and found["exact"]:
        bound = program.objective(x)
        message += "; the solver states no bound, so its claim of optimality is the only proof"
    proven = status == "optimal" and agree(program.objective(x), bound, size=1.0)
    proof: Proof = "" if math.isinf(bound) else "one run"
    return Result("optimal" if proven else "feasible", x, bound, None, seconds, message, proof)
