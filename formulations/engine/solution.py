"""What a solve ends in: a plan with its value, and what is proven about it."""

from __future__ import annotations

import html
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from formulations.engine import clock
from formulations.engine.certificate import Certificate
from formulations.engine.highs import Proof, Result, SolverError, Status
from formulations.engine.linear import LinearProgram
from formulations.engine.protocol import formulation
from instances.base import Instance, Plan, Sense, Violation, agree
from instances.schema import FloatArray

__all__ = ["ONE_MODEL", "Solution", "judged", "relative_gap", "write_point"]

ONE_MODEL = "one model"
"""The way that every problem knows, but for those that no one model states: build the model, solve it."""


@dataclass(frozen=True, repr=False)
class Solution:
    """The outcome of a solve.

    Attributes
    ----------
    status : "optimal", "feasible", "infeasible", "unbounded" or "unknown"
        "optimal": the plan is feasible and proven optimal.  "feasible": there is a plan, but a
        gap to the bound remains.  "infeasible" and "unbounded": proven, no plan.  "unknown":
        neither a plan nor a proof.
    plan : Plan, optional
        The best plan found; None when there is none, or when a model was solved that no
        formulation of this library built.
    objective : float, optional
        Of an instance: what the instance says the plan is worth.  Of a model: the value of the
        model's own objective at the point found.
    bound : float
        Proven bound on every feasible plan's objective, below it for "min" and above it for
        "max"; infinite when nothing is proven.
    sense : str
        "min" or "max".
    build_seconds, solve_seconds : float
        Time for building, translating and checking, and in the solver, s.
    solver, solver_version : str
    message : str
        The solver's own words, and remarks on the result.
    method : str
        Which way was taken: "one model", or the name of the problem's own procedure.
    certificate : Certificate, optional
        Of a linear program: the dual proof as checked in NumPy.
    proof : str
        What the bound, or the status "infeasible" or "unbounded", rests on: "prices" or "ray" (checked in NumPy),
        "certificate" (checked in exact fractions by whoever likes), "two runs", "one run", "argument" (no solver was
        needed), or "" when nothing is proven.
    vipr : str
        The certificate as text, in format 1.0 of VIPR, where the proof is one.

    Raises
    ------
    SolverError
        When the objective is better than the bound, beyond ``OPTIMALITY_TOLERANCE``: one of the two
        is wrong, and nobody can say which.  When the status says more than there is: "optimal" without a value or
        without a proof, "feasible" without a value, "infeasible" or "unbounded" with a plan or without a proof.
    """

    status: Status
    plan: Plan | None
    objective: float | None
    bound: float
    sense: Sense
    build_seconds: float
    solve_seconds: float
    solver: str
    solver_version: str
    message: str = ""
    method: str = ONE_MODEL
    certificate: Certificate | None = None
    proof: Proof = ""
    vipr: str = field(default="", compare=False)
    _program: LinearProgram | None = field(default=None, compare=False)
    _x: FloatArray | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        found = self.status in ("optimal", "feasible")
        if found != (self.objective is not None) or (self.plan is not None and not found):
            raise SolverError(f"status {self.status!r} with objective {self.objective!r} and plan {self.plan!r}")
        if self.status in ("optimal", "infeasible", "unbounded") and not self.proof:
            raise SolverError(f"status {self.status!r} without a proof")
        if (self.proof == "certificate") != bool(self.vipr):
            raise SolverError(f"proof {self.proof!r}, and {'a' if self.vipr else 'no'} certificate")
        size = _size(self.certificate, self._program, self._x)
        if self.objective is not None and _beats(self.objective, self.bound, self.sense, size):
            raise SolverError(_contradiction(self.objective, self.bound, self.sense))

    @property
    def gap(self) -> float:
        """``|objective - bound| / |objective|``; 0 when proven optimal, infinite without a plan."""
        return 0.0 if self.status == "optimal" else relative_gap(self.objective, self.bound)

    @property
    def duals(self) -> Mapping[str, FloatArray]:
        """Row prices of a linear program by constraint, in the order of the constraint's index.

        A price is the change of the objective per unit of the row's limit, in the program's own
        sense.  Empty for mixed-integer programs and where the solver gave none.
        """
        if self.certificate is None or self._program is None:
            return {}
        prices = {}
        first = 0
        for component, indices in self._program.constraints:
            prices[component.name] = self.certificate.row_duals[first : first + len(indices)]
            first += len(indices)
        return prices

    def load(self) -> None:
        """Write the point found into the variables of the Pyomo model that was solved.

        Raises
        ------
        ValueError
            When there is no point, or no model to write it to.
        """
        if self._x is None or self._program is None:
            raise ValueError(f"there is no point to load: status {self.status}")
        if len(self._program.variables) != len(self._x):
            raise ValueError("there is no model to load the point into: it was found without building the whole model")
        write_point(self._program, self._x)

    def to_dict(self) -> dict[str, Any]:
        """Return the solution as JSON; infinite numbers become None."""
        return {
            "status": self.status,
            "objective": None if self.objective is None else _finite(self.objective),
            "bound": _finite(self.bound),
            "gap": _finite(self.gap),
            "plan": None if self.plan is None else self.plan.to_dict(),
            "build_seconds": self.build_seconds,
            "solve_seconds": self.solve_seconds,
            "solver": self.solver,
            "solver_version": self.solver_version,
            "method": self.method,
            "proof": self.proof,
            "message": self.message,
        }

    def __repr__(self) -> str:
        return f"Solution({', '.join(f'{name}={value}' for name, value in self._shown().items())})"

    def _repr_html_(self) -> str:
        shown = {name: html.escape(value.strip("'")) for name, value in self._shown().items()}
        rows = "".join(f"<tr><td>{name}</td><td>{value}</td></tr>" for name, value in shown.items())
        return f"<table>{rows}</table>"

    def _shown(self) -> dict[str, str]:
        return {
            "status": repr(self.status),
            "objective": "none" if self.objective is None else f"{self.objective:.9g}",
            "bound": f"{self.bound:.9g}",
            "gap": f"{self.gap:.3g}",
            "method": repr(self.method),
            "proof": repr(self.proof),
            "build_seconds": f"{self.build_seconds:.3g}",
            "solve_seconds": f"{self.solve_seconds:.3g}",
            "solver": f"'{self.solver} {self.solver_version}'",
            "message": repr(self.message),
        }


def relative_gap(objective: float | None, bound: float) -> float:
    """``|objective - bound| / |objective|``, 0 when they agree, infinite when either is missing or infinite."""
    if objective is None or not (math.isfinite(objective) and math.isfinite(bound)):
        return math.inf
    if agree(objective, bound):
        return 0.0
    return abs(objective - bound) / abs(objective) if objective else math.inf


def judged(
    instance: Instance[Any],
    plan: Plan | None,
    result: Result,
    *,
    began: float,
    solver: str,
    solver_version: str,
    method: str = ONE_MODEL,
    program: LinearProgram | None = None,
    start: Plan | None = None,
    broken: list[Violation] | None = None,
) -> Solution:
    """Make the solution of an instance: its own verdict on the plan beside the proven bound.

    Parameters
    ----------
    instance : Instance
    plan : Plan, optional
        The plan read from the point of ``result``.
    result : Result
        Its bound is the instance's, its seconds those of all solver runs.
    began : float
        ``time.perf_counter()`` when the work on the instance began.
    solver, solver_version, method : str
    program : LinearProgram, optional
        What was solved, for the prices by name.
    start : Plan, optional
        What the search was given to start from, for one that ends with less.
    broken : list of Violation, optional
        The instance's verdict on the plan, where it has been asked.

    Raises
    ------
    SolverError
        When the plan, or the start, is worth more than is said to be proven, or there is none though that is feasible.
    """
    status: Status = result.status
    message, objective = result.message, None
    offered = formulation(instance.problem)
    size = _size(result.certificate, program, result.x)
    if start is not None:
        # The bound of what is infeasible is one that every plan beats.
        worth = instance.objective(start)
        if _beats(worth, result.bound, instance.sense, size) and not instance.violations(start):
            raise _contradicted(instance, worth, result.bound)
    if status == "infeasible" and offered.explain is not None and not offered.explain_first:
        try:
            why = offered.explain(instance)
        except clock.TimeIsUp:
            why = None  # The proof is there.
        message = f"{message}; {why}" if why and why not in message else message
    if plan is None:
        broken = []
        if status in ("optimal", "feasible"):
            status = "unknown"
    else:
        if broken is None:
            broken = instance.violations(plan)
        if broken:
            message += f"; the plan read from the model breaks {', '.join(map(str, broken[:3]))} and is not used"
            status, plan = "unknown", None
        else:
            objective = instance.objective(plan)
            if _beats(objective, result.bound, instance.sense, size):
                raise _contradicted(instance, objective, result.bound)
            if status == "optimal" and not agree(objective, result.bound):
                status = "feasible"
                message += "; the plan's own value is not at the bound"
    x = result.x if plan is not None else None
    # A point that is off by a solver's tolerance must not cost the plan that the search began with.
    # A bound that misses by a sum's rounding what is at hand leaves an optimum that is only feasible.
    wanting = start is not None if broken else result.status in ("feasible", "unknown") or status == "feasible"
    if wanting:
        settled = False
        bound = result.bound if offered.trivial_bound is None else offered.trivial_bound(instance)
        if _beats(result.bound, bound, instance.sense):
            # No search has come as far as what needs none.
            result, settled = replace(result, bound=bound, proof="argument"), True
        # A search begins with the better of a start and what is at hand.
        what = "the start" if start is not None else "one at hand without a search"
        other = start if start is not None or offered.trivial is None else offered.trivial(instance)
        if other is not None and not instance.violations(other):
            value = instance.objective(other)
            if objective is None or _beats(value, objective, instance.sense):
                plan, objective, x, settled = other, value, None, True
                message += f"; the plan is {what}"
        if settled and objective is not None:
            status = "optimal" if agree(objective, result.bound) else "feasible"
    return Solution(
        status=status,
        plan=plan,
        objective=objective,
        bound=result.bound,
        sense=instance.sense,
        build_seconds=time.perf_counter() - began - result.seconds,
        solve_seconds=result.seconds,
        solver=solver,
        solver_version=solver_version,
        message=message,
        method=method,
        certificate=result.certificate,
        proof=result.proof,
        _program=program,
        _x=x,
    )


def _beats(value: float, other: float, sense: Sense, size: float = 0.0) -> bool:
    """Return whether a value is better than another, beyond rounding."""
    return (value < other if sense == "min" else value > other) and not agree(value, other, size=size)


def _size(certificate: Certificate | None, program: LinearProgram | None, x: FloatArray | None) -> float:
    """Return an ordinary value of the objective, which says what is zero but for rounding."""
    if certificate is not None:
        return certificate.size
    if program is None or x is None or len(x) != program.num_cols:
        return 0.0
    return float(np.abs(program.cost * x).sum())


def _contradicted(instance: Instance[Any], objective: float, bound: float) -> SolverError:
    """Return the error of an instance's plan that is worth more than is said to be proven."""
    why = _contradiction(objective, bound, instance.sense)
    return SolverError(f"{instance.problem}, instance {instance.digest}: {why}")


def _contradiction(objective: float, bound: float, sense: Sense) -> str:
    side = "above" if sense == "max" else "below"
    return (
        f"a plan worth {objective!r} is {side} the bound {bound!r} that is said to be proven: a model, a judge or a "
        "solver is wrong. Please report it with the instance"
    )


def write_point(program: LinearProgram, x: FloatArray) -> None:
    """Set the Pyomo variables of a program to a point, whole where they must be."""
    for variable, value, whole in zip(program.variables, x.tolist(), program.integer.tolist(), strict=True):
        if not variable.fixed:
            variable.set_value(round(value) if whole else value, skip_validation=True)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
