"""Property checks of a heuristic: either it held on N instances, or here is the smallest that breaks it.

One generator of checks feeds :func:`check_heuristic`, :func:`parametrize_with_checks` for pytest,
and ``optgap check``.  Hypothesis searches for an instance that breaks a check and shrinks it.
"""

from __future__ import annotations

import copy
import functools
import html
import inspect
import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import hypothesis
import numpy as np
from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis.strategies import SearchStrategy

import formulations
from instances.base import Instance, Plan, agree
from instances.files import save
from validation import catalogue
from validation.catalogue import Entry, Heuristic, entry
from validation.gaps import beats
from validation.testing import strategies
from validation.testing.neighbours import shrunk
from validation.testing.transform import permuted, rescaled
from validation.workers import describe

__all__ = [
    "Check",
    "CheckError",
    "CheckReport",
    "CheckResult",
    "CheckStatus",
    "Monotone",
    "NoFeasiblePlan",
    "NotApplicable",
    "Promise",
    "Ratio",
    "Relabelled",
    "Subject",
    "check_heuristic",
    "checks",
    "parametrize_with_checks",
]

AnyInstance = Instance[Any]

LARGEST_UNIT = 30
"""Units are changed by up to this power of two, about 1e9, either way."""
UNITS_DRAWN = 2
"""Powers of two that are drawn for each unit of an instance, beside 2 itself."""


class CheckError(AssertionError):
    """A heuristic breaks a rule; the message says which, on what, and how far."""


@dataclass(frozen=True)
class Ratio:
    """The promise that a plan's value is within ``factor`` of the optimum: at most ``factor`` times
    it for "min", at least 1 / ``factor`` of it for "max".
    """

    factor: float

    def __post_init__(self) -> None:
        if not self.factor >= 1:
            raise ValueError(f"factor: got {self.factor!r}, must be at least 1")


@dataclass(frozen=True)
class Monotone:
    """The promise that more resources never give a worse value, where the problem knows how to add some."""


@dataclass(frozen=True)
class Relabelled:
    """The promise that renumbering jobs, servers or types leaves the value as it is.

    Heuristics that break ties by index cannot promise it.
    """


Promise = Ratio | Monotone | Relabelled
CheckStatus = Literal["passed", "failed", "expected failure", "skipped"]


@dataclass(frozen=True)
class Subject:
    """A heuristic under test, with its problem's entry."""

    heuristic: Heuristic
    entry: Entry

    def plan(self, instance: AnyInstance) -> Plan | None:
        """Its plan; a random heuristic gets the same stream at every call."""
        if "rng" in inspect.signature(self.heuristic.function).parameters:
            plan: Plan | None = self.heuristic.function(instance, rng=np.random.default_rng(0))
            return plan
        return self.heuristic.function(instance)  # type: ignore[no-any-return]

    def value(self, instance: AnyInstance) -> float | None:
        """Value of its plan, None without a feasible one."""
        plan = self.plan(instance)
        if plan is None or instance.violations(plan):
            return None
        return instance.objective(plan)


@dataclass(frozen=True)
class Check:
    """One property: ``run(subject, instance)`` raises when the heuristic breaks it there.

    Attributes
    ----------
    name, statement : str
    since : str
        Version of the library that added it.
    run : callable
        Returns False where the instance says nothing about the property, so that it is not
        counted.
    """

    name: str
    statement: str
    since: str
    run: Callable[[Subject, AnyInstance], bool]


@dataclass(frozen=True)
class CheckResult:
    """The outcome of a check.

    Attributes
    ----------
    name, statement : str
    status : "passed", "failed", "expected failure" or "skipped"
    examples : int
        Instances on which the check really ran.
    reason : str
        Why it failed or was skipped.
    instance : Instance, optional
        The smallest instance found on which it fails.
    plan : Plan, optional
        What the heuristic returns there.
    path : Path, optional
        Where that instance was saved.
    without_plan : int
        Instances that have no feasible plan, on which the heuristic is not judged.
    """

    name: str
    statement: str
    status: CheckStatus
    examples: int
    reason: str = ""
    instance: AnyInstance | None = None
    plan: Any = None
    path: Path | None = None
    without_plan: int = 0


@dataclass(frozen=True)
class CheckReport:
    """All results for a heuristic; prints as a table."""

    problem: str
    heuristic: str
    results: tuple[CheckResult, ...]

    @property
    def ok(self) -> bool:
        """Whether no check failed and at least one ran."""
        return not self.failed and any(result.examples for result in self.results)

    @property
    def failed(self) -> tuple[CheckResult, ...]:
        return tuple(result for result in self.results if result.status == "failed")

    def __str__(self) -> str:
        lines = [f"{self.heuristic} on {self.problem}"]
        told: dict[tuple[str, AnyInstance | None], str] = {}
        for result in self.results:
            lines.append(f"  {result.status:<16} {result.name:<24} {result.examples:>5} instances  {result.statement}")
            if result.without_plan:
                lines.append(f"    {result.without_plan} more instances have no feasible plan and are not counted")
            first = told.setdefault((result.reason, result.instance), result.name)
            if first != result.name and result.instance is not None:
                # A heuristic that raises fails most checks alike.
                lines.append(f"    as in {first}")
                continue
            if result.reason:
                lines.append(f"    {result.reason}")
            if result.instance is not None:
                lines.append(f"    smallest instance: {json.dumps(result.instance.to_dict())}")
            if result.plan is not None:
                lines.append(f"    its plan there: {_shown(result.plan)}")
            if result.path is not None:
                lines.append(f"    saved as {result.path}")
        if not any(result.examples for result in self.results):
            lines.append("  no check ran on any instance: this is a failure")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{result.status}</td><td>{result.name}</td><td>{result.examples}</td>"
            f"<td>{html.escape(result.statement)}</td><td>{html.escape(result.reason)}</td></tr>"
            for result in self.results
        )
        head = "".join(f"<th>{name}</th>" for name in ("status", "check", "instances", "what must hold", "reason"))
        title = html.escape(f"{self.heuristic} on {self.problem}")
        return f"<table><caption>{title}</caption><tr>{head}</tr>{rows}</table>"


def check_heuristic(
    problem: str,
    heuristic: str | Callable[..., Any] | Heuristic,
    *,
    promises: Promise | Iterable[Promise] = (),
    max_examples: int = 100,
    seed: int = 0,
    output: str | os.PathLike[str] | None = None,
    strategy: SearchStrategy[Any] | None = None,
) -> CheckReport:
    """Look for an instance on which a heuristic breaks a rule.

    Parameters
    ----------
    problem : str
    heuristic : str, callable or Heuristic
        A name of the catalogue, "module:function", or a function from instance to plan; a
        :class:`validation.Heuristic` declares known failures.
    promises : Promise or iterable of Promise
        What it claims beyond the rules: ``Ratio(2)``, ``Monotone()``, ``Relabelled()``.
    max_examples : int
        Instances that each check is tried on.
    seed : int
        Of the search.
    output : path, optional
        Directory for the smallest failing instances, as JSON.
    strategy : SearchStrategy, optional
        What to draw the instances from; the problem's own by default.

    Returns
    -------
    CheckReport

    Raises
    ------
    CatalogueError
        When there is no such problem.
    """
    if max_examples < 1:
        raise ValueError(f"max_examples: got {max_examples!r}, must be at least 1")
    name, given = catalogue.heuristic(problem, heuristic, declines=False)
    subject = Subject(given, entry(problem))
    results = []
    drawn = strategy if strategy is not None else strategies.strategy(problem)
    for check in checks(problem, promises):
        result = _search(check, subject, drawn, max_examples, seed)
        if output is not None and result.instance is not None:
            folder = Path(output)
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"{problem}-{check.name}.json"
            save(result.instance, path)
            result = replace(result, path=path)
        results.append(result)
    return CheckReport(problem, name, tuple(results))


def parametrize_with_checks(
    problem: str,
    *,
    promises: Promise | Iterable[Promise] = (),
    max_examples: int = 100,
    seed: int = 0,
    strategy: SearchStrategy[Any] | None = None,
) -> Any:
    """Decorate a pytest function so that it runs once for each check of a problem.

    The function takes ``check`` and calls it with its heuristic::

        @parametrize_with_checks("aryl.reclaim", promises=Ratio(4))
        def test_my_heuristic(check):
            check(my_heuristic)
    """
    import pytest

    def runner(check: Check) -> Callable[[Callable[..., Any] | Heuristic], None]:
        def run(heuristic: Callable[..., Any] | Heuristic) -> None:
            _, given = catalogue.heuristic(problem, heuristic, declines=False)
            drawn = strategy if strategy is not None else strategies.strategy(problem)
            result = _search(check, Subject(given, entry(problem)), drawn, max_examples, seed)
            if result.status == "skipped":
                pytest.skip(result.reason)
            if result.status == "expected failure":
                pytest.xfail(result.reason)
            if result.status == "failed":
                shown = json.dumps(result.instance.to_dict()) if result.instance is not None else "none"
                plan = f"\nits plan there: {_shown(result.plan)}" if result.plan is not None else ""
                pytest.fail(f"{check.statement}: {result.reason}\nsmallest instance: {shown}{plan}", pytrace=False)

        return run

    found = list(checks(problem, promises))
    return pytest.mark.parametrize("check", [runner(check) for check in found], ids=[check.name for check in found])


def checks(problem: str, promises: Promise | Iterable[Promise] = ()) -> Iterator[Check]:
    """The checks that a heuristic of ``problem`` is put to, with those of its promises."""
    yield Check("returns_a_plan", "the plan has the right type and survives JSON", "0.1.0", _returns_a_plan)
    yield Check("feasible", "the plan breaks no rule of the instance", "0.1.0", _feasible)
    yield Check("not_better_than_optimum", "no plan is better than the proven bound", "0.1.0", _not_better)
    yield Check("leaves_the_instance", "the instance is not changed", "0.1.0", _leaves_the_instance)
    yield Check("repeatable", "the same call gives the same plan", "0.1.0", _repeatable)
    if entry(problem).rescalings:
        yield Check("rescaled", "other units rescale the value and nothing else", "0.1.0", _rescaled)
    for promise in [promises] if isinstance(promises, Promise) else promises:
        if isinstance(promise, Ratio):
            yield Check(
                "ratio", f"the value is within a factor of {promise.factor:g} of the optimum", "0.1.0", _ratio(promise)
            )
        elif isinstance(promise, Monotone):
            yield Check("monotone", "more resources never give a worse value", "0.1.0", _monotone)
        else:
            yield Check("relabelled", "renumbering leaves the value as it is", "0.1.0", _relabelled)


# --- the checks ---------------------------------------------------------------------------------


def _returns_a_plan(subject: Subject, instance: AnyInstance) -> bool:
    plan = subject.plan(instance)
    if plan is None:
        if subject.heuristic.declines:
            return False
        if formulations.solve(instance).status == "infeasible":
            raise NoFeasiblePlan
        raise CheckError("returned None")
    if not isinstance(plan, instance.plan_type):
        raise CheckError(f"returned {type(plan).__name__}, must be {instance.plan_type.__name__}")
    instance.violations(plan)
    again = type(plan).from_dict(json.loads(json.dumps(plan.to_dict(), allow_nan=False)))
    if again != plan:
        raise CheckError("the plan changes when it is written as JSON and read back")
    return True


def _feasible(subject: Subject, instance: AnyInstance) -> bool:
    plan = subject.plan(instance)
    if plan is None:
        return False
    broken = instance.violations(plan)
    if broken:
        if formulations.solve(instance).status == "infeasible":
            raise NoFeasiblePlan
        raise CheckError("breaks " + ", ".join(map(str, broken[:3])))
    return True


def _not_better(subject: Subject, instance: AnyInstance) -> bool:
    value = subject.value(instance)
    if value is None:
        return False
    solution = formulations.solve(instance)
    if solution.status == "infeasible":
        raise CheckError(f"found a feasible plan worth {value:g} where the model is infeasible")
    if beats(instance.sense, value, solution.bound):
        raise CheckError(f"found {value:.9g}, better than the proven bound {solution.bound:.9g}: a wrong oracle")
    return True


def _leaves_the_instance(subject: Subject, instance: AnyInstance) -> bool:
    before = instance.digest
    subject.plan(instance)
    if type(instance).from_dict(instance.to_dict()).digest != before:
        raise CheckError("changed the instance that it was given")
    return True


def _repeatable(subject: Subject, instance: AnyInstance) -> bool:
    first, second = subject.plan(instance), subject.plan(instance)
    if first != second:
        raise CheckError(f"two calls gave two plans: {_shown(first)} and {_shown(second)}")
    return True


def _rescaled(subject: Subject, instance: AnyInstance) -> bool:
    value = subject.value(instance)
    if value is None:
        return False
    rng = np.random.default_rng(int(instance.digest[:8], 16))
    for unit in subject.entry.rescalings:
        # A power of two changes no digit of a binary number, so ties stay ties.
        for exponent in (1, *rng.integers(-LARGEST_UNIT, LARGEST_UNIT + 1, UNITS_DRAWN).tolist()):
            wanted = value * 2.0 ** (exponent * unit.power)
            other = subject.value(rescaled(instance, unit.fields, 2.0**exponent))
            if other is None or not agree(other, wanted):
                raise CheckError(
                    f"worth {value:g}, but {_number(other)} with {' and '.join(unit.fields)} times 2**{exponent}, "
                    f"must be {wanted:g}"
                )
    return True


def _ratio(promise: Ratio) -> Callable[[Subject, AnyInstance], bool]:
    def run(subject: Subject, instance: AnyInstance) -> bool:
        value = subject.value(instance)
        if value is None:
            return False
        solution = formulations.solve(instance)
        if solution.status != "optimal" or solution.objective is None:
            return False
        better, worse = (solution.objective, value) if instance.sense == "min" else (value, solution.objective)
        if worse > promise.factor * better and not agree(worse, promise.factor * better):
            raise CheckError(f"worth {value:g}, the optimum is {solution.objective:g}: not within {promise.factor:g}")
        return True

    return run


def _monotone(subject: Subject, instance: AnyInstance) -> bool:
    enlarge = subject.entry.enlarge
    if enlarge is None:
        raise NotApplicable(f"{subject.entry.problem} does not say what more resources are")
    value = subject.value(instance)
    if value is None:
        return False
    more = subject.value(enlarge(instance))
    if more is None or beats(instance.sense, value, more):
        raise CheckError(f"worth {value:g}, but {_number(more)} with more resources")
    return True


def _relabelled(subject: Subject, instance: AnyInstance) -> bool:
    if not subject.entry.symmetric:
        raise NotApplicable(f"the numbering means something in every dimension of {subject.entry.problem}")
    value = subject.value(instance)
    rng = np.random.default_rng(int(instance.digest[:8], 16))
    other = subject.value(
        functools.reduce(lambda changed, dim: permuted(changed, dim, rng), subject.entry.symmetric, instance)
    )
    if (value is None) != (other is None) or (value is not None and other is not None and not agree(value, other)):
        raise CheckError(f"worth {_number(value)}, but {_number(other)} when renumbered")
    return value is not None


def _shown(plan: Any) -> str:
    """A plan in a line, or whatever was returned in its place."""
    if isinstance(plan, Plan):
        return json.dumps(plan.to_dict())
    return "none" if plan is None else repr(plan)


def _number(value: float | None) -> str:
    return "no plan" if value is None else f"{value:g}"


# --- the search ---------------------------------------------------------------------------------


def _copy(instance: AnyInstance) -> AnyInstance:
    """One that a heuristic may spoil without spoiling the counterexample."""
    return copy.deepcopy(instance)


def _plan_there(subject: Subject, instance: AnyInstance) -> Any:
    """What the heuristic returns for an instance; None where it raises."""
    try:
        return subject.plan(_copy(instance))
    except Exception:
        return None


def _fails(check: Check, subject: Subject, instance: AnyInstance) -> bool:
    return bool(_reason(check, subject, instance))


def _reason(check: Check, subject: Subject, instance: AnyInstance) -> str:
    """Why the check fails on an instance; empty when it does not."""
    try:
        check.run(subject, _copy(instance))
    except NoFeasiblePlan:
        return ""
    except Exception as error:
        return str(error) if isinstance(error, CheckError) else describe(error)
    return ""


class NotApplicable(Exception):  # noqa: N818, it is no error
    """A check that says nothing about this problem, with the reason."""


class NoFeasiblePlan(Exception):  # noqa: N818, it is no error
    """The instance has no feasible plan, so that it says nothing about the heuristic."""


def _search(check: Check, subject: Subject, drawn: SearchStrategy[Any], max_examples: int, seed: int) -> CheckResult:
    """Run a check on instances until it fails, and shrink the instance that it fails on."""
    ran = without_plan = 0
    failing: AnyInstance | None = None

    @hypothesis.seed(seed)
    @settings(
        max_examples=max_examples,
        deadline=None,
        database=None,
        print_blob=False,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
        verbosity=Verbosity.quiet,
    )
    @given(drawn)
    def test(instance: AnyInstance) -> None:
        nonlocal ran, failing, without_plan
        try:
            counted = check.run(subject, _copy(instance))
        except NotApplicable:
            raise
        except NoFeasiblePlan:
            without_plan += 1
            return
        except Exception as error:
            # Hypothesis calls the smallest instance last, so the last one seen is the smallest.
            failing = instance
            raise CheckError(check.name) from error
        ran += counted

    def result(status: CheckStatus, why: str = "", instance: AnyInstance | None = None) -> CheckResult:
        plan = None if instance is None else _plan_there(subject, instance)
        return CheckResult(check.name, check.statement, status, ran, why, instance, plan, None, without_plan)

    try:
        test()
    except NotApplicable as why:
        return result("skipped", str(why))
    except Exception:
        if failing is None:
            raise
        ran += 1
        failing = shrunk(failing, lambda instance: _fails(check, subject, instance))
        reason = _reason(check, subject, failing)
        if check.name == "feasible" and subject.heuristic.infeasible_because:
            return result("expected failure", subject.heuristic.infeasible_because, failing)
        return result("failed", reason, failing)
    if not ran:
        if without_plan:
            return result("skipped", "no instance that was drawn has a feasible plan")
        return result("skipped", f"it gave no feasible plan on {max_examples} instances")
    return result("passed")
