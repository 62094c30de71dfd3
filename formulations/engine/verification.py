"""Solutions that are found once more, by a second way that shares as little as possible with the first.

- The reference (:mod:`instances.reference`), which knows no model, judges the plan of an instance, and looks at all
  plans of a small one, so that a model that is wrong does not confirm itself.  What it does not reach:
- A linear program's prices are taken at their word, as fractions, and what they prove is added up without
  rounding (:mod:`formulations.engine.exact`).
- Anything else is built anew as one model; a mixed-integer one is searched without presolve and symmetry, at another
  scale; or by another solver, which is asked for by name.
- What no one model states is solved by the method that checks the others.
"""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import pyomo.environ as pyo

from formulations.engine import clock
from formulations.engine.exact import exact_bound, exact_optimum
from formulations.engine.highs import Result, Session, SolverError
from formulations.engine.linear import LinearProgram, ModelError, translate
from formulations.engine.options import Options
from formulations.engine.scaling import scaled
from formulations.engine.solution import Solution
from formulations.engine.solving import below, build, in_instance, solve
from formulations.engine.vipr import stated
from formulations.methods import choice
from instances.base import Instance, agree
from instances.files import text_of
from instances.reference import PROBLEMS, Malformed, Reference, TooLarge, vipr
from instances.schema import FloatArray

__all__ = ["Verdict", "Verification", "Way", "verify"]

Verdict = Literal["confirmed", "open", "contradicted"]
"""Whether both ways prove the same; or the second does not prove enough in its time; or one of the two is wrong."""

Way = Literal["certificate", "reference", "fractions", "second search", "second procedure", "none"]
"""How a solution was found once more; "none" where nothing was proven that could be."""

SEARCHED = 2.0
"""Seconds that the reference may search: what it does not reach in these it seldom reaches."""


@dataclass(frozen=True)
class Verification:
    """The outcome of a second way.

    Attributes
    ----------
    verdict : "confirmed", "open" or "contradicted"
    way : "certificate", "reference", "fractions", "second search", "second procedure" or "none"
    status : str
        What the second way proves: the status of its solution; of fractions, that of the first.
    objective, bound : float, optional
        Its plan's value and its bound, None where there is none.  Fractions and the reference find no plan: theirs
        is the solution's, which the reference judges again.
    seconds : float
    message : str
        In words.
    """

    verdict: Verdict
    way: Way
    status: str
    objective: float | None
    bound: float | None
    seconds: float
    message: str

    def to_dict(self) -> dict[str, Any]:
        """Return the verification as JSON."""
        return dict(vars(self))


def verify(
    instance_or_model: Instance[Any] | pyo.ConcreteModel,
    solution: Solution,
    *,
    time_limit: float | None = None,
    solver: str = "highs",
) -> Verification:
    """Find the solution of an instance, or of a model, once more, by a second way.

    Parameters
    ----------
    instance_or_model : Instance or ConcreteModel
    solution : Solution
        What :func:`formulations.solve` returned for it.
    time_limit : float, optional
        Of the second way, s.
    solver : str
        Another one than HiGHS, such as "cp-sat", searches the whole model at once, in the place of every other way: a
        word that shares no solver with the first.

    Returns
    -------
    Verification
        "open" where the first way proved nothing, too.

    Raises
    ------
    SolverNotFound
    """
    began = time.monotonic()
    instance = instance_or_model if isinstance(instance_or_model, Instance) else None
    if solution.status not in ("optimal", "infeasible"):
        return Verification("open", "none", solution.status, None, None, 0.0, "nothing was proven")
    if solver != "highs":
        return _second(instance_or_model, solution, began, time_limit, solver)
    if solution.vipr:
        return _by_certificate(instance_or_model, solution, began)
    referred = None if instance is None else _by_reference(instance, solution, began, time_limit)
    if referred is not None and referred.verdict != "open":
        return referred
    second = _second(instance_or_model, solution, began, time_limit)
    # What the reference's prices do not bear out a model cannot bear out for itself.
    return referred if referred is not None and second.verdict == "confirmed" else second


def _by_certificate(
    instance_or_model: Instance[Any] | pyo.ConcreteModel, solution: Solution, began: float
) -> Verification:
    """Check the solution's certificate, and that what it states is the program; the reference judges the plan."""
    instance = instance_or_model if isinstance(instance_or_model, Instance) else None
    bound: float | None = None

    def told(verdict: Verdict, message: str) -> Verification:
        seconds = time.monotonic() - began
        return Verification(verdict, "certificate", solution.status, solution.objective, bound, seconds, message)

    # The names of variables are those of a model that is there.
    model = build(instance) if instance is not None else instance_or_model
    program = translate(model)
    try:
        proven = vipr.check(solution.vipr.splitlines())
        found = stated(program).bound(proven)
    except (Malformed, vipr.Refuted) as error:
        return told("contradicted", f"the certificate does not hold: {error}")
    if instance is not None and instance.problem in PROBLEMS and solution.plan is not None:
        reference, plan = Reference(text_of(instance)), json.dumps(solution.plan.to_dict())
        broken = reference.violations(plan)
        if broken or not agree(float(reference.value(plan)), solution.objective or 0.0):
            return told("contradicted", f"the reference: the plan breaks {broken}, worth {reference.value(plan)}")
    if solution.objective is None:
        return told(*(("confirmed", "there is no point") if proven.infeasible else ("open", "it proves a bound only")))
    if proven.infeasible:
        return told("contradicted", "the certificate proves that there is no point")
    bound = in_instance(instance, program, solution, below(Fraction(found), program.sense))
    size = scaled(program)[1].size if instance is None else 0.0
    message = f"in exact fractions, {proven.derived} derivations prove the bound {bound!r}"
    return told("confirmed" if agree(solution.objective, bound, size=size) else "open", message)


def _second(
    instance_or_model: Instance[Any] | pyo.ConcreteModel,
    solution: Solution,
    began: float,
    time_limit: float | None,
    solver: str = "highs",
) -> Verification:
    """Find the solution once more without the reference."""
    instance = instance_or_model if isinstance(instance_or_model, Instance) else None
    own = solver == "highs"
    again = choice(instance.problem).again if own and instance is not None else None
    program = solution._program if own and again is None and solution.certificate is not None else None
    if program is not None and solution.objective is not None:
        return _by_fractions(instance, program, solution, began, math.inf if time_limit is None else time_limit)
    way: Way = "second search" if again is None else "second procedure"
    try:
        with clock.within(time_limit):
            if again is not None:
                second = again.solve(instance, Options(verify=False))
            elif own:
                second = solve(instance_or_model, session=_SecondWay(verify=False))
            else:
                second = solve(instance_or_model, solver=solver, verify=False)
    except (SolverError, ModelError, clock.TimeIsUp) as error:
        why = str(error) or "time limit"
        return Verification("open", way, "unknown", None, None, time.monotonic() - began, why)
    told = second.to_dict()
    verdict, message = _compared(solution, second)
    return Verification(
        verdict, way, second.status, told["objective"], told["bound"], time.monotonic() - began, message
    )


def _by_reference(
    instance: Instance[Any], solution: Solution, began: float, limit: float | None
) -> Verification | None:
    """Let the reference judge the plan, and look for a better one or take prices; None where neither is to be had."""
    if instance.problem not in PROBLEMS:
        return None
    value = bound = None

    def told(verdict: Verdict, message: str) -> Verification:
        seconds = time.monotonic() - began
        return Verification(verdict, "reference", solution.status, value, bound, seconds, f"the reference: {message}")

    try:
        reference = Reference(text_of(instance))
        merits = []
        if solution.plan is not None:
            plan = json.dumps(solution.plan.to_dict())
            broken, merits = reference.violations(plan), reference.merits(plan)
            value = float(merits[0])
            if broken:
                return told("contradicted", f"the plan breaks {', '.join(broken)}")
            if solution.objective is None or not agree(solution.objective, value):
                return told(
                    "contradicted", f"the plan is worth {value!r}, and is said to be worth {solution.objective!r}"
                )
        try:
            best = reference.best_merits(SEARCHED if limit is None else min(limit, SEARCHED))
        except TooLarge:
            if not reference.problem.linear or solution.plan is None:
                return None
            prices = _prices(instance, solution, limit)
            if prices is None:
                return None
            bound, left = float(reference.bound(prices)), reference.unproven(plan, prices)
            said = f"the plan is worth {value!r}, and prices prove the bound {bound!r}"
            if value is not None and _beats(value, bound, solution.sense):
                return told("contradicted", said)
            proven = value is not None and agree(value, bound) and not left
            return told("confirmed" if proven else "open", f"{said}; {left[0]}" if left else said)
    except Malformed as error:
        return told("contradicted", str(error))
    bound = float(best[0])
    if not merits:
        if math.isinf(bound):
            return told("confirmed", "there is no plan")
        value = bound
        return told("contradicted", f"there is a plan that is worth {value!r}")
    size = 0.0 if solution.certificate is None else solution.certificate.size
    largest = max(map(abs, map(float, best[1:])), default=0.0)
    same = agree(float(merits[0]), bound, size=size) and all(
        agree(float(one), float(other), size=largest) for one, other in zip(merits[1:], best[1:], strict=True)
    )
    said = (
        f"the plan is worth {', '.join(map(str, map(float, merits)))}, the best {', '.join(map(str, map(float, best)))}"
    )
    return told("confirmed" if same else "contradicted", said)


def _prices(instance: Instance[Any], solution: Solution, limit: float | None) -> dict[str, Any] | None:
    """Find prices that may prove that a policy's plan is best; None where there is no time for them."""
    # Found when they are asked for: nothing else of a solve needs the policies.
    from formulations.gavel.duals import policy_prices

    try:
        with clock.within(limit):
            return policy_prices(instance, solution.plan)  # type: ignore[arg-type]
    except (SolverError, clock.TimeIsUp, KeyError):
        return None


class _SecondWay(Session):
    """A session in which mixed-integer programs are searched the second way at once."""

    def _run(self, program: LinearProgram, start: FloatArray | None, interior_rows: int, presolve: bool) -> Result:
        if program.is_mip:
            return self._second_way(program, start)
        return super()._run(program, start, interior_rows, presolve)


def _by_fractions(
    instance: Instance[Any] | None, program: LinearProgram, solution: Solution, began: float, limit: float
) -> Verification:
    """Prove a bound by the solution's own prices, or else by those of a basis, with nothing rounded."""
    assert solution.certificate is not None
    assert solution.objective is not None
    size = solution.certificate.size
    # The plan of an instance is judged by the instance; the point of a model by its rows alone, and prices agree
    # with a point that has missed one by less than the solver's tolerance, however far off the optimum is then.
    missed = program.missed_row(solution._x) if instance is None and solution._x is not None else None
    proven, what, reached = exact_bound(program, solution.certificate.row_duals), "prices", missed is None
    bound = _of_instance(instance, program, solution, proven)
    if missed is not None or bound is None or not agree(solution.objective, bound, size=size):
        exact = exact_optimum(program, seconds=limit)
        proven, what, reached = exact.bound, "basis", reached or exact.proven
        bound = _of_instance(instance, program, solution, proven) if proven is not None else bound
    verdict: Verdict = "open"
    if bound is None:
        message = "no prices prove a bound without rounding"
    else:
        message = f"in exact fractions, the {what} of the program prove the bound {bound!r}"
        if not reached:
            message += ", and no point that keeps to its rows is known"
        elif agree(solution.objective, bound, size=size):
            verdict = "confirmed"
        elif missed is not None:
            verdict = "contradicted"
            message += f", and the point, which misses a row by {missed[1]:.1e}, is worth {solution.objective!r}"
        elif _beats(solution.objective, bound, solution.sense):
            verdict, message = "contradicted", f"{message}, and the plan is worth {solution.objective!r}"
    return Verification(verdict, "fractions", solution.status, None, bound, time.monotonic() - began, message)


def _of_instance(
    instance: Instance[Any] | None, program: LinearProgram, solution: Solution, proven: Fraction | None
) -> float | None:
    """Turn a bound on the program's objective into one on the instance's."""
    if proven is None:
        return None
    return in_instance(instance, program, solution, float(proven))


def _compared(first: Solution, second: Solution) -> tuple[Verdict, str]:
    """Compare two solutions of one instance; a plan is proof, whoever claims what."""
    told = [f"{one.status}, objective {one.objective}, bound {one.bound}" for one in (first, second)]
    both = f"first {told[0]}; second {told[1]}"
    for one, other in ((first, second), (second, first)):
        if one.objective is not None and (
            other.status == "infeasible" or _beats(one.objective, other.bound, one.sense)
        ):
            return "contradicted", both
    if first.status != second.status:
        return "open", both
    if first.objective is None or second.objective is None or agree(first.objective, second.objective):
        return "confirmed", both
    return "contradicted", both


def _beats(value: float, bound: float, sense: str) -> bool:
    return (value < bound if sense == "min" else value > bound) and not agree(value, bound)
