"""Property checks of a heuristic: either it held on N instances, or here is the smallest that breaks it.

One generator of checks feeds :func:`check_heuristic`, :func:`parametrize_with_checks` for pytest,
and ``optgap check``.  Hypothesis draws the instances, once for all checks; one that breaks a check is
shrunk by its declarations.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import html
import json
import math
import os
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import hypothesis
import numpy as np
from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis.strategies import SearchStrategy

import formulations
from formulations import Solution
from instances.base import Instance, Plan, PlanError, agree
from instances.files import save
from instances.schema import JOBS
from validation import catalogue
from validation.catalogue import Entry, Heuristic, Imported, entry, import_object
from validation.kernel.asking import ask, ask_here, call
from validation.kernel.gaps import beats
from validation.kernel.isolation import describe
from validation.kernel.judging import Answer, Asked, Status, judge
from validation.kernel.walls import LINUX
from validation.kinds.options import CheckOptions
from validation.kinds.promises import BreaksOnly, Holds, Monotone, NeverWorseThan, Promise, Ratio, Relabelled
from validation.outputs import refuse_foreign
from validation.testing import strategies
from validation.testing.neighbours import neighbour, past_the_edge, shrunk
from validation.testing.strategies import Drawn
from validation.testing.transform import permuted, rescaled, spread

__all__ = [
    "BreaksOnly",
    "Check",
    "CheckError",
    "CheckReport",
    "CheckResult",
    "CheckStatus",
    "Holds",
    "Monotone",
    "NeverWorseThan",
    "NoFeasiblePlan",
    "NotApplicable",
    "Promise",
    "Ratio",
    "Relabelled",
    "Source",
    "Subject",
    "all_promises",
    "check_heuristic",
    "checks",
    "draw",
    "draw_instances",
    "fails",
    "parametrize_with_checks",
    "run_checks",
]

AnyInstance = Instance[Any]

LARGEST_UNIT = 30
"""Units are changed by up to this power of two, about 1e9, either way."""
UNITS_DRAWN = 2
"""Powers of two that are drawn for each unit of an instance, beside 2 itself."""
SOLVE_LIMIT = 1.0
"""Seconds for the exact side of one instance; one whose proof takes longer is not counted where it needs the proof."""
SOLVE_BUDGET = 0.1
"""Processor seconds for the exact side of each instance drawn, on average."""
SHRINK_LIMIT = 3.0
"""Processor seconds for making a failing instance small."""
SHRINK_BUDGET = 9.0
"""Processor seconds for making all failing instances of a heuristic small; one that raises fails most checks."""
TELLING = 0.5
"""Seconds after which a check that goes on tells how far it is."""
TIGHT = 0.25
"""Instances at an edge of the heuristic's plans, to each that is drawn."""
TURNS = 3
"""How often the drawn ones are gone through for them."""
FRESH = 16
"""Instances of which a process that has never called the heuristic is asked, too."""
FRESH_LIMIT = 1.0
"""Seconds for all of these answers."""
STARVING = 0.1
"""A source starves where a smaller part of its instances than this is not refused."""
TOLD_APART = 10
"""Instances of a source from which on it can starve."""
TIGHTENED, RELATED = "these, at an edge of its plans", "these, with one thing changed"
"""Where instances of checks come from that are made of drawn ones."""


class CheckError(AssertionError):
    """A heuristic breaks a rule; the message says which, on what, and how far."""


CheckStatus = Literal["passed", "failed", "expected failure", "skipped", "unfinished"]
"""What came of a check; a failure is expected where the entry says so, and one that is unfinished had passed so far."""


class Oracle:
    """The exact side of instances, each solved once, within limits.

    Parameters
    ----------
    budget : float
        Processor seconds for all of them.
    spared : set of str
        Digests of instances that are solved only where a heuristic is to be blamed.
    """

    def __init__(self, budget: float = math.inf, spared: Set[str] = frozenset()) -> None:
        self._known: dict[str, Solution | None] = {}
        self._left = budget
        self._spared = spared

    def __call__(self, instance: AnyInstance, *, needed: bool = False) -> Solution | None:
        """Solve an instance; None where that would take too long.

        Parameters
        ----------
        instance : Instance
        needed : bool
            Whether it is solved even when the time for all instances is over: to blame a heuristic.
        """
        key = instance.digest
        if self._known.get(key) is None and (needed or (self._left > 0 and key not in self._spared)):
            began = time.process_time()
            try:
                with warnings.catch_warnings():
                    # At an edge a run of a solver may err by its tolerance; what is returned is what was proven.
                    warnings.simplefilter("ignore", formulations.SolverDisagreement)
                    self._known[key] = formulations.solve(instance, time_limit=SOLVE_LIMIT)
            except formulations.ModelError:
                # Numbers that no solver takes say nothing about the heuristic.
                self._known[key] = None
            if not needed:
                self._left -= time.process_time() - began
        return self._known.get(key)


class Shrinking:
    """The processor time that is left for making failing instances small."""

    def __init__(self) -> None:
        self._left = SHRINK_BUDGET
        self._found: list[AnyInstance] = []

    def smallest(
        self, failing: AnyInstance, fails: Callable[[AnyInstance], bool], instances: list[AnyInstance]
    ) -> AnyInstance:
        """Find the smallest instance that fails, from the smallest of those drawn or found for another check."""
        instances = [*self._found, *instances]
        size = {instance.digest: len(json.dumps(instance.to_dict())) for instance in instances}
        began = time.process_time()
        end = began + max(0.0, min(SHRINK_LIMIT, self._left))
        for instance in sorted(instances, key=lambda one: size[one.digest]):
            if size[instance.digest] >= size[failing.digest]:
                break
            if (instance in self._found or time.process_time() <= end) and fails(instance):
                failing = instance
        failing = shrunk(failing, fails, stop=lambda: time.process_time() > end)
        self._left -= time.process_time() - began
        self._found.append(failing)
        return failing


@dataclass(frozen=True)
class Subject:
    """A heuristic under test, with its problem's entry."""

    heuristic: Heuristic
    entry: Entry
    oracle: Oracle = field(default_factory=Oracle)
    shrinking: Shrinking = field(default_factory=Shrinking)
    fresh: Mapping[str, Plan | None] = field(default_factory=dict)
    """Plans of a process that had not called the heuristic before, by the digest of the instance."""
    known: dict[str, Asked] = field(default_factory=dict)
    """First answers, by the digest of the instance."""

    def plan(self, instance: AnyInstance) -> Plan | None:
        """Return the first plan for an instance, made for a copy, which may be spoilt, with the one random stream.

        Raises
        ------
        CheckError
            When it fails: it raises, or returns what is no plan.
        """
        return _plan_in(self.first(instance))

    def first(self, instance: AnyInstance) -> Asked:
        """Return the first answer for an instance."""
        if instance.digest not in self.known:
            self.known[instance.digest] = self.asked(_copy(instance))
        return self.known[instance.digest]

    def plan_of(self, instance: AnyInstance) -> Plan | None:
        """Ask for a plan for this very instance, whatever was answered before."""
        return _plan_in(self.asked(instance))

    def asked(self, instance: AnyInstance) -> Asked:
        """Put the question."""
        return ask_here(instance, self.heuristic, _stream())

    def anew(self) -> Subject:
        """Return the same heuristic with nothing solved or asked before."""
        return replace(self, oracle=Oracle(), known={})

    def answer(self, instance: AnyInstance) -> Answer:
        """Ask for a plan, and have the instance judge it; whether it may decline is a check of its own.

        Raises
        ------
        CheckError
            When it fails.
        """
        answer = judge(instance, Asked(self.plan(instance)))
        if answer.status == Status.FAILED:
            raise CheckError(answer.reason)
        return answer

    def value(self, instance: AnyInstance) -> float | None:
        """Value of its plan, None without a feasible one."""
        answer = self.answer(instance)
        return answer.value if answer.status == Status.FEASIBLE else None

    def blamed(self, instance: AnyInstance) -> None:
        """Look whether an instance has a feasible plan, so that a heuristic can be blamed for finding none.

        Raises
        ------
        NoFeasiblePlan
            When it has none.
        Unproven
            When nobody knows.
        """
        solution = self.oracle(instance, needed=True)
        if solution is not None and solution.status == "unknown":
            # A plan of any other heuristic shows as well that there is one.
            others = (Subject(other, self.entry) for other in self.entry.heuristics.values())
            if any(other.value(instance) is not None for other in others):
                return
        if solution is None or solution.status not in ("optimal", "feasible", "infeasible"):
            raise Unproven
        if solution.status == "infeasible":
            raise NoFeasiblePlan


def _plan_in(asked: Asked) -> Plan | None:
    if asked.reason:
        raise CheckError(asked.reason)
    return asked.plan


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
    status : "passed", "failed", "expected failure", "skipped" or "unfinished"
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
class Source:
    """Where instances come from.

    Attributes
    ----------
    name : str
    instances : int
        How many of those that are checked are from there.
    refused : int
        How many others the problem's own ``_check`` refused.
    """

    name: str
    instances: int
    refused: int

    @property
    def starves(self) -> bool:
        """Whether hardly any instance from there gets past ``_check``."""
        tried = self.instances + self.refused
        return tried >= TOLD_APART and self.instances < STARVING * tried

    def __str__(self) -> str:
        return f"{self.instances} from {self.name}" + (f" ({self.refused} more refused)" if self.refused else "")


@dataclass(frozen=True)
class CheckReport:
    """All results of the checks of a heuristic, and where their instances came from; prints as a table."""

    problem: str
    heuristic: str
    results: tuple[CheckResult, ...]
    sources: tuple[Source, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether all checks were finished, none failed and at least one ran."""
        finished = all(result.status != "unfinished" for result in self.results)
        return finished and not self.failed and any(result.examples for result in self.results)

    @property
    def failed(self) -> tuple[CheckResult, ...]:
        """The checks that failed."""
        return tuple(result for result in self.results if result.status == "failed")

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON; a plan is JSON where it is one, else its text."""
        results = [
            {
                "name": one.name,
                "statement": one.statement,
                "status": one.status,
                "examples": one.examples,
                "without_plan": one.without_plan,
                "reason": one.reason,
                "instance": None if one.instance is None else one.instance.to_dict(),
                "plan": one.plan.to_dict()
                if isinstance(one.plan, Plan)
                else None
                if one.plan is None
                else _shown(one.plan),
                "path": None if one.path is None else str(one.path),
            }
            for one in self.results
        ]
        sources = [{"name": one.name, "instances": one.instances, "refused": one.refused} for one in self.sources]
        return {
            "problem": self.problem,
            "heuristic": self.heuristic,
            "ok": self.ok,
            "results": results,
            "sources": sources,
            "warnings": self.warnings,
        }

    @property
    def warnings(self) -> list[str]:
        """What the checks may have missed."""
        return [
            f"the problem's _check refuses {one.refused} of {one.refused + one.instances} instances from {one.name}: "
            "what they would show is not checked; a strategy of the problem's own draws valid ones"
            for one in self.sources
            if one.starves
        ]

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
        if self.sources:
            lines.append(f"  instances: {', '.join(map(str, self.sources))}")
        lines += [f"  warning: {warning}" for warning in self.warnings]
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
        told = [", ".join(map(str, self.sources)), *(f"warning: {warning}" for warning in self.warnings)]
        foot = "".join(f'<tr><td colspan="5">{html.escape(line)}</td></tr>' for line in told if line)
        return f"<table><caption>{title}</caption><tr>{head}</tr>{rows}{foot}</table>"


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
        What it claims beyond the rules and beyond what its entry in the catalogue promises: ``Ratio(2)``,
        ``Monotone()``, ``Relabelled()``, ... (:mod:`validation.kinds.promises`).
    max_examples : int
        Instances that are drawn at most, on all of which each check is tried; some more are made of them, by what
        the heuristic does there.
    seed : int
        Of the search.
    output : path, optional
        Directory for the smallest failing instances, as JSON.  Where one cannot be written, its result says so.
    strategy : SearchStrategy, optional
        What to draw the instances from; :func:`validation.testing.strategies.varied` by default.

    Returns
    -------
    CheckReport

    Raises
    ------
    CatalogueError
        When there is no such problem.
    """
    asked = CheckOptions(
        names=(problem, heuristic), max_examples=max_examples, seed=seed, output=output, strategy=strategy
    )
    return list(run_checks(asked, promises))[-1]


def run_checks(asked: CheckOptions, promises: Promise | Iterable[Promise] = ()) -> Iterator[CheckReport]:
    """Yield the report of :func:`check_heuristic` as it grows, after each check and within one that takes long."""
    problem, heuristic = asked.subject
    name, given = catalogue.heuristic(problem, heuristic)
    planned = list(checks(problem, [*all_promises(given), *_promises(asked), *_listed(promises)]))
    folder = asked.output
    paths = {} if folder is None else {check.name: Path(folder) / f"{problem}-{check.name}.json" for check in planned}
    for path in paths.values():
        refuse_foreign(path, problem)
    source = strategies.sources(problem) if asked.strategy is None else asked.strategy
    drawn = _with_relatives(draw(source, asked.max_examples, asked.seed))
    # Before the heuristic is called here for the first time.
    fresh = _asked_afresh(given, [one.instance for one in drawn if one.source == RELATED])
    subject = Subject(given, entry(problem), fresh=fresh)
    drawn += _at_edges(subject, drawn)
    spared = {one.instance.digest for one in drawn if one.source in (RELATED, TIGHTENED)}
    subject = replace(subject, oracle=Oracle(SOLVE_BUDGET * asked.max_examples, spared))
    instances = [one.instance for one in drawn]
    report = CheckReport(problem, name, (), _sources(drawn))
    for check in planned:
        before = report.results
        for result in _search(check, subject, instances):
            if check.name in paths and result.instance is not None:
                result = _saved(result, result.instance, paths[check.name])
            report = replace(report, results=(*before, result))
            yield report


def _saved(result: CheckResult, instance: AnyInstance, path: Path) -> CheckResult:
    """Return the result with the path of its instance, or with the reason why that could not be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save(instance, path)
    except OSError as error:
        # What was found must not be lost with it.
        return replace(result, reason=f"{result.reason}; not saved, {path}: {error.strerror}")
    return replace(result, path=path)


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

    @functools.cache
    def instances() -> list[AnyInstance]:
        return draw_instances(strategies.varied(problem) if strategy is None else strategy, max_examples, seed)

    def runner(check: Check) -> Callable[[Callable[..., Any] | Heuristic], None]:
        def run(heuristic: Callable[..., Any] | Heuristic) -> None:
            _, given = catalogue.heuristic(problem, heuristic)
            subject = Subject(given, entry(problem), Oracle(SOLVE_BUDGET * max_examples))
            *_, result = _search(check, subject, instances())
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
    """Yield the checks that a heuristic of ``problem`` is put to, with those of its promises."""
    yield Check("returns_a_plan", "the plan has the right type and survives JSON", "0.1.0", _returns_a_plan)
    yield Check("feasible", "the plan breaks no rule of the instance", "0.1.0", _feasible)
    yield Check("not_better_than_optimum", "no plan is better than the proven bound", "0.1.0", _not_better)
    yield Check("leaves_the_instance", "the instance is not changed", "0.1.0", _leaves_the_instance)
    yield Check("repeatable", "the same call gives the same plan", "0.1.0", _repeatable)
    if entry(problem).rescalings:
        yield Check("rescaled", "other units rescale the value and nothing else", "0.1.0", _rescaled)
    for promise in dict.fromkeys(_listed(promises)):
        yield _promised(promise)


def _listed(promises: Promise | Iterable[Promise]) -> list[Promise]:
    return [promises] if isinstance(promises, Promise) else list(promises)


def all_promises(heuristic: Heuristic) -> list[Promise]:
    """Return what the catalogue promises of a heuristic."""
    return [*([Ratio(1.0)] if heuristic.optimal else []), *heuristic.promises]


def _promises(asked: CheckOptions) -> list[Promise]:
    """Return what is promised by an option."""
    ratio = [] if asked.ratio is None else [Ratio(asked.ratio)]
    return [*ratio, *([Monotone()] if asked.monotone else []), *([Relabelled()] if asked.relabelled else [])]


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
        name = promise.other if isinstance(promise.other, str) else getattr(promise.other, "__name__", "the other")
        return Check(
            "never_worse", f"the value is never worse than that of {name}{where}", "0.3.0", _never_worse(promise)
        )
    if isinstance(promise, BreaksOnly):
        said = f"no rule is broken but {', '.join(promise.rules)}" if promise.rules else "no rule is broken"
        return Check("breaks_only", f"{said}{where}", "0.3.0", _breaks_only(promise))
    if isinstance(promise, Holds):
        return Check("holds", promise.statement, "0.3.0", _holds(promise))
    if promise.ties:
        return Check("relabelled", "renumbering leaves the value as it is", "0.1.0", _relabelled(promise))
    said = "where no numbers are alike, renumbering leaves the value as it is"
    return Check("relabelled", said, "0.3.0", _relabelled(promise))


# --- the checks ---------------------------------------------------------------------------------


def _returns_a_plan(subject: Subject, instance: AnyInstance) -> bool:
    plan = subject.answer(instance).plan
    if plan is None:
        if subject.heuristic.declines:
            return False
        subject.blamed(instance)
        raise CheckError("returned None")
    again = type(plan).from_dict(json.loads(json.dumps(plan.to_dict(), allow_nan=False)))
    if again != plan:
        raise CheckError("the plan changes when it is written as JSON and read back")
    return True


def _feasible(subject: Subject, instance: AnyInstance) -> bool:
    answer = subject.answer(instance)
    if answer.status == Status.INFEASIBLE:
        subject.blamed(instance)
        raise CheckError(f"breaks {answer.reason}")
    return answer.status == Status.FEASIBLE


def _not_better(subject: Subject, instance: AnyInstance) -> bool:
    value = subject.value(instance)
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


def _leaves_the_instance(subject: Subject, instance: AnyInstance) -> bool:
    given = _copy(instance)
    subject.plan_of(given)
    if type(given).from_dict(given.to_dict()).digest != instance.digest:
        raise CheckError("changed the instance that it was given")
    return True


def _repeatable(subject: Subject, instance: AnyInstance) -> bool:
    # Between the first answer and this one come those to other instances.
    first, second = subject.plan(instance), subject.plan_of(_copy(instance))
    if first != second:
        raise CheckError(f"two calls gave two plans: {_shown(first)} and {_shown(second)}")
    if instance.digest in subject.fresh and subject.fresh[instance.digest] != first:
        fresh = _shown(subject.fresh[instance.digest])
        raise CheckError(f"after other instances it gave {_shown(first)}, a process that had none gave {fresh}")
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
        if promise.where is not None and not promise.where(instance):
            return False
        value = subject.value(instance)
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


def _relabelled(promise: Relabelled) -> Callable[[Subject, AnyInstance], bool]:
    def run(subject: Subject, instance: AnyInstance) -> bool:
        if not subject.entry.symmetric:
            raise NotApplicable(f"the numbering means something in every dimension of {subject.entry.problem}")
        rng = np.random.default_rng(int(instance.digest[:8], 16))
        if not promise.ties:
            apart = spread(instance, rng)
            if apart is None:
                return False
            instance = apart
        value = subject.value(instance)
        other = subject.value(
            functools.reduce(lambda changed, dim: permuted(changed, dim, rng), subject.entry.symmetric, instance)
        )
        if (value is None) != (other is None) or (value is not None and other is not None and not agree(value, other)):
            raise CheckError(f"worth {_number(value)}, but {_number(other)} when renumbered")
        return value is not None

    return run


def _never_worse(promise: NeverWorseThan) -> Callable[[Subject, AnyInstance], bool]:
    def run(subject: Subject, instance: AnyInstance) -> bool:
        if promise.where is not None and not promise.where(instance):
            return False
        name, other = catalogue.heuristic(subject.entry.problem, promise.other)
        theirs = Subject(other, subject.entry).value(instance)
        if theirs is None:
            return False
        mine = subject.value(instance)
        if mine is None or beats(instance.sense, theirs, mine):
            raise CheckError(f"worth {_number(mine)}, but {name} is worth {theirs:g}")
        return True

    return run


def _breaks_only(promise: BreaksOnly) -> Callable[[Subject, AnyInstance], bool]:
    def run(subject: Subject, instance: AnyInstance) -> bool:
        if promise.where is not None and not promise.where(instance):
            return False
        plan = subject.plan(instance)
        if plan is None:
            if promise.rules:
                return False
            subject.blamed(instance)
            raise CheckError("returned None")
        broken = [violation for violation in instance.violations(plan) if violation.rule not in promise.rules]
        if broken:
            if not promise.rules:
                subject.blamed(instance)
            raise CheckError("breaks " + ", ".join(map(str, broken[:3])))
        return True

    return run


def _holds(promise: Holds) -> Callable[[Subject, AnyInstance], bool]:
    def run(subject: Subject, instance: AnyInstance) -> bool:
        plan = subject.plan(instance)
        # Of no jobs there is nothing to state.
        if plan is None or instance.dims.get(JOBS) == 0:
            return False
        if not promise.test(instance, plan, *([_stream()] if promise.stream else [])):
            raise CheckError(f"it is not so that {promise.statement}")
        return True

    return run


def _shown(plan: Any) -> str:
    """Show a plan in a line, or whatever was returned in its place."""
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
    """Return the heuristic's plan for an instance; None where it raises."""
    try:
        return call(_copy(instance), subject.heuristic, _stream())
    except (Exception, SystemExit):
        return None


def _stream() -> np.random.Generator:
    """Make the stream that a random heuristic draws from."""
    return np.random.default_rng(0)


def fails(check: Check, subject: Subject, instance: AnyInstance) -> bool:
    """Return whether a heuristic breaks a check on an instance."""
    return bool(_reason(check, subject, instance))


def _reason(check: Check, subject: Subject, instance: AnyInstance) -> str:
    """Return why the check fails on an instance; empty when it does not."""
    try:
        check.run(subject, instance)
    except (NoFeasiblePlan, NotApplicable, Unproven):
        return ""
    except Exception as error:
        return _said(error)
    return ""


def _said(error: Exception) -> str:
    return str(error) if isinstance(error, CheckError) else describe(error)


class NotApplicable(Exception):  # noqa: N818, it is no error
    """A check that says nothing about this problem, with the reason."""


class Unproven(Exception):  # noqa: N818, it is no error
    """It is not known whether the instance has a feasible plan, so that it says nothing about the heuristic."""


class NoFeasiblePlan(Exception):  # noqa: N818, it is no error
    """The instance has no feasible plan, so that it says nothing about the heuristic."""


def draw_instances(strategy: SearchStrategy[Any], max_examples: int, seed: int) -> list[AnyInstance]:
    """Up to ``max_examples`` different instances of a strategy, the same for the same seed."""
    return [one.instance for one in draw(strategy, max_examples, seed)]


def draw(strategy: SearchStrategy[Any], max_examples: int, seed: int) -> list[Drawn]:
    """Up to ``max_examples`` different instances of a strategy, as :func:`draw_instances`, and their sources."""
    found: dict[str, Drawn] = {}

    @hypothesis.seed(seed)
    @settings(
        # Hypothesis draws some twice.
        max_examples=2 * max_examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
        verbosity=Verbosity.quiet,
    )
    @given(strategy)
    def collect(one: Any) -> None:
        drawn = one if isinstance(one, Drawn) else Drawn(one, strategies.STRATEGY)
        found.setdefault(drawn.instance.digest, drawn)
        if len(found) == max_examples:
            raise _Enough

    with contextlib.suppress(_Enough):
        collect()
    return list(found.values())


class _Enough(BaseException):
    """Ends the drawing; Hypothesis takes no exception for a failure that is none of Python's usual ones."""


def _with_relatives(drawn: list[Drawn]) -> list[Drawn]:
    """Return the instances, some of them followed by one that differs from it in one thing."""
    followed = set(range(0, len(drawn), max(1, len(drawn) // FRESH)))
    known = {one.instance.digest for one in drawn}
    found = []
    for number, one in enumerate(drawn):
        found.append(one)
        if number in followed:
            rng = np.random.default_rng(int(one.instance.digest[:8], 16))
            relative = _relative(one.instance, rng)
            if relative is not None and relative.digest not in known:
                known.add(relative.digest)
                found.append(Drawn(relative, RELATED))
    return found


def _relative(instance: AnyInstance, rng: np.random.Generator) -> AnyInstance | None:
    """Return the instance with its members in another order, or with one number changed."""
    symmetric = [dim for dim in entry(instance.problem).symmetric if instance.dims.get(dim, 0) > 1]
    if symmetric and rng.random() < 0.5:
        return functools.reduce(lambda changed, dim: permuted(changed, dim, rng), symmetric, instance)
    return neighbour(instance, rng, max_members=max(instance.dims.values(), default=0))


def _asked_afresh(heuristic: Heuristic, instances: list[AnyInstance]) -> dict[str, Plan | None]:
    """Ask a process for each instance that has called the heuristic for no other; of those that answer, their plans."""
    if heuristic.random or not LINUX:
        # Elsewhere a process takes seconds to start.
        return {}
    if isinstance(heuristic.function, Imported):
        # Here once, and not in each process.
        import_object(heuristic.function.reference)
    plans, end = dict[str, Plan | None](), time.monotonic() + FRESH_LIMIT
    for one in instances:
        answer = ask(one, heuristic, 0, seconds=max(0.0, end - time.monotonic()))
        if answer.reason:
            # It fails, which is told by other checks, or takes long.
            break
        plans[one.digest] = answer.plan
    return plans


def _at_edges(subject: Subject, drawn: list[Drawn]) -> list[Drawn]:
    """Return instances on which the heuristic's plan for a drawn one just breaks a rule, so that it needs another."""
    wanted = round(TIGHT * len(drawn))
    known, found = {one.instance.digest for one in drawn}, list[Drawn]()
    ordered = sorted((one.instance for one in drawn), key=lambda instance: instance.digest)
    for turn, instance in ((turn, instance) for turn in range(TURNS) for instance in ordered):
        if len(found) == wanted:
            break
        answer = judge(instance, subject.first(instance))
        if answer.status == Status.FEASIBLE:
            rng = np.random.default_rng([turn, int(instance.digest[:8], 16)])
            tight = past_the_edge(instance, functools.partial(_takes, answer.plan), rng)
            if tight is not None and tight.digest not in known:
                known.add(tight.digest)
                found.append(Drawn(tight, TIGHTENED))
    return found


def _takes(plan: Any, instance: AnyInstance) -> bool:
    """Return whether a plan breaks no rule of an instance."""
    try:
        return not instance.violations(plan)
    except PlanError:
        return False


def _sources(drawn: list[Drawn]) -> tuple[Source, ...]:
    """Count the instances of each source, and those that were refused."""
    counts = Counter(one.source for one in drawn)
    refused = sum((Counter(one.refused) for one in drawn), Counter[str]())
    return tuple(Source(name, counts[name], refused[name]) for name in dict.fromkeys([*counts, *refused]))


def _search(check: Check, subject: Subject, instances: list[AnyInstance]) -> Iterator[CheckResult]:
    """Run a check on instances until it fails, and shrink the instance that it fails on; yield what is known so far."""
    ran = without_plan = 0

    def result(status: CheckStatus, why: str = "", instance: AnyInstance | None = None) -> CheckResult:
        plan = None if instance is None else _plan_there(subject, instance)
        return CheckResult(check.name, check.statement, status, ran, why, instance, plan, None, without_plan)

    told = time.monotonic()
    for instance in instances:
        if time.monotonic() > told + TELLING:
            yield result("unfinished")
            told = time.monotonic()
        try:
            ran += check.run(subject, instance)
        except NotApplicable as why:
            yield result("skipped", str(why))
            return
        except NoFeasiblePlan:
            without_plan += 1
        except Unproven:
            continue
        except Exception as error:
            ran += 1
            status, expected = _verdict(check, subject)
            yield result(status, expected or _said(error), instance)
            breaks = functools.partial(fails, check, subject.anew())
            smallest = subject.shrinking.smallest(instance, breaks, instances)
            yield result(status, expected or _reason(check, subject, smallest), smallest)
            return
    if ran:
        yield result("passed")
    elif without_plan:
        yield result("skipped", "no instance that was drawn has a feasible plan")
    else:
        yield result("skipped", f"it gave no feasible plan on {len(instances)} instances")


def _verdict(check: Check, subject: Subject) -> tuple[CheckStatus, str]:
    """Return what a failure is, and the reason where it is expected."""
    if check.name == "feasible" and subject.heuristic.infeasible_because:
        return "expected failure", subject.heuristic.infeasible_because
    return "failed", ""
