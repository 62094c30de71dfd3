"""One function from an instance, or a model, to a solution that can be trusted.

``solve`` builds the model, hands it to a solver, checks what comes back, reads the plan, and lets
the *instance* say what the plan is worth.  Status, bound and proof travel with the value.
"""

from __future__ import annotations

import importlib
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

import numpy as np
import pyomo.environ as pyo

from formulations import external, highs
from formulations.certificate import Certificate
from formulations.highs import Result, Session
from formulations.linear import FloatArray, LinearProgram, paused_garbage_collection, translate
from formulations.options import Options
from instances.base import Instance, Plan, agree
from instances.files import instance_type

AnyInstance = Instance[Any]


@dataclass(frozen=True, repr=False)
class Solution:
    """The outcome of a solve.

    Attributes
    ----------
    status : str
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
    certificate : Certificate, optional
        Of a linear program: the dual proof as checked in NumPy.
    """

    status: str
    plan: Plan | None
    objective: float | None
    bound: float
    sense: str
    build_seconds: float
    solve_seconds: float
    solver: str
    solver_version: str
    message: str = ""
    certificate: Certificate | None = None
    _program: LinearProgram | None = field(default=None, compare=False)
    _x: FloatArray | None = field(default=None, compare=False)

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
        _write(self._program, self._x)

    def to_dict(self) -> dict[str, Any]:
        """The solution as JSON; infinite numbers become None."""
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
            "message": self.message,
        }

    def __repr__(self) -> str:
        value = "none" if self.objective is None else f"{self.objective:.9g}"
        return (
            f"Solution(status={self.status!r}, objective={value}, bound={self.bound:.9g}, gap={self.gap:.3g}, "
            f"build_seconds={self.build_seconds:.3g}, solve_seconds={self.solve_seconds:.3g}, "
            f"solver='{self.solver} {self.solver_version}')"
        )


def relative_gap(objective: float | None, bound: float) -> float:
    """``|objective - bound| / |objective|``, 0 when they agree, infinite when either is missing or infinite."""
    if objective is None or not (math.isfinite(objective) and math.isfinite(bound)):
        return math.inf
    if agree(objective, bound):
        return 0.0
    return abs(objective - bound) / abs(objective) if objective else math.inf


def formulation(problem: str) -> ModuleType:
    """The module ``formulations.<paper>.<problem>``.

    It has ``build(instance) -> ConcreteModel`` and ``read(model) -> Plan``, and where they are of use

    - ``write(model, plan)``, to start a mixed-integer search from a plan;
    - ``bound(instance, value) -> float``, the instance's bound that follows from a bound on the model's
      objective, where that is a transform of the instance's (a reciprocal, say) or its values are whole;
    - ``solve(instance, options) -> Solution``, a faster way than solving the one model, on HiGHS; or,
      with ``ANY_SOLVER = True``, the procedure for every solver, where no one model states the problem.

    Raises
    ------
    InstanceError
        When there is no such problem; the nearest name is suggested.
    """
    instance_type(problem)
    return importlib.import_module(f"formulations.{problem}")


def build(instance: AnyInstance) -> pyo.ConcreteModel:
    """The exact Pyomo model of ``instance``; ``model.instance`` remembers what it was built from."""
    with paused_garbage_collection():
        model = formulation(instance.problem).build(instance)
    model.instance = instance
    return model


def read(model: pyo.ConcreteModel) -> Plan:
    """The plan in the variable values of a model made by :func:`build`.

    Raises
    ------
    ValueError
        When the model was not made by :func:`build`, or its variables have no values.
    """
    instance = getattr(model, "instance", None)
    if not isinstance(instance, Instance):
        raise ValueError("this model was not built from an instance, so there is no plan to read")
    plan: Plan = formulation(instance.problem).read(model)
    return plan


def solve(
    instance_or_model: AnyInstance | pyo.ConcreteModel,
    *,
    solver: str = "highs",
    time_limit: float | None = None,
    mip_gap: float = 0.0,
    threads: int = 1,
    seed: int = 0,
    start: Plan | None = None,
    session: Session | None = None,
) -> Solution:
    """Solve an instance, or a Pyomo model, to proven optimality.

    Parameters
    ----------
    instance_or_model : Instance or ConcreteModel
        An instance of any problem; or a linear Pyomo model, for example one from :func:`build`
        with constraints added.  A model's variables keep their values: use ``Solution.load``.
    solver : str
        "highs", or any solver that Pyomo drives ("scip", "gurobi", "cbc", ...).
    time_limit : float, optional
        Limit for each solver run, s.
    mip_gap : float
        Relative gap at which the search may stop.  The default, 0, asks for a proof.
    threads, seed : int
        Passed to the solver, as is the gap, where Pyomo's interface to it has a name for them.
    start : Plan, optional
        A plan to start a mixed-integer search from (HiGHS; problems whose formulation has
        ``write``).
    session : Session, optional
        Keeps a HiGHS object between calls, so that a sequence of similar models is solved warm.
        It brings its own limits; the options above must then be left at their defaults.

    Returns
    -------
    Solution

    Raises
    ------
    ModelError
        When the model is not linear or holds numbers that no solver takes at their value.
    SolverNotFound
        When ``solver`` is not installed; the message says what to install.
    PlanError
        When ``start`` does not fit the instance.
    """
    options = Options(solver, time_limit, mip_gap, threads, seed)
    if session is not None and options != Options():
        raise ValueError("a session brings its own solver, limits, threads and seed: leave those options out")
    if isinstance(instance_or_model, Instance):
        module = formulation(instance_or_model.problem)
        if start is not None:
            instance_or_model.objective(start)
        special = getattr(module, "solve", None)
        only_way = getattr(module, "ANY_SOLVER", False)
        if only_way and (session is not None or start is not None):
            raise ValueError(f"{instance_or_model.problem} is not solved by one model: leave session and start out")
        if special is not None and session is None and start is None and (solver == "highs" or only_way):
            solution: Solution = special(instance_or_model, options)
            return solution
        return solve_built(instance_or_model, options, start=start, session=session)
    if not isinstance(instance_or_model, pyo.Block):
        raise TypeError(f"solve takes an instance or a Pyomo model, got {type(instance_or_model).__name__}")
    return _solve_model(instance_or_model, options, session)


def solve_built(
    instance: AnyInstance, options: Options, *, start: Plan | None = None, session: Session | None = None
) -> Solution:
    """Solve an instance by building its whole model and solving that once."""
    began = time.perf_counter()
    module = formulation(instance.problem)
    model = build(instance)
    program = translate(model)
    initial = None
    if start is not None:
        if not hasattr(module, "write"):
            raise ValueError(f"{instance.problem} does not take a start plan")
        module.write(model, start)
        initial = np.array([v.value if v.value is not None else 0.0 for v in program.variables])
    translated = time.perf_counter()
    result, name, version = run(model, program, options, session, initial)
    returned = time.perf_counter()
    if hasattr(module, "bound"):
        result = replace(result, bound=module.bound(instance, result.bound))
    plan = None
    if result.x is not None:
        _write(program, result.x)
        plan = module.read(model)
    overhead = translated - began + (returned - translated - result.seconds)
    solution = judged(
        instance,
        plan,
        result,
        build_seconds=lambda: overhead + time.perf_counter() - returned,
        solver=name,
        solver_version=version,
        program=program,
    )
    # A bound that the instance raises, to a whole number say, can prove a plan that the search did not.
    raised = hasattr(module, "bound") and solution.objective is not None and agree(solution.objective, solution.bound)
    return replace(solution, status="optimal") if raised else solution


def judged(
    instance: AnyInstance,
    plan: Plan | None,
    result: Result,
    *,
    build_seconds: Any,
    solver: str,
    solver_version: str,
    program: LinearProgram | None = None,
) -> Solution:
    """The solution of an instance: its own verdict on the plan beside the proven bound."""
    status, message, objective = result.status, result.message, None
    if plan is not None:
        broken = instance.violations(plan)
        if broken:
            message += f"; the plan read from the model breaks {', '.join(map(str, broken[:3]))} and is not used"
            status, plan = "unknown", None
        else:
            objective = instance.objective(plan)
            if status == "optimal" and not agree(objective, result.bound):
                status = "feasible"
                message += "; the plan's own value is not at the bound"
    return Solution(
        status=status,
        plan=plan,
        objective=objective,
        bound=result.bound,
        sense=instance.sense,
        build_seconds=build_seconds(),
        solve_seconds=result.seconds,
        solver=solver,
        solver_version=solver_version,
        message=message,
        certificate=result.certificate,
        _program=program,
        _x=result.x if plan is not None else None,
    )


def _solve_model(model: pyo.ConcreteModel, options: Options, session: Session | None) -> Solution:
    began = time.perf_counter()
    program = translate(model)
    result, name, version = run(model, program, options, session)
    plan = None
    if result.x is not None and isinstance(getattr(model, "instance", None), Instance):
        before = [(v, v.value, v.stale) for v in program.variables]
        try:
            _write(program, result.x)
            plan = read(model)
        finally:
            for variable, value, stale in before:
                variable.set_value(value, skip_validation=True)
                variable.stale = stale
    objective = None if result.x is None else program.objective(result.x)
    status, message = result.status, result.message
    if status == "optimal" and objective is not None and not agree(objective, result.bound):
        status = "feasible"
    return Solution(
        status=status,
        plan=plan,
        objective=objective,
        bound=result.bound,
        sense=program.sense,
        build_seconds=time.perf_counter() - began - result.seconds,
        solve_seconds=result.seconds,
        solver=name,
        solver_version=version,
        message=message,
        certificate=result.certificate,
        _program=program,
        _x=result.x,
    )


def run(
    model: pyo.ConcreteModel,
    program: LinearProgram,
    options: Options,
    session: Session | None = None,
    start: FloatArray | None = None,
) -> tuple[Result, str, str]:
    """Result of one solver run on a model and its translation, with the solver's name and version."""
    if options.solver == "highs":
        result = (session or options.session()).run(program, start=start)
        return result, "highs", highs.version()
    return external.run(model, program, options)


def _write(program: LinearProgram, x: FloatArray) -> None:
    for variable, value, whole in zip(program.variables, x.tolist(), program.integer.tolist(), strict=True):
        if not variable.fixed:
            variable.set_value(round(value) if whole else value, skip_validation=True)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
