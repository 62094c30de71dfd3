"""Answers and what they are worth, in one vocabulary of statuses (``docs/statuses.md``).

Whoever asks, for a study, a replay, a check, a hunt, a score or one instance, judges the answer by :func:`judge`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from instances.base import Instance, Plan, PlanError

__all__ = ["LARGEST", "NO_PLAN", "Answer", "Asked", "Status", "judge", "worst"]

LARGEST = 1e300
"""Values beyond are infinite: they are nobody's objective, and their differences are no numbers."""

_MOST_TOLD = 3
"""Broken rules that a reason names."""


class Status(StrEnum):
    """The status of an algorithm on an instance; files hold these words."""

    OPTIMAL = "optimal"
    """The exact side has a plan, and a proof that none is better."""
    FEASIBLE = "feasible"
    """The plan breaks no rule, whatever it is worth."""
    INFEASIBLE = "infeasible"
    """A heuristic's plan breaks a rule; of the exact side, it is proven that there is no feasible plan."""
    UNBOUNDED = "unbounded"
    """The exact side found plans of any value."""
    UNKNOWN = "unknown"
    """The exact side came to no end in time."""
    DECLINED = "declined"
    """A heuristic that may do so returned None."""
    FAILED = "failed"
    """There is no plan, and there should be: an exception, a crash, a limit, or an answer that is no plan."""
    LATE = "late"
    """In judgements a failure by the limit of time, which is ``failed`` elsewhere."""
    BEGUN = "begun"
    """Only the beginning of the plan was asked for, so that it has no value."""


@dataclass(frozen=True)
class Asked:
    """A heuristic's answer before anybody judges it.

    Attributes
    ----------
    plan : Plan, optional
        None where it declined, or there is no answer.
    seconds : float
    reason : str
        Why there is no plan to be judged: it raised, died, was stopped or returned something else.
    changed : bool
        Whether the heuristic changed the instance that it was given, where that was looked at.
    shown : str
        What it returned in place of a plan, where that was looked at.
    steps : int, optional
        Lines of Python that it ran, where they were counted.
    """

    plan: Plan | None
    seconds: float = 0.0
    reason: str = ""
    changed: bool = False
    shown: str = ""
    steps: int | None = None


@dataclass(frozen=True)
class Answer:
    """A heuristic's answer as it is judged.

    Attributes
    ----------
    plan : Plan, optional
        None where there is none; one that breaks rules is kept.
    status : Status
    value : float
        The instance's own judgement of a feasible plan, which may be infinite; NaN where there is none.
    bound : float
        Proven bound on the optimum; NaN of what proves nothing.
    seconds : float
        That the answer took.
    reason : str
        Why the status is what it is, where that needs a reason.
    steps : int, optional
        Lines of Python that the answer took, where they were counted.
    """

    plan: Plan | None
    status: str
    value: float = math.nan
    bound: float = math.nan
    seconds: float = 0.0
    reason: str = ""
    steps: int | None = None


NO_PLAN = "returned None in place of a plan; one that may declares it (declines=True)"
"""Why a heuristic failed that returned none."""


def judge(instance: Instance[Any], asked: Asked, *, declines: bool = True) -> Answer:
    """Judge an answer by its instance.

    Parameters
    ----------
    instance : Instance
        One that the heuristic has not had its hands on.
    asked : Asked
        The answer; ``Asked(plan)`` for a plan at hand.
    declines : bool
        Whether the heuristic may return None (:attr:`validation.Heuristic.declines`).

    Returns
    -------
    Answer
        A plan that breaks no rule is feasible even where its value is infinite, such as the makespan of a plan that
        leaves a job without GPUs.  Only a value that no plan can have (NaN, or better than all numbers) is a failure.
    """
    plan, seconds = asked.plan, asked.seconds
    if asked.reason:
        return Answer(None, Status.FAILED, seconds=seconds, reason=asked.reason)
    if plan is None:
        if declines:
            return Answer(None, Status.DECLINED, seconds=seconds, reason="the heuristic found no plan")
        return Answer(None, Status.FAILED, seconds=seconds, reason=NO_PLAN)
    try:
        broken = instance.violations(plan)
        value = math.nan if broken else instance.objective(plan)
    except PlanError as error:
        return Answer(None, Status.FAILED, seconds=seconds, reason=str(error))
    if broken:
        more = f"; {len(broken) - _MOST_TOLD} more" if len(broken) > _MOST_TOLD else ""
        reason = "; ".join(map(str, broken[:_MOST_TOLD])) + more
        return Answer(plan, Status.INFEASIBLE, seconds=seconds, reason=reason)
    value = math.copysign(math.inf, value) if abs(value) > LARGEST else value
    if math.isnan(value) or value == -worst(instance.sense):
        return Answer(None, Status.FAILED, seconds=seconds, reason=f"the plan is worth {value}")
    return Answer(plan, Status.FEASIBLE, value, seconds=seconds)


def worst(sense: str) -> float:
    """Return the value of a feasible plan for which there is no number; files hold null in its place."""
    return math.inf if sense == "min" else -math.inf
