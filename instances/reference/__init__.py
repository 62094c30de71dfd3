"""A second opinion on every problem, in exact fractions, that shares no code with the rest of the library.

What a plan is worth, which rules it breaks, what prices prove and, by small searches, what is best: all of it is
written from the problems' definitions (docs/problems), one module for each paper.  Nothing but the standard library is
imported, so that ``collection/check.py`` runs it where nothing is installed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from . import afs, aryl, elasticflow, eplb, gavel, prism, shockwave, sia, synergy, vipr
from .common import Malformed, Number, Problem, TooLarge, better, closed, parse, within
from .programs import Program
from .stated import STATED, certified

__all__ = ["PROBLEMS", "Malformed", "Reference", "TooLarge", "better", "closed", "problem"]

PROBLEMS: Mapping[str, Problem] = {
    **gavel.PROBLEMS,
    **prism.PROBLEMS,
    **sia.PROBLEMS,
    **shockwave.PROBLEMS,
    **eplb.PROBLEMS,
    **synergy.PROBLEMS,
    **aryl.PROBLEMS,
    **afs.PROBLEMS,
    **elasticflow.PROBLEMS,
}
"""The problems by name."""


def problem(name: str) -> Problem:
    """Return the problem of that name.

    Raises
    ------
    KeyError
        When there is none, as of a problem from outside.
    """
    return PROBLEMS[name]


class Reference:
    """An instance as the reference reads it.

    Instances, plans and prices are JSON, as text or as what :func:`json.loads` makes of it.

    Parameters
    ----------
    instance : str or mapping

    Raises
    ------
    Malformed
        When it is no instance of its problem; so do the methods for what is no plan, or no prices.
    KeyError
        When the reference does not know its problem.
    """

    def __init__(self, instance: str | Mapping[str, Any]) -> None:
        data = _exact(instance)
        self.name = data["problem"]
        self.problem = problem(self.name)
        self._read = self.problem.instance(data)

    def value(self, plan: str | Mapping[str, Any]) -> Number:
        """Return what a plan is worth: a fraction, or infinity where a job never ends."""
        return self.problem.worth(self._read, self.problem.plan(self._read, _exact(plan)))

    def violations(self, plan: str | Mapping[str, Any]) -> list[str]:
        """Return the names of the rules that a plan breaks by more than the tolerance, each once."""
        found = self.problem.verdict(self._read, self.problem.plan(self._read, _exact(plan))).broken
        return list(dict.fromkeys(found))

    def bound(self, prices: str | Mapping[str, Any]) -> Number:
        """Return the bound that prices prove."""
        return self.problem.bound(self._read, _exact(prices))

    def unproven(self, plan: str | Mapping[str, Any], prices: str | Mapping[str, Any]) -> list[str]:
        """Return what prices leave open of a plan whose value is at their bound, in words; nothing, where it is all."""
        return self.problem.unproven(self._read, self.problem.plan(self._read, _exact(plan)), _exact(prices))

    def optimum(self) -> Number:
        """Return the best value that a plan can have; infinite where there is no plan.

        Raises
        ------
        TooLarge
            When the search would take too many steps.
        """
        return self.problem.optimum(self._read)

    def merits(self, plan: str | Mapping[str, Any]) -> list[Number]:
        """Return what plans are compared by, one number after the other: the value, where no more counts."""
        return self.problem.merits(self._read, self.problem.plan(self._read, _exact(plan)))

    def best_merits(self, seconds: float | None = None) -> list[Number]:
        """Return the merits of an optimal plan; the first is infinite where there is no plan.

        Parameters
        ----------
        seconds : float, optional
            That the search may take, beside its steps.

        Raises
        ------
        TooLarge
            When the search would take longer.
        """
        with within(seconds):
            return self.problem.best_merits(self._read)

    def program(self) -> Program | None:
        """Return the program that the instance states by itself; None where the reference states none."""
        stated = STATED.get(self.name)
        return None if stated is None else stated(self._read)

    def certified(self, proven: vipr.Proven) -> Number:
        """Return what a certificate proves of a program that the instance states by itself.

        Raises
        ------
        Refuted
            When it is of none.
        """
        return certified(self.name, self._read, proven)

    def searched(self) -> Number:
        """Return a bound that a search proves: the optimum, but where that would take far longer.

        Raises
        ------
        TooLarge
            When the search would take too many steps, or the problem has none.
        """
        return self.problem.searched(self._read)


def _exact(data: str | Mapping[str, Any]) -> Any:
    return parse(data if isinstance(data, str) else json.dumps(data))
