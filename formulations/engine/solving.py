"""One function from an instance, or a model, to a solution that can be trusted.

``solve`` builds the model, hands it to a solver, checks what comes back, reads the plan, and lets
the *instance* say what the plan is worth.  Status, bound and proof travel with the value.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyomo.environ as pyo

from formulations.engine import clock, external, highs
from formulations.engine.highs import SECOND_LOOK, Result, Session
from formulations.engine.linear import (
    POINT_TOLERANCE,
    LinearProgram,
    ModelError,
    paused_garbage_collection,
    translate,
)
from formulations.engine.options import Options
from formulations.engine.polishing import accepted, sharpened
from formulations.engine.protocol import formulation
from formulations.engine.scaling import scaled
from formulations.engine.solution import ONE_MODEL, Solution, judged, write_point
from formulations.engine.vipr import NODES, GivenUp, certificate_of, implied
from formulations.methods import AUTO, GaveUp, Method, method_of, methods, refusal
from formulations.methods.beginning import plan_of_heuristic
from instances.base import Instance, Plan, Sense, agree
from instances.schema import JOBS, FloatArray

__all__ = ["build", "certify", "read", "run", "solve", "solve_by_method", "solve_one_model", "unsolved"]

AnyInstance = Instance[Any]


def build(instance: AnyInstance) -> pyo.ConcreteModel:
    """Build the exact Pyomo model of ``instance``; ``model.instance`` remembers what it was built from."""
    with paused_garbage_collection(), clock.building():
        model = formulation(instance.problem).build(instance)
    model.instance = instance
    return model


def read(model: pyo.ConcreteModel) -> Plan:
    """Read the plan from the variable values of a model made by :func:`build`.

    Raises
    ------
    ValueError
        When the model was not made by :func:`build`, or its variables have no values.
    """
    instance = _instance_of(model)
    if instance is None:
        raise ValueError("this model was not built from an instance, so there is no plan to read")
    for variable in model.component_data_objects(pyo.Var, active=True):
        if variable.value is None:
            raise ValueError(f"variable {variable.name!r} has no value: solve the model, or load a solution into it")
    return formulation(instance.problem).read(model)


def _instance_of(model: pyo.ConcreteModel) -> AnyInstance | None:
    """Return the instance that a model was built from; None for a model that is not from :func:`build`."""
    instance = getattr(model, "instance", None)
    return instance if isinstance(instance, Instance) else None


def solve(
    instance_or_model: AnyInstance | pyo.ConcreteModel,
    *,
    solver: str = "highs",
    time_limit: float | None = None,
    mip_gap: float = 0.0,
    threads: int = 1,
    seed: int = 0,
    start: Plan | None = None,
    verify: bool | None = None,
    session: Session | None = None,
    method: str = AUTO,
    certificate: bool = False,
) -> Solution:
    """Solve an instance, or a Pyomo model, to proven optimality.

    Parameters
    ----------
    instance_or_model : Instance or ConcreteModel
        An instance of any problem; or a linear Pyomo model, for example one from :func:`build`
        with constraints added.  A model's variables keep their values: use ``Solution.load``.
    solver : str
        "highs", "cp-sat" (programs of bounded whole variables), or any solver that Pyomo drives ("scip", "gurobi",
        "cbc", ...).
    time_limit : float, optional
        Seconds for all of it: building the model, every solver run, reading the plan.  When they are over, the
        answer is what is known by then.
    mip_gap : float
        Relative gap at which the search may stop.  The default, 0, asks for a proof.
    threads, seed : int
        Passed to the solver, as is the gap, where Pyomo's interface to it has a name for them.
    start : Plan, optional
        A plan to start a mixed-integer search from (HiGHS and CP-SAT; problems whose formulation has
        ``write``).  The way of solving is the same with and without it.
    verify : bool, optional
        Whether a mixed-integer optimum, or infeasibility, is checked a second way.  By default it is where
        that is quick beside the first run of HiGHS; True insists, within ``time_limit``, whichever the solver;
        False leaves it at one run.  ``Solution.proof`` says what came of it.
    session : Session, optional
        Keeps a HiGHS object between calls, so that a sequence of similar models is solved warm, each
        as one model.  It brings its own limits; the options above must then be left at their defaults.
    method : str
        Name, or short name, of one of the methods that :func:`formulations.methods` lists for an instance.  "auto"
        takes the first, and the next where it gives up; a method asked for by name that gives up leaves the status
        "unknown".
    certificate : bool
        Whether what is proven is proven once more by a certificate (:func:`certify`), in the time that is left.

    Returns
    -------
    Solution
        Its ``method`` says which was taken.  Three are arguments before any method, whichever was asked for: "no jobs",
        where nothing has to be decided, "no plan", where the data alone say why there is none, and "at hand", where a
        plan that needs no search meets such a bound.

    Raises
    ------
    MethodError
        When there is no such method, or it does not apply to the instance; those that do are named.
    ModelError
        When the model is not linear or holds numbers that no solver takes at their value.
    SolverNotFound
        When ``solver`` is not installed; the message says what to install.
    PlanError
        When ``start`` does not fit the instance.

    Warns
    -----
    SolverDisagreement
        When two runs contradict each other; what stands is that of which a plan is the proof.
    """
    options = Options(solver, time_limit, mip_gap, threads, seed, start, verify)
    if not certificate:
        return _solved(instance_or_model, options, session, method)
    with clock.within(time_limit):
        return certify(instance_or_model, _solved(instance_or_model, options, session, method))


def _solved(
    instance_or_model: AnyInstance | pyo.ConcreteModel, options: Options, session: Session | None, method: str
) -> Solution:
    if session is not None and options != Options(start=options.start):
        raise ValueError("a session brings its own solver, limits, threads and seed: leave those options out")
    if not isinstance(instance_or_model, Instance):
        if not isinstance(instance_or_model, pyo.Block):
            raise TypeError(f"solve takes an instance or a Pyomo model, got {type(instance_or_model).__name__}")
        if options.start is not None:
            raise ValueError("start belongs to an instance: write a plan into a model's variables instead")
        if method != AUTO:
            raise ValueError("method belongs to an instance: a model is solved as it is")
        with clock.within(options.time_limit):
            return _solve_model(instance_or_model, options, session)
    instance = instance_or_model
    offered = formulation(instance.problem)
    wanted = method_of(instance.problem, method)
    if session is not None and wanted is not None and wanted.name != ONE_MODEL:
        raise ValueError(f"a session solves one model: leave method out, got {method!r}")
    if offered.any_solver and (session is not None or options.start is not None):
        raise ValueError(f"{instance.problem} is not solved by one model: leave session and start out")
    if options.start is not None:
        instance.objective(options.start)
        if offered.write is None:
            raise ValueError(f"{instance.problem} does not take a start plan")
    began = time.perf_counter()
    if instance.dims.get(JOBS) == 0 and not instance.violations(instance.nothing()):
        return _argued(instance, "no jobs", "there are no jobs", instance.nothing(), 0.0, began)
    if offered.explain is not None and offered.explain_first:
        why = offered.explain(instance)
        if why is not None:
            return _argued(instance, "no plan", why, None, math.inf if instance.sense == "min" else -math.inf, began)
    with clock.within(options.time_limit):
        try:
            if session is None and offered.write is not None:
                bound: float | None = None
                for known in _at_hand(instance, options.start):
                    options = replace(options, start=known)
                    if bound is None and offered.trivial_bound is not None:
                        bound = offered.trivial_bound(instance)
                    if bound is not None and agree(instance.objective(known), bound):
                        why = "the plan at hand meets the bound of all plans"
                        return _argued(instance, "at hand", why, known, bound, began)
            if session is not None:
                return solve_one_model(instance, options, session=session)
            return solve_by_method(instance, options, wanted)
        except clock.TimeIsUp:
            return _out_of_time(instance, options, began)


def certify(
    instance_or_model: AnyInstance | pyo.ConcreteModel,
    solution: Solution,
    *,
    time_limit: float | None = None,
    nodes: int = NODES,
) -> Solution:
    """Prove an optimum, or that there is no plan, by a certificate that anyone can check in exact fractions.

    What is proven is the program of :func:`build`, with rows as wide as the judge's tolerance, or the model as it is,
    with the very numbers that it has.

    Parameters
    ----------
    instance_or_model : Instance or ConcreteModel
    solution : Solution
        What :func:`solve` returned for it.
    time_limit : float, optional
        For all of it, s.
    nodes : int
        Linear programs that the search may solve.

    Returns
    -------
    Solution
        With the proof "certificate", the certificate as text in ``vipr``, and the bound that it proves; or the solution
        as it was, with the reason in its message.

    Raises
    ------
    SolverError
        When the certificate proves that nothing is as good as the plan is said to be.
    """
    began = time.perf_counter()
    if solution.status not in ("optimal", "infeasible"):
        return _uncertified(solution, "nothing is proven")
    try:
        with clock.within(time_limit):
            return _certified(instance_or_model, solution, nodes, began)
    except GivenUp as given_up:
        return _uncertified(solution, str(given_up))
    except clock.TimeIsUp:
        return _uncertified(solution, "the time was over before the search began")


def _certified(
    instance_or_model: AnyInstance | pyo.ConcreteModel, solution: Solution, nodes: int, began: float
) -> Solution:
    instance = instance_or_model if isinstance(instance_or_model, Instance) else None
    if instance is not None and formulation(instance.problem).any_solver:
        raise GivenUp("no one model states the problem")
    try:
        model = instance_or_model if instance is None else build(instance)
        program = translate(model)
    except ModelError as error:
        raise GivenUp(str(error)) from None
    x = None if solution.status == "infeasible" else _best_point(instance, model, program, solution)
    comments = [] if instance is None else [f"problem {instance.problem}", f"instance {instance.digest}"]
    proven = certificate_of(program, x, nodes=nodes, comments=comments)
    bound = solution.bound
    if proven.bound is not None:
        bound = in_instance(instance, program, solution, below(proven.bound, program.sense))
        assert solution.objective is not None
        if not agree(solution.objective, bound, size=scaled(program)[1].size if instance is None else 0.0):
            raise GivenUp(f"the certificate proves the bound {bound!r} only")
    return replace(
        solution,
        bound=bound,
        proof="certificate",
        vipr=proven.text,
        build_seconds=solution.build_seconds + time.perf_counter() - began,
    )


def _uncertified(solution: Solution, why: str) -> Solution:
    return replace(solution, message=f"{solution.message}; no certificate: {why}".removeprefix("; "))


def below(bound: Fraction, sense: Sense) -> float:
    """Return the double nearest to a bound that is not beyond it."""
    near = float(bound)
    if sense == "min":
        return near if near <= bound else math.nextafter(near, -math.inf)
    return near if near >= bound else math.nextafter(near, math.inf)


def in_instance(instance: AnyInstance | None, program: LinearProgram, solution: Solution, bound: float) -> float:
    """Return a bound on a program's objective as one on the instance's, where there is one."""
    if instance is None:
        return bound
    offered = formulation(instance.problem)
    if offered.slack is not None and solution.certificate is not None:
        wider = offered.slack(instance, program, solution.certificate.row_duals)
        bound += wider if program.sense == "max" else -wider
    return bound if offered.bound is None else offered.bound(instance, bound)


def _best_point(
    instance: AnyInstance | None, model: pyo.ConcreteModel, program: LinearProgram, solution: Solution
) -> FloatArray:
    """Return a best point of a program: that of the solution, that of its plan, or one that is found again."""
    if solution._x is not None and len(solution._x) == program.num_cols:
        return solution._x
    offered = None if instance is None else formulation(instance.problem)
    start = None
    if offered is not None and offered.write is not None and solution.plan is not None:
        offered.write(model, solution.plan)
        start = np.array([0.0 if v.value is None else v.value for v in program.variables])
        x = Session().run(program.with_fixed(program.integer | implied(program), start)).x
        if x is not None:
            return x
    x = Session(verify=False).run(program, start=start).x
    if x is None:
        raise GivenUp("no best point of the model was found in time")
    return x


def solve_by_method(instance: AnyInstance, options: Options, wanted: Method | None = None) -> Solution:
    """Solve an instance by the method that is wanted, or by the first of those that apply that does not give up."""
    able = [one for one in methods(instance) if one.any_solver or options.solver == "highs"]
    if wanted is not None:
        able = [one for one in able if one.name == wanted.name]
        if not able:
            raise refusal(instance, wanted, options.solver)
    began, why = time.perf_counter(), ""
    for one in able:
        try:
            solution = one.solve(instance, options)
        except GaveUp as given_up:
            why = str(given_up)
            options = options if given_up.start is None else replace(options, start=given_up.start)
        else:
            return solution if wanted is None else replace(solution, method=one.name)
    solution = unsolved(instance, why, solver=options.solver, began=began, start=options.start)
    return replace(solution, method=able[-1].name)


def _at_hand(instance: AnyInstance, start: Plan | None) -> Iterator[Plan]:
    """Yield plans that are had sooner than a search, each better: a start or the trivial one, then a heuristic's."""
    best = min if instance.sense == "min" else max
    last = None
    for known in (formulation(instance.problem).trivial, plan_of_heuristic):
        found = None if known is None else known(instance)
        fine = [plan for plan in (start, found) if plan is not None and not instance.violations(plan)]
        start = best(fine, key=instance.objective) if fine else start
        if start is not None and start is not last:
            yield (last := start)


def _argued(instance: AnyInstance, method: str, why: str, plan: Plan | None, bound: float, began: float) -> Solution:
    """Make the solution of an instance that an argument settles: a plan at this bound, or that there is none."""
    result = Result("infeasible" if plan is None else "optimal", None, bound, None, 0.0, why, "argument")
    return judged(instance, plan, result, began=began, solver="none", solver_version="", method=method)


def solve_one_model(instance: AnyInstance, options: Options, *, session: Session | None = None) -> Solution:
    """Solve an instance by building its whole model and solving that once."""
    began = time.perf_counter()
    offered = formulation(instance.problem)
    try:
        model = build(instance)
        program = translate(model)
    except clock.TimeIsUp:
        return _out_of_time(instance, options, began)
    initial = None
    if options.start is not None and offered.write is not None:
        offered.write(model, options.start)
        initial = np.array([v.value if v.value is not None else 0.0 for v in program.variables])
    result, name, version = run(model, program, options, session, initial)

    def plan_at(x: FloatArray) -> Plan:
        write_point(program, x)
        return offered.read(model)

    plan, result = accepted(instance, program, result, plan_at, options)
    if offered.slack is not None and result.certificate is not None:
        wider = offered.slack(instance, program, result.certificate.row_duals)
        result = replace(result, bound=result.bound + (wider if program.sense == "max" else -wider))
    if offered.bound is not None:
        result = replace(result, bound=offered.bound(instance, result.bound))
    solution = judged(
        instance,
        plan,
        result,
        began=began,
        solver=name,
        solver_version=version,
        method=ONE_MODEL,
        program=program,
        start=options.start,
    )
    # A bound that the instance raises, to a whole number say, can prove a plan that the search did not.
    raised = offered.bound is not None and solution.objective is not None
    if raised and solution.objective is not None and agree(solution.objective, solution.bound):
        return replace(solution, status="optimal")
    return solution


def unsolved(
    instance: AnyInstance,
    why: str,
    *,
    solver: str,
    began: float,
    solve_seconds: float = 0.0,
    start: Plan | None = None,
) -> Solution:
    """Make the solution of an instance whose solve came to no end: plan and bound are those at hand without a search.

    Parameters
    ----------
    instance : Instance
    why : str
        The message.
    solver : str
    began : float
        ``time.perf_counter()`` when the work on the instance began.
    solve_seconds : float
        How much of that was the solver's.
    start : Plan, optional
    """
    at_hand = formulation(instance.problem).trivial_bound
    nothing = -math.inf if instance.sense == "min" else math.inf
    bound = nothing if at_hand is None else at_hand(instance)
    result = Result("unknown", None, bound, None, solve_seconds, why, "" if math.isinf(bound) else "argument")
    return judged(instance, None, result, began=began, solver=solver, solver_version="", start=start)


def _out_of_time(instance: AnyInstance, options: Options, began: float) -> Solution:
    why = "time limit: the model was not built in time"
    return unsolved(instance, why, solver=options.solver, began=began, start=options.start)


def _solve_model(model: pyo.ConcreteModel, options: Options, session: Session | None) -> Solution:
    """Solve a user's model, whose objective has the word; its variables keep their values."""
    began = time.perf_counter()
    try:
        program = translate(model)
    except clock.TimeIsUp:
        return _untranslated(model, options, began)
    result, name, version = run(model, program, options, session)
    instance = _instance_of(model)

    def refused(x: FloatArray) -> bool:
        return instance is not None and bool(instance.violations(_plan_at(model, program, x)))

    if options.solver == "highs":
        result = sharpened(program, result, options, refused)
    objective = None if result.x is None else program.objective(result.x)
    size = scaled(program)[1].size
    proven = result.status != "optimal" or objective is None or agree(objective, result.bound, size=size)
    return Solution(
        status=result.status if proven else "feasible",
        plan=None if result.x is None or instance is None else _plan_at(model, program, result.x),
        objective=objective,
        bound=result.bound,
        sense=program.sense,
        build_seconds=time.perf_counter() - began - result.seconds,
        solve_seconds=result.seconds,
        solver=name,
        solver_version=version,
        message=f"{result.message}{_doubt(program, result, options)}",
        certificate=result.certificate,
        proof=result.proof,
        _program=program,
        _x=result.x,
    )


def _untranslated(model: pyo.ConcreteModel, options: Options, began: float) -> Solution:
    """Make the solution of a model that there was no time to look at."""
    senses = [goal.sense for goal in model.component_data_objects(pyo.Objective, active=True)]
    sense: Sense = "max" if senses[:1] == [pyo.maximize] else "min"
    return Solution(
        status="unknown",
        plan=None,
        objective=None,
        bound=-math.inf if sense == "min" else math.inf,
        sense=sense,
        build_seconds=time.perf_counter() - began,
        solve_seconds=0.0,
        solver=options.solver,
        solver_version="",
        message="time limit: the model was not translated in time",
    )


def _doubt(program: LinearProgram, result: Result, options: Options) -> str:
    """Return why a result cannot be trusted that no instance judges; empty where nothing speaks against it.

    A point between rows that are nearly parallel, or with terms far apart, may be within a solver's tolerance of them
    all and far from any point that meets them; and where there is such a point, a solver may overlook one that does.
    """
    if result.x is not None:
        missed = program.missed_row(result.x)
        if missed is None:
            return ""
        row, by = missed
        return (
            f"; it cannot be trusted: constraint {program.row_name(row)!r} is missed by {by:.1g}, a solver's tolerance"
        )
    if result.status != "infeasible" or result.proof not in ("one run", "two runs"):
        return ""
    limit = max(SECOND_LOOK[0], SECOND_LOOK[1] * result.seconds)
    wider = replace(options, time_limit=limit, verify=False).session().run(program.with_wider_rows(POINT_TOLERANCE))
    return (
        "; it cannot be trusted: with limits wider by a solver's tolerance there is a point"
        if wider.x is not None
        else ""
    )


def _plan_at(model: pyo.ConcreteModel, program: LinearProgram, x: FloatArray) -> Plan:
    before = [(variable, variable.value, variable.stale) for variable in program.variables]
    try:
        write_point(program, x)
        return read(model)
    finally:
        for variable, value, stale in before:
            variable.set_value(value, skip_validation=True)
            variable.stale = stale


def run(
    model: pyo.ConcreteModel,
    program: LinearProgram,
    options: Options,
    session: Session | None = None,
    start: FloatArray | None = None,
) -> tuple[Result, str, str]:
    """Run one solver on a model and its translation; return the result, and the solver's name and version."""
    if options.solver == "highs":
        result = (session or options.session()).run(program, start=start)
        return result, "highs", highs.version()
    result, name, version = external.run(model, program, options, start)
    if options.verify and program.is_mip and result.status in ("optimal", "infeasible"):
        left = None if options.time_limit is None else options.time_limit - result.seconds
        if left is None or left > 0:
            result = replace(options, time_limit=left).session().check(program, result)
    return result, name, version
