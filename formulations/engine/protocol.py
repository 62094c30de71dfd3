"""What the module of a problem offers to whoever solves it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyomo.environ as pyo

from instances.base import Plan
from instances.files import instance_type, is_own
from instances.schema import FloatArray

if TYPE_CHECKING:
    from formulations.engine.linear import LinearProgram
    from formulations.engine.options import Options
    from formulations.engine.solution import Solution

__all__ = ["Formulation", "formulation", "register"]


@dataclass(frozen=True)
class Formulation:
    """The exact model of one problem: how it is built, and how a plan is read from it.

    Attributes
    ----------
    build : callable
        ``build(instance) -> ConcreteModel``.
    read : callable
        ``read(model) -> Plan``: the plan in the values of the model's variables.
    write : callable, optional
        ``write(model, plan)`` sets the variables to a plan, for a mixed-integer search to start from.
    bound : callable, optional
        ``bound(instance, value) -> float``: the instance's bound that follows from a bound on the
        model's objective, where that is a transform of the instance's (a reciprocal, say) or its
        values are whole.
    in_model : callable, optional
        ``in_model(instance, value) -> float``: the model's objective of what is worth ``value`` in the instance, where
        the two differ: the inverse of ``bound`` where that is a transform.  None where the model has points that are no
        plans, so that its optimum is a bound only.
    slack : callable, optional
        ``slack(instance, program, row_duals) -> float``: what plans may gain by the judge's tolerance, in
        the objective of the program, where that can be more than the tolerance itself; it makes the bound
        wider.
    solve : callable, optional
        ``solve(instance, options) -> Solution``: a faster way than solving the one model, on HiGHS.  It becomes a
        method of the problem (:mod:`formulations.methods`), where those of the library's own problems are.
    any_solver : bool
        Whether no one model states the problem, so that ``solve`` is the procedure for every solver.
    again : callable, optional
        ``again(instance, options) -> Solution``: another procedure than ``solve``, slower, to check it where no one
        model states the problem.
    explain : callable, optional
        ``explain(instance) -> str | None``: why an infeasible instance has no plan, in the problem's
        own terms; None where it has nothing to say.  What it says is a proof, so it is asked before any model is built.
    explain_first : bool
        False where ``explain`` is a search of its own, which is asked once a solver has found the instance infeasible.
    trivial : callable, optional
        ``trivial(instance) -> Plan``: a plan at hand without a search, for one to start from, and for one that ends
        without a better.  Where it is not feasible it is not used.
    trivial_bound : callable, optional
        ``trivial_bound(instance) -> float``: a bound at hand without a search.  With a plan at hand that meets it no
        model is built.
    """

    build: Callable[[Any], pyo.ConcreteModel]
    read: Callable[[pyo.ConcreteModel], Plan]
    write: Callable[[pyo.ConcreteModel, Any], None] | None = None
    bound: Callable[[Any, float], float] | None = None
    in_model: Callable[[Any, float], float | None] | None = None
    slack: Callable[[Any, LinearProgram, FloatArray], float] | None = None
    solve: Callable[[Any, Options], Solution] | None = None
    any_solver: bool = False
    again: Callable[[Any, Options], Solution] | None = None
    explain: Callable[[Any], str | None] | None = None
    explain_first: bool = True
    trivial: Callable[[Any], Plan] | None = None
    trivial_bound: Callable[[Any], float] | None = None


_REGISTERED: dict[str, Formulation] = {}
"""Formulations of problems from outside the library."""


def register(problem: str, offered: Formulation) -> None:
    """Make the formulation of a problem from outside the library known."""
    _REGISTERED[problem] = offered


def formulation(problem: str) -> Formulation:
    """Return what ``formulations.<paper>.<problem>`` offers, or what was registered for a problem from outside.

    Raises
    ------
    InstanceError
        When there is no such problem; the nearest name is suggested.
    LookupError
        When a problem from outside has no formulation.
    """
    instance_type(problem)
    if is_own(problem):
        offered: Formulation = importlib.import_module(f"formulations.{problem}").FORMULATION
        return offered
    if problem not in _REGISTERED:
        raise LookupError(f"{problem} has no formulation: register one (validation.register)")
    return _REGISTERED[problem]
