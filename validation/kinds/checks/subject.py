"""A heuristic under test: what it answers, and what the exact side knows of the same instances."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Any, TypeGuard, TypeVar

import formulations
from formulations import Solution
from instances.base import Instance, Plan
from validation import catalogue
from validation.catalogue import Entry, Heuristic
from validation.kernel.asking import Askings
from validation.kernel.judging import Answer, Asked, Status, judge

__all__ = [
    "SOLVE_BUDGET",
    "CheckError",
    "Inquiry",
    "NoFeasiblePlan",
    "NotApplicable",
    "Oracle",
    "Question",
    "Subject",
    "Unproven",
    "is_failure",
    "result_of",
    "results_of",
]

AnyInstance = Instance[Any]
T = TypeVar("T")

SOLVE_LIMIT = 1.0
"""Seconds for the exact side of one instance; one whose proof takes longer is not counted where it needs the proof."""
OTHERS_LIMIT = 10.0
"""Seconds for a question to another heuristic, which nobody tests."""
SOLVE_BUDGET = 0.1
"""Processor seconds for the exact side of each instance drawn, on average."""


class CheckError(AssertionError):
    """A heuristic breaks a rule; the message says which, on what, and how far."""


class NotApplicable(Exception):  # noqa: N818, it is no error
    """A check that says nothing about this problem, with the reason."""


class Unproven(Exception):  # noqa: N818, it is no error
    """It is not known whether the instance has a feasible plan, so that it says nothing about the heuristic."""


class NoFeasiblePlan(Exception):  # noqa: N818, it is no error
    """The instance has no feasible plan, so that it says nothing about the heuristic."""


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
        if key not in self._known and (needed or (self._left > 0 and key not in self._spared)):
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


@dataclass(frozen=True)
class Question:
    """What a heuristic is to be asked: its plan for an instance, the first one or, ``again``, another one."""

    subject: Subject
    instance: AnyInstance
    again: bool = False


Inquiry = Generator[list[Question], None, T]
"""What finds something out by questions: it yields those that it needs answered to go on, some at a time."""


@dataclass(frozen=True)
class Subject:
    """A heuristic under test, with its problem's entry.

    Attributes
    ----------
    heuristic : Heuristic
    entry : Entry
    ask : Askings
        Who puts the questions; none of the heuristic's code runs here, unless it does so.
    oracle : Oracle
    reordered : callable
        Returns answers of a process that was asked in another order, by the digest of the instance.
    firsts, seconds : dict
        First answers, and those that came after them, by the digest of the instance.
    judged : dict
        First answers as they are judged.
    others : dict
        Other heuristics, by what they were called.
    limit : float
        Seconds for a question.
    """

    heuristic: Heuristic
    entry: Entry
    ask: Askings
    oracle: Oracle = field(default_factory=Oracle)
    reordered: Callable[[], Mapping[str, Asked]] = dict
    firsts: dict[str, Asked] = field(default_factory=dict)
    seconds: dict[str, Asked] = field(default_factory=dict)
    judged: dict[str, Answer] = field(default_factory=dict)
    others: dict[Any, Subject] = field(default_factory=dict)
    limit: float = math.inf

    def anew(self) -> Subject:
        """Return the same heuristic with nothing solved or asked before."""
        return replace(self, oracle=Oracle(), firsts={}, seconds={}, judged={}, others={})

    def beside(self, other: str | Callable[..., Any]) -> Subject:
        """Return another heuristic of the problem."""
        if other not in self.others:
            _, found = catalogue.heuristic(self.entry.problem, other)
            self.others[other] = Subject(found, self.entry, self.ask, limit=OTHERS_LIMIT)
        return self.others[other]

    def foresee(self, instances: Iterable[AnyInstance]) -> Inquiry[None]:
        """Ask for the first plans for several instances at once."""
        wanted = [Question(self, one) for one in instances if one.digest not in self.firsts]
        if wanted:
            yield wanted

    def plan(self, instance: AnyInstance) -> Inquiry[Plan | None]:
        """Return the first plan for an instance.

        Raises
        ------
        CheckError
            When the heuristic fails: it raises, or returns what is no plan.
        """
        yield from self.foresee([instance])
        return _plan_in(self.firsts[instance.digest])

    def second(self, instance: AnyInstance) -> Inquiry[Plan | None]:
        """Ask for another plan for an instance, whatever was answered before."""
        if instance.digest not in self.seconds:
            yield [Question(self, instance, again=True)]
        return _plan_in(self.seconds[instance.digest])

    def answer(self, instance: AnyInstance) -> Inquiry[Answer]:
        """Ask for a plan, and have the instance judge it; whether it may decline is a check of its own.

        Raises
        ------
        CheckError
            When it fails.
        """
        yield from self.foresee([instance])
        answer = self.known(instance)
        assert answer is not None
        if answer.status == Status.FAILED:
            raise CheckError(answer.reason)
        return answer

    def known(self, instance: AnyInstance) -> Answer | None:
        """Return how the first answer for an instance is judged, if there is one; nobody is asked."""
        if instance.digest not in self.judged and instance.digest in self.firsts:
            self.judged[instance.digest] = judge(instance, self.firsts[instance.digest])
        return self.judged.get(instance.digest)

    def value(self, instance: AnyInstance) -> Inquiry[float | None]:
        """Value of its plan, None without a feasible one."""
        answer = yield from self.answer(instance)
        return answer.value if answer.status == Status.FEASIBLE else None

    def shows_a_plan(self, instance: AnyInstance) -> Inquiry[bool]:
        """Return whether its plan is feasible; where it fails it shows nothing."""
        try:
            return (yield from self.value(instance)) is not None
        except CheckError:
            return False

    def blamed(self, instance: AnyInstance) -> Inquiry[None]:
        """Look whether an instance has a feasible plan, so that a heuristic can be blamed for finding none.

        Raises
        ------
        NoFeasiblePlan
            When it has none.
        Unproven
            When nobody knows.
        """
        if not instance.violations(instance.nothing()):
            return
        solution = self.oracle(instance, needed=True)
        if solution is None or solution.status == "unknown":
            # A plan of any other heuristic shows as well that there is one.
            for other in self.entry.heuristics:
                if (yield from self.beside(other).shows_a_plan(instance)):
                    return
        if solution is None or solution.status not in ("optimal", "feasible", "infeasible"):
            raise Unproven
        if solution.status == "infeasible":
            raise NoFeasiblePlan


def _plan_in(asked: Asked) -> Plan | None:
    if asked.reason:
        raise CheckError(asked.reason)
    return asked.plan


# --- questions are put together, because each has its price --------------------------------------


def result_of(inquiry: Inquiry[T]) -> T:
    """Return what an inquiry finds out by itself."""
    (found,) = results_of([inquiry])
    if isinstance(found, Exception):
        raise found
    return found


def results_of(inquiries: Iterable[Inquiry[T]]) -> list[T | Exception]:
    """Let inquiries go on together, and return what each finds out or raises, up to the first that raises an error."""
    ended: dict[int, T | Exception] = {}
    going = dict(enumerate(inquiries))
    while going:
        wanted: list[Question] = []
        for number, inquiry in list(going.items()):
            try:
                wanted += next(inquiry)
                continue
            except StopIteration as end:
                ended[number] = end.value
            except Exception as error:
                ended[number] = error
            del going[number]
            if is_failure(ended[number]):
                going = {one: before for one, before in going.items() if one < number}
                break
        _put(wanted)
    found = []
    for number in sorted(ended):
        found.append(ended[number])
        if is_failure(found[-1]):
            break
    return found


def is_failure(found: object) -> TypeGuard[Exception]:
    """Return whether what came of a check says that the heuristic breaks it."""
    return isinstance(found, Exception) and not isinstance(found, NoFeasiblePlan | NotApplicable | Unproven)


def _put(questions: list[Question]) -> None:
    """Have questions answered, those to one heuristic at once."""
    apart: dict[tuple[int, bool], list[Question]] = {}
    for one in questions:
        apart.setdefault((id(one.subject), one.again), []).append(one)
    for (_, again), those in apart.items():
        subject = those[0].subject
        instances = list({one.instance.digest: one.instance for one in those}.values())
        into = subject.seconds if again else subject.firsts
        answers = subject.ask(subject.heuristic, instances, seconds=subject.limit)
        into.update((one.digest, asked) for one, asked in zip(instances, answers, strict=True))
