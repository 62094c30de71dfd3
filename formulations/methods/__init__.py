"""How problems are solved: the exact methods by name, and which problem knows which.

A model says what is best and nothing else (``formulations.<paper>.<problem>``); each module here is one way to find it.
:func:`methods` lists the ways that apply to an instance, ``formulations.solve(instance, method=...)`` takes one, and
``Solution.method`` tells which was taken.  Nothing here is imported before it is needed, and no model imports a method.

This package and the function are called ``formulations.methods`` both: as an attribute the name is the function's.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from formulations.engine.protocol import formulation
from instances.base import Instance, Plan

if TYPE_CHECKING:
    from formulations.engine.highs import Proof
    from formulations.engine.options import Options
    from formulations.engine.solution import Solution

__all__ = ["AUTO", "Choice", "GaveUp", "Method", "MethodError", "Methods", "choice", "method_of", "methods"]

AUTO = "auto"
"""Asks for the best of the methods that apply, and where that gives up for the next."""

MODULES = {
    "afs.elastic_sharing": "orders",
    "aryl.base_allocation": "starting",
    "aryl.elastic_allocation": "core",
    "aryl.placement": "patterns",
    "aryl.reclaim": "branching",
    "elasticflow.admission": "admitting",
    "elasticflow.allocation": "rounding",
    "elasticflow.best_effort": "ends",
    "elasticflow.minimum_satisfactory_share": "flow",
    "prism.placement": "fillings",
    "sia.goodput": "types_core",
    "shockwave.window": "counts",
    "synergy.placement": "walking",
    "synergy.tuning": "packing",
    "eplb.placement": "gpu_patterns",
    "gavel.cost": "argument",
    "gavel.fifo": "policies",
    "gavel.finish_time_fairness": "bracket",
    "gavel.hierarchical_fairness": "water_filling",
    "gavel.makespan": "argument",
    "gavel.max_min_fairness": "argument",
    "gavel.round_assignment": "round_core",
    "gavel.shortest_job_first": "closed_form",
    "gavel.throughput_per_dollar": "policies",
    "gavel.total_throughput": "policies",
}
"""The module of this package that has the ``CHOICE`` of a problem; all others know the one model alone."""


class MethodError(ValueError):
    """There is no method of this name, or it does not apply to the instance; the message names those that do."""


class GaveUp(Exception):  # noqa: N818, it is no error where another method comes next
    """A method has found no proof on an instance that it applies to; nothing is wrong, and another method may.

    Attributes
    ----------
    start : Plan, optional
        A plan for the next method to start from.
    """

    def __init__(self, why: str, start: Plan | None = None) -> None:
        super().__init__(why)
        self.start = start


def everywhere(instance: Instance[Any]) -> bool:
    """Apply to every instance."""
    return True


@dataclass(frozen=True, repr=False)
class Method:
    """One exact way to solve a problem.

    Attributes
    ----------
    name : str
        As ``Solution.method`` and the collection's records have it.
    short : str
        Another name for it, quicker to type.
    proves : str
        What its bound rests on, in a sentence.
    where : str
        The instances that it applies to, in words.
    solve : callable
        ``solve(instance, options) -> Solution``.  It may raise :class:`GaveUp`.
    applies : callable
        ``applies(instance) -> bool``.
    any_solver : bool
        Whether it takes any solver; else HiGHS.
    proofs : tuple of str
        What ``Solution.proof`` may be where it proves something on HiGHS, the strongest first.
    """

    name: str
    short: str
    proves: str
    where: str
    solve: Callable[[Any, Options], Solution]
    applies: Callable[[Any], bool] = everywhere
    any_solver: bool = False
    proofs: tuple[Proof, ...] = ("argument", "prices", "two runs", "one run")

    def __repr__(self) -> str:
        return f"{self.name!r} ({self.short}): {self.proves}"


class Methods(list[Method]):
    """Methods, best first; each is shown on a line of its own."""

    def __repr__(self) -> str:
        return "\n".join(map(repr, self))


@dataclass(frozen=True)
class Choice:
    """The methods of a problem.

    Attributes
    ----------
    methods : tuple of Method
        All of them, in the order in which they are tried where ``best_first`` says nothing else.
    best_first : callable, optional
        ``best_first(instance)``: those that apply, in the order in which they are tried.  What they need alike may be
        made once for all of them.
    again : Method, optional
        What checks the others, where no one model states the problem.
    """

    methods: tuple[Method, ...]
    best_first: Callable[[Any], Sequence[Method]] | None = None
    again: Method | None = None

    def applying(self, instance: Instance[Any]) -> Methods:
        """Return the methods that apply to an instance, best first."""
        if self.best_first is not None:
            return Methods(self.best_first(instance))
        return Methods(method for method in self.methods if method.applies(instance))


def choice(problem: str) -> Choice:
    """Return the methods of a problem; what a formulation from outside offers itself is one, too.

    Raises
    ------
    InstanceError
        When there is no such problem.
    """
    if problem in MODULES:
        found: Choice = importlib.import_module(f"formulations.methods.{MODULES[problem]}").CHOICE
    else:
        found = importlib.import_module("formulations.methods.one_model").choice(formulation(problem))
    return found


def methods(instance: Instance[Any]) -> Methods:
    """List the methods that apply to an instance, best first: what ``method="auto"`` tries, in this order.

    Parameters
    ----------
    instance : Instance

    Returns
    -------
    list of Method
        Each with its name and what it proves.

    Notes
    -----
    Before any method, ``formulations.solve`` looks whether there is anything to decide ("no jobs"), and whether a plan
    at hand meets a bound at hand ("at hand").
    """
    return choice(instance.problem).applying(instance)


def method_of(problem: str, name: str) -> Method | None:
    """Return the method of a problem by its name or short name; None for "auto".

    Raises
    ------
    MethodError
        When the problem has no such method; those that it has are named.
    """
    if name == AUTO:
        return None
    known = choice(problem).methods
    for method in known:
        if name in (method.name, method.short):
            return method
    raise MethodError(f"method: got {name!r}, {problem} has {AUTO!r} and {_named(known)}")


def refusal(instance: Instance[Any], method: Method, solver: str) -> MethodError:
    """Make the error for a method that cannot be taken; it names those that can."""
    those = [one for one in methods(instance) if one.any_solver or solver == "highs"]
    why = f"is for {method.where}" if method.any_solver or solver == "highs" else "needs HiGHS"
    return MethodError(f"method: {method.name!r} {why}; this {instance.problem} can be solved by {_named(those)}")


def _named(some: Sequence[Method]) -> str:
    return ", ".join(f"{method.name!r} ({method.short})" for method in some)
