"""What a heuristic can promise beyond the rules of its problem, as :mod:`validation.kinds.checks` tests it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["BreaksOnly", "Holds", "Monotone", "NeverWorseThan", "Promise", "Ratio", "Relabelled", "optimum"]

Condition = Callable[[Any], bool]
"""Of an instance: whether a promise is made there."""


@dataclass(frozen=True)
class Ratio:
    """The promise that a plan's value is within ``factor`` of the optimum: at most ``factor`` times
    it for "min", at least 1 / ``factor`` of it for "max".

    Attributes
    ----------
    factor : float
        At least 1.
    where : callable, optional
        ``where(instance)`` says whether it is promised there; everywhere by default.
    when : str
        The same in words, as ``"with one job"``.
    """

    factor: float
    where: Condition | None = None
    when: str = ""

    def __post_init__(self) -> None:
        if not self.factor >= 1:
            raise ValueError(f"factor: got {self.factor!r}, must be at least 1")


@dataclass(frozen=True)
class Monotone:
    """The promise that more resources never give a worse value, where the problem knows how to add some."""


@dataclass(frozen=True)
class Relabelled:
    """The promise that renumbering jobs, servers or types leaves the value as it is.

    Heuristics that break ties by index cannot promise it, unless with ``ties=False``: then it is
    promised where no two numbers are alike, and instances are changed a little until that is so.
    """

    ties: bool = True


@dataclass(frozen=True)
class NeverWorseThan:
    """The promise that wherever another heuristic of the problem finds a feasible plan, this one finds one as good.

    Attributes
    ----------
    other : str or callable
        A name of the catalogue, or the function.
    where, when
        As of :class:`Ratio`.
    """

    other: str | Callable[..., Any]
    where: Condition | None = None
    when: str = ""


@dataclass(frozen=True)
class BreaksOnly:
    """The promise that an infeasible plan breaks none but the named rules.

    Attributes
    ----------
    rules : tuple of str
        Names of rules, as a ``Violation`` has them.  None of them: the plan is feasible wherever any is.
    where, when
        As of :class:`Ratio`.
    """

    rules: tuple[str, ...] = ()
    where: Condition | None = None
    when: str = ""


@dataclass(frozen=True)
class Holds:
    """The promise that a statement is true of every plan.

    Attributes
    ----------
    statement : str
        What holds, in a line.
    test : callable
        ``test(instance, plan)`` says whether it does.
    stream : bool
        Whether the test takes a third argument, ``rng``: the same stream that a random heuristic was given.
    """

    statement: str
    test: Callable[..., bool]
    stream: bool = False


Promise = Ratio | Monotone | Relabelled | NeverWorseThan | BreaksOnly | Holds
"""What an entry of the catalogue promises of a heuristic."""


def optimum(where: Condition | None = None, when: str = "") -> Ratio:
    """Promise that a plan is optimal, everywhere or where a condition holds."""
    return Ratio(1.0, where, when)
