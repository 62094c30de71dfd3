"""Decision makers: what answers an instance of one problem with a plan.

A decision maker is the exact model ("exact"), a heuristic of the catalogue by its name, or a function of the user's.
The library's own heuristics are called in this process; a user's function is called apart
(:mod:`validation.isolation`), as in studies.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np

from instances.base import Instance, Plan, PlanError
from validation import catalogue
from validation.catalogue import Heuristic, Imported
from validation.isolation import plain

__all__ = ["BEGUN", "EXACT", "Answer", "Briefly", "Decider", "decider", "judged"]

AnyInstance = Instance[Any]

Briefly = Callable[[], AbstractContextManager[None]]
"""A context within which heuristics leave out what nobody follows of their plans."""

BEGUN = "begun"
"""Status of a plan of which only the beginning was asked for, so that it has no value."""

EXACT = "exact"
"""Name of the decision maker that solves the problem's model to proven optimality."""


@dataclass(frozen=True)
class Answer:
    """What came of asking a decision maker.

    Attributes
    ----------
    plan : Plan, optional
        None where it has none.
    status : str
        Of the exact model as in ``Solution.status``; of a heuristic "feasible", "infeasible" (the plan breaks rules),
        "declined", "failed", or "begun" (only its beginning was asked for, which has no value).
    value : float
        The instance's own judgement of the plan; NaN without one, or where it breaks rules.
    bound : float
        Proven bound on the optimum; NaN where there is none.
    seconds : float
        That it took.
    reason : str
        What is to be said of it.
    """

    plan: Plan | None
    status: str
    value: float = np.nan
    bound: float = np.nan
    seconds: float = 0.0
    reason: str = ""


class Decider(Protocol):
    """What answers instances of one problem; to be used as a context, within which it may stay warm.

    Attributes
    ----------
    problem, name : str
        Of the catalogue; "exact" is the exact model.
    """

    problem: str
    name: str

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def ask(self, instance: AnyInstance, *, briefly: Briefly | None = None) -> Answer:
        """Its plan for an instance, judged.

        A heuristic of the library's is called within ``briefly``, and its plan is not judged, where that is given.
        """
        ...


def decider(
    problem: str,
    given: str | Callable[..., Any] | Heuristic,
    *,
    seed: int = 0,
    time_limit: float = 60.0,
    memory: int | None = None,
    solver: str = "highs",
) -> Decider:
    """The decision maker of that name.

    Parameters
    ----------
    problem : str
    given : str, callable or Heuristic
        "exact", or what :func:`validation.catalogue.heuristic` takes: a name, "module:function" or the function.
    seed : int
        Of random heuristics.
    time_limit : float
        For each answer of the exact model or of a user's function, s.
    memory : int, optional
        Bytes above which a user's function is stopped.
    solver : str
        Of the exact model.

    Raises
    ------
    CatalogueError
        When the problem has no such heuristic.
    StudyError
        When a reference cannot be imported.
    """
    if given == EXACT:
        return _Exact(catalogue.entry(problem).problem, solver, time_limit)
    name, heuristic = catalogue.heuristic(problem, given)
    own = isinstance(given, str) and not isinstance(heuristic.function, Imported)
    if own:
        return _Here(problem, name, heuristic, seed)
    return _Apart(problem, name, heuristic, seed, time_limit, memory)


class _Exact:
    """The exact model; the same instance again, as in rounds between which nobody comes or goes, is solved once."""

    name = EXACT

    def __init__(self, problem: str, solver: str, time_limit: float) -> None:
        self.problem, self.solver, self.time_limit = problem, solver, time_limit
        self.last: tuple[AnyInstance, Answer] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def ask(self, instance: AnyInstance, *, briefly: Briefly | None = None) -> Answer:
        if self.last is not None and self.last[0] == instance:
            return replace(self.last[1], seconds=0.0)
        import formulations

        solution = formulations.solve(instance, solver=self.solver, time_limit=self.time_limit)
        seconds = solution.build_seconds + solution.solve_seconds
        value = np.nan if solution.objective is None else solution.objective
        message = plain(solution.message)
        answer = Answer(solution.plan, str(solution.status), value, solution.bound, seconds, message)
        self.last = (instance, answer)
        return answer


class _Here:
    """A heuristic of the library, called in this process."""

    def __init__(self, problem: str, name: str, heuristic: Heuristic, seed: int) -> None:
        self.problem, self.name, self.heuristic = problem, name, heuristic
        self.rng = np.random.default_rng(seed)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def ask(self, instance: AnyInstance, *, briefly: Briefly | None = None) -> Answer:
        options = {"rng": self.rng} if self.heuristic.random else {}
        begun = time.perf_counter()
        if briefly is None:
            plan = self.heuristic.function(instance, **options)
            return judged(instance, plan, time.perf_counter() - begun)
        with briefly():
            plan = self.heuristic.function(instance, **options)
        seconds = time.perf_counter() - begun
        return judged(instance, None, seconds) if plan is None else Answer(plan, BEGUN, seconds=seconds)


class _Apart:
    """A function of the user's, in a process of its own."""

    def __init__(
        self, problem: str, name: str, heuristic: Heuristic, seed: int, time_limit: float, memory: int | None
    ) -> None:
        from validation.study.cells import Asking

        self.problem, self.name, self.time_limit = problem, name, time_limit
        self.asking = Asking(heuristic, seed, memory=memory)

    def __enter__(self) -> Self:
        self.asking.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.asking.__exit__()

    def ask(self, instance: AnyInstance, *, briefly: Briefly | None = None) -> Answer:
        asked = self.asking.ask(instance, seconds=self.time_limit)
        if asked.reason:
            return Answer(None, "failed", seconds=asked.seconds, reason=asked.reason)
        return judged(instance, asked.plan, asked.seconds)


def judged(instance: AnyInstance, plan: Plan | None, seconds: float = 0.0) -> Answer:
    """A plan as the instance judges it; one that breaks rules is kept, and what it breaks is the reason."""
    if plan is None:
        return Answer(None, "declined", seconds=seconds, reason="the heuristic found no plan")
    try:
        broken = instance.violations(plan)
        if broken:
            more = f"; {len(broken) - 3} more" if len(broken) > 3 else ""
            return Answer(plan, "infeasible", seconds=seconds, reason="; ".join(map(str, broken[:3])) + more)
        return Answer(plan, "feasible", instance.objective(plan), seconds=seconds)
    except PlanError as error:
        return Answer(None, "failed", seconds=seconds, reason=str(error))
