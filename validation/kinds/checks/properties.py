"""What a heuristic is put to: the rules of its problem, and what is promised of it."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from instances.base import Instance, agree
from instances.schema import JOBS
from validation.catalogue import Heuristic, entry
from validation.kernel.asking import alike
from validation.kernel.gaps import beats
from validation.kernel.judging import Status
from validation.kinds.checks.report import shown
from validation.kinds.checks.subject import CheckError, Inquiry, NotApplicable, Subject
from validation.kinds.promises import BreaksOnly, Holds, Monotone, NeverWorseThan, Promise, Ratio, Relabelled
from validation.testing.transform import permuted, rescaled, spread

__all__ = ["Check", "all_promises", "checks", "listed"]

AnyInstance = Instance[Any]

LARGEST_UNIT = 30
"""Units are changed by up to this power of two, about 1e9, either way."""
UNITS_DRAWN = 2
"""Powers of two that are drawn for each unit of an instance, beside 2 itself."""


@dataclass(frozen=True)
class Check:
    """One property: the inquiry ``run(subject, instance)`` raises when the heuristic breaks it there.

    Attributes
    ----------
    name, statement : str
    since : str
        Version of the library that added it.
    run : callable
        An inquiry, which returns False where the instance says nothing about the property, so that it is not
        counted.
    """

    name: str
    statement: str
    since: str
    run: Callable[[Subject, AnyInstance], Inquiry[bool]]


def checks(problem: str, promises: Promise | Iterable[Promise] = ()) -> Iterator[Check]:
    """Yield the checks that a heuristic of ``problem`` is put to, with those of its promises."""
    yield Check("returns_a_plan", "the plan has the right type and survives JSON", "0.1.0", _returns_a_plan)
    yield Check("feasible", "the plan breaks no rule of the instance", "0.1.0", _feasible)
    yield Check("not_better_than_optimum", "no plan is better than the proven bound", "0.1.0", _not_better)
    yield Check("leaves_the_instance", "the instance is not changed", "0.1.0", _leaves_the_instance)
    yield Check("repeatable", "the same call gives the same plan", "0.1.0", _repeatable)
    if entry(problem).rescalings:
        yield Check("rescaled", "other units rescale the value and nothing else", "0.1.0", _rescaled)
    for promise in dict.fromkeys(listed(promises)):
        yield _promised(promise)


def listed(promises: Promise | Iterable[Promise]) -> list[Promise]:
    """Return one promise or several as a list."""
    return [promises] if isinstance(promises, Promise) else list(promises)


def all_promises(heuristic: Heuristic) -> list[Promise]:
    """Return what the catalogue promises of a heuristic."""
    return [*([Ratio(1.0)] if heuristic.optimal else []), *heuristic.promises]


def _promised(promise: Promise) -> Check:
    """Make the check of a promise."""
    where = f" {promise.when}" if isinstance(promise, Ratio | NeverWorseThan | BreaksOnly) and promise.when else ""
    if isinstance(promise, Ratio):
        if promise.factor == 1:
            return Check("optimal", f"the value is the optimum{where}", "0.3.0", _ratio(promise))
        said = f"the value is within a factor of {promise.factor:g} of the optimum{where}"
        return Check("ratio", said, "0.1.0", _ratio(promise))
    if isinstance(promise, Monotone):
        return Check("monotone", "more resources never give a worse value", "0.1.0", _monotone)
    if isinstance(promise, NeverWorseThan):
        said = f"the value is never worse than that of {_named(promise.other)}{where}"
        return Check("never_worse", said, "0.3.0", _never_worse(promise))
    if isinstance(promise, BreaksOnly):
        said = f"no rule is broken but {', '.join(promise.rules)}" if promise.rules else "no rule is broken"
        return Check("breaks_only", f"{said}{where}", "0.3.0", _breaks_only(promise))
    if isinstance(promise, Holds):
        return Check("holds", promise.statement, "0.3.0", _holds(promise))
    if promise.ties:
        return Check("relabelled", "renumbering leaves the value as it is", "0.1.0", _relabelled(promise))
    said = "where no numbers are alike, renumbering leaves the value as it is"
    return Check("relabelled", said, "0.3.0", _relabelled(promise))


def _returns_a_plan(subject: Subject, instance: AnyInstance) -> Inquiry[bool]:
    plan = (yield from subject.answer(instance)).plan
    if plan is None:
        if subject.heuristic.declines:
            return False
        yield from subject.blamed(instance)
        raise CheckError("returned None")
    again = type(plan).from_dict(json.loads(json.dumps(plan.to_dict(), allow_nan=False)))
    if again != plan:
        raise CheckError("the plan changes when it is written as JSON and read back")
    return True


def _feasible(subject: Subject, instance: AnyInstance) -> Inquiry[bool]:
    answer = yield from subject.answer(instance)
    if answer.status == Status.INFEASIBLE:
        yield from subject.blamed(instance)
        raise CheckError(f"breaks {answer.reason}")
    return answer.status == Status.FEASIBLE


def _not_better(subject: Subject, instance: AnyInstance) -> Inquiry[bool]:
    value = yield from subject.value(instance)
    if value is None:
        return False
    solution = subject.oracle(instance)
    if solution is None:
        return False
    if solution.status == "infeasible":
        raise CheckError(f"found a feasible plan worth {value:g} where the model is infeasible")
    if beats(instance.sense, value, solution.bound):
        raise CheckError(f"found {value:.9g}, better than the proven bound {solution.bound:.9g}: a wrong oracle")
    return True


def _leaves_the_instance(subject: Subject, instance: AnyInstance) -> Inquiry[bool]:
    yield from subject.plan(instance)
    if subject.firsts[instance.digest].changed:
        raise CheckError("changed the instance that it was given")
    return True


def _repeatable(subject: Subject, instance: AnyInstance) -> Inquiry[bool]:
    # Between the first answer and this one come those to other instances.
    first = yield from subject.plan(instance)
    second = yield from subject.second(instance)
    if first != second:
        raise CheckError(f"two calls gave two plans: {shown(first)} and {shown(second)}")
    reordered = subject.reordered().get(instance.digest)
    if reordered is not None and (reordered.reason or reordered.plan != first):
        other = reordered.reason or shown(reordered.plan)
        raise CheckError(f"after other instances it gave {shown(first)}, after others than these {other}")
    return True


def _rescaled(subject: Subject, instance: AnyInstance) -> Inquiry[bool]:
    value = yield from subject.value(instance)
    if value is None:
        return False
    rng = np.random.default_rng(int(instance.digest[:8], 16))
    # A power of two changes no digit of a binary number, so ties stay ties.
    exponents = [
        (unit, exponent)
        for unit in subject.entry.rescalings
        for exponent in (1, *rng.integers(-LARGEST_UNIT, LARGEST_UNIT + 1, UNITS_DRAWN).tolist())
    ]
    others = [rescaled(instance, unit.fields, 2.0**exponent) for unit, exponent in exponents]
    yield from subject.foresee(others)
    for (unit, exponent), other in zip(exponents, others, strict=True):
        wanted = value * 2.0 ** (exponent * unit.power)
        found = yield from subject.value(other)
        if found is None or not agree(found, wanted):
            raise CheckError(
                f"worth {value:g}, but {_number(found)} with {' and '.join(unit.fields)} times 2**{exponent}, "
                f"must be {wanted:g}"
            )
    return True


def _ratio(promise: Ratio) -> Callable[[Subject, AnyInstance], Inquiry[bool]]:
    def run(subject: Subject, instance: AnyInstance) -> Inquiry[bool]:
        if promise.where is not None and not promise.where(instance):
            return False
        value = yield from subject.value(instance)
        if value is None:
            return False
        solution = subject.oracle(instance)
        if solution is None or solution.status != "optimal" or solution.objective is None:
            return False
        better, worse = (solution.objective, value) if instance.sense == "min" else (value, solution.objective)
        if worse > promise.factor * better and not agree(worse, promise.factor * better):
            raise CheckError(f"worth {value:g}, the optimum is {solution.objective:g}: not within {promise.factor:g}")
        return True

    return run


def _monotone(subject: Subject, instance: AnyInstance) -> Inquiry[bool]:
    enlarge = subject.entry.enlarge
    if enlarge is None:
        raise NotApplicable(f"{subject.entry.problem} does not say what more resources are")
    value = yield from subject.value(instance)
    if value is None:
        return False
    more = yield from subject.value(enlarge(instance))
    if more is None or beats(instance.sense, value, more):
        raise CheckError(f"worth {value:g}, but {_number(more)} with more resources")
    return True


def _relabelled(promise: Relabelled) -> Callable[[Subject, AnyInstance], Inquiry[bool]]:
    def run(subject: Subject, instance: AnyInstance) -> Inquiry[bool]:
        if not subject.entry.symmetric:
            raise NotApplicable(f"the numbering means something in every dimension of {subject.entry.problem}")
        rng = np.random.default_rng(int(instance.digest[:8], 16))
        if not promise.ties:
            apart = spread(instance, rng)
            if apart is None:
                return False
            instance = apart
        value = yield from subject.value(instance)
        other = yield from subject.value(
            functools.reduce(lambda changed, dim: permuted(changed, dim, rng), subject.entry.symmetric, instance)
        )
        if (value is None) != (other is None) or (value is not None and other is not None and not agree(value, other)):
            raise CheckError(f"worth {_number(value)}, but {_number(other)} when renumbered")
        return value is not None

    return run


def _never_worse(promise: NeverWorseThan) -> Callable[[Subject, AnyInstance], Inquiry[bool]]:
    def run(subject: Subject, instance: AnyInstance) -> Inquiry[bool]:
        if promise.where is not None and not promise.where(instance):
            return False
        other = subject.beside(promise.other)
        theirs = (yield from other.value(instance)) if (yield from other.shows_a_plan(instance)) else None
        if theirs is None:
            return False
        mine = yield from subject.value(instance)
        if mine is None or beats(instance.sense, theirs, mine):
            raise CheckError(f"worth {_number(mine)}, but {_named(promise.other)} is worth {theirs:g}")
        return True

    return run


def _breaks_only(promise: BreaksOnly) -> Callable[[Subject, AnyInstance], Inquiry[bool]]:
    def run(subject: Subject, instance: AnyInstance) -> Inquiry[bool]:
        if promise.where is not None and not promise.where(instance):
            return False
        plan = yield from subject.plan(instance)
        if plan is None:
            if promise.rules:
                return False
            yield from subject.blamed(instance)
            raise CheckError("returned None")
        broken = [violation for violation in instance.violations(plan) if violation.rule not in promise.rules]
        if broken:
            if not promise.rules:
                yield from subject.blamed(instance)
            raise CheckError("breaks " + ", ".join(map(str, broken[:3])))
        return True

    return run


def _holds(promise: Holds) -> Callable[[Subject, AnyInstance], Inquiry[bool]]:
    def run(subject: Subject, instance: AnyInstance) -> Inquiry[bool]:
        plan = yield from subject.plan(instance)
        # Of no jobs there is nothing to state.
        if plan is None or instance.dims.get(JOBS) == 0:
            return False
        if not promise.test(instance, plan, *([alike()] if promise.stream else [])):
            raise CheckError(f"it is not so that {promise.statement}")
        return True

    return run


def _named(other: str | Callable[..., Any]) -> str:
    return other if isinstance(other, str) else getattr(other, "__name__", "the other")


def _number(value: float | None) -> str:
    return "no plan" if value is None else f"{value:g}"
