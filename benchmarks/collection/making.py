"""What is found out about an instance of the collection: the best plan, a bound and its proof, the heuristics' values.

What a record has is never computed again.  Solving and proving are two steps: a bound that rests on solver runs becomes
a proven one as soon as there are prices that prove it, or the checker's own search does.
"""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import cache
from typing import Any, TypeVar

import formulations
from benchmarks.collection.recipe import Draw
from formulations import Solution
from formulations.engine import clock
from formulations.engine.highs import Session
from formulations.engine.vipr import GivenUp, certificate_of
from formulations.methods.patterns import Patterns
from instances.aryl.placement import ArylPlacement
from instances.base import Instance, Plan, agree
from instances.reference.stated import STATED
from instances.schema import Scalar, declarations
from validation import catalogue
from validation.errors import StudyError
from validation.kernel.asking import answer
from validation.kernel.gaps import beats
from validation.kernel.judging import Status
from validation.kernel.provenance import memory_of_machine, provenance, today, version
from validation.kinds.collection.judging import Checked
from validation.kinds.collection.prices import prices as prices_of
from validation.kinds.collection.store import Collection
from validation.kinds.collection.submission import closed, graded, submit_certificate, submit_plan, submit_run

__all__ = ["again", "ask", "certify", "prove", "solve"]

T = TypeVar("T")

EASY = 5.0
"""Seconds of the first run up to which a closed instance is easy."""
SECOND = 5.0
"""Seconds for each second way."""
ASKED = 20.0
"""Seconds for each heuristic."""
SEED = 0
"""Of random heuristics."""


def solve(collection: Collection, draw: Draw, instance: Instance[Any]) -> bool:
    """Solve an instance, run the heuristics on it, and write its record; False where it has no plan.

    Parameters
    ----------
    collection : Collection
    draw : Draw
    instance : Instance
    """
    solution, runs = _runs(instance, draw.seconds)
    answers = _answers(instance)
    plan, value, found_by = solution.plan, solution.objective, _by(solution)
    for name, (status, found, worth) in answers.items():
        if status != "feasible" or worth is None:
            continue
        if beats(instance.sense, worth, solution.bound):
            raise AssertionError(f"{draw.name}: {name} is worth {worth!r}, beyond the bound {solution.bound!r}")
        if value is None or (beats(instance.sense, worth, value)):
            plan, value, found_by = found, worth, name
    if plan is None or value is None or not math.isfinite(value):
        return False
    bound = solution.bound if math.isfinite(solution.bound) else None
    record: dict[str, Any] = {
        "name": draw.name,
        "problem": instance.problem,
        "sense": instance.sense,
        "digest": instance.digest,
        "class": "easy" if runs[0]["seconds"] <= EASY else "hard",
        "origin": dict(draw.origin) | _decision(instance),
        "licence": draw.licence,
        "size": {name: int(length) for name, length in instance.dims.items()},
        "features": _scalars(instance),
        "best": {
            "value": value,
            "exact": None,
            "found_by": found_by,
            "date": today(),
            "version": version("scheduling-formulations"),
        },
        "bound": {"value": bound, "exact": None, "proof": {"kind": "runs", "runs": runs}},
        "heuristics": _told_of(answers),
        "history": [],
    }
    collection.write(graded(record), instance=instance, plan=plan)
    return True


def ask(collection: Collection, name: str) -> bool:
    """Ask the heuristics again, and write what they say into the record; False where it says so already."""
    record, instance = collection.record(name), collection.instance(name)
    now = graded({**record, "heuristics": _told_of(_answers(instance))})
    if all(_same(record["heuristics"].get(one), told) for one, told in now["heuristics"].items()):
        return False
    collection.write(now)
    return True


def prove(collection: Collection, name: str, *, seconds: float, pricing: float) -> str:
    """Let the checker say what the best plan of a record is worth, and prove its bound where it can.

    Parameters
    ----------
    collection : Collection
    name : str
    seconds : float
        Processor time of the checker's search, so that checking all of the collection takes minutes.
    pricing : float
        Processor time in which prices must be found.

    Returns
    -------
    str
        The kind of proof that the record has then.
    """
    record = collection.record(name)
    kind = str(record["bound"]["proof"]["kind"])
    instance, plan = collection.instance(name), collection.plan(name)
    checked = Checked(instance)
    if record["best"]["exact"] is not None and (
        kind in ("enumeration", "argument", "certificate") or _priced(collection, name, checked)
    ):
        return kind
    record = {**record, "best": {**record["best"], "exact": str(checked.value(plan))}}
    for proof, prices, found in _proofs(name, plan, instance, checked, seconds, pricing):
        value, known = record["best"]["value"], record["bound"]["value"]
        if beats(record["sense"], value, float(found)) and not agree(value, float(found), size=1.0):
            raise AssertionError(f"{name}: worth {value!r}, beyond the bound {float(found)!r} by {proof['kind']}")
        # What solvers took is still to be known where their word is not needed any more.
        proof["runs"] = record["bound"]["proof"].get("runs", [])
        bound = {"value": float(found), "exact": str(found), "proof": proof}
        if known is None or closed({**record, "bound": bound}) or beats(record["sense"], known, float(found)):
            collection.write(graded({**record, "bound": bound}), prices=prices)
            return str(proof["kind"])
        print(f"{name}: {proof['kind']} prove {float(found)!r}, and {known!r} is known")
    collection.write(graded(record))
    return kind


def again(collection: Collection, name: str, *, seconds: float) -> None:
    """Try an open instance for longer, as a submission like any other.

    Parameters
    ----------
    collection : Collection
    name : str
    seconds : float
    """
    instance = collection.instance(name)
    solution = formulations.solve(instance, time_limit=seconds)
    if solution.plan is not None:
        print(f"{name}: {submit_plan(collection, name, solution.plan, by=_by(solution)).message}")
    if math.isfinite(solution.bound):
        print(f"{name}: {submit_run(collection, name, _told(solution, {'time_limit': seconds})).message}", flush=True)


def certify(collection: Collection, name: str, *, seconds: float) -> str:
    """Certify that the best plan of a record is optimal, where nothing but runs stand for its bound.

    Parameters
    ----------
    collection : Collection
    name : str
    seconds : float
        For all of it.

    Returns
    -------
    str
        What became of it, in words; empty where there is nothing to certify.
    """
    record, instance = collection.record(name), collection.instance(name)
    if record["bound"]["proof"]["kind"] != "runs" or record["class"] == "open" or instance.problem not in STATED:
        return ""
    value = record["best"]["value"]
    known = Solution(
        "optimal", collection.plan(name), value, value, instance.sense, 0.0, 0.0, "none", "", proof="argument"
    )
    if isinstance(instance, ArylPlacement):
        text, message = _over_patterns(instance, seconds)
    else:
        solution = formulations.certify(instance, known, time_limit=seconds)
        text, message = solution.vipr, solution.message
    if not text:
        return message
    try:
        return submit_certificate(collection, name, text).message
    except StudyError as error:
        return str(error)


def _over_patterns(instance: ArylPlacement, seconds: float) -> tuple[str, str]:
    """Return a certificate of the program over patterns, which is far smaller, or why there is none."""
    program = Patterns(instance).both
    try:
        with clock.within(seconds):
            result = Session(time_limit=clock.left()).run(program)
            comments = [f"problem {instance.problem}", f"instance {instance.digest}"]
            return certificate_of(program, result.x, comments=comments).text, ""
    except (GivenUp, clock.TimeIsUp) as error:
        return "", f"no certificate: {error}"


def _priced(collection: Collection, name: str, checked: Checked) -> bool:
    """Return whether there are prices that the checker takes."""
    if collection.record(name)["bound"]["proof"]["kind"] != "prices":
        return False
    try:
        checked.bound(collection.read(name, "prices"), collection.plan(name))
    except StudyError:
        return False
    return True


def _proofs(
    name: str, plan: Plan, instance: Instance[Any], checked: Checked, seconds: float, pricing: float
) -> Iterator[tuple[dict[str, Any], dict[str, Any] | None, Fraction]]:
    """Proofs that need no solver's word, each with its prices, if any, and what it proves."""
    if instance.sense == "min" and checked.value(plan) == 0:
        # Nothing is worth less.
        yield {"kind": "argument"}, None, Fraction(0)
    prices = _within(pricing, lambda: prices_of(instance, checked.bound, plan))
    if prices is not None:
        yield {"kind": "prices", "file": f"{name}.prices.json.gz"}, prices, checked.bound(prices, plan)
    found = _within(seconds, checked.searched)
    if found is not None:
        yield {"kind": "enumeration"}, None, found


def _within(seconds: float, call: Callable[[], T]) -> T | None:
    """Return what a call returns in so many seconds of processor time, if anything."""

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        return call()
    except TimeoutError:
        return None
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _runs(instance: Instance[Any], seconds: float) -> tuple[Solution, list[dict[str, Any]]]:
    """Return the solution, and what was run: the exact side, and a second way where it is quick."""
    solution = formulations.solve(instance, time_limit=seconds)
    runs = [_told(solution, {"time_limit": seconds})]
    offered = formulations.formulation(instance.problem)
    linear = instance.problem.startswith("gavel.") and instance.problem != "gavel.round_assignment"
    if solution.status != "optimal" or solution.method == "no jobs" or (linear and solution.proof == "prices"):
        return solution, runs
    if not offered.any_solver and solution.solver != "none":
        other = formulations.solve(instance, solver="scip", time_limit=SECOND)
        runs.append(_told(other, {"time_limit": SECOND}))
        if beats(instance.sense, solution.objective or 0.0, other.bound) or (
            other.objective is not None and beats(instance.sense, other.objective, solution.bound)
        ):
            raise AssertionError(f"two solvers disagree: {instance.to_dict()}")
        if other.status == "optimal":
            return solution, runs
    second = formulations.verify(instance, solution, time_limit=SECOND)
    if second.verdict == "contradicted":
        raise AssertionError(f"{second.message}: {instance.to_dict()}")
    if second.way != "none":
        told = {"status": second.status, "bound": second.bound, "seconds": round(second.seconds, 3)}
        runs.append(_run("highs", version("highspy"), {"time_limit": SECOND}, second.way, told))
    return solution, runs


def _told(solution: Solution, options: Mapping[str, Any]) -> dict[str, Any]:
    bound = solution.bound if math.isfinite(solution.bound) else None
    seconds = round(solution.build_seconds + solution.solve_seconds, 3)
    told = {"status": solution.status, "bound": bound, "seconds": seconds, "proof": solution.proof}
    return _run(solution.solver, solution.solver_version, options, solution.method, told)


def _by(solution: Solution) -> str:
    """Who found a plan: the solver, or what needed none."""
    return solution.method if solution.solver == "none" else f"{solution.solver} {solution.solver_version}".strip()


def _run(solver: str, number: str, options: Mapping[str, Any], method: str, told: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "solver": solver,
        "version": number,
        "options": dict(options),
        "method": method,
        "machine": _machine(),
        **told,
    }


def _answers(instance: Instance[Any]) -> dict[str, tuple[str, Plan | None, float | None]]:
    """Status, plan and value of each heuristic of the problem."""
    heuristics = catalogue.entry(instance.problem).heuristics
    return {name: answer_of(instance, heuristic) for name, heuristic in heuristics.items()}


def _told_of(answers: Mapping[str, tuple[str, Plan | None, float | None]]) -> dict[str, Any]:
    return {name: {"value": worth, "gap": None, "status": status} for name, (status, _, worth) in answers.items()}


def _same(before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> bool:
    """Return whether a heuristic's answer is worth the same but for rounding."""
    if before is None or before["status"] != now["status"]:
        return False
    worth = before["value"], now["value"]
    return worth == (None, None) or (None not in worth and agree(*worth))


def answer_of(instance: Instance[Any], heuristic: catalogue.Heuristic) -> tuple[str, Plan | None, float | None]:
    """Status, plan and value of a heuristic."""
    found = answer(instance, heuristic, SEED, seconds=ASKED, memory=memory_of_machine() // 2)
    if found.status == Status.FAILED:
        print(f"{instance.problem}: {heuristic.name} fails: {found.reason}")
    if found.status != Status.FEASIBLE:
        return found.status, None, None
    # A plan that never ends is worth what JSON has no number for.
    return found.status, found.plan, found.value if math.isfinite(found.value) else None


@cache
def _machine() -> str:
    return str(provenance(1)["machine"]["processor"])


def _decision(instance: Instance[Any]) -> dict[str, Any]:
    """Which decision of a replay it is."""
    told = instance.origin or {}
    return {"decision": told["decision"]} if "decision" in told else {}


def _scalars(instance: Instance[Any]) -> dict[str, Any]:
    """Return the instance's numbers and choices that are no tables; None stands for infinity, as in its file."""
    scalars = [name for name, declared in declarations(type(instance)).items() if isinstance(declared, Scalar)]
    values = {name: getattr(instance, name) for name in scalars}
    return {name: None if value == math.inf else value for name, value in values.items()}
