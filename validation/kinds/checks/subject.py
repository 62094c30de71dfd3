"""A heuristic under test: what it answers, and what the exact side knows of the same instances."""

from __future__ import annotations

import copy
import math
import time
import warnings
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import formulations
from formulations import Solution
from instances.base import Instance, Plan
from validation.catalogue import Entry, Heuristic
from validation.kernel.asking import ask_here, call
from validation.kernel.judging import Answer, Asked, Status, judge
from validation.kinds.checks.shrinking import Shrinking

__all__ = [
    "SOLVE_BUDGET",
    "CheckError",
    "NoFeasiblePlan",
    "NotApplicable",
    "Oracle",
    "Subject",
    "Unproven",
    "copied",
    "plan_there",
    "stream",
]

AnyInstance = Instance[Any]

SOLVE_LIMIT = 1.0
"""Seconds for the exact side of one instance; one whose proof takes longer is not counted where it needs the proof."""
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
            self.known[instance.digest] = self.asked(copied(instance))
        return self.known[instance.digest]

    def plan_of(self, instance: AnyInstance) -> Plan | None:
        """Ask for a plan for this very instance, whatever was answered before."""
        return _plan_in(self.asked(instance))

    def asked(self, instance: AnyInstance) -> Asked:
        """Put the question."""
        return ask_here(instance, self.heuristic, stream())

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


def copied(instance: AnyInstance) -> AnyInstance:
    """One that a heuristic may spoil without spoiling the counterexample."""
    return copy.deepcopy(instance)


def plan_there(subject: Subject, instance: AnyInstance) -> Any:
    """Return the heuristic's plan for an instance; None where it raises."""
    try:
        return call(copied(instance), subject.heuristic, stream())
    except (Exception, SystemExit):
        return None


def stream() -> np.random.Generator:
    """Make the stream that a random heuristic draws from."""
    return np.random.default_rng(0)
