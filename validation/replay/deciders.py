"""Decision makers: the exact model, heuristics and users' functions, which answer instances of one problem.

A decision maker is the exact model ("exact"), a heuristic of the catalogue by its name, or a function of the user's.
The library's own heuristics are called in this process; a user's function is called apart
(:mod:`validation.kernel.asking`), as in studies, and a program apart from all that knows of later jobs
(:mod:`validation.replay.online`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, Protocol, Self

import numpy as np

from instances.base import Instance
from validation import catalogue
from validation.catalogue import Heuristic
from validation.kernel.asking import Asking, ask_here
from validation.kernel.isolation import plain
from validation.kernel.judging import Answer, Status, judge
from validation.replay.online import OnlineProgram, is_program

__all__ = ["EXACT", "Answer", "Briefly", "Decider", "decider"]

AnyInstance = Instance[Any]

Briefly = Callable[[], AbstractContextManager[None]]
"""Context within which heuristics leave out the parts of their plans that the setting does not follow."""

EXACT = "exact"
"""Name of the decision maker that solves the problem's model to proven optimality."""


class Decider(Protocol):
    """Decision maker for instances of one problem; to be used as a context, within which it may stay warm.

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
        """Return its plan for an instance, judged.

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
    """Return the decision maker of that name.

    Parameters
    ----------
    problem : str
    given : str, callable or Heuristic
        "exact", or what :func:`validation.catalogue.heuristic` takes: a name, "module:function" or the function; or
        "file.py:decide", a program that gets plain JSON.
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
    if isinstance(given, str) and is_program(given):
        catalogue.entry(problem)
        return OnlineProgram(problem, given, time_limit=time_limit, memory=memory)
    name, heuristic = catalogue.heuristic(problem, given)
    if isinstance(given, str) and ":" not in given and _is_own(heuristic):
        return _Here(problem, name, heuristic, seed)
    return _Apart(problem, name, heuristic, seed, time_limit, memory)


def _is_own(heuristic: Heuristic) -> bool:
    """Return whether a function is the library's code, not what a user registered."""
    return str(getattr(heuristic.function, "__module__", "")).partition(".")[0] in ("heuristics", "validation")


class _Exact:
    """The exact model; the same instance again, as in rounds with the same jobs, is solved once."""

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
        answer = Answer(solution.plan, solution.status, value, solution.bound, seconds, message)
        self.last = (instance, answer)
        return answer


class _Here:
    """A heuristic of the library, called in this process; the same instance again, as in rounds, is answered once."""

    def __init__(self, problem: str, name: str, heuristic: Heuristic, seed: int) -> None:
        self.problem, self.name, self.heuristic = problem, name, heuristic
        self.rng = np.random.default_rng(seed)
        self.last: tuple[AnyInstance, Answer] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def ask(self, instance: AnyInstance, *, briefly: Briefly | None = None) -> Answer:
        if self.last is not None and self.last[0] is instance:
            return replace(self.last[1], seconds=0.0)
        with briefly() if briefly else nullcontext():
            asked = ask_here(instance, self.heuristic, self.rng)
        if briefly and asked.plan is not None:
            return Answer(asked.plan, Status.BEGUN, seconds=asked.seconds)
        answer = judge(instance, asked, declines=self.heuristic.declines)
        if not self.heuristic.random:
            self.last = (instance, answer)
        return answer


class _Apart:
    """A function of the user's, in a process of its own."""

    def __init__(
        self, problem: str, name: str, heuristic: Heuristic, seed: int, time_limit: float, memory: int | None
    ) -> None:
        self.problem, self.name, self.time_limit = problem, name, time_limit
        self.asking = Asking(heuristic, seed, memory=memory)

    def __enter__(self) -> Self:
        self.asking.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.asking.__exit__()

    def ask(self, instance: AnyInstance, *, briefly: Briefly | None = None) -> Answer:
        return self.asking.answer(instance, seconds=self.time_limit)
